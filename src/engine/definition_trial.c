/* See definition_trial.h. */
#include "engine/definition_trial.h"

#define STATEMENT_BYTES_MAX 16000 /* what both drivers have room for */

struct trial {
	struct db_stmt stmt;
	struct trial *next;
};

/* Who tries, and where to tell. */
struct attempt {
	struct trials *trials;
	struct runner *runner;
	struct arena *scratch;
	struct findings *findings;
};

/* "EXPLAIN …" with NULL for every parameter. Quoted texts are left alone; see action.h for what can stand outside. */
static void add_trial(struct strbuf *out, const char *sql, bool postgres)
{
	char quote = '\0';

	strbuf_add_str(out, postgres ? "EXPLAIN (VERBOSE, FORMAT YAML) " : "EXPLAIN ");
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
const struct db_stmt *trials_statement(struct trials *trials, const struct strbuf *sql, const char *in, const char *out,
				       bool foreign)
{
	struct trial *trial;

	for (trial = trials->first; trial; trial = trial->next)
		if (strcmp(trial->stmt.sql, sql->p) == 0)
			return &trial->stmt;
	if (trials->n == DEFINITION_TRIALS_MAX)
		return NULL;
	trial = arena_alloc(trials->arena, sizeof *trial);
	if (!trial)
		return NULL;
	trial->stmt = (struct db_stmt){
		.name = "definition_trial",
		.sql = arena_copy(trials->arena, strbuf_slice(sql)).p,
		.in = in,
		.out = out,
		.foreign = foreign,
	};
	if (!trial->stmt.sql)
		return NULL;
	trial->next = trials->first;
	trials->first = trial;
	trials->n++;
	return &trial->stmt;
}

/* The store's answer is about the statement, and not about the store or the moment. */
static bool is_about_statement(enum hx_code code)
{
	return code == HX_DATA_ERROR || code == HX_INTERNAL;
}

/* The value of a line `Name: "value"`, without its quotes; .p NULL: the line is another. */
static struct slice definition_trial_value_of(struct slice line, const char *name)
{
	size_t n = strlen(name);

	while (line.n && (*line.p == ' ' || *line.p == '-'))
		line = slice_of(line.p + 1, line.n - 1);
	if (line.n < n + 2 || memcmp(line.p, name, n) != 0 || line.p[n] != '"')
		return slice_of(NULL, 0);
	return slice_of(line.p + n + 1, line.n - n - 2);
}

/* Catalogs are PostgreSQL's own, and show what is in everybody's tables. */
static bool is_out_of_reach(struct slice relation, struct slice schema)
{
	return (relation.n >= 3 && memcmp(relation.p, "hx_", 3) == 0) || slice_is(schema, "pg_catalog") ||
	       slice_is(schema, "pg_toast");
}

/* A plan has a line for the relation and, after it, one for its schema; values with a line's end in them are escaped. */
static enum hx_code check_plan(struct slice plan, struct hx_error *err)
{
	struct slice relation = {0};

	while (plan.n) {
		const char *end = memchr(plan.p, '\n', plan.n);
		struct slice line = slice_of(plan.p, end ? (size_t)(end - plan.p) : plan.n);
		struct slice named = definition_trial_value_of(line, "Relation Name: "),
			     schema = definition_trial_value_of(line, "Schema: ");

		relation = named.p ? named : relation;
		if (relation.p && (named.p || schema.p) && is_out_of_reach(relation, schema))
			return error_set(err, HX_DATA_ERROR, "it reaches %.*s, which is not for sql actions",
					 SLICE_ARGS(relation));
		if (schema.p)
			relation = slice_of(NULL, 0);
		plan = slice_of(plan.p + line.n + (end != NULL), plan.n - line.n - (end != NULL));
	}
	return HX_OK;
}

static enum hx_code run_trial(const struct attempt *a, const struct strbuf *sql, struct hx_error *err)
{
	const struct db_stmt *stmt = trials_statement(a->trials, sql, "", a->runner->postgres ? "t" : "",
						      /* foreign= */ true);
	LOCAL_UNIT(unit);
	struct unit_result result;
	enum hx_code code;

	if (!stmt)
		return HX_OK; /* after DEFINITION_TRIALS_MAX of them in one life, mistakes are found at run time again */
	unit_add(&unit, UNIT_ANY, stmt, 0, NULL);
	code = a->runner->run(a->runner, &unit, &result, a->scratch, err);
	/* PostgreSQL cannot tell the type of a bare NULL everywhere; of a parameter it is told the value. */
	if (is_about_statement(code) && strstr(err->detail, "could not determine"))
		return HX_OK;
	if (!code && a->runner->postgres && result.rows[0].n)
		code = check_plan(db_cell(&result.rows[0], 0, 0)->s, err);
	return code;
}

static enum hx_code try_statement(const struct attempt *a, const struct definition *definition,
				  const struct action *action, const struct action_statement *statement,
				  struct hx_error *err)
{
	struct finding finding = definition_finding(definition, FINDING_ERROR, action->line, "sql");
	struct hx_error words = {0};
	enum hx_code code = HX_OK;

	if (strlen(statement->sql) > STATEMENT_BYTES_MAX) {
		findings_add(a->findings, finding, "action %s, statement %s: longer than %d bytes", action->name,
			     statement->name, STATEMENT_BYTES_MAX);
		return HX_OK;
	}
	LOCAL_STRBUF(sql, STATEMENT_BYTES_MAX);
	add_trial(&sql, statement->sql, a->runner->postgres);
	/* Not tried: what has no room for the trial, and literals that would be taken for a marker of stmt.h. */
	if (!sql.failed && !strstr(sql.p, "{from}") && !strstr(sql.p, "{join}"))
		code = run_trial(a, &sql, &words);
	if (is_about_statement(code)) {
		findings_add(a->findings, finding, "action %s, statement %s: %s", action->name, statement->name,
			     words.detail);
		return HX_OK;
	}
	return code ? error_set(err, code, "%s", words.detail) : HX_OK;
}

enum hx_code trials_run(struct trials *trials, const struct definition *definition, struct runner *runner,
			struct arena *scratch, struct findings *findings, struct hx_error *err)
{
	const struct attempt attempt = {trials, runner, scratch, findings};
	enum hx_code code = HX_OK;

	for (size_t i = 0; i < definition->actions_n; i++) {
		const struct action *action = &definition->actions[i];

		for (size_t k = 0; k < action->statements_n && !code; k++)
			code = try_statement(&attempt, definition, action, &action->statements[k], err);
	}
	return code;
}
