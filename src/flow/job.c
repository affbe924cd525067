/* See job.h for the states. */
#include "flow/job.h"

#include <stdio.h>

#include "base/hash.h"
#include "base/trace.h"
#include "base/utf8.h"
#include "flow/answer.h"
#include "flow/call_limit.h"
#include "flow/due_watch.h"
#include "flow/page.h"
#include "flow/shapes.h"
#include "flow/slot.h"
#include "flow/what_next.h"
#include "task/pulse.h"
#include "task/states.h"

#define JOB_SELECT                                                                                                      \
	"SELECT j.subject, s.status, s.version, j.queue, j.workflow, j.action, j.effect_key, j.payload, j.attempt,"     \
	" j.due_at, j.error, s.updated_at, s.doubt, j.priority, j.job_key, j.output, s.owner, s.until, s.fence, j.run," \
	" j.in_flight_max, j.ended_at, j.unsettled_since, j.sent_version, j.workspace FROM hx_job j JOIN hx_subject s ON s.id = j.subject"
#define JOB_OUT "ititttttiitiiitttiiiiiiit"

DB_STMT(stmt_insert, "job_insert", "ittttttii", "",
	INTO_JOB("") " SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9{from}");

/*
 * In the unit of the claim: out of the index, one more attempt, and by which version it is sent. Row: the attempt, and the line that it
 * stands in still, for a limit that its action does not have any more; 0: in none.
 */
DB_STMT(stmt_start, "job_start", "ii", "ii",
	"UPDATE hx_job SET due_at = NULL, attempt = attempt + 1, sent_version = ?2{from} WHERE subject = ?1 RETURNING {ord}attempt,"
	" coalesce((SELECT w.name FROM hx_slot w WHERE w.holder = ?1 AND w.held <> 1 LIMIT 1), 0)");

/* In the unit that ends the claim. ?2 NULL: never due again by itself. */
DB_STMT(stmt_end, "job_end", "iittii", "",
	"UPDATE hx_job SET due_at = hx_now_ms() + ?2, ended_at = CASE WHEN ?2 IS NULL THEN hx_now_ms() END,"
	" error = ?3, output = ?4, unsettled_since = ?5, sent_version = CASE WHEN ?6 = 0 THEN sent_version END,"
	" attempt = attempt - CASE WHEN ?5 IS NOT NULL THEN 1 ELSE 0 END{from} WHERE subject = ?1");

DB_STMT(stmt_is_there, "job_is_there", "it", "i",
	"SELECT subject FROM hx_job WHERE subject = ?1"
	" AND workspace = ?2" /* mutant: redrive-workspace -> " AND ?2 IS NOT NULL" */
);

/* That it is PARKED, and so not due and nobody's, is the guard of the transition after it. */
DB_STMT(stmt_redrive, "job_redrive", "i", "i",
	"UPDATE hx_job SET due_at = hx_now_ms(), ended_at = NULL, attempt = 0, error = NULL, unsettled_since = NULL,"
	" sent_version ="
	" CASE WHEN repeatable = 1 THEN sent_version END" /* mutant: sent-forgotten-by-redrive -> " NULL" */
	" WHERE subject = ?1"
	" AND run IS NULL" /* mutant: redrive-of-run */
	" RETURNING subject");

DB_STMT(stmt_unpark, "job_unpark", "iiit", "i",
	"UPDATE hx_subject SET status = 'AVAILABLE', doubt = 0, version = version + 1, op = ?2, updated_at = ?3, seq = seq + 1,"
	" head = hx_link(head, id, seq + 1, 'PARKED', 'AVAILABLE', version + 1, fence, ?2, ?3, ?4) WHERE id = ?1"
	" AND status = 'PARKED'" /* mutant: redrive-parked */
	" RETURNING version");

DB_STMT(stmt_read, "job_read", "i", JOB_OUT, JOB_SELECT " WHERE j.subject = ?1");

DB_STMT(stmt_read_in, "job_read_in", "it", JOB_OUT,
	JOB_SELECT " WHERE j.subject = ?1 AND j.workspace = ?2");

