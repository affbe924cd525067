/* Definitions of all kinds on a real store: what is in force, and which versions of runs and batches are known, after a restart and on another node. */
#include "unit/engine/definition_nodes.h"

/* ---- all kinds ---- */

struct listed {
	size_t n;
	char text[400];
};

static void list(void *context, const struct machine *machine)
{
	struct listed *listed = context;

	assert_int_equal((machine->entity != NULL) + (machine->run != NULL) + (machine->batch != NULL), 1);
	listed->n++;
	snprintf(listed->text + strlen(listed->text), sizeof listed->text - strlen(listed->text), "%s %s %d; ",
		 machine->definition->kind, machine->definition->name, (int)machine->version);
}

static void test_a_folder_of_all(void **state)
{
	struct definitions *defs = &nodes[0].defs;
	struct listed listed = {0};

	(void)state;
	write_file("a.json", entity_text("billing"));
	write_file("b.json", run_text("order", "one"));
	write_file("c.json", batch_text("render", "draw"));
	must_load(0, dir);
	assert_non_null(definitions_find(defs, slice_str("billing")));
	assert_null(definitions_find(defs, slice_str("order")));
	assert_non_null(definitions_run(defs, slice_str("order")));
	assert_null(definitions_run(defs, slice_str("billing")));
	assert_null(definitions_run(defs, slice_str("nobody")));
	assert_null(definitions_run(defs, slice_str("render")));
	assert_null(definitions_find(defs, slice_str("render")));
	assert_int_equal(definitions_batch(defs, slice_str("render"))->version, 1);
	assert_null(definitions_batch(defs, slice_str("order")));
	assert_null(definitions_batch(defs, slice_str("billing")));
	assert_null(definitions_batch(defs, slice_str("nobody")));
	assert_string_equal(action_of(0, "billing", "y", 0)->workflow, "billing");
	assert_string_equal(action_of(0, "order", "x", 0)->workflow, "order");
	assert_string_equal(action_of(0, "render", "draw", 0)->workflow, "render");
	assert_null(action_of(0, "order", "y", 0));
	assert_null(action_of(0, "render", "x", 0));
	definitions_each(defs, list, &listed);
	assert_string_equal(listed.text, "entity billing 1; run order 1; batch render 1; ");
	must_load(0, dir); /* a reload changes nothing */
	assert_string_equal(step_of(0, "order", 1), "one");
	assert_string_equal(item_of(0, "render", 1), "draw");
	assert_string_equal(item_of(0, "order", 1), "none"); /* it is here, and no batch */
	assert_string_equal(step_of(0, "render", 1), "none");
	assert_int_equal(nodes[0].told, 0);
}

static void test_a_kind_stays(void **state)
{
	(void)state;
	must_put(0, "order", run_text("order", "one"), 1);
	must_put(0, "billing", entity_text("billing"), 1);
	must_refuse(0, "order", entity_text("order"), "a definition cannot change its kind");
	assert_said("this is of kind entity, and the workflow of that name is of kind run");
	must_refuse(0, "billing", run_text("billing", "one"), "a definition cannot change its kind");
	must_refuse(0, "order", batch_text("order", "draw"),
		    "this is of kind batch, and the workflow of that name is of");
	must_refuse(0, "render", text_of("{'workflow':'render','kind':'batch'}"), "\"item_action\" is missing");
	must_put(0, "render", batch_text("render", "draw"), 1);
	must_refuse(0, "render", run_text("render", "one"), "a definition cannot change its kind");
	must_put(0, "order", run_text("order", "two"), 2);
	write_file("a.json", entity_text("order"));
	assert_int_equal(load(0, dir), HX_CONFIG_ERROR);
	assert_said("a definition cannot change its kind");
	assert_string_equal(current_step(0, "order"), "two");
}

/* ---- versions ---- */

static void test_every_version_that_was_in_force_is_known(void **state)
{
	(void)state;
	must_put(0, "order", run_text("order", "one"), 1);
	must_put(0, "order", run_text("order", "two"), 2);
	must_put(0, "order", run_text("order", "two"), 2); /* the same is the same version */
	assert_string_equal(current_step(0, "order"), "two");
	assert_string_equal(step_of(0, "order", 1), "one");
	assert_string_equal(step_of(0, "order", 2), "two");
	must_put(0, "order", run_text("order", "one"), 3);
	assert_string_equal(step_of(0, "order", 3), "one");
	assert_int_equal(definitions_run(&nodes[0].defs, slice_str("order"))->version, 3);
	assert_int_equal(nodes[0].told, 0);
}

