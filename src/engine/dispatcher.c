/* See dispatcher.h. */
#include "engine/dispatcher.h"

#include <stdlib.h>

#include "base/id.h"
#include "engine/engine.h"

#define JOB_BYTES_MAX (96u << 20)

struct delivery {
	struct seat seat;
	struct job_run run;
	struct arena arena;
	struct dispatcher *dispatcher;
};

static bool watch_again(struct dispatcher *d, bool pause);

static const struct action *action_of(const void *context, struct slice workflow, struct slice action)
{
	const struct dispatcher *d = context;

	return definitions_action(d->definitions, workflow, action);
}

static bool is_under_way(const struct dispatcher *d, int64_t subject)
{
	for (size_t i = 0; i < d->under_way_n; i++)
		if (d->under_way[i] == subject)
			return true;
	return false;
}

static void forget(struct dispatcher *d, int64_t subject)
{
	for (size_t i = 0; i < d->under_way_n; i++)
		if (d->under_way[i] == subject) {
			d->under_way[i] = d->under_way[--d->under_way_n];
			return;
		}
}

static void tell(const struct delivery *delivery, enum hx_code code)
{
	struct dispatcher *d = delivery->dispatcher;
	char id[ID_TEXT_BYTES];

	if (code == HX_OK) {
		atomic_fetch_add(&d->metrics->jobs_delivered, 1);
		return;
	}
	if (code == HX_CLAIM_FAILED || code == HX_STOPPING)
		return;
	atomic_fetch_add(&d->metrics->jobs_failed, 1);
	id_format("job", delivery->run.subject, id);
	log_warn(d->log, "a job was not delivered", log_text("id", id), log_text("code", hx_code_name(code)),
		 log_int("attempt", delivery->run.attempt), log_slice("error", delivery->run.error));
}

static void delivered(struct seat *seat, enum hx_code code)
{
	struct delivery *delivery = (struct delivery *)seat;
	struct dispatcher *d = delivery->dispatcher;

	tell(delivery, code);
	pthread_mutex_lock(&d->mutex);
	forget(d, delivery->run.subject);
	pthread_mutex_unlock(&d->mutex);
	arena_release(&delivery->arena);
	free(delivery);
	if (code != HX_STOPPING)
		(void)watch_again(d, /* pause= */ false);
}

static bool deliver(struct dispatcher *d, int64_t subject)
{
	struct delivery *delivery = calloc(1, sizeof *delivery);

	if (!delivery)
		return false;
	delivery->dispatcher = d;
	arena_init(&delivery->arena, JOB_BYTES_MAX);
	job_run_init(&delivery->run, subject, &d->policy, action_of, d, &delivery->arena);
	delivery->seat = (struct seat){.task = &delivery->run.task, .done = delivered};
	if (lane_submit_own(lanes_of(d->lanes, subject), &delivery->seat)) {
		free(delivery);
		return false;
	}
	return true;
}

/* The watch has found some. Those that are not under way here are started. */
static void found(struct seat *seat, enum hx_code code)
{
	struct dispatcher *d = (struct dispatcher *)((char *)seat - offsetof(struct dispatcher, seat));

	pthread_mutex_lock(&d->mutex);
	d->watching = false;
	for (size_t i = 0; code == HX_OK && i < d->watch.found_n && d->under_way_n < DISPATCHER_JOBS_MAX; i++)
		if (!is_under_way(d, d->watch.found[i]) && deliver(d, d->watch.found[i]))
			d->under_way[d->under_way_n++] = d->watch.found[i];
	pthread_mutex_unlock(&d->mutex);
	/* Whatever went wrong, jobs still fall due. Then it looks at once: a pause may be what could not be had. */
	if (code != HX_STOPPING)
		(void)watch_again(d, /* pause= */ code == HX_OK);
}

/* Starts the watch unless it runs, or as much is under way as may be. False: the lane ends, and nothing is under way. */
static bool watch_again(struct dispatcher *d, bool pause)
{
	bool alive;

	pthread_mutex_lock(&d->mutex);
	if (!d->watching && d->under_way_n < DISPATCHER_JOBS_MAX) {
		job_watch_init(&d->watch, JOB_WATCH_MAX, pause);
		/* Refused only when the lane ends. */
		d->watching = lane_submit_own(d->lanes->lanes[0], &d->seat) == HX_OK;
	}
	alive = d->watching || d->under_way_n > 0;
	pthread_mutex_unlock(&d->mutex);
	return alive;
}

enum hx_code dispatcher_start(struct dispatcher *d, struct lanes *lanes, struct definitions *definitions,
			      struct engine_metrics *metrics, struct log *log, int64_t lease_ms)
{
	*d = (struct dispatcher){
		.lanes = lanes,
		.definitions = definitions,
		.metrics = metrics,
		.log = log,
		.policy = {.attempts_max = 8, .first_ms = 1000, .max_ms = 300000, .lease_ms = lease_ms},
	};
	d->seat = (struct seat){.task = &d->watch.task, .done = found};
	pthread_mutex_init(&d->mutex, NULL);
	return watch_again(d, /* pause= */ false) ? HX_OK : HX_STOPPING;
}

void dispatcher_release(struct dispatcher *d)
{
	pthread_mutex_destroy(&d->mutex);
}
