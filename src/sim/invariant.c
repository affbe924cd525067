/* The invariants of invariant.h, read off the rows, the history and the units themselves. */
#include "sim/invariant.h"

#include <stdio.h>

#include "base/hash.h"
#include "flow/account.h"
#include "flow/batch.h"
#include "flow/end_wait.h"
#include "flow/function.h"
#include "flow/janitor.h"
#include "flow/job.h"
#include "flow/run.h"
#include "flow/subject.h"
#include "flow/ways.h"
#include "sim/sim_parts.h"
#include "sim/world.h"

DB_STMT(stmt_rows, "sim_rows", "", "itiitiibiii",
	"SELECT id, status, version, fence, owner, until, seq, head, effort, doubt, (SELECT count(*) FROM hx_history)"
	" FROM hx_subject ORDER BY id");

DB_STMT(stmt_row, "sim_row", "i", "itiitiibiii",
	"SELECT id, status, version, fence, owner, until, seq, head, effort, doubt, kind FROM hx_subject WHERE id = ?1");

DB_STMT(stmt_of_op, "sim_history_of_op", "ii", "iit",
	"SELECT version, fence, to_status FROM hx_history WHERE subject = ?1 AND op = ?2");

DB_STMT(stmt_history, "sim_history", "i", "ittiiitib",
	"SELECT seq, from_status, to_status, version, fence, op, node, at, hash FROM hx_history"
	" WHERE subject = ?1 ORDER BY seq");

static void fill_row(const struct db_rows *rows, size_t i, struct sim_row *row)
{
	struct slice status = db_cell(rows, i, 1)->s, head = db_cell(rows, i, 7)->s;

	*row = (struct sim_row){
		.id = db_cell(rows, i, 0)->i,
		.version = db_cell(rows, i, 2)->i,
		.fence = db_cell(rows, i, 3)->i,
		.claimed = db_cell(rows, i, 4)->type != DB_NULL,
		.has_until = db_cell(rows, i, 5)->type != DB_NULL,
		.until = db_cell(rows, i, 5)->type != DB_NULL ? db_cell(rows, i, 5)->i : 0,
		.seq = db_cell(rows, i, 6)->i,
		.effort = db_cell(rows, i, 8)->i,
		.doubt = db_cell(rows, i, 9)->i,
		.kind = db_cell(rows, i, 10)->i,
	};
	snprintf(row->status, sizeof row->status, "%.*s", SLICE_ARGS(status));
	ASSERT(head.n == sizeof row->head);
	memcpy(row->head, head.p, head.n);
}

bool sim_read_row(struct sim *sim, int64_t subject, struct sim_row *ret_row)
{
	LOCAL_UNIT(unit);

	UNIT_ADD(&unit, UNIT_ANY, &stmt_row, db_int(subject));

	struct unit_result result = sim_run_unit(sim, &unit);

	if (result.verdict != UNIT_WON || result.rows[0].n == 0)
		return false;
	fill_row(&result.rows[0], 0, ret_row);
	return true;
}

uint64_t sim_hash_answer(struct sim *sim, const struct db_stmt *stmt, uint64_t hash)
{
	LOCAL_UNIT(unit);

	unit_add(&unit, UNIT_ANY, stmt, 0, NULL);

	struct unit_result result = sim_run_unit(sim, &unit);
	const struct db_rows *rows = &result.rows[0];

	for (size_t i = 0; i < rows->n * rows->columns; i++) {
		const struct db_value *v = &rows->cells[i];

		hash = hash_mix(hash, v->type);
		if (v->type == DB_INT)
			hash = hash_mix(hash, (uint64_t)v->i);
		else if (v->type != DB_NULL)
			hash = hash_bytes(hash, v->s.p, v->s.n);
	}
	return hash;
}

uint64_t sim_hash_tables(struct sim *sim)
{
	return sim_hash_answer(sim, &stmt_rows, 1);
}

