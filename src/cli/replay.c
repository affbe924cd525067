/* See replay.h. */
#include "cli/replay.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/hmac.h"
#include "base/json_number.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "base/thread.h"
#include "cli/client.h"
#include "cli/mock.h"
#include "cli/replay_server.h"
#include "model/text.h"

#define LOOK_MS 10
#define QUIET_MS 250       /* nothing has changed for so long: nothing goes on but time */
#define PATIENCE_MS 20000  /* for what must come */
#define REAL_QUIET_MS 7000 /* the same where time cannot be skipped: longer than leases and first backoffs */
#define TAKE_OVER_MS 500
#define ANSWER_MS 2000     /* a caller who has no answer for longer may wait for a time that is to be skipped */
#define WAIT_REAL_MS 10000 /* no longer wait than this is carried out there */
#define ROUNDS_MAX 100
#define CALL_TIMEOUT_MS 60000
#define MOMENT_DIGITS 13
#define BALANCE 1000 /* enough */
#define NAMES "e"    /* of entities, and keys of runs: with their number */
#define TEXT_BYTES_MAX (2u << 20)

/* A call of the API that may wait for a service: its thread. */
struct clicker {
	struct thread thread;
	const char *url, *path;
	const char *as; /* who asks; NULL: anyone */
	struct slice body;
	enum hx_code heard;
	struct hx_error error; /* in words, where it is not HX_OK */
	_Atomic bool answered; /* heard is what it has heard */
};

/* What the test is about. */
struct replayed {
	const struct definition *of;
	const struct example_subject *said;
	const char *name, *path; /* path NULL: it has not begun */
};

struct replay {
	size_t subjects_n;
	struct replayed subjects[EXAMPLE_SUBJECTS_MAX];
	const struct replay_plan *plan;
	const struct example *example;
	struct example_result *result;
	struct arena *arena;
	struct mock *mock;
	struct replay_server server;
	struct client client;
	struct strbuf seen; /* what the subjects were when they were last looked at */
	bool waits;         /* for what comes by time alone, where that is real: all is done, or somebody was away */
	size_t clickers_n;
	struct clicker clickers[EXAMPLE_WHENS_MAX];
	struct strbuf wrong; /* empty: nothing */
};

static void nap(int64_t ms)
{
	nanosleep(&(const struct timespec){ms / 1000, (ms % 1000) * 1000000}, NULL);
}

static int64_t now_ms(void)
{
	return clock_mono(clock_system()).ns / 1000000;
}

/* ---- asking the server ---- */

static enum hx_code ask(struct replay *x, const char *method, const char *path, struct slice body, struct json *ret,
			struct hx_error *err)
{
	client_next(&x->client, path);
	strbuf_add_slice(&x->client.body, body);
	return client_ask(&x->client, method, ret, err);
}

static enum hx_code look(struct replay *x, const struct replayed *s, struct json *ret, struct hx_error *err)
{
	return ask(x, "GET", s->path, slice_str(""), ret, err);
}

/* True: the subjects are not as they were. */
static bool has_changed(struct replay *x)
{
	struct hx_error err;
	struct json now;
	bool changed;
	LOCAL_STRBUF(all, TEXT_BYTES_MAX);

	for (size_t i = 0; i < x->subjects_n; i++)
		if (x->subjects[i].path && !look(x, &x->subjects[i], &now, &err))
			strbuf_add_slice(&all, now.raw);
	changed = all.n && !slice_eq(strbuf_slice(&all), strbuf_slice(&x->seen));
	strbuf_reset(&x->seen);
	strbuf_add_slice(&x->seen, strbuf_slice(&all));
	return changed;
}

/* How much the time was moved; -1: it cannot be. */
static int64_t move_time(struct replay *x, const char *body)
{
	struct json answer, moved;
	struct hx_error err;
	int64_t ms = 0;

	if (!replay_server_is_clocked(&x->server))
		return -1;
	if (ask(x, "POST", "/api/v1/test-clock", slice_str(body), &answer, &err) ||
	    !json_find(answer, slice_str("movedMs"), &moved) || json_int64(moved, &err, &ms))
		return -1;
	return ms;
}

