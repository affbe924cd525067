/*
 * Gate records in this process: nobody else sees them, and they are gone when it ends.
 *
 *   buckets[hash of the key] ──▶ slot ──▶ slot          a chain of the records that meet there
 *   heap[0]                  ──▶ slot                   the record that expires first
 *   slots[0 … used)                                     all of them by number, which is LOOK's cursor
 *
 * Invariants:
 *   1. A slot is taken and in exactly one chain, or it is among the free ones, or it has never been used.
 *   2. A taken slot is in the heap, but for one that holds while PROCESSING: that has no end.
 *   3. It is COMPLETED if it has a response; or else it has a reserve, which is room for an answer without a body.
 *   4. `bytes` counts every label, reserve and response that is kept or still being read by a caller, and is at most
 *      bytes_max.
 *
 * The reserve is what keeps a full store from letting the same request be executed after each lease: whoever has been
 * let in can always leave word that it was done, if need be without the body.
 *
 * One mutex guards it all; a response is copied before it is taken, and handed out by reference, so that under the
 * mutex nothing is ever done that takes longer for a larger body. Leases and ends are monotonic time: setting the
 * machine's clock neither frees a record nor keeps it. Only created_ms, which is for people, is wall time.
 *
 * An expired record is absent for whoever meets it. It is removed when its key is asked for, by a sweep, and where its
 * room is needed, the earliest first; never a live one.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/hash.h"
#include "gate/replay.h"
#include "gate/store.h"

#define NOT_IN_HEAP SIZE_MAX
#define RESERVE_BYTES GATE_RESPONSE_BYTES_MIN

/* Bytes that the store and callers in their done() share. */
struct blob {
	size_t refs;
	size_t counted; /* of `bytes`: n from the moment that it is kept */
	size_t n;
	char bytes[];
};

struct slot {
	struct slot *next; /* in its chain, or among the free ones */
	bool taken, hold;
	bool taken_over; /* a holder before this one may have executed */
	unsigned char key[HX_GATE_KEY_BYTES], fingerprint[HX_GATE_KEY_BYTES], token[HX_GATE_TOKEN_BYTES];
	unsigned char caller[HX_GATE_KEY_BYTES]; /* all zero: not known */
	struct mono_time lease_until, expires;
	int64_t created_ms;
	size_t heap_at;
	struct blob *label; /* the key as the client sent it, then the endpoint, then what it is about */
	size_t key_text_n, endpoint_n;
	struct blob *response; /* NULL: PROCESSING */
	struct blob *reserve;  /* NULL: COMPLETED */
};

struct gate_memory {
	struct gate_store store;
	size_t records_max, bytes_max;
	uint64_t seed;
	pthread_mutex_t mutex; /* guards all below */
	size_t bytes;
	size_t used;
	struct slot *free;
	struct slot *slots, **buckets, **heap; /* records_max each */
	size_t heap_n;
};

/* ---- blobs ---- */

/* Of one reference, the caller's. NULL: no memory. */
static struct blob *blob_join(const struct slice parts[], size_t parts_n)
{
	struct blob *blob;
	size_t n = 0;

	for (size_t i = 0; i < parts_n; i++)
		n += parts[i].n;
	blob = malloc(sizeof *blob + n);
	if (!blob)
		return NULL;
	*blob = (struct blob){.refs = 1};
	for (size_t i = 0; i < parts_n; i++) {
		if (parts[i].n)
			memcpy(blob->bytes + blob->n, parts[i].p, parts[i].n);
		blob->n += parts[i].n;
	}
	return blob;
}

static struct blob *blob_new(struct slice bytes)
{
	return blob_join(&bytes, 1);
}

static struct blob *blob_count(struct gate_memory *m, struct blob *blob)
{
	blob->counted = blob->n;
	m->bytes += blob->n;
	return blob;
}

static void blob_put(struct gate_memory *m, struct blob *blob)
{
	if (!blob || --blob->refs > 0)
		return;
	m->bytes -= blob->counted;
	free(blob);
}

/* ---- the heap ---- */

static void heap_set(struct gate_memory *m, size_t at, struct slot *slot)
{
	m->heap[at] = slot;
	slot->heap_at = at;
}

