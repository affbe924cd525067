/* Passes over rows that belong to others: nouns to their subjects, steps to their runs, slots to their runs and jobs. See audit.h. */
#include <stdio.h>

#include "flow/audit_parts.h"
#include "flow/run.h"

/* ---- nouns ---- */

/* clang-format off */

/* One row: how many there were, the last of them, the first without a subject. */
#define NOUNS(table, of)                                                                                               \
	"SELECT count(*), max(x.subject), min(CASE WHEN s.id IS NULL THEN x.subject END)"                              \
	" FROM (SELECT subject, " of " AS whose FROM " table " WHERE subject > ?1 ORDER BY subject LIMIT ?2) x"        \
	" LEFT JOIN hx_subject s ON s.id = x.whose"
#define NOUN_STMT_OF(label, table, of) {.name = "audit_" label, .sql = NOUNS(table, of), .in = "ii", .out = "iii"}
#define NOUN_STMT(label, table) NOUN_STMT_OF(label, table, "subject")

static const struct {
	struct db_stmt stmt;
	const char *words;
	const char *prefix;
} nouns[] = {
	{NOUN_STMT("entities", "hx_entity"),     "the subject of this entity", NULL},
	{NOUN_STMT("jobs", "hx_job"),            "the subject of this job", "job"},
	/* Another key of a run is a row without a subject of its own (flow/debounce.h). */
	{NOUN_STMT_OF("runs", "hx_run", "coalesce(alias_of, subject)"), "the subject of this run, and with it the head of its history", "run"},
	{NOUN_STMT("batches", "hx_batch"),    "the subject of this batch, and with it the head of its history", "batch"},
	{NOUN_STMT("accounts", "hx_account"), "the subject of this account", NULL},
};
enum { NOUNS_N = sizeof nouns / sizeof *nouns };

/* clang-format on */

static void ask_nouns(struct auditor *a, struct unit *unit)
{
	UNIT_ADD(unit, UNIT_ANY, &nouns[a->table].stmt, db_int(a->key), db_int(AUDIT_SUBJECTS_SLICE));
}

static bool take_nouns(struct auditor *a, const struct unit_result *result)
{
	const struct db_value *row = db_cell(&result->rows[0], 0, 0);
	struct audit_place place = {.id = cell_int(&row[2])};

	if (!audit_holds(&a->finding, &place, row[2].type == DB_NULL, "subject", nouns[a->table].words,
			 slice_str("there is none"))) {
		audit_name(a, nouns[a->table].prefix);
		return false;
	}
	if (row[0].i == AUDIT_SUBJECTS_SLICE) {
		a->key = row[1].i;
		return true;
	}
	a->key = INT64_MIN;
	return ++a->table < NOUNS_N;
}

const struct audit_pass audit_nouns = {.name = "subjects", .ask = ask_nouns, .take = take_nouns};

/* ---- rows of runs, one by one ---- */

static void name_run(struct auditor *a, const struct db_value *row UNUSED)
{
	audit_name(a, "run");
}

/* key, seq: columns of where the next slice begins. */
static bool take_rows(struct auditor *a, const struct db_rows *rows,
		      bool (*fits)(struct audit_finding *f, const struct db_value *row), size_t key, size_t seq,
		      void (*name)(struct auditor *a, const struct db_value *row), int64_t *counted)
{
	for (size_t i = 0; i < rows->n; i++) {
		const struct db_value *row = db_cell(rows, i, 0);

		if (!fits(&a->finding, row)) {
			name(a, row);
			return false;
		}
		a->key = row[key].i;
		a->seq = row[seq].i;
		if (counted)
			++*counted;
	}
	return rows->n == AUDIT_SUBJECTS_SLICE;
}

/* ---- steps ---- */

/* A unit writes one time into all of its rows. */
#define IN_HISTORY(at) "EXISTS (SELECT 1 FROM hx_history h WHERE h.subject = t.run AND h.at = t." at ")"

DB_STMT(stmt_steps, "audit_steps", "iii", "iitiiii",
	"SELECT t.run, t.position, t.status, t.undone_at, r.expired,"
	/* What a restart has passed on was completed in another run. */
	" CAST(CASE WHEN t.made_by IS NOT NULL OR " IN_HISTORY("completed_at") " THEN 1 ELSE 0 END AS bigint),"
	" CAST(CASE WHEN t.undone_at IS NULL OR " IN_HISTORY("undone_at") " THEN 1 ELSE 0 END AS bigint)"
	" FROM (SELECT * FROM hx_run_step WHERE (run, position) > (?1, ?2) ORDER BY run, position LIMIT ?3) t"
	" LEFT JOIN hx_run r ON r.subject = t.run ORDER BY t.run, t.position");
enum { RUN, POSITION, STATUS, UNDONE_AT, EXPIRED, ENDED_IN_HISTORY, UNDONE_IN_HISTORY };

static void ask_steps(struct auditor *a, struct unit *unit)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_steps, db_int(a->key), db_int(a->seq), db_int(AUDIT_SUBJECTS_SLICE));
}

