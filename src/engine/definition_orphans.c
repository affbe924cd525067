/*
 * Entities that a new version of their definition would leave behind, told as findings with their count. See definition_change.h
 * and flow/entity_orphans.h.
 *
 * Only a version that loses a status is looked at. It costs one walk over the entities of its workflow, or over the user's
 * table; of orphans no more than ORPHANS_COUNT_MAX are counted. One that loses claims costs a walk over what is claimed.
 */
#include "engine/definition_change.h"
#include "flow/entity_orphans.h"

#define LIST_BYTES_MAX (1u << 20)
#define SQL_BYTES_MAX 4096
#define WORDS_BYTES_MAX 1024

/* "3 entities are", "at least 100000 entities are" */
static void add_count(struct strbuf *out, int64_t n)
{
	if (n > ORPHANS_COUNT_MAX)
		strbuf_addf(out, "at least %d entities are", ORPHANS_COUNT_MAX);
	else
		strbuf_addf(out, n == 1 ? "%lld entity is" : "%lld entities are", (long long)n);
}

static void add_reason(struct strbuf *out, enum orphan_why why, const char *to)
{
	switch (why) {
	case ORPHAN_GONE:
		strbuf_add_str(out, ", which this definition does not have: keep it, or move them on first");
		break;
	case ORPHAN_NO_CLAIM:
		strbuf_add_str(out, ", which no step of this definition claims: let their claims end first");
		break;
	case ORPHAN_LEADS_AWAY:
		strbuf_addf(out,
			    " and may end in \"%s\", which this definition does not have: let their claims end first",
			    to);
		break;
	case ORPHAN_MOVED:
	case ORPHAN_NOT:
		strbuf_add_str(out, ", kept by the engine: they would not be found in the table");
	}
}

static void add_finding(struct change *c, const struct candidate *candidate, struct strbuf *words)
{
	findings_add(c->findings, definition_finding(candidate->definition, FINDING_ERROR, 1, "orphans"), "%s",
		     words->p);
	strbuf_release(words);
}

static void definition_orphans_tell(struct change *c, const struct candidate *candidate, struct slice status, int64_t n)
{
	const char *to = "";
	enum orphan_why why = orphan_why(candidate->before->entity, candidate->definition->entity, status, &to);
	struct strbuf words;

	strbuf_init(&words, WORDS_BYTES_MAX);
	add_count(&words, n);
	strbuf_addf(&words, " in the status \"%.*s\"", SLICE_ARGS(status));
	add_reason(&words, why, to);
	add_finding(c, candidate, &words);
}

/* A row of orphans_count_claims(). */
static void tell_claims(struct change *c, const struct candidate *candidate, const struct db_value *row)
{
	struct strbuf words;

	strbuf_init(&words, WORDS_BYTES_MAX);
	add_count(&words, row[3].i);
	strbuf_addf(&words, " in the status \"%.*s\", claimed by the step \"%.*s\" from \"%.*s\"", SLICE_ARGS(row[0].s),
		    SLICE_ARGS(row[1].s), SLICE_ARGS(row[2].s));
	strbuf_add_str(&words, orphan_leaves_table(candidate->before->entity, candidate->definition->entity)
				       ? ", in a table that this definition leaves: let their claims end first"
				       : ", a claim that this definition does not know: keep the step as it is until "
					 "their claims have ended");
	add_finding(c, candidate, &words);
}

static enum hx_code definition_orphans_ask(struct change *c, const struct candidate *candidate, struct unit *unit,
					   struct hx_error *err)
{
	struct unit_result result;
	enum hx_code code = c->runner->run(c->runner, unit, &result, &c->scratch, err);

	for (size_t i = 0; !code && i < result.rows[0].n; i++)
		definition_orphans_tell(c, candidate, db_cell(&result.rows[0], i, 0)->s,
					db_cell(&result.rows[0], i, 1)->i);
	return code;
}

/* The guard of the write is for those that the engine keeps: a table of the user's is written to by others, at any time. */
static enum hx_code look_in_table(struct change *c, struct candidate *candidate, struct slice list,
				  struct hx_error *err)
{
	const struct user_table *table = &candidate->definition->entity->table;
	const struct db_stmt *stmt = NULL;
	LOCAL_UNIT(unit);
	LOCAL_STRBUF(sql, SQL_BYTES_MAX);

	entity_table_count_sql(table, c->runner->postgres, &sql);
	if (!sql.failed)
		stmt = trials_statement(&c->defs->trials, &sql, "ti", "ti", /* foreign= */ false);
	if (!stmt)
		return error_set(err, HX_CONFIG_ERROR, "too many definitions were tried: restart to go on");
	UNIT_ADD(&unit, UNIT_ANY, stmt, db_text(list), db_int(ORPHANS_COUNT_MAX + 1));
	return definition_orphans_ask(c, candidate, &unit, err);
}

static enum hx_code look_for(struct change *c, struct candidate *candidate, struct slice list, struct hx_error *err)
{
	const struct user_table *before = &candidate->before->entity->table;
	const struct user_table *after = &candidate->definition->entity->table;
	LOCAL_UNIT(unit);

	if (before->table) /* rows of a table that is left are the user's, and stay there */
		return after->table && strcmp(before->table, after->table) == 0 &&
				       strcmp(before->status, after->status) == 0
			       ? look_in_table(c, candidate, list, err)
			       : HX_OK;
	candidate->lost = list;
	orphans_count(&unit, candidate->definition->name, list);
	return definition_orphans_ask(c, candidate, &unit, err);
}

/* On rows of the user's as well: the claims are the engine's. */
static enum hx_code look_for_claims(struct change *c, struct candidate *candidate, struct slice list,
				    struct hx_error *err)
{
	LOCAL_UNIT(unit);
	struct unit_result result;
	enum hx_code code;

	candidate->lost_claims = list;
	orphans_count_claims(&unit, candidate->definition->name, list);
	code = c->runner->run(c->runner, &unit, &result, &c->scratch, err);
	for (size_t i = 0; !code && i < result.rows[0].n; i++)
		tell_claims(c, candidate, db_cell(&result.rows[0], i, 0));
	return code;
}

typedef bool orphan_lister(const struct workflow *before, const struct workflow *after, struct strbuf *out);
typedef enum hx_code orphan_looker(struct change *c, struct candidate *candidate, struct slice list,
				   struct hx_error *err);

static enum hx_code definition_orphans_look(struct change *c, struct candidate *candidate, orphan_lister *lister,
					    orphan_looker *looker, struct hx_error *err)
{
	enum hx_code code = HX_OK;
	LOCAL_STRBUF(list, LIST_BYTES_MAX);

	if (lister(candidate->before->entity, candidate->definition->entity, &list))
		code = list.failed ? error_set(err, HX_CONFIG_ERROR, "%s: it changes too many claims at once",
					       candidate->definition->name)
				   : looker(c, candidate, arena_copy(&c->scratch, strbuf_slice(&list)), err);
	return code;
}

enum hx_code change_look_for_orphans(struct change *c, struct candidate *candidate, struct hx_error *err)
{
	enum hx_code code;

	if (!candidate->differs || !candidate->before || !candidate->before->entity || !candidate->definition->entity)
		return HX_OK;
	code = definition_orphans_look(c, candidate, orphan_list, look_for, err);
	return code ? code : definition_orphans_look(c, candidate, orphan_list_claims, look_for_claims, err);
}
