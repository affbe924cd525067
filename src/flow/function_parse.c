/*
 * What a worker sends, read: entries and the end of a turn. Only shapes are looked at here; whether an entry fits the journal is
 * function_take.c's. An unknown member is refused: whoever misspells onUnknown has an unprotected step.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/excerpt.h"
#include "base/json_number.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "base/utf8.h"
#include "flow/function_parts.h"

#define DETAIL_BYTES_MAX (RUN_INPUT_BYTES_MAX + 65536)
#define ERROR_BYTES_MAX 65536
#define DURATION_MS_MAX (INT64_C(366) * 100 * 86400000)

struct parser {
	struct arena *arena;
	struct hx_error *err;
	char place[48]; /* what is being read: "entry 3", "end" */
};

#define REFUSE(p, ...) (error_set((p)->err, HX_BAD_ENTRY, __VA_ARGS__) == HX_OK)
#define INVALID(p, ...) (error_set((p)->err, HX_VALIDATION_ERROR, __VA_ARGS__) == HX_OK)
#define TOO_LARGE(p, ...) (error_set((p)->err, HX_TOO_LARGE, __VA_ARGS__) == HX_OK)

static bool name_is_good(struct slice name, size_t bytes_max)
{
	if (!name.p || name.n < 1 || name.n > bytes_max || utf8_valid_bytes(name) != name.n)
		return false;
	for (size_t i = 0; i < name.n; i++)
		if ((unsigned char)name.p[i] < 0x20 || name.p[i] == 0x7f)
			return false;
	return true;
}

static bool read_text(struct parser *p, struct json object, const char *member, size_t bytes_max, bool needed,
		      struct slice *ret_text)
{
	struct json value;

	if (!json_find(object, slice_str(member), &value))
		return !needed || REFUSE(p, "%s: %s is missing", p->place, member);
	if (json_type(value) == JSON_STRING)
		*ret_text = json_string_decode(value, p->arena);
	if (json_type(value) == JSON_STRING && name_is_good(*ret_text, bytes_max))
		return true;
	return REFUSE(p, "%s: %s is a string of 1 to %zu bytes without control characters", p->place, member,
		      bytes_max);
}

/* A whole number of the entry; absent: otherwise. */
static bool read_number(struct parser *p, struct json object, const char *member, int64_t min, int64_t max,
			int64_t otherwise, int64_t *ret_number)
{
	struct json value;
	struct hx_error err;

	*ret_number = otherwise;
	if (!json_find(object, slice_str(member), &value) || json_type(value) == JSON_NULL)
		return true;
	if (json_type(value) == JSON_NUMBER && json_int64(value, &err, ret_number) == HX_OK && *ret_number >= min &&
	    *ret_number <= max)
		return true;
	return REFUSE(p, "%s: %s is a whole number from %lld to %lld", p->place, member, (long long)min,
		      (long long)max);
}

static bool read_json(struct parser *p, struct json object, const char *member, size_t bytes_max,
		      struct slice *ret_json)
{
	struct json value;

	if (!json_find(object, slice_str(member), &value))
		return true;
	if (value.raw.n > bytes_max)
		return TOO_LARGE(p, "%s: %s is at most %zu bytes", p->place, member, bytes_max);
	*ret_json = value.raw;
	return true;
}

static bool read_word(struct parser *p, struct json object, const char *member, const char *const words[],
		      const char *otherwise, struct slice *ret_word)
{
	struct json value;

	*ret_word = slice_str(otherwise ? otherwise : "");
	if (!json_find(object, slice_str(member), &value))
		return otherwise || REFUSE(p, "%s: %s is missing", p->place, member);
	for (size_t i = 0; json_type(value) == JSON_STRING && words[i]; i++)
		if (json_string_is(value, slice_str(words[i]))) {
			*ret_word = slice_str(words[i]);
			return true;
		}
	return REFUSE(p, "%s: %s is not one of its words", p->place, member);
}

