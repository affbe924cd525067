/*
 * hx_gate_*, as an embedding program uses them: only what hapax.h has, on a database (SQLite and PostgreSQL), in memory
 * and on a store of the program's own.
 */
#include <pthread.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hapax.h"
#include "support/pg_proxy.h"
#include "support/store.h"
#include "support/user_store.h"

#define CALLERS 32

struct shop {
	struct store *store; /* NULL: none, see url */
	struct user_store *own;
	struct pg_proxy *proxy; /* NULL: the gate is at the server itself */
	struct hx_gate *gate;
	int64_t lease_ms, ttl_ms;
	unsigned events[HX_GATE_OUTCOMES];
	struct hx_gate_event last; /* texts are gone */
	char last_text[200];
	pthread_mutex_t mutex;
};

/* ---- a shop with an account ---- */

static int64_t sql(const struct shop *shop, const char *text)
{
	char cell[64] = "0";

	if (shop->store->kind == STORE_POSTGRES) {
		PGconn *raw = store_raw(shop->store);

		raw_run(raw, text, cell, sizeof cell);
		PQfinish(raw);
	} else {
		sqlite3 *handle;
		sqlite3_stmt *stmt;

		assert_int_equal(sqlite3_open(shop->store->url + strlen("sqlite:"), &handle), SQLITE_OK);
		sqlite3_busy_timeout(handle, 10000);
		sqlite3_db_config(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
		assert_int_equal(sqlite3_prepare_v2(handle, text, -1, &stmt, NULL), SQLITE_OK);
		if (sqlite3_step(stmt) == SQLITE_ROW)
			snprintf(cell, sizeof cell, "%s", (const char *)sqlite3_column_text(stmt, 0));
		assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
		sqlite3_close(handle);
	}
	return strtoll(cell, NULL, 10);
}

static void on_event(void *data, const struct hx_gate_event *event)
{
	struct shop *shop = data;

	pthread_mutex_lock(&shop->mutex);
	shop->events[event->outcome]++;
	shop->last = *event;
	snprintf(shop->last_text, sizeof shop->last_text, "%s %s %s %s", event->method ? event->method : "-",
		 event->path ? event->path : "-", event->tenant ? event->tenant : "-", event->key);
	pthread_mutex_unlock(&shop->mutex);
}

static void open_gate(struct shop *shop, const char *url)
{
	struct hx_gate_options options = {
		HX_SIZE(hx_gate_options),
		.store_url = url,
		.store = url ? NULL : user_store_table(shop->own),
		.lease_ms = shop->lease_ms,
		.ttl_ms = shop->ttl_ms,
		.on_event = on_event,
		.data = shop,
	};
	struct hx_error err;

	if (hx_gate_open(&options, &shop->gate, &err))
		fail_msg("%s: %s", hx_code_name(err.code), err.detail);
}

static struct shop *shop_new(void **state)
{
	struct shop *shop = calloc(1, sizeof *shop);

	pthread_mutex_init(&shop->mutex, NULL);
	*state = shop;
	return shop;
}

static int set_up(void **state, enum store_kind kind)
{
	struct shop *shop = shop_new(state);

	shop->store = store_new(kind);
	open_gate(shop, shop->store->url);
	sql(shop, "CREATE TABLE account (id text PRIMARY KEY, balance bigint NOT NULL CHECK (balance <> 13))");
	sql(shop, "CREATE TABLE payment (n bigint NOT NULL, what text)");
	sql(shop, "INSERT INTO account VALUES ('acme', 100)");
	return 0;
}

static int set_up_sqlite(void **state)
{
	return set_up(state, STORE_SQLITE_FILE);
}

static int set_up_postgres(void **state)
{
	return set_up(state, STORE_POSTGRES);
}

static int set_up_proxied(void **state)
{
	int rc = set_up(state, STORE_POSTGRES);
	struct shop *shop = *state;
	char url[512];

	shop->proxy = pg_proxy_new(store_pg_port());
	assert_non_null(shop->proxy);
	store_url(shop->store, pg_proxy_port(shop->proxy), "proxied", url, sizeof url);
	hx_gate_close(shop->gate);
	open_gate(shop, url);
	return rc;
}

static int set_up_memory(void **state)
{
	open_gate(shop_new(state), "memory:");
	return 0;
}

static int set_up_own(void **state)
{
	struct shop *shop = shop_new(state);

	shop->own = user_store_new(clock_system());
	open_gate(shop, NULL);
	return 0;
}

static int tear_down(void **state)
{
	struct shop *shop = *state;

	hx_gate_close(shop->gate);
	pg_proxy_free(shop->proxy);
	user_store_free(shop->own);
	store_free(shop->store);
	pthread_mutex_destroy(&shop->mutex);
	free(shop);
	return 0;
}

/* ---- calls ---- */

static enum hx_code begin(struct shop *shop, const char *key, const char *body, struct hx_gate_entry **ret_entry)
{
	struct hx_gate_request request = {
		HX_SIZE(hx_gate_request),
		.method = "POST",
		.path = "/payments",
		.tenant = "t",
		.key = key,
		.content_type = "application/json",
		.body = body,
		.body_bytes = strlen(body),
	};
	struct hx_error err = {.code = HX_OK};
	enum hx_code code = hx_gate_begin(shop->gate, &request, ret_entry, NULL, &err);

	assert_int_equal(code, err.code);
	return code;
}

/* It must be this caller's to do. */
static struct hx_gate_entry *begun(struct shop *shop, const char *key, const char *body)
{
	struct hx_gate_entry *entry = NULL;

	assert_int_equal(begin(shop, key, body, &entry), HX_OK);
	assert_null(hx_gate_replay(entry));
	return entry;
}

static void replays(struct shop *shop, const char *key, const char *body, int status, const char *answer)
{
	struct hx_gate_entry *entry = NULL;
	const struct hx_gate_response *replay;

	assert_int_equal(begin(shop, key, body, &entry), HX_OK);
	replay = hx_gate_replay(entry);
	assert_non_null(replay);
	assert_int_equal(replay->status, status);
	assert_int_equal(replay->body_bytes, strlen(answer));
	assert_memory_equal(replay->body, answer, replay->body_bytes);
	hx_gate_entry_free(entry);
}

static const struct hx_gate_field json_fields[] = {
	{"Content-Type", "application/json"}, {"Set-Cookie", "id=1"}, {"X-Trace", "7"}};

static struct hx_gate_response answer_of(const char *body)
{
	return (struct hx_gate_response){HX_SIZE(hx_gate_response), 201, 3, json_fields, body, strlen(body)};
}

static struct hx_value number(int64_t n)
{
	return (struct hx_value){.type = HX_VALUE_INT, .number = n};
}

static struct hx_value text(const char *s)
{
	return (struct hx_value){.type = HX_VALUE_TEXT, .bytes = s, .bytes_n = strlen(s)};
}

static const char debit[] = "UPDATE account SET balance = balance - ?1 WHERE id = ?2 AND balance >= ?1";
static const char note[] = "INSERT INTO payment (n, what) VALUES (?1, ?2)";

/* Takes an amount off the account and notes it, with the record. */
static enum hx_code pay(struct hx_gate_entry *entry, int64_t amount, const char *what, struct hx_error *err)
{
	struct hx_value noted[] = {number(amount), what ? text(what) : (struct hx_value){.type = HX_VALUE_NULL}};
	struct hx_value debited[] = {number(amount), text("acme")};
	struct hx_gate_write writes[] = {{note, 2, noted, 0}, {debit, 2, debited, 1}};
	struct hx_gate_response answer = answer_of("{\"paid\":true}");

	return hx_gate_complete(entry, &answer, 2, writes, err);
}

static void assert_account(struct shop *shop, int64_t balance, int64_t payments)
{
	assert_int_equal(sql(shop, "SELECT balance FROM account"), balance);
	assert_int_equal(sql(shop, "SELECT count(*) FROM payment"), payments);
}

/* ---- on any store ---- */

static void test_done_once_told_again(void **state)
{
	struct shop *shop = *state;
	struct hx_gate_response answer = answer_of("{\"id\":1}");
	struct hx_gate_entry *entry = begun(shop, "k", "{\"a\":1}"), *other = NULL;
	const struct hx_gate_response *replay;
	struct hx_error err;

	assert_int_equal(begin(shop, "k", "{\"a\":1}", &other), HX_IN_FLIGHT);
	assert_int_equal(begin(shop, "k", "{\"a\":2}", &other), HX_FINGERPRINT_MISMATCH);
	assert_int_equal(begin(shop, "a b", "", &other), HX_KEY_INVALID);
	assert_int_equal(begin(shop, NULL, "", &other), HX_KEY_REQUIRED);
	assert_null(other);
	assert_int_equal(hx_gate_complete(entry, &answer, 0, NULL, &err), HX_OK);
	/* It is over: neither can be said twice. */
	assert_int_equal(hx_gate_complete(entry, &answer, 0, NULL, &err), HX_WRONG_STATUS);
	assert_int_equal(hx_gate_abort(entry, &err), HX_WRONG_STATUS);
	hx_gate_entry_free(entry);

	replays(shop, "\"k\"", "{ \"a\": 1.0 }", 201, "{\"id\":1}");
	assert_int_equal(begin(shop, "k", "{\"a\":1}", &entry), HX_OK);
	replay = hx_gate_replay(entry);
	assert_int_equal(replay->fields_n, 2); /* without the cookie */
	assert_string_equal(replay->fields[0].name, "Content-Type");
	assert_string_equal(replay->fields[1].value, "7");
	assert_int_equal(hx_gate_complete(entry, &answer, 0, NULL, &err), HX_WRONG_STATUS);
	hx_gate_entry_free(entry);

	assert_int_equal(shop->events[HX_GATE_CREATED], 1);
	assert_int_equal(shop->events[HX_GATE_REPLAYED], 2);
	assert_int_equal(shop->events[HX_GATE_CONFLICT], 1);
	assert_int_equal(shop->events[HX_GATE_MISMATCH], 1);
	assert_string_equal(shop->last_text, "POST /payments t k");
}

static void test_aborted_is_as_if_never_begun(void **state)
{
	struct shop *shop = *state;
	struct hx_gate_entry *entry = begun(shop, "k", "1");
	struct hx_error err;

	assert_int_equal(hx_gate_abort(entry, &err), HX_OK);
	assert_int_equal(hx_gate_abort(entry, &err), HX_WRONG_STATUS);
	hx_gate_entry_free(entry);
	entry = begun(shop, "k", "2");
	/* Let go without a word: the lease stays, as after a crash. */
	hx_gate_entry_free(entry);
	assert_int_equal(begin(shop, "k", "2", &entry), HX_IN_FLIGHT);
	assert_int_equal(shop->events[HX_GATE_RELEASED], 1);
}

/* Where a key counts: by tenant and endpoint, or everywhere. */
static void test_scopes(void **state)
{
	static const struct hx_gate_request requests[] = {
		{HX_SIZE(hx_gate_request), .method = "POST", .path = "/a", .key = "k"},
		{HX_SIZE(hx_gate_request), .method = "POST", .path = "/b", .key = "k"},
		{HX_SIZE(hx_gate_request), .method = "PUT", .path = "/a", .key = "k"},
		{HX_SIZE(hx_gate_request), .method = "POST", .path = "/a", .key = "k", .tenant = ""},
		{HX_SIZE(hx_gate_request), .method = "POST", .path = "/a", .key = "k", .tenant = "x"},
		{HX_SIZE(hx_gate_request), .key = "k"},
	};
	struct shop *shop = *state;
	struct hx_gate_entry *entry;
	struct hx_error err;
	int64_t after_ms = 0;

	for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
		assert_int_equal(hx_gate_begin(shop->gate, &requests[i], &entry, NULL, &err), HX_OK);
		hx_gate_entry_free(entry);
	}
	for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
		assert_int_equal(hx_gate_begin(shop->gate, &requests[i], &entry, &after_ms, &err), HX_IN_FLIGHT);
		assert_in_range(after_ms, 1, 60000);
	}
}

