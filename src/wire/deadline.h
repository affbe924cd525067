/*
 * Deadlines of one length, in a queue: whoever is set last is due last, so setting, clearing and looking for the
 * next one cost nothing, however many there are. A server has a handful of timeouts and thousands of connections;
 * each connection is in the queue of what it waits for. A queue with after_ms 0 is for those that wait without end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"

/* Zeroed: set in no queue. */
struct deadline {
	struct deadline *previous, *next;
	struct mono_time at;
};

struct deadline_queue {
	struct deadline ends; /* next is the first, previous the last */
	int64_t after_ms;
	/* The deadline is cleared already. */
	void (*expire)(struct deadline *deadline);
};

static inline void deadline_queue_init(struct deadline_queue *queue, int64_t after_ms,
				       void (*expire)(struct deadline *))
{
	queue->ends.next = queue->ends.previous = &queue->ends;
	queue->after_ms = after_ms;
	queue->expire = expire;
}

static inline void deadline_clear(struct deadline *deadline)
{
	if (!deadline->next)
		return;
	deadline->previous->next = deadline->next;
	deadline->next->previous = deadline->previous;
	deadline->next = deadline->previous = NULL;
}

/* Moves it, from whatever queue it was in. */
static inline void deadline_set(struct deadline_queue *queue, struct deadline *deadline, struct mono_time now)
{
	deadline_clear(deadline);
	deadline->at = mono_add_ms(now, queue->after_ms);
	deadline->next = &queue->ends;
	deadline->previous = queue->ends.previous;
	deadline->previous->next = deadline;
	queue->ends.previous = deadline;
}

/* For a queue whose deadlines differ in length (after_ms only has to be above 0): keeps it in order, looking from its
 * end, where most of them belong. */
static inline void deadline_set_at(struct deadline_queue *queue, struct deadline *deadline, struct mono_time at)
{
	struct deadline *before;

	deadline_clear(deadline);
	before = queue->ends.previous;
	while (before != &queue->ends && before->at.ns > at.ns)
		before = before->previous;
	deadline->at = at;
	deadline->previous = before;
	deadline->next = before->next;
	before->next->previous = deadline;
	before->next = deadline;
}

/* The one that is due first, or NULL. */
static inline struct deadline *deadline_first(const struct deadline_queue *queue)
{
	return queue->ends.next == &queue->ends ? NULL : queue->ends.next;
}
