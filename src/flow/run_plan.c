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
#include <string.h>

#include "base/hash.h"
#include "base/id.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "flow/job.h"
#include "flow/run_parts.h"
#include "flow/sql_action.h"

/* So often may nodes be lost over one step, beyond its own attempts, before a person has to look at it (poison). */
#define TAKEOVERS_MAX 10

static void plan_steps(struct run_drive *d, const struct answer *answer);
static void plan_undo(struct run_drive *d, const struct answer *answer);

static bool is_at(const struct run_drive *d, const char *status)
{
	return strcmp(d->row.status, status) == 0;
}

/* Moments that were read are compared with the store's clock, which decided that the run is due. */
static int64_t now_ms(const struct run_drive *d, const struct answer *answer)
{
	return d->holding ? answer->now.ms : d->row.now;
}

static int64_t later(int64_t ms, int64_t by_ms)
{
	return by_ms < INT64_MAX - ms ? ms + by_ms : INT64_MAX;
}

/* Does what stands in the row about the current step hold for this position? */
static bool is_standing(const struct run_drive *d, size_t position)
{
	return position == d->row.position && d->move.rows_n == 0;
}

static int64_t started_at(const struct run_drive *d, const struct answer *answer, size_t position)
{
	return is_standing(d, position) && d->row.step_started_at ? d->row.step_started_at : now_ms(d, answer);
}

/* ---- the ways a move may end ---- */

/* The run waits, in the status that fits: a cancel or a pause that came meanwhile stays. */
static void rest(struct run_drive *d, const char *to)
{
	d->move.to = is_at(d, RUN_CANCELLING) || is_at(d, RUN_PAUSED) ? d->row.status : to;
	d->move.write = RUN_WRITES_REST;
	d->move.transitions++;
	if (is_at(d, RUN_PAUSED))
		d->move.due_at = 0;
}

/* What is known about the current step stays as it is; nothing but the due time goes. */
static void rest_unchanged(struct run_drive *d, bool doubt)
{
	struct run_move *move = &d->move;

	move->next = d->row.position;
	move->attempt = d->row.attempt;
	move->redo = d->row.redo;
	move->undo = d->row.undo;
	move->wait_until = d->row.wait_until;
	move->started_at = d->row.step_started_at;
	move->awaits = d->row.awaits;
	move->job = d->row.job;
	move->error = d->row.error;
	move->step_status = d->row.step_status.p ? d->row.step_status.p : NULL;
	move->doubt = doubt;
	rest(d, d->row.status);
}

/* Looked at too early, by whatever chance: it rests on, to the same moment. */
static void rest_on(struct run_drive *d)
{
	d->move.due_at = d->row.wait_until;
	rest_unchanged(d, d->row.doubt);
	d->move.to = is_at(d, RUN_PENDING) ? RUN_WAITING : d->move.to;
}

/* Whoever carries on finds nothing begun behind what this move records. */
static void rest_paused(struct run_drive *d)
{
	d->move.doubt = false;
	rest(d, RUN_PAUSED);
}

static void fail(struct run_drive *d, const char *code, struct slice message, const struct run_step *step)
{
	struct run_move *move = &d->move;

	move->to = RUN_FAILED;
	move->write = RUN_WRITES_END;
	move->step_status = RUN_STEP_FAILED;
	move->error = run_make_error(d, code, message, step);
	move->doubt = false;
	move->keeps = false;
	move->transitions++;
	d->action = NULL;
}

/* For a person: what the step did is not known, and nothing may be tried any more. */
static void hold(struct run_drive *d, const char *code, struct slice message)
{
	struct run_move *move = &d->move;

	move->attempt = d->row.attempt;
	move->redo = d->row.redo;
	move->undo = d->row.undo;
	move->started_at = d->row.step_started_at;
	move->step_status = RUN_STEP_UNKNOWN;
	move->awaits = slice_str(RUN_AWAITS_PERSON);
	move->error = run_make_error(d, code, message, drive_step(d));
	move->doubt = true;
	rest(d, RUN_WAITING);
}

