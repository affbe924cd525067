/*
 * A connection to PostgreSQL and its transactions.
 *
 *            begin (sends nothing)      execute: BEGIN goes with the first trip
 *   LOST ───────────────────▶ IDLE ───────────────────────▶ OPEN ── commit ──▶ IDLE
 *    ▲ ▲                       │ ▲                           │ │
 *    │ └── noticed by begin ───┘ └──────── any error ────────┘ │
 *    └────────────────── connection broke, silent server ──────┘
 *                                   while COMMIT was on its way: IN DOUBT ── resolve ──▶ IDLE
 *
 * The state is libpq's own (PQtransactionStatus) and `conn`, which is NULL when LOST; so a transaction that a
 * script opened is seen too.
 *
 * In doubt. The group has noted its transaction id. resolve() connects again and asks the server what became of
 * it, as long as it is still running. The number alone is not enough: a server that crashed before it had
 * written anything of our transaction to its log hands the same number out again, and then "committed" is said of
 * somebody else's work; a promoted standby has numbers of its own. So a number belongs to a *history*: the
 * system identifier, the timeline, and the moment at which the server last lost its statistics, which happens
 * exactly at a crash (a clean restart keeps them). In another history the answer is that we do not know, and
 * the caller looks its op up.
 */
#include "db/postgres.h"

#include "db/postgres_guard.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#define LOCK_TIMEOUT_MS 2000 /* above deadlock_timeout, so that a deadlock is told as one */
#define CONNECT_AGAIN_MS 100
#define RESOLVE_STEP_MS 10
#define SET_UP_MS 5000
#define COMMIT_LEAST_MS 500   /* what was executed is not left in doubt for the want of a moment */
#define RESOLVE_LEAST_MS 1000 /* and a doubt is not left without having asked */
#define SERVER_VERSION_MIN 120000

static struct pg *self(struct db *db)
{
	return (struct pg *)db;
}

/* ---- connect ---- */

/* Waits without a busy loop. */
static void pause_ms(int ms)
{
	(void)poll(NULL, 0, ms);
}

/* libpq's words without the password, should they repeat it. */
static enum hx_code cannot_connect(struct pg *pg, struct hx_error *err)
{
	char words[200];
	size_t n = 0, secret = pg->password ? strlen(pg->password) : 0;
	const char *p = pg->conn ? PQerrorMessage(pg->conn) : "no memory";

	while (*p && n + 4 < sizeof words) {
		if (secret && strncmp(p, pg->password, secret) == 0) {
			memcpy(words + n, "***", 3);
			n += 3;
			p += secret;
		} else {
			words[n++] = *p == '\n' || *p == '\t' ? ' ' : *p;
			p++;
			n -= n > 1 && words[n - 1] == ' ' && words[n - 2] == ' '; /* its lines become one */
		}
	}
	n -= n > 0 && words[n - 1] == ' ';
	words[n] = '\0';
	pg_lose(pg);
	return error_set(err, HX_STORE_UNAVAILABLE, "postgres: %s", words);
}

static void ignore_notice(void *context UNUSED, const PGresult *res UNUSED)
{
}

/*
 * Settings of the session. Transactions that write must be READ COMMITTED: what stands after the locks has to see what
 * their former holders committed. One that only reads takes no locks, and all of it sees one moment.
 * synchronous_commit is pinned to what was found (and judged), so that a later reload cannot weaken it.
 *
 * A table of the session's own is looked for last: none can stand in the way of one of ours. hapax.schema is where a
 * migration looks for what is there (migrate.c); what comes after it in the path may be another store.
 *
 * The planner is told that every statement is a handful of rows by key. A plan is made once and kept; made
 * while a table is still small it would otherwise read the whole table, and keep doing so when it has grown.
 */
static enum hx_code set_up_session(struct pg *pg, struct hx_error *err)
{
	char sql[2048];
	PGresult *res = NULL;
	enum hx_code code;

