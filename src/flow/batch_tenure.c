/* See batch_tenure.h. */
#include "flow/batch_tenure.h"

#include "flow/backoff.h"

void batch_tenure_init(struct batch_tenure *tenure, int64_t subject, const struct batch_hold *hold)
{
	*tenure = (struct batch_tenure){.subject = subject, .phase = TENURE_LEAD};
	if (hold) {
		tenure->hold = *hold;
		tenure->holding = true;
	}
}

/* When nothing is left to begin in a phase and all of it has ended, it is the lead's turn again. */
static enum batch_turn next_of_phase(struct batch_tenure *tenure, bool more, enum batch_turn turn)
{
	if (!more && !tenure->under_way) {
		tenure->phase = TENURE_LEAD;
		return batch_tenure_next(tenure);
	}
	if (!more || tenure->under_way == (unsigned)tenure->hold.machine->definition->concurrency)
		return TURN_NONE;
	tenure->under_way++;
	return turn;
}

enum batch_turn batch_tenure_next(struct batch_tenure *tenure)
{
	enum batch_turn turn;

	switch (tenure->phase) {
	case TENURE_LEAD:
		if (tenure->under_way)
			return TURN_NONE;
		tenure->under_way = 1;
		return TURN_LEAD;
	case TENURE_WORK:
		return next_of_phase(tenure, !tenure->drained, TURN_HAND);
	case TENURE_CLEAN:
		turn = next_of_phase(tenure, tenure->clean_from < tenure->clean_to, TURN_CLEAN);
		if (turn == TURN_CLEAN)
			tenure->clean_from += CLEAN_SLICE;
		return turn;
	case TENURE_OVER:
		break;
	}
	return TURN_NONE;
}

int64_t batch_tenure_slice(const struct batch_tenure *tenure)
{
	return tenure->clean_from - CLEAN_SLICE;
}

static void renew(struct batch_tenure *tenure, const struct batch_hold *hold)
{
	if (hold->since.ns > tenure->hold.since.ns)
		tenure->hold.since = hold->since;
}

void batch_tenure_led(struct batch_tenure *tenure, const struct batch_lead *lead)
{
	tenure->under_way--;
	switch (lead->next) {
	case LEAD_OVER:
		tenure->phase = TENURE_OVER;
		return;
	case LEAD_WORK:
		tenure->phase = TENURE_WORK;
		tenure->drained = false;
		break;
	case LEAD_AGAIN:
		break;
	case LEAD_CLEAN:
		tenure->phase = TENURE_CLEAN;
		tenure->clean_from = 0;
		tenure->clean_to = lead->row.next_n; /* after it nothing was ever begun */
		break;
	}
	tenure->hold = lead->hold;
	tenure->holding = true;
	tenure->seen = lead->seen;
	tenure->seen.worked |= lead->next == LEAD_WORK;
	tenure->seen.cleaned |= lead->next == LEAD_CLEAN;
}

void batch_tenure_worked(struct batch_tenure *tenure, const struct batch_hand *hand)
{
	tenure->under_way--;
	renew(tenure, &hand->hold);
	tenure->drained |= hand->came_to != HAND_GO_ON;
	tenure->seen.short_of_credit |= hand->came_to == HAND_SHORT;
	tenure->seen.hands_failed |= hand->came_to == HAND_FAILED;
}

void batch_tenure_cleaned(struct batch_tenure *tenure, const struct batch_clean *clean)
{
	tenure->under_way--;
	renew(tenure, &clean->hold);
	if (clean->failed) {
		tenure->seen.clean_failed = true; /* mutant: cleanup-failure-forgotten */
		tenure->seen.why = clean->why;
		tenure->seen.not_before_ms = backoff_not_before(tenure->seen.not_before_ms, clean->not_before_ms);
	}
}

void batch_tenure_refused(struct batch_tenure *tenure, enum batch_turn turn)
{
	tenure->under_way--;
	if (turn == TURN_LEAD)
		tenure->phase = TENURE_OVER;
	tenure->drained = true;
	tenure->clean_from = tenure->clean_to;
	tenure->seen.hands_failed |= turn == TURN_HAND;
	tenure->seen.clean_failed |= turn == TURN_CLEAN;
}

bool batch_tenure_is_over(const struct batch_tenure *tenure)
{
	return tenure->phase == TENURE_OVER && !tenure->under_way;
}
