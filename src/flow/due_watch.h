/*
 * Looking for what is due: jobs to be delivered, runs to be driven, rows that retention lets go. Woken the moment something
 * falls due on this node (or, by a notification, on another), by its time, and at the latest every poll_ms.
 *
 *   START ─▶ (SLEEPING: a pause) ─▶ SCANNING ─┬ some ▶ DONE, with their ids
 *                                       ▲     └ none ▶ READING when the next is due ─▶ SLEEPING ─┐
 *                                       └────────────────────────────────────────────────────────┘
 *
 * A source may be *shared*: what it finds is of workspaces, and some of them are passed over, because they have their share of what
 * is under way already. What is due can then be much more than what is found. So such a watch ends after one look, with nothing as well,
 * and a wake, which is about somebody's share, ends it before it has looked.
 */
#pragma once

#include "db/stmt.h"
#include "task/task.h"

#define DUE_WATCH_MAX 1024

struct due {
	int64_t subject;
	int64_t beside; /* whose row its work touches in the end, too: best done where that one's is. Mostly the subject itself */
	uint64_t tenant; /* of a shared source: its workspace (unit_tenant()); else 0 */
};

/* What is looked for. Outlives its watches and never changes. */
struct due_source {
	const char *name;
	int64_t topic;   /* what wakes the watch; 0: nothing but time */
	int64_t poll_ms; /* it looks at the latest so long after it found nothing */
	/* Rows: the subjects to look at now, and beside whom (or not); if it is shared always, and of which workspace. Of: how many at most,
	   what is left to others, a subject of each workspace that is passed over. */
	const struct db_stmt *found;
	bool shared;
	const struct db_stmt
		*next; /* one row: when the next is due, or NULL. Of: what is left. NULL: only poll_ms counts */
	struct slice (*left)(
		const void *context); /* JSON of what is for other nodes; NULL: nothing, and no parameter */
	/* Instead of `found`: adds one line, its row: subject. */
	void (*scan)(const struct due_source *source, struct unit *unit, int64_t limit);
	const void *context; /* the functions' own */
};

/*
 * One whose subjects have a column due_at. noun: of its statements' names. in: "t" if it has `left`, which is the parameter after
 * the limit, and the only one of `next`. found, next: what else has to be so of a row.
 */
#define DUE_SOURCE_PLAIN(source_, noun, from, ...)                                                                     \
	DUE_SOURCE(source_, noun, "subject", "i", from, "", "", "", "", __VA_ARGS__)
/* A shared one. columns: subject, and beside whom; full: the list of its last parameter. */
#define DUE_SOURCE_SHARED(source_, noun, columns, from, in_, full, found_, next_, ...)                                 \
	DUE_SOURCE(source_, noun, columns ", workspace", "iit", from, in_, "t",                                        \
		   found_ " AND workspace NOT IN (SELECT o.workspace FROM hx_" noun                                    \
			  " o WHERE o.subject IN (SELECT CAST(value AS bigint) FROM " full "))",                       \
		   next_, .shared = true, __VA_ARGS__)
#define DUE_SOURCE(source_, noun, columns, out_, from, in_, full_in, found_, next_, ...)                               \
	/* The function is volatile on PostgreSQL: bare, it would be a filter over all that will ever be due. */       \
	DB_STMT(source_##_found, noun "_scan_due", "i" in_ full_in, out_,                                              \
		"SELECT " columns " FROM " from " WHERE due_at <= (SELECT hx_now_ms())" found_                             \
		" ORDER BY due_at LIMIT ?1");                                                                          \
	DB_STMT(source_##_next, noun "_next_due", in_, "i",                                                            \
		"SELECT min(due_at) FROM " from " WHERE due_at IS NOT NULL" next_);                                    \
	const struct due_source source_ = {.found = &source_##_found, .next = &source_##_next, __VA_ARGS__}
/* For what other nodes have made due, should their notification be lost. */
#define DUE_POLL_MS 2000

struct due_watch {
	struct task task;
	const struct due_source *source;
	int64_t limit;
	size_t found_n;
	struct due found[DUE_WATCH_MAX];
	/* private */
	struct mono_time until;
	int64_t pause_ms;
	struct slice full; /* .n 0: nobody is passed over */
	bool woken;
};

/*
 * At most `limit` ids, which is at most DUE_WATCH_MAX. It ends only with some, or with the lane. It first sleeps for
 * pause_ms, or until its topic is woken: those found last time are being claimed and would only be found again.
 */
void due_watch_init(struct due_watch *w, const struct due_source *source, int64_t limit, int64_t pause_ms);
/*
 * Before it begins, of a shared source: full is a JSON array with a subject of each workspace that is passed over, and outlives it;
 * topic is the one that wakes it.
 */
void due_watch_pass_over(struct due_watch *w, struct slice full, int64_t topic);
/* It was woken before it has looked. */
bool due_watch_was_woken(const struct due_watch *w);
