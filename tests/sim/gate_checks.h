/* What must hold of the gate's records and of what requests are told: G1 to G14 of test_gate.c. */
#pragma once

#include "sim/gate_requests.h"

/* ---- the rows ---- */

struct row {
	bool there;
	unsigned char key, token, fingerprint, caller, response; /* 0: none */
	int64_t status, held, created_at, until, expires_at, takeovers;
};

static const struct db_stmt stmt_rows = {
	.name = "sim_gate_rows",
	.sql = "SELECT key, token, fingerprint, response, status, held, created_at, until, expires_at, takeovers, caller"
	       " FROM hx_gate_record ORDER BY key",
	.in = "",
	.out = "bbbbiiiiiib",
};

static unsigned char first_byte(const struct db_value *v)
{
	return v->type == DB_BLOB && v->s.n ? (unsigned char)v->s.p[0] : 0;
}

/* By their keys, which are 1 and 2. */
static void read_rows(struct sim *sim, struct row rows[KEYS_MAX])
{
	struct unit unit;

	unit_init(&unit, 0);
	unit_add(&unit, UNIT_ANY, &stmt_rows, 0, NULL);

	struct unit_result result = sim_run_unit(sim, &unit);
	const struct db_rows *found = &result.rows[0];

	memset(rows, 0, KEYS_MAX * sizeof *rows);
	for (size_t i = 0; i < found->n; i++)
		rows[first_byte(db_cell(found, i, 0)) - 1] = (struct row){
			.there = true,
			.key = first_byte(db_cell(found, i, 0)),
			.token = first_byte(db_cell(found, i, 1)),
			.fingerprint = first_byte(db_cell(found, i, 2)),
			.response = first_byte(db_cell(found, i, 3)),
			.status = db_cell(found, i, 4)->i,
			.held = db_cell(found, i, 5)->i,
			.created_at = db_cell(found, i, 6)->i,
			.until = db_cell(found, i, 7)->i,
			.expires_at = db_cell(found, i, 8)->i,
			.takeovers = db_cell(found, i, 9)->i,
			.caller = first_byte(db_cell(found, i, 10)),
		};
}

static bool is_live(const struct row *row, int64_t now)
{
	return row->there && row->expires_at > now;
}

static bool is_completed_with(const struct row *row, unsigned char response)
{
	return row->there && row->status == 2 && row->response == response;
}

/* ---- what the checks remember ---- */

/* A record from its birth to its end. */
struct life {
	uint32_t number; /* of its birth, 0: there was none yet */
	uint32_t starts;
	unsigned char token, fingerprint;
	unsigned char response, created; /* of the last that was completed; somebody was told so */
	int64_t takeovers, created_at, expires_at;
};

struct notes {
	uint32_t births;
	bool resolved; /* a person has said what became of it */
	struct life life[KEYS_MAX];
	struct {
		uint32_t life; /* in which it began to execute, 0: it did not */
		bool told;
		int64_t until; /* of its lease */
	} request[SIM_ACTORS_MAX];
};
_Static_assert(sizeof(struct notes) <= SIM_NOTES_BYTES, "it fits");

static struct notes *notes_of(struct sim *sim)
{
	return (struct notes *)sim->state.notes;
}

static const struct request *request_of(const struct sim *sim, unsigned i)
{
	return sim->state.actors[i].task.task.kind == &request_kind ? (const struct request *)&sim->state.actors[i].task
								    : NULL;
}

static bool is_executing(const struct sim *sim, unsigned i)
{
	const struct sim_actor *actor = &sim->state.actors[i];

	return actor->state == SIM_ASKING && actor->ask == ASK_ACT;
}

static bool has_executed(const struct sim *sim, unsigned char number)
{
	uint64_t key = hash_bytes(1, &number, 1);

	for (unsigned i = 0; i < sim->state.effects_n; i++)
		if (sim->state.effects[i] == key)
			return true;
	return false;
}

