/* See api_search.h. */
#include "api/api_search.h"

#include "base/json_string.h"
#include "engine/definitions.h"
#include "engine/readers.h"
#include "flow/run.h"
#include "model/nearest.h"
#include "wire/loop.h"

#define CREATED "createdAt"
#define ORDERS " or an attribute, with - before it the last first"

struct searching {
	struct search_page page; /* first: a task is known by its address */
	struct seat seat;
	struct http_call *call;
	const char *const *statuses;
	struct api_query query; /* what the list reads of its own, and what it writes a row into */
};

bool api_search_wanted(const struct http_call *call)
{
	return query_find(&call->query, "where", NULL) || query_find(&call->query, "order", NULL);
}

/* ---- the condition ---- */

bool api_bad_query(struct http_call *call, const struct hx_error *err, size_t column)
{
	struct problem problem = {.code = err->code, .detail = slice_str(err->detail)};
	char members[48];

	snprintf(members, sizeof members, "\"position\":%zu", column);
	if (err->code == HX_BAD_QUERY && column)
		problem.members = slice_str(members);
	http_respond_problem(call->exchange, &problem);
	return false;
}

bool api_where(struct http_call *call, enum where_kind of, const char *const *statuses, struct slice text,
	       const struct where **ret)
{
	struct where_names names = {of, statuses};
	struct hx_error err;
	size_t column = 0;

	return !where_parse(text, &names, call->arena, &err, &column, ret) || api_bad_query(call, &err, column);
}

struct names {
	const char **list;
	size_t n, room;
};

static void add_names_of(struct names *names, const struct attributes *attributes)
{
	for (size_t i = 0; i < attributes->n; i++) {
		if (names->list && names->n < names->room)
			names->list[names->n] = attributes->list[i].name;
		names->n++;
	}
}

static void add_run_names(void *context, const struct machine *machine)
{
	if (machine->run)
		add_names_of(context, &machine->run->definition->attributes);
	else if (machine->function)
		add_names_of(context, &machine->function->definition->attributes);
}

static void add_batch_names(void *context, const struct machine *machine)
{
	if (machine->batch)
		add_names_of(context, &machine->batch->definition->attributes);
}

static void find_names(struct http_call *call, enum where_kind of, const struct workflow *workflow, struct names *names)
{
	if (workflow)
		add_names_of(names, &workflow->attributes);
	else if (of == WHERE_RUN || of == WHERE_BATCH)
		definitions_each(api_parts(call)->definitions, of == WHERE_RUN ? add_run_names : add_batch_names,
				 names);
}

/* Definitions may come into force between the two looks: what is beyond the room is found by the index, as every other name. */
const char *const *api_attributes(struct http_call *call, enum where_kind of, const struct workflow *workflow)
{
	struct names names = {0};

	find_names(call, of, workflow, &names);
	names = (struct names){api_alloc(call, (names.n + 1) * sizeof *names.list), 0, names.n};
	if (names.list)
		find_names(call, of, workflow, &names);
	return names.list;
}

/* ---- the query ---- */

static bool get(struct http_call *call, const char *name, struct slice *ret)
{
	struct hx_error err;

	if (!query_get(&call->query, name, &err, ret))
		return true;
	http_respond_error(call->exchange, &err);
	return false;
}

static bool read_where(struct searching *s)
{
	struct slice text = {NULL, 0};

	if (!get(s->call, "where", &text))
		return false;
	return !text.p || api_where(s->call, s->page.search.of, s->statuses, text, &s->page.search.where);
}

static bool read_order(struct searching *s)
{
	struct search *search = &s->page.search;
	struct slice text = {NULL, 0};
	struct hx_error err;

	if (!get(s->call, "order", &text))
		return false;
	search->up = text.n && text.p[0] != '-';
	if (text.n && !search->up)
		text = slice_from(text, 1);
	if (!text.p || slice_is(text, CREATED))
		return true;
	if (slice_in(text, search->known)) {
		search->order = text;
		return true;
	}
	/* What changes with every step has no index: one would be written with each transition (flow/page.h). */
	if (slice_in(text, where_field_names(search->of)))
		error_set(&err, HX_BAD_QUERY, "order: nothing is kept in the order of \"%s\"; it is " CREATED ORDERS,
			  excerpt_of(text).text);
	else
		error_set(&err, HX_BAD_QUERY, "order: there is no attribute \"%s\"%s; it is " CREATED ORDERS,
			  excerpt_of(text).text, nearest_words(text, search->known, "\"", "\"").text);
	return api_bad_query(s->call, &err, 0);
}

static bool refuse_cursor(const struct searching *s)
{
	return api_refuse(s->call, HX_VALIDATION_ERROR, "this is no cursor of this list");
}

