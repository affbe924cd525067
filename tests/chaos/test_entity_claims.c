/*
 * What the claim prevents: CALLERS callers fire one step of one entity at the same moment, ROUNDS times, against real
 * servers; on SQLite, and on PostgreSQL spread over two nodes.
 *
 *   claimed     one effect, one 200, all others 409, the version rises by exactly 2, one after-effect
 *   unclaimed   the same step with a 20 ms action and its claim written as null: still one commit, and one after-effect,
 *               but more than one effect in at least one round. So this test can see what the claim prevents.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/await.h"
#include "support/scene.h"
#include "support/soak.h"

#define CALLERS 50
#define ROUNDS soak_or(100, 30)

#define DEFINITION(claim)                                                                                              \
	"{'workflow':'billing','kind':'entity','status_types':['approved'," claim ",'closed'],"                        \
	"'initial_status':'approved','actions':{"                                                                      \
	"'Close':{'kind':'http','url':'@/close','effect':'claimed'},"                                                  \
	"'Mail':{'kind':'http','url':'@/mail','effect':'keyed'}},"                                                     \
	"'steps':[{'step_id':20,'step_key':'close','status':'approved','successful_state':'closed',"                   \
	"'action':'Close','success_after_effect':['Mail'],'claim_state':"

static const char claimed[] = DEFINITION("'closing'") "['closing','approved']}]}";
static const char unclaimed[] = DEFINITION("'unused'") "null}]}";

struct caller {
	struct client *client;
	pthread_t thread;
	pthread_barrier_t *start;
	const char *path;
	struct reply reply;
};

struct counts {
	int nodes;
	size_t effects, effects_most, rounds_with_more;
	size_t ok, claim_failed, wrong_status, concurrency_error, other;
};

static struct caller callers[CALLERS];
static pthread_barrier_t start;

static void *call(void *context)
{
	struct caller *caller = context;

	pthread_barrier_wait(caller->start);
	(void)client_call(caller->client, "POST", caller->path, "", 0, &caller->reply); /* no answer: the status is 0 */
	return NULL;
}

static void fire_all(const char *path)
{
	for (int i = 0; i < CALLERS; i++) {
		callers[i].path = path;
		callers[i].start = &start;
		assert_int_equal(pthread_create(&callers[i].thread, NULL, call, &callers[i]), 0);
	}
	for (int i = 0; i < CALLERS; i++)
		pthread_join(callers[i].thread, NULL);
}

static void count_replies(struct counts *counts)
{
	for (int i = 0; i < CALLERS; i++) {
		struct reply *reply = &callers[i].reply;
		bool conflict = reply->status == 409;

		if (reply->status == 200)
			counts->ok++;
		else if (conflict && strcmp(reply->code, "CLAIM_FAILED") == 0)
			counts->claim_failed++;
		else if (conflict && strcmp(reply->code, "WRONG_STATUS") == 0)
			counts->wrong_status++;
		else if (conflict && strcmp(reply->code, "CONCURRENCY_ERROR") == 0)
			counts->concurrency_error++;
		else if (counts->other++ == 0)
			print_message("unexpected: %d %s\n", reply->status, reply->body ? reply->body : "");
		reply_release(reply);
	}
}

static void run_round(struct scene *scene, int round, int64_t raised_by, struct counts *counts)
{
	size_t ok_before = counts->ok, effects;
	char id[32], path[200];

	snprintf(id, sizeof id, "round-%d", round);
	snprintf(path, sizeof path, "/api/v1/entities/billing/%s/steps/close", id);
	scene_create(scene, id);
	fire_all(path);
	count_replies(counts);
	effects = service_count(scene->service, "/close", id);
	assert_int_equal(counts->other, 0);
	assert_int_equal(counts->ok - ok_before, 1);
	for (int node = 0; node < counts->nodes; node++)
		scene_assert(scene, node, id, "closed", 1 + raised_by);
	counts->effects += effects;
	counts->rounds_with_more += effects > 1;
	counts->effects_most = effects > counts->effects_most ? effects : counts->effects_most;
}

