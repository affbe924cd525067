/*
 * The guard: the order of things around one guarded request, as pure logic. It does no I/O; whoever drives it (the proxy,
 * the API, hx_gate_begin(), the simulator) carries out what it wants and tells it what came of it.
 *
 *               ┌ COMPLETED ─▶ end(REPLAYED)      ┌ answer, to be stored ──▶ COMPLETING ┬ DONE ───────▶ end(CREATED)
 *   ACQUIRING ──┼ IN_FLIGHT, HELD ▶ end(CONFLICT) │                                     ├ STALE ──────▶ end(STALE)
 *     │         ├ MISMATCHED ▶ end(MISMATCH)      │                                     └ UNAVAILABLE ▶ end(UNSTORED)
 *     │         └ ACQUIRED ──▶ EXECUTING ─────────┼ answer, not to be stored ▶ REMOVING ─ any ────────▶ end(RELEASED)
 *     │                                           ├ certainly nothing was sent ▶ REMOVING ─ any ──────▶ end(RELEASED)
 *     ├ UNAVAILABLE ▶ REMOVING ▶ end(STORE_ERROR) └ unknown ───────────────────────────▶ end(UNKNOWN): the lease stays
 *     └ the same, and certainly not ours ────────▶ end(STORE_ERROR)
 *
 * OTHER_CALLER ends as MISMATCHED does, with a code of its own: who comes with another's key learns nothing else.
 * An answer that is too large to be stored is GUARD_STORE with body_missing as soon as the limit is passed, and is
 * streamed after the verdict; one that is not to be stored is GUARD_PASS after its last byte, and unknown if it breaks.
 *
 * Invariants: it executes at most once; nothing is executed before the record is ours, or when its lease may be over
 * (counted from before it was asked for); a record whose execution may have
 * happened is never removed; what is told to the client as CREATED is stored.
 */
#pragma once

#include "gate/record.h"

#define GUARD_HELD_RETRY_MS 60000 /* a person is slow */

enum guard_state {
	GUARD_ACQUIRING,
	GUARD_EXECUTING,
	GUARD_COMPLETING,
	GUARD_REMOVING,
	GUARD_ENDED,
};

/* What came of the execution. */
enum guard_result {
	GUARD_STORE,   /* a complete answer that is to be stored: set ask.response first */
	GUARD_PASS,    /* a complete answer that is not */
	GUARD_NOTHING, /* certainly nothing was executed */
	GUARD_UNKNOWN, /* it may have been */
};

struct guard {
	enum guard_state at;
	struct gate_ask ask;          /* what the store is to be asked in ACQUIRING, COMPLETING, REMOVING */
	enum hx_gate_outcome outcome; /* when ENDED */
	bool unknown;           /* when ENDED: nothing is known and nothing was changed; `outcome` is meaningless */
	enum hx_code code;      /* when ENDED without an answer to pass on: IN_FLIGHT, CALLER_MISMATCH, … */
	int64_t retry_after_ms; /* with IN_FLIGHT and HELD: what is left of the lease, 0: not known */
	struct mono_time asked; /* private */
	enum hx_gate_outcome after_removal; /* private */
};

void guard_init(struct guard *guard, const struct hx_gate_claim *claim);
/* In ACQUIRING, COMPLETING or REMOVING. With GATE_COMPLETED the reply's response is what to replay. */
void guard_take_reply(struct guard *guard, const struct gate_reply *reply);
/* In REMOVING, after an acquisition that the store did not answer: it has what is left of the same time. */
bool guard_takes_back(const struct guard *guard);
/* When ACQUIRING is asked for the first time, whatever is repeated later. */
void guard_note_asked(struct guard *guard, struct mono_time now);
/* In EXECUTING, before the first byte leaves: until when it may be at work. In the past: GUARD_NOTHING is the result. */
struct mono_time guard_work_until(const struct guard *guard);
/* In EXECUTING. */
void guard_take_result(struct guard *guard, enum guard_result result);
