/* See run_kinds.h. */
#include "support/run_kinds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/id.h"
#include "flow/job_work.h"
#include "flow/run_verb.h"

#define ASKS 2048 /* that may be under way at once: what a unit borrows must outlive it */
#define HOUR_MS 3600000
#define WORKER "worker"
#define RUN_READ_LINES 3 /* more of them: the task wants to know more than that */
#define JOB_FENCE 1      /* of the first claim, and no fixture has another */

#define BESIDE 99999
#define CHILD_OP 2 /* the second unit of each fixture */

static const struct run_policy policy = {.lease_ms = HOUR_MS, .machine_of = kind_machine_of};

/* ---- what units borrow ---- */

struct run_ask {
	char workspace[24], key[24];
	struct run_verb_request verb;
	struct job_claim_request claim;
	struct job_settle_request settle;
	struct arena arena;
};

static struct run_ask *run_ask_of(const struct kind_args *args)
{
	static struct run_ask asks[ASKS];
	static size_t asks_n;
	struct run_ask *ask = &asks[asks_n++ % ASKS];

	arena_release(&ask->arena);
	*ask = (struct run_ask){0};
	arena_init(&ask->arena, 1u << 20);
	snprintf(ask->workspace, sizeof ask->workspace, "w%lld", (long long)args->subject);
	snprintf(ask->key, sizeof ask->key, "key%lld", (long long)args->stamp.op);
	return ask;
}

static struct slice odd_or_even(const struct kind_args *args)
{
	return slice_str(args->stamp.op % 2 ? "\"odd\"" : "\"even\"");
}

/* ---- asking the store what there is ---- */

static struct answer answer_of(const struct kind_args *args)
{
	bool beside = args->subject >= KIND_JOB_PUSHED;
	int64_t number = beside ? (args->subject - KIND_JOB_PUSHED) / 100000 : args->subject;

	return (struct answer){.now = args->stamp.at,
			       .id = args->stamp.op,
			       .more_ids = {kind_made(number, args->stamp.op)},
			       .node = args->stamp.node};
}

/* The same of the run beside it. */
static struct kind_args beside(const struct kind_args *args)
{
	struct kind_args other = *args;

	other.subject = kind_made(args->subject, BESIDE);
	other.read = NULL;
	return other;
}

static struct kind_args child_of(const struct kind_args *args)
{
	struct kind_args child = *args;

	child.subject = kind_made(args->subject, CHILD_OP);
	child.read = NULL;
	return child;
}

/* Was there one, before this? Builds with sanitizers assert of every row that is read what holds of all (subject_assert_valid). */
static bool has_past(const struct db_value *cells)
{
#ifdef HX_DEBUG
	return cells[RUN_VERSION].i > 1 && cells[RUN_FENCE].i > (cells[RUN_OWNER].type != DB_NULL);
#else
	(void)cells;
	return true;
#endif
}

/* Somebody has read this one move ago. */
static void make_stale(struct db_rows *rows, struct arena *arena)
{
	struct db_value *cells = arena_alloc(arena, rows->columns * sizeof *cells);

	assert_non_null(cells);
	if (!has_past(rows->cells))
		return;
	memcpy(cells, rows->cells, rows->columns * sizeof *cells);
	cells[RUN_VERSION].i--;
	cells[RUN_FENCE].i--;
	rows->cells = cells;
}

static const struct unit_result *execute(struct db *db, struct unit *unit, struct arena *arena)
{
	struct unit_result *result = arena_alloc(arena, sizeof *result);
	struct hx_error err = {0};

	assert_non_null(result);
	if (db->driver->begin(db, &err) || db->driver->execute(db, &unit, 1, result, arena, &err) ||
	    db->driver->commit(db, &err))
		fail_msg("%s", err.detail);
	return result;
}

static const struct unit_result *read_run(const struct kind_args *args, struct arena *arena)
{
	struct unit *unit;

	if (args->read)
		return args->read;
	unit = arena_alloc(arena, sizeof *unit);
	assert_non_null(unit);
	unit_init(unit, /* op= */ 0);
	run_read(unit, /* workspace= */ slice_of(NULL, 0), args->subject);
	return execute(args->db, unit, arena);
}

static bool read_row(const struct kind_args *args, struct arena *arena, struct run_row *ret_row)
{
	return run_row_take(read_run(args, arena), kind_machine_of, /* context= */ NULL, arena, ret_row) == HX_OK;
}

