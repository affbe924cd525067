/*
 * Definitions of a running server: what is refused at boot and by PUT, that a refusal changes nothing and says all of
 * it, that a new version is in force at once and leaves alone what is under way, and what SIGHUP does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "support/await.h"
#include "support/scene.h"

#define ARRIVE_MS 60000
#define PUT "/api/v1/definitions/billing"

#define DEFINITION(module, steps)                                                                                      \
	"{'workflow':'billing','kind':'entity','meta':{'module':'" module "'},\n"                                      \
	" 'status_types':['draft','approved','closing','closed','archived'],\n"                                        \
	" 'initial_status':'approved','actions':{'Close':{'kind':'http','url':'@/close','effect':'claimed'}},\n"       \
	" 'steps':[" steps "]}\n"

#define CLOSE(into)                                                                                                    \
	"{'step_id':20,'step_key':'close','status':'approved','successful_state':{'admin':'" into "'},"                \
	"'action':{'admin':'Close'},\n  'claim_state':{'admin':['closing','approved']}}"
#define ARCHIVE ",\n{'step_id':30,'step_key':'archive','status':'closed','successful_state':'archived'}"

static const char first[] = DEFINITION("billing", CLOSE("closed"));
static const char second[] = DEFINITION("billing", CLOSE("closed") ARCHIVE);
static const char third[] = DEFINITION("billing", CLOSE("archived"));
static const char uncovered[] = DEFINITION("stock", CLOSE("closed"));
/* Three mistakes, on three lines. */
static const char wrong[] =
	"{'workflow':'billing','kind':'entity',\n 'status_types':['approved','closing','closed'],\n"
	" 'initial_status':'opened','actions':{'Close':{'kind':'http','url':'@/close'}},\n"
	" 'steps':[{'step_id':20,'step_key':'close','status':'approved','successful_state':'closed',\n"
	"  'action':'Close','claim_sate':['closing','approved']}]}\n";

static void begin(struct scene *scene)
{
	scene_define(scene, "billing", first);
	scene_configure(scene, "{'modules':{'billing':{'janitor':{}}}}");
	scene_start(scene, 0);
}

static void assert_version(struct scene *scene, int64_t version)
{
	scene_must(scene, 0, "GET", "/api/v1/definitions", NULL, 200, NULL);
	assert_int_equal(reply_count(&scene->last, "items"), 1);
	assert_int_equal(reply_int(&scene->last, "items.0.version"), version);
}

/* ---- at boot ---- */

static void refused(struct scene *scene, const char *const words[])
{
	struct serve_options options = scene_options(scene, 0);
	int code;

	(void)unlink(options.log); /* of an earlier refusal, if there was one */
	code = serve_refused(&options);
	if (code != hx_code_exit(HX_CONFIG_ERROR) && code != hx_code_exit(HX_DEFINITION_INVALID))
		fail_msg("exit code %d", code);
	for (size_t i = 0; words[i]; i++)
		if (!file_count(options.log, words[i]))
			fail_msg("the log does not say \"%s\"", words[i]);
}

static void test_uncovered_claim_is_refused_at_boot(void **state)
{
	static const char *const words[] = {"billing.json:5", "workflow billing", "close", "admin",
					    "stock",          "janitor",          NULL};
	struct scene *scene = *state;

	scene_define(scene, "billing", uncovered);
	scene_configure(scene, "{'modules':{'billing':{'janitor':{}}}}");
	refused(scene, words);
	scene_configure(scene, "{'modules':{'stock':{}}}"); /* named, and no janitor */
	refused(scene, words);
	scene_configure(scene, "{'modules':{'stock':{'janitor':{'external':true}}}}");
	scene_start(scene, 0);
	scene_stop(scene, 0);
}

static void test_all_that_is_wrong_is_told_at_boot(void **state)
{
	static const char *const words[] = {"billing.json:3", "opened",      "billing.json:5",
					    "claim_sate",     "claim_state", NULL};
	static const char *const config_words[] = {"config.json:1", "moduls", "modules", NULL};
	struct scene *scene = *state;

	scene_define(scene, "billing", wrong);
	scene_configure(scene, "{'modules':{'billing':{'janitor':{}}}}");
	refused(scene, words);
	scene_define(scene, "billing", first);
	scene_configure(scene, "{'moduls':{}}");
	refused(scene, config_words);
}

static void test_second_server_on_one_file_is_refused(void **state)
{
	struct scene *scene = *state;
	struct serve_options options;

	begin(scene);
	options = scene_options(scene, 1);
	assert_int_equal(serve_refused(&options), hx_code_exit(HX_BUSY));
	scene_create(scene, "a");
	scene_stop(scene, 0);
}

