/*
 * Retention, end to end on both stores: a run that ended long enough ago answers 410, and so does its key; one that has not
 * ended stays whatever its age; what is left in the store is the key and the head of its history. On PostgreSQL two nodes do
 * it at once, and each run goes once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/await.h"
#include "support/scene.h"

#define RUNS_N 150 /* more than two slices */
#define NOTICE_MS 60000

static const char definition[] = "{'workflow':'sale','kind':'run','actions':{'Nothing':{'kind':'noop'}},'steps':["
				 "{'name':'first','type':'task','action':'Nothing'},"
				 "{'name':'second','type':'task','action':'Nothing'}]}";
static const char waiting[] = "{'workflow':'long','kind':'run','steps':["
			      "{'name':'paid','type':'external_event','event':'paid'}]}";

static char ids[RUNS_N][40];

static void create_runs(struct scene *scene)
{
	char body[200];

	for (int i = 0; i < RUNS_N; i++) {
		snprintf(body, sizeof body, "{'definitionId':'sale','idempotencyKey':'k%d','input':{'secret':%d}}", i,
			 i);
		scene_must(scene, 0, "POST", "/api/v1/workflow-runs", body, 201, NULL);
		snprintf(ids[i], sizeof ids[i], "%s", reply_text(&scene->last, "run.id"));
	}
}

static int64_t count(struct scene *scene, const char *sql)
{
	char cell[32];

	scene_sql(scene, sql, cell, sizeof cell);
	return strtoll(cell, NULL, 10);
}

static void await_expired(struct scene *scene)
{
	AWAIT(NOTICE_MS, count(scene, "SELECT count(*) FROM hx_run WHERE expired = 1") == RUNS_N);
	for (int i = 0; i < RUNS_N; i += 37) {
		char path[300], body[100];

		snprintf(path, sizeof path, "/api/v1/workflow-runs/%.39s", ids[i]);
		scene_must(scene, 0, "GET", path, NULL, 410, "RUN_EXPIRED");
		snprintf(body, sizeof body, "{'definitionId':'sale','idempotencyKey':'k%d'}", i);
		scene_must(scene, 0, "POST", "/api/v1/workflow-runs", body, 410, "RUN_EXPIRED");
	}
}

static void check_rows(struct scene *scene, const char *waiter)
{
	char path[300];

	assert_int_equal(count(scene, "SELECT count(*) FROM hx_run"), RUNS_N + 1);
	assert_int_equal(count(scene, "SELECT count(*) FROM hx_run WHERE input LIKE '%secret%'"), 0);
	assert_int_equal(count(scene, "SELECT count(*) FROM hx_run_step"), 0);
	assert_int_equal(count(scene, "SELECT count(*) FROM hx_history h JOIN hx_run r ON r.subject = h.subject"
				      " WHERE r.expired = 1"),
			 0);
	assert_int_equal(count(scene,
			       "SELECT count(*) FROM hx_subject s JOIN hx_run r ON r.subject = s.id"
			       " WHERE length(s.head) = 32 AND s.status = 'COMPLETED' AND r.run_key IS NOT NULL"),
			 RUNS_N);
	scene_must(scene, 0, "GET", "/api/v1/workflow-runs", NULL, 200, NULL);
	assert_int_equal(reply_count(&scene->last, "items"), 1);
	snprintf(path, sizeof path, "/api/v1/workflow-runs/%s", waiter);
	scene_must(scene, 0, "GET", path, NULL, 200, NULL);
	assert_string_equal(reply_text(&scene->last, "status"), "WAITING");
}

static void play(struct scene *scene, int nodes_n)
{
	int64_t expired = 0;
	char waiter[40];

	scene_define(scene, "sale", definition);
	scene_define(scene, "long", waiting);
	scene_configure(scene, "{'retention':{'runs':'1s'}}");
	for (int i = 0; i < nodes_n; i++)
		scene_start(scene, i);
	scene_must(scene, 0, "POST", "/api/v1/workflow-runs", "{'definitionId':'long'}", 201, NULL);
	snprintf(waiter, sizeof waiter, "%s", reply_text(&scene->last, "run.id"));
	create_runs(scene);
	await_expired(scene);
	check_rows(scene, waiter);
	for (int i = 0; i < nodes_n; i++)
		expired += scene_metric(scene, i, "hapax_runs_expired_total");
	assert_int_equal(expired, RUNS_N);
	for (int i = 0; i < nodes_n; i++)
		scene_stop(scene, i);
}

static void test_sqlite(void **state)
{
	play(*state, 1);
}

static void test_postgres(void **state)
{
	play(*state, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_sqlite, scene_set_up_sqlite, scene_tear_down),
		cmocka_unit_test_setup_teardown(test_postgres, scene_set_up_postgres, scene_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