/* Gives the task what the unit reads that it asks for. */
static void read_for(struct task *task, const struct kind_args *args, struct arena *arena)
{
	struct unit *unit = arena_alloc(arena, sizeof *unit);
	struct answer answer = answer_of(args);
	struct ask ask = {.unit = unit};
	struct unit_result result;
	bool reads_run;

	assert_non_null(unit);
	task->kind->ask(task, &ask);
	reads_run = strcmp(unit->lines[0].stmt->name, "run_read") == 0;
	result = reads_run && unit->lines_n == RUN_READ_LINES ? *read_run(args, arena)
							      : *execute(args->db, unit, arena);
	if (args->stale && reads_run && result.rows[0].n)
		make_stale(&result.rows[0], arena);
	answer.kind = ANSWER_COMMIT;
	answer.result = &result;
	task->kind->take(task, &answer);
}

struct arena *kind_arena(const struct kind_args *args)
{
	return &run_ask_of(args)->arena;
}

struct slice kind_workspace(const struct kind_args *args)
{
	return slice_str(run_ask_of(args)->workspace);
}

const struct unit_result *kind_execute(const struct kind_args *args, struct unit *unit, struct arena *arena)
{
	return execute(args->db, unit, arena);
}

void kind_build_write(struct unit *unit, const struct kind_args *args, struct task *task, const char *named,
		      struct arena *arena)
{
	static struct id_source ids;
	struct answer answer = answer_of(args);

	id_source_init(&ids, 1);
	answer.ids = &ids;
	answer.kind = ANSWER_START;
	for (;;) {
		struct unit *asked = arena_alloc(arena, sizeof *asked);
		struct ask ask = {.unit = asked};

		assert_non_null(asked);
		task->kind->take(task, &answer);
		task->kind->ask(task, &ask);
		if (ask.kind != ASK_COMMIT)
			return;
		if (named ? strcmp(asked->lines[0].stmt->name, named) == 0 : asked->op != 0) {
			ask.unit = unit;
			task->kind->ask(task, &ask);
			return;
		}
		answer.kind = ANSWER_COMMIT;
		answer.result = execute(args->db, asked, arena);
	}
}

/* ---- creating ---- */

static void create_as(struct unit *unit, const struct kind_args *args, const char *workflow, int64_t id, bool own_key)
{
	struct run_ask *ask = run_ask_of(args);
	struct run_spec spec = {.subject = id,
				.workspace = slice_str(ask->workspace),
				.requester = slice_str("me"),
				.key = slice_str(own_key ? ask->key : "key"),
				.machine = kind_machine_of(/* context= */ NULL, slice_str(workflow), 1),
				.input = slice_str("{}")};

	run_create(unit, &args->stamp, &spec);
}

/* The first of its number. */
static void make(struct unit *unit, const struct kind_args *args, const char *workflow)
{
	struct run_ask *ask = run_ask_of(args);
	struct run_row row;

	if (!read_row(args, &ask->arena, &row))
		create_as(unit, args, workflow, args->subject, /* own_key= */ false);
}

void run_make_order(struct unit *unit, const struct kind_args *args)
{
	make(unit, args, "order");
}

void run_make_await(struct unit *unit, const struct kind_args *args)
{
	make(unit, args, "await");
}

void run_make_sign(struct unit *unit, const struct kind_args *args)
{
	make(unit, args, "sign");
}

void run_make_parcel(struct unit *unit, const struct kind_args *args)
{
	make(unit, args, "parcel");
}

void run_make_narrow(struct unit *unit, const struct kind_args *args)
{
	make(unit, args, "narrow");
}

void run_make_family(struct unit *unit, const struct kind_args *args)
{
	make(unit, args, "family");
}

void run_make_beside(struct unit *unit, const struct kind_args *args)
{
	create_as(unit, args, "narrow", kind_made(args->subject, BESIDE), /* own_key= */ true);
}

/* Where there is a run of that key, it is enough to meet its beginning. */
void run_create_key(struct unit *unit, const struct kind_args *args)
{
	struct run_ask *ask = run_ask_of(args);
	struct run_row row;

	if (!read_row(args, &ask->arena, &row) || row.version == 1)
		create_as(unit, args, "order", kind_made(args->subject, args->stamp.op), /* own_key= */ false);
}

/* It has nothing to do with a run that is there. */
void run_create_own(struct unit *unit, const struct kind_args *args)
{
	struct run_ask *ask = run_ask_of(args);
	struct run_row row;

	if (!read_row(args, &ask->arena, &row))
		create_as(unit, args, "order", kind_made(args->subject, args->stamp.op), /* own_key= */ true);
}

