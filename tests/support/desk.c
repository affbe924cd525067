/* See desk.h. */
#include "support/desk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "model/run_definition.h"
#include "support/audit.h"

#define WORKSPACE "default"

void desk_init(struct desk *d, const char *name, struct db *db, struct clock *clock, uint32_t node)
{
	*d = (struct desk){.name = name, .db = db, .clock = clock};
	id_source_init(&d->ids, node);
	arena_init(&d->arena, 64u << 20);
	arena_init(&d->rows, 64u << 20);
}

void desk_release(struct desk *d)
{
	db_close(d->db);
	arena_release(&d->arena);
	arena_release(&d->rows);
}

void desk_give(struct desk *d, struct task *task, struct answer *answer)
{
	answer->now = clock_wall(d->clock);
	answer->mono = clock_mono(d->clock);
	answer->id = id_next(&d->ids, answer->now);
	for (int i = 0; i < ANSWER_IDS_MAX; i++)
		answer->more_ids[i] = id_next(&d->ids, answer->now);
	answer->ids = &d->ids;
	answer->node = "here";
	assert_true(task_take(task, task->turn, answer));
}

enum hx_code desk_drive(struct desk *d, struct task *task)
{
	struct ask ask = {.unit = &d->unit};

	d->sleeps_until.ns = 0;
	desk_give(d, task, &(struct answer){.kind = ANSWER_START});
	for (;;) {
		task->kind->ask(task, &ask);
		if (ask.kind == ASK_DONE)
			return ask.code;
		if (ask.kind == ASK_SLEEP) {
			d->sleeps_until = ask.until;
			return HX_BUSY;
		}
		(void)desk_run(d); /* whatever the verdict: the task hears it */
		desk_give(d, task, &(struct answer){.kind = ANSWER_COMMIT, .result = &d->result});
	}
}

struct stamp desk_begin(struct desk *d)
{
	struct stamp stamp = {.at = clock_wall(d->clock), .node = "here"};

	stamp.op = id_next(&d->ids, stamp.at);
	unit_init(&d->unit, stamp.op);
	return stamp;
}

enum unit_verdict desk_run(struct desk *d)
{
	arena_reset(&d->rows);
	if (db_run_unit(d->db, &d->unit, &d->result, &d->rows, &d->err) != HX_OK)
		fail_msg("%s: %s", d->name, d->err.detail);
	return d->result.verdict;
}

int64_t desk_push(struct desk *d, const char *queue, int64_t priority, int64_t due_at_ms)
{
	struct job_push_item item = {.queue = slice_str(queue),
				     .payload = slice_str("{\"n\":1}"),
				     .priority = priority,
				     .due_at_ms = due_at_ms};
	struct job_push push;

	arena_reset(&d->arena);
	job_push_init(&push, slice_str(WORKSPACE), &item, 1, &d->arena);
	assert_int_equal(desk_drive(d, &push.task), HX_OK);
	assert_true(item.created);
	return item.subject;
}

int64_t desk_push_bounded(struct desk *d, const char *queue, int64_t in_flight_max)
{
	static const struct run_retry retry = {
		.max_attempts = 3, .initial_ms = 1000, .max_ms = 60000, .factor_thousandths = 2000};
	struct stamp stamp = desk_begin(d);
	struct job_of_run job = {
		.spec = {.subject = id_next(&d->ids, stamp.at),
			 .workspace = slice_str(WORKSPACE),
			 .queue = queue,
			 .workflow = "order",
			 .action = "reserve",
			 .effect_key = slice_str("run/reserve/0"),
			 .payload = slice_str("{}")},
		.run = 7,
		.retry = &retry,
		.in_flight_max = in_flight_max,
	};

	job_insert_of_run(&d->unit, &stamp, &job);
	assert_int_equal(desk_run(d), UNIT_WON);
	return job.spec.subject;
}

size_t desk_claim(struct desk *d, const char *queue, int64_t max, int64_t lease_ms)
{
	struct job_claim_request rq = {.workspace = slice_str(WORKSPACE),
				       .owner = slice_str(d->name),
				       .queues_n = 1,
				       .queues = {slice_str(queue)},
				       .limits = {d->limits},
				       .max = max,
				       .lease_ms = lease_ms};
	struct job_claim claim;

	arena_reset(&d->arena);
	job_claim_init(&claim, &rq, &d->arena);
	assert_int_equal(desk_drive(d, &claim.task), HX_OK);
	d->n = claim.n;
	d->jobs = claim.jobs;
	return claim.n;
}

enum hx_code desk_settle(struct desk *d, enum job_settle_kind kind, int64_t subject, int64_t fence)
{
	struct job_settle_request rq = {.kind = kind,
					.workspace = slice_str(WORKSPACE),
					.subject = subject,
					.fence = fence,
					.owner = slice_str(d->name),
					.lease_ms = 60000,
					.output = slice_str(kind == JOB_COMPLETE ? "{\"ok\":true}" : "no luck"),
					.retryable = true};
	struct job_settle settle;
	enum hx_code code;

	job_settle_init(&settle, &rq, &d->arena);
	code = desk_drive(d, &settle.task);
	d->status = settle.status;
	d->until_ms = settle.until_ms;
	return code;
}

/* J1 of flow/job.h. */
static void assert_times(const struct db_rows *rows)
{
	struct slice status = db_cell(rows, 0, JOB_STATUS)->s;

	assert_int_equal(db_cell(rows, 0, JOB_DUE_AT)->type != DB_NULL,
			 slice_is(status, JOB_AVAILABLE) || slice_is(status, JOB_RETRYING));
	assert_int_equal(db_cell(rows, 0, JOB_ENDED_AT)->type != DB_NULL,
			 slice_is(status, JOB_COMPLETED) || slice_is(status, JOB_PARKED));
}

const char *desk_see(struct desk *d, int64_t subject)
{
	static char text[1024];
	const struct db_rows *rows = &d->result.rows[0];
	const struct db_value *error, *output;

	(void)desk_begin(d);
	job_read(&d->unit, subject);
	(void)desk_run(d);
	if (rows->n == 0)
		return "none";
	error = db_cell(rows, 0, JOB_ERROR);
	output = db_cell(rows, 0, JOB_OUTPUT);
	snprintf(text, sizeof text, "%.*s attempt %lld%s%s%s%.*s%s%.*s", SLICE_ARGS(db_cell(rows, 0, JOB_STATUS)->s),
		 (long long)db_cell(rows, 0, JOB_ATTEMPT)->i, db_cell(rows, 0, JOB_DUE_AT)->type ? ", due" : "",
		 db_cell(rows, 0, JOB_DOUBT)->i ? ", doubt" : "", error->type ? ": " : "",
		 error->type ? (int)error->s.n : 0, error->type ? error->s.p : "", output->type ? " = " : "",
		 output->type ? (int)output->s.n : 0, output->type ? output->s.p : "");
	assert_times(rows);
	return text;
}

void desk_audit(struct desk *d, int64_t subject)
{
	struct audit audit = {.db = d->db, .claimed = JOB_RUNNING};

	arena_init(&audit.arena, AUDIT_BYTES_MAX);
	if (audit_subject(&audit, subject, &d->err) < 0)
		fail_msg("%s", d->err.detail);
	arena_release(&audit.arena);
}
