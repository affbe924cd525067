/* See due_watch.h. */
#include "flow/due_watch.h"

#include "task/states.h"

/* The store's clock decides what is due, ours when to look: one that runs ahead must not look again and again. */
#define LOOK_AGAIN_MS 2
#define STORE_AWAY_MS 500 /* it is asked again soon, so that work goes on soon after its return */

enum { DUE_NEW, DUE_SCANNING, DUE_READING, DUE_SLEEPING, DUE_DONE };

static void sleep_until(struct due_watch *w, const struct answer *answer, int64_t due_ms)
{
	int64_t soonest_ms = answer->now.ms + LOOK_AGAIN_MS, latest_ms = answer->now.ms + w->source->poll_ms;

	due_ms = due_ms < soonest_ms ? soonest_ms : due_ms < latest_ms ? due_ms : latest_ms;
	w->until = mono_add_ms(answer->mono, due_ms - answer->now.ms);
	task_go(&w->task, DUE_SLEEPING);
}

static void due_watch_take_start(struct due_watch *w, const struct answer *answer)
{
	w->until = mono_add_ms(answer->mono, w->pause_ms);
	task_go(&w->task, w->pause_ms ? DUE_SLEEPING : DUE_SCANNING);
}

static struct due due_of(const struct due_source *source, const struct db_rows *rows, size_t i)
{
	size_t last = rows->columns - 1;

	if (!source->shared)
		return (struct due){.subject = db_cell(rows, i, 0)->i, .beside = db_cell(rows, i, last)->i};
	return (struct due){db_cell(rows, i, 0)->i, db_cell(rows, i, last - 1)->i,
			    unit_tenant(db_cell(rows, i, last)->s)};
}

static void due_watch_take_found(struct due_watch *w, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[0];

	if (answer->result->verdict != UNIT_WON) {
		sleep_until(w, answer, answer->now.ms + STORE_AWAY_MS);
		return;
	}
	for (w->found_n = 0; w->found_n < rows->n; w->found_n++)
		w->found[w->found_n] = due_of(w->source, rows, w->found_n);
	if (w->found_n || w->full.n)
		task_end(&w->task, HX_OK);
	else if (w->source->next)
		task_go(&w->task, DUE_READING);
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

static void take_slept(struct due_watch *w, const struct answer *answer)
{
	w->woken = w->full.n && answer->mono.ns < w->until.ns;
	if (w->woken)
		task_end(&w->task, HX_OK);
	else
		task_go(&w->task, DUE_SCANNING);
}

static void build_scan(const struct due_watch *w, struct unit *unit)
{
	const struct due_source *source = w->source;

	struct db_value values[3];
	unsigned n = 0;

	if (source->scan) {
		source->scan(source, unit, w->limit);
		return;
	}
	values[n++] = db_int(w->limit);
	if (source->left)
		values[n++] = db_text(source->left(source->context));
	if (source->shared)
		values[n++] = w->full.n ? db_text(w->full) : db_str("[]");
	unit_add(unit, UNIT_ANY, source->found, n, values);
}

static void build_next(const struct due_watch *w, struct unit *unit)
{
	const struct due_source *source = w->source;

	if (source->left)
		UNIT_ADD(unit, UNIT_ANY, source->next, db_text(source->left(source->context)));
	else
		unit_add(unit, UNIT_ANY, source->next, 0, NULL);
}

static const TASK_STATES(struct due_watch) due_states[] = {
	[DUE_NEW] = {"new", due_watch_take_start},
	[DUE_SCANNING] = {"scanning", due_watch_take_found, build_scan},
	[DUE_READING] = {"reading when the next is due", take_next, build_next},
	[DUE_SLEEPING] = {"sleeping", take_slept, .until = offsetof(struct due_watch, until)},
	[DUE_DONE] = {"done"},
};

TASK_KIND(due_kind, "due watch", struct due_watch, due_states);

void due_watch_init(struct due_watch *w, const struct due_source *source, int64_t limit, int64_t pause_ms)
{
	ASSERT(limit > 0 && limit <= DUE_WATCH_MAX);
	*w = (struct due_watch){.source = source, .limit = limit, .pause_ms = pause_ms};
	task_init(&w->task, &due_kind, source->topic);
}

void due_watch_pass_over(struct due_watch *w, struct slice full, int64_t topic)
{
	ASSERT(w->source->shared && full.n > 0);
	w->full = full;
	task_init(&w->task, &due_kind, topic);
}

bool due_watch_was_woken(const struct due_watch *w)
{
	return w->woken;
}
