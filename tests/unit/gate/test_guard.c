/* Every edge of the diagram in guard.h, and that there is no other way through it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gate/guard.h"

#define MS 1000000

static const struct hx_gate_claim claim = {.key = {1}, .token = {2}, .fingerprint = {3}, .lease_ms = 1000, .ttl_ms = 9};

static struct guard guard_at_start(void)
{
	struct guard guard;

	guard_init(&guard, &claim);
	assert_int_equal(guard.at, GUARD_ACQUIRING);
	assert_int_equal(guard.ask.op, GATE_ACQUIRE);
	assert_memory_equal(&guard.ask.claim, &claim, sizeof claim);
	return guard;
}

static void reply(struct guard *guard, enum gate_verdict verdict)
{
	struct gate_reply said = {.verdict = verdict, .lease_left_ms = 70};

	guard_take_reply(guard, &said);
}

static struct guard guard_executing(void)
{
	struct guard guard = guard_at_start();

	reply(&guard, GATE_ACQUIRED);
	assert_int_equal(guard.at, GUARD_EXECUTING);
	return guard;
}

static struct guard guard_completing(void)
{
	struct guard guard = guard_executing();

	guard.ask.response = slice_str("bytes");
	guard_take_result(&guard, GUARD_STORE);
	assert_int_equal(guard.at, GUARD_COMPLETING);
	assert_int_equal(guard.ask.op, GATE_COMPLETE);
	assert_memory_equal(&guard.ask.claim, &claim, sizeof claim);
	assert_true(slice_is(guard.ask.response, "bytes"));
	return guard;
}

static void assert_ended(const struct guard *guard, enum hx_gate_outcome outcome, enum hx_code code)
{
	assert_int_equal(guard->at, GUARD_ENDED);
	assert_int_equal(guard->outcome, outcome);
	assert_int_equal(guard->code, code);
	assert_false(guard->unknown);
}

static void assert_removes(struct guard *guard)
{
	assert_int_equal(guard->at, GUARD_REMOVING);
	assert_int_equal(guard->ask.op, GATE_REMOVE);
	assert_memory_equal(&guard->ask.claim, &claim, sizeof claim);
}

static void what_others_have_is_not_executed(void **state)
{
	static const struct {
		enum gate_verdict verdict;
		enum hx_gate_outcome outcome;
		enum hx_code code;
		int64_t retry_after_ms;
	} edges[] = {
		{GATE_COMPLETED, HX_GATE_REPLAYED, HX_OK, 0},
		{GATE_IN_FLIGHT, HX_GATE_CONFLICT, HX_IN_FLIGHT, 70},
		{GATE_HELD, HX_GATE_CONFLICT, HX_HELD, GUARD_HELD_RETRY_MS},
		{GATE_OTHER_CALLER, HX_GATE_MISMATCH, HX_CALLER_MISMATCH, 0},
		{GATE_MISMATCHED, HX_GATE_MISMATCH, HX_FINGERPRINT_MISMATCH, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
		struct guard guard = guard_at_start();

		reply(&guard, edges[i].verdict);
		assert_ended(&guard, edges[i].outcome, edges[i].code);
		assert_int_equal(guard.retry_after_ms, edges[i].retry_after_ms);
	}
}

/* Perhaps it was acquired after all. Nothing was executed, so it may go; whether that succeeds or not. */
static void an_acquisition_in_doubt_is_removed(void **state)
{
	static const enum gate_verdict removed[] = {GATE_DONE, GATE_STALE, GATE_UNAVAILABLE};

	(void)state;
	for (size_t i = 0; i < sizeof removed / sizeof *removed; i++) {
		struct guard guard = guard_at_start();

		reply(&guard, GATE_UNAVAILABLE);
		assert_removes(&guard);
		reply(&guard, removed[i]);
		assert_ended(&guard, HX_GATE_STORE_ERROR, HX_STORE_UNAVAILABLE);
	}
}

static void what_is_told_as_created_is_stored(void **state)
{
	static const struct {
		enum gate_verdict verdict;
		enum hx_gate_outcome outcome;
	} edges[] = {
		{GATE_DONE, HX_GATE_CREATED},
		{GATE_STALE, HX_GATE_STALE},
		{GATE_UNAVAILABLE, HX_GATE_UNSTORED},
	};

	(void)state;
	for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
		struct guard guard = guard_completing();

		reply(&guard, edges[i].verdict);
		assert_ended(&guard, edges[i].outcome, HX_OK);
	}
}

static void what_is_not_to_be_stored_is_removed(void **state)
{
	static const enum guard_result results[] = {GUARD_PASS, GUARD_NOTHING};
	static const enum gate_verdict removed[] = {GATE_DONE, GATE_STALE, GATE_UNAVAILABLE};

	(void)state;
	for (size_t r = 0; r < 2; r++)
		for (size_t i = 0; i < sizeof removed / sizeof *removed; i++) {
			struct guard guard = guard_executing();

			guard_take_result(&guard, results[r]);
			assert_removes(&guard);
			reply(&guard, removed[i]);
			assert_ended(&guard, HX_GATE_RELEASED, HX_OK);
		}
}

static void after_an_unknown_outcome_nothing_is_touched(void **state)
{
	struct guard guard = guard_executing();

	(void)state;
	guard_take_result(&guard, GUARD_UNKNOWN);
	assert_int_equal(guard.at, GUARD_ENDED);
	assert_true(guard.unknown);
	assert_int_equal(guard.code, HX_OUTCOME_UNKNOWN);
}

/* It counts from before the first time that it was asked for, with a margin for what lies between word and deed. */
static void work_ends_before_the_lease_does(void **state)
{
	struct guard guard = guard_at_start();

	(void)state;
	guard_note_asked(&guard, (struct mono_time){500 * MS});
	reply(&guard, GATE_ACQUIRED);
	assert_true(guard_work_until(&guard).ns > 500 * MS);
	assert_true(guard_work_until(&guard).ns < 1500 * MS);
}

static void outcomes_have_names(void **state)
{
	static const char *const names[] = {"created", "replayed", "conflict", "mismatch",
					    "stale",   "unstored", "released", "store_error"};

	(void)state;
	assert_int_equal(sizeof names / sizeof *names, HX_GATE_OUTCOMES);
	for (int i = 0; i < HX_GATE_OUTCOMES; i++)
		assert_string_equal(hx_gate_outcome_name((enum hx_gate_outcome)i), names[i]);
	assert_string_equal(hx_gate_outcome_name(HX_GATE_OUTCOMES), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_others_have_is_not_executed),
		cmocka_unit_test(an_acquisition_in_doubt_is_removed),
		cmocka_unit_test(what_is_told_as_created_is_stored),
		cmocka_unit_test(what_is_not_to_be_stored_is_removed),
		cmocka_unit_test(after_an_unknown_outcome_nothing_is_touched),
		cmocka_unit_test(work_ends_before_the_lease_does),
		cmocka_unit_test(outcomes_have_names),
	};

	return cmocka_run_group_tests_name("guard", tests, NULL, NULL);
}
