/*
 * Accounts over the API of real servers: opened, credited once for each key, and a ledger that says how a balance came about.
 *
 *   requests     what is taken, what is refused, and that a refusal names what it refuses
 *   parallel     credits on SQLite and on two nodes with one PostgreSQL: none is lost, and one key is one entry
 *   kill -9      in the middle of credits, again and again: whatever was acknowledged is there once, and the books balance
 *                whenever somebody looks
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "flow/account.h"

#include "support/await.h"
#include "support/fleet.h"

#define ACCOUNTS "/api/v1/accounts"
#define CREDITS 100
#define SAME 50
#define WRITERS 8
#define KILLS 12
#define BETWEEN_KILLS 40 /* credits */
#define DEADLINE_MS 60000

/* ---- the books ---- */

/* Accounts whose ledger does not tell their balance. One statement: it sees one moment. */
static const char wrong_books[] =
	"SELECT count(*) FROM hx_account a WHERE a.balance < 0"
	" OR a.balance <> (SELECT sum(amount) FROM hx_ledger l WHERE l.account = a.subject)"
	" OR a.seq <> (SELECT count(*) FROM hx_ledger l WHERE l.account = a.subject)"
	" OR a.seq <> (SELECT max(seq) FROM hx_ledger l WHERE l.account = a.subject)"
	" OR EXISTS (SELECT 1 FROM hx_ledger l WHERE l.account = a.subject AND l.balance - l.amount <>"
	" coalesce((SELECT p.balance FROM hx_ledger p WHERE p.account = l.account AND p.seq = l.seq - 1), 0))";

static void assert_books(struct scene *scene)
{
	char wrong[32];

	scene_sql(scene, wrong_books, wrong, sizeof wrong);
	assert_string_equal(wrong, "0");
}

static int64_t number(struct scene *scene, const char *sql)
{
	char n[32];

	scene_sql(scene, sql, n, sizeof n);
	return strtoll(n, NULL, 10);
}

/* The same through the API, page by page: returns the number of entries. */
static int64_t assert_ledger(struct scene *scene, int node, const char *id, int64_t balance)
{
	char path[200], cursor[32] = "";
	int64_t sum = 0, entries = 0;

	do {
		snprintf(path, sizeof path, ACCOUNTS "/%s/ledger?limit=70%s%s", id, *cursor ? "&cursor=" : "", cursor);
		scene_must(scene, node, "GET", path, NULL, 200, "");
		for (size_t i = 0; i < reply_count(&scene->last, "items"); i++) {
			snprintf(path, sizeof path, "items.%zu.amount", i);
			sum += reply_int(&scene->last, path);
			snprintf(path, sizeof path, "items.%zu.seq", i);
			assert_int_equal(reply_int(&scene->last, path), ++entries);
			snprintf(path, sizeof path, "items.%zu.balance", i);
			assert_int_equal(reply_int(&scene->last, path), sum);
		}
		snprintf(cursor, sizeof cursor, "%s", reply_text(&scene->last, "cursor"));
	} while (strcmp(cursor, "null") != 0);
	assert_int_equal(sum, balance);
	snprintf(path, sizeof path, ACCOUNTS "/%s", id);
	scene_must(scene, node, "GET", path, NULL, 200, "");
	assert_int_equal(reply_int(&scene->last, "balance"), balance);
	return entries;
}

static void create(struct scene *scene, const char *id, int64_t balance)
{
	char body[200];

	snprintf(body, sizeof body, "{'id':'%s','balance':%lld}", id, (long long)balance);
	scene_must(scene, 0, "POST", ACCOUNTS, body, 201, "");
}

static void start(struct scene *scene, int nodes)
{
	for (int node = 0; node < nodes; node++)
		scene_start(scene, node);
}

static void stop(struct scene *scene, int nodes)
{
	assert_books(scene);
	for (int node = 0; node < nodes; node++)
		scene_stop(scene, node);
}

/* ---- requests ---- */

