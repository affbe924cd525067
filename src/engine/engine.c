/* Wiring, in the order of engine.h, and tearing down in the reverse order. */
#include "engine/engine.h"

#include <stdlib.h>

#include "base/id.h"
#include "db/migrate.h"
#include "engine/definitions.h"
#include "engine/dispatcher.h"
#include "engine/janitors.h"

#define SEATS_MAX 20000
#define RESOLVE_MS 5000

struct engine {
	struct engine_options options;
	struct definitions definitions;
	struct outbound outbound;
	struct port *port;
	struct lanes lanes;
	struct entry_locks *entry_locks;
	struct janitors janitors;
	struct dispatcher dispatcher;
	struct engine_metrics metrics;
	bool dispatching;
	bool stopped;
};

/* ---- starting ---- */

static enum hx_code open_store(struct engine *e, struct db **ret_db, struct hx_error *err)
{
	struct db_options options = {.url = e->options.db_url, .clock = e->options.clock, .exclusive = true};
	struct migrate_status before;
	enum hx_code code = db_open(&options, ret_db, err);

	if (code)
		return code;
	code = e->options.no_migrate ? migrate_check(*ret_db, err) : migrate_run(*ret_db, &before, err);
	if (code) {
		db_close(*ret_db);
		*ret_db = NULL;
	}
	return code;
}

static enum hx_code load_definitions(struct engine *e, struct db *db, struct findings *findings, struct hx_error *err)
{
	struct direct_runner runner;

	direct_runner_init(&runner, db);
	return definitions_load(&e->definitions, e->options.workflows_dir, &runner.runner, e->options.clock,
				e->options.config, findings, err);
}

static enum hx_code start_actions(struct engine *e, struct hx_error *err)
{
	const struct config *config = e->options.config;
	struct port_options options = {.exec_enabled = config->exec_enabled, .outbound = &e->outbound};
	enum hx_code code = HX_OK;

	outbound_init(&e->outbound, e->options.loopback_allowed);
	for (size_t i = 0; i < config->outbound_n && !code; i++)
		code = outbound_allow(&e->outbound, slice_str(config->outbound_allow[i]), err);
	return code ? code : port_new(&options, &e->port, err);
}

static enum hx_code start_lanes(struct engine *e, struct db *db, struct hx_error *err)
{
	struct lane_options options = {
		.db = {.url = e->options.db_url, .clock = e->options.clock},
		.opened = db,
		.clock = e->options.clock,
		.node = e->options.node,
		.node_number = id_random_node(),
		.seats_max = SEATS_MAX,
		.resolve_ms = RESOLVE_MS,
		.act = port_act(e->port),
		.renew = subject_heartbeat,
	};

	return lanes_open(&e->lanes, &options, e->options.lanes_n, err);
}

/* A SQL store for entry locks is the engine's own: another one would be another thing to lose. */
static const char *entry_lock_url(const char *configured)
{
	bool sql = strncmp(configured, "sqlite:", 7) == 0 || strncmp(configured, "postgres", 8) == 0;

	return sql ? "sql:" : configured;
}

static enum hx_code start_services(struct engine *e, struct hx_error *err)
{
	enum hx_code code = entry_locks_new(entry_lock_url(e->options.config->entry_lock_store), &e->lanes,
					    e->options.clock, &e->entry_locks, err);

	if (!code && janitors_start(&e->janitors, &e->lanes, &e->definitions, e->options.config, &e->metrics,
				    e->options.log, e->options.clock))
		code = error_set(err, HX_INTERNAL, "the janitors cannot be started");
	if (!code && dispatcher_start(&e->dispatcher, &e->lanes, &e->definitions, &e->metrics, e->options.log,
				      e->options.config->lease_ms))
		code = error_set(err, HX_INTERNAL, "the dispatcher cannot be started");
	e->dispatching = !code;
	return code;
}

static enum hx_code start(struct engine *e, struct findings *findings, struct hx_error *err)
{
	struct db *db = NULL;
	enum hx_code code = open_store(e, &db, err);

