/*
 * A run over a real store, driven by one node: what its actions answer, what they were called with, and its rows in words.
 */
#ifndef HX_TESTS_FLOW_DRIVEN_RUN_H
#define HX_TESTS_FLOW_DRIVEN_RUN_H

#include "unit/flow/world.h"

#include <stdio.h>

#include "flow/run_drive.h"

#define RUN 77
#define LOG_BYTES 2000

/* What the actions answer, one after the other; the last one for ever. */
struct script {
	enum act_outcome outcome;
	const char *output;
};

static struct {
	struct arena arena;
	const struct run_machine *machine;
	const struct run_machine *other; /* version 4; NULL: there is none */
	struct world *w;
	char calls[LOG_BYTES]; /* "step/redo #attempt; " */
	char keys[LOG_BYTES];  /* whole: "run_…/a/0; " */
	char bodies[LOG_BYTES];
	int64_t subject;       /* whom drive() drives; 0: RUN */
	int64_t not_before_ms; /* what the actions ask for when they do not answer ok */
	const char *meanwhile; /* what others write between the reading and the move, once; NULL: nothing */
} fixture;

static const struct run_machine *machine_of(const void *context, struct slice workflow, int64_t version)
{
	(void)context, (void)workflow;
	return fixture.other && version == fixture.other->version ? fixture.other : fixture.machine;
}

static const struct run_policy policy = {.lease_ms = 1000, .machine_of = machine_of};

#define ACTIONS                                                                                                        \
	"'actions':{'do':{'kind':'http','url':'http://127.0.0.1:1/do','effect':'keyed'},"                              \
	"'once':{'kind':'http','url':'http://127.0.0.1:1/do','effect':'claimed'},"                                     \
	"'undo':{'kind':'http','url':'http://127.0.0.1:1/undo','effect':'keyed'},"                                     \
	"'ask':{'kind':'http','url':'http://127.0.0.1:1/ask','effect':'idempotent'},"                                  \
	"'asked':{'kind':'http','url':'http://127.0.0.1:1/do','effect':'claimed','probe':'ask'},"                      \
	"'work':{'kind':'worker','queue':'stock','effect':'keyed'},'nothing':{'kind':'noop'},"                         \
	"'note':{'kind':'sql','statements':[{'name':'note_it','sql':'INSERT INTO noted (name, sku) VALUES (:id, :input.sku)'}]}}"

static inline const struct run_machine *machine_from(const char *rest, int64_t version)
{
	struct findings findings;
	const struct run_definition *definition;
	char text[4000];

	snprintf(text, sizeof text, "{'workflow':'order','kind':'run'," ACTIONS ",%s}", rest);
	for (char *p = text; *p; p++)
		*p = *p == '\'' ? '"' : *p;
	findings_init(&findings, &fixture.arena);
	run_definition_parse("order.json", arena_copy(&fixture.arena, slice_str(text)), &fixture.arena, &findings,
			     &definition);
	for (const struct finding *f = findings.first; f; f = f->next)
		printf("%s: %s\n", f->rule, f->text);
	assert_non_null(definition);
	return run_machine_new(definition, version, &fixture.arena);
}

static inline void define(const char *rest)
{
	arena_release(&fixture.arena);
	arena_init(&fixture.arena, 16u << 20);
	fixture.machine = machine_from(rest, 3);
	fixture.other = NULL;
	fixture.calls[0] = fixture.bodies[0] = fixture.keys[0] = '\0';
	fixture.subject = 0;
}

static inline void create_as(struct world *w, int64_t subject, const char *input)
{
	struct stamp stamp = world_begin(w);
	struct run_spec spec = {
		.subject = subject,
		.workspace = slice_str("default"),
		.requester = slice_str("me"),
		.machine = fixture.machine,
		.input = slice_str(input),
	};

	run_create(&w->unit, &stamp, &spec);
	assert_int_equal(world_run(w), UNIT_WON);
}

static inline void create(struct world *w, const char *input)
{
	create_as(w, RUN, input);
}

static inline void note_call(const struct act_call *call)
{
	const struct action *action = call->action;
	struct slice step = call->key;

	while (step.n && step.p[0] != '/') /* the id of the run is always the same */
		step.p++, step.n--;
	while (step.n && memmem(step.p, step.n, "/ask_", 5)) /* a fresh id */
		step.n--;
	snprintf(fixture.calls + strlen(fixture.calls), LOG_BYTES - strlen(fixture.calls), "%s%.*s #%lld; ",
		 action->name, SLICE_ARGS(step), (long long)call->attempt);
	snprintf(fixture.keys + strlen(fixture.keys), LOG_BYTES - strlen(fixture.keys), "%.*s; ",
		 SLICE_ARGS(call->key));
	snprintf(fixture.bodies, LOG_BYTES, "%.*s", SLICE_ARGS(call->input));
}

