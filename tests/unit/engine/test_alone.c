/*
 * Before a node begins: on SQLite it is alone, and goes on with what the dead had; what a worker has, or an entity's service, stays.
 * On PostgreSQL others may live, and nothing is touched.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine/alone.h"
#include "flow/batch.h"
#include "flow/job.h"
#include "flow/run.h"
#include "support/must_hold.h"
#include "support/store.h"

#define NOW_MS INT64_C(1800000000000)
#define LEASE_MS 60000
#define DAY_MS 86400000

enum { RUN = 1, BATCH, AFTER_EFFECT, WORKERS, ENTITY, LIMITED_RUN, LIMITED_AFTER_EFFECT };

static struct store *store;
static struct fake_clock fake;
static struct db *db;

static void run_sql(const char *sql)
{
	struct hx_error err;

	if (db->driver->script(db, sql, &err))
		fail_msg("%s: %s", sql, err.detail);
}

/* Claimed at that time, for a lease. */
static void put_claim(int id, int64_t kind, int64_t at_ms)
{
	char sql[500];

	snprintf(sql, sizeof sql,
		 "INSERT INTO hx_subject (id, kind, status, version, op, fence, owner, until, updated_at, seq, head)"
		 " VALUES (%d, %lld, 'RUNNING', 2, 2, 1, 'dead', %lld, %lld, 2, %s)",
		 id, (long long)kind, (long long)(at_ms + LEASE_MS), (long long)at_ms,
		 db->driver == &db_sqlite ? "x''" : "''");
	run_sql(sql);
}

static void put_job(int id, const char *queue)
{
	char sql[300];

	snprintf(sql, sizeof sql,
		 "INSERT INTO hx_job (subject, workspace, queue, workflow, action, effect_key, payload)"
		 " VALUES (%d, 'default', '%s', '', '', '', '1')",
		 id, queue);
	run_sql(sql);
}

static void put_all(int64_t at_ms)
{
	put_claim(RUN, run_kind(), at_ms);
	put_claim(BATCH, batch_kind(), at_ms);
	put_claim(AFTER_EFFECT, job_kind(), at_ms);
	put_claim(WORKERS, job_kind(), at_ms);
	put_claim(ENTITY, subject_kind("entity:", "order"), at_ms);
	put_job(AFTER_EFFECT, JOB_QUEUE_AFTER_EFFECTS);
	put_job(WORKERS, "mail");
	put_claim(LIMITED_RUN, run_kind(), at_ms);
	put_claim(LIMITED_AFTER_EFFECT, job_kind(), at_ms);
	put_job(LIMITED_AFTER_EFFECT, JOB_QUEUE_AFTER_EFFECTS);
	/* That one waits in the line of another limit decides nothing. */
	run_sql("INSERT INTO hx_slot (name, holder, held, at, key) VALUES (-1, 6, 1, 1, '1'), (-2, 7, 1, 1, '1'), (-3, 1, 0, 1, '1')");
}

/* How long its claim lasts yet, by the store's clock. */
static int64_t left_ms(int64_t id)
{
	static const struct db_stmt stmt = {.name = "test_left",
					    .sql = "SELECT until - hx_now_ms() FROM hx_subject WHERE id = ?1",
					    .in = "i",
					    .out = "i"};
	struct unit_result result;
	struct hx_error err;
	struct arena arena;
	struct unit unit;
	int64_t left;

	arena_init(&arena, 1u << 20);
	unit_init(&unit, /* op= */ 0);
	UNIT_ADD(&unit, UNIT_ANY, &stmt, db_int(id));
	assert_int_equal(db_run_unit(db, &unit, &result, &arena, &err), HX_OK);
	left = db_cell(&result.rows[0], 0, 0)->i;
	arena_release(&arena);
	return left;
}

static void begin(void)
{
	struct hx_error err;

	assert_int_equal(alone_begin(db, /* log= */ NULL, &err), HX_OK);
}

static int set_up(void **state)
{
	store = store_new(*(enum store_kind *)*state);
	fake_clock_init(&fake, (struct wall_time){NOW_MS});
	db_close(store_open_migrated(store));
	db = store_open_url(store->url, &fake.clock);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	db_close(db);
	store_free(store);
	return 0;
}

static void what_the_dead_had_goes_on(void **state)
{
	(void)state;
	put_all(NOW_MS);
	begin();
	MUST_HOLD(left_ms(RUN) <= 0, "a run waits for the lease of a dead node");
	MUST_HOLD(left_ms(BATCH) <= 0, "a batch waits for the lease of a dead node");
	MUST_HOLD(left_ms(AFTER_EFFECT) <= 0, "an after-effect waits for the lease of a dead node");
}

static void what_others_have_stays(void **state)
{
	(void)state;
	put_all(NOW_MS);
	begin();
	MUST_HOLD(left_ms(WORKERS) == LEASE_MS, "a worker that lives has lost its job");
	MUST_HOLD(left_ms(ENTITY) == LEASE_MS, "a call that may be under way is taken for one that is over");
}

/* Its service may still be at the call, so a second one is not made beside it: the limit counts both. */
static void what_a_limit_counts_stays(void **state)
{
	(void)state;
	put_all(NOW_MS);
	begin();
	MUST_HOLD(left_ms(LIMITED_RUN) == LEASE_MS, "a run under a limit calls beside the call of the dead");
	MUST_HOLD(left_ms(LIMITED_AFTER_EFFECT) == LEASE_MS,
		  "an after-effect under a limit calls beside the call of the dead");
	MUST_HOLD(left_ms(RUN) <= 0, "a run waits for the lease of a dead node");
}

/* They end as long after they were made as was meant, and not a day later. */
static void a_clock_that_was_set_back_makes_no_lease_longer(void **state)
{
	(void)state;
	put_all(NOW_MS + DAY_MS);
	begin();
	MUST_HOLD(left_ms(WORKERS) <= LEASE_MS, "a lease lasts for as long as the clock was set back");
	assert_true(left_ms(WORKERS) > 0);
}

static void on_postgresql_others_may_live(void **state)
{
	static const int all[] = {RUN, BATCH, AFTER_EFFECT, WORKERS, ENTITY};

	(void)state;
	put_all(INT64_C(4000000000000)); /* the server's clock is its own */
	begin();
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		MUST_HOLD(left_ms(all[i]) > DAY_MS, "the start of one node ends the claims of another");
}

int main(int argc, char **argv)
{
	static enum store_kind sqlite = STORE_SQLITE_FILE, postgres = STORE_POSTGRES;
#define ON(name, store)                                                                                                \
	{                                                                                                              \
#name, name, set_up, tear_down, &store                                                                 \
	}
	const struct CMUnitTest tests[] = {
		ON(what_the_dead_had_goes_on, sqlite),
		ON(what_others_have_stays, sqlite),
		ON(what_a_limit_counts_stays, sqlite),
		ON(a_clock_that_was_set_back_makes_no_lease_longer, sqlite),
		ON(on_postgresql_others_may_live, postgres),
	};

	ONLY_THE_NAMED(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
