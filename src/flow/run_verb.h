/*
 * What callers do to a run: cancel, retry, pause, resume, send an event, decide an approval, resolve an unknown step, migrate it. Each
 * is read, decide, write: the write is guarded by the version that was read, so what was decided still holds.
 *
 * A run may be named by its workflow and key in place of its id; and an event may bring the run along that it is for:
 *
 *   START ─▶ STARTING ─┬ won: the run and its event are there, `created`
 *      │               └ lost: the key has a run ─┐
 *      └──────────────────────────────────────────┴▶ FINDING it ─┬─▶ READING, as below
 *                                                                └ HX_NOT_FOUND, HX_KEY_REUSED: of another workflow
 *
 * Insert and see, never look and insert. A key keeps its run for ever, so what was found stays true. A start that is debounced goes the
 * same way without an event: what it finds is the run of its key, which is left as it is, or the one that it replaces the input of
 * (`joins`); where that has begun meanwhile it starts again.
 *
 *   START ─▶ READING ─┬ refused: HX_NOT_FOUND, HX_RUN_EXPIRED, HX_WRONG_STATUS, HX_CONCURRENCY_ERROR …
 *               ▲     ├ nothing to do (cancelled already, an event seen before): HX_OK, `changed` is false
 *               │     └─▶ WRITING ─┬ won ──▶ HX_OK
 *               └─ lost, and no version was asked for ─┤ lost ─▶ HX_CONCURRENCY_ERROR
 *                                  └ unknown ▶ LOOKING_UP its op ─▶ either
 *
 *   verb      from                                        to                      and
 *   cancel    PENDING WAITING PAUSED FAILED, unowned,     CANCELLED               where no step is to be undone, in doubt or at
 *                                                                                 a worker
 *             the same, and RUNNING                       CANCELLING              due now unless owned
 *             CANCELLING, CANCELLED                       -                       nothing happens again
 *             COMPLETED                                   HX_ALREADY_COMPLETED
 *   pause     PENDING WAITING RUNNING                     PAUSED                  not due any more
 *             PAUSED                                      -                       nothing happens again
 *   resume    PAUSED                                      RUNNING while a step is under way, WAITING while it is held for a
 *                                                         person, else PENDING; due now unless owned, at a worker or held
 *   retry     FAILED                                      PENDING                 due now; redo + 1, all attempts again
 *             CANCELLING with a compensation that failed  CANCELLING              due now, all attempts again
 *   restart   FAILED, COMPLETED, no child                 the same                a new run goes on in its place (run_restart.h)
 *   event     not terminal, a step that takes it ahead    the same                a row; due now if it awaits it
 *   approve   WAITING, PAUSED or PENDING at that step     the same                a row, once; due now unless paused
 *   debounce  PENDING, never begun, nobody's              the same                another input, and another key; due later
 *   migrate   PENDING WAITING PAUSED FAILED CANCELLING,   the same                of another version of its definition, with its parts
 *             no step under way or unknown, no part                               (run_migrate.h); due now, if it goes on by itself
 *   asked     what its parent asks for is done as above; what does not lead anywhere is dropped. A parent may cancel
 *             a COMPLETED one, too: through CANCELLING
 *   resolve   at a step that is UNKNOWN                   PENDING, or the same    done: the row of the step, or its marker;
 *             (WAITING, PAUSED, CANCELLING)                                       not_done: begun anew, with the same key; a PAUSED one stays so
 *
 * A run that is a function is read once more, with its journal, and decided on by function_verb.h.
 *
 * A run that was restarted is left by all of them: HX_RESTARTED.
 *
 * The write of the run's row stands after the shift, as a verdict too, with "expired = 0": retention changes no version.
 * Without a version asked for, cancel and pause of a run that is owned shift it whatever its version is (version 0 of
 * subject_shift): their decision depends on nothing but status and owner, and a fast run would otherwise outrun them.
 * An event that was seen before is told so before anything is refused, also when the run has ended.
 *
 * Each raises the version by one, event and approval too (they shift to the same status, so that the history tells of
 * them, and a node that has looked for events before finds its move lost). An approval's row has the id
 * "approval/STEP/REDO": of two decisions one is there, the other is told HX_WRONG_STATUS. run_event.name is what the
 * run would await for it: "event NAME", "approval STEP".
 */
#pragma once

#include "flow/function.h"
#include "flow/run.h"
#include "flow/run_drive.h"
#include "flow/run_migrate.h"
#include "flow/run_restart.h"

