/*
 * Looking for what is due: jobs to be delivered, runs to be driven, rows that retention lets go. Woken the moment something
 * falls due on this node (or, by a notification, on another), by its time, and at the latest every poll_ms.
 *
 *   START ─▶ (SLEEPING: a pause) ─▶ SCANNING ─┬ some ▶ DONE, with their ids
 *                                       ▲     └ none ▶ READING when the next is due ─▶ SLEEPING ─┐
 *                                       └────────────────────────────────────────────────────────┘
 */
#pragma once

#include "task/task.h"

#define DUE_WATCH_MAX 1024

/* What is looked for. Outlives its watches and never changes. */
struct due_source {
	const char *name;
	int64_t topic;   /* what wakes the watch; 0: nothing but time */
	int64_t poll_ms; /* it looks at the latest so long after it found nothing */
	/* Adds one line, its row: subject. */
	void (*scan)(const struct due_source *source, struct unit *unit, int64_t limit);
	/* Adds one line: the moment at which the next is due, as one row; NULL: none. May be NULL: only poll_ms counts. */
	void (*next)(const struct due_source *source, struct unit *unit);
	const void *context; /* the functions' own */
};

struct due_watch {
	struct task task;
	const struct due_source *source;
	int64_t limit;
	size_t found_n;
	int64_t found[DUE_WATCH_MAX];
	/* private */
	struct mono_time until;
	int64_t pause_ms;
};

/*
 * At most `limit` ids, which is at most DUE_WATCH_MAX. It ends only with some, or with the lane. It first sleeps for
 * pause_ms, or until its topic is woken: those found last time are being claimed and would only be found again.
 */
void due_watch_init(struct due_watch *w, const struct due_source *source, int64_t limit, int64_t pause_ms);
