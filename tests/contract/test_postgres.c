/*
 * What only PostgreSQL can do to us: servers that refuse, restart or are away, prepared statements that have gone, other sessions in the
 * way. Connections that are cut: test_postgres_cuts.c. The rest of the contract is in test_driver.c.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "contract/postgres_items.h"

/* ---- open ---- */

static enum hx_code open_with(const char *url, struct hx_error *ret_err)
{
	struct db_options options = {.url = url, .clock = clock_system()};
	struct db *db = NULL;
	enum hx_code code = db_open(&options, &db, ret_err);

	db_close(db);
	return code;
}

static void a_password_is_never_repeated(void **state)
{
	static const char *const urls[] = {
		"postgres://u:sesame@127.0.0.1:1/x",           "postgres://u:sesame@127.0.0.1:%d/sesame",
		"postgres://sesame:sesame@127.0.0.1:%d/x",     "postgres://u:se%%40sesame%%zz@127.0.0.1:%d/x",
		"postgres://u:se@sesame@127.0.0.1:%d/x",       "postgres://u@127.0.0.1:%d/x?password=sesame",
		"postgres://u@127.0.0.1:%d/x?nonsense=sesame", "postgres://u:x:sesame@127.0.0.1:sesame/x",
		"postgres://u:sesame/sesame@127.0.0.1:%d/x",   "postgres://127.0.0.1:%d/sesame@127.0.0.1:%d/x",
	};

	(void)state;
	for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
		struct hx_error err = {0};
		char url[256];

/* The formats are above, and take the port at most twice. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(url, sizeof url, urls[i], store_pg_port(), store_pg_port());
#pragma GCC diagnostic pop
		assert_int_not_equal(open_with(url, &err), HX_OK);
		assert_true(err.detail[0] != '\0');
		if (strstr(err.detail, "sesame"))
			fail_msg("%s: %s", url, err.detail);
	}
}

static void a_store_that_forgets_is_refused(void **state)
{
	struct session *s = *state;
	struct db_options options = {.clock = clock_system()};
	PGconn *raw = store_raw(s->store);
	struct hx_error err = {0};
	char url[600];
	struct db *db;

	snprintf(url, sizeof url, "%s%%20-csynchronous_commit%%3Doff", s->store->url);
	assert_int_equal(open_with(url, &err), HX_CONFIG_ERROR);
	assert_non_null(strstr(err.detail, "synchronous_commit"));
	options.url = url;
	options.stay_unchecked = true;
	assert_int_equal(db_open(&options, &db, &err), HX_OK);
	db_close(db);

	raw_run(raw, "ALTER SYSTEM SET fsync = off", NULL, 0);
	raw_run(raw, "SELECT pg_reload_conf()", NULL, 0);
	raw_await(raw, "SHOW fsync", "off");
	enum hx_code code = open_with(s->store->url, &err);

	raw_run(raw, "ALTER SYSTEM RESET fsync", NULL, 0);
	raw_run(raw, "SELECT pg_reload_conf()", NULL, 0);
	raw_await(raw, "SHOW fsync", "on");
	assert_int_equal(code, HX_CONFIG_ERROR);
	assert_non_null(strstr(err.detail, "fsync"));
	PQfinish(raw);
}

static void another_encoding_is_refused(void **state)
{
	struct session *s = *state;
	PGconn *raw = store_raw(s->store);
	struct hx_error err = {0};
	char name[80], sql[200], url[128];

	snprintf(name, sizeof name, "%s_latin1", s->store->schema);
	snprintf(sql, sizeof sql, "CREATE DATABASE %s TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'", name);
	raw_run(raw, sql, NULL, 0);
	snprintf(url, sizeof url, "postgres://%s@127.0.0.1:%d/%s", PQuser(raw), store_pg_port(), name);
	assert_int_equal(open_with(url, &err), HX_CONFIG_ERROR);
	assert_non_null(strstr(err.detail, "LATIN1"));
	snprintf(sql, sizeof sql, "DROP DATABASE %s WITH (FORCE)", name);
	raw_run(raw, sql, NULL, 0);
	PQfinish(raw);
}

static const struct db_stmt stmt_setting = {
	.name = "test_setting",
	.sql = "SELECT current_setting(?1)",
	.in = "t",
	.out = "t",
};

static void assert_setting(struct session *s, const char *name, const char *wanted)
{
	session_reset(s);
	UNIT_ADD(session_unit(s), UNIT_ANY, &stmt_setting, db_str(name));
	session_must(s, session_run(s));
	if (!slice_is(db_cell(&s->result[0].rows[0], 0, 0)->s, wanted))
		fail_msg("%s is %s", name, db_cell(&s->result[0].rows[0], 0, 0)->s.p);
}

static void the_session_is_set_up(void **state)
{
	struct session *s = *state;

	assert_setting(s, "lock_timeout", "2s");
	assert_setting(s, "idle_in_transaction_session_timeout", "30s");
	assert_setting(s, "client_encoding", "UTF8");
	assert_setting(s, "application_name", "hapax");
	assert_setting(s, "TimeZone", "UTC");
	assert_setting(s, "transaction_isolation", "read committed");
	assert_setting(s, "transaction_read_only", "off");
}

static void a_reader_reads(void **state)
{
	struct session *s = *state;
	struct db_options options = {.url = s->store->url, .clock = clock_system(), .read_only = true};
	struct session *reader;
	struct db *db;

	item_must_put(s, 1, 10);
	session_must(s, db_open(&options, &db, &s->err));
	reader = session_new(s->store, db);
	assert_setting(reader, "transaction_read_only", "on");
	session_reset(reader);
	UNIT_ADD(session_unit(reader), UNIT_ANY, &item_get, db_int(1));
	unit_touch(&reader->unit[0], 1); /* holding still is for those who write */
	session_must(reader, session_run(reader));
	assert_int_equal(reader->result[0].rows[0].n, 1);
	session_free(reader);
}

