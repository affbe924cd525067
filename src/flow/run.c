/*
 * Definitions made ready for the store, and the statements of runs that are not moves: creating, reading, listing, finding
 * what is due. See run.h; moves are run_units.c.
 */
#include "flow/run.h"

#include "flow/attribute.h"
#include "flow/debounce.h"
#include "flow/due_watch.h"
#include "flow/function.h"
#include "flow/page.h"
#include "flow/run_count.h"
#include "flow/singleton.h"
#include "flow/slot.h"

#define RUN_COLUMNS_SQL RUN_FIELDS(COLUMN_SQL) "hx_now_ms()"
#define RUN_OUT RUN_FIELDS(COLUMN_OUT) "i"
#define STOPPED_SQL ", " RUN_STOPPED_SQL ", " SLOT_OF_ACTION("r.subject") ", " RUN_ABOVE_SQL
#define RUN_FROM " FROM hx_run r JOIN hx_subject s ON s.id = r.subject"

#define STEP_COLUMNS_SQL                                                                                               \
	"t.position, t.status, t.attempt, t.output, t.started_at, t.completed_at, t.undone_at,"                        \
	" t.made_by, t.made_with, (SELECT v.definition_version FROM hx_run v WHERE v.subject = t.run)"
#define STEP_OUT                                                                                                       \
	"ititiii"                                                                                                      \
	"it"                                                                                                           \
	"i"

#define JOB_COLUMNS_SQL "s.status, s.version, s.doubt, j.attempt, j.output, j.error"
#define JOB_OUT "tiiitt"

#define BEGUN ", at_step, attempt, step_started_at, started_at"
DB_STMT(stmt_create, "run_create", "ittittttiiitiii", "",
	INTO_RUN(BEGUN) " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?15)"
	" ON CONFLICT (workspace, run_key) WHERE run_key IS NOT NULL DO NOTHING",
	/* In the order of the keys: two nodes that create the same ones wait for each other in one direction alone. */
	.set_sql = "WITH made AS (" INTO_RUN(BEGUN) " SELECT p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15, p15"
	           " FROM {u} ORDER BY p2, p5"
	           " ON CONFLICT (workspace, run_key) WHERE run_key IS NOT NULL DO NOTHING RETURNING subject)"
	           " SELECT u.ord FROM made JOIN {u} ON made.subject = u.p1",
	.counted = true);

DB_STMT(stmt_read, "run_read", "it", RUN_OUT "itt",
	"SELECT {ord}" RUN_COLUMNS_SQL STOPPED_SQL RUN_FROM "{join} WHERE r.subject = ?1 AND (?2 = '' OR r.workspace = ?2)");

DB_STMT(stmt_read_steps, "run_read_steps", "i", STEP_OUT,
	"SELECT {ord}" STEP_COLUMNS_SQL " FROM hx_run_step t{join} WHERE t.run = ?1 ORDER BY {ord}t.position");

DB_STMT(stmt_read_job, "run_read_job", "i", JOB_OUT,
	"SELECT {ord}" JOB_COLUMNS_SQL " FROM hx_run r JOIN hx_job j ON j.subject = r.job JOIN hx_subject s ON s.id = r.job"
	"{join} WHERE r.subject = ?1");

#define OF_KEY "(SELECT " RUN_OF_ALIAS("k") " FROM hx_run k WHERE k.workspace = ?1 AND k.run_key = ?2)"

DB_STMT(stmt_read_key, "run_read_key", "tt", RUN_OUT "itt",
	"SELECT " RUN_COLUMNS_SQL STOPPED_SQL RUN_FROM " WHERE r.subject = " OF_KEY);

DB_STMT(stmt_read_key_steps, "run_read_key_steps", "tt", STEP_OUT,
	"SELECT " STEP_COLUMNS_SQL " FROM hx_run_step t WHERE t.run = " OF_KEY " ORDER BY t.position");

