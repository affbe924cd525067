/*
 * One schedule, carried out: see drill.h. Of those that are alive the one that was started last is given turns, and its calls are counted;
 * all others are heard, too.
 *
 *   a call comes ─▶ is it to be cut? ─▶ the engine ─▶ its answer
 *   nobody says anything ─▶ people do what they are waited for ─▶ time is skipped ─▶ nothing is left: the end
 */
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json_number.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "cli/drill_parts.h"

#define PLAY_BYTES_MAX (256u << 20)
#define PATIENCE_MS 30000 /* for a worker that has a turn, or starts */
#define ROUND_MS 4
#define QUIET_ROUNDS 5     /* with nothing that anybody does: a late call comes now, or it is the end */
#define QUIET_MS 10000     /* the engine says that it rests; one that has something which nobody takes never does */
#define REAL_LEASE_MS 3000 /* what is really waited for */
#define ROUNDS_MAX 200000

const char *const drill_cut_names[DRILL_CUTS_N] = {"killed_before", "killed_after", "lost_after", "lost_before",
						   "twice",         "late_before",  "late_after"};

static int64_t mono_ms_since(struct mono_time then)
{
	return (clock_mono(clock_system()).ns - then.ns) / 1000000;
}

/* ---- asking the engine ---- */

struct slice drill_ask(struct drill_play *p, const char *method, const char *path, struct slice body, int *ret_status)
{
	struct hx_call_request request = {HX_SIZE(hx_call_request), .method = method, .path = path,
					  .body = body.n ? body.p : NULL, .body_bytes = body.n};
	struct hx_answer *answer = NULL;
	struct hx_error err;
	struct slice copy = slice_of(NULL, 0);

	(void)hx_call(p->drill->engine, NULL, &request, &answer, &err); /* what it refuses is an answer, too */
	*ret_status = answer ? answer->status : 503;
	if (answer)
		copy = arena_copy(&p->arena, slice_of(answer->body, answer->body_bytes));
	hx_answer_free(answer);
	return copy.p ? copy : slice_str("{}");
}

/* A verb, which does nothing where it is refused. True: it was not. */
bool drill_verb(struct drill_play *p, const char *path, const char *body)
{
	int status;

	(void)drill_ask(p, "POST", path, slice_str(body), &status);
	return status < 300;
}

const char *drill_member_text(struct drill_play *p, struct json object, const char *member)
{
	struct json value;

	if (!json_find(object, slice_str(member), &value) || json_type(value) != JSON_STRING)
		return NULL;
	return json_string_decode(value, &p->arena).p;
}

static int64_t member_int(struct json object, const char *member, int64_t otherwise)
{
	struct json value;
	struct hx_error err;
	int64_t n;

	return json_find(object, slice_str(member), &value) && !json_int64(value, &err, &n) ? n : otherwise;
}

void drill_break(struct drill_play *p, enum trial_rule rule, const struct drill_effect *effect, const char *format, ...)
{
	char words[1500];
	va_list args;

	if (p->broken)
		return;
	va_start(args, format);
	vsnprintf(words, sizeof words, format, args);
	va_end(args);
	p->broken = true;
	p->rule = rule;
	p->blamed = effect;
	p->words = drill_plain(p, words);
}

static const char *run_of(struct drill_play *p, struct slice id)
{
	for (size_t i = 0; i < p->runs_n; i++)
		if (slice_is(id, p->runs[i]))
			return p->runs[i];
	if (p->runs_n == DRILL_RUNS_MAX)
		return p->runs[0];
	return p->runs[p->runs_n++] = arena_copy(&p->arena, id).p;
}

int64_t drill_skip(struct drill_play *p, const char *by)
{
	int status;
	struct slice said = drill_ask(p, "POST", "/api/v1/test-clock", slice_str(by), &status);
	struct json rests;

	p->rests = json_find(json_trust(said), slice_str("rests"), &rests) && slice_is(rests.raw, "true");
	return status < 300 ? member_int(json_trust(said), "movedMs", 0) : 0;
}

void drill_tell_time(struct drill_play *p, int64_t ms, const char *why)
{
	static const struct {
		int64_t ms;
		const char *unit;
	} units[] = {{86400000, "d"}, {3600000, "h"}, {60000, "min"}, {1000, "s"}};

	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (ms + 1000 >= units[i].ms) { /* a moment of it has passed by itself */
			drill_tell(p, "time", LANE_TIME, "%lld %s pass%s",
				   (long long)((ms + units[i].ms / 2) / units[i].ms), units[i].unit, why);
			return;
		}
	drill_tell(p, "time", LANE_TIME, "a moment passes%s", why);
}

