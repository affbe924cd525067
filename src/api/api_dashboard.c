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

static bool is_known(const struct http_call *call, const struct web_file *file)
{
	size_t n;
	const struct wire_field *known = wire_find(call->request->wire.head.fields, "If-None-Match", &n);

	return known && n == 1 && slice_is(known->value, file->etag);
}

static void dashboard_respond(struct http_call *call, const struct web_file *file)
{
	struct wire_field fields[SAID_N + 3];
	size_t n = 0;

	for (; n < SAID_N; n++)
		fields[n] = (struct wire_field){slice_str(said_of_all[n][0]), slice_str(said_of_all[n][1])};
	fields[n++] = (struct wire_field){slice_str("Content-Type"), slice_str(file->type)};
	fields[n++] = (struct wire_field){slice_str("ETag"), slice_str(file->etag)};
	if (file->gzip)
		fields[n++] = (struct wire_field){slice_str("Content-Encoding"), slice_str("gzip")};
	http_respond(call->exchange, &(struct http_answer){
					     .status = is_known(call, file) ? 304 : 200,
					     .fields = {fields, n},
					     .body = slice_of((const char *)file->bytes, file->n),
				     });
}

static void dashboard_send(struct http_call *call, struct slice name)
{
	const struct web_file *file = file_named(name);

	if (file)
		dashboard_respond(call, file);
	else
		api_refuse(call, HX_NOT_FOUND, "the dashboard has no such file");
}

static void dashboard_page(struct http_call *call)
{
	dashboard_send(call, slice_str("index.html"));
}

static void dashboard_part(struct http_call *call)
{
	dashboard_send(call, call_param(call, "file"));
}

static void dashboard_vendored(struct http_call *call)
{
	LOCAL_STRBUF(name, 4096);
	strbuf_add_str(&name, "vendor/");
	strbuf_add_slice(&name, call_param(call, "file"));
	dashboard_send(call, strbuf_slice(&name));
}

const struct route api_dashboard_routes[DASHBOARD_ROUTES] = {
	{"GET", "/", dashboard_page, ROUTE_PUBLIC, .summary = "The dashboard."},
	{"GET", "/ui/{file}", dashboard_part, ROUTE_PUBLIC, .summary = "A file of the dashboard."},
	{"GET", "/api/v1/changes", api_changes, ROUTE_READ, .summary = "Tells when something has changed."},
	{"GET", "/api/v1/session", api_session_show, ROUTE_READ, .summary = "Says who asks."},
	{"POST", "/api/v1/session", api_session_begin, ROUTE_READ, .summary = "Gives a session for a key."},
	{"DELETE", "/api/v1/session", api_session_end, ROUTE_READ, .summary = "Ends it."},
	{"GET", "/ui/vendor/{file}", dashboard_vendored, ROUTE_PUBLIC, .summary = "A library of the dashboard."},
};
