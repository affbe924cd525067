/* See run_drive.h for the states; what comes next is decided in run_plan.c. */
#include "flow/run_drive.h"

#include <string.h>

#include "flow/answer.h"
#include "flow/probe.h"
#include "flow/run_parts.h"
#include "flow/shapes.h"
#include "task/pulse.h"
#include "task/states.h"

#define LOSSES_MAX 20 /* a caller who cancels, pauses and resumes in a loop */

static struct lease lease_of(const struct run_drive *d)
{
	return (struct lease){d->row.subject, d->row.fence, run_lease_ms(d, drive_step(d)), d->asked};
}

/* ---- going on ---- */

/* The next unit gets a fresh op, so that looking it up cannot find an earlier one. */
static void move(struct run_drive *d, const struct answer *answer)
{
	d->stamp = flow_stamp(answer);
	d->asked = answer->mono;
	task_go(&d->task, DRIVE_MOVING);
}

/* False: there is nothing to do. */
static bool decide(struct run_drive *d, const struct answer *answer)
{
	if (!d->slot.name)
		d->slot = run_limit_of(&d->row, d->policy, d->arena);
	d->rate = run_rate_of(&d->row, d->policy, d->arena);
	d->debounce = run_debounce_of(&d->row, d->arena);
	return run_plan(d, answer);
}

static void plan(struct run_drive *d, const struct answer *answer)
{
	bool moves = decide(d, answer);

	if (d->wants_children && !d->arena->failed) {
		task_go(&d->task, DRIVE_READING_CHILDREN);
		return;
	}
	if (!moves) {
		task_end(&d->task, HX_OK);
		return;
	}
	if (d->arena->failed) {
		d->arena->failed = false;
		run_plan_give_up(d, answer);
	}
	move(d, answer);
}

static void rest_a_moment(struct run_drive *d, const struct answer *answer)
{
	if (!d->holding || !flow_rests(&d->patience, &d->task, answer, DRIVE_RESTING))
		task_end(&d->task, HX_STORE_UNAVAILABLE);
}

/* An attempt is begun: the move that says so is durable. */
static void act(struct run_drive *d, const struct answer *answer)
{
	struct lease lease = lease_of(d);
	bool may = true;

	may &= lease_is_trusted(&lease, answer->mono); /* mutant: drive-on-lapsed-lease */
	if (may)
		task_go(&d->task, d->probing ? DRIVE_PROBING : DRIVE_ACTING);
	else
		task_end(
			&d->task,
			HX_STORE_UNAVAILABLE); /* the claim ends by its time, and whoever takes over finds it in doubt */
}

/* ---- answers ---- */

/* Does the run stand where an event or a decision may have come for it? */
static bool wants_event(const struct run_drive *d)
{
	const struct run_definition *definition = drive_definition(d);

	if (d->row.position == definition->steps_n || run_is_terminal(d->row.status) ||
	    strcmp(d->row.status, RUN_CANCELLING) == 0 || strcmp(d->row.status, RUN_PAUSED) == 0)
		return false;
	return run_step_awaits(&definition->steps[d->row.position]).prefix != NULL;
}

static void missing(struct run_drive *d, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[0];

	d->missing_workflow = arena_copy(d->arena, db_cell(rows, 0, RUN_WORKFLOW)->s);
	d->missing_version = db_cell(rows, 0, RUN_DEFINITION_VERSION)->i;
	task_end(&d->task, HX_CONFIG_ERROR);
}

/* Of its parts, too: whoever carries a part out is a run of this definition. */
static const struct action *absent_of(const struct run_definition *definition, bool undoing)
{
	const struct action *absent = NULL;

	for (size_t i = 0; i < definition->steps_n && !absent; i++) {
		const struct run_step *step = &definition->steps[i];

		absent = action_absent(step->compensate); /* mutant: left-run-undone */
		if (!absent && !undoing)
			absent = action_absent(step->action);
		for (size_t k = 0; k < step->parts_n && !absent; k++)
			absent = absent_of(step->parts[k].definition, undoing);
	}
	return absent;
}

const struct action *run_row_absent(const struct run_row *row)
{
	return absent_of(row->machine->definition, strcmp(row->status, RUN_CANCELLING) == 0);
}