/* Leases end, and those who look after that look. */
static void skip_lease(struct replay *x)
{
	struct hx_error err;
	struct json answer;

	if (move_time(x, "{\"skipMs\":" REPLAY_SKIP_MS "}") < 0)
		replay_server_pause(&x->server);
	for (size_t i = 0; i < x->subjects_n; i++) {
		const struct definition *of = x->subjects[i].of;

		if (of->entity && of->module)
			(void)ask(x, "POST", text_printf(x->arena, "/api/v1/modules/%s/sweep", of->module),
				  slice_str("{}"), &answer, &err);
	}
}

/* ---- what goes on by itself ---- */

/*
 * The caller stands still past its lease, or is killed; after that its call has no answer. There is one node: claims of entities are
 * given back by the sweep, while what a node drives itself (runs, batches) it does not take over from itself, but hears of the end.
 */
static void bear_mishap(struct replay *x, struct mock_sight sight)
{
	int64_t end = now_ms() + TAKE_OVER_MS;
	struct hx_error err;

	x->waits = true;
	(void)has_changed(x);
	if (sight.crashed) {
		if (replay_server_kill(&x->server, &err))
			strbuf_addf(&x->wrong, "%s; ", err.detail);
	} else {
		skip_lease(x);
		while (!has_changed(x) && mock_look(x->mock).calls == sight.calls && now_ms() < end)
			nap(LOOK_MS);
	}
	mock_cut(x->mock);
}

static bool all_are_answered(const struct replay *x)
{
	bool all = true;

	for (size_t i = 0; i < x->clickers_n; i++)
		all &= atomic_load(&x->clickers[i].answered);
	return all;
}

/* Where time is real, what is done next is done before the first backoff is over, as it is where time is skipped. */
static int64_t quiet_of(const struct replay *x)
{
	return replay_server_is_clocked(&x->server) || !x->waits ? QUIET_MS : REAL_QUIET_MS;
}

/*
 * To where nothing goes on; a call that is held is as if nothing went on. A machine that is busy may be so late with a caller that all
 * else is quiet: where no service lets it wait, its answer is waited for.
 */
static void settle(struct replay *x)
{
	int64_t began = now_ms(), quiet_since = began, quiet_ms = quiet_of(x);
	unsigned calls = mock_look(x->mock).calls;

	while (now_ms() < quiet_since + quiet_ms) {
		struct mock_sight sight = mock_look(x->mock);

		if (sight.paused || sight.crashed)
			bear_mishap(x, sight);
		quiet_ms = sight.held ? QUIET_MS : quiet_of(x);
		if (sight.paused || sight.crashed || sight.calls != calls || has_changed(x) ||
		    (!sight.held && !all_are_answered(x) && now_ms() < began + ANSWER_MS)) {
			quiet_since = now_ms();
			calls = sight.calls;
		}
		nap(LOOK_MS);
	}
}

/* All time that is left, and what is late, which comes when all else is over. */
static void skip_to_the_end(struct replay *x)
{
	bool leased = false;

	x->waits = true;
	for (int i = 0; i < ROUNDS_MAX; i++) {
		settle(x);
		if (move_time(x, "{\"toNext\":true}") > 0) {
			leased = false;
		} else if (!leased && replay_server_is_clocked(&x->server)) {
			skip_lease(x);
			leased = true;
		} else if (!mock_land(x->mock, NULL)) {
			return;
		}
	}
	strbuf_add_str(&x->wrong, "it does not come to an end; ");
}

/* ---- callers ---- */

static void *click(void *context)
{
	struct clicker *c = context;
	struct client client;
	struct json answer;

	c->heard = client_init_own(&client, c->url, CALL_TIMEOUT_MS, &c->error);
	if (!c->heard) {
		if (c->as)
			strbuf_addf(&client.headers, "Hapax-Requester: %s\r\n", c->as);
		client_next(&client, c->path);
		strbuf_add_slice(&client.body, c->body);
		c->heard = client_ask(&client, "POST", &answer, &c->error);
	}
	client_release(&client);
	atomic_store(&c->answered, true);
	return NULL;
}

static struct slice event_body(const struct replay *x, const struct example_when *when)
{
	LOCAL_STRBUF(body, TEXT_BYTES_MAX);

