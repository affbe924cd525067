/* Records as people are shown them, and what a person says about one: for all who have a page or a list of them. */
#pragma once

#include "base/arena.h"
#include "gate/record.h"

/* A record is named by its key and the token that was seen: what somebody has taken over meanwhile is another one. */
#define GATE_NAME_BYTES (HX_GATE_KEY_BYTES + HX_GATE_TOKEN_BYTES)

/* {"record", "key", "status", "endpoint", "gate", "route", "tenant", "scope", "createdAt", …} */
void gate_sight_json(struct strbuf *text, const struct gate_sight *sight);
/* One of the rows of a statement that has all of its columns from `at` on (record_look.c). */
void gate_read_sight(const struct db_rows *rows, size_t i, size_t at, struct gate_sight *sight);
/* Of FORGET and RESOLVE: the record of this name. False: it is none. */
bool gate_ask_name(struct slice name, struct gate_ask *ask);
/* {"outcome": "done" | "not_done"}: false, it is something else. */
bool gate_read_outcome(struct slice body, bool *ret_done);
/*
 * Of a RESOLVE: it was done. There is no answer to be given again: that it was done is what is kept, as for one that was too large,
 * for so long. False: there is no memory, or no token.
 */
bool gate_ask_done(struct gate_ask *ask, struct arena *arena, int64_t ttl_ms);
/* What a FORGET or a RESOLVE was refused with, and in which words (NULL: the code's own). HX_OK: it was not. */
enum hx_code gate_refusal(enum gate_verdict verdict, const char **ret_words);
