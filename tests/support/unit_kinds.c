/* See unit_kinds.h. The life of these subjects: open ⇄ claimed, open → done → open, claimed → done. */
#include "support/unit_kinds.h"

#include <stdio.h>

#include "base/id.h"
#include "flow/entity.h"
#include "flow/job_work.h"
#include "support/batch_kinds.h"
#include "support/bulk_kinds.h"
#include "support/function_kinds.h"
#include "support/gate_kinds.h"
#include "support/job_kinds.h"
#include "support/schedule_kinds.h"
#include "support/subjects.h"

#define KIND 1
#define STEPS_MAX 14
#define HOUR_MS 3600000
#define DAY_MS (24 * HOUR_MS)

static const char open_status[] = "open", claimed[] = "claimed", done[] = "done";

static struct move move(const struct kind_args *args, const char *from, const char *to)
{
	return (struct move){args->subject, from, to};
}

/* They are entities, too: what calls and claims write down of themselves stands there. */
static const struct db_stmt stmt_entity = {
	.name = "kinds_entity",
	.sql = "INSERT INTO hx_entity (subject, workspace, workflow, name, data)"
	       " SELECT ?1, 'default', 'kinds', CAST(?1 AS TEXT), '{}'{from}",
	.in = "i",
	.out = "",
};

static void create(struct unit *unit, const struct kind_args *args)
{
	subject_create(unit, &args->stamp, args->subject, KIND, open_status);
	UNIT_ADD(unit, UNIT_ANY, &stmt_entity, db_int(args->subject));
}

static void transition(struct unit *unit, const struct kind_args *args)
{
	struct move m = move(args, open_status, done);

	subject_transition(unit, &args->stamp, &m, args->version);
}

static void reopen(struct unit *unit, const struct kind_args *args)
{
	struct move m = move(args, done, open_status);

	subject_transition(unit, &args->stamp, &m, args->version);
}

static void claim(struct unit *unit, const struct kind_args *args)
{
	struct move m = move(args, open_status, claimed);

	subject_claim(unit, &args->stamp, &m, args->version, args->lease_ms);
}

static void heartbeat(struct unit *unit, const struct kind_args *args)
{
	subject_heartbeat(unit, args->subject, args->fence, args->lease_ms);
}

static void release(struct unit *unit, const struct kind_args *args)
{
	struct move m = move(args, claimed, open_status);

	subject_release(unit, &args->stamp, &m, args->fence, /* answered= */ true);
}

static void finish(struct unit *unit, const struct kind_args *args)
{
	struct move m = move(args, claimed, done);

	subject_finish(unit, &args->stamp, &m, args->fence);
}

/* A finish with an after-effect: a job, with a subject of its own, made in the same unit. */
static void finish_effect(struct unit *unit, const struct kind_args *args)
{
	struct job_spec spec = {
		.subject = (INT64_C(1) << 50) + args->subject * 100000 + args->stamp.op,
		.workspace = slice_str("default"),
		.queue = JOB_QUEUE_AFTER_EFFECTS,
		.workflow = "billing",
		.action = "mail",
		.effect_key = slice_str("key"),
		.payload = slice_str("{}"),
	};

	finish(unit, args);
	job_insert(unit, &args->stamp, &spec);
}

/* What a step of an entity does when it claims. */
static struct entity_sent call_of(const struct kind_args *args)
{
	return (struct entity_sent){
		.step = slice_str("close"),
		.from = "open",
		.requester = slice_str("admin"),
		.claimant = slice_str("admin"),
		.input = slice_str("null"),
		.data = slice_str("{}"),
		.effort = args->effort,
		.counter = args->effort,
		.version = 1,
		.kept_version = 1,
		.address = slice_str(""),
		.fence = args->fence,
		.at_version = args->version,
	};
}

static void claim_noted(struct unit *unit, const struct kind_args *args)
{
	struct move m = move(args, open_status, claimed);
	struct entity_sent call = call_of(args);

	entity_claim(unit, &args->stamp, &m, args->version, args->lease_ms, &call);
	entity_note_claim(unit, args->subject, open_status, &call);
}

/* By one who has read that a call of the step is kept. */
static void claim_again(struct unit *unit, const struct kind_args *args)
{
	struct move m = move(args, open_status, claimed);
	struct entity_sent call = call_of(args);

	call.kept = true;
	entity_claim(unit, &args->stamp, &m, args->version, args->lease_ms, &call);
	entity_note_claim(unit, args->subject, open_status, &call);
}

static void finish_kept(struct unit *unit, const struct kind_args *args)
{
	finish(unit, args);
	kept_call_forget(unit, args->subject, args->effort, slice_str("close"));
}

/* And when it calls without one. */
static void note_call(struct unit *unit, const struct kind_args *args)
{
	struct entity_sent call = call_of(args);

	kept_call_note(unit, args->stamp.op, args->subject, &call);
}

