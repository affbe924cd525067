/*
 * Fifty clients create a run with one and the same key at the same moment, ROUNDS times over, on SQLite and on two nodes
 * with one PostgreSQL: one of them is told 201 and created:true, all others 200 and created:false, and all of them the
 * same id. Then the run is there once, and its step was done once.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/await.h"
#include "support/effects.h"
#include "support/scene.h"
#include "support/soak.h"

#define CLIENTS 50
#define ROUNDS soak_or(100, 30)
#define DONE_MS 60000

static const char definition[] = "{'workflow':'once','kind':'run','actions':{"
				 "'Do':{'kind':'http','url':'@/do','effect':'keyed'}},"
				 "'steps':[{'name':'only','type':'task','action':'Do'}]}";

struct crowd;

struct one {
	struct crowd *crowd;
	struct client *client;
	struct reply reply;
	pthread_t thread;
};

struct crowd {
	struct scene *scene;
	pthread_barrier_t starts, ends; /* of a round, for the clients and the test */
	int round;                      /* -1: it is over */
	struct one ones[CLIENTS];
};

static void *create(void *context)
{
	struct one *one = context;
	char body[200];

	for (;;) {
		pthread_barrier_wait(&one->crowd->starts);
		if (one->crowd->round < 0)
			return NULL;
		snprintf(body, sizeof body, "{\"definitionId\":\"once\",\"idempotencyKey\":\"key-%d\"}",
			 one->crowd->round);
		reply_release(&one->reply);
		(void)client_call(one->client, "POST", "/api/v1/workflow-runs", body, strlen(body),
				  &one->reply); /* without an answer its status is 0 */
		pthread_barrier_wait(&one->crowd->ends);
	}
}

/* The clients are spread evenly over the nodes, each with a connection that stays. */
static void gather(struct crowd *crowd, struct scene *scene, int nodes)
{
	crowd->scene = scene;
	pthread_barrier_init(&crowd->starts, NULL, CLIENTS + 1);
	pthread_barrier_init(&crowd->ends, NULL, CLIENTS + 1);
	for (int i = 0; i < CLIENTS; i++) {
		crowd->ones[i] = (struct one){
			.crowd = crowd, .client = client_new(scene->nodes[i % nodes]->port, /* requester= */ NULL)};
		assert_int_equal(pthread_create(&crowd->ones[i].thread, NULL, create, &crowd->ones[i]), 0);
	}
}

static void disperse(struct crowd *crowd)
{
	crowd->round = -1;
	pthread_barrier_wait(&crowd->starts);
	for (int i = 0; i < CLIENTS; i++) {
		pthread_join(crowd->ones[i].thread, NULL);
		client_free(crowd->ones[i].client);
		reply_release(&crowd->ones[i].reply);
	}
	pthread_barrier_destroy(&crowd->starts);
	pthread_barrier_destroy(&crowd->ends);
}

/* Words on what is wrong; NULL: nothing. Fails nothing, since the crowd has to go home first. */
static const char *wrong_in_round(struct crowd *crowd, char *words, size_t bytes)
{
	int created = 0;
	const char *id = NULL;

	for (int i = 0; i < CLIENTS; i++) {
		const struct reply *reply = &crowd->ones[i].reply;
		const char *text = reply->body ? reply->body : "no answer";
		const char *want = reply->status == 201 ? "\"created\":true" : "\"created\":false";
		const char *its = strstr(text, "\"id\":\"run_");

		if ((reply->status != 201 && reply->status != 200) || !strstr(text, want) || !its) {
			snprintf(words, bytes, "round %d, client %d: %d %.400s", crowd->round, i, reply->status, text);
			return words;
		}
		created += reply->status == 201;
		id = id ? id : its;
		if (strncmp(id, its, strcspn(its + 6, "\"") + 7) != 0) {
			snprintf(words, bytes, "round %d: two ids: %.40s, %.40s", crowd->round, id, its);
			return words;
		}
	}
	snprintf(words, bytes, "round %d: %d were told 201", crowd->round, created);
	return created == 1 ? NULL : words;
}

static size_t number(struct scene *scene, const char *sql)
{
	char n[32];

	scene_sql(scene, sql, n, sizeof n);
	return strtoul(n, NULL, 10);
}

static void race(struct scene *scene, int nodes, const char *where)
{
	struct effects *effects = effects_new();
	struct crowd crowd = {0};
	const char *wrong = NULL;
	char words[600];
	int64_t from_ms;

	scene_define(scene, "once", definition);
	service_play(scene->service, "/do", &(struct play){.apply = effects_apply, .context = effects});
	for (int node = 0; node < nodes; node++)
		scene_start(scene, node);
	gather(&crowd, scene, nodes);
	from_ms = await_now_ms();
	for (int round = 0; round < ROUNDS && !wrong; round++) {
		crowd.round = round;
		pthread_barrier_wait(&crowd.starts);
		pthread_barrier_wait(&crowd.ends);
		wrong = wrong_in_round(&crowd, words, sizeof words);
	}
	disperse(&crowd);
	if (wrong)
		fail_msg("%s", wrong);
	printf("# %d creates with one key, %d rounds, %s: one created in each, %lld ms in all\n", CLIENTS, ROUNDS,
	       where, (long long)(await_now_ms() - from_ms));
	AWAIT(DONE_MS, number(scene, "SELECT count(*) FROM hx_subject s JOIN hx_run r ON r.subject = s.id"
				     " WHERE s.status = 'COMPLETED'") == (size_t)ROUNDS);
	assert_int_equal(number(scene, "SELECT count(*) FROM hx_run"), ROUNDS);
	assert_int_equal(effects_n(effects), ROUNDS);
	assert_int_equal(effects_repeated(effects), 0);
	for (int node = 0; node < nodes; node++)
		scene_stop(scene, node);
	effects_free(effects);
}

static void test_one_key_on_sqlite(void **state)
{
	race(*state, 1, "SQLite");
}

static void test_one_key_on_two_nodes(void **state)
{
	race(*state, 2, "PostgreSQL with two nodes");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_one_key_on_sqlite, scene_set_up_sqlite, scene_tear_down),
		cmocka_unit_test_setup_teardown(test_one_key_on_two_nodes, scene_set_up_postgres, scene_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
