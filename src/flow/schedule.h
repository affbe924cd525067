/*
 * A schedule: starts a run, or a batch, at each of its slots, once for each slot, whichever node is there, and however often.
 *
 *   put ─▶ ACTIVE ── pause ─▶ PAUSED ── resume ─▶ ACTIVE      put: the same status, or the one that it asks for
 *            └─────────┴── delete ─▶ DELETED (its rows are gone; slots that were started keep their keys)
 *
 *   slot_at is due ─▶ look: read, decide (pure), one move ─┬ START   the run, or the batch, with the slot's key       started + 1
 *        ▲                                                 ├ WAIT    a row: it starts when what is open has ended
 *        │                                                 ├ SKIP    what is open keeps it out                        skipped + 1
 *        │                                                 ├ PASS    nobody was there in time, and catchUp lets it go missed + n
 *        └─ slot_at moves on, in that very unit ───────────┴ REST    nothing is due, or it cannot be started now: only due_at
 *
 * Every change of the row, by a look or by a verb, is guarded by its revision, and raises it. There is no lease: what a look does is one
 * unit, and calls nobody.
 *
 * Invariants (the simulator checks each of them on every edge):
 *  H1  One run for each (workspace, name, slot), ever: its key is schedule:NAME:SLOT, which no caller may use, and R1 holds of it. So
 *      two nodes, a restart, a backfill and a schedule that was deleted and put again start one.
 *  H2  A slot is left (slot_at moves on, or its row goes) in the unit that starts it, or that decides not to: none is lost or started
 *      twice by a crash in between. So with a verb: what has come before a pause, or before other times, waits, or is counted.
 *  H3  Not `allow`: nothing is started, but by a trigger, while something that it has started is open.
 *  H4  A schedule that is not paused and has a slot to come is due at that slot, or before; one whose slot could not be started, a
 *      rest after that was tried. So those that cannot start stand before nobody.
 *  H5  Slots are left in their order; slot_at never falls, but by a put.
 */
#pragma once

#include "db/columns.h"
#include "flow/batch.h"
#include "flow/run.h"
#include "model/schedule.h"

#define SCHEDULE_ACTIVE "ACTIVE"
#define SCHEDULE_PAUSED "PAUSED"
#define SCHEDULE_DELETED "DELETED"

#define SCHEDULES_MAX 10000        /* of a workspace */
#define SCHEDULE_QUEUE_MAX 100     /* slots that wait, of overlap `queue` */
#define SCHEDULE_BACKFILL_MAX 1000 /* slots of one backfill */
#define SCHEDULE_OPEN_LOOK_MS 500  /* how often it is asked whether what a slot waits for has ended */
#define SCHEDULE_LATE_MS 10000     /* a slot is on time while it is less late, and less than half way to the next */
#define SCHEDULE_REST_MS 5000      /* how long what cannot be started rests first; doubled, at most: */
#define SCHEDULE_REST_MS_MAX 60000
#define SCHEDULE_PASS_MAX 100000 /* slots that are let go in one unit */
#define SCHEDULE_KEY_BYTES 128
#define SCHEDULE_CANCEL_MAX 8

/* Whoever looks for due schedules sleeps on this topic. */
#define SCHEDULE_TOPIC (INT64_MAX - 3)

/* What a node knows: zones by their name, and what there is to be started. NULL: it is not known here. */
struct schedule_policy {
	const struct zone *(*zone_of)(const void *context, struct slice name);
	const struct run_machine *(*run_of)(const void *context, struct slice workflow);
	const struct batch_machine *(*batch_of)(const void *context, struct slice workflow);
	const void *context;
	bool (*fires)(const void *context,
		      struct slice workflow); /* is there such a workflow of entities? NULL: none is */
	/* Has no definition this name, so that it may be a function's, for whoever polls for it? NULL: there are no functions. */
	bool (*may_be_function)(const void *context, struct slice name);
	/* That of a function with a definition. NULL: none has one. */
	const struct run_machine *(*function_of)(const void *context, struct slice name);
};

/* The first slot that waits. While it is paused, only those of a backfill go on. */
#define SCHEDULE_WAITS "FROM hx_schedule_slot w WHERE w.schedule = c.subject AND (c.paused = 0 OR w.backfill = 1)"
#define SCHEDULE_IS_OPEN "t.status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED', 'PARKED')"
#define SCHEDULE_OPENED                                                                                                \
	"FROM hx_schedule_open o JOIN hx_subject t ON t.id = o.subject WHERE " SCHEDULE_IS_OPEN " AND o.schedule = "
