/*
 * Planning the next move of a run: the pieces that run_plan.c puts together. Each fills in a part of d->move; pure.
 *
 *   run_move.c    how a move may end (rest, hold, fail, complete), and what it may begin
 *   run_brood.c   steps with children, both ways
 *   run_failure.c what a failure comes to, and the time of the whole run
 *   run_steps.c   going forward: step after step, as far as one move may go
 *   run_undo.c    going back: compensation, the last step first
 *   run_plan.c    which of them, from what is known
 */
#pragma once

#include <string.h>

#include "flow/run_parts.h"

static inline bool plan_is_at(const struct run_drive *d, const char *status)
{
	return strcmp(d->row.status, status) == 0;
}

/* Moments that were read are compared with the store's clock, which decided that the run is due. */
static inline int64_t plan_now_ms(const struct run_drive *d, const struct answer *answer)
{
	return d->holding ? answer->now.ms : d->row.now;
}

static inline int64_t plan_later(int64_t ms, int64_t by_ms)
{
	return by_ms < INT64_MAX - ms ? ms + by_ms : INT64_MAX;
}

/* Does what stands in the row about the current step hold for this position? */
static inline bool plan_is_standing(const struct run_drive *d, size_t position)
{
	return position == d->row.position && d->move.rows_n == 0;
}

static inline int64_t plan_started_at(const struct run_drive *d, const struct answer *answer, size_t position)
{
	return plan_is_standing(d, position) && d->row.step_started_at ? d->row.step_started_at : answer->now.ms;
}

/* ---- run_move.c ---- */

/* The run waits, in the status that fits: a cancel or a pause that came meanwhile stays. The caller has said for what. */
void plan_rest(struct run_drive *d, const char *to);
/* What is known about the current step stays as it is; nothing but the due time goes. */
void plan_rest_unchanged(struct run_drive *d, bool doubt);
/* It was looked at too early, for whatever reason: it rests on, until the same moment. */
void plan_rest_on(struct run_drive *d);
void plan_fail(struct run_drive *d, const char *code, struct slice message, const struct run_step *step);
/* For a person: what the step did is not known, and nothing may be tried any more. */
void plan_hold(struct run_drive *d, const char *code, struct slice message);
/* A step is done: its row, and what the next ones see. */
void plan_ended(struct run_drive *d, const struct answer *answer, const struct run_step *step, const char *status,
		int64_t attempt, struct slice output, int64_t started);
void plan_complete(struct run_drive *d);
/* While a run is cancelled, the last word about it goes along: of the compensation that is tried again, else of the step. */
void plan_carry_words(struct run_drive *d);
/* An attempt of a step, or (undone) of its compensation. */
void plan_begin(struct run_drive *d, const struct answer *answer, const struct run_step *step,
		const struct run_done *undone, int64_t attempt, bool doubt);
/* In doubt: asks the action's probe, which has no effect. The attempt stays what it is. */
void plan_begin_probe(struct run_drive *d, const struct answer *answer, const struct run_step *step);
/* sql: the statements run in the unit that records the step, which is all that this move does. False: the move has ended. */
bool plan_sql(struct run_drive *d, const struct answer *answer, const struct run_step *step,
	      const struct action *action, const struct run_done *undone);
/*
 * The move has taken in as much as it may: it keeps the run, and the next one goes on from here. No attempt is begun, and
 * where that does not follow from the kind of the next step, the row says so.
 */
void plan_go_on(struct run_drive *d);

/* ---- run_steps.c ---- */

void plan_steps(struct run_drive *d, const struct answer *answer);
/* What the step waits for has not come in time. True: the step is passed over; false: the move has ended with that. */
bool plan_timed_out(struct run_drive *d, const struct answer *answer, const struct run_step *step, int64_t started);

/* ---- run_brood.c ---- */

/* A step with children, from what is known of them: true: it is done; else the move ends at it, or d->wants_children is set. */
bool plan_children(struct run_drive *d, const struct answer *answer, const struct run_step *step);
/* The run ends here, for that reason: its open children are asked to, and it waits for them; then it fails. */
void plan_stop_children(struct run_drive *d, const struct answer *answer, const struct run_step *step, const char *code,
			struct slice message);
/* True: all children of the step are cancelled. Else they are asked to, and the run waits; or d->wants_children is set. */
bool plan_undo_children(struct run_drive *d, const struct answer *answer, const struct run_step *step);

/* ---- run_undo.c ---- */

void plan_undo(struct run_drive *d, const struct answer *answer);
/* The last step that is done and has yet to be compensated. */
const struct run_done *plan_to_undo(const struct run_drive *d);

/* ---- run_failure.c ---- */

/* Is the time of the whole run over? */
bool plan_is_late(const struct run_drive *d, const struct answer *answer);
/* A run that rests is looked at when its time is over, at the latest. */
void plan_reckon_with_time(struct run_drive *d, const struct answer *answer);
/* If the move fails the run: who is told, and whether it is undone. `input`: what they are told of its input. */
void plan_failure(struct run_drive *d, const struct answer *answer, struct slice input);
