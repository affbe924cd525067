/* The embedded store: who may open it, what a file must be, what survives, and statements that are used again. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "db/driver.h"
#include "support/store.h"

static const struct db_stmt stmt_put = {
	.name = "test_put",
	.sql = "INSERT INTO t (id, word) VALUES (?1, ?2)",
	.in = "it",
	.out = "",
};

static const struct db_stmt stmt_get = {
	.name = "test_get",
	.sql = "SELECT word FROM t WHERE id >= ?1 ORDER BY id",
	.in = "i",
	.out = "t",
};

static const char table[] = "CREATE TABLE t (id INTEGER PRIMARY KEY, word TEXT NOT NULL) STRICT";

static enum hx_code try_open(const char *url, bool exclusive, bool read_only, struct db **ret_db, struct hx_error *err)
{
	struct db_options options = {
		.url = url, .clock = clock_system(), .exclusive = exclusive, .read_only = read_only};

	*ret_db = NULL;
	*err = (struct hx_error){0};
	return db_open(&options, ret_db, err);
}

static struct db *open_as(const char *url, bool exclusive, bool read_only)
{
	struct hx_error err;
	struct db *db;

	if (try_open(url, exclusive, read_only, &db, &err) != HX_OK)
		fail_msg("%s", err.detail);
	return db;
}

static void assert_refused(const char *url, bool exclusive, bool read_only, enum hx_code code, const char *words)
{
	struct hx_error err;
	struct db *db;

	assert_string_equal(hx_code_name(try_open(url, exclusive, read_only, &db, &err)), hx_code_name(code));
	assert_null(db);
	if (!strstr(err.detail, words))
		fail_msg("\"%s\" does not say \"%s\"", err.detail, words);
}

static void script(struct db *db, const char *sql)
{
	struct hx_error err;

	if (db->driver->script(db, sql, &err) != HX_OK)
		fail_msg("%s", err.detail);
}

static enum hx_code put(struct db *db, int64_t id, const char *word)
{
	struct unit_result result;
	struct hx_error err;
	struct arena arena;
	struct unit unit;
	enum hx_code code;

	arena_init(&arena, 1u << 20);
	unit_init(&unit, 1);
	UNIT_ADD(&unit, UNIT_VERDICT, &stmt_put, db_int(id), word ? db_str(word) : db_null());
	code = db_run_unit(db, &unit, &result, &arena, &err);
	if (!code)
		assert_int_equal(result.verdict, UNIT_WON);
	arena_release(&arena);
	return code;
}

/* The words from `id` on, one after the other, into text; what the store answered. */
static enum hx_code get(struct db *db, int64_t id, size_t arena_bytes, char *text, size_t text_bytes)
{
	struct unit_result result;
	struct hx_error err;
	struct arena arena;
	struct unit unit;
	enum hx_code code;
	size_t n = 0;

	arena_init(&arena, arena_bytes);
	unit_init(&unit, 1);
	UNIT_ADD(&unit, UNIT_ANY, &stmt_get, db_int(id));
	code = db_run_unit(db, &unit, &result, &arena, &err);
	text[0] = '\0';
	for (size_t i = 0; !code && i < result.rows[0].n; i++) {
		struct slice word = db_cell(&result.rows[0], i, 0)->s;

		n += (size_t)snprintf(text + n, text_bytes - n, "%.*s ", SLICE_ARGS(word));
	}
	arena_release(&arena);
	return code;
}

static void assert_words(struct db *db, int64_t id, const char *wanted)
{
	char text[4096];

	assert_int_equal(get(db, id, 1u << 20, text, sizeof text), HX_OK);
	assert_string_equal(text, wanted);
}

static off_t file_size(const struct store *store, const char *suffix)
{
	struct stat st;
	char path[512];

	snprintf(path, sizeof path, "%s%s", store->url + strlen("sqlite:"), suffix);
	return stat(path, &st) == 0 ? st.st_size : -1;
}

static int set_up(void **state)
{
	*state = store_new(STORE_SQLITE_FILE);
	return 0;
}

static int tear_down(void **state)
{
	store_free(*state);
	return 0;
}

/* ---- who may open it ---- */

static void a_second_server_is_refused_until_the_first_has_gone(void **state)
{
	struct store *store = *state;
	struct db *first = open_as(store->url, /* exclusive= */ true, /* read_only= */ false);
	struct db *beside;

	assert_refused(store->url, true, false, HX_BUSY, "another server has this store open");
	beside = open_as(store->url, false, false); /* verbs work beside a running server */
	db_close(beside);
	assert_refused(store->url, true, false, HX_BUSY, "store.db");
	db_close(first);
	db_close(open_as(store->url, true, false));
}

