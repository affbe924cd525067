/*
 * Runs over the API of a real server: what creates one and what does not, what is told about it, waiting for its end, and
 * what the header Idempotency-Key adds. What callers do to a run that is under way is test_run_verbs.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/await.h"
#include "support/run_scene.h"

#define CALLERS 50

static const char definition[] = "{'workflow':'order','kind':'run','actions':{"
				 "'reserve':{'kind':'http','url':'@/reserve','effect':'keyed'},"
				 "'pay':{'kind':'http','url':'@/pay','effect':'keyed'},"
				 "'ship':{'kind':'http','url':'@/ship','effect':'keyed'}},"
				 "'steps':["
				 "{'name':'reserve','type':'task','action':'reserve','input':'{sku: .input.sku}',"
				 "'save_as':'reservation'},"
				 "{'name':'pay','type':'task','action':'pay','save_as':'payment'},"
				 "{'name':'ship','type':'task','action':'ship'}],"
				 "'output':'{r: .state.reservation, n: .input.n}'}";

/* Jumps over one step, waits for an event at another. */
static const char winding[] = "{'workflow':'winding','kind':'run','steps':["
			      "{'name':'big','type':'condition','when':'.input.total > 9007199254740992',"
			      "'then':'paid','else':'rest'},"
			      "{'name':'rest','type':'wait','for':'1h'},"
			      "{'name':'paid','type':'external_event','event':'payment','save_as':'payment'}],"
			      "'output':'.state.payment'}";

static void begin(struct scene *scene)
{
	scene_define(scene, "order", definition);
	scene_define(scene, "winding", winding);
	scene_start(scene, 0);
}

static int64_t count(struct scene *scene, const char *sql)
{
	char cell[64];

	scene_sql(scene, sql, cell, sizeof cell);
	return strtoll(cell, NULL, 10);
}

/* ---- what creates one ---- */

struct caller {
	pthread_t thread;
	struct client *client;
	struct reply reply;
	const char *body;
};

static void *call_create(void *context)
{
	struct caller *caller = context;

	/* The test looks at the status. */
	(void)client_call(caller->client, "POST", RUNS, caller->body, strlen(caller->body), &caller->reply);
	return NULL;
}

static void create_fifty_at_once(struct scene *scene, int nodes)
{
	static const char body[] = "{\"definitionId\":\"order\",\"idempotencyKey\":\"k\",\"input\":{\"sku\":1}}";
	struct caller callers[CALLERS] = {0};
	int created = 0;
	char id[64];

	for (int i = 0; i < CALLERS; i++) {
		callers[i].client = client_new(scene->nodes[i % nodes]->port, NULL);
		callers[i].body = body;
	}
	for (int i = 0; i < CALLERS; i++)
		assert_int_equal(pthread_create(&callers[i].thread, NULL, call_create, &callers[i]), 0);
	for (int i = 0; i < CALLERS; i++)
		pthread_join(callers[i].thread, NULL);
	snprintf(id, sizeof id, "%s", reply_text(&callers[0].reply, "run.id"));
	for (int i = 0; i < CALLERS; i++) {
		bool first = strcmp(reply_text(&callers[i].reply, "created"), "true") == 0;

		created += first;
		assert_int_equal(callers[i].reply.status, first ? 201 : 200);
		assert_string_equal(reply_text(&callers[i].reply, "run.id"), id);
		client_free(callers[i].client);
		reply_release(&callers[i].reply);
	}
	assert_int_equal(created, 1);
	assert_int_equal(count(scene, "SELECT count(*) FROM hx_run"), 1);
	run_await(scene, id, "COMPLETED");
	assert_int_equal(service_count(scene->service, "/reserve", NULL), 1);
	/* Whatever the input, and after its end too. */
	scene_must(scene, 0, "POST", RUNS, "{'definitionId':'order','idempotencyKey':'k','input':{'x':2}}", 200, "");
	assert_string_equal(reply_text(&scene->last, "run.id"), id);
	assert_string_equal(reply_text(&scene->last, "run.status"), "COMPLETED");
}

static void test_fifty_at_once_with_one_key_create_one_run(void **state)
{
	struct scene *scene = *state;

	begin(scene);
	create_fifty_at_once(scene, 1);
	scene_stop(scene, 0);
}

static void test_fifty_at_once_on_two_nodes(void **state)
{
	struct scene *scene = *state;

	begin(scene);
	scene_start(scene, 1);
	create_fifty_at_once(scene, 2);
	scene_stop(scene, 0);
	scene_stop(scene, 1);
}

