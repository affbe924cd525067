/*
 * A lane with an aside, on PostgreSQL: whose row somebody keeps locked waits there, and of many who want that row, one does.
 */
#include "unit/task/lane_party.h"

#define CROWD 20 /* fewer than GROUP_SERIAL_MAX: they are one group */

static struct aside *aside;
static struct lane *lane;
static PGconn *raw; /* who has the lock */

/* Twice, so that the second line decides, too: such units are of one group although they touch the same subject. */
DB_STMT(stmt_turn, "turn", "i", "i", "UPDATE hx_subject SET version = version + 1 WHERE id = ?1 RETURNING version");

static void build_turns(struct unit *unit, const struct probe *p)
{
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_turn, db_int(p->subject));
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_turn, db_int(p->subject));
	unit_touch(unit, p->subject);
	ASSERT(unit_is_serial(unit));
}

static void start_with_aside(enum store_kind kind)
{
	struct aside_options beside = {.resolve_ms = 1000};
	struct lane_options options;
	struct hx_error err;

	party_start(kind, CALLERS);
	make_subjects(2);
	options = party.options;
	options.number = 1;
	options.db.exclusive = false;
	options.migrate = false;
	beside.db = options.db;
	assert_int_equal(aside_new(&beside, &aside, &err), HX_OK);
	options.aside = aside;
	assert_int_equal(lane_new(&options, &lane, &err), HX_OK);
}

static int end_with_aside(void **state)
{
	PQfinish(raw);
	raw = NULL;
	if (lane)
		lane_stop(lane, /* drain_ms= */ 0);
	aside_free(aside);
	lane_free(lane);
	lane = NULL;
	aside = NULL;
	return tear_down(state);
}

static uint64_t gone_aside(void)
{
	struct lane_stats stats;

	lane_read_stats(lane, &stats);
	return stats.group.aside;
}

static void of_many_who_wait_for_a_row_one_goes_aside(void **state)
{
	int64_t version;

	start_with_aside(kind_of(state));
	version = version_of(1);
	raw = store_raw(party.store);
	hold_lane(lane, &holder);
	raw_run(raw, "BEGIN; SELECT FROM hx_subject WHERE id = 1 FOR UPDATE", NULL, 0);
	for (size_t i = 0; i < CROWD; i++) {
		caller_probe(&callers[i], build_turns, 1, 0);
		submit(lane, &callers[i]);
	}
	let_lane_go();
	AWAIT(gone_aside() > 0);
	assert_int_equal(ask_lane(lane, build_turns, 2, 0).verdict, UNIT_WON); /* whoever does not want it is served */
	assert_int_equal(gone_aside(), 1);
	raw_run(raw, "COMMIT", NULL, 0);
	AWAIT(count_done(callers, CROWD) == CROWD);
	for (size_t i = 0; i < CROWD; i++) {
		assert_int_equal(callers[i].probe.verdict, UNIT_WON);
		assert_int_equal(callers[i].probe.ints[0],
				 version + 1 + 2 * (int64_t)i); /* in the order they came in */
	}
	assert_int_equal(gone_aside(), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{"of_many_who_wait_for_a_row_one_goes_aside", of_many_who_wait_for_a_row_one_goes_aside, NULL,
		 end_with_aside, &on_postgres},
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
