/*
 * What the simulations of runs share: the run and its definition, the checks of its rows and of effects, the cast, and a
 * worker outside of the engine as a task.
 *
 * On every edge: R1 to R8 of flow/run.h as far as rows show them; effects in their order, undone in reverse, none twice under
 * one key (in a plain world: none twice at all). And from every state in which nothing goes on but time: if from there on
 * all went well, the run would come to its end, or to where only a person or an event can move it.
 */
#ifndef HX_TESTS_SIM_RUNS_H
#define HX_TESTS_SIM_RUNS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/id.h"
#include "flow/job_work.h"
#include "flow/run_drive.h"
#include "flow/run_verb.h"
#include "sim/explore.h"
#include "sim/invariant.h"
#include "sim/world.h"

#define STATES_MAX 20000000
#define WORDS_MAX (4u << 20)
#define RUN 1
#define STEPS_MAX 4
#define REDO_MAX 3
#define SETTLE_ROUNDS_MAX 60

#define ACTION(name, more) "\"" name "\":{\"kind\":\"http\",\"url\":\"http://127.0.0.1:1/\"" more "}"
#define KEYED ",\"effect\":\"keyed\""
#define PLAIN ",\"effect\":\"claimed\""

/* One world per test: definitions live as long as the program. */
static struct {
	struct arena arena;
	const struct run_machine *machine;
	bool may_wait; /* for an event or a decision that nobody sends */
	bool may_pause;
	struct sim *sim; /* the world that is being walked through, for the person who knows the truth */
	uint64_t keys[STEPS_MAX]
		     [1 + REDO_MAX + 1]; /* of each step: that of its compensation, then those of its redoings */
} fixture;

static const struct run_machine *machine_of(const void *context, struct slice workflow, int64_t version)
{
	(void)context, (void)workflow, (void)version;
	return fixture.machine;
}

static const struct run_policy policy = {.lease_ms = 60000, .machine_of = machine_of};

static inline void parse(const char *actions, const char *steps)
{
	const struct run_definition *definition;
	struct findings findings;
	char text[4000];

	arena_release(&fixture.arena);
	memset(&fixture, 0, sizeof fixture);
	arena_init(&fixture.arena, 16u << 20);
	findings_init(&findings, &fixture.arena);
	snprintf(text, sizeof text, "{\"workflow\":\"order\",\"kind\":\"run\",\"actions\":{%s},\"steps\":[%s]}",
		 actions, steps);
	run_definition_parse("order.json", arena_copy(&fixture.arena, slice_str(text)), &fixture.arena, &findings,
			     &definition);
	for (const struct finding *f = findings.first; f; f = f->next)
		printf("%s: %s\n", f->rule, f->text);
	assert_non_null(definition);
	fixture.machine = run_machine_new(definition, 1, &fixture.arena);
}

/* ---- the store, seen from here ---- */

/* clang-format off */

static const struct db_stmt stmt_setup = {
	.name = "sim_run_setup",
	.sql = "INSERT INTO run (subject, workspace, workflow, definition_version, requester, input, due_at, created_at)"
	       " VALUES (1, 'default', 'order', 1, 'me', '{}', hx_now_ms(), hx_now_ms())",
	.in = "",
	.out = "",
};

static const struct db_stmt stmt_due = {
	.name = "sim_run_due",
	.sql = "SELECT r.subject FROM run r JOIN subject s ON s.id = r.subject"
	       " WHERE r.due_at <= hx_now_ms() OR (s.owner IS NOT NULL AND s.until <= hx_now_ms())",
	.in = "",
	.out = "i",
};

static const struct db_stmt stmt_moment = {
	.name = "sim_run_moment",
	.sql = "SELECT min(m) FROM (SELECT due_at AS m FROM run UNION ALL SELECT due_at FROM job"
	       " UNION ALL SELECT until FROM subject) WHERE m > hx_now_ms()",
	.in = "",
	.out = "i",
};

/* All that decides the future. Ids of jobs are fresh numbers, and other in every schedule. */
static const struct db_stmt stmt_hash_run = {
	.name = "sim_run_hash",
	.sql = "SELECT at_step, attempt, redo, step_status, step_started_at, awaits, job IS NULL, undo, wait_until, due_at,"
	       " completed_at IS NULL, error IS NULL FROM run",
	.in = "",
	.out = "iiititiiiiii",
};

static const struct db_stmt stmt_hash_steps = {
	.name = "sim_run_hash_steps",
	.sql = "SELECT position, status, attempt, output, completed_at, undone_at IS NULL FROM run_step ORDER BY position",
	.in = "",
	.out = "ititii",
};

