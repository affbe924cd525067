/*
 * A schedule that two nodes look at, explored: with crashes, failed commits, and answers that are lost while their commit lands, vanishes
 * or stays open; and a slot whose run is there before (a backfill, or a schedule of the same name that was deleted).
 *
 * Besides the invariants of invariant.h, after every edge:
 *  H1  A key has one run.
 *  H2  The slots that were left are those that were started, or were there: none is left without its run, none has one and is not left.
 *  H5  slot_at never falls.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/hash.h"
#include "flow/schedule_look.h"
#include "model/findings.h"
#include "sim/explore.h"

#define STATES_MAX 5000000
#define WORDS_MAX (4u << 20)
#define SLOTS 2
#define EVERY_MS 1000

static struct arena arena;
static const struct run_machine *machine;
static int64_t first_slot; /* in ms */

static const struct db_stmt stmt_schedule = {
	.name = "sim_schedule",
	.sql = "SELECT coalesce(slot_at, 0), coalesce(due_at, 0), started, skipped + missed FROM hx_schedule",
	.in = "",
	.out = "iiii",
};
enum { SLOT_AT, DUE_AT, STARTED, NOT_STARTED };

static const struct db_stmt stmt_runs = {
	.name = "sim_schedule_runs",
	.sql = "SELECT coalesce(run_key, '') FROM hx_run ORDER BY 1",
	.in = "",
	.out = "t",
};

struct books {
	int64_t slot_at, due_at, started, not_started;
	struct db_rows runs; /* until the next edge */
};

static struct books read_books(struct sim *sim)
{
	struct unit_result result;
	struct unit unit;

	unit_init(&unit, 0);
	unit_add(&unit, UNIT_ANY, &stmt_schedule, 0, NULL);
	unit_add(&unit, UNIT_ANY, &stmt_runs, 0, NULL);
	result = sim_run_unit(sim, &unit);
	ASSERT(result.rows[0].n == 1);
	return (struct books){db_cell(&result.rows[0], 0, SLOT_AT)->i, db_cell(&result.rows[0], 0, DUE_AT)->i,
			      db_cell(&result.rows[0], 0, STARTED)->i, db_cell(&result.rows[0], 0, NOT_STARTED)->i,
			      result.rows[1]};
}

static uint64_t hash_books(const struct books *books, uint64_t hash)
{
	hash = hash_mix(hash_mix(hash, (uint64_t)books->slot_at), (uint64_t)books->due_at);
	hash = hash_mix(hash_mix(hash, (uint64_t)books->started), (uint64_t)books->not_started);
	for (size_t i = 0; i < books->runs.n; i++) {
		struct slice key = db_cell(&books->runs, i, 0)->s;

		hash = hash_bytes(hash, key.p, key.n);
	}
	return hash;
}

static bool has_run(const struct books *books, int64_t slot_at)
{
	char slot[SCHEDULE_SLOT_BYTES], key[100];

	schedule_slot_format(slot_at / 1000, slot);
	snprintf(key, sizeof key, "schedule:s:%s", slot);
	for (size_t i = 0; i < books->runs.n; i++)
		if (slice_is(db_cell(&books->runs, i, 0)->s, key))
			return true;
	return false;
}

/* How many runs were there before. */
static int64_t before_n;

static void check(struct sim *sim)
{
	struct books books = read_books(sim);
	int64_t *seen = (int64_t *)sim->state.notes;
	int64_t at = books.slot_at ? books.slot_at : first_slot + SLOTS * EVERY_MS;

	for (size_t i = 1; i < books.runs.n; i++)
		if (slice_eq(db_cell(&books.runs, i, 0)->s, db_cell(&books.runs, i - 1, 0)->s))
			sim_violate(sim, "H1: a slot has two runs");
	for (int i = 0; i < SLOTS; i++) {
		int64_t slot = first_slot + i * EVERY_MS;

		if (slot < at && !has_run(&books, slot))
			sim_violate(sim, "H2: slot %d was left, and has no run", i);
		if (slot >= at && has_run(&books, slot) && !(before_n && i == 1))
			sim_violate(sim, "H2: slot %d has its run, and was not left", i);
	}
	if ((int64_t)books.runs.n != books.started + before_n)
		sim_violate(sim, "H2: %zu runs, and %lld slots were started", books.runs.n, (long long)books.started);
	if (at < *seen)
		sim_violate(sim, "H5: a slot that was left is to come again");
	*seen = at;
}

