/* What definitions need of a node: functions of its own, and sql that its store understands. */
#include "unit/engine/definition_nodes.h"

/* ---- natives, and sql ---- */

static enum act_outcome nothing(void *context, const struct native_call *call, struct strbuf *output)
{
	(void)context;
	(void)call;
	(void)output;
	return ACT_OK;
}

static char *native_text(const char *function)
{
	return text_of("{'workflow':'order','kind':'run','actions':{\n'x':{'kind':'native','function':'%s'}},"
		       "'steps':[{'name':'s','type':'task','action':'x'}]}",
		       function);
}

static void test_natives_are_compared(void **state)
{
	static struct natives natives;

	(void)state;
	natives.n = 0;
	assert_int_equal(natives_add(&natives, "count", nothing, NULL, &err), HX_OK);
	must_put(0, "order", native_text("anything"), 1); /* here nobody knows what there is */
	must_put(0, "order", native_text("count"), 2);
	insert_run(1, "order", 1);
	node_open(1, &natives);
	nodes[1].defs.natives_all = true;
	must_load(1, NULL);
	assert_said("version 1, which runs, batches or calls in doubt still have, cannot serve here");
	assert_said("no function \"anything\" is registered");
	assert_int_equal(findings.errors, 0);
	assert_string_equal(step_of(1, "order", 2), "s");
	must_refuse(1, "order", native_text("cuont"),
		    "order:2: error: workflow order: native: action x: no function \"cuont\" is registered");
	must_put(0, "order", native_text("nobody"), 3);
	node_close(1);
	node_open(1, &natives);
	nodes[1].defs.natives_all = true;
	assert_int_equal(load(1, NULL), HX_CONFIG_ERROR);
	assert_said("no function \"nobody\" is registered");
}

/*
 * Who may do without them takes what the store has, and leaves what needs them to others; but puts nothing new that does. What a hook
 * fires is left by everybody who has no server of its own.
 */
static void test_natives_of_others_are_left_to_them(void **state)
{
	static struct natives natives;

	(void)state;
	natives.n = 0;
	assert_int_equal(natives_add(&natives, "count", nothing, NULL, &err), HX_OK);
	must_put(0, "order", native_text("anything"), 1);
	must_put(0, "order", native_text("count"), 2);
	insert_run(1, "order", 1);
	node_open(1, &natives);
	must_load(1, NULL);
	assert_said("warning: workflow order: native: action x: no function \"anything\" is registered here");
	assert_string_equal(step_of(1, "order", 1), "s");
	assert_true(slice_is(definitions_left_runs(&nodes[1].defs), "[\"order@1\"]"));
	assert_true(slice_is(definitions_left_jobs(&nodes[1].defs), "[\"/fire\"]"));
	must_put(0, "order", native_text("nobody"), 3);
	node_close(1);
	node_open(1, &natives);
	must_load(1, NULL);
	assert_string_equal(step_of(1, "order", 3), "s");
	assert_true(slice_is(definitions_left_jobs(&nodes[1].defs), "[\"/fire\",\"order/x\"]"));
	must_refuse(1, "order", native_text("cuont"),
		    "order:2: error: workflow order: native: action x: no function \"cuont\" is registered");
}

#define BATCH                                                                                                          \
	"{'workflow':'render','kind':'batch','actions':{\n'x':{'kind':'native','function':'%s'}},'item_action':'x'}"

static void test_natives_of_batches_are_compared(void **state)
{
	static struct natives natives;

	(void)state;
	natives.n = 0;
	assert_int_equal(natives_add(&natives, "count", nothing, NULL, &err), HX_OK);
	node_open(1, &natives);
	must_refuse(1, "render", text_of(BATCH, "cuont"),
		    "render:2: error: workflow render: native: action x: no function \"cuont\" is registered");
	must_put(1, "render", text_of(BATCH, "count"), 1);
}

static char *sql_text(const char *statement)
{
	return text_of("{'workflow':'order','kind':'run','actions':{\n"
		       "'book':{'kind':'sql','statements':[{'name':'book_it','sql':'%s'}]}},"
		       "'steps':[{'name':'s','type':'task','action':'book'}]}",
		       statement);
}

static void test_sql_of_runs_is_tried(void **state)
{
	const struct run_machine *machine;

	(void)state;
	must_refuse(0, "order", sql_text("INSERT INTO booked (id) VALUES (:key)"),
		    "order:2: error: workflow order: sql: action book, statement book_it: ");
	script("CREATE TABLE booked (id text PRIMARY KEY, n bigint)");
	must_refuse(0, "order", sql_text("INSERT INTO booked (idd) VALUES (:key)"), "idd");
	must_put(0, "order", sql_text("INSERT INTO booked (id, n) VALUES (:key, :input.n)"), 1);
	machine = definitions_run(&nodes[0].defs, slice_str("order"));
	assert_int_equal(machine->sql[0].n, 1);
	assert_string_equal(machine->sql[0].stmts[0]->in, "ss");
	assert_int_equal(nodes[0].defs.statements.n, 1);
}

/* Whatever else a deployment changes: what connections have prepared serves all versions. */
static void test_statements_are_shared_by_text(void **state)
{
	static const char same[] = "INSERT INTO booked (id) VALUES (:key)";
	const struct db_stmt *first;

	(void)state;
	script("CREATE TABLE booked (id text PRIMARY KEY, n bigint)");
	must_put(0, "order", sql_text(same), 1);
	first = definitions_run(&nodes[0].defs, slice_str("order"))->sql[0].stmts[0];
	must_put(0, "order", text_of("%s ", sql_text(same)), 2);
	assert_ptr_equal(definitions_run(&nodes[0].defs, slice_str("order"))->sql[0].stmts[0], first);
	assert_int_equal(nodes[0].defs.statements.n, 1);
	must_put(0, "order", sql_text("INSERT INTO booked (n) VALUES (:input.n)"), 3);
	assert_ptr_not_equal(definitions_run(&nodes[0].defs, slice_str("order"))->sql[0].stmts[0], first);
	assert_int_equal(nodes[0].defs.statements.n, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(test_natives_are_compared),
		ON_BOTH(test_natives_of_others_are_left_to_them),
		ON_BOTH(test_natives_of_batches_are_compared),
		ON_BOTH(test_sql_of_runs_is_tried),
		ON_BOTH(test_statements_are_shared_by_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
