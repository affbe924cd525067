/*
 * The generic subject, explored: claims with a janitor, plain transitions with a watcher.
 *
 * tests/mutants/run builds this program once more for every guard it removes, and runs the tests named
 * "exhaustive_*": each mutant must be found at the very bounds at which the engine itself is clean.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "flow/claim.h"
#include "flow/janitor.h"
#include "flow/transition.h"
#include "flow/watch.h"
#include "sim/explore.h"

#define KIND 1
#define STATES_MAX 20000000
#define WORDS_MAX (4u << 20)

static const struct claim_plan close_plan = {
	.subject = 1,
	.from = "open",
	.claim_into = "closing",
	.successful_state = "closed",
	.revert_to = "open",
	.lease_ms = 60000,
	.action = "close",
};

static const struct janitor_rule rule = {.kind = KIND, .claim_into = "closing", .revert_to = "open"};
static const struct janitor_rules rules = {1, &rule};
static const struct move touch = {1, "open", "open"};
static const struct move finish = {1, "open", "done"};

static void init_claim(union sim_task *task, const void *plan, struct arena *texts)
{
	(void)texts;
	claim_init((struct claim *)task, plan);
}

static void init_janitor(union sim_task *task, const void *plan, struct arena *texts)
{
	(void)texts;
	janitor_init((struct janitor *)task, plan, /* budget= */ 8, (struct mono_time){0});
}

static void init_transition(union sim_task *task, const void *plan, struct arena *texts)
{
	(void)texts;
	transition_init((struct transition *)task, plan, /* version= */ 0);
}

static void init_watch(union sim_task *task, const void *plan, struct arena *texts)
{
	(void)texts;
	watch_init((struct watch *)task, 1, plan, (struct mono_time){INT64_MAX});
}

/* Two callers and a janitor, each on a node of its own: only the rows stand between them. */
static const struct sim_scenario claim_apart = {
	.name = "two callers and a janitor on three nodes",
	.subjects_n = 1,
	.kind = KIND,
	.initial = "open",
	.claim_status = "closing",
	.revert_status = "open",
	.nodes_n = 3,
	.cast_n = 3,
	.cast = {{"caller-1", 0, false, init_claim, &close_plan},
		 {"caller-2", 1, false, init_claim, &close_plan},
		 {"janitor", 2, true, init_janitor, &rules}},
	.bounds = {.lapses = 2, .crashes = 1, .lost_answers = 1, .failures = 1},
};

/* The same on one node: their units share batches, and a crash takes them all. */
static const struct sim_scenario claim_together = {
	.name = "two callers and a janitor on one node",
	.subjects_n = 1,
	.kind = KIND,
	.initial = "open",
	.claim_status = "closing",
	.revert_status = "open",
	.nodes_n = 1,
	.cast_n = 3,
	.cast = {{"caller-1", 0, false, init_claim, &close_plan},
		 {"caller-2", 0, false, init_claim, &close_plan},
		 {"janitor", 0, true, init_janitor, &rules}},
	.bounds = {.lapses = 2, .crashes = 1, .lost_answers = 1, .failures = 1},
};

/* Plain transitions that keep the status (so only the version tells), one that ends it, one who waits for that. */
static const struct sim_scenario transitions = {
	.name = "three transitions and a watcher on two nodes",
	.subjects_n = 1,
	.kind = KIND,
	.initial = "open",
	.nodes_n = 2,
	.cast_n = 4,
	.cast = {{"toucher-1", 0, false, init_transition, &touch},
		 {"toucher-2", 1, false, init_transition, &touch},
		 {"finisher", 0, false, init_transition, &finish},
		 {"watcher", 0, false, init_watch, "done"}},
	.bounds = {.lapses = 0, .crashes = 1, .lost_answers = 1, .failures = 1},
};

/* Larger than can be walked through: for the random walks. */
static const struct claim_plan close_second = {
	.subject = 2,
	.from = "open",
	.claim_into = "closing",
	.successful_state = "closed",
	.revert_to = "open",
	.lease_ms = 45000,
	.action = "close",
};

