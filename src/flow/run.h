/*
 * The run: a sequence of steps that the engine drives to its end, on whichever node.
 *
 *   create ─▶ PENDING ──┐                          ┌── a task is begun ─▶ RUNNING ─┐ the move that records its end
 *             WAITING ──┼─ seize (version, unowned ┤◀──────────────────────────────┘ begins the next (fence)
 *             RUNNING* ─┤  or past its time)       ├── wait, event, approval, backoff, held for a person ─▶ WAITING
 *             CANCELLING┘                          ├── the last step is done ─▶ COMPLETED
 *                                                  └── no attempt is left, rejected, timed out ─▶ FAILED ─ retry ─▶ PENDING
 *                                                      (or, as its definition says, CANCELLING: run_failure.c)
 *
 *   cancel   PENDING WAITING PAUSED RUNNING FAILED ─▶ CANCELLING, a claim is kept ─ settle, undo in reverse ─▶ CANCELLED
 *   pause    PENDING WAITING RUNNING ─▶ PAUSED, a claim is kept: the step under way is recorded, no other is begun
 *   resume   PAUSED ─▶ RUNNING while a step is under way, else PENDING
 *   migrate  PENDING WAITING PAUSED FAILED CANCELLING, nothing under way ─▶ the same, of another version (run_migrate.h)
 *
 *   RUNNING with an owner: a node carries the step out, under that lease. RUNNING without one: a worker does, as a job.
 *   RUNNING* past its time: the node was lost; whoever seizes it finds a step in doubt, and its on_unknown decides.
 *
 * A move is one unit: the guarded write of the subject (its version rises by one for each of the transitions that it
 * stands for: a completion and the next start are two), its history row, the rows of the steps that it ends, and the row of
 * the run where something stands there that the steps do not say. There are two guards:
 *
 *   seize     version, status, and nobody owns it or the owner's time is over: fence + 1
 *   advance   the fence that the seize gave, and the status: LOST when a cancel or a pause came in between. The holder
 *             then reads the run again, and records what it did under the status that it finds: what is done is never
 *             lost, and never begun again.
 *
 * How far a run has come is what its run_step rows say, replayed through its definition (run_position()): there is no
 * pointer beside them that could disagree.
 *
 * Invariants (the simulator checks each of them on every edge):
 *  R1  One run for each (workspace, key), ever: the row stays when retention takes the rest.
 *  R2  A step has at most one row, and it never changes but for its undone_at, which is set once; and, where the run is migrated to
 *      another version (run_migrate.h), its position.
 *  R3  No action is begun but in a unit that is durable, under a fence that nobody else has had, while its lease is
 *      trusted; and none for a position that has a row.
 *  R4  The key of a step's effect is (run, step, redo), that of its compensation (run, step, "undo"): the same for every
 *      attempt, on every node, whatever the step is called by now (run_fit.h). redo rises only when a person retries a step
 *      that has certainly failed, or has the run migrated while such a one waits to be tried again.
 *  R5  A terminal status is written with the last step, or after the last compensation, and never left again but by
 *      `retry` and `cancel` out of FAILED, and of a child by its parent's cancel out of COMPLETED. CANCELLED only when no
 *      COMPLETED step with `compensate` lacks its marker, and no step with one is in doubt (one without is left UNKNOWN:
 *      finding out would mean doing it).
 *  R6  A run that is not terminal, not PAUSED and not held for a person is owned, or due at some time, or awaits an event,
 *      an approval or a job that is there: nothing gets stuck. An event that came before its wait makes that wait due
 *      at once, decided in the unit that begins the wait.
 *  R7  due_at is NULL while the run is owned: a run whose holder is lost is found by the janitor, by its claim.
 *  R8  subject.doubt is set while an attempt of the current step (or compensation) may have been done and nobody knows.
 */
#pragma once

#include "base/json.h"
#include "db/columns.h"
#include "flow/sql_action.h"
#include "flow/subject.h"
#include "flow/ways.h"
#include "model/run_definition.h"