#define SCHEDULE_OPEN_MAX "101" /* that are read or counted at most: with `allow` there may be ever so many */

/* Columns of schedule_read and schedule_list: see columns.h. Times are in ms. */
#define SCHEDULE_FIELDS(X)                                                                                             \
	X(SCHEDULE_SUBJECT, INT, subject, "c.subject")                                                                 \
	X(SCHEDULE_WORKSPACE, TEXT, workspace, "c.workspace")                                                          \
	X(SCHEDULE_NAME, TEXT, name, "c.name")                                                                         \
	X(SCHEDULE_REQUESTER, TEXT, requester, "c.requester")                                                          \
	X(SCHEDULE_TEXT, TEXT, text, "c.text")                                                                         \
	X(SCHEDULE_IS_PAUSED, FLAG, paused, "c.paused")                                                                \
	X(SCHEDULE_REVISION, INT, revision, "c.revision")                                                              \
	X(SCHEDULE_SLOT_AT, INT, slot_at, "c.slot_at")                                                                 \
	X(SCHEDULE_DUE_AT, INT, due_at, "c.due_at")                                                                    \
	X(SCHEDULE_LAST_SLOT, INT, last_slot, "c.last_slot")                                                           \
	X(SCHEDULE_LAST_AT, INT, last_at, "c.last_at")                                                                 \
	X(SCHEDULE_LAST_RUN, INT, last_run, "c.last_run")                                                              \
	X(SCHEDULE_STARTED, INT, started, "c.started")                                                                 \
	X(SCHEDULE_SKIPPED, INT, skipped, "c.skipped")                                                                 \
	X(SCHEDULE_MISSED, INT, missed, "c.missed")                                                                    \
	X(SCHEDULE_CREATED_AT, INT, created_at, "c.created_at")                                                        \
	X(SCHEDULE_UPDATED_AT, INT, updated_at, "c.updated_at")                                                        \
	X(SCHEDULE_VERSION, INT, version, "s.version")                                                                 \
	X(SCHEDULE_FIRST, INT, first, "(SELECT min(w.slot_at) " SCHEDULE_WAITS ")")                                    \
	X(SCHEDULE_WAITING, INT, waiting, "(SELECT count(*) " SCHEDULE_WAITS ")")                                      \
	X(SCHEDULE_QUEUED, INT, queued,                                                                                \
	  "(SELECT count(*) FROM hx_schedule_slot w WHERE w.schedule = c.subject AND w.backfill = 0)")                 \
	X(SCHEDULE_OPEN, INT, open,                                                                                    \
	  "(SELECT count(*) FROM (SELECT 1 " SCHEDULE_OPENED "c.subject LIMIT " SCHEDULE_OPEN_MAX ") AS slice)")
enum { SCHEDULE_FIELDS(COLUMN_NAME) SCHEDULE_NOW /* the store's clock when it was read */, SCHEDULE_COLUMNS };

struct schedule_row {
	int64_t subject, revision, version, slot_at, due_at, last_slot, last_at, last_run, started, skipped, missed;
	int64_t created_at, updated_at;
	int64_t first;           /* the first slot that waits; 0: none does */
	int64_t waiting, queued; /* all that may go on; those of overlap alone */
	int64_t open;            /* at most SCHEDULE_OPEN_MAX */
	int64_t now;
	bool paused;
	struct slice workspace, name, requester, text;
	struct schedule_spec spec; /* of its text; zone NULL: not known here */
};

int64_t schedule_kind(void);
/* By subject; or, with subject 0, by workspace and name. */
void schedule_read(struct unit *unit, int64_t subject, struct slice workspace, struct slice name);
void schedule_list(struct unit *unit, struct slice workspace, struct slice after, int64_t limit);
/* HX_DATA_ERROR: its text cannot be read here. HX_TOO_LARGE: the arena is full. */
enum hx_code schedule_row_take(const struct db_rows *rows, size_t i, const struct schedule_policy *policy,
			       struct arena *arena, struct schedule_row *ret_row) HX_MUST_CHECK;
extern const struct due_source schedule_due_source; /* flow/due_watch.h */
/* One row: the store's clock. */
void schedule_read_now(struct unit *unit);
/* What it has started and is open: subject, kind; SCHEDULE_CANCEL_MAX at most, those that are not being cancelled first. */
void schedule_read_open(struct unit *unit, int64_t subject);

/* ---- what is next: pure ---- */

