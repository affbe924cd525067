/*
 * migrate.h on every store: a fresh one, one that is up to date, one from the future, one that is in the way, and
 * several nodes that start at the same moment.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "db/migrate.h"
#include "flow/kept_call.h"
#include "support/item.h"

static void migration_makes_the_schema_once(void **state)
{
	struct session *s = *state;
	struct migrate_status status;

	session_must(s, migrate_read_status(s->db, &status, &s->err));
	assert_int_equal(status.at, 0);
	assert_true(status.known >= 1);
	assert_int_equal(migrate_check(s->db, &s->err), HX_SCHEMA_MISMATCH);

	session_must(s, migrate_run(s->db, &status, &s->err));
	assert_int_equal(status.at, 0);
	session_must(s, migrate_check(s->db, &s->err));
	session_must(s, s->db->driver->script(s->db, "DELETE FROM hx_subject; DELETE FROM hx_history", &s->err));

	session_must(s, migrate_run(s->db, &status, &s->err));
	assert_int_equal(status.at, status.known);
	session_must(s, migrate_check(s->db, &s->err));
}

/* So that a server can start with a role that may not change the schema. */
static void nothing_is_written_where_nothing_is_to_be_done(void **state)
{
	struct session *s = *state;
	struct migrate_status status;

	session_must(s, migrate_run(s->db, &status, &s->err));
	if (s->db->driver != &db_sqlite) /* which has no roles */
		session_must(s, s->db->driver->script(s->db, "SET default_transaction_read_only = on", &s->err));
	session_must(s, migrate_run(s->db, &status, &s->err));
	assert_int_equal(status.at, status.known);
}

static void a_newer_schema_is_refused_untouched(void **state)
{
	struct session *s = *state;
	struct migrate_status status;

	session_must(s, migrate_run(s->db, &status, &s->err));
	session_must(s, s->db->driver->script(
				s->db, "INSERT INTO hx_schema_version (number, name) VALUES (9999, 'later')", &s->err));
	assert_int_equal(migrate_run(s->db, &status, &s->err), HX_SCHEMA_MISMATCH);
	assert_non_null(strstr(s->err.detail, "9999"));
	assert_int_equal(migrate_check(s->db, &s->err), HX_SCHEMA_MISMATCH);
	session_must(s, migrate_read_status(s->db, &status, &s->err));
	assert_int_equal(status.at, 9999);
	assert_int_equal(item_count(s), 0); /* the connection is as good as before */
}

static void a_migration_that_fails_leaves_nothing(void **state)
{
	struct session *s = *state;
	struct migrate_status status;

	/* In the way of the first migration. */
	session_must(s, s->db->driver->script(s->db, "CREATE TABLE hx_history (id BIGINT)", &s->err));
	assert_int_not_equal(migrate_run(s->db, &status, &s->err), HX_OK);
	session_must(s, migrate_read_status(s->db, &status, &s->err));
	assert_int_equal(status.at, 0);
	assert_int_not_equal(s->db->driver->script(s->db, "SELECT count(*) FROM hx_subject", &s->err), HX_OK);
	assert_int_equal(item_count(s), 0);
	session_must(s, s->db->driver->script(s->db, "DROP TABLE hx_history", &s->err));
	session_must(s, migrate_run(s->db, &status, &s->err));
}

struct migrator {
	struct db *db;
	pthread_barrier_t *barrier;
	enum hx_code code;
	struct migrate_status before;
	struct hx_error err;
};

static void *migrate(void *context)
{
	struct migrator *m = context;

	pthread_barrier_wait(m->barrier);
	m->code = migrate_run(m->db, &m->before, &m->err);
	return NULL;
}

static void migrators_do_not_race(void **state)
{
	struct session *s = *state;
	enum { N = 6 };
	struct migrator m[N] = {0};
	pthread_t threads[N];
	pthread_barrier_t barrier;
	int first = 0;

	if (s->store->kind == STORE_SQLITE_MEMORY)
		return;
	pthread_barrier_init(&barrier, NULL, N);
	for (int i = 0; i < N; i++) {
		m[i] = (struct migrator){.db = store_open(s->store), .barrier = &barrier};
		assert_int_equal(pthread_create(&threads[i], NULL, migrate, &m[i]), 0);
	}
	for (int i = 0; i < N; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < N; i++) {
		if (m[i].code)
			fail_msg("%s", m[i].err.detail);
		first += m[i].before.at == 0;
		db_close(m[i].db);
	}
	assert_int_equal(first, 1);
	session_must(s, migrate_check(s->db, &s->err));
	pthread_barrier_destroy(&barrier);
}

