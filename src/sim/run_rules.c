/* See run_rules.h. */
#include "sim/run_rules.h"

/* clang-format off */

#define RUNS " FROM hx_run r JOIN hx_subject s ON s.id = r.subject"
#define CHILDREN RUNS " JOIN hx_subject q ON q.id = r.parent"
#define ENDED "('COMPLETED', 'FAILED', 'CANCELLED')"
#define RESTS "s.owner IS NULL AND s.status NOT IN ('PAUSED', 'COMPLETED', 'FAILED', 'CANCELLED')"

static const char *const check_words[] = {
	"R5: CANCELLED in doubt",
	"R6: nothing will ever move the run",
	"R6: nobody will look at the run when its time is over",
	"R7: a run is due while somebody holds it, or although it has ended",
	"a step is undone in a run that nobody cancelled",
	"a child is not what its parent sees",
	"C4: a run is CANCELLED before its children are",
	"C10: a run is FAILED before its children have ended",
};

DB_STMT(stmt_check, "sim_check_runs", "", "iiiiiiii",
	"SELECT"
	" (SELECT count(*)" RUNS " WHERE s.status = 'CANCELLED' AND s.doubt = 1),"
	" (SELECT count(*)" RUNS " WHERE " RESTS " AND r.due_at IS NULL AND CASE"
	"   WHEN r.awaits = 'person' THEN 0"
	"   WHEN r.awaits LIKE 'event %' OR r.awaits LIKE 'approval %' THEN s.status <> 'WAITING' OR EXISTS (SELECT 1 FROM hx_run_event e"
	"     WHERE e.run IN (r.subject, r.around) AND e.name = r.awaits AND e.taken_by IS NULL)"
	"   WHEN r.awaits = 'job' THEN NOT EXISTS (SELECT 1 FROM hx_subject j WHERE j.id = r.job AND j.status NOT IN ('COMPLETED', 'PARKED'))"
	"   WHEN r.awaits = 'child' THEN NOT EXISTS (SELECT 1 FROM hx_run k WHERE k.parent = r.subject AND k.child = 'open')"
	"   ELSE 1 END),"
	" (SELECT count(*)" RUNS " WHERE " RESTS " AND r.due_at IS NULL AND s.status = 'WAITING' AND r.times_out_at > hx_now_ms()"
	"   AND r.awaits IS NOT 'person'),"
	" (SELECT count(*)" RUNS " WHERE (r.due_at IS NOT NULL AND s.owner IS NOT NULL AND s.until > hx_now_ms())"
	"   OR (s.status IN " ENDED " AND (r.due_at IS NOT NULL OR s.owner IS NOT NULL))),"
	" (SELECT count(*)" RUNS " JOIN hx_run_step t ON t.run = r.subject WHERE t.undone_at IS NOT NULL"
	"   AND s.status NOT IN ('CANCELLING', 'CANCELLED')),"
	" (SELECT count(*)" CHILDREN " WHERE r.asked IS NULL AND r.child <> CASE s.status WHEN 'COMPLETED' THEN 'done'"
	"   WHEN 'FAILED' THEN 'failed' WHEN 'CANCELLED' THEN 'cancelled' ELSE 'open' END),"
	" (SELECT count(*)" CHILDREN " WHERE q.status = 'CANCELLED' AND s.status <> 'CANCELLED'),"
	" (SELECT count(*)" CHILDREN " WHERE q.status = 'FAILED' AND r.child = 'open')");

DB_STMT(stmt_counted, "sim_runs_counted", "", "i", "SELECT" RUNS_MISCOUNTED);

DB_STMT(stmt_slots, "sim_check_slots", "", "ii", "SELECT"
	" (SELECT count(*) FROM (SELECT 1 FROM hx_slot WHERE held = 1 GROUP BY name HAVING count(*) > max(bound))),"
	" (SELECT count(*) FROM hx_slot l JOIN hx_subject s ON s.id = l.holder LEFT JOIN hx_run r ON r.subject = s.id WHERE l.held = 1"
	"   AND (s.owner IS NULL OR s.owner = 'held') AND r.job IS NULL)");

/* clang-format on */

static void check(struct sim *sim, const struct db_stmt *stmt, const char *const *words, size_t n)
{
	LOCAL_UNIT(unit);
	struct unit_result result;

	unit_add(&unit, UNIT_ANY, stmt, 0, NULL);
	result = sim_run_unit(sim, &unit);
	for (size_t i = 0; i < n; i++)
		if (db_cell(&result.rows[0], 0, i)->i)
			sim_violate(sim, "%s", words[i]);
}

void sim_check_runs(struct sim *sim)
{
	check(sim, &stmt_check, check_words, sizeof check_words / sizeof *check_words);
}

void sim_check_counts(struct sim *sim)
{
	static const char *const words = "the counts by status are not what there is";

	check(sim, &stmt_counted, &words, 1);
}

void sim_check_slots(struct sim *sim)
{
	static const char *const words[] = {"L1: more hold a slot than there are",
					    "L3: a slot is held by who is not at work"};

	check(sim, &stmt_slots, words, sizeof words / sizeof *words);
}
