/* See service.h. */
#include "support/service.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "support/await.h"
#include "support/key_book.h"

#define CLIENTS_MAX 512
#define PLAYS_MAX 16
#define REQUEST_BYTES_MAX (1u << 20)
#define CALLS_MAX 100000

struct service {
	int port;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	/* All under the mutex. */
	pthread_t thread;
	int listen_fd; /* -1: the door is closed */
	bool stopping;
	uint64_t held, released; /* calls that were held so far; those below `released` may go */
	uint64_t receipts;
	int clients[CLIENTS_MAX]; /* -1: free */
	size_t clients_n;
	size_t plays_n;
	struct {
		char path[64];
		struct play play;
	} plays[PLAYS_MAX];
	size_t calls_n, calls_room;
	struct service_call *calls;
	struct key_book keys;
};

struct client_of {
	struct service *service;
	int fd;
};

/* ---- one request ---- */

/* One request, NUL-terminated; false: the client has gone. */
static bool read_request(int fd, char *text)
{
	size_t n = 0, want = SIZE_MAX;

	while (n < want && n < REQUEST_BYTES_MAX) {
		ssize_t got = recv(fd, text + n, REQUEST_BYTES_MAX - n, 0);
		char *end, *length;

		if (got <= 0)
			return false;
		n += (size_t)got;
		text[n] = '\0';
		if (want != SIZE_MAX || !(end = strstr(text, "\r\n\r\n")))
			continue;
		length = strcasestr(text, "\r\nContent-Length:");
		want = (size_t)(end + 4 - text) + (length && length < end ? strtoul(length + 17, NULL, 10) : 0);
	}
	return n >= want;
}

static void send_bytes(int fd, const char *text, size_t n, int flags)
{
	while (n > 0) {
		ssize_t sent = send(fd, text, n, MSG_NOSIGNAL | flags);

		if (sent <= 0)
			return;
		text += sent;
		n -= (size_t)sent;
	}
}

/* The value of a header into text; empty: there is none. */
static void header(const char *request, const char *name, char *text, size_t bytes)
{
	const char *end = strstr(request, "\r\n\r\n"), *at = request;
	size_t n = strlen(name), used = 0;

	text[0] = '\0';
	while ((at = strstr(at, "\r\n")) && at < end) {
		at += 2;
		if (strncasecmp(at, name, n) != 0 || at[n] != ':')
			continue;
		for (at += n + 1; *at == ' '; at++)
			;
		while (*at != '\r' && used + 1 < bytes)
			text[used++] = *at++;
		text[used] = '\0';
		return;
	}
}

static int64_t header_number(const char *request, const char *name)
{
	char text[32];

	header(request, name, text, sizeof text);
	return strtoll(text, NULL, 10);
}

static void read_call(const char *request, struct service_call *ret)
{
	const char *body = strstr(request, "\r\n\r\n") + 4;
	const char *path = strchr(request, ' ') + 1;
	struct json value, id;
	struct hx_error err;
	struct arena arena;

	*ret = (struct service_call){.at_ms = await_now_ms()};
	snprintf(ret->path, sizeof ret->path, "%.*s", (int)strcspn(path, " "), path);
	snprintf(ret->body, sizeof ret->body, "%s", body);
	header(request, "Idempotency-Key", ret->key, sizeof ret->key);
	header(request, "Authorization", ret->authorization, sizeof ret->authorization);
	ret->fence = header_number(request, "Hapax-Fence");
	ret->attempt = header_number(request, "Hapax-Attempt");
	if (json_check(slice_str(body), &err, &value) || !json_find(value, slice_str("id"), &id) ||
	    json_type(id) != JSON_STRING)
		return;
	arena_init(&arena, 1u << 16);
	snprintf(ret->id, sizeof ret->id, "%s", json_string_decode(id, &arena).p);
	arena_release(&arena);
}

static struct play play_of(struct service *s, const char *path)
{
	for (size_t i = 0; i < s->plays_n; i++)
		if (strcmp(s->plays[i].path, path) == 0)
			return s->plays[i].play;
	return (struct play){0};
}

/* What is to be known of a call to answer it. */
struct turn {
	struct play play;
	uint64_t held, receipt; /* its place among those that are held; its number */
};

static void write_down(struct service *s, const struct service_call *call)
{
	if (s->calls_n == s->calls_room && s->calls_room < CALLS_MAX) {
		s->calls_room = s->calls_room ? 2 * s->calls_room : 256;
		s->calls = realloc(s->calls, s->calls_room * sizeof *s->calls);
	}
	s->calls[s->calls_n++] = *call;
}

/* Writes the call down; what is to be played is read in the same moment. */
static struct turn note(struct service *s, const struct service_call *call)
{
	struct turn turn = {0};