#define RUN_PENDING "PENDING"
#define RUN_RUNNING "RUNNING"
#define RUN_WAITING "WAITING"
#define RUN_PAUSED "PAUSED"
#define RUN_COMPLETED "COMPLETED"
#define RUN_FAILED "FAILED"
#define RUN_CANCELLING "CANCELLING"
#define RUN_CANCELLED "CANCELLED"

/* Of steps; PENDING, RUNNING and WAITING are named as above. */
#define RUN_STEP_COMPLETED "COMPLETED"
#define RUN_STEP_SKIPPED "SKIPPED"
#define RUN_STEP_FAILED "FAILED"
#define RUN_STEP_UNKNOWN "UNKNOWN"

/* run.awaits. An event's name stands after its prefix. */
#define RUN_AWAITS_EVENT "event "
#define RUN_AWAITS_APPROVAL "approval "
#define RUN_AWAITS_JOB "job"
#define RUN_AWAITS_PERSON "person"

#define RUN_KEY_CHARACTERS_MAX 255
#define RUN_INPUT_BYTES_MAX (1u << 20)
#define RUN_OUTPUT_BYTES_MAX (1u << 20)   /* of one step, and of the run */
#define RUN_OUTPUTS_BYTES_MAX (24u << 20) /* of all its steps so far, when the next one is begun */
#define RUN_EVENTS_MAX 1000               /* of one run */
#define RUN_STEP_ROWS_MAX 4               /* in one move; a longer chain of conditions takes another */

/* 1 to RUN_KEY_CHARACTERS_MAX characters of UTF-8, without U+0000. */
bool run_key_is_good(struct slice key);

/* Whoever looks for due runs sleeps on this topic; every unit that makes one due now wakes it. */
#define RUN_TOPIC (INT64_MAX - 1)

int64_t run_kind(void);

/* A definition made ready for the store. Lives as long as the program: connections know statements by address. */
struct run_machine {
	const struct run_definition *definition;
	int64_t version;        /* of the definition, in the store */
	struct sql_action *sql; /* one per action, empty for those that are not sql (flow/sql_action.h) */
};

/* NULL when the arena is full. The definition and the arena must live as long as the program. */
const struct run_machine *run_machine_new(const struct run_definition *definition, int64_t version,
					  struct arena *arena);

/* The one of a function of this name, which has neither definition nor steps here (flow/function.h). */
const struct run_machine *run_function_new(struct slice name, struct arena *arena);
#define RUN_FUNCTION 0 /* the version of the definition in the row of a function */

/* Finds the machine of a run's definition and version; NULL: this node does not know it (yet). Pure. */
#define RUN_NEWEST 0 /* the version in force */
typedef const struct run_machine *(*run_machine_fn)(const void *context, struct slice workflow, int64_t version);

/* ---- units ---- */

/* Starts that are one while it has not begun (flow/debounce.h). */
struct debounce {
	int64_t name;               /* below 0; 0: none */
	int64_t for_ms, at_most_ms; /* at_most_ms 0: for ever */
};

/* What has the row of a key `k`: the run itself, or that whose other key it is. */
#define RUN_OF_ALIAS(k) "coalesce(" k ".alias_of, " k ".subject)"

struct run_spec {
	int64_t subject;
	struct slice workspace, requester;
	struct slice key;         /* .p NULL: none */
	struct slice traceparent; /* empty: none */
	const struct run_machine *machine;
	struct slice input;
	bool input_given;         /* false: the caller named none, so it is compared with nothing */
	struct slice attributes;  /* run_describe() */
	int64_t singleton;        /* the same: its name (flow/singleton.h); 0: it is none */
	struct debounce debounce; /* the same; not of what is no start */
	bool joins;               /* it is no start that is answered with the one that is there */
	int64_t due_in_ms; /* 0: at once. Who drives it at once by itself gives itself a moment before others do */
	/* Its first move is in the unit that makes it, and begins this (run_drive.h): its row says so, and it is not due. attempt 0: no. */
	struct {
		size_t position;
		int64_t attempt, started_at, transitions, lease_ms;
		const char *to; /* its status after that */
	} begun;
};
/* What it is searched by, and whether it is a singleton, from its workspace, machine and input; before run_create(). Into the arena, which remembers whether there was room. */
void run_describe(struct run_spec *spec, struct arena *arena);
/* LOST: the key has a run, which run_read_key() finds; or its singleton has one, which singleton_find() does, or its debounce,
 * debounce_find(). */