/* ---- driving ---- */

static void build_move(struct unit *unit, const struct run_drive *d)
{
	struct ask ask = {.unit = unit};

	if (d->task.at == DRIVE_MOVING)
		d->task.kind->ask(&d->task, &ask);
}

/* Up to what it writes. */
static void start_drive(struct run_drive *d, const struct kind_args *args, struct arena *arena)
{
	struct answer start = answer_of(args);

	run_drive_init(d, args->subject, &policy, arena);
	d->task.kind->take(&d->task, &start);
	while (d->task.at == DRIVE_READING || d->task.at == DRIVE_READING_EVENT || d->task.at == DRIVE_READING_CHILDREN)
		read_for(&d->task, args, arena);
}

void run_seize(struct unit *unit, const struct kind_args *args)
{
	struct run_ask *ask = run_ask_of(args);
	struct run_drive d;

	start_drive(&d, args, &ask->arena);
	build_move(unit, &d);
}

void run_seize_beside(struct unit *unit, const struct kind_args *args)
{
	struct kind_args other = beside(args);

	run_seize(unit, &other);
}

/* The line that found no slot free: that of the action, which lets go of the workflow's, too. */
static int full_line(const struct unit *unit)
{
	for (unsigned i = unit->lines_n; i > 0; i--)
		if (strcmp(unit->lines[i - 1].stmt->name, "slot_take") == 0)
			return (int)i - 1;
	return -1;
}

void run_wait_beside(struct unit *unit, const struct kind_args *args)
{
	struct kind_args other = beside(args);
	struct run_ask *ask = run_ask_of(&other);
	struct unit *move = arena_alloc(&ask->arena, sizeof *move);
	struct unit_result lost = {.verdict = UNIT_LOST};
	struct answer answer = answer_of(&other);
	struct ask asked = {.unit = unit};
	struct run_drive d;

	assert_non_null(move);
	unit_init(move, args->stamp.op);
	start_drive(&d, &other, &ask->arena);
	build_move(move, &d);
	lost.line = full_line(move);
	if (lost.line < 0)
		return;
	answer.kind = ANSWER_COMMIT;
	answer.result = &lost;
	d.task.kind->take(&d.task, &answer);
	assert_int_equal(d.task.at, DRIVE_LINING_UP);
	d.task.kind->ask(&d.task, &asked);
}

/* Where it is not owned, or finished, there is no such holder. */
static void hold_and_hear(struct unit *unit, const struct kind_args *args, enum act_outcome outcome)
{
	struct run_ask *ask = run_ask_of(args);
	struct run_drive d;
	struct run_row row;

	if (!read_row(args, &ask->arena, &row) || !row.owned)
		return;
	run_drive_init(&d, args->subject, &policy, &ask->arena);
	d.task.at = DRIVE_READING; /* as after a move that was lost: what it knows it has kept */
	d.holding = true;
	d.row.fence = row.fence - args->stale;
	d.knows = true;
	d.outcome = outcome;
	d.output = odd_or_even(args);
	read_for(&d.task, args, &ask->arena);
	build_move(unit, &d);
}

void run_done(struct unit *unit, const struct kind_args *args)
{
	hold_and_hear(unit, args, ACT_OK);
}

void run_not_done(struct unit *unit, const struct kind_args *args)
{
	hold_and_hear(unit, args, ACT_FAILED);
}

void run_not_done_for_good(struct unit *unit, const struct kind_args *args)
{
	hold_and_hear(unit, args, ACT_FAILED_FOR_GOOD);
}

void run_in_doubt(struct unit *unit, const struct kind_args *args)
{
	hold_and_hear(unit, args, ACT_UNKNOWN);
}

static void beat(struct unit *unit, const struct kind_args *args, int64_t lease_ms)
{
	struct run_ask *ask = run_ask_of(args);
	struct run_row row;

	if (read_row(args, &ask->arena, &row) && row.owned)
		subject_heartbeat(unit, args->subject, row.fence - args->stale, lease_ms);
}

void run_beat(struct unit *unit, const struct kind_args *args)
{
	beat(unit, args, HOUR_MS);
}

void run_lapse(struct unit *unit, const struct kind_args *args)
{
	beat(unit, args, -HOUR_MS);
}

static const struct db_stmt stmt_rest = {
	.name = "test_run_rest",
	.sql = "UPDATE hx_run SET due_at = hx_now_ms() + 3600000{from} WHERE subject = ?1",
	.in = "i",
	.out = "",
};

