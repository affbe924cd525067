/* See definition_change.h. */
#include "engine/definition_change.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "flow/entity_orphans.h"
#include "model/load.h"

#define SCRATCH_BYTES_MAX (1u << 30)
#define TABLE_STATEMENTS 8 /* at most, that a user's table brings along */

DB_STMT(stmt_latest, "definition_latest", "", "tit",
	"SELECT d.name, d.version, d.text FROM hx_definition d"
	" WHERE d.version = (SELECT max(version) FROM hx_definition WHERE name = d.name) ORDER BY d.name");

struct change *change_begin(struct definitions *defs, struct runner *runner, struct findings *findings)
{
	struct change *c = calloc(1, sizeof *c);

	ASSERT(c); /* as small as it is, without it nothing can be told either */
	pthread_mutex_lock(&defs->changing);
	c->defs = defs;
	c->runner = runner;
	c->findings = findings;
	arena_init(&c->scratch, SCRATCH_BYTES_MAX);
	return c;
}

void change_end(struct change *c)
{
	pthread_mutex_unlock(&c->defs->changing);
	arena_release(&c->scratch);
	free(c);
}

/* ---- putting a set together ---- */

static struct candidate *candidate_of(struct change *c, const char *name)
{
	for (size_t i = 0; i < c->n; i++)
		if (strcmp(c->set[i].definition->name, name) == 0)
			return &c->set[i];
	return NULL;
}

/* The machine in force of exactly this text. */
static const struct machine *definition_change_same_text(const struct definitions *defs, struct slice text)
{
	for (size_t i = 0; i < defs->n; i++)
		if (slice_eq(defs->current[i]->definition->text, text))
			return defs->current[i];
	return NULL;
}

/* A candidate of its name, or a new one. NULL: it may not stand there, which is a finding. */
static struct candidate *place_for(struct change *c, const struct definition *definition)
{
	struct candidate *candidate = candidate_of(c, definition->name);
	struct finding finding = definition_finding(definition, FINDING_ERROR, 0, "limit");

	if (!candidate && c->n == DEFINITIONS_MAX) {
		findings_add(c->findings, finding, "more than %d workflows", DEFINITIONS_MAX);
		return NULL;
	}
	if (!candidate) {
		candidate = &c->set[c->n++];
		*candidate = (struct candidate){.differs = true};
		return candidate;
	}
	/* What was made by the one kind would be lost to the other. */
	if (strcmp(candidate->definition->kind, definition->kind) != 0) {
		finding.rule = "kind";
		findings_add(
			c->findings, finding,
			"this is of kind %s, and the workflow of that name is of kind %s; a definition cannot change "
			"its kind: choose another name",
			definition->kind, candidate->definition->kind);
		return NULL;
	}
	candidate->differs = !slice_eq(candidate->definition->text, definition->text);
	if (candidate->version && !candidate->before)
		candidate->before = candidate->definition;
	return candidate;
}

/* Brings a text into the set, taking the place of a candidate of the same name. */
struct candidate *change_add_text(struct change *c, const char *file, struct slice text)
{
	const struct machine *machine = definition_change_same_text(c->defs, text);
	const struct definition *definition = machine ? machine->definition : NULL;
	struct candidate *candidate;

	if (!machine)
		definition_parse(arena_copy(&c->scratch, slice_str(file)).p, arena_copy(&c->scratch, text), &c->scratch,
				 c->findings, &definition);
	candidate = definition ? place_for(c, definition) : NULL;
	if (candidate) {
		candidate->definition = definition;
		candidate->machine = machine;
	}
	return candidate;
}

static enum hx_code add_file(struct change *c, const char *dir, const char *name, struct hx_error *err)
{
	char path[4096];
	LOCAL_STRBUF(text, DEFINITION_BYTES_MAX + 1);

