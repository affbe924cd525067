/*
 * The janitor: ends claims whose time has passed, so that a crash leaves nothing stuck.
 *
 *   START ─▶ SLEEPING until start_at ─▶ SCANNING (a page of stuck claims, by id)
 *                     ┌────────────────────┘   ▲
 *                     ▼                        │ page done, budget left
 *        (LOOKING who claimed it) ─▶ REVERTING, HOLDING or handed over ─▶ … ─▶ DONE
 *
 * It works on what it saw: each write is guarded by the fence of the claim that was past its time, and by its
 * time again, so neither a new holder nor a late heartbeat is disturbed by an old snapshot. Any number of
 * janitors may run at once, on any nodes; of those that see the same claim one wins.
 *
 * A sweep stops after `budget` claims looked at, and says in `more` whether there was more to do. `now` is the
 * store's own. Claims that no rule knows are left alone and counted.
 */
#pragma once

#include "flow/slot.h"
#include "flow/subject.h"
#include "task/task.h"

#define JANITOR_PAGE 32
#define JANITOR_TOLD 8
#define JANITOR_NAME_BYTES 256 /* with its end; an entity's is shorter */

struct entity_machine;

/* Immutable while the task lives. */
struct janitor_rule {
	int64_t kind;
	const char *claim_into;
	const char *revert_to;
	/* Of entities: what was claimed, and by whom, is looked up first. Some step may want a probe or a person, and
	 * whoever reads the log its name. */
	const struct entity_machine *machine;
	/* Left to whoever started the sweep, who ends many of them side by side. */
	bool hand_over;
};

struct janitor_rules {
	size_t n;
	const struct janitor_rule *rules;
};

struct janitor_claim {
	int64_t subject;
	int64_t fence;
	const struct janitor_rule *rule;
};

struct janitor_ended {
	struct janitor_claim claim;
	char name[JANITOR_NAME_BYTES];
};

struct janitor {
	struct task task;
	const struct janitor_rules *rules;
	struct mono_time start_at;
	int64_t budget; /* claims left to look at */
	int64_t reverted;
	int64_t held;
	int64_t unruled; /* stuck in a status that no rule covers */
	bool more;
	/* For whoever started the sweep: claims whose step wants a probe, and those of rules that hand over. */
	size_t handed_n;
	struct janitor_claim handed[JANITOR_PAGE];
	/* Those that it has reverted or held, the first JANITOR_TOLD of them, in memory of whoever started the sweep and
	 * wants to tell; may be NULL. */
	struct janitor_ended *ended;
	size_t ended_n;
	/* private */
	struct stamp stamp;
	char stamp_text[WALL_TIME_TEXT_BYTES];
	char name[JANITOR_NAME_BYTES]; /* looked up: of the entity; empty: there is none */
	int64_t version;               /* the same: of the row in the user's table */
	struct slot slot;              /* the same: what its claim has of a limit */
	int64_t cursor;
	size_t page_n, page_at;
	struct janitor_claim page[JANITOR_PAGE];
};

/* start_at {0}: at once. */
void janitor_init(struct janitor *j, const struct janitor_rules *rules, int64_t budget, struct mono_time start_at);
