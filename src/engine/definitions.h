/*
 * The workflows in force: read from the folder at the start and at a reload, or put through the API; every text
 * that was ever in force is a numbered version in the store.
 *
 * A set of definitions is checked as a whole (each alone, all together, coverage by janitors) before any of it
 * is taken into force, so a bad file changes nothing, and costs nothing when it is refused. The statements of sql
 * actions are checked by the store itself (EXPLAIN). Machines are never freed: tasks, prepared statements and
 * jobs point into them. That is bounded by DEFINITION_VERSIONS_MAX in one life of the process.
 */
#ifndef HX_ENGINE_DEFINITIONS_H
#define HX_ENGINE_DEFINITIONS_H

#include <pthread.h>

#include "engine/runner.h"
#include "flow/entity.h"
#include "model/config.h"

#define DEFINITIONS_MAX 1000
#define DEFINITION_VERSIONS_MAX 10000
#define DEFINITION_BYTES_MAX (4u << 20)
#define DEFINITION_STATEMENTS_MAX 1500 /* of sql actions, all versions together: connections prepare each once */
#define DEFINITION_TRIALS_MAX 1000     /* different statements that were tried, of refused definitions too */

struct definition {
	const struct entity_machine *machine;
	int64_t version; /* in the store */
};

struct definitions {
	pthread_rwlock_t lock;
	pthread_mutex_t changing; /* one change at a time, outside of the lock that readers take */
	struct arena arena;
	size_t n;
	size_t versions_n, statements_n, trials_n;
	struct trial *trials;
	struct definition current[DEFINITIONS_MAX];
};

void definitions_init(struct definitions *defs);
void definitions_release(struct definitions *defs);

/* The start and the reload: folder (may be NULL) and store, as one set. */
enum hx_code definitions_load(struct definitions *defs, const char *dir, struct runner *runner, struct clock *clock,
			      const struct config *config, struct findings *findings,
			      struct hx_error *err) HX_MUST_CHECK;
enum hx_code definitions_put(struct definitions *defs, struct slice name, struct slice text, struct runner *runner,
			     struct clock *clock, const struct config *config, struct findings *findings,
			     int64_t *ret_version, struct hx_error *err) HX_MUST_CHECK;

/*
 * What other nodes have put meanwhile: the set of the store, never of the folder, when the store's stamp is not *seen
 * (first: -1), which then is. ret_changes_n: how many definitions are not as they were. A set that is not valid here
 * is HX_CONFIG_ERROR, once; the old one stays.
 */
enum hx_code definitions_follow(struct definitions *defs, int64_t *seen, struct runner *runner, struct clock *clock,
				const struct config *config, struct findings *findings, size_t *ret_changes_n,
				struct hx_error *err) HX_MUST_CHECK;

const struct entity_machine *definitions_find(struct definitions *defs, struct slice workflow);
const struct action *definitions_action(struct definitions *defs, struct slice workflow, struct slice action);
void definitions_each(struct definitions *defs, void (*fn)(void *, const struct entity_machine *, int64_t version),
		      void *context);

#endif
