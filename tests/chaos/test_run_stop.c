/*
 * A stale holder of runs on PostgreSQL, with two real nodes: A drives some runs and falls silent past their leases while
 * their actions run, B takes all of them over, and then A goes on. Whatever A still had in mind changes nothing, each of
 * its runs is counted as one that came too late, and the service, which knows keys, has done every step once.
 *
 *   A is silent by     and then wants to
 *   SIGSTOP            record that the step is done, or has failed · keep its claim alive (the action still runs):
 *                      B has brought the runs to their end by then
 *   a network that     record that the step is done, or has failed: its writes are already on the way, so it is not A's own
 *   has fallen silent  clock that stops them; and B is at that very step, so it is the fence alone
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/await.h"
#include "support/effects.h"
#include "support/pg_proxy.h"
#include "support/scene.h"

#define A 0
#define B 1
#define RUNS_N 20
#define ID_BYTES 40
/* A node that is paused inside of a transaction keeps its locks until the server ends it, at 30 s. */
#define TAKE_OVER_MS 90000
#define NOTICE_MS 60000

static const char definition[] = "{'workflow':'sale','kind':'run','actions':{"
				 "'Charge':{'kind':'http','url':'@/charge','effect':'keyed'},"
				 "'Tell':{'kind':'http','url':'@/tell','effect':'keyed'}},'steps':["
				 "{'name':'charge','type':'task','action':'Charge'},"
				 "{'name':'tell','type':'task','action':'Tell'}]}";

struct chaos {
	struct scene *scene;
	struct effects *effects;
	struct pg_proxy *proxy;
	char ids[RUNS_N][ID_BYTES];
	char *runs[RUNS_N], *histories[RUNS_N]; /* as they were when B was done */
};

/* ---- before ---- */

static void play(struct chaos *c, bool hold, int status)
{
	service_play(c->scene->service, "/charge",
		     &(struct play){.hold = hold, .status = status, .apply = effects_apply, .context = c->effects});
}

/* A alone has the runs, and waits for their actions, which will be answered with this status. */
static void begin(struct chaos *c, int status)
{
	struct reply *reply;

	scene_define(c->scene, "sale", definition);
	scene_configure(c->scene, "{'lease':'2s'}");
	service_play(c->scene->service, "/tell", &(struct play){.apply = effects_apply, .context = c->effects});
	play(c, /* hold= */ true, status);
	scene_start(c->scene, A);
	for (int i = 0; i < RUNS_N; i++) {
		reply = scene_must(c->scene, A, "POST", "/api/v1/workflow-runs", "{'definitionId':'sale'}", 201, NULL);
		snprintf(c->ids[i], ID_BYTES, "%s", reply_text(reply, "run.id"));
	}
	service_await(c->scene->service, "/charge", RUNS_N, NOTICE_MS);
	scene_start(c->scene, B);
}

/* ---- in between ---- */

static struct reply *show(struct chaos *c, int node, const char *what, int i)
{
	char path[100];

	snprintf(path, sizeof path, "/api/v1/%s/%s", what, c->ids[i]);
	return scene_must(c->scene, node, "GET", path, NULL, 200, NULL);
}

static bool is_completed(struct chaos *c, int i)
{
	return strcmp(reply_text(show(c, B, "workflow-runs", i), "status"), "COMPLETED") == 0;
}

/* B has all of them, at the same step, and waits for their actions, which will be done. */
static void take_over_on_b(struct chaos *c)
{
	int64_t silent_since_ms = await_now_ms();

	play(c, /* hold= */ true, 200);
	service_await(c->scene->service, "/charge", 2 * RUNS_N, TAKE_OVER_MS);
	printf("# stale holder of runs: all %d taken over %lld ms after it fell silent (lease 2 s)\n", RUNS_N,
	       (long long)(await_now_ms() - silent_since_ms));
}

static void finish_on_b(struct chaos *c)
{
	int64_t from_ms = await_now_ms();

	play(c, /* hold= */ false, 200);
	for (int i = 0; i < RUNS_N; i++)
		AWAIT(TAKE_OVER_MS, is_completed(c, i));
	printf("# stale holder of runs: all %d completed by the other within %lld ms (lease 2 s)\n", RUNS_N,
	       (long long)(await_now_ms() - from_ms));
	for (int i = 0; i < RUNS_N; i++) {
		c->runs[i] = strdup(show(c, B, "workflow-runs", i)->body);
		c->histories[i] = strdup(show(c, B, "history", i)->body);
	}
}

/* ---- afterwards ---- */

static void check_history(struct chaos *c, int i)
{
	struct reply *reply = show(c, B, "history", i);
	size_t n = reply_count(reply, "items");
	bool by_b = false;
	char path[40];

	for (size_t row = 0; row < n; row++) {
		snprintf(path, sizeof path, "items.%zu.node", row);
		if (strcmp(reply_text(reply, path), "node-b") == 0)
			by_b = true;
		else if (by_b)
			fail_msg("%s: A has written behind B: %s", c->ids[i], reply->body);
	}
	assert_true(by_b);
}