static void accounts_and_what_they_say(struct scene *scene)
{
	const struct reply *r = &scene->last;
	char created[64];

	start(scene, 1);
	scene_must(scene, 0, "POST", ACCOUNTS, "{'id':'alice','balance':500}", 201, "");
	assert_string_equal(reply_text(r, "id"), "alice");
	assert_int_equal(reply_int(r, "balance"), 500);
	snprintf(created, sizeof created, "%s", reply_text(r, "createdAt"));
	assert_int_equal(strlen(created), strlen("2026-01-01T00:00:00.000Z"));
	scene_must(scene, 0, "POST", ACCOUNTS, "{'id':'alice','balance':500}", 409, "ALREADY_EXISTS");
	scene_must(scene, 0, "GET", ACCOUNTS "/alice", NULL, 200, "");
	assert_int_equal(reply_int(r, "balance"), 500);
	assert_string_equal(reply_text(r, "createdAt"), created);

	scene_must(scene, 0, "POST", ACCOUNTS "/alice/credit", "{'amount':20,'key':'pay-1'}", 200, "");
	assert_int_equal(reply_int(r, "balance"), 520);
	assert_string_equal(reply_text(r, "id"), "alice");
	assert_string_equal(reply_text(r, "createdAt"), created);
	assert_string_equal(reply_text(r, "duplicate"), "false");
	scene_must(scene, 0, "POST", ACCOUNTS "/alice/credit", "{'key':'pay-2','amount':5}", 200, "");
	assert_int_equal(reply_int(r, "balance"), 525);
	/* Again: the account as it is, and no effect. */
	scene_must(scene, 0, "POST", ACCOUNTS "/alice/credit", "{'amount':20,'key':'pay-1'}", 200, "");
	assert_int_equal(reply_int(r, "balance"), 525);
	assert_string_equal(reply_text(r, "createdAt"), created);
	assert_string_equal(reply_text(r, "duplicate"), "true");
	scene_must(scene, 0, "POST", ACCOUNTS "/alice/credit", "{'amount':21,'key':'pay-1'}", 409, "ALREADY_EXISTS");
	assert_non_null(strstr(reply_text(r, "detail"), "another amount before: 20, not 21"));

	scene_must(scene, 0, "GET", ACCOUNTS "/alice/ledger", NULL, 200, "");
	assert_int_equal(reply_count(r, "items"), 3);
	assert_string_equal(reply_text(r, "items.0.key"), "/opening");
	assert_string_equal(reply_text(r, "items.0.reason"), "opening");
	assert_string_equal(reply_text(r, "items.0.time"), created);
	assert_string_equal(reply_text(r, "items.2.key"), "pay-2");
	assert_string_equal(reply_text(r, "items.2.reason"), "credit");
	assert_string_equal(reply_text(r, "cursor"), "null");
	scene_must(scene, 0, "GET", ACCOUNTS "/alice/ledger?limit=2", NULL, 200, "");
	assert_int_equal(reply_count(r, "items"), 2);
	assert_string_equal(reply_text(r, "cursor"), "2");
	scene_must(scene, 0, "GET", ACCOUNTS "/alice/ledger?cursor=3", NULL, 200, "");
	assert_int_equal(reply_count(r, "items"), 0);
	assert_int_equal(assert_ledger(scene, 0, "alice", 525), 3);
	stop(scene, 1);
}

static void test_on_sqlite(void **state)
{
	accounts_and_what_they_say(*state);
}

static void test_on_postgres(void **state)
{
	accounts_and_what_they_say(*state);
}

/* Page by page, from whatever was the last; every account once, and in the order of the ids. */
static void lists(struct scene *scene)
{
	static const char *const wanted[] = {"alice", "bob", "carol", "dave", "eve"};
	const struct reply *r = &scene->last;
	char path[200], cursor[64] = "";
	size_t seen = 0;

	start(scene, 1);
	scene_must(scene, 0, "GET", ACCOUNTS, NULL, 200, "");
	assert_string_equal(r->body, "{\"items\":[],\"cursor\":null}");
	for (size_t i = 5; i-- > 0;)
		create(scene, wanted[i], (int64_t)i);
	do {
		snprintf(path, sizeof path, ACCOUNTS "?limit=2%s%s", *cursor ? "&cursor=" : "", cursor);
		scene_must(scene, 0, "GET", path, NULL, 200, "");
		for (size_t i = 0; i < reply_count(r, "items"); i++, seen++) {
			assert_true(seen < 5);
			snprintf(path, sizeof path, "items.%zu.id", i);
			assert_string_equal(reply_text(r, path), wanted[seen]);
			snprintf(path, sizeof path, "items.%zu.balance", i);
			assert_int_equal(reply_int(r, path), seen);
		}
		snprintf(cursor, sizeof cursor, "%s", reply_text(r, "cursor"));
	} while (strcmp(cursor, "null") != 0);
	assert_int_equal(seen, 5);
	/* A cursor is a place, not an account. */
	scene_must(scene, 0, "GET", ACCOUNTS "?cursor=cz", NULL, 200, "");
	assert_int_equal(reply_count(r, "items"), 2);
	scene_must(scene, 0, "GET", ACCOUNTS "?limit=501", NULL, 400, "VALIDATION_ERROR");
	scene_must(scene, 0, "GET", ACCOUNTS "?status=x", NULL, 400, "VALIDATION_ERROR");
	stop(scene, 1);
}

