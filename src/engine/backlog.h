/*
 * The backlog: how much is due and has not been taken, by queue (what this node leaves to a program that has the function for it
 * apart), and what waits for a person, by workflow; each with the age of the oldest. For metrics alone: nobody decides anything by it.
 *
 *   ask ─▶ the last count, at once ─┬ it is young ───▶ that is all
 *                                   └ it is old ─────▶ a reader counts again, for whoever asks next
 *
 * Nobody waits for the store, since numbers are wanted most when it is slow or gone. A server that nobody asks counts nothing.
 * Limits: BACKLOG_MAX of each kind are counted, every BACKLOG_EVERY_MS at most, and so seldom that counting takes no more than a
 * hundredth of a reader's time, however many rows have to be looked at. Of queues and workflows the BACKLOG_LABELS_MAX with the most
 * are told by name, the others together: a tenant that invents names does not fill anybody's monitoring.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "engine/definitions.h"
#include "engine/readers.h"
#include "flow/attention.h"
#include "flow/single.h"

#define BACKLOG_MAX 10000
#define BACKLOG_EVERY_MS 5000
#define BACKLOG_LABELS_MAX 50
#define BACKLOG_NAME_BYTES 256
#define BACKLOG_DUE_MAX (BACKLOG_LABELS_MAX + 16) /* one for others, and for what nothing is due of */
#define BACKLOG_ATTENTION_MAX (BACKLOG_LABELS_MAX + ATTENTION_KINDS)
#define BACKLOG_JOBS "jobs" /* the kind whose queues have names of the users' own */

struct backlog_count {
	const char *kind;              /* "jobs", "failed_run" */
	char name[BACKLOG_NAME_BYTES]; /* of the queue or the workflow; "": it has none */
	int64_t n;
	int64_t age_ms; /* of the oldest */
};

struct backlog_counts {
	bool known; /* false: nothing has been counted yet */
	size_t due_n, attention_n;
	struct backlog_count due[BACKLOG_DUE_MAX];
	struct backlog_count attention[BACKLOG_ATTENTION_MAX];
};

struct backlog {
	struct readers *readers;
	const struct definitions *definitions;
	struct clock *clock;
	pthread_mutex_t mutex; /* over the counts */
	struct backlog_counts counts;
	_Atomic int64_t again_ns; /* not before this moment */
	atomic_flag counting;     /* the seat is with the readers */
	struct mono_time began;
	struct seat seat;
	struct single single;
};

/* In zeroed memory, which stays where it is until the readers have stopped. */
void backlog_init(struct backlog *backlog, struct readers *readers, const struct definitions *definitions,
		  struct clock *clock);
/* From any thread: a copy of the last count. */
void backlog_read(struct backlog *backlog, struct backlog_counts *ret_counts);
/* For those who may not know what queues there are: all jobs together. */
void backlog_hide_queues(struct backlog_counts *counts);
