/* A request at the gate as one task of the simulator: the guard and its asks, a fake service; the sweep, and a person who decides. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/hash.h"
#include "gate/guard.h"
#include "sim/explore.h"
#include "sim/world.h"
#include "task/shape.h"

#define STATES_MAX 20000000
#define LEASE_MS 60000
#define TTL_MS 100000
#define KEYS_MAX 2

/* ---- a request: the guard and its asks as one task ---- */

struct plan {
	unsigned char number; /* of the cast, from 1: its token; and what the service answers */
	unsigned char key, fingerprint, caller;
	bool hold;
	bool old;   /* version 0.1 may have left a record of it under OLD_KEY */
	bool early; /* it has arrived when the walk begins; else it comes whenever the walk lets it */
};

struct request {
	struct task task;
	const struct plan *plan;
	struct guard guard;
	bool arrived;
	unsigned char replayed; /* by whose answer */
	/* Of the gate_write that is under way. The whole of it would be a large thing to copy around. */
	int64_t op;
	unsigned repeats;
	bool old, reading;
	int write_at;
};

struct writing {
	struct gate_write write;
	unsigned char replayed;
};

static void note_response(struct gate_write *write)
{
	struct slice response = write->reply.response;

	((struct writing *)write)->replayed = response.n == 1 ? (unsigned char)response.p[0] : 0;
}

static void resume(const struct request *r, struct writing *writing)
{
	*writing = (struct writing){0};
	gate_write_init(&writing->write, &r->guard.ask);
	writing->write.answered = note_response;
	writing->write.op = r->op;
	writing->write.repeats = r->repeats;
	writing->write.old = r->old;
	writing->write.reading = r->reading;
	writing->write.task.at = r->write_at;
}

static void suspend(struct request *r, const struct writing *writing)
{
	r->op = writing->write.op;
	r->repeats = writing->write.repeats;
	r->old = writing->write.old;
	r->reading = writing->write.reading;
	r->write_at = writing->write.task.at;
}

static bool asks_store(const struct request *r)
{
	return r->guard.at == GUARD_ACQUIRING || r->guard.at == GUARD_COMPLETING || r->guard.at == GUARD_REMOVING;
}

/* A new ask of the guard's: its task starts. */
static void begin_write(struct request *r, struct answer answer)
{
	struct writing writing;

	if (!asks_store(r))
		return;
	answer.kind = ANSWER_START;
	gate_write_init(&writing.write, &r->guard.ask);
	writing.write.task.kind->take(&writing.write.task, &answer);
	suspend(r, &writing);
}

static void take_written(struct request *r, const struct answer *answer)
{
	struct writing writing;

	resume(r, &writing);
	writing.write.task.kind->take(&writing.write.task, answer);
	suspend(r, &writing);
	if (!task_is_done(&writing.write.task))
		return;
	r->replayed = writing.replayed;
	guard_take_reply(&r->guard, &writing.write.reply);
	if (r->guard.at == GUARD_EXECUTING && answer->mono.ns >= guard_work_until(&r->guard).ns)
		guard_take_result(&r->guard, GUARD_NOTHING);
	begin_write(r, *answer);
}

static void take_act(struct request *r, const struct answer *answer)
{
	static const enum guard_result results[] = {
		[ACT_OK] = GUARD_STORE,
		[ACT_FAILED] = GUARD_NOTHING,
		[ACT_UNKNOWN] = GUARD_UNKNOWN,
	};

	r->guard.ask.response = slice_of(&r->plan->number, 1);
	guard_take_result(&r->guard, results[answer->outcome]);
	begin_write(r, *answer);
}

static void arrive(struct request *r, const struct answer *answer)
{
	r->arrived = true;
	guard_note_asked(&r->guard, answer->mono);
	begin_write(r, *answer);
}

static void request_take(struct task *task, const struct answer *answer)
{
	struct request *r = (struct request *)task;

	switch (answer->kind) {
	case ANSWER_START:
		if (r->plan->early)
			arrive(r, answer);
		break;
	case ANSWER_COMMIT:
		if (r->arrived)
			take_written(r, answer);
		else
			arrive(r, answer);
		break;
	case ANSWER_ACT:
		take_act(r, answer);
		break;
	case ANSWER_WOKE:
		ASSERT(!"it never sleeps");
	}
}

