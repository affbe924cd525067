/*
 * Batches over the API of real servers: what creates one and what does not, what is told about it, the money it moves, what
 * callers decide, and what keys add. What ends one before its time: test_batches_end.c.
 */
#include "batch_scene.h"

/* ---- from end to end ---- */

/* What is told of it, once it has ended. */
static void assert_told(const struct reply *r)
{
	assert_string_equal(reply_text(r, "created"), "true");
	assert_string_equal(reply_text(r, "workflow"), "render");
	assert_string_equal(reply_text(r, "account"), "alice");
	assert_string_equal(reply_text(r, "cancelRequested"), "false");
	assert_int_equal(reply_int(r, "definitionVersion"), 1);
	assert_int_equal(reply_int(r, "total"), 4);
	assert_int_equal(reply_int(r, "pending"), 0);
	assert_int_equal(reply_int(r, "running"), 0);
	assert_int_equal(reply_int(r, "unknown"), 0);
	assert_string_equal(reply_text(r, "needs"), "null");
	assert_string_equal(reply_text(r, "error"), "null");
	assert_string_equal(reply_text(r, "dueAt"), "null");
	assert_string_not_equal(reply_text(r, "startedAt"), "null");
	assert_string_not_equal(reply_text(r, "completedAt"), "null");
}

/* One that is done, one that is refused, one that costs nothing, one that is done the second time. */
static void assert_told_items(const struct reply *r, const char *id)
{
	char key[100];

	assert_int_equal(reply_count(r, "items"), 4);
	assert_string_equal(reply_text(r, "items.0.status"), "SUCCEEDED");
	assert_string_equal(reply_text(r, "items.0.input.big"), "9007199254740993");
	snprintf(key, sizeof key, "%s/0", id);
	assert_string_equal(reply_text(r, "items.0.output.art"), key);
	assert_int_equal(reply_int(r, "items.0.charged"), 5);
	assert_string_equal(reply_text(r, "items.0.decision"), "null");
	assert_string_equal(reply_text(r, "items.0.late"), "null");
	assert_string_equal(reply_text(r, "items.1.status"), "FAILED");
	assert_int_equal(reply_int(r, "items.1.cost"), 7);
	assert_int_equal(reply_int(r, "items.1.charged"), 0);
	assert_string_not_equal(reply_text(r, "items.1.error"), "null");
	assert_string_equal(reply_text(r, "items.2.input"), "null");
	assert_int_equal(reply_int(r, "items.3.attempt"), 2);
	assert_int_equal(reply_int(r, "items.3.charged"), 11);
}

/* What the batch is about stands in every call, also when whoever has begun it is long done. */
static void assert_carries(struct scene *scene, const char *path, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++) {
		struct service_call call = service_call(scene->service, path, i);

		assert_non_null(strstr(call.body, text));
	}
}

static void test_a_batch_is_worked_off(void **state)
{
	struct scene *scene = *state;
	const struct reply *r = &scene->last;
	struct service_call call;
	char id[64], key[100];

	begin(scene);
	scene_must(
		scene, 0, "POST", BATCHES "?wait=30s",
		"{'workflow':'render','account':'alice','data':{'film':'Vertigo'},'items':[{'cost':5,'input':{'big':9007199254740993}},"
		"{'cost':7,'input':{'do':'refuse'}},{'cost':0},{'cost':11,'input':{'do':'stumble'}}]}",
		201, "");
	snprintf(id, sizeof id, "%s", reply_text(r, "id"));
	assert_counts(scene, "COMPLETED", 3, 1, 0, 16, 0);
	assert_told(r);
	assert_balance(scene, 1000 - 16);

	at(scene, "GET", id, "/items", NULL, 200, "");
	assert_told_items(r, id);

	/* Whoever is told of the end is told the totals; the calls carry one key for each item. */
	service_await(scene->service, "/tell", 1, RUN_ARRIVE_MS);
	call = service_call(scene->service, "/tell", 0);
	assert_non_null(strstr(call.body, "\"charged\":16"));
	assert_non_null(strstr(call.body, "\"failed\":1"));
	assert_int_equal(service_count(scene->service, "/draw", NULL), 5);
	assert_carries(scene, "/draw", 5, "\"data\":{\"film\":\"Vertigo\"},\"item\":");
	run_why(scene, id, "waits for nothing: it is completed");
	snprintf(key, sizeof key, "/api/v1/history/%s", id);
	scene_must(scene, 0, "GET", key, NULL, 200, "");
	assert_string_equal(reply_text(r, "items.0.to"), "QUEUED");
	assert_int_equal(scene_metric(scene, 0, "hapax_batch_items_succeeded_total"), 3);
	scene_stop(scene, 0);
}

