/* See entity_orphans.h. */
#include "flow/entity_orphans.h"

#include "base/json_string.h"

/* ?1 workflow   ?2 statuses */
#define OF_THESE                                                                                                       \
	" FROM hx_entity e JOIN hx_subject s ON s.id = e.subject"                                                      \
	" WHERE e.workflow = ?1 AND e.workspace <> '' AND s.status IN (SELECT value FROM {list2})"

/* How many there are, of ?3 at most, by `shown` of what is `read` of each; and that there is none, as a row. */
#define COUNTED(read, of, shown)                                                                                       \
	"SELECT " shown ", count(*) FROM (SELECT " read of " LIMIT ?3) x GROUP BY " shown " ORDER BY " shown
#define NO_SUCH(of) "SELECT CAST(1 AS bigint) WHERE NOT EXISTS (SELECT 1" of ")"

DB_STMT(stmt_count, "orphans_count", "tti", "ti", COUNTED("s.status", OF_THESE, "x.status"));
DB_STMT(stmt_none, "orphans_none", "tt", "i", NO_SUCH(OF_THESE));

/*
 * By the index of what is claimed, which is little. CROSS keeps SQLite from walking the entities instead.
 *   ?1 workflow   ?2 claims
 */
#define OF_THESE_CLAIMS                                                                                                \
	" FROM hx_subject s CROSS JOIN hx_entity e"                                                                    \
	" WHERE s.owner IS NOT NULL AND e.subject = s.id AND e.workflow = ?1"                                          \
	" AND (e.claim_step || ':' || e.claim_from || ':' || s.status) IN (SELECT value FROM {list2})"

DB_STMT(stmt_count_claims, "orphans_count_claims", "tti", "ttti",
	COUNTED("s.status, e.claim_step AS step, e.claim_from AS came", OF_THESE_CLAIMS, "x.status, x.step, x.came"));
DB_STMT(stmt_no_claims, "orphans_no_claims", "tt", "i", NO_SUCH(OF_THESE_CLAIMS));

DB_STMT(stmt_add, "definition_add", "titi", "i",
	"INSERT INTO hx_definition (name, version, text, at) VALUES (?1, ?2, ?3, ?4)"
	" ON CONFLICT DO NOTHING RETURNING version");

/* ---- what is lost ---- */

/* Where a claim of the first version may end that the second one does not know. NULL: nowhere. */
static const char *leads_away(const struct workflow *before, const struct workflow *after, struct slice claim_into)
{
	for (size_t i = 0; i < before->steps_n; i++)
		for (size_t v = 0; v <= before->requesters_n; v++) {
			const struct step_view *view = &before->steps[i].views[v];

			if (!view->claim_into || !slice_is(claim_into, view->claim_into))
				continue;
			if (view->successful_state && !workflow_has_status(after, slice_str(view->successful_state)))
				return view->successful_state;
			if (!workflow_has_status(after, slice_str(view->revert_to)))
				return view->revert_to;
		}
	return NULL;
}

enum orphan_why orphan_why(const struct workflow *before, const struct workflow *after, struct slice status,
			   const char **ret_to)
{
	bool claimed = workflow_is_claim_status(before, status);
	const char *to;

	if (!before->table.table && after->table.table)
		return ORPHAN_MOVED;
	if (!workflow_has_status(after, status))
		return ORPHAN_GONE;
	if (claimed && !workflow_is_claim_status(after, status))
		return ORPHAN_NO_CLAIM;
	to = claimed ? leads_away(before, after, status) : NULL; /* mutant: orphan-led-away -> to = NULL; */
	if (to && ret_to)
		*ret_to = to;
	return to ? ORPHAN_LEADS_AWAY : ORPHAN_NOT;
}

bool orphan_list(const struct workflow *before, const struct workflow *after, struct strbuf *out)
{
	size_t n = 0;

	strbuf_add_char(out, '[');
	for (size_t i = 0; i < before->statuses_n; i++) {
		struct slice status = slice_str(before->statuses[i]);

		if (!orphan_why(before, after, status, NULL))
			continue;
		strbuf_add_str(out, n++ ? "," : "");
		json_quote(status, out);
	}
	strbuf_add_char(out, ']');
	return n > 0;
}

/* ---- claims ---- */

bool orphan_leaves_table(const struct workflow *before, const struct workflow *after)
{
	const struct user_table *a = &before->table, *b = &after->table;

	return a->table && (!b->table || strcmp(a->table, b->table) != 0 || strcmp(a->id, b->id) != 0 ||
			    strcmp(a->status, b->status) != 0);
}

/* Where this requester's claim of the step of this name goes. NULL: there is none. */
static const char *claims_into(const struct workflow *w, const struct step *like, const char *requester)
{
	const struct step *step = workflow_step(w, slice_str(like->step_key), slice_str(like->status),
						slice_str(requester));

	return step ? workflow_view(w, step, slice_str(requester))->claim_into : NULL;
}

struct claim_list {
	const struct workflow *before, *after;
	struct strbuf *out;
	size_t n;
	const char *last; /* seen to be lost: the same for most requesters of a step */
};

/* A requester of either version: where there is no such name, it is anyone else. */
static void look_at_claim(struct claim_list *l, const struct step *step, const char *requester)
{
	const char *into = claims_into(l->before, step, requester), *now = claims_into(l->after, step, requester);
	bool left = orphan_leaves_table(l->before, l->after);

	if (!into || (l->last && strcmp(into, l->last) == 0) || (!left && now && strcmp(now, into) == 0))
		return;
	l->last = into;
	if (left || !orphan_why(l->before, l->after, slice_str(into), NULL)) /* else it is told as a status */
		strbuf_addf(l->out, "%s\"%s:%s:%s\"", l->n++ ? "," : "", step->step_key, step->status, into);
}

bool orphan_list_claims(const struct workflow *before, const struct workflow *after, struct strbuf *out)
{
	struct claim_list l = {.before = before, .after = after, .out = out};

	strbuf_add_char(out, '[');
	for (size_t i = 0; i < before->steps_n; i++) {
		l.last = NULL;
		look_at_claim(&l, &before->steps[i], "default");
		for (size_t r = 0; r < before->requesters_n; r++)
			look_at_claim(&l, &before->steps[i], before->requesters[r]);
		for (size_t r = 0; r < after->requesters_n; r++)
			look_at_claim(&l, &before->steps[i], after->requesters[r]);
	}
	strbuf_add_char(out, ']');
	return l.n > 0;
}

/* ---- who is there ---- */

void orphans_count(struct unit *unit, const char *workflow, struct slice list)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_count, db_str(workflow), db_text(list), db_int(ORPHANS_COUNT_MAX + 1));
}

void orphans_count_claims(struct unit *unit, const char *workflow, struct slice list)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_count_claims, db_str(workflow), db_text(list), db_int(ORPHANS_COUNT_MAX + 1));
}

/* ---- writing a version ---- */

static void guard(struct unit *unit, const struct db_stmt *none, const char *workflow, struct slice list)
{
	if (list.n)
		UNIT_ADD(unit, UNIT_MUST, none, db_str(workflow), db_text(list));
}

void orphans_add_version(struct unit *unit, const struct new_version *v)
{
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_add, db_str(v->workflow), db_int(v->version), db_text(v->text),
		 db_int(v->at.ms));
	guard(unit, &stmt_none, v->workflow, v->lost);             /* mutant: orphan-status-unguarded */
	guard(unit, &stmt_no_claims, v->workflow, v->lost_claims); /* mutant: orphan-claim-unguarded */
}