static const struct db_stmt stmt_hash_events = {
	.name = "sim_run_hash_events",
	.sql = "SELECT id, data, at, taken_by FROM run_event ORDER BY id",
	.in = "",
	.out = "ttii",
};

static const struct db_stmt stmt_hash_jobs = {
	.name = "sim_run_hash_jobs",
	.sql = "SELECT s.status, s.version, s.fence, s.owner, s.until, s.doubt, j.attempt, j.due_at, j.output, j.error"
	       " FROM job j JOIN subject s ON s.id = j.subject ORDER BY j.subject",
	.in = "",
	.out = "tiitiiiitt",
};

#define TERMINAL "('COMPLETED', 'FAILED', 'CANCELLED')"

/* One row: what is wrong, as numbers of findings. ?1: the number of steps; ?2: those that are to be undone, as a mask;
 * ?3: those that wait for an event or a decision. */
static const struct db_stmt stmt_check = {
	.name = "sim_run_check",
	.sql = "SELECT"
	       /* R5: what has ended is left by nobody, but FAILED by retry and cancel */
	       " (SELECT count(*) FROM history WHERE subject = 1 AND (from_status IN ('COMPLETED', 'CANCELLED')"
	       "   OR (from_status = 'FAILED' AND to_status NOT IN ('PENDING', 'CANCELLING', 'CANCELLED')))),"
	       /* R5: CANCELLED after the last compensation, and not in doubt */
	       " (SELECT count(*) FROM subject s WHERE s.id = 1 AND s.status = 'CANCELLED' AND (s.doubt = 1 OR EXISTS"
	       "   (SELECT 1 FROM run_step t WHERE t.status = 'COMPLETED' AND (?2 >> t.position) & 1 AND t.undone_at IS NULL))),"
	       /* R5: COMPLETED with the last step */
	       " (SELECT count(*) FROM subject s WHERE s.id = 1 AND s.status = 'COMPLETED'"
	       "   AND (SELECT count(*) FROM run_step) <> ?1),"
	       /* R6 */
	       " (SELECT count(*) FROM run r JOIN subject s ON s.id = r.subject WHERE r.subject = 1"
	       "   AND s.status NOT IN " TERMINAL " AND s.status <> 'PAUSED' AND s.owner IS NULL AND r.due_at IS NULL"
	       "   AND r.awaits IS NOT 'person'"
	       "   AND NOT (s.status = 'WAITING' AND (r.awaits LIKE 'event %' OR r.awaits LIKE 'approval %')"
	       "     AND NOT EXISTS (SELECT 1 FROM run_event e WHERE e.name = r.awaits AND e.taken_by IS NULL))"
	       "   AND NOT (r.awaits IS 'job' AND EXISTS (SELECT 1 FROM subject j WHERE j.id = r.job"
	       "     AND j.status NOT IN ('COMPLETED', 'PARKED')))),"
	       /* R7, and nothing is due or owned behind the end */
	       " (SELECT count(*) FROM run r JOIN subject s ON s.id = r.subject WHERE r.subject = 1 AND"
	       "   ((r.due_at IS NOT NULL AND s.owner IS NOT NULL AND s.until > hx_now_ms())"
	       "    OR (s.status IN " TERMINAL " AND (r.due_at IS NOT NULL OR s.owner IS NOT NULL)))),"
	       /* compensated only where that was asked for */
	       " (SELECT count(*) FROM run_step t, subject s WHERE s.id = 1 AND t.undone_at IS NOT NULL"
	       "   AND s.status NOT IN ('CANCELLING', 'CANCELLED')),"
	       /* an event is taken once, and only by a step that has ended */
	       " (SELECT count(*) FROM run_event e WHERE e.taken_by IS NOT NULL AND e.name LIKE 'event %' AND NOT EXISTS"
	       "   (SELECT 1 FROM run_step t WHERE t.position = e.taken_by)),"
	       /* and a step that waited for one has taken it */
	       " (SELECT count(*) FROM run_step t WHERE (?3 >> t.position) & 1 AND t.status = 'COMPLETED' AND"
	       "   (SELECT count(*) FROM run_event e WHERE e.taken_by = t.position) <> 1),"
	       /* where it stands, for the checks of effects */
	       " (SELECT owner IS NOT NULL FROM subject WHERE id = 1), (SELECT doubt FROM subject WHERE id = 1),"
	       " (SELECT job IS NOT NULL FROM run)",
	.in = "iii",
	.out = "iiiiiiiiiii",
};

static const struct db_stmt stmt_steps = {
	.name = "sim_run_steps",
	.sql = "SELECT position, status, output, undone_at FROM run_step ORDER BY position",
	.in = "",
	.out = "itti",
};

