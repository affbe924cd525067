/*
 * What callers do to a run over the API: cancel, retry, pause, resume, events, approvals, resolving a step whose outcome is
 * unknown; what each of them refuses, and that each honours an Idempotency-Key.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/await.h"
#include "support/run_scene.h"

static const char order[] = "{'workflow':'order','kind':'run','actions':{"
			    "'reserve':{'kind':'http','url':'@/reserve','effect':'keyed'},"
			    "'release':{'kind':'http','url':'@/release','effect':'keyed'},"
			    "'pay':{'kind':'http','url':'@/pay','effect':'keyed'}},"
			    "'steps':[{'name':'reserve','type':'task','action':'reserve','compensate':'release'},"
			    "{'name':'pay','type':'task','action':'pay','retry':{'max_attempts':1}},"
			    "{'name':'paid','type':'external_event','event':'payment','save_as':'payment'},"
			    "{'name':'seen','type':'external_event','event':'receipt'}],"
			    "'output':'.state.payment'}";

static const char leave[] = "{'workflow':'leave','kind':'run','steps':["
			    "{'name':'boss','type':'approval','save_as':'boss'},"
			    "{'name':'office','type':'approval','entry_lock':'30s'}],'output':'.state.boss'}";

/* A service that may have acted: nobody knows, so a person has to say. */
static const char wire[] = "{'workflow':'wire','kind':'run','actions':{"
			   "'send':{'kind':'http','url':'@/send','effect':'claimed','timeout':'30s'}},"
			   "'steps':[{'name':'send','type':'task','action':'send','save_as':'sent'}],"
			   "'output':'.state.sent'}";

static void begin(struct scene *scene)
{
	scene_define(scene, "order", order);
	scene_define(scene, "leave", leave);
	scene_define(scene, "wire", wire);
	scene_start(scene, 0);
}

/* ---- all of them ---- */

static void test_what_is_not_there(void **state)
{
	static const char *const verbs[][2] = {{"cancel", "{}"},
					       {"retry", "{}"},
					       {"pause", "{}"},
					       {"resume", "{}"},
					       {"events/payment", "{}"},
					       {"approvals/boss", "{'decision':'approve'}"},
					       {"steps/send/resolve", "{'outcome':'done'}"}};
	struct scene *scene = *state;
	char id[64], path[200];

	begin(scene);
	run_create_id(scene, "{'definitionId':'leave'}", id);
	run_await(scene, id, "WAITING");
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
		char *body = scene_text(scene, verbs[i][1]);

		run_do(scene, "run_0000000000001", verbs[i][0], verbs[i][1], 404, "NOT_FOUND");
		run_do(scene, "nothing", verbs[i][0], verbs[i][1], 404, "NOT_FOUND");
		run_do(scene, id, verbs[i][0], "{'nonsense':1}", 400, "VALIDATION_ERROR");
		/* Of another workspace. */
		snprintf(path, sizeof path, RUNS "/%s/%s", id, verbs[i][0]);
		reply_release(&scene->last);
		assert_true(client_call_with(scene->admin[0], "POST", path, "Hapax-Workspace: other\r\n", body,
					     strlen(body), &scene->last));
		assert_string_equal(scene->last.code, "NOT_FOUND");
		free(body);
	}
	run_show(scene, id);
	assert_int_equal(reply_int(&scene->last, "version"), 2);
	scene_stop(scene, 0);
}

static void test_a_stale_version_changes_nothing(void **state)
{
	struct scene *scene = *state;
	char id[64];

	begin(scene);
	run_create_id(scene, "{'definitionId':'leave'}", id);
	run_await(scene, id, "WAITING");
	run_do(scene, id, "cancel", "{'version':1}", 409, "CONCURRENCY_ERROR");
	assert_non_null(strcasestr(scene->last.head, "\r\nRetry-After: "));
	run_do(scene, id, "pause", "{'version':7}", 409, "CONCURRENCY_ERROR");
	run_do(scene, id, "approvals/boss", "{'decision':'approve','version':1}", 409, "CONCURRENCY_ERROR");
	run_do(scene, id, "cancel", "{'version':0}", 400, "VALIDATION_ERROR");
	run_do(scene, id, "cancel", "{'version':'2'}", 400, "VALIDATION_ERROR");
	run_show(scene, id);
	assert_int_equal(reply_int(&scene->last, "version"), 2);
	run_do(scene, id, "pause", "{'version':2}", 200, "");
	assert_int_equal(reply_int(&scene->last, "version"), 3);
	scene_stop(scene, 0);
}

/* ---- cancel ---- */