/* ---- prepared statements ---- */

static const struct db_stmt stmt_prepared = {
	.name = "test_prepared",
	.sql = "SELECT count(*) FROM pg_prepared_statements WHERE name LIKE ?1",
	.in = "t",
	.out = "i",
};

static int64_t prepared_like(struct session *s, const char *pattern)
{
	session_reset(s);
	UNIT_ADD(session_unit(s), UNIT_ANY, &stmt_prepared, db_str(pattern));
	session_must(s, session_run(s));
	return db_cell(&s->result[0].rows[0], 0, 0)->i;
}

static void statements_are_prepared_once_per_form(void **state)
{
	struct session *s = *state;

	for (int round = 0; round < 3; round++) {
		ask_put(s, round);
		session_must(s, session_run(s));
	}
	assert_int_equal(prepared_like(s, "item_put_row%"), 1);
	assert_int_equal(prepared_like(s, "item_put_set%"), 0);
	for (int round = 0; round < 3; round++) {
		session_reset(s);
		for (int64_t id = 0; id < 2; id++)
			UNIT_ADD(session_unit(s), UNIT_ANY, &item_put, db_int(100 + 10 * round + id), db_int(1),
				 db_str(""), db_null());
		session_must(s, session_run(s));
	}
	assert_int_equal(prepared_like(s, "item_put_row%"), 1);
	assert_int_equal(prepared_like(s, "item_put_set%"), 1);
	assert_int_equal(item_count(s), 9);
}

static void a_prepared_statement_that_has_gone_is_made_again(void **state)
{
	struct session *s = *state;

	item_must_put(s, 1, 10);
	session_must(s, s->db->driver->script(s->db, "DEALLOCATE ALL", &s->err));
	ask_put(s, 2);
	assert_int_equal(session_run(s), HX_STORE_UNAVAILABLE);
	ask_put(s, 2);
	session_must(s, session_run(s));
}

/* ---- the connection breaks, the server restarts ---- */

static void a_restart_while_idle_goes_unnoticed(void **state)
{
	struct session *s = *state;

	for (int i = 0; i < 2; i++) {
		item_must_put(s, i, 10);
		store_pg_ctl(i == 0 ? "restart fast" : "restart immediate");
		item_must_put(s, 10 + i, 10);
	}
	assert_int_equal(item_count(s), 4);
}

static void a_restart_in_a_transaction_ends_it(void **state)
{
	struct session *s = *state;

	for (int i = 0; i < 2; i++) {
		ask_put(s, i);
		session_must(s, session_execute(s));
		store_pg_ctl(i == 0 ? "restart fast" : "restart immediate");
		/* Certain, because the server's end was read before the COMMIT was sent. */
		assert_int_equal(commit(s), HX_STORE_UNAVAILABLE);
		assert_int_equal(item_count(s), i);
		ask_put(s, i);
		session_must(s, session_run(s));
	}
}

