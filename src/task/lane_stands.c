/*
 * Stands: where seats wait for work of which each piece is for one. (Topics are for those who all want to know.)
 *
 *   offer ──▶ who sleeps here, the first that came ──▶ who is awake here ──▶ another lane of the node ──▶ other nodes
 *                                                                             └ each where somebody has a place
 *
 * A place is in one of two lists of its stand, of those who sleep and of those who are awake: on their way to look, or looking.
 * Who is awake keeps an offer until it would sleep, and looks again then.
 *
 * Invariants:
 *  S1  No offer is lost while somebody waits at its stand on this node. Who was given one has taken a piece of work, has looked
 *      after it came and found nothing, or passes it on as it leaves. A piece that was taken counts only against an offer
 *      that was there before the look began: what came meanwhile is another one.
 *  S2  A seat is at its stands before its first look. So a lane that finds nobody there after its commit need not tell
 *      anybody: who comes later sees what was committed.
 *  S3  While anybody sleeps at a stand, one of them looks by time for all (the lookout): for what is due later, and for what nobody
 *      told. It has the earliest moment that any of them has read. When it leaves, another one is woken to look, and has its post.
 */
#include <stdlib.h>

#include "task/lane_parts.h"

struct place_list {
	struct lane_place *first, *last;
};

struct stand {
	struct stand *next; /* in its bucket */
	int64_t name;
	struct place_list asleep, awake; /* those who came first are first */
	struct lane_place *lookout;      /* NULL: nobody sleeps here */
};

static void lane_stands_append(struct place_list *list, struct lane_place *place)
{
	place->before = list->last;
	place->next = NULL;
	*(list->last ? &list->last->next : &list->first) = place;
	list->last = place;
}

static void take_out(struct place_list *list, struct lane_place *place)
{
	*(place->before ? &place->before->next : &list->first) = place->next;
	*(place->next ? &place->next->before : &list->last) = place->before;
}

static struct stand **lane_stands_find(struct lane *lane, int64_t name)
{
	struct stand **at = &lane->stands[lane_bucket((uint64_t)name)];

	while (*at && (*at)->name != name)
		at = &(*at)->next;
	return at;
}

static bool sleeps(const struct lane_place *place)
{
	return place->seat->state == SEAT_SLEEPING;
}

/* ---- coming and going ---- */

static void lane_stands_enter(struct lane *lane, struct seat *seat, struct lane_place *place)
{
	struct stand **at = lane_stands_find(lane, place->stand);

	if (!*at)
		*at = calloc(1, sizeof **at);
	*place = (struct lane_place){.stand = place->stand, .seat = seat, .at = *at};
	if (!*at)
		return;
	(*at)->name = place->stand;
	lane_stands_append(&(*at)->awake, place);
	atomic_fetch_add(&lane->places_n[lane_bucket((uint64_t)place->stand)], 1);
}

void lane_places_enter(struct lane *lane, struct seat *seat)
{
	for (size_t i = 0; i < seat->places_n; i++)
		lane_stands_enter(lane, seat, &seat->places[i]);
}

/* The last one to come will be here for longest. It looks at once: it does not know what is due when. */
static void appoint(struct lane *lane, struct stand *stand)
{
	struct lane_place *place = stand->asleep.last;

	stand->lookout = place;
	if (place && !lane->stopping)
		lane_end_sleep(lane, place->seat);
}

static void forget_if_empty(struct lane *lane, int64_t name)
{
	struct stand **at = lane_stands_find(lane, name), *stand = *at;

	if (stand && !stand->asleep.first && !stand->awake.first) {
		*at = stand->next;
		free(stand);
	}
}

/* Returns what it was given and leaves behind. */
static uint32_t lane_stands_leave(struct lane *lane, struct seat *seat, struct lane_place *place, size_t took)
{
	struct stand *stand = place->at;

	take_out(seat->asleep ? &stand->asleep : &stand->awake, place);
	atomic_fetch_sub(&lane->places_n[lane_bucket((uint64_t)place->stand)], 1);
	if (stand->lookout == place)
		appoint(lane, stand);
	forget_if_empty(lane, place->stand);
	return place->kept + (place->given > took ? place->given - (uint32_t)took : 0);
}

static void pass_on(struct lane *lane, int64_t stand, uint32_t n)
{
	if (n)
		lane_pass_offer(lane, (struct passed_offer){.offer = {stand, n}});
}

