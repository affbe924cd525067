/*
 * The world of the simulations of runs: the run and its definition, the rows of the store as the simulator sees them.
 */
#ifndef HX_TESTS_SIM_RUN_WORLD_H
#define HX_TESTS_SIM_RUN_WORLD_H

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
#include "sim/left.h"
#include "sim/run_rules.h"
#include "sim/world.h"

#define STATES_MAX 20000000
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
	const struct run_machine *lacking; /* the same in a program without one of its functions; NULL: there is none */
	bool may_wait;                     /* for an event or a decision that nobody sends */
	bool may_pause;
	bool never_held;         /* whatever happens, no person is asked */
	unsigned unsettled_left; /* so many of the bound on unsettled answers must never be given */
	int64_t times_out_in_ms; /* 0: it may take for ever */
	struct sim *sim;         /* the world that is being walked through, for the person who knows the truth */
	uint64_t keys[STEPS_MAX]
		     [1 + REDO_MAX + 1]; /* of each step: that of its compensation, then those of its redoings */
} fixture;

static const struct run_machine *machine_of(const void *context, struct slice workflow, int64_t version)
{
	(void)workflow, (void)version;
	return context ? fixture.lacking : fixture.machine;
}

static const struct run_policy policy = {.lease_ms = 60000, .machine_of = machine_of};
static const struct run_policy lacking_policy = {.lease_ms = 60000, .machine_of = machine_of, .context = &fixture};

static inline const struct run_machine *machine_with(const char *actions, const char *steps, const char *more)
{
	const struct run_definition *definition;
	struct findings findings;
	char text[4000];

	findings_init(&findings, &fixture.arena);
	snprintf(text, sizeof text, "{\"workflow\":\"order\",\"kind\":\"run\",\"actions\":{%s},\"steps\":[%s]%s}",
		 actions, steps, more);
	run_definition_parse("order.json", arena_copy(&fixture.arena, slice_str(text)), &fixture.arena, &findings,
			     &definition);
	for (const struct finding *f = findings.first; f; f = f->next)
		printf("%s: %s\n", f->rule, f->text);
	assert_non_null(definition);
	return run_machine_new(definition, 1, &fixture.arena);
}

static inline const struct run_machine *machine_from(const char *actions, const char *steps)
{
	return machine_with(actions, steps, "");
}

static inline void parse(const char *actions, const char *steps)
{
	arena_release(&fixture.arena);
	memset(&fixture, 0, sizeof fixture);
	arena_init(&fixture.arena, 16u << 20);
	fixture.machine = machine_from(actions, steps);
}

/* With more fields of the definition: ",\"on_failure\":…". */
static inline void parse_with(const char *actions, const char *steps, const char *more)
{
	parse(actions, steps);
	fixture.machine = machine_with(actions, steps, more);
}

static inline const struct action *lacked_of(const struct action *action, const struct action *lacked)
{
	return action && strcmp(action->name, lacked->name) == 0 ? lacked : action;
}

/* And a program that lacks the function of this action. All others are the same ones: what it calls is the same request (I8). */
static inline void parse_lacking(const char *actions, const char *steps, const char *name)
{
	const struct run_definition *whole;
	struct run_definition *definition;
	struct run_step *copies;

	parse(actions, steps);
	whole = fixture.machine->definition;
	definition = arena_zalloc(&fixture.arena, sizeof *definition);
	copies = arena_alloc(&fixture.arena, whole->steps_n * sizeof *copies);
	*definition = *whole;
	definition->actions = machine_from(actions, steps)->definition->actions;
	definition->steps = copies;
	lack(definition->actions, definition->actions_n, name);
	for (size_t i = 0; i < whole->steps_n; i++)
		for (size_t a = 0; a < definition->actions_n; a++) {
			copies[i] = a ? copies[i] : whole->steps[i];
			if (!definition->actions[a].absent)
				continue;
			copies[i].action = lacked_of(copies[i].action, &definition->actions[a]);
			copies[i].compensate = lacked_of(copies[i].compensate, &definition->actions[a]);
		}
	fixture.lacking = run_machine_new(definition, 1, &fixture.arena);
}

/* ---- the store, seen from here ---- */

/* clang-format off */

static const struct db_stmt stmt_setup = {
	.name = "sim_run_setup",
	.sql = "INSERT INTO hx_run (subject, workspace, workflow, definition_version, requester, input, due_at, created_at)"
	       " VALUES (1, 'default', 'order', 1, 'me', '{}', hx_now_ms(), hx_now_ms())",
	.in = "",
	.out = "",
};

static const struct db_stmt stmt_setup_counted = {
	.name = "sim_run_setup_counted",
	.sql = RUNS_SETUP_COUNTED,
	.in = "",
	.out = "",
};

static const struct db_stmt stmt_setup_time = {
	.name = "sim_run_setup_time",
	.sql = "UPDATE hx_run SET times_out_at = hx_now_ms() + ?1",
	.in = "i",
	.out = "",
};

static const struct db_stmt stmt_due = {
	.name = "sim_run_due",
	.sql = "SELECT r.subject FROM hx_run r JOIN hx_subject s ON s.id = r.subject"
	       " WHERE r.due_at <= hx_now_ms() OR (s.owner IS NOT NULL AND s.until <= hx_now_ms())",
	.in = "",
	.out = "i",
};

