/* A request that is one unit: its way through a lane or a reader, and its record, if it has an Idempotency-Key. */
#include "api/api.h"
#include "api/api_gate.h"
#include "engine/readers.h"

static struct api_gate *gate_of(const struct api_query *query)
{
	return query->render ? query->call->gate : NULL;
}

static void render(struct api_query *query)
{
	strbuf_reset(&query->text);
	query->render(query);
}

static void query_build(const struct single *single, struct unit *unit)
{
	struct api_query *query = single->context;
	struct api_gate *gate = gate_of(query);
	struct api_json json;

	query->single.stamp = single->stamp; /* it may be a copy that is carried */
	query->single.fresh_id = single->fresh_id;
	if (gate) {
		render(query);
		api_json_init(&json, query->status, strbuf_slice(&query->text), query->etag);
		api_gate_open_unit(gate, &json.answer, query->text.failed, unit);
	}
	if (query->read)
		query->read(unit, api_workspace(query->call), query->subject);
	else
		query->build(query, unit);
}

static enum hx_code query_answered(struct single *single, const struct unit_result *result)
{
	struct api_query *query = single->context;
	struct api_gate *gate = gate_of(query);
	enum hx_code code;

	query->lost = gate && api_gate_lost(result);
	if (query->lost)
		return HX_IN_FLIGHT; /* or done: the gate finds out */
	code = query->answered(query, result);
	if (!code && query->render && !gate)
		render(query);
	return code;
}

static bool only_reads(const struct api_query *query)
{
	struct slice method = query->call->request->wire.method;

	return slice_is(method, "GET") || slice_is(method, "HEAD");
}

void api_query_tell(struct api_query *query, enum hx_code code)
{
	/* A read has no outcome: when its answer was lost with the store, it is asked again. */
	if (code == HX_OUTCOME_UNKNOWN && only_reads(query))
		code = HX_STORE_UNAVAILABLE;
	/* In the user's own table an id that its column's type does not take is the id of nothing. */
	if (code == HX_DATA_ERROR && query->machine && query->machine->table)
		code = HX_NOT_FOUND;
	if (code)
		http_respond_code(query->call->exchange, code, query->detail);
	else
		api_respond_json(query->call, query->status, &query->text, query->etag);
	/* The exchange may be gone by now, and the query with it: its text was set aside. */
}

static void start_again(void *data)
{
	struct api_query *query = data;

	single_init(&query->single, query, query_build, query_answered);
	api_query_start(query, query->hash);
}

/* The text outlives the exchange's arena for as long as it takes to let it go. */
void api_query_end(struct api_query *query, enum hx_code code)
{
	struct strbuf text = query->text;

	if (query->lost) {
		query->lost = false;
		strbuf_release(&query->text);
		api_gate_find_out(query->call->gate, start_again, query);
		return;
	}
	if (query->ended)
		query->ended(query, code);
	else
		api_query_tell(query, code);
	strbuf_release(&text);
}

static void query_end(struct seat *seat, enum hx_code code)
{
	api_query_end((struct api_query *)seat, code);
}

void api_query_init(struct api_query *query)
{
	query->status = 200;
	strbuf_init(&query->text, API_TEXT_BYTES_MAX);
	single_init(&query->single, query, query_build, query_answered);
	query->seat = (struct seat){.task = &query->single.task, .done = query_end};
}

struct api_query *api_query_new(const struct api_query *asked)
{
	struct api_query *query = api_alloc(asked->call, sizeof *query);

	if (!query)
		return NULL;
	*query = *asked;
	api_query_init(query);
	return query;
}

void api_query_ask(const struct api_query *asked, uint64_t hash)
{
	struct api_query *query = api_query_new(asked);

	if (query)
		api_query_start(query, hash);
}

void api_query_start(struct api_query *query, uint64_t hash)
{
	enum hx_code code;

	query->hash = hash;
	if (query->carried && query->carried(query))
		return;
	code = engine_submit(api_of(query->call)->engine, hash, &query->seat);
	if (code)
		query_end(&query->seat, code);
}

void api_query_read(struct api_query *query)
{
	enum hx_code code;

	query->seat.tenant = unit_tenant(api_workspace(query->call));
	code = readers_submit(api_parts(query->call)->readers, &query->seat);
	if (code)
		query_end(&query->seat, code);
}
