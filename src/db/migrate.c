/* Bringing a store to the program's schema; see migrate.h for what is promised. */
#include "db/migrate.h"

#include <stdio.h>
#include <stdlib.h>

#include "db/migrate_fold.h"

#define READ_BYTES_MAX (256u * MIGRATE_NUMBERS_MAX)
#define PLAIN_LAST 8 /* the last number that gave tables plain names */
#define NUMBER_LAST (MIGRATE_NUMBERS_MAX - 1)

/* Made before it is read, inside the same locked transaction. The texts are good for both stores. */
static const char version_table[] = "CREATE TABLE IF NOT EXISTS hx_schema_version"
				    " (number INTEGER PRIMARY KEY, name TEXT NOT NULL)";
static const char rename_version_table[] = "ALTER TABLE schema_version RENAME TO hx_schema_version";
static const char rename_version_index[] = "ALTER INDEX schema_version_pkey RENAME TO hx_schema_version_pkey";

DB_STMT(stmt_read_versions, "schema_read_versions", "", "i", "SELECT CAST(number AS BIGINT) FROM hx_schema_version");

DB_STMT(stmt_read_plain_versions, "schema_read_plain_versions", "", "i", "SELECT CAST(number AS BIGINT) FROM schema_version");

/* 2: there are numbers; 1: those of an older program, under a plain name; 0: none. Other programs have a table
 * schema_version, too, so a plain one is ours only beside tables that we made. */
DB_STMT(stmt_table_exists_sqlite, "schema_table_exists", "", "i",
	"SELECT CASE WHEN EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'hx_schema_version')"
	" THEN 2 ELSE (SELECT count(*) = 3 FROM sqlite_schema WHERE type = 'table'"
	" AND name IN ('schema_version', 'subject', 'history')) END");

/* In the schema of its own, where it has one: what is found further along the search path is another store. */
DB_STMT(stmt_table_exists_postgres, "schema_table_exists", "", "i",
	"SELECT CASE WHEN to_regclass(home || 'hx_schema_version') IS NOT NULL THEN 2 ELSE"
	" (to_regclass(home || 'schema_version') IS NOT NULL AND to_regclass(home || 'subject') IS NOT NULL"
	" AND to_regclass(home || 'history') IS NOT NULL)::int END::bigint FROM (SELECT"
	" coalesce(quote_ident(nullif(current_setting('hapax.schema', true), '')) || '.', '') AS home) AS x");

enum { NO_NUMBERS, PLAIN_NUMBERS, NUMBERS };

struct schema {
	const struct db_migration_text *texts;
	size_t n;
};

static struct schema schema_of(const struct db_driver *driver)
{
	if (driver == &db_sqlite)
		return (struct schema){db_schema_sqlite, db_schema_sqlite_count};
	return (struct schema){db_schema_postgres, db_schema_postgres_count};
}

static bool is_done(const struct migrate_numbers *done, int number)
{
	return done->bits[number / 64] >> number % 64 & 1;
}

static bool is_any_done(const struct migrate_numbers *done, int first, int last)
{
	for (int number = first; number <= last; number++)
		if (is_done(done, number))
			return true;
	return false;
}

/* Was it made by a program that gave plain names? */
static bool is_old(const struct migrate_numbers *done)
{
	return is_any_done(done, 1, PLAIN_LAST);
}

bool migrate_is_old(const struct migrate_status *status)
{
	return is_old(&status->done);
}

static bool is_wanted(const struct db_migration_text *m, enum migrate_part part, const struct migrate_numbers *done)
{
	if (m->number <= PLAIN_LAST && !is_old(done))
		return false;
	return part == MIGRATE_ALL || m->gate || (m->number <= PLAIN_LAST && is_old(done));
}

static bool is_pending(const struct db_migration_text *m, enum migrate_part part, const struct migrate_numbers *done)
{
	return is_wanted(m, part, done) && !is_done(done, m->number);
}

static int known_number(const struct db_driver *driver, enum migrate_part part)
{
	struct schema schema = schema_of(driver);
	int known = 0;

	for (size_t i = 0; i < schema.n; i++)
		if (part == MIGRATE_ALL || schema.texts[i].gate)
			known = schema.texts[i].number;
	return known;
}

