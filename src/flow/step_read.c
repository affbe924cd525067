/*
 * What the row says about the step that is to be made: which one it is, whether it may be, and which call was begun before it. For
 * janitors and people: which step holds the claim. See entity_step.h for the states, step_kept.c for the call.
 */
#include "base/excerpt.h"
#include "flow/call_limit.h"
#include "flow/step_parts.h"
#include "model/text.h"

#define ADOPTIONS_MAX 3
#define AWAIT_MS 20
#define AWAITS_MAX 100

static bool is_held(const struct db_rows *rows)
{
	return slice_is(db_cell(rows, 0, ENTITY_OWNER)->s, SUBJECT_HELD);
}

/* Somebody has the claim, which ends by itself; or it is for a person, and does not. */
static void end_claimed(struct entity_step *s, const struct db_rows *rows)
{
	const char *words = "another operation is already in progress";

	if (is_held(rows))
		words = text_printf(s->arena,
				    "the outcome of the step \"%s\" is unknown, and a person has to resolve it: see "
				    "`hapax why`, `hapax entity resolve`",
				    excerpt_of(db_cell(rows, 0, ENTITY_CLAIM_STEP)->s).text);
	step_end_saying(s, HX_CLAIM_FAILED, words ? words : "the outcome of the step before is unknown");
}

/* Which step this is, seen from the row; false: ended. */
static bool choose_step(struct entity_step *s, const struct db_rows *rows, struct slice status)
{
	const struct workflow *w = step_workflow(s);

	s->step = workflow_step(w, s->rq->step_key, status, s->rq->requester);
	if (s->step) {
		s->view = workflow_view(w, s->step, s->rq->requester);
		step_call_by(s, s->view, s->rq->ref.machine->version);
		if (s->view->allowed)
			return true;
		step_end_saying(s, HX_REQUESTER_NOT_ALLOWED, "this requester may not fire this step");
	} else if (!workflow_has_step(w, s->rq->step_key)) {
		step_end_saying(s, HX_NOT_FOUND, "the workflow has no step of this name");
	} else if (workflow_is_claim_status(w, status)) {
		end_claimed(s, rows);
	} else if (!workflow_has_status(w, status)) {
		step_end_saying(s, HX_WRONG_STATUS,
				"the entity is in a status that the definition in force does not have");
	} else {
		const char *words = text_printf(s->arena,
						"the step does not start from \"%s\", the status that the entity is in",
						excerpt_of(status).text);

		step_end_saying(s, HX_WRONG_STATUS, words ? words : "the step does not start from this status");
	}
	return false;
}

/* What the step would need and this program cannot call; it is refused before anything is claimed. False: ended. */
static bool can_be_called(struct entity_step *s)
{
	const struct action *absent = action_absent(s->call->action);
	const char *words;

	if (!absent)
		absent = action_absent(s->view->validation);
	if (!absent)
		return true;
	words = text_printf(
		s->arena,
		"the step needs the function \"%s\", which this program does not have: it is for the one that "
		"has registered it",
		excerpt_of(slice_str(absent->function)).text);
	step_end_saying(s, HX_NOT_IMPLEMENTED,
			words ? words : "the step needs a function that this program does not have");
	return false;
}

/* To have asked for that version is enough to have it brought. The entity is read again after AWAIT_MS. */
static void await_definition(struct entity_step *s, const struct answer *answer)
{
	s->asked = mono_add_ms(answer->mono, AWAIT_MS);
	task_go(&s->task, STEP_AWAITING);
	if (s->waits++ == AWAITS_MAX)
		step_end_saying(
			s, HX_BUSY,
			"the outcome of this step's last call is not known, and the version of the definition that "
			"made it is not known here (yet)");
}

/* Was the claim lost to somebody who has moved the entity since it was read? May be asked once. */
static bool lost_for_good(struct entity_step *s)
{
	bool lost = s->lost_version && s->lost_version != s->version;

	s->lost_version = 0;
	return lost;
}

static const struct action *action_in_force(const struct entity_step *s, const char *name)
{
	const struct workflow *w = step_workflow(s);

	for (size_t i = 0; i < w->actions_n; i++)
		if (strcmp(w->actions[i].name, name) == 0)
			return &w->actions[i];
	return NULL;
}

/* By the version that the call is made by, as its address is. Who stands in line and was woken comes first, however old the entity is. */
static void find_bounds(struct entity_step *s)
{
	const struct action *action = s->call->action;

	s->bounds = (struct bounds){0};
	if (action && limits_are_set(&action->limits))
		s->bounds = call_bounds(&(struct call_of){.workspace = s->workspace,
							  .workflow = slice_str(step_workflow(s)->name),
							  .action = action,
							  .in_force = action_in_force(s, action->name),
							  .input = s->input},
					s->arena);
	s->bounds.slot.rank = s->bounds.rate.rank = 1; /* mutant: step-before-the-line -> ; */
}

