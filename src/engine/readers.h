/*
 * The readers: a few threads, each with a read-only connection of its own, for lists and searches. However long a
 * list takes, no batch, no lease and no timer of a lane waits for it.
 *
 *   submit ──▶ a bounded line for each workspace, in turn ──▶ whichever reader is free: START ─▶ ask ─▶ one transaction ─▶ answer ─▶ done
 *
 * They drive tasks that ask for nothing but units that read (struct single, say). Every unit has a transaction of
 * its own, begun after the task was submitted: it sees all that was committed before, so who has been told of a
 * write reads that write. A lost connection is made again by the next unit; what the store cannot do ends as
 * UNIT_FAILED, as in a lane. Answers bring no fresh ids: a read makes no rows.
 *
 * A store that only one connection can see (sqlite::memory:) has no readers: its lane reads, as it did.
 *
 * Limits: seats_max tasks wait, one more is refused with HX_BUSY; and of one workspace no more than there is room left, so that one
 * alone has half of it. What has not been answered within store_timeout_ms fails.
 * A statement that SQLite has begun is not broken off, so a stop waits for the two that run.
 */
#pragma once

#include "task/lane.h"

#define READERS_N 2
#define READERS_SEATS_MAX 2000

struct readers;

struct readers_options {
	const char *url; /* of a store whose schema is in place */
	struct clock *clock;
	struct log *log; /* for what the store fails of; may be NULL */
	const char *node;
	size_t seats_max;
	int64_t store_timeout_ms; /* how long a task waits for its rows, from its submission on; 0: for as long as it takes */
	struct lane *lane;        /* who reads when there can be no second connection; it outlives the readers */
};

/* Opens the connections and starts the threads. Options' texts must outlive the readers. */
enum hx_code readers_new(const struct readers_options *options, struct readers **ret,
			 struct hx_error *err) HX_MUST_CHECK;
/* HX_BUSY when the queue is full, HX_STOPPING when they are ending; the seat then still belongs to the caller. */
enum hx_code readers_submit(struct readers *readers, struct seat *seat) HX_MUST_CHECK;
/*
 * Nothing new is taken, what waits ends with HX_STOPPING, what runs ends as it ends. Returns when the threads have
 * ended. What was handed to the lane ends with the lane. Takes NULL.
 */
void readers_stop(struct readers *readers);
/* Stops them if need be. Before the lanes are closed: SQLite's log is put away by whoever closes last. */
void readers_free(struct readers *readers);