static void call_again(struct unit *unit, const struct kind_args *args)
{
	struct entity_sent call = call_of(args);

	kept_call_again(unit, args->stamp.op, args->subject, &call);
}

static void put_away(struct unit *unit, const struct kind_args *args)
{
	kept_call_put_away(unit, args->subject, args->fence);
}

static void note_other_call(struct unit *unit, const struct kind_args *args)
{
	struct entity_sent call = call_of(args);

	call.input = slice_str("{}");
	kept_call_note(unit, args->stamp.op, args->subject, &call);
}

static void failed_alone(struct unit *unit, const struct kind_args *args)
{
	kept_call_answered(unit, args->subject, args->effort, call_of(args).step, /* alone= */ true);
}

/* By a caller who has read it unclaimed. */
static void change_data(struct unit *unit, const struct kind_args *args)
{
	entity_change(unit, &args->stamp, args->subject, open_status, args->version, slice_str("{\"a\":1}"));
	subject_add_note(unit, args->subject, &(struct history_note){.requester = slice_str("admin")});
}

static void revert(struct unit *unit, const struct kind_args *args)
{
	struct move m = move(args, claimed, open_status);

	subject_revert(unit, &args->stamp, &m, args->fence);
}

static void take_over(struct unit *unit, const struct kind_args *args)
{
	subject_take_over(unit, &args->stamp, args->subject, claimed, args->fence, args->lease_ms);
}

static void hold(struct unit *unit, const struct kind_args *args)
{
	subject_hold(unit, args->subject, args->fence, /* if_past= */ false);
}

static void hold_past(struct unit *unit, const struct kind_args *args)
{
	subject_hold(unit, args->subject, args->fence, /* if_past= */ true);
}

static void answered(struct unit *unit, const struct kind_args *args)
{
	kept_call_answered(unit, args->subject, args->effort, call_of(args).step, /* alone= */ false);
}

static void read(struct unit *unit, const struct kind_args *args)
{
	subject_read(unit, args->subject);
}

static void look_up(struct unit *unit, const struct kind_args *args)
{
	subject_look_up(unit, args->subject, args->rival_op);
}

/* Two subjects in one unit: the second verdict stands after the first line, so it can be lost late. */
static void transition_two(struct unit *unit, const struct kind_args *args)
{
	struct move second = {args->other, open_status, done};

	transition(unit, args);
	subject_transition(unit, &args->stamp, &second, args->other_version);
}

/* The same in the other order: beside transition_two it would deadlock if locks were taken as lines come. */
static void transition_two_back(struct unit *unit, const struct kind_args *args)
{
	struct move first = {args->other, open_status, done};

	subject_transition(unit, &args->stamp, &first, args->other_version);
	transition(unit, args);
}

/* A claim that got nothing: what it passed over may be there a moment later, and it waits for that. */
static bool is_lost(const char *outcome)
{
	return strncmp(outcome, "lost", 4) == 0;
}

/* The same of turns, whose unit writes down besides who polls, and so is won. */
static bool has_no_turn(const char *outcome)
{
	return !strstr(outcome, "line 2:");
}

/* A lease that lasted when it was to be forgotten, and was over when it was read. */
static bool is_over(const char *outcome)
{
	return !strstr(outcome, "line 0:") && strstr(outcome, " past\n");
}

