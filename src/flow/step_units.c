/* The units of an entity step, one for each of its states that writes or reads. See step_parts.h. */
#include "flow/attribute.h"
#include "flow/job.h"
#include "flow/step_parts.h"

static void add_after_effects(const struct entity_step *s, struct unit *unit)
{
	bool for_engine = false;

	for (size_t i = 0; i < s->view->after_effects_n; i++) {
		const struct action *action = s->view->after_effects[i];
		struct job_spec spec = {
			.subject = s->effect_ids[i],
			.workspace = s->workspace,
			.queue = action_is_for_workers(action) ? action->queue : JOB_QUEUE_AFTER_EFFECTS,
			.repeatable = action->effect != EFFECT_CLAIMED,
			.workflow = step_workflow(s)->name,
			.action = action->name,
			.effect_key = s->effect_keys[i],
			.payload = s->effect_payload,
		};

		job_insert(unit, &s->stamp, &spec);
		if (action_is_for_workers(action))
			job_offer(unit, s->workspace, slice_str(action->queue), 1);
		else
			for_engine = true;
	}
	if (for_engine)
		unit_wake(unit, JOB_TOPIC);
}

static struct table_row row_of(const struct entity_step *s)
{
	return (struct table_row){s->rq->ref.machine->table, s->name, s->version, slice_str(s->stamp_text)};
}

static struct entity_sent step_units_call_of(const struct entity_step *s)
{
	return (struct entity_sent){
		.step = s->rq->step_key,
		.from = s->from,
		.requester = s->sender,
		.claimant = s->requester, /* mutant: claimed-for-the-sender -> .claimant = s->sender, */
		.input = s->input,
		.data = s->sent_data,
		.effort = s->effort,
		.counter = s->counter,
		.version = s->call_version,
		.looked = s->looked,
		.kept = s->kept,
		.kept_version = s->kept_version,
		.address = s->address,
		.at_version = s->rq->ref.machine->table ? 0 : s->version,
		.fence = s->fence,
	};
}

/* Who has decided what became of the step: a person, or a janitor. Empty: the step itself. */
static struct slice decided_by(const struct entity_step *s)
{
	if (s->rq->mode == STEP_RECOVER)
		return slice_str("janitor");
	return s->rq->mode == STEP_FIRE ? slice_of(NULL, 0) : s->rq->requester;
}

static void add_note(const struct entity_step *s, struct unit *unit, struct slice output)
{
	struct history_note note = {
		.step = s->step ? slice_str(s->step->step_key) : slice_of(NULL, 0),
		.requester = s->sender,
		.reason = s->reason.n ? s->reason : slice_of(NULL, 0),
		.by = decided_by(s),
		.output = output,
	};

	subject_add_note(unit, s->subject, &note);
}

/* In the unit that changes its data, or after a definition that names others. */
static void add_attributes(const struct entity_step *s, struct unit *unit)
{
	if (s->redescribed)
		attributes_of_entity_set(unit, s->subject, s->rq->ref.machine->kind, s->attributes);
}

/* Last, so that nobody waits for its name longer than for the commit. */
static void take_slot(const struct entity_step *s, struct unit *unit)
{
	if (s->bounds.slot.name || s->bounds.rate.name) /* mutant: step-beyond-its-limit -> if (0) */
		bounds_take(unit, &s->bounds, s->subject, /* nth= */ s->stamp.op, s->stamp.at.ms);
}

static void leave_slot(const struct entity_step *s, struct unit *unit)
{
	if (!s->claimed || !s->bounds.slot.name)
		return;
	slot_lock(unit, &s->bounds.slot);
	slot_release(unit, &s->bounds.slot, s->subject); /* mutant: step-keeps-its-slot -> ; */
}

/*
 * A row in the user's own table was moved by somebody while it was claimed. The step that finds it so ends that claim,
 * and its slot with it.
 */
static void end_former_claim(const struct entity_step *s, struct unit *unit)
{
	if (s->over_claim)
		slot_forget(unit, s->subject); /* mutant: slot-of-a-former-claim -> ; */
}

/* A claim that was taken where nothing was kept has no row, and pays nothing. */
static void forget(const struct entity_step *s, struct unit *unit)
{
	struct slice step = slice_str(s->step->step_key);

	if (s->kept || s->noted || s->rq->mode != STEP_FIRE)
		kept_call_forget(unit, s->subject, s->effort, step); /* mutant: kept-for-ever -> ; */
}

