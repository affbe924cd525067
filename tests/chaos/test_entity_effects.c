/*
 * After-effects against real servers: they exist exactly when their transition does, and are delivered.
 *
 *   when a delivery arrives, the commit is there for every other reader        (of both nodes, and of the store itself)
 *   after a failure, a rejection, an unknown outcome, a rollback there is none
 *   after kill -9 between the commit and the delivery, or in the middle of a delivery, they arrive, with the same key
 *   one that was refused for good is parked, and delivered when it is driven again
 *
 * That a lost race leaves none is shown by test_entity_claims (of 50 unclaimed callers one mails) and test_entity_owner.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/await.h"
#include "support/scene.h"

#define ARRIVE_MS 60000
#define ENTITIES 20

static const char definition[] =
	"{'workflow':'billing','kind':'entity','status_types':['approved','closing','closed','booking','booked','told'],"
	"'initial_status':'approved','actions':{"
	"'Close':{'kind':'http','url':'@/close','effect':'claimed'},"
	"'Book':{'kind':'sql','statements':["
	"{'name':'pay','sql':'INSERT INTO payment (invoice, amount) VALUES (:id, :input.amount)'},"
	"{'name':'settle','sql':'UPDATE account SET open = open - :input.amount WHERE open >= :input.amount',"
	"'must':true}]},"
	"'Mail':{'kind':'http','url':'@/mail','effect':'keyed'}},"
	"'steps':[{'step_id':20,'step_key':'close','status':'approved','successful_state':'closed',"
	"'action':'Close','success_after_effect':['Mail'],'claim_state':['closing','approved']},"
	"{'step_id':30,'step_key':'book','status':'approved','successful_state':'booked',"
	"'action':'Book','success_after_effect':['Mail'],'claim_state':['booking','approved']},"
	"{'step_id':31,'step_key':'book_unclaimed','status':'approved','successful_state':'booked',"
	"'action':'Book','success_after_effect':['Mail']},"
	"{'step_id':40,'step_key':'tell','status':'approved','successful_state':'told',"
	"'success_after_effect':['Mail']}]}";

/* The lease is that of jobs, too. It is long enough to look at a claim before it lapses, also on a busy machine. */
static const char configuration[] =
	"{'modules':{'billing':{'janitor':{'every':'100ms','stuck_after':'2s'}}},'lease':'2s'}";

static void begin(struct scene *scene, int nodes)
{
	scene_sql(scene, "CREATE TABLE payment (invoice text NOT NULL, amount bigint NOT NULL CHECK (amount <> 13))",
		  NULL, 0);
	scene_sql(scene, "CREATE TABLE account (open bigint NOT NULL)", NULL, 0);
	scene_sql(scene, "INSERT INTO account VALUES (100)", NULL, 0);
	scene_define(scene, "billing", definition);
	scene_configure(scene, configuration);
	scene_start(scene, 0);
	if (nodes == 2)
		scene_start(scene, 1);
}

/* ---- the commit comes first ---- */

/* Whoever gets the after-effect asks everybody, at once, from its own thread. */
struct witness {
	int ports[SCENE_NODES_MAX];
	int nodes;
	const char *pg_url; /* NULL: not on PostgreSQL */
	size_t asked, wrong;
};

static bool api_says_closed(int port, const char *id)
{
	struct client *client = client_new(port, NULL);
	struct reply reply;
	char path[300];
	bool closed;

	snprintf(path, sizeof path, "/api/v1/entities/billing/%s", id);
	closed = client_call(client, "GET", path, "", 0, &reply) &&
		 strstr(reply.body, "\"status\":\"closed\",\"version\":3,");
	reply_release(&reply);
	client_free(client);
	return closed;
}

