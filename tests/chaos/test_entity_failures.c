/*
 * The failure modes of a claimed step, against a real server:
 *
 *   the action                                      the caller hears          the claim
 *   fails (4xx, 5xx, nobody there)                  502, the action's words   released at once
 *   rejects (422, is_invalid), or its validation    422, what it said         released at once
 *   breaks: dropped, cut, not JSON, too slow,       504                       stuck, and the janitor's within
 *   a 5xx where on_5xx says unknown                                           max(lease, stuck_after) + every
 *   is killed together with the process             nothing                   the same, after the restart
 *   is merely slow, longer than two leases          200                       kept
 *
 * The key of the effect changes after a definite answer, and never after an unknown one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/await.h"
#include "support/scene.h"

#define LEASE_MS 2000 /* long enough to look at a claim before it lapses, also on a busy machine */
#define EVERY_MS 200
#define BOUND_MS (LEASE_MS + EVERY_MS)
#define SLACK_MS 15000 /* a busy machine; a restart. By itself a janitor looks every two minutes */
#define ARRIVE_MS 60000

static const char definition[] =
	"{'workflow':'billing','kind':'entity','status_types':['approved','closing','closed'],"
	"'initial_status':'approved','actions':{"
	"'Close':{'kind':'http','url':'@/close','effect':'claimed','timeout':'60s'},"
	"'Hurry':{'kind':'http','url':'@/hurry','effect':'claimed','timeout':'500ms'},"
	"'Check':{'kind':'http','url':'@/check','effect':'idempotent'}},"
	"'steps':[{'step_id':20,'step_key':'close','status':'approved','successful_state':'closed',"
	"'action':'Close','claim_state':['closing','approved']},"
	"{'step_id':21,'step_key':'close_checked','status':'approved','successful_state':'closed',"
	"'action':'Close','validation':'Check','claim_state':['closing','approved']},"
	"{'step_id':22,'step_key':'close_in_a_hurry','status':'approved','successful_state':'closed',"
	"'action':'Hurry','claim_state':['closing','approved']},"
	"{'step_id':23,'step_key':'close_unsure','status':'approved','successful_state':'closed',"
	"'action':'Close','on_5xx':'unknown','claim_state':['closing','approved']},"
	"{'step_id':24,'step_key':'close_slowly','status':'approved','successful_state':'closed',"
	"'action':'Close','lease':'2s','claim_state':['closing','approved']}]}";

static const char configuration[] = "{'modules':{'billing':{'janitor':{'every':'200ms','stuck_after':'2s'}}}}";

static void begin(struct scene *scene)
{
	scene_define(scene, "billing", definition);
	scene_configure(scene, configuration);
	scene_start(scene, 0);
	scene_create(scene, "a");
}

/* Fires a step that is to be released at once, and once more, with success: another effect, with another key. */
static void released(struct scene *scene, const char *id, const char *step, const struct play *play, int status,
		     const char *code, const char *words)
{
	struct service *service = scene->service;
	struct service_call before, after;
	size_t n = service_count(service, "/close", NULL);

	scene_create(scene, id);
	service_play(service, "/close", play);
	scene_fire(scene, 0, id, step, status, code);
	if (!strstr(scene->last.body, words))
		fail_msg("the caller does not see \"%s\": %s", words, scene->last.body);
	assert_string_equal(reply_text(scene_show(scene, 0, id), "claim"), "null");
	scene_assert(scene, 0, id, "approved", 3);
	service_play(service, "/close", &(struct play){0});
	scene_fire(scene, 0, id, step, 200, NULL);
	assert_int_equal(reply_int(&scene->last, "entity.version"), 5);
	before = service_call(service, "/close", n);
	after = service_call(service, "/close", n + 1);
	assert_string_not_equal(before.key, after.key);
	assert_true(after.fence > before.fence);
}

