/* See client.h. */
#include "support/client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/json_number.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "support/await.h"
#include "support/described.h"

#define TIMEOUT_S 60
#define HEAD_OUT_BYTES 4096
#define TEXT_BYTES 512
#define TEXTS 8

struct client {
	int port;
	int fd; /* -1: not connected */
	char requester[300];
};

struct client *client_new(int port, const char *requester)
{
	struct client *client = calloc(1, sizeof *client);

	client->port = port;
	client->fd = -1;
	if (requester)
		snprintf(client->requester, sizeof client->requester, "Hapax-Requester: %s\r\n", requester);
	return client;
}

static void hang_up(struct client *client)
{
	if (client->fd >= 0)
		close(client->fd);
	client->fd = -1;
}

void client_free(struct client *client)
{
	if (!client)
		return;
	hang_up(client);
	free(client);
}

static bool connect_to(struct client *client)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				      .sin_port = htons((uint16_t)client->port)};
	struct timeval limit = {.tv_sec = TIMEOUT_S};

	client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(client->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	setsockopt(client->fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
	setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	return connect(client->fd, (struct sockaddr *)&address, sizeof address) == 0;
}

/* A connection that the server has closed in the meantime is not used again: nothing is ever sent twice. */
static bool be_connected(struct client *client)
{
	char byte;

	if (client->fd >= 0 && recv(client->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
		hang_up(client);
	return client->fd >= 0 || connect_to(client);
}

static bool send_all(int fd, const char *text, size_t n)
{
	while (n > 0) {
		ssize_t sent = send(fd, text, n, MSG_NOSIGNAL);

		if (sent <= 0)
			return false;
		text += sent;
		n -= (size_t)sent;
	}
	return true;
}

/* The head into reply->head; what was read of the body after it goes to the body. */
static bool read_head(int fd, struct reply *reply, size_t *ret_left)
{
	char *end = NULL, *length;
	size_t n = 0;

	while (!end) {
		ssize_t got = recv(fd, reply->head + n, sizeof reply->head - 1 - n, 0);

		if (got <= 0)
			return false;
		n += (size_t)got;
		reply->head[n] = '\0';
		end = strstr(reply->head, "\r\n\r\n");
	}
	length = strcasestr(reply->head, "\r\nContent-Length:");
	if (!length || length > end || sscanf(reply->head, "HTTP/1.1 %d", &reply->status) != 1)
		return false;
	end += 4;
	reply->body_n = strtoul(length + 17, NULL, 10);
	reply->body = calloc(1, reply->body_n + 1);
	n -= (size_t)(end - reply->head);
	if (n > reply->body_n)
		return false;
	memcpy(reply->body, end, n);
	*end = '\0';
	*ret_left = reply->body_n - n;
	return true;
}

static bool read_reply(int fd, struct reply *reply)
{
	size_t left;

	if (!read_head(fd, reply, &left))
		return false;
	while (left > 0) {
		ssize_t got = recv(fd, reply->body + reply->body_n - left, left, 0);

		if (got <= 0)
			return false;
		left -= (size_t)got;
	}
	return true;
}

/* Of a problem, without failing anything: this runs in callers' threads. */
static void note_code(struct reply *reply)
{
	struct json value, code;
	struct hx_error err;

	if (reply->status < 400 || json_check(slice_of(reply->body, reply->body_n), &err, &value) ||
	    !json_find(value, slice_str("code"), &code) || json_type(code) != JSON_STRING)
		return;
	snprintf(reply->code, sizeof reply->code, "%.*s", (int)code.raw.n - 2, code.raw.p + 1);
}

static bool exchange(struct client *client, const char *head, const char *body, size_t n, struct reply *reply)
{
	int64_t from_ms = await_now_ms();
	bool answered;

	*reply = (struct reply){0};
	/* The answer may come before all was sent: too large a body is refused from its head. */
	answered = be_connected(client) && send_all(client->fd, head, strlen(head));
	if (answered)
		(void)send_all(client->fd, body, n);
	answered = answered && read_reply(client->fd, reply);
	reply->took_ms = await_now_ms() - from_ms;
	if (answered)
		note_code(reply);
	else
		reply->status = 0;
	if (!answered || strcasestr(reply->head, "\r\nConnection: close"))
		hang_up(client);
	return answered;
}

bool client_call_with(struct client *client, const char *method, const char *path, const char *fields, const char *body,
		      size_t n, struct reply *ret_reply)
{
	char head[HEAD_OUT_BYTES];

	snprintf(head, sizeof head, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s%sContent-Length: %zu\r\n\r\n", method,
		 path, client->requester, fields, n);
	if (!exchange(client, head, body, n, ret_reply))
		return false;
	described_check(method, path, ret_reply->status, ret_reply->code);
	return true;
}

bool client_call(struct client *client, const char *method, const char *path, const char *body, size_t n,
		 struct reply *ret_reply)
{
	return client_call_with(client, method, path, /* fields= */ "", body, n, ret_reply);
}

bool client_raw(struct client *client, const char *bytes, size_t n, struct reply *ret_reply)
{
	bool answered;

	hang_up(client);
	answered = exchange(client, "", bytes, n, ret_reply);
	hang_up(client);
	return answered;
}

void reply_release(struct reply *reply)
{
	free(reply->body);
	reply->body = NULL;
}

/* ---- reading ---- */

static bool step_into(struct json *at, const char *name, size_t n)
{
	struct json_iter it;
	long i;

	if (json_type(*at) != JSON_ARRAY)
		return json_find(*at, slice_of(name, n), at);
	it = json_iter_of(*at);
	for (i = strtol(name, NULL, 10); i >= 0; i--)
		if (!json_iter_element(&it, at))
			return false;
	return true;
}

static struct json at_path(const struct reply *reply, const char *path)
{
	struct json at;
	struct hx_error err;

	if (!reply->body || json_check(slice_of(reply->body, reply->body_n), &err, &at))
		fail_msg("%s: the answer (%d) is not JSON: %s", path, reply->status,
			 reply->body ? reply->body : "none");
	for (const char *name = path; *name;) {
		size_t n = strcspn(name, ".");

		if (!step_into(&at, name, n))
			fail_msg("no %s in: %.1000s", path, reply->body);
		name += n + (name[n] == '.');
	}
	return at;
}

int64_t reply_int(const struct reply *reply, const char *path)
{
	struct hx_error err;
	int64_t number = 0;

	if (json_int64(at_path(reply, path), &err, &number))
		fail_msg("%s: %s", path, err.detail);
	return number;
}

const char *reply_text(const struct reply *reply, const char *path)
{
	static _Thread_local char texts[TEXTS][TEXT_BYTES];
	static _Thread_local unsigned turn;
	char *text = texts[turn++ % TEXTS];
	struct json value = at_path(reply, path);
	struct slice decoded = value.raw;
	struct arena arena;

	arena_init(&arena, 64u << 20);
	if (json_type(value) == JSON_STRING)
		decoded = json_string_decode(value, &arena);
	snprintf(text, TEXT_BYTES, "%.*s", SLICE_ARGS(decoded));
	arena_release(&arena);
	return text;
}

size_t reply_count(const struct reply *reply, const char *path)
{
	struct json value = at_path(reply, path), element;
	struct json_iter it = json_iter_of(value);
	size_t n = 0;

	assert_int_equal(json_type(value), JSON_ARRAY);
	while (json_iter_element(&it, &element))
		n++;
	return n;
}
