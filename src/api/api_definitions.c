/*
 * Definitions: the list, one in any of its versions, and a new version. Putting one waits for the store, so the engine does it in a
 * thread.
 */
#include "api/api_definitions.h"
#include "api/api_explore.h"

#include "api/api_dashboard.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "model/graph_picture.h"

#define FINDINGS_BYTES_MAX (64u << 20)

struct listing {
	struct strbuf text;
	bool whole; /* for admins: the texts, too */
};

/* A text names services, programs and, against all advice, keys in the clear: see the scope of api_definition_show. */
static void add_whole(const struct definition *d, struct strbuf *text)
{
	json_more_text(text, "module", slice_str(d->module));
	json_more_int(text, "steps", (int64_t)d->steps_n);
	json_more_json(text, "definition", d->text);
}

static void add_definition(void *context, const struct machine *machine)
{
	struct listing *listing = context;
	struct strbuf *text = &listing->text;
	const struct definition *d = machine->definition;

	strbuf_add_str(text, text->p[text->n - 1] == '[' ? "" : ",");
	strbuf_add_char(text, '{');
	json_more_text(text, "name", slice_str(d->name));
	json_more_text(text, "kind", slice_str(d->kind));
	json_more_int(text, "version", machine->version);
	if (listing->whole)
		add_whole(d, text);
	strbuf_add_char(text, '}');
}

void api_definition_list(struct http_call *call)
{
	struct listing listing = {.whole = call->scope == ROUTE_ADMIN};

	strbuf_init(&listing.text, API_TEXT_BYTES_MAX);
	strbuf_add_str(&listing.text, "{\"items\":[");
	definitions_each(api_parts(call)->definitions, add_definition, &listing);
	strbuf_add_str(&listing.text, "],\"cursor\":null}");
	api_answer(call, 200, &listing.text, 0);
}

/* ---- show ---- */

/* clang-format off */
DB_STMT(stmt_version, "definition_version", "ti", "ti",
	"SELECT text, at FROM hx_definition WHERE name = ?1 AND version = ?2");
enum { TEXT, AT };
/* clang-format on */

static void note_sought(void *context, const struct machine *machine)
{
	struct sought_definition *sought = context;

	if (!slice_is(sought->name, machine->definition->name))
		return;
	sought->definition = machine->definition;
	sought->version = machine->version;
}

static int64_t version_in_force(struct http_call *call, struct slice name)
{
	struct sought_definition sought = {.name = name};

	definitions_each(api_parts(call)->definitions, note_sought, &sought);
	return sought.version;
}

bool api_definition_sought(struct http_call *call, struct sought_definition *ret)
{
	*ret = (struct sought_definition){.name = call_param(call, "name")};
	definitions_each(api_parts(call)->definitions, note_sought, ret);
	if (!ret->definition)
		api_no_workflow(call, ret->name, /* kind= */ NULL);
	return ret->definition;
}

static void definitions_build_show(struct api_query *query, struct unit *unit)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_version, db_text(query->name), db_int(query->number));
}

static const char *nothing_words(const struct api_query *query)
{
	if (version_in_force(query->call, query->name))
		return "the workflow has no such version";
	return api_no_workflow_words(query->call, query->name, /* kind= */ NULL);
}

static enum hx_code definitions_answered_show(struct api_query *query, const struct unit_result *result)
{
	const struct db_rows *rows = &result->rows[0];
	struct json definition, kind;

	if (rows->n == 0) {
		query->detail = nothing_words(query);
		return HX_NOT_FOUND;
	}
	/* It was checked when it was put; that nobody has changed it since is what the store says. */
	if (json_check(db_cell(rows, 0, TEXT)->s, /* err= */ NULL, &definition) ||
	    !json_find(definition, slice_str("kind"), &kind))
		return HX_DATA_ERROR;
	query->etag = query->number;
	strbuf_add_char(&query->text, '{');
	json_more_text(&query->text, "name", query->name);
	json_more_json(&query->text, "kind", kind.raw);
	json_more_int(&query->text, "version", query->number);
	json_more_time(&query->text, "createdAt", db_cell(rows, 0, AT)->i);
	json_more_json(&query->text, "definition", definition.raw);
	strbuf_add_char(&query->text, '}');
	return HX_OK;
}

