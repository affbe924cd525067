/*
 * Sent once: a service that dies after applying, on a connection that is used again, gets no second request.
 *
 * The idempotent twin of each case is sent again, which proves that the test can see what it guards against.
 */
#include "act/transfer.h"

#include "unit/act/upstream.h"

#define OK_JSON "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{\"a\":1}"

static const struct page pages[] = {
	{"/ok", PAGE_REPLY, OK_JSON},
	{"/hang", PAGE_HANG, OK_JSON},
	{"/close", PAGE_CLOSE, NULL},
	{"/reset", PAGE_RESET, NULL},
	{"/die", PAGE_DIE, NULL},
	{"/cut", PAGE_CUT, NULL},
	{"/short", PAGE_REPLY_CLOSE, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"a\":1}"},
	{"/half-head", PAGE_REPLY_CLOSE, "HTTP/1.1 200 OK\r\nContent-Le"},
	{"/half-chunk", PAGE_REPLY_CLOSE, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"},
	{"/last", PAGE_REPLY_DIE, OK_JSON},
	{"/twice", PAGE_TWICE, "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{\"stale\":1}"},
	{0},
};

struct scene {
	struct upstream upstream;
	struct desk desk;
	char ok_url[128], url[128];
	struct action ok, action;
};

/* One connection is left open by a call that went well. */
static void scene_open(struct scene *s, const char *path, enum action_effect effect)
{
	upstream_open(&s->upstream, pages);
	desk_open(&s->desk, &(struct port_options){0});
	s->ok = upstream_action(&s->upstream, "/ok", s->ok_url);
	s->action = upstream_action(&s->upstream, path, s->url);
	s->action.effect = effect;
	desk_expect(desk_call(&s->desk, &s->ok, "{}"), ACT_OK, "");
	assert_int_equal(upstream_count(&s->upstream, connections), 1);
}

static void scene_close(struct scene *s)
{
	desk_close(&s->desk);
	upstream_close(&s->upstream);
}

static void dies_on_reused(const char *path, enum action_effect effect, size_t applied)
{
	struct scene s;
	const struct desk_answer *answer;
	size_t times;

	scene_open(&s, path, effect);
	answer = desk_call(&s.desk, &s.action, "{\"pay\":1}");
	times = upstream_count(&s.upstream, applied) - 1;
	if (answer->outcome != ACT_UNKNOWN || times != applied)
		fail_msg("counterexample in one call\n  broken: %s, effect %d: applied %zu times, told as %s: %s", path,
			 effect, times, act_outcome_name(answer->outcome), answer->output);
	scene_close(&s);
}

static void test_a_connection_is_reused(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s, "/ok", EFFECT_CLAIMED);
	for (int i = 0; i < 5; i++)
		desk_expect(desk_call(&s.desk, &s.action, "{}"), ACT_OK, "");
	assert_int_equal(upstream_count(&s.upstream, connections), 1);
	scene_close(&s);
}

static void test_closed_after_applying(void **state)
{
	(void)state;
	dies_on_reused("/close", EFFECT_CLAIMED, 1);
	dies_on_reused("/close", EFFECT_KEYED, 1);
	dies_on_reused("/close", EFFECT_IDEMPOTENT, 2);
}

static void test_reset_after_applying(void **state)
{
	(void)state;
	dies_on_reused("/reset", EFFECT_CLAIMED, 1);
	dies_on_reused("/reset", EFFECT_KEYED, 1);
	dies_on_reused("/reset", EFFECT_IDEMPOTENT, 2);
}

/* Whoever would send it again could not connect, and might take that for "nothing was sent". */
static void test_gone_after_applying(void **state)
{
	(void)state;
	dies_on_reused("/die", EFFECT_CLAIMED, 1);
	dies_on_reused("/die", EFFECT_KEYED, 1);
	dies_on_reused("/die", EFFECT_IDEMPOTENT, 1);
}

static void test_without_a_body(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s, "/close", EFFECT_CLAIMED);
	desk_expect(desk_call(&s.desk, &s.action, ""), ACT_UNKNOWN, "it was sent");
	assert_int_equal(upstream_count(&s.upstream, applied), 2);
	assert_int_equal(upstream_count(&s.upstream, connections), 1);
	assert_non_null(strstr(s.upstream.last, "\r\nContent-Length: 0\r\n"));
	scene_close(&s);
}

/* The beginning of an answer is there: from then on not even an idempotent call is sent again. */
static void test_cut_off_in_the_middle_of_the_answer(void **state)
{
	static const char *const paths[] = {"/short", "/half-head", "/half-chunk"};

	(void)state;
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		dies_on_reused(paths[i], EFFECT_CLAIMED, 1);
		dies_on_reused(paths[i], EFFECT_KEYED, 1);
		dies_on_reused(paths[i], EFFECT_IDEMPOTENT, 1);
	}
}

/* On a connection of its own even an idempotent call is sent once: it cannot have been an old one that was closed. */
static void test_dies_on_a_new_connection(void **state)
{
	static const char *const paths[] = {"/close", "/reset", "/die", "/short", "/half-head"};

	(void)state;
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		struct scene s;

		upstream_open(&s.upstream, pages);
		desk_open(&s.desk, &(struct port_options){0});
		s.action = upstream_action(&s.upstream, paths[i], s.url);
		s.action.effect = EFFECT_IDEMPOTENT;
		desk_expect(desk_call(&s.desk, &s.action, "{}"), ACT_UNKNOWN, "it was sent");
		assert_int_equal(upstream_count(&s.upstream, applied), 1);
		scene_close(&s);
	}
}

