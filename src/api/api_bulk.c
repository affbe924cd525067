/* Bulks: asked for, shown, listed item by item, cancelled. See flow/bulk.h; who carries them out is engine/bulks.c. */
#include "api/api_list.h"
#include "api/api_search.h"
#include "api/api_wait.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "engine/definitions.h"
#include "engine/readers.h"
#include "flow/bulk_hand.h"
#include "flow/bulk_select.h"

#define TASK_BYTES_MAX (64u << 20)
#define ROW_BYTES_MAX (4u << 20)
#define ARGUMENTS_BYTES_MAX (1u << 20)

static const char no_bulk[] = "there is no such bulk";
static const char expired[] = "the bulk has ended long ago, and only its key is kept";

static bool bulk_id(struct http_call *call, int64_t *ret_subject)
{
	return api_id(call, "bulk", no_bulk, ret_subject);
}

#define AT(field) .at = offsetof(struct bulk_row, field)

static const struct row_member bulk_members[] = {
	{"id", ROW_ID, AT(spec.subject), .prefix = "bulk"},
	{"status", ROW_TEXT, AT(state)},
	{"verb", ROW_TEXT, AT(spec.verb)},
	{"kind", ROW_TEXT, AT(spec.kind)},
	{"where", ROW_TEXT, AT(spec.condition)},
	{"arguments", ROW_JSON, AT(spec.arguments)},
	{"idempotencyKey", ROW_TEXT, AT(spec.key)},
	{"requester", ROW_TEXT, AT(spec.requester)},
	ROW_SAME(INT, selected),
	ROW_SAME(INT, done),
	ROW_SAME(INT, unchanged),
	ROW_SAME(INT, refused),
	ROW_SAME(INT, skipped),
	ROW_SAME(INT, cancelled),
	{"createdAt", ROW_TIME, AT(created_at)},
	{"completedAt", ROW_TIME, AT(completed_at)},
	{.name = NULL},
};

static void write_bulk(const struct bulk_row *row, struct strbuf *text)
{
	row_json_object(text, bulk_members, row);
}

/* ---- asking for one ---- */

struct bulk_call {
	struct api_task task;
	struct bulk_select select;
};

static bool read_verb(struct http_call *call, struct json body, struct bulk_spec *spec)
{
	return api_name_member(call, body, "verb", "verb is a string: what is done to each", &spec->verb) &&
	       api_name_member(call, body, "kind", "kind is a string: run, batch, entity or job", &spec->kind) &&
	       api_word_checked(call, spec->kind, bulk_kinds, "kind", HX_VALIDATION_ERROR) &&
	       api_word_checked(call, spec->verb, bulk_noun(spec->kind)->verbs, "verb of this kind",
				HX_VALIDATION_ERROR);
}

static bool read_arguments(struct http_call *call, struct json body, struct bulk_spec *spec)
{
	struct run_verb_request rq = {0};
	struct json value;
	const char *words;

	spec->arguments = slice_str("{}");
	if (json_find(body, slice_str("arguments"), &value)) {
		if (json_type(value) != JSON_OBJECT || value.raw.n > ARGUMENTS_BYTES_MAX)
			return api_invalid(call, "arguments is an object of at most 1 MiB");
		spec->arguments = value.raw;
	}
	return bulk_request(spec, call->arena, &rq, &words) || api_invalid(call, "%s", words);
}

static bool refuse_where(struct http_call *call, const char *words)
{
	struct hx_error err;

	error_set(&err, HX_BAD_QUERY, "%s", words);
	return api_bad_query(call, &err, 0);
}

/* Statuses and attributes of entities are those of their workflow, so the condition says which one it is. */
static bool check_entities(struct http_call *call, const struct bulk_spec *spec, struct search *search)
{
	const struct entity_machine *machine;
	const char *const *statuses;

	if (!search->workflow.n)
		return refuse_where(call, "of entities, where says of which workflow: workflow == \"…\" and …");
	machine = definitions_find(api_parts(call)->definitions, search->workflow);
	if (!machine) {
		api_no_workflow(call, search->workflow, "entity");
		return false;
	}
	if (machine->table)
		return refuse_where(call, "entities of this workflow live in a table of yours: ask that");
	statuses = api_statuses(call, machine->workflow);
	search->known = api_attributes(call, search->of, machine->workflow);
	return statuses && search->known && api_where(call, search->of, statuses, spec->condition, &search->where);
}

