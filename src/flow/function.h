/*
 * The function: a run whose steps are code, carried out by workers outside of the engine and journalled here.
 *
 *   create ─▶ PENDING ─ claim ─▶ RUNNING ─┬ end: suspended ─▶ WAITING ─ what it awaits has ended ─▶ PENDING
 *               ▲                         ├ end: completed ─▶ COMPLETED
 *               ├─────────────────────────┼ end: released
 *               │                         ├ the lease has lapsed: what was begun is unknown
 *               │                         └ end: failed ────▶ FAILED ─ retry ─▶ PENDING
 *               └ resolve, retry ─ WAITING, held: a step that is unknown, ten lapses, a journal that does not fit the code
 *
 *   cancel, timeout, a failure under on_failure compensate ─▶ CANCELLING, turns go on ─ end: undone ─▶ CANCELLED
 *   pause ─▶ PAUSED, outcomes are taken ─ resume ─▶ PENDING, or RUNNING while a worker has the turn
 *
 * The journal is a row for each entry. An entry's states:
 *
 *   step, undo                        (new) ─▶ begun ─┬▶ done, failed                        ended
 *                                       │        ▲    ├▶ retry (failed, and due later) ─▶ begun, done, failed …
 *                                       └────────┼──▶ └▶ unknown ─ hold: a person · retry, probe: the next worker
 *   sleep, event, approval, child     (new) ─▶ open ─▶ done, failed; dropped
 *   value, attribute, compensate, drop (new) ─▶ done
 *
 * Every exchange is read, decide, write: what was read is decided on by pure functions (function_take.c for what a worker sends,
 * function_settle.c for what ends by itself), and written in one unit that is guarded by the revision that was read. Who loses reads
 * again. So a commit whose answer was lost needs no look-up: the same call finds itself taken, by the hash of its bytes.
 *
 * Invariants (the simulator checks each of them on every edge):
 *  F1  seq rises by one with each change of an entry and with each end of a turn, and never otherwise: it names one change.
 *  F2  An entry that has ended never changes but by a person's retry; a step that is done never begins again.
 *  F3  A call is taken only from who holds the turn (worker and fence), and only if no other was taken after the seq it names.
 *  F4  A claimed step begins once for each decision to: after an unknown outcome only a worker that was told of it, or a person, does.
 *  F5  A function that is not terminal, not paused and not held has an owner, or a turn that is due, or a time at which the engine
 *      looks, or awaits an event, an approval, a child or a person.
 *  F6  Nothing is open, and no step is begun or in doubt, when it is COMPLETED or CANCELLED; then it is CANCELLED after all its children.
 *
 * Going back is the worker's for what is code, and the engine's for children: a child that stands after the last compensation that is owed
 * is cancelled before a turn is handed out, one by one from the last on; those that are left when all is undone, too. So the order is
 * reverse to the journal's, if a worker gives the turn back where a child lies before the next compensation; if it goes on, the child
 * is undone after that.
 */
#pragma once

#include "flow/run.h"
#include "flow/slot.h"
#include "task/lane.h"

#define FUNCTION_NAME_BYTES_MAX 255
#define FUNCTION_VERSION_BYTES_MAX 100
#define FUNCTION_WORKER_BYTES_MAX 128
#define FUNCTION_POLLED_MAX 100 /* names in one claim */
#define FUNCTION_TURNS_MAX 64   /* of one claim */
#define FUNCTION_LEASE_MS_MIN 100
#define FUNCTION_LEASE_MS_MAX 600000
#define FUNCTION_WAIT_MS_MAX 25000
#define FUNCTION_CHANGES_MAX 1000 /* entries in one call */
#define FUNCTION_ENTRIES_MAX 20000
#define FUNCTION_N_MAX (FUNCTION_ENTRIES_MAX + FUNCTION_CHANGES_MAX) /* whoever counts on is told JOURNAL_FULL */
#define FUNCTION_BYTES_MAX (24 << 20)                                /* of a journal */
#define FUNCTION_PAGE_BYTES_MAX (4 << 20)                            /* of it in one answer */
#define FUNCTION_ENTRY_BYTES 64                                      /* what an entry counts beside its texts */
#define FUNCTION_LAPSES_MAX 10
#define FUNCTION_ATTRIBUTES_MAX 32                      /* that a run is searched by, with those of its definition */
#define FUNCTION_POLLED_FOR_MS (INT64_C(30) * 86400000) /* so long after its last poll a name can be started */
#define FUNCTION_POLLS_MAX 20000                        /* names and versions that are known in a workspace */

