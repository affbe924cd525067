/* Runs that fail, over the API of a real server: they undo themselves, whoever is to hear of it is told once, and time is up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/await.h"
#include "support/run_scene.h"

#define ACTIONS                                                                                                                 \
	"'actions':{'Do':{'kind':'http','url':'@/do','effect':'keyed'},'Undo':{'kind':'http','url':'@/undo','effect':'keyed'}," \
	"'No':{'kind':'http','url':'@/no','effect':'keyed'},'Tell':{'kind':'http','url':'@/tell','effect':'keyed'}}"
#define FIRST "{'name':'first','type':'task','action':'Do','compensate':'Undo'}"

static const char careful[] =
	"{'workflow':'careful','kind':'run','on_failure':'compensate','failure_after_effect':['Tell']," ACTIONS
	",'steps':[" FIRST ",{'name':'second','type':'task','action':'No'}]}";

static const char held[] = "{'workflow':'held','kind':'run','failure_after_effect':['Tell']," ACTIONS ",'steps':[" FIRST
			   ",{'name':'second','type':'task','action':'No'}]}";

static const char hasty[] = "{'workflow':'hasty','kind':'run','timeout':'1s','on_failure':'compensate'," ACTIONS
			    ",'steps':[" FIRST ",{'name':'both','type':'parallel','branches':{"
			    "'a':[{'name':'a1','type':'task','action':'Do','compensate':'Undo'},"
			    "{'name':'a2','type':'external_event','event':'never'}]}}]}";

static const char around[] = "{'workflow':'around','kind':'run'," ACTIONS
			     ",'steps':[{'name':'inner','type':'child','workflow':'careful'}]}";

static void begin(struct scene *scene)
{
	scene_define(scene, "careful", careful);
	scene_define(scene, "held", held);
	scene_define(scene, "hasty", hasty);
	scene_define(scene, "around", around);
	service_play(scene->service, "/no", &(struct play){.status = 422, .body = "{\"no\":true}"});
	scene_start(scene, 0);
}

static void test_a_failure_compensates(void **state)
{
	struct scene *scene = *state;
	char id[64];

	begin(scene);
	run_create_id(scene, "{'definitionId':'careful','input':{'n':7}}", id);
	run_await(scene, id, "CANCELLED");
	assert_string_equal(reply_text(&scene->last, "error.step"), "second");
	assert_string_equal(reply_text(&scene->last, "steps.0.status"), "COMPLETED");
	assert_non_null(strstr(scene->last.body, "compensatedAt"));
	assert_string_equal(reply_text(&scene->last, "steps.1.status"), "FAILED");
	assert_int_equal(service_count(scene->service, "/undo", NULL), 1);
	service_await(scene->service, "/tell", 1, 20000);
	assert_int_equal(service_count(scene->service, "/tell", NULL), 1);
	scene_stop(scene, 0);
}

static void test_each_failure_is_told(void **state)
{
	struct scene *scene = *state;
	char id[64];

	begin(scene);
	run_create_id(scene, "{'definitionId':'held','input':{'n':7}}", id);
	run_await(scene, id, "FAILED");
	service_await(scene->service, "/tell", 1, 20000);
	run_do(scene, id, "retry", "{}", 200, NULL);
	run_await(scene, id, "FAILED");
	service_await(scene->service, "/tell", 2, 20000);
	assert_int_equal(service_count(scene->service, "/tell", NULL), 2);
	assert_int_equal(service_count(scene->service, "/undo", NULL), 0);
	scene_stop(scene, 0);
}

static void test_time_is_up(void **state)
{
	struct scene *scene = *state;
	char id[64];

	begin(scene);
	run_create_id(scene, "{'definitionId':'hasty'}", id);
	run_why(scene, id, "the time of the whole run is over at");
	run_await(scene, id, "CANCELLED");
	assert_string_equal(reply_text(&scene->last, "error.code"), "TIMEOUT");
	assert_string_equal(reply_text(&scene->last, "error.step"), "both");
	assert_int_equal(service_count(scene->service, "/undo", NULL), 2);
	scene_stop(scene, 0);
}

/* It cancels itself, and that fails the step of its parent. */
static void test_a_child_that_compensates(void **state)
{
	struct scene *scene = *state;
	char id[64];

	begin(scene);
	run_create_id(scene, "{'definitionId':'around'}", id);
	run_await(scene, id, "FAILED");
	assert_string_equal(reply_text(&scene->last, "error.code"), "CHILD_FAILED");
	assert_int_equal(service_count(scene->service, "/undo", NULL), 1);
	scene_stop(scene, 0);
}

static const char pair[] =
	"{'workflow':'pair','kind':'run'," ACTIONS
	",'steps':[{'name':'inner','type':'child','workflow':'plain'},{'name':'ok','type':'approval'}]}";
static const char plain[] = "{'workflow':'plain','kind':'run'," ACTIONS ",'steps':[" FIRST "]}";

static bool stands_at(struct scene *scene, const char *id, const char *step)
{
	run_show(scene, id);
	return strcmp(reply_text(&scene->last, "currentStep"), step) == 0 &&
	       strcmp(reply_text(&scene->last, "status"), "WAITING") == 0;
}

/* Children of what is done pass to the new run, which undoes them. */
static void test_a_restart_has_the_children(void **state)
{
	struct scene *scene = *state;
	char id[64], new[64];

	scene_define(scene, "pair", pair);
	scene_define(scene, "plain", plain);
	begin(scene);
	run_create_id(scene, "{'definitionId':'pair','input':{'n':7}}", id);
	AWAIT(20000, stands_at(scene, id, "ok"));
	run_do(scene, id, "restart", "{'from':'ok'}", 409, "WRONG_STATUS");
	run_do(scene, id, "approvals/ok", "{'decision':'reject'}", 200, NULL);
	run_await(scene, id, "FAILED");
	run_do(scene, id, "restart", "{'from':'ok','input':[]}", 400, "VALIDATION_ERROR");
	run_do(scene, id, "restart", "{'from':'ok'}", 200, NULL);
	assert_string_equal(reply_text(&scene->last, "restartOf"), id);
	snprintf(new, sizeof new, "%s", reply_text(&scene->last, "id"));
	run_do(scene, id, "cancel", "{}", 409, "RESTARTED");
	run_show(scene, id);
	assert_string_equal(reply_text(&scene->last, "restartedBy"), new);
	run_await(scene, new, "WAITING");
	assert_string_equal(reply_text(&scene->last, "restartOf"), id);
	run_do(scene, new, "cancel", "{}", 202, NULL);
	run_await(scene, new, "CANCELLED");
	assert_int_equal(service_count(scene->service, "/undo", NULL), 1);
	assert_int_equal(service_count(scene->service, "/do", NULL), 1);
	scene_stop(scene, 0);
}

#define ON_SQLITE(test) cmocka_unit_test_setup_teardown(test, scene_set_up_sqlite, scene_tear_down)
#define ON_POSTGRES(test)                                                                                              \
	{                                                                                                              \
#test " on PostgreSQL", test, scene_set_up_postgres, scene_tear_down, NULL                             \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_SQLITE(test_a_failure_compensates),
		ON_SQLITE(test_each_failure_is_told),
		ON_SQLITE(test_time_is_up),
		ON_SQLITE(test_a_child_that_compensates),
		ON_SQLITE(test_a_restart_has_the_children),
		ON_POSTGRES(test_a_restart_has_the_children),
		ON_POSTGRES(test_a_failure_compensates),
		ON_POSTGRES(test_time_is_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
