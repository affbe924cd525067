/*
 * Runs: create, show, list.
 *
 * Creating one is a single unit: the run, which its key lets in once, and in front of it the record of the request's
 * Idempotency-Key. Who loses to the run's own key reads the run that is there (insert and see, never look and insert):
 *
 *   unit ─┬ won ───────────────▶ the engine drives it at once ─▶ 201, or wait
 *         ├ lost to the run ───▶ (with an Idempotency-Key: acquire) ─▶ read by its key ─▶ 200, or wait
 *         └ lost to the record ▶ the gate replays, refuses, or lets it try again
 */
#include "api/api_gate.h"
#include "api/api_list.h"
#include "api/api_search.h"
#include "api/api_wait.h"
#include "api/run_json.h"
#include "api/run_wait.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "engine/run_start.h"
#include "flow/run_verb.h"
#include "wire/loop.h"

#define SIGNAL_BYTES_MAX (512u << 20)

/* ---- reading the request ---- */

bool api_key_checked(struct http_call *call, struct json value, const char *what, struct slice *ret_key)
{
	struct slice key = {NULL, 0};

	if (json_type(value) == JSON_STRING)
		key = json_string_decode(value, call->arena);
	if (run_key_is_good(key)) {
		*ret_key = key;
		return true;
	}
	return api_invalid(call, "%s is a string of 1 to %d characters, without U+0000", what, RUN_KEY_CHARACTERS_MAX);
}

bool api_own_key_checked(struct http_call *call, struct json value, const char *what, struct slice *ret_key)
{
	return api_key_checked(call, value, what, ret_key) &&
	       (!run_key_is_reserved(*ret_key) || api_refuse(call, HX_KEY_RESERVED, RUN_KEYS_RESERVED));
}

static bool read_workflow(struct http_call *call, struct json body, struct slice *ret_name)
{
	struct json value;

	if (!json_find(body, slice_str("definitionId"), &value) || json_type(value) != JSON_STRING)
		return api_refuse(call, HX_VALIDATION_ERROR, "definitionId must be a string: the name of a workflow");
	*ret_name = json_string_view(value, call->arena);
	return ret_name->p || api_refuse(call, HX_BUSY, NULL);
}

/* What the run is sent at once, into the request of that verb. False after answering. */
static bool read_signal(struct http_call *call, struct json body, struct run_verb_request *rq)
{
	static const char *const known[] = {"event", "id", "data", NULL};
	struct json signal, id = {0};

	if (!json_find(body, slice_str("signal"), &signal))
		return true;
	if (json_type(signal) != JSON_OBJECT)
		return api_invalid(call, "signal is an object: {\"event\", \"id\", \"data\"}");
	if (!api_members_known(call, signal, known) ||
	    !api_name_member(call, signal, "event", "signal: event is the name of the event", &rq->name))
		return false;
	if (!json_find(signal, slice_str("id"), &id))
		return api_invalid(call, "signal: an event that comes with a start needs an id");
	rq->kind = RUN_EVENT;
	return api_key_checked(call, id, "the id of signal", &rq->event_id) && api_event_data(call, signal, &rq->data);
}

/* False after answering. */
static bool read_start(struct http_call *call, struct run_start *start, struct run_verb_request *signal)
{
	static const char *const known[] = {"definitionId", "input", "idempotencyKey", "signal", NULL};
	struct run_wanted wanted = {
		.workspace = api_workspace(call),
		.requester = api_requester(call),
		.traceparent = api_traceparent(call),
		.arena = call->arena,
	};
	struct json body, value, input;
	struct hx_error err;
	enum hx_code code;

	if (!api_body(call, known, &body) || !read_workflow(call, body, &wanted.workflow) ||
	    !read_signal(call, body, signal))
		return false;
	if (json_find(body, slice_str("input"), &input))
		wanted.input = &input;
	code = run_start_init(start, api_of(call)->engine, &wanted, &err);
	if (code == HX_NOT_FOUND)
		api_no_workflow(call, wanted.workflow, "run");
	else if (code)
		http_respond_error(call->exchange, &err);
	if (code)
		return false;
	if (!json_find(body, slice_str("idempotencyKey"), &value))
		return true;
	return api_own_key_checked(call, value, "idempotencyKey", &start->spec.key);
}

/* ---- create ---- */

struct creation {
	struct api_query query;  /* the unit that creates; with a signal it has the call alone */
	struct api_query by_key; /* the one that reads what is there already */
	struct run_start start;
	int64_t wait_ms;
	enum run_wait_wrap wrap;        /* of what is there already */
	struct run_verb_request signal; /* .name.p NULL: none */
	bool duplicate;                 /* the run had it already */
	bool carried;                   /* by the task that drives it; */
	struct drive *made;             /* and it has been made; while its caller is told */
};