static void test_cancel(void **state)
{
	struct scene *scene = *state;
	char id[64];
	int64_t version;

	begin(scene);
	/* Nothing is to be undone. */
	run_create_id(scene, "{'definitionId':'leave'}", id);
	run_await(scene, id, "WAITING");
	run_do(scene, id, "cancel", "{}", 200, "");
	assert_string_equal(reply_text(&scene->last, "status"), "CANCELLED");
	run_do(scene, id, "cancel", NULL, 200, "");
	run_why(scene, id, "waits for nothing: it is cancelled");

	/* One step is done, and is undone once. */
	run_create_id(scene, "{'definitionId':'order'}", id);
	run_await(scene, id, "WAITING");
	run_do(scene, id, "cancel", "{}", 202, "");
	assert_string_equal(reply_text(&scene->last, "status"), "CANCELLING");
	run_await(scene, id, "CANCELLED");
	version = reply_int(&scene->last, "version");
	assert_string_not_equal(reply_text(&scene->last, "steps.0.compensatedAt"), "null");
	assert_string_equal(reply_text(&scene->last, "steps.2.status"), "PENDING");
	run_do(scene, id, "cancel", "{}", 200, "");
	assert_string_equal(reply_text(&scene->last, "status"), "CANCELLED");
	assert_int_equal(reply_int(&scene->last, "version"), version);
	assert_int_equal(service_count(scene->service, "/release", NULL), 1);
	run_do(scene, id, "pause", "{}", 409, "WRONG_STATUS");
	run_do(scene, id, "retry", "{}", 409, "WRONG_STATUS");
	run_do(scene, id, "events/payment", "{}", 409, "WRONG_STATUS");
	scene_stop(scene, 0);
}

static void test_cancel_while_a_step_is_under_way(void **state)
{
	struct scene *scene = *state;
	char id[64];

	service_play(scene->service, "/pay", &(struct play){.hold = true});
	begin(scene);
	run_create_id(scene, "{'definitionId':'order'}", id);
	service_await(scene->service, "/pay", 1, RUN_ARRIVE_MS);
	run_do(scene, id, "cancel", "{}", 202, "");
	run_do(scene, id, "cancel", "{}", 202, "");
	run_show(scene, id);
	assert_string_equal(reply_text(&scene->last, "status"), "CANCELLING");
	assert_string_equal(reply_text(&scene->last, "steps.1.status"), "RUNNING");
	assert_int_equal(service_count(scene->service, "/release", NULL), 0);
	service_release(scene->service);
	run_await(scene, id, "CANCELLED");
	/* What was finished is recorded, and then undone. */
	assert_string_equal(reply_text(&scene->last, "steps.1.status"), "COMPLETED");
	assert_int_equal(service_count(scene->service, "/release", NULL), 1);
	scene_stop(scene, 0);
}

static void test_a_completed_run_is_not_cancelled(void **state)
{
	struct scene *scene = *state;
	char id[64];

	begin(scene);
	run_create_id(scene, "{'definitionId':'wire'}", id);
	run_await(scene, id, "COMPLETED");
	run_do(scene, id, "cancel", "{}", 409, "ALREADY_COMPLETED");
	run_do(scene, id, "pause", "{}", 409, "WRONG_STATUS");
	run_do(scene, id, "resume", "{}", 409, "WRONG_STATUS");
	run_do(scene, id, "retry", "{}", 409, "WRONG_STATUS");
	scene_stop(scene, 0);
}

/* ---- pause, resume, retry ---- */

static void test_pause_and_resume(void **state)
{
	struct scene *scene = *state;
	char id[64];

	service_play(scene->service, "/reserve", &(struct play){.hold = true});
	begin(scene);
	run_create_id(scene, "{'definitionId':'order'}", id);
	service_await(scene->service, "/reserve", 1, RUN_ARRIVE_MS);
	run_do(scene, id, "resume", "{}", 409, "WRONG_STATUS");
	run_do(scene, id, "pause", "{}", 200, "");
	assert_string_equal(reply_text(&scene->last, "status"), "PAUSED");
	run_do(scene, id, "pause", "{}", 200, "");
	run_show(scene, id);
	assert_string_equal(reply_text(&scene->last, "steps.0.status"), "RUNNING");
	service_release(scene->service);
	/* The step under way is recorded, and no other is begun. */
	AWAIT(RUN_ARRIVE_MS, strcmp(reply_text(run_show(scene, id), "steps.0.status"), "COMPLETED") == 0);
	assert_string_equal(reply_text(&scene->last, "status"), "PAUSED");
	assert_int_equal(service_count(scene->service, "/pay", NULL), 0);
	run_why(scene, id, "waits for a person to resume it");
	/* An event that comes meanwhile is kept. */
	run_do(scene, id, "events/payment", "{'data':7}", 202, "");
	run_do(scene, id, "resume", "{}", 200, "");
	AWAIT(RUN_ARRIVE_MS, strcmp(reply_text(run_show(scene, id), "currentStep"), "seen") == 0);
	assert_string_equal(reply_text(&scene->last, "state.payment"), "7");
	scene_stop(scene, 0);
}

