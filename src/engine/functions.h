/*
 * The functions of this node: looks at those that are due (a sleep or a timeout is over, an event, a decision or a child has come) and at
 * those whose worker's lease is over. What there is to do is one task (flow/function.h).
 *
 *   feeder (woken by FUNCTION_TOPIC, by time, at the latest every 2 s) ─ ids ─┐
 *   janitor: a lease is over ─────────────────────────────────────────────────┴▶ a function_look for each ─ done ─▶ it looks again
 */
#pragma once

#include "engine/parts.h"
#include "flow/function.h"

struct functions;

enum hx_code functions_start(const struct engine_parts *parts, struct functions **ret,
			     struct hx_error *err) HX_MUST_CHECK;
/* From now on none is begun that is not under way. Takes NULL. */
void functions_close(struct functions *functions);
/* After the lanes have stopped. Takes NULL. */
void functions_free(struct functions *functions);
/* From any thread. Without room a later look finds it. */
void functions_look_at(struct functions *functions, int64_t subject);