/* A step is done: its row, and what the next ones see. */
static void add_ended(struct run_drive *d, const struct answer *answer, const struct run_step *step, const char *status,
		      int64_t attempt, struct slice output, int64_t started)
{
	struct run_done *done = arena_zalloc(d->arena, sizeof *done);

	ASSERT(d->move.rows_n < RUN_STEP_ROWS_MAX);
	d->move.rows[d->move.rows_n++] = (struct run_ended){step->position, status, attempt, output, started};
	d->move.transitions++;
	d->move.next = run_next_position(drive_definition(d), step->position, output);
	if (!done)
		return;
	*done = (struct run_done){d->done, step, status, attempt, output, started, answer->now.ms, 0};
	d->done = done;
}

static void complete(struct run_drive *d)
{
	const struct run_definition *definition = drive_definition(d);
	struct slice output = slice_str("null");
	struct hx_error err;

	if (definition->output && run_evaluate(d, d->done, definition->output, &output, &err)) {
		fail(d, hx_code_name(err.code), slice_str(err.detail), /* step= */ NULL);
		return;
	}
	d->move.to = RUN_COMPLETED;
	d->move.write = RUN_WRITES_END;
	d->move.output = output;
}

/* While a run is compensated, what became of the step where it stood goes along. */
static void carry_words(struct run_drive *d)
{
	if (!is_at(d, RUN_CANCELLING))
		return;
	d->move.step_status = d->row.step_status.p;
	d->move.error = d->row.error;
}

/* ---- beginning ---- */

/* Times the factor, at most max_ms; nothing overflows: both are bounded by the definition. */
static int64_t grow(int64_t ms, int64_t thousandths, int64_t max_ms)
{
	return ms > max_ms / thousandths * 1000 ? max_ms : ms / 1000 * thousandths + ms % 1000 * thousandths / 1000;
}

static int64_t backoff_ms(const struct run_retry *retry, int64_t attempt, int64_t drawn)
{
	int64_t ms = retry->initial_ms;

	for (int64_t i = 1; i < attempt && ms < retry->max_ms; i++)
		ms = grow(ms, retry->factor_thousandths, retry->max_ms);
	ms = ms < retry->max_ms ? ms : retry->max_ms;
	if (!retry->jitter || ms < 2)
		return ms;
	return ms / 2 + (int64_t)(hash_mix(1, (uint64_t)drawn) % (uint64_t)(ms - ms / 2 + 1));
}

/* An expression has no value. Of a compensation it had one once, so this is for a person to look at. */
static void cannot_begin(struct run_drive *d, const struct hx_error *err, const struct run_step *step, bool undo)
{
	if (!undo) {
		fail(d, hx_code_name(err->code), slice_str(err->detail), step);
		return;
	}
	hold(d, hx_code_name(err->code), slice_str(err->detail));
	d->move.step_status = RUN_STEP_FAILED;
	d->move.undo = (int64_t)step->position;
	d->move.doubt = false;
}

/* A worker's: the job goes into the same unit, and the run waits for it. */
static void begin_job(struct run_drive *d, const struct answer *answer, const struct run_step *step,
		      const struct action *action, struct slice body)
{
	struct run_move *move = &d->move;

	move->job = answer->more_ids[0];
	move->job_action = action;
	move->payload = body;
	move->awaits = slice_str(RUN_AWAITS_JOB);
	move->wait_until = step->timeout_ms && move->undo < 0 ? later(answer->now.ms, step->timeout_ms) : 0;
	move->due_at = move->wait_until;
	rest(d, RUN_RUNNING);
}

/* An action in the outside world: carried out behind the move, under the lease that it gives. */
static void begin_act(struct run_drive *d, const struct action *action)
{
	struct run_move *move = &d->move;
	bool first = d->holding && move->attempt == 1 && move->redo == 0 && move->undo < 0 && move->rows_n;

	move->to = is_at(d, RUN_CANCELLING) ? RUN_CANCELLING : RUN_RUNNING;
	move->write = first ? RUN_WRITES_NOTHING : RUN_WRITES_BEGUN;
	move->keeps = true;
	move->transitions++;
	carry_words(d);
	d->action = action;
}