static void test_lists_on_sqlite(void **state)
{
	lists(*state);
}

static void test_lists_on_postgres(void **state)
{
	lists(*state);
}

static void test_what_belongs_to_others_is_not_there(void **state)
{
	static const char other[] = "Hapax-Workspace: other\r\n";
	static const struct {
		const char *method, *path, *body;
	} calls[] = {{"GET", ACCOUNTS "/alice", ""},
		     {"GET", ACCOUNTS "/alice/ledger", ""},
		     {"POST", ACCOUNTS "/alice/credit", "{\"amount\":1,\"key\":\"k\"}"}};
	static const char bobs[] = "{\"id\":\"alice\",\"balance\":7}";
	struct scene *scene = *state;
	struct reply reply;

	start(scene, 1);
	create(scene, "alice", 500);
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		char nobody[100];

		assert_true(client_call_with(scene->admin[0], calls[i].method, calls[i].path, other, calls[i].body,
					     strlen(calls[i].body), &reply));
		assert_int_equal(reply.status, 404);
		assert_string_equal(reply.code, "NOT_FOUND");
		reply_release(&reply);
		snprintf(nobody, sizeof nobody, ACCOUNTS "/nobody%s", calls[i].path + strlen(ACCOUNTS "/alice"));
		assert_true(client_call_with(scene->admin[0], calls[i].method, nobody, "", calls[i].body,
					     strlen(calls[i].body), &reply));
		assert_int_equal(reply.status, 404);
		reply_release(&reply);
	}
	/* The same id there is another account. */
	assert_true(client_call_with(scene->admin[0], "POST", ACCOUNTS, other, bobs, strlen(bobs), &reply));
	assert_int_equal(reply.status, 201);
	reply_release(&reply);
	assert_int_equal(assert_ledger(scene, 0, "alice", 500), 1);
	stop(scene, 1);
}

static void test_names_and_keys(void **state)
{
	struct scene *scene = *state;
	char body[700], key[260];

	start(scene, 1);
	scene_must(scene, 0, "POST", ACCOUNTS, "{'id':'a/b \\u00e4','balance':0}", 201, "");
	scene_must(scene, 0, "POST", ACCOUNTS "/a%2Fb%20%C3%A4/credit", "{'amount':1,'key':'\\u00e4/\\n'}", 200, "");
	assert_string_equal(reply_text(&scene->last, "id"), "a/b ä");
	scene_must(scene, 0, "GET", ACCOUNTS "/a%2Fb%20%C3%A4/ledger", NULL, 200, "");
	assert_string_equal(reply_text(&scene->last, "items.1.key"), "ä/\n");
	scene_must(scene, 0, "GET", ACCOUNTS "/%C3", NULL, 400, NULL);
	memset(key, 'k', sizeof key);
	snprintf(body, sizeof body, "{'amount':1,'key':'%.255s'}", key);
	scene_must(scene, 0, "POST", ACCOUNTS "/a%2Fb%20%C3%A4/credit", body, 200, "");
	snprintf(body, sizeof body, "{'amount':1,'key':'%.256s'}", key);
	scene_must(scene, 0, "POST", ACCOUNTS "/a%2Fb%20%C3%A4/credit", body, 400, "VALIDATION_ERROR");
	snprintf(body, sizeof body, "{'id':'%.255s','balance':1}", key);
	scene_must(scene, 0, "POST", ACCOUNTS, body, 201, "");
	snprintf(body, sizeof body, "{'id':'%.256s','balance':1}", key);
	scene_must(scene, 0, "POST", ACCOUNTS, body, 400, "VALIDATION_ERROR");
	stop(scene, 1);
}

