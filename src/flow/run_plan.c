/*
 * What comes next in a run: from its row and, where one is known, from the outcome of what was begun. Pure: it looks at
 * nothing but the task and the answer, and writes nothing but the task.
 *
 *   an outcome is known ──────────────────────▶ plan_outcome ─┬ done ───────▶ its row, and on
 *   a job is out ─────────────────────────────▶ plan_job ─────┤ failed ─────▶ rest for the backoff, or fail
 *   something was begun and nobody knows ─────▶ plan_doubt ───┤ unknown ────▶ once more, probe, or hold for a person
 *   CANCELLING ───────────────────────────────▶ plan_undo     │
 *   PAUSED ───────────────────────────────────▶ rest          └ timed out ──▶ fail, or skip it and on
 *   else ─────────────────────────────────────▶ plan_steps: conditions, waits, sql and noops in one go, as far as one
 *                                                move may go; then the next task is begun, or the run rests, or it ends
 */
#include "flow/run_plan.h"

#include "flow/job.h"
#include "flow/what_next.h"

/* So often may nodes be lost over one step, beyond its own attempts, before a person has to look at it (poison). */
#define TAKEOVERS_MAX 10

/* ---- outcomes ---- */

/* What was under way has ended, this move records it, and nothing else is begun: so nothing is in doubt. */
static void rest_paused(struct run_drive *d)
{
	d->move.doubt = false;
	plan_rest(d, RUN_PAUSED);
}

/* What was under way has ended, and is recorded by this move. */
static void continue_after(struct run_drive *d, const struct answer *answer)
{
	if (plan_is_at(d, RUN_CANCELLING))
		plan_undo(d, answer);
	else if (plan_is_at(d, RUN_PAUSED))
		rest_paused(d);
	else
		plan_steps(d, answer);
}

/* No attempt of a compensation is left: the run stays CANCELLING until a person has it tried again, or resolves it. */
static void give_up_undo(struct run_drive *d, struct slice message, bool doubt)
{
	plan_hold(d, doubt ? "OUTCOME_UNKNOWN" : "ACTION_FAILED", message);
	d->move.step_status = doubt ? RUN_STEP_UNKNOWN : RUN_STEP_FAILED;
	d->move.doubt = doubt;
}

/* What became of the step where a cancelled run stands is told, and what is done is undone. */
static void run_plan_leave(struct run_drive *d, const struct answer *answer, const char *status, struct slice error)
{
	d->row.step_status = slice_str(status);
	d->row.error = error;
	d->row.step_started_at = plan_started_at(d, answer, d->row.position);
	plan_undo(d, answer);
}

/* It is certain that the step was not done, and it is not tried again. */
static void not_done(struct run_drive *d, const struct answer *answer, const char *code, struct slice message)
{
	if (d->row.undo >= 0) {
		give_up_undo(d, message, /* doubt= */ false);
	} else if (plan_is_at(d, RUN_CANCELLING)) {
		run_plan_leave(d, answer, RUN_STEP_FAILED, run_make_error(d, code, message, drive_step(d)));
	} else {
		d->move.attempt = d->row.attempt;
		d->move.redo = d->row.redo;
		d->move.started_at = plan_started_at(d, answer, d->row.position);
		plan_fail(d, code, message, drive_step(d));
	}
}

/* A step in doubt, of a run that is being cancelled, that could not be undone if it had been done. */
static bool is_pointless(const struct run_drive *d)
{
	return plan_is_at(d, RUN_CANCELLING) && d->row.undo < 0 && !drive_step(d)->compensate;
}

/* It cannot be undone, so there is no point in finding out by doing it once more: it is told, and that is all. */
static void leave_unknown(struct run_drive *d, const struct answer *answer, struct slice message)
{
	run_plan_leave(d, answer, RUN_STEP_UNKNOWN, run_make_error(d, "OUTCOME_UNKNOWN", message, drive_step(d)));
}

/* Nobody knows, and it is not tried again by itself. */
static void not_known(struct run_drive *d, const struct answer *answer, struct slice message)
{
	const struct run_step *step = drive_step(d);

	if (d->row.undo >= 0) {
		give_up_undo(d, message, /* doubt= */ true);
	} else if (is_pointless(d)) {
		leave_unknown(d, answer, message);
	} else if (step->goes_on_timed_out && !step->compensate && !plan_is_at(d, RUN_CANCELLING)) {
		plan_ended(d, answer, step, RUN_STEP_SKIPPED, d->row.attempt, slice_str("null"),
			   plan_started_at(d, answer, step->position));
		continue_after(d, answer);
	} else {
		plan_hold(d, "OUTCOME_UNKNOWN", message);
	}
}