const struct unit_kind unit_kinds[] = {
	{.name = "create", .build = create},
	{.name = "transition", .build = transition},
	{.name = "reopen", .build = reopen},
	{.name = "claim", .build = claim},
	{.name = "heartbeat", .build = heartbeat},
	{.name = "release", .build = release},
	{.name = "finish", .build = finish},
	{.name = "finish_effect", .build = finish_effect},
	{.name = "claim_noted", .build = claim_noted},
	{.name = "claim_again", .build = claim_again},
	{.name = "finish_kept", .build = finish_kept},
	{.name = "call_again", .build = call_again},
	{.name = "put_away", .build = put_away},
	{.name = "change_data", .build = change_data},
	{.name = "note_call", .build = note_call},
	{.name = "note_other_call", .build = note_other_call},
	{.name = "failed_alone", .build = failed_alone},
	{.name = "revert", .build = revert},
	{.name = "take_over", .build = take_over},
	{.name = "hold", .build = hold},
	{.name = "hold_past", .build = hold_past},
	{.name = "answered", .build = answered},
	{.name = "read", .build = read},
	{.name = "look_up", .build = look_up},
	{.name = "transition_two", .build = transition_two, .touches_two = true},
	{.name = "transition_two_back", .build = transition_two_back, .touches_two = true},
	{.name = "gate_acquire", .build = gate_acquire, .of = OF_GATE},
	{.name = "gate_acquire_short", .build = gate_acquire_short, .of = OF_GATE, .variant = true},
	{.name = "gate_acquire_held", .build = gate_acquire_held, .of = OF_GATE, .variant = true},
	{.name = "gate_acquire_other", .build = gate_acquire_other, .of = OF_GATE},
	{.name = "gate_acquire_again", .build = gate_acquire_again, .of = OF_GATE, .believes = true},
	{.name = "gate_read", .build = gate_read, .of = OF_GATE},
	{.name = "gate_complete", .build = gate_complete, .of = OF_GATE, .believes = true},
	{.name = "gate_remove", .build = gate_remove, .of = OF_GATE, .believes = true},
	{.name = "gate_forget", .build = gate_forget, .of = OF_GATE, .believes = true, .asks_again = is_over},
	{.name = "gate_completed", .build = gate_completed, .of = OF_GATE},
	{.name = "gate_completion", .build = gate_completion, .of = OF_GATE},
	{.name = "gate_sweep", .build = gate_sweep, .of = OF_GATE, .alone = true},
	{.name = "job_push", .build = job_push_key, .of = OF_JOB},
	{.name = "job_claim", .build = job_claim_due, .of = OF_JOB, .asks_again = is_lost},
	{.name = "job_heartbeat", .build = job_beat, .of = OF_JOB, .believes = true},
	{.name = "job_complete_plain", .build = job_complete_plain, .of = OF_JOB, .believes = true},
	{.name = "job_complete", .build = job_complete, .of = OF_JOB, .believes = true},
	{.name = "job_fail", .build = job_fail, .of = OF_JOB, .believes = true},
	{.name = "job_fail_for_good", .build = job_fail_for_good, .of = OF_JOB, .variant = true, .believes = true},
	{.name = "job_lapse", .build = job_lapse, .of = OF_JOB, .believes = true},
	{.name = "job_withdraw", .build = job_withdraw_waiting, .of = OF_JOB, .believes = true},
	{.name = "job_withdraw_running", .build = job_withdraw_running, .of = OF_JOB, .believes = true},
	{.name = "job_redrive", .build = job_redrive_parked, .of = OF_JOB},
	{.name = "job_expire", .build = job_expire_done, .of = OF_JOB},
	{.name = "account_create", .build = account_make_other, .of = OF_ACCOUNT},
	{.name = "account_credit", .build = account_credit_own, .of = OF_ACCOUNT},
	{.name = "account_credit_key", .build = account_credit_key, .of = OF_ACCOUNT},
	{.name = "account_look", .build = account_look, .of = OF_ACCOUNT},
	{.name = "bulk_create", .build = bulk_create_key, .of = OF_BULK},
	{.name = "bulk_freeze", .build = bulk_freeze_some, .of = OF_BULK},
	{.name = "bulk_freeze_last", .build = bulk_freeze_last, .of = OF_BULK},
	{.name = "bulk_renew", .build = bulk_go_on, .of = OF_BULK},
	{.name = "bulk_item_ended", .build = bulk_end_first, .of = OF_BULK},
	{.name = "bulk_finish", .build = bulk_finish_it, .of = OF_BULK},
	{.name = "bulk_cancel", .build = bulk_cancel_it, .of = OF_BULK},
	{.name = "run_make_order", .build = run_make_order, .of = OF_RUN, .variant = true},
	{.name = "run_make_await", .build = run_make_await, .of = OF_RUN, .variant = true},
	{.name = "run_make_sign", .build = run_make_sign, .of = OF_RUN, .variant = true},
	{.name = "run_make_parcel", .build = run_make_parcel, .of = OF_RUN, .variant = true},
	{.name = "run_lapse", .build = run_lapse, .of = OF_RUN, .variant = true},
	{.name = "run_create", .build = run_create_own, .of = OF_RUN},
	{.name = "run_create_key", .build = run_create_key, .of = OF_RUN},
	{.name = "run_begin", .build = run_begin_own, .of = OF_RUN},
	{.name = "run_begin_key", .build = run_begin_key, .of = OF_RUN},
	{.name = "run_seize", .build = run_seize, .of = OF_RUN, .believes = true},
	{.name = "run_seize_beside", .build = run_seize_beside, .of = OF_RUN},
	{.name = "run_wait_beside", .build = run_wait_beside, .of = OF_RUN},
	{.name = "run_done", .build = run_done, .of = OF_RUN, .believes = true},
	{.name = "run_not_done", .build = run_not_done, .of = OF_RUN, .believes = true},
	{.name = "run_not_done_for_good",
	 .build = run_not_done_for_good,
	 .of = OF_RUN,
	 .believes = true,
	 .seldom = true},
	{.name = "run_in_doubt", .build = run_in_doubt, .of = OF_RUN, .believes = true, .variant = true},
	{.name = "run_heartbeat", .build = run_beat, .of = OF_RUN, .believes = true},
	{.name = "run_cancel", .build = run_cancel, .of = OF_RUN, .believes = true, .seldom = true},
	{.name = "run_cancel_at", .build = run_cancel_at, .of = OF_RUN, .believes = true, .seldom = true},
	{.name = "run_pause", .build = run_pause, .of = OF_RUN, .believes = true, .seldom = true},
	{.name = "run_resume", .build = run_resume, .of = OF_RUN, .believes = true},
	{.name = "run_retry", .build = run_retry, .of = OF_RUN, .believes = true},
	{.name = "run_event", .build = run_event, .of = OF_RUN, .believes = true},
	{.name = "run_event_own", .build = run_event_own, .of = OF_RUN, .believes = true, .variant = true},
	{.name = "run_approve", .build = run_approve, .of = OF_RUN, .believes = true},
	{.name = "run_resolve_done", .build = run_resolve_done, .of = OF_RUN, .believes = true},
	{.name = "run_resolve_not_done", .build = run_resolve_not_done, .of = OF_RUN, .believes = true},
	{.name = "run_expire", .build = run_expire_old, .of = OF_RUN},
	{.name = "run_restart", .build = run_restart_first, .of = OF_RUN, .believes = true, .seldom = true},
	{.name = "run_migrate", .build = run_migrate_next, .of = OF_RUN, .believes = true, .own_clock = true},
	{.name = "run_job_claim", .build = run_job_claim, .of = OF_RUN, .asks_again = is_lost, .own_clock = true},
	{.name = "run_job_take", .build = run_job_take, .of = OF_RUN, .variant = true},
	{.name = "run_job_complete", .build = run_job_complete, .of = OF_RUN},
	{.name = "run_job_fail", .build = run_job_fail, .of = OF_RUN},
	{.name = "run_job_fail_for_good", .build = run_job_fail_for_good, .of = OF_RUN, .variant = true},
	{.name = "run_job_lapse", .build = run_job_lapse, .of = OF_RUN},
	{.name = "batch_create", .build = batch_create_key, .of = OF_BATCH},
	{.name = "batch_load", .build = batch_load, .of = OF_BATCH, .believes = true},
	{.name = "batch_loaded", .build = batch_loaded, .of = OF_BATCH, .believes = true},
	{.name = "batch_add", .build = batch_add, .of = OF_BATCH, .believes = true},
	{.name = "batch_lose_loader", .build = batch_lose_loader, .of = OF_BATCH, .believes = true},
	{.name = "batch_queue", .build = batch_queue, .of = OF_BATCH, .believes = true},
	{.name = "batch_seize", .build = batch_take, .of = OF_BATCH, .believes = true},
	{.name = "batch_seize_down", .build = batch_take_down, .of = OF_BATCH, .believes = true},
	{.name = "batch_turn", .build = batch_turn, .of = OF_BATCH, .believes = true},
	{.name = "batch_let_go", .build = batch_rest, .of = OF_BATCH, .believes = true},
	{.name = "batch_stop_short", .build = batch_stop, .of = OF_BATCH, .believes = true},
	{.name = "batch_complete", .build = batch_complete, .of = OF_BATCH, .believes = true},
	{.name = "batch_cancelled", .build = batch_cancel_last, .of = OF_BATCH, .believes = true},
	{.name = "batch_flag", .build = batch_flag, .of = OF_BATCH},
	{.name = "batch_heartbeat", .build = batch_beat, .of = OF_BATCH, .believes = true},
	{.name = "batch_expire", .build = batch_expire_old, .of = OF_BATCH},
	{.name = "batch_credit", .build = batch_credit, .of = OF_BATCH},
	{.name = "batch_seize_beside", .build = batch_take_beside, .of = OF_BATCH, .believes = true},
	{.name = "batch_flag_beside", .build = batch_flag_beside, .of = OF_BATCH},
	{.name = "item_start", .build = batch_item_start, .of = OF_BATCH, .believes = true},
	{.name = "item_look_up", .build = batch_item_look, .of = OF_BATCH, .believes = true},
	{.name = "item_done", .build = batch_item_done, .of = OF_BATCH, .believes = true},
	{.name = "item_returned", .build = batch_item_returned, .of = OF_BATCH, .believes = true},
	{.name = "item_settle", .build = batch_item_settle, .of = OF_BATCH},
	{.name = "item_late", .build = batch_item_late, .of = OF_BATCH},
	{.name = "item_accept", .build = batch_item_accept, .of = OF_BATCH},
	{.name = "item_resolve_done", .build = batch_item_resolve_done, .of = OF_BATCH, .variant = true},
	{.name = "item_resolve", .build = batch_item_resolve_not_done, .of = OF_BATCH},
	{.name = "item_flip", .build = batch_item_flip, .of = OF_BATCH, .believes = true},
	{.name = "item_left", .build = batch_item_left, .of = OF_BATCH, .believes = true},
	{.name = "function_create", .build = function_create_key, .of = OF_FUNCTION},
	{.name = "function_claim", .build = function_claim_turn, .of = OF_FUNCTION, .asks_again = has_no_turn},
	{.name = "function_begin", .build = function_begin_step, .of = OF_FUNCTION, .believes = true},
	{.name = "function_step_done", .build = function_end_step, .of = OF_FUNCTION, .believes = true},
	{.name = "function_suspend", .build = function_suspend, .of = OF_FUNCTION, .believes = true},
	{.name = "function_complete", .build = function_complete, .of = OF_FUNCTION, .believes = true},
	{.name = "function_heartbeat", .build = function_beat, .of = OF_FUNCTION, .believes = true},
	{.name = "function_look", .build = function_look_at, .of = OF_FUNCTION},
	{.name = "function_event", .build = function_event_one, .of = OF_FUNCTION},
	{.name = "function_pause", .build = function_pause, .of = OF_FUNCTION},
	{.name = "function_cancel", .build = function_cancel_it, .of = OF_FUNCTION},
	{.name = "schedule_put", .build = schedule_put, .of = OF_SCHEDULE},
	{.name = "schedule_look", .build = schedule_look_at, .of = OF_SCHEDULE},
	{.name = "schedule_pause", .build = schedule_pause, .of = OF_SCHEDULE},
	{.name = "schedule_resume", .build = schedule_resume, .of = OF_SCHEDULE},
	{.name = "schedule_trigger", .build = schedule_trigger, .of = OF_SCHEDULE},
	{.name = "schedule_backfill", .build = schedule_fill_in, .of = OF_SCHEDULE},
	{.name = "schedule_delete", .build = schedule_delete_it, .of = OF_SCHEDULE},
	{.name = "hook_nothing", .build = hook_nothing, .of = OF_HOOK},
	{.name = "hook_start", .build = hook_start, .of = OF_HOOK},
	{.name = "hook_fire", .build = hook_fire, .of = OF_HOOK},
	{.name = "hook_same_body", .build = hook_same_body, .of = OF_HOOK},
	{.name = "hook_expire", .build = hook_expire_old, .of = OF_HOOK},
	{.name = "family_look", .build = run_seize, .of = OF_FAMILY, .believes = true},
	{.name = "family_cancel", .build = run_cancel, .of = OF_FAMILY},
	{.name = "family_pause", .build = run_pause, .of = OF_FAMILY},
	{.name = "family_resume", .build = run_resume, .of = OF_FAMILY},
	{.name = "family_retry", .build = run_retry, .of = OF_FAMILY},
	{.name = "child_take", .build = run_child_take, .of = OF_FAMILY, .believes = true},
	{.name = "child_done", .build = run_child_done, .of = OF_FAMILY, .believes = true},
	{.name = "child_fails", .build = run_child_fails, .of = OF_FAMILY, .believes = true},
	{.name = "child_obeys", .build = run_child_obeys, .of = OF_FAMILY},
};
const size_t unit_kinds_n = sizeof unit_kinds / sizeof *unit_kinds;

