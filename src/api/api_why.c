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
#include "base/id.h"
#include "base/json_write.h"
#include "engine/batches.h"
#include "engine/runs.h"
#include "engine/schedules.h"
#include "flow/batch_lead.h"
#include "flow/run_drive.h"
#include "flow/why.h"

#define ROW_BYTES_MAX (512u << 20)

/* After the read: what has begun meanwhile is under way, as the row says. */
static struct port_sight why_look(struct api_query *query, int64_t subject, int64_t fence)
{
	struct port_sight sight;

	port_look(api_parts(query->call)->port, subject, fence, &sight);
	return sight;
}

/* ---- jobs ---- */

static enum hx_code explain_job(struct api_query *query, const struct unit_result *result, struct why *why,
				struct arena *arena, struct slice *ret_status)
{
	const struct db_rows *rows = &result->rows[0];
	struct port_sight sight;
	int64_t in_force = 0;

	(void)arena;
	query->detail = "there is no such job";
	if (rows->n == 0)
		return HX_NOT_FOUND;
	sight = why_look(query, query->subject, db_cell(rows, 0, WHY_CELL_FENCE)->i);
	why->lacks = action_absent(definitions_action(api_parts(query->call)->definitions,
						      db_cell(rows, 0, WHY_CELL_WORKFLOW)->s,
						      db_cell(rows, 0, WHY_CELL_ACTION)->s, &in_force));
	why_job(why, rows, &sight);
	*ret_status = db_cell(rows, 0, WHY_CELL_STATUS)->s;
	return HX_OK;
}

/* ---- runs ---- */

static enum hx_code explain_run(struct api_query *query, const struct unit_result *result, struct why *why,
				struct arena *arena, struct slice *ret_status)
{
	const struct run_policy *policy = api_parts(query->call)->run_policy;
	struct port_sight sight;
	struct run_row row;
	enum hx_code code = run_row_take(result, policy->machine_of, policy->context, arena, &row);

	if ((!code || code == HX_CONFIG_ERROR) && row.expired)
		code = HX_RUN_EXPIRED;
	if (!code && row.definition->is_function) {
		why_function(why, &row, result);
	} else if (!code) {
		sight = why_look(query, row.subject, row.fence);
		why->lacks = run_row_absent(&row);
		why_run(why, &row, result, &sight, arena);
	}
	if (code == HX_CONFIG_ERROR) { /* nothing else can be what it waits for */
		why_run_version(why, db_cell(&result->rows[0], 0, RUN_DEFINITION_VERSION)->i);
		code = HX_OK;
	}
	if (!code)
		*ret_status = slice_str(row.status);
	query->detail = runs_detail(code);
	return code;
}

/* ---- batches ---- */

static enum hx_code explain_batch(struct api_query *query, const struct unit_result *result, struct why *why,
				  struct arena *arena, struct slice *ret_status)
{
	const struct batch_policy *policy = api_parts(query->call)->batch_policy;
	struct port_sight sight;
	struct batch_row row;
	enum hx_code code = batch_wait_take(result, arena, &row);

	query->detail = batch_detail(code);
	if (code)
		return code;
	row.machine = policy->machine_of(policy->context, row.workflow, row.definition_version);
	sight = why_look(query, row.subject, row.fence);
	why->lacks = strcmp(row.status, BATCH_LOADING) == 0 ? NULL : batch_row_absent(&row);
	why_batch(why, &row, &sight);
	*ret_status = slice_str(row.status);
	return HX_OK;
}

/* ---- schedules ---- */

static void read_schedule(struct unit *unit, struct slice workspace, int64_t subject)
{
	(void)workspace; /* it is looked at in the row */
	schedule_read(unit, subject, slice_of(NULL, 0), slice_of(NULL, 0));
}

static enum hx_code explain_schedule(struct api_query *query, const struct unit_result *result, struct why *why,
				     struct arena *arena, struct slice *ret_status)
{
	const struct schedule_policy *policy = api_parts(query->call)->schedule_policy;
	const struct db_rows *rows = &result->rows[0];
	struct schedule_row row;
	enum hx_code code;

