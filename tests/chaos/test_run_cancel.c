/*
 * Runs are cancelled at any moment of their life while the nodes that drive them are killed with -9. Three nodes on one
 * PostgreSQL, four steps, each with a compensation. Whoever cancels tries again at another node until it is answered.
 *
 *   told 200 or 202          the run ends CANCELLED, every effect that was applied has been undone, once, the last one first
 *   told ALREADY_COMPLETED   the run is COMPLETED, with all of its effects, and nothing was undone
 *
 * An effect that was applied by a node that died before it could say so is one of them: the run finds out by asking again,
 * with the same key, and then undoes it.
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
#include "support/fleet.h"
#include "support/soak.h"

#define NODES 3
#define KILLS soak_or(40, 20)
#define KILL_EVERY_MS 300
#define CUSTOMERS 8
#define RUNS_MAX 400 /* of one customer */
#define PATIENCE_MS_MAX 500
#define STEPS 4
#define CALM_MS 60000
#define RUNS "/api/v1/workflow-runs"

static const char *const step_names[STEPS] = {"a", "b", "c", "d"};

static const char definition[] =
	"{'workflow':'trip','kind':'run','actions':{"
	"'A':{'kind':'http','url':'@/a','effect':'keyed'},'B':{'kind':'http','url':'@/b','effect':'keyed'},"
	"'C':{'kind':'http','url':'@/c','effect':'keyed'},'D':{'kind':'http','url':'@/d','effect':'keyed'},"
	"'Undo':{'kind':'http','url':'@/undo','effect':'keyed'}},'steps':["
	"{'name':'a','type':'task','action':'A','compensate':'Undo','retry':{'max_attempts':1000,'initial':'100ms'}},"
	"{'name':'b','type':'task','action':'B','compensate':'Undo','retry':{'max_attempts':1000,'initial':'100ms'}},"
	"{'name':'c','type':'task','action':'C','compensate':'Undo','retry':{'max_attempts':1000,'initial':'100ms'}},"
	"{'name':'d','type':'task','action':'D','compensate':'Undo','retry':{'max_attempts':1000,'initial':'100ms'}}]}";

struct trip {
	char id[ID_TEXT_BYTES];
	bool cancelled; /* as its customer was told; else: it had been completed */
};

struct chaos;

struct customer {
	struct chaos *chaos;
	int i;
	pthread_t thread;
	size_t trips_n;
	struct trip trips[RUNS_MAX];
	char wrong[600]; /* empty: nothing */
};

struct chaos {
	struct fleet fleet;
	struct effects *effects;
	struct caller *dice;
	_Atomic bool stops;
	bool travelling; /* the threads are there */
	struct customer customers[CUSTOMERS];
};

