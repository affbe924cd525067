/*
 * Random kills over many batches: one node on SQLite, started again at once, or three on one PostgreSQL. Customers create
 * batches, wait, accept an item now and then, and cancel most of them; others put money into the accounts, which run dry. The
 * service fails, refuses, and forgets to answer. Whoever asks tries again until it is answered.
 *
 *   told 200 or 202 by a cancel   the batch ends CANCELLED, with everything given back that was not accepted
 *   told ALREADY_COMPLETED        it is COMPLETED, as is every batch that nobody has cancelled
 *   told 201 or 200 by a create   it is there, with all of its items, once per key
 *   an item was accepted          it is, and stays paid
 *   a credit was answered         it is in the ledger, once
 *
 * The observer looks all the while; what else must be true then is in support/books.h and support/artifacts.h.
 *
 * 40 kills; with HAPAX_SOAK 1,000.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "flow/batch.h"
#include "support/await.h"
#include "support/soak.h"
#include "support/studio.h"

#define KILLS soak_or(1000, 40)
#define CUSTOMERS 8
#define OPEN_MAX 5 /* batches that a customer has under way */
#define BATCHES_PER_CUSTOMER 2000
#define ACCOUNTS 3
#define OPENING 100
#define ITEMS_MAX 24
#define LARGE_ITEMS (BATCH_SLICE + 200) /* loaded in slices */
#define COST_MAX 20
#define PATIENCE_MS_MAX 800
#define LIFE_MS_MAX 250 /* of a node, on SQLite */
#define BETWEEN_KILLS_MS_MAX 120
#define CALM_MS 90000
#define WEALTH 10000000

struct order {
	char id[ID_TEXT_BYTES];
	size_t items;
	enum { NOT_CANCELLED, CANCELLED, TOO_LATE } told;
	size_t accepted;
};

struct customer {
	struct chaos *chaos;
	int i;
	pthread_t thread;
	struct caller *caller;
	size_t orders_n;
	struct order *orders;
	int64_t credited;
	size_t credits, tries;
	char wrong[600]; /* empty: nothing */
};

struct chaos {
	struct studio *studio;
	_Atomic bool stops;
	struct customer customers[CUSTOMERS];
};

