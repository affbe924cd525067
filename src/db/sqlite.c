/*
 * The embedded store.
 *
 * One connection writes and checkpoints; it belongs to the lane. The log (WAL) is synced at every commit
 * (synchronous=FULL) and copied back only by us, between groups, when the lane is idle or the log has grown
 * past WAL_PAGES_MAX; a start copies all of it back before anything is served. Debian's SQLite has a bug in
 * which two connections that checkpoint and write at once can lose frames, so nobody else ever checkpoints.
 *
 * The one writer beside it is `hapax key`, a process of its own whose short transaction takes SQLite's write lock as ours do, and
 * which never checkpoints (the hook below is in the place of the automatic one, and closing does not either). That is safe in spite of
 * the bug: it strikes when a checkpoint begins while all of the log has been copied back already, and somebody else's commit starts
 * the log over at that moment. We begin one only after a commit of our own (wal_pages), which nobody else can have copied back, so
 * that nobody can start the log over before we have; and at a start we hold the write lock. It costs the lane the wait for one
 * sync, and what it had in its page cache.
 *
 * Who asks for it (db->later) has the log synced by another thread while it computes the next transaction (sqlite_sync.h).
 *
 * A failed sync means that the kernel may have dropped what we wrote: trying again would report success for
 * data that is gone. The process stops instead, and the next start recovers from the log.
 *
 * A statement of the user's may take for ever, and there is no other connection that it could run on: in a transaction with a
 * limit SQLite asks every few thousand steps whether it is over (on_progress), and ends the statement then. What is one step
 * for SQLite, a function that works on a large value, cannot be ended.
 */
#include <errno.h>
#include <poll.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/thread.h"
#include "db/link.h"
#include "db/sqlite.h"

#define WAL_PAGES_MAX 8192 /* 32 MB of 4 KiB pages */
#define WAL_KEPT "PRAGMA journal_size_limit = 67108864"
#define BUSY_TIMEOUT_MS 5000 /* for who has set no patience */
#define BUSY_STEP_MAX_MS 20
#define PROGRESS_STEPS 5000 /* of SQLite's machine: well below a millisecond */
#define SYNC_STEP_MS 20

/* ---- errors ---- */

static enum hx_code code_of(int rc)
{
	switch (rc & 0xff) {
	case SQLITE_CONSTRAINT:
	case SQLITE_MISMATCH:
	case SQLITE_TOOBIG:
	case SQLITE_RANGE:
		return HX_DATA_ERROR;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return HX_CONCURRENCY_ERROR;
	case SQLITE_NOMEM:
		return HX_NO_MEMORY;
	case SQLITE_FULL:
	case SQLITE_IOERR:
	case SQLITE_CANTOPEN:
	case SQLITE_READONLY:
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return HX_STORE_UNAVAILABLE;
	}
	return HX_INTERNAL;
}

enum hx_code sqlite_failed(struct sqlite_db *s, int rc, const char *what, struct hx_error *err)
{
	enum hx_code over = (rc & 0xff) == SQLITE_INTERRUPT ? db_is_over(&s->db) : HX_OK;

	if (s->guard.foreign && s->guard.denied)
		return error_set(err, HX_DATA_ERROR, "sqlite, %s: %s: a sql action may not reach what is the engine's",
				 what, sqlite3_errmsg(s->handle));
	return error_set(err, over ? over : code_of(rc), "sqlite, %s: %s", what,
			 s->handle ? sqlite3_errmsg(s->handle) : "no memory");
}

_Noreturn static void stop_after_failed_sync(struct sqlite_db *s, int rc)
{
	fprintf(stderr, "hapax: the store could not be synced (%s, code %d): stopping, the next start recovers\n",
		sqlite3_errmsg(s->handle), rc);
	abort();
}

/* ---- functions that the statements use ---- */

