/*
 * Every pair of units of batches, interleaved on PostgreSQL: see pairs.h, and support/batch_kinds.h for what meets. With
 * HAPAX_SOAK also in the states in which little can happen, and statement by statement: all of them lock the batch and its
 * account before their first one.
 */
#include "contract/pairs.h"

FIXTURE_TESTS(batch_absent, FIXTURE_BATCH_ABSENT)
WHOLE_TEST(batch_loading, FIXTURE_BATCH_LOADING)
WHOLE_TEST(batch_loading_past, FIXTURE_BATCH_LOADING_PAST)
WHOLE_TEST(batch_adding_past, FIXTURE_BATCH_ADDING_PAST)
WHOLE_TEST(batch_held, FIXTURE_BATCH_HELD)
WHOLE_TEST(batch_queued, FIXTURE_BATCH_QUEUED)
FIXTURE_TESTS(batch_owned, FIXTURE_BATCH_OWNED)
WHOLE_TEST(batch_past, FIXTURE_BATCH_PAST)
WHOLE_TEST(batch_last, FIXTURE_BATCH_LAST)
FIXTURE_TESTS(batch_poor, FIXTURE_BATCH_POOR)
WHOLE_TEST(batch_waiting, FIXTURE_BATCH_WAITING)
WHOLE_TEST(batch_flagged, FIXTURE_BATCH_FLAGGED)
FIXTURE_TESTS(batch_cancelling, FIXTURE_BATCH_CANCELLING)
WHOLE_TEST(batch_flipped, FIXTURE_BATCH_FLIPPED)
WHOLE_TEST(batch_cleaning_past, FIXTURE_BATCH_CLEANING_PAST)
WHOLE_TEST(batch_completed, FIXTURE_BATCH_COMPLETED)
WHOLE_TEST(batch_cancelled, FIXTURE_BATCH_CANCELLED)

int main(int argc, char **argv)
{
	const struct CMUnitTest at_work[] = {
		cmocka_unit_test(whole_batch_absent),     cmocka_unit_test(whole_batch_queued),
		cmocka_unit_test(whole_batch_owned),      cmocka_unit_test(whole_batch_past),
		cmocka_unit_test(whole_batch_last),       cmocka_unit_test(whole_batch_poor),
		cmocka_unit_test(whole_batch_waiting),    cmocka_unit_test(whole_batch_flagged),
		cmocka_unit_test(whole_batch_cancelling),
	};
	const struct CMUnitTest others[] = {
		cmocka_unit_test(whole_batch_loading),     cmocka_unit_test(whole_batch_loading_past),
		cmocka_unit_test(whole_batch_adding_past), cmocka_unit_test(whole_batch_held),
		cmocka_unit_test(whole_batch_flipped),     cmocka_unit_test(whole_batch_cleaning_past),
		cmocka_unit_test(whole_batch_completed),   cmocka_unit_test(whole_batch_cancelled),
		cmocka_unit_test(stepwise_batch_absent),   cmocka_unit_test(stepwise_batch_owned),
		cmocka_unit_test(stepwise_batch_poor),     cmocka_unit_test(stepwise_batch_cancelling),
	};
	int failed;

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	failed = cmocka_run_group_tests_name("batch pairs", at_work, set_up, tear_down);
	if (argc > 1 || getenv("HAPAX_SOAK"))
		failed += cmocka_run_group_tests_name("more batch pairs", others, set_up, tear_down);
	return failed;
}