/* ?1 workspace   ?2 after   ?3 how many   then what is asked for. */
#define LEAD_QUEUE(a) a ".workspace, " a ".queue"
#define QUEUE_UP(a) LEAD_QUEUE(a) ", " a ".subject"
#define BY_ID(base) "hx_job", "j", LEAD_ALL, "?1", base, ALL_UP
#define BY_QUEUE(n) "hx_job", "j", LEAD_QUEUE, "?1, ?" n, "", QUEUE_UP
#define LIST(...) JOB_SELECT PAGE_UP(__VA_ARGS__)
#define LIST_STATUS(...) JOB_SELECT STATUS_UP(__VA_ARGS__)
#define LIST_LINE(...) SLICE_LINE(LISTED_UP(__VA_ARGS__, ""), "max")
#define QUEUE(n) " AND j.queue = ?" n
#define PARKED " AND j.ended_at IS NOT NULL AND j.error IS NOT NULL"
#define RETRYING " AND j.due_at IS NOT NULL AND j.error IS NOT NULL"

DB_STMT(stmt_list, "job_list", "tii", JOB_OUT, LIST(BY_ID("")));
DB_STMT(stmt_list_queue, "job_list_queue", "tiit", JOB_OUT, LIST(BY_QUEUE("4")));
DB_STMT(stmt_list_status, "job_list_status", "tiit", JOB_OUT, LIST_STATUS(BY_ID("")));
DB_STMT(stmt_list_both, "job_list_both", "tiitt", JOB_OUT, LIST_STATUS(BY_QUEUE("5")));
DB_STMT(stmt_list_parked, "job_list_parked", "tiit", JOB_OUT, LIST_STATUS(BY_ID(PARKED)));
DB_STMT(stmt_list_parked_queue, "job_list_parked_queue", "tiitt", JOB_OUT, LIST_STATUS(BY_ID(PARKED QUEUE("5"))));
DB_STMT(stmt_list_retrying, "job_list_retrying", "tiit", JOB_OUT, LIST_STATUS(BY_ID(RETRYING)));
DB_STMT(stmt_list_retrying_queue, "job_list_retrying_queue", "tiitt", JOB_OUT, LIST_STATUS(BY_ID(RETRYING QUEUE("5"))));

DB_STMT(stmt_slice, "job_slice", "ti", "ii", LIST_LINE(BY_ID("")));
DB_STMT(stmt_slice_queue, "job_slice_queue", "tit", "ii", LIST_LINE(BY_QUEUE("3")));
DB_STMT(stmt_slice_parked, "job_slice_parked", "ti", "ii", LIST_LINE(BY_ID(PARKED)));
DB_STMT(stmt_slice_parked_queue, "job_slice_parked_queue", "tit", "ii", LIST_LINE(BY_ID(PARKED QUEUE("3"))));
DB_STMT(stmt_slice_retrying, "job_slice_retrying", "ti", "ii", LIST_LINE(BY_ID(RETRYING)));
DB_STMT(stmt_slice_retrying_queue, "job_slice_retrying_queue", "tit", "ii", LIST_LINE(BY_ID(RETRYING QUEUE("3"))));

/* Actions whose function this node does not have are delivered by a node that has it. */
#define NOT_LEFT(names) " AND workflow || '/' || action NOT IN (SELECT value FROM " names ")"

DUE_SOURCE_SHARED(job_due_source, "job", "subject, subject", "hx_job", "t", "{list3}",
		  " AND queue = 'after-effects'" NOT_LEFT("{list2}"),
		  " AND queue = 'after-effects'" NOT_LEFT("{list1}"), .name = "jobs", .topic = JOB_TOPIC,
		  .poll_ms = DUE_POLL_MS);

DB_STMT(stmt_end_deliveries, "job_end_deliveries", "i", "",
	"UPDATE hx_subject SET until = hx_now_ms() WHERE kind = ?1 AND owner IS NOT NULL AND until > hx_now_ms()"
	" AND EXISTS (SELECT 1 FROM hx_job j WHERE j.subject = hx_subject.id AND j.queue = 'after-effects')" /* mutant: alone-workers-job */
	SLOT_NONE_HELD /* mutant: alone-delivers-with-a-slot */
);

/*
 * COMPLETED, and of runs also PARKED (a person retries the run, not its job), as the index job_over has them; a run that still
 * needs to hear of its step's job has not ended.
 */
