/* Migrations: fresh, again, from a newer program, by hand from what --print says, and two that start at once. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "db/migrate.h"
#include "support/store.h"

static const struct db_stmt stmt_dump = {
	.name = "test_dump",
	.sql = "SELECT group_concat(line, char(10)) FROM (SELECT line FROM"
	       " (SELECT type || ' ' || name || ' ' || coalesce(sql, '') AS line FROM sqlite_schema) ORDER BY line)",
	.in = "",
	.out = "t",
};

static const struct db_stmt stmt_versions = {
	.name = "test_versions",
	.sql = "SELECT coalesce(group_concat(number || ' ' || name, ','), '') FROM hx_schema_version",
	.in = "",
	.out = "t",
};

static char *text_of(struct db *db, const struct db_stmt *stmt)
{
	struct unit_result result;
	struct hx_error err;
	struct arena arena;
	struct unit unit;
	struct slice text;
	char *copy;

	arena_init(&arena, 1u << 20);
	unit_init(&unit, 0);
	unit_add(&unit, UNIT_ANY, stmt, 0, NULL);
	if (db_run_unit(db, &unit, &result, &arena, &err) != HX_OK)
		fail_msg("%s", err.detail);
	text = db_cell(&result.rows[0], 0, 0)->s;
	copy = text.p ? strndup(text.p, text.n) : strdup("");
	arena_release(&arena);
	return copy;
}

static void assert_same(struct db *a, struct db *b, const struct db_stmt *stmt)
{
	char *text_a = text_of(a, stmt), *text_b = text_of(b, stmt);

	assert_string_equal(text_a, text_b);
	free(text_a), free(text_b);
}

static void script(struct db *db, const char *sql)
{
	struct hx_error err;

	if (db->driver->script(db, sql, &err) != HX_OK)
		fail_msg("%s", err.detail);
}

static int newest(void)
{
	return db_schema_sqlite[db_schema_sqlite_count - 1].number;
}

static int set_up(void **state)
{
	*state = store_new(STORE_SQLITE_FILE);
	return 0;
}

static int tear_down(void **state)
{
	store_free(*state);
	return 0;
}

static void a_fresh_store_is_brought_up_to_date(void **state)
{
	struct db *db = store_open(*state);
	struct migrate_status status;
	struct hx_error err;
	char *versions;

	assert_int_equal(migrate_read_status(db, &status, &err), HX_OK);
	assert_int_equal(status.at, 0);
	assert_int_equal(status.known, newest());
	assert_int_equal(migrate_run(db, &status, &err), HX_OK);
	assert_int_equal(status.at, 0);
	assert_int_equal(status.known, newest());
	assert_int_equal(migrate_read_status(db, &status, &err), HX_OK);
	assert_int_equal(status.at, newest());
	versions = text_of(db, &stmt_versions);
	assert_ptr_equal(strstr(versions, "9 gate_names"), versions);
	free(versions);
	db_close(db);
}

static void reading_the_status_changes_nothing(void **state)
{
	struct db *db = store_open(*state);
	struct migrate_status status;
	struct hx_error err;
	char *dump;

	assert_int_equal(migrate_read_status(db, &status, &err), HX_OK);
	dump = text_of(db, &stmt_dump);
	assert_string_equal(dump, "");
	free(dump);
	db_close(db);
}

static void a_second_run_finds_nothing_to_do(void **state)
{
	struct db *db = store_open_migrated(*state);
	struct migrate_status before;
	struct hx_error err;
	char *dump = text_of(db, &stmt_dump), *after;

	assert_int_equal(migrate_run(db, &before, &err), HX_OK);
	assert_int_equal(before.at, newest());
	after = text_of(db, &stmt_dump);
	assert_string_equal(dump, after);
	free(dump), free(after);
	db_close(db);
}

static void a_newer_store_is_refused_and_left_alone(void **state)
{
	struct db *db = store_open_migrated(*state);
	struct migrate_status status = {.at = -1};
	struct hx_error err;
	char *dump, *after;

	script(db, "INSERT INTO hx_schema_version (number, name) VALUES (9999, 'from the future')");
	dump = text_of(db, &stmt_dump);
	assert_int_equal(migrate_run(db, &status, &err), HX_SCHEMA_MISMATCH);
	assert_int_equal(status.at, -1); /* written only on success */
	assert_non_null(strstr(err.detail, "9999"));
	assert_int_equal(migrate_check(db, &err), HX_SCHEMA_MISMATCH);
	assert_non_null(strstr(err.detail, "newer program"));
	after = text_of(db, &stmt_dump); /* also: the transaction has ended */
	assert_string_equal(dump, after);
	free(dump), free(after);
	assert_int_equal(migrate_read_status(db, &status, &err), HX_OK);
	assert_int_equal(status.at, 9999);
	db_close(db);
}

