/*
 * The end of a claim, or its going on: heartbeat, complete, fail, lapse. See job_work.h for the states.
 *
 * A heartbeat, and the completion of a job that is no step's, in no bounded queue and without a slot, which is most of them, is tried in one
 * guarded write. For all else, and to say why that was refused, the row is read first: what there is to write depends on it
 * (attempts left, whose step it is). What was read may be old by the time of the write, but every write is guarded by the
 * fence, and a fence was given to one owner only; all else that was read never changes while that claim lasts.
 */
#include "flow/answer.h"
#include "flow/job_work.h"
#include "flow/run.h"
#include "flow/shapes.h"
#include "flow/subject_change.h"
#include "flow/what_next.h"
#include "task/states.h"

/* clang-format off */

/* What it holds; or else the line that it stands in, of a limit that is gone. */
#define OF_SLOT " FROM hx_slot w WHERE w.holder = s.id ORDER BY (w.held = 1) DESC LIMIT 1"

DB_STMT(stmt_read, "job_settle_read", "i", "titttiiiiiiiiiii",
	"SELECT {ord}s.status, s.fence, s.owner, j.workspace, j.queue, j.attempt, j.run, j.repeatable,"
	" j.attempts_max, j.retry_initial_ms, j.retry_max_ms, j.retry_factor, j.jitter, j.in_flight_max,"
	" (SELECT w.name" OF_SLOT "), (SELECT w.bound" OF_SLOT ")"
	" FROM hx_subject s JOIN hx_job j ON j.subject = s.id{join} WHERE s.id = ?1");
enum {
	STATUS, FENCE, OWNER, WORKSPACE, QUEUE, ATTEMPT, RUN, REPEATABLE,
	ATTEMPTS_MAX, INITIAL_MS, MAX_MS, FACTOR, JITTER, IN_FLIGHT_MAX, SLOT, BOUND
};

/* The claim of that owner, on a worker's job; workspace '': any. Whose job it is never changes. */
#define OWNED_BY(owner, workspace)                                                                                     \
	" AND owner = " owner /* mutant: settle-owner */                                                               \
	" AND EXISTS (SELECT 1 FROM hx_job j WHERE j.subject = id"                                                     \
	" AND j.queue <> 'after-effects'" /* mutant: settle-after-effect */                                            \
	" AND (" workspace " = '' OR j.workspace = " workspace ")" /* mutant: settle-workspace -> " AND " workspace " = " workspace */

DB_STMT(stmt_heartbeat, "job_heartbeat", "iiitt", "i",
	"UPDATE hx_subject SET until = hx_now_ms() + ?3"
	"{from} WHERE id = ?1"
	" AND status = 'RUNNING'" /* mutant: beat-status */
	" AND fence = ?2" /* mutant: beat-fence */
	OWNED_BY("?4", "?5") ")"
	" RETURNING {ord}until",
	.fenced = true);

/* Not `fenced`: it also loses where the job is not that simple. */
DB_STMT(stmt_complete, "job_complete", "ttiiititt", "ii",
	CHANGE_FORMS(CHANGE("fence") FREED ANSWERED
		     "{from} WHERE id = ?7"
		     " AND fence = ?3" /* mutant: complete-fence */
		     " AND status = ?2" /* mutant: complete-status */
		     OWNED_BY("?8", "?9")
		     " AND j.run IS NULL" /* mutant: complete-of-run */
		     " AND j.in_flight_max = 0" /* mutant: complete-bounded */
		     " AND NOT EXISTS (SELECT 1 FROM hx_slot w WHERE w.holder = j.subject)" /* mutant: complete-with-a-slot */
		     ")",
		     "version, fence"));

/* clang-format on */

static bool is_after_effect(const struct db_rows *rows)
{
	return slice_is(db_cell(rows, 0, QUEUE)->s, JOB_QUEUE_AFTER_EFFECTS);
}

static bool is_foreign(const struct job_settle_request *rq, const struct db_rows *rows)
{
	return rq->workspace.p && !slice_eq(db_cell(rows, 0, WORKSPACE)->s, rq->workspace);
}

