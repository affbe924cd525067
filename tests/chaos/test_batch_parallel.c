/*
 * Many callers at once, on SQLite and on three nodes with one PostgreSQL:
 *
 *   50 cancels of a batch that runs, of one that waits, and of one that is over: one refund, and 50 honest answers
 *   64 batches of one account, for which all of their units queue, longer than a lease lasts: they come to their end
 *   100 callers who credit while a refund goes on, slice by slice: no update of the balance is lost, in either direction
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "flow/batch.h"
#include "support/await.h"
#include "support/studio.h"

#define NODES 3
#define CANCELS 50
#define CROWDED_BATCHES 64
#define CROWDED_ITEMS 20
#define CREDITS 100
#define CREDIT 1001
#define TIMES 10 /* that each caller credits, one after the other */
#define OPENING 1000000
#define COST 7
#define ITEMS 3000 /* flipped in six slices; more than are done before they are held, also on a busy machine */
#define BEGUN 600  /* of these, at least, when it is cancelled */
#define REFUND_ITEMS 12000
#define REFUND_BEGUN 2000 /* of these, at least, when it is cancelled */
#define REFUND_ROUNDS 3
#define DEADLINE_MS 120000

/* ---- a crowd: callers that set out together ---- */

struct one {
	struct crowd *crowd;
	int i;
	pthread_t thread;
	struct client *client;
	struct reply reply; /* the last one, and the first that is no success */
};

struct crowd {
	int n, times;
	const char *path;
	const char *body; /* with the number of the call for %d */
	pthread_barrier_t together;
	struct one all[CREDITS];
};

static void *call(void *context)
{
	struct one *one = context;
	struct crowd *crowd = one->crowd;
	char body[200];

	pthread_barrier_wait(&crowd->together);
	for (int k = 0; k < crowd->times && (k == 0 || one->reply.status == 200); k++) {
		reply_release(&one->reply);
		snprintf(body, sizeof body, crowd->body, one->i * crowd->times + k);
		(void)client_call(one->client, "POST", crowd->path, body, strlen(body),
				  &one->reply); /* the status tells */
	}
	return NULL;
}

static struct crowd *crowd_start(struct studio *studio, int n, int times, const char *path, const char *body)
{
	struct crowd *crowd = calloc(1, sizeof *crowd);

	assert_non_null(crowd);
	*crowd = (struct crowd){.n = n, .times = times, .path = path, .body = body};
	pthread_barrier_init(&crowd->together, NULL, (unsigned)n + 1);
	for (int i = 0; i < n; i++) {
		struct one *one = &crowd->all[i];

		*one = (struct one){.crowd = crowd, .i = i};
		one->client = client_new(studio->scene->nodes[i % studio->fleet.n]->port, /* requester= */ NULL);
		assert_int_equal(pthread_create(&one->thread, NULL, call, one), 0);
	}
	return crowd;
}

/* They set out. */
static void crowd_go(struct crowd *crowd)
{
	pthread_barrier_wait(&crowd->together);
}

/* How many were answered with this status, or with that one; all of them must have been. */
static void crowd_join(struct crowd *crowd, int this, int that, int *ret_this, int *ret_that)
{
	*ret_this = *ret_that = 0;
	for (int i = 0; i < crowd->n; i++) {
		struct one *one = &crowd->all[i];

		pthread_join(one->thread, NULL);
		*ret_this += one->reply.status == this;
		*ret_that += one->reply.status == that;
		if (one->reply.status != this && one->reply.status != that)
			fail_msg("%s: %d %s", crowd->path, one->reply.status, one->reply.body ? one->reply.body : "");
		reply_release(&one->reply);
		client_free(one->client);
	}
	pthread_barrier_destroy(&crowd->together);
	free(crowd);
}

static void cancel_all(struct studio *studio, const char *id, int this, int that, int *ret_this, int *ret_that)
{
	struct crowd *crowd;
	char path[100];

	snprintf(path, sizeof path, BATCHES "/%s/cancel", id);
	crowd = crowd_start(studio, CANCELS, /* times= */ 1, path, "");
	crowd_go(crowd);
	crowd_join(crowd, this, that, ret_this, ret_that);
}

/* ---- cancels ---- */

static int64_t slices(int64_t items)
{
	return (items + BATCH_SLICE - 1) / BATCH_SLICE;
}

static bool is_under_way(struct studio *studio, const char *id)
{
	struct reply *reply = studio_show(studio, 0, id);

	return reply_int(reply, "succeeded") >= BEGUN && reply_int(reply, "running") > 0;
}

