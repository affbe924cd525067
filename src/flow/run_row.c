/* A run as it was read, and what its steps say. See run.h. */
#include <string.h>

#include "base/json_string.h"
#include "base/json_walk.h"
#include "base/utf8.h"
#include "flow/job.h"
#include "flow/run.h"
#include "flow/slot.h"

enum {
	STEP_POSITION,
	STEP_STATUS,
	STEP_ATTEMPT,
	STEP_OUTPUT,
	STEP_STARTED_AT,
	STEP_COMPLETED_AT,
	STEP_UNDONE_AT,
	STEP_MADE_BY,
	STEP_MADE_WITH,
	STEP_OF_VERSION
};
enum { OUT_JOB_STATUS, OUT_JOB_VERSION, OUT_JOB_DOUBT, OUT_JOB_ATTEMPT, OUT_JOB_OUTPUT, OUT_JOB_ERROR };

bool run_key_is_good(struct slice key)
{
	size_t characters = 0;

	for (size_t i = 0; i < key.n; i++)
		characters += !utf8_continues((unsigned char)key.p[i]);
	return characters >= 1 && characters <= RUN_KEY_CHARACTERS_MAX && utf8_valid_bytes(key) == key.n &&
	       !memchr(key.p, '\0', key.n);
}

/* Its member "step" tells which step it is of. */
bool run_error_is_of(struct slice error, struct slice step)
{
	struct json member;

	return error.p && step.p && json_find(json_trust(error), slice_str("step"), &member) &&
	       json_type(member) == JSON_STRING && json_string_is(member, step);
}

struct slice run_row_error(const struct run_row *row)
{
	const struct run_definition *definition = row->definition;
	bool ended_badly = strcmp(row->status, RUN_FAILED) == 0 || strcmp(row->status, RUN_CANCELLED) == 0 ||
			   strcmp(row->status, RUN_CANCELLING) == 0;
	const char *step = row->position < definition->steps_n ? definition->steps[row->position].name : NULL;

	if (!row->error.p || definition->is_function)
		return row->error.p ? row->error : row->stood.error;
	return ended_badly || run_error_is_of(row->error, slice_str(step)) ? row->error : slice_of(NULL, 0);
}

size_t run_next_position(const struct run_definition *definition, size_t position, struct slice output)
{
	const struct run_step *step = &definition->steps[position];

	if (step->type != RUN_CONDITION)
		return position + 1;
	return slice_is(output, "true") ? step->then_position : step->else_position;
}

struct run_awaited run_step_awaits(const struct run_step *step)
{
	switch (step->type) {
	case RUN_EXTERNAL_EVENT:
		return (struct run_awaited){RUN_AWAITS_EVENT, step->event};
	case RUN_APPROVAL:
		return (struct run_awaited){RUN_AWAITS_APPROVAL, step->name};
	case RUN_TASK:
	case RUN_WAIT:
	case RUN_CONDITION:
	case RUN_CHILD:
	case RUN_MAP:
	case RUN_PARALLEL:
	case RUN_REPEAT:
		break;
	}
	return (struct run_awaited){NULL, NULL};
}

/* ---- reading ---- */

void run_above_take(const struct db_value *cell, int64_t above[RUN_ABOVE_MAX])
{
	struct slice left = cell->type == DB_TEXT ? cell->s : slice_of("", 0);

	memset(above, 0, RUN_ABOVE_MAX * sizeof *above);
	for (size_t i = 0, n = 0; i < left.n; i++)
		if (left.p[i] == ' ')
			ASSERT(++n <= RUN_ABOVE_MAX);
		else
			above[n - 1] = above[n - 1] * 10 + (left.p[i] - '0');
}

static void take_run(const struct db_value *cells, struct arena *arena, struct run_row *row)
{
	RUN_FIELDS(COLUMN_TAKE);
	row->now = cells[RUN_NOW].i;
	row->stopped = cells[RUN_STOPPED].i != 0;
	row->line = 0;
	if (cells[RUN_LINE_SLOT].type == DB_TEXT &&
	    slot_of_action_read(cells[RUN_LINE_SLOT].s, &row->line, &row->line_action))
		row->line_action = arena_copy(arena, row->line_action);
	run_above_take(&cells[RUN_ABOVE], row->above);
	row->status = run_status_of(cells[RUN_STATUS].s);
	row->owned = cells[RUN_OWNER].type != DB_NULL;
	row->stood.set = cells[RUN_STOOD_ATTEMPT].type != DB_NULL;
	subject_assert_valid(row->version, row->fence, &cells[RUN_OWNER], &cells[RUN_UNTIL]);
	ASSERT(row->status);
}

