/*
 * Units that run what is the user's, on every store: what only the commit finds broken is the matter of the unit that broke it, a
 * statement without end comes to one, and the connection is as good as before.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/await.h"
#include "support/item.h"
#include "task/group.h"

#define UNITS 32
#define LIMIT_MS 300

static const struct db_stmt put_tail = {
	.name = "put_tail", .sql = "INSERT INTO tail VALUES (?1, ?2)", .in = "ii", .out = "", .foreign = true};
static const struct db_stmt count_tails = {
	.name = "count_tails", .sql = "SELECT count(*) FROM tail", .in = "", .out = "i"};
static const struct db_stmt endless = {
	.name = "endless",
	.sql = "INSERT INTO tail SELECT 1, count(*) FROM (WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n % 7 + 1 FROM c)"
	       " SELECT n FROM c) AS x",
	.in = "",
	.out = "",
	.foreign = true};
static const struct db_stmt nap = {.name = "nap", .sql = "SELECT pg_sleep(0.25)", .in = "", .out = "", .foreign = true};

struct told {
	struct group_sink base;
	size_t n[UNIT_UNKNOWN + 1];
	size_t last[UNIT_UNKNOWN + 1]; /* which one was told so last */
	struct hx_error error;         /* of the last that failed */
};

static void take_answer(struct group_sink *sink, size_t i, const struct unit_result *result)
{
	struct told *told = (struct told *)sink;

	told->n[result->verdict]++;
	told->last[result->verdict] = i;
	if (result->verdict == UNIT_FAILED)
		told->error = result->error;
}

static void take_wake(struct group_sink *sink, int64_t topic)
{
	(void)sink, (void)topic;
}

static struct told run(struct session *s)
{
	struct told told = {.base = {.answer = take_answer, .wake = take_wake}};
	struct group_stats stats = {0};
	struct group batch;

	group_init(&batch, s->units, s->result, s->n);
	group_run(&batch, s->db, &s->arena, /* resolve_ms= */ 1000, &told.base, &stats);
	return told;
}

static void make_tables(struct session *s, const char *more)
{
	if (s->store->kind != STORE_POSTGRES)
		session_must(s, s->db->driver->script(s->db, "PRAGMA foreign_keys = ON", &s->err));
	session_must(s,
		     s->db->driver->script(s->db,
					   "CREATE TABLE head (id BIGINT PRIMARY KEY); INSERT INTO head VALUES (1);"
					   "CREATE TABLE tail (id BIGINT, head BIGINT REFERENCES head (id) DEFERRABLE"
					   " INITIALLY DEFERRED)",
					   &s->err));
	if (more)
		session_must(s, s->db->driver->script(s->db, more, &s->err));
}

static int64_t tails(struct session *s)
{
	session_reset(s);
	unit_add(session_unit(s), UNIT_ANY, &count_tails, 0, NULL);
	session_must(s, session_run(s));
	return db_cell(&s->result[0].rows[0], 0, 0)->i;
}

static void what_the_commit_finds_is_told_to_one(void **state)
{
	struct session *s = *state;
	struct told told;

	make_tables(s, NULL);
	session_reset(s);
	for (int64_t i = 0; i < UNITS; i++)
		UNIT_ADD(session_unit(s), UNIT_ANY, &put_tail, db_int(i), db_int(i == 11 ? 99 : 1));
	told = run(s);
	assert_int_equal(told.n[UNIT_WON], UNITS - 1);
	assert_int_equal(told.n[UNIT_FAILED], 1);
	assert_int_equal(told.last[UNIT_FAILED], 11);
	assert_int_equal(told.error.code, HX_DATA_ERROR);
	assert_int_equal(tails(s), UNITS - 1);
}

static void run_limited(struct session *s, const struct db_stmt *stmt, unsigned times, int64_t limit_ms,
			enum hx_code code)
{
	int64_t since_ms = await_now_ms();
	struct unit *unit;
	struct told told;

