/* The unit of a move. See run_parts.h and, for the guards, subject.h. */
#include "flow/attribute.h"
#include "flow/job_work.h"
#include "flow/run_count.h"
#include "flow/run_parts.h"
#include "flow/sql_action.h"

#define STANDS                                                                                                         \
	"UPDATE hx_run SET at_step = ?2, attempt = ?3, redo = ?4, undo = ?5, step_started_at = ?6, step_status = ?7,"  \
	" started_at = coalesce(started_at, ?6)"
#define WAITS_NOT ", awaits = NULL, job = NULL, wait_until = NULL, due_at = NULL"

DB_STMT(stmt_begun, "run_begun", "iiiiiitti", "",
	STANDS WAITS_NOT ", error = ?8, unsettled_since = ?9{from} WHERE subject = ?1");

/*
 * An event that came before its wait makes the wait due, and so does the end of a job that came before this: looked for
 * here, where the subject's row is locked, as whoever writes either of them has to. (Nothing takes an event while the run
 * is paused: due then, it would be looked at for ever. resume makes it due.)
 */
DB_STMT(stmt_rest, "run_rest", "iiiiiittiiiti" "tii", "",
	STANDS ", awaits = ?8, job = ?9, wait_until = ?10, error = ?12, unsettled_since = ?13,"
	" due_at = CASE WHEN asked = 'fail'"
	" AND ?16 = 0" /* mutant: told-again -> " AND ?16 >= 0" */
	" AND coalesce(?8, '') NOT IN ('job', 'person') AND EXISTS (SELECT 1 FROM hx_subject s"
	" WHERE s.id = ?1 AND s.doubt = 0 AND s.status NOT IN ('PAUSED', 'CANCELLING')) THEN hx_now_ms()" /* the word came meanwhile */
	" WHEN ?8 IS NULL THEN ?11"
	" WHEN EXISTS (SELECT 1 FROM hx_run_event e JOIN hx_subject s ON s.id = ?1"
	" AND s.status <> 'PAUSED'" /* mutant: rest-paused */
	" WHERE (e.run = ?1 OR e.run = (SELECT o.around FROM hx_run o WHERE o.subject = ?1))"
	" AND e.name = ?8" /* mutant: early-event-not-due -> " AND e.name = ?8 AND 1 = 0" */
	" AND e.taken_by IS NULL" /* mutant: rest-taken */
	") THEN hx_now_ms()"
	" WHEN ?8 = 'job' AND EXISTS (SELECT 1 FROM hx_job j WHERE j.subject = ?9 AND j.ended_at IS NOT NULL) THEN hx_now_ms()" /* mutant: ended-job-not-due */
	" WHEN ?8 = 'job'"
	" AND ?5 IS NULL" /* mutant: rest-undoing */
	" AND EXISTS (SELECT 1 FROM hx_job j JOIN hx_subject s ON s.id = j.subject"
	" AND s.doubt = 0" /* mutant: rest-job-in-doubt */
	" JOIN hx_subject r ON r.id = ?1"
	" AND r.doubt = 0" /* mutant: rest-in-doubt */
	" AND r.status = 'CANCELLING'" /* mutant: rest-not-cancelled */
	" WHERE j.subject = ?9" /* mutant: free-job-not-due -> " WHERE j.subject = ?9 AND 1 = 0" */
	" AND j.due_at IS NOT NULL" /* mutant: rest-at-worker */
	") THEN hx_now_ms()"
	" WHEN ?8 = 'child' AND (SELECT count(*) FROM hx_run k WHERE k.parent = ?1 AND k.parent_step = ?14 AND k.child = 'open') < ?15"
	" AND EXISTS (SELECT 1 FROM hx_subject s WHERE s.id = ?1 AND s.status <> 'PAUSED') THEN hx_now_ms()" /* mutant: ended-child-not-due -> " AND 1 = 0 THEN hx_now_ms()" */
	" ELSE ?11 END{from} WHERE subject = ?1");

