/*
 * Whose turn it is in the action port: slots are shared out between workspaces (port.h). Invariants:
 *
 *   - a job is either in its queue's waiting list or running
 *   - a queue (one per action and workspace that has jobs) is on the ready list of its share exactly when one of its jobs could run
 *     but for slots: waiting is not empty, and fewer of its action run than may
 *   - a share (one per kind and workspace that has jobs) is in its kind's turn exactly when it has a ready queue
 *   - after every change port_pump() has run: a kind with a free slot has nobody in its turn who may take it
 */
#include <stdlib.h>

#include "act/port_parts.h"

static bool port_turns_same_text(const char *a, const char *b)
{
	return slice_eq(slice_str(a), slice_str(b));
}

static struct port_action **action_slot(struct port *port, const struct kind *kind, const char *workflow,
					const char *name)
{
	uint64_t hash = 0;
	struct port_action **slot;

	for (const char *p = workflow; p && *p; p++)
		hash = hash * 31 + (unsigned char)*p;
	for (const char *p = name; p && *p; p++)
		hash = hash * 31 + (unsigned char)*p;
	slot = &port->actions[hash % PORT_BUCKETS];
	while (*slot && !((*slot)->kind == kind && port_turns_same_text((*slot)->workflow, workflow) &&
			  port_turns_same_text((*slot)->name, name)))
		slot = &(*slot)->table_next;
	return slot;
}

static struct port_share **share_slot(struct port *port, const struct kind *kind, uint64_t tenant)
{
	struct port_share **slot = &port->shares[tenant % PORT_BUCKETS];

	while (*slot && !((*slot)->kind == kind && (*slot)->tenant == tenant))
		slot = &(*slot)->table_next;
	return slot;
}

/* NULL, as of the two after it: no memory. */
static struct port_action *action_of(struct port *port, const struct action *action, struct kind *kind)
{
	struct port_action **slot = action_slot(port, kind, action->workflow, action->name);

	if (!*slot) {
		*slot = calloc(1, sizeof **slot);
		if (!*slot)
			return NULL;
		(*slot)->workflow = action->workflow;
		(*slot)->name = action->name;
		(*slot)->kind = kind;
	}
	(*slot)->max = action->max_in_flight > 0 ? (size_t)action->max_in_flight : 0;
	return *slot;
}

static struct port_share *share_of(struct port *port, uint64_t tenant, struct kind *kind)
{
	struct port_share **slot = share_slot(port, kind, tenant);

	if (!*slot) {
		*slot = calloc(1, sizeof **slot);
		if (!*slot)
			return NULL;
		(*slot)->tenant = tenant;
		(*slot)->kind = kind;
		(*slot)->ready_last = &(*slot)->ready_first;
	}
	return *slot;
}

static struct port_queue **queue_slot(struct port_action *action, const struct port_share *share)
{
	struct port_queue **slot = &action->queues;

	while (*slot && (*slot)->share != share)
		slot = &(*slot)->action_next;
	return slot;
}

static void drop_if_idle(struct port *port, struct port_action *action, struct port_share *share)
{
	if (share && !share->running && !share->waiting && !share->in_turn) {
		*share_slot(port, share->kind, share->tenant) = share->table_next;
		free(share);
	}
	if (action && !action->queues) {
		*action_slot(port, action->kind, action->workflow, action->name) = action->table_next;
		free(action);
	}
}

struct port_queue *port_queue_of(struct port *port, const struct job *job, struct kind *kind)
{
	struct port_action *action = action_of(port, job->action, kind);
	struct port_share *share = action ? share_of(port, job->call.tenant, kind) : NULL;
	struct port_queue **slot = share ? queue_slot(action, share) : NULL;

	if (slot && !*slot) {
		*slot = calloc(1, sizeof **slot);
		if (*slot)
			**slot = (struct port_queue){.action = action, .share = share};
	}
	if (slot && *slot)
		return *slot;
	drop_if_idle(port, action, share);
	return NULL;
}

