/*
 * Idempotency-Key at our own API, over real sockets, on both stores: what was done once is answered with the same bytes
 * for as long as its record lives, and is not done again.
 *
 *   whatever is sent again     the same status, fields and body, and nothing happens: create, step, resolve, redrive,
 *                              definition, sweep; after a restart, too
 *   at the same time           one executes, the others are told 409 or get its answer
 *   another request            422, whether the first has ended or not
 *   what failed                is not kept: the next try runs
 *   nobody knows (504, kill)   409 while the lease lasts; then the step's own doors decide
 *
 * Steps have a file of their own, test_api_gate_steps.c. And the transactional half: kill -9 at any moment leaves the entity and its record, or neither.
 */
#include "keyed_calls.h"

#define CALLERS 50
#define KILLS 12

/* ---- one unit ---- */

static void test_create_is_replayed_to_the_byte(void **state)
{
	struct scene *scene = *state;
	struct memory first;

	begin(scene, 1);
	must(scene, "POST", CREATE, "k-1", "{'data':{'a':1}}", 201, "", "created");
	first = remember(&scene->last);
	assert_string_equal(first.type, "application/json");
	assert_string_equal(first.etag, "\"1\"");
	/* Quoted or bare, and JSON by what it says. */
	assert_same(must(scene, "POST", CREATE, "k-1", "{'data':{'a':1}}", 201, "", "replayed"), &first);
	assert_same(must(scene, "POST", CREATE, "\"k-1\"", "{ 'data' : {'a':1.0} }", 201, "", "replayed"), &first);
	must(scene, "POST", CREATE, "k-1", "{'data':{'a':2}}", 422, "FINGERPRINT_MISMATCH", "mismatch");
	/* Others are others. */
	must(scene, "POST", CREATE, "k-2", "{'data':{'a':1}}", 201, "", "created");
	assert_string_not_equal(scene->last.body, first.body);
	scene_must(scene, 0, "POST", CREATE, "{'data':{'a':1}}", 201, NULL);
	assert_null(strstr(scene->last.head, "Idempotency-"));
	assert_int_equal(count(scene, "SELECT count(*) FROM hx_entity"), 3);
	assert_int_equal(outcomes(scene, "created"), 2);
	assert_int_equal(outcomes(scene, "replayed"), 2);
	assert_int_equal(outcomes(scene, "mismatch"), 1);

	scene_kill(scene, 0);
	scene_start(scene, 0);
	assert_same(must(scene, "POST", CREATE, "k-1", "{'data':{'a':1}}", 201, "", "replayed"), &first);
	assert_int_equal(count(scene, "SELECT count(*) FROM hx_entity"), 3);
	scene_stop(scene, 0);
	free(first.body);
}

/* A large answer comes back whole. */
static void test_large_answer_is_replayed(void **state)
{
	struct scene *scene = *state;
	size_t n = 1000000;
	char *body = malloc(n + 20);
	struct memory first;

	begin(scene, 1);
	snprintf(body, 20, "{'data':'");
	memset(body + 9, 'x', n);
	snprintf(body + 9 + n, 11, "'}");
	must(scene, "POST", CREATE, "large", body, 201, "", "created");
	first = remember(&scene->last);
	assert_true(strlen(first.body) > n);
	assert_same(must(scene, "POST", CREATE, "large", body, 201, "", "replayed"), &first);
	scene_stop(scene, 0);
	free(first.body);
	free(body);
}

static void test_key_counts_for_its_workspace_and_path(void **state)
{
	struct scene *scene = *state;
	struct client *somebody;
	struct reply reply;

	scene_define(scene, "rest",
		     "{'workflow':'rest','kind':'run','steps':[{'name':'a','type':'wait','for':'1ms'}]}");
	begin(scene, 1);
	must(scene, "POST", CREATE, "k", "{}", 201, "", "created");
	must(scene, "POST", CREATE "/none/steps/tell", "k", "{}", 404, "NOT_FOUND", "");
	somebody = client_new(scene->nodes[0]->port, "somebody");
	assert_true(client_call_with(somebody, "POST", CREATE, "Idempotency-Key: k\r\nHapax-Workspace: other\r\n", "{}",
				     2, &reply));
	assert_int_equal(reply.status, 201);
	assert_string_equal(field_of(&reply, "Idempotency-Status"), "created");
	reply_release(&reply);
	/* The query is no part of it; one that the route does not know is refused before the key is looked at. */
	must(scene, "POST", "/api/v1/workflow-runs", "k", "{'definitionId':'rest'}", 201, "", "created");
	must(scene, "POST", "/api/v1/workflow-runs?wait=1ms", "k", "{'definitionId':'rest'}", 201, "", "replayed");
	must(scene, "POST", CREATE "?a=b", "k", "{}", 400, "VALIDATION_ERROR", "");
	client_free(somebody);
	scene_stop(scene, 0);
}

