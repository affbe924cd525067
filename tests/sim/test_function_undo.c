/*
 * Functions that are cancelled, explored: what a worker has done is undone, once, and what its children have done, from the last on; with
 * workers that are lost and slow, answers that are, at any moment. What must hold: sim/function_store.h, sim/function_walks.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "sim/function_walks.h"

static const struct run_verb_request cancel = VERB(RUN_CANCEL);

/* On the way back: what is not known and held is left to a person, here as there. */
static struct said goes_back(const struct worker *w, enum label step)
{
	enum label undo = (enum label)(step + 2);
	struct said said;

	if (undoes(w, step, &said))
		return said;
	return knows(w, undo, HELD) ? suspends(1u << undo) : ends(END_UNDONE);
}

static struct said one_step(const struct worker *w)
{
	struct said said;

	if (w->cancelled)
		return goes_back(w, STEP_A);
	if (begins(w, STEP_A, &said))
		return said;
	if (knows(w, STEP_A, HELD))
		return suspends(1u << STEP_A);
	return ends(knows(w, STEP_A, ENTRY_DONE) ? END_COMPLETED : END_FAILED);
}

static const struct program of_one_step = PROGRAM(&polled_f, one_step);

static void explore_one_step(const char *name, const char *of, bool two, struct sim_bounds bounds)
{
	memset(&fixture, 0, sizeof fixture);
	fixture.policy = of;
	explore(
		(struct sim_scenario){
			.name = name,
			.nodes_n = 2 + two,
			.cast_n = 3 + two,
			.cast = {WORKER("worker", 0, &of_one_step), NODE(1), PERSON("canceller", 1, &cancel),
				 NEXT_WORKER("next-worker", 2, &of_one_step)},
			.never_fails = is(of, "keyed retry"), /* what was done before, a failure does not tell */
			.bounds = bounds},
		&of_one_step, NULL);
}

/* What is unknown is held: nothing is done twice. */
static void exhaustive_undo_slow(void **state UNUSED)
{
	explore_one_step("a claimed step, cancelled at any moment, a worker that is slow", "claimed hold",
			 /* two= */ true, (struct sim_bounds){.lapses = 1});
}

static void exhaustive_undo_crash(void **state UNUSED)
{
	explore_one_step("a claimed step, cancelled at any moment, a worker that dies", "claimed hold",
			 /* two= */ false, (struct sim_bounds){.lapses = 1, .crashes = 1});
}

static void exhaustive_undo_unheard(void **state UNUSED)
{
	explore_one_step("a claimed step, cancelled at any moment, an answer that is lost", "claimed hold",
			 /* two= */ false, (struct sim_bounds){.lapses = 1, .lost_answers = 1});
}

/* What is unknown is found out: the other side knows its key. */
static void exhaustive_undo_keyed(void **state UNUSED)
{
	explore_one_step("a keyed step, cancelled at any moment, a worker that dies", "keyed retry", /* two= */ false,
			 (struct sim_bounds){.lapses = 1, .crashes = 1});
}

/* ---- children ---- */

/* A step in one call, as a keyed one may be, and so undone. */
static bool does(const struct worker *w, enum label step, struct said *ret)
{
	*ret = (struct said){.n = 2, .entries = {{step, ENTRY_DONE}, {(enum label)(step + 1), ENTRY_DONE}}};
	return !w->known[step];
}

static struct said does_back(const struct worker *w, enum label step)
{
	enum label undo = (enum label)(step + 2);

	if (!w->known[step] || w->known[undo])
		return ends(END_UNDONE);
	return (struct said){.n = 1, .entries = {{undo, ENTRY_DONE}}, .end = END_UNDONE};
}

/* A child and a step, the one after the other: what came last is undone first. */
static struct said child_first(const struct worker *w)
{
	struct said said;

	if (w->cancelled)
		return does_back(w, STEP_A);
	if (!w->known[CHILD_C])
		return (struct said){.n = 1, .entries = {{CHILD_C, ENTRY_OPEN}}};
	if (does(w, STEP_A, &said))
		return said;
	if (knows(w, CHILD_C, ENTRY_OPEN))
		return suspends(1u << CHILD_C);
	return ends(knows(w, CHILD_C, ENTRY_DONE) ? END_COMPLETED : END_FAILED);
}

static struct said child_last(const struct worker *w)
{
	struct said said;