#define EXPIRED                                                                                                        \
	" ended_at IS NOT NULL"                                                                                        \
	" AND ended_at <= (SELECT hx_now_ms()) - ?1" /* mutant: expire-age */                                          \
	" AND (error IS NULL OR run IS NOT NULL)"    /* mutant: expire-parked */                                       \
	" AND NOT EXISTS (SELECT 1 FROM hx_run WHERE hx_run.subject = hx_job.run AND hx_run.job = hx_job.subject"      \
	" AND hx_run.completed_at IS NULL)" /* mutant: expire-needed -> " AND 1 = 0)" */

DB_STMT(stmt_scan_expired, "job_scan_expired", "ii", "i",
	"SELECT subject FROM hx_job WHERE" EXPIRED " ORDER BY ended_at LIMIT ?2");

DB_STMT(stmt_expire, "job_expire", "ii", "i",
	"DELETE FROM hx_job WHERE subject = ?2 AND" EXPIRED " RETURNING subject");

DB_STMT(stmt_expire_history, "job_expire_history", "i", "", "DELETE FROM hx_history WHERE subject = ?1");
DB_STMT(stmt_expire_subject, "job_expire_subject", "i", "", "DELETE FROM hx_subject WHERE id = ?1");

/* Below 0, where no subject and no other topic is. */
int64_t job_topic(struct slice workspace)
{
	return (int64_t)(hash_bytes(0, workspace.p, workspace.n) | (uint64_t)1 << 63);
}

int64_t job_stand(struct slice workspace, struct slice queue)
{
	uint64_t hash = hash_bytes(0, workspace.p, workspace.n);

	return (int64_t)hash_bytes(hash + 1, queue.p, queue.n);
}

void job_offer(struct unit *unit, struct slice workspace, struct slice queue, uint32_t n)
{
	if (!unit_offer(unit, job_stand(workspace, queue), n))
		unit_wake(unit, job_topic(workspace));
}

int64_t job_kind(void)
{
	return subject_kind("job", "");
}

/* ---- units ---- */

void job_insert(struct unit *unit, const struct stamp *stamp, const struct job_spec *spec)
{
	subject_insert(unit, stamp, spec->subject, job_kind(), JOB_AVAILABLE);
	UNIT_ADD(unit, UNIT_ANY, &stmt_insert, db_int(spec->subject), db_text(spec->workspace), db_str(spec->queue),
		 db_str(spec->workflow), db_str(spec->action), db_text(spec->effect_key), db_text(spec->payload),
		 db_int(stamp->at.ms), db_int(spec->repeatable));
}

void job_end(struct unit *unit, int64_t subject, const struct job_ending *ending)
{
	struct slice error = ending->error;

	if (error.n > JOB_ERROR_BYTES_MAX)
		error.n = utf8_cut(slice_of(error.p, JOB_ERROR_BYTES_MAX));
	UNIT_ADD(unit, UNIT_ANY, &stmt_end, db_int(subject),
		 ending->due_in_ms < 0 ? db_null() : db_int(ending->due_in_ms), error.p ? db_text(error) : db_null(),
		 ending->output.p ? db_text(ending->output) : db_null(),
		 ending->unsettled_since ? db_int(ending->unsettled_since) : db_null(), db_int(ending->answered));
}

void job_redrive(struct unit *unit, const struct stamp *stamp, struct slice workspace, int64_t subject)
{
	unit_touch(unit, subject);
	UNIT_ADD(unit, UNIT_MUST, &stmt_is_there, db_int(subject), db_text(workspace));
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_redrive, db_int(subject));
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_unpark, db_int(subject), db_int(stamp->op), db_int(stamp->at.ms),
		 db_str(stamp->node));
	subject_add_history(unit, stamp, subject, JOB_PARKED);
	unit_wake(unit, JOB_TOPIC); /* whichever it is */
	unit_wake(unit, job_topic(workspace));
}

void job_redrive_at(struct unit *unit, const struct stamp *stamp, struct slice workspace, int64_t subject,
		    int64_t version)
{
	subject_is_at(unit, subject, version); /* mutant: redrive-of-another -> ; */
	job_redrive(unit, stamp, workspace, subject);
}

enum hx_code job_redriven(const struct unit_result *result)
{
	if (result->verdict == UNIT_WON)
		return HX_OK;
	return result->verdict == UNIT_REFUSED ? HX_NOT_FOUND : HX_WRONG_STATUS;
}

const char *job_redrive_detail(enum hx_code code)
{
	if (code == HX_NOT_FOUND)
		return "there is no such job";
	return code == HX_WRONG_STATUS ? "it is not parked, or it is a step of a run: retry that" : NULL;
}

