/* See claim.h for the states and invariants. */
#include "support/claim.h"

#include <stdio.h>

#include "flow/answer.h"
#include "task/pulse.h"

static void end(struct claim *c, enum hx_code code)
{
	c->code = code;
	c->at = CLAIM_DONE;
}

/* The next unit gets a fresh op, so that looking it up cannot find an earlier one. */
static void go(struct claim *c, enum claim_at at, const struct answer *answer)
{
	c->stamp = flow_stamp(answer);
	c->at = at;
}

static void take_read(struct claim *c, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[0];

	if (answer->result->verdict != UNIT_WON) {
		end(c, HX_STORE_UNAVAILABLE);
	} else if (rows->n == 0) {
		end(c, HX_NOT_FOUND);
	} else if (slice_is(db_cell(rows, 0, 0)->s, c->plan->claim_into)) {
		end(c, HX_CLAIM_FAILED);
	} else if (!slice_is(db_cell(rows, 0, 0)->s, c->plan->from)) {
		end(c, HX_WRONG_STATUS);
	} else {
		c->version = db_cell(rows, 0, 1)->i;
		c->doubt = db_cell(rows, 0, 5)->i != 0;
		c->effort = db_cell(rows, 0, 4)->i; /* the claim is guarded by the version, so it is still this one */
		c->asked = answer->mono;
		go(c, CLAIM_CLAIMING, answer);
	}
}

static struct lease lease_of(const struct claim *c)
{
	return (struct lease){c->plan->subject, c->fence, c->plan->lease_ms, c->asked};
}

/* The claim is ours: rows[0] is (version, fence), from the claim itself or from its history row. */
static void hold(struct claim *c, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[0];
	struct lease lease;

	c->version = db_cell(rows, 0, 0)->i;
	c->fence = db_cell(rows, 0, 1)->i;
	snprintf(c->key, sizeof c->key, "%lld-%lld", (long long)c->plan->subject, (long long)c->effort);
	lease = lease_of(c);
	if (lease_is_trusted(&lease, answer->mono))
		c->at = CLAIM_ACTING;
	else
		end(c, HX_STORE_UNAVAILABLE); /* nothing was done; the claim ends by its time */
}

static void take_claimed(struct claim *c, const struct answer *answer)
{
	switch (answer->result->verdict) {
	case UNIT_WON:
		hold(c, answer);
		break;
	case UNIT_LOST:
	case UNIT_REFUSED:
		end(c, HX_CLAIM_FAILED);
		break;
	case UNIT_FAILED:
		end(c, flow_failure(answer->result));
		break;
	case UNIT_UNKNOWN:
		c->at = CLAIM_LOOKING_UP_CLAIM;
		break;
	}
}

static void take_claim_looked_up(struct claim *c, const struct answer *answer)
{
	/* Not there, or nobody to ask: no action has run, so the caller may simply try again. If the claim did
	 * land after all, it is nobody's, and the janitor ends it. */
	if (answer->result->verdict != UNIT_WON || answer->result->rows[0].n == 0)
		end(c, HX_STORE_UNAVAILABLE);
	else
		hold(c, answer);
}

static void take_acted(struct claim *c, const struct answer *answer)
{
	c->outcome = answer->outcome;
	switch (answer->outcome) {
	case ACT_OK:
		go(c, CLAIM_FINISHING, answer);
		break;
	case ACT_FAILED:
	case ACT_FAILED_FOR_GOOD:
	case ACT_INVALID:
		go(c, CLAIM_RELEASING, answer);
		break;
	case ACT_UNKNOWN:
	case ACT_UNSETTLED:
	case ACT_CLAIM_LOST:
		end(c, HX_OUTCOME_UNKNOWN);
		break;
	}
}

