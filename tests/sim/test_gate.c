/*
 * The gate, explored: requests with one key, each the guard of gate/guard.h over the units of gate/record.h, with a fake
 * service for it whose effects are counted. Nothing renews their leases, and a call may last longer than its lease:
 * the slow holder and the one who took over from it are both at work then.
 *
 * Besides the invariants G1 to G5 of record.c, which are checked around every unit:
 *  G6  An execution begins only under a record that is PROCESSING, with this token and fingerprint, within its lease; and
 *      while it lasts, within its lease, no other one begins.
 *  G7  A live record goes only if no execution under it has happened or may yet happen.
 *  G8  Whoever is told CREATED finds its own bytes in the store, at that moment and until they expire.
 *  G9  Whoever is told REPLAYED got the bytes that are, or were last, in the store.
 *  G10 Whoever is told conflict, mismatch, released or store_error has executed nothing.
 *  G11 With `hold`, one record sees one execution.
 *  G12 Whoever is told REPLAYED, and whoever executes, is the caller of the record.
 *  G13 What a person decides about is PROCESSING, under the token that was seen, and its lease is over; so what is held is
 *      executed again only after somebody has said that it was not done, and never after "done".
 *  G14 Where version 0.1 has left a record of the same request under another key, nothing is executed while that one is completed
 *      or its lease lasts, and who is told REPLAYED got its bytes, or those of the record after it.
 *
 * tests/mutants/run builds this program once more for every guard it removes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/hash.h"
#include "gate/guard.h"
#include "sim/explore.h"
#include "sim/walks.h"
#include "sim/world.h"
#include "task/shape.h"

#define STATES_MAX 20000000
#define LEASE_MS 60000
#define TTL_MS 100000
#define KEYS_MAX 2

/* ---- a request: the guard and its asks as one task ---- */

struct plan {
	unsigned char number; /* of the cast, from 1: its token; and what the service answers */
	unsigned char key, fingerprint, caller;
	bool hold;
	bool old;   /* version 0.1 may have left a record of it under OLD_KEY */
	bool early; /* it has arrived when the walk begins; else it comes whenever the walk lets it */
};

struct request {
	struct task task;
	const struct plan *plan;
	struct guard guard;
	bool arrived;
	unsigned char replayed; /* by whose answer */
	/* Of the gate_write that is under way. The whole of it would be a large thing to copy around. */
	int64_t op;
	unsigned repeats;
	bool old, reading;
	int write_at;
};

struct writing {
	struct gate_write write;
	unsigned char replayed;
};

static void note_response(struct gate_write *write)
{
	struct slice response = write->reply.response;

	((struct writing *)write)->replayed = response.n == 1 ? (unsigned char)response.p[0] : 0;
}

static void resume(const struct request *r, struct writing *writing)
{
	*writing = (struct writing){0};
	gate_write_init(&writing->write, &r->guard.ask);
	writing->write.answered = note_response;
	writing->write.op = r->op;
	writing->write.repeats = r->repeats;
	writing->write.old = r->old;
	writing->write.reading = r->reading;
	writing->write.task.at = r->write_at;
}

static void suspend(struct request *r, const struct writing *writing)
{
	r->op = writing->write.op;
	r->repeats = writing->write.repeats;
	r->old = writing->write.old;
	r->reading = writing->write.reading;
	r->write_at = writing->write.task.at;
}

static bool asks_store(const struct request *r)
{
	return r->guard.at == GUARD_ACQUIRING || r->guard.at == GUARD_COMPLETING || r->guard.at == GUARD_REMOVING;
}

/* A new ask of the guard's: its task starts. */
static void begin_write(struct request *r, struct answer answer)
{
	struct writing writing;

	if (!asks_store(r))
		return;
	answer.kind = ANSWER_START;
	gate_write_init(&writing.write, &r->guard.ask);
	writing.write.task.kind->take(&writing.write.task, &answer);
	suspend(r, &writing);
}

