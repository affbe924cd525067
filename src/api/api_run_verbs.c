/*
 * What callers do to a run: cancel, retry, pause, resume, migrate, send an event, decide an approval, say what became of a step that
 * is UNKNOWN. All of them are one task (flow/run_verb.h), and differ in what they read from the request. And, for who has to say it: what
 * the probe of that step says now (flow/run_ask.h), which changes nothing.
 *
 *   request ─▶ (approval: read the run for its entry_lock ─▶ take it) ─▶ the verb, in the run's lane ─▶ (release) ─▶ answer
 */
#include "api/api.h"
#include "api/api_gate.h"
#include "base/json_number.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "engine/runs.h"
#include "flow/function.h"
#include "flow/run_ask.h"
#include "flow/run_verb.h"
#include "wire/loop.h"

#define VERB_BYTES_MAX (512u << 20)
#define PERSON_BYTES_MAX 255
#define COMMENT_BYTES_MAX 4096
#define MEMBERS_BYTES_MAX 4096

struct verb_call {
	struct api_task task;
	struct run_verb verb;
	struct run_verb_request rq;
	struct run_along along; /* the record of its Idempotency-Key */
	struct entry_ticket ticket;
	int64_t lock_ms;
	enum hx_code code;
	const char *detail;
};

/* ---- the answer ---- */

static int status_of(const struct run_verb *v)
{
	bool later = v->rq->kind == RUN_CANCEL  ? strcmp(v->status, RUN_CANCELLED) != 0
		     : v->rq->kind == RUN_EVENT ? !v->duplicate
						: false;

	return later ? 202 : 200;
}

/* The new run as it is when it is made. */
static void write_restarted(const struct run_verb *v, struct strbuf *text)
{
	strbuf_add_char(text, '{');
	json_more_id(text, "id", "run", v->restart.subject);
	json_more_text(text, "status", slice_str(RUN_PENDING));
	json_more_int(text, "version", 1);
	json_more_id(text, "restartOf", "run", v->rq->subject);
	strbuf_add_char(text, '}');
}

/* Of a dry run: as it would be. */
static void write_migrated(const struct run_verb *v, struct strbuf *text)
{
	strbuf_add_char(text, '{');
	json_more_id(text, "id", "run", v->rq->subject);
	json_more_text(text, "status", slice_str(v->status));
	json_more_int(text, "version", v->version);
	if (v->rq->function_version.p)
		json_more_text(text, "functionVersion", v->rq->function_version);
	else
		json_more_int(text, "definitionVersion", v->rq->definition_version);
	json_more_bool(text, "dryRun", v->rq->dry_run);
	strbuf_add_char(text, '}');
}

/* The verb as it is told when it is done, or before, in the unit that gets it done. */
static void write_answer(const void *of, struct strbuf *text)
{
	const struct run_verb *v = of;

	if (v->rq->kind == RUN_RESTART) {
		write_restarted(v, text);
		return;
	}
	if (v->rq->kind == RUN_MIGRATE) {
		write_migrated(v, text);
		return;
	}
	strbuf_add_char(text, '{');
	json_more_id(text, "id", "run", v->rq->subject);
	json_more_text(text, "status", slice_str(v->status));
	json_more_int(text, "version", v->version);
	if (v->rq->kind == RUN_EVENT)
		json_more_bool(text, "duplicate", v->duplicate);
	strbuf_add_char(text, '}');
}

static struct api_told told_of(const struct run_verb *v)
{
	return (struct api_told){status_of(v), v->rq->kind == RUN_RESTART ? 1 : v->version, write_answer, v};
}

static void run_verbs_add_record(struct run_along *along, const struct run_verb *v, struct unit *unit)
{
	struct api_told told = told_of(v);

	api_gate_carry(CONTAINER_OF(along, struct verb_call, along)->task.call->gate, &told, unit);
}

static void run_verbs_record_written(struct run_along *along, const struct unit_result *result)
{
	api_gate_carried(CONTAINER_OF(along, struct verb_call, along)->task.call->gate, result);
}

static void note_done(struct verb_call *vc)
{
	const struct run_machine *machine = vc->verb.row.machine;
	const struct run_definition *definition = machine ? machine->definition : NULL;

	/* A unit that was lost may have carried the record before it turned out that nothing is to be done. */
	if (vc->task.call->gate && !vc->verb.changed)
		api_gate_not_carried(vc->task.call->gate);
	/* One that nobody had begun is cancelled here and now; all others end where they are driven. */
	if (vc->verb.changed && definition && vc->rq.kind != RUN_RESTART && vc->rq.kind != RUN_MIGRATE)
		tally_add(&api_parts(vc->task.call)->metrics->runs_ended,
			  definition->is_function ? TALLY_FUNCTIONS : definition->name, vc->verb.status);
}