void api_definition_show(struct http_call *call)
{
	struct slice name = call_param(call, "name");
	struct api_query *query;
	int64_t version;

	if (!api_query_number(call, "version", /* otherwise= */ 0, INT64_MAX, &version))
		return;
	if (version == 0)
		version = version_in_force(call, name);
	if (version == 0) {
		api_no_workflow(call, name, /* kind= */ NULL);
		return;
	}
	query = api_query_new(&(struct api_query){.call = call,
						  .build = definitions_build_show,
						  .answered = definitions_answered_show,
						  .name = name,
						  .number = version});
	if (query)
		api_query_read(query);
}

/* ---- the picture ---- */

/* One at its limits takes most of a second to draw, which an event loop has not. */
#define PICTURE_STEPS_MAX 300

static void respond_picture(struct http_call *call, struct slice svg)
{
	const struct wire_field fields[] = {
		{slice_str("Content-Type"), slice_str("image/svg+xml")},
		{slice_str("Cache-Control"), slice_str("no-store")},
		/* Opened by itself it is a document: one that may do nothing. */
		{slice_str("Content-Security-Policy"),
		 slice_str("default-src 'none'; style-src 'unsafe-inline'; sandbox")},
		{slice_str("X-Content-Type-Options"), slice_str("nosniff")},
	};

	http_respond(
		call->exchange,
		&(struct http_answer){.status = 200, .fields = {fields, sizeof fields / sizeof *fields}, .body = svg});
}

typedef enum hx_code drawer(const struct definition *definition, struct strbuf *out, struct hx_error *err);

/* False after answering. */
static bool drawn(struct http_call *call, drawer *draw, struct strbuf *text)
{
	struct sought_definition sought;
	struct hx_error err;
	enum hx_code code;

	if (!api_definition_sought(call, &sought))
		return false;
	if (sought.definition->steps_n > PICTURE_STEPS_MAX)
		return api_refuse(call, HX_TOO_LARGE,
				  "it has too many steps to be drawn here: hapax graph FILE draws it");
	code = draw(sought.definition, text, &err);
	return !code || api_refuse(call, code, err.detail);
}

void api_definition_graph(struct http_call *call)
{
	LOCAL_STRBUF(svg, GRAPH_BYTES_MAX);
	if (drawn(call, graph_picture, &svg))
		respond_picture(call, strbuf_slice(&svg));
}

void api_definition_places(struct http_call *call)
{
	LOCAL_STRBUF(text, GRAPH_BYTES_MAX);
	if (drawn(call, graph_places, &text))
		api_respond_json(call, 200, &text, 0);
}

/* ---- put ---- */

static void add_findings(const struct findings *findings, struct strbuf *text)
{
	strbuf_add_str(text, "\"findings\":[");
	for (const struct finding *f = findings->first; f; f = f->next) {
		LOCAL_STRBUF(line, 4096);

		finding_print(f, &line);
		strbuf_add_str(text, f == findings->first ? "{" : ",{");
		json_more_word(text, "severity", finding_severity_name(f->severity));
		json_more_int(text, "line", (int64_t)f->line);
		json_more_word(text, "rule", f->rule ? f->rule : "");
		json_more_text(text, "text", strbuf_slice(&line));
		strbuf_add_char(text, '}');
	}
	strbuf_add_char(text, ']');
}

