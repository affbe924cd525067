/*
 * A run by its workflow and key, for whoever has not kept the id:
 *
 *   …/by-key/{workflow}/{key}/cancel ─▶ whose key is it? ─┬ a run of this workflow ─▶ …/{id}/cancel goes on
 *                                                         └ none ─▶ 404
 *
 * A key keeps its run for ever, so what was found stays true while the call goes on.
 */
#include "api/api.h"
#include "base/id.h"
#include "engine/runs.h"

/* The call of the same name with an id. Every route by key has one: a test walks the table. */
static const struct route *route_by_id(const struct route *by_key)
{
	const char *rest = by_key->pattern + sizeof RUN_BY_KEY - 1;
	size_t n;
	const struct route *routes = api_routes(&n);

	for (size_t i = 0; i < n; i++)
		if (strcmp(routes[i].method, by_key->method) == 0 &&
		    strncmp(routes[i].pattern, RUN_BY_ID, sizeof RUN_BY_ID - 1) == 0 &&
		    strcmp(routes[i].pattern + sizeof RUN_BY_ID - 1, rest) == 0)
			return &routes[i];
	ASSERT(!"a route by key has one by id");
	return NULL;
}

static void build_find(struct api_query *query, struct unit *unit)
{
	run_find_key(unit, api_workspace(query->call), query->name, query->data);
}

static enum hx_code answered_find(struct api_query *query, const struct unit_result *result)
{
	if (result->rows[0].n == 0) {
		query->detail = "this key has no run of this workflow";
		return HX_NOT_FOUND;
	}
	id_format("run", db_cell(&result->rows[0], 0, 0)->i, query->id);
	return HX_OK;
}

static void found(struct api_query *query, enum hx_code code)
{
	struct http_call *call = query->call;

	if (code) {
		api_query_tell(query, code);
		return;
	}
	call->route = route_by_id(call->route);
	call->params[0] = slice_str(query->id);
	memmove(&call->params[1], &call->params[2], (ROUTE_PARAMS_MAX - 2) * sizeof call->params[0]);
	call->route->handle(call);
}

void api_run_by_key(struct http_call *call)
{
	struct api_query query = {
		.call = call,
		.build = build_find,
		.answered = answered_find,
		.ended = found,
		.name = call_param(call, "workflow"),
		.data = call_param(call, "key"),
	};

	api_query_ask(&query, runs_hash(&(struct run_spec){.workspace = api_workspace(call), .key = query.data}));
}