	query->detail = "there is no such schedule";
	if (rows->n == 0 || !slice_eq(db_cell(rows, 0, SCHEDULE_WORKSPACE)->s, api_workspace(query->call)))
		return HX_NOT_FOUND;
	code = schedule_row_take(rows, 0, policy, arena, &row);
	if (code && code != HX_DATA_ERROR)
		return code;
	why_schedule(why, &row, !code && row.spec.timing.zone && schedule_is_known(policy, &row.spec),
		     !code && row.spec.timing.zone && schedule_may_be_function(policy, &row.spec));
	*ret_status = slice_str(row.paused ? SCHEDULE_PAUSED : SCHEDULE_ACTIVE);
	return HX_OK;
}

/* ---- entities ---- */

static void build_entity(struct api_query *query, struct unit *unit)
{
	why_read_entity(unit, &(struct entity_ref){api_workspace(query->call), query->machine, query->name});
}

static enum hx_code explain_entity(struct api_query *query, const struct unit_result *result, struct why *why,
				   struct arena *arena, struct slice *ret_status)
{
	const struct db_rows *rows = &result->rows[0];
	struct port_sight sight;

	(void)arena;
	query->detail = "there is no such entity";
	if (rows->n == 0)
		return HX_NOT_FOUND;
	sight = why_look(query, db_cell(rows, 0, ENTITY_SUBJECT)->i, db_cell(rows, 0, ENTITY_FENCE)->i);
	why_entity(why, query->machine->workflow, rows, &result->rows[WHY_LINE_EFFECTS], &sight,
		   clock_wall(api_parts(query->call)->clock).ms);
	*ret_status = db_cell(rows, 0, ENTITY_STATUS)->s;
	return HX_OK;
}

/* ---- the question ---- */

static const struct kind {
	const char *prefix;                                                       /* NULL: it has a name */
	void (*read)(struct unit *unit, struct slice workspace, int64_t subject); /* NULL: likewise */
	/* Sets the detail of a problem; the texts of the status may be in the rows or the arena. */
	enum hx_code (*explain)(struct api_query *query, const struct unit_result *result, struct why *why,
				struct arena *arena, struct slice *ret_status);
} kinds[] = {
	{"run", why_read_run, explain_run}, {"batch", batch_read, explain_batch},
	{"job", why_read_job, explain_job}, {"sched", read_schedule, explain_schedule},
	{NULL, NULL, explain_entity},
};

/* {"id", "status", "why", "reason"} */
static enum hx_code why_answered(struct api_query *query, const struct unit_result *result)
{
	const struct kind *kind = query->of;
	struct slice status = {NULL, 0};
	struct why why;
	enum hx_code code;

	LOCAL_ARENA(arena, ROW_BYTES_MAX);
	why_init(&why, engine_options_of(api_of(query->call)->engine)->node);
	code = kind->explain(query, result, &why, &arena, &status);
	if (!code) {
		strbuf_add_char(&query->text, '{');
		json_more_text(&query->text, "id", call_param(query->call, "id"));
		json_more_text(&query->text, "status", status);
		json_more_text(&query->text, "why", strbuf_slice(&why.words));
		json_more_text(&query->text, "reason", slice_str(why_reason_name(why.reason)));
		strbuf_add_char(&query->text, '}');
	}
	why_release(&why);
	return code;
}

void api_why(struct http_call *call)
{
	struct slice id = call_param(call, "id"), workflow = {NULL, 0}, name = {NULL, 0};
	const struct entity_machine *machine = NULL;
	const struct kind *kind = kinds;
	struct api_query *query;
	int64_t subject = 0;

	while (kind->prefix && !id_parse(kind->prefix, id, &subject))
		kind++;
	if (!kind->prefix && !api_entity_split(id, &workflow, &name)) {
		api_refuse(call, HX_NOT_FOUND, api_no_subject);
		return;
	}
	if (!kind->prefix)
		machine = api_machine_named(call, workflow);
	if (!kind->prefix && !machine) {
		api_no_workflow(call, workflow, "entity");
		return;
	}
	query = api_query_new(&(struct api_query){
		.call = call,
		.read = kind->read,
		.build = build_entity,
		.answered = why_answered,
		.of = kind,
		.subject = subject,
		.machine = machine,
		.name = name,
	});
	if (query)
		api_query_read(query);
}
