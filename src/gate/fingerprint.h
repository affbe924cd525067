/*
 * What a request says, as a hash, to notice a key that is used again for something else.
 *
 *   kind       hashed                                            when
 *   json       the canonical form (json_canonical.h)             the content type is JSON, and the body is
 *   bytes      the body as it is                                 everything else
 *   pointers   the canonical form of what each pointer selects   chosen, and the body is JSON; a pointer that selects
 *                                                                nothing is another thing than one that selects null
 *   off        all zero                                          chosen
 *
 *   elsewhere  a chain over one of these (or "nothing") and each value that counts besides the body
 *
 * Kinds are kept apart: the bytes of a text never equal the JSON of the same text.
 */
#pragma once

#include <hapax.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "gate/source.h"

struct gate_fingerprint_rule {
	bool off;
	bool no_body;      /* what counts is elsewhere in the request: see gate_fingerprint_add() */
	size_t pointers_n; /* 0: the whole body */
	const struct slice *pointers;
	bool query; /* the whole query counts, too, as it was sent */
	size_t sources_n;
	const struct gate_source *sources; /* and these values */
};

/* So much scratch is enough for any body, up to its worst: nothing but members, and all of them empty. */
#define GATE_FINGERPRINT_SCRATCH_BYTES(body_bytes) (12 * (size_t)(body_bytes) + 1024)

/*
 * HX_TOO_LARGE, HX_NO_MEMORY: the scratch is full. Nothing else can go wrong. The pointers are checked ones
 * (json_pointer.h). On success the scratch is as it was before.
 */
enum hx_code gate_fingerprint(const struct gate_fingerprint_rule *rule, struct slice content_type, struct slice body,
			      struct arena *scratch, struct hx_error *err,
			      unsigned char ret_fingerprint[HX_GATE_KEY_BYTES]) HX_MUST_CHECK;
/*
 * Adds a value from elsewhere in the request (a header, the query …) to a fingerprint, under its name; p NULL: it is not
 * there, which is another thing than an empty one. In the order of the rule.
 */
void gate_fingerprint_add(struct slice name, struct slice value, unsigned char fingerprint[HX_GATE_KEY_BYTES]);
