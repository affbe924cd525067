/*
 * A side of an interleaving: a connection with a thread of its own, which runs one unit in steps on request.
 *
 *   statement by statement:  lock the subjects, if any · line 0 · line 1 · … · end      (row form)
 *   whole:                   the batch as the driver runs it · end              (set form, if there is a twin)
 *
 * The end is commit or rollback, whichever was asked for at the start. A step that waits for a lock of the other
 * side is reported as BLOCKED and goes on by itself when the lock is free.
 */
#ifndef HX_TESTS_SUPPORT_SIDE_H
#define HX_TESTS_SUPPORT_SIDE_H

#include <libpq-fe.h>

#include "db/driver.h"
#include "support/store.h"

enum side_state { SIDE_READY, SIDE_BLOCKED, SIDE_ENDED };

struct side_plan {
	const struct unit *unit;
	const struct unit *twin; /* whole only, may be NULL: a unit of the same kind on a subject of its own */
	bool whole;
	bool commits;
};

struct side;

/* The connection does not wait for the disk: these tests are about order, not about crashes. */
struct side *side_new(const struct store *store, const char *name);
/* Takes NULL. */
void side_free(struct side *side);
/* Begins a new plan. What it points to must live until the side has ended. */
void side_start(struct side *side, const struct side_plan *plan);
/* Takes the next step, and returns when it is done or waits for a lock (which `watcher` sees). */
enum side_state side_step(struct side *side, PGconn *watcher);
/* The same of a step that cannot wait for a lock: the other side is idle or waits, or this is the end. rest: after the locks, all lines
 * are one step. */
enum side_state side_step_free(struct side *side, bool rest);
/* A blocked side: waits until its step is done. */
enum side_state side_await(struct side *side, PGconn *watcher);
enum side_state side_state(struct side *side);
/* It is in no transaction. */
bool side_is_idle(struct side *side);
/* It has done nothing yet, and its next step locks its subjects. */
bool side_is_at_lock(struct side *side);
/* It is ready, and its next step is its end. */
bool side_ends_next(struct side *side);
/* Verdict, line and rows as text, once it has ended. */
const char *side_outcome(const struct side *side);

#endif
