/* The statements of schedule.h. Each guard stands on a line of its own. */
#include "flow/schedule.h"

#include "base/json_string.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "flow/account.h"
#include "flow/due_watch.h"
#include "flow/hook.h"

/* clang-format off */

#define COLUMNS_SQL SCHEDULE_FIELDS(COLUMN_SQL) "hx_now_ms()"
#define COLUMNS_OUT SCHEDULE_FIELDS(COLUMN_OUT) "i"
#define FROM_SCHEDULE " FROM hx_schedule c JOIN hx_subject s ON s.id = c.subject"

DB_STMT(stmt_read, "schedule_read", "i", COLUMNS_OUT,
	"SELECT {ord}" COLUMNS_SQL FROM_SCHEDULE "{join} WHERE c.subject = ?1");

DB_STMT(stmt_read_name, "schedule_read_name", "tt", COLUMNS_OUT,
	"SELECT " COLUMNS_SQL FROM_SCHEDULE " WHERE c.workspace = ?1 AND c.name = ?2");

DB_STMT(stmt_list, "schedule_list", "tti", COLUMNS_OUT,
	"SELECT " COLUMNS_SQL FROM_SCHEDULE " WHERE c.workspace = ?1 AND c.name > ?2 ORDER BY c.name LIMIT ?3");

/* The function is volatile on PostgreSQL: bare, it would be a filter over all that will ever be due. */
DUE_SOURCE_PLAIN(schedule_due_source, "schedule", "hx_schedule", .name = "schedules", .topic = SCHEDULE_TOPIC, .poll_ms = 1000);

DB_STMT(stmt_now, "schedule_read_now", "", "i", "SELECT hx_now_ms()");

DB_STMT(stmt_open, "schedule_read_open", "ii", "ii",
	"SELECT subject, kind FROM (SELECT o.subject AS subject, t.kind AS kind, t.status AS status " SCHEDULE_OPENED "?1"
	" LIMIT " SCHEDULE_OPEN_MAX ") AS slice ORDER BY CASE WHEN status = 'CANCELLING' THEN 1 ELSE 0 END, subject LIMIT ?2");

/* It is as it was read: ?1 subject   ?2 revision. */
#define SET_SCHEDULE(what) "UPDATE hx_schedule SET revision = revision + 1, " what " WHERE subject = ?1"

/* ?3 slot   ?4 due   ?5 started   ?6 skipped   ?7 missed   ?8 last slot   ?9 last at   ?10 last run */
DB_STMT(stmt_move, "schedule_move", "iiiiiiiiii", "i",
	SET_SCHEDULE("slot_at = ?3, due_at = ?4, started = started + ?5, skipped = skipped + ?6, missed = missed + ?7,"
	" last_slot = coalesce(?8, last_slot), last_at = coalesce(?9, last_at), last_run = coalesce(?10, last_run){from}")
	" AND revision = ?2" /* mutant: schedule-revision -> " AND ?2 >= 0" */
	" RETURNING {ord}revision");

/* What has ended is not asked about again. Of the oldest, twice as many as are counted: either so many of them are open, or more go than a
 * move adds. */
DB_STMT(stmt_ended, "schedule_ended", "i", "",
	"DELETE FROM hx_schedule_open WHERE schedule = ?1"
	" AND subject IN (SELECT o.subject FROM hx_schedule_open o WHERE o.schedule = ?1 ORDER BY o.subject LIMIT 2 * " SCHEDULE_OPEN_MAX ")"
	" AND NOT EXISTS (SELECT 1 FROM hx_subject t WHERE t.id = hx_schedule_open.subject AND " SCHEDULE_IS_OPEN ")");

DB_STMT(stmt_opened, "schedule_opened", "ii", "", "INSERT INTO hx_schedule_open (schedule, subject) VALUES (?1, ?2)");

#define INTO_SLOT "INSERT INTO hx_schedule_slot (schedule, slot_at, backfill)"
#define IF_NEW " ON CONFLICT (schedule, slot_at) DO NOTHING"

DB_STMT(stmt_wait, "schedule_wait", "ii", "",
	INTO_SLOT " VALUES (?1, ?2, 0)" IF_NEW);

DB_STMT(stmt_waited, "schedule_waited", "ii", "", "DELETE FROM hx_schedule_slot WHERE schedule = ?1 AND slot_at = ?2");

DB_STMT(stmt_replace, "schedule_replace", "i", "", "DELETE FROM hx_schedule_slot WHERE schedule = ?1 AND backfill = 0");

