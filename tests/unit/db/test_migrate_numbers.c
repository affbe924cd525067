/*
 * Migrations with numbers beyond 63, up to the highest. The tables of texts here stand in place of the library's, which then
 * is not linked.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <zlib.h>

#include <cmocka.h>

#include "db/migrate.h"
#include "support/store.h"

#define LAST (MIGRATE_NUMBERS_MAX - 1)

#define TABLE(letter) "CREATE TABLE hx_" letter " (id INTEGER);\0"
#define TEXT_BYTES (sizeof TABLE("a") - 1)

static const char texts[] = TABLE("a") TABLE("b") TABLE("c") TABLE("d") TABLE("e") TABLE("f");
static unsigned char packed[1024]; /* longer than they are: what comes after their end is not read */

/* 65 and 129 stand in other words of the set, at the bit of number 1: a store with that one is an older program's. */
const struct db_migration_text db_schema_sqlite[] = {
	{63, "a", true, -1, 0},
	{64, "b", false, -1, TEXT_BYTES},
	{65, "c", true, -1, 2 * TEXT_BYTES},
	{128, "d", false, -1, 3 * TEXT_BYTES},
	{129, "e", false, -1, 4 * TEXT_BYTES},
	{LAST, "f", false, -1, 5 * TEXT_BYTES},
};
const size_t db_schema_sqlite_count = sizeof db_schema_sqlite / sizeof *db_schema_sqlite;
const struct db_migration_text db_schema_postgres[] = {{0}};
const size_t db_schema_postgres_count = 0;
const struct packed db_schema_texts = {packed, sizeof packed, sizeof texts};

static int pack_texts(void **state)
{
	z_stream stream = {.next_in = (unsigned char *)texts, /* zlib never writes there */
			   .avail_in = sizeof texts,
			   .next_out = packed,
			   .avail_out = sizeof packed};

	(void)state;
	assert_int_equal(deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
	return deflateEnd(&stream);
}

static void script(struct db *db, const char *sql)
{
	struct hx_error err = {0};

	if (db->driver->script(db, sql, &err) != HX_OK)
		fail_msg("%s", err.detail);
}

static void assert_at(struct db *db, int number)
{
	struct migrate_status status;
	struct hx_error err = {0};

	assert_int_equal(migrate_read_status(db, &status, &err), HX_OK);
	assert_int_equal(status.at, number);
	assert_int_equal(status.known, LAST);
	assert_false(migrate_is_old(&status));
	assert_int_equal(migrate_check(db, &err), number == LAST ? HX_OK : HX_SCHEMA_MISMATCH);
}

static void all_of_them_are_run_once(void **state)
{
	struct store *store = store_new(STORE_SQLITE_MEMORY);
	struct db *db = store_open_migrated(store); /* a second time a table would be there already */
	struct migrate_status before;
	struct hx_error err = {0};

	(void)state;
	assert_at(db, LAST);
	script(db, "SELECT a.id, b.id, c.id, d.id, e.id, f.id FROM hx_a a, hx_b b, hx_c c, hx_d d, hx_e e, hx_f f");
	assert_int_equal(migrate_run(db, &before, &err), HX_OK);
	assert_int_equal(before.at, LAST);
	db_close(db);
	store_free(store);
}

/* The one that is missing is found, whatever else is there, and nothing but that is run. */
static void each_that_is_missing_is_run(void **state)
{
	struct store *store = store_new(STORE_SQLITE_MEMORY);
	struct db *db = store_open_migrated(store);
	struct migrate_status before;
	struct hx_error err = {0};
	char sql[160];

	(void)state;
	for (size_t i = 0; i < db_schema_sqlite_count; i++) {
		const struct db_migration_text *m = &db_schema_sqlite[i];

		snprintf(sql, sizeof sql, "DROP TABLE hx_%s; DELETE FROM hx_schema_version WHERE number = %d", m->name,
			 m->number);
		script(db, sql);
		assert_at(db, i ? db_schema_sqlite[i - 1].number : 0);
		assert_int_equal(migrate_run(db, &before, &err), HX_OK);
		assert_at(db, LAST);
	}
	db_close(db);
	store_free(store);
}

static void the_gate_needs_its_own_alone(void **state)
{
	struct store *store = store_new(STORE_SQLITE_MEMORY);
	struct db *db = store_open(store);
	struct migrate_status before;
	struct hx_error err = {0};

	(void)state;
	assert_int_equal(migrate_run_part(db, MIGRATE_GATE, &before, &err), HX_OK);
	assert_int_equal(before.known, 65);
	assert_int_equal(migrate_check_part(db, MIGRATE_GATE, &err), HX_OK);
	assert_at(db, 63);
	assert_int_equal(migrate_run(db, &before, &err), HX_OK);
	assert_at(db, LAST);
	db_close(db);
	store_free(store);
}

/* As many as there can be, of which most are of numbers that were given up. */
static void a_full_table_of_numbers_is_read(void **state)
{
	struct store *store = store_new(STORE_SQLITE_MEMORY);
	struct db *db = store_open_migrated(store);

	(void)state;
	script(db, "WITH RECURSIVE n (n) AS (SELECT 9 UNION ALL SELECT n + 1 FROM n WHERE n < 1022)"
		   " INSERT OR IGNORE INTO hx_schema_version (number, name) SELECT n, 'gone' FROM n");
	assert_at(db, LAST);
	db_close(db);
	store_free(store);
}

static void one_past_the_highest_is_a_newer_program(void **state)
{
	struct store *store = store_new(STORE_SQLITE_MEMORY);
	struct db *db = store_open_migrated(store);
	struct migrate_status before;
	struct hx_error err = {0};

	(void)state;
	script(db, "INSERT INTO hx_schema_version (number, name) VALUES (1024, 'far')");
	assert_int_equal(migrate_run(db, &before, &err), HX_SCHEMA_MISMATCH);
	assert_int_equal(migrate_read_status(db, &before, &err), HX_OK);
	assert_int_equal(before.at, MIGRATE_NUMBERS_MAX);
	db_close(db);
	store_free(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_of_them_are_run_once),
		cmocka_unit_test(each_that_is_missing_is_run),
		cmocka_unit_test(the_gate_needs_its_own_alone),
		cmocka_unit_test(a_full_table_of_numbers_is_read),
		cmocka_unit_test(one_past_the_highest_is_a_newer_program),
	};

	return cmocka_run_group_tests(tests, pack_texts, NULL);
}
