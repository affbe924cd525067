/*
 * The HTTP/1.1 server: it reads complete, well-formed requests within limits, hands each to one function, and writes
 * the answer, which may come later and from any thread.
 *
 *   client ──▶ connection ──▶ exchange (head, arena) ──▶ begin()  in the loop's thread, where there is one: it answers, or
 *                                                          │        lets the body be read, by http_read_body()
 *          ──▶ connection ──▶ exchange (request) ────────▶ handle()  in the loop's thread
 *          ◀── connection ◀── letter to the loop ◀───────── http_respond()  from any thread, exactly once
 *
 * There are 1 to HTTP_LOOPS_MAX event loops, each a thread; a connection stays in its loop, and its requests are
 * handled one at a time, in order. While one is handled nothing more is read: back-pressure is TCP's. A handler must
 * not block, since it stands in the way of its loop.
 *
 * Whatever a client does is bounded: its head, its body, all bodies together, the time for a whole request, the time
 * to take 64 KiB of an answer, the time to do nothing, and how many clients there are. Small bodies have room of their own,
 * and where there is none left the one goes whose body has been on its way for longest (HTTP_BODY_PATIENCE_MS at least): so those
 * who send half of a body and then nothing hold up nobody. What is not HTTP is
 * answered with problem+json, and the connection closed (see wire/wire.h for how strict that is).
 *
 *	struct server_options options = server_options_default();
 *
 *	options.listen = "127.0.0.1:0";
 *	options.handle = on_request;
 *	code = http_server_new(&options, &server, &err);
 */
#pragma once

#include "base/arena.h"
#include "base/clock.h"
#include "base/histogram.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "wire/address.h"
#include "wire/wire.h"

#define HTTP_LOOPS_MAX 16
#define HTTP_STATUS_CLASSES 4
#define HTTP_BODY_PATIENCE_MS 1000

struct http_server;
struct http_answer;
struct http_exchange;
struct loop;

struct server_options {
	const char *listen; /* see wire/address.h; NULL: nowhere, and all requests come from within (inner.h) */
	/* In a loop's thread, for each complete request. The exchange is the handler's until it has answered. */
	void (*handle)(void *data, struct http_exchange *exchange);
	/*
	 * NULL, or what comes before it, when no more than the head has to be there: in a loop's thread. The exchange is its own
	 * until it has answered (then the connection closes, if there is a body that nobody has read) or goes on by
	 * http_read_body(), now or later.
	 */
	void (*begin)(void *data, struct http_exchange *exchange);
	void *data;
	unsigned loops;
	size_t connections_max;  /* one more takes the place of an idle one, or waits in the backlog */
	struct wire_limits head; /* 414 and 431 */
	size_t body_bytes_max;   /* 413 */
	const char *body_limit;  /* the name of that in the configuration, for who is told so */
	size_t bodies_bytes_max; /* of all requests, and large answers, that are in memory: new requests get 503 */
	size_t small_body_bytes; /* a body of no more than that counts among the small ones instead */
	size_t small_bodies_bytes_max;
	size_t arena_bytes_max;  /* of one request: its head, and what the handler takes */
	size_t stream_bytes_max; /* of a streamed answer, waiting for the client; twice that at most */
	int64_t idle_ms;         /* between requests: closed */
	int64_t read_ms;         /* a whole request, from its first byte to its last: 408 */
	int64_t write_ms;        /* for each 64 KiB of an answer: closed */
	int64_t linger_ms;       /* after the last answer, for the client to close first, so that it can read it */
	struct clock *clock;     /* must outlive the last exchange */
	struct log *log;         /* may be NULL */
};

/* All limits set; listen, handle and data are the caller's. */
struct server_options server_options_default(void);

/* Binds, listens and starts the threads: when it returns, clients can connect. */
enum hx_code http_server_new(const struct server_options *options, struct http_server **ret_server,
			     struct hx_error *err) HX_MUST_CHECK;
