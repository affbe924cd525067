/*
 * jobs URL WORKFLOWS JOBS deliver|claim : jobs of one step drained in process. Prints how many were COMPLETED in a second.
 *
 *   deliver   after-effects of a native action that are due when the engine starts: its dispatcher finds, claims,
 *             carries out and completes each
 *   claim     jobs of a queue: SLOTS workers claim CLAIM_MAX of them at a time and complete each, by the tasks that the API
 *             has for that, without HTTP
 *
 * The jobs are in the store before the clock starts. It stops when the last is COMPLETED, which includes the engine's start
 * with deliver.
 */
#include <semaphore.h>
#include <string.h>

#include "base/id.h"
#include "bench_engine.h"
#include "db/migrate.h"
#include "flow/job_work.h"
#include "workload.h"

#define QUEUE "bench"
#define SLOTS 4
#define CLAIM_MAX JOB_CLAIM_MAX
#define ARENA_BYTES (32u << 20)

static void rest_1ms(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* ---- after-effects ---- */

/* A subject that is done, and the job that its last transition left behind. */
static void add_effect(struct unit *unit, int64_t id)
{
	struct stamp stamp = {id, {workload_wall_ms()}, workload_node};
	struct job_spec spec = {
		.subject = id + 1,
		.workspace = slice_str("default"),
		.queue = JOB_QUEUE_AFTER_EFFECTS,
		.workflow = "parcel",
		.action = "mail",
		.effect_key = slice_str("parcel/mail"),
		.payload = slice_str("{\"workflow\":\"parcel\",\"id\":\"p-1\",\"from\":\"open\",\"to\":\"done\"}"),
	};

	unit_init(unit, id);
	subject_insert(unit, &stamp, id, /* kind= */ 1, workload_status[0]);
	job_insert(unit, &stamp, &spec);
}

static void insert_effects(const char *url, size_t jobs)
{
	static struct unit units[GROUP_UNITS_MAX];
	static struct unit_result results[GROUP_UNITS_MAX];
	struct db_options options = {.url = url, .clock = clock_system(), .exclusive = true};
	struct unit *all[GROUP_UNITS_MAX];
	struct migrate_status before;
	struct hx_error err;
	struct arena arena;
	struct db *db;

	arena_init(&arena, ARENA_BYTES);
	if (db_open(&options, &db, &err) || migrate_run(db, &before, &err))
		bench_die("set up", &err);
	for (size_t i = 0, n; i < jobs; i += n) {
		for (n = 0; n < GROUP_UNITS_MAX && i + n < jobs; n++) {
			add_effect(&units[n], FIRST_SUBJECT + 2 * (int64_t)(i + n));
			all[n] = &units[n];
		}
		if (db->driver->begin(db, &err) || db->driver->execute(db, all, n, results, &arena, &err) ||
		    db->driver->commit(db, &err))
			bench_die("insert", &err);
		arena_reset(&arena);
	}
	arena_release(&arena);
	db_close(db);
}

static double deliver(const char *url, const char *workflows, size_t jobs, struct engine **ret_engine)
{
	double begin;

	insert_effects(url, jobs);
	begin = workload_seconds();
	*ret_engine = bench_engine_new(url, workflows, workload_node);
	while (atomic_load(&engine_parts(*ret_engine)->metrics->jobs_delivered) < jobs) {
		if (atomic_load(&engine_parts(*ret_engine)->metrics->jobs_failed))
			bench_die("deliver", &(struct hx_error){.detail = "a job failed"});
		rest_1ms();
	}
	return workload_seconds() - begin;
}

/* ---- a queue ---- */

struct work {
	struct seat seat;
	struct job_settle settle;
	struct job_settle_request rq;
	struct arena arena;
	struct worker *slot;
};

/* A worker: one claim, or the jobs of it that are being completed. */
struct worker {
	struct seat seat;
	struct job_claim claim;
	struct job_claim_request rq;
	struct arena arena;
	_Atomic size_t left;
	struct work works[CLAIM_MAX];
};

static struct engine *engine;
static struct worker slots[SLOTS];
static _Atomic size_t completed, wanted;
static sem_t all_completed;

static void submit(uint64_t hash, struct seat *seat)
{
	struct hx_error err = {.detail = "a task was not taken in"};

	if (engine_submit(engine, hash, seat))
		bench_die("submit", &err);
}

static void claim(struct worker *slot);

/* In a lane's thread. */
static void settled(struct seat *seat, enum hx_code code)
{
	struct worker *slot = ((struct work *)seat)->slot;

	arena_release(&((struct work *)seat)->arena);
	if (code)
		bench_die("complete", &(struct hx_error){.detail = "a job was not completed"});
	if (atomic_fetch_add(&completed, 1) + 1 == atomic_load(&wanted))
		sem_post(&all_completed);
	if (atomic_fetch_sub(&slot->left, 1) == 1)
		claim(slot);
}

static void complete(struct worker *slot, size_t i)
{
	const struct job_claimed *job = &slot->claim.jobs[i];
	struct work *work = &slot->works[i];

	arena_init(&work->arena, ARENA_BYTES);
	work->slot = slot;
	work->rq = (struct job_settle_request){
		.kind = JOB_COMPLETE,
		.workspace = slot->rq.workspace,
		.subject = job->subject,
		.fence = job->fence,
		.owner = slot->rq.owner,
		.output = slice_str("null"),
	};
	job_settle_init(&work->settle, &work->rq, &work->arena);
	work->seat = (struct seat){.task = &work->settle.task, .done = settled};
	submit((uint64_t)job->subject, &work->seat);
}

static void claimed(struct seat *seat, enum hx_code code)
{
	struct worker *slot = (struct worker *)seat;
	size_t n = slot->claim.n;

	if (code)
		bench_die("claim", &(struct hx_error){.detail = "no jobs were claimed"});
	if (n == 0)
		return; /* the queue is empty, but for what the others have */
	atomic_store(&slot->left, n);
	/* The last of them may end, and the slot claim again, before this loop does. */
	for (size_t i = 0; i < n; i++)
		complete(slot, i);
}

static void claim(struct worker *slot)
{
	arena_release(&slot->arena);
	arena_init(&slot->arena, ARENA_BYTES);
	job_claim_init(&slot->claim, &slot->rq, &slot->arena);
	slot->seat = (struct seat){.task = &slot->claim.task, .done = claimed};
	submit((uint64_t)(slot - slots), &slot->seat);
}

static void pushed(struct seat *seat, enum hx_code code)
{
	(void)seat;
	if (code)
		bench_die("push", &(struct hx_error){.detail = "jobs were not pushed"});
	sem_post(&all_completed);
}

static void push_all(size_t jobs)
{
	static struct job_push_item items[JOB_PUSH_MAX];
	struct arena arena;

	arena_init(&arena, ARENA_BYTES);
	for (size_t i = 0, n; i < jobs; i += n) {
		struct job_push push;
		struct seat seat = {.task = &push.task, .done = pushed};

		n = jobs - i < JOB_PUSH_MAX ? jobs - i : JOB_PUSH_MAX;
		for (size_t j = 0; j < n; j++)
			items[j] = (struct job_push_item){.queue = slice_str(QUEUE), .payload = slice_str("{\"n\":1}")};
		job_push_init(&push, slice_str("default"), items, n, &arena);
		submit(0, &seat);
		sem_wait(&all_completed);
		arena_reset(&arena);
	}
	arena_release(&arena);
}

static double claim_all(const char *url, const char *workflows, size_t jobs)
{
	double begin;

	sem_init(&all_completed, 0, 0);
	atomic_store(&wanted, jobs);
	engine = bench_engine_new(url, workflows, workload_node);
	push_all(jobs);
	begin = workload_seconds();
	for (size_t i = 0; i < SLOTS; i++) {
		slots[i].rq = (struct job_claim_request){
			.workspace = slice_str("default"),
			.owner = slice_str("worker"),
			.queues_n = 1,
			.queues = {slice_str(QUEUE)},
			.max = CLAIM_MAX,
			.lease_ms = 60000,
		};
		arena_init(&slots[i].arena, ARENA_BYTES);
		claim(&slots[i]);
	}
	sem_wait(&all_completed);
	return workload_seconds() - begin;
}

int main(int argc, char **argv)
{
	double seconds;
	size_t jobs;

	if (argc != 5) {
		fprintf(stderr, "usage: jobs URL WORKFLOWS JOBS deliver|claim\n");
		return 2;
	}
	jobs = workload_number(argv[3], 1, 100000000);
	if (strcmp(argv[4], "deliver") == 0)
		seconds = deliver(argv[1], argv[2], jobs, &engine);
	else
		seconds = claim_all(argv[1], argv[2], jobs);
	printf("%.0f\n", (double)jobs / seconds);
	engine_stop(engine, BENCH_DRAIN_MS);
	engine_free(engine);
	return 0;
}
