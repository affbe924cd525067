/* See run_verb.h for the verbs. What they write stands in run_verb_units.c. */
#include "flow/run_verb.h"

#include <stdio.h>

#include "base/id.h"
#include "flow/answer.h"
#include "flow/function_verb.h"
#include "flow/run_verb_parts.h"
#include "flow/shapes.h"
#include "model/nearest.h"
#include "model/text.h"
#include "task/states.h"

#define TEXT_BYTES_MAX 4096

static const char *const verb_names[] = {
	[RUN_CANCEL] = "cancel",   [RUN_PAUSE] = "pause",     [RUN_RESUME] = "resume",     [RUN_RETRY] = "retry",
	[RUN_EVENT] = "event",     [RUN_APPROVE] = "approve", [RUN_RESOLVE] = "resolve",   [RUN_OBEY] = "asked",
	[RUN_RESTART] = "restart", [RUN_MIGRATE] = "migrate", [RUN_DEBOUNCE] = "debounce",
};

/* Does this verb lead there from where the run stands? */
static bool leads(const struct run_verb *v, const char *to)
{
	bool cancelled = v->rq->kind == RUN_OBEY && v->kind == RUN_CANCEL;

	return ways_lead(&run_ways, cancelled ? "its parent" : verb_names[v->kind], slice_str(v->row.status),
			 slice_str(to));
}

/* The run leaves the line in which it stands. If it was woken for a slot, that is for the next in line. */
static void leave_line(struct run_verb *v)
{
	v->slot = run_limit_of(&v->row, v->rq->policy, v->arena); /* mutant: line-not-left */
	v->line = run_line_of(&v->row, v->rq->policy);
	v->leaves = true;
}

/* With its new input it may be counted by other keys: it comes to its limits anew, at its own age. */
void verb_prepare_join(struct run_verb *v, const struct answer *answer)
{
	struct run_spec spec = {.workspace = v->row.workspace, .machine = v->row.machine, .input = v->rq->start->input};

	run_describe(&spec, v->arena);
	v->attributes = spec.attributes;
	v->alias = answer->more_ids[0];
	leave_line(v);
}

static void write_to(struct run_verb *v, const struct answer *answer, const char *to)
{
	DEBUG_ASSERT(leads(v, to));
	v->singleton = verb_singleton(v, to);
	if (v->joins)
		verb_prepare_join(v, answer);
	v->to = to;
	v->changed = true;
	if (!v->in_part) {
		v->status = to;
		v->version = v->row.version + 1;
	}
	v->stamp = flow_stamp(answer);
	task_go(&v->task, VERB_WRITING);
}

static bool is_in(const struct run_verb *v, const char *status)
{
	return strcmp(v->row.status, status) == 0;
}

/* Text + text, in the arena. Numbers are written as text before. */
static struct slice join(struct run_verb *v, const char *first, struct slice second, const char *third)
{
	struct slice text;
	LOCAL_STRBUF(sb, TEXT_BYTES_MAX);

	strbuf_add_str(&sb, first);
	strbuf_add_slice(&sb, second);
	strbuf_add_str(&sb, third);
	text = arena_copy(v->arena, strbuf_slice(&sb));
	v->arena->failed |= sb.failed;
	return text;
}

/* ---- deciding ---- */

static bool has_to_undo(const struct run_row *row)
{
	for (const struct run_done *done = row->done; done; done = done->before)
		if ((done->step->compensate || run_step_has_children(done->step)) && !done->undone_at &&
		    strcmp(done->status, RUN_STEP_COMPLETED) == 0)
			return true;
	return false;
}

/* Has it children at the step where it stands? Whoever drives it finds out. */
static bool may_have_children(const struct run_row *row)
{
	return row->position < row->definition->steps_n &&
	       run_step_has_children(&row->definition->steps[row->position]);
}

/* Nothing is left to find out, and nothing to undo. */
static bool is_settled(const struct run_row *row)
{
	bool settled = !row->owned && !verb_is_held(row);

	settled &= !row->doubt;                                       /* mutant: cancelled-in-doubt */
	settled &= !has_to_undo(row);                                 /* mutant: cancelled-not-undone */
	settled &= !may_have_children(row);                           /* mutant: cancelled-with-children */
	settled &= !row->job || strcmp(row->status, RUN_FAILED) == 0; /* mutant: cancelled-at-worker */
	return settled;
}

