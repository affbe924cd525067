/*
 * The audit over the same store as in test_audit.c: rows that are missing or belong to nothing, more than fits into a slice, and money
 * that does not add up.
 */
#include "contract/audit_scene.h"

/* ---- more than fits into a slice ---- */

#define COLUMNS "(subject, seq, from_status, to_status, version, fence, op, node, at, hash)"

/* An entity with a history of so many rows. */
static void add_entity(int64_t id, int64_t rows)
{
	tamper("INSERT INTO hx_history " COLUMNS " WITH RECURSIVE r(seq, was, hash) AS (SELECT CAST(1 AS bigint), '',"
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
	tamper("INSERT INTO hx_history " COLUMNS
	       " SELECT %lld, seq, from_status, to_status, version, fence, op, node, at, hash FROM hx_history"
	       " WHERE subject = %lld",
	       (long long)nobody, (long long)world.town.entity);
	assert_found(nobody, HISTORY, 1, "subject");
	script("ROLLBACK; BEGIN");
	tamper("INSERT INTO hx_history " COLUMNS
	       " SELECT 9223372036854775807, seq, from_status, to_status, version, fence, op, node, at, hash"
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
	tamper("INSERT INTO hx_run_step (run, position, status, attempt, output, started_at, completed_at, undone_at)"
	       " SELECT 5, position, status, attempt, output, started_at, completed_at, undone_at"
	       " FROM hx_run_step WHERE run = %lld AND position = 0",
	       (long long)world.town.run);
	assert_found(5, "step", 0, "run");
	script("ROLLBACK; BEGIN");
	tamper("INSERT INTO hx_run_step (run, position, status, attempt, output, started_at, completed_at, undone_at)"
	       " SELECT run, 7, status, attempt, output, started_at, completed_at + 100000, undone_at"
	       " FROM hx_run_step WHERE run = %lld AND position = 0",
	       (long long)world.town.run);
	assert_found(world.town.run, "step", 7, "completed_at");
	script("ROLLBACK; BEGIN");
	tamper("UPDATE hx_run_step SET undone_at = 1 WHERE run = %lld AND position = 0", (long long)world.town.run);
	assert_found(world.town.run, "step", 0, "undone_at");
}

/* Of a limit: its run is over, or was never there, or nobody is at it. */
static void test_a_slot_that_is_left(void **state)
{
	static const char slot[] = "INSERT INTO hx_slot (name, holder, held, at, key) VALUES (-5, %lld, %d, 1, 'null')";

	(void)state;
	tamper(slot, (long long)5, 1);
	assert_found(5, "slot", -5, "run");
	for (int held = 0; held < 3; held++) {
		script("ROLLBACK; BEGIN");
		tamper(slot, (long long)world.town.run, held);
		assert_found(world.town.run, "slot", -5, "slot");
	}
	script("ROLLBACK; BEGIN");
	tamper(slot, (long long)world.town.job, 1);
	assert_found(world.town.job, "slot", -5, "slot");
	for (int held = 0; held < 2;
	     held++) { /* an entity stands in no line, and has a slot while it is claimed alone */
		script("ROLLBACK; BEGIN");
		tamper(slot, (long long)world.town.entity, held);
		assert_found_of(world.town.entity, "slot", -5, "slot", "entity:");
	}
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
#define TESTS(T)                                                                                                       \
	T(test_the_store_is_whole)                                                                                     \
	T(test_a_long_history_and_many_subjects)                                                                       \
	T(test_a_history_without_a_subject)                                                                            \
	T(test_a_tombstone_without_its_subject)                                                                        \
	T(test_a_subject_without_a_noun)                                                                               \
	T(test_a_history_behind_a_tombstone)                                                                           \
	T(test_a_claim_of_nobody)                                                                                      \
	T(test_a_job_that_is_due_after_its_end)                                                                        \
	T(test_a_step_of_nothing)                                                                                      \
	T(test_a_slot_that_is_left)                                                                                    \
	T(test_a_ledger_that_does_not_add_up)                                                                          \
	T(test_money_for_what_was_not_done)                                                                            \
	T(test_an_entry_that_was_taken_away)                                                                           \
	T(test_counts_and_sums_of_a_batch)                                                                             \
	T(test_an_item_that_was_decided_by_hand)                                                                       \
	T(test_the_store_is_whole)
/* clang-format on */

int main(void)
{
	const struct CMUnitTest on_sqlite[] = {TESTS(ON_SQLITE)}, on_postgres[] = {TESTS(ON_POSTGRES)};

	return cmocka_run_group_tests_name("sqlite", on_sqlite, set_up_sqlite, tear_down_world) +
	       cmocka_run_group_tests_name("postgres", on_postgres, set_up_postgres, tear_down_world);
}