	if (w->cancelled)
		return goes_back(w, STEP_A);
	if (begins(w, STEP_A, &said))
		return said;
	if (!w->known[CHILD_C])
		return (struct said){
			.n = 1, .entries = {{CHILD_C, ENTRY_OPEN}}, .end = END_SUSPENDED, .awaits = 1u << CHILD_C};
	if (knows(w, CHILD_C, ENTRY_OPEN))
		return suspends(1u << CHILD_C);
	return ends(knows(w, CHILD_C, ENTRY_DONE) ? END_COMPLETED : END_FAILED);
}

static struct said of_child(const struct worker *w)
{
	struct said said;

	if (w->cancelled)
		return goes_back(w, STEP_X);
	if (begins(w, STEP_X, &said))
		return said;
	return ends(knows(w, STEP_X, ENTRY_DONE) ? END_COMPLETED : END_FAILED);
}

/* The same in two calls. */
static struct said of_quick_child(const struct worker *w)
{
	struct said said;

	if (w->cancelled)
		return does_back(w, STEP_X);
	if (!does(w, STEP_X, &said))
		return ends(END_COMPLETED);
	said.end = END_COMPLETED;
	return said;
}

static const struct program with_child_first = PROGRAM(&polled_f, child_first);
static const struct program with_child_last = PROGRAM(&polled_f, child_last);
static const struct program child = PROGRAM(&polled_g, of_child);
static const struct program quick_child = PROGRAM(&polled_g, of_quick_child);

static void explore_child(const char *name, const struct program *f, const struct program *g, struct sim_bounds bounds)
{
	memset(&fixture, 0, sizeof fixture);
	fixture.policy = "keyed retry";
	explore((struct sim_scenario){.name = name,
				      .nodes_n = 3,
				      .cast_n = 5,
				      .cast = {WORKER("worker", 0, f), WORKER_OF_CHILD("child's-worker", 1, g), NODE(2),
					       OBEYER(2), PERSON("canceller", 2, &cancel)},
				      .never_fails = true,
				      .bounds = bounds},
		f, g);
}

static void exhaustive_child_first(void **state UNUSED)
{
	explore_child("a child and then a step, cancelled at any moment", &with_child_first, &quick_child,
		      (struct sim_bounds){0});
}

static void exhaustive_child_last(void **state UNUSED)
{
	explore_child("a step and then a child, cancelled at any moment", &with_child_last, &child,
		      (struct sim_bounds){.lapses = ONE_IN_SOAK});
}

/* ---- a function as the child of a run ---- */

static struct arena arena;

static void parse_tree(void)
{
	static const char text[] = "{\"workflow\":\"tree\",\"kind\":\"run\",\"actions\":{},\"steps\":["
				   "{\"name\":\"c\",\"type\":\"child\",\"workflow\":\"g\"}]}";
	const struct run_definition *definition;
	struct findings findings;

	arena_release(&arena);
	arena_init(&arena, 1u << 20);
	findings_init(&findings, &arena);
	run_definition_parse("tree", slice_str(text), &arena, &findings, &definition);
	assert_non_null(definition);
	tree = run_machine_new(definition, 1, &arena);
}

static void exhaustive_child_of_run(void **state UNUSED)
{
	memset(&fixture, 0, sizeof fixture);
	fixture.policy = "keyed retry";
	fixture.tree = true;
	parse_tree();
	explore((struct sim_scenario){.name = "a function that is the child of a run, cancelled at any moment",
				      .nodes_n = 2,
				      .cast_n = 5,
				      .cast = {{"driver", 0, true, init_driver, NULL, is_driven},
					       WORKER_OF_CHILD("child's-worker", 1, &quick_child),
					       NODE(0),
					       OBEYER(0),
					       PERSON("canceller", 0, &cancel)},
				      .never_fails = true,
				      .bounds = {.lapses = 1}},
		NULL, &quick_child);
	arena_release(&arena);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exhaustive_undo_slow),    cmocka_unit_test(exhaustive_undo_crash),
		cmocka_unit_test(exhaustive_undo_unheard), cmocka_unit_test(exhaustive_undo_keyed),
		cmocka_unit_test(exhaustive_child_first),  cmocka_unit_test(exhaustive_child_last),
		cmocka_unit_test(exhaustive_child_of_run),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