/* It is left to a program that can, as it is: nothing was claimed. */
static bool is_left(struct run_drive *d)
{
	const struct action *absent = run_row_absent(&d->row);

	if (!absent)
		return false;
	d->missing_workflow = slice_str(drive_definition(d)->name);
	d->missing_version = d->row.machine->version;
	d->missing_function = absent->function;
	task_end(&d->task, HX_CONFIG_ERROR);
	return true;
}

/* Can its move be written by the unit that makes the run? It begins a call, and after the insert no line of it can be lost. */
static bool may_go_along(const struct run_drive *d)
{
	bool counted = d->slot.name || d->rate.name || d->debounce || run_has_lines(&d->row);

	if (!d->move.keeps || !d->action || d->move.write != RUN_WRITES_BEGUN || d->arena->failed)
		return false;
	return !counted; /* mutant: made-over-a-limit -> return true; */
}

static void start_making(struct run_drive *d, const struct answer *answer)
{
	struct run_spec spec = *d->makes;

	d->subject = spec.subject = answer->more_ids[0];
	d->stamp = flow_stamp(answer);
	d->asked = answer->mono;
	run_row_created(&spec, &d->stamp, &d->row);
	d->goes_along = !run_row_absent(&d->row) && decide(d, answer) && may_go_along(d);
	task_go(&d->task, DRIVE_MAKING);
}

static void run_drive_take_start(struct run_drive *d, const struct answer *answer)
{
	if (d->maker)
		start_making(d, answer);
	else if (!d->row.machine)
		task_go(&d->task, DRIVE_READING);
	else if (!is_left(d)) /* mutant: left-run-created -> else */
		plan(d, answer);
}

static void run_drive_take_read(struct run_drive *d, const struct answer *answer)
{
	int64_t fence = d->row.fence;
	bool doubt = d->row.doubt;
	enum hx_code code;

	d->whole = false; /* mutant: known-of-another */
	if (answer->result->verdict != UNIT_WON) {
		rest_a_moment(d, answer);
		return;
	}
	code = run_row_take(answer->result, d->policy->machine_of, d->policy->context, d->arena, &d->row);
	if (code == HX_CONFIG_ERROR) {
		missing(d, answer);
	} else if (code == HX_BUSY) {
		task_go(&d->task, DRIVE_READING);
	} else if (code) {
		task_end(&d->task, code);
	} else if (d->holding && (!d->row.owned || d->row.fence != fence)) {
		d->fenced = true;
		task_end(&d->task, HX_STALE_FENCE);
	} else if (!d->holding && d->row.owned && !d->row.past) {
		task_end(&d->task, HX_CLAIM_FAILED);
	} else if (!d->holding && !d->row.owned && (!d->row.due_at || d->row.due_at > d->row.now)) {
		task_end(&d->task, HX_OK); /* somebody was first, and has left it waiting: nothing is to be written */
	} else if (!d->holding && is_left(d)) { /* mutant: left-run-taken -> } else if (0) { */
		return;
	} else if (!d->holding && wants_event(d)) {
		task_go(&d->task, DRIVE_READING_EVENT);
	} else {
		d->row.doubt = (d->row.doubt || (d->holding && doubt)) && !d->settled;
		plan(d, answer);
	}
}

static void take_event(struct run_drive *d, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[0];

	if (answer->result->verdict != UNIT_WON) {
		rest_a_moment(d, answer);
		return;
	}
	d->event_found = rows->n > 0;
	if (d->event_found) {
		d->event_id = arena_copy(d->arena, db_cell(rows, 0, 0)->s);
		d->event_data = arena_copy(d->arena, db_cell(rows, 0, 1)->s);
	}
	plan(d, answer);
}

static void take_children(struct run_drive *d, const struct answer *answer)
{
	if (answer->result->verdict != UNIT_WON) {
		rest_a_moment(d, answer);
		return;
	}
	if (d->wanted == KIDS_POLLED) {
		d->polled_of = d->wants_children;
		d->polled = answer->result->rows[0].n > 0;
		plan(d, answer);
		return;
	}
	if (!run_kids_take(answer->result, d->wants_children, d->arena, &d->kids)) {
		task_end(&d->task, HX_TOO_LARGE);
		return;
	}
	plan(d, answer);
}

