/* The rules of the user's own (model/user_rule.h): expressions over what has become of the run or the entity, and what has happened outside. */
#include "trial/own_rules.h"
#include "base/json_string.h"
#include "base/json_write.h"
#include "trial/parts.h"

#define SIGHT_BYTES_MAX (64u << 10)
#define SCRATCH_BYTES_MAX (4u << 20)

/* The row of a member's own run among all. */
static size_t row_of(const struct trial *t, const struct trial_member *m, const struct db_rows *runs)
{
	size_t i = 0;

	while (m->machine->run && db_cell(runs, i, 0)->i != TRIAL_SUBJECT_OF(t, m))
		i++;
	return i;
}

static void add_statuses(struct sim *sim, const struct trial_member *m, struct strbuf *out)
{
	const struct trial *t = trial_of(sim);
	struct unit_result result = m->machine->run     ? trial_ask(sim, &trial_runs)
				    : m->machine->batch ? trial_ask(sim, &trial_batch)
							: trial_read_entity(sim, m);
	const struct db_rows *rows = &result.rows[0];
	unsigned status = m->machine->run ? 3 : m->machine->batch ? 0 : ENTITY_STATUS;
	unsigned doubt = m->machine->run ? 6 : m->machine->batch ? 1 : ENTITY_DOUBT;
	size_t row = row_of(t, m, rows);
	int64_t open = 0;

	json_more_text(out, "status", db_cell(rows, row, status)->s);
	json_more_bool(out, "doubt",
		       db_cell(rows, row, doubt)->i || (m->machine->entity && trial_keeps_a_claim(sim, m)));
	if (!trial_has_slots(t))
		return;
	for (size_t i = 0; i < rows->n; i++)
		open += db_cell(rows, i, 2)->type == DB_NULL && !ways_is_terminal(&run_ways, db_cell(rows, i, 3)->s);
	json_more_int(out, "open", open);
}

enum { STEP_STATUS = 4, AT_STEP = 7 }; /* columns of trial_runs */

/* The step that a run stands at has no row of its own: has it failed there, or does nobody know? */
static bool ends_here(const struct db_rows *run, size_t row)
{
	struct slice status = db_cell(run, row, STEP_STATUS)->s;

	return slice_is(status, "FAILED") || slice_is(status, "UNKNOWN");
}

static void add_steps(struct sim *sim, const struct trial_member *m, struct strbuf *out)
{
	const struct trial *t = trial_of(sim);

	json_more(out, "steps");
	strbuf_add_char(out, '{');
	if (m->machine->run) {
		struct unit_result result = trial_ask_of(sim, &trial_run_steps, TRIAL_SUBJECT_OF(t, m));
		struct unit_result run = trial_ask(sim, &trial_runs);
		size_t row = row_of(t, m, &run.rows[0]);
		const struct run_definition *d = trial_machine_of(t, slice_str(m->machine->of->name),
								  db_cell(&run.rows[0], row, 13)->i)
							 ->definition;

		for (size_t i = 0; i < result.rows[0].n; i++) {
			size_t position = (size_t)db_cell(&result.rows[0], i, 0)->i;

			if (position < d->steps_n)
				json_more_text(out, d->steps[position].name, db_cell(&result.rows[0], i, 1)->s);
		}
		if (ends_here(&run.rows[0], row) && (size_t)db_cell(&run.rows[0], row, AT_STEP)->i < d->steps_n)
			json_more_text(out, d->steps[db_cell(&run.rows[0], row, AT_STEP)->i].name,
				       db_cell(&run.rows[0], row, STEP_STATUS)->s);
	}
	strbuf_add_char(out, '}');
}

/* Two definitions may have an action of one name, and so have two versions of one. */
static bool is_first_of_name(const struct trial *t, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (strcmp(t->services[k].action->name, t->services[i].action->name) == 0)
			return false;
	return true;
}

static void add_sql(struct sim *sim, const struct trial_member *m, struct strbuf *out)
{
	struct unit_result result = trial_ask(sim, &trial_sql_counts);
	const struct db_rows *rows = &result.rows[0];

	for (size_t i = 0, next; i < rows->n; i = next) {
		struct slice action = db_cell(rows, i, 0)->s;
		int64_t n = 0, subject;

		for (next = i; next < rows->n && slice_eq(db_cell(rows, next, 0)->s, action); next++)
			n += trial_key_subject(db_cell(rows, next, 1)->s, &subject) &&
			     trial_member_of(sim, subject) == m;
		if (!n)
			continue;
		strbuf_add_str(out, out->p[out->n - 1] == '{' ? "" : ",");
		json_quote(action, out);
		strbuf_addf(out, ":%lld", (long long)n);
	}
}

/*
 * How often each action has happened; one that has not is not there, so that it counts as false. m NULL: to all together, and of what is
 * as good twice as once, whether.
 */
static void add_ledger(struct sim *sim, const struct trial_member *m, bool with_zeros, struct strbuf *out)
{
	const struct trial_ledger *ledger = trial_ledger(sim);
	const struct trial *t = trial_of(sim);

	json_more(out, m ? "ledger" : "happened");
	strbuf_add_char(out, '{');
	for (size_t i = 0; i < t->services_n; i++) {
		const char *name = t->services[i].action->name;
		int64_t n = t->scripted ? t->again[i] : 0;

		for (unsigned e = 0; e < ledger->n; e++)
			n += strcmp(t->callers[ledger->effects[e].caller].service->action->name, name) == 0 &&
			     (!m || trial_member_of(sim, ledger->effects[e].subject) == m);
		if (!m && t->services[i].repeats)
			n = n > 0;
		if ((n || with_zeros) && is_first_of_name(t, i))
			json_more_int(out, t->services[i].action->name, n);
	}
	if (m && t->has_sql)
		add_sql(sim, m, out);
	strbuf_add_char(out, '}');
}