/* An attempt of a step, or (undone) of its compensation. */
static void begin(struct run_drive *d, const struct answer *answer, const struct run_step *step,
		  const struct run_done *undone, int64_t attempt, bool doubt)
{
	const struct action *action = undone ? step->compensate : step->action;
	bool by_worker = action->kind == ACTION_WORKER;
	struct run_move *move = &d->move;
	struct hx_error err;
	struct slice body;

	move->attempt = attempt;
	move->redo = is_standing(d, step->position) || undone ? d->row.redo : 0;
	move->undo = undone ? (int64_t)step->position : -1;
	move->started_at = attempt > 1 && d->row.step_started_at ? d->row.step_started_at : answer->now.ms;
	move->doubt = doubt;
	if (run_make_body(d, d->done, step, undone, by_worker ? 0 : attempt, &body, &err)) {
		cannot_begin(d, &err, step, undone != NULL);
		return;
	}
	d->key = run_make_key(d, step, move->redo, undone != NULL);
	d->body = body;
	if (by_worker)
		begin_job(d, answer, step, action, body);
	else
		begin_act(d, action);
}

/* In doubt: asks the action's probe, which has no effect. The attempt stays what it is. */
static void begin_probe(struct run_drive *d, const struct answer *answer, const struct run_step *step)
{
	begin(d, answer, step, /* undone= */ NULL, d->row.attempt, /* doubt= */ true);
	if (d->action) {
		d->move.write = RUN_WRITES_BEGUN;
		d->action = step->action->probe;
		d->probing = true;
	}
}

/* sql: the statements run in the unit that records the step, which is all that this move does. */
static bool add_sql(struct run_drive *d, const struct answer *answer, const struct run_step *step,
		    const struct action *action, const struct run_done *undone)
{
	struct sql_params params = {
		.workflow = slice_str(drive_definition(d)->name),
		.requester = d->row.requester,
		.key = run_make_key(d, step, is_standing(d, step->position) ? d->row.redo : 0, undone != NULL),
		.version = d->row.version,
		.now = answer->now,
	};
	char id[ID_TEXT_BYTES];
	struct hx_error err;
	struct slice input;

	if (run_make_input(d, undone ? undone->before : d->done, step, &input, &err)) {
		cannot_begin(d, &err, step, undone != NULL);
		return false;
	}
	id_format("run", d->row.subject, id);
	params.id = arena_copy(d->arena, slice_str(id));
	params.input = json_trust(input);
	d->move.sql = action;
	d->move.sql_values = sql_action_values(action, &params, d->arena);
	return !d->arena->failed;
}

/* ---- going forward ---- */

/*
 * The move has taken in as much as it may: it keeps the run, and the next one goes on from here. No attempt is begun, and
 * where that does not follow from the kind of the next step, the row says so.
 */
static void go_on(struct run_drive *d)
{
	bool forward = d->holding && !is_at(d, RUN_CANCELLING);

	d->move.to = is_at(d, RUN_CANCELLING) ? RUN_CANCELLING : RUN_RUNNING;
	d->move.keeps = true;
	d->move.write = forward ? RUN_WRITES_NOTHING : RUN_WRITES_BEGUN;
	carry_words(d);
}

/* A task that long ago filled its memory lets go, and is taken up with a new one. */
static bool lets_go(struct run_drive *d, const struct answer *answer)
{
	if (!d->move.rows_n || d->arena->used_bytes < d->arena->max_bytes / 2)
		return false;
	d->move.due_at = answer->now.ms;
	rest(d, RUN_PENDING);
	return true;
}