void invariant_before_unit(struct sim *sim, const struct unit *unit, struct sim_before *ret_before)
{
	*ret_before = (struct sim_before){0};
	if (unit->subjects_n)
		(void)sim_read_row(sim, unit->subjects[0], &ret_before->row); /* no row: stays all zero */
	ret_before->tables = sim_hash_tables(sim);
	if (sim->scenario->rows)
		sim->scenario->rows->before_unit(sim, unit);
}

static bool invariant_is(const struct unit *unit, const char *name)
{
	return strcmp(unit->lines[0].stmt->name, name) == 0;
}

/* I2: what a unit won, it won on the row as it was. */
static void check_belief(struct sim *sim, const struct unit *unit, const struct sim_row *row)
{
	const struct db_value *params = unit->lines[0].params;
	bool by_version = invariant_is(unit, "subject_transition") || invariant_is(unit, "subject_claim") ||
			  invariant_is(unit, "subject_claim_for_call") || invariant_is(unit, "subject_seize") ||
			  invariant_is(unit, "subject_shift");
	bool past = invariant_is(unit, "subject_revert") || invariant_is(unit, "subject_take_over");
	bool by_fence = past || invariant_is(unit, "subject_finish") || invariant_is(unit, "subject_release") ||
			invariant_is(unit, "subject_advance") || invariant_is(unit, "subject_go_on");
	bool beat = invariant_is(unit, "subject_heartbeat") || invariant_is(unit, "subject_hold");
	const char *what = unit->lines[0].stmt->name + strlen("subject_");
	int64_t fence = beat ? params[0].i : params[2].i;

	if (invariant_is(unit, "subject_shift") && params[2].i <= 0)
		by_version = false; /* of a subject that somebody holds, or nobody, whatever its version is */
	if (by_version && row->version != params[2].i)
		sim_violate(sim, "I2: a %s based on version %lld won over version %lld", what, (long long)params[2].i,
			    (long long)row->version);
	if ((by_fence || beat) && row->fence != fence)
		sim_violate(sim, "I2: a stale %s with fence %lld changed the claim with fence %lld", what,
			    (long long)fence, (long long)row->fence);
	if ((by_fence || beat) && !row->claimed)
		sim_violate(sim, "I2: a %s won although nothing was claimed", what);
	past |= invariant_is(unit, "subject_seize") && row->claimed;
	if (past && row->until > sim->clock.wall.ms)
		sim_violate(sim, "I2: a %s ended a claim whose time had not passed", what);
}

void invariant_after_unit(struct sim *sim, const struct unit *unit, const struct sim_before *before,
			  enum unit_verdict verdict)
{
	if (unit->lines_n == 0)
		return;
	if (verdict == UNIT_WON)
		check_belief(sim, unit, &before->row);
	else if (sim_hash_tables(sim) != before->tables)
		sim_violate(sim, "I4: a unit that was %s left something behind", unit_verdict_name(verdict));
	if (sim->scenario->rows)
		sim->scenario->rows->after_unit(sim, unit, verdict);
}

void invariant_acknowledged(struct sim *sim, const struct unit *unit, const struct unit_result *result)
{
	struct unit look;

	if (unit->lines_n == 0 || unit->lines[0].rule != UNIT_VERDICT || invariant_is(unit, "subject_heartbeat") ||
	    invariant_is(unit, "subject_hold") || invariant_is(unit, "subject_is_at") ||
	    strncmp(unit->lines[0].stmt->name, "subject_", strlen("subject_")) != 0)
		return;
	if (unit->subjects_n == 0 || unit->subjects[0] < 0)
		return; /* it is about rows that are no subjects */
	unit_init(&look, 0);
	UNIT_ADD(&look, UNIT_ANY, &stmt_of_op, db_int(unit->subjects[0]), db_int(unit->op));

	struct unit_result found = sim_run_unit(sim, &look);

	if (found.rows[0].n != 1)
		sim_violate(sim, "I5: a %s was acknowledged and is not in the history",
			    unit->lines[0].stmt->name + strlen("subject_"));
	else if (db_cell(&found.rows[0], 0, 0)->i != db_cell(&result->rows[0], 0, 0)->i ||
		 db_cell(&found.rows[0], 0, 1)->i != db_cell(&result->rows[0], 0, 1)->i)
		sim_violate(sim, "I5: the history tells another version or fence than was acknowledged");
}

