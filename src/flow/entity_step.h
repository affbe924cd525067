/*
 * Firing a step of an entity's workflow: the order of the contract, as a task.
 *
 *            ┌ no claim ────────────────────────────┐
 *   READING ─┼▶ CLAIMING ─▶ VALIDATING ─▶ ACTING ─▶ FINISHING ─▶ HX_OK
 *            │      │           │           │ │         ├ lost, with a claim:    HX_OUTCOME_UNKNOWN
 *            │      │ lost      │ rejected  │ │         ├ lost, without one:     HX_CONCURRENCY_ERROR
 *            │      ▼           │ failed    │ │         └ its sql was refused ─▶ RELEASING
 *            │   READING *      ▼           ▼ │
 *            │              RELEASING ◀───────┤ unknown ─▶ on_unknown: revert  leave it to the janitor
 *            │                  │             │                        retry   ACTING, same key, a few times
 *            │                  ▼             │                        probe   PROBING ─▶ FINISHING, RELEASING, or leave it
 *            │       HX_ACTION_FAILED, HX_INVALID                      hold    HOLDING: parked for a person
 *            │                                └─────▶ HX_OUTCOME_UNKNOWN
 *            ├▶ PUTTING_AWAY (the claim before is in doubt) ─▶ READING
 *            ├▶ PUTTING_AWAY (what is kept was begun inside the store, and not done: its key is given up) ─▶ READING
 *            ├▶ RECOVERING (a janitor: take over a claim past its time) ─▶ PROBING …
 *            ├▶ FINISHING or RELEASING (a person resolves a held claim)
 *            ├▶ PROBING (a person asks about a held claim) ─▶ HX_OK, whatever it says: nothing is decided by it
 *            └▶ CHANGING (its data, by a person or a program: no step)
 *
 * A unit whose commit is unknown is followed by LOOKING_UP its op.
 * (*) Another version by now: CLAIM_FAILED. The same: it was lost to a call without a claim, which is in doubt or was answered; what is
 * kept decides, as if it had been read at first.
 *
 * Invariants:
 *  E1  After-effects are written in the unit that finishes, and nowhere else.
 *  E2  The key of the effect is (entity, effort, step): the same until the action of this step has given a definite answer, whatever
 *      other steps do (kept_call.h). Validation, probe and after-effects have keys of their own (call_key.h).
 *  E3  No call is begun before the claim is durable and known to be ours, nor under a lease that may be over: a commit, or
 *      finding out about one, may take longer than the lease.
 *  E4  A claim whose outcome is unknown is never released by us; only the janitor, a probe or a person end it.
 *  E5  All calls under the key of the effect are one request: the first is written down before it is sent, and whoever comes
 *      after it sends that, for the same requester, by the same version of the definition, or nothing (HX_IN_DOUBT). While
 *      there is a claim, what is written down is its own call.
 *  E6  Finish and release carry the fence of the claim; a holder that was replaced changes nothing by them.
 *  E7  The caller always learns what the action itself said: a release that is lost or fails does not hide it.
 *  E8  A caller who hears HX_STORE_UNAVAILABLE has left no call written down that was never made, for others to take for one in
 *      doubt: where that cannot be known, it is HX_OUTCOME_UNKNOWN. (A claim's is left to its time.)
 *  E9  What a step saves in the entity's data is written with its transition, or not at all.
 *  E10 A slot of the action's limits (call_limit.h) is taken in the unit of the claim, and gone with the unit that ends the claim or parks
 *      it for a person, whoever does. Who finds it full has done nothing, and is told so (HX_LIMITED): a caller stands in no line.
 */
#pragma once

#include "flow/entity.h"
#include "flow/probe.h"
#include "flow/slot.h"
#include "task/task.h"

#define STEP_UNKNOWN_RETRIES 2

enum step_mode {
	STEP_FIRE,
	STEP_RECOVER,      /* a janitor's: the claim is past its time and its step wants a probe */
	STEP_RESOLVE_DONE, /* a person's word on a held claim */
	STEP_RESOLVE_NOT_DONE,
	STEP_ASK,    /* a person's question about one: what does its probe say now? Nothing is written */
	STEP_CHANGE, /* no step: `input` is merged into its data */
};

struct entity_step;

/*
 * What the caller wants written in the very unit that brings the step to its good end (the finish; for a person's
 * "not done" the release), so that both are there or neither is.
 */
struct step_along {
	/*
	 * Adds lines that decide nothing (ANY), after all others. Whatever the step will tell its caller is known:
	 * it leads to `status`, the version is the step's own + 1, the time its stamp's. As an ask it may be called
	 * again for the same unit, and its texts must live until the step has ended.
	 */
	void (*add)(struct step_along *along, const struct entity_step *step, const char *status, struct unit *unit);
	/* The unit is durable. Not called where that was found out later: then there are no rows to show. */
	void (*won)(struct step_along *along, const struct unit_result *result);
};

/* NULL: this version is not known here (yet). */
typedef const struct workflow *(*step_workflow_fn)(const void *context, struct slice workflow, int64_t version);

