/* See functions.h. */
#include "engine/functions.h"

#include "base/id.h"
#include "engine/engine.h"

#define LOOK_BYTES_MAX (192u << 20)
#define SLICE 256
#define UNDER_WAY_MAX (SLICE + FEEDER_RESTING_MAX)

struct functions {
	struct feeder feeder;
};

struct look {
	struct fed fed;
	struct function_look look;
};

static void tell(const struct look *look, enum hx_code code)
{
	const struct engine_parts *parts = look->fed.feeder->parts;
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

static bool begin(void *context, struct due due)
{
	struct functions *functions = context;
	struct look *look = fed_new(&functions->feeder, due.subject, sizeof *look, LOOK_BYTES_MAX);

	if (!look)
		return false;
	function_look_init(&look->look, due.subject, &look->fed.arena);
	return fed_begin(&look->fed, &look->look.task, looked);
}

void functions_look_at(struct functions *functions, int64_t subject)
{
	feeder_offer(&functions->feeder, subject);
}

static void prepare(void *part, struct engine_parts *parts)
{
	parts->functions = part;
}

const struct feed functions_feed = {&function_due_source, UNDER_WAY_MAX, SLICE, begin, .size = sizeof(struct functions),
				    .prepare = prepare};