/*
 * Is it the claim that the caller means? Status and fence guard what is written after this, too. The rest is asked here alone: the
 * engine's own jobs are no worker's to settle.
 */
static bool is_this_claim(const struct job_settle_request *rq, const struct db_rows *rows)
{
	bool is = slice_is(db_cell(rows, 0, STATUS)->s, JOB_RUNNING) && db_cell(rows, 0, FENCE)->i == rq->fence;

	if (!is || rq->kind == JOB_LAPSE)
		return is;
	is &= slice_eq(db_cell(rows, 0, OWNER)->s, rq->owner); /* mutant: fail-owner */
	is &= !is_after_effect(rows);                          /* mutant: fail-after-effect */
	return is;
}

static void park(struct job_settle *s, struct slice words)
{
	s->to = JOB_PARKED;
	s->ending = (struct job_ending){.due_in_ms = -1, .error = words};
}

static struct next job_settle_next_of(const struct db_rows *rows, enum heard heard, int64_t drawn)
{
	struct run_retry retry = {
		.max_attempts = db_cell(rows, 0, ATTEMPTS_MAX)->i,
		.initial_ms = db_cell(rows, 0, INITIAL_MS)->i,
		.max_ms = db_cell(rows, 0, MAX_MS)->i,
		.factor_thousandths = db_cell(rows, 0, FACTOR)->i,
		.jitter = db_cell(rows, 0, JITTER)->i != 0,
	};

	return what_next(&(struct tried){.heard = heard,
					 .policy = policy_of_effect(db_cell(rows, 0, REPEATABLE)->i != 0),
					 .retry = &retry,
					 .attempt = db_cell(rows, 0, ATTEMPT)->i,
					 .drawn = drawn});
}

static void decide_failed(struct job_settle *s, const struct db_rows *rows, int64_t drawn)
{
	struct slice words = s->rq->output.p ? s->rq->output : slice_str("");
	struct next next = job_settle_next_of(rows, s->rq->retryable ? HEARD_NOT_DONE : HEARD_REFUSED, drawn);

	if (next.what != NEXT_AGAIN) {
		park(s, words);
		return;
	}
	s->to = JOB_RETRYING;
	s->ending = (struct job_ending){.due_in_ms = next.rest_ms, .error = words};
}

/* The worker may have done it, or not. An after-effect is left to whoever takes it next: see job.h. */
static void decide_lapsed(struct job_settle *s, const struct db_rows *rows)
{
	bool again = is_after_effect(rows) ||
		     job_settle_next_of(rows, HEARD_UNKNOWN, /* drawn= */ 0).what == NEXT_AGAIN;

	if (again) {
		s->to = JOB_AVAILABLE;
		s->ending = (struct job_ending){.due_in_ms = 0, .error = slice_str("its worker was lost")};
	} else if (db_cell(rows, 0, REPEATABLE)->i) {
		park(s, slice_str("its workers were lost too often"));
	} else {
		park(s, slice_str("its worker was lost, and it may have been done"));
	}
}

static void job_settle_decide(struct job_settle *s, const struct db_rows *rows, const struct answer *answer)
{
	const struct db_value *run = db_cell(rows, 0, RUN);

	s->run = run->type == DB_NULL ? 0 : run->i;
	s->bounded = db_cell(rows, 0, IN_FLIGHT_MAX)->i > 0;
	s->after_effect = is_after_effect(rows);
	if (db_cell(rows, 0, SLOT)->type == DB_INT)
		s->slot = (struct slot){.name = db_cell(rows, 0, SLOT)->i,
					.max = db_cell(rows, 0, BOUND)->i,
					.of = s->after_effect ? SLOT_OF_CALL : SLOT_OF_JOB};
	s->workspace = arena_copy(s->arena, db_cell(rows, 0, WORKSPACE)->s);
	s->queue = arena_copy(s->arena, db_cell(rows, 0, QUEUE)->s);
	switch (s->rq->kind) {
	case JOB_HEARTBEAT:
		s->to = JOB_RUNNING;
		break;
	case JOB_COMPLETE:
		s->to = JOB_COMPLETED;
		s->ending = (struct job_ending){.due_in_ms = -1, .output = s->rq->output};
		break;
	case JOB_FAIL:
		decide_failed(s, rows, answer->id);
		break;
	case JOB_LAPSE:
		decide_lapsed(s, rows);
		break;
	}
	s->stamp = flow_stamp(answer);
	task_go(&s->task, SETTLE_SETTLING);
}

