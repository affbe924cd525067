/*
 * The bulks of this node: finds those that are due, goes on with their selection, and carries them out with BULK_HANDS hands.
 *
 *   feeder ─ id ─▶ lead (flow/bulk_select.h) ─┬ selected, or found RUNNING ─▶ hands (flow/bulk_hand.h), page after page ─▶ finish
 *                                             └ CANCELLING ──────────────────────────────────────────────────────────▶ finish
 *
 * The end of the last hand begins the finish: over, or due again a moment later. A node that dies leaves it due, too.
 */
#pragma once

#include "base/error.h"
#include "engine/parts.h"

struct bulks;

enum hx_code bulks_start(const struct engine_parts *parts, struct bulks **ret_bulks,
			 struct hx_error *err) HX_MUST_CHECK;
/* From now on none is begun. Takes NULL. */
void bulks_close(struct bulks *bulks);
/* After the lanes have stopped. Takes NULL. */
void bulks_free(struct bulks *bulks);