void port_drop_if_idle(struct port *port, struct port_queue *queue)
{
	struct port_action *action = queue->action;
	struct port_share *share = queue->share;

	if (queue->running || queue->first || queue->ready)
		return;
	*queue_slot(action, share) = queue->action_next;
	free(queue);
	drop_if_idle(port, action, share);
}

/* ---- waiting and running ---- */

void port_wait_in_queue(struct port *port, struct port_queue *queue, struct job *job)
{
	job->queue = queue;
	job->before = queue->last;
	job->behind = NULL;
	*(queue->last ? &queue->last->behind : &queue->first) = job;
	queue->last = job;
	queue->share->waiting++;
	port->stats.waiting++;
}

void port_leave_queue(struct port *port, struct job *job)
{
	struct port_queue *queue = job->queue;

	*(job->before ? &job->before->behind : &queue->first) = job->behind;
	*(job->behind ? &job->behind->before : &queue->last) = job->before;
	queue->share->waiting--;
	port->stats.waiting--;
}

static void take_turn(struct port_share *share)
{
	struct kind *kind = share->kind;

	if (share->in_turn || !share->ready_first)
		return;
	share->in_turn = true;
	share->turn_next = NULL;
	*kind->turn_last = share;
	kind->turn_last = &share->turn_next;
}

void port_make_ready(struct port_queue *queue)
{
	struct port_share *share = queue->share;

	if (queue->ready || !queue->first || port_is_full(queue->action))
		return;
	queue->ready = true;
	queue->ready_next = NULL;
	*share->ready_last = queue;
	share->ready_last = &queue->ready_next;
	take_turn(share);
}

static struct port_queue *take_ready(struct port_share *share)
{
	struct port_queue *queue = share->ready_first;

	share->ready_first = queue->ready_next;
	if (!share->ready_first)
		share->ready_last = &share->ready_first;
	queue->ready = false;
	return queue;
}

/* What is nobody's in particular is not bounded. */
static bool may_take(const struct kind *kind, const struct port_share *share)
{
	bool may = !share->tenant || kind->unshared;

	may |= share->running < kind->slots - kind->used;
	return may;
}

/* The first in turn that may take a slot, which is out of the turn then. */
static struct port_share *next_in_turn(struct kind *kind)
{
	struct port_share **at = &kind->turn_first, *share;

	while (*at && !may_take(kind, *at))
		at = &(*at)->turn_next;
	share = *at;
	if (!share)
		return NULL;
	*at = share->turn_next;
	if (!*at)
		kind->turn_last = at;
	share->in_turn = false;
	return share;
}

/* The queues of an action stand in the order in which they were served: who was just now is the last. */
static void move_to_end(struct port_queue *queue)
{
	struct port_queue **slot = queue_slot(queue->action, queue->share);

	if (!queue->action_next)
		return;
	*slot = queue->action_next;
	while (*slot)
		slot = &(*slot)->action_next;
	queue->action_next = NULL;
	*slot = queue;
}

static void run_first(struct port *port, struct port_queue *queue)
{
	struct kind *kind = queue->action->kind;
	struct job *job = queue->first;

	port_leave_queue(port, job);
	job->running = true;
	job->started = clock_mono(clock_system());
	queue->running++;
	queue->action->running++;
	queue->share->running++;
	kind->used++;
	port->stats.running++;
	move_to_end(queue);
	port_make_ready(queue);
	kind->start(kind, job);
}

/* Starts what can start. Workspaces take turns, and in each of them its queues, one job each. */
void port_pump(struct port *port, struct kind *kind)
{
	struct port_share *share;

	while (kind->used < kind->slots && (share = next_in_turn(kind))) {
		struct port_queue *queue = take_ready(share);

		take_turn(share); /* the last one now, if it has more */
		if (queue->first && !port_is_full(queue->action))
			run_first(port, queue);
		else
			port_drop_if_idle(port, queue); /* its waiting jobs were aborted, or the bound is reached */
	}
}