void job_read(struct unit *unit, int64_t subject)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_read, db_int(subject));
}

void job_read_in(struct unit *unit, struct slice workspace, int64_t subject)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_read_in, db_int(subject), db_text(workspace));
}

/* A page by status: of all of them, or of those that have an index of their own. Without and with a queue. */
struct listing {
	const char *status; /* NULL: any other */
	const struct db_stmt *list, *slice, *list_queue, *slice_queue;
};

static const struct listing listings[] = {
	{JOB_PARKED, &stmt_list_parked, &stmt_slice_parked, &stmt_list_parked_queue, &stmt_slice_parked_queue},
	{JOB_RETRYING, &stmt_list_retrying, &stmt_slice_retrying, &stmt_list_retrying_queue,
	 &stmt_slice_retrying_queue},
	{NULL, &stmt_list_status, &stmt_slice, &stmt_list_both, &stmt_slice_queue},
};

static void list_by_status(struct unit *unit, struct slice workspace, struct slice status, struct slice queue,
			   struct db_value after, struct db_value limit)
{
	struct db_value in = db_text(workspace), is = db_text(status), of = db_text(queue);
	const struct listing *l = listings;

	while (l->status && !slice_is(status, l->status))
		l++;
	if (queue.n) {
		UNIT_ADD(unit, UNIT_ANY, l->list_queue, in, after, limit, is, of);
		UNIT_ADD(unit, UNIT_ANY, l->slice_queue, in, after, of);
	} else {
		UNIT_ADD(unit, UNIT_ANY, l->list, in, after, limit, is);
		UNIT_ADD(unit, UNIT_ANY, l->slice, in, after);
	}
}

void job_list(struct unit *unit, struct slice workspace, struct slice status, struct slice queue, int64_t after,
	      int64_t limit)
{
	if (status.n)
		list_by_status(unit, workspace, status, queue, db_int(after), db_int(limit));
	else if (queue.n)
		UNIT_ADD(unit, UNIT_ANY, &stmt_list_queue, db_text(workspace), db_int(after), db_int(limit),
			 db_text(queue));
	else
		UNIT_ADD(unit, UNIT_ANY, &stmt_list, db_text(workspace), db_int(after), db_int(limit));
}

void job_end_deliveries(struct unit *unit)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_end_deliveries, db_int(job_kind()));
}

void job_scan_expired(struct unit *unit, int64_t age_ms, int64_t limit)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_scan_expired, db_int(age_ms), db_int(limit));
}

void job_expire(struct unit *unit, int64_t subject, int64_t age_ms)
{
	unit_touch(unit, subject);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_expire, db_int(age_ms), db_int(subject));
	UNIT_ADD(unit, UNIT_ANY, &stmt_expire_history, db_int(subject));
	UNIT_ADD(unit, UNIT_ANY, &stmt_expire_subject, db_int(subject));
}

/* ---- the task ---- */

static int64_t int_or_none(const struct db_value *cell)
{
	return cell->type == DB_INT ? cell->i : 0;
}

/* By the version that it is sent by; the numbers are those in force. */
static struct bounds bounds_of_job(const struct job_run *j, const struct db_rows *rows)
{
	struct slice workflow = db_cell(rows, 0, JOB_WORKFLOW)->s;
	int64_t newest = 0;

	if (!j->action || !limits_are_set(&j->action->limits))
		return (struct bounds){0};
	return call_bounds(
		&(struct call_of){.workspace = db_cell(rows, 0, JOB_WORKSPACE)->s,
				  .workflow = workflow,
				  .action = j->action,
				  .in_force = j->action_of(j->context, workflow, slice_str(j->action->name), &newest),
				  .input = call_input(j->payload)},
		j->arena);
}

