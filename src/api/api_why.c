/*
 * GET /why/{id}: what is a run, a batch, a job or an entity waiting for? Read beside the lanes, from the rows; the sentence is
 * made in why.c.
 *
 * Whether a call has begun is in no row. If the claim is this node's, its own port knows, and is asked by the fence; of another
 * node's only the lease is told.
 */
#include <string.h>

#include "api/api.h"
#include "api/batch_wait.h"
#include "api/run_wait.h"
#include "api/why.h"
#include "base/id.h"
#include "base/json_string.h"
#include "engine/batches.h"
#include "engine/runs.h"
#include "flow/batch_lead.h"
#include "flow/run_drive.h"

#define ROW_BYTES_MAX (512u << 20)

/* clang-format off */

/* in_flight_max bounds all jobs of a queue that are RUNNING and have such a bound. */
#define WHY_JOB                                                                                                        \
	"SELECT j.subject, s.status, s.owner, s.until, j.queue, j.attempt, j.due_at, j.error, j.in_flight_max,"         \
	" (SELECT count(*) FROM hx_job k WHERE k.workspace = j.workspace AND k.queue = j.queue"                           \
	" AND k.in_flight_max > 0 AND k.due_at IS NULL AND k.ended_at IS NULL), j.run, s.fence, hx_now_ms(), j.workflow, j.action"   \
	" FROM hx_job j JOIN hx_subject s ON s.id = j.subject WHERE "
#define WHY_JOB_OUT "ittitiitiiiiitt"

static const struct db_stmt stmt_job = {
	.name = "why_job",
	.sql = WHY_JOB "j.workspace = ?1 AND j.subject = ?2",
	.in = "ti",
	.out = WHY_JOB_OUT,
};

static const struct db_stmt stmt_job_of_run = {
	.name = "why_job_of_run",
	.sql = WHY_JOB "j.subject = (SELECT r.job FROM hx_run r WHERE r.workspace = ?1 AND r.subject = ?2)",
	.in = "ti",
	.out = WHY_JOB_OUT,
};

#define LINE_JOB_OF_RUN 3 /* behind those of run_read() */

/*
 * The ids of after-effects are those that came right behind the op of their transition (STEP_AFTER_EFFECTS_MAX, base/id.h). By
 * them they are found without an index of their own, for the last HISTORY_MAX changes of the entity. Any other number near them
 * is an id of another lane: another entity's, perhaps in another workspace.
 */
#define HISTORY_MAX "100"
#define BEHIND(n) "t.op + " n " + (t.op % ?4 + " n ") / ?4 * ?5"

static const struct db_stmt stmt_effects = {
	.name = "why_effects",
	.sql = "SELECT j.subject, s.status, j.action FROM (SELECT h.op FROM hx_entity e JOIN hx_history h ON h.subject = e.subject"
	       " WHERE e.workspace = ?1 AND e.workflow = ?2 AND e.name = ?3 ORDER BY h.seq DESC LIMIT " HISTORY_MAX ") t"
	       " JOIN hx_job j ON j.subject IN (" BEHIND("1") ", " BEHIND("2") ", " BEHIND("3") ", " BEHIND("4") ")"
	       " AND j.workspace = ?6 AND j.workflow = ?2"
	       " JOIN hx_subject s ON s.id = j.subject WHERE s.status <> 'COMPLETED' ORDER BY j.subject LIMIT ?7",
	.in = "tttiiti",
	.out = "itt",
};

#define LINE_EFFECTS 1 /* behind that of entity_read() */

/* clang-format on */

_Static_assert(STEP_AFTER_EFFECTS_MAX == 4, "as many are looked for");
_Static_assert(sizeof WHY_JOB_OUT - 1 == WHY_CELL_COLUMNS, "one type for each column");

