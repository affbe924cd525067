/* See run_wait.h. */
#include "http/run_wait.h"

#include "base/duration.h"
#include "engine/runs.h"
#include "http/loop.h"
#include "http/run_json.h"

#define ROW_BYTES_MAX (512u << 20)

enum wait_at { WAIT_NEW, WAIT_READING, WAIT_LOOKING, WAIT_SLEEPING, WAIT_DONE };

struct run_wait {
	struct seat seat;
	struct task task;
	struct http_call *call;
	int64_t subject, wait_ms;
	enum run_wait_wrap wrap;
	const struct run_row *created;
	enum wait_at at;
	struct wall_time deadline, look_at;
	struct strbuf text;
	int64_t version;
	enum hx_code code;
};

/* ---- a run as text ---- */

void run_wait_wrap(const struct run_row *row, enum run_wait_wrap wrap, struct strbuf *text)
{
	strbuf_add_str(text, wrap == RUN_BARE ? "" : "{\"run\":");
	run_json_add(row, text);
	if (wrap != RUN_BARE)
		strbuf_add_str(text, wrap == RUN_CREATED ? ",\"created\":true}" : ",\"created\":false}");
}

/* The row's own texts are gone afterwards; its numbers and its status are not. */
enum hx_code run_wait_show(struct http_call *call, const struct unit_result *result, enum run_wait_wrap wrap,
			   struct strbuf *text, struct run_row *ret_row)
{
	const struct run_policy *policy = runs_policy(engine_runs(api_of(call)->engine));
	struct arena arena;
	enum hx_code code;

	arena_init(&arena, ROW_BYTES_MAX);
	code = run_row_take(result, policy->machine_of, policy->context, &arena, ret_row);
	if (code != HX_NOT_FOUND && code != HX_TOO_LARGE && ret_row->expired)
		code = HX_RUN_EXPIRED;
	if (!code)
		run_wait_wrap(ret_row, wrap, text);
	arena_release(&arena);
	return code == HX_CONFIG_ERROR ? HX_BUSY : code;
}

const char *run_wait_detail(enum hx_code code)
{
	if (code == HX_NOT_FOUND)
		return "there is no such run";
	return code == HX_BUSY ? "this node does not know the definition of this run yet" : NULL;
}

/* ---- the task ---- */

static struct run_wait *wait_of(const struct task *task)
{
	return CONTAINER_OF(task, struct run_wait, task);
}

static void end(struct run_wait *w, enum hx_code code)
{
	w->code = code;
	w->at = WAIT_DONE;
}

static bool is_over(const struct run_wait *w, const char *status, const struct answer *answer)
{
	return !status || run_is_terminal(status) || answer->now.ms >= w->deadline.ms || !api_is_awaited(w->call);
}

static void go_sleep(struct run_wait *w, const struct answer *answer)
{
	w->look_at = wall_add_ms(answer->now, RUN_WAIT_LOOK_MS);
	if (w->look_at.ms > w->deadline.ms)
		w->look_at = w->deadline;
	w->at = WAIT_SLEEPING;
}

/* Of a run that was created a moment ago nothing is to be found out: it is driven in this very lane, and has only begun. */
static void take_start(struct run_wait *w, const struct answer *answer)
{
	w->deadline = wall_add_ms(answer->now, w->wait_ms);
	if (w->wrap == RUN_CREATED)
		go_sleep(w, answer);
	else
		w->at = WAIT_READING;
}

/* The store may come back while there is time. */
static void take_failed(struct run_wait *w, const struct answer *answer)
{
	if (is_over(w, RUN_WAITING, answer))
		end(w, HX_STORE_UNAVAILABLE);
	else
		go_sleep(w, answer);
}

static void take_looked(struct run_wait *w, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[0];

	if (answer->result->verdict != UNIT_WON)
		take_failed(w, answer);
	else if (rows->n == 0 || is_over(w, run_status_of(db_cell(rows, 0, 0)->s), answer))
		w->at = WAIT_READING;
	else
		go_sleep(w, answer);
}