static void test_body_too_large_is_not_kept(void **state)
{
	struct shop *shop = *state;
	char *body = calloc(1, HX_GATE_BODY_BYTES_MAX + 1);
	struct hx_gate_response answer = {HX_SIZE(hx_gate_response), .status = 200, .body = body,
					  .body_bytes = HX_GATE_BODY_BYTES_MAX};
	struct hx_gate_entry *entry = begun(shop, "fits", "");
	struct hx_error err;

	assert_int_equal(hx_gate_complete(entry, &answer, 0, NULL, &err), HX_OK);
	hx_gate_entry_free(entry);
	assert_int_equal(begin(shop, "fits", "", &entry), HX_OK);
	assert_int_equal(hx_gate_replay(entry)->body_bytes, HX_GATE_BODY_BYTES_MAX);
	assert_memory_equal(hx_gate_replay(entry)->body, body, HX_GATE_BODY_BYTES_MAX);
	hx_gate_entry_free(entry);

	answer.body_bytes++;
	entry = begun(shop, "does-not", "");
	assert_int_equal(hx_gate_complete(entry, &answer, 0, NULL, &err), HX_OK);
	hx_gate_entry_free(entry);
	assert_int_equal(begin(shop, "does-not", "", &entry), HX_RESPONSE_NOT_STORED);
	assert_int_equal(shop->last.outcome, HX_GATE_CONFLICT);
	free(body);
}

