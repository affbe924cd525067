/*
 * The client's side of the benchmarks over HTTP: keep-alive connections in one thread, one request under way on each.
 *
 *   clients_connect() ─▶ client_post() on each ─▶ client_next(): the next one that has its answer ─▶ client_post() …
 *
 * Only what our own servers send is understood, and any status but 2xx ends the program: a benchmark of refusals is worth
 * nothing. This is no header of the engine, and includes none.
 */
#ifndef BENCH_CLIENT_H
#define BENCH_CLIENT_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "workload.h"

#define CLIENTS_MAX 1024
#define REQUEST_BYTES (128u << 10)
#define ANSWER_BYTES (128u << 10)
#define ANSWER_SECONDS_MAX 40 /* longer than any wait that is asked for */

struct client {
	int fd;
	size_t answer_n;
	double asked_at, answered_at; /* workload_seconds() */
	const char *body;             /* of the answer, terminated */
	char request[REQUEST_BYTES];
	char answer[ANSWER_BYTES];
};

static struct client clients[CLIENTS_MAX];
static size_t clients_n;
static int clients_epoll = -1;

static inline _Noreturn void client_die(const char *what, const char *words)
{
	fprintf(stderr, "client, %s: %s\n", what, words);
	exit(1);
}

/* n more connections to ADDRESS:PORT; the first of them. */
static inline struct client *clients_connect(const char *where, size_t n)
{
	struct client *first = &clients[clients_n];
	struct sockaddr_in address = {.sin_family = AF_INET};
	const char *port = strchr(where, ':');
	char host[64] = "";
	int one = 1;

	if (port && (size_t)(port - where) < sizeof host)
		memcpy(host, where, (size_t)(port - where));
	if (!port || inet_pton(AF_INET, host, &address.sin_addr) != 1 || clients_n + n > CLIENTS_MAX)
		client_die("connect", where);
	address.sin_port = htons((uint16_t)workload_number(port + 1, 1, 65535));
	if (clients_epoll < 0)
		clients_epoll = epoll_create1(EPOLL_CLOEXEC);
	for (size_t i = 0; i < n; i++) {
		struct client *c = &clients[clients_n++];
		struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};

		c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (connect(c->fd, (struct sockaddr *)&address, sizeof address))
			client_die("connect", strerror(errno));
		setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		epoll_ctl(clients_epoll, EPOLL_CTL_ADD, c->fd, &event);
	}
	return first;
}

/* `fields`: further lines of the head, each with its end. */
static inline void client_post(struct client *c, const char *target, const char *fields, const char *body)
{
	int n = snprintf(c->request, sizeof c->request,
			 "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%s"
			 "Content-Length: %zu\r\n\r\n%s",
			 target, fields, strlen(body), body);

	if (n < 0 || (size_t)n >= sizeof c->request)
		client_die("request", "it is too long");
	c->answer_n = 0;
	c->asked_at = workload_seconds();
	for (ssize_t sent = 0, more; sent < n; sent += more) {
		more = send(c->fd, c->request + sent, (size_t)(n - sent), MSG_NOSIGNAL);
		if (more < 0)
			client_die("send", strerror(errno));
	}
}

/* The length of the complete answer, or 0: its head is not complete. */
static inline size_t client_answer_length(struct client *c)
{
	char *end, *field;

	c->answer[c->answer_n] = '\0';
	end = strstr(c->answer, "\r\n\r\n");
	if (!end)
		return 0;
	field = strcasestr(c->answer, "\r\ncontent-length:");
	if (!field || field > end)
		client_die("answer", "it has no Content-Length");
	c->body = end + 4;
	return (size_t)(end + 4 - c->answer) + strtoul(field + 17, NULL, 10);
}

/* True when a whole answer has come. */
static inline bool client_receive(struct client *c)
{
	ssize_t n = recv(c->fd, c->answer + c->answer_n, ANSWER_BYTES - 1 - c->answer_n, 0);
	size_t length;

	if (n <= 0)
		client_die("receive", n ? strerror(errno) : "closed, or the answer is too long");
	c->answer_n += (size_t)n;
	length = client_answer_length(c);
	return length && c->answer_n >= length;
}

static inline struct client *client_next(void)
{
	static struct epoll_event events[256];
	static int events_n, events_at;

	for (;;) {
		while (events_at < events_n) {
			struct client *c = events[events_at++].data.ptr;

			if (!client_receive(c))
				continue;
			c->answered_at = workload_seconds();
			if (strncmp(c->answer, "HTTP/1.1 2", 10) != 0)
				client_die("answer", c->answer);
			return c;
		}
		events_at = 0;
		events_n = epoll_wait(clients_epoll, events, 256, ANSWER_SECONDS_MAX * 1000);
		if (events_n == 0)
			client_die("wait", "nothing came for a long time");
	}
}

#endif
