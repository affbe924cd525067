/* See due_watch.h. */
#include "flow/due_watch.h"

/* The store's clock decides what is due, ours when to look: one that runs ahead must not look again and again. */
#define LOOK_AGAIN_MS 2
#define STORE_AWAY_MS 500 /* it is asked again soon, so that work goes on soon after its return */

static void sleep_until(struct due_watch *w, const struct answer *answer, int64_t due_ms)
{
	int64_t soonest_ms = answer->now.ms + LOOK_AGAIN_MS, latest_ms = answer->now.ms + w->source->poll_ms;

	due_ms = due_ms < soonest_ms ? soonest_ms : due_ms < latest_ms ? due_ms : latest_ms;
	w->until = mono_add_ms(answer->mono, due_ms - answer->now.ms);
	w->at = DUE_SLEEPING;
}

static void take_found(struct due_watch *w, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[0];

	if (answer->result->verdict != UNIT_WON) {
		sleep_until(w, answer, answer->now.ms + STORE_AWAY_MS);
		return;
	}
	for (w->found_n = 0; w->found_n < rows->n; w->found_n++)
		w->found[w->found_n] = db_cell(rows, w->found_n, 0)->i;
	if (w->found_n)
		w->at = DUE_DONE;
	else if (w->source->next)
		w->at = DUE_READING;
	else
		sleep_until(w, answer, INT64_MAX);
}

static void take_next(struct due_watch *w, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[0];

	if (answer->result->verdict != UNIT_WON)
		sleep_until(w, answer, answer->now.ms + STORE_AWAY_MS);
	else if (rows->n == 0 || db_cell(rows, 0, 0)->type == DB_NULL)
		sleep_until(w, answer, INT64_MAX);
	else
		sleep_until(w, answer, db_cell(rows, 0, 0)->i);
}

static void take(struct task *task, const struct answer *answer)
{
	struct due_watch *w = (struct due_watch *)task;

	switch (w->at) {
	case DUE_NEW:
		w->until = mono_add_ms(answer->mono, w->pause_ms);
		w->at = w->pause_ms ? DUE_SLEEPING : DUE_SCANNING;
		break;
	case DUE_SLEEPING:
		w->at = DUE_SCANNING;
		break;
	case DUE_SCANNING:
		take_found(w, answer);
		break;
	case DUE_READING:
		take_next(w, answer);
		break;
	case DUE_DONE:
		ASSERT(!"a task that is done takes no answer");
	}
}

static void ask(const struct task *task, struct ask *ask)
{
	const struct due_watch *w = (const struct due_watch *)task;

	switch (w->at) {
	case DUE_DONE:
		ask->kind = ASK_DONE;
		ask->code = HX_OK;
		break;
	case DUE_SLEEPING:
		ask->kind = ASK_SLEEP;
		ask->until = w->until;
		break;
	default:
		ask->kind = ASK_COMMIT;
		unit_init(ask->unit, /* op= */ 0);
		if (w->at == DUE_SCANNING)
			w->source->scan(w->source, ask->unit, w->limit);
		else
			w->source->next(w->source, ask->unit);
	}
}

static const char *where(const struct task *task)
{
	static const char *const names[] = {"new", "scanning", "reading when the next is due", "sleeping", "done"};

	return names[((const struct due_watch *)task)->at];
}

static const struct task_kind kind = {
	.name = "due watch",
	.size = sizeof(struct due_watch),
	.take = take,
	.ask = ask,
	.where = where,
};

void due_watch_init(struct due_watch *w, const struct due_source *source, int64_t limit, int64_t pause_ms)
{
	ASSERT(limit > 0 && limit <= DUE_WATCH_MAX);
	*w = (struct due_watch){.source = source, .limit = limit, .pause_ms = pause_ms};
	task_init(&w->task, &kind, source->topic);
}
