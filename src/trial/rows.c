/* The store of a trial: how it begins, what of it decides the future, what the cast and the rules ask of it. */
#include "base/hash.h"
#include "sim/invariant.h"
#include "sim/run_rules.h"
#include "trial/parts.h"

/* clang-format off */

#define SHARED_STMT(variable, name_, in_, out_, ...) \
	const struct db_stmt variable = {.name = name_, .in = in_, .out = out_, __VA_ARGS__}
#define RUNS " FROM hx_run r JOIN hx_subject s ON s.id = r.subject"
#define LEASED "owner IS NOT NULL AND until < 9223372036854775807"

DB_STMT(setup_run, "trial_setup_run", "ttii", "",
	"INSERT INTO hx_run (subject, workspace, workflow, definition_version, requester, input, due_at, created_at, times_out_at)"
	" VALUES (?4, 'default', ?1, 1, 'caller', ?2, hx_now_ms(), hx_now_ms(), CASE WHEN ?3 > 0 THEN hx_now_ms() + ?3 END)");
DB_STMT(setup_counted, "trial_setup_counted", "", "", RUNS_SETUP_COUNTED);
DB_STMT(setup_version, "trial_setup_version", "ti", "", "INSERT INTO hx_definition (name, version, text, at) VALUES (?1, ?2, '{}', 0)");
DB_STMT(setup_entity, "trial_setup_entity", "itt", "",
	"INSERT INTO hx_entity (subject, workspace, workflow, name, data) VALUES (?1, 'default', ?2, ?3, '{}')");

DB_STMT(next_moment, "trial_next_moment", "", "i",
	"SELECT min(m) FROM (SELECT due_at AS m FROM hx_run UNION ALL SELECT due_at FROM hx_job"
	" UNION ALL SELECT due_at FROM hx_batch UNION ALL SELECT until FROM hx_subject WHERE " LEASED ") WHERE m > hx_now_ms()");
DB_STMT(lease_end, "trial_lease_end", "", "i",
	"SELECT min(until) FROM hx_subject WHERE " LEASED " AND until > hx_now_ms()");

SHARED_STMT(trial_past, "trial_past", "", "iiitttt",
	"SELECT s.id, s.kind, s.fence, e.claim_step, e.claim_from, e.claim_requester, s.status FROM hx_subject s"
	" LEFT JOIN hx_entity e ON e.subject = s.id WHERE s.owner IS NOT NULL AND s.until <= hx_now_ms()"
	" AND NOT EXISTS (SELECT 1 FROM hx_run r WHERE r.subject = s.id) AND NOT EXISTS (SELECT 1 FROM hx_batch b WHERE b.subject = s.id)"
	" ORDER BY s.id LIMIT 1");
SHARED_STMT(trial_worker_due, "trial_worker_due", "", "i",
	"SELECT subject FROM hx_job WHERE due_at <= hx_now_ms() AND queue <> 'after-effects' ORDER BY subject LIMIT 1");
SHARED_STMT(trial_effect_due, "trial_effect_due", "", "i",
	"SELECT subject FROM hx_job WHERE due_at <= hx_now_ms() AND queue = 'after-effects' ORDER BY subject LIMIT 1");

SHARED_STMT(trial_repeated_sql, "trial_repeated_sql", "", "t",
	"SELECT action FROM trial_ledger GROUP BY action, effect HAVING count(*) > 1");
SHARED_STMT(trial_sql_counts, "trial_sql_counts", "", "tt", "SELECT action, effect FROM trial_ledger ORDER BY action");
SHARED_STMT(trial_runs, "trial_runs", "", "ititttiiittiiiiii",
	"SELECT r.subject, r.workflow, r.parent, s.status, r.step_status, r.awaits, s.doubt, r.at_step, r.attempt, r.scope,"
	" r.error, coalesce(r.undo, -1), s.owner IS NOT NULL, r.definition_version,"
	" coalesce(r.due_at <= hx_now_ms(), 0) OR (s.owner IS NOT NULL AND s.until <= hx_now_ms()),"
	" coalesce(r.asked NOT IN ('fail', 'cancelling'), 0), r.parent IS NULL AND EXISTS"
	" (SELECT 1 FROM hx_history h WHERE h.subject = r.subject AND h.from_status IN ('COMPLETED', 'CANCELLED'))" RUNS " ORDER BY r.subject");
SHARED_STMT(trial_run_steps, "trial_run_steps", "i", "itii",
	"SELECT position, status, undone_at IS NOT NULL, attempt FROM hx_run_step WHERE run = ?1 ORDER BY position");
SHARED_STMT(trial_jobs, "trial_jobs", "", "ittt",
	"SELECT j.subject, s.status, j.queue, j.action FROM hx_job j JOIN hx_subject s ON s.id = j.subject ORDER BY j.subject");
SHARED_STMT(trial_history, "trial_history", "i", "tt",
	"SELECT from_status, to_status FROM hx_history WHERE subject = ?1 ORDER BY seq");
SHARED_STMT(trial_output, "trial_output", "i", "t", "SELECT output FROM hx_run WHERE subject = ?1");

