/*
 * The bulks of this node: finds those that are due, goes on with their selection, and carries them out with BULK_HANDS hands.
 *
 *   feeder ─ id ─▶ lead (flow/bulk_select.h) ─┬ selected, or found RUNNING ─▶ hands (flow/bulk_hand.h), page after page ─▶ finish
 *                                             └ CANCELLING ──────────────────────────────────────────────────────────▶ finish
 *
 * The end of the last hand begins the finish: over, or due again a moment later. A node that dies leaves it due, too.
 */
#pragma once

#include "engine/feeder.h"

extern const struct feed bulks_feed;
