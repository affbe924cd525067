/* See hook.h. */
#include "flow/hook.h"

#include "flow/singleton.h"

#define SEEN_OF(part, member) ((struct hook_seen *)((char *)(part)-offsetof(struct hook_seen, member)))

/* clang-format off */

/* A row whose time is over is as none. */
DB_STMT(stmt_seen, "hook_seen", "ttii", "",
	"INSERT INTO hx_hook_seen (hook, name, n, until) VALUES (?1, ?2, ?3, hx_now_ms() + ?4)"
	" ON CONFLICT (hook, name) DO UPDATE SET n = excluded.n, until = excluded.until"
	" WHERE hx_hook_seen.until <= hx_now_ms()" /* mutant: hook-seen-again */
);

DB_STMT(stmt_fire, "hook_fire", "ittt", "",
	INTO_JOB(", priority, job_key")
	" VALUES (?1, ?2, '" JOB_QUEUE_AFTER_EFFECTS "', '', '" HOOK_FIRE_ACTION "', ?3, ?4, hx_now_ms(), 1, 0, ?3)"
	" ON CONFLICT DO NOTHING");

DB_STMT(stmt_scan, "hook_scan_expired", "ii", "i",
	"SELECT n FROM hx_hook_seen WHERE until <= (SELECT hx_now_ms()) - ?1 ORDER BY until LIMIT ?2");

DB_STMT(stmt_expire, "hook_expire", "ii", "",
	"DELETE FROM hx_hook_seen WHERE n = ?1 AND until <= hx_now_ms() - ?2");

/* clang-format on */

/* The op of a unit is its own, so it names the rows. */
void hook_build_seen(struct hook_seen *seen, const struct stamp *stamp, struct unit *unit)
{
	seen->line = unit->lines_n;
	for (size_t i = 0; i < seen->n; i++)
		UNIT_ADD(unit, UNIT_VERDICT, &stmt_seen, db_text(seen->hook), db_text(seen->names[i]),
			 db_int(i ? -stamp->op : stamp->op), db_int(seen->keep_ms));
}

static bool lost_by(const struct hook_seen *seen, const struct unit_result *result)
{
	return result->verdict == UNIT_LOST && result->line >= (int)seen->line;
}

/* ---- with a verb ---- */

static void add_to_verb(struct run_along *along, const struct run_verb *verb, struct unit *unit)
{
	struct hook_seen *seen = SEEN_OF(along, along);

	(void)seen;
	hook_build_seen(seen, &verb->stamp, unit); /* mutant: hook-outside-unit -> (void)verb, (void)unit; */
}

static void verb_won(struct run_along *along, const struct unit_result *result)
{
	(void)along;
	(void)result;
}

static bool verb_lost(struct run_along *along, const struct unit_result *result)
{
	return lost_by(SEEN_OF(along, along), result);
}

/* ---- with a push ---- */

static void add_to_push(struct job_along *along, const struct job_push *push, struct unit *unit)
{
	struct hook_seen *seen = SEEN_OF(along, push);

	hook_build_seen(seen, &push->stamp, unit);
}

void hook_seen_init(struct hook_seen *seen)
{
	seen->along = (struct run_along){.add = add_to_verb, .won = verb_won, .lost = verb_lost};
	seen->push = (struct job_along){.add = add_to_push};
}

/* ---- the rest ---- */

void hook_build_start(struct hook_seen *seen, const struct stamp *stamp, const struct run_spec *spec, struct unit *unit)
{
	hook_build_seen(seen, stamp, unit);
	seen->start_line = unit->lines_n;
	run_create(unit, stamp, spec);
}

bool hook_start_was_held(const struct hook_seen *seen, const struct run_spec *spec, const struct unit_result *result)
{
	return spec->singleton && result->verdict == UNIT_LOST &&
	       result->line == (int)seen->start_line + SINGLETON_LINE_HELD;
}

void hook_add_fire(struct unit *unit, const struct stamp *stamp, const struct hook_fire *fire)
{
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_fire, db_int(fire->subject), db_text(fire->workspace), db_text(fire->key),
		 db_text(fire->payload));
	subject_insert(unit, stamp, fire->subject, job_kind(), JOB_AVAILABLE);
	unit_wake(unit, JOB_TOPIC);
}

void hook_build_fire(struct hook_seen *seen, const struct stamp *stamp, const struct hook_fire *fire, struct unit *unit)
{
	hook_add_fire(unit, stamp, fire);
	hook_build_seen(seen, stamp, unit);
}

void hook_scan_expired(struct unit *unit, int64_t age_ms, int64_t limit)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_scan, db_int(age_ms), db_int(limit));
}

void hook_expire(struct unit *unit, int64_t n, int64_t age_ms)
{
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_expire, db_int(n), db_int(age_ms));
}
