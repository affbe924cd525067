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
	struct fed fed;
	struct function_look look;
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
	const struct engine_parts *parts = ((struct functions *)look->fed.feeder->context)->parts;
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

	tell(look, code);
	fed_end(&look->fed, feeder_rest_ms(code));
}

static bool begin(void *context, int64_t subject)
{
	struct functions *functions = context;
	struct look *look = fed_new(&functions->feeder, subject, sizeof *look, LOOK_BYTES_MAX);

	if (!look)
		return false;
	function_look_init(&look->look, subject, &look->fed.arena);
	return fed_begin(&look->fed, &look->look.task, looked);
}

void functions_look_at(struct functions *functions, int64_t subject)
{
	feeder_offer(&functions->feeder, subject);
}

enum hx_code functions_start(const struct engine_parts *parts, struct functions **ret, struct hx_error *err)
{
	static const struct feed feed = {
		{"functions", FUNCTION_TOPIC, POLL_MS, scan_due, next_due, NULL}, UNDER_WAY_MAX, SLICE, begin};
	struct functions *functions = calloc(1, sizeof *functions);
	enum hx_code code;

	if (!functions)
		return error_set(err, HX_NO_MEMORY, "the functions");
	functions->parts = parts;
	code = feeder_start(&functions->feeder, &feed, parts->lanes, parts->clock, functions, err);
	return HAND_OVER(code, functions, functions_free, ret);
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
