/*
 * Driving a run: the task of the node that works on it. It takes the run, carries out step after step, and lets it go where
 * the run has to wait, or ends.
 *
 *   START ─▶ READING ─▶ (plan) ─▶ MOVING ─┬ won, a task is begun ─▶ ACTING ─▶ (plan) ─▶ MOVING …
 *      │        ▲          │              ├ won, it goes on (sql, a long chain of conditions) ─▶ (plan) ─▶ MOVING …
 *      │        │          │              ├ won, let go or ended ─▶ DONE HX_OK
 *      │        │          │              ├ lost ─▶ READING: somebody else has it (DONE HX_CLAIM_FAILED), or it is still
 *      │        │          │              │         ours and was cancelled or paused: what was done is recorded there
 *      │        │          │              ├ unknown ─▶ LOOKING_UP its op ─▶ as won, or MOVING again
 *      │        │          │              └ failed ─▶ RESTING a moment ─▶ MOVING again: what was done is kept in mind for
 *      │        │          │                          FLOW_PATIENCE_MS, and the fence makes trying safe
 *      │        └──────────┘ nothing to do (not due, held, paused): DONE HX_OK
 *      │                   (lost to a limit that is full (slot.h) ─▶ LINING_UP ─▶ DONE HX_OK: it stands in line, as it was;
 *      │                    that of an action, while the run is ours or past its time ─▶ READING ─▶ MOVING: what is done is recorded, and it is let go)
 *      ├ (created by this very node a moment ago: what READING would find is known)
 *      └ (it is to be created: run_drive_init_making()) ─▶ MAKING ─┬ won ─▶ as won above; or, where no move went along, (plan) ─▶ MOVING
 *                                                                  ├ lost, refused, failed ─▶ DONE: there is no run of this task
 *                                                                  └ unknown ─▶ FINDING its op ─▶ as won, or DONE
 *
 *   MAKING is the unit that creates the run, as whoever wants it says, and with it the first move, where that begins a call and no
 *   line of it can be lost: it follows the insert of what it seizes. It is planned and written as any other. So such a run is
 *   PENDING for nobody to see: the row of its beginning and that of its first move are of one op. Who dies after that leaves a run
 *   past its time, as after any seize; what nobody finds out about its commit is left to its lease in the same way.
 *
 *   ACTING ─┬ ok ─────────────────▶ the step is COMPLETED, and the next begins
 *           ├ failed ─────────────▶ WAITING for its backoff, or no attempt is left: FAILED (in doubt: UNKNOWN)
 *           ├ for good, invalid ──▶ FAILED
 *           ├ unsettled ──────────▶ WAITING, in doubt, then the same attempt once more, for up to ten minutes: then UNKNOWN
 *           ├ unknown ────────────▶ on_unknown: retry  as failed, in doubt from now on
 *           │                                   probe  PROBING ─▶ done: COMPLETED · not done: as failed · unknown: as retry
 *           │                                   hold   WAITING for a person, the step is UNKNOWN
 *           └ claim_lost ─────────▶ DONE HX_STALE_FENCE: nothing is written, whoever takes over finds it in doubt
 *
 *   A run that is seized past its time, or with its doubt set, has a step whose outcome is unknown: the same, before
 *   anything else, also when it is being cancelled (then only to find out: no next step is begun).
 *   A step of a worker: its move inserts the job and lets the run go. The job's end makes the run due; who seizes it then
 *   records the end and begins the next in that very unit, so that such a step, too, raises the version by two.
 *
 * What the plan decides is a function of the row, the definition, the outcome and the answer's time and ids
 * (run_plan.c); what it decides to write is run_units.c; this file is the order of things.
 *
 * Retries rest for initial × factor^(attempt−1), at most max; with jitter between half of that and all of it, drawn from the
 * answer's fresh id; and never for less than the other side has asked for (Retry-After).
 */
#pragma once

#include "flow/answer.h"
#include "flow/run_children.h"
#include "flow/single.h"
#include "flow/slot.h"
#include "task/task.h"

