/*
 * Where a key counts: what a client calls K on POST /payments is another record than K on POST /refunds, and another
 * one for the next tenant. All parts of the tuple are hashed with their lengths in front, never joined by a separator,
 * so that no choice of names makes two tuples one. Paths are taken as they were sent and never decoded.
 */
#pragma once

#include <hapax.h>

#include "base/slice.h"

#define GATE_SCOPE_PARTS_MAX 8

struct gate_scope {
	struct slice space; /* whose records these are: the name of the gate, or the workspace of the engine's API */
	struct slice tenant;
	bool has_tenant; /* a tenant that was not sent is another one than the empty one */
	bool endpoint;   /* method and path count */
	struct slice method, path;
	size_t parts_n;
	struct {
		struct slice name,
			value; /* a header by its name in lower case, all else as source.h writes it, which no header is called */
		bool present;
	} parts[GATE_SCOPE_PARTS_MAX];
};

/*
 * Who asks, as it is kept: a hash of what tells callers apart (`by`) and of what it says, under the record's own key, so that
 * neither a table of hashes nor two records of one caller tell who that is. Never all zero.
 */
void gate_hash_caller(const unsigned char key[HX_GATE_KEY_BYTES], struct slice by, struct slice value,
		      unsigned char ret_caller[HX_GATE_KEY_BYTES]);

void gate_record_key(const struct gate_scope *scope, struct slice key, unsigned char ret_key[HX_GATE_KEY_BYTES]);