/* Whoever looks for functions that are due sleeps on this topic. */
#define FUNCTION_TOPIC (INT64_MAX - 4)

int64_t function_kind(void);
/* One row, if a function of this name can be started in the workspace. */
void function_find_polled(struct unit *unit, struct slice workspace, struct slice name);
/* In the unit that makes so many turns due: as many of those who poll for it are woken. */
void function_offer(struct unit *unit, struct slice workspace, struct slice name, int64_t n);
/* Where workers that poll for it wait. */
int64_t function_stand(struct slice workspace, struct slice name);

/* ---- the journal ---- */

#define ENTRY_KINDS(X)                                                                                                 \
	X(STEP, "step")                                                                                                \
	X(SLEEP, "sleep")                                                                                              \
	X(EVENT, "event")                                                                                              \
	X(APPROVAL, "approval")                                                                                        \
	X(CHILD, "child")                                                                                              \
	X(VALUE, "value")                                                                                              \
	X(ATTRIBUTE, "attribute")                                                                                      \
	X(COMPENSATE, "compensate")                                                                                    \
	X(UNDO, "undo")                                                                                                \
	X(DROP, "drop")
enum entry_kind {
#define X(name, word) ENTRY_##name,
	ENTRY_KINDS(X)
#undef X
};
extern const char *const entry_kinds[]; /* their words; ends with NULL */

#define ENTRY_STATES(X)                                                                                                \
	X(BEGUN, "begun")                                                                                              \
	X(RETRY, "retry")                                                                                              \
	X(UNKNOWN, "unknown")                                                                                          \
	X(OPEN, "open")                                                                                                \
	X(DONE, "done")                                                                                                \
	X(FAILED, "failed")                                                                                            \
	X(DROPPED, "dropped")
enum entry_state {
#define X(name, word) ENTRY_##name,
	ENTRY_STATES(X)
#undef X
};
extern const char *const entry_states[];

static inline bool entry_is_about(enum entry_kind kind)
{
	return kind >= ENTRY_COMPENSATE;
}
static inline bool entry_is_step(enum entry_kind kind)
{
	return kind == ENTRY_STEP || kind == ENTRY_UNDO;
}
static inline bool entry_has_ended(enum entry_state state)
{
	return state >= ENTRY_DONE;
}

struct function_entry {
	int64_t i, n, seq, attempt, redo;
	enum entry_kind kind;
	enum entry_state state;
	struct slice name;
	struct slice policy;        /* of a step: effect and onUnknown, "claimed hold"; .p NULL: it is none */
	struct slice detail;        /* JSON: what was asked for */
	struct slice output, error; /* JSON; .p NULL: none, or not read */
	struct slice awaits;        /* .p NULL: nothing from outside */
	int64_t wake_at, child;     /* 0: none */
	int64_t started_at, completed_at;
	/* Of a decision: */
	bool changed, own;     /* it is written; by the call that is being taken */
	bool ends_now;         /* it has ended in this decision */
	int64_t bytes_before;  /* what it counted when it was read; 0: it is new */
	struct slice event_id; /* the event that it takes; .p NULL: none */
	bool event_back;       /* the event that it had taken, unseen, is there again */
};

