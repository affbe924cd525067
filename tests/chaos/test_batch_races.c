/*
 * A cancel that meets the claim, and a cancel that meets the completion: 300 rounds each (a thousand in a soak), on SQLite and on two nodes
 * with one PostgreSQL, so timed that now the one is first and now the other. Whoever wins, the money is right.
 *
 *   claim        start ─▶ QUEUED ─┬ seized to be worked on ──▶ RUNNING: the cancel is a request (202), and then teardown
 *                                 └ seized by the cancel ────▶ CANCELLING: no item is ever begun (200)
 *   completion   RUNNING, one item ┬ no item is left ────────▶ COMPLETED: the cancel is too late (409), all is charged
 *                                  └ the request was first ──▶ CANCELLING: all is given back (202)
 *
 * Each racer keeps the delay of its cancels where the two are even: it waits longer after a round that the cancel has won, and
 * less after one that it lost, and adds some jitter. Who won is read from the history.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "support/await.h"
#include "support/soak.h"
#include "support/studio.h"

#define ROUNDS soak_or(1000, 300)
#define WINS_MIN (ROUNDS / 20)
#define RACERS 4
#define STEP_US 150
#define COST 5
#define OPENING 10000000
#define END_WAIT "?wait=30s"

enum race { AGAINST_CLAIM, AGAINST_COMPLETION };

struct racer {
	struct studio *studio;
	enum race race;
	int i;
	pthread_t thread, starter;
	pthread_barrier_t go, done; /* between the racer and its starter */
	bool stops;                 /* the starter, at its next go */
	struct caller *caller, *starting;
	char id[ID_TEXT_BYTES];
	int64_t delay_us; /* of the cancel */
	int64_t paid;     /* what its batches were charged and not given back */
	char wrong[600];  /* empty: nothing */
};

static void go_wrong(struct racer *r, const char *what, const struct reply *reply)
{
	if (!r->wrong[0])
		snprintf(r->wrong, sizeof r->wrong, "%s %s: %d %.400s", r->id, what, reply->status,
			 reply->body ? reply->body : "");
}

/* ---- one round, in threads ---- */

static bool create(struct racer *r, size_t items, bool hold)
{
	struct studio_order order = {.account = "alice", .items = items, .cost = COST, .hold = hold};
	char *text = studio_order_text(&order);
	struct reply reply;
	const char *id;

	caller_call(r->caller, "POST", BATCHES, text, &reply);
	free(text);
	id = reply.status == 201 ? strstr(reply.body, "\"id\":\"batch_") : NULL;
	if (id)
		snprintf(r->id, sizeof r->id, "%.*s", (int)strcspn(id + 6, "\""), id + 6);
	else
		go_wrong(r, "create", &reply);
	reply_release(&reply);
	return id;
}

static void start_it(struct racer *r)
{
	struct reply reply;
	char path[100];

	snprintf(path, sizeof path, BATCHES "/%s/start", r->id);
	caller_call(r->starting, "POST", path, "", &reply);
	if (reply.status != 200 && reply.status != 409)
		go_wrong(r, "start", &reply);
	reply_release(&reply);
}

static void *start_all(void *context)
{
	struct racer *r = context;

	while (pthread_barrier_wait(&r->go), !r->stops) {
		start_it(r);
		pthread_barrier_wait(&r->done);
	}
	return NULL;
}

/* The status that the cancel was answered with. */
static int cancel(struct racer *r)
{
	int64_t jitter_us = r->delay_us / 3 + STEP_US;
	int64_t us = r->delay_us + (int64_t)caller_draw(r->caller, 2 * (uint64_t)jitter_us) - jitter_us;
	struct reply reply;
	char path[100];
	int status;

	if (us > 0)
		nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000}, NULL);
	snprintf(path, sizeof path, BATCHES "/%s/cancel", r->id);
	caller_call(r->caller, "POST", path, "", &reply);
	status = reply.status;
	if (status != 200 && status != 202 && (status != 409 || strcmp(reply.code, "ALREADY_COMPLETED") != 0))
		go_wrong(r, "cancel", &reply);
	reply_release(&reply);
	return status;
}