static void rest_until(struct run_drive *d, int64_t ms)
{
	d->move.wait_until = ms;
	d->move.due_at = plan_is_at(d, RUN_PAUSED) ? 0 : ms;
}

/* This try did nothing, or nobody knows (doubt): it rests, and is tried again. */
static void rest_for_retry(struct run_drive *d, const struct answer *answer, const struct next *next)
{
	struct run_move *move = &d->move;

	plan_rest_unchanged(d, next->doubt);
	if (!move->started_at) /* of sql nothing is written before its end */
		move->started_at = answer->now.ms;
	move->awaits = slice_of(NULL, 0);
	move->job = 0;
	move->unsettled_since = next->unsettled_since;
	rest_until(d, plan_later(answer->now.ms, next->rest_ms));
	move->error = run_make_error(d, next->doubt ? "OUTCOME_UNKNOWN" : "ACTION_FAILED", d->output, drive_step(d));
	move->to = plan_is_at(d, RUN_CANCELLING) || plan_is_at(d, RUN_PAUSED) ? d->row.status : RUN_WAITING;
}

/* A cancelled run begins nothing anew; it goes on with what is in doubt, if that could be undone, and with what undoes. */
static void try_again(struct run_drive *d, const struct answer *answer, const struct next *next)
{
	if (next->doubt && is_pointless(d))
		leave_unknown(d, answer, d->output);
	else if (!next->doubt && d->row.undo < 0 && plan_is_at(d, RUN_CANCELLING))
		not_done(d, answer, "ACTION_FAILED", d->output);
	else
		rest_for_retry(d, answer, next);
}

static enum on_unknown run_plan_policy_of(const struct run_drive *d)
{
	if (d->row.undo < 0)
		return drive_step(d)->on_unknown;
	return policy_of_effect(drive_step(d)->compensate->effect != EFFECT_CLAIMED);
}

static struct next run_plan_next_of(const struct run_drive *d, const struct answer *answer, enum heard heard)
{
	return what_next(&(struct tried){
		.heard = heard,
		.doubt = d->row.doubt,
		.policy = run_plan_policy_of(d),
		.retry = &drive_step(d)->retry,
		.attempt = d->row.attempt,
		.drawn = answer->id,
		.now_ms = answer->now.ms,
		.not_before_ms = d->not_before_ms,
		.unsettled_since = d->row.unsettled_since,
		.waits = true,
	});
}

static void run_plan_done(struct run_drive *d, const struct answer *answer)
{
	const struct run_step *step = drive_step(d);

	if (d->output.n > RUN_OUTPUT_BYTES_MAX && d->row.undo < 0) {
		plan_hold(d, "TOO_LARGE", slice_str("it was done, and its output is too large to be kept"));
		return;
	}
	if (d->row.undo >= 0) {
		d->move.undone = d->row.undo;
		d->move.transitions++;
	} else {
		plan_ended(d, answer, step, RUN_STEP_COMPLETED, d->row.attempt, d->output,
			   plan_started_at(d, answer, step->position));
	}
	continue_after(d, answer);
}

static struct next next_after(struct run_drive *d, const struct answer *answer)
{
	bool probe_unknown = d->was_probing && heard_of(d->outcome) == HEARD_UNKNOWN;
	struct next next;

	d->row.attempt += probe_unknown; /* it has used up one */
	next = run_plan_next_of(d, answer, probe_unknown ? HEARD_PROBE_UNKNOWN : heard_of(d->outcome));
	if (next.what == NEXT_PROBE && plan_is_at(d, RUN_PAUSED)) /* whoever carries on asks it */
		next = run_plan_next_of(d, answer, HEARD_PROBE_UNKNOWN);
	return next;
}

static void plan_outcome(struct run_drive *d, const struct answer *answer)
{
	struct next next = next_after(d, answer);

	if (d->outcome == ACT_UNSETTLED && is_pointless(d)) {
		leave_unknown(d, answer, d->output);
		return;
	}
	switch (next.what) {
	case NEXT_DONE:
		run_plan_done(d, answer);
		break;
	case NEXT_AGAIN:
	case NEXT_SAME_AGAIN:
		try_again(d, answer, &next);
		break;
	case NEXT_PROBE:
		plan_begin_probe(d, answer, drive_step(d));
		break;
	case NEXT_HOLD:
		not_known(d, answer, d->output);
		break;
	case NEXT_FAIL:
		not_done(d, answer, d->outcome == ACT_INVALID ? "INVALID" : "ACTION_FAILED", d->output);
		break;
	}
}

