/*
 * The contract of gate/store.h, the same for every store: memory, SQLite, PostgreSQL, Redis, and one of a user's own
 * (support/user_store.h). Where a store can be shared, two services stand for two gates. Here: many asks at
 * once, many at random, and a store that is down.
 */
#include <pthread.h>

#include "gate_stores.h"

#define CALLERS 50
#define ROUNDS 20
#define RACES 1000
#define DOWN_MS_MAX 20000 /* how long a store may take to say that it is down */
#define BACK_MS_MAX 60000

/* ---- random steps ---- */

#define STEPS 3000
#define KEYS 7
#define HOLDERS 4

static uint64_t dice(uint64_t *seed, uint64_t sides)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (*seed >> 33) % sides;
}

static struct gate_ask random_ask(struct place *p, const struct hx_gate_claim holders[KEYS][HOLDERS], uint64_t *seed)
{
	static const enum gate_op ops[] = {GATE_ACQUIRE,  GATE_ACQUIRE, GATE_ACQUIRE,
					   GATE_COMPLETE, GATE_REMOVE,  GATE_SWEEP};
	static const char *const responses[] = {"", "a", "bb"};
	/* SQL sweeps what was completed early a little late, which nobody but the sweep sees. */
	size_t ops_n = sizeof ops / sizeof *ops - (p->kind != PLACE_MEMORY);
	struct gate_ask ask = ask_of(ops[dice(seed, ops_n)], &holders[dice(seed, KEYS)][dice(seed, HOLDERS)]);

	ask.response = slice_str(responses[dice(seed, 3)]);
	ask.budget = KEYS; /* all: which of them go first is the store's own affair */
	ask.claim.hold = dice(seed, 10) == 0;
	ask.claim.lease_ms = 1 + (int64_t)dice(seed, 40);
	ask.claim.ttl_ms = 1 + (int64_t)dice(seed, 60);
	return ask;
}

/* The same steps in the store and in the user's array, which is too simple to be wrong: the same answers. */
static void random_steps_are_answered_as_by_the_simplest_store(void **state)
{
	struct place *p = *state;
	struct user_store *u = user_store_new(&p->moved.clock);
	struct gate_store *model = NULL;
	struct hx_gate_claim holders[KEYS][HOLDERS];
	uint64_t seed = 42;
	size_t counts[GATE_UNAVAILABLE + 1] = {0};

	assert_int_equal(gate_user_new(user_store_table(u), &p->moved.clock, &model, /* err= */ NULL), HX_OK);
	for (unsigned key = 0; key < KEYS; key++)
		for (unsigned i = 0; i < HOLDERS; i++)
			holders[key][i] = claim_of(key, /* fingerprint= */ i == 3, 0, 0);
	for (unsigned key = 0; key < KEYS; key++) /* two who are known, one who is not */
		for (unsigned i = 0; i < HOLDERS; i++)
			holders[key][i].caller[0] = (unsigned char)(i % 3);
	for (int step = 0; step < STEPS; step++) {
		struct gate_ask ask = random_ask(p, holders, &seed);
		struct heard wanted;

		counts[hear(model, &ask, &wanted)]++;
		(void)hear(node_of(p, 0), &ask, &heard);
		if (heard.reply.verdict != wanted.reply.verdict ||
		    (wanted.reply.verdict != GATE_ACQUIRED && heard.reply.created_ms != wanted.reply.created_ms) ||
		    heard.reply.removed != wanted.reply.removed ||
		    memcmp(heard.response_digest, wanted.response_digest, SHA256_BYTES) != 0 ||
		    (wanted.reply.verdict == GATE_IN_FLIGHT && heard.reply.lease_left_ms != wanted.reply.lease_left_ms))
			fail_msg("step %d, op %d: %d (%lld) instead of %d (%lld)", step, ask.op, heard.reply.verdict,
				 (long long)heard.reply.removed, wanted.reply.verdict, (long long)wanted.reply.removed);
		pass_ms(p, (int64_t)dice(&seed, 6));
	}
	for (enum gate_verdict verdict = 0; verdict <= GATE_DONE; verdict++)
		assert_true(counts[verdict] > 20); /* it has been everywhere */
	gate_store_free(model);
	user_store_free(u);
}

/* ---- crowds ---- */

static pthread_barrier_t barrier;

struct racer {
	pthread_t thread;
	struct gate_store *store;
	size_t n;
	struct question *questions; /* n of them, one for each round */
	struct gate_ask *asks;
};

/* Each round: all ask at once. */
static void *race(void *context)
{
	struct racer *racer = context;

	for (size_t i = 0; i < racer->n; i++) {
		pthread_barrier_wait(&barrier);
		question_send(&racer->questions[i], racer->store, &racer->asks[i]);
	}
	return NULL;
}

