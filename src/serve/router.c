/*
 * See router.h. Patterns are cut into segments once. A request's path is cut likewise, and compared with each route of
 * the same number of segments: for the few dozens of routes of an API that is faster than anything cleverer.
 *
 * `literals` has one bit per segment, the first one highest, so that the greater number is the better match.
 */
#include "serve/router.h"

#include <stdlib.h>

#include "base/excerpt.h"
#include "base/strbuf.h"
#include "model/text.h"
#include "serve/problem.h"
#include "wire/charset.h"

struct segments {
	struct slice at[ROUTE_SEGMENTS_MAX];
	size_t n;
	struct slice query; /* of a request: as it was sent */
};

struct entry {
	const struct route *route;
	struct segments segments;
	uint32_t literals;
};

struct router {
	bool (*admit)(struct http_call *call);
	bool (*guard)(struct http_call *call);
	void *context;
	size_t n;
	struct entry entries[];
};

static const char *const known_methods[] = {"GET",    "HEAD",    "POST",  "PUT",    "PATCH",
					    "DELETE", "OPTIONS", "TRACE", "CONNECT"};

/* "/a/b" has two segments, "/" one that is empty. False if there are too many, or there is no "/" in front. */
static bool cut_path(struct slice path, struct segments *ret)
{
	struct slice rest = path;

	ret->n = 0;
	ret->query = slice_of(NULL, 0);
	if (rest.n == 0 || rest.p[0] != '/')
		return false;
	while (rest.n > 0) {
		const char *start = rest.p + 1;
		const char *end = memchr(start, '/', rest.n - 1);
		size_t n = end ? (size_t)(end - start) : rest.n - 1;

		if (ret->n == ROUTE_SEGMENTS_MAX)
			return false;
		ret->at[ret->n++] = slice_of(start, n);
		rest = end ? slice_of(end, rest.n - n - 1) : slice_of(NULL, 0);
	}
	return true;
}

/* ---- the table ---- */

static bool is_param(struct slice segment)
{
	return segment.n > 2 && segment.p[0] == '{' && segment.p[segment.n - 1] == '}';
}

static struct slice param_name(struct slice segment)
{
	return slice_of(segment.p + 1, segment.n - 2);
}

static bool names_differ(const struct segments *segments)
{
	for (size_t i = 0; i < segments->n; i++)
		for (size_t j = 0; j < i; j++)
			if (is_param(segments->at[i]) && slice_eq(segments->at[i], segments->at[j]))
				return false;
	return true;
}

static void compile(const struct route *route, struct entry *ret)
{
	size_t params = 0;

	ret->route = route;
	ret->literals = 0;
	ASSERT(cut_path(slice_str(route->pattern), &ret->segments));
	ASSERT(names_differ(&ret->segments));
	ASSERT(route->handle && route->summary && is_token(slice_str(route->method)));
	for (size_t i = 0; i < ret->segments.n; i++) {
		struct slice segment = ret->segments.at[i];

		params += is_param(segment);
		if (is_param(segment))
			continue;
		ret->literals |= 1u << (ROUTE_SEGMENTS_MAX - i);
		ASSERT(!memchr(segment.p, '{', segment.n));
	}
	ASSERT(params <= ROUTE_PARAMS_MAX);
}

/* Would one request fit both as well? */
static bool collide(const struct entry *a, const struct entry *b)
{
	if (strcmp(a->route->method, b->route->method) != 0 || a->segments.n != b->segments.n ||
	    a->literals != b->literals)
		return false;
	for (size_t i = 0; i < a->segments.n; i++)
		if (!is_param(a->segments.at[i]) && !slice_eq(a->segments.at[i], b->segments.at[i]))
			return false;
	return true;
}

struct router *router_new(const struct route routes[], size_t n, bool (*admit)(struct http_call *call), void *context)
{
	struct router *router = calloc(1, sizeof *router + n * sizeof router->entries[0]);

