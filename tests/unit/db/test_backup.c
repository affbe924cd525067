/*
 * The copy of an SQLite store: of one moment although somebody writes between any two of its slices; whole or not there at all;
 * and the log, which had to grow meanwhile, is small again afterwards.
 */
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "db/backup.h"
#include "support/store.h"

#define ROWS 1500 /* of 8 KiB: some slices */
#define LOG_KEPT (64 << 20)
#define SLICES_MAX 10 /* a copy that began anew with every write would never end */

struct bench {
	struct store *store;
	struct db *db;
	char path[400], copy[400];
	int looks; /* of `told` so far */
	int slices;
	int stop_at;     /* the look that says no; 0: none does */
	int rows_a_look; /* written at each look */
};

static void script(struct db *db, const char *sql)
{
	struct hx_error err;

	if (db->driver->script(db, sql, &err) != HX_OK)
		fail_msg("%s", err.detail);
}

/* Two tables that always have as many rows: a copy of two moments would not. */
static void write_rows(struct bench *b, int n)
{
	char sql[500];

	snprintf(sql, sizeof sql,
		 "BEGIN IMMEDIATE; WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < %d)"
		 " INSERT INTO a (x) SELECT randomblob(8000) FROM k;"
		 "WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < %d)"
		 " INSERT INTO b (x) SELECT 1 FROM k; COMMIT",
		 n, n);
	script(b->db, sql);
}

static int set_up(void **state)
{
	struct bench *b = calloc(1, sizeof *b);
	struct db_options options = {.clock = clock_system(), .exclusive = true};
	struct hx_error err;

	assert_non_null(b);
	b->store = store_new(STORE_SQLITE_FILE);
	options.url = b->store->url;
	if (db_open(&options, &b->db, &err) != HX_OK)
		fail_msg("%s", err.detail);
	snprintf(b->path, sizeof b->path, "%s", b->store->url + strlen("sqlite:"));
	snprintf(b->copy, sizeof b->copy, "%s/a copy?.db", b->store->dir);
	script(b->db, "CREATE TABLE a (id INTEGER PRIMARY KEY, x BLOB); CREATE TABLE b (id INTEGER PRIMARY KEY, x)");
	write_rows(b, ROWS);
	*state = b;
	return 0;
}

static int tear_down(void **state)
{
	static const char *const suffixes[] = {"", "-wal", "-shm"}; /* whoever reads the copy makes the latter */
	struct bench *b = *state;

	db_close(b->db);
	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		char name[500];

		snprintf(name, sizeof name, "%s%s", b->copy, suffixes[i]);
		unlink(name);
	}
	store_free(b->store);
	free(b);
	return 0;
}

static bool told(void *context, int percent)
{
	struct bench *b = context;

	assert_true(percent >= -1 && percent <= 100);
	if (b->rows_a_look && percent >= 0)
		write_rows(b, b->rows_a_look);
	b->db->driver->tend(b->db, /* idle= */ true); /* the server's checkpoints go on */
	b->slices += percent >= 0;
	return ++b->looks != b->stop_at && b->slices < SLICES_MAX;
}

static enum hx_code take(struct bench *b, const char *file, struct hx_error *err)
{
	struct backup_options options = {.path = b->path, .file = file, .told = told, .context = b};
	int64_t bytes = 0;
	enum hx_code code = backup_take(&options, &bytes, err);

	if (!code)
		assert_true(bytes > ROWS * 8000);
	return code;
}