void run_create(struct unit *unit, const struct stamp *stamp, const struct run_spec *spec);

/* When the time of such a run is over, that counts from then; 0: never. */
int64_t run_times_out_at(const struct run_definition *definition, int64_t from_ms);

/* Which run has this key. Reads alone. HX_NOT_FOUND: none; HX_KEY_REUSED: one of another workflow. */
void run_find_key(struct unit *unit, struct slice workspace, struct slice key);
enum hx_code run_found(const struct unit_result *result, struct slice workflow, int64_t *ret_subject) HX_MUST_CHECK;

/* Is the run `r`, which has a parent, one of a tree that is being cancelled further up? */
#define RUN_IS_STOPPED(parent)                                                                                         \
	"EXISTS (WITH RECURSIVE up(subject) AS (SELECT " parent " UNION ALL SELECT " RUN_PARENT_OF_UP                  \
	" FROM up WHERE up.subject IS NOT NULL) SELECT 1 FROM up WHERE (SELECT a.status FROM hx_subject a"             \
	" WHERE a.id = up.subject) IN ('CANCELLING', 'CANCELLED'))"
/* No join: PostgreSQL, planning while there are few, would read all runs for each. */
#define RUN_PARENT_OF_UP "(SELECT p.parent FROM hx_run p WHERE p.subject = up.subject)"
/* The same of a run that may have none; and those above its parent: RUN_STOPPED, RUN_ABOVE. */
#define RUN_STOPPED_SQL                                                                                                \
	"CAST(CASE WHEN r.parent IS NULL THEN 0 WHEN " RUN_IS_STOPPED("r.parent") " THEN 1 ELSE 0 END AS bigint)"
/* Each chain on the way up begins with the one before it, so the last of them is the greatest. */
#define RUN_ABOVE_SQL                                                                                                   \
	"CASE WHEN r.depth > 1 THEN (WITH RECURSIVE up(subject, chain) AS (SELECT r.parent, CAST('' AS text) UNION ALL" \
	" SELECT " RUN_PARENT_OF_UP                                                                                     \
	", CASE WHEN up.subject = r.parent THEN up.chain ELSE up.chain || ' ' || up.subject"                            \
	" END FROM up WHERE up.subject IS NOT NULL) SELECT max(chain) FROM up) END"

/* What every run begins with; `more` of its columns follow. */
#define INTO_RUN(more)                                                                                                    \
	"INSERT INTO hx_run (subject, workspace, workflow, definition_version, run_key, requester, trace, input, due_at," \
	" created_at, times_out_at, attributes" more ")"

/* And what each of its steps and events does. */
#define INTO_STEP(more)                                                                                                \
	"INSERT INTO hx_run_step (run, position, status, attempt, output, started_at, completed_at" more ")"
#define INTO_EVENT "INSERT INTO hx_run_event (run, id, name, data, at)"
#define INTO_FUNCTION(more)                                                                                            \
	"INSERT INTO hx_function (subject, workspace, name, turn_at, retry, on_failure, due_at, timeout_ms" more ")"

