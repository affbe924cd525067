/* Batches over the API of real servers: cancelled in each status, expired, and several nodes of which one dies. */
#include "batch_scene.h"

/* ---- cancel ---- */

static void test_cancel_of_what_is_held_is_done_when_it_answers(void **state)
{
	struct scene *scene = *state;
	const struct reply *r = &scene->last;
	char id[64];

	begin(scene);
	create_id(scene, HEAD "'items':[{'cost':1},{'cost':2}],'hold':true}", id);
	at(scene, "POST", id, "/cancel", "{}", 200, "");
	assert_counts(scene, "CANCELLED", 0, 0, 2, 0, 0);
	assert_string_equal(reply_text(r, "cancelRequested"), "true");
	at(scene, "POST", id, "/cancel", NULL, 200, "");
	assert_string_equal(reply_text(r, "status"), "CANCELLED");
	at(scene, "POST", id, "/start", NULL, 409, "WRONG_STATUS");
	at(scene, "POST", id, "/items", "{'items':[{'cost':3}]}", 409, "WRONG_STATUS");
	at(scene, "POST", id, "/items/0/accept", NULL, 409, "WRONG_STATUS");
	at(scene, "POST", id, "/cancel", "{'why':1}", 400, "VALIDATION_ERROR");
	assert_int_equal(service_count(scene->service, "/draw", NULL), 0);
	assert_int_equal(service_count(scene->service, "/erase", NULL), 0); /* nothing was ever begun */
	assert_balance(scene, 1000);
	scene_stop(scene, 0);
}

static void test_cancel_of_what_runs_is_accepted(void **state)
{
	struct scene *scene = *state;
	const struct reply *r = &scene->last;
	struct service_call call;
	char id[64];

	service_play(scene->service, "/erase", &(struct play){.hold = true});
	begin(scene);
	service_play(scene->service, "/draw", &(struct play){.hold = true});
	create_id(scene,
		  "{'workflow':'once','account':'alice','data':{'film':'Vertigo'},"
		  "'items':[{'cost':5},{'cost':7},{'cost':9},{'cost':11}]}",
		  id);
	service_await(scene->service, "/draw", 1, RUN_ARRIVE_MS);
	service_release(scene->service);
	service_await(scene->service, "/draw", 2, RUN_ARRIVE_MS);
	at(scene, "POST", id, "/items/0/accept", NULL, 200, "");
	service_release(scene->service);
	service_await(scene->service, "/draw", 3, RUN_ARRIVE_MS);
	run_why(scene, id, "it is with the node \"node-a\", whose lease lasts until");
	at(scene, "POST", id, "/cancel", NULL, 202, "");
	assert_string_equal(reply_text(r, "status"), "ACCEPTED");
	assert_string_equal(reply_text(r, "id"), id);
	at(scene, "POST", id, "/cancel", NULL, 202, "");
	run_why(scene, id, "its cancel is requested");
	at(scene, "GET", id, "", NULL, 200, "");
	assert_string_equal(reply_text(r, "status"), "RUNNING");
	assert_string_equal(reply_text(r, "cancelRequested"), "true");
	at(scene, "POST", id, "/items/1/accept", NULL, 409, "WRONG_STATUS");
	service_release(scene->service); /* the third is done; the fourth is never begun */
	service_await(scene->service, "/erase", 1, RUN_ARRIVE_MS);
	run_why(scene, id, "it is being torn down by the node \"node-a\"");
	at(scene, "POST", id, "/cancel", NULL, 202, "");
	/* The money is back before the artifacts are gone, and the end comes after both. */
	at(scene, "GET", id, "", NULL, 200, "");
	assert_counts(scene, "CANCELLING", 3, 0, 3, 21, 16);
	assert_balance(scene, 1000 - 5);
	service_play(scene->service, "/erase", &(struct play){.status = 404}); /* gone is as good as deleted */
	service_release(scene->service);
	at(scene, "GET", id, "?wait=30s", NULL, 200, "");
	assert_counts(scene, "CANCELLED", 3, 0, 3, 21, 16);
	assert_int_equal(reply_int(r, "accepted"), 1);
	at(scene, "POST", id, "/cancel", NULL, 200, "");
	assert_balance(scene, 1000 - 5);
	assert_int_equal(service_count(scene->service, "/draw", NULL), 3);
	assert_int_equal(service_count(scene->service, "/erase", NULL),
			 2); /* neither the accepted one nor the unbegun */
	call = service_call(scene->service, "/erase", 0);
	assert_non_null(strstr(call.body, "\"data\":{\"film\":\"Vertigo\"}"));
	scene_stop(scene, 0);
}