/* Whom the query names in the place of a segment is another one. */
static void test_key_counts_for_the_run_that_the_query_names(void **state)
{
	struct scene *scene = *state;
	char a[40];

	scene_define(scene, "rest", "{'workflow':'rest','kind':'run','steps':[{'name':'a','type':'approval'}]}");
	begin(scene, 1);
	scene_must(scene, 0, "POST", "/api/v1/workflow-runs", "{'definitionId':'rest','idempotencyKey':'a'}", 201, "");
	scene_must(scene, 0, "POST", "/api/v1/workflow-runs", "{'definitionId':'rest','idempotencyKey':'b'}", 201, "");
	must(scene, "POST", "/api/v1/workflow-runs/by-key/rest/pause?key=a", "k", "{}", 200, "", "created");
	snprintf(a, sizeof a, "%s", reply_text(&scene->last, "id"));
	must(scene, "POST", "/api/v1/workflow-runs/by-key/rest/pause?key=a", "k", "{}", 200, "", "replayed");
	must(scene, "POST", "/api/v1/workflow-runs/by-key/rest/pause?key=b", "k", "{}", 200, "", "created");
	assert_string_not_equal(reply_text(&scene->last, "id"), a);
	must(scene, "POST", "/api/v1/workflow-runs/by-key/rest/pause?key=a&key=b", "k", "{}", 400, "VALIDATION_ERROR",
	     "");
	scene_stop(scene, 0);
}

/* Another requester is told nothing but that: neither what was answered nor whether the body is the same. */
static void test_key_of_another_requester_is_refused(void **state)
{
	static const char *const bodies[] = {"{}", "{\"data\":{\"a\":1}}"};
	struct scene *scene = *state;
	struct client *mallory;
	struct reply reply;

	begin(scene, 1);
	must(scene, "POST", CREATE, "k", "{}", 201, "", "created");
	mallory = client_new(scene->nodes[0]->port, "mallory");
	for (int i = 0; i < 2; i++) {
		assert_true(client_call_with(mallory, "POST", CREATE, "Idempotency-Key: k\r\n", bodies[i],
					     strlen(bodies[i]), &reply));
		if (reply.status != 422 || strcmp(reply.code, "CALLER_MISMATCH") != 0)
			fail_msg("%d: %s%s", i, reply.head, reply.body);
		assert_string_equal(field_of(&reply, "Idempotency-Status"), "mismatch");
		reply_release(&reply);
	}
	assert_int_equal(count(scene, "SELECT count(*) FROM hx_entity"), 1);
	must(scene, "POST", CREATE, "k", "{}", 201, "", "replayed");
	client_free(mallory);
	scene_stop(scene, 0);
}

static void test_malformed_key_runs_nothing(void **state)
{
	static const char *const bad[] = {"", "a b", "\"open", "\"a\"b", "k\r\nIdempotency-Key: k", "\"\"", "\"\\x\""};
	struct scene *scene = *state;
	char long_key[258];

	begin(scene, 1);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		must(scene, "POST", CREATE, bad[i], "{}", 400, "KEY_INVALID", "");
	memset(long_key, 'k', 256);
	long_key[256] = '\0';
	must(scene, "POST", CREATE, long_key, "{}", 400, "KEY_INVALID", "");
	assert_int_equal(count(scene, "SELECT count(*) FROM hx_entity"), 0);
	assert_int_equal(count(scene, "SELECT count(*) FROM hx_gate_record"), 0);
	long_key[255] = '\0';
	must(scene, "POST", CREATE, long_key, "{}", 201, "", "created");
	/* Reading needs none and looks at none. */
	must(scene, "GET", CREATE, "a b", NULL, 200, "", "");
	scene_stop(scene, 0);
}

static void test_error_is_not_kept(void **state)
{
	struct scene *scene = *state;

	begin(scene, 1);
	scene_create(scene, "a");
	must(scene, "POST", CREATE, "k", "{'id':'a'}", 409, "ALREADY_EXISTS", "");
	must(scene, "POST", CREATE, "k", "{'id':7}", 400, "VALIDATION_ERROR", "");
	must(scene, "POST", "/api/v1/entities/biling", "k", "{}", 404, "NOT_FOUND", "");
	must(scene, "POST", CREATE "/a/steps/close", "k", "{'version':7}", 409, "CONCURRENCY_ERROR", "");
	must(scene, "POST", "/api/v1/jobs/job_0000000000001/redrive", "k", NULL, 404, "NOT_FOUND", "");
	assert_int_equal(count(scene, "SELECT count(*) FROM hx_gate_record"), 0);
	must(scene, "POST", CREATE, "k", "{'id':'b'}", 201, "", "created");
	scene_stop(scene, 0);
}

