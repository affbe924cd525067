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
 * And the transactional half: kill -9 at any moment leaves the entity and its record, or neither.
 */
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "gate/recall.h"

#include "support/await.h"
#include "support/scene.h"

#define ARRIVE_MS 60000
#define CALLERS 50
#define KILLS 12
#define HASTY 4
#define CREATE "/api/v1/entities/billing"

static const char definition[] =
	"{'workflow':'billing','kind':'entity','status_types':['approved','closing','closed','asking','told'],"
	"'initial_status':'approved','actions':{"
	"'Close':{'kind':'http','url':'@/close','effect':'claimed'},"
	"'Mail':{'kind':'http','url':'@/mail','effect':'keyed'}},"
	"'steps':[{'step_id':20,'step_key':'close','status':'approved','successful_state':'closed',"
	"'action':'Close','claim_state':['closing','approved']},"
	"{'step_id':21,'step_key':'ask','status':'approved','successful_state':'closed',"
	"'action':'Close','claim_state':['asking','approved'],'on_unknown':'hold'},"
	"{'step_id':30,'step_key':'tell','status':'approved','successful_state':'told',"
	"'success_after_effect':['Mail']}]}";

static const char configuration[] =
	"{'modules':{'billing':{'janitor':{'every':'100ms','stuck_after':'1s'}}},'lease':'1s'}";

static void begin(struct scene *scene, int nodes)
{
	scene_define(scene, "billing", definition);
	scene_configure(scene, configuration);
	for (int node = 0; node < nodes; node++)
		scene_start(scene, node);
}

/* ---- calls with a key ---- */

/* A body with ' for ", NULL: none. Like scene_call, with a key as it stands in the head; its reply is scene->last. */
static struct reply *keyed(struct scene *scene, int node, const char *method, const char *path, const char *key,
			   const char *body)
{
	char *text = scene_text(scene, body ? body : "");
	char fields[600];

	snprintf(fields, sizeof fields, "Idempotency-Key: %s\r\n", key);
	reply_release(&scene->last);
	if (!client_call_with(scene->admin[node], method, path, fields, text, strlen(text), &scene->last))
		fail_msg("%s %s was not answered", method, path);
	free(text);
	return &scene->last;
}

static const char *field_of(const struct reply *reply, const char *name)
{
	static char values[4][200];
	static unsigned turn;
	char *value = values[turn++ % 4], wanted[60];
	const char *at;

	snprintf(wanted, sizeof wanted, "\r\n%s: ", name);
	at = strcasestr(reply->head, wanted);
	snprintf(value, sizeof values[0], "%.*s", at ? (int)strcspn(at + strlen(wanted), "\r") : 0,
		 at ? at + strlen(wanted) : "");
	return value;
}

/* status "": there is no Idempotency-Status. */
static struct reply *must(struct scene *scene, const char *method, const char *path, const char *key, const char *body,
			  int status, const char *code, const char *outcome)
{
	struct reply *reply = keyed(scene, 0, method, path, key, body);

	if (reply->status != status || strcmp(reply->code, code) != 0 ||
	    strcmp(field_of(reply, "Idempotency-Status"), outcome) != 0 ||
	    (strcmp(field_of(reply, "Idempotency-Replayed"), "true") == 0) != (strcmp(outcome, "replayed") == 0))
		fail_msg("%s %s with %s: to be %d %s %s, and is: %s%.600s", method, path, key, status, code, outcome,
			 reply->head, reply->body);
	return reply;
}

/* A creation whose answer is too large to be recalled (gate/recall.h): every repetition asks the store. */
static const char *large(void)
{
	static char text[RECALL_BYTES_MAX + 100];

	snprintf(text, sizeof text, "{'data':{'x':'%0*d'}}", RECALL_BYTES_MAX, 0);
	return text;
}

/* An answer to compare others with. */
struct memory {
	int status;
	char *body;
	char type[100], etag[40];
};

static struct memory remember(const struct reply *reply)
{
	struct memory m = {.status = reply->status, .body = strdup(reply->body)};

	snprintf(m.type, sizeof m.type, "%s", field_of(reply, "Content-Type"));
	snprintf(m.etag, sizeof m.etag, "%s", field_of(reply, "ETag"));
	return m;
}

static void assert_same(const struct reply *reply, const struct memory *m)
{
	assert_int_equal(reply->status, m->status);
	assert_string_equal(reply->body, m->body);
	assert_string_equal(field_of(reply, "Content-Type"), m->type);
	assert_string_equal(field_of(reply, "ETag"), m->etag);
}

