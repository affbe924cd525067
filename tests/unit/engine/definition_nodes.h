/*
 * Registries of definitions on one real store: two of them are two nodes. With texts of definitions of all kinds, and what nodes do
 * with them: put, refuse, load, look again.
 */
#ifndef HX_TESTS_UNIT_ENGINE_DEFINITION_NODES_H
#define HX_TESTS_UNIT_ENGINE_DEFINITION_NODES_H

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

static inline void told(void *context)
{
	((struct node *)context)->told++;
}

static inline void node_open(int i, const struct natives *natives)
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

static inline void node_close(int i)
{
	if (!nodes[i].open)
		return;
	definitions_release(&nodes[i].defs);
	db_close(nodes[i].db);
	nodes[i].open = false;
}

static inline int set_up(void **state)
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

static inline int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static inline int tear_down(void **state)
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

static inline char *text_of(const char *format, ...) HX_PRINTF(1, 2);
static inline char *text_of(const char *format, ...)
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
static inline char *run_text(const char *name, const char *step)
{
	return text_of("{'workflow':'%s','kind':'run','actions':{'x':{'kind':'noop'}},"
		       "'steps':[{'name':'%s','type':'task','action':'x'}]}",
		       name, step);
}

/* The action's name tells the versions apart. */
static inline char *batch_text(const char *name, const char *action)
{
	return text_of("{'workflow':'%s','kind':'batch','actions':{'%s':{'kind':'noop'}},'item_action':'%s'}", name,
		       action, action);
}

static inline char *entity_text(const char *name)
{
	return text_of("{'workflow':'%s','kind':'entity','status_types':['a','b'],'initial_status':'a',"
		       "'actions':{'y':{'kind':'noop'}},'steps':[{'step_id':1,'step_key':'go','status':'a',"
		       "'successful_state':'b','action':'y'}]}",
		       name);
}

/* The address tells the versions apart. */
static inline char *call_text(const char *name, const char *url)
{
	return text_of("{'workflow':'%s','kind':'entity','status_types':['a','b'],'initial_status':'a',"
		       "'meta':{'table':'invoices'},'actions':{'y':{'kind':'http','url':'%s','effect':'keyed'}},"
		       "'steps':[{'step_id':1,'step_key':'go','status':'a','successful_state':'b','action':'y'}]}",
		       name, url);
}

static inline void print_findings(void)
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

static inline void assert_said(const char *part)
{
	if (!strstr(words, part))
		fail_msg("\"%s\" is not in: %s", part, words);
}

/* ---- what nodes do ---- */

static inline enum hx_code put(int i, const char *name, const char *text, int64_t *ret_version)
{
	enum hx_code code;

	findings_init(&findings, &arena);
	code = definitions_put(&nodes[i].defs, slice_str(name), slice_str(text), nodes[i].runner, clock_system(),
			       &config, &findings, ret_version, &err);
	print_findings();
	return code;
}

static inline void must_put(int i, const char *name, const char *text, int64_t version)
{
	int64_t got = 0;

	if (put(i, name, text, &got))
		fail_msg("%s: %s", err.detail, words);
	assert_int_equal(got, version);
}

static inline void must_refuse(int i, const char *name, const char *text, const char *part)
{
	int64_t version;

	assert_int_equal(put(i, name, text, &version), HX_CONFIG_ERROR);
	assert_said(part);
}

static inline enum hx_code load(int i, const char *folder)
{
	enum hx_code code;

	findings_init(&findings, &arena);
	code = definitions_load(&nodes[i].defs, folder, nodes[i].runner, clock_system(), &config, &findings, &err);
	print_findings();
	return code;
}

static inline void must_load(int i, const char *folder)
{
	if (load(i, folder))
		fail_msg("%s: %s", err.detail, words);
}

static inline size_t must_follow(int i)
{
	size_t changes_n;

	findings_init(&findings, &arena);
	if (definitions_follow(&nodes[i].defs, &nodes[i].seen, nodes[i].runner, clock_system(), &config, &findings,
			       &changes_n, &err))
		fail_msg("%s", err.detail);
	return changes_n;
}

static inline size_t must_bring_wanted(int i)
{
	size_t loaded_n;

	findings_init(&findings, &arena);
	if (definitions_load_wanted(&nodes[i].defs, nodes[i].runner, &findings, &loaded_n, &err))
		fail_msg("%s", err.detail);
	print_findings();
	return loaded_n;
}

static inline const char *current_step(int i, const char *name)
{
	const struct run_machine *machine = definitions_run(&nodes[i].defs, slice_str(name));

	return machine ? machine->definition->steps[0].name : "none";
}

static inline const char *step_of(int i, const char *name, int64_t version)
{
	const struct run_machine *machine = definitions_run_version(&nodes[i].defs, slice_str(name), version);

	if (machine)
		assert_int_equal(machine->version, version);
	return machine ? machine->definition->steps[0].name : "none";
}

static inline const char *item_of(int i, const char *name, int64_t version)
{
	const struct batch_machine *machine = definitions_batch_version(&nodes[i].defs, slice_str(name), version);

	if (machine)
		assert_int_equal(machine->version, version);
	return machine ? machine->definition->item_action->name : "none";
}

static inline const struct action *action_of(int i, const char *name, const char *action, int64_t version)
{
	return definitions_action(&nodes[i].defs, slice_str(name), slice_str(action), &version);
}

/* The action of its first step. */
static inline const struct action *called_by(int i, const char *name, int64_t version)
{
	const struct workflow *w = definitions_entity_version(&nodes[i].defs, slice_str(name), version);

	return w ? w->steps[0].views[0].action : NULL;
}

static inline void script(const char *sql)
{
	if (nodes[0].db->driver->script(nodes[0].db, sql, &err))
		fail_msg("%s", err.detail);
}

static inline void insert_run(int subject, const char *workflow, int version)
{
	char sql[400];

	snprintf(sql, sizeof sql,
		 "INSERT INTO hx_run (subject, workspace, workflow, definition_version, requester, input, created_at)"
		 " VALUES (%d, 'default', '%s', %d, 'default', '{}', 1)",
		 subject, workflow, version);
	script(sql);
}

static inline void insert_batch(int subject, const char *workflow, int version)
{
	char sql[400];

	snprintf(
		sql, sizeof sql,
		"INSERT INTO hx_batch (subject, workspace, workflow, definition_version, requester, account, created_at)"
		" VALUES (%d, 'default', '%s', %d, 'default', 1, 1)",
		subject, workflow, version);
	script(sql);
}

static inline void write_file(const char *name, const char *text)
{
	char path[4100];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static enum store_kind sqlite_file = STORE_SQLITE_FILE, postgres = STORE_POSTGRES;

#define ON(store_, test)                                                                                               \
	{                                                                                                              \
#test " on " #store_, test, set_up, tear_down, &(store_)                                               \
	}
#define ON_BOTH(test) ON(sqlite_file, test), ON(postgres, test)

#endif
