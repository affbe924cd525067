/* The known name that a misspelt one was probably meant to be. */
#pragma once

#include "base/slice.h"

/*
 * Of a list that ends with NULL; of several equally near ones the first. NULL: none is near, that is, about half of the
 * longer name would have to change. A guess that is wrong sends its reader astray.
 */
const char *nearest_name(struct slice name, const char *const *known);

#define SUGGESTION_BYTES 200

/*
 * `; did you mean "x"?` for the nearest; `; there are "a", "b"` when none is near and they are few; otherwise nothing.
 * `before` and `after` stand around each name: quotes, dashes. Made to stand in an argument list.
 */
struct suggestion {
	char text[SUGGESTION_BYTES];
};
struct suggestion nearest_words(struct slice name, const char *const *known, const char *before, const char *after);