static void take_read_to_fire(struct entity_step *s, const struct answer *answer, struct slice status)
{
	const char *words = NULL;
	enum hx_code code;

	if (lost_for_good(s)) {
		end_claimed(s, &answer->result->rows[0]);
		return;
	}
	if (!choose_step(s, &answer->result->rows[0], status))
		return;
	if (s->rq->version && s->rq->version != s->version) {
		step_end_saying(s, HX_CONCURRENCY_ERROR, "the entity has another version by now");
		return;
	}
	if (step_claim_is_in_doubt(s, &answer->result->rows[0])) { /* mutant: written-over -> if (0) { */
		step_go(s, STEP_PUTTING_AWAY, answer);
		return;
	}
	code = step_take_kept(s, &answer->result->rows[0], &words);
	if (code == HX_BUSY)
		await_definition(s, answer);
	else if (code)
		step_end_saying(s, code, words);
	if (code)
		return;
	if (s->kept && !step_acts_outside(s->call->action)) { /* mutant: inside-taken-over -> if (0) { */
		step_go(s, STEP_PUTTING_AWAY, answer);
		return;
	}
	if (s->view->save_as && json_type(json_trust(s->data)) != JSON_OBJECT) {
		step_end_saying(s, HX_WRONG_STATUS,
				"the step saves its output in the entity's data, which is no object");
		return;
	}
	if (!can_be_called(s)) /* mutant: left-step-fired -> if (0) */
		return;
	step_make_key(s);
	s->over_claim = db_cell(&answer->result->rows[0], 0, ENTITY_OWNER)->type != DB_NULL;
	if (s->view->claim_into) {
		find_bounds(s);
		s->asked = answer->mono;
		step_go(s, STEP_CLAIMING, answer);
	} else {
		step_start_work(s, answer);
	}
}

/* The step that holds the claim, out of what it noted when it claimed. */
static bool find_claimed_step(struct entity_step *s, const struct db_rows *rows, struct slice status)
{
	const struct workflow *w = step_workflow(s);
	struct slice key = db_cell(rows, 0, ENTITY_CLAIM_STEP)->s,
		     requester = db_cell(rows, 0, ENTITY_CLAIM_REQUESTER)->s;

	s->step = workflow_step(w, key, db_cell(rows, 0, ENTITY_CLAIM_FROM)->s, requester);
	s->view = s->step ? workflow_view(w, s->step, requester) : NULL;
	s->requester = s->sender = arena_copy(s->arena, requester);
	s->input = arena_copy(s->arena, db_cell(rows, 0, ENTITY_CLAIM_INPUT)->s);
	s->claimed = true;
	if (s->view)
		step_call_by(s, s->view, s->rq->ref.machine->version);
	return s->view && s->view->claim_into && slice_is(status, s->view->claim_into);
}

/* What a person says of a claim that is held. */
static void take_word(struct entity_step *s, const struct answer *answer)
{
	bool done = s->rq->mode == STEP_RESOLVE_DONE;

	if (s->rq->version && s->rq->version != s->version) {
		step_end_saying(s, HX_CONCURRENCY_ERROR, "the entity has another version by now");
		return;
	}
	step_make_word(s, done);
	if (done) {
		s->output = s->rq->input.raw;
		step_start_finish(s, answer);
		return;
	}
	s->task.code = HX_OK; /* the person asked for it */
	s->answered = true;
	step_go(s, STEP_RELEASING, answer);
}

/* The key of the claim's call, and what is kept of it beside the claim. */
static void find_claimed_call(struct entity_step *s, const struct db_rows *rows)
{
	const struct db_value *effort = db_cell(rows, 0, ENTITY_CLAIM_EFFORT);

	step_find_kept(s, rows, effort);
	if (effort->type == DB_INT)
		s->effort = effort->i;
	if (s->kept)
		step_take_kept_sender(s, rows);
}

