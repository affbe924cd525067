/*
 * The contract of entry_lock.h, the same for every store: memory, the engine's own store on SQLite and on PostgreSQL,
 * and Redis. Where a store can be shared, two services stand for two nodes. What only one store can do (fall silent,
 * lose its scripts) has tests of its own at the end.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gate/entry_store.h"
#include "support/redis_server.h"
#include "support/store.h"

#define CALLERS 50
#define ROUNDS 100
#define LONG_MS 60000
#define SHORT_MS 200
#define AWAIT_MS 60000
#define DOWN_MS_MAX 20000 /* how long a lock may take to say that its store is down */
#define BACK_MS_MAX 60000

/* ---- callers ---- */

struct caller {
	struct entry_ticket ticket;
	bool taken, released;
	enum hx_code code;
};

static pthread_mutex_t meeting = PTHREAD_MUTEX_INITIALIZER; /* guards what the callbacks write */
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static struct caller callers[CALLERS * 2];

static void note_taken(struct entry_ticket *ticket, enum hx_code code)
{
	struct caller *caller = (struct caller *)ticket;

	pthread_mutex_lock(&meeting);
	caller->taken = true;
	caller->code = code;
	pthread_cond_broadcast(&news);
	pthread_mutex_unlock(&meeting);
}

static void note_released(struct entry_ticket *ticket)
{
	struct caller *caller = (struct caller *)ticket;

	pthread_mutex_lock(&meeting);
	caller->released = true;
	pthread_cond_broadcast(&news);
	pthread_mutex_unlock(&meeting);
}

static int64_t now_ms(void)
{
	return clock_mono(clock_system()).ns / 1000000;
}

static void await(const bool *flag, const char *what)
{
	struct timespec deadline;
	int rc = 0;

	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += AWAIT_MS / 1000;
	pthread_mutex_lock(&meeting);
	while (!*flag && rc != ETIMEDOUT)
		rc = pthread_cond_timedwait(&news, &meeting, &deadline);
	pthread_mutex_unlock(&meeting);
	if (rc == ETIMEDOUT)
		fail_msg("waited %d ms in vain until it was %s", AWAIT_MS, what);
}

static struct entry_key key_of(const char *entity)
{
	return (struct entry_key){slice_str("default"), slice_str("billing"), slice_str(entity), slice_str("close")};
}

/* From any thread. */
static void start_take(struct caller *caller, struct entry_locks *locks, const char *entity, int64_t ttl_ms)
{
	struct entry_key key = key_of(entity);

	caller->taken = caller->released = false;
	caller->ticket.taken = note_taken;
	caller->ticket.released = note_released;
	entry_lock_take(locks, &caller->ticket, &key, ttl_ms);
}

static enum hx_code await_taken(struct caller *caller)
{
	await(&caller->taken, "taken");
	return caller->code;
}

static enum hx_code take(struct caller *caller, struct entry_locks *locks, const char *entity, int64_t ttl_ms)
{
	start_take(caller, locks, entity, ttl_ms);
	return await_taken(caller);
}

static void release(struct caller *caller)
{
	entry_lock_release(&caller->ticket);
	await(&caller->released, "released");
}

/* Tries until the answer is the wanted one; fails after the time. */
static void await_take(struct caller *caller, struct entry_locks *locks, const char *entity, enum hx_code wanted,
		       int64_t within_ms)
{
	int64_t deadline = now_ms() + within_ms;
	enum hx_code code;

	while ((code = take(caller, locks, entity, LONG_MS)) != wanted) {
		release(caller);
		if (now_ms() > deadline)
			fail_msg("still %s after %lld ms", hx_code_name(code), (long long)within_ms);
	}
}

/* ---- places: a store, and the services on it ---- */

enum place_kind { PLACE_MEMORY, PLACE_SQLITE, PLACE_POSTGRES, PLACE_REDIS };

struct place {
	enum place_kind kind;
	struct store *store; /* of the engine, for "sql:" */
	size_t nodes_n;
	struct lanes lanes[2];
	struct entry_locks *locks[2];
};

static void open_node(struct place *p, size_t i)
{
	struct lane_options options = {.clock = clock_system(),
				       .migrate = true,
				       .node = i ? "there" : "here",
				       .node_number = (uint32_t)i * 100,
				       .seats_max = 1000,
				       .resolve_ms = 1000};
	const char *url = p->kind == PLACE_MEMORY ? "memory:" : "sql:";
	struct hx_error err = {0};

	if (p->store) {
		options.db = (struct db_options){.url = p->store->url, .clock = clock_system()};
		if (lanes_open(&p->lanes[i], &options, 2, &err) != HX_OK)
			fail_msg("%s", err.detail);
	}
	if (p->kind == PLACE_REDIS)
		url = redis_server_url();
	if (entry_locks_new(url, &p->lanes[i], clock_system(), &p->locks[i], &err) != HX_OK)
		fail_msg("%s", err.detail);
}

