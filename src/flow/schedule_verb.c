/* See schedule_verb.h. */
#include "flow/schedule_verb.h"

#include "base/id.h"
#include "flow/account.h"
#include "flow/answer.h"
#include "flow/function.h"
#include "task/states.h"

#define TRIES_MAX 200 /* a schedule that catches up moves many times in a second, and must not keep people out */

enum { VERB_NEW, VERB_READING, VERB_READING_ACCOUNT, VERB_WRITING, VERB_FINDING, VERB_DONE };
enum { LINE_ROW, LINE_NOW, LINE_POLLED }; /* of READING */

static void end_verb(struct schedule_verb *v, enum hx_code code, const char *detail)
{
	v->detail = detail;
	task_end(&v->task, code);
}

static void write_it(struct schedule_verb *v, const struct answer *answer)
{
	v->stamp = flow_stamp(answer);
	v->changed = true;
	task_go(&v->task, VERB_WRITING);
}

/* ---- put ---- */

/* [ms, …] */
static struct slice slots_text(const struct schedule_late *late, struct arena *arena)
{
	struct strbuf text;

	strbuf_init(&text, SCHEDULE_QUEUE_MAX * 24);
	for (int64_t i = 0; i < late->slots_n; i++)
		strbuf_addf(&text, "%c%lld", i ? ',' : '[', (long long)late->slots[i]);
	strbuf_add_char(&text, ']');
	return arena_keep(arena, &text);
}

/* What has come already, and is not to be dropped with slot_at. */
static void leave_late(struct schedule_verb *v)
{
	struct schedule_late late = {.passed = 1}; /* of a text that cannot be read here */

	if (!v->was.slot_at || v->was.slot_at > v->was.now)
		return;
	if (v->was.spec.timing.zone)
		schedule_leave(&v->was, &late);
	if (late.slots_n)
		v->slots = slots_text(&late, v->arena);
	v->row.queued += late.slots_n;
	v->row.missed += late.passed;
	v->row.slot_at = 0;
}

/* What is due already stays, unless its times are others: a change governs what comes after it. */
static void set_slot(struct schedule_row *row, int64_t now)
{
	if (row->paused)
		row->slot_at = 0;
	else if (!row->slot_at || row->slot_at > now)
		row->slot_at = schedule_slot_after(row, now);
	row->due_at = schedule_due(row, row->slot_at);
	if (row->waiting || row->queued) /* paused or not: a backfill goes on, and for the rest one look finds that */
		row->due_at = now;
}

static void put_new(struct schedule_verb *v, const struct answer *answer)
{
	const struct schedule_verb_request *rq = v->rq;
	int64_t now = db_cell(&answer->result->rows[LINE_NOW], 0, 0)->i;

	v->row = (struct schedule_row){.subject = answer->more_ids[0],
				       .workspace = rq->workspace,
				       .name = rq->name,
				       .requester = rq->requester,
				       .text = rq->text,
				       .paused = rq->spec->paused,
				       .spec = *rq->spec,
				       .version = 1,
				       .now = now,
				       .created_at = answer->now.ms,
				       .updated_at = answer->now.ms};
	v->created = true;
	set_slot(&v->row, now);
	write_it(v, answer);
}

static bool schedule_verb_same_text(struct slice a, struct slice b)
{
	return !a.p == !b.p && (!a.p || slice_eq(a, b));
}

/* Are its slots the same? */
static bool same_times(const struct schedule_spec *a, const struct schedule_spec *b)
{
	return schedule_verb_same_text(a->cron, b->cron) && a->timing.every_s == b->timing.every_s &&
	       schedule_verb_same_text(a->timezone, b->timezone) && a->timing.from_s == b->timing.from_s &&
	       a->timing.to_s == b->timing.to_s;
}

/* leaves: the slots that wait are no more. */
static void change(struct schedule_verb *v, const struct answer *answer, bool paused, bool leaves)
{
	v->row.paused = paused;
	v->row.version++;
	v->row.updated_at = answer->now.ms;
	v->slots = slice_of(NULL, 0);
	if (leaves)
		leave_late(v);
	set_slot(&v->row, v->was.now);
	write_it(v, answer);
}

static void put_again(struct schedule_verb *v, const struct answer *answer)
{
	const struct schedule_spec *spec = v->rq->spec;
	bool paused = spec->paused_given ? spec->paused : v->was.paused;

	v->created = false;
	v->row = v->was;
	if (slice_eq(v->was.text, v->rq->text) && paused == v->was.paused) {
		end_verb(v, HX_OK, NULL);
		return;
	}
	v->row.text = v->rq->text;
	v->row.spec = *spec;
	v->row.requester = v->rq->requester;
	change(v, answer, paused, /* leaves= */ paused || !same_times(&v->was.spec, spec));
}

/* ---- the others ---- */

/* Slots of a pause are not missed: it goes on with the first that comes. */
static void set_paused(struct schedule_verb *v, const struct answer *answer, bool paused)
{
	v->row = v->was;
	if (v->was.paused == paused) {
		end_verb(v, HX_OK, NULL);
		return;
	}
	change(v, answer, paused, /* leaves= */ paused);
}

