/*
 * What was answered lately: a retry that comes within a second of the answer, or of another retry, is given the same
 * bytes without asking the store. Retries come in storms, and a COMPLETED record never changes while it lives.
 *
 * Only what the store has said to be COMPLETED is kept, and for RECALL_MS at most, never beyond the record's own end. So
 * the one thing that can be seen is that a record which a person forgets through another node is replayed for a second
 * yet. Everything else (in flight, another caller or fingerprint, absent) is the store's to say.
 *
 * A table of fixed size, in which a newer answer takes the place of an older one of the same slot: at most RECALL_SLOTS
 * answers of RECALL_BYTES_MAX. Safe in all threads.
 */
#pragma once

#include <hapax.h>

#include "base/clock.h"
#include "base/slice.h"
#include "base/strbuf.h"

#define RECALL_MS 1000
#define RECALL_SLOTS 8192 /* a power of two */
#define RECALL_BYTES_MAX 4096

struct recall;

/* NULL: no memory. */
struct recall *recall_new(void);
/* Takes NULL. */
void recall_free(struct recall *recall);

/* The record of this claim's key is COMPLETED with this response, and lives for ttl_ms from `since` on. */
void recall_keep(struct recall *recall, const struct hx_gate_claim *claim, struct slice response, int64_t ttl_ms,
		 struct mono_time since);
/* Is it still known, for the same caller and fingerprint? Then its response is appended, if that is asked for. */
bool recall_find(struct recall *recall, const struct hx_gate_claim *claim, struct mono_time now,
		 struct strbuf *ret_response);
/* The record has been forgotten. */
void recall_drop(struct recall *recall, const unsigned char key[HX_GATE_KEY_BYTES]);