	strbuf_add_char(&body, '{');
	json_more_text(&body, "id",
		       slice_str(when->id ? when->id : text_printf(x->arena, "event-%zu", x->clickers_n + 1)));
	json_more_json(&body, "data", when->data.raw.p ? when->data.raw : slice_str("{}"));
	strbuf_add_char(&body, '}');
	return arena_copy(x->arena, strbuf_slice(&body));
}

static void address_click(const struct replay *x, const struct example_when *when, struct clicker *c)
{
	const char *decided = when->approve ? when->approve : when->reject;
	const struct replayed *s = &x->subjects[when->subject];
	struct slice input = when->input.raw.p ? when->input.raw : s->said->input.raw;

	c->body = slice_str("{}");
	if (when->fire) {
		c->path = text_printf(x->arena, "%s/steps/%s", s->path, when->fire);
		c->body = slice_str(text_printf(x->arena, "{\"input\":%.*s}", input.p ? (int)input.n : 2,
						input.p ? input.p : "{}"));
	} else if (when->event) {
		c->path = text_printf(x->arena, "%s/events/%s", s->path, when->event);
		c->body = event_body(x, when);
	} else if (decided) {
		c->path = text_printf(x->arena, "%s/approvals/%s", s->path, decided);
		c->body = slice_str(when->approve ? "{\"decision\":\"approve\"}" : "{\"decision\":\"reject\"}");
	} else if (when->credit) {
		c->path = "/api/v1/accounts/account/credit";
		c->body = slice_str(text_printf(x->arena, "{\"amount\":%lld,\"key\":\"paid-%zu\"}",
						(long long)when->credit, x->clickers_n));
	} else if (when->accept >= 0) {
		c->path = text_printf(x->arena, "%s/items/%d/accept", s->path, (int)when->accept);
	} else {
		c->path = text_printf(x->arena, "%s/cancel", s->path);
	}
}

/* ---- what begins ---- */

static const char *id_of(struct replay *x, struct json answer, const char *inside)
{
	struct json of = answer;

	(void)json_find(answer, slice_str(inside), &of);
	return arena_copy(x->arena, client_member(&x->client, of, "id")).p;
}

static enum hx_code begin_run(struct replay *x, struct replayed *s, const char *input, struct hx_error *err)
{
	const char *key = x->subjects_n > 1 ? text_printf(x->arena, ",\"idempotencyKey\":\"%s\"", s->name) : "";
	struct json answer;
	enum hx_code code = ask(
		x, "POST", "/api/v1/workflow-runs",
		slice_str(text_printf(x->arena, "{\"definitionId\":\"%s\",\"input\":%s%s}", s->of->name, input, key)),
		&answer, err);

	if (!code)
		s->path = text_printf(x->arena, "/api/v1/workflow-runs/%s", id_of(x, answer, "run"));
	return code;
}

static enum hx_code begin_batch(struct replay *x, struct replayed *s, const char *input, struct hx_error *err)
{
	struct json answer;
	long long balance = s->said->balance ? (long long)s->said->balance : BALANCE;
	enum hx_code code = ask(x, "POST", "/api/v1/accounts",
				slice_str(text_printf(x->arena, "{\"id\":\"account\",\"balance\":%lld}", balance)),
				&answer, err);

	if (!code)
		code = ask(x, "POST", "/api/v1/batches",
			   slice_str(text_printf(x->arena,
						 "{\"workflow\":\"%s\",\"account\":\"account\",\"items\":["
						 "{\"input\":%s,\"cost\":1},{\"input\":%s,\"cost\":1}]}",
						 s->of->name, input, input)),
			   &answer, err);
	if (!code)
		s->path = text_printf(x->arena, "/api/v1/batches/%s", id_of(x, answer, "batch"));
	return code;
}

/* One that is a row of a table is there. */
static enum hx_code begin_entity(struct replay *x, struct replayed *s, const char *row, struct hx_error *err)
{
	struct json answer;
	enum hx_code code = HX_OK;