/* All that decides the future, times as seen from now. Ids are fresh numbers, and other in every schedule. */
#define FROM_NOW(column) column " - hx_now_ms()"
/* When a step began matters to its deadline, which stands in wait_until where it rests; of a job and an end it matters to nobody. */
#define UNTOLD_START "CASE WHEN r.wait_until IS NULL AND r.completed_at IS NULL AND r.job IS NULL THEN " FROM_NOW("r.step_started_at") " END"
DB_STMT(hash_runs, "trial_hash_runs", "", "ttiiiiititiiiiiiiitttiitiit",
	"SELECT s.status, s.owner, " FROM_NOW("s.until") ", s.doubt, r.at_step, r.attempt, r.redo, r.step_status, "
	UNTOLD_START ", r.awaits, r.job IS NULL, r.undo, " FROM_NOW("r.wait_until") ", " FROM_NOW("r.due_at")
	", r.completed_at IS NULL, r.error IS NULL, " FROM_NOW("r.unsettled_since") ", r.stood_attempt, r.stood_status, r.child, r.asked, r.winner, r.parent_n, r.scope, " FROM_NOW("r.times_out_at") ", r.definition_version, r.renamed"
	RUNS " ORDER BY r.subject");
SHARED_STMT(trial_steps_ended, "trial_steps_ended", "", "ttiiititi",
	"SELECT r.workflow, coalesce(r.scope, ''), t.position, r.definition_version, (SELECT count(*) FROM hx_run k WHERE k.subject < t.run),"
	" t.status, t.attempt, t.output, t.undone_at IS NULL FROM hx_run_step t JOIN hx_run r ON r.subject = t.run ORDER BY t.run, t.position");
DB_STMT(hash_events, "trial_hash_events", "", "tti", "SELECT name, data, taken_by FROM hx_run_event ORDER BY run, name, at");
DB_STMT(hash_jobs, "trial_hash_jobs", "", "ttiiiittii",
	"SELECT s.status, s.owner, " FROM_NOW("s.until") ", s.doubt, j.attempt, " FROM_NOW("j.due_at")
	", j.output, j.action, " FROM_NOW("j.unsettled_since") ","
	" j.sent_version FROM hx_job j JOIN hx_subject s ON s.id = j.subject ORDER BY j.subject");
DB_STMT(hash_entities, "trial_hash_entities", "", "tttiitt",
	"SELECT claim_step, claim_from, claim_input, claim_effort, claim_version, claim_requester, data FROM hx_entity ORDER BY subject");
DB_STMT(hash_kept, "trial_hash_kept", "", "ittttitii",
	"SELECT effort, step, from_status, requester, input, version, data, open, op IS NULL FROM hx_kept_call ORDER BY subject, step, effort");
DB_STMT(hash_versions, "trial_hash_versions", "", "ii", "SELECT version, fence FROM hx_subject ORDER BY id");
DB_STMT(hash_sql, "trial_hash_sql", "", "tt", "SELECT action, effect FROM trial_ledger ORDER BY rowid");

/* clang-format on */

struct unit_result trial_ask(struct sim *sim, const struct db_stmt *stmt)
{
	LOCAL_UNIT(unit);

	unit_add(&unit, UNIT_ANY, stmt, 0, NULL);
	return sim_run_unit(sim, &unit);
}

struct unit_result trial_ask_of(struct sim *sim, const struct db_stmt *stmt, int64_t subject)
{
	LOCAL_UNIT(unit);

	UNIT_ADD(&unit, UNIT_ANY, stmt, db_int(subject));
	return sim_run_unit(sim, &unit);
}

static int64_t number(struct sim *sim, const struct db_stmt *stmt)
{
	struct unit_result result = trial_ask(sim, stmt);
	const struct db_value *cell = result.rows[0].n ? db_cell(&result.rows[0], 0, 0) : NULL;

	return !cell || cell->type == DB_NULL ? INT64_MAX : cell->i;
}

static int64_t next_moment_of_rows(struct sim *sim)
{
	int64_t moment = number(sim, &next_moment), slot = INT64_MAX;

	if (trial_has_slots(trial_of(sim)))
		slot = number(sim, &trial_slot_next);
	return slot < moment ? slot : moment;
}

int64_t trial_lease_end(struct sim *sim)
{
	return number(sim, &lease_end);
}

static uint64_t hash_ledger(const struct trial_ledger *ledger, uint64_t hash)
{
	hash = hash_mix(hash, ledger->n * 256u + ledger->late_n);
	hash = hash_mix(hash, ledger->clicks);
	hash = hash_bytes(hash, ledger->used, sizeof ledger->used + sizeof ledger->fired);
	for (unsigned i = 0; i < ledger->n; i++)
		hash = hash_mix(hash, ledger->effects[i].key);
	for (unsigned i = 0; i < ledger->late_n; i++)
		hash = hash_mix(hash, ledger->late[i].key + ledger->late[i].asked);
	return hash;
}