static const struct db_stmt stmt_tell = {
	.name = "sim_run_tell",
	.sql = "SELECT ', step ' || at_step || ' attempt ' || attempt || ' redo ' || redo || coalesce(' ' || step_status, '') ||"
	       " coalesce(' awaits ' || awaits, '') || coalesce(' undo ' || undo, '') ||"
	       " coalesce(' due in ' || (due_at - hx_now_ms()), '') ||"
	       " CASE (SELECT doubt FROM subject WHERE id = 1) WHEN 1 THEN ' doubt' ELSE '' END ||"
	       " CASE WHEN (SELECT owner FROM subject WHERE id = 1) IS NULL THEN '' ELSE ' owned' END ||"
	       " coalesce('; rows ' || (SELECT group_concat(position || ' ' || status ||"
	       "  CASE WHEN undone_at IS NULL THEN '' ELSE ' undone' END, ', ') FROM run_step), '') ||"
	       " coalesce('; events ' || (SELECT group_concat(id || coalesce(' taken by ' || taken_by, ''), ', ') FROM run_event), '') ||"
	       " coalesce('; jobs ' || (SELECT group_concat(s.status || ' fence ' || s.fence, ', ') FROM job j JOIN subject s"
	       "  ON s.id = j.subject), '') FROM run",
	.in = "",
	.out = "t",
};

/* clang-format on */

static inline struct unit_result ask_store(struct sim *sim, const struct db_stmt *stmt)
{
	struct unit unit;

	unit_init(&unit, 0);
	unit_add(&unit, UNIT_ANY, stmt, 0, NULL);
	return sim_run_unit(sim, &unit);
}

static inline uint64_t hash_all(struct sim *sim, uint64_t hash)
{
	hash = sim_hash_answer(sim, &stmt_hash_run, hash);
	hash = sim_hash_answer(sim, &stmt_hash_steps, hash);
	hash = sim_hash_answer(sim, &stmt_hash_events, hash);
	return sim_hash_answer(sim, &stmt_hash_jobs, hash);
}

static inline int64_t next_moment(struct sim *sim)
{
	struct unit_result result = ask_store(sim, &stmt_moment);
	const struct db_value *cell = db_cell(&result.rows[0], 0, 0);

	return cell->type == DB_NULL ? INT64_MAX : cell->i;
}

static bool rows_changed; /* since the last check: as far as nothing has, it need not look again */

static struct {
	uint64_t tables;
	struct sim_row row; /* of the first subject that the unit names */
} before;

static inline void before_unit(struct sim *sim, const struct unit *unit)
{
	before.tables = hash_all(sim, 1);
	if (unit->subjects_n && !sim_read_row(sim, unit->subjects[0], &before.row))
		before.row = (struct sim_row){0};
}

static inline void after_unit(struct sim *sim, const struct unit *unit, enum unit_verdict verdict)
{
	rows_changed |= verdict == UNIT_WON;

	bool beat = unit->lines_n && strcmp(unit->lines[0].stmt->name, "job_heartbeat") == 0;

	if (beat && verdict == UNIT_WON && unit->lines[0].params[1].i != before.row.fence)
		sim_violate(sim, "W2: a stale heartbeat has kept the claim of another");
	if (verdict != UNIT_WON && hash_all(sim, 1) != before.tables)
		sim_violate(sim, "I4: a unit that was %s left something of a run behind", unit_verdict_name(verdict));
}

static inline void tell(struct sim *sim, struct strbuf *words)
{
	struct unit_result result = ask_store(sim, &stmt_tell);

	strbuf_add_slice(words, db_cell(&result.rows[0], 0, 0)->s);
}

static const struct sim_rows rows_of_runs = {next_moment, hash_all, before_unit, after_unit, tell};

/* ---- what must hold ---- */

/* What the check has seen of the rows, when a unit last changed some. Rows of steps never change but for the marker, and never
 * go. */
struct notes {
	uint64_t rows[STEPS_MAX];
	bool undone[STEPS_MAX];
	unsigned present; /* rows of steps, as a mask */
	bool owned, doubt, job;
};

static const struct run_step *step_at(size_t position)
{
	return &fixture.machine->definition->steps[position];
}

static inline size_t steps_n(void)
{
	return fixture.machine->definition->steps_n;
}

static inline bool is_task(size_t position)
{
	return step_at(position)->type == RUN_TASK;
}

static inline int64_t undo_mask(void)
{
	int64_t mask = 0;

	for (size_t i = 0; i < steps_n(); i++)
		mask |= step_at(i)->compensate ? INT64_C(1) << i : 0;
	return mask;
}

