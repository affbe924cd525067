/* See schedule_kinds.h. */
#include "support/schedule_kinds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/json.h"
#include "flow/hook.h"
#include "flow/schedule_look.h"
#include "flow/schedule_verb.h"

#define HOUR_MS 3600000
#define YEAR_2020_MS 1577836800000
#define YEAR_2022_MS 1640995200000

static const struct zone *zone_of(const void *context, struct slice name)
{
	(void)context, (void)name;
	return &zone_utc;
}

static const struct run_machine *run_of(const void *context, struct slice workflow)
{
	return kind_machine_of(context, workflow, /* version= */ 1);
}

static const struct schedule_policy policy = {.zone_of = zone_of, .run_of = run_of};

/* ---- schedules ---- */

static struct schedule_verb_request *request(const struct kind_args *args, enum schedule_verb_kind kind)
{
	struct schedule_verb_request *rq = arena_zalloc(kind_arena(args), sizeof *rq);

	assert_non_null(rq);
	*rq = (struct schedule_verb_request){.kind = kind,
					     .workspace = kind_workspace(args),
					     .requester = slice_str("me"),
					     .name = slice_str("s"),
					     .id = slice_str("one"),
					     .from_ms = YEAR_2020_MS,
					     .to_ms = YEAR_2022_MS,
					     .policy = &policy};
	return rq;
}

static void build_verb(struct unit *unit, const struct kind_args *args, const struct schedule_verb_request *rq)
{
	struct arena *arena = kind_arena(args);
	struct schedule_verb verb;

	schedule_verb_init(&verb, rq, arena);
	kind_build_write(unit, args, &verb.task, /* named= */ NULL, arena);
}

static void put(struct unit *unit, const struct kind_args *args, const char *text)
{
	struct schedule_verb_request *rq = request(args, SCHEDULE_PUT);
	struct arena *arena = kind_arena(args);
	struct schedule_spec *spec = arena_zalloc(arena, sizeof *spec);
	struct hx_error err;
	struct strbuf canonical;
	struct json json;

	assert_non_null(spec);
	assert_int_equal(json_check(slice_str(text), &err, &json), HX_OK);
	if (schedule_spec_read(json, /* file= */ false, arena, &err, spec))
		fail_msg("%s", err.detail);
	spec->timing.zone = &zone_utc;
	strbuf_init(&canonical, 4096);
	schedule_spec_write(spec, &canonical);
	rq->text = arena_keep(arena, &canonical);
	rq->spec = spec;
	build_verb(unit, args, rq);
}

#define YEARLY(day) "{\"workflow\":\"order\",\"cron\":\"0 0 " day " 1 *\",\"catchUp\":\"all\",\"overlap\":\"queue\"}"

void schedule_make(struct unit *unit, const struct kind_args *args)
{
	struct schedule_row row = {.subject = args->subject,
				   .workspace = kind_workspace(args),
				   .name = slice_str("s"),
				   .requester = slice_str("me"),
				   .text = slice_str(YEARLY("1")),
				   .slot_at = INT64_C(4102444800000),
				   .due_at = INT64_C(4102444800000)};

	schedule_create(unit, &args->stamp, &row);
}

static const struct db_stmt stmt_late = {
	.name = "test_schedule_late",
	.sql = "UPDATE hx_schedule SET slot_at = ?2, due_at = ?2, revision = revision + 1 WHERE subject = ?1",
	.in = "ii",
	.out = "",
};

void schedule_late(struct unit *unit, const struct kind_args *args)
{
	unit_touch(unit, args->subject);
	UNIT_ADD(unit, UNIT_ANY, &stmt_late, db_int(args->subject), db_int(YEAR_2022_MS));
}

void schedule_put(struct unit *unit, const struct kind_args *args)
{
	put(unit, args, args->stamp.op % 2 ? YEARLY("2") : YEARLY("3"));
}

void schedule_look_at(struct unit *unit, const struct kind_args *args)
{
	struct arena *arena = kind_arena(args);
	struct schedule_look look;

	schedule_look_init(&look, args->subject, &policy, arena);
	kind_build_write(unit, args, &look.task, /* named= */ NULL, arena);
}

