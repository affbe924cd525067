/*
 * Functions and people, explored: a pause and a resume, a decision about a step whose outcome is unknown, a retry of one that has failed, an
 * event that comes while a race is being decided; at any moment, with workers that are slow and lost. What must hold: sim/function_store.h,
 * sim/function_walks.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "sim/function_walks.h"

static const struct run_verb_request pause_it = VERB(RUN_PAUSE), resume_it = VERB(RUN_RESUME),
				     retry_it = VERB(RUN_RETRY);
static const struct run_verb_request was_done = VERB(RUN_RESOLVE, .name = {"a", 1}, .done = true);
static const struct run_verb_request was_not_done = VERB(RUN_RESOLVE, .name = {"a", 1});
static const struct run_verb_request event = VERB(RUN_EVENT, .name = {"go", 2}, .event_id = {"1", 1});

static void begin(const char *of)
{
	memset(&fixture, 0, sizeof fixture);
	fixture.policy = of;
}

/* ---- one step ---- */

static struct said one_step(const struct worker *w)
{
	struct said said;

	if (begins(w, STEP_A, &said)) {
		said.n = 1; /* it has no compensation */
		return said;
	}
	if (knows(w, STEP_A, HELD))
		return suspends(1u << STEP_A);
	return ends(knows(w, STEP_A, ENTRY_DONE) ? END_COMPLETED : END_FAILED);
}

static const struct program of_one_step = PROGRAM(&polled_f, one_step);

static bool is_paused(struct sim *sim)
{
	struct sim_row row;

	return sim_read_row(sim, ROOT, &row) && is(row.status, RUN_PAUSED);
}

static void exhaustive_pause(void **state UNUSED)
{
	begin("keyed retry");
	fixture.may_pause = true;
	explore((struct sim_scenario){.name = "a step, paused and resumed at any moment, a worker that is slow",
				      .nodes_n = 2,
				      .cast_n = 4,
				      .cast = {WORKER("worker", 0, &of_one_step),
					       NODE(1),
					       PERSON("pauser", 1, &pause_it),
					       {"resumer", 1, true, init_verb, &resume_it, is_paused}},
				      .never_fails = true,
				      .bounds = {.lapses = 1}},
		&of_one_step, NULL);
}

/* ---- a decision ---- */

static bool is_in_doubt(struct sim *sim)
{
	struct unit_result result = ask_store(sim, &stmt_entries, 0, NULL);
	const struct db_rows *rows = &result.rows[0];

	return rows->n && slice_is(db_cell(rows, 0, 3)->s, "unknown");
}

#define RESOLVER(name, node, verb)                                                                                     \
	{                                                                                                              \
		name, node, true, init_verb, verb, is_in_doubt                                                         \
	}

static void exhaustive_resolve(void **state UNUSED)
{
	begin("claimed hold");
	fixture.decisions = 1;
	explore(
		(struct sim_scenario){
			.name = "a claimed step, a worker that is slow, a person who says that it was done, or not",
			.nodes_n = 2,
			.cast_n = 4,
			.cast = {WORKER("worker", 0, &of_one_step), NODE(1), RESOLVER("who-knows", 1, &was_done),
				 RESOLVER("who-believes", 1, &was_not_done)},
			.never_fails = true,
			.bounds = {.lapses = 1, .crashes = 1}},
		&of_one_step, NULL);
}

/* ---- a retry ---- */

/* Not for ever. */
static bool has_failed(struct sim *sim)
{
	struct sim_row row;

	return sim_read_row(sim, ROOT, &row) && is(row.status, RUN_FAILED) && row.fence < 3;
}

static void exhaustive_retry(void **state UNUSED)
{
	begin("claimed hold");
	fixture.retries = true;
	explore((struct sim_scenario){.name = "a step that fails, and a person who has it tried again",
				      .nodes_n = 2,
				      .cast_n = 3,
				      .cast = {WORKER("worker", 0, &of_one_step),
					       NODE(1),
					       {"retrier", 1, true, init_verb, &retry_it, has_failed}},
				      .bounds = {.lapses = 1, .crashes = 1}},
		&of_one_step, NULL);
}

