/* See slot.h. Each guard stands on a line of its own. */
#include "flow/slot.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/utf8.h"
#include "flow/job.h"
#include "flow/run.h"

/*
 * A thousand locks for all names: PostgreSQL has room for a few thousand. Two names that share one wait for each other, and that is all:
 * a lock is of a range of names, so whoever takes names in their order takes locks in theirs.
 */
DB_STMT(stmt_lock, "slot_lock", "i", "i",
	"SELECT 1 WHERE ?1 <> 0",
	.pg_sql = "SELECT 1::bigint FROM (SELECT pg_advisory_xact_lock(48510712, (?1 >> 53)::int)) AS held");

#define HELD "(SELECT count(*) FROM hx_slot h WHERE h.name = ?1 AND h.held = 1"

/* clang-format off */

/* A statement about the rows of those in line, which are runs or jobs: text(table). */
#define STMTS(variable, name_, in_, text)                                                                              \
	static const struct db_stmt variable[] = {                                                                     \
		[SLOT_OF_RUN] = {.name = name_, .in = in_, .out = "", text("hx_run")},                                 \
		[SLOT_OF_JOB] = {.name = name_ "_job", .in = in_, .out = "", text("hx_job")},                          \
	}
/* One that only asks when those in line are due: in that of an action there are both. text(join, due) */
#define JOIN_ONE(table) " JOIN " table " r ON r.subject = f.holder"
#define JOIN_BOTH " LEFT JOIN hx_run r ON r.subject = f.holder LEFT JOIN hx_job j ON j.subject = f.holder"
#define DUE_BOTH "coalesce(r.due_at, j.due_at)"
#define STMTS_OF_ANY(variable, name_, in_, text)                                                                       \
	static const struct db_stmt variable[] = {                                                                     \
		[SLOT_OF_RUN] = {.name = name_, .in = in_, .out = "", text(JOIN_ONE("hx_run"), "r.due_at")},           \
		[SLOT_OF_JOB] = {.name = name_ "_job", .in = in_, .out = "", text(JOIN_ONE("hx_job"), "r.due_at")},    \
		[SLOT_OF_CALL] = {.name = name_ "_call", .in = in_, .out = "", text(JOIN_BOTH, DUE_BOTH)},             \
	}

/* Who comes before in line, and was woken: the first `max` of them. ?2 holder   ?3 max */
#define WOKEN(join, due, held, rank)                                                                                   \
	"(SELECT count(*) FROM (SELECT w.holder FROM hx_slot w WHERE w.name = ?1 AND w.held = " held                   \
	" AND (w.rank, w.holder) < (" rank ", ?2) ORDER BY w.rank, w.holder LIMIT ?3) f" join                          \
	" WHERE " due " <= hx_now_ms()"

/* ?1 name   ?2 holder   ?3 max   ?4 at   ?5 key   ?6 how long those go first that were woken   ?7 action   ?8 rank */
#define TAKE(join, due)                                                                                                    \
	.sql = "INSERT INTO hx_slot (name, holder, held, at, key, action, rank, bound) SELECT ?1, ?2, 1, ?4, ?5, ?7, ?8, ?3"  \
	" WHERE " HELD " AND h.holder <> ?2)"                                                                          \
	" + " WOKEN(join, due, "0", "?8")                                                                              \
	" AND " due " > hx_now_ms() - ?6" /* mutant: slot-head-start-for-ever -> " AND ?6 > 0" */                     \
	")"                                                                                                            \
	" < ?3" /* mutant: slot-not-counted -> " >= 0 AND ?3 > 0" */                                                   \
	" OR EXISTS (SELECT 1 FROM hx_slot o WHERE o.name = ?1 AND o.holder = ?2 AND o.held = 1)"                      \
	" ON CONFLICT (name, holder) DO UPDATE SET held = 1, bound = excluded.bound"
STMTS_OF_ANY(stmt_take, "slot_take", "iiiititi", TAKE);

DB_STMT(stmt_drop, "slot_drop", "ii", "", "DELETE FROM hx_slot WHERE name = ?1 AND holder = ?2");
DB_STMT(stmt_step_out, "slot_step_out", "ii", "",
	"DELETE FROM hx_slot WHERE name = ?1 AND holder = ?2 AND held = 0");
DB_STMT_DROP(stmt_forget, "slot_forget", "hx_slot", "holder");

/*
 * As many as there are free slots, at most SLOT_WAKES_MAX. If a limit that very many wait for is raised or removed,
 * each that is woken wakes others in its turn; without that bound each would look through all that are left.
 */