static void take_written(struct request *r, const struct answer *answer)
{
	struct writing writing;

	resume(r, &writing);
	writing.write.task.kind->take(&writing.write.task, answer);
	suspend(r, &writing);
	if (!task_is_done(&writing.write.task))
		return;
	r->replayed = writing.replayed;
	guard_take_reply(&r->guard, &writing.write.reply);
	if (r->guard.at == GUARD_EXECUTING && answer->mono.ns >= guard_work_until(&r->guard).ns)
		guard_take_result(&r->guard, GUARD_NOTHING);
	begin_write(r, *answer);
}

static void take_act(struct request *r, const struct answer *answer)
{
	static const enum guard_result results[] = {
		[ACT_OK] = GUARD_STORE,
		[ACT_FAILED] = GUARD_NOTHING,
		[ACT_UNKNOWN] = GUARD_UNKNOWN,
	};

	r->guard.ask.response = slice_of(&r->plan->number, 1);
	guard_take_result(&r->guard, results[answer->outcome]);
	begin_write(r, *answer);
}

static void arrive(struct request *r, const struct answer *answer)
{
	r->arrived = true;
	guard_note_asked(&r->guard, answer->mono);
	begin_write(r, *answer);
}

static void request_take(struct task *task, const struct answer *answer)
{
	struct request *r = (struct request *)task;

	switch (answer->kind) {
	case ANSWER_START:
		if (r->plan->early)
			arrive(r, answer);
		break;
	case ANSWER_COMMIT:
		if (r->arrived)
			take_written(r, answer);
		else
			arrive(r, answer);
		break;
	case ANSWER_ACT:
		take_act(r, answer);
		break;
	case ANSWER_WOKE:
		ASSERT(!"it never sleeps");
	}
}

static void request_ask(const struct task *task, struct ask *ask)
{
	const struct request *r = (const struct request *)task;

	if (!r->arrived) { /* a unit without lines is answered at any moment */
		ask->kind = ASK_COMMIT;
		unit_init(ask->unit, /* op= */ 0);
	} else if (asks_store(r)) {
		struct writing writing;

		resume(r, &writing);
		writing.write.task.kind->ask(&writing.write.task, ask);
	} else if (r->guard.at == GUARD_EXECUTING) {
		ask->kind = ASK_ACT;
		ask->act = (struct act_call){.key = slice_of(&r->plan->number, 1), .attempt = 1};
	} else {
		ask->kind = ASK_DONE;
		ask->code = r->guard.code;
	}
}

static const char *request_where(const struct task *task)
{
	static const char *const names[] = {"acquiring", "executing", "completing", "removing"};
	const struct request *r = (const struct request *)task;

	if (!r->arrived)
		return "arriving";
	if (r->guard.at == GUARD_ENDED)
		return r->guard.unknown ? "unknown" : hx_gate_outcome_name(r->guard.outcome);
	return names[r->guard.at];
}

static const struct task_shape request_shape = SHAPE(struct request, NULL, PART(OP, struct request, op));

static const struct task_kind request_kind = {
	.name = "request",
	.size = sizeof(struct request),
	.take = request_take,
	.ask = request_ask,
	.where = request_where,
	.shape = &request_shape,
};

/* What version 0.1 has left, and nobody writes any more: its key, and whose answer it is. */
#define OLD_KEY 2
#define OLD_ANSWER 9
static const unsigned char old_key[HX_GATE_KEY_BYTES] = {OLD_KEY};

static void init_request(union sim_task *task, const void *plan, struct arena *texts)
{
	struct request *r = (struct request *)task;
	struct hx_gate_claim claim = {.lease_ms = LEASE_MS, .ttl_ms = TTL_MS};

	(void)texts;
	r->plan = plan;
	claim.key[0] = r->plan->key;
	claim.token[0] = r->plan->number;
	claim.fingerprint[0] = r->plan->fingerprint;
	claim.caller[0] = r->plan->caller;
	claim.hold = r->plan->hold;
	guard_init(&r->guard, &claim);
	if (r->plan->old)
		r->guard.ask.old_key = slice_of(old_key, sizeof old_key);
	task_init(&r->task, &request_kind, /* topic= */ 0);
}

