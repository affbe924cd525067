/*
 * JSON Pointer (RFC 6901): the way to one value of a checked document.
 *
 *   ""              the document itself
 *   "/data/id"      the member id of the member data
 *   "/items/0"      the first element of an array; of an object, the member that is called 0
 *   "/a~1b/m~0n"    the member m~n of the member a/b
 *
 * Names are compared decoded, on both sides, and byte for byte. An index has no sign and no leading zero; `-`, the
 * element after the last one, is never there.
 *
 * Where an object on the way has the name twice, readers differ in which one they take, so none is selected: the
 * caller is told. Each level on the way is read once, to its end, and nothing is allocated.
 */
#pragma once

#include "base/json.h"

#define JSON_POINTER_BYTES_MAX 1024

enum json_selection {
	JSON_SELECTED,
	JSON_ABSENT,    /* there is no such member or element */
	JSON_AMBIGUOUS, /* an object on the way has the name twice */
};

/* HX_VALIDATION_ERROR, with the reason, for a text that is no pointer or is longer than JSON_POINTER_BYTES_MAX. */
enum hx_code json_pointer_check(struct slice pointer, struct hx_error *err) HX_MUST_CHECK;
/* Needs a checked pointer and a checked document. *ret_value is set only with JSON_SELECTED. */
enum json_selection json_pointer_select(struct json document, struct slice pointer,
					struct json *ret_value) HX_MUST_CHECK;
