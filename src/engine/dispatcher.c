/* See dispatcher.h. */
#include "engine/dispatcher.h"

#include <stdlib.h>

#include "base/id.h"
#include "engine/engine.h"
#include "flow/hook.h"

#define JOB_BYTES_MAX (96u << 20)
#define JOB_POLL_MS 2000 /* for those that other nodes have made, should their notification be lost */
#define JOBS_SLICE 512
#define FIRE_TIMEOUT_MS 600000
#define UNKNOWN_REST_MS 1000 /* a definition that this node does not have yet is being fetched */

struct delivery {
	struct fed fed;
	struct job_run run;
};

static void dispatcher_scan_due(const struct due_source *source, struct unit *unit, int64_t limit)
{
	const struct dispatcher *d = source->context;

	job_scan_due(unit, limit, definitions_left_jobs(d->parts->definitions));
}

static void dispatcher_next_due(const struct due_source *source, struct unit *unit)
{
	const struct dispatcher *d = source->context;

	job_next_due(unit, definitions_left_jobs(d->parts->definitions));
}

/* Of a job that no definition has: the engine itself fires a step (api/api_fire.h), where it has a door to call. */
#define FIRE_ACTION(...)                                                                                               \
	{                                                                                                              \
		.name = HOOK_FIRE_ACTION, .workflow = "", .kind = ACTION_NATIVE, .effect = EFFECT_KEYED,               \
		.timeout_ms = FIRE_TIMEOUT_MS, .function = HOOK_FIRE_FUNCTION, __VA_ARGS__                             \
	}
static const struct action fire_action = FIRE_ACTION(.absent = false);
static const struct action fire_elsewhere = FIRE_ACTION(.absent = true);

static const struct action *action_of(const void *context, struct slice workflow, struct slice action, int64_t *version)
{
	const struct dispatcher *d = context;

	if (workflow.n == 0 && slice_is(action, HOOK_FIRE_ACTION)) {
		*version = 1;
		return natives_find(d->parts->definitions->natives, HOOK_FIRE_FUNCTION) ? &fire_action
											: &fire_elsewhere;
	}
	return definitions_action(d->parts->definitions, workflow, action, version);
}

static void dispatcher_tell(const struct delivery *delivery, enum hx_code code)
{
	struct dispatcher *d = delivery->fed.feeder->context;

	if (code == HX_OK) {
		atomic_fetch_add(&d->parts->metrics->jobs_delivered, 1);
		return;
	}
	/* CONFIG_ERROR: its definition is being brought; whoever cannot bring it says so, once. */
	if (code == HX_CLAIM_FAILED || code == HX_STOPPING || code == HX_CONFIG_ERROR)
		return;
	atomic_fetch_add(&d->parts->metrics->jobs_failed, 1);
	log_warn(d->parts->log, "a job was not delivered", log_text("id", id_text("job", delivery->run.subject).text),
		 log_text("code", hx_code_name(code)), log_int("attempt", delivery->run.attempt),
		 log_slice("error", delivery->run.error));
}

static void delivered(struct seat *seat, enum hx_code code)
{
	struct delivery *delivery = (struct delivery *)seat;

	dispatcher_tell(delivery, code);
	fed_end(&delivery->fed, code == HX_CONFIG_ERROR ? UNKNOWN_REST_MS : 0);
}

static bool dispatcher_deliver(void *context, int64_t subject)
{
	struct dispatcher *d = context;
	struct delivery *delivery = fed_new(&d->feeder, subject, sizeof *delivery, JOB_BYTES_MAX);

	if (!delivery)
		return false;
	job_run_init(&delivery->run, subject, &d->policy, action_of, d, &delivery->fed.arena);
	return fed_begin(&delivery->fed, &delivery->run.task, delivered);
}

enum hx_code dispatcher_start(struct dispatcher *d, const struct engine_parts *parts)
{
	static const struct feed feed = {
		{"jobs", JOB_TOPIC, JOB_POLL_MS, dispatcher_scan_due, dispatcher_next_due, NULL},
		DISPATCHER_JOBS_MAX,
		JOBS_SLICE,
		dispatcher_deliver};

	*d = (struct dispatcher){
		.parts = parts,
		.policy = {.attempts_max = 8, .first_ms = 1000, .max_ms = 300000, .lease_ms = parts->config->lease_ms},
	};
	return feeder_start(&d->feeder, &feed, parts->lanes, parts->clock, d, /* err= */ NULL);
}