/* Does somebody have to say what became of it before it goes on? */
bool entry_is_held(const struct function_entry *entry);
/* "RUN/NAME/N", percent-encoded, with what a person's retry or an undo adds. Appends. */
void entry_write_key(int64_t run, const struct function_entry *entry, struct strbuf *text);
/* The same of a row of hx_entry e, where a list shows it. */
#define ENTRY_NAME_SQL "e.name || CASE WHEN e.n > 0 THEN '#' || e.n ELSE '' END"
/* NAME, from n = 1 on NAME#N. Appends. */
void entry_write_name(const struct function_entry *entry, struct strbuf *text);
/* As the wire has it. now_ms is for what is left of a retry. output: with it, or without. Appends. */
void entry_write(int64_t run, const struct function_entry *entry, int64_t now_ms, bool output, struct strbuf *text);
/* A row of function_read_journal() and of what has ended. */
struct function_entry entry_of_row(const struct db_rows *rows, size_t row, struct arena *arena);

/* ---- a function as it was read ---- */

#define FUNCTION_FIELDS(X)                                                                                             \
	X(FN_SUBJECT, INT, subject, "f.subject")                                                                       \
	X(FN_STATUS, OTHER_TEXT, _, "s.status")                                                                        \
	X(FN_ROW_VERSION, INT, row_version, "s.version")                                                               \
	X(FN_FENCE, INT, fence, "s.fence")                                                                             \
	X(FN_OWNED, THERE, owned, "s.until")                                                                           \
	X(FN_UNTIL, INT, until, "s.until")                                                                             \
	X(FN_PAST, FLAG, past, SUBJECT_IS_PAST)                                                                        \
	X(FN_WORKSPACE, TEXT, workspace, "f.workspace")                                                                \
	X(FN_NAME, TEXT, name, "f.name")                                                                               \
	X(FN_VERSION, TEXT, version, "f.version")                                                                      \
	X(FN_TURN_VERSION, TEXT, turn_version, "f.turn_version")                                                       \
	X(FN_WORKER, TEXT, worker, "f.worker")                                                                         \
	X(FN_LEASE_MS, INT, lease_ms, "f.lease_ms")                                                                    \
	X(FN_SEQ, INT, seq, "f.seq")                                                                                   \
	X(FN_TAKEN_SEQ, INT, taken_seq, "f.taken_seq")                                                                 \
	X(FN_COLD_SEQ, INT, cold_seq, "f.cold_seq")                                                                    \
	X(FN_REVISION, INT, revision, "f.revision")                                                                    \
	X(FN_ENTRIES_N, INT, entries_n, "f.entries_n")                                                                 \
	X(FN_BYTES, INT, bytes, "f.bytes")                                                                             \
	X(FN_BODY_HASH, TEXT, body_hash, "f.body_hash")                                                                \
	X(FN_AWAITS, TEXT, awaits, "f.awaits")                                                                         \
	X(FN_ANY_OF, FLAG, any_of, "f.any_of")                                                                         \
	X(FN_LAPSES, INT, lapses, "f.lapses")                                                                          \
	X(FN_HELD, TEXT, held, "f.held")                                                                               \
	X(FN_FAILED_AT, INDEX, failed_at, "f.failed_at")                                                               \
	X(FN_RETRY, TEXT, retry, "f.retry")                                                                            \
	X(FN_ON_FAILURE, TEXT, on_failure, "f.on_failure")                                                             \
	X(FN_TURN_AT, INT, turn_at, "f.turn_at")                                                                       \
	X(FN_DUE_AT, INT, due_at, "f.due_at")                                                                          \
	X(FN_KEY, TEXT, key, "r.run_key")                                                                              \
	X(FN_INPUT, TEXT, input, "r.input")                                                                            \
	X(FN_RUN_AWAITS, TEXT, run_awaits, "r.awaits")                                                                 \
	X(FN_TRACE, TEXT, trace, "r.trace")                                                                            \
	X(FN_REQUESTER, TEXT, requester, "r.requester")                                                                \
	X(FN_PARENT, INT, parent, "r.parent")                                                                          \
	X(FN_PARENT_N, INT, parent_n, "r.parent_n")                                                                    \
	X(FN_DEPTH, INT, depth, "r.depth")                                                                             \
	X(FN_TIMES_OUT_AT, INT, times_out_at, "r.times_out_at")                                                        \
	X(FN_TIMEOUT_MS, INT, timeout_ms, "f.timeout_ms")                                                              \
	X(FN_KEEP_MS, INT, keep_ms, "f.keep_ms")                                                                       \
	X(FN_EXPIRED, FLAG, expired, "r.expired")                                                                      \
	X(FN_ATTRIBUTES, TEXT, attributes, "r.attributes")                                                             \
	X(FN_ASKED, TEXT, asked, "r.asked")                                                                            \
	X(FN_TO_UNDO, INT, to_undo, FUNCTION_TO_UNDO)                                                                  \
	X(FN_UNDO_FAILED, FLAG, undo_failed, FUNCTION_UNDO_FAILED)                                                     \
	X(FN_HAS_OPEN, FLAG, has_open, FUNCTION_HAS_OPEN)                                                              \
	X(FN_HAS_KIDS, FLAG, has_kids, FUNCTION_HAS_KIDS)                                                              \
	X(FN_STANDING, INDEX, standing, FUNCTION_STANDING)                                                             \
	X(FN_LAST_OWED, INDEX, last_owed, FUNCTION_LAST_OWED)                                                          \
	X(FN_LIMIT_MAX, INT, limit_max, "f.limit_max")                                                                 \
	X(FN_SLOT, INT, slot, FUNCTION_SLOT)
