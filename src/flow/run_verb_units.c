/* The units of the run's verbs. See run_verb.h for what each of them changes, and run_verb_parts.h. */
#include "flow/debounce.h"
#include "flow/function_verb.h"
#include "flow/run_count.h"
#include "flow/run_verb_parts.h"
#include "flow/singleton.h"

/* A line is a guard. */
/* ?2: due at once. */
DB_STMT(stmt_due, "run_verb_due", "ii", "",
	"UPDATE hx_run SET due_at = CASE WHEN ?2 = 1 THEN hx_now_ms() END WHERE subject = ?1");

/* ?3: when it ended, NULL: not yet. ?4: it stays with a worker, or held for a person. */
DB_STMT(stmt_cancel, "run_verb_cancel", "iiii", "",
	"UPDATE hx_run SET due_at = CASE WHEN ?2 = 1 THEN hx_now_ms() END, completed_at = ?3, wait_until = NULL,"
	" awaits = CASE WHEN ?4 = 1 THEN awaits END WHERE subject = ?1"
	/* retention takes what has failed, and changes no version */
	" AND expired = 0" /* mutant: cancel-expired */
);

/* The step at ?2 with the key that ?3 makes has all its attempts before it. ?4: what is being compensated, or NULL. */
DB_STMT(stmt_anew, "run_verb_anew", "iiiiii", "",
	"UPDATE hx_run SET at_step = ?2, redo = ?3, undo = ?4, due_at = CASE WHEN ?5 = 1 THEN hx_now_ms() END,"
	" attempt = 0, step_status = NULL, step_started_at = NULL, awaits = NULL, job = NULL, wait_until = NULL,"
	" unsettled_since = NULL, error = NULL, completed_at = NULL, child = CASE WHEN parent IS NOT NULL THEN 'open' END,"
	" times_out_at = coalesce(?6, times_out_at)"
	" WHERE subject = ?1"
	" AND expired = 0" /* mutant: anew-expired */
);

DB_STMT(stmt_step_done, "run_verb_step_done", "iiitii", "",
	INTO_STEP("") " VALUES (?1, ?2, 'COMPLETED', ?3, ?4, ?5, ?6)");

DB_STMT(stmt_undone, "run_verb_undone", "iii", "",
	"UPDATE hx_run_step SET undone_at = ?3 WHERE run = ?1 AND position = ?2"
	" AND undone_at IS NULL" /* mutant: resolved-undone-twice */
);

/* The shift before it has won by the version, so its id is not there yet. */
DB_STMT(stmt_event, "run_verb_event", "ittti", "",
	INTO_EVENT " VALUES (?1, ?2, ?3, ?4, ?5)");

DB_STMT(stmt_seen, "run_verb_seen", "ittt", "t",
	"SELECT id FROM hx_run_event WHERE run = ?1"
	" AND name = ?3 || ?4" /* mutant: seen-of-another-name -> " AND ?3 || ?4 <> ''" */
	" AND id = ?2" /* mutant: seen-of-another-id -> " AND ?2 <> ''" */
);

/* ?2: the id but for the redo that the run is in. */
DB_STMT(stmt_decision_seen, "run_verb_decision_seen", "it", "t",
	"SELECT e.id FROM hx_run r JOIN hx_run_event e ON e.run = r.subject"
	" AND e.id = ?2 || r.redo" /* mutant: decided-before -> " AND e.id >= ?2" */
	" WHERE r.subject = ?1");

DB_STMT(stmt_count, "run_verb_event_count", "i", "i",
	"SELECT count(*) FROM hx_run_event WHERE run = ?1");

int64_t verb_singleton(const struct run_verb *v, const char *to)
{
	const struct run_definition *whole = v->row.machine->definition;

	if (!run_is_terminal(v->row.status) || run_is_terminal(to) || v->row.parent)
		return 0;
	return singleton_name(&whole->limits, v->row.workspace, whole->name, v->row.input, v->arena);
}

void verb_build_find(const struct run_verb *v, struct unit *unit)
{
	if (v->rq->start && v->rq->start->debounce.name)
		debounce_find(unit, v->rq->start);
	else if (v->rq->start && v->rq->start->singleton)
		singleton_find(unit, v->rq->workspace, v->rq->key, v->rq->start->singleton, /* ended= */ false);
	else
		run_find_key(unit, v->rq->workspace, v->rq->key);
}

void verb_build_read(const struct run_verb *v, struct unit *unit)
{
	run_read(unit, v->rq->workspace, v->subject);
	if (v->rq->kind == RUN_EVENT) {
		UNIT_ADD(unit, UNIT_ANY, &stmt_seen, db_int(v->subject), db_text(v->event_id), db_str(RUN_AWAITS_EVENT),
			 db_text(v->rq->name));
		UNIT_ADD(unit, UNIT_ANY, &stmt_count, db_int(v->subject));
	} else if (v->rq->kind == RUN_APPROVE) {
		UNIT_ADD(unit, UNIT_ANY, &stmt_decision_seen, db_int(v->subject), db_text(v->event_id));
		run_read_parts(unit, v->subject);
	} else if (v->rq->kind == RUN_RESOLVE) {
		run_read_parts(unit, v->subject);
	} else if (v->rq->kind == RUN_MIGRATE) {
		run_migrate_read(unit, v->subject, v->rq->definition_version);
	}
}

