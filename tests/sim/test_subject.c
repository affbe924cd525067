/*
 * The generic subject, explored by what the engine runs: claimed steps with a janitor, plain ones with one who waits for the end.
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

#include "flow/end_wait.h"
#include "flow/entity_step.h"
#include "flow/janitor.h"
#include "sim/entities.h"
#include "sim/explore.h"
#include "sim/walks.h"

#define STATES_MAX 20000000
#define WORDS_MAX (4u << 20)
#define LONG_MS (INT64_C(1000) * 86400)

static const char definition[] =
	"{\"workflow\":\"door\",\"kind\":\"entity\",\"status_types\":[\"open\",\"closing\",\"closed\",\"done\"],"
	"\"initial_status\":\"open\",\"actions\":{"
	"\"Close\":{\"kind\":\"http\",\"url\":\"http://127.0.0.1:1/close\",\"effect\":\"claimed\"}},\"steps\":["
	"{\"step_id\":1,\"step_key\":\"close\",\"status\":\"open\",\"successful_state\":\"closed\",\"action\":\"Close\","
	"\"claim_state\":[\"closing\",\"open\"],\"on_unknown\":\"revert\"},"
	"{\"step_id\":2,\"step_key\":\"touch\",\"status\":\"open\",\"successful_state\":\"open\"},"
	"{\"step_id\":3,\"step_key\":\"finish\",\"status\":\"open\",\"successful_state\":\"done\"}]}";

/* Who fires what: texts and machine are filled in once, since definitions live as long as the program. */
static struct step_request close_first = {.step_key = {"close", 5}, .ref.name = {"e1", 2}, .lease_ms = 60000};
static struct step_request close_second = {.step_key = {"close", 5}, .ref.name = {"e2", 2}, .lease_ms = 45000};
static struct step_request touch = {.step_key = {"touch", 5}, .ref.name = {"e1", 2}};
static struct step_request finish = {.step_key = {"finish", 6}, .ref.name = {"e1", 2}};
static struct janitor_rule rule = {.claim_into = "closing", .revert_to = "open"};
static const struct janitor_rules rules = {1, &rule};
static struct arena arena;
static int64_t kind_of_door;

static int make_door(void **state)
{
	struct step_request *const requests[] = {&close_first, &close_second, &touch, &finish};
	const struct entity_machine *machine;
	const struct workflow *workflow;
	struct findings findings;

	(void)state;
	arena_init(&arena, 16u << 20);
	findings_init(&findings, &arena);
	workflow_parse("door.json", slice_str(definition), &arena, &findings, &workflow);
	for (const struct finding *f = findings.first; f; f = f->next)
		printf("%s: %s\n", f->rule, f->text);
	machine = workflow ? entity_machine_new(workflow, /* version= */ 1, /* table= */ NULL, &arena) : NULL;
	if (!machine)
		return -1;
	for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
		requests[i]->ref.workspace = slice_str("default");
		requests[i]->ref.machine = machine;
		requests[i]->requester = slice_str("default");
		requests[i]->input = json_trust(slice_str("null"));
	}
	rule.kind = kind_of_door = machine->kind;
	rule.machine = machine;
	return 0;
}

