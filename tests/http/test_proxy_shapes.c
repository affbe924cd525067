/*
 * Smuggling and malformed shapes against the gate: of requests, each refused with the connection closed and nothing
 * forwarded; of answers, each a 502 with nothing stored and its connection closed. The shapes are those of the parser's own
 * test, in one table (shapes.h).
 */
#include "http/proxy_test.h"
#include "unit/wire/shapes.h"

#define CANARY "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"

static void small_heads(struct server_options *options)
{
	options->head = shape_limits;
}

static int up(void **state)
{
	(void)state;
	/* No key is needed and nothing is unknown to it, so that whatever gets through the parser gets to the upstream. */
	gate_up_with("{\"required\":false,\"upstream_timeout\":\"2s\"}", small_heads);
	return 0;
}

static int down(void **state)
{
	(void)state;
	gate_down();
	return 0;
}

static void refused_requests_are_answered_closed_and_not_forwarded(void **state)
{
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < sizeof request_shapes / sizeof *request_shapes; i++) {
		const struct shape *shape = &request_shapes[i];
		struct reply reply;
		int fd;

		if (shape->status <= 0)
			continue;
		fd = client_open();
		/* After it stands what a smuggler wants to get through; it may find the door closed already. */
		if (client_send(fd, slice_of(shape->bytes, shape->n)))
			(void)client_send(fd, slice_str(CANARY));
		reply = read_reply(fd, false);
		if (reply.status != shape->status || reply.keep_alive)
			fail_msg("%s: expected %d and a close, got %s", shape->name, shape->status, reply.text);
		reply_release(&reply);
		expect_closed(fd);
		if (seen_count() > 0)
			fail_msg("%s: the upstream has seen %s", shape->name, seen(0));
		n++;
	}
	assert_true(n >= 60);
	assert_int_equal(stats_now().requests, 0);
	printf("# %zu refused shapes of requests\n", n);
}

/* Those that only this test's limits refuse; a real upstream may say more. */
static bool is_about_limits(const struct shape *shape)
{
	return strcmp(shape->name, "too many fields") == 0 || strcmp(shape->name, "a status line without end") == 0;
}

static void refused_answers_are_502_and_nothing_is_stored(void **state)
{
	size_t n = 0;
	char key[20];

	(void)state;
	for (size_t i = 0; i < sizeof response_shapes / sizeof *response_shapes; i++) {
		const struct shape *shape = &response_shapes[i];
		struct reply reply;

		if (shape->status <= 0 || shape->kind != READ_RESPONSE || is_about_limits(shape))
			continue;
		snprintf(key, sizeof key, "k%zu", i);
		upstream_play((struct script){.bytes = shape->bytes, .n = shape->n, .end = SCRIPT_STALL});
		reply = post("/payments", key, "x");
		if (reply.status != 502 || !strstr(reply.body.p, "BAD_GATEWAY") ||
		    reply_field(&reply, "Idempotency-Status"))
			fail_msg("%s: expected 502, got %s", shape->name, reply.text);
		reply_release(&reply);
		AWAIT(upstream_clients() == 0);
		upstream_play(SCRIPT(ANSWER_OK));
		expect_post("/payments", key, "x", 409, "conflict");
		assert_int_equal(seen_count(), ++n);
		assert_int_equal(gate_stats().unknown, n);
	}
	assert_true(n >= 30);
	printf("# %zu refused shapes of answers\n", n);
}

static void heads_without_end_are_cut_off(void **state)
{
	static char text[200000];

	(void)state;
	memset(text, 'x', sizeof text);
	memcpy(text, "HTTP/1.1 200 OK\r\nX: ", 20);
	upstream_play((struct script){.bytes = text, .n = sizeof text, .end = SCRIPT_STALL});
	expect_post("/payments", "k", "x", 502, NULL);
	upstream_hang_up();
	memcpy(text, "HTTP/1.1 200 xxxxxxx", 20);
	expect_post("/payments", "l", "x", 502, NULL);
	assert_int_equal(gate_stats().unknown, 2);
}

static void accepted_requests_reach_the_upstream_whole(void **state)
{
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < sizeof request_shapes / sizeof *request_shapes; i++) {
		const struct shape *shape = &request_shapes[i];
		struct reply reply;
		int fd;

		if (shape->status != 0 || strcmp(shape->name, "another method") == 0)
			continue;
		fd = client_open();
		assert_true(client_send(fd, slice_of(shape->bytes, shape->n)));
		reply = read_reply(fd, false);
		if (reply.status != 201)
			fail_msg("%s: %s", shape->name, reply.text);
		reply_release(&reply);
		close(fd);
		n++;
	}
	assert_int_equal(seen_count(), n);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(refused_requests_are_answered_closed_and_not_forwarded),
		TEST(refused_answers_are_502_and_nothing_is_stored),
		TEST(heads_without_end_are_cut_off),
		TEST(accepted_requests_reach_the_upstream_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
