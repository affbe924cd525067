/*
 * Aside: where units go that nobody else should wait for. For PostgreSQL; SQLite has one connection that writes, and its lane
 * makes do with turns (lane_limited.c).
 *
 * Two kinds come here from the lanes of a node: units with a limit (db/unit.h), which run statements of the user's or work on a
 * table of theirs, and units of ours that have met a row which somebody keeps locked. A few workers, each with a connection
 * of its own that it opens when it first has something to do, take them in three goes:
 *
 *   TOGETHER   up to ASIDE_TOGETHER of those of one workspace, in one transaction, within ASIDE_TRY_MS for all of it
 *       └ failed, in whatever way ─▶ ALONE   each by itself, within ASIDE_TRY_MS
 *                                       └ out of time ─▶ LONG   by itself, within its own limit
 *
 * ASIDE_TRIES workers do the first two, ASIDE_LONG others the last, and both are shared out between the workspaces (shares.h). So
 * what sleeps or waits for a lock holds up what its own workspace has besides, and the quick of that for little more than
 * ASIDE_TRY_MS, because while one is tried ALONE those that go TOGETHER do not wait for another one like it; the lanes, not at
 * all. One that has waited for its turn for ASIDE_WAIT_MS is given up, and certainly not done (HX_BUSY).
 *
 * Correctness is where it was: in the guards, and in the locks on the subjects, which are taken first here as there.
 */
#pragma once

#include "base/log.h"
#include "task/group.h"

#define ASIDE_TRIES 4
#define ASIDE_LONG 3
#define ASIDE_WORKERS (ASIDE_TRIES + ASIDE_LONG)
#define ASIDE_TOGETHER 64
#define ASIDE_TRY_MS 200
#define ASIDE_WAIT_MS 30000

struct aside;

enum errand_go { ERRAND_TOGETHER, ERRAND_ALONE, ERRAND_LONG };

/* One unit on its way. Whoever sends it owns it again once done() is called. */
struct errand {
	struct unit unit; /* what its parameters point to stays where it is, and as it is */
	enum errand_go go;
	/* In a worker's thread, as the last thing it does with the errand; the result's rows are in the arena. */
	void (*done)(struct errand *errand);

	struct unit_result result;
	struct arena arena;
	struct mono_time sent; /* before the transaction that counts was begun */

	struct errand *next; /* the worker's own */
	struct mono_time came;
};

struct aside_options {
	struct db_options db; /* its texts must outlive it */
	struct log *log;      /* may be NULL */
	int64_t resolve_ms;
};

enum hx_code aside_new(const struct aside_options *options, struct aside **ret_aside,
		       struct hx_error *err) HX_MUST_CHECK;
/* From any thread. Always taken. */
void aside_send(struct aside *aside, struct errand *errand);
/* From any thread: from this moment on whatever is here, or comes, is ended with HX_STOPPING. Takes NULL. */
void aside_stop_at(struct aside *aside, struct mono_time at);
/* After the lanes have stopped, and before they are freed: nothing is on its way any more. Takes NULL. */
void aside_free(struct aside *aside);
void aside_read_stats(struct aside *aside, struct group_stats *sum);
