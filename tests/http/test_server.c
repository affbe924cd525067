/* The server over real sockets: what a client and a handler can rely on. Limits are test_limits.c's. */
#include <sys/wait.h>

#include "http/http_test.h"

#define GET "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n"

static int up(void **state)
{
	struct server_options options = test_options();

	(void)state;
	options.body_bytes_max = 1000;
	server_up(&options);
	return 0;
}

static int down(void **state)
{
	(void)state;
	server_down();
	return 0;
}

/* ---- connections ---- */

static void a_connection_is_kept_and_closed_as_the_client_wants(void **state)
{
	int fd = client_open();

	(void)state;
	for (int i = 0; i < 3; i++) {
		client_say(fd, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
		assert_true(expect_reply(fd, 200, "hi"));
	}
	client_say(fd, "GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
	assert_false(expect_reply(fd, 200, ""));
	expect_closed(fd);

	fd = client_open();
	client_say(fd, "GET /echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
	struct reply reply = read_reply(fd, false);
	assert_non_null(strstr(reply.text, "\r\nConnection: keep-alive\r\n"));
	reply_release(&reply);
	client_say(fd, "GET /echo HTTP/1.0\r\n\r\n");
	assert_false(expect_reply(fd, 200, ""));
	expect_closed(fd);
	assert_int_equal(stats_now().connections_total, 2);
}

static void answers_carry_a_date_and_no_server(void **state)
{
	int fd = client_open();
	struct reply reply;

	(void)state;
	client_say(fd, GET);
	reply = read_reply(fd, false);
	assert_non_null(strstr(reply.text, "\r\nDate: "));
	assert_non_null(strstr(reply.text, "\r\nContent-Length: 0\r\n"));
	assert_null(strcasestr(reply.text, "\r\nServer:"));
	reply_release(&reply);
	close(fd);
}

static void pipelined_requests_are_answered_in_order(void **state)
{
	const int n = 100;
	int fd = client_open();
	char text[200];
	struct strbuf sb;

	(void)state;
	strbuf_init(&sb, 1u << 20);
	for (int i = 0; i < n; i++)
		strbuf_addf(&sb, "POST /%s HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n%03d",
			    i % 3 ? "later" : "echo", i);
	assert_true(client_send(fd, strbuf_slice(&sb)));
	for (int i = 0; i < n; i++) {
		snprintf(text, sizeof text, "%03d", i);
		expect_reply(fd, 200, text);
	}
	strbuf_release(&sb);
	close(fd);
}

static void one_request_of_a_connection_is_handled_at_a_time(void **state)
{
	int fd = client_open(), other = client_open();

	(void)state;
	client_say(fd, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\nGET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
	struct http_exchange *first = held_take();

	for (int i = 0; i < 20; i++) { /* others go on meanwhile, in both loops */
		client_say(other, GET);
		expect_reply(other, 200, "");
	}
	assert_int_equal(held_count(), 0);
	respond_text(first, 200, slice_str("one"));
	expect_reply(fd, 200, "one");
	respond_text(held_take(), 200, slice_str("two"));
	expect_reply(fd, 200, "two");
	close(fd);
	close(other);
}

static void a_request_may_come_byte_by_byte(void **state)
{
	static const char text[] = "\r\nPOST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
				   "3;x\r\nabc\r\n2\r\nde\r\n0\r\nX: y\r\n\r\n";
	int fd = client_open();

	(void)state;
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < sizeof text - 1; i++)
			assert_true(client_send(fd, slice_of(text + i, 1)));
		expect_reply(fd, 200, "abcde");
	}
	close(fd);
}

static void head_has_the_length_and_no_body(void **state)
{
	int fd = client_open();

	(void)state;
	client_say(fd, "HEAD /big HTTP/1.1\r\nHost: a\r\n\r\n");
	struct reply reply = read_reply(fd, /* to_head= */ true);
	assert_int_equal(reply.status, 200);
	assert_int_equal(reply.head.length, BIG_BYTES);
	reply_release(&reply);
	client_say(fd, GET);
	expect_reply(fd, 200, "");
	client_say(fd, "GET /big HTTP/1.1\r\nHost: a\r\n\r\n");
	reply = read_reply(fd, false);
	assert_true(reply.complete);
	assert_int_equal(reply.body.n, BIG_BYTES);
	reply_release(&reply);
	close(fd);
}

static void the_peer_is_known(void **state)
{
	struct sockaddr_storage own;
	socklen_t n = sizeof own;
	char text[ADDRESS_TEXT_BYTES];
	struct address address;
	int fd = client_open();

	(void)state;
	assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &n), 0);
	assert_true(address_from_sockaddr(&own, &address));
	address_format(&address, text);
	client_say(fd, "GET /peer HTTP/1.1\r\nHost: a\r\n\r\n");
	expect_reply(fd, 200, text);
	close(fd);
}

