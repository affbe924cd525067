/*
 * For tests of a real lane with a real thread, on SQLite in memory and in a file. Time is moved by hand; whatever is waited for has a deadline.
 */
#ifndef HX_TESTS_UNIT_TASK_LANE_PARTY_H
#define HX_TESTS_UNIT_TASK_LANE_PARTY_H

#include "unit/task/party.h"

#define CALLERS 1200

static struct caller callers[CALLERS];
static struct caller holder;

static const struct claim_plan plan = {
	.subject = 1,
	.from = "open",
	.claim_into = "busy",
	.successful_state = "done",
	.revert_to = "open",
	.lease_ms = LEASE_MS,
	.action = "charge",
};

static inline enum store_kind kind_of(void **state)
{
	return *(enum store_kind *)*state;
}

/* Makes the subjects 1 to n, all in one go. */
static inline void make_subjects(size_t n)
{
	for (size_t i = 0; i < n; i++) {
		caller_probe(&callers[i], build_create, (int64_t)i + 1, 0);
		submit(party.lane, &callers[i]);
	}
	AWAIT(count_done(callers, n) == n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(callers[i].code, HX_OK);
}

static inline int64_t version_of(int64_t subject)
{
	return ask_lane(party.lane, build_read, subject, 0).ints[1];
}

static inline int64_t until_of(int64_t subject)
{
	return ask_lane(party.lane, build_read, subject, 0).ints[3];
}

/* One round trip: whatever was in the lane before has been looked at. */
static inline void settle(void)
{
	(void)ask_lane(party.lane, build_read, 1, 0);
}

/* The claim is under way, its action started and held. */
static inline void begin_slow_action(void)
{
	make_subjects(1);
	port_set(&party.port, /* held= */ true, false);
	caller_claim(&callers[0], &plan);
	submit(party.lane, &callers[0]);
	AWAIT(party.port.started_n == 1);
}

static inline int tear_down(void **state)
{
	(void)state;
	party_end();
	return 0;
}

static enum store_kind in_memory UNUSED = STORE_SQLITE_MEMORY, in_file UNUSED = STORE_SQLITE_FILE,
				 on_postgres UNUSED = STORE_POSTGRES;

#define ONE(test, kind)                                                                                                \
	{                                                                                                              \
#test, test, NULL, tear_down, &(kind)                                                                  \
	}
#define BOTH(test)                                                                                                     \
	{#test "_in_memory", test, NULL, tear_down, &in_memory},                                                       \
	{                                                                                                              \
#test "_in_a_file", test, NULL, tear_down, &in_file                                                    \
	}

#endif
