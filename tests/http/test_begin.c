/*
 * What the head alone decides is answered before a byte of the body is read, and before anybody is told to send it; and those who
 * send half of a body and then nothing hold up nobody.
 */
#include "http/http_test.h"

#include "wire/loop.h"

#define TOO_LONG_BYTES 100

/* /no is refused by its head, /think is thought about in another thread, and bodies have at most TOO_LONG_BYTES. */
static struct http_exchange *thinking;
static pthread_mutex_t thinking_mutex = PTHREAD_MUTEX_INITIALIZER;

static void go_on(struct http_exchange *exchange, void *data)
{
	(void)data;
	http_read_body(exchange, TOO_LONG_BYTES, 0);
}

static void begin(void *data, struct http_exchange *exchange)
{
	struct slice path = http_exchange_request(exchange)->wire.path;

	(void)data;
	assert_int_equal(http_exchange_request(exchange)->body.n, 0);
	if (slice_is(path, "/no")) {
		http_respond_code(exchange, HX_UNAUTHENTICATED, NULL);
	} else if (slice_is(path, "/think")) {
		pthread_mutex_lock(&thinking_mutex);
		thinking = exchange;
		pthread_mutex_unlock(&thinking_mutex);
	} else {
		http_read_body(exchange, slice_is(path, "/echo") ? TOO_LONG_BYTES : 0, 0);
	}
}

static struct http_exchange *thought(void)
{
	pthread_mutex_lock(&thinking_mutex);
	struct http_exchange *exchange = thinking;
	pthread_mutex_unlock(&thinking_mutex);
	return exchange;
}

static void handle_thought(void *data, struct http_exchange *exchange)
{
	if (slice_is(http_exchange_request(exchange)->wire.path, "/think"))
		respond_text(exchange, 200, http_exchange_request(exchange)->body);
	else if (slice_is(http_exchange_request(exchange)->wire.path, "/large"))
		respond_text(exchange, 200, slice_str("ok"));
	else
		handle(data, exchange);
}

static int up(void **state)
{
	struct server_options options = test_options();

	(void)state;
	thinking = NULL;
	options.begin = begin;
	options.handle = handle_thought;
	options.small_body_bytes = 50;
	options.bodies_bytes_max = 4000;
	options.loops = 1;
	server_up(&options);
	return 0;
}

static int down(void **state)
{
	(void)state;
	server_down();
	return 0;
}

/* The first bytes that come are those of the final answer. */
static void expect_final(const char *request, int status)
{
	int fd = client_open();
	struct reply reply;

	client_say(fd, request);
	reply = read_reply(fd, false);
	if (reply.status != status)
		fail_msg("%s: expected %d, got %s", request, status, reply.text);
	assert_non_null(strstr(reply.text, "\r\nConnection: close\r\n"));
	reply_release(&reply);
	expect_closed(fd);
}

static void a_refusal_needs_no_body(void **state)
{
	(void)state;
	expect_final("POST /no HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n", 401);
	expect_final("POST /no HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf", 401);
	expect_final("POST /no HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 401);
	expect_final("POST /no HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n", 401);
	expect_final("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 101\r\n\r\n", 413);
	assert_int_equal(stats_now().bodies_bytes, 0);
}

static void a_chunk_that_is_announced_counts(void **state)
{
	(void)state;
	expect_final("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n", 413);
	expect_final("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n63\r\nx", 413);
	expect_final("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n7fffffffffffffff\r\n", 413);

	int fd = client_open();

	client_say(
		fd,
		"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n");
	expect_reply(fd, 200, "abcde");
	close(fd);
}

static void who_waits_for_it_is_told_to_send(void **state)
{
	static const char interim[] = "HTTP/1.1 100 Continue\r\n\r\n";
	char got[sizeof interim] = "";
	int fd = client_open();

	(void)state;
	client_say(fd, "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
	assert_int_equal(recv(fd, got, sizeof interim - 1, MSG_WAITALL), sizeof interim - 1);
	assert_string_equal(got, interim);
	client_say(fd, "hello");
	expect_reply(fd, 200, "hello");
	/* Who does not wait is told nothing. */
	client_say(fd, "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhe");
	AWAIT(stats_now().bodies_bytes == 2);
	client_say(fd, "llo");
	expect_reply(fd, 200, "hello");
	close(fd);
}

/* A refusal of a request that has come as a whole costs no connection. */
static void a_whole_request_keeps_its_connection(void **state)
{
	int fd = client_open();

	(void)state;
	client_say(fd, "POST /no HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbodyPOST /echo HTTP/1.1\r\nHost: a\r\n"
		       "Content-Length: 5\r\n\r\nhello");
	expect_reply(fd, 401, NULL);
	expect_reply(fd, 200, "hello");
	close(fd);
}

static void the_body_waits_for_who_thinks(void **state)
{
	int fd = client_open(), gone;

	(void)state;
	client_say(fd, "POST /think HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n01234");
	AWAIT(thought());
	client_say(fd, "56789GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
	assert_true(http_resume(thought(), go_on, NULL));
	expect_reply(fd, 200, "0123456789");
	expect_reply(fd, 200, "");
	close(fd);

	thinking = NULL;
	gone = client_open();
	client_say(gone, "POST /think HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n01234");
	AWAIT(thought());
	close(gone);
	AWAIT(stats_now().gone == 1);
	assert_true(http_resume(thought(), go_on, NULL));
	AWAIT(stats_now().connections_open == 0 && stats_now().bodies_bytes == 0);
}

static char filler[4000];

static int send_large(size_t length, size_t sent)
{
	char head[100];
	int fd = client_open();

	memset(filler, 'x', sizeof filler);
	snprintf(head, sizeof head, "POST /large HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n", length);
	client_say(fd, head);
	assert_true(client_send(fd, slice_of(filler, sent)));
	return fd;
}

static int status_of_large(void)
{
	int fd = send_large(1500, 1500), status;
	struct reply reply = read_reply(fd, false);

	status = reply.status;
	reply_release(&reply);
	close(fd);
	return status;
}

static void half_sent_bodies_hold_up_nobody(void **state)
{
	int slow = send_large(4000, 2500), slower, fd;
	int64_t began = now_ms();

	(void)state;
	AWAIT(stats_now().bodies_bytes == 2500);
	slower = send_large(2000, 1200);
	AWAIT(stats_now().bodies_bytes == 3700);
	/* There is no room for another large one, but for small ones there is. */
	assert_int_equal(status_of_large(), 503);
	fd = client_open();
	client_say(fd, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
	expect_reply(fd, 200, "hello");
	close(fd);
	/* And soon for a large one, too: who does not send goes, long before the time for a request is over; and no more of them than it
	 * takes. */
	AWAIT(status_of_large() == 200);
	assert_int_equal(stats_now().crowded_out, 1);
	assert_false(expect_reply(slow, 503, NULL));
	assert_true(now_ms() - began < 25000);
	close(slow);
	assert_true(client_send(slower, slice_of(filler, 800)));
	expect_reply(slower, 200, "ok");
	close(slower);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_refusal_needs_no_body),          TEST(a_chunk_that_is_announced_counts),
		TEST(who_waits_for_it_is_told_to_send), TEST(a_whole_request_keeps_its_connection),
		TEST(the_body_waits_for_who_thinks),    TEST(half_sent_bodies_hold_up_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
