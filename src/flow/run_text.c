/* The texts of a run's calls. See run_parts.h. */
#include "base/id.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "base/utf8.h"
#include "flow/run_parts.h"

#define TEXT_BYTES_MAX (48u << 20)
#define MESSAGE_BYTES_MAX 500

/* A step that was renamed keeps the name that its calls have had. */
static struct slice name_in_keys(const struct run_drive *d, const struct run_step *step)
{
	struct slice in_keys = slice_str(step->name);
	struct json name;

	if (d->row.renamed.p && json_find(json_trust(d->row.renamed), in_keys, &name))
		in_keys = slice_of(name.raw.p + 1, name.raw.n - 2); /* mutant: renamed-in-keys -> ; */
	return in_keys;
}

struct slice run_make_key(const struct run_drive *d, const struct run_step *step, int64_t redo,
			  const struct run_done *undone)
{
	LOCAL_STRBUF(key, TEXT_BYTES_MAX);

	strbuf_add_str(&key, id_text("run", drive_acts_for(d, undone)).text);
	strbuf_add_char(&key, '/');
	strbuf_add_slice(&key, name_in_keys(d, step));
	strbuf_add_char(&key, '/');
	if (undone)
		strbuf_add_str(&key, "undo");
	else
		strbuf_add_int(&key, redo);
	return arena_keep(d->arena, &key);
}

/* ---- what it sees ---- */

/* A member of what a part was given of the run around it. */
static struct json around(const struct run_drive *d, const char *name)
{
	struct json value = json_trust(slice_str("{}"));

	(void)json_find(json_trust(d->row.input), slice_str(name), &value);
	return value;
}

struct slice run_input(const struct run_drive *d)
{
	return drive_definition(d)->sees_around ? around(d, "input").raw : d->row.input;
}

/* One object of several: of members with the same name the last one counts. */
static void write_merged(const struct json *objects, size_t n, struct strbuf *out)
{
	struct json name, value, other;

	strbuf_add_char(out, '{');
	for (size_t i = 0; i < n; i++) {
		struct json_iter it = json_iter_of(objects[i]);

		while (json_iter_member(&it, &name, &value)) {
			struct slice word = slice_of(name.raw.p + 1, name.raw.n - 2);
			bool hidden = false;

			for (size_t k = i + 1; k < n; k++)
				hidden |= json_find(objects[k], word, &other);
			if (hidden)
				continue;
			strbuf_add_str(out, out->p[out->n - 1] == '{' ? "" : ",");
			strbuf_add_slice(out, name.raw);
			strbuf_add_char(out, ':');
			strbuf_add_slice(out, value.raw);
		}
	}
	strbuf_add_char(out, '}');
}

/* With what was saved over it (.p NULL: nothing), and where it is a part, under it what is there around it. */
static void write_seen(const struct run_drive *d, const struct run_done *done, struct slice over, bool whole,
		       struct strbuf *out)
{
	bool part = drive_definition(d)->sees_around;
	struct json objects[4];
	size_t n = 0;

	if (!part && !over.p) {
		run_write_state(done, out);
		return;
	}
	LOCAL_STRBUF(own, TEXT_BYTES_MAX);
	run_write_state(done, &own);
	if (part && whole)
		objects[n++] = around(d, "state");
	if (part)
		objects[n++] = around(d, "saved");
	objects[n++] = json_trust(strbuf_slice(&own));
	if (over.p)
		objects[n++] = json_trust(over);
	write_merged(objects, n, out);
	out->failed |= own.failed;
}

void run_write_seen_state(const struct run_drive *d, const struct run_done *done, struct strbuf *out)
{
	write_seen(d, done, slice_of(NULL, 0), /* whole= */ true, out);
}

void run_write_part_output(const struct run_drive *d, struct strbuf *out)
{
	write_seen(d, d->done, slice_of(NULL, 0), /* whole= */ false, out);
}

static enum hx_code evaluate(const struct run_drive *d, const struct run_done *done, struct slice over,
			     struct expression_env env, const struct expression *expression, struct slice *ret_text,
			     struct hx_error *err)
{
	enum hx_code code;
	LOCAL_STRBUF(state, TEXT_BYTES_MAX);
	LOCAL_STRBUF(steps, TEXT_BYTES_MAX);
	LOCAL_STRBUF(value, RUN_OUTPUT_BYTES_MAX);

	write_seen(d, done, over, /* whole= */ true, &state);
	run_write_steps(done, &steps);
	if (!env.input.raw.p)
		env.input = json_trust(run_input(d));
	env.state = json_trust(strbuf_slice(&state));
	env.steps = json_trust(strbuf_slice(&steps));
	code = state.failed || steps.failed ? error_set(err, HX_TOO_LARGE, "the state of the run is too large")
					    : expression_eval(expression, &env, d->arena, err, &value);
	if (!code)
		*ret_text = arena_copy(d->arena, strbuf_slice(&value));
	return code;
}