/* Somebody who began in this life has executed, or still may. */
static bool may_have_executed(struct sim *sim, uint32_t life)
{
	const struct notes *notes = notes_of(sim);

	for (unsigned i = 0; i < sim->scenario->cast_n; i++) {
		const struct request *r = request_of(sim, i);
		const struct plan *plan = r ? r->plan : NULL;

		if (plan && notes->request[i].life == life && (is_executing(sim, i) || has_executed(sim, plan->number)))
			return true;
	}
	return false;
}

/* ---- around every unit: G1 to G5, G7 ---- */

static struct row rows_before[KEYS_MAX];

static void before_unit(struct sim *sim, const struct unit *unit)
{
	(void)unit;
	read_rows(sim, rows_before);
}

/* What the unit is and whose. */
struct deed {
	bool acquires, completes, removes, resolves;
	unsigned char key, token;
};

static struct deed deed_of(const struct unit *unit)
{
	const struct unit_line *line = &unit->lines[0];
	struct deed deed = {.acquires = strcmp(line->stmt->name, "gate_acquire") == 0,
			    .completes = strcmp(line->stmt->name, "gate_complete") == 0,
			    .removes = strcmp(line->stmt->name, "gate_remove") == 0,
			    .resolves = strncmp(line->stmt->name, "gate_resolve", 12) == 0};

	if (deed.acquires || deed.completes || deed.removes || deed.resolves) {
		deed.key = first_byte(&line->params[deed.removes ? 1 : 0]);
		deed.token = first_byte(&line->params[deed.removes ? 0 : 1]);
	}
	return deed;
}

/* G13, and the record's last change by anybody. */
static void check_resolved(struct sim *sim, const struct deed *deed, const struct row *before)
{
	if (before->token != deed->token)
		sim_violate(sim, "G13: a person who saw %d decided about the record of %d", deed->token, before->token);
	if (before->until > sim->clock.wall.ms)
		sim_violate(sim, "G13: a person decided while the lease of %d lasts", before->token);
	if (before->status != 1)
		sim_violate(sim, "G13: a person decided about what was answered");
	notes_of(sim)->resolved = true;
}

static void check_gone(struct sim *sim, const struct deed *deed, const struct row *before)
{
	if (deed->resolves) {
		check_resolved(sim, deed, before);
		return;
	}
	if (!deed->removes || deed->token != before->token)
		sim_violate(sim, "G2: the record of %d was removed by %d", before->token, deed->token);
	if (before->status == 2)
		sim_violate(sim, "G3: a completed record was removed");
	if (may_have_executed(sim, notes_of(sim)->life[before->key - 1].number))
		sim_violate(sim, "G7: a record was removed under which something was, or may be, executed");
}

static void check_passed_on(struct sim *sim, const struct row *before, const struct row *after)
{
	int64_t now = sim->clock.wall.ms;

	if (before->until > now)
		sim_violate(sim, "G1: %d took over from %d within the lease", after->token, before->token);
	if (before->held)
		sim_violate(sim, "G1: %d took over a record that is held", after->token);
	if (after->takeovers != before->takeovers + 1)
		sim_violate(sim, "G1: a takeover was not counted");
}

static void check_changed(struct sim *sim, const struct deed *deed, const struct row *before, const struct row *after)
{
	if (before->created_at != after->created_at)
		sim_violate(sim, "G4: created_at of a living record was changed");
	if (before->fingerprint != after->fingerprint)
		sim_violate(sim, "G1: a request with another fingerprint took the record");
	if (before->caller != after->caller)
		sim_violate(sim, "G1: another caller took the record");
	if (deed->resolves && before->status == 1) {
		check_resolved(sim, deed, before);
		return;
	}
	if (deed->resolves)
		return; /* once more, by the same person: but for its end it is as it was */
	if (before->status == 2 && memcmp(before, after, sizeof *before) != 0)
		sim_violate(sim, "G3: a completed record was changed by %d", deed->token);
	if (before->status == 1 && after->status == 2 && (!deed->completes || deed->token != before->token))
		sim_violate(sim, "G2: the record of %d was completed by %d", before->token, deed->token);
	if (after->status == 2 && after->response != after->token)
		sim_violate(sim, "G3: the record of %d has the answer of %d", after->token, after->response);
	if (before->token != after->token)
		check_passed_on(sim, before, after);
}