/* What is asked once and never again (flow/call_key.h) is not remembered: each would be another state of the world. */
static bool is_question(struct slice key)
{
	return memmem(key.p, key.n, "/ask_", 5) != NULL;
}

/*
 * Not part of the hash of the state: where the invariant holds, what was sent follows from the key, and where it does not, it
 * is found on the way.
 */
void invariant_request(struct sim *sim, const struct act_call *call)
{
	uint64_t key = world_key(call->key), text = hash_bytes(3, call->input.p, call->input.n);
	uint64_t action = (uint64_t)(uintptr_t)call->action; /* each version of a definition has its own */
	struct sim_state *state = &sim->state;
	unsigned i = 0;

	if (!call->key.n || !call->input.p || is_question(call->key)) /* without a text: a scenario's network */
		return;
	while (i < state->requests_n && state->requests[i].key != key)
		i++;
	if (i == SIM_REQUESTS_MAX && sim->scenario->user) {
		sim->full = true;
		return;
	}
	ASSERT(i < SIM_REQUESTS_MAX);
	if (i == state->requests_n) {
		state->requests[i].key = key;
		state->requests[i].text = text;
		state->requests[i].open = 0;
		state->requests_n++;
	}
	if (state->requests[i].text != text || (state->requests[i].open && state->requests[i].action != action))
		sim_violate(sim, "I8: another request under the key %.*s: %.*s", SLICE_ARGS(call->key),
			    (int)(call->input.n < 200 ? call->input.n : 200), call->input.p);
	state->requests[i].action = action;
	state->requests[i].open++;
}

/* It was certainly not done, as far as this try goes. After others that were in doubt it is made as they were. */
void invariant_failed(struct sim *sim, const struct act_call *call)
{
	uint64_t key = world_key(call->key);

	for (unsigned i = 0; i < sim->state.requests_n; i++)
		if (sim->state.requests[i].key == key && sim->state.requests[i].open)
			sim->state.requests[i].open--;
}

void invariant_act_started(struct sim *sim, unsigned actor, const struct lease *lease)
{
	const struct sim_cast *cast = sim->scenario->cast;
	struct sim_state *state = &sim->state;

	for (unsigned i = 0; i < state->acts_n; i++) {
		if (state->acts[i].subject != lease->subject || state->acts[i].fence != lease->fence)
			continue;
		if (state->acts[i].actor != actor &&
		    !(sim->scenario->shared && cast[state->acts[i].actor].node == cast[actor].node))
			sim_violate(sim, "I1: two holders with fence %lld", (long long)lease->fence);
		return;
	}
	if (sim->scenario->user && state->acts_n == SIM_ACTS_MAX) {
		sim->full = true;
		return;
	}
	ASSERT(state->acts_n < SIM_ACTS_MAX);
	state->acts[state->acts_n].subject = lease->subject;
	state->acts[state->acts_n].fence = lease->fence;
	state->acts[state->acts_n++].actor = actor;
}

