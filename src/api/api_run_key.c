/*
 * A run by its workflow and key, for whoever has not kept the id. Every route of a run by its id has two more, which are made
 * here, so that a new verb has them by itself:
 *
 *   …/{id}/cancel ─┬▶ …/by-key/{workflow}/{key}/cancel      the key is one segment, percent-encoded
 *                  └▶ …/by-key/{workflow}/cancel?key=       or a parameter of the query; not in the reference by itself
 *
 *   whose key is it? ─┬ a run of this workflow ─▶ …/{id}/cancel goes on
 *                     └ none ─▶ 404
 *
 * A key keeps its run for ever, so what was found stays true while the call goes on.
 */
#include <pthread.h>

#include "api/api.h"
#include "api/api_dashboard.h"
#include "api/api_test_clock.h"
#include "base/id.h"
#include "engine/runs.h"
#include "model/text.h"

#define BY_ID "/api/v1/workflow-runs/{id}"
#define BY_KEY "/api/v1/workflow-runs/by-key/{workflow}"
#define ROUTES_MAX 160
#define TEXTS_BYTES_MAX 65536

static struct {
	struct route routes[ROUTES_MAX];
	const struct route
		*by_id[ROUTES_MAX]; /* what one that was made here goes on as; NULL: it is as it was written */
	size_t n, described_n;
	struct arena texts;
} table;

static void api_run_by_key(struct http_call *call);

/* ---- the table ---- */

static struct route *run_key_add(const struct route *route)
{
	ASSERT(table.n < ROUTES_MAX);
	table.routes[table.n] = *route;
	return &table.routes[table.n++];
}

static bool is_by_id(const struct route *route)
{
	return strncmp(route->pattern, BY_ID, sizeof BY_ID - 1) == 0;
}

static struct route *add_by_key(const struct route *by_id, const char *front)
{
	struct route *route = run_key_add(by_id);

	table.by_id[table.n - 1] = by_id;
	route->handle = api_run_by_key;
	route->pattern = text_printf(&table.texts, "%s%s", front, by_id->pattern + sizeof BY_ID - 1);
	route->id = text_printf(&table.texts, "%sByKey", by_id->id);
	return route;
}

static void add_by_query(const struct route *by_id)
{
	struct route *route = add_by_key(by_id, BY_KEY);
	struct route_query *query = arena_zalloc(&table.texts, (ROUTE_QUERIES_MAX + 1) * sizeof *query);
	size_t i = 0;

	ASSERT(query);
	for (; by_id->query && by_id->query[i].name; i++)
		query[i] = by_id->query[i];
	ASSERT(i < ROUTE_QUERIES_MAX);
	query[i] = (struct route_query){"key", "Text"};
	route->query = query;
	route->with = "key";
}

/* For the life of the program. There is no memory for it: then there is no program. */
static void make_table(void)
{
	size_t n;
	const struct route *written = api_routes_written(&n);

	arena_init(&table.texts, TEXTS_BYTES_MAX);
	for (size_t i = 0; i < n; i++) {
		(void)run_key_add(&written[i]);
		if (i + 1 == n || !is_by_id(&written[i]) || is_by_id(&written[i + 1]))
			continue;
		for (size_t k = 0; k <= i; k++) /* after the last of them */
			if (is_by_id(&written[k]))
				(void)add_by_key(&written[k], BY_KEY "/{key}");
	}
	table.described_n = table.n;
	for (size_t i = 0; i < n; i++)
		if (is_by_id(&written[i]))
			add_by_query(&written[i]);
	for (size_t i = 0; i < DASHBOARD_ROUTES; i++)
		(void)run_key_add(&api_dashboard_routes[i]);
	(void)run_key_add(&api_test_clock_route); /* the last: few have it */
	ASSERT(!table.texts.failed);
}

const struct route *api_routes_with_clock(size_t *ret_n)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, make_table); /* it cannot fail */
	*ret_n = table.n;
	return table.routes;
}

const struct route *api_routes_served(size_t *ret_n)
{
	const struct route *routes = api_routes_with_clock(ret_n);

	*ret_n -= 1;
	return routes;
}

const struct route *api_routes(size_t *ret_n)
{
	const struct route *routes = api_routes_served(ret_n);

	*ret_n = table.described_n;
	return routes;
}

/* ---- a call ---- */

static void build_find(struct api_query *query, struct unit *unit)
{
	run_find_key(unit, api_workspace(query->call), query->data);
}

static enum hx_code answered_find(struct api_query *query, const struct unit_result *result)
{
	int64_t subject;

	if (run_found(result, query->name, &subject)) {
		query->detail = "this key has no run of this workflow";
		return HX_NOT_FOUND;
	}
	id_format("run", subject, query->id);
	return HX_OK;
}

/* The workflow and the key were its first parameters, the id is. */
static void found(struct api_query *query, enum hx_code code)
{
	struct http_call *call = query->call;
	size_t named = call->route->with ? 1 : 2;

	if (code) {
		api_query_tell(query, code);
		return;
	}
	call->route = table.by_id[call->route - table.routes];
	call->params[0] = slice_str(query->id);
	memmove(&call->params[1], &call->params[named], (ROUTE_PARAMS_MAX - named) * sizeof call->params[0]);
	call->route->handle(call);
}

static void api_run_by_key(struct http_call *call)
{
	struct api_query query = {
		.call = call,
		.build = build_find,
		.answered = answered_find,
		.ended = found,
		.name = call_param(call, "workflow"),
	};
	struct hx_error err;

	if (!call->route->with)
		query.data = call_param(call, "key");
	else if (query_get(&call->query, "key", &err, &query.data))
		http_respond_error(call->exchange, &err);
	if (query.data.p)
		api_query_ask(&query,
			      runs_hash(&(struct run_spec){.workspace = api_workspace(call), .key = query.data}));
}
