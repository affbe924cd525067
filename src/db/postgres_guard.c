/* See postgres_guard.h. */
#include "db/postgres_guard.h"

#include <stdio.h>

/* clang-format off */
#define SETTING(name) "current_setting('" name "', true)"
#define SETTINGS                                                                                                       \
	"concat_ws('|', " SETTING("synchronous_commit") ", " SETTING("search_path") ", " SETTING("session_replication_role")   \
	", " SETTING("role") ", " SETTING("session_authorization") ", " SETTING("lock_timeout") ", " SETTING("statement_timeout") \
	", " SETTING("idle_in_transaction_session_timeout") ", " SETTING("transaction_timeout") ", " SETTING("idle_session_timeout") \
	", " SETTING("default_transaction_isolation") ", " SETTING("default_transaction_read_only")                              \
	", " SETTING("default_transaction_deferrable") ", " SETTING("transaction_isolation") ", " SETTING("transaction_read_only") \
	", " SETTING("TimeZone") ", " SETTING("DateStyle") ", " SETTING("IntervalStyle") ", " SETTING("bytea_output")                \
	", " SETTING("client_encoding") ", " SETTING("standard_conforming_strings") ", " SETTING("row_security")                    \
	", " SETTING("plan_cache_mode") ", " SETTING("enable_seqscan") ", " SETTING("enable_hashjoin") ", " SETTING("enable_mergejoin") \
	", " SETTING("enable_indexscan") ", " SETTING("enable_nestloop") ", " SETTING("jit") ", " SETTING("track_counts")              \
	", " SETTING("hapax.schema") ")"
/* clang-format on */

const char pg_guard_settings[] = "SELECT " SETTINGS;

DB_STMT(stmt_settings, "guard_settings", "", "t", "SELECT " SETTINGS);

/* A store of the gate has no other table that is certain. */
DB_STMT(stmt_look, "guard_look", "", "ti",
	"SELECT " SETTINGS
	", coalesce(sum(pg_stat_get_xact_blocks_fetched(c.oid)), 0)::bigint FROM pg_catalog.pg_class c"
	" WHERE c.relname >= 'hx_' AND c.relname < 'hx`'"
	" AND c.relnamespace = (SELECT h.relnamespace FROM pg_catalog.pg_class h WHERE h.oid = to_regclass('hx_schema_version'))");

DB_STMT(stmt_role, "guard_role", "t", "t", "SELECT set_config('role', ?1, true)");
DB_STMT(stmt_which_role, "guard_which_role", "", "t", "SELECT current_setting('role')");

static bool cell_is(const PGresult *res, const char *wanted)
{
	return (size_t)PQgetlength(res, 0, 0) == strlen(wanted) &&
	       memcmp(PQgetvalue(res, 0, 0), wanted, strlen(wanted)) == 0;
}

static enum hx_code settings_changed(struct hx_error *err)
{
	return error_set(err, HX_DATA_ERROR, "a sql action may not change settings of the session");
}

static enum hx_code take_before(void *context, const struct db_stmt *stmt UNUSED, const PGresult *res,
				struct hx_error *err UNUSED)
{
	struct pg_guard *guard = context;

	snprintf(guard->settings, sizeof guard->settings, "%.*s", PQgetlength(res, 0, 0), PQgetvalue(res, 0, 0));
	guard->blocks = pg_cell_int(res, 0, 1);
	return HX_OK;
}

static enum hx_code take_after(void *context, const struct db_stmt *stmt UNUSED, const PGresult *res,
			       struct hx_error *err)
{
	const struct pg_guard *guard = context;

	if (pg_cell_int(res, 0, 1) != guard->blocks) /* mutant: guard-blocks -> if (false) */
		return error_set(err, HX_DATA_ERROR, "a sql action may not reach the engine's own tables");
	if (!cell_is(res, guard->settings)) /* mutant: guard-settings -> if (false) */
		return settings_changed(err);
	return HX_OK;
}

static enum hx_code take_role(void *context, const struct db_stmt *stmt UNUSED, const PGresult *res,
			      struct hx_error *err)
{
	const struct pg *pg = context;

	return cell_is(res, pg->role) ? HX_OK : settings_changed(err);
}

static void send_role(struct pg_trip *trip, const char *role)
{
	struct db_value param = db_str(role);

	pg_trip_row(trip, &stmt_role, &param, /* take= */ NULL, NULL);
}

void pg_guard_begin(struct pg_trip *trip, struct pg *pg)
{
	pg->guard.met = true;
	pg_trip_row(trip, &stmt_look, /* params= */ NULL, take_before, &pg->guard);
	if (pg->role[0])
		send_role(trip, pg->role);
}

void pg_guard_end(struct pg_trip *trip, struct pg *pg)
{
	if (pg->role[0]) {
		pg_trip_row(trip, &stmt_which_role, /* params= */ NULL, take_role, pg);
		send_role(trip, pg->guard.own_role);
	}
	pg_trip_row(trip, &stmt_look, /* params= */ NULL, take_after, &pg->guard);
}

static enum hx_code postgres_guard_take_head(void *context, const struct db_stmt *stmt UNUSED, const PGresult *res,
					     struct hx_error *err)
{
	struct pg *pg = context;

	if (cell_is(res, pg->guard.pinned))
		return HX_OK;
	pg->guard.spoilt = true;
	return error_set(err, HX_STORE_UNAVAILABLE,
			 "postgres: a sql action has changed settings of the session, which is given up");
}

void pg_guard_head(struct pg_trip *trip, struct pg *pg)
{
	if (pg->guard.met)
		pg_trip_row(trip, &stmt_settings, /* params= */ NULL, postgres_guard_take_head, pg);
	pg->guard.met = false;
}