static void take_read(struct run_wait *w, const struct answer *answer)
{
	struct run_row row = {0};
	enum hx_code code;

	if (answer->result->verdict != UNIT_WON) {
		take_failed(w, answer);
		return;
	}
	code = run_wait_show(w->call, answer->result, w->wrap, &w->text, &row);
	w->version = row.version;
	if (code || is_over(w, row.status, answer)) {
		end(w, code);
		return;
	}
	strbuf_release(&w->text); /* it may be large, and the sleep long */
	go_sleep(w, answer);
}

static void take(struct task *task, const struct answer *answer)
{
	struct run_wait *w = wait_of(task);

	switch (w->at) {
	case WAIT_NEW:
		take_start(w, answer);
		break;
	case WAIT_READING:
		take_read(w, answer);
		break;
	case WAIT_LOOKING:
		take_looked(w, answer);
		break;
	case WAIT_SLEEPING:
		w->at = answer->now.ms < w->look_at.ms ? WAIT_READING : WAIT_LOOKING; /* woken: by its end */
		break;
	case WAIT_DONE:
		ASSERT(!"a task that is done takes no answer");
	}
}

static void ask(const struct task *task, struct ask *ask)
{
	const struct run_wait *w = wait_of(task);

	switch (w->at) {
	case WAIT_DONE:
		ask->kind = ASK_DONE;
		ask->code = w->code;
		break;
	case WAIT_SLEEPING:
		ask->kind = ASK_SLEEP;
		ask->until = w->look_at;
		break;
	default:
		ask->kind = ASK_COMMIT;
		unit_init(ask->unit, /* op= */ 0);
		if (w->at == WAIT_LOOKING)
			subject_read(ask->unit, w->subject);
		else
			run_read(ask->unit, api_workspace(w->call), w->subject);
	}
}

static const struct task_kind kind = {.name = "run wait", .size = sizeof(struct run_wait), .take = take, .ask = ask};

/* ---- the answer ---- */

/* A run that was created is told of as created, whatever became of the waiting (the node stops, say). */
static void wait_end(struct seat *seat, enum hx_code code)
{
	struct run_wait *w = (struct run_wait *)seat;
	struct strbuf text = w->text;

	atomic_fetch_sub(&api_of(w->call)->waiting, 1);
	if (code && w->created) {
		strbuf_reset(&text);
		run_wait_wrap(w->created, w->wrap, &text);
		w->version = w->created->version;
		code = HX_OK;
	}
	if (code)
		http_respond_code(w->call->exchange, code, run_wait_detail(code));
	else
		api_respond_json(w->call, w->wrap == RUN_CREATED ? 201 : 200, &text, w->version);
	strbuf_release(&text);
}

void run_wait_start(struct http_call *call, int64_t subject, int64_t wait_ms, enum run_wait_wrap wrap,
		    const struct run_row *created)
{
	struct run_wait *w = arena_zalloc(call->arena, sizeof *w);
	struct run_wait none = {.call = call, .wrap = wrap, .created = created};
	enum hx_code code = HX_BUSY;

	atomic_fetch_add(&api_of(call)->waiting, 1);
	strbuf_init(&none.text, API_TEXT_BYTES_MAX);
	if (!w) {
		wait_end(&none.seat, code);
		return;
	}
	*w = none;
	w->subject = subject;
	w->wait_ms = wait_ms;
	w->seat = (struct seat){.task = &w->task, .done = wait_end};
	task_init(&w->task, &kind, run_end_topic(subject));
	code = engine_submit(api_of(call)->engine, (uint64_t)subject, &w->seat);
	if (code)
		wait_end(&w->seat, code);
}

bool run_wait_parse(struct http_call *call, int64_t *ret_ms)
{
	struct slice text = {NULL, 0};
	struct hx_error err;
	enum hx_code code = query_get(&call->query, "wait", &err, &text);

	*ret_ms = 0;
	if (!code && text.p)
		code = duration_parse("wait", text, &err, ret_ms);
	if (!code && *ret_ms > RUN_WAIT_MS_MAX)
		code = error_set(&err, HX_VALIDATION_ERROR, "wait is at most 5m");
	if (code)
		http_respond_error(call->exchange, &err);
	return !code;
}