/* One connection of the test's own to the server. */
static struct redis *raw_redis(void)
{
	struct redis_options options = {.clock = clock_system(), .timeout_ms = AWAIT_MS};
	struct redis *redis = NULL;
	struct hx_error err = {0};

	if (redis_url_parse(redis_server_url(), &options.url, &err) || redis_new(&options, &redis, &err) ||
	    redis_connect(redis, &err))
		fail_msg("%s", err.detail);
	return redis;
}

static long long redis_number(struct redis *redis, const char *command, const char *argument)
{
	redisReply *reply = NULL;
	struct hx_error err = {0};
	long long number;

	REDIS_SEND(redis, slice_str(command), slice_str(argument));
	if (redis_receive(redis, &reply, &err))
		fail_msg("%s %s: %s", command, argument, err.detail);
	number = reply->integer;
	freeReplyObject(reply);
	return number;
}

static int set_up(void **state, enum place_kind kind)
{
	struct place *p = calloc(1, sizeof *p);

	memset(callers, 0, sizeof callers);
	p->kind = kind;
	p->nodes_n = kind == PLACE_POSTGRES || kind == PLACE_REDIS ? 2 : 1;
	if (kind == PLACE_SQLITE || kind == PLACE_POSTGRES)
		p->store = store_new(kind == PLACE_SQLITE ? STORE_SQLITE_FILE : STORE_POSTGRES);
	if (kind == PLACE_REDIS) {
		struct redis *redis = raw_redis();

		(void)redis_number(redis, "FLUSHALL", "SYNC");
		redis_free(redis);
	}
	for (size_t i = 0; i < p->nodes_n; i++)
		open_node(p, i);
	*state = p;
	return 0;
}

static int set_up_memory(void **state)
{
	return set_up(state, PLACE_MEMORY);
}

static int set_up_sqlite(void **state)
{
	return set_up(state, PLACE_SQLITE);
}

static int set_up_postgres(void **state)
{
	return set_up(state, PLACE_POSTGRES);
}

static int set_up_redis(void **state)
{
	return set_up(state, PLACE_REDIS);
}

static int tear_down(void **state)
{
	struct place *p = *state;

	if (p->kind == PLACE_REDIS)
		redis_ctl("continue"); /* a test may have failed while it held the server */
	for (size_t i = 0; i < p->nodes_n; i++) {
		lanes_stop(&p->lanes[i], /* drain_ms= */ 1000);
		entry_locks_free(p->locks[i]);
		lanes_close(&p->lanes[i]);
	}
	store_free(p->store);
	free(p);
	return 0;
}

static struct entry_locks *node_of(const struct place *p, size_t caller)
{
	return p->locks[caller % p->nodes_n];
}

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

/* On PostgreSQL: no deadlock was broken up and no batch was cut in two, as the units' order and subjects promise. */
static void assert_smooth(const struct place *p)
{
	for (size_t i = 0; i < p->nodes_n && p->store; i++) {
		struct lane_stats stats;

		lanes_read_stats(&p->lanes[i], &stats);
		assert_int_equal(stats.batch.retried, 0);
		assert_int_equal(stats.batch.bisected, 0);
	}
}

static void entity_of(size_t i, char ret_entity[24])
{
	snprintf(ret_entity, 24, "%zu", i);
}

/* Takes the entities 0 to CALLERS - 1 at once, with the callers from `first` on. */
static void start_takes(size_t first, struct entry_locks *locks, int64_t ttl_ms)
{
	char entity[24];

	for (size_t i = 0; i < CALLERS; i++) {
		entity_of(i, entity);
		start_take(&callers[first + i], locks, entity, ttl_ms);
	}
}

