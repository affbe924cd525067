/* The port: who runs, who waits, who is dropped, and that every call is answered once. */
#include "act/port.h"

#include <sched.h>

#include "unit/act/upstream.h"

#define OK_JSON "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{\"a\":1}"
#define CALLS 100

static const struct page pages[] = {{"/hang", PAGE_HANG, OK_JSON}, {"/ok", PAGE_REPLY, OK_JSON}, {0}};

static uint64_t start(struct desk *desk, const struct action *action, const char *input)
{
	return desk_start(desk, action, (struct act_call){.input = slice_str(input)});
}

static void test_kinds_without_a_call(void **state)
{
	struct desk desk;
	struct action action = {.name = "x", .workflow = "w"};

	(void)state;
	desk_open(&desk, &(struct port_options){0});
	action.kind = ACTION_NOOP;
	desk_expect(desk_call(&desk, &action, "{}"), ACT_OK, "null");
	action.kind = ACTION_SQL;
	desk_expect(desk_call(&desk, &action, "{}"), ACT_FAILED_FOR_GOOD, "unit of its transition");
	action.kind = ACTION_WORKER;
	desk_expect(desk_call(&desk, &action, "{}"), ACT_FAILED_FOR_GOOD, "jobs API");
	action.kind = ACTION_EXEC;
	desk_expect(desk_call(&desk, &action, "{}"), ACT_FAILED_FOR_GOOD, "exec actions are off");
	action.kind = ACTION_NATIVE;
	desk_expect(desk_call(&desk, &action, "{}"), ACT_FAILED_FOR_GOOD, "no native actions");
	desk_close(&desk);
}

static void test_max_in_flight(void **state)
{
	struct upstream u;
	struct desk desk;
	char url[128];

	(void)state;
	upstream_open(&u, pages);
	desk_open(&desk, &(struct port_options){0});
	struct action action = upstream_action(&u, "/hang", url);

	action.max_in_flight = 8;
	for (int i = 0; i < CALLS; i++)
		start(&desk, &action, "{}");
	upstream_wait(&u, hanging, 8);
	desk_wait_stats(&desk, 8, CALLS - 8);
	upstream_release(&u);
	for (uint64_t i = 1; i <= CALLS; i++)
		desk_expect(desk_wait(&desk, i), ACT_OK, "");
	assert_int_equal(u.hanging_most, 8);
	assert_int_equal(u.applied, CALLS);
	desk_wait_stats(&desk, 0, 0);
	desk_close(&desk);
	upstream_close(&u);
}

static uint64_t timed(struct desk *desk, enum action_kind kind, uint64_t *ret_took_us)
{
	struct port_stats stats;
	uint64_t n = 0;

	port_read_stats(desk->port, &stats);
	for (size_t i = 0; i < HISTOGRAM_RANGES; i++)
		n += stats.answered[kind].counts[i];
	*ret_took_us = stats.answered[kind].took_us;
	return n;
}

static uint64_t mono_us(void)
{
	return (uint64_t)clock_mono(clock_system()).ns / 1000;
}

/* Two that run one after the other take no more than the time that passed: waiting for a turn is not in it. */
static void test_calls_are_timed_from_their_turn(void **state)
{
	uint64_t began = mono_us(), took_us;
	struct upstream u;
	struct desk desk;
	char url[128];

	(void)state;
	upstream_open(&u, pages);
	desk_open(&desk, &(struct port_options){0});
	struct action action = upstream_action(&u, "/hang", url);

	action.max_in_flight = 1;
	start(&desk, &action, "{}");
	start(&desk, &action, "{}");
	upstream_wait(&u, hanging, 1);
	for (uint64_t since = mono_us(); mono_us() < since + 50000;)
		sched_yield();
	assert_int_equal(timed(&desk, ACTION_HTTP, &took_us), 0);
	upstream_release(&u);
	for (uint64_t i = 1; i <= 2; i++)
		desk_expect(desk_wait(&desk, i), ACT_OK, "");
	assert_int_equal(timed(&desk, ACTION_HTTP, &took_us), 2);
	assert_true(took_us >= 50000);
	assert_true(took_us <= mono_us() - began);
	assert_int_equal(timed(&desk, ACTION_NATIVE, &took_us), 0);
	desk_close(&desk);
	upstream_close(&u);
}