static void lapse(struct drill_play *p, unsigned worker)
{
	char by[64], why[64];

	snprintf(by, sizeof by, "{\"skipMs\":%lld}", (long long)p->lease_ms + 1);
	snprintf(why, sizeof why, ": the lease of %s is over", drill_worker_name(worker));
	(void)drill_skip(p, by);
	drill_tell_time(p, p->lease_ms, why);
}

/* ---- the cast ---- */

static enum hx_code start_spare(struct drill *d, struct hx_error *err)
{
	enum hx_code code;

	if (d->spare)
		return HX_OK;
	d->spare = calloc(1, sizeof *d->spare);
	code = d->spare ? puppet_start(d->spare, d->command, d->tries, err) : error_set(err, HX_NO_MEMORY, "a worker");
	if (code) {
		free(d->spare);
		d->spare = NULL;
	}
	return code;
}

/* One more takes turns, and the next is started while it does. */
static enum hx_code join(struct drill_play *p, struct hx_error *err)
{
	enum hx_code code = start_spare(p->drill, err);

	if (code || p->cast_n == DRILL_CAST_MAX)
		return code;
	p->cast[p->cast_n++] = (struct drill_member){.puppet = p->drill->spare};
	p->drill->spare = NULL;
	return start_spare(p->drill, err);
}

static void leave(struct drill_member *m)
{
	if (m->puppet)
		puppet_kill(m->puppet);
	free(m->puppet);
	*m = (struct drill_member){0};
}

/* ---- a call, and what becomes of it ---- */

/* A claim does not wait here, but with us: it is asked again and again. */
static struct slice ask_claim(struct drill_play *p, struct slice body, int *ret_status)
{
	struct json_iter it = json_iter_of(json_trust(body));
	struct json name, value;
	LOCAL_STRBUF(text, 1u << 20);

	strbuf_add_char(&text, '{');
	while (json_iter_member(&it, &name, &value))
		if (!json_string_is(name, slice_str("waitMs")))
			strbuf_addf(&text, "%.*s:%.*s,", SLICE_ARGS(name.raw), SLICE_ARGS(value.raw));
	strbuf_add_str(&text, "\"waitMs\":0}");
	return drill_ask(p, "POST", "/api/v1/functions/claim", strbuf_slice(&text), ret_status);
}

/* An answer that the engine gave to what a worker wrote: a turn that is over, or was not its own any more. */
static void note_answer(struct drill_play *p, unsigned worker, const char *run, struct json body, int status,
			struct slice answer)
{
	const char *code = status == 409 ? drill_member_text(p, json_trust(answer), "code") : NULL;
	bool lost = code && (strcmp(code, "STALE_FENCE") == 0 || strcmp(code, "SEQ_CONFLICT") == 0);
	struct json end;
	bool ends = json_find(body, slice_str("end"), &end) && json_type(end) == JSON_OBJECT;

	if (status < 300)
		drill_book_taken(p, run, body);
	if (((status < 300 && ends) || lost) && p->cast[worker].held > 0)
		p->cast[worker].held--;
}

static struct slice forward(struct drill_play *p, unsigned worker, const struct puppet_call *c, const char *run,
			    int *ret_status)
{
	struct slice answer = drill_ask(p, c->method, c->path, call_body(c), ret_status);

	if (run)
		note_answer(p, worker, run, json_trust(call_body(c)), *ret_status, answer);
	return answer;
}

static void cancel(struct drill_play *p)
{
	char path[200];

	snprintf(path, sizeof path, "/api/v1/workflow-runs/%s/cancel", p->runs[0]);
	drill_tell(p, "caller", LANE_CALLER, "cancels");
	(void)drill_verb(p, path, "{}");
}

/* NULL: nothing becomes of this call but what should. */
static const enum drill_cut *cut_of(const struct drill_play *p, unsigned *ret_beside)
{
	for (unsigned i = 0; i < p->schedule->cuts_n; i++)
		if (p->schedule->cuts[i].at == p->calls_n) {
			*ret_beside = p->schedule->cuts[i].beside;
			return &p->schedule->cuts[i].cut;
		}
	return NULL;
}

