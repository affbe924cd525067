/*
 * A node that is stopped (SIGTERM) in the middle of a batch begins no further item, waits for the call that is under way, and
 * lets the batch go: whoever comes next goes on at once, although the lease would have lasted another minute. On PostgreSQL,
 * where nobody may take it for granted that the last holder is dead. So it is with the steps of a run, and from the moment at which
 * the stop is announced.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/await.h"
#include "support/run_scene.h"

#define GOES_ON_MS 30000 /* half of the lease */
#define ITEMS "[{'cost':1},{'cost':2},{'cost':3},{'cost':4},{'cost':5},{'cost':6},{'cost':7},{'cost':8}]"

static void test_a_stopped_node_lets_go(void **state)
{
	struct scene *scene = *state;
	char path[200], cell[32];
	size_t begun;

	scene_define(scene, "film",
		     "{'workflow':'film','kind':'batch','actions':{'render':{'kind':'http','url':'@/render',"
		     "'effect':'claimed'}},'item_action':'render','concurrency':1}");
	service_play(scene->service, "/render", &(struct play){.delay_ms = 300});
	scene_start(scene, 0);
	scene_must(scene, 0, "POST", "/api/v1/accounts", "{'id':'alice','balance':100}", 201, NULL);
	scene_must(scene, 0, "POST", "/api/v1/batches", "{'workflow':'film','account':'alice','items':" ITEMS "}", 201,
		   NULL);
	snprintf(path, sizeof path, "/api/v1/batches/%s", reply_text(&scene->last, "id"));
	service_await(scene->service, "/render", 2, GOES_ON_MS);
	scene_stop(scene, 0);
	begun = service_count(scene->service, "/render", NULL);
	assert_true(begun < 8);
	scene_sql(scene,
		  "SELECT count(*) FROM hx_batch b JOIN hx_subject s ON s.id = b.subject WHERE s.status = 'RUNNING' AND"
		  " s.owner IS NULL AND b.due_at IS NOT NULL",
		  cell, sizeof cell);
	assert_string_equal(cell, "1");
	scene_sql(scene, "SELECT count(*) FROM hx_batch_item WHERE status = 'RUNNING' OR doubt <> 0", cell,
		  sizeof cell);
	assert_string_equal(cell, "0");
	scene_start(scene, 0);
	AWAIT(GOES_ON_MS,
	      strcmp(reply_text(scene_must(scene, 0, "GET", path, NULL, 200, NULL), "status"), "COMPLETED") == 0);
	assert_int_equal(reply_int(&scene->last, "succeeded"), 8);
	assert_int_equal(reply_int(&scene->last, "charged"), 36);
	assert_int_equal(service_count(scene->service, "/render", NULL), 8); /* each once: nothing was in doubt */
}

static void assert_called(struct scene *scene, size_t charged, size_t rendered)
{
	assert_int_equal(service_count(scene->service, "/charge", NULL), charged);
	assert_int_equal(service_count(scene->service, "/render", NULL), rendered);
}

/* The call that is under way ends within the notice, where more could be begun. */
static void test_nothing_is_begun_after_the_notice(void **state)
{
	const struct play slow = {.delay_ms = 3000}, quick = {0};
	struct scene *scene = *state;
	char run[200], batch[200], cell[32];

	scene_configure(scene, "{'drain':{'notice':'4s'}}");
	scene_define(scene, "sale",
		     "{'workflow':'sale','kind':'run','actions':{'charge':{'kind':'http','url':'@/charge'}},'steps':["
		     "{'name':'a','type':'task','action':'charge'},{'name':'b','type':'task','action':'charge'}]}");
	scene_define(scene, "film",
		     "{'workflow':'film','kind':'batch','actions':{'render':{'kind':'http','url':'@/render'}},"
		     "'item_action':'render','concurrency':1}");
	service_play(scene->service, "/charge", &slow);
	service_play(scene->service, "/render", &slow);
	scene_start(scene, 0);
	scene_must(scene, 0, "POST", "/api/v1/accounts", "{'id':'alice','balance':100}", 201, NULL);
	scene_must(scene, 0, "POST", "/api/v1/batches",
		   "{'workflow':'film','account':'alice','items':[{'cost':1},{'cost':2}]}", 201, NULL);
	snprintf(batch, sizeof batch, "/api/v1/batches/%s", reply_text(&scene->last, "id"));
	scene_must(scene, 0, "POST", "/api/v1/workflow-runs", "{'definitionId':'sale'}", 201, NULL);
	snprintf(run, sizeof run, "/api/v1/workflow-runs/%s", reply_text(&scene->last, "run.id"));
	service_await(scene->service, "/charge", 1, GOES_ON_MS);
	service_await(scene->service, "/render", 1, GOES_ON_MS);
	scene_stop(scene, 0);
	assert_called(scene, 1, 1);
	scene_sql(scene, "SELECT count(*) FROM hx_subject WHERE owner IS NOT NULL", cell, sizeof cell);
	assert_string_equal(cell, "0");
	service_play(scene->service, "/charge", &quick);
	service_play(scene->service, "/render", &quick);
	scene_start(scene, 0);
	AWAIT(GOES_ON_MS,
	      strcmp(reply_text(scene_must(scene, 0, "GET", run, NULL, 200, NULL), "status"), "COMPLETED") == 0);
	AWAIT(GOES_ON_MS,
	      strcmp(reply_text(scene_must(scene, 0, "GET", batch, NULL, 200, NULL), "status"), "COMPLETED") == 0);
	assert_called(scene, 2, 2); /* each once: nothing was in doubt */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_stopped_node_lets_go, scene_set_up_postgres, scene_tear_down),
		cmocka_unit_test_setup_teardown(test_nothing_is_begun_after_the_notice, scene_set_up_sqlite,
						scene_tear_down),
		cmocka_unit_test_setup_teardown(test_nothing_is_begun_after_the_notice, scene_set_up_postgres,
						scene_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