static void sleep_ms(int64_t ms)
{
	nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* ---- customers: in threads ---- */

static bool go_wrong(struct customer *c, const char *what, const struct reply *reply)
{
	snprintf(c->wrong, sizeof c->wrong, "customer %d: %s: %d %.400s", c->i, what, reply->status,
		 reply->body ? reply->body : "");
	return false;
}

static int64_t draw(struct customer *c, int64_t below)
{
	return (int64_t)caller_draw(c->caller, (uint64_t)below);
}

/* One that another creation with its key is loading, which may have died: again, until it is known what became of it. */
static void call_until_loaded(struct customer *c, const char *text, struct reply *ret_reply)
{
	int64_t until_ms = await_now_ms() + 30000;

	while (c->tries += caller_call(c->caller, "POST", BATCHES, text, ret_reply),
	       ret_reply->status == 409 && await_now_ms() < until_ms) {
		reply_release(ret_reply);
		sleep_ms(50);
	}
}

static bool create(struct customer *c, struct order *order)
{
	char account[16], key[40], *text;
	struct reply reply;
	const char *id;

	snprintf(account, sizeof account, "a%d", c->i % ACCOUNTS);
	snprintf(key, sizeof key, "batch-%d-%zu", c->i, c->orders_n);
	order->items = draw(c, 25) == 0 ? LARGE_ITEMS : 1 + (size_t)draw(c, ITEMS_MAX);
	text = studio_order_text(&(struct studio_order){
		.account = account, .items = order->items, .cost = draw(c, COST_MAX + 1), .key = key});
	call_until_loaded(c, text, &reply);
	free(text);
	id = reply.status == 201 || reply.status == 200 ? strstr(reply.body, "\"id\":\"batch_") : NULL;
	if (id)
		snprintf(order->id, sizeof order->id, "%.*s", (int)strcspn(id + 6, "\""), id + 6);
	else
		go_wrong(c, "create", &reply);
	reply_release(&reply);
	return id;
}

static bool cancel(struct customer *c, struct order *order)
{
	struct reply reply;
	char path[100];
	bool known;

	snprintf(path, sizeof path, BATCHES "/%s/cancel", order->id);
	c->tries += caller_call(c->caller, "POST", path, "", &reply);
	order->told = reply.status == 200 || reply.status == 202 ? CANCELLED : TOO_LATE;
	known = order->told == CANCELLED || (reply.status == 409 && strcmp(reply.code, "ALREADY_COMPLETED") == 0);
	if (!known)
		go_wrong(c, path, &reply);
	reply_release(&reply);
	return known;
}

/* Item 0, if it is done by now. */
static bool accept(struct customer *c, struct order *order)
{
	struct reply reply;
	char path[100];
	bool known;

	snprintf(path, sizeof path, BATCHES "/%s/items/0/accept", order->id);
	c->tries += caller_call(c->caller, "POST", path, "", &reply);
	known = reply.status == 200 || reply.status == 409;
	order->accepted = reply.status == 200;
	if (!known)
		go_wrong(c, path, &reply);
	reply_release(&reply);
	return known;
}

static bool credit(struct customer *c, int64_t amount)
{
	struct reply reply;
	char path[100], body[200];
	bool done;

	snprintf(path, sizeof path, "/api/v1/accounts/a%d/credit", c->i % ACCOUNTS);
	snprintf(body, sizeof body, "{\"amount\":%lld,\"key\":\"credit-%d-%zu\"}", (long long)amount, c->i, c->credits);
	c->tries += caller_call(c->caller, "POST", path, body, &reply);
	done = reply.status == 200 || reply.status == 201;
	if (done) {
		c->credited += amount;
		c->credits++;
	} else {
		go_wrong(c, path, &reply);
	}
	reply_release(&reply);
	return done;
}

/* Large ones are always cancelled: nobody has the time to wait for them. */
static bool live_through(struct customer *c, struct order *order)
{
	bool large = order->items == LARGE_ITEMS;

	sleep_ms(draw(c, PATIENCE_MS_MAX));
	if (draw(c, 3) == 0 && !accept(c, order))
		return false;
	if (draw(c, 4) == 0 && !credit(c, 1 + draw(c, ITEMS_MAX * COST_MAX)))
		return false;
	return (!large && draw(c, 10) < 4) || cancel(c, order);
}

static bool has_ended(const struct reply *reply)
{
	return strstr(reply->body, "\"status\":\"COMPLETED\"") || strstr(reply->body, "\"status\":\"CANCELLED\"");
}

/* Whoever waits for one that has run dry pays. */
static bool wait_for(struct customer *c, const struct order *order)
{
	struct reply reply;
	char path[100];
	bool ended = false, dry, good = true;

	snprintf(path, sizeof path, BATCHES "/%s", order->id);
	while (good && !ended && !atomic_load(&c->chaos->stops)) {
		caller_call(c->caller, "GET", path, "", &reply);
		good = reply.status == 200 || go_wrong(c, path, &reply);
		ended = good && has_ended(&reply);
		dry = good && strstr(reply.body, "OUT_OF_CREDIT");
		reply_release(&reply);
		if (dry)
			good = credit(c, 1 + draw(c, ITEMS_MAX * COST_MAX));
		sleep_ms(20);
	}
	return good;
}

static void *live(void *context)
{
	struct customer *c = context;
	struct order *order;

	while (!atomic_load(&c->chaos->stops) && c->orders_n < BATCHES_PER_CUSTOMER) {
		order = &c->orders[c->orders_n];
		if (!create(c, order))
			break;
		c->orders_n++;
		if (!live_through(c, order) ||
		    (c->orders_n >= OPEN_MAX && !wait_for(c, &c->orders[c->orders_n - OPEN_MAX])))
			break;
	}
	return NULL;
}

static void start_customers(struct chaos *chaos)
{
	for (int i = 0; i < CUSTOMERS; i++) {
		struct customer *c = &chaos->customers[i];

		*c = (struct customer){.chaos = chaos,
				       .i = i,
				       .caller = caller_new(&chaos->studio->fleet, (uint64_t)(await_now_ms() + i)),
				       .orders = calloc(BATCHES_PER_CUSTOMER, sizeof *c->orders)};
		assert_int_equal(pthread_create(&c->thread, NULL, live, c), 0);
	}
}

static void join_customers(struct chaos *chaos)
{
	atomic_store(&chaos->stops, true);
	for (int i = 0; i < CUSTOMERS; i++)
		pthread_join(chaos->customers[i].thread, NULL);
	for (int i = 0; i < CUSTOMERS; i++)
		if (chaos->customers[i].wrong[0])
			fail_msg("%s", chaos->customers[i].wrong);
}

/* ---- kills ---- */

static const char *wrong_so_far(struct chaos *chaos)
{
	const char *wrong = books_wrong(chaos->studio->books);

	wrong = wrong ? wrong : artifacts_wrong(chaos->studio->artifacts);
	for (int i = 0; i < CUSTOMERS && !wrong; i++)
		wrong = chaos->customers[i].wrong[0] ? chaos->customers[i].wrong : NULL;
	return wrong;
}

static void rage(struct chaos *chaos, size_t kills)
{
	struct studio *studio = chaos->studio;
	struct caller *dice = caller_new(&studio->fleet, (uint64_t)await_now_ms());
	uint64_t pause_ms = studio->fleet.n == 1 ? LIFE_MS_MAX : BETWEEN_KILLS_MS_MAX;

	while (studio->fleet.kills < kills && !wrong_so_far(chaos)) {
		int node = (int)caller_draw(dice, (uint64_t)studio->fleet.n);

		sleep_ms((int64_t)caller_draw(dice, pause_ms));
		fleet_kill(&studio->fleet, node);
		fleet_revive(&studio->fleet, node);
	}
	caller_free(dice);
	if (wrong_so_far(chaos))
		print_message("%s\n", wrong_so_far(chaos));
}

/* ---- the end ---- */

/* Money for all that is still to be done, and a service that works. */
static void calm_down(struct chaos *chaos)
{
	char path[100], body[100];

	join_customers(chaos);
	artifacts_behave(chaos->studio->artifacts, &(struct artifacts_habits){0});
	for (int i = 0; i < ACCOUNTS; i++) {
		snprintf(path, sizeof path, "/api/v1/accounts/a%d/credit", i);
		snprintf(body, sizeof body, "{'amount':%d,'key':'wealth'}", WEALTH);
		scene_must(chaos->studio->scene, 0, "POST", path, body, 200, NULL);
	}
	studio_await_all(chaos->studio, CALM_MS);
}

static void check_order(struct chaos *chaos, const struct order *order)
{
	struct reply *reply = studio_show(chaos->studio, 0, order->id);
	int64_t charged = reply_int(reply, "charged"), refunded = reply_int(reply, "refunded");
	bool cancelled = order->told == CANCELLED;

	if (strcmp(reply_text(reply, "status"), cancelled ? "CANCELLED" : "COMPLETED") != 0 ||
	    reply_int(reply, "total") != (int64_t)order->items ||
	    reply_int(reply, "accepted") != (int64_t)order->accepted ||
	    (cancelled && !order->accepted && charged != refunded) || (!cancelled && refunded))
		fail_msg("%s, %zu items, %zu accepted, cancel %s: %s", order->id, order->items, order->accepted,
			 cancelled                 ? "accepted"
			 : order->told == TOO_LATE ? "too late"
						   : "never asked for",
			 reply->body);
}

static void check_orders(struct chaos *chaos, size_t *ret_orders, size_t *ret_tries)
{
	int64_t credited = 0, there;

	*ret_orders = *ret_tries = 0;
	for (int i = 0; i < CUSTOMERS; i++) {
		struct customer *c = &chaos->customers[i];

		for (size_t k = 0; k < c->orders_n; k++)
			check_order(chaos, &c->orders[k]);
		*ret_orders += c->orders_n;
		*ret_tries += c->tries;
		credited += c->credited;
	}
	there = studio_number(chaos->studio, "SELECT sum(amount) FROM hx_ledger WHERE reason = 'credit'");
	assert_int_equal(there, credited + (int64_t)ACCOUNTS * WEALTH);
}

static void free_customers(struct chaos *chaos)
{
	for (int i = 0; i < CUSTOMERS; i++) {
		caller_free(chaos->customers[i].caller);
		free(chaos->customers[i].orders);
	}
}

static void begin(struct chaos *chaos, struct studio *studio, int nodes)
{
	char account[16];

	chaos->studio = studio;
	studio_define(studio, &(struct studio_shape){.voids = true});
	artifacts_behave(studio->artifacts,
			 &(struct artifacts_habits){.fails = 6, .refuses = 2, .drops = 3, .works_ms = 40});
	studio_start(studio, nodes);
	for (int i = 0; i < ACCOUNTS; i++) {
		snprintf(account, sizeof account, "a%d", i);
		studio_open_account(studio, account, OPENING);
	}
	start_customers(chaos);
}

static void random_kills(struct studio *studio, int nodes)
{
	struct chaos chaos = {0};
	struct books_sum sum;
	size_t orders, tries, looks;
	int64_t from_ms = await_now_ms(), calm_ms, calmed_ms, dry;

	begin(&chaos, studio, nodes);
	rage(&chaos, KILLS);
	calm_ms = await_now_ms();
	calm_down(&chaos);
	calmed_ms = await_now_ms();
	check_orders(&chaos, &orders, &tries);
	dry = studio_number(studio, "SELECT count(*) FROM hx_history WHERE to_status = 'OUT_OF_CREDIT'");
	looks = studio_end(studio, &sum);
	printf("# batch kill: %zu kills in %lld ms, all batches at their end %lld ms later; %zu batches in %zu calls: %zu completed,"
	       " %zu cancelled (and %zu whose loader was lost)\n",
	       studio->fleet.kills, (long long)(calm_ms - from_ms), (long long)(calmed_ms - calm_ms), orders, tries,
	       sum.completed, sum.cancelled, sum.failed);
	printf("# batch kill: %zu items, %lld charged, %lld refunded, %zu artifacts made, %zu there, %zu repeated calls, %zu takeovers,"
	       " %lld times out of credit, %zu late; %zu looks, none wrong\n",
	       sum.items, (long long)sum.charged, (long long)sum.refunded, artifacts_made(studio->artifacts),
	       artifacts_there(studio->artifacts), artifacts_repeated(studio->artifacts), studio_takeovers(studio),
	       (long long)dry, sum.late, looks);
	assert_int_equal(sum.batches, orders);
	assert_true(sum.completed > 0 && sum.cancelled > 0 && studio_takeovers(studio) > 0 && sum.refunded > 0);
	assert_true(artifacts_repeated(studio->artifacts) > 0 && dry > 0);
	free_customers(&chaos);
}

static void test_random_kills_sqlite(void **state)
{
	random_kills(*state, 1);
}

static void test_random_kills_postgres(void **state)
{
	random_kills(*state, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_random_kills_sqlite, studio_set_up_sqlite, studio_tear_down),
		cmocka_unit_test_setup_teardown(test_random_kills_postgres, studio_set_up_postgres, studio_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
