/*
 * POST /hooks/{name}: what other services tell us, once for each event.
 *
 *   head ─┬ no such hook: 404            body ─┬ the signature does not fit: 401, nothing is kept
 *         └ no signature: 401                  ├ no JSON, no id: 400, nothing is kept
 *                                              └ which event is it? ─▶ `when` ─▶ signal · start · fire · push
 *
 *   one unit ─┬ won ──────────────────────▶ 200 {"accepted": true, "duplicate": false}
 *             ├ seen before ──────────────▶ 200 {"accepted": true, "duplicate": true}
 *             ├ there is no such run ─────▶ 404, nothing is kept: the sender tries again
 *             └ the run is past it, or `when` is false ─▶ the rows of the delivery alone ─▶ 200 {"accepted": false, …}
 *
 * Who asks is known by the signature and by nothing else: keys, Hapax-* and Idempotency-Key are not looked at.
 */
#include "api/api.h"
#include "api/hooks.h"
#include "base/excerpt.h"
#include "base/json_pointer.h"
#include "base/json_string.h"
#include "base/json_write.h"
#include "engine/run_start.h"
#include "flow/hook.h"
#include "model/text.h"

#define DELIVERY_BYTES_MAX (512u << 20)
#define ID_BYTES_MAX 150 /* a longer one is told by its digest */
#define LOG_EVERY_MS 1000

struct delivery {
	struct api_task task;
	const struct hook_config *hook;
	struct json body;
	struct slice key; /* hook:NAME:ID */
	struct hook_seen seen;
	/* One of these is under way at a time. */
	struct run_verb verb;
	struct single single;
	struct job_push push;
	/* What they are about. */
	struct run_verb_request rq;
	struct run_start start;
	struct job_push_item item;
	struct hook_fire fire;
	void (*build)(struct delivery *d, struct unit *unit);
	bool accepted;
};

/* ---- what is told ---- */

enum outcome { TAKEN, AGAIN, DECLINED, REFUSED, FAILED };

static void hooks_count(const struct http_call *call, enum outcome outcome)
{
	struct engine_metrics *m = api_parts(call)->metrics;
	_Atomic uint64_t *counters[] = {[TAKEN] = &m->hooks_taken,
					[AGAIN] = &m->hooks_duplicate,
					[DECLINED] = &m->hooks_declined,
					[REFUSED] = &m->hooks_refused,
					[FAILED] = &m->hooks_failed};

	atomic_fetch_add(counters[outcome], 1);
}

/* Anybody may call: a line a second is enough to see it, the counter has all of them. */
static void log_refused(const struct http_call *call, const char *detail)
{
	static _Atomic int64_t next_ms;
	int64_t now = clock_mono(api_parts(call)->clock).ns / 1000000, next = atomic_load(&next_ms);

	hooks_count(call, REFUSED);
	if (now >= next && atomic_compare_exchange_strong(&next_ms, &next, now + LOG_EVERY_MS))
		log_warn(api_parts(call)->log, "a delivery to a hook was refused",
			 log_slice("hook", call_param(call, "name")), log_text("detail", detail));
}

static bool refuse_signature(struct http_call *call, const char *detail)
{
	log_refused(call, detail);
	return api_refuse(call, HX_BAD_SIGNATURE, detail);
}

static void hooks_tell(struct http_call *call, bool accepted, bool duplicate)
{
	struct strbuf text;

	strbuf_init(&text, 100);
	strbuf_add_char(&text, '{');
	json_more_bool(&text, "accepted", accepted);
	json_more_bool(&text, "duplicate", duplicate);
	strbuf_add_char(&text, '}');
	api_answer(call, 200, &text, /* etag_version= */ 0);
}

static void end_taken(struct delivery *d, bool duplicate)
{
	hooks_count(d->task.call, duplicate ? AGAIN : d->accepted ? TAKEN : DECLINED);
	hooks_tell(d->task.call, d->accepted, duplicate);
	api_task_free(&d->task);
}

static void end_failed(struct delivery *d, enum hx_code code, const char *detail)
{
	hooks_count(d->task.call, FAILED);
	api_task_end(&d->task, code, detail, NULL);
}

/* ---- units of one ---- */

static void hooks_build(const struct single *single, struct unit *unit)
{
	struct delivery *d = single->context;

	d->build(d, unit);
}

static void build_start(struct delivery *d, struct unit *unit);

/* HX_WRONG_STATUS: a run of that singleton is there already. */
static enum hx_code hooks_answered(struct single *single, const struct unit_result *result)
{
	const struct delivery *d = single->context;

