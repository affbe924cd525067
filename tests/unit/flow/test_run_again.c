/*
 * Driving a run over a real store: when a step is tried again. Not before the other side wants it; and while that is still at an
 * earlier try, as the same attempt, for ten minutes.
 */
#include "unit/flow/driven_run.h"

/* The longer one of the backoff and what the other side asks for. */
static void test_rests_at_least_as_long_as_it_is_asked_to(void **state)
{
	struct world *w = *state;
	static const struct script busy[] = {{ACT_FAILED, "HTTP 429"}, {0}};

	define("'steps':[{'name':'a','type':'task','action':'once','retry':{'initial':'100ms','factor':1,'jitter':false}}]");
	create(w, "{}");
	drive_asked(w, busy, 30000);
	assert_run(
		w,
		"WAITING v3, step 0 attempt 1 due in 30000 error {\"code\":\"ACTION_FAILED\",\"message\":\"HTTP 429\","
		"\"step\":\"a\"}",
		"");
	fake_clock_advance_ms(&w->clock, 29999);
	assert_int_equal(drive(w, ok), HX_OK); /* nothing is due */
	fake_clock_advance_ms(&w->clock, 1);
	drive_asked(w, busy, 50);
	assert_run(w,
		   "WAITING v5, step 0 attempt 2 due in 100 error {\"code\":\"ACTION_FAILED\",\"message\":\"HTTP 429\","
		   "\"step\":\"a\"}",
		   "");
	fake_clock_advance_ms(&w->clock, 100);
	assert_int_equal(drive(w, ok), HX_OK);
	assert_string_equal(fixture.calls, "once/a/0 #1; once/a/0 #2; once/a/0 #3; ");
}

#define UNSETTLED_ERROR "error {\"code\":\"OUTCOME_UNKNOWN\",\"message\":\"HTTP 409\",\"step\":\"a\"}"
#define IN_STEP_A(more) "'steps':[{'name':'a','type':'task','action':'do'" more "}]"
#define ONE_TRY ",'retry':{'max_attempts':1,'initial':'100ms','jitter':false}"

static const struct script conflict[] = {{ACT_UNSETTLED, "HTTP 409"}, {0}};

/* The same attempt, after the backoff, or half of the time so far; not before the other side wants it; ten minutes in all. */
static void test_unsettled_uses_no_attempt_and_ends(void **state)
{
	struct world *w = *state;

	define(IN_STEP_A(ONE_TRY));
	create(w, "{}");
	drive_asked(w, conflict, 0);
	assert_run(w, "WAITING v3 doubt, step 0 attempt 1 due in 100 " UNSETTLED_ERROR, "");
	fake_clock_advance_ms(&w->clock, 100);
	drive_asked(w, conflict, 60000);
	assert_run(w, "WAITING v5 doubt, step 0 attempt 1 due in 60000 " UNSETTLED_ERROR, "");
	fake_clock_advance_ms(&w->clock, 60000);
	drive_asked(w, conflict, 0);
	assert_run(w, "WAITING v7 doubt, step 0 attempt 1 due in 30050 " UNSETTLED_ERROR, "");
	fake_clock_advance_ms(&w->clock, 30050);
	drive_asked(w, conflict, 600000);
	assert_run(w, "WAITING v9 doubt, step 0 attempt 1 UNKNOWN awaits person " UNSETTLED_ERROR, "");
	assert_string_equal(fixture.calls, "do/a/0 #1; do/a/0 #1; do/a/0 #1; do/a/0 #1; ");
}

static void test_unsettled_is_done_in_the_end(void **state)
{
	struct world *w = *state;

	define(IN_STEP_A(ONE_TRY));
	create(w, "{}");
	drive_asked(w, conflict, 0);
	fake_clock_advance_ms(&w->clock, 100);
	assert_int_equal(drive(w, ok), HX_OK);
	assert_run(w, "COMPLETED v5, step 1 attempt 0 -> null", "0 COMPLETED {\"n\":9007199254740993}");
}

/* Who wants a person to look at what is unknown gets one at once. */
static void test_unsettled_is_held(void **state)
{
	struct world *w = *state;

	define(IN_STEP_A(",'on_unknown':'hold'"));
	create(w, "{}");
	drive_asked(w, conflict, 0);
	assert_run(w, "WAITING v3 doubt, step 0 attempt 1 UNKNOWN awaits person " UNSETTLED_ERROR, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_rests_at_least_as_long_as_it_is_asked_to),
		TEST(test_unsettled_uses_no_attempt_and_ends),
		TEST(test_unsettled_is_done_in_the_end),
		TEST(test_unsettled_is_held),
	};

	return cmocka_run_group_tests(tests, NULL, forget);
}
