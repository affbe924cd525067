/* How a move of a run may end, and what it may begin. See run_plan.h. */
#include "base/id.h"
#include "flow/call_key.h"
#include "flow/run_plan.h"
#include "flow/sql_action.h"

/* ---- the ways a move may end ---- */

void plan_rest(struct run_drive *d, const char *to)
{
	d->move.to = plan_is_at(d, RUN_CANCELLING) || plan_is_at(d, RUN_PAUSED) ? d->row.status : to;
	d->move.write = RUN_WRITES_REST;
	d->move.transitions++;
	if (plan_is_at(d, RUN_PAUSED))
		d->move.due_at = 0;
}

void plan_rest_unchanged(struct run_drive *d, bool doubt)
{
	struct run_move *move = &d->move;

	move->next = d->row.position;
	move->attempt = d->row.attempt;
	move->redo = d->row.redo;
	move->undo = d->row.undo;
	move->wait_until = d->row.wait_until;
	move->unsettled_since = d->row.unsettled_since;
	move->started_at = d->row.step_started_at;
	move->awaits = d->row.awaits;
	move->job = d->row.job;
	move->error = d->row.error;
	move->step_status = d->row.step_status.p ? d->row.step_status.p : NULL;
	move->doubt = doubt;
	plan_rest(d, d->row.status);
}

void plan_rest_on(struct run_drive *d)
{
	d->move.due_at = d->row.wait_until;
	plan_rest_unchanged(d, d->row.doubt);
	d->move.to = plan_is_at(d, RUN_PENDING) ? RUN_WAITING : d->move.to;
}

void plan_fail(struct run_drive *d, const char *code, struct slice message, const struct run_step *step)
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

void plan_hold(struct run_drive *d, const char *code, struct slice message)
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
	plan_rest(d, RUN_WAITING);
}

void plan_ended(struct run_drive *d, const struct answer *answer, const struct run_step *step, const char *status,
		int64_t attempt, struct slice output, int64_t started)
{
	struct run_done *done = arena_zalloc(d->arena, sizeof *done);

	ASSERT(d->move.rows_n < RUN_STEP_ROWS_MAX);
	d->move.rows[d->move.rows_n++] = (struct run_ended){step->position, status, attempt, output, started};
	d->move.transitions++;
	d->move.next = run_next_position(drive_definition(d), step->position, output);
	if (!done)
		return;
	*done = (struct run_done){
		.before = d->done,
		.step = step,
		.status = status,
		.attempt = attempt,
		.output = output,
		.started_at = started,
		.completed_at = answer->now.ms,
		.outputs_bytes = output.n + (d->done ? d->done->outputs_bytes : 0),
	};
	d->done = done;
}

void plan_complete(struct run_drive *d)
{
	const struct run_definition *definition = drive_definition(d);
	struct slice output = slice_str("null");
	struct hx_error err;

	if (definition->sees_around) {
		LOCAL_STRBUF(text, RUN_OUTPUT_BYTES_MAX);
		run_write_part_output(d, &text);
		output = arena_copy(d->arena, strbuf_slice(&text));
		if (text.failed) {
			plan_fail(d, "TOO_LARGE", slice_str("what it has saved is too large together"),
				  /* step= */ NULL);
			return;
		}
	}
	if (definition->scope && !definition->sees_around) /* the one task of a map: what it puts out is all */
		output = d->done->output;
	if (definition->output && run_evaluate(d, d->done, definition->output, &output, &err)) {
		plan_fail(d, hx_code_name(err.code), slice_str(err.detail), /* step= */ NULL);
		return;
	}
	d->move.to = RUN_COMPLETED;
	d->move.write = RUN_WRITES_END;
	d->move.output = output;
}

void plan_carry_words(struct run_drive *d)
{
	if (!plan_is_at(d, RUN_CANCELLING))
		return;
	if (d->move.stood.set) {
		bool same = d->move.undo >= 0 && d->move.undo == d->row.undo && d->move.undone < 0;

		d->move.error = same ? d->row.error : d->move.stood.error;
	} else {
		d->move.step_status = d->row.step_status.p;
		d->move.error = d->row.error;
	}
}

/* ---- beginning ---- */

/* An expression has no value. Of a compensation it had one once, so this is for a person to look at. */
static void cannot_begin(struct run_drive *d, const struct hx_error *err, const struct run_step *step, bool undo)
{
	if (!undo) {
		plan_fail(d, hx_code_name(err->code), slice_str(err->detail), step);
		return;
	}
	plan_hold(d, hx_code_name(err->code), slice_str(err->detail));
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
	move->wait_until = step->timeout_ms && move->undo < 0 ? plan_later(answer->now.ms, step->timeout_ms) : 0;
	move->due_at = move->wait_until;
	plan_carry_words(d);
	plan_rest(d, RUN_RUNNING);
}

/* An action in the outside world: carried out after the move, under the lease that it gives. */
static void begin_act(struct run_drive *d, const struct action *action)
{
	struct run_move *move = &d->move;
	bool first = d->holding && move->attempt == 1 && move->redo == 0 && move->undo < 0 && move->rows_n;

	move->to = plan_is_at(d, RUN_CANCELLING) ? RUN_CANCELLING : RUN_RUNNING;
	move->write = first ? RUN_WRITES_NOTHING : RUN_WRITES_BEGUN;
	move->keeps = true;
	move->transitions++;
	plan_carry_words(d);
	d->action = action;
}

