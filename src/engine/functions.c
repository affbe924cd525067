/* See functions.h. */
#include "engine/functions.h"

#include <stdlib.h>

#include "base/id.h"
#include "engine/engine.h"
#include "engine/feeder.h"

#define LOOK_BYTES_MAX (192u << 20)
#define POLL_MS 2000 /* for what other nodes have made due, should their notification be lost */
#define SLICE 256
#define UNDER_WAY_MAX (SLICE + FEEDER_RESTING_MAX)

struct functions {
	const struct engine_parts *parts;
	struct feeder feeder;
};

struct look {
	struct seat seat;
	struct function_look look;
	struct arena arena;
	struct functions *functions;
};

static void scan_due(const struct due_source *source UNUSED, struct unit *unit, int64_t limit)
{
	function_scan_due(unit, limit);
}

static void next_due(const struct due_source *source UNUSED, struct unit *unit)
{
	function_next_due(unit);
}

static void tell(const struct look *look, enum hx_code code)
{
	const struct engine_parts *parts = look->functions->parts;
	const struct function_work *work = &look->look.work;
	char id[ID_TEXT_BYTES];

	id_format("run", look->look.subject, id);
	if (code == HX_OK && look->look.lapsed) {
		atomic_fetch_add(&parts->metrics->janitor_reverts, 1);
		log_warn(parts->log, "a turn was ended: its worker's lease was over", log_text("id", id),
			 log_slice("function", work->row.name), log_slice("worker", work->row.worker),
			 log_text("status", work->to));
	}
	if (code == HX_OK && look->look.ended)
		tally_add(&parts->metrics->runs_ended, TALLY_FUNCTIONS, work->to);
	if (code && code != HX_STOPPING && code != HX_NOT_FOUND && code != HX_RUN_EXPIRED)
		log_warn(parts->log, "a function was not looked at", log_text("id", id),
			 log_text("code", hx_code_name(code)));
}

static void looked(struct seat *seat, enum hx_code code)
{
	struct look *look = (struct look *)seat;
	struct functions *functions = look->functions;
	int64_t subject = look->look.subject;

	tell(look, code);
	arena_release(&look->arena);
	free(look);
	feeder_ended(&functions->feeder, subject, feeder_rest_ms(code));
}

static bool begin(void *context, int64_t subject)
{
	struct functions *functions = context;
	struct look *look = calloc(1, sizeof *look);

	if (!look)
		return false;
	look->functions = functions;
	arena_init(&look->arena, LOOK_BYTES_MAX);
	function_look_init(&look->look, subject, &look->arena);
	look->seat = (struct seat){.task = &look->look.task, .done = looked};
	if (lane_submit_own(lanes_of(functions->parts->lanes, subject), &look->seat) == HX_OK)
		return true;
	free(look);
	return false;
}

void functions_look_at(struct functions *functions, int64_t subject)
{
	if (feeder_take(&functions->feeder, subject) && !begin(functions, subject))
		feeder_ended(&functions->feeder, subject, /* rest_ms= */ 0);
}

enum hx_code functions_start(const struct engine_parts *parts, struct functions **ret, struct hx_error *err)
{
	struct functions *functions = calloc(1, sizeof *functions);
	struct feeder_options feed = {
		.lanes = parts->lanes,
		.clock = parts->clock,
		.source = {"functions", FUNCTION_TOPIC, POLL_MS, scan_due, next_due, functions},
		.under_way_max = UNDER_WAY_MAX,
		.slice = SLICE,
		.begin = begin,
		.context = functions,
	};

	if (!functions)
		return error_set(err, HX_NO_MEMORY, "the functions");
	functions->parts = parts;
	if (feeder_start(&functions->feeder, &feed)) {
		free(functions);
		return error_set(err, HX_NO_MEMORY, "the functions");
	}
	*ret = functions;
	return HX_OK;
}

void functions_close(struct functions *functions)
{
	if (functions)
		feeder_close(&functions->feeder);
}

void functions_free(struct functions *functions)
{
	if (!functions)
		return;
	feeder_release(&functions->feeder);
	free(functions);
}
