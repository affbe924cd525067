/*
 * Runs, explored: the driver of two nodes (each takes the run up whenever it is due, or its holder's time is over) and the
 * verbs of callers, with a crash anywhere, leases that lapse, answers that are lost and commits that fail, in worlds where
 * effects are counted.
 *
 *   what                        world            what must hold besides the invariants of the rows
 *   two steps, retries          keyed service    one effect for each step, under one key, whoever carried it out
 *   hold, probe                 plain service    at most one call had an effect: what is not known is held, or found out
 *   events, decisions, waits    keyed            before, during, after and twice; nothing is slept over
 *   cancel, pause, resume       keyed            what was done is recorded; undone once, in reverse, before CANCELLED
 *   retry, resolve by a person  keyed, plain     a new key only after a definite answer
 *   workers                     keyed            a job is claimed by one; a stale worker changes nothing; the run hears of its end
 *
 * On every edge, R1 to R8 of flow/run.h as far as rows show them. And from every state in which nothing goes on but time: if
 * from there on all went well, the run would come to its end, or to where only a person or an event can move it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/id.h"
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
	const struct sim *sim; /* the world that is being walked through, for the person who knows the truth */
} fixture;

static const struct run_machine *machine_of(const void *context, struct slice workflow, int64_t version)
{
	(void)context, (void)workflow, (void)version;
	return fixture.machine;
}

static const struct run_policy policy = {.lease_ms = 60000, .machine_of = machine_of};

static void parse(const char *actions, const char *steps)
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

static struct unit_result ask_store(struct sim *sim, const struct db_stmt *stmt)
{
	struct unit unit;

	unit_init(&unit, 0);
	unit_add(&unit, UNIT_ANY, stmt, 0, NULL);
	return sim_run_unit(sim, &unit);
}

static uint64_t hash_table(struct sim *sim, const struct db_stmt *stmt, uint64_t hash)
{
	struct unit_result result = ask_store(sim, stmt);
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

static uint64_t hash_all(struct sim *sim, uint64_t hash)
{
	hash = hash_table(sim, &stmt_hash_run, hash);
	hash = hash_table(sim, &stmt_hash_steps, hash);
	hash = hash_table(sim, &stmt_hash_events, hash);
	return hash_table(sim, &stmt_hash_jobs, hash);
}

static int64_t next_moment(struct sim *sim)
{
	struct unit_result result = ask_store(sim, &stmt_moment);
	const struct db_value *cell = db_cell(&result.rows[0], 0, 0);

	return cell->type == DB_NULL ? INT64_MAX : cell->i;
}

static uint64_t before;

static void before_unit(struct sim *sim, const struct unit *unit)
{
	(void)unit;
	before = hash_all(sim, 1);
}

static void after_unit(struct sim *sim, const struct unit *unit, enum unit_verdict verdict)
{
	(void)unit;
	if (verdict != UNIT_WON && hash_all(sim, 1) != before)
		sim_violate(sim, "I4: a unit that was %s left something of a run behind", unit_verdict_name(verdict));
}

static void tell(struct sim *sim, struct strbuf *words)
{
	struct unit_result result = ask_store(sim, &stmt_tell);

	strbuf_add_slice(words, db_cell(&result.rows[0], 0, 0)->s);
}

static const struct sim_rows rows_of_runs = {next_moment, hash_all, before_unit, after_unit, tell};

/* ---- what must hold ---- */

/* What the check has seen of the rows of steps: they never change but for the marker, and never go. */
struct notes {
	uint64_t rows[STEPS_MAX];
	bool undone[STEPS_MAX];
};

static const struct run_step *step_at(size_t position)
{
	return &fixture.machine->definition->steps[position];
}

static size_t steps_n(void)
{
	return fixture.machine->definition->steps_n;
}

static bool is_task(size_t position)
{
	return step_at(position)->type == RUN_TASK;
}

static int64_t undo_mask(void)
{
	int64_t mask = 0;

	for (size_t i = 0; i < steps_n(); i++)
		mask |= step_at(i)->compensate ? INT64_C(1) << i : 0;
	return mask;
}

static int64_t event_mask(void)
{
	int64_t mask = 0;

	for (size_t i = 0; i < steps_n(); i++)
		mask |= step_at(i)->type == RUN_EXTERNAL_EVENT || step_at(i)->type == RUN_APPROVAL ? INT64_C(1) << i
												   : 0;
	return mask;
}

/* Was the effect of this step there (redo < 0: that of its compensation)? When? */
static bool did(const struct sim *sim, size_t position, int redo, unsigned *ret_at)
{
	char id[ID_TEXT_BYTES], key[200];

	id_format("run", RUN, id);
	if (redo < 0)
		snprintf(key, sizeof key, "%s/%s/undo", id, step_at(position)->name);
	else
		snprintf(key, sizeof key, "%s/%s/%d", id, step_at(position)->name, redo);
	return world_did(sim, slice_str(key), ret_at);
}

static bool did_at_all(const struct sim *sim, size_t position, unsigned *ret_at)
{
	for (int redo = REDO_MAX; redo >= 0; redo--)
		if (did(sim, position, redo, ret_at))
			return true;
	return false;
}

/* R2. Returns the rows as a mask. */
static unsigned check_steps(struct sim *sim)
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
	return present;
}

