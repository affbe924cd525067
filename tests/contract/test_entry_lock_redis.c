/* Entry locks in Redis alone: a server that falls silent, restarts, or loses its scripts and clients; a full queue; urls. */
#include "entry_places.h"

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

#define TEST_REDIS(test)                                                                                               \
	{                                                                                                              \
		.name = #test, .test_func = test, .setup_func = set_up_redis, .teardown_func = tear_down               \
	}

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
	int failed = cmocka_run_group_tests_name("redis alone", of_redis, NULL, NULL);

	return failed + cmocka_run_group_tests_name("urls", of_urls, NULL, NULL);
}
