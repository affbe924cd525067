/* See entity_step.h for the states; what is read is judged in step_read.c. */
#include "flow/entity_step.h"

#include <stdio.h>

#include "flow/call_key.h"
#include "flow/probe.h"
#include "flow/step_parts.h"
#include "flow/what_next.h"
#include "model/text.h"
#include "task/pulse.h"
#include "task/states.h"

#define ADOPTIONS_MAX 3
#define LIMITED_REST_MS 1000 /* nobody knows when a call will end */

/* ---- going on ---- */

static void entity_step_fail(struct entity_step *s, const struct answer *answer, enum hx_code code,
			     struct slice output);

void step_start_finish(struct entity_step *s, const struct answer *answer)
{
	memcpy(s->effect_ids, answer->more_ids, sizeof s->effect_ids);
	if (s->view->save_as)
		step_save_output(s);
	step_describe(s);
	if (s->view->after_effects_n)
		step_make_effect_payload(s);
	step_make_effect_keys(s);
	if (step_is_sql(s))
		step_look_up_sql_values(s, answer);
	if (!s->arena->failed)
		step_go(s, STEP_FINISHING, answer);
	else if (s->acted)
		step_end_saying(s, HX_OUTCOME_UNKNOWN, "the answer of the action is too large to be written");
	else
		entity_step_fail(s, answer, HX_TOO_LARGE, slice_str("the step's texts are too large"));
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
		step_end_saying(s, HX_OUTCOME_UNKNOWN, "the lease of the claim was over before the outcome was known");
	else
		step_end(s, HX_STORE_UNAVAILABLE);
	return false;
}

static void start_act(struct entity_step *s, const struct answer *answer)
{
	if (!step_acts_outside(s->call->action)) {
		s->output = slice_str("null");
		step_start_finish(s, answer);
		return;
	}
	if (!may_act(s, answer))
		return;
	if (!s->claimed && !s->noted) {
		step_go(s, STEP_NOTING, answer); /* mutant: unnoted-call -> s->noted = true, start_act(s, answer); */
		return;
	}
	s->attempt++;
	step_make_call(s);
	task_go(&s->task, STEP_ACTING);
}

/* A call that changes nothing, under a key of its own. */
static void start_asking(struct entity_step *s, const struct answer *answer, enum step_at at)
{
	if (!may_act(s, answer))
		return;
	step_make_question(s, at == STEP_PROBING ? CALL_PROBE : CALL_VALIDATION, answer->id);
	task_go(&s->task, at);
}

/* The claim stays with the person who asks: this is a call beside it, without a lease. */
void step_ask_probe(struct entity_step *s, const struct answer *answer)
{
	const struct action *probe = s->call->action ? s->call->action->probe : NULL;

	if (probe_missing(probe)) {
		step_end_saying(s, HX_WRONG_STATUS, probe_missing(probe));
		return;
	}
	s->claimed = false;
	start_asking(s, answer, STEP_PROBING);
}

void step_start_work(struct entity_step *s, const struct answer *answer)
{
	if (step_acts_outside(s->view->validation))
		start_asking(s, answer, STEP_VALIDATING);
	else
		start_act(s, answer);
}

/* An action, a validation or the finish's own sql said no. The caller hears of that, whatever the release does. */
static void entity_step_fail(struct entity_step *s, const struct answer *answer, enum hx_code code, struct slice output)
{
	s->output = arena_copy(s->arena, output);
	s->task.code = code;
	step_make_reason(s, code);
	if (s->claimed)
		step_go(s, STEP_RELEASING, answer);
	else if (s->answered)
		step_go(s, STEP_ANSWERING, answer);
	else
		task_go(&s->task, STEP_DONE);
}

/* ---- answers ---- */

/* Somebody else may have adopted it first, which is as good. */
static void take_adopted(struct entity_step *s, const struct answer *answer)
{
	if (answer->result->verdict == UNIT_WON || answer->result->verdict == UNIT_LOST)
		task_go(&s->task, STEP_READING);
	else
		step_end(s, HX_STORE_UNAVAILABLE);
}

/* Where a claim or a transition tells the version reached: in the user's table the verdict stands before it. */
static const struct db_rows *reached(const struct entity_step *s, const struct unit_result *result)
{
	return &result->rows[s->rq->ref.machine->table ? 1 : 0];
}

/* Where a finish or release tells it: there the user's row comes after the shadow and its history. */
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
	step_start_work(s, answer);
}

