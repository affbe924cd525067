/*
 * Reads one message from bytes that arrive in pieces, as the server and the gate do: scan, parse, body. Every piece and
 * every growth of the buffer is a block of its own size on the heap, so that the sanitizer sees any byte that is
 * read past the end, and no slice can point into a block that has moved.
 */
#ifndef HX_TESTS_UNIT_WIRE_READER_H
#define HX_TESTS_UNIT_WIRE_READER_H

#include <stdlib.h>

#include "base/hash.h"
#include "wire/body.h"
#include "wire/wire.h"

enum reader_kind { READ_REQUEST, READ_RESPONSE, READ_RESPONSE_TO_HEAD };

#define READER_FIELDS_MAX 200

/* What can be compared of two readings. */
struct outcome {
	enum wire_verdict verdict; /* MORE: the bytes ended in the middle */
	struct wire_error err;
	bool has_head;
	size_t head_bytes, used; /* with the empty line that was skipped */
	size_t body_bytes;
	uint64_t hash; /* of all that was found in head and body */
	struct wire_head head;
	int status;
};

static inline char *block_of(struct slice bytes)
{
	char *block = malloc(bytes.n ? bytes.n : 1);

	ASSERT(block);
	if (bytes.n)
		memcpy(block, bytes.p, bytes.n);
	return block;
}

static inline uint64_t hash_slice(uint64_t h, struct slice s)
{
	return hash_bytes(hash_mix(h, s.n), s.p ? s.p : "", s.n);
}

static inline void reader_parse(enum reader_kind kind, struct slice head, struct outcome *outcome)
{
	struct wire_field fields[READER_FIELDS_MAX];
	struct wire_request request;
	struct wire_response response;

	if (kind == READ_REQUEST) {
		outcome->verdict = wire_request_parse(head, fields, &request, &outcome->err);
		if (outcome->verdict == WIRE_BAD)
			return;
		outcome->head = request.head;
		outcome->hash = hash_slice(outcome->hash, request.method);
		outcome->hash = hash_slice(outcome->hash, request.target);
		outcome->hash = hash_slice(outcome->hash, request.path);
		outcome->hash = hash_slice(outcome->hash, request.query);
		outcome->hash = hash_slice(outcome->hash, request.host);
		outcome->hash = hash_mix(outcome->hash, request.expect_continue);
	} else {
		outcome->verdict = wire_response_parse(head, kind == READ_RESPONSE_TO_HEAD, fields, &response,
						       &outcome->err);
		if (outcome->verdict == WIRE_BAD)
			return;
		outcome->head = response.head;
		outcome->status = response.status;
		outcome->hash = hash_slice(outcome->hash, response.reason);
	}
	for (size_t i = 0; i < outcome->head.fields.n; i++) {
		outcome->hash = hash_slice(outcome->hash, fields[i].name);
		outcome->hash = hash_slice(outcome->hash, fields[i].value);
	}
	outcome->head.fields.at = NULL;
	outcome->has_head = true;
}

/* The size of the next piece, from 1 to `left`. */
typedef size_t reader_next(void *data, size_t left);

static inline bool reader_head(enum reader_kind kind, struct slice bytes, const struct wire_limits *limits,
			       reader_next *next, void *data, size_t *arrived, struct outcome *outcome)
{
	struct wire_scan scan = {0};

	for (*arrived = 0;;) {
		char *buffer = block_of(slice_of(bytes.p, *arrived));
		struct slice view = slice_of(buffer, *arrived);

		outcome->verdict = kind == READ_REQUEST ? wire_scan_request(&scan, view, limits, &outcome->err)
							: wire_scan_response(&scan, view, limits, &outcome->err);
		ASSERT(scan.at <= *arrived && scan.line <= scan.at);
		free(buffer);
		if (outcome->verdict != WIRE_MORE || *arrived == bytes.n)
			break;
		*arrived += next(data, bytes.n - *arrived);
	}
	if (outcome->verdict != WIRE_DONE)
		return false;
	outcome->head_bytes = scan.at;
	ASSERT(wire_scan_fields(&scan) <= READER_FIELDS_MAX);

	struct slice found = wire_scan_head(&scan, bytes.p);
	char *copy = block_of(found);

	reader_parse(kind, slice_of(copy, found.n), outcome);
	free(copy);
	return outcome->verdict == WIRE_DONE;
}

/* Offers the bytes to the body until it has enough or the piece is used up; returns how many it took. */
static inline size_t reader_body_piece(struct wire_body *body, struct slice piece, struct outcome *outcome)
{
	char *block = block_of(piece);
	size_t total = 0, used;
	struct slice got;

	do {
		outcome->verdict = wire_body_read(body, slice_of(block + total, piece.n - total), &used, &got,
						  &outcome->err);
		ASSERT(used <= piece.n - total && got.n <= used);
		for (size_t i = 0; i < got.n; i++)
			outcome->hash = hash_mix(outcome->hash, (unsigned char)got.p[i]);
		outcome->body_bytes += got.n;
		total += used;
	} while (outcome->verdict == WIRE_MORE && total < piece.n);
	free(block);
	return total;
}

static inline struct outcome reader_read(enum reader_kind kind, struct slice bytes, const struct wire_limits *limits,
					 reader_next *next, void *data)
{
	struct outcome outcome = {.hash = 7};
	struct wire_body body;
	size_t arrived, at;

	if (!reader_head(kind, bytes, limits, next, data, &arrived, &outcome))
		return outcome;
	wire_body_init(&body, &outcome.head, kind != READ_REQUEST);
	at = outcome.head_bytes;
	at += reader_body_piece(&body, slice_of(bytes.p + at, arrived - at), &outcome);
	while (outcome.verdict == WIRE_MORE && arrived < bytes.n) {
		ASSERT(at == arrived);
		arrived += next(data, bytes.n - arrived);
		at += reader_body_piece(&body, slice_of(bytes.p + at, arrived - at), &outcome);
	}
	if (outcome.verdict == WIRE_MORE && body.framing == WIRE_UNTIL_CLOSE)
		outcome.verdict = wire_body_closed(&body, &outcome.err);
	outcome.used = outcome.verdict == WIRE_DONE ? at : 0;
	return outcome;
}

static inline bool outcome_equal(const struct outcome *a, const struct outcome *b)
{
	if (a->verdict != b->verdict || a->has_head != b->has_head || a->head_bytes != b->head_bytes ||
	    a->used != b->used || a->hash != b->hash || a->status != b->status || a->body_bytes != b->body_bytes)
		return false;
	if (a->verdict == WIRE_BAD && (a->err.code != b->err.code || a->err.reason != b->err.reason))
		return false;
	return a->head.framing == b->head.framing && a->head.length == b->head.length &&
	       a->head.keep_alive == b->head.keep_alive && a->head.minor == b->head.minor &&
	       a->head.fields.n == b->head.fields.n;
}

static inline size_t next_whole(void *data, size_t left)
{
	(void)data;
	return left;
}

static inline size_t next_byte(void *data, size_t left)
{
	(void)data;
	(void)left;
	return 1;
}

#endif
