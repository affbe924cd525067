/* See recall.h. The slots are shared out among a few locks, each held for one copy of a few hundred bytes. */
#include "gate/recall.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/thread.h"

#define LOCKS 64

struct slot {
	unsigned char key[HX_GATE_KEY_BYTES];
	unsigned char fingerprint[HX_GATE_KEY_BYTES];
	unsigned char caller[HX_GATE_KEY_BYTES];
	struct mono_time until; /* 0: empty */
	struct strbuf response;
};

struct recall {
	pthread_mutex_t locks[LOCKS];
	struct slot slots[RECALL_SLOTS];
};

struct recall *recall_new(void)
{
	struct recall *recall = calloc(1, sizeof *recall);

	if (!recall)
		return NULL;
	for (size_t i = 0; i < LOCKS; i++)
		pthread_mutex_init(&recall->locks[i], NULL);
	for (size_t i = 0; i < RECALL_SLOTS; i++)
		strbuf_init(&recall->slots[i].response, RECALL_BYTES_MAX);
	return recall;
}

void recall_free(struct recall *recall)
{
	if (!recall)
		return;
	for (size_t i = 0; i < LOCKS; i++)
		pthread_mutex_destroy(&recall->locks[i]);
	for (size_t i = 0; i < RECALL_SLOTS; i++)
		strbuf_release(&recall->slots[i].response);
	free(recall);
}

/* Keys are hashes: any part of one is as good as another. */
static size_t place_of(const unsigned char key[HX_GATE_KEY_BYTES])
{
	uint64_t number;

	memcpy(&number, key, sizeof number);
	return (size_t)(number % RECALL_SLOTS);
}

static bool has_key(const struct slot *slot, const unsigned char key[HX_GATE_KEY_BYTES])
{
	return slot->until.ns > 0 && memcmp(slot->key, key, HX_GATE_KEY_BYTES) == 0;
}

void recall_keep(struct recall *recall, const struct hx_gate_claim *claim, struct slice response, int64_t ttl_ms,
		 struct mono_time since)
{
	size_t place = place_of(claim->key);
	struct slot *slot = &recall->slots[place];

	if (response.n > RECALL_BYTES_MAX || ttl_ms <= 0)
		return;
	LOCKED(&recall->locks[place % LOCKS]);
	memcpy(slot->key, claim->key, sizeof slot->key);
	memcpy(slot->fingerprint, claim->fingerprint, sizeof slot->fingerprint);
	memcpy(slot->caller, claim->caller, sizeof slot->caller);
	strbuf_reset(&slot->response);
	strbuf_add_slice(&slot->response, response);
	slot->until = mono_add_ms(since, ttl_ms < RECALL_MS ? ttl_ms : RECALL_MS);
	if (slot->response.failed) {
		strbuf_release(&slot->response);
		slot->until.ns = 0;
	}
}

bool recall_find(struct recall *recall, const struct hx_gate_claim *claim, struct mono_time now,
		 struct strbuf *ret_response)
{
	size_t place = place_of(claim->key);
	const struct slot *slot = &recall->slots[place];
	bool known;

	LOCKED(&recall->locks[place % LOCKS]);
	known = has_key(slot, claim->key) && now.ns < slot->until.ns &&
		memcmp(slot->caller, claim->caller, sizeof slot->caller) == 0 &&
		memcmp(slot->fingerprint, claim->fingerprint, sizeof slot->fingerprint) == 0;
	if (known && ret_response)
		strbuf_add_slice(ret_response, strbuf_slice(&slot->response));
	return known;
}

void recall_drop(struct recall *recall, const unsigned char key[HX_GATE_KEY_BYTES])
{
	size_t place = place_of(key);

	LOCKED(&recall->locks[place % LOCKS]);
	if (has_key(&recall->slots[place], key))
		recall->slots[place].until.ns = 0;
}