enum run_verb_kind {
	RUN_CANCEL,
	RUN_PAUSE,
	RUN_RESUME,
	RUN_RETRY,
	RUN_EVENT,
	RUN_APPROVE,
	RUN_RESOLVE,
	RUN_RESTART,
	RUN_MIGRATE,
	RUN_OBEY,     /* what its parent asks for (run_children.h): one of the first four */
	RUN_DEBOUNCE, /* a start, of a workflow that has one (debounce.h): it makes a run, or replaces the input of one */
};

/* Something that goes into the very unit that writes (the record of an Idempotency-Key, of a delivery). */
struct run_verb;

struct run_along {
	/* Adds lines, after all others; may be called again for the same unit. */
	void (*add)(struct run_along *along, const struct run_verb *verb, struct unit *unit);
	void (*won)(struct run_along *along, const struct unit_result *result);
	/* Was the unit lost by one of these lines? Then the verb ends with HX_OK, as a duplicate. NULL: they decide nothing. */
	bool (*lost)(struct run_along *along, const struct unit_result *result);
	/* Of the run as it was read, before anything is decided: HX_OK, or the verb ends with this. NULL: it may. */
	enum hx_code (*check)(struct run_along *along, const struct run_row *row);
};

/* Immutable while the task lives; texts are the caller's. */
struct run_verb_request {
	enum run_verb_kind kind;
	struct slice workspace;
	int64_t subject;            /* 0: it is found by its key */
	struct slice workflow, key; /* .p NULL: none */
	const struct run_spec *
		start; /* event, debounce: the run that is made where the key has none, but for its subject; NULL: none is */
	int64_t version;       /* what it must be; 0: any */
	struct slice name;     /* of the event, of the step */
	struct slice event_id; /* empty: a fresh one */
	bool own_id;           /* it is the engine's own: no caller's is ever the same */
	struct slice data; /* of the event, of the decision; resolve: the output; migrate: old and new names. JSON */
	bool done;         /* resolve */
	int64_t definition_version;    /* migrate */
	struct slice function_version; /* the same, of a function: its user's word; .p NULL: none */
	bool dry_run;                  /* migrate: it is only decided */
	struct slice reason;           /* why the requester wants it, for the history; empty: not said */
	struct slice requester;        /* who gives the reason; migrate: who; restart: of the new run */
	struct slice traceparent;      /* restart: of the new run; its input is the data, .p NULL: as it was */
	const struct run_policy *policy;
	struct run_along *along; /* NULL: nothing */
};

enum { VERB_NEW, VERB_STARTING, VERB_FINDING, VERB_READING, VERB_FUNCTION, VERB_WRITING, VERB_LOOKING_UP, VERB_DONE };

struct run_verb {
	struct task task;
	const struct run_verb_request *rq;
	struct arena *arena;
	/* What the caller may tell afterwards. */
	const char *detail; /* of a refusal; NULL: the code says it all */
	const char *status; /* the run's, reached or found */
	int64_t version;
	bool changed;               /* something was written now */
	bool duplicate;             /* an event that was seen before */
	struct run_restart restart; /* .subject: the new run */
	struct run_migration migration;
	bool created; /* with the run itself, as `start` has it */
	bool joins;   /* its start has replaced the input of a run that has not begun */
	/* private: run_verb.c */
	enum run_verb_kind kind; /* the request's; of what its parent asks for, that */
	int64_t subject;         /* the request's, or as it was found; or the part of it whose step is meant */
	bool in_part;            /* it is; what is told is of the run itself */
	struct run_row row;
	const char *to;          /* the status after it */
	bool due;                /* the write makes the run due at once */
	struct slice event_id;   /* of its row; while reading, for a decision, without the redo */
	struct slice awaits;     /* of a run that waits for it: its name */
	struct slot slot;        /* whose line it leaves; .name 0: none */
	struct slot line;        /* of an action, the same */
	bool leaves;             /* these are all that it stands in */
	int64_t singleton;       /* it counts again (singleton.h); 0: it is none */
	bool by_name;            /* a start that is debounced: what was found is not the run of its key */
	int64_t alias;           /* of such a one: for the row of its key */
	struct slice attributes; /* the same: of the run with its new input; .p NULL: none */
	unsigned tries;
	struct stamp stamp;
	struct function_work *work; /* of a function (function_verb.h); NULL: it is none */
	struct function_named named;
};

void run_verb_init(struct run_verb *v, const struct run_verb_request *rq, struct arena *arena);