/* The first run must never be taken for one of the workflow that the second caller named. */
static void test_a_key_is_of_one_workflow(void **state)
{
	struct scene *scene = *state;
	char id[64];

	begin(scene);
	scene_must(scene, 0, "PUT", "/api/v1/definitions/nap",
		   "{'workflow':'nap','kind':'run','steps':[{'name':'a','type':'wait','for':'1ms'}]}", 200, "");
	scene_must(scene, 0, "POST", RUNS, "{'definitionId':'order','idempotencyKey':'k','input':{'a':1,'b':[2]}}", 201,
		   "");
	snprintf(id, sizeof id, "%s", reply_text(&scene->last, "run.id"));
	scene_must(scene, 0, "POST", RUNS, "{'definitionId':'nap','idempotencyKey':'k'}", 422, "KEY_REUSED");
	scene_must(scene, 0, "POST", RUNS "?wait=1s", "{'definitionId':'nap','idempotencyKey':'k'}", 422, "KEY_REUSED");
	scene_must(scene, 0, "GET", RUNS "?definitionId=nap", NULL, 200, "");
	assert_int_equal(reply_count(&scene->last, "items"), 0);

	scene_must(scene, 0, "POST", RUNS, "{'definitionId':'order','idempotencyKey':'k','input':{'b':[2.0],'a':1}}",
		   200, "");
	assert_null(strstr(scene->last.body, "inputDiffers"));
	scene_must(scene, 0, "POST", RUNS, "{'definitionId':'order','idempotencyKey':'k'}", 200, "");
	assert_null(strstr(scene->last.body, "inputDiffers"));
	scene_must(scene, 0, "POST", RUNS, "{'definitionId':'order','idempotencyKey':'k','input':{}}", 200, "");
	assert_string_equal(reply_text(&scene->last, "run.id"), id);
	assert_string_equal(reply_text(&scene->last, "inputDiffers"), "true");
	scene_must(scene, 0, "POST", RUNS "?wait=20s", "{'definitionId':'order','idempotencyKey':'k','input':{}}", 200,
		   "");
	assert_string_equal(reply_text(&scene->last, "inputDiffers"), "true");

	scene_must(scene, 0, "GET", RUNS "/by-key/order/k", NULL, 200, "");
	assert_string_equal(reply_text(&scene->last, "id"), id);
	scene_must(scene, 0, "GET", RUNS "/by-key/nap/k", NULL, 404, "NOT_FOUND");
	scene_must(scene, 0, "POST", RUNS "/by-key/nap/k/cancel", "{}", 404, "NOT_FOUND");
	scene_stop(scene, 0);
}

static void test_keys_count_for_their_workspace(void **state)
{
	static const char body[] = "{\"definitionId\":\"order\",\"idempotencyKey\":\"k\"}";
	struct scene *scene = *state;
	char path[200], id[64];

	begin(scene);
	scene_must(scene, 0, "POST", RUNS, "{'definitionId':'order','idempotencyKey':'k'}", 201, "");
	snprintf(id, sizeof id, "%s", reply_text(&scene->last, "run.id"));
	snprintf(path, sizeof path, RUNS "/%s", id);
	for (int i = 0; i < 2; i++) {
		reply_release(&scene->last);
		assert_true(client_call_with(scene->admin[0], "POST", RUNS, "Hapax-Workspace: other\r\n", body,
					     sizeof body - 1, &scene->last));
		assert_int_equal(scene->last.status, i ? 200 : 201);
		assert_string_not_equal(reply_text(&scene->last, "run.id"), id);
	}
	/* The other's run is not there for it. */
	reply_release(&scene->last);
	assert_true(client_call_with(scene->admin[0], "GET", path, "Hapax-Workspace: other\r\n", "", 0, &scene->last));
	assert_string_equal(scene->last.code, "NOT_FOUND");
	snprintf(path, sizeof path, RUNS "/%s?wait=5m", id);
	reply_release(&scene->last);
	assert_true(client_call_with(scene->admin[0], "GET", path, "Hapax-Workspace: other\r\n", "", 0, &scene->last));
	assert_string_equal(scene->last.code, "NOT_FOUND");
	scene_stop(scene, 0);
}

