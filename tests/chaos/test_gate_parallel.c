/*
 * A crowd of 50 clients sends one key at the same moment, to one gate or to two on one store, round after round:
 *
 *   barrier ─▶ 50 × POST, same key ─▶ barrier ─▶ one of them judges all 50 answers ─▶ next key
 *
 * Exactly one is executed. Where all 50 say the same, each of the others is refused (409) or gets the bytes of the one;
 * where each says something else, 49 are told so (422) and none is merely refused, finished or not.
 *
 * With a slow service several crowds, each with keys of its own, are at it together.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/await.h"
#include "support/gate_process.h"
#include "support/soak.h"

#define CLIENTS 50
#define ROUNDS_MAX 100
#define ROUNDS soak_or(ROUNDS_MAX, 40)
#define SLOW_MS 300
#define SLOW_CROWDS 10
#define PATH "/payments"
#define BODY_BYTES 200

struct tally {
	size_t created, replayed, conflicts, mismatches;
};

struct crowd {
	struct gates *gates;
	int number, rounds;
	bool differ; /* each client sends another body */
	pthread_barrier_t barrier;
	struct reply replies[CLIENTS];   /* of the round */
	struct reply firsts[ROUNDS_MAX]; /* what was created in each round … */
	int winners[ROUNDS_MAX];         /* … and by whom */
	struct tally tally;
	char complaint[600]; /* the first one; empty: all is well */
};

struct member {
	struct crowd *crowd;
	int i;
	pthread_t thread;
};

/* ---- one round ---- */

static void round_key(const struct crowd *crowd, int round, char ret_key[GATE_KEY_BYTES])
{
	gates_key(crowd->gates, ret_key, "%s-%d-%d", crowd->differ ? "differ" : "same", crowd->number, round);
}

static void round_body(const struct crowd *crowd, const char *key, int i, char ret_body[BODY_BYTES])
{
	if (crowd->differ)
		snprintf(ret_body, BODY_BYTES, "{\"id\":\"%s\",\"n\":%d}", key, i);
	else
		snprintf(ret_body, BODY_BYTES, "{\"id\":\"%s\"}", key);
}

static void complain(struct crowd *crowd, const char *what, const char *key, const struct reply *reply)
{
	if (crowd->complaint[0])
		return;
	snprintf(crowd->complaint, sizeof crowd->complaint, "%s: %s: %d %.400s", key, what, reply ? reply->status : 0,
		 reply && reply->body ? reply->body : "");
}

static const struct reply *find_created(struct crowd *crowd, const char *key, int *ret_i)
{
	const struct reply *created = NULL;

	for (int i = 0; i < CLIENTS; i++)
		if (reply_is(&crowd->replies[i], 201, "created")) {
			if (created)
				complain(crowd, "created twice", key, &crowd->replies[i]);
			created = &crowd->replies[i];
			*ret_i = i;
		}
	if (!created)
		complain(crowd, "nobody created it; the first answer", key, &crowd->replies[0]);
	return created;
}

/* One of those who did not create it. */
static void judge_other(struct crowd *crowd, const char *key, const struct reply *created, const struct reply *reply)
{
	struct tally *tally = &crowd->tally;

	if (crowd->differ && reply_is(reply, 422, "mismatch") && strcmp(reply->code, "FINGERPRINT_MISMATCH") == 0)
		tally->mismatches++;
	else if (!crowd->differ && reply_is(reply, 409, "conflict") && strcmp(reply->code, "IN_FLIGHT") == 0 &&
		 strcasestr(reply->head, "\r\nRetry-After: "))
		tally->conflicts++;
	else if (!crowd->differ && reply_is(reply, 201, "replayed") && created && reply_same(reply, created))
		tally->replayed++;
	else
		complain(crowd, "what is this?", key, reply);
}

static void judge(struct crowd *crowd, int round)
{
	char key[GATE_KEY_BYTES], body[BODY_BYTES], receipt[BODY_BYTES + 20];
	const struct reply *created;

	round_key(crowd, round, key);
	created = find_created(crowd, key, &crowd->winners[round]);
	if (service_count(crowd->gates->service, PATH, key) != 1)
		complain(crowd, "it was not executed exactly once", key, created);
	/* The receipt names what was executed: what was answered as created must be it. */
	round_body(crowd, key, crowd->winners[round], body);
	snprintf(receipt, sizeof receipt, ",\"got\":%s}", body);
	if (created && !strstr(created->body, receipt))
		complain(crowd, "another request was executed than was answered", key, created);
	for (int i = 0; i < CLIENTS; i++)
		if (&crowd->replies[i] != created)
			judge_other(crowd, key, created, &crowd->replies[i]);
	for (int i = 0; i < CLIENTS; i++)
		if (&crowd->replies[i] == created)
			crowd->firsts[round] = *created;
		else
			reply_release(&crowd->replies[i]);
	crowd->tally.created += created != NULL;
}

static void *attend(void *context)
{
	struct member *member = context;
	struct crowd *crowd = member->crowd;
	struct gates *gates = crowd->gates;
	struct client *client = client_new(gates->gate[(size_t)member->i % gates->n]->port, NULL);
	char key[GATE_KEY_BYTES], body[BODY_BYTES];

	for (int round = 0; round < crowd->rounds; round++) {
		round_key(crowd, round, key);
		round_body(crowd, key, member->i, body);
		pthread_barrier_wait(&crowd->barrier);
		gate_post(client, PATH, key, body, &crowd->replies[member->i]);
		pthread_barrier_wait(&crowd->barrier);
		if (member->i == 0)
			judge(crowd, round);
	}
	client_free(client);
	return NULL;
}