static void add_output(struct sim *sim, const struct trial_member *m, struct strbuf *out)
{
	struct unit_result result = trial_ask_of(sim, &trial_output, TRIAL_SUBJECT_OF(trial_of(sim), m));
	const struct db_value *output = db_cell(&result.rows[0], 0, 0);

	json_more_json(out, "output", output->type == DB_NULL ? slice_of(NULL, 0) : output->s);
}

/* With zeros: of what has not happened, and the output of a run. */
static void add_member(struct sim *sim, const struct trial_member *m, bool with_zeros, struct strbuf *out)
{
	add_statuses(sim, m, out);
	add_steps(sim, m, out);
	add_ledger(sim, m, with_zeros, out);
	if (with_zeros && m->machine->run)
		add_output(sim, m, out);
}

static void add_tables(struct sim *sim, struct strbuf *out)
{
	const struct trial *t = trial_of(sim);
	struct unit_result result;

	if (!t->tables.names_n)
		return;
	result = trial_ask(sim, &t->tables.look);
	json_more_json(out, "tables", db_cell(&result.rows[0], 0, 0)->s);
}

/* What the rules see of a member. with: the other one; NULL: it is alone. */
static void add_sight(struct sim *sim, const struct trial_member *m, const struct trial_member *with,
		      struct strbuf *out)
{
	strbuf_add_char(out, '{');
	add_member(sim, m, /* with_zeros= */ false, out);
	add_tables(sim, out);
	if (with) {
		json_more(out, "with");
		strbuf_add_char(out, '{');
		json_more_word(out, "workflow", with->machine->of->name);
		add_member(sim, with, /* with_zeros= */ false, out);
		strbuf_add_char(out, '}');
	}
	strbuf_add_char(out, '}');
}

void trial_sight_of_all(struct sim *sim, struct strbuf *out)
{
	const struct trial *t = trial_of(sim);

	for (size_t i = 0; i < t->members_n; i++) {
		if (i)
			json_more(out, "with");
		strbuf_add_char(out, '{');
		add_member(sim, &t->members[i], /* with_zeros= */ true, out);
		if (i)
			continue;
		add_ledger(sim, NULL, /* with_zeros= */ true, out);
		add_tables(sim, out);
	}
	for (size_t i = 0; i < t->members_n; i++)
		strbuf_add_char(out, '}');
}

/* HX_OK: *ret says whether it is true. */
static enum hx_code is_true(const struct user_rule *rule, struct slice sight, struct arena *scratch, bool *ret,
			    struct hx_error *err)
{
	struct expression_env env = {.whole = json_trust(sight)};
	enum hx_code code;
	LOCAL_STRBUF(value, SIGHT_BYTES_MAX);

	code = expression_eval(rule->expression, &env, scratch, err, &value);
	*ret = !code && !slice_is(strbuf_slice(&value), "null") && !slice_is(strbuf_slice(&value), "false");
	return code;
}

bool own_rule_holds(const struct user_rule *rule, struct slice sight, bool quiet, struct arena *scratch,
		    bool *ret_reached, struct strbuf *words)
{
	bool yes;
	struct hx_error err;

	if (is_true(rule, sight, scratch, &yes, &err))
		strbuf_addf(words, "the rule cannot be asked here: %s", err.detail);
	else if (rule->kind == RULE_IS_SOMETIMES)
		*ret_reached |= yes;
	else if (rule->kind == RULE_IS_NEVER && yes)
		strbuf_addf(words, "what is never to be is: %s", rule->text);
	else if (rule->kind == RULE_IS_ALWAYS && !yes)
		strbuf_addf(words, "what is always to be is not: %s", rule->text);
	else if (rule->kind == RULE_IS_ENDS && quiet && !yes)
		strbuf_addf(words, "nothing goes on any more, and it is not so: %s", rule->text);
	return !words->n;
}

static void check_one(struct sim *sim, unsigned i, struct slice sight, struct arena *scratch, bool quiet)
{
	struct trial *t = trial_of(sim);
	const struct user_rule *rule = &t->own[i];
	LOCAL_STRBUF(words, SIGHT_BYTES_MAX);

	if (sim->violation[0] || own_rule_holds(rule, sight, quiet, scratch, &t->own_reached[i], &words))
		return;
	trial_break(sim, RULE_NEVER + (enum trial_rule)rule->kind, NULL, "%s", words.p);
	t->broken_said = rule;
}

/* Each is asked of each, beside each other one. */
static void check_beside(struct sim *sim, const struct trial_member *m, const struct trial_member *with, bool quiet)
{
	struct trial *t = trial_of(sim);
	LOCAL_ARENA(scratch, SCRATCH_BYTES_MAX);

	LOCAL_STRBUF(sight, SIGHT_BYTES_MAX);
	if (sim->violation[0])
		return;
	add_sight(sim, m, with, &sight);
	for (unsigned i = 0; i < t->own_n; i++)
		if (!t->own[i].workflow || strcmp(t->own[i].workflow, m->machine->of->name) == 0)
			check_one(sim, i, strbuf_slice(&sight), &scratch, quiet);
}

void trial_check_own(struct sim *sim, bool quiet)
{
	const struct trial *t = trial_of(sim);

	for (size_t k = 0; k < t->members_n && t->own_n; k++)
		for (size_t w = 0; w < t->members_n; w++)
			if (w != k || t->members_n == 1)
				check_beside(sim, &t->members[k], w == k ? NULL : &t->members[w], quiet);
}
