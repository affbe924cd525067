/*
 * What one connection's groups fail of, for the log. Callers get a code and a general sentence; the store's own words
 * are for whoever runs the server, and stand here.
 *
 *             a unit failed: told                  the statement that failed last has worked: told
 *   WELL ─────────────────────────────▶ IN TROUBLE ────────────────────────────────────────────────▶ WELL
 *                                        │      ▲
 *                                        └──────┘ failed in other words, and TROUBLE_TELL_MS have passed: told
 *                                                 failed after TROUBLE_FORGET_MS of silence: told
 *
 * So there is no line for each request, however many fail. Not every success ends it: with a full disk reads still
 * work, and with one table lost all others do.
 *
 * A unit whose own data is refused, that waits for a lock in vain or runs out of its time, is no trouble of the store: it is told by itself,
 * with its subject and its op, at most once in TROUBLE_UNIT_MS. What exceeds a limit has been answered with that limit.
 */
#pragma once

#include "base/log.h"
#include "db/unit.h"

#define TROUBLE_TELL_MS 10000
#define TROUBLE_FORGET_MS 60000
#define TROUBLE_UNIT_MS 1000

/* One thread's own. Zeroed but for the first three, it is WELL. */
struct trouble {
	struct log *log; /* NULL: silent */
	const char *who; /* "lane", "reader": the field with its number */
	int64_t number;

	const struct db_stmt *stmt;          /* of the unit that failed last: only compared; NULL: WELL */
	uint64_t failed_n;                   /* units, since it began */
	struct mono_time failed_at, told_at; /* the last that failed, the last line */
	struct hx_error told;                /* of that line */
	struct mono_time unit_not_before;
	uint64_t units_unsaid;
};

/*
 * After a group of which a unit has failed, and after every one while it is in trouble: the units and what became of them.
 * NULL: a unit that left for another connection; what stands in its place is nobody's result.
 */
void trouble_note(struct trouble *t, struct unit *const units[], const struct unit_result results[], size_t n,
		  struct mono_time now);

static inline bool trouble_is_on(const struct trouble *t)
{
	return t->stmt != NULL;
}
