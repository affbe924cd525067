/* Runs for an embedding program: start (run_start.h), wait, tell. See embed.h; the contract is in hapax.h. */
#include "base/duration.h"
#include "base/excerpt.h"
#include "base/id.h"
#include "base/json_string.h"
#include "base/latch.h"
#include "base/sized.h"
#include "base/trace.h"
#include "engine/embed.h"
#include "engine/run_start.h"
#include "flow/end_wait.h"
#include "flow/run_verb.h"
#include "flow/single.h"

#define STATE_BYTES_MAX (64u << 20)
#define VERB_BYTES_MAX (512u << 20)

/* ---- a run as a result ---- */

static void take_row(struct embed_reply *r, const struct run_row *row)
{
	size_t steps_n = row->definition->steps_n;
	LOCAL_STRBUF(state, STATE_BYTES_MAX);

	run_write_state(row->done, &state);
	r->result = (struct hx_result){
		.id = embed_text(r, slice_str(id_text("run", row->subject).text)),
		.status = row->status,
		.version = row->version,
		.ended = run_is_terminal(row->status),
		.step = row->position < steps_n ? embed_text(r, slice_str(row->definition->steps[row->position].name))
						: NULL,
		.data = embed_text(r, strbuf_slice(&state)),
		.output = embed_text(r, row->output),
		.error = embed_text(r, run_row_error(row)),
	};
	r->arena.failed |= state.failed;
}

/* ---- start ---- */

struct start {
	struct embed_call call;
	struct single single;
	struct run_start start;
	bool carried; /* by the task that drives the run */
	struct latch made;
	char trace[TRACE_PARENT_BYTES];
};

static void embed_runs_build_create(const struct single *single, struct unit *unit)
{
	struct start *s = single->context;

	s->single.stamp = single->stamp; /* it may be a copy that is carried */
	s->single.fresh_id = single->fresh_id;
	if (!s->carried)
		run_start_build(&s->start, single, unit);
}

static enum hx_code embed_runs_answered_create(struct single *single UNUSED, const struct unit_result *result)
{
	return run_start_answered(result);
}

static void build_locate(const struct single *single, struct unit *unit)
{
	run_start_build_locate(&((const struct start *)single->context)->start, unit);
}

static enum hx_code answered_locate(struct single *single, const struct unit_result *result)
{
	return run_start_located(&((struct start *)single->context)->start, result);
}

static void build_by_key(const struct single *single, struct unit *unit)
{
	run_start_build_find(&((const struct start *)single->context)->start, unit);
}

static enum hx_code answered_by_key(struct single *single, const struct unit_result *result)
{
	struct start *s = single->context;
	enum hx_code code = run_start_found(&s->start, result, &s->call.reply->arena);

	if (!code)
		take_row(s->call.reply, &s->start.row);
	return code;
}

static enum hx_code carry_out(struct start *s, void (*build)(const struct single *, struct unit *),
			      enum hx_code (*answered)(struct single *, const struct unit_result *))
{
	single_init(&s->single, s, build, answered);
	return embed_carry_out(s->call.e, run_start_lane(&s->start), &s->single.task);
}

static void embed_runs_made(void *context, struct drive *drive UNUSED, enum hx_code code)
{
	latch_open_with(&((struct start *)context)->made, code);
}

/* By the task that drives it, if there is room for one. */
static enum hx_code make(struct start *s)
{
	struct run_making making = {.single = &s->single,
				    .spec = &s->start.spec,
				    .hash = run_start_lane(&s->start),
				    .ended = embed_runs_made,
				    .context = s};
	enum hx_code code = HX_OK;

	single_init(&s->single, s, embed_runs_build_create, embed_runs_answered_create);
	latch_init(&s->made);
	s->carried = true;
	if (runs_make(engine_parts(s->call.e->engine)->runs, &making))
		code = latch_wait(&s->made);
	else
		s->carried = false;
	latch_release(&s->made);
	return s->carried ? code : carry_out(s, embed_runs_build_create, embed_runs_answered_create);
}

static enum hx_code create(struct start *s, struct hx_error *err)
{
	struct runs *runs = engine_parts(s->call.e->engine)->runs;
	enum hx_code code = make(s);

	if (!code) {
		run_start_take_created(&s->start, &s->single);
		take_row(s->call.reply, &s->start.row);
		s->call.reply->result.created = 1;
		runs_drive(s->carried ? NULL : runs_created(runs, &s->start.spec, &s->start.row));
	} else if (code == HX_ALREADY_EXISTS && run_start_may_find(&s->start)) {
		code = run_start_must_locate(&s->start) ? carry_out(s, build_locate, answered_locate) : HX_OK;
		if (!code)
			code = carry_out(s, build_by_key, answered_by_key);
	}
	return code ? embed_refuse(err, code, s->start.detail) : HX_OK;
}

/* Its verb makes a run, or finds one, which is told as it is by now. */
static enum hx_code create_debounced(struct start *s, struct hx_error *err)
{
	struct run_verb_request rq = run_start_debounced(&s->start);
	struct run_verb verb = {0};
	enum hx_code code;
	LOCAL_ARENA(arena, VERB_BYTES_MAX);