/*
 * Changes the status and nothing of the claim. To cancel or pause a run that somebody holds, its status is guard
 * enough, unless the caller names a version: a run that moves fast would always be ahead of its callers.
 */
static void build_shift(const struct run_verb *v, struct unit *unit, bool settles)
{
	struct move move = {v->subject, v->row.status, v->to};
	bool any = v->row.owned && (v->kind == RUN_CANCEL || v->kind == RUN_PAUSE) && !v->rq->version;
	/* Which line it leaves depends on its input, which others replace as well; what goes along tells its version. */
	bool unheld = v->kind == RUN_DEBOUNCE && !v->slot.name && !v->rq->along;

	/* Lines that go along may rely on the version that was read (flow/bulk_hand.h). */
	any &= !v->rq->along; /* mutant: bulk-of-any-version */
	subject_shift(unit, &v->stamp, &move, any ? 0 : unheld ? SHIFT_UNHELD : v->row.version, settles);
	run_count_changed_of(unit, v->subject, move.from, move.to);
	if (v->slot.name)
		slot_lock(unit, &v->slot);
	if (v->singleton)
		singleton_return(unit, v->singleton, v->subject); /* mutant: singleton-not-back -> ; */
}

static void build_due(const struct run_verb *v, struct unit *unit)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_due, db_int(v->subject), db_int(v->due));
}

/* Bodies are undone in reverse, one at a time, by whoever drives the run. */
static bool stands_at_repeat(const struct run_row *row)
{
	return row->position < row->definition->steps_n && row->definition->steps[row->position].type == RUN_REPEAT;
}

/* The children of the step where it stands. */
static void build_for_standing(const struct run_verb *v, struct unit *unit, const char *word)
{
	const struct run_definition *definition = v->row.definition;
	const struct run_step *step = v->row.position < definition->steps_n ? &definition->steps[v->row.position]
									    : NULL;

	if (step && run_step_has_children(step))
		run_children_ask(unit, v->subject, &(struct run_asking){step, word, /* only= */ -1, /* but= */ -1});
}

static void build_cancel(const struct run_verb *v, struct unit *unit)
{
	bool ends = strcmp(v->to, RUN_CANCELLED) == 0;
	bool stays = !ends && (v->row.job_status || verb_is_held(&v->row));

	build_shift(v, unit, /* settles= */ false);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_cancel, db_int(v->subject), db_int(v->due),
		 ends ? db_int(v->stamp.at.ms) : db_null(), db_int(stays));
	if (ends)
		unit_wake(unit, subject_end_topic(v->subject));
	if (ends && v->row.parent)
		run_child_ended(unit, &v->row, v->to);
	if (!ends && !stands_at_repeat(&v->row)) /* mutant: bodies-cancelled-at-once -> if (!ends) */
		build_for_standing(v, unit, CHILD_ASKED_CANCEL);
}

static bool has_child_steps(const struct run_row *row)
{
	for (size_t i = 0; i < row->definition->steps_n; i++)
		if (run_step_has_children(&row->definition->steps[i]))
			return true;
	return false;
}

/* What goes on in its children stops with it, and goes on with it. */
static void build_for_children(const struct run_verb *v, struct unit *unit, const char *word)
{
	if (has_child_steps(&v->row))
		run_children_ask_all(unit, v->subject, word);
}

/* A retry gives the run all its time again. */
static void build_anew(const struct run_verb *v, struct unit *unit, int64_t redo, int64_t undo)
{
	int64_t times_out_at = v->kind == RUN_RETRY ? run_times_out_at(v->row.definition, v->stamp.at.ms) : 0;

	UNIT_ADD(unit, UNIT_VERDICT, &stmt_anew, db_int(v->subject), db_int((int64_t)v->row.position), db_int(redo),
		 undo < 0 ? db_null() : db_int(undo), db_int(v->due), times_out_at ? db_int(times_out_at) : db_null());
}

/* An effect that may have been done keeps its key: only after a definite answer the next one is another. */
static void build_retry(const struct run_verb *v, struct unit *unit)
{
	build_shift(v, unit, /* settles= */ false);
	if (v->row.undo >= 0)
		build_anew(v, unit, v->row.redo, v->row.undo);
	else
		build_anew(v, unit, v->row.redo + !v->row.doubt, /* undo= */ -1);
}

