/* The log in large pieces: what reaches the file, when, and what becomes of it if it cannot be written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "db/sqlite_log.h"
#include "support/must_hold.h"
#include "support/store.h"

/* A file below, which counts, and fails when it is told to. */
static sqlite3_io_methods counted;
static const sqlite3_io_methods *really;
static unsigned writes, syncs, unsynced, fail_next;

static int counted_write(sqlite3_file *file, const void *bytes, int n, sqlite3_int64 at)
{
	writes++;
	unsynced++;
	if (fail_next && --fail_next == 0)
		return SQLITE_FULL;
	return really->xWrite(file, bytes, n, at);
}

static int counted_sync(sqlite3_file *file, int flags)
{
	syncs++;
	unsynced = 0;
	return really->xSync(file, flags);
}

struct scene {
	struct store *store;
	const char *path;
	sqlite3 *writer, *other;
	struct sqlite_log *log;
};

static void run(sqlite3 *db, const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
}

static int64_t ask(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *stmt = NULL;
	int64_t answer = -1;

	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW)
		answer = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	return answer;
}

static sqlite3 *open_one(const char *path)
{
	sqlite3 *db = NULL;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	run(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0");
	return db;
}

static struct scene begin(void)
{
	struct scene scene = {.store = store_new(STORE_SQLITE_FILE)};
	sqlite3_file *file = NULL;

	scene.path = scene.store->url + strlen("sqlite:");
	scene.writer = open_one(scene.path);
	run(scene.writer, "CREATE TABLE t (id INTEGER PRIMARY KEY, bytes BLOB NOT NULL)");
	scene.other = open_one(scene.path);
	assert_int_equal(sqlite3_file_control(scene.writer, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file), SQLITE_OK);
	really = file->pMethods;
	counted = *really;
	counted.xWrite = counted_write;
	counted.xSync = counted_sync;
	file->pMethods = &counted;
	writes = syncs = unsynced = fail_next = 0;
	scene.log = sqlite_log_gather(scene.writer);
	assert_non_null(scene.log);
	return scene;
}

static void end(struct scene *scene)
{
	assert_int_equal(sqlite3_close(scene->writer), SQLITE_OK);
	sqlite_log_free(scene->log);
	assert_int_equal(
		ask(scene->other, "SELECT count(*) FROM pragma_integrity_check() WHERE integrity_check = 'ok'"), 1);
	assert_int_equal(sqlite3_close(scene->other), SQLITE_OK);
	store_free(scene->store);
}

/* So many pages, and a little more. */
static int put(sqlite3 *db, int pages)
{
	char sql[200];

	snprintf(sql, sizeof sql,
		 "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
		 " INSERT INTO t (bytes) SELECT randomblob(4000) FROM n",
		 pages);
	return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

static void what_is_committed_is_in_the_file_in_few_pieces(void **state)
{
	static const int sizes[] = {1, 2, 29, 30, 31, 60, 300};
	struct scene scene = begin();
	int64_t all = 0;

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		unsigned writes_before = writes, syncs_before = syncs;

		assert_int_equal(put(scene.writer, sizes[i]), SQLITE_OK);
		all += sizes[i];
		MUST_HOLD(sqlite_log_held(scene.log) == 0, "a commit is told while its frames are nowhere");
		MUST_HOLD(unsynced == 0, "a commit is told before it is synced");
		assert_true(syncs > syncs_before);
		assert_true(writes - writes_before <= 7 + (unsigned)sizes[i] / 20); /* four are zeros */
		assert_int_equal(ask(scene.other, "SELECT count(*) FROM t"), all);
		assert_int_equal(ask(scene.other, "SELECT sum(length(bytes)) FROM t"), all * 4000);
	}
	end(&scene);
}

static int64_t log_bytes(const struct scene *scene)
{
	char path[600];
	struct stat about;

	snprintf(path, sizeof path, "%s-wal", scene->path);
	assert_int_equal(stat(path, &about), 0);
	return about.st_size;
}

static void a_file_grows_in_large_steps(void **state)
{
	struct scene scene = begin();
	unsigned steps = 0;
	int64_t size, before = 0;

	(void)state;
	for (int i = 0; i < 100; i++, before = size) {
		assert_int_equal(put(scene.writer, 1), SQLITE_OK);
		size = log_bytes(&scene);
		steps += size != before;
	}
	assert_in_range(steps, 2, 10); /* 100 commits of at least 8 KB, a step for each 256 KB */
	/* Not where a commit is larger than that: it would be written twice. */
	assert_int_equal(put(scene.writer, 300), SQLITE_OK);
	assert_in_range(log_bytes(&scene) - before, 1, 310 * (4096 + 24));
	end(&scene);
}

/* What a crash leaves is read again, up to the zeros. */
static void zeros_are_no_frames(void **state)
{
	struct scene scene = begin();
	char copy[600];
	sqlite3 *again;

	(void)state;
	for (int i = 0; i < 10; i++)
		assert_int_equal(put(scene.writer, 1), SQLITE_OK);
	snprintf(copy, sizeof copy, "cp %s %s-copy && cp %s-wal %s-copy-wal", scene.path, scene.path, scene.path,
		 scene.path);
	assert_int_equal(system(copy), 0);
	snprintf(copy, sizeof copy, "%s-copy", scene.path);
	again = open_one(copy);
	assert_int_equal(ask(again, "SELECT sum(length(bytes)) FROM t"), 10 * 4000);
	assert_int_equal(put(again, 3), SQLITE_OK);
	assert_int_equal(sqlite3_close(again), SQLITE_OK);
	unlink(copy);
	end(&scene);
}

static void a_commit_does_not_fail_of_its_zeros(void **state)
{
	struct scene scene = begin();

	(void)state;
	fail_next = 2; /* the frames are the first */
	assert_int_equal(put(scene.writer, 1), SQLITE_OK);
	assert_int_equal(fail_next, 0);
	assert_int_equal(unsynced, 0);
	assert_int_equal(put(scene.writer, 1), SQLITE_OK);
	assert_int_equal(ask(scene.other, "SELECT sum(length(bytes)) FROM t"), 2 * 4000);
	end(&scene);
}

/* What was written for a transaction that is gone is the place of another program's frames; and a checkpoint syncs without the lock. */
static void zeros_are_not_written_over_others(void **state)
{
	struct scene scene = begin();
	int64_t all = 0;

	(void)state;
	run(scene.writer, "PRAGMA cache_size = 5");
	for (int size = 35; size < 115;
	     size += 5, all += 202) { /* some of these end shortly after where the file does */
		run(scene.other, "PRAGMA wal_checkpoint(TRUNCATE)");
		assert_int_equal(put(scene.writer, 2), SQLITE_OK);
		run(scene.writer, "BEGIN");
		assert_int_equal(put(scene.writer, size), SQLITE_OK);
		run(scene.writer, "ROLLBACK");
		assert_int_equal(put(scene.other, 200), SQLITE_OK);
		run(scene.writer, "PRAGMA wal_checkpoint(PASSIVE)");
		MUST_HOLD(ask(scene.writer, "SELECT sum(length(bytes)) FROM t") == (all + 202) * 4000,
			  "what another program has committed is written over with zeros");
	}
	end(&scene);
}

/* Pages that were spilled and change again are written anew, with the checksums of all after them: the last write is not the last frame. */
static void zeros_are_not_written_over_the_last_frame(void **state)
{
	(void)state;
	for (int size = 20; size < 60; size++) { /* some of these end shortly after where the file does */
		struct scene scene = begin();
		char sql[200];

		run(scene.writer, "PRAGMA cache_size = 5");
		run(scene.other, "PRAGMA wal_checkpoint(TRUNCATE)");
		assert_int_equal(put(scene.writer, size), SQLITE_OK);
		run(scene.writer, "BEGIN");
		snprintf(sql, sizeof sql, "UPDATE t SET bytes = randomblob(4000) WHERE id < %d", size / 2);
		run(scene.writer, sql);
		run(scene.writer, sql);
		run(scene.writer, "INSERT INTO t (bytes) VALUES (zeroblob(4000));"
				  "UPDATE t SET bytes = randomblob(4000) WHERE id = 3; COMMIT");
		MUST_HOLD(ask(scene.other, "SELECT sum(length(bytes)) FROM t") == (size + 1) * 4000,
			  "the end of a commit is written over with zeros");
		end(&scene);
	}
}

/* What does not fit into the cache is written before the commit, and read again. */
static void what_is_not_committed_yet_is_read_back(void **state)
{
	struct scene scene = begin();

	(void)state;
	run(scene.writer, "PRAGMA cache_size = 5; BEGIN");
	assert_int_equal(put(scene.writer, 200), SQLITE_OK);
	run(scene.writer, "UPDATE t SET bytes = zeroblob(4000) WHERE id % 7 = 0");
	assert_int_equal(ask(scene.writer, "SELECT sum(length(bytes)) FROM t"), 200 * 4000);
	assert_int_equal(ask(scene.other, "SELECT count(*) FROM t"), 0);
	run(scene.writer, "COMMIT");
	assert_int_equal(ask(scene.other, "SELECT count(*) FROM t WHERE bytes = zeroblob(4000)"), 200 / 7);
	run(scene.writer, "PRAGMA wal_checkpoint(TRUNCATE)");
	assert_int_equal(ask(scene.other, "SELECT sum(length(bytes)) FROM t"), 200 * 4000);
	end(&scene);
}

/* The first piece of several cannot be written, or the last one. Others write then, and we again. */
static void what_cannot_be_written_is_not_written_later(void **state)
{
	struct scene scene = begin();

	(void)state;
	assert_int_equal(put(scene.writer, 3), SQLITE_OK);
	for (unsigned piece = 1; piece <= 3; piece++) {
		int64_t before = ask(scene.other, "SELECT count(*) FROM t");

		fail_next = piece;
		assert_int_equal(put(scene.writer, 75), SQLITE_FULL);
		assert_int_equal(fail_next, 0);
		assert_int_equal(sqlite_log_held(scene.log), 0);
		assert_int_equal(ask(scene.other, "SELECT count(*) FROM t"), before);
		assert_int_equal(put(scene.other, 4), SQLITE_OK);
		assert_int_equal(put(scene.writer, 5), SQLITE_OK);
		assert_int_equal(ask(scene.other, "SELECT sum(length(bytes)) FROM t"), (before + 9) * 4000);
	}
	end(&scene);
}

/* SQLite undoes one statement of a transaction for a full disk, and lets it go on, with pages that were in what was not written. */
static void a_transaction_that_has_lost_pages_cannot_commit(void **state)
{
	struct scene scene = begin();

	(void)state;
	assert_int_equal(put(scene.writer, 40), SQLITE_OK);
	run(scene.writer, "PRAGMA cache_size = 5; BEGIN");
	assert_int_equal(put(scene.writer, 20), SQLITE_OK);
	assert_true(sqlite_log_held(scene.log) > 0);
	fail_next = 1;
	assert_int_equal(sqlite3_exec(scene.writer, "INSERT INTO t (bytes) SELECT bytes FROM t ORDER BY id DESC", NULL,
				      NULL, NULL),
			 SQLITE_FULL);
	assert_int_equal(fail_next, 0);
	assert_false(sqlite3_get_autocommit(scene.writer));
	MUST_HOLD(sqlite3_exec(scene.writer, "COMMIT", NULL, NULL, NULL) == SQLITE_FULL,
		  "a transaction is committed of which pages are nowhere");
	if (!sqlite3_get_autocommit(scene.writer))
		run(scene.writer, "ROLLBACK");
	assert_int_equal(put(scene.other, 4), SQLITE_OK);
	assert_int_equal(put(scene.writer, 5), SQLITE_OK);
	assert_int_equal(ask(scene.other, "SELECT sum(length(bytes)) FROM t"), 49 * 4000);
	assert_int_equal(ask(scene.writer, "SELECT sum(length(bytes)) FROM t"), 49 * 4000);
	end(&scene);
}

/* Its place in the log belongs to whoever writes next. */
static void what_is_rolled_back_is_not_written(void **state)
{
	struct scene scene = begin();
	unsigned before;

	(void)state;
	assert_int_equal(put(scene.writer, 40), SQLITE_OK);
	run(scene.writer, "PRAGMA cache_size = 5; BEGIN");
	assert_int_equal(put(scene.writer, 20), SQLITE_OK);
	assert_true(sqlite_log_held(scene.log) > 0);
	before = writes;
	run(scene.writer, "ROLLBACK");
	MUST_HOLD(sqlite_log_held(scene.log) == 0,
		  "what was rolled back is written over the next transaction of another program");
	assert_int_equal(put(scene.other, 30), SQLITE_OK);
	assert_int_equal(ask(scene.writer, "SELECT sum(length(bytes)) FROM t"), 70 * 4000);
	assert_int_equal(writes, before);

	/* The same by the end of a connection. */
	run(scene.writer, "BEGIN");
	assert_int_equal(put(scene.writer, 20), SQLITE_OK);
	assert_true(sqlite_log_held(scene.log) > 0);
	before = writes;
	assert_int_equal(sqlite3_close(scene.writer), SQLITE_OK);
	assert_int_equal(writes, before);
	sqlite_log_free(scene.log);
	scene.log = NULL;
	scene.writer = open_one(scene.path);
	assert_int_equal(ask(scene.other, "SELECT sum(length(bytes)) FROM t"), 70 * 4000);
	end(&scene);
}

/* Savepoints go back in the log, and write over what they have left there, gathered or not. */
static void a_savepoint_goes_back_in_the_log(void **state)
{
	struct scene scene = begin();

	(void)state;
	run(scene.writer, "PRAGMA cache_size = 5");
	for (int i = 1; i <= 40; i++) {
		run(scene.writer, "BEGIN");
		assert_int_equal(put(scene.writer, i % 11), SQLITE_OK);
		run(scene.writer, "SAVEPOINT a");
		assert_int_equal(put(scene.writer, i), SQLITE_OK);
		run(scene.writer, "UPDATE t SET bytes = zeroblob(4000) WHERE id % 3 = 0");
		run(scene.writer, "ROLLBACK TO a; DELETE FROM t WHERE id % 17 = 5; RELEASE a");
		assert_int_equal(put(scene.writer, 3), SQLITE_OK);
		run(scene.writer, i % 5 ? "COMMIT" : "ROLLBACK");
		if (i % 7 == 0) /* the log begins anew, by whoever writes next */
			run(scene.other, "PRAGMA wal_checkpoint(RESTART)");
		if (i % 3 == 0)
			assert_int_equal(put(scene.other, 2), SQLITE_OK);
		assert_int_equal(ask(scene.other, "SELECT count(*) FROM t WHERE bytes = zeroblob(4000)"), 0);
		assert_int_equal(ask(scene.other, "SELECT sum(length(bytes)) = 4000 * count(*) FROM t"), 1);
	}
	end(&scene);
}

/* There SQLite syncs, and then writes the rest of the last page: it would be gathered, and nobody would write it. */
static void where_a_write_harms_its_neighbours_nothing_is_gathered(void **state)
{
	struct store *store = store_new(STORE_SQLITE_FILE);
	char uri[600];
	sqlite3 *db = NULL;

	(void)state;
	snprintf(uri, sizeof uri, "file:%s?psow=0", store->url + strlen("sqlite:"));
	assert_int_equal(sqlite3_open_v2(uri, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI, NULL),
			 SQLITE_OK);
	run(db, "PRAGMA journal_mode = WAL; CREATE TABLE t (id INTEGER PRIMARY KEY)");
	assert_null(sqlite_log_gather(db));
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	store_free(store);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_committed_is_in_the_file_in_few_pieces),
		cmocka_unit_test(a_file_grows_in_large_steps),
		cmocka_unit_test(zeros_are_no_frames),
		cmocka_unit_test(a_commit_does_not_fail_of_its_zeros),
		cmocka_unit_test(zeros_are_not_written_over_others),
		cmocka_unit_test(zeros_are_not_written_over_the_last_frame),
		cmocka_unit_test(what_is_not_committed_yet_is_read_back),
		cmocka_unit_test(what_cannot_be_written_is_not_written_later),
		cmocka_unit_test(a_transaction_that_has_lost_pages_cannot_commit),
		cmocka_unit_test(what_is_rolled_back_is_not_written),
		cmocka_unit_test(a_savepoint_goes_back_in_the_log),
		cmocka_unit_test(where_a_write_harms_its_neighbours_nothing_is_gathered),
	};

	ONLY_THE_NAMED(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
