/* What a call, or a verb, names of a journal: that is read with the function. See function.h. */
#include "base/json_string.h"
#include "flow/function_parts.h"

#define NAMED_BYTES_MAX (160u << 20)

static void add_label(struct strbuf *text, struct slice name, int64_t n)
{
	LOCAL_STRBUF(label, FUNCTION_NAME_BYTES_MAX + 32);

	entry_write_label(name, n, &label);
	strbuf_add_char(text, text->n == 1 ? ' ' : ',');
	json_quote(strbuf_slice(&label), text);
}

/* How a verb calls an entry may mean NAME, or the N-th of a shorter one. */
static void add_labels_of(struct strbuf *text, struct slice called)
{
	struct slice name;
	int64_t n;

	add_label(text, called, 0);
	if (entry_split_name(called, &name, &n))
		add_label(text, name, n);
}

static struct slice function_labels(const struct function_request *rq, struct arena *arena)
{
	struct strbuf text;

	strbuf_init(&text, NAMED_BYTES_MAX);
	strbuf_add_char(&text, '[');
	for (size_t i = 0; i < rq->changes_n; i++) {
		const struct function_change *change = &rq->changes[i];

		add_label(&text, change->name, change->n);
		if (change->n)
			add_label(&text, change->name, change->n - 1);
	}
	for (size_t i = 0; i < rq->end.awaits_n; i++)
		add_label(&text, rq->end.awaits[i].name, rq->end.awaits[i].n);
	if (rq->end.step.p)
		add_labels_of(&text, rq->end.step);
	strbuf_add_char(&text, ']');
	return arena_keep(arena, &text);
}

/* What the call asks for and may have come before: JSON, as run_event calls it. */
static struct slice function_asked(const struct function_request *rq, struct arena *arena)
{
	struct strbuf text;

	strbuf_init(&text, NAMED_BYTES_MAX);
	strbuf_add_char(&text, '[');
	for (size_t i = 0; i < rq->changes_n; i++) {
		LOCAL_STRBUF(name, 2 * FUNCTION_NAME_BYTES_MAX);

		if (rq->changes[i].kind != ENTRY_EVENT)
			continue;
		strbuf_add_str(&name, RUN_AWAITS_EVENT);
		strbuf_add_slice(&name, rq->changes[i].event);
		strbuf_add_char(&text, text.n == 1 ? ' ' : ',');
		json_quote(strbuf_slice(&name), &text);
	}
	strbuf_add_char(&text, ']');
	return arena_keep(arena, &text);
}

static struct slice function_wanted(const struct function_request *rq, struct arena *arena)
{
	struct strbuf text;

	strbuf_init(&text, NAMED_BYTES_MAX);
	strbuf_add_char(&text, '[');
	for (size_t i = 0; i < rq->changes_n; i++)
		if (rq->changes[i].kind == ENTRY_CHILD) {
			strbuf_add_char(&text, text.n == 1 ? ' ' : ',');
			json_quote(rq->changes[i].workflow, &text);
		}
	strbuf_add_char(&text, ']');
	return arena_keep(arena, &text);
}

/* Does it say only what is new, of steps and values? If nothing is open then, there is nothing else to be read. */
static bool asks_for_itself(const struct function_request *rq)
{
	for (size_t i = 0; i < rq->changes_n; i++) {
		const struct function_change *c = &rq->changes[i];

		if (!(c->kind == ENTRY_STEP && c->policy.p) && c->kind != ENTRY_VALUE)
			return false;
	}
	return !rq->end.awaits_n && !function_is_heartbeat(rq);
}

struct function_named function_named(const struct function_request *rq, struct arena *arena)
{
	return (struct function_named){.labels = function_labels(rq, arena),
				       .asked = function_asked(rq, arena),
				       .children = function_wanted(rq, arena),
				       .lean = asks_for_itself(rq)};
}

struct function_named function_named_so(struct slice called, struct arena *arena)
{
	return (struct function_named){
		.labels = function_labels(&(struct function_request){.end = {.step = called}}, arena)};
}