/* The first step that does not fit is told by itself, too. */
static void respond_misfit(struct verb_call *vc)
{
	struct problem problem = {.code = HX_CANNOT_MIGRATE, .detail = slice_str(vc->detail)};
	LOCAL_STRBUF(members, MEMBERS_BYTES_MAX);

	strbuf_add_str(&members, "\"step\":");
	json_quote(slice_str(vc->verb.migration.misfit), &members);
	problem.members = strbuf_slice(&members);
	http_respond_problem(vc->task.call->exchange, &problem);
	api_task_free(&vc->task);
}

static void respond_and_free(struct verb_call *vc)
{
	enum hx_code code = vc->code == HX_CONFIG_ERROR ? HX_BUSY : vc->code;
	struct api_told told = {0};

	if (code == HX_CANNOT_MIGRATE && vc->verb.migration.misfit) {
		respond_misfit(vc);
		return;
	}

	if (code == HX_OK) {
		note_done(vc);
		told = told_of(&vc->verb);
	}
	api_task_end(&vc->task, code, vc->detail ? vc->detail : runs_detail(code), &told);
}

static void lock_released(struct entry_ticket *ticket)
{
	respond_and_free(CONTAINER_OF(ticket, struct verb_call, ticket));
}

/* The lock is given back before the caller hears, so that its next call is not refused because of its last. */
static void verb_end(struct verb_call *vc, enum hx_code code, const char *detail)
{
	vc->code = code;
	vc->detail = detail;
	entry_lock_release(&vc->ticket);
}

static void verb_done(struct seat *seat, enum hx_code code)
{
	struct verb_call *vc = (struct verb_call *)seat;

	verb_end(vc, code, vc->verb.detail);
}

/* ---- the start ---- */

static void verb_submit(struct verb_call *vc)
{
	run_verb_init(&vc->verb, &vc->rq, &vc->task.arena);
	api_task_start(&vc->task, &vc->verb.task, (uint64_t)vc->rq.subject);
}

/* Without its store the outer door stands open; the inner ones decide. */
static void lock_taken(struct entry_ticket *ticket, enum hx_code code)
{
	struct verb_call *vc = CONTAINER_OF(ticket, struct verb_call, ticket);
	struct engine_metrics *metrics = api_parts(vc->task.call)->metrics;

	if (code == HX_ENTRY_LOCKED) {
		atomic_fetch_add(&metrics->entry_locked, 1);
		verb_end(vc, HX_ENTRY_LOCKED, NULL);
		return;
	}
	atomic_fetch_add(&metrics->entry_lock_unavailable, code != HX_OK);
	verb_submit(vc);
}

/* NULL after answering. */
static struct verb_call *verb_new(struct http_call *call, const struct run_verb_request *rq)
{
	struct verb_call *vc;
	int64_t subject;

	if (!api_run_id(call, &subject))
		return NULL;
	vc = api_task_new(call, sizeof *vc, VERB_BYTES_MAX, verb_done);
	if (!vc)
		return NULL;
	vc->rq = *rq;
	vc->rq.workspace = api_workspace(call);
	vc->rq.subject = subject;
	vc->rq.policy = api_parts(call)->run_policy;
	vc->rq.along = call->gate ? &vc->along : NULL;
	vc->along = (struct run_along){.add = run_verbs_add_record, .won = run_verbs_record_written};
	vc->ticket.taken = lock_taken;
	vc->ticket.released = lock_released;
	return vc;
}

static void verb_start(struct http_call *call, const struct run_verb_request *rq)
{
	struct verb_call *vc = verb_new(call, rq);

	if (vc)
		verb_submit(vc);
}

/* ---- cancel, retry, pause, resume ---- */

void api_run_verb(struct http_call *call)
{
	static const char *const known[] = {"version", "reason", NULL};
	struct run_verb_request rq = {.kind = (enum run_verb_kind)call->route->verb, .requester = api_requester(call)};
	struct json body;

	if (api_body(call, known, &body) && api_version(call, body, &rq.version) && api_reason(call, body, &rq.reason))
		verb_start(call, &rq);
}

/* ---- restart ---- */

static bool read_input(struct http_call *call, struct json body, struct slice *ret_input)
{
	struct json value;

	if (!json_find(body, slice_str("input"), &value))
		return true;
	if (json_type(value) != JSON_OBJECT)
		return api_invalid(call, "input must be an object");
	*ret_input = value.raw;
	return value.raw.n <= RUN_INPUT_BYTES_MAX || api_refuse(call, HX_TOO_LARGE, "input is at most 1 MiB");
}

