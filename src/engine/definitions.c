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
#define SCRATCH_BYTES_MAX (1u << 30)
#define PUT_TRIES_MAX 5
#define STAMP_BYTES_MAX 65536
#define STATEMENT_BYTES_MAX 16000 /* what both drivers have room for */
#define TABLE_STATEMENTS 8        /* at most, that a user's table brings along */

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

/* Every new version raises it; no definition is ever taken away. */
static const struct db_stmt stmt_stamp = {
	.name = "definition_stamp",
	.sql = "SELECT CAST(coalesce(sum(version), 0) AS bigint) FROM definition",
	.in = "",
	.out = "i",
};

/* clang-format on */

/* A set that is being put together: what would be in force. */
struct candidate {
	const struct workflow *workflow;      /* in the scratch arena, unless there is a machine */
	int64_t version;                      /* that the store has already; 0: none */
	bool differs;                         /* from that version: a new one is to be written */
	const struct entity_machine *machine; /* the one in force while the text is the same; else made at the end */
	struct db_rows columns;               /* of the user's table, in the scratch arena */
};

/*
 * One change, from the reading to the taking into force or the refusal. What it reads and parses is in its scratch
 * arena, so a refused one leaves nothing behind; only what is accepted is parsed once more, into the arena that is
 * never emptied. Findings have copies of their own of all they say.
 */
struct change {
	struct definitions *defs;
	struct runner *runner;
	struct findings *findings;
	struct arena scratch;
	size_t n;
	struct candidate set[DEFINITIONS_MAX];
};

/* The trial of one statement of a sql action. Connections know it by its address, so it is never forgotten. */
struct trial {
	struct db_stmt stmt;
	struct trial *next;
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

/* The machine in force of exactly this text. */
static const struct entity_machine *same_text(const struct definitions *defs, struct slice text)
{
	for (size_t i = 0; i < defs->n; i++)
		if (slice_eq(defs->current[i].machine->workflow->text, text))
			return defs->current[i].machine;
	return NULL;
}

/* Brings a text into the set, taking the place of a candidate of the same name. */
static struct candidate *add_text(struct change *c, const char *file, struct slice text)
{
	const struct entity_machine *machine = same_text(c->defs, text);
	const struct workflow *workflow = machine ? machine->workflow : NULL;
	struct candidate *candidate;

	if (!machine)
		workflow_parse(arena_copy(&c->scratch, slice_str(file)).p, arena_copy(&c->scratch, text), &c->scratch,
			       c->findings, &workflow);
	if (!workflow)
		return NULL;
	candidate = candidate_of(c, workflow->name);
	if (!candidate) {
		if (c->n == DEFINITIONS_MAX) {
			findings_add(c->findings,
				     (struct finding){.severity = FINDING_ERROR, .file = file, .rule = "limit"},
				     "more than %d workflows", DEFINITIONS_MAX);
			return NULL;
		}
		candidate = &c->set[c->n++];
		*candidate = (struct candidate){.differs = true};
	} else {
		candidate->differs = !slice_eq(candidate->workflow->text, workflow->text);
	}
	candidate->workflow = workflow;
	candidate->machine = machine;
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
	struct unit unit;
	struct unit_result result;
	enum hx_code code;

	unit_init(&unit, /* op= */ 0);
	unit_add(&unit, UNIT_ANY, &stmt_latest, 0, NULL);
	code = c->runner->run(c->runner, &unit, &result, &c->scratch, err);
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

static enum hx_code check_set(struct change *c, const struct config *config, struct hx_error *err)
{
	const struct workflow *workflows[DEFINITIONS_MAX];

	for (size_t i = 0; i < c->n; i++)
		workflows[i] = c->set[i].workflow;
	workflows_check(workflows, c->n, c->findings);
	coverage_check(workflows, c->n, config, c->findings);
	return refuse_errors(c, err);
}

/* Writes a new version. Another node may write the same number first: then it is the next one's turn. */
static enum hx_code store_version(struct change *c, struct candidate *candidate, struct clock *clock,
				  struct hx_error *err)
{
	enum hx_code code = HX_CONCURRENCY_ERROR;