static void request_ask(const struct task *task, struct ask *ask)
{
	const struct request *r = (const struct request *)task;

	if (!r->arrived) { /* a unit without lines is answered at any moment */
		ask->kind = ASK_COMMIT;
		unit_init(ask->unit, /* op= */ 0);
	} else if (asks_store(r)) {
		struct writing writing;

		resume(r, &writing);
		writing.write.task.kind->ask(&writing.write.task, ask);
	} else if (r->guard.at == GUARD_EXECUTING) {
		ask->kind = ASK_ACT;
		ask->act = (struct act_call){.key = slice_of(&r->plan->number, 1), .attempt = 1};
	} else {
		ask->kind = ASK_DONE;
		ask->code = r->guard.code;
	}
}

static const char *request_where(const struct task *task)
{
	static const char *const names[] = {"acquiring", "executing", "completing", "removing"};
	const struct request *r = (const struct request *)task;

	if (!r->arrived)
		return "arriving";
	if (r->guard.at == GUARD_ENDED)
		return r->guard.unknown ? "unknown" : hx_gate_outcome_name(r->guard.outcome);
	return names[r->guard.at];
}

static const struct task_shape request_shape = SHAPE(struct request, NULL, PART(OP, struct request, op));

static const struct task_kind request_kind = {
	.name = "request",
	.size = sizeof(struct request),
	.take = request_take,
	.ask = request_ask,
	.where = request_where,
	.shape = &request_shape,
};

/* What version 0.1 has left, and nobody writes any more: its key, and whose answer it is. */
#define OLD_KEY 2
#define OLD_ANSWER 9
static const unsigned char old_key[HX_GATE_KEY_BYTES] = {OLD_KEY};

static void init_request(union sim_task *task, const void *plan, struct arena *texts)
{
	struct request *r = (struct request *)task;
	struct hx_gate_claim claim = {.lease_ms = LEASE_MS, .ttl_ms = TTL_MS};

	(void)texts;
	r->plan = plan;
	claim.key[0] = r->plan->key;
	claim.token[0] = r->plan->number;
	claim.fingerprint[0] = r->plan->fingerprint;
	claim.caller[0] = r->plan->caller;
	claim.hold = r->plan->hold;
	guard_init(&r->guard, &claim);
	if (r->plan->old)
		r->guard.ask.old_key = slice_of(old_key, sizeof old_key);
	task_init(&r->task, &request_kind, /* topic= */ 0);
}

/*
 * The sweep of some node, again and again: it is always its turn. It names no keys, since it does not know what it will
 * meet; that a row is locked while another's unit on it is open has to be said here.
 */
static struct task_kind sweep_kind;
static void (*sweep_ask)(const struct task *task, struct ask *ask);

static void sweep_ask_and_lock(const struct task *task, struct ask *ask)
{
	sweep_ask(task, ask);
	for (unsigned char k = 1; k <= KEYS_MAX && ask->kind == ASK_COMMIT; k++)
		unit_touch(ask->unit, gate_write_subject(&(struct gate_ask){.claim.key = {k}}));
}

static void init_sweep(union sim_task *task, const void *plan, struct arena *texts)
{
	static const struct gate_ask sweep = {.op = GATE_SWEEP, .budget = 8, .turn_ms = 0};

	(void)plan, (void)texts;
	gate_write_init((struct gate_write *)task, &sweep);
	sweep_kind = *task->task.kind;
	sweep_ask = sweep_kind.ask;
	sweep_kind.ask = sweep_ask_and_lock;
	task->task.kind = &sweep_kind;
}

/* A person who has seen a token, and says what became of it: once, at any moment. */
#define PERSON 9 /* as a token, and as an answer */

static const unsigned char person_answer = PERSON;
static const struct gate_ask not_done = {.op = GATE_RESOLVE, .claim = {.key = {1}, .token = {1}, .ttl_ms = TTL_MS}};
static const struct gate_ask done = {.op = GATE_RESOLVE,
				     .claim = {.key = {1}, .token = {1}, .ttl_ms = TTL_MS},
				     .response = {(const char *)&person_answer, 1},
				     .resolver = {PERSON}};

static void init_person(union sim_task *task, const void *plan, struct arena *texts)
{
	(void)texts;
	gate_write_init((struct gate_write *)task, plan);
}
