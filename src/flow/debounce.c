/* See debounce.h. Each guard stands on a line of its own. */
#include "flow/debounce.h"

#include "flow/attribute.h"
#include "flow/function.h"
#include "flow/slot.h"

/* clang-format off */

#define RUNS_OF_NAME " FROM hx_singleton h JOIN hx_subject s ON s.id = h.run JOIN hx_run r ON r.subject = h.run WHERE h.name = "
#define IS_OPEN " AND s.status = 'PENDING' AND s.owner IS NULL AND r.started_at IS NULL"

/* ?1 name   ?2 run   ?3 how long at most, 0: for ever */
DB_STMT(stmt_take, "debounce_take", "iii", "",
	"INSERT INTO hx_singleton (name, run, until)"
	" SELECT ?1, ?2, CASE WHEN ?3 > 0 THEN hx_now_ms() + ?3 ELSE 9223372036854775807 END"
	" WHERE NOT EXISTS (SELECT 1" RUNS_OF_NAME "?1"
	IS_OPEN ")" /* mutant: debounce-not-asked -> " AND 1 = 0)" */
);

DB_STMT(stmt_sweep, "debounce_sweep", "ii", "",
	"DELETE FROM hx_singleton WHERE name = ?1 AND run <> ?2 AND EXISTS (SELECT 1 FROM hx_subject s JOIN hx_run r ON r.subject = s.id"
	" WHERE s.id = hx_singleton.run AND (r.started_at IS NOT NULL OR " SUBJECT_IS_OVER "))");

#define UNTIL "(SELECT min(h.until) FROM hx_singleton h WHERE h.run = ?1 AND h.until IS NOT NULL)"
#define DUE "CASE WHEN " UNTIL " < hx_now_ms() + ?2 THEN " UNTIL " ELSE hx_now_ms() + ?2 END"

/* ?2 for how long   ?3 the time that it has then, 0: for ever   ?4 its input, NULL: as it is */
DB_STMT(stmt_put_off, "debounce_put_off", "iiit", "",
	"UPDATE hx_run SET input = coalesce(?4, input), due_at = " DUE ","
	" times_out_at = CASE WHEN ?3 > 0 THEN " DUE " + ?3 ELSE times_out_at END"
	" WHERE subject = ?1 AND expired = 0"
	" AND started_at IS NULL" /* mutant: debounce-begun */
);

/* ?1 id   ?6 at   ?7 run */
DB_STMT(stmt_alias, "debounce_alias", "ittitii", "",
	"INSERT INTO hx_run (subject, workspace, workflow, definition_version, run_key, requester, input, created_at, completed_at, expired,"
	" alias_of) VALUES (?1, ?2, ?3, ?4, ?5, '', '{}', ?6, ?6, 1, ?7)"
	" ON CONFLICT (workspace, run_key) WHERE run_key IS NOT NULL DO NOTHING");

/* ?1 workspace   ?2 key   ?3 name   ?4 of its singleton */
#define KEYED "(SELECT " RUN_OF_ALIAS("k") " FROM hx_run k WHERE k.workspace = ?1 AND k.run_key = ?2)"
DB_STMT(stmt_find, "debounce_find", "ttii", "iti",
	"SELECT r.subject, r.workflow, CAST(CASE WHEN r.subject = " KEYED " THEN 1 ELSE 0 END AS bigint) FROM hx_run r"
	" WHERE r.subject = coalesce(" KEYED ","
	" (SELECT h.run" RUNS_OF_NAME "?3" IS_OPEN " ORDER BY h.run DESC LIMIT 1),"
	" (SELECT h.run" RUNS_OF_NAME "?4 AND NOT " SUBJECT_IS_OVER " ORDER BY h.run DESC LIMIT 1))");

/* clang-format on */

struct debounce debounce_of(const struct limits *limits, struct slice workspace, const char *workflow,
			    struct slice input, struct arena *arena)
{
	struct debounce debounce = {.for_ms = limits->debounce.for_ms, .at_most_ms = limits->debounce.at_most_ms};

	if (debounce.for_ms)
		debounce.name = slot_name("debounce", workspace, slice_str(workflow),
					  limit_key(limits->debounce.by, json_trust(input), arena));
	return debounce;
}

void debounce_take(struct unit *unit, const struct debounce *debounce, int64_t run)
{
	slot_lock(unit, &(struct slot){.name = debounce->name});
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_take, db_int(debounce->name), db_int(run), db_int(debounce->at_most_ms));
	UNIT_ADD(unit, UNIT_ANY, &stmt_sweep, db_int(debounce->name), db_int(run));
}

void debounce_begin(struct unit *unit, const struct debounce *debounce, int64_t run, int64_t timeout_ms)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_put_off, db_int(run), db_int(debounce->for_ms), db_int(timeout_ms), db_null());
	unit_wake(unit, RUN_TOPIC);
}

static void add_key(struct unit *unit, const struct stamp *stamp, const struct debounce_join *join)
{
	const struct run_machine *machine = join->row->machine;

	UNIT_ADD(unit, UNIT_VERDICT, &stmt_alias, db_int(join->alias), db_text(join->spec->workspace),
		 db_str(machine->definition->name), db_int(machine->version), db_text(join->spec->key),
		 db_int(stamp->at.ms), db_int(join->row->subject));
}

void debounce_join(struct unit *unit, const struct stamp *stamp, const struct debounce_join *join)
{
	const struct run_spec *spec = join->spec;
	const struct run_machine *machine = join->row->machine;
	int64_t run = join->row->subject;

	UNIT_ADD(unit, UNIT_VERDICT, &stmt_put_off, db_int(run), db_int(spec->debounce.for_ms),
		 db_int(machine->definition->timeout_ms), db_text(spec->input));
	if (spec->key.p)
		add_key(unit, stamp, join); /* mutant: debounce-without-its-key -> ; */
	attributes_of_run_set(unit, run, join->attributes);
	if (machine->definition->is_function)
		function_put_off(unit, run);
	unit_wake(unit, RUN_TOPIC);
}

void debounce_find(struct unit *unit, const struct run_spec *spec)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_find, db_text(spec->workspace), db_optional(spec->key),
		 db_int(spec->debounce.name), db_int(spec->singleton));
}

bool debounce_found_by_key(const struct unit_result *result)
{
	return result->rows[0].n && db_cell(&result->rows[0], 0, 2)->i;
}