/* Members that say what was asked for are kept as they were written; those that an outcome has are not. */
static bool keep_detail(struct parser *p, struct json object, const char *const kept[], struct slice *ret_detail)
{
	struct json value;
	struct strbuf text;

	strbuf_init(&text, DETAIL_BYTES_MAX);
	strbuf_add_char(&text, '{');
	for (size_t i = 0; kept[i]; i++)
		if (json_find(object, slice_str(kept[i]), &value)) {
			strbuf_addf(&text, "%s\"%s\":", text.n == 1 ? "" : ",", kept[i]);
			strbuf_add_slice(&text, value.raw);
		}
	strbuf_add_char(&text, '}');
	if (text.failed) {
		strbuf_release(&text);
		return TOO_LARGE(p, "%s: what it asks for is at most %u bytes", p->place, DETAIL_BYTES_MAX);
	}
	*ret_detail = arena_keep(p->arena, &text);
	return true;
}

/* ---- kinds ---- */

static const char *const step_members[] = {"kind",      "name",   "n",     "state",        "effect",
					   "onUnknown", "output", "error", "retryAfterMs", NULL};
static const char *const sleep_members[] = {"kind", "name", "n", "until", "forMs", NULL};
static const char *const event_members[] = {"kind", "name", "n", "event", "timeoutMs", NULL};
static const char *const approval_members[] = {"kind", "name", "n", "timeoutMs", NULL};
static const char *const child_members[] = {"kind", "name", "n", "workflow", "input", NULL};
static const char *const value_members[] = {"kind", "name", "n", "output", NULL};
static const char *const attribute_members[] = {"kind", "name", "n", "value", NULL};
static const char *const about_members[] = {"kind", "name", "n", NULL};

static const char *const *const members_of[] = {
	[ENTRY_STEP] = step_members,           [ENTRY_SLEEP] = sleep_members,      [ENTRY_EVENT] = event_members,
	[ENTRY_APPROVAL] = approval_members,   [ENTRY_CHILD] = child_members,      [ENTRY_VALUE] = value_members,
	[ENTRY_ATTRIBUTE] = attribute_members, [ENTRY_COMPENSATE] = about_members, [ENTRY_UNDO] = step_members,
	[ENTRY_DROP] = about_members,
};

static bool refuse_member(struct parser *p, struct slice name, const char *const known[])
{
	LOCAL_STRBUF(words, 160);

	for (size_t i = 0; known[i]; i++)
		strbuf_addf(&words, "%s%s", i ? ", " : "", known[i]);
	return REFUSE(p, "%s: unknown member %s; known are %s", p->place, excerpt_of(name).text, words.p);
}

static bool members_are_known(struct parser *p, struct json object, const char *const known[])
{
	struct json_iter it = json_iter_of(object);
	struct json name, value;

	while (json_iter_member(&it, &name, &value)) {
		size_t i = 0;

		while (known[i] && !json_string_is(name, slice_str(known[i])))
			i++;
		if (!known[i])
			return refuse_member(p, name.raw, known);
	}
	return true;
}

static bool read_policy(struct parser *p, struct json object, struct function_change *c)
{
	static const char *const effects[] = {POLICY_CLAIMED, POLICY_KEYED, POLICY_IDEMPOTENT, NULL};
	static const char *const unknowns[] = {POLICY_HOLD, POLICY_RETRY, POLICY_PROBE, NULL};
	struct slice effect, on_unknown;
	LOCAL_STRBUF(text, 64);

	if (!read_word(p, object, "effect", effects, POLICY_CLAIMED, &effect) ||
	    !read_word(p, object, "onUnknown", unknowns, slice_is(effect, POLICY_CLAIMED) ? POLICY_HOLD : POLICY_RETRY,
		       &on_unknown))
		return false;
	strbuf_add_slice(&text, effect);
	strbuf_add_char(&text, ' ');
	strbuf_add_slice(&text, on_unknown);
	c->policy = arena_copy(p->arena, strbuf_slice(&text));
	return true;
}

