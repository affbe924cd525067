/*
 * The text of a definition, of whatever kind, as a tree.
 *
 * The counts that are limited are looked at before a tree is built: a million statuses are answered by counting
 * them, not by keeping them.
 */
#pragma once

#include "model/reader.h"

/* Of the scratch arena: the text, its tree at about 200 bytes a value, and the work on it. */
#define DEFINITION_SCRATCH_BYTES_MAX (192u << 20)

/* The root, which is an object; it lives in the scratch arena. NULL: that is reported, or the arena has failed. */
const struct json_node *definition_text_read(const struct reader *r, struct slice text, struct arena *scratch);
/*
 * The other end: what found no memory is reported, the findings since `from` (findings->last before the reading) are put
 * in the order of their lines, and the scratch arena is released.
 */
void definition_text_done(const struct reader *r, struct arena *scratch, struct finding **from);
