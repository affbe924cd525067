/*
 * The dashboard: a page at `/`, and what it is made of at `/ui/…`. The files of web/ are part of the program (scripts/embed-web.sh),
 * compressed as they are sent. They are the same for everybody, and hold nothing of any workspace: whoever may see what is the API's
 * to say, whose client the page is, like any other.
 *
 * Every URL in them is relative, so that all of it may stand under a prefix of somebody's proxy.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "serve/router.h"

struct web_file {
	const char *name; /* as it follows "/ui/" */
	const char *type;
	const char *etag;
	bool gzip; /* the bytes are */
	const unsigned char *bytes;
	size_t n;
};
extern const struct web_file web_files[];
extern const size_t web_files_n;

/* Answers with the file of this name, or 404. Also for those who serve the page and not the API (cli/dashboard.c). */
void api_dashboard_file(struct http_exchange *exchange, struct slice name);

/*
 * Who asks, for the page: GET /api/v1/session. POST, with an API key as any call has it, gives a session for it (engine/session.h), in
 * a cookie that no script reads, that no other site's page brings along, and that goes to the API alone: it has no Path, so
 * the browser takes that of this call, under whatever prefix. DELETE takes it away.
 */
void api_session_show(struct http_call *call);
void api_session_begin(struct http_call *call);
void api_session_end(struct http_call *call);

/* For pages of its own (api_dashboard_lists.c). */
extern const struct api_list api_function_list, api_bulk_list;
void api_run_sent(struct http_call *call);
void api_entity_sent(struct http_call *call);
void api_item_sent(struct http_call *call);
/* Of gates whose records are in this store (api_gate_records.c). */
void api_gate_records(struct http_call *call);
void api_gate_resolve(struct http_call *call);
/* Of a workflow (api_standing.c). */
void api_standing(struct http_call *call);
void api_findings(struct http_call *call);
void api_status_counts(struct http_call *call);
void api_definition_places(struct http_call *call); /* what its picture has where */

#define DASHBOARD_ROUTES 20
/* They are no part of the API, and not in its reference. */
extern const struct route api_dashboard_routes[DASHBOARD_ROUTES];