/* n times a character, as the key of a run. */
static void create_with(struct scene *scene, const char *character, int n, int status)
{
	static char body[8192];
	size_t at = (size_t)snprintf(body, sizeof body, "{'definitionId':'order','idempotencyKey':'");

	for (int i = 0; i < n; i++)
		at += (size_t)snprintf(body + at, sizeof body - at, "%s", character);
	snprintf(body + at, sizeof body - at, "'}");
	scene_must(scene, 0, "POST", RUNS, body, status, status == 400 ? "VALIDATION_ERROR" : "");
}

static void test_keys_are_counted_in_characters(void **state)
{
	static const char *const characters[] = {"k",       "\xc3\xa4",      "\xe2\x82\xac", "\xf0\x9f\x99\x82",
						 "\\u00e5", "\\ud83d\\ude43"};
	struct scene *scene = *state;

	begin(scene);
	for (size_t i = 0; i < sizeof characters / sizeof *characters; i++) {
		create_with(scene, characters[i], 255, 201);
		create_with(scene, characters[i], 255, 200);
		create_with(scene, characters[i], 256, 400);
		create_with(scene, characters[i], 1, 201);
	}
	create_with(scene, "", 0, 400);
	create_with(scene, "\\u0000", 1, 400);
	/* The same text in another spelling is the same key. */
	scene_must(scene, 0, "POST", RUNS, "{'definitionId':'order','idempotencyKey':'\\u006b'}", 200, "");
	scene_stop(scene, 0);
}

static void test_requests_that_create_nothing(void **state)
{
	static const struct {
		const char *query, *body, *code;
		int status;
	} cases[] = {
		{"", "{}", "VALIDATION_ERROR", 400},
		{"", "[]", "VALIDATION_ERROR", 400},
		{"", "{'definitionId':1}", "VALIDATION_ERROR", 400},
		{"", "{'definitionId':null}", "VALIDATION_ERROR", 400},
		{"", "{'definitionId':''}", "NOT_FOUND", 404},
		{"", "{'definitionId':'ordr'}", "NOT_FOUND", 404},
		{"", "{'definitionId':'order','input':null}", "VALIDATION_ERROR", 400},
		{"", "{'definitionId':'order','input':[]}", "VALIDATION_ERROR", 400},
		{"", "{'definitionId':'order','input':'x'}", "VALIDATION_ERROR", 400},
		{"", "{'definitionId':'order','idempotencyKey':null}", "VALIDATION_ERROR", 400},
		{"", "{'definitionId':'order','idempotencyKey':7}", "VALIDATION_ERROR", 400},
		{"", "{'definitionId':'order','idempotencykey':'k'}", "VALIDATION_ERROR", 400},
		{"", "{'definitionId':'order','input':{'a':1,'a':2}}", "VALIDATION_ERROR", 400},
		{"?wait=0s", "{'definitionId':'order'}", "VALIDATION_ERROR", 400},
		{"?wait=6m", "{'definitionId':'order'}", "VALIDATION_ERROR", 400},
		{"?wait=soon", "{'definitionId':'order'}", "VALIDATION_ERROR", 400},
	};
	struct scene *scene = *state;
	char path[100];

	begin(scene);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		snprintf(path, sizeof path, RUNS "%s", cases[i].query);
		scene_must(scene, 0, "POST", path, cases[i].body, cases[i].status, cases[i].code);
	}
	scene_must(scene, 0, "POST", RUNS, "{'definitionId':'ordr'}", 404, "NOT_FOUND");
	assert_non_null(strstr(scene->last.body, "did you mean \\\"order\\\"?"));
	assert_int_equal(count(scene, "SELECT count(*) FROM hx_run"), 0);
	assert_int_equal(scene_metric(scene, 0, "hapax_runs_created_total"), 0);
	scene_stop(scene, 0);
}

/* At the limit, and one byte past it. */
static void test_an_input_is_at_most_a_mebibyte(void **state)
{
	enum { LIMIT = 1 << 20 };
	static const char head[] = "{'definitionId':'winding','input':{'x':'";
	static char body[LIMIT + 100];
	struct scene *scene = *state;

	begin(scene);
	for (int past = 0; past < 2; past++) {
		snprintf(body, sizeof body, "%s%0*d'}}", head, LIMIT - 8 + past, 0);
		scene_must(scene, 0, "POST", RUNS, body, past ? 413 : 201, past ? "TOO_LARGE" : "");
	}
	assert_int_equal(count(scene, "SELECT count(*) FROM hx_run"), 1);
	scene_stop(scene, 0);
}

/* ---- what is told about it ---- */

