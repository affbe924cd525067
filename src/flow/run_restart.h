/*
 * Restarting a run from a step: a new run goes on in its place, with its own keys, and the old one is over for good.
 *
 *   old   FAILED or COMPLETED ─ restart ─▶ the same, restarted_by: every verb is HX_RESTARTED from then on
 *   new   ─▶ PENDING, restart_of, with the rows of all steps before the one that it begins with
 *
 * All of it is one unit, guarded by the version of the old run: of two restarts one wins, and a retry or a cancel that came first
 * leaves nothing to restart.
 *
 * What is done passes to the new run, and with it the duty to undo it: a row says by whom its step was carried out, and its
 * compensation has that run's key, and is told that run's input. So do the children of those steps, which have the new run as their
 * parent from then on; and the events that nobody has taken. What the old run had done from that step on stays as it is: it is done
 * again, and nobody undoes it.
 *
 * Invariants (the simulator checks them on every edge):
 *  T1  A run has at most one restart, and never changes after it.
 *  T2  A step with a compensation is undone by one run, under one key: (the run that carried it out, step, "undo").
 */
#pragma once

#include "flow/run.h"

struct run_restart {
	int64_t subject; /* of the new one */
	const struct run_step *from;
	struct slice requester, traceparent;
	struct slice input; /* .p NULL: that of the old one */
	/* private: JSON, in the arena of run_restart_prepare() */
	struct slice positions, parents, attributes;
	int64_t singleton; /* flow/singleton.h */
};
/* Can it begin there? Only where the old one has been. */
bool run_has_reached(const struct run_row *row, const struct run_step *step);
/* Of what is kept with the steps that pass, in bytes. */
size_t run_restart_bytes(const struct run_row *old, const struct run_restart *restart);
/* What does not change while it is written; false: the arena is full. */
bool run_restart_prepare(const struct run_row *old, struct arena *arena, struct run_restart *restart);
/* After the guarded write of the old one's subject. */
void run_restart_add(struct unit *unit, const struct stamp *stamp, const struct run_row *old,
		     const struct run_restart *restart);