static void test_a_held_batch_is_filled_and_started(void **state)
{
	struct scene *scene = *state;
	const struct reply *r = &scene->last;
	char id[64];

	begin(scene);
	create_id(scene, "{'workflow':'render','account':'alice','items':[],'hold':true,'idempotencyKey':'h'}", id);
	assert_string_equal(reply_text(r, "status"), "PENDING");
	assert_int_equal(reply_int(r, "total"), 0);
	run_why(scene, id, "is held with 0 items, and waits for somebody to start it");
	at(scene, "POST", id, "/items", "{'items':[{'cost':1},{'cost':2}]}", 200, "");
	assert_int_equal(reply_int(r, "total"), 2);
	assert_int_equal(reply_int(r, "pending"), 2);
	at(scene, "POST", id, "/items", "{'items':[{'cost':3}]}", 200, "");
	assert_int_equal(reply_int(r, "total"), 3);
	at(scene, "POST", id, "/items", "{'items':[]}", 400, "VALIDATION_ERROR");
	at(scene, "POST", id, "/start", "{}", 200, "");
	assert_string_equal(reply_text(r, "status"), "QUEUED");
	at(scene, "GET", id, "?wait=30s", NULL, 200, "");
	assert_counts(scene, "COMPLETED", 3, 0, 0, 6, 0);
	/* Once more: nothing happens, and nothing is added. */
	at(scene, "POST", id, "/start", NULL, 200, "");
	assert_string_equal(reply_text(r, "status"), "COMPLETED");
	at(scene, "POST", id, "/items", "{'items':[{'cost':3}]}", 409, "WRONG_STATUS");
	assert_balance(scene, 1000 - 6);
	scene_must(scene, 0, "POST", BATCHES,
		   "{'workflow':'render','account':'alice','hold':true,'idempotencyKey':'h'}", 200, "");
	assert_string_equal(reply_text(r, "id"), id);
	assert_string_equal(reply_text(r, "created"), "false");
	scene_stop(scene, 0);
}