static bool read_step(struct parser *p, struct json object, struct function_change *c)
{
	static const char *const states[] = {"begun", "done", "failed", "unknown", NULL};
	struct slice state;

	if (!read_word(p, object, "state", states, NULL, &state) || !read_policy(p, object, c) ||
	    !read_json(p, object, "output", RUN_OUTPUT_BYTES_MAX, &c->output) ||
	    !read_json(p, object, "error", ERROR_BYTES_MAX, &c->error) ||
	    !read_number(p, object, "retryAfterMs", 0, DURATION_MS_MAX, -1, &c->retry_after_ms))
		return false;
	c->state = slice_is(state, "begun")     ? ENTRY_BEGUN
		   : slice_is(state, "done")    ? ENTRY_DONE
		   : slice_is(state, "unknown") ? ENTRY_UNKNOWN
		   : c->retry_after_ms >= 0     ? ENTRY_RETRY
						: ENTRY_FAILED;
	if (c->output.p && c->state != ENTRY_DONE)
		return REFUSE(p, "%s: only a step that is done has an output", p->place);
	if (c->retry_after_ms >= 0 && c->state != ENTRY_RETRY)
		return REFUSE(p, "%s: only a step that has failed is tried again", p->place);
	if (c->error.p && (c->state == ENTRY_DONE || c->state == ENTRY_BEGUN))
		return REFUSE(p, "%s: only a step that has failed, or is unknown, has an error", p->place);
	c->detail = slice_str("{}");
	if (c->state == ENTRY_DONE && !c->output.p)
		c->output = slice_str("null");
	if ((c->state == ENTRY_FAILED || c->state == ENTRY_RETRY) && !c->error.p)
		c->error = slice_str("null");
	return true;
}

static bool read_sleep(struct parser *p, struct json object, struct function_change *c)
{
	static const char *const kept[] = {"until", "forMs", NULL};
	struct json value;
	struct wall_time until;
	struct hx_error err;
	bool has_until = json_find(object, slice_str("until"), &value), has_for;

	if (!read_number(p, object, "forMs", 1, DURATION_MS_MAX, 0, &c->for_ms))
		return false;
	has_for = c->for_ms != 0;
	if (has_until == has_for)
		return REFUSE(p, "%s: a sleep has either until or forMs", p->place);
	if (has_until) {
		struct slice text = {NULL, 0};

		if (json_type(value) == JSON_STRING)
			text = json_string_decode(value, p->arena);
		if (!text.p || wall_time_parse("until", text, &err, &until) || until.ms < 1)
			return REFUSE(p, "%s: until is a time of RFC 3339", p->place);
		c->until_ms = until.ms;
	}
	return keep_detail(p, object, kept, &c->detail);
}

static bool read_event(struct parser *p, struct json object, struct function_change *c)
{
	static const char *const kept[] = {"event", "timeoutMs", NULL};

	return keep_detail(p, object, kept, &c->detail) &&
	       read_text(p, object, "event", FUNCTION_NAME_BYTES_MAX, /* needed= */ true, &c->event) &&
	       read_number(p, object, "timeoutMs", 1, DURATION_MS_MAX, 0, &c->timeout_ms);
}

static bool read_approval(struct parser *p, struct json object, struct function_change *c)
{
	static const char *const kept[] = {"timeoutMs", NULL};

	return keep_detail(p, object, kept, &c->detail) &&
	       read_number(p, object, "timeoutMs", 1, DURATION_MS_MAX, 0, &c->timeout_ms);
}

static bool read_child(struct parser *p, struct json object, struct function_change *c)
{
	static const char *const kept[] = {"workflow", NULL};

	c->input = slice_str("{}");
	if (!keep_detail(p, object, kept, &c->detail) ||
	    !read_text(p, object, "workflow", FUNCTION_NAME_BYTES_MAX, /* needed= */ true, &c->workflow) ||
	    !read_json(p, object, "input", RUN_INPUT_BYTES_MAX, &c->input))
		return false;
	return json_type(json_trust(c->input)) == JSON_OBJECT ||
	       REFUSE(p, "%s: the input of a child is an object", p->place);
}

static bool read_value(struct parser *p, struct json object, struct function_change *c)
{
	static const char *const kept[] = {"value", NULL};
	bool attribute = c->kind == ENTRY_ATTRIBUTE;

	c->output = slice_str("null");
	c->detail = slice_str("{}");
	return attribute ? keep_detail(p, object, kept, &c->detail)
			 : read_json(p, object, "output", RUN_OUTPUT_BYTES_MAX, &c->output);
}

