/* Answers in pieces: framing, back-pressure with bounded memory, ends and aborts, clients that leave. */
#include "http/http_test.h"

/*
 * A writer in a thread of its own: it streams `total` bytes of a pattern to the held exchange, in pieces, and waits for
 * room where it has to.
 */
struct writer {
	struct http_exchange *exchange;
	uint64_t total;
	int64_t length; /* as announced; -1: unknown */
	bool abort;     /* instead of an end */
	int status;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool room;
	_Atomic uint64_t written;
	_Atomic int waits;
};

static void has_room(struct http_exchange *exchange, void *data)
{
	struct writer *writer = data;

	(void)exchange;
	pthread_mutex_lock(&writer->mutex);
	writer->room = true;
	pthread_cond_signal(&writer->changed);
	pthread_mutex_unlock(&writer->mutex);
}

static void wait_for_room(struct writer *writer)
{
	writer->waits++;
	pthread_mutex_lock(&writer->mutex);
	while (!writer->room)
		pthread_cond_wait(&writer->changed, &writer->mutex);
	writer->room = false;
	pthread_mutex_unlock(&writer->mutex);
}

static char pattern(uint64_t at)
{
	return (char)('a' + at % 23);
}

static void *write_all(void *data)
{
	struct writer *writer = data;
	struct http_exchange *exchange = writer->exchange;
	static _Thread_local char piece[10007];

	http_stream_start(exchange, &(struct http_answer){.status = writer->status}, writer->length, has_room, writer);
	while (writer->written < writer->total) {
		uint64_t left = writer->total - writer->written;
		size_t n = left < sizeof piece ? (size_t)left : sizeof piece, taken;

		for (size_t i = 0; i < n; i++)
			piece[i] = pattern(writer->written + i);
		taken = http_stream_write(exchange, slice_of(piece, n));
		writer->written += taken;
		if (taken < n)
			wait_for_room(writer);
	}
	if (writer->abort)
		http_stream_abort(exchange);
	else
		http_stream_end(exchange);
	return NULL;
}

static void writer_start(struct writer *writer)
{
	if (!writer->status)
		writer->status = 200;
	pthread_mutex_init(&writer->mutex, NULL);
	pthread_cond_init(&writer->changed, NULL);
	writer->exchange = held_take();
	assert_int_equal(pthread_create(&writer->thread, NULL, write_all, writer), 0);
}

static void writer_join(struct writer *writer)
{
	pthread_join(writer->thread, NULL);
	pthread_cond_destroy(&writer->changed);
	pthread_mutex_destroy(&writer->mutex);
}

static void check_pattern(const struct strbuf *body, uint64_t n)
{
	assert_int_equal(body->n, n);
	for (size_t i = 0; i < n; i++)
		if (body->p[i] != pattern(i))
			fail_msg("byte %zu is wrong", i);
}

static int up(void **state)
{
	struct server_options options = test_options();

	(void)state;
	options.stream_bytes_max = 16384;
	options.write_ms = 2000;
	server_up(&options);
	return 0;
}

static int down(void **state)
{
	(void)state;
	server_down();
	return 0;
}

static struct reply ask(int fd, const char *line, struct writer *writer)
{
	struct strbuf sb;
	struct reply reply;

	strbuf_init(&sb, 1000);
	strbuf_addf(&sb, "%s\r\nHost: a\r\n\r\n", line);
	assert_true(client_send(fd, strbuf_slice(&sb)));
	strbuf_release(&sb);
	writer_start(writer);
	reply = read_reply(fd, line[0] == 'H');
	writer_join(writer);
	return reply;
}