/* The row as the move has left it. */
static void apply(struct run_drive *d, int64_t version, int64_t fence)
{
	const struct run_move *m = &d->move;

	d->row.version = version;
	d->row.fence = fence;
	d->row.status = m->to;
	d->row.owned = m->keeps;
	d->row.past = false;
	d->row.doubt = m->doubt;
	d->row.done = d->done;
	d->row.position = m->next;
	d->row.attempt = m->attempt;
	d->row.redo = m->redo;
	d->row.undo = m->undo;
	d->row.wait_until = m->wait_until;
	d->row.unsettled_since = m->unsettled_since;
	d->row.step_started_at = m->started_at;
	d->row.step_status = m->step_status ? slice_str(m->step_status) : slice_of(NULL, 0);
	d->row.awaits = m->awaits;
	d->row.error = m->error;
	d->row.job = m->job;
	if (d->row.line != run_line_after(d)) {
		d->row.line = run_line_after(d);
		d->row.line_action = d->act.action;
	}
	d->row.stood = m->stood;
	if (m->attributes.p)
		d->row.attributes = m->attributes.n ? m->attributes : slice_of(NULL, 0);
	d->holding = m->keeps;
	if (m->undone >= 0)
		d->undone_from = (size_t)m->undone;
}

/* The move is durable. */
static void moved_to(struct run_drive *d, const struct answer *answer, int64_t version, int64_t fence)
{
	d->took_over |= !d->holding && d->row.past;
	apply(d, version, fence);
	d->held = d->move.awaits.p && slice_is(d->move.awaits, RUN_AWAITS_PERSON);
	d->brought_to_end = run_is_terminal(d->row.status);
	d->knows = false;
	d->settled = false;
	d->event_found = false;
	d->kids.step = NULL;
	d->full = 0;
	d->patience.gives_up_at.ns = 0;
	d->losses = 0;
	if (!d->move.keeps)
		task_end(&d->task, HX_OK);
	else if (d->action)
		act(d, answer);
	else
		plan(d, answer);
}

/* Row: (version, fence), from the move itself or from its history row. */
static void moved(struct run_drive *d, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[0];

	moved_to(d, answer, db_cell(rows, 0, 0)->i, db_cell(rows, 0, 1)->i);
}

/* The run that it makes is there. (Its op has two rows of history where a move went along.) */
static void is_made(struct run_drive *d, const struct answer *answer)
{
	bool begun = d->goes_along;

	d->made = true;
	d->maker = NULL;
	d->goes_along = false;
	d->whole = begun;
	if (begun)
		moved_to(d, answer, d->row.version + d->move.transitions, d->row.fence + 1);
	else if (!is_left(d)) /* mutant: left-run-made -> else */
		plan(d, answer);
}

static void take_made(struct run_drive *d, const struct answer *answer)
{
	struct single single = *d->maker;
	enum hx_code code;

	single.stamp = d->stamp;
	single.fresh_id = d->subject;
	code = answer->result->verdict == UNIT_FAILED ? flow_failure(answer->result)
						      : single.answered(&single, answer->result);
	if (code)
		task_end(&d->task, code);
	else
		is_made(d, answer);
}

/* Whoever waits for it was told that nobody knows. */
static void rest_finding(struct run_drive *d, const struct answer *answer)
{
	if (!flow_rests(&d->patience, &d->task, answer, DRIVE_RESTING))
		task_end(&d->task, HX_OUTCOME_UNKNOWN);
}

static void is_not_made(struct run_drive *d, const struct answer *answer UNUSED)
{
	task_end(&d->task, HX_OUTCOME_UNKNOWN); /* mutant: made-by-guess -> is_made(d, answer); */
}

TASK_LOOKED_UP(take_found, struct run_drive, rest_finding, is_made, is_not_made);

/* Was the move lost to a limit that is full? Then nothing of it is there. */
static bool was_full(struct run_drive *d, const struct answer *answer)
{
	struct unit unit;

	if (!d->slot.name && !d->rate.name && !d->act.name && !d->act_rate.name)
		return false;
	unit_init(&unit, d->stamp.op);
	run_build_move(d, &unit);
	d->full = slot_full(&unit, answer->result);
	return d->full != 0;
}

