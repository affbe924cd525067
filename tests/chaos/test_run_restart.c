/*
 * PostgreSQL is stopped the hard way (-m immediate) and started again, four times (ten in a soak), while two nodes drive runs: at once, or
 * when no lease has lasted. Nothing that was acknowledged is lost, nothing is done twice (support/run_load.h), and after
 * each return, by the clock:
 *
 *   new work   a run that is created then has COMPLETED
 *   old work   every run that was under way when the store went has moved on
 *
 * The poller of the load is told 503 meanwhile, and nothing else: a read that was lost with the store has no outcome that
 * could be unknown.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "support/await.h"
#include "support/run_load.h"
#include "support/soak.h"

#define NODES 2
#define RESTARTS soak_or(10, 4)
#define RUNS_N (RESTARTS * 50)
#define OVER_MS (RESTARTS * 4000)
#define UNDER_WAY_MIN 3                     /* runs that a restart is to meet */
#define DOWN_MS (RUN_LOAD_LEASE_MS * 3 / 2) /* every other time: then no lease has lasted */
#define BACK_MS 15000
#define CALM_MS 60000

static const char ping[] = "{'workflow':'ping','kind':'run','actions':{'N':{'kind':'noop'}},"
			   "'steps':[{'name':'only','type':'task','action':'N'}]}";

struct chaos {
	struct fleet fleet;
	struct effects *effects;
	struct run_load *load;
	struct caller *caller;
	bool store_is_down;
};

/* What was under way, as the store has it: a table of the test's own, in the same schema. */
static const char note_under_way[] =
	"SET client_min_messages = error; DROP TABLE IF EXISTS under_way; CREATE TABLE under_way AS SELECT s.id, s.version FROM hx_subject s JOIN hx_run r"
	" ON r.subject = s.id WHERE r.workflow = 'load' AND s.status <> 'COMPLETED';"
	" SELECT count(*) FROM under_way";
static const char count_unmoved[] =
	"SELECT count(*) FROM under_way u JOIN hx_subject s ON s.id = u.id WHERE s.version = u.version";

static size_t ask_number(struct chaos *c, const char *sql)
{
	char n[32];

	scene_sql(c->fleet.scene, sql, n, sizeof n);
	return strtoul(n, NULL, 10);
}

static void restart(struct chaos *c, int64_t down_ms)
{
	AWAIT(BACK_MS, ask_number(c, note_under_way) >= UNDER_WAY_MIN);
	c->store_is_down = true;
	store_pg_ctl("stop immediate");
	nanosleep(&(struct timespec){down_ms / 1000, down_ms % 1000 * 1000000}, NULL);
	store_pg_ctl("start");
	c->store_is_down = false;
}

/* How long after `from_ms` a run that is created now has COMPLETED. */
static int64_t new_work_ms(struct chaos *c, int64_t from_ms)
{
	struct reply reply;
	bool done = false;

	while (!done) {
		if (await_now_ms() - from_ms > BACK_MS)
			fail_msg("no new run COMPLETED %d ms after the store came back", BACK_MS);
		caller_call(c->caller, "POST", "/api/v1/workflow-runs?wait=5s", "{\"definitionId\":\"ping\"}", &reply);
		done = reply.status == 201 && strcmp(reply_text(&reply, "run.status"), "COMPLETED") == 0;
		reply_release(&reply);
	}
	return await_now_ms() - from_ms;
}

static int64_t old_work_ms(struct chaos *c, int64_t from_ms)
{
	size_t left;

	while ((left = ask_number(c, count_unmoved)) > 0) {
		if (await_now_ms() - from_ms > BACK_MS)
			fail_msg("%zu runs have not moved %d ms after the store came back", left, BACK_MS);
		await_pause();
	}
	return await_now_ms() - from_ms;
}

static void test_store_that_restarts_loses_nothing(void **state)
{
	struct chaos *c = *state;
	int64_t new_max_ms = 0, old_max_ms = 0, back_at_ms, ms;
	struct run_load_sum sum;

	c->load = run_load_start(&c->fleet, c->effects, RUNS_N, OVER_MS);
	for (int i = 0; i < RESTARTS; i++) {
		restart(c, i % 2 ? DOWN_MS : 0);
		back_at_ms = await_now_ms();
		ms = new_work_ms(c, back_at_ms);
		new_max_ms = ms > new_max_ms ? ms : new_max_ms;
		ms = old_work_ms(c, back_at_ms);
		old_max_ms = ms > old_max_ms ? ms : old_max_ms;
	}
	run_load_await(c->load, CALM_MS);
	run_load_check(c->load, &sum);
	fleet_stop(&c->fleet);
	printf("# store restarted %d times: new work done at most %lld ms after its return, all old work moved on at most "
	       "%lld ms after it (lease %d ms)\n",
	       RESTARTS, (long long)new_max_ms, (long long)old_max_ms, RUN_LOAD_LEASE_MS);
	printf("# store restarted: %zu runs, each acknowledged and COMPLETED, in %zu tries; %zu takeovers; %zu effects, %zu "
	       "repeated calls, none applied twice; %zu polls\n",
	       sum.runs, sum.tries, sum.takeovers, sum.effects, sum.repeated, sum.polls);
}

static int set_up(void **state)
{
	struct chaos *c = calloc(1, sizeof *c);
	void *scene = NULL;

	assert_non_null(c);
	*state = c;
	scene_set_up_postgres(&scene);
	c->effects = effects_new();
	run_load_define(scene, c->effects);
	scene_define(scene, "ping", ping);
	fleet_start(&c->fleet, scene, NODES);
	c->caller = caller_new(&c->fleet, /* seed= */ 77);
	return 0;
}

static int tear_down(void **state)
{
	struct chaos *c = *state;
	void *scene = c->fleet.scene;

	if (c->store_is_down)
		store_pg_ctl("start");
	run_load_free(c->load);
	caller_free(c->caller);
	scene_tear_down(&scene);
	effects_free(c->effects);
	free(c);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_store_that_restarts_loses_nothing, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
