/*
 * raw_sqlite STORE BATCH MOVES : the ceiling on SQLite. Nothing of the engine is in here.
 *
 * STORE is one that `hapax db migrate` has made. One connection, the engine's schema, pragmas and syncs, BATCH moves to a transaction: a guarded UPDATE whose
 * row count is checked, and a history row of the engine's width. What the engine does besides is left out: it
 * keeps no chain (the hash is 32 bytes out of memory), reads nothing back, builds no texts, has no threads.
 */
#include <sqlite3.h>
#include <string.h>

#include "workload.h"

#define WAL_PAGES_MAX 8192

static sqlite3 *db;
static sqlite3_stmt *begin, *commit, *update, *insert;
static int wal_pages;

static void check(int rc, const char *what)
{
	if (rc != SQLITE_OK && rc != SQLITE_DONE) {
		fprintf(stderr, "raw_sqlite, %s: %s\n", what, sqlite3_errmsg(db));
		exit(1);
	}
}

static void run(sqlite3_stmt *stmt, const char *what)
{
	check(sqlite3_step(stmt), what);
	sqlite3_reset(stmt);
}

static void script(const char *sql)
{
	check(sqlite3_exec(db, sql, NULL, NULL, NULL), sql);
}

static sqlite3_stmt *prepare(const char *sql)
{
	sqlite3_stmt *stmt;

	check(sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt, NULL), sql);
	return stmt;
}

static int note_wal_pages(void *context, sqlite3 *handle, const char *name, int pages)
{
	(void)context, (void)handle, (void)name;
	wal_pages = pages;
	return SQLITE_OK;
}

static void set_up(const char *path)
{
	char fill[1024];

	check(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL), path);
	script("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -262144;"
	       "PRAGMA temp_store = MEMORY;");
	sqlite3_wal_hook(db, note_wal_pages, NULL); /* in the place of the automatic checkpoint */
	snprintf(fill, sizeof fill,
		 "BEGIN; WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
		 " INSERT INTO hx_subject (id, kind, status, version, op, updated_at, seq, head)"
		 " SELECT %lld + i, 1, '%s', 1, %lld, %lld, 1, zeroblob(32) FROM n;"
		 " INSERT INTO hx_history (subject, seq, from_status, to_status, version, fence, op, node, at, hash)"
		 " SELECT id, seq, '', status, version, fence, op, '%s', updated_at, head"
		 " FROM hx_subject; COMMIT",
		 SUBJECTS - 1, (long long)FIRST_SUBJECT, workload_status[0], (long long)FIRST_SUBJECT,
		 (long long)workload_wall_ms(), workload_node);
	script(fill);
	begin = prepare("BEGIN IMMEDIATE");
	commit = prepare("COMMIT");
	update = prepare("UPDATE hx_subject SET status = ?1, version = version + 1, op = ?2, updated_at = ?3,"
			 " seq = seq + 1, head = ?4 WHERE id = ?5 AND status = ?6 AND version = ?7");
	insert = prepare(
		"INSERT INTO hx_history (subject, seq, from_status, to_status, version, fence, op, node, at, hash)"
		" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)");
}

static void move(uint32_t i, int64_t version, int64_t op, int64_t now_ms)
{
	static unsigned char hash[HASH_BYTES];
	const char *from = workload_status[(version + 1) % 2], *to = workload_status[version % 2];

	memcpy(hash, &op, sizeof op); /* no two alike, as with real ones */
	sqlite3_bind_text(update, 1, to, -1, SQLITE_STATIC);
	sqlite3_bind_int64(update, 2, op);
	sqlite3_bind_int64(update, 3, now_ms);
	sqlite3_bind_blob(update, 4, hash, sizeof hash, SQLITE_STATIC);
	sqlite3_bind_int64(update, 5, FIRST_SUBJECT + i);
	sqlite3_bind_text(update, 6, from, -1, SQLITE_STATIC);
	sqlite3_bind_int64(update, 7, version);
	run(update, "update");
	if (sqlite3_changes(db) != 1) {
		fprintf(stderr, "raw_sqlite: a guard did not hold\n");
		exit(1);
	}
	sqlite3_bind_int64(insert, 1, FIRST_SUBJECT + i);
	sqlite3_bind_int64(insert, 2, version + 1);
	sqlite3_bind_text(insert, 3, from, -1, SQLITE_STATIC);
	sqlite3_bind_text(insert, 4, to, -1, SQLITE_STATIC);
	sqlite3_bind_int64(insert, 5, version + 1);
	sqlite3_bind_int64(insert, 6, 0);
	sqlite3_bind_int64(insert, 7, op);
	sqlite3_bind_text(insert, 8, workload_node, -1, SQLITE_STATIC);
	sqlite3_bind_int64(insert, 9, now_ms);
	sqlite3_bind_blob(insert, 10, hash, sizeof hash, SQLITE_STATIC);
	run(insert, "insert");
}

static void measure(unsigned long batch, unsigned long moves)
{
	static uint32_t order[SUBJECTS];
	static int64_t version[SUBJECTS];
	uint64_t done = 0, transactions = 0;
	double start, seconds = 0;

	workload_order(order);
	start = workload_seconds();
	for (; done < moves && seconds < SECONDS_MAX; seconds = workload_seconds() - start, transactions++) {
		int64_t now_ms = workload_wall_ms();

		run(begin, "begin");
		for (unsigned long i = 0; i < batch; i++, done++) {
			uint32_t subject = order[done % SUBJECTS];

			version[subject]++;
			move(subject, version[subject], FIRST_SUBJECT + (int64_t)done, now_ms);
		}
		run(commit, "commit");
		if (wal_pages >= WAL_PAGES_MAX) {
			check(sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL), "checkpoint");
			wal_pages = 0;
		}
	}
	workload_print(done, transactions, seconds);
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: raw_sqlite STORE BATCH MOVES\n");
		return 2;
	}
	set_up(argv[1]);
	measure(workload_number(argv[2], 1, SUBJECTS), workload_number(argv[3], 1, 100000000));
	sqlite3_stmt *all[] = {begin, commit, update, insert};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		sqlite3_finalize(all[i]);
	sqlite3_close(db);
	return 0;
}
