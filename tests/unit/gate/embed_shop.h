/* A shop with an account whose payments go through a gate, as an embedding program has one: see test_embed.c. */
#ifndef HX_TESTS_UNIT_GATE_EMBED_SHOP_H
#define HX_TESTS_UNIT_GATE_EMBED_SHOP_H

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

static inline int64_t sql(const struct shop *shop, const char *text)
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

static inline void on_event(void *data, const struct hx_gate_event *event)
{
	struct shop *shop = data;

	pthread_mutex_lock(&shop->mutex);
	shop->events[event->outcome]++;
	shop->last = *event;
	snprintf(shop->last_text, sizeof shop->last_text, "%s %s %s %s", event->method ? event->method : "-",
		 event->path ? event->path : "-", event->tenant ? event->tenant : "-", event->key);
	pthread_mutex_unlock(&shop->mutex);
}

static inline void open_gate(struct shop *shop, const char *url)
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

static inline struct shop *shop_new(void **state)
{
	struct shop *shop = calloc(1, sizeof *shop);

	pthread_mutex_init(&shop->mutex, NULL);
	*state = shop;
	return shop;
}

static inline int set_up(void **state, enum store_kind kind)
{
	struct shop *shop = shop_new(state);

	shop->store = store_new(kind);
	open_gate(shop, shop->store->url);
	sql(shop, "CREATE TABLE account (id text PRIMARY KEY, balance bigint NOT NULL CHECK (balance <> 13))");
	sql(shop, "CREATE TABLE payment (n bigint NOT NULL, what text)");
	sql(shop, "INSERT INTO account VALUES ('acme', 100)");
	return 0;
}

static inline int set_up_sqlite(void **state)
{
	return set_up(state, STORE_SQLITE_FILE);
}

static inline int set_up_postgres(void **state)
{
	return set_up(state, STORE_POSTGRES);
}

static inline int set_up_proxied(void **state)
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

static inline int set_up_memory(void **state)
{
	open_gate(shop_new(state), "memory:");
	return 0;
}

static inline int set_up_own(void **state)
{
	struct shop *shop = shop_new(state);

	shop->own = user_store_new(clock_system());
	open_gate(shop, NULL);
	return 0;
}

static inline int tear_down(void **state)
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

static inline enum hx_code begin(struct shop *shop, const char *key, const char *body, struct hx_gate_entry **ret_entry)
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
static inline struct hx_gate_entry *begun(struct shop *shop, const char *key, const char *body)
{
	struct hx_gate_entry *entry = NULL;

	assert_int_equal(begin(shop, key, body, &entry), HX_OK);
	assert_null(hx_gate_replay(entry));
	return entry;
}

static inline void replays(struct shop *shop, const char *key, const char *body, int status, const char *answer)
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

static inline struct hx_gate_response answer_of(const char *body)
{
	return (struct hx_gate_response){HX_SIZE(hx_gate_response), 201, 3, json_fields, body, strlen(body)};
}

static inline struct hx_value number(int64_t n)
{
	return (struct hx_value){.type = HX_VALUE_INT, .number = n};
}

static inline struct hx_value text(const char *s)
{
	return (struct hx_value){.type = HX_VALUE_TEXT, .bytes = s, .bytes_n = strlen(s)};
}

static const char debit[] = "UPDATE account SET balance = balance - ?1 WHERE id = ?2 AND balance >= ?1";
static const char note[] = "INSERT INTO payment (n, what) VALUES (?1, ?2)";

/* Takes an amount off the account and notes it, with the record. */
static inline enum hx_code pay(struct hx_gate_entry *entry, int64_t amount, const char *what, struct hx_error *err)
{
	struct hx_value noted[] = {number(amount), what ? text(what) : (struct hx_value){.type = HX_VALUE_NULL}};
	struct hx_value debited[] = {number(amount), text("acme")};
	struct hx_gate_write writes[] = {{note, 2, noted, 0}, {debit, 2, debited, 1}};
	struct hx_gate_response answer = answer_of("{\"paid\":true}");

	return hx_gate_complete(entry, &answer, 2, writes, err);
}

static inline void assert_account(struct shop *shop, int64_t balance, int64_t payments)
{
	assert_int_equal(sql(shop, "SELECT balance FROM account"), balance);
	assert_int_equal(sql(shop, "SELECT count(*) FROM payment"), payments);
}

#define ON(store, test)                                                                                                \
	{                                                                                                              \
#test " on " #store, test, set_up_##store, tear_down, NULL                                             \
	}
#define ON_DATABASES(test) ON(sqlite, test), ON(postgres, test)
#define ON_ALL(test) ON_DATABASES(test), ON(memory, test), ON(own, test)

#endif