	run_verb_init(&verb, &rq, &arena);
	code = embed_carry_out(s->call.e, run_start_lane(&s->start), &verb.task);
	if (!code && verb.created) {
		run_start_take_made(&s->start, &verb);
		take_row(s->call.reply, &s->start.row);
		s->call.reply->result.created = 1;
		runs_drive(runs_created(engine_parts(s->call.e->engine)->runs, &s->start.spec, &s->start.row));
	} else if (!code) {
		s->start.there = verb.subject;
		code = carry_out(s, build_by_key, answered_by_key);
	}
	return code ? embed_refuse(err, code, verb.detail ? verb.detail : s->start.detail) : HX_OK;
}

static enum hx_code read_request(struct start *s, const struct hx_run_request *request, struct hx_error *err)
{
	const struct embed_who *who = &s->call.who;
	struct json input;
	enum hx_code code = embed_json(request->input, "{}", "input", SIZE_MAX, &input, err);

	if (code)
		return code;
	return run_start_init(&s->start, s->call.e->engine,
			      &(struct run_wanted){
				      .workspace = who->workspace,
				      .requester = who->requester,
				      .traceparent = trace_new(s->trace),
				      .workflow = slice_str(request->workflow),
				      .key = slice_str(request->key),
				      .input = request->input ? &input : NULL,
				      .arena = &s->call.reply->arena,
			      },
			      err);
}

enum hx_code hx_run_start(struct hx_engine *engine, const struct hx_caller *caller,
			  const struct hx_run_request *request, struct hx_result **ret_result, struct hx_error *err)
{
	struct start s = {0};
	struct hx_run_request own;
	enum hx_code code = embed_begin(&s.call, engine, caller, err);

	if (code)
		return code;
	code = SIZED_READ(request, &own, "hx_run_request", err);
	if (!code)
		code = read_request(&s, &own, err);
	if (!code)
		code = run_start_is_debounced(&s.start) ? create_debounced(&s, err) : create(&s, err);
	if (code == HX_NOT_FOUND) /* no definition, and nobody polls for a function of that name */
		code = error_set(err, code, "no workflow \"%s\" of kind run", excerpt_of(slice_str(own.workflow)).text);
	return embed_end(&s.call, code, /* also= */ HX_OK, ret_result, err);
}

/* ---- wait ---- */

struct run_waiting {
	struct end_wait wait;
	struct embed_call call;
	const char *detail; /* of a refusal; NULL: the code says it all */
};

static void read_run(const struct end_wait *wait, struct unit *unit)
{
	run_read(unit, ((const struct run_waiting *)wait)->call.who.workspace, wait->subject);
}

static enum hx_code embed_runs_show(struct end_wait *wait, const struct unit_result *result)
{
	struct run_waiting *w = (struct run_waiting *)wait;
	struct run_row row;
	enum hx_code code = runs_take(engine_parts(w->call.e->engine)->runs, result, &w->call.reply->arena, &row);

	if (!code) {
		take_row(w->call.reply, &row);
		wait->over = run_is_terminal(row.status);
	}
	w->detail = runs_detail(code);
	return code;
}

static void embed_runs_forget(struct end_wait *wait)
{
	arena_reset(&((struct run_waiting *)wait)->call.reply->arena);
}

static enum hx_code wait_for(struct run_waiting *w, int64_t subject, int64_t wait_ms, struct hx_error *err)
{
	static const struct end_wait_kind kind = {
		.read = read_run, .show = embed_runs_show, .forget = embed_runs_forget};
	enum hx_code code;

	end_wait_init(&w->wait, &kind, subject, subject_end_topic(subject), wait_ms);
	w->wait.has_ended = run_has_ended;
	code = embed_carry_out(w->call.e, (uint64_t)subject, &w->wait.task);
	return code ? embed_refuse(err, code, w->detail) : HX_OK;
}

static enum hx_code embed_runs_find(const char *id, int64_t *ret_subject, struct hx_error *err)
{
	return id_parse("run", slice_str(id), ret_subject) ? HX_OK
							   : embed_refuse(err, HX_NOT_FOUND, runs_detail(HX_NOT_FOUND));
}

enum hx_code hx_run_wait(struct hx_engine *engine, const struct hx_caller *caller, const char *id, int64_t timeout_ms,
			 struct hx_result **ret_result, struct hx_error *err)
{
	bool for_ever = timeout_ms < 0 || timeout_ms > DURATION_MS_MAX;
	struct run_waiting w = {0};
	int64_t subject;
	enum hx_code code = embed_begin(&w.call, engine, caller, err);

	if (code)
		return code;
	code = embed_runs_find(id, &subject, err);
	if (!code)
		code = wait_for(&w, subject, for_ever ? DURATION_MS_MAX : timeout_ms, err);
	return embed_end(&w.call, code, /* also= */ HX_OK, ret_result, err);
}

/* ---- tell ---- */

