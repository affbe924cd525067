/* See schedules.h. */
#include "engine/schedules.h"

#include <stdlib.h>

#include "base/id.h"
#include "engine/batches.h"
#include "engine/definitions.h"
#include "engine/engine.h"
#include "engine/runs.h"
#include "engine/zones.h"
#include "flow/batch_cancel.h"
#include "flow/run_verb.h"
#include "flow/schedule_look.h"
#include "flow/schedule_verb.h"
#include "model/load.h"

#define SLICE 64
#define UNDER_WAY_MAX (SLICE + FEEDER_RESTING_MAX)
#define LOOK_BYTES_MAX (64u << 20)
#define CANCEL_BYTES_MAX (96u << 20)

struct schedules {
	struct feeder feeder;
	struct schedule_policy policy;
	struct zones zones;
};

struct look {
	struct fed fed;
	struct schedule_look look;
};

/* What stands in the way of a slot, of overlap `cancel`. */
struct cancel {
	struct seat seat;
	union {
		struct run_verb run;
		struct batch_cancel batch;
	};
	struct run_verb_request rq;
	struct arena arena;
	struct schedules *schedules;
	bool of_batch;
};

/* ---- what a node knows ---- */

static const struct zone *zone_of(const void *context, struct slice name)
{
	const struct schedules *schedules = context;

	return zones_find((struct zones *)&schedules->zones, name);
}

#define BY_DEFINITIONS(name, type, ask)                                                                                \
	static type name(const void *context, struct slice named)                                                      \
	{                                                                                                              \
		return ask(((const struct schedules *)context)->feeder.parts->definitions, named);                     \
	}
BY_DEFINITIONS(run_of, const struct run_machine *, definitions_run)
BY_DEFINITIONS(batch_of, const struct batch_machine *, definitions_batch)
BY_DEFINITIONS(fires, bool, definitions_find)
BY_DEFINITIONS(may_be_function, bool, definitions_may_be_function)
BY_DEFINITIONS(function_of, const struct run_machine *, definitions_function)

/* ---- cancelling ---- */

static void cancelled(struct seat *seat, enum hx_code code)
{
	struct cancel *cancel = (struct cancel *)seat;

	/* Whatever became of it, the next look sees. What was seized is torn down here, or lapses. */
	if (!code && cancel->of_batch && cancel->batch.seized)
		(void)batches_tear_down(cancel->schedules->feeder.parts->batches, &cancel->batch.hold, /* done= */ NULL,
					NULL);
	arena_release(&cancel->arena);
	free(cancel);
}

static void start_cancel(struct schedules *schedules, struct slice workspace, int64_t subject, bool of_batch)
{
	struct cancel *cancel = calloc(1, sizeof *cancel);
	struct task *task = cancel ? of_batch ? &cancel->batch.task : &cancel->run.task : NULL;

	if (!cancel)
		return;
	arena_init(&cancel->arena, CANCEL_BYTES_MAX);
	cancel->schedules = schedules;
	cancel->of_batch = of_batch;
	workspace = arena_copy(&cancel->arena, workspace);
	cancel->rq = (struct run_verb_request){.kind = RUN_CANCEL,
					       .workspace = workspace,
					       .subject = subject,
					       .policy = schedules->feeder.parts->run_policy};
	if (of_batch)
		batch_cancel_init(&cancel->batch, workspace, subject, schedules->feeder.parts->batch_policy,
				  &cancel->arena);
	else
		run_verb_init(&cancel->run, &cancel->rq, &cancel->arena);
	cancel->seat = (struct seat){.task = task, .done = cancelled};
	if (!workspace.p || lane_submit_own(lanes_of(schedules->feeder.parts->lanes, subject), &cancel->seat)) {
		arena_release(&cancel->arena);
		free(cancel);
	}
}

/* ---- looking ---- */

static void tell_trouble(struct schedules *schedules, const struct schedule_look *look)
{
	char id[ID_TEXT_BYTES];

	id_format("sched", look->subject, id);
	if (feeder_may_tell(&schedules->feeder))
		log_warn(schedules->feeder.parts->log, "a schedule cannot start its slot: it is tried again",
			 log_text("id", id), log_slice("name", look->row.name),
			 log_slice("workflow", look->row.spec.workflow), log_text("why", look->trouble));
}

static void schedules_tell(struct schedules *schedules, const struct schedule_look *look, enum hx_code code)
{
	struct engine_metrics *metrics = schedules->feeder.parts->metrics;
	struct log *log = schedules->feeder.parts->log;
	char id[ID_TEXT_BYTES];

	atomic_fetch_add(&metrics->slots_started, (uint64_t)look->started);
	atomic_fetch_add(&metrics->slots_skipped, (uint64_t)look->skipped);
	atomic_fetch_add(&metrics->slots_missed, (uint64_t)look->missed);
	if (look->started)
		atomic_store(&metrics->schedule_lateness_ms, (uint64_t)look->late_ms);
	id_format("sched", look->subject, id);
	if (look->missed)
		log_warn(log, "slots of a schedule were missed, and are not made up for", log_text("id", id),
			 log_slice("name", look->row.name), log_int("slots", look->missed));
	if (code == HX_CONFIG_ERROR)
		tell_trouble(schedules, look);
	else if (code && code != HX_STOPPING)
		log_warn(log, "a schedule was not looked at", log_text("id", id), log_text("code", hx_code_name(code)));
}