static int64_t count(struct scene *scene, const char *sql)
{
	char cell[64];

	scene_sql(scene, sql, cell, sizeof cell);
	return strtoll(cell, NULL, 10);
}

static int64_t outcomes(struct scene *scene, const char *outcome)
{
	char name[80];

	snprintf(name, sizeof name, "hapax_gate_outcomes_total{outcome=\"%s\"}", outcome);
	return scene_metric(scene, 0, name);
}

/* As after 60 s: the holder of every record that is not completed is not trusted any more. */
static void end_leases(struct scene *scene)
{
	scene_sql(scene, "UPDATE hx_gate_record SET until = 1 WHERE status = 1", NULL, 0);
}

/* A call in the background. */
struct background {
	pthread_t thread;
	struct client *client;
	const char *path;
	char fields[100];
	struct reply reply;
};

static void *run_call(void *context)
{
	struct background *b = context;

	(void)client_call_with(b->client, "POST", b->path, b->fields, "{}", 2,
			       &b->reply); /* the test sees the status */
	return NULL;
}

static void start_call(struct scene *scene, int node, struct background *b, const char *path, const char *key)
{
	b->client = client_new(scene->nodes[node]->port, "admin");
	b->path = path;
	snprintf(b->fields, sizeof b->fields, "Idempotency-Key: %s\r\n", key);
	assert_int_equal(pthread_create(&b->thread, NULL, run_call, b), 0);
}

static struct reply *join_call(struct background *b)
{
	pthread_join(b->thread, NULL);
	return &b->reply;
}

static void free_call(struct background *b)
{
	client_free(b->client);
	reply_release(&b->reply);
}

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

/* ---- steps ---- */

static void test_step_has_one_effect(void **state)
{
	struct scene *scene = *state;
	struct background first = {0};
	struct memory m;

	begin(scene, 1);
	scene_create(scene, "a");
	service_play(scene->service, "/close", &(struct play){.hold = true, .body = "{\"receipt\":7}"});
	start_call(scene, 0, &first, CREATE "/a/steps/close", "k");
	service_await(scene->service, "/close", 1, ARRIVE_MS);
	must(scene, "POST", CREATE "/a/steps/close", "k", "{}", 409, "IN_FLIGHT", "conflict");
	assert_in_range(strtol(field_of(&scene->last, "Retry-After"), NULL, 10), 50, 60);
	must(scene, "POST", CREATE "/a/steps/close", "k", "{'input':1}", 422, "FINGERPRINT_MISMATCH", "mismatch");
	must(scene, "POST", CREATE "/a/steps/close", "k2", "{}", 409, "CLAIM_FAILED", "");
	service_release(scene->service);
	assert_int_equal(join_call(&first)->status, 200);
	assert_string_equal(field_of(&first.reply, "Idempotency-Status"), "created");
	assert_int_equal(reply_int(&first.reply, "output.receipt"), 7);
	assert_int_equal(reply_int(&first.reply, "entity.version"), 3);
	m = remember(&first.reply);
	assert_string_equal(m.etag, "\"3\"");
	assert_same(must(scene, "POST", CREATE "/a/steps/close", "k", "{}", 200, "", "replayed"), &m);
	assert_int_equal(service_count(scene->service, "/close", NULL), 1);
	/* What was told before the commit is what was committed. */
	scene_show(scene, 0, "a");
	assert_string_equal(reply_text(&scene->last, "updatedAt"), reply_text(&first.reply, "entity.updatedAt"));
	assert_int_equal(reply_int(&scene->last, "version"), 3);
	scene_stop(scene, 0);
	free_call(&first);
	free(m.body);
}

static void test_step_that_failed_may_be_tried_again(void **state)
{
	struct scene *scene = *state;

	begin(scene, 1);
	scene_create(scene, "a");
	service_play(scene->service, "/close", &(struct play){.status = 500});
	must(scene, "POST", CREATE "/a/steps/close", "k", "{}", 502, "ACTION_FAILED", "");
	service_play(scene->service, "/close", &(struct play){.status = 422, .body = "{\"why\":1}"});
	must(scene, "POST", CREATE "/a/steps/close", "k", "{}", 422, "INVALID", "");
	service_play(scene->service, "/close", &(struct play){0});
	must(scene, "POST", CREATE "/a/steps/close", "k", "{}", 200, "", "created");
	must(scene, "POST", CREATE "/a/steps/close", "k", "{}", 200, "", "replayed");
	assert_int_equal(service_count(scene->service, "/close", NULL), 3);
	scene_assert(scene, 0, "a", "closed", 7);
	scene_stop(scene, 0);
}