/* Who has waited for its end is told without a read: byte for byte what a read says. */
static void assert_shown_as_told(struct scene *scene)
{
	char path[120], told[4000];

	snprintf(told, sizeof told, "%s", scene->last.body);
	snprintf(path, sizeof path, RUNS "/%s", reply_text(&scene->last, "run.id"));
	scene_must(scene, 0, "GET", path, NULL, 200, "");
	assert_non_null(strstr(told, scene->last.body));
}

static void test_a_run_goes_through_its_steps(void **state)
{
	struct scene *scene = *state;
	const struct reply *r = &scene->last;
	struct service_call call;

	service_play(scene->service, "/reserve", &(struct play){.body = "{\"id\":9007199254740993,\"w\":1e400}"});
	begin(scene);
	scene_must(scene, 0, "POST", RUNS "?wait=30s",
		   "{'definitionId':'order','input':{'sku':9007199254740993,'n':1e400},'idempotencyKey':'exact'}", 201,
		   "");
	assert_string_equal(reply_text(r, "created"), "true");
	assert_string_equal(reply_text(r, "run.status"), "COMPLETED");
	/* Created, then start and completion of each of three tasks. */
	assert_int_equal(reply_int(r, "run.version"), 7);
	assert_string_equal(reply_text(r, "run.definitionId"), "order");
	assert_int_equal(reply_int(r, "run.definitionVersion"), 1);
	assert_string_equal(reply_text(r, "run.currentStep"), "null");
	assert_string_equal(reply_text(r, "run.idempotencyKey"), "exact");
	assert_string_equal(reply_text(r, "run.error"), "null");
	/* Exact, from end to end: through the input, an expression, an output, the state. */
	assert_string_equal(reply_text(r, "run.input.n"), "1e400");
	assert_string_equal(reply_text(r, "run.state.reservation.id"), "9007199254740993");
	assert_string_equal(reply_text(r, "run.state.reservation.w"), "1e400");
	assert_string_equal(reply_text(r, "run.output.r.id"), "9007199254740993");
	assert_string_equal(reply_text(r, "run.output.n"), "1e400");
	call = service_call(scene->service, "/reserve", 0);
	assert_non_null(strstr(call.body, "\"sku\":9007199254740993"));
	call = service_call(scene->service, "/pay", 0);
	assert_non_null(strstr(call.body, "\"w\":1e400"));
	assert_int_equal(reply_count(r, "run.steps"), 3);
	for (int i = 0; i < 3; i++) {
		static const char *const names[] = {"reserve", "pay", "ship"};

		assert_string_equal(reply_text(r, run_path("run.steps.%d.name", i)), names[i]);
		assert_string_equal(reply_text(r, run_path("run.steps.%d.status", i)), "COMPLETED");
		assert_int_equal(reply_int(r, run_path("run.steps.%d.attempt", i)), 1);
		assert_string_not_equal(reply_text(r, run_path("run.steps.%d.startedAt", i)), "null");
		assert_string_not_equal(reply_text(r, run_path("run.steps.%d.completedAt", i)), "null");
	}
	assert_string_not_equal(reply_text(r, "run.startedAt"), "null");
	assert_string_not_equal(reply_text(r, "run.completedAt"), "null");
	assert_shown_as_told(scene);
	scene_stop(scene, 0);
}

/* One unit makes it and begins its first step, and each of the others ends one step and begins what comes next. */
static void test_a_run_of_three_steps_is_four_units(void **state)
{
	struct scene *scene = *state;

	begin(scene);
	scene_must(scene, 0, "POST", RUNS "?wait=30s", "{'definitionId':'order','input':{'sku':1,'n':1}}", 201, "");
	assert_string_equal(reply_text(&scene->last, "run.status"), "COMPLETED");
	assert_int_equal(scene_metric(scene, 0, "hapax_transitions_total"), 4);
	scene_stop(scene, 0);
}