static void take_read_of_claim(struct entity_step *s, const struct answer *answer, struct slice status)
{
	const struct db_rows *rows = &answer->result->rows[0];

	if (db_cell(rows, 0, ENTITY_OWNER)->type == DB_NULL || is_held(rows) != (s->rq->mode != STEP_RECOVER)) {
		step_end_saying(s, HX_WRONG_STATUS, "no claim of this entity is held for a person");
		return;
	}
	if (!find_claimed_step(s, rows, status)) {
		step_end_saying(s, HX_WRONG_STATUS,
				"the definition in force does not have the step that claimed the entity");
		return;
	}
	if (s->rq->mode != STEP_RECOVER && !slice_is(s->rq->step_key, s->step->step_key)) {
		step_end_saying(s, HX_WRONG_STATUS, "the claim belongs to another step");
		return;
	}
	find_claimed_call(s, rows);
	if (step_find_call(s, rows) ==
	    HX_BUSY) { /* which step made the call in the definition in force is known in any case */
		await_definition(s, answer);
		return;
	}
	/* What was to be done in the store was not done: the definition in force says what there is to do. */
	if (!step_acts_outside(s->call->action)) /* mutant: left-in-store -> if (0) */
		step_call_by(s, s->view, s->rq->ref.machine->version);
	if (s->rq->mode == STEP_RECOVER && !can_be_called(s)) /* mutant: left-claim-recovered -> if (0) */
		return;
	step_make_key(s);
	if (s->rq->mode == STEP_ASK) {
		step_ask_probe(s, answer);
		return;
	}
	s->acted = true;
	if (s->rq->mode == STEP_RECOVER) {
		s->bounds.slot = slot_held(&rows[STEP_LINE_SLOT]); /* mutant: probed-keeps-its-slot -> ; */
		s->asked = answer->mono;
		step_go(s, STEP_RECOVERING, answer);
	} else {
		take_word(s, answer);
	}
}

/* The last call that was begun was made with the data as it is. (What is in doubt for longer is kept with its own.) */
static bool is_in_doubt(const struct entity_step *s, const struct db_rows *rows)
{
	const struct db_value *kept = db_cell(rows, 0, ENTITY_KEPT_EFFORT);

	return db_cell(rows, 0, ENTITY_DOUBT)->i || (kept->type == DB_INT && kept->i >= s->effort);
}

static void take_read_to_change(struct entity_step *s, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[0];
	const char *words = NULL;
	enum hx_code code;

	if (db_cell(rows, 0, ENTITY_OWNER)->type != DB_NULL) {
		end_claimed(s, rows);
	} else if (is_in_doubt(s, rows)) {
		step_end_saying(s, HX_IN_DOUBT,
				"the outcome of its last call is not known, and that was made with the data as it is");
	} else if (s->rq->version != s->version) {
		step_end_saying(s, HX_CONCURRENCY_ERROR, "the entity has another version by now");
	} else {
		code = step_merge_data(s, &words);
		s->reason = slice_str("data changed");
		if (code) {
			step_end_saying(s, code, words ? words : "data is too large");
			return;
		}
		step_describe(s);
		step_go(s, STEP_CHANGING, answer);
	}
}

/* An id that the column's type does not take is the id of nothing. */
static bool is_no_id(const struct entity_step *s, const struct unit_result *result)
{
	return s->rq->ref.machine->table && result->verdict == UNIT_FAILED && result->error.code == HX_DATA_ERROR;
}

void step_take_read(struct entity_step *s, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[0];
	struct slice status;

	if (answer->result->verdict != UNIT_WON && !is_no_id(s, answer->result)) {
		step_end(s, HX_STORE_UNAVAILABLE);
		return;
	}
	if (rows->n == 0) {
		step_end_saying(s, HX_NOT_FOUND, "there is no such entity");
		return;
	}
	status = db_cell(rows, 0, ENTITY_STATUS)->s;
	s->status = arena_copy(s->arena, status).p;
	s->name = arena_copy(s->arena, db_cell(rows, 0, ENTITY_NAME)->s);
	if (db_cell(rows, 0, ENTITY_SUBJECT)->type == DB_NULL) {
		s->subject = answer->more_ids[0];
		step_go(s, STEP_ADOPTING, answer);
		if (s->arena->failed || s->adopted++ == ADOPTIONS_MAX)
			step_end_saying(s, HX_INTERNAL, "the row of your table and its shadow do not find each other");
		return;
	}
	s->subject = db_cell(rows, 0, ENTITY_SUBJECT)->i;
	s->version = db_cell(rows, 0, ENTITY_VERSION)->i;
	s->fence = db_cell(rows, 0, ENTITY_FENCE)->i;
	s->effort = s->counter = db_cell(rows, 0, ENTITY_EFFORT)->i;
	entity_assert_valid(s->rq->ref.machine, rows);
	s->doubt = s->kept = false;
	if (s->rq->mode == STEP_RECOVER)
		s->workspace = arena_copy(s->arena, db_cell(rows, 0, ENTITY_WORKSPACE)->s);
	s->data = s->sent_data = arena_copy(s->arena, db_cell(rows, 0, ENTITY_DATA)->s);
	s->redescribed = false;
	s->attributes = db_cell(rows, 0, ENTITY_ATTRIBUTES)->type == DB_NULL
				? slice_of(NULL, 0)
				: arena_copy(s->arena, db_cell(rows, 0, ENTITY_ATTRIBUTES)->s);
	if (s->rq->mode == STEP_FIRE)
		take_read_to_fire(s, answer, status);
	else if (s->rq->mode == STEP_CHANGE)
		take_read_to_change(s, answer);
	else
		take_read_of_claim(s, answer, status);
	if (s->arena->failed)
		step_end(s, HX_TOO_LARGE); /* nothing was written yet */
}