/* Columns of run_read, run_read_key and run_list: see columns.h. */
#define RUN_FIELDS(X)                                                                                                  \
	STARTED_FIELDS(X, RUN, "r.", "run_key")                                                                        \
	X(RUN_DOUBT, FLAG, doubt, "s.doubt")                                                                           \
	X(RUN_UPDATED_AT, INT, updated_at, "s.updated_at")                                                             \
	X(RUN_WORKFLOW, OTHER_TEXT, _, "r.workflow")                                                                   \
	X(RUN_DEFINITION_VERSION, OTHER_INT, _, "r.definition_version")                                                \
	X(RUN_INPUT, TEXT, input, "r.input")                                                                           \
	X(RUN_OUTPUT, TEXT, output, "r.output")                                                                        \
	X(RUN_AT_STEP, OTHER_INT, _, "r.at_step")                                                                      \
	X(RUN_ATTEMPT, INT, attempt, "r.attempt")                                                                      \
	X(RUN_REDO, INT, redo, "r.redo")                                                                               \
	X(RUN_STEP_STATUS, TEXT, step_status, "r.step_status")                                                         \
	X(RUN_STEP_STARTED_AT, INT, step_started_at, "r.step_started_at")                                              \
	X(RUN_AWAITS, TEXT, awaits, "r.awaits")                                                                        \
	X(RUN_JOB, INT, job, "r.job")                                                                                  \
	X(RUN_UNDO, INDEX, undo, "r.undo")                                                                             \
	X(RUN_WAIT_UNTIL, INT, wait_until, "r.wait_until")                                                             \
	X(RUN_UNSETTLED_SINCE, INT, unsettled_since, "r.unsettled_since")                                              \
	X(RUN_STOOD_ATTEMPT, INT, stood.attempt, "r.stood_attempt")                                                    \
	X(RUN_STOOD_STARTED_AT, INT, stood.started_at, "r.stood_started_at")                                           \
	X(RUN_STOOD_STATUS, TEXT, stood.status, "r.stood_status")                                                      \
	X(RUN_STOOD_ERROR, TEXT, stood.error, "r.stood_error")                                                         \
	X(RUN_PARENT, INT, parent, "r.parent")                                                                         \
	X(RUN_PARENT_STEP, TEXT, parent_step, "r.parent_step")                                                         \
	X(RUN_PARENT_N, INT, parent_n, "r.parent_n")                                                                   \
	X(RUN_SCOPE, TEXT, scope, "r.scope")                                                                           \
	X(RUN_AROUND, INT, around, "r.around")                                                                         \
	X(RUN_DEPTH, INT, depth, "r.depth")                                                                            \
	X(RUN_ASKED, TEXT, asked, "r.asked")                                                                           \
	X(RUN_TIMES_OUT_AT, INT, times_out_at, "r.times_out_at")                                                       \
	X(RUN_RESTART_OF, INT, restart_of, "r.restart_of")                                                             \
	X(RUN_RESTARTED_BY, INT, restarted_by, "r.restarted_by")                                                       \
	X(RUN_RENAMED, TEXT, renamed, "r.renamed")                                                                     \
	X(RUN_LIMIT_KEY, TEXT, limit_key, "r.limit_key")
enum { RUN_FIELDS(COLUMN_NAME) RUN_NOW /* the store's clock when it was read */, RUN_COLUMNS };
#define RUN_STOPPED RUN_COLUMNS           /* of what is read alone, and not listed: RUN_IS_STOPPED */
#define RUN_LINE_SLOT (RUN_COLUMNS + 1)   /* the same: SLOT_OF_ACTION */
#define RUN_ABOVE (RUN_COLUMNS + 2)       /* the same: those above its parent, as " ID ID"; NULL: none */
#define RUN_DEPTH_MAX 16                  /* levels of children below the root */
#define RUN_ABOVE_MAX (RUN_DEPTH_MAX - 1) /* the lowest child has its parent, and those up to the root */
void run_above_take(const struct db_value *cell, int64_t above[RUN_ABOVE_MAX]);
/* Three lines, for run_row_take(): the run, its steps by position, the job of its step. An empty workspace: any. */
void run_read(struct unit *unit, struct slice workspace, int64_t subject);
void run_read_key(struct unit *unit, struct slice workspace, struct slice key);
/* The same, and as a fourth line the entries of a function, for whoever shows it (run_row.entries). */
void run_read_shown(struct unit *unit, struct slice workspace, int64_t subject);
void run_read_key_shown(struct unit *unit, struct slice workspace, struct slice key);
enum { RUN_LINE_ENTRIES = 3 };

