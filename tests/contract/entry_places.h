/*
 * What the tests of entry_lock.h's contract have in common: callers who take and release, and every store with the services on it.
 */
#ifndef HX_TESTS_CONTRACT_ENTRY_PLACES_H
#define HX_TESTS_CONTRACT_ENTRY_PLACES_H

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

static inline void note_taken(struct entry_ticket *ticket, enum hx_code code)
{
	struct caller *caller = (struct caller *)ticket;

	pthread_mutex_lock(&meeting);
	caller->taken = true;
	caller->code = code;
	pthread_cond_broadcast(&news);
	pthread_mutex_unlock(&meeting);
}

static inline void note_released(struct entry_ticket *ticket)
{
	struct caller *caller = (struct caller *)ticket;

	pthread_mutex_lock(&meeting);
	caller->released = true;
	pthread_cond_broadcast(&news);
	pthread_mutex_unlock(&meeting);
}

static inline int64_t now_ms(void)
{
	return clock_mono(clock_system()).ns / 1000000;
}

static inline void await(const bool *flag, const char *what)
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

static inline struct entry_key key_of(const char *entity)
{
	return (struct entry_key){slice_str("default"), slice_str("billing"), slice_str(entity), slice_str("close")};
}

/* From any thread. */
static inline void start_take(struct caller *caller, struct entry_locks *locks, const char *entity, int64_t ttl_ms)
{
	struct entry_key key = key_of(entity);

	caller->taken = caller->released = false;
	caller->ticket.taken = note_taken;
	caller->ticket.released = note_released;
	entry_lock_take(locks, &caller->ticket, &key, ttl_ms);
}

static inline enum hx_code await_taken(struct caller *caller)
{
	await(&caller->taken, "taken");
	return caller->code;
}

static inline enum hx_code take(struct caller *caller, struct entry_locks *locks, const char *entity, int64_t ttl_ms)
{
	start_take(caller, locks, entity, ttl_ms);
	return await_taken(caller);
}

static inline void release(struct caller *caller)
{
	entry_lock_release(&caller->ticket);
	await(&caller->released, "released");
}

/* Tries until the answer is the wanted one; fails after the time. */
static inline void await_take(struct caller *caller, struct entry_locks *locks, const char *entity, enum hx_code wanted,
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

static inline void open_node(struct place *p, size_t i)
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
static inline struct redis *raw_redis(void)
{
	struct redis_options options = {.clock = clock_system(), .timeout_ms = AWAIT_MS};
	struct redis *redis = NULL;
	struct hx_error err = {0};

	if (redis_url_parse(redis_server_url(), &options.url, &err) || redis_new(&options, &redis, &err) ||
	    redis_connect(redis, &err))
		fail_msg("%s", err.detail);
	return redis;
}

static inline long long redis_number(struct redis *redis, const char *command, const char *argument)
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

static inline int set_up(void **state, enum place_kind kind)
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

static inline int tear_down(void **state)
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

static inline struct entry_locks *node_of(const struct place *p, size_t caller)
{
	return p->locks[caller % p->nodes_n];
}

static inline void entity_of(size_t i, char ret_entity[24])
{
	snprintf(ret_entity, 24, "%zu", i);
}

/* Takes the entities 0 to CALLERS - 1 at once, with the callers from `first` on. */
static inline void start_takes(size_t first, struct entry_locks *locks, int64_t ttl_ms)
{
	char entity[24];

	for (size_t i = 0; i < CALLERS; i++) {
		entity_of(i, entity);
		start_take(&callers[first + i], locks, entity, ttl_ms);
	}
}

static inline void release_all(size_t first, size_t n)
{
	for (size_t i = first; i < first + n; i++)
		entry_lock_release(&callers[i].ticket);
	for (size_t i = first; i < first + n; i++)
		await(&callers[i].released, "released");
}

#endif