/* A person's word settles the doubt. What was not done is begun anew under the same key: it may still come through. */
static void build_resolve(const struct run_verb *v, struct unit *unit)
{
	bool undo = v->row.undo >= 0, done = v->rq->done;
	int64_t at = v->stamp.at.ms;

	build_shift(v, unit, /* settles= */ true);
	build_anew(v, unit, v->row.redo, undo && !done ? v->row.undo : -1);
	if (undo && done)
		UNIT_ADD(unit, UNIT_ANY, &stmt_undone, db_int(v->subject), db_int(v->row.undo), db_int(at));
	else if (done)
		UNIT_ADD(unit, UNIT_ANY, &stmt_step_done, db_int(v->subject), db_int((int64_t)v->row.position),
			 db_int(v->row.attempt), db_text(v->rq->data.n ? v->rq->data : slice_str("null")),
			 db_int(v->row.step_started_at), db_int(at));
}

static void build_event_row(const struct run_verb *v, struct unit *unit)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_event, db_int(v->subject), db_text(v->event_id), db_text(v->awaits),
		 db_text(v->rq->data.n ? v->rq->data : slice_str("null")), db_int(v->stamp.at.ms));
}

/* The run and the event that it is made for: both, or neither. */
void verb_build_start(const struct run_verb *v, struct unit *unit)
{
	struct run_spec spec = *v->rq->start;

	spec.subject = v->subject;
	run_create(unit, &v->stamp, &spec);
	if (v->kind == RUN_EVENT)
		build_event_row(v, unit); /* mutant: signal-outside-unit -> ; */
	if (v->rq->along)
		v->rq->along->add(v->rq->along, v, unit);
}

/* To the same status: the version that was read still holds, and whoever has looked for events before looks again. */
static void build_event(const struct run_verb *v, struct unit *unit)
{
	build_shift(v, unit, /* settles= */ false);
	build_event_row(v, unit);
	if (v->due)
		build_due(v, unit);
	if (v->kind == RUN_EVENT && has_child_steps(&v->row))
		run_parts_due(unit, v->subject, v->awaits);
}

static void build_verb(const struct run_verb *v, struct unit *unit)
{
	switch (v->kind) {
	case RUN_CANCEL:
		build_cancel(v, unit);
		break;
	case RUN_PAUSE:
		build_shift(v, unit, /* settles= */ false);
		build_due(v, unit);
		build_for_children(v, unit, CHILD_ASKED_PAUSE);
		break;
	case RUN_RESUME: /* the end of its job may have made it due since it was read: that stays */
		build_shift(v, unit, /* settles= */ false);
		if (v->due)
			build_due(v, unit);
		build_for_children(v, unit, CHILD_ASKED_RESUME);
		break;
	case RUN_RETRY:
		build_retry(v, unit);
		if (v->row.undo < 0)
			build_for_standing(v, unit, CHILD_ASKED_RETRY);
		break;
	case RUN_RESOLVE:
		build_resolve(v, unit);
		break;
	case RUN_EVENT:
	case RUN_APPROVE:
		build_event(v, unit);
		break;
	case RUN_RESTART:
		build_shift(v, unit, /* settles= */ false);
		run_restart_add(unit, &v->stamp, &v->row, &v->restart);
		break;
	case RUN_MIGRATE:
		build_shift(v, unit, /* settles= */ false);
		run_migrate_add(unit, &v->stamp, &v->row, &v->migration);
		break;
	case RUN_DEBOUNCE:
		build_shift(v, unit, /* settles= */ false);
		break;
	case RUN_OBEY:
		ASSERT(!"what is asked for is one of the others");
	}
}

static void build_note(const struct run_verb *v, struct unit *unit)
{
	subject_add_note(unit, v->subject,
			 &(struct history_note){.step = v->kind == RUN_RESOLVE ? v->rq->name : slice_of(NULL, 0),
						.reason = v->rq->reason,
						.by = v->rq->requester});
}

static void build_join(const struct run_verb *v, struct unit *unit)
{
	struct debounce_join join = {&v->row, v->rq->start, v->alias, v->attributes};

	debounce_join(unit, &v->stamp, &join);
}

void verb_build_write(const struct run_verb *v, struct unit *unit)
{
	if (v->to && v->work)
		function_verb_write(v, unit);
	else if (v->to)
		build_verb(v, unit);
	if (v->joins)
		build_join(v, unit);
	if (v->to && v->rq->reason.n)
		build_note(v, unit);
	if (v->slot.name)
		slot_release(unit, &v->slot, v->subject);
	if (v->leaves && run_has_lines(&v->row))
		slot_stands(unit, v->subject, v->line.name); /* mutant: line-unseen-by-verb -> ; */
	if (v->line.name) {
		slot_lock(unit, &v->line);
		slot_release(unit, &v->line, v->subject);
	}
	if (v->row.machine->definition->limits.rate.max && (v->kind == RUN_CANCEL || v->kind == RUN_PAUSE || v->joins))
		rate_leave(unit, v->subject);
	if (v->rq->kind == RUN_OBEY)
		run_child_heard(unit, &v->row);
	if (v->due)
		unit_wake(unit, RUN_TOPIC);
	if (v->rq->along)
		v->rq->along->add(v->rq->along, v, unit);
}