static void test_requests_that_create_nothing(void **state)
{
	static const struct {
		const char *body;
		int status;
		const char *code, *words;
	} cases[] = {
		{"{}", 400, "VALIDATION_ERROR", "account"},
		{"[]", 400, "VALIDATION_ERROR", "object"},
		{"{'workflow':'render','items':[{'cost':1}]}", 400, "VALIDATION_ERROR", "account"},
		{"{'account':'alice','items':[{'cost':1}]}", 400, "VALIDATION_ERROR", "workflow"},
		{"{'workflow':1,'account':'alice','items':[{'cost':1}]}", 400, "VALIDATION_ERROR", "workflow"},
		{"{'workflow':'rendr','account':'alice','items':[{'cost':1}]}", 404, "NOT_FOUND", "did you mean"},
		{"{'workflow':'render','account':'alicia','items':[{'cost':1}]}", 404, "NOT_FOUND", "account"},
		{HEAD "'items':1}", 400, "VALIDATION_ERROR", "array"},
		{HEAD "'items':[]}", 400, "VALIDATION_ERROR", "hold"},
		{HEAD "'items':[],'hold':'yes'}", 400, "VALIDATION_ERROR", "hold"},
		{HEAD "'items':[{'cost':1},2]}", 400, "VALIDATION_ERROR", "items[1] must be an object"},
		{HEAD "'items':[{'input':1}]}", 400, "VALIDATION_ERROR", "items[0].cost is missing"},
		{HEAD "'items':[{'cost':1},{'cost':-1}]}", 400, "VALIDATION_ERROR", "items[1].cost"},
		{HEAD "'items':[{'cost':1.0}]}", 400, "VALIDATION_ERROR", "items[0].cost"},
		{HEAD "'items':[{'cost':'1'}]}", 400, "VALIDATION_ERROR", "items[0].cost"},
		{HEAD "'items':[{'cost':1000000001}]}", 400, "VALIDATION_ERROR", "1000000001"},
		{HEAD "'items':[{'cost':1,'inptu':1}]}", 400, "VALIDATION_ERROR", "items[0] has an unknown member"},
		{HEAD "'items':[{'cost':1,'cost':2}]}", 400, "VALIDATION_ERROR", "cost"},
		{HEAD "'items':[{'cost':1}],'idempotencyKey':''}", 400, "VALIDATION_ERROR", "idempotencyKey"},
		{HEAD "'items':[{'cost':1}],'idempotencyKey':null}", 400, "VALIDATION_ERROR", "idempotencyKey"},
		{HEAD "'items':[{'cost':1}],'requester':'x'}", 400, "VALIDATION_ERROR", "requester"},
	};
	struct scene *scene = *state;

	begin(scene);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		scene_must(scene, 0, "POST", BATCHES, cases[i].body, cases[i].status, cases[i].code);
		if (!strstr(scene->last.body, cases[i].words))
			fail_msg("%s: no word of %s: %s", cases[i].body, cases[i].words, scene->last.body);
	}
	scene_must(scene, 0, "POST", BATCHES "?wait=6m", HEAD "'items':[{'cost':1}]}", 400, "VALIDATION_ERROR");
	assert_int_equal(count(scene, "SELECT count(*) FROM hx_batch"), 0);
	assert_int_equal(count(scene, "SELECT count(*) FROM hx_batch_item"), 0);
	scene_stop(scene, 0);
}

static void test_what_is_not_there(void **state)
{
	static const char *const verbs[] = {"/start", "/cancel", "/items/0/accept"};
	struct scene *scene = *state;
	char id[64], path[200];

	begin(scene);
	create_id(scene, HEAD "'items':[{'cost':1}],'hold':true}", id);
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
		at(scene, "POST", "batch_0000000000001", verbs[i], "{}", 404, "NOT_FOUND");
		at(scene, "POST", "nothing", verbs[i], "{}", 404, "NOT_FOUND");
		snprintf(path, sizeof path, BATCHES "/%s%s", id, verbs[i]);
		reply_release(&scene->last);
		assert_true(client_call_with(scene->admin[0], "POST", path, "Hapax-Workspace: other\r\n", "{}", 2,
					     &scene->last));
		assert_string_equal(scene->last.code, "NOT_FOUND");
	}
	at(scene, "GET", "batch_0000000000001", "", NULL, 404, "NOT_FOUND");
	at(scene, "GET", "batch_0000000000001", "?wait=5m", NULL, 404, "NOT_FOUND");
	at(scene, "GET", "batch_0000000000001", "/items", NULL, 404, "NOT_FOUND");
	at(scene, "POST", "batch_0000000000001", "/items", "{'items':[{'cost':1}]}", 404, "NOT_FOUND");
	at(scene, "POST", id, "/items/1/accept", "{}", 404, "NOT_FOUND");
	at(scene, "POST", id, "/items/00/accept", "{}", 404, "NOT_FOUND");
	at(scene, "POST", id, "/items/x/accept", "{}", 404, "NOT_FOUND");
	at(scene, "POST", id, "/items/1/resolve", "{'outcome':'done'}", 404, "NOT_FOUND");
	at(scene, "POST", id, "/items/0/resolve", "{'outcome':'perhaps'}", 400, "VALIDATION_ERROR");
	at(scene, "POST", id, "/items/0/accept", "{}", 409, "WRONG_STATUS");
	at(scene, "POST", id, "/items/0/resolve", "{'outcome':'done'}", 409, "WRONG_STATUS");
	scene_must(scene, 0, "GET", "/api/v1/why/batch_0000000000001", NULL, 404, "NOT_FOUND");
	scene_stop(scene, 0);
}

