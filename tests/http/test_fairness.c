/*
 * Neighbours: the services of one workspace are slow, as slow as can be, and it has more calls than a node makes at once. The steps of
 * another one go on as if it were alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "act/port.h"
#include "engine/runs.h"
#include "support/await.h"
#include "support/run_scene.h"

#define SLOW 300      /* more than its share */
#define SOON_MS 30000 /* and the slow ones are held for minutes */

#define MANY 800 /* items of a map; three of them are more runs than a workspace has places for */

static const char definitions[4][300] = {
	"{'workflow':'slow','kind':'run','actions':{'a':{'kind':'http','url':'@/slow','effect':'keyed','timeout':'5m'}},"
	"'steps':[{'name':'a','type':'task','action':'a'}]}",
	"{'workflow':'quick','kind':'run','actions':{'a':{'kind':'http','url':'@/quick','effect':'keyed'}},"
	"'steps':[{'name':'a','type':'task','action':'a'}]}",
	"{'workflow':'many','kind':'run','steps':[{'name':'m','type':'map','over':'.input.of','workflow':'slow','concurrency':1000}]}",
	"{'workflow':'later','kind':'run','actions':{'a':{'kind':'http','url':'@/quick','effect':'keyed'}},"
	"'steps':[{'name':'w','type':'wait','for':'50ms'},{'name':'a','type':'task','action':'a'}]}",
};

static void call_in_other(struct scene *scene, const char *method, const char *path, const char *body, int status)
{
	reply_release(&scene->last);
	assert_true(client_call_with(scene->admin[0], method, path, "Hapax-Workspace: other\r\n", body, strlen(body),
				     &scene->last));
	if (scene->last.status != status)
		fail_msg("%s %s: %d %s", method, path, scene->last.status, scene->last.body);
}

static bool other_has_completed(struct scene *scene, const char *path)
{
	call_in_other(scene, "GET", path, "", 200);
	return strcmp(reply_text(&scene->last, "status"), "COMPLETED") == 0;
}

static int64_t run_in_other_ms(struct scene *scene, const char *workflow)
{
	int64_t began = await_now_ms();
	char path[200];

	snprintf(path, sizeof path, "{\"definitionId\":\"%s\"}", workflow);
	call_in_other(scene, "POST", RUNS, path, 201);
	snprintf(path, sizeof path, RUNS "/%s", reply_text(&scene->last, "run.id"));
	AWAIT(RUN_ARRIVE_MS, other_has_completed(scene, path));
	return await_now_ms() - began;
}

static void test_slow_services_of_one_hold_up_nobody_else(void **state)
{
	struct scene *scene = *state;
	char last[64];
	int64_t took_ms;

	scene_define(scene, "slow", definitions[0]);
	scene_define(scene, "quick", definitions[1]);
	service_play(scene->service, "/slow", &(struct play){.hold = true});
	service_play(scene->service, "/quick", &(struct play){0});
	scene_start(scene, 0);
	for (int i = 0; i < SLOW; i++)
		run_create_id(scene, "{'definitionId':'slow'}", last);
	service_await(scene->service, "/slow", PORT_HTTP_SHARE, RUN_ARRIVE_MS);
	AWAIT(RUN_ARRIVE_MS, scene_metric(scene, 0, "hapax_actions_waiting") == SLOW - PORT_HTTP_SHARE);
	took_ms = run_in_other_ms(scene, "quick");
	printf("# %d slow calls of a neighbour: a quick run takes %lld ms\n", SLOW, (long long)took_ms);
	assert_true(took_ms < SOON_MS);
	/* Who waits for a place is told whose it is. */
	run_why(scene, last, "the share of this workspace");
	assert_int_equal(service_count(scene->service, "/slow", NULL), PORT_HTTP_SHARE);
	service_play(scene->service, "/slow", &(struct play){0});
	service_release(scene->service);
	run_await(scene, last, "COMPLETED");
	scene_stop(scene, 0);
}

/* Runs, and not calls alone: those of one workspace have all the places that it may have, and more are due. */
static void test_many_runs_of_one_hold_up_nobody_else(void **state)
{
	struct scene *scene = *state;
	static char body[3 * MANY + 100];
	char ids[3][64];
	size_t n;
	int64_t took_ms[2];

	for (int i = 0; i < 4; i++)
		scene_define(scene, (const char *[]){"slow", "quick", "many", "later"}[i], definitions[i]);
	service_play(scene->service, "/slow", &(struct play){.hold = true});
	service_play(scene->service, "/quick", &(struct play){0});
	scene_start(scene, 0);
	n = (size_t)snprintf(body, sizeof body, "{'definitionId':'many','input':{'of':[0");
	for (int i = 1; i < MANY; i++)
		n += (size_t)snprintf(body + n, sizeof body - n, ",0");
	snprintf(body + n, sizeof body - n, "]}}");
	for (int i = 0; i < 3; i++)
		run_create_id(scene, body, ids[i]);
	AWAIT(RUN_ARRIVE_MS, scene_metric(scene, 0, "hapax_actions_waiting") == RUNS_DRIVEN_MAX / 2 - PORT_HTTP_SHARE);
	/* Both begin at once; the second comes back by time, after all that is due. */
	took_ms[0] = run_in_other_ms(scene, "quick");
	took_ms[1] = run_in_other_ms(scene, "later");
	printf("# %d slow runs of a neighbour: a quick run takes %lld ms, one that waits 50 ms first %lld ms\n",
	       3 * MANY, (long long)took_ms[0], (long long)took_ms[1]);
	assert_true(took_ms[0] < SOON_MS && took_ms[1] < SOON_MS);
	assert_true(scene_metric(scene, 0, "hapax_actions_waiting") == RUNS_DRIVEN_MAX / 2 - PORT_HTTP_SHARE);
	service_play(scene->service, "/slow", &(struct play){0});
	service_release(scene->service);
	for (int i = 0; i < 3; i++)
		run_await(scene, ids[i], "COMPLETED");
	scene_stop(scene, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_slow_services_of_one_hold_up_nobody_else, scene_set_up_sqlite,
						scene_tear_down),
		cmocka_unit_test_setup_teardown(test_slow_services_of_one_hold_up_nobody_else, scene_set_up_postgres,
						scene_tear_down),
		cmocka_unit_test_setup_teardown(test_many_runs_of_one_hold_up_nobody_else, scene_set_up_sqlite,
						scene_tear_down),
		cmocka_unit_test_setup_teardown(test_many_runs_of_one_hold_up_nobody_else, scene_set_up_postgres,
						scene_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
