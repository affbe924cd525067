/*
 * The limit of a run (slot.h): which slot it needs, and which of its moves take one and let it go.
 *
 *   the move leaves the run   with a step under way, or a job out   resting, or ended
 *   nobody's before           takes a slot                          lets go, should it have had one
 *   ours before               (has one)                             lets go
 *
 * The key is that of the version of the definition that the run keeps, the number that of the one in force: who raises it lets those
 * go on that wait. A part of a run has the key of the run around it: the work is that one's.
 *
 * Beside it the limits of the action that a move begins (d->act, d->act_rate), with keys of the call's own input. A run has at most one
 * row of an action: row.line is where it stood before the move, run_line_after() where it stands after it, and whatever it does not go on
 * with it leaves. Who stands in line for the one limit lets go of the others, so nobody waits for who waits.
 */
#include "base/json_walk.h"
#include "flow/call_limit.h"
#include "flow/debounce.h"
#include "flow/run_parts.h"

struct slot run_limit_of(const struct run_row *row, const struct run_policy *policy, struct arena *arena)
{
	const struct run_definition *whole = row->machine->definition;
	const struct run_machine *newest;
	struct slot slot = {0};

	if (!whole->limits.concurrency.max)
		return slot;
	slot.key = row->limit_key.p ? row->limit_key
				    : limit_key(whole->limits.concurrency.by, json_trust(row->input), arena);
	slot.name = slot_name("run", row->workspace, slice_str(whole->name), slot.key);
	newest = policy->machine_of(policy->context, slice_str(whole->name), RUN_NEWEST);
	slot.max = (newest ? newest->definition : whole)->limits.concurrency.max;
	return slot;
}

/* A part is no beginning of its own: the run around it was counted. */
struct rate run_rate_of(const struct run_row *row, const struct run_policy *policy, struct arena *arena)
{
	const struct run_definition *whole = row->machine->definition;
	const struct run_machine *newest;
	struct limit_rate limit = whole->limits.rate;
	struct rate rate = {0};

	if (!limit.max || row->started_at || row->scope.p || strcmp(row->status, RUN_PENDING) != 0)
		return rate;
	newest = policy->machine_of(policy->context, slice_str(whole->name), RUN_NEWEST);
	if (newest && !newest->definition->limits.rate.max)
		return rate;
	rate.key = limit_key(limit.by, json_trust(row->input), arena);
	rate.name = slot_name("rate", row->workspace, slice_str(whole->name), rate.key);
	limit = newest ? newest->definition->limits.rate : limit;
	rate.max = limit.max;
	rate.per_ms = limit.per_ms;
	return rate;
}

int64_t run_debounce_of(const struct run_row *row, struct arena *arena)
{
	const struct run_definition *whole = row->machine->definition;

	if (!whole->limits.debounce.for_ms || row->parent || !debounce_is_open(row))
		return 0;
	return debounce_of(&whole->limits, row->workspace, whole->name, row->input, arena).name;
}

/* ---- of an action ---- */

/* As it is in the definition in force; NULL: it is in it no more. */
static const struct action *action_in_force(const struct run_row *row, const struct run_policy *policy,
					    struct slice action)
{
	const struct run_definition *whole = row->machine->definition;
	const struct run_machine *newest = policy->machine_of(policy->context, slice_str(whole->name), RUN_NEWEST);
	const struct run_definition *of = newest ? newest->definition : whole;

	for (size_t i = 0; i < of->actions_n; i++)
		if (slice_is(action, of->actions[i].name))
			return &of->actions[i];
	return NULL;
}

void run_count_action(struct run_drive *d, const struct action *action, struct slice body)
{
	struct bounds bounds;

	if (!limits_are_set(&action->limits))
		return;
	bounds = call_bounds(&(struct call_of){.workspace = d->row.workspace,
					       .workflow = slice_str(d->row.machine->definition->name),
					       .action = action,
					       .in_force = action_in_force(&d->row, d->policy, slice_str(action->name)),
					       .input = call_input(body)},
			     d->arena);
	d->act = bounds.slot;
	d->act_rate = bounds.rate;
}

bool run_has_lines(const struct run_row *row)
{
	const struct run_definition *whole = row->machine->definition;

	for (size_t i = 0; i < whole->actions_n; i++)
		if (limits_are_set(&whole->actions[i].limits))
			return true;
	return false;
}

struct slot run_line_of(const struct run_row *row, const struct run_policy *policy)
{
	const struct action *now = row->line ? action_in_force(row, policy, row->line_action) : NULL;

	return (struct slot){.name = row->line, .max = now ? now->limits.concurrency.max : 0, .of = SLOT_OF_CALL};
}

int64_t run_line_after(const struct run_drive *d)
{
	if (d->move.queues)
		return d->act_rate.name;
	if (d->probing && d->move.keeps)
		return d->row.line;
	return d->action ? d->act.name : 0;
}

