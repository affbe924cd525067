/*
 * The idempotency key of a request: out of a header, out of the body, or as it stands elsewhere; or composed of several.
 *
 * In a header it is a structured-field string, `"8e03978e"`, or the same without quotes: both spellings are one key.
 * It has 1 to `max` characters, visible ASCII and (inside quotes only) spaces; in quotes \" and \\ stand for
 * themselves and nothing else is escaped. Whatever is not exactly that is HX_KEY_INVALID, also where no key is
 * needed: a malformed key must never run unprotected.
 *
 * In a body it is a string or a number at a JSON Pointer; numbers by their exact value, and never equal to a string:
 * a number has # in front, a string that begins with # has one more. 1 to `max` characters (code points) here too, none
 * of them a control character.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "base/slice.h"

/*
 * values[] are the field lines of that name, as they came. None at all: HX_KEY_REQUIRED. More than one, even equal ones:
 * HX_KEY_INVALID. The key is decoded, in the arena or in the value. HX_TOO_LARGE, HX_NO_MEMORY: the arena is full.
 */
enum hx_code gate_key_from_header(const struct slice values[], size_t n, size_t max, struct arena *arena,
				  struct hx_error *err, struct slice *ret_key) HX_MUST_CHECK;
/*
 * HX_KEY_REQUIRED: the body is empty, or there is nothing (or null) at the pointer. HX_KEY_INVALID: the body is not JSON,
 * the key is neither string nor number, is empty or too long, has a control character, or the path leads through a name
 * that an object has twice. The pointer is a checked one. The key is as above, at most 4 × max + 1 bytes.
 */
enum hx_code gate_key_from_json(struct slice body, struct slice pointer, size_t max, struct arena *arena,
				struct hx_error *err, struct slice *ret_key) HX_MUST_CHECK;
/* Of a key that stands elsewhere (query, path, cookie, a claim): 1 to `max` characters, UTF-8, no control character. */
enum hx_code gate_key_from_text(struct slice text, size_t max, struct hx_error *err,
				struct slice *ret_key) HX_MUST_CHECK;
/*
 * One key of several: a/b/c, in which a part has %25 for % and %2F for /, so that no two lists are one key. 1 to `max`
 * characters in all.
 */
enum hx_code gate_key_compose(const struct slice parts[], size_t n, size_t max, struct arena *arena,
			      struct hx_error *err, struct slice *ret_key) HX_MUST_CHECK;
/* A string or a number as it is spelled in a key; anything else: HX_KEY_INVALID. */
enum hx_code gate_key_from_value(struct json value, size_t max, struct arena *arena, struct hx_error *err,
				 struct slice *ret_key) HX_MUST_CHECK;
