/*
 * See api_dashboard.h. What a browser is told with each file, so that a mistake in the page is not yet a hole:
 *
 *   Content-Security-Policy   scripts, styles, pictures and calls of this server alone, nothing inline, no text becomes code
 *                             (trusted types), no form leads anywhere, and nobody frames it
 *   nosniff, no-referrer      a file is what it is said to be; nobody learns ids from where a link was clicked
 *   same-origin (both)        no other page opens this one and keeps a hand on it, or reads its files
 *   no-cache                  a browser asks each time, and is told 304: a page and its server are of one version
 */
#include "api/api_dashboard.h"

#include "api/api.h"
#include "api/api_changes.h"
#include "api/api_explore.h"
#include "api/api_list.h"
#include "api/api_vitals.h"

#define POLICY                                                                                                         \
	"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"                 \
	" base-uri 'none'; form-action 'none'; frame-ancestors 'none';"                                                \
	" require-trusted-types-for 'script'; trusted-types 'none'"

static const char *const said_of_all[][2] = {
	{"Content-Security-Policy", POLICY},
	{"X-Content-Type-Options", "nosniff"},
	{"X-Frame-Options", "DENY"}, /* for those that do not know frame-ancestors */
	{"Referrer-Policy", "no-referrer"},
	{"Cross-Origin-Opener-Policy", "same-origin"},
	{"Cross-Origin-Resource-Policy", "same-origin"},
	{"Cache-Control", "no-cache"},
};
#define SAID_N (sizeof said_of_all / sizeof *said_of_all)

static const struct web_file *file_named(struct slice name)
{
	for (size_t i = 0; i < web_files_n; i++)
		if (slice_is(name, web_files[i].name))
			return &web_files[i];
	return NULL;
}

static bool is_known(const struct http_exchange *exchange, const struct web_file *file)
{
	size_t n;
	const struct wire_field *known = wire_find(http_exchange_request(exchange)->wire.head.fields, "If-None-Match",
						   &n);

	return known && n == 1 && slice_is(known->value, file->etag);
}

static void dashboard_respond(struct http_exchange *exchange, const struct web_file *file)
{
	struct wire_field fields[SAID_N + 3];
	size_t n = 0;

	for (; n < SAID_N; n++)
		fields[n] = (struct wire_field){slice_str(said_of_all[n][0]), slice_str(said_of_all[n][1])};
	fields[n++] = (struct wire_field){slice_str("Content-Type"), slice_str(file->type)};
	fields[n++] = (struct wire_field){slice_str("ETag"), slice_str(file->etag)};
	if (file->gzip)
		fields[n++] = (struct wire_field){slice_str("Content-Encoding"), slice_str("gzip")};
	http_respond(exchange, &(struct http_answer){
				       .status = is_known(exchange, file) ? 304 : 200,
				       .fields = {fields, n},
				       .body = slice_of((const char *)file->bytes, file->n),
			       });
}

void api_dashboard_file(struct http_exchange *exchange, struct slice name)
{
	const struct web_file *file = file_named(name);

	if (file)
		dashboard_respond(exchange, file);
	else
		http_respond_code(exchange, HX_NOT_FOUND, "the dashboard has no such file");
}

static void dashboard_page(struct http_call *call)
{
	api_dashboard_file(call->exchange, slice_str("index.html"));
}

static void dashboard_part(struct http_call *call)
{
	api_dashboard_file(call->exchange, call_param(call, "file"));
}

static void dashboard_vendored(struct http_call *call)
{
	LOCAL_STRBUF(name, 4096);
	strbuf_add_str(&name, "vendor/");
	strbuf_add_slice(&name, call_param(call, "file"));
	api_dashboard_file(call->exchange, strbuf_slice(&name));
}

#define PAGE                                                                                                           \
	{"limit", "PageSize"},                                                                                         \
	{                                                                                                              \
		"cursor", "Cursor"                                                                                     \
	}

const struct route api_dashboard_routes[DASHBOARD_ROUTES] = {
	{"GET", "/", dashboard_page, ROUTE_PUBLIC, .summary = "The dashboard."},
	{"GET", "/ui/{file}", dashboard_part, ROUTE_PUBLIC, .summary = "A file of the dashboard."},
	{"GET", "/api/v1/changes", api_changes, ROUTE_READ, .summary = "Tells when something has changed."},
	{"GET", "/api/v1/vitals", api_vitals, ROUTE_READ, .summary = "How this node does."},
	{"GET", "/api/v1/functions", api_list_start, ROUTE_READ, .summary = "Lists functions, and who polls for them.",
	 .of = &api_function_list, .query = QUERY(PAGE)},
	{"GET", "/api/v1/bulk", api_list_start, ROUTE_READ, .summary = "Lists bulks, the newest first.",
	 .of = &api_bulk_list, .query = QUERY(PAGE)},
	{"GET", "/api/v1/definitions/{name}/standing", api_standing, ROUTE_READ,
	 .summary = "What stands where in a workflow."},
	{"GET", "/api/v1/status-counts/{noun}", api_status_counts, ROUTE_READ,
	 .summary = "Counts what is in which status, among the newest.", .query = QUERY({"name", "Text"})},
	{"GET", "/api/v1/definitions/{name}/findings", api_findings, ROUTE_ADMIN,
	 .summary = "What is to be said about a workflow."},
	{"POST", "/api/v1/definitions/{name}/explore", api_definition_explore, ROUTE_ADMIN,
	 .summary = "Explores a workflow that is in force.", .query = QUERY({"for", "Text"})},
	{"GET", "/api/v1/definitions/{name}/places", api_definition_places, ROUTE_ADMIN,
	 .summary = "What a workflow's picture has where."},
	{"GET", "/api/v1/gate/records", api_gate_records, ROUTE_ADMIN,
	 .summary = "Lists records of gates on this store.",
	 .query = QUERY({"key", "Text"}, {"held", "Flag"}, {"cursor", "Cursor"}, {"limit", "PageSize"})},
	{"POST", "/api/v1/gate/records/{record}/resolve", api_gate_resolve, ROUTE_ADMIN,
	 .summary = "Says what became of a request that is held."},
	{"GET", "/api/v1/workflow-runs/{id}/sent", api_run_sent, ROUTE_READ,
	 .summary = "What a step in doubt has sent, under which key."},
	{"GET", "/api/v1/entities/{workflow}/{id}/sent", api_entity_sent, ROUTE_READ,
	 .summary = "What a claim that is held has sent, under which key."},
	{"GET", "/api/v1/batches/{id}/items/{n}/sent", api_item_sent, ROUTE_READ,
	 .summary = "What an item in doubt has sent, under which key."},
	{"GET", "/api/v1/session", api_session_show, ROUTE_READ, .summary = "Says who asks."},
	{"POST", "/api/v1/session", api_session_begin, ROUTE_READ, .summary = "Gives a session for a key."},
	{"DELETE", "/api/v1/session", api_session_end, ROUTE_READ, .summary = "Ends it."},
	{"GET", "/ui/vendor/{file}", dashboard_vendored, ROUTE_PUBLIC, .summary = "A library of the dashboard."},
};
