/* See api_wait.h. */
#include "http/api_wait.h"

#include "base/duration.h"
#include "http/loop.h"

static struct api_wait *wait_of(const struct task *task)
{
	return CONTAINER_OF(task, struct api_wait, task);
}

static void end(struct api_wait *w, enum hx_code code)
{
	w->code = code;
	w->at = WAIT_DONE;
}

static bool is_too_late(const struct api_wait *w, const struct answer *answer)
{
	return answer->now.ms >= w->deadline.ms || !api_is_awaited(w->call);
}

static void go_sleep(struct api_wait *w, const struct answer *answer)
{
	w->look_at = wall_add_ms(answer->now, API_WAIT_LOOK_MS);
	if (w->look_at.ms > w->deadline.ms)
		w->look_at = w->deadline;
	w->at = WAIT_SLEEPING;
}

static void take_start(struct api_wait *w, const struct answer *answer)
{
	w->deadline = wall_add_ms(answer->now, w->wait_ms);
	if (w->begun)
		go_sleep(w, answer);
	else
		w->at = WAIT_READING;
}

/* The store may come back while there is time. */
static void take_failed(struct api_wait *w, const struct answer *answer)
{
	if (is_too_late(w, answer))
		end(w, HX_STORE_UNAVAILABLE);
	else
		go_sleep(w, answer);
}

static void take_looked(struct api_wait *w, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[0];

	if (answer->result->verdict != UNIT_WON)
		take_failed(w, answer);
	else if (rows->n == 0 || w->kind->has_ended(db_cell(rows, 0, 0)->s) || is_too_late(w, answer))
		w->at = WAIT_READING;
	else
		go_sleep(w, answer);
}

static void take_read(struct api_wait *w, const struct answer *answer)
{
	enum hx_code code;

	if (answer->result->verdict != UNIT_WON) {
		take_failed(w, answer);
		return;
	}
	code = w->kind->show(w, answer->result);
	if (code || w->over || is_too_late(w, answer)) {
		end(w, code);
		return;
	}
	strbuf_release(&w->text); /* it may be large, and the sleep long */
	go_sleep(w, answer);
}

/* Woken: by its end. */
static void take_woke(struct api_wait *w, const struct answer *answer)
{
	bool woken = answer->now.ms < w->look_at.ms;

	w->at = woken || !w->kind->has_ended ? WAIT_READING : WAIT_LOOKING;
}

static void take(struct task *task, const struct answer *answer)
{
	struct api_wait *w = wait_of(task);

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
		take_woke(w, answer);
		break;
	case WAIT_DONE:
		ASSERT(!"a task that is done takes no answer");
	}
}

static void ask(const struct task *task, struct ask *ask)
{
	const struct api_wait *w = wait_of(task);

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
			w->kind->read(w, ask->unit);
	}
}

static const struct task_kind kind = {.name = "api wait", .size = sizeof(struct api_wait), .take = take, .ask = ask};

/* ---- the answer ---- */

/* What is known is told, whatever became of the waiting (the node stops, say). */
static void wait_end(struct seat *seat, enum hx_code code)
{
	struct api_wait *w = (struct api_wait *)seat;
	struct strbuf text;

	atomic_fetch_sub(&api_of(w->call)->waiting, 1);
	if (code && w->known) {
		strbuf_reset(&w->text);
		w->kind->show_known(w);
		code = HX_OK;
	}
	text = w->text;
	if (code)
		http_respond_code(w->call->exchange, code, w->kind->detail(code));
	else
		api_respond_json(w->call, w->status, &text, w->version);
	/* The exchange may be gone by now, and the wait with it. */
	strbuf_release(&text);
}

void api_wait_start(const struct api_wait *asked)
{
	struct http_call *call = asked->call;
	struct api_wait *w = arena_zalloc(call->arena, sizeof *w);
	struct api_wait none = *asked;
	enum hx_code code = HX_BUSY;

	atomic_fetch_add(&api_of(call)->waiting, 1);
	strbuf_init(&none.text, API_TEXT_BYTES_MAX);
	if (!w) {
		wait_end(&none.seat, code);
		return;
	}
	*w = none;
	w->seat = (struct seat){.task = &w->task, .done = wait_end};
	task_init(&w->task, &kind, w->topic);
	code = engine_submit(api_of(call)->engine, (uint64_t)w->subject, &w->seat);
	if (code)
		wait_end(&w->seat, code);
}

bool api_wait_parse(struct http_call *call, int64_t *ret_ms)
{
	struct slice text = {NULL, 0};
	struct hx_error err;
	enum hx_code code = query_get(&call->query, "wait", &err, &text);

	*ret_ms = 0;
	if (!code && text.p)
		code = duration_parse("wait", text, &err, ret_ms);
	if (!code && *ret_ms > API_WAIT_MS_MAX)
		code = error_set(&err, HX_VALIDATION_ERROR, "wait is at most 5m");
	if (code)
		http_respond_error(call->exchange, &err);
	return !code;
}
