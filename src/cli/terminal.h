/* The terminal that a person sits at, if there is one: colours, width, and a line that is written over. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"

/* May what goes to standard output be coloured? Not into files and pipes, and not where NO_COLOR is set. */
bool terminal_wants_colour(void);
/* Characters to a line of standard output; where nobody says, what fits on most screens. */
size_t terminal_columns(void);
/* The same for standard error. */
size_t terminal_told_columns(void);
/* Does a person watch standard error? */
bool terminal_is_watched(void);
/* Writes over the line that was told last; "" takes it away. What does not fit is cut: a line that has wrapped cannot be
 * written over. Only where it is watched. */
void terminal_tell(const char *line);
/* Is it time to tell how far something is? Ten times a second, and at once where *told is 0; notes that it was. */
bool terminal_is_due(struct mono_time *told);