static int drop_door(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

static void setup(struct sim *sim)
{
	make_entities(sim, "door");
}

static void init_step(union sim_task *task, const void *plan, struct arena *texts)
{
	entity_step_init((struct entity_step *)task, plan, texts);
}

static void init_janitor(union sim_task *task, const void *plan, struct arena *texts)
{
	(void)texts;
	janitor_init((struct janitor *)task, plan, /* budget= */ 8, (struct mono_time){0});
}

/* ---- one who waits for its end ---- */

static void read_it(const struct end_wait *wait, struct unit *unit)
{
	subject_read(unit, wait->subject);
}

static bool is_done(struct slice status)
{
	return slice_is(status, "done");
}

static enum hx_code show(struct end_wait *wait, const struct unit_result *result)
{
	wait->over = is_done(db_cell(&result->rows[0], 0, 0)->s);
	return HX_OK;
}

static void forget(struct end_wait *wait)
{
	(void)wait;
}

static void init_waiter(union sim_task *task, const void *plan, struct arena *texts)
{
	static const struct end_wait_kind kind = {.read = read_it, .show = show, .forget = forget};
	struct end_wait *wait = (struct end_wait *)task;

	(void)plan, (void)texts;
	end_wait_init(wait, &kind, /* subject= */ 1, /* topic= */ 1, LONG_MS);
	wait->has_ended = is_done;
}

/* ---- scenarios ---- */

/*
 * Two callers and a janitor, each on a node of its own: only the rows stand between them. Steps of entities claim by a statement of
 * their own; this walk is that of subject_claim.
 */
static struct sim_scenario claim_apart = {
	.name = "two callers and a janitor on three nodes",
	.subjects_n = 1,
	.initial = "open",
	.claim_status = "closing",
	.revert_status = "open",
	.nodes_n = 3,
	.cast_n = 3,
	.cast = {{"caller-1", 0, false, init_step, &close_first},
		 {"caller-2", 1, false, init_step, &close_first},
		 {"janitor", 2, true, init_janitor, &rules}},
	.setup = setup,
	.rows = &rows_of_entities,
	.bounds = {.lapses = 2, .crashes = 1, .lost_answers = 1, .failures = 1},
};

/* The same on one node: their units share groups, and a crash takes them all. */
static struct sim_scenario claim_together = {
	.name = "two callers and a janitor on one node",
	.subjects_n = 1,
	.initial = "open",
	.claim_status = "closing",
	.revert_status = "open",
	.nodes_n = 1,
	.cast_n = 3,
	.cast = {{"caller-1", 0, false, init_step, &close_first},
		 {"caller-2", 0, false, init_step, &close_first},
		 {"janitor", 0, true, init_janitor, &rules}},
	.setup = setup,
	.rows = &rows_of_entities,
	.bounds = {.lapses = 2, .crashes = 1, .lost_answers = 1, .failures = 1},
};

/* Plain transitions that keep the status (so only the version tells), one that ends it, one who waits for that. */
static struct sim_scenario transitions = {
	.name = "three transitions and one who waits on two nodes",
	.subjects_n = 1,
	.initial = "open",
	.nodes_n = 2,
	.cast_n = 4,
	.cast = {{"toucher-1", 0, false, init_step, &touch},
		 {"toucher-2", 1, false, init_step, &touch},
		 {"finisher", 0, false, init_step, &finish},
		 {"waiter", 0, false, init_waiter, NULL}},
	.setup = setup,
	.rows = &rows_of_entities,
	.bounds = {.lapses = 0, .crashes = 1, .lost_answers = 1, .failures = 1},
};

/* Larger than can be walked through: for the random walks. */
static struct sim_scenario crowd = {
	.name = "six callers, two janitors, two subjects, three nodes",
	.subjects_n = 2,
	.initial = "open",
	.claim_status = "closing",
	.revert_status = "open",
	.nodes_n = 3,
	.cast_n = 8,
	.cast = {{"caller-1", 0, false, init_step, &close_first},
		 {"caller-2", 1, false, init_step, &close_first},
		 {"caller-3", 2, false, init_step, &close_first},
		 {"caller-4", 0, false, init_step, &close_second},
		 {"caller-5", 0, false, init_step, &close_first},
		 {"caller-6", 1, false, init_step, &close_second},
		 {"janitor-1", 1, true, init_janitor, &rules},
		 {"janitor-2", 2, true, init_janitor, &rules}},
	.setup = setup,
	.rows = &rows_of_entities,
	.bounds = {.lapses = 6, .crashes = 3, .lost_answers = 4, .failures = 3},
};

static void explore(struct sim_scenario *scenario)
{
	scenario->kind = kind_of_door;
	walk_all(scenario, STATES_MAX);
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
	unsigned runs = soak ? 200000 : 1500;

	(void)state;
	crowd.kind = kind_of_door;
	(void)walk_at_random(&crowd, runs, 300);
}

static void same_seed_same_trace(void **state)
{
	struct strbuf first, second, other, words;
	struct explore_report r;

	(void)state;
	crowd.kind = kind_of_door;
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
	return cmocka_run_group_tests(tests, make_door, drop_door);
}
