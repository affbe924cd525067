/* A child that is a function begins nothing after a cancel was answered: of its parent, or of who is further up. */
#include "unit/flow/world.h"

#include "flow/function.h"
#include "flow/run.h"
#include "support/must_hold.h"

enum { TOP = 1, PARENT, CHILD };

#define SETUP(id, ...) static const struct db_stmt id = {.name = #id, .in = "", .out = "", .sql = __VA_ARGS__}
SETUP(stmt_runs,
      "INSERT INTO hx_run (subject, workspace, workflow, definition_version, requester, input, created_at, parent,"
      " parent_step, parent_n, child) VALUES (1, 'default', 't', 0, 'me', '{}', 1, NULL, NULL, NULL, NULL),"
      " (2, 'default', 'p', 0, 'me', '{}', 1, 1, 's', 0, 'open'), (3, 'default', 'f', 0, 'me', '{}', 1, 2, 's', 0, 'open')");
SETUP(stmt_function, "INSERT INTO hx_function (subject, workspace, name, turn_at) VALUES (3, 'default', 'f', 1)");
SETUP(stmt_asked, "UPDATE hx_run SET asked = 'cancel' WHERE subject = 3");
SETUP(stmt_heard, "UPDATE hx_run SET asked = 'cancelling' WHERE subject = 3");
SETUP(stmt_paused, "UPDATE hx_run SET asked = 'pause' WHERE subject = 3");
SETUP(stmt_top_cancelled, "UPDATE hx_subject SET status = 'CANCELLING' WHERE id = 1");
SETUP(stmt_cancelling, "UPDATE hx_subject SET status = 'CANCELLING' WHERE id = 3");

static void write_rows(struct world *w, const struct db_stmt *stmt)
{
	unit_init(&w->unit, ++w->last_op);
	unit_add(&w->unit, UNIT_ANY, stmt, 0, NULL);
	assert_int_equal(world_run(w), UNIT_WON);
}

static void make_tree(struct world *w)
{
	world_create(w, TOP, RUN_WAITING);
	world_create(w, PARENT, RUN_WAITING);
	world_create(w, CHILD, RUN_PENDING);
	write_rows(w, &stmt_runs);
	write_rows(w, &stmt_function);
}

static size_t turns(struct world *w)
{
	static const struct function_polled polled = {.name = {"f", 1}, .version = {"1", 1}};
	static const struct function_claim_request rq = {.workspace = {"default", 7},
							 .worker = {"w", 1},
							 .polled_n = 1,
							 .polled = &polled,
							 .max = 1,
							 .lease_ms = 1000};
	struct function_claim claim;
	struct arena arena;

	arena_init(&arena, 1u << 20);
	function_claim_init(&claim, &rq, &arena);
	assert_int_equal(world_drive(w, &claim.task), HX_OK);
	arena_release(&arena);
	return claim.n;
}

static void test_a_child_hears_before_it_goes_on(void **state)
{
	struct world *w = *state;

	make_tree(w);
	write_rows(w, &stmt_asked);
	MUST_HOLD(turns(w) == 0, "a child begins after the cancel of its parent was answered");
	write_rows(w, &stmt_paused);
	MUST_HOLD(turns(w) == 0, "a child goes on after the pause of its parent was answered");
	write_rows(w, &stmt_heard);
	assert_int_equal(turns(w), 1);
}

static void test_nothing_begins_below_a_cancel(void **state)
{
	struct world *w = *state;

	make_tree(w);
	write_rows(w, &stmt_top_cancelled);
	MUST_HOLD(turns(w) == 0, "a child of a child begins after the cancel was answered");
	write_rows(w, &stmt_cancelling); /* it has heard: what is to be undone is handed out */
	assert_int_equal(turns(w), 1);
}

static void test_a_child_goes_on(void **state)
{
	struct world *w = *state;

	make_tree(w);
	assert_int_equal(turns(w), 1);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_child_hears_before_it_goes_on, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(test_nothing_begins_below_a_cancel, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(test_a_child_goes_on, world_set_up, world_tear_down),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