	for (int tries = 0; tries < PUT_TRIES_MAX && code == HX_CONCURRENCY_ERROR; tries++) {
		struct unit unit;
		struct unit_result result;

		candidate->version++;
		unit_init(&unit, /* op= */ 0);
		UNIT_ADD(&unit, UNIT_VERDICT, &stmt_add, db_str(candidate->workflow->name), db_int(candidate->version),
			 db_text(candidate->workflow->text), db_int(clock_wall(clock).ms));
		code = c->runner->run(c->runner, &unit, &result, &c->scratch, err);
		if (!code && result.verdict != UNIT_WON)
			code = error_set(err, HX_CONCURRENCY_ERROR, "the definition is being changed elsewhere");
	}
	return code;
}

/* The user's own table, as the store has it now: a trial, whose statements are thrown away. */
static enum hx_code look_at_table(struct change *c, struct candidate *candidate, struct hx_error *err)
{
	struct unit unit;
	struct unit_result result;
	enum hx_code code;

	unit_init(&unit, /* op= */ 0);
	entity_table_ask_columns(&unit, candidate->workflow, c->runner->postgres);
	code = c->runner->run(c->runner, &unit, &result, &c->scratch, err);
	if (code)
		return code;
	candidate->columns = result.rows[0];
	if (!entity_table_new(candidate->workflow, &candidate->columns, c->runner->postgres, &c->scratch, c->findings))
		return error_set(err, HX_CONFIG_ERROR, "%s: its table cannot serve", candidate->workflow->name);
	return HX_OK;
}

/* ---- the statements of sql actions ---- */

/* "EXPLAIN …" with NULL for every parameter. Quoted texts are left alone; see action.h for what can stand outside. */
static void add_trial(struct strbuf *out, const char *sql)
{
	char quote = '\0';

	strbuf_add_str(out, "EXPLAIN ");
	for (const char *p = sql; *p; p++) {
		if (quote ? *p == quote : *p == '\'' || *p == '"')
			quote = quote ? '\0' : *p;
		if (quote || *p != '?') {
			strbuf_add_char(out, *p);
			continue;
		}
		strbuf_add_str(out, "NULL");
		while (p[1] >= '0' && p[1] <= '9')
			p++;
	}
}

/* The same text is the same trial: a definition that is put again and again costs nothing. NULL: there are too many. */
static const struct db_stmt *trial_of(struct definitions *defs, const struct strbuf *sql)
{
	struct trial *trial;

	for (trial = defs->trials; trial; trial = trial->next)
		if (strcmp(trial->stmt.sql, sql->p) == 0)
			return &trial->stmt;
	if (defs->trials_n == DEFINITION_TRIALS_MAX)
		return NULL;
	trial = arena_alloc(&defs->arena, sizeof *trial);
	if (!trial)
		return NULL;
	trial->stmt = (struct db_stmt){
		.name = "definition_trial",
		.sql = arena_copy(&defs->arena, strbuf_slice(sql)).p,
		.in = "",
		.out = "",
	};
	if (!trial->stmt.sql)
		return NULL;
	trial->next = defs->trials;
	defs->trials = trial;
	defs->trials_n++;
	return &trial->stmt;
}

/* The store's answer is about the statement, and not about the store or the moment. */
static bool is_about_statement(enum hx_code code)
{
	return code == HX_DATA_ERROR || code == HX_INTERNAL;
}

static enum hx_code run_trial(struct change *c, const struct strbuf *sql, struct hx_error *err)
{
	const struct db_stmt *stmt = trial_of(c->defs, sql);
	struct unit unit;
	struct unit_result result;
	enum hx_code code;

