/*
 * The readers beside a real lane: they see what the lane has committed, are not held up by it nor hold it up, refuse
 * one past their limit, come back after a lost connection, and stop.
 */
#include "engine/readers.h"
#include "flow/single.h"
#include "unit/task/party.h"

#define SEATS 5
#define APPLICATION "hapax-test-readers"

static struct readers *readers;

static void start_on(const char *url)
{
	struct readers_options options = {
		.url = url,
		.clock = &party.clock.clock,
		.node = "here",
		.seats_max = SEATS,
		.lane = party.lane,
	};
	struct hx_error err;

	if (readers_new(&options, &readers, &err))
		fail_msg("%s", err.detail);
}

static void start(void **state)
{
	party_start(*(enum store_kind *)*state, /* seats_max= */ 100);
	start_on(party.store->url);
}

static int tear_down(void **state)
{
	(void)state;
	pthread_mutex_lock(&meeting);
	lane_may_go = true; /* a test may have failed while it held a reader */
	pthread_cond_broadcast(&news);
	pthread_mutex_unlock(&meeting);
	readers_free(readers);
	readers = NULL;
	party_end();
	return 0;
}

static void read_it(struct caller *c, int64_t subject)
{
	caller_probe(c, build_read, subject, 0);
	assert_int_equal(readers_submit(readers, &c->seat), HX_OK);
}

/* ---- readers held still, all of them ---- */

static struct caller holders[READERS_N];
static size_t held_n;

static void hold_done(struct seat *seat, enum hx_code code)
{
	(void)code;
	pthread_mutex_lock(&meeting);
	held_n++;
	pthread_cond_broadcast(&news);
	while (!lane_may_go)
		pthread_cond_wait(&news, &meeting);
	held_n--;
	pthread_mutex_unlock(&meeting);
	caller_done(seat, code);
}

static void hold_all(void)
{
	lane_may_go = false;
	for (size_t i = 0; i < READERS_N; i++) {
		caller_probe(&holders[i], build_read, 1, 0);
		holders[i].seat.done = hold_done;
		assert_int_equal(readers_submit(readers, &holders[i].seat), HX_OK);
	}
	AWAIT(held_n == READERS_N);
}

static void let_all_go(void)
{
	pthread_mutex_lock(&meeting);
	lane_may_go = true;
	pthread_cond_broadcast(&news);
	pthread_mutex_unlock(&meeting);
	AWAIT(count_done(holders, READERS_N) == READERS_N);
}

/* ---- tests ---- */

static void what_was_committed_is_seen_at_once(void **state)
{
	struct caller c;

	start(state);
	for (int64_t subject = 1; subject <= 100; subject++) {
		read_it(&c, subject);
		AWAIT(c.done);
		assert_int_equal(c.code, HX_OK);
		assert_int_equal(c.probe.rows_n, 0);
		assert_int_equal(ask_lane(party.lane, build_create, subject, 0).verdict, UNIT_WON);
		read_it(&c, subject);
		AWAIT(c.done);
		assert_int_equal(c.code, HX_OK);
		assert_int_equal(c.probe.rows_n, 1);
		assert_string_equal(c.probe.text, "open");
	}
}

static void lane_and_readers_do_not_wait_for_each_other(void **state)
{
	struct caller holder, c;

	start(state);
	hold_all();
	assert_int_equal(ask_lane(party.lane, build_create, 1, 0).verdict, UNIT_WON);
	let_all_go();
	hold_lane(party.lane, &holder);
	read_it(&c, 1);
	AWAIT(c.done);
	assert_int_equal(c.probe.rows_n, 1);
	let_lane_go();
}

static void many_wait_and_one_more_is_refused(void **state)
{
	struct caller c[SEATS + 1];

	start(state);
	hold_all();
	for (int i = 0; i < SEATS; i++)
		read_it(&c[i], 1);
	caller_probe(&c[SEATS], build_read, 1, 0);
	assert_int_equal(readers_submit(readers, &c[SEATS].seat), HX_BUSY);
	let_all_go();
	AWAIT(count_done(c, SEATS) == SEATS);
	for (int i = 0; i < SEATS; i++)
		assert_int_equal(c[i].code, HX_OK);
	read_it(&c[SEATS], 1);
	AWAIT(c[SEATS].done);
	assert_int_equal(c[SEATS].code, HX_OK);
}

/* Who has filled its part of the room, and has its lists read first, is told so; another one is served in turn. */
static void a_neighbour_who_fills_the_line_leaves_room(void **state)
{
	struct caller c[SEATS], other, more;
	int mine = 0;

	start(state);
	hold_all();
	for (int i = 0; i < SEATS; i++) {
		caller_probe(&c[i], build_read, 1, 0);
		c[i].seat.tenant = 1;
		mine += readers_submit(readers, &c[i].seat) == HX_OK;
	}
	assert_int_equal(mine, (SEATS + 1) / 2);
	caller_probe(&other, build_read, 1, 0);
	other.seat.tenant = 2;
	assert_int_equal(readers_submit(readers, &other.seat), HX_OK);
	caller_probe(&more, build_read, 1, 0);
	more.seat.tenant = 1;
	assert_int_equal(readers_submit(readers, &more.seat), HX_BUSY);
	let_all_go();
	AWAIT(other.done && count_done(c, (size_t)mine) == (size_t)mine);
}

static void *stop(void *context)
{
	(void)context;
	readers_stop(readers);
	return NULL;
}