#define WAKES                                                                                                          \
	"(SELECT CASE WHEN f.n > 100 THEN 100 WHEN f.n > 0 THEN f.n ELSE 0 END FROM (SELECT ?2 - " HELD ") AS n) f)"
/* Who is paused has no time at which it is due, and is passed over. */
#define FIRST_IN_LINE(table)                                                                                           \
	"SELECT r.subject FROM hx_slot w JOIN " table " r ON r.subject = w.holder WHERE w.name = ?1 AND w.held = 0"    \
	" AND r.due_at IS NOT NULL ORDER BY w.rank, w.holder LIMIT " WAKES

/* ?1 name   ?2 max */
#define WAKE(table)                                                                                                    \
	.sql = "UPDATE " table " SET due_at = hx_now_ms() WHERE due_at > hx_now_ms() AND subject IN (" FIRST_IN_LINE(table) ")",  \
	.pg_sql = "WITH first AS MATERIALIZED (" FIRST_IN_LINE(table) " FOR UPDATE OF r SKIP LOCKED)"                  \
		  " UPDATE " table " SET due_at = hx_now_ms() WHERE due_at > hx_now_ms() AND subject IN (SELECT subject FROM first)"
STMTS(stmt_wake, "slot_wake", "ii", WAKE);

#define NEXT_IN_LINE(table)                                                                                            \
	"SELECT r.subject FROM hx_slot w JOIN " table " r ON r.subject = w.holder WHERE w.name = ?1 AND w.held = 0"    \
	" AND r.due_at > hx_now_ms() ORDER BY w.rank, w.holder LIMIT 1"

/* ?1 name   ?2 when it looks */
#define LOOK(table)                                                                                                    \
	.sql = "UPDATE " table " SET due_at = hx_now_ms() + ?2 WHERE due_at > hx_now_ms() + ?2 AND subject IN (" NEXT_IN_LINE(table) ")",  \
	.pg_sql = "WITH next AS MATERIALIZED (" NEXT_IN_LINE(table) " FOR UPDATE OF r SKIP LOCKED)"                    \
		  " UPDATE " table " SET due_at = hx_now_ms() + ?2 WHERE due_at > hx_now_ms() + ?2 AND subject IN (SELECT subject FROM next)"
STMTS(stmt_look, "slot_look", "ii", LOOK);

/* As it was read: ?1 subject   ?2 version. A holder holds still: it is a subject of the unit. */
#define FREE_AS_READ                                                                                                   \
	"EXISTS (SELECT 1 FROM hx_subject s WHERE s.id = ?1 AND s.owner IS NULL"

/*
 * Only the first in line has to look, and who looks is in the way of those that were woken. So ten of a line look at a
 * time, and who stands further back looks later.
 */
#define LOOKS "(hx_now_ms() + ?3 + (SELECT count(*) FROM (SELECT 1 FROM hx_slot b WHERE b.name = ?5 AND b.held = 0 AND b.holder < ?1 LIMIT 1000)" \
	" AS before) / 10 * 10000)"

/* ?3 for how long   ?4 when its time is over   ?5 name */
#define REST(table)                                                                                                    \
	.sql = "UPDATE " table " SET due_at = CASE WHEN ?4 > hx_now_ms() AND ?4 < " LOOKS " THEN ?4 ELSE " LOOKS " END"  \
	" WHERE subject = ?1 AND " FREE_AS_READ                                                                        \
	" AND s.version = ?2" /* mutant: slot-rest-version -> " AND ?2 > 0" */                                         \
	")"
STMTS(stmt_rest, "slot_rest", "iiiii", REST);

#define LINE "INSERT INTO hx_slot (name, holder, held, at, key, action, rank) "
/* ?5 action   ?6 0: for a slot, 2: for its time */
DB_STMT(stmt_line, "slot_line", "iiitti", "",
	LINE "VALUES (?1, ?2, ?6, ?3, ?4, ?5, 0) ON CONFLICT (name, holder) DO NOTHING");

/* ?1 job   ?2 version   ?3 name   ?4 at   ?5 key   ?6 as above   ?7 rank   ?8 action */
DB_STMT(stmt_line_job, "slot_line_job", "iiiitiit", "",
	LINE "SELECT ?3, ?1, ?6, ?4, ?5, ?8, ?7 WHERE " FREE_AS_READ
	" AND s.version = ?2" /* mutant: line-of-a-job-that-moved -> " AND ?2 > 0" */
	") ON CONFLICT (name, holder) DO NOTHING");

/* ---- rates ---- */