static void runs_build_create(struct api_query *query, struct unit *unit)
{
	struct creation *c = (struct creation *)query;

	if (!c->carried) /* else who drives it adds these lines */
		run_start_build(&c->start, &query->single, unit);
}

static enum hx_code runs_answered_create(struct api_query *query, const struct unit_result *result)
{
	(void)query;
	return run_start_answered(result);
}

static void render_create(struct api_query *query)
{
	struct creation *c = (struct creation *)query;

	c->query.status = 201;
	c->query.etag = 1;
	run_start_take_created(&c->start, &query->single);
	if (!c->wait_ms || query->call->gate) /* else who waits is told later, or out of the row (show_created) */
		run_wait_wrap(&c->start.row, RUN_CREATED, &query->text);
}

static void build_by_key(struct api_query *query, struct unit *unit)
{
	const struct creation *c = CONTAINER_OF(query, struct creation, by_key);

	run_start_build_find(&c->start, unit);
}

static enum hx_code answered_by_key(struct api_query *query, const struct unit_result *result)
{
	struct creation *c = CONTAINER_OF(query, struct creation, by_key);
	struct strbuf *text = &c->by_key.text;
	enum hx_code code = run_wait_show_started(&c->start, result, &c->wrap, text);

	if (!code && c->duplicate && text->n) {
		text->n--; /* the brace */
		strbuf_add_str(text, ",\"duplicate\":true}");
	}
	c->by_key.detail = c->start.detail;
	c->by_key.etag = code ? 0 : c->start.row.version;
	return code;
}

static void found_by_key(struct api_query *query, enum hx_code code)
{
	struct creation *c = CONTAINER_OF(query, struct creation, by_key);

	if (!code && c->wait_ms && !run_is_terminal(c->start.row.status))
		api_wait_start(&(struct api_wait){.kind = &run_waits,
						  .call = query->call,
						  .subject = c->start.row.subject,
						  .wait_ms = c->wait_ms,
						  .wrap = c->wrap});
	else
		api_query_tell(query, code);
}

static void read_by_key(void *data)
{
	struct creation *c = data;

	c->by_key = (struct api_query){
		.call = c->query.call, .build = build_by_key, .answered = answered_by_key, .ended = found_by_key};
	api_query_init(&c->by_key);
	api_query_start(&c->by_key, run_start_lane(&c->start));
}

static void build_locate(struct api_query *query, struct unit *unit)
{
	run_start_build_locate(&CONTAINER_OF(query, struct creation, by_key)->start, unit);
}

static enum hx_code answered_locate(struct api_query *query, const struct unit_result *result)
{
	struct creation *c = CONTAINER_OF(query, struct creation, by_key);
	enum hx_code code = run_start_located(&c->start, result);

	c->by_key.detail = c->start.detail;
	return code;
}

static void located(struct api_query *query, enum hx_code code)
{
	if (code)
		api_query_tell(query, code);
	else
		read_by_key(CONTAINER_OF(query, struct creation, by_key));
}

static void find_there(void *data)
{
	struct creation *c = data;

	if (!run_start_must_locate(&c->start)) {
		read_by_key(c);
		return;
	}
	c->by_key = (struct api_query){
		.call = c->query.call, .build = build_locate, .answered = answered_locate, .ended = located};
	api_query_init(&c->by_key);
	api_query_start(&c->by_key, run_start_lane(&c->start));
}

/* It is there, and is driven; tell() is how its caller is told, where he does not wait. */
static void tell_created(struct creation *c, void (*tell)(struct creation *c))
{
	struct http_call *call = c->query.call;
	struct drive *drive = c->made ? NULL : runs_created(api_parts(call)->runs, &c->start.spec, &c->start.row);

	if (c->wait_ms) {
		if (call->gate)
			api_gate_tell_more(call->gate);
		/* First who waits, in the same lane: a run that has ended by then would be waited for until the next look. */
		api_wait_start(&(struct api_wait){
			.kind = &run_waits,
			.call = call,
			.subject = c->start.spec.subject,
			.wait_ms = c->wait_ms,
			.wrap = RUN_CREATED,
			.known = &c->start.row,
			.begun = c->made || drive,
			.lane = c->made ? c->query.hash : 0,
			.watch = {c->made, run_wait_completed},
		});
	} else {
		tell(c);
	}
	runs_drive(drive); /* the exchange may be gone by now */
}