/* Steps come by position, each after the one before: the rows are the way that the run has taken. False: of another version. */
static bool take_steps(const struct db_rows *rows, struct arena *arena, struct run_row *row)
{
	const struct run_definition *definition = row->definition;
	int64_t version = rows->n ? db_cell(rows, 0, STEP_OF_VERSION)->i : row->machine->version;

	if (version != row->machine->version) /* mutant: torn-versions -> if (version < 0) */
		return false;
	for (size_t i = 0; i < rows->n; i++) {
		struct run_done *done = arena_zalloc(arena, sizeof *done);
		size_t position = (size_t)db_cell(rows, i, STEP_POSITION)->i;

		if (!done)
			break;
		ASSERT(position < definition->steps_n);
		*done = (struct run_done){
			.before = row->done,
			.step = &definition->steps[position],
			.status = slice_is(db_cell(rows, i, STEP_STATUS)->s, RUN_STEP_COMPLETED) ? RUN_STEP_COMPLETED
												 : RUN_STEP_SKIPPED,
			.attempt = db_cell(rows, i, STEP_ATTEMPT)->i,
			.output = cell_text(db_cell(rows, i, STEP_OUTPUT), arena),
			.started_at = db_cell(rows, i, STEP_STARTED_AT)->i,
			.completed_at = db_cell(rows, i, STEP_COMPLETED_AT)->i,
			.undone_at = cell_int(db_cell(rows, i, STEP_UNDONE_AT)),
			.made_by = cell_int(db_cell(rows, i, STEP_MADE_BY)),
			.made_with = cell_text(db_cell(rows, i, STEP_MADE_WITH), arena),
		};
		done->outputs_bytes = done->output.n + (row->done ? row->done->outputs_bytes : 0);
		row->done = done;
		row->position = run_next_position(definition, position, done->output);
	}
	return true;
}

/* What the run's row says of the step where it is counts for nothing. */
static void drop_step(struct run_row *row)
{
	row->attempt = row->redo = row->step_started_at = row->wait_until = row->unsettled_since = row->job = 0;
	row->step_status = row->awaits = slice_of(NULL, 0);
}

/*
 * It does so when the run has come further since that was written. Then a run that is owned has begun that step, for the first
 * time, together with the end of the one before.
 */
static void check_step(const struct db_value *at_step, struct run_row *row)
{
	if (at_step->i == (int64_t)row->position || row->undo >= 0)
		return;
	drop_step(row);
	row->attempt = row->owned;
	row->step_started_at = row->done && row->owned ? row->done->completed_at : 0;
}

static void take_job(const struct db_rows *rows, struct arena *arena, struct run_row *row)
{
	if (!row->job)
		return;
	if (rows->n == 0) { /* retention has taken it: it cannot tell any more */
		row->job_status = JOB_PARKED;
		row->job_doubt = true;
		row->job_attempt = row->attempt;
		return;
	}
	row->job_status = job_status_of(db_cell(rows, 0, OUT_JOB_STATUS)->s);
	row->job_version = db_cell(rows, 0, OUT_JOB_VERSION)->i;
	row->job_doubt = db_cell(rows, 0, OUT_JOB_DOUBT)->i != 0;
	row->job_attempt = db_cell(rows, 0, OUT_JOB_ATTEMPT)->i;
	row->job_output = cell_text(db_cell(rows, 0, OUT_JOB_OUTPUT), arena);
	row->job_error = cell_text(db_cell(rows, 0, OUT_JOB_ERROR), arena);
}

/* The definition in force, for what is not kept with a run; a function may have none. */
static const struct run_machine *machine_of_function(struct slice name, run_machine_fn machine_of, const void *context,
						     struct arena *arena)
{
	const struct run_machine *machine = machine_of(context, name, RUN_NEWEST);

	return machine && machine->definition->is_function ? machine : run_function_new(name, arena);
}

enum hx_code run_row_take(const struct unit_result *result, run_machine_fn machine_of, const void *context,
			  struct arena *arena, struct run_row *ret_row)
{
	const struct db_rows *rows = &result->rows[0];

