/* See call_limit.h. */
#include "flow/call_limit.h"

#include "base/json_walk.h"
#include "model/text.h"

static int64_t name_of(const struct call_of *call, const char *kind, struct slice key, struct arena *arena)
{
	const char *of = text_printf(arena, "%.*s/%s", SLICE_ARGS(call->workflow), call->action->name);

	return slot_name(kind, call->workspace, slice_str(of ? of : ""), key);
}

struct slice call_input(struct slice body)
{
	struct json input;

	return json_find(json_trust(body), slice_str("input"), &input) ? input.raw : slice_str("null");
}

struct bounds call_bounds(const struct call_of *call, struct arena *arena)
{
	const struct limits *own = call->action ? &call->action->limits : NULL;
	const struct limits *now = call->in_force ? &call->in_force->limits : own;
	struct bounds b = {0};

	if (!own || !limits_are_set(own))
		return b;
	if (own->concurrency.max && now->concurrency.max) {
		b.slot = (struct slot){.max = now->concurrency.max,
				       .key = limit_key(own->concurrency.by, json_trust(call->input), arena),
				       .action = slice_str(call->action->name),
				       .of = SLOT_OF_CALL};
		b.slot.name = name_of(call, "action", b.slot.key, arena);
	}
	if (own->rate.max && now->rate.max) {
		b.rate = (struct rate){.max = now->rate.max,
				       .per_ms = now->rate.per_ms,
				       .key = limit_key(own->rate.by, json_trust(call->input), arena),
				       .action = slice_str(call->action->name),
				       .of = SLOT_OF_CALL};
		b.rate.name = name_of(call, "action rate", b.rate.key, arena);
	}
	return b;
}
