/* See store.h. */
#include "support/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "db/migrate.h"

#define AWAIT_S 60

static const char *needed(const char *variable)
{
	const char *value = getenv(variable);

	if (!value || !*value)
		fail_msg("%s is not set: run this through tests/with-postgres (make test does)", variable);
	return value;
}

/* One part of the url of the private server, e.g. "port". */
static void server_part(const char *keyword, char *ret_text, size_t bytes)
{
	PQconninfoOption *parts = PQconninfoParse(needed("HAPAX_TEST_PG"), NULL);

	assert_non_null(parts);
	ret_text[0] = '\0';
	for (PQconninfoOption *part = parts; part->keyword; part++)
		if (part->val && strcmp(part->keyword, keyword) == 0)
			snprintf(ret_text, bytes, "%s", part->val);
	PQconninfoFree(parts);
}

int store_pg_port(void)
{
	char port[16];

	server_part("port", port, sizeof port);
	return atoi(port);
}

void store_url(const struct store *store, int port, const char *application_name, char *ret_url, size_t url_bytes)
{
	char user[64], dbname[64];
	int n;

	server_part("user", user, sizeof user);
	server_part("dbname", dbname, sizeof dbname);
	n = snprintf(ret_url, url_bytes,
		     "postgres://%s@127.0.0.1:%d/%s?sslmode=disable&application_name=%s&options=-csearch_path%%3D%s",
		     user, port ? port : store_pg_port(), dbname, application_name, store->schema);
	assert_true(n > 0 && (size_t)n < url_bytes);
}

PGconn *store_raw(const struct store *store)
{
	char url[512];
	PGconn *raw;

	store_url(store, /* port= */ 0, "raw", url, sizeof url);
	raw = PQconnectdb(url);
	if (PQstatus(raw) != CONNECTION_OK)
		fail_msg("PostgreSQL: %s", PQerrorMessage(raw));
	return raw;
}

void raw_run(PGconn *raw, const char *sql, char *ret_cell, size_t cell_bytes)
{
	PGresult *res = PQexec(raw, sql);
	ExecStatusType status = PQresultStatus(res);

	if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
		fail_msg("%s: %s", sql, PQerrorMessage(raw));
	if (ret_cell)
		snprintf(ret_cell, cell_bytes, "%s", PQntuples(res) ? PQgetvalue(res, 0, 0) : "");
	PQclear(res);
}

void raw_await(PGconn *raw, const char *sql, const char *wanted)
{
	struct clock *clock = clock_system();
	struct mono_time deadline = mono_add_ms(clock_mono(clock), AWAIT_S * 1000);
	char cell[256];

	do {
		raw_run(raw, sql, cell, sizeof cell);
		if (strcmp(cell, wanted) == 0)
			return;
	} while (clock_mono(clock).ns < deadline.ns);
	fail_msg("waited %d s: %s is \"%s\", not \"%s\"", AWAIT_S, sql, cell, wanted);
}

void store_pg_ctl(const char *what)
{
	char command[512];
	int n = snprintf(command, sizeof command, "'%s' %s", needed("HAPAX_TEST_PG_CTL"), what);

	assert_true(n > 0 && (size_t)n < sizeof command);
	assert_int_equal(system(command), 0);
}

static void make_schema(struct store *store)
{
	static int counter;
	char sql[128];
	PGconn *raw;

	snprintf(store->schema, sizeof store->schema, "t_%d_%d", (int)getpid(), ++counter);
	store_url(store, /* port= */ 0, "hapax", store->url, sizeof store->url);
	raw = store_raw(store);
	snprintf(sql, sizeof sql, "CREATE SCHEMA %s", store->schema);
	raw_run(raw, sql, NULL, 0);
	PQfinish(raw);
}

static void make_file(struct store *store)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(store->dir, sizeof store->dir, "%s/hapax-store.XXXXXX", tmp && *tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(store->dir));
	snprintf(store->url, sizeof store->url, "sqlite:%s/store.db", store->dir);
}

struct store *store_new(enum store_kind kind)
{
	struct store *store;

	if (kind == STORE_POSTGRES)
		needed("HAPAX_TEST_PG");
	store = calloc(1, sizeof *store);
	assert_non_null(store);
	store->kind = kind;
	switch (kind) {
	case STORE_SQLITE_FILE:
		make_file(store);
		break;
	case STORE_SQLITE_MEMORY:
		snprintf(store->url, sizeof store->url, "sqlite::memory:");
		break;
	case STORE_POSTGRES:
		make_schema(store);
		break;
	}
	return store;
}

static void remove_files(const struct store *store)
{
	static const char *const suffixes[] = {"", "-wal", "-shm", ".lock"};
	char path[512];

	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		snprintf(path, sizeof path, "%s/store.db%s", store->dir, suffixes[i]);
		(void)unlink(path); /* not all of them exist */
	}
	assert_int_equal(rmdir(store->dir), 0);
}

void store_free(struct store *store)
{
	char sql[128];
	PGconn *raw;

	if (!store)
		return;
	if (store->kind == STORE_SQLITE_FILE)
		remove_files(store);
	if (store->kind == STORE_POSTGRES) {
		raw = store_raw(store);
		snprintf(sql, sizeof sql, "SET client_min_messages = error; DROP SCHEMA %s CASCADE", store->schema);
		raw_run(raw, sql, NULL, 0);
		PQfinish(raw);
	}
	free(store);
}

struct db *store_open_url(const char *url, struct clock *clock)
{
	struct db_options options = {.url = url, .clock = clock ? clock : clock_system()};
	struct hx_error err = {0};
	struct db *db = NULL;

	if (db_open(&options, &db, &err) != HX_OK)
		fail_msg("open: %s", err.detail);
	return db;
}

struct db *store_open(const struct store *store)
{
	return store_open_url(store->url, /* clock= */ NULL);
}

struct db *store_open_hasty(const struct store *store, const char *application_name)
{
	char base[512], url[600];
	struct db_options options = {.url = url, .clock = clock_system(), .stay_unchecked = true};
	struct hx_error err = {0};
	struct db *db = NULL;

	store_url(store, /* port= */ 0, application_name, base, sizeof base);
	snprintf(url, sizeof url, "%s%%20-csynchronous_commit%%3Doff", base);
	if (db_open(&options, &db, &err) != HX_OK)
		fail_msg("open: %s", err.detail);
	return db;
}

struct db *store_open_migrated(const struct store *store)
{
	struct db *db = store_open(store);
	struct migrate_status before;
	struct hx_error err = {0};

	if (migrate_run(db, &before, &err) != HX_OK)
		fail_msg("migrate: %s", err.detail);
	return db;
}
