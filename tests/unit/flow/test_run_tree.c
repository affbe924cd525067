/* A tree that is cancelled at its root while those further down do not know yet: nothing is made there any more, and nothing begun. */
#include "flow/run_children.h"
#include "unit/flow/driven_run.h"

#include "support/must_hold.h"

#define LEAF(name) "{'name':'" name "','type':'task','action':'do','compensate':'undo'}"
#define INNER "{'name':'q','type':'parallel','branches':{'u':[" LEAF("v") "]}}"
#define ROOT_CANCELLED "UPDATE hx_subject SET status = 'CANCELLING', version = version + 1 WHERE id = 77"

static const struct db_stmt stmt_tree = {
	.name = "test_whole_tree",
	.sql = "SELECT group_concat(words, ', ') FROM (SELECT coalesce(r.scope, 'root') || ' ' || s.status ||"
	       " coalesce(' due in ' || nullif(r.due_at - hx_now_ms(), 0), '') || ' rows ' || (SELECT count(*) FROM hx_run_step t WHERE t.run = r.subject)"
	       " AS words FROM hx_run r JOIN hx_subject s ON s.id = r.subject ORDER BY r.subject)",
	.in = "",
	.out = "t",
};

/* The root has started its branch. */
static void begin(struct world *w, const char *steps)
{
	static const struct db_stmt stmt_child = {
		.name = "test_only_child", .sql = "SELECT subject FROM hx_run WHERE parent = 77", .in = "", .out = "i"};
	char rest[1000];

	snprintf(rest, sizeof rest, "'steps':[{'name':'p','type':'parallel','branches':{'x':[%s]}}]", steps);
	define(rest);
	create(w, "{}");
	assert_int_equal(drive(w, ok), HX_OK);
	unit_init(&w->unit, 0);
	unit_add(&w->unit, UNIT_ANY, &stmt_child, 0, NULL);
	assert_int_equal(world_run(w), UNIT_WON);
	fixture.subject = world_int(w, 0, 0);
	fixture.calls[0] = '\0';
}

static void test_no_child_under_a_cancel(void **state)
{
	struct world *w = *state;

	begin(w, INNER);
	fixture.meanwhile = ROOT_CANCELLED; /* it was read before that */
	assert_int_equal(drive(w, ok), HX_CLAIM_FAILED);
	assert_null(fixture.meanwhile);
	assert_is(w, &stmt_tree, "root CANCELLING rows 0, p/x PENDING rows 0");
	assert_int_equal(drive(w, ok), HX_OK);
	assert_is(w, &stmt_tree, "root CANCELLING rows 0, p/x PENDING due in 1000 rows 0");
	w->clock.wall.ms += 1000;
	assert_int_equal(drive(w, ok), HX_OK);
	assert_is(w, &stmt_tree, "root CANCELLING rows 0, p/x PENDING due in 1000 rows 0");
}

static void test_nothing_is_begun_under_a_cancel(void **state)
{
	struct world *w = *state;

	begin(w, LEAF("a") "," LEAF("b"));
	sql(w, ROOT_CANCELLED);
	assert_int_equal(drive(w, ok), HX_OK);
	MUST_HOLD(fixture.calls[0] == '\0', "a child begins a step after the cancel of the whole was answered");
	assert_is(w, &stmt_tree, "root CANCELLING rows 0, p/x PENDING due in 1000 rows 0");
}

static void test_without_a_cancel_it_goes_on(void **state)
{
	struct world *w = *state;

	begin(w, INNER "," LEAF("a"));
	assert_int_equal(drive(w, ok), HX_OK);
	assert_is(w, &stmt_tree, "root WAITING rows 0, p/x WAITING rows 0, p/x/q/u PENDING rows 0");
}

/* Its parent may not look again: what it was asked for stands until it is heard. */
static void test_an_unheard_cancel_stands(void **state)
{
	static const struct db_stmt stmt_stands = {
		.name = "test_stands",
		.sql = "SELECT child = 'open' AND asked = 'cancel' AND completed_at > 0 FROM hx_run WHERE parent = 77",
		.in = "",
		.out = "i"};
	struct world *w = *state;

	begin(w, LEAF("a"));
	sql(w, "UPDATE hx_run SET asked = 'cancel' WHERE parent = 77");
	assert_int_equal(drive(w, ok), HX_OK);
	unit_init(&w->unit, 0);
	unit_add(&w->unit, UNIT_ANY, &stmt_stands, 0, NULL);
	assert_int_equal(world_run(w), UNIT_WON);
	MUST_HOLD(world_int(w, 0, 0), "a cancel is forgotten by a child that came to its end first");
}

static bool is_so(struct world *w, const struct db_stmt *stmt)
{
	unit_init(&w->unit, 0);
	unit_add(&w->unit, UNIT_ANY, stmt, 0, NULL);
	assert_int_equal(world_run(w), UNIT_WON);
	return db_cell(&w->result.rows[0], 0, 0)->i;
}

static void ask(struct world *w, const char *word)
{
	static const struct run_step step = {.name = "p"};
	const struct run_asking asking = {&step, word, /* only= */ -1, /* but= */ -1};

	unit_init(&w->unit, 0);
	run_children_ask(&w->unit, 77, &asking);
	assert_int_equal(world_run(w), UNIT_WON);
}