	if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path)
		return error_set(err, HX_CONFIG_ERROR, "%s: the path is too long", dir);
	if (!file_read(path, &text) || text.n > DEFINITION_BYTES_MAX)
		return error_set(err, HX_CONFIG_ERROR, "%s: %s", path,
				 text.n > DEFINITION_BYTES_MAX || text.failed ? "too large" : strerror(errno));
	/* What is wrong with it stands in the findings. Schedules are put when all else is in force (schedules.h). */
	if (schedule_file_is(strbuf_slice(&text)))
		(void)schedule_file_parse(arena_copy(&c->scratch, slice_str(path)).p, strbuf_slice(&text), &c->scratch,
					  c->findings);
	else
		(void)change_add_text(c, path, strbuf_slice(&text));
	return HX_OK;
}

enum hx_code change_add_folder(struct change *c, const char *dir, struct hx_error *err)
{
	struct dirent **entries = NULL;
	int n = scandir(dir, &entries, definition_file_fits, alphasort);
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

enum hx_code change_add_stored(struct change *c, struct hx_error *err)
{
	LOCAL_UNIT(unit);
	struct unit_result result;
	enum hx_code code;

	unit_add(&unit, UNIT_ANY, &stmt_latest, 0, NULL);
	code = c->runner->run(c->runner, &unit, &result, &c->scratch, err);
	for (size_t i = 0; !code && i < result.rows[0].n; i++) {
		char file[WORKFLOW_NAME_MAX + 32];
		struct candidate *candidate;

		snprintf(file, sizeof file, "stored:%.*s", SLICE_ARGS(db_cell(&result.rows[0], i, 0)->s));
		candidate = change_add_text(c, file, db_cell(&result.rows[0], i, 2)->s);
		if (candidate) {
			candidate->version = db_cell(&result.rows[0], i, 1)->i;
			candidate->differs = false;
		}
	}
	return code;
}

/* ---- checking it ---- */

static enum hx_code refuse_errors(const struct change *c, struct hx_error *err)
{
	if (!c->findings->errors)
		return HX_OK;
	return error_set(err, HX_CONFIG_ERROR, "%zu error%s in the definitions", c->findings->errors,
			 c->findings->errors == 1 ? "" : "s");
}

enum hx_code change_check(struct change *c, const struct config *config, struct hx_error *err)
{
	const struct definition *definitions[DEFINITIONS_MAX];

	for (size_t i = 0; i < c->n; i++) {
		definitions[i] = c->set[i].definition;
		if (!c->set[i].machine)
			change_check_natives(c->defs, definitions[i], c->set[i].differs, c->findings);
		/* What the store has already is not refused at a start: its calls are, one by one. */
		if (config && c->set[i].differs)
			secret_rules_check(&config->secrets, definitions[i], /* put= */ false, c->findings);
	}
	definition_set_check(definitions, c->n, config, c->findings);
	return refuse_errors(c, err);
}

int64_t candidate_version(const struct candidate *candidate)
{
	return candidate->version + candidate->differs;
}

/*
 * Writes a new version. Another node may write the same number first, or an entity may have come into a status that is lost:
 * then all of it has to be looked at again.
 */
static enum hx_code store_version(struct change *c, const struct candidate *candidate, struct clock *clock,
				  struct hx_error *err)
{
	struct new_version version = {
		.workflow = candidate->definition->name,
		.version = candidate_version(candidate),
		.text = candidate->definition->text,
		.at = clock_wall(clock),
		.lost = candidate->lost,
		.lost_claims = candidate->lost_claims,
	};
	LOCAL_UNIT(unit);
	struct unit_result result;
	enum hx_code code;

	orphans_add_version(&unit, &version);
	code = c->runner->run(c->runner, &unit, &result, &c->scratch, err);
	if (!code && result.verdict != UNIT_WON)
		code = error_set(err, HX_CONCURRENCY_ERROR, "the definition is being changed elsewhere");
	return code;
}

/* The user's own table, as the store has it now: a trial, whose statements are thrown away. */
static enum hx_code look_at_table(struct change *c, struct candidate *candidate, struct hx_error *err)
{
	const struct workflow *entity = candidate->definition->entity;
	LOCAL_UNIT(unit);
	struct unit_result result;
	enum hx_code code;