static void sql_now_ms(sqlite3_context *context, int n UNUSED, sqlite3_value **args UNUSED)
{
	struct sqlite_db *s = sqlite3_user_data(context);

	sqlite3_result_int64(context, clock_wall(s->db.clock).ms);
}

static struct slice sqlite_text_of(sqlite3_value *value)
{
	const unsigned char *text = sqlite3_value_text(value); /* first: it may convert, which changes the length */

	return slice_of(text, (size_t)sqlite3_value_bytes(value));
}

static void sql_link(sqlite3_context *context, int n UNUSED, sqlite3_value **args)
{
	struct sqlite_db *s = sqlite3_user_data(context);
	struct slice before = slice_of(sqlite3_value_blob(args[0]), (size_t)sqlite3_value_bytes(args[0]));
	struct history_row row = {
		.subject = sqlite3_value_int64(args[1]),
		.seq = sqlite3_value_int64(args[2]),
		.from = sqlite_text_of(args[3]),
		.to = sqlite_text_of(args[4]),
		.version = sqlite3_value_int64(args[5]),
		.fence = sqlite3_value_int64(args[6]),
		.op = sqlite3_value_int64(args[7]),
		.at = sqlite3_value_int64(args[8]),
		.node = sqlite_text_of(args[9]),
	};
	uint8_t hash[SHA256_BYTES];

	history_link(&row, before, hash);
	s->linked.seq = row.seq;
	s->linked.version = row.version;
	s->linked.fence = row.fence;
	memcpy(s->linked.hash, hash, sizeof hash);
	sqlite3_result_blob(context, hash, sizeof hash, SQLITE_TRANSIENT);
}

static int note_wal_pages(void *context, sqlite3 *handle UNUSED, const char *name UNUSED, int pages)
{
	struct sqlite_db *s = context;

	ASSERT(sqlite_log_held(s->log) == 0); /* readers see these frames from now on */
	s->wal_pages = pages;
	return SQLITE_OK;
}

/* ---- waiting ---- */

/* Another program has the lock. Tried again at once at first, then every few ms; 0: no longer. */
static int on_busy(void *context, int tries)
{
	struct sqlite_db *s = context;
	int64_t ms = tries < 2 ? 1 : tries < BUSY_STEP_MAX_MS ? tries : BUSY_STEP_MAX_MS;
	struct mono_time now = clock_mono(clock_system()); /* a test's clock may stand still */

	if (tries == 0)
		s->busy_since = now;
	if (db_is_over(&s->db) || now.ns >= mono_add_ms(s->busy_since, BUSY_TIMEOUT_MS).ns ||
	    clock_mono(s->db.clock).ns >= db_wait_until(&s->db, (struct mono_time){INT64_MAX}).ns)
		return 0;
	db_tick(&s->db);
	(void)poll(NULL, 0, (int)ms);
	return 1;
}

/* A statement that takes long: others are not kept waiting for an answer that will not come in time. */
static int on_progress(void *context)
{
	db_tick(context);
	return db_is_over(context) != HX_OK;
}

/* ---- open and close ---- */

/* The answer of a pragma that returns one text, e.g. the journal mode that is really in force. */
static bool pragma_is(struct sqlite_db *s, const char *sql, const char *wanted)
{
	sqlite3_stmt *stmt = NULL;
	bool same = sqlite3_prepare_v2(s->handle, sql, -1, &stmt, NULL) == SQLITE_OK &&
		    sqlite3_step(stmt) == SQLITE_ROW && strcmp((const char *)sqlite3_column_text(stmt, 0), wanted) == 0;

	sqlite3_finalize(stmt);
	return same;
}

static enum hx_code set_up(struct sqlite_db *s, bool in_memory, struct hx_error *err)
{
	static const char pragmas[] =
		"PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF;"
		"CREATE TEMP TABLE hx_ids (place INTEGER PRIMARY KEY, id INTEGER NOT NULL) STRICT;";
	/* Pages dirtied are what a writer pays for: all that is hot stays in memory. A reader needs little. */
	const char *cache = s->writes ? "PRAGMA cache_size = -262144" : "PRAGMA cache_size = -16384";
	const int pure = SQLITE_UTF8 | SQLITE_INNOCUOUS | SQLITE_DETERMINISTIC;
	int rc;

