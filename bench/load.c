/*
 * load ADDRESS:PORT CONNECTIONS REQUESTS KEYS TARGET BODY : so many requests, as fast as they are answered.
 *
 * One thread, CONNECTIONS keep-alive connections, one request under way on each: POST TARGET with BODY and a key.
 *
 *   KEYS 0    no key at all                       plain HTTP, a pass-through
 *   KEYS -1   a new key for every request         created
 *   KEYS n    n keys in turn, each used once before the measurement begins      replayed
 *
 * A "#" in BODY becomes the number of the key, so that each key has one body. Prints requests per second. Any status
 * but 2xx, or with KEYS n an answer that is no replay, ends it with an error: a benchmark of refusals is worth nothing.
 */
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

#define CONNECTIONS_MAX 1024
#define ANSWER_BYTES 65536

struct client {
	int fd;
	char request[4096];
	size_t request_n, sent;
	char answer[ANSWER_BYTES];
	size_t answer_n;
};

static struct client clients[CONNECTIONS_MAX];
static struct sockaddr_in address;
static const char *target, *body;
static long keys;
static unsigned long next_key;
static bool measuring;
static char run_id[32];

static _Noreturn void die(const char *what, const char *words)
{
	fprintf(stderr, "load, %s: %s\n", what, words);
	exit(1);
}

/* ---- one request ---- */

static void write_request(struct client *c)
{
	unsigned long number = keys > 0 ? next_key++ % (unsigned long)keys : next_key++;
	char text[1024], digits[32];
	size_t n = 0;

	snprintf(digits, sizeof digits, "%lu", number);
	for (const char *p = body; *p && n + sizeof digits < sizeof text; p++) {
		if (*p == '#') {
			memcpy(text + n, digits, strlen(digits));
			n += strlen(digits);
		} else {
			text[n++] = *p;
		}
	}
	c->request_n = (size_t)snprintf(c->request, sizeof c->request,
					"POST %s HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n",
					target);
	if (keys)
		c->request_n += (size_t)snprintf(c->request + c->request_n, sizeof c->request - c->request_n,
						 "Idempotency-Key: \"%s-%lu\"\r\n", run_id, number);
	c->request_n += (size_t)snprintf(c->request + c->request_n, sizeof c->request - c->request_n,
					 "Content-Length: %zu\r\n\r\n%.*s", n, (int)n, text);
	c->sent = c->answer_n = 0;
}

/* The length of the complete answer, or 0. Only what our own servers send is understood. */
static size_t answer_length(struct client *c)
{
	char *end, *field;

	c->answer[c->answer_n] = '\0';
	end = strstr(c->answer, "\r\n\r\n");
	if (!end)
		return 0;
	field = strcasestr(c->answer, "\r\ncontent-length:");
	if (!field || field > end)
		die("answer", "it has no Content-Length");
	return (size_t)(end + 4 - c->answer) + strtoul(field + 17, NULL, 10);
}

static void check_answer(const struct client *c)
{
	if (strncmp(c->answer, "HTTP/1.1 2", 10) != 0)
		die("answer", c->answer);
	if (measuring && keys > 0 && !strcasestr(c->answer, "\r\nidempotency-replayed: true\r\n"))
		die("this is no replay", c->answer);
}

/* ---- the loop ---- */

static void send_on(struct client *c)
{
	while (c->sent < c->request_n) {
		ssize_t n = send(c->fd, c->request + c->sent, c->request_n - c->sent, MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0)
			die("send", strerror(errno));
		c->sent += (size_t)n;
	}
}

/* True when a whole answer has come. */
static bool receive(struct client *c)
{
	ssize_t n = recv(c->fd, c->answer + c->answer_n, ANSWER_BYTES - 1 - c->answer_n, 0);
	size_t length;

	if (n < 0 && errno == EAGAIN)
		return false;
	if (n <= 0)
		die("receive", n ? strerror(errno) : "closed");
	c->answer_n += (size_t)n;
	length = answer_length(c);
	return length && c->answer_n >= length;
}

static double run(int epoll_fd, unsigned long connections, unsigned long requests)
{
	double begin = workload_seconds();
	unsigned long started = 0, done = 0;

	for (unsigned long i = 0; i < connections && started < requests; i++, started++) {
		write_request(&clients[i]);
		send_on(&clients[i]);
	}
	while (done < started) {
		struct epoll_event events[256];
		int n = epoll_wait(epoll_fd, events, 256, 10000);

		if (n == 0)
			die("wait", "nothing came for ten seconds");
		for (int i = 0; i < n; i++) {
			struct client *c = events[i].data.ptr;

			if (!receive(c))
				continue;
			check_answer(c);
			done++;
			if (started < requests) {
				started++;
				write_request(c);
				send_on(c);
			}
		}
	}
	return workload_seconds() - begin;
}

static void connect_all(int epoll_fd, unsigned long connections)
{
	int one = 1;

	for (unsigned long i = 0; i < connections; i++) {
		struct epoll_event event = {.events = EPOLLIN, .data.ptr = &clients[i]};

		clients[i].fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (connect(clients[i].fd, (struct sockaddr *)&address, sizeof address))
			die("connect", strerror(errno));
		setsockopt(clients[i].fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		epoll_ctl(epoll_fd, EPOLL_CTL_ADD, clients[i].fd, &event);
	}
}

int main(int argc, char **argv)
{
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	unsigned long connections, requests;
	char *port;

	if (argc != 7 || !(port = strchr(argv[1], ':'))) {
		fprintf(stderr, "usage: load ADDRESS:PORT CONNECTIONS REQUESTS KEYS TARGET BODY\n");
		return 2;
	}
	*port++ = '\0';
	address.sin_family = AF_INET;
	address.sin_port = htons((uint16_t)workload_number(port, 1, 65535));
	inet_pton(AF_INET, argv[1], &address.sin_addr);
	connections = workload_number(argv[2], 1, CONNECTIONS_MAX);
	requests = workload_number(argv[3], 1, 100000000);
	keys = strtol(argv[4], NULL, 10);
	target = argv[5];
	body = argv[6];
	snprintf(run_id, sizeof run_id, "%lld-%d", (long long)workload_wall_ms(), (int)getpid());
	connect_all(epoll_fd, connections);
	if (keys > 0)
		run(epoll_fd, connections, (unsigned long)keys);
	measuring = true;
	printf("%.0f\n", (double)requests / run(epoll_fd, connections, requests));
	return 0;
}