/*
 * What is in doubt stays so. The next attempt waits in the line of the rate like any other: a takeover is no
 * exception.
 */
static void queue_in_doubt(struct run_drive *d, const struct answer *answer)
{
	d->move.due_at = answer->now.ms;
	plan_rest_unchanged(d, /* doubt= */ true);
	d->move.to = plan_is_at(d, RUN_CANCELLING) ? RUN_CANCELLING : RUN_WAITING;
	d->move.queues = true;
}

/* Whoever takes it up finds it as if this step had never been looked at. */
static void let_go_before(struct run_drive *d, const struct answer *answer)
{
	struct run_move *move = &d->move;

	move->attempt = 0;
	move->undo = -1;
	move->started_at = 0;
	move->due_at = answer->now.ms;
	plan_carry_words(d);
	plan_rest(d, RUN_PENDING);
	move->transitions--;
}

/*
 * A limit of the action is full, as was just found, and the run is held: by us, or by a holder whose time is over.
 * What is done is recorded, and the run is let go, since who waits holds nothing. It is due at once; whoever takes it
 * up puts it into the line.
 */
static bool stands_back(struct run_drive *d, const struct answer *answer)
{
	if (!(d->holding || d->row.past) || !d->full || (d->full != d->act.name && d->full != d->act_rate.name))
		return false;
	if (d->holding)
		let_go_before(d, answer);
	else
		queue_in_doubt(d, answer);
	d->act = (struct slot){0};
	if (!d->move.queues)
		d->act_rate = (struct rate){0};
	return true;
}

void plan_begin(struct run_drive *d, const struct answer *answer, const struct run_step *step,
		const struct run_done *undone, int64_t attempt, bool doubt)
{
	const struct action *action = undone ? step->compensate : step->action;
	struct run_move *move = &d->move;
	struct hx_error err;
	struct slice body;

	move->attempt = attempt;
	move->redo = plan_is_standing(d, step->position) || undone ? d->row.redo : 0;
	move->undo = undone ? (int64_t)step->position : -1;
	move->started_at = (attempt > 1 || doubt) && d->row.step_started_at ? d->row.step_started_at : answer->now.ms;
	move->unsettled_since = doubt ? d->row.unsettled_since : 0;
	move->doubt = doubt; /* mutant: doubt-forgotten */
	/* Before it is begun: whatever it answers must have room. What was begun before, or can only be undone, goes on. */
	if (attempt == 1 && !doubt && !undone && d->done && d->done->outputs_bytes > RUN_OUTPUTS_BYTES_MAX) {
		move->attempt = 0;
		move->started_at = 0;
		plan_fail(d, "TOO_LARGE", slice_str("the outputs of its steps are too large together"), step);
		return;
	}
	if (run_make_body(d, d->done, step, undone, &body, &err)) {
		cannot_begin(d, &err, step, undone != NULL);
		return;
	}
	d->key = run_make_key(d, step, move->redo, undone);
	d->body = body;
	if (action_is_for_workers(action)) {
		begin_job(d, answer, step, action, body);
		return;
	}
	run_count_action(d, action, body);
	if (!stands_back(d, answer))
		begin_act(d, action);
}

void plan_begin_probe(struct run_drive *d, const struct answer *answer, const struct run_step *step)
{
	plan_begin(d, answer, step, /* undone= */ NULL, d->row.attempt, /* doubt= */ true);
	if (d->action) {
		d->body = call_body_about(d->body, d->key, d->arena);
		d->key = call_key_to_ask(d->key, CALL_PROBE, answer->id, d->arena);
		d->move.write = RUN_WRITES_BEGUN;
		d->action = step->action->probe;
		d->probing = true;
		d->act = (struct slot){0};
		d->act_rate = (struct rate){0};
	}
}

bool plan_sql(struct run_drive *d, const struct answer *answer, const struct run_step *step,
	      const struct action *action, const struct run_done *undone)
{
	struct sql_params params = {
		.workflow = slice_str(drive_definition(d)->name),
		.requester = d->row.requester,
		.key = run_make_key(d, step, plan_is_standing(d, step->position) ? d->row.redo : 0, undone),
		.version = d->row.version,
		.now = answer->now,
	};
	struct hx_error err;
	struct slice input;

	if (run_make_input(d, d->done, step, undone, &input, &err)) {
		cannot_begin(d, &err, step, undone != NULL);
		return false;
	}
	params.id = arena_copy(d->arena, slice_str(id_text("run", drive_acts_for(d, undone)).text));
	params.input = json_trust(input);
	d->move.sql = action;
	d->move.sql_timeout_ms = undone ? 0 : step->timeout_ms;
	d->move.sql_values = sql_action_values(action, &params, d->arena);
	return !d->arena->failed;
}

void plan_go_on(struct run_drive *d)
{
	bool forward = d->holding && !plan_is_at(d, RUN_CANCELLING);

	d->move.to = plan_is_at(d, RUN_CANCELLING) ? RUN_CANCELLING : RUN_RUNNING;
	d->move.keeps = true;
	d->move.write = forward ? RUN_WRITES_NOTHING : RUN_WRITES_BEGUN;
	d->move.attempt = 0;
	d->move.started_at = d->row.now;
	plan_carry_words(d);
}