static inline int64_t event_mask(void)
{
	int64_t mask = 0;

	for (size_t i = 0; i < steps_n(); i++)
		mask |= step_at(i)->type == RUN_EXTERNAL_EVENT || step_at(i)->type == RUN_APPROVAL ? INT64_C(1) << i
												   : 0;
	return mask;
}

/* Was the effect of this step there (redo < 0: that of its compensation)? When? */
static inline bool did(const struct sim *sim, size_t position, int redo, unsigned *ret_at)
{
	return world_did(sim, fixture.keys[position][1 + redo], ret_at);
}

static inline bool did_at_all(const struct sim *sim, size_t position, unsigned *ret_at)
{
	for (int redo = REDO_MAX; redo >= 0; redo--)
		if (did(sim, position, redo, ret_at))
			return true;
	return false;
}

/* R2. */
static inline void check_steps(struct sim *sim)
{
	struct notes *notes = (struct notes *)sim->state.notes;
	struct unit_result result = ask_store(sim, &stmt_steps);
	const struct db_rows *rows = &result.rows[0];
	unsigned present = 0;

	_Static_assert(sizeof *notes <= SIM_NOTES_BYTES, "the notes fit");
	for (size_t i = 0; i < rows->n; i++) {
		size_t position = (size_t)db_cell(rows, i, 0)->i;
		struct slice status = db_cell(rows, i, 1)->s, output = db_cell(rows, i, 2)->s;
		uint64_t hash = hash_bytes(hash_bytes(1, status.p, status.n), output.p, output.n);
		bool undone = db_cell(rows, i, 3)->type != DB_NULL;

		present |= 1u << position;
		if (notes->rows[position] && notes->rows[position] != hash)
			sim_violate(sim, "R2: the row of step %zu has changed", position);
		if (notes->undone[position] && !undone)
			sim_violate(sim, "R2: the marker of step %zu is gone", position);
		notes->rows[position] = hash;
		notes->undone[position] = undone;
	}
	for (size_t i = 0; i < steps_n(); i++)
		if (notes->rows[i] && !(present & 1u << i))
			sim_violate(sim, "R2: the row of step %zu is gone", i);
	notes->present = present;
}

/* What is under way: R3. */
static inline void check_calls(struct sim *sim)
{
	const struct notes *notes = (const struct notes *)sim->state.notes;
	char id[ID_TEXT_BYTES], key[200];

	id_format("run", RUN, id);
	for (unsigned i = 0; i < sim->scenario->cast_n; i++) {
		const struct sim_actor *actor = &sim->state.actors[i];
		struct act_call call;

		if (actor->state != SIM_ASKING || actor->ask != ASK_ACT)
			continue;
		call = sim_call_of(actor);
		for (size_t p = 0; p < steps_n(); p++) {
			int n = snprintf(key, sizeof key, "%s/%s/", id, step_at(p)->name);
			bool of_step = call.key.n > (size_t)n && memcmp(call.key.p, key, (size_t)n) == 0;
			bool undo = of_step && slice_is(slice_of(call.key.p + n, call.key.n - (size_t)n), "undo");

			if (of_step && !undo && notes->present & 1u << p)
				sim_violate(sim, "R3: step %zu is carried out although it has a row", p);
			if (undo && (!(notes->present & 1u << p) || notes->undone[p]))
				sim_violate(sim, "R3: step %zu is undone and was not done, or is undone already", p);
		}
	}
}

/* The order of effects: each after those before it, undone in reverse. */
static inline void check_order(struct sim *sim)
{
	unsigned last_undo = UINT_MAX, at, done_at;

	for (size_t p = 0; p < steps_n(); p++) {
		if (!did(sim, p, /* undo */ -1, &at))
			continue;
		if (!did_at_all(sim, p, &done_at) || done_at > at)
			sim_violate(sim, "step %zu was undone before it was done", p);
		if (at > last_undo)
			sim_violate(sim, "step %zu was undone behind one before it", p);
		last_undo = at;
	}
	for (size_t p = 0; p < steps_n(); p++)
		if (did_at_all(sim, p, &done_at) && last_undo != UINT_MAX && done_at > last_undo)
			sim_violate(sim, "step %zu was done although the run is being undone", p);
}

/* R8: where an effect is there and no row says so, somebody holds the run, or it is in doubt. */
static inline void check_doubt(struct sim *sim)
{
	const struct notes *notes = (const struct notes *)sim->state.notes;
	unsigned at;

	for (size_t p = 0; p < steps_n() && !notes->owned && !notes->doubt && !notes->job; p++) {
		if (is_task(p) && !(notes->present & 1u << p) && did_at_all(sim, p, &at))
			sim_violate(sim, "R8: the effect of step %zu is there, and the run does not doubt it", p);
		if (is_task(p) && !notes->undone[p] && did(sim, p, /* undo */ -1, &at))
			sim_violate(sim, "R8: step %zu is undone, and the run does not doubt it", p);
	}
}

