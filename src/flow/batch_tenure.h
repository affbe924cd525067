/*
 * A tenure: the time for which a node holds a batch, under one fence, and whose turn it is in it.
 *
 *   LEAD ─┬ LEAD_WORK ─▶ WORK: up to `concurrency` hands; one that comes back with "go on" makes room for the next
 *     ▲   │                └── none goes on any more, and all have ended ─▶ LEAD
 *     │   ├ LEAD_CLEAN ▶ CLEAN: up to `concurrency` slices at a time ─ all done ─▶ LEAD
 *     └───┤
 *         ├ LEAD_AGAIN ▶ LEAD
 *         └ LEAD_OVER ─▶ OVER
 *
 * Flat and pure: the engine (engine/batches.c) runs turns beside each other, the simulator one after the other.
 */
#pragma once

#include "flow/batch_clean.h"
#include "flow/batch_hand.h"
#include "flow/batch_lead.h"

enum batch_turn { TURN_NONE, TURN_LEAD, TURN_HAND, TURN_CLEAN };

struct batch_tenure {
	int64_t subject;
	struct batch_hold hold; /* from the first LEAD_WORK or LEAD_CLEAN on, or as somebody has seized it */
	bool holding;
	struct batch_seen seen;
	enum { TENURE_LEAD, TENURE_WORK, TENURE_CLEAN, TENURE_OVER } phase;
	unsigned under_way; /* turns that were begun and have not ended */
	bool drained;       /* WORK: no other hand is begun */
	int64_t clean_from, clean_to;
};

/* hold: it was seized already (by a cancel); NULL: the first lead does. */
void batch_tenure_init(struct batch_tenure *tenure, int64_t subject, const struct batch_hold *hold);
/* The turn to begin now, which is under way from then on; TURN_NONE: wait for one to end, or it is over. */
enum batch_turn batch_tenure_next(struct batch_tenure *tenure);
/* For a TURN_CLEAN that was just given out: where its slice begins. */
int64_t batch_tenure_slice(const struct batch_tenure *tenure);
void batch_tenure_led(struct batch_tenure *tenure, const struct batch_lead *lead);
void batch_tenure_worked(struct batch_tenure *tenure, const struct batch_hand *hand);
void batch_tenure_cleaned(struct batch_tenure *tenure, const struct batch_clean *clean);
/* The turn could not be begun: as one that has failed. A pass of the cleanup is over only when every slice says that it is. */
void batch_tenure_refused(struct batch_tenure *tenure, enum batch_turn turn);
bool batch_tenure_is_over(const struct batch_tenure *tenure);
