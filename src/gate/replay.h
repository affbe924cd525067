/*
 * An answer, as it is kept and given again: status, the fields that are safe to repeat, and the bytes of the body.
 *
 * Stored form, all numbers big-endian:
 *
 *   'H' '2' | sum u64 | flags u8 | status u16 | fields u16 | body u64 | { name u16, value u32, name, value } × fields | body
 *             │            └─ 1: the body was too large and is not here
 *             └─ the first 8 bytes of the SHA-256 of all that follows
 *
 * Every length is there, so that an answer which lost its end in a store is noticed and never replayed as a shorter one;
 * and a sum, so that one changed byte is noticed, too. Version 0.1 wrote 'H' '1', the same without the sum: such answers
 * are given again as long as they live, with their lengths as the only proof.
 *
 * Which fields are kept: Content-Type, Content-Encoding, Content-Language, Location, ETag, Cache-Control and X-*, or those
 * of an explicit list, or none. Never, not even by list: Set-Cookie, hop-by-hop fields and those that Connection
 * nominates, lengths and framing, and our own markers (Idempotency-Status, Idempotency-Replayed), which an upstream
 * could forge. Content-Type and Content-Encoding say how the body is to be read: they are kept in every case.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/strbuf.h"

struct gate_field {
	struct slice name, value;
};

struct gate_response {
	int status;
	bool body_missing; /* it was too large: HX_RESPONSE_NOT_STORED */
	size_t fields_n;
	const struct gate_field *fields;
	struct slice body;
};

struct gate_replay_rule {
	enum { REPLAY_SAFE, REPLAY_LIST, REPLAY_NONE } kind;
	size_t names_n;
	const struct slice *names; /* REPLAY_LIST: in lower case */
};

/* May a field of an upstream's answer be repeated? `connection` are the values of its Connection fields. */
bool gate_replays_field(const struct gate_replay_rule *rule, struct slice name, const struct slice connection[],
			size_t connection_n);
/* One of our own markers, which is stripped from whatever an upstream says. */
bool gate_is_marker(struct slice name);

/* How long the stored form of an answer without fields and body is. */
#define GATE_RESPONSE_BYTES_MIN 23

/* Appends the stored form. The fields are those to be kept. */
void gate_response_encode(const struct gate_response *response, struct strbuf *out);
/* Slices point into the bytes, the array of fields is in the arena. HX_RECORD_DAMAGED: these are not the bytes that
 * were stored. */
enum hx_code gate_response_decode(struct slice bytes, struct arena *arena, struct hx_error *err,
				  struct gate_response *ret_response) HX_MUST_CHECK;