/* Reads the row as it is, and goes on only when it can be claimed. */
static void job_take_read(struct job_run *j, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[0];
	struct slice status;

	if (answer->result->verdict != UNIT_WON || rows->n == 0) {
		task_end(&j->task, answer->result->verdict == UNIT_WON ? HX_NOT_FOUND : HX_STORE_UNAVAILABLE);
		return;
	}
	status = db_cell(rows, 0, JOB_STATUS)->s;
	j->from = slice_is(status, JOB_AVAILABLE)  ? JOB_AVAILABLE
		  : slice_is(status, JOB_RETRYING) ? JOB_RETRYING
						   : NULL;
	j->sent_version = int_or_none(db_cell(rows, 0, JOB_SENT_VERSION)); /* mutant: sent-elsewhere */
	j->kept = j->sent_version != 0;
	j->action = j->action_of(j->context, db_cell(rows, 0, JOB_WORKFLOW)->s, db_cell(rows, 0, JOB_ACTION)->s,
				 &j->sent_version);
	j->version = db_cell(rows, 0, JOB_VERSION)->i;
	j->tenant = unit_tenant(db_cell(rows, 0, JOB_WORKSPACE)->s);
	j->doubt = db_cell(rows, 0, JOB_DOUBT)->i != 0;
	j->unsettled_since = int_or_none(db_cell(rows, 0, JOB_UNSETTLED_SINCE));
	j->key = arena_copy(j->arena, db_cell(rows, 0, JOB_KEY)->s);
	j->payload = arena_copy(j->arena, db_cell(rows, 0, JOB_PAYLOAD)->s);
	j->trace = trace_of_members(json_trust(j->payload), j->arena);
	j->bounds = bounds_of_job(j, rows);
	if (!j->from) {
		task_end(&j->task, HX_CLAIM_FAILED);
	} else if (j->arena->failed) {
		task_end(&j->task, HX_TOO_LARGE);
	} else if (j->kept && (!j->action || j->action->absent)) {
		task_end(&j->task,
			 HX_CONFIG_ERROR); /* no other version may send it, and no attempt is used by waiting */
	} else if (j->action && j->action->absent) { /* mutant: left-job-taken -> } else if (0) { */
		task_end(&j->task, HX_CLAIM_FAILED); /* the scan leaves them out: this one was found a moment before */
	} else {
		j->asked = answer->mono;
		j->stamp = flow_stamp(answer);
		task_go(&j->task, JOB_AT_CLAIMING);
	}
}

static void go_end(struct job_run *j, const struct answer *answer, const char *to, int64_t due_in_ms,
		   struct slice error)
{
	if (error.n > JOB_ERROR_BYTES_MAX)
		error.n = utf8_cut(slice_of(error.p, JOB_ERROR_BYTES_MAX));
	j->to = to;
	j->due_in_ms = due_in_ms;
	j->error = arena_copy(j->arena, error);
	j->stamp = flow_stamp(answer);
	task_go(&j->task, JOB_AT_ENDING);
}

static enum on_unknown job_policy_of(const struct job_run *j)
{
	return policy_of_effect(j->action && j->action->effect != EFFECT_CLAIMED);
}

static struct next job_next_of(const struct job_run *j, const struct answer *answer, enum heard heard)
{
	struct run_retry retry = {
		.max_attempts = j->policy->attempts_max,
		.initial_ms = j->policy->first_ms,
		.max_ms = j->policy->max_ms,
		.factor_thousandths = 2000,
	};

	return what_next(&(struct tried){
		.heard = heard,
		.doubt = j->doubt,
		.policy = job_policy_of(j),
		.retry = &retry,
		.attempt = j->attempt,
		.now_ms = answer->now.ms,
		.not_before_ms = answer->not_before_ms,
		.unsettled_since = j->unsettled_since,
		.waits = true,
	});
}

static void go_next(struct job_run *j, const struct answer *answer, const struct next *next, struct slice error)
{
	bool again = next->what == NEXT_AGAIN || next->what == NEXT_SAME_AGAIN;

	j->doubt = next->doubt;
	j->unsettled_since = next->unsettled_since;
	if (next->what == NEXT_DONE)
		go_end(j, answer, JOB_COMPLETED, 0, slice_of(NULL, 0));
	else
		go_end(j, answer, again ? JOB_RETRYING : JOB_PARKED, next->rest_ms, error);
}

static struct lease lease_of(const struct job_run *j)
{
	return (struct lease){j->subject, j->fence, j->policy->lease_ms, j->asked};
}

static void add_bounds(const struct job_run *j, struct unit *unit)
{
	if (j->bounds.slot.name || j->bounds.rate.name) /* mutant: delivery-beyond-its-limit -> if (0) */
		bounds_take(unit, &j->bounds, j->subject, /* nth= */ j->stamp.op, j->stamp.at.ms);
}

