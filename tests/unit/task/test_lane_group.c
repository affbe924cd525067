/* A lane whose disk is busy with one group while it computes the next: who is answered, and when. */
#include <poll.h>

#include "lane_party.h"
#include "support/disk.h"
#include "support/must_hold.h"
#include "task/lane_parts.h"

#define MANY 100

/* Units are dear, and so many go in two parts. Nothing is in the lane yet. */
static void start(void)
{
	party_start(STORE_SQLITE_FILE, CALLERS);
	assert_true(party.lane->db->may_be_later);
	party.lane->unit_ns = INT64_C(1) << 40;
}

/* A test may have failed while the disk was held up. */
static int let_go(void **state)
{
	disk_hold(false);
	return tear_down(state);
}

/* ---- a scene: subjects that are there, a disk that is held up, callers who have come while the lane stood still ---- */

static unsigned syncs_before;

static void begin_scene(size_t subjects_n)
{
	start();
	make_subjects(subjects_n);
	syncs_before = disk_syncs(/* aside= */ true);
	disk_hold(true);
	hold_lane(party.lane, &holder);
}

/* One more caller, who moves a subject. */
static void come_to_move(size_t i, int64_t subject)
{
	caller_move(&callers[i], subject, /* version= */ 1);
	submit(party.lane, &callers[i]);
}

/* The first part is written, and what follows is computed, while the disk is at the first. */
static void let_the_first_part_go(void)
{
	let_lane_go();
	AWAIT(disk_syncs(/* aside= */ true) > syncs_before);
}

/* For a moment, in which they would be; then the disk goes on, and all are. */
static void nobody_is_told_until_the_disk_goes_on(size_t n)
{
	for (int i = 0; i < 20; i++) {
		MUST_HOLD(count_done(callers, n) == 0, "a caller is told what the disk is still at");
		poll(NULL, 0, 1);
	}
	disk_hold(false);
	AWAIT(count_done(callers, n) == n);
}

static void nobody_is_answered_before_the_disk_has_it(void **state)
{
	(void)state;
	begin_scene(MANY);
	for (size_t i = 0; i < MANY; i++)
		come_to_move(i, (int64_t)i + 1);
	let_the_first_part_go();
	nobody_is_told_until_the_disk_goes_on(MANY);
	for (size_t i = 0; i < MANY; i++)
		assert_int_equal(callers[i].code, HX_OK);
	assert_int_equal(version_of(1), 2);
	assert_int_equal(version_of(MANY), 2);
}

/* Two for each subject: the second ones lose, and are told so after what they have lost to is durable. */
static void who_loses_to_what_is_not_durable_waits_too(void **state)
{
	(void)state;
	begin_scene(MANY);
	for (size_t i = 0; i < MANY; i++)
		come_to_move(i, (int64_t)(i % (MANY / 2)) + 1);
	let_the_first_part_go();
	nobody_is_told_until_the_disk_goes_on(MANY);
	for (size_t i = 0; i < MANY; i++)
		assert_int_equal(callers[i].code, i < MANY / 2 ? HX_OK : HX_CONCURRENCY_ERROR);
}

/* ---- in the middle of the second part ---- */

static size_t told_in_the_middle;

/* The disk is through with the first part. */
static void between(void *context)
{
	struct lane *lane = context;

	if (lane->up) {
		disk_hold(false);
		assert_true(lane->db->driver->durable(lane->db, lane->up->committed, /* wait= */ true));
		lane_between(lane);
		pthread_mutex_lock(&meeting);
		told_in_the_middle = count_done(callers, MANY);
		pthread_mutex_unlock(&meeting);
	}
}

static void who_is_durable_does_not_wait_for_the_next_group(void **state)
{
	(void)state;
	begin_scene(MANY);
	party.lane->db->between = between; /* the lane stands still */
	told_in_the_middle = 0;
	for (size_t i = 0; i < MANY; i++)
		come_to_move(i, (int64_t)i + 1);
	let_lane_go();
	AWAIT(count_done(callers, MANY) == MANY);
	assert_int_equal(told_in_the_middle, MANY / 2);
	for (size_t i = 0; i < MANY; i++)
		assert_int_equal(callers[i].code, HX_OK);
}

/* ---- what is refused ---- */

