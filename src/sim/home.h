/*
 * Where worlds of a user's scenario live: a store that was made once, and what is remembered of it (reads.h). To make one takes as long as
 * to walk through a thousand edges, and a trial walks again and again: with one mishap more, with a limit on the length, with a change
 * that might help. All of these begin at the same empty store, so what one has met there is true for the next.
 *
 *   IDLE ──take──▶ LENT ──give: all is rolled back──▶ IDLE ──release──▶ gone        several, where a world is told beside another
 *
 * The numbers of contents (store.h) begin anew with each world and follow from what is done, so they mean the same in all of them, as long as
 * a statement stays where it is: whoever lets definitions go releases the homes, too. Of one thread each.
 */
#pragma once

#include "sim/sim.h"

/* Fills sim->db, sim->reads and sim->home. sim->clock is that of the store from now on. */
enum hx_code sim_home_take(struct sim *sim, struct hx_error *err) HX_MUST_CHECK;
void sim_home_give(struct sim *sim);
/* Those that are idle. */
void sim_homes_release(void);