static void a_restart_between_two_batches_of_a_transaction(void **state)
{
	struct session *s = *state;

	ask_put(s, 1);
	session_must(s, session_execute(s));
	store_pg_ctl("restart fast");
	ask_put(s, 2);
	assert_int_equal(s->db->driver->execute(s->db, s->units, s->n, s->result, &s->arena, &s->err),
			 HX_STORE_UNAVAILABLE);
	assert_int_equal(s->db->driver->execute(s->db, s->units, s->n, s->result, &s->arena, &s->err),
			 HX_STORE_UNAVAILABLE); /* and stays so until a begin */
	assert_int_equal(commit(s), HX_STORE_UNAVAILABLE);
	s->db->driver->rollback(s->db);
	assert_int_equal(item_count(s), 0);
}

static void a_server_that_is_away(void **state)
{
	struct session *s = *state;
	struct clock *clock = clock_system();
	struct mono_time start;
	enum hx_code codes[5];
	int64_t ms;

	item_must_put(s, 1, 10);
	store_pg_ctl("stop fast");
	start = clock_mono(clock);
	for (int i = 0; i < 5; i++) {
		ask_put(s, 2);
		codes[i] = session_run(s);
	}
	ms = (clock_mono(clock).ns - start.ns) / 1000000;
	store_pg_ctl("start");
	for (int i = 0; i < 5; i++)
		assert_int_equal(codes[i], HX_STORE_UNAVAILABLE);
	/* Refused connections are refused at once; the driver waits in between, so that nobody spins. */
	assert_true(ms >= 350 && ms < 10000);
	ask_put(s, 2);
	session_must(s, session_run(s));
}

/* ---- other sessions in the way ---- */

static void a_lock_is_not_waited_for_without_end(void **state)
{
	struct session *s = *state;
	struct db_options options = {.url = s->store->url, .clock = clock_system(), .lock_timeout_ms = 50};
	PGconn *raw = store_raw(s->store);
	struct session *hasty;
	struct db *db;

	item_must_put(s, 1, 10);
	raw_run(raw, "BEGIN; UPDATE item SET n = 11 WHERE id = 1", NULL, 0);
	session_must(s, db_open(&options, &db, &s->err));
	hasty = session_new(s->store, db);
	ask_move(hasty, 1, 10, 12);
	assert_int_equal(session_run(hasty), HX_CONCURRENCY_ERROR);
	raw_run(raw, "ROLLBACK", NULL, 0);
	ask_move(hasty, 1, 10, 12);
	session_must(hasty, session_run(hasty));
	assert_int_equal(hasty->result[0].verdict, UNIT_WON);
	session_free(hasty);
	PQfinish(raw);
}

static void *execute_both(void *context)
{
	static enum hx_code code;
	struct session *s = context;

	code = s->db->driver->execute(s->db, s->units, s->n, s->result, &s->arena, &s->err);
	return &code;
}

static void a_deadlock_is_to_be_run_again(void **state)
{
	struct session *s = *state;
	PGconn *raw = store_raw(s->store), *watcher = store_raw(s->store);
	pthread_t thread;
	void *result;
	bool raw_lost;

	raw_run(watcher, "INSERT INTO item VALUES (1, 10), (2, 10)", NULL, 0);
	raw_run(raw, "SET deadlock_timeout = '10min'", NULL, 0); /* so that the driver's side is the one to find it */
	raw_run(raw, "BEGIN; UPDATE item SET n = 11 WHERE id = 2", NULL, 0);
	ask_move(s, 1, 10, 20);
	session_must(s, session_execute(s));
	ask_move(s, 2, 10, 20);
	assert_int_equal(pthread_create(&thread, NULL, execute_both, s), 0);
	raw_await(watcher,
		  "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'hapax' AND wait_event_type = 'Lock'",
		  "1");
	PGresult *res = PQexec(raw, "UPDATE item SET n = 11 WHERE id = 1"); /* closes the circle */

	raw_lost = PQresultStatus(res) != PGRES_COMMAND_OK;
	PQclear(res);
	pthread_join(thread, &result);
	assert_false(raw_lost);
	assert_int_equal(*(enum hx_code *)result, HX_CONCURRENCY_ERROR);
	assert_non_null(strstr(s->err.detail, "40P01"));
	raw_run(raw, "ROLLBACK", NULL, 0);
	assert_int_equal(item_n(s, 1, ABSENT), 10);
	ask_move(s, 2, 10, 20);
	session_must(s, session_run(s));
	PQfinish(raw);
	PQfinish(watcher);
}