static void the_printed_text_does_the_same(void **state)
{
	struct session *s = *state;
	struct strbuf text;

	strbuf_init(&text, 1u << 20);
	migrate_print(s->db->driver, &(struct migrate_status){0}, &text);
	session_must(s, s->db->driver->script(s->db, text.p, &s->err));
	session_must(s, migrate_check(s->db, &s->err));

	struct migrate_status status;

	session_must(s, migrate_read_status(s->db, &status, &s->err));
	strbuf_reset(&text);
	migrate_print(s->db->driver, &status, &text); /* nothing is left to do */
	assert_int_equal(text.n, 0);
	strbuf_release(&text);
}

/* ---- a store that an older program has made ---- */

/* Every column, every index, every function, in one order. */
static const struct db_stmt stmt_describe_sqlite = {
	.name = "describe",
	.sql = "SELECT what FROM (SELECT m.name || '.' || p.name || ' ' || p.type || ' ' || p.\"notnull\" || ' ' || p.pk || ' '"
	       " || coalesce(p.dflt_value, '-') AS what FROM sqlite_schema m, pragma_table_xinfo(m.name) p WHERE m.type = 'table'"
	       " UNION ALL SELECT name || ' ' || replace(sql, '\"', '') FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL)"
	       " ORDER BY what",
	.in = "",
	.out = "t",
};
static const struct db_stmt stmt_describe_postgres = {
	.name = "describe",
	.sql = "SELECT what FROM (SELECT concat_ws(' ', table_name, ordinal_position, column_name, data_type, is_nullable,"
	       " column_default, generation_expression) AS what FROM information_schema.columns WHERE table_schema = current_schema()"
	       " UNION ALL SELECT replace(indexdef, current_schema() || '.', '') FROM pg_indexes WHERE schemaname = current_schema()"
	       " UNION ALL SELECT conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint"
	       " WHERE connamespace = current_schema()::regnamespace"
	       " UNION ALL SELECT relname || relkind::text || reloptions::text FROM pg_class"
	       " WHERE relnamespace = current_schema()::regnamespace"
	       " UNION ALL SELECT prosrc FROM pg_proc WHERE pronamespace = current_schema()::regnamespace) d ORDER BY what",
	.in = "",
	.out = "t",
};

/* To the letter. */
static const struct db_stmt stmt_schema_sqlite = {
	.name = "schema",
	.sql = "SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_schema ORDER BY name",
	.in = "",
	.out = "t",
};

static void describe(struct session *s, const struct db_stmt *on_sqlite, struct strbuf *out)
{
	struct unit *unit;

	session_reset(s);
	unit = session_unit(s);
	unit_add(unit, UNIT_ANY, s->db->driver == &db_sqlite ? on_sqlite : &stmt_describe_postgres, 0, NULL);
	session_must(s, session_run(s));
	for (size_t i = 0; i < s->result[0].rows[0].n; i++) {
		strbuf_add_slice(out, db_cell(&s->result[0].rows[0], i, 0)->s);
		strbuf_add_str(out, "\n");
	}
}

/* What version 0.1 made, with a subject in it. */
static void make_old_store(struct session *s)
{
	const struct db_migration_text *texts = s->db->driver == &db_sqlite ? db_schema_sqlite : db_schema_postgres;
	char insert[100], *all = packed_text(&db_schema_texts);

	session_must(s, s->db->driver->script(
				s->db, "CREATE TABLE schema_version (number INTEGER PRIMARY KEY, name TEXT NOT NULL)",
				&s->err));
	for (size_t i = 0; texts[i].number <= 8; i++) {
		session_must(s, s->db->driver->script(s->db, all + texts[i].text_at, &s->err));
		snprintf(insert, sizeof insert, "INSERT INTO schema_version VALUES (%d, 'x')", texts[i].number);
		session_must(s, s->db->driver->script(s->db, insert, &s->err));
	}
	free(all);
	session_must(s,
		     s->db->driver->script(
			     s->db,
			     s->db->driver == &db_sqlite
				     ? "INSERT INTO subject VALUES (7, 1, 'open', 1, 1, 0, 0, 0, NULL, NULL, 1, 1, x'')"
				     : "INSERT INTO subject VALUES (7, 1, 'open', 1, 1, 0, 0, 0, NULL, NULL, 1, 1, '')",
			     &s->err));
}

static CMFixtureFunction set_up_another;