static void decide_cancel(struct run_verb *v, const struct answer *answer)
{
	if (is_in(v, RUN_COMPLETED) && v->rq->kind != RUN_OBEY) {
		end_run_verb(v, HX_ALREADY_COMPLETED, NULL);
	} else if (is_in(v, RUN_CANCELLING) || is_in(v, RUN_CANCELLED)) {
		end_unchanged(v);
	} else if (is_settled(&v->row) && !is_in(v, RUN_COMPLETED)) {
		v->due = false;
		leave_line(v);
		write_to(v, answer, RUN_CANCELLED);
	} else {
		v->due = !v->row.owned;
		write_to(v, answer, RUN_CANCELLING);
	}
}

static void decide_pause(struct run_verb *v, const struct answer *answer)
{
	v->due = false;
	if (is_in(v, RUN_PAUSED)) {
		end_unchanged(v);
	} else if (leads(v, RUN_PAUSED)) { /* mutant: pause-anywhere -> } else if (1) { */
		if (!v->row.owned && !v->row.job)
			leave_line(v);
		write_to(v, answer, RUN_PAUSED);
	} else {
		end_run_verb(v, HX_WRONG_STATUS, "only a run that goes on can be paused");
	}
}

/*
 * What is held for a person stays so; everything else is looked at by whoever drives it. Also a step at a worker: its job
 * may have ended since it was read, and that changes no version.
 */
static void decide_resume(struct run_verb *v, const struct answer *answer)
{
	bool under_way = v->row.owned || v->row.job, held = verb_is_held(&v->row);

	v->due = !v->row.owned && !held;
	if (!leads(v, RUN_PENDING))
		end_run_verb(v, HX_WRONG_STATUS, "the run is not paused");
	else
		write_to(v, answer, under_way ? RUN_RUNNING : held ? RUN_WAITING : RUN_PENDING);
}

static void decide_retry(struct run_verb *v, const struct answer *answer)
{
	/* Has a compensation failed? (The row may still have the words of the step that failed before all this.) */
	bool undo_failed = v->row.undo >= 0 && !v->row.owned && slice_is(v->row.step_status, RUN_STEP_FAILED) &&
			   slice_is(v->row.awaits, RUN_AWAITS_PERSON);

	v->due = true;
	if (leads(v, RUN_PENDING))
		write_to(v, answer, RUN_PENDING);
	else if (leads(v, RUN_CANCELLING) && undo_failed)
		write_to(v, answer, RUN_CANCELLING);
	else
		end_run_verb(v, HX_WRONG_STATUS, "neither the run nor a compensation of it has failed");
}

/* What the verb could have meant by a step; NULL: nothing. */
static const char *run_verb_name_of(const struct run_verb *v, const struct run_step *step)
{
	if (v->rq->kind == RUN_EVENT)
		return step->type == RUN_EXTERNAL_EVENT ? step->event : NULL;
	if (v->rq->kind == RUN_APPROVE)
		return step->type == RUN_APPROVAL ? step->name : NULL;
	return step->name;
}

static void end_unnamed(struct run_verb *v, const char *words)
{
	const struct run_definition *definition = v->row.definition;
	const char **known = arena_zalloc(v->arena, (definition->steps_n + 1) * sizeof *known);
	const char *detail = NULL;
	size_t n = 0;

	for (size_t i = 0; known && i < definition->steps_n; i++) {
		const char *name = run_verb_name_of(v, &definition->steps[i]);

		if (name)
			known[n++] = name;
	}
	if (known)
		detail = text_printf(v->arena, "%s%s", words, nearest_words(v->rq->name, known, "\"", "\"").text);
	end_run_verb(v, HX_NOT_FOUND, detail ? detail : words);
}

static bool is_called(const struct run_step *step, struct slice name)
{
	return slice_is(name, step->name);
}

/*
 * The name may be that of a step of a part. A part is a run of its own, so the verb is for that one, if it stands at
 * this step. True: the part was found, and is read next; or there is none, and the verb has ended with that.
 */
static bool goes_to_part(struct run_verb *v, const struct answer *answer, unsigned line)
{
	struct run_place place = run_definition_search(v->row.definition, is_called, v->rq->name);
	const struct db_rows *parts = &answer->result->rows[line];

	if (v->in_part || !place.step || !place.scope || run_definition_step(v->row.definition, v->rq->name))
		return false;
	for (size_t i = 0; i < parts->n; i++)
		if (slice_is(db_cell(parts, i, 1)->s, place.scope)) {
			v->subject = db_cell(parts, i, 0)->i;
			v->in_part = true;
			task_go(&v->task, VERB_READING);
			return true;
		}
	end_run_verb(v, HX_WRONG_STATUS, "the run does not stand at this step");
	return true;
}

