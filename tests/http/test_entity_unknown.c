/*
 * What becomes of a step whose outcome is unknown, by its on_unknown, against a real server:
 *
 *   hold     parked for a person: listed, left alone by the janitor, ended by a word of the person's
 *   probe    somebody is asked; also by the janitor, for a process that died in the middle
 *   retry    the same call again, with the same key, a few times
 *   revert   is the default with a claim, and the subject of tests/chaos/test_entity_failures.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/await.h"
#include "support/scene.h"

#define ARRIVE_MS 60000
#define RESOLVE(id) "/api/v1/entities/billing/" id "/steps/close/resolve"

static const char definition_of_hold[] =
	"{'workflow':'billing','kind':'entity','status_types':['approved','closing','closed','opening'],"
	"'initial_status':'approved','actions':{"
	"'Close':{'kind':'http','url':'@/close','effect':'claimed'},"
	"'Mail':{'kind':'http','url':'@/mail','effect':'keyed'}},"
	"'steps':[{'step_id':20,'step_key':'close','status':'approved','successful_state':'closed',"
	"'action':'Close','success_after_effect':['Mail'],'claim_state':['closing','approved'],'on_unknown':'hold'},"
	"{'step_id':30,'step_key':'reopen','status':'approved','successful_state':'approved',"
	"'action':'Close','claim_state':['opening','approved']}]}";

static const char definition_of_probe[] =
	"{'workflow':'billing','kind':'entity','status_types':['approved','closing','closed'],"
	"'initial_status':'approved','actions':{"
	"'Close':{'kind':'http','url':'@/close','effect':'claimed','probe':'Ask'},"
	"'Ask':{'kind':'http','url':'@/ask','effect':'idempotent'},"
	"'Mail':{'kind':'http','url':'@/mail','effect':'keyed'}},"
	"'steps':[{'step_id':20,'step_key':'close','status':'approved','successful_state':'closed',"
	"'action':'Close','success_after_effect':['Mail'],'claim_state':['closing','approved'],'on_unknown':'probe'}]}";

static const char definition_of_retry[] =
	"{'workflow':'billing','kind':'entity','status_types':['approved','closing','closed'],"
	"'initial_status':'approved','actions':{'Close':{'kind':'http','url':'@/close','effect':'keyed'}},"
	"'steps':[{'step_id':20,'step_key':'close','status':'approved','successful_state':'closed',"
	"'action':'Close','claim_state':['closing','approved'],'on_unknown':'retry'},"
	"{'step_id':30,'step_key':'close_unclaimed','status':'approved','successful_state':'closed','action':'Close'}]}";

static void begin(struct scene *scene, const char *definition)
{
	scene_define(scene, "billing", definition);
	scene_configure(scene, "{'modules':{'billing':{'janitor':{'every':'100ms','stuck_after':'1s'}}}}");
	scene_start(scene, 0);
}

/* ---- hold ---- */

static void assert_held(struct scene *scene, const char *id, const char *requester)
{
	scene_assert(scene, 0, id, "closing", 2);
	assert_string_equal(reply_text(&scene->last, "claim.held"), "true");
	assert_string_equal(reply_text(&scene->last, "claim.until"), "null");
	assert_string_equal(reply_text(&scene->last, "claim.step"), "close");
	assert_string_equal(reply_text(&scene->last, "claim.requester"), requester);
}

static size_t held(struct scene *scene)
{
	return reply_count(scene_must(scene, 0, "GET", "/api/v1/entities/billing?held=true", NULL, 200, NULL), "items");
}

static void park(struct scene *scene, const char *id)
{
	scene_create(scene, id);
	service_play(scene->service, "/close", &(struct play){.how = PLAY_DROP});
	scene_fire(scene, 0, id, "close", 504, "OUTCOME_UNKNOWN");
	assert_held(scene, id, "admin");
	service_play(scene->service, "/close", &(struct play){0});
}

/* The janitor has been around, and has ended a claim that was made later. */
static void let_the_janitor_pass(struct scene *scene)
{
	scene_create(scene, "other");
	service_play(scene->service, "/close", &(struct play){.how = PLAY_DROP});
	scene_fire(scene, 0, "other", "reopen", 504, "OUTCOME_UNKNOWN");
	scene_await_status(scene, 0, "other", "approved", ARRIVE_MS);
	service_play(scene->service, "/close", &(struct play){0});
}