/* Up to where nothing is missing. */
static int reached(const struct db_driver *driver, enum migrate_part part, const struct migrate_numbers *done)
{
	struct schema schema = schema_of(driver);
	int at = 0;

	if (!is_any_done(done, 1, NUMBER_LAST))
		return 0;
	for (size_t i = 0; i < schema.n && !is_pending(&schema.texts[i], part, done); i++)
		if (is_wanted(&schema.texts[i], part, done))
			at = schema.texts[i].number;
	return at;
}

/* The first column of a statement without parameters, inside the current transaction. */
static enum hx_code read_numbers(struct db *db, const struct db_stmt *stmt, struct arena *arena,
				 struct db_rows *ret_rows, struct hx_error *err)
{
	struct unit unit, *units = &unit;
	struct unit_result result;
	enum hx_code code;

	unit_init(&unit, /* op= */ 0);
	unit_add(&unit, UNIT_ANY, stmt, 0, NULL);
	code = db->driver->execute(db, &units, 1, &result, arena, err);
	if (!code)
		*ret_rows = result.rows[0];
	return code;
}

static void note_numbers(const struct db_rows *rows, struct migrate_status *status)
{
	for (size_t i = 0; i < rows->n; i++) {
		int64_t number = db_cell(rows, i, 0)->i;

		if (number > 0 && number <= NUMBER_LAST)
			status->done.bits[number / 64] |= UINT64_C(1) << number % 64;
		if (number > status->known)
			status->at = (int)number;
	}
}

/* A number that nobody here knows makes `at` the higher one. */
static enum hx_code read_at(struct db *db, enum migrate_part part, struct migrate_status *ret_status, int *ret_found,
			    struct hx_error *err)
{
	bool sqlite = db->driver == &db_sqlite;
	struct db_rows rows;
	enum hx_code code;
	LOCAL_ARENA(arena, READ_BYTES_MAX);

	*ret_status = (struct migrate_status){.known = known_number(db->driver, MIGRATE_ALL)};
	if (db->driver->schema && db->driver->schema(db))
		snprintf(ret_status->schema, sizeof ret_status->schema, "%s", db->driver->schema(db));
	*ret_found = NO_NUMBERS;
	code = read_numbers(db, sqlite ? &stmt_table_exists_sqlite : &stmt_table_exists_postgres, &arena, &rows, err);
	if (!code)
		*ret_found = (int)db_cell(&rows, 0, 0)->i;
	if (!code && *ret_found) {
		code = read_numbers(db, *ret_found == NUMBERS ? &stmt_read_versions : &stmt_read_plain_versions, &arena,
				    &rows, err);
		if (!code)
			note_numbers(&rows, ret_status);
	}
	if (ret_status->at > ret_status->known)
		return code;
	ret_status->known = known_number(db->driver, part);
	ret_status->at = reached(db->driver, part, &ret_status->done);
	return code;
}

static enum hx_code read_migrate_status(struct db *db, enum migrate_part part, struct migrate_status *ret_status,
					struct hx_error *err)
{
	/* SQLite reads outside of a transaction: BEGIN IMMEDIATE would wait for the server's writes. */
	bool sqlite = db->driver == &db_sqlite;
	enum hx_code code = sqlite ? HX_OK : db->driver->begin(db, err);
	int found;

	if (!code)
		code = read_at(db, part, ret_status, &found, err);
	if (!code && !sqlite)
		db->driver->rollback(db);
	return code;
}

enum hx_code migrate_read_status(struct db *db, struct migrate_status *ret_status, struct hx_error *err)
{
	return read_migrate_status(db, MIGRATE_ALL, ret_status, err);
}

static enum hx_code newer(int at, int known, struct hx_error *err)
{
	return error_set(err, HX_SCHEMA_MISMATCH,
			 "the store's schema is number %d, this program knows only up to %d: use a newer program", at,
			 known);
}

static void add_migration(const struct db_migration_text *m, const char *texts, const struct migrate_numbers *done,
			  struct strbuf *out)
{
	strbuf_addf(out, "-- %04d %s\n", m->number, m->name);
	strbuf_add_str(out, texts + (m->base_at >= 0 && !is_old(done) ? m->base_at : m->text_at));
	strbuf_addf(out, "\nINSERT INTO hx_schema_version (number, name) VALUES (%d, '%s');\n", m->number, m->name);
}