static void respond_put(struct http_call *call, enum hx_code code, const struct findings *findings, int64_t version,
			const struct hx_error *err)
{
	LOCAL_STRBUF(text, API_TEXT_BYTES_MAX);
	LOCAL_STRBUF(members, API_TEXT_BYTES_MAX);
	add_findings(findings, &members);
	if (code == HX_OK) {
		strbuf_add_char(&text, '{');
		json_more_text(&text, "name", call_param(call, "name"));
		json_more_int(&text, "version", version);
		strbuf_addf(&text, ",%s}", members.p);
		api_respond_json(call, 200, &text, version);
	} else {
		/* To the caller it is the definition that is wrong, not our configuration. */
		struct problem problem = {
			.code = code == HX_CONFIG_ERROR ? HX_DEFINITION_INVALID : code,
			.detail = slice_str(err->detail),
			.members = strbuf_slice(&members),
		};

		http_respond_problem(call->exchange, &problem);
	}
}

/* In the exchange's arena. The findings have one of their own, because the exchange's may be in use elsewhere. */
struct put_call {
	struct definition_put put;
	struct http_call *call;
	struct findings findings;
	struct arena arena;
};

static void put_done(struct definition_put *definition, enum hx_code code)
{
	struct put_call *put = (struct put_call *)definition;
	struct arena arena = put->arena;

	respond_put(put->call, code, &put->findings, definition->version, &definition->err);
	arena_release(&arena); /* our copy: the exchange has gone with the answer */
}

/* With whatever findings there are already. */
static void put_now(struct put_call *put)
{
	struct http_call *call = put->call;
	enum hx_code code;

	put->put = (struct definition_put){
		.name = call_param(call, "name"),
		.text = call->request->body,
		.findings = &put->findings,
		.done = put_done,
	};
	code = engine_put_definition(api_of(call)->engine, &put->put);
	if (code) {
		arena_release(&put->arena);
		http_respond_code(call->exchange, code,
				  code == HX_BUSY ? "another definition is being put: try again" : NULL);
	}
}

static void go_on_to_put(struct http_exchange *exchange UNUSED, void *data)
{
	put_now(data);
}

/* A rule is broken: nothing is put. */
static void refuse_explored(struct put_call *put, const struct explored *explored)
{
	struct problem problem = {.code = HX_DEFINITION_INVALID};
	struct arena arena;
	const char *words;

	LOCAL_STRBUF(members, API_TEXT_BYTES_MAX);
	api_explore_members(explored->report, &put->arena, &members, &words);
	problem.detail = slice_str(words);
	problem.members = strbuf_slice(&members);
	arena = put->arena; /* put is gone with the answer, whose texts are copied before that */
	http_respond_problem(put->call->exchange, &problem);
	arena_release(&arena);
}

/* In the explorer's thread: whatever is not refused goes on in the loop's. */
static void put_explored(void *context, const struct explored *explored)
{
	struct put_call *put = context;
	struct arena arena;

	if (explored->verdict == EXPLORED_BROKEN) {
		refuse_explored(put, explored);
		return;
	}
	if (explored->verdict == EXPLORED_PART)
		findings_add(&put->findings, (struct finding){.severity = FINDING_WARNING, .rule = "explore"},
			     "not all of it was explored in this time; nothing was found until then");
	if (explored->verdict != EXPLORED_FAILED && http_resume(put->call->exchange, go_on_to_put, put))
		return;
	arena = put->arena;
	http_respond_code(put->call->exchange, HX_BUSY, "it could not be explored, and was not put");
	arena_release(&arena);
}

void api_definition_put(struct http_call *call)
{
	struct put_call *put;
	int64_t explore_ms;

	if (!api_explore_wanted(call, "explore", &explore_ms) || !(put = api_alloc(call, sizeof *put)))
		return;
	put->call = call;
	arena_init(&put->arena, FINDINGS_BYTES_MAX);
	findings_init(&put->findings, &put->arena);
	if (!explore_ms) {
		put_now(put);
		return;
	}
	if (!api_explore_begin(call, &(const struct explore_wish){.text = call->request->body, .ms = explore_ms},
			       put_explored, put))
		arena_release(&put->arena);
}
