/* See watch.h. */
#include "support/watch.h"

static void end(struct watch *w, enum hx_code code)
{
	w->code = code;
	w->at = WATCH_DONE;
}

static void take_read(struct watch *w, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[0];

	if (answer->result->verdict != UNIT_WON) {
		end(w, HX_STORE_UNAVAILABLE);
	} else if (rows->n == 0) {
		end(w, HX_NOT_FOUND);
	} else {
		w->version = db_cell(rows, 0, 1)->i;
		if (slice_is(db_cell(rows, 0, 0)->s, w->wanted))
			end(w, HX_OK);
		else if (answer->mono.ns >= w->deadline.ns)
			end(w, HX_WRONG_STATUS);
		else
			w->at = WATCH_SLEEPING;
	}
}

static void take(struct task *task, const struct answer *answer)
{
	struct watch *w = (struct watch *)task;

	ASSERT(w->at != WATCH_DONE);
	if (w->at == WATCH_READING)
		take_read(w, answer);
	else
		w->at = WATCH_READING;
}

static void ask(const struct task *task, struct ask *ask)
{
	const struct watch *w = (const struct watch *)task;

	switch (w->at) {
	case WATCH_DONE:
		ask->kind = ASK_DONE;
		ask->code = w->code;
		break;
	case WATCH_SLEEPING:
		ask->kind = ASK_SLEEP;
		ask->until = w->deadline;
		break;
	default:
		ask->kind = ASK_COMMIT;
		unit_init(ask->unit, /* op= */ 0);
		subject_read(ask->unit, w->subject);
	}
}

static const char *where(const struct task *task)
{
	static const char *const names[] = {"new", "reading", "sleeping", "done"};

	return names[((const struct watch *)task)->at];
}

static const struct task_kind kind = {
	.name = "watch",
	.size = sizeof(struct watch),
	.take = take,
	.ask = ask,
	.where = where,
};

void watch_init(struct watch *w, int64_t subject, const char *wanted, struct mono_time deadline)
{
	*w = (struct watch){.subject = subject, .wanted = wanted, .deadline = deadline};
	task_init(&w->task, &kind, /* topic= */ subject);
}
