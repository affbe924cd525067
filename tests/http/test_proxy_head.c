/* What the head of a request decides at the gate: before its body is read, and where it goes. */
#include "http/proxy_test.h"

static int up(void **state)
{
	(void)state;
	gate_up("{\"upstream_timeout\":\"5s\",\"routes\":[{\"match\":\"POST /opt\",\"required\":false},"
		"{\"match\":\"POST /small\",\"max_request_bytes\":10},{\"match\":\"POST /large\",\"max_request_bytes\":5000000},"
		"{\"match\":\"POST /hook\",\"key\":\"json:/id\"},{\"match\":\"POST /free\",\"guard\":false}]}");
	return 0;
}

static int down(void **state)
{
	(void)state;
	gate_down();
	return 0;
}

/* The first thing that comes is the final answer, and nothing has gone to the upstream. */
static void expect_final(const char *head, int status, const char *part)
{
	int fd = client_open();
	struct reply reply;

	client_say(fd, head);
	reply = read_reply(fd, false);
	if (reply.status != status || !strstr(reply.body.p, part))
		fail_msg("%s: expected %d %s, got %s%s", head, status, part, reply.text, reply.body.p);
	reply_release(&reply);
	expect_closed(fd);
	assert_int_equal(seen_count(), 0);
}

#define WAITING "Host: a\r\nExpect: 100-continue\r\nContent-Length: 11\r\n"

static void who_waits_for_100_gets_the_final_answer(void **state)
{
	(void)state;
	expect_final("POST /x HTTP/1.1\r\n" WAITING "\r\n", 400, "KEY_REQUIRED");
	expect_final("POST /x HTTP/1.1\r\n" WAITING "Idempotency-Key: \r\n\r\n", 400, "KEY_INVALID");
	expect_final("POST /opt HTTP/1.1\r\n" WAITING "Idempotency-Key: \"a\r\n\r\n", 400, "KEY_INVALID");
	expect_final("PoST /x HTTP/1.1\r\n" WAITING "\r\n", 501, "NOT_IMPLEMENTED");
	expect_final("POST /small HTTP/1.1\r\n" WAITING "Idempotency-Key: k\r\n\r\n", 413, "max_request_bytes is 10");
}

static void what_the_head_does_not_decide_is_read(void **state)
{
	static const char interim[] = "HTTP/1.1 100 Continue\r\n\r\n";
	static const char *const paths[] = {"/opt", "/free", "/hook"};
	char got[sizeof interim] = "", head[200];

	(void)state;
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		int fd = client_open();

		snprintf(head, sizeof head, "POST %s HTTP/1.1\r\n" WAITING "\r\n", paths[i]);
		client_say(fd, head);
		assert_int_equal(recv(fd, got, sizeof interim - 1, MSG_WAITALL), sizeof interim - 1);
		assert_string_equal(got, interim);
		client_say(fd, "{\"id\":\"id\"} ");
		expect_reply(fd, 201, "hello");
		close(fd);
	}
	assert_int_equal(seen_count(), 3);
}

/* A route's own limit, and not only the largest of all. */
static void a_routes_limit_counts_before_the_body(void **state)
{
#define KEYED "Host: a\r\nIdempotency-Key: k\r\n"
	(void)state;
	expect_final("POST /small HTTP/1.1\r\n" KEYED "Content-Length: 11\r\n\r\n", 413, "max_request_bytes is 10");
	expect_final("POST /small HTTP/1.1\r\n" KEYED "Transfer-Encoding: chunked\r\n\r\nb\r\n", 413,
		     "max_request_bytes is 10");
	expect_final("POST /small HTTP/1.1\r\n" KEYED "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n", 413,
		     "max_request_bytes is 10");
	expect_final("POST /x HTTP/1.1\r\n" KEYED "Transfer-Encoding: chunked\r\n\r\n100001\r\n", 413,
		     "max_request_bytes is 1048576");

	int fd = client_open();

	client_say(fd, "POST /small HTTP/1.1\r\n" KEYED
		       "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n5\r\nworld\r\n0\r\n\r\n");
	expect_reply(fd, 201, "hello");
	close(fd);
}

static void ask(const char *head, int status, const char *part)
{
	int fd = client_open();
	struct reply reply;

	client_say(fd, head);
	reply = read_reply(fd, false);
	if (reply.status != status || (!strstr(reply.body.p, part) && !strstr(reply.text, part)))
		fail_msg("%s: expected %d %s, got %s%s", head, status, part, reply.text, reply.body.p);
	assert_null(strstr(reply.body.p, "secret"));
	reply_release(&reply);
	close(fd);
}

