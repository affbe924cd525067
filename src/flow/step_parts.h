/*
 * The parts of the entity step (entity_step.c has its states): what the row that it reads means for it (step_read.c), the texts it
 * makes (step_text.c), the units it asks for (step_units.c), and what it asks for (step_ask.c). Functions of the task alone.
 */
#pragma once

#include "flow/answer.h"
#include "flow/entity_step.h"

static inline const struct workflow *step_workflow(const struct entity_step *s)
{
	return s->rq->ref.machine->workflow;
}

static inline int64_t step_lease_ms(const struct entity_step *s)
{
	return s->view->lease_ms ? s->view->lease_ms : s->rq->lease_ms;
}

static inline struct lease step_lease(const struct entity_step *s)
{
	return (struct lease){s->subject, s->fence, step_lease_ms(s), s->asked};
}

/* Work for the action port; sql runs in the finish's unit, a noop is done already. */
static inline bool step_acts_outside(const struct action *action)
{
	return action && action_is_outside(action);
}

/* The statements are those of the definition in force; not if what it stands for was called outside, by whichever version. */
static inline bool step_is_sql(const struct entity_step *s)
{
	const struct action *action = s->view->action;

	return action && action_is_inside(action) && !step_acts_outside(s->call->action);
}

/* What the finish leads from and to: the claim status or the step's own, and the successful state. */
static inline struct move step_finish_move(const struct entity_step *s)
{
	return (struct move){s->subject, s->claimed ? s->view->claim_into : s->step->status, s->view->successful_state};
}

/* ---- going on ---- */

static void step_end(struct entity_step *s, enum hx_code code)
{
	task_end(&s->task, code);
}

static inline void step_end_saying(struct entity_step *s, enum hx_code code, const char *words)
{
	s->output = slice_str(words);
	step_end(s, code);
}

/* The next unit gets a fresh op, so that looking it up cannot find an earlier one. */
static inline void step_go(struct entity_step *s, enum step_at at, const struct answer *answer)
{
	s->stamp = flow_stamp(answer);
	wall_time_format(s->stamp.at, s->stamp_text);
	task_go(&s->task, at);
}

/* entity_step.c: the claim is ours, or none is wanted; what is to be done is done, or a person says that it was; or asks whether it was. */
void step_start_work(struct entity_step *s, const struct answer *answer);
void step_start_finish(struct entity_step *s, const struct answer *answer);
void step_ask_probe(struct entity_step *s, const struct answer *answer);
/* step_read.c: the row is here, and says what is to be done about it, or that nothing can be. */
void step_take_read(struct entity_step *s, const struct answer *answer);

/* ---- texts, in the task's arena, which remembers whether there was room ---- */

/* Key and body of the action's call. Nothing in them tells one try from another: a key has one body. */
void step_make_call(struct entity_step *s);
/* Key and body of a call that changes nothing (call_key.h). */
void step_make_question(struct entity_step *s, const char *what, int64_t ask);
/* The key of the step's own effect. */
void step_make_key(struct entity_step *s);
/* The payload of all after-effects of the transition; its version is the one that the finish reaches. */
void step_make_effect_payload(struct entity_step *s);
/* Their keys: other effects than the step's own, as stable as that one. */
void step_make_effect_keys(struct entity_step *s);
/* Its data with the output that the step saves; or with what is to be changed. HX_VALIDATION_ERROR, HX_TOO_LARGE: *ret_words says why. */
void step_save_output(struct entity_step *s);
enum hx_code step_merge_data(struct entity_step *s, const char **ret_words);
/* What it is searched by with the data that it has from now on, by the definition in force. */
void step_describe(struct entity_step *s);
/* Why its claim was given back: "failed: …", "rejected: …". */
void step_make_reason(struct entity_step *s, enum hx_code code);
/* What a person says of it, and why. */
void step_make_word(struct entity_step *s, bool done);
/* The values of a sql action's parameters. */
void step_look_up_sql_values(struct entity_step *s, const struct answer *answer);

/* ---- step_ask.c ---- */

struct act_call step_call_validation(const struct entity_step *s);
struct act_call step_call_action(const struct entity_step *s);
struct act_call step_call_probe(const struct entity_step *s);
extern const struct task_shape step_shape;

/* ---- step_kept.c ---- */

/* The call is made by this view, of this version of the definition. */
void step_call_by(struct entity_step *s, const struct step_view *view, int64_t version);
/* Does the read say what is kept of the step? */
bool step_looks(const struct entity_step *s);
/* What the last claim has begun is in doubt, and still stands in the entity's row. */
bool step_claim_is_in_doubt(const struct entity_step *s, const struct db_rows *rows);
/* The call that is kept of the claim's step under this key (NULL: whichever), if one is, and its key; whom and with which data it was made for. */
void step_find_kept(struct entity_step *s, const struct db_rows *rows, const struct db_value *effort);
void step_take_kept_sender(struct entity_step *s, const struct db_rows *rows);
/* By the view that the call was written down by. HX_BUSY: that version is not here (yet); HX_IN_DOUBT: it has no such step. */
enum hx_code step_find_call(struct entity_step *s, const struct db_rows *rows);
/* What was begun before under the step's key, if anything, is what is sent. As above; HX_IN_DOUBT: it cannot be, as the words say. */
enum hx_code step_take_kept(struct entity_step *s, const struct db_rows *rows, const char **ret_words);

/* ---- units ---- */

#define STEP_LINE_SLOT 1 /* of the read of RECOVER: what the claim has of its action's limits */

void step_build_read(const struct entity_step *s, struct unit *unit);
void step_build_claim(const struct entity_step *s, struct unit *unit);
void step_put_away(const struct entity_step *s, struct unit *unit);
void step_note_call(const struct entity_step *s, struct unit *unit);
void step_build_release(const struct entity_step *s, struct unit *unit);
void step_build_hold(const struct entity_step *s, struct unit *unit);
void step_build_change(const struct entity_step *s, struct unit *unit);
void step_build_recover(const struct entity_step *s, struct unit *unit);
/* The finish, with everything that belongs to its unit. */
void step_build_finish(const struct entity_step *s, struct unit *unit);