/* From here on another worker goes on; this one's call is late. */
static enum hx_code be_late(struct drill_play *p, unsigned worker, struct puppet_call *c, unsigned beside, int status,
			    struct slice answer, struct hx_error *err)
{
	drill_tell(p, drill_worker_name(worker), LANE_NODE, "%s",
		   answer.p ? "that was taken; it stands still, its clock with it"
			    : "this call is on its way for long");
	p->late.on = p->late.was = true;
	p->late.after = answer.p != NULL;
	p->late.worker = worker;
	p->late.since = clock_mono(clock_system());
	p->late.want = beside;
	p->late.beside = 0;
	p->late.call = c;
	p->late.order = c->order;
	p->late.status = status;
	p->late.answer = answer;
	p->cast[worker].paused = true;
	lapse(p, worker);
	return join(p, err);
}

static enum hx_code be_killed(struct drill_play *p, unsigned worker, const char *how, struct hx_error *err)
{
	drill_tell(p, drill_worker_name(worker), LANE_NODE, "is killed: %s", how);
	leave(&p->cast[worker]);
	lapse(p, worker);
	return join(p, err);
}

/* The late call comes, or is answered at last. */
static void end_late(struct drill_play *p)
{
	struct puppet_call *c = p->late.call;
	unsigned worker = p->late.worker;
	bool there = c->fd >= 0 && c->whole && c->order == p->late.order; /* its client may have given it up */

	for (int64_t left; p->late.real && (left = p->lease_ms - mono_ms_since(p->late.since)) > 0;)
		(void)poll(NULL, 0, (int)left);
	p->late.on = false;
	p->cast[worker].paused = false;
	drill_tell(p, drill_worker_name(worker), LANE_NODE, "%s", p->late.after ? "goes on" : "its late call comes");
	if (there && p->late.after)
		call_answer(c, p->late.status, p->late.answer);
	/* A call that has not come yet is handled as any other of a worker that is not the last. */
}

/* The engine has been asked: what the worker hears of it. `status` 0: it has not, and is to be. */
static enum hx_code cut_call(struct drill_play *p, unsigned worker, struct puppet_call *c, const char *run,
			     enum drill_cut cut, unsigned beside, int status, struct slice answer, struct hx_error *err)
{
	const char *name = drill_worker_name(worker);

	if (cut == CUT_KILLED_BEFORE)
		return be_killed(p, worker, "that did not arrive", err);
	if (cut == CUT_LATE_BEFORE)
		return be_late(p, worker, c, beside, 0, slice_of(NULL, 0), err);
	if (cut == CUT_LOST_BEFORE) {
		drill_tell(p, name, LANE_NODE, "this call is lost before it arrives");
		call_cut(c);
		return HX_OK;
	}
	if (!status)
		answer = forward(p, worker, c, run, &status);
	if (cut == CUT_KILLED_AFTER)
		return be_killed(p, worker, "that was taken", err);
	if (cut == CUT_LATE_AFTER)
		return be_late(p, worker, c, beside, status, answer, err);
	if (cut == CUT_TWICE) {
		drill_tell(p, name, LANE_NODE, "this call arrives twice");
		answer = forward(p, worker, c, run, &status);
		call_answer(c, status, answer);
		return HX_OK;
	}
	drill_tell(p, name, LANE_NODE, "that was taken, and the answer is lost");
	call_cut(c);
	if (!run) {
		p->cast[worker].held = 0;
		lapse(p, worker); /* it does not know of the turn that it has */
	}
	return HX_OK;
}

/* One more that counts. */
static void count(struct drill_play *p, bool is_claim, const char *label)
{
	if (p->calls_n < DRILL_CALLS_MAX) {
		p->is_claim[p->calls_n] = is_claim;
		p->labels[p->calls_n] = label;
	}
	p->calls_n++;
	p->late.beside += p->late.on;
	if (p->schedule->people == PEOPLE_CANCEL && p->schedule->cancel_at == p->calls_n)
		cancel(p);
}

/* An answer to a claimed step's begun may not come after a lease that the worker believes in: that is real time, and not ours. */
static bool needs_real_time(struct json body)
{
	return memmem(body.raw.p, body.raw.n, "\"begun\"", 7) != NULL;
}

