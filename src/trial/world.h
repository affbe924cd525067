/*
 * A world: what services may do to a workflow that is explored (docs/explore.md), as a file says it. Whatever it does not say comes
 * from the action's `effect`. Immutable.
 *
 *   { "inputs": [ { "total": 2000 } ],
 *     "services": { "charge": { "may": ["done", "timeout_after"], "dedupes": false, "returns": { "id": "ch_1" } } } }
 *
 * And rules of the user's own: expressions over {"status", "doubt", "steps": {NAME: STATUS}, "ledger": {ACTION: how often it has
 * happened}}, of the run or the entity that is explored.
 *
 *   never           true in no state
 *   always          true in every state
 *   ends            true wherever nothing goes on any more
 *   sometimes       true in some state: one that is never reached says nothing about what would follow
 *
 *   done            it does what it was asked for, and says so
 *   failed          it does nothing, and says so; it may be asked again
 *   rejected        it does nothing, and never will
 *   failed_after    it says that it failed, and has done it all the same
 *   timeout         no answer, and it was not done
 *   timeout_after   no answer, and it was done
 *   late            no answer, and it is done at any time after that
 */
#pragma once

#include "base/json.h"
#include "model/expression.h"
#include "model/findings.h"

#define TRIAL_SERVICES_MAX 200
#define TRIAL_INPUTS_MAX 16
#define TRIAL_RULES_MAX 32

enum trial_may {
	MAY_DONE,
	MAY_FAILED,
	MAY_REJECTED,
	MAY_FAILED_AFTER,
	MAY_TIMEOUT,
	MAY_TIMEOUT_AFTER,
	MAY_LATE,
	MAYS_N,
};
const char *trial_may_name(enum trial_may may);

struct trial_service_said {
	const char *name; /* of the action */
	size_t line;
	unsigned may;        /* a bit for each; 0: not said */
	bool dedupes_said;   /* and as what: */
	bool dedupes;        /* by its key */
	bool guesses;        /* a probe: it says not_done of what is still to happen */
	bool voids;          /* a probe: what it says not_done of will not happen any more */
	struct json returns; /* with done; .raw.p NULL: not said */
};

enum trial_rule_kind { RULE_IS_NEVER, RULE_IS_ALWAYS, RULE_IS_ENDS, RULE_IS_SOMETIMES, RULE_KINDS_N };
extern const char *const trial_rule_kinds[RULE_KINDS_N + 1];

struct trial_rule_said {
	enum trial_rule_kind kind;
	const struct expression *expression;
	const char *text;
	const char *workflow; /* that it is about; NULL: all */
	size_t line;
};

struct trial_world {
	const char *file;
	size_t inputs_n;
	struct json inputs[TRIAL_INPUTS_MAX]; /* of runs, and of the steps of entities; none: {} */
	size_t services_n;
	const struct trial_service_said *services;
	size_t rules_n;
	const struct trial_rule_said *rules;
};

/* What is not valid is a finding, and stays as it would be without a file. Texts live in the arena of the findings. */
void trial_world_parse(const char *file, struct slice text, struct arena *arena, struct findings *findings,
		       struct trial_world *ret);
/* NULL: nothing is said about it. */
const struct trial_service_said *trial_world_service(const struct trial_world *world, const char *action);
/* Services, workflows and actions of rules that no definition has: a finding with the nearest name. */
struct definition_set;
void trial_world_check(const struct trial_world *world, const struct definition_set *set, struct findings *findings);
