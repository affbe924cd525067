/* Slow, idle, greedy and many clients: each is bounded in time and memory, and the others go on. */
#include "http/http_test.h"

#define GET "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n"

static void ask_once(int fd)
{
	client_say(fd, GET);
	expect_reply(fd, 200, "");
}

static int down(void **state)
{
	(void)state;
	server_down();
	return 0;
}

/* ---- time ---- */

static void a_slow_request_is_cut_off(void **state)
{
	static const char *const starts[] = {
		"G",
		"\r\n",
		"GET /echo HTTP/1.1\r\nHost: a\r\n",
		"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n",
		"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf",
		"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab",
	};
	struct server_options options = test_options();

	(void)state;
	options.read_ms = 50;
	server_up(&options);
	for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
		int64_t start = now_ms();
		int fd = client_open();

		client_say(fd, starts[i]);
		assert_false(expect_reply(fd, 408, NULL));
		assert_true(now_ms() - start >= 50);
		expect_closed(fd);
	}
	assert_int_equal(stats_now().requests, 0);
	assert_int_equal(stats_now().timed_out, sizeof starts / sizeof *starts);
	AWAIT(stats_now().bodies_bytes == 0);
}

/* A byte now and then does not buy more time: the limit is for the whole request. */
static void a_trickle_is_cut_off(void **state)
{
	static const char text[] = "GET /echo HTTP/1.1\r\nHost: a\r\nX: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
	struct server_options options = test_options();
	struct timespec pace = {.tv_nsec = 10000000};
	int64_t start;
	size_t sent = 0;
	int fd;

	(void)state;
	options.read_ms = 200;
	server_up(&options);
	start = now_ms();
	fd = client_open();
	while (sent < sizeof text - 1 && stats_now().timed_out == 0) {
		assert_true(client_send(fd, slice_of(text + sent++, 1)));
		nanosleep(&pace, NULL);
	}
	assert_true(sent < sizeof text - 1);
	assert_in_range(now_ms() - start, 200, 30000);
	assert_false(expect_reply(fd, 408, NULL));
	expect_closed(fd);
}

static void an_idle_connection_is_closed(void **state)
{
	struct server_options options = test_options();
	int fresh, used;

	(void)state;
	options.idle_ms = 500; /* in which a client that has connected can ask, also on a busy machine */
	server_up(&options);
	fresh = client_open();
	used = client_open();
	ask_once(used);
	expect_closed(fresh);
	expect_closed(used);
	assert_int_equal(stats_now().timed_out, 2);
}

static void a_client_that_does_not_read_is_cut_off(void **state)
{
	struct server_options options = test_options();
	int little = 4096;
	int fd;

	(void)state;
	options.write_ms = 500;
	server_up(&options);
	fd = client_open();
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
	/* More than the buffers of both ends can hold. */
	for (int i = 0; i < 16; i++)
		client_say(fd, "GET /big HTTP/1.1\r\nHost: a\r\n\r\n");
	AWAIT(stats_now().timed_out == 1);
	AWAIT(stats_now().connections_open == 0);
	close(fd);
	fd = client_open();
	ask_once(fd);
	close(fd);
}

/* ---- size ---- */

static void long_heads_are_refused(void **state)
{
	struct server_options options = test_options();
	struct strbuf sb;

	(void)state;
	options.head = (struct wire_limits){.line_bytes = 100, .head_bytes = 400, .fields = 5};
	server_up(&options);
	for (int i = 0; i < 3; i++) {
		int fd = client_open();

		strbuf_init(&sb, 100000);
		strbuf_addf(&sb, "GET /%0*d HTTP/1.1\r\nHost: a\r\n", i == 0 ? 90 : 1, 0);
		for (int j = 0; j < (i == 1 ? 5 : 1); j++)
			strbuf_addf(&sb, "X: %0*d\r\n", i == 2 ? 400 : 1, 0);
		strbuf_add_str(&sb, "\r\n");
		(void)client_send(fd, strbuf_slice(&sb));
		assert_false(expect_reply(fd, i == 0 ? 414 : 431, NULL));
		expect_closed(fd);
		strbuf_release(&sb);
	}
	assert_int_equal(stats_now().requests, 0);
}

