/* See transition.h for the states. */
#include "support/transition.h"

#include "flow/answer.h"

static void end(struct transition *t, enum hx_code code)
{
	t->code = code;
	t->at = TRANSITION_DONE;
}

static void start_moving(struct transition *t, const struct answer *answer)
{
	t->stamp = flow_stamp(answer);
	t->at = TRANSITION_MOVING;
}

static void take_read(struct transition *t, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[0];

	if (answer->result->verdict != UNIT_WON) {
		end(t, HX_STORE_UNAVAILABLE);
	} else if (rows->n == 0) {
		end(t, HX_NOT_FOUND);
	} else if (!slice_is(db_cell(rows, 0, 0)->s, t->move.from)) {
		end(t, HX_WRONG_STATUS);
	} else {
		t->version = db_cell(rows, 0, 1)->i;
		start_moving(t, answer);
	}
}

static void take_moved(struct transition *t, const struct answer *answer)
{
	switch (answer->result->verdict) {
	case UNIT_WON:
		t->version = db_cell(&answer->result->rows[0], 0, 0)->i;
		end(t, HX_OK);
		break;
	case UNIT_LOST:
	case UNIT_REFUSED:
		end(t, HX_CONCURRENCY_ERROR);
		break;
	case UNIT_FAILED:
		end(t, flow_failure(answer->result));
		break;
	case UNIT_UNKNOWN:
		t->at = TRANSITION_LOOKING_UP;
		break;
	}
}

static void take_look_up(struct transition *t, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[0];

	if (answer->result->verdict != UNIT_WON) {
		end(t, HX_OUTCOME_UNKNOWN);
	} else if (rows->n == 0) {
		end(t, HX_STORE_UNAVAILABLE);
	} else {
		t->version = db_cell(rows, 0, 0)->i;
		end(t, HX_OK);
	}
}

static void take(struct task *task, const struct answer *answer)
{
	struct transition *t = (struct transition *)task;

	switch (t->at) {
	case TRANSITION_NEW:
		if (t->version)
			start_moving(t, answer);
		else
			t->at = TRANSITION_READING;
		break;
	case TRANSITION_READING:
		take_read(t, answer);
		break;
	case TRANSITION_MOVING:
		take_moved(t, answer);
		break;
	case TRANSITION_LOOKING_UP:
		take_look_up(t, answer);
		break;
	case TRANSITION_DONE:
		ASSERT(!"a task that is done takes no answer");
	}
}

static void ask(const struct task *task, struct ask *ask)
{
	const struct transition *t = (const struct transition *)task;

	if (t->at == TRANSITION_DONE) {
		ask->kind = ASK_DONE;
		ask->code = t->code;
		return;
	}
	ask->kind = ASK_COMMIT;
	unit_init(ask->unit, t->stamp.op);
	if (t->at == TRANSITION_READING)
		subject_read(ask->unit, t->move.subject);
	else if (t->at == TRANSITION_MOVING)
		subject_transition(ask->unit, &t->stamp, &t->move, t->version);
	else
		subject_look_up(ask->unit, t->move.subject, t->stamp.op);
}

static const struct task_kind kind = {
	.name = "transition",
	.size = sizeof(struct transition),
	.take = take,
	.ask = ask,
};

void transition_init(struct transition *t, const struct move *move, int64_t version)
{
	*t = (struct transition){.move = *move, .version = version};
	task_init(&t->task, &kind, /* topic= */ 0);
}
