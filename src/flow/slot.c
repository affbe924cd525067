/* See slot.h. Each guard stands on a line of its own. */
#include "flow/slot.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/utf8.h"
#include "flow/run.h"

/*
 * A thousand locks for all names: PostgreSQL has room for a few thousand. Two names that share one wait for each other, and that is all:
 * a lock is of a range of names, so whoever takes names in their order takes locks in theirs.
 */
DB_STMT(stmt_lock, "slot_lock", "i", "i",
	"SELECT 1 WHERE ?1 <> 0",
	.pg_sql = "SELECT 1::bigint FROM (SELECT pg_advisory_xact_lock(48510712, (?1 >> 53)::int)) AS held");

#define HELD "(SELECT count(*) FROM hx_slot h WHERE h.name = ?1 AND h.held = 1"

/* ?1 name   ?2 holder   ?3 max   ?4 at   ?5 key   ?6 how long those go first that were woken   ?7 action */
DB_STMT(stmt_take, "slot_take", "iiiitit", "",
	"INSERT INTO hx_slot (name, holder, held, at, key, action) SELECT ?1, ?2, 1, ?4, ?5, ?7"
	" WHERE " HELD " AND h.holder <> ?2)"
	" + (SELECT count(*) FROM (SELECT w.holder FROM hx_slot w WHERE w.name = ?1 AND w.held = 0 AND w.holder < ?2"
	" ORDER BY w.holder LIMIT ?3) f JOIN hx_run r ON r.subject = f.holder"
	" AND r.due_at <= hx_now_ms()"
	" AND r.due_at > hx_now_ms() - ?6" /* mutant: slot-head-start-for-ever -> " AND ?6 > 0" */
	")"
	" < ?3" /* mutant: slot-not-counted -> " >= 0 AND ?3 > 0" */
	" OR EXISTS (SELECT 1 FROM hx_slot o WHERE o.name = ?1 AND o.holder = ?2 AND o.held = 1)"
	" ON CONFLICT (name, holder) DO UPDATE SET held = 1");

DB_STMT(stmt_drop, "slot_drop", "ii", "", "DELETE FROM hx_slot WHERE name = ?1 AND holder = ?2");

/* Who is paused has no time at which it is due, and is passed over. */
#define FIRST_IN_LINE                                                                                                  \
	"SELECT r.subject FROM hx_slot w JOIN hx_run r ON r.subject = w.holder WHERE w.name = ?1 AND w.held = 0"       \
	" AND r.due_at IS NOT NULL ORDER BY w.holder LIMIT CASE WHEN " HELD ") < ?2 THEN ?2 - " HELD ") ELSE 0 END"

/* ?1 name   ?2 max */
DB_STMT(stmt_wake, "slot_wake", "ii", "",
	"UPDATE hx_run SET due_at = hx_now_ms() WHERE due_at > hx_now_ms() AND subject IN (" FIRST_IN_LINE ")",
	.pg_sql = "WITH first AS MATERIALIZED (" FIRST_IN_LINE " FOR UPDATE OF r SKIP LOCKED)"
		  " UPDATE hx_run SET due_at = hx_now_ms() WHERE due_at > hx_now_ms() AND subject IN (SELECT subject FROM first)");

#define NEXT_IN_LINE                                                                                                   \
	"SELECT r.subject FROM hx_slot w JOIN hx_run r ON r.subject = w.holder WHERE w.name = ?1 AND w.held = 0"       \
	" AND r.due_at > hx_now_ms() ORDER BY w.holder LIMIT 1"

/* ?1 name   ?2 when it looks */
DB_STMT(stmt_look, "slot_look", "ii", "",
	"UPDATE hx_run SET due_at = hx_now_ms() + ?2 WHERE due_at > hx_now_ms() + ?2 AND subject IN (" NEXT_IN_LINE ")",
	.pg_sql = "WITH next AS MATERIALIZED (" NEXT_IN_LINE " FOR UPDATE OF r SKIP LOCKED)"
		  " UPDATE hx_run SET due_at = hx_now_ms() + ?2 WHERE due_at > hx_now_ms() + ?2 AND subject IN (SELECT subject FROM next)");