/* What is under way: R3. */
static void check_calls(struct sim *sim, unsigned present)
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

			if (of_step && !undo && present & 1u << p)
				sim_violate(sim, "R3: step %zu is carried out although it has a row", p);
			if (undo && (!(present & 1u << p) || notes->undone[p]))
				sim_violate(sim, "R3: step %zu is undone and was not done, or is undone already", p);
		}
	}
}

/* The order of effects: each after those before it, undone in reverse. */
static void check_order(struct sim *sim)
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
static void check_doubt(struct sim *sim, unsigned present, const struct db_rows *found)
{
	const struct notes *notes = (const struct notes *)sim->state.notes;
	bool owned = db_cell(found, 0, 8)->i, doubt = db_cell(found, 0, 9)->i, job = db_cell(found, 0, 10)->i;
	unsigned at;

	for (size_t p = 0; p < steps_n() && !owned && !doubt && !job; p++) {
		if (is_task(p) && !(present & 1u << p) && did_at_all(sim, p, &at))
			sim_violate(sim, "R8: the effect of step %zu is there, and the run does not doubt it", p);
		if (is_task(p) && !notes->undone[p] && did(sim, p, /* undo */ -1, &at))
			sim_violate(sim, "R8: step %zu is undone, and the run does not doubt it", p);
	}
}

static void check(struct sim *sim)
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
	struct unit unit;
	unsigned present = check_steps(sim);

	unit_init(&unit, 0);
	UNIT_ADD(&unit, UNIT_ANY, &stmt_check, db_int((int64_t)steps_n()), db_int(undo_mask()), db_int(event_mask()));

	struct unit_result result = sim_run_unit(sim, &unit);

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (db_cell(&result.rows[0], 0, i)->i)
			sim_violate(sim, "%s", words[i]);
	if (sim->scenario->world == WORLD_UNWATCHED)
		return;
	check_calls(sim, present);
	check_order(sim);
	check_doubt(sim, present, &result.rows[0]);
	if (world_repeated(sim))
		sim_violate(sim, "an effect happened twice");
}

/* ---- nothing gets stuck ---- */

static bool is_due(struct sim *sim)
{
	return ask_store(sim, &stmt_due).rows[0].n > 0;
}