static bool read_kind(struct parser *p, struct json object, struct function_change *c)
{
	switch (c->kind) {
	case ENTRY_STEP:
	case ENTRY_UNDO:
		return read_step(p, object, c);
	case ENTRY_SLEEP:
		return read_sleep(p, object, c);
	case ENTRY_EVENT:
		return read_event(p, object, c);
	case ENTRY_APPROVAL:
		return read_approval(p, object, c);
	case ENTRY_CHILD:
		return read_child(p, object, c);
	case ENTRY_VALUE:
	case ENTRY_ATTRIBUTE:
		return read_value(p, object, c);
	case ENTRY_COMPENSATE:
	case ENTRY_DROP:
		c->detail = slice_str("{}");
		break;
	}
	return true;
}

static bool read_named(struct parser *p, struct json object, enum entry_kind *ret_kind, struct slice *ret_name,
		       int64_t *ret_n)
{
	struct slice kind;

	if (json_type(object) != JSON_OBJECT)
		return REFUSE(p, "%s is no object", p->place);
	if (!read_word(p, object, "kind", entry_kinds, NULL, &kind) ||
	    !read_text(p, object, "name", FUNCTION_NAME_BYTES_MAX, /* needed= */ true, ret_name) ||
	    !read_number(p, object, "n", 0, FUNCTION_N_MAX, 0, ret_n))
		return false;
	for (int i = 0; entry_kinds[i]; i++)
		if (slice_is(kind, entry_kinds[i]))
			*ret_kind = (enum entry_kind)i;
	return true;
}

static bool read_change(struct parser *p, struct json object, struct function_change *c)
{
	*c = (struct function_change){.retry_after_ms = -1};
	return read_named(p, object, &c->kind, &c->name, &c->n) && members_are_known(p, object, members_of[c->kind]) &&
	       read_kind(p, object, c);
}

static void set_place(struct parser *p, const char *of, size_t n)
{
	snprintf(p->place, sizeof p->place, "%s %zu", of, n);
}

/* An array of at most so many, with zeroed room for all of them in *ret_room. True without room: there is none. */
static bool read_array(struct parser *p, struct json object, const char *member, const char *whose, size_t max,
		       size_t bytes, struct json_iter *ret_it, void **ret_room)
{
	struct json array;

	*ret_room = NULL;
	if (!json_find(object, slice_str(member), &array))
		return true;
	if (json_type(array) != JSON_ARRAY)
		return INVALID(p, "%s is an array", member);
	if (json_count(array) > max)
		return TOO_LARGE(p, "%s has at most %zu entries", whose, max);
	*ret_room = arena_zalloc(p->arena, (json_count(array) + 1) * bytes);
	*ret_it = json_iter_of(array);
	return *ret_room != NULL;
}

static bool read_entries(struct parser *p, struct json body, struct function_request *rq)
{
	struct function_change *changes;
	struct json_iter it;
	struct json value, all;
	void *room;

	if (json_find(body, slice_str("entries"), &all) && json_type(all) == JSON_ARRAY &&
	    json_count(all) > FUNCTION_ENTRIES_MAX)
		return error_set(p->err, HX_JOURNAL_FULL, FUNCTION_ENTRIES_WORDS) == HX_OK;
	if (!read_array(p, body, "entries", "a call", FUNCTION_CHANGES_MAX, sizeof *changes, &it, &room))
		return false;
	rq->changes = changes = room;
	while (changes && json_iter_element(&it, &value)) {
		set_place(p, "entry", rq->changes_n);
		if (!read_change(p, value, &changes[rq->changes_n]))
			return false;
		rq->changes_n++;
	}
	return true;
}

/* ---- the end ---- */

