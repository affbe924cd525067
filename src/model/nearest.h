/* The known name that a misspelt one was probably meant to be. */
#ifndef HX_MODEL_NEAREST_H
#define HX_MODEL_NEAREST_H

#include "base/slice.h"

/* Of a list that ends with NULL; of several equally near ones the first. NULL only for an empty list. */
const char *nearest_name(struct slice name, const char *const *known);

#endif
