/* How many a gate on Redis holds: counted, whatever else ends or deletes them. Needs the private Redis of tests/with-redis. */
#include "unit/gate/redis_gate.h"

#define HELD_MAX 250

static int64_t held_now(void)
{
	struct gate_ask tally = {.op = GATE_TALLY};

	assert_int_equal(hear(store, &tally, &heard), GATE_DONE);
	for (size_t i = 0; i < heard.reply.sights_n; i++)
		assert_int_equal(heard.reply.sights[i].state, GATE_HELD);
	return heard.reply.held;
}

/* They are held from now on. */
static void hold(struct hx_gate_claim claims[], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		claims[i] = claim_of((unsigned)i, 0, 1, LONG_MS);
		claims[i].hold = 1;
		assert_int_equal(acquire(&claims[i]), GATE_ACQUIRED);
	}
	AWAIT(BACK_MS_MAX, held_now() == (int64_t)n);
}

/* Deleted, evicted, or ended by a gate that knows no set: wherever it stands in the order, it is not counted for long. */
static void what_ends_by_other_hands_is_not_counted(void **state)
{
	static struct hx_gate_claim held[HELD_MAX];

	(void)state;
	hold(held, 10);
	raw_do("DEL", key_of(&held[0]), NULL, NULL);
	raw_do("HSET", key_of(&held[1]), "response", "an older gate's");
	raw_do("DEL", key_of(&held[9]), NULL, NULL);
	assert_int_equal(held_now(), 7);
	raw_do("FLUSHALL", "SYNC", NULL, NULL);
	hold(held, HELD_MAX);
	for (size_t i = 0; i < HELD_MAX; i += 2)
		raw_do("DEL", key_of(&held[i]), NULL, NULL);
	AWAIT(BACK_MS_MAX, held_now() == HELD_MAX / 2); /* some at a time */
}

/* A record of version 0.1 is in no set; who meets it puts it in. */
static void what_is_met_and_held_is_counted(void **state)
{
	struct hx_gate_claim held[2];
	struct gate_ask list = {.op = GATE_LOOK, .sought = GATE_SEEK_HELD, .budget = 1000};

	(void)state;
	hold(held, 2);
	raw_do("DEL", "hapax:gate:held", NULL, NULL);
	assert_int_equal(held_now(), 0);
	assert_int_equal(others_hear(&held[0]), GATE_HELD);
	assert_int_equal(held_now(), 1);
	for (int64_t next = 1; next; next = heard.reply.next) {
		list.after = next == 1 ? 0 : next;
		assert_int_equal(hear(store, &list, &heard), GATE_DONE);
	}
	assert_int_equal(held_now(), 2);
	raw_do("CONFIG", "SET", "maxmemory", "1");
	raw_do("DEL", "hapax:gate:held", NULL, NULL);
	assert_int_equal(others_hear(&held[0]),
			 GATE_HELD); /* there is no room in the set, and it is held all the same */
	raw_do("CONFIG", "SET", "maxmemory", "0");
}

/* Its holder asks again, and does not want it held any more. */
static void what_holds_no_longer_is_not_counted(void **state)
{
	struct hx_gate_claim claim;

	(void)state;
	hold(&claim, 1);
	claim.hold = 0;
	assert_int_equal(acquire(&claim), GATE_ACQUIRED);
	assert_true(ttl_of(&claim) > 0);
	assert_int_equal(RAW_NUMBER(slice_str("ZCARD"), slice_str("hapax:gate:held")), 0);
}

/* What was ended twice was counted once. */
static void ends_that_are_repeated_change_nothing(void **state)
{
	struct hx_gate_claim held[4];

	(void)state;
	hold(held, 4);
	for (int round = 0; round < 2; round++) {
		struct gate_ask resolve = ask_of(GATE_RESOLVE, &held[0]), forget = ask_of(GATE_FORGET, &held[1]);

		resolve.response = slice_str("done");
		resolve.resolver[0] = 7;
		assert_int_equal(hear(store, &resolve, &heard), GATE_DONE);
		assert_int_equal(hear(store, &forget, &heard), round ? GATE_ABSENT : GATE_DONE);
		assert_int_equal(hear_complete(store, &held[2], slice_str("late")), GATE_DONE);
		assert_int_equal(held_now(), 1);
	}
	assert_int_equal(RAW_NUMBER(slice_str("ZCARD"), slice_str("hapax:gate:held")), 1);
}

/* ttls that no calendar knows: the script must not fail between its two writes. */
static void the_longest_times_are_no_overflow(void **state)
{
	struct hx_gate_claim claim = claim_of(1, 0, INT64_MAX, INT64_MAX);

	(void)state;
	assert_int_equal(acquire(&claim), GATE_ACQUIRED);
	assert_true(ttl_of(&claim) > 0);
	assert_int_equal(others_hear(&claim), GATE_IN_FLIGHT);
	assert_true(heard.reply.lease_left_ms > 0);
	assert_int_equal(hear_complete(store, &claim, slice_str("done")), GATE_DONE);
	assert_true(ttl_of(&claim) > 0);
	assert_int_equal(others_hear(&claim), GATE_COMPLETED);
}

/* Other people's keys, also ones that look like ours, are passed over; a walk over many ends. */
static void a_look_walks_through_a_crowded_database(void **state)
{
	static const char crowd[] = "for i = 1, 1000 do\n"
				    "  redis.call('SET', 'hapax:gate:' .. i, 1)\n"
				    "  redis.call('HSET', 'hapax:gate:x' .. i, 'text', 'x')\n"
				    "  redis.call('HSET', 'other:' .. i, 'text', 'key')\n"
				    "end\n";
	struct hx_gate_claim claim = claim_of(1, 0, LONG_MS, LONG_MS);
	struct gate_ask look = ask_of(GATE_LOOK, &claim);
	size_t seen = 0, steps = 0;

	(void)state;
	freeReplyObject(RAW(slice_str("EVAL"), slice_str(crowd), slice_str("0")));
	assert_int_equal(acquire(&claim), GATE_ACQUIRED);
	look.budget = 100;
	do {
		assert_int_equal(hear(store, &look, &heard), GATE_DONE);
		seen += heard.reply.sights_n;
		look.after = heard.reply.next;
		steps++;
	} while (look.after);
	assert_int_equal(seen, 1);
	assert_true(steps >= 10 && steps < 100);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(what_ends_by_other_hands_is_not_counted), TEST(what_is_met_and_held_is_counted),
		TEST(what_holds_no_longer_is_not_counted),     TEST(ends_that_are_repeated_change_nothing),
		TEST(the_longest_times_are_no_overflow),       TEST(a_look_walks_through_a_crowded_database),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
