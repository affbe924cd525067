/* Definitions when two nodes write at once, and when an entity comes or goes just before the write. */
#include "unit/engine/definition_nodes.h"

/* ---- two nodes at once ---- */

/* Lets the other node put, or move an entity, just before this one writes its version. */
struct meddler {
	struct runner runner;
	struct runner *real;
	const char *name, *text;
	const char *sql; /* not NULL: this, instead */
	int64_t version;
	bool done;
};

static enum hx_code meddle(struct runner *runner, struct unit *unit, struct unit_result *ret_result, struct arena *rows,
			   struct hx_error *e)
{
	struct meddler *m = (struct meddler *)runner;

	if (!m->done && strcmp(unit->lines[0].stmt->name, "definition_add") == 0) {
		struct findings said;

		m->done = true;
		findings_init(&said, &arena);
		if (m->sql)
			script(m->sql);
		else if (definitions_put(&nodes[0].defs, slice_str(m->name), slice_str(m->text), nodes[0].runner,
					 clock_system(), &config, &said, &m->version, &err))
			fail_msg("%s", err.detail);
	}
	return m->real->run(m->real, unit, ret_result, rows, e);
}

static struct meddler meddler_on(int i, const char *name, const char *text)
{
	return (struct meddler){
		.runner = {.run = meddle, .postgres = nodes[i].runner->postgres},
		.real = nodes[i].runner,
		.name = name,
		.text = text,
	};
}

static void test_two_nodes_put_at_once(void **state)
{
	struct meddler m;

	(void)state;
	must_put(0, "order", run_text("order", "one"), 1);
	node_open(1, /* natives= */ NULL);
	must_load(1, NULL);
	m = meddler_on(1, "order", run_text("order", "two"));
	nodes[1].runner = &m.runner;
	must_put(1, "order", run_text("order", "three"), 3);
	assert_true(m.done);
	assert_int_equal(m.version, 2);
	assert_string_equal(step_of(1, "order", 3), "three");
	assert_string_equal(current_step(1, "order"), "three");
	assert_string_equal(step_of(1, "order", 2), "none"); /* never in force here, and wanted when it is needed */
	assert_int_equal(must_bring_wanted(1), 1);
	assert_string_equal(step_of(1, "order", 2), "two");
}

/* What was found before the second look is not told twice, and what the caller had stays. */
static void test_a_second_look_tells_once(void **state)
{
	const char *text = text_of("{'workflow':'order','kind':'run','steps':[{'name':'c','type':'condition',"
				   "'when':'.state.nothing','then':'end','else':'w'},"
				   "{'name':'w','type':'wait','for':'1s'}]}");
	struct meddler m;
	int64_t version;
	size_t n = 0;

	(void)state;
	node_open(1, /* natives= */ NULL);
	m = meddler_on(1, "order", run_text("order", "one"));
	findings_init(&findings, &arena);
	findings_add(&findings, (struct finding){.severity = FINDING_WARNING, .rule = "earlier"}, "a word");
	assert_int_equal(definitions_put(&nodes[1].defs, slice_str("order"), slice_str(text), &m.runner, clock_system(),
					 &config, &findings, &version, &err),
			 HX_OK);
	assert_int_equal(version, 2);
	for (const struct finding *f = findings.first; f; f = f->next)
		n++;
	print_findings();
	assert_said("a word");
	assert_said("no step has save_as");
	assert_int_equal(n, 2);
	assert_int_equal(findings.warnings, 2);
}

static void test_two_nodes_put_two_kinds_at_once(void **state)
{
	struct meddler m;

	(void)state;
	node_open(1, /* natives= */ NULL);
	m = meddler_on(1, "order", entity_text("order"));
	nodes[1].runner = &m.runner;
	must_refuse(1, "order", run_text("order", "one"), "a definition cannot change its kind");
	assert_true(m.done);
	assert_int_equal(findings.errors, 1);
	assert_null(definitions_run(&nodes[1].defs, slice_str("order")));
}

/* Nodes that start together on the same folder write one version, not one for each. */
static void test_two_nodes_start_at_once(void **state)
{
	struct meddler m;

	(void)state;
	write_file("a.json", run_text("order", "one"));
	node_open(1, /* natives= */ NULL);
	m = meddler_on(1, "order", run_text("order", "one"));
	nodes[1].runner = &m.runner;
	must_load(1, dir);
	assert_true(m.done);
	assert_int_equal(definitions_run(&nodes[1].defs, slice_str("order"))->version, 1);
	assert_string_equal(step_of(1, "order", 1), "one");
}