/* Also by one that led nowhere when the first server came. */
static void a_link_is_the_file_that_it_leads_to(void **state)
{
	struct store *store = *state;
	char link[400], url[410];
	struct db *first;

	snprintf(link, sizeof link, "%s/link", store->dir);
	snprintf(url, sizeof url, "sqlite:%s", link);
	assert_int_equal(symlink(store->url + strlen("sqlite:"), link), 0);
	first = open_as(url, /* exclusive= */ true, /* read_only= */ false);
	assert_refused(store->url, true, false, HX_BUSY, "another server has this store open");
	db_close(first);
	first = open_as(store->url, true, false);
	assert_refused(url, true, false, HX_BUSY, "another server has this store open");
	db_close(first);
	assert_int_equal(unlink(link), 0);
}

/* Whether somebody in this process holds SQLite's own lock on the file, as another process finds it. */
static bool is_seen_locked(const char *file)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct flock shared = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0x40000002, .l_len = 510};
		int fd = open(file, O_RDWR | O_CLOEXEC);

		_exit(fd >= 0 && fcntl(fd, F_GETLK, &shared) == 0 && shared.l_type == F_RDLCK ? 1 : 0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

/* To close a descriptor of the file would drop the locks that SQLite has on it in all of the process. */
static void a_server_that_ends_leaves_the_locks_of_others_in_its_process(void **state)
{
	struct store *store = *state;
	const char *file = store->url + strlen("sqlite:");
	struct db *server = open_as(store->url, true, false), *reader;

	script(server, table);
	reader = open_as(store->url, false, true);
	assert_words(reader, 1, "");
	assert_true(is_seen_locked(file));
	assert_refused(store->url, true, false, HX_BUSY, "another server");
	assert_true(is_seen_locked(file));
	db_close(server);
	assert_true(is_seen_locked(file));
	db_close(open_as(store->url, true, false));
	assert_true(is_seen_locked(file));
	db_close(reader);
	assert_false(is_seen_locked(file));
}

static void a_file_under_another_name_is_locked_all_the_same(void **state)
{
	struct store *store = *state;
	const char *file = store->url + strlen("sqlite:");
	struct db *first = open_as(store->url, true, false), *second;
	char path[600], url[620];
	struct hx_error err;

	snprintf(path, sizeof path, "%s.lock", file);
	assert_int_equal(unlink(path), 0);
	if (try_open(store->url, true, false, &second, &err) == HX_OK)
		fail_msg("counterexample in two steps: the lock file is deleted, a second server has the store");
	assert_refused(store->url, true, false, HX_BUSY, "another server has this store open");
	snprintf(path, sizeof path, "%s/hard.db", store->dir);
	snprintf(url, sizeof url, "sqlite:%s", path);
	assert_int_equal(link(file, path), 0);
	assert_refused(url, true, false, HX_BUSY, "another server has this store open");
	db_close(first);
	db_close(open_as(store->url, true, false));
	assert_int_equal(unlink(path), 0);
	snprintf(path, sizeof path, "%s/hard.db.lock", store->dir);
	assert_int_equal(unlink(path), 0);
}

/* Another file of the same name is another store, also where the first one is still open. */
static void a_file_that_was_deleted_is_no_store_any_more(void **state)
{
	struct store *store = *state;
	char lock[600];
	struct db *first = open_as(store->url, true, false), *second;

	snprintf(lock, sizeof lock, "%s.lock", store->url + strlen("sqlite:"));
	assert_int_equal(unlink(store->url + strlen("sqlite:")) | unlink(lock), 0);
	second = open_as(store->url, true, false);
	assert_refused(store->url, true, false, HX_BUSY, "another server");
	db_close(first);
	assert_refused(store->url, true, false, HX_BUSY, "another server");
	db_close(second);
	db_close(open_as(store->url, true, false));
}

/* ---- who may read it ---- */

static int mode_of(const struct store *store, const char *suffix)
{
	struct stat st;
	char path[512];

	snprintf(path, sizeof path, "%s%s", store->url + strlen("sqlite:"), suffix);
	return stat(path, &st) == 0 ? (int)(st.st_mode & 0777) : -1;
}

static void assert_modes(const struct store *store, struct db *db, int mode)
{
	assert_int_equal(put(db, 1, "one"), HX_OK);
	assert_int_equal(mode_of(store, ""), mode);
	assert_int_equal(mode_of(store, "-wal"), mode);
	assert_int_equal(mode_of(store, "-shm"), mode);
}

static void the_files_are_for_their_owner_alone(void **state)
{
	for (int exclusive = 0; exclusive < 2; exclusive++) {
		struct store *store = store_new(STORE_SQLITE_FILE);
		mode_t mask = umask(022);
		struct db *db = open_as(store->url, exclusive, false);

		script(db, table);
		assert_modes(store, db, 0600);
		assert_int_equal(mode_of(store, ".lock"), exclusive ? 0600 : -1);
		db_close(db);
		umask(mask);
		store_free(store);
	}
	(void)state;
}

static void a_file_that_is_there_keeps_its_mode(void **state)
{
	struct store *store = *state;
	struct db *db = open_as(store->url, true, false);

	script(db, table);
	db_close(db);
	assert_int_equal(chmod(store->url + strlen("sqlite:"), 0640), 0);
	db = open_as(store->url, true, false);
	assert_modes(store, db, 0640);
	db_close(db);
}

static void a_server_that_was_refused_leaves_the_store_as_it_was(void **state)
{
	struct store *store = *state;
	struct db *first = open_as(store->url, true, false);

	script(first, table);
	assert_int_equal(put(first, 1, "one"), HX_OK);
	assert_refused(store->url, true, false, HX_BUSY, "another server");
	assert_int_equal(put(first, 2, "two"), HX_OK);
	assert_words(first, 1, "one two ");
	db_close(first);
}

static void stores_in_memory_lock_nothing(void **state)
{
	struct db *a = open_as("sqlite::memory:", true, false), *b = open_as("sqlite::memory:", true, false);

	(void)state;
	script(a, table);
	script(b, table);
	assert_int_equal(put(a, 1, "only here"), HX_OK);
	assert_words(b, 1, "");
	db_close(a);
	db_close(b);
	assert_int_not_equal(access(":memory:", F_OK), 0);
	assert_int_not_equal(access(":memory:.lock", F_OK), 0);
}

/* ---- what a path must be ---- */

static void a_path_that_leads_nowhere(void **state)
{
	struct store *store = *state;
	char url[600], long_url[5000] = "sqlite:";

	snprintf(url, sizeof url, "%s/no/such/folder.db", store->url);
	assert_refused(url, false, false, HX_STORE_UNAVAILABLE, "/no/such/folder.db: No such file or directory");
	assert_refused(url, true, false, HX_STORE_UNAVAILABLE, "/no/such/folder.db.lock: No such file or directory");
	snprintf(url, sizeof url, "sqlite:%s", store->dir);
	assert_refused(url, false, false, HX_STORE_UNAVAILABLE, "Is a directory");
	assert_refused("sqlite:", false, false, HX_CONFIG_ERROR, "needs a path");
	assert_refused("mysql://root:secret@host/db", false, false, HX_CONFIG_ERROR, "sqlite:PATH");
	memset(long_url + 7, 'x', sizeof long_url - 8);
	assert_refused(long_url, true, false, HX_CONFIG_ERROR, "too long");
}

static void a_password_is_not_repeated(void **state)
{
	struct hx_error err;
	struct db *db;

	(void)state;
	(void)try_open("mysql://root:secret@host/db", false, false, &db, &err); /* refused: see above */
	assert_null(strstr(err.detail, "secret"));
}

static void what_is_no_database_is_left_alone(void **state)
{
	struct store *store = *state;
	const char *path = store->url + strlen("sqlite:");
	static const char letter[] = "Dear Sir, this is not a database, it is a letter. Please do not overwrite it.\n";
	char read_back[sizeof letter] = {0};
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(letter, file);
	fclose(file);
	for (int mode = 0; mode < 3; mode++)
		assert_refused(store->url, mode == 1, mode == 2, HX_STORE_UNAVAILABLE, "store.db: ");
	assert_refused(store->url, false, false, HX_STORE_UNAVAILABLE, "file is not a database");
	file = fopen(path, "r");
	assert_int_equal(fread(read_back, 1, sizeof read_back, file), strlen(letter));
	fclose(file);
	assert_string_equal(read_back, letter);
	assert_int_equal(file_size(store, "-wal"), -1);
}

/* ---- reading beside the server ---- */

static void a_reader_creates_nothing(void **state)
{
	struct store *store = *state;

	assert_refused(store->url, false, true, HX_STORE_UNAVAILABLE, "No such file or directory");
	assert_int_equal(file_size(store, ""), -1);
}

static void a_reader_reads_beside_a_writer_and_never_writes(void **state)
{
	struct store *store = *state;
	struct db *server = open_as(store->url, true, false);
	struct db *reader;
	struct hx_error err;

	script(server, table);
	assert_int_equal(put(server, 1, "one"), HX_OK);
	reader = open_as(store->url, false, true);
	assert_words(reader, 1, "one ");
	assert_int_equal(server->driver->begin(server, &err), HX_OK); /* somebody is writing right now */
	assert_words(reader, 1, "one ");
	server->driver->rollback(server);
	assert_int_equal(put(server, 2, "two"), HX_OK);
	assert_words(reader, 1, "one two ");
	assert_int_equal(put(reader, 3, "three"), HX_STORE_UNAVAILABLE);
	assert_int_equal(reader->driver->script(reader, "DROP TABLE t", &err), HX_STORE_UNAVAILABLE);
	assert_words(reader, 1, "one two ");
	db_close(reader);
	db_close(server);
}

/* ---- what survives ---- */

static void what_was_committed_survives_and_what_was_not_does_not(void **state)
{
	struct store *store = *state;
	struct db *db = open_as(store->url, true, false);
	struct hx_error err;
	struct unit_result result;
	struct unit unit, *units = &unit;
	struct arena arena;

	script(db, table);
	assert_int_equal(put(db, 1, "one"), HX_OK);
	arena_init(&arena, 1u << 20);
	unit_init(&unit, 1);
	UNIT_ADD(&unit, UNIT_VERDICT, &stmt_put, db_int(2), db_str("two"));
	assert_int_equal(db->driver->begin(db, &err), HX_OK);
	assert_int_equal(db->driver->execute(db, &units, 1, &result, &arena, &err), HX_OK);
	db_close(db); /* in the middle of a transaction */
	arena_release(&arena);
	db = open_as(store->url, true, false);
	assert_words(db, 1, "one ");
	db_close(db);
}

static void a_start_copies_the_log_back_and_empties_it(void **state)
{
	struct store *store = *state;
	struct db *db = open_as(store->url, /* exclusive= */ false, false);

	script(db, table);
	for (int64_t i = 1; i <= 100; i++)
		assert_int_equal(put(db, i, "word"), HX_OK);
	off_t before = file_size(store, "");

	db->driver->tend(db, /* idle= */ true);
	db_close(db);
	assert_int_equal(file_size(store, ""), before); /* not the server: it may not copy */
	assert_true(file_size(store, "-wal") > 100 * 1024);
	db = open_as(store->url, /* exclusive= */ true, false);
	assert_int_equal(file_size(store, "-wal"), 0);
	assert_words(db, 100, "word ");
	db_close(db);
	assert_int_equal(file_size(store, "-wal"), -1);
}

/* The log is copied back when the lane is idle: the main file then has the row although the log is still there. */
static void an_idle_server_copies_the_log_back(void **state)
{
	struct store *store = *state;
	struct db *db = open_as(store->url, true, false);
	off_t before;

	script(db, table);
	before = file_size(store, "");
	db->driver->tend(db, /* idle= */ false); /* a short log waits */
	assert_int_equal(file_size(store, ""), before);
	db->driver->tend(db, /* idle= */ true);
	assert_true(file_size(store, "") > before);
	db_close(db);
}

/* ---- statements ---- */

static void a_statement_is_used_again_with_other_values(void **state)
{
	struct store *store = *state;
	struct db *db = open_as(store->url, false, false);

	script(db, table);
	assert_int_equal(put(db, 1, "one"), HX_OK);
	assert_words(db, 1, "one ");
	assert_int_equal(put(db, 2, "two"), HX_OK);
	assert_words(db, 2, "two ");
	assert_words(db, 1, "one two ");
	assert_words(db, 3, "");
	db_close(db);
}

static void a_statement_is_used_again_after_its_data_was_refused(void **state)
{
	struct store *store = *state;
	struct db *db = open_as(store->url, false, false);

	script(db, table);
	assert_int_equal(put(db, 1, "one"), HX_OK);
	assert_int_equal(put(db, 1, "again"), HX_DATA_ERROR);
	assert_int_equal(put(db, 2, /* word= */ NULL), HX_DATA_ERROR);
	assert_int_equal(put(db, 2, "two"), HX_OK);
	assert_words(db, 1, "one two ");
	db_close(db);
}

static void a_statement_is_used_again_after_too_many_rows(void **state)
{
	struct store *store = *state;
	struct db *db = open_as(store->url, false, false);
	char text[4096];

	script(db, table);
	for (int64_t i = 1; i <= 64; i++)
		assert_int_equal(put(db, i, "word"), HX_OK);
	assert_int_equal(get(db, 1, /* arena_bytes= */ 2000, text, sizeof text), HX_TOO_LARGE);
	assert_int_equal(put(db, 65, "more"), HX_OK); /* the transaction has ended, the cursor is closed */
	assert_words(db, 64, "word more ");
	db_close(db);
}

static void a_statement_is_used_again_after_the_schema_changed(void **state)
{
	struct store *store = *state;
	struct db *db = open_as(store->url, false, false), *other = open_as(store->url, false, false);

	script(db, table);
	assert_int_equal(put(db, 1, "one"), HX_OK);
	script(other, "ALTER TABLE t ADD COLUMN more TEXT; CREATE INDEX t_word ON t (word)");
	assert_int_equal(put(db, 2, "two"), HX_OK);
	assert_words(other, 1, "one two ");
	script(db, "DROP TABLE t");
	assert_int_equal(put(db, 3, "three"), HX_INTERNAL);
	script(db, table);
	assert_int_equal(put(db, 3, "three"), HX_OK);
	db_close(db);
	db_close(other);
}

/* Workflows bring statements of their own, and reloading them brings more: a connection does not fill up. */
static void more_statements_than_a_connection_remembers(void **state)
{
	enum { MANY = 1500 };
	static struct db_stmt many[MANY];
	static char texts[MANY][64];
	struct store *store = *state;
	struct db *db = open_as(store->url, false, false);
	struct unit_result result;
	struct hx_error err;
	struct arena arena;
	struct unit unit;

	arena_init(&arena, 1u << 20);
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < MANY; i++) {
			snprintf(texts[i], sizeof texts[i], "SELECT %d", i);
			many[i] = (struct db_stmt){.name = "test_many", .sql = texts[i], .in = "", .out = "i"};
			arena_reset(&arena);
			unit_init(&unit, 0);
			unit_add(&unit, UNIT_ANY, &many[i], 0, NULL);
			unit_add(&unit, UNIT_ANY, &many[i / 2], 0, NULL);
			assert_int_equal(db_run_unit(db, &unit, &result, &arena, &err), HX_OK);
			assert_int_equal(db_cell(&result.rows[0], 0, 0)->i, i);
			assert_int_equal(db_cell(&result.rows[1], 0, 0)->i, i / 2);
		}
	arena_release(&arena);
	db_close(db);
}