/* {"id", "status", "why", "reason"} */
static void answer(struct api_query *query, struct slice status, const struct why *why)
{
	strbuf_add_str(&query->text, "{\"id\":");
	json_quote(call_param(query->call, "id"), &query->text);
	api_more_text(&query->text, "status", status);
	api_more_text(&query->text, "why", strbuf_slice(&why->words));
	api_more_text(&query->text, "reason", slice_str(why_reason_name(why->reason)));
	strbuf_add_char(&query->text, '}');
}

/* Behind the read: what has begun meanwhile is under way, as the row says. */
static struct port_sight look(struct api_query *query, int64_t subject, int64_t fence)
{
	struct port_sight sight;

	engine_act_look(api_of(query->call)->engine, subject, fence, &sight);
	return sight;
}

static const char *node_of(const struct api_query *query)
{
	return engine_options_of(api_of(query->call)->engine)->node;
}

/* ---- jobs ---- */

static void build_job(const struct single *single, struct unit *unit)
{
	const struct api_query *query = single->context;

	UNIT_ADD(unit, UNIT_ANY, &stmt_job, db_text(api_workspace(query->call)), db_int(query->subject));
}

static enum hx_code answered_job(struct single *single, const struct unit_result *result)
{
	struct api_query *query = single->context;
	const struct db_rows *rows = &result->rows[0];
	struct port_sight sight;
	struct why why;

	query->detail = "there is no such job";
	if (rows->n == 0)
		return HX_NOT_FOUND;
	sight = look(query, query->subject, db_cell(rows, 0, WHY_CELL_FENCE)->i);
	why_init(&why, node_of(query));
	why.lacks = action_absent(engine_action(api_of(query->call)->engine, db_cell(rows, 0, WHY_CELL_WORKFLOW)->s,
						db_cell(rows, 0, WHY_CELL_ACTION)->s));
	why_job(&why, rows, &sight);
	answer(query, db_cell(rows, 0, WHY_CELL_STATUS)->s, &why);
	why_release(&why);
	return HX_OK;
}

/* ---- runs ---- */

static void build_run(const struct single *single, struct unit *unit)
{
	const struct api_query *query = single->context;
	struct slice workspace = api_workspace(query->call);

	run_read(unit, workspace, query->subject);
	ASSERT(unit->lines_n == LINE_JOB_OF_RUN);
	UNIT_ADD(unit, UNIT_ANY, &stmt_job_of_run, db_text(workspace), db_int(query->subject));
}

static enum hx_code answered_run(struct single *single, const struct unit_result *result)
{
	struct api_query *query = single->context;
	const struct run_policy *policy = runs_policy(engine_runs(api_of(query->call)->engine));
	struct port_sight sight;
	struct arena arena;
	struct run_row row;
	struct why why;
	enum hx_code code;

	arena_init(&arena, ROW_BYTES_MAX);
	why_init(&why, node_of(query));
	code = run_row_take(result, policy->machine_of, policy->context, &arena, &row);
	if ((!code || code == HX_CONFIG_ERROR) && row.expired)
		code = HX_RUN_EXPIRED;
	if (!code) {
		sight = look(query, row.subject, row.fence);
		why.lacks = run_row_absent(&row);
		why_run(&why, &row, &result->rows[LINE_JOB_OF_RUN], &sight, &arena);
	}
	if (code == HX_CONFIG_ERROR) /* nothing else can be what it waits for */
		why_run_version(&why, db_cell(&result->rows[0], 0, RUN_DEFINITION_VERSION)->i);
	if (!code || code == HX_CONFIG_ERROR) {
		answer(query, slice_str(row.status), &why);
		code = HX_OK;
	}
	query->detail = runs_detail(code);
	why_release(&why);
	arena_release(&arena);
	return code;
}

/* ---- batches ---- */

static void build_batch(const struct single *single, struct unit *unit)
{
	const struct api_query *query = single->context;

	batch_read(unit, api_workspace(query->call), query->subject);
}