/* ---- crowds ---- */

static void crowd_init(struct crowd *crowd, struct gates *gates, int number, int rounds, bool differ)
{
	*crowd = (struct crowd){.gates = gates, .number = number, .rounds = rounds, .differ = differ};
	assert_int_equal(pthread_barrier_init(&crowd->barrier, NULL, CLIENTS), 0);
}

/* When all is over, whoever created it gets the same again. */
static void check_afterwards(struct crowd *crowd)
{
	struct client *client = client_new(crowd->gates->gate[crowd->gates->n - 1]->port, NULL);
	struct reply again;

	for (int round = 0; round < crowd->rounds; round++) {
		const struct reply *first = &crowd->firsts[round];
		char key[GATE_KEY_BYTES], body[BODY_BYTES];

		round_key(crowd, round, key);
		round_body(crowd, key, crowd->winners[round], body);
		gate_post(client, PATH, key, body, &again);
		if (!reply_is(&again, 201, "replayed") || !reply_same(&again, first))
			fail_msg("%s afterwards: %s%s", key, again.head, again.body ? again.body : "");
		if (service_count(crowd->gates->service, PATH, key) != 1)
			fail_msg("%s was executed twice", key);
		reply_release(&again);
	}
	client_free(client);
}

static void add_tally(struct tally *sum, const struct tally *tally)
{
	sum->created += tally->created;
	sum->replayed += tally->replayed;
	sum->conflicts += tally->conflicts;
	sum->mismatches += tally->mismatches;
}

static void crowd_end(struct crowd *crowd, struct tally *sum)
{
	if (crowd->complaint[0])
		fail_msg("%s", crowd->complaint);
	check_afterwards(crowd);
	add_tally(sum, &crowd->tally);
	for (int round = 0; round < crowd->rounds; round++)
		reply_release(&crowd->firsts[round]);
	pthread_barrier_destroy(&crowd->barrier);
}

static struct tally run_crowds(struct gates *gates, int crowds_n, bool differ)
{
	struct crowd *crowds = calloc((size_t)crowds_n, sizeof *crowds);
	struct member *members = calloc((size_t)crowds_n * CLIENTS, sizeof *members);
	struct tally sum = {0};

	for (int c = 0; c < crowds_n; c++)
		crowd_init(&crowds[c], gates, c, ROUNDS / crowds_n, differ);
	for (int m = 0; m < crowds_n * CLIENTS; m++) {
		members[m] = (struct member){.crowd = &crowds[m / CLIENTS], .i = m % CLIENTS};
		assert_int_equal(pthread_create(&members[m].thread, NULL, attend, &members[m]), 0);
	}
	for (int m = 0; m < crowds_n * CLIENTS; m++)
		pthread_join(members[m].thread, NULL);
	for (int c = 0; c < crowds_n; c++)
		crowd_end(&crowds[c], &sum);
	free(members);
	free(crowds);
	return sum;
}

static void one_is_executed(void **state, enum gates_store store, size_t gates_n, int64_t delay_ms)
{
	struct gates *gates = *state = gates_new(store, gates_n, "{}");
	int crowds = delay_ms ? SLOW_CROWDS : 1;
	int64_t start_ms = await_now_ms();
	struct tally same, differ;

	service_play(gates->service, PATH, &(struct play){.status = 201, .receipt = true, .delay_ms = delay_ms});
	same = run_crowds(gates, crowds, /* differ= */ false);
	differ = run_crowds(gates, crowds, /* differ= */ true);
	assert_int_equal(same.created, ROUNDS);
	assert_int_equal(same.replayed + same.conflicts, ROUNDS * (CLIENTS - 1));
	assert_int_equal(differ.created, ROUNDS);
	assert_int_equal(differ.mismatches, ROUNDS * (CLIENTS - 1));
	assert_int_equal(service_count(gates->service, PATH, NULL), 2 * ROUNDS);
	printf("# %s, %zu gate%s, service takes %d ms: %d keys, %d requests each: %zu calls; same body: %zu created, "
	       "%zu replayed, %zu x 409; other bodies: %zu created, %zu x 422, no 409 (%lld ms)\n",
	       gates_store_name(store), gates_n, gates_n > 1 ? "s" : "", (int)delay_ms, 2 * ROUNDS, CLIENTS,
	       service_count(gates->service, PATH, NULL), same.created, same.replayed, same.conflicts, differ.created,
	       differ.mismatches, (long long)(await_now_ms() - start_ms));
}

static void on_sqlite_at_once(void **state)
{
	one_is_executed(state, GATES_SQLITE, 1, 0);
}

static void on_sqlite_slowly(void **state)
{
	one_is_executed(state, GATES_SQLITE, 1, SLOW_MS);
}

static void on_postgres_at_once(void **state)
{
	one_is_executed(state, GATES_POSTGRES, 2, 0);
}

static void on_postgres_slowly(void **state)
{
	one_is_executed(state, GATES_POSTGRES, 2, SLOW_MS);
}

static void on_redis_at_once(void **state)
{
	one_is_executed(state, GATES_REDIS, 2, 0);
}

static void on_redis_slowly(void **state)
{
	one_is_executed(state, GATES_REDIS, 2, SLOW_MS);
}

static int down(void **state)
{
	gates_free(*state);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(on_sqlite_at_once, down),
		cmocka_unit_test_teardown(on_sqlite_slowly, down),
		cmocka_unit_test_teardown(on_postgres_at_once, down),
		cmocka_unit_test_teardown(on_postgres_slowly, down),
		cmocka_unit_test_teardown(on_redis_at_once, down),
		cmocka_unit_test_teardown(on_redis_slowly, down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