/* ---- lists ---- */

static void test_lists_come_in_pages(void **state)
{
	struct scene *scene = *state;
	const struct reply *r = &scene->last;
	char ids[3][64], path[200];
	int n = 0;

	begin(scene);
	for (int i = 0; i < 3; i++)
		create_id(scene,
			  i == 2 ? "{'workflow':'once','account':'alice','items':[{'cost':1}],'hold':true}"
				 : HEAD "'items':[{'cost':1},{'cost':2},{'cost':3},{'cost':4},{'cost':5}],'hold':true}",
			  ids[i]);
	scene_must(scene, 0, "GET", BATCHES "?limit=2", NULL, 200, "");
	assert_int_equal(reply_count(r, "items"), 2);
	assert_string_equal(reply_text(r, "items.0.id"), ids[2]);
	snprintf(path, sizeof path, BATCHES "?limit=2&cursor=%s", reply_text(r, "cursor"));
	scene_must(scene, 0, "GET", path, NULL, 200, "");
	assert_int_equal(reply_count(r, "items"), 1);
	assert_string_equal(reply_text(r, "items.0.id"), ids[0]);
	assert_string_equal(reply_text(r, "cursor"), "null");
	scene_must(scene, 0, "GET", BATCHES "?status=PENDING&workflow=once", NULL, 200, "");
	assert_int_equal(reply_count(r, "items"), 1);
	scene_must(scene, 0, "GET", BATCHES "?status=COMPLETED", NULL, 200, "");
	assert_int_equal(reply_count(r, "items"), 0);
	scene_must(scene, 0, "GET", BATCHES "?status=DONE", NULL, 400, "VALIDATION_ERROR");
	scene_must(scene, 0, "GET", BATCHES "?cursor=run_0000000000001", NULL, 400, "VALIDATION_ERROR");

	snprintf(path, sizeof path, "/items?limit=2");
	for (;;) {
		at(scene, "GET", ids[0], path, NULL, 200, "");
		for (size_t i = 0; i < reply_count(r, "items"); i++, n++)
			assert_int_equal(reply_int(r, run_path("items.%d.n", (int)i)), n);
		if (strcmp(reply_text(r, "cursor"), "null") == 0)
			break;
		snprintf(path, sizeof path, "/items?limit=2&cursor=%s", reply_text(r, "cursor"));
	}
	assert_int_equal(n, 5);
	at(scene, "GET", ids[0], "/items?status=PENDING", NULL, 200, "");
	assert_int_equal(reply_count(r, "items"), 5);
	at(scene, "GET", ids[0], "/items?status=SUCCEEDED", NULL, 200, "");
	assert_int_equal(reply_count(r, "items"), 0);
	at(scene, "GET", ids[0], "/items?status=QUEUED", NULL, 400, "VALIDATION_ERROR");
	at(scene, "GET", ids[0], "/items?decision=perhaps", NULL, 400, "VALIDATION_ERROR");
	at(scene, "POST", ids[0], "/cancel", NULL, 200, "");
	at(scene, "GET", ids[0], "/items?decision=cancelled", NULL, 200, "");
	assert_int_equal(reply_count(r, "items"), 5);
	at(scene, "GET", ids[0], "/items?decision=accepted", NULL, 200, "");
	assert_int_equal(reply_count(r, "items"), 0);
	scene_stop(scene, 0);
}