void run_rest_beside(struct unit *unit, const struct kind_args *args)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_rest, db_int(kind_made(args->subject, BESIDE)));
}

/* ---- verbs ---- */

static void build_verb(struct unit *unit, const struct kind_args *args, struct run_ask *ask)
{
	struct answer start = answer_of(args);
	struct ask asked = {.unit = unit};
	struct run_verb v;

	if (ask->verb.kind != RUN_OBEY) /* which is no caller's */
		ask->verb.workspace = slice_str(ask->workspace);
	ask->verb.subject = args->subject;
	ask->verb.policy = &policy;
	run_verb_init(&v, &ask->verb, &ask->arena);
	v.task.kind->take(&v.task, &start);
	read_for(&v.task, args, &ask->arena);
	if (v.task.at == VERB_WRITING)
		v.task.kind->ask(&v.task, &asked);
}

static void verb(struct unit *unit, const struct kind_args *args, enum run_verb_kind kind)
{
	struct run_ask *ask = run_ask_of(args);

	ask->verb.kind = kind;
	build_verb(unit, args, ask);
}

void run_cancel(struct unit *unit, const struct kind_args *args)
{
	verb(unit, args, RUN_CANCEL);
}

void run_cancel_at(struct unit *unit, const struct kind_args *args)
{
	struct run_ask *ask = run_ask_of(args);
	struct run_row row;

	if (!read_row(args, &ask->arena, &row) || !row.owned)
		return;
	ask->verb.kind = RUN_CANCEL;
	ask->verb.version = row.version - args->stale;
	build_verb(unit, args, ask);
}

void run_pause(struct unit *unit, const struct kind_args *args)
{
	verb(unit, args, RUN_PAUSE);
}

void run_resume(struct unit *unit, const struct kind_args *args)
{
	verb(unit, args, RUN_RESUME);
}

void run_retry(struct unit *unit, const struct kind_args *args)
{
	verb(unit, args, RUN_RETRY);
}

static void send(struct unit *unit, const struct kind_args *args, const char *id)
{
	struct run_ask *ask = run_ask_of(args);

	ask->verb.kind = RUN_EVENT;
	ask->verb.name = slice_str("payment");
	ask->verb.event_id = slice_str(id);
	ask->verb.data = odd_or_even(args);
	build_verb(unit, args, ask);
}

void run_event(struct unit *unit, const struct kind_args *args)
{
	send(unit, args, "one");
}

void run_event_own(struct unit *unit, const struct kind_args *args)
{
	send(unit, args, "");
}

void run_approve(struct unit *unit, const struct kind_args *args)
{
	struct run_ask *ask = run_ask_of(args);

	ask->verb.kind = RUN_APPROVE;
	ask->verb.name = slice_str("ok");
	ask->verb.data = slice_str(args->stamp.op % 2 ? "{\"decision\":\"approve\"}" : "{\"decision\":\"reject\"}");
	build_verb(unit, args, ask);
}

static void resolve(struct unit *unit, const struct kind_args *args, bool done)
{
	struct run_ask *ask = run_ask_of(args);
	struct run_row row;

	if (!read_row(args, &ask->arena, &row) || row.expired || row.position == row.machine->definition->steps_n)
		return;
	ask->verb.kind = RUN_RESOLVE;
	ask->verb.name = slice_str(row.machine->definition->steps[row.undo < 0 ? row.position : (size_t)row.undo].name);
	ask->verb.done = done;
	ask->verb.data = odd_or_even(args);
	build_verb(unit, args, ask);
}

void run_resolve_done(struct unit *unit, const struct kind_args *args)
{
	resolve(unit, args, /* done= */ true);
}

void run_resolve_not_done(struct unit *unit, const struct kind_args *args)
{
	resolve(unit, args, /* done= */ false);
}

void run_expire_old(struct unit *unit, const struct kind_args *args)
{
	struct run_ask *ask = run_ask_of(args);
	struct run_row row;

	if (read_row(args, &ask->arena, &row) && run_is_terminal(row.status))
		run_expire(unit, args->subject, HOUR_MS);
}

/* From its first step on. */
void run_restart_first(struct unit *unit, const struct kind_args *args)
{
	struct run_ask *ask = run_ask_of(args);
	struct run_row row;

	if (!read_row(args, &ask->arena, &row) || row.expired)
		return;
	ask->verb.kind = RUN_RESTART;
	ask->verb.name = slice_str(row.machine->definition->steps[0].name);
	ask->verb.requester = slice_str("me");
	build_verb(unit, args, ask);
}

