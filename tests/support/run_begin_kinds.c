/* Runs that are made by the task that drives them, and begun with that: see run_kinds.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "flow/run_drive.h"
#include "model/text.h"
#include "support/run_kinds.h"

static const struct run_policy policy = {.lease_ms = 3600000, .machine_of = kind_machine_of};

static void nothing_in_front(const struct single *single, struct unit *unit)
{
	(void)single, (void)unit;
}

/* The version of the run of that number; 0: there is none. */
static int64_t version_of(const struct kind_args *args)
{
	struct unit unit;
	const struct unit_result *result;

	unit_init(&unit, /* op= */ 0);
	run_read(&unit, kind_workspace(args), args->subject);
	result = kind_execute(args, &unit, kind_arena(args));
	return result->rows[0].n ? db_cell(&result->rows[0], 0, RUN_VERSION)->i : 0;
}

static void begin(struct unit *unit, const struct kind_args *args, const char *key)
{
	struct run_spec spec = {.workspace = kind_workspace(args),
				.requester = slice_str("me"),
				.key = slice_str(key),
				.machine = kind_machine_of(/* context= */ NULL, slice_str("order"), 1),
				.input = slice_str("{}")};
	struct single maker = {.build = nothing_in_front};
	struct arena *arena = kind_arena(args);
	struct run_drive d;

	run_drive_init_making(&d, &maker, &spec, &policy, arena);
	kind_build_write(unit, args, &d.task, /* named= */ NULL, arena);
	assert_true(d.goes_along);
}

void run_begin_key(struct unit *unit, const struct kind_args *args)
{
	if (version_of(args) <= 1)
		begin(unit, args, "key");
}

void run_begin_own(struct unit *unit, const struct kind_args *args)
{
	if (!version_of(args))
		begin(unit, args, text_printf(kind_arena(args), "own%lld", (long long)args->stamp.op));
}
