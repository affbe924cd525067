/*
 * The recurring sweeps: one janitor per module that declares one, and the engine's own for jobs.
 *
 * Each is a seat that, when its sweep is done, is set to sleep until its next one. Rules are made afresh before each
 * sweep, so a changed definition counts from the next sweep on. Several nodes may sweep the same module: of two
 * that see the same claim, one wins.
 */
#ifndef HX_ENGINE_JANITORS_H
#define HX_ENGINE_JANITORS_H

#include <stdatomic.h>

#include "base/log.h"
#include "engine/definitions.h"
#include "flow/janitor.h"
#include "task/lanes.h"

struct engine_metrics;

#define JANITOR_BUDGET 1000
#define JANITOR_JOBS_EVERY_MS 5000

struct janitors {
	struct lanes *lanes;
	struct definitions *definitions;
	const struct config *config;
	struct engine_metrics *metrics;
	struct log *log;
	struct clock *clock;
	struct module_janitor *first;
	_Atomic size_t recoveries_n; /* probes of stuck claims under way */
};

/* Starts them all. */
enum hx_code janitors_start(struct janitors *janitors, struct lanes *lanes, struct definitions *definitions,
			    const struct config *config, struct engine_metrics *metrics, struct log *log,
			    struct clock *clock) HX_MUST_CHECK;
/* After the lanes have stopped. */
void janitors_release(struct janitors *janitors);
/* One sweep of a module at once. HX_NOT_FOUND: no such module. */
enum hx_code janitors_sweep(struct janitors *janitors, struct slice module,
			    void (*done)(void *context, enum hx_code code, int64_t reverted, int64_t held),
			    void *context);

#endif
