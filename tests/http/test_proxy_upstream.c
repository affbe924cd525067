/* The gate's proxy as HTTP: what is forwarded and what is not, how answers end, and which connections are used again. */
#include "http/proxy_test.h"

static int up(void **state)
{
	(void)state;
	gate_up("{\"upstream_timeout\":\"2s\",\"max_stored_bytes\":100000,"
		"\"routes\":[{\"match\":\"POST /listed\",\"replay_headers\":[\"x-one\"]},"
		"{\"match\":\"POST /none\",\"replay_headers\":false},"
		"{\"match\":\"HEAD /guarded\"},"
		"{\"match\":\"POST /held\",\"on_lost\":\"hold\"},"
		"{\"match\":\"GET /brief\",\"upstream_timeout\":\"1s\",\"guard\":false},"
		"{\"match\":\"POST /brief-guarded\",\"upstream_timeout\":\"1s\"}]}");
	return 0;
}

static int down(void **state)
{
	(void)state;
	gate_down();
	return 0;
}

static struct reply call_as(const char *request, bool to_head)
{
	int fd = client_open();
	struct reply reply;

	client_say(fd, request);
	reply = read_reply(fd, to_head);
	close(fd);
	return reply;
}

static struct reply call(const char *request)
{
	return call_as(request, /* to_head= */ false);
}

static void expect_call(const char *request, int status, const char *body)
{
	struct reply reply = call(request);

	if (reply.status != status || !reply.complete || (body && strcmp(reply.body.p, body) != 0))
		fail_msg("%s: expected %d %s, got %s%s", request, status, body ? body : "", reply.text, reply.body.p);
	reply_release(&reply);
}

#define GET "GET /x HTTP/1.1\r\nHost: shop.example\r\n\r\n"

/* ---- what the upstream sees ---- */

static void a_request_goes_as_it_came_but_for_what_concerns_one_hop(void **state)
{
	(void)state;
	expect_call(
		"POST /a//b/../%2e?q=%zz HTTP/1.1\r\nHost: shop.example:8080\r\nIdempotency-Key: \"a\\\"b\"\r\n"
		"Connection: x-secret, keep-alive\r\nX-Secret: 1\r\nKeep-Alive: timeout=5\r\nProxy-Authorization: p\r\n"
		"Proxy-Connection: close\r\nTE: trailers\r\nTrailer: X\r\nUpgrade: h2c\r\nX-Kept: a  b\r\nX-Kept: c\r\n"
		"Cookie: d=e\r\nX-Forwarded-For: 10.0.0.1\r\nVia: 1.0 before\r\nContent-Length: 4\r\n\r\nbody",
		201, "hello");
	assert_string_equal(seen(0), "POST /a//b/../%2e?q=%zz HTTP/1.1\r\nHost: shop.example:8080\r\n"
				     "Idempotency-Key: \"a\\\"b\"\r\nX-Kept: a  b\r\nX-Kept: c\r\nCookie: d=e\r\n"
				     "X-Forwarded-For: 10.0.0.1\r\nVia: 1.0 before\r\nContent-Length: 4\r\n"
				     "X-Forwarded-For: 127.0.0.1\r\nVia: 1.1 hapax\r\n\r\nbody");
}

static void chunks_become_a_length_and_trailers_are_dropped(void **state)
{
	(void)state;
	expect_call(
		"POST / HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n"
		"5;e=f\r\nhello\r\n6\r\n world\r\n0\r\nX: y\r\n\r\n",
		201, "hello");
	assert_string_equal(seen(0), "POST / HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nContent-Length: 11\r\n"
				     "X-Forwarded-For: 127.0.0.1\r\nVia: 1.1 hapax\r\n\r\nhello world");
}

