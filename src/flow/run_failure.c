/*
 * What a failure of a run comes to, and the time that a whole run has. See run_plan.h.
 *
 *   a step has failed for good ─┐                      ┌ on_failure hold ────────▶ FAILED, and a person decides
 *   its time is over ───────────┼─▶ the move that says so ┤
 *   its output has no value ────┘   (with the jobs of     └ on_failure compensate ─▶ CANCELLING, its error the reason:
 *                                    failure_after_effect)    what is done is undone, as after a person's cancel
 *
 * The time counts from the creation of the run, and anew from a retry. A step that is under way when it is over is not torn off:
 * its outcome is recorded, and nothing more is begun. So nothing in doubt, and nothing that a person is asked about, is ever
 * turned into a failure by its time.
 *
 * Invariants (beside R1 to R8 of run.h):
 *  F1  The jobs of a failure are there exactly when the failure is: they are rows of its unit. Each has a key of its own, in which
 *      the fence of that move stands, so a failure after a retry is another one.
 *  F2  With `compensate` a run is never FAILED, but for one that its parent has asked to fail: that one waits for the parent's word.
 *  F3  No step is begun in a move that is planned after the time is over.
 */
#include "base/id.h"
#include "base/json_string.h"
#include "base/trace.h"
#include "flow/job.h"
#include "flow/run_plan.h"

#define PAYLOAD_BYTES_MAX (4u << 20)
#define KEY_BYTES_MAX (ID_TEXT_BYTES + 2 * WORKFLOW_NAME_MAX + 40)

bool plan_is_late(const struct run_drive *d, const struct answer *answer)
{
	return d->row.times_out_at && plan_now_ms(d, answer) >= d->row.times_out_at;
}

void plan_reckon_with_time(struct run_drive *d, const struct answer *answer)
{
	struct run_move *move = &d->move;
	bool held = move->awaits.p && slice_is(move->awaits, RUN_AWAITS_PERSON);

	if (move->write != RUN_WRITES_REST || held || strcmp(move->to, RUN_PAUSED) == 0 ||
	    strcmp(move->to, RUN_CANCELLING) == 0)
		return;
	/* When that time is over already, only what the run waits for makes it due. */
	if (d->row.times_out_at <= plan_now_ms(d, answer))
		return;
	if (!move->due_at || move->due_at > d->row.times_out_at)
		move->due_at = d->row.times_out_at; /* mutant: run-outlives-its-time -> (void)move; */
}

/* ---- who is told ---- */

static struct slice effect_key(const struct run_drive *d, const char *action)
{
	int64_t fence = d->row.fence + !d->holding; /* that of the move */
	char id[ID_TEXT_BYTES], key[KEY_BYTES_MAX];

	id_format("run", d->row.subject, id);
	snprintf(key, sizeof key, "%s/failed/%lld/%s", id, (long long)fence, action);
	return arena_copy(d->arena, slice_str(key));
}

static struct slice effect_payload(const struct run_drive *d, struct slice input)
{
	const struct run_definition *definition = drive_definition(d);
	char id[ID_TEXT_BYTES];
	struct strbuf sb;

	id_format("run", d->row.subject, id);
	strbuf_init(&sb, PAYLOAD_BYTES_MAX);
	strbuf_add_char(&sb, '{');
	trace_add_members(d->row.trace, &sb);
	strbuf_add_str(&sb, "\"workflow\":");
	json_quote(slice_str(definition->name), &sb);
	strbuf_addf(&sb, ",\"id\":\"%s\",\"step\":", id);
	if (d->move.next < definition->steps_n)
		json_quote(slice_str(definition->steps[d->move.next].name), &sb);
	else
		strbuf_add_str(&sb, "null");
	strbuf_add_str(&sb, ",\"requester\":");
	json_quote(d->row.requester, &sb);
	strbuf_add_str(&sb, ",\"input\":");
	strbuf_add_slice(&sb, input);
	strbuf_addf(&sb, ",\"from\":\"%s\",\"to\":\"%s\",\"version\":%lld,\"output\":null,\"error\":", d->row.status,
		    d->move.to, (long long)(d->row.version + d->move.transitions));
	strbuf_add_slice(&sb, d->move.error);
	strbuf_add_char(&sb, '}');
	return arena_keep(d->arena, &sb);
}

static void tell_failure(struct run_drive *d, const struct answer *answer, struct slice input)
{
	const struct run_definition *definition = drive_definition(d);

	for (size_t i = 0; i < definition->failure_effects_n; i++) {
		d->move.effect_ids[i] = answer->more_ids[i];
		d->move.effect_keys[i] = effect_key(d, definition->failure_effects[i]->name);
	}
	if (definition->failure_effects_n)
		d->move.effect_payload = effect_payload(d, input);
}

/* ---- what it comes to ---- */

/* What a person's cancel would have left of the run that has failed. */
static void cancel_itself(struct run_drive *d, const struct answer *answer)
{
	struct run_move *move = &d->move;

	move->to = RUN_CANCELLING;
	move->write = RUN_WRITES_REST;
	move->awaits = slice_of(NULL, 0);
	move->job = 0;
	move->wait_until = 0;
	move->due_at = answer->now.ms;
	d->fails = true;
}

void plan_failure(struct run_drive *d, const struct answer *answer, struct slice input)
{
	bool told_to = d->row.asked.p && slice_is(d->row.asked, CHILD_ASKED_FAIL);

	d->fails = false;
	if (strcmp(d->move.to, RUN_FAILED) != 0)
		return;
	if (drive_definition(d)->compensates && !told_to)
		cancel_itself(d, answer);
	tell_failure(d, answer, input);
}

void run_add_effects(const struct run_drive *d, struct unit *unit)
{
	const struct run_definition *definition = drive_definition(d);

	if (!d->move.effect_payload.p)
		return;
	for (size_t i = 0; i < definition->failure_effects_n; i++) {
		struct job_spec spec = {
			.subject = d->move.effect_ids[i],
			.workspace = d->row.workspace,
			.queue = JOB_QUEUE_AFTER_EFFECTS,
			.repeatable = definition->failure_effects[i]->effect != EFFECT_CLAIMED,
			.workflow = definition->name,
			.action = definition->failure_effects[i]->name,
			.effect_key = d->move.effect_keys[i],
			.payload = d->move.effect_payload,
		};

		job_insert(unit, &d->stamp, &spec);
	}
	unit_wake(unit, JOB_TOPIC);
}