static void tell_query(struct creation *c)
{
	api_query_tell(&c->query, HX_OK);
}

static void created(struct api_query *query, enum hx_code code)
{
	struct creation *c = (struct creation *)query;
	struct api_gate *gate = query->call->gate;

	if (!code)
		tell_created(c, tell_query);
	else if (code == HX_NOT_FOUND)
		api_no_workflow(query->call, slice_str(c->start.spec.machine->definition->name), "run");
	else if (code != HX_ALREADY_EXISTS || !run_start_may_find(&c->start))
		api_query_tell(query, code);
	else if (gate)
		api_gate_acquire(gate, find_there, c);
	else
		find_there(c);
}

static void carried(void *data, struct drive *drive, enum hx_code code)
{
	struct creation *c = data;

	c->made = drive;
	api_query_end(&c->query, code);
}

/* By the task that drives it, which may begin its first step in the same unit. */
static bool carry(struct api_query *query)
{
	struct creation *c = (struct creation *)query;

	struct run_making making = {
		.single = &query->single, .spec = &c->start.spec, .hash = query->hash, .ended = carried, .context = c};

	c->carried = true; /* before it is: it may be over by then */
	if (runs_make(api_parts(query->call)->runs, &making))
		return true;
	c->carried = false;
	return false;
}

/* ---- create with a signal ---- */

/* The event, and the run if it is not there, are one task (flow/run_verb.h). */
struct signalling {
	struct api_task task;
	struct run_verb verb;
	struct run_along along; /* the record of its Idempotency-Key, where the run is made */
	struct creation *c;
};

static void write_created(const void *of, struct strbuf *text)
{
	run_wait_wrap(of, RUN_CREATED, text);
}

static void write_joined(const void *of, struct strbuf *text)
{
	run_wait_wrap(of, RUN_WAS_THERE, text);
}

/* What is known of its end before it is there. */
static struct api_told told_of(struct creation *c, const struct run_verb *v)
{
	if (v->created) {
		run_start_take_made(&c->start, v);
		return (struct api_told){201, 1, write_created, &c->start.row};
	}
	run_start_take_joined(&c->start, v);
	return (struct api_told){200, v->version, write_joined, &c->start.row};
}

/* A run that is there is told as it is afterwards, and the event's id makes trying again safe: it has no record in the unit. A start
 * that replaces an input has nothing that makes it safe but its record. */
static bool has_record(const struct run_verb *v)
{
	return v->created || (v->joins && v->kind == RUN_DEBOUNCE);
}

static void runs_add_record(struct run_along *along, const struct run_verb *v, struct unit *unit)
{
	struct creation *c = CONTAINER_OF(along, struct signalling, along)->c;
	struct api_told told;

	if (!has_record(v))
		return;
	told = told_of(c, v);
	api_gate_carry(c->query.call->gate, &told, unit);
}

static void runs_record_written(struct run_along *along, const struct unit_result *result)
{
	const struct signalling *s = CONTAINER_OF(along, struct signalling, along);

	if (has_record(&s->verb))
		api_gate_carried(s->c->query.call->gate, result);
}

static void tell_signalled(struct creation *c)
{
	struct api_told told = {201, 1, write_created, &c->start.row};

	api_tell(c->query.call, &told);
}

static void tell_joined(struct creation *c, const struct run_verb *v)
{
	struct http_call *call = c->query.call;
	struct api_told told = told_of(c, v);

	if (!c->wait_ms) {
		api_tell(call, &told);
		return;
	}
	if (call->gate)
		api_gate_tell_more(call->gate);
	api_wait_start(&(struct api_wait){
		.kind = &run_waits, .call = call, .subject = v->subject, .wait_ms = c->wait_ms, .wrap = RUN_WAS_THERE});
}

static void signalled(struct seat *seat, enum hx_code code)
{
	struct signalling *s = (struct signalling *)seat;
	struct creation *c = s->c;
	struct http_call *call = c->query.call;

	if (code) {
		api_task_end(&s->task, code == HX_CONFIG_ERROR ? HX_BUSY : code,
			     s->verb.detail ? s->verb.detail : runs_detail(code), NULL);
		return;
	}
	c->duplicate = s->verb.duplicate && s->verb.kind == RUN_EVENT;
	if (s->verb.created)
		run_start_take_made(&c->start, &s->verb);
	else if (call->gate && !has_record(&s->verb))
		api_gate_not_carried(call->gate);
	c->start.there = c->start.spec.singleton || run_start_is_debounced(&c->start) ? s->verb.subject : 0;
	if (s->verb.created)
		tell_created(c, tell_signalled);
	else if (has_record(&s->verb))
		tell_joined(c, &s->verb);
	else
		read_by_key(c);
	api_task_free(&s->task);
}

