/* The texts of an entity step: bodies, payloads, keys, and the values of its sql. See step_parts.h. */
#include <stdio.h>

#include "base/id.h"
#include "base/json_merge.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "base/trace.h"
#include "base/utf8.h"
#include "flow/call_key.h"
#include "flow/step_parts.h"

#define BODY_BYTES_MAX (32u << 20)

static void add_member(struct strbuf *sb, const char *name, struct slice text)
{
	strbuf_addf(sb, ",\"%s\":", name);
	json_quote(text, sb);
}

static void add_raw(struct strbuf *sb, const char *name, struct slice json)
{
	strbuf_addf(sb, ",\"%s\":", name);
	strbuf_add_slice(sb, json);
}

/* What every call tells: "workflow":…,"id":…,"step":…,"requester":…,"input":…,"data":… */
static void add_common(const struct entity_step *s, struct slice data, struct strbuf *sb)
{
	strbuf_add_str(sb, "\"workflow\":");
	json_quote(slice_str(step_workflow(s)->name), sb);
	add_member(sb, "id", s->name);
	add_member(sb, "step", slice_str(s->step->step_key));
	add_member(sb, "requester", s->sender);
	add_raw(sb, "input", s->input);
	add_raw(sb, "data", data);
}

void step_make_call(struct entity_step *s)
{
	LOCAL_STRBUF(sb, BODY_BYTES_MAX);

	strbuf_add_char(&sb, '{');
	add_common(s, s->sent_data, &sb);
	strbuf_add_char(&sb, '}');
	s->call_key = s->key;
	s->body = arena_keep(s->arena, &sb);
}

void step_make_question(struct entity_step *s, const char *what, int64_t ask)
{
	step_make_call(s);
	s->call_key = call_key_to_ask(s->key, what, ask, s->arena);
	s->body = call_body_about(s->body, s->key, s->arena);
}

void step_make_effect_payload(struct entity_step *s)
{
	struct move move = step_finish_move(s);
	LOCAL_STRBUF(sb, BODY_BYTES_MAX);

	strbuf_add_char(&sb, '{');
	trace_add_members(s->rq->traceparent, &sb);
	add_common(s, s->data, &sb);
	add_member(&sb, "from", slice_str(s->step->status));
	add_member(&sb, "to", slice_str(move.to));
	strbuf_addf(&sb, ",\"version\":%lld", (long long)s->version + 1);
	add_raw(&sb, "output", s->output.n ? s->output : slice_str("null"));
	strbuf_add_char(&sb, '}');
	s->effect_payload = arena_keep(s->arena, &sb);
}

/* ---- its data, and what is told of a change ---- */

void step_save_output(struct entity_step *s)
{
	struct json_iter it = json_iter_of(json_trust(s->data));
	struct slice save_as = slice_str(s->view->save_as);
	struct json name, value;
	struct strbuf sb;

	strbuf_init(&sb, ENTITY_SAVED_MAX);
	strbuf_add_char(&sb, '{');
	while (json_iter_member(&it, &name, &value)) {
		if (json_string_is(name, save_as))
			continue;
		strbuf_add_slice(&sb, name.raw);
		strbuf_add_char(&sb, ':');
		strbuf_add_slice(&sb, value.raw);
		strbuf_add_char(&sb, ',');
	}
	json_quote(save_as, &sb);
	strbuf_add_char(&sb, ':');
	strbuf_add_slice(&sb, s->output.n ? s->output : slice_str("null"));
	strbuf_add_char(&sb, '}');
	s->data = arena_keep(s->arena, &sb);
}

enum hx_code step_merge_data(struct entity_step *s, const char **ret_words)
{
	struct hx_error err;
	enum hx_code code;

	LOCAL_STRBUF(sb, s->data.n > ENTITY_DATA_MAX ? s->data.n : ENTITY_DATA_MAX); /* it may always become less */
	code = json_merge_patch(s->data, s->rq->input.raw, s->arena, &err, &sb);
	if (!code && sb.failed)
		code = error_set(&err, HX_TOO_LARGE, "data is at most 1 MiB");
	if (code)
		*ret_words = arena_copy(s->arena, slice_str(err.detail)).p;
	else
		s->data = arena_keep(s->arena, &sb);
	return code;
}

void step_describe(struct entity_step *s)
{
	const struct entity_machine *machine = s->rq->ref.machine;
	struct slice were = s->attributes;

	if (machine->table)
		return;
	s->attributes = entity_describe(machine, s->data, s->arena);
	s->redescribed |= !slice_eq(s->attributes, were); /* mutant: entity-attributes-not-followed */
}

void step_make_reason(struct entity_step *s, enum hx_code code)
{
	char words[NOTE_REASON_MAX + 20];

	snprintf(words, sizeof words, "%s: %.*s", code == HX_INVALID ? "rejected" : "failed", SLICE_ARGS(s->output));
	s->reason = arena_copy(s->arena, slice_of(words, utf8_cut(slice_str(words))));
}

void step_make_word(struct entity_step *s, bool done)
{
	struct slice reason = s->rq->reason;
	char words[NOTE_REASON_MAX + 40];

	snprintf(words, sizeof words, "resolved: %s%s%.*s", done ? "done" : "not done", reason.n ? ": " : "",
		 SLICE_ARGS(reason));
	s->reason = arena_copy(s->arena, slice_of(words, utf8_cut(slice_str(words))));
}

void step_make_effect_keys(struct entity_step *s)
{
	for (size_t i = 0; i < s->view->after_effects_n; i++) {
		char key[ID_TEXT_BYTES + 2 * WORKFLOW_NAME_MAX + 40];

		snprintf(key, sizeof key, "%.*s/after/%s", SLICE_ARGS(s->key), s->view->after_effects[i]->name);
		s->effect_keys[i] = arena_copy(s->arena, slice_str(key));
	}
}

struct slice entity_call_key(int64_t subject, int64_t effort, struct slice step, struct arena *arena)
{
	char key[ID_TEXT_BYTES + WORKFLOW_NAME_MAX + 32];

	snprintf(key, sizeof key, "%s-%lld-%.*s", id_text("ent", subject).text, (long long)effort, SLICE_ARGS(step));
	return arena_copy(arena, slice_str(key));
}

void step_make_key(struct entity_step *s)
{
	s->key = entity_call_key(s->subject, s->effort, slice_str(s->step->step_key), s->arena);
}

void step_look_up_sql_values(struct entity_step *s, const struct answer *answer)
{
	struct sql_params params = {
		.id = s->name,
		.workflow = slice_str(step_workflow(s)->name),
		.requester = s->requester,
		.key = s->key,
		.version = s->version,
		.now = answer->now,
		.input = json_trust(s->input),
	};

	s->sql_values = sql_action_values(s->view->action, &params, s->arena);
}
