/*
 * What the files of the SQLite driver share. Nobody else includes this.
 *
 *   sqlite.c        a connection's life: set up, begin, commit, roll back, check point
 *   sqlite_unit.c   units of work, line by line: prepared statements, values, savepoints
 *   sqlite_file.c   the store's lock, and its file
 *   sqlite_log.c    the log, written in large pieces
 *   sqlite_sync.c   and synced, while the lane goes on
 *   sqlite_memory.c its memory, and sqlite_pages.c its page cache
 *   sqlite_guard.c  what statements of the user's may not reach
 */
#pragma once

#include <sqlite3.h>

#include "base/hash.h"
#include "db/driver.h"
#include "db/sqlite_file.h"
#include "db/sqlite_guard.h"
#include "db/sqlite_log.h"
#include "db/sqlite_sync.h"

#define STMT_SLOTS 1024 /* prepared statements; at most half are used, then all are forgotten */

struct sqlite_db {
	struct db db;
	sqlite3 *handle;
	struct sqlite_lock lock;
	bool begun;
	struct sqlite_guard guard;
	struct sqlite_log *log;   /* NULL: SQLite writes it piece by piece */
	struct sqlite_sync *sync; /* NULL: each commit is durable when it returns */
	bool writes;
	bool checkpoints;            /* holds the lock: the server's own connection */
	int wal_pages;               /* in the log since the last checkpoint */
	struct mono_time busy_since; /* of the wait for the lock that is under way */
	unsigned careful_n;          /* units that have savepoints yet, for one has lost late */
	struct {
		int64_t seq, version, fence;
		uint8_t hash[SHA256_BYTES];
	} linked; /* what hx_link() was called for last */
	sqlite3_stmt *begin, *read, *commit, *rollback, *savepoint, *undo, *keep;
	size_t slots_used;
	struct {
		const struct db_stmt *key;
		sqlite3_stmt *prepared;
	} slots[STMT_SLOTS];
};

static inline struct sqlite_db *sqlite_self(struct db *db)
{
	return (struct sqlite_db *)db;
}

enum hx_code sqlite_failed(struct sqlite_db *s, int rc, const char *what, struct hx_error *err);
enum hx_code sqlite_begin(struct db *db, struct hx_error *err);
void sqlite_rollback(struct db *db);

static inline int sqlite_step_fixed(sqlite3_stmt *stmt)
{
	int rc = sqlite3_step(stmt);

	sqlite3_reset(stmt);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

void sqlite_forget_prepared(struct sqlite_db *s);
enum hx_code sqlite_execute(struct db *db, struct unit *const units[], size_t n, struct unit_result results[],
			    struct arena *arena, struct hx_error *err);