static bool read_cursor(struct searching *s)
{
	struct search_place *after = &s->page.search.after;
	struct slice text = {NULL, 0}, value = {NULL, 0};
	const char *dot;

	if (!get(s->call, "cursor", &text))
		return false;
	if (!text.n)
		return true;
	dot = memchr(text.p, '.', text.n);
	if (dot) {
		value = slice_from(text, (size_t)(dot - text.p) + 1);
		text.n = (size_t)(dot - text.p);
	}
	if (!id_parse(s->query.list->prefix, text, &after->id) || (dot != NULL) != (s->page.search.order.n > 0) ||
	    value.n >= sizeof after->value)
		return refuse_cursor(s);
	if (value.n)
		memcpy(after->value, value.p, value.n);
	after->value_n = value.n;
	return true;
}

/* What the list filters by besides. */
static bool read_filters(struct searching *s)
{
	struct search *search = &s->page.search;

	if (!api_list_read(s->call, s->query.list, &s->query))
		return false;
	if (s->query.held)
		return api_invalid(s->call, "%s goes without where and order", s->query.machine ? "held" : "unknown");
	search->status = s->query.status_wanted;
	search->workflow = s->query.machine ? slice_str(s->query.machine->workflow->name) : s->query.name;
	search->parent = s->query.parent;
	s->page.limit = s->query.limit;
	return true;
}

/* ---- the page ---- */

static void add_cursor(struct searching *s)
{
	const struct search_place *next = &s->page.next;

	if (!s->page.more) {
		json_more_json(&s->query.text, "cursor", slice_of(NULL, 0));
		return;
	}
	LOCAL_STRBUF(cursor, sizeof next->value + ID_TEXT_BYTES + 1);
	strbuf_add_str(&cursor, id_text(s->query.list->prefix, next->id).text);
	if (s->page.search.order.n) {
		strbuf_add_char(&cursor, '.');
		strbuf_add_slice(&cursor, slice_of(next->value, next->value_n));
	}
	json_more(&s->query.text, "cursor");
	json_quote(strbuf_slice(&cursor), &s->query.text);
}

static void show(struct search_page *page, const struct db_rows *rows)
{
	struct searching *s = (struct searching *)page;
	bool more = false;

	strbuf_add_str(&s->query.text, "{\"items\":[");
	for (size_t n = 0; n < page->ids_n; n++) {
		size_t i = search_page_row(page, rows, s->query.list->search->column, n);

		if (i == rows->n)
			continue;
		strbuf_add_str(&s->query.text, more ? "," : "");
		s->query.list->add(&s->query, rows, i);
		more = true;
	}
	strbuf_add_char(&s->query.text, ']');
	add_cursor(s);
	strbuf_add_char(&s->query.text, '}');
}

static void done(struct seat *seat, enum hx_code code)
{
	struct searching *s = CONTAINER_OF(seat, struct searching, seat);
	const struct search_page *page = &s->page;
	struct strbuf text = s->query.text;
	struct hx_error err;
	size_t column = 0;

	if (code == HX_BAD_QUERY) {
		(void)where_refuse_name(page->search.where, page->unknown, page->search.known, &err, &column);
		api_bad_query(s->call, &err, column);
	} else if (code) {
		http_respond_code(s->call->exchange, code, NULL);
	} else {
		api_respond_json(s->call, 200, &text, /* etag_version= */ 0);
	}
	strbuf_release(&text);
}

/* Ends with NULL; NULL after answering. */
static const char *const *statuses_of(struct http_call *call, const struct api_search *how,
				      const struct entity_machine *machine)
{
	return machine ? api_statuses(call, machine->workflow) : how->statuses;
}

void api_search(struct http_call *call, const struct api_list *list, const struct entity_machine *machine)
{
	struct searching *s = api_alloc(call, sizeof *s);
	const struct api_search *how = list->search;
	enum hx_code code;

	if (!s)
		return;
	s->call = call;
	s->query = (struct api_query){.call = call, .list = list, .machine = machine};
	s->statuses = statuses_of(call, how, machine);
	s->page.search = (struct search){
		.of = how->of, .workspace = api_workspace(call), .kind = machine ? machine->kind : how->kind()};
	s->page.search.known = s->statuses ? api_attributes(call, how->of, machine ? machine->workflow : NULL) : NULL;
	if (!s->page.search.known || !read_filters(s) || !read_where(s) || !read_order(s) || !read_cursor(s))
		return;
	s->page.arena = call->arena;
	s->page.read = how->read;
	s->page.show = show;
	strbuf_init(&s->query.text, API_TEXT_BYTES_MAX);
	search_page_init(&s->page);
	s->seat = (struct seat){.task = &s->page.task, .done = done, .tenant = unit_tenant(api_workspace(call))};
	code = readers_submit(api_parts(call)->readers, &s->seat);
	if (code)
		done(&s->seat, code);
}
