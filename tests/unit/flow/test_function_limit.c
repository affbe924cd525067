/* Limits of functions: who gets a turn, who stands in line, and who is next. See flow/function_limit.c. */
#include "unit/flow/function_world.h"

#define ONE_BY_CUSTOMER ",'limits':{'concurrency':{'by':'.input.customer','max':1}}"
#define ADA "{\"customer\":\"ada\"}"
#define BOB "{\"customer\":\"bob\"}"
#define SLOTS                                                                                                          \
	"SELECT coalesce(group_concat(holder || ' ' || held, ', '), 'none') FROM (SELECT holder, held FROM hx_slot ORDER BY holder)"
#define LINE "SELECT coalesce(group_concat(subject), 'none') FROM hx_run WHERE due_at IS NOT NULL"

static void start(struct world *w, int64_t run, const char *input)
{
	fixture.run = run;
	fixture.input = input;
	assert_int_equal(create(w, fixture.machine), UNIT_WON);
}

static enum hx_code end_turn(struct world *w, const char *state)
{
	char body[100];

	snprintf(body, sizeof body, "{'end':{'state':'%s'}}", state);
	return call(w, body);
}

static void three_are_there(struct world *w)
{
	define(ONE_BY_CUSTOMER);
	start(w, 77, ADA);
	start(w, 78, ADA);
	start(w, 79, BOB);
	assert_int_equal(claim(w, "1", 0), 1);
	assert_int_equal(fixture.run, 77);
}

static void test_a_turn_needs_a_slot(void **state)
{
	struct world *w = *state;
	int64_t fence;

	three_are_there(w);
	fence = fixture.fence;
	assert_int_equal(claim(w, "1", 0), 1);
	MUST_HOLD(fixture.run == 79, "more turns are out at once than the limit says");
	assert_int_equal(claim(w, "1", 0), 0);
	assert_is(w, SLOTS, "77 1, 78 0, 79 1");
	fixture.run = 77;
	fixture.fence = fence;
	fixture.seq = 0;
	assert_int_equal(end_turn(w, "completed"), HX_OK);
	MUST_HOLD(claim(w, "1", 0) == 1, "nobody gets the slot that is free");
	assert_int_equal(fixture.run, 78);
	assert_is(w, SLOTS, "78 1, 79 1");
	assert_is(w, LINE, "none");
}

/* Who waits holds none: between two turns others go. */
static void test_a_slot_is_held_with_the_turn(void **state)
{
	struct world *w = *state;

	three_are_there(w);
	assert_int_equal(call(w, "{'entries':[{'kind':'event','name':'e','n':0,'event':'go'}],"
				 "'end':{'state':'suspended','awaits':[{'kind':'event','name':'e','n':0}]}}"),
			 HX_OK);
	MUST_HOLD(claim(w, "1", 0) == 1 && fixture.run == 78, "one that waits keeps its slot");
	fixture.run = 77;
	assert_int_equal(verb(w, (struct run_verb_request){.kind = RUN_EVENT, .name = slice_str("go")}), HX_OK);
	assert_int_equal(claim(w, "1", 0), 1);
	assert_int_equal(fixture.run, 79);
	assert_is(w, SLOTS, "77 0, 78 1, 79 1");
}

static void test_a_worker_that_is_lost_keeps_it_until_its_lease_is_over(void **state)
{
	struct world *w = *state;

	three_are_there(w);
	assert_int_equal(claim(w, "1", 0), 1); /* 79; 78 is in line */
	fake_clock_advance_ms(&w->clock, 60001);
	fixture.run = 77;
	look(w);
	assert_is(w, "SELECT CAST(count(*) AS text) FROM hx_slot WHERE held = 1 AND holder < 79", "0");
	assert_int_equal(claim(w, "1", 0), 1);
	assert_int_equal(claim(w, "1", 0), 0);
	assert_is(w, "SELECT CAST(count(*) AS text) FROM hx_slot WHERE held = 1 AND holder < 79", "1");
}

static void test_who_leaves_the_line_leaves_nothing(void **state)
{
	static const enum run_verb_kind kinds[] = {RUN_PAUSE, RUN_CANCEL};
	struct world *w = *state;

	three_are_there(w);
	assert_int_equal(claim(w, "1", 0), 1);
	for (size_t i = 0; i < 2; i++) {
		fixture.run = 78;
		assert_int_equal(verb(w, (struct run_verb_request){.kind = kinds[i]}), HX_OK);
		assert_is(w, SLOTS, "77 1, 79 1");
		assert_is(w, LINE, "none");
	}
}

