/*
 * Entry locks in this process: a table of fixed size with one mutex.
 *
 * A slot is in a chain of its bucket or in the list of free ones, or lies after `used_n` and was never used: a table
 * that is not needed takes no memory but its addresses. An expired lock stays where it is until its name
 * is taken again or room is needed; then one walk over all slots frees every expired one. `earliest` is a lower
 * bound of all ends, so that a full table is walked only when the walk can have changed something: a crowd at the
 * door of a full table costs one comparison each.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>

#include "gate/entry_store.h"

struct slot {
	struct slot *next;
	struct mono_time until;
	bool taken;
	char name[ENTRY_NAME_BYTES];
	char token[ENTRY_TOKEN_BYTES];
};

struct entry_memory {
	struct entry_locks locks;
	pthread_mutex_t mutex; /* guards all below */
	uint64_t seed;
	size_t slots_n;
	size_t used_n;
	struct mono_time earliest;
	struct slot *free;
	struct slot **buckets; /* slots_n of them */
	struct slot slots[];
};

static struct slot **bucket_of(struct entry_memory *m, const char *name)
{
	return &m->buckets[hash_bytes(m->seed, name, ENTRY_NAME_BYTES - 1) % m->slots_n];
}

/* The link that points to the slot of this name, or the end of its chain. */
static struct slot **find(struct entry_memory *m, const char *name)
{
	struct slot **at = bucket_of(m, name);

	while (*at && memcmp((*at)->name, name, ENTRY_NAME_BYTES) != 0)
		at = &(*at)->next;
	return at;
}

static void give_back(struct entry_memory *m, struct slot **at)
{
	struct slot *slot = *at;

	*at = slot->next;
	slot->taken = false;
	slot->next = m->free;
	m->free = slot;
}

static void free_expired(struct entry_memory *m, struct mono_time now)
{
	m->earliest.ns = INT64_MAX;
	for (size_t i = 0; i < m->used_n; i++) {
		struct slot *slot = &m->slots[i];

		if (slot->taken && slot->until.ns <= now.ns)
			give_back(m, find(m, slot->name));
		else if (slot->taken && slot->until.ns < m->earliest.ns)
			m->earliest = slot->until;
	}
}

static bool is_full(const struct entry_memory *m)
{
	return !m->free && m->used_n == m->slots_n;
}

/* NULL: there is none. */
static struct slot *free_slot(struct entry_memory *m)
{
	struct slot *slot = m->free;

	if (slot)
		m->free = slot->next;
	else if (!is_full(m))
		slot = &m->slots[m->used_n++];
	return slot;
}

/* A new slot in the chain of the name; NULL: the table is full. */
static struct slot *enter(struct entry_memory *m, const char *name, struct mono_time now)
{
	struct slot **bucket = bucket_of(m, name), *slot;

	if (is_full(m) && m->earliest.ns <= now.ns)
		free_expired(m, now);
	slot = free_slot(m);
	if (slot) {
		slot->next = *bucket;
		*bucket = slot;
		slot->taken = true;
		memcpy(slot->name, name, ENTRY_NAME_BYTES);
	}
	return slot;
}

static enum hx_code take_now(struct entry_memory *m, const struct entry_lock *lock)
{
	struct mono_time now = clock_mono(m->locks.clock);
	struct slot *slot = *find(m, lock->name);

	if (slot && slot->until.ns > now.ns)
		return HX_ENTRY_LOCKED;
	if (!slot)
		slot = enter(m, lock->name, now);
	if (!slot)
		return HX_STORE_UNAVAILABLE;
	slot->until = mono_add_ms(now, lock->ttl_ms);
	memcpy(slot->token, lock->token, ENTRY_TOKEN_BYTES);
	if (slot->until.ns < m->earliest.ns)
		m->earliest = slot->until;
	return HX_OK;
}

static void memory_take(struct entry_locks *locks, struct entry_ticket *ticket)
{
	struct entry_memory *m = (struct entry_memory *)locks;
	enum hx_code code;

	pthread_mutex_lock(&m->mutex);
	code = take_now(m, &ticket->lock);
	pthread_mutex_unlock(&m->mutex);
	entry_ticket_taken(ticket, code, /* maybe_ours= */ false);
}

static void memory_release(struct entry_locks *locks, struct entry_ticket *ticket)
{
	struct entry_memory *m = (struct entry_memory *)locks;
	struct slot **at;

	pthread_mutex_lock(&m->mutex);
	at = find(m, ticket->lock.name);
	if (*at && memcmp((*at)->token, ticket->lock.token, ENTRY_TOKEN_BYTES) == 0)
		give_back(m, at);
	pthread_mutex_unlock(&m->mutex);
	entry_ticket_released(ticket);
}

static void memory_free(struct entry_locks *locks)
{
	struct entry_memory *m = (struct entry_memory *)locks;

	pthread_mutex_destroy(&m->mutex);
	free(m->buckets);
	free(m);
}

static const struct entry_store memory = {
	.name = "memory",
	.take = memory_take,
	.release = memory_release,
	.free = memory_free,
};

enum hx_code entry_memory_new(size_t locks_max, struct clock *clock, struct entry_locks **ret_locks,
			      struct hx_error *err)
{
	struct entry_memory *m = calloc(1, sizeof *m + locks_max * sizeof *m->slots);

	ASSERT(locks_max >= 1 && locks_max <= ENTRY_MEMORY_LOCKS_MAX);
	if (m)
		m->buckets = calloc(locks_max, sizeof *m->buckets);
	if (!m || !m->buckets) {
		free(m);
		return error_set(err, HX_NO_MEMORY, "entry locks: no memory");
	}
	m->locks = (struct entry_locks){&memory, clock};
	m->slots_n = locks_max;
	m->earliest.ns = INT64_MAX;
	(void)!getrandom(&m->seed, sizeof m->seed, 0); /* without it somebody may make long chains, and nothing worse */
	pthread_mutex_init(&m->mutex, NULL);
	*ret_locks = &m->locks;
	return HX_OK;
}