/* One after-effect a round, as rows and as calls. */
static void check_after_effects(struct scene *scene)
{
	service_await(scene->service, "/mail", ROUNDS, 60000);
	scene_must(scene, 0, "GET", "/api/v1/jobs?limit=500", NULL, 200, NULL);
	assert_int_equal(reply_count(&scene->last, "items"), ROUNDS);
	assert_int_equal(service_count(scene->service, "/mail", NULL), ROUNDS);
}

static void run_rounds(struct scene *scene, const char *definition, int nodes, int64_t raised_by, struct counts *counts)
{
	*counts = (struct counts){.nodes = nodes};
	scene_define(scene, "billing", definition);
	scene_configure(scene, "{'modules':{'billing':{'janitor':{}}}}");
	for (int node = 0; node < nodes; node++)
		scene_start(scene, node);
	pthread_barrier_init(&start, NULL, CALLERS);
	for (int i = 0; i < CALLERS; i++)
		callers[i] = (struct caller){.client = client_new(scene->nodes[i % nodes]->port, "admin")};
	for (int round = 0; round < ROUNDS; round++)
		run_round(scene, round, raised_by, counts);
	check_after_effects(scene);
	for (int i = 0; i < CALLERS; i++)
		client_free(callers[i].client);
	pthread_barrier_destroy(&start);
	for (int node = 0; node < nodes; node++)
		scene_stop(scene, node);
}

static void print_counts(const char *what, const struct counts *c)
{
	printf("# %s, %d rounds of %d callers on %d node%s: %zu effects (at most %zu in a round), %zu x 200, "
	       "%zu x 409 CLAIM_FAILED, %zu WRONG_STATUS, %zu CONCURRENCY_ERROR\n",
	       what, ROUNDS, CALLERS, c->nodes, c->nodes == 1 ? "" : "s", c->effects, c->effects_most, c->ok,
	       c->claim_failed, c->wrong_status, c->concurrency_error);
}

static void one_effect(struct scene *scene, const char *what, int nodes)
{
	struct counts counts;

	service_play(scene->service, "/close", &(struct play){.delay_ms = 5});
	run_rounds(scene, claimed, nodes, /* raised_by= */ 2, &counts);
	print_counts(what, &counts);
	assert_int_equal(counts.effects, ROUNDS);
	assert_int_equal(counts.effects_most, 1);
	assert_int_equal(counts.claim_failed + counts.wrong_status, ROUNDS * (CALLERS - 1));
}

static void more_effects(struct scene *scene, const char *what, int nodes)
{
	struct counts counts;

	service_play(scene->service, "/close", &(struct play){.delay_ms = 20});
	run_rounds(scene, unclaimed, nodes, /* raised_by= */ 1, &counts);
	print_counts(what, &counts);
	printf("# %s: more than one effect in %zu of %d rounds\n", what, counts.rounds_with_more, ROUNDS);
	assert_true(counts.rounds_with_more >= 1);
	assert_int_equal(counts.concurrency_error + counts.wrong_status, ROUNDS * (CALLERS - 1));
}

static void test_claimed_step_on_sqlite_has_one_effect(void **state)
{
	one_effect(*state, "claimed, SQLite", 1);
}

static void test_claimed_step_on_two_nodes_of_postgres_has_one_effect(void **state)
{
	one_effect(*state, "claimed, PostgreSQL", 2);
}

static void test_unclaimed_step_on_sqlite_has_more_effects_and_one_commit(void **state)
{
	more_effects(*state, "unclaimed, SQLite", 1);
}

static void test_unclaimed_step_on_two_nodes_of_postgres_has_more_effects_and_one_commit(void **state)
{
	more_effects(*state, "unclaimed, PostgreSQL", 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_claimed_step_on_sqlite_has_one_effect, scene_set_up_sqlite,
						scene_tear_down),
		cmocka_unit_test_setup_teardown(test_claimed_step_on_two_nodes_of_postgres_has_one_effect,
						scene_set_up_postgres, scene_tear_down),
		cmocka_unit_test_setup_teardown(test_unclaimed_step_on_sqlite_has_more_effects_and_one_commit,
						scene_set_up_sqlite, scene_tear_down),
		cmocka_unit_test_setup_teardown(
			test_unclaimed_step_on_two_nodes_of_postgres_has_more_effects_and_one_commit,
			scene_set_up_postgres, scene_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