static void decide_resolve(struct run_verb *v, const struct answer *answer)
{
	const struct run_definition *definition = v->row.definition;
	const struct run_step *step = run_definition_step(definition, v->rq->name);
	size_t position = v->row.undo >= 0 ? (size_t)v->row.undo : v->row.position;

	v->due = !is_in(v, RUN_PAUSED);
	if (goes_to_part(v, answer, VERB_LINE_PARTS_OF_RESOLVE))
		return;
	if (!step)
		end_unnamed(v, "the run's definition has no step of this name");
	else if (!verb_is_held(&v->row) || v->row.owned || step->position != position)
		end_run_verb(v, HX_WRONG_STATUS, "the outcome of this step is not unknown");
	else
		write_to(v, answer, is_in(v, RUN_WAITING) ? RUN_PENDING : v->row.status);
}

/* A run that somebody holds, or that is paused, is not made due: whoever lets go of it looks for events in that very unit. */
static void write_event(struct run_verb *v, const struct answer *answer)
{
	bool unheld = is_in(v, RUN_PENDING) || is_in(v, RUN_WAITING);

	v->due = false;
	v->due |= unheld && slice_eq(v->row.awaits, v->awaits); /* mutant: event-due */
	write_to(v, answer, v->row.status);
}

static void decide_event(struct run_verb *v, const struct answer *answer)
{
	struct run_place place = run_definition_search(v->row.definition, verb_awaits_event, v->rq->name);

	if (answer->result->rows[VERB_LINE_SEEN].n) {
		v->duplicate = true;
		end_unchanged(v);
	} else if (!place.step) {
		end_unnamed(v, VERB_NO_SUCH_EVENT);
	} else if (!leads(v, v->row.status) || v->row.position > place.position) {
		end_run_verb(v, HX_WRONG_STATUS, "the run is past the step that this event is for");
	} else if (db_cell(&answer->result->rows[VERB_LINE_COUNT], 0, 0)->i >= RUN_EVENTS_MAX) {
		end_run_verb(v, HX_TOO_LARGE, "the run has had too many events");
	} else {
		v->awaits = join(v, RUN_AWAITS_EVENT, v->rq->name, "");
		write_event(v, answer);
	}
}

/* Its key has a run, or it is that of its singleton and goes on: that is the answer. Else its input is replaced. */
static void decide_debounce(struct run_verb *v, const struct answer *answer)
{
	v->due = false;
	v->duplicate = !v->by_name;
	if (v->joins)
		write_to(v, answer, v->row.status);
	else
		end_unchanged(v);
}

static void decide_approve(struct run_verb *v, const struct answer *answer)
{
	const struct run_step *step = run_definition_step(v->row.definition, v->rq->name);
	char redo[24];

	if (goes_to_part(v, answer, VERB_LINE_PARTS))
		return;
	v->awaits = join(v, RUN_AWAITS_APPROVAL, v->rq->name, "");
	if (!step || step->type != RUN_APPROVAL) {
		end_unnamed(v, "the run's definition has no approval of this name");
	} else if (answer->result->rows[VERB_LINE_SEEN].n) {
		end_run_verb(v, HX_WRONG_STATUS, "it has been decided already");
	} else if (!leads(v, v->row.status) || v->row.position != step->position ||
		   !slice_eq(v->row.awaits, v->awaits)) {
		end_run_verb(v, HX_WRONG_STATUS, "the run does not stand at this step");
	} else {
		snprintf(redo, sizeof redo, "%lld", (long long)v->row.redo);
		v->event_id = join(v, v->event_id.p, slice_str(redo), "");
		write_event(v, answer);
	}
}