static void test_writes_need_a_database(void **state)
{
	struct shop *shop = *state;
	struct hx_gate_entry *entry = begun(shop, "k", "");
	struct hx_error err;

	assert_int_equal(pay(entry, 1, NULL, &err), HX_VALIDATION_ERROR);
	assert_int_equal(hx_gate_abort(entry, &err), HX_OK);
	hx_gate_entry_free(entry);
}

/* ---- a store that fails ---- */

static void test_store_that_is_down(void **state)
{
	struct shop *shop = *state;
	struct hx_gate_response answer = answer_of("{}");
	struct hx_gate_entry *entry, *other = NULL;
	struct hx_error err;

	user_store_set_down(shop->own, true);
	assert_int_equal(begin(shop, "k", "", &other), HX_STORE_UNAVAILABLE);
	assert_int_equal(shop->last.outcome, HX_GATE_STORE_ERROR);
	user_store_set_down(shop->own, false);
	entry = begun(shop, "k", "");
	user_store_set_down(shop->own, true);
	assert_int_equal(hx_gate_complete(entry, &answer, 0, NULL, &err), HX_STORE_UNAVAILABLE);
	assert_int_equal(shop->last.outcome, HX_GATE_UNSTORED);
	/* It may be stored: that is not let go, and can only be said again. */
	assert_int_equal(hx_gate_abort(entry, &err), HX_WRONG_STATUS);
	user_store_set_down(shop->own, false);
	assert_int_equal(begin(shop, "k", "", &other), HX_IN_FLIGHT);
	assert_int_equal(hx_gate_complete(entry, &answer, 0, NULL, &err), HX_OK);
	hx_gate_entry_free(entry);
	replays(shop, "k", "", 201, "{}");
}

