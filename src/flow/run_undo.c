/*
 * Going back: what is done and has a `compensate` is undone, the last step first, one marker for each; the terminal status
 * comes last. See run_plan.h.
 */
#include "flow/run_plan.h"

const struct run_done *plan_to_undo(const struct run_drive *d)
{
	size_t below = d->move.undone >= 0 ? (size_t)d->move.undone : d->undone_from;

	for (const struct run_done *done = d->done; done; done = done->before)
		if (done->step->position < below && (done->step->compensate || run_step_has_children(done->step)) &&
		    !done->undone_at && strcmp(done->status, RUN_STEP_COMPLETED) == 0)
			return done;
	return NULL;
}

static void cancelled(struct run_drive *d)
{
	d->move.to = RUN_CANCELLED;
	d->move.write = RUN_WRITES_END;
	d->move.next = d->row.undo < 0 && d->move.rows_n ? d->move.next : d->row.position;
	d->move.undo = -1;
	d->move.keeps = false;
	d->move.doubt = false;
	d->move.transitions++;
	d->move.attempt = d->move.stood.attempt;
	d->move.started_at = d->move.stood.started_at;
	d->move.step_status = d->move.stood.status.p;
	d->move.error = d->move.stood.error;
}

/* Nothing is left to find out about the step where it stands; one that has ended in this very move has its row. */
static struct run_stood stood_of(const struct run_drive *d)
{
	const struct run_row *row = &d->row;

	if (d->move.rows_n)
		return (struct run_stood){.set = true};
	return (struct run_stood){true, row->attempt, row->step_started_at, row->step_status, row->error};
}

/* The children of the step where the run stands come first. True: there are none, or all are cancelled. */
static bool undo_standing(struct run_drive *d, const struct answer *answer)
{
	size_t position = d->row.position;

	if (d->move.rows_n || d->row.undo >= 0 || d->row.stood.set || position == drive_definition(d)->steps_n ||
	    !run_step_has_children(&drive_definition(d)->steps[position]))
		return true;
	if (!d->left_standing) /* none is made any more: once is enough */
		d->left_standing = plan_undo_children(d, answer, &drive_definition(d)->steps[position]);
	return d->left_standing;
}

/*
 * Undoes a step without a call: by statements in this unit, or by its children. The marker comes last. True: on to the
 * next step.
 */
static bool undo_here(struct run_drive *d, const struct answer *answer, const struct run_done *done)
{
	const struct action *action = done->step->compensate;

	if (d->move.undone >= 0 || d->move.rows_n) { /* one at a time; the next move goes on */
		plan_go_on(d);
		return false;
	}
	if (run_step_has_children(done->step)) {
		if (!plan_undo_children(d, answer, done->step)) {
			d->move.undo = (int64_t)done->step->position;
			return false;
		}
	} else if (action_is_inside(action) && !plan_sql(d, answer, done->step, action, done)) {
		return false;
	}
	d->move.undone = (int64_t)done->step->position;
	d->move.transitions++;
	return true;
}

void plan_undo(struct run_drive *d, const struct answer *answer)
{
	const struct run_done *done;

	if (!undo_standing(d, answer))
		return;
	if (!d->move.stood.set)
		d->move.stood = stood_of(d);
	while ((done = plan_to_undo(d))) {
		bool same = d->row.undo == (int64_t)done->step->position && d->move.undone < 0;
		bool calls = !run_step_has_children(done->step);

		if (calls && same && !d->knows && d->row.wait_until > plan_now_ms(d, answer)) {
			plan_rest_on(d);
			return;
		}
		if (calls && action_is_outside(done->step->compensate)) {
			plan_begin(d, answer, done->step, done, same ? d->row.attempt + 1 : 1,
				   /* doubt= */ same && d->row.doubt);
			return;
		}
		if (!undo_here(d, answer, done))
			return;
	}
	cancelled(d); /* mutant: terminal-before-undo */
}
