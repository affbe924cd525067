/*
 * One key, one request: what a step in doubt has sent before is what it sends again. See step_parts.h.
 *
 * A call is written down before it is begun: with the claim, or, of a step without one, in a unit of its own. It counts as long
 * as its key does, which is as long as the entity's effort has not risen (subject.h):
 *
 *   nothing was begun under this key ─▶ the call is the caller's
 *   something was, and may have been done ─┬ the same input ─▶ that call: its input as it was written, its requester, its address
 *                                          └ another one ───▶ HX_IN_DOUBT, and nothing is written or sent
 *
 * Of an entity the last call is kept. A limit that is known: where two of its steps are in doubt at the same time, the one that
 * was begun first has only its key.
 */
#include "base/json_canonical.h"
#include "flow/step_parts.h"

#define SCRATCH_BYTES_MAX (64u << 20)

static bool same_text(struct json value, struct slice canonical)
{
	struct arena scratch;
	struct hx_error err;
	struct strbuf text;
	bool same;

	arena_init(&scratch, SCRATCH_BYTES_MAX);
	strbuf_init(&text, SCRATCH_BYTES_MAX);
	same = !json_canonical(value, &scratch, &err, &text) && slice_eq(strbuf_slice(&text), canonical);
	strbuf_release(&text);
	arena_release(&scratch);
	return same;
}

/* As JSON: whoever tries again may write it otherwise. */
static bool same_input(struct slice a, struct slice b)
{
	struct arena scratch;
	struct hx_error err;
	struct strbuf text;
	bool same;

	if (slice_eq(a, b))
		return true;
	arena_init(&scratch, SCRATCH_BYTES_MAX);
	strbuf_init(&text, SCRATCH_BYTES_MAX);
	same = !json_canonical(json_trust(a), &scratch, &err, &text) && same_text(json_trust(b), strbuf_slice(&text));
	strbuf_release(&text);
	arena_release(&scratch);
	return same;
}

struct slice step_address(const struct action *action)
{
	return action && action->kind == ACTION_HTTP ? slice_str(action->url) : slice_str("");
}

/* Was something begun under the key of this step that may have been done? */
static bool is_in_doubt(const struct entity_step *s, const struct db_rows *rows)
{
	const struct db_value *effort = db_cell(rows, 0, ENTITY_CLAIM_EFFORT);

	return effort->type == DB_INT && effort->i == s->effort &&
	       slice_eq(db_cell(rows, 0, ENTITY_CLAIM_STEP)->s, s->rq->step_key) &&
	       (s->doubt || db_cell(rows, 0, ENTITY_CLAIM_OPEN)->i > 0);
}

const char *step_take_kept(struct entity_step *s, const struct db_rows *rows)
{
	struct slice address;

	s->address = step_address(s->view->action);
	if (!is_in_doubt(s, rows))
		return NULL;
	s->doubt = true;
	address = db_cell(rows, 0, ENTITY_CLAIM_ADDRESS)->s;
	if (!same_input(s->input, db_cell(rows, 0, ENTITY_CLAIM_INPUT)->s))
		return "the outcome of this step's last call is not known, and it had another input: fire it with that one";
	if ((address.n == 0) != (s->address.n == 0))
		return "the outcome of this step's last call is not known, and the definition in force has another kind of action";
	s->input = arena_copy(s->arena, db_cell(rows, 0, ENTITY_CLAIM_INPUT)->s);
	s->sender = arena_copy(s->arena, db_cell(rows, 0, ENTITY_CLAIM_REQUESTER)->s);
	s->address = arena_copy(s->arena, address);
	return NULL;
}
