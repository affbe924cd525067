/*
 * A node that is alone with its store (the lock of a SQLite file says so) does not wait out the leases of the dead: killed in the
 * middle of a run's step and of a batch's item, and started again, it goes on at once, although both leases have a minute left.
 * Each call is made again with its key.
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

static void await_status(struct scene *scene, const char *path, const char *status)
{
	AWAIT(GOES_ON_MS,
	      strcmp(reply_text(scene_must(scene, 0, "GET", path, NULL, 200, NULL), "status"), status) == 0);
}

static void test_goes_on_at_once(void **state)
{
	struct scene *scene = *state;
	char run[200], batch[200], id[64];

	scene_define(
		scene, "trip",
		"{'workflow':'trip','kind':'run','actions':{'book':{'kind':'http','url':'@/book','effect':'keyed'}},"
		"'steps':[{'name':'book','type':'task','action':'book'}]}");
	scene_define(scene, "film",
		     "{'workflow':'film','kind':'batch','actions':{'render':{'kind':'http','url':'@/render',"
		     "'effect':'keyed'}},'item_action':'render','concurrency':1}");
	service_play(scene->service, "/book", &(struct play){.hold = true});
	service_play(scene->service, "/render", &(struct play){.hold = true});
	scene_start(scene, 0);
	run_create_id(scene, "{'definitionId':'trip'}", id);
	snprintf(run, sizeof run, "/api/v1/workflow-runs/%s", id);
	scene_must(scene, 0, "POST", "/api/v1/accounts", "{'id':'alice','balance':100}", 201, NULL);
	scene_must(scene, 0, "POST", "/api/v1/batches",
		   "{'workflow':'film','account':'alice','items':[{'cost':7},{'cost':8}]}", 201, NULL);
	snprintf(batch, sizeof batch, "/api/v1/batches/%s", reply_text(&scene->last, "id"));
	service_await(scene->service, "/book", 1, GOES_ON_MS);
	service_await(scene->service, "/render", 1, GOES_ON_MS);
	scene_kill(scene, 0);
	service_play(scene->service, "/book", &(struct play){0});
	service_play(scene->service, "/render", &(struct play){0});
	scene_start(scene, 0);
	await_status(scene, run, "COMPLETED");
	await_status(scene, batch, "COMPLETED");
	assert_int_equal(reply_int(&scene->last, "charged"), 15);
	assert_string_equal(service_call(scene->service, "/book", 0).key, service_call(scene->service, "/book", 1).key);
	assert_string_equal(service_call(scene->service, "/render", 0).key,
			    service_call(scene->service, "/render", 1).key);
	assert_int_equal(service_count(scene->service, "/render", NULL), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_goes_on_at_once, scene_set_up_sqlite, scene_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