/* In a table of the user's, with as much sql and as many after-effects as a step can have: all in one unit. */
static void test_step_in_a_table_of_the_users(void **state)
{
	static const char in_table[] =
		"{'workflow':'billing','kind':'entity','meta':{'table':'invoice'},"
		"'status_types':['approved','booking','booked'],'initial_status':'approved','actions':{"
		"'Book':{'kind':'sql','statements':["
		"{'name':'pay','sql':'INSERT INTO payment (invoice, amount) VALUES (:id, :input.amount)'},"
		"{'name':'settle','sql':'UPDATE account SET open = open - :input.amount WHERE open >= :input.amount',"
		"'must':true},"
		"{'name':'s3','sql':'UPDATE account SET open = open'},{'name':'s4','sql':'UPDATE account SET open = open'},"
		"{'name':'s5','sql':'UPDATE account SET open = open'},"
		"{'name':'s6','sql':'UPDATE account SET open = open'}]},"
		"'M1':{'kind':'http','url':'@/mail','effect':'keyed'},"
		"'M2':{'kind':'http','url':'@/mail','effect':'keyed'},"
		"'M3':{'kind':'http','url':'@/mail','effect':'keyed'},"
		"'M4':{'kind':'http','url':'@/mail','effect':'keyed'}},"
		"'steps':[{'step_id':30,'step_key':'book','status':'approved','successful_state':'booked',"
		"'action':'Book','success_after_effect':['M1','M2','M3','M4'],"
		"'claim_state':['booking','approved']}]}";
	struct scene *scene = *state;
	struct memory m;

	scene_sql(
		scene,
		"CREATE TABLE invoice (id text PRIMARY KEY, status text NOT NULL, version bigint NOT NULL, updated_at "
		"text)",
		NULL, 0);
	scene_sql(scene, "INSERT INTO invoice VALUES ('a', 'approved', 7, NULL)", NULL, 0);
	scene_sql(scene, "CREATE TABLE payment (invoice text NOT NULL, amount bigint NOT NULL)", NULL, 0);
	scene_sql(scene, "CREATE TABLE account (open bigint NOT NULL)", NULL, 0);
	scene_sql(scene, "INSERT INTO account VALUES (100)", NULL, 0);
	scene_define(scene, "billing", in_table);
	scene_configure(scene, configuration);
	scene_start(scene, 0);
	must(scene, "POST", CREATE "/a/steps/book", "k", "{'input':{'amount':101}}", 422, "INVALID", "");
	must(scene, "POST", CREATE "/a/steps/book", "k", "{'input':{'amount':30}}", 200, "", "created");
	m = remember(&scene->last);
	assert_int_equal(reply_int(&scene->last, "entity.version"), 11);
	scene_assert(scene, 0, "a", "booked", 11);
	assert_same(must(scene, "POST", CREATE "/a/steps/book", "k", "{'input':{'amount':30}}", 200, "", "replayed"),
		    &m);
	assert_int_equal(count(scene, "SELECT open FROM account"), 70);
	assert_int_equal(count(scene, "SELECT count(*) FROM payment"), 1);
	service_await(scene->service, "/mail", 4, ARRIVE_MS);
	scene_stop(scene, 0);
	free(m.body);
}

/* The outcome is not known: within the lease nobody runs it again, and afterwards the step's own doors decide. */
static void test_unknown_outcome_keeps_the_key(void **state)
{
	struct scene *scene = *state;

	begin(scene, 1);
	scene_create(scene, "a");
	service_play(scene->service, "/close", &(struct play){.how = PLAY_DROP});
	must(scene, "POST", CREATE "/a/steps/close", "k", "{}", 504, "OUTCOME_UNKNOWN", "");
	scene_await_status(scene, 0, "a", "approved", ARRIVE_MS);
	must(scene, "POST", CREATE "/a/steps/close", "k", "{}", 409, "IN_FLIGHT", "conflict");
	assert_int_equal(service_count(scene->service, "/close", NULL), 1);
	service_play(scene->service, "/close", &(struct play){0});
	end_leases(scene);
	must(scene, "POST", CREATE "/a/steps/close", "k", "{}", 200, "", "created");
	must(scene, "POST", CREATE "/a/steps/close", "k", "{}", 200, "", "replayed");
	assert_int_equal(service_count(scene->service, "/close", NULL), 2);
	assert_string_equal(service_call(scene->service, "/close", 0).key,
			    service_call(scene->service, "/close", 1).key);
	scene_stop(scene, 0);
}