static void refuse_bad_resolutions(struct scene *scene)
{
	scene_must(scene, 0, "POST", RESOLVE("a"), NULL, 400, "VALIDATION_ERROR");
	scene_must(scene, 0, "POST", RESOLVE("a"), "{'outcome':'perhaps'}", 400, "VALIDATION_ERROR");
	scene_must(scene, 0, "POST", RESOLVE("a"), "{'outcome':'done','more':1}", 400, "VALIDATION_ERROR");
	scene_must(scene, 0, "POST", RESOLVE("c"), "{'outcome':'done'}", 404, "NOT_FOUND");
	scene_must(scene, 0, "POST", "/api/v1/entities/billing/a/steps/reopen/resolve", "{'outcome':'done'}", 409,
		   "WRONG_STATUS");
}

static void test_held_claim_waits_for_a_person(void **state)
{
	struct scene *scene = *state;

	begin(scene, definition_of_hold);
	park(scene, "a");
	park(scene, "b");
	assert_int_equal(held(scene), 2);
	assert_string_equal(reply_text(&scene->last, "items.0.id"), "a");
	let_the_janitor_pass(scene);
	assert_held(scene, "a", "admin");
	scene_fire(scene, 0, "a", "close", 409, "CLAIM_FAILED");
	assert_string_equal(
		reply_text(&scene->last, "detail"),
		"the outcome of the step \"close\" is unknown, and a person has to resolve it: see `hapax why`, "
		"`hapax entity resolve`");
	assert_int_equal(scene_jobs(scene, 0), 0);

	/* It survives a kill, and nobody else may end it. */
	scene_kill(scene, 0);
	scene_start(scene, 0);
	assert_held(scene, "a", "admin");
	assert_int_equal(held(scene), 2);
	refuse_bad_resolutions(scene);
	assert_held(scene, "a", "admin");

	/* Done: as if the action had answered, with what the person says. */
	scene_must(scene, 0, "POST", RESOLVE("a"), "{'outcome':'done','output':{'total':12.50}}", 200, NULL);
	assert_string_equal(reply_text(&scene->last, "entity.status"), "closed");
	assert_int_equal(reply_int(&scene->last, "entity.version"), 3);
	assert_string_equal(reply_text(&scene->last, "output"), "{\"total\":12.50}");
	service_await(scene->service, "/mail", 1, ARRIVE_MS);
	assert_non_null(strstr(service_call(scene->service, "/mail", 0).body, "\"output\":{\"total\":12.50}"));
	scene_must(scene, 0, "POST", RESOLVE("a"), "{'outcome':'done'}", 409, "WRONG_STATUS");

	/* Not done: back, and whoever fires again does another effect. */
	scene_must(scene, 0, "POST", RESOLVE("b"), "{'outcome':'not_done'}", 200, NULL);
	assert_string_equal(reply_text(&scene->last, "entity.status"), "approved");
	assert_int_equal(reply_int(&scene->last, "entity.version"), 3);
	assert_int_equal(held(scene), 0);
	scene_must(scene, 0, "POST", RESOLVE("b"), "{'outcome':'not_done'}", 409, "WRONG_STATUS");
	scene_fire(scene, 0, "b", "close", 200, NULL);
	assert_int_equal(service_count(scene->service, "/close", "b"), 2);
	assert_int_equal(service_count(scene->service, "/close", "a"), 1);
	service_await(scene->service, "/mail", 2, ARRIVE_MS);
	assert_int_equal(scene_jobs(scene, 0), 2);
	scene_stop(scene, 0);
}

static void test_janitor_parks_the_claim_of_a_dead_process(void **state)
{
	struct scene *scene = *state;
	struct firing *firing;

	begin(scene, definition_of_hold);
	scene_create(scene, "a");
	service_play(scene->service, "/close", &(struct play){.hold = true});
	firing = firing_start(scene, 0, "a", "close");
	service_await(scene->service, "/close", 1, ARRIVE_MS);
	scene_must(scene, 0, "POST", RESOLVE("a"), "{'outcome':'done'}", 409, "WRONG_STATUS"); /* its owner lives */
	scene_kill(scene, 0);
	firing_join(firing, 0, NULL);
	scene_start(scene, 0);
	AWAIT(ARRIVE_MS, held(scene) == 1);
	assert_held(scene, "a", "admin");
	AWAIT(ARRIVE_MS, scene_metric(scene, 0, "hapax_janitor_holds_total") == 1);
	assert_int_equal(scene_metric(scene, 0, "hapax_janitor_reverts_total"), 0);
	scene_must(scene, 0, "POST", RESOLVE("a"), "{'outcome':'done'}", 200, NULL);
	scene_assert(scene, 0, "a", "closed", 3);
	service_await(scene->service, "/mail", 1, ARRIVE_MS);
	firing_free(firing);
	scene_stop(scene, 0);
}