/* ---- PUT ---- */

static void test_put_is_in_force_at_once(void **state)
{
	struct scene *scene = *state;

	begin(scene);
	assert_version(scene, 1);
	scene_create(scene, "a");
	scene_fire(scene, 0, "a", "close", 200, NULL);
	scene_fire(scene, 0, "a", "archive", 404, "NOT_FOUND");
	scene_must(scene, 0, "PUT", PUT, second, 200, NULL);
	assert_int_equal(reply_int(&scene->last, "version"), 2);
	assert_string_equal(reply_text(&scene->last, "name"), "billing");
	scene_fire(scene, 0, "a", "archive", 200, NULL);
	scene_must(scene, 0, "PUT", PUT, second, 200, NULL); /* the same text is the same version */
	assert_int_equal(reply_int(&scene->last, "version"), 2);
	assert_version(scene, 2);
	scene_stop(scene, 0);
}

/* A new workflow, with no file. It is in the store, so it is there after a restart. */
static void test_put_survives_a_kill(void **state)
{
	static const char text[] =
		"{'workflow':'parcel','kind':'entity','status_types':['packed','sent'],"
		"'initial_status':'packed','steps':[{'step_id':1,'step_key':'send','status':'packed',"
		"'successful_state':'sent'}]}";
	struct scene *scene = *state;

	begin(scene);
	scene_must(scene, 0, "PUT", "/api/v1/definitions/parcel", text, 200, NULL);
	scene_must(scene, 0, "POST", "/api/v1/entities/parcel", "{'id':'p'}", 201, NULL);
	scene_kill(scene, 0);
	scene_start(scene, 0);
	scene_must(scene, 0, "POST", "/api/v1/entities/parcel/p/steps/send", NULL, 200, NULL);
	assert_int_equal(reply_count(scene_must(scene, 0, "GET", "/api/v1/definitions", NULL, 200, NULL), "items"), 2);
	scene_stop(scene, 0);
}

/* What is under way ends as it began. */
static void test_step_ends_under_the_version_it_started_with(void **state)
{
	struct scene *scene = *state;
	struct firing *firing;

	begin(scene);
	scene_create(scene, "a");
	scene_create(scene, "b");
	service_play(scene->service, "/close", &(struct play){.hold = true});
	firing = firing_start(scene, 0, "a", "close");
	service_await(scene->service, "/close", 1, ARRIVE_MS);
	scene_must(scene, 0, "PUT", PUT, third, 200, NULL);
	service_release(scene->service);
	firing_join(firing, 200, NULL);
	assert_string_equal(reply_text(&firing->reply, "entity.status"), "closed");
	service_play(scene->service, "/close", &(struct play){0});
	scene_fire(scene, 0, "b", "close", 200, NULL);
	assert_string_equal(reply_text(&scene->last, "entity.status"), "archived");
	firing_free(firing);
	scene_stop(scene, 0);
}

static bool finding_says(struct scene *scene, const char *a, const char *b, const char *c, const char *d)
{
	for (size_t i = 0, n = reply_count(&scene->last, "findings"); i < n; i++) {
		char path[40];
		const char *text;

		snprintf(path, sizeof path, "findings.%zu.text", i);
		text = reply_text(&scene->last, path);
		if (strstr(text, a) && strstr(text, b) && strstr(text, c) && strstr(text, d))
			return true;
	}
	return false;
}

static void test_bad_put_changes_nothing(void **state)
{
	static const char other[] =
		"{'workflow':'parcel','kind':'entity','status_types':['a'],'initial_status':'a','steps':[]}";
	struct scene *scene = *state;

	begin(scene);
	scene_create(scene, "a");
	scene_must(scene, 0, "PUT", PUT, uncovered, 422, "DEFINITION_INVALID");
	assert_true(finding_says(scene, "billing", "close", "admin", "stock"));
	scene_must(scene, 0, "PUT", PUT, wrong, 422, "DEFINITION_INVALID");
	assert_true(reply_count(&scene->last, "findings") >= 2);
	assert_true(finding_says(scene, "billing:3", "opened", "", ""));
	assert_true(finding_says(scene, "billing:5", "claim_sate", "claim_state", "close"));
	scene_must(scene, 0, "PUT", PUT, "{'workflow':", 422, "DEFINITION_INVALID");
	scene_must(scene, 0, "PUT", PUT, NULL, 422, "DEFINITION_INVALID");
	scene_must(scene, 0, "PUT", PUT, "[]", 422, "DEFINITION_INVALID");
	scene_must(scene, 0, "PUT", PUT, other, 400, "VALIDATION_ERROR"); /* another name than in the path */
	assert_version(scene, 1);
	scene_fire(scene, 0, "a", "close", 200, NULL);
	scene_kill(scene, 0);
	scene_start(scene, 0);
	assert_version(scene, 1);
	scene_stop(scene, 0);
}