static void check_row(struct sim *sim, const struct deed *deed, const struct row *before, const struct row *after,
		      enum unit_verdict verdict)
{
	bool live = is_live(before, sim->clock.wall.ms), same = memcmp(before, after, sizeof *before) == 0;

	if (verdict != UNIT_WON && !same)
		sim_violate(sim, "a unit that was not won left something behind");
	if (!live && deed->acquires && !(after->there && after->token == deed->token))
		sim_violate(sim, "G5: %d found no living record and did not get it", deed->token);
	if (!live && !deed->acquires && after->there && !same)
		sim_violate(sim, "G5: a record that has expired, or is none, was changed");
	if (live && !after->there)
		check_gone(sim, deed, before);
	if (live && after->there && !same)
		check_changed(sim, deed, before, after);
}

static void after_unit(struct sim *sim, const struct unit *unit, enum unit_verdict verdict)
{
	struct row rows[KEYS_MAX];
	struct deed deed = deed_of(unit), none = {0};

	read_rows(sim, rows);
	for (unsigned k = 0; k < KEYS_MAX; k++)
		check_row(sim, deed.key == k + 1 ? &deed : &none, &rows_before[k], &rows[k], verdict);
}

/* ---- after every edge: G6, G8 to G11 ---- */

static void check_life(struct sim *sim, const struct life *life, const struct row *row, bool goes_on)
{
	if (life->number == 0 || life->expires_at <= sim->state.now.ms)
		return;
	if (goes_on && row->fingerprint != life->fingerprint)
		sim_violate(sim, "G1: a record was used for two different requests");
	if (!goes_on && !notes_of(sim)->resolved && may_have_executed(sim, life->number))
		sim_violate(sim, "G7: a record went under which something was, or may be, executed");
	if (life->created && !is_completed_with(row, life->response))
		sim_violate(sim, "G8: somebody was told that its answer is stored, and it is gone");
}

static void follow_life(struct sim *sim, struct life *life, const struct row *row)
{
	bool goes_on = row->there && life->number && row->created_at == life->created_at &&
		       (row->token == life->token || row->takeovers > life->takeovers);

	check_life(sim, life, row, goes_on);
	if (row->there && !goes_on) {
		life->number = ++notes_of(sim)->births;
		life->starts = life->created = 0;
	}
	life->token = row->token;
	life->fingerprint = row->fingerprint;
	life->takeovers = row->takeovers;
	life->created_at = row->created_at;
	life->expires_at = row->expires_at;
	if (row->status == 2)
		life->response = row->response;
}

static void check_start(struct sim *sim, unsigned i, const struct request *r, const struct row *row)
{
	struct notes *notes = notes_of(sim);
	struct life *life = &notes->life[r->plan->key - 1];
	const char *name = sim->scenario->cast[i].name;

	if (!row->there || row->status != 1 || row->token != r->plan->number)
		sim_violate(sim, "G6: %s executes and does not hold the record", name);
	else if (row->fingerprint != r->plan->fingerprint)
		sim_violate(sim, "G6: %s executes under a record with another fingerprint", name);
	else if (row->caller != r->plan->caller)
		sim_violate(sim, "G12: %s executes under the record of another caller", name);
	else if (row->until <= sim->state.now.ms)
		sim_violate(sim, "G6: %s begins to execute when its lease is over", name);
	for (unsigned k = 0; k < sim->scenario->cast_n; k++) {
		const struct request *other = request_of(sim, k);

		if (k != i && other && other->plan->key == r->plan->key && is_executing(sim, k) &&
		    notes->request[k].until > sim->state.now.ms)
			sim_violate(sim, "G6: %s and %s execute at once, within the lease", name,
				    sim->scenario->cast[k].name);
	}
	if (++life->starts > 1 && r->plan->hold)
		sim_violate(sim, "G11: a record that is held was executed twice");
	notes->request[i].life = life->number;
	notes->request[i].until = row->until;
}