static void test_steps_are_shown_where_the_run_stands(void **state)
{
	struct scene *scene = *state;
	const struct reply *r = &scene->last;
	char id[64];

	service_play(scene->service, "/pay", &(struct play){.hold = true});
	begin(scene);
	run_create_id(scene, "{'definitionId':'order'}", id);
	assert_string_equal(reply_text(r, "run.status"), "PENDING");
	assert_int_equal(reply_int(r, "run.version"), 1);
	assert_string_equal(reply_text(r, "run.currentStep"), "reserve");
	assert_string_equal(reply_text(r, "run.steps.0.status"), "PENDING");
	service_await(scene->service, "/pay", 1, RUN_ARRIVE_MS);
	run_show(scene, id);
	assert_string_equal(reply_text(r, "status"), "RUNNING");
	assert_int_equal(reply_int(r, "version"), 4);
	assert_string_equal(reply_text(r, "currentStep"), "pay");
	assert_string_equal(reply_text(r, "steps.0.status"), "COMPLETED");
	assert_string_equal(reply_text(r, "steps.1.status"), "RUNNING");
	assert_int_equal(reply_int(r, "steps.1.attempt"), 1);
	assert_string_not_equal(reply_text(r, "steps.1.startedAt"), "null");
	assert_string_equal(reply_text(r, "steps.2.status"), "PENDING");
	run_why(scene, id, "attempt 1 of the step \"pay\" is with the node \"node-a\"");
	service_release(scene->service);
	run_await(scene, id, "COMPLETED");
	run_why(scene, id, "waits for nothing: it is completed");

	/* What a condition jumps over is SKIPPED. */
	run_create_id(scene, "{'definitionId':'winding','input':{'total':9007199254740993}}", id);
	run_await(scene, id, "WAITING");
	assert_string_equal(reply_text(r, "currentStep"), "paid");
	assert_string_equal(reply_text(r, "steps.0.status"), "COMPLETED");
	assert_string_equal(reply_text(r, "steps.0.output"), "true");
	assert_string_equal(reply_text(r, "steps.1.status"), "SKIPPED");
	assert_string_equal(reply_text(r, "steps.2.status"), "WAITING");
	run_why(scene, id, "waits for the event \"payment\"");
	run_create_id(scene, "{'definitionId':'winding','input':{'total':9007199254740992}}", id);
	run_await(scene, id, "WAITING");
	assert_string_equal(reply_text(r, "currentStep"), "rest");
	run_why(scene, id, "the step \"rest\" waits for its time");
	scene_stop(scene, 0);
}

static void test_history_of_a_run(void **state)
{
	struct scene *scene = *state;
	const struct reply *r = &scene->last;
	char id[64], path[200];
	size_t n;

	begin(scene);
	run_create_id(scene, "{'definitionId':'order'}", id);
	run_await(scene, id, "COMPLETED");
	snprintf(path, sizeof path, "/api/v1/history/%s", id);
	scene_must(scene, 0, "GET", path, NULL, 200, "");
	n = reply_count(r, "items");
	for (size_t i = 0; i < n; i++)
		assert_int_equal(reply_int(r, run_path("items.%d.seq", (int)i)), i + 1);
	assert_string_equal(reply_text(r, "items.0.to"), "PENDING");
	assert_string_equal(reply_text(r, run_path("items.%d.to", (int)n - 1)), "COMPLETED");
	assert_int_equal(reply_int(r, run_path("items.%d.version", (int)n - 1)), 7);
	scene_must(scene, 0, "GET", "/api/v1/history/run_0000000000001", NULL, 404, "NOT_FOUND");
	scene_must(scene, 0, "GET", "/api/v1/history/run_0000000000000", NULL, 404, "NOT_FOUND");
	scene_must(scene, 0, "GET", "/api/v1/why/run_0000000000001", NULL, 404, "NOT_FOUND");
	scene_must(scene, 0, "GET", "/api/v1/why/nothing", NULL, 404, "NOT_FOUND");
	scene_must(scene, 0, "GET", RUNS "/run_0000000000001", NULL, 404, "NOT_FOUND");
	scene_must(scene, 0, "GET", RUNS "/nothing", NULL, 404, "NOT_FOUND");
	scene_stop(scene, 0);
}