static enum hx_code on_journal(struct drill_play *p, unsigned worker, struct puppet_call *c, const char *run,
			       bool counted, struct hx_error *err)
{
	struct json body = json_trust(call_body(c));
	const char *words = drill_book(p, worker, run, body);
	struct slice answer;
	unsigned beside = 0;
	int status;

	if (words[0])
		drill_tell(p, drill_worker_name(worker), LANE_NODE, "%s", words);
	if (counted) {
		count(p, /* is_claim= */ false, drill_plain(p, words));
		const enum drill_cut *cut = cut_of(p, &beside);

		if (cut && *cut == CUT_LATE_AFTER && needs_real_time(body)) {
			p->late.real = p->lease_ms <= REAL_LEASE_MS;
			p->drill->late_left_out |= !p->late.real;
			cut = p->late.real ? cut : NULL;
		}
		if (cut)
			return cut_call(p, worker, c, run, *cut, beside, 0, slice_of(NULL, 0), err);
	}
	answer = forward(p, worker, c, run, &status);
	if (status == 409)
		drill_tell(p, "engine", LANE_STORE, "refuses that of %s", drill_worker_name(worker));
	call_answer(c, status, answer);
	return HX_OK;
}

static void say_turns(struct drill_play *p, unsigned worker, struct json turns)
{
	struct json turn, journal;

	for (struct json_iter it = json_iter_of(turns); json_iter_element(&it, &turn);) {
		const char *id = drill_member_text(p, turn, "run"), *function = drill_member_text(p, turn, "function");
		size_t n = json_find(turn, slice_str("journal"), &journal) ? json_count(journal) : 0;

		if (id)
			id = run_of(p, slice_str(id));
		p->cast[worker].held++;
		drill_tell(p, drill_worker_name(worker), LANE_NODE, "takes a turn of %s%s%s", function,
			   n ? ", which has a journal" : "", member_int(turn, "cancelled", 0) ? ", to undo it" : "");
	}
}

static enum hx_code on_claim(struct drill_play *p, unsigned worker, struct puppet_call *c, bool counted, bool *ret_done,
			     struct hx_error *err)
{
	struct json body = json_trust(call_body(c)), turns;
	int64_t wait_ms = member_int(body, "waitMs", 0);
	struct slice answer = slice_str("{\"turns\":[]}");
	unsigned beside = 0;
	int status = 200;

	if (counted) {
		p->lease_ms = member_int(body, "leaseMs", 30000);
		answer = ask_claim(p, call_body(c), &status);
	}
	if (status < 300 && (!json_find(json_trust(answer), slice_str("turns"), &turns) || !json_count(turns))) {
		*ret_done = mono_ms_since(c->came) > wait_ms; /* it polls again */
		if (*ret_done)
			call_answer(c, 200, slice_str("{\"turns\":[]}"));
		return HX_OK;
	}
	*ret_done = true;
	if (status < 300) {
		say_turns(p, worker, turns);
		count(p, /* is_claim= */ true, "takes a turn");
		const enum drill_cut *cut = cut_of(p, &beside);

		/* Where two steps are executed at once this may have been another call than in the schedule without cuts. */
		if (cut && (CLAIM_CUTS & 1u << *cut))
			return cut_call(p, worker, c, /* run= */ NULL, *cut, beside, status, answer, err);
	}
	call_answer(c, status, answer);
	return HX_OK;
}

static void on_ledger(struct drill_play *p, unsigned worker, struct puppet_call *c)
{
	const char *name = c->path + strlen("/ledger/");
	const struct trial_service_said *said = trial_world_service(p->drill->world, name);

	drill_book_ledger(p, worker, name, c->key);
	call_answer(c, 200, said && said->returns.raw.p ? said->returns.raw : slice_str("{}"));
}

static bool is_heartbeat(struct json body)
{
	struct json entries, end;

	return (!json_find(body, slice_str("entries"), &entries) || !json_count(entries)) &&
	       (!json_find(body, slice_str("end"), &end) || json_type(end) != JSON_OBJECT);
}

/* *ret_done: it was answered, or cut. */
static enum hx_code handle(struct drill_play *p, unsigned worker, struct puppet_call *c, bool *ret_done,
			   struct hx_error *err)
{
	static const char runs[] = "/api/v1/functions/runs/", claim[] = "/api/v1/functions/claim";
	bool counted = worker + 1 == p->cast_n, post = strcmp(c->method, "POST") == 0;
	struct slice answer;
	struct json body;
	int status;

