/*
 * Going forward: conditions, waits, events that are there, sql and noops are passed in one move, as far as it may go; then the
 * next task is begun, or the run rests, or it has come to its end. See run_plan.h.
 */
#include "base/json_string.h"
#include "base/json_walk.h"
#include "flow/run_plan.h"
#include "model/text.h"

#define TOLD_WITHIN_MS 1000 /* mostly much sooner, and that makes it due */

/*
 * A run whose task has filled half of its memory is let go, and taken up again by a task with fresh memory. So is one
 * whose node is about to stop: another node takes it up.
 */
static bool lets_go(struct run_drive *d, const struct answer *answer)
{
	bool full = d->arena->used_bytes >= d->arena->max_bytes / 2;
	bool stops = d->policy->stops && atomic_load(d->policy->stops);

	if (!d->move.rows_n || !(full || stops))
		return false;
	d->move.due_at = answer->now.ms;
	plan_rest(d, RUN_PENDING);
	d->move.transitions--; /* nothing has happened to the run */
	return true;
}

bool plan_timed_out(struct run_drive *d, const struct answer *answer, const struct run_step *step, int64_t started)
{
	if (!step->goes_on_timed_out) {
		d->move.attempt = d->row.attempt;
		d->move.redo = d->row.redo;
		d->move.started_at = started;
		plan_fail(d, "TIMEOUT", slice_str("it did not come in time"), step);
		return false;
	}
	plan_ended(d, answer, step, RUN_STEP_SKIPPED, d->row.attempt, slice_str("null"), started);
	return true;
}

static void rest_at(struct run_drive *d, const struct run_step *step, int64_t started, int64_t until)
{
	struct run_awaited awaited = run_step_awaits(step);
	struct run_move *move = &d->move;

	if (awaited.prefix)
		move->awaits = slice_str(text_printf(d->arena, "%s%s", awaited.prefix, awaited.name));
	move->next = step->position;
	move->redo = plan_is_standing(d, step->position) ? d->row.redo : 0;
	move->attempt = 1;
	move->started_at = started;
	move->wait_until = until == INT64_MAX ? 0 : until;
	move->due_at = move->wait_until;
	plan_rest(d, RUN_WAITING);
}

/* A step that fails because an expression has no value is shown as begun: with an attempt, and a time. */
static void fails_at_once(struct run_drive *d, int64_t started)
{
	d->move.attempt = 1;
	d->move.started_at = started;
}

/* Each of these: true: the step is passed, false: the move ends at it. */

static bool pass_condition(struct run_drive *d, const struct answer *answer, const struct run_step *step)
{
	struct hx_error err;
	struct slice value;
	bool truth;

	if (run_evaluate(d, d->done, step->when, &value, &err)) {
		fails_at_once(d, plan_started_at(d, answer, step->position));
		plan_fail(d, hx_code_name(err.code), slice_str(err.detail), step);
		return false;
	}
	truth = !slice_is(value, "null") && !slice_is(value, "false");
	plan_ended(d, answer, step, RUN_STEP_COMPLETED, 1, slice_str(truth ? "true" : "false"),
		   plan_started_at(d, answer, step->position));
	return true;
}

static bool evaluate_until(struct run_drive *d, const struct run_step *step, int64_t *ret_ms)
{
	struct hx_error err = {0};
	struct wall_time time;
	struct slice value;

	if (run_evaluate(d, d->done, step->until, &value, &err)) {
		plan_fail(d, hx_code_name(err.code), slice_str(err.detail), step);
		return false;
	}
	if (json_type(json_trust(value)) != JSON_STRING) {
		plan_fail(d, "VALIDATION_ERROR", slice_str("until is not a string with a time of RFC 3339"), step);
		return false;
	}
	if (wall_time_parse("until", json_string_decode(json_trust(value), d->arena), &err, &time)) {
		plan_fail(d, hx_code_name(err.code), slice_str(err.detail), step);
		return false;
	}
	*ret_ms = time.ms;
	return true;
}

static bool pass_wait(struct run_drive *d, const struct answer *answer, const struct run_step *step)
{
	int64_t started = plan_started_at(d, answer, step->position), now = plan_now_ms(d, answer);
	int64_t deadline = step->timeout_ms ? plan_later(started, step->timeout_ms) : INT64_MAX, until;

	if (step->for_ms)
		until = plan_later(started, step->for_ms);
	else if (!evaluate_until(d, step, &until)) {
		fails_at_once(d, started);
		return false;
	}
	if (now >= until) {
		plan_ended(d, answer, step, RUN_STEP_COMPLETED, 1, slice_str("null"), started);
		return true;
	}
	if (now >= deadline)
		return plan_timed_out(d, answer, step, started);
	rest_at(d, step, started, until < deadline ? until : deadline);
	return false;
}

