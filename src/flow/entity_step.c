/* See entity_step.h for the states. */
#include "flow/entity_step.h"

#include <stdio.h>

#include "base/excerpt.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "flow/answer.h"
#include "flow/call_key.h"
#include "flow/probe.h"
#include "flow/step_parts.h"
#include "flow/what_next.h"
#include "model/text.h"
#include "task/pulse.h"

#define ADOPTIONS_MAX 3

static void end(struct entity_step *s, enum hx_code code)
{
	s->code = code;
	s->at = STEP_DONE;
}

static void end_saying(struct entity_step *s, enum hx_code code, const char *words)
{
	s->output = slice_str(words);
	end(s, code);
}

/* The next unit gets a fresh op, so that looking it up cannot find an earlier one. */
static void go(struct entity_step *s, enum step_at at, const struct answer *answer)
{
	s->stamp = flow_stamp(answer);
	wall_time_format(s->stamp.at, s->stamp_text);
	s->at = at;
}

/* Work for the action port; sql runs in the finish's unit, a noop is done already. */
static bool acts_outside(const struct action *action)
{
	return action && action->kind != ACTION_SQL && action->kind != ACTION_NOOP;
}

/* ---- going on ---- */

static void fail(struct entity_step *s, const struct answer *answer, enum hx_code code, struct slice output);

static void start_finish(struct entity_step *s, const struct answer *answer)
{
	memcpy(s->effect_ids, answer->more_ids, sizeof s->effect_ids);
	if (s->view->after_effects_n)
		step_make_effect_payload(s);
	step_make_effect_keys(s);
	if (step_is_sql(s))
		step_look_up_sql_values(s, answer);
	if (!s->arena->failed)
		go(s, STEP_FINISHING, answer);
	else if (s->acted)
		end_saying(s, HX_OUTCOME_UNKNOWN, "the answer of the action is too large to be written");
	else
		fail(s, answer, HX_TOO_LARGE, slice_str("the step's texts are too large"));
}

/* Nothing is begun under a lease that may be over. The claim then ends by its time. */
static bool may_act(struct entity_step *s, const struct answer *answer)
{
	struct lease lease = step_lease(s);
	bool may = true;

	may &= !s->claimed || lease_is_trusted(&lease, answer->mono); /* mutant: act-on-lapsed-lease */
	if (may)
		return true;
	if (s->acted)
		end_saying(s, HX_OUTCOME_UNKNOWN, "the lease of the claim was over before the outcome was known");
	else
		end(s, HX_STORE_UNAVAILABLE);
	return false;
}

static void start_act(struct entity_step *s, const struct answer *answer)
{
	if (!acts_outside(s->view->action)) {
		s->output = slice_str("null");
		start_finish(s, answer);
		return;
	}
	if (!may_act(s, answer))
		return;
	if (!s->claimed && !s->noted) {
		go(s, STEP_NOTING, answer); /* mutant: unnoted-call -> s->noted = true, start_act(s, answer); */
		return;
	}
	s->attempt++;
	step_make_call(s);
	s->at = STEP_ACTING;
}

/* A call that changes nothing, under a key of its own. */
static void start_asking(struct entity_step *s, const struct answer *answer, enum step_at at)
{
	if (!may_act(s, answer))
		return;
	step_make_question(s, at == STEP_PROBING ? CALL_PROBE : CALL_VALIDATION, answer->id);
	s->at = at;
}

/* The claim is ours, or none is wanted. */
static void start_work(struct entity_step *s, const struct answer *answer)
{
	if (acts_outside(s->view->validation))
		start_asking(s, answer, STEP_VALIDATING);
	else
		start_act(s, answer);
}

/* An action, a validation or the finish's own sql said no. The caller hears of that, whatever the release does. */
static void fail(struct entity_step *s, const struct answer *answer, enum hx_code code, struct slice output)
{
	s->output = arena_copy(s->arena, output);
	s->code = code;
	if (s->claimed)
		go(s, STEP_RELEASING, answer);
	else if (s->answered)
		go(s, STEP_ANSWERING, answer);
	else
		s->at = STEP_DONE;
}

/* ---- answers ---- */

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
	end_saying(s, HX_CLAIM_FAILED, words ? words : "the outcome of the step before is unknown");
}