	*ret_row = (struct run_row){.undo = -1};
	if (rows->n == 0)
		return HX_NOT_FOUND;
	take_run(rows->cells, arena, ret_row);
	ret_row->machine = rows->cells[RUN_DEFINITION_VERSION].i == RUN_FUNCTION
				   ? machine_of_function(rows->cells[RUN_WORKFLOW].s, machine_of, context, arena)
				   : machine_of(context, rows->cells[RUN_WORKFLOW].s,
						rows->cells[RUN_DEFINITION_VERSION].i);
	if (ret_row->machine)
		ret_row->definition = run_definition_part(ret_row->machine->definition, ret_row->scope);
	if (!ret_row->definition) {
		drop_step(ret_row);
		ret_row->stood = (struct run_stood){0};
		return HX_CONFIG_ERROR;
	}
	if (!take_steps(&result->rows[1], arena, ret_row)) {
		drop_step(ret_row);
		return HX_BUSY;
	}
	check_step(&rows->cells[RUN_AT_STEP], ret_row);
	take_job(&result->rows[2], arena, ret_row);
	return arena->failed ? HX_TOO_LARGE : HX_OK;
}

void run_row_created(const struct run_spec *spec, const struct stamp *stamp, struct run_row *ret_row)
{
	*ret_row = (struct run_row){
		.subject = spec->subject,
		.version = 1,
		.undo = -1,
		.status = RUN_PENDING,
		.machine = spec->machine,
		.definition = spec->machine->definition,
		.workspace = spec->workspace,
		.requester = spec->requester,
		.key = spec->key,
		.trace = spec->traceparent.n ? spec->traceparent : slice_of(NULL, 0),
		.input = spec->input,
		.attributes = spec->attributes,
		.due_at = stamp->at.ms + spec->due_in_ms,
		.created_at = stamp->at.ms,
		.updated_at = stamp->at.ms,
		.now = stamp->at.ms,
		.times_out_at = run_times_out_at(spec->machine->definition, stamp->at.ms),
	};
}

/* ---- what expressions see ---- */

/* Calls fn for each that is done, the first first. The list is as deep as the definition has steps. */
static void each_done(const struct run_done *done, const struct run_done *last,
		      void (*fn)(const struct run_done *, const struct run_done *last, struct strbuf *),
		      struct strbuf *out)
{
	const struct run_done *order[WORKFLOW_STEPS_MAX];
	size_t n = 0;

	for (; done; done = done->before)
		order[n++] = done;
	while (n)
		fn(order[--n], last, out);
}

/* Does it save under this name, by itself or, as a repeat, in one of its bodies? */
static bool saves(const struct run_done *done, struct slice name)
{
	struct json value;

	if (done->step->type == RUN_REPEAT)
		return json_find(json_trust(done->output), name, &value);
	return done->step->save_as && slice_is(name, done->step->save_as);
}

static void write_value(const struct run_done *done, const struct run_done *last, struct slice name, struct slice value,
			struct strbuf *out)
{
	for (; last != done; last = last->before)
		if (saves(last, name))
			return;
	strbuf_add_str(out, out->p[out->n - 1] == '{' ? "" : ",");
	json_quote(name, out);
	strbuf_add_char(out, ':');
	strbuf_add_slice(out, value);
}

/* The names are names of definitions, which have no escapes. */
static void write_saved(const struct run_done *done, const struct run_done *last, struct strbuf *out)
{
	struct json_iter it;
	struct json name, value;

	if (done->step->save_as)
		write_value(done, last, slice_str(done->step->save_as), done->output, out);
	if (done->step->type != RUN_REPEAT || json_type(json_trust(done->output)) != JSON_OBJECT)
		return;
	it = json_iter_of(json_trust(done->output));
	while (json_iter_member(&it, &name, &value))
		write_value(done, last, slice_of(name.raw.p + 1, name.raw.n - 2), value.raw, out);
}

static void write_step(const struct run_done *done, const struct run_done *last UNUSED, struct strbuf *out)
{
	if (out->p[out->n - 1] != '{')
		strbuf_add_char(out, ',');
	json_quote(slice_str(done->step->name), out);
	strbuf_add_str(out, ":{\"status\":\"");
	strbuf_add_str(out, done->status);
	strbuf_add_str(out, "\",\"output\":");
	strbuf_add_slice(out, done->output);
	strbuf_add_char(out, '}');
}

void run_write_state(const struct run_done *done, struct strbuf *out)
{
	strbuf_add_char(out, '{');
	each_done(done, done, write_saved, out);
	strbuf_add_char(out, '}');
}

void run_write_steps(const struct run_done *done, struct strbuf *out)
{
	strbuf_add_char(out, '{');
	each_done(done, done, write_step, out);
	strbuf_add_char(out, '}');
}
