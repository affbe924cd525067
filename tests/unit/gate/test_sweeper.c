/* The sweeper over a store that counts its asks and answers as each test wants; the real stores are test_home.c's. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/duration.h"
#include "gate/sweeper.h"
#include "support/await.h"

#define AWAIT_MS 60000

struct counter {
	struct gate_store store;
	_Atomic int asked;
	_Atomic bool silent; /* keeps the ticket instead of answering */
	struct gate_ticket *_Atomic kept;
	int full_n; /* so many full slices, then empty ones */
	int lost;   /* this ask is not answered with a verdict, from 1 on */
};

static void ask(struct gate_store *store, struct gate_ticket *ticket)
{
	struct counter *c = (struct counter *)store;
	int n = atomic_fetch_add(&c->asked, 1) + 1;

	assert_int_equal(ticket->ask.op, GATE_SWEEP);
	assert_int_equal(ticket->ask.budget, SWEEP_BUDGET);
	assert_int_equal(ticket->ask.turn_ms, SWEEP_TURN_MS);
	ticket->reply = (struct gate_reply){.verdict = n == c->lost ? GATE_UNAVAILABLE : GATE_DONE,
					    .removed = n <= c->full_n ? SWEEP_BUDGET : 0};
	if (c->silent)
		atomic_store(&c->kept, ticket);
	else
		ticket->done(ticket);
}

static const struct gate_store_kind kind = {.name = "counter", .ask = ask};

static struct gate_sweeper *start(struct counter *c, int64_t every_ms)
{
	struct gate_sweeper *sweeper = NULL;
	struct hx_error err;

	c->store.kind = &kind;
	if (gate_sweeper_new(&c->store, every_ms, /* held= */ NULL, &sweeper, &err))
		fail_msg("%s", err.detail);
	return sweeper;
}

/* Twenty-one slices in less than as many rounds: they did not wait for the next one. */
static void a_full_slice_is_followed_by_another(void **state)
{
	struct counter c = {.full_n = 20};
	int64_t started = await_now_ms();
	struct gate_sweeper *sweeper = start(&c, 1000);

	(void)state;
	AWAIT(AWAIT_MS, c.asked >= 21);
	assert_true(await_now_ms() - started < 20000);
	gate_sweeper_free(sweeper);
}

static void every_round_has_its_slice(void **state)
{
	struct counter c = {0};
	struct gate_sweeper *sweeper = start(&c, 1);

	(void)state;
	AWAIT(AWAIT_MS, c.asked >= 5);
	gate_sweeper_free(sweeper);
}

static void a_store_that_cannot_be_reached_is_asked_again(void **state)
{
	struct counter c = {.lost = 1};
	struct gate_sweeper *sweeper = start(&c, 1);

	(void)state;
	AWAIT(AWAIT_MS, c.asked >= 2);
	gate_sweeper_free(sweeper);
}

static void it_ends_in_the_middle_of_its_rest(void **state)
{
	struct counter c = {0};

	(void)state;
	gate_sweeper_free(start(&c, DURATION_MS_MAX));
	gate_sweeper_free(NULL);
	assert_int_equal(c.asked, 0);
}

static void *answer(void *context)
{
	struct counter *c = context;

	c->silent = false;
	c->kept->done(c->kept);
	return NULL;
}

static void it_ends_when_its_slice_is_answered(void **state)
{
	struct counter c = {.silent = true};
	struct gate_sweeper *sweeper = start(&c, 1);
	pthread_t thread;

	(void)state;
	AWAIT(AWAIT_MS, c.kept);
	assert_int_equal(pthread_create(&thread, NULL, answer, &c), 0);
	gate_sweeper_free(sweeper);
	pthread_join(thread, NULL);
	assert_false(c.silent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_slice_is_followed_by_another),
		cmocka_unit_test(every_round_has_its_slice),
		cmocka_unit_test(a_store_that_cannot_be_reached_is_asked_again),
		cmocka_unit_test(it_ends_in_the_middle_of_its_rest),
		cmocka_unit_test(it_ends_when_its_slice_is_answered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