static inline void check_rows(struct sim *sim)
{
	static const char *const words[] = {
		"R5: a run that had ended went on",
		"R5: CANCELLED before everything was undone, or in doubt",
		"R5: COMPLETED without all steps",
		"R6: nothing will ever move the run",
		"R7: the run is due while somebody holds it, or although it has ended",
		"a step is undone in a run that nobody cancelled",
		"an event is taken by a step that has not ended",
		"a step that waited for an event has taken none, or several",
	};
	enum { FOUND = sizeof words / sizeof *words };
	struct notes *notes = (struct notes *)sim->state.notes;
	struct unit unit;

	unit_init(&unit, 0);
	UNIT_ADD(&unit, UNIT_ANY, &stmt_check, db_int((int64_t)steps_n()), db_int(undo_mask()), db_int(event_mask()));

	struct unit_result result = sim_run_unit(sim, &unit);

	for (size_t i = 0; i < FOUND; i++)
		if (db_cell(&result.rows[0], 0, i)->i)
			sim_violate(sim, "%s", words[i]);
	notes->owned = db_cell(&result.rows[0], 0, FOUND)->i;
	notes->doubt = db_cell(&result.rows[0], 0, FOUND + 1)->i;
	notes->job = db_cell(&result.rows[0], 0, FOUND + 2)->i;
}

static inline void check(struct sim *sim)
{
	if (rows_changed) {
		rows_changed = false;
		check_steps(sim);
		check_rows(sim);
	}
	if (sim->scenario->world == WORLD_UNWATCHED)
		return;
	check_calls(sim);
	check_order(sim);
	check_doubt(sim);
	if (world_repeated(sim))
		sim_violate(sim, "an effect happened twice");
}

/* ---- workers: what an outside program does, as a task ---- */

static const struct db_stmt stmt_job_due = {
	.name = "sim_job_due",
	.sql = "SELECT subject, 0 FROM job WHERE due_at <= hx_now_ms()",
	.in = "",
	.out = "ii",
};

static const struct db_stmt stmt_job_past = {
	.name = "sim_job_past",
	.sql = "SELECT j.subject, s.fence FROM job j JOIN subject s ON s.id = j.subject"
	       " WHERE s.status = 'RUNNING' AND s.until <= hx_now_ms()",
	.in = "",
	.out = "ii",
};

static inline bool job_is_due(struct sim *sim)
{
	return ask_store(sim, &stmt_job_due).rows[0].n > 0;
}

static inline bool job_is_past(struct sim *sim)
{
	return ask_store(sim, &stmt_job_past).rows[0].n > 0;
}

static const struct job_claim_request workers[] = {
	{.workspace = {"default", 7},
	 .owner = {"w1", 2},
	 .queues_n = 1,
	 .queues = {{"stock", 5}},
	 .max = 1,
	 .lease_ms = 60000},
	{.workspace = {"default", 7},
	 .owner = {"w2", 2},
	 .queues_n = 1,
	 .queues = {{"stock", 5}},
	 .max = 1,
	 .lease_ms = 60000},
};

/*
 * CLAIMS ─▶ BEATS ─▶ WORKS ─┬ ok, failed ─▶ SETTLES ─▶ ENDED
 *    │        └ stale ─┐    └ unknown ─▶ ENDED: nobody hears of it again
 *    └ none ───────────┴─▶ ENDED
 */
struct worker {
	struct task task;
	enum { CLAIMS, BEATS, WORKS, SETTLES, ENDED } at;
	const struct job_claim_request *rq;
	struct arena *texts;
	int64_t job; /* what it is going to get: the simulator has to know what a claim locks */
	int64_t fence, attempt;
	struct slice key;
	enum act_outcome outcome;
	union {
		struct task inner;
		struct job_claim claim;
		struct job_settle settle;
	};
};

static inline void worker_settle(struct worker *w, enum job_settle_kind kind, const struct answer *answer)
{
	struct job_settle_request *rq = arena_zalloc(w->texts, sizeof *rq);

	*rq = (struct job_settle_request){
		.kind = kind,
		.workspace = w->rq->workspace,
		.subject = w->job,
		.fence = w->fence,
		.owner = w->rq->owner,
		.lease_ms = w->rq->lease_ms,
		.output = slice_str(kind == JOB_COMPLETE ? "1" : "no"),
		.retryable = true,
	};
	job_settle_init(&w->settle, rq, w->texts);
	w->inner.kind->take(&w->inner, &(struct answer){.kind = ANSWER_START, .now = answer->now});
	w->at = kind == JOB_HEARTBEAT ? BEATS : SETTLES;
}