#define CREDIT ACCOUNTS "/alice/credit"

/* Each detail names what it is about, and the value. */
static const struct {
	const char *path, *body, *names, *value;
} refused[] = {
	{ACCOUNTS, "", "id", ""},
	{ACCOUNTS, "[]", "object", ""},
	{ACCOUNTS, "{'balance':1}", "id", ""},
	{ACCOUNTS, "{'id':7,'balance':1}", "id", ""},
	{ACCOUNTS, "{'id':'','balance':1}", "id", ""},
	{ACCOUNTS, "{'id':'a\\u0001','balance':1}", "id", "\\u0001"},
	{ACCOUNTS, "{'id':'b'}", "balance", "missing"},
	{ACCOUNTS, "{'id':'b','balance':null}", "balance", "null"},
	{ACCOUNTS, "{'id':'b','balance':'5'}", "balance", "\"5\""},
	{ACCOUNTS, "{'id':'b','balance':-1}", "balance", "-1"},
	{ACCOUNTS, "{'id':'b','balance':-0}", "balance", "-0"},
	{ACCOUNTS, "{'id':'b','balance':0.5}", "balance", "0.5"},
	{ACCOUNTS, "{'id':'b','balance':5.0}", "balance", "5.0"},
	{ACCOUNTS, "{'id':'b','balance':5e2}", "balance", "5e2"},
	{ACCOUNTS, "{'id':'b','balance':1000000000000000001}", "balance", "1000000000000000001"},
	{ACCOUNTS, "{'id':'b','balance':99999999999999999999999}", "balance", "99999999999999999999999"},
	{ACCOUNTS, "{'id':'b','balance':1,'currency':'EUR'}", "currency", ""},
	{ACCOUNTS, "{'id':'b','balance':1,'balance':2}", "balance", ""},
	{CREDIT, "{'key':'k'}", "amount", "missing"},
	{CREDIT, "{'amount':0,'key':'k'}", "amount", "not 0"},
	{CREDIT, "{'amount':-5,'key':'k'}", "amount", "-5"},
	{CREDIT, "{'amount':1.5,'key':'k'}", "amount", "1.5"},
	{CREDIT, "{'amount':1e3,'key':'k'}", "amount", "1e3"},
	{CREDIT, "{'amount':'1','key':'k'}", "amount", "\"1\""},
	{CREDIT, "{'amount':true,'key':'k'}", "amount", "true"},
	{CREDIT, "{'amount':1000000000000000001,'key':'k'}", "amount", "1000000000000000001"},
	{CREDIT, "{'amount':9223372036854775808,'key':'k'}", "amount", "9223372036854775808"},
	{CREDIT, "{'amount':1}", "key", "missing"},
	{CREDIT, "{'amount':1,'key':''}", "key", ""},
	{CREDIT, "{'amount':1,'key':null}", "key", ""},
	{CREDIT, "{'amount':1,'key':7}", "key", ""},
	{CREDIT, "{'amount':1,'key':'/'}", "key", "/"},
	{CREDIT, "{'amount':1,'key':'/opening'}", "key", "/opening"},
	{CREDIT, "{'amount':1,'key':'a\\u0000b'}", "key", ""},
	{CREDIT, "{'amount':1,'key':'k','reason':'gift'}", "reason", ""},
};

static void test_requests_that_are_refused(void **state)
{
	struct scene *scene = *state;

	start(scene, 1);
	create(scene, "alice", 500);
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		scene_must(scene, 0, "POST", refused[i].path, refused[i].body, 400, "VALIDATION_ERROR");
		if (!strstr(reply_text(&scene->last, "detail"), refused[i].names) ||
		    !strstr(reply_text(&scene->last, "detail"), refused[i].value))
			fail_msg("%s: %s", refused[i].body, scene->last.body);
	}
	scene_must(scene, 0, "GET", ACCOUNTS "/alice/ledger?limit=0", NULL, 400, "VALIDATION_ERROR");
	scene_must(scene, 0, "GET", ACCOUNTS "/alice/ledger?cursor=x", NULL, 400, "VALIDATION_ERROR");
	scene_must(scene, 0, "GET", ACCOUNTS "/b", NULL, 404, "NOT_FOUND");
	assert_int_equal(assert_ledger(scene, 0, "alice", 500), 1);
	stop(scene, 1);
}