/*
 * Takes what the limits of the call want that the move begins. If one of them is full, nothing of the move has
 * happened.
 */
static void add_action(const struct run_drive *d, struct unit *unit)
{
	const int64_t run = d->row.subject, op = d->stamp.op;

	if (!d->holding && run_has_lines(&d->row))
		slot_stands(unit, run, d->row.line); /* mutant: line-unseen -> ; */
	if (d->act_rate.name && !d->move.queues)
		rate_take(unit, &d->act_rate, run, op); /* mutant: action-rate-outside-the-claim -> ; */
	if (d->act.name) {
		slot_lock(unit, &d->act);
		slot_take(unit, &d->act, run, d->stamp.at.ms); /* mutant: action-outside-the-claim */
	}
}

/*
 * Leaves the line in which the run stood before, or gives back the slot that it held, unless it goes on with that very
 * one.
 */
static void leave_action(const struct run_drive *d, struct unit *unit, int64_t goes_on_with)
{
	struct slot before = run_line_of(&d->row, d->policy);

	if (!before.name || before.name == goes_on_with)
		return;
	slot_lock(unit, &before);
	slot_release(unit, &before, d->row.subject); /* mutant: action-slot-kept */
}

/* ---- its moves ---- */

/* Is the run held after this move: by this node, or by a worker that has its job? */
static bool keeps_slot(const struct run_drive *d)
{
	return d->move.keeps || d->move.job;
}

static bool waits_on_for_job(const struct run_drive *d)
{
	return d->move.job && d->move.job == d->row.job;
}

static bool takes_slot(const struct run_drive *d)
{
	return keeps_slot(d) && !d->holding && !waits_on_for_job(d) && d->slot.max;
}

static void add_slot(const struct run_drive *d, struct unit *unit)
{
	if (takes_slot(d))
		slot_take(unit, &d->slot, d->row.subject, d->stamp.at.ms);
}

/* Does the run begin with this move? With its first one, unless that fails the run or puts it off. */
static bool begins(const struct run_drive *d)
{
	return d->rate.name && !d->holding && !d->fails && strcmp(d->move.to, RUN_FAILED) != 0;
}

static void add_slot_early(const struct run_drive *d, struct unit *unit)
{
	bool changes = d->slot.name && (takes_slot(d) || !keeps_slot(d));

	if (!changes || d->move.sql)
		return;
	slot_lock(unit, &d->slot);
	add_slot(d, unit);
}

void run_add_slot(const struct run_drive *d, struct unit *unit)
{
	if (d->debounce && !d->holding) /* a start comes before it, or after it */
		slot_lock(unit, &(struct slot){.name = d->debounce});
	if (begins(d))
		rate_take(unit, &d->rate, d->row.subject, 0); /* mutant: rate-outside-the-claim -> ; */
	else if (d->rate.name)
		rate_leave(unit, d->row.subject);
	add_slot_early(d, unit);
	add_action(d, unit);
}

/*
 * Statements of the user's may take long. A move that has some locks and takes its slot after them, so that nobody
 * waits for that lock meanwhile. If the slot is full by then, nothing of the move has happened.
 */
void run_end_slot(const struct run_drive *d, struct unit *unit)
{
	bool changes = d->slot.name && (takes_slot(d) || !keeps_slot(d));

	if (changes && d->move.sql) {
		slot_lock(unit, &d->slot);
		add_slot(d, unit);
	}
	if (changes && !keeps_slot(d))
		slot_release(unit, &d->slot, d->row.subject);
	leave_action(d, unit, run_line_after(d));
	if (d->move.queues)
		rate_line(unit, &d->act_rate, d->row.subject, d->stamp.at.ms);
}

/*
 * It stands in one line, of the limit that was full (d->full), and leaves all others: also the one that it was woken
 * from, and the slot that a job which is done has left it.
 */
void run_build_line(const struct run_drive *d, struct unit *unit)
{
	int64_t run = d->row.subject, version = d->row.version, out = d->row.times_out_at, at = d->stamp.at.ms;

	if (run_has_lines(&d->row))
		slot_stands(unit, run, d->row.line);
	if (d->rate.name && d->full != d->rate.name)
		rate_leave(unit, run); /* mutant: waits-in-two-lines -> ; */
	if (d->full == d->rate.name)
		rate_wait(unit, &d->rate, run, version, out, at);
	else if (d->full == d->act_rate.name)
		rate_wait(unit, &d->act_rate, run, version, out, at);
	else
		slot_wait(unit, d->full == d->act.name ? &d->act : &d->slot, run, version, out, at);
	leave_action(d, unit, d->full);
	if (d->slot.name && d->full != d->slot.name) {
		slot_lock(unit, &d->slot);
		slot_release(unit, &d->slot, run); /* mutant: waits-with-a-slot -> ; */
	}
}
