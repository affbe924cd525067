/*
 * The recurring sweeps: one janitor per module that declares one, and the engine's own for runs, batches and jobs.
 *
 * Each is a seat that, when its sweep is done, is set to sleep until its next one. Rules are made afresh before each
 * sweep, so a changed definition counts from the next sweep on. Several nodes may sweep the same module: of two
 * that see the same claim, one wins.
 */
#pragma once

#include <stdatomic.h>

#include "base/log.h"
#include "engine/definitions.h"
#include "engine/lapse.h"
#include "flow/janitor.h"
#include "task/lanes.h"

struct module_janitor;

#define JANITOR_BUDGET 1000
/* The engine's own sweeps four times in a lease, within these bounds: a takeover comes soon after the lease lapses. */
#define JANITOR_OWN_EVERY_MS_MIN 250
#define JANITOR_OWN_EVERY_MS_MAX 1000 /* workers choose leases of their own, and those may be short */

struct janitors {
	const struct engine_parts *parts;
	_Atomic(const struct config *) config; /* the last one that was taken into force */
	pthread_mutex_t mutex;                 /* over the list: those that are gone leave it in a lane's thread */
	struct module_janitor *first;
	_Atomic size_t recoveries_n; /* probes of stuck claims under way */
	struct lapses lapses;
};

/* Starts them all; sweep_ms: how often the engine's own looks, 0: by the lease of the configuration. */
enum hx_code janitors_start(struct janitors *janitors, const struct engine_parts *parts,
			    int64_t sweep_ms) HX_MUST_CHECK;
/*
 * Another configuration, in two steps, between which it may turn out that it cannot be: all that needs memory, and nothing that can
 * fail. A janitor that is to sweep at another pace is another janitor; the one before ends with its next sweep, which harms
 * nobody. HX_NO_MEMORY: nothing has changed.
 */
enum hx_code janitors_plan(struct janitors *janitors, const struct config *config,
			   struct module_janitor **ret_fresh) HX_MUST_CHECK;
void janitors_adopt(struct janitors *janitors, const struct config *config, struct module_janitor *fresh);
void janitors_forget_plan(struct module_janitor *fresh);
/* After the lanes have stopped. */
void janitors_release(struct janitors *janitors);
/* One sweep of a module at once. HX_NOT_FOUND: no such module. */
enum hx_code janitors_sweep(struct janitors *janitors, struct slice module,
			    void (*done)(void *context, enum hx_code code, int64_t reverted, int64_t held),
			    void *context);