/* ---- for the simulator ---- */

static uint64_t books_before;

static int64_t next_moment(struct sim *sim)
{
	struct books books = read_books(sim);

	return books.due_at ? books.due_at : INT64_MAX;
}

static uint64_t hash_all(struct sim *sim, uint64_t hash)
{
	struct books books = read_books(sim);

	return hash_books(&books, hash);
}

static void before_unit(struct sim *sim, const struct unit *unit)
{
	(void)unit;
	books_before = hash_all(sim, 1);
}

static void after_unit(struct sim *sim, const struct unit *unit, enum unit_verdict verdict)
{
	(void)unit;
	if (verdict != UNIT_WON && hash_all(sim, 1) != books_before)
		sim_violate(sim, "I4: a unit that was %s changed the schedule", unit_verdict_name(verdict));
}

static void tell(struct sim *sim, struct strbuf *words)
{
	struct books books = read_books(sim);

	strbuf_addf(words, "; %lld slots were started, %zu runs are there", (long long)books.started, books.runs.n);
}

static const struct sim_rows schedule_rows = {
	.next_moment = next_moment,
	.hash = hash_all,
	.before_unit = before_unit,
	.after_unit = after_unit,
	.tell = tell,
};

/* ---- the cast ---- */

static const struct zone *zone_of(const void *context, struct slice name)
{
	(void)context, (void)name;
	return &zone_utc;
}

static const struct run_machine *run_of(const void *context, struct slice workflow)
{
	(void)context, (void)workflow;
	return machine;
}

static const struct batch_machine *batch_of(const void *context, struct slice workflow)
{
	(void)context, (void)workflow;
	return NULL;
}

static const struct schedule_policy policy = {zone_of, run_of, batch_of, NULL, NULL, NULL, NULL};

static void init_look(union sim_task *task, const void *plan, struct arena *texts)
{
	(void)plan;
	schedule_look_init((struct schedule_look *)task, /* subject= */ 1, &policy, texts);
}

/* A node without the workflow: it puts off what it cannot start. */
static const struct run_machine *run_of_nobody(const void *context, struct slice workflow)
{
	(void)context, (void)workflow;
	return NULL;
}

static const struct schedule_policy ignorant = {zone_of, run_of_nobody, batch_of, NULL, NULL, NULL, NULL};

static void init_ignorant(union sim_task *task, const void *plan, struct arena *texts)
{
	(void)plan;
	schedule_look_init((struct schedule_look *)task, /* subject= */ 1, &ignorant, texts);
}

static bool is_due(struct sim *sim)
{
	struct books books = read_books(sim);

	return books.due_at && books.due_at <= sim->clock.wall.ms;
}

static void setup_with(struct sim *sim, bool there)
{
	char sql[1500], to[WALL_TIME_TEXT_BYTES], slot[SCHEDULE_SLOT_BYTES];
	int64_t now = sim->clock.wall.ms;

	first_slot = (now / 1000 + 1) * 1000;
	before_n = there;
	wall_time_format((struct wall_time){first_slot + (SLOTS - 1) * EVERY_MS}, to);
	schedule_slot_format((first_slot + EVERY_MS) / 1000, slot);
	snprintf(
		sql, sizeof sql,
		"INSERT INTO hx_schedule (subject, workspace, name, requester, text, slot_at, due_at, created_at, updated_at)"
		" VALUES (1, 'default', 's', 'me', '{\"workflow\":\"quick\",\"every\":\"1s\",\"overlap\":\"allow\",\"catchUp\":\"all\","
		"\"to\":\"%s\"}', %lld, %lld, 0, 0);",
		to, (long long)first_slot, (long long)first_slot);
	sim_script(sim, sql);
	if (!there)
		return;
	snprintf(
		sql, sizeof sql,
		"INSERT INTO hx_run (subject, workspace, workflow, definition_version, run_key, requester, input, created_at)"
		" VALUES (2, 'default', 'quick', 1, 'schedule:s:%s', 'me', '{}', 0)",
		slot);
	sim_script(sim, sql);
}