static void heap_up(struct gate_memory *m, size_t at)
{
	struct slot *slot = m->heap[at];

	for (; at > 0 && slot->expires.ns < m->heap[(at - 1) / 2]->expires.ns; at = (at - 1) / 2)
		heap_set(m, at, m->heap[(at - 1) / 2]);
	heap_set(m, at, slot);
}

static void heap_down(struct gate_memory *m, size_t at)
{
	struct slot *slot = m->heap[at];
	size_t child;

	while ((child = 2 * at + 1) < m->heap_n) {
		if (child + 1 < m->heap_n && m->heap[child + 1]->expires.ns < m->heap[child]->expires.ns)
			child++;
		if (slot->expires.ns <= m->heap[child]->expires.ns)
			break;
		heap_set(m, at, m->heap[child]);
		at = child;
	}
	heap_set(m, at, slot);
}

static void heap_leave(struct gate_memory *m, struct slot *slot)
{
	size_t at = slot->heap_at;

	if (at == NOT_IN_HEAP)
		return;
	slot->heap_at = NOT_IN_HEAP;
	if (at == --m->heap_n)
		return;
	heap_set(m, at, m->heap[m->heap_n]);
	heap_up(m, at);
	heap_down(m, at);
}

/* The one place that sets an end; `never` is for one that holds. */
static void set_end(struct gate_memory *m, struct slot *slot, struct mono_time expires, bool never)
{
	heap_leave(m, slot);
	slot->expires = expires;
	if (never)
		return;
	heap_set(m, m->heap_n++, slot);
	heap_up(m, slot->heap_at);
}

/* ---- slots ---- */

static struct slot **bucket_of(struct gate_memory *m, const unsigned char *key)
{
	return &m->buckets[hash_bytes(m->seed, key, HX_GATE_KEY_BYTES) % m->records_max];
}

static bool has_expired(const struct slot *slot, struct mono_time now)
{
	return slot->heap_at != NOT_IN_HEAP && slot->expires.ns <= now.ns;
}

static void drop(struct gate_memory *m, struct slot *slot)
{
	struct slot **at = bucket_of(m, slot->key);

	while (*at != slot)
		at = &(*at)->next;
	*at = slot->next;
	heap_leave(m, slot);
	blob_put(m, slot->label);
	blob_put(m, slot->response);
	blob_put(m, slot->reserve);
	slot->label = slot->response = slot->reserve = NULL;
	slot->taken = false;
	slot->next = m->free;
	m->free = slot;
}

/* NULL: absent. One that has expired goes here. */
static struct slot *store_memory_find(struct gate_memory *m, const unsigned char *key, struct mono_time now)
{
	struct slot *slot = *bucket_of(m, key);

	while (slot && memcmp(slot->key, key, HX_GATE_KEY_BYTES) != 0)
		slot = slot->next;
	if (slot && has_expired(slot, now)) {
		drop(m, slot);
		return NULL;
	}
	return slot;
}

static bool drop_expired(struct gate_memory *m, struct mono_time now)
{
	if (m->heap_n == 0 || !has_expired(m->heap[0], now))
		return false;
	drop(m, m->heap[0]);
	return true;
}

static bool bytes_fit(struct gate_memory *m, size_t n, struct mono_time now)
{
	while (n > m->bytes_max - m->bytes)
		if (!drop_expired(m, now))
			return false;
	return true;
}

static struct slot *unused_slot(struct gate_memory *m, struct mono_time now)
{
	struct slot *slot;

	if (!m->free && m->used < m->records_max)
		return &m->slots[m->used++];
	if (!m->free && !drop_expired(m, now))
		return NULL;
	slot = m->free;
	m->free = slot->next;
	return slot;
}

/* A new record in its chain, held by nobody yet. NULL: there is no room. */
static struct slot *store_memory_enter(struct gate_memory *m, const struct gate_ask *ask, struct mono_time now)
{
	static const char nothing[RESERVE_BYTES];
	struct slot **bucket = bucket_of(m, ask->claim.key), *slot;
	struct blob *label, *reserve;

