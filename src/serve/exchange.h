/*
 * An exchange: one request and its answer, and where the loop's thread and the handler's meet.
 *
 *   EMPTY ──its head, or all of it, is handed over──▶ OPEN ──http_respond──▶ ANSWERED
 *    │ ▲ └──────────────http_read_body────────────────┘ └──http_stream_start──▶ STREAMING ──end, abort──▶ ENDED
 *    │
 *    └──refused by the server itself──▶ ANSWERED
 *
 * Between OPEN and ANSWERED the exchange may go back to its loop for a while (http_resume), and its answer may be caught
 * on the way out (http_capture): it is still OPEN then.
 *
 * References: the connection has one, the handler one from the hand-over to its answer, a posted letter one. The
 * memory goes with the last, in whatever thread that is.
 *
 * Who may touch what: until the hand-over the loop alone. Then `request` is constant; `arena` and the answer are the
 * handler's until it posts the letter, and the loop's afterwards; `connection` is the loop's always; a stream has a
 * mutex.
 */
#pragma once

#include "base/strbuf.h"
#include "serve/inner.h"
#include "serve/server.h"
#include "wire/mailbox.h"

struct connection;
struct server_loop;
struct stream;

enum exchange_phase { EXCHANGE_EMPTY, EXCHANGE_OPEN, EXCHANGE_ANSWERED, EXCHANGE_STREAMING, EXCHANGE_ENDED };

struct http_exchange {
	_Atomic int references;
	_Atomic int phase;
	_Atomic bool gone;  /* the client has closed its side, or all of it */
	_Atomic bool hasty; /* the server wants the connection closed after the answer */
	struct letter letter;
	struct server_loop *home;
	struct connection *connection; /* NULL when it has closed, or has done with us */
	struct http_exchange *next_spare;

	struct arena arena;
	struct http_request request;
	struct mono_time handed_over;
	bool timed; /* how long the answer takes from then on is counted */
	struct strbuf body;
	size_t body_bytes_max;
	size_t counted_bytes; /* in the server's bodies_bytes or small_bytes: of the request, and of a large answer */
	bool counted_large;   /* in which of the two */
	bool asked;           /* begin() was, or there is none */
	bool handled;         /* handle() was called */
	bool body_unread;     /* there is one, and it is not complete */
	void *context;

	struct http_inner
		*inner; /* it came from this process, and is answered there (inner.h); NULL: through a connection */
	void (*on_gone)(struct http_exchange *exchange, void *data);
	void *on_gone_data;
	void (*captured)(struct http_exchange *exchange, const struct http_answer *answer, void *data);
	void *captured_data;
	void (*resumed)(struct http_exchange *exchange, void *data);
	void *resumed_data;

	struct strbuf out; /* the answer as it is sent; of a stream what is being sent */
	size_t sent;
	bool close_after; /* decided when the head was written */
	bool failed;      /* there is no answer to send: close */
	struct stream *stream;
	bool streaming; /* the loop has seen the stream; `stream` may be read there from then on */
};

/* For the loop's thread, with one reference, which is the connection's. NULL without memory. */
struct http_exchange *exchange_new(struct server_loop *home);
/* In the loop's thread; keeps the memory for the next request if it was the last reference. */
void exchange_drop(struct http_exchange *exchange);
/* In any thread. */
void exchange_drop_elsewhere(struct http_exchange *exchange);
/* Tells the loop to look at it. In any thread, for whoever has a reference. */
void exchange_post(struct http_exchange *exchange);

/*
 * Adds a piece of the request's body, after which `announced` bytes are sure to follow. HX_TOO_LARGE, HX_BUSY (all bodies together
 * are too large: nothing was added, and it may be tried again) or HX_NO_MEMORY.
 */
enum hx_code exchange_add_body(struct http_exchange *exchange, struct slice piece, uint64_t announced) HX_MUST_CHECK;
/* It is not going to be complete: its memory is for others from now on. */
void exchange_forget_body(struct http_exchange *exchange);
/* Gives it to begin(), if that is yet to be asked, else to the handler. */
void exchange_hand_over(struct http_exchange *exchange);
/* Why it is HX_TOO_LARGE, in words that live as long as the exchange. */
const char *exchange_too_large(struct http_exchange *exchange);
/* The server's own answer, before any hand-over; the connection closes after it. */
void exchange_refuse(struct http_exchange *exchange, enum hx_code code, const char *reason);
/* The client has closed its side: tells a handler that has not answered, once. */
void exchange_tell_gone(struct http_exchange *exchange);
/* The connection has closed: tells the handler and whoever streams, and drops the connection's reference. */
void exchange_detach(struct http_exchange *exchange);

/* Writes an answer's head into `out` and decides close_after. Length -1: unknown. False: `out` is unusable. */
bool exchange_write_head(struct http_exchange *exchange, const struct http_answer *answer, int64_t length);
bool exchange_is_head(const struct http_exchange *exchange);

/* ---- stream.c's part for the loop ---- */

/* WAIT: nothing to send yet. MORE: `out` has been filled again. END: all is sent. ABORT: close without an end. */
enum stream_state { STREAM_WAIT, STREAM_MORE, STREAM_END, STREAM_ABORT };
/* All of `out` is sent: takes what was written meanwhile, and lets a waiting writer go on. */
enum stream_state stream_refill(struct http_exchange *exchange);
/* True once the writer has given up; false also where nothing is streamed. */
bool stream_aborted(struct http_exchange *exchange);
/* The connection has closed: from now on writes are swallowed; lets a waiting writer go on. */
void stream_detach(struct http_exchange *exchange);
void stream_free(struct stream *stream);