/* ---- at the same time ---- */

static void fifty_at_once(struct scene *scene, int nodes)
{
	static struct background calls[CALLERS];
	int created = 0, replayed = 0;
	struct memory first = {0};

	begin(scene, nodes);
	memset(calls, 0, sizeof calls);
	for (int i = 0; i < CALLERS; i++)
		start_call(scene, i % nodes, &calls[i], CREATE, "once");
	for (int i = 0; i < CALLERS; i++) {
		struct reply *reply = join_call(&calls[i]);

		if (reply->status == 201 && !first.body)
			first = remember(reply);
		if (reply->status == 201)
			assert_same(reply, &first);
		else
			assert_string_equal(reply->code, "IN_FLIGHT");
		created += strcmp(field_of(reply, "Idempotency-Status"), "created") == 0;
		replayed += strcmp(field_of(reply, "Idempotency-Status"), "replayed") == 0;
		free_call(&calls[i]);
	}
	assert_int_equal(created, 1);
	assert_int_equal(count(scene, "SELECT count(*) FROM hx_entity"), 1);
	printf("# gate, %d creations with one key on %d node(s): 1 created, %d replayed, %d told 409\n", CALLERS, nodes,
	       replayed, CALLERS - 1 - replayed);
	for (int node = 0; node < nodes; node++)
		scene_stop(scene, node);
	free(first.body);
}

static void test_fifty_at_once(void **state)
{
	fifty_at_once(*state, 1);
}

static void test_fifty_at_once_on_two_nodes(void **state)
{
	fifty_at_once(*state, 2);
}

/* ---- the rest of the API ---- */

static bool is_parked(struct scene *scene)
{
	return reply_count(scene_must(scene, 0, "GET", "/api/v1/jobs?status=PARKED", NULL, 200, NULL), "items") == 1;
}

static void test_redrive(void **state)
{
	struct scene *scene = *state;
	char path[100];

	begin(scene, 1);
	service_play(scene->service, "/mail", &(struct play){.status = 400});
	scene_create(scene, "a");
	must(scene, "POST", CREATE "/a/steps/tell", "k", "{}", 200, "", "created");
	must(scene, "POST", CREATE "/a/steps/tell", "k", "{}", 200, "", "replayed");
	AWAIT(ARRIVE_MS, is_parked(scene));
	snprintf(path, sizeof path, "/api/v1/jobs/%s/redrive", reply_text(&scene->last, "items.0.id"));
	must(scene, "POST", path, "k", NULL, 200, "", "created");
	service_await(scene->service, "/mail", 2, ARRIVE_MS);
	AWAIT(ARRIVE_MS, is_parked(scene));
	must(scene, "POST", path, "k", NULL, 200, "", "replayed");
	assert_string_equal(reply_text(&scene->last, "status"), "AVAILABLE");
	assert_true(is_parked(scene));
	assert_int_equal(service_count(scene->service, "/mail", NULL), 2);
	assert_int_equal(scene_jobs(scene, 0), 1);
	scene_stop(scene, 0);
}

static void test_definition_and_sweep(void **state)
{
	static const char text[] = "{'workflow':'more','kind':'entity','status_types':['a','b'],'initial_status':'a',"
				   "'steps':[{'step_id':1,'step_key':'go','status':'a','successful_state':'b'}]}";
	static const char newer[] = "{'workflow':'more','kind':'entity','status_types':['a','c'],'initial_status':'a',"
				    "'steps':[{'step_id':1,'step_key':'go','status':'a','successful_state':'c'}]}";
	struct scene *scene = *state;
	struct memory m;

	begin(scene, 1);
	must(scene, "PUT", "/api/v1/definitions/more", "k", "{'workflow':'more'}", 422, "DEFINITION_INVALID", "");
	must(scene, "PUT", "/api/v1/definitions/more", "k", text, 200, "", "created");
	m = remember(&scene->last);
	assert_same(must(scene, "PUT", "/api/v1/definitions/more", "k", text, 200, "", "replayed"), &m);
	must(scene, "PUT", "/api/v1/definitions/more", "k", definition, 422, "FINGERPRINT_MISMATCH", "mismatch");
	must(scene, "PUT", "/api/v1/definitions/more", "k2", newer, 200, "", "created");
	assert_int_equal(reply_int(&scene->last, "version"), 2);
	/* The old key tells the old answer, and does not bring the old version back. */
	assert_same(must(scene, "PUT", "/api/v1/definitions/more", "k", text, 200, "", "replayed"), &m);
	scene_must(scene, 0, "GET", "/api/v1/definitions", NULL, 200, NULL);
	assert_int_equal(reply_int(&scene->last, "items.1.version"), 2);
	must(scene, "POST", "/api/v1/modules/none/sweep", "k", NULL, 404, "NOT_FOUND", "");
	must(scene, "POST", "/api/v1/modules/billing/sweep", "k", NULL, 200, "", "created");
	must(scene, "POST", "/api/v1/modules/billing/sweep", "k", NULL, 200, "", "replayed");
	scene_stop(scene, 0);
	free(m.body);
}