static void sleep_ms(int64_t ms)
{
	nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* ---- customers: in threads ---- */

static bool go_wrong(struct customer *customer, const char *what, const struct reply *reply)
{
	snprintf(customer->wrong, sizeof customer->wrong, "%s: %d %.400s", what, reply->status,
		 reply->body ? reply->body : "");
	return false;
}

static bool book(struct customer *customer, struct caller *caller, struct trip *trip)
{
	struct reply reply;
	char body[200];
	const char *id;
	bool booked;

	snprintf(body, sizeof body, "{\"definitionId\":\"trip\",\"idempotencyKey\":\"trip-%d-%zu\"}", customer->i,
		 customer->trips_n);
	caller_call(caller, "POST", RUNS, body, &reply);
	booked = (reply.status == 201 || reply.status == 200) && (id = strstr(reply.body, "\"id\":\"run_"));
	if (booked)
		snprintf(trip->id, sizeof trip->id, "%.*s", (int)strcspn(id + 6, "\""), id + 6);
	else
		go_wrong(customer, "create", &reply);
	reply_release(&reply);
	return booked;
}

static bool cancel(struct customer *customer, struct caller *caller, struct trip *trip)
{
	struct reply reply;
	char path[100];
	bool known;

	snprintf(path, sizeof path, RUNS "/%s/cancel", trip->id);
	caller_call(caller, "POST", path, "", &reply);
	trip->cancelled = reply.status == 200 || reply.status == 202;
	known = trip->cancelled || (reply.status == 409 && strcmp(reply.code, "ALREADY_COMPLETED") == 0);
	if (!known)
		go_wrong(customer, path, &reply);
	reply_release(&reply);
	return known;
}

static void *travel(void *context)
{
	struct customer *customer = context;
	struct caller *caller = caller_new(&customer->chaos->fleet, (uint64_t)customer->i);
	struct trip *trip;

	while (!atomic_load(&customer->chaos->stops) && customer->trips_n < RUNS_MAX) {
		trip = &customer->trips[customer->trips_n];
		if (!book(customer, caller, trip))
			break;
		sleep_ms((int64_t)caller_draw(caller, PATIENCE_MS_MAX));
		if (!cancel(customer, caller, trip))
			break;
		customer->trips_n++;
	}
	caller_free(caller);
	return NULL;
}

static void start_customers(struct chaos *c)
{
	for (int i = 0; i < CUSTOMERS; i++) {
		c->customers[i].chaos = c;
		c->customers[i].i = i;
		assert_int_equal(pthread_create(&c->customers[i].thread, NULL, travel, &c->customers[i]), 0);
	}
	c->travelling = true;
}

static void join_customers(struct chaos *c)
{
	atomic_store(&c->stops, true);
	for (int i = 0; c->travelling && i < CUSTOMERS; i++)
		pthread_join(c->customers[i].thread, NULL);
	c->travelling = false;
}

/* ---- what is true in the end ---- */

struct sum {
	size_t cancelled, completed, undone;
};

static int64_t receipt(struct chaos *c, const struct trip *trip, size_t step, const char *which)
{
	char key[120];

	snprintf(key, sizeof key, "%s/%s/%s", trip->id, step_names[step], which);
	return (int64_t)effects_receipt(c->effects, key);
}

/* What was applied has been undone, in reverse order. */
static void check_cancelled(struct chaos *c, const struct trip *trip, struct sum *sum)
{
	int64_t last = INT64_MAX;

	for (size_t step = 0; step < STEPS; step++) {
		int64_t done = receipt(c, trip, step, "0"), undone = receipt(c, trip, step, "undo");

		if ((done != 0) != (undone != 0))
			fail_msg("%s was cancelled, and its step %s was %s", trip->id, step_names[step],
				 done ? "never undone" : "undone without having been done");
		if (undone && (undone < done || undone > last))
			fail_msg("%s: %s was undone out of order", trip->id, step_names[step]);
		last = undone ? undone : last;
		sum->undone += undone != 0;
	}
	sum->cancelled++;
}

static void check_completed(struct chaos *c, const struct trip *trip, struct sum *sum)
{
	for (size_t step = 0; step < STEPS; step++)
		if (!receipt(c, trip, step, "0") || receipt(c, trip, step, "undo"))
			fail_msg("%s is COMPLETED, and its step %s is not done, or was undone", trip->id,
				 step_names[step]);
	sum->completed++;
}

static void check_trip(struct chaos *c, const struct trip *trip, struct sum *sum)
{
	char path[100];

	snprintf(path, sizeof path, RUNS "/%s", trip->id);
	scene_must(c->fleet.scene, 0, "GET", path, NULL, 200, NULL);
	if (strcmp(reply_text(&c->fleet.scene->last, "status"), trip->cancelled ? "CANCELLED" : "COMPLETED") != 0)
		fail_msg("it was %s: %s", trip->cancelled ? "cancelled" : "completed", c->fleet.scene->last.body);
	if (trip->cancelled)
		check_cancelled(c, trip, sum);
	else
		check_completed(c, trip, sum);
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

static void test_cancelled_runs_undo_what_they_did(void **state)
{
	struct chaos *c = *state;
	struct sum sum = {0};

	start_customers(c);
	rage(c);
	join_customers(c);
	for (int i = 0; i < CUSTOMERS; i++)
		assert_string_equal(c->customers[i].wrong, "");
	fleet_await_runs(&c->fleet, CALM_MS, /* wrong= */ NULL, NULL);
	for (int i = 0; i < CUSTOMERS; i++)
		for (size_t n = 0; n < c->customers[i].trips_n; n++)
			check_trip(c, &c->customers[i].trips[n], &sum);
	assert_null(effects_wrong(c->effects));
	printf("# run cancel: %zu kills; %zu runs cancelled, %zu effects undone once each, %zu runs had been completed; %zu "
	       "repeated calls\n",
	       c->fleet.kills, sum.cancelled, sum.undone, sum.completed, effects_repeated(c->effects));
	assert_true(sum.cancelled > 0 && sum.completed > 0 && sum.undone > 0 && effects_repeated(c->effects) > 0);
	fleet_stop(&c->fleet);
}

static int set_up(void **state)
{
	static const struct {
		const char *path;
		int64_t delay_ms;
	} plays[] = {{"/a", 10}, {"/b", 50}, {"/c", 100}, {"/d", 50}, {"/undo", 30}};
	struct chaos *c = calloc(1, sizeof *c);
	struct scene *scene;
	void *made = NULL;

	assert_non_null(c);
	*state = c;
	scene_set_up_postgres(&made);
	c->fleet.scene = scene = made;
	c->effects = effects_new();
	c->dice = caller_new(&c->fleet, (uint64_t)await_now_ms());
	for (size_t i = 0; i < sizeof plays / sizeof *plays; i++)
		service_play(
			scene->service, plays[i].path,
			&(struct play){.apply = effects_apply, .context = c->effects, .delay_ms = plays[i].delay_ms});
	scene_define(scene, "trip", definition);
	scene_configure(scene, "{'lease':'2s'}");
	fleet_start(&c->fleet, scene, NODES);
	return 0;
}

static int tear_down(void **state)
{
	struct chaos *c = *state;
	void *scene = c->fleet.scene;

	join_customers(c);
	caller_free(c->dice);
	scene_tear_down(&scene);
	effects_free(c->effects);
	free(c);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_cancelled_runs_undo_what_they_did, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