	*ret_done = true;
	if (strncmp(c->path, "/ledger/", 8) == 0) {
		on_ledger(p, worker, c);
		return HX_OK;
	}
	if (post && strcmp(c->path, claim) == 0 && !json_check(call_body(c), err, &body))
		return on_claim(p, worker, c, counted, ret_done, err);
	if (post && strncmp(c->path, runs, sizeof runs - 1) == 0 && !json_check(call_body(c), err, &body) &&
	    !is_heartbeat(body)) {
		const char *id = c->path + sizeof runs - 1;

		return on_journal(p, worker, c, run_of(p, slice_of(id, strcspn(id, "/"))), counted, err);
	}
	answer = drill_ask(p, c->method, c->path, call_body(c), &status);
	call_answer(c, status, answer);
	return HX_OK;
}

/* The calls of one worker, in the order of their coming. */
static enum hx_code hear_member(struct drill_play *p, unsigned worker, bool *ret_some, struct hx_error *err)
{
	for (uint64_t after = 0;;) {
		struct puppet *puppet = p->cast[worker].puppet;
		struct puppet_call *next = NULL;
		bool done;
		enum hx_code code;

		if (!puppet || p->cast[worker].paused)
			return HX_OK;
		for (size_t i = 0; i < PUPPET_LINES_MAX; i++) {
			struct puppet_call *c = &puppet->calls[i];

			if (c->fd >= 0 && c->whole && c->order > after && (!next || c->order < next->order))
				next = c;
		}
		if (!next)
			return HX_OK;
		after = next->order;
		code = handle(p, worker, next, &done, err);
		*ret_some |= done;
		if (code)
			return code;
	}
}

/* ---- the whole ---- */

static bool is_busy(const struct drill_play *p)
{
	const struct drill_member *last = &p->cast[p->cast_n - 1];

	for (size_t i = 0; last->puppet && i < PUPPET_LINES_MAX; i++)
		if (last->puppet->calls[i].fd >= 0 && last->puppet->calls[i].whole)
			return last->held > 0; /* it has asked for a turn, and there is none */
	return true;
}

static bool late_is_over(const struct drill_play *p)
{
	return p->late.on && p->late.want && p->late.beside >= p->late.want;
}

static enum hx_code pump(struct drill_play *p, bool *ret_some, struct hx_error *err)
{
	struct puppet *all[DRILL_CAST_MAX + 1];
	size_t n = 0;
	enum hx_code code = HX_OK;

	for (unsigned i = 0; i < p->cast_n; i++)
		if (p->cast[i].puppet)
			all[n++] = p->cast[i].puppet;
	if (p->drill->spare)
		all[n++] = p->drill->spare;
	puppet_pump(all, n, ROUND_MS);
	for (unsigned i = 0; i < p->cast_n && !code; i++)
		code = hear_member(p, i, ret_some, err);
	for (unsigned i = 0; i < p->cast_n && !code; i++)
		if (p->cast[i].puppet)
			code = puppet_check(p->cast[i].puppet, err);
	return code;
}

/* Until the run has ended, or nothing goes on. */
static enum hx_code play_on(struct drill_play *p, struct hx_error *err)
{
	struct mono_time last = clock_mono(clock_system());
	unsigned quiet = 0;
	enum hx_code code = HX_OK;

	for (unsigned round = 0; round < ROUNDS_MAX && !code && !p->ended && !p->broken; round++) {
		bool some = false;

		p->rests = false;
		code = pump(p, &some, err);
		if (late_is_over(p))
			end_late(p);
		if (some && p->drill->world->rules.n && p->runs_n)
			drill_check_own(p, /* at_end= */ false);
		if (some || (p->runs_n && !is_busy(p) && drill_be_people(p))) {
			last = clock_mono(clock_system());
			quiet = 0;
		} else if (!is_busy(p) && (p->rests || mono_ms_since(last) > QUIET_MS)) {
			if (++quiet > QUIET_ROUNDS)
				break;
		} else if (mono_ms_since(last) > PATIENCE_MS) {
			drill_break(p, RULE_STUCK, NULL, "%s has a turn, and says nothing for %d s",
				    drill_worker_name(p->cast_n - 1), PATIENCE_MS / 1000);
			break;
		}
		if ((p->ended || quiet == QUIET_ROUNDS) && p->late.on && !code) {
			end_late(p); /* the other one rests: now it comes */
			p->ended = false;
			quiet = 0;
		}
	}
	return code;
}