static void kill_while_acting(struct scene *scene, const char *path)
{
	struct background first = {0};

	scene_create(scene, "a");
	service_play(scene->service, "/close", &(struct play){.hold = true});
	start_call(scene, 0, &first, path, "k");
	service_await(scene->service, "/close", 1, ARRIVE_MS);
	scene_kill(scene, 0);
	assert_int_equal(join_call(&first)->status, 0);
	free_call(&first);
	service_release(scene->service);
	service_play(scene->service, "/close", &(struct play){0});
	scene_start(scene, 0);
	must(scene, "POST", path, "k", "{}", 409, "IN_FLIGHT", "conflict");
	assert_int_equal(service_count(scene->service, "/close", NULL), 1);
}

static void test_after_a_kill_the_effect_is_repeated_with_its_key(void **state)
{
	struct scene *scene = *state;

	begin(scene, 1);
	kill_while_acting(scene, CREATE "/a/steps/close");
	scene_await_status(scene, 0, "a", "approved", ARRIVE_MS); /* on_unknown is to revert */
	must(scene, "POST", CREATE "/a/steps/close", "k", "{}", 409, "IN_FLIGHT", "conflict");
	end_leases(scene);
	must(scene, "POST", CREATE "/a/steps/close", "k", "{}", 200, "", "created");
	must(scene, "POST", CREATE "/a/steps/close", "k", "{}", 200, "", "replayed");
	assert_int_equal(service_count(scene->service, "/close", NULL), 2);
	assert_string_equal(service_call(scene->service, "/close", 0).key,
			    service_call(scene->service, "/close", 1).key);
	scene_stop(scene, 0);
}

static bool is_held(struct scene *scene)
{
	scene_show(scene, 0, "a");
	return strcmp(reply_text(&scene->last, "claim"), "null") != 0 &&
	       strcmp(reply_text(&scene->last, "claim.held"), "true") == 0;
}

/* Held for a person, it is not done again, key or no key; the person's word has a key of its own. */
static void resolve_after_a_kill(struct scene *scene, const char *word, const char *status)
{
	char body[60];
	struct memory m;

	begin(scene, 1);
	kill_while_acting(scene, CREATE "/a/steps/ask");
	AWAIT(ARRIVE_MS, is_held(scene));
	end_leases(scene);
	must(scene, "POST", CREATE "/a/steps/ask", "k", "{}", 409, "CLAIM_FAILED", "");
	snprintf(body, sizeof body, "{'outcome':'%s'}", word);
	must(scene, "POST", CREATE "/a/steps/ask/resolve", "r", body, 200, "", "created");
	m = remember(&scene->last);
	assert_string_equal(reply_text(&scene->last, "entity.status"), status);
	scene_assert(scene, 0, "a", status, reply_int(&scene->last, "entity.version"));
	assert_same(must(scene, "POST", CREATE "/a/steps/ask/resolve", "r", body, 200, "", "replayed"), &m);
	must(scene, "POST", CREATE "/a/steps/ask/resolve", "r2", body, 409, "WRONG_STATUS", "");
	assert_int_equal(service_count(scene->service, "/close", NULL), 1);
	scene_stop(scene, 0);
	free(m.body);
}

static void test_person_says_done_once(void **state)
{
	resolve_after_a_kill(*state, "done", "closed");
}

static void test_person_says_not_done_once(void **state)
{
	resolve_after_a_kill(*state, "not_done", "approved");
}

/* The action outlives the lease of its key. Who comes meanwhile is stopped by the claim, and does not take the answer of
 * the first one away. */