	session_reset(s);
	unit = session_unit(s);
	item_must_put(s, 7, 1);
	session_reset(s);
	unit = session_unit(s);
	UNIT_ADD(unit, UNIT_VERDICT, &item_move, db_int(7), db_int(2), db_int(1));
	for (unsigned i = 0; i < times; i++)
		unit_add(unit, UNIT_ANY, stmt, 0, NULL);
	unit_add(unit, UNIT_MUST, &count_tails, 0, NULL); /* so that it has a savepoint, as all of these have */
	unit_limit(unit, limit_ms);
	told = run(s);
	assert_int_equal(told.n[UNIT_FAILED], 1);
	assert_int_equal(told.error.code, code);
	assert_true(await_now_ms() - since_ms < 20000);
	assert_int_equal(item_n(s, 7, -1), 1); /* nothing of it is left, and the connection is good */
	assert_int_equal(tails(s), 0);
}

static void a_statement_ends_with_its_limit(void **state)
{
	struct session *s = *state;
	struct told told;

	make_tables(s, NULL);
	run_limited(s, &endless, 1, LIMIT_MS, HX_ACTION_FAILED);
	session_reset(s);
	unit_add(session_unit(s), UNIT_ANY, &endless, 0, NULL);
	unit_limit(s->units[0], LIMIT_MS);
	told = run(s);
	assert_non_null(strstr(told.error.detail, "timed out"));
	assert_non_null(strstr(told.error.detail, "300 ms"));
}

static void a_stop_ends_it(void **state)
{
	struct session *s = *state;

	make_tables(s, NULL);
	atomic_store(&s->db->stop_ns, mono_add_ms(clock_mono(s->db->clock), LIMIT_MS).ns);
	run_limited(s, &endless, 1, /* limit_ms= */ 600000, HX_STOPPING);
}

/* ---- PostgreSQL: there are more ways to take long ---- */

static void statements_have_their_limit_together(void **state)
{
	struct session *s = *state;

	make_tables(s, NULL);
	run_limited(s, &nap, 3, 2 * LIMIT_MS, HX_ACTION_FAILED);
}

static void a_deferred_trigger_has_the_same_limit(void **state)
{
	struct session *s = *state;
	struct told told;

	make_tables(
		s,
		"CREATE FUNCTION doze() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(600); RETURN NULL; END';"
		"CREATE CONSTRAINT TRIGGER doze AFTER INSERT ON tail DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE"
		" FUNCTION doze()");
	session_reset(s);
	UNIT_ADD(session_unit(s), UNIT_ANY, &put_tail, db_int(1), db_int(1));
	unit_limit(s->units[0], LIMIT_MS);
	told = run(s);
	assert_int_equal(told.n[UNIT_FAILED], 1);
	assert_int_equal(told.error.code, HX_ACTION_FAILED);
	assert_int_equal(tails(s), 0);
}

static void a_lock_is_waited_for_no_longer(void **state)
{
	struct session *s = *state;
	PGconn *raw = store_raw(s->store);
	struct told told;

	make_tables(s, NULL);
	raw_run(raw, "BEGIN; LOCK TABLE tail", NULL, 0);
	session_reset(s);
	UNIT_ADD(session_unit(s), UNIT_ANY, &put_tail, db_int(1), db_int(1));
	unit_limit(s->units[0], LIMIT_MS);
	told = run(s);
	assert_int_equal(told.n[UNIT_FAILED], 1);
	assert_int_equal(told.error.code, HX_ACTION_FAILED);
	PQfinish(raw);
	told = run(s); /* the same unit, now that nobody is in its way */
	assert_int_equal(told.n[UNIT_WON], 1);
}

#define ON(kind, name)                                                                                                 \
	{                                                                                                              \
#name " on " #kind, name, session_set_up_##kind, session_tear_down, NULL                               \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON(file, what_the_commit_finds_is_told_to_one),
		ON(postgres, what_the_commit_finds_is_told_to_one),
		ON(file, a_statement_ends_with_its_limit),
		ON(postgres, a_statement_ends_with_its_limit),
		ON(file, a_stop_ends_it),
		ON(postgres, a_stop_ends_it),
		ON(postgres, statements_have_their_limit_together),
		ON(postgres, a_deferred_trigger_has_the_same_limit),
		ON(postgres, a_lock_is_waited_for_no_longer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
