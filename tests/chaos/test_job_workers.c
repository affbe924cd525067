/*
 * External workers over HTTP, on two nodes with one PostgreSQL.
 *
 *   lost workers   four workers claim in batches; now and then one dies over a batch, or sleeps past its lease and then
 *                  still wants to complete, fail and keep what others have taken over: each of these is told 409 STALE_FENCE
 *                  and changes nothing. Every job is completed once, and no two claims of it have the same fence.
 *   poison         a job whose worker always dies is PARKED after its limit, and is claimed no more; where it is a run's
 *                  step, that is held for a person
 *   bounds         of an action with max_in_flight never more than that are in hands, over all workers and nodes
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/id.h"
#include "support/audit.h"
#include "support/await.h"
#include "support/effects.h"
#include "support/scene.h"
#include "support/worker.h"

#define NODES 2
#define WORKERS 4
#define JOBS 400
#define PUSHED_AT_ONCE 100
#define CLAIMED_MAX 5
#define LEASE_MS 1200
#define LOST_ATTEMPTS 3 /* workers die over a job at most so often, which leaves it attempts */
#define ATTEMPTS_MAX 8  /* of a job that was pushed without a word on it */
#define WAIT_MS 30000
#define BOUND 3
#define BOUNDED_RUNS 60
#define WORK_MS 10

struct crew;

struct hand {
	struct crew *crew;
	struct worker worker;
	pthread_t thread;
	uint64_t random;
	size_t lost, slept, refused, late;
};

struct crew {
	struct scene *scene;
	struct effects *effects;
	_Atomic size_t completed; /* by all */
	size_t wanted;
	_Atomic int in_hand, in_hand_max;
	struct hand hands[WORKERS];
};

static void start_nodes(struct scene *scene)
{
	for (int node = 0; node < NODES; node++)
		scene_start(scene, node);
}

static void stop_nodes(struct scene *scene)
{
	for (int node = 0; node < NODES; node++)
		scene_stop(scene, node);
}

