/*
 * The dispatcher: finds due jobs, claims and delivers them, a bounded number at a time.
 *
 *   watch (flow/job_watch.h) ─ ids ─▶ a job_run for each that is not under way here ─ done ─▶ watch again
 *
 * The watch rests only while as many jobs are under way as may be; the first that ends starts it again.
 */
#ifndef HX_ENGINE_DISPATCHER_H
#define HX_ENGINE_DISPATCHER_H

#include "base/log.h"
#include "engine/definitions.h"
#include "flow/job.h"
#include "flow/job_watch.h"
#include "task/lanes.h"

struct engine_metrics;

#define DISPATCHER_JOBS_MAX 64

struct dispatcher {
	struct lanes *lanes;
	struct definitions *definitions;
	struct engine_metrics *metrics;
	struct log *log;
	struct job_policy policy;
	struct seat seat;
	struct job_watch watch;
	pthread_mutex_t mutex; /* over what follows: jobs end in any lane's thread */
	bool watching;
	size_t under_way_n;
	int64_t under_way[DISPATCHER_JOBS_MAX];
};

enum hx_code dispatcher_start(struct dispatcher *d, struct lanes *lanes, struct definitions *definitions,
			      struct engine_metrics *metrics, struct log *log, int64_t lease_ms) HX_MUST_CHECK;
/* After the lanes have stopped. */
void dispatcher_release(struct dispatcher *d);

#endif
