/*
 * See scope.h. The tuple is a list of parts, each a length of 8 bytes, big-endian, and the bytes of the part:
 *
 *   space | tenant | method | path | { part's name | part's value } × parts_n | key
 *
 * A list like that can be read in one way only. A part that is not there has a length that no part can have; so has
 * the tenant where there is none, and method and path where the endpoint does not count. Records outlive the
 * program: another order or another part would orphan all of them.
 */
#include "gate/scope.h"

#include "base/error.h"
#include "base/hash.h"

#define PARTS_MAX (5 + 2 * GATE_SCOPE_PARTS_MAX)
#define LENGTH_BYTES 8
#define LENGTH_ABSENT UINT64_MAX

_Static_assert(HX_GATE_KEY_BYTES == SHA256_BYTES, "a record key is one digest");

struct tuple {
	size_t n;
	struct slice slices[2 * PARTS_MAX]; /* length, part, length, part … */
	unsigned char lengths[PARTS_MAX][LENGTH_BYTES];
};

static void scope_add(struct tuple *tuple, bool present, struct slice part)
{
	uint64_t length = present ? part.n : LENGTH_ABSENT;
	size_t i = tuple->n++;

	for (int b = LENGTH_BYTES - 1; b >= 0; b--, length >>= 8)
		tuple->lengths[i][b] = (unsigned char)length;
	tuple->slices[2 * i] = slice_of(tuple->lengths[i], LENGTH_BYTES);
	tuple->slices[2 * i + 1] = present ? part : slice_of(NULL, 0);
}

void gate_record_key(const struct gate_scope *scope, struct slice key, unsigned char ret_key[HX_GATE_KEY_BYTES])
{
	struct tuple tuple;

	ASSERT(scope->parts_n <= GATE_SCOPE_PARTS_MAX);
	tuple.n = 0;
	scope_add(&tuple, true, scope->space);
	scope_add(&tuple, scope->has_tenant, scope->tenant);
	scope_add(&tuple, scope->endpoint, scope->method);
	scope_add(&tuple, scope->endpoint, scope->path);
	for (size_t i = 0; i < scope->parts_n; i++) {
		scope_add(&tuple, true, scope->parts[i].name);
		scope_add(&tuple, scope->parts[i].present, scope->parts[i].value);
	}
	scope_add(&tuple, true, key);
	sha256_parts(tuple.slices, 2 * tuple.n, ret_key);
}

void gate_hash_caller(const unsigned char key[HX_GATE_KEY_BYTES], struct slice by, struct slice value,
		      unsigned char ret_caller[HX_GATE_KEY_BYTES])
{
	struct tuple tuple;

	tuple.n = 0;
	scope_add(&tuple, true, slice_of(key, HX_GATE_KEY_BYTES));
	scope_add(&tuple, true, by);
	scope_add(&tuple, value.p != NULL, value);
	sha256_parts(tuple.slices, 2 * tuple.n, ret_caller);
}
