/*
 * Idempotency-Key at our own API, over real sockets: steps, whose effects outlive whoever asked for them. What failed may be tried again;
 * of what nobody knows (504, kill) the step's own doors decide once the lease is over; and records that expire or vanish.
 */
#include <sqlite3.h>
#include <unistd.h>

#include "keyed_calls.h"

#define HASTY 4

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

int main(void)
{
	const struct CMUnitTest tests[] = {
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
