/*
 * A world: what services may do to a workflow that is explored (docs/explore.md), as a file says it, or a definition under `world`. To the
 * engine it means nothing. Whatever it does not say comes
 * from the action's `effect`. Immutable.
 *
 *   { "inputs": [ { "total": 2000 } ],
 *     "services": { "charge": { "may": ["done", "timeout_after"], "dedupes": false, "returns": { "id": "ch_1" } } } }
 *
 * And rules of the user's own (model/user_rule.h), about the run or the entity that is explored; and tables of the user's, as statements
 * that make and fill them.
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
#include "model/findings.h"
#include "model/user_rule.h"

#define TRIAL_SERVICES_MAX 200
#define TRIAL_INPUTS_MAX 16
#define TRIAL_TABLES_MAX 16
#define TRIAL_TABLE_BYTES_MAX 2000

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
	const char *tells;   /* a workflow: a hook of whose is called back once it is done; NULL: nobody */
	const char *event;   /* what that signals; of an entity the step that it fires; NULL: it starts the run */
};

struct trial_world {
	const char *file;
	size_t inputs_n;
	struct json inputs[TRIAL_INPUTS_MAX]; /* of runs, and of the steps of entities; none: {} */
	struct json events; /* of functions: what comes with each, by its name; .raw.p NULL: nothing */
	size_t services_n;
	const struct trial_service_said *services;
	size_t tables_n;
	const char *tables[TRIAL_TABLES_MAX]; /* each one statement: CREATE TABLE, CREATE UNIQUE INDEX or INSERT INTO */
	struct user_rules rules;
};

/* What is not valid is a finding, and stays as it would be without a file. Texts live in the arena of the findings. */
void trial_world_parse(const char *file, struct slice text, struct arena *arena, struct findings *findings,
		       struct trial_world *ret);
/*
 * That of a definition, which has no rules: those of the definition stand beside it. The node may be NULL; NULL: it has none. A service
 * that is not in the list of its actions, which ends with NULL, is a finding.
 */
const struct trial_world *trial_world_read(const struct reader *r, const struct json_node *node,
					   const char *const *actions);
/* NULL: nothing is said about it. The world may be NULL. */
const struct trial_service_said *trial_world_service(const struct trial_world *world, const char *action);
/* What comes with an event; {} where nothing is said. */
struct json trial_world_event(const struct trial_world *world, const char *event);
/* Services, workflows and actions of rules that no definition has: a finding with the nearest name. */
struct definition_set;
void trial_world_check(const struct trial_world *world, const struct definition_set *set, struct findings *findings);