	sqlite3_extended_result_codes(s->handle, 1);
	sqlite3_busy_handler(s->handle, on_busy, s);
	sqlite3_progress_handler(s->handle, PROGRESS_STEPS, on_progress, &s->db);
	/* "Deterministic" is within one execution of a statement: all of it then sees one moment, and asks for it once. */
	rc = sqlite3_create_function(s->handle, "hx_now_ms", 0, pure, s, sql_now_ms, NULL, NULL);
	if (!rc)
		rc = sqlite3_create_function(s->handle, "hx_link", 10, pure, s, sql_link, NULL, NULL);
	if (!rc)
		rc = sqlite3_exec(s->handle, pragmas, NULL, NULL, NULL);
	if (!rc)
		rc = sqlite3_exec(s->handle, cache, NULL, NULL, NULL);
	/* A reader that stays, a backup say, lets the log grow. Once it is started over, it gives the room back. */
	if (!rc && s->checkpoints)
		rc = sqlite3_exec(s->handle, WAL_KEPT, NULL, NULL, NULL);
	if (!rc)
		rc = sqlite_guard_set(s->handle, &s->guard);
	if (rc)
		return sqlite_failed(s, rc, "open", err);
	if (s->writes && !in_memory && !pragma_is(s, "PRAGMA journal_mode = WAL", "wal")) {
		rc = sqlite3_errcode(s->handle);
		return rc ? sqlite_failed(s, rc, "write-ahead log", err)
			  : error_set(err, HX_STORE_UNAVAILABLE, "no write-ahead log is possible on this file system");
	}
	sqlite3_wal_hook(s->handle, note_wal_pages, s);
	return HX_OK;
}

/* Only the server's connection may copy the log back, at a start, at the end and in between. */
static enum hx_code checkpoint_at_start(struct sqlite_db *s, struct hx_error *err)
{
	int rc = sqlite3_wal_checkpoint_v2(s->handle, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);

	/* BUSY: a reader holds an old snapshot; the log then simply stays longer. */
	if (rc != SQLITE_OK && rc != SQLITE_BUSY)
		return sqlite_failed(s, rc, "checkpoint at start", err);
	return HX_OK;
}

static enum hx_code prepare_fixed(struct sqlite_db *s, struct hx_error *err)
{
	const struct {
		const char *sql;
		sqlite3_stmt **stmt;
	} fixed[] = {
		{"BEGIN IMMEDIATE", &s->begin}, /* on a reader's connection: a plain BEGIN */
		{"BEGIN", &s->read},
		{"COMMIT", &s->commit},
		{"ROLLBACK", &s->rollback},
		{"SAVEPOINT hx_unit", &s->savepoint},
		{"ROLLBACK TO hx_unit", &s->undo},
		{"RELEASE hx_unit", &s->keep},
	};

	for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
		int rc = sqlite3_prepare_v3(s->handle, fixed[i].sql, -1, SQLITE_PREPARE_PERSISTENT, fixed[i].stmt,
					    NULL);

		if (rc)
			return sqlite_failed(s, rc, fixed[i].sql, err);
	}
	return HX_OK;
}

static void sqlite_close(struct db *db)
{
	struct sqlite_db *s = sqlite_self(db);

	sqlite_forget_prepared(s);

	sqlite3_stmt *fixed[] = {s->begin, s->read, s->commit, s->rollback, s->savepoint, s->undo, s->keep};

	for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
		sqlite3_finalize(fixed[i]);
	sqlite_sync_free(s->sync);
	sqlite3_close(s->handle);
	sqlite_log_free(s->log);
	sqlite_unlock(&s->lock);
	free(s);
}