static void test_retry_of_a_failed_step(void **state)
{
	struct scene *scene = *state;
	struct service_call calls[2];
	char id[64];

	service_play(scene->service, "/pay", &(struct play){.status = 402, .body = "\"no money\""});
	begin(scene);
	run_create_id(scene, "{'definitionId':'order'}", id);
	run_await(scene, id, "FAILED");
	assert_string_equal(reply_text(&scene->last, "currentStep"), "pay");
	assert_string_equal(reply_text(&scene->last, "error.step"), "pay");
	assert_string_equal(reply_text(&scene->last, "steps.1.status"), "FAILED");
	assert_string_equal(reply_text(&scene->last, "steps.1.error.step"), "pay");
	assert_string_equal(reply_text(&scene->last, "steps.2.status"), "PENDING");
	run_why(scene, id, "has failed at the step \"pay\"");
	run_do(scene, id, "events/payment", "{}", 409, "WRONG_STATUS");
	service_play(scene->service, "/pay", &(struct play){0});
	run_do(scene, id, "retry", "{}", 200, "");
	assert_string_equal(reply_text(&scene->last, "status"), "PENDING");
	run_await(scene, id, "WAITING");
	assert_string_equal(reply_text(&scene->last, "error"), "null");
	assert_int_equal(service_count(scene->service, "/reserve", NULL), 1);
	assert_int_equal(service_count(scene->service, "/pay", NULL), 2);
	/* The first answer was definite, so this is another effect. */
	calls[0] = service_call(scene->service, "/pay", 0);
	calls[1] = service_call(scene->service, "/pay", 1);
	assert_string_not_equal(calls[0].key, calls[1].key);
	scene_stop(scene, 0);
}

/* ---- events ---- */

static void test_events_before_during_and_after(void **state)
{
	struct scene *scene = *state;
	char id[64];

	service_play(scene->service, "/pay", &(struct play){.hold = true});
	begin(scene);
	run_create_id(scene, "{'definitionId':'order'}", id);
	service_await(scene->service, "/pay", 1, RUN_ARRIVE_MS);
	/* Before the wait is reached. */
	run_do(scene, id, "events/payment", "{'id':'e-1','data':{'amount':9007199254740993}}", 202, "");
	assert_string_equal(reply_text(&scene->last, "duplicate"), "false");
	run_do(scene, id, "events/payment", "{'id':'e-1','data':{'amount':2}}", 200, "");
	assert_string_equal(reply_text(&scene->last, "duplicate"), "true");
	run_do(scene, id, "events/paymnt", "{}", 404, "NOT_FOUND");
	run_do(scene, id, "events/payment", "{'id':''}", 400, "VALIDATION_ERROR");
	run_do(scene, id, "events/payment", "{'id':null}", 400, "VALIDATION_ERROR");
	service_release(scene->service);
	AWAIT(RUN_ARRIVE_MS, strcmp(reply_text(run_show(scene, id), "currentStep"), "seen") == 0);
	assert_string_equal(reply_text(&scene->last, "state.payment.amount"), "9007199254740993");
	/* Past it: what was seen is still a duplicate, what is new comes too late. */
	run_do(scene, id, "events/payment", "{'id':'e-1'}", 200, "");
	assert_string_equal(reply_text(&scene->last, "duplicate"), "true");
	run_do(scene, id, "events/payment", "{'id':'e-2'}", 409, "WRONG_STATUS");
	/* During the wait. */
	run_await(scene, id, "WAITING");
	run_do(scene, id, "events/receipt", "{}", 202, "");
	run_await(scene, id, "COMPLETED");
	assert_string_equal(reply_text(&scene->last, "output.amount"), "9007199254740993");
	run_do(scene, id, "events/receipt", "{}", 409, "WRONG_STATUS");
	scene_stop(scene, 0);
}

/* ---- approvals ---- */

