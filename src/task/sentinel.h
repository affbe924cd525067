/*
 * The sentinel: is the store there, for every lane? For /readyz and whoever else wants the truth, and not what was true of
 * the last thing that somebody happened to write.
 *
 *                 a probe of some lane failed, or did not come back in time
 *        THERE ───────────────────────────────────────────────────────────────▶ AWAY ──┐ probes every AWAY_MS
 *          ▲ asked: probes all lanes, then answers                               │  ▲──┘ asked: answers at once
 *          └─────────────────────────────────────────────────────────────────────┘
 *                              all probes came back
 *
 * A probe is a unit in each lane that could write, and changes nothing: on SQLite it takes the write lock for a moment, on
 * PostgreSQL it is a round trip. A lane that is at somebody's statement, or waits for its store, gives the probe back unsent
 * when its time is over (lane_wait.c). One whose thread stands in a disk that hangs does not bring it back at all. Of both it is
 * said that the lane does not move; the sentinel has a thread of its own, and says so in time.
 *
 * Invariants: a question is answered exactly once, within timeout_ms; a lane has at most one probe of ours.
 */
#pragma once

#include "task/lanes.h"

struct sentinel;

struct sentinel_options {
	const struct lanes *lanes; /* outlive it */
	int64_t timeout_ms;
	int64_t every_ms; /* it also looks by itself, this often; 0: only when it is asked, and while the store is away */
	struct log *log; /* may be NULL */
};

/* The caller's, until it is answered: in the sentinel's thread, or before sentinel_ask() returns. It must not block. */
struct sentinel_question {
	void (*answered)(struct sentinel_question *question,
			 const char *why); /* why: NULL, it is there; else in words */
	struct sentinel_question *next;
};

enum hx_code sentinel_new(const struct sentinel_options *options, struct sentinel **ret_sentinel,
			  struct hx_error *err) HX_MUST_CHECK;
/* From any thread. */
void sentinel_ask(struct sentinel *sentinel, struct sentinel_question *question);
/* As far as is known. */
bool sentinel_sees_store(struct sentinel *sentinel);
/* Before the lanes stop, so that this is not taken for a store that is lost. Who has asked is answered. Takes NULL. */
void sentinel_stop(struct sentinel *sentinel);
/* Stops it if need be. The lanes have stopped. Takes NULL. */
void sentinel_free(struct sentinel *sentinel);
