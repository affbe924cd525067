/*
 * Topics: who all want to know of something. In the table from the start to the end of a seat, so that a change between reading and
 * sleeping is not missed. Where each piece of work is for one, there are stands (lane_stands.c).
 */
#include "task/lane_parts.h"

void lane_topic_enter(struct lane *lane, struct seat *seat)
{
	struct seat **slot = &lane->topics[lane_bucket((uint64_t)seat->task->topic)];

	if (!seat->task->topic)
		return;
	seat->topic_next = *slot;
	seat->topic_slot = slot;
	if (*slot)
		(*slot)->topic_slot = &seat->topic_next;
	*slot = seat;
	atomic_fetch_add(&lane->topics_n[lane_bucket((uint64_t)seat->task->topic)], 1);
}

void lane_topic_leave(struct lane *lane, struct seat *seat)
{
	if (!seat->task->topic)
		return;
	atomic_fetch_sub(&lane->topics_n[lane_bucket((uint64_t)seat->task->topic)], 1);
	*seat->topic_slot = seat->topic_next;
	if (seat->topic_next)
		seat->topic_next->topic_slot = seat->topic_slot;
}

static void wake_seat(struct lane *lane, struct seat *seat)
{
	seat->task->woken = true;
	if (seat->state == SEAT_SLEEPING) {
		lane->stats.woken++;
		lane_end_sleep(lane, seat);
	}
}

void lane_wake_topic(struct lane *lane, int64_t topic)
{
	for (struct seat *seat = lane->topics[lane_bucket((uint64_t)topic)], *next; seat; seat = next) {
		next = seat->topic_next;
		if (seat->task->topic == topic)
			wake_seat(lane, seat);
	}
}

void lane_wake_all_here(struct lane *lane)
{
	for (size_t i = 0; i < LANE_BUCKETS; i++)
		for (struct seat *seat = lane->topics[i]; seat; seat = seat->topic_next)
			wake_seat(lane, seat);
}

/* ---- for other lanes, and from outside ---- */

/* Only of what somebody waits for there: who came in later than this looks later, too. */
static void tell_peer(const struct lane *lane, struct lane *peer)
{
	int64_t topics[64];
	size_t n = 0;

	for (size_t i = 0; i < lane->woken_n; i++) {
		if (atomic_load(&peer->topics_n[lane_bucket((uint64_t)lane->woken[i])]))
			topics[n++] = lane->woken[i];
		if (n == sizeof topics / sizeof *topics || (n && i + 1 == lane->woken_n)) {
			lane_wake(peer, topics, n);
			n = 0;
		}
	}
}

void lane_tell_peers(struct lane *lane)
{
	for (size_t i = 0; i < lane->peers_n && lane->woken_n; i++)
		tell_peer(lane, lane->peers[i]);
	if (lane->options.woke && lane->woken_n)
		lane->options.woke(lane->options.woke_context, lane->woken, lane->woken_n);
	lane->woken_n = 0;
}

void lane_wake(struct lane *lane, const int64_t topics[], size_t n)
{
	inbox_put_wakes(&lane->inbox, topics, n);
}

void lane_wake_everybody(struct lane *lane)
{
	inbox_put_wake_everybody(&lane->inbox);
}