static void test_list_is_newest_first_in_pages(void **state)
{
	struct scene *scene = *state;
	const struct reply *r = &scene->last;
	char ids[5][64], path[200];

	begin(scene);
	for (int i = 0; i < 5; i++) {
		run_create_id(scene, i < 3 ? "{'definitionId':'order'}" : "{'definitionId':'winding'}", ids[i]);
		run_await(scene, ids[i], i < 3 ? "COMPLETED" : "WAITING");
	}
	scene_must(scene, 0, "GET", RUNS "?limit=2", NULL, 200, "");
	assert_int_equal(reply_count(r, "items"), 2);
	assert_string_equal(reply_text(r, "items.0.id"), ids[4]);
	assert_string_equal(reply_text(r, "items.0.currentStep"), "rest");
	assert_string_equal(reply_text(r, "items.1.id"), ids[3]);
	for (int i = 2; i >= 0; i -= 2) {
		snprintf(path, sizeof path, RUNS "?limit=2&cursor=%s", reply_text(r, "cursor"));
		scene_must(scene, 0, "GET", path, NULL, 200, "");
		assert_string_equal(reply_text(r, "items.0.id"), ids[i]);
	}
	assert_string_equal(reply_text(r, "items.0.currentStep"), "null");
	assert_int_equal(reply_count(r, "items"), 1);
	assert_string_equal(reply_text(r, "cursor"), "null");
	scene_must(scene, 0, "GET", RUNS "?status=COMPLETED", NULL, 200, "");
	assert_int_equal(reply_count(r, "items"), 3);
	scene_must(scene, 0, "GET", RUNS "?definitionId=winding", NULL, 200, "");
	assert_int_equal(reply_count(r, "items"), 2);
	scene_must(scene, 0, "GET", RUNS "?definitionId=winding&status=COMPLETED", NULL, 200, "");
	assert_int_equal(reply_count(r, "items"), 0);
	scene_must(scene, 0, "GET", RUNS "?unknown=true", NULL, 200, "");
	assert_int_equal(reply_count(r, "items"), 0);
	scene_must(scene, 0, "GET", RUNS "?status=DONE", NULL, 400, "VALIDATION_ERROR");
	scene_must(scene, 0, "GET", RUNS "?cursor=job_0000000000001", NULL, 400, "VALIDATION_ERROR");
	scene_stop(scene, 0);
}

/* Retention leaves the key: what has run does not run again in silence. */
static void test_an_expired_run_is_gone_and_its_key_is_not_free(void **state)
{
	static const char *const verbs[] = {"cancel", "retry", "pause", "resume", "events/payment"};
	struct scene *scene = *state;
	char id[64], path[200];

	scene_configure(scene, "{'retention':{'runs':'1s'}}");
	begin(scene);
	run_create_id(scene, "{'definitionId':'order','idempotencyKey':'k'}", id);
	snprintf(path, sizeof path, RUNS "/%s", id);
	AWAIT(RUN_ARRIVE_MS, scene_call(scene, 0, "GET", path, NULL)->status == 410);
	assert_string_equal(scene->last.code, "RUN_EXPIRED");
	scene_must(scene, 0, "POST", RUNS, "{'definitionId':'order','idempotencyKey':'k'}", 410, "RUN_EXPIRED");
	scene_must(scene, 0, "POST", RUNS "?wait=1m", "{'definitionId':'order','idempotencyKey':'k'}", 410,
		   "RUN_EXPIRED");
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
		run_do(scene, id, verbs[i], "{}", 410, "RUN_EXPIRED");
	snprintf(path, sizeof path, RUNS "/%s?wait=1m", id);
	scene_must(scene, 0, "GET", path, NULL, 410, "RUN_EXPIRED");
	snprintf(path, sizeof path, "/api/v1/history/%s", id);
	scene_must(scene, 0, "GET", path, NULL, 410, "RUN_EXPIRED");
	snprintf(path, sizeof path, "/api/v1/why/%s", id);
	scene_must(scene, 0, "GET", path, NULL, 410, "RUN_EXPIRED");
	scene_must(scene, 0, "GET", RUNS, NULL, 200, "");
	assert_int_equal(reply_count(&scene->last, "items"), 0);
	assert_int_equal(service_count(scene->service, "/reserve", NULL), 1);
	assert_int_equal(scene_metric(scene, 0, "hapax_runs_expired_total"), 1);
	scene_stop(scene, 0);
}

/* ---- waiting ---- */