static bool store_says_closed(const char *url, const char *id)
{
	const char *values[] = {id};
	PGconn *raw = PQconnectdb(url);
	PGresult *res = PQexecParams(raw,
				     "SELECT 1 FROM hx_entity e JOIN hx_subject s ON s.id = e.subject"
				     " WHERE e.name = $1 AND s.status = 'closed' AND s.version = 3",
				     1, NULL, values, NULL, NULL, 0);
	bool closed = PQresultStatus(res) == PGRES_TUPLES_OK && PQntuples(res) == 1;

	PQclear(res);
	PQfinish(raw);
	return closed;
}

static void ask_everybody(void *context, const struct service_call *call)
{
	struct witness *w = context;
	bool right = !w->pg_url || store_says_closed(w->pg_url, call->id);

	for (int i = 0; i < w->nodes; i++)
		right = right && api_says_closed(w->ports[i], call->id);
	__atomic_fetch_add(&w->asked, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&w->wrong, !right, __ATOMIC_RELAXED);
}

static void commit_comes_first(struct scene *scene, int nodes)
{
	struct witness w = {.nodes = nodes};
	char id[32];

	begin(scene, nodes);
	for (int i = 0; i < nodes; i++)
		w.ports[i] = scene->nodes[i]->port;
	w.pg_url = scene->store->kind == STORE_POSTGRES ? scene->store->url : NULL;
	service_play(scene->service, "/close", &(struct play){.body = "{\"total\":12.50}"});
	service_play(scene->service, "/mail", &(struct play){.hook = ask_everybody, .context = &w});
	for (int i = 0; i < ENTITIES; i++) {
		snprintf(id, sizeof id, "first-%d", i);
		scene_create(scene, id);
		scene_fire(scene, i % nodes, id, "close", 200, NULL);
	}
	service_await(scene->service, "/mail", ENTITIES, ARRIVE_MS);
	AWAIT(ARRIVE_MS, __atomic_load_n(&w.asked, __ATOMIC_RELAXED) >= ENTITIES);
	assert_int_equal(w.wrong, 0);
	assert_int_equal(scene_jobs(scene, 0), ENTITIES);
	/* What it is told: the transition, exactly. */
	assert_non_null(strstr(service_call(scene->service, "/mail", 0).body,
			       "\"from\":\"approved\",\"to\":\"closed\",\"version\":3,\"output\":{\"total\":12.50}}"));
	printf("# after-effects, %s: %d arrived, none before its commit\n", w.pg_url ? "PostgreSQL" : "SQLite",
	       ENTITIES);
	for (int i = 0; i < nodes; i++)
		scene_stop(scene, i);
}

static void test_commit_comes_first_on_sqlite(void **state)
{
	commit_comes_first(*state, 1);
}

static void test_commit_comes_first_on_two_nodes_of_postgres(void **state)
{
	commit_comes_first(*state, 2);
}

/* ---- no transition, no after-effect ---- */

static void test_none_without_success(void **state)
{
	struct scene *scene = *state;
	static const struct {
		struct play play;
		int status;
		const char *code, *left_in;
	} cases[] = {
		{{.status = 500}, 502, "ACTION_FAILED", "approved"},
		{{.status = 404}, 502, "ACTION_FAILED", "approved"},
		{{.status = 422}, 422, "INVALID", "approved"},
		{{.body = "{\"is_invalid\":true}"}, 422, "INVALID", "approved"},
		{{.how = PLAY_DROP}, 504, "OUTCOME_UNKNOWN", "closing"},
		{{.body = "no JSON"}, 504, "OUTCOME_UNKNOWN", "closing"},
	};
	char id[32];

	begin(scene, 1);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		snprintf(id, sizeof id, "none-%zu", i);
		scene_create(scene, id);
		service_play(scene->service, "/close", &cases[i].play);
		scene_fire(scene, 0, id, "close", cases[i].status, cases[i].code);
		assert_string_equal(reply_text(scene_show(scene, 0, id), "status"), cases[i].left_in);
	}
	scene_await_status(scene, 0, "none-4", "approved", ARRIVE_MS); /* by the janitor */
	scene_await_status(scene, 0, "none-5", "approved", ARRIVE_MS);
	assert_int_equal(scene_jobs(scene, 0), 0);
	assert_int_equal(service_count(scene->service, "/mail", NULL), 0);
	scene_stop(scene, 0);
}