/* Of what it has the slot, or stands in line for it: function_limit.c. */
#define FUNCTION_SLOT                                                                                                     \
	"CASE WHEN f.limit_max IS NOT NULL THEN (SELECT h.name FROM hx_slot h WHERE h.holder = f.subject AND h.held <> 2" \
	" LIMIT 1) END"
/* Compensations whose step is done and that are not done themselves. */
#define FUNCTION_OWED                                                                                                  \
	" FROM hx_entry c JOIN hx_entry t ON t.run = c.run AND t.label = c.label AND t.about = ''"                     \
	" AND t.state = 'done' WHERE c.run = f.subject AND c.about = 'compensate' AND NOT EXISTS (SELECT 1"            \
	" FROM hx_entry u WHERE u.run = c.run AND u.label = c.label AND u.about = 'undo' AND u.state = 'done')"
#define FUNCTION_TO_UNDO "(SELECT count(*)" FUNCTION_OWED ")"
/* The place of the last of these. */
#define FUNCTION_LAST_OWED "CASE WHEN s.status = 'CANCELLING' THEN (SELECT max(t.i)" FUNCTION_OWED ") END"
/* 1 or 0. Not by EXISTS, which PostgreSQL may answer by reading the rows of all functions. */
#define FUNCTION_IS_THERE(rows) "CAST(coalesce((SELECT 1 FROM " rows " LIMIT 1), 0) AS bigint)"
/* Is there an entry that has not ended? */
#define FUNCTION_HAS_OPEN FUNCTION_IS_THERE("hx_entry o WHERE o.run = f.subject AND o.ended = 0")
/* Is there a child that is not CANCELLED? And while it is cancelled itself: the place of the last of these. */
#define FUNCTION_HAS_KIDS FUNCTION_IS_THERE("hx_run k WHERE k.parent = f.subject AND k.child <> 'cancelled'")
#define FUNCTION_STANDING                                                                                              \
	"CASE WHEN s.status = 'CANCELLING' THEN (SELECT max(e.i) FROM hx_run k JOIN hx_entry e ON e.run = f.subject"   \
	" AND e.child = k.subject WHERE k.parent = f.subject AND k.child <> 'cancelled') END"
/* Has a compensation failed? */
#define FUNCTION_UNDO_FAILED                                                                                           \
	"CASE WHEN s.status = 'CANCELLING' THEN " FUNCTION_IS_THERE(                                                   \
		"hx_entry c JOIN hx_entry u ON u.run = c.run AND u.label = c.label AND u.about = 'undo'"               \
		" AND u.state = 'failed' WHERE c.run = f.subject AND c.about = 'compensate'") " ELSE 0 END"