static void release_all(size_t first, size_t n)
{
	for (size_t i = first; i < first + n; i++)
		entry_lock_release(&callers[i].ticket);
	for (size_t i = first; i < first + n; i++)
		await(&callers[i].released, "released");
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

/* ---- Redis alone ---- */

static void silent_is_down_and_no_answer_is_lost(void **state)
{
	struct place *p = *state;
	static struct caller late;
	int64_t start, ms, deadline;
	int at_once = 0;

	redis_ctl("pause");
	start = now_ms();
	for (size_t i = 0; i < 2 * CALLERS; i++) {
		char entity[24];

		entity_of(i, entity);
		start_take(&callers[i], node_of(p, 0), entity, LONG_MS);
	}
	assert_true(now_ms() - start < CALLERS * REDIS_TIMEOUT_MS); /* nobody but the worker waits */
	for (size_t i = 0; i < 2 * CALLERS; i++)
		assert_int_equal(await_taken(&callers[i]), HX_STORE_UNAVAILABLE);
	ms = now_ms() - start;
	assert_true(ms < DOWN_MS_MAX);
	print_message("# %d takes of a silent server answered in %lld ms\n", 2 * CALLERS, (long long)ms);
	/* Known to be down: at once, one after the other. That lasts a moment, whose end may be met; the next one is longer. */
	deadline = now_ms() + BACK_MS_MAX;
	do {
		start = now_ms();
		assert_int_equal(take(&late, node_of(p, 0), "x", LONG_MS), HX_STORE_UNAVAILABLE);
		ms = now_ms() - start;
		release(&late);
		at_once = ms < REDIS_TIMEOUT_MS / 2 ? at_once + 1 : 0;
	} while (at_once < 5 && now_ms() < deadline);
	assert_int_equal(at_once, 5);
	release_all(0, 2 * CALLERS);
	redis_ctl("continue");
	await_take(&callers[0], node_of(p, 0), "other", HX_OK, BACK_MS_MAX);
	release(&callers[0]);
}

static void lock_key(const struct caller *caller, char ret_key[128])
{
	snprintf(ret_key, 128, "hapax:entry:%s", caller->ticket.lock.name);
}

/* A take whose answer never came may have been carried out (here it is): its release is sent, and frees the key. */
static void an_unanswered_take_is_released(void **state)
{
	struct place *p = *state;
	struct caller *caller = &callers[0], *other = &callers[1];
	int64_t deadline = now_ms() + AWAIT_MS;
	struct redis *redis;
	char key[128];

	redis_ctl("pause");
	assert_int_equal(take(caller, node_of(p, 0), "7", LONG_MS), HX_STORE_UNAVAILABLE);
	redis_ctl("continue");
	redis = raw_redis();
	lock_key(caller, key);
	while (redis_number(redis, "EXISTS", key) == 0)
		assert_true(now_ms() < deadline);
	await_take(other, node_of(p, 0), "8", HX_OK, BACK_MS_MAX); /* it has found its way back */
	release(caller);
	assert_int_equal(redis_number(redis, "EXISTS", key), 0);
	release(other);
	redis_free(redis);
}

static void a_lock_has_an_end_and_leaves_no_key(void **state)
{
	struct place *p = *state;
	struct redis *redis = raw_redis();
	char key[128];
	long long ttl_ms;

	assert_int_equal(take(&callers[0], node_of(p, 0), "7", LONG_MS), HX_OK);
	lock_key(&callers[0], key);
	ttl_ms = redis_number(redis, "PTTL", key);
	assert_true(ttl_ms > 0 && ttl_ms <= LONG_MS);
	release(&callers[0]);
	assert_int_equal(redis_number(redis, "EXISTS", key), 0);
	redis_free(redis);
}

static void scripts_may_be_flushed(void **state)
{
	struct place *p = *state;
	struct redis *redis = raw_redis();
	char key[128];

	for (size_t i = 0; i < 10; i++) {
		char entity[24];

		entity_of(i, entity);
		assert_int_equal(take(&callers[i], node_of(p, 0), entity, LONG_MS), HX_OK);
	}
	(void)redis_number(redis, "SCRIPT", "FLUSH");
	for (size_t i = 0; i < 10; i++)
		entry_lock_release(&callers[i].ticket);
	for (size_t i = 0; i < 10; i++) {
		await(&callers[i].released, "released");
		lock_key(&callers[i], key);
		assert_int_equal(redis_number(redis, "EXISTS", key), 0);
	}
	redis_free(redis);
}

/* A restart keeps the lock (the server is durable) and the service finds its way back by itself. */
static void a_restart_is_survived(void **state)
{
	struct place *p = *state;

	assert_int_equal(take(&callers[0], node_of(p, 0), "7", LONG_MS), HX_OK);
	redis_ctl("restart");
	await_take(&callers[1], node_of(p, 1), "7", HX_ENTRY_LOCKED, BACK_MS_MAX);
	release(&callers[1]);
	await_take(&callers[2], node_of(p, 0), "7", HX_ENTRY_LOCKED, BACK_MS_MAX);
	release(&callers[2]);
	release(&callers[0]);
	assert_int_equal(take(&callers[1], node_of(p, 1), "7", LONG_MS), HX_OK);
	release(&callers[1]);
}

static void killed_clients_come_back(void **state)
{
	struct place *p = *state;
	struct redis *redis = raw_redis();
	redisReply *reply = NULL;

	for (int i = 0; i < 5; i++) {
		assert_int_equal(take(&callers[0], node_of(p, 0), "7", LONG_MS), HX_OK);
		REDIS_SEND(redis, slice_str("CLIENT"), slice_str("KILL"), slice_str("TYPE"), slice_str("normal"));
		assert_int_equal(redis_receive(redis, &reply, /* err= */ NULL), HX_OK);
		freeReplyObject(reply);
		release(&callers[0]); /* idle connections are looked at before they are used */
		assert_int_equal(take(&callers[1], node_of(p, 1), "7", LONG_MS), HX_OK);
		release(&callers[1]);
	}
	redis_free(redis);
}

static struct entry_locks *with_queue_of(size_t queue_max)
{
	struct redis_url url;
	struct entry_locks *locks = NULL;
	struct hx_error err = {0};

	if (redis_url_parse(redis_server_url(), &url, &err) ||
	    entry_redis_new(&url, queue_max, clock_system(), &locks, &err))
		fail_msg("%s", err.detail);
	return locks;
}

/* The worker may have taken some out before it met the silence, but not more than fit in. */
static void a_full_queue_is_said_at_once(void **state)
{
	struct entry_locks *locks = with_queue_of(4);
	size_t n = 0;
	bool refused = false;

	(void)state;
	redis_ctl("pause");
	for (; n < CALLERS && !refused; n++) {
		start_take(&callers[n], locks, "7", LONG_MS);
		pthread_mutex_lock(&meeting);
		refused = callers[n].taken;
		pthread_mutex_unlock(&meeting);
	}
	assert_true(refused && n > 4 && n <= 9);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(await_taken(&callers[i]), HX_STORE_UNAVAILABLE);
		release(&callers[i]);
	}
	redis_ctl("continue");
	entry_locks_free(locks);
}