static inline void worker_claimed(struct worker *w, const struct answer *answer)
{
	if (w->claim.n == 0) {
		w->at = ENDED;
		return;
	}
	w->job = w->claim.jobs[0].subject;
	w->fence = w->claim.jobs[0].fence;
	w->attempt = w->claim.jobs[0].attempt;
	w->key = w->claim.jobs[0].key;
	worker_settle(w, JOB_HEARTBEAT, answer);
}

static inline void worker_take(struct task *task, const struct answer *answer)
{
	struct worker *w = (struct worker *)task;
	struct unit memory;
	struct ask ask = {.unit = &memory};

	if (w->at == WORKS) {
		w->outcome = answer->outcome;
		if (answer->outcome == ACT_OK || answer->outcome == ACT_FAILED)
			worker_settle(w, answer->outcome == ACT_OK ? JOB_COMPLETE : JOB_FAIL, answer);
		else
			w->at = ENDED;
		return;
	}
	w->inner.kind->take(&w->inner, answer);
	w->inner.kind->ask(&w->inner, &ask);
	if (ask.kind != ASK_DONE)
		return;
	if (w->at == CLAIMS)
		worker_claimed(w, answer);
	else
		w->at = w->at == BEATS && ask.code == HX_OK ? WORKS : ENDED;
}

static inline void worker_ask(const struct task *task, struct ask *ask)
{
	static const struct action work = {.name = "work"};
	const struct worker *w = (const struct worker *)task;

	if (w->at == ENDED) {
		ask->kind = ASK_DONE;
		ask->code = HX_OK;
	} else if (w->at == WORKS) {
		ask->kind = ASK_ACT;
		ask->act = (struct act_call){.action = &work, .key = w->key, .attempt = w->attempt};
	} else {
		w->inner.kind->ask(&w->inner, ask);
		if (w->at == CLAIMS) { /* and what the run does about its job */
			unit_touch(ask->unit, w->job);
			unit_touch(ask->unit, RUN);
		}
	}
}

static const char *worker_where(const struct task *task)
{
	static const char *const names[] = {"claiming", "sending a heartbeat", "working", "settling", "done"};

	return names[((const struct worker *)task)->at];
}

/* Without the ids of jobs: they are other numbers in every schedule. */
static inline uint64_t worker_fingerprint(const struct task *task, uint64_t hash)
{
	const struct worker *w = (const struct worker *)task;

	hash = hash_mix(hash, w->at);
	hash = hash_mix(hash, (uint64_t)w->fence);
	hash = hash_mix(hash, w->outcome);
	hash = hash_bytes(hash, w->key.p, w->key.n);
	if (w->at == CLAIMS)
		return hash_mix(hash, w->claim.at);
	if (w->at == WORKS || w->at == ENDED)
		return hash;
	return hash_mix(hash_mix(hash, w->settle.at), w->settle.code);
}

static const struct task_kind worker_kind = {
	.name = "worker",
	.size = sizeof(struct worker),
	.take = worker_take,
	.ask = worker_ask,
	.where = worker_where,
	.fingerprint = worker_fingerprint,
};

static inline void init_worker(union sim_task *task, const void *plan, struct arena *texts)
{
	struct worker *w = (struct worker *)task;
	struct unit_result due = ask_store(fixture.sim, &stmt_job_due);

	_Static_assert(sizeof *w <= SIM_TASK_BYTES, "a worker fits");
	memset(w, 0, sizeof *w);
	w->rq = plan;
	w->texts = texts;
	w->job = due.rows[0].n ? db_cell(&due.rows[0], 0, 0)->i : -1;
	job_claim_init(&w->claim, w->rq, texts);
	task_init(&w->task, &worker_kind, /* topic= */ 0);
}

static inline void init_lapser(union sim_task *task, const void *plan, struct arena *texts)
{
	struct job_settle_request *rq = arena_zalloc(texts, sizeof *rq);
	struct unit_result past = ask_store(fixture.sim, &stmt_job_past);

	(void)plan;
	*rq = (struct job_settle_request){.kind = JOB_LAPSE, .subject = -1};
	if (past.rows[0].n) {
		rq->subject = db_cell(&past.rows[0], 0, 0)->i;
		rq->fence = db_cell(&past.rows[0], 0, 1)->i;
	}
	job_settle_init((struct job_settle *)task, rq, texts);
}

/* ---- nothing gets stuck ---- */

static inline bool is_due(struct sim *sim)
{
	return ask_store(sim, &stmt_due).rows[0].n > 0;
}