static void decide_restart(struct run_verb *v, const struct answer *answer)
{
	v->due = false;
	v->restart = (struct run_restart){
		.subject = answer->more_ids[0],
		.from = run_definition_step(v->row.definition, v->rq->name),
		.requester = v->rq->requester,
		.traceparent = v->rq->traceparent,
		.input = v->rq->data,
	};
	if (v->row.parent)
		end_run_verb(v, HX_WRONG_STATUS, "it is a child: the run that has started it is what is restarted");
	else if (!leads(v, v->row.status))
		end_run_verb(v, HX_WRONG_STATUS, "only a run that has failed or is completed can be restarted");
	else if (!v->restart.from)
		end_unnamed(v, "the run's definition has no step of this name");
	else if (!run_has_reached(&v->row, v->restart.from)) /* mutant: restarted-elsewhere -> else if (0) */
		end_run_verb(v, HX_WRONG_STATUS, "the run has not come to this step");
	else if (run_restart_bytes(&v->row, &v->restart) > RUN_OUTPUTS_BYTES_MAX)
		end_run_verb(v, HX_TOO_LARGE,
			     "its steps would have to keep the input that they were carried out with, 24 MiB at most");
	else if (run_restart_prepare(&v->row, v->arena, &v->restart))
		write_to(v, answer, v->row.status);
	else
		end_run_verb(v, HX_TOO_LARGE, NULL);
}

/* Of the version that it is to have, whose parts were read beside it. */
static void decide_fitting(struct run_verb *v, const struct answer *answer)
{
	const char *detail = NULL;
	enum hx_code code = run_migrate_decide(&answer->result->rows[VERB_LINE_MIGRATE], &v->row, v->arena,
					       &v->migration, &detail);

	if (code == HX_BUSY)
		task_go(&v->task, VERB_READING);
	else if (code)
		end_run_verb(v, code, detail);
	else if (v->rq->dry_run)
		end_unchanged(v);
	else
		write_to(v, answer, v->row.status);
}

static void decide_migrate(struct run_verb *v, const struct answer *answer)
{
	const struct run_policy *policy = v->rq->policy;
	int64_t version = v->rq->definition_version;

	v->due = false;
	v->migration = (struct run_migration){
		.version = version, .renames = v->rq->data, .requester = v->rq->requester};
	if (v->row.machine->version == version) {
		end_unchanged(v);
		return;
	}
	if (v->rq->function_version.p)
		end_run_verb(v, HX_CANNOT_MIGRATE, "it is no function: definitionVersion says where it is to go");
	else if (v->row.scope.p)
		end_run_verb(v, HX_WRONG_STATUS,
			     "it is a part of the run that has started it, and is migrated with that");
	else if (!leads(v, v->row.status))
		end_run_verb(v, HX_WRONG_STATUS,
			     is_in(v, RUN_RUNNING) ? "a step of it is RUNNING" : "the run has ended");
	else if (!run_migrate_has_target(&answer->result->rows[VERB_LINE_MIGRATE]))
		end_run_verb(v, HX_NOT_FOUND, "its workflow has no such version");
	else if (!(v->migration.to = policy->machine_of(policy->context, slice_str(v->row.machine->definition->name),
							version)))
		end_run_verb(v, HX_CONFIG_ERROR, "this node does not know that version (yet)");
	else
		decide_fitting(v, answer);
}

/* The word is noted as heard, whatever comes of it; so a verb that leads nowhere is a write, too. */
static void decide_asked(struct run_verb *v, const struct answer *answer)
{
	static const struct {
		const char *word;
		enum run_verb_kind kind;
		void (*decide)(struct run_verb *, const struct answer *);
	} words[] = {{CHILD_ASKED_CANCEL, RUN_CANCEL, decide_cancel},
		     {CHILD_ASKED_PAUSE, RUN_PAUSE, decide_pause},
		     {CHILD_ASKED_RESUME, RUN_RESUME, decide_resume},
		     {CHILD_ASKED_RETRY, RUN_RETRY, decide_retry}};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		if (!v->row.asked.p || !slice_is(v->row.asked, words[i].word))
			continue;
		v->kind = words[i].kind;
		words[i].decide(v, answer);
		if (v->task.at == VERB_WRITING)
			return;
		v->to = NULL;
		v->due = false;
		v->stamp = flow_stamp(answer);
		task_go(&v->task, VERB_WRITING);
		return;
	}
	end_unchanged(v);
}

