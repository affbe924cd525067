/*
 * Routes: a table, declared once, from which requests are dispatched (and from which the reference is generated, see
 * openapi.h).
 *
 *	static const struct route routes[] = {
 *		{"GET", "/api/v1/entities/{workflow}/{id}", entity_show, ROUTE_READ, "Shows an entity.",
 *		 .id = "getEntity", .answers = {{200, "Entity"}}},
 *		…
 *	};
 *
 * A pattern is "/" and segments: literal, or {name} for one segment that is not empty. Literal segments match byte by
 * byte, as they were sent; parameters are then percent-decoded (see wire/query.h): `%2F` is a slash inside of one, and
 * `..` is a name like any other. Of several patterns that match, the one with the earlier literal wins, so the
 * order of the table means nothing. A route `with` a parameter of the query is there for requests that have it alone. HEAD is
 * served by the GET route.
 *
 * What it answers by itself: 404 NOT_FOUND, 405 METHOD_NOT_ALLOWED with Allow, 501 for methods that HTTP does not
 * define, 400 VALIDATION_ERROR for escapes that cannot be decoded, in the path or the query.
 */
#pragma once

#include "serve/server.h"
#include "wire/query.h"

#define ROUTE_SEGMENTS_MAX 16
#define ROUTE_PARAMS_MAX 4
#define ROUTE_QUERIES_MAX 8
#define ROUTE_ANSWERS_MAX 2

enum route_scope { ROUTE_PUBLIC, ROUTE_READ, ROUTE_EXECUTE, ROUTE_ADMIN, ROUTE_WORKER };

struct http_call;
struct api_gate;

/* Each with the name of its schema, in openapi.json. */
struct route_query {
	const char *name, *schema;
};
struct route_answer {
	int status;
	const char *schema;
};

struct route {
	const char *method; /* GET stands for HEAD, too */
	const char *pattern;
	/* In the loop's thread; answers call->exchange, now or later. */
	void (*handle)(struct http_call *call);
	enum route_scope scope;                /* what a key must be allowed to do */
	const char *summary;                   /* one sentence for the reference */
	const char *with;                      /* a parameter that the query must have; NULL: none */
	bool (*admit)(struct http_call *call); /* NULL, or who is let in here, in place of the router's */
	size_t body_bytes_max;                 /* 0: the server's */
	int verb;                              /* for a handler of several routes: which of its own */
	const void *of;                        /* likewise: what it works on */
	bool one_unit; /* its work is one unit, which carries the record of its Idempotency-Key (api/api_gate.h) */
	/* ---- for the reference alone, but for the query; all may be absent, and lists end with zeros or are NULL ---- */
	const char *id; /* operationId */
	const struct route_query
		*query;   /* those that it knows, at most ROUTE_QUERIES_MAX; the API refuses all others */
	const char *body; /* the schema of what is sent; NULL: nothing is */
	struct route_answer answers[ROUTE_ANSWERS_MAX]; /* of success */
	bool etag;                                      /* they carry one */
	const enum hx_code *errors;                     /* its own; what any route may answer is known to openapi.c */
};

/* The lists of a row: QUERY({"limit", "PageSize"}), ERRORS(HX_NOT_FOUND). */
#define QUERY(...) ((const struct route_query[]){__VA_ARGS__, {NULL, NULL}})
#define ERRORS(...) ((const enum hx_code[]){__VA_ARGS__, HX_OK})

/* One request on its way to its handler. It lives in the exchange's arena. */
struct http_call {
	struct http_exchange *exchange;
	const struct http_request *request;
	struct arena *arena;
	const struct route *route;
	void *context;                         /* the router's */
	struct slice params[ROUTE_PARAMS_MAX]; /* decoded, in the order of the pattern */
	struct query query;
	struct slice workspace, requester; /* of who asks; set where the request is admitted (auth.h) */
	enum route_scope scope;            /* what he may do; likewise */
	struct api_gate *gate;             /* the API's own: what guards this request; NULL: nothing does */
	/* private: the router's */
	struct router *router;
	bool early; /* only the head is there */
};

struct router;

/*
 * The table and the context must outlive the router. `admit` is asked before each handler and may be NULL; it may be asked when only
 * the head is there, since who may not ask must not make us read. Where it returns false it has answered, or calls
 * call_admitted() later, in the loop's thread. A pattern that is malformed, or twice there for a method, is a programmer's
 * mistake. NULL without memory.
 */
struct router *router_new(const struct route routes[], size_t n, bool (*admit)(struct http_call *call), void *context);
/* Takes NULL. No request may be on its way through it. */
void router_free(struct router *router);
/* Asked after the body and before the handler; where it returns false it has the call. Before the first request. */
void router_set_guard(struct router *router, bool (*guard)(struct http_call *call));
/* The options of a server for this router alone. */
void router_serve(struct router *router, const char *listen, struct server_options *options);
/* For server_options: `handle` is router_handle, `data` the router; and `begin` router_head, or NULL. */
void router_handle(void *router, struct http_exchange *exchange);
void router_head(void *router, struct http_exchange *exchange);
/* What admit did not say at once. */
void call_admitted(struct http_call *call);

/* The parameter of this name, which the pattern must have. */
struct slice call_param(const struct http_call *call, const char *name);