static void test_failure_releases_at_once(void **state)
{
	struct scene *scene = *state;

	begin(scene);
	released(scene, "f1", "close", &(struct play){.status = 500, .body = "the printer is on fire"}, 502,
		 "ACTION_FAILED", "the printer is on fire");
	released(scene, "f2", "close", &(struct play){.status = 404, .body = "{\"error\":\"no such period\"}"}, 502,
		 "ACTION_FAILED", "no such period");
	released(scene, "f3", "close", &(struct play){.status = 503}, 502, "ACTION_FAILED", "503");
	released(scene, "f4", "close", &(struct play){.status = 302}, 502, "ACTION_FAILED", "302");
	assert_int_equal(scene_metric(scene, 0, "hapax_janitor_reverts_total"), 0);
	scene_stop(scene, 0);
}

static void test_rejection_releases_at_once(void **state)
{
	struct scene *scene = *state;

	begin(scene);
	released(scene, "r1", "close", &(struct play){.body = "{\"is_invalid\":true,\"why\":\"period is open\"}"}, 422,
		 "INVALID", "\"output\":{\"is_invalid\":true,\"why\":\"period is open\"}");
	released(scene, "r2", "close", &(struct play){.status = 422, .body = "{\"why\":\"period is open\"}"}, 422,
		 "INVALID", "\"output\":{\"why\":\"period is open\"}");
	released(scene, "r3", "close", &(struct play){.status = 422, .body = "not even JSON"}, 422, "INVALID",
		 "not even JSON");
	assert_int_equal(scene_metric(scene, 0, "hapax_janitor_reverts_total"), 0);
	scene_stop(scene, 0);
}

static void test_nobody_there_releases_at_once(void **state)
{
	struct scene *scene = *state;

	begin(scene);
	service_close_door(scene->service);
	scene_fire(scene, 0, "a", "close", 502, "ACTION_FAILED");
	scene_assert(scene, 0, "a", "approved", 3);
	service_open_door(scene->service);
	scene_fire(scene, 0, "a", "close", 200, NULL);
	assert_int_equal(service_count(scene->service, "/close", NULL), 1);
	scene_stop(scene, 0);
}

static void test_validation_comes_before_the_action(void **state)
{
	struct scene *scene = *state;

	begin(scene);
	service_play(scene->service, "/check",
		     &(struct play){.body = "{\"is_invalid\":true,\"why\":\"period is open\"}"});
	scene_fire(scene, 0, "a", "close_checked", 422, "INVALID");
	assert_string_equal(reply_text(&scene->last, "output.why"), "period is open");
	scene_assert(scene, 0, "a", "approved", 3);
	service_play(scene->service, "/check", &(struct play){.status = 500});
	scene_fire(scene, 0, "a", "close_checked", 502, "ACTION_FAILED");
	scene_assert(scene, 0, "a", "approved", 5);
	/* A validation has no effect: not knowing its outcome leaves nothing stuck. */
	service_play(scene->service, "/check", &(struct play){.how = PLAY_DROP});
	scene_fire(scene, 0, "a", "close_checked", 502, "ACTION_FAILED");
	scene_assert(scene, 0, "a", "approved", 7);
	assert_int_equal(service_count(scene->service, "/close", NULL), 0);
	service_play(scene->service, "/check", &(struct play){0});
	scene_fire(scene, 0, "a", "close_checked", 200, NULL);
	assert_int_equal(service_count(scene->service, "/close", NULL), 1);
	scene_assert(scene, 0, "a", "closed", 9);
	scene_stop(scene, 0);
}

/* ---- unknown outcomes ---- */

/* A step that breaks. */
struct broken {
	const char *id, *step, *path;
	struct play play;
	size_t call; /* its number among those of the path */
	int64_t since_ms;
};