static void test_a_restart_loads_what_runs_have(void **state)
{
	(void)state;
	must_put(0, "order", run_text("order", "one"), 1);
	must_put(0, "order", run_text("order", "two"), 2);
	must_put(0, "order", run_text("order", "three"), 3);
	must_put(0, "other", run_text("other", "one"), 1);
	insert_run(1, "order", 1);
	insert_run(2, "order", 1);
	insert_run(3, "order", 3);
	node_open(1, /* natives= */ NULL);
	must_load(1, NULL);
	assert_string_equal(current_step(1, "order"), "three");
	assert_string_equal(step_of(1, "order", 1), "one");
	assert_string_equal(step_of(1, "order", 3), "three");
	assert_string_equal(step_of(1, "other", 1), "one");
	assert_int_equal(nodes[1].told, 0);
	assert_int_equal(nodes[1].defs.versions_n, 3);
	assert_string_equal(step_of(1, "order", 2), "none"); /* nobody has it */
	assert_int_equal(nodes[1].told, 1);
	assert_int_equal(must_bring_wanted(1), 1);
	assert_string_equal(step_of(1, "order", 2), "two");
	assert_int_equal(must_bring_wanted(1), 0);
}

static void test_batches_keep_their_version(void **state)
{
	(void)state;
	must_put(0, "render", batch_text("render", "one"), 1);
	must_put(0, "render", batch_text("render", "two"), 2);
	must_put(0, "render", batch_text("render", "two"), 2); /* the same is the same version */
	must_put(0, "render", batch_text("render", "three"), 3);
	assert_string_equal(item_of(0, "render", 1), "one");
	assert_int_equal(definitions_batch(&nodes[0].defs, slice_str("render"))->version, 3);
	assert_int_equal(nodes[0].told, 0);
	insert_batch(1, "render", 1);
	node_open(1, /* natives= */ NULL);
	must_load(1, NULL);
	assert_int_equal(nodes[1].defs.versions_n, 2); /* what is in force, and what a batch has */
	assert_string_equal(item_of(1, "render", 1), "one");
	assert_string_equal(item_of(1, "render", 3), "three");
	assert_int_equal(nodes[1].told, 0);
	assert_string_equal(item_of(1, "render", 2), "none");
	assert_int_equal(nodes[1].told, 1);
	assert_int_equal(must_bring_wanted(1), 1);
	assert_string_equal(item_of(1, "render", 2), "two");
	must_put(0, "render", batch_text("render", "four"), 4);
	assert_string_equal(item_of(1, "render", 4), "none"); /* another node has put and used it */
	assert_int_equal(must_bring_wanted(1), 1);
	assert_string_equal(item_of(1, "render", 4), "four");
	assert_int_equal(definitions_batch(&nodes[1].defs, slice_str("render"))->version, 3);
	assert_int_equal(must_follow(1), 1);
	assert_int_equal(definitions_batch(&nodes[1].defs, slice_str("render"))->version, 4);
}

/* What is in doubt is called again by the version that called it, also of an entity in a table of the user's. */
static void test_calls_in_doubt_find_their_version(void **state)
{
	int64_t in_force = 0;

	(void)state;
	script("CREATE TABLE invoices (id text, status text, version bigint, updated_at bigint)");
	must_put(0, "billing", call_text("billing", "http://127.0.0.1:1/one"), 1);
	must_put(0, "billing", call_text("billing", "http://127.0.0.1:1/two"), 2);
	assert_string_equal(called_by(0, "billing", 1)->url, "http://127.0.0.1:1/one");
	assert_string_equal(definitions_action(&nodes[0].defs, slice_str("billing"), slice_str("y"), &in_force)->url,
			    "http://127.0.0.1:1/two");
	assert_int_equal(in_force, 2);
	node_open(1, /* natives= */ NULL);
	must_load(1, NULL);
	assert_string_equal(called_by(1, "billing", 2)->url, "http://127.0.0.1:1/two");
	assert_int_equal(nodes[1].told, 0);
	assert_null(called_by(1, "billing", 1));
	assert_null(action_of(1, "billing", "y", 1));
	assert_int_equal(nodes[1].told, 1);
	size_t tables_n = nodes[1].defs.tables_n;
	assert_int_equal(must_bring_wanted(1), 1);
	assert_string_equal(called_by(1, "billing", 1)->url, "http://127.0.0.1:1/one");
	assert_string_equal(action_of(1, "billing", "y", 1)->url, "http://127.0.0.1:1/one");
	assert_int_equal(nodes[1].defs.tables_n, tables_n); /* it moves nothing, and prepares nothing */
	assert_int_equal(definitions_find(&nodes[1].defs, slice_str("billing"))->version, 2);
}