/* Not there in time. False: the move has ended with that. */
static bool pass_timed_out(struct run_drive *d, const struct answer *answer, const struct run_step *step,
			   int64_t started)
{
	if (!step->goes_on_timed_out) {
		d->move.attempt = d->row.attempt;
		d->move.redo = d->row.redo;
		fail(d, "TIMEOUT", slice_str("it did not come in time"), step);
		return false;
	}
	add_ended(d, answer, step, RUN_STEP_SKIPPED, d->row.attempt, slice_str("null"), started);
	return true;
}

static void rest_at(struct run_drive *d, const struct run_step *step, const char *prefix, const char *name,
		    int64_t started, int64_t until)
{
	struct run_move *move = &d->move;
	struct strbuf awaits;

	if (prefix) {
		strbuf_init(&awaits, 1024);
		strbuf_addf(&awaits, "%s%s", prefix, name);
		move->awaits = arena_copy(d->arena, strbuf_slice(&awaits));
		strbuf_release(&awaits);
	}
	move->next = step->position;
	move->redo = is_standing(d, step->position) ? d->row.redo : 0;
	move->attempt = 1;
	move->started_at = started;
	move->wait_until = until == INT64_MAX ? 0 : until;
	move->due_at = move->wait_until;
	rest(d, RUN_WAITING);
}

/* Each of these: true: the step is passed, false: the move ends at it. */

static bool pass_condition(struct run_drive *d, const struct answer *answer, const struct run_step *step)
{
	struct hx_error err;
	struct slice value;
	bool truth;

	if (run_evaluate(d, d->done, step->when, &value, &err)) {
		fail(d, hx_code_name(err.code), slice_str(err.detail), step);
		return false;
	}
	truth = !slice_is(value, "null") && !slice_is(value, "false");
	add_ended(d, answer, step, RUN_STEP_COMPLETED, 1, slice_str(truth ? "true" : "false"),
		  started_at(d, answer, step->position));
	return true;
}

static bool evaluate_until(struct run_drive *d, const struct run_step *step, int64_t *ret_ms)
{
	struct hx_error err = {0};
	struct wall_time time;
	struct slice value;

	if (run_evaluate(d, d->done, step->until, &value, &err)) {
		fail(d, hx_code_name(err.code), slice_str(err.detail), step);
		return false;
	}
	if (json_type(json_trust(value)) != JSON_STRING) {
		fail(d, "VALIDATION_ERROR", slice_str("until is not a string with a time of RFC 3339"), step);
		return false;
	}
	if (wall_time_parse("until", json_string_decode(json_trust(value), d->arena), &err, &time)) {
		fail(d, hx_code_name(err.code), slice_str(err.detail), step);
		return false;
	}
	*ret_ms = time.ms;
	return true;
}

static bool pass_wait(struct run_drive *d, const struct answer *answer, const struct run_step *step)
{
	int64_t started = started_at(d, answer, step->position), now = now_ms(d, answer);
	int64_t deadline = step->timeout_ms ? later(started, step->timeout_ms) : INT64_MAX, until;

	if (step->for_ms)
		until = later(started, step->for_ms);
	else if (!evaluate_until(d, step, &until))
		return false;
	if (now >= until) {
		add_ended(d, answer, step, RUN_STEP_COMPLETED, 1, slice_str("null"), started);
		return true;
	}
	if (now >= deadline)
		return pass_timed_out(d, answer, step, started);
	rest_at(d, step, /* prefix= */ NULL, NULL, started, until < deadline ? until : deadline);
	return false;
}