/* A new version of the definition is another struct action with the same names: one bound for both. */
static void test_versions_share_the_bound(void **state)
{
	struct upstream u;
	struct desk desk;
	char url[128];

	(void)state;
	upstream_open(&u, pages);
	desk_open(&desk, &(struct port_options){0});
	struct action old = upstream_action(&u, "/hang", url), new = old;

	old.max_in_flight = new.max_in_flight = 1;
	start(&desk, &old, "{}");
	start(&desk, &new, "{}");
	upstream_wait(&u, hanging, 1);
	desk_wait_stats(&desk, 1, 1);
	upstream_release(&u);
	desk_wait(&desk, 2);
	assert_int_equal(u.hanging_most, 1);
	desk_close(&desk);
	upstream_close(&u);
}

static void test_first_come_first_served(void **state)
{
	struct upstream u;
	struct desk desk;
	char url[128], input[4];

	(void)state;
	upstream_open(&u, pages);
	desk_open(&desk, &(struct port_options){0});
	struct action action = upstream_action(&u, "/hang", url);

	action.max_in_flight = 1;
	for (int i = 0; i < 26; i++) {
		snprintf(input, sizeof input, "\"%c\"", 'a' + i);
		start(&desk, &action, input);
	}
	upstream_wait(&u, hanging, 1);
	desk_abort(&desk, 3);  /* c, in the middle of the queue */
	desk_abort(&desk, 26); /* z, its last */
	upstream_release(&u);
	for (uint64_t i = 1; i <= 25; i++)
		if (i != 3)
			desk_wait(&desk, i);
	assert_string_equal(u.order, "abdefghijklmnopqrstuvwxy");
	assert_false(desk_has(&desk, 3));
	desk_close(&desk);
	upstream_close(&u);
}

/* A slow action with a long queue, all slots taken: of the next two that begin, one is the other action's. */
static void test_actions_take_turns(void **state)
{
	struct upstream u;
	struct desk desk;
	char slow_url[128], quick_url[128];
	uint64_t quick_one;

	(void)state;
	upstream_open(&u, pages);
	desk_open(&desk, &(struct port_options){.http_slots = 2});
	struct action slow = upstream_action(&u, "/hang", slow_url), quick = upstream_action(&u, "/ok", quick_url);

	for (int i = 0; i < 20; i++)
		start(&desk, &slow, "\"s\"");
	quick_one = start(&desk, &quick, "\"q\"");
	upstream_wait(&u, hanging, 2);
	desk_wait_stats(&desk, 2, 19);
	assert_int_equal(upstream_count(&u, hanging_most),
			 2); /* later, who was aborted may still be counted beside the next */
	/* Two places become free, and whoever else takes one hangs: after them it would never have its turn. */
	desk_abort(&desk, 1);
	desk_abort(&desk, 2);
	desk_expect(desk_wait(&desk, quick_one), ACT_OK, "{\"a\":1}");
	assert_true(desk_wait(&desk, quick_one)->place == 0);
	upstream_release(&u);
	for (uint64_t i = 3; i <= 20; i++)
		desk_wait(&desk, i);
	desk_close(&desk);
	upstream_close(&u);
}

static void test_too_many_wait(void **state)
{
	struct port_stats stats;
	struct upstream u;
	struct desk desk;
	char url[128], other_url[128];

	(void)state;
	upstream_open(&u, pages);
	desk_open(&desk, &(struct port_options){.waiting_max = 3});
	struct action action = upstream_action(&u, "/hang", url), other = upstream_action(&u, "/ok", other_url);

	action.max_in_flight = 1;
	for (int i = 0; i < 4; i++) /* one runs, three wait */
		start(&desk, &action, "{}");
	desk_expect(desk_wait(&desk, start(&desk, &action, "{}")), ACT_FAILED, "too many calls are waiting");
	desk_expect(desk_wait(&desk, start(&desk, &other, "{}")), ACT_OK, ""); /* it need not wait */
	port_read_stats(desk.port, &stats);
	assert_int_equal(stats.refused, 1);
	assert_int_equal(stats.waiting, 3);
	upstream_release(&u);
	for (uint64_t i = 1; i <= 4; i++)
		desk_expect(desk_wait(&desk, i), ACT_OK, "");
	desk_close(&desk);
	upstream_close(&u);
}

static void test_abort_ends_the_transfer(void **state)
{
	struct port_stats stats;
	uint64_t took_us;
	struct upstream u;
	struct desk desk;
	char url[128];

	(void)state;
	upstream_open(&u, pages);
	desk_open(&desk, &(struct port_options){0});
	struct action action = upstream_action(&u, "/hang", url);
	uint64_t first = start(&desk, &action, "{}"), second = start(&desk, &action, "{}");

	upstream_wait(&u, hanging, 2);
	desk_abort(&desk, first);
	desk_abort(&desk, first);   /* twice is as good */
	desk_abort(&desk, 900);     /* a ticket that never was */
	upstream_wait(&u, gone, 1); /* the service sees the connection close */
	desk_wait_stats(&desk, 1, 0);
	upstream_release(&u);
	desk_expect(desk_wait(&desk, second), ACT_OK, "");
	desk_abort(&desk, second); /* too late */
	assert_false(desk_has(&desk, first));
	port_read_stats(desk.port, &stats);
	assert_int_equal(stats.aborted, 1);
	assert_int_equal(stats.answers[ACT_OK], 1);
	assert_int_equal(timed(&desk, ACTION_HTTP, &took_us), 1);
	desk_close(&desk);
	assert_false(desk.answers[first].here);
	upstream_close(&u);
}