/* Nothing has changed since B was done, as both nodes see it. */
static void check(struct chaos *c)
{
	const char *wrong = effects_wrong(c->effects);

	for (int i = 0; i < RUNS_N; i++) {
		for (int node = A; node <= B; node++) {
			assert_string_equal(show(c, node, "workflow-runs", i)->body, c->runs[i]);
			assert_string_equal(show(c, node, "history", i)->body, c->histories[i]);
		}
		check_history(c, i);
	}
	if (wrong)
		fail_msg("%s", wrong);
	/* Each run charged once and told once; each charge was called for by A and by B. */
	assert_int_equal(effects_n(c->effects), 2 * RUNS_N);
	assert_int_equal(effects_repeated(c->effects), RUNS_N);
}

static void end(struct chaos *c, const char *what)
{
	/* Whatever the reason for it, each of A's runs has come too late. */
	AWAIT(NOTICE_MS, scene_metric(c->scene, A, "hapax_runs_fenced_total") == RUNS_N);
	check(c);
	assert_int_equal(file_count(c->scene->nodes[A]->log, "claim was overrun"), RUNS_N);
	printf("# stale holder of runs, %s: %lld fenced writes, %lld overruns, %lld runs fenced\n", what,
	       (long long)scene_metric(c->scene, A, "hapax_fenced_writes_total"),
	       (long long)scene_metric(c->scene, A, "hapax_claim_overruns_total"),
	       (long long)scene_metric(c->scene, A, "hapax_runs_fenced_total"));
	scene_stop(c->scene, A);
	scene_stop(c->scene, B);
}

/* ---- SIGSTOP ---- */

static void stop_and_continue(struct chaos *c, int status, bool answered_meanwhile, const char *what)
{
	begin(c, status);
	serve_pause(c->scene->nodes[A]);
	finish_on_b(c);
	if (answered_meanwhile)
		service_release(c->scene->service);
	serve_continue(c->scene->nodes[A]);
	end(c, what);
}

static void test_stopped_holder_cannot_record_what_was_done(void **state)
{
	stop_and_continue(*state, 200, /* answered_meanwhile= */ true, "stopped, actions done");
}

static void test_stopped_holder_cannot_record_a_failure(void **state)
{
	stop_and_continue(*state, 500, /* answered_meanwhile= */ true, "stopped, actions failed");
}

static void test_stopped_holder_cannot_keep_its_claims(void **state)
{
	stop_and_continue(*state, 200, /* answered_meanwhile= */ false, "stopped, actions run");
}

/* ---- a silent network ---- */

static void fall_silent(struct chaos *c, int status, const char *what)
{
	c->proxy = pg_proxy_new(store_pg_port());
	assert_non_null(c->proxy);
	store_url(c->scene->store, pg_proxy_port(c->proxy), "node-a", c->scene->db_urls[A],
		  sizeof c->scene->db_urls[A]);
	begin(c, status);
	pg_proxy_stall(c->proxy);
	service_release(c->scene->service); /* the writes are on the way, and do not arrive */
	take_over_on_b(c);
	pg_proxy_drop(c->proxy); /* A connects again and sends them once more */
	AWAIT(NOTICE_MS, scene_metric(c->scene, A, "hapax_fenced_writes_total") >= RUNS_N);
	service_release(c->scene->service);
	finish_on_b(c);
	end(c, what);
}

static void test_silent_holder_cannot_record_what_was_done(void **state)
{
	fall_silent(*state, 200, "silent, actions done");
}

static void test_silent_holder_cannot_record_a_failure(void **state)
{
	fall_silent(*state, 500, "silent, actions failed");
}

/* ---- set up ---- */

static int set_up(void **state)
{
	struct chaos *c = calloc(1, sizeof *c);
	void *scene = NULL;

	assert_non_null(c);
	*state = c;
	scene_set_up_postgres(&scene);
	c->scene = scene;
	c->effects = effects_new();
	return 0;
}

static int tear_down(void **state)
{
	struct chaos *c = *state;
	void *scene = c->scene;

	scene_tear_down(&scene);
	pg_proxy_free(c->proxy);
	effects_free(c->effects);
	for (int i = 0; i < RUNS_N; i++) {
		free(c->runs[i]);
		free(c->histories[i]);
	}
	free(c);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_stopped_holder_cannot_record_what_was_done, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_stopped_holder_cannot_record_a_failure, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_stopped_holder_cannot_keep_its_claims, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_silent_holder_cannot_record_what_was_done, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_silent_holder_cannot_record_a_failure, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
