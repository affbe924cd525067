/*
 * For tests of jobs of workers over SQLite: a desk on a store in memory whose clock is moved.
 */
#ifndef HX_TESTS_UNIT_FLOW_JOB_DESK_H
#define HX_TESTS_UNIT_FLOW_JOB_DESK_H

#include "world.h"

#include <stdio.h>

#include "base/json_string.h"
#include "flow/backoff.h"
#include "flow/run.h"
#include "support/desk.h"

#define DEFAULT slice_str("default")
#define LEASE 30000
#define MINUTE 60000

static struct fake_clock fake;
static struct desk w;

static inline int set_up(void **state)
{
	struct migrate_status before;
	struct hx_error err;
	struct db *db;

	(void)state;
	fake_clock_init(&fake, (struct wall_time){1800000000000});
	struct db_options options = {.url = "sqlite::memory:", .clock = &fake.clock};

	assert_int_equal(db_open(&options, &db, &err), HX_OK);
	assert_int_equal(migrate_run(db, &before, &err), HX_OK);
	desk_init(&w, "me", db, &fake.clock, 5);
	return 0;
}

static inline int tear_down(void **state)
{
	(void)state;
	desk_release(&w);
	return 0;
}

static inline enum hx_code push(struct job_push_item *items, size_t n)
{
	struct job_push p;

	job_push_init(&p, DEFAULT, items, n, &w.arena);
	return desk_drive(&w, &p.task);
}

static inline enum hx_code lapse(int64_t id, int64_t fence)
{
	struct job_settle_request rq = {.kind = JOB_LAPSE, .subject = id, .fence = fence};
	struct job_settle settle;

	job_settle_init(&settle, &rq, &w.arena);
	return desk_drive(&w, &settle.task);
}

static inline int64_t claimed(void)
{
	int64_t id = desk_push(&w, "q", 0, 0);

	assert_int_equal(desk_claim(&w, "q", 1, LEASE), 1);
	assert_int_equal(w.jobs[0].subject, id);
	assert_int_equal(w.jobs[0].until_ms, fake.wall.ms + LEASE);
	return id;
}

static inline enum hx_code fail_for_good(int64_t id, int64_t fence, struct slice words)
{
	struct job_settle_request rq = {.kind = JOB_FAIL,
					.workspace = DEFAULT,
					.subject = id,
					.fence = fence,
					.owner = slice_str("me"),
					.output = words};
	struct job_settle settle;

	job_settle_init(&settle, &rq, &w.arena);
	return desk_drive(&w, &settle.task);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