/* A call that is heard out: once it has begun it is left alone. */
static void test_withdraw_takes_back_what_waits(void **state)
{
	struct upstream u;
	struct desk desk;
	char url[128];

	(void)state;
	upstream_open(&u, pages);
	desk_open(&desk, &(struct port_options){0});
	struct action action = upstream_action(&u, "/hang", url);
	struct act_port *act = port_act(desk.port);

	action.max_in_flight = 1;
	uint64_t first = start(&desk, &action, "{}"), second = start(&desk, &action, "{}"),
		 third = start(&desk, &action, "{}");

	upstream_wait(&u, hanging, 1);
	assert_false(act->withdraw(act, desk_ticket(&desk, first)));
	assert_true(act->withdraw(act, desk_ticket(&desk, second)));
	assert_false(act->withdraw(act, desk_ticket(&desk, second)));
	upstream_release(&u);
	desk_expect(desk_wait(&desk, first), ACT_OK, "");
	desk_expect(desk_wait(&desk, third), ACT_OK, "");
	assert_false(act->withdraw(act, desk_ticket(&desk, third)));
	desk_close(&desk);
	assert_false(desk.answers[second].here);
	assert_int_equal(u.applied, 2);
	upstream_close(&u);
}

static void assert_sight(struct desk *desk, int64_t subject, int64_t fence, struct port_sight wanted)
{
	struct port_sight sight;

	port_look(desk->port, subject, fence, &sight);
	assert_int_equal(sight.running, wanted.running);
	assert_int_equal(sight.waiting, wanted.waiting);
	assert_ptr_equal(sight.action, wanted.action);
	assert_int_equal(sight.limit, wanted.limit);
	assert_int_equal(sight.of_kind, wanted.of_kind);
}

/* Who waits for a place is told which limit it is; by the fence, so that nobody speaks for whoever holds it by now. */
static void test_look(void **state)
{
	static _Atomic int64_t floor = 1000;
	struct upstream u;
	struct desk desk;
	char url[128];

	(void)state;
	upstream_open(&u, pages);
	desk_open(&desk, &(struct port_options){.http_slots = 2, .fence_floor = &floor});
	struct action few = upstream_action(&u, "/hang", url), many = few;

	few.max_in_flight = 1;
	many.name = "many";
	for (int i = 0; i < 2; i++) {
		desk_start(&desk, &few, (struct act_call){.lease = {.subject = 7, .fence = 3}});
		desk_start(&desk, &many, (struct act_call){.lease = {.subject = 8, .fence = 5}});
	}
	desk_wait_stats(&desk, 2, 2);
	atomic_store(&floor, 2000); /* raised meanwhile: they are found all the same */
	assert_sight(&desk, 7, 3, (struct port_sight){.running = 1, .waiting = 1, .action = &few, .limit = 1});
	assert_sight(&desk, 8, 5,
		     (struct port_sight){.running = 1, .waiting = 1, .action = &many, .limit = 2, .of_kind = true});
	assert_sight(&desk, 7, 2, (struct port_sight){0});
	assert_sight(&desk, 8, 3, (struct port_sight){0});
	upstream_wait(&u, hanging, 2);
	upstream_release(&u);
	for (uint64_t i = 1; i <= 4; i++)
		desk_wait(&desk, i);
	assert_sight(&desk, 7, 3, (struct port_sight){0});
	desk_close(&desk);
	upstream_close(&u);
}

static void test_stop_lets_finish(void **state)
{
	struct upstream u;
	struct desk desk;
	char url[128];

	(void)state;
	upstream_open(&u, pages);
	desk_open(&desk, &(struct port_options){0});
	struct action action = upstream_action(&u, "/hang", url);

	action.max_in_flight = 1;
	start(&desk, &action, "{}");
	start(&desk, &action, "{}"); /* waits */
	upstream_wait(&u, hanging, 1);
	upstream_release(&u);
	port_stop(desk.port, /* grace_ms= */ 60000);
	assert_int_equal(desk.answers[1].outcome, ACT_OK);
	assert_true(desk.answers[2].here); /* done, or not begun: both are definite */
	assert_true(desk.answers[2].outcome == ACT_OK || desk.answers[2].outcome == ACT_FAILED);
	desk_expect(desk_wait(&desk, start(&desk, &action, "{}")), ACT_FAILED, "stopping");
	port_stop(desk.port, 0);
	desk_close(&desk);
	upstream_close(&u);
}

