/*
 * What is delivered to a hook, once for each event: the rows by which a repeated delivery is known stand in the unit that does
 * what the hook is for, so both are there or neither.
 *
 *   signal (start: true)   run_verb, with `along` below: the event, and the run          flow/run_verb.h
 *   start                  the run, under the key of the delivery                        hook_build_start()
 *   push                   job_push, with `along`                                        flow/job_work.h
 *   fire                   a job of the engine's own, which fires the step               hook_build_fire()
 *   nothing (a run that is past it, `when` is false)                                     hook_build_seen()
 *
 * Invariants:
 *  H1  One effect for each (hook, id) while its row is kept; where the id is not signed, for each (hook, body) too.
 *  H2  No row without the effect that it stands for, or the decision to do nothing.
 *  H3  The effect's key is hook:NAME:ID. It names a run, an event of a run, a job: so the event has no second effect after its row
 *      was let go, as long as these are there.
 */
#pragma once

#include "flow/job_work.h"
#include "flow/run_verb.h"

#define HOOK_ROWS_MAX 2
#define HOOK_FIRE_ACTION "fire"     /* of a job of no workflow … */
#define HOOK_FIRE_FUNCTION "(fire)" /* … and who carries it out: no definition can name that */

/* Which delivery it is. Texts are borrowed until the unit is answered. */
struct hook_seen {
	struct run_along along; /* for the verb; set by hook_seen_init() */
	struct job_along push;  /* for the push */
	struct slice hook;
	size_t n;
	struct slice names[HOOK_ROWS_MAX]; /* "id/…", "body/…" */
	int64_t keep_ms;
	unsigned line;       /* of the unit that was built last: the first of ours */
	unsigned start_line; /* the same: the first of the run */
};
void hook_seen_init(struct hook_seen *seen);

/* The rows alone. LOST: seen before. Adds to a unit whose lines stand before them. */
void hook_build_seen(struct hook_seen *seen, const struct stamp *stamp, struct unit *unit);
/* LOST: the event has its run, or was seen. */
void hook_build_start(struct hook_seen *seen, const struct stamp *stamp, const struct run_spec *spec,
		      struct unit *unit);
/* Was it lost because another run of its singleton is there (flow/singleton.h)? */
bool hook_start_was_held(const struct hook_seen *seen, const struct run_spec *spec, const struct unit_result *result);

struct hook_fire {
	int64_t subject; /* of the job */
	struct slice workspace, key;
	struct slice payload; /* {"workflow", "id", "step", "workspace", "requester", "input"} */
};
/* The job alone. LOST: its key has one. */
void hook_add_fire(struct unit *unit, const struct stamp *stamp, const struct hook_fire *fire);
/* LOST: the event has its job, or was seen. */
void hook_build_fire(struct hook_seen *seen, const struct stamp *stamp, const struct hook_fire *fire,
		     struct unit *unit);

/* Retention: rows whose time was over age_ms ago. Row: n. Then one by one. */
void hook_scan_expired(struct unit *unit, int64_t age_ms, int64_t limit);
void hook_expire(struct unit *unit, int64_t n, int64_t age_ms);