/* Somebody was first, or the status was shifted under us. What we know we keep, and look again. */
static void run_drive_lost(struct run_drive *d, const struct answer *answer)
{
	d->kids.step = NULL;
	if (was_full(d, answer) && !d->holding && !d->row.past) {
		d->stamp = flow_stamp(answer);
		task_go(&d->task, DRIVE_LINING_UP);
		return;
	}
	if ((d->holding || d->full) && d->losses++ < LOSSES_MAX)
		task_go(&d->task, DRIVE_READING);
	else
		task_end(&d->task, d->holding ? HX_STALE_FENCE : HX_CLAIM_FAILED);
}

/* The statements of a sql action were refused, and the unit with them: the step was certainly not done. */
static void sql_refused(struct run_drive *d, const struct answer *answer)
{
	struct unit unit;

	if (answer->result->verdict == UNIT_REFUSED) {
		unit_init(&unit, d->stamp.op);
		run_build_move(d, &unit);
		d->outcome = ACT_INVALID;
		d->output = slice_str(unit.lines[answer->result->line].stmt->name);
	} else {
		/* Out of time is no fault of the statement: at another time it may do. */
		d->outcome = answer->result->error.code == HX_ACTION_FAILED ? ACT_FAILED : ACT_FAILED_FOR_GOOD;
		d->output = arena_copy(d->arena, slice_str(answer->result->error.detail));
	}
	d->row.undo = d->move.undone >= 0 ? d->move.undone : -1;
	d->row.attempt++;
	d->knows = true;
	d->not_before_ms = 0;
	plan(d, answer);
}

/* Nothing else of ours can be refused for its data, unless the store is not as we know it. */
static void data_refused(struct run_drive *d, const struct answer *answer)
{
	if (d->losses++) {
		task_end(&d->task, HX_DATA_ERROR);
		return;
	}
	run_plan_give_up(d, answer);
	move(d, answer);
}

/* The store's own trouble, which passes; all else that a statement of the user's meets is about that statement. */
static bool is_of_the_store(enum hx_code code)
{
	return code == HX_STORE_UNAVAILABLE || code == HX_BUSY || code == HX_CONCURRENCY_ERROR ||
	       code == HX_NO_MEMORY || code == HX_TOO_LARGE || code == HX_STOPPING;
}

static void take_moved(struct run_drive *d, const struct answer *answer)
{
	const struct unit_result *result = answer->result;

	if (result->verdict == UNIT_WON)
		moved(d, answer);
	else if (result->verdict == UNIT_LOST)
		run_drive_lost(d, answer);
	else if (result->verdict == UNIT_REFUSED || (d->move.sql && !is_of_the_store(result->error.code)))
		sql_refused(d, answer);
	else if (result->error.code == HX_DATA_ERROR)
		data_refused(d, answer);
	else
		rest_a_moment(d, answer);
}

/* What was planned then is written now, and the times of its rows with it. */
static void move_again(struct run_drive *d, const struct answer *answer)
{
	d->whole = false; /* mutant: known-of-then */
	move(d, answer);
}

TASK_LOOKED_UP(take_looked_up, struct run_drive, rest_a_moment, moved, move_again);

static void run_drive_take_acted(struct run_drive *d, const struct answer *answer)
{
	if (answer->outcome == ACT_CLAIM_LOST) {
		task_end(&d->task, HX_STALE_FENCE);
		return;
	}
	d->asked = answer->lease_since;
	d->was_probing = d->task.at == DRIVE_PROBING;
	d->knows = true;
	d->not_before_ms = answer->not_before_ms;
	d->outcome = answer->outcome;
	d->output = arena_copy(d->arena, answer->output);
	plan(d, answer);
}

static void run_drive_take_probed(struct run_drive *d, const struct answer *answer)
{
	struct answer told = *answer;

	switch (answer->outcome == ACT_CLAIM_LOST ? PROBE_UNKNOWN : probe_read(answer, &told.output)) {
	case PROBE_DONE:
		told.outcome = ACT_OK;
		break;
	case PROBE_NOT_DONE:
		d->row.doubt = false;
		d->settled = true;
		told.outcome = ACT_FAILED;
		told.output = slice_str("the probe says that it was not done");
		break;
	case PROBE_UNKNOWN:
		if (answer->outcome != ACT_CLAIM_LOST)
			told.outcome = ACT_UNKNOWN;
		told.output = slice_str("the probe does not know either");
		break;
	}
	run_drive_take_acted(d, &told);
}

