/*
 * The engine over HTTP: /api/v1, /metrics, /healthz, /readyz. Routes are declared in api.c; each noun has a file.
 *
 * A handler runs in an event loop and must not wait: it puts what it needs into the exchange's arena, hands a seat
 * to a lane (or, for lists, to a reader) and answers from there. Until keys exist, workspace and requester come
 * from the headers Hapax-Workspace and Hapax-Requester.
 */
#ifndef HX_HTTP_API_H
#define HX_HTTP_API_H

#include "engine/engine.h"
#include "flow/single.h"
#include "http/problem.h"
#include "http/router.h"

#define API_PAGE_DEFAULT 50
#define API_PAGE_MAX 500
#define API_TEXT_BYTES_MAX (64u << 20)

struct api {
	struct engine *engine;
	_Atomic bool ready;
};

/* The context must outlive the router. NULL without memory. */
struct router *api_router_new(struct api *api);

/* ---- for the handlers ---- */

struct api *api_of(const struct http_call *call);
struct slice api_workspace(const struct http_call *call);
struct slice api_requester(const struct http_call *call);
/* 1 to ENTITY_NAME_MAX bytes of UTF-8 without control characters, or false after answering 400. */
bool api_name_checked(struct http_call *call, struct slice name, const char *what);
/* The workflow named in the path, or NULL after answering 404 with the nearest name. */
const struct entity_machine *api_machine(struct http_call *call);
/* The body as a JSON object ({} when it is empty), or false after answering 400. Twice the same member is refused. */
bool api_body(struct http_call *call, const char *const known[], struct json *ret_object);
/* A number of the query, from 1 to max; absent: otherwise. False after answering 400. */
bool api_query_number(struct http_call *call, const char *name, int64_t otherwise, int64_t max, int64_t *ret_number);
void api_respond_json(struct http_call *call, int status, struct strbuf *text, int64_t etag_version);

/* A request that is one unit: built, answered into `text`, told. */
struct api_query {
	struct seat seat;
	struct single single;
	struct http_call *call;
	struct strbuf text;
	int status;         /* of success; 200 unless set */
	int64_t etag;       /* version for the ETag; 0: none */
	const char *detail; /* of a problem; NULL: the code says it all */
	/* Whatever the two functions need. */
	const struct entity_machine *machine;
	struct slice name, status_wanted, data, after;
	int64_t subject, number, limit;
	bool held;
};

/* In the exchange's arena; NULL after answering 503. */
struct api_query *api_query_new(struct http_call *call, void (*build)(const struct single *, struct unit *),
				enum hx_code (*answered)(struct single *, const struct unit_result *));
/* In the lane of this hash: writes, and reads of one row by its key. */
void api_query_start(struct api_query *query, uint64_t hash);
/* Beside the lanes: lists, whose length must not hold up anybody's commit. The unit only reads. */
void api_query_read(struct api_query *query);

/* The lane of an entity: by its name, so that it needs no look-up. */
uint64_t api_entity_hash(struct slice workspace, const char *workflow, struct slice name);
void api_add_time(struct strbuf *text, const char *member, int64_t ms);

/* One row of entity_read. */
void api_add_entity(struct strbuf *text, const char *workflow, const struct db_rows *rows, size_t row);

/* ---- handlers, by noun ---- */

void api_entity_create(struct http_call *call);
void api_entity_show(struct http_call *call);
void api_entity_list(struct http_call *call);
void api_entity_fire(struct http_call *call);
void api_entity_resolve(struct http_call *call);
void api_history(struct http_call *call);
void api_definition_list(struct http_call *call);
void api_definition_put(struct http_call *call);
void api_module_sweep(struct http_call *call);
void api_job_list(struct http_call *call);
void api_job_redrive(struct http_call *call);
void api_healthz(struct http_call *call);
void api_readyz(struct http_call *call);
void api_metrics(struct http_call *call);

#endif
