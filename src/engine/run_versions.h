/*
 * The versions of run definitions that this process knows, old ones too, because a run keeps the one that it started with.
 *
 *   find    from any thread, without a lock, while others add: a slot is filled once and never changes again
 *   want    a version that is not here is noted, and whoever loads is told; it is there a moment later, or hopeless
 *   add     one thread at a time
 *
 * A version that this process cannot read (another program has written it, a native function is missing) is hopeless
 * until the restart: it is told once and not tried again with every look at a run.
 */
#ifndef HX_ENGINE_RUN_VERSIONS_H
#define HX_ENGINE_RUN_VERSIONS_H

#include <pthread.h>
#include <stdatomic.h>

#include "flow/run.h"

#define RUN_VERSIONS_MAX 10000
#define RUN_VERSIONS_SLOTS 16384 /* a power of two, well above RUN_VERSIONS_MAX */
#define RUN_VERSIONS_WANTED_MAX 256

struct run_version {
	char workflow[WORKFLOW_NAME_MAX + 1];
	int64_t version;
	bool hopeless;
};

struct run_versions {
	_Atomic(const struct run_machine *) slots[RUN_VERSIONS_SLOTS];
	pthread_mutex_t mutex; /* over what is wanted */
	size_t wanted_n;
	struct run_version wanted[RUN_VERSIONS_WANTED_MAX];
	void (*told)(void *context); /* something is wanted, from the thread that wants it; NULL: nobody loads */
	void *context;
};

void run_versions_init(struct run_versions *versions, void (*told)(void *context), void *context);
void run_versions_release(struct run_versions *versions);

/* NULL: it is not here. */
const struct run_machine *run_versions_find(const struct run_versions *versions, struct slice workflow,
					    int64_t version);
/* At most RUN_VERSIONS_MAX; the same one again changes nothing. */
void run_versions_add(struct run_versions *versions, const struct run_machine *machine);

/* Notes it, once. Without room nothing happens: it will be asked for again. */
void run_versions_want(struct run_versions *versions, struct slice workflow, int64_t version);
/* One that is wanted and not hopeless; false: there is none. */
bool run_versions_next(struct run_versions *versions, struct run_version *ret);
/* It was loaded, or there is no hope for it. */
void run_versions_settle(struct run_versions *versions, const struct run_version *wanted, bool hopeless);

#endif
