/* See run_versions.h. A table with open addressing: at most RUN_VERSIONS_MAX entries, so a look ends at a free slot. */
#include "engine/run_versions.h"

#include "base/hash.h"

_Static_assert((RUN_VERSIONS_SLOTS & (RUN_VERSIONS_SLOTS - 1)) == 0 && RUN_VERSIONS_SLOTS > RUN_VERSIONS_MAX,
	       "a free slot ends every look");

void run_versions_init(struct run_versions *versions, void (*told)(void *context), void *context)
{
	memset(versions, 0, sizeof *versions);
	pthread_mutex_init(&versions->mutex, NULL);
	versions->told = told;
	versions->context = context;
}

void run_versions_release(struct run_versions *versions)
{
	pthread_mutex_destroy(&versions->mutex);
}

/* Where it is, or where it belongs. */
static size_t slot_of(const struct run_versions *versions, struct slice workflow, int64_t version)
{
	uint64_t hash = hash_mix(hash_bytes(0, workflow.p, workflow.n), (uint64_t)version);

	for (size_t i = hash & (RUN_VERSIONS_SLOTS - 1);; i = (i + 1) & (RUN_VERSIONS_SLOTS - 1)) {
		const struct run_machine *machine = versions->slots[i];

		if (!machine || (machine->version == version && slice_is(workflow, machine->definition->name)))
			return i;
	}
}

const struct run_machine *run_versions_find(const struct run_versions *versions, struct slice workflow, int64_t version)
{
	return versions->slots[slot_of(versions, workflow, version)];
}

void run_versions_add(struct run_versions *versions, const struct run_machine *machine)
{
	size_t i = slot_of(versions, slice_str(machine->definition->name), machine->version);

	if (!versions->slots[i])
		versions->slots[i] = machine;
}

/* ---- what is wanted ---- */

static struct run_version *wanted(struct run_versions *versions, struct slice workflow, int64_t version)
{
	for (size_t i = 0; i < versions->wanted_n; i++)
		if (versions->wanted[i].version == version && slice_is(workflow, versions->wanted[i].workflow))
			return &versions->wanted[i];
	return NULL;
}

void run_versions_want(struct run_versions *versions, struct slice workflow, int64_t version)
{
	bool noted = false;

	if (workflow.n > WORKFLOW_NAME_MAX)
		return; /* no definition has such a name */
	pthread_mutex_lock(&versions->mutex);
	if (versions->wanted_n < RUN_VERSIONS_WANTED_MAX && !wanted(versions, workflow, version)) {
		struct run_version *entry = &versions->wanted[versions->wanted_n++];

		*entry = (struct run_version){.version = version};
		memcpy(entry->workflow, workflow.p, workflow.n);
		noted = true;
	}
	pthread_mutex_unlock(&versions->mutex);
	if (noted && versions->told)
		versions->told(versions->context);
}

bool run_versions_next(struct run_versions *versions, struct run_version *ret)
{
	bool found = false;

	pthread_mutex_lock(&versions->mutex);
	for (size_t i = 0; i < versions->wanted_n && !found; i++) {
		found = !versions->wanted[i].hopeless;
		if (found)
			*ret = versions->wanted[i];
	}
	pthread_mutex_unlock(&versions->mutex);
	return found;
}

void run_versions_settle(struct run_versions *versions, const struct run_version *settled, bool hopeless)
{
	struct run_version *entry;

	pthread_mutex_lock(&versions->mutex);
	entry = wanted(versions, slice_str(settled->workflow), settled->version);
	if (entry && hopeless)
		entry->hopeless = true;
	else if (entry)
		*entry = versions->wanted[--versions->wanted_n];
	pthread_mutex_unlock(&versions->mutex);
}