/* A parent looks whenever one of its children has ended, and asks the others again. */
static void test_what_was_asked_is_not_asked_again(void **state)
{
	static const struct db_stmt stmt_rests = {.name = "test_rests",
						  .sql = "SELECT due_at IS NULL FROM hx_run WHERE parent = 77",
						  .in = "",
						  .out = "i"};
	static const struct db_stmt stmt_has_heard = {
		.name = "test_has_heard",
		.sql = "SELECT asked = 'cancelling' FROM hx_run WHERE parent = 77",
		.in = "",
		.out = "i"};
	struct world *w = *state;

	begin(w, LEAF("a"));
	sql(w, "UPDATE hx_run SET asked = 'fail', awaits = 'child', due_at = NULL WHERE parent = 77");
	ask(w, "fail");
	MUST_HOLD(is_so(w, &stmt_rests), "who was told to fail, and waits for its own children, is driven for nothing");
	sql(w, "UPDATE hx_run SET asked = 'cancelling' WHERE parent = 77");
	ask(w, "cancel");
	MUST_HOLD(is_so(w, &stmt_has_heard), "who has heard a cancel is told so again");
}

/* Paused, or let go, where the step is about to begin: who has won the one before it has not won this one, which has no branches yet. */
static void test_each_step_has_its_own_winner(void **state)
{
	static const struct db_stmt stmt_branches = {.name = "test_branches",
						     .sql = "SELECT count(*) = 2 FROM hx_run WHERE parent_step = 'p'",
						     .in = "",
						     .out = "i"};
	static const struct db_stmt stmt_nobody = {.name = "test_nobody",
						   .sql = "SELECT winner IS NULL FROM hx_run WHERE subject = 77",
						   .in = "",
						   .out = "i"};
	struct world *w = *state;

	define("'steps':[{'name':'n','type':'task','action':'nothing'},"
	       "{'name':'p','type':'parallel','join':'any','branches':{'x':[" LEAF("a") "],'y':[" LEAF("b") "]}}]");
	create(w, "{}");
	sql(w, "UPDATE hx_run SET at_step = 1, winner = 1 WHERE subject = 77;"
	       " INSERT INTO hx_run_step (run, position, status, attempt, output, started_at, completed_at)"
	       " VALUES (77, 0, 'COMPLETED', 1, '{}', 1, 2)");
	assert_int_equal(drive(w, ok), HX_OK);
	MUST_HOLD(is_so(w, &stmt_branches),
		  "a step is done by who has won an earlier one, and none of its branches was begun");
	MUST_HOLD(is_so(w, &stmt_nobody), "a branch is cancelled for one that has won an earlier step");
}

static void test_a_grandchild_is_not_made(void **state)
{
	static const struct db_stmt stmt_made = {
		.name = "test_made", .sql = "SELECT count(*) FROM hx_run", .in = "", .out = "i"};
	struct world *w = *state;

	begin(w, INNER);
	fixture.meanwhile = ROOT_CANCELLED;
	(void)drive(w, ok);
	unit_init(&w->unit, 0);
	unit_add(&w->unit, UNIT_ANY, &stmt_made, 0, NULL);
	assert_int_equal(world_run(w), UNIT_WON);
	MUST_HOLD(world_int(w, 0, 0) == 2, "a grandchild is made after the cancel was answered");
}

/* On PostgreSQL a cancel that is written just then is waited for: whichever of those above is cancelled is held still. */
static void test_all_above_are_held(void **state)
{
	static const struct db_stmt stmt_newest = {
		.name = "test_newest", .sql = "SELECT max(subject) FROM hx_run", .in = "", .out = "i"};
	struct world *w = *state;
	int64_t parents[3];
	struct run_row row;
	struct arena arena;

	begin(w, "{'name':'o','type':'parallel','branches':{'u':[{'name':'r','type':'parallel','branches':{'w':[" INNER
		 "]}}]}}");
	for (int i = 0; i < 2; i++) {
		parents[i] = fixture.subject;
		assert_int_equal(drive(w, ok), HX_OK);
		unit_init(&w->unit, 0);
		unit_add(&w->unit, UNIT_ANY, &stmt_newest, 0, NULL);
		assert_int_equal(world_run(w), UNIT_WON);
		fixture.subject = world_int(w, 0, 0);
	}
	parents[2] = 77;
	unit_init(&w->unit, 0);
	run_read(&w->unit, slice_str("default"), fixture.subject);
	assert_int_equal(world_run(w), UNIT_WON);
	arena_init(&arena, 1u << 20);
	assert_int_equal(run_row_take(&w->result, machine_of, NULL, &arena, &row), HX_OK);
	unit_init(&w->unit, 0);
	run_children_guard(&w->unit, &row);
	for (int i = 0; i < 3; i++) {
		bool held = false;

		for (unsigned s = 0; s < w->unit.subjects_n; s++)
			held |= w->unit.subjects[s] == parents[i];
		MUST_HOLD(held, "a child is made while a run further up is being cancelled");
	}
	arena_release(&arena);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(test_no_child_under_a_cancel),           TEST(test_nothing_is_begun_under_a_cancel),
		TEST(test_without_a_cancel_it_goes_on),       TEST(test_an_unheard_cancel_stands),
		TEST(test_a_grandchild_is_not_made),          TEST(test_all_above_are_held),
		TEST(test_what_was_asked_is_not_asked_again), TEST(test_each_step_has_its_own_winner),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, forget);
}