/* Carries a task to its end in a world where all goes well. */
static inline void go_well(struct sim *sim, struct task *task, int64_t *id)
{
	struct answer answer = {.kind = ANSWER_START};
	struct unit unit;
	struct unit_result result;

	for (int n = 0; n < SETTLE_ROUNDS_MAX; n++) {
		struct ask ask = {.unit = &unit};

		answer.now = sim->state.now;
		answer.mono.ns = sim->state.now.ms * 1000000;
		answer.id = ++*id;
		for (int i = 0; i < ANSWER_IDS_MAX; i++)
			answer.more_ids[i] = ++*id;
		answer.node = "well";
		(void)task_take(task, task->turn, &answer); /* it is the turn */
		task->kind->ask(task, &ask);
		if (ask.kind == ASK_DONE)
			return;
		if (ask.kind == ASK_COMMIT) {
			result = sim_run_unit(sim, &unit);
			answer = (struct answer){.kind = ANSWER_COMMIT, .result = &result};
		} else if (ask.kind == ASK_ACT) {
			answer = world_end(sim, &ask.act, SIM_ACT_OK);
			answer.lease_since = ask.act.lease.since;
		} else {
			sim_set_now(sim, ask.until);
			answer = (struct answer){.kind = ANSWER_WOKE};
		}
	}
	sim_violate(sim, "a task does not end although all goes well");
}

/* Lets time pass, and whoever comes by takes the run up, until nothing is due any more. */
static inline void settle(struct sim *sim)
{
	int64_t id = INT64_C(1) << 40;

	for (int n = 0; n < SETTLE_ROUNDS_MAX; n++) {
		union sim_task task;
		int64_t moment;

		if (is_due(sim))
			run_drive_init((struct run_drive *)&task, RUN, &policy, &sim->texts);
		else if (job_is_due(sim))
			init_worker(&task, &workers[0], &sim->texts);
		else if (job_is_past(sim))
			init_lapser(&task, NULL, &sim->texts);
		else
			task.task.kind = NULL;
		if (task.task.kind) {
			go_well(sim, &task.task, &id);
			continue;
		}
		moment = next_moment(sim);
		if (moment == INT64_MAX)
			return;
		sim_set_now(sim, (struct wall_time){moment});
	}
	sim_violate(sim, "R6: the run does not come to rest although all goes well");
}

static const struct db_stmt stmt_rest = {
	.name = "sim_run_rest",
	.sql = "SELECT s.status, r.awaits FROM run r JOIN subject s ON s.id = r.subject",
	.in = "",
	.out = "tt",
};

static inline void check_settled(struct sim *sim)
{
	struct unit_result result = ask_store(sim, &stmt_rest);
	struct slice status = db_cell(&result.rows[0], 0, 0)->s;
	const struct db_value *awaits = db_cell(&result.rows[0], 0, 1);
	bool held = awaits->type != DB_NULL && slice_is(awaits->s, RUN_AWAITS_PERSON);
	bool waits = awaits->type != DB_NULL && fixture.may_wait && slice_is(status, RUN_WAITING);
	char words[40];
	unsigned at;

	snprintf(words, sizeof words, "%.*s", SLICE_ARGS(status));
	if (!run_is_terminal(words) && !held && !waits && !(fixture.may_pause && slice_is(status, RUN_PAUSED)))
		sim_violate(sim, "R6: when all goes well, the run stays %s for ever", words);
	for (size_t p = 0; p < steps_n() && sim->scenario->world != WORLD_UNWATCHED; p++) {
		if (slice_is(status, RUN_COMPLETED) && is_task(p) && !did_at_all(sim, p, &at))
			sim_violate(sim, "the run is COMPLETED without the effect of step %zu", p);
		if (slice_is(status, RUN_CANCELLED) && step_at(p)->compensate && did_at_all(sim, p, &at) &&
		    !did(sim, p, /* undo */ -1, &at))
			sim_violate(sim, "the run is CANCELLED, and step %zu was not undone", p);
	}
}

static inline void quiet(struct sim *sim)
{
	struct sim_state *saved = malloc(sizeof *saved);

	assert_non_null(saved);
	sim_save(sim, saved);
	sim_script(sim, "SAVEPOINT quiet_run");
	settle(sim);
	rows_changed = true;
	check(sim);
	check_settled(sim);
	sim_script(sim, "ROLLBACK TO quiet_run; RELEASE quiet_run");
	sim_restore(sim, saved);
	free(saved);
}

/* ---- the cast ---- */

static inline void init_driver(union sim_task *task, const void *plan, struct arena *texts)
{
	(void)plan;
	run_drive_init((struct run_drive *)task, RUN, &policy, texts);
}

