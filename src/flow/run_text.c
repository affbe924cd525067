/* The texts of a run's calls. See run_parts.h. */
#include "base/id.h"
#include "base/json_string.h"
#include "base/utf8.h"
#include "flow/run_parts.h"

#define TEXT_BYTES_MAX (48u << 20)
#define MESSAGE_BYTES_MAX 500

struct slice run_make_key(const struct run_drive *d, const struct run_step *step, int64_t redo, bool undo)
{
	char id[ID_TEXT_BYTES];
	struct strbuf key;

	id_format("run", d->row.subject, id);
	strbuf_init(&key, TEXT_BYTES_MAX);
	strbuf_addf(&key, "%s/%s/", id, step->name);
	if (undo)
		strbuf_add_str(&key, "undo");
	else
		strbuf_addf(&key, "%lld", (long long)redo);
	return arena_keep(d->arena, &key);
}

enum hx_code run_evaluate(const struct run_drive *d, const struct run_done *done, const struct expression *expression,
			  struct slice *ret_text, struct hx_error *err)
{
	struct strbuf state, steps, value;
	struct expression_env env = {.input = json_trust(d->row.input)};
	enum hx_code code;

	strbuf_init(&state, TEXT_BYTES_MAX);
	strbuf_init(&steps, TEXT_BYTES_MAX);
	strbuf_init(&value, RUN_OUTPUT_BYTES_MAX);
	run_write_state(done, &state);
	run_write_steps(done, &steps);
	env.state = json_trust(strbuf_slice(&state));
	env.steps = json_trust(strbuf_slice(&steps));
	code = state.failed || steps.failed ? error_set(err, HX_TOO_LARGE, "the state of the run is too large")
					    : expression_eval(expression, &env, d->arena, err, &value);
	if (!code)
		*ret_text = arena_copy(d->arena, strbuf_slice(&value));
	strbuf_release(&state);
	strbuf_release(&steps);
	strbuf_release(&value);
	return code;
}

enum hx_code run_make_input(const struct run_drive *d, const struct run_done *done, const struct run_step *step,
			    struct slice *ret_input, struct hx_error *err)
{
	*ret_input = d->row.input;
	return step->input ? run_evaluate(d, done, step->input, ret_input, err) : HX_OK;
}

enum hx_code run_make_body(const struct run_drive *d, const struct run_done *done, const struct run_step *step,
			   const struct run_done *undone, struct slice *ret_body, struct hx_error *err)
{
	struct slice input;
	char id[ID_TEXT_BYTES];
	struct strbuf body;
	enum hx_code code = run_make_input(d, undone ? undone->before : done, step, &input, err);

	if (code)
		return code;
	id_format("run", d->row.subject, id);
	strbuf_init(&body, TEXT_BYTES_MAX);
	strbuf_add_str(&body, "{\"workflow\":");
	json_quote(slice_str(drive_definition(d)->name), &body);
	strbuf_addf(&body, ",\"id\":\"%s\",\"step\":", id);
	json_quote(slice_str(step->name), &body);
	strbuf_add_str(&body, ",\"requester\":");
	json_quote(d->row.requester, &body);
	strbuf_add_str(&body, ",\"input\":");
	strbuf_add_slice(&body, input);
	strbuf_add_str(&body, ",\"data\":");
	run_write_state(done, &body);
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
