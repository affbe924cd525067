/*
 * For pages of the dashboard alone: functions, with who polls for them and what is due of them; bulks, the newest first; and what was
 * sent under which key by a step that is in doubt. All are of whoever asks: of his workspace.
 */
#include "api/api_dashboard.h"
#include "api/api_list.h"
#include "base/json_string.h"
#include "engine/runs.h"
#include "flow/batch_verb.h"
#include "flow/call_key.h"
#include "flow/run_ask.h"

/* ---- functions ---- */

#define DUE_MAX 1000     /* are counted */
#define WORKERS_MAX 1000 /* are told, of all functions together */

/* clang-format off */

/* A function is there once it was polled for. What is due of it is found by the index of turns. */
#define DUE "hx_function f WHERE f.workspace = ?1 AND f.name = p.name AND f.turn_at IS NOT NULL AND f.turn_at <= (SELECT hx_now_ms())"
DB_STMT(stmt_functions, "dashboard_functions", "ttii", "tiitii",
	"SELECT p.name, max(p.at), count(*), (SELECT v.version FROM hx_function_poll v WHERE v.workspace = ?1 AND v.name = p.name"
	" ORDER BY v.at DESC, v.version DESC LIMIT 1), (SELECT count(*) FROM (SELECT f.subject FROM " DUE " LIMIT ?4) x),"
	" (SELECT min(f.turn_at) FROM " DUE ")"
	" FROM hx_function_poll p WHERE p.workspace = ?1 AND p.name > ?2 GROUP BY p.name ORDER BY p.name LIMIT ?3");
enum { FUNCTION_NAME, POLLED_AT, VERSIONS, VERSION, TURNS_DUE, DUE_SINCE };

/* Those that have a turn now. */
DB_STMT(stmt_workers, "dashboard_workers", "ti", "tt",
	"SELECT DISTINCT f.name, f.worker FROM hx_subject s JOIN hx_function f ON f.subject = s.id"
	" WHERE s.owner IS NOT NULL AND f.workspace = ?1 AND f.worker IS NOT NULL ORDER BY f.name, f.worker LIMIT ?2");

/* clang-format on */

static void functions_build(struct api_query *query, struct unit *unit)
{
	struct db_value workspace = db_text(api_workspace(query->call));

	UNIT_ADD(unit, UNIT_ANY, &stmt_functions, workspace, db_text(query->after.p ? query->after : slice_str("")),
		 db_int(query->limit + 1), db_int(DUE_MAX));
	UNIT_ADD(unit, UNIT_ANY, &stmt_workers, workspace, db_int(WORKERS_MAX));
}

/* For the rows, which are written right after this. */
static enum hx_code functions_check(struct api_query *query, const struct unit_result *result)
{
	query->of = &result->rows[1];
	return HX_OK;
}

static void function_add(struct api_query *query, const struct db_rows *rows, size_t i)
{
	static const struct row_member members[] = {
		{"name", ROW_TEXT, .at = FUNCTION_NAME},
		{"polledAt", ROW_TIME, .at = POLLED_AT},
		{"version", ROW_TEXT, .at = VERSION},
		{"versions", ROW_INT, .at = VERSIONS},
		{"due", ROW_INT, .at = TURNS_DUE},
		{"dueSince", ROW_TIME, .at = DUE_SINCE},
		{.name = NULL},
	};
	const struct db_rows *workers = query->of;
	struct strbuf *text = &query->text;
	bool first = true;

	strbuf_add_char(text, '{');
	row_json_cells(text, members, rows, i);
	json_more(text, "workers");
	strbuf_add_char(text, '[');
	for (size_t w = 0; w < workers->n; w++) {
		if (!slice_eq(db_cell(workers, w, 0)->s, db_cell(rows, i, FUNCTION_NAME)->s))
			continue;
		strbuf_add_str(text, first ? "" : ",");
		json_quote(db_cell(workers, w, 1)->s, text);
		first = false;
	}
	strbuf_add_str(text, "]}");
}