static void looked(struct seat *seat, enum hx_code code)
{
	struct look *look = (struct look *)seat;
	struct schedules *schedules = look->fed.feeder->context;

	schedules_tell(schedules, &look->look, code);
	for (size_t i = 0; !code && i < look->look.cancels_n; i++)
		start_cancel(schedules, look->look.row.workspace, look->look.cancels[i].subject,
			     look->look.cancels[i].batch);
	fed_end(&look->fed, look->look.rested ? 0 : feeder_rest_ms(code));
}

static bool schedules_begin(void *context, struct due due)
{
	struct schedules *schedules = context;
	struct look *look = fed_new(&schedules->feeder, due.subject, sizeof *look, LOOK_BYTES_MAX);

	if (!look)
		return false;
	schedule_look_init(&look->look, due.subject, &schedules->policy, &look->fed.arena);
	return fed_begin(&look->fed, &look->look.task, looked);
}

/* ---- files ---- */

#define FILES_BYTES_MAX (256u << 20)

struct put {
	struct seat seat;
	struct schedule_verb verb;
	struct schedule_verb_request rq;
	struct schedule_spec spec;
	struct arena arena;
	struct schedules *schedules;
};

static void put_done(struct seat *seat, enum hx_code code)
{
	struct put *put = (struct put *)seat;
	struct log *log = put->schedules->feeder.parts->log;

	if (code)
		log_error(log, "a schedule of the folder was not put", log_slice("name", put->rq.name),
			  log_text("code", hx_code_name(code)));
	else if (put->verb.changed)
		log_info(log, "a schedule of the folder is in force", log_slice("name", put->rq.name));
	arena_release(&put->arena);
	free(put);
}

/* The spec is read anew from its text: the file's goes with its arena. */
static bool schedules_read_again(struct put *put, const struct schedule_file *file)
{
	struct json root;

	put->rq.name = arena_copy(&put->arena, file->name);
	put->rq.text = arena_copy(&put->arena, file->text);
	if (put->arena.failed || json_check(put->rq.text, /* err= */ NULL, &root) ||
	    schedule_spec_read(root, /* file= */ false, &put->arena, /* err= */ NULL, &put->spec))
		return false;
	put->spec.paused_given = file->spec.paused_given;
	put->spec.paused = file->spec.paused;
	put->spec.timing.zone = zones_find(&put->schedules->zones, put->spec.timezone);
	return put->spec.timing.zone != NULL;
}

static void put_file(struct schedules *schedules, const struct schedule_file *file)
{
	struct put *put = calloc(1, sizeof *put);

	if (!put)
		return;
	arena_init(&put->arena, LOOK_BYTES_MAX);
	put->schedules = schedules;
	put->rq = (struct schedule_verb_request){.kind = SCHEDULE_PUT,
						 .workspace = slice_str("default"),
						 .requester = slice_str("default"),
						 .spec = &put->spec,
						 .policy = &schedules->policy};
	if (schedules_read_again(put, file)) {
		schedule_verb_init(&put->verb, &put->rq, &put->arena);
		put->seat = (struct seat){.task = &put->verb.task, .done = put_done};
		if (lane_submit_own(schedules->feeder.parts->lanes->lanes[0], &put->seat) == HX_OK)
			return;
	}
	log_error(schedules->feeder.parts->log, "a schedule of the folder was not put: is its timezone there?",
		  log_text("file", file->file));
	arena_release(&put->arena);
	free(put);
}

void schedules_apply(struct schedules *schedules, const char *dir)
{
	struct definition_set *set = dir ? calloc(1, sizeof *set) : NULL;
	struct findings findings;

	if (!set)
		return;
	LOCAL_ARENA(arena, FILES_BYTES_MAX);
	findings_init(&findings, &arena);
	definition_set_load(dir, &arena, &findings, set);
	for (size_t i = 0; i < set->schedules_n; i++)
		put_file(schedules, set->schedules[i]);
	free(set);
}

static void schedules_prepare(void *part, struct engine_parts *parts)
{
	struct schedules *schedules = part;

	zones_init(&schedules->zones);
	schedules->policy = (struct schedule_policy){zone_of, run_of,          batch_of,   schedules,
						     fires,   may_be_function, function_of};
	parts->schedules = schedules;
	parts->schedule_policy = &schedules->policy;
}

static void schedules_release(void *part)
{
	zones_release(&((struct schedules *)part)->zones);
}

const struct feed schedules_feed = {&schedule_due_source,
				    UNDER_WAY_MAX,
				    SLICE,
				    schedules_begin,
				    .size = sizeof(struct schedules),
				    .prepare = schedules_prepare,
				    .release = schedules_release};