struct run_policy {
	int64_t lease_ms; /* for definitions and steps without one */
	run_machine_fn machine_of;
	const void *context;
	/* Has no definition of another kind this name, so that it may be a function's? NULL: there are no functions without one. */
	bool (*may_be_function)(const void *context, struct slice name);
	/* The node is about to stop: what is under way is recorded, and nothing more is begun. NULL: it never is. */
	const _Atomic bool *stops;
};

enum run_drive_at {
	DRIVE_NEW,
	DRIVE_MAKING,
	DRIVE_FINDING, /* was it made? */
	DRIVE_READING,
	DRIVE_READING_EVENT,    /* the run stands at a step that takes one */
	DRIVE_READING_CHILDREN, /* of the step that the plan has to know about */
	DRIVE_MOVING,
	DRIVE_LOOKING_UP,
	DRIVE_RESTING,
	DRIVE_LINING_UP, /* the limit is full */
	DRIVE_ACTING,
	DRIVE_PROBING,
	DRIVE_DONE,
};

/* A step that a move ends. */
struct run_ended {
	size_t position;
	const char *status;
	int64_t attempt;
	struct slice output;
	int64_t started_at;
};

/* How a move leaves the row of the run. */
enum run_write {
	RUN_WRITES_NOTHING, /* the steps say it all */
	RUN_WRITES_BEGUN,   /* a node has begun an attempt: not due */
	RUN_WRITES_REST,    /* it waits: for a time, an event, a job, a person */
	RUN_WRITES_END,     /* it has ended, or failed */
};

/* What a move writes: the plan's decision. Texts live in the task's arena; .p NULL and 0 are none. */
struct run_move {
	const char *to;
	int64_t transitions; /* how much the version rises */
	bool keeps;          /* the run is ours after it */
	bool queues;         /* it is in line for the time of an action after it */
	bool doubt;
	size_t rows_n;
	struct run_ended rows[RUN_STEP_ROWS_MAX];
	int64_t undone;                    /* the position whose marker it sets; -1 */
	const struct run_step *event_step; /* takes the event with this id */
	struct slice event_id;
	int64_t withdraws; /* a job that it takes back */
	enum run_write write;
	size_t next; /* where it stands after it */
	int64_t attempt, redo, undo /* -1 */, wait_until, due_at, started_at, unsettled_since;
	const char *step_status;
	struct run_stood stood; /* after it; written by the move that begins to compensate */
	struct slice awaits, output, error;
	struct slice
		attributes; /* that it has after it, if that is something else than before; empty: none; .p NULL: no change */
	int64_t job;        /* that it inserts, or goes on waiting for */
	struct slice payload; /* of the one that it inserts; .p NULL: none */
	const struct action *job_action;
	const struct action *sql; /* whose statements run in this unit */
	const struct db_value *sql_values;
	int64_t sql_timeout_ms; /* the step's own; 0: the action's */
	/* Of a step with children: */
	struct run_brood brood;          /* that it makes; .rows.p NULL: none */
	const struct run_step *waits_at; /* whose children it waits for; NULL: none */
	int64_t open_children;           /* so many are open after it: where there are fewer, one has ended meanwhile */
	struct run_asking asking;
	/* Of one that fails the run: */
	struct slice effect_payload; /* .p NULL: nobody is told */
	int64_t effect_ids[STEP_AFTER_EFFECTS_MAX];
	struct slice effect_keys[STEP_AFTER_EFFECTS_MAX];
};

