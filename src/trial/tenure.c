/*
 * A node's tenure of a batch as one task, its turns one after the other (flow/batch_tenure.h); or a caller's cancel, and the tenure that
 * follows where it has seized the batch.
 *
 *   CANCELS ─┬ seized ─▶ TURNS ─▶ ENDED
 *            └ its holder, or nobody, has to do something ─▶ ENDED
 */
#include "flow/batch_cancel.h"
#include "flow/batch_tenure.h"
#include "flow/shapes.h"
#include "trial/parts.h"

struct tenure {
	struct task task;
	struct arena *texts;
	const struct batch_policy *policy;
	enum { CANCELS, TURNS, ENDED } stage;
	enum hx_code code;
	enum batch_turn turn;
	struct batch_tenure of;
	union {
		struct task inner;
		struct batch_lead lead;
		struct batch_hand hand;
		struct batch_clean clean;
		struct batch_cancel cancel;
	};
};

_Static_assert(sizeof(struct tenure) <= SIM_TASK_BYTES, "a tenure fits");

static void begin_turn(struct tenure *t, const struct answer *answer)
{
	struct answer start = *answer;

	t->stage = TURNS;
	t->turn = batch_tenure_next(&t->of);
	switch (t->turn) {
	case TURN_NONE:
		t->stage = ENDED;
		return;
	case TURN_LEAD:
		batch_lead_init(&t->lead, TRIAL_SUBJECT, t->policy, t->of.holding ? &t->of.hold : NULL, &t->of.seen,
				t->texts);
		break;
	case TURN_HAND:
		batch_hand_init(&t->hand, &t->of.hold, t->texts);
		break;
	case TURN_CLEAN:
		batch_clean_init(&t->clean, &t->of.hold, batch_tenure_slice(&t->of), t->texts);
		break;
	}
	start.kind = ANSWER_START;
	t->inner.kind->take(&t->inner, &start);
}

static void end_turn(struct tenure *t, const struct answer *answer, enum hx_code code)
{
	if (t->stage == CANCELS) {
		t->code = code;
		t->stage = ENDED;
		if (code || !t->cancel.seized)
			return;
		batch_tenure_init(&t->of, TRIAL_SUBJECT, &t->cancel.hold);
	} else if (t->turn == TURN_LEAD) {
		batch_tenure_led(&t->of, &t->lead);
	} else if (t->turn == TURN_HAND) {
		batch_tenure_worked(&t->of, &t->hand);
	} else {
		batch_tenure_cleaned(&t->of, &t->clean);
	}
	begin_turn(t, answer);
}

static void tenure_take(struct task *task, const struct answer *answer)
{
	struct tenure *t = (struct tenure *)task;

	if (answer->kind == ANSWER_START && t->stage == TURNS)
		begin_turn(t, answer);
	else
		t->inner.kind->take(&t->inner, answer);
	while (t->stage != ENDED) {
		struct unit memory;
		struct ask ask = {.unit = &memory};

		t->inner.kind->ask(&t->inner, &ask);
		if (ask.kind != ASK_DONE)
			return;
		end_turn(t, answer, ask.code);
	}
}

static void tenure_ask(const struct task *task, struct ask *ask)
{
	const struct tenure *t = (const struct tenure *)task;

	if (t->stage == ENDED) {
		ask->kind = ASK_DONE;
		ask->code = t->code;
	} else {
		t->inner.kind->ask(&t->inner, ask);
	}
}

static const char *tenure_where(const struct task *task)
{
	const struct tenure *t = (const struct tenure *)task;

	return t->stage == ENDED ? "done" : t->inner.kind->where(&t->inner);
}

static void tenure_forget(void *copy)
{
	struct tenure *t = copy;

	if (t->stage != ENDED)
		return;
	t->of = (struct batch_tenure){0};
	t->inner.kind = NULL;
}

/* clang-format off */
static const struct task_shape tenure_shape = SHAPE(struct tenure, tenure_forget,
	PART_WITH(INNER, struct tenure, of, &batch_tenure_shape),
	PART_LAST(TASK, struct tenure, inner));
/* clang-format on */

static const struct task_kind tenure_kind = {
	.name = "tenure",
	.size = sizeof(struct tenure),
	.take = tenure_take,
	.ask = tenure_ask,
	.where = tenure_where,
	.shape = &tenure_shape,
};

void trial_tenure_init(union sim_task *task, struct trial *trial, bool cancels, struct arena *texts)
{
	struct tenure *t = (struct tenure *)task;

	memset(t, 0, sizeof *t);
	t->policy = &trial->batch_policy;
	t->texts = texts;
	t->stage = cancels ? CANCELS : TURNS;
	if (cancels)
		batch_cancel_init(&t->cancel, slice_str("default"), TRIAL_SUBJECT, t->policy, texts);
	else
		batch_tenure_init(&t->of, TRIAL_SUBJECT, /* hold= */ NULL);
	task_init(&t->task, &tenure_kind, /* topic= */ 0);
}