static void cancel_one_that_runs(struct studio *studio)
{
	char id[ID_TEXT_BYTES];
	struct books_row row;
	int done, accepted;

	studio_create(studio, 0, &(struct studio_order){.account = "alice", .items = ITEMS, .cost = COST}, id);
	AWAIT(DEADLINE_MS, reply_int(studio_show(studio, 0, id), "succeeded") >= BEGUN);
	artifacts_hold(studio->artifacts, "/render", true);
	AWAIT(DEADLINE_MS, is_under_way(studio, id));
	cancel_all(studio, id, 202, 202, &accepted, &accepted);
	artifacts_hold(studio->artifacts, "/render", false);
	service_release(studio->scene->service);
	cancel_all(studio, id, 200, 202, &done, &accepted);
	studio_await(studio, 0, id, "CANCELLED", DEADLINE_MS);
	cancel_all(studio, id, 200, 200, &done, &done);
	studio_row(studio, id, &row);
	assert_int_equal(row.cancelled, ITEMS);
	assert_int_equal(row.charged, row.next_n * COST);
	assert_int_equal(row.refunded, row.charged);
	assert_int_equal(row.refund_entries, slices(row.next_n));
	assert_int_equal(studio_balance(studio, 0, "alice"), OPENING);
	printf("# 3 x %d cancels of a running batch: %lld of %d items charged, %lld refunded in %lld entries, one per slice\n",
	       CANCELS, (long long)row.next_n, ITEMS, (long long)row.refunded, (long long)row.refund_entries);
}

/* Nothing was charged, and whoever tears it down, the others are told so. */
static void cancel_one_that_waits(struct studio *studio)
{
	char id[ID_TEXT_BYTES];
	int done, accepted;

	studio_create(studio, 0, &(struct studio_order){.account = "alice", .items = ITEMS, .cost = COST, .hold = true},
		      id);
	cancel_all(studio, id, 200, 202, &done, &accepted);
	assert_true(done > 0);
	studio_await(studio, 0, id, "CANCELLED", DEADLINE_MS);
	assert_int_equal(reply_int(&studio->scene->last, "cancelled"), ITEMS);
	assert_int_equal(reply_int(&studio->scene->last, "refunded"), 0);
	assert_int_equal(studio_balance(studio, 0, "alice"), OPENING);
	assert_int_equal(studio_post(studio, 0, id, "start"), 409);
}

static void cancel_one_that_is_over(struct studio *studio)
{
	char id[ID_TEXT_BYTES];
	int over;

	studio_create(studio, 0, &(struct studio_order){.account = "alice", .items = 3, .cost = COST}, id);
	studio_await(studio, 0, id, "COMPLETED", DEADLINE_MS);
	cancel_all(studio, id, 409, 409, &over, &over);
	assert_int_equal(studio_balance(studio, 0, "alice"), OPENING - 3 * COST);
}

static void parallel_cancels(struct studio *studio, int nodes)
{
	struct books_sum sum;

	studio_define(studio, &(struct studio_shape){.voids = true, .lease_ms = 10000});
	studio_start(studio, nodes);
	studio_open_account(studio, "alice", OPENING);
	cancel_one_that_runs(studio);
	cancel_one_that_waits(studio);
	cancel_one_that_is_over(studio);
	studio_end(studio, &sum);
	assert_int_equal(sum.cancelled, 2);
	assert_int_equal(sum.completed, 1);
}

static void test_fifty_cancels_are_one_refund_sqlite(void **state)
{
	parallel_cancels(*state, 1);
}

static void test_fifty_cancels_are_one_refund_postgres(void **state)
{
	parallel_cancels(*state, NODES);
}

/* ---- one account ---- */

static void crowded_account(struct studio *studio, int nodes)
{
	struct studio_order order = {.account = "alice", .items = CROWDED_ITEMS, .cost = COST};
	char id[ID_TEXT_BYTES];
	int64_t from_ms = await_now_ms(), unknown;
	struct books_sum sum;

	studio_define(studio, &(struct studio_shape){.noop = true, .concurrency = 16});
	studio_start(studio, nodes);
	studio_open_account(studio, "alice", OPENING);
	for (int i = 0; i < CROWDED_BATCHES; i++)
		studio_create(studio, i % nodes, &order, id);
	studio_await_all(studio, DEADLINE_MS);
	printf("# %d batches of %d items on one account, %d nodes: done in %lld ms (lease %d ms), %zu taken over\n",
	       CROWDED_BATCHES, CROWDED_ITEMS, nodes, (long long)(await_now_ms() - from_ms), STUDIO_LEASE_MS,
	       studio_takeovers(studio));
	assert_int_equal(studio_balance(studio, 0, "alice"), OPENING - CROWDED_BATCHES * CROWDED_ITEMS * COST);
	unknown = studio_number(studio, "SELECT sum(unknown) FROM hx_batch");
	studio_end(studio, &sum);
	assert_int_equal(sum.completed, CROWDED_BATCHES);
	assert_int_equal(sum.charged, CROWDED_BATCHES * CROWDED_ITEMS * COST);
	assert_int_equal(unknown, 0);
}