/* Events and decisions that are there were read beforehand; the unit that rests looks for later ones. */
static bool pass_event(struct run_drive *d, const struct answer *answer, const struct run_step *step)
{
	int64_t started = started_at(d, answer, step->position), now = now_ms(d, answer);
	int64_t deadline = step->timeout_ms ? later(started, step->timeout_ms) : INT64_MAX;
	bool approval = step->type == RUN_APPROVAL;
	struct json decision;

	if (is_standing(d, step->position) && d->event_found) {
		d->move.event_id = d->event_id;
		d->move.event_position = step->position;
		if (approval && json_find(json_trust(d->event_data), slice_str("decision"), &decision) &&
		    json_type(decision) == JSON_STRING && json_string_is(decision, slice_str("reject"))) {
			d->move.redo = d->row.redo;
			d->move.attempt = 1;
			fail(d, "REJECTED", d->event_data, step);
			return false;
		}
		add_ended(d, answer, step, RUN_STEP_COMPLETED, 1, d->event_data, started);
		return true;
	}
	if (now >= deadline)
		return pass_timed_out(d, answer, step, started);
	rest_at(d, step, approval ? RUN_AWAITS_APPROVAL : RUN_AWAITS_EVENT, approval ? step->name : step->event,
		started, deadline);
	return false;
}

static bool pass_task(struct run_drive *d, const struct answer *answer, const struct run_step *step)
{
	bool standing = is_standing(d, step->position);
	int64_t attempt = standing ? d->row.attempt + 1 : 1;

	if (standing && d->row.wait_until > now_ms(d, answer)) { /* the rest of its backoff */
		rest_on(d);
		return false;
	}
	if (step->action->kind == ACTION_NOOP) {
		d->move.transitions++;
		add_ended(d, answer, step, RUN_STEP_COMPLETED, attempt, slice_str("null"), answer->now.ms);
		return true;
	}
	if (step->action->kind != ACTION_SQL) {
		begin(d, answer, step, /* undone= */ NULL, attempt, /* doubt= */ false);
		return false;
	}
	if (d->move.rows_n) {
		go_on(d); /* alone: if its statements are refused, nothing else is */
		return false;
	}
	if (!add_sql(d, answer, step, step->action, /* undone= */ NULL))
		return false;
	d->move.transitions++;
	add_ended(d, answer, step, RUN_STEP_COMPLETED, attempt, slice_str("null"), answer->now.ms);
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
	case RUN_CONDITION:
		break;
	}
	return pass_condition(d, answer, step);
}

/* Can the step end within this move? Only these need room for a row. */
static bool may_end_now(const struct run_step *step)
{
	return step->type != RUN_TASK || step->action->kind == ACTION_NOOP || step->action->kind == ACTION_SQL;
}

static void plan_steps(struct run_drive *d, const struct answer *answer)
{
	const struct run_definition *definition = drive_definition(d);

	while (d->move.next < definition->steps_n) {
		const struct run_step *step = &definition->steps[d->move.next];

		if (lets_go(d, answer))
			return;
		if (d->move.rows_n == RUN_STEP_ROWS_MAX && may_end_now(step)) {
			go_on(d);
			return;
		}
		if (!pass(d, answer, step))
			return;
	}
	complete(d);
}

/* ---- going back ---- */

/* The last step that is done and has yet to be compensated. */
static const struct run_done *to_undo(const struct run_drive *d)
{
	size_t below = d->move.undone >= 0 ? (size_t)d->move.undone : d->undone_from;

	for (const struct run_done *done = d->done; done; done = done->before)
		if (done->step->position < below && done->step->compensate && !done->undone_at &&
		    strcmp(done->status, RUN_STEP_COMPLETED) == 0)
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
	carry_words(d);
}

/* A compensation that needs no call: its marker is all. True: on to the next. */
static bool undo_inside(struct run_drive *d, const struct answer *answer, const struct run_done *done)
{
	const struct action *action = done->step->compensate;

	if (d->move.undone >= 0 || d->move.rows_n) { /* one at a time; the next move goes on */
		go_on(d);
		return false;
	}
	if (action->kind == ACTION_SQL && !add_sql(d, answer, done->step, action, done))
		return false;
	d->move.undone = (int64_t)done->step->position;
	d->move.transitions++;
	return true;
}