static void test_stop_cancels(void **state)
{
	struct upstream u;
	struct desk desk;
	char url[128];

	(void)state;
	upstream_open(&u, pages);
	desk_open(&desk, &(struct port_options){0});
	struct action action = upstream_action(&u, "/hang", url);

	action.max_in_flight = 2;
	for (int i = 0; i < 5; i++)
		start(&desk, &action, "{}");
	upstream_wait(&u, hanging, 2);
	port_stop(desk.port, /* grace_ms= */ 10);
	for (uint64_t i = 1; i <= 5; i++)
		assert_true(desk.answers[i].here);
	desk_expect(&desk.answers[1], ACT_UNKNOWN, "cancelled");
	desk_expect(&desk.answers[2], ACT_UNKNOWN, "cancelled");
	desk_expect(&desk.answers[3], ACT_FAILED, "stopping");
	desk_expect(&desk.answers[5], ACT_FAILED, "stopping");
	upstream_wait(&u, gone, 2);
	desk_close(&desk);
	upstream_close(&u);
}

/* Threads start and abort at random: every call is answered or aborted, never both lost and never twice. */
struct crowd {
	struct desk *desk;
	const struct action *actions;
	size_t from, to;
	unsigned seed;
};

static void *crowd_run(void *context)
{
	struct crowd *c = context;
	struct act_port *act = port_act(c->desk->port);

	for (size_t i = c->from; i < c->to; i++) {
		struct act_call call = {.action = &c->actions[i % 3], .input = slice_str("{}"), .attempt = 1};

		act->start(act, &call, desk_ticket(c->desk, i));
		act->flush(act);
		if (rand_r(&c->seed) % 3 == 0)
			act->abort(act, desk_ticket(c->desk, c->from + (size_t)rand_r(&c->seed) % (i - c->from + 1)));
	}
	return NULL;
}

static void test_crowd(void **state)
{
	struct upstream u;
	struct desk desk;
	char url[128], hang_url[128];
	struct crowd crowd[4];
	pthread_t threads[4];
	struct port_stats stats;
	uint64_t answered;

	(void)state;
	upstream_open(&u, pages);
	upstream_release(&u);
	desk_open(&desk, &(struct port_options){.http_slots = 16});
	struct action actions[3] = {upstream_action(&u, "/ok", url),
				    upstream_action(&u, "/hang", hang_url),
				    {.name = "noop", .kind = ACTION_NOOP}};

	actions[0].max_in_flight = 5;
	for (size_t i = 0; i < 4; i++) {
		crowd[i] = (struct crowd){&desk, actions, 1 + i * 200, 1 + (i + 1) * 200, (unsigned)i};
		assert_int_equal(pthread_create(&threads[i], NULL, crowd_run, &crowd[i]), 0);
	}
	for (size_t i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	desk_wait_stats(&desk, 0, 0);
	port_stop(desk.port, 0); /* an answer may still be on its way; after this none is */
	port_read_stats(desk.port, &stats);
	answered = stats.answers[ACT_OK];
	assert_int_equal(answered + stats.aborted, 800);
	for (size_t i = 1; i <= 800; i++)
		answered -= desk.answers[i].here;
	assert_int_equal(answered, 0);
	printf("# %d answered, %d aborted\n", (int)stats.answers[ACT_OK], (int)stats.aborted);
	desk_close(&desk);
	upstream_close(&u);
}

static void test_free_takes_null(void **state)
{
	(void)state;
	port_stop(NULL, 0);
	port_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds_without_a_call),
		cmocka_unit_test(test_max_in_flight),
		cmocka_unit_test(test_calls_are_timed_from_their_turn),
		cmocka_unit_test(test_versions_share_the_bound),
		cmocka_unit_test(test_first_come_first_served),
		cmocka_unit_test(test_actions_take_turns),
		cmocka_unit_test(test_too_many_wait),
		cmocka_unit_test(test_abort_ends_the_transfer),
		cmocka_unit_test(test_withdraw_takes_back_what_waits),
		cmocka_unit_test(test_look),
		cmocka_unit_test(test_stop_lets_finish),
		cmocka_unit_test(test_stop_cancels),
		cmocka_unit_test(test_crowd),
		cmocka_unit_test(test_free_takes_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