	snprintf(
		sql, sizeof sql,
		"SELECT current_setting('fsync'),"
		" set_config('synchronous_commit', current_setting('synchronous_commit'), false),"
		" set_config('lock_timeout', '%lld', false),"
		" set_config('idle_in_transaction_session_timeout', '%d', false),"
		" set_config('default_transaction_isolation', '%s', false),"
		" set_config('default_transaction_read_only', '%s', false),"
		" set_config('hapax.schema', '%s', false),"
		" set_config('search_path', concat_ws(', ', quote_ident(nullif('%s', '')), nullif(current_setting('search_path'), ''),"
		" 'pg_temp'), false),"
		" set_config('TimeZone', 'UTC', false),"
		" set_config('jit', 'off', false),"
		" set_config('plan_cache_mode', 'force_generic_plan', false),"
		" set_config('enable_seqscan', 'off', false),"
		" set_config('enable_hashjoin', 'off', false),"
		" set_config('enable_mergejoin', 'off', false)",
		(long long)pg->lock_timeout_ms, PG_ANSWER_MS, pg->read_only ? "repeatable read" : "read committed",
		pg->read_only ? "on" : "off", pg->schema, pg->schema);
	code = pg_run_text(pg, sql, SET_UP_MS, &res, err);
	if (code)
		return code;
	for (int i = 0; i < 2 && !pg->stay_unchecked && !code; i++)
		if (strcmp(PQgetvalue(res, 0, i), "off") == 0)
			code = error_set(err, HX_CONFIG_ERROR,
					 "postgres: %s is off: what it acknowledges could be lost. Turn it on",
					 i == 0 ? "fsync" : "synchronous_commit");
	PQclear(res);
	return code;
}

/* What statements of the user's must leave as it is. */
static enum hx_code pin_settings(struct pg *pg, struct hx_error *err)
{
	PGresult *res = NULL;
	enum hx_code code = pg_run_text(pg, pg_guard_settings, SET_UP_MS, &res, err);

	pg->guard.met = pg->guard.spoilt = false;
	if (!code)
		snprintf(pg->guard.pinned, sizeof pg->guard.pinned, "%s", PQgetvalue(res, 0, 0));
	PQclear(res);
	res = NULL;
	if (!code)
		code = pg_run_text(pg, "SELECT current_setting('role')", SET_UP_MS, &res, err);
	if (!code)
		snprintf(pg->guard.own_role, sizeof pg->guard.own_role, "%s", PQgetvalue(res, 0, 0));
	PQclear(res);
	return code;
}

/* Empty when the role may not ask; then a commit in doubt stays in doubt until its op is looked up. */
static void read_history(struct pg *pg)
{
	static const char sql[] =
		"SELECT concat_ws('/', (SELECT system_identifier FROM pg_control_system()),"
		" CASE WHEN pg_is_in_recovery() THEN 'standby' ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END,"
		" (SELECT extract(epoch FROM stats_reset) FROM pg_stat_bgwriter))";
	PGresult *res = NULL;

	pg->history[0] = '\0';
	if (pg_run_text(pg, sql, SET_UP_MS, &res, /* err= */ NULL) == HX_OK)
		snprintf(pg->history, sizeof pg->history, "%s", PQgetvalue(res, 0, 0));
	PQclear(res);
}

static enum hx_code set_up(struct pg *pg, struct hx_error *err)
{
	const char *encoding;
	enum hx_code code;

	if (PQstatus(pg->conn) != CONNECTION_OK)
		return cannot_connect(pg, err);
	encoding = PQparameterStatus(pg->conn, "server_encoding");
	if (!encoding || strcmp(encoding, "UTF8") != 0)
		return error_set(err, HX_CONFIG_ERROR, "postgres: the database's encoding is %s, UTF8 is needed",
				 encoding ? encoding : "unknown");
	if (PQserverVersion(pg->conn) < SERVER_VERSION_MIN)
		return error_set(err, HX_CONFIG_ERROR, "postgres: the server has version %d, at least %d is needed",
				 PQserverVersion(pg->conn) / 10000, SERVER_VERSION_MIN / 10000);
	if (PQsetnonblocking(pg->conn, 1) != 0)
		return cannot_connect(pg, err);
	PQsetNoticeReceiver(pg->conn, ignore_notice, NULL);
	code = set_up_session(pg, err);
	if (!code)
		code = pin_settings(pg, err);
	if (!code)
		read_history(pg);
	if (!code && !pg->conn)
		code = error_set(err, HX_STORE_UNAVAILABLE, "postgres: the connection was lost");
	return code;
}

