/*
 * `debounce` of a workflow (model/limits.h): a start while a run of its name has not begun replaces the input of that run.
 *
 *   start ─ the lock of the name ─┬ none is open ─▶ a row of the new run, and the run: PENDING, due after `for`
 *                                 └ one is ─▶ LOST ─▶ debounce_find() says which ─▶ debounce_join()
 *
 *   join ─ version, or PENDING and nobody's ─┬ won ──▶ its input is the new one, its key another key of that run, due after `for`
 *                                            │         again, but not after `at_most` from its first start
 *                                            └ lost ─▶ it has begun, or the key has a run: it is found anew
 *
 * Open is a run that is PENDING, that nobody holds and that was never begun: what the rows say, so nothing has to be done where it is
 * cancelled or paused. Who begins it has the lock of the name, so that a start comes before that or after it. A join is a change of the subject (PENDING to PENDING) like that of an event: who has read the run before it
 * loses its claim, reads it again, and begins with the new input. So a start that was answered is never lost: what carries its key is
 * begun with its input, or with that of a later one.
 *
 * Another key is a row of hx_run that has nothing else (alias_of): the unique index that makes one run of a key makes no difference
 * between them. It stays for ever, as the first key does, and so does one row for each start with a key, as without a debounce: nothing
 * reads or writes all keys of a run, so nothing bounds them.
 *
 * Children, slots of schedules and restarts are not debounced, nor joined: they have no row here.
 *
 * Invariants:
 *  D1  No start makes a run while one of its name is open.
 *  D2  Every key leads to one run, whose input was that of its start, or of a later one.
 *  D3  A run is due by `until` at the latest, whoever starts meanwhile.
 */
#pragma once

#include <string.h>

#include "db/unit.h"
#include "flow/run.h"

/* .name 0: the workflow has none. */
struct debounce debounce_of(const struct limits *limits, struct slice workspace, const char *workflow,
			    struct slice input, struct arena *arena);

/* Before the run is created. LOST: one is open. */
void debounce_take(struct unit *unit, const struct debounce *debounce, int64_t run);
/* After it: when it is due, and from when on its own time counts (timeout_ms 0: it has none). */
void debounce_begin(struct unit *unit, const struct debounce *debounce, int64_t run, int64_t timeout_ms);

struct debounce_join {
	const struct run_row *row;   /* of the run, as it was read */
	const struct run_spec *spec; /* of the start */
	int64_t alias;               /* a fresh id, for the row of its key */
	struct slice attributes;     /* of the run with its new input; .p NULL: none */
};
/* After the shift of the run. LOST: it was begun, or the key has a run. */
void debounce_join(struct unit *unit, const struct stamp *stamp, const struct debounce_join *join);

/*
 * Which run a start is answered with: that of its key (.p NULL: none), else the newest that is open, else that of its singleton (0: it is
 * none) that is not terminal. For run_found(); and was it by the key?
 */
void debounce_find(struct unit *unit, const struct run_spec *spec);
bool debounce_found_by_key(const struct unit_result *result);

/* Is this one open? */
static inline bool debounce_is_open(const struct run_row *row)
{
	return strcmp(row->status, RUN_PENDING) == 0 && !row->owned && !row->started_at;
}