enum { FUNCTION_FIELDS(COLUMN_NAME) FN_NOW, FN_COLUMNS };
#define FN_STOPPED FN_COLUMNS /* of what function_read() reads: as of a run (run.h), for a call that makes children */
#define FN_ABOVE (FN_COLUMNS + 1) /* the same */

struct function_row {
	int64_t subject, row_version, fence, until, lease_ms;
	int64_t seq, taken_seq, cold_seq, revision, entries_n, bytes, lapses, failed_at, turn_at, due_at;
	int64_t parent, parent_n, depth, times_out_at, timeout_ms, keep_ms, to_undo, standing, last_owed, limit_max,
		slot, now;
	const char *status;
	bool owned, past, any_of, expired, undo_failed, has_open, has_kids;
	struct slice workspace, name, version, turn_version, worker, body_hash, awaits, held, retry, on_failure;
	struct slice key, input, run_awaits, trace, requester, attributes;
	struct slice asked; /* a word of its parent's; .p NULL: none */
	/* Of a call that makes children (struct run_row has the words): */
	bool stopped;
	int64_t above[RUN_ABOVE_MAX];
};

/* ---- what a worker sends ---- */

/* One entry of a call, as it was sent. */
struct function_change {
	enum entry_kind kind;
	enum entry_state
		state; /* of a step or an undo: BEGUN, DONE, FAILED (RETRY where it is to be tried again), UNKNOWN */
	struct slice name;
	int64_t n;
	struct slice policy, detail, output, error;
	struct slice event;                   /* of an event: its name */
	struct slice workflow, input;         /* of a child */
	int64_t retry_after_ms;               /* -1: none */
	int64_t until_ms, for_ms, timeout_ms; /* 0: none */
};

enum function_end_state {
	END_NONE,
	END_SUSPENDED,
	END_COMPLETED,
	END_FAILED,
	END_RELEASED,
	END_UNDONE,
	END_DIVERGED,
};

struct function_awaited {
	enum entry_kind kind;
	struct slice name;
	int64_t n;
};

struct function_end {
	enum function_end_state state;
	bool any;
	size_t awaits_n;
	const struct function_awaited *awaits;
	struct slice output, error;
	struct slice step;            /* that has failed, as verbs call it; .p NULL: none is named */
	struct slice expected, found; /* JSON */
};

struct function_request {
	struct slice workspace;
	int64_t subject;
	struct slice worker;
	int64_t fence, seq;
	int64_t lease_ms; /* 0: as it was claimed with */
	size_t changes_n;
	const struct function_change *changes;
	struct function_end end;
	struct slice hash; /* of the bytes */
	/* What is wrong with the entries or the end as they were written; told where it is asked whether they fit, not before. */
	struct hx_error unread;
	/* The machine of a child's workflow; see run.h. */
	run_machine_fn machine_of;
	const void *machine_context;
};

static inline bool function_is_heartbeat(const struct function_request *rq)
{
	return !rq->changes_n && rq->end.state == END_NONE && !rq->unread.code;
}

/*
 * Reads the entries and the end of a call into *rq; or why they cannot be, into rq->unread: HX_VALIDATION_ERROR, HX_BAD_ENTRY,
 * HX_TOO_LARGE, HX_JOURNAL_FULL with words. The texts borrow the JSON or are in the arena.
 */
void function_parse(struct json body, struct arena *arena, struct function_request *rq);

/* ---- a decision ---- */

struct function_event {
	struct slice id, name, data;
	int64_t at;
	bool taken;
};

struct function_kid {
	int64_t i, completed_at;
	struct slice state, output, error;
};

/* A run that is started for an entry. */
struct function_birth {
	struct function_birth *next;
	const struct function_entry *entry;
	const struct run_machine *machine; /* NULL: a function without a definition */
	struct slice workflow, input;
};