DB_STMT(stmt_add_slots, "schedule_add_slots", "iti", "",
	INTO_SLOT " SELECT ?1, value, ?3 FROM json_each(?2) WHERE true" IF_NEW,
	.pg_sql = INTO_SLOT " SELECT ?1, r::text::bigint, ?3 FROM json_array_elements(?2::json) AS r" IF_NEW);

DB_STMT(stmt_room, "schedule_room", "ti", "i",
	"SELECT 1 WHERE (SELECT count(*) FROM hx_schedule WHERE workspace = ?1) < ?2");

DB_STMT(stmt_create, "schedule_create", "itttiiiiit", "",
	"INSERT INTO hx_schedule (subject, workspace, name, requester, text, paused, slot_at, due_at, created_at, updated_at)"
	" VALUES (?1, ?2, ?3, ?4, ?10, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (workspace, name) DO NOTHING");

DB_STMT(stmt_change, "schedule_change", "iitiiitii", "",
	SET_SCHEDULE("text = ?3, paused = ?4, slot_at = ?5, due_at = ?6, requester = ?7, updated_at = ?8, missed = ?9")
	" AND revision = ?2" /* mutant: schedule-change-revision -> " AND ?2 >= 0" */
);

DB_STMT(stmt_delete, "schedule_delete", "ii", "",
	"DELETE FROM hx_schedule WHERE subject = ?1 AND revision = ?2");

DB_STMT(stmt_delete_slots, "schedule_delete_slots", "i", "", "DELETE FROM hx_schedule_slot WHERE schedule = ?1");
DB_STMT(stmt_delete_open, "schedule_delete_open", "i", "", "DELETE FROM hx_schedule_open WHERE schedule = ?1");

DB_STMT(stmt_due_now, "schedule_due_now", "ii", "", SET_SCHEDULE("due_at = hx_now_ms()") " AND revision = ?2");

DB_STMT(stmt_triggered, "schedule_triggered", "iiii", "",
	SET_SCHEDULE("last_at = ?3, last_run = ?4") " AND revision = ?2");

DB_STMT(stmt_find_job, "schedule_find_job", "tt", "i",
	"SELECT subject FROM hx_job WHERE workspace = ?1 AND queue = '" JOB_QUEUE_AFTER_EFFECTS "' AND job_key = ?2");

/* clang-format on */

int64_t schedule_kind(void)
{
	return subject_kind("schedule", "");
}

static struct db_value number(int64_t value)
{
	return value ? db_int(value) : db_null();
}

/* ---- reads ---- */

void schedule_read(struct unit *unit, int64_t subject, struct slice workspace, struct slice name)
{
	if (subject)
		UNIT_ADD(unit, UNIT_ANY, &stmt_read, db_int(subject));
	else
		UNIT_ADD(unit, UNIT_ANY, &stmt_read_name, db_text(workspace), db_text(name));
}

void schedule_list(struct unit *unit, struct slice workspace, struct slice after, int64_t limit)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_list, db_text(workspace), db_text(after), db_int(limit));
}

void schedule_read_now(struct unit *unit)
{
	unit_add(unit, UNIT_ANY, &stmt_now, 0, NULL);
}

void schedule_read_open(struct unit *unit, int64_t subject)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_open, db_int(subject), db_int(SCHEDULE_CANCEL_MAX));
}

enum hx_code schedule_row_take(const struct db_rows *rows, size_t i, const struct schedule_policy *policy,
			       struct arena *arena, struct schedule_row *ret_row)
{
	const struct db_value *cells = db_cell(rows, i, 0);
	struct schedule_row *row = ret_row;
	struct json text;

	*row = (struct schedule_row){.now = db_cell(rows, i, SCHEDULE_NOW)->i};
	SCHEDULE_FIELDS(COLUMN_TAKE)
	if (arena->failed)
		return HX_TOO_LARGE;
	if (json_check(row->text, /* err= */ NULL, &text) ||
	    schedule_spec_read(text, /* file= */ false, arena, /* err= */ NULL, &row->spec))
		return arena->failed ? HX_TOO_LARGE : HX_DATA_ERROR;
	row->spec.timing.zone = policy->zone_of(policy->context, row->spec.timezone);
	return HX_OK;
}

/* ---- moves ---- */