	if (!bytes_fit(m, ask->key_text.n + ask->endpoint.n + ask->about.n + RESERVE_BYTES, now))
		return NULL;
	label = blob_join((struct slice[]){ask->key_text, ask->endpoint, ask->about}, 3);
	reserve = blob_new(slice_of(nothing, sizeof nothing));
	slot = label && reserve ? unused_slot(m, now) : NULL;
	if (!slot) {
		free(label);
		free(reserve);
		return NULL;
	}
	*slot = (struct slot){.next = *bucket,
			      .taken = true,
			      .created_ms = clock_wall(m->store.clock).ms,
			      .heap_at = NOT_IN_HEAP,
			      .label = blob_count(m, label),
			      .key_text_n = ask->key_text.n,
			      .endpoint_n = ask->endpoint.n,
			      .reserve = blob_count(m, reserve)};
	memcpy(slot->key, ask->claim.key, HX_GATE_KEY_BYTES);
	memcpy(slot->fingerprint, ask->claim.fingerprint, HX_GATE_KEY_BYTES);
	*bucket = slot;
	return slot;
}

/* ---- the asks, under the mutex ---- */

static bool is_holder(const struct slot *slot, const struct hx_gate_claim *claim)
{
	return memcmp(slot->token, claim->token, HX_GATE_TOKEN_BYTES) == 0;
}

static int64_t lease_left_ms(const struct slot *slot, struct mono_time now)
{
	int64_t ns = slot->lease_until.ns - now.ns;

	return ns <= 0 ? 0 : ns / 1000000 + (ns % 1000000 > 0);
}

/* Who is not known, here or there, is not compared. */
static bool is_of_another(const struct slot *slot, const struct hx_gate_claim *claim)
{
	static const unsigned char nobody[HX_GATE_KEY_BYTES];

	return memcmp(slot->caller, nobody, sizeof nobody) != 0 && gate_claim_caller(claim).p &&
	       memcmp(slot->caller, claim->caller, sizeof slot->caller) != 0;
}

/* What a claim finds. ACQUIRED: the lease is over, or it is the holder's own claim once more. */
static enum gate_verdict store_memory_judge(const struct slot *slot, const struct hx_gate_claim *claim,
					    struct mono_time now)
{
	if (is_of_another(slot, claim))
		return GATE_OTHER_CALLER;
	if (memcmp(slot->fingerprint, claim->fingerprint, HX_GATE_KEY_BYTES) != 0)
		return GATE_MISMATCHED;
	if (slot->response)
		return GATE_COMPLETED;
	if (is_holder(slot, claim))
		return GATE_ACQUIRED;
	if (lease_left_ms(slot, now) > 0)
		return GATE_IN_FLIGHT;
	return slot->hold ? GATE_HELD : GATE_ACQUIRED;
}

static void give(struct gate_memory *m, struct slot *slot, const struct hx_gate_claim *claim, struct mono_time now)
{
	memcpy(slot->token, claim->token, HX_GATE_TOKEN_BYTES);
	if (gate_claim_caller(claim).p)
		memcpy(slot->caller, claim->caller, HX_GATE_KEY_BYTES);
	slot->lease_until = mono_add_ms(now, claim->lease_ms);
	slot->hold = claim->hold != 0;
	set_end(m, slot, mono_add_ms(slot->lease_until, claim->ttl_ms), /* never= */ slot->hold);
}

static enum gate_verdict acquire(struct gate_memory *m, const struct gate_ask *ask, struct mono_time now,
				 struct gate_reply *reply, struct blob **response)
{
	struct slot *slot = store_memory_find(m, ask->claim.key, now);
	enum gate_verdict verdict = slot ? store_memory_judge(slot, &ask->claim, now) : GATE_ACQUIRED;

	if (slot && verdict == GATE_ACQUIRED && !is_holder(slot, &ask->claim))
		slot->taken_over = true;
	if (!slot)
		slot = store_memory_enter(m, ask, now);
	if (!slot)
		return GATE_UNAVAILABLE;
	if (verdict == GATE_ACQUIRED)
		give(m, slot, &ask->claim, now);
	if (verdict == GATE_IN_FLIGHT)
		reply->lease_left_ms = lease_left_ms(slot, now);
	if (verdict == GATE_COMPLETED) {
		slot->response->refs++;
		*response = slot->response;
		reply->response = slice_of(slot->response->bytes, slot->response->n);
	}
	reply->created_ms = slot->created_ms;
	return verdict;
}

