/*
 * The parts of driving a run (run_drive.c has the order of things): what comes next (run_plan.c), the texts of calls
 * (run_text.c), the unit of a move (run_units.c). Functions of the task and of the answer alone.
 */
#pragma once

#include "flow/run_drive.h"

static inline const struct run_definition *drive_definition(const struct run_drive *d)
{
	return d->row.definition;
}

/* Whose attempt is under way, or was: the step where it stands, or the one that is being compensated. */
static inline const struct run_step *drive_step(const struct run_drive *d)
{
	return &drive_definition(d)->steps[d->row.undo >= 0 ? (size_t)d->row.undo : d->row.position];
}

/* The same, or NULL where a run stands at its end. */
static inline const struct run_step *drive_step_if_any(const struct run_drive *d)
{
	return d->row.undo >= 0 || d->row.position < drive_definition(d)->steps_n ? drive_step(d) : NULL;
}

/* The run whose events are for the step where it stands: decisions come to a part itself, events to the run around it. */
static inline int64_t drive_hears(const struct run_drive *d)
{
	bool event = drive_step(d)->type == RUN_EXTERNAL_EVENT;

	return event && d->row.around ? d->row.around : d->row.subject;
}

/* In whose name a call is made: what another run has done is undone in that one's. undone NULL: nothing is. */
static inline int64_t drive_acts_for(const struct run_drive *d, const struct run_done *undone)
{
	return undone && undone->made_by ? undone->made_by : d->row.subject;
}

static inline int64_t run_lease_ms(const struct run_drive *d, const struct run_step *step)
{
	if (step && step->lease_ms)
		return step->lease_ms;
	return drive_definition(d)->lease_ms ? drive_definition(d)->lease_ms : d->policy->lease_ms;
}

/* ---- run_plan.c ---- */

/*
 * Decides what comes next, from the row and, where d->knows, from the outcome: fills d->move, d->done and what is begun after
 * it. False: there is nothing to do. A full arena is told by d->arena->failed.
 */
bool run_plan(struct run_drive *d, const struct answer *answer);
/* The move that is left when there is no room for another: the run fails, and says so. */
void run_plan_give_up(struct run_drive *d, const struct answer *answer);

/* ---- run_text.c: into the task's arena, which remembers whether there was room ---- */

/* undone: of its compensation; NULL: of the step itself. */
struct slice run_make_key(const struct run_drive *d, const struct run_step *step, int64_t redo,
			  const struct run_done *undone);
/*
 * What a call is told: of a step, or of its compensation (then also the step's output); the same for every try. HX_OK, or why
 * an expression could not be evaluated.
 */
enum hx_code run_make_body(const struct run_drive *d, const struct run_done *done, const struct run_step *step,
			   const struct run_done *undone, struct slice *ret_body, struct hx_error *err) HX_MUST_CHECK;
/* The evaluated input of a step, seen from what was done before it; undone: of its compensation. */
enum hx_code run_make_input(const struct run_drive *d, const struct run_done *done, const struct run_step *step,
			    const struct run_done *undone, struct slice *ret_input, struct hx_error *err) HX_MUST_CHECK;
enum hx_code run_evaluate(const struct run_drive *d, const struct run_done *done, const struct expression *expression,
			  struct slice *ret_text, struct hx_error *err) HX_MUST_CHECK;
/* The same, with what a body has saved over the state; and with an item. */
enum hx_code run_evaluate_over(const struct run_drive *d, const struct run_done *done, struct slice saved,
			       const struct expression *expression, struct slice *ret_text,
			       struct hx_error *err) HX_MUST_CHECK;
enum hx_code run_evaluate_item(const struct run_drive *d, const struct run_done *done,
			       const struct expression *expression, struct slice item, struct slice index,
			       struct slice *ret_text, struct hx_error *err) HX_MUST_CHECK;
/* The input of the run; of a part that of the run around it. */
struct slice run_input(const struct run_drive *d);
/* The state as expressions see it, and what a part hands on: all that it and the bodies before it have saved. */
void run_write_seen_state(const struct run_drive *d, const struct run_done *done, struct strbuf *out);
void run_write_part_output(const struct run_drive *d, struct strbuf *out);
/* {"code", "message", "step"}; the message is cut to a decent length. step NULL: the run as a whole. */
struct slice run_make_error(const struct run_drive *d, const char *code, struct slice message,
			    const struct run_step *step);

/* What the run is searched by after the move, if the move changes it. */
void run_plan_attributes(struct run_drive *d);

/* ---- run_limit.c ---- */

/* What the action that is about to be begun is counted by, from the call's body. */
void run_count_action(struct run_drive *d, const struct action *action, struct slice body);
/* The slot of an action that the run holds after the move; 0: none. */
int64_t run_line_after(const struct run_drive *d);
/* In its move, after its guard: a slot is taken where it goes on to hold the run, or locked to be let go of. */
void run_add_slot(const struct run_drive *d, struct unit *unit);
/* In its move, after all else. */
void run_end_slot(const struct run_drive *d, struct unit *unit);
void run_build_line(const struct run_drive *d, struct unit *unit);

/* ---- run_units.c ---- */

void run_build_move(const struct run_drive *d, struct unit *unit);

/* ---- run_failure.c ---- */

/* In the move that fails it: the jobs that tell of it. */
void run_add_effects(const struct run_drive *d, struct unit *unit);