#define ENDS                                                                                                             \
	"UPDATE hx_run SET at_step = ?2, attempt = ?3, redo = ?4, step_status = ?5, output = ?6, error = ?7,"            \
	" step_started_at = ?9, stood_attempt = NULL, stood_started_at = NULL, stood_status = NULL, stood_error = NULL," \
	" completed_at = ?8, started_at = coalesce(started_at, ?8), undo = NULL" WAITS_NOT ", unsettled_since = NULL"
#define UNHEARD CHILD_UNHEARD("?10") /* mutant: cancel-unheard-by-a-run -> #define UNHEARD "1 = 0" */

DB_STMT(stmt_end, "run_end", "iiiitttii", "", ENDS "{from} WHERE subject = ?1");
DB_STMT(stmt_end_child, "run_end_child", "iiiitttiit", "",
	ENDS ", " CHILD_SEEN("?10", UNHEARD) "{from} WHERE subject = ?1");

/* Once, by the move that begins to compensate. */
DB_STMT(stmt_stood, "run_stood", "iiitt", "",
	"UPDATE hx_run SET stood_attempt = ?2, stood_started_at = ?3, stood_status = ?4, stood_error = ?5{from}"
	" WHERE subject = ?1");

DB_STMT(stmt_step, "run_step_ended", "iititii", "",
	INTO_STEP("") " SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7{from}");

DB_STMT(stmt_undone, "run_step_undone", "iii", "",
	"UPDATE hx_run_step SET undone_at = ?3{from} WHERE run = ?1 AND position = ?2"
	" AND undone_at IS NULL" /* mutant: undone-twice */
);

DB_STMT(stmt_take_event, "run_take_event", "ititt", "",
	"UPDATE hx_run_event SET taken_by = ?3{from} WHERE run = ?1 AND id = ?2"
	" AND name = ?4 || ?5" /* mutant: taken-by-id -> " AND ?4 || ?5 <> ''" */
);

/* Parts of one run may await the same event: one of them gets it. */
DB_STMT(stmt_take_around, "run_take_event_around", "ititt", "",
	"UPDATE hx_run_event SET taken_by = ?3 WHERE run = ?1 AND id = ?2 AND name = ?4 || ?5"
	" AND taken_by IS NULL" /* mutant: event-taken-twice */
);

static struct db_value number(int64_t value)
{
	return value ? db_int(value) : db_null();
}

static struct db_value word(const char *value)
{
	return value ? db_str(value) : db_null();
}

static struct db_value undo_of(const struct run_move *move)
{
	return move->undo < 0 ? db_null() : db_int(move->undo);
}

/* Whose lease holds after the move: drive_step() once it is won. */
static const struct run_step *begun_step(const struct run_drive *d)
{
	const struct run_definition *definition = drive_definition(d);

	if (d->move.undo >= 0)
		return &definition->steps[d->move.undo];
	return d->move.next < definition->steps_n ? &definition->steps[d->move.next] : NULL;
}

static void add_guard(const struct run_drive *d, struct unit *unit)
{
	struct move move = {d->row.subject, d->row.status, d->move.to};
	struct stride stride = {
		.transitions = d->move.transitions, .doubt = d->move.doubt, .child = run_child_knows(&d->row)};

	DEBUG_ASSERT(ways_lead(&run_ways, "a node", slice_str(move.from), slice_str(move.to)));
	if (d->move.keeps)
		stride.lease_ms = run_lease_ms(d, begun_step(d));
	if (d->holding)
		subject_advance(unit, &d->stamp, &move, d->row.fence, &stride);
	else
		subject_seize(unit, &d->stamp, &move, d->row.version, &stride);
	run_count_changed(unit, d->row.workspace, d->row.machine->definition->name, move.from, move.to, /* n= */ 1);
}

static bool ends_as_child(const struct run_drive *d)
{
	return d->row.parent && d->move.write == RUN_WRITES_END;
}

