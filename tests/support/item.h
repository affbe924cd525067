/*
 * A small table of its own for the contract of the drivers, and a session around one connection: most tests
 * begin, run a few units, commit and look at the table.
 *
 *   item (id, n, t, b), n <> 13
 */
#ifndef HX_TESTS_SUPPORT_ITEM_H
#define HX_TESTS_SUPPORT_ITEM_H

#include "db/driver.h"
#include "support/store.h"

#define SESSION_UNITS_MAX 512
#define ITEM_UNLUCKY 13 /* refused by a CHECK */

extern const char item_table[];
extern const struct db_stmt item_put;   /* id n t b → id; no row when the id is there already */
extern const struct db_stmt item_move;  /* id, to, from → id, n: a guarded write of n */
extern const struct db_stmt item_bump;  /* id: n + 1, returns nothing, row form only */
extern const struct db_stmt item_get;   /* id → id, n, t, b */
extern const struct db_stmt item_range; /* from, to → id, by id */

/* One connection and room for a batch. Functions that fail the test are for its own thread. */
struct session {
	const struct store *store;
	struct db *db;
	struct arena arena;
	struct hx_error err;
	size_t n;
	struct unit *unit; /* SESSION_UNITS_MAX of them */
	struct unit *units[SESSION_UNITS_MAX];
	struct unit_result *result;
};

/* Takes the connection over. */
struct session *session_new(const struct store *store, struct db *db);
void session_free(struct session *s);
/* Opens one more connection to the same store. */
struct session *session_open(const struct store *store);

/* cmocka fixtures: *state is a session on a fresh store with the table item. */
int session_set_up_file(void **state);
int session_set_up_memory(void **state);
int session_set_up_postgres(void **state);
int session_tear_down(void **state);

/* Fails the test, with the words of the store, unless the code is HX_OK. */
void session_must(const struct session *s, enum hx_code code);
/* Starts a new batch, and adds an empty unit to it. */
void session_reset(struct session *s);
struct unit *session_unit(struct session *s);
/* begin and execute; commit as well in session_commit. */
enum hx_code session_execute(struct session *s);
enum hx_code session_run(struct session *s);

/* A batch of one unit of one line, committed: for setting up and looking. */
void item_must_put(struct session *s, int64_t id, int64_t n);
/* n of an item, or `absent`. */
int64_t item_n(struct session *s, int64_t id, int64_t absent);
size_t item_count(struct session *s);

#endif