void schedule_move_on(struct unit *unit, const struct stamp *stamp, const struct schedule_row *row,
		      const struct schedule_move *move, int64_t subject)
{
	struct db_value schedule = db_int(row->subject), slot = db_int(move->slot_s * 1000);
	bool starts = move->what == SCHEDULE_STARTS;

	unit_touch(unit, row->subject);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_move, schedule, db_int(row->revision), number(move->slot_at),
		 number(move->due_at), db_int(starts && subject), db_int(move->what == SCHEDULE_SKIPS),
		 db_int(move->passed), starts ? slot : db_null(), starts ? db_int(stamp->at.ms) : db_null(),
		 number(subject));
	UNIT_ADD(unit, UNIT_ANY, &stmt_ended, schedule);
	if (move->replaces)
		UNIT_ADD(unit, UNIT_ANY, &stmt_replace, schedule);
	if (move->what == SCHEDULE_WAITS_FOR)
		UNIT_ADD(unit, UNIT_ANY, &stmt_wait, schedule, slot);
	if (move->from_waiting)
		UNIT_ADD(unit, UNIT_ANY, &stmt_waited, schedule, slot);
	unit_wake(unit, SCHEDULE_TOPIC);
}

/* [[cost, "input as JSON in a string"], …] */
static struct slice schedule_items(const struct schedule_spec *spec, struct arena *arena)
{
	struct json_iter it = json_iter_of(json_trust(spec->items));
	struct json item, cost;
	struct strbuf rows;

	strbuf_init(&rows, 8 * spec->items.n + 64);
	strbuf_add_char(&rows, '[');
	while (json_iter_element(&it, &item) && json_find(item, slice_str("cost"), &cost)) {
		struct json input = json_trust(slice_str("null"));

		(void)json_find(item, slice_str("input"), &input);
		strbuf_addf(&rows, "%s[%.*s,", rows.n > 1 ? "," : "", (int)cost.raw.n, cost.raw.p);
		json_quote(input.raw, &rows);
		strbuf_add_char(&rows, ']');
	}
	strbuf_add_char(&rows, ']');
	return arena_keep(arena, &rows);
}

static struct slice input_of(const struct schedule_spec *spec)
{
	return spec->input.p ? spec->input : slice_str("{}");
}

void schedule_start_add(struct unit *unit, const struct stamp *stamp, const struct schedule_row *row,
			const struct schedule_start *start)
{
	const struct schedule_spec *spec = &row->spec;

	UNIT_ADD(unit, UNIT_ANY, &stmt_opened, db_int(row->subject), db_int(start->subject));
	if (start->run) {
		struct run_spec run = {.subject = start->subject,
				       .workspace = row->workspace,
				       .requester = row->requester,
				       .key = start->key, /* mutant: slot-without-key -> .key = slice_of(NULL, 0), */
				       .machine = start->run,
				       .input = input_of(spec),
				       .attributes = start->attributes,
				       .singleton = start->singleton,
				       .joins = true};

		run_create(unit, stamp, &run);
	} else if (start->payload.p) {
		hook_add_fire(unit, stamp,
			      &(struct hook_fire){start->subject, row->workspace, start->key, start->payload});
	} else {
		struct batch_spec batch = {.subject = start->subject,
					   .account = start->account,
					   .workspace = row->workspace,
					   .requester = row->requester,
					   .key = start->key,
					   .data = spec->data,
					   .attributes = start->attributes,
					   .machine = start->batch};

		batch_create_whole(unit, stamp, &batch, start->items, spec->items_n, /* queued= */ true);
	}
}

static struct slice fire_payload(const struct schedule_row *row, struct arena *arena)
{
	const struct schedule_spec *spec = &row->spec;
	struct strbuf text;

	strbuf_init(&text, 2 * SCHEDULE_INPUT_BYTES_MAX + 8192);
	strbuf_add_char(&text, '{');
	json_more_text(&text, "workflow", spec->workflow);
	json_more_text(&text, "id", spec->entity);
	json_more_text(&text, "step", spec->step);
	json_more_text(&text, "workspace", row->workspace);
	json_more_text(&text, "requester", row->requester);
	json_more_json(&text, "input", spec->input);
	strbuf_add_char(&text, '}');
	return arena_keep(arena, &text);
}

static const struct run_machine *function_of(const struct schedule_policy *policy, const struct schedule_spec *spec)
{
	if (spec->starts != SCHEDULE_STARTS_RUN || !policy->function_of)
		return NULL;
	return policy->function_of(policy->context, spec->workflow);
}

bool schedule_is_known(const struct schedule_policy *policy, const struct schedule_spec *spec)
{
	switch (spec->starts) {
	case SCHEDULE_STARTS_RUN:
		return policy->run_of(policy->context, spec->workflow) || function_of(policy, spec);
	case SCHEDULE_STARTS_BATCH:
		return policy->batch_of(policy->context, spec->workflow);
	case SCHEDULE_FIRES:
		break;
	}
	return policy->fires && policy->fires(policy->context, spec->workflow);
}