/* A cleanup that fails keeps it CANCELLING, and says why. */
static void test_a_teardown_that_does_not_succeed(void **state)
{
	struct scene *scene = *state;
	char id[64], path[200];

	service_play(scene->service, "/erase", &(struct play){.status = 503, .body = "{\"error\":\"disk\"}"});
	begin(scene);
	service_play(scene->service, "/draw", &(struct play){.hold = true});
	create_id(scene, "{'workflow':'once','account':'alice','items':[{'cost':5},{'cost':7}]}", id);
	service_await(scene->service, "/draw", 1, RUN_ARRIVE_MS);
	at(scene, "POST", id, "/cancel", NULL, 202, "");
	service_release(scene->service);
	AWAIT(RUN_ARRIVE_MS, strcmp(reply_text(at(scene, "GET", id, "", NULL, 200, ""), "error"), "null") != 0);
	assert_string_equal(reply_text(&scene->last, "status"), "CANCELLING");
	assert_balance(scene, 1000);
	snprintf(path, sizeof path, "/api/v1/why/%s", id);
	AWAIT(RUN_ARRIVE_MS, strstr(reply_text(scene_call(scene, 0, "GET", path, NULL), "why"),
				    "its teardown has not succeeded yet, and waits for the next try at"));
	service_play(scene->service, "/erase", &(struct play){.status = 200});
	at(scene, "GET", id, "?wait=1m", NULL, 200, "");
	assert_counts(scene, "CANCELLED", 1, 0, 2, 5, 5);
	scene_stop(scene, 0);
}

/* The row as a crash, or a node that is slow to come, would leave it. */
static void set_status(struct scene *scene, const char *status, const char *more)
{
	char sql[300];

	snprintf(sql, sizeof sql,
		 "UPDATE hx_subject SET status = '%s'%s WHERE id = (SELECT max(subject) FROM hx_batch) RETURNING id",
		 status, more);
	scene_sql(scene, sql, NULL, 0);
}

static void test_cancel_of_what_nobody_has_begun(void **state)
{
	struct scene *scene = *state;
	char id[64];

	begin(scene);
	create_id(scene, HEAD "'items':[{'cost':1},{'cost':2}],'hold':true}", id);
	set_status(scene, "LOADING", ", owner = 'elsewhere', fence = fence + 1, until = 9000000000000");
	at(scene, "POST", id, "/cancel", NULL, 409, "WRONG_STATUS");
	at(scene, "POST", id, "/start", NULL, 409, "WRONG_STATUS");
	at(scene, "POST", id, "/items", "{'items':[{'cost':3}]}", 409, "CLAIM_FAILED");
	run_why(scene, id, "its items are being loaded by the node \"elsewhere\", whose lease lasts until");
	set_status(scene, "QUEUED", ", owner = NULL, until = NULL");
	run_why(scene, id, "is due, and waits for a node to take it");
	at(scene, "POST", id, "/cancel", NULL, 200, "");
	assert_counts(scene, "CANCELLED", 0, 0, 2, 0, 0);
	run_why(scene, id, "waits for nothing: it is cancelled");
	scene_stop(scene, 0);
}

static void test_cancel_of_what_is_over(void **state)
{
	struct scene *scene = *state;
	char id[64];

	begin(scene);
	create_id(scene, HEAD "'items':[{'cost':1}]}", id);
	await_status(scene, id, "COMPLETED");
	at(scene, "POST", id, "/cancel", NULL, 409, "ALREADY_COMPLETED");
	assert_balance(scene, 999);
	scene_stop(scene, 0);
}

/* Retention leaves the key: what was paid for is not begun again in silence. */
static void test_an_expired_batch_is_gone_and_its_key_is_not_free(void **state)
{
	static const char *const verbs[] = {"/start", "/cancel", "/items/0/accept"};
	static const char body[] = HEAD "'items':[{'cost':1}],'idempotencyKey':'k'}";
	struct scene *scene = *state;
	char id[64], path[200];

	scene_configure(scene, "{'retention':{'batches':'1s'}}");
	begin(scene);
	create_id(scene, body, id);
	snprintf(path, sizeof path, BATCHES "/%s", id);
	AWAIT(RUN_ARRIVE_MS, scene_call(scene, 0, "GET", path, NULL)->status == 410);
	assert_string_equal(scene->last.code, "RUN_EXPIRED");
	scene_must(scene, 0, "POST", BATCHES, body, 410, "RUN_EXPIRED");
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
		at(scene, "POST", id, verbs[i], NULL, 410, "RUN_EXPIRED");
	at(scene, "GET", id, "?wait=1m", NULL, 410, "RUN_EXPIRED");
	at(scene, "GET", id, "/items", NULL, 410, "RUN_EXPIRED");
	snprintf(path, sizeof path, "/api/v1/history/%s", id);
	scene_must(scene, 0, "GET", path, NULL, 410, "RUN_EXPIRED");
	snprintf(path, sizeof path, "/api/v1/why/%s", id);
	scene_must(scene, 0, "GET", path, NULL, 410, "RUN_EXPIRED");
	scene_must(scene, 0, "GET", BATCHES, NULL, 200, "");
	assert_int_equal(reply_count(&scene->last, "items"), 0);
	assert_balance(scene, 999);
	scene_stop(scene, 0);
}