	if (!router)
		return NULL;
	router->admit = admit;
	router->context = context;
	for (router->n = 0; router->n < n; router->n++) {
		compile(&routes[router->n], &router->entries[router->n]);
		for (size_t i = 0; i < router->n; i++)
			ASSERT(!collide(&router->entries[i], &router->entries[router->n]));
	}
	return router;
}

void router_set_guard(struct router *router, bool (*guard)(struct http_call *call))
{
	router->guard = guard;
}

void router_free(struct router *router)
{
	free(router);
}

/* ---- finding ---- */

/* `name=` in a query, as it was sent: a name of a table needs no escapes. */
static bool query_has(struct slice query, const char *name)
{
	size_t n = strlen(name);

	for (struct slice rest = query; rest.n > 0;) {
		const char *end = memchr(rest.p, '&', rest.n);
		size_t piece = end ? (size_t)(end - rest.p) : rest.n;

		if (piece > n && memcmp(rest.p, name, n) == 0 && rest.p[n] == '=')
			return true;
		rest = end ? slice_of(end + 1, rest.n - piece - 1) : slice_of(NULL, 0);
	}
	return false;
}

static bool router_fits(const struct entry *entry, const struct segments *path)
{
	if (entry->segments.n != path->n || (entry->route->with && !query_has(path->query, entry->route->with)))
		return false;
	for (size_t i = 0; i < path->n; i++) {
		bool literal = entry->literals >> (ROUTE_SEGMENTS_MAX - i) & 1;

		if (literal ? !slice_eq(entry->segments.at[i], path->at[i]) : path->at[i].n == 0)
			return false;
	}
	return true;
}

static const struct entry *router_find(const struct router *router, const struct segments *path, struct slice method)
{
	const struct entry *best = NULL;

	for (size_t i = 0; i < router->n; i++) {
		const struct entry *entry = &router->entries[i];

		if ((!best || entry->literals > best->literals) && router_fits(entry, path) &&
		    slice_is(method, entry->route->method))
			best = entry;
	}
	return best;
}

static bool is_known_method(struct slice method)
{
	for (size_t i = 0; i < sizeof known_methods / sizeof *known_methods; i++)
		if (slice_is(method, known_methods[i]))
			return true;
	return false;
}

/* The methods that this path has, each once: "GET, HEAD, POST". Empty if it has none. */
static void write_allow(const struct router *router, const struct segments *path, struct strbuf *sb)
{
	for (size_t i = 0; i < sizeof known_methods / sizeof *known_methods; i++) {
		const char *method = known_methods[i];
		bool get = router_find(router, path, slice_str("GET")) != NULL;

		if (router_find(router, path, slice_str(method)) || (get && strcmp(method, "HEAD") == 0))
			strbuf_addf(sb, "%s%s", sb->n > 0 ? ", " : "", method);
	}
}

/* ---- what is answered here ---- */

static void answer_allow(struct http_exchange *exchange, struct slice allow)
{
	http_respond_problem(exchange, &(struct problem){
					       .code = HX_METHOD_NOT_ALLOWED,
					       .detail = slice_str("see Allow for those that are"),
					       .field = {slice_str("Allow"), allow},
				       });
}

static bool has_any(const struct router *router, const struct segments *path)
{
	for (size_t i = 0; i < router->n; i++)
		if (router_fits(&router->entries[i], path))
			return true;
	return false;
}

/* Where to look instead: the path without its last "/", or the description of all paths, where there is one. */
static const char *nothing_words(const struct router *router, const struct segments *path,
				 struct http_exchange *exchange)
{
	static const char description[] = "/api/v1/openapi.json";
	struct slice asked = http_exchange_request(exchange)->wire.path;
	struct segments shorter = *path, described;

	if (path->n > 1 && path->at[path->n - 1].n == 0) {
		shorter.n--;
		if (has_any(router, &shorter))
			return text_printf(http_exchange_arena(exchange),
					   "there is nothing at this path; without its last \"/\" there is: \"%s\"",
					   excerpt_of(slice_of(asked.p, asked.n - 1)).text);
	}
	if (cut_path(slice_str(description), &described) && has_any(router, &described))
		return text_printf(http_exchange_arena(exchange),
				   "there is nothing at this path; what there is is described at %s", description);
	return "there is nothing at this path";
}