/* The largest amounts are exact, and the limit of a balance costs nobody anything. */
static void limits(struct scene *scene)
{
	const struct reply *r = &scene->last;
	char body[100];

	start(scene, 1);
	/* More than a double tells apart. */
	create(scene, "odd", INT64_C(9007199254740993));
	scene_must(scene, 0, "POST", ACCOUNTS "/odd/credit", "{'amount':12345678901234567,'key':'a'}", 200, "");
	assert_string_equal(reply_text(r, "balance"), "21352878155975560");
	assert_int_equal(assert_ledger(scene, 0, "odd", INT64_C(21352878155975560)), 2);
	create(scene, "rich", ACCOUNT_AMOUNT_MAX / 2);
	snprintf(body, sizeof body, "{'amount':%lld,'key':'a'}", (long long)ACCOUNT_AMOUNT_MAX / 2 - 5);
	scene_must(scene, 0, "POST", ACCOUNTS "/rich/credit", body, 200, "");
	assert_int_equal(reply_int(r, "balance"), ACCOUNT_AMOUNT_MAX - 5);
	assert_books(scene);
	scene_must(scene, 0, "POST", ACCOUNTS "/rich/credit", "{'amount':6,'key':'b'}", 400, "VALIDATION_ERROR");
	assert_non_null(strstr(reply_text(r, "detail"), "amount 6 would take the balance beyond its limit"));
	scene_must(scene, 0, "POST", ACCOUNTS "/rich/credit", "{'amount':5,'key':'b'}", 200, "");
	assert_string_equal(reply_text(r, "balance"), "1000000000000000000");
	scene_must(scene, 0, "POST", ACCOUNTS "/rich/credit", "{'amount':1,'key':'c'}", 400, "VALIDATION_ERROR");
	scene_must(scene, 0, "POST", ACCOUNTS "/rich/credit", "{'amount':5,'key':'b'}", 200, "");
	assert_int_equal(assert_ledger(scene, 0, "rich", ACCOUNT_BALANCE_MAX), 3);
	stop(scene, 1);
}

static void test_limits_on_sqlite(void **state)
{
	limits(*state);
}

static void test_limits_on_postgres(void **state)
{
	limits(*state);
}

/* ---- Idempotency-Key ---- */

static struct reply send_with(struct scene *scene, const char *key, const char *path, const char *body, int status,
			      const char *outcome)
{
	struct reply reply;
	char fields[100], expected[100];

	snprintf(fields, sizeof fields, "Idempotency-Key: %s\r\n", key);
	snprintf(expected, sizeof expected, "Idempotency-Status: %s\r\n", outcome);
	assert_true(client_call_with(scene->admin[0], "POST", path, fields, body, strlen(body), &reply));
	if (reply.status != status || !strstr(reply.head, expected))
		fail_msg("%s: %d %s\n%s", path, reply.status, reply.head, reply.body);
	return reply;
}

static void test_header_replays(void **state)
{
	static const struct {
		const char *path, *body, *other;
		int status;
	} calls[] = {{ACCOUNTS, "{\"id\":\"alice\",\"balance\":500}", "{\"id\":\"alice\",\"balance\":501}", 201},
		     {ACCOUNTS "/alice/credit", "{\"amount\":20,\"key\":\"a\"}", "{\"amount\":21,\"key\":\"a\"}", 200}};
	struct scene *scene = *state;
	struct reply first, again;

	start(scene, 1);
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		first = send_with(scene, "k", calls[i].path, calls[i].body, calls[i].status, "created");
		if (i)
			scene_must(scene, 0, "POST", calls[i].path, "{'amount':1,'key':'between'}", 200, "");
		again = send_with(scene, "k", calls[i].path, calls[i].body, calls[i].status, "replayed");
		assert_string_equal(first.body, again.body); /* to the byte, whatever the balance is by now */
		reply_release(&again);
		again = send_with(scene, "k", calls[i].path, calls[i].other, 422, "mismatch");
		reply_release(&again);
		reply_release(&first);
	}
	assert_int_equal(assert_ledger(scene, 0, "alice", 521), 3);
	stop(scene, 1);
}

/* ---- at the same time ---- */

struct one {
	pthread_barrier_t *starts;
	struct client *client;
	const char *path;
	char body[100];
	struct reply reply;
	pthread_t thread;
};