/* Those that were late have a moment more to do what they should not. */
static enum hx_code let_stragglers(struct drill_play *p, struct hx_error *err)
{
	enum hx_code code = HX_OK;

	for (unsigned round = 0; round < 250 && p->late.was && p->cast[p->late.worker].held > 0 && !code; round++) {
		bool some = false;

		code = pump(p, &some, err);
	}
	return code;
}

static enum hx_code begin(struct drill_play *p, struct hx_error *err)
{
	const struct trial_world *world = p->drill->world;
	struct slice input = world->inputs_n ? world->inputs[p->schedule->input].raw : slice_str("{}"), said;
	struct json run;
	int status;
	LOCAL_STRBUF(body, 2u << 20);

	strbuf_addf(&body, "{\"definitionId\":\"%s\",\"idempotencyKey\":\"drill-%llu\",\"input\":%.*s}",
		    p->drill->function, (unsigned long long)p->drill->schedules, SLICE_ARGS(input));
	said = drill_ask(p, "POST", "/api/v1/workflow-runs", strbuf_slice(&body), &status);
	if (status >= 300 || !json_find(json_trust(said), slice_str("run"), &run) || !drill_member_text(p, run, "id"))
		return error_set(err, HX_VALIDATION_ERROR, "the function %s cannot be started: %.*s",
				 p->drill->function, SLICE_ARGS(said));
	(void)run_of(p, slice_str(drill_member_text(p, run, "id")));
	drill_tell(p, "caller", LANE_CALLER, "starts %s", p->drill->function);
	return HX_OK;
}

/* A name can be started as soon as it is polled for. */
static enum hx_code await_poll(struct drill_play *p, struct hx_error *err)
{
	struct mono_time since = clock_mono(clock_system());
	enum hx_code code = HX_OK;

	while (!code && mono_ms_since(since) < PATIENCE_MS) {
		struct puppet *puppet = p->cast[0].puppet;
		struct json functions, first;
		int status;

		puppet_pump(&puppet, 1, ROUND_MS);
		code = puppet_check(puppet, err);
		for (size_t i = 0; i < PUPPET_LINES_MAX; i++) {
			struct puppet_call *c = &puppet->calls[i];
			struct json body;

			if (c->fd < 0 || !c->whole || strcmp(c->path, "/api/v1/functions/claim") != 0 ||
			    json_check(call_body(c), err, &body) ||
			    !json_find(body, slice_str("functions"), &functions))
				continue;
			struct json_iter it = json_iter_of(functions);

			(void)ask_claim(p, call_body(c), &status);
			if (!json_iter_element(&it, &first))
				continue;
			if (!p->drill->function) {
				const char *name = drill_member_text(p, first, "name");

				p->drill->function = arena_copy(p->drill->arena, slice_str(name ? name : "")).p;
			}
			return HX_OK;
		}
	}
	return code ? code
		    : error_set(err, HX_VALIDATION_ERROR,
				"the worker polls for no function: it is to find the server by HAPAX_SERVER");
}

enum hx_code drill_play(struct drill *d, const struct drill_schedule *schedule, struct drill_play *p,
			struct hx_error *err)
{
	enum hx_code code;

	arena_release(&p->arena);
	*p = (struct drill_play){.drill = d, .schedule = schedule, .lease_ms = 30000};
	arena_init(&p->arena, PLAY_BYTES_MAX);
	d->schedules++;
	code = join(p, err);
	if (!code)
		code = await_poll(p, err);
	if (!code)
		code = begin(p, err);
	if (!code)
		code = play_on(p, err);
	if (!code)
		code = let_stragglers(p, err);
	d->calls += p->calls_n;
	if (!code)
		drill_judge(p);
	for (unsigned i = 0; i < p->cast_n; i++)
		leave(&p->cast[i]);
	/* What has not ended must not be in the way of what follows. */
	if (p->runs_n && !drill_is_over(p->status)) {
		char path[200];

		snprintf(path, sizeof path, "/api/v1/workflow-runs/%s/cancel", p->runs[0]);
		(void)drill_verb(p, path, "{}");
	}
	return code ? code : p->arena.failed ? arena_error(&p->arena, err) : HX_OK;
}