/* ---- what a fresh look finds ---- */

/* The node that had begun it was lost, or its answer was: one attempt is in doubt. */
static void plan_doubt(struct run_drive *d, const struct answer *answer)
{
	const struct run_step *step = drive_step(d);
	const struct run_done *undone = d->row.undo >= 0 ? plan_to_undo(d) : NULL;
	struct run_retry retry = step->retry;
	bool same_attempt = d->row.unsettled_since &&
			    !d->row.past; /* nobody was lost over it: it is only asked again */
	enum next_what next;

	retry.max_attempts += d->row.past || d->row.line ? TAKEOVERS_MAX
							 : 0; /* in line: it was past, see stands_back() */
	next = what_next(&(struct tried){.heard = HEARD_UNKNOWN,
					 .policy = run_plan_policy_of(d),
					 .retry = &retry,
					 .attempt = d->row.attempt})
		       .what;
	d->output = slice_str("the node that carried it out was lost");
	if (plan_is_at(d, RUN_PAUSED))
		plan_rest_unchanged(d, /* doubt= */ true);
	else if (is_pointless(d))
		leave_unknown(d, answer, d->output);
	else if (d->row.wait_until > plan_now_ms(d, answer))
		plan_rest_on(d);
	else if (same_attempt)
		plan_begin(d, answer, step, undone, d->row.attempt, /* doubt= */ true);
	else if (next == NEXT_PROBE)
		plan_begin_probe(d, answer, step);
	else if (next == NEXT_AGAIN)
		plan_begin(d, answer, step, undone, d->row.attempt + 1, /* doubt= */ true);
	else
		not_known(d, answer, d->output);
}

/* The job of the step has not ended, and the step's time is over. */
static void job_timed_out(struct run_drive *d, const struct answer *answer)
{
	const struct run_step *step = drive_step(d);
	bool doubt = d->row.job_doubt || strcmp(d->row.job_status, JOB_RUNNING) == 0;
	int64_t started = plan_started_at(d, answer, step->position);

	d->move.withdraws = d->row.job;
	d->row.doubt |= doubt;
	if (doubt && run_plan_next_of(d, answer, HEARD_UNKNOWN).what == NEXT_AGAIN)
		plan_begin(d, answer, step, /* undone= */ NULL, d->row.attempt + 1, /* doubt= */ true);
	else if (doubt)
		not_known(d, answer, slice_str("no worker has told the outcome in time"));
	else if (plan_timed_out(d, answer, step, started))
		continue_after(d, answer);
}

static void job_is_out(struct run_drive *d, const struct answer *answer)
{
	bool taken = strcmp(d->row.job_status, JOB_RUNNING) == 0;
	bool late = d->row.wait_until && d->row.wait_until <= plan_now_ms(d, answer);

	if (plan_is_at(d, RUN_CANCELLING) && d->row.undo < 0 && !taken && !d->row.job_doubt) {
		d->move.withdraws = d->row.job;
		plan_undo(d, answer);
	} else if (!taken && is_pointless(d)) {
		d->move.withdraws = d->row.job;
		leave_unknown(d, answer, slice_str("a worker was lost over it, and then it was cancelled"));
	} else if (!taken && !d->row.job_doubt && d->row.undo < 0 && plan_is_late(d, answer) &&
		   !plan_is_at(d, RUN_CANCELLING) && !plan_is_at(d, RUN_PAUSED)) {
		d->move.withdraws = d->row.job;
		plan_steps(d, answer); /* which begins nothing */
	} else if (late && d->row.undo < 0 && !plan_is_at(d, RUN_CANCELLING) && !plan_is_at(d, RUN_PAUSED)) {
		job_timed_out(d, answer);
	} else {
		d->move.due_at = late || plan_is_at(d, RUN_CANCELLING) ? 0 : d->row.wait_until;
		plan_rest_unchanged(d, d->row.doubt);
		d->move.to = plan_is_at(d, RUN_PENDING) ? RUN_RUNNING : d->row.status;
	}
}

static void plan_job(struct run_drive *d, const struct answer *answer)
{
	/* A job before this one may have been withdrawn in doubt. */
	d->row.job_doubt |= d->row.doubt; /* mutant: earlier-job-forgotten */
	if (strcmp(d->row.job_status, JOB_COMPLETED) == 0) {
		d->row.attempt = d->row.job_attempt;
		d->output = d->row.job_output.p ? d->row.job_output : slice_str("null");
		run_plan_done(d, answer);
	} else if (strcmp(d->row.job_status, JOB_PARKED) == 0) {
		d->row.attempt = d->row.job_attempt;
		d->output = d->row.job_error.p ? d->row.job_error : slice_str("its job was parked");
		if (d->row.job_doubt)
			not_known(d, answer, d->output);
		else
			not_done(d, answer, "ACTION_FAILED", d->output);
	} else {
		job_is_out(d, answer);
	}
}