static void answer_no_route(const struct router *router, const struct segments *path, struct http_exchange *exchange)
{
	LOCAL_STRBUF(allow, 256);
	if (path->n > 0)
		write_allow(router, path, &allow);
	if (allow.n > 0)
		answer_allow(exchange, strbuf_slice(&allow));
	else
		http_respond_code(exchange, HX_NOT_FOUND, nothing_words(router, path, exchange));
}

/* ---- dispatching ---- */

static enum hx_code decode_call(const struct entry *entry, const struct segments *path, struct http_call *call,
				struct hx_error *err)
{
	size_t n = 0;

	for (size_t i = 0; i < path->n; i++) {
		enum hx_code code;

		if (!is_param(entry->segments.at[i]))
			continue;
		code = percent_decode(path->at[i], /* plus_is_space= */ false, call->arena, err, &call->params[n++]);
		if (code != HX_OK)
			return code;
	}
	return query_parse(call->request->wire.query, call->arena, err, &call->query);
}

/* All of it is there, and whoever asks may. */
static void serve(struct http_call *call)
{
	if (!call->router->guard || call->router->guard(call))
		call->route->handle(call);
}

void call_admitted(struct http_call *call)
{
	if (call->early)
		http_read_body(call->exchange, call->route->body_bytes_max, /* read_ms= */ 0);
	else
		serve(call);
}

static void dispatch(struct router *router, const struct entry *entry, const struct segments *path,
		     struct http_exchange *exchange, bool early)
{
	struct arena *arena = http_exchange_arena(exchange);
	struct http_call *call = arena_zalloc(arena, sizeof *call);
	bool (*admit)(struct http_call *) = entry->route->admit ? entry->route->admit : router->admit;
	struct hx_error err;

	if (!call) {
		http_respond_code(exchange, HX_NO_MEMORY, NULL);
		return;
	}
	call->exchange = exchange;
	call->request = http_exchange_request(exchange);
	call->arena = arena;
	call->route = entry->route;
	call->context = router->context;
	call->router = router;
	call->early = early;
	http_exchange_set_context(exchange, call);
	if (decode_call(entry, path, call, &err) != HX_OK)
		http_respond_error(exchange, &err);
	else if (!admit || admit(call))
		call_admitted(call);
}

static void route(struct router *router, struct http_exchange *exchange, bool early)
{
	const struct wire_request *request = &http_exchange_request(exchange)->wire;
	const struct entry *entry = NULL;
	struct segments path;

	if (!is_known_method(request->method)) {
		http_respond_code(exchange, HX_NOT_IMPLEMENTED, "HTTP has no such method");
		return;
	}
	if (cut_path(request->path, &path)) {
		path.query = request->query;
		entry = router_find(router, &path, request->method);
		if (!entry && slice_is(request->method, "HEAD"))
			entry = router_find(router, &path, slice_str("GET"));
	} else {
		path.n = 0;
	}
	if (entry)
		dispatch(router, entry, &path, exchange, early);
	else
		answer_no_route(router, &path, exchange);
}

void router_head(void *data, struct http_exchange *exchange)
{
	route(data, exchange, /* early= */ true);
}

void router_handle(void *data, struct http_exchange *exchange)
{
	struct http_call *call = http_exchange_context(exchange);

	if (call)
		serve(call);
	else
		route(data, exchange, /* early= */ false);
}

struct slice call_param(const struct http_call *call, const char *name)
{
	struct segments pattern;
	size_t n = 0;

	ASSERT(cut_path(slice_str(call->route->pattern), &pattern));
	for (size_t i = 0; i < pattern.n; i++) {
		if (!is_param(pattern.at[i]))
			continue;
		if (slice_is(param_name(pattern.at[i]), name))
			return call->params[n];
		n++;
	}
	ASSERT(!"the pattern has no such parameter");
	return slice_of(NULL, 0);
}

void router_serve(struct router *router, const char *listen, struct server_options *options)
{
	options->listen = listen;
	options->begin = router_head;
	options->handle = router_handle;
	options->data = router;
}