/* The service is gone, and with it the idle connection: seen before the first byte, so it is certain that nothing was sent. */
static void test_gone_while_idle(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s, "/last", EFFECT_CLAIMED);
	desk_expect(desk_call(&s.desk, &s.action, "{}"), ACT_OK, "");
	pthread_mutex_lock(&s.upstream.mutex);
	while (s.upstream.live)
		pthread_cond_wait(&s.upstream.changed, &s.upstream.mutex);
	pthread_mutex_unlock(&s.upstream.mutex);
	desk_expect(desk_call(&s.desk, &s.action, "{}"), ACT_FAILED, "nothing was sent: Failed to connect");
	assert_int_equal(upstream_count(&s.upstream, applied), 2);
	scene_close(&s);
}

static void test_cut_off_while_sending(void **state)
{
	size_t n = 8u << 20;
	char *input = malloc(n + 1);
	const struct desk_answer *answer;
	struct scene s;

	(void)state;
	memset(input, '1', n);
	input[n] = '\0';
	scene_open(&s, "/cut", EFFECT_CLAIMED);
	answer = desk_call(&s.desk, &s.action, input);
	if (answer->outcome != ACT_UNKNOWN || upstream_count(&s.upstream, heads) != 2)
		fail_msg("counterexample in one call\n  broken: cut off in its body, begun %zu times, told as %s: %s",
			 upstream_count(&s.upstream, heads) - 1, act_outcome_name(answer->outcome), answer->output);
	scene_close(&s);
	free(input);
}

/* With several idle connections a retry may take the next idle one instead of a fresh one. */
static void test_several_idle_connections(void **state)
{
	struct scene s;
	uint64_t first = 0;

	(void)state;
	scene_open(&s, "/hang", EFFECT_CLAIMED);
	for (int i = 0; i < 4; i++)
		first = desk_start(&s.desk, &s.action, (struct act_call){.input = slice_str("{}")});
	upstream_wait(&s.upstream, hanging, 4);
	upstream_release(&s.upstream);
	for (uint64_t i = first - 3; i <= first; i++)
		desk_expect(desk_wait(&s.desk, i), ACT_OK, "");
	s.action = upstream_action(&s.upstream, "/close", s.url);
	for (size_t i = 0; i < 4; i++) {
		desk_expect(desk_call(&s.desk, &s.action, "{}"), ACT_UNKNOWN, "it was sent");
		assert_int_equal(upstream_count(&s.upstream, applied), 5 + i + 1);
	}
	scene_close(&s);
}

/* An idle connection that the other side has closed is noticed before the request: not unknown, just a new one. */
static void test_closed_while_idle(void **state)
{
	static const struct page closing[] = {
		{"/ok", PAGE_REPLY_CLOSE, OK_JSON}, /* without "Connection: close" */
		{0},
	};
	struct upstream u;
	struct desk desk;
	char url[128];

	(void)state;
	upstream_open(&u, closing);
	desk_open(&desk, &(struct port_options){0});
	struct action action = upstream_action(&u, "/ok", url);

	desk_expect(desk_call(&desk, &action, "{}"), ACT_OK, "");
	pthread_mutex_lock(&u.mutex);
	while (u.live)
		pthread_cond_wait(&u.changed, &u.mutex);
	pthread_mutex_unlock(&u.mutex);
	desk_expect(desk_call(&desk, &action, "{}"), ACT_OK, "");
	assert_int_equal(upstream_count(&u, connections), 2);
	desk_close(&desk);
	upstream_close(&u);
}

/* A reply that nobody asked for waits on the idle connection: it is not the answer to the next call. */
static void test_reply_that_nobody_asked_for(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s, "/twice", EFFECT_CLAIMED);
	desk_expect(desk_call(&s.desk, &s.action, "{}"), ACT_OK, "stale");
	upstream_release(&s.upstream);
	upstream_wait(&s.upstream, twice, 1);
	for (int i = 0; i < 3; i++)
		desk_expect(desk_call(&s.desk, &s.ok, "{}"), ACT_OK, "{\"a\":1}");
	assert_int_equal(upstream_count(&s.upstream, applied), 5);
	assert_int_equal(upstream_count(&s.upstream, connections), 2);
	scene_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_connection_is_reused),
		cmocka_unit_test(test_closed_after_applying),
		cmocka_unit_test(test_reset_after_applying),
		cmocka_unit_test(test_gone_after_applying),
		cmocka_unit_test(test_without_a_body),
		cmocka_unit_test(test_cut_off_while_sending),
		cmocka_unit_test(test_cut_off_in_the_middle_of_the_answer),
		cmocka_unit_test(test_dies_on_a_new_connection),
		cmocka_unit_test(test_gone_while_idle),
		cmocka_unit_test(test_several_idle_connections),
		cmocka_unit_test(test_closed_while_idle),
		cmocka_unit_test(test_reply_that_nobody_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
