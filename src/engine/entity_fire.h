/*
 * Firing a step of an entity, for whoever asks for it over HTTP or from an embedding program: through the entry lock, through
 * the lane, back.
 *
 *   start ─▶ (take the entry lock) ─▶ flow/entity_step.h, in the entity's lane ─▶ (release it) ─▶ done
 *                  └ ENTRY_LOCKED ───────────────────────────────────────────────────▲
 *
 * The lock is given back before the caller hears, so that its next call is not refused because of its last. Without its store
 * the outer door stands open; the inner ones decide. What an operator has to know of is counted and logged here.
 */
#pragma once

#include "engine/engine.h"
#include "flow/entity_step.h"

/* Zeroed before. The caller owns it, and leaves it alone from the start until done. */
struct entity_fire {
	/* Set before the start; texts live until done. */
	struct step_request rq;
	/* In a lane's thread, the lock's or the caller's own; may release and free it. */
	void (*done)(struct entity_fire *fire, enum hx_code code);
	/* What has become of it; its texts live until the release. */
	struct entity_step step;

	/* private */
	struct engine *engine;
	struct seat seat;
	struct entry_ticket ticket;
	struct arena arena;
	enum hx_code code;
};

/* The lease of rq is set here. */
void entity_fire_start(struct entity_fire *fire, struct engine *engine);
void entity_fire_release(struct entity_fire *fire);
