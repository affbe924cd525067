/* Functions of an embedding program as native actions. See embed.h; the contract is in hapax.h. */
#include "base/json_walk.h"
#include "engine/embed.h"

#define CALL_BYTES_MAX (128u << 20)

struct hx_output {
	struct strbuf *text;
};

enum hx_code hx_output_write(struct hx_output *output, const void *bytes, size_t bytes_n)
{
	strbuf_add(output->text, bytes, bytes_n);
	return output->text->failed ? HX_TOO_LARGE : HX_OK;
}

enum hx_code hx_output_add(struct hx_output *output, const char *text)
{
	return hx_output_write(output, text, strlen(text));
}

int hx_native_cancelled(const struct hx_native_call *call)
{
	return atomic_load((const atomic_bool *)call->inside);
}

static enum act_outcome outcome_of(enum hx_native_outcome outcome)
{
	switch (outcome) {
	case HX_NATIVE_DONE:
		return ACT_OK;
	case HX_NATIVE_FAILED:
		return ACT_FAILED;
	case HX_NATIVE_FAILED_FOR_GOOD:
		return ACT_FAILED_FOR_GOOD;
	case HX_NATIVE_REJECTED:
		return ACT_INVALID;
	default: /* also what is none of them: nobody knows what it did */
		return ACT_UNKNOWN;
	}
}

/* The step's own input is a part of the document. */
static struct slice input_of(struct slice document)
{
	struct json input = json_trust(slice_str("null"));

	(void)json_find(json_trust(document), slice_str("input"), &input); /* absent: null */
	return input.raw;
}

/* In a thread of the port's. */
static enum act_outcome embed_native_run(void *context, const struct native_call *call, struct strbuf *text)
{
	const struct embed_native *native = context;
	struct hx_output output = {text};
	enum act_outcome outcome = ACT_FAILED;
	struct hx_native_call told = {
		.engine = native->engine,
		.attempt = call->attempt,
		.fence = call->fence,
		.timeout_ms = call->timeout_ms,
		.inside = call->cancelled,
	};
	LOCAL_ARENA(arena, CALL_BYTES_MAX);

	told.document = arena_copy(&arena, call->input).p;
	told.input = arena_copy(&arena, input_of(call->input)).p;
	told.key = arena_copy(&arena, call->key).p;
	told.traceparent = call->traceparent.n ? arena_copy(&arena, call->traceparent).p : NULL;
	if (arena.failed)
		strbuf_add_str(text, "there is no memory for the call");
	else
		outcome = outcome_of(native->run(native->context, &told, &output));
	return outcome;
}

enum hx_code embed_natives_add(struct hx_engine *e, const struct hx_native *natives, size_t n, struct hx_error *err)
{
	enum hx_code code = HX_OK;

	_Static_assert(HX_NATIVES_MAX == NATIVES_MAX, "hapax.h says how many there may be");
	if (n && !natives)
		return error_set(err, HX_VALIDATION_ERROR, "the native actions are missing");
	if (n > NATIVES_MAX)
		return error_set(err, HX_TOO_LARGE, "there are at most %d native actions", NATIVES_MAX);
	for (size_t i = 0; i < n && !code; i++) {
		if (!natives[i].name || !natives[i].run)
			return error_set(err, HX_VALIDATION_ERROR, "native action %zu has no name or no function", i);
		e->functions[i] = (struct embed_native){e, natives[i].run, natives[i].context};
		code = natives_add(&e->natives, natives[i].name, embed_native_run, &e->functions[i], err);
	}
	return code;
}