/* One history row against its predecessor: gaps, version, chain. */
static void check_link(struct sim *sim, int64_t subject, const struct ways *ways, const struct db_rows *rows, size_t i,
		       uint8_t head[SHA256_BYTES])
{
	struct history_row row = {
		.subject = subject,
		.seq = db_cell(rows, i, 0)->i,
		.from = db_cell(rows, i, 1)->s,
		.to = db_cell(rows, i, 2)->s,
		.version = db_cell(rows, i, 3)->i,
		.fence = db_cell(rows, i, 4)->i,
		.op = db_cell(rows, i, 5)->i,
		.node = db_cell(rows, i, 6)->s,
		.at = db_cell(rows, i, 7)->i,
	};
	struct slice hash = db_cell(rows, i, 8)->s;

	history_link(&row, slice_of(head, i ? SHA256_BYTES : 0), head);
	if (row.seq != (int64_t)i + 1)
		sim_violate(sim, "I5: the history of subject %lld has a gap before seq %lld", (long long)subject,
			    (long long)row.seq);
	if (!slice_eq(hash, slice_of(head, SHA256_BYTES)))
		sim_violate(sim, "I5: the chain of subject %lld breaks at seq %lld", (long long)subject,
			    (long long)row.seq);
	if (i && row.fence < db_cell(rows, i - 1, 4)->i)
		sim_violate(sim, "I1: the fence of subject %lld fell", (long long)subject);
	if (i && (row.version <= db_cell(rows, i - 1, 3)->i ||
		  (!sim->scenario->driven && row.version != db_cell(rows, i - 1, 3)->i + 1)))
		sim_violate(sim, "I5: the version of subject %lld did not rise%s", (long long)subject,
			    sim->scenario->driven ? "" : " by one");
	if (ways && !ways_lead(ways, /* by= */ NULL, row.from, row.to))
		sim_violate(sim, "I9: no way leads from %.*s to %.*s", SLICE_ARGS(row.from), SLICE_ARGS(row.to));
	if (i && !sim->scenario->user_moves && !slice_eq(row.from, db_cell(rows, i - 1, 2)->s))
		sim_violate(sim, "I5: the history of subject %lld does not join up at seq %lld", (long long)subject,
			    (long long)row.seq);
}

/* Of subjects of this kind; NULL: of those any status may follow any, as their definition says. */
static const struct ways *ways_of(int64_t subject_kind)
{
	return subject_kind == run_kind()        ? &run_ways
	       : subject_kind == function_kind() ? &run_ways
	       : subject_kind == batch_kind()    ? &batch_ways
	       : subject_kind == job_kind()      ? &job_ways
	       : subject_kind == account_kind()  ? &account_ways
						 : NULL;
}

static void check_history(struct sim *sim, const struct sim_row *row)
{
	LOCAL_UNIT(unit);
	uint8_t head[SHA256_BYTES] = {0};

	UNIT_ADD(&unit, UNIT_ANY, &stmt_history, db_int(row->id));

	struct unit_result result = sim_run_unit(sim, &unit);
	const struct db_rows *rows = &result.rows[0];
	const struct ways *ways = ways_of(row->kind);

	for (size_t i = 0; i < rows->n; i++)
		check_link(sim, row->id, ways, rows, i, head);
	if ((int64_t)rows->n != row->seq || memcmp(head, row->head, sizeof head) != 0)
		sim_violate(sim, "I5: subject %lld has %zu history rows and is at seq %lld, or its head is another",
			    (long long)row->id, rows->n, (long long)row->seq);
	else if (db_cell(rows, rows->n - 1, 3)->i != row->version ||
		 !slice_is(db_cell(rows, rows->n - 1, 2)->s, row->status))
		sim_violate(sim, "I5: the last history row of subject %lld is not what the subject is",
			    (long long)row->id);
}

void invariant_rows(struct sim *sim)
{
	const char *claim_status = sim->scenario->claim_status;

	for (unsigned i = 1; i <= sim->scenario->subjects_n; i++) {
		struct sim_row row;

		if (!sim_read_row(sim, i, &row)) {
			sim_violate(sim, "I5: subject %u is gone", i);
			return;
		}
		if (row.claimed != row.has_until ||
		    (!sim->scenario->driven && row.claimed != (claim_status && strcmp(row.status, claim_status) == 0)))
			sim_violate(sim, "I3: subject %u is %s, %s an owner and %s a time", i, row.status,
				    row.claimed ? "with" : "without", row.has_until ? "with" : "without");
		check_history(sim, &row);
	}
}

