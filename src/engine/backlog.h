/*
 * The backlog: how many after-effects, jobs of workers, runs and batches are due and have not been taken. For metrics alone:
 * nobody decides anything by it.
 *
 *   ask ─▶ the last count, at once ─┬ it is young ───▶ that is all
 *                                   └ it is old ─────▶ a reader counts again, for whoever asks next
 *
 * Nobody waits for the store, since numbers are wanted most when it is slow or gone. A server that nobody asks counts nothing.
 * Limits: BACKLOG_MAX of each are counted, every BACKLOG_EVERY_MS at most, and so seldom that counting takes no more than a
 * hundredth of a reader's time, however many rows have to be looked at.
 */
#ifndef HX_ENGINE_BACKLOG_H
#define HX_ENGINE_BACKLOG_H

#include <stdatomic.h>

#include "engine/readers.h"
#include "flow/single.h"

#define BACKLOG_MAX 10000
#define BACKLOG_EVERY_MS 5000

enum { BACKLOG_AFTER_EFFECTS, BACKLOG_JOBS, BACKLOG_RUNS, BACKLOG_BATCHES, BACKLOG_KINDS };

struct backlog {
	struct readers *readers;
	struct clock *clock;
	_Atomic int64_t counts[BACKLOG_KINDS]; /* -1: not yet */
	_Atomic int64_t again_ns;              /* not before this moment */
	atomic_flag counting;                  /* the seat is with the readers */
	struct mono_time began;
	struct seat seat;
	struct single single;
};

/* In zeroed memory, which stays where it is until the readers have stopped. */
void backlog_init(struct backlog *backlog, struct readers *readers, struct clock *clock);
/* From any thread. "after_effects", "jobs", "runs", "batches". */
const char *backlog_name(int kind);
void backlog_read(struct backlog *backlog, int64_t ret_counts[BACKLOG_KINDS]);

#endif