	if (d->build == build_start && hook_start_was_held(&d->seen, &d->start.spec, result))
		return HX_WRONG_STATUS;
	return result->verdict == UNIT_WON ? HX_OK : HX_ALREADY_EXISTS;
}

static void decline(struct delivery *d);

static void unit_done(struct seat *seat, enum hx_code code)
{
	struct delivery *d = (struct delivery *)seat;

	if (code == HX_WRONG_STATUS) {
		decline(d);
		return;
	}
	if (code && code != HX_ALREADY_EXISTS) {
		end_failed(d, code, NULL);
		return;
	}
	if (!code && d->build && d->start.spec.machine && d->accepted) {
		run_start_take_created(&d->start, &d->single);
		runs_drive(runs_created(api_parts(d->task.call)->runs, &d->start.spec, &d->start.row));
	}
	end_taken(d, code == HX_ALREADY_EXISTS);
}

static void start_unit(struct delivery *d, void (*build_it)(struct delivery *d, struct unit *unit))
{
	d->build = build_it;
	d->task.seat.done = unit_done;
	single_init(&d->single, d, hooks_build, hooks_answered);
	api_task_start(&d->task, &d->single.task, hash_bytes(0, d->key.p, d->key.n));
}

static void build_declined(struct delivery *d, struct unit *unit)
{
	hook_build_seen(&d->seen, &d->single.stamp, unit);
}

static void decline(struct delivery *d)
{
	d->accepted = false;
	start_unit(d, build_declined);
}

/* ---- expressions ---- */

/* Of the body; no expression: `otherwise`. In the exchange's arena; false after answering. */
static bool hooks_value_of(struct delivery *d, const struct expression *expression, const char *what,
			   struct slice otherwise, struct slice *ret)
{
	struct http_call *call = d->task.call;
	struct expression_env env = {.whole = d->body};
	struct hx_error err;
	enum hx_code code;

	*ret = otherwise;
	if (!expression)
		return true;
	LOCAL_STRBUF(text, HOOK_BODY_BYTES_MAX);
	code = expression_eval(expression, &env, &d->task.arena, &err, &text);
	if (!code) {
		*ret = arena_copy(call->arena, strbuf_slice(&text));
		code = ret->p ? HX_OK : error_set(&err, HX_NO_MEMORY, "%s", what);
	}
	if (!code)
		return true;
	end_failed(d, code, text_printf(call->arena, "%s: %s", what, err.detail));
	return false;
}

/* A value that names something: a string, or a number as it is written. False after answering. */
static bool hooks_name_of(struct delivery *d, const struct expression *expression, const char *what, struct slice *ret)
{
	struct slice json;

	if (!hooks_value_of(d, expression, what, slice_str("null"), &json))
		return false;
	*ret = json_type(json_trust(json)) == JSON_STRING   ? json_string_decode(json_trust(json), d->task.call->arena)
	       : json_type(json_trust(json)) == JSON_NUMBER ? json
							    : slice_of(NULL, 0);
	if (ret->p && run_key_is_good(*ret))
		return true;
	end_failed(d, HX_VALIDATION_ERROR,
		   text_printf(d->task.call->arena, "%s is neither a string of 1 to %d characters nor a number", what,
			       RUN_KEY_CHARACTERS_MAX));
	return false;
}

static bool is_truth(struct slice json)
{
	return !slice_is(json, "null") && !slice_is(json, "false");
}

/* ---- what it does ---- */

/* The run that is to be made. False after answering. */
static bool make_start(struct delivery *d, const struct expression *input, struct slice key)
{
	struct http_call *call = d->task.call;
	struct run_wanted wanted = {.workspace = api_workspace(call),
				    .requester = api_requester(call),
				    .traceparent = api_traceparent(call),
				    .workflow = slice_str(d->hook->workflow),
				    .arena = call->arena};
	struct slice text;
	struct json value;
	struct hx_error err;
	enum hx_code code;

	if (!hooks_value_of(d, input, "input", slice_str("{}"), &text))
		return false;
	value = json_trust(text);
	wanted.input = &value;
	code = run_start_init(&d->start, api_of(call)->engine, &wanted, &err);
	d->start.spec.key = key;
	if (!code)
		return true;
	end_failed(d, code,
		   code == HX_NOT_FOUND ? api_no_workflow_words(call, wanted.workflow, "run")
					: text_printf(call->arena, "%s", err.detail));
	return false;
}

static void build_start(struct delivery *d, struct unit *unit)
{
	d->start.spec.subject = d->single.fresh_id;
	hook_build_start(&d->seen, &d->single.stamp, &d->start.spec, unit);
}