void step_build_claim(const struct entity_step *s, struct unit *unit)
{
	struct entity_sent call = step_units_call_of(s);
	struct move move = {s->subject, s->step->status, s->view->claim_into};
	struct table_row row = row_of(s);

	if (row.table)
		entity_table_claim(unit, &s->stamp, &row, &move, step_lease_ms(s), &call);
	else
		entity_claim(unit, &s->stamp, &move, s->version, step_lease_ms(s), &call);
	entity_note_claim(unit, s->subject, s->step->status, &call);
	add_note(s, unit, slice_of(NULL, 0));
	end_former_claim(s, unit);
	take_slot(s, unit);
}

void step_build_release(const struct entity_step *s, struct unit *unit)
{
	struct move move = {s->subject, s->view->claim_into, s->view->revert_to};
	struct table_row row = row_of(s);

	if (row.table)
		entity_table_release(unit, &s->stamp, &row, &move, s->fence, s->answered);
	else
		subject_release(unit, &s->stamp, &move, s->fence, s->answered);
	add_note(s, unit, slice_of(NULL, 0));
	leave_slot(s, unit);
	if (s->answered)
		forget(s, unit);
	if (s->task.code == HX_OK && s->rq->along) /* a person asked for it; otherwise it is a step that failed */
		s->rq->along->add(s->rq->along, s, move.to, unit);
}

void step_build_finish(const struct entity_step *s, struct unit *unit)
{
	struct move move = step_finish_move(s);
	struct table_row row = row_of(s);

	if (s->claimed && row.table)
		entity_table_finish(unit, &s->stamp, &row, &move, s->fence);
	else if (s->claimed)
		subject_finish(unit, &s->stamp, &move, s->fence);
	else if (row.table)
		entity_table_transition(unit, &s->stamp, &row, &move);
	else
		subject_transition(unit, &s->stamp, &move, s->version);
	if (s->view->save_as)
		entity_save(unit, s->subject, s->data); /* mutant: save-outside-unit -> (void)0; */
	add_attributes(s, unit);
	add_note(s, unit, s->output);
	add_after_effects(s, unit); /* mutant: effects-outside-unit */
	leave_slot(s, unit);
	forget(s, unit);
	if (!s->claimed)
		end_former_claim(s, unit);
	if (step_is_sql(s)) {
		unit_for(unit, s->rq->ref.workspace);
		sql_action_add(unit, &s->rq->ref.machine->sql[s->view->action - step_workflow(s)->actions],
			       s->view->action, s->sql_values, /* timeout_ms= */ 0);
	}
	if (s->rq->along)
		s->rq->along->add(s->rq->along, s, move.to, unit);
}

void step_build_change(const struct entity_step *s, struct unit *unit)
{
	entity_change(unit, &s->stamp, s->subject, s->status, s->version, s->data);
	add_attributes(s, unit);
	add_note(s, unit, slice_of(NULL, 0));
	if (s->rq->along)
		s->rq->along->add(s->rq->along, s, s->status, unit);
}

void step_note_call(const struct entity_step *s, struct unit *unit)
{
	struct entity_sent call = step_units_call_of(s);

	if (s->kept)
		kept_call_again(unit, s->stamp.op, s->subject, &call);
	else
		kept_call_note(unit, s->stamp.op, s->subject, &call);
}

/* What was begun inside the store is over: its key is given up. Or what the last claim has begun gets a row. */
void step_put_away(const struct entity_step *s, struct unit *unit)
{
	if (s->kept)
		kept_call_answered(unit, s->subject, s->effort, s->rq->step_key, /* alone= */ false);
	else
		kept_call_put_away(unit, s->subject, s->fence);
}

void step_build_read(const struct entity_step *s, struct unit *unit)
{
	if (s->rq->mode == STEP_RECOVER) {
		entity_read_subject(unit, s->rq->subject);
		ASSERT(unit->lines_n == STEP_LINE_SLOT);
		slot_read_held(unit, s->rq->subject);
	} else if (!step_looks(s)) {
		entity_read_bare(unit, &s->rq->ref);
	} else {
		/* What is held for a person has no slot. */
		entity_read(unit, &s->rq->ref, s->rq->mode == STEP_CHANGE ? slice_str("") : s->rq->step_key);
	}
}

void step_build_recover(const struct entity_step *s, struct unit *unit)
{
	subject_take_over(unit, &s->stamp, s->subject, s->view->claim_into, s->fence, step_lease_ms(s));
	add_note(s, unit, slice_of(NULL, 0));
}

/* A person may take days: who waits holds none. */
void step_build_hold(const struct entity_step *s, struct unit *unit)
{
	subject_hold(unit, s->subject, s->fence, /* if_past= */ false);
	leave_slot(s, unit);
}
