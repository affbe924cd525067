/* See definition_versions.h. A table with open addressing: at most VERSIONS_MAX entries, so a look ends at a free slot. */
#include "engine/definition_versions.h"

#include "base/hash.h"
#include "base/thread.h"

_Static_assert((VERSIONS_SLOTS & (VERSIONS_SLOTS - 1)) == 0 && VERSIONS_SLOTS > VERSIONS_MAX,
	       "a free slot ends every look");

void versions_init(struct versions *versions, void (*told)(void *context), void *context)
{
	memset(versions, 0, sizeof *versions);
	pthread_mutex_init(&versions->mutex, NULL);
	versions->told = told;
	versions->context = context;
}

void versions_release(struct versions *versions)
{
	pthread_mutex_destroy(&versions->mutex);
}

/* Where it is, or where it belongs. */
static size_t definition_versions_slot_of(const struct versions *versions, struct slice workflow, int64_t version)
{
	uint64_t hash = hash_mix(hash_bytes(0, workflow.p, workflow.n), (uint64_t)version);

	for (size_t i = hash & (VERSIONS_SLOTS - 1);; i = (i + 1) & (VERSIONS_SLOTS - 1)) {
		const struct machine *machine = versions->slots[i];

		if (!machine || (machine->version == version && slice_is(workflow, machine->definition->name)))
			return i;
	}
}

const struct machine *versions_find(const struct versions *versions, struct slice workflow, int64_t version)
{
	return versions->slots[definition_versions_slot_of(versions, workflow, version)];
}

void versions_add(struct versions *versions, const struct machine *machine)
{
	size_t i = definition_versions_slot_of(versions, slice_str(machine->definition->name), machine->version);

	if (!versions->slots[i])
		versions->slots[i] = machine;
}

/* ---- what is wanted ---- */

static struct wanted_version *wanted(struct versions *versions, struct slice workflow, int64_t version)
{
	for (size_t i = 0; i < versions->wanted_n; i++)
		if (versions->wanted[i].version == version && slice_is(workflow, versions->wanted[i].workflow))
			return &versions->wanted[i];
	return NULL;
}

void versions_want(struct versions *versions, struct slice workflow, int64_t version)
{
	bool noted = false;

	if (workflow.n > WORKFLOW_NAME_MAX)
		return; /* no definition has such a name */
	pthread_mutex_lock(&versions->mutex);
	if (versions->wanted_n < VERSIONS_WANTED_MAX && !wanted(versions, workflow, version)) {
		struct wanted_version *entry = &versions->wanted[versions->wanted_n++];

		*entry = (struct wanted_version){.version = version};
		memcpy(entry->workflow, workflow.p, workflow.n);
		noted = true;
	}
	pthread_mutex_unlock(&versions->mutex);
	if (noted && versions->told)
		versions->told(versions->context);
}

bool versions_next(struct versions *versions, struct wanted_version *ret)
{
	bool found = false;

	LOCKED(&versions->mutex);
	for (size_t i = 0; i < versions->wanted_n && !found; i++) {
		found = !versions->wanted[i].hopeless;
		if (found)
			*ret = versions->wanted[i];
	}
	return found;
}

void versions_settle(struct versions *versions, const struct wanted_version *settled, bool hopeless)
{
	struct wanted_version *entry;

	LOCKED(&versions->mutex);
	entry = wanted(versions, slice_str(settled->workflow), settled->version);
	if (entry && hopeless)
		entry->hopeless = true;
	else if (entry)
		*entry = versions->wanted[--versions->wanted_n];
}