static bool step_fits(struct audit_finding *f, const struct db_value *row)
{
	struct audit_place place = {row[RUN].i, "step", row[POSITION].i};
	bool completed = slice_is(row[STATUS].s, RUN_STEP_COMPLETED);

	return audit_holds(f, &place, row[EXPIRED].type != DB_NULL, "run", "the run of this step",
			   slice_str("there is none")) &&
	       audit_holds(f, &place, row[EXPIRED].i == 0, "step", "none: its run is expired", row[STATUS].s) &&
	       audit_holds(f, &place, completed || slice_is(row[STATUS].s, RUN_STEP_SKIPPED), "status",
			   "COMPLETED or SKIPPED", row[STATUS].s) &&
	       audit_holds(f, &place, completed || row[UNDONE_AT].type == DB_NULL, "undone_at",
			   "none: it was not COMPLETED", slice_str("a time")) &&
	       audit_holds(f, &place, row[ENDED_IN_HISTORY].i == 1, "completed_at",
			   "the time of a row of its run's history", slice_str("another")) &&
	       audit_holds(f, &place, row[UNDONE_IN_HISTORY].i == 1, "undone_at",
			   "the time of a row of its run's history", slice_str("another"));
}

static bool take_steps(struct auditor *a, const struct unit_result *result)
{
	return take_rows(a, &result->rows[0], step_fits, RUN, POSITION, name_run, &a->counts.steps);
}

const struct audit_pass audit_steps = {.name = "steps", .ask = ask_steps, .take = take_steps};

/* ---- slots ---- */

#define FLAG(condition) "CAST(CASE WHEN " condition " THEN 1 ELSE 0 END AS bigint)"

/* clang-format off */
DB_STMT(stmt_slots, "audit_slots", "iii", "iiitiiiit",
	"SELECT l.holder, l.name, l.held, s.status, " FLAG("s.owner IS NOT NULL AND s.owner <> '" SUBJECT_HELD "'") ", " FLAG("r.job IS NOT NULL") ","
	" " FLAG("j.subject IS NOT NULL") ", " FLAG("j.ended_at IS NOT NULL") ", e.workflow || ':' || e.name"
	" FROM (SELECT * FROM hx_slot WHERE (name, holder) > (?1, ?2) ORDER BY name, holder LIMIT ?3) l"
	" LEFT JOIN hx_run r ON r.subject = l.holder LEFT JOIN hx_job j ON j.subject = l.holder"
	" LEFT JOIN hx_entity e ON e.subject = l.holder"
	" LEFT JOIN hx_subject s ON s.id = coalesce(r.subject, j.subject, e.subject) ORDER BY l.name, l.holder");
enum { SLOT_HOLDER, SLOT_NAME, SLOT_HELD, SLOT_STATUS, SLOT_OWNED, SLOT_AT_WORKER, SLOT_JOB, SLOT_JOB_ENDED, SLOT_ENTITY };
/* clang-format on */

static void ask_slots(struct auditor *a, struct unit *unit)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_slots, db_int(a->key), db_int(a->seq), db_int(AUDIT_SUBJECTS_SLICE));
}

/* L3 of slot.h; and who has ended neither holds one nor waits for one. */
static bool slot_fits(struct audit_finding *f, const struct db_value *row)
{
	struct audit_place place = {row[SLOT_HOLDER].i, "slot", row[SLOT_NAME].i};
	bool there = row[SLOT_STATUS].type != DB_NULL, held = row[SLOT_HELD].i == 1, job = row[SLOT_JOB].i != 0;
	bool entity = row[SLOT_ENTITY].type != DB_NULL; /* it stands in no line */
	bool over = entity ? !held
		    : job  ? row[SLOT_JOB_ENDED].i != 0
			   : there && ways_is_terminal(&run_ways, row[SLOT_STATUS].s);

	return audit_holds(f, &place, there, "run", "the run of this slot, or the job, or the entity",
			   slice_str("there is none")) &&
	       audit_holds(f, &place, !over, "slot",
			   entity ? "none: whoever fires a step of an entity stands in no line"
			   : job  ? "none: its job has ended"
				  : "none: its run has ended",
			   slice_str(held ? "held" : "waited for")) &&
	       audit_holds(f, &place, !held || row[SLOT_OWNED].i || row[SLOT_AT_WORKER].i, "slot",
			   entity ? "none: nobody is at its entity"
			   : job  ? "none: nobody is at its job"
				  : "none: nobody is at its run",
			   slice_str("held"));
}

static void name_holder(struct auditor *a, const struct db_value *row)
{
	if (row[SLOT_ENTITY].type != DB_NULL)
		snprintf(a->finding.subject, sizeof a->finding.subject, "entity:%.*s", SLICE_ARGS(row[SLOT_ENTITY].s));
	else
		audit_name(a, row[SLOT_JOB].i ? "job" : "run");
}

static bool take_slots(struct auditor *a, const struct unit_result *result)
{
	return take_rows(a, &result->rows[0], slot_fits, SLOT_NAME, SLOT_HOLDER, name_holder, /* counted= */ NULL);
}

const struct audit_pass audit_slots = {.name = "slots", .ask = ask_slots, .take = take_slots};