/* As a lane would: what the store refuses is an answer. */
static inline void run_or_fail(struct world *w)
{
	struct hx_error err = {0};

	arena_reset(&w->arena);
	if (db_run_unit(w->db, &w->unit, &w->result, &w->arena, &err))
		w->result = (struct unit_result){.verdict = UNIT_FAILED, .line = -1, .error = err};
}

static inline void sql(struct world *w, const char *text)
{
	struct hx_error err = {0};

	if (w->db->driver->script(w->db, text, &err))
		fail_msg("%s: %s", text, err.detail);
}

/* Drives the run until it is let go. */
static inline enum hx_code drive(struct world *w, const struct script *script)
{
	struct arena arena;
	struct run_drive d;
	struct ask ask = {.unit = &w->unit};
	struct answer answer = {.kind = ANSWER_START, .node = "here"};
	enum hx_code code;

	arena_init(&arena, 96u << 20); /* as the engine gives it */
	run_drive_init(&d, fixture.subject ? fixture.subject : RUN, &policy, &arena);
	for (;;) {
		answer.now = w->clock.wall;
		answer.mono = answer.lease_since = w->clock.mono;
		answer.id = w->last_op += 10;
		for (int i = 0; i < ANSWER_IDS_MAX; i++)
			answer.more_ids[i] = 1000 + w->last_op + i;
		assert_true(task_take(&d.task, d.task.turn, &answer));
		d.task.kind->ask(&d.task, &ask);
		if (ask.kind == ASK_DONE)
			break;
		if (ask.kind == ASK_ACT) {
			note_call(&ask.act);
			answer.kind = ANSWER_ACT;
			answer.outcome = script->outcome;
			answer.output = slice_str(script->output);
			answer.not_before_ms = script->outcome == ACT_OK ? 0 : fixture.not_before_ms;
			script += script[1].output != NULL;
			continue;
		}
		assert_int_equal(ask.kind, ASK_COMMIT);
		if (fixture.meanwhile && d.task.at == DRIVE_MOVING) {
			sql(w, fixture.meanwhile);
			fixture.meanwhile = NULL;
		}
		run_or_fail(w);
		answer.kind = ANSWER_COMMIT;
		answer.result = &w->result;
	}
	code = ask.code;
	arena_release(&arena);
	return code;
}

static inline void drive_asked(struct world *w, const struct script *script, int64_t not_before_ms)
{
	fixture.not_before_ms = not_before_ms;
	assert_int_equal(drive(w, script), HX_OK);
	fixture.not_before_ms = 0;
}

static const struct script ok[] = {{ACT_OK, "{\"n\":9007199254740993}"}, {0}};

/* ---- rows, in words ---- */

static const struct db_stmt stmt_run = {
	.name = "test_run",
	.sql = "SELECT s.status || ' v' || s.version || CASE WHEN s.owner IS NULL THEN '' ELSE ' owned' END"
	       " || CASE s.doubt WHEN 1 THEN ' doubt' ELSE '' END || ', step ' || r.at_step || ' attempt ' || r.attempt"
	       " || coalesce(' ' || r.step_status, '') || coalesce(' awaits ' || r.awaits, '')"
	       " || CASE WHEN r.job IS NULL THEN '' ELSE ' job' END || coalesce(' undo ' || r.undo, '')"
	       " || CASE WHEN r.due_at IS NULL THEN '' WHEN r.due_at <= hx_now_ms() THEN ' due' ELSE ' due in ' ||"
	       " (r.due_at - hx_now_ms()) END || coalesce(' -> ' || r.output, '')"
	       " || coalesce(' error ' || r.error, '') FROM hx_run r JOIN hx_subject s ON s.id = r.subject",
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

static inline void assert_is(struct world *w, const struct db_stmt *stmt, const char *wanted)
{
	char found[800];

	unit_init(&w->unit, 0);
	unit_add(&w->unit, UNIT_ANY, stmt, 0, NULL);
	assert_int_equal(world_run(w), UNIT_WON);
	snprintf(found, sizeof found, "%.*s", SLICE_ARGS(db_cell(&w->result.rows[0], 0, 0)->s));
	assert_string_equal(found, wanted);
}

/* Is the run as these words say? */
static inline bool run_is(struct world *w, const char *wanted)
{
	unit_init(&w->unit, 0);
	unit_add(&w->unit, UNIT_ANY, &stmt_run, 0, NULL);
	assert_int_equal(world_run(w), UNIT_WON);
	return slice_is(db_cell(&w->result.rows[0], 0, 0)->s, wanted);
}

static inline void assert_run(struct world *w, const char *run, const char *steps)
{
	assert_is(w, &stmt_run, run);
	assert_is(w, &stmt_steps, steps);
}

static inline int forget(void **state)
{
	(void)state;
	arena_release(&fixture.arena);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)

#endif