enum hx_code run_evaluate(const struct run_drive *d, const struct run_done *done, const struct expression *expression,
			  struct slice *ret_text, struct hx_error *err)
{
	return evaluate(d, done, slice_of(NULL, 0), (struct expression_env){0}, expression, ret_text, err);
}

enum hx_code run_evaluate_over(const struct run_drive *d, const struct run_done *done, struct slice saved,
			       const struct expression *expression, struct slice *ret_text, struct hx_error *err)
{
	return evaluate(d, done, saved, (struct expression_env){0}, expression, ret_text, err);
}

enum hx_code run_evaluate_item(const struct run_drive *d, const struct run_done *done,
			       const struct expression *expression, struct slice item, struct slice index,
			       struct slice *ret_text, struct hx_error *err)
{
	struct expression_env env = {.item = json_trust(item), .index = json_trust(index)};

	return evaluate(d, done, slice_of(NULL, 0), env, expression, ret_text, err);
}

void run_plan_attributes(struct run_drive *d)
{
	const struct attributes *attributes = &drive_definition(d)->attributes;
	struct run_move *move = &d->move;

	if (move->rows_n == 0 || !attributes->follow || drive_definition(d)->scope)
		return;
	LOCAL_STRBUF(state, TEXT_BYTES_MAX);
	LOCAL_STRBUF(steps, TEXT_BYTES_MAX);
	run_write_seen_state(d, d->done, &state);
	run_write_steps(d->done, &steps);
	struct expression_env env = {.input = json_trust(run_input(d)),
				     .state = json_trust(strbuf_slice(&state)),
				     .steps = json_trust(strbuf_slice(&steps))};
	if (state.failed || steps.failed)
		return;
	move->attributes = attributes_of(attributes, &env, d->arena);
	if (slice_eq(move->attributes, d->row.attributes))
		move->attributes = slice_of(NULL, 0);
	else if (!move->attributes.p)
		move->attributes = slice_str("");
}

enum hx_code run_make_input(const struct run_drive *d, const struct run_done *done, const struct run_step *step,
			    const struct run_done *undone, struct slice *ret_input, struct hx_error *err)
{
	*ret_input = run_input(d);
	if (undone && undone->made_with.p)
		*ret_input = undone->made_with; /* mutant: undone-with-another-input -> ; */
	if (!step->input)
		return HX_OK;
	return evaluate(d, undone ? undone->before : done, slice_of(NULL, 0),
			(struct expression_env){.input = json_trust(*ret_input)}, step->input, ret_input, err);
}

enum hx_code run_make_body(const struct run_drive *d, const struct run_done *done, const struct run_step *step,
			   const struct run_done *undone, struct slice *ret_body, struct hx_error *err)
{
	struct slice input;
	enum hx_code code = run_make_input(d, done, step, undone, &input, err);

	if (code)
		return code;
	LOCAL_STRBUF(body, TEXT_BYTES_MAX);
	strbuf_add_str(&body, "{\"workflow\":");
	json_quote(slice_str(drive_definition(d)->name), &body);
	json_more_id(&body, "id", "run", drive_acts_for(d, undone));
	strbuf_add_str(&body, ",\"step\":");
	json_quote(slice_str(step->name), &body);
	strbuf_add_str(&body, ",\"requester\":");
	json_quote(d->row.requester, &body);
	strbuf_add_str(&body, ",\"input\":");
	strbuf_add_slice(&body, input);
	strbuf_add_str(&body, ",\"data\":");
	run_write_seen_state(d, done, &body);
	if (undone) {
		strbuf_add_str(&body, ",\"output\":");
		strbuf_add_slice(&body, undone->output);
	}
	strbuf_add_char(&body, '}');
	*ret_body = arena_keep(d->arena, &body);
	return HX_OK;
}

struct slice run_make_error(const struct run_drive *d, const char *code, struct slice message,
			    const struct run_step *step)
{
	struct strbuf error;

	if (message.n > MESSAGE_BYTES_MAX)
		message.n = utf8_valid_bytes(slice_of(message.p, MESSAGE_BYTES_MAX));
	strbuf_init(&error, TEXT_BYTES_MAX);
	strbuf_addf(&error, "{\"code\":\"%s\",\"message\":", code);
	json_quote(message, &error);
	strbuf_add_str(&error, ",\"step\":");
	if (step)
		json_quote(slice_str(step->name), &error);
	else
		strbuf_add_str(&error, "null");
	strbuf_add_char(&error, '}');
	return arena_keep(d->arena, &error);
}