/* ---- both or neither ---- */

/* Creates an entity and fires its step, each with a key, one entity after another, until the server is gone. */
struct worker {
	pthread_t thread;
	struct client *client;
	int n;            /* the entity that it is at */
	bool created;     /* and whether it was told that it is there */
	_Atomic int done; /* answers, in this life of the server */
};

static bool call_for(struct worker *w, const char *path, const char *what, const char *body)
{
	struct reply reply;
	char fields[60];
	bool done;

	snprintf(fields, sizeof fields, "Idempotency-Key: %s-%d\r\n", what, w->n);
	done = client_call_with(w->client, "POST", path, fields, body, strlen(body), &reply) && reply.status < 300;
	reply_release(&reply);
	w->done += done;
	return done;
}

static void *work(void *context)
{
	struct worker *w = context;
	char path[100], body[40];

	for (;; w->n++) {
		snprintf(path, sizeof path, CREATE "/n-%d/steps/tell", w->n);
		snprintf(body, sizeof body, "{\"id\":\"n-%d\"}", w->n);
		w->created = call_for(w, CREATE, "create", body);
		if (!w->created || !call_for(w, path, "tell", "{}"))
			return NULL;
	}
}

/* The entity at which it died: what is there has its record, and what has its record is there. Returns how much of it was
 * there and had not been told. */
static int check_last(struct scene *scene, int n, bool created)
{
	char path[100], key[40], body[40];
	bool exists, told;

	snprintf(path, sizeof path, CREATE "/n-%d", n);
	exists = scene_call(scene, 0, "GET", path, NULL)->status == 200;
	snprintf(key, sizeof key, "create-%d", n);
	snprintf(body, sizeof body, "{'id':'n-%d'}", n);
	assert_true(exists || !created);
	must(scene, "POST", CREATE, key, body, 201, "", exists ? "replayed" : "created");

	told = strcmp(reply_text(scene_must(scene, 0, "GET", path, NULL, 200, NULL), "status"), "told") == 0;
	snprintf(path, sizeof path, CREATE "/n-%d/steps/tell", n);
	snprintf(key, sizeof key, "tell-%d", n);
	end_leases(scene);
	must(scene, "POST", path, key, "{}", 200, "", told ? "replayed" : "created");
	return told + (exists && !created);
}

static void test_kill_leaves_both_or_neither(void **state)
{
	struct scene *scene = *state;
	struct worker w = {.n = 1};
	int untold = 0;

	begin(scene, 1);
	srand(7);
	for (int round = 0; round < KILLS; round++) {
		w.done = 0;
		w.client = client_new(scene->nodes[0]->port, "admin");
		assert_int_equal(pthread_create(&w.thread, NULL, work, &w), 0);
		AWAIT(ARRIVE_MS, w.done >= 1 + rand() % 20);
		for (volatile int spin = rand() % 300000; spin > 0; spin--)
			; /* at another moment of a request each time */
		scene_kill(scene, 0);
		pthread_join(w.thread, NULL);
		client_free(w.client);
		scene_start(scene, 0);
		untold += check_last(scene, w.n++, w.created);
		assert_int_equal(count(scene, "SELECT count(*) FROM hx_entity"), w.n - 1);
		assert_int_equal(count(scene, "SELECT count(*) FROM hx_subject WHERE status = 'told'"), w.n - 1);
		assert_int_equal(count(scene, "SELECT count(*) FROM hx_gate_record WHERE status = 2"), 2 * (w.n - 1));
	}
	printf("# gate, %d kills during creations and steps: %d were durable and had not been told\n", KILLS, untold);
	scene_stop(scene, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(test_create_is_replayed_to_the_byte),
		ON_BOTH(test_large_answer_is_replayed),
		ON_SQLITE(test_key_counts_for_its_workspace_and_path),
		ON_BOTH(test_key_counts_for_the_run_that_the_query_names),
		ON_SQLITE(test_key_of_another_requester_is_refused),
		ON_SQLITE(test_malformed_key_runs_nothing),
		ON_BOTH(test_error_is_not_kept),
		ON_BOTH(test_fifty_at_once),
		cmocka_unit_test_setup_teardown(test_fifty_at_once_on_two_nodes, scene_set_up_postgres,
						scene_tear_down),
		ON_BOTH(test_redrive),
		ON_BOTH(test_definition_and_sweep),
		ON_SQLITE(test_kill_leaves_both_or_neither),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