/* Carries a task to its end in a world where all goes well. */
static void go_well(struct sim *sim, struct task *task, int64_t *id)
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
static void settle(struct sim *sim)
{
	int64_t id = INT64_C(1) << 40;

	for (int n = 0; n < SETTLE_ROUNDS_MAX; n++) {
		int64_t moment;

		if (is_due(sim)) {
			union sim_task task;

			run_drive_init((struct run_drive *)&task, RUN, &policy, &sim->texts);
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

static void check_settled(struct sim *sim)
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

static void quiet(struct sim *sim)
{
	struct sim_state *saved = malloc(sizeof *saved);

	assert_non_null(saved);
	*saved = sim->state;
	sim_script(sim, "SAVEPOINT quiet_run");
	settle(sim);
	check(sim);
	check_settled(sim);
	sim_script(sim, "ROLLBACK TO quiet_run; RELEASE quiet_run");
	sim_restore(sim, saved);
	free(saved);
}

/* ---- the cast ---- */

static void init_driver(union sim_task *task, const void *plan, struct arena *texts)
{
	(void)plan;
	run_drive_init((struct run_drive *)task, RUN, &policy, texts);
}

static void init_verb(union sim_task *task, const void *plan, struct arena *texts)
{
	run_verb_init((struct run_verb *)task, plan, texts);
}

#define VERB(what, ...)                                                                                                \
	(const struct run_verb_request)                                                                                \
	{                                                                                                              \
		.kind = what, .workspace = {"default", 7}, .subject = RUN, .policy = &policy, __VA_ARGS__              \
	}

#define DRIVERS                                                                                                        \
	{"driver-1", 0, true, init_driver, NULL, is_due},                                                              \
	{                                                                                                              \
		"driver-2", 1, true, init_driver, NULL, is_due                                                         \
	}

static bool is_probe(const void *action)
{
	return strcmp(((const struct action *)action)->name, "ask") == 0;
}

static void setup(struct sim *sim)
{
	fixture.sim = sim;
	(void)ask_store(sim, &stmt_setup);
}

static void explore(struct sim_scenario scenario)
{
	struct explore_report r;
	struct strbuf words;

	scenario.subjects_n = 1;
	scenario.kind = run_kind();
	scenario.initial = RUN_PENDING;
	scenario.driven = true;
	scenario.setup = setup;
	scenario.check = check;
	scenario.quiet = quiet;
	scenario.is_probe = is_probe;
	scenario.rows = &rows_of_runs;
	strbuf_init(&words, WORDS_MAX);
	if (!explore_all(&scenario, STATES_MAX, &r, &words)) {
		fprintf(stderr, "%s", words.p);
		strbuf_release(&words);
		fail();
	}
	printf("# %s; at most %u lapses, %u crashes, %u lost answers, %u failed commits: "
	       "%llu states, %llu edges, %llu crash points, at least %.3g schedules of up to %u steps, all invariants hold\n",
	       scenario.name, scenario.bounds.lapses, scenario.bounds.crashes, scenario.bounds.lost_answers,
	       scenario.bounds.failures, (unsigned long long)r.states, (unsigned long long)r.edges,
	       (unsigned long long)r.crash_points, r.schedules, r.longest);
	assert_true(r.states > 100 && (r.crash_points > 100 || !scenario.bounds.crashes) && r.quiet > 0);
	strbuf_release(&words);
}

/* ---- steps ---- */

#define ONCE ",\"retry\":{\"max_attempts\":1}"
#define TWICE ",\"retry\":{\"max_attempts\":2,\"initial\":\"1s\",\"jitter\":false}"
#define UNDO ",\"compensate\":\"undo\""
#define TASK(name, more) "{\"name\":\"" name "\",\"type\":\"task\",\"action\":\"do\"" more "}"

static void exhaustive_two_steps_keyed(void **state)
{
	(void)state;
	parse(ACTION("do", KEYED), TASK("a", ONCE) "," TASK("b", ONCE));
	explore((struct sim_scenario){
		.name = "two steps, two nodes, keyed service",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {DRIVERS},
		.bounds = {.lapses = 2, .crashes = 1, .lost_answers = 1},
		.world = WORLD_KEYED,
	});
}

static void exhaustive_failed_commits(void **state)
{
	(void)state;
	parse(ACTION("do", KEYED), TASK("a", ONCE) "," TASK("b", ONCE));
	explore((struct sim_scenario){
		.name = "two steps, two nodes, commits that fail",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {DRIVERS},
		.bounds = {.lapses = 3, .crashes = 1, .failures = 1},
		.world = WORLD_KEYED,
	});
}

static void exhaustive_hold_plain(void **state)
{
	(void)state;
	parse(ACTION("do", PLAIN), TASK("a", TWICE) "," TASK("b", TWICE));
	explore((struct sim_scenario){
		.name = "two steps, what is not known is held, plain service",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {DRIVERS},
		.bounds = {.lapses = 2, .crashes = 1, .lost_answers = 1},
		.world = WORLD_PLAIN,
	});
}

static void exhaustive_probe_plain(void **state)
{
	(void)state;
	parse(ACTION("do", PLAIN ",\"probe\":\"ask\"") "," ACTION("ask", ",\"effect\":\"idempotent\""),
	      TASK("a", TWICE ",\"on_unknown\":\"probe\""));
	explore((struct sim_scenario){
		.name = "a step, what is not known is probed, plain service",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {DRIVERS},
		.bounds = {.lapses = 3, .crashes = 1, .lost_answers = 1},
		.world = WORLD_PLAIN,
	});
}

/* Attempts that fail, are lost, or are cut off: one key for all of them. */
static void exhaustive_retries_keyed(void **state)
{
	(void)state;
	parse(ACTION("do", KEYED), TASK("a", TWICE));
	explore((struct sim_scenario){
		.name = "a step that is tried twice, keyed service",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {DRIVERS},
		.bounds = {.lapses = 3, .crashes = 1, .lost_answers = 1},
		.world = WORLD_KEYED,
	});
}

/* Paused holders that go on after their time: effects cannot be counted there, the rows must still be right. */
static void exhaustive_paused_holders(void **state)
{
	(void)state;
	parse(ACTION("do", KEYED), TASK("a", ONCE) "," TASK("b", ONCE));
	explore((struct sim_scenario){
		.name = "two steps, holders that are stopped past their lease",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {DRIVERS},
		.bounds = {.lapses = 2, .lost_answers = 1},
		.world = WORLD_UNWATCHED,
	});
}

/* ---- waits, events, decisions ---- */

static void exhaustive_wait(void **state)
{
	(void)state;
	parse(ACTION("do", KEYED), "{\"name\":\"w\",\"type\":\"wait\",\"for\":\"10m\"}," TASK("b", ONCE));
	explore((struct sim_scenario){
		.name = "a wait and a step",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {DRIVERS},
		.bounds = {.lapses = 3, .crashes = 1, .lost_answers = 1, .failures = 1},
		.world = WORLD_KEYED,
	});
}

#define EVENT "{\"name\":\"paid\",\"type\":\"external_event\",\"event\":\"payment\""

/* Two waits for the same event; one is sent twice, with one id, at any moment, and another one beside it. */
static void exhaustive_event(void **state)
{
	static const struct run_verb_request first = VERB(RUN_EVENT, .name = {"payment", 7}, .event_id = {"e1", 2});
	static const struct run_verb_request second = VERB(RUN_EVENT, .name = {"payment", 7}, .event_id = {"e2", 2});

	(void)state;
	parse(ACTION("do", KEYED),
	      EVENT "}," TASK("a", ONCE) ",{\"name\":\"rest\",\"type\":\"external_event\",\"event\":\"payment\"}");
	fixture.may_wait = true;
	explore((struct sim_scenario){
		.name = "two waits for events, of which one comes twice",
		.nodes_n = 2,
		.cast_n = 4,
		.cast = {{"driver", 0, true, init_driver, NULL, is_due},
			 {"sender-1", 1, false, init_verb, &first, NULL},
			 {"sender-1-again", 1, false, init_verb, &first, NULL},
			 {"sender-2", 1, false, init_verb, &second, NULL}},
		.bounds = {.crashes = 1},
		.world = WORLD_KEYED,
	});
}

static void exhaustive_event_lost(void **state)
{
	static const struct run_verb_request event = VERB(RUN_EVENT, .name = {"payment", 7}, .event_id = {"e1", 2});

	(void)state;
	parse(ACTION("do", KEYED), TASK("a", ONCE) "," EVENT "}," TASK("b", ONCE));
	fixture.may_wait = true;
	explore((struct sim_scenario){
		.name = "a step, an event, a step, with answers that are lost and commits that fail",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {{"driver", 0, true, init_driver, NULL, is_due}, {"sender", 1, false, init_verb, &event, NULL}},
		.bounds = {.lapses = 1, .crashes = 1, .lost_answers = 1, .failures = 1},
		.world = WORLD_KEYED,
	});
}

static void exhaustive_event_timeout(void **state)
{
	static const struct run_verb_request event = VERB(RUN_EVENT, .name = {"payment", 7});

	(void)state;
	parse(ACTION("do", KEYED), EVENT ",\"timeout\":\"1h\",\"on_timeout\":\"continue\"}," TASK("b", ONCE));
	explore((struct sim_scenario){
		.name = "an event that comes, or does not come in time",
		.nodes_n = 3,
		.cast_n = 3,
		.cast = {DRIVERS, {"sender", 2, false, init_verb, &event, NULL}},
		.bounds = {.lapses = 2},
		.world = WORLD_KEYED,
	});
}

static void exhaustive_approval(void **state)
{
	static const struct run_verb_request yes = VERB(RUN_APPROVE, .name = {"ok", 2},
							.data = {"{\"decision\":\"approve\"}", 22});
	static const struct run_verb_request no = VERB(RUN_APPROVE, .name = {"ok", 2},
						       .data = {"{\"decision\":\"reject\"}", 21});

	(void)state;
	parse(ACTION("do", KEYED), "{\"name\":\"ok\",\"type\":\"approval\"}," TASK("b", ONCE));
	fixture.may_wait = true;
	explore((struct sim_scenario){
		.name = "an approval that two decide, each in another way",
		.nodes_n = 4,
		.cast_n = 4,
		.cast = {DRIVERS,
			 {"approves", 2, false, init_verb, &yes, NULL},
			 {"rejects", 3, false, init_verb, &no, NULL}},
		.bounds = {.crashes = 1, .lost_answers = 1},
		.world = WORLD_KEYED,
	});
}

/* ---- cancel, pause, resume ---- */

static const struct run_verb_request cancel = VERB(RUN_CANCEL);
static const struct run_verb_request pause_it = VERB(RUN_PAUSE);
static const struct run_verb_request resume_it = VERB(RUN_RESUME);

static void exhaustive_cancel(void **state)
{
	(void)state;
	parse(ACTION("do", KEYED) "," ACTION("undo", KEYED), TASK("a", ONCE UNDO) "," TASK("b", ONCE UNDO));
	explore((struct sim_scenario){
		.name = "two steps, cancelled at any moment and undone, keyed service",
		.nodes_n = 3,
		.cast_n = 3,
		.cast = {DRIVERS, {"canceller", 2, false, init_verb, &cancel, NULL}},
		.bounds = {.lapses = 1, .crashes = 1},
		.world = WORLD_KEYED,
	});
}

static void exhaustive_two_cancel(void **state)
{
	(void)state;
	parse(ACTION("do", KEYED) "," ACTION("undo", KEYED), TASK("a", ONCE UNDO));
	explore((struct sim_scenario){
		.name = "a step, cancelled by two, with answers that are lost",
		.nodes_n = 4,
		.cast_n = 4,
		.cast = {DRIVERS,
			 {"canceller-1", 2, false, init_verb, &cancel, NULL},
			 {"canceller-2", 3, false, init_verb, &cancel, NULL}},
		.bounds = {.lost_answers = 1},
		.world = WORLD_KEYED,
	});
}

static void exhaustive_cancel_plain(void **state)
{
	(void)state;
	parse(ACTION("do", PLAIN) "," ACTION("undo", PLAIN), TASK("a", ONCE UNDO));
	explore((struct sim_scenario){
		.name = "a step, cancelled and undone, what is not known is held, plain service",
		.nodes_n = 3,
		.cast_n = 3,
		.cast = {DRIVERS, {"canceller", 2, false, init_verb, &cancel, NULL}},
		.bounds = {.lapses = 2, .crashes = 1, .lost_answers = 1},
		.world = WORLD_PLAIN,
	});
}

static void exhaustive_pause(void **state)
{
	(void)state;
	parse(ACTION("do", KEYED), TASK("a", ONCE) "," TASK("b", ONCE));
	fixture.may_pause = true;
	explore((struct sim_scenario){
		.name = "two steps, paused and resumed at any moment",
		.nodes_n = 3,
		.cast_n = 4,
		.cast = {DRIVERS,
			 {"pauser", 2, false, init_verb, &pause_it, NULL},
			 {"resumer", 2, false, init_verb, &resume_it, NULL}},
		.bounds = {.lapses = 1},
		.world = WORLD_KEYED,
	});
}

static void exhaustive_pause_crash(void **state)
{
	(void)state;
	parse(ACTION("do", KEYED), TASK("a", TWICE));
	fixture.may_pause = true;
	explore((struct sim_scenario){
		.name = "a step that is tried twice, paused and resumed, with a crash",
		.nodes_n = 2,
		.cast_n = 3,
		.cast = {{"driver", 0, true, init_driver, NULL, is_due},
			 {"pauser", 1, false, init_verb, &pause_it, NULL},
			 {"resumer", 1, false, init_verb, &resume_it, NULL}},
		.bounds = {.lapses = 2, .crashes = 1},
		.world = WORLD_KEYED,
	});
}

static void exhaustive_pause_cancel(void **state)
{
	(void)state;
	parse(ACTION("do", KEYED) "," ACTION("undo", KEYED), TASK("a", TWICE UNDO));
	fixture.may_pause = true;
	explore((struct sim_scenario){
		.name = "a step that is tried twice, paused, resumed and cancelled",
		.nodes_n = 3,
		.cast_n = 4,
		.cast = {{"driver", 0, true, init_driver, NULL, is_due},
			 {"pauser", 1, false, init_verb, &pause_it, NULL},
			 {"resumer", 1, false, init_verb, &resume_it, NULL},
			 {"canceller", 2, false, init_verb, &cancel, NULL}},
		.bounds = {.lapses = 1},
		.world = WORLD_KEYED,
	});
}

/* ---- persons ---- */

static const struct db_stmt stmt_held = {
	.name = "sim_run_held",
	.sql = "SELECT subject FROM run WHERE awaits = 'person' AND step_status = 'UNKNOWN'",
	.in = "",
	.out = "i",
};

static const struct db_stmt stmt_failed = {
	.name = "sim_run_failed",
	.sql = "SELECT s.id FROM subject s JOIN run r ON r.subject = s.id WHERE s.id = 1 AND s.fence < 4"
	       " AND (s.status = 'FAILED' OR (r.awaits = 'person' AND r.step_status = 'FAILED'))",
	.in = "",
	.out = "i",
};

static bool is_held(struct sim *sim)
{
	return ask_store(sim, &stmt_held).rows[0].n > 0;
}

static bool has_failed(struct sim *sim)
{
	return ask_store(sim, &stmt_failed).rows[0].n > 0;
}

/* A person who looks at the outside world, and tells what is there. */
static void init_resolver(union sim_task *task, const void *plan, struct arena *texts)
{
	static const struct run_verb_request told[] = {
		VERB(RUN_RESOLVE, .name = {"a", 1}, .done = false),
		VERB(RUN_RESOLVE, .name = {"a", 1}, .done = true),
	};
	struct notes *notes = (struct notes *)fixture.sim->state.notes;
	unsigned at;
	bool undoing = notes->rows[0] != 0;

	(void)plan;
	run_verb_init((struct run_verb *)task, &told[did(fixture.sim, 0, undoing ? -1 : 0, &at)], texts);
}

static void exhaustive_resolve(void **state)
{
	(void)state;
	parse(ACTION("do", PLAIN) "," ACTION("undo", PLAIN), TASK("a", ONCE UNDO));
	explore((struct sim_scenario){
		.name = "what is held is resolved by a person, and cancelled by another, plain service",
		.nodes_n = 3,
		.cast_n = 3,
		.cast = {{"driver", 0, true, init_driver, NULL, is_due},
			 {"person", 1, true, init_resolver, NULL, is_held},
			 {"canceller", 2, false, init_verb, &cancel, NULL}},
		.bounds = {.lapses = 1, .crashes = 1, .lost_answers = 1},
		.world = WORLD_PLAIN,
	});
}

static void exhaustive_retry_failed(void **state)
{
	static const struct run_verb_request retry = VERB(RUN_RETRY);

	(void)state;
	parse(ACTION("do", KEYED) "," ACTION("undo", KEYED), TASK("a", ONCE UNDO));
	explore((struct sim_scenario){
		.name = "what has failed is tried again by a person, and cancelled by another",
		.nodes_n = 3,
		.cast_n = 3,
		.cast = {{"driver", 0, true, init_driver, NULL, is_due},
			 {"person", 1, true, init_verb, &retry, has_failed},
			 {"canceller", 2, false, init_verb, &cancel, NULL}},
		.bounds = {.crashes = 1, .lost_answers = 1},
		.world = WORLD_KEYED,
	});
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exhaustive_two_steps_keyed),
		cmocka_unit_test(exhaustive_failed_commits),
		cmocka_unit_test(exhaustive_hold_plain),
		cmocka_unit_test(exhaustive_probe_plain),
		cmocka_unit_test(exhaustive_retries_keyed),
		cmocka_unit_test(exhaustive_paused_holders),
		cmocka_unit_test(exhaustive_wait),
		cmocka_unit_test(exhaustive_event),
		cmocka_unit_test(exhaustive_event_timeout),
		cmocka_unit_test(exhaustive_approval),
		cmocka_unit_test(exhaustive_cancel),
		cmocka_unit_test(exhaustive_two_cancel),
		cmocka_unit_test(exhaustive_cancel_plain),
		cmocka_unit_test(exhaustive_pause),
		cmocka_unit_test(exhaustive_pause_cancel),
		cmocka_unit_test(exhaustive_resolve),
		cmocka_unit_test(exhaustive_retry_failed),
		cmocka_unit_test(exhaustive_event_lost),
		cmocka_unit_test(exhaustive_pause_crash),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
