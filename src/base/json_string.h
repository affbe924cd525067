/*
 * JSON strings: what a checked one means, and how a text is written as one.
 *
 * A string means a text of UTF-8 that may hold NUL (from \u0000), so its length counts, not a terminator. Every
 * function that takes a `struct json` needs a checked string; another type is a programmer's mistake.
 */
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/strbuf.h"

/* The text of the string, copied into the arena with a NUL after it. On failure p is NULL and a->failed is set. */
struct slice json_string_decode(struct json string, struct arena *a);
/* The same without a copy where the string has no escapes: then it points into the JSON, with no NUL after it. */
struct slice json_string_view(struct json string, struct arena *a);
/* The same with a buffer of `room` bytes for the text. p is NULL where the string has escapes and more bytes than that. */
struct slice json_string_view_in(struct json string, char *buffer, size_t room);
/* Does the string mean exactly this text? Needs no memory. */
bool json_string_is(struct json string, struct slice text);

/*
 * Appends the text as a JSON string in its quotes. There is one spelling per text: the quote, the backslash and
 * control characters are escaped, in the short form where there is one, and nothing else is. Bytes that are not
 * UTF-8 become U+FFFD, so that what is written is JSON whatever came in.
 */
void json_quote(struct slice text, struct strbuf *sb);
