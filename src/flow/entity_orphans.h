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
 * Whoever is in one of these is an orphan, or may become one. The list is pure; the units count and guard.
 *
 * In a table of the user's only rows are counted that stand in a status that is lost: what else it holds is the user's business.
 */
#ifndef HX_FLOW_ENTITY_ORPHANS_H
#define HX_FLOW_ENTITY_ORPHANS_H

#include "db/unit.h"
#include "model/workflow.h"

#define ORPHANS_COUNT_MAX 100000 /* nobody needs to know of more */

enum orphan_why { ORPHAN_NOT, ORPHAN_GONE, ORPHAN_NO_CLAIM, ORPHAN_LEADS_AWAY, ORPHAN_MOVED };

/* Why an entity in this status would be one. ret_to (may be NULL): where it may end, of LEADS_AWAY. */
enum orphan_why orphan_why(const struct workflow *before, const struct workflow *after, struct slice status,
			   const char **ret_to);
/* The statuses that are lost, as a JSON array. False: none is. */
bool orphan_list(const struct workflow *before, const struct workflow *after, struct strbuf *out);

/* Entities that the engine keeps, of all workspaces, in statuses of this list. Rows: status, count. At most one more than the
 * maximum are counted. */
void orphans_count(struct unit *unit, const char *workflow, struct slice list);
/* Line MUST: there is none. */
void orphans_guard(struct unit *unit, const char *workflow, struct slice list);

#endif
