/* See definitions.h. */
#include "engine/definitions.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define ARENA_BYTES_MAX (1u << 30)
#define READ_BYTES_MAX (256u << 20)
#define PUT_TRIES_MAX 5

/* clang-format off */

static const struct db_stmt stmt_latest = {
	.name = "definition_latest",
	.sql = "SELECT d.name, d.version, d.text FROM definition d"
	       " WHERE d.version = (SELECT max(version) FROM definition WHERE name = d.name) ORDER BY d.name",
	.in = "",
	.out = "tit",
};

static const struct db_stmt stmt_add = {
	.name = "definition_add",
	.sql = "INSERT INTO definition (name, version, text, at) VALUES (?1, ?2, ?3, ?4)"
	       " ON CONFLICT DO NOTHING RETURNING version",
	.in = "titi",
	.out = "i",
};

/* clang-format on */

/* A set that is being put together: what would be in force. */
struct candidate {
	const struct workflow *workflow;
	int64_t version;       /* that the store has already; 0: none */
	bool differs;	       /* from that version: a new one is to be written */
	const struct entity_machine *machine; /* kept from the set in force, when nothing has changed */
};

struct change {
	struct definitions *defs;
	struct runner *runner;
	struct findings *findings;
	size_t n;
	struct candidate set[DEFINITIONS_MAX];
};

void definitions_init(struct definitions *defs)
{
	memset(defs, 0, sizeof *defs);
	pthread_rwlock_init(&defs->lock, NULL);
	pthread_mutex_init(&defs->changing, NULL);
	arena_init(&defs->arena, ARENA_BYTES_MAX);
}

void definitions_release(struct definitions *defs)
{
	arena_release(&defs->arena);
	pthread_mutex_destroy(&defs->changing);
	pthread_rwlock_destroy(&defs->lock);
}

/* ---- putting a set together ---- */

static struct candidate *candidate_of(struct change *c, const char *name)
{
	for (size_t i = 0; i < c->n; i++)
		if (strcmp(c->set[i].workflow->name, name) == 0)
			return &c->set[i];
	return NULL;
}

static const struct definition *in_force(const struct definitions *defs, const char *name)
{
	for (size_t i = 0; i < defs->n; i++)
		if (strcmp(defs->current[i].machine->workflow->name, name) == 0)
			return &defs->current[i];
	return NULL;
}

/* Parses a text into the set, taking the place of a candidate of the same name. */
static struct candidate *add_text(struct change *c, const char *file, struct slice text)
{
	const struct workflow *workflow = NULL;
	struct candidate *candidate;

	workflow_parse(arena_copy(&c->defs->arena, slice_str(file)).p, arena_copy(&c->defs->arena, text), &c->defs->arena,
		       c->findings, &workflow);
	if (!workflow)
		return NULL;
	candidate = candidate_of(c, workflow->name);
	if (!candidate) {
		if (c->n == DEFINITIONS_MAX) {
			findings_add(c->findings, (struct finding){.severity = FINDING_ERROR, .file = file, .rule = "limit"},
				     "more than %d workflows", DEFINITIONS_MAX);
			return NULL;
		}
		candidate = &c->set[c->n++];
		*candidate = (struct candidate){.differs = true};
	} else {
		candidate->differs = !slice_eq(candidate->workflow->text, workflow->text);
	}
	candidate->workflow = workflow;
	return candidate;
}

static enum hx_code read_file(const char *path, struct strbuf *out, struct hx_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = 0;
	char buf[16384];

	if (fd < 0)
		return error_set(err, HX_CONFIG_ERROR, "%s: %s", path, strerror(errno));
	while ((n = read(fd, buf, sizeof buf)) > 0)
		strbuf_add(out, buf, (size_t)n);
	close(fd);
	if (n < 0 || out->failed)
		return error_set(err, HX_CONFIG_ERROR, "%s: %s", path, n < 0 ? strerror(errno) : "too large");
	return HX_OK;
}

static int is_definition(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name);

	return n > 5 && entry->d_name[0] != '.' && strcmp(entry->d_name + n - 5, ".json") == 0;
}

static enum hx_code add_file(struct change *c, const char *dir, const char *name, struct hx_error *err)
{
	struct strbuf text;
	char path[4096];
	enum hx_code code;

	strbuf_init(&text, DEFINITION_BYTES_MAX);
	if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path)
		return error_set(err, HX_CONFIG_ERROR, "%s: the path is too long", dir);
	code = read_file(path, &text, err);
	if (!code)
		(void)add_text(c, path, strbuf_slice(&text)); /* what is wrong with it stands in the findings */
	strbuf_release(&text);
	return code;
}

