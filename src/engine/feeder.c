/* See feeder.h. */
#include "engine/feeder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/thread.h"

#define PAUSE_MIN_MS 5
#define PAUSE_MAX_MS 250
#define TELL_MS 10000
#define NOBODY_IN_PARTICULAR 1
#define FULL_MAX 32
#define PASS_SHARE 9 /* a look of 1 ms, then at least 9 ms without one */

/* Under the mutex. */
static void end_rests(struct feeder *f)
{
	struct mono_time now = clock_mono(f->parts->clock);
	size_t over = 0;

	while (over < f->resting_n && f->resting[over].until.ns <= now.ns)
		(void)id_set_remove(&f->under_way, f->resting[over++].subject); /* it is there: F1 */
	f->resting_n -= over;
	memmove(f->resting, f->resting + over, f->resting_n * sizeof *f->resting);
}

/* Under the mutex. Those whose rest is over take no room, whether or not the watch has found anything since. */
static bool slice_fits(struct feeder *f)
{
	end_rests(f);
	return !f->closed && f->under_way.n + f->feed.slice <= f->under_way.max &&
	       (!f->source.shared || f->places.taken + f->feed.slice <= f->places.max);
}

/* Under the mutex. Something that has a place of this workspace, and an id; 0: nothing has. */
static int64_t at_work_for(const struct feeder *f, uint64_t tenant)
{
	for (size_t i = 0; i <= f->under_way.mask; i++)
		if (f->under_way.slots[i].id > 0 && f->under_way.slots[i].along == tenant)
			return f->under_way.slots[i].id;
	return 0;
}

/* Under the mutex, while the watch does not run. */
static struct slice whom_to_pass_over(struct feeder *f)
{
	uint64_t full[FULL_MAX];
	size_t full_n = f->source.shared ? places_full(&f->places, full, FULL_MAX) : 0, n = 0;

	for (size_t i = 0; i < full_n; i++)
		if (full[i] != NOBODY_IN_PARTICULAR)
			n += (size_t)snprintf(f->full + n, sizeof f->full - n, "%c%" PRId64, n ? ',' : '[',
					      at_work_for(f, full[i]));
	if (!n)
		return (struct slice){0};
	f->full[n++] = ']';
	return (struct slice){f->full, n};
}

static int64_t topic_of(const struct feeder *f)
{
	return (int64_t)(uintptr_t)f;
}

/* Under the mutex. Until the next look that may pass somebody over. */
static int64_t pass_pause_ms(const struct feeder *f)
{
	int64_t ns = f->pass_next.ns - clock_mono(f->parts->clock).ns;

	return ns > 0 ? ns / 1000000 + 1 : PAUSE_MIN_MS;
}

/* Under the mutex, after a look that found n new ones: when the next one is. */
static void note_look(struct feeder *f, size_t n)
{
	struct mono_time now = clock_mono(f->parts->clock);
	int64_t took_ms = (now.ns - f->watch.until.ns) / 1000000;

	if (n || f->watch.full.n || 2 * f->pause_ms < PAUSE_MIN_MS)
		f->pause_ms = PAUSE_MIN_MS;
	else
		f->pause_ms = 2 * f->pause_ms < PAUSE_MAX_MS ? 2 * f->pause_ms : PAUSE_MAX_MS;
	if (f->watch.full.n && !due_watch_was_woken(&f->watch))
		f->pass_next = mono_add_ms(now, took_ms < FEEDER_PASS_MS / PASS_SHARE ? FEEDER_PASS_MS
										      : PASS_SHARE * took_ms);
}

/* Under the mutex. Starts the watch unless it runs, or a slice might not fit. */
static void look_again(struct feeder *f)
{
	struct slice full;
	size_t limit;

	if (f->watching || !slice_fits(f))
		return;
	full = whom_to_pass_over(f);
	/* Whatever is under way may be still due, because it rests, or has yet to be claimed: it must not hide the rest. */
	limit = f->feed.slice + f->under_way.n;
	due_watch_init(&f->watch, &f->source, limit < DUE_WATCH_MAX ? (int64_t)limit : DUE_WATCH_MAX,
		       full.n ? pass_pause_ms(f) : f->pause_ms);
	if (full.n)
		due_watch_pass_over(&f->watch, full, topic_of(f));
	f->given_back = 0;
	/* Refused only when the lane ends. */
	f->watching = lane_submit_own(f->parts->lanes->lanes[0], &f->seat) == HX_OK;
}

