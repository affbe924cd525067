/* See dispatcher.h. */
#include "engine/dispatcher.h"

#include "base/id.h"
#include "engine/definitions.h"
#include "engine/engine.h"
#include "flow/hook.h"

#define JOB_BYTES_MAX (96u << 20)
#define JOBS_SLICE 128
#define FIRE_TIMEOUT_MS 600000
#define UNKNOWN_REST_MS 1000 /* a definition that this node does not have yet is being fetched */

struct dispatcher {
	struct feeder feeder;
	struct job_policy policy;
};

struct delivery {
	struct fed fed;
	struct job_run run;
};

static struct slice left_jobs(const void *context)
{
	const struct dispatcher *d = context;

	return definitions_left_jobs(d->feeder.parts->definitions);
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
		return natives_find(d->feeder.parts->definitions->natives, HOOK_FIRE_FUNCTION) ? &fire_action
											       : &fire_elsewhere;
	}
	return definitions_action(d->feeder.parts->definitions, workflow, action, version);
}

static void dispatcher_tell(const struct delivery *delivery, enum hx_code code)
{
	struct dispatcher *d = delivery->fed.feeder->context;

	atomic_fetch_add(&d->feeder.parts->metrics->jobs_in_line, delivery->run.in_line);
	if (code == HX_OK) {
		atomic_fetch_add(&d->feeder.parts->metrics->jobs_delivered, 1);
		return;
	}
	/* CONFIG_ERROR: its definition is being brought; whoever cannot bring it says so, once. */
	if (code == HX_CLAIM_FAILED || code == HX_STOPPING || code == HX_CONFIG_ERROR)
		return;
	atomic_fetch_add(&d->feeder.parts->metrics->jobs_failed, 1);
	log_warn(d->feeder.parts->log, "a job was not delivered",
		 log_text("id", id_text("job", delivery->run.subject).text), log_text("code", hx_code_name(code)),
		 log_int("attempt", delivery->run.attempt), log_slice("error", delivery->run.error));
}

static void delivered(struct seat *seat, enum hx_code code)
{
	struct delivery *delivery = (struct delivery *)seat;

	dispatcher_tell(delivery, code);
	fed_end(&delivery->fed, code == HX_CONFIG_ERROR ? UNKNOWN_REST_MS : 0);
}

static bool dispatcher_deliver(void *context, struct due due)
{
	struct dispatcher *d = context;
	struct delivery *delivery = fed_new(&d->feeder, due.subject, sizeof *delivery, JOB_BYTES_MAX);

	if (!delivery)
		return false;
	job_run_init(&delivery->run, due.subject, &d->policy, action_of, d, &delivery->fed.arena);
	return fed_begin(&delivery->fed, &delivery->run.task, delivered);
}

static void dispatcher_prepare(void *part, struct engine_parts *parts)
{
	((struct dispatcher *)part)->policy = (struct job_policy){
		.attempts_max = 8, .first_ms = 1000, .max_ms = 300000, .lease_ms = parts->config->lease_ms};
}

const struct feed dispatcher_feed = {&job_due_source,
				     DISPATCHER_JOBS_MAX,
				     JOBS_SLICE,
				     dispatcher_deliver,
				     left_jobs,
				     .size = sizeof(struct dispatcher),
				     .prepare = dispatcher_prepare};