static int64_t number_in(const char *body, const char *name)
{
	const char *at = body ? strstr(body, name) : NULL;

	return at ? strtoll(at + strlen(name), NULL, 10) : -1;
}

/* Told that it is cancelled: it is, and all is given back. Told that it is too late: it is, and all is paid. */
static void await_end(struct racer *r, int told, int64_t cost)
{
	struct reply reply;
	char path[100];
	int64_t charged, refunded;
	bool right;

	snprintf(path, sizeof path, BATCHES "/%s" END_WAIT, r->id);
	caller_call(r->caller, "GET", path, "", &reply);
	charged = number_in(reply.body, "\"charged\":");
	refunded = number_in(reply.body, "\"refunded\":");
	if (told == 409)
		right = strstr(reply.body, "\"COMPLETED\"") && charged == cost && refunded == 0;
	else
		right = strstr(reply.body, "\"CANCELLED\"") && charged >= 0 && charged <= cost && refunded == charged;
	if (!right)
		go_wrong(r, told == 409 ? "it was too late to cancel" : "its cancel was accepted", &reply);
	r->paid += charged - refunded;
	reply_release(&reply);
}

static void even_out(struct racer *r, bool cancel_won)
{
	r->delay_us += cancel_won ? STEP_US : -STEP_US;
	if (r->delay_us < 0)
		r->delay_us = 0;
}

static void race_claim(struct racer *r)
{
	int told;

	if (!create(r, 2, /* hold= */ true))
		return;
	pthread_barrier_wait(&r->go);
	told = cancel(r);
	pthread_barrier_wait(&r->done);
	await_end(r, told, 2 * COST);
	even_out(r, told == 200);
}

static void race_completion(struct racer *r)
{
	int told;

	if (!create(r, 1, /* hold= */ false))
		return;
	told = cancel(r);
	await_end(r, told, COST);
	even_out(r, told != 409);
}

static void *race(void *context)
{
	struct racer *r = context;

	for (int round = r->i; round < ROUNDS && !r->wrong[0]; round += RACERS)
		if (r->race == AGAINST_CLAIM)
			race_claim(r);
		else
			race_completion(r);
	r->stops = true;
	pthread_barrier_wait(&r->go);
	return NULL;
}

/* ---- all of them ---- */

static int64_t wins(struct studio *studio, const char *from, const char *to)
{
	char sql[300];

	snprintf(sql, sizeof sql,
		 "SELECT count(DISTINCT h.subject) FROM hx_history h JOIN hx_batch b ON b.subject = h.subject"
		 " WHERE h.from_status = '%s' AND h.to_status = '%s'",
		 from, to);
	return studio_number(studio, sql);
}

static struct racer *racer_start(struct studio *studio, enum race which, int i)
{
	struct racer *r = calloc(1, sizeof *r);

	assert_non_null(r);
	*r = (struct racer){.studio = studio, .race = which, .i = i, .delay_us = which == AGAINST_CLAIM ? 500 : 5000};
	r->caller = caller_new(&studio->fleet, (uint64_t)i);
	r->starting = caller_new(&studio->fleet, (uint64_t)(RACERS + i));
	pthread_barrier_init(&r->go, NULL, 2);
	pthread_barrier_init(&r->done, NULL, 2);
	assert_int_equal(pthread_create(&r->starter, NULL, start_all, r), 0);
	assert_int_equal(pthread_create(&r->thread, NULL, race, r), 0);
	return r;
}

/* Returns what it has paid. */
static int64_t racer_join(struct racer *r, char wrong[600])
{
	int64_t paid;

	pthread_join(r->thread, NULL);
	pthread_join(r->starter, NULL);
	if (r->wrong[0] && !wrong[0])
		memcpy(wrong, r->wrong, sizeof r->wrong);
	paid = r->paid;
	caller_free(r->caller);
	caller_free(r->starting);
	pthread_barrier_destroy(&r->go);
	pthread_barrier_destroy(&r->done);
	free(r);
	return paid;
}

