/*
 * The versions of definitions that this process knows, old ones too, because runs and batches keep the one that they
 * started with, and what is in doubt is called again by the one that called it.
 *
 *   find    from any thread, without a lock, while others add: a slot is filled once and never changes again
 *   want    a version that is not here is noted, and whoever loads is told; it is there a moment later, or hopeless
 *   add     one thread at a time
 *
 * A version that this process cannot read (another program has written it, a native function is missing) is hopeless
 * until the restart: it is told once and not tried again with every look at a run.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "flow/batch.h"
#include "flow/entity.h"
#include "flow/run.h"
#include "model/definition.h"

#define VERSIONS_MAX 10000
#define VERSIONS_SLOTS 16384 /* a power of two, well above VERSIONS_MAX */
#define VERSIONS_WANTED_MAX 256

/*
 * A version of a definition made ready for the store: of the last four, one is not NULL; none, where it is an entity's and not in
 * force: then it is only called by. Immutable.
 */
struct machine {
	const struct definition *definition;
	int64_t version; /* in the store */
	const struct entity_machine *entity;
	const struct run_machine *run;
	const struct batch_machine *batch;
	const struct run_machine *function;
};

struct wanted_version {
	char workflow[WORKFLOW_NAME_MAX + 1];
	int64_t version;
	bool hopeless;
};

struct versions {
	_Atomic(const struct machine *) slots[VERSIONS_SLOTS];
	pthread_mutex_t mutex; /* over what is wanted */
	size_t wanted_n;
	struct wanted_version wanted[VERSIONS_WANTED_MAX];
	void (*told)(void *context); /* something is wanted, from the thread that wants it; NULL: nobody loads */
	void *context;
};

void versions_init(struct versions *versions, void (*told)(void *context), void *context);
void versions_release(struct versions *versions);

/* NULL: it is not here. */
const struct machine *versions_find(const struct versions *versions, struct slice workflow, int64_t version);
/* At most VERSIONS_MAX; the same one again changes nothing. */
void versions_add(struct versions *versions, const struct machine *machine);

/* Notes it, once. Without room nothing happens: it will be asked for again. */
void versions_want(struct versions *versions, struct slice workflow, int64_t version);
/* One that is wanted and not hopeless; false: there is none. */
bool versions_next(struct versions *versions, struct wanted_version *ret);
/* It was loaded, or there is no hope for it. */
void versions_settle(struct versions *versions, const struct wanted_version *wanted, bool hopeless);