void api_run_restart(struct http_call *call)
{
	static const char *const known[] = {"from", "input", NULL};
	struct run_verb_request rq = {
		.kind = RUN_RESTART, .requester = api_requester(call), .traceparent = api_traceparent(call)};
	struct json body;

	if (api_body(call, known, &body) &&
	    api_name_member(call, body, "from", "from is the name of a step", &rq.name) &&
	    read_input(call, body, &rq.data))
		verb_start(call, &rq);
}

/* ---- migrate ---- */

/* {"old": "new"}, names of steps; in the exchange's arena. False after answering. */
static bool read_renames(struct http_call *call, struct json body, struct slice *ret_json)
{
	const char *words = NULL;
	struct json map;

	if (!json_find(body, slice_str("steps"), &map))
		return true;
	*ret_json = run_migrate_renames(map, call->arena, &words);
	if (!ret_json->p && !words)
		return api_refuse(call, HX_TOO_LARGE, "steps is too large");
	return ret_json->p || api_invalid(call, "%s", words);
}

static bool read_target(struct http_call *call, struct json body, struct run_verb_request *rq)
{
	struct json value = body;
	struct hx_error err;

	if (!api_text(call, body, "functionVersion", FUNCTION_VERSION_BYTES_MAX, &rq->function_version))
		return false;
	if (json_find(body, slice_str("definitionVersion"), &value) == (rq->function_version.p != NULL))
		return api_invalid(call, "definitionVersion is needed, or functionVersion of a function");
	if (!rq->function_version.p && (json_int64(value, &err, &rq->definition_version) || rq->definition_version < 1))
		return api_invalid(call, "definitionVersion is a whole number from 1 on");
	if (!json_find(body, slice_str("dryRun"), &value))
		return true;
	if (json_type(value) != JSON_BOOL)
		return api_invalid(call, "dryRun is true or false");
	rq->dry_run = json_bool(value);
	return true;
}

void api_run_migrate(struct http_call *call)
{
	static const char *const known[] = {"definitionVersion", "functionVersion", "steps", "dryRun", "version", NULL};
	struct run_verb_request rq = {.kind = RUN_MIGRATE, .requester = api_requester(call)};
	struct json body;

	if (api_body(call, known, &body) && read_target(call, body, &rq) && read_renames(call, body, &rq.data) &&
	    api_version(call, body, &rq.version))
		verb_start(call, &rq);
}

/* ---- events ---- */

/* What the run will keep: null when it is absent. */
static bool read_output(struct http_call *call, struct json body, const char *member, struct slice *ret_json)
{
	return api_member(call, body, member, RUN_OUTPUT_BYTES_MAX, "what a step puts out is at most 1 MiB", ret_json);
}

bool api_event_data(struct http_call *call, struct json body, struct slice *ret_json)
{
	return read_output(call, body, "data", ret_json);
}

void api_run_event(struct http_call *call)
{
	static const char *const known[] = {"id", "data", NULL};
	struct run_verb_request rq = {.kind = RUN_EVENT, .name = call_param(call, "event")};
	struct json body, value;

	if (!api_name_checked(call, rq.name, "the event") || !api_body(call, known, &body) ||
	    !api_event_data(call, body, &rq.data))
		return;
	if (!json_find(body, slice_str("id"), &value) || api_key_checked(call, value, "id", &rq.event_id))
		verb_start(call, &rq);
}

/* ---- approvals ---- */

/* {"decision", "by", "comment"}, which is the output of the step. In the exchange's arena; false after answering. */
static bool read_decision(struct http_call *call, struct json body, struct slice *ret_data)
{
	struct slice by = api_requester(call), comment = {NULL, 0};
	bool approves;

	if (!api_either(call, body, "decision", "approve", "reject", &approves) ||
	    !api_text(call, body, "by", PERSON_BYTES_MAX, &by) ||
	    !api_text(call, body, "comment", COMMENT_BYTES_MAX, &comment))
		return false;
	LOCAL_STRBUF(text, RUN_OUTPUT_BYTES_MAX);
	strbuf_add_char(&text, '{');
	json_more_text(&text, "decision", slice_str(approves ? "approve" : "reject"));
	json_more_text(&text, "by", by);
	json_more_text(&text, "comment", comment);
	strbuf_add_char(&text, '}');
	*ret_data = text.failed ? slice_of(NULL, 0) : arena_copy(call->arena, strbuf_slice(&text));
	if (!ret_data->p)
		http_respond_code(call->exchange, HX_BUSY, NULL);
	return ret_data->p;
}

/* Before the verb: which definition is it, and does the step have an entry lock? */
struct lock_query {
	struct api_query query;
	struct verb_call *vc;
	const char *workflow;
};

