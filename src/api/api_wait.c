/* See api_wait.h. */
#include "api/api_wait.h"

#include "base/duration.h"
#include "wire/loop.h"

static struct api_wait *of(const struct end_wait *wait)
{
	return CONTAINER_OF(wait, struct api_wait, wait);
}

static void read_it(const struct end_wait *wait, struct unit *unit)
{
	of(wait)->kind->read(unit, api_workspace(of(wait)->call), of(wait)->subject);
}

static enum hx_code api_wait_show(struct end_wait *wait, const struct unit_result *result)
{
	enum hx_code code = of(wait)->kind->show(of(wait), result);

	wait->over = of(wait)->over;
	return code;
}

static void wait_forget(struct end_wait *wait)
{
	strbuf_release(&of(wait)->text);
}

static bool is_awaited(const struct end_wait *wait)
{
	return api_is_awaited(of(wait)->call);
}

static const struct end_wait_kind waiting = {
	.read = read_it,
	.show = api_wait_show,
	.forget = wait_forget,
	.is_awaited = is_awaited,
};

/* ---- the answer ---- */

/* What is known is told, whatever became of the waiting (the node stops, say). */
static void wait_end(struct seat *seat, enum hx_code code)
{
	struct api_wait *w = (struct api_wait *)seat;
	struct strbuf text;

	atomic_fetch_sub(&api_of(w->call)->waiting, 1);
	runs_unwatch(&w->watch);
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
	none.status = asked->wrap == API_WAIT_NEW ? 201 : 200;
	strbuf_init(&none.text, API_TEXT_BYTES_MAX);
	if (!w) {
		wait_end(&none.seat, code);
		return;
	}
	*w = none;
	w->seat = (struct seat){.task = &w->wait.task, .done = wait_end};
	end_wait_init(&w->wait, &waiting, w->subject, w->kind->topic(w->subject), w->wait_ms);
	w->wait.has_ended = w->kind->has_ended;
	w->wait.begun = w->begun;
	w->wait.is_new = w->wrap == API_WAIT_NEW;
	runs_watch(&w->watch);
	code = engine_submit(api_of(call)->engine, w->lane ? w->lane : (uint64_t)w->subject, &w->seat);
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
	if (*ret_ms > 0)
		http_exchange_do_not_time(call->exchange);
	if (code)
		http_respond_error(call->exchange, &err);
	return !code;
}