const struct api_list api_function_list = {
	.build = functions_build,
	.cursor = CURSOR_TEXT,
	.column = FUNCTION_NAME,
	.check = functions_check,
	.add = function_add,
};

/* ---- bulks ---- */

DB_STMT(stmt_bulks, "dashboard_bulks", "tii", "ittttiii",
	"SELECT subject, state, verb, condition, requester, selected, created_at, completed_at FROM hx_bulk"
	" WHERE workspace = ?1 AND subject < ?2 ORDER BY subject DESC LIMIT ?3");
enum { BULK, STATE, VERB, CONDITION, REQUESTER, SELECTED, CREATED_AT, COMPLETED_AT };

static void bulks_build(struct api_query *query, struct unit *unit)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_bulks, db_text(api_workspace(query->call)), db_int(query->subject),
		 db_int(query->limit + 1));
}

static const struct row_member members[] = {
	{"id", ROW_ID, .at = BULK, .prefix = "bulk"},
	{"status", ROW_TEXT, .at = STATE},
	{"verb", ROW_TEXT, .at = VERB},
	{"where", ROW_TEXT, .at = CONDITION},
	{"requester", ROW_TEXT, .at = REQUESTER},
	{"selected", ROW_INT, .at = SELECTED},
	{"createdAt", ROW_TIME, .at = CREATED_AT},
	{"completedAt", ROW_TIME, .at = COMPLETED_AT},
	{.name = NULL},
};
const struct api_list api_bulk_list = {
	.build = bulks_build,
	LIST_BY_ID("bulk", BULK),
	.members = members,
};

/* ---- what was sent ---- */

#define SENT_BYTES_MAX (64u << 20)

/* step, key and body are of a call that is in doubt: with the key somebody can look on the other side. */
static void sent_write(struct strbuf *text, struct slice step, struct slice key, struct slice body, bool probe)
{
	json_more_text(text, "step", step);
	json_more_text(text, "key", key);
	json_more_json(text, "body", body);
	json_more_bool(text, "probe", probe);
}

static enum hx_code sent_of_run(struct api_query *query, const struct unit_result *result, struct arena *arena)
{
	static const struct row_member members[] = {
		{"attempt", ROW_INT, .at = offsetof(struct run_row, attempt)},
		{"startedAt", ROW_TIME, .at = offsetof(struct run_row, step_started_at)},
		{"trace", ROW_TEXT, .at = offsetof(struct run_row, trace)},
		{.name = NULL},
	};
	const struct run_policy *policy = api_parts(query->call)->run_policy;
	struct run_sent sent;
	struct run_row row;
	enum hx_code code = run_row_take(result, policy->machine_of, policy->context, arena, &row);

	if (!code)
		code = row.expired ? HX_NOT_FOUND : run_sent_of(&row, arena, &sent);
	if (code)
		return code == HX_CONFIG_ERROR ? HX_BUSY : code;
	strbuf_add_char(&query->text, '{');
	row_json_struct(&query->text, members, &row);
	json_more_bool(&query->text, "function",
		       db_cell(&result->rows[0], 0, RUN_DEFINITION_VERSION)->i == RUN_FUNCTION);
	sent_write(&query->text, sent.step ? slice_str(sent.step->name) : slice_of(NULL, 0), sent.key, sent.body,
		   sent.action && row.undo < 0 && sent.action->probe);
	strbuf_add_char(&query->text, '}');
	return HX_OK;
}

static enum hx_code sent_answered(struct api_query *query, const struct unit_result *result)
{
	struct arena arena;
	enum hx_code code;

	arena_init(&arena, SENT_BYTES_MAX);
	code = sent_of_run(query, result, &arena);
	arena_release(&arena);
	return code;
}

void api_run_sent(struct http_call *call)
{
	struct api_query sent = {.call = call, .read = run_read, .answered = sent_answered};
	struct api_query *query;

	if (!api_run_id(call, &sent.subject))
		return;
	query = api_query_new(&sent);
	if (query)
		api_query_read(query);
}