/* What was read, and what is made of it. All of it lies in the arena of its task. */
struct function_work {
	struct function_row row;
	size_t n, room;
	struct function_entry **entries; /* all that are open, and those that the call names; then those that it adds */
	size_t read_n;
	struct function_entry **by_name, **by_place; /* the first read_n, sorted: function_index.c */
	size_t events_n, kids_n;
	struct function_event *events;
	struct function_kid *kids;
	bool cut; /* there may be more events or children than were read: it is due again at once */
	size_t ended_n;
	struct function_entry *ended; /* after the seq of the call, before this decision */
	struct arena *arena;
	/* What is written: */
	bool writes;
	const char *to;  /* its status */
	bool frees;      /* nobody has the turn afterwards */
	bool if_past;    /* only if its lease is over */
	bool stays;      /* the row of the run is left as it is */
	bool shifts;     /* its version rises, whatever becomes of it: somebody has done something to it */
	bool taken;      /* a call was */
	bool lapses_now; /* the last call cannot be repeated any more */
	bool turn_ends;  /* by its worker's word */
	int64_t seq, entries_n, bytes, lapses, cold_seq, turn_at, due_at, failed_at;
	struct slice awaits, held, version;
	bool any_of;
	struct slice output, error; /* of the run; .p NULL: as it is */
	bool clears_error;
	int64_t times_out_at; /* from now on; 0: as it is */
	const char *step_status;
	struct function_birth *births;
	const struct function_event *new_event; /* one that comes with this decision; NULL: none */
	int64_t follows_n; /* entries that changed after the end of the step that its failure named */
	size_t polled_n;
	struct slice *polled;               /* names that the call wants children of, and that are polled for */
	struct slice kids_made, kids_asked; /* JSON, of function_prepare(): runs to be made, runs to be cancelled */
	bool kids_described;                /* some of those have attributes */
	bool asks_children;                 /* those of dropped entries are to be cancelled */
	bool asks_standing;                 /* the last that stands is */
	bool gives_back;                    /* events of dropped entries are there again */
	struct slice events_back;           /* JSON, of function_prepare(): places of these entries */
	int64_t lease_ms;                   /* of a turn that goes on */
	struct slice hash;                  /* of the call that is taken */
	struct slice run_awaits; /* of the run's row: event NAME, approval LABEL, child, person; .p NULL: nothing */
	bool describes;          /* the run is searched by other attributes after it */
	struct slice attributes; /* the same: as they are kept; empty: none */
	struct slice rows;       /* JSON: what function_prepare() makes of the entries; .p NULL: none has changed */
	size_t ended_now_n;
	struct function_entry **ended_now; /* of function_prepare(): those that have ended in this decision, by seq */
	enum hx_code code;                 /* of a refusal */
	const char *detail;
};

/*
 * Lines of a read, for function_work_take(). named: what a call names, of which that is read, too. ended_after: what has ended after
 * that seq is; -1: not.
 */
struct function_named {
	struct slice labels, asked, children; /* JSON; .p NULL: none */
	bool failed;                          /* the step that its failure named, and how many follow its end */
	bool lean; /* nothing that is open, which is all there is to it if the row has nothing open: else it is read again */
};
/* Of one entry, by how verbs call it. */
struct function_named function_named_so(struct slice called, struct arena *arena);
void function_read(struct unit *unit, struct slice workspace, int64_t subject, const struct function_named *named,
		   int64_t ended_after);
struct function_named function_named(const struct function_request *rq, struct arena *arena);
/* more: so many entries may be added. HX_NOT_FOUND, HX_RUN_EXPIRED, HX_TOO_LARGE. */
enum function_reading { FUNCTION_STATE, FUNCTION_CALL /* with what has ended */, FUNCTION_LEAN /* the same, lean */ };
enum hx_code function_work_take(const struct unit_result *result, size_t more, enum function_reading reading,
				struct arena *arena, struct function_work *ret_work) HX_MUST_CHECK;
