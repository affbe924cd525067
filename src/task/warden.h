/*
 * The warden: ends actions whose lease cannot be trusted any more while their lane is held up.
 *
 * A lane watches the leases of its actions itself (pulse.h), between two groups. On PostgreSQL a group may wait for a server
 * that has fallen silent, for longer than a lease lasts; by then another node has taken over what is being done here. The
 * warden has a thread of its own that waits for nobody. All it does is to abort the action in the outside world, and to keep
 * one from beginning that still waits for its turn; the lane is told, for when it has time again.
 *
 * A call that is to be heard out (task.h) is left alone once it has begun, and otherwise kept from beginning like the others.
 *
 *   watch ──▶ (move: the lease was renewed) ──▶ forget
 *               └ its time is over ─▶ abort(), once
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"

struct warden;

/* One action that is watched; part of whoever watches it. Zeroed: it is not. */
struct warded {
	struct warded *next, **slot; /* slot: NULL, it is not watched */
	struct mono_time until;
	void (*abort)(struct warded *warded); /* in the warden's thread, under its lock: must not wait, nor call it */
};

/* How late it may be. */
#define WARDEN_STEP_MS 20

enum hx_code warden_new(struct clock *clock, struct warden **ret_warden, struct hx_error *err) HX_MUST_CHECK;
/* Nothing is watched any more. Takes NULL. */
void warden_free(struct warden *warden);
void warden_watch(struct warden *warden, struct warded *warded, struct mono_time until,
		  void (*abort)(struct warded *warded));
void warden_move(struct warden *warden, struct warded *warded, struct mono_time until);
/* After it abort() is not called any more. One that is not watched is left alone. */
void warden_forget(struct warden *warden, struct warded *warded);