/*
 * The sweep of some node, again and again: it is always its turn. It names no keys, since it does not know what it will
 * meet; that a row is locked while another's unit on it is open has to be said here.
 */
static struct task_kind sweep_kind;
static void (*sweep_ask)(const struct task *task, struct ask *ask);

static void sweep_ask_and_lock(const struct task *task, struct ask *ask)
{
	sweep_ask(task, ask);
	for (unsigned char k = 1; k <= KEYS_MAX && ask->kind == ASK_COMMIT; k++)
		unit_touch(ask->unit, gate_write_subject(&(struct gate_ask){.claim.key = {k}}));
}

static void init_sweep(union sim_task *task, const void *plan, struct arena *texts)
{
	static const struct gate_ask sweep = {.op = GATE_SWEEP, .budget = 8, .turn_ms = 0};

	(void)plan, (void)texts;
	gate_write_init((struct gate_write *)task, &sweep);
	sweep_kind = *task->task.kind;
	sweep_ask = sweep_kind.ask;
	sweep_kind.ask = sweep_ask_and_lock;
	task->task.kind = &sweep_kind;
}

/* A person who has seen a token, and says what became of it: once, at any moment. */
#define PERSON 9 /* as a token, and as an answer */

static const unsigned char person_answer = PERSON;
static const struct gate_ask not_done = {.op = GATE_RESOLVE, .claim = {.key = {1}, .token = {1}, .ttl_ms = TTL_MS}};
static const struct gate_ask done = {.op = GATE_RESOLVE,
				     .claim = {.key = {1}, .token = {1}, .ttl_ms = TTL_MS},
				     .response = {(const char *)&person_answer, 1},
				     .resolver = {PERSON}};

static void init_person(union sim_task *task, const void *plan, struct arena *texts)
{
	(void)texts;
	gate_write_init((struct gate_write *)task, plan);
}

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

/* ---- scenarios ---- */

static const struct plan first = {.number = 1, .key = 1, .fingerprint = 1, .early = true};
static const struct plan second = {.number = 2, .key = 1, .fingerprint = 1};
static const struct plan third = {.number = 3, .key = 1, .fingerprint = 1};
static const struct plan other = {.number = 4, .key = 1, .fingerprint = 2};
static const struct plan first_held = {.number = 1, .key = 1, .fingerprint = 1, .early = true, .hold = true};
static const struct plan second_held = {.number = 2, .key = 1, .fingerprint = 1, .hold = true};

static const struct plan alice = {.number = 1, .key = 1, .fingerprint = 1, .caller = 1, .early = true};
static const struct plan alice_again = {.number = 2, .key = 1, .fingerprint = 1, .caller = 1};
static const struct plan mallory = {.number = 3, .key = 1, .fingerprint = 1, .caller = 2};

#define GATE_SCENARIO .check = check, .rows = &gate_rows, .world = WORLD_PLAIN

/* Each on a node of its own: only the rows stand between them. */
static const struct sim_scenario pair = {
	.name = "a request and its retry on two nodes",
	.nodes_n = 2,
	.cast_n = 2,
	.cast = {{"first", 0, false, init_request, &first}, {"second", 1, false, init_request, &second}},
	.bounds = {.lapses = 2, .crashes = 1, .lost_answers = 2, .failures = 1},
	GATE_SCENARIO,
};

static const struct sim_scenario three = {
	.name = "a request and two retries on three nodes",
	.nodes_n = 3,
	.cast_n = 3,
	.cast = {{"first", 0, false, init_request, &first},
		 {"second", 1, false, init_request, &second},
		 {"third", 2, false, init_request, &third}},
	.bounds = {.lapses = 2, .crashes = 0, .lost_answers = 1, .failures = 0},
	GATE_SCENARIO,
};

static const struct sim_scenario mixed = {
	.name = "a request, its retry and one with another body on three nodes",
	.nodes_n = 3,
	.cast_n = 3,
	.cast = {{"first", 0, false, init_request, &first},
		 {"second", 1, false, init_request, &second},
		 {"other", 2, false, init_request, &other}},
	.bounds = {.lapses = 1, .crashes = 1, .lost_answers = 1, .failures = 0},
	GATE_SCENARIO,
};