/* Only a person ends this; but a cancel does not wait for what could not be undone anyway. */
static void plan_held(struct run_drive *d, const struct answer *answer)
{
	if (d->row.doubt && is_pointless(d)) {
		leave_unknown(d, answer, slice_str("it was cancelled before anybody had found out"));
		return;
	}
	plan_rest_unchanged(d, d->row.doubt);
	d->move.to = plan_is_at(d, RUN_PENDING) ? RUN_WAITING : d->move.to;
}

/* Was something begun in the outside world by a node, of which nothing has been heard? */
static bool is_in_doubt(const struct run_drive *d)
{
	const struct action *action;

	if (d->holding || !(d->row.past || d->row.doubt))
		return false;
	if (d->row.undo < 0 && (d->row.position == drive_definition(d)->steps_n || drive_step(d)->type != RUN_TASK))
		return false;
	if (d->row.attempt == 0)
		return false;
	action = d->row.undo < 0 ? drive_step(d)->action : drive_step(d)->compensate;
	return action_is_outside(action);
}

bool run_plan(struct run_drive *d, const struct answer *answer)
{
	d->move = (struct run_move){
		.to = d->row.status, .undone = -1, .undo = -1, .next = d->row.position, .stood = d->row.stood};
	d->wants_children = NULL;
	d->done = d->row.done;
	d->action = NULL;
	d->act = (struct slot){0};
	d->act_rate = (struct rate){0};
	d->probing = false;
	if (run_is_terminal(d->row.status) || d->row.expired)
		return false;
	if (!d->holding && d->row.past)
		d->over = drive_step_if_any(d);
	if (d->knows)
		plan_outcome(d, answer);
	else if (d->row.awaits.p && slice_is(d->row.awaits, RUN_AWAITS_PERSON))
		plan_held(d, answer);
	else if (d->row.job)
		plan_job(d, answer);
	else if (is_in_doubt(d))
		plan_doubt(d, answer);
	else if (plan_is_at(d, RUN_CANCELLING))
		plan_undo(d, answer);
	else if (plan_is_at(d, RUN_PAUSED))
		plan_rest_unchanged(d, d->row.doubt);
	else
		plan_steps(d, answer);
	if (!d->move.transitions)
		d->move.transitions = 1;
	plan_failure(d, answer, run_input(d));
	plan_reckon_with_time(d, answer);
	run_plan_attributes(d); /* mutant: attributes-not-followed */
	return true;
}

/*
 * Texts that fit nowhere. What may have been done is held for a person, and so is what can only be undone; a run that is
 * certain to have done nothing more fails.
 */
void run_plan_give_up(struct run_drive *d, const struct answer *answer)
{
	bool done = d->knows && (d->outcome == ACT_OK || d->outcome == ACT_UNKNOWN || d->outcome == ACT_UNSETTLED);
	bool holds = done || d->row.doubt || d->row.undo >= 0 || plan_is_at(d, RUN_CANCELLING) ||
		     plan_is_at(d, RUN_PAUSED);

	d->move = (struct run_move){
		.to = holds ? plan_is_at(d, RUN_CANCELLING) || plan_is_at(d, RUN_PAUSED) ? d->row.status : RUN_WAITING
			    : RUN_FAILED,
		.undone = -1,
		.undo = d->row.undo,
		.next = d->row.position,
		.transitions = 1,
		.write = holds ? RUN_WRITES_REST : RUN_WRITES_END,
		.attempt = d->row.attempt,
		.redo = d->row.redo,
		.started_at = d->row.step_started_at,
		.stood = d->row.stood,
		.step_status = holds ? RUN_STEP_UNKNOWN : RUN_STEP_FAILED,
		.doubt = holds,
		.error = slice_str("{\"code\":\"TOO_LARGE\",\"message\":\"the texts of the run cannot be kept\","
				   "\"step\":null}"),
	};
	if (holds)
		d->move.awaits = slice_str(RUN_AWAITS_PERSON);
	d->done = d->row.done;
	d->action = NULL;
	plan_failure(d, answer, /* input= */ slice_str("null"));
	d->arena->failed = false; /* there is no smaller one */
}
