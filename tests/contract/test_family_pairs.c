/* Every pair of units of a run and its child, interleaved on PostgreSQL: see pairs.h. */
#include "contract/pairs.h"

FIXTURE_TESTS(family_new, FIXTURE_FAMILY_NEW)
FIXTURE_TESTS(family_open, FIXTURE_FAMILY_OPEN)
FIXTURE_TESTS(family_at_work, FIXTURE_FAMILY_AT_WORK)
FIXTURE_TESTS(family_child_done, FIXTURE_FAMILY_CHILD_DONE)
FIXTURE_TESTS(family_child_failed, FIXTURE_FAMILY_CHILD_FAILED)
FIXTURE_TESTS(family_cancelled, FIXTURE_FAMILY_CANCELLED)
FIXTURE_TESTS(family_cancelled_at_work, FIXTURE_FAMILY_CANCELLED_AT_WORK)
FIXTURE_TESTS(family_paused, FIXTURE_FAMILY_PAUSED)
FIXTURE_TESTS(family_failed, FIXTURE_FAMILY_FAILED)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_family_new),
		cmocka_unit_test(whole_family_open),
		cmocka_unit_test(whole_family_at_work),
		cmocka_unit_test(whole_family_child_done),
		cmocka_unit_test(whole_family_child_failed),
		cmocka_unit_test(whole_family_cancelled),
		cmocka_unit_test(whole_family_cancelled_at_work),
		cmocka_unit_test(whole_family_paused),
		cmocka_unit_test(whole_family_failed),
	};
	const struct CMUnitTest others[] = {
		cmocka_unit_test(stepwise_family_new),
		cmocka_unit_test(stepwise_family_open),
		cmocka_unit_test(stepwise_family_at_work),
		cmocka_unit_test(stepwise_family_child_done),
		cmocka_unit_test(stepwise_family_child_failed),
		cmocka_unit_test(stepwise_family_cancelled),
		cmocka_unit_test(stepwise_family_cancelled_at_work),
		cmocka_unit_test(stepwise_family_paused),
		cmocka_unit_test(stepwise_family_failed),
	};
	int failed;

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	failed = cmocka_run_group_tests_name("family pairs", tests, set_up, tear_down);
	if (argc > 1 || getenv("HAPAX_SOAK"))
		failed += cmocka_run_group_tests_name("more family pairs", others, set_up, tear_down);
	return failed;
}