/* ?1 name   ?2 holder   ?3 max   ?4 per   ?5 how long those go first whose time has come   ?6 which beginning of the holder's   ?7 rank */
#define TICK(join, due)                                                                                                    \
	.sql = "INSERT INTO hx_tick (holder, name, nth, at, until) SELECT ?2, ?1, ?6, hx_now_ms(), hx_now_ms() + ?4"    \
	" WHERE (SELECT count(*) FROM hx_tick t WHERE t.name = ?1 AND t.at > hx_now_ms() - ?4"                         \
	" AND NOT (t.holder = ?2 AND t.nth = ?6))"                                                                     \
	" + " WOKEN(join, due, "2", "?7") " AND " due " > hx_now_ms() - ?5)"                                           \
	" < ?3" /* mutant: rate-not-counted -> " >= 0 AND ?3 > 0" */                                                   \
	" ON CONFLICT (holder, name, nth) DO UPDATE SET at = hx_tick.at"
STMTS_OF_ANY(stmt_tick, "rate_tick", "iiiiiii", TICK);

/*
 * Those before it in line come first, `max` of them in each time. So many are counted; who stands further back comes after the one before
 * it, or else a line of very many would be counted through by each that joins it. Should that be too early, it stands in line again.
 */
#define PLACES "1000" /* RATE_PLACES_MAX */
#define BEFORE " FROM hx_slot b WHERE b.name = ?3 AND b.held = 2 AND (b.rank, b.holder) < (?7, ?1)"
#define PLACE "(SELECT count(*) FROM (SELECT 1" BEFORE " LIMIT " PLACES ") AS before)"
#define TIME_OF(place)                                                                                                 \
	"CASE WHEN " place " < " PLACES " THEN coalesce((SELECT t.at FROM hx_tick t WHERE t.name = ?3"                 \
	" AND t.at > hx_now_ms() - ?5 ORDER BY t.at LIMIT 1 OFFSET " place " % ?4) + ?5 * (1 + " place                 \
	" / ?4), hx_now_ms())"                                                                                         \
	" ELSE (SELECT CASE WHEN " DUE_BOTH " > hx_now_ms() THEN " DUE_BOTH " + ?5 / ?4 ELSE hx_now_ms() + 1000 END"   \
	" FROM (SELECT b.holder" BEFORE " ORDER BY b.rank DESC, b.holder DESC LIMIT 1) f" JOIN_BOTH ") END"

/* ?1 run   ?2 version   ?3 name   ?4 max   ?5 per   ?6 when its time is over   ?7 rank */
#define REST_RATE(table)                                                                                               \
	.sql = "UPDATE " table " SET due_at = CASE WHEN ?6 > hx_now_ms() AND ?6 < " TIME_OF(PLACE)              \
	" THEN ?6 ELSE " TIME_OF(PLACE) " END WHERE subject = ?1 AND " FREE_AS_READ                             \
	" AND s.version = ?2" /* mutant: rate-rest-version -> " AND ?2 > 0" */                                         \
	")"
STMTS(stmt_rest_rate, "rate_rest", "iiiiiii", REST_RATE);

/* clang-format on */

DB_STMT(stmt_leave, "rate_leave", "i", "", "DELETE FROM hx_slot WHERE holder = ?1 AND held = 2");

/* All lines but these. */
DB_STMT(stmt_leave_others, "slot_leave_others", "iii", "",
	"DELETE FROM hx_slot WHERE holder = ?1 AND held <> 1 AND name <> ?2 AND name <> ?3");

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
	" " SLOT_BEFORE("w") ","
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
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_take[slot->of], db_int(slot->name), db_int(holder), db_int(slot->max),
		 db_int(at_ms), db_text(shown(slot->key)), db_int(SLOT_HEAD_START_MS), db_optional(slot->action),
		 db_int(slot->rank));
}

static bool is_one_of(const struct db_stmt *stmt, const struct db_stmt *any)
{
	return stmt == &any[SLOT_OF_RUN] || stmt == &any[SLOT_OF_JOB] || stmt == &any[SLOT_OF_CALL];
}

int64_t slot_full(const struct unit *unit, const struct unit_result *result)
{
	const struct unit_line *line = result->line >= 0 ? &unit->lines[result->line] : NULL;

	if (result->verdict != UNIT_LOST || !line)
		return 0;
	return is_one_of(line->stmt, stmt_take) || is_one_of(line->stmt, stmt_tick) ? line->params[0].i : 0;
}

/* A limit that is gone lets all go that waited for it: some now, and each of these some more. */
static void wake_in(struct unit *unit, const struct slot *slot, int of)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_wake[of], db_int(slot->name), db_int(slot->max ? slot->max : INT32_MAX));
	UNIT_ADD(unit, UNIT_ANY, &stmt_look[of], db_int(slot->name),
		 db_int(SLOT_LOOK_FIRST_MS)); /* mutant: slot-look-late -> db_int(SLOT_LOOK_MS)); */
}

