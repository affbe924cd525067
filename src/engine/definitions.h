/*
 * The definitions in force, of all kinds: read from the folder at the start and at a reload, or put through
 * the API; every text that was ever in force is a numbered version in the store.
 *
 * A set of definitions is checked as a whole (each alone, all together, coverage by janitors) before any of it
 * is taken into force, so a bad file changes nothing, and costs nothing when it is refused. The statements of sql
 * actions are checked by the store itself (EXPLAIN). Machines are never freed: tasks, prepared statements and
 * jobs point into them. That is bounded by DEFINITION_VERSIONS_MAX in one life of the process.
 *
 * An entity is moved by the version that is in force; a call of it that is in doubt, and an after-effect's, is made again by the
 * version that made it, which is loaded when it is asked for. Runs and batches keep the one that they started with: at the start
 * those that they refer to are loaded, first of all those of runs and batches that have not ended, and one that is not there (another
 * node has put and used it since, or there was no room for what has ended) when it is asked for.
 */
#pragma once

#include <pthread.h>

#include "act/native.h"
#include "base/log.h"
#include "engine/definition_statements.h"
#include "engine/definition_trial.h"
#include "engine/definition_versions.h"

#define DEFINITIONS_MAX 1000
#define DEFINITION_VERSIONS_MAX 10000
#define DEFINITION_BYTES_MAX (4u << 20)
#define DEFINITION_STATEMENTS_MAX                                                                                      \
	STATEMENTS_MAX /* of sql actions and tables, different ones, in all versions together */

struct definitions {
	pthread_rwlock_t lock;
	pthread_mutex_t changing; /* one change at a time, outside of the lock that readers take */
	struct arena arena;
	const struct natives *natives;
	bool natives_all; /* a definition that names another one is refused, also where the store has it */
	_Atomic(const char *) left_runs; /* JSON ["workflow@version"]: they need a function that is absent here */
	_Atomic(const char *) left_jobs; /* JSON ["workflow/action"]: the same, of what is in force */
	struct log *log;                 /* for each that comes into force; NULL: nobody is told */
	struct trials trials;
	struct versions versions;
	struct statements statements; /* of sql actions */
	size_t versions_n, tables_n;  /* ever made ready; of the latter, their statements */
	size_t n;
	const struct machine *current[DEFINITIONS_MAX];
};

/*
 * natives: what functions there are; NULL: that is not known, and every name is accepted. wanted is called, in whatever
 * thread, when a version was asked for that definitions_load_wanted() has to bring; NULL: nobody is told.
 */
void definitions_init(struct definitions *defs, const struct natives *natives, void (*wanted)(void *context),
		      void *context);
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

/*
 * Brings the versions that were asked for in vain. Costs nothing when there are none. What cannot serve here is told as a
 * warning, once.
 */
enum hx_code definitions_load_wanted(struct definitions *defs, struct runner *runner, struct findings *findings,
				     size_t *ret_loaded_n, struct hx_error *err) HX_MUST_CHECK;

/* What is in force under this name; NULL: nothing, or it is of another kind. */
const struct entity_machine *definitions_find(struct definitions *defs, struct slice workflow);
const struct run_machine *definitions_run(struct definitions *defs, struct slice workflow);
const struct batch_machine *definitions_batch(struct definitions *defs, struct slice workflow);
/* No definition has the name, or one of kind function does. Whether anybody polls for it, only the store knows. */
bool definitions_may_be_function(struct definitions *defs, struct slice name);
/* Its machine, should it have a definition; NULL: it has none. */
const struct run_machine *definitions_function(struct definitions *defs, struct slice name);
/*
 * For a run or a batch that is there: any version, without a lock. NULL: it is not known here (yet), and wanted from now
 * on.
 */
const struct run_machine *definitions_run_version(struct definitions *defs, struct slice workflow, int64_t version);
const struct batch_machine *definitions_batch_version(struct definitions *defs, struct slice workflow, int64_t version);
/* What the feeders of runs and of after-effects leave to other programs, as run_scan_due() and job_scan_due() take it. */
struct slice definitions_left_runs(const struct definitions *defs);
struct slice definitions_left_jobs(const struct definitions *defs);
/* For a call of an entity that is in doubt, likewise. A step_workflow_fn: the context is the definitions. */
const struct workflow *definitions_entity_version(const void *context, struct slice workflow, int64_t version);
/* Of this version, likewise; 0: of what is in force, and the version is told. NULL: there is no such action. */
const struct action *definitions_action(struct definitions *defs, struct slice workflow, struct slice action,
					int64_t *version);
/* All that is in force, under the registry's lock. */
void definitions_each(struct definitions *defs, void (*fn)(void *context, const struct machine *machine),
		      void *context);