static void run_race(struct place *p, struct racer *racers, size_t racers_n)
{
	pthread_barrier_init(&barrier, NULL, (unsigned)racers_n);
	for (size_t i = 0; i < racers_n; i++) {
		racers[i].store = node_of(p, i);
		assert_int_equal(pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
	}
	for (size_t i = 0; i < racers_n; i++)
		pthread_join(racers[i].thread, NULL);
	pthread_barrier_destroy(&barrier);
}

static size_t count_verdicts(struct racer *racers, size_t racers_n, size_t round, enum gate_verdict verdict)
{
	size_t count = 0;

	for (size_t i = 0; i < racers_n; i++)
		count += question_await(&racers[i].questions[round])->reply.verdict == verdict;
	return count;
}

static void racers_init(struct racer *racers, size_t racers_n, size_t rounds)
{
	for (size_t i = 0; i < racers_n; i++) {
		racers[i] = (struct racer){.n = rounds};
		racers[i].questions = calloc(rounds, sizeof *racers[i].questions);
		racers[i].asks = calloc(rounds, sizeof *racers[i].asks);
		assert_true(racers[i].questions && racers[i].asks);
	}
}

static void racers_release(struct racer *racers, size_t racers_n)
{
	for (size_t i = 0; i < racers_n; i++) {
		free(racers[i].questions);
		free(racers[i].asks);
	}
}

/* Fifty with one key: the same request in one half of the rounds, fifty different ones in the other. */
static void one_of_fifty_acquires(void **state)
{
	static struct racer racers[CALLERS];
	struct place *p = *state;

	racers_init(racers, CALLERS, ROUNDS);
	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned i = 0; i < CALLERS; i++) {
			struct hx_gate_claim claim = claim_of(round, round % 2 ? i : 0, LONG_MS, LONG_MS);

			racers[i].asks[round] = ask_of(GATE_ACQUIRE, &claim);
		}
	run_race(p, racers, CALLERS);
	for (size_t round = 0; round < ROUNDS; round++) {
		enum gate_verdict others = round % 2 ? GATE_MISMATCHED : GATE_IN_FLIGHT;

		assert_int_equal(count_verdicts(racers, CALLERS, round, GATE_ACQUIRED), 1);
		assert_int_equal(count_verdicts(racers, CALLERS, round, others), CALLERS - 1);
	}
	racers_release(racers, CALLERS);
}

/* Two takers for a lease that is over, a thousand times; and the one who lost it tries to complete meanwhile. */
static void one_of_two_takes_over(void **state)
{
	static struct racer racers[3], dead[1];
	struct place *p = *state;
	size_t late = 0;

	racers_init(racers, 3, RACES);
	racers_init(dead, 1, RACES);
	for (unsigned round = 0; round < RACES; round++) {
		struct hx_gate_claim claim = claim_of(round, 0, 1, LONG_MS);

		dead->asks[round] = ask_of(GATE_ACQUIRE, &claim);
		racers[2].asks[round] = ask_of(GATE_COMPLETE, &claim);
		racers[2].asks[round].response = slice_str("late");
		for (size_t i = 0; i < 2; i++) {
			claim = claim_by_another(&claim);
			claim.lease_ms = LONG_MS;
			racers[i].asks[round] = ask_of(GATE_ACQUIRE, &claim);
		}
		question_send(&dead->questions[round], node_of(p, round), &dead->asks[round]);
	}
	for (size_t round = 0; round < RACES; round++)
		assert_int_equal(question_await(&dead->questions[round])->reply.verdict, GATE_ACQUIRED);
	pass_ms(p, 1);
	run_race(p, racers, 3);
	for (size_t round = 0; round < RACES; round++) {
		enum gate_verdict completed = question_await(&racers[2].questions[round])->reply.verdict;
		size_t took = count_verdicts(racers, 2, round, GATE_ACQUIRED);

		/* Either it was still the late one's, and both are told so; or one has it and the other waits. */
		late += completed == GATE_DONE;
		assert_true(completed == GATE_DONE || completed == GATE_STALE);
		assert_int_equal(took, completed == GATE_STALE);
		assert_int_equal(
			count_verdicts(racers, 2, round, completed == GATE_DONE ? GATE_COMPLETED : GATE_IN_FLIGHT),
			2 - took);
	}
	print_message("# %d races for a lease that was over: %zu times its late holder was first\n", RACES, late);
	racers_release(racers, 3);
	racers_release(dead, 1);
}

/* done() may ask again, from whichever thread it comes: here acquire, complete, acquire, until it hears a replay. */
struct chain {
	struct gate_ticket ticket;
	_Atomic int steps;
	_Atomic bool replayed;
};