static void all_bodies_together_have_a_limit(void **state)
{
	struct server_options options = test_options();
	int first, second;

	(void)state;
	options.bodies_bytes_max = 15;
	options.small_body_bytes = 0;
	server_up(&options);
	first = client_open();
	second = client_open();
	client_say(first, "POST /hold HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789");
	struct http_exchange *exchange = held_take();

	client_say(second, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\n012345");
	struct reply reply = read_reply(second, false);
	assert_int_equal(reply.status, 503);
	assert_non_null(strstr(reply.text, "\r\nRetry-After: "));
	reply_release(&reply);
	expect_closed(second);
	AWAIT(stats_now().bodies_bytes == 10);
	respond_text(exchange, 200, slice_str("ok"));
	expect_reply(first, 200, "ok");
	AWAIT(stats_now().bodies_bytes == 0);
	client_say(first, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 15\r\n\r\n012345678901234");
	expect_reply(first, 200, "012345678901234");
	close(first);
}

/* What waits for a slow reader counts, too: then it is new requests that are refused, with a body or without. */
static void answers_that_wait_count(void **state)
{
	struct server_options options = test_options();
	size_t n = 16u << 20; /* more than the kernel takes */
	char *large = malloc(n);
	int slow, other;

	(void)state;
	assert_non_null(large);
	memset(large, 'x', n);
	options.bodies_bytes_max = n;
	server_up(&options);
	slow = client_open();
	other = client_open();
	client_say(slow, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
	respond_text(held_take(), 200, slice_of(large, n));
	AWAIT(stats_now().bodies_bytes > n);
	client_say(other, "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
	struct reply reply = read_reply(other, false);
	assert_int_equal(reply.status, 503);
	reply_release(&reply);
	expect_closed(other);
	reply = read_reply(slow, false);
	assert_int_equal(reply.status, 200);
	reply_release(&reply);
	AWAIT(stats_now().bodies_bytes == 0);
	ask_once(slow);
	close(slow);
	free(large);
}

/* ---- number ---- */

static void the_longest_idle_makes_room(void **state)
{
	struct server_options options = test_options();
	int fds[4];

	(void)state;
	options.connections_max = 3;
	options.loops = 1;
	server_up(&options);
	for (int i = 0; i < 3; i++) {
		fds[i] = client_open();
		ask_once(fds[i]);
	}
	ask_once(fds[0]); /* so that the second one is idle for longest */
	fds[3] = client_open();
	ask_once(fds[3]);
	expect_closed(fds[1]);
	assert_int_equal(stats_now().connections_evicted, 1);
	ask_once(fds[0]);
	ask_once(fds[2]);
	close(fds[0]);
	close(fds[2]);
	close(fds[3]);
}

static void one_too_many_waits_in_the_backlog(void **state)
{
	struct linger at_once = {.l_onoff = 1, .l_linger = 0};
	struct server_options options = test_options();
	int fds[4];

	(void)state;
	options.connections_max = 2;
	server_up(&options);
	for (int i = 0; i < 2; i++) {
		fds[i] = client_open();
		client_say(fds[i], "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
	}
	AWAIT(held_count() == 2);
	for (int i = 2; i < 4; i++) {
		fds[i] = client_open();
		client_say(fds[i], GET);
	}
	assert_int_equal(stats_now().connections_total, 2);
	/* One is answered, and idle: it makes room, and its successor does, in whichever loop they are. */
	respond_text(held_take(), 200, slice_str("held"));
	expect_reply(fds[2], 200, "");
	expect_reply(fds[3], 200, "");
	assert_true(stats_now().connections_evicted >= 1);
	/* One is torn down by its client. */
	setsockopt(fds[0], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
	setsockopt(fds[1], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
	close(fds[0]);
	close(fds[1]);
	AWAIT(handler.gone == 1);
	respond_text(held_take(), 200, slice_str(""));
	close(fds[2]);
	close(fds[3]);
	AWAIT(stats_now().connections_open == 0);
}

/* Each open connection is a descriptor at both ends, and both ends are this process. */
static size_t affordable(size_t wanted)
{
	struct rlimit limit;
	size_t most;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit); /* what there is has to do then */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	most = (limit.rlim_cur - 100) / 2;
	return wanted < most ? wanted : most;
}

/* How long a hundred requests of a normal client take while the others are there. */
static int64_t hundred_requests_ms(void)
{
	int fd = client_open();
	int64_t start = now_ms();

	for (int i = 0; i < 100; i++)
		ask_once(fd);
	close(fd);
	return now_ms() - start;
}

static void thousands_of_idle_connections_cost_little(void **state)
{
	size_t n = affordable(5000), before, after;
	int *fds = malloc(n * sizeof *fds);
	struct server_options options = test_options();
	int64_t ms;

	(void)state;
	server_up(&options);
	ms = hundred_requests_ms();
	before = rss_bytes();
	for (size_t i = 0; i < n; i++) {
		fds[i] = client_open();
		if (i % 2) /* half of them have been busy once */
			ask_once(fds[i]);
	}
	AWAIT(stats_now().connections_open >= n);
	after = rss_bytes();
	printf("# %zu idle connections: RSS %.1f MiB before, %.1f MiB with them (%zd bytes each); "
	       "100 requests of a normal client: %lld ms alone, %lld ms beside them\n",
	       n, before / 1048576.0, after / 1048576.0, (ssize_t)(after - before) / (ssize_t)n, (long long)ms,
	       (long long)hundred_requests_ms());
	if (!SANITIZED)
		assert_true(after < before + n * 1024);
	for (size_t i = 0; i < n; i += 97)
		ask_once(fds[i]);
	for (size_t i = 0; i < n; i++)
		close(fds[i]);
	AWAIT(stats_now().connections_open == 0);
	free(fds);
}

/* Half a head each, as large as it may be, and half a body. */
static void slow_connections_are_bounded(void **state)
{
	enum { SLOW = 300 };
	struct server_options options = test_options();
	static char filler[30000];
	size_t before, after;
	int fds[SLOW];

	(void)state;
	memset(filler, 'x', sizeof filler);
	server_up(&options);
	hundred_requests_ms();
	before = rss_bytes();
	for (int i = 0; i < SLOW; i++) {
		fds[i] = client_open();
		client_say(fds[i], i % 2 ? "GET /echo HTTP/1.1\r\nHost: a\r\nX: "
					 : "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 16777216\r\n\r\n");
		assert_true(client_send(fds[i], slice_of(filler, sizeof filler)));
	}
	AWAIT(stats_now().bodies_bytes == SLOW / 2 * sizeof filler);
	after = rss_bytes();
	printf("# %d slow connections with 30 KB sent: RSS %.1f MiB before, %.1f MiB with them (%zd bytes each); "
	       "100 requests of a normal client: %lld ms\n",
	       SLOW, before / 1048576.0, after / 1048576.0, (ssize_t)(after - before) / SLOW,
	       (long long)hundred_requests_ms());
	if (!SANITIZED)
		assert_true(after < before + (size_t)SLOW * 80000);
	for (int i = 0; i < SLOW; i++)
		close(fds[i]);
	AWAIT(stats_now().connections_open == 0);
	assert_int_equal(stats_now().bodies_bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_slow_request_is_cut_off, down),
		cmocka_unit_test_teardown(a_trickle_is_cut_off, down),
		cmocka_unit_test_teardown(an_idle_connection_is_closed, down),
		cmocka_unit_test_teardown(a_client_that_does_not_read_is_cut_off, down),
		cmocka_unit_test_teardown(long_heads_are_refused, down),
		cmocka_unit_test_teardown(all_bodies_together_have_a_limit, down),
		cmocka_unit_test_teardown(answers_that_wait_count, down),
		cmocka_unit_test_teardown(the_longest_idle_makes_room, down),
		cmocka_unit_test_teardown(one_too_many_waits_in_the_backlog, down),
		cmocka_unit_test_teardown(thousands_of_idle_connections_cost_little, down),
		cmocka_unit_test_teardown(slow_connections_are_bounded, down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