void run_migrate_next(struct unit *unit, const struct kind_args *args)
{
	struct run_ask *ask = run_ask_of(args);

	ask->verb.kind = RUN_MIGRATE;
	ask->verb.definition_version = 2;
	ask->verb.requester = slice_str("me");
	build_verb(unit, args, ask);
}

/* ---- its child ---- */

void run_child_take(struct unit *unit, const struct kind_args *args)
{
	struct kind_args child = child_of(args);

	run_seize(unit, &child);
}

void run_child_done(struct unit *unit, const struct kind_args *args)
{
	struct kind_args child = child_of(args);

	run_done(unit, &child);
}

void run_child_fails(struct unit *unit, const struct kind_args *args)
{
	struct kind_args child = child_of(args);

	run_not_done_for_good(unit, &child);
}

void run_child_obeys(struct unit *unit, const struct kind_args *args)
{
	struct kind_args child = child_of(args);

	verb(unit, &child, RUN_OBEY);
}

/* ---- its job ---- */

void run_job_claim(struct unit *unit, const struct kind_args *args)
{
	struct run_ask *ask = run_ask_of(args);
	struct answer start = answer_of(args);
	struct ask asked = {.unit = unit};
	struct job_claim claim;
	struct run_row row;

	if (!read_row(args, &ask->arena, &row) || !row.job)
		return;
	ask->claim = (struct job_claim_request){.workspace = slice_str(ask->workspace),
						.owner = slice_str(WORKER),
						.queues_n = 1,
						.queues = {slice_str("pack")},
						.max = 1,
						.lease_ms = args->lease_ms};
	job_claim_init(&claim, &ask->claim, &ask->arena);
	claim.task.kind->take(&claim.task, &start);
	claim.task.kind->ask(&claim.task, &asked);
}

static const struct db_stmt stmt_take = {
	.name = "test_job_take",
	.sql = "UPDATE hx_job SET due_at = NULL, attempt = attempt + 1{from} WHERE subject = ?1",
	.in = "i",
	.out = "",
};

void run_job_take(struct unit *unit, const struct kind_args *args)
{
	struct run_ask *ask = run_ask_of(args);
	struct stamp stamp = {args->stamp.op, args->stamp.at, WORKER};
	struct run_row row;

	if (!read_row(args, &ask->arena, &row) || !row.job || !row.job_version)
		return;
	subject_claim(unit, &stamp, &(struct move){row.job, JOB_AVAILABLE, JOB_RUNNING}, row.job_version,
		      args->lease_ms);
	UNIT_ADD(unit, UNIT_ANY, &stmt_take, db_int(row.job));
}

/* Of the job that the run awaits, by the worker that has claimed it first. */
static void settle(struct unit *unit, const struct kind_args *args, enum job_settle_kind kind, bool retryable)
{
	struct run_ask *ask = run_ask_of(args);
	struct answer start = answer_of(args);
	struct ask asked = {.unit = unit};
	struct job_settle s;
	struct run_row row;

	if (!read_row(args, &ask->arena, &row) || !row.job)
		return;
	ask->settle = (struct job_settle_request){.kind = kind,
						  .workspace = slice_str(ask->workspace),
						  .subject = row.job,
						  .fence = JOB_FENCE,
						  .owner = slice_str(WORKER),
						  .output = odd_or_even(args),
						  .retryable = retryable};
	job_settle_init(&s, &ask->settle, &ask->arena);
	s.task.kind->take(&s.task, &start);
	while (s.task.at == SETTLE_TRYING || s.task.at == SETTLE_READING)
		read_for(&s.task, args, &ask->arena); /* the try loses: it is not for jobs of runs */
	if (s.task.at == SETTLE_SETTLING)
		s.task.kind->ask(&s.task, &asked);
}

void run_job_complete(struct unit *unit, const struct kind_args *args)
{
	settle(unit, args, JOB_COMPLETE, /* retryable= */ false);
}

void run_job_fail(struct unit *unit, const struct kind_args *args)
{
	settle(unit, args, JOB_FAIL, /* retryable= */ true);
}

void run_job_fail_for_good(struct unit *unit, const struct kind_args *args)
{
	settle(unit, args, JOB_FAIL, /* retryable= */ false);
}

void run_job_lapse(struct unit *unit, const struct kind_args *args)
{
	settle(unit, args, JOB_LAPSE, /* retryable= */ false);
}
