/*
 * Runs whose steps are done by external workers, while the nodes are killed with -9 and some workers die over what they have
 * claimed. Three nodes on one PostgreSQL; workers go to whichever node answers. A claim whose answer was lost comes back by
 * its time, a completion whose answer was lost is found to be too late, and both have happened once.
 *
 * In the end every run is COMPLETED, each step has had one key, its job is COMPLETED, and what the run says came of it is
 * what a worker said that did it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/id.h"
#include "support/await.h"
#include "support/effects.h"
#include "support/soak.h"
#include "support/worker.h"

#define NODES 3
#define KILLS soak_or(40, 20)
#define KILL_EVERY_MS 300
#define WORKERS 4
#define CLAIMED_MAX 5
#define LEASE_MS 1500
#define RUNS_MAX 5000
#define CREATE_EVERY_MS 25
#define STEPS 2
#define CALM_MS 60000
#define RUNS "/api/v1/workflow-runs"

static const char definition[] =
	"{'workflow':'craft','kind':'run','actions':{'Make':{'kind':'worker','queue':'craft','effect':'keyed'}},'steps':["
	"{'name':'a','type':'task','action':'Make','retry':{'max_attempts':1000,'initial':'100ms'}},"
	"{'name':'b','type':'task','action':'Make','retry':{'max_attempts':1000,'initial':'100ms'}}]}";

struct chaos;

struct hand {
	struct chaos *chaos;
	struct worker worker;
	pthread_t thread;
	size_t died, completed, late;
};

struct chaos {
	struct fleet fleet;
	struct effects *effects;
	struct caller *dice;
	_Atomic bool creating, working;
	pthread_t creator;
	bool has_creator, has_hands; /* their threads are there */
	size_t runs_n;
	char ids[RUNS_MAX][ID_TEXT_BYTES];
	char wrong[600]; /* the creator's; empty: nothing */
	struct hand hands[WORKERS];
};

