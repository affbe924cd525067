/*
 * How many runs of a workflow are in which status, without a look at them.
 *
 *   unit that changes a status ─▶ hx_history ── trigger ─▶ hx_run_moved: from, to, how many      in the same transaction
 *                       SQLite ── run_count_changed() ──▶ once for all that a transaction has of the same kind
 *   retention takes a run ─────────────────────────────▶ hx_run_moved: from                      likewise
 *   once a second, a node ── run_count_fold() ─▶ hx_run_count                                    some thousand at once
 *
 *  C1  What is shown is the counts and the changes that are not folded, in one statement: exact, whoever folds at that moment.
 *  C2  A change is folded once: it is deleted in the unit that adds it to its count.
 *
 * SQLite has no trigger that sees all rows of a statement. One for each row makes every statement that could set it off keep what it
 * changes in a journal of its own: with the fold of so many rows that was a fifth of a run. So whoever changes a status says so.
 *
 * Runs that retention has taken are not counted, as lists do not have them.
 */
#pragma once

#include "db/unit.h"

#define RUN_COUNT_STATUSES 8 /* as many as there are: run_statuses, in their order */

/*
 * For SQLite, and nothing elsewhere: in the unit that changes them, n runs of a workflow have gone from one status to another. from "":
 * they are made. Nothing, where both are the same.
 */
void run_count_changed(struct unit *unit, struct slice workspace, const char *workflow, const char *from,
		       const char *to, int64_t n);
/* The same for whoever has no more of it than its number. */
void run_count_changed_of(struct unit *unit, int64_t subject, const char *from, const char *to);
/* And for children of several workflows, made by the lines before it in a unit with this op. */
void run_count_made(struct unit *unit, int64_t parent, int64_t op);

/* A row for each workflow after this one, by name: it, and how many in each status. workflow empty: all */
void run_count_list(struct unit *unit, struct slice workspace, struct slice workflow, struct slice after,
		    int64_t limit);
/* In the unit that expires it, after its verdict. */
void run_count_expired(struct unit *unit, int64_t subject);

/* For a feeder: a row, if there is anything to fold; and a part of it. LOST: there is nothing. The other numbers are not looked at. */
void run_count_scan(struct unit *unit, int64_t age_ms, int64_t limit);
void run_count_fold(struct unit *unit, int64_t subject, int64_t age_ms);
