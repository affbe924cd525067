/* What holds between two rounds of a lane, in debug builds (base/error.h). */
#include "task/lane_parts.h"

#ifdef HX_DEBUG

/* How many there are in a list; each must be in this state. */
static size_t lane_valid_count(const struct seat_list *list, int state)
{
	size_t n = 0;

	for (const struct seat *seat = list->first; seat; seat = seat->next, n++)
		ASSERT((int)seat->state == state);
	return n;
}

static size_t count_acting(const struct lane *lane)
{
	size_t n = 0;

	for (size_t i = 0; i < LANE_BUCKETS; i++)
		for (const struct seat *seat = lane->acting[i]; seat; seat = seat->act_next, n++)
			ASSERT(seat->state == SEAT_ACTING);
	return n;
}

/* A seat is in one list, or acts, or its unit is aside, or it sleeps: together they are no more than have come in. */
void lane_assert_valid(const struct lane *lane)
{
	size_t pending = lane_valid_count(&lane->pending, SEAT_COMMITTING), seats = pending + lane->aside_n;

	ASSERT(pending == lane->pending_n); /* which others are told */
	seats += lane_valid_count(&lane->ready, SEAT_READY);
	seats += lane_valid_count(&lane->limited, SEAT_COMMITTING);
	seats += lane_valid_count(&lane->held, SEAT_COMMITTING);
	seats += count_acting(lane);
	ASSERT(seats <= lane->seats_in);
	ASSERT(lane->woken_n == 0); /* the other lanes were told */
}

#endif
