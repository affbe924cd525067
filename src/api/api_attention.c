/* GET /attention: what waits for a person, of every kind, the oldest first, or that with the most money (flow/attention.h). */
#include "api/api_list.h"
#include "base/json_walk.h"
#include "base/sortable.h"
#include "flow/attention.h"
#include "gate/sight.h"

static void attention_build_list(struct api_query *query, struct unit *unit)
{
	struct slice workspace = api_workspace(query->call);

	attention_list(unit,
		       &(struct attention_filter){
			       .workspace = workspace,
			       .kind = query->name,
			       .place = query->number,
			       .subject = query->subject,
			       .limit = query->limit + 1,
			       .by_money = slice_is(query->status_wanted, "money"),
			       .operator_asks = query->call->scope == ROUTE_ADMIN && slice_is(workspace, "default"),
		       });
}

/* How ids of such subjects begin; NULL: an entity, which has a name. */
static const char *prefix_of(struct slice kind)
{
	if (slice_is(kind, "held_claim"))
		return NULL;
	return slice_is(kind, "parked_job") || slice_is(kind, "parked_after_effect") ? "job"
	       : slice_is(kind, "late_schedule")                                     ? "sched"
	       : slice_is(kind, "unknown_items") || slice_is(kind, "stuck_teardown") ? "batch"
										     : "run";
}

/* As `hapax why` takes it. */
static void add_id(struct strbuf *text, const char *prefix, const struct db_rows *rows, size_t i)
{
	if (prefix) {
		json_more_id(text, "id", prefix, db_cell(rows, i, ATTENTION_SUBJECT)->i);
		return;
	}
	LOCAL_STRBUF(name, 4096);
	strbuf_addf(&name, "entity:%.*s:%.*s", SLICE_ARGS(db_cell(rows, i, ATTENTION_WORKFLOW)->s),
		    SLICE_ARGS(db_cell(rows, i, ATTENTION_NAME)->s));
	json_more_text(text, "id", strbuf_slice(&name));
}

/* The error of a run says both: at which step, and what. Other errors are as somebody wrote them, whatever they look like. */
static void add_reason(struct strbuf *text, bool of_run, const struct db_rows *rows, size_t i)
{
	static const struct row_member step[] = {{"step", ROW_NAME, .at = ATTENTION_STEP}, {.name = NULL}};
	static const struct row_member detail[] = {{"detail", ROW_NAME, .at = ATTENTION_DETAIL}, {.name = NULL}};
	const struct db_value *error_text = db_cell(rows, i, ATTENTION_DETAIL);
	struct json error = {0}, where, what;

	if (!of_run || error_text->type == DB_NULL || json_check(error_text->s, /* err= */ NULL, &error) ||
	    json_type(error) != JSON_OBJECT || !json_find(error, slice_str("message"), &what)) {
		row_json_cells(text, step, rows, i);
		row_json_cells(text, detail, rows, i);
		return;
	}
	if (db_cell(rows, i, ATTENTION_STEP)->type != DB_NULL || !json_find(error, slice_str("step"), &where))
		row_json_cells(text, step, rows, i);
	else
		json_more_json(text, "step", where.raw);
	json_more_json(text, "detail", what.raw);
}

/* Of an attribute it is exact; what has none is null. */
static void add_money(struct strbuf *text, const struct db_rows *rows, size_t i)
{
	const struct db_value *amount = db_cell(rows, i, ATTENTION_AMOUNT);
	int64_t money = db_cell(rows, i, ATTENTION_MONEY)->i;

	json_more(text, "money");
	if (amount->type != DB_NULL && amount->s.n && amount->s.p[0] == SORTABLE_NUMBER &&
	    sortable_json(amount->s, text))
		return;
	if (money)
		strbuf_add_int(text, money);
	else
		strbuf_add_str(text, "null");
}

/* A request that a gate holds: what it is called by, and all that is known of it. */
static void add_request(struct strbuf *text, const struct db_rows *rows, size_t i)
{
	static const struct row_member place[] = {{"version", ROW_INT, .at = ATTENTION_VERSION}, {.name = NULL}};
	static const struct row_member since[] = {{"since", ROW_TIME, .at = ATTENTION_SINCE}, {.name = NULL}};
	struct gate_sight sight;

	gate_read_sight(rows, i, ATTENTION_RECORD, &sight);
	json_more_word(text, "id", sight.key_text[0] ? sight.key_text : "-");
	json_more_word(text, "workflow", NULL);
	json_more_word(text, "status", "held");
	row_json_cells(text, place, rows, i);
	json_more_word(text, "step", sight.endpoint);
	json_more_word(text, "detail", "a gate has sent it, and knows of no answer");
	row_json_cells(text, since, rows, i);
	json_more_word(text, "money", NULL);
	json_more(text, "request");
	gate_sight_json(text, &sight);
}

static void attention_add_item(struct api_query *query, const struct db_rows *rows, size_t i)
{
	static const struct row_member kind[] = {{"kind", ROW_TEXT, .at = ATTENTION_KIND}, {.name = NULL}};
	static const struct row_member where[] = {{"workflow", ROW_NAME, .at = ATTENTION_WORKFLOW},
						  {"status", ROW_NAME, .at = ATTENTION_STATUS},
						  {"version", ROW_INT, .at = ATTENTION_VERSION},
						  {.name = NULL}};
	static const struct row_member since[] = {{"since", ROW_TIME, .at = ATTENTION_SINCE}, {.name = NULL}};
	const char *prefix = prefix_of(db_cell(rows, i, ATTENTION_KIND)->s);
	struct strbuf *text = &query->text;

	strbuf_add_char(text, '{');
	row_json_cells(text, kind, rows, i);
	if (slice_is(db_cell(rows, i, ATTENTION_KIND)->s, "held_request")) {
		add_request(text, rows, i);
	} else {
		add_id(text, prefix, rows, i);
		row_json_cells(text, where, rows, i);
		add_reason(text, prefix && strcmp(prefix, "run") == 0, rows, i);
		row_json_cells(text, since, rows, i);
		add_money(text, rows, i);
	}
	strbuf_add_char(text, '}');
}

static const char *const orders[] = {"age", "money", NULL};

const struct api_list api_attention = {
	.build = attention_build_list,
	.filters = {FILTER_WORD("kind", name, attention_kinds, "kind of what waits"),
		    FILTER_WORD("order", status_wanted, orders, "order")},
	.cursor = CURSOR_PLACE,
	.column = ATTENTION_PLACE,
	.column_subject = ATTENTION_SUBJECT,
	.start = INT64_MIN,
	.add = attention_add_item,
};
