/*
 * The feeder over a real lane: what is due is begun once at a time, never more than may be, and nothing that stays due is
 * forgotten. What is due are subjects in status "open"; beginning one is noted, and the test ends it.
 */
#include "engine/feeder.h"
#include "unit/task/party.h"

#define TOPIC 4711
#define SLICE 8
#define MAX (FEEDER_RESTING_MAX + 2 * SLICE)
#define REST_MS 1000
#define IDS_MAX 2000
#define TENANT 7
#define PLACES (6 * SLICE) /* of the shared source */
#define MODEST 10000       /* from here on they are of another workspace */

static struct lanes lanes;
static struct engine_parts parts;
static struct feeder feeder;

/* Under `meeting`. */
static size_t begun_n;
static int64_t begun[IDS_MAX];
static size_t refuse_n; /* so many are refused first */

static const struct db_stmt stmt_scan = {
	.name = "test_open",
	.sql = "SELECT id FROM hx_subject WHERE status = 'open' ORDER BY id LIMIT ?1",
	.in = "i",
	.out = "i",
};

static const struct due_source source = {.name = "open", .topic = TOPIC, .poll_ms = 1000000, .found = &stmt_scan};

#define WORKSPACE(id) "CASE WHEN " id " < 10000 THEN 'greedy' ELSE 'modest' END"

static const struct db_stmt stmt_scan_shared = {
	.name = "test_open_shared",
	.sql = "SELECT id, id, " WORKSPACE("id") " FROM hx_subject WHERE status = 'open' AND " WORKSPACE(
		"id") " NOT IN (SELECT " WORKSPACE("CAST(value AS bigint)") " FROM {list2}) ORDER BY id LIMIT ?1",
	.in = "it",
	.out = "iit",
};

static const struct due_source shared_source = {
	.name = "shared", .topic = TOPIC, .poll_ms = 1000000, .found = &stmt_scan_shared, .shared = true};

static bool begin(void *context, struct due due)
{
	bool refused;

	assert_ptr_equal(context, &feeder);
	pthread_mutex_lock(&meeting);
	refused = refuse_n > 0;
	refuse_n -= refused;
	if (!refused)
		begun[begun_n++] = due.subject;
	pthread_cond_broadcast(&news);
	pthread_mutex_unlock(&meeting);
	return !refused;
}

static int set_up(void **state)
{
	(void)state;
	begun_n = refuse_n = 0;
	party_start(STORE_SQLITE_MEMORY, /* seats_max= */ 1000);
	lanes = (struct lanes){.lanes = {party.lane}, .n = 1};
	parts = (struct engine_parts){.lanes = &lanes, .clock = &party.clock.clock};
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	lane_stop(party.lane, /* drain_ms= */ 0);
	feeder_release(&feeder);
	party_end();
	return 0;
}

static void start(void)
{
	struct feed feed = {&source, .under_way_max = MAX, .slice = SLICE, .begin = begin};

	assert_int_equal(feeder_start(&feeder, &feed, &parts, &feeder, /* err= */ NULL), HX_OK);
}

static void start_shared(void)
{
	struct feed feed = {&shared_source, .under_way_max = PLACES, .slice = SLICE, .begin = begin};

	assert_int_equal(feeder_start(&feeder, &feed, &parts, &feeder, /* err= */ NULL), HX_OK);
}

static void build_paid(struct unit *unit, const struct probe *p)
{
	subject_transition(unit, &p->stamp, &(struct move){p->subject, "open", "paid"}, 1);
}

static void make_due(int64_t first, int64_t n)
{
	for (int64_t id = first; id < first + n; id++)
		assert_int_equal(ask_lane(party.lane, build_create, id, 0).verdict, UNIT_WON);
}

/* Its work is done: it is not due any more. */
static void finish(int64_t subject)
{
	assert_int_equal(ask_lane(party.lane, build_paid, subject, 0).verdict, UNIT_WON);
	feeder_ended(&feeder, subject, /* rest_ms= */ 0);
}

static void wake(void)
{
	lane_wake(party.lane, (const int64_t[]){TOPIC}, 1);
}

/* The lane's clock stands still: time passes a little at a time while something is waited for. */
static bool time_passes(void)
{
	party_pass_ms(5);
	return true;
}