/* In the place of its reserve. */
static bool keep_response(struct gate_memory *m, struct slot *slot, struct blob *response, struct mono_time now)
{
	if (!response || (response->n > RESERVE_BYTES && !bytes_fit(m, response->n - RESERVE_BYTES, now)))
		return false;
	blob_put(m, slot->reserve);
	slot->reserve = NULL;
	response->refs++;
	slot->response = blob_count(m, response);
	return true;
}

/* Only that it was done. False: the response is not in the form of ours. */
static bool keep_status(struct slot *slot, struct slice response)
{
	struct gate_response whole;
	LOCAL_ARENA(arena, UINT16_MAX * sizeof *whole.fields + 4096);
	LOCAL_STRBUF(bodiless, RESERVE_BYTES);

	if (gate_response_decode(response, &arena, /* err= */ NULL, &whole))
		return false;
	gate_response_encode(&(struct gate_response){.status = whole.status, .body_missing = true}, &bodiless);
	if (bodiless.failed)
		return false;
	ASSERT(bodiless.n == RESERVE_BYTES);
	memcpy(slot->reserve->bytes, bodiless.p, RESERVE_BYTES);
	slot->response = slot->reserve;
	slot->reserve = NULL;
	return true;
}

/* Without a copy of the response there was no memory for one. */
static enum gate_verdict keep_answer(struct gate_memory *m, struct slot *slot, const struct gate_ask *ask,
				     struct mono_time now, struct blob *response)
{
	if (!keep_response(m, slot, response, now) && !keep_status(slot, ask->response))
		return GATE_UNAVAILABLE;
	set_end(m, slot, mono_add_ms(now, ask->claim.ttl_ms), /* never= */ false);
	return GATE_DONE;
}

static enum gate_verdict complete(struct gate_memory *m, const struct gate_ask *ask, struct mono_time now,
				  struct blob *response)
{
	struct slot *slot = store_memory_find(m, ask->claim.key, now);

	if (!slot || !is_holder(slot, &ask->claim))
		return GATE_STALE;
	return slot->response ? GATE_DONE : keep_answer(m, slot, ask, now, response);
}

static enum gate_verdict remove_own(struct gate_memory *m, const struct gate_ask *ask, struct mono_time now)
{
	struct slot *slot = store_memory_find(m, ask->claim.key, now);

	if (!slot)
		return GATE_DONE;
	if (slot->response || !is_holder(slot, &ask->claim))
		return GATE_STALE;
	if (slot->taken_over)
		slot->lease_until = now;
	else
		drop(m, slot);
	return GATE_DONE;
}

/*
 * The one that a person decides about, who has seen this token: what has changed hands since is not what was decided about. DONE:
 * nobody is at work on it.
 */
static enum gate_verdict find_seen(struct gate_memory *m, const struct gate_ask *ask, struct mono_time now,
				   struct gate_reply *reply, struct slot **ret_slot)
{
	struct slot *slot = *ret_slot = store_memory_find(m, ask->claim.key, now);

	if (!slot)
		return GATE_ABSENT;
	if (!is_holder(slot, &ask->claim))
		return GATE_STALE;
	if (slot->response)
		return GATE_COMPLETED;
	reply->created_ms = slot->created_ms;
	reply->lease_left_ms = lease_left_ms(slot, now);
	return reply->lease_left_ms > 0 ? GATE_IN_FLIGHT : GATE_DONE;
}

static enum gate_verdict store_memory_forget(struct gate_memory *m, const struct gate_ask *ask, struct mono_time now,
					     struct gate_reply *reply)
{
	struct slot *slot;
	enum gate_verdict verdict = find_seen(m, ask, now, reply, &slot);

	if (verdict != GATE_DONE && verdict != GATE_COMPLETED)
		return verdict;
	drop(m, slot);
	return GATE_DONE;
}