/* ?3 for how long   ?4 when its time is over */
DB_STMT(stmt_rest, "slot_rest", "iiii", "",
	"UPDATE hx_run SET due_at = CASE WHEN ?4 > hx_now_ms() AND ?4 < hx_now_ms() + ?3 THEN ?4 ELSE hx_now_ms() + ?3 END"
	" WHERE subject = ?1 AND EXISTS (SELECT 1 FROM hx_subject s WHERE s.id = ?1 AND s.owner IS NULL"
	" AND s.version = ?2" /* mutant: slot-rest-version -> " AND ?2 > 0" */
	")");

/* ?5 action   ?6 0: for a slot, 2: for its time */
DB_STMT(stmt_line, "slot_line", "iiitti", "",
	"INSERT INTO hx_slot (name, holder, held, at, key, action) VALUES (?1, ?2, ?6, ?3, ?4, ?5) ON CONFLICT (name, holder) DO NOTHING");

/* ---- rates ---- */

/* ?1 name   ?2 holder   ?3 max   ?4 per   ?5 how long those go first whose time has come   ?6 which beginning of the holder's */
DB_STMT(stmt_tick, "rate_tick", "iiiiii", "",
	"INSERT INTO hx_tick (holder, name, nth, at, until) SELECT ?2, ?1, ?6, hx_now_ms(), hx_now_ms() + ?4"
	" WHERE (SELECT count(*) FROM hx_tick t WHERE t.name = ?1 AND t.at > hx_now_ms() - ?4"
	" AND NOT (t.holder = ?2 AND t.nth = ?6))"
	" + (SELECT count(*) FROM (SELECT w.holder FROM hx_slot w WHERE w.name = ?1 AND w.held = 2 AND w.holder < ?2"
	" ORDER BY w.holder LIMIT ?3) f JOIN hx_run r ON r.subject = f.holder AND r.due_at <= hx_now_ms()"
	" AND r.due_at > hx_now_ms() - ?5)"
	" < ?3" /* mutant: rate-not-counted -> " >= 0 AND ?3 > 0" */
	" ON CONFLICT (holder, name, nth) DO UPDATE SET at = hx_tick.at");

/*
 * Those before it in line come first, `max` of them in each time. So many are counted; who stands further back comes after the one before
 * it, or else a line of very many would be counted through by each that joins it. Should that be too early, it stands in line again.
 */
#define PLACES "1000" /* RATE_PLACES_MAX */
#define BEFORE " FROM hx_slot b WHERE b.name = ?3 AND b.held = 2 AND b.holder < ?1"
#define PLACE "(SELECT count(*) FROM (SELECT 1" BEFORE " LIMIT " PLACES ") AS before)"
#define TIME_OF(place)                                                                                                     \
	"CASE WHEN " place " < " PLACES " THEN coalesce((SELECT t.at FROM hx_tick t WHERE t.name = ?3"                     \
	" AND t.at > hx_now_ms() - ?5 ORDER BY t.at LIMIT 1 OFFSET " place " % ?4) + ?5 * (1 + " place                     \
	" / ?4), hx_now_ms())"                                                                                             \
	" ELSE (SELECT CASE WHEN l.due_at > hx_now_ms() THEN l.due_at + ?5 / ?4 ELSE hx_now_ms() + 1000 END FROM hx_run l" \
	" WHERE l.subject = (SELECT b.holder" BEFORE " ORDER BY b.holder DESC LIMIT 1)) END"

