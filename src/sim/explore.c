/* See explore.h. */
#include "sim/explore.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "sim/invariant.h"

#define UNLIMITED UINT_MAX /* steps left, when their number does not matter: a state seen once is done with */
#define PROGRESS_EDGES 512
#define SHORTEST_EDGES_MIN 20000 /* how many may be taken in search of a shortest schedule, or as many as found one */

/* ---- states seen ---- */

struct seen {
	uint64_t hash; /* 0: empty slot */
	double schedules;
	unsigned left; /* steps that were left when it was looked at */
};

struct seen_table {
	struct seen *slots;
	size_t n, capacity;
};

static struct seen *seen_slot(const struct seen_table *table, uint64_t hash)
{
	size_t i = hash & (table->capacity - 1);

	while (table->slots[i].hash && table->slots[i].hash != hash)
		i = (i + 1) & (table->capacity - 1);
	return &table->slots[i];
}

static void seen_grow(struct seen_table *table)
{
	struct seen_table bigger = {.capacity = table->capacity ? 2 * table->capacity : 1 << 16};

	bigger.slots = calloc(bigger.capacity, sizeof *bigger.slots);
	ASSERT(bigger.slots);
	for (size_t i = 0; i < table->capacity; i++)
		if (table->slots[i].hash)
			*seen_slot(&bigger, table->slots[i].hash) = table->slots[i];
	bigger.n = table->n;
	free(table->slots);
	*table = bigger;
}

static struct seen *seen_find(struct seen_table *table, uint64_t hash)
{
	if (2 * (table->n + 1) > table->capacity)
		seen_grow(table);
	return seen_slot(table, hash ? hash : 1);
}

/* ---- one walk ---- */

struct walk {
	struct sim sim;
	struct seen_table seen;
	uint64_t states_max, edges_max;
	struct explore_report report;
	bool overflow;                       /* of states or edges: it was given up */
	bool cut;                            /* of a user's scenario: a schedule was longer than EXPLORE_DEPTH_MAX */
	const struct explore_limits *limits; /* NULL: nobody wants to hear how far it is */
	struct sim_edge path[EXPLORE_DEPTH_MAX];
	uint64_t met[EXPLORE_DEPTH_MAX + 1]; /* the states on it, by their hashes */
	bool forks[EXPLORE_DEPTH_MAX + 1];   /* which of these may be left in several ways */
	unsigned path_n;
};

static bool nothing_goes_on(const struct sim_edge *edges, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (sim_edge_is_progress(edges[i]))
			return false;
	return true;
}

/* Could the engine go on there in several ways? Then it leaves a circle, by and by. What others may do, it does not wait for. */
static bool forks(const struct sim *sim, const struct sim_edge *edges, size_t n)
{
	const struct sim_user *user = sim->scenario->user;
	unsigned ways = 0;

	for (size_t i = 0; i < n && user; i++)
		ways += sim->scenario->cast[edges[i].who].node < user->nodes_n && !edges[i].mask &&
			(edges[i].kind == EDGE_WRITE ||
			 (edges[i].kind == EDGE_AGAIN && !user->is_bystander(sim, edges[i].who)));
	return ways > 1;
}

/* In a scenario of a user's: it has come to a state on its way, which it will come to again and again, and no time has passed since. */
static void check_circle(struct sim *sim, const struct sim_edge *path, const uint64_t *met, const bool *forked,
			 unsigned n)
{
	for (unsigned i = n; i-- > 0 && sim->scenario->user && path[i].kind != EDGE_TIME && !forked[i];)
		if (met[i] == met[n])
			sim_violate(sim, "I11: it goes on in circles, and no time passes");
}

/* In a scenario of a user's: nothing will ever happen by itself any more. */
static bool is_quiet(const struct sim *sim, const struct sim_edge *edges, size_t n)
{
	for (size_t i = 0; i < n && sim->scenario->user; i++)
		if (edges[i].kind == EDGE_TIME || edges[i].kind == EDGE_LAND ||
		    (edges[i].kind == EDGE_AGAIN && !sim->scenario->user->is_bystander(sim, edges[i].who)))
			return false;
	return nothing_goes_on(edges, n);
}

static bool go_down(struct walk *walk, unsigned left, double *ret_schedules);