/* ---- a race ---- */

/* An event against a time; who loses is dropped. After the time the same event is asked for once more. */
static struct said race(const struct worker *w)
{
	if (!w->known[SLEEP_S])
		return (struct said){.n = 2, .entries = {{SLEEP_S, ENTRY_OPEN}, {EVENT_E, ENTRY_OPEN}}};
	if (knows(w, EVENT_E, ENTRY_DONE) && !w->known[DROP_E])
		return w->known[DROP_S] || !knows(w, SLEEP_S, ENTRY_OPEN)
			       ? ends(END_COMPLETED)
			       : (struct said){.n = 1, .entries = {{DROP_S, ENTRY_DONE}}};
	if (knows(w, SLEEP_S, ENTRY_DONE) && !w->known[DROP_E])
		return (struct said){.n = 2, .entries = {{DROP_E, ENTRY_DONE}, {EVENT_F, ENTRY_OPEN}}};
	if (!w->known[DROP_E])
		return (struct said){.end = END_SUSPENDED, .awaits = 1u << SLEEP_S | 1u << EVENT_E, .any = true};
	return knows(w, EVENT_F, ENTRY_DONE) ? ends(END_COMPLETED) : suspends(1u << EVENT_F);
}

static const struct program of_race = PROGRAM(&polled_f, race);

static void exhaustive_race(void **state UNUSED)
{
	begin("claimed hold");
	fixture.may_wait = true;
	explore((struct sim_scenario){.name = "an event against a time, the loser is dropped, and asked for again",
				      .nodes_n = 2,
				      .cast_n = 3,
				      .cast = {WORKER("worker", 0, &of_race), NODE(1), PERSON("sender", 1, &event)},
				      .bounds = {.lapses = 1}},
		&of_race, NULL);
}

/* A child that loses is cancelled, also one that was done before anybody knew. */
static struct said race_of_child(const struct worker *w)
{
	if (!w->known[SLEEP_S])
		return (struct said){.n = 2, .entries = {{SLEEP_S, ENTRY_OPEN}, {CHILD_C, ENTRY_OPEN}}};
	if (knows(w, CHILD_C, ENTRY_DONE) && !w->known[DROP_C])
		return ends(END_COMPLETED);
	if (knows(w, SLEEP_S, ENTRY_DONE))
		return w->known[DROP_C] ? ends(END_COMPLETED)
					: (struct said){.n = 1, .entries = {{DROP_C, ENTRY_DONE}}};
	return (struct said){.end = END_SUSPENDED, .awaits = 1u << SLEEP_S | 1u << CHILD_C, .any = true};
}

static struct said of_child(const struct worker *w)
{
	return ends(w->cancelled ? END_UNDONE : END_COMPLETED);
}

static const struct program of_race_with_child = PROGRAM(&polled_f, race_of_child);
static const struct program child = PROGRAM(&polled_g, of_child);

static void exhaustive_race_of_child(void **state UNUSED)
{
	begin("claimed hold");
	fixture.drops = true;
	explore((struct sim_scenario){.name = "a child against a time, and cancelled if it loses",
				      .nodes_n = 2,
				      .cast_n = 4,
				      .cast = {WORKER("worker", 0, &of_race_with_child),
					       WORKER_OF_CHILD("child's-worker", 1, &child), NODE(1), OBEYER(1)},
				      .bounds = {.lapses = 1}},
		&of_race_with_child, &child);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exhaustive_pause),         cmocka_unit_test(exhaustive_resolve),
		cmocka_unit_test(exhaustive_retry),         cmocka_unit_test(exhaustive_race),
		cmocka_unit_test(exhaustive_race_of_child),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
