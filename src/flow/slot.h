/*
 * Slots of a limit (model/limits.h): how many are at work at once, by a key.
 *
 *                    slot_take: fewer than `max` hold one      slot_release: it rests, or has ended
 *   (no row) ───────▶ held = 1 ───────────────────────────────▶ (no row), and the first in line are due
 *        │               ▲
 *        │ it is full    │ slot_take, woken
 *        └─▶ slot_wait ─ held = 0, in line: due when a slot is free, at the latest after SLOT_LOOK_MS, the first after SLOT_LOOK_FIRST_MS
 *
 * A slot is a row of its holder, written by the unit that claims and gone with the unit that lets go. So it is neither lost nor counted
 * twice, whoever dies: of a node that is lost the run stays claimed, keeps its slot, and whoever takes it over past its time goes on
 * with it. Who waits (for a time, an event, a child, a person) is not claimed and has none, so no tree can block itself. A step that is a
 * worker's job keeps its slot while the job is out.
 *
 * Each key has a line of its own, in the order of the runs' ages, so a customer with thousands of runs that wait keeps nobody else
 * waiting: those that wait are not due. Whoever lets go wakes as many as there are slots free, SLOT_WAKES_MAX at a time. Who was woken comes before those that
 * were not, for SLOT_HEAD_START_MS: one that nobody carries out holds the others up no longer than that.
 *
 * All rows of one name change under one lock, which is a line of the unit (an advisory lock of PostgreSQL; SQLite has one writer). The
 * units are serial, and a group runs them in the order of their names (db/unit.h), so that groups of two nodes do not wait for each other.
 * Runs that are woken while somebody writes them are passed over: mostly they are moved by whoever does. For the rest of them the first in
 * line looks by itself, soon: the next after those that were woken is told so with them.
 *
 * A rate counts beginnings, not who is at work (struct rate): a tick is a row of what was begun, a run or an attempt of an action,
 * written in the unit that claims it, and counted for `per` from then on by the store's clock. Who finds too many of them waits for its
 * time, in a line of its own (held = 2): the first in it is due when the oldest tick no longer counts. Nobody has to be woken. Ticks that
 * do not count any more are swept (rate_scan_expired), so that keys which nobody uses again leave nothing.
 *
 * A limit is of a workflow, of an action (slot.action) or of a queue. Of an action it is held by who calls it (call_limit.h), from the unit
 * that begins the attempt to the unit that records its outcome; while a probe asks what became of it, it is held on: by the run whose step
 * calls it, by the job of an after-effect, by the entity whose step has a claim. The first two stand in one line; whoever fires a step of an
 * entity waits for the answer, and stands in none. Of a queue it is held by a job (job_limit.c), from its claim to its end. When who stands
 * in line is due says hx_run.due_at or hx_job.due_at: that is all the difference (slot.of). In line the lower rank comes first, then the
 * older one; runs and after-effects have none, jobs of a queue one by their priority. A step of an entity ranks after all who stand there and
 * were woken, as its callers come again at once.
 *
 * Invariants (the simulator checks each of them on every edge):
 *  L1  Never more than `max` rows of one name are held.
 *  L2  A run that carries out a step in the outside world has its slot.
 *  L3  A run that neither is claimed nor has a job out holds none; nor does a job that is not claimed.
 *  L5  In no time of `per` more than `max` runs of one name are begun, and each is counted once.
 *  L4  While one waits in line and fewer than `max` are held, one in line is due.
 *  L6  A run has at most one row of an action: it holds that slot, or waits for it, or for its time. Nobody stands in two lines.
 */
#pragma once

#include "db/unit.h"
#include "model/limits.h"

#define SLOT_LOOK_MS 60000
#define SLOT_LOOK_FIRST_MS 5000
#define SLOT_HEAD_START_MS 30000
#define SLOT_WAKES_MAX 100 /* by whoever lets go of one */
#define SLOT_KEY_SHOWN_BYTES 200
#define RATE_PLACES_MAX 1000 /* who stands further back in line is told its time by the one before it */

#define SLOT_WAITERS_MAX 8 /* that stand in line by one unit */

/* Who stands in its line: runs, jobs, or, where it is an action's, both. */
enum { SLOT_OF_RUN, SLOT_OF_JOB, SLOT_OF_CALL };

struct slot {
	int64_t name;        /* below 0; 0: there is no limit */
	int64_t max;         /* of the definition in force; 0: it has no limit any more */
	struct slice key;    /* JSON */
	struct slice action; /* whose limit it is; .p NULL: the workflow's, or the queue's */
	int64_t of, rank;
};

/* What is counted: a limit of this kind of this workflow, in this workspace, under this key. */
int64_t slot_name(const char *kind, struct slice workspace, struct slice workflow, struct slice key);

/* One that would stand in line, as it was read: who was moved since does not. */
struct slot_waiter {
	int64_t subject, version, rank;
};

/* Of a statement about rows of hx_subject: what is counted under a limit is left to its lease, as its call may be under way. */
#define SLOT_NONE_HELD " AND NOT EXISTS (SELECT 1 FROM hx_slot l WHERE l.holder = hx_subject.id AND l.held = 1)"

