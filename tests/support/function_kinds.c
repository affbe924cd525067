/* See function_kinds.h. */
#include "support/function_kinds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/json.h"
#include "flow/function.h"
#include "flow/run_verb.h"
#include "model/findings.h"

#define HOUR_MS 3600000
#define WORKER "worker"

static const struct run_machine *function_machine(void)
{
	static const char text[] = "{\"workflow\":\"f\",\"kind\":\"function\"}";
	static const struct run_machine *machine;
	static struct arena arena;
	const struct run_definition *definition;
	struct findings findings;

	if (machine)
		return machine;
	arena_init(&arena, 1u << 20);
	findings_init(&findings, &arena);
	function_definition_parse("f.json", slice_str(text), &arena, &findings, &definition);
	assert_non_null(definition);
	return machine = run_machine_new(definition, RUN_FUNCTION, &arena);
}

static const struct run_machine *machine_of(const void *context, struct slice workflow, int64_t version)
{
	(void)context, (void)version;
	return slice_is(workflow, "f") ? function_machine() : NULL;
}

static const struct run_policy policy = {.lease_ms = HOUR_MS, .machine_of = machine_of};

static void create(struct unit *unit, const struct kind_args *args, int64_t id)
{
	struct run_spec spec = {.subject = id,
				.workspace = kind_workspace(args),
				.requester = slice_str("me"),
				.key = slice_str("key"),
				.machine = function_machine(),
				.input = slice_str("{}")};

	run_create(unit, &args->stamp, &spec);
}

void function_make(struct unit *unit, const struct kind_args *args)
{
	create(unit, args, args->subject);
}

void function_create_key(struct unit *unit, const struct kind_args *args)
{
	create(unit, args, kind_made(args->subject, args->stamp.op));
}

void function_make_past(struct unit *unit, const struct kind_args *args)
{
	subject_heartbeat(unit, args->subject, /* fence= */ 1, -HOUR_MS);
}

void function_claim_turn(struct unit *unit, const struct kind_args *args)
{
	struct arena *arena = kind_arena(args);
	struct function_polled *polled = arena_zalloc(arena, sizeof *polled);
	struct function_claim_request *rq = arena_zalloc(arena, sizeof *rq);
	struct function_claim claim;

	assert_non_null(polled);
	assert_non_null(rq);
	*polled = (struct function_polled){
		.name = slice_str("f"), .version = slice_str("1"), .lease_ms = args->lease_ms};
	*rq = (struct function_claim_request){.workspace = kind_workspace(args),
					      .worker = slice_str(WORKER),
					      .polled_n = 1,
					      .polled = polled,
					      .max = 1,
					      .lease_ms = args->lease_ms};
	function_claim_init(&claim, rq, arena);
	kind_build_write(unit, args, &claim.task, /* named= */ NULL, arena);
}

/* ---- by its worker ---- */

static const struct db_stmt stmt_seq = {
	.name = "test_function_seq",
	.sql = "SELECT seq FROM hx_function WHERE subject = ?1",
	.in = "i",
	.out = "i",
};

static int64_t seq_of(const struct kind_args *args, struct arena *arena)
{
	struct unit *read = arena_alloc(arena, sizeof *read);
	const struct unit_result *result;

	assert_non_null(read);
	unit_init(read, /* op= */ 0);
	UNIT_ADD(read, UNIT_ANY, &stmt_seq, db_int(args->subject));
	result = kind_execute(args, read, arena);
	return result->rows[0].n ? db_cell(&result->rows[0], 0, 0)->i : -1;
}

static void call(struct unit *unit, const struct kind_args *args, const char *body)
{
	struct arena *arena = kind_arena(args);
	struct function_request *rq = arena_zalloc(arena, sizeof *rq);
	struct function_call call;
	struct hx_error err;
	struct json json;
	char hash[24];

	assert_non_null(rq);
	snprintf(hash, sizeof hash, "%lld", (long long)args->stamp.op);
	*rq = (struct function_request){.workspace = kind_workspace(args),
					.subject = args->subject,
					.worker = slice_str(WORKER),
					.fence = args->fence,
					.seq = seq_of(args, arena),
					.hash = arena_copy(arena, slice_str(hash)),
					.machine_of = machine_of};
	if (rq->seq < 0)
		return;
	assert_int_equal(json_check(slice_str(body), &err, &json), HX_OK);
	function_parse(json, arena, rq);
	assert_int_equal(rq->unread.code, HX_OK);
	function_call_init(&call, rq, arena);
	kind_build_write(unit, args, &call.task, /* named= */ NULL, arena);
}

#define STEP(state) "{\"kind\":\"step\",\"name\":\"a\",\"n\":0,\"state\":\"" state "\"}"

void function_begin_step(struct unit *unit, const struct kind_args *args)
{
	call(unit, args, "{\"entries\":[" STEP("begun") "]}");
}

void function_end_step(struct unit *unit, const struct kind_args *args)
{
	call(unit, args, "{\"entries\":[" STEP("done") "]}");
}

void function_suspend(struct unit *unit, const struct kind_args *args)
{
	call(unit, args,
	     "{\"entries\":[{\"kind\":\"event\",\"name\":\"e\",\"n\":0,\"event\":\"go\"}],\"end\":{\"state\":\"suspended\","
	     "\"awaits\":[{\"kind\":\"event\",\"name\":\"e\",\"n\":0}]}}");
}

void function_complete(struct unit *unit, const struct kind_args *args)
{
	call(unit, args, "{\"end\":{\"state\":\"completed\",\"output\":1}}");
}

void function_beat(struct unit *unit, const struct kind_args *args)
{
	call(unit, args, "{}");
}

/* ---- by others ---- */

void function_look_at(struct unit *unit, const struct kind_args *args)
{
	struct arena *arena = kind_arena(args);
	struct function_look look;

	function_look_init(&look, args->subject, arena);
	kind_build_write(unit, args, &look.task, /* named= */ NULL, arena);
}

static void verb(struct unit *unit, const struct kind_args *args, enum run_verb_kind kind)
{
	struct arena *arena = kind_arena(args);
	struct run_verb_request *rq = arena_zalloc(arena, sizeof *rq);
	struct run_verb v;

	assert_non_null(rq);
	*rq = (struct run_verb_request){.kind = kind,
					.workspace = kind_workspace(args),
					.subject = args->subject,
					.name = slice_str("go"),
					.event_id = slice_str("one"),
					.data = slice_str(args->stamp.op % 2 ? "\"odd\"" : "\"even\""),
					.requester = slice_str("me"),
					.policy = &policy};
	run_verb_init(&v, rq, arena);
	kind_build_write(unit, args, &v.task, /* named= */ NULL, arena);
}

void function_event_one(struct unit *unit, const struct kind_args *args)
{
	verb(unit, args, RUN_EVENT);
}

void function_pause(struct unit *unit, const struct kind_args *args)
{
	verb(unit, args, RUN_PAUSE);
}

void function_cancel_it(struct unit *unit, const struct kind_args *args)
{
	verb(unit, args, RUN_CANCEL);
}
