/*
 * For tests of the server over real sockets: a server with a handler made for tests, and a plain client.
 *
 *   /echo     answers at once with the request's body
 *   /later    the same, from another thread
 *   /hold     is kept until the test answers it (held_take)
 *   /big      1 MiB of 'x'
 *   /peer     the client's address
 */
#ifndef HX_TESTS_HTTP_HTTP_TEST_H
#define HX_TESTS_HTTP_HTTP_TEST_H

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "serve/problem.h"
#include "serve/server.h"
#include "wire/body.h"

#define BIG_BYTES (1u << 20)
#define HELD_MAX 256

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

/* Waits for a named condition, a minute at most. */
#define AWAIT(condition)                                                                                               \
	do {                                                                                                           \
		int64_t await_until_ = now_ms() + 60000;                                                               \
		while (!(condition)) {                                                                                 \
			if (now_ms() > await_until_)                                                                   \
				fail_msg("waited in vain for: %s", #condition);                                        \
			nap();                                                                                         \
		}                                                                                                      \
	} while (0)

static inline int64_t now_ms(void)
{
	return clock_mono(clock_system()).ns / 1000000;
}

static inline void nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* ---- the handler ---- */

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t arrived;
	struct http_exchange *later[HELD_MAX], *held[HELD_MAX];
	size_t later_n, held_n;
	bool stop;
	pthread_t thread;
	_Atomic int gone; /* calls of the callback */
} handler = {.mutex = PTHREAD_MUTEX_INITIALIZER, .arrived = PTHREAD_COND_INITIALIZER};

static inline void respond_text(struct http_exchange *exchange, int status, struct slice body)
{
	static const struct wire_field type = {{"Content-Type", 12}, {"text/plain", 10}};

	http_respond(exchange, &(struct http_answer){.status = status, .fields = {&type, 1}, .body = body});
}

static inline void note_gone(struct http_exchange *exchange, void *data)
{
	(void)exchange;
	(void)data;
	handler.gone++;
}

static inline void respond_big(struct http_exchange *exchange)
{
	char *big = arena_alloc(http_exchange_arena(exchange), BIG_BYTES);

	memset(big, 'x', BIG_BYTES);
	respond_text(exchange, 200, slice_of(big, BIG_BYTES));
}

static inline void respond_peer(struct http_exchange *exchange)
{
	char text[ADDRESS_TEXT_BYTES];

	address_format(&http_exchange_request(exchange)->peer, text);
	respond_text(exchange, 200, slice_str(text));
}

static inline void queue_up(struct http_exchange *list[], size_t *n, struct http_exchange *exchange)
{
	pthread_mutex_lock(&handler.mutex);
	ASSERT(*n < HELD_MAX);
	list[(*n)++] = exchange;
	pthread_cond_signal(&handler.arrived);
	pthread_mutex_unlock(&handler.mutex);
}

static inline void handle(void *data, struct http_exchange *exchange)
{
	const struct http_request *request = http_exchange_request(exchange);
	struct slice path = request->wire.path;

	(void)data;
	if (slice_is(path, "/echo")) {
		respond_text(exchange, 200, request->body);
	} else if (slice_is(path, "/later")) {
		queue_up(handler.later, &handler.later_n, exchange);
	} else if (slice_is(path, "/hold")) {
		http_on_gone(exchange, note_gone, NULL);
		queue_up(handler.held, &handler.held_n, exchange);
	} else if (slice_is(path, "/big")) {
		respond_big(exchange);
	} else if (slice_is(path, "/peer")) {
		respond_peer(exchange);
	} else {
		http_respond_code(exchange, HX_NOT_FOUND, NULL);
	}
}

static inline void *answer_later(void *data)
{
	(void)data;
	pthread_mutex_lock(&handler.mutex);
	for (;;) {
		struct http_exchange *exchange;

		while (handler.later_n == 0 && !handler.stop)
			pthread_cond_wait(&handler.arrived, &handler.mutex);
		if (handler.later_n == 0)
			break;
		exchange = handler.later[0];
		memmove(handler.later, handler.later + 1, --handler.later_n * sizeof *handler.later);
		pthread_mutex_unlock(&handler.mutex);
		respond_text(exchange, 200, http_exchange_request(exchange)->body);
		pthread_mutex_lock(&handler.mutex);
	}
	pthread_mutex_unlock(&handler.mutex);
	return NULL;
}

static inline size_t held_count(void)
{
	pthread_mutex_lock(&handler.mutex);
	size_t n = handler.held_n;
	pthread_mutex_unlock(&handler.mutex);
	return n;
}

/* Waits for a held exchange and takes the first one off the list. */
static inline struct http_exchange *held_take(void)
{
	struct http_exchange *exchange;

	AWAIT(held_count() > 0);
	pthread_mutex_lock(&handler.mutex);
	exchange = handler.held[0];
	memmove(handler.held, handler.held + 1, --handler.held_n * sizeof *handler.held);
	pthread_mutex_unlock(&handler.mutex);
	return exchange;
}

static inline void handler_start(void)
{
	handler.stop = false;
	handler.gone = 0;
	assert_int_equal(pthread_create(&handler.thread, NULL, answer_later, NULL), 0);
}

static inline void handler_stop(void)
{
	pthread_mutex_lock(&handler.mutex);
	handler.stop = true;
	pthread_cond_signal(&handler.arrived);
	pthread_mutex_unlock(&handler.mutex);
	pthread_join(handler.thread, NULL);
}

/* ---- the server ---- */

static struct http_server *server;

static inline struct server_options test_options(void)
{
	struct server_options options = server_options_default();

	options.listen = "127.0.0.1:0";
	options.handle = handle;
	options.linger_ms = 500;
	return options;
}

