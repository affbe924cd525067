/*
 * The one HTTP client: the service that the gate guards, and those that actions call. Requests that go there, and what comes back.
 *
 *   upstream ─── an origin: scheme, host and port; how its name becomes addresses, and which of them may be connected to
 *      └── upstream_pool ─── one for each loop that calls it: connections, idle and in use; all in that loop's thread
 *             └── upstream_call ─── one request and its answer; embedded in its caller
 *   upstream_hub ─── what the pools of one loop share: the queues of their deadlines, the bound of idle connections, a buffer
 *
 *                 ┌────────────── head() ── data() … data() ──┐
 *   upstream_call_start ──▶ at work ──────────────────────────┴──▶ ended(), exactly once
 *                             ▲   │ data() took less than it was given: paused
 *                             └───┘ upstream_call_resume()
 *
 * What an end means is all that it is about:
 *
 *   UPSTREAM_ANSWERED  the whole answer has been handed out
 *   UPSTREAM_NOT_SENT  not a byte of the request has left: no address, no connection, no TLS on it, or no time for that
 *   UPSTREAM_UNKNOWN   everything else: a timeout, a reset, an answer that is cut short or is not HTTP. The upstream may
 *                      have done it
 *
 * Invariants:
 *
 *   - once a byte of a call has left (`sent`), no byte of it goes to another connection, unless the call is `repeatable`; and from
 *     then on it never ends NOT_SENT
 *   - a connection that was idle is used again only when it has been so for less than the hub's time and is still there and
 *     silent. If it turns out to be closed before a byte has left, the call gets a new one; if it dies later, that is UNKNOWN
 *   - the address that was judged is the one that is connected to: nothing is resolved in between
 *   - there are no redirects, no proxies, no credentials or cookies of its own, no 100-continue, no decompression: what is sent is what
 *     the caller wrote, and what is handed out is what came
 *
 * A name is resolved once where there is no resolver (the gate: a service that moves needs a restart, or an address that stays). With one
 * it is resolved aside, and again when UPSTREAM_NAME_MS are over; until that is answered, and for UPSTREAM_STALE_MS at most, what it meant
 * before is used. If no address can be connected to, or none in a call's time, what it meant is forgotten.
 *
 * Of several addresses the one that worked last is tried first. Each has its share of the time that is left, so that all are tried.
 */
#pragma once

#include <stdatomic.h>

#include "base/arena.h"
#include "wire/address.h"
#include "wire/loop.h"
#include "wire/wire.h"

#define UPSTREAM_IDLE_MS 1000    /* well below the 5 s after which many servers close */
#define UPSTREAM_IDLE_MAX 256    /* connections of one loop that are kept */
#define UPSTREAM_INTERIM_MAX 16  /* 1xx answers in front of the real one */
#define UPSTREAM_NAME_MS 60000   /* what a name means is believed for so long */
#define UPSTREAM_STALE_MS 600000 /* and used for so long after that, while it is asked for anew */
#define UPSTREAM_TRY_MS                                                                                                \
	4000 /* at most, for an address to accept while there are others to try: a first packet is repeated after 1 and 3 s */

struct resolver;
struct tls_client;
struct tls_link;
struct upstream;
struct upstream_hub;
struct upstream_pool;

/* http(s)://host[:port] and nothing after it but "/". HX_CONFIG_ERROR says what is wrong with it, or that the name cannot
 * be resolved. The clock must outlive it. */
enum hx_code upstream_new(const char *url, struct clock *clock, struct upstream **ret_upstream,
			  struct hx_error *err) HX_MUST_CHECK;

/* For a program that calls many services. All of it is borrowed, and must outlive the upstream. */
struct upstream_ways {
	struct clock *clock;
	struct tls_client *tls; /* for https; NULL where the url is http */
	struct resolver *resolver;
	/* Why this address must not be connected to, in constant words. NULL: it may be. */
	const char *(*refusal)(const void *context, const struct sockaddr *to);
	const void *refusal_context;
};
/* The same url, and nothing is asked of anybody yet. HX_CONFIG_ERROR, HX_NO_MEMORY. */
enum hx_code upstream_new_by(const char *url, const struct upstream_ways *ways, struct upstream **ret_upstream,
			     struct hx_error *err) HX_MUST_CHECK;
/* When all loops have ended, or in the thread of its only one; no call is at work. Closes what is idle. Takes NULL. */
void upstream_free(struct upstream *upstream);
/* host[:port] as the url has it, for Host where the client had none. */
struct slice upstream_authority(const struct upstream *upstream);

struct upstream_stats {
	uint64_t connections_open, connections_total, reused, repeated;
};
/* In any thread. */
void upstream_read_stats(const struct upstream *upstream, struct upstream_stats *ret_stats);

/* What connections of this loop share. Freed after all upstreams that joined it. NULL without memory. */
struct upstream_hub *upstream_hub_new(struct loop *loop, int64_t idle_ms, size_t idle_max);
/* Takes NULL. */
void upstream_hub_free(struct upstream_hub *hub);
/* A pool for this loop, in whose thread this must be; freed with the upstream. Once per loop. NULL without memory. */
struct upstream_pool *upstream_join_hub(struct upstream *upstream, struct upstream_hub *hub);
/* The same with a hub of its own. */
struct upstream_pool *upstream_join(struct upstream *upstream, struct loop *loop);
/* It has no call, no connection and no name that is being resolved: the upstream may be freed. */
bool upstream_pool_is_unused(const struct upstream_pool *pool);

/* What stood in the way of a call that was not sent. */
enum upstream_obstacle { UPSTREAM_OTHER, UPSTREAM_NO_ADDRESS, UPSTREAM_NO_CONNECTION };
enum upstream_end { UPSTREAM_ANSWERED, UPSTREAM_NOT_SENT, UPSTREAM_UNKNOWN };

struct upstream_call {
	/* Set by the caller, borrowed until ended(). The fields are sent as they are, framing included. */
	struct slice method, target;
	struct wire_fields fields;
	struct slice body;
	struct arena *arena;          /* where the head of the answer is kept */
	int64_t timeout_ms;           /* from the start to the end */
	struct mono_time begin_by;    /* nothing is sent that has not begun by then: NOT_SENT. ns 0: whenever */
	const atomic_bool *cancelled; /* the same, once this is true, by whichever thread; NULL: never */
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
	bool sent;          /* a byte of it has left, or may have */
	/* If it was not sent: */
	enum upstream_obstacle obstacle;
	int obstacle_error; /* errno, if it was the last address that could not be connected to, or the error of getaddrinfo() */
	unsigned tried;         /* connections that were begun */
	const char *refusal;    /* why the last address was not connected to that was refused; NULL: none was */
	struct address refused; /* that address */

	/* The pool's own. */
	struct upstream_pool *pool;
	struct upstream_connection *connection;
	struct letter letter; /* start, resume */
	struct deadline deadline;
};

/* None of the callbacks comes before this returns. */
void upstream_call_start(struct upstream_pool *pool, struct upstream_call *call);
/* The same in the loop's own thread, at once: the callbacks may come before this returns. */
void upstream_call_begin(struct upstream_pool *pool, struct upstream_call *call);
/* In the loop's thread, and not from a callback of this call: it ends now, as at the end of its time. */
void upstream_call_cancel(struct upstream_call *call);
/* After a data() that took less than it was given. The callbacks come later, as well. */
void upstream_call_resume(struct upstream_call *call);