/* run_event.name is what the run would await for it: "event NAME", "approval STEP". */
struct run_awaited {
	const char *prefix, *name; /* RUN_AWAITS_EVENT "payment"; NULL: nothing from outside */
};
struct run_awaited run_step_awaits(const struct run_step *step);
/* The first of this name that nobody has taken. Row: id, data. */
void run_read_event(struct unit *unit, int64_t subject, struct run_awaited awaited);

struct run_filter {
	struct slice workspace;
	struct slice status, workflow; /* empty: any */
	bool unknown;                  /* only those with a step that is held for a person */
	int64_t before;                /* newest first; INT64_MAX: from the newest on */
	int64_t limit;
	int64_t parent; /* 0: any */
};
/* Rows of the run's columns, without those of expired runs; after them three more: position (NULL: none) and output of its
 * last row of run_step, from which run_next_position() tells where it stands; and the first open entry of a function. */
#define RUN_LAST_POSITION RUN_COLUMNS
#define RUN_LAST_OUTPUT (RUN_COLUMNS + 1)
#define RUN_OPEN_ENTRY (RUN_COLUMNS + 2)
void run_list(struct unit *unit, const struct run_filter *filter);

/* The same rows of these ids, JSON [1, …], in whatever order. */
void run_list_these(struct unit *unit, struct slice workspace, struct slice ids);

/* Runs to look at (flow/due_watch.h). left: JSON ["WORKFLOW@VERSION"], whose runs are for others, but for those that are CANCELLING. */
extern const struct due_source run_due_source;
/* In the unit that ends a job: its run, if it still awaits this job, is due. */
void run_job_ended(struct unit *unit, int64_t run, int64_t job);
/* In the unit that gives a job back to its queue: a run that is being cancelled takes it away before it is begun again. */
void run_job_back(struct unit *unit, int64_t run, int64_t job);

/*
 * Retention. Runs whose terminal status is older than age_ms, the oldest first; row: subject. Then one by one: what is left is
 * the row of the run with its key, and the subject with its head.
 */
void run_scan_expired(struct unit *unit, int64_t age_ms, int64_t limit);
void run_expire(struct unit *unit, int64_t subject, int64_t age_ms);
/* The same for those whose definition says how long they are kept; age_ms is of no account. */
void run_scan_kept(struct unit *unit, int64_t age_ms, int64_t limit);
void run_expire_kept(struct unit *unit, int64_t subject, int64_t age_ms);

/* ---- a run as it was read ---- */

/* A step that is done, as a list from the last to the first: it only grows at its head, so copies of a task may share it. */
struct run_done {
	const struct run_done *before; /* NULL: it is the first */
	const struct run_step *step;
	const char *status; /* RUN_STEP_COMPLETED or RUN_STEP_SKIPPED */
	int64_t attempt;
	struct slice output; /* JSON */
	int64_t started_at, completed_at;
	int64_t undone_at;    /* 0: not */
	size_t outputs_bytes; /* of this one and all before it */
	/* Of a run that was restarted: who has carried it out, and with which input; 0, .p NULL: this run, its own. */
	int64_t made_by;
	struct slice made_with;
};

/*
 * How the step where the run stood was left when its compensation began. What the row says of attempt, status and error is of
 * the compensation from then on, and this is written back with the end.
 */
struct run_stood {
	int64_t set; /* 0: nothing is being compensated. No bool: what is in a gap counts (task/shape.h) */
	int64_t attempt;
	int64_t started_at;         /* 0: it was never begun */
	struct slice status, error; /* .p NULL: none */
};