static void a_failed_transaction_does_not_commit(void **state)
{
	struct session *s = *state;

	session_must(s, s->db->driver->script(s->db, "BEGIN; INSERT INTO item VALUES (1, 10)", &s->err));
	assert_int_not_equal(s->db->driver->script(s->db, "SELECT 1 / 0", &s->err), HX_OK);
	assert_int_equal(commit(s), HX_STORE_UNAVAILABLE);
	assert_int_equal(item_count(s), 0);
}

static void a_script_that_fails_leaves_no_transaction(void **state)
{
	struct session *s = *state;

	assert_int_equal(s->db->driver->script(s->db, "BEGIN; INSERT INTO item VALUES (1, 10); SELECT 1 / 0", &s->err),
			 HX_DATA_ERROR);
	ask_put(s, 1);
	session_must(s, session_run(s));
	assert_int_equal(s->result[0].verdict, UNIT_WON);
}

/* The driver trusts its caller in this, and looks. */
static void two_units_of_a_subject_are_a_mistake(void **state)
{
	struct session *s = *state;
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		struct session *child = session_new(s->store, store_open_migrated(s->store));

		(void)!freopen("/dev/null", "w", stderr); /* its words are expected */
		signal(SIGABRT, SIG_DFL);
		session_reset(child);
		unit_touch(session_unit(child), 7);
		unit_touch(session_unit(child), 7);
		(void)session_run(child);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

/* Two connections, each with groups of all the rows in opposite orders: the locks sort them. */
struct crosser {
	struct session *session;
	bool backwards;
	int failed;
};

static void *cross(void *context)
{
	static const struct db_stmt bump = {
		.name = "test_bump_subject",
		.sql = "UPDATE hx_subject SET version = version + 1{from} WHERE id = ?1 RETURNING {ord}id",
		.in = "i",
		.out = "i",
	};
	struct crosser *c = context;

	for (int round = 0; round < 100; round++) {
		session_reset(c->session);
		for (int64_t i = 1; i <= 50; i++) {
			struct unit *unit = session_unit(c->session);
			int64_t id = c->backwards ? 51 - i : i;

			unit_touch(unit, id);
			UNIT_ADD(unit, UNIT_VERDICT, &bump, db_int(id));
		}
		c->failed += session_run(c->session) != HX_OK;
	}
	return NULL;
}

static void batches_in_opposite_order_do_not_deadlock(void **state)
{
	struct session *s = *state;
	struct crosser c[2] = {{session_new(s->store, store_open_migrated(s->store)), false, 0},
			       {session_open(s->store), true, 0}};
	PGconn *raw = store_raw(s->store);
	pthread_t thread;

	raw_run(raw,
		"INSERT INTO hx_subject (id, kind, status, version, op, updated_at, seq, head)"
		" SELECT i, 1, 'open', 0, 0, 0, 0, '' FROM generate_series(1, 50) i",
		NULL, 0);
	assert_int_equal(pthread_create(&thread, NULL, cross, &c[1]), 0);
	cross(&c[0]);
	pthread_join(thread, NULL);
	assert_int_equal(c[0].failed + c[1].failed, 0);
	raw_await(raw, "SELECT sum(version) FROM hx_subject", "10000");
	PQfinish(raw);
	session_free(c[0].session);
	session_free(c[1].session);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_password_is_never_repeated),
		TEST(a_store_that_forgets_is_refused),
		TEST(another_encoding_is_refused),
		TEST(the_session_is_set_up),
		TEST(a_reader_reads),
		TEST(statements_are_prepared_once_per_form),
		TEST(a_prepared_statement_that_has_gone_is_made_again),
		TEST(a_restart_while_idle_goes_unnoticed),
		TEST(a_restart_in_a_transaction_ends_it),
		TEST(a_restart_between_two_batches_of_a_transaction),
		TEST(a_server_that_is_away),
		TEST(a_lock_is_not_waited_for_without_end),
		TEST(a_deadlock_is_to_be_run_again),
		TEST(a_failed_transaction_does_not_commit),
		TEST(a_script_that_fails_leaves_no_transaction),
		TEST(two_units_of_a_subject_are_a_mistake),
		TEST(batches_in_opposite_order_do_not_deadlock),
	};

	return cmocka_run_group_tests_name("postgres", tests, NULL, NULL);
}