static void run_verb_decide(struct run_verb *v, const struct answer *answer)
{
	static void (*const decisions[])(struct run_verb *, const struct answer *) = {
		[RUN_CANCEL] = decide_cancel,   [RUN_PAUSE] = decide_pause,       [RUN_RESUME] = decide_resume,
		[RUN_RETRY] = decide_retry,     [RUN_EVENT] = decide_event,       [RUN_APPROVE] = decide_approve,
		[RUN_RESOLVE] = decide_resolve, [RUN_OBEY] = decide_asked,        [RUN_RESTART] = decide_restart,
		[RUN_MIGRATE] = decide_migrate, [RUN_DEBOUNCE] = decide_debounce,
	};

	decisions[v->rq->kind](v, answer);
	if (v->task.at == VERB_WRITING && v->arena->failed)
		end_run_verb(v, HX_TOO_LARGE, NULL); /* nothing was written yet */
}

/* ---- answers ---- */

/* Ids of users and those that are made here must never meet, so each has a prefix of its own. */
static void start_reading(struct run_verb *v, const struct answer *answer)
{
	char fresh[24];

	snprintf(fresh, sizeof fresh, "%lld", (long long)answer->id);
	if (v->rq->kind == RUN_APPROVE)
		v->event_id = join(v, "approval/", v->rq->name, "/");
	else if (v->rq->kind == RUN_EVENT && v->rq->event_id.n)
		v->event_id = join(v, v->rq->own_id ? "own/" : "event/", v->rq->event_id, "");
	else if (v->rq->kind == RUN_EVENT && !v->event_id.n)
		v->event_id = join(v, "fresh/", slice_str(fresh), "");
	task_go(&v->task, VERB_READING);
	if (v->arena->failed)
		end_run_verb(v, HX_TOO_LARGE, NULL);
}

static void take_new(struct run_verb *v, const struct answer *answer)
{
	start_reading(v, answer);
	if (v->task.at != VERB_READING || v->subject)
		return;
	if (verb_may_start(v)) {
		v->awaits = join(v, RUN_AWAITS_EVENT, v->rq->name, "");
		verb_start(v, answer);
	} else if (v->rq->key.p || (v->rq->start && v->rq->start->singleton)) {
		task_go(&v->task, VERB_FINDING);
	} else {
		end_run_verb(v, HX_NOT_FOUND, VERB_NO_SUCH_EVENT);
	}
}

bool verb_ends_along(struct run_verb *v, const struct answer *answer)
{
	struct run_along *along = v->rq->along;

	if (answer->result->verdict != UNIT_LOST || !along || !along->lost || !along->lost(along, answer->result))
		return false;
	v->duplicate = true;
	v->created = false;
	end_unchanged(v);
	return true;
}

/* Another run goes on in its place, and is named. */
static void end_restarted(struct run_verb *v)
{
	char id[ID_TEXT_BYTES];

	id_format("run", v->row.restarted_by, id);
	end_run_verb(v, HX_RESTARTED, text_printf(v->arena, "the run was restarted as %s", id));
}

static bool is_function(const struct run_verb *v)
{
	return v->row.definition->is_function;
}

static void run_verb_take_read(struct run_verb *v, const struct answer *answer)
{
	const struct run_policy *policy = v->rq->policy;
	enum hx_code code;

	if (answer->result->verdict != UNIT_WON) {
		end_run_verb(v, HX_STORE_UNAVAILABLE, NULL);
		return;
	}
	v->slot = v->line = (struct slot){0};
	v->leaves = false;
	code = run_row_take(answer->result, policy->machine_of, policy->context, v->arena, &v->row);
	if (code == HX_OK && v->row.expired)
		code = HX_RUN_EXPIRED;
	if (code == HX_BUSY) {
		task_go(&v->task, VERB_READING);
		return;
	}
	if (code) {
		end_run_verb(v, code,
			     code == HX_CONFIG_ERROR ? "this node does not know the run's definition (yet)" : NULL);
		return;
	}
	if (!v->in_part) {
		v->status = v->row.status;
		v->version = v->row.version;
	}
	code = v->rq->along && v->rq->along->check && !v->in_part ? v->rq->along->check(v->rq->along, &v->row) : HX_OK;
	if (code)
		end_run_verb(v, code, NULL);
	else if (v->by_name && !verb_meets(v, answer))
		return;
	else if (v->rq->kind == RUN_EVENT && answer->result->rows[VERB_LINE_SEEN].n && !is_function(v))
		run_verb_decide(v, answer); /* whatever the run is by now */
	else if (v->row.restarted_by)       /* mutant: restarted-goes-on -> if (0) */
		end_restarted(v);
	else if (v->rq->version && !v->in_part && v->rq->version != v->row.version)
		end_run_verb(v, HX_CONCURRENCY_ERROR, "the run has another version by now");
	else if (is_function(v))
		function_verb_begin(v, answer);
	else
		run_verb_decide(v, answer);
}

