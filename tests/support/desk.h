/*
 * A desk for jobs over a bare connection: drives the tasks of flow/job_work.h, unit by unit, each in a transaction of its own. For
 * tests of what they do to the store; the lane and the API are tested elsewhere. Functions that fail the test are for its
 * thread.
 */
#ifndef HX_TESTS_SUPPORT_DESK_H
#define HX_TESTS_SUPPORT_DESK_H

#include "base/id.h"
#include "db/driver.h"
#include "flow/job_work.h"

struct desk {
	const char *name; /* the owner */
	struct db *db;
	struct clock *clock;
	struct id_source ids;
	struct arena arena; /* of what was claimed last */
	struct arena rows;
	struct unit unit;
	struct unit_result result;
	struct hx_error err;
	struct mono_time sleeps_until; /* {0}: the task did not want to sleep */
	size_t n;                      /* claimed last */
	const struct job_claimed *jobs;
	const struct limits *limits; /* of the queues that are claimed from; NULL: none */
	const char *status;          /* settled last */
	int64_t until_ms;
};

/* Takes the connection over. Every desk of a test has a node number of its own. */
void desk_init(struct desk *d, const char *name, struct db *db, struct clock *clock, uint32_t node);
void desk_release(struct desk *d);

/* An answer to the task, with all that a lane puts in. */
void desk_give(struct desk *d, struct task *task, struct answer *answer);
/* Drives a task to its end, or to its first sleep: then HX_BUSY. */
enum hx_code desk_drive(struct desk *d, struct task *task);
/* Begins d->unit, and runs it. */
struct stamp desk_begin(struct desk *d);
enum unit_verdict desk_run(struct desk *d);

/* One job into this queue of the workspace "default"; its id. */
int64_t desk_push(struct desk *d, const char *queue, int64_t priority, int64_t due_at_ms);
/* The job of a step of run 7, whether that is there or not. */
int64_t desk_push_bounded(struct desk *d, const char *queue, int64_t in_flight_max);
/* Claims at most max of one queue, without waiting, into d->jobs; how many there are. */
size_t desk_claim(struct desk *d, const char *queue, int64_t max, int64_t lease_ms);
enum hx_code desk_settle(struct desk *d, enum job_settle_kind kind, int64_t subject, int64_t fence);

/* "STATUS attempt A[, due][, doubt][: error][ = output]" of a job; "none" when there is no such one. Until the next call. */
const char *desk_see(struct desk *d, int64_t subject);
/* Fails the test unless the subject's row and history tell one story. */
void desk_audit(struct desk *d, int64_t subject);

#endif