/* ?1 run   ?2 version   ?3 name   ?4 max   ?5 per   ?6 when its time is over */
DB_STMT(stmt_rest_rate, "rate_rest", "iiiiii", "",
	"UPDATE hx_run SET due_at = CASE WHEN ?6 > hx_now_ms() AND ?6 < " TIME_OF(PLACE) " THEN ?6 ELSE " TIME_OF(PLACE) " END"
	" WHERE subject = ?1 AND EXISTS (SELECT 1 FROM hx_subject s WHERE s.id = ?1 AND s.owner IS NULL"
	" AND s.version = ?2" /* mutant: rate-rest-version -> " AND ?2 > 0" */
	")");

DB_STMT(stmt_leave, "rate_leave", "i", "", "DELETE FROM hx_slot WHERE holder = ?1 AND held = 2");

/* The holder is a subject of the unit. */
DB_STMT(stmt_stands, "slot_stands", "ii", "i",
	"SELECT CAST(1 AS bigint) WHERE ?2 = coalesce((SELECT w.name FROM hx_slot w WHERE w.holder = ?1 AND w.action IS NOT NULL LIMIT 1), 0)");

DB_STMT(stmt_scan_ticks, "rate_scan_expired", "ii", "i",
	"SELECT DISTINCT o.name FROM (SELECT name FROM hx_tick WHERE until <= (SELECT hx_now_ms()) - ?1 ORDER BY until LIMIT ?2) o");

DB_STMT(stmt_expire_ticks, "rate_expire", "ii", "",
	"DELETE FROM hx_tick WHERE name = ?1"
	" AND until <= hx_now_ms() - ?2" /* mutant: tick-swept-early -> " AND ?2 >= 0" */
);

DB_STMT(stmt_read_wait, "slot_read_wait", "i", "tiiit",
	"SELECT w.key, (SELECT count(*) FROM hx_slot h WHERE h.name = w.name AND h.held = 1),"
	" (SELECT count(*) FROM hx_slot b WHERE b.name = w.name AND b.held = w.held AND b.holder < w.holder),"
	" CAST(CASE WHEN w.held = 2 THEN 1 ELSE 0 END AS bigint), w.action"
	" FROM hx_slot w WHERE w.holder = ?1 AND w.held <> 1 ORDER BY w.name LIMIT 1");

int64_t slot_name(const char *kind, struct slice workspace, struct slice workflow, struct slice key)
{
	/* No name has a NUL in it, and the key is the last: what is joined can be taken apart again. */
	struct slice nul = slice_of("", 1);
	struct slice parts[] = {slice_str(kind), nul, workspace, nul, workflow, nul, key};
	uint8_t digest[SHA256_BYTES];
	uint64_t name = 0;

	sha256_parts(parts, sizeof parts / sizeof *parts, digest);
	for (int i = 0; i < 8; i++)
		name = name << 8 | digest[i];
	return -(int64_t)(name >> 1 | 1);
}

static struct slice shown(struct slice key)
{
	if (key.n > SLOT_KEY_SHOWN_BYTES)
		key.n = utf8_cut(slice_of(key.p, SLOT_KEY_SHOWN_BYTES));
	return key;
}

void slot_lock(struct unit *unit, const struct slot *slot)
{
	unit_keep_apart(unit, slot->name);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_lock, db_int(slot->name)); /* it cannot lose: with it the unit is serial */
}

void slot_take(struct unit *unit, const struct slot *slot, int64_t holder, int64_t at_ms)
{
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_take, db_int(slot->name), db_int(holder), db_int(slot->max), db_int(at_ms),
		 db_text(shown(slot->key)), db_int(SLOT_HEAD_START_MS), db_optional(slot->action));
}

int64_t slot_full(const struct unit *unit, const struct unit_result *result)
{
	const struct unit_line *line = result->line >= 0 ? &unit->lines[result->line] : NULL;

	if (result->verdict != UNIT_LOST || !line || (line->stmt != &stmt_take && line->stmt != &stmt_tick))
		return 0;
	return line->params[0].i;
}

