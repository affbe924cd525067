/* See end_wait.h. */
#include "flow/end_wait.h"

#include "task/states.h"

enum { WAIT_NEW, WAIT_READING, WAIT_LOOKING, WAIT_SLEEPING, WAIT_DONE };

static bool is_too_late(const struct end_wait *w, const struct answer *answer)
{
	return answer->mono.ns >= w->deadline.ns || (w->kind->is_awaited && !w->kind->is_awaited(w));
}

/* By whoever ended it, while it slept or looked. */
static bool is_shown(struct end_wait *w)
{
	if (w->over)
		task_end(&w->task, HX_OK);
	return w->over;
}

static void go_sleep(struct end_wait *w, const struct answer *answer)
{
	w->look_at = mono_add_ms(answer->mono, END_WAIT_LOOK_MS);
	if (w->look_at.ns > w->deadline.ns)
		w->look_at = w->deadline;
	task_go(&w->task, WAIT_SLEEPING);
}

static void end_wait_take_start(struct end_wait *w, const struct answer *answer)
{
	w->deadline = mono_add_ms(answer->mono, w->wait_ms);
	if (w->begun)
		go_sleep(w, answer);
	else
		task_go(&w->task, w->is_new && w->has_ended ? WAIT_LOOKING : WAIT_READING);
}

/* The store may come back while there is time. */
static void take_failed(struct end_wait *w, const struct answer *answer)
{
	if (is_too_late(w, answer))
		task_end(&w->task, HX_STORE_UNAVAILABLE);
	else
		go_sleep(w, answer);
}

static void take_looked(struct end_wait *w, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[0];

	if (is_shown(w))
		return;
	if (answer->result->verdict != UNIT_WON)
		take_failed(w, answer);
	else if (rows->n == 0 || w->has_ended(db_cell(rows, 0, 0)->s) || is_too_late(w, answer))
		task_go(&w->task, WAIT_READING);
	else
		go_sleep(w, answer);
}

static void take_wait_read(struct end_wait *w, const struct answer *answer)
{
	enum hx_code code;

	if (is_shown(w))
		return;
	if (answer->result->verdict != UNIT_WON) {
		take_failed(w, answer);
		return;
	}
	code = w->kind->show(w, answer->result);
	if (code || w->over || is_too_late(w, answer)) {
		task_end(&w->task, code);
		return;
	}
	w->kind->forget(w); /* it may be large, and the sleep long */
	go_sleep(w, answer);
}

/* Woken: by its end. */
static void take_woke(struct end_wait *w, const struct answer *answer)
{
	bool woken = answer->mono.ns < w->look_at.ns;

	if (!is_shown(w))
		task_go(&w->task, woken || !w->has_ended ? WAIT_READING : WAIT_LOOKING);
}

TASK_UNIT(build_wait_read, struct end_wait, w, w->kind->read(w, unit));
TASK_UNIT(build_look, struct end_wait, w, subject_read(unit, w->subject));

static const TASK_STATES(struct end_wait) wait_states[] = {
	[WAIT_NEW] = {"new", end_wait_take_start},
	[WAIT_READING] = {"reading", take_wait_read, build_wait_read},
	[WAIT_LOOKING] = {"looking", take_looked, build_look},
	[WAIT_SLEEPING] = {"sleeping", take_woke, .until = offsetof(struct end_wait, look_at)},
	[WAIT_DONE] = {"done"},
};

TASK_KIND(wait_kind, END_WAIT_NAME, struct end_wait, wait_states);

void end_wait_init(struct end_wait *w, const struct end_wait_kind *kind, int64_t subject, int64_t topic,
		   int64_t wait_ms)
{
	*w = (struct end_wait){.kind = kind, .subject = subject, .wait_ms = wait_ms};
	task_init(&w->task, &wait_kind, topic);
}
