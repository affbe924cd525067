/* A run in whatever state a test puts it, and the verbs on it: what test_run_verb.c and test_run_events.c share. */
#ifndef HX_TESTS_UNIT_FLOW_RUN_VERBS_H
#define HX_TESTS_UNIT_FLOW_RUN_VERBS_H

#include "unit/flow/world.h"

#include <stdio.h>

#include "flow/run_verb.h"

#define RUN 77
#define VERSION 5

static const char text[] = "{\"workflow\":\"order\",\"kind\":\"run\",\"actions\":{"
			   "\"do\":{\"kind\":\"http\",\"url\":\"http://127.0.0.1:1/do\",\"effect\":\"keyed\"},"
			   "\"undo\":{\"kind\":\"http\",\"url\":\"http://127.0.0.1:1/undo\",\"effect\":\"keyed\"}},"
			   "\"steps\":[{\"name\":\"a\",\"type\":\"task\",\"action\":\"do\",\"compensate\":\"undo\"},"
			   "{\"name\":\"paid\",\"type\":\"external_event\",\"event\":\"payment\"},"
			   "{\"name\":\"ok\",\"type\":\"approval\"},"
			   "{\"name\":\"b\",\"type\":\"task\",\"action\":\"do\"}]}";

static struct {
	struct arena arena;
	const struct run_machine *machine;
} fixture;

static inline const struct run_machine *machine_of(const void *context, struct slice workflow, int64_t version)
{
	(void)context;
	return slice_is(workflow, "order") && version == 3 ? fixture.machine : NULL;
}

static const struct run_policy policy = {.lease_ms = 1000, .machine_of = machine_of};

static inline int parse(void **state)
{
	struct findings findings;
	const struct run_definition *definition;

	(void)state;
	arena_init(&fixture.arena, 16u << 20);
	findings_init(&findings, &fixture.arena);
	run_definition_parse("order.json", slice_str(text), &fixture.arena, &findings, &definition);
	assert_non_null(definition);
	fixture.machine = run_machine_new(definition, 3, &fixture.arena);
	return 0;
}

static inline int forget(void **state)
{
	(void)state;
	arena_release(&fixture.arena);
	return 0;
}

/* ---- rows ---- */

static inline void script(struct world *w, const char *sql)
{
	struct hx_error err = {0};

	if (w->db->driver->script(w->db, sql, &err))
		fail_msg("%s: %s", sql, err.detail);
}

/* What there is of the run, in words: only what is set is told. */
static const struct db_stmt stmt_run = {
	.name = "test_run",
	.sql = "SELECT s.status || ' v' || s.version || CASE WHEN s.owner IS NULL THEN '' ELSE ' owned' END"
	       " || CASE s.doubt WHEN 1 THEN ' doubt' ELSE '' END || ', step ' || r.at_step || ' attempt ' || r.attempt"
	       " || ' redo ' || r.redo || coalesce(' ' || r.step_status, '') || coalesce(' awaits ' || r.awaits, '')"
	       " || coalesce(' job ' || r.job, '') || coalesce(' undo ' || r.undo, '')"
	       " || CASE WHEN r.wait_until IS NULL THEN '' ELSE ' waits' END"
	       " || CASE WHEN r.due_at IS NULL THEN '' WHEN r.due_at <= hx_now_ms() THEN ' due' ELSE ' due later' END"
	       " || CASE WHEN r.completed_at IS NULL THEN '' ELSE ' ended' END"
	       " || CASE WHEN r.error IS NULL THEN '' ELSE ' error' END FROM hx_run r JOIN hx_subject s ON s.id = r.subject",
	.in = "",
	.out = "t",
};

static const struct db_stmt stmt_steps = {
	.name = "test_steps",
	.sql = "SELECT coalesce(group_concat(position || ' ' || status || ' ' || output ||"
	       " CASE WHEN undone_at IS NULL THEN '' ELSE ' undone' END, ', '), '') FROM hx_run_step",
	.in = "",
	.out = "t",
};

static const struct db_stmt stmt_events = {
	.name = "test_events",
	.sql = "SELECT coalesce(group_concat(id || ' = ' || name || ' ' || data || coalesce(' taken by ' || taken_by, ''), ', '), '')"
	       " FROM hx_run_event",
	.in = "",
	.out = "t",
};

static const struct db_stmt stmt_history = {
	.name = "test_history",
	.sql = "SELECT count(*) || '' FROM hx_history WHERE subject = 77",
	.in = "",
	.out = "t",
};

static inline void assert_is(struct world *w, const struct db_stmt *stmt, const char *wanted)
{
	char found[400];

	unit_init(&w->unit, 0);
	unit_add(&w->unit, UNIT_ANY, stmt, 0, NULL);
	assert_int_equal(world_run(w), UNIT_WON);
	snprintf(found, sizeof found, "%.*s", SLICE_ARGS(db_cell(&w->result.rows[0], 0, 0)->s));
	assert_string_equal(found, wanted);
}