static void take_finished(struct claim *c, const struct answer *answer)
{
	switch (answer->result->verdict) {
	case UNIT_WON:
		c->version = db_cell(&answer->result->rows[0], 0, 0)->i;
		end(c, HX_OK);
		break;
	case UNIT_UNKNOWN:
		c->at = CLAIM_LOOKING_UP_FINISH;
		break;
	default: /* the action was done and this could not be written, or the claim was somebody else's by then */
		end(c, HX_OUTCOME_UNKNOWN);
	}
}

static void take_finish_looked_up(struct claim *c, const struct answer *answer)
{
	if (answer->result->verdict != UNIT_WON) {
		end(c, HX_OUTCOME_UNKNOWN);
	} else if (answer->result->rows[0].n == 0) {
		go(c, CLAIM_FINISHING, answer); /* it did not land and cannot any more: still ours to finish */
	} else {
		c->version = db_cell(&answer->result->rows[0], 0, 0)->i;
		end(c, HX_OK);
	}
}

static void take(struct task *task, const struct answer *answer)
{
	struct claim *c = (struct claim *)task;

	switch (c->at) {
	case CLAIM_NEW:
		c->at = CLAIM_READING;
		break;
	case CLAIM_READING:
		take_read(c, answer);
		break;
	case CLAIM_CLAIMING:
		take_claimed(c, answer);
		break;
	case CLAIM_LOOKING_UP_CLAIM:
		take_claim_looked_up(c, answer);
		break;
	case CLAIM_ACTING:
		take_acted(c, answer);
		break;
	case CLAIM_FINISHING:
		take_finished(c, answer);
		break;
	case CLAIM_LOOKING_UP_FINISH:
		take_finish_looked_up(c, answer);
		break;
	case CLAIM_RELEASING: /* won, lost or failed: the janitor comes after us, and the caller hears the action */
		end(c, c->outcome == ACT_INVALID ? HX_INVALID : HX_ACTION_FAILED);
		break;
	case CLAIM_DONE:
		ASSERT(!"a task that is done takes no answer");
	}
}

static void ask_unit(const struct claim *c, struct unit *unit)
{
	const struct claim_plan *plan = c->plan;
	struct move claim = {plan->subject, plan->from, plan->claim_into};
	struct move finish = {plan->subject, plan->claim_into, plan->successful_state};
	struct move release = {plan->subject, plan->claim_into, plan->revert_to};

	unit_init(unit, c->stamp.op);
	switch (c->at) {
	case CLAIM_READING:
		subject_read(unit, plan->subject);
		break;
	case CLAIM_CLAIMING:
		subject_claim(unit, &c->stamp, &claim, c->version, plan->lease_ms);
		break;
	case CLAIM_FINISHING:
		subject_finish(unit, &c->stamp, &finish, c->fence);
		break;
	case CLAIM_RELEASING:
		subject_release(unit, &c->stamp, &release, c->fence,
				/* answered= */ !c->doubt || c->outcome != ACT_FAILED);
		break;
	case CLAIM_LOOKING_UP_CLAIM:
	case CLAIM_LOOKING_UP_FINISH:
		subject_look_up(unit, plan->subject, c->stamp.op);
		break;
	default:
		ASSERT(!"this state asks for no unit");
	}
}

static void ask(const struct task *task, struct ask *ask)
{
	const struct claim *c = (const struct claim *)task;

	switch (c->at) {
	case CLAIM_DONE:
		ask->kind = ASK_DONE;
		ask->code = c->code;
		break;
	case CLAIM_ACTING:
		ask->kind = ASK_ACT;
		ask->act = (struct act_call){
			.action = c->plan->action,
			.input = c->plan->input,
			.key = slice_str(c->key),
			.attempt = 1,
			.lease = lease_of(c),
		};
		break;
	default:
		ask->kind = ASK_COMMIT;
		ask_unit(c, ask->unit);
	}
}

static const struct task_kind kind = {
	.name = "claim",
	.size = sizeof(struct claim),
	.take = take,
	.ask = ask,
};

void claim_init(struct claim *c, const struct claim_plan *plan)
{
	*c = (struct claim){.plan = plan};
	task_init(&c->task, &kind, /* topic= */ 0);
}
