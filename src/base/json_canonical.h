/*
 * The canonical form of a JSON value: one text for all documents that say the same, for fingerprints.
 *
 *   white space   none
 *   objects       members sorted by the code points of their decoded names, on every level
 *   arrays        in their order
 *   strings       one spelling, that of json_quote(): "\u0041\/" and "A/" are the same
 *   numbers       by exact value, json_number_append(): 1 = 1.0 = 1e0 = 10e-1 and -0 = 0, but 2^53+1 is not 2^53,
 *                 1e400 is not 1e401, and an exponent of any length costs no more than its digits
 *
 * The result is JSON again, and its canonical form is itself. An object that has a name twice keeps both members
 * in their order: readers differ in which one they take, so it equals only an object with the same two, never
 * one that has the name once. No text is normalised beyond that (é in one and in two code points differ).
 */
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/strbuf.h"

/*
 * Appends the canonical form. scratch holds the index of the members (json_members.h) and decoded strings; both
 * it and the buffer bound the memory: HX_TOO_LARGE when one of them is full, HX_NO_MEMORY when the system is. The
 * form is at most twice as long as the value. On an error what was appended is worth nothing.
 */
enum hx_code json_canonical(struct json value, struct arena *scratch, struct hx_error *err,
			    struct strbuf *ret_text) HX_MUST_CHECK;
