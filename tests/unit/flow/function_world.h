/* A world with functions: a definition, runs of it, and the tasks of workers, nodes and callers, to their end one after the other. */
#pragma once

#include "unit/flow/world.h"

#include <stdio.h>

#include "base/id.h"
#include "flow/function.h"
#include "flow/run_children.h"
#include "flow/run_verb.h"
#include "support/must_hold.h"

#define RUN 77
#define HOUR_MS 3600000

static struct {
	struct arena arena;
	struct id_source ids;
	const struct run_machine *machine;
	int64_t fence, seq;
	int64_t run;       /* 0: RUN */
	const char *input; /* of the next; NULL: one that has a customer */
	bool of_name;      /* its definition is known by its name */
} fixture;

static int64_t run_of(void)
{
	return fixture.run ? fixture.run : RUN;
}

static UNUSED const struct run_machine *machine_of(const void *context, struct slice workflow, int64_t version)
{
	(void)context, (void)version;
	return fixture.of_name && slice_is(workflow, "f") ? fixture.machine : NULL;
}

static UNUSED const struct run_policy policy = {.lease_ms = 1000, .machine_of = machine_of};

static UNUSED int forget(void **state)
{
	arena_release(&fixture.arena);
	fixture.run = 0;
	fixture.input = NULL;
	fixture.of_name = false;
	return world_tear_down(state);
}

/* ---- a definition, and a run of it ---- */

static UNUSED void define(const char *more)
{
	char text[400];
	struct findings findings;
	const struct run_definition *definition;

	snprintf(text, sizeof text, "{\"workflow\":\"f\",\"kind\":\"function\"%s}", more);
	for (char *c = text; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	arena_init(&fixture.arena, 16u << 20);
	id_source_init(&fixture.ids, 1);
	findings_init(&findings, &fixture.arena);
	function_definition_parse("f.json", slice_str(text), &fixture.arena, &findings, &definition);
	assert_non_null(definition);
	fixture.machine = run_machine_new(definition, RUN_FUNCTION, &fixture.arena);
}

static UNUSED enum unit_verdict create(struct world *w, const struct run_machine *machine)
{
	struct stamp stamp = world_begin(w);
	struct run_spec spec = {.subject = run_of(),
				.workspace = slice_str("default"),
				.requester = slice_str("me"),
				.machine = machine,
				.input = slice_str(fixture.input ? fixture.input : "{\"customer\":\"c-1\"}")};

	run_describe(&spec, &fixture.arena);
	run_create(&w->unit, &stamp, &spec);
	fixture.seq = 0;
	return world_run(w);
}

static UNUSED void check_is(struct world *w, const struct db_stmt *stmt, const char *wanted)
{
	char found[400];

	unit_init(&w->unit, 0);
	unit_add(&w->unit, UNIT_ANY, stmt, 0, NULL);
	assert_int_equal(world_run(w), UNIT_WON);
	snprintf(found, sizeof found, "%.*s", SLICE_ARGS(db_cell(&w->result.rows[0], 0, 0)->s));
	assert_string_equal(found, wanted);
}

/* A connection knows statements by their address. */
#define assert_is(w, text, wanted)                                                                                     \
	do {                                                                                                           \
		static const struct db_stmt stmt = {.name = "test_function_is", .sql = text, .in = "", .out = "t"};    \
		check_is(w, &stmt, wanted);                                                                            \
	} while (0)

/* The same of what a mutant breaks. */
#define MUST_BE(w, text, wanted, broken)                                                                               \
	do {                                                                                                           \
		static const struct db_stmt stmt = {.name = "test_function_be", .sql = text, .in = "", .out = "t"};    \
		unit_init(&(w)->unit, 0);                                                                              \
		unit_add(&(w)->unit, UNIT_ANY, &stmt, 0, NULL);                                                        \
		assert_int_equal(world_run(w), UNIT_WON);                                                              \
		MUST_HOLD(slice_is(db_cell(&(w)->result.rows[0], 0, 0)->s, wanted), broken);                           \
	} while (0)

/* ---- tasks ---- */

static UNUSED enum hx_code go(struct world *w, struct task *task)
{
	struct ask ask = {.unit = &w->unit};
	struct answer answer = {.kind = ANSWER_START, .node = "here", .ids = &fixture.ids};

	for (;;) {
		answer.now = w->clock.wall;
		answer.mono = w->clock.mono;
		answer.id = w->last_op += 10;
		assert_true(task_take(task, task->turn, &answer));
		task->kind->ask(task, &ask);
		if (ask.kind != ASK_COMMIT)
			return ask.code;
		(void)world_run(w);
		answer.kind = ANSWER_COMMIT;
		answer.result = &w->result;
	}
}

static UNUSED size_t claim(struct world *w, const char *version, int64_t lease_ms)
{
	const struct function_polled polled = {slice_str("f"), slice_str(version), lease_ms,
					       &fixture.machine->definition->limits};
	const struct function_claim_request rq = {.workspace = slice_str("default"),
						  .worker = slice_str("w"),
						  .polled_n = 1,
						  .polled = &polled,
						  .max = 1,
						  .lease_ms = 60000};
	struct function_claim claim;

	function_claim_init(&claim, &rq, &fixture.arena);
	assert_int_equal(go(w, &claim.task), HX_OK);
	if (claim.n) {
		fixture.run = claim.turns[0].row.subject;
		fixture.fence = claim.turns[0].row.fence;
		fixture.seq = claim.turns[0].row.seq;
	}
	return claim.n;
}

static UNUSED enum hx_code call(struct world *w, const char *body)
{
	static char hash[16];
	char text[1000];
	struct json json;
	struct hx_error err;
	struct function_call task;
	struct function_request rq = {.workspace = slice_str("default"),
				      .subject = run_of(),
				      .worker = slice_str("w"),
				      .fence = fixture.fence,
				      .seq = fixture.seq,
				      .machine_of = machine_of};
	enum hx_code code;

	snprintf(text, sizeof text, "%s", body);
	for (char *c = text; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	assert_int_equal(json_check(slice_str(text), &err, &json), HX_OK);
	function_parse(json, &fixture.arena, &rq);
	snprintf(hash, sizeof hash, "%lld", (long long)w->last_op);
	rq.hash = slice_str(hash);
	function_call_init(&task, &rq, &fixture.arena);
	code = go(w, &task.task);
	if (!code)
		fixture.seq = task.work.seq;
	return code;
}

static UNUSED void look(struct world *w)
{
	struct function_look task;

	function_look_init(&task, run_of(), &fixture.arena);
	assert_int_equal(go(w, &task.task), HX_OK);
}

static UNUSED enum hx_code verb(struct world *w, struct run_verb_request rq)
{
	struct run_verb task;

	rq.workspace = slice_str("default");
	rq.subject = rq.start ? 0 : run_of();
	rq.requester = slice_str("me");
	rq.policy = &policy;
	run_verb_init(&task, &rq, &fixture.arena);
	return go(w, &task.task);
}

#define STATUS "SELECT status FROM hx_subject WHERE id = 77"
#define ERROR                                                                                                          \
	"SELECT s.status || coalesce(' ' || json_extract(r.error, '$.code'), '') FROM hx_run r JOIN hx_subject s ON s.id = r.subject"

static UNUSED void sql(struct world *w, const char *text)
{
	struct hx_error err;

	if (w->db->driver->script(w->db, text, &err))
		fail_msg("%s", err.detail);
}
