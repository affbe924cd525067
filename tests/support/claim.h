/*
 * For tests of lanes and stores, which want a task that holds a claim and nothing more: claim, act, then finish or release.
 * What the engine runs is flow/entity_step.h.
 *
 *   START ─▶ READING ─▶ CLAIMING ─┬ won ─▶ ACTING ─┬ ok ─────────────▶ FINISHING ─┬ won ─▶ HX_OK
 *                                 │                │                              └ lost ▶ HX_OUTCOME_UNKNOWN
 *                                 │                ├ failed, invalid ▶ RELEASING ─▶ HX_ACTION_FAILED, HX_INVALID
 *                                 │                └ unknown, claim_lost ─▶ HX_OUTCOME_UNKNOWN
 *                                 └ lost ▶ HX_CLAIM_FAILED              (the janitor restores revert_to)
 *
 * A unit whose commit is unknown is followed by LOOKING_UP its op, which decides as the unit itself would have.
 *
 * Invariants:
 *  C1  The action starts only after the claim is durable and known to be ours, with the fence it gave us, and while
 *      its lease can still be trusted: a commit, or finding out about one, may take longer than the lease.
 *  C2  Finish and release carry that fence; a holder that was replaced changes nothing by them.
 *  C3  The caller always learns what the action itself said: a release that is lost or fails does not hide it.
 *  C4  A release is never sent after an unknown outcome: only time and the janitor end such a claim.
 */
#ifndef HX_TESTS_SUPPORT_CLAIM_H
#define HX_TESTS_SUPPORT_CLAIM_H

#include "flow/subject.h"
#include "task/task.h"

/* Immutable while the task lives. */
struct claim_plan {
	int64_t subject;
	const char *from;
	const char *claim_into;
	const char *successful_state;
	const char *revert_to;
	int64_t lease_ms;
	const void *action; /* for the act port */
	struct slice input;
};

enum claim_at {
	CLAIM_NEW,
	CLAIM_READING,
	CLAIM_CLAIMING,
	CLAIM_LOOKING_UP_CLAIM,
	CLAIM_ACTING,
	CLAIM_FINISHING,
	CLAIM_LOOKING_UP_FINISH,
	CLAIM_RELEASING,
	CLAIM_DONE,
};

struct claim {
	struct task task;
	const struct claim_plan *plan;
	enum claim_at at;
	int64_t version; /* read, then reached */
	int64_t fence;   /* ours, once claimed */
	int64_t effort;  /* with the subject and the action it names the effect, also after a crash */
	bool doubt;      /* an earlier try of it may have been done */
	char key[48];
	enum act_outcome outcome;
	enum hx_code code;
	/* private */
	struct stamp stamp;
	struct mono_time asked; /* before the claim was sent: the lease is trusted from here */
};

void claim_init(struct claim *c, const struct claim_plan *plan);

#endif