/* Under the mutex. False: it is under way, or its workspace may take no place. */
static bool take_place(struct feeder *f, int64_t subject, uint64_t tenant)
{
	if (f->source.shared && !places_may_take(&f->places, tenant))
		return false;
	if (!id_set_add(&f->under_way, subject))
		return false;
	if (f->source.shared) {
		(void)places_take(&f->places, tenant); /* it may */
		*id_set_along(&f->under_way, subject) = tenant;
	}
	return true;
}

/* Under the mutex. It is not at work any more, though it may rest. */
static void give_place_back(struct feeder *f, int64_t subject)
{
	uint64_t *tenant = id_set_along(&f->under_way, subject);

	if (!tenant || !*tenant)
		return;
	places_give_back(&f->places, *tenant);
	*tenant = 0;
	/* Half a slice is worth a look for everybody. */
	if (++f->given_back % ((f->feed.slice + 1) / 2) == 0 && f->watching && f->watch.full.n)
		lane_wake(f->parts->lanes->lanes[0], (const int64_t[]){topic_of(f)}, 1);
}

/* What is not under way here goes to the front of the watch's list; returns how much that is. */
static size_t pick_new(struct feeder *f)
{
	struct due_watch *w = &f->watch;
	size_t n = 0;

	end_rests(f);
	for (size_t i = 0; i < w->found_n && n < f->feed.slice; i++)
		if (take_place(f, w->found[i].subject, w->found[i].tenant))
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
	note_look(f, n);
	/* The watch could not even sleep: it looks at once. */
	f->pause_ms = code ? 0 : f->pause_ms;
	pthread_mutex_unlock(&f->mutex);
	/* `watching` is still set: whatever ends meanwhile leaves the list alone. */
	for (size_t i = 0; i < n; i++)
		if (!f->feed.begin(f->context, f->watch.found[i]))
			feeder_ended(f, f->watch.found[i].subject, /* rest_ms= */ 0);
	pthread_mutex_lock(&f->mutex);
	f->watching = false;
	look_again(f);
	pthread_mutex_unlock(&f->mutex);
}

/* All of it, but it does not look yet. */
static enum hx_code feeder_init(struct feeder *f, const struct feed *feed, const struct engine_parts *parts,
				void *context, struct hx_error *err)
{
	bool shared = feed->source->shared;

	ASSERT(feed->slice < DUE_WATCH_MAX && feed->slice <= feed->under_way_max &&
	       (shared || FEEDER_RESTING_MAX + feed->slice <= feed->under_way_max));
	*f = (struct feeder){.feed = *feed, .source = *feed->source, .parts = parts, .context = context};
	f->source.left = feed->left;
	f->source.context = context;
	f->seat = (struct seat){.task = &f->watch.task, .done = found};
	if (id_set_init(&f->under_way, feed->under_way_max + (shared ? FEEDER_RESTING_MAX : 0)) ||
	    (shared && places_init(&f->places, feed->under_way_max))) {
		id_set_release(&f->under_way);
		return error_set(err, HX_NO_MEMORY, "the %s", feed->source->name);
	}
	pthread_mutex_init(&f->mutex, NULL);
	return HX_OK;
}

static void first_look(struct feeder *f)
{
	LOCKED(&f->mutex);
	look_again(f);
}

enum hx_code feeder_start(struct feeder *f, const struct feed *feed, const struct engine_parts *parts, void *context,
			  struct hx_error *err)
{
	enum hx_code code = feeder_init(f, feed, parts, context, err);

	if (!code)
		first_look(f);
	return code;
}

void feeder_release(struct feeder *f)
{
	if (!f->under_way.slots)
		return;
	pthread_mutex_destroy(&f->mutex);
	id_set_release(&f->under_way);
	places_release(&f->places);
}

struct feeder *feeder_new(const struct feed *feed, struct engine_parts *parts, struct hx_error *err)
{
	struct feeder *part = calloc(1, feed->size);