static void a_migration_that_fails_leaves_nothing_behind(void **state)
{
	struct db *db = store_open(*state);
	struct migrate_status status;
	struct hx_error err;
	char *dump, *after;

	script(db, "CREATE TABLE hx_history (of, somebody, elses)"); /* in the way of ours, which comes after subject */
	dump = text_of(db, &stmt_dump);
	assert_int_not_equal(migrate_run(db, &status, &err), HX_OK);
	assert_non_null(strstr(err.detail, "history"));
	after = text_of(db, &stmt_dump);
	assert_string_equal(dump, after);
	free(dump), free(after);
	script(db, "DROP TABLE hx_history");
	assert_int_equal(migrate_run(db, &status, &err), HX_OK);
	db_close(db);
}

static void without_migrating_the_number_must_be_exactly_ours(void **state)
{
	struct db *db = store_open(*state);
	struct migrate_status status;
	struct hx_error err;

	assert_int_equal(migrate_check(db, &err), HX_SCHEMA_MISMATCH);
	assert_non_null(strstr(err.detail, "hapax db migrate"));
	assert_int_equal(migrate_run(db, &status, &err), HX_OK);
	assert_int_equal(migrate_check(db, &err), HX_OK);
	db_close(db);
}

static void what_is_printed_is_what_is_run(void **state)
{
	struct store *by_hand = store_new(STORE_SQLITE_FILE);
	struct db *ours = store_open_migrated(*state), *theirs = store_open(by_hand);
	struct hx_error err;
	struct strbuf sql;

	strbuf_init(&sql, 1u << 20);
	migrate_print(&db_sqlite, &(struct migrate_status){0}, &sql);
	assert_false(sql.failed);
	script(theirs, sql.p);
	assert_same(ours, theirs, &stmt_dump);
	assert_same(ours, theirs, &stmt_versions);
	assert_int_equal(migrate_check(theirs, &err), HX_OK);
	strbuf_reset(&sql);
	migrate_print(&db_sqlite, &(struct migrate_status){.at = newest()}, &sql);
	assert_string_equal(sql.p, "");
	strbuf_release(&sql);
	db_close(ours);
	db_close(theirs);
	store_free(by_hand);
}

/* By hand, too, it is all or nothing: the text brings its own transaction. */
static void what_is_printed_is_one_transaction(void **state)
{
	static const struct db_driver *const drivers[] = {&db_sqlite, &db_postgres};
	struct strbuf sql;

	(void)state;
	strbuf_init(&sql, 1u << 20);
	for (size_t i = 0; i < 2; i++) {
		strbuf_reset(&sql);
		migrate_print(drivers[i], &(struct migrate_status){0}, &sql);
		assert_int_equal(strncmp(sql.p, "BEGIN", 5), 0);
		assert_string_equal(sql.p + sql.n - strlen("\nCOMMIT;\n"), "\nCOMMIT;\n");
	}
	strbuf_release(&sql);
}

struct starter {
	const struct store *store;
	pthread_barrier_t *barrier;
	enum hx_code code;
	int at;
};

static void *start(void *context)
{
	struct starter *s = context;
	struct db_options options = {.url = s->store->url, .clock = clock_system()};
	struct migrate_status before;
	struct hx_error err;
	struct db *db = NULL;

	s->code = db_open(&options, &db, &err);
	pthread_barrier_wait(s->barrier);
	if (!s->code)
		s->code = migrate_run(db, &before, &err);
	if (!s->code)
		s->at = before.at;
	db_close(db);
	return NULL;
}

static void of_several_that_start_at_once_one_migrates(void **state)
{
	enum { STARTERS = 4 };
	struct starter starters[STARTERS];
	pthread_t threads[STARTERS];
	pthread_barrier_t barrier;
	int found_it_empty = 0;

	db_close(store_open(*state)); /* the file is there */
	pthread_barrier_init(&barrier, NULL, STARTERS);
	for (int i = 0; i < STARTERS; i++) {
		starters[i] = (struct starter){.store = *state, .barrier = &barrier};
		assert_int_equal(pthread_create(&threads[i], NULL, start, &starters[i]), 0);
	}
	for (int i = 0; i < STARTERS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(starters[i].code, HX_OK);
		found_it_empty += starters[i].at == 0;
	}
	assert_int_equal(found_it_empty, 1);
	pthread_barrier_destroy(&barrier);
}

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(a_fresh_store_is_brought_up_to_date),
		STORE_TEST(reading_the_status_changes_nothing),
		STORE_TEST(a_second_run_finds_nothing_to_do),
		STORE_TEST(a_newer_store_is_refused_and_left_alone),
		STORE_TEST(a_migration_that_fails_leaves_nothing_behind),
		STORE_TEST(without_migrating_the_number_must_be_exactly_ours),
		STORE_TEST(what_is_printed_is_what_is_run),
		cmocka_unit_test(what_is_printed_is_one_transaction),
		STORE_TEST(of_several_that_start_at_once_one_migrates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
