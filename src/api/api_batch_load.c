/*
 * Loading batches: create one with its items, or add items to one that is held.
 *
 * All items of a request are checked before anything is written. Then a task loads them (flow/batch_load.h), and the last of its
 * units, with which they begin to exist, carries the record of the request's Idempotency-Key: a crash leaves both or neither.
 */
#include "api/api.h"
#include "api/api_gate.h"
#include "api/api_wait.h"
#include "api/batch_wait.h"
#include "base/excerpt.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "engine/batches.h"
#include "flow/batch_load.h"
#include "wire/loop.h"

#define LOAD_BYTES_MAX (512u << 20)

/* ---- items of a request ---- */

static bool refuse_item(struct http_call *call, enum hx_code code, int64_t n, const char *what, struct slice value)
{
	struct hx_error err;

	error_set(&err, code, "items[%lld]%s%s", (long long)n, what, value.p ? excerpt_of(value).text : "");
	return api_refuse(call, code, err.detail);
}

static bool check_item(struct http_call *call, struct json item, int64_t n)
{
	struct json_iter it = json_iter_of(item);
	struct json name, value;
	int64_t cost = -1;

	if (json_type(item) != JSON_OBJECT)
		return refuse_item(call, HX_VALIDATION_ERROR, n,
				   " must be an object like {\"input\": {}, \"cost\": 5}, not ", item.raw);
	while (json_iter_member(&it, &name, &value)) {
		if (json_string_is(name, slice_str("cost"))) {
			if (!api_is_counted(value, 0, BATCH_COST_MAX, &cost))
				return refuse_item(
					call, HX_VALIDATION_ERROR, n,
					".cost is a whole number of the smallest unit, from 0 to 1000000000, not ",
					value.raw);
		} else if (!json_string_is(name, slice_str("input"))) {
			return refuse_item(call, HX_VALIDATION_ERROR, n, " has an unknown member ", name.raw);
		} else if (value.raw.n > BATCH_INPUT_BYTES_MAX) {
			return refuse_item(call, HX_TOO_LARGE, n, ".input is at most 1 MiB", slice_of(NULL, 0));
		}
	}
	return cost >= 0 || refuse_item(call, HX_VALIDATION_ERROR, n, ".cost is missing", slice_of(NULL, 0));
}

/* Every one of them, before anything is written. */
static bool read_items(struct http_call *call, struct json body, int64_t min, struct batch_load_request *rq)
{
	struct json_iter it;
	struct json item;

	if (!json_find(body, slice_str("items"), &rq->items))
		rq->items = json_trust(slice_str(min ? "null" : "[]"));
	if (json_type(rq->items) != JSON_ARRAY)
		return api_refuse(call, HX_VALIDATION_ERROR, "items must be an array");
	it = json_iter_of(rq->items);
	for (rq->items_n = 0; json_iter_element(&it, &item); rq->items_n++) {
		if (rq->items_n == BATCH_ITEMS_MAX)
			return api_refuse(call, HX_TOO_LARGE, "a batch has at most 1,000,000 items");
		if (!check_item(call, item, rq->items_n))
			return false;
	}
	return rq->items_n >= min ||
	       api_refuse(call, HX_VALIDATION_ERROR,
			  "items is empty: only a batch with \"hold\": true is created without any");
}

/* ---- loading ---- */

struct load_call {
	struct api_task task;
	struct batch_load load;
	struct batch_load_request rq;
	struct batch_along along; /* the record of its Idempotency-Key */
	int64_t wait_ms;
};

static bool is_new(const struct load_call *lc)
{
	return lc->rq.machine != NULL;
}

static void write_row(const void *row, struct strbuf *text)
{
	batch_json_add(row, BATCH_AS_IS, text);
}

static void write_new(const void *row, struct strbuf *text)
{
	batch_json_add(row, BATCH_IS_NEW, text);
}

static void write_there(const void *row, struct strbuf *text)
{
	batch_json_add(row, BATCH_WAS_THERE, text);
}

/* Of a batch that was created, or the items that were added. */
static struct api_told told_loaded(const struct load_call *lc)
{
	return (struct api_told){is_new(lc) ? 201 : 200, .write = is_new(lc) ? write_new : write_row,
				 .of = &lc->load.row};
}

static void batch_load_add_record(struct batch_along *along, struct unit *unit)
{
	struct load_call *lc = CONTAINER_OF(along, struct load_call, along);
	struct api_told told = told_loaded(lc);

	api_gate_carry(lc->task.call->gate, &told, unit);
}

static void batch_load_record_written(struct batch_along *along, const struct unit_result *result)
{
	api_gate_carried(CONTAINER_OF(along, struct load_call, along)->task.call->gate, result);
}

static void respond_loaded(const struct load_call *lc)
{
	struct api_told told = told_loaded(lc);

	if (is_new(lc) && !lc->load.changed)
		told = (struct api_told){200, .write = write_there, .of = &lc->load.row};
	api_tell(lc->task.call, &told);
}