	ASSERT(feed->size >= sizeof *part);
	if (!part) {
		(void)error_set(err, HX_NO_MEMORY, "the %s", feed->source->name);
	} else if (feeder_init(part, feed, parts, part, err)) {
		free(part);
		part = NULL;
	} else {
		if (feed->prepare)
			feed->prepare(part, parts);
		first_look(part);
	}
	return part;
}

void feeder_free(struct feeder *part)
{
	if (!part)
		return;
	if (part->feed.release)
		part->feed.release(part);
	feeder_release(part);
	free(part);
}

bool feeder_take(struct feeder *f, int64_t subject, uint64_t tenant)
{
	LOCKED(&f->mutex);
	return slice_fits(f) && take_place(f, subject, tenant);
}

bool feeder_has_room(struct feeder *f, uint64_t tenant)
{
	LOCKED(&f->mutex);
	return slice_fits(f) && (!f->source.shared || places_may_take(&f->places, tenant));
}

bool feeder_name(struct feeder *f, int64_t name, int64_t subject)
{
	LOCKED(&f->mutex);
	uint64_t tenant;

	if (id_set_has(&f->under_way, subject))
		return false;
	tenant = *id_set_along(&f->under_way, name); /* it is there: F1 */
	(void)id_set_remove(&f->under_way, name);
	(void)id_set_add(&f->under_way, subject); /* in the room of the name */
	*id_set_along(&f->under_way, subject) = tenant;
	return true;
}

void feeder_offer(struct feeder *f, int64_t subject)
{
	if (feeder_take(f, subject, NOBODY_IN_PARTICULAR) &&
	    !f->feed.begin(f->context, (struct due){.subject = subject, .beside = subject}))
		feeder_ended(f, subject, /* rest_ms= */ 0);
}

void feeder_close(struct feeder *f)
{
	if (!f)
		return;
	LOCKED(&f->mutex);
	f->closed = true;
}

bool feeder_is_closed(struct feeder *f)
{
	return atomic_load(&f->closed);
}

int64_t feeder_rest_ms(enum hx_code code)
{
	return code == HX_OK || code == HX_CLAIM_FAILED || code == HX_STALE_FENCE ? 0 : FEEDER_REST_MS;
}

bool feeder_may_tell(struct feeder *f)
{
	int64_t now_ns = clock_mono(f->parts->clock).ns, told_ns = atomic_load(&f->told_ns);

	return (!told_ns || now_ns - told_ns >= TELL_MS * INT64_C(1000000)) &&
	       atomic_compare_exchange_strong(&f->told_ns, &told_ns, now_ns);
}

void feeder_ended(struct feeder *f, int64_t subject, int64_t rest_ms)
{
	LOCKED(&f->mutex);
	give_place_back(f, subject);
	if (rest_ms && f->resting_n < FEEDER_RESTING_MAX) {
		f->resting[f->resting_n].until = mono_add_ms(clock_mono(f->parts->clock), rest_ms);
		f->resting[f->resting_n++].subject = subject;
	} else {
		(void)id_set_remove(&f->under_way, subject); /* it is there: F1 */
	}
	look_again(f);
}

void *fed_new(struct feeder *feeder, int64_t subject, size_t size, size_t arena_bytes_max)
{
	struct fed *fed = calloc(1, size);

	if (!fed)
		return NULL;
	fed->feeder = feeder;
	fed->subject = subject;
	fed->beside = subject;
	arena_init(&fed->arena, arena_bytes_max);
	return fed;
}

void fed_free(struct fed *fed)
{
	if (!fed)
		return;
	arena_release(&fed->arena);
	free(fed);
}

bool fed_begin(struct fed *fed, struct task *task, void (*done)(struct seat *, enum hx_code))
{
	fed->seat.task = task;
	fed->seat.done = done;
	if (lane_submit_own(lanes_of(fed->feeder->parts->lanes, fed->beside), &fed->seat) == HX_OK)
		return true;
	fed_free(fed);
	return false;
}

void fed_end(struct fed *fed, int64_t rest_ms)
{
	struct feeder *feeder = fed->feeder;
	int64_t subject = fed->subject;

	fed_free(fed);
	feeder_ended(feeder, subject, rest_ms);
}
