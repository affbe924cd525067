/*
 * The contract of entry_lock.h, the same for every store: memory, the engine's own store on SQLite and on PostgreSQL,
 * and Redis. Where a store can be shared, two services stand for two nodes. What only Redis can do (fall silent,
 * lose its scripts) is in test_entry_lock_redis.c.
 */
#include "entry_places.h"

#define ROUNDS 100

/* ---- one at a time ---- */

static void one_taker_wins_and_release_frees(void **state)
{
	struct place *p = *state;
	struct caller *a = &callers[0], *b = &callers[1];

	assert_int_equal(take(a, node_of(p, 0), "7", LONG_MS), HX_OK);
	assert_int_equal(take(b, node_of(p, 1), "7", LONG_MS), HX_ENTRY_LOCKED);
	release(b); /* never had it, so it frees nothing */
	assert_int_equal(take(b, node_of(p, 1), "7", LONG_MS), HX_ENTRY_LOCKED);
	release(b);
	release(a);
	assert_int_equal(take(b, node_of(p, 1), "7", LONG_MS), HX_OK);
	release(b);
}

static void expiry_frees_and_not_before_its_time(void **state)
{
	struct place *p = *state;
	struct caller *dead = &callers[0], *next = &callers[1];
	int64_t sent = now_ms();

	assert_int_equal(take(dead, node_of(p, 0), "7", SHORT_MS), HX_OK);
	await_take(next, node_of(p, 1), "7", HX_OK, AWAIT_MS);
	/* Stores round to milliseconds, and their clock is not ours. */
	assert_true(now_ms() - sent >= SHORT_MS - 10);
	release(next);
	release(dead);
}

static void a_stale_owners_release_touches_nothing(void **state)
{
	struct place *p = *state;
	struct caller *stale = &callers[0], *owner = &callers[1], *third = &callers[2];

	assert_int_equal(take(stale, node_of(p, 0), "7", SHORT_MS), HX_OK);
	await_take(owner, node_of(p, 1), "7", HX_OK, AWAIT_MS);
	release(stale);
	assert_int_equal(take(third, node_of(p, 0), "7", LONG_MS), HX_ENTRY_LOCKED);
	release(third);
	release(owner);
	assert_int_equal(take(third, node_of(p, 0), "7", LONG_MS), HX_OK);
	release(third);
}

/* Each pair would be the same if the parts were joined by a separator, or simply joined. */
static void different_keys_do_not_meet(void **state)
{
#define S(text)                                                                                                        \
	{                                                                                                              \
		text, sizeof(text) - 1                                                                                 \
	}
	static const struct entry_key keys[] = {
		{S("w"), S("f"), S("e"), S("s")},   {S("w2"), S("f"), S("e"), S("s")},
		{S("w"), S("f2"), S("e"), S("s")},  {S("w"), S("f"), S("e2"), S("s")},
		{S("w"), S("f"), S("e"), S("s2")},  {S("w"), S("f"), S("e/s"), S("s")},
		{S("w"), S("f"), S("e"), S("s/s")}, {S("w"), S("f"), S("es"), S("")},
		{S("w"), S("f"), S(""), S("es")},   {S("w"), S("f"), S("e\0s"), S("s")},
		{S("w"), S("f"), S("e"), S("\0s")}, {S("W"), S("f"), S("e"), S("s")},
		{S("f"), S("w"), S("e"), S("s")},   {S("w"), S("f"), S("s"), S("e")},
		{S("wf"), S(""), S("e"), S("s")},   {S(""), S("wf"), S("e"), S("s")},
		{S(""), S(""), S(""), S("")},
	};
#undef S
	struct place *p = *state;
	size_t n = sizeof keys / sizeof *keys;

	for (size_t i = 0; i < n; i++) {
		callers[i].ticket.taken = note_taken;
		callers[i].ticket.released = note_released;
		entry_lock_take(node_of(p, i), &callers[i].ticket, &keys[i], LONG_MS);
	}
	for (size_t i = 0; i < n; i++)
		assert_int_equal(await_taken(&callers[i]), HX_OK);
	for (size_t i = 0; i < n; i++)
		release(&callers[i]);
}

static void a_key_may_be_long(void **state)
{
	struct place *p = *state;
	char *text = malloc(1u << 20);

	memset(text, 'x', 1u << 20);
	text[(1u << 20) - 1] = '\0';
	assert_int_equal(take(&callers[0], node_of(p, 0), text, LONG_MS), HX_OK);
	assert_int_equal(take(&callers[1], node_of(p, 1), text + 1, LONG_MS), HX_OK);
	assert_int_equal(take(&callers[2], node_of(p, 1), text, LONG_MS), HX_ENTRY_LOCKED);
	for (size_t i = 0; i < 3; i++)
		release(&callers[i]);
	free(text);
}

