/*
 * Orphans: entities that a new version of their definition would leave behind, in a status that it does not have.
 *
 * What is lost from one version to the next, of the statuses of the first:
 *
 *   GONE        the second has no such status: no step leads out of it any more
 *   NO_CLAIM    a claim status that nothing claims into any more: no janitor would end a claim that is stuck in it
 *   LEADS_AWAY  a claim status, kept, out of which a step of the first version may still end in a status that is GONE
 *   MOVED       all of them: the engine kept the entities, and now they are to live in a table of the user's
 *
 * Whoever is in one of these is an orphan, or may become one.
 *
 * A claim is lost in a status that stays, too. Whoever ends it, a person or a janitor, looks for its step by (step_key, from, into) and
 * requester in the definition in force. Without it nobody can resolve it, and a janitor reverts what was to be held or probed.
 * So a claim is lost when the step claims otherwise in the second version for any requester; all claims of that step count then, whoever
 * made them. Live claims count as well as held ones: their node may die.
 *
 * In a table of the user's only rows are counted that stand in a status that is lost: what else it holds is the user's business.
 * The claims on its rows are the engine's: when another version leaves the table, all of them are lost.
 *
 * The lists are pure. The units count who is there, and write a version after a guard that counts nobody: between the two anybody
 * may have come.
 */
#pragma once

#include "base/clock.h"
#include "db/unit.h"
#include "model/workflow.h"

#define ORPHANS_COUNT_MAX 100000 /* nobody needs to know of more */

enum orphan_why { ORPHAN_NOT, ORPHAN_GONE, ORPHAN_NO_CLAIM, ORPHAN_LEADS_AWAY, ORPHAN_MOVED };

/* Why an entity in this status would be one. ret_to (may be NULL): where it may end, of LEADS_AWAY. */
enum orphan_why orphan_why(const struct workflow *before, const struct workflow *after, struct slice status,
			   const char **ret_to);
/* The statuses that are lost, as a JSON array. False: none is. */
bool orphan_list(const struct workflow *before, const struct workflow *after, struct strbuf *out);

/* The claims that are lost in statuses that are not, as a JSON array of "step_key:from:into", some of them twice. False: none is. */
bool orphan_list_claims(const struct workflow *before, const struct workflow *after, struct strbuf *out);
/* The rows that claims are on are not those of the second version. */
bool orphan_leaves_table(const struct workflow *before, const struct workflow *after);

/* Entities that the engine keeps, of all workspaces, in statuses of this list. Rows: status, count. At most one more than the
 * maximum are counted. */
void orphans_count(struct unit *unit, const char *workflow, struct slice list);
/* The same for claims of this list, on rows of the user's too. Rows: status, step_key, from, count. */
void orphans_count_claims(struct unit *unit, const char *workflow, struct slice list);

/* A version to be written. Lists as above, of what may not be there then; empty: nothing is lost. */
struct new_version {
	const char *workflow;
	int64_t version;
	struct slice text;
	struct wall_time at;
	struct slice lost;
	struct slice lost_claims;
};

/* LOST: the store has this number already. REFUSED: somebody is in what is lost. */
void orphans_add_version(struct unit *unit, const struct new_version *version);
