/* Bringing a store to the program's schema; see migrate.h for what is promised. */
#include "db/migrate.h"

#include <stdio.h>

#define READ_BYTES_MAX 65536

/* The table is made before it is read, inside the same locked transaction. Its text is good for both stores. */
static const char version_table[] = "CREATE TABLE IF NOT EXISTS schema_version"
				    " (number INTEGER PRIMARY KEY, name TEXT NOT NULL)";

static const struct db_stmt stmt_read_version = {
	.name = "schema_read_version",
	.sql = "SELECT CAST(coalesce(max(number), 0) AS BIGINT) FROM schema_version",
	.in = "",
	.out = "i",
};

static const struct db_stmt stmt_table_exists_sqlite = {
	.name = "schema_table_exists",
	.sql = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'schema_version'",
	.in = "",
	.out = "i",
};

static const struct db_stmt stmt_table_exists_postgres = {
	.name = "schema_table_exists",
	.sql = "SELECT (to_regclass('schema_version') IS NOT NULL)::int::bigint",
	.in = "",
	.out = "i",
};

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

static int known_number(const struct db_driver *driver)
{
	struct schema schema = schema_of(driver);

	return schema.n ? schema.texts[schema.n - 1].number : 0;
}

/* One number out of a statement without parameters, inside the current transaction. */
static enum hx_code read_number(struct db *db, const struct db_stmt *stmt, int *ret_number, struct hx_error *err)
{
	struct arena arena;
	struct unit unit, *units = &unit;
	struct unit_result result;
	enum hx_code code;

	arena_init(&arena, READ_BYTES_MAX);
	unit_init(&unit, /* op= */ 0);
	unit_add(&unit, UNIT_ANY, stmt, 0, NULL);
	code = db->driver->execute(db, &units, 1, &result, &arena, err);
	if (!code)
		*ret_number = (int)db_cell(&result.rows[0], 0, 0)->i;
	arena_release(&arena);
	return code;
}

static enum hx_code read_at(struct db *db, int *ret_at, struct hx_error *err)
{
	int exists = 0;
	bool sqlite = db->driver == &db_sqlite;
	enum hx_code code = read_number(db, sqlite ? &stmt_table_exists_sqlite : &stmt_table_exists_postgres, &exists,
					err);

	*ret_at = 0;
	return code || !exists ? code : read_number(db, &stmt_read_version, ret_at, err);
}

enum hx_code migrate_read_status(struct db *db, struct migrate_status *ret_status, struct hx_error *err)
{
	int at = 0;
	/* SQLite reads outside of a transaction: BEGIN IMMEDIATE would wait for the server's writes. */
	bool sqlite = db->driver == &db_sqlite;
	enum hx_code code = sqlite ? HX_OK : db->driver->begin(db, err);

	if (!code)
		code = read_at(db, &at, err);
	if (!code) {
		if (!sqlite)
			db->driver->rollback(db);
		*ret_status = (struct migrate_status){at, known_number(db->driver)};
	}
	return code;
}

static enum hx_code newer(int at, int known, struct hx_error *err)
{
	return error_set(err, HX_SCHEMA_MISMATCH,
			 "the store's schema is number %d, this program knows only up to %d: use a newer program", at,
			 known);
}

static void add_migration(const struct db_migration_text *m, struct strbuf *out)
{
	strbuf_addf(out, "-- %04d %s\n", m->number, m->name);
	strbuf_add_str(out, m->text);
	strbuf_addf(out, "\nINSERT INTO schema_version (number, name) VALUES (%d, '%s');\n", m->number, m->name);
}

static enum hx_code apply(struct db *db, int at, struct hx_error *err)
{
	struct schema schema = schema_of(db->driver);
	enum hx_code code = db->driver->script(db, version_table, err);

	for (size_t i = 0; i < schema.n && !code; i++) {
		struct strbuf sql;

		if (schema.texts[i].number <= at)
			continue;
		strbuf_init(&sql, 1u << 20);
		add_migration(&schema.texts[i], &sql);
		ASSERT(!sql.failed);
		code = db->driver->script(db, sql.p, err);
		strbuf_release(&sql);
	}
	return code;
}

/* Where nothing is to be done, nothing is written: a role that may not create tables can start a server. */
enum hx_code migrate_run(struct db *db, struct migrate_status *ret_before, struct hx_error *err)
{
	int at = 0, known = known_number(db->driver);
	enum hx_code code = db->driver->script(db, db->driver->migrate_begin, err);

	if (code)
		return code;
	code = read_at(db, &at, err);
	if (!code && at > known)
		code = newer(at, known, err);
	if (!code && at < known) {
		code = apply(db, at, err);
		if (code == HX_CONFIG_ERROR && err)
			(void)error_set(err, code,
					"%s. To bring the schema up to date a role needs CREATE on it, and must own its"
					" tables: run `hapax db migrate` as one that does",
					err->detail);
	}
	if (!code)
		code = db->driver->script(db, "COMMIT", err);
	if (code)
		(void)db->driver->script(db, "ROLLBACK", /* err= */ NULL); /* the first error is the one to tell */
	else
		*ret_before = (struct migrate_status){at, known};
	return code;
}

enum hx_code migrate_check(struct db *db, struct hx_error *err)
{
	struct migrate_status status;
	enum hx_code code = migrate_read_status(db, &status, err);

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

void migrate_print(const struct db_driver *driver, int at, struct strbuf *out)
{
	struct schema schema = schema_of(driver);

	if (at >= known_number(driver))
		return;
	strbuf_addf(out, "%s;\n%s;\n", driver->migrate_begin, version_table);
	for (size_t i = 0; i < schema.n; i++)
		if (schema.texts[i].number > at)
			add_migration(&schema.texts[i], out);
	strbuf_add_str(out, "COMMIT;\n");
}