static bool read_where(struct http_call *call, const struct bulk_spec *spec, struct search *search)
{
	const struct bulk_noun *noun = bulk_noun(spec->kind);
	const struct where *where;

	if (!api_where(call, noun->of, noun->statuses, spec->condition, &where))
		return false;
	*search = bulk_search(spec, where);
	if (noun->of == WHERE_ENTITY)
		return check_entities(call, spec, search);
	search->known = api_attributes(call, search->of, /* workflow= */ NULL);
	return search->known;
}

static bool read_bulk(struct http_call *call, struct bulk_call *c)
{
	static const char *const known[] = {"verb", "kind", "where", "arguments", "dryRun", "idempotencyKey", NULL};
	struct bulk_spec *spec = &c->select.spec;
	struct json body, value;

	if (!api_body(call, known, &body) || !read_verb(call, body, spec) || !read_arguments(call, body, spec) ||
	    !api_bool(call, body, "dryRun", &c->select.dry))
		return false;
	if (!json_find(body, slice_str("where"), &value) || json_type(value) != JSON_STRING)
		return api_invalid(call, "where is a string: the condition, which cannot be left out");
	spec->condition = json_string_decode(value, call->arena);
	spec->workspace = api_workspace(call);
	spec->requester = api_requester(call);
	if (!spec->condition.p || !read_where(call, spec, &c->select.search))
		return false;
	return !json_find(body, slice_str("idempotencyKey"), &value) ||
	       api_key_checked(call, value, "idempotencyKey", &spec->key);
}

static bool is_same(const struct bulk_spec *a, const struct bulk_spec *b)
{
	return slice_eq(a->verb, b->verb) && slice_eq(a->kind, b->kind) && slice_eq(a->condition, b->condition) &&
	       slice_eq(a->arguments, b->arguments);
}

static void write_started(const void *of, struct strbuf *text)
{
	const struct bulk_select *s = of;

	strbuf_add_char(text, '{');
	if (s->dry)
		json_more_bool(text, "dryRun", true);
	else
		json_more_id(text, "id", "bulk", s->row.spec.subject);
	json_more_int(text, "selected", s->row.selected);
	strbuf_add_char(text, '}');
}

static void bulk_selected(struct seat *seat, enum hx_code code)
{
	struct bulk_call *c = (struct bulk_call *)seat;
	struct bulk_select *s = &c->select;
	struct http_call *call = c->task.call;
	struct hx_error err;
	size_t column = 0;

	if (code == HX_BAD_QUERY) {
		(void)where_refuse_name(s->search.where, s->unknown, s->search.known, &err, &column);
		(void)api_bad_query(call, &err, column);
		api_task_free(&c->task);
		return;
	}
	/* It is there, and whoever has gone on with it selects the rest. */
	if (code == HX_CLAIM_FAILED)
		code = HX_OK;
	if (!code && s->existed && s->row.expired)
		code = HX_RUN_EXPIRED;
	else if (!code && s->existed && !is_same(&s->spec, &s->row.spec))
		code = HX_KEY_REUSED;
	api_task_end(&c->task, code,
		     code == HX_KEY_REUSED    ? "this key has another bulk"
		     : code == HX_RUN_EXPIRED ? expired
					      : NULL,
		     &(struct api_told){s->dry ? 200 : 202, 0, write_started, s});
}

void api_bulk_create(struct http_call *call)
{
	struct bulk_call *c = api_task_new(call, sizeof *c, TASK_BYTES_MAX, bulk_selected);
	enum hx_code code;

	if (!c)
		return;
	if (!read_bulk(call, c)) {
		api_task_free(&c->task);
		return;
	}
	c->select.arena = &c->task.arena;
	bulk_select_init(&c->select);
	if (!c->select.dry) {
		api_task_start(&c->task, &c->select.task, (uint64_t)(uintptr_t)c);
		return;
	}
	c->task.seat.task = &c->select.task;
	c->task.seat.tenant = unit_tenant(api_workspace(call));
	code = readers_submit(api_parts(call)->readers, &c->task.seat);
	if (code)
		bulk_selected(&c->task.seat, code);
}

/* ---- showing ---- */

static enum hx_code add_bulk(const struct db_rows *rows, struct strbuf *text, bool *ret_over)
{
	struct bulk_row row;
	LOCAL_ARENA(arena, ROW_BYTES_MAX);