static void tell_progress(struct walk *walk)
{
	const struct explore_limits *limits = walk->limits;

	if (!limits || walk->report.edges % PROGRESS_EDGES)
		return;
	if (limits->progress)
		limits->progress(limits->context, &walk->report);
	if (limits->is_over && limits->is_over(limits->context))
		walk->edges_max = 0;
}

/* Takes every edge in turn, and takes it back. False: broken, with the path to it in walk->path. */
static bool try_edges(struct walk *walk, const struct sim_edge *edges, size_t n, unsigned left, double *schedules)
{
	struct sim_state *state = malloc(sizeof *state);
	bool held = true;

	if (walk->path_n == EXPLORE_DEPTH_MAX && walk->sim.scenario->user) {
		free(state);
		walk->cut = true;
		return true;
	}
	ASSERT(state);
	sim_save(&walk->sim, state);
	for (size_t i = 0; i < n && held; i++) {
		unsigned left_below = left == UNLIMITED ? UNLIMITED : left - 1;
		double below = 0;

		ASSERT(walk->path_n < EXPLORE_DEPTH_MAX);
		walk->path[walk->path_n++] = edges[i];
		walk->report.edges++;
		tell_progress(walk);
		if (sim_edge_writes(&walk->sim, edges[i]))
			sim_savepoint(&walk->sim);
		held = sim_take(&walk->sim, edges[i]) && go_down(walk, left_below, &below);
		if (!held)
			break;
		*schedules += below;
		if (sim_edge_writes(&walk->sim, edges[i]))
			sim_roll_back(&walk->sim);
		sim_restore(&walk->sim, state);
		walk->path_n--;
	}
	free(state);
	return held;
}

static uint64_t next_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static void shuffle(const struct walk *walk, struct sim_edge *edges, size_t n)
{
	uint64_t random = walk->limits ? walk->limits->seed : 0;

	if (!random)
		return;
	random = hash_mix(random, walk->report.states);
	for (size_t i = n; i > 1; i--) {
		size_t k = next_random(&random) % i;
		struct sim_edge edge = edges[k];

		edges[k] = edges[i - 1];
		edges[i - 1] = edge;
	}
}

static bool go_down(struct walk *walk, unsigned left, double *ret_schedules)
{
	struct sim_edge edges[SIM_EDGES_MAX];
	uint64_t hash = sim_hash(&walk->sim);
	struct seen *seen = seen_find(&walk->seen, hash);
	double schedules = 0;
	size_t n;

	walk->met[walk->path_n] = hash;
	if (seen->hash)
		check_circle(&walk->sim, walk->path, walk->met, walk->forks, walk->path_n);
	if (walk->sim.violation[0])
		return false;
	if (seen->hash && seen->left >= left) {
		*ret_schedules = seen->schedules; /* 0 while it is still being looked at: a loop */
		return true;
	}
	if (!seen->hash) {
		walk->seen.n++;
		walk->report.states++;
	}
	*seen = (struct seen){.hash = hash ? hash : 1, .left = left};
	if (walk->path_n > walk->report.longest)
		walk->report.longest = walk->path_n;
	if (walk->report.states > walk->states_max || walk->report.edges > walk->edges_max) {
		walk->overflow = true;
		return false;
	}
	n = sim_edges(&walk->sim, edges);
	walk->forks[walk->path_n] = forks(&walk->sim, edges, n);
	invariant_late(&walk->sim);
	if (is_quiet(&walk->sim, edges, n)) {
		walk->report.quiet++;
		invariant_quiet(&walk->sim);
	}
	if (walk->sim.violation[0])
		return false;
	if (left == 0)
		return true;
	shuffle(walk, edges, n);
	if (!try_edges(walk, edges, n, left, &schedules))
		return false;
	*ret_schedules = schedules > 0 ? schedules : 1;
	seen_find(&walk->seen, hash)->schedules = *ret_schedules;
	return true;
}