/* ---- several nodes, and one that dies ---- */

static void test_a_batch_of_one_node_is_cancelled_on_another(void **state)
{
	struct scene *scene = *state;
	char id[64], path[200];

	begin(scene);
	service_play(scene->service, "/draw", &(struct play){.hold = true});
	create_id(scene, "{'workflow':'once','account':'alice','items':[{'cost':5},{'cost':7}]}", id);
	service_await(scene->service, "/draw", 1, RUN_ARRIVE_MS);
	scene_start(scene, 1);
	snprintf(path, sizeof path, BATCHES "/%s/cancel", id);
	scene_must(scene, 1, "POST", path, NULL, 202, "");
	service_release(scene->service);
	snprintf(path, sizeof path, BATCHES "/%s?wait=1m", id);
	scene_must(scene, 1, "GET", path, NULL, 200, "");
	assert_counts(scene, "CANCELLED", 1, 0, 2, 5, 5);
	assert_true(scene->last.took_ms < 30000); /* and not after the minute */
	assert_balance(scene, 1000);
	scene_stop(scene, 0);
	scene_stop(scene, 1);
}

/* What was not acknowledged has never been: it costs nothing, its key is free, and a held batch is as it was. */
static void test_a_loader_is_killed(void **state)
{
	struct scene *scene = *state;
	const struct reply *r = &scene->last;
	struct run_call *loading;
	struct strbuf large;
	char id[64], path[200];

	scene_configure(scene, "{'lease':'1s'}");
	begin(scene);
	create_id(scene, HEAD "'items':[{'cost':1},{'cost':2}],'hold':true}", id);
	many(HEAD "'idempotencyKey':'k',", 100000, &large);
	loading = run_call_start(scene, "POST", BATCHES, "", large.p);
	AWAIT(RUN_ARRIVE_MS, count(scene, "SELECT count(*) FROM hx_batch_item") > 2);
	scene_kill(scene, 0);
	run_call_join(loading, 0);
	run_call_free(loading);
	strbuf_release(&large);
	scene_start(scene, 0);
	AWAIT(RUN_ARRIVE_MS,
	      scene_call(scene, 0, "POST", BATCHES, HEAD "'idempotencyKey':'k','items':[{'cost':1}]}")->status == 201);
	assert_int_equal(count(scene, "SELECT count(*) FROM hx_batch b JOIN hx_subject s ON s.id = b.subject"
				      " WHERE s.status = 'FAILED' AND batch_key IS NULL AND total = 0"),
			 1);

	many("{", 100000, &large);
	snprintf(path, sizeof path, BATCHES "/%s/items", id);
	loading = run_call_start(scene, "POST", path, "", large.p);
	AWAIT(RUN_ARRIVE_MS, count(scene, "SELECT count(*) FROM hx_subject WHERE status = 'LOADING'") == 1);
	scene_kill(scene, 0);
	run_call_join(loading, 0);
	run_call_free(loading);
	strbuf_release(&large);
	scene_start(scene, 0);
	await_status(scene, id, "PENDING"); /* whoever looks for claims past their time has found it */
	assert_int_equal(reply_int(r, "total"), 2);
	at(scene, "POST", id, "/items", "{'items':[{'cost':3}]}", 200, "");
	at(scene, "POST", id, "/start", NULL, 200, "");
	at(scene, "GET", id, "?wait=30s", NULL, 200, "");
	assert_counts(scene, "COMPLETED", 3, 0, 0, 6, 0);
	AWAIT(RUN_ARRIVE_MS, count(scene, "SELECT balance FROM hx_account") == 1000 - 6 - 1);
	scene_stop(scene, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_SQLITE(test_cancel_of_what_is_held_is_done_when_it_answers),
		ON_SQLITE(test_cancel_of_what_runs_is_accepted),
		ON_SQLITE(test_a_teardown_that_does_not_succeed),
		ON_SQLITE(test_cancel_of_what_nobody_has_begun),
		ON_SQLITE(test_cancel_of_what_is_over),
		ON_SQLITE(test_an_expired_batch_is_gone_and_its_key_is_not_free),
		ON_SQLITE(test_a_loader_is_killed),
		ON_POSTGRES(test_cancel_of_what_is_held_is_done_when_it_answers),
		ON_POSTGRES(test_cancel_of_what_runs_is_accepted),
		ON_POSTGRES(test_a_teardown_that_does_not_succeed),
		ON_POSTGRES(test_cancel_of_what_nobody_has_begun),
		ON_POSTGRES(test_an_expired_batch_is_gone_and_its_key_is_not_free),
		ON_POSTGRES(test_a_batch_of_one_node_is_cancelled_on_another),
		ON_POSTGRES(test_a_loader_is_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