static void test_wait_answers_at_the_end_or_in_time(void **state)
{
	struct scene *scene = *state;
	const struct reply *r = &scene->last;
	char id[64], path[200];

	begin(scene);
	run_create_id(scene, "{'definitionId':'winding'}", id);
	snprintf(path, sizeof path, RUNS "/%s?wait=200ms", id);
	run_await(scene, id, "WAITING");
	scene_must(scene, 0, "GET", path, NULL, 200, "");
	assert_true(r->took_ms >= 190);
	assert_string_equal(reply_text(r, "status"), "WAITING");
	scene_must(scene, 0, "POST", RUNS "?wait=200ms", "{'definitionId':'winding','idempotencyKey':'w'}", 201, "");
	assert_true(r->took_ms >= 190);
	assert_string_not_equal(reply_text(r, "run.status"), "COMPLETED");
	scene_must(scene, 0, "POST", RUNS "?wait=200ms", "{'definitionId':'winding','idempotencyKey':'w'}", 200, "");
	assert_true(r->took_ms >= 190);
	assert_string_equal(reply_text(r, "created"), "false");
	/* One that has ended is told of at once. */
	scene_must(scene, 0, "POST", RUNS "?wait=5m", "{'definitionId':'order','idempotencyKey':'o'}", 201, "");
	assert_string_equal(reply_text(r, "run.status"), "COMPLETED");
	scene_must(scene, 0, "POST", RUNS "?wait=5m", "{'definitionId':'order','idempotencyKey':'o'}", 200, "");
	assert_string_equal(reply_text(r, "run.status"), "COMPLETED");
	AWAIT(RUN_ARRIVE_MS, scene_metric(scene, 0, "hapax_run_waiters") == 0);
	scene_stop(scene, 0);
}

static void test_all_who_wait_hear_of_the_end(void **state)
{
	struct scene *scene = *state;
	struct run_call *waiting[10];
	char id[64], path[200];

	service_play(scene->service, "/ship", &(struct play){.hold = true});
	begin(scene);
	run_create_id(scene, "{'definitionId':'order'}", id);
	service_await(scene->service, "/ship", 1, RUN_ARRIVE_MS);
	snprintf(path, sizeof path, RUNS "/%s?wait=1m", id);
	for (int i = 0; i < 10; i++)
		waiting[i] = run_call_start(scene, "GET", path, "", NULL);
	AWAIT(RUN_ARRIVE_MS, scene_metric(scene, 0, "hapax_run_waiters") == 10);
	service_release(scene->service);
	for (int i = 0; i < 10; i++) {
		run_call_join(waiting[i], 200);
		assert_string_equal(reply_text(&waiting[i]->reply, "status"), "COMPLETED");
		run_call_free(waiting[i]);
	}
	scene_stop(scene, 0);
}

static void test_a_waiting_client_that_goes_away_is_noticed(void **state)
{
	struct scene *scene = *state;
	char id[64], path[200];
	int fd;

	begin(scene);
	run_create_id(scene, "{'definitionId':'winding'}", id);
	snprintf(path, sizeof path, RUNS "/%s?wait=5m", id);
	fd = run_knock(scene, "GET", path, "");
	AWAIT(RUN_ARRIVE_MS, scene_metric(scene, 0, "hapax_run_waiters") == 1);
	close(fd);
	AWAIT(RUN_ARRIVE_MS, scene_metric(scene, 0, "hapax_run_waiters") == 0);
	scene_stop(scene, 0);
}

/* Whichever node drives it, and whichever is asked. */
static void test_the_end_is_heard_of_on_another_node(void **state)
{
	struct scene *scene = *state;
	char id[64], path[200];

	service_play(scene->service, "/ship", &(struct play){.delay_ms = 300});
	begin(scene);
	scene_start(scene, 1);
	run_create_id(scene, "{'definitionId':'order'}", id);
	snprintf(path, sizeof path, RUNS "/%s?wait=1m", id);
	scene_must(scene, 1, "GET", path, NULL, 200, "");
	assert_string_equal(reply_text(&scene->last, "status"), "COMPLETED");
	assert_true(scene->last.took_ms < 30000); /* and not after the minute */
	scene_stop(scene, 0);
	scene_stop(scene, 1);
}

/* SIGTERM ends the waiting, and what was created is told of as created. */
static void test_a_stop_ends_the_waiting(void **state)
{
	struct scene *scene = *state;
	struct run_call *waiting;

	begin(scene);
	waiting = run_call_start(scene, "POST", RUNS "?wait=5m", "", "{'definitionId':'winding'}");
	AWAIT(RUN_ARRIVE_MS, scene_metric(scene, 0, "hapax_run_waiters") == 1);
	scene_stop(scene, 0);
	run_call_join(waiting, 201);
	assert_string_equal(reply_text(&waiting->reply, "created"), "true");
	run_call_free(waiting);
	assert_int_equal(count(scene, "SELECT count(*) FROM hx_run"), 1);
}

/* ---- Idempotency-Key ---- */