/*
 * In the line of an action stand runs and jobs, so more may be woken than there is room for. Who comes too late stands
 * there as before.
 */
static void wake_first(struct unit *unit, const struct slot *slot)
{
	if (slot->of != SLOT_OF_JOB) {
		wake_in(unit, slot, SLOT_OF_RUN);
		unit_wake(unit, RUN_TOPIC);
	}
	if (slot->of != SLOT_OF_RUN)
		wake_in(unit, slot, SLOT_OF_JOB); /* mutant: call-wakes-runs-alone -> ; */
	if (slot->of == SLOT_OF_CALL)
		unit_wake(unit, JOB_TOPIC); /* whoever lets go of a queue's offers it to the workers */
}

void slot_release(struct unit *unit, const struct slot *slot, int64_t holder)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_drop, db_int(slot->name), db_int(holder)); /* mutant: slot-kept */
	wake_first(unit, slot);                                                   /* mutant: slot-wakes-nobody */
}

DB_STMT(stmt_read_held, "slot_read_held", "i", "ii",
	"SELECT w.name, w.bound FROM hx_slot w WHERE w.holder = ?1 AND w.held = 1 ORDER BY w.name LIMIT 1");

void slot_read_held(struct unit *unit, int64_t holder)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_read_held, db_int(holder));
}

struct slot slot_held(const struct db_rows *rows)
{
	if (!rows->n)
		return (struct slot){0};
	return (struct slot){.name = db_cell(rows, 0, 0)->i, .max = db_cell(rows, 0, 1)->i, .of = SLOT_OF_CALL};
}

void slot_wait(struct unit *unit, const struct slot *slot, int64_t run, int64_t version, int64_t times_out_at,
	       int64_t at_ms)
{
	unit_touch(unit, run);
	slot_lock(unit, slot);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_rest[SLOT_OF_RUN], db_int(run), db_int(version), db_int(SLOT_LOOK_MS),
		 times_out_at ? db_int(times_out_at) : db_null(), db_int(slot->name));
	UNIT_ADD(unit, UNIT_ANY, &stmt_line, db_int(slot->name), db_int(run), db_int(at_ms), db_text(shown(slot->key)),
		 db_optional(slot->action), db_int(0));
	wake_first(unit, slot); /* mutant: slot-free-meanwhile */
}

/* Which line: a slot, or a time. */
struct line {
	int64_t name, held;
	struct slice key, action;
};

static void line_up_job(struct unit *unit, const struct line *line, const struct slot_waiter *w, int64_t at_ms)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_line_job, db_int(w->subject), db_int(w->version), db_int(line->name),
		 db_int(at_ms), db_text(shown(line->key)), db_int(line->held), db_int(w->rank),
		 db_optional(line->action));
}

void slot_wait_jobs(struct unit *unit, const struct slot *slot, const struct slot_waiter *waiters, size_t n,
		    int64_t at_ms)
{
	struct line line = {slot->name, 0, slot->key, slot->action};

	ASSERT(n <= SLOT_WAITERS_MAX);
	for (size_t i = 0; i < n; i++)
		unit_touch(unit, waiters[i].subject);
	slot_lock(unit, slot);
	for (size_t i = 0; i < n; i++) {
		UNIT_ADD(unit, UNIT_ANY, &stmt_rest[SLOT_OF_JOB], db_int(waiters[i].subject),
			 db_int(waiters[i].version), db_int(SLOT_LOOK_MS), db_null(), db_int(slot->name));
		line_up_job(unit, &line, &waiters[i], at_ms);
	}
	wake_first(unit, slot);
}

void slot_step_out(struct unit *unit, const struct slot *slot, int64_t job)
{
	slot_lock(unit, slot);
	UNIT_ADD(unit, UNIT_ANY, &stmt_step_out, db_int(slot->name), db_int(job));
	wake_first(unit, slot);
}

void slot_forget(struct unit *unit, int64_t holder)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_forget, db_int(holder));
}

_Static_assert(RATE_PLACES_MAX == 1000 && SLOT_WAKES_MAX == 100, "as the statements have it");

static void lock_name(struct unit *unit, int64_t name)
{
	slot_lock(unit, &(struct slot){.name = name});
}

