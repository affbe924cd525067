/*
 * One thread that goes to Redis, for those who must not wait: what the entry locks and the gate's store share.
 *
 *   push ──▶ queue ──▶ a round, PIPELINE_MAX errands in one trip ──▶ answer(reply)
 *    │ false: full,     │ refused ─────────────────────────────────▶ answer(NULL)
 *    │ down, stopping   │ its script is gone ──▶ run, by itself ───▶ answer(reply or NULL)
 *    ▼                  │ lost, where repeats_lost ──▶ the same, on a new connection
 *   never ours          └ lost, elsewhere ─────────────────────────▶ answer(NULL, maybe_done)
 *
 * The busier, the longer the pipelines: one connection is enough. What is lost is repeated by itself, because a crowd
 * of large errands may have been too much for the time of one trip. A server that loses a repetition too is given up
 * on: the others would only wait for the same.
 *
 *           redis_connect() failed, or a round ended without a connection
 *     UP ─────────────────────────────────────────────────────────────────▶ DOWN
 *      ▲                                                                     │  nothing is queued, what was is answered,
 *      └──────────────────── redis_connect(), by its backoff ────────────────┘  and the thread alone tries to connect
 *
 * 1. What was pushed is answered exactly once, by the thread, without a lock held; then it is its owner's again.
 * 2. It waits for the round that is under way and for its own, each timeout_ms, plus one redis_connect() where the
 *    server went away while it was idle; and for their repetitions, where what is lost is repeated.
 *    But nothing goes on after the latest `by` of those in the round, and what is late by its own is not sent at all.
 * 3. At the end what is queued is carried out, unless it is not_at_end or the server is down.
 */
#pragma once

#include <stdbool.h>

#include "base/thread.h"

struct redis;
struct redisReply;
struct redis_options;

/* A part of the ticket that it is for. */
struct redis_errand {
	/* Set before the push. */
	size_t bytes;        /* of what makes its command large */
	bool not_at_end;     /* answered with nothing, instead of sent, once the worker is to stop */
	struct mono_time by; /* when it is given up: not sent after that, nor waited for; ns 0: never */
	/* The worker's own. */
	struct redis_errand *next;
};

/* What an errand says and what it hears. All are called in the worker's thread and must not block. */
struct redis_worker_kind {
	/* Adds its one command to the pipeline. */
	void (*send)(struct redis *redis, const struct redis_errand *errand);
	/* The same once more, as a pipeline of one, by redis_run_script(). */
	enum hx_code (*run)(struct redis *redis, const struct redis_errand *errand, struct redisReply **ret_reply);
	/* The reply is lent for the call; NULL: there is none, but maybe_done says that it may have been carried out. */
	void (*answer)(struct redis_errand *errand, const struct redisReply *reply, bool maybe_done);
	bool repeats_lost; /* all errands come to the same when they are carried out twice */
};

/* Embedded by its owner. */
struct redis_worker {
	const struct redis_worker_kind *kind;
	struct clock *clock;
	struct redis *redis; /* from the start on the thread's */
	struct thread thread;

	struct monitor monitor; /* guards all below */
	struct redis_errand *first, **last;
	size_t n;
	bool up; /* as far as is known: what is queued has a chance */
	bool stopping;
};

/*
 * Tries to connect: HX_CONFIG_ERROR for a Redis that answers and refuses us; one that cannot be reached is
 * HX_STORE_UNAVAILABLE if it is `needed`, else no error. The connection is the caller's until the start. Both leave nothing
 * behind when they fail; the worker stays where it is.
 */
enum hx_code redis_worker_init(struct redis_worker *worker, const struct redis_worker_kind *kind,
			       const struct redis_options *options, bool needed, struct hx_error *err) HX_MUST_CHECK;
enum hx_code redis_worker_start(struct redis_worker *worker, struct hx_error *err) HX_MUST_CHECK;
/* When nobody pushes any more. Returns when all is answered. */
void redis_worker_release(struct redis_worker *worker);

/* From any thread. False: there are queue_max errands in the queue already, or it is down or stopping. */
bool redis_worker_push(struct redis_worker *worker, struct redis_errand *errand, size_t queue_max) HX_MUST_CHECK;