static void max_forwards_is_counted_down(void **state)
{
	(void)state;
	ask("OPTIONS /x HTTP/1.1\r\nHost: a\r\nMax-Forwards: 2\r\n\r\n", 201, "hello");
	assert_non_null(strstr(seen(0), "\r\nMax-Forwards: 1\r\n"));
	ask("TRACE /x HTTP/1.1\r\nHost: a\r\nMax-Forwards: 10\r\n\r\n", 201, "hello");
	assert_non_null(strstr(seen(1), "\r\nMax-Forwards: 9\r\n"));
	ask("GET /x HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n\r\n", 201, "hello");
	assert_non_null(strstr(seen(2), "\r\nMax-Forwards: 0\r\n"));
	/* It ends here. */
	ask("OPTIONS * HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n\r\n", 200, "\r\nAllow: GET, HEAD, POST");
	ask("TRACE /x?y HTTP/1.1\r\nHost: a\r\nX-Me: here\r\nCookie: secret\r\nAuthorization: secret\r\nMax-Forwards: 0\r\n\r\n",
	    200, "TRACE /x?y HTTP/1.1\r\nHost: a\r\nX-Me: here\r\nMax-Forwards: 0\r\n\r\n");
	ask("OPTIONS /x HTTP/1.1\r\nHost: a\r\nMax-Forwards: -1\r\n\r\n", 400, "Max-Forwards");
	ask("TRACE /x HTTP/1.1\r\nHost: a\r\nMax-Forwards: 1\r\nMax-Forwards: 2\r\n\r\n", 400, "Max-Forwards");
	assert_int_equal(seen_count(), 3);
}

/* ---- what the service says before its answer ---- */

#define HINT "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nIdempotency-Status: replayed\r\n\r\n"

static void interim_answers_are_passed_on(void **state)
{
	static const char *const requests[] = {
		"GET /x HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST /x HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nContent-Length: 0\r\n\r\n"};

	(void)state;
	upstream_play(SCRIPT("HTTP/1.1 100 Continue\r\n\r\n" HINT "HTTP/1.1 102 Processing\r\n\r\n" ANSWER_OK));
	for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
		int fd = client_open();
		struct reply reply;

		client_say(fd, requests[i]);
		reply = read_reply(fd, false);
		assert_int_equal(reply.status, 103);
		assert_non_null(strstr(reply.text, "\r\nLink: </a.css>; rel=preload\r\n"));
		assert_null(strstr(reply.text, "Idempotency-Status"));
		reply_release(&reply);
		expect_reply(fd, 102, "");
		expect_reply(fd, 201, "hello");
		close(fd);
	}
	/* What was stored is the answer alone; and who speaks HTTP/1.0 knows of no such thing. */
	expect_post("/x", "k", "", 201, "replayed");
	ask("GET /x HTTP/1.0\r\n\r\n", 201, "hello");
}

static void interim_answers_have_an_end(void **state)
{
	(void)state;
	upstream_play(
		SCRIPT(HINT HINT HINT HINT HINT HINT HINT HINT HINT HINT HINT HINT HINT HINT HINT HINT HINT ANSWER_OK));

	int fd = client_open();

	client_say(fd, "GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
	for (int i = 0; i < 16; i++)
		expect_reply(fd, 103, "");
	expect_reply(fd, 502, NULL);
	close(fd);
}

/* ---- another configuration ---- */

static _Atomic int released;

static void note_released(void *owner)
{
	(void)owner;
	released++;
}

static void requests_under_way_keep_their_configuration(void **state)
{
	static struct gate_config other;
	struct findings findings;
	struct arena arena;
	struct hx_error err;
	int fd = client_open();

	(void)state;
	released = 0;
	arena_init(&arena, 1u << 20);
	findings_init(&findings, &arena);
	gate_config_parse("other.json", slice_str("{\"routes\":[{\"match\":\"POST /x\",\"guard\":false}]}"), &arena,
			  &findings, &other);
	upstream_play(SCRIPT(ANSWER_OK, .hold = true));
	client_say(fd, "POST /x HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nContent-Length: 0\r\n\r\n");
	(void)seen(0);
	assert_int_equal(proxy_set_config(gate.proxy, &other, note_released, NULL, &err), HX_OK);
	upstream_play(SCRIPT(ANSWER_OK));
	upstream_release();
	struct reply reply = read_reply(fd, false);

	assert_non_null(strstr(reply.text, "\r\nIdempotency-Status: created\r\n"));
	reply_release(&reply);
	client_say(fd, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
	expect_reply(fd, 201, "hello");
	assert_int_equal(released, 0);
	assert_int_equal(proxy_set_config(gate.proxy, &gate.config, NULL, NULL, &err), HX_OK);
	AWAIT(released == 1);
	client_say(fd, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
	expect_reply(fd, 400, NULL);
	close(fd);
	arena_release(&arena);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(who_waits_for_100_gets_the_final_answer),
		TEST(what_the_head_does_not_decide_is_read),
		TEST(a_routes_limit_counts_before_the_body),
		TEST(max_forwards_is_counted_down),
		TEST(interim_answers_are_passed_on),
		TEST(interim_answers_have_an_end),
		TEST(requests_under_way_keep_their_configuration),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