/* In the thread that syncs. */
static void tell(void *context, int64_t ns)
{
	struct db *db = context;

	atomic_store(&db->durable_ns, ns);
	if (db->told)
		db->told(db->told_context);
}

static enum hx_code open_handle(struct sqlite_db *s, const struct db_options *options, struct hx_error *err)
{
	const char *path = options->url + strlen("sqlite:");
	bool in_memory = strcmp(path, ":memory:") == 0;
	int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
		    (options->read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
	enum hx_code code = HX_OK;

	if (*path == '\0')
		return error_set(err, HX_CONFIG_ERROR, "sqlite: needs a path, as in sqlite:hapax.db");
	if (options->exclusive && !in_memory)
		code = sqlite_lock(path, &s->lock, err);
	else if (!options->read_only && !in_memory)
		sqlite_make_private(path);
	if (code)
		return code;

	int rc = sqlite3_open_v2(path, &s->handle, flags, NULL);
	int system = s->handle ? sqlite3_system_errno(s->handle) : ENOMEM;

	if (rc)
		return error_set(err, HX_STORE_UNAVAILABLE, "%s: %s", path,
				 system ? strerror(system) : sqlite3_errmsg(s->handle));
	if (!options->exclusive)
		sqlite3_db_config(s->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	code = set_up(s, in_memory, err);
	if (!code && options->exclusive)
		code = checkpoint_at_start(s, err);
	if (!code)
		code = prepare_fixed(s, err);
	if (!code && options->exclusive && !in_memory)
		s->log = sqlite_log_gather(s->handle);
	if (!code && s->log)
		code = sqlite_sync_new(sqlite3_filename_wal(sqlite3_db_filename(s->handle, "main")), tell, &s->db,
				       &s->sync, err);
	s->db.may_be_later = s->sync != NULL;
	return code && err ? error_set(err, code, "%s: %s", path, err->detail) : code;
}

static enum hx_code sqlite_open(const struct db_options *options, struct db **ret_db, struct hx_error *err)
{
	struct sqlite_db *s = calloc(1, sizeof *s);

	if (!s)
		return error_set(err, HX_NO_MEMORY, "open a store");
	s->db = (struct db){.driver = &db_sqlite, .clock = options->clock};
	s->lock = SQLITE_NOT_LOCKED;
	s->writes = !options->read_only;
	s->checkpoints = options->exclusive;

	enum hx_code code = open_handle(s, options, err);

	return HAND_OVER(code, &s->db, sqlite_close, ret_db);
}

/* ---- transactions ---- */

void sqlite_rollback(struct db *db)
{
	struct sqlite_db *s = sqlite_self(db);

	/* This must come to its end, whatever has passed. */
	db->limit.ns = 0;
	/* Some errors roll back by themselves; rolling back what is gone is no error of ours. */
	if (s->begun && !sqlite3_get_autocommit(s->handle))
		(void)sqlite_step_fixed(s->rollback);
	s->begun = false;
}

static bool sqlite_durable(struct db *db, uint64_t number, bool wait)
{
	struct sqlite_db *s = sqlite_self(db);
	bool done = sqlite_sync_is_done(s->sync, number);

	while (!done && wait) {
		db_tick(db);
		done = sqlite_sync_wait(s->sync, number, time_in_ms(SYNC_STEP_MS));
	}
	return done;
}

static bool sqlite_settle(struct db *db, struct mono_time by)
{
	struct sqlite_db *s = sqlite_self(db);
	uint64_t number = 0;
	bool done = !db->may_be_later;

	if (db->may_be_later)
		number = sqlite_sync_promised(s->sync); /* mutant: read-before-durable -> ; */
	while (!done && (!by.ns || clock_mono(db->clock).ns < by.ns))
		done = sqlite_sync_wait(s->sync, number, time_in_ms(SYNC_STEP_MS));
	return done;
}

static void wait_for_all(struct sqlite_db *s)
{
	(void)sqlite_durable(&s->db, sqlite_sync_promised(s->sync), /* wait= */ true);
}

enum hx_code sqlite_begin(struct db *db, struct hx_error *err)
{
	struct sqlite_db *s = sqlite_self(db);

	ASSERT(!s->begun);
	/* What it reads, or loses to, is told as soon as it has committed; and that need not sync anything. */
	if (!db->later && db->may_be_later)
		wait_for_all(s); /* mutant: begun-before-durable -> ; */
	int rc = sqlite_step_fixed(db->patience.reads ? s->read : s->begin);

	if (rc)
		return sqlite_failed(s, rc, "begin", err);
	s->begun = true;
	return HX_OK;
}

static int commit_now(struct sqlite_db *s)
{
	int64_t began_ns = clock_mono(clock_system()).ns;
	int rc = sqlite_step_fixed(s->commit);

	atomic_store(&s->db.durable_ns, clock_mono(clock_system()).ns - began_ns);
	return rc;
}

/* Y3 of sqlite_sync.h: also where it has failed, or there was nothing to write. */
static int commit_for_later(struct sqlite_db *s)
{
	int rc;

	sqlite_sync_promise(s->sync);
	sqlite_log_sync_later(s->log, true);
	rc = sqlite_step_fixed(s->commit);
	sqlite_log_sync_later(s->log, false);
	sqlite_sync_ask(s->sync);
	return rc;
}

static enum hx_code sqlite_commit(struct db *db, struct hx_error *err)
{
	struct sqlite_db *s = sqlite_self(db);

	ASSERT(s->begun);
	bool later = db->later && db->may_be_later;
	int rc = db->patience.reads ? sqlite_step_fixed(s->commit) : later ? commit_for_later(s) : commit_now(s);

	if (later)
		db->committed = sqlite_sync_promised(s->sync);
	if ((rc & 0xff) == SQLITE_IOERR)
		stop_after_failed_sync(s, rc);
	if (rc) {
		enum hx_code code = sqlite_failed(s, rc, "commit", err);

		sqlite_rollback(db);
		return code;
	}
	s->begun = false;
	return HX_OK;
}

static enum hx_code sqlite_resolve(struct db *db UNUSED, int64_t wait_ms UNUSED, struct hx_error *err UNUSED)
{
	ASSERT(!"a commit on SQLite is never unknown: it answers, or the process ends");
	return HX_INTERNAL;
}

static enum hx_code sqlite_script(struct db *db, const char *sql, struct hx_error *err)
{
	struct sqlite_db *s = sqlite_self(db);
	int rc = sqlite3_exec(s->handle, sql, NULL, NULL, NULL);

	return rc ? sqlite_failed(s, rc, "script", err) : HX_OK;
}

static void sqlite_tend(struct db *db, bool idle)
{
	struct sqlite_db *s = sqlite_self(db);

	if (!s->checkpoints || s->wal_pages == 0 || (!idle && s->wal_pages < WAL_PAGES_MAX))
		return;

	int rc = sqlite3_wal_checkpoint_v2(s->handle, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);

	if ((rc & 0xff) == SQLITE_IOERR)
		stop_after_failed_sync(s, rc);
	s->wal_pages = 0;
}

const struct db_driver db_sqlite = {
	.name = "sqlite",
	.one_unit_per_subject = false,
	.one_writer = true,
	.migrate_begin = "BEGIN IMMEDIATE",
	.open = sqlite_open,
	.close = sqlite_close,
	.begin = sqlite_begin,
	.execute = sqlite_execute,
	.commit = sqlite_commit,
	.durable = sqlite_durable,
	.settle = sqlite_settle,
	.rollback = sqlite_rollback,
	.resolve = sqlite_resolve,
	.script = sqlite_script,
	.tend = sqlite_tend,
};