static void test_a_batch_that_cannot_be_read(void **state)
{
	(void)state;
	must_put(0, "render", batch_text("render", "one"), 1);
	must_put(0, "render", batch_text("render", "two"), 2);
	insert_batch(1, "render", 1);
	script("UPDATE hx_definition SET text = '{\"workflow\":\"render\",\"kind\":\"batch\"}' WHERE version = 1");
	node_open(1, /* natives= */ NULL);
	must_load(1, NULL);
	assert_int_equal(findings.errors, 0);
	assert_said(
		"workflow render: version: version 1, which runs, batches or calls in doubt still have, cannot serve here");
	assert_string_equal(item_of(1, "render", 2), "two");
	assert_string_equal(item_of(1, "render", 1), "none");
	assert_int_equal(must_bring_wanted(1), 0);
	assert_int_equal(findings.warnings, 1);
	assert_int_equal(must_bring_wanted(1), 0);
	assert_int_equal(findings.warnings, 0);
}

/* Another node puts a version and creates a run of it: here it is asked for before anything was followed. */
static void test_what_another_node_put_is_brought(void **state)
{
	(void)state;
	must_put(0, "order", run_text("order", "one"), 1);
	node_open(1, /* natives= */ NULL);
	must_load(1, NULL);
	must_put(0, "order", run_text("order", "two"), 2);
	assert_string_equal(step_of(1, "order", 2), "none");
	assert_string_equal(step_of(1, "order", 2), "none");
	assert_int_equal(nodes[1].told, 1);
	assert_int_equal(must_bring_wanted(1), 1);
	assert_string_equal(step_of(1, "order", 2), "two");
	assert_string_equal(current_step(1, "order"), "one"); /* it is not in force here yet */
	assert_int_equal(must_follow(1), 1);
	assert_string_equal(current_step(1, "order"), "two");
	assert_string_equal(step_of(1, "order", 2), "two");
	assert_int_equal(must_follow(1), 0);
}

/* Put, replaced, and put again while this node was not looking: the same text under another number. */
static void test_the_same_text_is_another_version(void **state)
{
	(void)state;
	must_put(0, "order", run_text("order", "one"), 1);
	must_put(0, "billing", entity_text("billing"), 1);
	node_open(1, /* natives= */ NULL);
	must_load(1, NULL);
	must_put(0, "order", run_text("order", "two"), 2);
	must_put(0, "order", run_text("order", "one"), 3);
	must_follow(1);
	assert_int_equal(definitions_run(&nodes[1].defs, slice_str("order"))->version, 3);
	assert_string_equal(step_of(1, "order", 3), "one");
	assert_string_equal(step_of(1, "order", 1), "one");
	assert_int_equal(nodes[1].told, 0);
}

/* A version that cannot be read stops its own runs and nothing else, and is told once. */
static void test_what_cannot_be_read(void **state)
{
	(void)state;
	must_put(0, "order", run_text("order", "one"), 1);
	must_put(0, "order", run_text("order", "two"), 2);
	insert_run(1, "order", 1);
	insert_run(2, "order", 2);
	script("UPDATE hx_definition SET text = '{\"workflow\":\"order\",\"kind\":\"run\",\"step\":[]}' WHERE version = 1");
	node_open(1, /* natives= */ NULL);
	must_load(1, NULL);
	assert_int_equal(findings.errors, 0);
	assert_int_equal(findings.warnings, 1);
	assert_said(
		"workflow order: version: version 1, which runs, batches or calls in doubt still have, cannot serve here");
	assert_string_equal(current_step(1, "order"), "two");
	assert_string_equal(step_of(1, "order", 1), "none");
	assert_int_equal(must_bring_wanted(1), 0);
	assert_int_equal(findings.warnings, 1);
	assert_string_equal(step_of(1, "order", 1), "none");
	assert_string_equal(step_of(1, "order", 99), "none");
	assert_int_equal(nodes[1].told, 2); /* for 1 and for 99 */
	assert_int_equal(must_bring_wanted(1), 0);
	assert_int_equal(findings.warnings, 1);
	assert_said("version 99");
	assert_int_equal(must_bring_wanted(1), 0);
	assert_int_equal(findings.warnings, 0);
	/* A run whose version is of the other kind, with a table that nobody has looked at. */
	script("UPDATE hx_definition SET text = '{\"workflow\":\"order\",\"kind\":\"entity\",\"meta\":{\"table\":\"t\"},"
	       "\"status_types\":[\"a\"],\"initial_status\":\"a\",\"steps\":[]}' WHERE version = 1");
	node_close(1);
	node_open(1, /* natives= */ NULL);
	must_load(1, NULL);
	assert_int_equal(findings.warnings, 1);
	assert_string_equal(step_of(1, "order", 1), "none");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(test_a_folder_of_all),
		ON_BOTH(test_a_kind_stays),
		ON_BOTH(test_every_version_that_was_in_force_is_known),
		ON_BOTH(test_a_restart_loads_what_runs_have),
		ON_BOTH(test_batches_keep_their_version),
		ON_BOTH(test_calls_in_doubt_find_their_version),
		ON_BOTH(test_a_batch_that_cannot_be_read),
		ON_BOTH(test_what_another_node_put_is_brought),
		ON_BOTH(test_the_same_text_is_another_version),
		ON_BOTH(test_what_cannot_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