	pthread_mutex_lock(&s->mutex);
	turn.play = play_of(s, call->path);
	if (call->key[0] && call->attempt) /* the engine's; a gate passes on what its clients sent */
		(void)key_book_note(&s->keys, call->key, call->path, call->body);
	if (!turn.play.unnoted)
		write_down(s, call);
	turn.receipt = ++s->receipts;
	if (turn.play.hold)
		turn.held = s->held++;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->mutex);
	return turn;
}

static void await_release(struct service *s, uint64_t held)
{
	pthread_mutex_lock(&s->mutex);
	while (s->released <= held && !s->stopping)
		pthread_cond_wait(&s->changed, &s->mutex);
	pthread_mutex_unlock(&s->mutex);
}

static void answer(int fd, const struct play *play, const char *body)
{
	size_t n = strlen(body);
	char head[256];

	snprintf(head, sizeof head,
		 "HTTP/1.1 %d Played\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
		 play->status ? play->status : 200, n);
	if (play->how == PLAY_RESET)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1}, sizeof(struct linger));
	if (play->how == PLAY_DROP || play->how == PLAY_RESET)
		return;
	send_bytes(fd, head, strlen(head), MSG_MORE);
	send_bytes(fd, body, play->how == PLAY_CUT ? n - n / 2 - 1 : n, /* flags= */ 0);
}

/* False: the connection is over. */
static bool serve_one(struct service *s, int fd, const char *request)
{
	char receipt[SERVICE_BODY_BYTES + 100];
	struct service_call call;
	struct play play;
	struct turn turn;

	read_call(request, &call);
	turn = note(s, &call);
	play = turn.play;
	if (play.hook)
		play.hook(play.context, &call);
	if (play.apply)
		snprintf(receipt, sizeof receipt, "{\"receipt\":%llu}",
			 (unsigned long long)play.apply(play.context, &call));
	if (play.delay_ms)
		nanosleep(&(struct timespec){play.delay_ms / 1000, play.delay_ms % 1000 * 1000000}, NULL);
	if (play.hold)
		await_release(s, turn.held);
	if (play.respond && !(play.status = play.respond(play.context, &call, receipt, sizeof receipt)))
		play.how = PLAY_DROP;
	else if (!play.apply && !play.respond)
		snprintf(receipt, sizeof receipt, "{\"call\":%llu,\"got\":%s}", (unsigned long long)turn.receipt,
			 call.body);
	answer(fd, &play, play.receipt || play.apply || play.respond ? receipt : play.body ? play.body : "{}");
	if (play.answered)
		play.answered(play.context, &call);
	return play.how == PLAY_REPLY;
}

static void leave(struct service *s, int fd)
{
	pthread_mutex_lock(&s->mutex);
	for (size_t i = 0; i < CLIENTS_MAX; i++)
		if (s->clients[i] == fd)
			s->clients[i] = -1;
	close(fd);
	s->clients_n--;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->mutex);
}

static void *talk(void *context)
{
	struct client_of client = *(struct client_of *)context;
	char *text = malloc(REQUEST_BYTES_MAX + 1);

	free(context);
	while (read_request(client.fd, text) && serve_one(client.service, client.fd, text))
		;
	free(text);
	leave(client.service, client.fd);
	return NULL;
}

/* ---- the door ---- */

/* True when there is room; a client that there is no room for is cut off. */
static bool enter(struct service *s, int fd)
{
	bool entered = false;

	pthread_mutex_lock(&s->mutex);
	for (size_t i = 0; i < CLIENTS_MAX && !entered && s->listen_fd >= 0; i++)
		if (s->clients[i] < 0) {
			s->clients[i] = fd;
			s->clients_n++;
			entered = true;
		}
	pthread_mutex_unlock(&s->mutex);
	return entered;
}

static void take_client(struct service *s, int fd)
{
	struct client_of *client = malloc(sizeof *client);
	pthread_attr_t attr;
	pthread_t thread;

	*client = (struct client_of){s, fd};
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (!enter(s, fd)) {
		close(fd);
		free(client);
	} else if (pthread_create(&thread, &attr, talk, client)) {
		free(client);
		leave(s, fd);
	}
	pthread_attr_destroy(&attr);
}

static void *accept_all(void *context)
{
	struct service *s = context;
	int listen_fd, fd;

	pthread_mutex_lock(&s->mutex);
	listen_fd = s->listen_fd;
	pthread_mutex_unlock(&s->mutex);
	while ((fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		take_client(s, fd);
	return NULL;
}

void service_open_door(struct service *s)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)s->port)};
	socklen_t n = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)), 0);
	if (bind(fd, (struct sockaddr *)&address, n) || listen(fd, 512))
		fail_msg("the service's port %d: %s", s->port, strerror(errno));
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &n), 0);
	s->port = ntohs(address.sin_port);
	pthread_mutex_lock(&s->mutex);
	s->listen_fd = fd;
	pthread_mutex_unlock(&s->mutex);
	assert_int_equal(pthread_create(&s->thread, NULL, accept_all, s), 0);
}