static void start_signal(void *data)
{
	struct creation *c = data;
	struct http_call *call = c->query.call;
	struct signalling *s = api_task_new(call, sizeof *s, SIGNAL_BYTES_MAX, signalled);

	if (!s)
		return;
	s->c = c;
	s->along = (struct run_along){.add = runs_add_record, .won = runs_record_written};
	if (!c->signal.name.p)
		c->signal = run_start_debounced(&c->start);
	c->signal.workspace = api_workspace(call);
	c->signal.workflow = slice_str(c->start.spec.machine->definition->name);
	c->signal.key = c->start.spec.key;
	c->signal.start = &c->start.spec;
	c->signal.policy = api_parts(call)->run_policy;
	c->signal.along = call->gate ? &s->along : NULL;
	run_verb_init(&s->verb, &c->signal, &s->task.arena);
	api_task_start(&s->task, &s->verb.task, run_start_lane(&c->start));
}

void api_run_create(struct http_call *call)
{
	struct creation *c = api_alloc(call, sizeof *c);

	if (!c || !api_wait_parse(call, &c->wait_ms) || !read_start(call, &c->start, &c->signal))
		return;
	c->query.call = call;
	if (c->signal.name.p || run_start_is_debounced(&c->start)) {
		if (call->gate)
			api_gate_acquire(call->gate, start_signal, c);
		else
			start_signal(c);
		return;
	}
	c->query = (struct api_query){
		.call = call,
		.build = runs_build_create,
		.answered = runs_answered_create,
		.render = render_create,
		.carried = carry,
		.ended = created,
	};
	api_query_init(&c->query);
	api_query_start(&c->query, run_start_lane(&c->start));
}

/* ---- show ---- */

bool api_run_id(struct http_call *call, int64_t *ret_subject)
{
	return api_id(call, "run", runs_detail(HX_NOT_FOUND), ret_subject);
}

static enum hx_code runs_answered_show(struct api_query *query, const struct unit_result *result)
{
	struct run_row row;
	enum hx_code code = run_wait_show(query->call, result, RUN_BARE, &query->text, &row);

	query->detail = runs_detail(code);
	query->etag = code ? 0 : row.version;
	return code;
}

void api_run_show(struct http_call *call)
{
	struct api_query query = {.call = call, .read = run_read_shown, .answered = runs_answered_show};
	struct api_wait wait = {.kind = &run_waits, .call = call, .wrap = RUN_BARE};

	if (!api_wait_parse(call, &wait.wait_ms) || !api_run_id(call, &wait.subject))
		return;
	query.subject = wait.subject;
	if (wait.wait_ms)
		api_wait_start(&wait);
	else
		api_query_ask(&query, (uint64_t)query.subject);
}

/* ---- what is told of all subjects ---- */

void api_run_why(struct http_call *call)
{
	int64_t subject;

	if (api_run_id(call, &subject))
		api_why(call);
}

void api_run_history(struct http_call *call)
{
	int64_t subject;

	if (api_run_id(call, &subject))
		api_history(call);
}

/* ---- list ---- */

static void runs_build_list(struct api_query *query, struct unit *unit)
{
	struct run_filter filter = {.workspace = api_workspace(query->call),
				    .status = query->status_wanted,
				    .workflow = query->name,
				    .unknown = query->held,
				    .before = query->subject,
				    .limit = query->limit + 1,
				    .parent = query->parent};

	run_list(unit, &filter);
}

static void add_listed(struct api_query *query, const struct db_rows *rows, size_t i)
{
	const struct run_policy *policy = api_parts(query->call)->run_policy;

	run_json_add_listed(rows, i,
			    policy->machine_of(policy->context, db_cell(rows, i, RUN_WORKFLOW)->s,
					       db_cell(rows, i, RUN_DEFINITION_VERSION)->i),
			    &query->text);
}

static const struct api_search search = {WHERE_RUN, RUN_SUBJECT, run_list_these, run_statuses, run_kind};
const struct api_list api_run_list = {
	.build = runs_build_list,
	.filters = {FILTER_WORD("status", status_wanted, run_statuses, "status of runs"),
		    FILTER_TEXT("definitionId", name), FILTER_FLAG("unknown", held),
		    FILTER_ID("parent", parent, "run")},
	LIST_SEARCHED("run", RUN_SUBJECT, &search),
	.add = add_listed,
};
