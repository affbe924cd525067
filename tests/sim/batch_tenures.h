/*
 * Who works on a batch in the simulations: a node's tenure as one task (its turns one after the other), a caller's cancel and the
 * tenure that follows from it, and hands without a lead, to run beside each other.
 */
#ifndef HX_TESTS_SIM_BATCH_TENURES_H
#define HX_TESTS_SIM_BATCH_TENURES_H

#include "flow/batch_cancel.h"
#include "flow/batch_tenure.h"
#include "flow/shapes.h"
#include "sim/batch_world.h"

/* ---- a node's tenure, as a task: its turns one after the other. Or a caller's cancel, and the tenure that follows ---- */

struct tenure_task {
	struct task task;
	struct arena *texts;
	enum { TENURE_CANCELS, TENURE_TURNS, TENURE_ENDED } at;
	enum batch_turn turn;
	struct batch_tenure tenure;
	const struct batch_policy *policy;
	unsigned recorded; /* items whose success a hand has written down */
	bool is_cancel, told_ok, told_accepted;
	enum hx_code code;
	union {
		struct task inner;
		struct batch_lead lead;
		struct batch_hand hand;
		struct batch_clean clean;
		struct batch_cancel cancel;
	};
};

static inline bool inner_is_done(const struct tenure_task *t, enum hx_code *ret_code)
{
	struct unit memory;
	struct ask ask = {.unit = &memory};

	t->inner.kind->ask(&t->inner, &ask);
	*ret_code = ask.code;
	return ask.kind == ASK_DONE;
}

static inline void begin_turn(struct tenure_task *t, const struct answer *answer)
{
	struct answer start = *answer;

	t->at = TENURE_TURNS;
	t->turn = batch_tenure_next(&t->tenure);
	switch (t->turn) {
	case TURN_NONE:
		ASSERT(batch_tenure_is_over(&t->tenure));
		t->at = TENURE_ENDED;
		t->told_ok |= t->is_cancel && t->lead.row.status && strcmp(t->lead.row.status, BATCH_CANCELLED) == 0;
		t->told_accepted |= t->is_cancel && !t->told_ok;
		return;
	case TURN_LEAD:
		batch_lead_init(&t->lead, BATCH, t->policy, t->tenure.holding ? &t->tenure.hold : NULL, &t->tenure.seen,
				t->texts);
		break;
	case TURN_HAND:
		batch_hand_init(&t->hand, &t->tenure.hold, t->texts);
		break;
	case TURN_CLEAN:
		batch_clean_init(&t->clean, &t->tenure.hold, batch_tenure_slice(&t->tenure), t->texts);
		break;
	}
	start.kind = ANSWER_START;
	t->inner.kind->take(&t->inner, &start);
}

static inline void note_recorded(unsigned *recorded, const struct batch_hand *hand)
{
	if (hand->came_to != HAND_FAILED && hand->end.status && strcmp(hand->end.status, ITEM_SUCCEEDED) == 0)
		*recorded |= 1u << hand->n;
}

static inline void end_cancel(struct tenure_task *t, enum hx_code code, const struct answer *answer)
{
	t->code = code;
	t->told_ok = !code && t->cancel.was_over;
	t->told_accepted = !code && t->cancel.accepted;
	t->at = TENURE_ENDED;
	if (!code && t->cancel.seized) {
		batch_tenure_init(&t->tenure, BATCH, &t->cancel.hold);
		begin_turn(t, answer);
	}
}

static inline void end_turn(struct tenure_task *t, const struct answer *answer)
{
	switch (t->turn) {
	case TURN_LEAD:
		batch_tenure_led(&t->tenure, &t->lead);
		break;
	case TURN_HAND:
		note_recorded(&t->recorded, &t->hand);
		batch_tenure_worked(&t->tenure, &t->hand);
		break;
	case TURN_CLEAN:
		batch_tenure_cleaned(&t->tenure, &t->clean);
		break;
	case TURN_NONE:
		break;
	}
	begin_turn(t, answer);
}

static inline void tenure_take(struct task *task, const struct answer *answer)
{
	struct tenure_task *t = (struct tenure_task *)task;
	enum hx_code code;

	if (answer->kind == ANSWER_START && !t->is_cancel)
		begin_turn(t, answer);
	else
		t->inner.kind->take(&t->inner, answer);
	while (t->at != TENURE_ENDED && inner_is_done(t, &code))
		if (t->at == TENURE_CANCELS)
			end_cancel(t, code, answer);
		else
			end_turn(t, answer);
}