static void add_end(const struct run_drive *d, struct unit *unit)
{
	const struct run_move *move = &d->move;
	const struct db_value params[] = {db_int(d->row.subject),   db_int((int64_t)move->next),
					  db_int(move->attempt),    db_int(move->redo),
					  word(move->step_status),  db_optional(move->output),
					  db_optional(move->error), db_int(d->stamp.at.ms),
					  number(move->started_at), db_str(run_child_seen(move->to))};
	const struct db_stmt *stmt = ends_as_child(d) ? &stmt_end_child : &stmt_end;

	unit_add(unit, UNIT_ANY, stmt, (unsigned)strlen(stmt->in), params);
}

static void run_units_add_row(const struct run_drive *d, struct unit *unit)
{
	const struct run_move *move = &d->move;
	struct db_value id = db_int(d->row.subject), at = db_int((int64_t)move->next), attempt = db_int(move->attempt),
			redo = db_int(move->redo);

	if (d->goes_along)
		return; /* its row was made so: run_spec.begun */
	switch (move->write) {
	case RUN_WRITES_NOTHING:
		break;
	case RUN_WRITES_BEGUN:
		UNIT_ADD(unit, UNIT_ANY, &stmt_begun, id, at, attempt, redo, undo_of(move), number(move->started_at),
			 word(move->step_status), db_optional(move->error), number(move->unsettled_since));
		break;
	case RUN_WRITES_REST:
		UNIT_ADD(unit, UNIT_ANY, &stmt_rest, id, at, attempt, redo, undo_of(move), number(move->started_at),
			 word(move->step_status), db_optional(move->awaits), number(move->job),
			 number(move->wait_until), number(move->due_at), db_optional(move->error),
			 number(move->unsettled_since), word(move->waits_at ? move->waits_at->name : NULL),
			 db_int(move->open_children), db_int(run_child_knows(&d->row) == CHILD_TOLD));
		break;
	case RUN_WRITES_END:
		add_end(d, unit);
		break;
	}
	if (move->write == RUN_WRITES_REST)
		unit_wake(unit, RUN_TOPIC); /* whoever waits for the next due run has to reckon with this one */
	if (run_is_terminal(move->to))
		unit_wake(unit, subject_end_topic(d->row.subject));
}

static void add_stood(const struct run_drive *d, struct unit *unit)
{
	const struct run_stood *stood = &d->move.stood;

	if (stood->set && !d->row.stood.set && d->move.write != RUN_WRITES_END)
		UNIT_ADD(unit, UNIT_ANY, &stmt_stood, db_int(d->row.subject), db_int(stood->attempt),
			 number(stood->started_at), db_optional(stood->status), db_optional(stood->error));
}

static void add_job(const struct run_drive *d, struct unit *unit)
{
	const struct run_step *step = &drive_definition(d)
					       ->steps[d->move.undo < 0 ? d->move.next : (size_t)d->move.undo];
	struct job_of_run job = {
		.spec = {.subject = d->move.job,
			 .workspace = d->row.workspace,
			 .queue = d->move.job_action->queue,
			 .workflow = drive_definition(d)->name,
			 .action = d->move.job_action->name,
			 .effect_key = d->key,
			 .payload = d->move.payload},
		.run = d->row.subject,
		.repeatable = d->move.undo < 0 ? step->on_unknown == UNKNOWN_RETRY
					       : d->move.job_action->effect != EFFECT_CLAIMED,
		.retry = &step->retry,
		.in_flight_max = d->move.job_action->max_in_flight,
	};

	job_insert_of_run(unit, &d->stamp, &job);
	job_offer(unit, d->row.workspace, slice_str(job.spec.queue), 1);
}

static void add_children(const struct run_drive *d, struct unit *unit)
{
	const struct run_move *move = &d->move;

	if (move->brood.rows.p)
		run_children_make(unit, &d->stamp, &d->row, &move->brood);
	if (move->asking.word)
		run_children_ask(unit, d->row.subject, &move->asking);
	if (ends_as_child(d))
		run_child_tells(unit, &d->row, move->to);
}

