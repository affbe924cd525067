/*
 * The connection of redis.h against servers that misbehave, played by a thread of this program, and against the
 * private Redis of tests/with-redis.
 */
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "gate/redis.h"

#define SHA "0123456789012345678901234567890123456789"
#define OPENING "+OK\r\n+OK\r\n$40\r\n" SHA "\r\n"

static const char *const scripts[] = {"return 1"};

static int64_t now_ms(void)
{
	return clock_mono(clock_system()).ns / 1000000;
}

/* ---- a server that says what it is told to say ---- */

/* To each connection: the words, whatever it is asked, then silence or the end. */
struct liar {
	int listener;
	char port[6];
	pthread_t thread;
	const char *words;
	size_t words_n;
	bool slowly; /* a byte every 100 ms */
	bool hangs_up;
	_Atomic int accepted;
};

static void say(const struct liar *liar, int fd)
{
	size_t step = liar->slowly ? 1 : liar->words_n;

	for (size_t at = 0; at < liar->words_n; at += step) {
		struct pollfd gone = {.fd = fd, .events = POLLRDHUP};

		if (send(fd, liar->words + at, step, MSG_NOSIGNAL) < 0)
			return;
		if (liar->slowly && poll(&gone, 1, 100) > 0)
			return;
	}
}

static void *lie(void *context)
{
	struct liar *liar = context;
	int fd;

	while ((fd = accept(liar->listener, NULL, NULL)) >= 0) {
		struct pollfd asked = {.fd = fd, .events = POLLIN}, gone = {.fd = fd, .events = POLLRDHUP};

		liar->accepted++;
		(void)poll(&asked, 1, -1);
		say(liar, fd);
		if (!liar->hangs_up)
			(void)poll(&gone, 1, -1);
		close(fd);
	}
	return NULL;
}

static void liar_start(struct liar *liar, const char *words)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t n = sizeof address;

	liar->words = words;
	liar->words_n = strlen(words);
	liar->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(liar->listener, (struct sockaddr *)&address, n), 0);
	assert_int_equal(listen(liar->listener, 5), 0);
	assert_int_equal(getsockname(liar->listener, (struct sockaddr *)&address, &n), 0);
	snprintf(liar->port, sizeof liar->port, "%d", ntohs(address.sin_port));
	assert_int_equal(pthread_create(&liar->thread, NULL, lie, liar), 0);
}

static void liar_stop(struct liar *liar)
{
	shutdown(liar->listener, SHUT_RDWR); /* wakes accept() */
	pthread_join(liar->thread, NULL);
	close(liar->listener);
}

static struct redis *redis_of(const char *port)
{
	struct redis_options options = {.url = {.at.host = "127.0.0.1", .password = "sesame"},
					.clock = clock_system(),
					.scripts = scripts,
					.scripts_n = 1};
	struct redis *redis = NULL;

	snprintf(options.url.at.port, sizeof options.url.at.port, "%s", port);
	assert_int_equal(redis_new(&options, &redis, /* err= */ NULL), HX_OK);
	return redis;
}

/* What redis_connect() says to a server with these words. */
static enum hx_code connect_to_words(const char *words, bool hangs_up, struct hx_error *ret_err)
{
	struct liar liar = {.hangs_up = hangs_up};
	struct redis *redis;
	enum hx_code code;

	liar_start(&liar, words);
	redis = redis_of(liar.port);
	code = redis_connect(redis, ret_err);
	assert_true(redis_is_connected(redis) == !code);
	redis_free(redis);
	liar_stop(&liar);
	return code;
}