static void freeing_answers_what_waits(void **state)
{
	struct entry_locks *locks = with_queue_of(1000);
	int64_t start;

	(void)state;
	redis_ctl("pause");
	for (size_t i = 0; i < 2 * CALLERS; i++)
		start_take(&callers[i], locks, "7", LONG_MS);
	start = now_ms();
	entry_locks_free(locks);
	assert_true(now_ms() - start < DOWN_MS_MAX);
	for (size_t i = 0; i < 2 * CALLERS; i++) {
		assert_true(callers[i].taken);
		assert_int_equal(callers[i].code, HX_STORE_UNAVAILABLE);
	}
	redis_ctl("continue");
}

static void freeing_sends_the_releases(void **state)
{
	struct place *p = *state;
	struct entry_locks *locks = with_queue_of(1000);

	for (size_t i = 0; i < CALLERS; i++) {
		char entity[24];

		entity_of(i, entity);
		assert_int_equal(take(&callers[i], locks, entity, LONG_MS), HX_OK);
	}
	for (size_t i = 0; i < CALLERS; i++)
		entry_lock_release(&callers[i].ticket);
	entry_locks_free(locks);
	for (size_t i = 0; i < CALLERS; i++) {
		char entity[24];

		assert_true(callers[i].released);
		entity_of(i, entity);
		assert_int_equal(take(&callers[i], node_of(p, 0), entity, LONG_MS), HX_OK);
		release(&callers[i]);
	}
}

/* ---- urls ---- */

static enum hx_code open_url(const char *url, struct hx_error *ret_err)
{
	struct entry_locks *locks = NULL;
	enum hx_code code = entry_locks_new(url, /* lanes= */ NULL, clock_system(), &locks, ret_err);

	entry_locks_free(locks);
	return code;
}

