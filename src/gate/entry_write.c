/* See entry_write.h. */
#include "gate/entry_write.h"

#include "task/states.h"

#define SWEEP_ROWS 128         /* looked at on either side of the released name */
#define SWEEP_GRACE_MS "60000" /* long after its end, nobody is about to release a lock any more */

/* clang-format off: a line is a guard */

/*
 * The first condition spares most losers a write: INSERT … ON CONFLICT locks the row that it meets, which on
 * PostgreSQL is a write and may wait for another node. The last one decides. In set form the rows are met in the
 * order of their names, the same on every node; no two units of a batch have the same name (unit_keep_apart), as a row
 * cannot be met twice by one statement.
 */
DB_STMT(stmt_take, "entry_lock_take", "tti", "t",
	"INSERT INTO hx_entry_lock (name, token, until) SELECT ?1, ?2, hx_now_ms() + ?3"
	" WHERE NOT EXISTS (SELECT 1 FROM hx_entry_lock WHERE name = ?1 AND until > hx_now_ms())"
	" ON CONFLICT (name) DO UPDATE SET token = excluded.token, until = excluded.until"
	" WHERE hx_entry_lock.until <= hx_now_ms()"
	" RETURNING token",
	.set_sql = "WITH won AS (INSERT INTO hx_entry_lock (name, token, until)"
		   " SELECT u.p1, u.p2, hx_now_ms() + u.p3 FROM {u}"
		   " WHERE NOT EXISTS (SELECT 1 FROM hx_entry_lock l WHERE l.name = u.p1 AND l.until > hx_now_ms())"
		   " ORDER BY u.p1"
		   " ON CONFLICT (name) DO UPDATE SET token = excluded.token, until = excluded.until"
		   " WHERE hx_entry_lock.until <= hx_now_ms()"
		   " RETURNING token)"
		   " SELECT u.ord, won.token FROM won JOIN {u} ON u.p2 = won.token");

DB_STMT(stmt_release, "entry_lock_release", "tt", "",
	"DELETE FROM hx_entry_lock WHERE name = ?1"
	" AND token = ?2",
	.set_sql = "DELETE FROM hx_entry_lock USING {u} WHERE name = u.p1 AND token = u.p2");

/*
 * Names are hashes, so the neighbours of one that was just released are a random sample, and a table that is small
 * is seen whole. On PostgreSQL this may wait for another node's sweep, or even close a circle with two locks that
 * are taken over at the same moment; the server breaks that up and the batch is run again.
 */
DB_STMT(stmt_sweep, "entry_lock_sweep", "ti", "",
	"DELETE FROM hx_entry_lock WHERE until <= hx_now_ms() - " SWEEP_GRACE_MS " AND name IN"
	" (SELECT name FROM (SELECT name FROM hx_entry_lock WHERE name > ?1 ORDER BY name LIMIT ?2) AS above"
	" UNION ALL"
	" SELECT name FROM (SELECT name FROM hx_entry_lock WHERE name < ?1 ORDER BY name DESC LIMIT ?2) AS below)");

/* clang-format on */

/* Negative, where no subject is: it keeps two units of one name out of one batch, and locks no row. */
int64_t entry_write_subject(const struct entry_lock *lock)
{
	return (int64_t)(hash_bytes(0, lock->name, ENTRY_NAME_BYTES - 1) | (uint64_t)1 << 63);
}

enum { ENTRY_WRITE_NEW, ENTRY_WRITE_COMMITTING, ENTRY_WRITE_DONE };

static void entry_write_take_start(struct entry_write *w, const struct answer *answer)
{
	w->op = answer->id;
	task_go(&w->task, ENTRY_WRITE_COMMITTING);
}

static void take_committed(struct entry_write *w, const struct answer *answer)
{
	enum hx_code code = unit_code(answer->result->verdict, HX_ENTRY_LOCKED, HX_OUTCOME_UNKNOWN);

	ASSERT(code != HX_ENTRY_LOCKED || w->kind == ENTRY_TAKE);
	task_end(&w->task, code);
}

static void entry_write_build_write(const struct entry_write *w, struct unit *unit)
{
	struct db_value name = db_str(w->lock.name), token = db_str(w->lock.token);

	unit_keep_apart(unit, entry_write_subject(&w->lock));
	if (w->kind == ENTRY_TAKE)
		UNIT_ADD(unit, UNIT_VERDICT, &stmt_take, name, token, db_int(w->lock.ttl_ms));
	else
		UNIT_ADD(unit, UNIT_ANY, &stmt_release, name, token);
	if (w->kind == ENTRY_RELEASE_AND_SWEEP)
		UNIT_ADD(unit, UNIT_ANY, &stmt_sweep, name, db_int(SWEEP_ROWS));
}

static const TASK_STATES(struct entry_write) entry_states[] = {
	[ENTRY_WRITE_NEW] = {"new", entry_write_take_start},
	[ENTRY_WRITE_COMMITTING] = {"committing", take_committed, entry_write_build_write},
	[ENTRY_WRITE_DONE] = {"done"},
};

TASK_KIND(entry_task_kind, "entry_write", struct entry_write, entry_states, .op = offsetof(struct entry_write, op));

void entry_write_init(struct entry_write *write, const struct entry_lock *lock, enum entry_write_kind write_kind)
{
	*write = (struct entry_write){.lock = *lock, .kind = write_kind};
	task_init(&write->task, &entry_task_kind, /* topic= */ 0);
}
