/*
 * A bulk: one verb for all that match a condition. The selection is frozen first, as rows; then each is done once, with its result.
 *
 *   create ─▶ SELECTING ── slice after slice (flow/bulk_select.h) ─▶ RUNNING ── items (flow/bulk_hand.h) ─▶ COMPLETED
 *                 └────────────── cancel ──────────────┴─▶ CANCELLING ── those that are open: cancelled ─▶ CANCELLED
 *
 *  B1  A slice is written by whoever has read up to after_id, with its items, in one unit: nothing is selected twice. What was made
 *      after the bulk (its id is higher) is not selected.
 *  B2  An item gets its result once: the write is guarded by "result IS NULL".
 *  B3  The verb of an item and its result are one unit, which is guarded by the version that was read; the condition was asked of what
 *      was read. So what is done was so, and is told.
 *  B4  Nothing stays behind: a bulk that is not over is due. While a node works on it, due_at is BULK_LEASE_MS ahead. That is no lock:
 *      two that work on one bulk at once are kept apart by B1 and B2.
 *
 * Retention: so long after its end it is expired, and its items go, a page at a time; then so does it, unless it has a key, which stays:
 * the same request would be carried out again.
 *
 * A cancel ends what is open; an item that is under way at that moment may still be done, and then says so.
 */
#pragma once

#include "base/arena.h"
#include "db/unit.h"
#include "flow/subject.h"
#include "model/where.h"

#define BULK_SELECTING "SELECTING"
#define BULK_RUNNING "RUNNING"
#define BULK_COMPLETED "COMPLETED"
#define BULK_CANCELLING "CANCELLING"
#define BULK_CANCELLED "CANCELLED"

#define BULK_DONE "done"
#define BULK_UNCHANGED "unchanged" /* it was so already */
#define BULK_REFUSED "refused"     /* with the code */
#define BULK_SKIPPED "skipped"     /* NO_LONGER_MATCHES */
#define BULK_ITEM_CANCELLED "cancelled"

#define BULK_LEASE_MS 5000
#define BULK_PAGE 8 /* items that a hand takes at once */
#define BULK_CANCEL_SLICE 5000
#define BULK_TOPIC (INT64_MAX - 5)

/* What a bulk may be about, and what is done to it. */
struct bulk_noun {
	const char *kind; /* as callers say it, and what ids of it begin with */
	enum where_kind of;
	const char *const *statuses;   /* NULL: those of a workflow */
	const char *const *verbs;      /* ends with NULL */
	int64_t (*subject_kind)(void); /* NULL: by its workflow, of which there is one (bulk_search()) */
};
extern const char *const bulk_kinds[]; /* ends with NULL */
/* NULL: there is none of this kind. */
const struct bulk_noun *bulk_noun(struct slice kind);

/* What is wanted. Texts outlive whoever carries it out. */
struct bulk_spec {
	int64_t subject;
	struct slice workspace, requester;
	struct slice key; /* .p NULL: none */
	struct slice verb, kind, condition, arguments;
};

struct bulk_row {
	struct bulk_spec spec;
	struct slice state;
	int64_t after_id, selected, created_at, completed_at; /* 0: not */
	int64_t done, unchanged, refused, skipped, cancelled;
	bool expired; /* its items are gone, or going */
};

/* LOST: the key has one. It is SELECTING, and this node's for a while. */
void bulk_create(struct unit *unit, const struct stamp *stamp, const struct bulk_spec *spec);
/* One line each. An empty workspace: any. With `counts` the results are counted. */
void bulk_read(struct unit *unit, struct slice workspace, int64_t subject);
void bulk_read_counted(struct unit *unit, struct slice workspace, int64_t subject);
void bulk_read_key(struct unit *unit, struct slice workspace, struct slice key);
/* False: there is none. */
bool bulk_row_take(const struct db_rows *rows, struct arena *arena, struct bulk_row *ret_row);

extern const struct due_source bulk_due_source; /* flow/due_watch.h */
/* LOST: it is not due. */
void bulk_take(struct unit *unit, int64_t subject);
/* Whoever works on it goes on. */
void bulk_renew(struct unit *unit, int64_t subject);

/* A slice: ids is JSON [1, …]. LOST: another has come further, or it is cancelled. */
struct bulk_slice {
	int64_t subject, from, to; /* after_id, before and after it */
	int64_t first;             /* number of its first item */
	int64_t n;
	struct slice ids;
	bool last;
};
void bulk_freeze(struct unit *unit, const struct bulk_slice *slice);

/* Open items of this hand: n, subject; those with a number above `after` that leave `hand` when it is divided by `hands`. */
void bulk_read_open(struct unit *unit, int64_t subject, int64_t after, int64_t hand, int64_t hands);
/* LOST: it has its result. code .p NULL: none. */
void bulk_item_ended(struct unit *unit, int64_t bulk, int64_t n, const char *result, struct slice code);
/* All hands are done: it is over, if nothing is open; else it is due again. Of one that is cancelled, a slice is closed. */
void bulk_finish(struct unit *unit, const struct stamp *stamp, int64_t subject);
void bulk_cancel(struct unit *unit, struct slice workspace, int64_t subject);

/* Those that ended so long ago, the oldest first. */
void bulk_scan_expired(struct unit *unit, int64_t age_ms, int64_t limit);
/* A page of its items goes, and after the last one it. LOST: it has not ended so long ago, or is gone. */
void bulk_expire(struct unit *unit, int64_t subject, int64_t age_ms);

/* Rows: n, subject, result, code; workflow and name of an entity. */
void bulk_list_items(struct unit *unit, struct slice workspace, int64_t subject, int64_t from, int64_t limit);
enum { BULK_ITEM_N, BULK_ITEM_SUBJECT, BULK_ITEM_RESULT, BULK_ITEM_CODE, BULK_ITEM_WORKFLOW, BULK_ITEM_NAME };