static void plan_undo(struct run_drive *d, const struct answer *answer)
{
	const struct run_done *done;

	while ((done = to_undo(d))) {
		enum action_kind kind = done->step->compensate->kind;
		bool same = d->row.undo == (int64_t)done->step->position && d->move.undone < 0;

		if (same && !d->knows && d->row.wait_until > now_ms(d, answer)) {
			rest_on(d);
			return;
		}
		if (kind != ACTION_SQL && kind != ACTION_NOOP) {
			begin(d, answer, done->step, done, same ? d->row.attempt + 1 : 1,
			      /* doubt= */ same && d->row.doubt);
			return;
		}
		if (!undo_inside(d, answer, done))
			return;
	}
	cancelled(d); /* mutant: terminal-before-undo */
}

/* ---- outcomes ---- */

/* What was under way has ended, and is recorded by this move. */
static void continue_after(struct run_drive *d, const struct answer *answer)
{
	if (is_at(d, RUN_CANCELLING))
		plan_undo(d, answer);
	else if (is_at(d, RUN_PAUSED))
		rest_paused(d);
	else
		plan_steps(d, answer);
}

/* Tries that are over, of a compensation: the run stays CANCELLING until a person has it tried again, or resolves it. */
static void give_up_undo(struct run_drive *d, struct slice message, bool doubt)
{
	hold(d, doubt ? "OUTCOME_UNKNOWN" : "ACTION_FAILED", message);
	d->move.step_status = doubt ? RUN_STEP_UNKNOWN : RUN_STEP_FAILED;
	d->move.doubt = doubt;
}

/* It is certain that the step was not done, and it is not tried again. */
static void not_done(struct run_drive *d, const struct answer *answer, const char *code, struct slice message)
{
	if (d->row.undo >= 0) {
		give_up_undo(d, message, /* doubt= */ false);
	} else if (is_at(d, RUN_CANCELLING)) {
		plan_undo(d, answer);
	} else {
		d->move.attempt = d->row.attempt;
		d->move.redo = d->row.redo;
		fail(d, code, message, drive_step(d));
	}
}

/* A step in doubt, of a run that is being cancelled, that could not be undone if it had been done. */
static bool is_pointless(const struct run_drive *d)
{
	return is_at(d, RUN_CANCELLING) && d->row.undo < 0 && !drive_step(d)->compensate;
}

/* It cannot be undone, so there is no point in finding out by doing it once more: it is told, and that is all. */
static void leave_unknown(struct run_drive *d, const struct answer *answer, struct slice message)
{
	d->row.step_status = slice_str(RUN_STEP_UNKNOWN);
	d->row.error = run_make_error(d, "OUTCOME_UNKNOWN", message, drive_step(d));
	plan_undo(d, answer);
}

/* Nobody knows, and it is not tried again by itself. */
static void not_known(struct run_drive *d, const struct answer *answer, struct slice message)
{
	const struct run_step *step = drive_step(d);

	if (d->row.undo >= 0) {
		give_up_undo(d, message, /* doubt= */ true);
	} else if (is_pointless(d)) {
		leave_unknown(d, answer, message);
	} else if (step->goes_on_timed_out && !step->compensate && !is_at(d, RUN_CANCELLING)) {
		add_ended(d, answer, step, RUN_STEP_SKIPPED, d->row.attempt, slice_str("null"),
			  started_at(d, answer, step->position));
		continue_after(d, answer);
	} else {
		hold(d, "OUTCOME_UNKNOWN", message);
	}
}

/* This try did nothing, or nobody knows (doubt): it rests, and is tried again. */
static void rest_for_retry(struct run_drive *d, const struct answer *answer, struct slice message, bool doubt)
{
	struct run_move *move = &d->move;

	rest_unchanged(d, doubt);
	move->awaits = slice_of(NULL, 0);
	move->job = 0;
	move->wait_until = later(answer->now.ms, backoff_ms(&drive_step(d)->retry, d->row.attempt, answer->id));
	move->due_at = is_at(d, RUN_PAUSED) ? 0 : move->wait_until;
	move->error = run_make_error(d, doubt ? "OUTCOME_UNKNOWN" : "ACTION_FAILED", message, drive_step(d));
	move->to = is_at(d, RUN_CANCELLING) || is_at(d, RUN_PAUSED) ? d->row.status : RUN_WAITING;
}