/* What each verb is in flow/run_verb.h. */
/* clang-format off */
static const struct {
	enum run_verb_kind kind;
	bool named, has_version, has_data, done;
	const char *decision; /* of an approval */
} verbs[HX_VERBS] = {
	[HX_VERB_CANCEL]   = {RUN_CANCEL, .has_version = true},
	[HX_VERB_PAUSE]    = {RUN_PAUSE, .has_version = true},
	[HX_VERB_RESUME]   = {RUN_RESUME, .has_version = true},
	[HX_VERB_RETRY]    = {RUN_RETRY, .has_version = true},
	[HX_VERB_EVENT]    = {RUN_EVENT, .named = true, .has_data = true},
	[HX_VERB_APPROVE]  = {RUN_APPROVE, .named = true, .has_version = true, .decision = "approve"},
	[HX_VERB_REJECT]   = {RUN_APPROVE, .named = true, .has_version = true, .decision = "reject"},
	[HX_VERB_DONE]     = {RUN_RESOLVE, .named = true, .has_data = true, .done = true},
	[HX_VERB_NOT_DONE] = {RUN_RESOLVE, .named = true},
};
/* clang-format on */

/* {"decision", "by", "comment"}, which is the output of the step. */
static struct slice make_decision(const char *decision, struct slice by, struct arena *arena)
{
	LOCAL_STRBUF(text, RUN_OUTPUT_BYTES_MAX);

	strbuf_addf(&text, "{\"decision\":\"%s\",\"by\":", decision);
	json_quote(by, &text);
	strbuf_add_str(&text, ",\"comment\":null}");
	arena->failed |= text.failed;
	return arena_copy(arena, strbuf_slice(&text));
}

static enum hx_code check_message(const struct hx_message *message, struct json *ret_data, struct hx_error *err)
{
	if ((unsigned)message->verb >= HX_VERBS)
		return error_set(err, HX_VALIDATION_ERROR, "there is no verb %d", (int)message->verb);
	if (verbs[message->verb].named && !entity_name_is_good(slice_str(message->name)))
		return error_set(err, HX_VALIDATION_ERROR, "the name of an event or a step is needed");
	if (message->event_id && (message->verb != HX_VERB_EVENT || !run_key_is_good(slice_str(message->event_id))))
		return error_set(err, HX_VALIDATION_ERROR, "event_id is 1 to %d characters, and for events alone",
				 RUN_KEY_CHARACTERS_MAX);
	if (message->version < 0 || (message->version && !verbs[message->verb].has_version))
		return error_set(err, HX_VALIDATION_ERROR, "version is from 1 on, and not for events and outcomes");
	if (message->data && !verbs[message->verb].has_data)
		return error_set(err, HX_VALIDATION_ERROR, "data is for events and outputs alone");
	return embed_json(message->data, "null", "data", RUN_OUTPUT_BYTES_MAX, ret_data, err);
}

static void take_verb(struct embed_reply *r, const struct run_verb *v)
{
	r->result = (struct hx_result){
		.id = embed_text(r, slice_str(id_text("run", v->rq->subject).text)),
		.status = v->status,
		.version = v->version,
		.created = v->changed,
		.ended = run_is_terminal(v->status),
	};
}

static enum hx_code embed_runs_tell(struct embed_call *call, int64_t subject, const struct hx_message *message,
				    struct hx_error *err)
{
	struct run_verb_request rq = {
		.workspace = call->who.workspace,
		.subject = subject,
		.version = message->version,
		.name = slice_str(message->name),
		.event_id = slice_str(message->event_id),
		.policy = engine_parts(call->e->engine)->run_policy,
	};
	struct run_verb verb = {0};
	struct json data;
	enum hx_code code = check_message(message, &data, err);

	if (code)
		return code;
	LOCAL_ARENA(arena, VERB_BYTES_MAX);
	rq.kind = verbs[message->verb].kind;
	rq.done = verbs[message->verb].done;
	rq.data = verbs[message->verb].decision
			  ? make_decision(verbs[message->verb].decision, call->who.requester, &arena)
			  : data.raw;
	run_verb_init(&verb, &rq, &arena);
	code = arena.failed ? HX_NO_MEMORY : embed_carry_out(call->e, (uint64_t)subject, &verb.task);
	if (code == HX_CONFIG_ERROR)
		code = embed_refuse(err, HX_BUSY, runs_detail(HX_BUSY));
	else if (code)
		(void)embed_refuse(err, code, verb.detail || code == HX_BUSY ? verb.detail : runs_detail(code));
	else
		take_verb(call->reply, &verb);
	return code;
}

enum hx_code hx_run_tell(struct hx_engine *engine, const struct hx_caller *caller, const char *id,
			 const struct hx_message *message, struct hx_result **ret_result, struct hx_error *err)
{
	struct embed_call call;
	struct hx_message own;
	int64_t subject;
	enum hx_code code = embed_begin(&call, engine, caller, err);

	if (code)
		return code;
	code = SIZED_READ(message, &own, "hx_message", err);
	if (!code)
		code = embed_runs_find(id, &subject, err);
	if (!code)
		code = embed_runs_tell(&call, subject, &own, err);
	return embed_end(&call, code, /* also= */ HX_OK, ret_result, err);
}
