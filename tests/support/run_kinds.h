/*
 * The units of runs, for the list in unit_kinds.h: each is what the real task asks for once it has read the run (args->db),
 * or nothing, a unit without lines, where it finds nothing to do or is refused.
 *
 * The run of number n has that id, the key "key" and the workspace "w" and that number, which is no other's: so a claim in
 * it meets the jobs of this run alone. Other runs of that workspace, and jobs, have the id that kind_made() gives.
 *
 *   order    reserve (compensate) · charge (held where it is in doubt)
 *   await    reserve (compensate) · an event · charge
 *   sign     an approval · charge
 *   parcel   a worker's job · charge
 *   family   a child · charge; the child is of `leaf`, which is charge, and was made by the unit of the op CHILD_OP
 *   narrow   charge, for one run at a time, and one call of its action. Beside it there is another one (BESIDE)
 */
#ifndef HX_TESTS_SUPPORT_RUN_KINDS_H
#define HX_TESTS_SUPPORT_RUN_KINDS_H

#include "support/unit_kinds.h"

typedef void kind_build(struct unit *unit, const struct kind_args *args);

/* For fixtures, and random groups. */
kind_build run_make_order, run_make_await, run_make_sign, run_make_parcel;
kind_build run_make_narrow, run_make_beside, run_make_family;
kind_build
	run_rest_beside; /* whoever stands in line looks again in seconds: this one in an hour, as long as nobody wakes it */
kind_build run_lapse; /* its holder's time is over */

/* With the key that the fixture's run has, and with one of its own. */
kind_build run_create_key, run_create_own;
/* The same, by who begins its first step with it. */
kind_build run_begin_key, run_begin_own;
/* Whoever finds it due, or past its time. */
kind_build run_seize;
/* The same of the one beside it; and of a node that has found no slot for that, so that it stands in line. */
kind_build run_seize_beside, run_wait_beside;
/* Its holder, who has just heard this. */
kind_build run_done, run_not_done, run_not_done_for_good, run_in_doubt, run_beat;
kind_build run_cancel, run_cancel_at; /* at: of one that is owned, by the version that it has read */
kind_build run_pause, run_resume, run_retry, run_approve, run_resolve_done, run_resolve_not_done;
kind_build run_event, run_event_own; /* with an id that others send too, and with one of its own */
kind_build run_expire_old;
kind_build run_restart_first, run_migrate_next; /* to version 2, which says the same */
/* Of the child: whoever finds it due; its holder, who has just heard this; and whoever finds its parent's word. */
kind_build run_child_take, run_child_done, run_child_fails, run_child_obeys;
/* By the worker of its job. */
kind_build run_job_claim, run_job_complete, run_job_fail, run_job_fail_for_good, run_job_lapse;
/* As a claim leaves it, but of this job, not of the next in its queue. */
kind_build run_job_take;

/* ---- for the kinds of others ---- */

/* What a unit borrows lies here; and its workspace. */
struct arena *kind_arena(const struct kind_args *args);
struct slice kind_workspace(const struct kind_args *args);
const struct run_machine *kind_machine_of(const void *context, struct slice workflow, int64_t version);
const struct unit_result *kind_execute(const struct kind_args *args, struct unit *unit, struct arena *arena);
/*
 * Starts a task, and gives it what it reads, up to the unit that it writes: the first that has an op, or whose first statement is so
 * named. Where it would write nothing, the unit stays empty.
 */
void kind_build_write(struct unit *unit, const struct kind_args *args, struct task *task, const char *named,
		      struct arena *arena);

#endif