/* ---- bodies ---- */

static void send_body(int fd, size_t n, bool chunked)
{
	char head[200];
	char *body = malloc(n);

	memset(body, 'b', n);
	snprintf(head, sizeof head, "POST /echo HTTP/1.1\r\nHost: a\r\n%s: %s\r\n\r\n",
		 chunked ? "Transfer-Encoding" : "Content-Length",
		 chunked     ? "chunked"
		 : n == 1000 ? "1000"
			     : "1001");
	client_say(fd, head);
	if (chunked)
		client_say(fd, n == 1000 ? "3e8\r\n" : "3e9\r\n");
	(void)client_send(fd, slice_of(body, n)); /* it may have been refused already */
	if (chunked)
		(void)client_send(fd, slice_str("\r\n0\r\n\r\n"));
	free(body);
}

static void a_body_at_the_limit_and_one_past_it(void **state)
{
	(void)state;
	for (int chunked = 0; chunked <= 1; chunked++) {
		int fd = client_open();

		send_body(fd, 1000, chunked);
		struct reply reply = read_reply(fd, false);
		assert_int_equal(reply.status, 200);
		assert_int_equal(reply.body.n, 1000);
		assert_true(reply.keep_alive);
		reply_release(&reply);
		send_body(fd, 1001, chunked);
		reply = read_reply(fd, false);
		assert_int_equal(reply.status, 413);
		assert_non_null(strstr(reply.body.p, "\"TOO_LARGE\""));
		assert_false(reply.keep_alive);
		reply_release(&reply);
		expect_closed(fd);
	}
	assert_int_equal(stats_now().requests, 2);
	AWAIT(stats_now().bodies_bytes == 0);
}