/* Somebody who sleeps on although the end that it waits for is there. */
static void check_sleepers(struct sim *sim)
{
	for (unsigned i = 0; i < sim->scenario->cast_n; i++) {
		const struct sim_actor *actor = &sim->state.actors[i];
		const struct end_wait *w = (const struct end_wait *)&actor->task;
		struct sim_row row;

		if (actor->state != SIM_ASKING || actor->ask != ASK_SLEEP ||
		    strcmp(actor->task.task.kind->name, END_WAIT_NAME) != 0)
			continue;
		if (sim_read_row(sim, w->subject, &row) && w->has_ended(slice_str(row.status)))
			sim_violate(sim, "I6: %s sleeps, and subject %lld is %s already", sim->scenario->cast[i].name,
				    (long long)w->subject, row.status);
	}
}

/* Runs a janitor to its end in the world as it is; every unit commits. */
static void invariant_sweep(struct sim *sim, const struct janitor_rules *rules)
{
	struct janitor janitor;
	struct unit unit;
	struct ask ask = {.unit = &unit};
	struct answer answer = {.kind = ANSWER_START, .now = sim->state.now, .node = "sweep"};
	struct unit_result result;

	janitor_init(&janitor, rules, /* budget= */ 1000, (struct mono_time){0});
	for (int64_t id = 1;; id++) {
		answer.id = ((int64_t)1 << 40) + id;
		janitor.task.kind->take(&janitor.task, &answer);
		janitor.task.kind->ask(&janitor.task, &ask);
		if (ask.kind == ASK_DONE)
			return;
		result = sim_run_unit(sim, &unit);
		answer = (struct answer){
			.kind = ANSWER_COMMIT, .now = sim->state.now, .node = "sweep", .result = &result};
	}
}

void invariant_quiet(struct sim *sim)
{
	const struct sim_scenario *scenario = sim->scenario;
	struct janitor_rule rule = {
		.kind = scenario->kind, .claim_into = scenario->claim_status, .revert_to = scenario->revert_status};
	struct sim_state saved;

	check_sleepers(sim);
	if (scenario->quiet)
		scenario->quiet(sim);
	if (!scenario->claim_status)
		return;
	sim_save(sim, &saved);
	sim_savepoint(sim);
	sim_set_now(sim, (struct wall_time){sim->state.now.ms + 1000000000});
	invariant_sweep(sim, &(struct janitor_rules){1, &rule});
	for (unsigned i = 1; i <= scenario->subjects_n; i++) {
		struct sim_row row;

		/* What is parked for a person has no end of its own. */
		if (sim_read_row(sim, i, &row) && row.claimed && row.until != INT64_MAX)
			sim_violate(sim, "I3: subject %u stays %s after its time has passed and a janitor ran", i,
				    row.status);
	}
	sim_roll_back(sim);
	sim_restore(sim, &saved);
}

bool invariant_writes(struct sim *sim, const union sim_task *asked)
{
	unsigned n = sim->state.wrote_n;
	struct sim_row row;
	struct unit unit;
	struct ask ask;

	sim_ask(&asked->task, &ask, &unit);
	if (n == SIM_WROTE_MAX || !unit.lines_n || unit.lines[0].rule == UNIT_ANY || !unit.subjects_n ||
	    !sim_read_row(sim, unit.subjects[0], &row))
		return false;
	sim->wrote[n] = (struct sim_wrote){*asked, row.version, row.fence, row.claimed};
	return true;
}

static void check_late(struct sim *sim, const struct sim_wrote *late)
{
	uint64_t store = sim->state.store;
	struct unit_result result;
	struct sim_row row;
	struct unit unit;
	struct ask ask;

	sim_ask(&late->asked.task, &ask, &unit);
	if (!sim_read_row(sim, unit.subjects[0], &row) ||
	    (row.fence == late->fence && (late->claimed || row.version == late->version)))
		return;
	sim_savepoint(sim);
	result = sim_run_unit(sim, &unit);
	sim_roll_back(sim);
	sim->state.store = store;
	if (result.verdict == UNIT_WON)
		sim_violate(sim, "I10: %s of a %s that came late was written", unit.lines[0].stmt->name,
			    late->asked.task.kind->name);
}

void invariant_late(struct sim *sim)
{
	for (unsigned i = 0; i < sim->state.wrote_n && !sim->violation[0]; i++)
		check_late(sim, &sim->wrote[i]);
}