static void bad_urls_are_refused_without_the_password(void **state)
{
	static const char *const urls[] = {
		"",
		"sesame",
		"memory",
		"memory:sesame",
		"sql:sesame",
		"sqlite:sesame.db",
		"postgres://u:sesame@h/d",
		"redis:",
		"redis:sesame",
		"redis://",
		"redis://:sesame@",
		"redis://:sesame@/0",
		"redis://:sesame@:6379/0",
		"redis://sesame@h:1/0",
		"redis://:sesame@h:0/0",
		"redis://:sesame@h:65536/0",
		"redis://:sesame@h:x/0",
		"redis://:sesame@h:1/x",
		"redis://:sesame@h:1/-1",
		"redis://:sesame@h:1/0/0",
		"redis://:sesame@h:1/0?x=1",
		"redis://:sesame@[::1/0",
		"redis://:ses@sesame@h:1/0",
		"redis://:ses/sesame@h:1/0",
		"redis://:sesame%@h:1/0",
		"redis://:sesame:x@h:1/0",
		"rediss://:sesame@h:1/0?verify=no",
		"http://:sesame@h/",
	};
	(void)state;
	for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
		struct hx_error err = {0};

		if (open_url(urls[i], &err) != HX_CONFIG_ERROR)
			fail_msg("%s is accepted", urls[i]);
		assert_int_equal(err.code, HX_CONFIG_ERROR);
		if (strstr(err.detail, "sesame"))
			fail_msg("%s: %s", urls[i], err.detail);
		if (!strstr(err.detail, "redis://[:password@]host:port/db"))
			fail_msg("%s is refused with \"%s\"", urls[i], err.detail);
	}
}

static void a_server_that_refuses_us_is_a_mistake_of_the_configuration(void **state)
{
	struct redis_url url;
	char text[1024];
	struct hx_error err = {0};

	(void)state;
	assert_int_equal(redis_url_parse(redis_server_url(), &url, &err), HX_OK);
	snprintf(text, sizeof text, "redis://:sesame@127.0.0.1:%s/0", url.at.port);
	assert_int_equal(open_url(text, &err), HX_CONFIG_ERROR);
	assert_string_equal(err.detail, "redis: the server refuses the password");
	snprintf(text, sizeof text, "redis://nobody:sesame@127.0.0.1:%s/0", url.at.port);
	assert_int_equal(open_url(text, &err), HX_CONFIG_ERROR);
	assert_string_equal(err.detail, "redis: the server refuses the password");
	snprintf(text, sizeof text, "redis://127.0.0.1:%s/0", url.at.port);
	assert_int_equal(open_url(text, &err), HX_CONFIG_ERROR);
	assert_string_equal(err.detail, "redis: the server wants a password");
	snprintf(text, sizeof text, "redis://:%s@127.0.0.1:%s/4711", url.password, url.at.port);
	assert_int_equal(open_url(text, &err), HX_CONFIG_ERROR);
	assert_string_equal(err.detail, "redis: the server has no such database");
	snprintf(text, sizeof text, "redis://default:%s@127.0.0.1:%s/15", url.password, url.at.port);
	assert_int_equal(open_url(text, &err), HX_OK);
}

/* Nobody there is no mistake: the server may come later, and the inner doors decide meanwhile. */
static void nobody_there_is_no_error(void **state)
{
	struct entry_locks *locks = NULL;
	struct hx_error err = {0};

	(void)state;
	memset(callers, 0, sizeof callers);
	assert_int_equal(entry_locks_new("redis://:sesame@127.0.0.1:1/0", NULL, clock_system(), &locks, &err), HX_OK);
	assert_int_equal(take(&callers[0], locks, "7", LONG_MS), HX_STORE_UNAVAILABLE);
	release(&callers[0]);
	entry_locks_free(locks);
	entry_locks_free(NULL);
}

/* ---- every test on every store ---- */

#define TEST(test)                                                                                                     \
	{                                                                                                              \
		.name = #test, .test_func = test, .teardown_func = tear_down                                           \
	}
#define TEST_REDIS(test)                                                                                               \
	{                                                                                                              \
		.name = #test, .test_func = test, .setup_func = set_up_redis, .teardown_func = tear_down               \
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

static const struct CMUnitTest of_redis[] = {
	TEST_REDIS(silent_is_down_and_no_answer_is_lost),
	TEST_REDIS(an_unanswered_take_is_released),
	TEST_REDIS(a_lock_has_an_end_and_leaves_no_key),
	TEST_REDIS(scripts_may_be_flushed),
	TEST_REDIS(a_restart_is_survived),
	TEST_REDIS(killed_clients_come_back),
	TEST_REDIS(a_full_queue_is_said_at_once),
	TEST_REDIS(freeing_answers_what_waits),
	TEST_REDIS(freeing_sends_the_releases),
};

static const struct CMUnitTest of_urls[] = {
	cmocka_unit_test(bad_urls_are_refused_without_the_password),
	cmocka_unit_test(a_server_that_refuses_us_is_a_mistake_of_the_configuration),
	cmocka_unit_test(nobody_there_is_no_error),
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
	failed += cmocka_run_group_tests_name("redis alone", of_redis, NULL, NULL);
	failed += cmocka_run_group_tests_name("urls", of_urls, NULL, NULL);
	return failed;
}