	if (!row)
		code = ask(x, "POST", text_printf(x->arena, "/api/v1/entities/%s", s->of->name),
			   slice_str(text_printf(x->arena, "{\"id\":\"%s\"}", s->name)), &answer, err);
	s->name = row ? row : s->name;
	s->path = text_printf(x->arena, "/api/v1/entities/%s/%s", s->of->name, s->name);
	return code;
}

static enum hx_code begin(struct replay *x, unsigned i, struct hx_error *err)
{
	struct replayed *s = &x->subjects[i];
	struct slice said = s->said->input.raw;
	const char *input = said.p ? text_printf(x->arena, "%.*s", SLICE_ARGS(said)) : "{}";

	if (s->of->entity)
		return begin_entity(x, s, x->result->tables.rows[i], err);
	return s->of->run ? begin_run(x, s, input, err) : begin_batch(x, s, input, err);
}

static bool starts(const struct replay_plan *plan, const char *action)
{
	for (size_t i = 0; i < plan->services_n; i++)
		if (plan->services[i].tells && strcmp(plan->services[i].action, action) == 0)
			return !plan->services[i].event;
	return false;
}

/* As its service would: the delivery is signed, and the same the second time. */
static enum hx_code call_hook(struct replay *x, const char *action, unsigned subject, struct hx_error *err)
{
	struct replayed *s = &x->subjects[subject];
	struct slice body = slice_str(text_printf(x->arena, "{\"id\":\"%s\",\"key\":\"%s\"}", action, s->name));
	uint8_t mac[SHA256_BYTES];
	struct json answer;
	enum hx_code code;

	hmac_sha256(slice_str(REPLAY_SECRET), &body, 1, mac);
	strbuf_reset(&x->client.headers);
	strbuf_add_str(&x->client.headers, "X-Signature: ");
	for (size_t i = 0; i < sizeof mac; i++)
		strbuf_addf(&x->client.headers, "%02x", mac[i]);
	strbuf_add_str(&x->client.headers, "\r\n");
	code = ask(x, "POST", text_printf(x->arena, "/hooks/%s", action), body, &answer, err);
	strbuf_reset(&x->client.headers);
	if (!code && starts(x->plan, action))
		code = ask(x, "GET",
			   text_printf(x->arena, "/api/v1/workflow-runs/by-key/%s/hook:%s:%s", s->of->name, action,
				       action),
			   slice_str(""), &answer, err);
	if (!code && starts(x->plan, action))
		s->path = text_printf(x->arena, "/api/v1/workflow-runs/%s", id_of(x, answer, "run"));
	return code;
}

/* ---- what is done ---- */

static void begin_click(struct replay *x, const struct example_when *when)
{
	struct clicker *c = &x->clickers[x->clickers_n++];
	struct hx_error err;

	*c = (struct clicker){.url = replay_server_url(&x->server), .as = when->as};
	address_click(x, when, c);
	if (thread_start(&c->thread, click, c, "a caller's thread", &err)) {
		strbuf_addf(&x->wrong, "%s; ", err.detail);
		atomic_store(&c->answered, true);
	}
}

static void wait_for_call(struct replay *x, const char *action)
{
	int64_t end = now_ms() + PATIENCE_MS;

	while (!mock_look(x->mock).held && now_ms() < end) {
		struct mock_sight sight = mock_look(x->mock);

		if (sight.paused || sight.crashed)
			bear_mishap(x, sight);
		(void)move_time(x, "{\"toNext\":true}");
		nap(LOOK_MS);
	}
	if (!mock_look(x->mock).held)
		strbuf_addf(&x->wrong, "no call of %s is under way; ", action);
}

static void wait_ms(struct replay *x, int64_t ms)
{
	settle(x);
	if (replay_server_is_clocked(&x->server))
		(void)move_time(x, text_printf(x->arena, "{\"skipMs\":%lld}", (long long)ms));
	else
		nap(ms < WAIT_REAL_MS ? ms : WAIT_REAL_MS);
	settle(x);
}

