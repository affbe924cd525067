/* What an entity step asks for in each of its states, and how it is told apart. Functions of the task alone. See step_parts.h. */
#include "flow/shapes.h"
#include "flow/step_parts.h"

static void ask_act(const struct entity_step *s, const struct action *action, struct ask *ask)
{
	ask->kind = ASK_ACT;
	ask->act = (struct act_call){
		.action = action,
		.input = s->body,
		.key = s->call_key,
		.attempt = s->attempt ? s->attempt : 1,
		.traceparent = s->rq->traceparent,
		.fence = s->fence,
		.unknown_on_5xx = s->call->unknown_on_5xx,
		.in_doubt = s->doubt || s->unknowns || !s->claimed,
	};
	if (s->claimed)
		ask->act.lease = step_lease(s);
}

void step_ask(const struct task *task, struct ask *ask)
{
	const struct entity_step *s = (const struct entity_step *)task;

	switch (s->at) {
	case STEP_DONE:
		ask->kind = ASK_DONE;
		ask->code = s->code;
		break;
	case STEP_VALIDATING:
		ask_act(s, s->view->validation, ask);
		break;
	case STEP_ACTING:
		ask_act(s, s->call->action, ask);
		break;
	case STEP_PROBING:
		ask_act(s, s->call->action->probe, ask);
		break;
	case STEP_AWAITING:
		ask->kind = ASK_SLEEP;
		ask->until = s->asked;
		break;
	default:
		ask->kind = ASK_COMMIT;
		step_build_unit(s, ask->unit);
	}
}

const char *step_where(const struct task *task)
{
	static const char *const names[] = {
		"new",
		"reading",
		"awaiting a definition",
		"adopting the row",
		"claiming",
		"looking up its claim",
		"taking over",
		"validating",
		"writing its call down",
		"looking up whether it is written",
		"acting",
		"probing",
		"finishing",
		"looking up its finish",
		"releasing",
		"parking it for a person",
		"putting off its probe",
		"counting the answer",
		"done",
	};

	return names[((const struct entity_step *)task)->at];
}

/* clang-format off */
const struct task_shape step_shape = SHAPE(struct entity_step, NULL,
	PART(TEXT, struct entity_step, status),
	PART(SLICE, struct entity_step, data, output),
	PART(IGNORED, struct entity_step, updated_at), /* of the stamp, for who asked */
	PART(SLICE, struct entity_step, workspace, name, requester, input, sender, address),
	PART(SLICE, struct entity_step, key),
	PART(KEY, struct entity_step, call_key),
	PART(SLICE, struct entity_step, body, effect_payload),
	PART(FRESH, struct entity_step, effect_ids),
	PART(SLICE, struct entity_step, effect_keys),
	PART_WITH(INNER, struct entity_step, stamp, &stamp_noted_shape),
	PART(IGNORED, struct entity_step, stamp_text)); /* the time of the stamp */
/* clang-format on */
