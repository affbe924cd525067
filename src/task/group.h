/*
 * A group: the units of several tasks, committed in one transaction.
 *
 *   BUILT ─── execute ────────▶ EXECUTED ─── commit ───────▶ DURABLE    every verdict counts
 *     │                           │   │                ├──▶ IN_DOUBT   every unit is UNKNOWN
 *     └──────── group_run ────────┴───┼────────────────┴──▶ FAILED     nothing happened, no verdict counts
 *                                     └── commit, later ─▶ WRITTEN ─── group_land ─▶ DURABLE
 *
 * A WRITTEN group is committed, and the disk is still at it (db->later). The next group sees what it has done, and is answered after
 * it: for both of them, and for all others, it is as if they had been one group.
 *
 * Invariants:
 *  B1  An answer leaves only from DURABLE, FAILED or IN_DOUBT, never before. A wake likewise.
 *  B2  Of a FAILED group no verdict is reported, not even LOST: what it lost to may be rolled back too.
 *  B3  On a store with one_unit_per_subject no two units of a group touch the same subject, unless all that do are serial
 *      (db/unit.h): the store runs these one after the other, or as if.
 *  B4  Units with a limit (db/unit.h) go with others of their kind at most, and then only within a limit for all of them.
 *
 * The lane and the simulator both go through these functions; only who calls them, and when, differs.
 */
#pragma once

#include "base/arena.h"
#include "base/histogram.h"
#include "db/driver.h"

#define GROUP_UNITS_MAX 512
#define GROUP_SERIAL_MAX 32   /* each is some trips to the store, for which all others of the group wait */
#define GROUP_TOGETHER_MAX 64 /* so is each of these where they cannot be: an account cannot pay for all */

enum group_phase { GROUP_BUILT, GROUP_EXECUTED, GROUP_WRITTEN, GROUP_DURABLE, GROUP_FAILED, GROUP_IN_DOUBT };

struct group {
	enum group_phase phase;
	size_t n;
	size_t first; /* index of units[0] in the group that this one was cut out of */
	struct unit *const *units;
	struct unit_result *results;
	bool answered;
	bool waked;
	bool later; /* set by whoever lands it: group_run may leave it WRITTEN, where the store can */
	struct mono_time began;
	/* Set by whoever has callers that wait; ns 0: as long as the driver does. */
	struct mono_time begin_by; /* another program has SQLite's write lock until then: it was not begun */
	struct mono_time by;       /* what is not executed by then is undone, and not tried again */
};

/* Where answers and wakes go. Called by group_settle, in the order of the units. */
struct group_sink {
	void (*answer)(struct group_sink *sink, size_t i, const struct unit_result *result);
	void (*wake)(struct group_sink *sink, int64_t topic);
	/*
	 * Takes a unit over that waits for somebody's lock, so that the others of its group need not: it is answered by
	 * whoever takes it. False: it cannot. NULL: nobody does, and the group itself waits, and tries some times.
	 */
	bool (*elsewhere)(struct group_sink *sink, size_t i);
	/* Like wake. NULL: nobody waits at stands. */
	void (*offer)(struct group_sink *sink, struct offer offer);
};

#define GROUP_SIZES 10 /* up to 1, 2, 4 … GROUP_UNITS_MAX units */

/* What happened while running, for metrics. */
struct group_stats {
	uint64_t groups, units;
	uint64_t sizes[GROUP_SIZES]; /* of all of `groups`; each without those of the ones before it */
	struct histogram durable;    /* those that are, from the beginning to the answer of the commit */
	uint64_t won, lost;
	uint64_t failed;      /* or unknown: see the results for why */
	uint64_t transitions; /* won, with a guard */
	uint64_t changes;     /* won by those that write: see unit->op */
	uint64_t fenced;      /* lost by a stale holder */
	uint64_t retried;     /* deadlocks, lock timeouts, lost connections: the same group was run again */
	uint64_t bisected;    /* cut in two because some unit's data was refused, or its rows did not fit */
	uint64_t in_doubt;    /* commits whose answer was lost, however they were resolved */
	uint64_t aside;       /* units that went elsewhere because of a lock; counted by whoever takes them over */
	uint64_t timed_out;   /* units that were ended by their own limit */
};

/* How those that were chosen have a subject. */
enum taken_how {
	TAKEN_ALONE,  /* or one that was not chosen wants it: nobody overtakes */
	TAKEN_SERIAL, /* all of them are serial */
	TAKEN_SHARED, /* all of them are plain, and share it (unit_share) */
};

/*
 * Subjects of the units so far, in an open table: 4 slots for each that can be named. Zeroed at first, and never cleared: what is of
 * an earlier round is not there. It is large: whoever picks has one, and not every thread.
 */
enum { GROUP_SLOTS = 4 * GROUP_UNITS_MAX * UNIT_SUBJECTS_MAX };
struct group_table {
	uint32_t round;
	struct taken {
		int64_t subject;
		uint32_t round;
		enum taken_how how;
	} taken[GROUP_SLOTS];
};

/*
 * Chooses which of the pending units go into the next group, at most max, keeping their order: the indices go
 * into picked[]. With a table a unit waits when an earlier one, chosen or waiting, touches a
 * subject of its own; but serial units do not wait for serial ones that were chosen, up to GROUP_SERIAL_MAX of them that have to be
 * run line by line. Of those that can be done together there are at most GROUP_TOGETHER_MAX, whatever they touch. Without one (NULL: the store runs them one after the
 * other) none waits.
 */
size_t group_pick(struct group_table *table, struct unit *const pending[], size_t n, size_t max, size_t picked[]);

void group_init(struct group *group, struct unit *const units[], struct unit_result results[], size_t n);
/* All that a unit wakes and offers. */
void group_wake(const struct unit *unit, struct group_sink *sink);
/* Hands out the answers and the wakes as far as the phase allows. Called after every change of phase. */
void group_settle(struct group *group, struct group_sink *sink);
/* Ends a group as FAILED or IN_DOUBT: whatever its units' verdicts were, they do not count. */
void group_overrule(struct group *group, enum group_phase phase, const struct hx_error *error);
/*
 * Runs a group to its end: again after a deadlock or a lost connection, in halves after a data error (also one that only the
 * commit has found: a deferred constraint) or when its rows do not fit, waiting at most resolve_ms for the truth about a
 * commit whose answer was lost. Nobody hears of another unit's error. The arena is the group's own: halves begin with an
 * empty one. A unit that is alone has its own limit, if any; units with a limit do not go with others (B4). All of it has one
 * deadline, `by`, however often it is tried.
 *
 * False, with a begin_by alone: it was not begun, nobody is answered, and all of it may be run later.
 *
 * With `later` all of it that went well at once is WRITTEN: its units and its arena stay as they are until group_land.
 */
bool group_run(struct group *group, struct db *db, struct arena *arena, int64_t resolve_ms, struct group_sink *sink,
	       struct group_stats *stats);
/* A WRITTEN group is DURABLE: the driver says so of db->committed, as it was when the group was run. */
void group_land(struct group *group, struct db *db, struct group_sink *sink, struct group_stats *stats);
/*
 * For units with a limit, together or alone: once, within limit_ms in all. False: it failed in whatever way, nothing happened,
 * and nobody was answered: each of them is to be tried by itself, and what was alone already, with more time.
 */
bool group_try(struct group *group, int64_t limit_ms, struct db *db, struct arena *arena, int64_t resolve_ms,
	       struct group_sink *sink, struct group_stats *stats) HX_MUST_CHECK;
void group_stats_add(struct group_stats *sum, const struct group_stats *stats);