static void a_client_that_asks_first_is_told_to_go_on(void **state)
{
	int fd = client_open();

	(void)state;
	client_say(fd, "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
	expect_reply(fd, 100, "");
	client_say(fd, "ok");
	expect_reply(fd, 200, "ok");
	/* With the body there already, nothing needs to be said. */
	client_say(fd, "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nok");
	expect_reply(fd, 200, "ok");
	client_say(fd, "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2000\r\n\r\n");
	assert_false(expect_reply(fd, 413, NULL));
	expect_closed(fd);
}

/* ---- what is refused ---- */

static uint64_t timed(void)
{
	struct http_stats stats = stats_now();
	uint64_t n = 0;

	for (size_t i = 0; i < HISTOGRAM_RANGES; i++)
		n += stats.answered.counts[i];
	return n;
}

static void malformed_requests_are_answered_and_closed(void **state)
{
	static const struct {
		const char *text;
		int status;
	} cases[] = {
		{"GET / HTTP/1.1\r\n\r\n", 400},
		{"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400},
		{"GET / HTTP/1.1\nHost: a\n\n", 400},
		{"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" GET,
		 400},
		{"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 0, 0\r\n\r\n" GET, 400},
		{"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0 \r\n\r\n" GET, 400},
		{"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: x, chunked\r\n\r\n0\r\n\r\n" GET, 501},
		{"GET /echo HTTP/1.1\r\nHost: a\r\nX: y\r\n z\r\n\r\n" GET, 400},
		{"GET /echo HTTP/1.1\r\nHost: a\r\n: y\r\n\r\n" GET, 400},
		{"GET /echo HTTP/1.1\r\nHost : a\r\n\r\n" GET, 400},
		{"GET /echo HTTP/2.0\r\nHost: a\r\n\r\n" GET, 505},
		{"GET /echo HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n" GET, 417},
		{"\x16\x03\x01", 400},
	};

	uint64_t classes[HTTP_STATUS_CLASSES] = {0};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int fd = client_open();
		struct reply reply;

		client_say(fd, cases[i].text);
		reply = read_reply(fd, false);
		assert_int_equal(reply.status, cases[i].status);
		classes[reply.status / 100 - 2]++;
		assert_true(reply.complete);
		assert_false(reply.keep_alive);
		assert_non_null(strstr(reply.text, "application/problem+json"));
		assert_non_null(strstr(reply.text, "\r\nConnection: close\r\n"));
		reply_release(&reply);
		expect_closed(fd);
	}
	assert_int_equal(stats_now().requests, 0);
	assert_int_equal(stats_now().refused, sizeof cases / sizeof *cases);
	for (size_t i = 0; i < HTTP_STATUS_CLASSES; i++)
		assert_int_equal(stats_now().responses[i], classes[i]);
	assert_int_equal(timed(), 0); /* nobody had them in hand */
}

/* A client that sends all of a large body before it reads still gets to see why it was refused. */
static void a_refusal_survives_what_is_still_being_sent(void **state)
{
	const size_t n = 8u << 20;
	char *body = calloc(1, n);
	int fd = client_open();

	(void)state;
	client_say(fd, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 8388608\r\n\r\n");
	assert_true(client_send(fd, slice_of(body, n)));
	assert_false(expect_reply(fd, 413, NULL));
	expect_closed(fd);
	free(body);
}

/* ---- answers from elsewhere, to whoever is still there ---- */

#define CLIENTS 8
#define REQUESTS (SANITIZED ? 100 : 500)

static void *talk(void *data)
{
	int fd = client_open(), id = (int)(intptr_t)data;
	char request[200], wanted[20];

	for (int i = 0; i < REQUESTS; i++) {
		struct reply reply;

		snprintf(wanted, sizeof wanted, "%d.%d", id, i);
		snprintf(request, sizeof request, "POST /%s HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n%s",
			 i % 4 ? "later" : "echo", strlen(wanted), wanted);
		client_say(fd, request);
		reply = read_reply(fd, false);
		ASSERT(reply.status == 200 && slice_is(strbuf_slice(&reply.body), wanted));
		reply_release(&reply);
	}
	close(fd);
	return NULL;
}

static void many_clients_are_answered_from_another_thread(void **state)
{
	pthread_t threads[CLIENTS];

	(void)state;
	for (intptr_t i = 0; i < CLIENTS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, talk, (void *)i), 0);
	for (int i = 0; i < CLIENTS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(stats_now().requests, CLIENTS * REQUESTS);
	assert_int_equal(stats_now().responses[0], CLIENTS * REQUESTS);
	assert_int_equal(timed(), CLIENTS * REQUESTS);
	assert_true(stats_now().answered.took_us >= CLIENTS * REQUESTS);
}

static void a_client_that_has_gone_is_noticed(void **state)
{
	struct linger at_once = {.l_onoff = 1, .l_linger = 0};

	(void)state;
	for (int reset = 0; reset <= 1; reset++) {
		struct http_exchange *exchange;
		int fd = client_open();

		client_say(fd, "POST /hold HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody");
		exchange = held_take();
		assert_false(http_exchange_gone(exchange));
		if (reset)
			setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
		close(fd);
		AWAIT(handler.gone == reset + 1);
		assert_true(http_exchange_gone(exchange));
		/* The request is as it was, and an answer does no harm. */
		assert_true(slice_is(http_exchange_request(exchange)->body, "body"));
		respond_text(exchange, 200, slice_str("nobody hears this"));
		AWAIT(stats_now().connections_open == 0);
	}
	assert_int_equal(stats_now().gone, 2);
	AWAIT(stats_now().bodies_bytes == 0);
}

static void a_client_that_leaves_during_its_upload_never_was(void **state)
{
	int fd = client_open();

	(void)state;
	client_say(fd, "POST /hold HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf");
	AWAIT(stats_now().bodies_bytes == 4);
	close(fd);
	AWAIT(stats_now().connections_open == 0);
	assert_int_equal(stats_now().requests, 0);
	assert_int_equal(stats_now().bodies_bytes, 0);
	assert_int_equal(handler.gone, 0);
}

static void a_client_that_only_stopped_sending_is_answered(void **state)
{
	int fd = client_open();

	(void)state;
	client_say(fd, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\nGET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
	shutdown(fd, SHUT_WR);
	AWAIT(handler.gone == 1);
	respond_text(held_take(), 200, slice_str("still here"));
	expect_reply(fd, 200, "still here");
	expect_reply(fd, 200, "");
	expect_closed(fd);
}

/* Between its fork and its exec the child of an exec action has the sockets of all connections, too. */
static void a_connection_that_a_child_still_holds_is_not_watched(void **state)
{
	struct linger at_once = {.l_onoff = 1, .l_linger = 0};
	int fd = client_open(), other;
	pid_t child;

	(void)state;
	client_say(fd, GET);
	assert_true(expect_reply(fd, 200, ""));
	child = fork();
	assert_int_not_equal(child, -1);
	if (child == 0) {
		close(fd); /* this end is the client's alone */
		for (;;)
			pause();
	}
	shutdown(fd, SHUT_WR);
	AWAIT(stats_now().connections_open == 0);
	for (int i = 0; i < 4; i++) { /* the connection's memory has gone, and all loops have been round */
		other = client_open();
		client_say(other, GET);
		assert_true(expect_reply(other, 200, ""));
		close(other);
	}
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
	close(fd); /* resets what only the child has any more */
	other = client_open();
	client_say(other, GET);
	assert_true(expect_reply(other, 200, ""));
	close(other);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/* ---- the end ---- */

static void *stop_it(void *data)
{
	http_server_stop(server, *(int64_t *)data);
	return NULL;
}

static void a_stop_finishes_what_has_begun(void **state)
{
	int busy = client_open(), half = client_open(), idle = client_open();
	int64_t drain_ms = 10000;
	pthread_t stopper;

	(void)state;
	client_say(idle, GET);
	expect_reply(idle, 200, "");
	client_say(busy, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
	struct http_exchange *exchange = held_take();

	client_say(half, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\no");
	AWAIT(stats_now().bodies_bytes == 1);
	assert_int_equal(pthread_create(&stopper, NULL, stop_it, &drain_ms), 0);
	client_say(half, "k");
	expect_reply(half, 200, "ok");
	expect_closed(half);
	expect_closed(idle);
	/* The loop of the idle one is that of the busy one, so it knows by now that this answer is the last. */
	respond_text(exchange, 200, slice_str("done"));
	assert_false(expect_reply(busy, 200, "done"));
	close(busy);
	pthread_join(stopper, NULL);
	assert_int_equal(stats_now().connections_open, 0);
}

static void a_stop_does_not_wait_for_ever(void **state)
{
	int fd = client_open();
	int64_t start = now_ms(), drain_ms = 50;

	(void)state;
	client_say(fd, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
	struct http_exchange *exchange = held_take();

	http_server_stop(server, drain_ms);
	assert_true(now_ms() - start >= drain_ms);
	expect_closed(fd);
	assert_int_equal(handler.gone, 1);
	/* Late, and later still: the server itself has gone, too. */
	http_server_free(server);
	server = NULL;
	respond_text(exchange, 200, slice_str("too late"));

	struct server_options options = test_options();
	struct hx_error err;

	assert_int_equal(http_server_new(&options, &server, &err), HX_OK); /* for the tear-down */
}

static void it_listens_on_ipv6_and_says_where(void **state)
{
	struct http_server *before = server, *twice = NULL;
	struct server_options options = test_options();
	char text[ADDRESS_TEXT_BYTES];
	struct hx_error err;

	(void)state;
	options.listen = "[::1]:0";
	options.loops = 1;
	assert_int_equal(http_server_new(&options, &server, &err), HX_OK);
	address_format(http_server_address(server), text);
	assert_memory_equal(text, "[::1]:", 6);
	assert_true(http_server_address(server)->port > 0);
	int fd = client_open();

	client_say(fd, GET);
	expect_reply(fd, 200, "");
	close(fd);
	options.listen = text;
	assert_int_equal(http_server_new(&options, &twice, &err), HX_BUSY);
	assert_non_null(strstr(err.detail, text));
	options.listen = "nowhere";
	assert_int_equal(http_server_new(&options, &twice, &err), HX_VALIDATION_ERROR);
	http_server_free(server);
	server = before;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_connection_is_kept_and_closed_as_the_client_wants, up, down),
		cmocka_unit_test_setup_teardown(answers_carry_a_date_and_no_server, up, down),
		cmocka_unit_test_setup_teardown(pipelined_requests_are_answered_in_order, up, down),
		cmocka_unit_test_setup_teardown(one_request_of_a_connection_is_handled_at_a_time, up, down),
		cmocka_unit_test_setup_teardown(a_request_may_come_byte_by_byte, up, down),
		cmocka_unit_test_setup_teardown(head_has_the_length_and_no_body, up, down),
		cmocka_unit_test_setup_teardown(the_peer_is_known, up, down),
		cmocka_unit_test_setup_teardown(a_body_at_the_limit_and_one_past_it, up, down),
		cmocka_unit_test_setup_teardown(a_client_that_asks_first_is_told_to_go_on, up, down),
		cmocka_unit_test_setup_teardown(malformed_requests_are_answered_and_closed, up, down),
		cmocka_unit_test_setup_teardown(a_refusal_survives_what_is_still_being_sent, up, down),
		cmocka_unit_test_setup_teardown(many_clients_are_answered_from_another_thread, up, down),
		cmocka_unit_test_setup_teardown(a_client_that_has_gone_is_noticed, up, down),
		cmocka_unit_test_setup_teardown(a_client_that_leaves_during_its_upload_never_was, up, down),
		cmocka_unit_test_setup_teardown(a_client_that_only_stopped_sending_is_answered, up, down),
		cmocka_unit_test_setup_teardown(a_connection_that_a_child_still_holds_is_not_watched, up, down),
		cmocka_unit_test_setup_teardown(a_stop_finishes_what_has_begun, up, down),
		cmocka_unit_test_setup_teardown(a_stop_does_not_wait_for_ever, up, down),
		cmocka_unit_test_setup_teardown(it_listens_on_ipv6_and_says_where, up, down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