static void build_claim(const struct job_run *j, struct unit *unit)
{
	struct move claim = {j->subject, j->from, JOB_RUNNING};

	add_bounds(j, unit);
	subject_claim(unit, &j->stamp, &claim, j->version, j->policy->lease_ms);
	UNIT_ADD(unit, UNIT_ANY, &stmt_start, db_int(j->subject),
		 j->sent_version ? db_int(j->sent_version) : db_null());
}

/* The limit that the claim was lost to; 0: to none. */
static int64_t full_of(const struct job_run *j, const struct unit_result *result)
{
	LOCAL_UNIT(unit);

	build_claim(j, &unit);
	return slot_full(&unit, result);
}

/* Where its claim stands in its unit: what it takes of its limits comes before. */
static unsigned claim_line(const struct job_run *j)
{
	LOCAL_UNIT(unit);

	add_bounds(j, &unit);
	return unit.lines_n;
}

static void build_line_up(const struct job_run *j, struct unit *unit)
{
	struct slot_waiter waiter = {.subject = j->subject, .version = j->version};

	bounds_wait_jobs(unit, &j->bounds, j->full, &waiter, 1, j->stamp.at.ms);
}

static void job_take_lined_up(struct job_run *j, const struct answer *answer)
{
	j->in_line = answer->result->verdict == UNIT_WON;
	task_end(&j->task, j->in_line ? HX_CLAIM_FAILED : HX_STORE_UNAVAILABLE);
}

static void claim_lost(struct job_run *j, const struct answer *answer)
{
	j->full = full_of(j, answer->result);
	j->stamp = flow_stamp(answer);
	if (j->full)
		task_go(&j->task, JOB_AT_LINING_UP);
	else
		task_end(&j->task, HX_CLAIM_FAILED);
}

/*
 * The unit that ends it leaves this line as if it gave back a slot without a bound: so all that stand there go on,
 * too.
 */
static void leave_line(struct job_run *j, int64_t line)
{
	if (line)
		j->bounds.slot = (struct slot){.name = line, .of = SLOT_OF_CALL};
}

static void take_claimed(struct job_run *j, const struct answer *answer)
{
	const struct db_rows *rows;

	if (answer->result->verdict == UNIT_UNKNOWN || answer->result->verdict == UNIT_FAILED) {
		task_end(&j->task,
			 HX_STORE_UNAVAILABLE); /* if the claim landed after all, the janitor gives the job back */
		return;
	}
	if (answer->result->verdict != UNIT_WON) {
		claim_lost(j, answer);
		return;
	}
	rows = &answer->result->rows[claim_line(j)];
	j->version = db_cell(&rows[0], 0, 0)->i;
	j->fence = db_cell(&rows[0], 0, 1)->i;
	j->attempt = db_cell(&rows[2], 0, 0)->i;
	leave_line(j, db_cell(&rows[2], 0, 1)->i);  /* mutant: line-of-no-limit -> ; */
	if (j->attempt > j->policy->attempts_max) { /* mutant: attempts-without-end -> if (0) { */
		go_end(j, answer, JOB_PARKED, 0, slice_str("its workers died, or were stopped, too often"));
		return;
	}
	if (!j->action) { /* this node may simply not have the definition yet */
		struct next next = job_next_of(j, answer, HEARD_NOT_DONE);

		next.unsettled_since = j->unsettled_since; /* nobody was asked: that is as it was */
		go_next(j, answer, &next, slice_str("its action is in no definition that this node knows"));
		return;
	}

	if (j->doubt && job_policy_of(j) == UNKNOWN_HOLD) { /* mutant: delivered-in-doubt -> if (0) { */
		go_end(j, answer, JOB_PARKED, 0, slice_str("its worker died, and it may have been delivered"));
		return;
	}

	struct lease lease = lease_of(j);

	if (lease_is_trusted(&lease, answer->mono)) /* mutant: deliver-on-lapsed-lease -> if (1) */
		task_go(&j->task, JOB_AT_ACTING);
	else
		task_end(
			&j->task,
			HX_STORE_UNAVAILABLE); /* the claim took longer than it lasts: the janitor gives the job back */
}

static void job_take_acted(struct job_run *j, const struct answer *answer)
{
	struct next next;

	if (answer->outcome == ACT_CLAIM_LOST) {
		task_end(&j->task, HX_STALE_FENCE);
		return;
	}
	next = job_next_of(j, answer, heard_of(answer->outcome));
	go_next(j, answer, &next, answer->output);
}

