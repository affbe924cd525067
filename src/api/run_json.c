/* See run_json.h. */
#include "api/run_json.h"

#include "api/row_json.h"
#include "base/json_write.h"
#include "flow/function.h"

#define ENTRIES_BYTES_MAX (96u << 20)

/* What a run shows of itself, whether it was read whole or is one of a list. */
struct run_shown {
	const struct run_row *row; /* NULL: of a list, which shows neither owner nor state nor steps */
	int64_t subject, version, definition_version;
	struct slice status, workflow, step, input, output, error, key;
	int64_t created_at, started_at, completed_at, updated_at;
	int64_t parent, parent_n; /* 0: it has none */
	struct slice parent_step;
	int64_t restart_of, restarted_by; /* 0: none */
	int64_t job;                      /* that carries its step out; 0: none, or it is of a list */
	struct slice attributes;
};

/* The node that carries its step out, or the worker that has the turn of a function. */
static void add_owner(struct strbuf *text, const void *shown)
{
	const struct run_row *row = ((const struct run_shown *)shown)->row;

	if (row)
		json_more_text(text, "owner", row->owned ? row->owner : slice_of(NULL, 0));
}

static void add_state(struct strbuf *text, const void *shown)
{
	const struct run_row *row = ((const struct run_shown *)shown)->row;

	if (!row)
		return;
	json_more(text, "state");
	run_write_state(row->done, text);
}

static void add_parent(struct strbuf *text, const void *context)
{
	const struct run_shown *shown = context;

	if (!shown->parent)
		return;
	json_more(text, "parent");
	strbuf_add_char(text, '{');
	json_more_id(text, "run", "run", shown->parent);
	json_more_text(text, "step", shown->parent_step);
	json_more_int(text, "n", shown->parent_n);
	strbuf_add_char(text, '}');
}

#define AT(field) .at = offsetof(struct run_shown, field)

static const struct row_member members[] = {
	{"id", ROW_ID, AT(subject), .prefix = "run"},
	ROW_SAME(TEXT, status),
	ROW_SAME(INT, version),
	{"definitionId", ROW_TEXT, AT(workflow)},
	{"definitionVersion", ROW_INT, AT(definition_version)},
	{"currentStep", ROW_TEXT, AT(step)},
	{"owner", ROW_OWN, .add = add_owner},
	{"job", ROW_ID, AT(job), .prefix = "job"},
	ROW_SAME(JSON, input),
	{"state", ROW_OWN, .add = add_state},
	ROW_SAME(JSON, output),
	ROW_SAME(JSON, error),
	{"idempotencyKey", ROW_TEXT, AT(key)},
	ROW_SAME(ATTRIBUTES, attributes),
	{"parent", ROW_OWN, .add = add_parent},
	{"restartOf", ROW_ID, AT(restart_of), .prefix = "run"},
	{"restartedBy", ROW_ID, AT(restarted_by), .prefix = "run"},
	ROW_LIFE,
	{"updatedAt", ROW_TIME, AT(updated_at)},
	{.name = NULL},
};

static struct slice step_name(const struct run_definition *definition, size_t position)
{
	return position < definition->steps_n ? slice_str(definition->steps[position].name) : slice_of(NULL, 0);
}

/* ---- where it stands ---- */

static bool is_waiting(const struct run_row *row)
{
	return row->awaits.p ? !slice_is(row->awaits, RUN_AWAITS_JOB) : row->wait_until != 0;
}

const char *run_json_step_status(const struct run_row *row)
{
	bool under_way = row->owned || slice_is(row->awaits, RUN_AWAITS_JOB);
	struct slice left = row->stood.set ? row->stood.status : row->step_status;

	if (left.p)
		return slice_is(left, RUN_STEP_UNKNOWN) ? RUN_STEP_UNKNOWN : RUN_STEP_FAILED;
	if (row->stood.set)
		return RUN_PENDING;
	if (strcmp(row->status, RUN_RUNNING) == 0)
		return RUN_RUNNING;
	if (strcmp(row->status, RUN_WAITING) == 0)
		return RUN_WAITING;
	if (strcmp(row->status, RUN_FAILED) == 0)
		return RUN_STEP_FAILED;
	if (strcmp(row->status, RUN_PAUSED) == 0 || strcmp(row->status, RUN_CANCELLING) == 0)
		return under_way ? RUN_RUNNING : is_waiting(row) ? RUN_WAITING : RUN_PENDING;
	return RUN_PENDING;
}

/* ---- steps ---- */

static void open_step(struct strbuf *text, const struct run_step *step, const char *status, int64_t attempt)
{
	strbuf_add_str(text, step->position ? ",{" : "{");
	json_more_word(text, "name", step->name);
	json_more_word(text, "status", status);
	json_more_int(text, "attempt", attempt);
}