static bool read_awaits(struct parser *p, struct json object, struct function_end *end)
{
	static const char *const known[] = {"kind", "name", "n", NULL};
	struct function_awaited *awaits;
	struct json_iter it;
	struct json value;
	void *room;

	if (!read_array(p, object, "awaits", "awaits", FUNCTION_ENTRIES_MAX, sizeof *awaits, &it, &room))
		return false;
	end->awaits = awaits = room;
	while (awaits && json_iter_element(&it, &value)) {
		struct function_awaited *a = &awaits[end->awaits_n];

		set_place(p, "awaits", end->awaits_n);
		if (!read_named(p, value, &a->kind, &a->name, &a->n) || !members_are_known(p, value, known))
			return false;
		end->awaits_n++;
	}
	return true;
}

static const struct {
	const char *word;
	enum function_end_state state;
	const char *known[5];
} end_states[] = {
	{"suspended", END_SUSPENDED, {"state", "awaits", "any", NULL}},
	{"completed", END_COMPLETED, {"state", "output", NULL}},
	{"failed", END_FAILED, {"state", "error", "step", NULL}},
	{"released", END_RELEASED, {"state", NULL}},
	{"undone", END_UNDONE, {"state", NULL}},
	{"diverged", END_DIVERGED, {"state", "expected", "found", NULL}},
};

/* The step that has failed: NAME, NAME#N, or {"name", "n"}. */
static bool read_failed_step(struct parser *p, struct json object, struct function_end *end)
{
	struct function_entry named = {0};
	struct json value;

	if (!json_find(object, slice_str("step"), &value) || json_type(value) == JSON_NULL)
		return true;
	if (json_type(value) != JSON_OBJECT)
		return read_text(p, object, "step", FUNCTION_NAME_BYTES_MAX + 16, /* needed= */ true, &end->step);
	if (!read_text(p, value, "name", FUNCTION_NAME_BYTES_MAX, /* needed= */ true, &named.name) ||
	    !read_number(p, value, "n", 0, FUNCTION_N_MAX, 0, &named.n))
		return false;
	LOCAL_STRBUF(text, FUNCTION_NAME_BYTES_MAX + 32);
	entry_write_name(&named, &text);
	end->step = arena_copy(p->arena, strbuf_slice(&text));
	return true;
}

static bool read_end_members(struct parser *p, struct json object, struct function_end *end)
{
	struct json any;

	if (json_find(object, slice_str("any"), &any)) {
		if (json_type(any) != JSON_BOOL)
			return INVALID(p, "any is true or false");
		end->any = json_bool(any);
	}
	end->output = end->error = end->expected = end->found = slice_str("null");
	return read_json(p, object, "output", RUN_OUTPUT_BYTES_MAX, &end->output) &&
	       read_json(p, object, "error", ERROR_BYTES_MAX, &end->error) &&
	       read_json(p, object, "expected", ERROR_BYTES_MAX, &end->expected) &&
	       read_json(p, object, "found", ERROR_BYTES_MAX, &end->found) && read_failed_step(p, object, end) &&
	       read_awaits(p, object, end);
}

static bool read_end(struct parser *p, struct json body, struct function_request *rq)
{
	struct json object, state;

	if (!json_find(body, slice_str("end"), &object))
		return true;
	if (json_type(object) != JSON_OBJECT || !json_find(object, slice_str("state"), &state) ||
	    json_type(state) != JSON_STRING)
		return INVALID(p, "end is an object with a state");
	for (size_t i = 0; i < sizeof end_states / sizeof *end_states; i++)
		if (json_string_is(state, slice_str(end_states[i].word))) {
			snprintf(p->place, sizeof p->place, "end");
			rq->end.state = end_states[i].state;
			return members_are_known(p, object, end_states[i].known) &&
			       read_end_members(p, object, &rq->end);
		}
	return INVALID(p, "a turn ends suspended, completed, failed, released, undone or diverged");
}

void function_parse(struct json body, struct arena *arena, struct function_request *rq)
{
	struct parser p = {.arena = arena, .err = &rq->unread};
	bool read = read_entries(&p, body, rq) && read_end(&p, body, rq);

	if (arena->failed)
		arena_error(arena, &rq->unread);
	if (!read || arena->failed) { /* nothing of it is asked of the store: a name may be one that no store takes */
		rq->changes_n = 0;
		rq->end = (struct function_end){.state = END_NONE};
	}
}
