/*
 * The part of record.h that is for people: LOOK, FORGET, RESOLVE and TALLY as units, and what came of them. A record is
 * named by its key and the token that was seen: what has changed hands since is not what somebody decided about, and a
 * record whose lease lasts is nobody's to decide about. For record.c alone.
 */
#pragma once

#include "gate/record.h"

#define GATE_SPAN_MS_MAX (INT64_C(1) << 50) /* longer is as good as for ever, and adds up without overflow */

/* A member that is an array of bytes. */
#define DB_BYTES(member) db_blob(slice_of(member, sizeof(member)))

static inline struct db_value gate_span(int64_t ms)
{
	return db_int(ms < GATE_SPAN_MS_MAX ? ms : GATE_SPAN_MS_MAX);
}

/* The state of a live record, as somebody sees it who does not hold it. */
enum gate_verdict gate_state_of(bool completed, bool held, int64_t left_ms);

void gate_add_look(struct unit *unit, const struct gate_ask *ask);
void gate_add_forget(struct unit *unit, const struct gate_ask *ask);
void gate_add_resolve(struct unit *unit, const struct gate_ask *ask);
void gate_add_tally(struct unit *unit, const struct gate_ask *ask);
/* What came of any of them. False: its lease has ended just now, and it is to be asked again. */
bool gate_read_look(const struct gate_ask *ask, const struct unit_result *result, struct gate_reply *reply);