	if (!stmt)
		return HX_OK; /* after DEFINITION_TRIALS_MAX of them in one life, mistakes are found at run time again */
	unit_init(&unit, /* op= */ 0);
	unit_add(&unit, UNIT_ANY, stmt, 0, NULL);
	code = c->runner->run(c->runner, &unit, &result, &c->scratch, err);
	/* PostgreSQL cannot tell the type of a bare NULL everywhere; of a parameter it is told the value. */
	if (is_about_statement(code) && strstr(err->detail, "could not determine"))
		code = HX_OK;
	return code;
}

/* A wrong name is found here, and not by the first entity that comes to this step. */
static enum hx_code try_statement(struct change *c, const struct workflow *workflow, const struct action *action,
				  const struct action_statement *statement, struct hx_error *err)
{
	struct finding finding = {
		.severity = FINDING_ERROR,
		.file = workflow->file,
		.line = action->line,
		.workflow = workflow->name,
		.rule = "sql",
	};
	struct hx_error words = {0};
	struct strbuf sql;
	enum hx_code code = HX_OK;

	if (strlen(statement->sql) > STATEMENT_BYTES_MAX) {
		findings_add(c->findings, finding, "action %s, statement %s: longer than %d bytes", action->name,
			     statement->name, STATEMENT_BYTES_MAX);
		return HX_OK;
	}
	strbuf_init(&sql, STATEMENT_BYTES_MAX);
	add_trial(&sql, statement->sql);
	/* Not tried: what has no room for the trial, and literals that would be taken for a marker of stmt.h. */
	if (!sql.failed && !strstr(sql.p, "{from}") && !strstr(sql.p, "{join}"))
		code = run_trial(c, &sql, &words);
	strbuf_release(&sql);
	if (is_about_statement(code)) {
		findings_add(c->findings, finding, "action %s, statement %s: %s", action->name, statement->name,
			     words.detail);
		return HX_OK;
	}
	return code ? error_set(err, code, "%s", words.detail) : HX_OK;
}

static enum hx_code try_statements(struct change *c, const struct workflow *workflow, struct hx_error *err)
{
	enum hx_code code = HX_OK;

	for (size_t i = 0; i < workflow->actions_n; i++)
		for (size_t k = 0; k < workflow->actions[i].statements_n && !code; k++)
			code = try_statement(c, workflow, &workflow->actions[i], &workflow->actions[i].statements[k],
					     err);
	return code;
}

/* ---- taking a set into force ---- */

/* How many statements connections will have to prepare for it. */
static size_t statements_of(const struct workflow *workflow)
{
	size_t n = workflow->table.table ? TABLE_STATEMENTS : 0;

	for (size_t i = 0; i < workflow->actions_n; i++)
		n += workflow->actions[i].statements_n;
	return n;
}

/* What only the store can tell about the definitions that are new, and whether there is room for them. */
static enum hx_code ask_store(struct change *c, struct hx_error *err)
{
	size_t versions_n = c->defs->versions_n, statements_n = c->defs->statements_n;
	enum hx_code code = HX_OK;

