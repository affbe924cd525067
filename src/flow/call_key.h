/*
 * Keys of calls. Each logical call has one of its own, because a service may keep one answer for each key over all its paths
 * (Stripe does): under a key that is shared, the validation's answer would be told as the action's.
 *
 *   what a key is of       entity                          run                      batch
 *   the action             ent_ID-EFFORT-STEP              run_ID/STEP/REDO         batch_ID/N
 *   its validation         ACTION'S/validation/ASK
 *   its probe              ACTION'S/probe/ASK              ACTION'S/probe/ASK       ACTION'S/probe/ASK
 *   its compensation                                       run_ID/STEP/undo
 *   its void, its cleanup                                                           ACTION'S/void/FENCE, ACTION'S/cleanup/FENCE
 *   an after-effect        ACTION'S/after/ACTION                                    batch_ID/done/ACTION
 *
 * Names have no slash, so none of them can be another's. Validations and probes change nothing, and what they say is true for a
 * moment: each time that one is asked it is a call of its own (ASK is a fresh id), or such a service would say "unknown", or
 * "rejected", for ever. What they ask about they are told as "key" in the body.
 */
#pragma once

#include "base/arena.h"
#include "base/slice.h"

#define CALL_VALIDATION "validation"
#define CALL_PROBE "probe"

/* Of an entity's action, into the arena. */
struct slice entity_call_key(int64_t subject, int64_t effort, struct slice step, struct arena *arena);
/* KEY/WHAT/ASK, into the arena. */
struct slice call_key_to_ask(struct slice key, const char *what, int64_t ask, struct arena *arena);
/* The body of a call, an object, with "key":KEY at its end; into the arena. */
struct slice call_body_about(struct slice body, struct slice key, struct arena *arena);