	entity_table_ask_columns(&unit, entity);
	code = c->runner->run(c->runner, &unit, &result, &c->scratch, err);
	if (code)
		return code;
	candidate->columns = result.rows[0];
	if (!entity_table_new(entity, &candidate->columns, c->runner->postgres, &c->scratch, c->findings))
		return error_set(err, HX_CONFIG_ERROR, "%s: its table cannot serve", entity->name);
	return HX_OK;
}

/* ---- taking a set into force ---- */

static bool has_table(const struct definition *definition)
{
	return definition->entity && definition->entity->table.table;
}

static size_t table_statements(const struct definition *definition)
{
	return has_table(definition) ? TABLE_STATEMENTS : 0;
}

size_t change_statements(const struct definitions *defs, const struct definition *definition)
{
	return table_statements(definition) + statements_new_in(&defs->statements, definition);
}

void change_keep(struct definitions *defs, const struct machine *machine)
{
	struct sql_action *sql = machine->run ? machine->run->sql : machine->entity ? machine->entity->sql : NULL;

	if (sql)
		statements_share(&defs->statements, sql, machine->definition->actions_n);
	natives_leave_run(defs, machine);
	defs->versions_n++;
	if (machine->entity)
		defs->tables_n += table_statements(machine->definition);
}

/* The same text as another version (put, replaced, put again) is another machine: a run or a batch tells which one it has. */
static void forget_other_versions(struct change *c)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->set[i].machine && c->set[i].machine->version != candidate_version(&c->set[i]))
			c->set[i].machine = NULL;
}

static enum hx_code check_room(const struct change *c, struct hx_error *err)
{
	size_t versions_n = c->defs->versions_n, statements_n = c->defs->tables_n + c->defs->statements.n;

	for (size_t i = 0; i < c->n; i++) {
		if (c->set[i].machine)
			continue;
		versions_n++;
		statements_n += change_statements(c->defs, c->set[i].definition);
	}
	if (versions_n > DEFINITION_VERSIONS_MAX)
		return error_set(err, HX_CONFIG_ERROR, "too many versions of definitions: restart to go on");
	if (statements_n > DEFINITION_STATEMENTS_MAX)
		return error_set(err, HX_CONFIG_ERROR,
				 "more than %d different statements of sql actions and tables, in all versions "
				 "since the start",
				 DEFINITION_STATEMENTS_MAX);
	return HX_OK;
}

/* What only the store can tell about the definitions that are new. */
static enum hx_code ask_store(struct change *c, struct hx_error *err)
{
	enum hx_code code = HX_OK;

	for (size_t i = 0; i < c->n && !code; i++) {
		if (c->set[i].machine)
			continue;
		if (has_table(c->set[i].definition))
			code = look_at_table(c, &c->set[i], err);
		if (!code)
			code = change_look_for_orphans(c, &c->set[i], err);
		if (!code)
			code = trials_run(&c->defs->trials, c->set[i].definition, c->runner, &c->scratch, c->findings,
					  err);
	}
	return code ? code : refuse_errors(c, err);
}

static const struct entity_machine *make_entity(struct change *c, const struct workflow *entity, int64_t version,
						const struct db_rows *columns, struct findings *said)
{
	struct arena *arena = &c->defs->arena;
	const struct entity_table *table = NULL;

	if (entity->table.table) {
		table = entity_table_new(entity, columns, c->runner->postgres, arena, said);
		if (!table)
			return NULL;
	}
	return entity_machine_new(entity, version, table, arena);
}