/* After a decision, before its unit: false, the arena is full. */
bool function_prepare(struct function_work *w);
/* The unit of a decision. LOST: somebody was first. */
void function_write(struct unit *unit, const struct stamp *stamp, const struct function_work *work);
#define FUNCTION_LINE_SUBJECT 1 /* of that unit: what has become of the subject, or of the lease */

/* A change of an entry: the next seq is its. */
void work_change(struct function_work *w, struct function_entry *entry, enum entry_state state);
struct function_entry *work_find(const struct function_work *w, enum entry_kind kind, struct slice name, int64_t n);
struct function_entry *work_add(struct function_work *w, enum entry_kind kind, struct slice name, int64_t n);
bool work_refuse(struct function_work *w, enum hx_code code, const char *format, ...) HX_PRINTF(3, 4);
/* All that is open is dropped; tries that are due later, too, where nobody has the turn. */
void work_drop_open(struct function_work *w);

/*
 * Takes a call. False: it is refused (w->code), or it was taken before: then w->code is HX_OK, and what it is told is what has ended since.
 * ids are for the children that it starts.
 */
bool function_take(struct function_work *w, const struct function_request *rq, struct id_source *ids,
		   struct wall_time now);
/* What ends by itself: sleeps, timeouts, events, decisions, children. */
void function_settle(struct function_work *w);
/* The time of the whole run is over: it is cancelled. Of a look alone: what a worker says at that moment is taken. */
void function_time_out(struct function_work *w);
/* Where it rests after that: is a turn due, when does the engine look again, what does it wait for. */
void function_rest(struct function_work *w);
/* The lease of its worker is over: what was begun is unknown. False: it is not. */
bool function_lapse(struct function_work *w);
/* It is to end: everything open is dropped, and what is to be undone is. error: the reason; .p NULL: a person's wish. */
void function_cancel(struct function_work *w, struct slice error);

/* ---- a call, as a task ----
 *
 *   START ─▶ READING ─┬ refused ───────────────────────▶ DONE with the code; nothing has changed
 *               ▲     ├ it was taken before ───────────▶ HX_OK, told again
 *               │     └─▶ WRITING ─┬ won ──────────────▶ HX_OK
 *               └─ lost, unknown ──┴ failed ───────────▶ the store's error
 *   a heartbeat: BEATING in place of WRITING
 */
struct function_call {
	struct task task;
	const struct function_request *rq;
	struct arena *arena;
	struct function_work work; /* what is told: function_call_write() */
	int64_t until_ms;          /* 0: the turn has ended */
	/* private */
	struct function_named named;
	struct stamp stamp;
	unsigned tries;
};
void function_call_init(struct function_call *call, const struct function_request *rq, struct arena *arena);
/* {seq, completed, cancelled, paused, leaseUntil} */
void function_call_write(const struct function_call *call, struct strbuf *text);

/* ---- what a node does for it ----
 *
 *   START ─▶ READING ─┬ nothing to do ─▶ HX_OK
 *               ▲     └─▶ WRITING ─┬ won ─▶ HX_OK
 *               └─ lost ───────────┴ else ▶ the store's error; whoever looks next finds it again
 */
struct function_look {
	struct task task;
	int64_t subject;
	struct arena *arena;
	struct function_work work;
	bool lapsed, ended; /* what came of it, for the log */
	/* private */
	struct stamp stamp;
	unsigned tries;
};
void function_look_init(struct function_look *look, int64_t subject, struct arena *arena);

/* ---- claiming turns, with long poll ----
 *
 * Names with a limit are claimed one by one (function_limit.c), before the others or after them, as it happens:
 *
 *   PICKING which are due ─▶ TAKING one, with its slot ─┬ full ─▶ LINING UP ─▶ the next
 *                                                       └ else ─────────────▶ the next, or on
 *
 *   START ─▶ CLAIMING (and it is written down who polls for what; POLLING, before the PICKING) ─┬ some ─▶ LOADING, with their journals ─▶ HX_OK
 *               ▲                                                                             └ none ─┬ no time left ▶ HX_OK, none
 *               │                                                                                     └─▶ READING when the next is due ─▶ SLEEPING ─┐
 *               └───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────┘
 */