/* ---- crowds ---- */

/*
 * On PostgreSQL: no deadlock was broken up and no batch was cut in two, as the units' order and subjects promise. With a sanitizer a
 * lock may be waited for so long that its group is run again, too.
 */
static void assert_smooth(const struct place *p)
{
	for (size_t i = 0; i < p->nodes_n && p->store; i++) {
		struct lane_stats stats;

		lanes_read_stats(&p->lanes[i], &stats);
#ifndef HX_DEBUG
		assert_int_equal(stats.group.retried, 0);
#endif
		assert_int_equal(stats.group.bisected, 0);
	}
}

static void many_stale_releases_touch_nothing(void **state)
{
	struct place *p = *state;
	char entity[24];

	start_takes(0, node_of(p, 0), SHORT_MS);
	for (size_t i = 0; i < CALLERS; i++)
		assert_int_equal(await_taken(&callers[i]), HX_OK);
	for (size_t i = 0; i < CALLERS; i++) {
		entity_of(i, entity);
		await_take(&callers[CALLERS + i], node_of(p, 1), entity, HX_OK, AWAIT_MS);
	}
	release_all(0, CALLERS);
	start_takes(0, node_of(p, 0), LONG_MS);
	for (size_t i = 0; i < CALLERS; i++)
		assert_int_equal(await_taken(&callers[i]), HX_ENTRY_LOCKED);
	release_all(0, 2 * CALLERS);
	start_takes(0, node_of(p, 0), LONG_MS);
	for (size_t i = 0; i < CALLERS; i++)
		assert_int_equal(await_taken(&callers[i]), HX_OK);
	release_all(0, CALLERS);
}

static pthread_barrier_t barrier;

struct racer {
	pthread_t thread;
	struct caller *caller;
	struct entry_locks *locks;
};