static void other_forms_of_the_target_are_written_plainly(void **state)
{
	(void)state;
	expect_call("GET http://shop.example/x?y HTTP/1.1\r\nHost: shop.example\r\n\r\n", 201, NULL);
	expect_call("GET http://shop.example HTTP/1.1\r\nHost: shop.example\r\n\r\n", 201, NULL);
	expect_call("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 201, NULL);
	expect_call("GET /old HTTP/1.0\r\n\r\n", 201, NULL);
	expect_call("DELETE /x HTTP/1.1\r\nHost: a\r\n\r\n", 201, NULL);
	assert_string_equal(seen(0), "GET /x?y HTTP/1.1\r\nHost: shop.example\r\nX-Forwarded-For: 127.0.0.1\r\n"
				     "Via: 1.1 hapax\r\n\r\n");
	assert_ptr_equal(strstr(seen(1), "GET / HTTP/1.1\r\n"), seen(1));
	assert_ptr_equal(strstr(seen(2), "OPTIONS * HTTP/1.1\r\n"), seen(2));
	assert_ptr_equal(strstr(seen(3), "GET /old HTTP/1.1\r\nHost: 127.0.0.1:"), seen(3));
	assert_non_null(strstr(seen(3), "Via: 1.0 hapax\r\n"));
	assert_null(strstr(seen(4), "Content-Length"));
}

static void an_expectation_is_met_here_and_not_forwarded(void **state)
{
	int fd = client_open();
	char text[100] = "";

	(void)state;
	client_say(
		fd,
		"POST / HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
	assert_int_equal(recv(fd, text, 25, MSG_WAITALL), 25);
	assert_string_equal(text, "HTTP/1.1 100 Continue\r\n\r\n");
	assert_int_equal(seen_count(), 0);
	client_say(fd, "body");
	expect_reply(fd, 201, "hello");
	assert_null(strstr(seen(0), "Expect"));
	close(fd);
}

/* ---- what the client sees ---- */

static void an_answer_goes_as_it_came_but_for_what_concerns_one_hop(void **state)
{
	struct reply reply;

	(void)state;
	upstream_play(
		SCRIPT("HTTP/1.1 200 Fine\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nConnection: X-Secret\r\n"
		       "X-Secret: 1\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: p\r\nTrailer: Y\r\nUpgrade: h2\r\n"
		       "Set-Cookie: a=b\r\nSet-Cookie: c=d\r\nIdempotency-Status: replayed\r\n"
		       "idempotency-replayed: true\r\nContent-Length: 2\r\n\r\nok"));
	for (int guarded = 0; guarded < 2; guarded++) {
		reply = guarded ? post("/x", "k", "x") : call(GET);
		assert_int_equal(reply.status, 200);
		assert_string_equal(reply.body.p, "ok");
		assert_field(&reply, "Date", "Sun, 06 Nov 1994 08:49:37 GMT");
		assert_field(&reply, "Set-Cookie", "a=b");
		assert_field(&reply, "Via", "1.1 hapax");
		assert_no_field(&reply, "X-Secret");
		assert_no_field(&reply, "Keep-Alive");
		assert_no_field(&reply, "Proxy-Authenticate");
		assert_no_field(&reply, "Trailer");
		assert_no_field(&reply, "Upgrade");
		assert_no_field(&reply, "Idempotency-Replayed");
		if (guarded)
			assert_field(&reply, "Idempotency-Status", "created");
		else
			assert_no_field(&reply, "Idempotency-Status");
		reply_release(&reply);
	}
	reply = post("/x", "k", "x");
	assert_field(&reply, "Idempotency-Status", "replayed");
	assert_no_field(&reply, "X-Secret");
	assert_no_field(&reply, "Set-Cookie");
	reply_release(&reply);
}

static void which_fields_are_replayed_can_be_chosen(void **state)
{
	struct reply reply;

	(void)state;
	upstream_play(SCRIPT("HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nX-One: 1\r\nX-Two: 2\r\nETag: \"e\"\r\n"
			     "Content-Length: 2\r\n\r\nok"));
	expect_post("/listed", "k", "x", 200, "created");
	reply = post("/listed", "k", "x");
	assert_field(&reply, "X-One", "1");
	assert_field(&reply, "Content-Type", "a/b");
	assert_no_field(&reply, "X-Two");
	assert_no_field(&reply, "ETag");
	reply_release(&reply);
	expect_post("/none", "k", "x", 200, "created");
	reply = post("/none", "k", "x");
	assert_field(&reply, "Idempotency-Status", "replayed");
	assert_field(&reply, "Content-Type", "a/b");
	assert_no_field(&reply, "X-One");
	reply_release(&reply);
}

static void bodies_end_in_every_way(void **state)
{
	struct reply reply;

	(void)state;
	upstream_play(SCRIPT("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n"
			     "5\r\nhello\r\n6\r\n world\r\n0\r\nX: y\r\n\r\n"));
	expect_post("/chunks", "k", "x", 200, "created");
	reply = post("/chunks", "k", "x");
	assert_string_equal(reply.body.p, "hello world");
	assert_field(&reply, "Content-Length", "11");
	reply_release(&reply);
	expect_call(GET, 200, "hello world");

	upstream_play(SCRIPT("HTTP/1.0 200 OK\r\n\r\nto the end", .end = SCRIPT_CLOSE));
	expect_post("/close", "k", "x", 200, "created");
	reply = post("/close", "k", "x");
	assert_field(&reply, "Idempotency-Status", "replayed");
	assert_string_equal(reply.body.p, "to the end");
	reply_release(&reply);
	expect_call(GET, 200, "to the end");

	upstream_play(SCRIPT("HTTP/1.1 204 No Content\r\n\r\n"));
	expect_post("/nothing", "k", "x", 204, "created");
	expect_post("/nothing", "k", "x", 204, "replayed");
	expect_call(GET, 204, "");
	upstream_play(SCRIPT("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
	expect_post("/empty", "k", "x", 200, "created");
	expect_post("/empty", "k", "x", 200, "replayed");
	assert_int_equal(gate_stats().unknown, 0);
}

static void head_and_304_say_a_length_and_have_no_body(void **state)
{
	struct reply reply;

	(void)state;
	upstream_play(SCRIPT("HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\r\n"));
	reply = call_as("HEAD /x HTTP/1.1\r\nHost: a\r\n\r\n", /* to_head= */ true);
	assert_int_equal(reply.status, 200);
	assert_field(&reply, "Content-Length", "12345");
	reply_release(&reply);
	for (int i = 0; i < 2; i++) {
		reply = call_as("HEAD /guarded HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\n\r\n", /* to_head= */ true);
		assert_int_equal(reply.status, 200);
		assert_field(&reply, "Idempotency-Status", i ? "replayed" : "created");
		if (i)
			assert_no_field(&reply, "Content-Length"); /* rather than a wrong one */
		reply_release(&reply);
	}
	upstream_play(SCRIPT("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"));
	reply = call_as("HEAD /x HTTP/1.1\r\nHost: a\r\n\r\n", /* to_head= */ true);
	assert_int_equal(reply.status, 200);
	assert_no_field(&reply, "Content-Length");
	reply_release(&reply);
	upstream_play(SCRIPT("HTTP/1.1 304 Not Modified\r\nETag: \"e\"\r\nContent-Length: 12345\r\n\r\n"));
	reply = call(GET);
	assert_int_equal(reply.status, 304);
	assert_field(&reply, "Content-Length", "12345");
	assert_field(&reply, "ETag", "\"e\"");
	reply_release(&reply);
	assert_true(world.accepted <= 2); /* one for each loop: nobody waited for bodies */
}

static void interim_answers_are_skipped_up_to_a_point(void **state)
{
	static char flood[17 * 25 + 200];

	(void)state;
	upstream_play(SCRIPT("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\nX: x\r\n\r\n" ANSWER_OK));
	expect_post("/x", "k", "x", 201, "created");
	expect_call(GET, 201, "hello");
	for (int i = 0; i < 17; i++)
		memcpy(flood + 25 * i, "HTTP/1.1 100 Continue\r\n\r\n", 25);
	memcpy(flood + 17 * 25, ANSWER_OK, sizeof ANSWER_OK);
	upstream_play((struct script){.bytes = flood, .n = strlen(flood)});
	expect_post("/x", "l", "x", 502, NULL);
	upstream_play((struct script){.bytes = flood + 25, .n = strlen(flood) - 25});
	expect_post("/x", "m", "x", 201, "created");
	assert_int_equal(gate_stats().unknown, 1);
}

static void an_answer_may_come_before_the_request_is_read(void **state)
{
	struct strbuf request;
	struct reply reply;
	int fd = client_open();

	(void)state;
	upstream_play(SCRIPT("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly", .early = true, .end = SCRIPT_STALL));
	strbuf_init(&request, 2u << 20);
	strbuf_add_str(&request,
		       "POST /x HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nContent-Length: 1000000\r\n\r\n");
	for (int i = 0; i < 100000; i++)
		strbuf_add_str(&request, "0123456789");
	assert_true(client_send(fd, strbuf_slice(&request)));
	reply = read_reply(fd, false);
	assert_int_equal(reply.status, 200);
	assert_field(&reply, "Idempotency-Status", "created");
	reply_release(&reply);
	strbuf_release(&request);
	close(fd);
}

/* ---- connections ---- */

static void connections_are_used_again(void **state)
{
	char key[20];

	(void)state;
	for (int i = 0; i < 5; i++) {
		int fd = client_open();

		snprintf(key, sizeof key, "k%d", i);
		say_post(fd, "/x", key, "x");
		expect_reply(fd, 201, "hello");
		close(fd);
	}
	/* One of each loop that a client happened to be in. */
	assert_true(world.accepted <= 2);
	/* Where a person is called for what is lost, it is not lost to an idle connection's end. */
	world.accepted = 0;
	for (int i = 0; i < 3; i++) {
		snprintf(key, sizeof key, "h%d", i);
		expect_post("/held", key, "x", 201, "created");
	}
	assert_int_equal(world.accepted, 3);
	AWAIT(upstream_clients() == 0); /* and let go after a second of silence */
	upstream_play(SCRIPT("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"));
	world.accepted = 0;
	for (int i = 0; i < 3; i++)
		expect_call(GET, 200, "ok");
	assert_int_equal(world.accepted, 3);
}

static void bytes_behind_an_answer_end_its_connection_and_nothing_else(void **state)
{
	int fd = client_open();

	(void)state;
	upstream_play(SCRIPT(
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"));
	say_post(fd, "/x", "k", "x");
	expect_reply(fd, 200, "ok");
	upstream_play(SCRIPT(ANSWER_OK));
	for (int i = 0; i < 3; i++) {
		client_say(fd, GET);
		expect_reply(fd, 201, "hello");
	}
	close(fd);
	expect_post("/x", "k", "x", 200, "replayed");
}

/* The upstream ends the connection when the second request comes on it. */
static void a_guarded_request_is_never_sent_twice(void **state)
{
	int fd = client_open();

	(void)state;
	say_post(fd, "/x", "k", "x");
	expect_reply(fd, 201, "hello");
	upstream_play(SCRIPT("", .end = SCRIPT_CLOSE));
	say_post(fd, "/x", "l", "x");
	expect_reply(fd, 502, NULL);
	assert_int_equal(seen_count(), 2);
	assert_int_equal(world.accepted, 1);
	upstream_play(SCRIPT(ANSWER_OK));
	say_post(fd, "/x", "l", "x");
	expect_reply(fd, 409, NULL);
	assert_int_equal(seen_count(), 2);
	close(fd);
}

static void a_harmless_request_is_sent_once_more_and_no_more(void **state)
{
	int fd = client_open();

	(void)state;
	client_say(fd, GET);
	expect_reply(fd, 201, "hello");
	upstream_play(SCRIPT("", .end = SCRIPT_CLOSE));
	client_say(fd, GET);
	expect_reply(fd, 502, NULL);
	assert_int_equal(seen_count(), 3);
	assert_int_equal(world.accepted, 2);
	client_say(fd, GET); /* on a fresh connection at once: once */
	expect_reply(fd, 502, NULL);
	assert_int_equal(seen_count(), 4);
	/* What is not harmless is not repeated, guarded or not. */
	upstream_play(SCRIPT(ANSWER_OK));
	client_say(fd, GET);
	expect_reply(fd, 201, "hello");
	upstream_play(SCRIPT("", .end = SCRIPT_CLOSE));
	client_say(fd, "PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx");
	expect_reply(fd, 502, NULL);
	assert_int_equal(seen_count(), 6);
	close(fd);
}

static void a_connection_that_was_closed_meanwhile_is_not_used(void **state)
{
	int fd = client_open();

	(void)state;
	for (int i = 0; i < 20; i++) {
		char key[20];

		snprintf(key, sizeof key, "k%d", i);
		say_post(fd, "/x", key, "x");
		expect_reply(fd, 201, "hello");
		upstream_hang_up();
	}
	assert_int_equal(seen_count(), 20);
	close(fd);
}

static void urls_that_cannot_be_used_say_why(void **state)
{
	static const struct {
		const char *url, *word;
	} cases[] = {
		{"https://a/path", "nothing after"},
		{"127.0.0.1:3000", "http://"},
		{"ftp://a", "http://"},
		{"http://", "http://"},
		{"http:///", "nothing after"},
		{"http://a/path", "nothing after"},
		{"http://u:p@a", "nothing after"},
		{"http://a:0x1", "nothing after"},
		{"http://no-such-host.invalid", "resolved"},
	};
	struct proxy_options options = {.config = &gate.config, .store = gate.store, .clock = clock_system()};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hx_error err = {0};
		struct proxy *proxy;

		options.upstream = cases[i].url;
		assert_int_equal(proxy_new(&options, &proxy, &err), HX_CONFIG_ERROR);
		if (!strstr(err.detail, cases[i].word))
			fail_msg("%s: %s", cases[i].url, err.detail);
	}
}

/* ---- streams ---- */

static void what_has_come_is_passed_on_at_once(void **state)
{
	static const char expected[] = "6\r\nevent\n\r\n";
	int fd = client_open();
	char text[2000];
	size_t n = 0;

	(void)state;
	upstream_play(SCRIPT("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
			     "6\r\nevent\n\r\n",
			     .end = SCRIPT_STALL));
	client_say(fd, GET);
	do {
		ssize_t got = recv(fd, text + n, sizeof text - 1 - n, 0);

		assert_true(got > 0);
		n += (size_t)got;
		text[n] = '\0';
	} while (!strstr(text, expected));
	close(fd);
}

static void time_is_counted_per_piece_where_an_answer_is_streamed(void **state)
{
	static char text[400000 + 100];
	int n = snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nContent-Length: 400000\r\n\r\n");

	(void)state;
	memset(text + n, 'x', 400000);
	upstream_play((struct script){.bytes = text, .n = (size_t)n + 400000, .pieces = 8, .pause_ms = 200});
	expect_call("GET /brief HTTP/1.1\r\nHost: a\r\n\r\n", 200, NULL);
	/* What is kept to be stored has its time as a whole. */
	upstream_play((struct script){
		.bytes = "HTTP/1.1 200 OK\r\nContent-Length: 80\r\n\r\n0123456789012345678901234567890123456789"
			 "0123456789012345678901234567890123456789",
		.n = 119,
		.pieces = 8,
		.pause_ms = 200});
	expect_post("/brief-guarded", "k", "x", 504, NULL);
}

#define FLOOD_BYTES (64u << 20)

static void stall(struct server_options *options)
{
	options->write_ms = 1000;
	options->loops = 1;
}

static void a_client_that_does_not_read_is_bounded_and_then_reset(void **state)
{
	static _Atomic size_t sent;
	char *text = malloc(FLOOD_BYTES + 100);
	int n = snprintf(text, 100, "HTTP/1.1 200 OK\r\nContent-Length: %u\r\n\r\n", FLOOD_BYTES);
	int idle, fd;

	(void)state;
	gate_down();
	gate_up_with("{\"upstream_timeout\":\"2s\"}", stall);
	memset(text + n, 'x', FLOOD_BYTES);
	sent = 0;
	upstream_play((struct script){
		.bytes = text, .n = (size_t)n + FLOOD_BYTES, .end = SCRIPT_CLOSE, .pieces = 4096, .sent = &sent});
	idle = client_open();
	client_say(idle, GET);
	seen(0);
	upstream_play(SCRIPT(ANSWER_OK));
	fd = client_open(); /* others go on meanwhile, in the same loop */
	for (int i = 0; i < 20; i++) {
		client_say(fd, GET);
		expect_reply(fd, 201, "hello");
	}
	AWAIT(stats_now().timed_out == 1);
	assert_true(sent < 32u << 20);  /* what is in sockets and in two buffers */
	AWAIT(upstream_clients() == 0); /* and the upstream is free again, */
	assert_true(sent < 32u << 20);  /* without having said it all */
	close(idle);
	close(fd);
	upstream_hang_up();
	free(text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_request_goes_as_it_came_but_for_what_concerns_one_hop),
		TEST(chunks_become_a_length_and_trailers_are_dropped),
		TEST(other_forms_of_the_target_are_written_plainly),
		TEST(an_expectation_is_met_here_and_not_forwarded),
		TEST(an_answer_goes_as_it_came_but_for_what_concerns_one_hop),
		TEST(which_fields_are_replayed_can_be_chosen),
		TEST(bodies_end_in_every_way),
		TEST(head_and_304_say_a_length_and_have_no_body),
		TEST(interim_answers_are_skipped_up_to_a_point),
		TEST(an_answer_may_come_before_the_request_is_read),
		TEST(connections_are_used_again),
		TEST(bytes_behind_an_answer_end_its_connection_and_nothing_else),
		TEST(a_guarded_request_is_never_sent_twice),
		TEST(a_harmless_request_is_sent_once_more_and_no_more),
		TEST(a_connection_that_was_closed_meanwhile_is_not_used),
		TEST(urls_that_cannot_be_used_say_why),
		TEST(what_has_come_is_passed_on_at_once),
		TEST(time_is_counted_per_piece_where_an_answer_is_streamed),
		TEST(a_client_that_does_not_read_is_bounded_and_then_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