void lane_places_leave(struct lane *lane, struct seat *seat)
{
	for (size_t i = 0; i < seat->places_n; i++) {
		struct lane_place *place = &seat->places[i];
		uint32_t left = 0;

		if (place->at)
			left = lane_stands_leave(lane, seat, place, seat->took ? seat->took(seat, i) : 0);
		pass_on(lane, place->stand, left);
	}
}

/* ---- sleeping ---- */

/* Somebody who sleeps looks for us, and by then. */
static bool is_relieved(struct lane *lane, const struct lane_place *place, struct mono_time until)
{
	const struct lane_place *by = place->at->lookout;
	struct seat *lookout = by && by != place && sleeps(by) ? by->seat : NULL;

	if (!lookout)
		return false;
	return lookout->timer.due.ns <= until.ns || timer_set(&lane->timers, &lookout->timer, until) == HX_OK;
}

bool lane_places_sleep(struct lane *lane, struct seat *seat, const struct ask *ask, struct mono_time *ret_until)
{
	bool relieved = seat->places_n > 0 && ask->latest.ns;
	uint32_t kept = 0;

	for (size_t i = 0; i < seat->places_n; i++) {
		struct lane_place *place = &seat->places[i];

		kept += place->kept;
		place->given = place->kept; /* what it was given before, others have taken: it has looked since */
		place->kept = 0;
	}
	if (kept)
		return false;
	for (size_t i = 0; i < seat->places_n; i++) {
		struct lane_place *place = &seat->places[i];

		if (!place->at) {
			relieved = false;
			continue;
		}
		if (!is_relieved(lane, place, ask->until)) {
			place->at->lookout = place;
			relieved = false;
		}
		take_out(&place->at->awake, place);
		lane_stands_append(&place->at->asleep, place);
	}
	seat->asleep = seat->places_n > 0;
	if (relieved)
		*ret_until = ask->latest;
	return true;
}

void lane_places_wake(struct seat *seat)
{
	for (size_t i = 0; i < seat->places_n && seat->asleep; i++) {
		struct lane_place *place = &seat->places[i];

		if (!place->at)
			continue;
		take_out(&place->at->asleep, place);
		lane_stands_append(&place->at->awake, place);
	}
	seat->asleep = false;
}

/* ---- offers ---- */

/* The first that came; the lookout only if it is alone, so that another one need not be appointed. */
static struct lane_place *first_asleep(const struct stand *stand)
{
	struct lane_place *place = stand->asleep.first;

	return place && place == stand->lookout && place->next ? place->next : place;
}

/* How many of them found somebody. */
static uint32_t give_here(struct lane *lane, struct stand *stand, uint32_t n)
{
	struct lane_place *last = stand->awake.last, *place;
	uint32_t left = n;

	while (left && (place = first_asleep(stand)) && sleeps(place)) {
		place->given = 1;
		left--;
		lane->stats.woken++;
		lane_end_sleep(lane, place->seat);
	}
	/* Those who were awake before: their look may have begun before this was committed. */
	for (place = last ? stand->awake.first : NULL; place && left; place = place == last ? NULL : place->next)
		if (!place->kept) {
			place->kept = 1;
			place->seat->task->woken = true;
			left--;
		}
	return n - left;
}

static struct lane *next_lane(struct lane *lane, const struct passed_offer *p)
{
	size_t bucket = lane_bucket((uint64_t)p->offer.stand);

	for (size_t i = 0; i < lane->peers_n; i++)
		if (!(p->been >> lane->peers[i]->options.number & 1) && atomic_load(&lane->peers[i]->places_n[bucket]))
			return lane->peers[i];
	return NULL;
}

/* From any thread. Who has no room for it wakes everybody it has, and that may be nobody who wants this: so it goes on. */
static void send_on(struct lane *lane, struct passed_offer *p)
{
	struct lane *next;

	p->been |= UINT64_C(1) << lane->options.number;
	while ((next = next_lane(lane, p))) {
		if (inbox_put_offer(&next->inbox, p))
			return;
		p->been |= UINT64_C(1) << next->options.number;
	}
	if (!p->heard && lane->options.offered)
		lane->options.offered(lane->options.woke_context, p->offer);
}

void lane_pass_offer(struct lane *lane, struct passed_offer p)
{
	struct stand *stand = *lane_stands_find(lane, p.offer.stand);

	if (stand)
		p.offer.n -= give_here(lane, stand, p.offer.n);
	if (p.offer.n)
		send_on(lane, &p);
}

void lane_offer(struct lane *lane, struct offer offer)
{
	struct passed_offer p = {.offer = offer, .heard = true};

	if (!inbox_put_offer(&lane->inbox, &p))
		send_on(lane, &p);
}
