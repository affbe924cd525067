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
 *      │        │          │                          RUN_PATIENCE_MS, and the fence makes trying safe
 *      │        └──────────┘ nothing to do (not due, held, paused): DONE HX_OK
 *      └ (created by this very node a moment ago: what READING would find is known)
 *
 *   ACTING ─┬ ok ─────────────────▶ the step is COMPLETED, and the next begins
 *           ├ failed ─────────────▶ WAITING for its backoff, or no attempt is left: FAILED (in doubt: UNKNOWN)
 *           ├ for good, invalid ──▶ FAILED
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
 * answer's fresh id.
 */
#ifndef HX_FLOW_RUN_DRIVE_H
#define HX_FLOW_RUN_DRIVE_H

#include "flow/run.h"
#include "task/task.h"

#define RUN_REST_MS 200
#define RUN_PATIENCE_MS 600000

struct run_policy {
	int64_t lease_ms; /* for definitions and steps without one */
	run_machine_fn machine_of;
	const void *context;
};

enum run_drive_at {
	DRIVE_NEW,
	DRIVE_READING,
	DRIVE_READING_EVENT, /* the run stands at a step that takes one */
	DRIVE_MOVING,
	DRIVE_LOOKING_UP,
	DRIVE_RESTING,
	DRIVE_ACTING,
	DRIVE_PROBING,
	DRIVE_DONE,
};

/* What a move writes: the plan's decision. Texts live in the task's arena. */
struct run_move {
	bool seize;       /* guarded by the version; otherwise by the fence */
	const char *from; /* the status that it must find */
	const char *to;
	int64_t transitions; /* how much the version rises */
	bool keeps;          /* the run is ours behind it, for lease_ms */
	bool doubt;
	/* Rows of steps that it ends. */
	size_t rows_n;
	struct {
		size_t position;
		const char *status;
		int64_t attempt;
		struct slice output;
		struct wall_time started_at;
	} rows[RUN_STEP_ROWS_MAX];
	struct slice event_id; /* taken by the first row; .p NULL: none */
	size_t undone;         /* the position whose marker it sets; SIZE_MAX: none */
	/* The row of the run. */
	bool writes_run; /* false: the steps say it all */
	size_t at_step;
	int64_t attempt, redo;
	const char *step_status; /* NULL */
	struct slice awaits;     /* .p NULL: nothing */
	int64_t job;             /* 0: none; set: the job is inserted by this move unless it is the one it had */
	bool inserts_job;
	int64_t undo;               /* -1: none */
	int64_t wait_until, due_at; /* 0: none */
	struct slice output, error; /* .p NULL */
	bool completes;             /* completed_at */
	const struct action *sql;   /* of the step in rows[0]; its statements run in this unit */
	size_t next;                /* the position that is begun or waited at behind it */
};

struct run_drive {
	struct task task;
	int64_t subject;
	const struct run_policy *policy;
	struct arena *arena;
	enum run_drive_at at;
	enum hx_code code;
	/* For whoever tells: */
	bool took_over;                /* it was another's, past its time */
	bool fenced;                   /* what it wanted to write was kept out: the run was another's by then */
	struct slice missing_workflow; /* with HX_CONFIG_ERROR */
	int64_t missing_version;
	/* private */
	struct run_row row;
	struct run_move move;
	bool knows; /* an outcome that is not yet written: a lost move must not forget it */
	enum act_outcome outcome;
	struct slice output; /* of that outcome */
	bool timed_out;
	const struct action *action; /* under way, or to be begun behind the move */
	struct slice key, body;
	struct wall_time gives_up_at;
	unsigned losses;
	struct stamp stamp;
	struct mono_time asked;
	const struct db_value *sql_values;
};

void run_drive_init(struct run_drive *d, int64_t subject, const struct run_policy *policy, struct arena *arena);
/* The same for a run that this node has just created: `row` is what it would read. Its texts must live as long. */
void run_drive_init_created(struct run_drive *d, const struct run_row *row, const struct run_policy *policy,
			    struct arena *arena);
/* The row of a run that run_create() has just made. */
void run_row_created(const struct run_spec *spec, const struct stamp *stamp, struct arena *arena,
		     struct run_row *ret_row);

#endif
