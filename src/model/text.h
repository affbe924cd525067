/* Texts that live in an arena. NULL when the arena has failed. */
#pragma once

#include <stdarg.h>

#include "base/arena.h"

const char *text_printf(struct arena *a, const char *format, ...) HX_PRINTF(2, 3);
const char *text_vprintf(struct arena *a, const char *format, va_list args);
/* A letter or '_', then these and digits. */
bool text_is_identifier(struct slice text);
/* Nothing but digits, up to six of them, and no more than that. */
bool text_is_number_up_to(const char *text, unsigned max);