/* On one node their units share batches, and a crash takes them all. */
static const struct sim_scenario together = {
	.name = "a request, its retry and one with another body on one node",
	.nodes_n = 1,
	.cast_n = 3,
	.cast = {{"first", 0, false, init_request, &first},
		 {"second", 0, false, init_request, &second},
		 {"other", 0, false, init_request, &other}},
	.bounds = {.lapses = 1, .crashes = 1, .lost_answers = 1, .failures = 0},
	GATE_SCENARIO,
};

static const struct sim_scenario held = {
	.name = "on_lost hold, a request and its retry on two nodes",
	.nodes_n = 2,
	.cast_n = 2,
	.cast = {{"first", 0, false, init_request, &first_held}, {"second", 1, false, init_request, &second_held}},
	.bounds = {.lapses = 2, .crashes = 1, .lost_answers = 2, .failures = 1},
	GATE_SCENARIO,
};

/* The same key and body, and another caller. */
static const struct sim_scenario callers = {
	.name = "a request, its retry and another caller's on three nodes",
	.nodes_n = 3,
	.cast_n = 3,
	.cast = {{"alice", 0, false, init_request, &alice},
		 {"alice again", 1, false, init_request, &alice_again},
		 {"mallory", 2, false, init_request, &mallory}},
	.bounds = {.lapses = 1, .crashes = 0, .lost_answers = 1, .failures = 0},
	GATE_SCENARIO,
};

static const struct sim_scenario resolved_not_done = {
	.name = "on_lost hold, and a person who says that it was not done",
	.nodes_n = 3,
	.cast_n = 3,
	.cast = {{"first", 0, false, init_request, &first_held},
		 {"second", 1, false, init_request, &second_held},
		 {"person", 2, false, init_person, &not_done}},
	.bounds = {.lapses = 1, .crashes = 0, .lost_answers = 1, .failures = 0},
	GATE_SCENARIO,
};

static const struct sim_scenario resolved_done = {
	.name = "on_lost hold, and a person who says that it was done",
	.nodes_n = 3,
	.cast_n = 3,
	.cast = {{"first", 0, false, init_request, &first_held},
		 {"second", 1, false, init_request, &second_held},
		 {"person", 2, false, init_person, &done}},
	.bounds = {.lapses = 1, .crashes = 0, .lost_answers = 1, .failures = 0},
	GATE_SCENARIO,
};

static const struct sim_scenario swept = {
	.name = "a request, its retry and a sweep on three nodes",
	.nodes_n = 3,
	.cast_n = 3,
	.cast = {{"first", 0, false, init_request, &first},
		 {"second", 1, false, init_request, &second},
		 {"sweep", 2, true, init_sweep, NULL}},
	.bounds = {.lapses = 3, .crashes = 0, .lost_answers = 1, .failures = 0},
	GATE_SCENARIO,
};

/* A store that version 0.1 has left a moment ago. */
static const struct plan first_after = {.number = 1, .key = 1, .fingerprint = 1, .old = true, .early = true};
static const struct plan second_after = {.number = 2, .key = 1, .fingerprint = 1, .old = true};

static const struct db_stmt stmt_old = {
	.name = "sim_gate_old",
	.sql = "INSERT INTO hx_gate_record (key, token, fingerprint, status, held, created_at, until, expires_at, sweep_at, response)"
	       " VALUES (?1, ?2, ?3, ?4, 0, hx_now_ms(), hx_now_ms() + ?5, hx_now_ms() + ?6, hx_now_ms() + ?6, ?7)",
	.in = "bbbiiib",
	.out = "",
};

static void leave(struct sim *sim, int64_t status, int64_t expires_ms, struct db_value response)
{
	static const unsigned char token[HX_GATE_TOKEN_BYTES] = {OLD_ANSWER}, print[HX_GATE_KEY_BYTES] = {1};
	struct unit unit;

	unit_init(&unit, 0);
	UNIT_ADD(&unit, UNIT_ANY, &stmt_old, db_blob(slice_of(old_key, sizeof old_key)),
		 db_blob(slice_of(token, sizeof token)), db_blob(slice_of(print, sizeof print)), db_int(status),
		 db_int(LEASE_MS), db_int(expires_ms), response);
	(void)sim_run_unit(sim, &unit);
}

