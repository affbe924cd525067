/*
 * The inside of the proxy: one request on its way (a job), and what the files of the proxy share. Everybody else uses
 * proxy.h.
 *
 *   proxy.c         life, the loops, which policy a request has, counters
 *   proxy_fields.c  header fields on their way through, both ways
 *   proxy_hops.c    Max-Forwards
 *   proxy_upgrade.c requests that ask for another protocol, and tunnels
 *   proxy_claim.c   key, scope and fingerprint of a guarded request
 *   proxy_job.c     the order of things: store, upstream, client
 *   proxy_answer.c  what the client gets
 */
#pragma once

#include <pthread.h>

#include "gate/guard.h"
#include "gate/replay.h"
#include "proxy/proxy.h"
#include "wire/tunnel.h"
#include "wire/upstream.h"

#define PROXY_STORING_MAX 256  /* answers that went out unstored and are kept to be stored after all */
#define PROXY_PASS_BYTES 65536 /* an answer that is not guarded is streamed when it is longer */
#define PROXY_SPARE_MAX 256    /* jobs that a loop keeps for the next requests */

/* The configuration in force; whoever goes by it has a reference, and so has the proxy until there is another. */
struct proxy_rules {
	_Atomic int references;
	const struct gate_config *config;
	void (*release)(void *owner); /* NULL: it outlives us */
	void *owner;
};

struct proxy {
	struct proxy_options options;
	struct upstream *upstream;
	pthread_mutex_t mutex; /* of who joins `loops`, and of `rules` */
	struct proxy_rules *rules;
	_Atomic(struct proxy_loop *) loops[HTTP_LOOPS_MAX];
	struct {
		_Atomic uint64_t outcomes[HX_GATE_OUTCOMES], unknown, forwarded, refused, damaged, tunnels;
	} stats;
	_Atomic int64_t tunnels; /* open, or asked for */
	_Atomic int64_t storing;
	_Atomic int64_t storing_until; /* of a proxy that is to end, by the monotonic clock in ns */
};

/* What belongs to one loop's thread. */
struct proxy_loop {
	struct proxy *proxy;
	struct loop *loop;
	struct upstream_pool *pool;
	struct deadline_queue retries; /* jobs that wait to store their answer once more */
	struct proxy_job *jobs;        /* all that are on their way */
	struct proxy_job *spare;
	size_t spare_n;
	struct tunnels tunnels;
	struct arena scratch; /* for fingerprints; empty between two of them */
};

/* What has become of the answer, seen from the client; see proxy_job.c. */
enum answer_state { ANSWER_NONE, ANSWER_KEPT, ANSWER_WAITS, ANSWER_STREAMS, ANSWER_GIVEN };

struct proxy_job {
	struct letter letter; /* the store has answered */
	struct proxy_loop *home;
	struct proxy_job *previous, *next;
	struct http_exchange *exchange; /* until ANSWER_GIVEN */
	const struct http_request *request;
	struct proxy_rules *rules; /* … of which the policy is a part */
	const struct gate_policy *policy;
	bool guarded;
	bool reserved; /* it may become a tunnel, and is counted among them */

	struct guard guard;
	struct gate_ticket ticket;
	struct strbuf stored; /* the stored form: to be stored, or to be replayed */

	struct upstream_call call;
	bool over; /* the call has ended, in: */
	enum upstream_end end;
	bool paused; /* the call waits for upstream_call_resume() */

	enum answer_state answer;
	struct strbuf kept; /* the upstream's body, or of a streamed one its beginning */
	size_t kept_sent;

	struct mono_time lease_until;
	struct deadline retry;
	int64_t retry_ms; /* above 0: it is being stored after all */
};

/* ---- proxy.c ---- */

/* Takes the reference to the rules over, if there is memory for the job. */
struct proxy_job *job_new(struct proxy_loop *home, struct http_exchange *exchange, struct proxy_rules *rules,
			  const struct gate_policy *policy);
/* The exchange is answered, no call is at work and no ticket asked. */
void job_free(struct proxy_job *job);
void proxy_count(_Atomic uint64_t *counter);

/* ---- proxy_job.c ---- */

/* In the loop's thread, for each request that is well-formed and within its limits. */
void job_start(struct proxy_job *job);
/* The queue of proxy_loop. */
void job_retry(struct deadline *deadline);

/* ---- proxy_fields.c ---- */

/* The fields of a request as the upstream gets them, in the exchange's arena. False: no memory. */
bool proxy_request_fields(const struct proxy_job *job, struct arena *arena, struct wire_fields *ret_fields);
/* /path?query: what the upstream is asked for. {NULL, 0}: no memory. */
struct slice proxy_request_target(const struct wire_request *request, struct arena *arena);
/* The fields of the upstream's answer as the client gets them, with room for `more` after them. NULL: no memory. */
struct wire_field *proxy_answer_fields(const struct wire_response *response, struct arena *arena, size_t more,
				       size_t *ret_n);
/* The fields of the upstream's answer that are stored with it. NULL: no memory. */
const struct gate_field *proxy_stored_fields(const struct wire_response *response, const struct gate_replay_rule *rule,
					     struct arena *arena, size_t *ret_n);

/* ---- proxy_hops.c ---- */

/* NONE: it ends here. UNREADABLE: nobody can say where it ends. */
enum proxy_hops { HOPS_UNLIMITED, HOPS_SOME, HOPS_NONE, HOPS_UNREADABLE };
enum proxy_hops proxy_hops_left(const struct wire_request *request, uint32_t *ret_left);
/* HOPS_NONE: in the place of the service. */
void proxy_answer_last_hop(struct http_exchange *exchange);

/* ---- proxy_upgrade.c ---- */

/* Does it ask for a protocol that can be passed on? */
bool proxy_wants_upgrade(const struct wire_request *request, struct slice *ret_protocols);
/* False: there are max_tunnels already. */
bool proxy_reserve_tunnel(struct proxy_job *job);
/* The service has switched. False: to something else than was asked for, and the socket is closed; else the client has its answer. */
bool proxy_open_tunnel(struct proxy_job *job, int fd, struct tls_link *tls, struct slice rest);

/* ---- proxy_claim.c ---- */

/* What the head alone decides about a request's key: that there is one, if there has to be, and that it is well-formed. */
enum hx_code proxy_check_key(const struct gate_policy *policy, const struct wire_request *request, struct arena *arena,
			     struct hx_error *err) HX_MUST_CHECK;

/*
 * Sets up the guard of a request with a key. HX_KEY_REQUIRED: it has none, which the policy may allow. Everything else
 * but HX_OK is what the client is told.
 */
enum hx_code proxy_claim(struct proxy_job *job, struct hx_error *err) HX_MUST_CHECK;

/* ---- proxy_answer.c: the exchange is the server's afterwards ---- */

/* The upstream's answer as a whole, out of `kept`. */
void answer_pass(struct proxy_job *job);
/* The stored answer. */
void answer_replay(struct proxy_job *job, const struct gate_response *response);
/* A problem, with the marker of the guard's outcome where that has one. */
void answer_problem(struct proxy_job *job, enum hx_code code, const char *detail);
/* The head of the upstream's answer; its body follows by http_stream_write(). */
void answer_stream(struct proxy_job *job, void (*room)(struct http_exchange *exchange, void *data));