void schedule_pause(struct unit *unit, const struct kind_args *args)
{
	build_verb(unit, args, request(args, SCHEDULE_PAUSE));
}

void schedule_resume(struct unit *unit, const struct kind_args *args)
{
	build_verb(unit, args, request(args, SCHEDULE_RESUME));
}

void schedule_trigger(struct unit *unit, const struct kind_args *args)
{
	build_verb(unit, args, request(args, SCHEDULE_TRIGGER));
}

void schedule_fill_in(struct unit *unit, const struct kind_args *args)
{
	build_verb(unit, args, request(args, SCHEDULE_BACKFILL));
}

void schedule_delete_it(struct unit *unit, const struct kind_args *args)
{
	build_verb(unit, args, request(args, SCHEDULE_DELETE));
}

/* ---- hooks ---- */

static struct hook_seen *seen_of(const struct kind_args *args, const char *name)
{
	struct arena *arena = kind_arena(args);
	struct hook_seen *seen = arena_zalloc(arena, sizeof *seen);
	char hook[32];

	assert_non_null(seen);
	snprintf(hook, sizeof hook, "h%lld", (long long)args->subject);
	hook_seen_init(seen);
	seen->hook = arena_copy(arena, slice_str(hook));
	seen->names[0] = slice_str(name);
	seen->names[1] = slice_str("body/1");
	seen->n = 2;
	seen->keep_ms = args->lease_ms < 0 ? args->lease_ms : HOUR_MS;
	return seen;
}

/* Its op names its rows, so no two have the same. */
static struct stamp stamp_of(const struct kind_args *args)
{
	struct stamp stamp = args->stamp;

	stamp.op = kind_made(args->subject, args->stamp.op);
	return stamp;
}

void hook_nothing(struct unit *unit, const struct kind_args *args)
{
	struct stamp stamp = stamp_of(args);

	hook_build_seen(seen_of(args, "id/1"), &stamp, unit);
}

void hook_same_body(struct unit *unit, const struct kind_args *args)
{
	struct stamp stamp = stamp_of(args);

	hook_build_seen(seen_of(args, "id/2"), &stamp, unit);
}

void hook_start(struct unit *unit, const struct kind_args *args)
{
	struct stamp stamp = stamp_of(args);
	struct run_spec spec = {.subject = kind_made(args->subject, args->stamp.op),
				.workspace = kind_workspace(args),
				.requester = slice_str("me"),
				.key = slice_str("hook:h:1"),
				.machine = kind_machine_of(NULL, slice_str("order"), /* version= */ 1),
				.input = slice_str("{}")};

	hook_build_start(seen_of(args, "id/1"), &stamp, &spec, unit);
}

void hook_fire(struct unit *unit, const struct kind_args *args)
{
	struct stamp stamp = stamp_of(args);
	struct hook_fire fire = {.subject = kind_made(args->subject, args->stamp.op),
				 .workspace = kind_workspace(args),
				 .key = slice_str("hook:h:1"),
				 .payload = slice_str("{}")};

	hook_build_fire(seen_of(args, "id/1"), &stamp, &fire, unit);
}

static const struct db_stmt stmt_hook_n = {
	.name = "test_hook_n",
	.sql = "SELECT n FROM hx_hook_seen WHERE hook = 'h' || ?1 AND name = 'id/1'",
	.in = "i",
	.out = "i",
};

void hook_expire_old(struct unit *unit, const struct kind_args *args)
{
	struct arena *arena = kind_arena(args);
	struct unit *read = arena_alloc(arena, sizeof *read);
	const struct unit_result *result;

	assert_non_null(read);
	unit_init(read, /* op= */ 0);
	UNIT_ADD(read, UNIT_ANY, &stmt_hook_n, db_int(args->subject));
	result = kind_execute(args, read, arena);
	if (result->rows[0].n)
		hook_expire(unit, db_cell(&result->rows[0], 0, 0)->i, /* age_ms= */ 0);
}