static inline void server_up(const struct server_options *options)
{
	struct hx_error err = {0};

	handler_start();
	if (http_server_new(options, &server, &err) != HX_OK)
		fail_msg("%s", err.detail);
}

static inline void server_down(void)
{
	http_server_stop(server, 2000);
	handler_stop();
	http_server_free(server);
	server = NULL;
}

static inline struct http_stats stats_now(void)
{
	struct http_stats stats;

	http_server_read_stats(server, &stats);
	return stats;
}

/* ---- the client ---- */

static inline int client_open(void)
{
	struct sockaddr_storage to;
	socklen_t n = address_to_sockaddr(http_server_address(server), &to);
	int fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct timeval limit = {.tv_sec = 60};

	ASSERT(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
	ASSERT(connect(fd, (struct sockaddr *)&to, n) == 0);
	return fd;
}

/* False if the server has closed. */
static inline bool client_send(int fd, struct slice bytes)
{
	while (bytes.n > 0) {
		ssize_t n = send(fd, bytes.p, bytes.n, MSG_NOSIGNAL);

		if (n <= 0)
			return false;
		bytes = slice_of(bytes.p + n, bytes.n - (size_t)n);
	}
	return true;
}

static inline void client_say(int fd, const char *text)
{
	ASSERT(client_send(fd, slice_str(text)));
}

struct reply {
	int status; /* 0: there was none, the server has closed */
	bool complete;
	bool keep_alive;
	bool reset;
	struct wire_head head;
	char text[4096]; /* the head */
	struct strbuf body;
};

static inline void reply_release(struct reply *reply)
{
	strbuf_release(&reply->body);
}

/* Reads the head byte by byte, so that nothing of the next answer is taken. */
static inline bool read_head(int fd, bool to_head, struct reply *reply)
{
	static const struct wire_limits limits = {.line_bytes = 1000, .head_bytes = 4000, .fields = 50};
	static _Thread_local struct wire_field fields[50];
	struct wire_scan scan = {0};
	struct wire_response response;
	struct wire_error err;
	size_t n = 0;

	for (enum wire_verdict verdict = WIRE_MORE; verdict == WIRE_MORE; n++) {
		ssize_t got = recv(fd, reply->text + n, 1, 0);

		reply->reset |= got < 0 && errno == ECONNRESET;
		if (got <= 0)
			return false;
		verdict = wire_scan_response(&scan, slice_of(reply->text, n + 1), &limits, &err);
		ASSERT(verdict != WIRE_BAD);
	}
	reply->text[n] = '\0';
	ASSERT(wire_response_parse(wire_scan_head(&scan, reply->text), to_head, fields, &response, &err) == WIRE_DONE);
	reply->head = response.head;
	reply->status = response.status;
	reply->keep_alive = response.head.keep_alive;
	return true;
}

/* One byte at a time for chunks, for the same reason; a length is read at once. */
static inline void read_body(int fd, struct reply *reply)
{
	static _Thread_local char buffer[65536];
	struct wire_body body;
	struct wire_error err;
	enum wire_verdict verdict = WIRE_MORE;
	struct slice data;
	size_t used;

	wire_body_init(&body, &reply->head, /* is_response= */ true);
	verdict = wire_body_read(&body, slice_of(NULL, 0), &used, &data, &err);
	while (verdict == WIRE_MORE) {
		size_t most = body.framing == WIRE_UNTIL_CLOSE                           ? sizeof buffer
			      : body.framing == WIRE_LENGTH && body.left < sizeof buffer ? (size_t)body.left
			      : body.framing == WIRE_LENGTH                              ? sizeof buffer
											 : 1;
		ssize_t got = recv(fd, buffer, most, 0);

		reply->reset |= got < 0 && errno == ECONNRESET;
		if (got == 0)
			verdict = wire_body_closed(&body, &err);
		if (got <= 0)
			break;
		verdict = wire_body_read(&body, slice_of(buffer, (size_t)got), &used, &data, &err);
		ASSERT(verdict != WIRE_BAD);
		strbuf_add_slice(&reply->body, data);
	}
	reply->complete = verdict == WIRE_DONE;
}

static inline struct reply read_reply(int fd, bool to_head)
{
	struct reply reply = {0};

	strbuf_init(&reply.body, 64u << 20);
	if (read_head(fd, to_head, &reply))
		read_body(fd, &reply);
	return reply;
}

/* Reads a reply and checks its status and (unless NULL) its body; returns whether the server goes on. */
static inline bool expect_reply(int fd, int status, const char *body)
{
	struct reply reply = read_reply(fd, /* to_head= */ false);
	bool keep_alive = reply.keep_alive;

	if (reply.status != status || !reply.complete || (body && !slice_is(strbuf_slice(&reply.body), body)))
		fail_msg("expected %d %s, got %d %s", status, body ? body : "", reply.status, reply.body.p);
	reply_release(&reply);
	return keep_alive;
}

/* The server has closed: there is nothing more to read. */
static inline void expect_closed(int fd)
{
	char byte;
	ssize_t n = recv(fd, &byte, 1, 0);

	if (n > 0 || (n < 0 && errno != ECONNRESET))
		fail_msg("the connection is open: %zd", n);
	close(fd);
}

/* ---- measuring ---- */

static inline size_t rss_bytes(void)
{
	unsigned long total, resident = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	ASSERT(f && fscanf(f, "%lu %lu", &total, &resident) == 2);
	fclose(f);
	return resident * (size_t)sysconf(_SC_PAGESIZE);
}

#endif