/* Immutable while the task lives; texts are the caller's. */
struct step_request {
	enum step_mode mode;
	struct entity_ref ref;
	struct slice step_key;
	struct slice requester;
	struct json input;   /* FIRE; RESOLVE_DONE: the output that the person gives; CHANGE: a merge patch */
	int64_t version;     /* FIRE, RESOLVE: what it must be; 0: any. CHANGE: likewise, but never 0 */
	struct slice reason; /* RESOLVE: why the person says so; empty: not said */
	int64_t subject;     /* RECOVER: instead of ref.name */
	int64_t lease_ms;    /* for views without one of their own */
	struct slice traceparent;
	struct step_along *along; /* NULL: nothing */
	/* Finds another version of the machine's definition: a call in doubt is made again by the one that made it. Pure. */
	step_workflow_fn workflow_of;
	const void *context;
};

enum step_at {
	STEP_NEW,
	STEP_READING,
	STEP_AWAITING, /* the definition by which a call in doubt was made is being brought: then it is read again */
	STEP_PUTTING_AWAY, /* the claim before is in doubt: its call gets a row of its own; or that is of no use. It is read again */
	STEP_ADOPTING, /* the user's own table: the row gets its shadow, then it is read again */
	STEP_CLAIMING,
	STEP_LOOKING_UP_CLAIM,
	STEP_RECOVERING,
	STEP_VALIDATING,
	STEP_NOTING, /* no claim: the call is written down before it is begun */
	STEP_LOOKING_UP_NOTE,
	STEP_ACTING,
	STEP_PROBING,
	STEP_FINISHING,
	STEP_LOOKING_UP_FINISH,
	STEP_CHANGING,
	STEP_LOOKING_UP_CHANGE,
	STEP_RELEASING,
	STEP_HOLDING,
	STEP_PUTTING_OFF, /* the probe is not to be asked again for longer than the lease: so long the claim stays */
	STEP_ANSWERING,   /* no claim, definite failure: the next try is another effect */
	STEP_DONE,
};

struct entity_step {
	struct task task;
	const struct step_request *rq;
	struct arena *arena;
	/* What the caller may tell afterwards. */
	const char *status; /* reached, or the one it was found in when the step was refused */
	int64_t version;
	struct slice data;
	struct slice output;     /* JSON of the action (HX_OK, HX_INVALID), else words */
	struct slice reason;     /* for the history, where there is more to tell than the step; empty: nothing */
	struct slice attributes; /* what it is searched by, as it is kept; .p NULL: nothing */
	struct wall_time updated_at;
	enum probe_says says; /* of ASK: with PROBE_DONE `output` is JSON */
	/* With HX_ACTION_FAILED, HX_OUTCOME_UNKNOWN: the other side wants no further try for so long. With HX_LIMITED: there may be room then. */
	int64_t not_before_ms;
	/* private */
	const struct step *step;
	const struct step_view *view;
	const struct step_view
		*call; /* by which the action is called: another version's, where that call is in doubt */
	int64_t call_version;
	int64_t subject, fence, attempt, unknowns;
	int64_t effort;       /* of the step's key */
	int64_t counter;      /* of the subject, as it was read */
	int64_t kept_version; /* of the definition that has made the call that is kept */
	enum act_outcome outcome;
	bool claimed;
	bool acted;        /* an action outside of the store may have had an effect */
	bool look;         /* for what is kept of the step */
	bool looked;       /* that was read */
	bool kept;         /* there is a call of this step that was begun before (kept_call.h) */
	unsigned kept_row; /* where it was read */
	bool doubt;        /* an earlier try of this effect may have been done: another holder's, or one of ours */
	bool answered;     /* the action said for good that it did nothing: the next try is another effect */
	unsigned adopted, rewritten; /* how often that was tried */
	bool overrun;     /* the claim was gone before the step had ended: what it still wrote changed nothing */
	bool redescribed; /* `attributes` are others than those that were read */
	struct slice workspace, name, requester, input;
	struct slice sender, address, sent_data; /* of the call: those of the first try under its key (step_kept.c) */
	const char *from;                        /* the status that it was made in */
	bool noted;
	bool half_noted;      /* a note of ours may stand, and its commit was not answered */
	unsigned notes;       /* how often that was lost, or the claim */
	int64_t lost_version; /* over which the claim was; 0: it was not */
	unsigned waits;       /* for a definition */
	struct slice key;     /* of the step's own effect */
	struct bounds bounds; /* of its action, where it claims */
	bool over_claim;      /* it is still noted as claimed, although its row in the user's table has moved on */
	struct slice call_key, body; /* of the call that is under way */
	struct slice effect_payload;
	int64_t effect_ids[STEP_AFTER_EFFECTS_MAX];
	struct slice effect_keys[STEP_AFTER_EFFECTS_MAX];
	const struct db_value *sql_values;
	struct stamp stamp;
	char stamp_text[WALL_TIME_TEXT_BYTES];
	struct mono_time asked;
};

void entity_step_init(struct entity_step *s, const struct step_request *rq, struct arena *arena);
