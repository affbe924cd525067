/*
 * The data of entities over HTTP: what a step saves, what a caller changes, and what the history tells of both; while a step is at work,
 * while its outcome is not known, after a kill.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/await.h"
#include "support/scene.h"

static const char definition[] =
	"{'workflow':'billing','kind':'entity','status_types':['draft','approved','closing','closed'],"
	"'initial_status':'draft','actions':{'Quote':{'kind':'http','url':'@/quote','effect':'keyed'},"
	"'Close':{'kind':'http','url':'@/close','effect':'keyed'}},"
	"'steps':[{'step_id':10,'step_key':'approve','status':'draft','successful_state':'approved','action':'Quote',"
	"'save_as':'quote'},"
	"{'step_id':20,'step_key':'close','status':'approved','successful_state':'closed','action':'Close',"
	"'claim_state':['closing','approved'],'on_unknown':'hold','save_as':'closing'}]}";

static const char configuration[] = "{'modules':{'billing':{'janitor':{'every':'100ms','stuck_after':'30s'}}}}";

#define ENTITY "/api/v1/entities/billing/a"
#define DATA ENTITY "/data"
#define HISTORY "/api/v1/history/entity%3Abilling%3Aa"
#define WAIT_MS 20000

static int begin(struct scene *scene)
{
	scene_define(scene, "billing", definition);
	scene_configure(scene, configuration);
	service_play(scene->service, "/quote", &(struct play){.body = "{\"total\":12.50}"});
	scene_start(scene, 0);
	scene_must(scene, 0, "POST", "/api/v1/entities/billing",
		   "{'id':'a','data':{'customer':'c-1','tags':{'x':1,'y':2}}}", 201, NULL);
	return 0;
}

static int set_up(void **state)
{
	return scene_set_up_sqlite(state) || begin(*state);
}

static int set_up_postgres(void **state)
{
	return scene_set_up_postgres(state) || begin(*state);
}

static void assert_data(struct scene *scene, const char *data)
{
	char *wanted = scene_text(scene, data);

	scene_must(scene, 0, "GET", ENTITY, NULL, 200, NULL);
	if (!strstr(scene->last.body, wanted))
		fail_msg("%s is not in %s", wanted, scene->last.body);
	free(wanted);
}

static void saved_and_changed(void **state)
{
	struct scene *scene = *state;

	scene_fire(scene, 0, "a", "approve", 200, NULL);
	assert_non_null(strstr(scene->last.body, "\"quote\":{\"total\":12.50}"));
	assert_data(scene, "'data':{'customer':'c-1','tags':{'x':1,'y':2},'quote':{'total':12.50}}");

	scene_must(scene, 0, "POST", DATA, "{'data':{'tags':{'x':null,'z':3},'note':'n'},'version':2}", 200, NULL);
	assert_int_equal(reply_int(&scene->last, "version"), 3);
	assert_data(scene, "'data':{'customer':'c-1','tags':{'y':2,'z':3},'quote':{'total':12.50},'note':'n'}");
	scene_assert(scene, 0, "a", "approved", 3);

	scene_must(scene, 0, "POST", DATA, "{'data':{'note':'again'},'version':2}", 409, "CONCURRENCY_ERROR");
	scene_must(scene, 0, "POST", DATA, "{'data':{'note':'again'}}", 400, "VALIDATION_ERROR");
	scene_must(scene, 0, "POST", DATA, "{'data':[1],'version':3}", 400, "VALIDATION_ERROR");
	scene_must(scene, 0, "POST", DATA, "{'version':3}", 400, "VALIDATION_ERROR");
	scene_must(scene, 0, "POST", "/api/v1/entities/billing/none/data", "{'data':{},'version':1}", 404, "NOT_FOUND");
	scene_assert(scene, 0, "a", "approved", 3);

	/* The next step gets what was saved and what was changed. */
	service_play(scene->service, "/close", &(struct play){0});
	scene_fire(scene, 0, "a", "close", 200, NULL);
	assert_non_null(
		strstr(service_call(scene->service, "/close", 0).body, "\"quote\":{\"total\":12.50},\"note\":\"n\""));
}

static void told_by_the_history(void **state)
{
	struct scene *scene = *state;
	struct reply *reply;

	scene_fire(scene, 0, "a", "approve", 200, NULL);
	scene_must(scene, 0, "POST", DATA, "{'data':{'note':'n'},'version':2}", 200, NULL);
	service_play(scene->service, "/close", &(struct play){.status = 402, .body = "no money"});
	scene_fire(scene, 0, "a", "close", 502, "ACTION_FAILED");
	reply = scene_must(scene, 0, "GET", HISTORY, NULL, 200, NULL);
	assert_int_equal(reply_count(reply, "items"), 5);
	assert_string_equal(reply_text(reply, "items.1.step"), "approve");
	assert_string_equal(reply_text(reply, "items.1.requester"), "admin");
	assert_non_null(strstr(reply->body, "\"output\":{\"total\":12.50}"));
	assert_string_equal(reply_text(reply, "items.2.from"), "approved");
	assert_string_equal(reply_text(reply, "items.2.to"), "approved");
	assert_string_equal(reply_text(reply, "items.2.reason"), "data changed");
	assert_string_equal(reply_text(reply, "items.2.by"), "admin");
	assert_string_equal(reply_text(reply, "items.3.step"), "close");
	assert_string_equal(reply_text(reply, "items.4.step"), "close");
	assert_string_equal(reply_text(reply, "items.4.reason"), "failed: HTTP 402: no money");
}