/* A lost answer does no harm: the run is due until it stands in line, and to stand there twice is the same as once. */
static void take_line(struct run_drive *d, const struct answer *answer)
{
	enum unit_verdict verdict = answer->result->verdict;

	d->in_line = verdict == UNIT_WON;
	task_end(&d->task, verdict == UNIT_WON ? HX_OK : verdict == UNIT_LOST ? HX_CLAIM_FAILED : HX_STORE_UNAVAILABLE);
}

static void take_rested(struct run_drive *d, const struct answer *answer)
{
	task_go(&d->task, d->patience.rests_from);
	if (d->task.at == DRIVE_MOVING)
		move_again(d, answer);
}

/* ---- asks ---- */

TASK_UNIT(build_read, struct run_drive, d, run_read(unit, /* workspace= */ slice_of(NULL, 0), d->subject));
TASK_UNIT(build_read_event, struct run_drive, d,
	  run_read_event(unit, drive_hears(d), run_step_awaits(&drive_definition(d)->steps[d->row.position])));
TASK_UNIT(build_read_children, struct run_drive, d,
	  run_children_read(unit, d->row.subject, d->wants_children, d->wanted, d->wanted_of));
TASK_UNIT(build_look_up, struct run_drive, d, subject_look_up(unit, d->subject, d->stamp.op));

static void build_making(const struct run_drive *d, struct unit *unit)
{
	struct single single = *d->maker;
	struct run_spec spec = *d->makes;

	single.stamp = d->stamp;
	single.fresh_id = spec.subject = d->subject;
	single.build(&single, unit);
	if (d->goes_along) {
		spec.begun.position = d->move.next;
		spec.begun.attempt = d->move.attempt;
		spec.begun.started_at = d->move.started_at;
		spec.begun.transitions = d->move.transitions;
		spec.begun.lease_ms = run_lease_ms(d, &drive_definition(d)->steps[d->move.next]);
		spec.begun.to = d->move.to;
	}
	run_create(unit, &d->stamp, &spec);
	if (d->goes_along)
		run_build_move(d, unit);
}

static struct act_call run_drive_call_of(const struct run_drive *d)
{
	const struct run_step *step = drive_step(d);

	return (struct act_call){
		.action = d->action,
		.input = d->body,
		.key = d->key,
		.attempt = d->row.attempt,
		.traceparent = d->row.trace,
		.unknown_on_5xx = step->unknown_on_5xx,
		.in_doubt = d->row.doubt,
		.timeout_ms = d->row.undo < 0 ? step->timeout_ms : 0,
		.lease = lease_of(d),
		.tenant = unit_tenant(d->row.workspace),
	};
}

static const TASK_STATES(struct run_drive) drive_states[] = {
	[DRIVE_NEW] = {"new", run_drive_take_start},
	[DRIVE_MAKING] = {"making the run", take_made, build_making, .unknown = DRIVE_FINDING},
	[DRIVE_FINDING] = {"finding out whether it was made", take_found, build_look_up},
	[DRIVE_READING] = {"reading the run", run_drive_take_read, build_read},
	[DRIVE_READING_EVENT] = {"reading events", take_event, build_read_event},
	[DRIVE_READING_CHILDREN] = {"reading children", take_children, build_read_children},
	[DRIVE_MOVING] = {"moving", take_moved, run_build_move, .unknown = DRIVE_LOOKING_UP},
	[DRIVE_LOOKING_UP] = {"looking up its move", take_looked_up, build_look_up},
	[DRIVE_RESTING] = {"resting", take_rested, .until = offsetof(struct run_drive, patience.rests_until)},
	[DRIVE_LINING_UP] = {"standing in line", take_line, run_build_line},
	[DRIVE_ACTING] = {"acting", run_drive_take_acted, .act = run_drive_call_of},
	[DRIVE_PROBING] = {"probing", run_drive_take_probed, .act = run_drive_call_of},
	[DRIVE_DONE] = {"done"},
};

static const struct task_shape ended_shape = SHAPE(struct run_ended, NULL,
	PART(TEXT, struct run_ended, status), PART(SLICE, struct run_ended, output));

