/*
 * What becomes of an errand that is refused, lost, or still queued at the end. The ordinary life of the worker is lived by
 * its two users: see test_store_redis and tests/contract/test_entry_lock. Needs the private Redis of tests/with-redis.
 *
 * Each test lets a round begin with all that it wants to have in it, by holding the worker at a door before.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gate/redis.h"
#include "gate/redis_worker.h"
#include "support/await.h"

#define AWAIT_MS 60000
#define QUEUE_MAX 3

/* A command without arguments or with one. */
struct errand {
	struct redis_errand errand;
	const char *verb, *argument;
	bool waits_for_the_end;
	_Atomic int answers;
	bool replied, maybe_done;
};

static struct redis *raw; /* a connection of the test's own */
static struct redis_worker worker;
static pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool at_the_door;

/* ---- what an errand says and hears ---- */

static void send_words(struct redis *redis, const struct redis_errand *from)
{
	const struct errand *errand = (const struct errand *)from;

	if (errand->argument)
		REDIS_SEND(redis, slice_str(errand->verb), slice_str(errand->argument));
	else
		REDIS_SEND(redis, slice_str(errand->verb));
}

static enum hx_code run_words(struct redis *redis, const struct redis_errand *errand, redisReply **ret_reply)
{
	send_words(redis, errand);
	return redis_receive(redis, ret_reply, /* err= */ NULL);
}

static bool is_stopping(void)
{
	bool stopping;

	monitor_lock(&worker.monitor);
	stopping = worker.stopping;
	monitor_unlock(&worker.monitor);
	return stopping;
}

/* What nobody else may do: it keeps the worker from its work. */
static void wait_at_the_door(const struct errand *errand)
{
	int64_t until_ms = await_now_ms() + AWAIT_MS;

	atomic_store(&at_the_door, true);
	pthread_mutex_lock(&door);
	pthread_mutex_unlock(&door);
	while (errand->waits_for_the_end && !is_stopping() && await_now_ms() < until_ms)
		await_pause();
}

static void answer(struct redis_errand *from, const redisReply *reply, bool maybe_done)
{
	struct errand *errand = (struct errand *)from;

	errand->replied = reply;
	errand->maybe_done = maybe_done;
	if (strcmp(errand->verb, "PING") == 0)
		wait_at_the_door(errand);
	atomic_fetch_add(&errand->answers, 1);
}

static const struct redis_worker_kind plain = {send_words, run_words, answer, .repeats_lost = false};
static const struct redis_worker_kind repeating = {send_words, run_words, answer, .repeats_lost = true};

/* ---- the worker, held ---- */

static struct redis_options options_of_server(void)
{
	struct redis_options options = {.clock = clock_system()};
	const char *url = getenv("HAPAX_TEST_REDIS");

	if (!url || redis_url_parse(url, &options.url, /* err= */ NULL))
		fail_msg("HAPAX_TEST_REDIS is not set: run this through tests/with-redis (make test does)");
	return options;
}

static long long raw_number(const char *verb, const char *argument)
{
	redisReply *reply = NULL;
	long long number;

	REDIS_SEND(raw, slice_str(verb), slice_str(argument));
	assert_int_equal(redis_receive(raw, &reply, /* err= */ NULL), HX_OK);
	number = reply->integer;
	freeReplyObject(reply);
	return number;
}

static int set_up(void **state)
{
	struct redis_options options = options_of_server();

	(void)state;
	assert_int_equal(redis_new(&options, &raw, /* err= */ NULL), HX_OK);
	assert_int_equal(redis_connect(raw, /* err= */ NULL), HX_OK);
	(void)raw_number("FLUSHALL", "SYNC");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	redis_free(raw);
	return 0;
}

/* Starts a worker that is about to be held by the ping, which is its first round. */
static void begin(const struct redis_worker_kind *kind, struct errand *ping)
{
	struct redis_options options = options_of_server();

	assert_int_equal(redis_worker_init(&worker, kind, &options, /* needed= */ false, /* err= */ NULL), HX_OK);
	assert_int_equal(redis_worker_start(&worker, /* err= */ NULL), HX_OK);
	atomic_store(&at_the_door, false);
	pthread_mutex_lock(&door);
	assert_true(redis_worker_push(&worker, &ping->errand, QUEUE_MAX));
	AWAIT(AWAIT_MS, atomic_load(&at_the_door));
}