struct function_polled {
	struct slice name, version;
	int64_t lease_ms;            /* of its definition; 0: that of the claim */
	const struct limits *limits; /* the same; NULL: none */
};
struct function_warm {
	int64_t subject, seq;
};
struct function_claim_request {
	struct slice workspace, worker;
	size_t polled_n, warm_n;
	const struct function_polled *polled;
	const struct function_warm *warm;
	int64_t max, lease_ms, wait_ms;
	/* Nobody listens any more: asked before each try to claim, which is then the end. NULL: never. */
	bool (*gave_up)(const void *context);
	const void *gave_up_context;
};
/* One that is due and has a limit. */
struct function_pick {
	int64_t subject, version;
	struct slice name;
	struct bounds bounds;
};
struct function_turn {
	struct function_row row;
	int64_t from;
	size_t journal_n;
	struct function_entry *journal;
	bool more;
};
struct function_claim {
	struct task task;
	const struct function_claim_request *rq;
	struct arena *arena;
	size_t n;
	struct function_turn *turns; /* in the arena */
	bool full;                   /* with HX_TOO_LARGE: the workspace has FUNCTION_POLLS_MAX names and versions */
	/* private */
	struct stamp stamp;
	struct slice names, pairs, rows, ids; /* JSON, as the statements read them */
	struct slice plain, limited;          /* the same: names without a limit, and with one */
	bool has_plain, has_limited, limited_first, too_early;
	bool polled;    /* it is written down who polls for what */
	unsigned phase; /* of the two kinds of names, how many were looked at */
	size_t picks_n, at;
	struct function_pick *picks;
	int64_t subjects[FUNCTION_TURNS_MAX], fences[FUNCTION_TURNS_MAX];
	struct mono_time deadline, until;
};
void function_claim_init(struct function_claim *claim, const struct function_claim_request *rq, struct arena *arena);
size_t function_claim_places(const struct function_claim_request *rq, struct lane_place places[FUNCTION_POLLED_MAX]);
size_t function_claim_took(const struct function_claim *claim, const struct lane_place *place);

/* ---- units ---- */

/* It is polled for these; rows: JSON [[name, version], …]. LOST: there is no room for what is new among them. */
void function_poll(struct unit *unit, struct slice workspace, struct slice rows);
#define FUNCTION_POLL_LINES 2
/* What nobody has polled for so long, a unit's worth: the subject is any number. LOST: there is none. */
void function_poll_scan_expired(struct unit *unit, int64_t age_ms, int64_t limit);
void function_poll_expire(struct unit *unit, int64_t subject, int64_t age_ms);
/* The rows of a function, in the unit that creates its run, after its verdict. REFUSED: it has no definition, and nobody polls for it. */
void function_create(struct unit *unit, const struct stamp *stamp, const struct run_spec *spec);
/* In the unit that puts off its run (debounce.h): its turn is, too. */
void function_put_off(struct unit *unit, int64_t subject);
/* What the row of a new one says of a failure; NULL: it stays FAILED. */
const char *function_on_failure(const struct run_definition *definition);
/* Those that a node has to look at (flow/due_watch.h). */
extern const struct due_source function_due_source;
void function_row_take(const struct db_value *cells, struct arena *arena, struct function_row *row);
/* In the unit that ends a child, or brings an event: its parent is looked at. */
void function_due(struct unit *unit, int64_t subject);
/* Two lines: entries after that seq, in its order, up to so many bytes; and how many there are. */
void function_read_journal(struct unit *unit, int64_t subject, int64_t after, int64_t bytes_max);
/* Those of the whole journal that are shown as steps, by place. */
void function_read_steps(struct unit *unit, int64_t subject);
void function_read_key_steps(struct unit *unit, struct slice workspace, struct slice key);
/* The column after those of entry_of_row(): when it was undone. */
#define FUNCTION_STEP_UNDONE_AT 17