enum schedule_what { SCHEDULE_RESTS, SCHEDULE_STARTS, SCHEDULE_WAITS_FOR, SCHEDULE_SKIPS, SCHEDULE_PASSES };

struct schedule_move {
	enum schedule_what what;
	int64_t slot_s;    /* that it is about */
	bool from_waiting; /* it is one that waited: its row goes */
	int64_t passed;    /* how many are let go */
	int64_t slot_at;   /* after it, in ms; 0: none */
	int64_t due_at;    /* likewise */
	bool replaces;     /* those that waited before it go: overlap `cancel` */
	bool cancels;      /* what is open is to be cancelled */
};
/* The zone of the spec is known. */
struct schedule_move schedule_plan(const struct schedule_row *row);
/*
 * The slots that have come, and that nobody has decided about, when a pause or other times are to be put in their place: they wait, as
 * far as catchUp wants them and there is room; the others are let go, and counted. The zone of the spec is known.
 */
struct schedule_late {
	int64_t slots_n, passed;
	int64_t slots[SCHEDULE_QUEUE_MAX]; /* in ms */
};
void schedule_leave(const struct schedule_row *row, struct schedule_late *ret_late);
/* The first slot after a moment, in ms, and when it is due; 0: none. */
int64_t schedule_slot_after(const struct schedule_row *row, int64_t after_ms);
int64_t schedule_due(const struct schedule_row *row, int64_t slot_at);
/* How long it rests when it cannot be started: by how late it is. The spec may be one that could not be read. */
int64_t schedule_rest_ms(const struct schedule_row *row);
/* Since when a slot of it could have been started, as far as its times tell; 0: none is due. */
int64_t schedule_due_since(const struct schedule_row *row);
/* "schedule:NAME:SLOT"; NULL without room. */
struct slice schedule_slot_key(struct slice name, int64_t slot_s, struct arena *arena);
struct slice schedule_trigger_key(struct slice name, struct slice id, struct arena *arena);

/* ---- units ---- */

/* The first line is the guard; LOST at a later one: the slot's key is there. subject: what is started; 0: nothing is. */
void schedule_move_on(struct unit *unit, const struct stamp *stamp, const struct schedule_row *row,
		      const struct schedule_move *move, int64_t subject);

/* What a slot, or a trigger, starts. */
struct schedule_start {
	int64_t subject;
	struct slice key;
	const struct run_machine *run;
	const struct batch_machine *batch;
	int64_t account;         /* of a batch */
	struct slice items;      /* of a batch, as batch_create_whole() takes them */
	struct slice attributes; /* of a run or a batch */
	int64_t singleton;       /* the same (singleton.h) */
	struct slice payload;    /* of a job that fires a step (flow/hook.h); .p NULL: it is none */
};
/* LOST: its key is there. */
void schedule_start_add(struct unit *unit, const struct stamp *stamp, const struct schedule_row *row,
			const struct schedule_start *start);
bool schedule_is_known(const struct schedule_policy *policy, const struct schedule_spec *spec);
/* It starts a run, and no definition has that name: if anybody polls for it, it is a function. */
bool schedule_may_be_function(const struct schedule_policy *policy, const struct schedule_spec *spec);
/* What is started, by the newest definition. False: it is not there. The account of a batch is not looked up yet. */
bool schedule_start_of(const struct schedule_policy *policy, const struct schedule_row *row, struct arena *arena,
		       struct schedule_start *start);
/* Row: the job of this key. */
void schedule_find_job(struct unit *unit, struct slice workspace, struct slice key);

/* A new one. LOST: there is one of this name. REFUSED: there are SCHEDULES_MAX. row: subject, texts, paused, slot_at, due_at. */
void schedule_create(struct unit *unit, const struct stamp *stamp, const struct schedule_row *row);
/* As the row is now, but for its revision. LOST: somebody else has changed it. late: slots that wait from now on, JSON [ms, …]. */
void schedule_change(struct unit *unit, const struct stamp *stamp, const struct schedule_row *was,
		     const struct schedule_row *row, struct slice late);
void schedule_delete(struct unit *unit, const struct stamp *stamp, const struct schedule_row *row);
/* slots: JSON [ms, …]. */
void schedule_backfill(struct unit *unit, const struct stamp *stamp, const struct schedule_row *row,
		       struct slice slots);
/* By a person, of a schedule in whatever status. */
void schedule_triggered(struct unit *unit, const struct stamp *stamp, const struct schedule_row *row, int64_t subject);