static void backfill(struct schedule_verb *v, const struct answer *answer)
{
	struct strbuf text;
	int64_t slot;

	v->row = v->was;
	v->slots_n = 0;
	strbuf_init(&text, SCHEDULE_BACKFILL_MAX * 24);
	strbuf_add_char(&text, '[');
	for (slot = schedule_slot_after(&v->was, v->rq->from_ms - 1); slot && slot <= v->rq->to_ms;
	     slot = schedule_slot_after(&v->was, slot)) {
		if (v->slots_n++ == SCHEDULE_BACKFILL_MAX)
			break;
		strbuf_addf(&text, "%s%lld", v->slots_n > 1 ? "," : "", (long long)slot);
	}
	strbuf_add_char(&text, ']');
	v->slots = arena_keep(v->arena, &text);
	if (v->rq->to_ms > v->was.now)
		end_verb(v, HX_VALIDATION_ERROR, "to is in the future: a backfill is of what was");
	else if (v->slots_n > SCHEDULE_BACKFILL_MAX)
		end_verb(v, HX_TOO_LARGE, "one backfill has at most 1000 slots: ask for the range in parts");
	else if (!v->slots_n)
		end_verb(v, HX_OK, NULL);
	else
		write_it(v, answer);
}

static void trigger(struct schedule_verb *v, const struct answer *answer)
{
	char fresh[ID_TEXT_BYTES];

	v->row = v->was;
	id_format("t", answer->more_ids[1], fresh);
	v->start = (struct schedule_start){
		.subject = answer->more_ids[0],
		.key = schedule_trigger_key(v->rq->name, v->rq->id.n ? v->rq->id : slice_str(fresh), v->arena)};
	if (!schedule_start_of(v->rq->policy, &v->was, v->arena, &v->start))
		end_verb(v, HX_NOT_FOUND, "there is no such workflow any more");
	else if (v->start.batch)
		task_go(&v->task, VERB_READING_ACCOUNT);
	else
		write_it(v, answer);
}

static void schedule_verb_decide(struct schedule_verb *v, const struct answer *answer)
{
	switch (v->rq->kind) {
	case SCHEDULE_PUT:
		put_again(v, answer);
		break;
	case SCHEDULE_PAUSE:
	case SCHEDULE_RESUME:
		set_paused(v, answer, v->rq->kind == SCHEDULE_PAUSE);
		break;
	case SCHEDULE_TRIGGER:
		trigger(v, answer);
		break;
	case SCHEDULE_BACKFILL:
		backfill(v, answer);
		break;
	case SCHEDULE_DELETE:
		v->row = v->was;
		write_it(v, answer);
		break;
	}
	if (v->arena->failed && !task_is_done(&v->task))
		end_verb(v, HX_TOO_LARGE, NULL);
}

static void schedule_verb_take_read(struct schedule_verb *v, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[LINE_ROW];
	enum hx_code code;

	if (answer->result->verdict != UNIT_WON) {
		end_verb(v, HX_STORE_UNAVAILABLE, NULL);
		return;
	}
	if (v->tries++ == TRIES_MAX) {
		end_verb(v, HX_CONCURRENCY_ERROR, NULL);
		return;
	}
	if (v->rq->of_function && answer->result->rows[LINE_POLLED].n == 0) {
		end_verb(v, HX_NOT_FOUND, NULL);
		return;
	}
	if (rows->n == 0) {
		if (v->rq->kind == SCHEDULE_PUT)
			put_new(v, answer);
		else
			end_verb(v, HX_NOT_FOUND, "there is no such schedule");
		return;
	}
	code = schedule_row_take(rows, 0, v->rq->policy, v->arena, &v->was);
	if (!code && !v->was.spec.timing.zone)
		code = HX_DATA_ERROR;
	/* One that cannot be read here can be put again, and deleted. */
	if (code == HX_DATA_ERROR && (v->rq->kind == SCHEDULE_PUT || v->rq->kind == SCHEDULE_DELETE))
		code = HX_OK;
	if (code)
		end_verb(v, code, "this node cannot read the schedule: its timezone, or its text, is not known here");
	else
		schedule_verb_decide(v, answer);
}

static void take_account(struct schedule_verb *v, const struct answer *answer)
{
	if (answer->result->verdict != UNIT_WON) {
		end_verb(v, HX_STORE_UNAVAILABLE, NULL);
	} else if (answer->result->rows[0].n == 0) {
		end_verb(v, HX_NOT_FOUND, "there is no such account");
	} else {
		v->start.account = db_cell(&answer->result->rows[0], 0, 0)->i;
		write_it(v, answer);
	}
}

static void schedule_written(struct schedule_verb *v, const struct answer *answer UNUSED)
{
	end_verb(v, HX_OK, NULL);
}