static void test_options_are_checked(void **state)
{
	static const struct hx_gate_store empty = {HX_SIZE(hx_gate_store)};
	static const struct hx_gate_options bad[] = {
		{HX_SIZE(hx_gate_options), .store_url = NULL},
		{HX_SIZE(hx_gate_options), .store_url = "memory:", .store = &empty},
		{HX_SIZE(hx_gate_options), .store = &empty},
		{HX_SIZE(hx_gate_options), .store_url = "memory:", .ttl_ms = -1},
		{HX_SIZE(hx_gate_options), .store_url = "memory:", .lease_ms = -1},
		{HX_SIZE(hx_gate_options), .store_url = "mysql://x"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct hx_gate *gate = NULL;
		struct hx_error err;

		assert_int_equal(hx_gate_open(&bad[i], &gate, &err), HX_CONFIG_ERROR);
		assert_null(gate);
	}
	hx_gate_close(NULL);
	hx_gate_entry_free(NULL);
}

/* ---- along with the program's own writes ---- */

static void test_writes_and_record_are_one(void **state)
{
	struct shop *shop = *state;
	struct hx_gate_entry *entry = begun(shop, "k", "");
	struct hx_error err;

	assert_int_equal(pay(entry, 30, "it's {a} ?1 test", &err), HX_OK);
	hx_gate_entry_free(entry);
	assert_account(shop, 70, 1);
	assert_int_equal(sql(shop, "SELECT count(*) FROM payment WHERE what = 'it''s {a} ?1 test'"), 1);
	replays(shop, "k", "", 201, "{\"paid\":true}");
	assert_account(shop, 70, 1);

	/* More than there is: nothing of it all, and the record is still ours, for another answer. */
	entry = begun(shop, "k2", "");
	assert_int_equal(pay(entry, 71, NULL, &err), HX_INVALID);
	assert_non_null(strstr(err.detail, "write 1"));
	assert_account(shop, 70, 1);
	assert_int_equal(begin(shop, "k2", "", &(struct hx_gate_entry *){NULL}), HX_IN_FLIGHT);
	assert_int_equal(pay(entry, 70, NULL, &err), HX_OK);
	hx_gate_entry_free(entry);
	assert_account(shop, 0, 2);

	/* Refused by the store itself. */
	sql(shop, "UPDATE account SET balance = 14");
	entry = begun(shop, "k3", "");
	assert_int_equal(pay(entry, 1, NULL, &err), HX_DATA_ERROR);
	assert_account(shop, 14, 2);
	assert_int_equal(hx_gate_abort(entry, &err), HX_OK);
	hx_gate_entry_free(entry);
	entry = begun(shop, "k3", "");
	hx_gate_entry_free(entry);
}

/* Two hold the record, since the first one's lease was over: one of them writes. */
static void test_only_one_of_two_holders_writes(void **state)
{
	struct shop *shop = *state;
	struct hx_gate_entry *slow, *quick;
	struct hx_error err;

	slow = begun(shop, "k", "");
	sql(shop, "UPDATE hx_gate_record SET until = 1");
	quick = begun(shop, "k", "");
	assert_int_equal(pay(quick, 10, "quick", &err), HX_OK);
	assert_int_equal(pay(slow, 10, "slow", &err), HX_STALE_FENCE);
	assert_int_equal(shop->last.outcome, HX_GATE_STALE);
	assert_account(shop, 90, 1);
	hx_gate_entry_free(slow);
	hx_gate_entry_free(quick);

	/* And the other way round. */
	slow = begun(shop, "k2", "");
	sql(shop, "UPDATE hx_gate_record SET until = 1 WHERE status = 1");
	quick = begun(shop, "k2", "");
	assert_int_equal(pay(slow, 10, "slow", &err), HX_OK);
	assert_int_equal(pay(quick, 10, "quick", &err), HX_STALE_FENCE);
	assert_int_equal(hx_gate_abort(quick, &err), HX_WRONG_STATUS);
	assert_account(shop, 80, 2);
	hx_gate_entry_free(slow);
	hx_gate_entry_free(quick);
	replays(shop, "k2", "", 201, "{\"paid\":true}");

	/* Gone altogether. */
	slow = begun(shop, "k3", "");
	sql(shop, "DELETE FROM hx_gate_record");
	assert_int_equal(pay(slow, 10, "slow", &err), HX_STALE_FENCE);
	assert_account(shop, 80, 2);
	hx_gate_entry_free(slow);
}

static void test_values_of_all_types(void **state)
{
	struct shop *shop = *state;
	bool postgres = shop->store->kind == STORE_POSTGRES;
	struct hx_value values[] = {
		{.type = HX_VALUE_INT, .number = INT64_MIN},
		{.type = HX_VALUE_TEXT, .bytes = "12", .bytes_n = 2},
		{.type = HX_VALUE_BYTES, .bytes = "a\0b", .bytes_n = 3},
		{.type = HX_VALUE_NULL},
	};
	struct hx_gate_write write = {"INSERT INTO kinds VALUES (?1, ?2, ?3, ?4)", 4, values, 1};
	struct hx_gate_response answer = answer_of("{}");
	struct hx_gate_entry *entry = begun(shop, "k", "");
	struct hx_error err;

	sql(shop, postgres ? "CREATE TABLE kinds (i bigint, n integer, b bytea, x text)"
			   : "CREATE TABLE kinds (i bigint, n integer, b blob, x text)");
	assert_int_equal(hx_gate_complete(entry, &answer, 1, &write, &err), HX_OK);
	hx_gate_entry_free(entry);
	assert_int_equal(
		sql(shop, "SELECT count(*) FROM kinds WHERE i = -9223372036854775808 AND n = 12 AND x IS NULL"), 1);
	assert_int_equal(sql(shop, "SELECT length(b) FROM kinds"), 3);
}

static void test_writes_are_checked(void **state)
{
	struct hx_value one = number(1), many[HX_GATE_PARAMS_MAX + 1] = {0};
	const struct hx_gate_write bad[] = {
		{"COMMIT", 0, NULL, 0},
		{"DROP TABLE account", 0, NULL, 0},
		{"DELETE FROM payment; DELETE FROM account", 0, NULL, 0},
		{"DELETE FROM payment WHERE n = ?", 1, &one, 0},
		{"DELETE FROM payment WHERE n = $1", 1, &one, 0},
		{"DELETE FROM payment WHERE n = :n", 1, &one, 0},
		{"DELETE FROM payment WHERE n = ?2", 1, &one, 0},
		{"DELETE FROM payment WHERE n = ?1", 0, NULL, 0},
		{"DELETE FROM payment WHERE n = ?0", 1, &one, 0},
		{"DELETE FROM payment WHERE n = ?13", 13, many, 0},
		{"DELETE FROM payment WHERE n = {u}", 0, NULL, 0},
		{"", 0, NULL, 0},
		{NULL, 0, NULL, 0},
	};
	struct hx_gate_write too_many[HX_GATE_WRITES_MAX + 1];
	struct shop *shop = *state;
	struct hx_gate_response answer = answer_of("{}");
	struct hx_gate_entry *entry = begun(shop, "k", "");
	struct hx_error err;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (hx_gate_complete(entry, &answer, 1, &bad[i], &err) != HX_VALIDATION_ERROR)
			fail_msg("%s", bad[i].sql);
	for (size_t i = 0; i <= HX_GATE_WRITES_MAX; i++)
		too_many[i] = (struct hx_gate_write){"INSERT INTO payment (n) VALUES (?1)", 1, &one, 0};
	assert_int_equal(hx_gate_complete(entry, &answer, HX_GATE_WRITES_MAX + 1, too_many, &err), HX_VALIDATION_ERROR);
	/* No such table: the store's words. */
	assert_int_equal(hx_gate_complete(entry, &answer, 1,
					  &(struct hx_gate_write){"DELETE FROM nothing WHERE a = ?1", 1, &one, 0},
					  &err),
			 HX_DATA_ERROR);
	assert_non_null(strstr(err.detail, "nothing"));
	assert_int_equal(hx_gate_complete(entry, &answer, HX_GATE_WRITES_MAX, too_many, &err), HX_OK);
	hx_gate_entry_free(entry);
	assert_account(shop, 100, HX_GATE_WRITES_MAX);
}

/* Texts are kept for as long as the gate is open, so there is an end to them; a refused one takes no room. */
static void test_texts_have_an_end(void **state)
{
	struct shop *shop = *state;
	struct hx_gate_response answer = answer_of("{}");
	struct hx_error err;
	char key[32], statement[100];

	for (int i = 0; i <= HX_GATE_SQL_TEXTS_MAX; i++) {
		struct hx_gate_write write = {statement, 0, NULL, 0};
		struct hx_gate_entry *entry;

		snprintf(key, sizeof key, "k-%d", i);
		snprintf(statement, sizeof statement, "DELETE FROM payment WHERE n = ?1 AND n = %d", i);
		entry = begun(shop, key, "");
		if (i < HX_GATE_SQL_TEXTS_MAX)
			assert_int_equal(hx_gate_complete(entry, &answer, 1, &write, &err), HX_VALIDATION_ERROR);
		snprintf(statement, sizeof statement, "DELETE FROM payment WHERE n = %d", i);
		assert_int_equal(hx_gate_complete(entry, &answer, 1, &write, &err),
				 i < HX_GATE_SQL_TEXTS_MAX ? HX_OK : HX_TOO_LARGE);
		hx_gate_entry_free(entry);
	}
}

/* ---- a commit whose answer is lost ---- */

/* Pays, and the store cannot be asked in time whether that landed. Then it lands. */
static struct hx_gate_entry *pay_in_doubt(struct shop *shop)
{
	struct hx_gate_entry *entry = begun(shop, "k", "");
	struct hx_error err;

	pg_proxy_arm(shop->proxy, PG_PROXY_HOLD);
	assert_int_equal(pay(entry, 10, NULL, &err), HX_OUTCOME_UNKNOWN);
	assert_int_equal(pg_proxy_cuts(shop->proxy), 1);
	assert_account(shop, 100, 0);
	pg_proxy_let_go(shop->proxy);
	assert_account(shop, 90, 1);
	assert_int_equal(hx_gate_abort(entry, &err), HX_WRONG_STATUS);
	return entry;
}

static void test_repeated_in_doubt_is_found_out(void **state)
{
	struct shop *shop = *state;
	struct hx_gate_entry *entry = pay_in_doubt(shop);
	struct hx_error err;

	assert_int_equal(pay(entry, 10, NULL, &err), HX_OK);
	assert_int_equal(pay(entry, 10, NULL, &err), HX_WRONG_STATUS);
	assert_account(shop, 90, 1);
	hx_gate_entry_free(entry);
	replays(shop, "k", "", 201, "{\"paid\":true}");
}

/* What it wrote has outlived its record, and the key has been begun anew: there is nothing left to be asked. */
static void test_repeated_in_doubt_writes_into_no_other_record(void **state)
{
	struct shop *shop = *state;
	struct hx_gate_entry *entry = pay_in_doubt(shop), *anew;
	struct hx_error err;

	sql(shop, "DELETE FROM hx_gate_record");
	assert_int_equal(pay(entry, 10, NULL, &err), HX_OUTCOME_UNKNOWN);
	anew = begun(shop, "k", "");
	for (int i = 0; i < 2; i++)
		assert_int_equal(pay(entry, 10, NULL, &err), HX_OUTCOME_UNKNOWN);
	assert_int_equal(hx_gate_abort(entry, &err), HX_WRONG_STATUS);
	assert_account(shop, 90, 1);
	assert_int_equal(pay(anew, 10, NULL, &err), HX_OK);
	assert_account(shop, 80, 2);
	hx_gate_entry_free(anew);

	/* Down: of a first try that says that nothing was written, of a repetition it says nothing. */
	anew = begun(shop, "k2", "");
	pg_proxy_free(shop->proxy);
	shop->proxy = NULL;
	assert_int_equal(pay(anew, 10, NULL, &err), HX_STORE_UNAVAILABLE);
	assert_int_equal(pay(entry, 10, NULL, &err), HX_OUTCOME_UNKNOWN);
	assert_account(shop, 80, 2);
	hx_gate_entry_free(anew);
	hx_gate_entry_free(entry);
}

/* ---- many at once ---- */

struct caller {
	pthread_t thread;
	struct shop *shop;
	enum hx_code code;
	bool created;
};

static void *run_caller(void *context)
{
	struct caller *c = context;
	struct hx_gate_request request = {HX_SIZE(hx_gate_request), .method = "POST", .path = "/p", .key = "once"};
	struct hx_gate_entry *entry = NULL;
	struct hx_error err;

	c->code = hx_gate_begin(c->shop->gate, &request, &entry, NULL, &err);
	if (!c->code && !hx_gate_replay(entry)) {
		c->created = true;
		c->code = pay(entry, 10, NULL, &err);
	}
	hx_gate_entry_free(entry);
	return NULL;
}

static void test_many_callers_pay_once(void **state)
{
	struct shop *shop = *state;
	struct caller callers[CALLERS] = {0};
	int created = 0;

	for (int i = 0; i < CALLERS; i++) {
		callers[i].shop = shop;
		assert_int_equal(pthread_create(&callers[i].thread, NULL, run_caller, &callers[i]), 0);
	}
	for (int i = 0; i < CALLERS; i++) {
		pthread_join(callers[i].thread, NULL);
		created += callers[i].created;
		assert_true(callers[i].code == HX_OK || (!callers[i].created && callers[i].code == HX_IN_FLIGHT));
	}
	assert_int_equal(created, 1);
	assert_account(shop, 90, 1);
}

static void test_records_outlive_the_gate(void **state)
{
	struct shop *shop = *state;
	struct hx_gate_entry *entry = begun(shop, "k", "");
	struct hx_gate_options options = {HX_SIZE(hx_gate_options), .store_url = shop->store->url, .space = "another"};
	struct hx_error err;

	assert_int_equal(pay(entry, 1, NULL, &err), HX_OK);
	hx_gate_entry_free(entry);
	hx_gate_close(shop->gate);
	open_gate(shop, shop->store->url);
	replays(shop, "k", "", 201, "{\"paid\":true}");
	/* In another space the same key is another one. */
	hx_gate_close(shop->gate);
	shop->gate = NULL;
	assert_int_equal(hx_gate_open(&options, &shop->gate, &err), HX_OK);
	hx_gate_entry_free(begun(shop, "k", ""));
}

#define ON(store, test)                                                                                                \
	{                                                                                                              \
#test " on " #store, test, set_up_##store, tear_down, NULL                                             \
	}
#define ON_DATABASES(test) ON(sqlite, test), ON(postgres, test)
#define ON_ALL(test) ON_DATABASES(test), ON(memory, test), ON(own, test)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_ALL(test_done_once_told_again),
		ON_ALL(test_aborted_is_as_if_never_begun),
		ON_ALL(test_scopes),
		ON_ALL(test_body_too_large_is_not_kept),
		ON(memory, test_writes_need_a_database),
		ON(own, test_writes_need_a_database),
		ON(own, test_store_that_is_down),
		cmocka_unit_test(test_options_are_checked),
		ON_DATABASES(test_writes_and_record_are_one),
		ON_DATABASES(test_only_one_of_two_holders_writes),
		ON_DATABASES(test_values_of_all_types),
		ON_DATABASES(test_writes_are_checked),
		ON(sqlite, test_texts_have_an_end),
		ON(proxied, test_repeated_in_doubt_is_found_out),
		ON(proxied, test_repeated_in_doubt_writes_into_no_other_record),
		ON_DATABASES(test_many_callers_pay_once),
		ON_DATABASES(test_records_outlive_the_gate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