/* A limit that is gone lets all go that waited for it. */
static void wake_first(struct unit *unit, const struct slot *slot)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_wake, db_int(slot->name), db_int(slot->max ? slot->max : INT32_MAX));
	UNIT_ADD(unit, UNIT_ANY, &stmt_look, db_int(slot->name),
		 db_int(SLOT_LOOK_FIRST_MS)); /* mutant: slot-look-late -> db_int(SLOT_LOOK_MS)); */
	unit_wake(unit, RUN_TOPIC);
}

void slot_release(struct unit *unit, const struct slot *slot, int64_t holder)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_drop, db_int(slot->name), db_int(holder)); /* mutant: slot-kept */
	wake_first(unit, slot);                                                   /* mutant: slot-wakes-nobody */
}

void slot_wait(struct unit *unit, const struct slot *slot, int64_t run, int64_t version, int64_t times_out_at,
	       int64_t at_ms)
{
	unit_touch(unit, run);
	slot_lock(unit, slot);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_rest, db_int(run), db_int(version), db_int(SLOT_LOOK_MS),
		 times_out_at ? db_int(times_out_at) : db_null());
	UNIT_ADD(unit, UNIT_ANY, &stmt_line, db_int(slot->name), db_int(run), db_int(at_ms), db_text(shown(slot->key)),
		 db_optional(slot->action), db_int(0));
	wake_first(unit, slot); /* mutant: slot-free-meanwhile */
}

_Static_assert(RATE_PLACES_MAX == 1000, "as the statement has it");

static void lock_name(struct unit *unit, int64_t name)
{
	slot_lock(unit, &(struct slot){.name = name});
}

void rate_take(struct unit *unit, const struct rate *rate, int64_t holder, int64_t nth)
{
	lock_name(unit, rate->name);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_tick, db_int(rate->name), db_int(holder), db_int(rate->max),
		 db_int(rate->per_ms), db_int(SLOT_HEAD_START_MS), db_int(nth));
	UNIT_ADD(unit, UNIT_ANY, &stmt_drop, db_int(rate->name), db_int(holder));
}

void rate_wait(struct unit *unit, const struct rate *rate, int64_t run, int64_t version, int64_t times_out_at,
	       int64_t at_ms)
{
	unit_touch(unit, run);
	lock_name(unit, rate->name);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_rest_rate, db_int(run), db_int(version), db_int(rate->name),
		 db_int(rate->max), db_int(rate->per_ms), times_out_at ? db_int(times_out_at) : db_null());
	rate_line(unit, rate, run, at_ms);
	unit_wake(unit, RUN_TOPIC);
}

void rate_line(struct unit *unit, const struct rate *rate, int64_t run, int64_t at_ms)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_line, db_int(rate->name), db_int(run), db_int(at_ms), db_text(shown(rate->key)),
		 db_optional(rate->action), db_int(2));
}

void rate_leave(struct unit *unit, int64_t run)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_leave, db_int(run)); /* mutant: rate-not-left */
}

void rate_scan_expired(struct unit *unit, int64_t age_ms, int64_t limit)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_scan_ticks, db_int(age_ms), db_int(limit));
}

void rate_expire(struct unit *unit, int64_t name, int64_t age_ms)
{
	unit_keep_apart(unit, name);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_expire_ticks, db_int(name), db_int(age_ms));
}

void slot_stands(struct unit *unit, int64_t run, int64_t name)
{
	unit_touch(unit, run);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_stands, db_int(run), db_int(name));
}

bool slot_of_action_read(struct slice text, int64_t *ret_name, struct slice *ret_action)
{
	char *after;

	if (!text.p)
		return false;
	*ret_name = strtoll(text.p, &after, 10);
	*ret_action = slice_of(after + 1, text.n - (size_t)(after + 1 - text.p));
	return true;
}

void slot_read_wait(struct unit *unit, int64_t holder)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_read_wait, db_int(holder));
}