/* ---- what callers decide ---- */

static void test_items_are_accepted(void **state)
{
	struct scene *scene = *state;
	const struct reply *r = &scene->last;
	char id[64];

	begin(scene);
	create_id(scene, HEAD "'items':[{'cost':5},{'cost':7,'input':{'do':'refuse'}},{'cost':1}]}", id);
	await_status(scene, id, "COMPLETED");
	at(scene, "POST", id, "/items/0/accept", "{}", 200, "");
	assert_string_equal(reply_text(r, "decision"), "accepted");
	assert_int_equal(reply_int(r, "charged"), 5);
	at(scene, "POST", id, "/items/0/accept", NULL, 200, "");
	at(scene, "POST", id, "/items/1/accept", NULL, 409, "WRONG_STATUS");
	at(scene, "POST", id, "/items/0/accept", "{'by':'x'}", 400, "VALIDATION_ERROR");
	at(scene, "GET", id, "", NULL, 200, "");
	assert_int_equal(reply_int(r, "accepted"), 1);
	assert_int_equal(reply_int(r, "succeeded"), 2);
	at(scene, "GET", id, "/items?decision=accepted", NULL, 200, "");
	assert_int_equal(reply_count(r, "items"), 1);
	scene_stop(scene, 0);
}

/* What nobody knows stays charged until a person says. */
static void test_a_person_resolves_what_is_unknown(void **state)
{
	struct scene *scene = *state;
	const struct reply *r = &scene->last;
	char id[64];

	begin(scene);
	create_id(scene,
		  "{'workflow':'once','account':'alice','items':[{'cost':5,'input':{'do':'drop'}},"
		  "{'cost':7,'input':{'do':'drop'}},{'cost':1}]}",
		  id);
	await_status(scene, id, "COMPLETED");
	assert_int_equal(reply_int(r, "unknown"), 2);
	assert_int_equal(reply_int(r, "charged"), 13);
	assert_balance(scene, 1000 - 13);
	run_why(scene, id, "waits for a person to resolve 2 of its items");
	at(scene, "POST", id, "/items/0/accept", NULL, 409, "WRONG_STATUS");
	at(scene, "POST", id, "/items/0/resolve", "{'outcome':'done','output':{'art':'found'}}", 200, "");
	assert_string_equal(reply_text(r, "status"), "SUCCEEDED");
	assert_string_equal(reply_text(r, "output.art"), "found");
	at(scene, "POST", id, "/items/1/resolve", "{'outcome':'not_done'}", 200, "");
	assert_string_equal(reply_text(r, "status"), "FAILED");
	assert_int_equal(reply_int(r, "charged"), 0);
	at(scene, "POST", id, "/items/1/resolve", "{'outcome':'not_done'}", 200, ""); /* said again: nothing happens */
	at(scene, "POST", id, "/items/1/resolve", "{'outcome':'done'}", 409, "WRONG_STATUS");
	assert_balance(scene, 1000 - 6);
	at(scene, "GET", id, "", NULL, 200, "");
	assert_counts(scene, "COMPLETED", 2, 1, 0, 6, 0);
	assert_int_equal(reply_int(r, "unknown"), 0);
	scene_stop(scene, 0);
}

/* ---- money ---- */

