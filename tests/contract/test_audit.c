/*
 * The audit over a store that a real server has filled (support/town.h): it is whole as it is, and every tampering with it is
 * found, at the place where it was done. Each is done, and undone, in a transaction that the audit reads in; on both stores.
 *
 * The first ten are those that issue and manual name. What cannot be found is shown, too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/id.h"
#include "engine/audit.h"
#include "support/town.h"

#define SQL_BYTES 2000

static struct {
	struct scene *scene;
	struct town town;
	struct db *db;
	struct arena arena;
} world;

/* ---- fixtures ---- */

static int set_up_world(int (*scene_set_up)(void **state))
{
	void *scene = NULL;

	scene_set_up(&scene);
	world.scene = scene;
	town_define(world.scene);
	town_live(world.scene, &world.town);
	world.db = store_open(world.scene->store);
	arena_init(&world.arena, AUDIT_ARENA_BYTES_MAX);
	return 0;
}

static int set_up_sqlite(void **state)
{
	(void)state;
	return set_up_world(scene_set_up_sqlite);
}

static int set_up_postgres(void **state)
{
	(void)state;
	return set_up_world(scene_set_up_postgres);
}

static int tear_down_world(void **state)
{
	void *scene = world.scene;

	(void)state;
	db_close(world.db);
	world.db = NULL;
	arena_release(&world.arena);
	return scene_tear_down(&scene);
}

static void script(const char *sql)
{
	struct hx_error err = {0};

	if (world.db->driver->script(world.db, sql, &err) != HX_OK)
		fail_msg("%s: %s", sql, err.detail);
}

static int begin(void **state)
{
	(void)state;
	script("BEGIN");
	return 0;
}

static int undo(void **state)
{
	(void)state;
	script("ROLLBACK");
	return 0;
}

/* ---- tampering ---- */