static void ask_on(struct gate_ticket *ticket)
{
	struct chain *chain = (struct chain *)ticket;
	struct gate_store *store = ticket->store;

	if (ticket->reply.verdict == GATE_COMPLETED) {
		atomic_store(&chain->replayed, slice_is(ticket->reply.response, "chained"));
		return;
	}
	atomic_fetch_add(&chain->steps, 1);
	ticket->ask.op = ticket->reply.verdict == GATE_ACQUIRED ? GATE_COMPLETE : GATE_ACQUIRE;
	ticket->ask.response = slice_str("chained");
	if (atomic_load(&chain->steps) < 5)
		gate_ask(store, ticket);
}

static void done_may_ask_again(void **state)
{
	static struct chain chain;
	struct place *p = *state;
	struct hx_gate_claim claim = claim_of(1, 0, LONG_MS, LONG_MS);

	memset(&chain, 0, sizeof chain);
	chain.ticket.ask = ask_of(GATE_ACQUIRE, &claim);
	chain.ticket.done = ask_on;
	gate_ask(node_of(p, 0), &chain.ticket);
	AWAIT(ASKER_AWAIT_MS, atomic_load(&chain.replayed));
	assert_int_equal(atomic_load(&chain.steps), 2);
}

/* ---- the store is down ---- */

static void set_down(struct place *p, bool down)
{
	switch (p->kind) {
	case PLACE_REDIS:
		redis_ctl(down ? "stop" : "start");
		break;
	case PLACE_POSTGRES:
		store_pg_ctl(down ? "stop fast" : "start");
		break;
	case PLACE_USER:
		user_store_set_down(p->user, down);
		break;
	case PLACE_SQLITE: /* a lane that has ended does not come back */
		if (down)
			lanes_stop(&p->lanes[0], /* drain_ms= */ 0);
		break;
	case PLACE_MEMORY:
		break;
	}
}

static void down_is_said_and_nothing_is_forgotten(void **state)
{
	struct place *p = *state;
	struct hx_gate_claim done = claim_of(1, 0, LONG_MS, LONG_MS), working = claim_of(2, 0, LONG_MS, LONG_MS);
	struct hx_gate_claim never = claim_of(3, 0, LONG_MS, LONG_MS);
	int64_t start_ms;

	assert_int_equal(ACQUIRE(0, &done), GATE_ACQUIRED);
	assert_int_equal(COMPLETE(0, &done, "kept"), GATE_DONE);
	assert_int_equal(ACQUIRE(0, &working), GATE_ACQUIRED);
	set_down(p, true);
	start_ms = await_now_ms();
	assert_int_equal(ACQUIRE(0, &never), GATE_UNAVAILABLE);
	assert_int_equal(others_hear(p, 1, &done), GATE_UNAVAILABLE);
	assert_int_equal(COMPLETE(0, &working, "in vain"), GATE_UNAVAILABLE);
	assert_int_equal(REMOVE(0, &never), GATE_UNAVAILABLE);
	print_message("# down is said 4 times in %lld ms\n", (long long)(await_now_ms() - start_ms));
	/* PostgreSQL has the patience of its lane, and tries each ask several times. */
	assert_true(p->kind == PLACE_POSTGRES || await_now_ms() - start_ms < DOWN_MS_MAX);
	set_down(p, false);
	if (p->kind == PLACE_SQLITE)
		return;
	for (size_t node = 0; node < 2; node++) {
		AWAIT(BACK_MS_MAX, others_hear(p, node, &done) != GATE_UNAVAILABLE);
		assert_int_equal(heard.reply.verdict, GATE_COMPLETED);
		assert_true(heard_is(&heard, slice_str("kept")));
	}
	assert_int_equal(others_hear(p, 1, &working), GATE_IN_FLIGHT);
	assert_int_equal(COMPLETE(0, &working, "tried again"), GATE_DONE);
	assert_int_equal(others_hear(p, 1, &working), GATE_COMPLETED);
	assert_true(heard_is(&heard, slice_str("tried again")));
}

static struct CMUnitTest of_all[] = {
	TEST(one_of_fifty_acquires),
	TEST(one_of_two_takes_over),
	TEST(done_may_ask_again),
};

static const struct CMUnitTest of_some[] = {
	{"memory: random", random_steps_are_answered_as_by_the_simplest_store, set_up_memory, tear_down, NULL},
	{"sqlite: random", random_steps_are_answered_as_by_the_simplest_store, set_up_sqlite, tear_down, NULL},
	{"sqlite: down", down_is_said_and_nothing_is_forgotten, set_up_sqlite, tear_down, NULL},
	{"postgres: down", down_is_said_and_nothing_is_forgotten, set_up_postgres, tear_down, NULL},
	{"redis: down", down_is_said_and_nothing_is_forgotten, set_up_redis, tear_down, NULL},
	{"user: down", down_is_said_and_nothing_is_forgotten, set_up_user, tear_down, NULL},
};

int main(void)
{
	int failed = run_on_every_store(of_all, sizeof of_all / sizeof *of_all, /* users_own= */ true);

	return failed + cmocka_run_group_tests_name("some", of_some, NULL, NULL);
}