/*
 * Could a server listen there now? For who is about to make something that lasts; another may still be first. HX_BUSY: the
 * address is taken, HX_CONFIG_ERROR: it is none of ours.
 */
enum hx_code http_try_listen(const char *listen, struct hx_error *err) HX_MUST_CHECK;
/* Where it listens, with the port that the system chose if 0 was asked for. */
const struct address *http_server_address(const struct http_server *server);
/*
 * Graceful, and returns when the threads have ended: no new connections, idle ones closed, requests that have begun
 * are finished with Connection: close. What is left after drain_ms is closed. Takes NULL; the second time does nothing.
 */
void http_server_stop(struct http_server *server, int64_t drain_ms);
/*
 * Stops it at once if need be. Takes NULL. Exchanges that are still with their handlers stay valid, and answering
 * them stays harmless.
 */
void http_server_free(struct http_server *server);

/* An answer of this type without any other field, but that a 503 says when to ask again, as every one does. */
void http_respond_text(struct http_exchange *exchange, int status, const char *type, struct slice text);
#define HTTP_PLAIN_TEXT "text/plain; charset=utf-8"
#define HTTP_TEXT_RETRY_AFTER "1" /* PROBLEM_RETRY_AFTER_S */

struct http_stats {
	uint64_t connections_open, connections_total, connections_evicted;
	uint64_t requests;    /* handed to the handler, or answered by begin() */
	uint64_t refused;     /* answered by the server itself: malformed, too large, too slow */
	uint64_t timed_out;   /* closed or refused for being too slow, idle ones included */
	uint64_t gone;        /* clients that left while their request was handled */
	uint64_t crowded_out; /* half-sent bodies that made room for others */
	uint64_t bodies_bytes;
	uint64_t responses[HTTP_STATUS_CLASSES]; /* by 2xx, 3xx, 4xx and 5xx; the server's own are in it */
	struct histogram answered;               /* from the hand-over to the answer, or its head if it is streamed */
};

void http_server_read_stats(struct http_server *server, struct http_stats *ret_stats);

/* ---- in the handler ---- */

/* All slices live as long as the exchange. */
struct http_request {
	struct wire_request wire; /* method, path, query, fields; none of it decoded */
	struct slice body;        /* complete */
	struct address peer;
};

/* Of the server that it came in through. */
void http_exchange_read_stats(const struct http_exchange *exchange, struct http_stats *ret_stats);
const struct http_request *http_exchange_request(const struct http_exchange *exchange);
/* Memory for this request, dropped after the answer is sent. For whoever has the exchange at the moment. */
struct arena *http_exchange_arena(struct http_exchange *exchange);
/*
 * The loop that serves this connection, for watching other descriptors (upstreams) in its thread, which this must be.
 * Whoever does that raises loop->guests meanwhile, so that a stop waits for it up to drain_ms, client or no client.
 */
struct loop *http_exchange_loop(struct http_exchange *exchange);
/* How long it takes says nothing of the server: it is not counted in http_stats.answered. Only inside of handle(). */
void http_exchange_do_not_time(struct http_exchange *exchange);

/*
 * From begin(), or later by whoever it has handed the exchange to, in the loop's thread: reads the body, and calls handle() when it is
 * complete; the exchange is the server's until then. If the client goes meanwhile nobody is called: what is kept for handle()
 * stands in the exchange's arena. A body that is longer than bytes_max, or announces to become so, is answered with 413;
 * one that is not there read_ms after the first byte of its request with 408. 0: the server's own limit.
 */
void http_read_body(struct http_exchange *exchange, size_t bytes_max, int64_t read_ms);
/* What begin() leaves for handle(). */
void http_exchange_set_context(struct http_exchange *exchange, void *context);
void *http_exchange_context(const struct http_exchange *exchange);