static void job_settle_take_start(struct job_settle *s, const struct answer *answer)
{
	bool simple = s->rq->kind == JOB_HEARTBEAT || s->rq->kind == JOB_COMPLETE;

	s->stamp = flow_stamp(answer);
	s->to = s->rq->kind == JOB_HEARTBEAT ? JOB_RUNNING : JOB_COMPLETED;
	s->ending = (struct job_ending){.due_in_ms = -1, .output = s->rq->output};
	task_go(&s->task, simple ? SETTLE_TRYING : SETTLE_READING);
}

static void job_settle_take_read(struct job_settle *s, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[0];

	if (answer->result->verdict != UNIT_WON)
		task_end(&s->task, HX_STORE_UNAVAILABLE);
	else if (!rows->n || is_foreign(s->rq, rows)) /* mutant: fail-workspace -> else if (!rows->n) */
		task_end(&s->task, HX_NOT_FOUND);
	else if (!is_this_claim(s->rq, rows))
		task_end(&s->task, HX_STALE_FENCE);
	else
		job_settle_decide(s, rows, answer);
}

static void settled(struct job_settle *s)
{
	s->status = s->to;
	task_end(&s->task, HX_OK);
}

static void written(struct job_settle *s, const struct answer *answer)
{
	if (s->rq->kind == JOB_HEARTBEAT)
		s->until_ms = db_cell(&answer->result->rows[0], 0, 0)->i;
	settled(s);
}

static void lost_settle(struct job_settle *s, const struct answer *answer UNUSED)
{
	if (s->task.at == SETTLE_TRYING)
		task_go(&s->task, SETTLE_READING); /* stale, or not that simple */
	else
		task_end(&s->task, HX_STALE_FENCE);
}

static void failed_settle(struct job_settle *s, const struct answer *answer)
{
	task_end(&s->task, flow_failure(answer->result));
}

static void unsure_of_settle(struct job_settle *s, const struct answer *answer UNUSED)
{
	if (s->rq->kind == JOB_HEARTBEAT)
		task_end(&s->task, HX_STORE_UNAVAILABLE); /* beating once more does no harm */
	else
		task_go(&s->task, SETTLE_LOOKING_UP);
}

TASK_VERDICTS(take_settled, struct job_settle, [UNIT_WON] = written, [UNIT_LOST] = lost_settle,
	      [UNIT_REFUSED] = lost_settle, [UNIT_FAILED] = failed_settle, [UNIT_UNKNOWN] = unsure_of_settle);

static void take_looked_up(struct job_settle *s, const struct answer *answer)
{
	const struct unit_result *result = answer->result;

	if (result->verdict != UNIT_WON)
		task_end(&s->task, HX_OUTCOME_UNKNOWN);
	else if (result->rows[0].n == 0)
		task_end(&s->task, HX_STORE_UNAVAILABLE);
	else
		settled(s);
}

static void add_heartbeat(const struct job_settle *s, struct unit *unit)
{
	const struct job_settle_request *rq = s->rq;

	unit_touch(unit, rq->subject);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_heartbeat, db_int(rq->subject), db_int(rq->fence), db_int(rq->lease_ms),
		 db_text(rq->owner), db_text(rq->workspace));
}

static void add_complete(const struct job_settle *s, struct unit *unit)
{
	const struct job_settle_request *rq = s->rq;

	unit_touch(unit, rq->subject);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_complete, db_str(s->to), db_str(JOB_RUNNING), db_int(rq->fence),
		 db_int(s->stamp.op), db_int(s->stamp.at.ms), db_str(s->stamp.node), db_int(rq->subject),
		 db_text(rq->owner), db_text(rq->workspace));
	subject_add_history(unit, &s->stamp, rq->subject, JOB_RUNNING);
	unit_wake(unit, rq->subject);
}