/* What a person has found out. Done: under a token of its own, so that the holder is stale if it comes after all. */
static enum gate_verdict store_memory_resolve(struct gate_memory *m, const struct gate_ask *ask, struct mono_time now,
					      struct blob *response, struct gate_reply *reply)
{
	struct slot *slot;
	enum gate_verdict verdict = find_seen(m, ask, now, reply, &slot);

	if (verdict != GATE_DONE)
		return verdict;
	if (ask->response.n)
		verdict = keep_answer(m, slot, ask, now, response);
	if (!ask->response.n)
		drop(m, slot);
	else if (verdict == GATE_DONE)
		memcpy(slot->token, ask->resolver, sizeof slot->token);
	return verdict;
}

static bool is_held(const struct slot *slot, struct mono_time now)
{
	return slot->taken && slot->hold && !slot->response && lease_left_ms(slot, now) == 0;
}

static void see(const struct slot *slot, struct mono_time now, struct gate_sight *ret_sight)
{
	const char *label = slot->label->bytes;
	size_t about_at = slot->key_text_n + slot->endpoint_n;

	*ret_sight = (struct gate_sight){.state = GATE_IN_FLIGHT, .created_ms = slot->created_ms};
	memcpy(ret_sight->key, slot->key, HX_GATE_KEY_BYTES);
	memcpy(ret_sight->token, slot->token, HX_GATE_TOKEN_BYTES);
	gate_sight_describe(ret_sight, slice_of(label + slot->key_text_n, slot->endpoint_n),
			    slice_of(label + about_at, slot->label->n - about_at), slice_of(label, slot->key_text_n));
	if (slot->response) {
		ret_sight->state = GATE_COMPLETED;
		ret_sight->response_bytes = (int64_t)slot->response->n;
		return;
	}
	ret_sight->lease_left_ms = lease_left_ms(slot, now);
	if (is_held(slot, now))
		ret_sight->state = GATE_HELD;
	if (ret_sight->lease_left_ms == 0)
		ret_sight->over_ms = (now.ns - slot->lease_until.ns) / 1000000;
}

static bool is_looked_for(const struct slot *slot, const struct gate_ask *ask, struct mono_time now)
{
	if (!slot->taken || has_expired(slot, now))
		return false;
	if (ask->key_text.n)
		return slice_eq(slice_of(slot->label->bytes, slot->key_text_n), ask->key_text);
	if (ask->sought == GATE_SEEK_ALL)
		return true;
	if (ask->sought == GATE_SEEK_HELD)
		return is_held(slot, now);
	return !slot->response && lease_left_ms(slot, now) == 0;
}

/* Puts the slot among the last to have become held, the last first. */
static void see_last(const struct slot *slot, struct mono_time now, struct gate_reply *reply)
{
	struct gate_sight sight;
	size_t at;

	see(slot, now, &sight);
	for (at = reply->sights_n; at > 0 && reply->sights[at - 1].over_ms > sight.over_ms; at--)
		if (at < GATE_SIGHTS_MAX)
			reply->sights[at] = reply->sights[at - 1];
	if (at == GATE_SIGHTS_MAX)
		return;
	reply->sights[at] = sight;
	reply->sights_n += reply->sights_n < GATE_SIGHTS_MAX;
}

/* Over all slots: there are GATE_MEMORY_RECORDS_MAX at most, and few are held. */
static enum gate_verdict tally(struct gate_memory *m, struct mono_time now, struct gate_reply *reply)
{
	for (size_t i = 0; i < m->used; i++) {
		if (!is_held(&m->slots[i], now))
			continue;
		reply->held++;
		see_last(&m->slots[i], now, reply);
	}
	return GATE_DONE;
}

static enum gate_verdict store_memory_look(struct gate_memory *m, const struct gate_ask *ask, struct mono_time now,
					   struct gate_reply *reply)
{
	int64_t at = ask->after, end = (int64_t)m->used;

	for (int64_t n = 0; at < end && n < ask->budget && reply->sights_n < GATE_SIGHTS_MAX; at++, n++) {
		const struct slot *slot = &m->slots[at];

		if (is_looked_for(slot, ask, now))
			see(slot, now, &reply->sights[reply->sights_n++]);
	}
	reply->next = at < end ? at : 0;
	return GATE_DONE;
}