static void push_all(struct errand errands[QUEUE_MAX])
{
	for (size_t i = 0; i < QUEUE_MAX; i++)
		assert_true(redis_worker_push(&worker, &errands[i].errand, QUEUE_MAX));
}

/* Lets the worker go on, and ends it when all are answered. */
static void end(struct errand errands[QUEUE_MAX])
{
	pthread_mutex_unlock(&door);
	for (size_t i = 0; i < QUEUE_MAX; i++)
		AWAIT(AWAIT_MS, atomic_load(&errands[i].answers) == 1);
	redis_worker_release(&worker);
}

/* ---- tests ---- */

/* Of a pipeline only the one that was refused has no reply, and it was certainly not carried out. */
static void refused_is_not_done(void **state)
{
	struct errand ping = {.verb = "PING"};
	struct errand errands[QUEUE_MAX] = {{.verb = "INCR", .argument = "a"}, {.verb = "NONSENSE"}, {.verb = "TIME"}};

	(void)state;
	begin(&plain, &ping);
	push_all(errands);
	end(errands);
	assert_true(errands[0].replied && !errands[1].replied && errands[2].replied);
	assert_false(errands[1].maybe_done);
}

/* QUIT is answered and ends the connection: what comes after it in its pipeline is lost. */
static void lost_is_perhaps_done_and_not_repeated(void **state)
{
	struct errand ping = {.verb = "PING"};
	struct errand errands[QUEUE_MAX] = {
		{.verb = "QUIT"}, {.verb = "INCR", .argument = "a"}, {.verb = "INCR", .argument = "a"}};

	(void)state;
	begin(&plain, &ping);
	push_all(errands);
	end(errands);
	assert_true(errands[0].replied);
	assert_true(!errands[1].replied && errands[1].maybe_done);
	assert_true(!errands[2].replied && errands[2].maybe_done);
	assert_int_equal(raw_number("INCR", "a"), 1);
}

static void lost_is_repeated_once_where_it_may_be(void **state)
{
	struct errand ping = {.verb = "PING"};
	struct errand errands[QUEUE_MAX] = {
		{.verb = "QUIT"}, {.verb = "INCR", .argument = "a"}, {.verb = "INCR", .argument = "a"}};

	(void)state;
	begin(&repeating, &ping);
	push_all(errands);
	end(errands);
	assert_true(errands[0].replied && errands[1].replied && errands[2].replied);
	assert_int_equal(raw_number("INCR", "a"), 3);
}

static void one_more_than_queue_max_is_not_taken(void **state)
{
	struct errand ping = {.verb = "PING"}, more = {.verb = "TIME"};
	struct errand errands[QUEUE_MAX] = {{.verb = "TIME"}, {.verb = "TIME"}, {.verb = "TIME"}};
	bool taken;

	(void)state;
	begin(&plain, &ping);
	push_all(errands);
	taken = redis_worker_push(&worker, &more.errand, QUEUE_MAX);
	end(errands);
	assert_false(taken);
	assert_int_equal(atomic_load(&more.answers), 0);
}

/* The server is well, and what is queued when the end comes is carried out, but not what is not_at_end. */
static void at_the_end_only_what_may_is_carried_out(void **state)
{
	struct errand ping = {.verb = "PING", .waits_for_the_end = true};
	struct errand errands[QUEUE_MAX] = {
		{.verb = "INCR", .argument = "a"},
		{.verb = "INCR", .argument = "b", .errand = {.not_at_end = true}},
		{.verb = "INCR", .argument = "a"},
	};

	(void)state;
	begin(&plain, &ping);
	push_all(errands);
	pthread_mutex_unlock(&door);
	redis_worker_release(&worker);
	for (size_t i = 0; i < QUEUE_MAX; i++)
		assert_int_equal(atomic_load(&errands[i].answers), 1);
	assert_true(errands[0].replied && !errands[1].replied && errands[2].replied);
	assert_false(errands[1].maybe_done);
	assert_int_equal(raw_number("INCR", "a"), 3);
	assert_int_equal(raw_number("INCR", "b"), 1);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(refused_is_not_done),
		TEST(lost_is_perhaps_done_and_not_repeated),
		TEST(lost_is_repeated_once_where_it_may_be),
		TEST(one_more_than_queue_max_is_not_taken),
		TEST(at_the_end_only_what_may_is_carried_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