	if (!code)
		code = load_definitions(e, db, findings, err);
	if (!code)
		code = start_actions(e, err);
	if (code) {
		db_close(db);
		return code;
	}
	code = start_lanes(e, db, err); /* takes the connection over */
	return code ? code : start_services(e, err);
}

enum hx_code engine_new(const struct engine_options *options, struct findings *findings, struct engine **ret,
			struct hx_error *err)
{
	struct engine *e = calloc(1, sizeof *e);
	enum hx_code code;

	if (!e)
		return error_set(err, HX_NO_MEMORY, "an engine");
	e->options = *options;
	definitions_init(&e->definitions);
	code = start(e, findings, err);
	if (code)
		engine_free(e);
	else
		*ret = e;
	return code;
}

void engine_stop(struct engine *engine, int64_t drain_ms)
{
	if (engine->stopped)
		return;
	engine->stopped = true;
	lanes_stop(&engine->lanes, drain_ms);
	port_stop(engine->port, /* grace_ms= */ 0);
}

void engine_free(struct engine *engine)
{
	if (!engine)
		return;
	engine_stop(engine, /* drain_ms= */ 0);
	entry_locks_free(engine->entry_locks);
	if (engine->dispatching)
		dispatcher_release(&engine->dispatcher);
	janitors_release(&engine->janitors);
	port_free(engine->port);
	lanes_close(&engine->lanes);
	definitions_release(&engine->definitions);
	free(engine);
}

/* ---- what others ask of it ---- */

const struct entity_machine *engine_machine(struct engine *engine, struct slice workflow)
{
	return definitions_find(&engine->definitions, workflow);
}

enum hx_code engine_put_definition(struct engine *engine, struct slice name, struct slice text,
				   struct findings *findings, int64_t *ret_version, struct hx_error *err)
{
	struct lane_runner runner;

	lane_runner_init(&runner, engine->lanes.lanes[0], strncmp(engine->options.db_url, "sqlite:", 7) != 0);
	return definitions_put(&engine->definitions, name, text, &runner.runner, engine->options.clock,
			       engine->options.config, findings, ret_version, err);
}

enum hx_code engine_reload(struct engine *engine, struct findings *findings, struct hx_error *err)
{
	struct lane_runner runner;

	lane_runner_init(&runner, engine->lanes.lanes[0], strncmp(engine->options.db_url, "sqlite:", 7) != 0);
	return definitions_load(&engine->definitions, engine->options.workflows_dir, &runner.runner,
				engine->options.clock, engine->options.config, findings, err);
}

void engine_each_machine(struct engine *engine, void (*fn)(void *, const struct entity_machine *, int64_t version),
			 void *context)
{
	definitions_each(&engine->definitions, fn, context);
}

enum hx_code engine_submit(struct engine *engine, uint64_t hash, struct seat *seat)
{
	return lane_submit(lanes_of(&engine->lanes, (int64_t)hash), seat);
}

struct entry_locks *engine_entry_locks(struct engine *engine)
{
	return engine->entry_locks;
}

int64_t engine_lease_ms(struct engine *engine, const struct entity_machine *machine)
{
	const struct module_config *module = config_module(engine->options.config, slice_str(machine->workflow->module));

	return module && module->janitor.declared ? module->janitor.stuck_after_ms : engine->options.config->lease_ms;
}

enum hx_code engine_sweep(struct engine *engine, struct slice module,
			  void (*done)(void *context, enum hx_code code, int64_t reverted, int64_t held), void *context)
{
	return janitors_sweep(&engine->janitors, module, done, context);
}

struct engine_metrics *engine_metrics(struct engine *engine)
{
	return &engine->metrics;
}

void engine_lane_stats(struct engine *engine, struct lane_stats *ret_stats)
{
	lanes_read_stats(&engine->lanes, ret_stats);
}

struct log *engine_log(struct engine *engine)
{
	return engine->options.log;
}

struct clock *engine_clock(struct engine *engine)
{
	return engine->options.clock;
}

const struct engine_options *engine_options_of(struct engine *engine)
{
	return &engine->options;
}