struct run_drive {
	struct task task;
	int64_t subject;
	const struct run_policy *policy;
	struct arena *arena;
	/* For whoever tells: */
	bool made;                     /* the run that it was to make is there */
	bool brought_to_end;           /* its last move was the last of the run */
	bool took_over;                /* it was another's, past its time, and the move that took it is durable */
	const struct run_step *over;   /* whose attempt or compensation was under way there; NULL: none */
	bool fenced;                   /* what it wanted to write was kept out: the run was another's by then */
	bool held;                     /* it has left a step for a person */
	bool fails;                    /* its last move cancels the run, because it has failed */
	bool in_line;                  /* it waits for a slot of its limit */
	struct slice missing_workflow; /* with HX_CONFIG_ERROR */
	int64_t missing_version;
	const char *
		missing_function; /* likewise: the definition is there, and this program has no such function; else NULL */
	/* private */
	const struct single *maker;   /* until the run is made, or is not; NULL: it was there */
	const struct run_spec *makes; /* the same */
	bool goes_along;              /* its first move is in the unit that makes it */
	bool whole;                   /* it was made so, and what is known of it is what was written since */
	struct run_row row;
	struct slot slot;     /* of its limit; .name 0: it has none */
	struct rate rate;     /* that its beginning is counted by; the same */
	int64_t debounce;     /* of a run that may be joined until it begins: its name (debounce.h); 0: it is none */
	struct slot act;      /* of the action that the move begins; the same */
	struct rate act_rate; /* the same */
	int64_t full;         /* the name of that of them which was full; 0: none was */
	bool holding;         /* row.fence is ours */
	struct run_move move;
	const struct run_done *done; /* after the move */
	bool knows;                  /* an outcome that is not yet written: a lost move must not forget it */
	enum act_outcome outcome;
	struct slice output;         /* of that outcome */
	int64_t not_before_ms;       /* the same */
	const struct action *action; /* begun after the move, or under way */
	bool probing;                /* it is the probe of the step's action */
	bool was_probing;            /* the outcome that is known is the probe's */
	bool settled;                /* which has said for certain that it was not done */
	bool left_standing; /* of a run that is undone: the children of the step where it stands are cancelled */
	size_t undone_from; /* positions from here on are compensated, if they had to be */
	struct slice key, body;
	const struct run_step *wants_children; /* what the plan has to know of before it can decide; NULL: nothing */
	enum run_kids_wanted wanted;
	int64_t wanted_of;                /* all of them are so many */
	struct run_kids kids;             /* .step NULL: nothing is known */
	const struct run_step *polled_of; /* of which it was asked whether somebody polls for a function of its name */
	bool polled;
	bool event_found;
	struct slice event_id, event_data;
	struct patience patience;
	unsigned losses;
	struct stamp stamp;
	struct mono_time asked;
};

/* The slot that it needs to be at work (run_limit.c); .name 0: none. Its key is in the arena. */
struct slot run_limit_of(const struct run_row *row, const struct run_policy *policy, struct arena *arena);
/* While it is open to starts (debounce.h): the name of these; 0: it is not, or has none. */
int64_t run_debounce_of(const struct run_row *row, struct arena *arena);
/* The rate that its beginning counts under; .name 0: none, or it has begun. */
struct rate run_rate_of(const struct run_row *row, const struct run_policy *policy, struct arena *arena);

/* Has one of its actions limits, so that it may stand in line for them? */
bool run_has_lines(const struct run_row *row);
/* Of the action whose slot or time it holds or waits for (row->line): to leave it. */
struct slot run_line_of(const struct run_row *row, const struct run_policy *policy);

/* What this program has no function for, of all that the run may come to from here on; NULL: nothing. */
const struct action *run_row_absent(const struct run_row *row);

/*
 * The row of a run that it has made and brought to COMPLETED, as run_read_shown() would find it. False: it is not, or another may have
 * written something of it.
 */
bool run_drive_completed(const struct run_drive *d, struct run_row *ret_row);

void run_drive_init(struct run_drive *d, int64_t subject, const struct run_policy *policy, struct arena *arena);
/* The same for a run that this node has just created: `row` is what it would read. Its texts must live as long. */
void run_drive_init_created(struct run_drive *d, const struct run_row *row, const struct run_policy *policy,
			    struct arena *arena);
/*
 * The same for one that is to be made: `maker` adds the lines that go in front, by its stamp and its fresh id, which are the task's, and is
 * told the verdict; a code of its makes an end of the task. It is asked for nothing once the task is not MAKING any more. The spec,
 * which has no subject yet, and its texts live as long as the task.
 */
void run_drive_init_making(struct run_drive *d, const struct single *maker, const struct run_spec *spec,
			   const struct run_policy *policy, struct arena *arena);
