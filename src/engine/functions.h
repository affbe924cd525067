/*
 * The functions of this node: looks at those that are due (a sleep or a timeout is over, an event, a decision or a child has come) and at
 * those whose worker's lease is over. What there is to do is one task (flow/function.h).
 *
 *   feeder (woken by FUNCTION_TOPIC, by time, at the latest every 2 s) ─ ids ─┐
 *   janitor: a lease is over ─────────────────────────────────────────────────┴▶ a function_look for each ─ done ─▶ it looks again
 */
#pragma once

#include "engine/feeder.h"
#include "flow/function.h"

struct functions;

extern const struct feed functions_feed;
/* From any thread. Without room a later look finds it. */
void functions_look_at(struct functions *functions, int64_t subject);
