/*
 * A fresh store for one test: a SQLite file in TMPDIR, SQLite in memory, or a schema of its own on the private
 * PostgreSQL that tests/with-postgres started. What was made is removed by store_free().
 *
 * These fail the running cmocka test (so: call them from its thread). Without HAPAX_TEST_PG the PostgreSQL tests
 * fail and say how they are run; they are never skipped.
 */
#ifndef HX_TESTS_SUPPORT_STORE_H
#define HX_TESTS_SUPPORT_STORE_H

#include <libpq-fe.h>

#include "db/driver.h"

enum store_kind { STORE_SQLITE_FILE, STORE_SQLITE_MEMORY, STORE_POSTGRES };

struct store {
	enum store_kind kind;
	char dir[256];   /* SQLite: the folder of the file */
	char schema[64]; /* PostgreSQL */
	char url[512];
};

struct store *store_new(enum store_kind kind);
/* Takes NULL. All connections must be closed. */
void store_free(struct store *store);

/* Opens one more connection; with the program's schema when `migrated`. */
struct db *store_open(const struct store *store);
struct db *store_open_migrated(const struct store *store);
/* PostgreSQL: the url of the same schema over another port (a proxy; 0: the server's own) under another name. */
void store_url(const struct store *store, int port, const char *application_name, char *ret_url, size_t url_bytes);
struct db *store_open_url(const char *url, struct clock *clock);
/* PostgreSQL: a connection that does not wait for the disk, for tests that are about order and not about crashes. */
struct db *store_open_hasty(const struct store *store, const char *application_name);

/* PostgreSQL: a connection of libpq's own in the same schema, and the port of the server. */
PGconn *store_raw(const struct store *store);
int store_pg_port(void);
/* Runs SQL that must succeed; the first cell of the last result, as text, goes to ret_cell (may be NULL). */
void raw_run(PGconn *raw, const char *sql, char *ret_cell, size_t cell_bytes);
/* Waits until the query's first cell is `wanted`; fails the test after ten seconds. */
void raw_await(PGconn *raw, const char *sql, const char *wanted);
/* HAPAX_TEST_PG_CTL: "restart fast", "stop immediate", … */
void store_pg_ctl(const char *what);

#endif