static void test_out_of_credit_until_there_is_some(void **state)
{
	struct scene *scene = *state;
	const struct reply *r = &scene->last;
	char id[64], other[64];

	begin(scene);
	create_id(scene, "{'workflow':'once','account':'alice','items':[{'cost':900},{'cost':150},{'cost':1}]}", id);
	await_status(scene, id, "OUT_OF_CREDIT");
	assert_int_equal(reply_int(r, "needs"), 150);
	assert_int_equal(reply_int(r, "charged"), 900);
	run_why(scene, id, "its next item needs 150, and the account \"alice\" has 100");
	at(scene, "POST", id, "/start", NULL, 200, ""); /* it was started, and waits for money alone */
	assert_string_equal(reply_text(r, "status"), "OUT_OF_CREDIT");
	create_id(scene, "{'workflow':'once','account':'alice','items':[{'cost':101}]}", other);
	await_status(scene, other, "OUT_OF_CREDIT");
	at(scene, "POST", other, "/cancel", NULL, 202, "");
	at(scene, "GET", other, "?wait=30s", NULL, 200, "");
	assert_counts(scene, "CANCELLED", 0, 0, 1, 0, 0);
	scene_must(scene, 0, "POST", ACCOUNTS "/alice/credit", "{'amount':51,'key':'more'}", 200, "");
	at(scene, "GET", id, "?wait=30s", NULL, 200, "");
	assert_counts(scene, "COMPLETED", 3, 0, 0, 1051, 0);
	assert_balance(scene, 0);
	scene_stop(scene, 0);
}

/* ---- keys ---- */

static void test_the_header_replays_the_bytes(void **state)
{
	struct scene *scene = *state;
	const struct reply *r = &scene->last;
	char *first, id[64], path[200];

	begin(scene);
	run_keyed(scene, "POST", BATCHES, "h-1", HEAD "'items':[{'cost':1}],'hold':true}", 201, "created");
	first = strdup(r->body);
	snprintf(id, sizeof id, "%s", reply_text(r, "id"));
	run_keyed(scene, "POST", BATCHES, "h-1", HEAD "'items':[{'cost':1}],'hold':true}", 201, "replayed");
	assert_string_equal(r->body, first);
	run_keyed(scene, "POST", BATCHES, "h-1", HEAD "'items':[{'cost':2}],'hold':true}", 422, "mismatch");
	/* Items land once. */
	snprintf(path, sizeof path, BATCHES "/%s/items", id);
	run_keyed(scene, "POST", path, "i-1", "{'items':[{'cost':2},{'cost':3}]}", 200, "created");
	assert_int_equal(reply_int(r, "total"), 3);
	run_keyed(scene, "POST", path, "i-1", "{'items':[{'cost':2},{'cost':3}]}", 200, "replayed");
	assert_int_equal(count(scene, "SELECT total FROM hx_batch"), 3);
	run_keyed(scene, "POST", path, "i-2", "{'items':[{'cost':-2}]}", 400, "");
	run_keyed(scene, "POST", path, "i-2", "{'items':[{'cost':4}]}", 200, "created");
	snprintf(path, sizeof path, BATCHES "/%s/start", id);
	run_keyed(scene, "POST", path, "s-1", "{}", 200, "created");
	await_status(scene, id, "COMPLETED");
	run_keyed(scene, "POST", path, "s-1", "{}", 200, "replayed");
	assert_string_equal(reply_text(r, "status"), "QUEUED");
	snprintf(path, sizeof path, BATCHES "/%s/items/1/accept", id);
	run_keyed(scene, "POST", path, "a-1", "{}", 200, "created");
	run_keyed(scene, "POST", path, "a-1", "{}", 200, "replayed");
	run_keyed(scene, "POST", path, "a-2", "{}", 200, "created");
	snprintf(path, sizeof path, BATCHES "/%s/cancel", id);
	run_keyed(scene, "POST", path, "c-1", "{}", 409, "");
	/* With `wait`, the first is told of the end; what is kept is the creation. */
	run_keyed(scene, "POST", BATCHES "?wait=30s", "h-2", HEAD "'items':[{'cost':1}]}", 201, "created");
	assert_string_equal(reply_text(r, "status"), "COMPLETED");
	run_keyed(scene, "POST", BATCHES "?wait=30s", "h-2", HEAD "'items':[{'cost':1}]}", 201, "replayed");
	assert_string_equal(reply_text(r, "status"), "QUEUED");
	/* A crash forgets none of it. */
	scene_kill(scene, 0);
	scene_start(scene, 0);
	run_keyed(scene, "POST", BATCHES, "h-1", HEAD "'items':[{'cost':1}],'hold':true}", 201, "replayed");
	assert_string_equal(r->body, first);
	snprintf(path, sizeof path, BATCHES "/%s/items", id);
	run_keyed(scene, "POST", path, "i-1", "{'items':[{'cost':2},{'cost':3}]}", 200, "replayed");
	assert_int_equal(count(scene, "SELECT count(*) FROM hx_batch"), 2);
	free(first);
	scene_stop(scene, 0);
}