/* Item 0 runs, 1 has succeeded, 2 is unknown. */
#define BATCH_AT_WORK(open)                                                                                            \
	open, batch_make_queued, batch_take, batch_item_start, batch_item_start, batch_item_start, batch_succeed_1,    \
		batch_unknown_2

/* The units that lead to each fixture, and where it then stands. */
static const struct {
	const char *name;
	int64_t version, fence, effort;
	void (*steps[STEPS_MAX])(struct unit *, const struct kind_args *);
	int64_t lease_ms;
	int64_t token;
} fixtures[FIXTURE_COUNT] = {
	[FIXTURE_ABSENT] = {"absent", 0, 0, 0, {NULL}, 0},
	[FIXTURE_OPEN] = {"open", 1, 0, 0, {create}, 0},
	[FIXTURE_CLAIMED] = {"claimed", 2, 1, 0, {create, claim}, HOUR_MS},
	[FIXTURE_PAST] = {"past its time", 2, 1, 0, {create, claim}, -HOUR_MS},
	[FIXTURE_TAKEN_OVER] = {"taken over", 4, 2, 1, {create, claim, release, claim}, HOUR_MS},
	[FIXTURE_GATE_ABSENT] = {.name = "no record"},
	[FIXTURE_GATE_PROCESSING] = {.name = "processing", .steps = {gate_acquire_live}, .token = 1},
	[FIXTURE_GATE_PAST] = {.name = "past its lease", .steps = {gate_acquire}, .lease_ms = -DAY_MS, .token = 1},
	[FIXTURE_GATE_TAKEN_OVER] = {.name = "record taken over",
				     .steps = {gate_acquire, gate_acquire_live},
				     .lease_ms = -DAY_MS,
				     .token = 2},
	[FIXTURE_GATE_HELD] = {.name = "held", .steps = {gate_acquire_held}, .lease_ms = -DAY_MS, .token = 1},
	[FIXTURE_GATE_COMPLETED] = {.name = "completed", .steps = {gate_acquire_live, gate_complete}, .token = 1},
	[FIXTURE_GATE_EXPIRED] = {.name = "expired", .steps = {gate_acquire_short}, .token = 1},
	[FIXTURE_JOB_ABSENT] = {.name = "no job"},
	[FIXTURE_JOB_AVAILABLE] = {"job available", 1, 0, 0, {job_make}, 0},
	[FIXTURE_JOB_RUNNING] = {"job running", 2, 1, 0, {job_make, job_claim_due}, HOUR_MS},
	[FIXTURE_JOB_PAST] = {"job past its time", 2, 1, 0, {job_make, job_claim_due}, -HOUR_MS},
	[FIXTURE_JOB_RECLAIMED] =
		{"job reclaimed", 4, 2, 0, {job_make, job_claim_due, job_lapse, job_claim_live}, -HOUR_MS},
	[FIXTURE_JOB_PARKED] = {"job parked", 3, 1, 0, {job_make, job_claim_due, job_fail_for_good}, HOUR_MS},
	[FIXTURE_JOB_COMPLETED] = {"job completed", 3, 1, 0, {job_make, job_claim_due, job_complete}, HOUR_MS},
	[FIXTURE_ACCOUNT_ABSENT] = {.name = "no account"},
	[FIXTURE_ACCOUNT_NEW] = {.name = "account opened", .steps = {account_make}},
	[FIXTURE_ACCOUNT_CREDITED] = {.name = "account credited", .steps = {account_make, account_credit_key}},
	[FIXTURE_BULK_ABSENT] = {.name = "no bulk"},
	[FIXTURE_BULK_SELECTING] = {.name = "bulk selecting", .steps = {bulk_make}},
	[FIXTURE_BULK_RUNNING] = {.name = "bulk running", .steps = {bulk_make, bulk_freeze_two}},
	[FIXTURE_BULK_LAST] = {.name = "bulk at its last item", .steps = {bulk_make, bulk_freeze_two, bulk_end_second}},
	[FIXTURE_BULK_OPEN_CANCELLED] = {.name = "bulk cancelled with open items",
					 .steps = {bulk_make, bulk_freeze_two, bulk_end_second, bulk_cancel_it}},
	[FIXTURE_BULK_ENDED] = {.name = "bulk with nothing open",
				.steps = {bulk_make, bulk_freeze_two, bulk_end_first, bulk_end_second}},
	[FIXTURE_BULK_COMPLETED] = {.name = "bulk completed",
				    .steps = {bulk_make, bulk_freeze_two, bulk_end_first, bulk_end_second,
					      bulk_finish_it}},
	[FIXTURE_RUN_ABSENT] = {.name = "no run"},
	[FIXTURE_RUN_PENDING] = {.name = "run pending", .steps = {run_make_order}},
	[FIXTURE_RUN_OWNED] = {.name = "run owned", .steps = {run_make_await, run_seize}},
	[FIXTURE_RUN_PAST] = {.name = "run past its time", .steps = {run_make_order, run_seize, run_lapse}},
	[FIXTURE_RUN_LAST] = {.name = "run at its last step", .steps = {run_make_order, run_seize, run_done}},
	[FIXTURE_RUN_BACKOFF] = {.name = "run in its backoff", .steps = {run_make_order, run_seize, run_not_done}},
	[FIXTURE_RUN_HELD] = {.name = "run held", .steps = {run_make_order, run_seize, run_done, run_in_doubt}},
	[FIXTURE_RUN_AT_EVENT] = {.name = "run awaits an event", .steps = {run_make_await, run_seize, run_done}},
	[FIXTURE_RUN_EVENT_THERE] = {.name = "run with its event",
				     .steps = {run_make_await, run_seize, run_done, run_event}},
	[FIXTURE_RUN_AT_APPROVAL] = {.name = "run awaits a decision", .steps = {run_make_sign, run_seize}},
	[FIXTURE_RUN_APPROVED] = {.name = "run decided", .steps = {run_make_sign, run_seize, run_approve}},
	[FIXTURE_RUN_AT_WORKER] = {.name = "run with a job", .steps = {run_make_parcel, run_seize}},
	[FIXTURE_RUN_AT_WORK] = {.name = "run at work",
				 .steps = {run_make_parcel, run_seize, run_job_claim},
				 .lease_ms = HOUR_MS},
	[FIXTURE_RUN_LATE_WORK] = {.name = "run with late work",
				   .steps = {run_make_parcel, run_seize, run_job_claim},
				   .lease_ms = -HOUR_MS},
	[FIXTURE_RUN_WORKED] = {.name = "run with its job done",
				.steps = {run_make_parcel, run_seize, run_job_claim, run_job_complete},
				.lease_ms = HOUR_MS},
	[FIXTURE_RUN_PAUSED] = {.name = "run paused", .steps = {run_make_await, run_seize, run_done, run_pause}},
	[FIXTURE_RUN_PAUSED_OWNED] = {.name = "run paused and owned", .steps = {run_make_await, run_seize, run_pause}},
	[FIXTURE_RUN_PAUSED_AT_WORK] = {.name = "run paused at work",
					.steps = {run_make_parcel, run_seize, run_job_claim, run_pause},
					.lease_ms = HOUR_MS},
	[FIXTURE_RUN_CANCELLED_OWNED] = {.name = "run cancelled and owned",
					 .steps = {run_make_order, run_seize, run_done, run_cancel}},
	[FIXTURE_RUN_CANCELLED_AT_WORK] = {.name = "run cancelled at work",
					   .steps = {run_make_parcel, run_seize, run_job_claim, run_cancel},
					   .lease_ms = HOUR_MS},
	[FIXTURE_RUN_CANCELLING] = {.name = "run cancelling",
				    .steps = {run_make_order, run_seize, run_done, run_not_done, run_cancel}},
	[FIXTURE_RUN_UNDOING] = {.name = "run undoing",
				 .steps = {run_make_order, run_seize, run_done, run_not_done, run_cancel, run_seize}},
	[FIXTURE_RUN_NARROW] = {.name = "run with a limit", .steps = {run_make_narrow, run_make_beside}},
	[FIXTURE_RUN_NARROW_HELD] = {.name = "run with the only slot",
				     .steps = {run_make_narrow, run_make_beside, run_seize}},
	[FIXTURE_RUN_NARROW_LINE] = {.name = "run with the only slot, and one in line",
				     .steps = {run_make_narrow, run_make_beside, run_seize, run_wait_beside,
					       run_rest_beside}},
	[FIXTURE_RUN_FAILED] = {.name = "run failed", .steps = {run_make_order, run_seize, run_not_done_for_good}},
	[FIXTURE_RUN_COMPLETED] = {.name = "run completed", .steps = {run_make_order, run_seize, run_done, run_done}},
	[FIXTURE_BATCH_ABSENT] = {.name = "no batch", .steps = {batch_open}},
	[FIXTURE_BATCH_LOADING] = {.name = "batch loading", .steps = {batch_open, batch_make_loading, batch_load}},
	[FIXTURE_BATCH_LOADING_PAST] = {.name = "batch with a lost loader",
					.steps = {batch_open, batch_make_loading, batch_load, batch_lapse}},
	[FIXTURE_BATCH_ADDING_PAST] = {.name = "batch with a lost addition",
				       .steps = {batch_open, batch_make_held, batch_add, batch_load, batch_lapse}},
	[FIXTURE_BATCH_HELD] = {.name = "batch held", .steps = {batch_open, batch_make_held}},
	[FIXTURE_BATCH_QUEUED] = {.name = "batch queued", .steps = {batch_open, batch_make_queued}},
	[FIXTURE_BATCH_OWNED] = {.name = "batch owned", .steps = {BATCH_AT_WORK(batch_open)}},
	[FIXTURE_BATCH_PAST] = {.name = "batch past its time", .steps = {BATCH_AT_WORK(batch_open), batch_lapse}},
	[FIXTURE_BATCH_LAST] = {.name = "batch with nothing left",
				.steps = {BATCH_AT_WORK(batch_open), batch_item_done, batch_item_start, batch_fail_3}},
	[FIXTURE_BATCH_POOR] = {.name = "batch short of credit",
				.steps = {BATCH_AT_WORK(batch_open_poor), batch_item_done, batch_make_beside,
					  batch_take_beside, batch_stop_beside}},
	[FIXTURE_BATCH_WAITING] = {.name = "batch out of credit",
				   .steps = {BATCH_AT_WORK(batch_open_poor), batch_item_done, batch_stop,
					     batch_make_beside, batch_take_beside, batch_stop_beside}},
	[FIXTURE_BATCH_FLAGGED] = {.name = "batch flagged", .steps = {BATCH_AT_WORK(batch_open), batch_flag}},
	[FIXTURE_BATCH_CANCELLING] = {.name = "batch cancelling",
				      .steps = {BATCH_AT_WORK(batch_open), batch_flag, batch_turn, batch_item_flip}},
	[FIXTURE_BATCH_FLIPPED] = {.name = "batch refunded",
				   .steps = {BATCH_AT_WORK(batch_open), batch_flag, batch_turn, batch_item_flip,
					     batch_item_flip}},
	[FIXTURE_BATCH_CLEANING_PAST] = {.name = "batch with a lost teardown",
					 .steps = {BATCH_AT_WORK(batch_open), batch_flag, batch_turn, batch_item_flip,
						   batch_lapse}},
	[FIXTURE_BATCH_COMPLETED] = {.name = "batch completed",
				     .steps = {BATCH_AT_WORK(batch_open), batch_item_done, batch_item_start,
					       batch_fail_3, batch_complete}},
	[FIXTURE_BATCH_CANCELLED] = {.name = "batch cancelled",
				     .steps = {BATCH_AT_WORK(batch_open), batch_flag, batch_turn, batch_item_flip,
					       batch_item_flip, batch_cancel_last}},
	[FIXTURE_FUNCTION_ABSENT] = {.name = "no function"},
	[FIXTURE_FUNCTION_DUE] = {.name = "function due", .steps = {function_make}},
	[FIXTURE_FUNCTION_HELD] = {.name = "function held",
				   .steps = {function_make, function_claim_turn},
				   .fence = 1,
				   .lease_ms = HOUR_MS},
	[FIXTURE_FUNCTION_BEGUN] = {.name = "function in a step",
				    .steps = {function_make, function_claim_turn, function_begin_step},
				    .fence = 1,
				    .lease_ms = HOUR_MS},
	[FIXTURE_FUNCTION_PAST] = {.name = "function past its time",
				   .steps = {function_make, function_claim_turn, function_begin_step,
					     function_make_past},
				   .fence = 1,
				   .lease_ms = HOUR_MS},
	[FIXTURE_FUNCTION_ASLEEP] = {.name = "function awaits an event",
				     .steps = {function_make, function_claim_turn, function_suspend},
				     .fence = 1,
				     .lease_ms = HOUR_MS},
	[FIXTURE_SCHEDULE_ABSENT] = {.name = "no schedule"},
	[FIXTURE_SCHEDULE_RESTING] = {.name = "schedule resting", .steps = {schedule_make}},
	[FIXTURE_SCHEDULE_DUE] = {.name = "schedule due", .steps = {schedule_make, schedule_late}},
	[FIXTURE_SCHEDULE_OPEN] = {.name = "schedule with an open run",
				   .steps = {schedule_make, schedule_late, schedule_look_at, schedule_late}},
	[FIXTURE_SCHEDULE_PAUSED] = {.name = "schedule paused",
				     .steps = {schedule_make, schedule_late, schedule_pause}},
	[FIXTURE_HOOK_ABSENT] = {.name = "no delivery"},
	[FIXTURE_HOOK_SEEN] = {.name = "delivery seen", .steps = {hook_nothing}},
	[FIXTURE_HOOK_OLD] = {.name = "delivery seen long ago", .steps = {hook_nothing}, .lease_ms = -HOUR_MS},
	[FIXTURE_FAMILY_NEW] = {.name = "run before its child", .steps = {run_make_family}},
	[FIXTURE_FAMILY_OPEN] = {.name = "run with a child", .steps = {run_make_family, run_seize}},
	[FIXTURE_FAMILY_AT_WORK] = {.name = "run with a child at work",
				    .steps = {run_make_family, run_seize, run_child_take}},
	[FIXTURE_FAMILY_CHILD_DONE] = {.name = "run with a child that is done",
				       .steps = {run_make_family, run_seize, run_child_take, run_child_done}},
	[FIXTURE_FAMILY_CHILD_FAILED] = {.name = "run with a child that has failed",
					 .steps = {run_make_family, run_seize, run_child_take, run_child_fails}},
	[FIXTURE_FAMILY_CANCELLED] = {.name = "run cancelled with a child",
				      .steps = {run_make_family, run_seize, run_cancel}},
	[FIXTURE_FAMILY_CANCELLED_AT_WORK] = {.name = "run cancelled with a child at work",
					      .steps = {run_make_family, run_seize, run_child_take, run_cancel}},
	[FIXTURE_FAMILY_FAILED] = {.name = "run that its child has failed",
				   .steps = {run_make_family, run_seize, run_child_take, run_child_fails, run_seize}},
	[FIXTURE_FAMILY_PAUSED] = {.name = "run paused with a child", .steps = {run_make_family, run_seize, run_pause}},
};

const char *fixture_name(enum fixture fixture)
{
	return fixtures[fixture].name;
}

int64_t fixture_version(enum fixture fixture)
{
	return fixtures[fixture].version;
}

int64_t fixture_fence(enum fixture fixture)
{
	return fixtures[fixture].fence;
}

int64_t fixture_effort(enum fixture fixture)
{
	return fixtures[fixture].effort;
}

int64_t fixture_token(enum fixture fixture)
{
	return fixtures[fixture].token;
}

unsigned fixture_steps_n(enum fixture fixture)
{
	unsigned n = 0;

	while (n < STEPS_MAX && fixtures[fixture].steps[n])
		n++;
	return n;
}

void fixture_step(enum fixture fixture, unsigned step, int64_t subject, struct db *db, const struct unit_result *read,
		  struct unit *unit)
{
	struct kind_args args = {
		.subject = subject,
		.stamp = {.op = step + 1, .at = {1000 + step}, .node = "fixture"},
		.version = step, /* every step raises it by one */
		.fence = 1,
		.token = 1,
		.lease_ms = fixtures[fixture].lease_ms,
		.db = db,
		.read = read,
	};

	fixtures[fixture].steps[step](unit, &args);
}