DB_STMT(stmt_read_key_job, "run_read_key_job", "tt", JOB_OUT,
	"SELECT " JOB_COLUMNS_SQL " FROM hx_run r JOIN hx_job j ON j.subject = r.job JOIN hx_subject s ON s.id = r.job"
	" WHERE r.subject = " OF_KEY);

DB_STMT(stmt_find_key, "run_find_key", "tt", "it",
	"SELECT " RUN_OF_ALIAS("k") ", k.workflow FROM hx_run k WHERE k.run_key = ?2"
	" AND k.workspace = ?1"
);

DB_STMT(stmt_read_event, "run_read_event", "itt", "tt",
	"SELECT {ord}e.id, e.data FROM hx_run_event e{join}"
	" WHERE e.run = ?1 AND e.name = ?2 || ?3 AND e.id = (SELECT o.id FROM hx_run_event o WHERE o.run = ?1"
	" AND o.name = ?2 || ?3 AND o.taken_by IS NULL ORDER BY o.at, o.id LIMIT 1)");

/* ?1 workspace   ?2 before   ?3 how many   then what is asked for. */
#define LIST_SELECT                                                                                                    \
	"SELECT " RUN_COLUMNS_SQL ","                                                                                  \
	" (SELECT max(t.position) FROM hx_run_step t WHERE t.run = r.subject),"                                        \
	" (SELECT t.output FROM hx_run_step t WHERE t.run = r.subject ORDER BY t.position DESC LIMIT 1),"              \
	" (SELECT " ENTRY_NAME_SQL                                                                                     \
	" FROM hx_entry e WHERE e.run = r.subject AND e.ended = 0 ORDER BY e.i LIMIT 1)" RUN_FROM
#define BY_ID(base) "hx_run", "r", LEAD_ALL, "?1", " AND r.expired = 0" base, ALL_DOWN
#define BY_WORKFLOW(n) "hx_run", "r", LEAD_WORKFLOW, "?1, ?" n, " AND r.expired = 0", WORKFLOW_DOWN
#define LIST(...) LIST_SELECT PAGE_DOWN(__VA_ARGS__)
#define LIST_STATUS(...) LIST_SELECT STATUS_DOWN(__VA_ARGS__)
#define LIST_LINE(...) SLICE_LINE(LISTED_DOWN(__VA_ARGS__, ""), "min")
#define PERSON " AND r.awaits = 'person'"
/* Not for an index: of those of one parent, or of those that wait for a person. */
#define AND_WORKFLOW(n) " AND (?" n " = '' OR r.workflow = ?" n ")"
#define AND_PERSON(n) " AND (?" n " = 0 OR r.awaits = 'person')"
#define LIST_OUT RUN_OUT "itt"

DB_STMT(stmt_list, "run_list", "tii", LIST_OUT, LIST(BY_ID("")));
DB_STMT(stmt_list_workflow, "run_list_workflow", "tiit", LIST_OUT, LIST(BY_WORKFLOW("4")));
DB_STMT(stmt_list_person, "run_list_person", "tiit", LIST_OUT, LIST(BY_ID(PERSON AND_WORKFLOW("4"))));
DB_STMT(stmt_list_status, "run_list_status", "tiit", LIST_OUT, LIST_STATUS(BY_ID("")));
DB_STMT(stmt_list_both, "run_list_both", "tiitt", LIST_OUT, LIST_STATUS(BY_WORKFLOW("5")));
DB_STMT(stmt_list_person_status, "run_list_person_status", "tiitt", LIST_OUT, LIST_STATUS(BY_ID(PERSON AND_WORKFLOW("5"))));
DB_STMT(stmt_list_children, "run_list_children", "tiittii", LIST_OUT,
	LIST_SELECT " WHERE r.parent = ?6 AND r.workspace = ?1 AND r.expired = 0 AND r.subject < ?2" AND_WORKFLOW("5") AND_PERSON("7")
	" AND (?4 = '' OR s.status = ?4) ORDER BY r.subject DESC LIMIT ?3");

