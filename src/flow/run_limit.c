/*
 * The limit of a run (slot.h): which slot it needs, and which of its moves take one and let it go.
 *
 *   the move leaves the run   with a step under way, or a job out   resting, or ended
 *   nobody's before           takes a slot                          lets go, should it have had one
 *   ours before               (has one)                             lets go
 *
 * The key is that of the version of the definition that the run keeps, the number that of the one in force: who raises it lets those
 * go on that wait. A part of a run has the key of the run around it: the work is that one's.
 */
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

/* Goes it on to hold the run, or is a worker to? */
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

/* The first move of a run, whatever it does but fail or put it off. */
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
		rate_take(unit, &d->rate, d->row.subject); /* mutant: rate-outside-the-claim -> ; */
	else if (d->rate.name)
		rate_leave(unit, d->row.subject);
	add_slot_early(d, unit);
}

/* What is the user's may take its time: nobody waits for it. If it is full then, nothing of it has happened. */
void run_end_slot(const struct run_drive *d, struct unit *unit)
{
	bool changes = d->slot.name && (takes_slot(d) || !keeps_slot(d));

	if (changes && d->move.sql) {
		slot_lock(unit, &d->slot);
		add_slot(d, unit);
	}
	if (changes && !keeps_slot(d))
		slot_release(unit, &d->slot, d->row.subject);
}

void run_build_line(const struct run_drive *d, struct unit *unit)
{
	if (d->too_early)
		rate_wait(unit, &d->rate, d->row.subject, d->row.version, d->row.times_out_at, d->stamp.at.ms);
	else
		slot_wait(unit, &d->slot, d->row.subject, d->row.version, d->row.times_out_at, d->stamp.at.ms);
}