/* Something was written down or answered since it was read: that decides what may be sent now. */
static void entity_step_read_again(struct entity_step *s)
{
	s->input = s->rq->input.raw;
	s->sender = s->requester;
	s->look = true;
	task_go(&s->task, STEP_READING);
}

static void take_put_away(struct entity_step *s, const struct answer *answer)
{
	if (answer->result->verdict != UNIT_WON)
		step_end(s, HX_STORE_UNAVAILABLE); /* it is in doubt still, wherever it stands by now */
	else
		entity_step_read_again(s);
}

/* To somebody who has moved it; or, if it is still what it was, to a call without a claim, which changes no version. */
static void take_claim_lost(struct entity_step *s)
{
	s->lost_version = s->version;
	if (s->notes++ == ADOPTIONS_MAX)
		step_end_saying(s, HX_CLAIM_FAILED, "another operation is already in progress");
	else
		entity_step_read_again(s);
}

/* A limit of its action; the claim is undone with it. */
static bool found_it_full(struct entity_step *s, const struct unit_result *result)
{
	const struct bounds *bounds = &s->bounds;
	int64_t full;
	LOCAL_UNIT(unit);

	step_build_claim(s, &unit);
	full = slot_full(&unit, result);
	if (!full)
		return false;
	s->not_before_ms = full == bounds->slot.name ? LIMITED_REST_MS : bounds->rate.per_ms / bounds->rate.max;
	step_end_saying(s, HX_LIMITED,
			full == bounds->slot.name
				? "as many calls of its action are under way as its limit allows: nothing was done"
				: "its action has begun as many calls as its rate allows: nothing was done");
	return true;
}

static void take_claimed(struct entity_step *s, const struct answer *answer)
{
	enum unit_verdict verdict = answer->result->verdict;

	if (verdict == UNIT_WON)
		hold_claim(s, answer, reached(s, answer->result));
	else if (verdict == UNIT_LOST && found_it_full(s, answer->result))
		return;
	else if (verdict == UNIT_LOST)
		take_claim_lost(s);
	else if (verdict == UNIT_REFUSED)
		step_end_saying(s, HX_CLAIM_FAILED, "another operation is already in progress");
	else
		step_end(s, flow_failure(answer->result));
}

static void take_claim_looked_up(struct entity_step *s, const struct answer *answer)
{
	/* Not there, or nobody to ask: no action has run. If the claim did land, the janitor ends it. */
	if (answer->result->verdict != UNIT_WON || answer->result->rows[0].n == 0)
		step_end(s, HX_STORE_UNAVAILABLE);
	else
		hold_claim(s, answer, &answer->result->rows[0]);
}

static void take_recovered(struct entity_step *s, const struct answer *answer)
{
	if (answer->result->verdict != UNIT_WON) {
		step_end(s,
			 HX_CLAIM_FAILED); /* somebody was first, or nobody knows: the next sweep sees what is left */
		return;
	}
	s->version = db_cell(&answer->result->rows[0], 0, 0)->i;
	s->fence = db_cell(&answer->result->rows[0], 0, 1)->i;
	s->attempt++;
	if (s->call->action && s->call->action->probe)
		start_asking(s, answer, STEP_PROBING);
	else
		step_go(s, STEP_HOLDING, answer); /* the definition that made the call had nobody to ask */
}

/* Whoever fired it may do so again, unless the answer was for good. */
static void note_time(struct entity_step *s, const struct answer *answer)
{
	bool for_good = answer->outcome == ACT_FAILED_FOR_GOOD || answer->outcome == ACT_INVALID;

	s->not_before_ms = for_good ? 0 : answer->not_before_ms;
}

static void acted_no(struct entity_step *s, const struct answer *answer)
{
	entity_step_fail(s, answer, answer->outcome == ACT_INVALID ? HX_INVALID : HX_ACTION_FAILED, answer->output);
}

static void take_validated(struct entity_step *s, const struct answer *answer)
{
	s->asked = answer->lease_since;
	note_time(s, answer);
	s->overrun = answer->outcome == ACT_CLAIM_LOST;
	if (answer->outcome == ACT_OK)
		start_act(s, answer);
	else if (answer->outcome == ACT_CLAIM_LOST)
		step_end(s, HX_STORE_UNAVAILABLE); /* nothing was done yet; the claim is gone, or will be */
	else /* a validation has no effect, so not knowing its outcome is the same as not having it */
		acted_no(s, answer);
}

/* Written down, but not known to be: nothing is called, and yet whoever comes next has to take it for a call in doubt. */
static void end_half_noted(struct entity_step *s)
{
	step_end_saying(
		s, HX_OUTCOME_UNKNOWN,
		"nothing was called, but the store was lost while the call was written down: fire it again with the "
		"same input");
}