/* A whole walk of at most `steps` steps from a fresh start. */
static bool walk_it(struct walk *walk, const struct sim_scenario *scenario, unsigned steps,
		    const struct explore_limits *limits)
{
	struct hx_error err;
	bool held;

	memset(walk, 0, sizeof *walk);
	walk->states_max = limits->states_max;
	walk->edges_max = limits->edges_max;
	walk->limits = limits;
	if (sim_open(&walk->sim, scenario, &err)) {
		snprintf(walk->sim.violation, sizeof walk->sim.violation, "%s", err.detail);
		return false;
	}
	held = walk->sim.violation[0] == '\0' && go_down(walk, steps, &walk->report.schedules);
	walk->report.crash_points = walk->sim.crash_points;
	walk->limits = NULL;
	return held;
}

static bool walk_from_start(struct walk *walk, const struct sim_scenario *scenario, unsigned limit, uint64_t states_max,
			    uint64_t edges_max, const struct explore_limits *over)
{
	return walk_it(walk, scenario, limit,
		       &(struct explore_limits){.states_max = states_max,
						.edges_max = edges_max,
						.is_over = over ? over->is_over : NULL,
						.context = over ? over->context : NULL});
}

static bool walk_within(struct walk *walk, const struct sim_scenario *scenario, const struct explore_limits *limits)
{
	return walk_it(walk, scenario, UNLIMITED, limits);
}

static void walk_release(struct walk *walk)
{
	sim_close(&walk->sim);
	free(walk->seen.slots);
}

/* ---- telling a schedule ---- */

static void tell_rows(struct sim *sim, struct strbuf *words)
{
	for (unsigned i = 1; i <= sim->scenario->subjects_n; i++) {
		struct sim_row row;

		if (sim_read_row(sim, i, &row))
			strbuf_addf(words, "%ssubject %u is %s, version %lld, fence %lld%s", i > 1 ? "; " : "", i,
				    row.status, (long long)row.version, (long long)row.fence,
				    row.claimed && row.until <= sim->state.now.ms ? ", its time is over" : "");
	}
	if (sim->scenario->rows)
		sim->scenario->rows->tell(sim, words);
}

/* Walks along the given edges, leaving out those that cannot be taken. Returns whether something broke. */
static bool replay(const struct sim_scenario *scenario, const struct sim_edge *path, unsigned n, struct strbuf *words,
		   struct explore_listener *listener, char violation[512])
{
	struct sim *sim = malloc(sizeof *sim);
	struct sim_edge edges[SIM_EDGES_MAX], taken[EXPLORE_DEPTH_MAX];
	uint64_t met[EXPLORE_DEPTH_MAX + 1];
	bool forked[EXPLORE_DEPTH_MAX + 1];
	struct hx_error err;
	unsigned step = 0, taken_n = 0;

	ASSERT(sim);
	if (sim_open(sim, scenario, &err)) {
		snprintf(violation, 512, "%s", err.detail);
		free(sim);
		return true;
	}
	met[0] = sim_hash(sim);
	for (unsigned i = 0; i < n && !sim->violation[0]; i++) {
		char what[SIM_WORDS_BYTES];
		size_t edges_n = sim_edges(sim, edges), e = 0;

		while (e < edges_n && memcmp(&edges[e], &path[i], sizeof path[i]) != 0)
			e++;
		if (e == edges_n)
			continue;
		sim_describe(sim, path[i], what);
		if (listener)
			listener->before(listener, sim, path[i]);
		forked[taken_n] = forks(sim, edges, edges_n);
		taken[taken_n++] = path[i];
		(void)sim_take(sim, path[i]); /* what broke stands in sim->violation */
		if (words) {
			strbuf_addf(words, "  %2u. %s\n      → ", ++step, what);
			tell_rows(sim, words);
			strbuf_add_char(words, '\n');
		}
		met[taken_n] = sim_hash(sim);
		check_circle(sim, taken, met, forked, taken_n);
		invariant_late(sim);
		if (!sim->violation[0] && is_quiet(sim, edges, sim_edges(sim, edges)))
			invariant_quiet(sim);
		if (listener)
			listener->after(listener, sim, path[i]);
	}
	snprintf(violation, 512, "%s", sim->violation);
	sim_close(sim);
	free(sim);
	return violation[0] != '\0';
}

static void explore_tell(const struct sim_scenario *scenario, const struct sim_edge *path, unsigned n,
			 struct strbuf *words)
{
	char violation[512];