/* Before anything that is written about runs other than the holder: the lock of the name. */
void slot_lock(struct unit *unit, const struct slot *slot);
/* After the lock. LOST: it is full. */
void slot_take(struct unit *unit, const struct slot *slot, int64_t holder, int64_t at_ms);
/* The name of the slot or of the rate that a unit has lost to; 0: to none. `unit` is as it was asked for. */
int64_t slot_full(const struct unit *unit, const struct unit_result *result);
/* After the lock: the holder has none any more, nor waits for one. */
void slot_release(struct unit *unit, const struct slot *slot, int64_t holder);
/* What the holder of a call has, for whoever ends its claim: while that lasts, it has no other. name 0: none. */
void slot_read_held(struct unit *unit, int64_t holder);
struct slot slot_held(const struct db_rows *rows);
/* A whole unit: a run that nobody holds stands in line. LOST: it was moved since. times_out_at: 0: never. */
void slot_wait(struct unit *unit, const struct slot *slot, int64_t run, int64_t version, int64_t times_out_at,
	       int64_t at_ms);

/* The same of jobs, up to SLOT_WAITERS_MAX: it cannot lose. */
void slot_wait_jobs(struct unit *unit, const struct slot *slot, const struct slot_waiter *waiters, size_t n,
		    int64_t at_ms);
/* Takes the lock, too: it does not wait for a slot any more. What it holds it keeps. */
void slot_step_out(struct unit *unit, const struct slot *slot, int64_t job);
/* Without the lock: whatever the holder has is gone, and who stands in line finds out by its own look. */
void slot_forget(struct unit *unit, int64_t holder);

struct rate {
	int64_t name; /* below 0; 0: there is no limit */
	int64_t max, per_ms;
	struct slice key, action; /* as of a slot */
	int64_t of, rank;
};

/* What one and the same thing has of both. Names and keys are those of its limits, the kinds told apart by their words. */
struct bounds {
	struct slot slot;
	struct rate rate;
};
typedef struct slice limit_key_fn(const struct expression *by, struct json input, struct arena *arena);
struct bounds bounds_of(const struct limits *limits, const char *const kinds[2], struct slice workspace,
			struct slice name, limit_key_fn *key, struct slice input, struct arena *arena);
/* Takes both, before what is claimed. LOST: see slot_full(). */
void bounds_take(struct unit *unit, const struct bounds *bounds, int64_t holder, int64_t nth, int64_t at_ms);
/* A whole unit: jobs that wait for the one of both that was full. It cannot lose. With both there is one job to a unit that waits for its time. */
void bounds_wait_jobs(struct unit *unit, const struct bounds *bounds, int64_t full, const struct slot_waiter *waiters,
		      size_t n, int64_t at_ms);

/* Takes the lock, too. LOST: it is too early. nth: which beginning of this holder it is; the same twice is counted once. */
void rate_take(struct unit *unit, const struct rate *rate, int64_t holder, int64_t nth);
/* A whole unit: a run that nobody holds waits for its time. LOST: it was moved since. */
void rate_wait(struct unit *unit, const struct rate *rate, int64_t run, int64_t version, int64_t times_out_at,
	       int64_t at_ms);
void rate_wait_jobs(struct unit *unit, const struct rate *rate, const struct slot_waiter *waiters, size_t n,
		    int64_t at_ms);
/* In the unit that lets a run go which is due at once: it has its place in the line already, and learns its time when it is looked at. */
void rate_line(struct unit *unit, const struct rate *rate, int64_t run, int64_t at_ms);
/* Whoever ends or pauses a run that has not begun: it waits for its time no more. */
void rate_leave(struct unit *unit, int64_t run);
/* Retention: names that have ticks which do not count any more, the oldest first. Then one by one: LOST: somebody was first. */
void rate_scan_expired(struct unit *unit, int64_t age_ms, int64_t limit);
void rate_expire(struct unit *unit, int64_t name, int64_t age_ms);

/* Of the action whose slot it holds or waits for, as "NAME ACTION"; NULL: none. SQL, for the row of a run. */
#define SLOT_OF_ACTION(run)                                                                                            \
	"(SELECT CAST(w.name AS text) || ' ' || w.action FROM hx_slot w WHERE w.holder = " run                         \
	" AND w.action IS NOT NULL LIMIT 1)"
/* It stands there still, as it was read (0: nowhere). Standing in line changes no version, so whoever would leave a line says so. LOST: not. */
void slot_stands(struct unit *unit, int64_t run, int64_t name);
/* What that says. False: it says nothing. */
bool slot_of_action_read(struct slice text, int64_t *ret_name, struct slice *ret_action);

/* How many come before w in the same line. SQL. */
#define SLOT_BEFORE(w)                                                                                                 \
	"(SELECT count(*) FROM hx_slot b WHERE b.name = " w ".name AND b.held = " w ".held"                            \
	" AND (b.rank, b.holder) < (" w ".rank, " w ".holder))"
/* For people. Row: key, how many hold one, how many are before it in line, whether it is for a rate, the action; none: it is in no line. */
void slot_read_wait(struct unit *unit, int64_t holder);
