/* Who may claim a job, settle it, redrive it or let it go: every guard of these units. See guards.h. */
#include "unit/flow/guards.h"

#include "flow/job_work.h"

#define FENCE 7
#define AGE_MS 1000

/* The job 1, or 2, of the queue q; columns beyond those of every job, and their values. */
#define JOB(id, status, owner, until, columns, values)                                                                 \
	"INSERT INTO hx_subject (id, kind, status, version, op, fence, owner, until, updated_at, seq, head)"           \
	" VALUES (" id ", 3, '" status "', 4, 0, 7, " owner ", " until ", 1000000, 3, x'00');"                         \
	"INSERT INTO hx_job (subject, workspace, queue, workflow, action, effect_key, payload" columns ") VALUES (" id \
	", 'default', 'q', '', '', 'k', '{}'" values "); "
#define DUE(id, columns, values) JOB(id, "AVAILABLE", "NULL", "NULL", ", due_at" columns, ", 1000000" values)
#define AT_WORK(id, columns, values) JOB(id, "RUNNING", "'me'", "1000500", columns, values)
#define PARKED JOB("1", "PARKED", "NULL", "NULL", ", ended_at, error", ", 999000, 'no'")
#define COMPLETED JOB("1", "COMPLETED", "NULL", "NULL", ", ended_at, run", ", 999000, 9") RUN
#define RUN                                                                                                            \
	"INSERT INTO hx_run (subject, workspace, workflow, definition_version, requester, input, job, created_at,"     \
	" completed_at) VALUES (9, 'default', 'order', 1, 'me', '{}', 1, 1, 1)"
#define BUT(assignment) "UPDATE hx_subject SET " assignment
#define BUT_JOB(assignment) "UPDATE hx_job SET " assignment

/* What the task asks for first. */
static void build(struct unit *unit, const struct stamp *stamp, struct task *task)
{
	struct answer answer = {.kind = ANSWER_START, .now = stamp->at, .id = stamp->op, .node = stamp->node};
	struct ask ask = {.unit = unit};

	task->kind->take(task, &answer);
	task->kind->ask(task, &ask);
}

/* What a request or its unit borrows, until the next one is built. */
static struct arena *texts(void)
{
	static struct arena arena;

	arena_release(&arena);
	arena_init(&arena, 1u << 20);
	return &arena;
}

static void claim(struct unit *unit, const struct stamp *stamp)
{
	static struct job_claim_request rq;
	struct job_claim task;

	rq = (struct job_claim_request){.workspace = slice_str("default"),
					.owner = slice_str("me"),
					.queues_n = 2,
					.queues = {slice_str("q"), slice_str(JOB_QUEUE_AFTER_EFFECTS)},
					.max = 10,
					.lease_ms = LEASE_MS};
	job_claim_init(&task, &rq, texts());
	build(unit, stamp, &task.task);
}

static void settle(struct unit *unit, const struct stamp *stamp, enum job_settle_kind kind)
{
	static struct job_settle_request rq;
	struct job_settle task;

	rq = (struct job_settle_request){.kind = kind,
					 .workspace = slice_str("default"),
					 .subject = 1,
					 .owner = slice_str("me"),
					 .fence = FENCE,
					 .lease_ms = LEASE_MS,
					 .output = slice_str("null")};
	job_settle_init(&task, &rq, texts());
	build(unit, stamp, &task.task);
}

static void beat(struct unit *unit, const struct stamp *stamp)
{
	settle(unit, stamp, JOB_HEARTBEAT);
}

static void complete(struct unit *unit, const struct stamp *stamp)
{
	settle(unit, stamp, JOB_COMPLETE);
}

static void redrive(struct unit *unit, const struct stamp *stamp)
{
	job_redrive(unit, stamp, slice_str("default"), 1);
}

static void expire(struct unit *unit, const struct stamp *stamp)
{
	(void)stamp;
	job_expire(unit, 1, AGE_MS);
}

#define MORE_THAN_ONE "SELECT count(*) FROM hx_subject WHERE status = 'RUNNING' HAVING count(*) > 1"

/* clang-format off */
static const struct guard guards[] = {
	{"claim-workspace", DUE("1", "", ""), BUT_JOB("workspace = 'another'"), claim, NULL},
	{"claim-waiting", DUE("1", "", ""), AT_WORK("2", "", ""), claim, "SELECT 1 FROM hx_subject WHERE status = 'AVAILABLE'"},
	{"claim-after-effect", DUE("1", "", ""), BUT_JOB("queue = 'after-effects'"), claim, NULL},
	{"claim-due", DUE("1", "", ""), DUE("2", "", "") BUT_JOB("due_at = 1000001 WHERE subject = 2"), claim, MORE_THAN_ONE},
	{"claim-in-flight", DUE("1", ", in_flight_max", ", 1"), AT_WORK("2", ", in_flight_max", ", 1"), claim, NULL},
	{"claim-one-grade", DUE("1", ", in_flight_max", ", 1"), DUE("2", ", in_flight_max, priority", ", 1, 5"), claim, MORE_THAN_ONE},
	{"claim-room", DUE("1", ", in_flight_max", ", 1"), DUE("2", ", in_flight_max", ", 1"), claim, MORE_THAN_ONE},
	{"beat-status", AT_WORK("1", "", ""), BUT("status = 'COMPLETED'"), beat, NULL},
	{"beat-fence", AT_WORK("1", "", ""), BUT("fence = 8"), beat, NULL},
	{"settle-owner", AT_WORK("1", "", ""), BUT("owner = 'another'"), complete, NULL},
	{"settle-after-effect", AT_WORK("1", "", ""), BUT_JOB("queue = 'after-effects'"), complete, NULL},
	{"settle-workspace", AT_WORK("1", "", ""), BUT_JOB("workspace = 'another'"), complete, NULL},
	{"complete-fence", AT_WORK("1", "", ""), BUT("fence = 8"), complete, NULL},
	{"complete-status", AT_WORK("1", "", ""), BUT("status = 'PARKED'"), complete, NULL},
	{"complete-of-run", AT_WORK("1", "", ""), BUT_JOB("run = 9"), complete, NULL},
	{"complete-bounded", AT_WORK("1", "", ""), BUT_JOB("in_flight_max = 1"), complete, NULL},
	{"redrive-workspace", PARKED, BUT_JOB("workspace = 'another'"), redrive, "SELECT 1 FROM hx_subject WHERE status <> 'PARKED'"},
	{"redrive-of-run", PARKED, BUT_JOB("run = 9"), redrive, NULL},
	{"redrive-parked", PARKED, BUT("status = 'COMPLETED'"), redrive, NULL},
	{"expire-age", COMPLETED, BUT_JOB("ended_at = 999001"), expire, NULL},
	{"expire-parked", COMPLETED, BUT_JOB("error = 'no', run = NULL"), expire, NULL},
	{"expire-needed", COMPLETED, "UPDATE hx_run SET completed_at = NULL", expire, NULL},
};
/* clang-format on */

int main(int argc, char **argv)
{
	return guards_main(guards, sizeof guards / sizeof *guards, argc, argv);
}
