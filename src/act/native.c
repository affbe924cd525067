/* See native.h. */
#include "act/native.h"

#include <stdlib.h>

#include "act/pool.h"
#include "base/excerpt.h"
#include "base/trace.h"

struct native_kind {
	struct kind kind;
	struct pool pool;
	const struct natives *natives;
};

enum hx_code natives_add(struct natives *natives, const char *name, native_function function, void *context,
			 struct hx_error *err)
{
	struct native *native = &natives->list[natives->n];
	size_t n = strlen(name);

	if (natives->n == NATIVES_MAX)
		return error_set(err, HX_TOO_LARGE, "there are %d native actions already", NATIVES_MAX);
	if (n == 0 || n > NATIVE_NAME_MAX)
		return error_set(err, HX_VALIDATION_ERROR, "a native action's name has 1 to %d bytes", NATIVE_NAME_MAX);
	if (natives_find(natives, name))
		return error_set(err, HX_VALIDATION_ERROR, "there is a native action %s already",
				 excerpt_of(slice_str(name)).text);
	*native = (struct native){.function = function, .context = context};
	memcpy(native->name, name, n);
	natives->n++;
	return HX_OK;
}

const struct native *natives_find(const struct natives *natives, const char *name)
{
	for (size_t i = 0; natives && name && i < natives->n; i++)
		if (strcmp(natives->list[i].name, name) == 0)
			return &natives->list[i];
	return NULL;
}

/* What a function says is believed, but its output is looked at: everything after it relies on JSON. */
static struct verdict native_judge(enum act_outcome outcome, const struct strbuf *output, struct strbuf *words)
{
	if (output->failed && outcome == ACT_OK)
		return verdict_say(ACT_UNKNOWN, words, "the function's output could not be kept");
	switch (outcome) {
	case ACT_OK:
		return verdict_of_output(strbuf_slice(output), words);
	case ACT_INVALID:
		return verdict_of_rejection(strbuf_slice(output), words);
	case ACT_FAILED:
	case ACT_FAILED_FOR_GOOD:
	case ACT_UNKNOWN:
		strbuf_reset(words);
		verdict_show(words, strbuf_slice(output), VERDICT_SHOWN_MAX);
		return (struct verdict){outcome, strbuf_slice(words), 0};
	default:
		return verdict_say(ACT_UNKNOWN, words, "the function returned %d, which is no outcome", (int)outcome);
	}
}

static struct verdict call(const struct native *native, struct job *job, struct strbuf *output, struct strbuf *words)
{
	struct native_call call = {
		.input = job->call.input,
		.key = job->call.key,
		.traceparent = trace_parent(job->call.traceparent),
		.attempt = job->call.attempt,
		.fence = act_fence(&job->call),
		.timeout_ms = job_timeout_ms(job),
		.cancelled = &job->cancelled,
	};

	if (!native)
		return verdict_say(verdict_never_sent(&job->call), words, "there is no native action %s",
				   excerpt_of(slice_str(job->action->function)).text);
	if (atomic_load(&job->cancelled))
		return verdict_say(ACT_FAILED, words, "cancelled before it began");
	return native_judge(native->function(native->context, &call, output), output, words);
}

static void native_run(struct kind *kind, struct job *job)
{
	struct native_kind *self = (struct native_kind *)kind;

	LOCAL_STRBUF(output, VERDICT_OUTPUT_BYTES_MAX);
	LOCAL_STRBUF(words, VERDICT_WORDS_MAX);
	port_job_done(job, call(natives_find(self->natives, job->action->function), job, &output, &words));
}

static void native_start(struct kind *kind, struct job *job)
{
	pool_put(&((struct native_kind *)kind)->pool, job);
}

static void native_flush(struct kind *kind)
{
	pool_flush(&((struct native_kind *)kind)->pool);
}

static void native_cancel(struct kind *kind, struct job *job)
{
	(void)kind;
	(void)job; /* the function sees job->cancelled */
}

static void free_kind(struct kind *kind)
{
	struct native_kind *self = (struct native_kind *)kind;

	pool_release(&self->pool);
	free(self);
}

enum hx_code native_kind_new(const struct natives *natives, size_t slots, struct kind **ret_kind, struct hx_error *err)
{
	struct native_kind *self = calloc(1, sizeof *self);
	enum hx_code code;

	if (!self)
		return error_set(err, HX_NO_MEMORY, "native actions");
	self->kind = (struct kind){.start = native_start,
				   .flush = native_flush,
				   .cancel = native_cancel,
				   .free = free_kind,
				   .slots = slots};
	self->natives = natives;
	code = pool_init(&self->pool, slots, native_run, &self->kind, err);
	return HAND_OVER(code, &self->kind, free_kind, ret_kind);
}