DB_STMT(stmt_list_these, "run_list_these", "tt", LIST_OUT,
	LIST_SELECT " WHERE r.subject IN (SELECT CAST(value AS bigint) FROM {list2}) AND r.workspace = ?1 AND r.expired = 0");

DB_STMT(stmt_slice, "run_slice", "ti", "ii", LIST_LINE(BY_ID("")));
DB_STMT(stmt_slice_workflow, "run_slice_workflow", "tit", "ii", LIST_LINE(BY_WORKFLOW("3")));
DB_STMT(stmt_slice_person, "run_slice_person", "tit", "ii", LIST_LINE(BY_ID(PERSON AND_WORKFLOW("3"))));

/* Versions that need a function which this node does not have: their runs wait for a node that has it, but for being cancelled. */
#define NOT_LEFT(names)                                                                                                \
	" AND (r.workflow || '@' || r.definition_version NOT IN (SELECT value FROM " names ")"                         \
	" OR EXISTS (SELECT 1 FROM hx_subject s WHERE s.id = r.subject AND s.status = 'CANCELLING'))"

/* Functions are looked at by others (engine/functions.h): there is nothing here to drive them by. */
#define NO_FUNCTION " AND r.definition_version > 0"

/* Children end in one transaction with their siblings, because it is their parent that they tell: in one lane they need not wait for
 * each other. */
DUE_SOURCE_SHARED(run_due_source, "run", "subject, coalesce(parent, subject)", "hx_run r", "t", "{list3}",
		  NO_FUNCTION NOT_LEFT("{list2}"), NO_FUNCTION NOT_LEFT("{list1}"), .name = "runs", .topic = RUN_TOPIC,
		  .poll_ms = DUE_POLL_MS);

#define DUE_BY_JOB "UPDATE hx_run SET due_at = hx_now_ms(){from} WHERE subject = ?1 AND job = ?2"
DB_STMT(stmt_job_ended, "run_job_ended", "ii", "", DUE_BY_JOB);
DB_STMT(stmt_job_back, "run_job_back", "ii", "",
	DUE_BY_JOB " AND EXISTS (SELECT 1 FROM hx_subject s WHERE s.id = ?1 AND (s.status = 'CANCELLING'"
	" OR (s.status = 'RUNNING' AND times_out_at <= hx_now_ms())))");

const struct run_machine *run_machine_new(const struct run_definition *definition, int64_t version, struct arena *arena)
{
	struct run_machine *machine = arena_alloc(arena, sizeof *machine);
	struct sql_action *sql = sql_actions_new(definition->actions, definition->actions_n, arena);

	if (!machine || !sql)
		return NULL;
	*machine = (struct run_machine){definition, version, sql};
	return machine;
}

const struct run_machine *run_function_new(struct slice name, struct arena *arena)
{
	struct run_machine *machine = arena_zalloc(arena, sizeof *machine);
	struct run_definition *definition = arena_zalloc(arena, sizeof *definition);
	struct slice copied = arena_copy(arena, name);

	if (!machine || !definition || !copied.p)
		return NULL;
	*definition = (struct run_definition){.name = copied.p, .is_function = true};
	*machine = (struct run_machine){.definition = definition, .version = RUN_FUNCTION};
	return machine;
}

int64_t run_kind(void)
{
	return subject_kind("run", "");
}

int64_t run_times_out_at(const struct run_definition *definition, int64_t from_ms)
{
	if (!definition->timeout_ms)
		return 0;
	return definition->timeout_ms < INT64_MAX - from_ms ? from_ms + definition->timeout_ms : INT64_MAX;
}

