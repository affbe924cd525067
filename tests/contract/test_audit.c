/*
 * The audit over a store that a real server has filled (support/town.h): it is whole as it is, and every tampering with it is
 * found, at the place where it was done. Each is done, and undone, in a transaction that the audit reads in; on both stores.
 *
 * The first ten are those that issue and manual name. What cannot be found is shown, too.
 */
#include "contract/audit_scene.h"

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

/* clang-format off */
#define TESTS(T)                                                                                                       \
	T(test_the_store_is_whole)                                                                                     \
	/* the ten that the manual names */                                                                            \
	T(test_a_changed_row)                                                                                          \
	T(test_a_removed_middle_row)                                                                                   \
	T(test_a_removed_tail)                                                                                         \
	T(test_a_recomputed_tail)                                                                                      \
	T(test_a_lowered_fence)                                                                                        \
	T(test_a_second_terminal)                                                                                      \
	T(test_a_ledger_entry_without_its_marker)                                                                      \
	T(test_a_balance_off_by_one)                                                                                   \
	T(test_a_history_row_of_a_lost_unit)                                                                           \
	T(test_a_tombstone_without_its_head)                                                                           \
	/* and others */                                                                                               \
	T(test_a_tail_that_was_removed_with_its_subject)                                                               \
	T(test_a_run_that_does_not_know_its_job)                                                                       \
	T(test_a_fence_that_fell_in_a_recomputed_history)                                                              \
	T(test_a_second_terminal_of_others)                                                                            \
	T(test_a_way_that_does_not_lead)                                                                               \
	T(test_a_status_that_was_set_by_hand)                                                                          \
	T(test_a_version_that_does_not_rise)                                                                           \
	T(test_what_is_rewritten_everywhere_is_not_found)                                                              \
	T(test_the_store_is_whole)
/* clang-format on */

int main(void)
{
	const struct CMUnitTest on_sqlite[] = {TESTS(ON_SQLITE)}, on_postgres[] = {TESTS(ON_POSTGRES)};

	return cmocka_run_group_tests_name("sqlite", on_sqlite, set_up_sqlite, tear_down_world) +
	       cmocka_run_group_tests_name("postgres", on_postgres, set_up_postgres, tear_down_world);
}