static void break_it(struct scene *scene, struct broken *b)
{
	b->call = service_count(scene->service, b->path, NULL);
	scene_create(scene, b->id);
	service_play(scene->service, b->path, &b->play);
	scene_fire(scene, 0, b->id, b->step, 504, "OUTCOME_UNKNOWN");
	b->since_ms = await_now_ms();
	scene_assert(scene, 0, b->id, "closing", 2);
	scene_fire(scene, 0, b->id, b->step, 409, "CLAIM_FAILED");
	assert_non_null(strstr(scene->last.body, "another operation is already in progress"));
	assert_int_equal(service_count(scene->service, b->path, NULL), b->call + 1);
}

/* It comes back within the bound, and the next try is the same effect. Returns how long that took. */
static int64_t comes_back(struct scene *scene, const struct broken *b)
{
	int64_t took_ms;
	size_t again;

	scene_await_status(scene, 0, b->id, "approved", ARRIVE_MS);
	took_ms = await_now_ms() - b->since_ms;
	assert_true(took_ms <= BOUND_MS + SLACK_MS);
	assert_int_equal(service_count(scene->service, b->path, b->id), 1);
	again = service_count(scene->service, b->path, NULL);
	service_play(scene->service, b->path, &(struct play){0});
	scene_fire(scene, 0, b->id, b->step, 200, NULL);
	assert_int_equal(reply_int(&scene->last, "entity.version"), 5);
	assert_string_equal(service_call(scene->service, b->path, b->call).key,
			    service_call(scene->service, b->path, again).key);
	return took_ms;
}

static void test_broken_action_is_stuck_until_the_janitor_comes(void **state)
{
	struct broken broken[] = {
		{"u1", "close", "/close", {.how = PLAY_DROP}, 0, 0},
		{"u2", "close", "/close", {.how = PLAY_CUT, .body = "{\"half\":\"of an answer\"}"}, 0, 0},
		{"u3", "close", "/close", {.body = "this is no JSON"}, 0, 0},
		{"u4", "close_in_a_hurry", "/hurry", {.delay_ms = 2000}, 0, 0},
		{"u5", "close_unsure", "/close", {.status = 500}, 0, 0},
	};
	const size_t n = sizeof broken / sizeof *broken;
	struct scene *scene = *state;
	int64_t longest_ms = 0, took_ms;

	begin(scene);
	for (size_t i = 0; i < n; i++)
		break_it(scene, &broken[i]);
	for (size_t i = 0; i < n; i++) {
		took_ms = comes_back(scene, &broken[i]);
		longest_ms = took_ms > longest_ms ? took_ms : longest_ms;
	}
	printf("# stuck claims: 5 broken actions, each reverted within %lld ms (bound %d ms)\n", (long long)longest_ms,
	       BOUND_MS);
	assert_int_equal(scene_metric(scene, 0, "hapax_janitor_reverts_total"), 5);
	assert_int_equal(scene_metric(scene, 0, "hapax_unknown_outcomes_total"), 5);
	serve_await_log(scene->nodes[0], "a stuck claim was ended", 5, ARRIVE_MS);
	serve_await_log(scene->nodes[0], "stuck claims were ended", 1, ARRIVE_MS);
	scene_stop(scene, 0);
}

/* A live owner renews its lease, which is 2 s here: the action takes longer than two of them. */
static void test_slow_action_is_not_taken_for_dead(void **state)
{
	struct scene *scene = *state;

	begin(scene);
	service_play(scene->service, "/close", &(struct play){.delay_ms = 4500});
	scene_fire(scene, 0, "a", "close_slowly", 200, NULL);
	assert_true(scene->last.took_ms >= 4500);
	scene_assert(scene, 0, "a", "closed", 3); /* renewals change no version */
	assert_int_equal(scene_metric(scene, 0, "hapax_janitor_reverts_total"), 0);
	assert_int_equal(scene_metric(scene, 0, "hapax_claim_overruns_total"), 0);
	assert_int_equal(service_count(scene->service, "/close", NULL), 1);
	scene_stop(scene, 0);
}