/* The texts of a new one are those of the request. */
static void wait_for(const struct load_call *lc)
{
	struct api_wait wait = {
		.kind = &batch_waits,
		.call = lc->task.call,
		.subject = lc->load.row.subject,
		.wait_ms = lc->wait_ms,
		.wrap = lc->load.changed ? BATCH_IS_NEW : BATCH_WAS_THERE,
	};
	struct batch_row *created = lc->load.changed ? arena_alloc(wait.call->arena, sizeof *created) : NULL;

	if (lc->load.changed && !created) {
		respond_loaded(lc);
		return;
	}
	if (created)
		*created = lc->load.row;
	wait.known = created;
	if (created && wait.call->gate)
		api_gate_tell_more(wait.call->gate);
	api_wait_start(&wait);
}

static void load_done(struct seat *seat, enum hx_code code)
{
	struct load_call *lc = (struct load_call *)seat;

	if (lc->task.call->gate && !lc->load.changed)
		api_gate_not_carried(lc->task.call->gate);
	if (code)
		http_respond_code(lc->task.call->exchange, code, lc->load.detail);
	else if (lc->wait_ms)
		wait_for(lc);
	else
		respond_loaded(lc);
	api_task_free(&lc->task);
}

static void load_start(struct http_call *call, const struct batch_load_request *rq, int64_t wait_ms, uint64_t hash)
{
	struct load_call *lc = api_task_new(call, sizeof *lc, LOAD_BYTES_MAX, load_done);

	if (!lc)
		return;
	lc->wait_ms = wait_ms;
	lc->rq = *rq;
	lc->rq.workspace = api_workspace(call);
	lc->rq.policy = api_parts(call)->batch_policy;
	if (call->gate) {
		lc->along = (struct batch_along){.add = batch_load_add_record, .won = batch_load_record_written};
		lc->rq.along = &lc->along;
		lc->rq.until = api_gate_work_until(call->gate);
	}
	batch_load_init(&lc->load, &lc->rq, &lc->task.arena);
	api_task_start(&lc->task, &lc->load.task, hash);
}

/* ---- create ---- */

static bool read_machine(struct http_call *call, struct json body, struct batch_load_request *rq)
{
	struct slice name;

	if (!api_name_member(call, body, "workflow", "workflow must be a string: the name of a workflow of kind batch",
			     &name))
		return false;
	rq->machine = definitions_batch(api_parts(call)->definitions, name);
	if (!rq->machine)
		api_no_workflow(call, name, "batch");
	return rq->machine;
}

/* What it is about, for all its items. */
static bool read_data(struct http_call *call, struct json body, struct batch_load_request *rq)
{
	struct json value;

	if (!json_find(body, slice_str("data"), &value))
		return true;
	if (json_type(value) != JSON_OBJECT)
		return api_refuse(call, HX_VALIDATION_ERROR, "data must be an object");
	rq->data = value.raw;
	return value.raw.n <= BATCH_DATA_BYTES_MAX ||
	       api_refuse(call, HX_TOO_LARGE, "data of a batch is at most 16 KiB: what is larger belongs to its items");
}

static bool read_batch(struct http_call *call, struct json body, struct batch_load_request *rq)
{
	struct json value;

	if (json_find(body, slice_str("idempotencyKey"), &value) &&
	    !api_own_key_checked(call, value, "idempotencyKey", &rq->key))
		return false;
	return read_data(call, body, rq) && api_bool(call, body, "hold", &rq->held) &&
	       api_name_member(call, body, "account", "account must be a string: the id of an account", &rq->account) &&
	       read_items(call, body, /* min= */ rq->held ? 0 : 1, rq) && read_machine(call, body, rq);
}

void api_batch_create(struct http_call *call)
{
	static const char *const known[] = {"workflow", "account", "items", "data", "hold", "idempotencyKey", NULL};
	struct batch_load_request rq = {.requester = api_requester(call), .trace = api_traceparent(call)};
	struct json body;
	int64_t wait_ms;

	if (!api_wait_parse(call, &wait_ms) || !api_body(call, known, &body) || !read_batch(call, body, &rq))
		return;
	rq.attributes = batch_describe(rq.machine, rq.data, call->arena);
	load_start(call, &rq, wait_ms, entity_hash(api_workspace(call), "account", rq.account));
}

void api_batch_add_items(struct http_call *call)
{
	static const char *const known[] = {"items", NULL};
	struct batch_load_request rq = {0};
	struct json body;

	if (!api_batch_id(call, &rq.subject) || !api_body(call, known, &body) ||
	    !read_items(call, body, /* min= */ 1, &rq))
		return;
	load_start(call, &rq, /* wait_ms= */ 0, (uint64_t)rq.subject);
}
