/*
 * The selection of a bulk: whoever asks for it begins, and whoever finds it due goes on where it was left.
 *
 *   START ─┬ a new one ─▶ CREATING ─┬ won ─────────────────────▶ (PROBING ─▶) WALKING ─▶ FREEZING ─▶ WALKING … ─▶ DONE
 *          │                        └ lost ─▶ FINDING: the one with this key, `row` tells
 *          ├ found due ─▶ TAKING, and its row ─┬ SELECTING ──────▶ WALKING, after after_id
 *          │                                   └ RUNNING, CANCELLING: DONE, `row` tells
 *          └ dry ─▶ WALKING, and nothing is written: only `selected` counts
 */
#pragma once

#include "flow/bulk.h"
#include "flow/search.h"
#include "task/task.h"

struct bulk_select {
	struct task task;
	struct bulk_spec
		spec; /* of a new one; .subject is given by its creation. verb.p NULL: .subject was found due */
	bool dry;
	struct search search; /* of a new one: what is wanted, with where and known */
	struct arena *arena;
	/* What has come of it. */
	struct bulk_row row;
	bool existed;                     /* its key had one */
	const struct where_test *unknown; /* with HX_BAD_QUERY */
	/* private */
	struct bulk_slice slice;
	bool is_last;
	struct stamp stamp;
};

/* With spec, dry, search and arena set. */
void bulk_select_init(struct bulk_select *s);
/* Where it looks, by its condition. Of entities: .workflow is empty where the condition does not say which one it is. */
struct search bulk_search(const struct bulk_spec *spec, const struct where *where);
/* The condition of a bulk, with the words that its kind has; NULL: it cannot be read. Into the arena. */
const struct where *bulk_where(const struct bulk_spec *spec, struct arena *arena);