static void test_killed_process_leaves_nothing_stuck(void **state)
{
	struct scene *scene = *state;
	struct firing *firing;
	int64_t killed_ms, took_ms;

	begin(scene);
	service_play(scene->service, "/close", &(struct play){.hold = true});
	firing = firing_start(scene, 0, "a", "close");
	service_await(scene->service, "/close", 1, ARRIVE_MS);
	scene_kill(scene, 0);
	killed_ms = await_now_ms();
	assert_int_equal(firing_join(firing, 0, NULL)->status, 0); /* no answer at all */
	scene_start(scene, 0);
	scene_await_status(scene, 0, "a", "approved", ARRIVE_MS);
	took_ms = await_now_ms() - killed_ms;
	printf("# killed in the middle of an action: reverted %lld ms later, restart included (bound %d ms)\n",
	       (long long)took_ms, BOUND_MS);
	assert_true(took_ms <= BOUND_MS + SLACK_MS);
	scene_assert(scene, 0, "a", "approved", 3);
	service_release(scene->service);
	service_play(scene->service, "/close", &(struct play){0});
	scene_fire(scene, 0, "a", "close", 200, NULL);
	assert_string_equal(service_call(scene->service, "/close", 0).key,
			    service_call(scene->service, "/close", 1).key);
	firing_free(firing);
	scene_stop(scene, 0);
}

/* SIGTERM lets a running action finish, and its caller hears of it. */
static void test_stopping_process_drains(void **state)
{
	struct scene *scene = *state;
	struct firing *firing;

	begin(scene);
	service_play(scene->service, "/close", &(struct play){.delay_ms = 500});
	firing = firing_start(scene, 0, "a", "close");
	service_await(scene->service, "/close", 1, ARRIVE_MS);
	scene_stop(scene, 0);
	firing_join(firing, 200, NULL);
	scene_start(scene, 0);
	scene_assert(scene, 0, "a", "closed", 3);
	firing_free(firing);
	scene_stop(scene, 0);
}

/* A janitor of the user's own calls for the sweep. */
static void test_external_janitor_sweeps(void **state)
{
	struct scene *scene = *state;

	scene_define(scene, "billing", definition);
	scene_configure(scene, "{'modules':{'billing':{'janitor':{'external':true,'stuck_after':'2s'}}}}");
	scene_start(scene, 0);
	scene_create(scene, "a");
	service_play(scene->service, "/close", &(struct play){.how = PLAY_DROP});
	scene_fire(scene, 0, "a", "close", 504, "OUTCOME_UNKNOWN");
	scene_must(scene, 0, "POST", "/api/v1/modules/billing/sweep", NULL, 200, NULL);
	assert_int_equal(reply_int(&scene->last, "reverted"), 0); /* not yet past its time */
	AWAIT(ARRIVE_MS, reply_int(scene_must(scene, 0, "POST", "/api/v1/modules/billing/sweep", NULL, 200, NULL),
				   "reverted") == 1);
	scene_assert(scene, 0, "a", "approved", 3);
	scene_must(scene, 0, "POST", "/api/v1/modules/nobody/sweep", NULL, 404, "NOT_FOUND");
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
		cmocka_unit_test_setup_teardown(test_failure_releases_at_once, scene_set_up_sqlite, scene_tear_down),
		cmocka_unit_test_setup_teardown(test_rejection_releases_at_once, scene_set_up_sqlite, scene_tear_down),
		cmocka_unit_test_setup_teardown(test_nobody_there_releases_at_once, scene_set_up_sqlite,
						scene_tear_down),
		cmocka_unit_test_setup_teardown(test_validation_comes_before_the_action, scene_set_up_sqlite,
						scene_tear_down),
		cmocka_unit_test_setup_teardown(test_broken_action_is_stuck_until_the_janitor_comes,
						scene_set_up_sqlite, scene_tear_down),
		ON_BOTH(test_slow_action_is_not_taken_for_dead),
		ON_BOTH(test_killed_process_leaves_nothing_stuck),
		ON_BOTH(test_stopping_process_drains),
		cmocka_unit_test_setup_teardown(test_external_janitor_sweeps, scene_set_up_sqlite, scene_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
