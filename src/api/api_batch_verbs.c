/*
 * What callers do to a batch: start it, cancel it, accept an item, say what became of one that is UNKNOWN, or ask its probe before.
 *
 * The unit that writes carries the record of the request's Idempotency-Key. That of a cancel does not: it may be asked for again
 * and again, and is done once.
 *
 *   cancel ─▶ batch_cancel ─┬ seized: this node tears it down ─▶ 200 when that is done within BATCH_TEARDOWN_WAIT_MS, else 202
 *                           ├ accepted: its holder does, or whoever seizes it ─▶ 202
 *                           └ was over ─▶ 200
 */
#include "api/api.h"
#include "api/api_gate.h"
#include "api/batch_wait.h"
#include "engine/batches.h"
#include "flow/batch_cancel.h"
#include "wire/loop.h"

#define VERB_BYTES_MAX (64u << 20)

/* ---- start, accept, resolve, ask ---- */

struct verb_call {
	struct api_task task;
	struct batch_verb verb;
	struct batch_verb_request rq;
	struct batch_along along; /* the record of its Idempotency-Key */
};

static void write_answer(const void *of, struct strbuf *text)
{
	const struct batch_verb *v = of;

	if (v->rq->kind == BATCH_START)
		batch_json_add(&v->row, BATCH_AS_IS, text);
	else if (v->rq->kind == BATCH_ASK)
		api_write_probed(text, v->says, v->item.output);
	else
		batch_json_add_item(&v->item, text);
}

#define TOLD(vc) ((struct api_told){200, .write = write_answer, .of = &(vc)->verb})

static void batch_verbs_add_record(struct batch_along *along, struct unit *unit)
{
	struct verb_call *vc = CONTAINER_OF(along, struct verb_call, along);

	api_gate_carry(vc->task.call->gate, &TOLD(vc), unit);
}

static void batch_verbs_record_written(struct batch_along *along, const struct unit_result *result)
{
	api_gate_carried(CONTAINER_OF(along, struct verb_call, along)->task.call->gate, result);
}

static void verb_done(struct seat *seat, enum hx_code code)
{
	struct verb_call *vc = (struct verb_call *)seat;

	/* A unit that was lost may have carried the record before it turned out that nothing is to be done. */
	if (vc->task.call->gate && !vc->verb.changed)
		api_gate_not_carried(vc->task.call->gate);
	api_task_end(&vc->task, code, vc->verb.detail, &TOLD(vc));
}

static void verb_start(struct http_call *call, const struct batch_verb_request *rq)
{
	struct verb_call *vc = api_task_new(call, sizeof *vc, VERB_BYTES_MAX, verb_done);

	if (!vc)
		return;
	vc->rq = *rq;
	vc->rq.workspace = api_workspace(call);
	vc->rq.policy = api_parts(call)->batch_policy;
	vc->along = (struct batch_along){.add = batch_verbs_add_record, .won = batch_verbs_record_written};
	vc->rq.along = call->gate ? &vc->along : NULL;
	batch_verb_init(&vc->verb, &vc->rq, &vc->task.arena);
	api_task_start(&vc->task, &vc->verb.task, (uint64_t)vc->rq.subject);
}

static const char *const nothing[] = {NULL};

bool api_batch_item(struct http_call *call, int64_t *ret_batch, int64_t *ret_n)
{
	struct json n;

	if (!api_batch_id(call, ret_batch))
		return false;
	if (!json_check(call_param(call, "n"), /* err= */ NULL, &n) && api_is_counted(n, 0, BATCH_ITEMS_MAX, ret_n))
		return true;
	return api_refuse(call, HX_NOT_FOUND, "the batch has no such item");
}

void api_batch_start(struct http_call *call)
{
	struct batch_verb_request rq = {.kind = BATCH_START};
	struct json body;

	if (api_batch_id(call, &rq.subject) && api_body(call, nothing, &body))
		verb_start(call, &rq);
}

void api_batch_accept(struct http_call *call)
{
	struct batch_verb_request rq = {.kind = BATCH_ACCEPT};
	struct json body;

	if (api_batch_item(call, &rq.subject, &rq.n) && api_body(call, nothing, &body))
		verb_start(call, &rq);
}

void api_batch_resolve(struct http_call *call)
{
	static const char *const known[] = {"outcome", "output", NULL};
	struct batch_verb_request rq = {.kind = BATCH_RESOLVE};
	struct json body;

	if (api_batch_item(call, &rq.subject, &rq.n) && api_body(call, known, &body) &&
	    api_either(call, body, "outcome", "done", "not_done", &rq.done) &&
	    api_member(call, body, "output", BATCH_OUTPUT_BYTES_MAX, "what an item puts out is at most 1 MiB",
		       &rq.output))
		verb_start(call, &rq);
}

void api_batch_probe(struct http_call *call)
{
	struct batch_verb_request rq = {.kind = BATCH_ASK};

	if (api_batch_item(call, &rq.subject, &rq.n))
		verb_start(call, &rq);
}

/* ---- cancel ---- */

struct cancel_call {
	struct api_task task;
	struct batch_cancel cancel;
};

static void write_cancelled(const void *row, struct strbuf *text)
{
	batch_json_add(row, BATCH_AS_IS, text);
}

/* Without room for it here the claim lapses, and whoever finds it goes on. */
static void tear_down(const struct cancel_call *cc)
{
	struct batches *batches = api_parts(cc->task.call)->batches;

	if (batches_tear_down(batches, &cc->cancel.hold, /* done= */ NULL, NULL))
		batch_wait_teardown(cc->task.call, cc->cancel.subject);
	else
		batch_respond_accepted(cc->task.call, cc->cancel.subject);
}

static const char *cancel_detail(enum hx_code code)
{
	switch (code) {
	case HX_WRONG_STATUS:
		return "items are being loaded into this batch at this moment";
	case HX_ALREADY_COMPLETED:
		return "the batch has ended: nothing is left to be cancelled";
	case HX_CONFIG_ERROR:
		return "this node does not know the definition of this batch yet";
	default:
		return batch_detail(code);
	}
}

static void cancel_done(struct seat *seat, enum hx_code code)
{
	struct cancel_call *cc = (struct cancel_call *)seat;

	if ((!code || code == HX_ALREADY_COMPLETED) && cc->cancel.row.expired)
		code = HX_RUN_EXPIRED;
	if (code)
		http_respond_code(cc->task.call->exchange, code == HX_CONFIG_ERROR ? HX_BUSY : code,
				  cancel_detail(code));
	else if (cc->cancel.seized)
		tear_down(cc);
	else if (cc->cancel.was_over)
		api_tell(cc->task.call, &(struct api_told){200, .write = write_cancelled, .of = &cc->cancel.row});
	else
		batch_respond_accepted(cc->task.call, cc->cancel.subject);
	api_task_free(&cc->task);
}

void api_batch_cancel(struct http_call *call)
{
	struct cancel_call *cc;
	struct json body;
	int64_t subject;

	if (!api_batch_id(call, &subject) || !api_body(call, nothing, &body))
		return;
	cc = api_task_new(call, sizeof *cc, VERB_BYTES_MAX, cancel_done);
	if (!cc)
		return;
	batch_cancel_init(&cc->cancel, api_workspace(call), subject, api_parts(call)->batch_policy, &cc->task.arena);
	api_task_start(&cc->task, &cc->cancel.task, (uint64_t)subject);
}