void run_describe(struct run_spec *spec, struct arena *arena)
{
	const struct attributes *attributes = &spec->machine->definition->attributes;
	struct json none = json_trust(slice_str("{}"));
	struct expression_env env = {.input = json_trust(spec->input), .state = none, .steps = none};

	spec->attributes = attributes_of(attributes, &env, arena);
	spec->singleton = singleton_name(&spec->machine->definition->limits, spec->workspace,
					 spec->machine->definition->name, spec->input, arena);
	spec->debounce = debounce_of(&spec->machine->definition->limits, spec->workspace,
				     spec->machine->definition->name, spec->input, arena);
	if (spec->debounce.name)
		spec->due_in_ms = 0; /* nobody drives it at once */
}

static void insert_subject(struct unit *unit, const struct stamp *stamp, const struct run_spec *spec)
{
	int64_t kind = spec->machine->definition->is_function ? function_kind() : run_kind();
	struct move move = {spec->subject, RUN_PENDING, spec->begun.to};
	struct stride stride = {.transitions = spec->begun.transitions, .lease_ms = spec->begun.lease_ms};

	if (spec->begun.attempt)
		subject_insert_held(unit, stamp, &move, kind, &stride);
	else
		subject_insert(unit, stamp, spec->subject, kind, RUN_PENDING);
}

void run_create(struct unit *unit, const struct stamp *stamp, const struct run_spec *spec)
{
	int64_t times_out_at = run_times_out_at(spec->machine->definition, stamp->at.ms);
	bool function = spec->machine->definition->is_function, begun = spec->begun.attempt != 0;

	if (spec->debounce.name)
		debounce_take(unit, &spec->debounce, spec->subject); /* mutant: debounce-outside-unit -> ; */
	if (spec->singleton && !spec->joins)
		singleton_take(unit, spec->singleton, spec->subject); /* mutant: singleton-outside-unit -> ; */
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_create, db_int(spec->subject), db_text(spec->workspace),
		 db_str(spec->machine->definition->name), db_int(spec->machine->version), db_optional(spec->key),
		 db_text(spec->requester), spec->traceparent.n ? db_text(spec->traceparent) : db_null(),
		 db_text(spec->input), function || begun ? db_null() : db_int(stamp->at.ms + spec->due_in_ms),
		 db_int(stamp->at.ms), times_out_at ? db_int(times_out_at) : db_null(), db_optional(spec->attributes),
		 db_int((int64_t)spec->begun.position), db_int(spec->begun.attempt),
		 begun ? db_int(spec->begun.started_at) : db_null());
	insert_subject(unit, stamp, spec);
	run_count_changed(unit, spec->workspace, spec->machine->definition->name, "",
			  begun ? spec->begun.to : RUN_PENDING, /* n= */ 1);
	if (spec->attributes.p)
		attributes_of_run(unit, spec->subject); /* mutant: run-without-its-index -> ; */
	if (spec->singleton && spec->joins)
		singleton_join(unit, spec->singleton, spec->subject);
	if (function)
		function_create(unit, stamp, spec);
	if (spec->debounce.name)
		debounce_begin(unit, &spec->debounce, spec->subject, spec->machine->definition->timeout_ms);
	if (function && spec->debounce.name)
		function_put_off(unit, spec->subject); /* mutant: function-not-put-off -> ; */
	else if (!function && !spec->debounce.name && !spec->due_in_ms)
		unit_wake(unit, RUN_TOPIC);
}

void run_read(struct unit *unit, struct slice workspace, int64_t subject)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_read, db_int(subject), db_text(workspace.p ? workspace : slice_str("")));
	UNIT_ADD(unit, UNIT_ANY, &stmt_read_steps, db_int(subject));
	UNIT_ADD(unit, UNIT_ANY, &stmt_read_job, db_int(subject));
}

void run_find_key(struct unit *unit, struct slice workspace, struct slice key)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_find_key, db_text(workspace), db_text(key));
}

enum hx_code run_found(const struct unit_result *result, struct slice workflow, int64_t *ret_subject)
{
	const struct db_rows *rows = &result->rows[0];

