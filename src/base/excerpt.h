/*
 * Foreign text made fit to be shown: in an error's detail, in a log line, on a terminal.
 *
 * Keys, bodies and names come from outside and may hold anything: line breaks that forge a log line, escape
 * sequences that drive a terminal, bytes that are not UTF-8 and would break the JSON around them. Here every
 * such character becomes visible ASCII.
 */
#pragma once

#include "base/slice.h"

#define EXCERPT_PIECE_BYTES 8
#define EXCERPT_BYTES_MAX 60

/*
 * Takes one character from the front of text (which is not empty) and writes how it is shown; returns how many
 * bytes that took, at most 6. Control characters (C0, DEL, C1), the line separators U+2028 and U+2029 and
 * what turns the direction of the text around it (U+202A to U+202E, U+2066 to U+2069) are written as JSON escapes,
 * a byte that is not UTF-8 as \xHH. With `quoted` the quote and every backslash are escaped too, so that the pieces between two quotes are a JSON string.
 */
unsigned excerpt_take(struct slice *text, bool quoted, char ret_piece[EXCERPT_PIECE_BYTES]);

/* The beginning of a text, shown as above without `quoted`; "..." is where more of it was cut off. Terminated. */
struct excerpt {
	char text[EXCERPT_BYTES_MAX + 4];
};

/* Made to stand in an argument list: `error_set(err, code, "no such step: %s", excerpt_of(name).text)`. */
struct excerpt excerpt_of(struct slice text);