struct caller {
	pthread_t thread;
	struct client *client;
	struct reply reply;
	const struct strbuf *body;
};

static void *call_create(void *context)
{
	struct caller *caller = context;

	/* The test looks at the status. */
	(void)client_call(caller->client, "POST", BATCHES, caller->body->p, caller->body->n, &caller->reply);
	return NULL;
}

/* However many slices it takes. Who comes while it is loaded is told so. */
static void create_at_once(struct scene *scene, int nodes, int items_n)
{
	enum { CALLERS = 20 };
	struct caller callers[CALLERS] = {0};
	int created = 0, told = 0;
	struct strbuf body;
	char *text;

	many(HEAD "'hold':true,'idempotencyKey':'k',", items_n, &body);
	text = scene_text(scene, body.p);
	memcpy(body.p, text, body.n);
	free(text);
	for (int i = 0; i < CALLERS; i++) {
		callers[i].client = client_new(scene->nodes[i % nodes]->port, NULL);
		callers[i].body = &body;
	}
	for (int i = 0; i < CALLERS; i++)
		assert_int_equal(pthread_create(&callers[i].thread, NULL, call_create, &callers[i]), 0);
	for (int i = 0; i < CALLERS; i++)
		pthread_join(callers[i].thread, NULL);
	for (int i = 0; i < CALLERS; i++) {
		const struct reply *reply = &callers[i].reply;

		created += reply->status == 201;
		told += reply->status == 409;
		if (reply->status == 409)
			assert_string_equal(reply->code, "IN_FLIGHT");
		else
			assert_int_equal(reply_int(reply, "total"), items_n);
		client_free(callers[i].client);
		reply_release(&callers[i].reply);
	}
	printf("# %d items with one key by %d callers on %d node(s): %d created, %d told 409\n", items_n, CALLERS,
	       nodes, created, told);
	assert_int_equal(created, 1);
	assert_int_equal(count(scene, "SELECT count(*) FROM hx_batch"), 1);
	assert_int_equal(count(scene, "SELECT count(*) FROM hx_batch_item"), items_n);
	scene_must(scene, 0, "POST", BATCHES, HEAD "'idempotencyKey':'k','items':[{'cost':7}]}", 200, "");
	assert_int_equal(reply_int(&scene->last, "total"), items_n);
	strbuf_release(&body);
}

static void test_a_key_creates_one_batch(void **state)
{
	struct scene *scene = *state;

	begin(scene);
	create_at_once(scene, 1, 3);
	scene_stop(scene, 0);
}

static void test_a_key_creates_one_batch_on_two_nodes(void **state)
{
	struct scene *scene = *state;

	begin(scene);
	scene_start(scene, 1);
	create_at_once(scene, 2, 1201);
	scene_stop(scene, 0);
	scene_stop(scene, 1);
}

/* ---- size ---- */

static void test_a_thousand_items_and_one(void **state)
{
	struct scene *scene = *state;
	struct strbuf body;
	char id[64];

	begin(scene);
	many(HEAD, 1000, &body);
	create_id(scene, body.p, id);
	strbuf_release(&body);
	assert_int_equal(reply_int(&scene->last, "total"), 1000);
	at(scene, "GET", id, "?wait=2m", NULL, 200, "");
	assert_counts(scene, "COMPLETED", 1000, 0, 0, 1000, 0);
	assert_balance(scene, 0);
	assert_int_equal(service_count(scene->service, "/draw", NULL), 1000);
	scene_stop(scene, 0);
}