static const struct sim_scenario crowd = {
	.name = "six callers, two janitors, two subjects, three nodes",
	.subjects_n = 2,
	.kind = KIND,
	.initial = "open",
	.claim_status = "closing",
	.revert_status = "open",
	.nodes_n = 3,
	.cast_n = 8,
	.cast = {{"caller-1", 0, false, init_claim, &close_plan},
		 {"caller-2", 1, false, init_claim, &close_plan},
		 {"caller-3", 2, false, init_claim, &close_plan},
		 {"caller-4", 0, false, init_claim, &close_second},
		 {"caller-5", 0, false, init_claim, &close_plan},
		 {"caller-6", 1, false, init_claim, &close_second},
		 {"janitor-1", 1, true, init_janitor, &rules},
		 {"janitor-2", 2, true, init_janitor, &rules}},
	.bounds = {.lapses = 6, .crashes = 3, .lost_answers = 4, .failures = 3},
};

/* cmocka would cut a long message. */
static void fail_with(struct strbuf *words)
{
	fprintf(stderr, "%s", words->p);
	strbuf_release(words);
	fail();
}

static void explore(const struct sim_scenario *scenario)
{
	struct explore_report r;
	struct strbuf words;

	strbuf_init(&words, WORDS_MAX);
	if (!explore_all(scenario, STATES_MAX, &r, &words))
		fail_with(&words);
	printf("# %s; at most %u lapses, %u crash anywhere, %u lost answer, %u failed commit: "
	       "%llu states, %llu edges, %llu crash points, at least %.3g schedules of up to %u steps, all invariants hold\n",
	       scenario->name, scenario->bounds.lapses, scenario->bounds.crashes, scenario->bounds.lost_answers,
	       scenario->bounds.failures, (unsigned long long)r.states, (unsigned long long)r.edges,
	       (unsigned long long)r.crash_points, r.schedules, r.longest);
	assert_true(r.states > 100 && r.crash_points > 100 && r.quiet > 0);
	strbuf_release(&words);
}

static void exhaustive_transitions(void **state)
{
	(void)state;
	explore(&transitions);
}

static void exhaustive_claim_apart(void **state)
{
	(void)state;
	explore(&claim_apart);
}

static void exhaustive_claim_together(void **state)
{
	(void)state;
	explore(&claim_together);
}

static void random_crowd(void **state)
{
	bool soak = getenv("HAPAX_SOAK") != NULL;
	const char *given = getenv("HAPAX_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 10) : 20261115;
	unsigned runs = soak ? 200000 : 1500;
	struct explore_report r;
	struct strbuf words;

	(void)state;
	strbuf_init(&words, WORDS_MAX);
	if (!explore_random(&crowd, seed, runs, /* steps= */ 300, &r, /* trace= */ NULL, &words))
		fail_with(&words);
	printf("# random walks, seed %llu, %s: %u runs, %llu edges, %llu crashes, all invariants hold\n",
	       (unsigned long long)seed, crowd.name, runs, (unsigned long long)r.edges,
	       (unsigned long long)r.crash_points);
	strbuf_release(&words);
}

static void same_seed_same_trace(void **state)
{
	struct strbuf first, second, other, words;
	struct explore_report r;

	(void)state;
	strbuf_init(&first, WORDS_MAX);
	strbuf_init(&second, WORDS_MAX);
	strbuf_init(&other, WORDS_MAX);
	strbuf_init(&words, WORDS_MAX);
	assert_true(explore_random(&crowd, 42, 30, 300, &r, &first, &words));
	assert_true(explore_random(&crowd, 42, 30, 300, &r, &second, &words));
	assert_true(explore_random(&crowd, 43, 30, 300, &r, &other, &words));
	assert_false(first.failed);
	assert_true(first.n > 10000);
	assert_true(slice_eq(strbuf_slice(&first), strbuf_slice(&second)));
	assert_false(slice_eq(strbuf_slice(&first), strbuf_slice(&other)));
	strbuf_release(&first);
	strbuf_release(&second);
	strbuf_release(&other);
	strbuf_release(&words);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exhaustive_transitions), cmocka_unit_test(exhaustive_claim_together),
		cmocka_unit_test(exhaustive_claim_apart), cmocka_unit_test(random_crowd),
		cmocka_unit_test(same_seed_same_trace),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