/* Which step this is, seen from the row; false: ended. */
static bool choose_step(struct entity_step *s, const struct db_rows *rows, struct slice status)
{
	const struct workflow *w = step_workflow(s);

	s->step = workflow_step(w, s->rq->step_key, status, s->rq->requester);
	if (s->step) {
		s->view = workflow_view(w, s->step, s->rq->requester);
		if (s->view->allowed)
			return true;
		end_saying(s, HX_REQUESTER_NOT_ALLOWED, "this requester may not fire this step");
	} else if (!workflow_has_step(w, s->rq->step_key)) {
		end_saying(s, HX_NOT_FOUND, "the workflow has no step of this name");
	} else if (workflow_is_claim_status(w, status)) {
		end_claimed(s, rows);
	} else if (!workflow_has_status(w, status)) {
		end_saying(s, HX_WRONG_STATUS, "the entity is in a status that the definition in force does not have");
	} else {
		const char *words = text_printf(s->arena,
						"the step does not start from \"%s\", the status that the entity is in",
						excerpt_of(status).text);

		end_saying(s, HX_WRONG_STATUS, words ? words : "the step does not start from this status");
	}
	return false;
}

/* What the step would need and this program cannot call; it is refused before anything is claimed. False: ended. */
static bool can_be_called(struct entity_step *s)
{
	const struct action *absent = action_absent(s->view->action);
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
	end_saying(s, HX_NOT_IMPLEMENTED, words ? words : "the step needs a function that this program does not have");
	return false;
}