static void leave_completed(struct sim *sim)
{
	static const unsigned char answer = OLD_ANSWER;

	leave(sim, 2, TTL_MS, db_blob(slice_of(&answer, 1)));
}

static void leave_open(struct sim *sim)
{
	leave(sim, 1, LEASE_MS + TTL_MS, db_null());
}

#define AFTER_UPGRADE                                                                                                  \
	.nodes_n = 2, .cast_n = 2,                                                                                     \
	.cast = {{"first", 0, false, init_request, &first_after}, {"second", 1, false, init_request, &second_after}},  \
	.bounds = {.lapses = 2, .crashes = 1, .lost_answers = 1, .failures = 1}, GATE_SCENARIO

static const struct sim_scenario old_completed = {
	.name = "a request and its retry, which version 0.1 has answered",
	.setup = leave_completed,
	AFTER_UPGRADE,
};

static const struct sim_scenario old_open = {
	.name = "a request and its retry, which version 0.1 was at",
	.setup = leave_open,
	AFTER_UPGRADE,
};

/* Larger than can be walked through: for the random walks. */
static const struct plan sixth = {.number = 6, .key = 2, .fingerprint = 1, .hold = true};
static const struct plan seventh = {.number = 7, .key = 2, .fingerprint = 1, .hold = true};
static const struct plan eighth = {.number = 8, .key = 2, .fingerprint = 2, .hold = true};

static const struct sim_scenario crowd = {
	.name = "seven requests with two keys and a sweep on three nodes",
	.nodes_n = 3,
	.cast_n = 8,
	.cast = {{"first", 0, false, init_request, &first},
		 {"second", 1, false, init_request, &second},
		 {"third", 0, false, init_request, &third},
		 {"other", 2, false, init_request, &other},
		 {"sixth", 0, false, init_request, &sixth},
		 {"seventh", 1, false, init_request, &seventh},
		 {"eighth", 2, false, init_request, &eighth},
		 {"sweep", 1, true, init_sweep, NULL}},
	.bounds = {.lapses = 6, .crashes = 2, .lost_answers = 4, .failures = 3},
	GATE_SCENARIO,
};

static void explore(const struct sim_scenario *scenario)
{
	walk_all(scenario, STATES_MAX);
}

#define EXHAUSTIVE(scenario)                                                                                           \
	static void exhaustive_##scenario(void **state)                                                                \
	{                                                                                                              \
		(void)state;                                                                                           \
		explore(&scenario);                                                                                    \
	}

EXHAUSTIVE(pair)
EXHAUSTIVE(three)
EXHAUSTIVE(mixed)
EXHAUSTIVE(together)
EXHAUSTIVE(held)
EXHAUSTIVE(swept)
EXHAUSTIVE(callers)
EXHAUSTIVE(resolved_not_done)
EXHAUSTIVE(resolved_done)
EXHAUSTIVE(old_completed)
EXHAUSTIVE(old_open)

static void random_crowd(void **state)
{
	bool soak = getenv("HAPAX_SOAK") != NULL;
	unsigned runs = soak ? 200000 : 2000;

	(void)state;
	(void)walk_at_random(&crowd, runs, 120);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exhaustive_pair),          cmocka_unit_test(exhaustive_three),
		cmocka_unit_test(exhaustive_mixed),         cmocka_unit_test(exhaustive_together),
		cmocka_unit_test(exhaustive_held),          cmocka_unit_test(exhaustive_swept),
		cmocka_unit_test(exhaustive_callers),       cmocka_unit_test(exhaustive_resolved_not_done),
		cmocka_unit_test(exhaustive_resolved_done), cmocka_unit_test(exhaustive_old_completed),
		cmocka_unit_test(exhaustive_old_open),      cmocka_unit_test(random_crowd),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
