/* The edges of the diagram in guard.h. */
#include "gate/guard.h"

#include "task/pulse.h"

const char *hx_gate_outcome_name(enum hx_gate_outcome outcome)
{
	static const char *const names[HX_GATE_OUTCOMES] = {
		[HX_GATE_CREATED] = "created",   [HX_GATE_REPLAYED] = "replayed",
		[HX_GATE_CONFLICT] = "conflict", [HX_GATE_MISMATCH] = "mismatch",
		[HX_GATE_STALE] = "stale",       [HX_GATE_UNSTORED] = "unstored",
		[HX_GATE_RELEASED] = "released", [HX_GATE_STORE_ERROR] = "store_error",
	};

	return (unsigned)outcome < HX_GATE_OUTCOMES ? names[outcome] : "unknown";
}

void guard_init(struct guard *guard, const struct hx_gate_claim *claim)
{
	*guard = (struct guard){.at = GUARD_ACQUIRING, .ask = {.op = GATE_ACQUIRE, .claim = *claim}};
}

void guard_note_asked(struct guard *guard, struct mono_time now)
{
	ASSERT(guard->at == GUARD_ACQUIRING);
	guard->asked = now;
}

struct mono_time guard_work_until(const struct guard *guard)
{
	struct lease lease = {.lease_ms = guard->ask.claim.lease_ms, .since = guard->asked};

	return lease_trusted_until(&lease);
}

static void want(struct guard *guard, enum guard_state at, enum gate_op op)
{
	guard->ask.op = op;
	guard->at = at;
}

static void remove_it(struct guard *guard, enum hx_gate_outcome then, enum hx_code code)
{
	guard->after_removal = then;
	guard->code = code;
	want(guard, GUARD_REMOVING, GATE_REMOVE);
}

bool guard_takes_back(const struct guard *guard)
{
	return guard->at == GUARD_REMOVING && guard->after_removal == HX_GATE_STORE_ERROR;
}

static void end_guard(struct guard *guard, enum hx_gate_outcome outcome, enum hx_code code)
{
	guard->outcome = outcome;
	guard->code = code;
	guard->at = GUARD_ENDED;
}

/* There is an answer to pass on, and it is to be a CREATED one: that is said of what is stored. */
static void create(struct guard *guard, bool stored)
{
	if (!stored) {
		want(guard, GUARD_COMPLETING, GATE_COMPLETE);
		return; /* mutant: guard-created-unstored */
	}
	end_guard(guard, HX_GATE_CREATED, HX_OK);
}

static void take_acquired(struct guard *guard, const struct gate_reply *reply)
{
	/* Whoever is not let in. */
	static const struct {
		enum hx_gate_outcome outcome;
		enum hx_code code;
	} ends[] = {
		[GATE_COMPLETED] = {HX_GATE_REPLAYED, HX_OK},
		[GATE_IN_FLIGHT] = {HX_GATE_CONFLICT, HX_IN_FLIGHT},
		[GATE_HELD] = {HX_GATE_CONFLICT, HX_HELD},
		[GATE_MISMATCHED] = {HX_GATE_MISMATCH, HX_FINGERPRINT_MISMATCH},
		[GATE_OTHER_CALLER] = {HX_GATE_MISMATCH, HX_CALLER_MISMATCH},
	};

	if (reply->verdict == GATE_ACQUIRED) {
		guard->at = GUARD_EXECUTING;
	} else if (reply->verdict == GATE_UNAVAILABLE && reply->certain) {
		end_guard(guard, HX_GATE_STORE_ERROR, HX_STORE_UNAVAILABLE);
	} else if (reply->verdict == GATE_UNAVAILABLE) { /* perhaps it is ours: nothing was executed, so it may go */
		remove_it(guard, HX_GATE_STORE_ERROR, HX_STORE_UNAVAILABLE);
	} else {
		ASSERT((unsigned)reply->verdict < sizeof ends / sizeof *ends);
		guard->retry_after_ms = reply->verdict == GATE_IN_FLIGHT ? reply->lease_left_ms
					: reply->verdict == GATE_HELD    ? GUARD_HELD_RETRY_MS
									 : 0;
		end_guard(guard, ends[reply->verdict].outcome, ends[reply->verdict].code);
	}
}

static void take_completed(struct guard *guard, const struct gate_reply *reply)
{
	ASSERT(reply->verdict == GATE_DONE || reply->verdict == GATE_STALE || reply->verdict == GATE_UNAVAILABLE);
	if (reply->verdict == GATE_DONE)
		create(guard, /* stored= */ true);
	else
		end_guard(guard, reply->verdict == GATE_STALE ? HX_GATE_STALE : HX_GATE_UNSTORED, HX_OK);
}

void guard_take_reply(struct guard *guard, const struct gate_reply *reply)
{
	ASSERT(guard->at != GUARD_EXECUTING && guard->at != GUARD_ENDED);
	if (guard->at == GUARD_ACQUIRING)
		take_acquired(guard, reply);
	else if (guard->at == GUARD_COMPLETING)
		take_completed(guard, reply);
	else /* REMOVING: what could not be removed ends with its lease */
		end_guard(guard, guard->after_removal, guard->code);
}

void guard_take_result(struct guard *guard, enum guard_result result)
{
	ASSERT(guard->at == GUARD_EXECUTING);
	switch (result) {
	case GUARD_STORE:
		create(guard, /* stored= */ false);
		break;
	case GUARD_UNKNOWN:
		guard->unknown = true;
		end_guard(guard, HX_GATE_OUTCOMES, HX_OUTCOME_UNKNOWN);
		break; /* mutant: guard-remove-unknown */
	case GUARD_PASS:
	case GUARD_NOTHING:
		remove_it(guard, HX_GATE_RELEASED, HX_OK);
		break;
	}
}
