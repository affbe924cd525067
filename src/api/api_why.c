/*
 * GET /why/{id}: what is a run, a batch, a job or an entity waiting for? Read beside the lanes, from the rows; the sentence is
 * made in flow/why.c.
 *
 * Whether a call has begun is in no row. If the claim is this node's, its own port knows, and is asked by the fence; of another
 * node's only the lease is told.
 */
#include <string.h>

#include "api/api.h"
#include "api/batch_wait.h"
#include "api/row_json.h"
#include "api/run_wait.h"
#include "base/id.h"
#include "base/json_string.h"
#include "engine/batches.h"
#include "engine/runs.h"
#include "flow/batch_lead.h"
#include "flow/run_drive.h"
#include "flow/why.h"

#define ROW_BYTES_MAX (512u << 20)

/* {"id", "status", "why", "reason"} */
static void answer(struct api_query *query, struct slice status, const struct why *why)
{
	strbuf_add_str(&query->text, "{\"id\":");
	json_quote(call_param(query->call, "id"), &query->text);
	json_more_text(&query->text, "status", status);
	json_more_text(&query->text, "why", strbuf_slice(&why->words));
	json_more_text(&query->text, "reason", slice_str(why_reason_name(why->reason)));
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

static void build_job(struct api_query *query, struct unit *unit)
{
	why_read_job(unit, api_workspace(query->call), query->subject);
}

static enum hx_code answered_job(struct api_query *query, const struct unit_result *result)
{
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

static void build_run(struct api_query *query, struct unit *unit)
{
	why_read_run(unit, api_workspace(query->call), query->subject);
}

static enum hx_code answered_run(struct api_query *query, const struct unit_result *result)
{
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
		why_run(&why, &row, &result->rows[WHY_LINE_JOB_OF_RUN], &sight, &arena);
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

static void build_batch(struct api_query *query, struct unit *unit)
{
	batch_read(unit, api_workspace(query->call), query->subject);
}

static enum hx_code answered_batch(struct api_query *query, const struct unit_result *result)
{
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

static void build_entity(struct api_query *query, struct unit *unit)
{
	struct entity_ref ref = {api_workspace(query->call), query->machine, query->name};

	why_read_entity(unit, &ref);
}

static enum hx_code answered_entity(struct api_query *query, const struct unit_result *result)
{
	const struct db_rows *rows = &result->rows[0];
	struct port_sight sight;
	struct why why;

	query->detail = "there is no such entity";
	if (rows->n == 0)
		return HX_NOT_FOUND;
	sight = look(query, db_cell(rows, 0, ENTITY_SUBJECT)->i, db_cell(rows, 0, ENTITY_FENCE)->i);
	why_init(&why, node_of(query));
	why_entity(&why, query->machine->workflow, rows, &result->rows[WHY_LINE_EFFECTS], &sight,
		   clock_wall(engine_clock(api_of(query->call)->engine)).ms);
	answer(query, db_cell(rows, 0, ENTITY_STATUS)->s, &why);
	why_release(&why);
	return HX_OK;
}

/* ---- the question ---- */

static void ask_by_id(struct http_call *call, int64_t subject, void (*build)(struct api_query *, struct unit *),
		      enum hx_code (*answered)(struct api_query *, const struct unit_result *))
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