/* Callers are served while versions change, and each gets one version or the other, whole. */
static void test_put_while_steps_are_fired(void **state)
{
	struct scene *scene = *state;
	char id[32];

	begin(scene);
	service_play(scene->service, "/close", &(struct play){.delay_ms = 5});
	for (int i = 0; i < 20; i++) {
		struct firing *firing;
		const char *status;

		snprintf(id, sizeof id, "e%d", i);
		scene_create(scene, id);
		firing = firing_start(scene, 0, id, "close");
		scene_must(scene, 0, "PUT", PUT, i % 2 ? first : third, 200, NULL);
		assert_int_equal(reply_int(&scene->last, "version"), i + 2);
		status = reply_text(firing_join(firing, 200, NULL), "entity.status");
		assert_true(strcmp(status, "closed") == 0 || strcmp(status, "archived") == 0);
		firing_free(firing);
	}
	scene_stop(scene, 0);
}

/* ---- SIGHUP ---- */

static void test_reload(void **state)
{
	static const char again[] = "the definitions were read again", kept[] = "the definitions are kept as they were";
	struct scene *scene = *state;

	begin(scene);
	scene_create(scene, "a");
	scene_define(scene, "billing", second);
	serve_hup(scene->nodes[0]);
	serve_await_log(scene->nodes[0], again, 1, ARRIVE_MS);
	assert_version(scene, 2);
	scene_fire(scene, 0, "a", "close", 200, NULL);

	scene_define(scene, "billing", wrong);
	serve_hup(scene->nodes[0]);
	serve_await_log(scene->nodes[0], kept, 1, ARRIVE_MS);
	serve_await_log(scene->nodes[0], "claim_sate", 1, ARRIVE_MS);
	assert_true(file_count(scene->nodes[0]->log, "billing.json:5") >= 1);
	scene_define(scene, "billing", uncovered);
	serve_hup(scene->nodes[0]);
	serve_await_log(scene->nodes[0], kept, 2, ARRIVE_MS);
	serve_await_log(scene->nodes[0], "stock", 1, ARRIVE_MS);
	/* One bad file keeps all of them. */
	scene_define(scene, "billing", third);
	scene_define(scene, "another", "{");
	serve_hup(scene->nodes[0]);
	serve_await_log(scene->nodes[0], kept, 3, ARRIVE_MS);
	assert_version(scene, 2);
	scene_fire(scene, 0, "a", "archive", 200, NULL);

	scene_define(scene, "another", NULL);
	serve_hup(scene->nodes[0]);
	serve_await_log(scene->nodes[0], again, 2, ARRIVE_MS);
	assert_version(scene, 3);
	scene_fire(scene, 0, "a", "archive", 404, "NOT_FOUND");
	scene_stop(scene, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_uncovered_claim_is_refused_at_boot, scene_set_up_sqlite,
						scene_tear_down),
		cmocka_unit_test_setup_teardown(test_all_that_is_wrong_is_told_at_boot, scene_set_up_sqlite,
						scene_tear_down),
		cmocka_unit_test_setup_teardown(test_second_server_on_one_file_is_refused, scene_set_up_sqlite,
						scene_tear_down),
		cmocka_unit_test_setup_teardown(test_put_is_in_force_at_once, scene_set_up_sqlite, scene_tear_down),
		cmocka_unit_test_setup_teardown(test_put_survives_a_kill, scene_set_up_sqlite, scene_tear_down),
		{"test_put_survives_a_kill on PostgreSQL", test_put_survives_a_kill, scene_set_up_postgres,
		 scene_tear_down, NULL},
		cmocka_unit_test_setup_teardown(test_step_ends_under_the_version_it_started_with, scene_set_up_sqlite,
						scene_tear_down),
		cmocka_unit_test_setup_teardown(test_bad_put_changes_nothing, scene_set_up_sqlite, scene_tear_down),
		cmocka_unit_test_setup_teardown(test_put_while_steps_are_fired, scene_set_up_sqlite, scene_tear_down),
		{"test_put_while_steps_are_fired on PostgreSQL", test_put_while_steps_are_fired, scene_set_up_postgres,
		 scene_tear_down, NULL},
		cmocka_unit_test_setup_teardown(test_reload, scene_set_up_sqlite, scene_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