static void test_step_that_outlives_its_lease(void **state)
{
	struct scene *scene = *state;
	struct background first = {0};
	struct memory m;

	begin(scene, 1);
	scene_create(scene, "a");
	service_play(scene->service, "/close", &(struct play){.hold = true});
	start_call(scene, 0, &first, CREATE "/a/steps/close", "k");
	service_await(scene->service, "/close", 1, ARRIVE_MS);
	end_leases(scene);
	must(scene, "POST", CREATE "/a/steps/close", "k", "{}", 409, "CLAIM_FAILED", "");
	service_release(scene->service);
	assert_int_equal(join_call(&first)->status, 200);
	assert_string_equal(field_of(&first.reply, "Idempotency-Status"), "created");
	m = remember(&first.reply);
	assert_same(must(scene, "POST", CREATE "/a/steps/close", "k", "{}", 200, "", "replayed"), &m);
	assert_int_equal(service_count(scene->service, "/close", NULL), 1);
	scene_stop(scene, 0);
	free_call(&first);
	free(m.body);
}

/* Somebody forgot the record while the step was under way: the client is told that its key protects nothing. */
static void test_stale_is_said(void **state)
{
	struct scene *scene = *state;
	struct background first = {0};

	begin(scene, 1);
	scene_create(scene, "a");
	service_play(scene->service, "/close", &(struct play){.hold = true});
	start_call(scene, 0, &first, CREATE "/a/steps/close", "k");
	service_await(scene->service, "/close", 1, ARRIVE_MS);
	scene_sql(scene, "DELETE FROM hx_gate_record", NULL, 0);
	service_release(scene->service);
	assert_int_equal(join_call(&first)->status, 200);
	assert_string_equal(field_of(&first.reply, "Idempotency-Status"), "stale");
	assert_int_equal(outcomes(scene, "stale"), 1);
	scene_stop(scene, 0);
	free_call(&first);
}

/* A record whose one unit was lost to it, and which is gone when it is looked for: the request runs after all. */
static void test_expired_record_is_no_record(void **state)
{
	struct scene *scene = *state;

	begin(scene, 1);
	must(scene, "POST", CREATE, "k", "{}", 201, "", "created");
	scene_sql(scene, "UPDATE hx_gate_record SET expires_at = 1", NULL, 0);
	must(scene, "POST", CREATE, "k", "{'data':2}", 201, "", "created");
	must(scene, "POST", CREATE, "k", "{'data':2}", 201, "", "replayed");
	assert_int_equal(count(scene, "SELECT count(*) FROM hx_entity"), 2);
	scene_stop(scene, 0);
}

/* A record that is PROCESSING and past its lease: the creation takes it over, and completes it along with its work. */
static void test_creation_takes_over(void **state)
{
	struct scene *scene = *state;
	struct memory m;

	begin(scene, 1);
	must(scene, "POST", CREATE, "k", large(), 201, "", "created");
	scene_sql(scene, "UPDATE hx_gate_record SET status = 1, response = NULL, until = 9223372036854775807", NULL, 0);
	must(scene, "POST", CREATE, "k", large(), 409, "IN_FLIGHT", "conflict");
	scene_sql(scene, "UPDATE hx_gate_record SET until = 1", NULL, 0);
	must(scene, "POST", CREATE, "k", large(), 201, "", "created");
	m = remember(&scene->last);
	assert_same(must(scene, "POST", CREATE, "k", large(), 201, "", "replayed"), &m);
	assert_int_equal(count(scene, "SELECT count(*) FROM hx_entity"), 2);
	scene_stop(scene, 0);
	free(m.body);
}

/*
 * Records vanish all the time (as if a person forgot them): a creation that lost its unit to a record, and finds none when
 * it asks, holds a new one then, and runs. Whatever is told as created is there, and nothing else.
 */
struct hasty {
	pthread_t thread;
	struct client *client;
	_Atomic bool *stop;
	int created, wrong;
};

/* Records that come and go too fast, and a file that somebody else writes to, are told as what they are: nothing was done. */
static bool is_refused(const struct reply *reply)
{
	return strcmp(reply->code, "IN_FLIGHT") == 0 || strcmp(reply->code, "BUSY") == 0 ||
	       strcmp(reply->code, "STORE_UNAVAILABLE") == 0;
}

static void *create_hastily(void *context)
{
	struct hasty *h = context;
	char body[RECALL_BYTES_MAX + 100];
	int n = snprintf(body, sizeof body, "{\"data\":{\"x\":\"%0*d\"}}", RECALL_BYTES_MAX, 0);

	while (!*h->stop) {
		struct reply reply;

		h->wrong += !client_call_with(h->client, "POST", CREATE, "Idempotency-Key: k\r\n", body, (size_t)n,
					      &reply) ||
			    (reply.status != 201 && !is_refused(&reply));
		h->created += strstr(reply.head, "Idempotency-Status: created") != NULL;
		reply_release(&reply);
	}
	return NULL;
}

