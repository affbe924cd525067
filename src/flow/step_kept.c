/*
 * One key, one request: what a step in doubt has sent before is what it sends again. See step_parts.h.
 *
 * A call is written down before it is begun: with the claim, or, of a step without one, in a unit of its own. It counts, with its key, until
 * that step has a definite answer, whatever other steps of the entity do in between (kept_call.h):
 *
 *   nothing is kept of this step ─▶ the call is the caller's
 *   something is, and may have been done ─┬ the same input ─▶ that call: its input and data as they were written, its requester, and its
 *                                         │                  action, out of the version of the definition that it was made by
 *                                         └ another one ───▶ HX_IN_DOUBT, and nothing is written or sent
 *
 * Versions are never deleted, so what was sent needs no copy: where to, with which headers (and the names of secrets in them, whose
 * values no store ever sees), for how long, and what an answer means. What a new definition says of secrets goes to no old address.
 * The step itself (claim, where it leads, after-effects) is of the definition in force.
 *
 * Who has read that nothing was begun may be late. So a call without a claim is written down only if nobody has claimed since, and
 * a claim is taken only if no other call of the step was written down since; whoever is late reads again.
 *
 * That nothing is kept of a step is what nearly everybody finds, and nobody looks for it: the unit that writes a call down is lost where
 * something is, and who has lost it looks (step_looks). But where nothing is written down before a call, or nothing is called, he looks first.
 *
 * One name may stand for several steps, from several statuses. Where they call the same action they are one effect, which is begun once; where
 * they call another (`pay` from deposit_due, `pay` from balance_due), what is kept of the one is nothing to the other, which has its own key.
 *
 * What a claim had begun inside the store was not done, so nothing of it is in doubt. If it was put away, its key is given up first, in a unit
 * of its own (PUTTING_AWAY, too): two who found it, with other inputs, must not both send theirs under it.
 *
 * A claim that ends by its time leaves its call in the entity's row, where the next one would write over it. So whoever fires a step
 * then puts it away first (PUTTING_AWAY), and reads again.
 */
#include "base/excerpt.h"
#include "base/json_canonical.h"
#include "flow/step_parts.h"
#include "model/text.h"

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

/*
 * Is what the last claim has begun in doubt? In a table of the user's also where he has moved the row on under it. (Known limit: if he moves
 * it back as well, and its holder is still at work, the call is kept although that one brings the step to its end.)
 */
bool step_claim_is_in_doubt(const struct entity_step *s, const struct db_rows *rows)
{
	bool owned = db_cell(rows, 0, ENTITY_OWNER)->type != DB_NULL;

	return db_cell(rows, 0, ENTITY_CLAIM_EFFORT)->type == DB_INT &&
	       (owned ? s->rq->ref.machine->table != NULL : db_cell(rows, 0, ENTITY_DOUBT)->i != 0);
}

/* The workflow by which the call was noted; what was noted without a version is taken for one of this one. NULL: not here yet. */
static const struct workflow *noted_by(const struct entity_step *s, const struct db_value *version,
				       int64_t *ret_version)
{
	const struct entity_machine *machine = s->rq->ref.machine;

	*ret_version = machine->version;
	if (version->type == DB_INT)
		*ret_version = version->i; /* mutant: kept-by-another */
	if (*ret_version == machine->version)
		return machine->workflow;
	return s->rq->workflow_of ? s->rq->workflow_of(s->rq->context, slice_str(machine->workflow->name), *ret_version)
				  : NULL;
}

static bool calls_for_somebody(const struct workflow *w, const struct step *step)
{
	for (size_t view = 0; view <= w->requesters_n; view++)
		if (step_acts_outside(step->views[view].action))
			return true;
	return false;
}

