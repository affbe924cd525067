/*
 * A run whose definition, in the version that it has, is not known to any node: it waits, is told of once, holds up nobody
 * else, and goes on when the version is known.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/await.h"
#include "support/scene.h"

#define NOTICE_MS 60000
#define STRAY_N 40

static const char sale[] = "{'workflow':'sale','kind':'run','actions':{'Nothing':{'kind':'noop'}},'steps':["
			   "{'name':'first','type':'task','action':'Nothing'},"
			   "{'name':'rest','type':'wait','for':'50ms'},"
			   "{'name':'second','type':'task','action':'Nothing'}]}";
static const char paid[] = "{'workflow':'long','kind':'run','steps':["
			   "{'name':'paid','type':'external_event','event':'paid'}]}";

static void test_unknown_version(void **state)
{
	struct scene *scene = *state;
	static char ids[STRAY_N][40];
	char path[100];

	scene_define(scene, "sale", sale);
	scene_define(scene, "long", paid);
	scene_start(scene, 0);
	for (int i = 0; i < STRAY_N; i++) {
		scene_must(scene, 0, "POST", "/api/v1/workflow-runs", "{'definitionId':'long'}", 201, NULL);
		snprintf(ids[i], sizeof ids[i], "%s", reply_text(&scene->last, "run.id"));
	}
	scene_stop(scene, 0);
	scene_sql(scene, "UPDATE hx_run SET definition_version = 99, due_at = 1", NULL, 0);
	scene_start(scene, 0);
	serve_await_log(scene->nodes[0], "definition is not known here", 1, NOTICE_MS);
	for (int i = 0; i < 10; i++) {
		scene_must(scene, 0, "POST", "/api/v1/workflow-runs?wait=20s", "{'definitionId':'sale'}", 201, NULL);
		assert_string_equal(reply_text(&scene->last, "run.status"), "COMPLETED");
	}
	assert_int_equal(file_count(scene->nodes[0]->log, "definition is not known here"), 1);
	scene_stop(scene, 0);
	/* Due, all of them: one that had not begun when the node was stopped waits for nothing else. */
	scene_sql(scene, "UPDATE hx_run SET definition_version = 1, due_at = 1 WHERE definition_version = 99", NULL, 0);
	scene_start(scene, 0);
	for (int i = 0; i < STRAY_N; i += 13) {
		snprintf(path, sizeof path, "/api/v1/workflow-runs/%.39s/events/paid", ids[i]);
		scene_call(scene, 0, "POST", path, "{'data':1}");
		snprintf(path, sizeof path, "/api/v1/workflow-runs/%.39s?wait=20s", ids[i]);
		scene_must(scene, 0, "GET", path, NULL, 200, NULL);
		assert_string_equal(reply_text(&scene->last, "status"), "COMPLETED");
	}
	scene_stop(scene, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_unknown_version, scene_set_up_sqlite, scene_tear_down),
		cmocka_unit_test_setup_teardown(test_unknown_version, scene_set_up_postgres, scene_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