static void try_again(struct run_drive *d, const struct answer *answer, struct slice message, bool doubt)
{
	bool left = d->row.attempt < drive_step(d)->retry.max_attempts;

	if (doubt && is_pointless(d))
		leave_unknown(d, answer, message);
	else if (left && (doubt || d->row.undo >= 0 || !is_at(d, RUN_CANCELLING)))
		rest_for_retry(d, answer, message, doubt);
	else if (doubt)
		not_known(d, answer, message);
	else
		not_done(d, answer, "ACTION_FAILED", message);
}

static enum on_unknown policy_of(const struct run_drive *d)
{
	if (d->row.undo < 0)
		return drive_step(d)->on_unknown;
	return drive_step(d)->compensate->effect == EFFECT_CLAIMED ? UNKNOWN_HOLD : UNKNOWN_RETRY;
}

static void unknown(struct run_drive *d, const struct answer *answer)
{
	switch (policy_of(d)) {
	case UNKNOWN_RETRY:
		try_again(d, answer, d->output, /* doubt= */ true);
		break;
	case UNKNOWN_PROBE:
		if (!d->was_probing && !is_at(d, RUN_PAUSED)) {
			begin_probe(d, answer, drive_step(d));
			break;
		}
		d->row.attempt += d->was_probing;
		try_again(d, answer, d->output, /* doubt= */ true);
		break;
	default:
		not_known(d, answer, d->output);
	}
}

static void done(struct run_drive *d, const struct answer *answer)
{
	const struct run_step *step = drive_step(d);

	if (d->output.n > RUN_OUTPUT_BYTES_MAX) {
		not_known(d, answer, slice_str("it was done, and its output is too large to be kept"));
		return;
	}
	if (d->row.undo >= 0) {
		d->move.undone = d->row.undo;
		d->move.transitions++;
	} else {
		add_ended(d, answer, step, RUN_STEP_COMPLETED, d->row.attempt, d->output,
			  started_at(d, answer, step->position));
	}
	continue_after(d, answer);
}

static void plan_outcome(struct run_drive *d, const struct answer *answer)
{
	switch (d->outcome) {
	case ACT_OK:
		done(d, answer);
		break;
	case ACT_FAILED:
		try_again(d, answer, d->output, d->row.doubt);
		break;
	case ACT_FAILED_FOR_GOOD: /* of this try; an earlier one may have been done all the same */
		if (d->row.doubt)
			not_known(d, answer, d->output);
		else
			not_done(d, answer, "ACTION_FAILED", d->output);
		break;
	case ACT_INVALID:
		not_done(d, answer, "INVALID", d->output);
		break;
	case ACT_UNKNOWN:
	case ACT_CLAIM_LOST:
		unknown(d, answer);
		break;
	}
}

/* ---- what a fresh look finds ---- */

/* The node that had begun it was lost, or its answer was: one attempt is in doubt. */
static void plan_doubt(struct run_drive *d, const struct answer *answer)
{
	const struct run_step *step = drive_step(d);
	const struct run_done *undone = d->row.undo >= 0 ? to_undo(d) : NULL;
	int64_t attempts_max = step->retry.max_attempts + (d->row.past ? TAKEOVERS_MAX : 0);

	d->output = slice_str("the node that carried it out was lost");
	if (is_at(d, RUN_PAUSED))
		rest_unchanged(d, /* doubt= */ true);
	else if (is_pointless(d))
		leave_unknown(d, answer, d->output);
	else if (d->row.wait_until > now_ms(d, answer))
		rest_on(d);
	else if (policy_of(d) == UNKNOWN_PROBE)
		begin_probe(d, answer, step);
	else if (policy_of(d) == UNKNOWN_RETRY && d->row.attempt < attempts_max)
		begin(d, answer, step, undone, d->row.attempt + 1, /* doubt= */ true);
	else
		not_known(d, answer, d->output);
}