static void test_crowded_account_sqlite(void **state)
{
	crowded_account(*state, 1);
}

/* In the soak alone: it has to fill a queue, and that takes as long as the machine is slow. */
static void test_crowded_account_postgres(void **state)
{
	if (!getenv("HAPAX_SOAK"))
		skip();
	crowded_account(*state, NODES);
}

/* ---- credits ---- */

/* Credits that stand in the ledger between the first refund of the batch and the last. */
static int64_t interleaved(struct studio *studio, int round)
{
	char sql[600];

	snprintf(sql, sizeof sql,
		 "SELECT count(*) FROM hx_ledger c WHERE c.reason = 'credit' AND c.key LIKE 'r%d-%%'"
		 " AND c.seq > (SELECT min(seq) FROM hx_ledger r WHERE r.account = c.account AND r.reason = 'refund'"
		 " AND r.seq > (SELECT max(seq) FROM hx_ledger l WHERE l.account = c.account AND l.reason = 'charge'))"
		 " AND c.seq < (SELECT max(seq) FROM hx_ledger r WHERE r.account = c.account AND r.reason = 'refund')",
		 round);
	return studio_number(studio, sql);
}

/* Returns how many of the credits came in between. */
static int64_t credit_during_refund(struct studio *studio, int round)
{
	char id[ID_TEXT_BYTES], body[100];
	int64_t before = studio_balance(studio, 0, "alice");
	struct crowd *crowd;
	struct books_row row;
	int credited;

	snprintf(body, sizeof body, "{\"amount\":%d,\"key\":\"r%d-%%d\"}", CREDIT, round);
	crowd = crowd_start(studio, CREDITS, TIMES, "/api/v1/accounts/alice/credit", body);
	studio_create(studio, 0, &(struct studio_order){.account = "alice", .items = REFUND_ITEMS, .cost = COST}, id);
	AWAIT(DEADLINE_MS, reply_int(studio_show(studio, 0, id), "succeeded") >= REFUND_BEGUN);
	assert_int_equal(studio_post(studio, studio->fleet.n - 1, id, "cancel"), 202);
	crowd_go(crowd);
	crowd_join(crowd, 200, 200, &credited, &credited);
	studio_await(studio, 0, id, "CANCELLED", DEADLINE_MS);
	studio_row(studio, id, &row);
	assert_int_equal(row.refunded, row.charged);
	assert_int_equal(row.refund_entries, slices(row.next_n));
	assert_int_equal(studio_balance(studio, 0, "alice"), before + CREDITS * TIMES * CREDIT);
	return interleaved(studio, round);
}

static void parallel_credits(struct studio *studio, int nodes)
{
	struct books_sum sum;
	int64_t between = 0;

	studio_define(studio, &(struct studio_shape){.noop = true, .concurrency = 32, .lease_ms = 10000});
	studio_start(studio, nodes);
	studio_open_account(studio, "alice", OPENING);
	for (int round = 0; round < REFUND_ROUNDS; round++)
		between += credit_during_refund(studio, round);
	studio_end(studio, &sum);
	printf("# %d rounds of %d x %d credits during a refund: %lld of them between its first slice and its last, none lost\n",
	       REFUND_ROUNDS, CREDITS, TIMES, (long long)between);
	assert_int_equal(sum.cancelled, REFUND_ROUNDS);
	assert_true(between > 0);
}

static void test_credits_during_a_refund_sqlite(void **state)
{
	parallel_credits(*state, 1);
}

static void test_credits_during_a_refund_postgres(void **state)
{
	parallel_credits(*state, NODES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_fifty_cancels_are_one_refund_sqlite, studio_set_up_sqlite,
						studio_tear_down),
		cmocka_unit_test_setup_teardown(test_fifty_cancels_are_one_refund_postgres, studio_set_up_postgres,
						studio_tear_down),
		cmocka_unit_test_setup_teardown(test_crowded_account_sqlite, studio_set_up_sqlite, studio_tear_down),
		cmocka_unit_test_setup_teardown(test_crowded_account_postgres, studio_set_up_postgres,
						studio_tear_down),
		cmocka_unit_test_setup_teardown(test_credits_during_a_refund_sqlite, studio_set_up_sqlite,
						studio_tear_down),
		cmocka_unit_test_setup_teardown(test_credits_during_a_refund_postgres, studio_set_up_postgres,
						studio_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
