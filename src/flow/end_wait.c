/* See end_wait.h. */
#include "flow/end_wait.h"

static void end(struct end_wait *w, enum hx_code code)
{
	w->code = code;
	w->at = WAIT_DONE;
}

static bool is_too_late(const struct end_wait *w, const struct answer *answer)
{
	return answer->mono.ns >= w->deadline.ns || (w->kind->is_awaited && !w->kind->is_awaited(w));
}

static void go_sleep(struct end_wait *w, const struct answer *answer)
{
	w->look_at = mono_add_ms(answer->mono, END_WAIT_LOOK_MS);
	if (w->look_at.ns > w->deadline.ns)
		w->look_at = w->deadline;
	w->at = WAIT_SLEEPING;
}

static void take_start(struct end_wait *w, const struct answer *answer)
{
	w->deadline = mono_add_ms(answer->mono, w->wait_ms);
	if (w->begun)
		go_sleep(w, answer);
	else
		w->at = WAIT_READING;
}

/* The store may come back while there is time. */
static void take_failed(struct end_wait *w, const struct answer *answer)
{
	if (is_too_late(w, answer))
		end(w, HX_STORE_UNAVAILABLE);
	else
		go_sleep(w, answer);
}

static void take_looked(struct end_wait *w, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[0];

	if (answer->result->verdict != UNIT_WON)
		take_failed(w, answer);
	else if (rows->n == 0 || w->has_ended(db_cell(rows, 0, 0)->s) || is_too_late(w, answer))
		w->at = WAIT_READING;
	else
		go_sleep(w, answer);
}

static void take_read(struct end_wait *w, const struct answer *answer)
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
	w->kind->forget(w); /* it may be large, and the sleep long */
	go_sleep(w, answer);
}

/* Woken: by its end. */
static void take_woke(struct end_wait *w, const struct answer *answer)
{
	bool woken = answer->mono.ns < w->look_at.ns;

	w->at = woken || !w->has_ended ? WAIT_READING : WAIT_LOOKING;
}

static void take(struct task *task, const struct answer *answer)
{
	struct end_wait *w = (struct end_wait *)task;

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
	const struct end_wait *w = (const struct end_wait *)task;

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

static const char *where(const struct task *task)
{
	static const char *const names[] = {"new", "reading", "looking", "sleeping", "done"};

	return names[((const struct end_wait *)task)->at];
}

static const struct task_kind kind = {
	.name = END_WAIT_NAME,
	.size = sizeof(struct end_wait),
	.take = take,
	.ask = ask,
	.where = where,
};

void end_wait_init(struct end_wait *w, const struct end_wait_kind *wait_kind, int64_t subject, int64_t topic,
		   int64_t wait_ms)
{
	*w = (struct end_wait){.kind = wait_kind, .subject = subject, .wait_ms = wait_ms};
	task_init(&w->task, &kind, topic);
}