/* ---- probe ---- */

static void assert_asked_with_the_key_of_the_effect(struct scene *scene)
{
	struct service_call close = service_call(scene->service, "/close", 0),
			    ask = service_call(scene->service, "/ask", 0);
	char about[SERVICE_ID_BYTES + 20];

	snprintf(about, sizeof about, ",\"key\":\"%s\"}", close.key);
	assert_non_null(strstr(ask.body, about));
	assert_string_not_equal(ask.key, close.key);
}

static void test_probe_is_asked_at_once(void **state)
{
	struct scene *scene = *state;

	begin(scene, definition_of_probe);
	service_play(scene->service, "/close", &(struct play){.how = PLAY_DROP});
	scene_create(scene, "done");
	service_play(scene->service, "/ask",
		     &(struct play){.body = "{\"outcome\":\"done\",\"output\":{\"total\":12.50}}"});
	scene_fire(scene, 0, "done", "close", 200, NULL);
	assert_string_equal(reply_text(&scene->last, "output"), "{\"total\":12.50}");
	assert_asked_with_the_key_of_the_effect(scene);
	scene_assert(scene, 0, "done", "closed", 3);
	service_await(scene->service, "/mail", 1, ARRIVE_MS);

	scene_create(scene, "not_done");
	service_play(scene->service, "/ask", &(struct play){.body = "{\"outcome\":\"not_done\"}"});
	scene_fire(scene, 0, "not_done", "close", 502, "ACTION_FAILED");
	scene_assert(scene, 0, "not_done", "approved", 3);
	assert_int_equal(scene_jobs(scene, 0), 1);
	service_play(scene->service, "/close", &(struct play){0});
	scene_fire(scene, 0, "not_done", "close", 200, NULL);
	assert_int_equal(service_count(scene->service, "/close", "done"), 1);
	scene_stop(scene, 0);
}

/* As long as nobody knows, it is asked again after each lease, and nothing is done. */
static void test_janitor_asks_until_somebody_knows(void **state)
{
	static const struct play ignorant[] = {{.body = "{\"outcome\":\"unknown\"}"}, {.body = "[]"}, {.status = 500}};
	struct scene *scene = *state;

	begin(scene, definition_of_probe);
	service_play(scene->service, "/close", &(struct play){.how = PLAY_DROP});
	service_play(scene->service, "/ask", &ignorant[0]);
	scene_create(scene, "a");
	scene_fire(scene, 0, "a", "close", 504, "OUTCOME_UNKNOWN");
	for (size_t i = 1; i < sizeof ignorant / sizeof *ignorant; i++) {
		service_play(scene->service, "/ask", &ignorant[i]);
		service_await(scene->service, "/ask", i + 1, ARRIVE_MS);
		assert_string_equal(reply_text(scene_show(scene, 0, "a"), "status"), "closing");
	}
	service_play(scene->service, "/ask", &(struct play){.body = "{\"outcome\":\"done\"}"});
	scene_await_status(scene, 0, "a", "closed", ARRIVE_MS);
	service_await(scene->service, "/mail", 1, ARRIVE_MS);
	assert_int_equal(service_count(scene->service, "/close", NULL), 1);
	assert_int_equal(scene_jobs(scene, 0), 1);
	assert_asked_with_the_key_of_the_effect(scene);
	scene_stop(scene, 0);
}

static void after_a_kill(struct scene *scene, const char *answer, const char *status)
{
	struct play says = {.body = answer};
	struct firing *firing;

	begin(scene, definition_of_probe);
	scene_create(scene, "a");
	service_play(scene->service, "/close", &(struct play){.hold = true});
	service_play(scene->service, "/ask", &says);
	firing = firing_start(scene, 0, "a", "close");
	service_await(scene->service, "/close", 1, ARRIVE_MS);
	scene_kill(scene, 0);
	firing_join(firing, 0, NULL);
	scene_start(scene, 0);
	scene_await_status(scene, 0, "a", status, ARRIVE_MS);
	scene_assert(scene, 0, "a", status, 4); /* claimed, taken over by the janitor, ended */
	assert_asked_with_the_key_of_the_effect(scene);
	assert_true(service_call(scene->service, "/ask", 0).fence > service_call(scene->service, "/close", 0).fence);
	firing_free(firing);
}

