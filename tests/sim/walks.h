/* A scenario walked through, whole or at random: fails with the counterexample, or says in one line how much was seen. */
#ifndef HX_TESTS_SIM_WALKS_H
#define HX_TESTS_SIM_WALKS_H

#include <stdio.h>
#include <stdlib.h>

#include "base/strbuf.h"
#include "sim/explore.h"

#define WALK_WORDS_MAX (4u << 20)

/* One more of something, in `make soak` alone: what costs most there finds least, and what mutants need is walked through without. */
#define ONE_IN_SOAK (getenv("HAPAX_SOAK") != NULL)

/* cmocka would cut a long message. */
static inline void walk_failed(struct strbuf *words)
{
	fprintf(stderr, "%s", words->p);
	strbuf_release(words);
	fail();
}

/* Where crashes may happen, they do; and it comes to rest somewhere. */
static inline void walk_all(const struct sim_scenario *scenario, uint64_t states_max)
{
	const struct sim_bounds *bounds = &scenario->bounds;
	struct explore_report r;
	struct strbuf words;

	strbuf_init(&words, WALK_WORDS_MAX);
	if (!explore_all(scenario, states_max, &r, &words))
		walk_failed(&words);
	printf("# %s; at most %u lapses, %u crashes, %u lost answers, %u failed commits: "
	       "%llu states, %llu edges, %llu crash points, at least %.3g schedules of up to %u steps, all invariants hold\n",
	       scenario->name, bounds->lapses, bounds->crashes, bounds->lost_answers, bounds->failures,
	       (unsigned long long)r.states, (unsigned long long)r.edges, (unsigned long long)r.crash_points,
	       r.schedules, r.longest);
	assert_true(r.states > 100 && (r.crash_points > 100 || !bounds->crashes) && r.quiet > 0);
	strbuf_release(&words);
}

/* By the seed of HAPAX_SEED, or always the same one. Returns how many crashes there were. */
static inline uint64_t walk_at_random(const struct sim_scenario *scenario, unsigned walks, unsigned steps)
{
	const char *given = getenv("HAPAX_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 10) : 20261115;
	struct explore_report r;
	struct strbuf words;

	strbuf_init(&words, WALK_WORDS_MAX);
	if (!explore_random(scenario, seed, walks, steps, &r, /* trace= */ NULL, &words))
		walk_failed(&words);
	printf("# random walks, seed %llu, %s: %u walks, %llu edges, %llu crashes, all invariants hold\n",
	       (unsigned long long)seed, scenario->name, walks, (unsigned long long)r.edges,
	       (unsigned long long)r.crash_points);
	strbuf_release(&words);
	return r.crash_points;
}

#endif
