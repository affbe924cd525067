/*
 * One key, one request: what a step in doubt has sent before is what it sends again. See step_parts.h.
 *
 * A call is written down before it is begun: with the claim, or, of a step without one, in a unit of its own. It counts as long
 * as its key does, which is as long as the entity's effort has not risen (subject.h):
 *
 *   nothing was begun under this key ─▶ the call is the caller's
 *   something was, and may have been done ─┬ the same input ─▶ that call: its input as it was written, its requester, and its
 *                                          │                  action, out of the version of the definition that it was made by
 *                                          └ another one ───▶ HX_IN_DOUBT, and nothing is written or sent
 *
 * Versions are never deleted, so what was sent needs no copy: where to, with which headers (and the names of secrets in them, whose
 * values no store ever sees), for how long, and what an answer means. What a new definition says of secrets goes to no old address.
 * The step itself (claim, where it leads, after-effects) is of the definition in force.
 *
 * Who has read that nothing was begun may be late. So a call without a claim is written down only if nobody has claimed since, and
 * a claim is taken only if no other call was written down under its key since; whoever is late reads again.
 *
 * Of an entity the last call is kept. Limits that are known: where two of its steps are in doubt at the same time, the one that
 * was begun first has only its key; and a step that is done raises the effort of all, so another one that is in doubt has a new key.
 */
#include "base/json_canonical.h"
#include "flow/step_parts.h"

#define SCRATCH_BYTES_MAX (64u << 20)

static bool step_kept_same_text(struct json value, struct slice canonical)
{
	struct hx_error err;
	LOCAL_ARENA(scratch, SCRATCH_BYTES_MAX);
	LOCAL_STRBUF(text, SCRATCH_BYTES_MAX);

	return !json_canonical(value, &scratch, &err, &text) && slice_eq(strbuf_slice(&text), canonical);
}

/* As JSON: whoever tries again may write it otherwise. */
static bool same_input(struct slice a, struct slice b)
{
	struct hx_error err;

	if (slice_eq(a, b))
		return true;
	LOCAL_ARENA(scratch, SCRATCH_BYTES_MAX);
	LOCAL_STRBUF(text, SCRATCH_BYTES_MAX);
	return !json_canonical(json_trust(a), &scratch, &err, &text) &&
	       step_kept_same_text(json_trust(b), strbuf_slice(&text));
}

void step_call_by(struct entity_step *s, const struct step_view *view, int64_t version)
{
	s->call = view;
	s->call_version = version;
	s->address = slice_str(view->action && view->action->url ? view->action->url : "");
}

/* Was something begun under the key of this step that may have been done? */
static bool is_in_doubt(const struct entity_step *s, const struct db_rows *rows)
{
	const struct db_value *effort = db_cell(rows, 0, ENTITY_CLAIM_EFFORT);

	return effort->type == DB_INT && effort->i == s->effort &&
	       slice_eq(db_cell(rows, 0, ENTITY_CLAIM_STEP)->s, s->rq->step_key) &&
	       (s->doubt || db_cell(rows, 0, ENTITY_CLAIM_OPEN)->i > 0);
}

/* The workflow by which the call was noted; what was noted without a version is taken for one of this one. NULL: not here yet. */
static const struct workflow *noted_by(const struct entity_step *s, const struct db_rows *rows, int64_t *ret_version)
{
	const struct db_value *version = db_cell(rows, 0, ENTITY_CLAIM_VERSION);
	const struct entity_machine *machine = s->rq->ref.machine;

	*ret_version = machine->version;
	if (version->type == DB_INT)
		*ret_version = version->i; /* mutant: kept-by-another */
	if (*ret_version == machine->version)
		return machine->workflow;
	return s->rq->workflow_of ? s->rq->workflow_of(s->rq->context, slice_str(machine->workflow->name), *ret_version)
				  : NULL;
}

enum hx_code step_find_call(struct entity_step *s, const struct db_rows *rows)
{
	struct slice requester = db_cell(rows, 0, ENTITY_CLAIM_REQUESTER)->s;
	int64_t version;
	const struct workflow *w = noted_by(s, rows, &version);
	const struct step *step;

	if (!w)
		return HX_BUSY;
	step = workflow_step(w, db_cell(rows, 0, ENTITY_CLAIM_STEP)->s, db_cell(rows, 0, ENTITY_CLAIM_FROM)->s,
			     requester);
	if (!step)
		return HX_IN_DOUBT;
	step_call_by(s, workflow_view(w, step, requester), version);
	return HX_OK;
}

/* The call that is written down is what is sent. *ret_words: why it cannot be. */
static enum hx_code send_again(struct entity_step *s, const struct db_rows *rows, const char **ret_words)
{
	s->doubt = true;
	*ret_words =
		"the outcome of this step's last call is not known, and it had another input: fire it with that one";
	if (!same_input(s->input, db_cell(rows, 0, ENTITY_CLAIM_INPUT)->s))
		return HX_IN_DOUBT;
	/* Noted by a program that kept no version: headers of another definition are not meant for where that one went. */
	*ret_words =
		"the outcome of this step's last call is not known, and the definition in force calls something else: "
		"put the one back that made it";
	if (!slice_eq(s->address, db_cell(rows, 0, ENTITY_CLAIM_ADDRESS)->s))
		return HX_IN_DOUBT;
	s->input = arena_copy(s->arena, db_cell(rows, 0, ENTITY_CLAIM_INPUT)->s);
	s->sender = arena_copy(s->arena, db_cell(rows, 0, ENTITY_CLAIM_REQUESTER)->s);
	return HX_OK;
}

enum hx_code step_take_kept(struct entity_step *s, const struct db_rows *rows, const char **ret_words)
{
	enum hx_code code;

	if (!is_in_doubt(s, rows))
		return HX_OK;
	*ret_words = "the outcome of this step's last call is not known, and no definition has the step that made it";
	code = step_find_call(s, rows);
	if (code)
		return code;
	if (step_acts_outside(s->call->action))
		return send_again(s, rows, ret_words);
	step_call_by(s, s->view, s->rq->ref.machine->version); /* it ran in the store, where nothing is in doubt */
	return HX_OK;
}
