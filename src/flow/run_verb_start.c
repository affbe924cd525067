/* A verb that may make its run: an event that comes with a start, and a start that is debounced. See run_verb.h. */
#include "flow/answer.h"
#include "flow/debounce.h"
#include "flow/run_verb_parts.h"

bool verb_awaits_event(const struct run_step *step, struct slice name)
{
	return step->type == RUN_EXTERNAL_EVENT && slice_is(name, step->event);
}

/* The run comes with its event, if the definition has a step for it; where it has none, only one that is there can. */
bool verb_may_start(const struct run_verb *v)
{
	const struct run_spec *start = v->rq->start;

	if (!start)
		return false;
	if (start->machine->definition->is_function || v->rq->kind == RUN_DEBOUNCE)
		return true;
	return run_definition_search(start->machine->definition, verb_awaits_event, v->rq->name).step;
}

void verb_start(struct run_verb *v, const struct answer *answer)
{
	v->subject = answer->more_ids[0];
	v->stamp = flow_stamp(answer);
	v->created = true;
	v->joins = false;
	v->changed = true;
	v->status = RUN_PENDING;
	v->version = 1;
	task_go(&v->task, VERB_STARTING);
}

void verb_take_started(struct run_verb *v, const struct answer *answer)
{
	if (verb_is_decided(v, answer))
		return;
	v->subject = 0;
	v->created = false;
	if (!verb_ends_along(v, answer))
		task_go(&v->task, VERB_FINDING);
}

/* What a start was lost to may have ended, or begun, before it is found: then it is started after all. */
static bool starts_again(struct run_verb *v)
{
	const struct run_spec *start = v->rq->start;

	return start && (start->singleton || start->debounce.name) && verb_may_start(v) &&
	       ++v->tries < verb_tries_max(v);
}

void verb_take_found(struct run_verb *v, const struct answer *answer)
{
	const struct run_spec *start = v->rq->start;
	enum hx_code code = HX_STORE_UNAVAILABLE;

	if (answer->result->verdict == UNIT_WON)
		code = run_found(answer->result, v->rq->workflow, &v->subject);
	v->joins = false;
	if (code == HX_OK && start && start->debounce.name)
		v->by_name = !debounce_found_by_key(answer->result);
	if (code == HX_KEY_REUSED && !start)
		code = HX_NOT_FOUND;
	if (code == HX_NOT_FOUND && starts_again(v))
		verb_start(v, answer);
	else if (code)
		end_run_verb(v, code, code == HX_NOT_FOUND && start ? VERB_NO_SUCH_EVENT : NULL);
	else
		task_go(&v->task, VERB_READING);
}

bool verb_meets(struct run_verb *v, const struct answer *answer)
{
	bool goes_on = v->rq->start->singleton && !run_is_terminal(v->row.status);

	v->joins = debounce_is_open(&v->row);
	if (v->joins || goes_on)
		return true;
	if (starts_again(v))
		verb_start(v, answer);
	else
		end_run_verb(v, HX_CONCURRENCY_ERROR, "the run was changed by somebody else in between");
	return false;
}