static void work(int64_t ms)
{
	nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* All hands work until all jobs are completed. Two of them share a name, as if one came back while it lives: then the fence
 * alone tells them apart. */
static void start_crew(struct crew *crew, const char *queue, int64_t lease_ms, void *(*labour)(void *))
{
	char name[16];

	for (int i = 0; i < WORKERS; i++) {
		struct hand *hand = &crew->hands[i];

		hand->crew = crew;
		hand->random = (uint64_t)(i + 1) * 0x9e3779b97f4a7c15u;
		snprintf(name, sizeof name, "worker-%d", i / NODES);
		worker_init(&hand->worker, crew->scene->nodes[i % NODES]->port, name, queue, lease_ms);
	}
	for (int i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_create(&crew->hands[i].thread, NULL, labour, &crew->hands[i]), 0);
}

static void join_crew(struct crew *crew)
{
	const char *wrong = NULL;

	for (int i = 0; i < WORKERS; i++)
		pthread_join(crew->hands[i].thread, NULL);
	for (int i = 0; i < WORKERS; i++) {
		worker_release(&crew->hands[i].worker);
		if (crew->hands[i].worker.wrong[0])
			wrong = crew->hands[i].worker.wrong;
	}
	if (wrong)
		fail_msg("%s", wrong);
}

static bool goes_on(const struct hand *hand)
{
	return atomic_load(&hand->crew->completed) < hand->crew->wanted && !hand->worker.wrong[0];
}

/* ---- lost workers ---- */

static uint64_t draw(struct hand *hand, uint64_t below)
{
	hand->random ^= hand->random << 13;
	hand->random ^= hand->random >> 7;
	hand->random ^= hand->random << 17;
	return (hand->random >> 16) % below;
}

static void do_it(struct hand *hand, const struct worker_job *job)
{
	struct service_call call = {.fence = job->fence};

	snprintf(call.key, sizeof call.key, "%s", job->key);
	(void)effects_apply(hand->crew->effects, &call);
}

static void must_say(struct hand *hand, const struct worker_job *job, const char *verb, int status, const char *code)
{
	struct reply reply = {0};
	char said[40];

	reply.status = worker_say(&hand->worker, job, verb, strcmp(verb, "fail") == 0 ? ",\"error\":\"it broke\"" : "",
				  said);
	if (reply.status == status && strcmp(said, code) == 0)
		return;
	reply.body = said;
	worker_note_wrong(&hand->worker, verb, &reply);
}

/* Was it not quick enough, which happens on a busy machine? Somebody else does it then. */
static bool is_late(struct hand *hand, const struct worker_job *job, const char *verb, const char *more)
{
	struct reply reply = {0};
	char code[40];

	reply.status = worker_say(&hand->worker, job, verb, more, code);
	if (reply.status == 200)
		return false;
	reply.body = code;
	if (reply.status == 409 && strcmp(code, "STALE_FENCE") == 0)
		hand->late++;
	else
		worker_note_wrong(&hand->worker, verb, &reply);
	return true;
}

static void complete(struct hand *hand, const struct worker_job *job)
{
	do_it(hand, job);
	if (!is_late(hand, job, "heartbeat", ",\"leaseMs\":30000") && !is_late(hand, job, "complete", ""))
		atomic_fetch_add(&hand->crew->completed, 1);
}

/* Is it somebody else's by now, or nobody's? Its attempt says so: it rises with each claim. */
static bool is_taken_over(struct hand *hand, const struct worker_job *job)
{
	struct reply reply;
	char path[100], mine[60];
	bool taken;

	snprintf(path, sizeof path, "/api/v1/jobs/%.39s", job->id);
	snprintf(mine, sizeof mine, "\"status\":\"RUNNING\",\"attempt\":%lld,", (long long)job->attempt);
	(void)client_call(hand->worker.client, "GET", path, "", 0, &reply); /* no answer: not yet */
	taken = reply.status == 200 && !strstr(reply.body, mine);
	reply_release(&reply);
	return taken;
}

/* It has done its work, slept past its lease, and does not know that somebody else has it by now. */
static void sleep_over(struct hand *hand, const struct worker_job *job)
{
	static const char *const verbs[] = {"complete", "fail", "heartbeat"};
	int64_t until_ms = await_now_ms() + WAIT_MS;

	do_it(hand, job);
	while (!is_taken_over(hand, job) && await_now_ms() < until_ms)
		await_pause();
	for (size_t i = 0; i < 3; i++)
		must_say(hand, job, verbs[i], 409, "STALE_FENCE");
	hand->refused += 3;
}

static void *lose_some(void *context)
{
	struct hand *hand = context;
	struct worker_job jobs[CLAIMED_MAX];
	size_t n;

	while (goes_on(hand)) {
		uint64_t fate = draw(hand, 8);

		n = worker_claim(&hand->worker, CLAIMED_MAX, /* wait_ms= */ 100);
		memcpy(jobs, hand->worker.jobs, n * sizeof *jobs);
		for (size_t i = 0; i < n; i++)
			if (fate > 1 || jobs[i].attempt > LOST_ATTEMPTS)
				complete(hand, &jobs[i]);
			else
				hand->lost++;
		for (size_t i = 0; i < n && fate == 0; i++)
			if (jobs[i].attempt <= LOST_ATTEMPTS) {
				sleep_over(hand, &jobs[i]);
				hand->slept++;
			}
	}
	return NULL;
}

/* In bulk, with keys: pushed twice they are there once. */
static void push_all(struct scene *scene)
{
	char body[PUSHED_AT_ONCE * 60], path[40];
	struct reply *reply;

	for (int from = 0; from < JOBS; from += PUSHED_AT_ONCE)
		for (int again = 0; again < 2; again++) {
			size_t n = 0;

			for (int i = 0; i < PUSHED_AT_ONCE; i++)
				n += (size_t)snprintf(body + n, sizeof body - n, "%c{'queue':'bulk','key':'k%d'}",
						      i ? ',' : '[', from + i);
			snprintf(body + n, sizeof body - n, "]");
			reply = scene_must(scene, again, "POST", "/api/v1/jobs", body, 201, NULL);
			assert_int_equal(reply_count(reply, "jobs"), PUSHED_AT_ONCE);
			for (int i = 0; i < PUSHED_AT_ONCE; i++) {
				snprintf(path, sizeof path, "jobs.%d.created", i);
				assert_string_equal(reply_text(reply, path), again ? "false" : "true");
			}
		}
}

static size_t number(struct scene *scene, const char *sql)
{
	char n[32];

	scene_sql(scene, sql, n, sizeof n);
	return strtoul(n, NULL, 10);
}

static void check_histories(struct scene *scene)
{
	struct audit audit = {.db = store_open(scene->store), .claimed = "RUNNING"};
	PGconn *raw = store_raw(scene->store);
	PGresult *res = PQexec(raw, "SELECT subject FROM hx_job");
	struct hx_error err = {0};

	arena_init(&audit.arena, AUDIT_BYTES_MAX);
	assert_int_equal(PQntuples(res), JOBS);
	for (int i = 0; i < JOBS; i++)
		if (audit_subject(&audit, strtoll(PQgetvalue(res, i, 0), NULL, 10), &err) < 0)
			fail_msg("%s", err.detail);
	PQclear(res);
	PQfinish(raw);
	arena_release(&audit.arena);
	db_close(audit.db);
}

static void test_lost_workers_lose_and_repeat_nothing(void **state)
{
	struct scene *scene = *state;
	struct crew *crew = calloc(1, sizeof *crew);
	size_t lost = 0, slept = 0, refused = 0, late = 0;

	assert_non_null(crew);
	*crew = (struct crew){.scene = scene, .effects = effects_new(), .wanted = JOBS};
	scene_configure(scene, "{'lease':'400ms'}");
	start_nodes(scene);
	push_all(scene);
	start_crew(crew, "bulk", LEASE_MS, lose_some);
	join_crew(crew);
	for (int i = 0; i < WORKERS; i++) {
		lost += crew->hands[i].lost;
		slept += crew->hands[i].slept;
		refused += crew->hands[i].refused;
		late += crew->hands[i].late;
	}
	printf("# lost workers: %d jobs completed once each by %d workers; %zu lost in their hands, %zu of them slept over and "
	       "wanted back: %zu x 409 STALE_FENCE; %zu repeated, %zu late by chance\n",
	       JOBS, WORKERS, lost, slept, refused, effects_repeated(crew->effects), late);
	assert_int_equal(atomic_load(&crew->completed), JOBS);
	assert_int_equal(number(scene, "SELECT count(*) FROM hx_subject s JOIN hx_job j ON j.subject = s.id"
				       " WHERE s.status = 'COMPLETED' AND s.owner IS NULL"),
			 JOBS);
	assert_int_equal(effects_n(crew->effects), JOBS);
	assert_null(effects_wrong(crew->effects));
	assert_true(lost > slept && slept > 0);
	assert_true(late < JOBS / 10);
	check_histories(scene);
	stop_nodes(scene);
	effects_free(crew->effects);
	free(crew);
}

/* ---- poison ---- */

/* Claims the only job there is and dies over it. False: there was none to be had, since it is parked. */
static bool die_over_it(struct scene *scene, struct worker *worker, int64_t attempt)
{
	int64_t until_ms = await_now_ms() + WAIT_MS;

	while (worker_claim(worker, 1, /* wait_ms= */ 100) == 0) {
		assert_string_equal(worker->wrong, "");
		if (number(scene, "SELECT count(*) FROM hx_subject s JOIN hx_job j ON j.subject = s.id"
				  " WHERE s.status = 'PARKED'") == 1)
			return false;
		assert_true(await_now_ms() < until_ms);
	}
	assert_int_equal(worker->jobs[0].attempt, attempt);
	return true;
}

static int64_t die_until_parked(struct scene *scene, struct worker *worker)
{
	int64_t deaths = 0;

	while (die_over_it(scene, worker, deaths + 1))
		deaths++;
	return deaths;
}

static void test_job_that_kills_its_workers_is_parked(void **state)
{
	struct scene *scene = *state;
	struct worker worker;
	char path[100];

	scene_configure(scene, "{'lease':'400ms'}");
	start_nodes(scene);
	scene_must(scene, 0, "POST", "/api/v1/jobs", "{'queue':'deadly'}", 201, NULL);
	worker_init(&worker, scene->nodes[1]->port, "mortal", "deadly", /* lease_ms= */ 100);
	assert_int_equal(die_until_parked(scene, &worker), ATTEMPTS_MAX);
	printf("# poison: PARKED after %d workers\n", ATTEMPTS_MAX);
	scene_must(scene, 0, "GET", "/api/v1/jobs?status=PARKED", NULL, 200, NULL);
	assert_int_equal(reply_count(&scene->last, "items"), 1);
	assert_string_equal(reply_text(&scene->last, "items.0.queue"), "deadly");
	/* The last of them comes back: too late, here as ever. */
	assert_int_equal(worker_say(&worker, &worker.jobs[0], "complete", "", NULL), 409);
	/* A person gives it another try, with all its attempts, and it is done. */
	snprintf(path, sizeof path, "/api/v1/jobs/%s/redrive", worker.jobs[0].id);
	scene_must(scene, 0, "POST", path, NULL, 200, NULL);
	worker.lease_ms = WAIT_MS;
	assert_int_equal(worker_claim(&worker, 1, WAIT_MS), 1);
	assert_int_equal(worker.jobs[0].attempt, 1);
	assert_int_equal(worker_say(&worker, &worker.jobs[0], "complete", "", NULL), 200);
	worker_release(&worker);
	stop_nodes(scene);
}

static const char deadly[] =
	"{'workflow':'deadly','kind':'run','actions':{"
	"'Die':{'kind':'worker','queue':'deadly','effect':'keyed'}},"
	"'steps':[{'name':'die','type':'task','action':'Die','retry':{'max_attempts':3,'initial':'50ms'}}]}";

static bool is_unknown(struct scene *scene, const char *path)
{
	scene_must(scene, 0, "GET", path, NULL, 200, NULL);
	return strcmp(reply_text(&scene->last, "steps.0.status"), "UNKNOWN") == 0;
}

/* Each of its workers may have done it, so a person has to say. */
static void test_step_that_kills_its_workers_is_held(void **state)
{
	struct scene *scene = *state;
	struct worker worker;
	char path[100], resolve[200];

	scene_define(scene, "deadly", deadly);
	scene_configure(scene, "{'lease':'400ms'}");
	start_nodes(scene);
	scene_must(scene, 0, "POST", "/api/v1/workflow-runs", "{'definitionId':'deadly'}", 201, NULL);
	snprintf(path, sizeof path, "/api/v1/workflow-runs/%s", reply_text(&scene->last, "run.id"));
	worker_init(&worker, scene->nodes[1]->port, "mortal", "deadly", /* lease_ms= */ 100);
	assert_int_equal(die_until_parked(scene, &worker), 3);
	AWAIT(WAIT_MS, is_unknown(scene, path));
	assert_string_equal(reply_text(&scene->last, "status"), "WAITING");
	snprintf(resolve, sizeof resolve, "%s/steps/die/resolve", path);
	scene_must(scene, 1, "POST", resolve, "{'outcome':'done'}", 200, NULL);
	snprintf(resolve, sizeof resolve, "%s?wait=20s", path);
	scene_must(scene, 0, "GET", resolve, NULL, 200, NULL);
	assert_string_equal(reply_text(&scene->last, "status"), "COMPLETED");
	worker_release(&worker);
	stop_nodes(scene);
}

/* ---- bounds ---- */

static const char bounded[] = "{'workflow':'bounded','kind':'run','actions':{"
			      "'Lift':{'kind':'worker','queue':'stock','effect':'keyed','max_in_flight':3}},"
			      "'steps':[{'name':'lift','type':'task','action':'Lift'}]}";

/* What is in hands here is RUNNING in the store from before until after: more than the bound can never be seen. */
static void take_up(struct crew *crew, size_t n)
{
	int now = atomic_fetch_add(&crew->in_hand, (int)n) + (int)n, max = atomic_load(&crew->in_hand_max);

	while (now > max && !atomic_compare_exchange_weak(&crew->in_hand_max, &max, now))
		;
}

static void *lift(void *context)
{
	struct hand *hand = context;
	struct worker_job jobs[CLAIMED_MAX];
	size_t n;

	while (goes_on(hand)) {
		n = worker_claim(&hand->worker, CLAIMED_MAX, /* wait_ms= */ 100);
		take_up(hand->crew, n);
		memcpy(jobs, hand->worker.jobs, n * sizeof *jobs);
		for (size_t i = 0; i < n; i++) {
			work(WORK_MS);
			atomic_fetch_sub(&hand->crew->in_hand, 1);
			complete(hand, &jobs[i]);
		}
	}
	return NULL;
}

static void test_bound_is_never_exceeded(void **state)
{
	struct scene *scene = *state;
	struct crew *crew = calloc(1, sizeof *crew);
	int64_t from_ms;

	assert_non_null(crew);
	*crew = (struct crew){.scene = scene, .effects = effects_new(), .wanted = BOUNDED_RUNS};
	scene_define(scene, "bounded", bounded);
	start_nodes(scene);
	for (int i = 0; i < BOUNDED_RUNS; i++)
		scene_must(scene, i % NODES, "POST", "/api/v1/workflow-runs", "{'definitionId':'bounded'}", 201, NULL);
	from_ms = await_now_ms();
	start_crew(crew, "stock", WAIT_MS, lift);
	join_crew(crew);
	printf("# bound: %d runs by %d workers on %d nodes, at most %d in hands (max_in_flight %d), %lld ms\n",
	       BOUNDED_RUNS, WORKERS, NODES, atomic_load(&crew->in_hand_max), BOUND,
	       (long long)(await_now_ms() - from_ms));
	assert_int_equal(atomic_load(&crew->in_hand_max), BOUND);
	AWAIT(WAIT_MS, number(scene, "SELECT count(*) FROM hx_subject s JOIN hx_run r ON r.subject = s.id"
				     " WHERE s.status = 'COMPLETED'") == BOUNDED_RUNS);
	assert_int_equal(effects_n(crew->effects), BOUNDED_RUNS);
	assert_int_equal(effects_repeated(crew->effects), 0);
	stop_nodes(scene);
	effects_free(crew->effects);
	free(crew);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lost_workers_lose_and_repeat_nothing, scene_set_up_postgres,
						scene_tear_down),
		cmocka_unit_test_setup_teardown(test_job_that_kills_its_workers_is_parked, scene_set_up_postgres,
						scene_tear_down),
		cmocka_unit_test_setup_teardown(test_step_that_kills_its_workers_is_held, scene_set_up_postgres,
						scene_tear_down),
		cmocka_unit_test_setup_teardown(test_bound_is_never_exceeded, scene_set_up_postgres, scene_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
