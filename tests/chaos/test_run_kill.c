/*
 * Three nodes on one PostgreSQL drive a thousand runs of five steps, and every 300 ms one of them, by chance, is killed
 * with -9 and started again. Beside that, now and then one falls silent for longer than its leases, stopped or cut off from
 * the store, and comes back with work in its hands that others have gone on with: what it still writes is what fences
 * are for.
 *
 * And the same with SIGTERM, as nodes are replaced one by one: nothing that they have begun has to be taken over or done again.
 *
 * Half a minute; with HAPAX_SOAK half an hour, and thirty thousand runs. What must be true then is in support/run_load.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "support/await.h"
#include "support/run_load.h"
#include "support/soak.h"

#define NODES 3
#define MINUTE_MS 60000
#define KILLED_MS soak_or(SOAK_MINUTES *MINUTE_MS, MINUTE_MS / 2)
#define RUNS_PER_MINUTE 1000
#define SOAK_MINUTES 30
#define KILL_EVERY_MS 300
#define KILLS_PER_SILENCE 8
#define SILENCES_MIN 3 /* also where a kill takes its time */
#define SILENCE_MS (RUN_LOAD_LEASE_MS * 3 / 2)
#define ROLLING_STOPS 12
#define ROLLING_RUNS 120
#define ROLLING_MS 5000
#define CALM_MS 60000

struct chaos {
	struct fleet fleet;
	struct effects *effects;
	struct run_load *load;
	struct caller *dice;
	int silent; /* -1: none */
	bool stopped;
	int64_t speaks_at_ms;
};

static void sleep_until_ms(int64_t at_ms)
{
	struct timespec at = {at_ms / 1000, at_ms % 1000 * 1000000};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static int draw_node(struct chaos *c)
{
	int node = (int)caller_draw(c->dice, NODES);

	return node == c->silent ? (node + 1) % NODES : node;
}

static void kill_one(struct chaos *c)
{
	int node = draw_node(c);

	fleet_kill(&c->fleet, node);
	service_forget(c->fleet.scene->service); /* in hours these would be too many; what counts is in the effects */
	fleet_revive(&c->fleet, node);
}

/* In turn by SIGSTOP and by a network that is silent. */
static bool by_stop(const struct chaos *c)
{
	return c->fleet.pauses <= c->fleet.cut_offs;
}

static void silence_one(struct chaos *c)
{
	c->silent = draw_node(c);
	c->speaks_at_ms = await_now_ms() + SILENCE_MS;
	c->stopped = by_stop(c);
	if (c->stopped)
		fleet_pause(&c->fleet, c->silent);
	else
		fleet_cut_off(&c->fleet, c->silent);
}

static void let_it_speak(struct chaos *c)
{
	if (c->stopped)
		fleet_continue(&c->fleet, c->silent);
	else
		fleet_reconnect(&c->fleet, c->silent);
}

/* One beat: a kill, and what there is beside it. A node that comes back lives until the next one at least. */
static void beat(struct chaos *c)
{
	bool speaks = c->silent >= 0 && await_now_ms() >= c->speaks_at_ms;

	if (speaks)
		let_it_speak(c);
	else if (c->silent < 0 && c->fleet.kills % KILLS_PER_SILENCE == KILLS_PER_SILENCE - 1)
		silence_one(c);
	kill_one(c);
	if (speaks)
		c->silent = -1;
}

/* Returns how long it took. */
static int64_t rage(struct chaos *c, int64_t for_ms)
{
	int64_t from_ms = await_now_ms(), next_ms = from_ms;

	while (await_now_ms() < from_ms + for_ms || c->fleet.pauses < SILENCES_MIN) {
		next_ms += KILL_EVERY_MS;
		sleep_until_ms(next_ms);
		beat(c);
	}
	if (c->silent >= 0)
		let_it_speak(c);
	return await_now_ms() - from_ms;
}

static void test_killed_nodes_lose_and_repeat_nothing(void **state)
{
	struct chaos *c = *state;
	int64_t for_ms = KILLED_MS, calm_at_ms, raged_ms;
	struct run_load_sum sum;

	c->load = run_load_start(&c->fleet, c->effects, (size_t)(for_ms * RUNS_PER_MINUTE / MINUTE_MS), for_ms);
	raged_ms = rage(c, for_ms);
	calm_at_ms = await_now_ms();
	run_load_await(c->load, CALM_MS);
	printf("# run kill: all runs COMPLETED %lld ms after the last kill\n",
	       (long long)(await_now_ms() - calm_at_ms));
	run_load_check(c->load, &sum);
	fleet_stop(&c->fleet);
	printf("# run kill: %zu kills (one every %lld ms), %zu stops, %zu cut off, %zu takeovers, %lld fenced writes, %lld overruns\n",
	       c->fleet.kills, (long long)(raged_ms / (int64_t)c->fleet.kills), c->fleet.pauses, c->fleet.cut_offs,
	       sum.takeovers, (long long)c->fleet.fenced_writes, (long long)c->fleet.overruns);
	printf("# run kill: %zu runs, each acknowledged and COMPLETED, in %zu tries; %zu effects, %zu repeated calls, none "
	       "applied twice; %zu polls\n",
	       sum.runs, sum.tries, sum.effects, sum.repeated, sum.polls);
	assert_true(c->fleet.kills > 0 && c->fleet.pauses > 0 && c->fleet.cut_offs > 0);
	assert_true(sum.takeovers > 0);
	assert_true(c->fleet.fenced_writes > 0);
	assert_true(sum.repeated > 0);
}

static void test_stopped_nodes_leave_nothing_behind(void **state)
{
	struct chaos *c = *state;
	struct run_load_sum sum;

	c->load = run_load_start(&c->fleet, c->effects, ROLLING_RUNS, ROLLING_MS);
	for (int i = 0; i < ROLLING_STOPS; i++) {
		sleep_until_ms(await_now_ms() + KILL_EVERY_MS);
		fleet_stop_one(&c->fleet, i % NODES);
		fleet_revive(&c->fleet, i % NODES);
	}
	run_load_await(c->load, CALM_MS);
	run_load_check(c->load, &sum);
	fleet_stop(&c->fleet);
	printf("# nodes stopped one by one: %d times, %zu runs COMPLETED, %zu takeovers, %zu effects, %zu repeated calls\n",
	       ROLLING_STOPS, sum.runs, sum.takeovers, sum.effects, sum.repeated);
	assert_int_equal(sum.takeovers, 0);
	assert_int_equal(sum.repeated, 0);
}

static int set_up(void **state)
{
	struct chaos *c = calloc(1, sizeof *c);
	void *scene = NULL;

	assert_non_null(c);
	*state = c;
	c->silent = -1;
	scene_set_up_postgres(&scene);
	c->fleet.scene = scene;
	c->effects = effects_new();
	c->dice = caller_new(&c->fleet, (uint64_t)await_now_ms());
	run_load_define(scene, c->effects);
	fleet_add_proxies(&c->fleet, scene, NODES);
	fleet_start(&c->fleet, scene, NODES);
	return 0;
}

static int tear_down(void **state)
{
	struct chaos *c = *state;
	void *scene = c->fleet.scene;

	run_load_free(c->load);
	caller_free(c->dice);
	scene_tear_down(&scene);
	fleet_release(&c->fleet);
	effects_free(c->effects);
	free(c);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_killed_nodes_lose_and_repeat_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_stopped_nodes_leave_nothing_behind, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