/* Somebody was faster. What was decided need not hold any more; where a version was asked for, it does not. */
static void take_lost(struct run_verb *v, const struct answer *answer)
{
	if (verb_ends_along(v, answer))
		return;
	if (v->tries++ == verb_tries_max(v) || v->rq->version)
		end_run_verb(v, HX_CONCURRENCY_ERROR, "the run was changed by somebody else in between");
	else if (v->joins)
		task_go(&v->task, VERB_FINDING); /* it has begun, or the key has a run by now */
	else
		start_reading(v, answer);
}

static void run_verb_take_written(struct run_verb *v, const struct answer *answer)
{
	size_t line = v->work ? FUNCTION_LINE_SUBJECT : 0;

	if (answer->result->verdict == UNIT_WON && v->to && !v->in_part)
		v->version = db_cell(&answer->result->rows[line], 0, 0)->i;
	if (!verb_is_decided(v, answer))
		take_lost(v, answer);
}

static void take_looked_up(struct run_verb *v, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[0];

	if (answer->result->verdict != UNIT_WON)
		end_run_verb(v, HX_OUTCOME_UNKNOWN, NULL);
	else if (rows->n == 0)
		end_run_verb(v, HX_STORE_UNAVAILABLE, NULL);
	else
		end_run_verb(v, HX_OK, NULL);
	if (v->task.code == HX_OK && !v->in_part)
		v->version = db_cell(rows, 0, 0)->i;
}

TASK_UNIT(build_look_up, struct run_verb, v, subject_look_up(unit, v->subject, v->stamp.op));

static const char *run_verb_words(const struct run_verb *v)
{
	return verb_names[v->rq->kind];
}

static const TASK_STATES(struct run_verb) run_verb_states[] = {
	[VERB_NEW] = {"new", take_new},
	[VERB_STARTING] = {"starting the run", verb_take_started, verb_build_start, .unknown = VERB_LOOKING_UP},
	[VERB_FINDING] = {"finding it by its key", verb_take_found, verb_build_find},
	[VERB_READING] = {"reading", run_verb_take_read, verb_build_read},
	[VERB_FUNCTION] = {"reading its journal", function_verb_take, function_verb_read},
	[VERB_WRITING] = {.words = run_verb_words,
			  .take = run_verb_take_written,
			  .commit = verb_build_write,
			  .unknown = VERB_LOOKING_UP},
	[VERB_LOOKING_UP] = {"looking up its op", take_looked_up, build_look_up},
	[VERB_DONE] = {"done"},
};

/* Before it reads, nothing counts of what it has read before, and at its end it has told what it had to. */
static void run_verb_forget(void *copy)
{
	struct run_verb *v = copy;

	if (v->task.at == VERB_STARTING || v->task.at == VERB_WRITING || v->task.at == VERB_LOOKING_UP)
		return;
	v->row = (struct run_row){0};
	v->stamp = (struct stamp){0};
}

static const struct task_shape run_verb_shape = SHAPE(struct run_verb, run_verb_forget,
	PART(TEXT, struct run_verb, detail, status),
	PART_WITH(INNER, struct run_verb, restart, &run_restart_shape),
	PART_WITH(INNER, struct run_verb, migration, &run_migration_shape),
	PART(MADE, struct run_verb, subject),
	PART_WITH(INNER, struct run_verb, row, &run_row_shape),
	PART(TEXT, struct run_verb, to),
	PART(SLICE, struct run_verb, event_id, awaits),
	PART_WITH(INNER, struct run_verb, slot, &slot_shape),
	PART_WITH(INNER, struct run_verb, line, &slot_shape),
	PART(FRESH, struct run_verb, alias),
	PART(SLICE, struct run_verb, attributes),
	PART_WITH(INNER, struct run_verb, stamp, &stamp_shape));

TASK_KIND_STAMPED(run_verb_kind, "verb", struct run_verb, run_verb_states, .shape = &run_verb_shape);

void run_verb_init(struct run_verb *v, const struct run_verb_request *rq, struct arena *arena)
{
	*v = (struct run_verb){.rq = rq, .kind = rq->kind, .subject = rq->subject, .arena = arena};
	task_init(&v->task, &run_verb_kind, /* topic= */ 0);
}
