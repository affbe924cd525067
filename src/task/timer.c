/* A binary heap in which every element knows its place, so that cancelling is O(log n). */
#include "task/timer.h"

#include <stdlib.h>

static void timer_put(struct timers *t, size_t place, struct timer *timer)
{
	t->heap[place] = timer;
	timer->place = place;
}

static void sift_up(struct timers *t, struct timer *timer)
{
	size_t i = timer->place;

	for (; i > 1 && t->heap[i / 2]->due.ns > timer->due.ns; i /= 2)
		timer_put(t, i, t->heap[i / 2]);
	timer_put(t, i, timer);
}

static void sift_down(struct timers *t, struct timer *timer)
{
	size_t i = timer->place;

	for (;;) {
		size_t child = 2 * i;

		if (child < t->n && t->heap[child + 1]->due.ns < t->heap[child]->due.ns)
			child++;
		if (child > t->n || t->heap[child]->due.ns >= timer->due.ns)
			break;
		timer_put(t, i, t->heap[child]);
		i = child;
	}
	timer_put(t, i, timer);
}

void timers_release(struct timers *timers)
{
	free(timers->heap);
	*timers = (struct timers){0};
}

static enum hx_code grow(struct timers *t)
{
	size_t capacity = t->capacity ? 2 * t->capacity : 64;
	struct timer **heap = realloc(t->heap, (capacity + 1) * sizeof(struct timer *));

	if (!heap)
		return HX_NO_MEMORY;
	t->heap = heap;
	t->capacity = capacity;
	return HX_OK;
}

enum hx_code timer_set(struct timers *timers, struct timer *timer, struct mono_time due)
{
	if (!timer->place) {
		if (timers->n == timers->capacity && grow(timers))
			return HX_NO_MEMORY;
		timer_put(timers, ++timers->n, timer);
	}
	timer->due = due;
	sift_up(timers, timer);
	sift_down(timers, timer);
	return HX_OK;
}

void timer_cancel(struct timers *timers, struct timer *timer)
{
	size_t place = timer->place;

	if (!place)
		return;

	struct timer *last = timers->heap[timers->n--];

	timer->place = 0;
	if (last == timer)
		return;
	timer_put(timers, place, last);
	sift_up(timers, last);
	sift_down(timers, last);
}

struct timer *timers_first(const struct timers *timers)
{
	return timers->n ? timers->heap[1] : NULL;
}

struct timer *timers_take_due(struct timers *timers, struct mono_time now)
{
	struct timer *first = timers_first(timers);

	if (!first || first->due.ns > now.ns)
		return NULL;
	timer_cancel(timers, first);
	return first;
}