static enum hx_code connect_now(struct pg *pg, struct hx_error *err)
{
	enum hx_code code;

	if (!pg_connect(pg))
		return error_set(err, HX_STORE_UNAVAILABLE, "postgres: the server cannot be reached in time");
	code = set_up(pg, err);
	if (code)
		pg_lose(pg);
	return code;
}

/* A server that refuses at once must not make its callers spin: there is a pause between two attempts. */
static enum hx_code connect_again(struct pg *pg, struct hx_error *err)
{
	int64_t early_ns = pg->connect_after.ns - clock_mono(pg->db.clock).ns;
	enum hx_code code;

	if (early_ns > 0)
		pause_ms(early_ns < CONNECT_AGAIN_MS * 1000000LL ? (int)(early_ns / 1000000) + 1 : CONNECT_AGAIN_MS);
	code = connect_now(pg, err);
	if (code)
		pg->connect_after = mono_add_ms(clock_mono(pg->db.clock), CONNECT_AGAIN_MS);
	return code;
}

/* ---- open and close ---- */

static void pg_close(struct db *db)
{
	struct pg *pg = self(db);

	if (!pg)
		return;
	pg_connect_abandon(pg);
	PQfinish(pg->conn);
	for (int i = 0; i < STMT_PARAMS_MAX; i++)
		strbuf_release(&pg->arrays[i]);
	free(pg->url);
	free(pg->password);
	free(pg);
}

/* A password with a bare @, / or : runs into the parts after it, and libpq would repeat them. */
static bool looks_like_password(const PQconninfoOption *part)
{
	if (strcmp(part->keyword, "port") == 0)
		return part->val[strspn(part->val, "0123456789,")] != '\0';
	if (strcmp(part->keyword, "host") == 0 || strcmp(part->keyword, "dbname") == 0)
		return strchr(part->val + (part->val[0] != '\0'), '@') != NULL; /* "@name" is an abstract socket */
	return false;
}

/* Finds the password, so that it can be kept out of errors. */
static enum hx_code check_url(struct pg *pg, struct hx_error *err)
{
	PQconninfoOption *parts = PQconninfoParse(pg->url, /* errmsg= */ NULL);
	enum hx_code code = HX_OK;
	bool bad = !parts;

	for (PQconninfoOption *part = parts; part && part->keyword; part++) {
		if (!part->val)
			continue;
		bad |= looks_like_password(part);
		if (strcmp(part->keyword, "password") == 0 && !(pg->password = strdup(part->val)))
			code = error_set(err, HX_NO_MEMORY, "open a store");
	}
	PQconninfoFree(parts);
	if (bad)
		return error_set(
			err, HX_CONFIG_ERROR,
			"postgres: the url cannot be read. Characters like @ : / %% in a password are written as %%XX");
	return code;
}

static enum hx_code pg_open(const struct db_options *options, struct db **ret_db, struct hx_error *err)
{
	struct pg *pg = calloc(1, sizeof *pg);
	enum hx_code code;

	if (!pg)
		return error_set(err, HX_NO_MEMORY, "open a store");
	pg->db = (struct db){.driver = &db_postgres, .clock = options->clock};
	pg->lock_timeout_ms = options->lock_timeout_ms ? options->lock_timeout_ms : LOCK_TIMEOUT_MS;
	pg->read_only = options->read_only;
	pg->stay_unchecked = options->stay_unchecked;
	snprintf(pg->role, sizeof pg->role, "%s", options->sql_role ? options->sql_role : "");
	for (int i = 0; i < STMT_PARAMS_MAX; i++)
		strbuf_init(&pg->arrays[i], PG_ARRAY_BYTES_MAX);
	code = store_schema_split(options->url, &pg->url, pg->schema, err);
	if (!code)
		code = check_url(pg, err);
	if (!code)
		code = connect_now(pg, err);
	return HAND_OVER(code, &pg->db, pg_close, ret_db);
}

/* ---- transactions ---- */

