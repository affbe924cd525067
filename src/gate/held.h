/*
 * What is held for a person: how many records, for the metrics, and a line in the log for each that becomes so. A record
 * becomes held by the passing of time alone, perhaps long after the gate that forwarded its request has died; so every gate
 * on the store looks for itself (sweeper.h), and says what it sees.
 */
#pragma once

#include <stdatomic.h>

#include "base/clock.h"
#include "base/log.h"
#include "gate/record.h"

#define HELD_EVERY_MS 2000

struct gate_held {
	struct log *log;       /* may be NULL */
	_Atomic int64_t count; /* -1: not counted yet */
	struct mono_time last; /* when it was asked last; of the thread that asks alone. 0: never */
};

void gate_held_init(struct gate_held *held, struct log *log);
/* The reply to a TALLY that was asked at this time. One that failed changes nothing. */
void gate_held_note(struct gate_held *held, const struct gate_reply *reply, struct mono_time asked);
