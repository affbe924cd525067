/* Every pair of units of functions, schedules and deliveries to hooks, interleaved on PostgreSQL: see pairs.h. */
#include "contract/pairs.h"

/* A unit that is empty in all of them would meet nobody, and pass. */
static bool is_ever_asked(const struct unit_kind *kind)
{
	for (enum fixture f = 0; f < FIXTURE_COUNT; f++) {
		if (fixture_of(f) != kind->of)
			continue;
		turn_to(f);
		if (is_asked(&(struct player){kind, false, true}, f))
			return true;
	}
	return false;
}

static void every_kind_is_asked_for_somewhere(void **state)
{
	(void)state;
	for (size_t k = 0; k < unit_kinds_n; k++) {
		const struct unit_kind *kind = &unit_kinds[k];
		bool verb = strcmp(kind->name, "run_restart") == 0 || strcmp(kind->name, "run_migrate") == 0;

		if ((verb || kind->of > OF_BATCH) && !is_ever_asked(kind))
			fail_msg("%s writes nothing anywhere", kind->name);
	}
}

FIXTURE_TESTS(function_absent, FIXTURE_FUNCTION_ABSENT)
FIXTURE_TESTS(function_due, FIXTURE_FUNCTION_DUE)
FIXTURE_TESTS(function_held, FIXTURE_FUNCTION_HELD)
FIXTURE_TESTS(function_begun, FIXTURE_FUNCTION_BEGUN)
FIXTURE_TESTS(function_past, FIXTURE_FUNCTION_PAST)
FIXTURE_TESTS(function_asleep, FIXTURE_FUNCTION_ASLEEP)
FIXTURE_TESTS(schedule_absent, FIXTURE_SCHEDULE_ABSENT)
FIXTURE_TESTS(schedule_resting, FIXTURE_SCHEDULE_RESTING)
FIXTURE_TESTS(schedule_due, FIXTURE_SCHEDULE_DUE)
FIXTURE_TESTS(schedule_open, FIXTURE_SCHEDULE_OPEN)
FIXTURE_TESTS(schedule_paused, FIXTURE_SCHEDULE_PAUSED)
FIXTURE_TESTS(hook_absent, FIXTURE_HOOK_ABSENT)
FIXTURE_TESTS(hook_seen, FIXTURE_HOOK_SEEN)
FIXTURE_TESTS(hook_old, FIXTURE_HOOK_OLD)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_is_asked_for_somewhere),
		cmocka_unit_test(whole_function_absent),
		cmocka_unit_test(whole_function_due),
		cmocka_unit_test(whole_function_held),
		cmocka_unit_test(whole_function_begun),
		cmocka_unit_test(whole_function_past),
		cmocka_unit_test(whole_function_asleep),
		cmocka_unit_test(whole_schedule_absent),
		cmocka_unit_test(whole_schedule_resting),
		cmocka_unit_test(whole_schedule_due),
		cmocka_unit_test(whole_schedule_open),
		cmocka_unit_test(whole_schedule_paused),
		cmocka_unit_test(whole_hook_absent),
		cmocka_unit_test(whole_hook_seen),
		cmocka_unit_test(whole_hook_old),
	};
	const struct CMUnitTest others[] = {
		cmocka_unit_test(stepwise_function_absent), cmocka_unit_test(stepwise_function_due),
		cmocka_unit_test(stepwise_function_held),   cmocka_unit_test(stepwise_function_begun),
		cmocka_unit_test(stepwise_function_past),   cmocka_unit_test(stepwise_function_asleep),
		cmocka_unit_test(stepwise_schedule_absent), cmocka_unit_test(stepwise_schedule_resting),
		cmocka_unit_test(stepwise_schedule_due),    cmocka_unit_test(stepwise_schedule_open),
		cmocka_unit_test(stepwise_schedule_paused), cmocka_unit_test(stepwise_hook_absent),
		cmocka_unit_test(stepwise_hook_seen),       cmocka_unit_test(stepwise_hook_old),
	};
	int failed;

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	failed = cmocka_run_group_tests_name("function pairs", tests, set_up, tear_down);
	if (argc > 1 || getenv("HAPAX_SOAK"))
		failed += cmocka_run_group_tests_name("more function pairs", others, set_up, tear_down);
	return failed;
}