static void add_steps(const struct run_drive *d, struct unit *unit)
{
	for (size_t i = 0; i < d->move.rows_n; i++) {
		const struct run_ended *row = &d->move.rows[i];

		UNIT_ADD(unit, UNIT_ANY, &stmt_step, db_int(d->row.subject), db_int((int64_t)row->position),
			 db_str(row->status), db_int(row->attempt), db_text(row->output), db_int(row->started_at),
			 db_int(d->stamp.at.ms));
	}
}

static void add_marker(const struct run_drive *d, struct unit *unit)
{
	if (d->move.undone >= 0)
		UNIT_ADD(unit, UNIT_ANY, &stmt_undone, db_int(d->row.subject), db_int(d->move.undone),
			 db_int(d->stamp.at.ms));
}

static void add_taken(const struct run_drive *d, struct unit *unit)
{
	const struct run_step *step = d->move.event_step;
	struct run_awaited awaited;

	if (!step)
		return;
	awaited = run_step_awaits(step);
	UNIT_ADD(unit, d->row.around ? UNIT_VERDICT : UNIT_ANY, d->row.around ? &stmt_take_around : &stmt_take_event,
		 db_int(drive_hears(d)), db_text(d->move.event_id), db_int((int64_t)step->position),
		 db_str(awaited.prefix), db_str(awaited.name));
}

/* What an attempt said that was not done, or may not have been: the row of the run has the last one's words alone. Or that the one who
 * was at it was lost. */
static void add_attempt(const struct run_drive *d, struct unit *unit)
{
	if (d->knows && d->outcome != ACT_OK && drive_step_if_any(d))
		subject_add_note(unit, d->row.subject,
				 &(struct history_note){.step = slice_str(drive_step(d)->name), .reason = d->output});
	else if (!d->holding && d->row.owned)
		subject_add_note(unit, d->row.subject, &(struct history_note){.reason = slice_str(SUBJECT_LAPSED)});
}

void run_build_move(const struct run_drive *d, struct unit *unit)
{
	const struct run_move *move = &d->move;

	if (!d->goes_along) /* else who makes it holds it: run_create() */
		add_guard(d, unit);
	run_add_slot(d, unit); /* mutant: slot-outside-the-claim */
	if (d->row.parent && move->brood.rows.p)
		run_children_guard(unit, &d->row);
	if (d->row.around && (move->event_step || (move->write == RUN_WRITES_REST && move->awaits.p)))
		unit_touch(unit, d->row.around); /* whoever writes an event for it holds this, too */
	if (move->withdraws) {
		job_withdraw(unit, &d->stamp, move->withdraws, d->row.job_version, d->row.job_status,
			     "its run does not wait for it any more");
		unit_wake(unit, job_topic(d->row.workspace)); /* a bounded queue has room for another one */
	}
	add_steps(d, unit);    /* mutant: step-without-row */
	add_marker(d, unit);   /* mutant: undone-without-marker */
	add_taken(d, unit);    /* mutant: event-not-taken */
	add_children(d, unit); /* before its row, which looks at them */
	run_units_add_row(d, unit);
	add_attempt(d, unit);
	if (move->attributes.p)
		attributes_of_run_set(unit, d->row.subject, move->attributes);
	run_add_effects(d, unit); /* mutant: failure-untold */
	add_stood(d, unit);       /* mutant: stood-not-kept */
	if (move->payload.p)
		add_job(d, unit);
	if (move->sql) {
		const struct sql_action *sql = &d->row.machine->sql[move->sql - drive_definition(d)->actions];

		unit_for(unit, d->row.workspace);
		sql_action_add(unit, sql, move->sql, move->sql_values, move->sql_timeout_ms);
	}
	run_end_slot(d, unit);
}