/* Returns the looks of the observer. */
static void run_races(struct studio *studio, enum race which)
{
	struct racer *racers[RACERS];
	int64_t paid = 0;
	char wrong[600] = "";

	studio_open_account(studio, "alice", OPENING);
	for (int i = 0; i < RACERS; i++)
		racers[i] = racer_start(studio, which, i);
	for (int i = 0; i < RACERS; i++)
		paid += racer_join(racers[i], wrong);
	if (wrong[0])
		fail_msg("%s", wrong);
	assert_int_equal(studio_balance(studio, 0, "alice"), OPENING - paid);
}

static void cancel_against_claim(struct studio *studio, int nodes)
{
	int64_t cancels, claims;
	struct books_sum sum;
	size_t looks;

	studio_define(studio, &(struct studio_shape){.voids = true, .lease_ms = 10000});
	artifacts_behave(studio->artifacts, &(struct artifacts_habits){.works_ms = 20});
	studio_start(studio, nodes);
	run_races(studio, AGAINST_CLAIM);
	cancels = wins(studio, "QUEUED", "CANCELLING");
	claims = wins(studio, "QUEUED", "RUNNING");
	looks = studio_end(studio, &sum);
	printf("# cancel against claim, %zu rounds: the cancel was first %lld times, the claim %lld times, %lld were cancelled"
	       " before their start; %zu cancelled, %zu completed; %zu looks\n",
	       sum.batches, (long long)cancels, (long long)claims, (long long)sum.batches - cancels - claims,
	       sum.cancelled, sum.completed, looks);
	assert_int_equal(sum.batches, ROUNDS);
	assert_true(cancels >= WINS_MIN && claims >= WINS_MIN);
}

static void cancel_against_completion(struct studio *studio, int nodes)
{
	int64_t cancels, completions;
	struct books_sum sum;
	size_t looks;

	studio_define(studio, &(struct studio_shape){.voids = true, .lease_ms = 10000});
	studio_start(studio, nodes);
	run_races(studio, AGAINST_COMPLETION);
	cancels = wins(studio, "RUNNING", "CANCELLING");
	completions = wins(studio, "RUNNING", "COMPLETED");
	looks = studio_end(studio, &sum);
	printf("# cancel against completion, %zu rounds: the cancel was first %lld times, the completion %lld times, %lld were"
	       " cancelled before their claim; %lld charged, %lld refunded; %zu looks\n",
	       sum.batches, (long long)cancels, (long long)completions, (long long)sum.batches - cancels - completions,
	       (long long)sum.charged, (long long)sum.refunded, looks);
	assert_int_equal(sum.batches, ROUNDS);
	assert_int_equal(sum.completed, completions);
	assert_true(cancels >= WINS_MIN && completions >= WINS_MIN);
}

static void test_cancel_against_claim_sqlite(void **state)
{
	cancel_against_claim(*state, 1);
}

static void test_cancel_against_claim_postgres(void **state)
{
	cancel_against_claim(*state, 2);
}

static void test_cancel_against_completion_sqlite(void **state)
{
	cancel_against_completion(*state, 1);
}

static void test_cancel_against_completion_postgres(void **state)
{
	cancel_against_completion(*state, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_cancel_against_claim_sqlite, studio_set_up_sqlite,
						studio_tear_down),
		cmocka_unit_test_setup_teardown(test_cancel_against_completion_sqlite, studio_set_up_sqlite,
						studio_tear_down),
		cmocka_unit_test_setup_teardown(test_cancel_against_claim_postgres, studio_set_up_postgres,
						studio_tear_down),
		cmocka_unit_test_setup_teardown(test_cancel_against_completion_postgres, studio_set_up_postgres,
						studio_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