static void what_is_due_is_begun_once(void **state)
{
	(void)state;
	make_due(1, 5);
	start();
	AWAIT(begun_n == 5);
	for (int i = 0; i < 20; i++) { /* still due, looked for again and again, and under way */
		wake();
		time_passes();
		assert_int_equal(ask_lane(party.lane, build_read, 1, 0).verdict, UNIT_WON);
	}
	assert_int_equal(begun_n, 5);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(begun[i], i + 1);
}

static void what_falls_due_later_is_found_by_its_wake(void **state)
{
	(void)state;
	start();
	make_due(1, 1);
	wake();
	AWAIT(time_passes() && begun_n == 1);
	finish(1);
	make_due(2, 1);
	wake();
	AWAIT(time_passes() && begun_n == 2);
	assert_int_equal(begun[1], 2);
}

static void what_is_still_due_when_it_ended_is_begun_again(void **state)
{
	(void)state;
	make_due(1, 1);
	start();
	AWAIT(begun_n == 1);
	feeder_ended(&feeder, 1, /* rest_ms= */ 0);
	AWAIT(time_passes() && begun_n == 2);
	assert_int_equal(begun[1], 1);
}

static void no_more_than_may_be_are_under_way(void **state)
{
	(void)state;
	make_due(1, MAX + 100);
	start();
	/* A slice fits while MAX − SLICE are under way, so all places are taken in the end. */
	AWAIT(time_passes() && begun_n == MAX);
	for (int i = 0; i < 50; i++) {
		wake();
		time_passes();
		assert_int_equal(ask_lane(party.lane, build_read, 1, 0).verdict, UNIT_WON);
	}
	assert_int_equal(begun_n, MAX);
	assert_false(feeder_take(&feeder, 99999, TENANT));
	assert_false(feeder_has_room(&feeder, TENANT));
	for (size_t i = 0; i < MAX; i++)
		finish(begun[i]);
	AWAIT(time_passes() && begun_n == MAX + 100);
	assert_true(feeder_has_room(&feeder, TENANT));
}

static void what_could_not_begin_is_tried_again(void **state)
{
	(void)state;
	make_due(1, 3);
	refuse_n = 7;
	start();
	AWAIT(time_passes() && begun_n == 3);
	assert_int_equal(refuse_n, 0);
}

static void what_was_handed_over_is_not_begun_as_well(void **state)
{
	(void)state;
	start();
	assert_true(feeder_take(&feeder, 1, TENANT));
	assert_false(feeder_take(&feeder, 1, TENANT));
	make_due(1, 2);
	wake();
	AWAIT(time_passes() && begun_n == 1);
	assert_int_equal(begun[0], 2);
	feeder_ended(&feeder, 1, /* rest_ms= */ 0);
	AWAIT(time_passes() && begun_n == 2);
	assert_int_equal(begun[1], 1);
}

/* What comes in from outside always leaves a slice free: the watch goes on. */
static void handing_over_never_stops_the_watch(void **state)
{
	int64_t id = 5000;

	(void)state;
	start();
	while (feeder_take(&feeder, id, TENANT))
		id++;
	assert_int_equal(id, 5000 + MAX - SLICE + 1);
	feeder_ended(&feeder, 5000, /* rest_ms= */ 0);
	make_due(1, 3);
	wake();
	AWAIT(time_passes() && begun_n == 3);
}

static void what_rests_is_not_begun_before_its_time(void **state)
{
	(void)state;
	make_due(1, 1);
	start();
	AWAIT(begun_n == 1);
	feeder_ended(&feeder, 1, REST_MS);
	for (int i = 0; i < 100; i++) { /* half of its rest, in which it is looked for and found */
		wake();
		time_passes();
		assert_int_equal(ask_lane(party.lane, build_read, 1, 0).verdict, UNIT_WON);
	}
	assert_int_equal(begun_n, 1);
	AWAIT(time_passes() && begun_n == 2);
}