static void tamper(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void tamper(const char *format, ...)
{
	char sql[SQL_BYTES];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(sql, sizeof sql, format, args);
	va_end(args);
	assert_true(n > 0 && n < (int)sizeof sql);
	script(sql);
}

static int64_t number(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* One cell, read in the transaction of the test. */
static int64_t number(const char *format, ...)
{
	static int counter;
	struct db_stmt *stmt = arena_zalloc(&world.arena, sizeof *stmt);
	char sql[SQL_BYTES], *name = arena_alloc(&world.arena, 40);
	struct unit_result result;
	struct hx_error err = {0};
	struct unit unit, *units[] = {&unit};
	va_list args;

	va_start(args, format);
	vsnprintf(sql, sizeof sql, format, args);
	va_end(args);
	snprintf(name, 40, "test_number_%d", ++counter);
	*stmt = (struct db_stmt){.name = name, .sql = arena_copy(&world.arena, slice_str(sql)).p, .in = "", .out = "i"};
	unit_init(&unit, 0);
	unit_add(&unit, UNIT_ANY, stmt, 0, NULL);
	if (world.db->driver->execute(world.db, units, 1, &result, &world.arena, &err) != HX_OK)
		fail_msg("%s: %s", sql, err.detail);
	assert_true(result.rows[0].n == 1);
	return db_cell(&result.rows[0], 0, 0)->i;
}

static int64_t last_seq(int64_t subject)
{
	return number("SELECT max(seq) FROM hx_history WHERE subject = %lld", (long long)subject);
}

/* Makes the chain fit again, from this row on. */
static void recompute(int64_t subject, int64_t from)
{
	for (int64_t seq = from, last = last_seq(subject); seq <= last; seq++)
		tamper("UPDATE hx_history SET hash = hx_link((SELECT hash FROM hx_history p WHERE p.subject = %lld AND p.seq = %lld),"
		       " subject, seq, from_status, to_status, version, fence, op, at, node) WHERE subject = %lld AND seq = %lld",
		       (long long)subject, (long long)seq - 1, (long long)subject, (long long)seq);
}

/* Makes the subject what its last row says. */
static void follow(int64_t subject)
{
	static const char *const pairs[][2] = {
		{"status", "to_status"}, {"version", "version"}, {"fence", "fence"}, {"op", "op"},
		{"updated_at", "at"},    {"seq", "seq"},         {"head", "hash"}};

	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
		tamper("UPDATE hx_subject SET %s = (SELECT h.%s FROM hx_history h WHERE h.subject = id ORDER BY h.seq DESC LIMIT 1)"
		       " WHERE id = %lld",
		       pairs[i][0], pairs[i][1], (long long)subject);
}

/* One more row, into this status, and all of the chain fits. */
static void add_row(int64_t subject, const char *to)
{
	int64_t seq = last_seq(subject);

	tamper("INSERT INTO hx_history (subject, seq, from_status, to_status, version, fence, op, node, at, hash)"
	       " SELECT subject, seq + 1, to_status, '%s', version + 1, fence, op + 1, node, at + 1, hash FROM hx_history"
	       " WHERE subject = %lld AND seq = %lld",
	       to, (long long)subject, (long long)seq);
	recompute(subject, seq + 1);
}

/* One more entry, and seq and balance fit. */
static void add_entry(int64_t account, int64_t amount, const char *key, const char *reason)
{
	tamper("INSERT INTO hx_ledger (account, seq, amount, key, reason, balance, op, at) SELECT subject, seq + 1, %lld, '%s',"
	       " '%s', balance + %lld, 1, 1 FROM hx_account WHERE subject = %lld",
	       (long long)amount, key, reason, (long long)amount, (long long)account);
	tamper("UPDATE hx_account SET seq = seq + 1, balance = balance + %lld WHERE subject = %lld", (long long)amount,
	       (long long)account);
}

static const char *key_of(int64_t batch, int n, const char *reason, int attempt)
{
	static char key[80];
	char id[ID_TEXT_BYTES];

	id_format("batch", batch, id);
	snprintf(key, sizeof key, "/%s/%d/%s/%d", id, n, reason, attempt);
	return key;
}

/* ---- auditing ---- */

static void audit(struct auditor *auditor)
{
	struct unit unit, *units[] = {&unit};
	struct unit_result result;
	struct hx_error err = {0};

	auditor_init(auditor);
	while (auditor_ask(auditor, &unit)) {
		struct arena_mark mark = arena_mark(&world.arena);

		if (world.db->driver->execute(world.db, units, 1, &result, &world.arena, &err) != HX_OK)
			fail_msg("%s", err.detail);
		auditor_take(auditor, &result);
		arena_rewind(&world.arena, mark);
	}
	auditor_release(auditor);
}

static void assert_whole(void)
{
	struct auditor a;

	audit(&a);
	if (a.finding.there)
		fail_msg("%s (%lld), %s %lld: %s: expected %s, found %s", a.finding.subject, (long long)a.finding.id,
			 a.finding.row ? a.finding.row : "", (long long)a.finding.seq, a.finding.what,
			 a.finding.expected, a.finding.found);
}

/* The place and what is wrong there; row NULL: of the subject itself. */
static void assert_found(int64_t id, const char *row, int64_t seq, const char *what)
{
	struct auditor a;

	audit(&a);
	if (!a.finding.there)
		fail_msg("%s was not found", what);
	if (a.finding.id != id || strcmp(a.finding.what, what) != 0 || !a.finding.row != !row ||
	    (row && strcmp(a.finding.row, row) != 0) || a.finding.seq != seq)
		fail_msg("%s of %lld, %s %lld, was to be found, and %s of %lld, %s %lld was: expected %s, found %s",
			 what, (long long)id, row ? row : "", (long long)seq, a.finding.what, (long long)a.finding.id,
			 a.finding.row ? a.finding.row : "", (long long)a.finding.seq, a.finding.expected,
			 a.finding.found);
	assert_true(a.finding.expected[0] && a.finding.found[0]);
}

#define HISTORY "history row"
#define LEDGER "ledger entry"

static void test_the_store_is_whole(void **state)
{
	struct auditor a;

	(void)state;
	assert_whole();
	audit(&a);
	assert_int_equal(a.counts.subjects, number("SELECT count(*) FROM hx_subject"));
	assert_int_equal(a.counts.history_rows, number("SELECT count(*) FROM hx_history"));
	assert_int_equal(a.counts.steps, number("SELECT count(*) FROM hx_run_step"));
	assert_int_equal(a.counts.accounts, 2);
	assert_int_equal(a.counts.entries, number("SELECT count(*) FROM hx_ledger"));
	assert_int_equal(a.counts.batches, number("SELECT count(*) FROM hx_batch"));
	assert_int_equal(a.counts.items, number("SELECT count(*) FROM hx_batch_item"));
	/* There is something to look at. */
	assert_true(number("SELECT count(*) FROM hx_ledger WHERE reason = 'refund'") >= 2);
	assert_true(number("SELECT count(*) FROM hx_ledger WHERE reason = 'return'") >= 20);
	assert_true(number("SELECT count(*) FROM hx_run_step WHERE undone_at IS NOT NULL") >= 1);
	assert_true(number("SELECT count(*) FROM hx_run WHERE expired = 1") == 1);
	assert_true(number("SELECT count(*) FROM hx_batch WHERE expired = 2") == 1);
}

/* ---- the ten ---- */

static void test_a_changed_row(void **state)
{
	(void)state;
	tamper("UPDATE hx_history SET node = 'elsewhere' WHERE subject = %lld AND seq = 2", (long long)world.town.run);
	assert_found(world.town.run, HISTORY, 2, "hash");
}

static void test_a_removed_middle_row(void **state)
{
	(void)state;
	tamper("DELETE FROM hx_history WHERE subject = %lld AND seq = 2", (long long)world.town.entity);
	assert_found(world.town.entity, HISTORY, 3, "seq");
}

static void test_a_removed_tail(void **state)
{
	int64_t last = last_seq(world.town.run);

	(void)state;
	tamper("DELETE FROM hx_history WHERE subject = %lld AND seq = %lld", (long long)world.town.run,
	       (long long)last);
	assert_found(world.town.run, HISTORY, last, "seq");
}

static void test_a_recomputed_tail(void **state)
{
	(void)state;
	tamper("UPDATE hx_history SET at = at + 1 WHERE subject = %lld AND seq = 2", (long long)world.town.batch);
	recompute(world.town.batch, 2);
	assert_found(world.town.batch, NULL, 0, "head");
}

static void test_a_lowered_fence(void **state)
{
	(void)state;
	tamper("UPDATE hx_subject SET fence = fence - 1 WHERE id = %lld", (long long)world.town.entity);
	assert_found(world.town.entity, NULL, 0, "fence");
}

static void test_a_second_terminal(void **state)
{
	(void)state;
	add_row(world.town.cancelled, "COMPLETED");
	follow(world.town.cancelled);
	assert_found(world.town.cancelled, HISTORY, last_seq(world.town.cancelled), "status");
}

static void test_a_ledger_entry_without_its_marker(void **state)
{
	(void)state;
	add_entry(world.town.account, -5, key_of(world.town.batch, 20, "charge", 1),
		  "charge"); /* it has items 0 to 19 */
	assert_found(world.town.account, LEDGER,
		     number("SELECT seq FROM hx_account WHERE subject = %lld", (long long)world.town.account),
		     "marker");
}

static void test_a_balance_off_by_one(void **state)
{
	(void)state;
	tamper("UPDATE hx_account SET balance = balance + 1 WHERE subject = %lld", (long long)world.town.account);
	assert_found(world.town.account, NULL, 0, "balance");
}

static void test_a_history_row_of_a_lost_unit(void **state)
{
	(void)state;
	add_row(world.town.job, "PARKED");
	assert_found(world.town.job, HISTORY, last_seq(world.town.job), "seq");
}

static void test_a_tombstone_without_its_head(void **state)
{
	(void)state;
	tamper("UPDATE hx_subject SET head = hx_link(NULL, 1, 1, '', '', 1, 0, 1, 1, '') WHERE id = %lld",
	       (long long)world.town.old_run);
	assert_whole(); /* another one in its place: there is nothing left to compare it with */
	tamper("UPDATE hx_subject SET head = CAST('' AS %s) WHERE id = %lld",
	       world.db->driver == &db_postgres ? "bytea" : "BLOB", (long long)world.town.old_run);
	assert_found(world.town.old_run, NULL, 0, "head");
}

/* ---- the same, better done ---- */

/* Rewritten with its subject: what else was written in that unit gives it away. */
static void test_a_tail_that_was_removed_with_its_subject(void **state)
{
	(void)state;
	tamper("DELETE FROM hx_history WHERE subject = %lld AND seq = %lld", (long long)world.town.run,
	       (long long)last_seq(world.town.run));
	follow(world.town.run);
	assert_found(world.town.run, NULL, 0, "completed_at");
	tamper("UPDATE hx_run SET completed_at = NULL WHERE subject = %lld", (long long)world.town.run);
	assert_found(world.town.run, "step", 1, "completed_at");
}

static void test_a_run_that_does_not_know_its_job(void **state)
{
	(void)state;
	tamper("UPDATE hx_history SET op = 1 WHERE subject = %lld AND op = (SELECT j.op FROM hx_history j WHERE j.subject = %lld"
	       " AND j.seq = 1)",
	       (long long)world.town.run, (long long)world.town.run_job);
	recompute(world.town.run, 2);
	follow(world.town.run);
	assert_found(world.town.run_job, NULL, 0, "creation");
}

static void test_a_fence_that_fell_in_a_recomputed_history(void **state)
{
	(void)state;
	tamper("UPDATE hx_history SET fence = fence - 1 WHERE subject = %lld AND seq = %lld",
	       (long long)world.town.entity, (long long)last_seq(world.town.entity));
	recompute(world.town.entity, last_seq(world.town.entity));
	follow(world.town.entity);
	assert_found(world.town.entity, HISTORY, last_seq(world.town.entity), "fence");
}

static void test_a_second_terminal_of_others(void **state)
{
	(void)state;
	add_row(world.town.undone_run, "RUNNING");
	follow(world.town.undone_run);
	assert_found(world.town.undone_run, HISTORY, last_seq(world.town.undone_run), "status");
	script("ROLLBACK; BEGIN");
	add_row(world.town.job, "AVAILABLE");
	follow(world.town.job);
	assert_found(world.town.job, HISTORY, last_seq(world.town.job), "status");
	script("ROLLBACK; BEGIN");
	add_row(world.town.account, "OPEN");
	follow(world.town.account);
	assert_found(world.town.account, HISTORY, 2, "status");
}

/* Neither is terminal: only the table of ways knows that the one does not lead to the other, or that nothing begins there. */
static void test_a_way_that_does_not_lead(void **state)
{
	int64_t run = world.town.undone_run, job = world.town.job, last = last_seq(run);

	(void)state;
	tamper("UPDATE hx_history SET to_status = 'PENDING' WHERE subject = %lld AND seq = %lld", (long long)run,
	       (long long)last);
	recompute(run, last);
	follow(run);
	assert_found(run, HISTORY, last, "status");
	script("ROLLBACK; BEGIN");
	tamper("UPDATE hx_history SET to_status = 'PARKED' WHERE subject = %lld AND seq = 1", (long long)job);
	tamper("UPDATE hx_history SET from_status = 'PARKED' WHERE subject = %lld AND seq = 2", (long long)job);
	recompute(job, 1);
	follow(job);
	assert_found(job, HISTORY, 1, "status");
}

static void test_a_status_that_was_set_by_hand(void **state)
{
	(void)state;
	tamper("UPDATE hx_subject SET status = 'draft' WHERE id = %lld", (long long)world.town.entity);
	assert_found(world.town.entity, NULL, 0, "status");
	script("ROLLBACK; BEGIN");
	tamper("UPDATE hx_history SET from_status = 'draft' WHERE subject = %lld AND seq = %lld",
	       (long long)world.town.entity, (long long)last_seq(world.town.entity));
	recompute(world.town.entity, last_seq(world.town.entity));
	follow(world.town.entity);
	assert_found(world.town.entity, HISTORY, last_seq(world.town.entity), "from");
}

static void test_a_version_that_does_not_rise(void **state)
{
	int64_t last = last_seq(world.town.run);

	(void)state;
	tamper("UPDATE hx_history SET version = 1 WHERE subject = %lld AND seq = %lld", (long long)world.town.run,
	       (long long)last);
	recompute(world.town.run, last);
	follow(world.town.run);
	assert_found(world.town.run, HISTORY, last, "version");
	script("ROLLBACK; BEGIN");
	tamper("UPDATE hx_subject SET version = version + 1 WHERE id = %lld", (long long)world.town.paper);
	assert_found(world.town.paper, NULL, 0, "version");
}

/* Nothing else was written with these rows, so nothing gives them away: said in flow/audit.h and in the manual. */
static void test_what_is_rewritten_everywhere_is_not_found(void **state)
{
	(void)state;
	tamper("UPDATE hx_history SET node = 'elsewhere' WHERE subject = %lld AND seq = 2",
	       (long long)world.town.entity);
	recompute(world.town.entity, 2);
	follow(world.town.entity);
	assert_whole();
}

/* ---- more than fits into a slice ---- */

/* An entity with a history of so many rows. */
static void add_entity(int64_t id, int64_t rows)
{
	tamper("INSERT INTO hx_history WITH RECURSIVE r(seq, was, hash) AS (SELECT CAST(1 AS bigint), '',"
	       " hx_link(NULL, %lld, 1, '', 'a', 1, 0, 1, 1, 'n') UNION ALL SELECT seq + 1, 'a',"
	       " hx_link(hash, %lld, seq + 1, 'a', 'a', seq + 1, 0, 1, 1, 'n') FROM r WHERE seq < %lld)"
	       " SELECT %lld, seq, was, 'a', seq, 0, 1, 'n', 1, hash FROM r",
	       (long long)id, (long long)id, (long long)rows, (long long)id);
	tamper("INSERT INTO hx_subject (id, kind, status, version, op, fence, updated_at, seq, head) SELECT subject, %lld, 'a', seq,"
	       " 1, 0, 1, seq, hash FROM hx_history WHERE subject = %lld AND seq = %lld",
	       (long long)subject_kind("entity:", "billing"), (long long)id, (long long)rows);
	tamper("INSERT INTO hx_entity (subject, workspace, workflow, name, data) VALUES (%lld, 'default', 'billing', 'x%lld', '{}')",
	       (long long)id, (long long)id);
}

static void test_a_long_history_and_many_subjects(void **state)
{
	const int64_t long_rows = 2 * AUDIT_ROWS_SLICE + 100, many = AUDIT_SUBJECTS_SLICE + 10;
	const int64_t gaps[] = {2, AUDIT_ROWS_SLICE - 1, AUDIT_ROWS_SLICE, AUDIT_ROWS_SLICE + 1, 2 * AUDIT_ROWS_SLICE};
	int64_t first = 1000, after = 5000;
	struct auditor a;

	(void)state;
	add_entity(1, long_rows); /* in front of all others: its rows alone fill the first slices */
	for (int64_t i = 0; i < many; i++)
		add_entity(first + i, 1 + i % 3);
	add_entity(after, AUDIT_ROWS_SLICE);
	assert_whole();
	audit(&a);
	assert_int_equal(a.counts.subjects, number("SELECT count(*) FROM hx_subject"));
	assert_int_equal(a.counts.history_rows, number("SELECT count(*) FROM hx_history"));
	for (size_t i = 0; i < sizeof gaps / sizeof *gaps; i++) {
		script("SAVEPOINT gap");
		tamper("DELETE FROM hx_history WHERE subject = 1 AND seq = %lld", (long long)gaps[i]);
		assert_found(1, HISTORY, gaps[i] + 1, "seq");
		script("ROLLBACK TO gap");
	}
	for (int64_t i = 0; i < many; i += AUDIT_SUBJECTS_SLICE / 4) {
		script("SAVEPOINT one");
		tamper("UPDATE hx_subject SET fence = 1 WHERE id = %lld", (long long)(first + i));
		assert_found(first + i, NULL, 0, "fence");
		script("ROLLBACK TO one");
	}
	tamper("DELETE FROM hx_history WHERE subject = %lld AND seq = %d", (long long)after, AUDIT_ROWS_SLICE);
	assert_found(after, HISTORY, AUDIT_ROWS_SLICE, "seq");
}

/* ---- rows that are missing, and rows of nothing ---- */

static void test_a_history_without_a_subject(void **state)
{
	int64_t nobody = world.town.entity - 1;

	(void)state;
	tamper("INSERT INTO hx_history SELECT %lld, seq, from_status, to_status, version, fence, op, node, at, hash FROM hx_history"
	       " WHERE subject = %lld",
	       (long long)nobody, (long long)world.town.entity);
	assert_found(nobody, HISTORY, 1, "subject");
	script("ROLLBACK; BEGIN");
	tamper("INSERT INTO hx_history SELECT 9223372036854775807, seq, from_status, to_status, version, fence, op, node, at, hash"
	       " FROM hx_history WHERE subject = %lld",
	       (long long)world.town.entity);
	assert_found(INT64_MAX, HISTORY, 1, "subject");
}

static void test_a_tombstone_without_its_subject(void **state)
{
	(void)state;
	tamper("DELETE FROM hx_subject WHERE id = %lld", (long long)world.town.old_batch);
	assert_found(world.town.old_batch, NULL, 0, "subject");
	script("ROLLBACK; BEGIN");
	tamper("DELETE FROM hx_subject WHERE id = %lld", (long long)world.town.old_run);
	assert_found(world.town.old_run, NULL, 0, "subject");
}

static void test_a_subject_without_a_noun(void **state)
{
	(void)state;
	tamper("DELETE FROM hx_job WHERE subject = %lld", (long long)world.town.job);
	assert_found(world.town.job, NULL, 0, "noun");
	script("ROLLBACK; BEGIN");
	tamper("DELETE FROM hx_history WHERE subject = %lld", (long long)world.town.job);
	assert_found(world.town.job, HISTORY, 1, "seq");
}

static void test_a_history_behind_a_tombstone(void **state)
{
	(void)state;
	tamper("UPDATE hx_run SET expired = 1 WHERE subject = %lld", (long long)world.town.run);
	assert_found(world.town.run, NULL, 0, "history");
}

static void test_a_claim_of_nobody(void **state)
{
	(void)state;
	tamper("UPDATE hx_subject SET until = 1 WHERE id = %lld", (long long)world.town.entity);
	assert_found(world.town.entity, NULL, 0, "owner");
	script("ROLLBACK; BEGIN");
	tamper("UPDATE hx_subject SET owner = 'ann', until = 1 WHERE id = %lld", (long long)world.town.run);
	assert_found(world.town.run, NULL, 0, "owner");
}

static void test_a_job_that_is_due_after_its_end(void **state)
{
	(void)state;
	tamper("UPDATE hx_job SET due_at = 1 WHERE subject = %lld", (long long)world.town.job);
	assert_found(world.town.job, NULL, 0, "due_at");
	script("ROLLBACK; BEGIN");
	tamper("UPDATE hx_job SET attempt = attempt + 1 WHERE subject = %lld", (long long)world.town.job);
	assert_found(world.town.job, NULL, 0, "fence");
}

static void test_a_step_of_nothing(void **state)
{
	(void)state;
	tamper("INSERT INTO hx_run_step SELECT 5, position, status, attempt, output, started_at, completed_at, undone_at"
	       " FROM hx_run_step WHERE run = %lld AND position = 0",
	       (long long)world.town.run);
	assert_found(5, "step", 0, "run");
	script("ROLLBACK; BEGIN");
	tamper("INSERT INTO hx_run_step SELECT run, 7, status, attempt, output, started_at, completed_at + 100000, undone_at"
	       " FROM hx_run_step WHERE run = %lld AND position = 0",
	       (long long)world.town.run);
	assert_found(world.town.run, "step", 7, "completed_at");
	script("ROLLBACK; BEGIN");
	tamper("UPDATE hx_run_step SET undone_at = 1 WHERE run = %lld AND position = 0", (long long)world.town.run);
	assert_found(world.town.run, "step", 0, "undone_at");
}

/* ---- money ---- */

static void test_a_ledger_that_does_not_add_up(void **state)
{
	(void)state;
	tamper("UPDATE hx_ledger SET amount = amount + 1 WHERE account = %lld AND seq = 5",
	       (long long)world.town.account);
	assert_found(world.town.account, LEDGER, 5, "balance");
	script("ROLLBACK; BEGIN");
	tamper("DELETE FROM hx_ledger WHERE account = %lld AND seq = 5", (long long)world.town.account);
	assert_found(world.town.account, LEDGER, 6, "seq");
	script("ROLLBACK; BEGIN");
	tamper("UPDATE hx_account SET seq = seq + 1 WHERE subject = %lld", (long long)world.town.account);
	assert_found(world.town.account, NULL, 0, "seq");
}

static void test_money_for_what_was_not_done(void **state)
{
	int64_t account = world.town.account;
	int64_t next = 1 + number("SELECT seq FROM hx_account WHERE subject = %lld", (long long)account);

	(void)state;
	add_entry(account, 5, key_of(world.town.batch, 1, "return", 9), "return"); /* so often it was not begun */
	assert_found(account, LEDGER, next, "marker");
	script("ROLLBACK; BEGIN");
	add_entry(account, 5, key_of(world.town.batch, 1, "refund", 2), "refund"); /* it was never cancelled */
	assert_found(account, LEDGER, next, "marker");
	script("ROLLBACK; BEGIN");
	add_entry(account, 7, key_of(world.town.batch, 1, "return", 2), "return"); /* it costs 5 */
	assert_found(account, LEDGER, next, "amount");
	script("ROLLBACK; BEGIN");
	add_entry(account, 5, key_of(world.town.batch, 1, "return", 2), "return"); /* it succeeded */
	assert_found(world.town.batch, "item", 1, "ledger");
	script("ROLLBACK; BEGIN");
	add_entry(account, 3, key_of(world.town.cancelled, 7, "refund", 1), "refund"); /* a second time */
	assert_found(world.town.cancelled, NULL, 0, "refunds");
	script("ROLLBACK; BEGIN");
	add_entry(account, 3, key_of(world.town.cancelled, 7, "refund", 9),
		  "refund"); /* no item of it was begun so often */
	assert_found(account, LEDGER, next, "marker");
	script("ROLLBACK; BEGIN");
	add_entry(account, 3, key_of(world.town.cancelled, 5000, "refund", 1), "refund"); /* it has no such item */
	assert_found(account, LEDGER, next, "marker");
	script("ROLLBACK; BEGIN");
	add_entry(account, 3, "/somebody", "refund");
	assert_found(account, LEDGER, next, "key");
	script("ROLLBACK; BEGIN");
	add_entry(account, 3, "mine", "present");
	assert_found(account, LEDGER, next, "reason");
}

/* The last entry, taken back as if it had never been. */
static void test_an_entry_that_was_taken_away(void **state)
{
	int64_t account = world.town.account;

	(void)state;
	tamper("DELETE FROM hx_ledger WHERE account = %lld AND seq = (SELECT seq FROM hx_account WHERE subject = %lld)",
	       (long long)account, (long long)account);
	tamper("UPDATE hx_account SET seq = seq - 1, balance = (SELECT balance FROM hx_ledger l WHERE l.account = subject"
	       " AND l.seq = hx_account.seq - 1) WHERE subject = %lld",
	       (long long)account);
	assert_found(world.town.cancelled, NULL, 0, "refunds");
}

static void test_counts_and_sums_of_a_batch(void **state)
{
	static const char *const columns[] = {"succeeded", "failed",  "unknown", "accepted",
					      "cancelled", "charged", "refunded"};

	(void)state;
	for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
		script("ROLLBACK; BEGIN");
		tamper("UPDATE hx_batch SET %s = %s + 1 WHERE subject = %lld", columns[i], columns[i],
		       (long long)world.town.batch);
		assert_found(world.town.batch, NULL, 0, columns[i]);
	}
	script("ROLLBACK; BEGIN");
	/* One that was never begun: of the others the ledger tells. */
	tamper("DELETE FROM hx_batch_item WHERE batch = %lld AND n = (SELECT total - 1 FROM hx_batch WHERE subject = %lld)",
	       (long long)world.town.cancelled, (long long)world.town.cancelled);
	assert_found(world.town.cancelled, NULL, 0, "items");
}

static void test_an_item_that_was_decided_by_hand(void **state)
{
	long long batch = world.town.batch;

	(void)state;
	tamper("UPDATE hx_batch_item SET decision = 'cancelled' WHERE batch = %lld AND n = 2", batch);
	tamper("UPDATE hx_batch SET cancelled = 1, refunded = 5 WHERE subject = %lld", batch);
	assert_found(world.town.batch, NULL, 0, "status"); /* completed and refunded */
	script("ROLLBACK; BEGIN");
	tamper("UPDATE hx_batch_item SET charged = 0 WHERE batch = %lld AND n = 2", batch);
	tamper("UPDATE hx_batch SET charged = charged - 5 WHERE subject = %lld", batch);
	assert_found(world.town.batch, "item", 2, "charged");
	script("ROLLBACK; BEGIN");
	tamper("UPDATE hx_batch_item SET fence = 99 WHERE batch = %lld AND n = 2", batch);
	assert_found(world.town.batch, "item", 2, "fence");
	script("ROLLBACK; BEGIN");
	tamper("INSERT INTO hx_batch_item (batch, n, input, cost) VALUES (5, 0, '{}', 1)");
	assert_found(5, NULL, 0, "batch");
}

/* clang-format off */
#define TESTS                                                                                                          \
	T(test_the_store_is_whole),                                                                                    \
	/* the ten that the manual names */                                                                            \
	T(test_a_changed_row),                                                                                         \
	T(test_a_removed_middle_row),                                                                                  \
	T(test_a_removed_tail),                                                                                        \
	T(test_a_recomputed_tail),                                                                                     \
	T(test_a_lowered_fence),                                                                                       \
	T(test_a_second_terminal),                                                                                     \
	T(test_a_ledger_entry_without_its_marker),                                                                     \
	T(test_a_balance_off_by_one),                                                                                  \
	T(test_a_history_row_of_a_lost_unit),                                                                          \
	T(test_a_tombstone_without_its_head),                                                                          \
	/* and others */                                                                                               \
	T(test_a_tail_that_was_removed_with_its_subject),                                                              \
	T(test_a_run_that_does_not_know_its_job),                                                                      \
	T(test_a_fence_that_fell_in_a_recomputed_history),                                                             \
	T(test_a_second_terminal_of_others),                                                                           \
	T(test_a_way_that_does_not_lead),                                                                              \
	T(test_a_status_that_was_set_by_hand),                                                                         \
	T(test_a_version_that_does_not_rise),                                                                          \
	T(test_what_is_rewritten_everywhere_is_not_found),                                                             \
	T(test_a_long_history_and_many_subjects),                                                                      \
	T(test_a_history_without_a_subject),                                                                           \
	T(test_a_tombstone_without_its_subject),                                                                       \
	T(test_a_subject_without_a_noun),                                                                              \
	T(test_a_history_behind_a_tombstone),                                                                          \
	T(test_a_claim_of_nobody),                                                                                     \
	T(test_a_job_that_is_due_after_its_end),                                                                       \
	T(test_a_step_of_nothing),                                                                                     \
	T(test_a_ledger_that_does_not_add_up),                                                                         \
	T(test_money_for_what_was_not_done),                                                                           \
	T(test_an_entry_that_was_taken_away),                                                                          \
	T(test_counts_and_sums_of_a_batch),                                                                            \
	T(test_an_item_that_was_decided_by_hand),                                                                      \
	T(test_the_store_is_whole)
/* clang-format on */

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, begin, undo)
	const struct CMUnitTest on_sqlite[] = {TESTS};
#undef T
#define T(test)                                                                                                        \
	{                                                                                                              \
#test " on PostgreSQL", test, begin, undo, NULL                                                        \
	}
	const struct CMUnitTest on_postgres[] = {TESTS};
#undef T

	return cmocka_run_group_tests_name("sqlite", on_sqlite, set_up_sqlite, tear_down_world) +
	       cmocka_run_group_tests_name("postgres", on_postgres, set_up_postgres, tear_down_world);
}
