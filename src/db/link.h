/*
 * The link of a history row to the one before it: what is hashed, in this order.
 *
 *   hash of a row = sha256(hash of the row before, nothing for the first,
 *                          subject|seq|from|to|version|fence|op|at|node)
 *
 * Whoever writes a row does so in SQL, by the function hx_link(hash before, subject, seq, from, to, version, fence, op, at, node):
 * on SQLite it is this one, registered by the driver; on PostgreSQL schema/0025_link.sql, whose text can change as
 * little as the rows that are there. tests/contract/test_link.c compares the two. Whoever follows a chain calls this.
 */
#pragma once

#include <stdint.h>

#include "base/hash.h"
#include "base/slice.h"

struct history_row {
	int64_t subject, seq;
	struct slice from, to;
	int64_t version, fence, op, at;
	struct slice node;
};

/* `before` is empty for the first row of a subject, and may be what is written to. */
void history_link(const struct history_row *row, struct slice before, uint8_t ret_hash[SHA256_BYTES]);
