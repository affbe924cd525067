/*
 * kill -9 of the gate, KILLS times around the completion of a request, on one SQLite file that lives through all of it.
 *
 *   start the gate ─▶ clients send one key after the other ─▶ the service answers its n-th call (or, one life of four,
 *          ▲                                                   has it and has not answered) ─▶ a moment ─▶ SIGKILL
 *          └── every key of that life is sent again: what may it be answered? ◀── start it on the same file ◀───┘
 *
 *   the client has read            the retry gets                                       calls of the service
 *   a whole 2xx                    the same bytes, replayed                             1
 *   nothing, or not all of it      replayed: it was stored and not yet said             1
 *                                  409: it is not known whether it was done             0 or 1
 *                                  created: the key had not been taken                  1
 *
 * The service runs in this process and lives on; its thread that has just answered is the one that kills, so that the
 * aim is microseconds. When a kill fell is read from clocks afterwards: between the service's answer and the client's
 * are those for which the service had sent its answer before the signal, and its client never read it whole.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "support/await.h"
#include "support/gate_process.h"
#include "support/soak.h"

#define KILLS soak_or(200, 80)
#define KILLS_BETWEEN_MIN (KILLS / 4)
#define CLIENTS 4
#define ORDERS_MAX 40 /* of one client in one life */
#define CALLS_BEFORE_KILL_MAX 10
#define DELAY_US_MAX 2000
#define WAIT_MS 60000
#define PATH "/payments"

/* One key. */
struct order {
	char key[GATE_KEY_BYTES];
	_Atomic int64_t answered_ns; /* when the service had sent its answer; 0: it has not */
	struct reply reply;          /* status 0: not read, or not whole */
};

struct life {
	struct order orders[CLIENTS][ORDERS_MAX];
	size_t orders_n[CLIENTS];
};

struct chaos {
	struct gates *gates;
	struct life *lives; /* all of them: what was promised is asked for once more at the end */
	struct life *life;  /* the current one */
	int life_n;
	uint64_t random;
	/* The aim: the n-th call, at its arrival or its answer, and the delay from there. */
	int kill_at;
	bool at_arrival;
	int64_t delay_us;
	_Atomic int arrived, answered;
	_Atomic int64_t killed_ns; /* just before the signal; 0: not yet */
};

static uint64_t draw(struct chaos *c, uint64_t below)
{
	c->random ^= c->random << 13;
	c->random ^= c->random >> 7;
	c->random ^= c->random << 17;
	return (c->random >> 16) % below;
}

static int64_t now_ns(void)
{
	return clock_mono(clock_system()).ns;
}

/* ---- the service's threads ---- */

static struct order *order_of(struct chaos *c, const struct service_call *call)
{
	const char *numbers = strrchr(call->key, '/');
	unsigned life, client, n;

	if (!numbers || sscanf(numbers, "/%u.%u.%u", &life, &client, &n) != 3 || (int)life != c->life_n)
		return NULL;
	return &c->life->orders[client][n];
}

static void kill_gate(struct chaos *c)
{
	nanosleep(&(struct timespec){.tv_nsec = c->delay_us * 1000}, NULL);
	atomic_store(&c->killed_ns, now_ns());
	kill(c->gates->gate[0]->pid, SIGKILL);
}

static void on_call(void *context, const struct service_call *call)
{
	struct chaos *c = context;

	(void)call;
	if (atomic_fetch_add(&c->arrived, 1) + 1 == c->kill_at && c->at_arrival)
		kill_gate(c);
}

static void on_answered(void *context, const struct service_call *call)
{
	struct chaos *c = context;
	struct order *order = order_of(c, call);

	if (order)
		atomic_store(&order->answered_ns, now_ns());
	if (atomic_fetch_add(&c->answered, 1) + 1 == c->kill_at && !c->at_arrival)
		kill_gate(c);
}

/* ---- clients ---- */

struct buyer {
	struct chaos *chaos;
	unsigned i;
	pthread_t thread;
};

static void post_order(struct client *client, const struct order *order, struct reply *ret_reply)
{
	char body[GATE_KEY_BYTES + 40];

	snprintf(body, sizeof body, "{\"id\":\"%s\"}", order->key);
	gate_post(client, PATH, order->key, body, ret_reply);
}

/* One key after the other, until the gate is no more. */
static void *buy(void *context)
{
	struct buyer *buyer = context;
	struct chaos *c = buyer->chaos;
	struct client *client = client_new(c->gates->gate[0]->port, NULL);
	struct order *order;

	for (unsigned n = 0; n < ORDERS_MAX; n++) {
		order = &c->life->orders[buyer->i][n];
		gates_key(c->gates, order->key, "/%d.%u.%u", c->life_n, buyer->i, n);
		c->life->orders_n[buyer->i] = n + 1;
		post_order(client, order, &order->reply);
		if (order->reply.status == 0)
			break;
	}
	client_free(client);
	return NULL;
}

/* ---- one life ---- */

static void take_aim(struct chaos *c)
{
	c->kill_at = 1 + (int)draw(c, CALLS_BEFORE_KILL_MAX);
	c->at_arrival = c->life_n % 4 == 0;
	c->delay_us = (int64_t)draw(c, DELAY_US_MAX);
	atomic_store(&c->arrived, 0);
	atomic_store(&c->answered, 0);
	atomic_store(&c->killed_ns, 0);
}