static void openings(void **state)
{
	static const struct {
		const char *words;
		enum hx_code code;
		const char *detail;
	} servers[] = {
		{OPENING, HX_OK, ""},
		{"-WRONGPASS invalid\r\n", HX_CONFIG_ERROR, "redis: the server refuses the password"},
		{"-ERR unknown command 'AUTH', with args beginning with: 'sesame'\r\n", HX_CONFIG_ERROR,
		 "redis: the server refuses the password"},
		{"-DENIED Redis is running in protected mode\r\n", HX_CONFIG_ERROR,
		 "redis: the server is in protected mode and takes nobody from another machine"},
		{"-ERR max number of clients reached\r\n", HX_STORE_UNAVAILABLE, "redis: the server is not ready"},
		{"+OK\r\n-LOADING Redis is loading\r\n", HX_STORE_UNAVAILABLE, "redis: the server is not ready"},
		{"+OK\r\n-ERR DB index is out of range\r\n", HX_CONFIG_ERROR, "redis: the server has no such database"},
		{"+OK\r\n+OK\r\n-NOPERM no\r\n", HX_CONFIG_ERROR, "redis: the server does not let us load scripts"},
		{"+OK\r\n+OK\r\n+short\r\n", HX_STORE_UNAVAILABLE, "redis: the reply cannot be understood"},
		{"HTTP/1.1 400 Bad Request\r\n\r\n", HX_STORE_UNAVAILABLE, "redis: the reply cannot be understood"},
		{"+OK\r\n", HX_STORE_UNAVAILABLE, "redis: the connection was lost"},
		{"", HX_STORE_UNAVAILABLE, "redis: the connection was lost"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof servers / sizeof *servers; i++) {
		struct hx_error err = {0};
		enum hx_code code = connect_to_words(servers[i].words, /* hangs_up= */ true, &err);

		if (code != servers[i].code || strcmp(err.detail, servers[i].detail) != 0)
			fail_msg("%s: %s, %s", servers[i].words, hx_code_name(code), err.detail);
	}
}

static void silence_is_given_up(void **state)
{
	struct hx_error err = {0};
	int64_t start = now_ms(), ms;

	(void)state;
	assert_int_equal(connect_to_words("+OK\r\n", /* hangs_up= */ false, &err), HX_STORE_UNAVAILABLE);
	assert_string_equal(err.detail, "redis: no answer in time");
	ms = now_ms() - start;
	assert_true(ms >= REDIS_TIMEOUT_MS && ms < 5000);
}

/* The deadline is for the whole answer, not for each of its bytes. */
static void a_trickle_is_given_up(void **state)
{
	struct liar liar = {.slowly = true};
	struct hx_error err = {0};
	struct redis *redis;
	int64_t start, ms;

	(void)state;
	liar_start(&liar, OPENING);
	redis = redis_of(liar.port);
	start = now_ms();
	assert_int_equal(redis_connect(redis, &err), HX_STORE_UNAVAILABLE);
	ms = now_ms() - start;
	assert_string_equal(err.detail, "redis: no answer in time");
	assert_true(ms >= REDIS_TIMEOUT_MS && ms < 5000);
	redis_free(redis);
	liar_stop(&liar);
}

static void nobody_there_is_not_asked_again_at_once(void **state)
{
	struct redis *redis = redis_of("1");
	struct hx_error err = {0};
	int64_t start = now_ms(), wait_ms = 0;

	(void)state;
	assert_int_equal(redis_connect(redis, &err), HX_STORE_UNAVAILABLE);
	assert_non_null(strstr(err.detail, "127.0.0.1:1: Connection refused"));
	for (int i = 0; i < 4; i++) {
		wait_ms = redis_connect_after(redis).ns / 1000000 - now_ms();
		assert_true(wait_ms <= REDIS_BACKOFF_MS_MIN << i);
		do {
			assert_int_equal(redis_connect(redis, &err), HX_STORE_UNAVAILABLE);
		} while (strstr(err.detail, "in a moment"));
	}
	assert_true(now_ms() - start >= REDIS_BACKOFF_MS_MIN * 15 - 8); /* 50 + 100 + 200 + 400 */
	assert_false(redis_is_connected(redis));
	redis_free(redis);
	redis_free(NULL);
}

/* ---- replies ---- */

static void replies_of_a_server(const char *replies, size_t n, const enum hx_code wanted[], bool stays)
{
	char words[512];
	struct liar liar = {0};
	struct redis *redis;
	struct hx_error err = {0};

	snprintf(words, sizeof words, OPENING "%s", replies);
	liar_start(&liar, words);
	redis = redis_of(liar.port);
	/* The liar says all at once, so that replies to what is not yet asked are there: not looked at before. */
	if (redis_connect(redis, &err))
		fail_msg("%s", err.detail);
	for (size_t i = 0; i < n; i++)
		REDIS_SEND(redis, slice_str("PING"));
	for (size_t i = 0; i < n; i++) {
		redisReply *reply = NULL;
		enum hx_code code = redis_receive(redis, &reply, &err);

		if (code != wanted[i])
			fail_msg("%s, reply %zu: %s, %s", replies, i, hx_code_name(code), err.detail);
		assert_true((reply != NULL) == !code);
		freeReplyObject(reply);
	}
	assert_true(redis_is_connected(redis) == stays);
	redis_free(redis);
	liar_stop(&liar);
}

static void error_replies_become_codes(void **state)
{
	const enum hx_code gone = HX_STORE_UNAVAILABLE;

	(void)state;
	replies_of_a_server("+PONG\r\n:7\r\n$-1\r\n", 3, (enum hx_code[]){HX_OK, HX_OK, HX_OK}, true);
	replies_of_a_server("-NOSCRIPT No\r\n+PONG\r\n", 2, (enum hx_code[]){HX_NOT_FOUND, HX_OK}, true);
	replies_of_a_server("-OOM command\r\n+PONG\r\n", 2, (enum hx_code[]){gone, HX_OK}, true);
	replies_of_a_server("-READONLY You\r\n+PONG\r\n", 2, (enum hx_code[]){gone, gone}, false);
	replies_of_a_server("-NOAUTH \r\n+PONG\r\n", 2, (enum hx_code[]){gone, gone}, false);
	replies_of_a_server("-READONLYISH \r\n+PONG\r\n", 2, (enum hx_code[]){gone, HX_OK}, true);
	replies_of_a_server("?\r\n+PONG\r\n", 2, (enum hx_code[]){gone, gone}, false);
	replies_of_a_server("", 2, (enum hx_code[]){gone, gone}, false);
}

/* Words that nobody asked for are not taken for the answer to the next question: the connection is made anew. */
static void what_comes_unasked_ends_the_connection(void **state)
{
	struct liar liar = {0};
	struct hx_error err = {0};
	struct redis *redis;

	(void)state;
	liar_start(&liar, OPENING "+late\r\n");
	redis = redis_of(liar.port);
	assert_int_equal(redis_connect(redis, &err), HX_OK);
	assert_int_equal(redis_connect(redis, &err), HX_OK);
	assert_int_equal(liar.accepted, 2);
	redis_free(redis);
	liar_stop(&liar);
	memset(&liar, 0, sizeof liar);
	liar_start(&liar, OPENING);
	redis = redis_of(liar.port);
	assert_int_equal(redis_connect(redis, &err), HX_OK);
	assert_int_equal(redis_connect(redis, &err), HX_OK);
	assert_int_equal(liar.accepted, 1);
	redis_free(redis);
	liar_stop(&liar);
}

/* ---- the real server ---- */

static struct redis *real_redis(void)
{
	const char *text = getenv("HAPAX_TEST_REDIS");
	struct redis_options options = {
		.clock = clock_system(), .timeout_ms = 20000, .scripts = scripts, .scripts_n = 1};
	struct redis *redis = NULL;
	struct hx_error err = {0};

	if (!text)
		fail_msg("HAPAX_TEST_REDIS is not set: run this through tests/with-redis (make test does)");
	if (redis_url_parse(text, &options.url, &err) || redis_new(&options, &redis, &err) ||
	    redis_connect(redis, &err))
		fail_msg("%s", err.detail);
	return redis;
}

/* More in both directions than any socket holds: whoever only writes first would wait for ever. */
static void a_pipeline_larger_than_the_sockets(void **state)
{
	const size_t n = 32, bytes = 1u << 20;
	struct redis *redis = real_redis();
	char *value = malloc(bytes);
	struct hx_error err = {0};

	(void)state;
	for (size_t i = 0; i < bytes; i++)
		value[i] = (char)(i * 7);
	for (size_t i = 0; i < n; i++)
		REDIS_SEND(redis, slice_str("ECHO"), slice_of(value, bytes));
	for (size_t i = 0; i < n; i++) {
		redisReply *reply = NULL;

		if (redis_receive(redis, &reply, &err))
			fail_msg("%s", err.detail);
		assert_int_equal(reply->len, bytes);
		assert_memory_equal(reply->str, value, bytes);
		freeReplyObject(reply);
	}
	free(value);
	redis_free(redis);
}

static void a_pipeline_has_a_ceiling(void **state)
{
	const size_t bytes = REDIS_SEND_BYTES_MAX / 2;
	struct redis *redis = real_redis();
	redisReply *reply = NULL;
	char *value = calloc(1, bytes);
	struct hx_error err = {0};

	(void)state;
	for (int i = 0; i < 2; i++)
		REDIS_SEND(redis, slice_str("ECHO"), slice_of(value, bytes));
	assert_int_equal(redis_receive(redis, &reply, &err), HX_STORE_UNAVAILABLE);
	assert_string_equal(err.detail, "redis: the commands are too large");
	assert_int_equal(redis_receive(redis, &reply, &err), HX_STORE_UNAVAILABLE);
	assert_int_equal(redis_connect(redis, &err), HX_OK); /* and it goes on */
	free(value);
	redis_free(redis);
}

static void a_script_runs_before_and_after_a_flush(void **state)
{
	struct redis *redis = real_redis();
	redisReply *reply = NULL;
	struct hx_error err = {0};

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(redis_run_script(redis, 0, 0, 0, NULL, &reply, &err), HX_OK);
		assert_int_equal(reply->integer, 1);
		freeReplyObject(reply);
		REDIS_SEND(redis, slice_str("SCRIPT"), slice_str("FLUSH"));
		assert_int_equal(redis_receive(redis, &reply, &err), HX_OK);
		freeReplyObject(reply);
	}
	redis_send_script(redis, 0, 0, 0, NULL);
	assert_int_equal(redis_receive(redis, &reply, &err), HX_NOT_FOUND);
	redis_free(redis);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(openings),
		cmocka_unit_test(silence_is_given_up),
		cmocka_unit_test(a_trickle_is_given_up),
		cmocka_unit_test(nobody_there_is_not_asked_again_at_once),
		cmocka_unit_test(error_replies_become_codes),
		cmocka_unit_test(what_comes_unasked_ends_the_connection),
		cmocka_unit_test(a_pipeline_larger_than_the_sockets),
		cmocka_unit_test(a_pipeline_has_a_ceiling),
		cmocka_unit_test(a_script_runs_before_and_after_a_flush),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