/* Each round: all take at once, the test looks, whoever has it releases. */
static void *race(void *context)
{
	struct racer *racer = context;

	for (int round = 0; round < ROUNDS; round++) {
		pthread_barrier_wait(&barrier);
		start_take(racer->caller, racer->locks, "hot", LONG_MS);
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static void one_of_fifty_wins_in_every_round(void **state)
{
	static struct racer racers[CALLERS];
	struct place *p = *state;
	int bad = 0;

	pthread_barrier_init(&barrier, NULL, CALLERS + 1);
	for (size_t i = 0; i < CALLERS; i++) {
		racers[i] = (struct racer){.caller = &callers[i], .locks = node_of(p, i)};
		assert_int_equal(pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
	}
	for (int round = 0; round < ROUNDS; round++) {
		int won = 0, locked = 0;

		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
		for (size_t i = 0; i < CALLERS; i++) {
			enum hx_code code = await_taken(&callers[i]);

			won += code == HX_OK;
			locked += code == HX_ENTRY_LOCKED;
		}
		bad += won != 1 || locked != CALLERS - 1;
		for (size_t i = 0; i < CALLERS; i++)
			release(&callers[i]);
		pthread_barrier_wait(&barrier);
	}
	for (size_t i = 0; i < CALLERS; i++)
		pthread_join(racers[i].thread, NULL);
	pthread_barrier_destroy(&barrier);
	assert_int_equal(bad, 0);
	assert_smooth(p);
}

/* Many keys in one batch or pipeline, from two sides in opposite orders: each key has one winner, nobody hangs. */
static void many_keys_from_both_ends(void **state)
{
	struct place *p = *state;

	for (int round = 0; round < 10; round++) {
		for (size_t i = 0; i < CALLERS; i++) {
			char up[24], down[24];

			entity_of(i, up);
			entity_of(CALLERS - 1 - i, down);
			start_take(&callers[i], node_of(p, 0), up, LONG_MS);
			start_take(&callers[2 * CALLERS - 1 - i], node_of(p, 1), down, LONG_MS);
		}
		for (size_t i = 0; i < CALLERS; i++) {
			enum hx_code one = await_taken(&callers[i]), other = await_taken(&callers[CALLERS + i]);

			assert_true((one == HX_OK && other == HX_ENTRY_LOCKED) ||
				    (one == HX_ENTRY_LOCKED && other == HX_OK));
		}
		release_all(0, 2 * CALLERS);
	}
	assert_smooth(p);
}

/* A callback may use the service: from whichever thread it comes. */
static void release_at_once(struct entry_ticket *ticket, enum hx_code code)
{
	pthread_mutex_lock(&meeting);
	((struct caller *)ticket)->code = code;
	pthread_mutex_unlock(&meeting);
	entry_lock_release(ticket);
}

static void a_callback_may_release(void **state)
{
	struct place *p = *state;
	struct entry_key key = key_of("7");
	struct caller *caller = &callers[0];

	for (int i = 0; i < 3; i++) {
		caller->released = false;
		caller->ticket.taken = release_at_once;
		caller->ticket.released = note_released;
		entry_lock_take(node_of(p, 0), &caller->ticket, &key, LONG_MS);
		await(&caller->released, "released");
		assert_int_equal(caller->code, HX_OK);
	}
}

/* ---- the store is down ---- */

static void take_store_down(struct place *p)
{
	if (p->kind == PLACE_REDIS)
		redis_ctl("stop");
	else if (p->kind == PLACE_POSTGRES)
		store_pg_ctl("stop fast");
	else
		lanes_stop(&p->lanes[0], /* drain_ms= */ 0);
}

static void bring_store_back(struct place *p)
{
	if (p->kind == PLACE_REDIS)
		redis_ctl("start");
	else if (p->kind == PLACE_POSTGRES)
		store_pg_ctl("start");
}

static void down_is_said_and_back_works_again(void **state)
{
	struct place *p = *state;
	struct caller *holder = &callers[0], *caller = &callers[1];
	int64_t start, ms;

	assert_int_equal(take(holder, node_of(p, 0), "7", LONG_MS), HX_OK);
	take_store_down(p);
	start = now_ms();
	for (int i = 0; i < 3; i++) {
		assert_int_equal(take(caller, node_of(p, 0), "7", LONG_MS), HX_STORE_UNAVAILABLE);
		release(caller);
	}
	release(holder); /* in vain, and without hanging */
	ms = now_ms() - start;
	/* PostgreSQL has the patience of its lane, and no caller waits for that but this one. */
	assert_true(ms < (p->kind == PLACE_POSTGRES ? 2 * AWAIT_MS : DOWN_MS_MAX));
	print_message("# down is said 3 times and a release given up in %lld ms\n", (long long)ms);
	bring_store_back(p);
	if (p->kind == PLACE_REDIS || p->kind == PLACE_POSTGRES) {
		await_take(caller, node_of(p, 0), "8", HX_OK, BACK_MS_MAX);
		await_take(holder, node_of(p, 1), "8", HX_ENTRY_LOCKED, BACK_MS_MAX);
		release(holder);
		release(caller);
		assert_int_equal(take(caller, node_of(p, 0), "8", LONG_MS), HX_OK);
		release(caller);
	}
}

/* ---- every test on every store ---- */

#define TEST(test)                                                                                                     \
	{                                                                                                              \
		.name = #test, .test_func = test, .teardown_func = tear_down                                           \
	}

static struct CMUnitTest tests[] = {
	TEST(one_taker_wins_and_release_frees),
	TEST(expiry_frees_and_not_before_its_time),
	TEST(a_stale_owners_release_touches_nothing),
	TEST(different_keys_do_not_meet),
	TEST(a_key_may_be_long),
	TEST(many_stale_releases_touch_nothing),
	TEST(one_of_fifty_wins_in_every_round),
	TEST(many_keys_from_both_ends),
	TEST(a_callback_may_release),
};

static const struct CMUnitTest of_stores_that_fail[] = {
	{"sqlite: down", down_is_said_and_back_works_again, set_up_sqlite, tear_down, NULL},
	{"postgres: down", down_is_said_and_back_works_again, set_up_postgres, tear_down, NULL},
	{"redis: down", down_is_said_and_back_works_again, set_up_redis, tear_down, NULL},
};

int main(void)
{
	static const struct {
		const char *name;
		CMFixtureFunction set_up;
	} stores[] = {{"memory", set_up_memory},
		      {"sql on sqlite", set_up_sqlite},
		      {"sql on postgres", set_up_postgres},
		      {"redis", set_up_redis}};
	int failed = 0;

	for (size_t i = 0; i < sizeof stores / sizeof *stores; i++) {
		for (size_t t = 0; t < sizeof tests / sizeof *tests; t++)
			tests[t].setup_func = stores[i].set_up;
		failed += cmocka_run_group_tests_name(stores[i].name, tests, NULL, NULL);
	}
	failed += cmocka_run_group_tests_name("stores that fail", of_stores_that_fail, NULL, NULL);
	return failed;
}