static void *credit_one(void *context)
{
	struct one *one = context;

	pthread_barrier_wait(one->starts);
	(void)client_call(one->client, "POST", one->path, one->body, strlen(one->body),
			  &one->reply); /* else status 0 */
	return NULL;
}

/* n credits at once, spread over the nodes. Returns how many were told 200; of these so many that it was done now. */
static int credit_at_once(struct scene *scene, int nodes, int n, const char *path,
			  void (*write_body)(int i, char body[100]), int *ret_done_now)
{
	struct one *ones = calloc((size_t)n, sizeof *ones);
	pthread_barrier_t starts;
	int told = 0;

	*ret_done_now = 0;
	pthread_barrier_init(&starts, NULL, (unsigned)n);
	for (int i = 0; i < n; i++) {
		ones[i] = (struct one){
			.starts = &starts, .client = client_new(scene->nodes[i % nodes]->port, NULL), .path = path};
		write_body(i, ones[i].body);
		assert_int_equal(pthread_create(&ones[i].thread, NULL, credit_one, &ones[i]), 0);
	}
	for (int i = 0; i < n; i++) {
		pthread_join(ones[i].thread, NULL);
		told += ones[i].reply.status == 200;
		if (ones[i].reply.status != 200)
			print_message("%d %s\n", ones[i].reply.status, ones[i].reply.body ? ones[i].reply.body : "");
		else
			*ret_done_now += strcmp(reply_text(&ones[i].reply, "duplicate"), "false") == 0;
		reply_release(&ones[i].reply);
		client_free(ones[i].client);
	}
	pthread_barrier_destroy(&starts);
	free(ones);
	return told;
}

static void with_its_own_key(int i, char body[100])
{
	snprintf(body, 100, "{\"amount\":%d,\"key\":\"k-%d\"}", i + 1, i);
}

static void with_one_key(int i, char body[100])
{
	(void)i;
	snprintf(body, 100, "{\"amount\":9,\"key\":\"same\"}");
}

/* Of two amounts under one key one is there, and all others hear of it. */
static void with_two_amounts(int i, char body[100])
{
	snprintf(body, 100, "{\"amount\":%d,\"key\":\"two\"}", 1 + i % 4 / 2);
}

static void parallel(struct scene *scene, int nodes)
{
	const int64_t sum = CREDITS * (CREDITS + 1) / 2;
	int told, done_now;
	int64_t amount;

	start(scene, nodes);
	create(scene, "alice", 1000);
	create(scene, "bob", 0);
	told = credit_at_once(scene, nodes, CREDITS, ACCOUNTS "/alice/credit", with_its_own_key, &done_now);
	assert_int_equal(told, CREDITS);
	assert_int_equal(done_now, CREDITS);
	assert_int_equal(assert_ledger(scene, nodes - 1, "alice", 1000 + sum), 1 + CREDITS);
	told = credit_at_once(scene, nodes, SAME, ACCOUNTS "/alice/credit", with_one_key, &done_now);
	assert_int_equal(told, SAME);
	assert_int_equal(done_now, 1); /* and all others hear that it was there */
	assert_int_equal(assert_ledger(scene, 0, "alice", 1000 + sum + 9), 2 + CREDITS);
	told = credit_at_once(scene, nodes, SAME, ACCOUNTS "/bob/credit", with_two_amounts, &done_now);
	assert_int_equal(done_now, 1);
	scene_must(scene, 0, "GET", ACCOUNTS "/bob", NULL, 200, "");
	amount = reply_int(&scene->last, "balance");
	assert_true(amount == 1 || amount == 2);
	assert_int_equal(told, amount == 1 ? (SAME + 2) / 4 * 2 : SAME - (SAME + 2) / 4 * 2);
	assert_int_equal(assert_ledger(scene, nodes - 1, "bob", amount), 2);
	stop(scene, nodes);
}

static void test_parallel_on_sqlite(void **state)
{
	parallel(*state, 1);
}

static void test_parallel_on_two_nodes(void **state)
{
	parallel(*state, 2);
}

/* ---- kill -9 ---- */

struct killing {
	struct fleet fleet;
	_Atomic bool over;
	_Atomic int64_t credited, amount, repeated; /* what was acknowledged, and tries that had no answer */
	_Atomic int refused;
};

struct writer {
	struct killing *killing;
	int n;
	pthread_t thread;
};