static struct reply *book(struct scene *scene, const char *id, const char *step, const char *amount, int status,
			  const char *code)
{
	char path[200], body[100];

	snprintf(path, sizeof path, "/api/v1/entities/billing/%s/steps/%s", id, step);
	snprintf(body, sizeof body, "{'input':{'amount':%s}}", amount);
	return scene_must(scene, 0, "POST", path, body, status, code);
}

static void assert_cell(struct scene *scene, const char *sql, const char *wanted)
{
	char cell[64];

	scene_sql(scene, sql, cell, sizeof cell);
	assert_string_equal(cell, wanted);
}

static void none_after_a_rollback(struct scene *scene, const char *step, int64_t raised_by)
{
	begin(scene, 1);
	scene_create(scene, "sql");
	book(scene, "sql", step, "1000", 422, "INVALID");     /* not so much is open */
	book(scene, "sql", step, "13", 502, "ACTION_FAILED"); /* a constraint; the caller sees the store's words */
	assert_non_null(strstr(scene->last.body, "constraint"));
	assert_int_equal(scene_jobs(scene, 0), 0);
	assert_cell(scene, "SELECT count(*) FROM payment", "0");
	assert_cell(scene, "SELECT open FROM account", "100");
	scene_assert(scene, 0, "sql", "approved", 1 + (raised_by - 1) * 4); /* claims and releases, if there are any */

	book(scene, "sql", step, "30", 200, NULL);
	assert_string_equal(reply_text(&scene->last, "entity.status"), "booked");
	assert_int_equal(scene_jobs(scene, 0), 1);
	assert_cell(scene, "SELECT count(*) FROM payment WHERE invoice = 'sql' AND amount = 30", "1");
	assert_cell(scene, "SELECT open FROM account", "70");
	service_await(scene->service, "/mail", 1, ARRIVE_MS);
	scene_stop(scene, 0);
}

static void test_none_after_a_rollback(void **state)
{
	none_after_a_rollback(*state, "book", /* raised_by= */ 2);
}

static void test_none_after_a_rollback_of_an_unclaimed_step(void **state)
{
	none_after_a_rollback(*state, "book_unclaimed", /* raised_by= */ 1);
}

/* ---- kill -9 ---- */

static void remember_key(struct scene *scene, char key[SERVICE_ID_BYTES])
{
	assert_int_equal(scene_jobs(scene, 0), 1);
	snprintf(key, SERVICE_ID_BYTES, "%s", reply_text(&scene->last, "items.0.idempotencyKey"));
	assert_true(strlen(key) > 0);
}

static bool all_completed(struct scene *scene)
{
	scene_must(scene, 0, "GET", "/api/v1/jobs?status=COMPLETED", NULL, 200, NULL);
	return reply_count(&scene->last, "items") == 1;
}

/* Committed, and nobody to deliver to; then killed. */
static void test_delivered_after_a_kill_before_the_delivery(void **state)
{
	struct scene *scene = *state;
	char key[SERVICE_ID_BYTES];

	begin(scene, 1);
	scene_create(scene, "killed");
	service_close_door(scene->service);
	scene_fire(scene, 0, "killed", "tell", 200, NULL);
	remember_key(scene, key);
	scene_kill(scene, 0);
	assert_int_equal(service_count(scene->service, NULL, NULL), 0);
	service_open_door(scene->service);
	scene_start(scene, 0);
	service_await(scene->service, "/mail", 1, ARRIVE_MS);
	assert_string_equal(service_call(scene->service, "/mail", 0).key, key);
	scene_assert(scene, 0, "killed", "told", 2);
	AWAIT(ARRIVE_MS, all_completed(scene));
	assert_int_equal(service_count(scene->service, "/mail", NULL), 1);
	scene_stop(scene, 0);
}