	for (size_t i = 0; i < c->n; i++) {
		if (c->set[i].machine)
			continue;
		versions_n++;
		statements_n += statements_of(c->set[i].workflow);
	}
	if (versions_n > DEFINITION_VERSIONS_MAX)
		return error_set(err, HX_CONFIG_ERROR, "too many versions of definitions: restart to go on");
	if (statements_n > DEFINITION_STATEMENTS_MAX)
		return error_set(err, HX_CONFIG_ERROR,
				 "more than %d statements of sql actions and tables, in all versions "
				 "since the start",
				 DEFINITION_STATEMENTS_MAX);
	for (size_t i = 0; i < c->n && !code; i++) {
		if (c->set[i].machine)
			continue;
		if (c->set[i].workflow->table.table)
			code = look_at_table(c, &c->set[i], err);
		if (!code)
			code = try_statements(c, c->set[i].workflow, err);
	}
	return code ? code : refuse_errors(c, err);
}

/* Parses an accepted text once more, to stay. What there is to say about it has been said. */
static const struct entity_machine *machine_to_stay(struct change *c, const struct candidate *candidate)
{
	struct arena *arena = &c->defs->arena;
	struct slice file = arena_copy(arena, slice_str(candidate->workflow->file));
	struct slice text = arena_copy(arena, candidate->workflow->text);
	const struct workflow *workflow = NULL;
	const struct entity_table *table = NULL;
	struct findings said;

	if (!file.p || !text.p)
		return NULL;
	findings_init(&said, &c->scratch);
	workflow_parse(file.p, text, arena, &said, &workflow);
	if (!workflow)
		return NULL;
	if (workflow->table.table) {
		table = entity_table_new(workflow, &candidate->columns, c->runner->postgres, arena, &said);
		if (!table)
			return NULL;
	}
	return entity_machine_new(workflow, table, arena);
}

static enum hx_code make_machines(struct change *c, size_t *ret_versions_n, size_t *ret_statements_n,
				  struct hx_error *err)
{
	*ret_versions_n = *ret_statements_n = 0;
	for (size_t i = 0; i < c->n; i++) {
		if (c->set[i].machine)
			continue;
		c->set[i].machine = machine_to_stay(c, &c->set[i]);
		if (!c->set[i].machine)
			return error_set(err, HX_NO_MEMORY, "a definition");
		*ret_versions_n += 1;
		*ret_statements_n += statements_of(c->set[i].workflow);
	}
	return HX_OK;
}

static enum hx_code take_into_force(struct change *c, struct clock *clock, struct hx_error *err)
{
	struct definitions *defs = c->defs;
	size_t versions_n, statements_n;
	struct arena_mark mark;
	enum hx_code code = ask_store(c, err);

	if (code)
		return code;
	mark = arena_mark(&defs->arena);
	code = make_machines(c, &versions_n, &statements_n, err);
	for (size_t i = 0; i < c->n && !code; i++)
		if (c->set[i].differs)
			code = store_version(c, &c->set[i], clock, err);
	if (code) {
		arena_rewind(&defs->arena, mark); /* nobody has seen the machines yet */
		return code;
	}
	pthread_rwlock_wrlock(&defs->lock);
	for (size_t i = 0; i < c->n; i++)
		defs->current[i] = (struct definition){c->set[i].machine, c->set[i].version};
	defs->n = c->n;
	pthread_rwlock_unlock(&defs->lock);
	defs->versions_n += versions_n;
	defs->statements_n += statements_n;
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
	arena_init(&c->scratch, SCRATCH_BYTES_MAX);
	return c;
}

static void change_end(struct change *c)
{
	pthread_mutex_unlock(&c->defs->changing);
	arena_release(&c->scratch);
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

/* ---- what other nodes have put ---- */

static enum hx_code read_stamp(struct runner *runner, int64_t *ret_stamp, struct hx_error *err)
{
	struct arena arena;
	struct unit unit;
	struct unit_result result;
	enum hx_code code;

	arena_init(&arena, STAMP_BYTES_MAX);
	unit_init(&unit, /* op= */ 0);
	unit_add(&unit, UNIT_ANY, &stmt_stamp, 0, NULL);
	code = runner->run(runner, &unit, &result, &arena, err);
	if (!code)
		*ret_stamp = db_cell(&result.rows[0], 0, 0)->i;
	arena_release(&arena);
	return code;
}

static size_t changes_of(const struct change *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++)
		n += c->set[i].machine == NULL;
	return n;
}

enum hx_code definitions_follow(struct definitions *defs, int64_t *seen, struct runner *runner, struct clock *clock,
				const struct config *config, struct findings *findings, size_t *ret_changes_n,
				struct hx_error *err)
{
	int64_t stamp = 0;
	struct change *c;
	enum hx_code code = read_stamp(runner, &stamp, err);

	*ret_changes_n = 0;
	if (code || stamp == *seen)
		return code;
	/* The stamp is older than what is read now: what comes in between is looked at twice, and never missed. */
	c = change_begin(defs, runner, findings);
	code = add_stored(c, err);
	*ret_changes_n = changes_of(c);
	if (!code)
		code = check_set(c, config, err);
	if (!code)
		code = take_into_force(c, clock, err);
	if (!code || code == HX_CONFIG_ERROR)
		*seen = stamp; /* a set that is not valid here stays so until it changes */
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