static void a_stop_ends_what_waits_and_takes_nothing_new(void **state)
{
	struct caller c[SEATS], late;
	pthread_t stopper;

	start(state);
	hold_all();
	for (int i = 0; i < SEATS; i++)
		read_it(&c[i], 1);
	assert_int_equal(pthread_create(&stopper, NULL, stop, NULL), 0);
	caller_probe(&late, build_read, 1, 0);
	AWAIT(readers_submit(readers, &late.seat) == HX_STOPPING); /* full until then */
	let_all_go();
	pthread_join(stopper, NULL);
	for (int i = 0; i < SEATS; i++) {
		assert_true(c[i].done);
		assert_int_equal(c[i].code, HX_STOPPING);
	}
	for (int i = 0; i < READERS_N; i++)
		assert_int_equal(holders[i].code, HX_OK);
	assert_int_equal(readers_submit(readers, &late.seat), HX_STOPPING);
	readers_stop(readers); /* twice is once */
}

static void what_writes_is_refused(void **state)
{
	struct caller c;

	start(state);
	caller_probe(&c, build_create, 1, 0);
	assert_int_equal(readers_submit(readers, &c.seat), HX_OK);
	AWAIT(c.done);
	assert_int_equal(c.probe.verdict, UNIT_FAILED);
	read_it(&c, 1);
	AWAIT(c.done);
	assert_int_equal(c.code, HX_OK);
	assert_int_equal(c.probe.rows_n, 0);
}

/* What lists over HTTP are: a single whose failure has a code of its own. */
static const struct db_stmt stmt_of_nothing = {
	.name = "nothing", .sql = "SELECT id FROM nowhere", .in = "", .out = "i"};

static void build_nothing(const struct single *single, struct unit *unit)
{
	(void)single;
	unit_add(unit, UNIT_ANY, &stmt_of_nothing, 0, NULL);
}

static enum hx_code never_answered(struct single *single, const struct unit_result *result)
{
	(void)single, (void)result;
	return HX_INTERNAL;
}

static void what_the_store_cannot_do_is_told(void **state)
{
	struct single single;
	struct caller c;

	start(state);
	single_init(&single, NULL, build_nothing, never_answered);
	caller_sit(&c, &single.task);
	assert_int_equal(readers_submit(readers, &c.seat), HX_OK);
	AWAIT(c.done);
	assert_true(c.code == HX_STORE_UNAVAILABLE || c.code == HX_DATA_ERROR);
	read_it(&c, 1);
	AWAIT(c.done);
	assert_int_equal(c.code, HX_OK);
}

static void a_lost_connection_is_made_again(void **state)
{
	char url[1024], killed[16];
	struct caller c[10];
	PGconn *raw;

	party_start(*(enum store_kind *)*state, 100);
	store_url(party.store, /* port= */ 0, APPLICATION, url, sizeof url);
	start_on(url);
	raw = store_raw(party.store);
	raw_run(raw,
		"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = '" APPLICATION
		"'",
		killed, sizeof killed);
	assert_int_equal(atoi(killed), READERS_N);
	for (int i = 0; i < 10; i++) {
		read_it(&c[i], 1);
		AWAIT(c[i].done);
		assert_int_equal(c[i].code, HX_OK);
	}
	PQfinish(raw);
}

static void in_memory_the_lane_reads(void **state)
{
	struct caller holder, c;

	start(state);
	assert_int_equal(ask_lane(party.lane, build_create, 1, 0).verdict, UNIT_WON);
	hold_lane(party.lane, &holder);
	read_it(&c, 1);
	assert_false(is_done(&c));
	let_lane_go();
	AWAIT(c.done);
	assert_int_equal(c.probe.rows_n, 1);
	readers_stop(readers);
	caller_probe(&c, build_read, 1, 0);
	assert_int_equal(readers_submit(readers, &c.seat), HX_STOPPING);
}

static void a_store_that_is_not_there_is_an_error(void **state)
{
	struct readers_options options = {.url = "sqlite:/nowhere/at/all.db", .clock = clock_system(), .seats_max = 1};
	struct hx_error err = {0};

	(void)state;
	assert_int_equal(readers_new(&options, &readers, &err), HX_STORE_UNAVAILABLE);
	assert_non_null(strstr(err.detail, "/nowhere/at/all.db"));
	assert_null(readers);
	readers_stop(NULL);
	readers_free(NULL);
}

static enum store_kind in_file = STORE_SQLITE_FILE, in_memory = STORE_SQLITE_MEMORY, in_postgres = STORE_POSTGRES;

#define ONE(test, kind)                                                                                                \
	{                                                                                                              \
#test "_" #kind, test, NULL, tear_down, &(kind)                                                        \
	}
#define BOTH(test) ONE(test, in_file), ONE(test, in_postgres)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(what_was_committed_is_seen_at_once),
		BOTH(lane_and_readers_do_not_wait_for_each_other),
		ONE(many_wait_and_one_more_is_refused, in_file),
		ONE(a_neighbour_who_fills_the_line_leaves_room, in_file),
		ONE(a_stop_ends_what_waits_and_takes_nothing_new, in_file),
		BOTH(what_writes_is_refused),
		BOTH(what_the_store_cannot_do_is_told),
		ONE(a_lost_connection_is_made_again, in_postgres),
		ONE(in_memory_the_lane_reads, in_memory),
		ONE(a_store_that_is_not_there_is_an_error, in_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