/* The job of the step has not ended, and the step's time is over. */
static void job_timed_out(struct run_drive *d, const struct answer *answer)
{
	const struct run_step *step = drive_step(d);
	bool doubt = d->row.job_doubt || strcmp(d->row.job_status, JOB_RUNNING) == 0;
	int64_t started = started_at(d, answer, step->position);

	d->move.withdraws = d->row.job;
	d->row.doubt |= doubt;
	if (doubt && step->on_unknown == UNKNOWN_RETRY && d->row.attempt < step->retry.max_attempts)
		begin(d, answer, step, /* undone= */ NULL, d->row.attempt + 1, /* doubt= */ true);
	else if (doubt)
		not_known(d, answer, slice_str("no worker has told the outcome in time"));
	else if (pass_timed_out(d, answer, step, started))
		continue_after(d, answer);
}

static void job_is_out(struct run_drive *d, const struct answer *answer)
{
	bool taken = strcmp(d->row.job_status, JOB_RUNNING) == 0;
	bool late = d->row.wait_until && d->row.wait_until <= now_ms(d, answer);

	if (is_at(d, RUN_CANCELLING) && d->row.undo < 0 && !taken && !d->row.job_doubt) {
		d->move.withdraws = d->row.job;
		plan_undo(d, answer);
	} else if (late && d->row.undo < 0 && !is_at(d, RUN_CANCELLING) && !is_at(d, RUN_PAUSED)) {
		job_timed_out(d, answer);
	} else {
		d->move.due_at = late || is_at(d, RUN_CANCELLING) ? 0 : d->row.wait_until;
		rest_unchanged(d, d->row.doubt);
		d->move.to = is_at(d, RUN_PENDING) ? RUN_RUNNING : d->row.status;
	}
}

static void plan_job(struct run_drive *d, const struct answer *answer)
{
	if (strcmp(d->row.job_status, JOB_COMPLETED) == 0) {
		d->row.attempt = d->row.job_attempt;
		d->output = d->row.job_output.p ? d->row.job_output : slice_str("null");
		done(d, answer);
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
	rest_unchanged(d, d->row.doubt);
	d->move.to = is_at(d, RUN_PENDING) ? RUN_WAITING : d->move.to;
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
	return action->kind != ACTION_SQL && action->kind != ACTION_NOOP;
}

bool run_plan(struct run_drive *d, const struct answer *answer)
{
	d->move = (struct run_move){.to = d->row.status, .undone = -1, .undo = -1, .next = d->row.position};
	d->done = d->row.done;
	d->action = NULL;
	d->was_probing = d->probing;
	d->probing = false;
	if (run_is_terminal(d->row.status) || d->row.expired)
		return false;
	d->took_over |= !d->holding && d->row.past;
	if (d->knows)
		plan_outcome(d, answer);
	else if (d->row.awaits.p && slice_is(d->row.awaits, RUN_AWAITS_PERSON))
		plan_held(d, answer);
	else if (d->row.job)
		plan_job(d, answer);
	else if (is_in_doubt(d))
		plan_doubt(d, answer);
	else if (is_at(d, RUN_CANCELLING))
		plan_undo(d, answer);
	else if (is_at(d, RUN_PAUSED))
		rest_unchanged(d, d->row.doubt);
	else
		plan_steps(d, answer);
	if (!d->move.transitions)
		d->move.transitions = 1;
	return true;
}

void run_plan_give_up(struct run_drive *d)
{
	d->move = (struct run_move){
		.to = RUN_FAILED,
		.undone = -1,
		.undo = -1,
		.next = d->row.position,
		.transitions = 1,
		.write = RUN_WRITES_END,
		.attempt = d->row.attempt,
		.redo = d->row.redo,
		.step_status = RUN_STEP_FAILED,
		.error = slice_str(
			"{\"code\":\"TOO_LARGE\",\"message\":\"the texts of the run cannot be kept\",\"step\":null}")};
	d->done = d->row.done;
	d->action = NULL;
}