/* ---- orphans ---- */

static char *entity_with(const char *name, const char *statuses)
{
	return text_of("{'workflow':'%s','kind':'entity','status_types':[%s],'initial_status':'a','steps':[]}", name,
		       statuses);
}

#define INSERT_ENTITY                                                                                                                                                  \
	"INSERT INTO hx_subject (id, kind, status, version, op, updated_at, seq, head) VALUES (7, 1, 'c', 1, 1, 1, 1, hx_link(NULL, 7, 1, '', 'c', 1, 0, 1, 1, 'x'));" \
	"INSERT INTO hx_entity (subject, workspace, workflow, name, data) VALUES (7, 'default', 'paper', 'p', '{}')"

/* It was not there when they were counted. */
static void test_an_entity_that_comes_just_before_the_write(void **state)
{
	struct meddler m;

	(void)state;
	must_put(0, "paper", entity_with("paper", "'a','b','c'"), 1);
	node_open(1, /* natives= */ NULL);
	must_load(1, NULL);
	m = meddler_on(1, NULL, NULL);
	m.sql = INSERT_ENTITY;
	nodes[1].runner = &m.runner;
	must_refuse(1, "paper", entity_with("paper", "'a','b'"), "1 entity is in the status \"c\"");
	assert_true(m.done);
	assert_int_equal(findings.errors, 1);
	must_put(1, "paper", entity_with("paper", "'a','c'"), 2); /* nobody is in b */
}

static char *entity_claimed_by(const char *step)
{
	return text_of("{'workflow':'paper','kind':'entity','status_types':['a','b','c'],'initial_status':'a','steps':["
		       "{'step_id':1,'step_key':'%s','status':'a','successful_state':'b','claim_state':['c','a']}]}",
		       step);
}

static void test_a_claim_that_comes_just_before_the_write(void **state)
{
	static const struct module_config module = {.name = "paper", .janitor.declared = true};
	struct meddler m;

	(void)state;
	config.modules = &module;
	config.modules_n = 1;
	must_put(0, "paper", entity_claimed_by("send"), 1);
	node_open(1, /* natives= */ NULL);
	must_load(1, NULL);
	m = meddler_on(1, NULL, NULL);
	m.sql = INSERT_ENTITY
		";UPDATE hx_subject SET owner = 'held'; UPDATE hx_entity SET claim_step = 'send', claim_from = 'a'";
	nodes[1].runner = &m.runner;
	must_refuse(1, "paper", entity_claimed_by("dispatch"), "claimed by the step \"send\" from \"a\"");
	assert_true(m.done);
	assert_int_equal(findings.errors, 1);
	script("UPDATE hx_subject SET owner = NULL");
	must_put(1, "paper", entity_claimed_by("dispatch"), 2);
}

/* One file that may not be taken in keeps all others out, and nothing of them is written. */
static void test_orphans_keep_a_whole_folder_out(void **state)
{
	(void)state;
	write_file("a.json", entity_with("letter", "'a','b'"));
	write_file("b.json", entity_with("paper", "'a','b','c'"));
	must_load(0, dir);
	script(INSERT_ENTITY);
	write_file("a.json", entity_with("letter", "'a','c'"));
	write_file("b.json", entity_with("paper", "'a','b'"));
	assert_int_equal(load(0, dir), HX_CONFIG_ERROR);
	assert_said("b.json:1");
	assert_said("workflow paper");
	assert_said("1 entity is in the status \"c\", which this definition does not have");
	write_file("b.json", entity_with("paper", "'a','b','c'"));
	must_load(0, dir);
	must_put(0, "letter", entity_with("letter", "'a','d'"), 3); /* and not 4 */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(test_two_nodes_put_at_once),
		ON_BOTH(test_a_second_look_tells_once),
		ON_BOTH(test_two_nodes_put_two_kinds_at_once),
		ON_BOTH(test_two_nodes_start_at_once),
		ON_BOTH(test_an_entity_that_comes_just_before_the_write),
		ON_BOTH(test_a_claim_that_comes_just_before_the_write),
		ON_BOTH(test_orphans_keep_a_whole_folder_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