/* G14. What was lost there is taken over, as it would have been under its own key. */
static void check_old(struct sim *sim, unsigned i, const struct row *old)
{
	if (is_live(old, sim->state.now.ms) && (old->status == 2 || old->until > sim->state.now.ms))
		sim_violate(sim, "G14: %s executes what version 0.1 has answered, or is at",
			    sim->scenario->cast[i].name);
}

/* True: it was given the answer of version 0.1. */
static bool check_old_told(struct sim *sim, unsigned i, const struct request *r, const struct row *old)
{
	if (r->guard.unknown || r->guard.outcome != HX_GATE_REPLAYED || r->replayed != OLD_ANSWER)
		return false;
	if (has_executed(sim, r->plan->number))
		sim_violate(sim, "G14: %s executed and was given the answer of version 0.1",
			    sim->scenario->cast[i].name);
	if (old->expires_at * 1000000 <= r->guard.asked.ns)
		sim_violate(sim, "G14: %s was given an answer that had expired before it came",
			    sim->scenario->cast[i].name);
	return true;
}

static void check_told(struct sim *sim, unsigned i, const struct request *r, const struct row *row)
{
	struct life *life = &notes_of(sim)->life[r->plan->key - 1];
	const char *name = sim->scenario->cast[i].name;

	if (r->guard.unknown)
		return;
	switch (r->guard.outcome) {
	case HX_GATE_CREATED:
		if (life->response != r->plan->number ||
		    (is_live(row, sim->state.now.ms) && !is_completed_with(row, r->plan->number)))
			sim_violate(sim, "G8: %s was told that its answer is stored, and it is not", name);
		life->created = true;
		return;
	case HX_GATE_REPLAYED:
		if (r->replayed == 0 || r->replayed != life->response)
			sim_violate(sim, "G9: %s was given the answer of %d, and stored is that of %d", name,
				    r->replayed, life->response);
		if (row->there && row->status == 2 && row->response == r->replayed && row->caller != r->plan->caller)
			sim_violate(sim, "G12: %s was given the answer to another caller", name);
		if (row->there && row->expires_at * 1000000 <= r->guard.asked.ns)
			sim_violate(sim, "G5: %s was given an answer that had expired before it came", name);
		break;
	case HX_GATE_STALE:
		if (is_completed_with(row, r->plan->number) && is_live(row, sim->state.now.ms))
			sim_violate(sim, "%s was told that its answer is not stored, and it is", name);
		return;
	case HX_GATE_UNSTORED:
		return;
	case HX_GATE_CONFLICT:
	case HX_GATE_MISMATCH:
	case HX_GATE_RELEASED:
	case HX_GATE_STORE_ERROR:
	case HX_GATE_OUTCOMES:
		break;
	}
	if (has_executed(sim, r->plan->number))
		sim_violate(sim, "G10: %s executed and was told %s", name, hx_gate_outcome_name(r->guard.outcome));
}

static void check(struct sim *sim)
{
	struct notes *notes = notes_of(sim);
	struct row rows[KEYS_MAX];

	read_rows(sim, rows);
	for (unsigned k = 0; k < KEYS_MAX; k++)
		follow_life(sim, &notes->life[k], &rows[k]);
	for (unsigned i = 0; i < sim->scenario->cast_n; i++) {
		const struct request *r = request_of(sim, i);

		if (!r)
			continue;
		if (is_executing(sim, i) && !notes->request[i].life) {
			check_start(sim, i, r, &rows[r->plan->key - 1]);
			if (r->plan->old)
				check_old(sim, i, &rows[OLD_KEY - 1]);
		}
		if (sim->state.actors[i].state == SIM_DONE && !notes->request[i].told) {
			if (!r->plan->old || !check_old_told(sim, i, r, &rows[OLD_KEY - 1]))
				check_told(sim, i, r, &rows[r->plan->key - 1]);
			notes->request[i].told = true;
		}
	}
}

