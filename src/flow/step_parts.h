/*
 * The parts of the entity step (entity_step.c has its states): the texts it makes (step_text.c) and the units it asks
 * for (step_units.c), and what it asks for (step_ask.c). Functions of the task alone.
 */
#ifndef HX_FLOW_STEP_PARTS_H
#define HX_FLOW_STEP_PARTS_H

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

static inline bool step_is_sql(const struct entity_step *s)
{
	return s->view->action && s->view->action->kind == ACTION_SQL;
}

/* What the finish leads from and to: the claim status or the step's own, and the successful state. */
static inline struct move step_finish_move(const struct entity_step *s)
{
	return (struct move){s->subject, s->claimed ? s->view->claim_into : s->step->status, s->view->successful_state};
}

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
/* The values of a sql action's parameters. */
void step_look_up_sql_values(struct entity_step *s, const struct answer *answer);

/* ---- step_ask.c: what a task_kind has besides `take` ---- */

void step_ask(const struct task *task, struct ask *ask);
const char *step_where(const struct task *task);
uint64_t step_fingerprint(const struct task *task, uint64_t hash);

/* ---- step_kept.c ---- */

/* Where an action is called; empty: it has no address. */
struct slice step_address(const struct action *action);
/* What was begun before under the step's key, if anything, is what is sent. Words: it cannot be (HX_IN_DOUBT). */
const char *step_take_kept(struct entity_step *s, const struct db_rows *rows);

/* ---- units ---- */

/* The unit of the state that the task is in. */
void step_build_unit(const struct entity_step *s, struct unit *unit);
/* The finish, with everything that belongs to its unit. */
void step_build_finish(const struct entity_step *s, struct unit *unit);

#endif