static enum hx_code answered_lock_query(struct api_query *query, const struct unit_result *result)
{
	struct lock_query *lq = (struct lock_query *)query;
	struct verb_call *vc = lq->vc;
	const struct run_policy *policy = vc->rq.policy;
	const struct run_step *step = NULL;
	struct run_row row;
	enum hx_code code = run_row_take(result, policy->machine_of, policy->context, &vc->task.arena, &row);

	if (!code && !row.expired) {
		lq->workflow = row.machine->definition->name;
		step = run_definition_step(row.definition, vc->rq.name);
	}
	vc->lock_ms = step ? step->entry_lock_ms : 0;
	arena_reset(&vc->task.arena);
	return HX_OK; /* whatever is wrong with the run, the verb says so */
}

static void lock_known(struct api_query *query, enum hx_code code)
{
	struct lock_query *lq = (struct lock_query *)query;
	struct verb_call *vc = lq->vc;
	struct entry_key key = {
		.workspace = vc->rq.workspace, .entity = call_param(vc->task.call, "id"), .step = vc->rq.name};

	if (code || !vc->lock_ms) {
		verb_submit(vc);
		return;
	}
	key.workflow = slice_str(lq->workflow);
	entry_lock_take(api_parts(vc->task.call)->entry_locks, &vc->ticket, &key, vc->lock_ms);
}

static void start_approval(struct verb_call *vc)
{
	struct lock_query *lq = arena_zalloc(vc->task.call->arena, sizeof *lq);

	if (!lq) {
		verb_end(vc, HX_BUSY, NULL);
		return;
	}
	lq->query = (struct api_query){
		.call = vc->task.call,
		.read = run_read,
		.subject = vc->rq.subject,
		.answered = answered_lock_query,
		.ended = lock_known,
	};
	api_query_init(&lq->query);
	lq->vc = vc;
	api_query_start(&lq->query, (uint64_t)vc->rq.subject);
}

void api_run_approve(struct http_call *call)
{
	static const char *const known[] = {"decision", "by", "comment", "version", NULL};
	struct run_verb_request rq = {.kind = RUN_APPROVE, .name = call_param(call, "step")};
	struct verb_call *vc;
	struct json body;

	if (!api_body(call, known, &body) || !api_version(call, body, &rq.version) ||
	    !read_decision(call, body, &rq.data))
		return;
	vc = verb_new(call, &rq);
	if (vc)
		start_approval(vc);
}

/* ---- a step that is UNKNOWN ---- */

void api_run_resolve(struct http_call *call)
{
	static const char *const known[] = {"outcome", "output", "version", "reason", NULL};
	struct run_verb_request rq = {
		.kind = RUN_RESOLVE, .name = call_param(call, "step"), .requester = api_requester(call)};
	struct json body;

	if (api_body(call, known, &body) && api_either(call, body, "outcome", "done", "not_done", &rq.done) &&
	    api_version(call, body, &rq.version) && api_reason(call, body, &rq.reason) &&
	    read_output(call, body, "output", &rq.data))
		verb_start(call, &rq);
}

struct probe_call {
	struct api_task task;
	struct run_ask ask;
};

void api_write_probed(struct strbuf *text, enum probe_says says, struct slice output)
{
	static const char *const words[] = {
		[PROBE_UNKNOWN] = "unknown", [PROBE_DONE] = "done", [PROBE_NOT_DONE] = "not_done"};

	strbuf_add_char(text, '{');
	json_more_text(text, "outcome", slice_str(words[says]));
	json_more_json(text, "output", says == PROBE_DONE ? output : slice_of(NULL, 0));
	json_more_text(text, "detail", says == PROBE_UNKNOWN ? output : slice_of(NULL, 0));
	strbuf_add_char(text, '}');
}

static void write_probe(const void *of, struct strbuf *text)
{
	const struct run_ask *ask = of;

	api_write_probed(text, ask->says, ask->output);
}

static void probe_done(struct seat *seat, enum hx_code code)
{
	struct probe_call *pc = (struct probe_call *)seat;

	api_task_end(&pc->task, code, pc->ask.detail ? pc->ask.detail : runs_detail(code),
		     &(struct api_told){200, 0, write_probe, &pc->ask});
}

void api_run_probe(struct http_call *call)
{
	struct probe_call *pc;
	int64_t subject;

	if (!api_run_id(call, &subject))
		return;
	pc = api_task_new(call, sizeof *pc, VERB_BYTES_MAX, probe_done);
	if (!pc)
		return;
	run_ask_init(&pc->ask, subject, api_workspace(call), call_param(call, "step"), api_parts(call)->run_policy,
		     &pc->task.arena);
	api_task_start(&pc->task, &pc->ask.task, (uint64_t)subject);
}