static void test_the_header_replays_the_bytes(void **state)
{
	struct scene *scene = *state;
	const struct reply *r = &scene->last;
	char *first, id[64];

	begin(scene);
	run_keyed(scene, "POST", RUNS, "h-1", "{'definitionId':'order','input':{'sku':1}}", 201, "created");
	first = strdup(r->body);
	snprintf(id, sizeof id, "%s", reply_text(r, "run.id"));
	run_await(scene, id, "COMPLETED");
	run_keyed(scene, "POST", RUNS, "h-1", "{'definitionId':'order','input':{'sku':1.0}}", 201, "replayed");
	assert_string_equal(r->body, first);
	run_keyed(scene, "POST", RUNS, "h-1", "{'definitionId':'order','input':{'sku':2}}", 422, "mismatch");
	free(first);

	/* Both keys at once; what loses to the run's own key is kept under the header's as well. */
	run_keyed(scene, "POST", RUNS, "h-2", "{'definitionId':'winding','idempotencyKey':'b'}", 201, "created");
	snprintf(id, sizeof id, "%s", reply_text(r, "run.id"));
	run_keyed(scene, "POST", RUNS, "h-3", "{'definitionId':'winding','idempotencyKey':'b'}", 200, "created");
	assert_string_equal(reply_text(r, "run.id"), id);
	first = strdup(r->body);
	run_await(scene, id, "WAITING");
	run_keyed(scene, "POST", RUNS, "h-3", "{'definitionId':'winding','idempotencyKey':'b'}", 200, "replayed");
	assert_string_equal(r->body, first);
	free(first);

	/* With `wait`, the first is told of the end; what is kept is the creation. */
	run_keyed(scene, "POST", RUNS "?wait=30s", "h-4", "{'definitionId':'order'}", 201, "created");
	assert_string_equal(reply_text(r, "run.status"), "COMPLETED");
	snprintf(id, sizeof id, "%s", reply_text(r, "run.id"));
	run_keyed(scene, "POST", RUNS "?wait=30s", "h-4", "{'definitionId':'order'}", 201, "replayed");
	assert_string_equal(reply_text(r, "run.id"), id);
	assert_int_equal(count(scene, "SELECT count(*) FROM hx_run"), 3);

	scene_kill(scene, 0);
	scene_start(scene, 0);
	run_keyed(scene, "POST", RUNS, "h-1", "{'definitionId':'order','input':{'sku':1}}", 201, "replayed");
	run_keyed(scene, "POST", RUNS, "h-4", "{'definitionId':'order'}", 201, "replayed");
	assert_int_equal(count(scene, "SELECT count(*) FROM hx_run"), 3);
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
		ON_SQLITE(test_fifty_at_once_with_one_key_create_one_run),
		ON_SQLITE(test_a_key_is_of_one_workflow),
		ON_SQLITE(test_keys_count_for_their_workspace),
		ON_SQLITE(test_keys_are_counted_in_characters),
		ON_SQLITE(test_requests_that_create_nothing),
		ON_SQLITE(test_an_input_is_at_most_a_mebibyte),
		ON_SQLITE(test_a_run_goes_through_its_steps),
		ON_SQLITE(test_a_run_of_three_steps_is_four_units), /* on PostgreSQL the node's own lease counts, too */
		ON_SQLITE(test_steps_are_shown_where_the_run_stands),
		ON_SQLITE(test_history_of_a_run),
		ON_SQLITE(test_list_is_newest_first_in_pages),
		ON_SQLITE(test_an_expired_run_is_gone_and_its_key_is_not_free),
		ON_SQLITE(test_wait_answers_at_the_end_or_in_time),
		ON_SQLITE(test_all_who_wait_hear_of_the_end),
		ON_SQLITE(test_a_waiting_client_that_goes_away_is_noticed),
		ON_SQLITE(test_a_stop_ends_the_waiting),
		ON_SQLITE(test_the_header_replays_the_bytes),
		ON_POSTGRES(test_fifty_at_once_with_one_key_create_one_run),
		ON_POSTGRES(test_fifty_at_once_on_two_nodes),
		ON_POSTGRES(test_keys_are_counted_in_characters),
		ON_POSTGRES(test_a_run_goes_through_its_steps),
		ON_POSTGRES(test_list_is_newest_first_in_pages),
		ON_POSTGRES(test_an_expired_run_is_gone_and_its_key_is_not_free),
		ON_POSTGRES(test_all_who_wait_hear_of_the_end),
		ON_POSTGRES(test_the_end_is_heard_of_on_another_node),
		ON_POSTGRES(test_the_header_replays_the_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
