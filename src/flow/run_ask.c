/* See run_ask.h. */
#include "flow/run_ask.h"

#include "flow/answer.h"
#include "flow/call_key.h"
#include "flow/run_parts.h"
#include "flow/shapes.h"
#include "task/states.h"

enum { ASKS_NEW, ASKS_READING, ASKS_PROBING, ASKS_DONE };

static const struct run_done *done_at(const struct run_row *row, size_t position)
{
	const struct run_done *done = row->done;

	while (done && done->step->position != position)
		done = done->before;
	return done;
}

enum hx_code run_sent_of(const struct run_row *row, struct arena *arena, struct run_sent *ret_sent)
{
	struct run_drive d = {.row = *row, .done = row->done, .arena = arena};
	const struct run_step *step = drive_step_if_any(&d);
	const struct run_done *undone = row->undo >= 0 ? done_at(row, (size_t)row->undo) : NULL;
	const struct action *action = step ? undone ? step->compensate : step->action : NULL;
	struct hx_error err;

	*ret_sent = (struct run_sent){0};
	if (!action || !slice_is(row->step_status, RUN_STEP_UNKNOWN))
		return HX_OK;
	if (run_make_body(&d, row->done, step, undone, &ret_sent->body, &err))
		return HX_OK; /* an expression that cannot be evaluated any more has sent nothing that could be shown */
	ret_sent->key = run_make_key(&d, step, row->redo, undone);
	ret_sent->step = step;
	ret_sent->action = action;
	return arena->failed ? HX_TOO_LARGE : HX_OK;
}

static void refuse(struct run_ask *a, enum hx_code code, const char *detail)
{
	a->detail = detail;
	task_end(&a->task, code);
}

static void ask_probe(struct run_ask *a, const struct answer *answer)
{
	const struct action *probe = a->row.undo < 0 ? a->sent.action->probe : NULL;

	if (probe_missing(probe)) {
		refuse(a, HX_WRONG_STATUS, probe_missing(probe));
		return;
	}
	a->body = call_body_about(a->sent.body, a->sent.key, a->arena);
	a->key = call_key_to_ask(a->sent.key, CALL_PROBE, answer->id, a->arena);
	if (a->arena->failed)
		refuse(a, HX_TOO_LARGE, NULL);
	else
		task_go(&a->task, ASKS_PROBING);
}

static void take_row(struct run_ask *a, const struct answer *answer)
{
	enum hx_code code = HX_STORE_UNAVAILABLE;

	if (answer->result->verdict == UNIT_WON)
		code = run_row_take(answer->result, a->policy->machine_of, a->policy->context, a->arena, &a->row);
	if (!code && a->row.expired)
		code = HX_RUN_EXPIRED;
	if (!code)
		code = run_sent_of(&a->row, a->arena, &a->sent);
	if (code)
		refuse(a, code == HX_CONFIG_ERROR ? HX_BUSY : code, NULL);
	else if (!run_definition_step(a->row.definition, a->step))
		refuse(a, HX_NOT_FOUND, "the run has no step of this name");
	else if (!a->sent.step || !slice_is(a->step, a->sent.step->name))
		refuse(a, HX_WRONG_STATUS, "the outcome of this step is not in doubt");
	else
		ask_probe(a, answer);
}

static void take_said(struct run_ask *a, const struct answer *answer)
{
	a->says = probe_told(answer, a->arena, &a->output);
	task_end(&a->task, a->arena->failed ? HX_TOO_LARGE : HX_OK);
}

TASK_UNIT(build_row, struct run_ask, a, run_read(unit, a->workspace, a->subject));

static struct act_call call_of(const struct run_ask *a)
{
	return (struct act_call){
		.action = a->sent.action->probe,
		.input = a->body,
		.key = a->key,
		.attempt = 1,
		.fence = a->row.fence,
		.traceparent = a->row.trace,
		.tenant = unit_tenant(a->row.workspace),
	};
}

static const TASK_STATES(struct run_ask) asks_states[] = {
	[ASKS_NEW] = {"new", .then = ASKS_READING},
	[ASKS_READING] = {"reading the run", take_row, build_row},
	[ASKS_PROBING] = {"asking its probe", take_said, .act = call_of},
	[ASKS_DONE] = {"done"},
};

TASK_KIND(asks_kind, "run probe", struct run_ask, asks_states);

void run_ask_init(struct run_ask *a, int64_t subject, struct slice workspace, struct slice step,
		  const struct run_policy *policy, struct arena *arena)
{
	*a = (struct run_ask){
		.subject = subject, .workspace = workspace, .step = step, .policy = policy, .arena = arena};
	task_init(&a->task, &asks_kind, /* topic= */ 0);
}