static const struct batch_machine *make_batch(struct change *c, const struct batch_definition *batch, int64_t version)
{
	struct batch_machine *machine = arena_alloc(&c->defs->arena, sizeof *machine);

	if (machine)
		*machine = (struct batch_machine){.definition = batch, .version = version};
	return machine;
}

struct machine *change_machine(struct change *c, struct slice file, struct slice text, int64_t version,
			       const struct db_rows *columns, struct findings *said)
{
	struct arena *arena = &c->defs->arena;
	struct machine *machine = arena_zalloc(arena, sizeof *machine);
	const struct definition *definition = NULL;

	file = arena_copy(arena, file);
	text = arena_copy(arena, text);
	if (!machine || !file.p || !text.p)
		return NULL;
	definition_parse(file.p, text, arena, said, &definition);
	if (!definition)
		return NULL;
	natives_mark_absent(c->defs->natives, definition);
	machine->definition = definition;
	machine->version = version;
	if (definition->run)
		machine->run = run_machine_new(definition->run, version, arena);
	else if (definition->batch)
		machine->batch = make_batch(c, definition->batch, version);
	else if (definition->function)
		machine->function = run_machine_new(definition->function, RUN_FUNCTION, arena);
	else if (columns)
		machine->entity = make_entity(c, definition->entity, version, columns, said);
	else
		return machine; /* entities are moved by what is in force */
	return machine->run || machine->batch || machine->function || machine->entity ? machine : NULL;
}

/* Accepted texts are parsed once more. What there is to say about them has been said. */
static enum hx_code make_machines(struct change *c, struct hx_error *err)
{
	struct findings said;

	findings_init(&said, &c->scratch);
	for (size_t i = 0; i < c->n; i++) {
		struct candidate *candidate = &c->set[i];

		if (candidate->machine)
			continue;
		candidate->machine = change_machine(c, slice_str(candidate->definition->file),
						    candidate->definition->text, candidate_version(candidate),
						    &candidate->columns, &said);
		if (!candidate->machine)
			return error_set(err, HX_NO_MEMORY, "a definition");
		candidate->made = true;
	}
	return HX_OK;
}

/* Runs and batches, and calls, find their version before anybody can begin one by it. */
static void publish(struct change *c)
{
	struct definitions *defs = c->defs;

	for (size_t i = 0; i < c->n; i++)
		if (c->set[i].made)
			change_keep(defs, c->set[i].machine);
	for (size_t i = 0; i < c->n; i++)
		versions_add(&defs->versions, c->set[i].machine);
	pthread_rwlock_wrlock(&defs->lock);
	for (size_t i = 0; i < c->n; i++)
		defs->current[i] = c->set[i].machine;
	defs->n = c->n;
	pthread_rwlock_unlock(&defs->lock);
	natives_leave_jobs(defs);
}

static void log_made(const struct change *c)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->set[i].made)
			log_info(c->defs->log, "a definition is in force",
				 log_text("workflow", c->set[i].definition->name),
				 log_int("version", c->set[i].machine->version));
}

enum hx_code change_take(struct change *c, struct clock *clock, struct hx_error *err)
{
	struct definitions *defs = c->defs;
	struct arena_mark mark;
	enum hx_code code;

	forget_other_versions(c);
	code = check_room(c, err);
	if (!code)
		code = ask_store(c, err);
	if (code)
		return code;
	mark = arena_mark(&defs->arena);
	code = make_machines(c, err);
	for (size_t i = 0; i < c->n && !code; i++)
		if (c->set[i].differs)
			code = store_version(c, &c->set[i], clock, err);
	if (code) {
		arena_rewind(&defs->arena, mark); /* nobody has seen the machines yet */
		return code;
	}
	publish(c);
	log_made(c);
	return HX_OK;
}

size_t change_count(struct change *c)
{
	size_t n = 0;

	forget_other_versions(c);
	for (size_t i = 0; i < c->n; i++)
		n += c->set[i].machine == NULL;
	return n;
}
