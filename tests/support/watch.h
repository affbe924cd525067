/*
 * For tests of lanes: waiting for a subject to reach a status: read, sleep until it changes, read again.
 *
 *   START ─▶ READING ─┬ there ──────▶ HX_OK
 *                ▲    ├ no subject ─▶ HX_NOT_FOUND
 *                │    ├ too late ───▶ HX_WRONG_STATUS
 *                └────┴ SLEEPING until the deadline or a wake on the subject
 *
 * Every change of a subject wakes the topic of its id, after it is durable. A wake that comes between the
 * read and the sleep is kept, so nothing is missed and nothing is polled; a wake too many costs one read.
 */
#ifndef HX_TESTS_SUPPORT_WATCH_H
#define HX_TESTS_SUPPORT_WATCH_H

#include "flow/subject.h"
#include "task/task.h"

struct watch {
	struct task task;
	int64_t subject;
	const char *wanted;
	struct mono_time deadline;
	int64_t version; /* last read */
	enum { WATCH_NEW, WATCH_READING, WATCH_SLEEPING, WATCH_DONE } at;
	enum hx_code code;
};

void watch_init(struct watch *w, int64_t subject, const char *wanted, struct mono_time deadline);

#endif