/* For the session: what is set inside of a transaction is gone when that is rolled back. */
static enum hx_code set_lock_wait(struct pg *pg, struct hx_error *err)
{
	char sql[64];
	enum hx_code code;

	if (!pg->db.lock_wait_ms || pg->db.lock_wait_ms == pg->lock_timeout_ms)
		return HX_OK;
	snprintf(sql, sizeof sql, "SET lock_timeout = %lld", (long long)pg->db.lock_wait_ms);
	code = pg_run_text(pg, sql, SET_UP_MS, /* ret_res= */ NULL, err);
	if (!code) {
		pg->lock_timeout_ms = pg->db.lock_wait_ms;
		code = pin_settings(pg, err);
	}
	return code;
}

static enum hx_code pg_begin(struct db *db, struct hx_error *err)
{
	struct pg *pg = self(db);
	enum hx_code code = HX_OK;

	pg->wrote = pg->foreign = false;
	pg->xid = 0;
	pg->cancelled = false;
	if (!pg->conn || !pg_still_there(pg))
		code = connect_again(pg, err);
	if (!code)
		code = set_lock_wait(pg, err);
	/* A server that came back with fsync off is not one we can use, and cannot be worked around here. */
	if (code && err)
		err->code = HX_STORE_UNAVAILABLE;
	ASSERT(code || PQtransactionStatus(pg->conn) == PQTRANS_IDLE);
	return code ? HX_STORE_UNAVAILABLE : HX_OK;
}

void pg_rollback(struct db *db)
{
	struct pg *pg = self(db);

	db->limit.ns = 0;
	/* A failure has given the connection up, and the server ends the transaction with it. */
	if (pg->conn && PQtransactionStatus(pg->conn) != PQTRANS_IDLE)
		(void)pg_run_text(pg, "ROLLBACK", PG_ANSWER_MS, /* ret_res= */ NULL, /* err= */ NULL);
	/* The unit's limit counts for the ROLLBACK as well: on a busy server it may pass just then. What is left is a transaction
	 * that has failed and nobody ends. */
	if (pg->conn && PQtransactionStatus(pg->conn) != PQTRANS_IDLE)
		pg_lose(pg);
}

/* From here on it is worth a little more than the patience that was left. */
static void wait_at_least(struct pg *pg, int64_t ms)
{
	struct mono_time least = mono_add_ms(clock_mono(pg->db.clock), ms);

	if (pg->db.patience.by.ns && pg->db.patience.by.ns < least.ns)
		pg->db.patience.by = least;
}

static enum hx_code in_doubt(struct pg *pg, struct hx_error *err)
{
	if (!pg->wrote)
		return error_set(err, HX_STORE_UNAVAILABLE, "postgres: the connection was lost; nothing was written");
	return error_set(err, HX_OUTCOME_UNKNOWN, "postgres: the connection was lost while committing");
}

/* Sent as a plain query of this one word: the tests' proxy recognises it. */
static enum hx_code pg_commit(struct db *db, struct hx_error *err)
{
	struct pg *pg = self(db);
	const char *word = "COMMIT";
	PGresult *res = NULL;
	enum hx_code code;

	/* Looking first makes certain what would be in doubt: a server that said farewell never saw the COMMIT. */
	if (!pg->conn || !pg_still_there(pg))
		return error_set(err, HX_STORE_UNAVAILABLE, "postgres: the connection was lost before the commit");
	if (PQtransactionStatus(pg->conn) == PQTRANS_IDLE)
		return HX_OK;
	/* Locks alone are written into the server's log, and a COMMIT waits until that is on the disk; nobody needs it there. */
	if (!pg->wrote && !pg->foreign && PQtransactionStatus(pg->conn) == PQTRANS_INTRANS)
		word = "ROLLBACK";
	wait_at_least(pg, COMMIT_LEAST_MS);
	code = pg_run_text(pg, word, PG_ANSWER_MS, &res, err);
	if (code && !pg->conn)
		return in_doubt(pg, err);
	/* The COMMIT of a transaction that had failed succeeds, and is a rollback. */
	if (!code && strcmp(PQcmdStatus(res), word) != 0)
		code = error_set(err, HX_STORE_UNAVAILABLE, "postgres: the server rolled back instead of committing");
	PQclear(res);
	if (code)
		pg_rollback(db); /* a COMMIT that was not begun leaves its transaction where it was */
	return code;
}