/*
 * Be told when the client has gone before the answer: fn is called once at most, in the loop's thread. Only inside of
 * handle(), before the exchange is handed on. It can overlap with an answer that is just being given elsewhere,
 * so `data` must live as long as the exchange (its arena does). A client that merely shut down its sending side
 * looks the same until it is answered, and gets its answer: gone clients must be answered, too.
 */
void http_on_gone(struct http_exchange *exchange, void (*fn)(struct http_exchange *exchange, void *data), void *data);
/* From any thread: the same, asked. */
bool http_exchange_gone(const struct http_exchange *exchange);
/* In the loop's thread: the connection is no more, so that certainly nobody reads what is answered. */
bool http_exchange_closed(const struct http_exchange *exchange);
/*
 * From any thread, by whoever has the exchange: hands it back to its loop, which calls fn in its own thread. False: the
 * loop has ended, fn is not called, and the exchange is still the caller's to answer.
 */
bool http_resume(struct http_exchange *exchange, void (*fn)(struct http_exchange *exchange, void *data), void *data)
	__attribute__((warn_unused_result));

/*
 * In the loop's thread, before the answer: a head with a status of 1xx that is not 101. Not sent to who cannot know it (HTTP/1.0), and
 * left out where the client has not taken those before it.
 */
void http_send_interim(struct http_exchange *exchange, const struct http_answer *head);
/*
 * In the loop's thread, instead of an answer: the socket itself, which does not block, for another protocol. -1: the client has gone.
 * *ret_unsent is what is still to be sent to the client, *ret_unread what it has sent after its request; both, and the socket, are the
 * caller's. The exchange is no longer.
 */
int http_take_socket(struct http_exchange *exchange, struct strbuf *ret_unsent, struct strbuf *ret_unread);

/* ---- the answer: from any thread, exactly once, whether the client is still there or not ---- */

struct http_answer {
	int status; /* 200 to 599 */
	/*
	 * Copied. Date, Content-Length, Transfer-Encoding and Connection are the server's (a Date that is given here
	 * is kept); one of the others, or a field that would break the head, turns the answer into a 500.
	 */
	struct wire_fields fields;
	struct slice body; /* copied; not sent to HEAD, with 204 or 304, but counted in Content-Length for HEAD */
	enum hx_code code; /* what a problem says (problem.h sets it), else HX_OK; for whoever captures the answer */
};

/* The exchange is no longer the caller's, also if there is no memory for the answer (the connection is closed then). */
void http_respond(struct http_exchange *exchange, const struct http_answer *answer);
/*
 * Catches the answer on its way out: the next http_respond() calls fn instead, in its own thread, and the exchange then is
 * fn's, to be answered for good. The answer's texts live only during the call. Set by whoever has the exchange, before
 * it is handed on; NULL: it is not caught after all. Answers in pieces never are.
 */
void http_capture(struct http_exchange *exchange,
		  void (*fn)(struct http_exchange *exchange, const struct http_answer *answer, void *data), void *data);

/*
 * An answer in pieces, for bodies that are not held in memory. The head goes out at once. `length` is that of the body,
 * or -1: then it is chunked, or for HTTP/1.0 ends with the connection. `room` is called in the loop's thread when a
 * write that was cut short can go on, also because the client has gone; `data` must live as long as the exchange.
 * The answer's own body is ignored.
 */
void http_stream_start(struct http_exchange *exchange, const struct http_answer *head, int64_t length,
		       void (*room)(struct http_exchange *exchange, void *data), void *data);
/* Takes as many bytes as there is room for, and says how many. With the client gone it takes all and drops them. */
size_t http_stream_write(struct http_exchange *exchange, struct slice bytes) HX_MUST_CHECK;
/*
 * The body is complete; the exchange is no longer the caller's. Fewer bytes than `length` (but for HEAD) are an abort;
 * more than that are not sent.
 */
void http_stream_end(struct http_exchange *exchange);
/* It will never be: the connection is reset, so that the client cannot take the part for the whole. */
void http_stream_abort(struct http_exchange *exchange);
