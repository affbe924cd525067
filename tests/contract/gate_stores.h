/*
 * What the tests of gate/store.h's contract have in common: every store, the gates on it, and a clock to be moved.
 *
 * Time is passed, never slept through: where it can be injected a clock is moved, so that the millisecond before and the
 * millisecond itself are looked at; servers have their own, and are waited for with short leases. What must hold
 * within a lease has a long one, so that a slow machine changes nothing.
 */
#ifndef TESTS_CONTRACT_GATE_STORES_H
#define TESTS_CONTRACT_GATE_STORES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gate/redis.h"
#include "support/await.h"
#include "support/gate_asker.h"
#include "support/redis_server.h"
#include "support/store.h"
#include "support/user_store.h"

#define LONG_MS 60000
#define SHORT_MS 50
#define WORK_MS 1000 /* a lease within which several asks have to come, by real time and on a busy machine */

/* ---- a clock to be moved while others look at it ---- */

struct moved_clock {
	struct clock clock;
	_Atomic int64_t ms;
};

static inline struct wall_time moved_wall(struct clock *clock)
{
	return (struct wall_time){atomic_load(&((struct moved_clock *)clock)->ms)};
}

static inline struct mono_time moved_mono(struct clock *clock)
{
	return (struct mono_time){atomic_load(&((struct moved_clock *)clock)->ms) * 1000000};
}

/* ---- places: a store, and the gates on it ---- */

enum place_kind { PLACE_MEMORY, PLACE_SQLITE, PLACE_POSTGRES, PLACE_REDIS, PLACE_USER };

struct place {
	enum place_kind kind;
	bool real_time;
	struct moved_clock moved;
	struct store *db;
	struct user_store *user;
	size_t nodes_n;
	struct lanes lanes[2];
	struct gate_store *stores[2];
};

static struct heard heard; /* by the test's own thread, last */

static inline void empty_redis(void)
{
	struct redis_options options = {.clock = clock_system()};
	struct redis *redis = NULL;
	redisReply *reply = NULL;
	struct hx_error err = {0};

	if (redis_url_parse(redis_server_url(), &options.url, &err) || redis_new(&options, &redis, &err) ||
	    redis_connect(redis, &err))
		fail_msg("%s", err.detail);
	REDIS_SEND(redis, slice_str("FLUSHALL"), slice_str("SYNC"));
	assert_int_equal(redis_receive(redis, &reply, &err), HX_OK);
	freeReplyObject(reply);
	redis_free(redis);
}

static inline enum hx_code open_sql(struct place *p, size_t i, struct clock *clock, struct hx_error *err)
{
	const struct lane_options options = {.db = {.url = p->db->url, .clock = clock},
					     .clock = clock,
					     .migrate = true,
					     .node = i ? "there" : "here",
					     .node_number = (uint32_t)i * 100,
					     .seats_max = 2000,
					     .resolve_ms = 1000};
	enum hx_code code = lanes_open(&p->lanes[i], &options, 2, err);

	return code ? code : gate_sql_new(&p->lanes[i], clock, &p->stores[i], err);
}

static inline void open_node(struct place *p, size_t i)
{
	struct clock *clock = p->real_time ? clock_system() : &p->moved.clock;
	struct hx_error err = {0};
	enum hx_code code = HX_OK;
	bool durable;

	switch (p->kind) {
	case PLACE_MEMORY:
		code = gate_memory_new(GATE_MEMORY_RECORDS_MAX, GATE_MEMORY_BYTES_MAX, clock, &p->stores[i], &err);
		break;
	case PLACE_SQLITE:
	case PLACE_POSTGRES:
		code = open_sql(p, i, clock, &err);
		break;
	case PLACE_REDIS:
		code = gate_redis_new(redis_server_url(), clock, &p->stores[i], &durable, &err);
		break;
	case PLACE_USER:
		code = gate_user_new(user_store_table(p->user), clock, &p->stores[i], &err);
		break;
	}
	if (code)
		fail_msg("%s", err.detail);
}

