/*
 * Limits of functions (model/limits.h, slot.h). A slot is held with the turn: taken in the unit that claims it, let go in the unit that ends
 * it, whoever does; so a worker that is lost keeps it until its lease is over, and who waits, for whatever, holds none.
 *
 *   turn due ─ claim ─┬ room, and not too early ─▶ the worker's, with a slot, and its beginning counted
 *                     └ full ─▶ in line: its turn is due later, or when it is woken
 *   in line ─ cancelled, paused ─▶ out of line, and the next is woken
 *
 * When a run in line is due is said by hx_run.due_at, which is what slot.c knows; a turn by hx_function.turn_at. Whoever moves the first in
 * line moves their turns with them, in that unit (function_line_moved()); one that is being written just then is passed over, and is due by
 * its own time.
 *
 * Plain names are claimed many at once, in one statement (function_claim.c); names with a limit one by one: each has a key and a lock.
 */
#include <string.h>

#include "flow/function_parts.h"
#include "flow/run_children.h"
#include "flow/subject_change.h"

/* clang-format off */

/* Its turn is due when its run is. */
#define TURN_OF(run) "turn_at = (SELECT r.due_at FROM hx_run r WHERE r.subject = " run "), revision = revision + 1"
DB_STMT(stmt_line_up, "function_line_up", "ii", "",
	"UPDATE hx_function SET " TURN_OF("?1") ", limit_max = ?2 WHERE subject = ?1");

#define FIRST_IN_LINE                                                                                                  \
	"SELECT f.subject, r.due_at FROM (SELECT w.holder FROM hx_slot w WHERE w.name = ?1 AND w.held = 0 ORDER BY w.holder LIMIT ?2) w"  \
	" JOIN hx_function f ON f.subject = w.holder JOIN hx_run r ON r.subject = w.holder WHERE f.turn_at <> r.due_at"

/* ?1 name   ?2 how many may have been woken, and the next, which looks soon */
DB_STMT(stmt_line_moved, "function_line_moved", "ii", "",
	"UPDATE hx_function SET " TURN_OF("hx_function.subject") " WHERE subject IN (SELECT subject FROM (" FIRST_IN_LINE ") AS m)",
	.pg_sql = "WITH m AS MATERIALIZED (" FIRST_IN_LINE " FOR UPDATE OF f SKIP LOCKED)"
		  " UPDATE hx_function f SET revision = f.revision + 1, turn_at = m.due_at FROM m WHERE f.subject = m.subject");

DB_STMT(stmt_limited, "function_limited", "ii", "", "UPDATE hx_function SET limit_max = ?2 WHERE subject = ?1");

/* Nobody but the line has to do with this time of a function's. */
DB_STMT(stmt_out_of_line, "function_out_of_line", "i", "", "UPDATE hx_run SET due_at = NULL WHERE subject = ?1");

/* After debounce.c has put off the run: its turn, and when its time is over. */
DB_STMT(stmt_put_off, "function_put_off", "i", "",
	"UPDATE hx_function SET " TURN_OF("?1") ", due_at = (SELECT r.times_out_at FROM hx_run r WHERE r.subject = ?1) WHERE subject = ?1");

/* clang-format on */

#define NO_MAX INT32_MAX /* of one that stands in line for its time alone */

bool function_is_limited(const struct limits *limits)
{
	return limits && (limits->concurrency.max || limits->rate.max);
}

struct bounds function_bounds(const struct limits *limits, struct slice workspace, struct slice name,
			      struct slice input, bool begun, struct arena *arena)
{
	static const char *const kinds[] = {"run", "rate"};
	struct bounds b = bounds_of(limits, kinds, workspace, name, limit_key, input, arena);

	if (begun)
		b.rate = (struct rate){0};
	return b;
}

static int64_t max_of(const struct bounds *bounds)
{
	return bounds->slot.max ? bounds->slot.max : NO_MAX;
}

void function_limit_taken(struct unit *unit, const struct bounds *bounds, int64_t subject)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_limited, db_int(subject), db_int(max_of(bounds)));
	UNIT_ADD(unit, UNIT_ANY, &stmt_out_of_line, db_int(subject));
}

static void line_moved(struct unit *unit, int64_t name, int64_t max)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_line_moved, db_int(name), db_int(max < NO_MAX ? max + 1 : max));
}

void function_limit_wait(struct unit *unit, const struct bounds *bounds, bool too_early, int64_t subject,
			 int64_t version, int64_t at_ms)
{
	if (!too_early)
		rate_leave(unit, subject); /* mutant: turn-in-two-lines -> ; */
	if (too_early)
		rate_wait(unit, &bounds->rate, subject, version, /* times_out_at= */ 0, at_ms);
	else
		slot_wait(unit, &bounds->slot, subject, version, /* times_out_at= */ 0, at_ms);
	UNIT_ADD(unit, UNIT_ANY, &stmt_line_up, db_int(subject), db_int(max_of(bounds)));
	if (too_early && bounds->slot.name) { /* who waits for its time is in the way of nobody who waits for a slot */
		slot_lock(unit, &bounds->slot);
		slot_release(unit, &bounds->slot, subject);
	}
	if (bounds->slot.name)
		line_moved(unit, bounds->slot.name, bounds->slot.max);
}

void function_limit_leave(struct unit *unit, const struct function_work *w)
{
	const struct function_row *row = &w->row;
	struct slot slot = {.name = row->slot, .max = row->limit_max};
	bool ends = row->owned && w->frees;

	if (!row->limit_max || !(ends || (!row->owned && !w->turn_at)))
		return;
	if (slot.name) {
		slot_lock(unit, &slot);
		slot_release(unit, &slot, row->subject); /* mutant: turn-keeps-its-slot -> ; */
		line_moved(unit, slot.name, slot.max);   /* mutant: line-stands-still -> ; */
		function_offer(unit, row->workspace, row->name, 1);
	}
	if (!ends) {
		rate_leave(unit, row->subject);
		UNIT_ADD(unit, UNIT_ANY, &stmt_out_of_line, db_int(row->subject));
	}
}

void function_put_off(struct unit *unit, int64_t subject)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_put_off, db_int(subject));
	UNIT_ADD(unit, UNIT_ANY, &stmt_out_of_line, db_int(subject));
	unit_wake(unit, FUNCTION_TOPIC);
}