static void setup(struct sim *sim)
{
	setup_with(sim, false);
}

static void setup_there(struct sim *sim)
{
	setup_with(sim, true);
}

#define TWO_NODES                                                                                                      \
	.nodes_n = 2, .cast_n = 2, .initial = SCHEDULE_ACTIVE, .check = check, .rows = &schedule_rows,                 \
	.cast = {{"one", 0, true, init_look, NULL, is_due}, {"other", 1, true, init_look, NULL, is_due}}

static const struct sim_scenario two_nodes = {
	.name = "a schedule with two slots, looked at by two nodes",
	.subjects_n = 1,
	.bounds = {.lapses = 2, .crashes = 1, .lost_answers = 2, .failures = 1},
	.setup = setup,
	TWO_NODES,
};

static const struct sim_scenario there = {
	.name = "the same, and the run of a slot is there",
	.subjects_n = 2,
	.bounds = {.lapses = 2, .crashes = 1, .lost_answers = 1, .failures = 1},
	.setup = setup_there,
	TWO_NODES,
};

static const struct sim_scenario unequal = {
	.name = "a schedule with two slots, and one of two nodes cannot start them",
	.subjects_n = 1,
	.bounds = {.lapses = 2, .crashes = 1, .lost_answers = 1, .failures = 1},
	.setup = setup,
	.nodes_n = 2,
	.cast_n = 2,
	.initial = SCHEDULE_ACTIVE,
	.check = check,
	.rows = &schedule_rows,
	.cast = {{"one", 0, true, init_look, NULL, is_due}, {"ignorant", 1, true, init_ignorant, NULL, is_due}},
};

static void explore(const struct sim_scenario *scenario)
{
	struct explore_report r;
	struct strbuf words;

	strbuf_init(&words, WORDS_MAX);
	if (!explore_all(scenario, STATES_MAX, &r, &words)) {
		fprintf(stderr, "%s", words.p); /* cmocka would cut it */
		strbuf_release(&words);
		fail();
	}
	printf("# %s; %u crash anywhere, %u lost answers, %u failed commit: %llu states, %llu edges, %llu crash points, at least "
	       "%.3g schedules of up to %u steps, all invariants hold\n",
	       scenario->name, scenario->bounds.crashes, scenario->bounds.lost_answers, scenario->bounds.failures,
	       (unsigned long long)r.states, (unsigned long long)r.edges, (unsigned long long)r.crash_points,
	       r.schedules, r.longest);
	assert_true(r.states > 100 && r.quiet > 0 && r.crash_points > 100);
	strbuf_release(&words);
}

static void exhaustive_two_nodes(void **state)
{
	(void)state;
	explore(&two_nodes);
}

static void exhaustive_there(void **state)
{
	(void)state;
	explore(&there);
}

static void exhaustive_unequal(void **state)
{
	(void)state;
	explore(&unequal);
}

static void make_machine(void)
{
	static const char text[] =
		"{\"workflow\":\"quick\",\"kind\":\"run\",\"steps\":[{\"name\":\"a\",\"type\":\"wait\",\"for\":\"1s\"}]}";
	const struct run_definition *definition;
	struct findings findings;

	findings_init(&findings, &arena);
	run_definition_parse("quick.json", slice_str(text), &arena, &findings, &definition);
	ASSERT(definition);
	machine = run_machine_new(definition, 1, &arena);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exhaustive_two_nodes),
		cmocka_unit_test(exhaustive_there),
		cmocka_unit_test(exhaustive_unequal),
	};
	int failed;

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	arena_init(&arena, 16u << 20);
	make_machine();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	arena_release(&arena);
	return failed;
}