static void claim_build(struct api_query *query, struct unit *unit)
{
	entity_read(unit,
		    &(struct entity_ref){.machine = query->machine,
					 .workspace = api_workspace(query->call),
					 .name = call_param(query->call, "id")},
		    slice_str(""));
}

/* Of a claim that is held. */
static enum hx_code claim_answered(struct api_query *query, const struct unit_result *result)
{
	const struct db_rows *rows = &result->rows[0];
	const struct workflow *w = query->machine->workflow;
	struct slice key = {0}, step = {0}, input = {0};
	bool probe = false;

	if (rows->n == 0)
		return HX_NOT_FOUND;
	if (slice_is(db_cell(rows, 0, ENTITY_OWNER)->s, SUBJECT_HELD)) {
		struct slice requester = db_cell(rows, 0, ENTITY_CLAIM_REQUESTER)->s;
		const struct step *claimed;

		step = db_cell(rows, 0, ENTITY_CLAIM_STEP)->s;
		input = db_cell(rows, 0, ENTITY_CLAIM_INPUT)->s;
		if (db_cell(rows, 0, ENTITY_CLAIM_EFFORT)->type ==
		    DB_INT) /* an older program's, or put away: not known */
			key = entity_call_key(db_cell(rows, 0, ENTITY_SUBJECT)->i,
					      db_cell(rows, 0, ENTITY_CLAIM_EFFORT)->i, step, query->call->arena);
		claimed = workflow_step(w, step, db_cell(rows, 0, ENTITY_CLAIM_FROM)->s, requester);
		if (claimed) {
			const struct action *action = workflow_view(w, claimed, requester)->action;

			probe = action && action->probe;
		}
	}
	strbuf_add_char(&query->text, '{');
	sent_write(&query->text, step, key, input, probe);
	strbuf_add_char(&query->text, '}');
	return HX_OK;
}

void api_entity_sent(struct http_call *call)
{
	struct api_query sent = {
		.call = call, .build = claim_build, .answered = claim_answered, .machine = api_machine(call)};
	struct api_query *query = sent.machine ? api_query_new(&sent) : NULL;

	if (query)
		api_query_read(query);
}

static void sent_build_item(struct api_query *query, struct unit *unit)
{
	batch_read(unit, api_workspace(query->call), query->subject);
	item_read(unit, query->subject, query->number);
}

static enum hx_code sent_of_item(struct api_query *query, const struct unit_result *result)
{
	struct arena *arena = query->call->arena;
	const struct batch_policy *policy = api_parts(query->call)->batch_policy;
	struct slice key = {0}, body = {0};
	struct batch_item_row item;
	struct batch_hold hold;
	struct batch_row row;

	if (result->rows[0].n == 0 || result->rows[1].n == 0)
		return HX_NOT_FOUND;
	batch_row_take(&result->rows[0], 0, policy, arena, &row);
	batch_hold_of(&row, policy, arena, &hold);
	batch_item_row_take(&result->rows[1], 0, arena, &item);
	if (!hold.machine)
		return HX_BUSY;
	if (slice_is(slice_str(item.status), ITEM_UNKNOWN)) {
		key = batch_item_key(row.subject, item.n, /* suffix= */ NULL, 0, arena);
		body = batch_call_body(&hold, "item", &(struct batch_call_item){.n = item.n, .input = item.input},
				       arena);
	}
	strbuf_add_char(&query->text, '{');
	sent_write(&query->text, slice_str("item"), key, body, hold.machine->definition->item_action->probe);
	strbuf_add_char(&query->text, '}');
	return arena->failed ? HX_TOO_LARGE : HX_OK;
}

void api_item_sent(struct http_call *call)
{
	struct api_query sent = {.call = call, .build = sent_build_item, .answered = sent_of_item};
	struct api_query *query;

	if (!api_batch_item(call, &sent.subject, &sent.number))
		return;
	query = api_query_new(&sent);
	if (query)
		api_query_read(query);
}