/* Delivered, and killed before that was written down: it is delivered again, and the other side sees the same key. */
static void test_delivered_again_with_the_same_key_after_a_kill_in_the_delivery(void **state)
{
	struct scene *scene = *state;
	struct service_call before, after;
	char key[SERVICE_ID_BYTES];

	begin(scene, 1);
	scene_create(scene, "killed");
	service_play(scene->service, "/mail", &(struct play){.hold = true});
	scene_fire(scene, 0, "killed", "tell", 200, NULL);
	service_await(scene->service, "/mail", 1, ARRIVE_MS);
	remember_key(scene, key);
	scene_kill(scene, 0);
	service_play(scene->service, "/mail", &(struct play){0});
	service_release(scene->service);
	scene_start(scene, 0);
	service_await(scene->service, "/mail", 2, ARRIVE_MS);
	before = service_call(scene->service, "/mail", 0);
	after = service_call(scene->service, "/mail", 1);
	assert_string_equal(before.key, key);
	assert_string_equal(after.key, key);
	assert_true(after.fence > before.fence);
	assert_int_equal(before.attempt, 1);
	assert_int_equal(after.attempt, 2);
	AWAIT(ARRIVE_MS, all_completed(scene));
	scene_stop(scene, 0);
}

/* ---- parked ---- */

static bool is_parked(struct scene *scene)
{
	scene_must(scene, 0, "GET", "/api/v1/jobs?status=PARKED", NULL, 200, NULL);
	return reply_count(&scene->last, "items") == 1;
}

static void test_parked_one_is_delivered_when_driven_again(void **state)
{
	struct scene *scene = *state;
	char path[200];

	begin(scene, 1);
	scene_create(scene, "parked");
	service_play(scene->service, "/mail", &(struct play){.status = 403, .body = "{\"why\":\"the box is full\"}"});
	scene_fire(scene, 0, "parked", "tell", 200, NULL);
	AWAIT(ARRIVE_MS, is_parked(scene));
	assert_non_null(strstr(reply_text(&scene->last, "items.0.error"), "the box is full"));
	assert_int_equal(service_count(scene->service, "/mail", NULL), 1);
	snprintf(path, sizeof path, "/api/v1/jobs/%s/redrive", reply_text(&scene->last, "items.0.id"));
	service_play(scene->service, "/mail", &(struct play){0});
	scene_must(scene, 0, "POST", path, NULL, 200, NULL);
	service_await(scene->service, "/mail", 2, ARRIVE_MS);
	assert_string_equal(service_call(scene->service, "/mail", 0).key, service_call(scene->service, "/mail", 1).key);
	AWAIT(ARRIVE_MS, all_completed(scene));
	scene_must(scene, 0, "POST", path, NULL, 409, "WRONG_STATUS"); /* it is not parked any more */
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
		cmocka_unit_test_setup_teardown(test_commit_comes_first_on_sqlite, scene_set_up_sqlite,
						scene_tear_down),
		cmocka_unit_test_setup_teardown(test_commit_comes_first_on_two_nodes_of_postgres, scene_set_up_postgres,
						scene_tear_down),
		cmocka_unit_test_setup_teardown(test_none_without_success, scene_set_up_sqlite, scene_tear_down),
		ON_BOTH(test_none_after_a_rollback),
		ON_BOTH(test_none_after_a_rollback_of_an_unclaimed_step),
		ON_BOTH(test_delivered_after_a_kill_before_the_delivery),
		ON_BOTH(test_delivered_again_with_the_same_key_after_a_kill_in_the_delivery),
		cmocka_unit_test_setup_teardown(test_parked_one_is_delivered_when_driven_again, scene_set_up_sqlite,
						scene_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