static void look_up_note(struct entity_step *s)
{
	task_go(&s->task, STEP_LOOKING_UP_NOTE);
}

static void take_noted(struct entity_step *s, const struct answer *answer)
{
	if (answer->result->verdict == UNIT_WON) {
		s->noted = true;
		start_act(s, answer);
	} else if (answer->result->verdict == UNIT_UNKNOWN) {
		s->half_noted = true;
		look_up_note(s); /* mutant: note-unanswered -> step_end(s, HX_STORE_UNAVAILABLE); */
	} else if (answer->result->verdict != UNIT_LOST && s->half_noted) {
		end_half_noted(s);
	} else if (answer->result->verdict != UNIT_LOST) {
		step_end(s, HX_STORE_UNAVAILABLE); /* no action has run */
	} else if (s->notes++ == ADOPTIONS_MAX) {
		step_end_saying(s, HX_CONCURRENCY_ERROR, "others are firing this step at the same time");
	} else {
		entity_step_read_again(s);
	}
}

static void take_note_looked_up(struct entity_step *s, const struct answer *answer)
{
	if (answer->result->verdict != UNIT_WON) {
		end_half_noted(s);
		return;
	}
	s->noted = answer->result->rows[0].n > 0;
	start_act(s, answer); /* or, where it did not land or others came after it, it is written down once more */
}

/* Whoever fires it waits, so there is no rest: it is tried again at once, or not here. */
static struct next entity_step_next_of(const struct entity_step *s, const struct answer *answer)
{
	static const struct run_retry at_once = {.max_attempts = 1 + STEP_UNKNOWN_RETRIES};

