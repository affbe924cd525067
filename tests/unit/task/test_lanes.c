/* The lanes of a node: how many a store gets, which one a subject has, and that they open and close whole. */
#include "unit/task/party.h"

#include "base/id.h"

static struct lanes lanes;
static struct hand_clock clock_by_hand;

static struct lane_options options_for(const char *url)
{
	clock_by_hand.clock = (struct clock){.wall = hand_clock_wall, .mono = hand_clock_mono};
	clock_by_hand.wall_ms = START_MS;
	return (struct lane_options){
		.db = {.url = url, .clock = &clock_by_hand.clock, .exclusive = true},
		.migrate = true,
		.clock = &clock_by_hand.clock,
		.node = "here",
		.node_number = ID_NODE_MAX, /* the numbers after it begin at 0 again */
		.seats_max = 100,
		.resolve_ms = 1000,
	};
}

static void sqlite_has_one_lane_however_many_are_asked_for(void **state)
{
	struct lane_options options = options_for("sqlite::memory:");
	struct hx_error err;

	(void)state;
	assert_int_equal(lanes_open(&lanes, &options, /* n= */ 4, &err), HX_OK);
	assert_int_equal(lanes.n, 1);
	assert_null(lanes.pulse);
	for (int64_t subject = -5; subject < 5; subject++)
		assert_ptr_equal(lanes_of(&lanes, subject), lanes.lanes[0]);
	lanes_close(&lanes);
	assert_int_equal(lanes.n, 0);
	lanes_close(&lanes);
}

static void a_subject_always_has_the_same_lane(void **state)
{
	struct lanes again = {.n = 5};

	(void)state;
	lanes = (struct lanes){.n = 5};
	for (size_t i = 0; i < 5; i++)
		lanes.lanes[i] = again.lanes[i] = (struct lane *)(uintptr_t)(i + 1);
	for (int64_t i = -1000; i < 1000; i++) {
		struct lane *first = lanes_of(&lanes, i * i * i);

		assert_in_range((uintptr_t)first, 1, 5);
		assert_ptr_equal(lanes_of(&lanes, i * i * i), first);
		assert_ptr_equal(lanes_of(&again, i * i * i), first); /* nothing but the number decides */
	}
	lanes = (struct lanes){0};
}

/* Ids grow with time and end in a node and a counter; whichever part moves, all lanes get their share. */
static void subjects_spread_over_the_lanes(void **state)
{
	static const int64_t strides[] = {1, INT64_C(1) << 12, INT64_C(1) << 22, INT64_C(1000) << 22, 6};

	(void)state;
	for (size_t n = 2; n <= LANES_MAX; n++) {
		lanes = (struct lanes){.n = n};
		for (size_t i = 0; i < n; i++)
			lanes.lanes[i] = (struct lane *)(uintptr_t)(i + 1);
		for (size_t s = 0; s < sizeof strides / sizeof *strides; s++) {
			size_t count[LANES_MAX] = {0};

			for (int64_t i = 0; i < 32000; i++)
				count[(uintptr_t)lanes_of(&lanes, (INT64_C(90000000000) << 22) + i * strides[s]) - 1]++;
			for (size_t i = 0; i < n; i++)
				assert_in_range(count[i], 32000 / n / 2, 32000 / n * 2);
		}
	}
	lanes = (struct lanes){0};
}

static void lanes_that_cannot_open_leave_nothing_behind(void **state)
{
	struct lane_options options = options_for("sqlite:/no/such/folder/store.db");
	struct hx_error err;

	(void)state;
	assert_int_equal(lanes_open(&lanes, &options, 1, &err), HX_STORE_UNAVAILABLE);
	assert_int_equal(lanes.n, 0);
	lanes_close(&lanes);
	options.db.url = "mysql://nowhere";
	assert_int_equal(lanes_open(&lanes, &options, 3, &err), HX_CONFIG_ERROR);
	assert_int_equal(lanes.n, 0);
	assert_null(lanes.pulse);
}

static void stats_are_the_sum(void **state)
{
	struct lane_options options = options_for("sqlite::memory:");
	struct lane_stats stats;
	struct hx_error err;

	(void)state;
	assert_int_equal(lanes_open(&lanes, &options, 1, &err), HX_OK);
	for (int64_t subject = 1; subject <= 5; subject++)
		assert_int_equal(ask_lane(lanes_of(&lanes, subject), build_create, subject, 0).verdict, UNIT_WON);
	assert_int_equal(ask_lane(lanes_of(&lanes, 1), build_create, 1, 0).verdict, UNIT_LOST);
	lanes_stop(&lanes, 0);
	lanes_read_stats(&lanes, &stats);
	assert_int_equal(stats.group.units, 6);
	assert_int_equal(stats.group.won, 5);
	assert_int_equal(stats.group.lost, 1);
	lanes_close(&lanes);
}

/* On PostgreSQL: several lanes, a pulse of their own, work for all of them, and wakes across. */
static void postgres_has_several_lanes_and_a_pulse(void **state)
{
	enum { N = 4, SUBJECTS = 64 };
	static struct caller watchers[SUBJECTS], movers[SUBJECTS];
	struct store *store;
	struct lane_options options;
	struct lane_stats one;
	struct hx_error err;
	size_t used = 0;

	(void)state;
	store = store_new(STORE_POSTGRES);
	options = options_for(store->url);
	if (lanes_open(&lanes, &options, N, &err) != HX_OK)
		fail_msg("%s", err.detail);
	assert_int_equal(lanes.n, N);
	assert_non_null(lanes.pulse);
	for (int64_t i = 0; i < SUBJECTS; i++)
		assert_int_equal(ask_lane(lanes_of(&lanes, i + 1), build_create, i + 1, 0).verdict, UNIT_WON);
	for (int64_t i = 0; i < SUBJECTS; i++) { /* each watch on another lane than its subject's */
		size_t other = (size_t)i % N;

		caller_watch(&watchers[i], i + 1, "paid", START_MS + FAR_AWAY_MS);
		submit(lanes.lanes[other], &watchers[i]);
	}
	for (int64_t i = 0; i < SUBJECTS; i++) {
		transition_init(&movers[i].transition, &(struct move){i + 1, "open", "paid"}, 1);
		caller_sit(&movers[i], &movers[i].transition.task);
		submit(lanes_of(&lanes, i + 1), &movers[i]);
	}
	AWAIT(count_done(movers, SUBJECTS) == SUBJECTS);
	AWAIT(count_done(watchers, SUBJECTS) == SUBJECTS);
	for (int64_t i = 0; i < SUBJECTS; i++) {
		assert_int_equal(movers[i].code, HX_OK);
		assert_int_equal(watchers[i].code, HX_OK);
	}
	lanes_stop(&lanes, 0);
	for (size_t i = 0; i < N; i++) {
		lane_read_stats(lanes.lanes[i], &one);
		used += one.group.won > 0;
	}
	assert_int_equal(used, N);
	lanes_close(&lanes);
	store_free(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sqlite_has_one_lane_however_many_are_asked_for),
		cmocka_unit_test(a_subject_always_has_the_same_lane),
		cmocka_unit_test(subjects_spread_over_the_lanes),
		cmocka_unit_test(lanes_that_cannot_open_leave_nothing_behind),
		cmocka_unit_test(stats_are_the_sum),
		cmocka_unit_test(postgres_has_several_lanes_and_a_pulse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