static void take_ended(struct job_run *j, const struct answer *answer)
{
	if (answer->result->verdict == UNIT_LOST)
		task_end(&j->task, HX_STALE_FENCE);
	else if (answer->result->verdict != UNIT_WON)
		task_end(&j->task,
			 HX_OUTCOME_UNKNOWN); /* still RUNNING or ended: the janitor gives it back in the first case */
	else
		task_end(&j->task, j->to[0] == 'C' ? HX_OK : HX_ACTION_FAILED);
}

/*
 * May something that was sent under this key have been done? A redrive gives all attempts again, so the doubt is gone; what was sent
 * before it still stands in the row, and what is certain about a later try says nothing about that.
 */
static bool is_open(const struct job_run *j)
{
	return j->doubt || j->kept; /* mutant: sent-forgotten-later -> return j->doubt; */
}

static void build_end(const struct job_run *j, struct unit *unit)
{
	struct move move = {j->subject, JOB_RUNNING, j->to};
	bool retry = strcmp(j->to, JOB_RETRYING) == 0, done = strcmp(j->to, JOB_COMPLETED) == 0;
	struct job_ending ending = {
		.due_in_ms = retry ? j->due_in_ms : -1,
		.unsettled_since = j->unsettled_since,
		.answered = done || !is_open(j), /* mutant: sent-forgotten -> .answered = true, */
	};

	if (!done)
		ending.error = j->error.p ? j->error : slice_str("");
	if (retry)
		subject_release(unit, &j->stamp, &move, j->fence, j->doubt ? RELEASED_IN_DOUBT : RELEASED_OPEN);
	else
		subject_finish(unit, &j->stamp, &move, j->fence);
	if (j->bounds.slot.name) {
		slot_lock(unit, &j->bounds.slot);
		slot_release(unit, &j->bounds.slot, j->subject); /* mutant: delivery-keeps-its-slot -> ; */
	}
	job_end(unit, j->subject, &ending); /* mutant: delivery-without-end */
	if (retry)
		unit_wake(unit, JOB_TOPIC); /* whoever waits for the next due job has to reckon with this one */
}

TASK_UNIT(build_read, struct job_run, j, job_read(unit, j->subject));

static struct act_call job_call_of(const struct job_run *j)
{
	return (struct act_call){
		.action = j->action,
		.input = j->payload,
		.key = j->key,
		.attempt = j->attempt,
		.traceparent = j->trace,
		.in_doubt = is_open(j),
		.lease = lease_of(j),
		.tenant = j->tenant,
	};
}

static const TASK_STATES(struct job_run) job_states[] = {
	[JOB_AT_NEW] = {"new", .then = JOB_AT_READING},
	[JOB_AT_READING] = {"reading", job_take_read, build_read},
	[JOB_AT_CLAIMING] = {"claiming", take_claimed, build_claim},
	[JOB_AT_LINING_UP] = {"standing in line", job_take_lined_up, build_line_up},
	[JOB_AT_ACTING] = {"delivering", job_take_acted, .act = job_call_of},
	[JOB_AT_ENDING] = {"ending", take_ended, build_end},
	[JOB_AT_DONE] = {"done"},
};

/* A rest before the next try is spread by a fresh id. */
static void job_forget(void *copy)
{
	struct job_run *j = copy;

	j->due_in_ms = j->due_in_ms > 0 ? shape_rest(j->due_in_ms) : j->due_in_ms;
}

static const struct task_shape job_shape = SHAPE(struct job_run, job_forget,
	PART(IGNORED, struct job_run, in_line), /* for a metric */
	PART(TEXT, struct job_run, from, to),
	PART(SLICE, struct job_run, key, payload, error, trace),
	PART_WITH(INNER, struct job_run, bounds, &bounds_shape),
	PART_WITH(INNER, struct job_run, stamp, &stamp_noted_shape));

TASK_KIND_STAMPED(job_task_kind, "job", struct job_run, job_states, .shape = &job_shape);

void job_run_init(struct job_run *run, int64_t subject, const struct job_policy *policy, job_action_fn action_of,
		  const void *context, struct arena *arena)
{
	*run = (struct job_run){
		.subject = subject, .policy = policy, .action_of = action_of, .context = context, .arena = arena};
	task_init(&run->task, &job_task_kind, /* topic= */ 0);
}
