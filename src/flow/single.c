/* See single.h. */
#include "flow/single.h"

#include "flow/answer.h"
#include "flow/shapes.h"
#include "task/states.h"

enum { SINGLE_NEW, SINGLE_ASKED, SINGLE_DONE };

static void single_take_start(struct single *s, const struct answer *answer)
{
	s->stamp = flow_stamp(answer);
	s->fresh_id = answer->more_ids[0];
	task_go(&s->task, SINGLE_ASKED);
}

static void take_answered(struct single *s, const struct answer *answer)
{
	if (answer->result->verdict == UNIT_UNKNOWN)
		task_end(&s->task, HX_OUTCOME_UNKNOWN);
	else if (answer->result->verdict == UNIT_FAILED)
		task_end(&s->task, flow_failure(answer->result));
	else
		task_end(&s->task, s->answered(s, answer->result));
}

TASK_UNIT(build, struct single, s, s->build(s, unit));

static const TASK_STATES(struct single) single_states[] = {
	[SINGLE_NEW] = {"new", single_take_start},
	[SINGLE_ASKED] = {"asked", take_answered, build},
	[SINGLE_DONE] = {"done"},
};

static const struct task_shape single_shape = SHAPE(struct single, NULL,
						    PART_WITH(INNER, struct single, stamp, &stamp_shape),
						    PART(FRESH, struct single, fresh_id));

TASK_KIND_STAMPED(single_kind, "single", struct single, single_states, .shape = &single_shape);

void single_init(struct single *single, void *context, void (*build)(const struct single *, struct unit *),
		 enum hx_code (*answered)(struct single *, const struct unit_result *))
{
	*single = (struct single){.build = build, .answered = answered, .context = context};
	task_init(&single->task, &single_kind, /* topic= */ 0);
}