static uint64_t hash_all(struct sim *sim, uint64_t hash)
{
	const struct trial *t = trial_of(sim);

	hash = hash_ledger(trial_ledger(sim), hash);
	if (sim_counts_versions(sim))
		hash = sim_hash_answer(sim, &hash_versions, hash);
	if (t->has_run) {
		hash = sim_hash_answer(sim, &hash_runs, hash);
		hash = sim_hash_answer(sim, &trial_steps_ended, hash);
		if (trial_has_slots(t))
			hash = sim_hash_answer(sim, &trial_hash_slots, hash);
		if (t->has_events)
			hash = sim_hash_answer(sim, &hash_events, hash);
	}
	if (t->has_entity) {
		hash = sim_hash_answer(sim, &hash_entities, hash);
		hash = sim_hash_answer(sim, &hash_kept, hash);
		if (t->machine->next)
			hash = hash_mix(hash, trial_is_put(sim));
	}
	if (t->machine->batch) {
		hash = sim_hash_answer(sim, &trial_hash_batch, hash);
		hash = sim_hash_answer(sim, &trial_hash_items, hash);
	}
	if (t->tables.names_n)
		hash = sim_hash_answer(sim, &t->tables.look, hash);
	if (t->has_sql)
		hash = sim_hash_answer(sim, &hash_sql, hash);
	return trial_has_jobs(t) ? sim_hash_answer(sim, &hash_jobs, hash) : hash;
}

/* Of an entity the rules count what its history has. */
bool trial_forgets_versions(const struct sim *sim)
{
	const struct trial *t = trial_of(sim);

	return t->has_run && !t->has_entity;
}

struct unit_result trial_read_entity(struct sim *sim, const struct trial_member *m)
{
	LOCAL_UNIT(unit);

	entity_read(&unit, &m->ref, slice_str(""));
	return sim_run_unit(sim, &unit);
}

DB_STMT(claims_kept, "trial_claims_kept", "i", "i", "SELECT count(*) FROM hx_kept_call WHERE subject = ?1 AND op IS NULL");

bool trial_keeps_a_claim(struct sim *sim, const struct trial_member *m)
{
	struct unit_result result = trial_ask_of(sim, &claims_kept, TRIAL_SUBJECT_OF(trial_of(sim), m));

	return db_cell(&result.rows[0], 0, 0)->i > 0;
}

const struct trial_member *trial_member_of(struct sim *sim, int64_t subject)
{
	const struct trial *t = trial_of(sim);

	if (t->members_n == 1)
		return t->members;
	if (subject >= TRIAL_SUBJECT + (int64_t)t->members_n) {
		struct unit_result result = trial_ask(sim, &trial_runs);
		const struct db_rows *rows = &result.rows[0];

		for (size_t i = rows->n; i-- > 0;) /* parents stand before their children */
			if (db_cell(rows, i, 0)->i == subject && db_cell(rows, i, 2)->type != DB_NULL)
				subject = db_cell(rows, i, 2)->i;
	}
	return TRIAL_MEMBER_AT(t, subject);
}

static void before_unit(struct sim *sim, const struct unit *unit)
{
	(void)sim, (void)unit;
}

static void after_unit(struct sim *sim, const struct unit *unit, enum unit_verdict verdict)
{
	(void)unit;
	trial_of(sim)->rows_changed |= verdict == UNIT_WON;
}

static void tell_nothing(struct sim *sim, struct strbuf *words)
{
	(void)sim, (void)words;
}

const struct sim_rows trial_rows = {
	.next_moment = next_moment_of_rows,
	.hash = hash_all,
	.before_unit = before_unit,
	.after_unit = after_unit,
	.tell = tell_nothing,
};

static void add_member(struct unit *unit, const struct trial_member *m, int64_t subject)
{
	const struct definition *d = m->machine->of;

	if (d->run)
		UNIT_ADD(unit, UNIT_ANY, &setup_run, db_str(d->name), db_text(m->input), db_int(d->run->timeout_ms),
			 db_int(subject));
	else if (!m->machine->entity->table)
		UNIT_ADD(unit, UNIT_ANY, &setup_entity, db_int(subject), db_str(d->name), db_text(m->ref.name));
}

void trial_setup(struct sim *sim)
{
	struct trial *t = trial_of(sim);
	const struct definition *d = t->machine->of;
	LOCAL_UNIT(unit);

	t->sim = sim;
	if (d->batch) {
		trial_batch_setup(sim);
		return;
	}
	if (t->machine->next) {
		LOCAL_UNIT(versions);

		for (int64_t v = 1; v <= 1 + (d->run != NULL); v++)
			UNIT_ADD(&versions, UNIT_ANY, &setup_version, db_str(d->name), db_int(v));
		(void)sim_run_unit(sim, &versions);
	}
	for (size_t i = 0; i < t->members_n; i++)
		add_member(&unit, &t->members[i], TRIAL_SUBJECT + (int64_t)i);
	unit_add(&unit, UNIT_ANY, &setup_counted, 0, NULL);
	(void)sim_run_unit(sim, &unit); /* what fails is a violation */
	trial_tables_setup(sim);
	if (trial_has_slots(t) && !t->scripted)
		trial_slots_setup(sim);
}
