/* A bar that says how much of something is done, for pictures and for the line that is written over. */
#pragma once

#include "base/strbuf.h"

#define BAR_COLUMNS 40

void bar_add(struct strbuf *out, int64_t done, int64_t total, size_t columns);
/* How wide it may be in a line with words after it. It keeps its width, so that only what changes moves. */
size_t bar_told_columns(void);
int bar_percent(int64_t done, int64_t total);
/* "  8.4/s", over the last seconds; nothing while it is too early to tell. A command waits once. */
void bar_add_rate(struct strbuf *out, int64_t done, int64_t waited_ms);
