/* A document changed by another one. */
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/strbuf.h"

/*
 * RFC 7396: what the patch says, over what is there; null takes a member away. Linear but for the look-up of names, on any input. Both
 * are checked JSON; HX_VALIDATION_ERROR where an object in one of them has a name twice. The arena is scratch.
 */
enum hx_code json_merge_patch(struct slice target, struct slice patch, struct arena *scratch, struct hx_error *err,
			      struct strbuf *out) HX_MUST_CHECK;