/* The call that the next one is done during may be begun by this one. */
static void do_when(struct replay *x, size_t i)
{
	const struct example_when *when = &x->example->whens[i];
	const char *next = i + 1 < x->example->whens_n ? when[1].during : NULL;
	enum hx_code failed = HX_OK;
	struct hx_error err;

	if (when->during)
		wait_for_call(x, when->during);
	else if (!when->wait_ms)
		settle(x);
	if (!when->during)
		mock_hold(x->mock, next);
	if (when->land)
		(void)mock_land(x->mock, when->land);
	else if (when->start)
		failed = begin(x, when->subject, &err);
	else if (when->tell)
		failed = x->result->untold >> i & 1 ? HX_OK : call_hook(x, when->tell, when->subject, &err);
	else if (when->wait_ms)
		wait_ms(x, when->wait_ms);
	else
		begin_click(x, when);
	if (failed)
		strbuf_addf(&x->wrong, "%s; ", err.detail);
	settle(x);
	mock_hold(x->mock, next);
}

/* ---- from the beginning to the end ---- */

/* As memory tells it (trial_sight_of_all), what both can see: status and output of each; of all what has happened, and the tables. */
static enum hx_code add_sight(struct replay *x, struct strbuf *out, struct hx_error *err)
{
	struct json ends[EXAMPLE_SUBJECTS_MAX], member;
	enum hx_code code = HX_OK;
	LOCAL_STRBUF(tables, TEXT_BYTES_MAX);

	for (size_t i = 0; i < x->subjects_n && !code; i++) {
		ends[i] = json_trust(slice_str("{\"status\":\"PENDING\"}")); /* it has not begun */
		if (x->subjects[i].path)
			code = look(x, &x->subjects[i], &ends[i], err);
		ends[i].raw = arena_copy(x->arena, ends[i].raw);
	}
	if (!code)
		code = replay_server_look(&x->server, x->result->tables.look, &tables, err);
	for (size_t i = 0; i < x->subjects_n && !code; i++) {
		json_more(out, "with");
		strbuf_add_char(out, '{');
		if (json_find(ends[i], slice_str("status"), &member))
			json_more_json(out, "status", member.raw);
		if (x->subjects[i].of->run && json_find(ends[i], slice_str("output"), &member))
			json_more_json(out, "output", member.raw);
		if (!i) {
			json_more(out, "happened");
			mock_ledger(x->mock, out);
		}
		if (!i && tables.n)
			json_more_json(out, "tables", strbuf_slice(&tables));
	}
	for (size_t i = 0; i <= x->subjects_n; i++)
		strbuf_add_char(out, '}');
	return code;
}

/* It is another time there: what looks like a moment, thirteen digits, is as good as any. */
static void forget_moments(struct slice text)
{
	char *p = (char *)(uintptr_t)text.p, *end = p + text.n;

	while (p < end) {
		size_t n = strspn(p, "0123456789");

		if (n == MOMENT_DIGITS)
			memset(p, '1', n);
		p += n ? n : 1;
	}
}

static enum hx_code compare(struct replay *x, struct hx_error *err)
{
	struct example_result differences = {0};
	struct example real = {.then_line = 1};
	struct json there;
	struct slice here;
	enum hx_code code;
	LOCAL_STRBUF(sight, TEXT_BYTES_MAX);

	strbuf_add_char(&sight, '{');
	code = add_sight(x, &sight, err);
	if (code || !json_find(json_trust(strbuf_slice(&sight)), slice_str("with"), &there))
		return code;
	real.then = there;
	here = arena_copy(x->arena, slice_str(x->result->end));
	forget_moments(here);
	forget_moments(strbuf_slice(&sight));
	code = example_compare(&real, here, x->arena, &differences, err);
	for (size_t i = 0; i < differences.differences_n; i++) {
		const struct example_difference *d = &differences.differences[i];

		strbuf_addf(&x->wrong, "%s: %s in memory, %s there; ", d->path, d->was, d->expected);
	}
	return code;
}

static void check_answers(struct replay *x)
{
	size_t n = 0;

	for (size_t i = 0; i < x->example->whens_n; i++) {
		const struct example_when *when = &x->example->whens[i];
		const struct clicker *c;
		const char *heard;

		if (when->wait_ms || when->land || when->start || when->tell)
			continue;
		c = &x->clickers[n++];
		heard = hx_code_name(c->heard);
		if (when->answer && strcmp(heard, when->answer) != 0)
			strbuf_addf(&x->wrong, "answer: %s in memory, %s there%s%s; ", when->answer, heard,
				    c->heard ? ": " : "", c->heard ? c->error.detail : "");
	}
}

