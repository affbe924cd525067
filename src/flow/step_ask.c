/* The calls of an entity step, and how it is told apart. Functions of the task alone. See step_parts.h. */
#include "flow/shapes.h"
#include "flow/step_parts.h"

static struct act_call step_ask_call_of(const struct entity_step *s, const struct action *action)
{
	struct act_call call = {
		.action = action,
		.input = s->body,
		.key = s->call_key,
		.attempt = s->attempt ? s->attempt : 1,
		.traceparent = s->rq->traceparent,
		.fence = s->fence,
		.unknown_on_5xx = s->call->unknown_on_5xx,
		.in_doubt = s->doubt || s->unknowns || !s->claimed,
		.tenant = unit_tenant(s->workspace),
	};

	if (s->claimed)
		call.lease = step_lease(s);
	return call;
}

struct act_call step_call_validation(const struct entity_step *s)
{
	return step_ask_call_of(s, s->view->validation);
}

struct act_call step_call_action(const struct entity_step *s)
{
	return step_ask_call_of(s, s->call->action);
}

struct act_call step_call_probe(const struct entity_step *s)
{
	return step_ask_call_of(s, s->call->action->probe);
}

const struct task_shape step_shape = SHAPE(struct entity_step, NULL,
	PART(TEXT, struct entity_step, status),
	PART(SLICE, struct entity_step, data, output, reason, attributes),
	PART(IGNORED, struct entity_step, updated_at), /* of the stamp, for who asked */
	PART(SLICE, struct entity_step, workspace, name, requester, input, sender, address, sent_data),
	PART(TEXT, struct entity_step, from),
	PART(SLICE, struct entity_step, key),
	PART_WITH(INNER, struct entity_step, bounds, &bounds_shape),
	PART(KEY, struct entity_step, call_key),
	PART(SLICE, struct entity_step, body, effect_payload),
	PART(FRESH, struct entity_step, effect_ids),
	PART(SLICE, struct entity_step, effect_keys),
	PART_WITH(INNER, struct entity_step, stamp, &stamp_noted_shape),
	PART(IGNORED, struct entity_step, stamp_text)); /* the time of the stamp */