	if (rows->n == 0)
		return HX_NOT_FOUND;
	if (!slice_eq(db_cell(rows, 0, 1)->s, workflow))
		return HX_KEY_REUSED;
	*ret_subject = db_cell(rows, 0, 0)->i;
	return HX_OK;
}

void run_read_key(struct unit *unit, struct slice workspace, struct slice key)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_read_key, db_text(workspace), db_text(key));
	UNIT_ADD(unit, UNIT_ANY, &stmt_read_key_steps, db_text(workspace), db_text(key));
	UNIT_ADD(unit, UNIT_ANY, &stmt_read_key_job, db_text(workspace), db_text(key));
}

void run_read_shown(struct unit *unit, struct slice workspace, int64_t subject)
{
	run_read(unit, workspace, subject);
	function_read_steps(unit, subject);
}

void run_read_key_shown(struct unit *unit, struct slice workspace, struct slice key)
{
	run_read_key(unit, workspace, key);
	function_read_key_steps(unit, workspace, key);
}

void run_read_event(struct unit *unit, int64_t subject, struct run_awaited awaited)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_read_event, db_int(subject), db_str(awaited.prefix), db_str(awaited.name));
}

static void list_by_status(struct unit *unit, const struct run_filter *f, struct slice of)
{
	struct db_value in = db_text(f->workspace), before = db_int(f->before), limit = db_int(f->limit),
			status = db_text(f->status), workflow = db_text(of);

	if (f->unknown) {
		UNIT_ADD(unit, UNIT_ANY, &stmt_list_person_status, in, before, limit, status, workflow);
		UNIT_ADD(unit, UNIT_ANY, &stmt_slice_person, in, before, workflow);
	} else if (of.n) {
		UNIT_ADD(unit, UNIT_ANY, &stmt_list_both, in, before, limit, status, workflow);
		UNIT_ADD(unit, UNIT_ANY, &stmt_slice_workflow, in, before, workflow);
	} else {
		UNIT_ADD(unit, UNIT_ANY, &stmt_list_status, in, before, limit, status);
		UNIT_ADD(unit, UNIT_ANY, &stmt_slice, in, before);
	}
}

void run_list(struct unit *unit, const struct run_filter *f)
{
	struct slice any = slice_str(""), of = f->workflow.p ? f->workflow : any;
	struct db_value in = db_text(f->workspace), before = db_int(f->before), limit = db_int(f->limit),
			workflow = db_text(of);

	if (f->parent)
		UNIT_ADD(unit, UNIT_ANY, &stmt_list_children, in, before, limit, db_text(f->status.p ? f->status : any),
			 workflow, db_int(f->parent), db_int(f->unknown));
	else if (f->status.n)
		list_by_status(unit, f, of);
	else if (f->unknown)
		UNIT_ADD(unit, UNIT_ANY, &stmt_list_person, in, before, limit, workflow);
	else if (of.n)
		UNIT_ADD(unit, UNIT_ANY, &stmt_list_workflow, in, before, limit, workflow);
	else
		UNIT_ADD(unit, UNIT_ANY, &stmt_list, in, before, limit);
}

void run_list_these(struct unit *unit, struct slice workspace, struct slice ids)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_list_these, db_text(workspace), db_text(ids));
}

void run_job_back(struct unit *unit, int64_t run, int64_t job)
{
	unit_touch(unit, run);
	UNIT_ADD(unit, UNIT_ANY, &stmt_job_back, db_int(run), db_int(job));
	unit_wake(unit, RUN_TOPIC);
}

void run_job_ended(struct unit *unit, int64_t run, int64_t job)
{
	unit_touch(unit, run);
	UNIT_ADD(unit, UNIT_ANY, &stmt_job_ended, db_int(run), db_int(job)); /* mutant: run-not-due-by-job */
	unit_wake(unit, RUN_TOPIC);
}