/* If it is one of this step. */
static void add_error(struct strbuf *text, const struct run_step *step, struct slice error)
{
	json_more_json(text, "error", run_error_is_of(error, slice_str(step->name)) ? error : slice_of(NULL, 0));
}

/* Its own error is over; that of its compensation is told where it is tried. */
static void add_done(struct strbuf *text, const struct run_row *row, const struct run_done *done)
{
	bool undoing = row->undo == (int64_t)done->step->position;

	open_step(text, done->step, done->status, done->attempt);
	json_more_json(text, "output", done->output);
	add_error(text, done->step, undoing ? row->error : slice_of(NULL, 0));
	json_more_time(text, "startedAt", done->started_at);
	json_more_time(text, "completedAt", done->completed_at);
	if (done->undone_at)
		json_more_time(text, "compensatedAt", done->undone_at);
	strbuf_add_char(text, '}');
}

static void add_current(struct strbuf *text, const struct run_row *row, const struct run_step *step)
{
	const struct run_stood *stood = &row->stood;

	open_step(text, step, run_json_step_status(row), stood->set ? stood->attempt : row->attempt);
	strbuf_add_str(text, ",\"output\":null");
	add_error(text, step, stood->set ? stood->error : run_row_error(row));
	json_more_time(text, "startedAt", stood->set ? stood->started_at : row->step_started_at);
	strbuf_add_str(text, ",\"completedAt\":null}");
}

static void add_untouched(struct strbuf *text, const struct run_step *step, const char *status)
{
	open_step(text, step, status, /* attempt= */ 0);
	strbuf_add_str(text, ",\"output\":null,\"error\":null,\"startedAt\":null,\"completedAt\":null}");
}

static void add_step(struct strbuf *text, const struct run_row *row, const struct run_step *step,
		     const struct run_done *done)
{
	if (done)
		add_done(text, row, done);
	else if (step->position == row->position)
		add_current(text, row, step);
	else
		add_untouched(text, step, step->position < row->position ? RUN_STEP_SKIPPED : RUN_PENDING);
}

/* ---- of a function ---- */

static const char *entry_status(const struct function_entry *e)
{
	static const char *const statuses[] = {
		[ENTRY_BEGUN] = RUN_RUNNING,        [ENTRY_RETRY] = RUN_WAITING,
		[ENTRY_UNKNOWN] = RUN_STEP_UNKNOWN, [ENTRY_OPEN] = RUN_WAITING,
		[ENTRY_DONE] = RUN_STEP_COMPLETED,  [ENTRY_FAILED] = RUN_STEP_FAILED,
		[ENTRY_DROPPED] = RUN_STEP_SKIPPED,
	};

	return statuses[e->state];
}

static void add_entry_step(struct strbuf *text, const struct function_entry *e, int64_t undone_at)
{
	LOCAL_STRBUF(name, FUNCTION_NAME_BYTES_MAX + 32);

	entry_write_name(e, &name);
	strbuf_add_char(text, '{');
	json_more_text(text, "name", strbuf_slice(&name));
	json_more_word(text, "kind", entry_kinds[e->kind]);
	json_more_word(text, "status", entry_status(e));
	json_more_int(text, "attempt", e->attempt);
	json_more_json(text, "output", e->output);
	json_more_json(text, "error", e->state == ENTRY_DONE ? slice_of(NULL, 0) : e->error);
	json_more_time(text, "startedAt", e->started_at);
	json_more_time(text, "completedAt", e->completed_at);
	if (undone_at)
		json_more_time(text, "compensatedAt", undone_at);
	strbuf_add_char(text, '}');
}

static void add_entry_steps(struct strbuf *text, const struct db_rows *rows)
{
	LOCAL_ARENA(arena, ENTRIES_BYTES_MAX);

	strbuf_add_str(text, ",\"steps\":[");
	for (size_t i = 0; rows && i < rows->n; i++) {
		struct function_entry e = entry_of_row(rows, i, &arena);
		const struct db_value *undone_at = db_cell(rows, i, FUNCTION_STEP_UNDONE_AT);

		strbuf_add_str(text, i ? "," : "");
		add_entry_step(text, &e, undone_at->type == DB_NULL ? 0 : undone_at->i);
	}
	strbuf_add_char(text, ']');
	text->failed |= arena.failed;
}

/* The first that has not ended. */
static struct slice current_entry(const struct db_rows *rows, struct arena *arena)
{
	for (size_t i = 0; rows && i < rows->n; i++) {
		struct function_entry e = entry_of_row(rows, i, arena);
		LOCAL_STRBUF(name, FUNCTION_NAME_BYTES_MAX + 32);

		if (entry_has_ended(e.state))
			continue;
		entry_write_name(&e, &name);
		return arena_copy(arena, strbuf_slice(&name));
	}
	return slice_of(NULL, 0);
}