static enum gate_verdict store_memory_sweep(struct gate_memory *m, const struct gate_ask *ask, struct mono_time now,
					    struct gate_reply *reply)
{
	while (reply->removed < ask->budget && drop_expired(m, now))
		reply->removed++;
	return GATE_DONE;
}

static enum gate_verdict store_memory_answer(struct gate_memory *m, const struct gate_ask *ask,
					     struct gate_reply *reply, struct blob **response)
{
	struct mono_time now = clock_mono(m->store.clock);

	switch (ask->op) {
	case GATE_ACQUIRE:
		return acquire(m, ask, now, reply, response);
	case GATE_COMPLETE:
		return complete(m, ask, now, *response);
	case GATE_REMOVE:
		return remove_own(m, ask, now);
	case GATE_LOOK:
		return store_memory_look(m, ask, now, reply);
	case GATE_FORGET:
		return store_memory_forget(m, ask, now, reply);
	case GATE_RESOLVE:
		return store_memory_resolve(m, ask, now, *response, reply);
	case GATE_TALLY:
		return tally(m, now, reply);
	case GATE_SWEEP:
		return store_memory_sweep(m, ask, now, reply);
	}
	ASSERT(!"an ask of a kind that there is not");
	return GATE_UNAVAILABLE;
}

/* ---- the store ---- */

static void memory_ask(struct gate_store *store, struct gate_ticket *ticket)
{
	struct gate_memory *m = (struct gate_memory *)store;
	struct blob *response = NULL; /* COMPLETE, RESOLVE: what is to be kept. ACQUIRE: what is being read */

	ticket->reply = (struct gate_reply){0};
	if (ticket->ask.op == GATE_COMPLETE || (ticket->ask.op == GATE_RESOLVE && ticket->ask.response.n))
		response = blob_new(ticket->ask.response);
	pthread_mutex_lock(&m->mutex);
	ticket->reply.verdict = store_memory_answer(m, &ticket->ask, &ticket->reply, &response);
	pthread_mutex_unlock(&m->mutex);
	gate_ticket_done(ticket); /* it is not ours any more */
	if (response) {
		pthread_mutex_lock(&m->mutex);
		blob_put(m, response);
		pthread_mutex_unlock(&m->mutex);
	}
}

static void memory_free(struct gate_store *store)
{
	struct gate_memory *m = (struct gate_memory *)store;

	for (size_t i = 0; i < m->used; i++) {
		free(m->slots[i].label);
		free(m->slots[i].response);
		free(m->slots[i].reserve);
	}
	pthread_mutex_destroy(&m->mutex);
	free(m->slots);
	free(m->buckets);
	free(m->heap);
	free(m);
}

static const struct gate_store_kind memory = {
	.name = "memory", .ask = memory_ask, .free = memory_free, .in_memory = true};

enum hx_code gate_memory_new(size_t records_max, size_t bytes_max, struct clock *clock, struct gate_store **ret_store,
			     struct hx_error *err)
{
	struct gate_memory *m = calloc(1, sizeof *m);

	ASSERT(records_max >= 1 && records_max <= GATE_MEMORY_RECORDS_MAX && bytes_max <= GATE_MEMORY_BYTES_MAX);
	if (!m)
		return error_set(err, HX_NO_MEMORY, "gate: no memory");
	m->store = (struct gate_store){.kind = &memory, .clock = clock};
	m->records_max = records_max;
	m->bytes_max = bytes_max;
	m->slots = calloc(records_max, sizeof *m->slots);
	m->buckets = calloc(records_max, sizeof *m->buckets);
	m->heap = calloc(records_max, sizeof *m->heap);
	(void)!getrandom(&m->seed, sizeof m->seed, 0); /* without it somebody may make long chains, and nothing worse */
	pthread_mutex_init(&m->mutex, NULL);
	if (!m->slots || !m->buckets || !m->heap) {
		memory_free(&m->store);
		return error_set(err, HX_NO_MEMORY, "gate: no memory");
	}
	*ret_store = &m->store;
	return HX_OK;
}