/* Until it is over: a credit, to one of two accounts, asked for until somebody says that it is there. */
static void *keep_crediting(void *context)
{
	struct writer *w = context;
	struct killing *k = w->killing;
	struct caller *caller = caller_new(&k->fleet, (uint64_t)w->n);

	for (int i = 0; !atomic_load(&k->over); i++) {
		int64_t amount = 1 + (int64_t)caller_draw(caller, 1000);
		struct reply reply = {0};
		unsigned tries;
		char body[100];

		snprintf(body, sizeof body, "{\"amount\":%lld,\"key\":\"%d-%d\"}", (long long)amount, w->n, i);
		tries = caller_call(caller, "POST", i % 2 ? ACCOUNTS "/alice/credit" : ACCOUNTS "/bob/credit", body,
				    &reply);
		if (tries && reply.status == 200) {
			atomic_fetch_add(&k->amount, amount);
			atomic_fetch_add(&k->repeated, tries - 1);
			atomic_fetch_add(&k->credited, 1);
		} else {
			atomic_fetch_add(&k->refused, 1);
		}
		reply_release(&reply);
	}
	caller_free(caller);
	return NULL;
}

/* Somebody looks, all the while. */
static bool has_credited(struct killing *k, int64_t n)
{
	assert_books(k->fleet.scene);
	return atomic_load(&k->credited) >= n;
}

static void kill_in_the_middle(struct scene *scene, int nodes, const char *where)
{
	struct writer writers[WRITERS];
	struct killing k = {0};

	fleet_start(&k.fleet, scene, nodes);
	create(scene, "alice", 1000000);
	create(scene, "bob", 0);
	for (int i = 0; i < WRITERS; i++) {
		writers[i] = (struct writer){.killing = &k, .n = i};
		assert_int_equal(pthread_create(&writers[i].thread, NULL, keep_crediting, &writers[i]), 0);
	}
	for (int i = 0; i < KILLS; i++) {
		int64_t before = atomic_load(&k.credited);

		AWAIT(DEADLINE_MS, has_credited(&k, before + BETWEEN_KILLS));
		fleet_kill(&k.fleet, i % nodes);
		assert_books(scene);
		fleet_revive(&k.fleet, i % nodes);
	}
	atomic_store(&k.over, true);
	for (int i = 0; i < WRITERS; i++)
		pthread_join(writers[i].thread, NULL);
	assert_int_equal(k.refused, 0);
	assert_int_equal(number(scene, "SELECT sum(balance) FROM hx_account"), 1000000 + k.amount);
	assert_int_equal(number(scene, "SELECT count(*) FROM hx_ledger WHERE reason = 'credit'"), k.credited);
	scene_must(scene, 0, "GET", ACCOUNTS "/alice", NULL, 200, "");
	assert_ledger(scene, 0, "alice", reply_int(&scene->last, "balance"));
	printf("# accounts, %s: %d kills, %lld credits acknowledged and there once, after %lld tries without an answer\n",
	       where, KILLS, (long long)k.credited, (long long)k.repeated);
	stop(scene, nodes);
	fleet_release(&k.fleet);
}

static void test_kill_on_sqlite(void **state)
{
	kill_in_the_middle(*state, 1, "SQLite");
}

static void test_kill_on_two_nodes(void **state)
{
	kill_in_the_middle(*state, 2, "PostgreSQL with two nodes");
}

#define SQLITE(test) cmocka_unit_test_setup_teardown(test, scene_set_up_sqlite, scene_tear_down)
#define POSTGRES(test) cmocka_unit_test_setup_teardown(test, scene_set_up_postgres, scene_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SQLITE(test_on_sqlite),
		POSTGRES(test_on_postgres),
		SQLITE(test_lists_on_sqlite),
		POSTGRES(test_lists_on_postgres),
		SQLITE(test_what_belongs_to_others_is_not_there),
		SQLITE(test_names_and_keys),
		SQLITE(test_requests_that_are_refused),
		SQLITE(test_limits_on_sqlite),
		POSTGRES(test_limits_on_postgres),
		SQLITE(test_header_replays),
		SQLITE(test_parallel_on_sqlite),
		POSTGRES(test_parallel_on_two_nodes),
		SQLITE(test_kill_on_sqlite),
		POSTGRES(test_kill_on_two_nodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