static inline int set_up(void **state, enum place_kind kind)
{
	struct place *p = calloc(1, sizeof *p);

	p->kind = kind;
	p->moved.clock = (struct clock){.wall = moved_wall, .mono = moved_mono};
	atomic_init(&p->moved.ms, 1700000000000);
	p->real_time = kind == PLACE_POSTGRES || kind == PLACE_REDIS;
	p->nodes_n = kind == PLACE_MEMORY || kind == PLACE_SQLITE ? 1 : 2;
	if (kind == PLACE_SQLITE || kind == PLACE_POSTGRES)
		p->db = store_new(kind == PLACE_SQLITE ? STORE_SQLITE_FILE : STORE_POSTGRES);
	if (kind == PLACE_REDIS)
		empty_redis();
	if (kind == PLACE_USER)
		p->user = user_store_new(&p->moved.clock);
	for (size_t i = 0; i < p->nodes_n; i++)
		open_node(p, i);
	*state = p;
	return 0;
}

static inline int set_up_memory(void **state)
{
	return set_up(state, PLACE_MEMORY);
}

static inline int set_up_sqlite(void **state)
{
	return set_up(state, PLACE_SQLITE);
}

static inline int set_up_postgres(void **state)
{
	return set_up(state, PLACE_POSTGRES);
}

static inline int set_up_redis(void **state)
{
	return set_up(state, PLACE_REDIS);
}

static inline int set_up_user(void **state)
{
	return set_up(state, PLACE_USER);
}

static inline int tear_down(void **state)
{
	struct place *p = *state;

	for (size_t i = 0; i < p->nodes_n; i++) {
		lanes_stop(&p->lanes[i], /* drain_ms= */ 1000);
		gate_store_free(p->stores[i]);
		lanes_close(&p->lanes[i]);
	}
	user_store_free(p->user);
	store_free(p->db);
	free(p);
	return 0;
}

static inline struct gate_store *node_of(const struct place *p, size_t i)
{
	return p->stores[i % p->nodes_n];
}

/* The servers are on this machine: the time that they go by is ours. */
static inline void pass_ms(struct place *p, int64_t ms)
{
	int64_t until_ms = clock_wall(clock_system()).ms + ms + 1;

	if (p->real_time)
		AWAIT(ms + ASKER_AWAIT_MS, clock_wall(clock_system()).ms >= until_ms);
	else
		atomic_fetch_add(&p->moved.ms, ms);
}

/* ---- what is asked ---- */

#define ACQUIRE(i, claim) hear_acquire(node_of(p, i), claim, &heard)
#define COMPLETE(i, claim, text) hear_complete(node_of(p, i), claim, slice_str(text))
#define REMOVE(i, claim) hear_remove(node_of(p, i), claim)

/* What somebody else hears who sends the same request. */
static inline enum gate_verdict others_hear(struct place *p, size_t i, const struct hx_gate_claim *claim)
{
	struct hx_gate_claim another = claim_by_another(claim);

	return ACQUIRE(i, &another);
}

/* And who uses the key for something else. */
static inline enum gate_verdict strangers_hear(struct place *p, size_t i, const struct hx_gate_claim *claim)
{
	struct hx_gate_claim stranger = claim_by_another(claim);

	stranger.fingerprint[0] ^= 1;
	return ACQUIRE(i, &stranger);
}

/* ---- every test on every store ---- */

#define TEST(test)                                                                                                     \
	{                                                                                                              \
		.name = #test, .test_func = test, .teardown_func = tear_down                                           \
	}

/* With a user's own store, or without. */
static inline int run_on_every_store(struct CMUnitTest *tests, size_t tests_n, bool users_own)
{
	static const struct {
		const char *name;
		CMFixtureFunction set_up;
	} stores[] = {{"memory", set_up_memory},
		      {"sqlite", set_up_sqlite},
		      {"postgres", set_up_postgres},
		      {"redis", set_up_redis},
		      {"user's own", set_up_user}};
	int failed = 0;

	for (size_t i = 0; i < sizeof stores / sizeof *stores; i++) {
		if (stores[i].set_up == set_up_user && !users_own)
			continue;
		for (size_t t = 0; t < tests_n; t++)
			tests[t].setup_func = stores[i].set_up;
		failed += _cmocka_run_group_tests(stores[i].name, tests, tests_n, NULL, NULL);
	}
	return failed;
}

#endif
