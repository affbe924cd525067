/*
 * hapax db status, hapax db migrate: the store's schema, also beside a running server. hapax db raise-fences, after a restore.
 *
 * Looking never changes anything, not even by making the file. Changing an SQLite store needs its lock: a program
 * that is serving an older schema must not have it pulled away. Where nothing is to be done, nothing is locked.
 */
#include <stdio.h>
#include <string.h>

#include "base/json_write.h"
#include "cli/local.h"
#include "db/migrate.h"
#include "db/store_name.h"
#include "engine/fences.h"

#define SQL_BYTES_MAX (4u << 20)

/* ---- the store ---- */

static enum hx_code db_read_status(const char *url, struct migrate_status *ret_status,
				   const struct db_driver **ret_driver, struct hx_error *err)
{
	struct db_options options = {.url = url, .clock = clock_system(), .read_only = true};
	struct db *db = NULL;
	enum hx_code code = db_open(&options, &db, err);

	if (!code)
		code = migrate_read_status(db, ret_status, err);
	if (!code)
		*ret_driver = db->driver;
	db_close(db);
	return code;
}

/* The object that every result is, up to its other members. */
static void begin_result(const char *url, struct strbuf *out)
{
	char name[STORE_NAME_BYTES];

	strbuf_add_char(out, '{');
	json_more_word(out, "store", store_name(url, name));
}

/* ---- status ---- */

enum hx_code db_status_make(const struct command_args *args, struct strbuf *out, struct hx_error *err)
{
	const char *url = command_value(args, "db");
	const struct db_driver *driver;
	struct migrate_status at;
	enum hx_code code = command_want_store(url, STORE_HINT_MAKE, err);

	if (!code)
		code = db_read_status(url, &at, &driver, err);
	if (code)
		return code;
	begin_result(url, out);
	strbuf_addf(out, ",\"schema\":%d,\"known\":%d,\"state\":\"%s\"}", at.at, at.known,
		    at.at == at.known  ? "current"
		    : at.at < at.known ? "behind"
				       : "newer");
	if (at.at < at.known)
		return error_set(err, HX_SCHEMA_MISMATCH, "the schema is behind: run `hapax db migrate`");
	if (at.at > at.known)
		return error_set(err, HX_SCHEMA_MISMATCH, "the schema is newer than this program: use a newer program");
	return HX_OK;
}

/* ---- migrate ---- */

/* For people it is text as it is, and no words about it. */
static enum hx_code print_sql(const struct db_driver *driver, const struct migrate_status *at, bool json,
			      struct strbuf *out, struct hx_error *err)
{
	enum hx_code code = HX_OK;
	LOCAL_STRBUF(sql, SQL_BYTES_MAX);

	migrate_print(driver, at, &sql);
	if (sql.failed) {
		code = strbuf_error(&sql, err);
	} else if (json) {
		strbuf_addf(out, "{\"schema\":%d", at->at);
		json_more_text(out, "sql", strbuf_slice(&sql));
		strbuf_add_char(out, '}');
	} else {
		fputs(sql.p, stdout);
	}
	return code;
}

static enum hx_code run_migrations(const char *url, struct migrate_status *ret_before, struct hx_error *err)
{
	struct db_options options = {.url = url, .clock = clock_system(), .exclusive = true};
	struct db *db = NULL;
	enum hx_code code = db_open(&options, &db, err);

	if (!code)
		code = migrate_run(db, ret_before, err);
	db_close(db);
	return code;
}

enum hx_code db_migrate_make(const struct command_args *args, struct strbuf *out, struct hx_error *err)
{
	const char *url = command_value(args, "db");
	const struct db_driver *driver = strncmp(url, "sqlite:", 7) == 0 ? &db_sqlite : &db_postgres;
	struct migrate_status at = {0};
	enum hx_code code = command_store_is_missing(url) ? HX_OK : db_read_status(url, &at, &driver, err);

	if (!code && at.known && at.at > at.known)
		code = error_set(err, HX_SCHEMA_MISMATCH, "the schema is number %d, this program knows only up to %d",
				 at.at, at.known);
	if (code)
		return code;
	if (command_value(args, "print"))
		return print_sql(driver, &at, command_value(args, "json"), out, err);
	if (!at.known || at.at < at.known)
		code = run_migrations(url, &at, err);
	if (code)
		return code;
	begin_result(url, out);
	strbuf_addf(out, ",\"before\":%d,\"schema\":%d}", at.at, at.known);
	return HX_OK;
}

/* ---- raise-fences ---- */

enum hx_code db_raise_fences_make(const struct command_args *args, struct strbuf *out, struct hx_error *err)
{
	const char *url = command_value(args, "db");
	int64_t floor = 0;
	enum hx_code code = command_want_store(url, STORE_HINT "; put the copy back first", err);

	if (!code)
		code = fences_raise(url, &floor, err);
	if (code)
		return code;
	begin_result(url, out);
	strbuf_addf(out, ",\"fencesAbove\":%lld}", (long long)floor);
	return HX_OK;
}