/* While it is claimed, and while nobody knows: the call was made with the data as it is. */
static void not_while_it_is_in_use(void **state)
{
	struct scene *scene = *state;
	struct firing *firing;
	struct reply *reply;

	scene_fire(scene, 0, "a", "approve", 200, NULL);
	service_play(scene->service, "/close", &(struct play){.hold = true, .how = PLAY_DROP});
	firing = firing_start(scene, 0, "a", "close");
	service_await(scene->service, "/close", 1, WAIT_MS);
	scene_must(scene, 0, "POST", DATA, "{'data':{'note':'n'},'version':3}", 409, "CLAIM_FAILED");
	service_release(scene->service);
	firing_join(firing, 504, "OUTCOME_UNKNOWN");
	firing_free(firing);
	scene_must(scene, 0, "POST", DATA, "{'data':{'note':'n'},'version':3}", 409, "CLAIM_FAILED");

	/* A person's word, with the output that it is to have. */
	scene_must(scene, 0, "POST", ENTITY "/steps/close/resolve", "{'outcome':'done','output':{'paid':true}}", 200,
		   NULL);
	assert_data(scene, "'quote':{'total':12.50},'closing':{'paid':true}");
	reply = scene_must(scene, 0, "GET", HISTORY, NULL, 200, NULL);
	assert_string_equal(reply_text(reply, "items.3.reason"), "resolved: done");
	assert_string_equal(reply_text(reply, "items.3.by"), "admin");
	scene_must(scene, 0, "POST", DATA, "{'data':{'note':'n'},'version':4}", 200, NULL);
}

/* Without a claim the call in doubt stands beside an entity that nobody holds. */
static void not_while_a_call_is_in_doubt(void **state)
{
	struct scene *scene = *state;

	service_play(scene->service, "/quote", &(struct play){.how = PLAY_DROP});
	scene_fire(scene, 0, "a", "approve", 504, "OUTCOME_UNKNOWN");
	scene_must(scene, 0, "POST", DATA, "{'data':{'note':'n'},'version':1}", 409, "IN_DOUBT");
	service_play(scene->service, "/quote", &(struct play){0});
	scene_fire(scene, 0, "a", "approve", 200, NULL);
	scene_must(scene, 0, "POST", DATA, "{'data':{'note':'n'},'version':2}", 200, NULL);
}

/* What was done can always be written, however much it is; and less may be made of it. */
static void a_large_output_is_saved(void **state)
{
	static char large[1500000];
	struct scene *scene = *state;

	memset(large, 'x', sizeof large - 1);
	memcpy(large, "{\"t\":\"", 6);
	memcpy(large + sizeof large - 3, "\"}", 3);
	service_play(scene->service, "/quote", &(struct play){.body = large});
	scene_fire(scene, 0, "a", "approve", 200, NULL);
	scene_must(scene, 0, "POST", DATA, "{'data':{'more':1},'version':2}", 413, "TOO_LARGE");
	scene_must(scene, 0, "POST", DATA, "{'data':{'quote':null},'version':2}", 200, NULL);
	assert_data(scene, "'data':{'customer':'c-1','tags':{'x':1,'y':2}}");
}

static void data_that_is_no_object(void **state)
{
	struct scene *scene = *state;

	scene_must(scene, 0, "POST", "/api/v1/entities/billing", "{'id':'b','data':[1]}", 201, NULL);
	scene_fire(scene, 0, "b", "approve", 409, "WRONG_STATUS");
	assert_int_equal(service_count(scene->service, "/quote", NULL), 0);
}

static void twice_under_one_key_and_after_a_kill(void **state)
{
	struct scene *scene = *state;

	scene_must(scene, 0, "POST", DATA, "{'data':{'note':'n'},'version':1}", 200, NULL);
	scene_kill(scene, 0);
	scene_start(scene, 0);
	assert_data(scene, "'note':'n'");
	scene_assert(scene, 0, "a", "draft", 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(saved_and_changed, set_up, scene_tear_down),
		cmocka_unit_test_setup_teardown(saved_and_changed, set_up_postgres, scene_tear_down),
		cmocka_unit_test_setup_teardown(told_by_the_history, set_up, scene_tear_down),
		cmocka_unit_test_setup_teardown(told_by_the_history, set_up_postgres, scene_tear_down),
		cmocka_unit_test_setup_teardown(not_while_it_is_in_use, set_up, scene_tear_down),
		cmocka_unit_test_setup_teardown(not_while_it_is_in_use, set_up_postgres, scene_tear_down),
		cmocka_unit_test_setup_teardown(not_while_a_call_is_in_doubt, set_up, scene_tear_down),
		cmocka_unit_test_setup_teardown(not_while_a_call_is_in_doubt, set_up_postgres, scene_tear_down),
		cmocka_unit_test_setup_teardown(a_large_output_is_saved, set_up, scene_tear_down),
		cmocka_unit_test_setup_teardown(a_large_output_is_saved, set_up_postgres, scene_tear_down),
		cmocka_unit_test_setup_teardown(data_that_is_no_object, set_up, scene_tear_down),
		cmocka_unit_test_setup_teardown(twice_under_one_key_and_after_a_kill, set_up, scene_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