/*
 * A worker that failed says so of its own try: what an earlier one, that was lost, may have done is as open as before. So
 * that is a release that answers nothing, also into PARKED. Only "done" settles a doubt.
 */
static void add_verdict(const struct job_settle *s, struct unit *unit)
{
	struct move move = {s->rq->subject, JOB_RUNNING, s->to};

	if (s->task.at == SETTLE_TRYING)
		add_complete(s, unit);
	else if (s->rq->kind == JOB_COMPLETE)
		subject_finish(unit, &s->stamp, &move, s->rq->fence);
	else if (s->rq->kind == JOB_FAIL)
		subject_release(unit, &s->stamp, &move, s->rq->fence, /* answered= */ false);
	else
		subject_revert(unit, &s->stamp, &move, s->rq->fence);
}

/* Of a job to be had, or of room for one. */
static void tell_waiting(const struct job_settle *s, struct unit *unit)
{
	if (s->after_effect)
		unit_wake(unit, JOB_TOPIC);
	else
		job_offer(unit, s->workspace, s->queue, 1);
}

static void build_settle(const struct job_settle *s, struct unit *unit)
{
	if (s->rq->kind == JOB_HEARTBEAT) {
		add_heartbeat(s, unit);
		return;
	}
	add_verdict(s, unit);
	if (s->slot.name) {
		slot_lock(unit, &s->slot);
		slot_release(unit, &s->slot, s->rq->subject); /* mutant: job-slot-kept -> ; */
	}
	job_end(unit, s->rq->subject, &s->ending); /* mutant: settle-without-row */
	if (s->run && s->ending.due_in_ms < 0)
		run_job_ended(unit, s->run, s->rq->subject);
	else if (s->run)
		run_job_back(unit, s->run, s->rq->subject);
	if (s->bounded || s->slot.name || s->ending.due_in_ms >= 0)
		tell_waiting(s, unit);
}

TASK_UNIT(build_read, struct job_settle, s, UNIT_ADD(unit, UNIT_ANY, &stmt_read, db_int(s->rq->subject)));
TASK_UNIT(build_look_up, struct job_settle, s, subject_look_up(unit, s->rq->subject, s->stamp.op));

static const TASK_STATES(struct job_settle) settle_states[] = {
	[SETTLE_NEW] = {"new", job_settle_take_start},
	[SETTLE_TRYING] = {"trying", take_settled, build_settle},
	[SETTLE_READING] = {"reading", job_settle_take_read, build_read},
	[SETTLE_SETTLING] = {"settling", take_settled, build_settle},
	[SETTLE_LOOKING_UP] = {"looking up whether it was settled", take_looked_up, build_look_up},
	[SETTLE_DONE] = {"done"},
};

static const struct task_shape request_shape = SHAPE(struct job_settle_request, NULL,
	PART(SLICE, struct job_settle_request, workspace),
	PART(MADE, struct job_settle_request, subject),
	PART(SLICE, struct job_settle_request, owner, output));

static const struct task_shape ending_shape = SHAPE(struct job_ending, NULL,
	PART(SLICE, struct job_ending, error, output));

static const struct task_shape settle_shape = SHAPE(struct job_settle, NULL,
	PART_WITH(OBJECT, struct job_settle, rq, &request_shape),
	PART(TEXT, struct job_settle, status, to),
	PART_WITH(INNER, struct job_settle, ending, &ending_shape),
	PART_WITH(INNER, struct job_settle, slot, &slot_shape),
	PART(SLICE, struct job_settle, workspace, queue),
	PART_WITH(INNER, struct job_settle, stamp, &stamp_shape));

TASK_KIND_STAMPED(settle_kind, "job settle", struct job_settle, settle_states, .shape = &settle_shape);

void job_settle_init(struct job_settle *settle, const struct job_settle_request *rq, struct arena *arena)
{
	*settle = (struct job_settle){.rq = rq, .arena = arena};
	task_init(&settle->task, &settle_kind, /* topic= */ 0);
}
