/* See item.h. */
#include "support/item.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define ARENA_BYTES_MAX (256u << 20)

/* Good for both stores. */
const char item_table[] =
	"CREATE TABLE item (id BIGINT NOT NULL PRIMARY KEY, n BIGINT, t TEXT, b BYTEA, CHECK (n <> 13))";

const struct db_stmt item_put = {
	.name = "item_put",
	.sql = "INSERT INTO item (id, n, t, b) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING RETURNING id",
	.set_sql = "WITH made AS (INSERT INTO item (id, n, t, b) SELECT p1, p2, p3, p4 FROM {u} ORDER BY p1"
		   " ON CONFLICT DO NOTHING RETURNING id) SELECT u.ord, made.id FROM made JOIN {u} ON made.id = u.p1",
	.in = "iitb",
	.out = "i",
};

const struct db_stmt item_move = {
	.name = "item_move",
	.sql = "UPDATE item SET n = ?2{from} WHERE id = ?1 AND n = ?3 RETURNING {ord}id, n",
	.in = "iii",
	.out = "ii",
};

const struct db_stmt item_bump = {
	.name = "item_bump",
	.sql = "UPDATE item SET n = n + 1 WHERE id = ?1",
	.in = "i",
	.out = "",
};

const struct db_stmt item_get = {
	.name = "item_get",
	.sql = "SELECT {ord}id, n, t, b FROM item{join} WHERE id = ?1",
	.in = "i",
	.out = "iitb",
};

const struct db_stmt item_range = {
	.name = "item_range",
	.sql = "SELECT id FROM item WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
	.in = "ii",
	.out = "i",
};

static const struct db_stmt item_count_all = {
	.name = "item_count",
	.sql = "SELECT count(*) FROM item",
	.in = "",
	.out = "i",
};

struct session *session_new(const struct store *store, struct db *db)
{
	struct session *s = calloc(1, sizeof *s);

	assert_non_null(s);
	s->store = store;
	s->db = db;
	arena_init(&s->arena, ARENA_BYTES_MAX);
	s->unit = calloc(SESSION_UNITS_MAX, sizeof *s->unit);
	s->result = calloc(SESSION_UNITS_MAX, sizeof *s->result);
	assert_non_null(s->unit);
	assert_non_null(s->result);
	for (size_t i = 0; i < SESSION_UNITS_MAX; i++)
		s->units[i] = &s->unit[i];
	return s;
}

struct session *session_open(const struct store *store)
{
	return session_new(store, store_open(store));
}

void session_free(struct session *s)
{
	if (!s)
		return;
	db_close(s->db);
	arena_release(&s->arena);
	free(s->unit);
	free(s->result);
	free(s);
}

void session_reset(struct session *s)
{
	s->n = 0;
	s->err = (struct hx_error){0};
	arena_reset(&s->arena);
}

struct unit *session_unit(struct session *s)
{
	ASSERT(s->n < SESSION_UNITS_MAX);
	unit_init(&s->unit[s->n], /* op= */ (int64_t)s->n + 1);
	return &s->unit[s->n++];
}

enum hx_code session_execute(struct session *s)
{
	enum hx_code code = s->db->driver->begin(s->db, &s->err);

	return code ? code : s->db->driver->execute(s->db, s->units, s->n, s->result, &s->arena, &s->err);
}

enum hx_code session_run(struct session *s)
{
	enum hx_code code = session_execute(s);

	return code ? code : s->db->driver->commit(s->db, &s->err);
}

void session_must(const struct session *s, enum hx_code code)
{
	if (code != HX_OK)
		fail_msg("%s: %s", hx_code_name(code), s->err.detail);
}

static int set_up(void **state, enum store_kind kind)
{
	struct store *store = store_new(kind);
	struct session *s = session_open(store);

	session_must(s, s->db->driver->script(s->db, item_table, &s->err));
	*state = s;
	return 0;
}

int session_set_up_file(void **state)
{
	return set_up(state, STORE_SQLITE_FILE);
}

int session_set_up_memory(void **state)
{
	return set_up(state, STORE_SQLITE_MEMORY);
}

int session_set_up_postgres(void **state)
{
	return set_up(state, STORE_POSTGRES);
}

int session_tear_down(void **state)
{
	struct session *s = *state;
	struct store *store = s ? (struct store *)s->store : NULL;

	session_free(s);
	store_free(store);
	return 0;
}

void item_must_put(struct session *s, int64_t id, int64_t n)
{
	session_reset(s);
	UNIT_ADD(session_unit(s), UNIT_VERDICT, &item_put, db_int(id), db_int(n), db_str("x"), db_null());
	session_must(s, session_run(s));
	assert_int_equal(s->result[0].verdict, UNIT_WON);
}

int64_t item_n(struct session *s, int64_t id, int64_t absent)
{
	session_reset(s);
	UNIT_ADD(session_unit(s), UNIT_ANY, &item_get, db_int(id));
	session_must(s, session_run(s));
	return s->result[0].rows[0].n ? db_cell(&s->result[0].rows[0], 0, 1)->i : absent;
}

size_t item_count(struct session *s)
{
	session_reset(s);
	unit_add(session_unit(s), UNIT_ANY, &item_count_all, 0, NULL);
	session_must(s, session_run(s));
	return (size_t)db_cell(&s->result[0].rows[0], 0, 0)->i;
}
