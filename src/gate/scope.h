/*
 * Where a key counts: what a client calls K on POST /payments is another record than K on POST /refunds, and another
 * one for the next tenant. All parts of the tuple are hashed with their lengths in front, never joined by a separator,
 * so that no choice of names makes two tuples one. Paths are taken as they were sent and never decoded.
 */
#ifndef HX_GATE_SCOPE_H
#define HX_GATE_SCOPE_H

#include <hapax.h>

#include "base/slice.h"

#define GATE_SCOPE_HEADERS_MAX 8

struct gate_scope {
	struct slice space; /* whose records these are: the name of the gate, or the workspace of the engine's API */
	struct slice tenant;
	bool has_tenant; /* a tenant that was not sent is another one than the empty one */
	bool endpoint;   /* method and path count */
	struct slice method, path;
	size_t headers_n;
	struct {
		struct slice name,
			value; /* names in lower case; all values of a name joined as the policy reads them */
		bool present;
	} headers[GATE_SCOPE_HEADERS_MAX];
};

void gate_record_key(const struct gate_scope *scope, struct slice key, unsigned char ret_key[HX_GATE_KEY_BYTES]);

#endif