static void lost_schedule(struct schedule_verb *v, const struct answer *answer)
{
	bool triggered = v->rq->kind == SCHEDULE_TRIGGER && answer->result->line > 0;

	task_go(&v->task, triggered ? VERB_FINDING : VERB_READING);
}

static void refused_schedule(struct schedule_verb *v, const struct answer *answer UNUSED)
{
	if (v->rq->kind == SCHEDULE_TRIGGER)
		end_verb(v, HX_NOT_FOUND, "there is no such workflow, and nobody polls for such a function");
	else
		end_verb(v, HX_TOO_LARGE, "a workspace has at most 10000 schedules");
}

static void failed_schedule(struct schedule_verb *v, const struct answer *answer)
{
	end_verb(v, flow_failure(answer->result), NULL);
}

/* Whoever asks again finds what it wanted, or does it once more: all but a trigger without an id come to the same. */
static void unsure_of_schedule(struct schedule_verb *v, const struct answer *answer UNUSED)
{
	if (v->rq->kind == SCHEDULE_TRIGGER || v->rq->kind == SCHEDULE_DELETE)
		end_verb(v, HX_OUTCOME_UNKNOWN, NULL);
	else
		task_go(&v->task, VERB_READING);
}

TASK_VERDICTS(schedule_verb_take_written,
	      struct schedule_verb, [UNIT_WON] = schedule_written, [UNIT_LOST] = lost_schedule,
	      [UNIT_REFUSED] = refused_schedule, [UNIT_FAILED] = failed_schedule, [UNIT_UNKNOWN] = unsure_of_schedule);

/* The key of a trigger: it was triggered under this id before. */
static void schedule_verb_take_found(struct schedule_verb *v, const struct answer *answer)
{
	const struct unit_result *result = answer->result;
	enum hx_code code = HX_STORE_UNAVAILABLE;

	v->changed = false;
	if (result->verdict == UNIT_WON && v->start.run)
		code = run_found(result, v->was.spec.workflow, &v->start.subject);
	else if (result->verdict == UNIT_WON)
		code = result->rows[0].n ? HX_OK : HX_NOT_FOUND;
	_Static_assert(BATCH_SUBJECT == 0, "as of a job");
	if (!code && !v->start.run)
		v->start.subject = db_cell(&result->rows[0], 0, BATCH_SUBJECT)->i;
	end_verb(v, code, code == HX_KEY_REUSED ? "this id was triggered with another workflow" : NULL);
}

static void build_read(const struct schedule_verb *v, struct unit *unit)
{
	schedule_read(unit, 0, v->rq->workspace, v->rq->name);
	schedule_read_now(unit);
	if (v->rq->of_function)
		function_find_polled(unit, v->rq->workspace, v->rq->spec->workflow);
}

static void build_account(const struct schedule_verb *v, struct unit *unit)
{
	account_read(unit, v->rq->workspace, v->was.spec.account);
}

static void schedule_verb_build_write(const struct schedule_verb *v, struct unit *unit)
{
	switch (v->rq->kind) {
	case SCHEDULE_PUT:
	case SCHEDULE_PAUSE:
	case SCHEDULE_RESUME:
		if (v->created)
			schedule_create(unit, &v->stamp, &v->row);
		else
			schedule_change(unit, &v->stamp, &v->was, &v->row, v->slots);
		break;
	case SCHEDULE_TRIGGER:
		schedule_triggered(unit, &v->stamp, &v->was, v->start.subject);
		schedule_start_add(unit, &v->stamp, &v->was, &v->start);
		break;
	case SCHEDULE_BACKFILL:
		schedule_backfill(unit, &v->stamp, &v->was, v->slots);
		break;
	case SCHEDULE_DELETE:
		schedule_delete(unit, &v->stamp, &v->was);
		break;
	}
}

static void build_find(const struct schedule_verb *v, struct unit *unit)
{
	if (v->start.run)
		run_find_key(unit, v->rq->workspace, v->start.key);
	else if (v->start.payload.p)
		schedule_find_job(unit, v->rq->workspace, v->start.key);
	else
		batch_read_key(unit, v->rq->workspace, v->start.key);
}

static const TASK_STATES(struct schedule_verb) verb_states[] = {
	[VERB_NEW] = {"new", .then = VERB_READING},
	[VERB_READING] = {"reading", schedule_verb_take_read, build_read},
	[VERB_READING_ACCOUNT] = {"reading its account", take_account, build_account},
	[VERB_WRITING] = {"writing", schedule_verb_take_written, schedule_verb_build_write},
	[VERB_FINDING] = {"finding what was triggered", schedule_verb_take_found, build_find},
	[VERB_DONE] = {"done"},
};

TASK_KIND_STAMPED(verb_kind, "schedule verb", struct schedule_verb, verb_states);

void schedule_verb_init(struct schedule_verb *v, const struct schedule_verb_request *rq, struct arena *arena)
{
	*v = (struct schedule_verb){.rq = rq, .arena = arena};
	task_init(&v->task, &verb_kind, /* topic= */ 0);
}