/* A run in some state: `subject` and `run` are what is set there, `more` is a script. */
static inline void put(struct world *w, const char *status, const char *subject, const char *run, const char *more)
{
	struct stamp stamp;
	char sql[1000];
	struct run_spec spec = {
		.subject = RUN,
		.workspace = slice_str("default"),
		.requester = slice_str("me"),
		.machine = fixture.machine,
		.input = slice_str("{}"),
	};

	script(w, "DELETE FROM hx_run; DELETE FROM hx_subject; DELETE FROM hx_history; DELETE FROM hx_run_step;"
		  "DELETE FROM hx_run_event; DELETE FROM hx_job");
	stamp = world_begin(w);
	run_create(&w->unit, &stamp, &spec);
	assert_int_equal(world_run(w), UNIT_WON);
	snprintf(sql, sizeof sql,
		 "UPDATE hx_subject SET version = %d, status = '%s'%s; UPDATE hx_run SET due_at = NULL%s; %s", VERSION,
		 status, subject, run, more);
	script(w, sql);
}

#define OWNED ", owner = 'x', until = 9000000, fence = 4"
#define STEP_A                                                                                                         \
	"INSERT INTO hx_run_step (run, position, status, attempt, output, started_at, completed_at, undone_at) VALUES (77, 0, 'COMPLETED', 1, '1', 1, 2, NULL);"
#define STEP_PAID                                                                                                      \
	"INSERT INTO hx_run_step (run, position, status, attempt, output, started_at, completed_at, undone_at) VALUES (77, 1, 'COMPLETED', 1, '2', 1, 2, NULL);"
#define A_JOB                                                                                                                        \
	"INSERT INTO hx_job (subject, workspace, queue, workflow, action, effect_key, payload) VALUES (9, '', 'q', '', '', '', '');" \
	"INSERT INTO hx_subject (id, kind, status, version, op, fence, updated_at, seq, head) VALUES (9, 1, 'RUNNING', 1, 0, 0, 0, 1, x'');"

/* ---- verbs ---- */

static inline struct run_verb_request request(enum run_verb_kind kind)
{
	return (struct run_verb_request){
		.kind = kind,
		.workspace = slice_str("default"),
		.subject = RUN,
		.policy = &policy,
	};
}

/* What the world does in the middle: a script after the n-th commit, or its answer lost. */
struct trouble {
	unsigned at;
	const char *script;
	bool lost; /* the commit lands, and nobody hears of it */
	bool vanishes;
};

static inline enum hx_code drive(struct world *w, struct run_verb *v, const struct run_verb_request *rq,
				 struct trouble trouble)
{
	struct answer answer = {.kind = ANSWER_START, .node = "here"};
	struct ask ask = {.unit = &w->unit};

	run_verb_init(v, rq, &fixture.arena);
	for (unsigned n = 0;; n++) {
		answer.now = w->clock.wall;
		answer.id = ++w->last_op;
		assert_true(task_take(&v->task, v->task.turn, &answer));
		v->task.kind->ask(&v->task, &ask);
		if (ask.kind == ASK_DONE)
			return ask.code;
		if (!(trouble.vanishes && n == trouble.at))
			(void)world_run(w); /* whatever the verdict: the task hears it */
		if ((trouble.lost || trouble.vanishes) && n == trouble.at)
			w->result.verdict = UNIT_UNKNOWN;
		if (trouble.script && n == trouble.at)
			script(w, trouble.script);
		answer.kind = ANSWER_COMMIT;
		answer.result = &w->result;
	}
}

static inline enum hx_code drive_rq(struct world *w, struct run_verb *v, const struct run_verb_request *rq)
{
	return drive(w, v, rq, (struct trouble){0});
}

static inline struct run_verb fire(struct world *w, enum run_verb_kind kind, enum hx_code code)
{
	struct run_verb_request rq = request(kind);
	struct run_verb v;

	assert_string_equal(hx_code_name(drive_rq(w, &v, &rq)), hx_code_name(code));
	v.rq = NULL;
	return v;
}

static inline struct run_verb send_event(struct world *w, const char *name, const char *id, enum hx_code code)
{
	struct run_verb_request rq = request(RUN_EVENT);
	struct run_verb v;

	rq.name = slice_str(name);
	rq.event_id = slice_str(id);
	rq.data = slice_str("{\"n\":1}");
	assert_string_equal(hx_code_name(drive_rq(w, &v, &rq)), hx_code_name(code));
	v.rq = NULL;
	return v;
}

#endif