/* Where nothing is written down before it: a validation is asked, or nobody is called while others of its name call, or one before may have. */
static bool looks_by_itself(const struct entity_step *s)
{
	const struct workflow *w = step_workflow(s);
	bool asks = false, moves = false, calls = s->rq->ref.machine->version > 1;

	for (size_t i = 0; i < w->steps_n; i++) {
		const struct step_view *view = workflow_view(w, &w->steps[i], s->rq->requester);

		if (!slice_is(s->rq->step_key, w->steps[i].step_key))
			continue;
		asks |= !view->claim_into && step_acts_outside(view->validation);
		moves |= !view->claim_into && !step_acts_outside(view->action);
		calls |= calls_for_somebody(w, &w->steps[i]); /* mutant: looks-for-itself -> ; */
	}
	return asks || (moves && calls);
}

bool step_looks(const struct entity_step *s)
{
	bool looks = s->look || s->rq->mode != STEP_FIRE || s->rq->ref.machine->table;

	return looks || looks_by_itself(s); /* mutant: looks-too-late -> return looks; */
}

enum hx_code step_find_call(struct entity_step *s, const struct db_rows *rows)
{
	/* A claim of what is kept has noted it as the definition in force calls it. */
	int by = s->kept ? ENTITY_KEPT_STEP - ENTITY_CLAIM_STEP : 0;
	size_t row = s->kept ? s->kept_row : 0;
	struct slice requester = db_cell(rows, row, by + ENTITY_CLAIM_REQUESTER)->s,
		     from = db_cell(rows, row, by + ENTITY_CLAIM_FROM)->s;
	int64_t version;
	const struct workflow *w = noted_by(s, db_cell(rows, row, by + ENTITY_CLAIM_VERSION), &version);
	const struct step *step;

	if (!w)
		return HX_BUSY;
	s->kept_version = version;
	step = workflow_step(w, db_cell(rows, row, by + ENTITY_CLAIM_STEP)->s, from, requester);
	if (!step)
		return HX_IN_DOUBT;
	s->from = step->status;
	step_call_by(s, workflow_view(w, step, requester), version);
	return HX_OK;
}

/* The call that is written down is what is sent. *ret_words: why it cannot be. */
static enum hx_code send_again(struct entity_step *s, const struct db_rows *rows, const char **ret_words)
{
	s->doubt = true;
	*ret_words =
		"the outcome of this step's last call is not known, and it had another input: fire it with that one";
	if (!same_input(s->input, db_cell(rows, s->kept_row, ENTITY_KEPT_INPUT)->s))
		return HX_IN_DOUBT;
	/* Noted by a program that kept no version: headers of another definition are not meant for where that one went. */
	*ret_words =
		"the outcome of this step's last call is not known, and the definition in force calls something else: "
		"put the one back that made it";
	if (!slice_eq(s->address, db_cell(rows, s->kept_row, ENTITY_KEPT_ADDRESS)->s))
		return HX_IN_DOUBT;
	s->input = arena_copy(s->arena, db_cell(rows, s->kept_row, ENTITY_KEPT_INPUT)->s);
	step_take_kept_sender(s, rows);
	return HX_OK;
}

void step_take_kept_sender(struct entity_step *s, const struct db_rows *rows)
{
	struct slice data = db_cell(rows, s->kept_row, ENTITY_KEPT_DATA)->s;

	s->sender = arena_copy(s->arena, db_cell(rows, s->kept_row, ENTITY_KEPT_REQUESTER)->s);
	s->sent_data = arena_copy(s->arena, data); /* mutant: kept-data -> (void)data; */
}

static bool is_kept(const struct db_rows *rows, size_t row)
{
	return rows->columns > ENTITY_KEPT_STEP && row < rows->n &&
	       db_cell(rows, row, ENTITY_KEPT_EFFORT)->type == DB_INT;
}

static void take_row(struct entity_step *s, const struct db_rows *rows, size_t row)
{
	s->kept = true;
	s->kept_row = (unsigned)row;
	s->effort = db_cell(rows, row, ENTITY_KEPT_EFFORT)->i;
}