/* All is over but for what they hear. */
static void wait_for_answers(const struct replay *x)
{
	int64_t end = now_ms() + PATIENCE_MS;

	while (!all_are_answered(x) && now_ms() < end)
		nap(LOOK_MS);
}

static enum hx_code carry_out(struct replay *x, struct hx_error *err)
{
	const struct example *e = x->example;
	enum hx_code code = HX_OK;

	mock_hold(x->mock, e->whens_n ? e->whens[0].during : NULL);
	for (unsigned i = 0; i < x->subjects_n && !code; i++) {
		if (x->subjects[i].of->entity || x->result->begins >> i & 1)
			code = begin(x, i, err);
		if (x->subjects_n > 1)
			settle(x);
	}
	for (size_t i = 0; i < e->whens_n && !code; i++)
		do_when(x, i);
	if (!code && (!e->whens_n || !e->whens[e->whens_n - 1].wait_ms)) {
		skip_to_the_end(x);
		wait_for_answers(x);
	}
	return code ? code : compare(x, err);
}

/* Clicks that wait hear nothing any more when the server is gone. */
static void replay_end(struct replay *x)
{
	mock_cut(x->mock);
	replay_server_stop(&x->server);
	for (size_t i = 0; i < x->clickers_n; i++)
		thread_join(&x->clickers[i].thread);
	client_release(&x->client);
	mock_free(x->mock);
}

static bool kills(const struct example *e)
{
	for (size_t i = 0; i < e->services_n; i++)
		for (unsigned k = 0; k < e->services[i].n; k++)
			if (e->services[i].outcomes[k] >= OUTCOME_CRASH && e->services[i].outcomes[k] < OUTCOME_PAUSE)
				return true;
	return false;
}

static void add_subjects(struct replay *x, const struct definition_set *set)
{
	for (const struct example_subject *s = &x->example->first; s; s = s->with, x->subjects_n++)
		x->subjects[x->subjects_n] = (struct replayed){
			.of = example_definition(set, s),
			.said = s,
			.name = text_printf(x->arena, NAMES "%zu", x->subjects_n + 1)};
}

static enum hx_code replay_one(struct replay_plan *plan, struct arena *arena, struct example_result *result,
			       struct hx_error *err)
{
	struct replay x = {.plan = plan, .example = result->example, .result = result, .arena = arena};
	enum hx_code code = mock_new(result->example, plan->services, plan->services_n, &x.mock, err);
	bool clocked = !plan->store && !result->tables.make && !kills(result->example);

	if (code)
		return code;
	strbuf_init(&x.seen, TEXT_BYTES_MAX);
	strbuf_init(&x.wrong, TEXT_BYTES_MAX);
	add_subjects(&x, plan->set);
	plan->mock_url = mock_url(x.mock);
	plan->result = result;
	code = replay_server_start(&x.server, plan, clocked, err);
	if (!code)
		code = client_init_own(&x.client, replay_server_url(&x.server), CALL_TIMEOUT_MS, err);
	if (!code)
		code = carry_out(&x, err);
	replay_end(&x);
	if (!code)
		check_answers(&x);
	if (!code)
		result->real = arena_copy(arena, x.wrong.n ? strbuf_slice(&x.wrong) : slice_str("")).p;
	strbuf_release(&x.seen);
	strbuf_release(&x.wrong);
	return code;
}

enum hx_code replay_run(const struct definition_set *set, const struct trial_world *world, const char *store,
			struct arena *arena, struct example_report *report, struct hx_error *err)
{
	struct replay_plan plan = {.set = set, .store = store};
	enum hx_code code = HX_OK;

	plan.services_n = example_mocks(set, world, arena, &plan.services);
	for (size_t i = 0; i < report->n && !code; i++) {
		struct example_result *result = &report->results[i];

		if (!result->end)
			continue;
		code = replay_one(&plan, arena, result, err);
		report->failed += !code && result->passed && result->real[0];
		result->passed &= !code && !result->real[0];
	}
	return code;
}
