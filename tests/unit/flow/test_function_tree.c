/* A function in a tree that is cancelled above it, while it does not know yet: it makes no child any more. */
#include "unit/flow/function_world.h"

enum { TOP = 1, MIDDLE, PARENT };

#define CHILD "{'kind':'child','name':'k','n':0,'workflow':'f'}"
#define STEP "{'kind':'step','name':'a','n':0,'state':'done'}"
#define KIDS "SELECT CAST(count(*) AS text) FROM hx_run WHERE parent = 77"

/* The function is the child of one that is the child of one that is the child of the root; a worker has its turn. */
static void be_far_down(struct world *w)
{
	define("");
	for (int64_t id = TOP; id <= PARENT; id++)
		world_create(w, id, RUN_WAITING);
	assert_int_equal(create(w, fixture.machine), UNIT_WON);
	sql(w,
	    "INSERT INTO hx_run (subject, workspace, workflow, definition_version, requester, input, created_at, parent,"
	    " parent_step, parent_n, child, depth) VALUES (1, 'default', 't', 1, 'me', '{}', 1, NULL, NULL, NULL, NULL, 0),"
	    " (2, 'default', 't', 1, 'me', '{}', 1, 1, 's', 0, 'open', 1),"
	    " (3, 'default', 't', 1, 'me', '{}', 1, 2, 's', 0, 'open', 2);"
	    "UPDATE hx_run SET parent = 3, parent_step = 's', parent_n = 0, child = 'open', depth = 3 WHERE subject = 77");
	assert_int_equal(claim(w, "1", 0), 1);
}

static void cancel_top(struct world *w)
{
	sql(w, "UPDATE hx_subject SET status = 'CANCELLING' WHERE id = 1");
}

/* Its worker gives the turn back, with what it has done; what is to be undone is handed out when it has heard. */
static void test_no_child_under_a_cancel(void **state)
{
	struct world *w = *state;

	be_far_down(w);
	cancel_top(w);
	MUST_HOLD(call(w, "{'entries':[" STEP "," CHILD "]}") == HX_WRONG_STATUS,
		  "a worker is not told that its function makes no child any more");
	MUST_BE(w, KIDS, "0", "a function makes a child after the cancel was answered");
	assert_int_equal(call(w, "{'entries':[" STEP "],'end':{'state':'released'}}"), HX_OK);
	assert_int_equal(claim(w, "1", 0), 0);
}

static void test_without_a_cancel_it_is_made(void **state)
{
	struct world *w = *state;

	be_far_down(w);
	assert_int_equal(call(w, "{'entries':[" STEP "," CHILD "]}"), HX_OK);
	assert_is(w, KIDS, "1");
}

/* ---- a cancel that comes between what it has read and what it writes ---- */

static const struct function_change child = {
	.kind = ENTRY_CHILD, .name = {"k", 1}, .detail = {"{}", 2}, .workflow = {"f", 1}, .input = {"{}", 2}};

static void decide(struct world *w, struct function_work *work)
{
	struct function_request rq = {.workspace = slice_str("default"),
				      .subject = RUN,
				      .worker = slice_str("w"),
				      .fence = fixture.fence,
				      .seq = fixture.seq,
				      .changes_n = 1,
				      .changes = &child,
				      .hash = slice_str("1"),
				      .machine_of = machine_of};
	struct function_named named = function_named(&rq, &fixture.arena);

	unit_init(&w->unit, 0);
	function_read(&w->unit, rq.workspace, RUN, &named, rq.seq);
	assert_int_equal(world_run(w), UNIT_WON);
	assert_int_equal(function_work_take(&w->result, 1, FUNCTION_CALL, &fixture.arena, work), HX_OK);
	assert_true(function_take(work, &rq, &fixture.ids, w->clock.wall));
	assert_true(function_prepare(work));
}

static void test_a_cancel_that_comes_meanwhile(void **state)
{
	struct world *w = *state;
	struct function_work work;
	struct stamp stamp;

	be_far_down(w);
	decide(w, &work);
	cancel_top(w);
	stamp = world_begin(w);
	function_write(&w->unit, &stamp, &work);
	MUST_HOLD(world_run(w) == UNIT_LOST, "a function makes a child after the cancel was answered");
	assert_is(w, KIDS, "0");
}

/* On PostgreSQL a cancel that is written just then is waited for: whichever of those above is cancelled is held still. */
static void test_all_above_are_held(void **state)
{
	struct world *w = *state;
	struct function_work work;
	struct stamp stamp;

	be_far_down(w);
	decide(w, &work);
	stamp = world_begin(w);
	function_write(&w->unit, &stamp, &work);
	for (int64_t id = TOP; id <= PARENT; id++) {
		bool held = false;

		for (unsigned s = 0; s < w->unit.subjects_n; s++)
			held |= w->unit.subjects[s] == id;
		MUST_HOLD(held, "a function makes a child while a run above it is being cancelled");
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_set_up, forget)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(test_no_child_under_a_cancel),
		TEST(test_without_a_cancel_it_is_made),
		TEST(test_a_cancel_that_comes_meanwhile),
		TEST(test_all_above_are_held),
	};

	ONLY_THE_NAMED(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
