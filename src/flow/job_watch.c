/* See job_watch.h. */
#include "flow/job_watch.h"

#include "base/hash.h"
#include "flow/job.h"

static void sleep_until(struct job_watch *w, const struct answer *answer, int64_t due_ms)
{
	int64_t poll_ms = answer->now.ms + JOB_POLL_MS;

	w->until.ms = due_ms < poll_ms ? due_ms : poll_ms;
	w->at = JOB_WATCH_SLEEPING;
}

static void take_found(struct job_watch *w, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[0];

	if (answer->result->verdict != UNIT_WON) {
		sleep_until(w, answer, INT64_MAX);
		return;
	}
	for (w->found_n = 0; w->found_n < rows->n; w->found_n++)
		w->found[w->found_n] = db_cell(rows, w->found_n, 0)->i;
	w->at = w->found_n ? JOB_WATCH_DONE : JOB_WATCH_READING;
}

static void take_next(struct job_watch *w, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[0];
	bool none = answer->result->verdict != UNIT_WON || rows->n == 0 || db_cell(rows, 0, 0)->type == DB_NULL;

	sleep_until(w, answer, none ? INT64_MAX : db_cell(rows, 0, 0)->i);
}

static void take(struct task *task, const struct answer *answer)
{
	struct job_watch *w = (struct job_watch *)task;

	switch (w->at) {
	case JOB_WATCH_NEW:
		w->until.ms = answer->now.ms + JOB_PAUSE_MS;
		w->at = w->pause ? JOB_WATCH_SLEEPING : JOB_WATCH_SCANNING;
		break;
	case JOB_WATCH_SLEEPING:
		w->at = JOB_WATCH_SCANNING;
		break;
	case JOB_WATCH_SCANNING:
		take_found(w, answer);
		break;
	case JOB_WATCH_READING:
		take_next(w, answer);
		break;
	case JOB_WATCH_DONE:
		ASSERT(!"a task that is done takes no answer");
	}
}

static void ask(const struct task *task, struct ask *ask)
{
	const struct job_watch *w = (const struct job_watch *)task;

	switch (w->at) {
	case JOB_WATCH_DONE:
		ask->kind = ASK_DONE;
		ask->code = HX_OK;
		break;
	case JOB_WATCH_SLEEPING:
		ask->kind = ASK_SLEEP;
		ask->until = w->until;
		break;
	default:
		ask->kind = ASK_COMMIT;
		unit_init(ask->unit, /* op= */ 0);
		if (w->at == JOB_WATCH_SCANNING)
			job_scan_due(ask->unit, w->limit);
		else
			job_next_due(ask->unit);
	}
}

static const char *where(const struct task *task)
{
	static const char *const names[] = {"new", "scanning", "reading when the next is due", "sleeping", "done"};

	return names[((const struct job_watch *)task)->at];
}

static uint64_t fingerprint(const struct task *task, uint64_t hash)
{
	const struct job_watch *w = (const struct job_watch *)task;

	return hash_mix(hash_mix(hash, w->at), w->found_n);
}

static const struct task_kind kind = {
	.name = "job watch",
	.size = sizeof(struct job_watch),
	.take = take,
	.ask = ask,
	.where = where,
	.fingerprint = fingerprint,
};

void job_watch_init(struct job_watch *w, int64_t limit, bool pause)
{
	ASSERT(limit > 0 && limit <= JOB_WATCH_MAX);
	*w = (struct job_watch){.limit = limit, .pause = pause};
	task_init(&w->task, &kind, /* topic= */ JOB_TOPIC);
}
