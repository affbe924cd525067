/*
 * Definitions that somebody puts are explored by `hapax serve` (api/api_explore.h): by this program, run as a process of its own, with a
 * lower priority, a limit on its memory, and its time. So the server's threads do nothing for it, and what goes wrong in there stays there.
 *
 *   IDLE ──begin──▶ WANTED ──its thread──▶ RUNNING ──done is called──▶ IDLE        one at a time; any other is HX_BUSY
 */
#pragma once

#include "base/error.h"

struct explorer;

/* NULL without memory, or where no thread can be started: then nothing is explored. */
struct explorer *explorer_new(void);
/* What is being explored ends at once, as EXPLORED_FAILED, and nothing is begun any more: all are HX_BUSY. Takes NULL, as does the other. */
void explorer_stop(struct explorer *explorer);
void explorer_free(struct explorer *explorer);