static void signalled(struct seat *seat, enum hx_code code)
{
	struct delivery *d = (struct delivery *)seat;
	const struct run_verb *v = &d->verb;

	if (code == HX_WRONG_STATUS || code == HX_RUN_EXPIRED || code == HX_RESTARTED) {
		d->start = (struct run_start){0};
		decline(d); /* it never will be */
		return;
	}
	if (code) {
		end_failed(d, code == HX_CONFIG_ERROR ? HX_BUSY : code, v->detail ? v->detail : runs_detail(code));
		return;
	}
	if (v->kind == RUN_DEBOUNCE && !v->changed && !v->duplicate) {
		d->start = (struct run_start){0};
		decline(d); /* a run of its singleton goes on */
		return;
	}
	if (v->created) {
		run_start_take_made(&d->start, v);
		runs_drive(runs_created(api_parts(d->task.call)->runs, &d->start.spec, &d->start.row));
	}
	end_taken(d, v->duplicate);
}

static void do_start(struct delivery *d)
{
	if (!make_start(d, d->hook->data, d->key))
		return;
	if (!run_start_is_debounced(&d->start)) {
		start_unit(d, build_start);
		return;
	}
	d->rq = run_start_debounced(&d->start);
	d->rq.along = &d->seen.along;
	d->task.seat.done = signalled;
	run_verb_init(&d->verb, &d->rq, &d->task.arena);
	api_task_start(&d->task, &d->verb.task, run_start_lane(&d->start));
}

static void do_signal(struct delivery *d)
{
	struct http_call *call = d->task.call;
	struct run_verb_request *rq = &d->rq;
	uint64_t lane;

	*rq = (struct run_verb_request){.kind = RUN_EVENT,
					.workspace = api_workspace(call),
					.workflow = slice_str(d->hook->workflow),
					.name = slice_str(d->hook->event),
					.event_id = d->key,
					.own_id = true,
					.policy = api_parts(call)->run_policy,
					.along = &d->seen.along};
	if (!hooks_name_of(d, d->hook->key, "key", &rq->key) ||
	    !hooks_value_of(d, d->hook->data, "data", d->body.raw, &rq->data))
		return;
	if (d->hook->start && run_key_is_reserved(rq->key)) {
		end_failed(d, HX_KEY_RESERVED, RUN_KEYS_RESERVED);
		return;
	}
	if (d->hook->start && !make_start(d, d->hook->input, rq->key))
		return;
	rq->start = d->hook->start ? &d->start.spec : NULL;
	lane = runs_hash(&(struct run_spec){.workspace = rq->workspace, .key = rq->key});
	d->task.seat.done = signalled;
	run_verb_init(&d->verb, rq, &d->task.arena);
	api_task_start(&d->task, &d->verb.task, lane);
}

static void pushed(struct seat *seat, enum hx_code code)
{
	struct delivery *d = (struct delivery *)seat;

	if (code && code != HX_ALREADY_EXISTS)
		end_failed(d, code, NULL);
	else
		end_taken(d, code == HX_ALREADY_EXISTS || !d->item.created);
}

static void do_push(struct delivery *d)
{
	d->item = (struct job_push_item){
		.queue = slice_str(d->hook->queue), .key = d->key, .priority = d->hook->priority};
	if (!hooks_value_of(d, d->hook->data, "payload", d->body.raw, &d->item.payload))
		return;
	d->task.seat.done = pushed;
	job_push_init(&d->push, api_workspace(d->task.call), &d->item, 1, &d->task.arena);
	d->push.along = &d->seen.push;
	api_task_start(&d->task, &d->push.task, hash_bytes(0, d->key.p, d->key.n));
}

static void build_fire(struct delivery *d, struct unit *unit)
{
	d->fire.subject = d->single.fresh_id;
	hook_build_fire(&d->seen, &d->single.stamp, &d->fire, unit);
}

static void do_fire(struct delivery *d)
{
	struct http_call *call = d->task.call;
	struct slice id, input;

	if (!hooks_name_of(d, d->hook->entity, "id", &id) ||
	    !hooks_value_of(d, d->hook->data, "input", d->body.raw, &input))
		return;
	LOCAL_STRBUF(text, 2 * HOOK_BODY_BYTES_MAX);
	strbuf_add_char(&text, '{');
	json_more_text(&text, "workflow", slice_str(d->hook->workflow));
	json_more_text(&text, "id", id);
	json_more_text(&text, "step", slice_str(d->hook->step));
	json_more_text(&text, "workspace", api_workspace(call));
	json_more_text(&text, "requester", api_requester(call));
	json_more_json(&text, "input", input);
	strbuf_add_char(&text, '}');
	d->fire = (struct hook_fire){.workspace = api_workspace(call),
				     .key = d->key,
				     .payload = text.failed ? slice_of(NULL, 0)
							    : arena_copy(call->arena, strbuf_slice(&text))};
	if (d->fire.payload.p)
		start_unit(d, build_fire);
	else
		end_failed(d, HX_NO_MEMORY, NULL);
}