static void build_odd_one(struct unit *unit, const struct probe *p)
{
	static const struct db_stmt stmt = {
		.name = "test_odd_one",
		.sql = "INSERT INTO hx_subject (id, kind, status, version, op, updated_at, seq, head)"
		       " SELECT -id, CASE version WHEN 2 THEN NULL ELSE 1 END, 'odd', 1, 1, 1, 1, x'00' FROM hx_subject WHERE id = ?1",
		.in = "i",
		.out = "",
	};

	unit_touch(unit, p->subject);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt, db_int(p->subject)); /* once it has been moved: kind may not be NULL */
}

/* Of a subject that has been moved. */
static void come_to_fail(size_t i, int64_t subject)
{
	caller_probe(&callers[i], build_odd_one, subject, 0);
	submit(party.lane, &callers[i]);
}

/* In a group that goes later: it alone is told so, and all others have been done. */
static void one_that_is_refused_harms_nobody(void **state)
{
	(void)state;
	begin_scene(MANY);
	disk_hold(false);
	for (size_t i = 0; i < MANY; i++)
		if (i % 40 == 20)
			come_to_fail(i, (int64_t)i);
		else
			come_to_move(i, (int64_t)i + 1);
	let_lane_go();
	AWAIT(count_done(callers, MANY) == MANY);
	assert_true(party_stats().group.bisected > 0);
	for (size_t i = 0; i < MANY; i++)
		if (i % 40 == 20)
			assert_int_equal(callers[i].probe.verdict, UNIT_FAILED);
		else
			assert_int_equal(version_of((int64_t)i + 1), 2);
}

/* It is the first of the second part, and the first part mostly is answered after it has failed, and before that part's end. */
static void one_that_is_refused_is_told_of(void **state)
{
	(void)state;
	begin_scene(MANY);
	disk_hold(false);
	for (size_t i = 0; i < MANY; i++)
		if (i == MANY / 2)
			come_to_fail(i, 1);
		else
			come_to_move(i, (int64_t)i + 1);
	let_lane_go();
	AWAIT(count_done(callers, MANY) == MANY);
	assert_int_equal(callers[MANY / 2].probe.verdict, UNIT_FAILED);
	assert_true(party.lane->trouble.unit_not_before.ns > 0);
}

/* 512 are in the first group, and one after it fails of what one of them has written. */
static void one_that_fails_alone_waits_too(void **state)
{
	(void)state;
	begin_scene(GROUP_UNITS_MAX);
	party.lane->unit_ns = 0;
	for (size_t i = 0; i < GROUP_UNITS_MAX; i++)
		come_to_move(i, (int64_t)i + 1);
	come_to_fail(GROUP_UNITS_MAX, 7);
	let_the_first_part_go();
	nobody_is_told_until_the_disk_goes_on(GROUP_UNITS_MAX + 1);
	assert_int_equal(callers[GROUP_UNITS_MAX].probe.verdict, UNIT_FAILED);
}

/* ---- the end ---- */

/* One group is up: that one is answered, and what it has written is there. */
static void a_lane_that_stops_lands_what_is_up(void **state)
{
	(void)state;
	begin_scene(MANY);
	for (size_t i = 0; i < MANY; i++)
		come_to_move(i, (int64_t)i + 1);
	let_the_first_part_go();
	lane_ask_to_stop(party.lane, /* drain_ms= */ 10000);
	disk_hold(false);
	lane_stop(party.lane, 10000);
	assert_int_equal(count_done(callers, MANY), MANY);
	for (size_t i = 0; i < MANY; i++)
		assert_int_equal(callers[i].code, HX_OK);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(nobody_is_answered_before_the_disk_has_it, let_go),
		cmocka_unit_test_teardown(who_loses_to_what_is_not_durable_waits_too, let_go),
		cmocka_unit_test_teardown(who_is_durable_does_not_wait_for_the_next_group, let_go),
		cmocka_unit_test_teardown(one_that_is_refused_harms_nobody, let_go),
		cmocka_unit_test_teardown(one_that_is_refused_is_told_of, let_go),
		cmocka_unit_test_teardown(one_that_fails_alone_waits_too, let_go),
		cmocka_unit_test_teardown(a_lane_that_stops_lands_what_is_up, let_go),
	};

	ONLY_THE_NAMED(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
