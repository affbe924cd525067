/*
 * Definitions of all kinds on a real store: what is in force, which versions of runs and batches are known, after a
 * restart and on another node, and what happens when two nodes write at once. Two registries on one store are two nodes.
 */
#include "engine/definitions.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/store.h"

#define NODES 2

struct node {
	struct definitions defs;
	struct db *db;
	struct direct_runner direct;
	struct runner *runner;
	int64_t seen;
	int told;
	bool open;
};

static struct store *store;
static struct node nodes[NODES];
static struct config config;
static struct arena arena;
static struct findings findings;
static struct hx_error err;
static char dir[4000];
static char words[8000];

static void told(void *context)
{
	((struct node *)context)->told++;
}

static void node_open(int i, const struct natives *natives)
{
	struct node *node = &nodes[i];

	memset(node, 0, sizeof *node);
	definitions_init(&node->defs, natives, told, node);
	node->db = store_open_migrated(store);
	direct_runner_init(&node->direct, node->db);
	node->runner = &node->direct.runner;
	node->seen = -1;
	node->open = true;
}

static void node_close(int i)
{
	if (!nodes[i].open)
		return;
	definitions_release(&nodes[i].defs);
	db_close(nodes[i].db);
	nodes[i].open = false;
}

static int set_up(void **state)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(dir, sizeof dir, "%s/definitions.XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(dir))
		return -1;
	store = store_new(*(enum store_kind *)*state);
	config_init(&config);
	arena_init(&arena, 64u << 20);
	node_open(0, /* natives= */ NULL);
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static int tear_down(void **state)
{
	(void)state;
	for (int i = 0; i < NODES; i++)
		node_close(i);
	store_free(store);
	arena_release(&arena);
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}

/* ---- texts, with ' for " ---- */

static char *text_of(const char *format, ...) HX_PRINTF(1, 2);
static char *text_of(const char *format, ...)
{
	char buf[4000];
	va_list args;
	struct slice copy;

	va_start(args, format);
	vsnprintf(buf, sizeof buf, format, args);
	va_end(args);
	copy = arena_copy(&arena, slice_str(buf));
	for (size_t i = 0; i < copy.n; i++)
		if (copy.p[i] == '\'')
			((char *)copy.p)[i] = '"';
	return (char *)copy.p;
}

/* The step's name tells the versions apart. */
static char *run_text(const char *name, const char *step)
{
	return text_of("{'workflow':'%s','kind':'run','actions':{'x':{'kind':'noop'}},"
		       "'steps':[{'name':'%s','type':'task','action':'x'}]}",
		       name, step);
}

/* The action's name tells the versions apart. */
static char *batch_text(const char *name, const char *action)
{
	return text_of("{'workflow':'%s','kind':'batch','actions':{'%s':{'kind':'noop'}},'item_action':'%s'}", name,
		       action, action);
}

static char *entity_text(const char *name)
{
	return text_of("{'workflow':'%s','kind':'entity','status_types':['a','b'],'initial_status':'a',"
		       "'actions':{'y':{'kind':'noop'}},'steps':[{'step_id':1,'step_key':'go','status':'a',"
		       "'successful_state':'b','action':'y'}]}",
		       name);
}

/* The address tells the versions apart. */
static char *call_text(const char *name, const char *url)
{
	return text_of("{'workflow':'%s','kind':'entity','status_types':['a','b'],'initial_status':'a',"
		       "'meta':{'table':'invoices'},'actions':{'y':{'kind':'http','url':'%s','effect':'keyed'}},"
		       "'steps':[{'step_id':1,'step_key':'go','status':'a','successful_state':'b','action':'y'}]}",
		       name, url);
}

static void print_findings(void)
{
	struct strbuf line;

	strbuf_init(&line, sizeof words);
	for (const struct finding *f = findings.first; f; f = f->next) {
		finding_print(f, &line);
		strbuf_add_char(&line, '\n');
	}
	snprintf(words, sizeof words, "%s", line.n ? line.p : "");
	strbuf_release(&line);
}

static void assert_said(const char *part)
{
	if (!strstr(words, part))
		fail_msg("\"%s\" is not in: %s", part, words);
}

/* ---- what nodes do ---- */

static enum hx_code put(int i, const char *name, const char *text, int64_t *ret_version)
{
	enum hx_code code;

	findings_init(&findings, &arena);
	code = definitions_put(&nodes[i].defs, slice_str(name), slice_str(text), nodes[i].runner, clock_system(),
			       &config, &findings, ret_version, &err);
	print_findings();
	return code;
}

static void must_put(int i, const char *name, const char *text, int64_t version)
{
	int64_t got = 0;

	if (put(i, name, text, &got))
		fail_msg("%s: %s", err.detail, words);
	assert_int_equal(got, version);
}

static void must_refuse(int i, const char *name, const char *text, const char *part)
{
	int64_t version;

	assert_int_equal(put(i, name, text, &version), HX_CONFIG_ERROR);
	assert_said(part);
}

static enum hx_code load(int i, const char *folder)
{
	enum hx_code code;

	findings_init(&findings, &arena);
	code = definitions_load(&nodes[i].defs, folder, nodes[i].runner, clock_system(), &config, &findings, &err);
	print_findings();
	return code;
}

static void must_load(int i, const char *folder)
{
	if (load(i, folder))
		fail_msg("%s: %s", err.detail, words);
}

static size_t must_follow(int i)
{
	size_t changes_n;

	findings_init(&findings, &arena);
	if (definitions_follow(&nodes[i].defs, &nodes[i].seen, nodes[i].runner, clock_system(), &config, &findings,
			       &changes_n, &err))
		fail_msg("%s", err.detail);
	return changes_n;
}

static size_t must_bring_wanted(int i)
{
	size_t loaded_n;

	findings_init(&findings, &arena);
	if (definitions_load_wanted(&nodes[i].defs, nodes[i].runner, &findings, &loaded_n, &err))
		fail_msg("%s", err.detail);
	print_findings();
	return loaded_n;
}

static const char *current_step(int i, const char *name)
{
	const struct run_machine *machine = definitions_run(&nodes[i].defs, slice_str(name));

	return machine ? machine->definition->steps[0].name : "none";
}

static const char *step_of(int i, const char *name, int64_t version)
{
	const struct run_machine *machine = definitions_run_version(&nodes[i].defs, slice_str(name), version);

	if (machine)
		assert_int_equal(machine->version, version);
	return machine ? machine->definition->steps[0].name : "none";
}

static const char *item_of(int i, const char *name, int64_t version)
{
	const struct batch_machine *machine = definitions_batch_version(&nodes[i].defs, slice_str(name), version);

	if (machine)
		assert_int_equal(machine->version, version);
	return machine ? machine->definition->item_action->name : "none";
}

static const struct action *action_of(int i, const char *name, const char *action, int64_t version)
{
	return definitions_action(&nodes[i].defs, slice_str(name), slice_str(action), &version);
}

/* The action of its first step. */
static const struct action *called_by(int i, const char *name, int64_t version)
{
	const struct workflow *w = definitions_entity_version(&nodes[i].defs, slice_str(name), version);

	return w ? w->steps[0].views[0].action : NULL;
}

static void script(const char *sql)
{
	if (nodes[0].db->driver->script(nodes[0].db, sql, &err))
		fail_msg("%s", err.detail);
}

static void insert_run(int subject, const char *workflow, int version)
{
	char sql[400];

	snprintf(sql, sizeof sql,
		 "INSERT INTO hx_run (subject, workspace, workflow, definition_version, requester, input, created_at)"
		 " VALUES (%d, 'default', '%s', %d, 'default', '{}', 1)",
		 subject, workflow, version);
	script(sql);
}

static void insert_batch(int subject, const char *workflow, int version)
{
	char sql[400];

	snprintf(
		sql, sizeof sql,
		"INSERT INTO hx_batch (subject, workspace, workflow, definition_version, requester, account, created_at)"
		" VALUES (%d, 'default', '%s', %d, 'default', 1, 1)",
		subject, workflow, version);
	script(sql);
}

static void write_file(const char *name, const char *text)
{
	char path[4100];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

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

/* Who may do without them takes what the store has, and leaves what needs them to others; but puts nothing new that does. */
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
	assert_true(slice_is(definitions_left_jobs(&nodes[1].defs), "[]"));
	must_put(0, "order", native_text("nobody"), 3);
	node_close(1);
	node_open(1, &natives);
	must_load(1, NULL);
	assert_string_equal(step_of(1, "order", 3), "s");
	assert_true(slice_is(definitions_left_jobs(&nodes[1].defs), "[\"order/x\"]"));
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

static enum store_kind sqlite_file = STORE_SQLITE_FILE, postgres = STORE_POSTGRES;

#define ON(store_, test)                                                                                               \
	{                                                                                                              \
#test " on " #store_, test, set_up, tear_down, &(store_)                                               \
	}
#define ON_BOTH(test) ON(sqlite_file, test), ON(postgres, test)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(test_a_folder_of_all),
		ON_BOTH(test_a_kind_stays),
		ON_BOTH(test_every_version_that_was_in_force_is_known),
		ON_BOTH(test_a_restart_loads_what_runs_have),
		ON_BOTH(test_batches_keep_their_version),
		ON_BOTH(test_a_batch_that_cannot_be_read),
		ON_BOTH(test_calls_in_doubt_find_their_version),
		ON_BOTH(test_what_another_node_put_is_brought),
		ON_BOTH(test_the_same_text_is_another_version),
		ON_BOTH(test_what_cannot_be_read),
		ON_BOTH(test_natives_are_compared),
		ON_BOTH(test_natives_of_others_are_left_to_them),
		ON_BOTH(test_natives_of_batches_are_compared),
		ON_BOTH(test_sql_of_runs_is_tried),
		ON_BOTH(test_statements_are_shared_by_text),
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