/* Many that rest, and are due for longer, do not hide one that can be begun. */
static void those_that_rest_do_not_hide_others(void **state)
{
	enum { RESTING = 5 * SLICE };

	(void)state;
	make_due(1, RESTING);
	start();
	AWAIT(time_passes() && begun_n == RESTING);
	for (int64_t id = 1; id <= RESTING; id++)
		feeder_ended(&feeder, id, INT64_C(1000000000));
	make_due(RESTING + 1, 1);
	wake();
	AWAIT(time_passes() && begun_n == RESTING + 1);
	assert_int_equal(begun[RESTING], RESTING + 1);
}

/* A rest ends by its time, also while nothing is due and the watch finds nothing: whoever hands it over again is not refused. */
static void what_has_rested_can_be_handed_over(void **state)
{
	(void)state;
	start();
	assert_true(feeder_take(&feeder, 1, TENANT));
	feeder_ended(&feeder, 1, REST_MS);
	party_pass_ms(REST_MS - 1);
	assert_false(feeder_take(&feeder, 1, TENANT));
	party_pass_ms(1);
	assert_true(feeder_take(&feeder, 1, TENANT));
	assert_int_equal(begun_n, 0);
}

/* Much of one workspace is due, and for longer; the other's is begun all the same, and what is begun of the first is half of all. */
static void a_workspace_takes_half_at_most(void **state)
{
	(void)state;
	make_due(1, 3 * PLACES);
	make_due(MODEST, 3);
	start_shared();
	AWAIT(time_passes() && begun_n == PLACES / 2 + 3);
	for (int i = 0; i < 100; i++) {
		time_passes();
		assert_int_equal(ask_lane(party.lane, build_read, 1, 0).verdict, UNIT_WON);
	}
	assert_int_equal(begun_n, PLACES / 2 + 3);
	for (size_t i = 0; i < PLACES / 2; i++)
		assert_true(begun[i] < MODEST);
	assert_false(feeder_has_room(&feeder, unit_tenant(slice_str("greedy"))));
	assert_true(feeder_has_room(&feeder, unit_tenant(slice_str("modest"))));
	assert_false(feeder_take(&feeder, 999, unit_tenant(slice_str("greedy"))));
	assert_true(feeder_take(&feeder, 999, unit_tenant(slice_str("modest"))));
	/* Later ones of the other workspace are found, too. */
	make_due(MODEST + 100, 2);
	AWAIT(time_passes() && begun_n == PLACES / 2 + 5);
}

/* Whoever was passed over goes on with each place that is given back, by a wake and not by time, to the end. */
static void who_was_passed_over_goes_on(void **state)
{
	size_t ended = 0;

	(void)state;
	make_due(1, 3 * PLACES);
	start_shared();
	AWAIT(time_passes() && begun_n == PLACES / 2);
	assert_int_equal(ask_lane(party.lane, build_read, 1, 0).verdict, UNIT_WON);
	while (ended < 3 * PLACES) {
		size_t more = ended + SLICE / 2;

		while (ended < more)
			finish(begun[ended++]);
		AWAIT(time_passes() && begun_n >= (more + PLACES / 2 < 3 * PLACES ? more + PLACES / 2 : 3 * PLACES));
	}
	assert_int_equal(begun_n, 3 * PLACES);
}

/* What rests has no place: another may begin. */
static void what_rests_has_no_place(void **state)
{
	(void)state;
	make_due(1, PLACES);
	start_shared();
	AWAIT(time_passes() && begun_n == PLACES / 2);
	for (size_t i = 0; i < SLICE; i++)
		feeder_ended(&feeder, begun[i], INT64_C(1000000000));
	AWAIT(time_passes() && begun_n == PLACES / 2 + SLICE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_due_is_begun_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_falls_due_later_is_found_by_its_wake, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_still_due_when_it_ended_is_begun_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_more_than_may_be_are_under_way, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_could_not_begin_is_tried_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_was_handed_over_is_not_begun_as_well, set_up, tear_down),
		cmocka_unit_test_setup_teardown(handing_over_never_stops_the_watch, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_rests_is_not_begun_before_its_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(those_that_rest_do_not_hide_others, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_has_rested_can_be_handed_over, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_workspace_takes_half_at_most, set_up, tear_down),
		cmocka_unit_test_setup_teardown(who_was_passed_over_goes_on, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_rests_has_no_place, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