static enum hx_code add_folder(struct change *c, const char *dir, struct hx_error *err)
{
	struct dirent **entries = NULL;
	int n = scandir(dir, &entries, is_definition, alphasort);
	enum hx_code code = HX_OK;

	if (n < 0)
		return error_set(err, HX_CONFIG_ERROR, "%s: %s", dir, strerror(errno));
	for (int i = 0; i < n; i++) {
		if (!code)
			code = add_file(c, dir, entries[i]->d_name, err);
		free(entries[i]);
	}
	free(entries);
	return code;
}

static enum hx_code add_stored(struct change *c, struct hx_error *err)
{
	struct arena arena;
	struct unit unit;
	struct unit_result result;
	enum hx_code code;

	arena_init(&arena, READ_BYTES_MAX);
	unit_init(&unit, /* op= */ 0);
	unit_add(&unit, UNIT_ANY, &stmt_latest, 0, NULL);
	code = c->runner->run(c->runner, &unit, &result, &arena, err);
	for (size_t i = 0; !code && i < result.rows[0].n; i++) {
		char file[WORKFLOW_NAME_MAX + 32];
		struct candidate *candidate;

		snprintf(file, sizeof file, "stored:%.*s", SLICE_ARGS(db_cell(&result.rows[0], i, 0)->s));
		candidate = add_text(c, file, db_cell(&result.rows[0], i, 2)->s);
		if (candidate) {
			candidate->version = db_cell(&result.rows[0], i, 1)->i;
			candidate->differs = false;
		}
	}
	arena_release(&arena);
	return code;
}

/* ---- taking a set into force ---- */

static enum hx_code check_set(struct change *c, const struct config *config, struct hx_error *err)
{
	const struct workflow *workflows[DEFINITIONS_MAX];

	for (size_t i = 0; i < c->n; i++)
		workflows[i] = c->set[i].workflow;
	workflows_check(workflows, c->n, c->findings);
	coverage_check(workflows, c->n, config, c->findings);
	if (c->findings->errors)
		return error_set(err, HX_CONFIG_ERROR, "%zu error%s in the definitions", c->findings->errors,
				 c->findings->errors == 1 ? "" : "s");
	if (c->defs->versions_n + c->n > DEFINITION_VERSIONS_MAX)
		return error_set(err, HX_CONFIG_ERROR, "too many versions of definitions: restart to go on");
	return HX_OK;
}

/* Writes a new version. Another node may write the same number first: then it is the next one's turn. */
static enum hx_code store_version(struct change *c, struct candidate *candidate, struct clock *clock,
				  struct hx_error *err)
{
	enum hx_code code = HX_CONCURRENCY_ERROR;

	for (int tries = 0; tries < PUT_TRIES_MAX && code == HX_CONCURRENCY_ERROR; tries++) {
		struct arena arena;
		struct unit unit;
		struct unit_result result;

		candidate->version++;
		arena_init(&arena, READ_BYTES_MAX);
		unit_init(&unit, /* op= */ 0);
		UNIT_ADD(&unit, UNIT_VERDICT, &stmt_add, db_str(candidate->workflow->name), db_int(candidate->version),
			 db_text(candidate->workflow->text), db_int(clock_wall(clock).ms));
		code = c->runner->run(c->runner, &unit, &result, &arena, err);
		if (!code && result.verdict != UNIT_WON)
			code = error_set(err, HX_CONCURRENCY_ERROR, "the definition is being changed elsewhere");
		arena_release(&arena);
	}
	return code;
}

/* The user's own table, as the store has it now. */
static enum hx_code look_at_table(struct change *c, const struct workflow *workflow, const struct entity_table **ret,
				  struct hx_error *err)
{
	struct arena arena;
	struct unit unit;
	struct unit_result result;
	enum hx_code code;

	arena_init(&arena, READ_BYTES_MAX);
	unit_init(&unit, /* op= */ 0);
	entity_table_ask_columns(&unit, workflow, c->runner->postgres);
	code = c->runner->run(c->runner, &unit, &result, &arena, err);
	if (!code) {
		*ret = entity_table_new(workflow, &result.rows[0], c->runner->postgres, &c->defs->arena, c->findings);
		if (!*ret)
			code = error_set(err, HX_CONFIG_ERROR, "%s: its table cannot serve", workflow->name);
	}
	arena_release(&arena);
	return code;
}

static enum hx_code make_machine(struct change *c, struct candidate *candidate, struct hx_error *err)
{
	const struct definition *old = in_force(c->defs, candidate->workflow->name);
	const struct entity_table *table = NULL;