static void an_old_store_becomes_what_a_new_one_is(void **state)
{
	struct session *s = *state, *fresh;
	struct migrate_status status;
	struct strbuf was_old, is_new, sql;
	void *other = NULL;

	strbuf_init(&was_old, 1u << 20);
	strbuf_init(&is_new, 1u << 20);
	strbuf_init(&sql, 1u << 20);
	make_old_store(s);
	session_must(s, migrate_read_status(s->db, &status, &s->err));
	assert_int_equal(status.at, 8);
	migrate_print(s->db->driver, &status, &sql);
	assert_non_null(strstr(sql.p, "ALTER TABLE job RENAME"));
	session_must(s, migrate_run(s->db, &status, &s->err));
	session_must(s, migrate_check(s->db, &s->err));
	session_must(s, s->db->driver->script(s->db, "UPDATE hx_subject SET version = 2 WHERE id = 7", &s->err));
	describe(s, &stmt_describe_sqlite, &was_old);

	assert_int_equal(set_up_another(&other), 0);
	fresh = other;
	session_must(fresh, migrate_run(fresh->db, &status, &fresh->err));
	describe(fresh, &stmt_describe_sqlite, &is_new);
	assert_string_equal(was_old.p, is_new.p);
	session_tear_down(&other);
	strbuf_release(&was_old), strbuf_release(&is_new), strbuf_release(&sql);
}

/* One migration after the other, each as its file has it, up to this number. */
static void make_store_by_steps(struct session *s, int last)
{
	const struct db_migration_text *m = s->db->driver == &db_sqlite ? db_schema_sqlite : db_schema_postgres;
	char *all = packed_text(&db_schema_texts), insert[100];

	session_must(s, s->db->driver->script(s->db,
					      "CREATE TABLE IF NOT EXISTS hx_schema_version"
					      " (number INTEGER PRIMARY KEY, name TEXT NOT NULL)",
					      &s->err));
	for (; m->number; m++) {
		if (m->number <= 8 || m->number > last)
			continue;
		session_must(s,
			     s->db->driver->script(s->db, all + (m->base_at < 0 ? m->text_at : m->base_at), &s->err));
		snprintf(insert, sizeof insert, "INSERT INTO hx_schema_version VALUES (%d, 'x')", m->number);
		session_must(s, s->db->driver->script(s->db, insert, &s->err));
	}
	free(all);
}

static void columns_that_come_later_are_the_same_in_a_new_store(void **state)
{
	struct session *s = *state, *fresh;
	struct migrate_status status;
	struct strbuf by_steps, at_once;
	void *other = NULL;

	strbuf_init(&by_steps, 1u << 20);
	strbuf_init(&at_once, 1u << 20);
	make_store_by_steps(s, MIGRATE_NUMBERS_MAX);
	describe(s, &stmt_schema_sqlite, &by_steps);
	assert_int_equal(set_up_another(&other), 0);
	fresh = other;
	migrate_print(fresh->db->driver, &(struct migrate_status){0}, &at_once);
	assert_null(strstr(at_once.p, "ADD COLUMN")); /* every table was made here, and none is renamed afterwards */
	strbuf_reset(&at_once);
	session_must(fresh, migrate_run(fresh->db, &status, &fresh->err));
	describe(fresh, &stmt_schema_sqlite, &at_once);
	assert_string_equal(by_steps.p, at_once.p);
	session_tear_down(&other);
	strbuf_release(&by_steps), strbuf_release(&at_once);
}

/* ---- what is in doubt when the program is another one ---- */

static void add_entity(struct session *s, int id, const char *effort_and_doubt, const char *claimed, const char *open)
{
	char text[800];

	snprintf(
		text, sizeof text,
		"INSERT INTO hx_subject (id, kind, status, version, op, fence, effort, doubt, updated_at, seq, head)"
		" VALUES (%d, 1, 'approved', 3, 1, 2, %s, 1, 3, %s);"
		"INSERT INTO hx_entity (subject, workspace, workflow, name, data, claim_step, claim_from, claim_requester, claim_input,"
		" claim_effort, claim_address, claim_version, claim_open)"
		" VALUES (%d, 'default', 'billing', 'e%d', '{\"a\":1}', 'charge', 'approved', 'cron', '{}', %s, 'http://there', 2, %s)",
		id, effort_and_doubt, s->db->driver == &db_sqlite ? "x''" : "''", id, id, claimed, open);
	session_must(s, s->db->driver->script(s->db, text, &s->err));
}

static const struct db_stmt stmt_kept = {
	.name = "kept",
	.sql = "SELECT subject, step, effort, from_status, requester, input, data, address, version, open FROM hx_kept_call ORDER BY subject",
	.in = "",
	.out = "itittttti"
	       "i",
};

static void assert_kept(struct session *s, size_t i, int64_t subject, int64_t open)
{
	static const char *const texts[] = {NULL,   "charge", NULL,        "approved",
					    "cron", "{}",     "{\"a\":1}", "http://there"};
	const struct db_rows *rows = &s->result[0].rows[0];

	assert_int_equal(db_cell(rows, i, 0)->i, subject);
	assert_int_equal(db_cell(rows, i, 2)->i, 6);
	for (size_t t = 0; t < sizeof texts / sizeof *texts; t++)
		assert_true(!texts[t] || slice_is(db_cell(rows, i, t)->s, texts[t]));
	assert_int_equal(db_cell(rows, i, 8)->i, 2);
	assert_int_equal(db_cell(rows, i, 9)->i, open);
}

