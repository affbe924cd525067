/* Two desks that claim jobs from one store: what test_job_claim.c and test_job_claim_races.c share. */
#ifndef HX_TESTS_CONTRACT_JOB_DESKS_H
#define HX_TESTS_CONTRACT_JOB_DESKS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "contract/both_stores.h"
#include "support/desk.h"
#include "support/must_hold.h"

#define LEASE_MS 60000
#define BOUND 3
#define PAST_MS (-60000) /* over before it began */

static struct {
	struct store *store;
	struct desk a, b;
} world;

static inline int set_up(enum store_kind kind)
{
	struct db *db;

	world.store = store_new(kind);
	db = store_open_migrated(world.store);
	desk_init(&world.a, "a", db, clock_system(), 1);
	desk_init(&world.b, "b", store_open(world.store), clock_system(), 2);
	return 0;
}

static inline int tear_down(void **state)
{
	(void)state;
	desk_release(&world.a);
	desk_release(&world.b);
	store_free(world.store);
	return 0;
}

static inline int64_t now_ms(void)
{
	return clock_wall(clock_system()).ms;
}

/* For how long a claim that found nothing sleeps. */
static inline int64_t sleeps_for(struct desk *d, const char *queue)
{
	struct job_claim_request rq = {.workspace = slice_str("default"),
				       .owner = slice_str(d->name),
				       .queues_n = 1,
				       .queues = {slice_str(queue)},
				       .max = 1,
				       .lease_ms = LEASE_MS,
				       .wait_ms = JOB_WAIT_MS_MAX};
	struct mono_time before = clock_mono(d->clock);
	struct job_claim claim;

	arena_reset(&d->arena);
	job_claim_init(&claim, &rq, &d->arena);
	assert_int_equal(desk_drive(d, &claim.task), HX_BUSY);
	return (d->sleeps_until.ns - before.ns) / 1000000;
}

#define SQLITE(name) cmocka_unit_test_setup_teardown(name, set_up_sqlite, tear_down)
#define POSTGRES(name) cmocka_unit_test_setup_teardown(name, set_up_postgres, tear_down)
#define BOTH(name) SQLITE(name), POSTGRES(name)

#endif