	if (old && slice_eq(old->machine->workflow->text, candidate->workflow->text)) {
		candidate->machine = old->machine;
		return HX_OK;
	}
	if (candidate->workflow->table.table) {
		enum hx_code code = look_at_table(c, candidate->workflow, &table, err);

		if (code)
			return code;
	}
	for (size_t i = 0; i < candidate->workflow->actions_n; i++)
		c->defs->statements_n += candidate->workflow->actions[i].statements_n;
	if (c->defs->statements_n > DEFINITION_STATEMENTS_MAX)
		return error_set(err, HX_CONFIG_ERROR, "more than %d statements of sql actions",
				 DEFINITION_STATEMENTS_MAX);
	candidate->machine = entity_machine_new(candidate->workflow, table, &c->defs->arena);
	c->defs->versions_n++;
	return candidate->machine ? HX_OK : error_set(err, HX_NO_MEMORY, "a definition");
}

static enum hx_code take_into_force(struct change *c, struct clock *clock, struct hx_error *err)
{
	enum hx_code code = HX_OK;

	for (size_t i = 0; i < c->n && !code; i++)
		code = make_machine(c, &c->set[i], err);
	for (size_t i = 0; i < c->n && !code; i++)
		if (c->set[i].differs)
			code = store_version(c, &c->set[i], clock, err);
	if (code)
		return code;
	pthread_rwlock_wrlock(&c->defs->lock);
	for (size_t i = 0; i < c->n; i++)
		c->defs->current[i] = (struct definition){c->set[i].machine, c->set[i].version};
	c->defs->n = c->n;
	pthread_rwlock_unlock(&c->defs->lock);
	return HX_OK;
}

static struct change *change_begin(struct definitions *defs, struct runner *runner, struct findings *findings)
{
	struct change *c = calloc(1, sizeof *c);

	ASSERT(c); /* as small as it is, without it nothing can be told either */
	pthread_mutex_lock(&defs->changing);
	c->defs = defs;
	c->runner = runner;
	c->findings = findings;
	return c;
}

static void change_end(struct change *c)
{
	pthread_mutex_unlock(&c->defs->changing);
	free(c);
}

enum hx_code definitions_load(struct definitions *defs, const char *dir, struct runner *runner, struct clock *clock,
			      const struct config *config, struct findings *findings, struct hx_error *err)
{
	struct change *c = change_begin(defs, runner, findings);
	enum hx_code code = add_stored(c, err);

	if (!code && dir)
		code = add_folder(c, dir, err);
	if (!code)
		code = check_set(c, config, err);
	if (!code)
		code = take_into_force(c, clock, err);
	change_end(c);
	return code;
}

enum hx_code definitions_put(struct definitions *defs, struct slice name, struct slice text, struct runner *runner,
			     struct clock *clock, const struct config *config, struct findings *findings,
			     int64_t *ret_version, struct hx_error *err)
{
	struct change *c = change_begin(defs, runner, findings);
	struct candidate *candidate = NULL;
	char file[WORKFLOW_NAME_MAX + 32];
	enum hx_code code = add_stored(c, err);

	if (!code) {
		snprintf(file, sizeof file, "%.*s", SLICE_ARGS(name));
		candidate = add_text(c, file, text);
		if (candidate && !slice_is(name, candidate->workflow->name))
			code = error_set(err, HX_VALIDATION_ERROR, "the definition's name is \"%s\"",
					 candidate->workflow->name);
	}
	if (!code)
		code = check_set(c, config, err);
	if (!code)
		code = take_into_force(c, clock, err);
	if (!code)
		*ret_version = candidate->version;
	change_end(c);
	return code;
}

/* ---- reading ---- */

const struct entity_machine *definitions_find(struct definitions *defs, struct slice workflow)
{
	const struct entity_machine *found = NULL;

	pthread_rwlock_rdlock(&defs->lock);
	for (size_t i = 0; i < defs->n && !found; i++)
		if (slice_is(workflow, defs->current[i].machine->workflow->name))
			found = defs->current[i].machine;
	pthread_rwlock_unlock(&defs->lock);
	return found;
}

const struct action *definitions_action(struct definitions *defs, struct slice workflow, struct slice action)
{
	const struct entity_machine *machine = definitions_find(defs, workflow);

	for (size_t i = 0; machine && i < machine->workflow->actions_n; i++)
		if (slice_is(action, machine->workflow->actions[i].name))
			return &machine->workflow->actions[i];
	return NULL;
}

void definitions_each(struct definitions *defs, void (*fn)(void *, const struct entity_machine *, int64_t version),
		      void *context)
{
	pthread_rwlock_rdlock(&defs->lock);
	for (size_t i = 0; i < defs->n; i++)
		fn(context, defs->current[i].machine, defs->current[i].version);
	pthread_rwlock_unlock(&defs->lock);
}