static void live_and_die(struct chaos *c)
{
	struct buyer buyers[CLIENTS];

	for (unsigned i = 0; i < CLIENTS; i++) {
		buyers[i] = (struct buyer){.chaos = c, .i = i};
		assert_int_equal(pthread_create(&buyers[i].thread, NULL, buy, &buyers[i]), 0);
	}
	AWAIT(WAIT_MS, atomic_load(&c->killed_ns) != 0);
	for (unsigned i = 0; i < CLIENTS; i++)
		pthread_join(buyers[i].thread, NULL);
	serve_kill(c->gates->gate[0]); /* it is dead already: now it is gone */
}

/* ---- what is said after the restart ---- */

struct sum {
	size_t acknowledged, replayed, refused, created; /* the last three: of those that were not acknowledged */
	size_t between, kills_between;
};

static bool is_acknowledged(const struct order *order)
{
	return order->reply.status == 201;
}

static void check_order(struct chaos *c, struct client *client, const struct order *order, struct sum *sum)
{
	struct reply again;
	size_t calls;

	if (order->reply.status && !reply_is(&order->reply, 201, "created"))
		fail_msg("%s at first: %s%s", order->key, order->reply.head, order->reply.body);
	post_order(client, order, &again);
	calls = service_count(c->gates->service, PATH, order->key);
	if (is_acknowledged(order)) {
		if (!reply_is(&again, 201, "replayed") || !reply_same(&again, &order->reply))
			fail_msg("%s was acknowledged as %s, and then: %s%s", order->key, order->reply.body, again.head,
				 again.body ? again.body : "none");
		sum->acknowledged++;
	} else if (reply_is(&again, 201, "replayed")) {
		sum->replayed++;
	} else if (reply_is(&again, 409, "conflict")) {
		sum->refused++;
	} else if (reply_is(&again, 201, "created")) {
		sum->created++;
	} else {
		fail_msg("%s after the kill: %s%s", order->key, again.head, again.body ? again.body : "none");
	}
	if (calls > 1 || (again.status == 201 && calls != 1))
		fail_msg("%s: %zu calls, and then %d", order->key, calls, again.status);
	/* What it was told is what the one call was answered with. */
	if (again.status == 201 && (!strstr(again.body, "{\"call\":") || !strstr(again.body, order->key)))
		fail_msg("%s: not the service's answer: %s", order->key, again.body);
	reply_release(&again);
}

static void check_life(struct chaos *c, struct sum *sum)
{
	struct client *client = client_new(c->gates->gate[0]->port, NULL);
	int64_t killed_ns = atomic_load(&c->killed_ns);
	size_t between = 0;

	for (unsigned i = 0; i < CLIENTS; i++)
		for (size_t n = 0; n < c->life->orders_n[i]; n++) {
			struct order *order = &c->life->orders[i][n];
			int64_t answered_ns = atomic_load(&order->answered_ns);

			between += answered_ns && answered_ns < killed_ns && !is_acknowledged(order);
			check_order(c, client, order, sum);
		}
	sum->between += between;
	sum->kills_between += between > 0;
	client_free(client);
}

/* Nothing that was promised in any life has been lost in a later one. */
static size_t check_all_again(struct chaos *c)
{
	struct client *client = client_new(c->gates->gate[0]->port, NULL);
	struct reply again;
	size_t checked = 0;

	for (size_t at = 0; at < (size_t)KILLS * CLIENTS; at++) {
		struct life *life = &c->lives[at / CLIENTS];

		for (size_t n = 0; n < life->orders_n[at % CLIENTS]; n++) {
			struct order *order = &life->orders[at % CLIENTS][n];

			if (!is_acknowledged(order))
				continue;
			post_order(client, order, &again);
			if (!reply_is(&again, 201, "replayed") || !reply_same(&again, &order->reply))
				fail_msg("%s at the end: %s", order->key, again.head);
			reply_release(&again);
			checked++;
		}
	}
	client_free(client);
	return checked;
}

static void what_was_answered_is_answered_again(void **state)
{
	struct chaos *c = *state;
	struct sum sum = {0};
	size_t checked;

	service_play(
		c->gates->service, PATH,
		&(struct play){.status = 201, .receipt = true, .hook = on_call, .answered = on_answered, .context = c});
	for (c->life_n = 0; c->life_n < KILLS; c->life_n++) {
		c->life = &c->lives[c->life_n];
		take_aim(c);
		live_and_die(c);
		c->kill_at = 0; /* no more */
		gates_start(c->gates, 0);
		check_life(c, &sum);
	}
	checked = check_all_again(c);
	printf("# kill -9 of the gate: %d kills, %zu of them between the service's answer and the client's (%zu requests); "
	       "%zu answers read before a kill, all replayed after it and again at the end; of the others %zu were "
	       "stored and replayed, %zu x 409, %zu had not begun; no key called twice\n",
	       KILLS, sum.kills_between, sum.between, checked, sum.replayed, sum.refused, sum.created);
	assert_int_equal(checked, sum.acknowledged);
	assert_true(sum.kills_between >= (size_t)KILLS_BETWEEN_MIN);
}

/* ---- set up ---- */

static int set_up(void **state)
{
	struct chaos *c = calloc(1, sizeof *c);

	assert_non_null(c);
	*state = c;
	c->random = 0x9e3779b97f4a7c15u;
	c->lives = calloc(KILLS, sizeof *c->lives);
	assert_non_null(c->lives);
	c->gates = gates_new(GATES_SQLITE, 1, "{}");
	return 0;
}

static int tear_down(void **state)
{
	struct chaos *c = *state;

	gates_free(c->gates);
	for (size_t at = 0; at < (size_t)KILLS * CLIENTS; at++)
		for (size_t n = 0; n < ORDERS_MAX; n++)
			reply_release(&c->lives[at / CLIENTS].orders[at % CLIENTS][n].reply);
	free(c->lives);
	free(c);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_was_answered_is_answered_again, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
