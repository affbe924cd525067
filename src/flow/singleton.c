/* See singleton.h. Each guard stands on a line of its own. */
#include "flow/singleton.h"

#include "flow/run.h"
#include "flow/slot.h"

DB_STMT(stmt_take, "singleton_take", "ii", "",
	"INSERT INTO hx_singleton (name, run) SELECT ?1, ?2"
	" WHERE NOT EXISTS (SELECT 1 FROM hx_singleton h JOIN hx_subject s ON s.id = h.run WHERE h.name = ?1"
	" AND NOT " SUBJECT_IS_OVER ")" /* mutant: singleton-not-asked -> " AND 1 = 0)" */
);

DB_STMT(stmt_join, "singleton_join", "ii", "",
	"INSERT INTO hx_singleton (name, run) VALUES (?1, ?2) ON CONFLICT (name, run) DO NOTHING");

DB_STMT(stmt_sweep, "singleton_sweep", "ii", "",
	"DELETE FROM hx_singleton WHERE name = ?1 AND run <> ?2"
	" AND EXISTS (SELECT 1 FROM hx_subject s WHERE s.id = hx_singleton.run"
	" AND " SUBJECT_IS_OVER ")"
);

DB_STMT_DROP(stmt_forget, "singleton_forget", "hx_singleton", "run");

/* ?1 workspace   ?2 key   ?3 name   ?4 also one that has ended */
DB_STMT(stmt_find, "singleton_find", "ttii", "it",
	"SELECT r.subject, r.workflow FROM hx_run r WHERE r.subject = coalesce("
	"(SELECT " RUN_OF_ALIAS("k") " FROM hx_run k WHERE k.workspace = ?1 AND k.run_key = ?2),"
	" (SELECT h.run FROM hx_singleton h JOIN hx_subject s ON s.id = h.run WHERE h.name = ?3"
	" AND (?4 = 1 OR NOT " SUBJECT_IS_OVER ") ORDER BY CASE WHEN " SUBJECT_IS_OVER " THEN 1 ELSE 0 END, h.run DESC LIMIT 1))");

int64_t singleton_name(const struct limits *limits, struct slice workspace, const char *workflow, struct slice input,
		       struct arena *arena)
{
	if (!limits->singleton.set)
		return 0;
	return slot_name("singleton", workspace, slice_str(workflow),
			 limit_key(limits->singleton.by, json_trust(input), arena));
}

static void lock_name(struct unit *unit, int64_t name)
{
	slot_lock(unit, &(struct slot){.name = name});
}

void singleton_take(struct unit *unit, int64_t name, int64_t run)
{
	lock_name(unit, name); /* mutant: singleton-unlocked */
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_take, db_int(name), db_int(run));
	UNIT_ADD(unit, UNIT_ANY, &stmt_sweep, db_int(name), db_int(run));
}

void singleton_join(struct unit *unit, int64_t name, int64_t run)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_join, db_int(name), db_int(run));
}

void singleton_return(struct unit *unit, int64_t name, int64_t run)
{
	lock_name(unit, name); /* mutant: singleton-back-unlocked */
	singleton_join(unit, name, run);
}

void singleton_forget(struct unit *unit, int64_t run)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_forget, db_int(run));
}

void singleton_find(struct unit *unit, struct slice workspace, struct slice key, int64_t name, bool ended)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_find, db_text(workspace), db_optional(key), db_int(name), db_int(ended));
}