static void take_read_to_fire(struct entity_step *s, const struct answer *answer, struct slice status)
{
	const char *words;

	if (!choose_step(s, &answer->result->rows[0], status))
		return;
	if (!can_be_called(s)) /* mutant: left-step-fired -> if (0) */
		return;
	if (s->rq->version && s->rq->version != s->version) {
		end_saying(s, HX_CONCURRENCY_ERROR, "the entity has another version by now");
		return;
	}
	if (acts_outside(s->view->action) && (words = step_take_kept(s, &answer->result->rows[0]))) {
		end_saying(s, HX_IN_DOUBT, words);
		return;
	}
	step_make_key(s);
	if (s->view->claim_into) {
		s->asked = answer->mono;
		go(s, STEP_CLAIMING, answer);
	} else {
		start_work(s, answer);
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
	return s->view && s->view->claim_into && slice_is(status, s->view->claim_into);
}

static void take_read_of_claim(struct entity_step *s, const struct answer *answer, struct slice status)
{
	const struct db_rows *rows = &answer->result->rows[0];

	if (db_cell(rows, 0, ENTITY_OWNER)->type == DB_NULL || is_held(rows) != (s->rq->mode != STEP_RECOVER)) {
		end_saying(s, HX_WRONG_STATUS, "no claim of this entity is held for a person");
		return;
	}
	if (!find_claimed_step(s, rows, status)) {
		end_saying(s, HX_WRONG_STATUS,
			   "the definition in force does not have the step that claimed the entity");
		return;
	}
	if (s->rq->mode != STEP_RECOVER && !slice_is(s->rq->step_key, s->step->step_key)) {
		end_saying(s, HX_WRONG_STATUS, "the claim belongs to another step");
		return;
	}
	if (s->rq->mode == STEP_RECOVER && !can_be_called(s)) /* mutant: left-claim-recovered -> if (0) */
		return;
	step_make_key(s);
	s->acted = true;
	if (s->rq->mode == STEP_RECOVER) {
		s->asked = answer->mono;
		go(s, STEP_RECOVERING, answer);
	} else if (s->rq->mode == STEP_RESOLVE_DONE) {
		s->output = s->rq->input.raw;
		start_finish(s, answer);
	} else {
		s->code = HX_OK; /* the person asked for it */
		s->answered = true;
		go(s, STEP_RELEASING, answer);
	}
}

/* An id that the column's type does not take is the id of nothing. */
static bool is_no_id(const struct entity_step *s, const struct unit_result *result)
{
	return s->rq->ref.machine->table && result->verdict == UNIT_FAILED && result->error.code == HX_DATA_ERROR;
}

static void take_read(struct entity_step *s, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[0];
	struct slice status;

	if (answer->result->verdict != UNIT_WON && !is_no_id(s, answer->result)) {
		end(s, HX_STORE_UNAVAILABLE);
		return;
	}
	if (rows->n == 0) {
		end_saying(s, HX_NOT_FOUND, "there is no such entity");
		return;
	}
	status = db_cell(rows, 0, ENTITY_STATUS)->s;
	s->status = arena_copy(s->arena, status).p;
	s->name = arena_copy(s->arena, db_cell(rows, 0, ENTITY_NAME)->s);
	if (db_cell(rows, 0, ENTITY_SUBJECT)->type == DB_NULL) {
		s->subject = answer->more_ids[0];
		go(s, STEP_ADOPTING, answer);
		if (s->arena->failed || s->adopted++ == ADOPTIONS_MAX)
			end_saying(s, HX_INTERNAL, "the row of your table and its shadow do not find each other");
		return;
	}
	s->subject = db_cell(rows, 0, ENTITY_SUBJECT)->i;
	s->version = db_cell(rows, 0, ENTITY_VERSION)->i;
	s->fence = db_cell(rows, 0, ENTITY_FENCE)->i;
	s->effort = db_cell(rows, 0, ENTITY_EFFORT)->i;
	s->doubt = db_cell(rows, 0, ENTITY_DOUBT)->i != 0;
	if (s->rq->mode == STEP_RECOVER)
		s->workspace = arena_copy(s->arena, db_cell(rows, 0, ENTITY_WORKSPACE)->s);
	s->data = arena_copy(s->arena, db_cell(rows, 0, ENTITY_DATA)->s);
	if (s->rq->mode == STEP_FIRE)
		take_read_to_fire(s, answer, status);
	else
		take_read_of_claim(s, answer, status);
	if (s->arena->failed)
		end(s, HX_TOO_LARGE); /* nothing was written yet */
}

/* Somebody else may have adopted it first, which is as good. */
static void take_adopted(struct entity_step *s, const struct answer *answer)
{
	if (answer->result->verdict == UNIT_WON || answer->result->verdict == UNIT_LOST)
		s->at = STEP_READING;
	else
		end(s, HX_STORE_UNAVAILABLE);
}

/* Where a claim or a transition tells the version reached: in the user's table the verdict stands before it. */
static const struct db_rows *reached(const struct entity_step *s, const struct unit_result *result)
{
	return &result->rows[s->rq->ref.machine->table ? 1 : 0];
}

/* Where a finish or release tells it: there the user's row comes behind the shadow and its history. */
static const struct db_rows *left(const struct entity_step *s, const struct unit_result *result)
{
	return &result->rows[s->rq->ref.machine->table ? 2 : 0];
}

/* The claim is ours: the row is (version, fence …), from the claim itself or from its history row. */
static void hold_claim(struct entity_step *s, const struct answer *answer, const struct db_rows *rows)
{
	s->version = db_cell(rows, 0, 0)->i;
	s->fence = db_cell(rows, 0, 1)->i;
	s->status = s->view->claim_into;
	s->claimed = true;
	start_work(s, answer);
}

static void take_claimed(struct entity_step *s, const struct answer *answer)
{
	switch (answer->result->verdict) {
	case UNIT_WON:
		hold_claim(s, answer, reached(s, answer->result));
		break;
	case UNIT_LOST:
	case UNIT_REFUSED:
		end_saying(s, HX_CLAIM_FAILED, "another operation is already in progress");
		break;
	case UNIT_FAILED:
		end(s, flow_failure(answer->result));
		break;
	case UNIT_UNKNOWN:
		s->at = STEP_LOOKING_UP_CLAIM;
		break;
	}
}

static void take_claim_looked_up(struct entity_step *s, const struct answer *answer)
{
	/* Not there, or nobody to ask: no action has run. If the claim did land, the janitor ends it. */
	if (answer->result->verdict != UNIT_WON || answer->result->rows[0].n == 0)
		end(s, HX_STORE_UNAVAILABLE);
	else
		hold_claim(s, answer, &answer->result->rows[0]);
}

static void take_recovered(struct entity_step *s, const struct answer *answer)
{
	if (answer->result->verdict != UNIT_WON) {
		end(s, HX_CLAIM_FAILED); /* somebody was first, or nobody knows: the next sweep sees what is left */
		return;
	}
	s->version = db_cell(&answer->result->rows[0], 0, 0)->i;
	s->fence = db_cell(&answer->result->rows[0], 0, 1)->i;
	s->attempt++;
	start_asking(s, answer, STEP_PROBING);
}

/* Whoever fired it may do so again, unless the answer was for good. */
static void note_time(struct entity_step *s, const struct answer *answer)
{
	bool for_good = answer->outcome == ACT_FAILED_FOR_GOOD || answer->outcome == ACT_INVALID;

	s->not_before_ms = for_good ? 0 : answer->not_before_ms;
}

static void take_validated(struct entity_step *s, const struct answer *answer)
{
	s->asked = answer->lease_since;
	note_time(s, answer);
	s->overrun = answer->outcome == ACT_CLAIM_LOST;
	switch (answer->outcome) {
	case ACT_OK:
		start_act(s, answer);
		break;
	case ACT_INVALID:
		fail(s, answer, HX_INVALID, answer->output);
		break;
	case ACT_CLAIM_LOST:
		end(s, HX_STORE_UNAVAILABLE); /* nothing was done yet; the claim is gone, or will be */
		break;
	default: /* a validation has no effect, so not knowing its outcome is the same as not having it */
		fail(s, answer, HX_ACTION_FAILED, answer->output);
	}
}

static void take_noted(struct entity_step *s, const struct answer *answer)
{
	if (answer->result->verdict == UNIT_WON) {
		s->noted = true;
		start_act(s, answer);
	} else if (answer->result->verdict != UNIT_LOST) {
		end(s, HX_STORE_UNAVAILABLE); /* no action has run */
	} else if (s->notes++ == ADOPTIONS_MAX) {
		end_saying(s, HX_CONCURRENCY_ERROR, "others are firing this step at the same time");
	} else {
		s->input = s->rq->input.raw;
		s->sender = s->requester;
		s->at = STEP_READING;
	}
}

/* Whoever fires it waits, so there is no rest: it is tried again at once, or not here. */
static struct next next_of(const struct entity_step *s, const struct answer *answer)
{
	static const struct run_retry at_once = {.max_attempts = 1 + STEP_UNKNOWN_RETRIES};

	return what_next(&(struct tried){
		.heard = s->outcome == ACT_UNSETTLED ? HEARD_UNSETTLED : HEARD_UNKNOWN,
		.policy = s->view->on_unknown,
		.retry = &at_once,
		.attempt = s->unknowns,
		.not_before_ms = answer->not_before_ms,
	});
}

static void take_unknown(struct entity_step *s, const struct answer *answer)
{
	struct next next;

	s->output = arena_copy(s->arena, answer->output);
	s->unknowns++;
	next = next_of(s, answer);
	if (next.what == NEXT_AGAIN && !next.rest_ms)
		start_act(s, answer);
	else if (next.what == NEXT_PROBE)
		start_asking(s, answer, STEP_PROBING);
	else if (s->view->on_unknown == UNKNOWN_HOLD && s->claimed)
		go(s, STEP_HOLDING, answer);
	else
		end(s, HX_OUTCOME_UNKNOWN);
}

/*
 * The other side may be at an earlier try under this key. Without a claim nobody has noted whether there was one, so one that says
 * no more than that is told as the failure that it mostly is, and the key stays what it is.
 */
static void take_unsettled(struct entity_step *s, const struct answer *answer)
{
	s->answered = false; /* mutant: unsettled-answered -> s->answered = true; */
	if (s->claimed || s->doubt || answer->not_before_ms)
		take_unknown(s, answer);
	else
		fail(s, answer, HX_ACTION_FAILED, answer->output);
}

static void take_acted(struct entity_step *s, const struct answer *answer)
{
	bool no = answer->outcome != ACT_OK && answer->outcome != ACT_CLAIM_LOST, open = false;

	s->outcome = answer->outcome;
	note_time(s, answer);
	s->acted = true;
	s->asked = answer->lease_since;
	s->overrun = answer->outcome == ACT_CLAIM_LOST;
	/* After an unknown outcome only a yes is an answer: a no speaks for this try alone. */
	open |= no && s->unknowns; /* mutant: no-after-unknown */
	if (open) {
		take_unknown(s, answer);
		return;
	}
	s->answered = answer->outcome == ACT_FAILED_FOR_GOOD || answer->outcome == ACT_INVALID ||
		      (answer->outcome == ACT_FAILED && !s->doubt);
	switch (answer->outcome) {
	case ACT_OK:
		s->output = arena_copy(s->arena, answer->output);
		start_finish(s, answer);
		break;
	case ACT_FAILED:
	case ACT_FAILED_FOR_GOOD:
		fail(s, answer, HX_ACTION_FAILED, answer->output);
		break;
	case ACT_INVALID:
		fail(s, answer, HX_INVALID, answer->output);
		break;
	case ACT_UNSETTLED:
		take_unsettled(s, answer);
		break;
	case ACT_UNKNOWN:
		take_unknown(s, answer);
		break;
	case ACT_CLAIM_LOST:
		end_saying(s, HX_OUTCOME_UNKNOWN, "the claim could not be kept while the action ran");
		break;
	}
}

static void take_probed(struct entity_step *s, const struct answer *answer)
{
	struct slice output;

	s->not_before_ms = answer->not_before_ms;
	switch (probe_read(answer, &output)) {
	case PROBE_DONE:
		s->output = arena_copy(s->arena, output);
		start_finish(s, answer);
		break;
	case PROBE_NOT_DONE:
		s->answered = true;
		fail(s, answer, HX_ACTION_FAILED, slice_str("the probe says that it was not done"));
		break;
	case PROBE_UNKNOWN:
		end_saying(s, HX_OUTCOME_UNKNOWN, "the probe does not know either");
		if (s->claimed && s->not_before_ms > step_lease_ms(s))
			go(s, STEP_PUTTING_OFF, answer);
		break;
	}
}

/* The unit that carried it is durable, and its rows are here. */
static void tell_along(const struct entity_step *s, const struct unit_result *result)
{
	if (s->rq->along)
		s->rq->along->won(s->rq->along, result);
}

/* The finish is durable. */
static void finished(struct entity_step *s, const struct db_rows *rows)
{
	s->version = db_cell(rows, 0, 0)->i;
	s->status = s->view->successful_state;
	s->updated_at = s->stamp.at;
	end(s, HX_OK);
}

/* A statement of the step's sql that must meet a row met none. Which one, the unit itself tells. */
static void refused(struct entity_step *s, const struct answer *answer)
{
	char words[WORKFLOW_NAME_MAX + 80];
	struct unit unit;

	unit_init(&unit, s->stamp.op);
	step_build_finish(s, &unit);
	snprintf(words, sizeof words, "{\"statement\":\"%s\"}", unit.lines[answer->result->line].stmt->name);
	fail(s, answer, HX_INVALID, slice_str(words));
}

/* The effect is there, and the store does not take its transition. Releasing it would let it happen again, as another
 * effect; so it ends by its time, and whoever fires again repeats this one. */
static void unwritable(struct entity_step *s, const char *why)
{
	char words[sizeof(struct hx_error) + 60];

	snprintf(words, sizeof words, "the action was done and the store refused to write that: %s", why);
	s->output = arena_copy(s->arena, slice_str(words));
	end(s, HX_OUTCOME_UNKNOWN);
}

static void take_finished(struct entity_step *s, const struct answer *answer)
{
	const struct unit_result *result = answer->result;

	s->overrun = s->claimed && result->verdict == UNIT_LOST;
	switch (result->verdict) {
	case UNIT_WON:
		tell_along(s, result);
		finished(s, s->claimed ? left(s, result) : reached(s, result));
		break;
	case UNIT_LOST:
		if (s->claimed)
			end_saying(s, HX_OUTCOME_UNKNOWN,
				   "the claim had passed to somebody else before the step was finished");
		else
			end_saying(s, HX_CONCURRENCY_ERROR, "somebody else has changed the entity in between");
		break;
	case UNIT_REFUSED:
		refused(s, answer);
		break;
	case UNIT_FAILED:
		if (result->error.code == HX_DATA_ERROR && s->acted && !s->rewritten++)
			start_finish(s, answer); /* once more: the ids of its rows may have been somebody else's */
		else if (result->error.code == HX_DATA_ERROR && s->acted)
			unwritable(s, result->error.detail);
		else if (result->error.code == HX_DATA_ERROR ||
			 (result->error.code == HX_ACTION_FAILED && !s->acted && step_is_sql(s)))
			fail(s, answer, HX_ACTION_FAILED, slice_str(result->error.detail));
		else if (s->acted)
			end_saying(s, HX_OUTCOME_UNKNOWN,
				   "the action was done and the store was lost before that was written");
		else
			end(s, HX_STORE_UNAVAILABLE);
		break;
	case UNIT_UNKNOWN:
		s->at = STEP_LOOKING_UP_FINISH;
		break;
	}
}

static void take_finish_looked_up(struct entity_step *s, const struct answer *answer)
{
	if (answer->result->verdict != UNIT_WON)
		end_saying(s, HX_OUTCOME_UNKNOWN, "the store was lost while the step was being finished");
	else if (answer->result->rows[0].n == 0)
		start_finish(s, answer); /* it did not land and cannot any more: still ours to finish */
	else
		finished(s, &answer->result->rows[0]);
}

static void take_released(struct entity_step *s, const struct answer *answer)
{
	s->overrun = answer->result->verdict == UNIT_LOST;
	if (answer->result->verdict == UNIT_WON) {
		s->version = db_cell(left(s, answer->result), 0, 0)->i;
		s->status = s->view->revert_to;
		s->updated_at = s->stamp.at;
		if (s->code == HX_OK)
			tell_along(s, answer->result);
	} else if (s->code == HX_OK) { /* a person's word that could not be written */
		s->code = answer->result->verdict == UNIT_LOST ? HX_STALE_FENCE : HX_STORE_UNAVAILABLE;
	}
	s->at = STEP_DONE;
}

static void take(struct task *task, const struct answer *answer)
{
	struct entity_step *s = (struct entity_step *)task;

	switch (s->at) {
	case STEP_NEW:
		s->at = STEP_READING;
		break;
	case STEP_READING:
		take_read(s, answer);
		break;
	case STEP_ADOPTING:
		take_adopted(s, answer);
		break;
	case STEP_CLAIMING:
		take_claimed(s, answer);
		break;
	case STEP_LOOKING_UP_CLAIM:
		take_claim_looked_up(s, answer);
		break;
	case STEP_RECOVERING:
		take_recovered(s, answer);
		break;
	case STEP_VALIDATING:
		take_validated(s, answer);
		break;
	case STEP_NOTING:
		take_noted(s, answer);
		break;
	case STEP_ACTING:
		take_acted(s, answer);
		break;
	case STEP_PROBING:
		take_probed(s, answer);
		break;
	case STEP_FINISHING:
		take_finished(s, answer);
		break;
	case STEP_LOOKING_UP_FINISH:
		take_finish_looked_up(s, answer);
		break;
	case STEP_RELEASING:
		take_released(s, answer);
		break;
	case STEP_HOLDING:
	case STEP_PUTTING_OFF:
		end(s, HX_OUTCOME_UNKNOWN); /* if it was lost, the claim ends by its time, which is safe too */
		break;
	case STEP_ANSWERING: /* best effort: at worst the next try carries the same key */
		s->at = STEP_DONE;
		break;
	case STEP_DONE:
		ASSERT(!"a task that is done takes no answer");
	}
}

static const struct task_kind kind = {
	.name = "step",
	.size = sizeof(struct entity_step),
	.take = take,
	.ask = step_ask,
	.where = step_where,
	.fingerprint = step_fingerprint,
};

void entity_step_init(struct entity_step *s, const struct step_request *rq, struct arena *arena)
{
	*s = (struct entity_step){.rq = rq, .arena = arena, .workspace = rq->ref.workspace, .requester = rq->requester};
	s->sender = rq->requester;
	s->input = rq->mode == STEP_FIRE ? rq->input.raw : slice_str("null");
	task_init(&s->task, &kind, /* topic= */ 0);
}