/* HX_BUSY: the transaction is still running, or the server cannot be asked right now. */
static enum hx_code ask_outcome(struct pg *pg, struct hx_error *err)
{
	char sql[64];
	PGresult *res = NULL;
	enum hx_code code = HX_BUSY;

	if (!pg->conn && connect_again(pg, err) != HX_OK)
		return HX_BUSY;
	if (pg->history[0] == '\0' || strcmp(pg->history, pg->xid_history) != 0)
		return error_set(err, HX_OUTCOME_UNKNOWN,
				 "postgres: the server has crashed or changed since the commit");
	snprintf(sql, sizeof sql, "SELECT txid_status(%lld)", (long long)pg->xid);
	if (pg_run_text(pg, sql, SET_UP_MS, &res, err) != HX_OK)
		return HX_BUSY;
	if (PQgetisnull(res, 0, 0))
		code = error_set(err, HX_OUTCOME_UNKNOWN, "postgres: the server has forgotten the transaction");
	else if (strcmp(PQgetvalue(res, 0, 0), "committed") == 0)
		code = HX_OK;
	else if (strcmp(PQgetvalue(res, 0, 0), "aborted") == 0)
		code = error_set(err, HX_STORE_UNAVAILABLE, "postgres: the connection was lost before the commit");
	PQclear(res);
	return code;
}

static enum hx_code pg_resolve(struct db *db, int64_t wait_ms, struct hx_error *err)
{
	struct pg *pg = self(db);
	struct mono_time deadline;
	enum hx_code code;

	wait_at_least(pg, RESOLVE_LEAST_MS);
	deadline = db_wait_until(db, mono_add_ms(clock_mono(db->clock), wait_ms));
	if (pg->xid == 0)
		return error_set(err, HX_OUTCOME_UNKNOWN, "postgres: the transaction has no number");
	for (;;) {
		code = ask_outcome(pg, err);
		if (code != HX_BUSY)
			return code;
		if (clock_mono(db->clock).ns >= deadline.ns)
			return error_set(err, HX_OUTCOME_UNKNOWN,
					 "postgres: whether it was committed could not be found out in time");
		db_tick(db);
		pause_ms(RESOLVE_STEP_MS);
	}
}

/* A transaction that the script itself opened does not outlive its failure; one from before is the caller's. */
static enum hx_code pg_script(struct db *db, const char *sql, struct hx_error *err)
{
	struct pg *pg = self(db);
	enum hx_code code = HX_OK;
	bool was_idle;

	/* Lost means that an earlier call has said so, and that its transaction is over. */
	if (!pg->conn)
		code = connect_again(pg, err);
	if (code)
		return code;
	was_idle = PQtransactionStatus(pg->conn) == PQTRANS_IDLE;
	pg->wrote = true;
	code = pg_run_text(pg, sql, PG_SCRIPT_MS, /* ret_res= */ NULL, err);
	if (code && was_idle)
		pg_rollback(db);
	return code;
}

static const char *pg_schema(const struct db *db)
{
	const struct pg *pg = (const struct pg *)db;

	return pg->schema[0] ? pg->schema : NULL;
}

static void pg_tend(struct db *db UNUSED, bool idle UNUSED)
{
}

const struct db_driver db_postgres = {
	.name = "postgres",
	.one_unit_per_subject = true,
	/* The other node may be building an index: its lock is waited for longer than any row's. */
	.migrate_begin = "BEGIN; SET LOCAL lock_timeout = '10min'; SELECT pg_advisory_xact_lock(4851071241877);"
			 " SET LOCAL lock_timeout = '30s'",
	.open = pg_open,
	.close = pg_close,
	.begin = pg_begin,
	.execute = pg_execute,
	.commit = pg_commit,
	.rollback = pg_rollback,
	.find_blocked = pg_find_blocked,
	.resolve = pg_resolve,
	.script = pg_script,
	.schema = pg_schema,
	.tend = pg_tend,
};