static const struct db_stmt stmt_moment = {
	.name = "sim_run_moment",
	.sql = "SELECT min(m) FROM (SELECT due_at AS m FROM hx_run UNION ALL SELECT due_at FROM hx_job"
	       " UNION ALL SELECT until FROM hx_subject) WHERE m > hx_now_ms()",
	.in = "",
	.out = "i",
};

/* All that decides the future. Ids of jobs are fresh numbers, and other in every schedule. */
static const struct db_stmt stmt_hash_run = {
	.name = "sim_run_hash",
	.sql = "SELECT at_step, attempt, redo, step_status, step_started_at, awaits, job IS NULL, undo, wait_until, due_at,"
	       " completed_at IS NULL, error IS NULL, unsettled_since, stood_attempt, stood_started_at, stood_status FROM hx_run",
	.in = "",
	.out = "iiititiiiiiiiiit",
};

static const struct db_stmt stmt_hash_steps = {
	.name = "sim_run_hash_steps",
	.sql = "SELECT position, status, attempt, output, completed_at, undone_at IS NULL FROM hx_run_step ORDER BY position",
	.in = "",
	.out = "ititii",
};

static const struct db_stmt stmt_hash_events = {
	.name = "sim_run_hash_events",
	.sql = "SELECT id, data, at, taken_by FROM hx_run_event ORDER BY id",
	.in = "",
	.out = "ttii",
};

static const struct db_stmt stmt_hash_jobs = {
	.name = "sim_run_hash_jobs",
	.sql = "SELECT s.status, s.version, s.fence, s.owner, s.until, s.doubt, j.attempt, j.due_at, j.output, j.error"
	       " FROM hx_job j JOIN hx_subject s ON s.id = j.subject ORDER BY j.subject",
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
	       " (SELECT count(*) FROM hx_history WHERE subject = 1 AND (from_status IN ('COMPLETED', 'CANCELLED')"
	       "   OR (from_status = 'FAILED' AND to_status NOT IN ('PENDING', 'CANCELLING', 'CANCELLED')))),"
	       /* R5: CANCELLED after the last compensation */
	       " (SELECT count(*) FROM hx_subject s WHERE s.id = 1 AND s.status = 'CANCELLED' AND EXISTS"
	       "   (SELECT 1 FROM hx_run_step t WHERE t.status = 'COMPLETED' AND (?2 >> t.position) & 1 AND t.undone_at IS NULL)),"
	       /* R5: COMPLETED with the last step */
	       " (SELECT count(*) FROM hx_subject s WHERE s.id = 1 AND s.status = 'COMPLETED'"
	       "   AND (SELECT count(*) FROM hx_run_step) <> ?1),"
	       /* an event is taken once, and only by a step that has ended */
	       " (SELECT count(*) FROM hx_run_event e WHERE e.taken_by IS NOT NULL AND e.name LIKE 'event %' AND NOT EXISTS"
	       "   (SELECT 1 FROM hx_run_step t WHERE t.position = e.taken_by)),"
	       /* and a step that waited for one has taken it */
	       " (SELECT count(*) FROM hx_run_step t WHERE (?3 >> t.position) & 1 AND t.status = 'COMPLETED' AND"
	       "   (SELECT count(*) FROM hx_run_event e WHERE e.taken_by = t.position) <> 1),"
	       /* where it stands, for the checks of effects */
	       " (SELECT owner IS NOT NULL FROM hx_subject WHERE id = 1), (SELECT doubt FROM hx_subject WHERE id = 1),"
	       " (SELECT job IS NOT NULL FROM hx_run)",
	.in = "iii",
	.out = "iiiiiiii",
};

static const struct db_stmt stmt_steps = {
	.name = "sim_run_steps",
	.sql = "SELECT position, status, output, undone_at FROM hx_run_step ORDER BY position",
	.in = "",
	.out = "itti",
};

static const struct db_stmt stmt_tell = {
	.name = "sim_run_tell",
	.sql = "SELECT ', step ' || at_step || ' attempt ' || attempt || ' redo ' || redo || coalesce(' ' || step_status, '') ||"
	       " coalesce(' awaits ' || awaits, '') || coalesce(' undo ' || undo, '') ||"
	       " coalesce(' due in ' || (due_at - hx_now_ms()), '') ||"
	       " CASE (SELECT doubt FROM hx_subject WHERE id = 1) WHEN 1 THEN ' doubt' ELSE '' END ||"
	       " CASE WHEN (SELECT owner FROM hx_subject WHERE id = 1) IS NULL THEN '' ELSE ' owned' END ||"
	       " coalesce('; rows ' || (SELECT group_concat(position || ' ' || status ||"
	       "  CASE WHEN undone_at IS NULL THEN '' ELSE ' undone' END, ', ') FROM hx_run_step), '') ||"
	       " coalesce('; events ' || (SELECT group_concat(id || coalesce(' taken by ' || taken_by, ''), ', ') FROM hx_run_event), '') ||"
	       " coalesce('; jobs ' || (SELECT group_concat(s.status || ' fence ' || s.fence, ', ') FROM hx_job j JOIN hx_subject s"
	       "  ON s.id = j.subject), '') FROM hx_run",
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

static const struct sim_rows rows_of_runs = {next_moment, hash_all, before_unit, after_unit, tell, .locked = NULL};

#endif
