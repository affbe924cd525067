/*
 * Numbers for nodes, on both stores: each is had by one node at a time, whoever renews keeps its own, what has lapsed is
 * given away last, and a node whose number is gone takes another, which its ids then show.
 */
#include "engine/engine.h"
#include "engine/nodes.h"
#include "support/must_hold.h"
#include "unit/task/party.h"

static struct engine_metrics metrics;
static struct lanes lanes;

static int set_up(void **state)
{
	(void)state;
	memset(&metrics, 0, sizeof metrics);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	party_end();
	return 0;
}

static void join(struct nodes *nodes, struct db *db, struct clock *clock)
{
	struct hx_error err;

	if (nodes_join(nodes, db, "here", clock, &err))
		fail_msg("%s", err.detail);
	assert_in_range(nodes->lease.number, 0, NODES_MAX - 1);
	assert_int_equal(nodes_number(nodes), nodes->lease.number * NODE_NUMBERS);
}

static void run_sql(struct db *db, const char *sql)
{
	struct hx_error err;

	if (db->driver->script(db, sql, &err))
		fail_msg("%s", err.detail);
}

static void each_number_is_had_once(void **state)
{
	struct store *store = store_new(*(enum store_kind *)*state);
	struct db *db = store_open_migrated(store);
	bool taken[NODES_MAX] = {false};
	struct nodes nodes;
	struct hx_error err;

	for (size_t i = 0; i < NODES_MAX; i++) {
		join(&nodes, db, clock_system());
		assert_false(taken[nodes.lease.number]);
		taken[nodes.lease.number] = true;
	}
	assert_int_equal(nodes_join(&nodes, db, "one too many", clock_system(), &err), HX_BUSY);
	assert_non_null(strstr(err.detail, "128"));
	run_sql(db, "UPDATE hx_node SET until = 1 WHERE number = 77");
	join(&nodes, db, clock_system());
	assert_int_equal(nodes.lease.number, 77);
	db_close(db);
	store_free(store);
}

static void free_numbers_come_before_lapsed_ones(void **state)
{
	struct store *store = store_new(*(enum store_kind *)*state);
	struct db *db = store_open_migrated(store);
	struct nodes nodes, first;

	join(&first, db, clock_system());
	run_sql(db, "UPDATE hx_node SET until = 1");
	for (size_t i = 1; i < NODES_MAX; i++) {
		join(&nodes, db, clock_system());
		assert_int_not_equal(nodes.lease.number, first.lease.number);
	}
	join(&nodes, db, clock_system());
	assert_int_equal(nodes.lease.number, first.lease.number);
	db_close(db);
	store_free(store);
}

/* Two are started with one name; the first one is killed then, and its time passes: the third one has the name again. */
static void two_of_one_name_are_told_apart(void **state)
{
	struct store *store = store_new(STORE_SQLITE_FILE);
	struct db *db = store_open_migrated(store);
	struct nodes first, second, third;

	(void)state;
	join(&first, db, clock_system());
	join(&second, db, clock_system());
	assert_string_equal(first.name, "here");
	MUST_HOLD(strcmp(second.name, first.name) != 0,
		  "two nodes have one name, and nobody knows which one holds a claim");
	run_sql(db, "UPDATE hx_node SET until = 1");
	join(&third, db, clock_system());
	assert_string_equal(third.name, "here");
	db_close(db);
	store_free(store);
}

/* ---- many at once, each on a connection of its own ---- */

#define JOINERS 6
#define JOINS 15

struct joiner {
	pthread_t thread;
	struct db *db;
	enum hx_code code;
	int64_t numbers[JOINS];
};

static void *join_often(void *context)
{
	struct joiner *j = context;
	struct nodes nodes;
	struct hx_error err;

	for (size_t i = 0; i < JOINS && !j->code; i++) {
		j->code = nodes_join(&nodes, j->db, "many", clock_system(), &err);
		j->numbers[i] = nodes.lease.number;
	}
	return NULL;
}

static void nodes_that_start_together_get_different_numbers(void **state)
{
	struct store *store = store_new(STORE_POSTGRES);
	static struct joiner joiners[JOINERS];
	bool taken[NODES_MAX] = {false};

	(void)state;
	memset(joiners, 0, sizeof joiners);
	for (size_t i = 0; i < JOINERS; i++)
		joiners[i].db = store_open_migrated(store);
	for (size_t i = 0; i < JOINERS; i++)
		assert_int_equal(pthread_create(&joiners[i].thread, NULL, join_often, &joiners[i]), 0);
	for (size_t i = 0; i < JOINERS; i++)
		pthread_join(joiners[i].thread, NULL);
	for (size_t i = 0; i < JOINERS; i++) {
		assert_int_equal(joiners[i].code, HX_OK);
		for (size_t k = 0; k < JOINS; k++) {
			assert_false(taken[joiners[i].numbers[k]]);
			taken[joiners[i].numbers[k]] = true;
		}
		db_close(joiners[i].db);
	}
	store_free(store);
}

/* ---- keeping one ---- */

static struct nodes here;
static _Atomic int64_t fence_floor;

/* From then on `here` is the lane's, but for its token. Returns its number. */
static int64_t start_here(struct db *db)
{
	int64_t number;

	join(&here, db, &party.clock.clock);
	number = here.lease.number;
	lanes = (struct lanes){.lanes = {party.lane}, .n = 1};
	lanes_set_node_number(&lanes, nodes_number(&here));
	assert_int_equal(nodes_start(&here, &lanes, &fence_floor, &metrics, /* log= */ NULL), HX_OK);
	AWAIT(atomic_load(&metrics.nodes_live) == 1);
	return number;
}