/* A call without a claim; one that was answered; a claim that was reverted, whose row is made by whoever comes next. */
static void calls_in_doubt_keep_their_keys(void **state)
{
	struct session *s = *state;
	struct migrate_status status;
	struct unit *unit;

	make_store_by_steps(s, 74);
	add_entity(s, 1, "6, 0", "6", "2");
	add_entity(s, 2, "6, 0", "5", "1");
	add_entity(s, 3, "6, 1", "6", "NULL");
	session_must(s, migrate_run(s->db, &status, &s->err));
	assert_true(status.at < 75);
	session_reset(s);
	unit = session_unit(s);
	kept_call_put_away(unit, 3, /* fence= */ 2);
	session_must(s, session_run(s));
	session_reset(s);
	unit = session_unit(s);
	unit_add(unit, UNIT_ANY, &stmt_kept, 0, NULL);
	session_must(s, session_run(s));
	assert_int_equal(s->result[0].rows[0].n, 2);
	assert_kept(s, 0, 1, 2);
	assert_kept(s, 1, 3, 1);
}

/* A database of the user's, with tables of his own that have the names ours once had. */
static void tables_of_the_user_are_not_in_the_way(void **state)
{
	struct session *s = *state;
	struct migrate_status status;

	session_must(s,
		     s->db->driver->script(s->db,
					   "CREATE TABLE job (of_mine TEXT); CREATE TABLE run (of_mine TEXT);"
					   "CREATE TABLE schema_version (installed_rank TEXT);"
					   "CREATE TABLE history (of_mine TEXT); CREATE TABLE run_key (of_mine TEXT)",
					   &s->err));
	session_must(s, migrate_run(s->db, &status, &s->err));
	assert_int_equal(status.at, 0);
	session_must(s, migrate_check(s->db, &s->err));
	session_must(s, s->db->driver->script(s->db, "INSERT INTO job VALUES ('still here')", &s->err));
}

/* `hapax gate` makes what it needs; the engine adds the rest, in the same store. */
static void the_gate_makes_its_own_tables_alone(void **state)
{
	struct session *s = *state;
	struct migrate_status status;

	assert_int_equal(migrate_check_part(s->db, MIGRATE_GATE, &s->err), HX_SCHEMA_MISMATCH);
	session_must(s, migrate_run_part(s->db, MIGRATE_GATE, &status, &s->err));
	session_must(s, migrate_check_part(s->db, MIGRATE_GATE, &s->err));
	session_must(s, s->db->driver->script(s->db, "DELETE FROM hx_gate_record", &s->err));
	assert_int_not_equal(s->db->driver->script(s->db, "SELECT count(*) FROM hx_subject", &s->err), HX_OK);
	assert_int_equal(migrate_check(s->db, &s->err), HX_SCHEMA_MISMATCH);

	session_must(s, migrate_run(s->db, &status, &s->err));
	session_must(s, migrate_check(s->db, &s->err));
	session_must(s, migrate_check_part(s->db, MIGRATE_GATE, &s->err));
	session_must(s, s->db->driver->script(s->db, "DELETE FROM hx_subject", &s->err));
}

#define TEST(test)                                                                                                     \
	{                                                                                                              \
		.name = #test, .test_func = test, .teardown_func = session_tear_down                                   \
	}

static struct CMUnitTest tests[] = {
	TEST(migration_makes_the_schema_once),
	TEST(a_newer_schema_is_refused_untouched),
	TEST(a_migration_that_fails_leaves_nothing),
	TEST(migrators_do_not_race),
	TEST(the_printed_text_does_the_same),
	TEST(nothing_is_written_where_nothing_is_to_be_done),
	TEST(an_old_store_becomes_what_a_new_one_is),
	TEST(tables_of_the_user_are_not_in_the_way),
	TEST(calls_in_doubt_keep_their_keys),
	TEST(the_gate_makes_its_own_tables_alone),
	TEST(columns_that_come_later_are_the_same_in_a_new_store),
};

int main(void)
{
	static const struct {
		const char *name;
		CMFixtureFunction set_up;
	} stores[] = {{"sqlite file", session_set_up_file},
		      {"sqlite memory", session_set_up_memory},
		      {"postgres", session_set_up_postgres}};
	int failed = 0;

	for (size_t i = 0; i < sizeof stores / sizeof *stores; i++) {
		for (size_t t = 0; t < sizeof tests / sizeof *tests; t++)
			tests[t].setup_func = stores[i].set_up;
		set_up_another = stores[i].set_up;
		failed += cmocka_run_group_tests_name(stores[i].name, tests, NULL, NULL);
	}
	return failed;
}