	return what_next(&(struct tried){
		.heard = s->outcome == ACT_UNSETTLED ? HEARD_UNSETTLED : HEARD_UNKNOWN,
		.policy = s->call->on_unknown,
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
	next = entity_step_next_of(s, answer);
	if (next.what == NEXT_AGAIN && !next.rest_ms)
		start_act(s, answer);
	else if (next.what == NEXT_PROBE)
		start_asking(s, answer, STEP_PROBING);
	else if (s->call->on_unknown == UNKNOWN_HOLD && s->claimed)
		step_go(s, STEP_HOLDING, answer);
	else
		step_end(s, HX_OUTCOME_UNKNOWN);
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
		entity_step_fail(s, answer, HX_ACTION_FAILED, answer->output);
}

static void acted_ok(struct entity_step *s, const struct answer *answer)
{
	s->output = arena_copy(s->arena, answer->output);
	step_start_finish(s, answer);
}

static void lost_claim(struct entity_step *s, const struct answer *answer UNUSED)
{
	step_end_saying(s, HX_OUTCOME_UNKNOWN, "the claim could not be kept while the action ran");
}

static void entity_step_take_acted(struct entity_step *s, const struct answer *answer)
{
	static void (*const by[])(struct entity_step *, const struct answer *) = {
		[ACT_OK] = acted_ok,           [ACT_FAILED] = acted_no,          [ACT_FAILED_FOR_GOOD] = acted_no,
		[ACT_INVALID] = acted_no,      [ACT_UNSETTLED] = take_unsettled, [ACT_UNKNOWN] = take_unknown,
		[ACT_CLAIM_LOST] = lost_claim,
	};
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
	by[answer->outcome](s, answer);
}

static void entity_step_take_probed(struct entity_step *s, const struct answer *answer)
{
	struct slice output;

	s->not_before_ms = answer->not_before_ms;
	if (s->rq->mode == STEP_ASK) {
		s->says = probe_told(answer, s->arena, &s->output);
		step_end(s, HX_OK);
		return;
	}
	s->says = probe_read(answer, &output);
	switch (s->says) {
	case PROBE_DONE:
		s->output = arena_copy(s->arena, output);
		step_start_finish(s, answer);
		break;
	case PROBE_NOT_DONE:
		s->answered = true;
		entity_step_fail(s, answer, HX_ACTION_FAILED, slice_str("the probe says that it was not done"));
		break;
	case PROBE_UNKNOWN:
		step_end_saying(s, HX_OUTCOME_UNKNOWN, "the probe does not know either");
		if (s->claimed && s->not_before_ms > step_lease_ms(s))
			step_go(s, STEP_PUTTING_OFF, answer);
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
	step_end(s, HX_OK);
}

/* A statement of the step's sql that must meet a row met none. Which one, the unit itself tells. */
static void refused(struct entity_step *s, const struct answer *answer)
{
	char words[WORKFLOW_NAME_MAX + 80];
	struct unit unit;

	unit_init(&unit, s->stamp.op);
	step_build_finish(s, &unit);
	snprintf(words, sizeof words, "{\"statement\":\"%s\"}", unit.lines[answer->result->line].stmt->name);
	entity_step_fail(s, answer, HX_INVALID, slice_str(words));
}

/* The effect is there, and the store does not take its transition. Releasing it would let it happen again, as another
 * effect; so it ends by its time, and whoever fires again repeats this one. */
static void unwritable(struct entity_step *s, const char *why)
{
	s->output = slice_str(
		text_printf(s->arena, "the action was done and the store refused to write that: %s", why));
	step_end(s, HX_OUTCOME_UNKNOWN);
}

static void finish_failed(struct entity_step *s, const struct answer *answer)
{
	const struct hx_error *error = &answer->result->error;

	if (error->code == HX_DATA_ERROR && s->acted && !s->rewritten++)
		step_start_finish(s, answer); /* once more: the ids of its rows may have been somebody else's */
	else if (error->code == HX_DATA_ERROR && s->acted)
		unwritable(s, error->detail);
	else if (error->code == HX_DATA_ERROR || (error->code == HX_ACTION_FAILED && !s->acted && step_is_sql(s)))
		entity_step_fail(s, answer, HX_ACTION_FAILED, slice_str(error->detail));
	else if (s->acted)
		step_end_saying(s, HX_OUTCOME_UNKNOWN,
				"the action was done and the store was lost before that was written");
	else
		step_end(s, HX_STORE_UNAVAILABLE);
}

static void take_finished(struct entity_step *s, const struct answer *answer)
{
	const struct unit_result *result = answer->result;

	s->overrun = s->claimed && result->verdict == UNIT_LOST;
	if (result->verdict == UNIT_WON) {
		tell_along(s, result);
		finished(s, s->claimed ? left(s, result) : reached(s, result));
	} else if (s->overrun) {
		step_end_saying(s, HX_OUTCOME_UNKNOWN,
				"the claim had passed to somebody else before the step was finished");
	} else if (result->verdict == UNIT_LOST) {
		step_end_saying(
			s, HX_CONCURRENCY_ERROR,
			s->acted
				? "somebody else has changed the entity in between: the call was done, and is not written "
				  "down; fire it again, which makes it once more under its key and writes it down"
				: "somebody else has changed the entity in between");
	} else if (result->verdict == UNIT_REFUSED) {
		refused(s, answer);
	} else {
		finish_failed(s, answer);
	}
}

static void take_finish_looked_up(struct entity_step *s, const struct answer *answer)
{
	if (answer->result->verdict != UNIT_WON)
		step_end_saying(s, HX_OUTCOME_UNKNOWN, "the store was lost while the step was being finished");
	else if (answer->result->rows[0].n == 0)
		step_start_finish(s, answer); /* it did not land and cannot any more: still ours to finish */
	else
		finished(s, &answer->result->rows[0]);
}

static void changed(struct entity_step *s, const struct db_rows *rows)
{
	s->version = db_cell(rows, 0, 0)->i;
	s->updated_at = s->stamp.at;
	step_end(s, HX_OK);
}

static void take_changed(struct entity_step *s, const struct answer *answer)
{
	if (answer->result->verdict == UNIT_WON) {
		tell_along(s, answer->result);
		changed(s, &answer->result->rows[0]);
	} else if (answer->result->verdict == UNIT_FAILED) {
		step_end(s, flow_failure(answer->result));
	} else {
		step_end_saying(s, HX_CONCURRENCY_ERROR, "somebody else has changed the entity in between");
	}
}

static void take_change_looked_up(struct entity_step *s, const struct answer *answer)
{
	if (answer->result->verdict != UNIT_WON)
		step_end_saying(s, HX_OUTCOME_UNKNOWN, "the store was lost while the data was being changed");
	else if (answer->result->rows[0].n == 0)
		step_go(s, STEP_CHANGING, answer); /* it did not land and cannot any more */
	else
		changed(s, &answer->result->rows[0]);
}

static void take_released(struct entity_step *s, const struct answer *answer)
{
	s->overrun = answer->result->verdict == UNIT_LOST;
	if (answer->result->verdict == UNIT_WON) {
		s->version = db_cell(left(s, answer->result), 0, 0)->i;
		s->status = s->view->revert_to;
		s->updated_at = s->stamp.at;
		if (s->task.code == HX_OK)
			tell_along(s, answer->result);
	} else if (s->task.code == HX_OK) { /* a person's word that could not be written */
		s->task.code = answer->result->verdict == UNIT_LOST ? HX_STALE_FENCE : HX_STORE_UNAVAILABLE;
	}
	task_go(&s->task, STEP_DONE);
}

/* If it was lost, the claim ends by its time, which is safe too. */
static void left_unknown(struct entity_step *s, const struct answer *answer UNUSED)
{
	step_end(s, HX_OUTCOME_UNKNOWN);
}

TASK_UNIT(step_build_adopt, struct entity_step, s,
	  entity_adopt(unit, &s->stamp, &s->rq->ref, s->name, s->subject, s->status));
TASK_UNIT(step_build_put_away, struct entity_step, s, step_put_away(s, unit));
TASK_UNIT(step_build_note, struct entity_step, s, step_note_call(s, unit));
TASK_UNIT(step_build_answer, struct entity_step, s,
	  kept_call_answered(unit, s->subject, s->effort, s->rq->step_key, /* alone= */ s->outcome == ACT_FAILED));
TASK_UNIT(step_build_look_up_note, struct entity_step, s, kept_call_look_up(unit, s->stamp.op, s->subject));
TASK_UNIT(step_build_put_off, struct entity_step, s, subject_heartbeat(unit, s->subject, s->fence, s->not_before_ms));
TASK_UNIT(step_build_look_up, struct entity_step, s, subject_look_up(unit, s->subject, s->stamp.op));

/* ANSWERING is best effort: at worst the next try carries the same key. */
static const TASK_STATES(struct entity_step) step_states[] = {
	[STEP_NEW] = {"new", .then = STEP_READING},
	[STEP_READING] = {"reading", step_take_read, step_build_read},
	[STEP_AWAITING] = {"awaiting a definition", .then = STEP_READING, .until = offsetof(struct entity_step, asked)},
	[STEP_PUTTING_AWAY] = {"putting a call in doubt away", take_put_away, step_build_put_away},
	[STEP_ADOPTING] = {"adopting the row", take_adopted, step_build_adopt},
	[STEP_CLAIMING] = {"claiming", take_claimed, step_build_claim, .unknown = STEP_LOOKING_UP_CLAIM},
	[STEP_LOOKING_UP_CLAIM] = {"looking up its claim", take_claim_looked_up, step_build_look_up},
	[STEP_RECOVERING] = {"taking over", take_recovered, step_build_recover},
	[STEP_VALIDATING] = {"validating", take_validated, .act = step_call_validation},
	[STEP_NOTING] = {"writing its call down", take_noted, step_build_note},
	[STEP_LOOKING_UP_NOTE] = {"looking up whether it is written", take_note_looked_up, step_build_look_up_note},
	[STEP_ACTING] = {"acting", entity_step_take_acted, .act = step_call_action},
	[STEP_PROBING] = {"probing", entity_step_take_probed, .act = step_call_probe},
	[STEP_FINISHING] = {"finishing", take_finished, step_build_finish, .unknown = STEP_LOOKING_UP_FINISH},
	[STEP_LOOKING_UP_FINISH] = {"looking up its finish", take_finish_looked_up, step_build_look_up},
	[STEP_CHANGING] = {"changing its data", take_changed, step_build_change, .unknown = STEP_LOOKING_UP_CHANGE},
	[STEP_LOOKING_UP_CHANGE] = {"looking up its change", take_change_looked_up, step_build_look_up},
	[STEP_RELEASING] = {"releasing", take_released, step_build_release},
	[STEP_HOLDING] = {"parking it for a person", left_unknown, step_build_hold},
	[STEP_PUTTING_OFF] = {"putting off its probe", left_unknown, step_build_put_off},
	[STEP_ANSWERING] = {"counting the answer", .then = STEP_DONE, .commit = step_build_answer},
	[STEP_DONE] = {"done"},
};

TASK_KIND_STAMPED(step_kind, "step", struct entity_step, step_states, .shape = &step_shape);

void entity_step_init(struct entity_step *s, const struct step_request *rq, struct arena *arena)
{
	*s = (struct entity_step){.rq = rq, .arena = arena, .workspace = rq->ref.workspace, .requester = rq->requester};
	s->sender = rq->requester;
	s->input = rq->mode == STEP_FIRE ? rq->input.raw : slice_str("null");
	task_init(&s->task, &step_kind, /* topic= */ 0);
}
