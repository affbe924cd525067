/*
 * The transactional gate in a program of somebody's own, under kill -9: whenever it dies, a payment and the record of its
 * key are both there, or neither is.
 *
 *   after every kill   a key is replayed exactly if its payment is there; the balance is the number of payments
 *   in the end         every number was paid once, although each of the killed ones was sent again
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "hapax.h"
#include "support/store.h"

#define KILLS_SQLITE 30
#define KILLS_POSTGRES 10

static struct store *store;

static int64_t sql(const char *text)
{
	char cell[64] = "0";

	if (store->kind == STORE_POSTGRES) {
		PGconn *raw = store_raw(store);

		raw_run(raw, text, cell, sizeof cell);
		PQfinish(raw);
	} else {
		sqlite3 *handle;
		sqlite3_stmt *stmt;

		assert_int_equal(sqlite3_open(store->url + strlen("sqlite:"), &handle), SQLITE_OK);
		sqlite3_db_config(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
		assert_int_equal(sqlite3_prepare_v2(handle, text, -1, &stmt, NULL), SQLITE_OK);
		if (sqlite3_step(stmt) == SQLITE_ROW)
			snprintf(cell, sizeof cell, "%s", (const char *)sqlite3_column_text(stmt, 0));
		assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
		sqlite3_close(handle);
	}
	return strtoll(cell, NULL, 10);
}

/* ---- one life ---- */

static pid_t start_payer(int64_t from, FILE **ret_told)
{
	const char *build = getenv("HAPAX_BUILD");
	char program[512], number[32];
	pid_t parent = getpid(), child;
	int fds[2];

	snprintf(program, sizeof program, "%s/tests/chaos/gate_payer", build && *build ? build : "build");
	snprintf(number, sizeof number, "%lld", (long long)from);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == parent && dup2(fds[1], STDOUT_FILENO) >= 0)
			execl(program, program, store->url, number, (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	*ret_told = fdopen(fds[0], "r");
	return child;
}

/* A server ends what it was told to commit, whether or not anybody is there to hear of it. */
static void await_sessions_of_the_dead(void)
{
	PGconn *raw;

	if (store->kind != STORE_POSTGRES)
		return;
	raw = store_raw(store);
	raw_await(
		raw,
		"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
		"0");
	PQfinish(raw);
}

/* Kills it after so many payments, and so many microseconds into the next. Returns the last number it told. */
static int64_t live(int64_t from, int payments, useconds_t us)
{
	long long n = from - 1;
	int status;
	FILE *told;
	pid_t child = start_payer(from, &told);

	for (int i = 0; i < payments; i++)
		assert_int_equal(fscanf(told, "%lld", &n), 1);
	usleep(us); /* not to wait for anything: to die at another moment each time */
	kill(child, SIGKILL);
	while (fscanf(told, "%lld", &n) == 1) /* what it told before it died */
		;
	fclose(told);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	await_sessions_of_the_dead();
	return n;
}

/* ---- between two lives ---- */

/* Is there a record with an answer? Otherwise there is none, or the dead one's, which nobody may take yet. */
static bool is_replayed(struct hx_gate *gate, int64_t n)
{
	struct hx_gate_entry *entry = NULL;
	struct hx_error err;
	bool replayed = false;
	char key[32];
	enum hx_code code;

	snprintf(key, sizeof key, "n-%lld", (long long)n);
	code = hx_gate_begin(
		gate,
		&(struct hx_gate_request){HX_SIZE(hx_gate_request), .method = "POST", .path = "/payments", .key = key},
		&entry, NULL, &err);
	if (code == HX_OK) {
		replayed = hx_gate_replay(entry) != NULL;
		if (!replayed)
			assert_int_equal(hx_gate_abort(entry, &err), HX_OK);
	} else {
		assert_int_equal(code, HX_IN_FLIGHT);
	}
	hx_gate_entry_free(entry);
	return replayed;
}

static void both_or_neither(enum store_kind kind, int kills)
{
	int durable_untold = 0, acquired_only = 0;
	struct hx_gate *gate;
	struct hx_error err;
	int64_t next = 1;

	store = store_new(kind);
	sql("CREATE TABLE payment (n bigint PRIMARY KEY)");
	sql("CREATE TABLE account (balance bigint NOT NULL)");
	sql("INSERT INTO account VALUES (0)");
	srand(11);
	for (int i = 0; i < kills; i++) {
		int64_t told = live(next, rand() % 20, (useconds_t)(rand() % 3000)), paid;
		char text[80];

		if (hx_gate_open(&(struct hx_gate_options){HX_SIZE(hx_gate_options), .store_url = store->url}, &gate,
				 &err))
			fail_msg("%s", err.detail);
		snprintf(text, sizeof text, "SELECT count(*) FROM payment WHERE n = %lld", (long long)told + 1);
		paid = sql(text);
		/* What was told is there. The next one, in which it died: both, or neither. */
		for (int64_t n = next; n <= told; n++)
			assert_true(is_replayed(gate, n));
		assert_int_equal(is_replayed(gate, told + 1), paid);
		assert_int_equal(sql("SELECT count(*) FROM payment"), told + paid);
		assert_int_equal(sql("SELECT balance FROM account"), told + paid);
		durable_untold += (int)paid;
		acquired_only += sql("SELECT count(*) FROM hx_gate_record WHERE status = 1") > 0;
		hx_gate_close(gate);
		/* Its lease is over, as after a minute: the next life pays it, or hears that it was paid. */
		sql("UPDATE hx_gate_record SET until = 1 WHERE status = 1");
		next = told + 1;
	}
	assert_int_equal(sql("SELECT count(*) FROM hx_gate_record WHERE status = 2"),
			 sql("SELECT count(*) FROM payment"));
	printf("# gate in a program, %d kills, %lld payments: %d died between the commit and the word, %d between begin and"
	       " complete\n",
	       kills, (long long)next - 1, durable_untold, acquired_only);
	store_free(store);
}

static void test_sqlite(void **state)
{
	(void)state;
	both_or_neither(STORE_SQLITE_FILE, KILLS_SQLITE);
}

static void test_postgres(void **state)
{
	(void)state;
	both_or_neither(STORE_POSTGRES, KILLS_POSTGRES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sqlite),
		cmocka_unit_test(test_postgres),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
