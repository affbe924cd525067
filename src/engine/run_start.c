/* See run_start.h. */
#include "engine/run_start.h"

#include "base/json_canonical.h"
#include "flow/function.h"
#include "flow/singleton.h"

static enum hx_code check_input(const struct json *input, struct hx_error *err)
{
	if (input && json_type(*input) != JSON_OBJECT)
		return error_set(err, HX_VALIDATION_ERROR, "input must be an object");
	if (input && input->raw.n > RUN_INPUT_BYTES_MAX)
		return error_set(err, HX_TOO_LARGE, "input is at most 1 MiB");
	return HX_OK;
}

static bool begins(struct slice key, const char *beginning)
{
	return key.n >= strlen(beginning) && memcmp(key.p, beginning, strlen(beginning)) == 0;
}

bool run_key_is_reserved(struct slice key)
{
	static const char *const beginnings[] = {"schedule:", "hook:", "bulk:"};

	for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
		if (begins(key, beginnings[i]))
			return true;
	return begins(key, "run_") && memchr(key.p, '/', key.n);
}

static enum hx_code check_key(struct slice key, struct hx_error *err)
{
	if (!run_key_is_good(key))
		return error_set(err, HX_VALIDATION_ERROR, "a key is 1 to %d characters of UTF-8, without U+0000",
				 RUN_KEY_CHARACTERS_MAX);
	if (run_key_is_reserved(key))
		return error_set(err, HX_KEY_RESERVED, RUN_KEYS_RESERVED);
	return HX_OK;
}

enum hx_code run_start_init(struct run_start *start, struct engine *engine, const struct run_wanted *wanted,
			    struct hx_error *err)
{
	enum hx_code code;

	*start = (struct run_start){
		.engine = engine,
		.spec = {.workspace = wanted->workspace,
			 .requester = wanted->requester,
			 .traceparent = wanted->traceparent,
			 .key = wanted->key,
			 .machine = definitions_run(engine_parts(engine)->definitions, wanted->workflow),
			 .input = wanted->input ? wanted->input->raw : slice_str("{}"),
			 .input_given = wanted->input != NULL,
			 /* This node drives it at once, and the others leave it alone for as long as that takes to begin. */
			 .due_in_ms = runs_head_start_ms(engine_parts(engine)->runs, wanted->workspace)},
	};
	if (!start->spec.machine && wanted->arena &&
	    definitions_may_be_function(engine_parts(engine)->definitions, wanted->workflow)) {
		start->spec.machine = definitions_function(engine_parts(engine)->definitions, wanted->workflow);
		if (!start->spec.machine)
			start->spec.machine = run_function_new(wanted->workflow, wanted->arena);
		start->spec.due_in_ms = 0;
	}
	if (!start->spec.machine)
		return HX_NOT_FOUND;
	code = check_input(wanted->input, err);
	if (!code && wanted->key.p)
		code = check_key(wanted->key, err);
	if (!code)
		run_describe(&start->spec, wanted->arena);
	return code;
}

uint64_t run_start_lane(const struct run_start *start)
{
	return runs_hash(&start->spec);
}

/* ---- the unit that creates ---- */

void run_start_build(struct run_start *start, const struct single *single, struct unit *unit)
{
	start->spec.subject = single->fresh_id;
	run_create(unit, &single->stamp, &start->spec);
}

enum hx_code run_start_answered(const struct unit_result *result)
{
	if (result->verdict == UNIT_REFUSED)
		return HX_NOT_FOUND;
	return result->verdict == UNIT_WON ? HX_OK : HX_ALREADY_EXISTS;
}

void run_start_take_created(struct run_start *start, const struct single *single)
{
	start->spec.subject = single->fresh_id;
	run_row_created(&start->spec, &single->stamp, &start->row);
}

/* ---- the verb that does either ---- */

struct run_verb_request run_start_debounced(const struct run_start *start)
{
	return (struct run_verb_request){
		.kind = RUN_DEBOUNCE,
		.workspace = start->spec.workspace,
		.workflow = slice_str(start->spec.machine->definition->name),
		.key = start->spec.key,
		.start = &start->spec,
		.reason = slice_str("another start has replaced its input"),
		.requester = start->spec.requester,
		.policy = engine_parts(start->engine)->run_policy,
	};
}

void run_start_take_made(struct run_start *start, const struct run_verb *verb)
{
	start->spec.subject = verb->subject;
	run_row_created(&start->spec, &verb->stamp, &start->row);
}

void run_start_take_joined(struct run_start *start, const struct run_verb *verb)
{
	start->row = verb->row;
	start->row.input = start->spec.input;
	start->row.attributes = verb->attributes;
	start->row.version = verb->version;
	start->row.updated_at = verb->stamp.at.ms;
}

/* ---- the unit that finds ---- */

void run_start_build_locate(const struct run_start *start, struct unit *unit)
{
	singleton_find(unit, start->spec.workspace, start->spec.key, start->spec.singleton, /* ended= */ true);
}

enum hx_code run_start_located(struct run_start *start, const struct unit_result *result)
{
	enum hx_code code = run_found(result, slice_str(start->spec.machine->definition->name), &start->there);

	if (code == HX_NOT_FOUND) /* retention was faster */
		code = HX_CONCURRENCY_ERROR;
	start->detail = runs_detail(code);
	return code;
}

void run_start_build_find(const struct run_start *start, struct unit *unit)
{
	if (start->there)
		run_read_shown(unit, start->spec.workspace, start->there);
	else
		run_read_key_shown(unit, start->spec.workspace, start->spec.key);
}

/* By what they say, not by their bytes. What cannot be told apart for want of memory is told as the same. */
static bool inputs_differ(struct slice a, struct slice b, struct arena *arena)
{
	struct strbuf forms[2];
	struct slice texts[2] = {a, b};
	bool known = true, differ;

	for (int i = 0; i < 2; i++) {
		struct json value;

		strbuf_init(&forms[i], 2 * texts[i].n + 24);
		known = known && !json_check(texts[i], /* err= */ NULL, &value) &&
			!json_canonical(value, arena, /* err= */ NULL, &forms[i]);
	}
	differ = known && !slice_eq(strbuf_slice(&forms[0]), strbuf_slice(&forms[1]));
	strbuf_release(&forms[0]);
	strbuf_release(&forms[1]);
	return differ;
}

static enum hx_code run_start_take_found(struct run_start *start, const struct unit_result *result, struct arena *arena)
{
	const struct run_spec *spec = &start->spec;
	const struct db_rows *rows = &result->rows[0];
	enum hx_code code;

	start->differs = false;
	if (rows->n && !slice_is(db_cell(rows, 0, RUN_WORKFLOW)->s, spec->machine->definition->name))
		return HX_KEY_REUSED;
	code = runs_take(engine_parts(start->engine)->runs, result, arena, &start->row);
	if (!code && spec->input_given)
		start->differs = inputs_differ(spec->input, start->row.input, arena);
	return code;
}

enum hx_code run_start_found(struct run_start *start, const struct unit_result *result, struct arena *arena)
{
	enum hx_code code = run_start_take_found(start, result, arena);

	/* It was there a moment ago, and its row stays for ever: only a store that was put back in time says so. */
	if (code == HX_NOT_FOUND)
		code = HX_CONCURRENCY_ERROR;
	start->detail = runs_detail(code);
	return code;
}