/* In one request; torn down before the cancel is answered. */
static void test_a_hundred_thousand_items(void **state)
{
	struct scene *scene = *state;
	const struct reply *r = &scene->last;
	struct strbuf body;
	char id[64];

	begin(scene);
	many(HEAD "'hold':true,", 100000, &body);
	run_keyed(scene, "POST", BATCHES, "large", body.p, 201, "created");
	snprintf(id, sizeof id, "%s", reply_text(r, "id"));
	printf("# 100,000 items are loaded in %lld ms\n", (long long)r->took_ms);
	strbuf_release(&body);
	assert_int_equal(reply_int(r, "total"), 100000);
	at(scene, "GET", id, "/items?cursor=99999", NULL, 200, "");
	assert_int_equal(reply_count(r, "items"), 1);
	assert_int_equal(reply_int(r, "items.0.n"), 99999);
	assert_int_equal(reply_int(r, "items.0.input.n"), 99999);
	at(scene, "GET", id, "/items?cursor=9223372036854775807", NULL, 200, "");
	assert_int_equal(reply_count(r, "items"), 0);
	at(scene, "POST", id, "/cancel", NULL, 200, "");
	printf("# and cancelled in %lld ms\n", (long long)r->took_ms);
	assert_counts(scene, "CANCELLED", 0, 0, 100000, 0, 0);
	scene_stop(scene, 0);
}

static void test_an_input_is_at_most_a_mebibyte(void **state)
{
	enum { LIMIT = 1 << 20 };
	static char body[LIMIT + 200];
	struct scene *scene = *state;

	begin(scene);
	for (int past = 0; past < 2; past++) {
		snprintf(body, sizeof body, HEAD "'hold':true,'items':[{'cost':1},{'cost':1,'input':'%0*d'}]}",
			 LIMIT - 2 + past, 0);
		scene_must(scene, 0, "POST", BATCHES, body, past ? 413 : 201, past ? "TOO_LARGE" : "");
	}
	assert_non_null(strstr(scene->last.body, "items[1].input"));
	assert_int_equal(count(scene, "SELECT count(*) FROM hx_batch"), 1);
	scene_stop(scene, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_SQLITE(test_a_batch_is_worked_off),
		ON_SQLITE(test_a_held_batch_is_filled_and_started),
		ON_SQLITE(test_requests_that_create_nothing),
		ON_SQLITE(test_what_is_not_there),
		ON_SQLITE(test_lists_come_in_pages),
		ON_SQLITE(test_items_are_accepted),
		ON_SQLITE(test_a_person_resolves_what_is_unknown),
		ON_SQLITE(test_a_key_creates_one_batch),
		ON_SQLITE(test_out_of_credit_until_there_is_some),
		ON_SQLITE(test_the_header_replays_the_bytes),
		ON_SQLITE(test_a_thousand_items_and_one),
		ON_SQLITE(test_a_hundred_thousand_items),
		ON_SQLITE(test_an_input_is_at_most_a_mebibyte),
		ON_POSTGRES(test_a_batch_is_worked_off),
		ON_POSTGRES(test_a_held_batch_is_filled_and_started),
		ON_POSTGRES(test_lists_come_in_pages),
		ON_POSTGRES(test_items_are_accepted),
		ON_POSTGRES(test_a_person_resolves_what_is_unknown),
		ON_POSTGRES(test_a_key_creates_one_batch_on_two_nodes),
		ON_POSTGRES(test_out_of_credit_until_there_is_some),
		ON_POSTGRES(test_the_header_replays_the_bytes),
		ON_POSTGRES(test_a_thousand_items_and_one),
		ON_POSTGRES(test_a_hundred_thousand_items),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