static void test_approve(void **state)
{
	struct scene *scene = *state;
	char id[64];

	begin(scene);
	run_create_id(scene, "{'definitionId':'leave'}", id);
	run_await(scene, id, "WAITING");
	run_why(scene, id, "waits for a person to decide the approval \"boss\"");
	run_do(scene, id, "approvals/boss", "{}", 400, "VALIDATION_ERROR");
	run_do(scene, id, "approvals/boss", "{'decision':'maybe'}", 400, "VALIDATION_ERROR");
	run_do(scene, id, "approvals/boss", "{'decision':'approve','by':7}", 400, "VALIDATION_ERROR");
	run_do(scene, id, "approvals/nobody", "{'decision':'approve'}", 404, "NOT_FOUND");
	run_do(scene, id, "approvals/office", "{'decision':'approve'}", 409, "WRONG_STATUS");
	run_do(scene, id, "approvals/boss", "{'decision':'approve','by':'Ada','comment':'fine'}", 200, "");
	AWAIT(RUN_ARRIVE_MS, strcmp(reply_text(run_show(scene, id), "currentStep"), "office") == 0);
	assert_string_equal(reply_text(&scene->last, "steps.0.output.decision"), "approve");
	assert_string_equal(reply_text(&scene->last, "state.boss.by"), "Ada");
	assert_string_equal(reply_text(&scene->last, "state.boss.comment"), "fine");
	run_do(scene, id, "approvals/boss", "{'decision':'reject'}", 409, "WRONG_STATUS");
	run_await(scene, id, "WAITING");
	run_do(scene, id, "approvals/office", "{'decision':'reject'}", 200, "");
	run_await(scene, id, "FAILED");
	assert_string_equal(reply_text(&scene->last, "steps.1.status"), "FAILED");
	assert_string_equal(reply_text(&scene->last, "error.step"), "office");
	/* Asked once more, and by whom is who asked if nobody is named. */
	run_do(scene, id, "retry", "{}", 200, "");
	run_await(scene, id, "WAITING");
	run_do(scene, id, "approvals/office", "{'decision':'approve'}", 200, "");
	run_await(scene, id, "COMPLETED");
	assert_string_equal(reply_text(&scene->last, "steps.1.output.by"), "admin");
	assert_string_equal(reply_text(&scene->last, "steps.1.output.comment"), "null");
	scene_stop(scene, 0);
}

/* Of many who decide at once, one has decided; a click too many is told so, by the entry lock or after it. */
static void test_of_two_decisions_one_counts(void **state)
{
	struct scene *scene = *state;
	struct run_call *calls[10];
	int decided = 0;
	char id[64], path[200];

	begin(scene);
	run_create_id(scene, "{'definitionId':'leave'}", id);
	run_await(scene, id, "WAITING");
	run_do(scene, id, "approvals/boss", "{'decision':'approve'}", 200, "");
	AWAIT(RUN_ARRIVE_MS, strcmp(reply_text(run_show(scene, id), "currentStep"), "office") == 0);
	run_await(scene, id, "WAITING");
	snprintf(path, sizeof path, RUNS "/%s/approvals/office", id);
	for (int i = 0; i < 10; i++)
		calls[i] = run_call_start(scene, "POST", path, "",
					  i % 2 ? "{'decision':'approve'}" : "{'decision':'reject'}");
	for (int i = 0; i < 10; i++) {
		pthread_join(calls[i]->thread, NULL);
		decided += calls[i]->reply.status == 200;
		if (calls[i]->reply.status != 200) {
			assert_int_equal(calls[i]->reply.status, 409);
			assert_true(strcmp(calls[i]->reply.code, "WRONG_STATUS") == 0 ||
				    strcmp(calls[i]->reply.code, "ENTRY_LOCKED") == 0);
		}
		run_call_free(calls[i]);
	}
	assert_int_equal(decided, 1);
	scene_stop(scene, 0);
}

/* ---- unknown ---- */

static void become_unknown(struct scene *scene, char ret_id[64])
{
	service_play(scene->service, "/send", &(struct play){.how = PLAY_DROP});
	run_create_id(scene, "{'definitionId':'wire'}", ret_id);
	AWAIT(RUN_ARRIVE_MS, strcmp(reply_text(run_show(scene, ret_id), "steps.0.status"), "UNKNOWN") == 0);
	assert_string_equal(reply_text(&scene->last, "status"), "WAITING");
	run_why(scene, ret_id, "waits for a person to resolve it");
}

