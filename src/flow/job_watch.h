/*
 * Looking for jobs that are due: woken the moment one is made on this node, by its time, and at the latest every
 * JOB_POLL_MS for those that other nodes have made.
 *
 *   START ─▶ SCANNING ─┬ some ▶ DONE, with their ids
 *               ▲      └ none ▶ READING when the next is due ─▶ SLEEPING ─┐
 *               └───────────────────────────────────────────────────────────┘
 */
#ifndef HX_FLOW_JOB_WATCH_H
#define HX_FLOW_JOB_WATCH_H

#include "task/task.h"

#define JOB_WATCH_MAX 64
#define JOB_POLL_MS 2000
#define JOB_PAUSE_MS 10

struct job_watch {
	struct task task;
	int64_t limit;
	size_t found_n;
	int64_t found[JOB_WATCH_MAX];
	/* private */
	enum { JOB_WATCH_NEW, JOB_WATCH_SCANNING, JOB_WATCH_READING, JOB_WATCH_SLEEPING, JOB_WATCH_DONE } at;
	struct wall_time until;
	bool pause;
};

/*
 * At most `limit` ids, which is at most JOB_WATCH_MAX. It ends only with some, or with the lane. `pause` first sleeps
 * for JOB_PAUSE_MS, or until a job is made: those found last time are being claimed and would only be found again.
 */
void job_watch_init(struct job_watch *w, int64_t limit, bool pause);

#endif