	if (!bulk_row_take(rows, &arena, &row))
		return HX_NOT_FOUND;
	if (row.expired)
		return HX_RUN_EXPIRED;
	write_bulk(&row, text);
	*ret_over = row.completed_at != 0;
	return arena.failed ? HX_TOO_LARGE : HX_OK;
}

static enum hx_code show_bulk(struct api_wait *wait, const struct unit_result *result)
{
	return add_bulk(&result->rows[0], &wait->text, &wait->over);
}

static const char *bulk_detail(enum hx_code code)
{
	return code == HX_NOT_FOUND ? no_bulk : code == HX_RUN_EXPIRED ? expired : NULL;
}

void api_bulk_show(struct http_call *call)
{
	static const struct api_wait_kind kind = {
		.read = bulk_read_counted, .show = show_bulk, .topic = subject_end_topic, .detail = bulk_detail};
	struct api_wait wait = {.kind = &kind, .call = call};

	if (api_wait_parse(call, &wait.wait_ms) && bulk_id(call, &wait.subject))
		api_wait_start(&wait);
}

static void build_cancel(struct api_query *query, struct unit *unit)
{
	bulk_cancel(unit, api_workspace(query->call), query->subject);
	bulk_read_counted(unit, api_workspace(query->call), query->subject);
}

static enum hx_code answered_cancel(struct api_query *query, const struct unit_result *result)
{
	enum hx_code code;
	bool over;

	code = add_bulk(&result->rows[1], &query->text, &over);
	query->detail = bulk_detail(code);
	return code;
}

void api_bulk_cancel(struct http_call *call)
{
	static const char *const none[] = {NULL};
	struct api_query query = {.call = call, .build = build_cancel, .answered = answered_cancel};
	struct json body;

	if (bulk_id(call, &query.subject) && api_body(call, none, &body))
		api_query_ask(&query, (uint64_t)query.subject);
}

/* ---- items ---- */

static void build_bulk_items(struct api_query *query, struct unit *unit)
{
	bulk_read(unit, api_workspace(query->call), query->subject);
	bulk_list_items(unit, api_workspace(query->call), query->subject, query->number, query->limit + 1);
}

static enum hx_code check_bulk(struct api_query *query, const struct unit_result *result)
{
	enum hx_code code = HX_NOT_FOUND;
	struct bulk_row row;

	LOCAL_ARENA(arena, ROW_BYTES_MAX);
	if (bulk_row_take(&result->rows[0], &arena, &row)) {
		code = row.expired ? HX_RUN_EXPIRED : HX_OK;
		query->of = bulk_noun(row.spec.kind) ? bulk_noun(row.spec.kind)->kind : "run";
	}
	query->detail = bulk_detail(code);
	return code;
}

/* By the name that its history has. */
static void add_entity(struct strbuf *text, const struct db_value *workflow, const struct db_value *name)
{
	LOCAL_STRBUF(subject, 2 * ENTITY_NAME_MAX + 16);

	if (name->type != DB_NULL)
		strbuf_addf(&subject, "entity:%.*s:%.*s", SLICE_ARGS(workflow->s), SLICE_ARGS(name->s));
	json_more_text(text, "subject", strbuf_slice(&subject));
}

static void add_bulk_item(struct api_query *query, const struct db_rows *rows, size_t i)
{
	const struct db_value *result = db_cell(rows, i, BULK_ITEM_RESULT), *code = db_cell(rows, i, BULK_ITEM_CODE);
	struct strbuf *text = &query->text;

	strbuf_add_char(text, '{');
	if (strcmp(query->of, "entity") == 0)
		add_entity(text, db_cell(rows, i, BULK_ITEM_WORKFLOW), db_cell(rows, i, BULK_ITEM_NAME));
	else
		json_more_id(text, "subject", query->of, db_cell(rows, i, BULK_ITEM_SUBJECT)->i);
	json_more_text(text, "result", result->type == DB_NULL ? slice_of(NULL, 0) : result->s);
	if (code->type != DB_NULL)
		json_more_text(text, "code", code->s);
	strbuf_add_char(text, '}');
}

const struct api_list api_bulk_items = {
	.owner = bulk_id,
	.build = build_bulk_items,
	.line = 1,
	.cursor = CURSOR_NUMBER,
	.column = BULK_ITEM_N,
	.at_next = true,
	.check = check_bulk,
	.add = add_bulk_item,
};