static void sleep_ms(int64_t ms)
{
	nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* ---- in threads ---- */

static void *create_all(void *context)
{
	struct chaos *c = context;
	struct caller *caller = caller_new(&c->fleet, WORKERS);
	struct reply reply;
	char body[200];
	const char *id;

	while (atomic_load(&c->creating) && c->runs_n < RUNS_MAX && !c->wrong[0]) {
		snprintf(body, sizeof body, "{\"definitionId\":\"craft\",\"idempotencyKey\":\"craft-%zu\"}", c->runs_n);
		caller_call(caller, "POST", RUNS, body, &reply);
		if ((reply.status == 201 || reply.status == 200) && (id = strstr(reply.body, "\"id\":\"run_")))
			snprintf(c->ids[c->runs_n++], ID_TEXT_BYTES, "%.*s", (int)strcspn(id + 6, "\""), id + 6);
		else
			snprintf(c->wrong, sizeof c->wrong, "create: %d %.400s", reply.status,
				 reply.body ? reply.body : "");
		reply_release(&reply);
		sleep_ms(CREATE_EVERY_MS);
	}
	caller_free(caller);
	return NULL;
}

static uint64_t do_it(struct hand *hand, const struct worker_job *job)
{
	struct service_call call = {.fence = job->fence};

	snprintf(call.key, sizeof call.key, "%.199s", job->key);
	return effects_apply(hand->chaos->effects, &call);
}

/* 409 is right too: an earlier try was heard and not answered, or the lease is over and somebody else has it. */
static void make(struct hand *hand, const struct worker_job *job)
{
	struct reply reply = {0};
	char output[60], code[40];

	snprintf(output, sizeof output, ",\"output\":{\"receipt\":%llu}", (unsigned long long)do_it(hand, job));
	reply.status = worker_say(&hand->worker, job, "complete", output, code);
	if (reply.status == 200)
		hand->completed++;
	else if (reply.status == 409 && strcmp(code, "STALE_FENCE") == 0)
		hand->late++;
	else
		worker_note_wrong(&hand->worker, "complete", &reply);
}

/* It has done it, and could not say so any more. */
static void die(struct hand *hand, const struct worker_job *job)
{
	(void)do_it(hand, job);
	hand->died++;
}

static void *work(void *context)
{
	struct hand *hand = context;
	struct caller *caller = hand->worker.caller;
	struct worker_job jobs[CLAIMED_MAX];
	bool dies;
	size_t n;

	while (atomic_load(&hand->chaos->working) && !hand->worker.wrong[0]) {
		n = worker_claim(&hand->worker, CLAIMED_MAX, /* wait_ms= */ 500);
		memcpy(jobs, hand->worker.jobs, n * sizeof *jobs);
		dies = caller_draw(caller, 10) == 0;
		for (size_t i = 0; i < n; i++)
			if (dies)
				die(hand, &jobs[i]);
			else
				make(hand, &jobs[i]);
	}
	return NULL;
}

static void start_threads(struct chaos *c)
{
	char name[16];

	atomic_store(&c->creating, true);
	atomic_store(&c->working, true);
	assert_int_equal(pthread_create(&c->creator, NULL, create_all, c), 0);
	c->has_creator = true;
	for (int i = 0; i < WORKERS; i++) {
		snprintf(name, sizeof name, "hand-%d", i);
		worker_init(&c->hands[i].worker, /* port= */ 0, name, "craft", LEASE_MS);
		c->hands[i].chaos = c;
		c->hands[i].worker.caller = caller_new(&c->fleet, (uint64_t)i);
	}
	for (int i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_create(&c->hands[i].thread, NULL, work, &c->hands[i]), 0);
	c->has_hands = true;
}

static void join_creator(struct chaos *c)
{
	atomic_store(&c->creating, false);
	if (c->has_creator)
		pthread_join(c->creator, NULL);
	c->has_creator = false;
}

static void join_hands(struct chaos *c)
{
	atomic_store(&c->working, false);
	for (int i = 0; c->has_hands && i < WORKERS; i++) {
		pthread_join(c->hands[i].thread, NULL);
		caller_free(c->hands[i].worker.caller);
		worker_release(&c->hands[i].worker);
	}
	c->has_hands = false;
}

/* ---- what is true in the end ---- */

static size_t number(struct chaos *c, const char *sql)
{
	char n[32];

	scene_sql(c->fleet.scene, sql, n, sizeof n);
	return strtoul(n, NULL, 10);
}

static void check_run(struct chaos *c, const char *id)
{
	static const char *const names[STEPS] = {"a", "b"};
	struct reply *reply;
	char path[100], key[100];

	snprintf(path, sizeof path, RUNS "/%s", id);
	reply = scene_must(c->fleet.scene, 0, "GET", path, NULL, 200, NULL);
	assert_string_equal(reply_text(reply, "status"), "COMPLETED");
	for (int step = 0; step < STEPS; step++) {
		snprintf(path, sizeof path, "steps.%d.output.receipt", step);
		snprintf(key, sizeof key, "%s/%s/0", id, names[step]);
		assert_int_equal(reply_int(reply, path), effects_receipt(c->effects, key));
	}
	/* Two for each step, however often its job was claimed. */
	assert_int_equal(reply_int(reply, "version"), 1 + 2 * STEPS);
}

static const char *wrong_so_far(void *context)
{
	struct chaos *c = context;

	for (int i = 0; i < WORKERS; i++)
		if (c->hands[i].worker.wrong[0])
			return c->hands[i].worker.wrong;
	return NULL;
}

static void rage(struct chaos *c)
{
	for (int i = 0; i < KILLS; i++) {
		int node = (int)caller_draw(c->dice, NODES);

		sleep_ms(KILL_EVERY_MS);
		fleet_kill(&c->fleet, node);
		fleet_revive(&c->fleet, node);
	}
}

static void test_steps_of_workers_survive_nodes_and_workers(void **state)
{
	struct chaos *c = *state;
	size_t died = 0, completed = 0, late = 0;

	start_threads(c);
	rage(c);
	join_creator(c);
	assert_string_equal(c->wrong, "");
	fleet_await_runs(&c->fleet, CALM_MS, wrong_so_far, c);
	join_hands(c);
	if (wrong_so_far(c))
		fail_msg("%s", wrong_so_far(c));
	for (int i = 0; i < WORKERS; i++) {
		died += c->hands[i].died;
		completed += c->hands[i].completed;
		late += c->hands[i].late;
	}
	for (size_t i = 0; i < c->runs_n; i++)
		check_run(c, c->ids[i]);
	assert_int_equal(number(c, "SELECT count(*) FROM hx_run"), c->runs_n);
	assert_int_equal(number(c, "SELECT count(*) FROM hx_job"), STEPS * c->runs_n);
	assert_int_equal(number(c, "SELECT count(*) FROM hx_job j JOIN hx_subject s ON s.id = j.subject"
				   " WHERE s.status = 'COMPLETED'"),
			 STEPS * c->runs_n);
	assert_int_equal(effects_n(c->effects), STEPS * c->runs_n);
	assert_null(effects_wrong(c->effects));
	printf("# steps of workers: %zu kills, %zu runs COMPLETED; %zu jobs lost in hands, %zu repeated; %zu completions told "
	       "200, %zu told 409\n",
	       c->fleet.kills, c->runs_n, died, effects_repeated(c->effects), completed, late);
	assert_true(completed <= STEPS * c->runs_n && died > 0 && effects_repeated(c->effects) >= died);
	fleet_stop(&c->fleet);
}

static int set_up(void **state)
{
	struct chaos *c = calloc(1, sizeof *c);
	void *scene = NULL;

	assert_non_null(c);
	*state = c;
	scene_set_up_postgres(&scene);
	c->fleet.scene = scene;
	c->effects = effects_new();
	c->dice = caller_new(&c->fleet, (uint64_t)await_now_ms());
	scene_define(scene, "craft", definition);
	scene_configure(scene, "{'lease':'2s'}");
	fleet_start(&c->fleet, scene, NODES);
	return 0;
}

static int tear_down(void **state)
{
	struct chaos *c = *state;
	void *scene = c->fleet.scene;

	join_creator(c);
	join_hands(c);
	caller_free(c->dice);
	scene_tear_down(&scene);
	effects_free(c->effects);
	free(c);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_steps_of_workers_survive_nodes_and_workers, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