void rate_take(struct unit *unit, const struct rate *rate, int64_t holder, int64_t nth)
{
	lock_name(unit, rate->name);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_tick[rate->of], db_int(rate->name), db_int(holder), db_int(rate->max),
		 db_int(rate->per_ms), db_int(SLOT_HEAD_START_MS), db_int(nth), db_int(rate->rank));
	UNIT_ADD(unit, UNIT_ANY, &stmt_drop, db_int(rate->name), db_int(holder));
}

void rate_wait(struct unit *unit, const struct rate *rate, int64_t run, int64_t version, int64_t times_out_at,
	       int64_t at_ms)
{
	unit_touch(unit, run);
	lock_name(unit, rate->name);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_rest_rate[SLOT_OF_RUN], db_int(run), db_int(version), db_int(rate->name),
		 db_int(rate->max), db_int(rate->per_ms), times_out_at ? db_int(times_out_at) : db_null(), db_int(0));
	rate_line(unit, rate, run, at_ms);
	unit_wake(unit, RUN_TOPIC);
}

void rate_wait_jobs(struct unit *unit, const struct rate *rate, const struct slot_waiter *waiters, size_t n,
		    int64_t at_ms)
{
	struct line line = {rate->name, 2, rate->key, rate->action};

	ASSERT(n <= SLOT_WAITERS_MAX);
	for (size_t i = 0; i < n; i++)
		unit_touch(unit, waiters[i].subject);
	lock_name(unit, rate->name);
	for (size_t i = 0; i < n; i++) {
		UNIT_ADD(unit, UNIT_ANY, &stmt_rest_rate[SLOT_OF_JOB], db_int(waiters[i].subject),
			 db_int(waiters[i].version), db_int(rate->name), db_int(rate->max), db_int(rate->per_ms),
			 db_null(), db_int(waiters[i].rank));
		line_up_job(unit, &line, &waiters[i], at_ms);
	}
	if (rate->of == SLOT_OF_CALL)
		unit_wake(unit, JOB_TOPIC);
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

struct bounds bounds_of(const struct limits *limits, const char *const kinds[2], struct slice workspace,
			struct slice name, limit_key_fn *key, struct slice input, struct arena *arena)
{
	struct bounds b = {0};

	if (limits->concurrency.max) {
		b.slot.key = key(limits->concurrency.by, json_trust(input), arena);
		b.slot.name = slot_name(kinds[0], workspace, name, b.slot.key);
		b.slot.max = limits->concurrency.max;
	}
	if (limits->rate.max) {
		b.rate.key = key(limits->rate.by, json_trust(input), arena);
		b.rate.name = slot_name(kinds[1], workspace, name, b.rate.key);
		b.rate.max = limits->rate.max;
		b.rate.per_ms = limits->rate.per_ms;
	}
	return b;
}

/*
 * Another version of the definition may count under another key, or have no limit: the holder leaves all lines but
 * these two.
 */
static void leave_others(struct unit *unit, int64_t holder, int64_t slot, int64_t rate)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_leave_others, db_int(holder), db_int(slot), db_int(rate));
}

void bounds_take(struct unit *unit, const struct bounds *bounds, int64_t holder, int64_t nth, int64_t at_ms)
{
	unit_touch(unit, holder);
	leave_others(unit, holder, bounds->slot.name, bounds->rate.name); /* mutant: line-of-another-key -> ; */
	if (bounds->rate.name)
		rate_take(unit, &bounds->rate, holder, nth); /* mutant: turn-beyond-its-rate -> ; */
	if (bounds->slot.name) {
		slot_lock(unit, &bounds->slot);
		slot_take(unit, &bounds->slot, holder, at_ms); /* mutant: turn-without-a-slot -> ; */
	}
}

/* A job stands in one line at a time: who waits for the rate leaves the line of the slot, and the other way round. */
void bounds_wait_jobs(struct unit *unit, const struct bounds *bounds, int64_t full, const struct slot_waiter *waiters,
		      size_t n, int64_t at_ms)
{
	if (full == bounds->rate.name) {
		ASSERT(n == 1 || !bounds->slot.name);
		for (size_t i = 0; i < n; i++)
			leave_others(unit, waiters[i].subject, full, bounds->slot.name);
		rate_wait_jobs(unit, &bounds->rate, waiters, n, at_ms);
		if (bounds->slot.name)
			slot_step_out(unit, &bounds->slot, waiters[0].subject); /* mutant: job-woken-in-vain -> ; */
		return;
	}
	for (size_t i = 0; i < n; i++)
		leave_others(unit, waiters[i].subject, full, /* rate= */ 0); /* mutant: job-in-two-lines -> ; */
	slot_wait_jobs(unit, &bounds->slot, waiters, n, at_ms);
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
