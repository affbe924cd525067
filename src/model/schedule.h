/*
 * What a schedule says: when, what is started, and what becomes of a slot that meets the one before it, or that nobody was there for.
 * Pure: JSON in, a struct out; and back into one text, which is the same for all that say the same.
 *
 *   {"workflow": "report", "input": {…}, "cron": "0 9 * * MON-FRI", "timezone": "Europe/Berlin", "overlap": "skip", "catchUp": "24h", …}
 *
 * A slot is a moment of its times, in UTC to the second; jitter moves the start, never the slot.
 */
#pragma once

#include "base/json.h"
#include "base/strbuf.h"
#include "model/cron.h"

#define SCHEDULE_INPUT_BYTES_MAX (1u << 20)
#define SCHEDULE_ITEMS_MAX 1000 /* of the batch that a slot starts: it is one unit */
#define SCHEDULE_TEXT_MAX 255   /* of a name in it */

enum schedule_starts { SCHEDULE_STARTS_RUN, SCHEDULE_STARTS_BATCH, SCHEDULE_FIRES };
enum schedule_overlap { OVERLAP_SKIP, OVERLAP_QUEUE, OVERLAP_CANCEL, OVERLAP_ALLOW };
enum schedule_catch_up { CATCH_UP_NONE, CATCH_UP_LAST, CATCH_UP_ALL };

extern const char *const schedule_overlaps[];
extern const char *const schedule_members[]; /* of the API; both end with NULL */

struct schedule_spec {
	enum schedule_starts starts;
	struct slice workflow;
	struct slice input;   /* JSON; .p NULL: none was given */
	struct slice account; /* of a batch */
	struct slice data;    /* of a batch: JSON; .p NULL: none */
	struct slice items;   /* of a batch: JSON [{"input", "cost"}] */
	int64_t items_n;
	struct slice entity, step; /* of what is fired */
	struct slice cron;         /* its text; .p NULL: every */
	struct slice timezone;
	struct slice every, catching_up, jitter; /* as they were written; .p NULL: none */
	struct timing timing;                    /* zone: NULL until whoever has the zones sets it */
	enum schedule_overlap overlap;
	enum schedule_catch_up catch_up;
	int64_t catch_up_ms; /* of CATCH_UP_ALL; 0: however long ago */
	int64_t jitter_ms;   /* 0: none */
	bool paused_given, paused;
};

/* Texts are in the arena. file: members are spelt as in definitions (catch_up). HX_VALIDATION_ERROR with words; HX_TOO_LARGE. */
enum hx_code schedule_spec_read(struct json object, bool file, struct arena *arena, struct hx_error *err,
				struct schedule_spec *ret_spec) HX_MUST_CHECK;
/* The members of the API, without those of its state, as one object. */
void schedule_spec_write(const struct schedule_spec *spec, struct strbuf *text);

/* How long after its slot it starts: a hash of both, from 0 to jitter − 1 ms. */
int64_t schedule_jitter_ms(const struct schedule_spec *spec, struct slice name, int64_t slot_s);
/* "2026-11-16T09:00:00Z" */
#define SCHEDULE_SLOT_BYTES 21
void schedule_slot_format(int64_t slot_s, char text[SCHEDULE_SLOT_BYTES]);