static void test_janitor_asks_for_a_dead_process_and_it_was_done(void **state)
{
	struct scene *scene = *state;

	after_a_kill(scene, "{\"outcome\":\"done\"}", "closed");
	service_await(scene->service, "/mail", 1, ARRIVE_MS);
	assert_int_equal(scene_jobs(scene, 0), 1);
	scene_stop(scene, 0);
}

static void test_janitor_asks_for_a_dead_process_and_it_was_not_done(void **state)
{
	struct scene *scene = *state;

	after_a_kill(scene, "{\"outcome\":\"not_done\"}", "approved");
	assert_int_equal(scene_jobs(scene, 0), 0);
	scene_stop(scene, 0);
}

/* ---- retry ---- */

/* Drops so many calls, then answers. */
struct unlucky {
	struct service *service;
	int left;
};

static void get_luckier(void *context, const struct service_call *call)
{
	struct unlucky *unlucky = context;

	if (--unlucky->left == 0)
		service_play(unlucky->service, call->path, &(struct play){.body = "{\"at\":\"last\"}"});
}

static void drop(struct scene *scene, struct unlucky *unlucky, int n)
{
	*unlucky = (struct unlucky){scene->service, n};
	service_play(scene->service, "/close",
		     &(struct play){.how = PLAY_DROP, .hook = get_luckier, .context = unlucky});
}

/* Under one key everything is the same but the header Hapax-Attempt. */
static void assert_same_key(struct scene *scene, size_t from, size_t n)
{
	struct service_call first = service_call(scene->service, "/close", from);

	for (size_t i = 0; i < n; i++) {
		struct service_call call = service_call(scene->service, "/close", from + i);

		assert_string_equal(call.key, first.key);
		assert_string_equal(call.body, first.body);
		assert_int_equal(call.attempt, i + 1);
	}
}

static void test_retry_sends_the_same_key_again(void **state)
{
	struct scene *scene = *state;
	struct unlucky unlucky;

	begin(scene, definition_of_retry);
	scene_create(scene, "a");
	drop(scene, &unlucky, 2);
	scene_fire(scene, 0, "a", "close", 200, NULL);
	assert_string_equal(reply_text(&scene->last, "output.at"), "last");
	assert_same_key(scene, 0, 3);
	scene_assert(scene, 0, "a", "closed", 3);

	/* Not for ever. Then the claim is the janitor's, and the next try is still the same effect. */
	scene_create(scene, "b");
	drop(scene, &unlucky, 3);
	scene_fire(scene, 0, "b", "close", 504, "OUTCOME_UNKNOWN");
	assert_same_key(scene, 3, 3);
	scene_await_status(scene, 0, "b", "approved", ARRIVE_MS);
	scene_fire(scene, 0, "b", "close", 200, NULL);
	assert_string_equal(service_call(scene->service, "/close", 6).key,
			    service_call(scene->service, "/close", 3).key);

	scene_create(scene, "c");
	drop(scene, &unlucky, 1);
	scene_fire(scene, 0, "c", "close_unclaimed", 200, NULL);
	assert_same_key(scene, 7, 2);
	scene_assert(scene, 0, "c", "closed", 2);
	scene_stop(scene, 0);
}

#define ON_BOTH(test)                                                                                                  \
	{#test " on SQLite", test, scene_set_up_sqlite, scene_tear_down, NULL},                                        \
	{                                                                                                              \
#test " on PostgreSQL", test, scene_set_up_postgres, scene_tear_down, NULL                             \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(test_held_claim_waits_for_a_person),
		ON_BOTH(test_janitor_parks_the_claim_of_a_dead_process),
		cmocka_unit_test_setup_teardown(test_probe_is_asked_at_once, scene_set_up_sqlite, scene_tear_down),
		cmocka_unit_test_setup_teardown(test_janitor_asks_until_somebody_knows, scene_set_up_sqlite,
						scene_tear_down),
		ON_BOTH(test_janitor_asks_for_a_dead_process_and_it_was_done),
		cmocka_unit_test_setup_teardown(test_janitor_asks_for_a_dead_process_and_it_was_not_done,
						scene_set_up_sqlite, scene_tear_down),
		cmocka_unit_test_setup_teardown(test_retry_sends_the_same_key_again, scene_set_up_sqlite,
						scene_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
