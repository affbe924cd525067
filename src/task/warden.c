/* See warden.h. One list, looked through every WARDEN_STEP_MS while there is something in it. */
#include "task/warden.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct warden {
	struct clock *clock;
	pthread_t thread;
	pthread_mutex_t mutex; /* over what follows, and over all that is watched */
	pthread_cond_t news;
	bool stopping;
	struct warded *first;
};

static void abort_those_over(struct warden *w)
{
	struct mono_time now = clock_mono(w->clock);

	for (struct warded *each = w->first; each; each = each->next)
		if (each->until.ns <= now.ns) {
			each->until.ns = INT64_MAX; /* once */
			each->abort(each);
		}
}

static void rest(struct warden *w)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += WARDEN_STEP_MS * 1000000L;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	(void)pthread_cond_timedwait(&w->news, &w->mutex, &until); /* early or late, it looks again */
}

static void *run(void *context)
{
	struct warden *w = context;

	pthread_mutex_lock(&w->mutex);
	while (!w->stopping) {
		if (w->first) {
			abort_those_over(w);
			rest(w);
		} else {
			pthread_cond_wait(&w->news, &w->mutex);
		}
	}
	pthread_mutex_unlock(&w->mutex);
	return NULL;
}

enum hx_code warden_new(struct clock *clock, struct warden **ret_warden, struct hx_error *err)
{
	struct warden *w = calloc(1, sizeof *w);
	pthread_condattr_t attr;

	if (!w)
		return error_set(err, HX_NO_MEMORY, "a warden");
	w->clock = clock;
	pthread_mutex_init(&w->mutex, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->news, &attr);
	pthread_condattr_destroy(&attr);
	if (pthread_create(&w->thread, NULL, run, w)) {
		free(w);
		return error_set(err, HX_INTERNAL, "a warden's thread cannot be started");
	}
	*ret_warden = w;
	return HX_OK;
}

void warden_free(struct warden *warden)
{
	if (!warden)
		return;
	ASSERT(!warden->first);
	pthread_mutex_lock(&warden->mutex);
	warden->stopping = true;
	pthread_cond_signal(&warden->news);
	pthread_mutex_unlock(&warden->mutex);
	pthread_join(warden->thread, NULL);
	pthread_cond_destroy(&warden->news);
	pthread_mutex_destroy(&warden->mutex);
	free(warden);
}

void warden_watch(struct warden *warden, struct warded *warded, struct mono_time until,
		  void (*abort)(struct warded *warded))
{
	pthread_mutex_lock(&warden->mutex);
	if (!warden->first)
		pthread_cond_signal(&warden->news);
	*warded = (struct warded){.next = warden->first, .slot = &warden->first, .until = until, .abort = abort};
	if (warded->next)
		warded->next->slot = &warded->next;
	warden->first = warded;
	pthread_mutex_unlock(&warden->mutex);
}

void warden_move(struct warden *warden, struct warded *warded, struct mono_time until)
{
	pthread_mutex_lock(&warden->mutex);
	warded->until = until;
	pthread_mutex_unlock(&warden->mutex);
}

void warden_forget(struct warden *warden, struct warded *warded)
{
	pthread_mutex_lock(&warden->mutex);
	if (warded->slot) {
		*warded->slot = warded->next;
		if (warded->next)
			warded->next->slot = warded->slot;
		*warded = (struct warded){0};
	}
	pthread_mutex_unlock(&warden->mutex);
}