static void check_next(int fd)
{
	client_say(fd, "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
	expect_reply(fd, 200, "");
}

/* ---- framing ---- */

static void unknown_lengths_are_chunked(void **state)
{
	static const uint64_t totals[] = {0, 1, 100, 10007, 200000};
	int fd = client_open();

	(void)state;
	for (size_t i = 0; i < sizeof totals / sizeof *totals; i++) {
		struct writer writer = {.total = totals[i], .length = -1};
		struct reply reply = ask(fd, "GET /hold HTTP/1.1", &writer);

		assert_int_equal(reply.head.framing, WIRE_CHUNKED);
		assert_true(reply.complete);
		check_pattern(&reply.body, totals[i]);
		reply_release(&reply);
		assert_int_equal(stats_now().responses[0], i + 1);
	}
	check_next(fd);
	close(fd);
}

static void known_lengths_are_announced(void **state)
{
	struct writer writer = {.total = 300000, .length = 300000};
	int fd = client_open();
	struct reply reply = ask(fd, "GET /hold HTTP/1.1", &writer);

	(void)state;
	assert_int_equal(reply.head.framing, WIRE_LENGTH);
	check_pattern(&reply.body, 300000);
	reply_release(&reply);
	/* What is written beyond the length is not sent. */
	writer = (struct writer){.total = 1000, .length = 10};
	reply = ask(fd, "GET /hold HTTP/1.1", &writer);
	check_pattern(&reply.body, 10);
	reply_release(&reply);
	check_next(fd);
	close(fd);
}

static void a_client_of_http_1_0_reads_until_the_end(void **state)
{
	struct writer writer = {.total = 50000, .length = -1};
	int fd = client_open();
	struct reply reply = ask(fd, "GET /hold HTTP/1.0", &writer);

	(void)state;
	assert_int_equal(reply.head.framing, WIRE_UNTIL_CLOSE);
	assert_true(reply.complete);
	check_pattern(&reply.body, 50000);
	reply_release(&reply);
	close(fd);
}

static void head_and_204_have_no_body(void **state)
{
	struct writer writer = {.total = 0, .length = 123456};
	int fd = client_open();
	struct reply reply = ask(fd, "HEAD /hold HTTP/1.1", &writer);

	(void)state;
	assert_int_equal(reply.head.length, 123456);
	reply_release(&reply);
	check_next(fd);
	writer = (struct writer){.total = 100000, .length = -1};
	reply = ask(fd, "HEAD /hold HTTP/1.1", &writer);
	assert_int_equal(reply.status, 200);
	reply_release(&reply);
	writer = (struct writer){.total = 100000, .length = -1, .status = 204};
	reply = ask(fd, "GET /hold HTTP/1.1", &writer);
	assert_int_equal(reply.status, 204);
	assert_int_equal(reply.body.n, 0);
	reply_release(&reply);
	check_next(fd);
	close(fd);
}

/* ---- broken off ---- */

static void a_broken_stream_is_never_taken_for_a_whole_one(void **state)
{
	static const struct {
		const char *line;
		int64_t length;
		bool abort;
	} cases[] = {
		{"GET /hold HTTP/1.1", -1, true},
		{"GET /hold HTTP/1.1", 5000, true},
		{"GET /hold HTTP/1.0", -1, true},
		{"GET /hold HTTP/1.1", 5000, false}, /* ended too early */
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct writer writer = {.total = 1000, .length = cases[i].length, .abort = cases[i].abort};
		int fd = client_open();
		struct reply reply = ask(fd, cases[i].line, &writer);

		assert_false(reply.complete);
		assert_true(reply.reset);
		reply_release(&reply);
		close(fd);
	}
	AWAIT(stats_now().connections_open == 0);
}

static void a_client_that_leaves_does_not_hold_the_writer(void **state)
{
	struct writer writer = {.total = 64u << 20, .length = -1};
	int fd = client_open();

	(void)state;
	client_say(fd, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
	writer_start(&writer);
	AWAIT(writer.waits > 0);
	assert_true(writer.written < writer.total);
	close(fd);
	writer_join(&writer);
	assert_int_equal(writer.written, writer.total);
	AWAIT(stats_now().connections_open == 0);
}

static void a_client_that_left_before_the_start(void **state)
{
	struct writer writer = {.total = 1u << 20, .length = -1};
	struct linger at_once = {.l_onoff = 1, .l_linger = 0};
	int fd = client_open();

	(void)state;
	client_say(fd, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
	AWAIT(held_count() == 1);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
	close(fd);
	AWAIT(stats_now().connections_open == 0);
	writer_start(&writer);
	writer_join(&writer);
	assert_int_equal(writer.written, writer.total);
}

/* ---- slow readers ---- */

/* Returns where the writer has not moved from for a tenth of a second. */
static uint64_t await_standstill(struct writer *writer)
{
	int64_t since = now_ms();
	uint64_t last = 0;

	while (now_ms() - since < 100 || writer->waits == 0) {
		if (writer->written != last)
			since = now_ms();
		last = writer->written;
		nap();
	}
	return last;
}

static void a_slow_reader_slows_the_writer(void **state)
{
	const uint64_t total = SANITIZED ? 16u << 20 : 64u << 20;
	struct writer writer = {.total = total, .length = -1};
	size_t before = rss_bytes(), most = 0, got = 0;
	static char buffer[65536];
	int fd = client_open();

	(void)state;
	client_say(fd, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
	writer_start(&writer);
	/* Nobody reads: the writer comes to a stand, with the buffers of the kernel full and little of ours. */
	uint64_t stood_at = await_standstill(&writer);

	assert_true(stood_at < total / 2);
	for (ssize_t n; got < total && (n = recv(fd, buffer, sizeof buffer, 0)) > 0; got += (size_t)n)
		most = rss_bytes() > most ? rss_bytes() : most;
	writer_join(&writer);
	printf("# %llu MiB streamed to a slow reader: the writer stood at %llu KiB, waited %d times, RSS grew by %zd KiB\n",
	       (unsigned long long)total >> 20, (unsigned long long)stood_at >> 10, writer.waits,
	       ((ssize_t)most - (ssize_t)before) / 1024);
	if (!SANITIZED)
		assert_true(most < before + (1u << 20));
	close(fd);
}

static void a_reader_that_stands_still_is_cut_off(void **state)
{
	struct writer writer = {.total = 64u << 20, .length = -1};
	int fd = client_open();

	(void)state;
	client_say(fd, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
	writer_start(&writer);
	AWAIT(stats_now().timed_out == 1);
	writer_join(&writer);
	AWAIT(stats_now().connections_open == 0);
	close(fd);
}

/* A writer that has nothing to say for a while is not the client's fault. */
static void a_pause_of_the_writer_is_no_timeout(void **state)
{
	struct http_exchange *exchange;
	int fd;

	(void)state;
	server_down();
	struct server_options options = test_options();

	options.write_ms = options.idle_ms = options.read_ms = 300;
	server_up(&options);
	fd = client_open();
	client_say(fd, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
	exchange = held_take();
	http_stream_start(exchange, &(struct http_answer){.status = 200}, -1, NULL, NULL);
	assert_int_equal(http_stream_write(exchange, slice_str("one")), 3);
	nanosleep(&(struct timespec){.tv_nsec = 700000000}, NULL);
	assert_int_equal(http_stream_write(exchange, slice_str("two")), 3);
	http_stream_end(exchange);
	expect_reply(fd, 200, "onetwo");
	close(fd);
}

/* Many streams at once, ends and aborts and clients that leave, for the sanitizers to watch. */
static void many_streams_at_once(void **state)
{
	enum { STREAMS = 24 };
	struct writer writers[STREAMS];
	static char buffer[4096];
	int fds[STREAMS];

	(void)state;
	for (int i = 0; i < STREAMS; i++) {
		fds[i] = client_open();
		client_say(fds[i], "GET /hold HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
		writers[i] = (struct writer){.total = 300000, .length = -1, .abort = i % 5 == 0};
		writer_start(&writers[i]);
	}
	for (int i = 0; i < STREAMS; i++) {
		ssize_t n = 1;

		for (int rounds = 0; n > 0 && (i % 3 || rounds < 4); rounds++)
			n = recv(fds[i], buffer, i % 3 == 1 ? 5 : sizeof buffer, i % 3 == 1 ? MSG_TRUNC : 0);
		close(fds[i]);
	}
	for (int i = 0; i < STREAMS; i++)
		writer_join(&writers[i]);
	AWAIT(stats_now().connections_open == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(unknown_lengths_are_chunked, up, down),
		cmocka_unit_test_setup_teardown(known_lengths_are_announced, up, down),
		cmocka_unit_test_setup_teardown(a_client_of_http_1_0_reads_until_the_end, up, down),
		cmocka_unit_test_setup_teardown(head_and_204_have_no_body, up, down),
		cmocka_unit_test_setup_teardown(a_broken_stream_is_never_taken_for_a_whole_one, up, down),
		cmocka_unit_test_setup_teardown(a_client_that_leaves_does_not_hold_the_writer, up, down),
		cmocka_unit_test_setup_teardown(a_client_that_left_before_the_start, up, down),
		cmocka_unit_test_setup_teardown(a_slow_reader_slows_the_writer, up, down),
		cmocka_unit_test_setup_teardown(a_reader_that_stands_still_is_cut_off, up, down),
		cmocka_unit_test_setup_teardown(a_pause_of_the_writer_is_no_timeout, up, down),
		cmocka_unit_test_setup_teardown(many_streams_at_once, up, down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