/* What run_read() found, copied into an arena. Flat, for tasks to keep. */
struct run_row {
	int64_t subject, version, fence;
	int64_t attempt; /* of the step where it stands (or of the compensation under way): begun so far */
	int64_t redo;
	int64_t undo;            /* the position whose compensation is under way, or was last tried; -1: none */
	int64_t wait_until;      /* 0: none */
	int64_t due_at;          /* 0: none */
	int64_t unsettled_since; /* the other side says that an earlier try is under way; 0: it does not */
	const char *status;      /* one of the constants above */
	bool owned, past, doubt, expired;
	bool stopped; /* a run that it is a child of, near or far, is being cancelled: its word is on its way */
	const struct run_machine *machine;
	const struct run_definition *definition; /* the machine's, or the part of it that this run carries out */
	/* Of a child (run_children.h): */
	int64_t parent, parent_n; /* 0: it is none */
	int64_t around;           /* the run whose input, state and events it sees; 0: its own */
	int64_t depth;
	int64_t above[RUN_ABOVE_MAX];     /* its parent's parent, and so on up to the root; 0: no more of them */
	int64_t times_out_at;             /* 0: never */
	int64_t restart_of, restarted_by; /* run_restart.h; 0: none */
	int64_t line; /* the slot or the rate of an action that it holds or waits for (slot.h); 0: none */
	struct slice parent_step, scope, asked; /* .p NULL: none */
	struct slice limit_key;   /* of a part: that of the run around it (model/limits.h); .p NULL: it has its own */
	struct slice line_action; /* whose `line` is */
	struct slice owner, workspace, requester, key, trace, input, output, error; /* the same */
	struct slice awaits, step_status;                                           /* the same */
	struct slice attributes;                                                    /* as they are kept; the same */
	struct slice renamed; /* names of steps in keys, where they are others: run_fit.h; the same */
	size_t position;      /* where it stands; steps_n: at the end */
	const struct run_done *done;
	const struct db_rows *entries; /* of a function, while they are there: function_read_steps(); NULL: not read */
	struct run_stood stood;
	int64_t step_started_at;                                         /* 0: it has not */
	int64_t created_at, started_at, completed_at, updated_at, until; /* 0: not */
	int64_t now;                                                     /* the store's */
	/* The job that carries the step out; job 0: none. */
	int64_t job, job_version, job_attempt;
	const char *job_status;
	bool job_doubt;
	struct slice job_output, job_error;
};
/*
 * Of the result of run_read() or run_read_key(). HX_NOT_FOUND: no row. HX_CONFIG_ERROR: this node does not know the definition
 * in that version (yet); *ret_row has all but what depends on it. HX_TOO_LARGE: the arena is full. HX_BUSY: it was migrated to another
 * version while it was read, on a connection that does not see one moment: to be read again.
 */
enum hx_code run_row_take(const struct unit_result *result, run_machine_fn machine_of, const void *context,
			  struct arena *arena, struct run_row *ret_row) HX_MUST_CHECK;
/* The row of a run that run_create() has just made; borrows the texts of the spec. */
void run_row_created(const struct run_spec *spec, const struct stamp *stamp, struct run_row *ret_row);

/* The position after a step that is done; `output` is looked at for conditions alone. */
size_t run_next_position(const struct run_definition *definition, size_t position, struct slice output);
/* As JSON: what expressions see as state and as steps, up to and with this one. state.NAME is the output of the last
 * step with that save_as; steps.NAME is {"status", "output"}. */
void run_write_state(const struct run_done *done, struct strbuf *out);
void run_write_steps(const struct run_done *done, struct strbuf *out);
static inline bool run_is_terminal(const char *status)
{
	return ways_is_terminal(&run_ways, slice_str(status));
}
static inline bool run_has_ended(struct slice status)
{
	return ways_have_ended(&run_ways, status);
}
/* The error that still holds, as JSON: a step that failed once and was done later has none. .p NULL: none. Needs row->machine. */
struct slice run_row_error(const struct run_row *row);
/* Is this error, as JSON, one of this step? */
bool run_error_is_of(struct slice error, struct slice step);
extern const char *const run_statuses[]; /* all there are; ends with NULL */
/* The constant that has this text; NULL: none. */
static inline const char *run_status_of(struct slice text)
{
	return ways_status(&run_ways, text);
}
