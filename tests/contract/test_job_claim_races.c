/* Claims of jobs that meet, on PostgreSQL: two connections step by step, and many threads at once. SQLite has one writer. */
#include <pthread.h>
#include <stdatomic.h>

#include "contract/job_desks.h"

#define THREADS 4
#define DRAINED 2000

/* ---- two connections at once: PostgreSQL ---- */

/* A claim up to before its commit: what it got stands in w->result. */
struct open_claim {
	struct job_claim_request rq;
	struct job_claim claim;
};

static size_t claim_begin(struct desk *w, struct open_claim *open, const char *queue, int64_t max)
{
	struct ask ask = {.unit = &w->unit};
	struct answer answer = {.kind = ANSWER_START, .now = {now_ms()}, .node = "here"};
	struct unit *unit = &w->unit;

	open->rq = (struct job_claim_request){.workspace = slice_str("default"),
					      .owner = slice_str(w->name),
					      .queues_n = 1,
					      .queues = {slice_str(queue)},
					      .max = max,
					      .lease_ms = LEASE_MS};
	answer.id = id_next(&w->ids, answer.now);
	arena_reset(&w->arena);
	arena_reset(&w->rows);
	job_claim_init(&open->claim, &open->rq, &w->arena);
	open->claim.task.kind->take(&open->claim.task, &answer);
	open->claim.task.kind->ask(&open->claim.task, &ask);
	assert_int_equal(w->db->driver->begin(w->db, &w->err), HX_OK);
	if (w->db->driver->execute(w->db, &unit, 1, &w->result, &w->rows, &w->err) != HX_OK)
		fail_msg("%s", w->err.detail);
	return w->result.rows[0].n;
}

static void nobody_waits_for_another_claim(void **state)
{
	struct desk *a = &world.a, *b = &world.b;
	struct open_claim open;
	int64_t ids[4];

	(void)state;
	for (int i = 0; i < 4; i++)
		ids[i] = desk_push(a, "q", 0, 1000 + i);
	assert_int_equal(claim_begin(a, &open, "q", 2), 2);
	assert_int_equal(desk_claim(b, "q", 10, LEASE_MS), 2); /* a has not committed: waiting would be for ever */
	assert_int_equal(b->jobs[0].subject, ids[2]);
	assert_int_equal(b->jobs[1].subject, ids[3]);
	assert_int_equal(desk_claim(b, "q", 10, LEASE_MS), 0);
	assert_int_equal(a->db->driver->commit(a->db, &a->err), HX_OK);
	for (int i = 0; i < 4; i++)
		desk_audit(b, ids[i]);
}

static void what_was_rolled_back_is_there_again(void **state)
{
	struct desk *a = &world.a, *b = &world.b;
	struct open_claim open;
	int64_t id = desk_push(a, "q", 0, 0);

	(void)state;
	assert_int_equal(claim_begin(a, &open, "q", 2), 1);
	assert_int_equal(desk_claim(b, "q", 10, LEASE_MS), 0);
	a->db->driver->rollback(a->db);
	assert_int_equal(desk_claim(b, "q", 10, LEASE_MS), 1);
	assert_int_equal(b->jobs[0].fence, 1);
	desk_audit(b, id);
}

/* What it met may be given up a moment later. */
static void a_claim_that_met_another_looks_again_soon(void **state)
{
	struct desk *a = &world.a, *b = &world.b;
	struct open_claim open;

	(void)state;
	(void)desk_push(a, "q", 0, 0);
	(void)desk_push_bounded(a, "bounded", BOUND);
	assert_int_equal(claim_begin(a, &open, "q", 1), 1);
	assert_true(sleeps_for(b, "q") < JOB_WORK_POLL_MS);
	a->db->driver->rollback(a->db);
	assert_int_equal(claim_begin(a, &open, "bounded", 1), 1);
	assert_true(sleeps_for(b, "bounded") < JOB_WORK_POLL_MS);
	a->db->driver->rollback(a->db);
}

/* Only what is claimed is held: the rest of the queue is free for others. */
static void a_claim_holds_no_more_than_it_takes(void **state)
{
	struct desk *a = &world.a, *b = &world.b;
	struct open_claim open;

	(void)state;
	for (int i = 0; i < 20; i++)
		(void)desk_push(a, "q", i % 4, 0);
	assert_int_equal(claim_begin(a, &open, "q", 3), 3);
	assert_int_equal(desk_claim(b, "q", 100, LEASE_MS), 17);
	a->db->driver->rollback(a->db);
}

static void a_bound_holds_while_another_claim_is_open(void **state)
{
	struct desk *a = &world.a, *b = &world.b;
	struct open_claim open;

	(void)state;
	for (int i = 0; i < 10; i++)
		(void)desk_push_bounded(a, "q", BOUND);
	assert_int_equal(claim_begin(a, &open, "q", 2), 2);
	assert_int_equal(desk_claim(b, "q", 10, LEASE_MS), 0);
	assert_int_equal(a->db->driver->commit(a->db, &a->err), HX_OK);
	assert_int_equal(desk_claim(b, "q", 10, LEASE_MS), BOUND - 2);
}

