/*
 * hapax db status, hapax db migrate: the store's schema, also beside a running server. hapax db raise-fences, after a restore.
 *
 * Looking never changes anything, not even by making the file. Changing an SQLite store needs its lock: a program
 * that is serving an older schema must not have it pulled away. Where nothing is to be done, nothing is locked.
 */
#include <stdio.h>
#include <string.h>

#include "base/json_string.h"
#include "cli/command.h"
#include "db/migrate.h"
#include "db/store_name.h"
#include "engine/fences.h"

#define SQL_BYTES_MAX (4u << 20)

static const struct command_option option_print = {
	.name = "print",
	.help = "only print the SQL that would be run, and change nothing",
};

/* ---- the store ---- */

static enum hx_code read_status(const char *url, struct migrate_status *ret_status, const struct db_driver **ret_driver,
				struct hx_error *err)
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

/* Written as one object on a line. */
static void print_json(const char *url, const char *fields)
{
	char name[STORE_NAME_BYTES];
	struct strbuf text;

	strbuf_init(&text, SQL_BYTES_MAX);
	strbuf_add_str(&text, "{\"store\":");
	json_quote(slice_str(store_name(url, name)), &text);
	printf("%s,%s}\n", text.p, fields);
	strbuf_release(&text);
}

/* ---- status ---- */

static enum hx_code status(const struct command_args *args, struct hx_error *err)
{
	const char *url = command_value(args, &option_db);
	const struct db_driver *driver;
	struct migrate_status at;
	char text[200], name[STORE_NAME_BYTES];
	enum hx_code code;

	if (command_store_is_missing(url))
		return error_set(err, HX_NOT_FOUND, "%s: there is no store here (hapax db migrate makes one)", url + 7);
	code = read_status(url, &at, &driver, err);
	if (code)
		return code;
	if (command_value(args, &option_json)) {
		snprintf(text, sizeof text, "\"schema\":%d,\"known\":%d,\"state\":\"%s\"", at.at, at.known,
			 at.at == at.known  ? "current"
			 : at.at < at.known ? "behind"
					    : "newer");
		print_json(url, text);
	} else {
		printf("store    %s\nschema   %d\nprogram  %d\n", store_name(url, name), at.at, at.known);
	}
	if (at.at < at.known)
		return error_set(err, HX_SCHEMA_MISMATCH, "the schema is behind: run `hapax db migrate`");
	if (at.at > at.known)
		return error_set(err, HX_SCHEMA_MISMATCH, "the schema is newer than this program: use a newer program");
	return HX_OK;
}

const struct command command_db_status = {
	.noun = "db",
	.verb = "status",
	.summary = "does the store's schema fit this program?",
	.options = {&option_db, &option_json},
	.exits = {{HX_NOT_FOUND, "there is no store"},
		  {HX_STORE_UNAVAILABLE, "the store cannot be opened"},
		  {HX_SCHEMA_MISMATCH, "the schema is behind the program or newer, or the URL is not valid"}},
	.run = status,
};

/* ---- migrate ---- */

static const struct db_driver *driver_of(const char *url)
{
	return strncmp(url, "sqlite:", 7) == 0 ? &db_sqlite : &db_postgres;
}

static enum hx_code print_sql(const struct db_driver *driver, const struct migrate_status *at, bool json,
			      struct hx_error *err)
{
	struct strbuf sql, quoted;
	enum hx_code code = HX_OK;

	strbuf_init(&sql, SQL_BYTES_MAX);
	strbuf_init(&quoted, 2 * SQL_BYTES_MAX);
	migrate_print(driver, at, &sql);
	json_quote(strbuf_slice(&sql), &quoted);
	if (sql.failed || quoted.failed)
		code = strbuf_error(sql.failed ? &sql : &quoted, err);
	else if (json)
		printf("{\"schema\":%d,\"sql\":%s}\n", at->at, quoted.p);
	else
		fputs(sql.p, stdout);
	strbuf_release(&sql);
	strbuf_release(&quoted);
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

static enum hx_code migrate(const struct command_args *args, struct hx_error *err)
{
	const char *url = command_value(args, &option_db);
	bool json = command_value(args, &option_json), print = command_value(args, &option_print);
	const struct db_driver *driver = driver_of(url);
	struct migrate_status at = {0};
	char text[100], name[STORE_NAME_BYTES];
	enum hx_code code = command_store_is_missing(url) ? HX_OK : read_status(url, &at, &driver, err);

	if (!code && at.known && at.at > at.known)
		code = error_set(err, HX_SCHEMA_MISMATCH, "the schema is number %d, this program knows only up to %d",
				 at.at, at.known);
	if (code)
		return code;
	if (print)
		return print_sql(driver, &at, json, err);
	if (!at.known || at.at < at.known)
		code = run_migrations(url, &at, err);
	if (code)
		return code;
	if (json) {
		snprintf(text, sizeof text, "\"before\":%d,\"schema\":%d", at.at, at.known);
		print_json(url, text);
	} else if (at.at == at.known) {
		printf("%s: schema %d, nothing to do\n", store_name(url, name), at.known);
	} else {
		printf("%s: brought from schema %d to %d\n", store_name(url, name), at.at, at.known);
	}
	return HX_OK;
}

const struct command command_db_migrate = {
	.noun = "db",
	.verb = "migrate",
	.summary = "brings the store's schema up to date, and makes the store where there is none",
	.options = {&option_db, &option_print, &option_json},
	.exits = {{HX_STORE_UNAVAILABLE, "the store cannot be opened"},
		  {HX_BUSY, "a server has the store open, and there is something to do"},
		  {HX_SCHEMA_MISMATCH, "the schema is newer than the program, or the URL is not valid"}},
	.run = migrate,
};

/* ---- raise-fences ---- */

static enum hx_code raise_fences(const struct command_args *args, struct hx_error *err)
{
	const char *url = command_value(args, &option_db);
	char text[60], name[STORE_NAME_BYTES];
	int64_t floor = 0;
	enum hx_code code;

	if (command_store_is_missing(url))
		return error_set(err, HX_NOT_FOUND, "%s: there is no store here", url + 7);
	code = fences_raise(url, &floor, err);
	if (code)
		return code;
	if (command_value(args, &option_json)) {
		snprintf(text, sizeof text, "\"fencesAbove\":%lld", (long long)floor);
		print_json(url, text);
	} else {
		printf("%s: from now on every fence is above %lld\n", store_name(url, name), (long long)floor);
	}
	return HX_OK;
}

const struct command command_db_raise_fences = {
	.noun = "db",
	.verb = "raise-fences",
	.summary = "after a restore: lifts all fences above those that the lost store gave out",
	.options = {&option_db, &option_json},
	.exits = {{HX_NOT_FOUND, "there is no store"},
		  {HX_STORE_UNAVAILABLE, "the store cannot be opened"},
		  {HX_BUSY, "a server uses the store: stop it first"},
		  {HX_SCHEMA_MISMATCH,
		   "the schema does not fit the program, the URL is not valid, or the clock is behind"}},
	.run = raise_fences,
};
