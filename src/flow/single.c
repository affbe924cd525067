/* See single.h. */
#include "flow/single.h"

#include "flow/answer.h"
#include "flow/shapes.h"

static void take(struct task *task, const struct answer *answer)
{
	struct single *s = (struct single *)task;

	if (s->at == SINGLE_NEW) {
		s->stamp = flow_stamp(answer);
		s->fresh_id = answer->more_ids[0];
		s->at = SINGLE_ASKED;
		return;
	}
	ASSERT(s->at == SINGLE_ASKED);
	s->at = SINGLE_DONE;
	if (answer->result->verdict == UNIT_UNKNOWN)
		s->code = HX_OUTCOME_UNKNOWN;
	else if (answer->result->verdict == UNIT_FAILED)
		s->code = flow_failure(answer->result);
	else
		s->code = s->answered(s, answer->result);
}

static void ask(const struct task *task, struct ask *ask)
{
	const struct single *s = (const struct single *)task;

	if (s->at == SINGLE_DONE) {
		ask->kind = ASK_DONE;
		ask->code = s->code;
		return;
	}
	ask->kind = ASK_COMMIT;
	unit_init(ask->unit, s->stamp.op);
	s->build(s, ask->unit);
}

static const char *where(const struct task *task)
{
	static const char *const names[] = {"new", "asked", "done"};

	return names[((const struct single *)task)->at];
}

static const struct task_shape shape = SHAPE(struct single, NULL, PART_WITH(INNER, struct single, stamp, &stamp_shape),
					     PART(FRESH, struct single, fresh_id));

static const struct task_kind kind = {
	.name = "single",
	.size = sizeof(struct single),
	.take = take,
	.ask = ask,
	.where = where,
	.shape = &shape,
};

void single_init(struct single *single, void *context, void (*build)(const struct single *, struct unit *),
		 enum hx_code (*answered)(struct single *, const struct unit_result *))
{
	*single = (struct single){.build = build, .answered = answered, .context = context};
	task_init(&single->task, &kind, /* topic= */ 0);
}