static inline void tenure_ask(const struct task *task, struct ask *ask)
{
	const struct tenure_task *t = (const struct tenure_task *)task;

	if (t->at == TENURE_ENDED) {
		ask->kind = ASK_DONE;
		ask->code = t->code;
	} else {
		t->inner.kind->ask(&t->inner, ask);
	}
}

static const char *tenure_where(const struct task *task)
{
	static const char *const whose[] = {"", "lead ", "hand ", "clean "};
	static char words[80]; /* for a counterexample: one thread, used at once */
	const struct tenure_task *t = (const struct tenure_task *)task;

	if (t->at == TENURE_ENDED)
		return "done";
	snprintf(words, sizeof words, "%s%s", t->at == TENURE_CANCELS ? "cancel " : whose[t->turn],
		 t->inner.kind->where(&t->inner));
	return words;
}

/* When it has ended, only what it has told and recorded. */
static void tenure_forget(void *copy)
{
	struct tenure_task *t = copy;

	if (t->at != TENURE_ENDED)
		return;
	t->tenure = (struct batch_tenure){0};
	t->inner.kind = NULL;
}

/* clang-format off */
static const struct task_shape tenure_task_shape = SHAPE(struct tenure_task, tenure_forget,
	PART_WITH(INNER, struct tenure_task, tenure, &batch_tenure_shape),
	PART_LAST(TASK, struct tenure_task, inner));
/* clang-format on */

static const struct task_kind tenure_kind = {
	.name = "tenure",
	.size = sizeof(struct tenure_task),
	.take = tenure_take,
	.ask = tenure_ask,
	.where = tenure_where,
	.shape = &tenure_task_shape,
};

static inline void init_tenure(union sim_task *task, const void *plan, struct arena *texts)
{
	struct tenure_task *t = (struct tenure_task *)task;

	_Static_assert(sizeof *t <= SIM_TASK_BYTES, "a tenure fits");
	memset(t, 0, sizeof *t);
	t->policy = plan ? plan : &policy;
	t->texts = texts;
	batch_tenure_init(&t->tenure, BATCH, /* hold= */ NULL);
	task_init(&t->task, &tenure_kind, /* topic= */ 0);
}

static inline void init_cancel(union sim_task *task, const void *plan, struct arena *texts)
{
	struct tenure_task *t = (struct tenure_task *)task;

	(void)plan;
	memset(t, 0, sizeof *t);
	t->policy = &policy;
	t->texts = texts;
	t->is_cancel = true;
	batch_cancel_init(&t->cancel, slice_str("default"), BATCH, &policy, texts);
	task_init(&t->task, &tenure_kind, /* topic= */ 0);
}

/* ---- hands of the batch as it was seized in the setup, without their lead ---- */

/* One item after the other, as long as there may be another. */
struct hands_task {
	struct task task;
	struct arena *texts;
	unsigned recorded;
	struct batch_hand hand;
};

static inline void hands_take(struct task *task, const struct answer *answer)
{
	struct hands_task *t = (struct hands_task *)task;
	struct answer start = *answer;
	struct batch_hold hold;

	t->hand.task.kind->take(&t->hand.task, answer);
	if (!task_is_done(&t->hand.task))
		return;
	note_recorded(&t->recorded, &t->hand);
	if (t->hand.came_to != HAND_GO_ON)
		return;
	start.kind = ANSWER_START;
	hold = t->hand.hold;
	batch_hand_init(&t->hand, &hold, t->texts);
	t->hand.task.kind->take(&t->hand.task, &start);
}

static inline void hands_ask(const struct task *task, struct ask *ask)
{
	const struct hands_task *t = (const struct hands_task *)task;

	t->hand.task.kind->ask(&t->hand.task, ask);
}

static const char *hands_where(const struct task *task)
{
	const struct hands_task *t = (const struct hands_task *)task;

	return t->hand.task.kind->where(&t->hand.task);
}

static const struct task_shape hands_shape = SHAPE(struct hands_task, NULL, PART(TASK, struct hands_task, hand));

static const struct task_kind hands_kind = {
	.name = "hands",
	.size = sizeof(struct hands_task),
	.take = hands_take,
	.ask = hands_ask,
	.where = hands_where,
	.shape = &hands_shape,
};

static inline void init_hands(union sim_task *task, const void *plan, struct arena *texts)
{
	struct hands_task *t = (struct hands_task *)task;

	(void)plan;
	memset(t, 0, sizeof *t);
	t->texts = texts;
	batch_hand_init(&t->hand, &fixture.hold, texts);
	task_init(&t->task, &hands_kind, /* topic= */ 0);
}

#endif
