/* A gate on the private Redis of tests/with-redis, and a connection beside it: what the tests of store_redis.c share. */
#ifndef HX_TESTS_UNIT_GATE_REDIS_GATE_H
#define HX_TESTS_UNIT_GATE_REDIS_GATE_H

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "gate/redis.h"
#include "support/await.h"
#include "support/gate_asker.h"
#include "support/redis_server.h"

#define LONG_MS 60000
#define CROWD 200
#define QUEUE_MAX 4096
#define LARGE 30
#define LARGE_BYTES (1u << 20)
#define DOWN_MS_MAX 20000
#define BACK_MS_MAX 60000

static struct redis *raw; /* a connection of the test's own */
static struct gate_store *store;
static bool durable;
static struct heard heard;

static inline struct redis_url url_of_server(void)
{
	struct redis_url url;

	assert_int_equal(redis_url_parse(redis_server_url(), &url, /* err= */ NULL), HX_OK);
	return url;
}

/* The reply of a command that must succeed: to be freed. */
#define RAW(...)                                                                                                       \
	raw_reply(sizeof((const struct slice[]){__VA_ARGS__}) / sizeof(struct slice),                                  \
		  (const struct slice[]){__VA_ARGS__})
static inline redisReply *raw_reply(size_t n, const struct slice args[])
{
	redisReply *reply = NULL;
	struct hx_error err = {0};

	if (redis_connect(raw, &err))
		fail_msg("%s", err.detail);
	redis_send(raw, n, args);
	if (redis_receive(raw, &reply, &err))
		fail_msg("%.*s: %s", SLICE_ARGS(args[0]), err.detail);
	return reply;
}

#define RAW_NUMBER(...)                                                                                                \
	({                                                                                                             \
		redisReply *reply_ = RAW(__VA_ARGS__);                                                                 \
		long long number_ = reply_->integer;                                                                   \
		freeReplyObject(reply_);                                                                               \
		number_;                                                                                               \
	})

static inline void raw_do(const char *a, const char *b, const char *c, const char *d)
{
	freeReplyObject(d ? RAW(slice_str(a), slice_str(b), slice_str(c), slice_str(d))
			  : RAW(slice_str(a), slice_str(b)));
}

static inline struct gate_store *open_url(const char *url)
{
	struct gate_store *opened = NULL;
	struct hx_error err = {0};

	if (gate_redis_new(url, clock_system(), &opened, &durable, &err))
		fail_msg("%s", err.detail);
	return opened;
}

static inline int set_up(void **state)
{
	struct redis_options options = {.url = url_of_server(), .clock = clock_system(), .timeout_ms = 10000};

	(void)state;
	assert_int_equal(redis_new(&options, &raw, /* err= */ NULL), HX_OK);
	raw_do("FLUSHALL", "SYNC", NULL, NULL);
	store = open_url(redis_server_url());
	return 0;
}

static inline int tear_down(void **state)
{
	(void)state;
	redis_ctl("continue"); /* a test may have failed while it held the server */
	gate_store_free(store);
	redis_free(raw);
	return 0;
}

static inline enum gate_verdict acquire(const struct hx_gate_claim *claim)
{
	return hear_acquire(store, claim, &heard);
}

static inline enum gate_verdict others_hear(const struct hx_gate_claim *claim)
{
	struct hx_gate_claim another = claim_by_another(claim);

	return acquire(&another);
}

/* Of the record of this claim, until it is asked for another. */
static inline const char *key_of(const struct hx_gate_claim *claim)
{
	static char key[128];
	char hex[2 * SHA256_BYTES + 1];

	sha256_hex(claim->key, hex);
	snprintf(key, sizeof key, "hapax:gate:%s", hex);
	return key;
}

static inline long long ttl_of(const struct hx_gate_claim *claim)
{
	return RAW_NUMBER(slice_str("PTTL"), slice_str(key_of(claim)));
}

#endif