static inline void init_verb(union sim_task *task, const void *plan, struct arena *texts)
{
	run_verb_init((struct run_verb *)task, plan, texts);
}

#define VERB(what, ...)                                                                                                \
	(const struct run_verb_request)                                                                                \
	{                                                                                                              \
		.kind = what, .workspace = {"default", 7}, .subject = RUN, .policy = &policy, __VA_ARGS__              \
	}

static const struct run_verb_request cancel = VERB(RUN_CANCEL);
static const struct run_verb_request pause_it = VERB(RUN_PAUSE);
static const struct run_verb_request resume_it = VERB(RUN_RESUME);

#define DRIVERS                                                                                                        \
	{"driver-1", 0, true, init_driver, NULL, is_due},                                                              \
	{                                                                                                              \
		"driver-2", 1, true, init_driver, NULL, is_due                                                         \
	}

static inline bool is_probe(const void *action)
{
	return strcmp(((const struct action *)action)->name, "ask") == 0;
}

static inline void name_keys(size_t position)
{
	char id[ID_TEXT_BYTES], key[200];

	id_format("run", RUN, id);
	for (int redo = -1; redo <= REDO_MAX; redo++) {
		if (redo < 0)
			snprintf(key, sizeof key, "%s/%s/undo", id, step_at(position)->name);
		else
			snprintf(key, sizeof key, "%s/%s/%d", id, step_at(position)->name, redo);
		fixture.keys[position][1 + redo] = world_key(slice_str(key));
	}
}

static inline void setup(struct sim *sim)
{
	fixture.sim = sim;
	for (size_t p = 0; p < steps_n(); p++)
		name_keys(p);
	(void)ask_store(sim, &stmt_setup);
}

/* What all scenarios have in common. */
static inline void complete(struct sim_scenario *scenario)
{
	scenario->subjects_n = 1;
	scenario->kind = run_kind();
	scenario->initial = RUN_PENDING;
	scenario->driven = true;
	scenario->setup = setup;
	scenario->check = check;
	scenario->quiet = quiet;
	scenario->is_probe = is_probe;
	scenario->rows = &rows_of_runs;
}

static inline void fail_with(struct strbuf *words)
{
	fprintf(stderr, "%s", words->p);
	strbuf_release(words);
	fail();
}

static inline void explore(struct sim_scenario scenario)
{
	struct explore_report r;
	struct strbuf words;

	complete(&scenario);
	strbuf_init(&words, WORDS_MAX);
	if (!explore_all(&scenario, STATES_MAX, &r, &words))
		fail_with(&words);
	printf("# %s; at most %u lapses, %u crashes, %u lost answers, %u failed commits: "
	       "%llu states, %llu edges, %llu crash points, at least %.3g schedules of up to %u steps, all invariants hold\n",
	       scenario.name, scenario.bounds.lapses, scenario.bounds.crashes, scenario.bounds.lost_answers,
	       scenario.bounds.failures, (unsigned long long)r.states, (unsigned long long)r.edges,
	       (unsigned long long)r.crash_points, r.schedules, r.longest);
	assert_true(r.states > 100 && (r.crash_points > 100 || !scenario.bounds.crashes) && r.quiet > 0);
	strbuf_release(&words);
}

static inline void explore_at_random(struct sim_scenario scenario)
{
	const char *given = getenv("HAPAX_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 10) : 20261115;
	unsigned walks = getenv("HAPAX_SOAK") ? 100000 : 1000;
	struct explore_report r;
	struct strbuf words;

	complete(&scenario);
	strbuf_init(&words, WORDS_MAX);
	if (!explore_random(&scenario, seed, walks, /* steps= */ 390, &r, /* trace= */ NULL, &words))
		fail_with(&words);
	printf("# random walks, seed %llu, %s: %u walks, %llu edges, %llu crashes, all invariants hold\n",
	       (unsigned long long)seed, scenario.name, walks, (unsigned long long)r.edges,
	       (unsigned long long)r.crash_points);
	assert_true(r.crash_points > walks / 2);
	strbuf_release(&words);
}

/* ---- definitions ---- */

#define ONCE ",\"retry\":{\"max_attempts\":1}"
#define TWICE ",\"retry\":{\"max_attempts\":2,\"initial\":\"1s\",\"jitter\":false}"
#define UNDO ",\"compensate\":\"undo\""
#define TASK(name, more) "{\"name\":\"" name "\",\"type\":\"task\",\"action\":\"do\"" more "}"

#define EVENT "{\"name\":\"paid\",\"type\":\"external_event\",\"event\":\"payment\""

#endif