static void test_resolve(void **state)
{
	struct scene *scene = *state;
	struct service_call calls[2];
	size_t n;
	char id[64];

	begin(scene);
	become_unknown(scene, id);
	scene_must(scene, 0, "GET", RUNS "?unknown=true", NULL, 200, "");
	assert_int_equal(reply_count(&scene->last, "items"), 1);
	assert_string_equal(reply_text(&scene->last, "items.0.id"), id);
	run_do(scene, id, "steps/send/resolve", "{}", 400, "VALIDATION_ERROR");
	run_do(scene, id, "steps/none/resolve", "{'outcome':'done'}", 404, "NOT_FOUND");
	run_do(scene, id, "retry", "{}", 409, "WRONG_STATUS");
	run_do(scene, id, "steps/send/resolve", "{'outcome':'done','output':{'receipt':1e400}}", 200, "");
	run_await(scene, id, "COMPLETED");
	assert_string_equal(reply_text(&scene->last, "output.receipt"), "1e400");
	run_do(scene, id, "steps/send/resolve", "{'outcome':'done'}", 409, "WRONG_STATUS");
	scene_must(scene, 0, "GET", RUNS "?unknown=true", NULL, 200, "");
	assert_int_equal(reply_count(&scene->last, "items"), 0);

	/* Not done: it is begun anew, with the same key, should the first try come through after all. */
	become_unknown(scene, id);
	n = service_count(scene->service, "/send", NULL);
	service_play(scene->service, "/send", &(struct play){0});
	run_do(scene, id, "steps/send/resolve", "{'outcome':'not_done'}", 200, "");
	run_await(scene, id, "COMPLETED");
	calls[0] = service_call(scene->service, "/send", n - 1);
	calls[1] = service_call(scene->service, "/send", n);
	assert_string_equal(calls[0].key, calls[1].key);
	assert_true(calls[0].fence < calls[1].fence);
	scene_stop(scene, 0);
}

/* ---- Idempotency-Key ---- */

static void test_verbs_are_replayed(void **state)
{
	struct scene *scene = *state;
	char id[64], path[200], *first;

	begin(scene);
	run_create_id(scene, "{'definitionId':'leave'}", id);
	run_await(scene, id, "WAITING");
	snprintf(path, sizeof path, RUNS "/%s/pause", id);
	run_keyed(scene, "POST", path, "p", "{}", 200, "created");
	first = strdup(scene->last.body);
	run_keyed(scene, "POST", path, "p", "{}", 200, "replayed");
	assert_string_equal(scene->last.body, first);
	run_do(scene, id, "resume", "{}", 200, "");
	run_await(scene, id, "WAITING");
	/* It is not paused again. */
	run_keyed(scene, "POST", path, "p", "{}", 200, "replayed");
	assert_string_equal(scene->last.body, first);
	run_show(scene, id);
	assert_string_equal(reply_text(&scene->last, "status"), "WAITING");
	free(first);

	/* A decision that is sent twice with its key is one decision; a refusal is not kept. */
	snprintf(path, sizeof path, RUNS "/%s/approvals/boss", id);
	run_keyed(scene, "POST", path, "a", "{'decision':'approve'}", 200, "created");
	run_keyed(scene, "POST", path, "a", "{'decision':'approve'}", 200, "replayed");
	run_keyed(scene, "POST", path, "a", "{'decision':'reject'}", 422, "mismatch");
	run_keyed(scene, "POST", path, "b", "{'decision':'approve'}", 409, "");

	/* Nothing was to be done, and that is kept, too. */
	snprintf(path, sizeof path, RUNS "/%s/cancel", id);
	run_keyed(scene, "POST", path, "c-1", "{}", 200, "created");
	run_keyed(scene, "POST", path, "c-2", "{}", 200, "created");
	run_keyed(scene, "POST", path, "c-2", "{}", 200, "replayed");
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
		ON_SQLITE(test_what_is_not_there),
		ON_SQLITE(test_a_stale_version_changes_nothing),
		ON_SQLITE(test_cancel),
		ON_SQLITE(test_cancel_while_a_step_is_under_way),
		ON_SQLITE(test_a_completed_run_is_not_cancelled),
		ON_SQLITE(test_pause_and_resume),
		ON_SQLITE(test_retry_of_a_failed_step),
		ON_SQLITE(test_events_before_during_and_after),
		ON_SQLITE(test_approve),
		ON_SQLITE(test_of_two_decisions_one_counts),
		ON_SQLITE(test_resolve),
		ON_SQLITE(test_verbs_are_replayed),
		ON_POSTGRES(test_cancel),
		ON_POSTGRES(test_events_before_during_and_after),
		ON_POSTGRES(test_of_two_decisions_one_counts),
		ON_POSTGRES(test_verbs_are_replayed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