/* Removes what is completed, again and again, until some of it had come the long way: only what was acquired has the text
 * of its key. Returns how much of it. */
static int remove_records(const char *path)
{
	int64_t until_ms = await_now_ms() + ARRIVE_MS;
	sqlite3_stmt *stmt;
	sqlite3 *handle;
	int acquired = 0;

	assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
	sqlite3_busy_timeout(handle, 10000);
	sqlite3_db_config(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	assert_int_equal(
		sqlite3_exec(handle, "PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 0", NULL, NULL, NULL),
		SQLITE_OK);
	assert_int_equal(
		sqlite3_prepare_v2(handle, "DELETE FROM hx_gate_record WHERE status = 2 RETURNING key_text IS NOT NULL",
				   -1, &stmt, NULL),
		SQLITE_OK);
	while (acquired < 3 && await_now_ms() < until_ms) {
		while (sqlite3_step(stmt) == SQLITE_ROW)
			acquired += sqlite3_column_int(stmt, 0);
		assert_int_equal(sqlite3_reset(stmt), SQLITE_OK);
		usleep(300); /* the server wants to write, too */
	}
	sqlite3_finalize(stmt);
	sqlite3_close(handle);
	return acquired;
}

static void test_records_that_vanish(void **state)
{
	struct scene *scene = *state;
	struct hasty callers[HASTY] = {0};
	_Atomic bool stop = false;
	int created = 0, acquired;

	begin(scene, 1);
	for (int i = 0; i < HASTY; i++) {
		callers[i] = (struct hasty){.client = client_new(scene->nodes[0]->port, "admin"), .stop = &stop};
		assert_int_equal(pthread_create(&callers[i].thread, NULL, create_hastily, &callers[i]), 0);
	}
	acquired = remove_records(scene->store->url + strlen("sqlite:"));
	stop = true;
	for (int i = 0; i < HASTY; i++) {
		pthread_join(callers[i].thread, NULL);
		client_free(callers[i].client);
		assert_int_equal(callers[i].wrong, 0);
		created += callers[i].created;
	}
	assert_int_equal(count(scene, "SELECT count(*) FROM hx_entity"), created);
	printf("# gate, records that vanish: %d created, %d of them seen to come the long way\n", created, acquired);
	assert_true(acquired > 0);
	scene_stop(scene, 0);
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

#define ON_BOTH(test)                                                                                                  \
	{#test " on SQLite", test, scene_set_up_sqlite, scene_tear_down, NULL},                                        \
	{                                                                                                              \
#test " on PostgreSQL", test, scene_set_up_postgres, scene_tear_down, NULL                             \
	}

#define ON_SQLITE(test) cmocka_unit_test_setup_teardown(test, scene_set_up_sqlite, scene_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(test_create_is_replayed_to_the_byte),
		ON_BOTH(test_large_answer_is_replayed),
		ON_SQLITE(test_key_counts_for_its_workspace_and_path),
		ON_SQLITE(test_key_of_another_requester_is_refused),
		ON_SQLITE(test_malformed_key_runs_nothing),
		ON_BOTH(test_error_is_not_kept),
		ON_BOTH(test_fifty_at_once),
		cmocka_unit_test_setup_teardown(test_fifty_at_once_on_two_nodes, scene_set_up_postgres,
						scene_tear_down),
		ON_BOTH(test_step_has_one_effect),
		ON_SQLITE(test_step_that_failed_may_be_tried_again),
		ON_BOTH(test_step_in_a_table_of_the_users),
		ON_SQLITE(test_unknown_outcome_keeps_the_key),
		ON_BOTH(test_after_a_kill_the_effect_is_repeated_with_its_key),
		ON_SQLITE(test_person_says_done_once),
		ON_SQLITE(test_person_says_not_done_once),
		ON_BOTH(test_step_that_outlives_its_lease),
		ON_SQLITE(test_stale_is_said),
		ON_BOTH(test_expired_record_is_no_record),
		ON_BOTH(test_creation_takes_over),
		ON_SQLITE(test_records_that_vanish),
		ON_BOTH(test_redrive),
		ON_BOTH(test_definition_and_sweep),
		ON_SQLITE(test_kill_leaves_both_or_neither),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