static int64_t number(const char *path, const char *sql)
{
	sqlite3_stmt *stmt;
	sqlite3 *handle;
	int64_t n;

	assert_int_equal(sqlite3_open_v2(path, &handle, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(handle, sql, -1, &stmt, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	n = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	sqlite3_close(handle);
	return n;
}

static off_t size_of(const char *path, const char *suffix)
{
	struct stat st;
	char name[500];

	snprintf(name, sizeof name, "%s%s", path, suffix);
	return stat(name, &st) == 0 ? st.st_size : -1;
}

/* Files in the store's folder beside its own. */
static int others(const struct bench *b)
{
	DIR *dir = opendir(b->store->dir);
	int n = 0;

	assert_non_null(dir);
	for (struct dirent *e = readdir(dir); e; e = readdir(dir))
		n += e->d_name[0] != '.' && strncmp(e->d_name, "store.db", 8) != 0;
	closedir(dir);
	return n;
}

static void assert_fails(struct bench *b, const char *file, enum hx_code code, const char *words)
{
	struct hx_error err = {0};

	assert_string_equal(hx_code_name(take(b, file, &err)), hx_code_name(code));
	if (!strstr(err.detail, words))
		fail_msg("\"%s\" does not say \"%s\"", err.detail, words);
}

/* ---- one moment ---- */

static void the_copy_is_of_one_moment_while_somebody_writes(void **state)
{
	struct bench *b = *state;
	struct hx_error err = {0};
	struct stat st;

	b->rows_a_look = 10;
	if (take(b, b->copy, &err) != HX_OK)
		fail_msg("%s", err.detail);
	assert_true(b->looks >= 2); /* there were slices, and rows in between */
	assert_int_equal(others(b), 1);
	assert_int_equal(stat(b->copy, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(number(b->copy, "SELECT count(*) FROM a"), ROWS);
	assert_int_equal(number(b->copy, "SELECT count(*) FROM b"), ROWS);
	assert_int_equal(number(b->copy, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"), 1);
	assert_true(number(b->path, "SELECT count(*) FROM a") >= ROWS + 20);
}

static void the_log_is_small_again_afterwards(void **state)
{
	struct bench *b = *state;
	struct hx_error err = {0};

	b->rows_a_look = 5000; /* some 80 MB */
	if (take(b, b->copy, &err) != HX_OK)
		fail_msg("%s", err.detail);
	assert_true(size_of(b->path, "-wal") > LOG_KEPT);
	write_rows(b, 1);
	b->db->driver->tend(b->db, /* idle= */ true); /* the reader has gone: all of it is copied back */
	write_rows(b, 1);                             /* and it starts over */
	assert_true(size_of(b->path, "-wal") <= LOG_KEPT);
}

/* ---- whole, or not at all ---- */

static void what_is_there_is_left_alone(void **state)
{
	struct bench *b = *state;
	FILE *f = fopen(b->copy, "w");

	fputs("mine", f);
	fclose(f);
	assert_fails(b, b->copy, HX_ALREADY_EXISTS, "is there already");
	assert_int_equal(size_of(b->copy, ""), 4);
	assert_fails(b, b->store->dir, HX_ALREADY_EXISTS, "is a folder");
	assert_fails(b, b->path, HX_ALREADY_EXISTS, "is there already");
	assert_int_equal(others(b), 1);
	unlink(b->copy);
	assert_int_equal(symlink("/nowhere/at/all", b->copy), 0);
	assert_fails(b, b->copy, HX_ALREADY_EXISTS, "is there already");
}

/* Somebody makes the file while it is being copied. */
static bool make_it(void *context, int percent)
{
	struct bench *b = context;
	FILE *f = fopen(b->copy, "w");

	(void)percent;
	fputs("mine", f);
	fclose(f);
	return true;
}

static void what_comes_in_between_is_left_alone(void **state)
{
	struct bench *b = *state;
	struct backup_options options = {.path = b->path, .file = b->copy, .told = make_it, .context = b};
	struct hx_error err = {0};
	int64_t bytes;

	assert_int_equal(backup_take(&options, &bytes, &err), HX_ALREADY_EXISTS);
	assert_int_equal(size_of(b->copy, ""), 4);
	assert_int_equal(others(b), 1);
}

static void given_up_at_any_slice_nothing_is_left(void **state)
{
	struct bench *b = *state;
	struct hx_error err = {0};
	int last;

	assert_int_equal(take(b, b->copy, &err), HX_OK);
	last = b->looks;
	unlink(b->copy);
	assert_true(last >= 2);
	for (int i = 1; i <= last; i++) {
		b->looks = b->slices = 0;
		b->stop_at = i;
		assert_fails(b, b->copy, HX_STOPPING, "was not written");
		assert_int_equal(others(b), 0);
	}
}

/* In a process of its own: the limit is for good. */
static void without_room_nothing_is_left(void **state)
{
	struct bench *b = *state;
	struct rlimit limit = {10 << 20, 10 << 20};
	struct hx_error err = {0};
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct backup_options options = {.path = b->path, .file = b->copy};
		int64_t bytes;

		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &limit);
		_exit(backup_take(&options, &bytes, &err) != HX_INTERNAL || !strstr(err.detail, "File too large"));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(others(b), 0);
}

static void a_place_that_cannot_be_written_is_named(void **state)
{
	struct bench *b = *state;
	char file[600];

	snprintf(file, sizeof file, "%s/no/such/folder.db", b->store->dir);
	assert_fails(b, file, HX_INTERNAL, "no/such/folder.db cannot be written: No such file or directory");
	snprintf(file, sizeof file, "%s/copy.db", b->path);
	assert_fails(b, file, HX_INTERNAL, "Not a directory");
}

/* What the check is for. */
static void a_store_that_is_damaged_gives_no_copy(void **state)
{
	struct bench *b = *state;
	FILE *f;

	db_close(b->db); /* all of it is in the file now */
	b->db = NULL;
	f = fopen(b->path, "r+");
	for (long page = 20; page < 40; page++) {
		fseek(f, page * 4096, SEEK_SET);
		fwrite("\377\377\377\377\377\377\377\377\377\377\377\377", 1, 12, f);
	}
	fclose(f);

	struct backup_options options = {.path = b->path, .file = b->copy};
	struct hx_error err = {0};
	int64_t bytes;

	assert_int_equal(backup_take(&options, &bytes, &err), HX_INTERNAL);
	assert_non_null(strstr(err.detail, "not whole"));
	assert_int_equal(others(b), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(the_copy_is_of_one_moment_while_somebody_writes),
		TEST(the_log_is_small_again_afterwards),
		TEST(what_is_there_is_left_alone),
		TEST(what_comes_in_between_is_left_alone),
		TEST(given_up_at_any_slice_nothing_is_left),
		TEST(without_room_nothing_is_left),
		TEST(a_place_that_cannot_be_written_is_named),
		TEST(a_store_that_is_damaged_gives_no_copy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