/* ---- many threads: PostgreSQL ---- */

static struct {
	_Atomic int64_t claimed, overrun, most;
	int64_t wanted;
	const char *queue;
} race;

static const struct db_stmt stmt_running = {
	.name = "test_running",
	.sql = "SELECT count(*) FROM hx_job j JOIN hx_subject s ON s.id = j.subject WHERE s.status = 'RUNNING' AND j.queue = ?1",
	.in = "t",
	.out = "i",
};

/* How many of the queue are running now, as anybody sees it. */
static int64_t running(struct desk *w)
{
	(void)desk_begin(w);
	UNIT_ADD(&w->unit, UNIT_ANY, &stmt_running, db_str(race.queue));
	(void)desk_run(w);
	return db_cell(&w->result.rows[0], 0, 0)->i;
}

static void note_running(int64_t n)
{
	int64_t most = atomic_load(&race.most);

	while (n > most && !atomic_compare_exchange_weak(&race.most, &most, n))
		;
	atomic_fetch_add(&race.overrun, n > BOUND);
}

static void *drain(void *context)
{
	struct desk *w = context;

	while (atomic_load(&race.claimed) < race.wanted) {
		int64_t ids[7];
		size_t n = desk_claim(w, race.queue, 7, LEASE_MS);

		for (size_t i = 0; i < n; i++) {
			ids[i] = w->jobs[i].subject;
			if (w->jobs[i].fence != 1)
				return "a job was claimed twice";
		}
		atomic_fetch_add(&race.claimed, (int64_t)n);
		if (race.wanted < DRAINED) /* the bounded race */
			note_running(running(w));
		for (size_t i = 0; i < n; i++)
			if (desk_settle(w, JOB_COMPLETE, ids[i], 1) != HX_OK)
				return "a claim was lost";
	}
	return NULL;
}

static void run_race(const char *queue, int64_t wanted)
{
	static struct desk workers[THREADS];
	static const char *const names[THREADS] = {"t0", "t1", "t2", "t3"};
	pthread_t threads[THREADS];
	void *wrong;

	atomic_store(&race.claimed, 0);
	atomic_store(&race.overrun, 0);
	atomic_store(&race.most, 0);
	race.queue = queue;
	race.wanted = wanted;
	for (int i = 0; i < THREADS; i++) {
		desk_init(&workers[i], names[i], store_open(world.store), clock_system(), 10 + (uint32_t)i);
		assert_int_equal(pthread_create(&threads[i], NULL, drain, &workers[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], &wrong), 0);
		if (wrong)
			fail_msg("%s", (const char *)wrong);
		desk_release(&workers[i]);
	}
	assert_int_equal(atomic_load(&race.claimed), wanted);
}

static void a_queue_is_drained_once(void **state)
{
	static struct job_push_item items[JOB_PUSH_MAX];
	struct desk *a = &world.a;
	struct job_push push;

	(void)state;
	for (int half = 0; half < DRAINED / JOB_PUSH_MAX; half++) {
		for (size_t i = 0; i < JOB_PUSH_MAX; i++)
			items[i] = (struct job_push_item){
				.queue = slice_str("q"), .payload = slice_str("{}"), .priority = (int64_t)i % 3};
		arena_reset(&a->arena);
		job_push_init(&push, slice_str("default"), items, JOB_PUSH_MAX, &a->arena);
		assert_int_equal(desk_drive(a, &push.task), HX_OK);
	}
	run_race("q", DRAINED);
	for (size_t i = 0; i < JOB_PUSH_MAX; i += 50)
		desk_audit(a, items[i].subject);
}

static void a_bound_is_kept_by_many(void **state)
{
	(void)state;
	for (int i = 0; i < 200; i++)
		(void)desk_push_bounded(&world.a, "q", BOUND);
	run_race("q", 200);
	assert_int_equal(atomic_load(&race.overrun), 0);
	printf("# job claim: 200 jobs by %d threads, at most %lld of %d at once\n", THREADS,
	       (long long)atomic_load(&race.most), BOUND);
	assert_int_equal(atomic_load(&race.most), BOUND);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		POSTGRES(nobody_waits_for_another_claim),
		POSTGRES(what_was_rolled_back_is_there_again),
		POSTGRES(a_claim_that_met_another_looks_again_soon),
		POSTGRES(a_claim_holds_no_more_than_it_takes),
		POSTGRES(a_bound_holds_while_another_claim_is_open),
		POSTGRES(a_queue_is_drained_once),
		POSTGRES(a_bound_is_kept_by_many),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("job claim", tests, NULL, NULL);
}
