/*
 * JSON is text that is checked once and then read in place.
 *
 * json_check() is a strict scanner for RFC 8259: exactly one value, UTF-8 without faults, escapes that mean a
 * character (a lone surrogate does not), numbers in the grammar, at most JSON_DEPTH_MAX brackets deep. It
 * allocates nothing, converts nothing, and takes a time that is linear in the text. What it has accepted is a
 * `struct json`: a slice of the text with the promise that it is well-formed. Numbers therefore stay exact and
 * payloads stay the bytes that came in.
 *
 *   reading a value: json_walk.h   strings: json_string.h   numbers: json_number.h
 *   fingerprints: json_canonical.h   definitions, configuration: json_tree.h
 *
 * Twice the same name in one object is well-formed JSON, and finding it needs memory for the names. So the
 * scanner lets it pass, and whoever must refuse it asks json_check_unique() (json_members.h) with an arena.
 * Where nobody does, json_find() takes the first of them, and the canonical form keeps all.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "base/slice.h"

/* So many brackets may be open at once. The scanner's stack is the bits of one word. */
#define JSON_DEPTH_MAX 64

/* A well-formed value without the white space around it. It borrows the text. */
struct json {
	struct slice raw;
};

enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

/*
 * The whole text is one value, with white space around it at most: *ret_value is that value. Otherwise
 * HX_VALIDATION_ERROR, and the detail reads "LINE:COLUMN: what is wrong".
 */
enum hx_code json_check(struct slice text, struct hx_error *err, struct json *ret_value) HX_MUST_CHECK;

/*
 * For text that json_check() accepted earlier, e.g. read back from our own store. It must not have white space
 * around it. Text that was never checked gives nonsense; the readers of json_walk.h still stay inside of it.
 */
static inline struct json json_trust(struct slice raw)
{
	return (struct json){raw};
}

enum json_type json_type(struct json value);
/* "null", "boolean", "number", "string", "array", "object": for messages. */
const char *json_type_name(enum json_type type);

/* Where a byte of a text stands. Both count from 1; a column is a character, a line ends with LF. */
struct json_position {
	size_t line;
	size_t column;
};

/* The position of text.p[offset]; offset == text.n is the end. Bytes that are not UTF-8 count one by one. */
struct json_position json_locate(struct slice text, size_t offset);