static void add_steps(struct strbuf *text, const struct run_row *row)
{
	const struct run_definition *definition = row->definition;
	const struct run_done *done_at[WORKFLOW_STEPS_MAX] = {0};

	for (const struct run_done *done = row->done; done; done = done->before)
		done_at[done->step->position] = done;
	strbuf_add_str(text, ",\"steps\":[");
	for (size_t i = 0; i < definition->steps_n; i++)
		add_step(text, row, &definition->steps[i], done_at[i]);
	strbuf_add_char(text, ']');
}

/* ---- runs ---- */

void run_json_add(const struct run_row *row, struct strbuf *text)
{
	const struct run_definition *definition = row->definition;
	LOCAL_ARENA(arena, ENTRIES_BYTES_MAX);
	struct run_shown shown = {
		.row = row,
		.subject = row->subject,
		.version = row->version,
		.definition_version = row->machine->version,
		.status = slice_str(row->status),
		.workflow = slice_str(definition->name),
		.step = step_name(definition, row->position),
		.input = row->input,
		.output = row->output,
		.error = run_row_error(row),
		.key = row->key,
		.parent = row->parent,
		.parent_n = row->parent_n,
		.parent_step = row->parent_step,
		.restart_of = row->restart_of,
		.restarted_by = row->restarted_by,
		.job = row->job,
		.attributes = row->attributes,
		.created_at = row->created_at,
		.started_at = row->started_at,
		.completed_at = row->completed_at,
		.updated_at = row->updated_at,
	};

	if (definition->is_function)
		shown.step = current_entry(row->entries, &arena);
	strbuf_add_char(text, '{');
	row_json_struct(text, members, &shown);
	if (definition->is_function)
		add_entry_steps(text, row->entries);
	else
		add_steps(text, row);
	strbuf_add_char(text, '}');
}

static struct slice run_json_text_of(const struct db_rows *rows, size_t i, size_t column)
{
	const struct db_value *value = db_cell(rows, i, column);

	return value->type == DB_NULL ? slice_of(NULL, 0) : value->s;
}

static int64_t int_of(const struct db_rows *rows, size_t i, size_t column)
{
	const struct db_value *value = db_cell(rows, i, column);

	return value->type == DB_NULL ? 0 : value->i;
}

static struct slice listed_step(const struct db_rows *rows, size_t i, const struct run_machine *machine)
{
	const struct run_definition *definition = NULL;
	size_t position = 0;

	if (db_cell(rows, i, RUN_OPEN_ENTRY)->type != DB_NULL)
		return run_json_text_of(rows, i, RUN_OPEN_ENTRY);
	if (machine)
		definition = run_definition_part(machine->definition, run_json_text_of(rows, i, RUN_SCOPE));
	if (!definition)
		return slice_of(NULL, 0);
	if (db_cell(rows, i, RUN_LAST_POSITION)->type != DB_NULL)
		position = run_next_position(definition, (size_t)int_of(rows, i, RUN_LAST_POSITION),
					     run_json_text_of(rows, i, RUN_LAST_OUTPUT));
	return step_name(definition, position);
}

void run_json_add_listed(const struct db_rows *rows, size_t i, const struct run_machine *machine, struct strbuf *text)
{
	struct run_shown shown = {
		.subject = int_of(rows, i, RUN_SUBJECT),
		.version = int_of(rows, i, RUN_VERSION),
		.definition_version = int_of(rows, i, RUN_DEFINITION_VERSION),
		.status = run_json_text_of(rows, i, RUN_STATUS),
		.workflow = run_json_text_of(rows, i, RUN_WORKFLOW),
		.step = listed_step(rows, i, machine),
		.input = run_json_text_of(rows, i, RUN_INPUT),
		.output = run_json_text_of(rows, i, RUN_OUTPUT),
		.error = run_json_text_of(rows, i, RUN_ERROR),
		.parent = int_of(rows, i, RUN_PARENT),
		.parent_n = int_of(rows, i, RUN_PARENT_N),
		.parent_step = run_json_text_of(rows, i, RUN_PARENT_STEP),
		.restart_of = int_of(rows, i, RUN_RESTART_OF),
		.restarted_by = int_of(rows, i, RUN_RESTARTED_BY),
		.attributes = run_json_text_of(rows, i, RUN_ATTRIBUTES),
		.key = run_json_text_of(rows, i, RUN_KEY),
		.created_at = int_of(rows, i, RUN_CREATED_AT),
		.started_at = int_of(rows, i, RUN_STARTED_AT),
		.completed_at = int_of(rows, i, RUN_COMPLETED_AT),
		.updated_at = int_of(rows, i, RUN_UPDATED_AT),
	};

	if (!slice_is(shown.status, RUN_FAILED) && !slice_is(shown.status, RUN_CANCELLED) &&
	    !slice_is(shown.status, RUN_CANCELLING) && !run_error_is_of(shown.error, shown.step))
		shown.error = slice_of(NULL, 0);
	row_json_object(text, members, &shown);
}
