/* See feeder.h. */
#include "engine/feeder.h"

#include <stdlib.h>

#include "base/thread.h"

#define PAUSE_MIN_MS 5
#define PAUSE_MAX_MS 250

/* Under the mutex. */
static void end_rests(struct feeder *f)
{
	struct mono_time now = clock_mono(f->options.clock);
	size_t over = 0;

	while (over < f->resting_n && f->resting[over].until.ns <= now.ns)
		(void)id_set_remove(&f->under_way, f->resting[over++].subject); /* it is there: F1 */
	f->resting_n -= over;
	memmove(f->resting, f->resting + over, f->resting_n * sizeof *f->resting);
}

/* Under the mutex. Those whose rest is over take no place, whether or not the watch has found anything since. */
static bool slice_fits(struct feeder *f)
{
	end_rests(f);
	return !f->closed && f->under_way.n + f->options.slice <= f->options.under_way_max;
}

/* Under the mutex. Starts the watch unless it runs, or a slice might not fit. */
static void look_again(struct feeder *f)
{
	size_t limit;

	if (f->watching || !slice_fits(f))
		return;
	/* Whatever is under way may be still due, because it rests, or has yet to be claimed: it must not hide the rest. */
	limit = f->options.slice + f->under_way.n;
	due_watch_init(&f->watch, &f->options.source, limit < DUE_WATCH_MAX ? (int64_t)limit : DUE_WATCH_MAX,
		       f->pause_ms);
	/* Refused only when the lane ends. */
	f->watching = lane_submit_own(f->options.lanes->lanes[0], &f->seat) == HX_OK;
}

/* What is not under way here goes to the front of the watch's list; returns how much that is. */
static size_t pick_new(struct feeder *f)
{
	struct due_watch *w = &f->watch;
	size_t n = 0;

	end_rests(f);
	for (size_t i = 0; i < w->found_n && n < f->options.slice; i++)
		if (id_set_add(&f->under_way, w->found[i]))
			w->found[n++] = w->found[i];
	return n;
}

static void found(struct seat *seat, enum hx_code code)
{
	struct feeder *f = (struct feeder *)((char *)seat - offsetof(struct feeder, seat));
	size_t n;

	if (code == HX_STOPPING)
		return;
	pthread_mutex_lock(&f->mutex);
	n = code || f->closed ? 0 : pick_new(f);
	f->pause_ms = n || 2 * f->pause_ms < PAUSE_MIN_MS ? PAUSE_MIN_MS
		      : 2 * f->pause_ms < PAUSE_MAX_MS    ? 2 * f->pause_ms
							  : PAUSE_MAX_MS;
	/* The watch could not even sleep: it looks at once. */
	f->pause_ms = code ? 0 : f->pause_ms;
	pthread_mutex_unlock(&f->mutex);
	/* `watching` is still set: whatever ends meanwhile leaves the list alone. */
	for (size_t i = 0; i < n; i++)
		if (!f->options.begin(f->options.context, f->watch.found[i]))
			feeder_ended(f, f->watch.found[i], /* rest_ms= */ 0);
	pthread_mutex_lock(&f->mutex);
	f->watching = false;
	look_again(f);
	pthread_mutex_unlock(&f->mutex);
}

enum hx_code feeder_start(struct feeder *f, const struct feeder_options *options)
{
	enum hx_code code;

	ASSERT(options->slice < DUE_WATCH_MAX && options->slice <= options->under_way_max &&
	       FEEDER_RESTING_MAX + options->slice <= options->under_way_max);
	*f = (struct feeder){.options = *options};
	f->seat = (struct seat){.task = &f->watch.task, .done = found};
	code = id_set_init(&f->under_way, options->under_way_max);
	if (code)
		return code;
	pthread_mutex_init(&f->mutex, NULL);
	LOCKED(&f->mutex);
	look_again(f);
	return HX_OK;
}

void feeder_release(struct feeder *f)
{
	if (!f->under_way.slots)
		return;
	pthread_mutex_destroy(&f->mutex);
	id_set_release(&f->under_way);
}

bool feeder_take(struct feeder *f, int64_t subject)
{
	LOCKED(&f->mutex);
	return slice_fits(f) && id_set_add(&f->under_way, subject);
}

bool feeder_has_room(struct feeder *f)
{
	LOCKED(&f->mutex);
	return slice_fits(f);
}

bool feeder_begin(struct feeder *f, int64_t subject, struct seat *seat)
{
	bool begun = lane_submit_own(lanes_of(f->options.lanes, subject), seat) == HX_OK;

	if (!begun)
		free(seat);
	return begun;
}

void feeder_close(struct feeder *f)
{
	if (!f->under_way.slots)
		return;
	LOCKED(&f->mutex);
	f->closed = true;
}

int64_t feeder_rest_ms(enum hx_code code)
{
	return code == HX_OK || code == HX_CLAIM_FAILED || code == HX_STALE_FENCE ? 0 : FEEDER_REST_MS;
}

void feeder_ended(struct feeder *f, int64_t subject, int64_t rest_ms)
{
	LOCKED(&f->mutex);
	if (rest_ms && f->resting_n < FEEDER_RESTING_MAX) {
		f->resting[f->resting_n].until = mono_add_ms(clock_mono(f->options.clock), rest_ms);
		f->resting[f->resting_n++].subject = subject;
	} else {
		(void)id_set_remove(&f->under_way, subject); /* it is there: F1 */
	}
	look_again(f);
}