void service_close_door(struct service *s)
{
	int fd;

	pthread_mutex_lock(&s->mutex);
	fd = s->listen_fd;
	s->listen_fd = -1;
	for (size_t i = 0; i < CLIENTS_MAX; i++)
		if (s->clients[i] >= 0)
			shutdown(s->clients[i], SHUT_RDWR);
	pthread_mutex_unlock(&s->mutex);
	if (fd < 0)
		return;
	shutdown(fd, SHUT_RDWR);
	pthread_join(s->thread, NULL);
	close(fd);
}

struct service *service_new(void)
{
	struct service *s = calloc(1, sizeof *s);
	pthread_condattr_t attr;

	assert_non_null(s);
	for (size_t i = 0; i < CLIENTS_MAX; i++)
		s->clients[i] = -1;
	pthread_mutex_init(&s->mutex, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->changed, &attr);
	pthread_condattr_destroy(&attr);
	service_open_door(s);
	return s;
}

void service_free(struct service *s)
{
	char wrong[sizeof s->keys.wrong];

	if (!s)
		return;
	pthread_mutex_lock(&s->mutex);
	s->stopping = true;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->mutex);
	service_close_door(s);
	pthread_mutex_lock(&s->mutex);
	while (s->clients_n)
		pthread_cond_wait(&s->changed, &s->mutex);
	pthread_mutex_unlock(&s->mutex);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->mutex);
	free(s->calls);
	memcpy(wrong, s->keys.wrong, sizeof wrong);
	key_book_release(&s->keys);
	free(s);
	if (wrong[0])
		fail_msg("one key, one request: %s", wrong);
}

/* ---- for the test ---- */

int service_port(const struct service *s)
{
	return s->port;
}

void service_play(struct service *s, const char *path, const struct play *play)
{
	size_t i = 0;

	pthread_mutex_lock(&s->mutex);
	while (i < s->plays_n && strcmp(s->plays[i].path, path) != 0)
		i++;
	if (i < PLAYS_MAX) {
		s->plays_n += i == s->plays_n;
		snprintf(s->plays[i].path, sizeof s->plays[i].path, "%s", path);
		s->plays[i].play = *play;
	}
	pthread_mutex_unlock(&s->mutex);
	assert_true(i < PLAYS_MAX);
}

void service_release(struct service *s)
{
	pthread_mutex_lock(&s->mutex);
	s->released = s->held;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->mutex);
}

void service_release_one(struct service *s)
{
	pthread_mutex_lock(&s->mutex);
	s->released += s->released < s->held;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->mutex);
}

static bool is_of(const struct service_call *call, const char *path, const char *id)
{
	return (!path || strcmp(call->path, path) == 0) && (!id || strcmp(call->id, id) == 0);
}

static size_t count_locked(const struct service *s, const char *path, const char *id)
{
	size_t n = 0;

	for (size_t i = 0; i < s->calls_n; i++)
		n += is_of(&s->calls[i], path, id);
	return n;
}

size_t service_count(struct service *s, const char *path, const char *id)
{
	size_t n;

	pthread_mutex_lock(&s->mutex);
	n = count_locked(s, path, id);
	pthread_mutex_unlock(&s->mutex);
	return n;
}

struct service_call service_call(struct service *s, const char *path, size_t i)
{
	struct service_call call = {0};
	size_t seen = 0, at = 0;

	pthread_mutex_lock(&s->mutex);
	for (; at < s->calls_n && seen <= i; at++)
		if (is_of(&s->calls[at], path, /* id= */ NULL) && seen++ == i)
			call = s->calls[at];
	pthread_mutex_unlock(&s->mutex);
	if (seen <= i)
		fail_msg("there is no call %zu of %s", i, path);
	return call;
}

void service_await(struct service *s, const char *path, size_t n, int64_t deadline_ms)
{
	int64_t until_ms = await_now_ms() + deadline_ms;
	struct timespec until = {until_ms / 1000, until_ms % 1000 * 1000000};
	size_t seen;

	pthread_mutex_lock(&s->mutex);
	while ((seen = count_locked(s, path, NULL)) < n)
		if (pthread_cond_timedwait(&s->changed, &s->mutex, &until))
			break;
	pthread_mutex_unlock(&s->mutex);
	if (seen < n)
		fail_msg("waited %d ms for %zu calls of %s; there are %zu", (int)deadline_ms, n, path, seen);
}

void service_forget(struct service *s)
{
	pthread_mutex_lock(&s->mutex);
	s->calls_n = 0;
	pthread_mutex_unlock(&s->mutex);
}
