/* See job_kinds.h. */
#include "support/job_kinds.h"

#include <stdio.h>

#include "base/id.h"
#include "flow/account.h"
#include "flow/job_work.h"

/* ---- jobs ---- */

#define HOUR_MS 3600000
#define JOB_ASKS 2048 /* that may be under way at once */

/* What the units of one kind borrow, and the arena of their tasks. */
struct job_ask {
	char queue[KIND_JOB_QUEUE_BYTES], owner[16];
	struct job_push_item item;
	struct job_claim_request claim;
	struct job_settle_request settle;
	struct arena arena;
};

void kind_job_queue(int64_t number, char ret_queue[KIND_JOB_QUEUE_BYTES])
{
	snprintf(ret_queue, KIND_JOB_QUEUE_BYTES, "q%lld", (long long)number);
}

static struct job_ask *job_ask_of(const struct kind_args *args)
{
	static struct job_ask asks[JOB_ASKS];
	static size_t asks_n;
	struct job_ask *ask = &asks[asks_n++ % JOB_ASKS];

	arena_release(&ask->arena);
	*ask = (struct job_ask){0};
	arena_init(&ask->arena, 1u << 20);
	kind_job_queue(args->subject, ask->queue);
	snprintf(ask->owner, sizeof ask->owner, "worker%lld", (long long)args->stamp.op);
	return ask;
}

/* The first unit that the task asks for; its next fresh id is `id`. */
static void build_task(struct unit *unit, const struct kind_args *args, struct task *task, int64_t id)
{
	struct id_source ids = {.last = ((id >> 22 << 12) | (id & 4095)) - 1,
				.node = (uint32_t)(id >> 12) & ID_NODE_MAX};
	struct answer answer = {.kind = ANSWER_START,
				.now = args->stamp.at,
				.id = args->stamp.op,
				.node = args->stamp.node,
				.ids = &ids};
	struct ask ask = {.unit = unit};

	task->kind->take(task, &answer);
	task->kind->ask(task, &ask);
}

static void push_as(struct unit *unit, const struct kind_args *args, int64_t id)
{
	struct job_ask *ask = job_ask_of(args);
	struct job_push push;

	ask->item = (struct job_push_item){
		.queue = slice_str(ask->queue), .payload = slice_str("{}"), .key = slice_str("key")};
	job_push_init(&push, slice_str("default"), &ask->item, 1, &ask->arena);
	build_task(unit, args, &push.task, id);
}

void job_make(struct unit *unit, const struct kind_args *args)
{
	push_as(unit, args, args->subject);
}

/* Of the key that the fixture's job has, if there is one. */
void job_push_key(struct unit *unit, const struct kind_args *args)
{
	push_as(unit, args, kind_made(args->subject, args->stamp.op));
}

static void claim_for(struct unit *unit, const struct kind_args *args, int64_t lease_ms)
{
	struct job_ask *ask = job_ask_of(args);
	struct job_claim claim;

	ask->claim = (struct job_claim_request){.workspace = slice_str("default"),
						.owner = slice_str(ask->owner),
						.queues_n = 1,
						.queues = {slice_str(ask->queue)},
						.max = 10,
						.lease_ms = lease_ms};
	job_claim_init(&claim, &ask->claim, &ask->arena);
	build_task(unit, args, &claim.task, /* id= */ 1);
}

void job_claim_due(struct unit *unit, const struct kind_args *args)
{
	claim_for(unit, args, args->lease_ms);
}

void job_claim_live(struct unit *unit, const struct kind_args *args)
{
	claim_for(unit, args, HOUR_MS);
}

/* The first unit of a settling by the worker that claimed with this fence, in whatever fixture. */
static void try_settle(struct unit *unit, const struct kind_args *args, enum job_settle_kind kind, bool retryable,
		       struct job_settle *ret_settle)
{
	struct job_ask *ask = job_ask_of(args);

	snprintf(ask->owner, sizeof ask->owner, "worker%lld", (long long)(2 * args->fence));
	ask->settle = (struct job_settle_request){.kind = kind,
						  .subject = args->subject,
						  .fence = args->fence,
						  .owner = slice_str(ask->owner),
						  .lease_ms = args->lease_ms,
						  .output = slice_str(args->stamp.op % 2 ? "\"odd\"" : "\"even\""),
						  .retryable = retryable};
	job_settle_init(ret_settle, &ask->settle, &ask->arena);
	build_task(unit, args, &ret_settle->task, /* id= */ 1);
}