void step_find_kept(struct entity_step *s, const struct db_rows *rows, const struct db_value *effort)
{
	for (size_t row = 0; is_kept(rows, row) && !s->kept; row++)
		if (effort->type != DB_INT || effort->i == db_cell(rows, row, ENTITY_KEPT_EFFORT)->i)
			take_row(s, rows, row);
}

/* "": nobody; NULL: there is no such step. */
static const char *called_by(const struct entity_step *s, const struct workflow *w, struct slice status,
			     struct slice requester)
{
	const struct step *step = workflow_step(w, s->rq->step_key, status, requester);
	const struct action *action = step ? workflow_view(w, step, requester)->action : NULL;

	return action ? action->name : step ? "" : NULL;
}

/*
 * Is it this step whose call is kept in that row, or one of the same name from another status, which calls something else? As the
 * definition says that made the call, for whom it made it; or, where that one does not have this status, the one in force.
 */
static enum hx_code whose_call(const struct entity_step *s, const struct db_rows *rows, size_t row, bool *ret_ours)
{
	struct slice from = db_cell(rows, row, ENTITY_KEPT_FROM)->s, here = slice_str(s->step->status);
	struct slice requester = db_cell(rows, row, ENTITY_KEPT_REQUESTER)->s;
	const char *then, *now;
	int64_t version;
	const struct workflow *w = noted_by(s, db_cell(rows, row, ENTITY_KEPT_VERSION), &version);

	*ret_ours = true;
	if (slice_eq(from, here))
		return HX_OK;
	if (!w)
		return HX_BUSY;
	then = called_by(s, w, from, requester);
	now = called_by(s, w, here, requester);
	if (!then || !now) {
		const char *in_force = called_by(s, step_workflow(s), from, requester);

		now = called_by(s, step_workflow(s), here, requester);
		then = in_force ? in_force : then;
		if (!then || !now || (!in_force && strcmp(then, now) != 0))
			return HX_IN_DOUBT; /* it was renamed, or is another: nobody can say */
	}
	*ret_ours = strcmp(then, now) == 0; /* mutant: another-action-sent -> ; */
	return HX_OK;
}

static const char *not_to_be_said(const struct entity_step *s, struct slice from)
{
	const char *words = text_printf(
		s->arena,
		"the outcome of the last call of the step of this name from \"%s\" is not known, and no definition says "
		"whether it is this one's: put the one back that made it",
		excerpt_of(from).text);

	return words ? words : "the outcome of a step's last call is not known";
}

/* The one that is kept of this step, if any. *ret_words: why that cannot be said. */
static enum hx_code find_own(struct entity_step *s, const struct db_rows *rows, const char **ret_words)
{
	bool ours, has_our_key = false;
	enum hx_code code;

	for (size_t row = 0; is_kept(rows, row); row++) {
		code = whose_call(s, rows, row, &ours);
		if (code) {
			*ret_words = not_to_be_said(s, db_cell(rows, row, ENTITY_KEPT_FROM)->s);
			return code;
		}
		if (ours) {
			take_row(s, rows, row);
			return HX_OK;
		}
		has_our_key |= db_cell(rows, row, ENTITY_KEPT_EFFORT)->i == s->counter;
	}
	/* The entity was moved by nobody's step, so that its number has not risen. */
	*ret_words =
		"the outcome of the last call of a step of this name from another status is not known, and this one's would "
		"have its key: bring that one to its end, or another step";
	return has_our_key ? HX_IN_DOUBT : HX_OK;
}

enum hx_code step_take_kept(struct entity_step *s, const struct db_rows *rows, const char **ret_words)
{
	enum hx_code code;

	s->from = s->step->status;
	s->looked = rows->columns > ENTITY_KEPT_STEP;
	code = find_own(s, rows, ret_words);
	if (code || !s->kept)
		return code;
	*ret_words = "the outcome of this step's last call is not known, and no definition has the step that made it";
	code = step_find_call(s, rows);
	if (code)
		return code;
	return step_acts_outside(s->call->action) ? send_again(s, rows, ret_words) : HX_OK;
}