	strbuf_addf(words, "counterexample in \"%s\", %u steps:\n", scenario->name, n);
	(void)replay(scenario, path, n, words, /* listener= */ NULL, violation);
	strbuf_addf(words, "  broken: %s\n", violation);
}

/* Leaves out as many steps as can be left out. */
static unsigned shrink(const struct sim_scenario *scenario, struct sim_edge *path, unsigned n)
{
	char violation[512];

	for (unsigned chunk = n / 2; chunk >= 1; chunk /= 2)
		for (unsigned at = 0; at + chunk <= n;) {
			struct sim_edge shorter[EXPLORE_DEPTH_MAX];

			memcpy(shorter, path, at * sizeof *path);
			memcpy(shorter + at, path + at + chunk, (n - at - chunk) * sizeof *path);
			if (replay(scenario, shorter, n - chunk, /* words= */ NULL, /* listener= */ NULL, violation)) {
				n -= chunk;
				memcpy(path, shorter, n * sizeof *path);
			} else {
				at += chunk;
			}
		}
	return n;
}

/* Walks with a growing limit until it breaks again. False: that would take too many edges, or too long. */
static bool find_shortest(struct walk *walk, const struct sim_scenario *scenario, uint64_t edges_max,
			  const struct explore_limits *over)
{
	for (unsigned limit = 0;; limit++) {
		walk_release(walk);
		if (!walk_from_start(walk, scenario, limit, UINT64_MAX, edges_max, over))
			return !walk->overflow;
		edges_max -= walk->report.edges < edges_max ? walk->report.edges : edges_max;
	}
}

static void tell_short(struct walk *walk, const struct sim_scenario *scenario, struct strbuf *words)
{
	struct sim_edge path[EXPLORE_DEPTH_MAX];
	unsigned n = walk->path_n;
	uint64_t edges = walk->report.edges;

	memcpy(path, walk->path, n * sizeof *path);
	if (getenv("HAPAX_SIM_ANY"))
		explore_tell(scenario, path, n, words);
	else if (find_shortest(walk, scenario, edges < SHORTEST_EDGES_MIN ? SHORTEST_EDGES_MIN : edges,
			       /* over= */ NULL))
		explore_tell(scenario, walk->path, walk->path_n, words);
	else
		explore_tell(scenario, path, shrink(scenario, path, n), words);
}

bool explore_all(const struct sim_scenario *scenario, uint64_t states_max, struct explore_report *ret_report,
		 struct strbuf *words)
{
	struct walk *walk = malloc(sizeof *walk);
	bool held;

	ASSERT(walk);
	held = walk_from_start(walk, scenario, UNLIMITED, states_max, UINT64_MAX, /* over= */ NULL);
	*ret_report = walk->report;
	if (!held && walk->overflow)
		strbuf_addf(words, "\"%s\" has more than %llu states\n", scenario->name,
			    (unsigned long long)states_max);
	else if (!held)
		tell_short(walk, scenario, words);
	walk_release(walk);
	free(walk);
	return held;
}

static void find_short(struct walk *walk, const struct sim_scenario *scenario, const struct explore_limits *limits,
		       struct explore_found *found)
{
	uint64_t edges = walk->report.edges;

	found->n = walk->path_n;
	memcpy(found->path, walk->path, found->n * sizeof *found->path);
	found->shortest = find_shortest(walk, scenario, edges < SHORTEST_EDGES_MIN ? SHORTEST_EDGES_MIN : edges,
					limits);
	if (found->shortest) {
		found->n = walk->path_n;
		memcpy(found->path, walk->path, found->n * sizeof *found->path);
	} else {
		found->n = shrink(scenario, found->path, found->n);
	}
	(void)replay(scenario, found->path, found->n, /* words= */ NULL, /* listener= */ NULL, found->violation);
}

enum explore_verdict explore_within(const struct sim_scenario *scenario, const struct explore_limits *limits,
				    struct explore_report *report, struct explore_found *ret_found)
{
	struct walk *walk = malloc(sizeof *walk);
	enum explore_verdict verdict;
	bool held;