static void build_number(struct unit *unit, const struct probe *p)
{
	static const struct db_stmt stmt = {
		.name = "test_number", .sql = "SELECT number FROM hx_node WHERE token = ?1", .in = "i", .out = "i"};

	UNIT_ADD(unit, UNIT_ANY, &stmt, db_int(p->subject));
}

static void build_until(struct unit *unit, const struct probe *p)
{
	static const struct db_stmt stmt = {.name = "test_until",
					    .sql = "SELECT until, token FROM hx_node WHERE number = ?1",
					    .in = "i",
					    .out = "ii"};

	UNIT_ADD(unit, UNIT_ANY, &stmt, db_int(p->subject));
}

static struct probe row_of(int64_t number)
{
	return ask_lane(party.lane, build_until, number, 0);
}

static void await_renewed(int64_t number, int64_t until_ms)
{
	struct mono_time deadline = mono_add_ms(clock_mono(clock_system()), AWAIT_MS);

	while (row_of(number).ints[0] < until_ms)
		if (clock_mono(clock_system()).ns > deadline.ns)
			fail_msg("waited in vain for number %d to be renewed", (int)number);
}

/* Ids of the lane carry this number. */
static int64_t number_in_ids(void)
{
	return ask_lane(party.lane, build_read, 1, 0).stamp.op >> 12 & ID_NODE_MAX;
}

static void who_lives_renews(void **state)
{
	struct db *db;
	int64_t number;

	(void)state;
	party_start(STORE_SQLITE_FILE, /* seats_max= */ 100);
	db = store_open_url(party.store->url, &party.clock.clock);
	number = start_here(db);
	for (int i = 0; i < 10; i++) {
		party_pass_ms(NODES_RENEW_MS);
		await_renewed(number, party.clock.wall_ms + NODE_LEASE_MS);
	}
	assert_int_equal(number_in_ids() / NODE_NUMBERS, number);
	db_close(db);
}

/* Silent for longer than its lease, and nobody has taken it: it is still its own. */
static void a_lapsed_number_that_nobody_took_is_kept(void **state)
{
	struct db *db;

	(void)state;
	party_start(STORE_SQLITE_FILE, /* seats_max= */ 100);
	db = store_open_url(party.store->url, &party.clock.clock);

	int64_t number = start_here(db);

	party_pass_ms(5 * NODE_LEASE_MS);
	await_renewed(number, party.clock.wall_ms + NODE_LEASE_MS);
	assert_int_equal(row_of(number).ints[1], here.token);
	db_close(db);
}

static void who_lost_its_number_takes_another(void **state)
{
	struct db *db;
	char sql[100];

	(void)state;
	party_start(STORE_SQLITE_FILE, /* seats_max= */ 100);
	db = store_open_url(party.store->url, &party.clock.clock);

	int64_t number = start_here(db), until_ms = party.clock.wall_ms + INT64_C(100) * NODE_LEASE_MS;

	snprintf(sql, sizeof sql, "UPDATE hx_node SET token = 1, until = %lld", (long long)until_ms);
	run_sql(db, sql);
	party_pass_ms(NODES_RENEW_MS);
	AWAIT(atomic_load(&metrics.nodes_live) == 2);

	int64_t another = ask_lane(party.lane, build_number, here.token, 0).ints[0];

	assert_int_not_equal(another, number);
	assert_int_equal(row_of(number).ints[0], until_ms); /* the other's is left alone */
	assert_int_equal(row_of(number).ints[1], 1);
	assert_int_equal(row_of(another).ints[1], here.token);
	assert_int_equal(number_in_ids() / NODE_NUMBERS, another);
	db_close(db);
}

/* Whoever was out of sight when the fences were raised hears of it when it comes back; and they never fall. */
static void who_comes_back_hears_of_the_floor(void **state)
{
	struct db *db;

	(void)state;
	atomic_store(&fence_floor, 2000);
	party_start(STORE_SQLITE_FILE, /* seats_max= */ 100);
	db = store_open_url(party.store->url, &party.clock.clock);

	int64_t number = start_here(db);

	run_sql(db, "UPDATE hx_fences SET floor = 3000");
	party_pass_ms(5 * NODE_LEASE_MS);
	AWAIT(atomic_load(&fence_floor) == 3000);
	run_sql(db, "UPDATE hx_fences SET floor = 1000");
	party_pass_ms(NODES_RENEW_MS);
	await_renewed(number, party.clock.wall_ms + NODE_LEASE_MS);
	assert_int_equal(atomic_load(&fence_floor), 3000);
	db_close(db);
}

int main(int argc, char **argv)
{
	static enum store_kind sqlite = STORE_SQLITE_FILE, postgres = STORE_POSTGRES;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(each_number_is_had_once, &sqlite),
		cmocka_unit_test_prestate(each_number_is_had_once, &postgres),
		cmocka_unit_test_prestate(free_numbers_come_before_lapsed_ones, &sqlite),
		cmocka_unit_test_prestate(free_numbers_come_before_lapsed_ones, &postgres),
		cmocka_unit_test(two_of_one_name_are_told_apart),
		cmocka_unit_test(nodes_that_start_together_get_different_numbers),
		cmocka_unit_test_setup_teardown(who_lives_renews, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_lapsed_number_that_nobody_took_is_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(who_lost_its_number_takes_another, set_up, tear_down),
		cmocka_unit_test_setup_teardown(who_comes_back_hears_of_the_floor, set_up, tear_down),
	};

	ONLY_THE_NAMED(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
