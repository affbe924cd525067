/* See warden.h. One list, looked through every WARDEN_STEP_MS while there is something in it. */
#include "task/warden.h"

#include <stdlib.h>

#include "base/thread.h"

struct warden {
	struct clock *clock;
	struct thread thread;
	struct monitor monitor; /* over what follows, and over all that is watched */
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

static void *warden_run(void *context)
{
	struct warden *w = context;

	LOCKED(&w->monitor.mutex);
	while (!w->stopping) {
		if (w->first) {
			abort_those_over(w);
			(void)monitor_wait_until(&w->monitor,
						 time_in_ms(WARDEN_STEP_MS)); /* early or late, it looks again */
		} else {
			monitor_wait(&w->monitor);
		}
	}
	return NULL;
}

enum hx_code warden_new(struct clock *clock, struct warden **ret_warden, struct hx_error *err)
{
	struct warden *w = calloc(1, sizeof *w);
	enum hx_code code;

	if (!w)
		return error_set(err, HX_NO_MEMORY, "a warden");
	w->clock = clock;
	monitor_init(&w->monitor);
	code = thread_start(&w->thread, warden_run, w, "a warden's thread", err);
	return HAND_OVER(code, w, free, ret_warden);
}

void warden_free(struct warden *warden)
{
	if (!warden)
		return;
	ASSERT(!warden->first);
	monitor_stop(&warden->monitor, &warden->stopping, &warden->thread);
	monitor_release(&warden->monitor);
	free(warden);
}

void warden_watch(struct warden *warden, struct warded *warded, struct mono_time until,
		  void (*abort)(struct warded *warded))
{
	LOCKED(&warden->monitor.mutex);
	if (!warden->first)
		monitor_wake_one(&warden->monitor);
	*warded = (struct warded){.next = warden->first, .slot = &warden->first, .until = until, .abort = abort};
	if (warded->next)
		warded->next->slot = &warded->next;
	warden->first = warded;
}

void warden_move(struct warden *warden, struct warded *warded, struct mono_time until)
{
	LOCKED(&warden->monitor.mutex);
	warded->until = until;
}

void warden_forget(struct warden *warden, struct warded *warded)
{
	LOCKED(&warden->monitor.mutex);
	if (warded->slot) {
		*warded->slot = warded->next;
		if (warded->next)
			warded->next->slot = warded->slot;
		*warded = (struct warded){0};
	}
}