	ASSERT(walk);
	held = walk_within(walk, scenario, limits);
	report->states += walk->report.states;
	report->edges += walk->report.edges;
	report->crash_points += walk->report.crash_points;
	report->quiet += walk->report.quiet;
	report->schedules += walk->report.schedules;
	report->longest = walk->report.longest > report->longest ? walk->report.longest : report->longest;
	verdict = held ? (walk->cut || walk->sim.full ? EXPLORE_BOUNDED : EXPLORE_HELD)
		       : (walk->overflow ? EXPLORE_BOUNDED : EXPLORE_BROKEN);
	if (verdict == EXPLORE_BROKEN)
		find_short(walk, scenario, limits, ret_found);
	walk_release(walk);
	free(walk);
	return verdict;
}

void explore_follow(const struct sim_scenario *scenario, const struct explore_found *found,
		    struct explore_listener *listener)
{
	char violation[512];

	(void)replay(scenario, found->path, found->n, /* words= */ NULL, listener, violation);
}

/* ---- random ---- */

/* Crashes, lapses and lost answers are rare next to work, or nothing would ever get done. */
static struct sim_edge choose(const struct sim_edge *edges, size_t n, uint64_t *random)
{
	struct sim_edge edge = edges[next_random(random) % n];

	for (int again = 0; again < 4 && !sim_edge_is_progress(edge); again++)
		edge = edges[next_random(random) % n];
	return edge;
}

static bool random_run(struct walk *walk, unsigned steps, uint64_t *random, struct strbuf *trace)
{
	struct sim_edge edges[SIM_EDGES_MAX];
	char what[SIM_WORDS_BYTES];

	while (walk->path_n < steps && walk->path_n < EXPLORE_DEPTH_MAX && !walk->sim.violation[0]) {
		size_t n = sim_edges(&walk->sim, edges);

		if (nothing_goes_on(edges, n))
			invariant_quiet(&walk->sim);
		if (n == 0 || walk->sim.violation[0])
			break;

		struct sim_edge edge = choose(edges, n, random);

		if (trace) {
			sim_describe(&walk->sim, edge, what);
			strbuf_addf(trace, "%s\n", what);
		}
		walk->path[walk->path_n++] = edge;
		walk->report.edges++;
		(void)sim_take(&walk->sim, edge); /* what broke stands in sim.violation */
	}
	if (trace)
		strbuf_addf(trace, "= %016llx\n", (unsigned long long)sim_hash(&walk->sim));
	return walk->sim.violation[0] == '\0';
}

/* All of them from the same start, which is made once: to make a store takes as long as to walk through it. */
static bool random_runs(struct walk *walk, uint64_t seed, unsigned runs, unsigned steps, struct strbuf *trace)
{
	struct sim_state *start = malloc(sizeof *start);
	bool held = true;

	ASSERT(start);
	sim_save(&walk->sim, start);
	for (unsigned run = 0; run < runs && held; run++) {
		uint64_t random = hash_mix(seed, run);

		walk->path_n = 0;
		sim_savepoint(&walk->sim);
		held = random_run(walk, steps, &random, trace);
		sim_roll_back(&walk->sim);
		sim_restore(&walk->sim, start);
		walk->report.schedules++;
		if (walk->path_n > walk->report.longest)
			walk->report.longest = walk->path_n;
	}
	walk->report.crash_points = walk->sim.crash_points;
	free(start);
	return held;
}

bool explore_random(const struct sim_scenario *scenario, uint64_t seed, unsigned runs, unsigned steps,
		    struct explore_report *ret_report, struct strbuf *trace, struct strbuf *words)
{
	static struct walk
		at; /* in one place: tasks point into it, which counts, and the same seed comes to the same hashes */
	struct walk *walk = &at;
	struct hx_error err;
	bool held;

	memset(walk, 0, sizeof *walk);
	if (sim_open(&walk->sim, scenario, &err)) {
		strbuf_addf(words, "%s\n", err.detail);
		return false;
	}
	held = random_runs(walk, seed, runs, steps, trace);
	if (!held) {
		strbuf_addf(words, "seed %llu, run %.0f: ", (unsigned long long)seed, walk->report.schedules - 1);
		explore_tell(scenario, walk->path, shrink(scenario, walk->path, walk->path_n), words);
	}
	*ret_report = walk->report;
	sim_close(&walk->sim);
	return held;
}
