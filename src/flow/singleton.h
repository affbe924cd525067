/*
 * `singleton` of a workflow (model/limits.h): while one run of a name is not terminal, a start is answered with that one.
 *
 *   start ─ the lock of the name ─┬ none is there that is not terminal ─▶ a row of the new run, and the run
 *                                 └ one is ─▶ LOST; singleton_find() says which
 *   retry, cancel out of FAILED ─ the lock ─▶ its row again, should a start have taken it away
 *   slot of a schedule, restart ─▶ a row, whoever else is there
 *
 * The row is written in the unit that starts the run, and which of them count is what the subjects say: nothing has to be done where a
 * run ends, so nothing can be forgotten there. Rows of runs that have ended go with the next start, the last ones with retention. The
 * lock is that of slots (slot.h): starts of one name come one after the other, on all nodes.
 *
 * Only starts are answered with another run. Whatever else moves a run that is there, or starts one under a key of the engine's own,
 * goes on, and counts for the starts after it; children count for nothing: they are their parents'.
 *
 * Invariant:
 *  S1  No start makes a run while one of its name is not terminal.
 */
#pragma once

#include "db/unit.h"
#include "model/limits.h"

/* 0: the workflow is no singleton. */
int64_t singleton_name(const struct limits *limits, struct slice workspace, const char *workflow, struct slice input,
		       struct arena *arena);

/* Before the run is created. LOST, by the second of the lines: one is there that is not terminal. */
void singleton_take(struct unit *unit, int64_t name, int64_t run);
#define SINGLETON_LINE_HELD 1

/* The same without asking who is there: of what is no start. */
void singleton_join(struct unit *unit, int64_t name, int64_t run);
/* In the unit that moves a run out of FAILED. */
void singleton_return(struct unit *unit, int64_t name, int64_t run);
/* With the run, when retention takes it. */
void singleton_forget(struct unit *unit, int64_t run);

/*
 * Which run a start is answered with: that of its key (.p NULL: none), else the one that is not terminal; `ended`: or else the last one
 * that was. For run_found().
 */
void singleton_find(struct unit *unit, struct slice workspace, struct slice key, int64_t name, bool ended);