static const struct task_shape brood_shape = SHAPE(struct run_brood, NULL,
	PART(SLICE, struct run_brood, key),
	PART(IGNORED, struct run_brood, rows), /* ids that nobody else was given, and what follows from the row */
	PART(SLICE, struct run_brood, limit_key));

static const struct task_shape asking_shape = SHAPE(struct run_asking, NULL, PART(TEXT, struct run_asking, word));

static const struct task_shape kid_shape = SHAPE(struct run_kid, NULL,
	PART_WITH(OBJECT, struct run_kid, next, &kid_shape),
	PART(IGNORED, struct run_kid, completed_at), /* when the next begins is decided anew */
	PART(SLICE, struct run_kid, state, output, error));

static const struct task_shape kids_shape = SHAPE(struct run_kids, NULL, PART_WITH(OBJECT, struct run_kids, first, &kid_shape));

static const struct task_shape move_shape = SHAPE(struct run_move, NULL,
	PART(TEXT, struct run_move, to),
	PART_WITH(INNER, struct run_move, rows, &ended_shape),
	PART(SLICE, struct run_move, event_id),
	PART(MADE, struct run_move, withdraws),
	PART(TEXT, struct run_move, step_status),
	PART_WITH(INNER, struct run_move, stood, &run_stood_shape),
	PART(SLICE, struct run_move, awaits, output, error, attributes),
	PART(MADE, struct run_move, job),
	PART(SLICE, struct run_move, payload),
	PART_WITH(INNER, struct run_move, brood, &brood_shape),
	PART_WITH(INNER, struct run_move, asking, &asking_shape),
	PART(SLICE, struct run_move, effect_payload),
	PART(IGNORED, struct run_move, effect_ids), /* ids that nobody else was given */
	PART(SLICE, struct run_move, effect_keys));

static const struct task_shape drive_shape = SHAPE(struct run_drive, NULL,
	PART(MADE, struct run_drive, subject),
	PART(SLICE, struct run_drive, missing_workflow),
	PART(TEXT, struct run_drive, missing_function),
	PART_WITH(INNER, struct run_drive, row, &run_row_shape),
	PART_WITH(INNER, struct run_drive, slot, &slot_shape),
	PART_WITH(INNER, struct run_drive, rate, &rate_shape),
	PART_WITH(INNER, struct run_drive, act, &slot_shape),
	PART_WITH(INNER, struct run_drive, act_rate, &rate_shape),
	PART_WITH(INNER, struct run_drive, move, &move_shape),
	PART_WITH(OBJECT, struct run_drive, done, &run_done_shape),
	PART(SLICE, struct run_drive, output),
	PART(KEY, struct run_drive, key), PART(SLICE, struct run_drive, body),
	PART_WITH(INNER, struct run_drive, kids, &kids_shape),
	PART(SLICE, struct run_drive, event_id, event_data),
	PART_WITH(INNER, struct run_drive, stamp, &stamp_shape));

TASK_KIND_STAMPED(drive_kind, "run", struct run_drive, drive_states, .shape = &drive_shape);

void run_drive_init(struct run_drive *d, int64_t subject, const struct run_policy *policy, struct arena *arena)
{
	*d = (struct run_drive){.subject = subject, .policy = policy, .arena = arena, .undone_from = SIZE_MAX};
	task_init(&d->task, &drive_kind, /* topic= */ 0);
}

void run_drive_init_created(struct run_drive *d, const struct run_row *row, const struct run_policy *policy,
			    struct arena *arena)
{
	run_drive_init(d, row->subject, policy, arena);
	d->row = *row;
}

bool run_drive_completed(const struct run_drive *d, struct run_row *ret_row)
{
	if (!d->whole || !d->brought_to_end || strcmp(d->row.status, RUN_COMPLETED) != 0)
		return false;
	*ret_row = d->row;
	ret_row->output = d->move.output;
	ret_row->started_at = d->row.created_at; /* one unit */
	ret_row->completed_at = ret_row->updated_at = d->stamp.at.ms;
	return true;
}

void run_drive_init_making(struct run_drive *d, const struct single *maker, const struct run_spec *spec,
			   const struct run_policy *policy, struct arena *arena)
{
	run_drive_init(d, /* subject= */ 0, policy, arena);
	d->maker = maker;
	d->makes = spec;
}