bool schedule_may_be_function(const struct schedule_policy *policy, const struct schedule_spec *spec)
{
	return spec->starts == SCHEDULE_STARTS_RUN && policy->may_be_function &&
	       policy->may_be_function(policy->context, spec->workflow) && !function_of(policy, spec);
}

bool schedule_start_of(const struct schedule_policy *policy, const struct schedule_row *row, struct arena *arena,
		       struct schedule_start *start)
{
	const struct schedule_spec *spec = &row->spec;

	if (spec->starts == SCHEDULE_STARTS_RUN)
		start->run = schedule_may_be_function(policy, spec) ? run_function_new(spec->workflow, arena)
			     : function_of(policy, spec)            ? function_of(policy, spec)
								    : policy->run_of(policy->context, spec->workflow);
	else if (spec->starts == SCHEDULE_STARTS_BATCH)
		start->batch = policy->batch_of(policy->context, spec->workflow);
	else
		start->payload = fire_payload(row, arena);
	if (start->batch) {
		start->items = schedule_items(spec, arena);
		start->attributes = batch_describe(start->batch, spec->data, arena);
	}
	if (start->run) {
		struct run_spec run = {.workspace = row->workspace, .machine = start->run, .input = input_of(spec)};

		run_describe(&run, arena);
		start->attributes = run.attributes;
		start->singleton = run.singleton;
	}
	return start->run || start->batch || (start->payload.p && schedule_is_known(policy, spec));
}

void schedule_find_job(struct unit *unit, struct slice workspace, struct slice key)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_find_job, db_text(workspace), db_text(key));
}

/* ---- verbs ---- */

static const char *status_of(const struct schedule_row *row)
{
	return row->paused ? SCHEDULE_PAUSED : SCHEDULE_ACTIVE;
}

void schedule_create(struct unit *unit, const struct stamp *stamp, const struct schedule_row *row)
{
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_create, db_int(row->subject), db_text(row->workspace), db_text(row->name),
		 db_text(row->requester), db_int(row->paused), number(row->slot_at), number(row->due_at),
		 db_int(stamp->at.ms), db_int(stamp->at.ms), db_text(row->text));
	UNIT_ADD(unit, UNIT_MUST, &stmt_room, db_text(row->workspace), db_int(SCHEDULES_MAX + 1));
	subject_insert(unit, stamp, row->subject, schedule_kind(), status_of(row));
	unit_wake(unit, SCHEDULE_TOPIC);
}

void schedule_change(struct unit *unit, const struct stamp *stamp, const struct schedule_row *was,
		     const struct schedule_row *row, struct slice late)
{
	struct move move = {row->subject, status_of(was), status_of(row)};

	subject_transition(unit, stamp, &move, was->version);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_change, db_int(row->subject), db_int(was->revision), db_text(row->text),
		 db_int(row->paused), number(row->slot_at), number(row->due_at), db_text(row->requester),
		 db_int(stamp->at.ms), db_int(row->missed));
	if (late.n)
		UNIT_ADD(unit, UNIT_ANY, &stmt_add_slots, db_int(row->subject), db_text(late),
			 db_int(/* backfill= */ 0));
	unit_wake(unit, SCHEDULE_TOPIC);
}

void schedule_delete(struct unit *unit, const struct stamp *stamp, const struct schedule_row *row)
{
	struct move move = {row->subject, status_of(row), SCHEDULE_DELETED};

	subject_transition(unit, stamp, &move, row->version);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_delete, db_int(row->subject), db_int(row->revision));
	UNIT_ADD(unit, UNIT_ANY, &stmt_delete_slots, db_int(row->subject));
	UNIT_ADD(unit, UNIT_ANY, &stmt_delete_open, db_int(row->subject));
}

void schedule_backfill(struct unit *unit, const struct stamp *stamp, const struct schedule_row *row, struct slice slots)
{
	(void)stamp;
	unit_touch(unit, row->subject);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_due_now, db_int(row->subject), db_int(row->revision));
	UNIT_ADD(unit, UNIT_ANY, &stmt_add_slots, db_int(row->subject), db_text(slots), db_int(/* backfill= */ 1));
	unit_wake(unit, SCHEDULE_TOPIC);
}

void schedule_triggered(struct unit *unit, const struct stamp *stamp, const struct schedule_row *row, int64_t subject)
{
	unit_touch(unit, row->subject);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_triggered, db_int(row->subject), db_int(row->revision), db_int(stamp->at.ms),
		 db_int(subject));
}