static void add_version_table(const struct db_driver *driver, bool plain, struct strbuf *out)
{
	if (plain)
		strbuf_addf(out, "%s;\n%s%s", rename_version_table, driver == &db_sqlite ? "" : rename_version_index,
			    driver == &db_sqlite ? "" : ";\n");
	strbuf_addf(out, "%s;\n", version_table);
}

/* Not IF NOT EXISTS: who may not create schemas would be refused, also where it is there. */
static void add_home(const char *schema, struct strbuf *out)
{
	if (schema[0])
		strbuf_addf(
			out,
			"DO $$ BEGIN IF to_regnamespace('\"%s\"') IS NULL THEN CREATE SCHEMA \"%s\"; END IF; END $$;\n"
			"SET LOCAL search_path = \"%s\", pg_temp;\n",
			schema, schema, schema);
}

static void add_pending(const struct db_driver *driver, enum migrate_part part, bool plain,
			const struct migrate_status *status, struct strbuf *out)
{
	struct schema schema = schema_of(driver);
	char *texts = packed_text(&db_schema_texts);

	add_home(status->schema, out);
	add_version_table(driver, plain, out);
	for (size_t i = 0; i < schema.n; i++)
		if (is_pending(&schema.texts[i], part, &status->done))
			add_migration(&schema.texts[i], texts, &status->done, out);
	free(texts);
	migrate_fold(out);
}

static enum hx_code apply(struct db *db, enum migrate_part part, bool plain, const struct migrate_status *before,
			  struct hx_error *err)
{
	enum hx_code code;
	LOCAL_STRBUF(sql, 4u << 20);

	add_pending(db->driver, part, plain, before, &sql);
	ASSERT(!sql.failed);
	code = db->driver->script(db, sql.p, err);
	if (code == HX_CONFIG_ERROR && err)
		(void)error_set(err, code,
				"%s. To bring the schema up to date a role needs CREATE on it, and must own its"
				" tables: run `hapax db migrate` as one that does",
				err->detail);
	return code;
}

/* Where nothing is to be done, nothing is written: a role that may not create tables can start a server. */
enum hx_code migrate_run_part(struct db *db, enum migrate_part part, struct migrate_status *ret_before,
			      struct hx_error *err)
{
	struct migrate_status before;
	int found;
	enum hx_code code = db->driver->script(db, db->driver->migrate_begin, err);

	if (code)
		return code;
	code = read_at(db, part, &before, &found, err);
	if (!code && before.at > before.known)
		code = newer(before.at, before.known, err);
	if (!code && before.at < before.known)
		code = apply(db, part, found == PLAIN_NUMBERS, &before, err);
	if (!code)
		code = db->driver->script(db, "COMMIT", err);
	if (code)
		(void)db->driver->script(db, "ROLLBACK", /* err= */ NULL); /* the first error is the one to tell */
	else
		*ret_before = before;
	return code;
}

enum hx_code migrate_run(struct db *db, struct migrate_status *ret_before, struct hx_error *err)
{
	return migrate_run_part(db, MIGRATE_ALL, ret_before, err);
}

enum hx_code migrate_check_part(struct db *db, enum migrate_part part, struct hx_error *err)
{
	struct migrate_status status;
	enum hx_code code = read_migrate_status(db, part, &status, err);

	if (code)
		return code;
	if (status.at > status.known)
		return newer(status.at, status.known, err);
	if (status.at < status.known)
		return error_set(err, HX_SCHEMA_MISMATCH,
				 "the store's schema is number %d, this program needs %d: run `hapax db migrate`",
				 status.at, status.known);
	return HX_OK;
}

enum hx_code migrate_check(struct db *db, struct hx_error *err)
{
	return migrate_check_part(db, MIGRATE_ALL, err);
}

void migrate_print(const struct db_driver *driver, const struct migrate_status *status, struct strbuf *out)
{
	/* The table of numbers loses its plain name with the first migration after number 8. */
	bool plain = is_old(&status->done) && !is_any_done(&status->done, PLAIN_LAST + 1, NUMBER_LAST);

	if (status->at >= known_number(driver, MIGRATE_ALL))
		return;
	strbuf_addf(out, "%s;\n", driver->migrate_begin);
	add_pending(driver, MIGRATE_ALL, plain, status, out);
	strbuf_add_str(out, "COMMIT;\n");
}