/* Events and decisions that are there were read beforehand; the unit that rests looks for later ones. */
static bool pass_event(struct run_drive *d, const struct answer *answer, const struct run_step *step)
{
	int64_t started = plan_started_at(d, answer, step->position), now = plan_now_ms(d, answer);
	int64_t deadline = step->timeout_ms ? plan_later(started, step->timeout_ms) : INT64_MAX;
	struct json decision;

	if (plan_is_standing(d, step->position) && d->event_found) {
		d->move.event_id = d->event_id;
		d->move.event_step = step;
		if (step->type == RUN_APPROVAL &&
		    json_find(json_trust(d->event_data), slice_str("decision"), &decision) &&
		    json_type(decision) == JSON_STRING && json_string_is(decision, slice_str("reject"))) {
			d->move.redo = d->row.redo;
			fails_at_once(d, started);
			plan_fail(d, "REJECTED", d->event_data, step);
			return false;
		}
		plan_ended(d, answer, step, RUN_STEP_COMPLETED, 1, d->event_data, started);
		return true;
	}
	if (now >= deadline)
		return plan_timed_out(d, answer, step, started);
	rest_at(d, step, started, deadline);
	return false;
}

static bool pass_task(struct run_drive *d, const struct answer *answer, const struct run_step *step)
{
	bool standing = plan_is_standing(d, step->position);
	int64_t attempt = standing ? d->row.attempt + 1 : 1;

	if (standing && d->row.wait_until > plan_now_ms(d, answer)) { /* the rest of its backoff */
		plan_rest_on(d);
		return false;
	}
	if (action_is_outside(step->action)) {
		plan_begin(d, answer, step, /* undone= */ NULL, attempt, /* doubt= */ false);
		return false;
	}
	if (action_is_inside(step->action) && d->move.rows_n) {
		plan_go_on(d); /* alone: if its statements are refused, nothing else is */
		return false;
	}
	if (action_is_inside(step->action) && !plan_sql(d, answer, step, step->action, /* undone= */ NULL)) {
		d->move.attempt = attempt;
		d->move.started_at = plan_started_at(d, answer, step->position);
		return false;
	}
	d->move.transitions++;
	plan_ended(d, answer, step, RUN_STEP_COMPLETED, attempt, slice_str("null"), answer->now.ms);
	return true;
}

static bool pass(struct run_drive *d, const struct answer *answer, const struct run_step *step)
{
	switch (step->type) {
	case RUN_TASK:
		return pass_task(d, answer, step);
	case RUN_WAIT:
		return pass_wait(d, answer, step);
	case RUN_EXTERNAL_EVENT:
	case RUN_APPROVAL:
		return pass_event(d, answer, step);
	case RUN_CHILD:
	case RUN_MAP:
	case RUN_PARALLEL:
	case RUN_REPEAT:
		return plan_children(d, answer, step);
	case RUN_CONDITION:
		break;
	}
	return pass_condition(d, answer, step);
}

/* Can the step end within this move? Only these need room for a row. */
static bool may_end_now(const struct run_step *step)
{
	return step->type != RUN_TASK || !action_is_outside(step->action);
}

/*
 * A run above this one is being cancelled, and its word is on its way: nothing is begun, and it looks again. True: the
 * move has ended so.
 */
static bool is_about_to_be_told(struct run_drive *d, const struct answer *answer)
{
	if (!d->row.stopped) /* mutant: goes-on-under-cancel -> if (1) */
		return false;
	if (d->move.rows_n)
		plan_rest(d, RUN_PENDING);
	else
		plan_rest_unchanged(d, d->row.doubt);
	d->move.due_at = plan_later(answer->now.ms, TOLD_WITHIN_MS);
	return true;
}

/*
 * Its time is over, or its parent has told it to fail: no next step is begun. True: so it is, and the move has ended
 * with that.
 */
static bool stops_here(struct run_drive *d, const struct answer *answer, const struct run_step *step)
{
	bool told_to = d->row.asked.p && slice_is(d->row.asked, CHILD_ASKED_FAIL);
	const char *code = told_to ? "SIBLING_FAILED" : "TIMEOUT";
	struct slice words = slice_str(told_to ? "another child of its parent has failed"
					       : "the run was not done in time");

	if (!told_to && !plan_is_late(d, answer)) /* mutant: step-begun-too-late -> if (!told_to) */
		return false;
	if (run_step_has_children(step) && plan_is_standing(d, step->position)) {
		plan_stop_children(d, answer, step, code, words);
		return true;
	}
	fails_at_once(d, plan_started_at(d, answer, step->position));
	d->move.redo = plan_is_standing(d, step->position) ? d->row.redo : 0;
	plan_fail(d, code, words, step);
	return true;
}

void plan_steps(struct run_drive *d, const struct answer *answer)
{
	const struct run_definition *definition = drive_definition(d);

	while (d->move.next < definition->steps_n) {
		const struct run_step *step = &definition->steps[d->move.next];

		if (is_about_to_be_told(d, answer) || stops_here(d, answer, step))
			return;
		if (lets_go(d, answer))
			return;
		if (d->move.rows_n == RUN_STEP_ROWS_MAX && may_end_now(step)) {
			plan_go_on(d);
			return;
		}
		if (!pass(d, answer, step))
			return;
	}
	plan_complete(d);
}
