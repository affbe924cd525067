/*
 * Asking a gate store in tests: claims that are made of small numbers, and asks that are waited for.
 *
 * What a store answers is heard in whatever thread it comes; of a response the length and the SHA-256 are kept. A
 * question may be sent from any thread; who waits in vain fails the running cmocka test, so wait in its thread, or look
 * at `answered` after it was seen from there.
 */
#ifndef HX_TESTS_SUPPORT_GATE_ASKER_H
#define HX_TESTS_SUPPORT_GATE_ASKER_H

#include "base/hash.h"
#include "gate/store.h"

#define ASKER_AWAIT_MS 30000

struct heard {
	struct gate_reply reply; /* without its response */
	size_t response_bytes;
	uint8_t response_digest[SHA256_BYTES];
};

struct question {
	struct gate_ticket ticket;
	struct heard heard;
	bool answered; /* guarded by the asker's mutex: see question_is_answered() */
};

/* A request with this key and this fingerprint. Every claim has a token of its own. */
struct hx_gate_claim claim_of(unsigned key, unsigned fingerprint, int64_t lease_ms, int64_t ttl_ms);
/* The same request once more, by somebody else. */
struct hx_gate_claim claim_by_another(const struct hx_gate_claim *claim);
/* An ask about a claim. Its key text is "key", its endpoint "POST /payments". */
struct gate_ask ask_of(enum gate_op op, const struct hx_gate_claim *claim);

void question_send(struct question *question, struct gate_store *store, const struct gate_ask *ask);
bool question_is_answered(struct question *question);
const struct heard *question_await(struct question *question);

/* Asks, waits, and returns the verdict. *ret_heard may be NULL. */
enum gate_verdict hear(struct gate_store *store, const struct gate_ask *ask, struct heard *ret_heard);
enum gate_verdict hear_acquire(struct gate_store *store, const struct hx_gate_claim *claim, struct heard *ret_heard);
enum gate_verdict hear_complete(struct gate_store *store, const struct hx_gate_claim *claim, struct slice response);
enum gate_verdict hear_remove(struct gate_store *store, const struct hx_gate_claim *claim);
/* How many it says were removed; the sweep must be DONE. */
int64_t hear_sweep(struct gate_store *store, int64_t budget, int64_t turn_ms);

bool heard_is(const struct heard *heard, struct slice response);

#endif