static enum hx_code answered_batch(struct single *single, const struct unit_result *result)
{
	struct api_query *query = single->context;
	const struct batch_policy *policy = batches_policy(engine_batches(api_of(query->call)->engine));
	struct port_sight sight;
	struct batch_row row;
	struct arena arena;
	struct why why;
	enum hx_code code;

	arena_init(&arena, ROW_BYTES_MAX);
	why_init(&why, node_of(query));
	code = batch_wait_take(result, &arena, &row);
	if (!code) {
		row.machine = policy->machine_of(policy->context, row.workflow, row.definition_version);
		sight = look(query, row.subject, row.fence);
		why.lacks = strcmp(row.status, BATCH_LOADING) == 0 ? NULL : batch_row_absent(&row);
		why_batch(&why, &row, &sight);
		answer(query, slice_str(row.status), &why);
	}
	query->detail = batch_detail(code);
	why_release(&why);
	arena_release(&arena);
	return code;
}

/* ---- entities ---- */

static void build_entity(const struct single *single, struct unit *unit)
{
	const struct api_query *query = single->context;
	struct entity_ref ref = {api_workspace(query->call), query->machine, query->name};

	entity_read(unit, &ref);
	ASSERT(unit->lines_n == LINE_EFFECTS);
	/* What is in a table of the user's has no workspace. */
	UNIT_ADD(unit, UNIT_ANY, &stmt_effects, ref.machine->table ? db_str("") : db_text(ref.workspace),
		 db_str(ref.machine->workflow->name), db_text(ref.name), db_int(ID_COUNTER_N), db_int(ID_CARRY),
		 db_text(ref.workspace), db_int(WHY_EFFECTS_MAX + 1));
}

static enum hx_code answered_entity(struct single *single, const struct unit_result *result)
{
	struct api_query *query = single->context;
	const struct db_rows *rows = &result->rows[0];
	struct port_sight sight;
	struct why why;

	query->detail = "there is no such entity";
	if (rows->n == 0)
		return HX_NOT_FOUND;
	sight = look(query, db_cell(rows, 0, ENTITY_SUBJECT)->i, db_cell(rows, 0, ENTITY_FENCE)->i);
	why_init(&why, node_of(query));
	why_entity(&why, query->machine->workflow, rows, &result->rows[LINE_EFFECTS], &sight,
		   clock_wall(engine_clock(api_of(query->call)->engine)).ms);
	answer(query, db_cell(rows, 0, ENTITY_STATUS)->s, &why);
	why_release(&why);
	return HX_OK;
}

/* ---- the question ---- */

static void ask_by_id(struct http_call *call, int64_t subject, void (*build)(const struct single *, struct unit *),
		      enum hx_code (*answered)(struct single *, const struct unit_result *))
{
	struct api_query *query = api_query_new(call, build, answered);

	if (!query)
		return;
	query->subject = subject;
	api_query_read(query);
}

static void ask_entity(struct http_call *call, struct slice workflow, struct slice name)
{
	const struct entity_machine *machine = api_machine_named(call, workflow);
	struct api_query *query;

	if (!machine) {
		api_no_workflow(call, workflow, "entity");
		return;
	}
	query = api_query_new(call, build_entity, answered_entity);
	if (!query)
		return;
	query->machine = machine;
	query->name = name;
	api_query_read(query);
}

void api_why(struct http_call *call)
{
	struct slice id = call_param(call, "id"), workflow, name;
	int64_t subject;

	if (id_parse("run", id, &subject))
		ask_by_id(call, subject, build_run, answered_run);
	else if (id_parse("batch", id, &subject))
		ask_by_id(call, subject, build_batch, answered_batch);
	else if (id_parse("job", id, &subject))
		ask_by_id(call, subject, build_job, answered_job);
	else if (api_entity_split(id, &workflow, &name))
		ask_entity(call, workflow, name);
	else
		http_respond_code(call->exchange, HX_NOT_FOUND,
				  "a subject is entity:WORKFLOW:ID or the id of a run, a batch or a job");
}