static void take_result(struct task *task, const struct kind_args *args, const struct unit_result *result)
{
	task->kind->take(task, &(struct answer){.kind = ANSWER_COMMIT,
						.now = args->stamp.at,
						.id = args->stamp.op,
						.node = args->stamp.node,
						.result = result});
}

/* What the task writes after it has read what its caller believes. */
static void settle(struct unit *unit, const struct kind_args *args, enum job_settle_kind kind, bool retryable)
{
	static const struct unit_result lost = {.verdict = UNIT_LOST};
	struct job_settle s;
	struct ask asked = {.unit = unit};

	try_settle(unit, args, kind, retryable, &s);
	if (s.task.at == SETTLE_TRYING)
		take_result(&s.task, args, &lost);

	const struct db_value row[] = {db_str(JOB_RUNNING),
				       db_int(args->fence),
				       db_text(s.rq->owner),
				       db_str("default"),
				       db_str("q"),
				       db_int(1),
				       db_null(),
				       db_int(1),
				       db_int(8),
				       db_int(HOUR_MS),
				       db_int(HOUR_MS),
				       db_int(1000),
				       db_int(/* jitter= */ 0),
				       db_int(/* in_flight_max= */ 0),
				       db_null(), /* it holds no slot */
				       db_null()};
	struct unit_result read = {.verdict = UNIT_WON, .rows = {{1, sizeof row / sizeof *row, row}}};

	take_result(&s.task, args, &read);
	s.task.kind->ask(&s.task, &asked);
}

void job_complete_plain(struct unit *unit, const struct kind_args *args)
{
	struct job_settle s;

	try_settle(unit, args, JOB_COMPLETE, /* retryable= */ false, &s);
}

void job_beat(struct unit *unit, const struct kind_args *args)
{
	settle(unit, args, JOB_HEARTBEAT, /* retryable= */ false);
}

void job_complete(struct unit *unit, const struct kind_args *args)
{
	settle(unit, args, JOB_COMPLETE, /* retryable= */ false);
}

void job_fail(struct unit *unit, const struct kind_args *args)
{
	settle(unit, args, JOB_FAIL, /* retryable= */ true);
}

void job_fail_for_good(struct unit *unit, const struct kind_args *args)
{
	settle(unit, args, JOB_FAIL, /* retryable= */ false);
}

void job_lapse(struct unit *unit, const struct kind_args *args)
{
	settle(unit, args, JOB_LAPSE, /* retryable= */ false);
}

void job_withdraw_waiting(struct unit *unit, const struct kind_args *args)
{
	job_withdraw(unit, &args->stamp, args->subject, args->version, JOB_AVAILABLE, "not wanted any more");
}

void job_withdraw_running(struct unit *unit, const struct kind_args *args)
{
	job_withdraw(unit, &args->stamp, args->subject, args->version, JOB_RUNNING, "not wanted any more");
}

void job_redrive_parked(struct unit *unit, const struct kind_args *args)
{
	job_redrive(unit, &args->stamp, slice_str("default"), args->subject);
}

void job_expire_done(struct unit *unit, const struct kind_args *args)
{
	job_expire(unit, args->subject, /* age_ms= */ -HOUR_MS);
}

/* ---- accounts ---- */

/* The name that the unit borrows. */
static struct slice account_name(const struct kind_args *args)
{
	struct job_ask *ask = job_ask_of(args);

	snprintf(ask->owner, sizeof ask->owner, "a%lld", (long long)args->subject);
	return slice_str(ask->owner);
}

void account_make(struct unit *unit, const struct kind_args *args)
{
	account_create(unit, &args->stamp, slice_str("default"), account_name(args), args->subject, 1000);
}

/* Of the name that the fixture's account has, if there is one. */
void account_make_other(struct unit *unit, const struct kind_args *args)
{
	account_create(unit, &args->stamp, slice_str("default"), account_name(args),
		       kind_made(args->subject, args->stamp.op), args->stamp.op);
}

void account_credit_key(struct unit *unit, const struct kind_args *args)
{
	account_add_credit(unit, &args->stamp, args->subject, args->stamp.op, slice_str("key"));
}

/* With a key that no other has. */
void account_credit_own(struct unit *unit, const struct kind_args *args)
{
	struct job_ask *ask = job_ask_of(args);

	account_add_credit(unit, &args->stamp, args->subject, args->stamp.op, slice_str(ask->owner));
}

void account_look(struct unit *unit, const struct kind_args *args)
{
	account_read_entry(unit, slice_str("default"), account_name(args), slice_str("key"));
}