/* ---- for the simulator ---- */

static int64_t next_moment(struct sim *sim)
{
	struct row rows[KEYS_MAX];
	int64_t now = sim->state.now.ms, next = INT64_MAX;

	read_rows(sim, rows);
	for (unsigned k = 0; k < KEYS_MAX; k++) {
		if (rows[k].there && rows[k].status == 1 && rows[k].until > now && rows[k].until < next)
			next = rows[k].until;
		if (rows[k].there && rows[k].expires_at > now && rows[k].expires_at < next)
			next = rows[k].expires_at;
	}
	return next;
}

static uint64_t hash_until(uint64_t hash, int64_t moment, int64_t now)
{
	return hash_mix(hash, moment > now ? (uint64_t)(moment - now) : 0);
}

static uint64_t hash_all(struct sim *sim, uint64_t hash)
{
	const struct notes *notes = notes_of(sim);
	struct row rows[KEYS_MAX];
	int64_t now = sim->state.now.ms;

	read_rows(sim, rows);
	for (unsigned k = 0; k < KEYS_MAX; k++) {
		const struct row *row = &rows[k];
		const struct life *life = &notes->life[k];

		hash = hash_mix(hash, row->there);
		hash = hash_mix(hash, (uint64_t)row->caller * 2 + notes->resolved);
		hash = hash_mix(hash, (uint64_t)row->token << 16 | (uint64_t)row->fingerprint << 8 | row->response);
		hash = hash_mix(hash, (uint64_t)(row->status * 2 + row->held));
		hash = hash_mix(hash, (uint64_t)row->takeovers);
		hash = hash_mix(hash, (uint64_t)(now - row->created_at));
		hash = hash_until(hash, row->until, now);
		hash = hash_until(hash, row->expires_at, now);
		hash = hash_mix(hash, life->number > 0);
		hash = hash_mix(hash, row->held ? life->starts : 0);
		hash = hash_mix(hash, (uint64_t)life->created << 8 | life->response);
		hash = hash_until(hash, life->expires_at, now);
	}
	for (unsigned i = 0; i < sim->scenario->cast_n; i++) {
		const struct request *r = request_of(sim, i);
		const struct plan *plan = r ? r->plan : NULL;
		uint32_t life = notes->request[i].life;

		hash = hash_mix(hash, notes->request[i].told);
		hash = hash_mix(hash, plan && life ? 1 + (life == notes->life[plan->key - 1].number) : 0);
		if (is_executing(sim, i))
			hash = hash_until(hash, notes->request[i].until, now);
	}
	return hash;
}

static void tell(struct sim *sim, struct strbuf *words)
{
	struct row rows[KEYS_MAX];

	read_rows(sim, rows);
	for (unsigned k = 0; k < KEYS_MAX; k++) {
		const struct row *row = &rows[k];

		if (!row->there)
			continue;
		strbuf_addf(words, "record %u of %d is %s", k + 1, row->token,
			    row->status == 1 ? "PROCESSING" : "COMPLETED");
		if (row->status == 2)
			strbuf_addf(words, " with the answer of %d", row->response);
		else if (row->until <= sim->state.now.ms)
			strbuf_add_str(words, ", its lease is over");
		strbuf_add_str(words, row->expires_at <= sim->state.now.ms ? ", and expired; " : "; ");
	}
}

static const struct sim_rows gate_rows = {
	.next_moment = next_moment,
	.hash = hash_all,
	.before_unit = before_unit,
	.after_unit = after_unit,
	.tell = tell,
};