static void a_writer_waits_for_another_and_then_says_so(void **state)
{
	struct store *store = *state;
	struct db *db = open_as(store->url, false, false), *other = open_as(store->url, false, false);
	struct hx_error err;

	assert_int_equal(other->driver->begin(other, &err), HX_OK);
	script(db, "PRAGMA busy_timeout = 1"); /* instead of 5 s */
	assert_int_equal(db->driver->begin(db, &err), HX_CONCURRENCY_ERROR);
	other->driver->rollback(other);
	assert_int_equal(db->driver->begin(db, &err), HX_OK);
	assert_int_equal(db->driver->commit(db, &err), HX_OK);
	db_close(db);
	db_close(other);
}

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(a_second_server_is_refused_until_the_first_has_gone),
		STORE_TEST(a_link_is_the_file_that_it_leads_to),
		STORE_TEST(a_server_that_was_refused_leaves_the_store_as_it_was),
		STORE_TEST(a_server_that_ends_leaves_the_locks_of_others_in_its_process),
		STORE_TEST(a_file_under_another_name_is_locked_all_the_same),
		STORE_TEST(a_file_that_was_deleted_is_no_store_any_more),
		cmocka_unit_test(the_files_are_for_their_owner_alone),
		STORE_TEST(a_file_that_is_there_keeps_its_mode),
		cmocka_unit_test(stores_in_memory_lock_nothing),
		STORE_TEST(a_path_that_leads_nowhere),
		cmocka_unit_test(a_password_is_not_repeated),
		STORE_TEST(what_is_no_database_is_left_alone),
		STORE_TEST(a_reader_creates_nothing),
		STORE_TEST(a_reader_reads_beside_a_writer_and_never_writes),
		STORE_TEST(what_was_committed_survives_and_what_was_not_does_not),
		STORE_TEST(a_start_copies_the_log_back_and_empties_it),
		STORE_TEST(an_idle_server_copies_the_log_back),
		STORE_TEST(a_statement_is_used_again_with_other_values),
		STORE_TEST(a_statement_is_used_again_after_its_data_was_refused),
		STORE_TEST(a_statement_is_used_again_after_too_many_rows),
		STORE_TEST(a_statement_is_used_again_after_the_schema_changed),
		STORE_TEST(more_statements_than_a_connection_remembers),
		STORE_TEST(a_writer_waits_for_another_and_then_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
