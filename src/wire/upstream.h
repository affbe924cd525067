/*
 * The service that the gate guards: requests that go there, and what comes back.
 *
 *   upstream ─── one for the program: the url, its addresses, the kind
 *      └── upstream_pool ─── one for each loop: connections, idle and in use; all in that loop's thread
 *             └── upstream_call ─── one request and its answer; embedded in its caller
 *
 *                 ┌────────────── head() ── data() … data() ──┐
 *   upstream_call_start ──▶ at work ──────────────────────────┴──▶ ended(), exactly once
 *                             ▲   │ data() took less than it was given: paused
 *                             └───┘ upstream_call_resume()
 *
 * What an end means is all that the gate is about:
 *
 *   UPSTREAM_ANSWERED  the whole answer has been handed out
 *   UPSTREAM_NOT_SENT  no connection could be made, or no TLS on it: certainly no request has reached the upstream
 *   UPSTREAM_UNKNOWN   everything else: a timeout, a reset, an answer that is cut short or is not HTTP. The upstream may
 *                      have done it
 *
 * Nothing is ever sent twice, unless the call is `repeatable`. A connection that was idle is used again only when it has
 * been so for less than UPSTREAM_IDLE_MS and is still there and silent; if it then dies, that is UNKNOWN like any other.
 *
 * The name in the url is resolved once, at the start; every connection tries all of its addresses in their order. A
 * service that moves needs a restart of the gate (or an address that stays).
 */
#ifndef HX_WIRE_UPSTREAM_H
#define HX_WIRE_UPSTREAM_H

#include "base/arena.h"
#include "wire/loop.h"
#include "wire/wire.h"

#define UPSTREAM_ADDRESSES_MAX 8
#define UPSTREAM_IDLE_MS 1000   /* well below the 5 s after which many servers close */
#define UPSTREAM_IDLE_MAX 256   /* connections of one loop that are kept */
#define UPSTREAM_INTERIM_MAX 16 /* 1xx answers in front of the real one */

struct tls_link;
struct upstream;
struct upstream_pool;

/* http(s)://host[:port] and nothing after it but "/". HX_CONFIG_ERROR says what is wrong with it, or that the name cannot
 * be resolved. The clock must outlive it. */
enum hx_code upstream_new(const char *url, struct clock *clock, struct upstream **ret_upstream,
			  struct hx_error *err) HX_MUST_CHECK;
/* When all loops have ended and no call is at work; closes what is idle. Takes NULL. */
void upstream_free(struct upstream *upstream);
/* host[:port] as the url has it, for Host where the client had none. */
struct slice upstream_authority(const struct upstream *upstream);

struct upstream_stats {
	uint64_t connections_open, connections_total, reused, repeated;
};
/* In any thread. */
void upstream_read_stats(const struct upstream *upstream, struct upstream_stats *ret_stats);

/* A pool for this loop, in whose thread this must be; freed with the upstream. Once per loop. NULL without memory. */
struct upstream_pool *upstream_join(struct upstream *upstream, struct loop *loop);

enum upstream_end { UPSTREAM_ANSWERED, UPSTREAM_NOT_SENT, UPSTREAM_UNKNOWN };

struct upstream_call {
	/* Set by the caller, borrowed until ended(). The fields are sent as they are, framing included. */
	struct slice method, target;
	struct wire_fields fields;
	struct slice body;
	struct arena *arena;       /* where the head of the answer is kept */
	int64_t timeout_ms;        /* from the start to the end */
	struct mono_time begin_by; /* nothing is sent that has not begun by then: NOT_SENT. ns 0: whenever */
	bool repeatable; /* may be sent once more if a connection that was idle dies before the answer begins */
	bool fresh;      /* on a connection of its own: an idle one may be closed just as it is used */
	bool patient;    /* may be set at head() and later: timeout_ms is then for each piece of the answer */
	bool upgrade; /* the fields ask for another protocol, which the upstream may switch to (101); else that is UNKNOWN */
	bool unwanted; /* may be set in data(): nobody waits for the rest, and it ends UNKNOWN */
	void (*head)(struct upstream_call *call); /* `response` is there; not called for 1xx */
	/* `response` is one of 1xx, and lives until this returns. May be NULL. */
	void (*interim)(struct upstream_call *call);
	/* With `upgrade`, instead of ended(): the protocol was switched. The socket, its TLS (NULL: none) are the caller's; `rest` is
	 * what came after the head, until this returns. */
	void (*switched)(struct upstream_call *call, int fd, struct tls_link *tls, struct slice rest);
	/* Says how many bytes it took. With fewer than all, nothing more comes (and no time runs) until the resume. */
	size_t (*data)(struct upstream_call *call, struct slice bytes);
	/* All bytes that have come so far were handed out, and there is more to come. May be NULL. */
	void (*drained)(struct upstream_call *call);
	/* The call is the caller's again. */
	void (*ended)(struct upstream_call *call, enum upstream_end end);

	/* Set by the upstream. */
	struct wire_response response;
	enum hx_code code;  /* when not ANSWERED: UPSTREAM_UNREACHABLE, UPSTREAM_TIMEOUT, BAD_GATEWAY */
	const char *reason; /* in constant words */

	/* The pool's own. */
	struct upstream_pool *pool;
	struct upstream_connection *connection;
	struct letter letter; /* start, resume */
	struct deadline deadline;
};

/* None of the callbacks comes before this returns. */
void upstream_call_start(struct upstream_pool *pool, struct upstream_call *call);
/* After a data() that took less than it was given. The callbacks come later, as well. */
void upstream_call_resume(struct upstream_call *call);

#endif