/* ---- which event it is ---- */

/* False after answering. */
static bool read_id(struct delivery *d, struct slice *ret_id)
{
	struct http_call *call = d->task.call;
	struct json value;
	size_t n = 0;

	*ret_id = slice_of(NULL, 0);
	if (d->hook->id_header) {
		const struct wire_field *field = wire_find(call->request->wire.head.fields, d->hook->id_header, &n);

		if (field && n == 1)
			*ret_id = field->value;
	} else if (json_pointer_select(d->body, slice_str(d->hook->id_pointer), &value) == JSON_SELECTED) {
		*ret_id = json_type(value) == JSON_STRING   ? json_string_decode(value, call->arena)
			  : json_type(value) == JSON_NUMBER ? value.raw
							    : *ret_id;
	}
	if (ret_id->p && run_key_is_good(*ret_id))
		return true;
	end_failed(d, HX_VALIDATION_ERROR, "the event has no id where the configuration says");
	return false;
}

static const char *hex_of(struct http_call *call, struct slice bytes)
{
	uint8_t digest[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1];

	sha256(bytes.p, bytes.n, digest);
	sha256_hex(digest, hex);
	return text_printf(call->arena, "%s", hex);
}

/* The rows by which it is known, and the key of its effect. False after answering. */
static bool name_delivery(struct delivery *d, struct slice id)
{
	struct http_call *call = d->task.call;
	const char *known = id.n <= ID_BYTES_MAX ? text_printf(call->arena, "%.*s", SLICE_ARGS(id)) : hex_of(call, id);
	const char *key = text_printf(call->arena, "hook:%s:%s", d->hook->name, known ? known : "");
	const char *row = text_printf(call->arena, "id/%s", known ? known : "");
	const char *body = text_printf(call->arena, "body/%s", hex_of(call, call->request->body));

	if (!known || !key || !row || !body) {
		end_failed(d, HX_NO_MEMORY, NULL);
		return false;
	}
	d->key = slice_str(key);
	hook_seen_init(&d->seen);
	d->seen.hook = slice_str(d->hook->name);
	d->seen.keep_ms = d->hook->keep_ms;
	d->seen.names[d->seen.n++] = slice_str(row);
	if (!hook_id_is_signed(d->hook))
		d->seen.names[d->seen.n++] = slice_str(body);
	return true;
}

static void hooks_deliver(struct delivery *d)
{
	static void (*const does[])(struct delivery *) = {
		[HOOK_SIGNALS] = do_signal, [HOOK_STARTS] = do_start, [HOOK_FIRES] = do_fire, [HOOK_PUSHES] = do_push};
	struct slice id, when;

	if (!read_id(d, &id) || !name_delivery(d, id) ||
	    !hooks_value_of(d, d->hook->when, "when", slice_str("true"), &when))
		return;
	d->accepted = true;
	if (is_truth(when))
		does[d->hook->does](d);
	else
		decline(d);
}

/* ---- the door ---- */

/* What is said before the body is read. */
bool api_hook_admit(struct http_call *call)
{
	const struct hook *hook = hooks_find(api_of(call)->hooks, call_param(call, "name"));

	if (!hook) {
		log_refused(call, "there is no such hook");
		return api_refuse(call, HX_NOT_FOUND, "there is no such hook");
	}
	if (!hook_has_signature(hook->config, call->request->wire.head.fields))
		return refuse_signature(call, "the signature is missing");
	call->workspace = slice_str(hook->config->workspace);
	call->requester = slice_str(hook->config->requester);
	return true;
}

void api_hook(struct http_call *call)
{
	const struct hook *hook = hooks_find(api_of(call)->hooks, call_param(call, "name"));
	const char *wrong = hook_check_signature(hook->config, &hook->keys, call->request->wire.head.fields,
						 call->request->body, clock_wall(api_parts(call)->clock));
	struct delivery *d;
	struct hx_error err;
	struct json body;

	if (wrong) {
		(void)refuse_signature(call, wrong);
		return;
	}
	if (json_check(call->request->body, &err, &body)) {
		hooks_count(call, FAILED);
		http_respond_error(call->exchange, &err);
		return;
	}
	d = api_task_new(call, sizeof *d, DELIVERY_BYTES_MAX, unit_done);
	if (!d)
		return;
	d->hook = hook->config;
	d->body = body;
	hooks_deliver(d);
}