static void test_a_rate_counts_a_run_once(void **state)
{
	struct world *w = *state;

	define(",'limits':{'rate':{'max':1,'per':'1h'}}");
	start(w, 77, ADA);
	start(w, 78, ADA);
	assert_int_equal(claim(w, "1", 0), 1);
	assert_int_equal(fixture.run, 77);
	assert_int_equal(end_turn(w, "released"), HX_OK);
	assert_int_equal(claim(w, "1", 0), 1);
	assert_int_equal(fixture.run, 77);
	MUST_HOLD(claim(w, "1", 0) == 0, "more are begun than the rate says");
	fake_clock_advance_ms(&w->clock, HOUR_MS);
	assert_int_equal(claim(w, "1", 0), 1);
	assert_int_equal(fixture.run, 78);
	assert_is(w, SLOTS, "none");
	assert_is(w, LINE, "none");
}

/* Who waits for its time does not stand in line for a slot besides. */
static void test_one_waits_for_one_thing(void **state)
{
	struct world *w = *state;

	define(",'limits':{'concurrency':{'max':1},'rate':{'max':1,'per':'1h'}}");
	start(w, 77, ADA);
	start(w, 78, ADA);
	start(w, 79, ADA);
	assert_int_equal(claim(w, "1", 0), 1);
	sql(w, "INSERT INTO hx_slot (name, holder, held, at, key) SELECT name, 78, 0, 0, key FROM hx_slot");
	assert_int_equal(claim(w, "1", 0), 0);
	assert_is(w, SLOTS, "77 1, 78 2, 79 2");
	fake_clock_advance_ms(&w->clock, HOUR_MS);
	assert_int_equal(claim(w, "1", 0), 0);
	MUST_BE(w, SLOTS, "77 1, 78 0, 79 2",
		"who waits for a slot keeps its place before those that wait for their time");
}

static void test_a_singleton(void **state)
{
	struct world *w = *state;

	define(",'limits':{'singleton':{}}");
	fixture.of_name = true;
	start(w, 77, ADA);
	fixture.run = 78;
	assert_int_equal(create(w, fixture.machine), UNIT_LOST);
	assert_int_equal(claim(w, "1", 0), 1);
	assert_int_equal(call(w, "{'end':{'state':'failed','error':{'code':'BROKE'}}}"), HX_OK);
	start(w, 78, ADA);
	fixture.run = 77;
	assert_int_equal(verb(w, (struct run_verb_request){.kind = RUN_RETRY}), HX_OK);
	assert_is(w, "SELECT group_concat(run) FROM (SELECT run FROM hx_singleton ORDER BY run)", "77,78");
}

static void test_a_start_is_put_off(void **state)
{
	struct world *w = *state;
	struct run_spec again = {
		.workspace = slice_str("default"), .requester = slice_str("me"), .input = slice_str(BOB)};

	define(",'timeout':'1h','limits':{'debounce':{'for':'5s'}}");
	fixture.of_name = true;
	start(w, 77, ADA);
	again.machine = fixture.machine;
	run_describe(&again, &fixture.arena);
	MUST_HOLD(claim(w, "1", 0) == 0, "a turn is handed out while starts may come");
	fake_clock_advance_ms(&w->clock, 4000);
	assert_int_equal(
		verb(w, (struct run_verb_request){.kind = RUN_DEBOUNCE, .start = &again, .workflow = slice_str("f")}),
		HX_OK);
	assert_is(w, "SELECT input FROM hx_run", BOB);
	fake_clock_advance_ms(&w->clock, 4999);
	assert_int_equal(claim(w, "1", 0), 0);
	fake_clock_advance_ms(&w->clock, 1);
	assert_int_equal(claim(w, "1", 0), 1);
	assert_is(w, "SELECT CAST(due_at - hx_now_ms() AS text) FROM hx_function", "3600000");
	assert_is(w, LINE, "none");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_set_up, forget)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_turn_needs_a_slot),
		TEST(test_a_slot_is_held_with_the_turn),
		TEST(test_a_worker_that_is_lost_keeps_it_until_its_lease_is_over),
		TEST(test_who_leaves_the_line_leaves_nothing),
		TEST(test_a_rate_counts_a_run_once),
		TEST(test_one_waits_for_one_thing),
		TEST(test_a_singleton),
		TEST(test_a_start_is_put_off),
	};

	ONLY_THE_NAMED(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
