/*
 * A workflow definition of kind `entity`, parsed, resolved and checked. Immutable from then on and never freed
 * while the program runs (statements and tasks point into it); a changed definition is a new object.
 *
 * Every step field may be one value for all or a map by requester. Here that is resolved: a step has one view per
 * requester that any map of the workflow names, and one more for anyone else (the last, also used for a requester
 * called "default"). The rules are checked over these views.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/strbuf.h"
#include "model/action.h"
#include "model/attributes.h"
#include "model/findings.h"
#include "model/trial_world.h"

#define WORKFLOW_NAME_MAX 64 /* workflow, status, step_key, requester, action: bytes */
#define WORKFLOW_STATUSES_MAX 1000
#define WORKFLOW_STEPS_MAX 1000
#define WORKFLOW_REQUESTERS_MAX 64
#define WORKFLOW_ACTIONS_MAX 200
#define WORKFLOW_TEXT_BYTES_MAX (16u << 20)
#define WORKFLOW_JSON_VALUES_MAX (1u << 18)
#define STEP_AFTER_EFFECTS_MAX 4

enum on_unknown { UNKNOWN_REVERT, UNKNOWN_RETRY, UNKNOWN_PROBE, UNKNOWN_HOLD };

/* Where the status is a map there is a step for each status in it: is this the requester's? */
enum view_start { STARTS_HERE, STARTS_ELSEWHERE, STARTS_NOWHERE };

/* A step as one requester sees it. */
struct step_view {
	bool allowed;          /* starts here, has a successful_state, and an action where others have one */
	enum view_start start; /* not here: the rest is empty */
	const char *successful_state;
	const char *claim_into; /* NULL: no claim */
	const char *revert_to;
	size_t claim_line;               /* where the claim is written; 0: no claim */
	const struct action *action;     /* NULL: nothing to do but the transition */
	const struct action *validation; /* NULL: none */
	const char *save_as; /* the member of the entity's data that its output becomes; NULL: it is not kept */
	size_t after_effects_n;
	const struct action *after_effects[STEP_AFTER_EFFECTS_MAX];
	int64_t entry_lock_ms; /* 0: off */
	int64_t lease_ms;      /* 0: the module's stuck_after */
	enum on_unknown on_unknown;
	bool unknown_on_5xx;
};

struct step {
	int64_t step_id;
	const char *step_key;
	const char *status; /* of a map: one of its values. (step_key, status) has one step for each requester */
	const struct step_view *views; /* one per workflow->requesters, then anyone else */
	size_t line;
};

/* Where the entity lives when it is the user's own table. */
struct user_table {
	const char *table; /* NULL: the engine keeps the entity */
	const char *id, *status, *version, *updated_at;
};

/* What a definition of any kind has; HEAD_OF (head.h) fills it. */
#define HEAD_MEMBERS                                                                                                   \
	const char *name;                                                                                              \
	const char *module; /* meta.module, default: the definition's name */                                          \
	const char *file;                                                                                              \
	struct slice text; /* the definition as written */                                                             \
	size_t actions_n;                                                                                              \
	const struct action *actions;   /* by name */                                                                  \
	struct user_rules rules;        /* of the user's own: see user_rule.h */                                       \
	const struct trial_world *world /* see trial_world.h; NULL: none */

struct workflow {
	HEAD_MEMBERS;
	struct user_table table;
	size_t statuses_n;
	const char *const *statuses;
	const char *initial_status;
	size_t requesters_n;
	const char *const *requesters; /* sorted, without "default" */
	size_t steps_n;
	const struct step *steps;
	struct attributes attributes;       /* over .data: what its entities are searched by */
	const struct workflow_index *index; /* what the lookups below search */
};

/* The requester's step of this key from this status; NULL: none. One who has no status at all gets that of others. */
const struct step *workflow_step(const struct workflow *w, struct slice step_key, struct slice status,
				 struct slice requester);
bool workflow_has_step(const struct workflow *w, struct slice step_key);
/* Never NULL: an unknown requester is anyone else. */
const struct step_view *workflow_view(const struct workflow *w, const struct step *step, struct slice requester);
bool workflow_has_status(const struct workflow *w, struct slice status);
/* "admin", or "anyone else" for the last view. */
const char *workflow_view_name(const struct workflow *w, size_t view);
/* Some view claims into it. */
bool workflow_is_claim_status(const struct workflow *w, struct slice status);
/* The revert_to of a claim status (rule 6: there is one); NULL when it is none. */
const char *workflow_revert_of(const struct workflow *w, struct slice claim_into);

/*
 * Parses one definition. All findings are added, not the first alone; *ret is NULL when there is an error among
 * them. The workflow lives in *arena.
 */
void workflow_parse(const char *file, struct slice text, struct arena *arena, struct findings *findings,
		    const struct workflow **ret);
/* Rules over several workflows: 6 and 8 over all of those on the same table. */
void workflows_check(const struct workflow *const *workflows, size_t n, struct findings *findings);
