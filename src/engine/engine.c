/* Wiring, in the order of engine.h, and tearing down in the reverse order. */
#include "engine/engine.h"

#include <stdlib.h>

#include "base/utf8.h"
#include "db/migrate.h"
#include "engine/alone.h"
#include "engine/backlog.h"
#include "engine/batches.h"
#include "engine/bulks.h"
#include "engine/changers.h"
#include "engine/definitions.h"
#include "engine/dispatcher.h"
#include "engine/fences.h"
#include "engine/functions.h"
#include "engine/janitors.h"
#include "engine/keyring.h"
#include "engine/nodes.h"
#include "engine/notify.h"
#include "engine/readers.h"
#include "engine/retention.h"
#include "engine/run_asked.h"
#include "engine/runs.h"
#include "engine/schedules.h"
#include "gate/sweeper.h"

#define SEATS_MAX 20000
#define RESOLVE_MS 5000
#define GATE_SWEEP_EVERY_MS 60000
#define STORE_LOOK_MS 1000 /* on an idle node nobody else would notice that the store is lost */

/* In the order in which they start; each may count on those before it. They are closed and freed alike (feeder.h). */
static const struct feed *const feeds[] = {&dispatcher_feed, &runs_feed,      &run_asked_feed, &functions_feed,
					   &batches_feed,    &schedules_feed, &bulks_feed};
#define FEEDS_N (sizeof feeds / sizeof *feeds)

struct engine {
	struct engine_options options;
	struct definitions definitions;
	struct outbound outbound;
	struct secret_rules secret_rules; /* as at the start */
	struct engine_parts parts;
	struct lanes lanes;
	struct gate_sweeper *gate_sweeper;
	struct nodes nodes;
	_Atomic int64_t fence_floor; /* fences.h */
	struct notify *notify;       /* NULL on SQLite: there is no other node */
	struct janitors janitors;
	struct feeder *fed[FEEDS_N]; /* those that were started */
	struct retention *retention;
	struct changers changers; /* and the configuration in force */
	struct backlog backlog;
	struct engine_metrics metrics;
	bool joined, stopped;
	bool store_is_old; /* made by version 0.1, as a store */
};

static bool on_postgres(const struct engine *e)
{
	return e->changers.on_postgres;
}

/* ---- starting ---- */

static enum hx_code engine_open_store(struct engine *e, struct db **ret_db, struct hx_error *err)
{
	struct db_options options = {.url = e->options.db_url,
				     .clock = e->options.clock,
				     .exclusive = true,
				     .sql_role = e->options.config->sql_role};
	struct migrate_status status;
	enum hx_code code = db_open(&options, ret_db, err);

	if (code)
		return code;
	code = e->options.no_migrate ? migrate_check(*ret_db, err) : migrate_run(*ret_db, &status, err);
	if (!code)
		code = migrate_read_status(*ret_db, &status, err);
	e->store_is_old = !code && migrate_is_old(&status);
	if (code) {
		db_close(*ret_db);
		*ret_db = NULL;
	}
	return code;
}

static enum hx_code load_definitions(struct engine *e, struct db *db, struct findings *findings, struct hx_error *err)
{
	struct direct_runner runner;
	enum hx_code code;

	direct_runner_init(&runner, db);
	code = definitions_load(&e->definitions, e->options.workflows_dir, &runner.runner, e->options.clock,
				e->options.config, findings, err);
	e->definitions.log = e->options.log; /* at the start all of them come, and that is no news */
	return code;
}

static enum hx_code start_actions(struct engine *e, struct hx_error *err)
{
	const struct config *config = e->options.config;
	struct port_options options = {
		.exec_enabled = config->exec_enabled,
		.outbound = &e->outbound,
		.secret_rules = &e->secret_rules,
		.natives = e->options.natives,
		.native_slots = e->options.native_slots,
		.fence_floor = &e->fence_floor,
	};
	enum hx_code code = HX_OK;

	e->secret_rules = config->secrets;
	outbound_init(&e->outbound, e->options.loopback_allowed && !keyring_has_keys(e->parts.keyring));
	for (size_t i = 0; i < config->outbound_n && !code; i++)
		code = outbound_allow(&e->outbound, slice_str(config->outbound_allow[i]), err);
	return code ? code : port_new(&options, &e->parts.port, err);
}

static enum hx_code start_notify(struct engine *e, struct hx_error *err)
{
	struct notify_options options = {
		.url = e->options.db_url,
		.token = e->nodes.token,
		.clock = e->options.clock,
		.log = e->options.log,
		.metrics = &e->metrics,
	};

	return on_postgres(e) ? notify_new(&options, &e->notify, err) : HX_OK;
}

static enum hx_code start_lanes(struct engine *e, struct db *db, struct hx_error *err)
{
	size_t lanes_n = e->options.lanes_n < NODES_LANES_MAX ? e->options.lanes_n : NODES_LANES_MAX;
	struct lane_options options = {
		.db = {.url = e->options.db_url, .clock = e->options.clock, .sql_role = e->options.config->sql_role},
		.opened = db,
		.clock = e->options.clock,
		.log = e->options.log,
		.node = e->options.node,
		.node_number = nodes_number(&e->nodes),
		.seats_max = SEATS_MAX,
		.resolve_ms = RESOLVE_MS,
		.store_timeout_ms = e->options.config->store_timeout_ms,
		.act = port_act(e->parts.port),
		.renew = subject_heartbeat,
		.woke = e->notify ? notify_woke : NULL,
		.offered = e->notify ? notify_offered : NULL,
		.woke_context = e->notify,
	};

	return lanes_open(&e->lanes, &options, lanes_n, err);
}

static enum hx_code start_readers(struct engine *e, struct hx_error *err)
{
	struct readers_options options = {
		.url = e->options.db_url,
		.clock = e->options.clock,
		.log = e->options.log,
		.node = e->options.node,
		.seats_max = READERS_SEATS_MAX,
		.store_timeout_ms = e->options.config->store_timeout_ms,
		.lane = e->lanes.lanes[0],
	};
	enum hx_code code = readers_new(&options, &e->parts.readers, err);

	if (!code)
		backlog_init(&e->backlog, e->parts.readers, &e->definitions, e->options.clock);
	return code;
}

/* A SQL store for entry locks is the engine's own: another one would be another thing to lose. */
static const char *entry_lock_url(const char *configured)
{
	bool sql = strncmp(configured, "sqlite:", 7) == 0 || strncmp(configured, "postgres", 8) == 0;

	return sql ? "sql:" : configured;
}

/* SQLite has one process, and an idle disk is left in peace: there it looks when it is asked. */
static enum hx_code start_sentinel(struct engine *e, struct hx_error *err)
{
	struct sentinel_options options = {
		.lanes = &e->lanes,
		.timeout_ms = e->options.config->store_timeout_ms,
		.every_ms = on_postgres(e) ? STORE_LOOK_MS : 0,
		.log = e->options.log,
	};

	return sentinel_new(&options, &e->parts.sentinel, err);
}

static enum hx_code start_services(struct engine *e, struct hx_error *err)
{
	enum hx_code code = entry_locks_new(entry_lock_url(e->options.config->entry_lock_store), &e->lanes,
					    e->options.clock, &e->parts.entry_locks, err);

	if (!code)
		code = gate_sql_new(&e->lanes, e->options.clock, &e->parts.gate_store, err);
	if (!code) {
		e->parts.gate_store->timeout_ms = e->options.config->store_timeout_ms;
		gate_store_recall(e->parts.gate_store);
		if (e->store_is_old)
			gate_store_note_old(e->parts.gate_store);
	}
	if (!code)
		code = gate_sweeper_new(e->parts.gate_store, GATE_SWEEP_EVERY_MS, /* held= */ NULL, &e->gate_sweeper,
					err);
	tally_init(&e->metrics.runs_ended);
	atomic_store(&e->metrics.nodes_live, 1);
	/* SQLite has one process: nobody else looks whether it lives, and an idle disk is left in peace. */
	if (!code && on_postgres(e) && nodes_start(&e->nodes, &e->lanes, &e->fence_floor, &e->metrics, e->options.log))
		code = error_set(err, HX_INTERNAL, "the node's heartbeat cannot be started");
	if (!code && e->notify)
		code = notify_start(e->notify, &e->lanes, err);
	for (size_t i = 0; i < FEEDS_N && !code; i++) {
		e->fed[i] = feeder_new(feeds[i], &e->parts, err);
		code = e->fed[i] ? HX_OK : HX_NO_MEMORY;
	}
	if (!code)
		code = retention_start(&e->parts, &e->retention, err);
	if (!code && janitors_start(&e->janitors, &e->parts, e->options.sweep_ms))
		code = error_set(err, HX_INTERNAL, "the janitors cannot be started");
	if (!code)
		code = start_sentinel(e, err);
	return code ? code : changers_start(&e->changers, err);
}

static enum hx_code join_nodes(struct engine *e, struct db *db, struct hx_error *err)
{
	const char *given = e->options.node;
	enum hx_code code = nodes_join(&e->nodes, db, given, e->options.clock, err);

	e->options.node = e->nodes.name;
	if (!code && e->nodes.name != given)
		log_warn(e->options.log,
			 "another node of this name is alive, or was a moment ago: this one is called otherwise",
			 log_text("given", given), log_text("node", e->nodes.name));
	e->joined = !code;
	return code;
}

static enum hx_code engine_start(struct engine *e, struct findings *findings, struct hx_error *err)
{
	struct db *db = NULL;
	int64_t floor = 0;
	enum hx_code code = engine_open_store(e, &db, err);

	if (!code)
		code = load_definitions(e, db, findings, err);
	if (!code)
		code = alone_begin(db, e->options.log, err);
	if (!code)
		code = join_nodes(e, db, err);
	if (!code)
		code = fences_read_floor(db, &floor, err);
	atomic_store(&e->fence_floor, floor);
	if (!code)
		code = start_notify(e, err);
	if (!code)
		code = keyring_new(&(struct keyring_options){e->options.db_url, e->options.clock, e->options.log},
				   &e->parts.keyring, err);
	if (!code)
		code = start_actions(e, err);
	if (code) {
		db_close(db);
		return code;
	}
	code = start_lanes(e, db, err); /* takes the connection over */
	if (!code)
		code = start_readers(e, err);
	return code ? code : start_services(e, err);
}

bool engine_node_is_good(const char *node)
{
	struct slice name = slice_str(node);

	return name.n && name.n <= NODE_NAME_MAX && utf8_valid_bytes(name) == name.n && !strchr(node, '|') &&
	       strcmp(node, SUBJECT_HELD) != 0;
}

enum hx_code engine_new(const struct engine_options *options, struct findings *findings, struct engine **ret,
			struct hx_error *err)
{
	struct engine *e;
	enum hx_code code;

	if (!engine_node_is_good(options->node))
		return error_set(err, HX_CONFIG_ERROR, "a node's name has 1 to %d characters, no |, and is not \"%s\"",
				 NODE_NAME_MAX, SUBJECT_HELD);
	e = calloc(1, sizeof *e);
	if (!e)
		return error_set(err, HX_NO_MEMORY, "an engine");
	e->options = *options;
	e->parts = (struct engine_parts){
		.config = options->config,
		.log = options->log,
		.clock = options->clock,
		.store_clock = &e->nodes.store_clock.clock,
		.metrics = &e->metrics,
		.definitions = &e->definitions,
		.lanes = &e->lanes,
		.backlog = &e->backlog,
		.fence_floor = &e->fence_floor,
	};
	changers_init(&e->changers, &e->options, &e->definitions, &e->lanes);
	definitions_init(&e->definitions, options->natives, changers_tell_wanted, &e->changers);
	e->definitions.natives_all = options->natives_all;
	code = engine_start(e, findings, err);
	if (code) {
		engine_free(e);
		return code;
	}
	schedules_apply(e->parts.schedules, options->workflows_dir);
	*ret = e;
	return code;
}

/* At most half of the time is for that: others have calls to end, too. Returns what is left. */
static int64_t drain_batches(struct engine *engine, int64_t drain_ms)
{
	struct mono_time began = clock_mono(engine->options.clock);
	int64_t took_ms;

	if (!engine->parts.batches)
		return drain_ms;
	batches_drain(engine->parts.batches, drain_ms / 2);
	took_ms = (clock_mono(engine->options.clock).ns - began.ns) / 1000000;
	return took_ms < drain_ms ? drain_ms - took_ms : 0;
}

void engine_begin_no_more(struct engine *engine)
{
	for (size_t i = 0; i < FEEDS_N; i++)
		feeder_close(engine->fed[i]);
}

void engine_stop(struct engine *engine, int64_t drain_ms)
{
	if (engine->stopped)
		return;
	engine->stopped = true;
	engine_begin_no_more(engine);
	sentinel_stop(engine->parts.sentinel);
	changers_stop(&engine->changers);
	drain_ms = drain_batches(engine, drain_ms);
	readers_stop(engine->parts.readers);
	lanes_stop(&engine->lanes, drain_ms);
	changers_join(&engine->changers);
	if (engine->joined && on_postgres(engine) && engine->parts.sentinel &&
	    sentinel_sees_store(engine->parts.sentinel))
		nodes_leave(&engine->nodes, engine->options.db_url);
	notify_stop(engine->notify);
	port_stop(engine->parts.port, /* grace_ms= */ 0);
}

void engine_free(struct engine *engine)
{
	if (!engine)
		return;
	engine_stop(engine, /* drain_ms= */ 0);
	sentinel_free(engine->parts.sentinel);
	entry_locks_free(engine->parts.entry_locks); /* may answer requests, which then ask the gate */
	gate_sweeper_free(engine->gate_sweeper);
	gate_store_free(engine->parts.gate_store);
	retention_free(engine->retention);
	for (size_t i = FEEDS_N; i > 0; i--)
		feeder_free(engine->fed[i - 1]);
	janitors_release(&engine->janitors);
	port_free(engine->parts.port);
	readers_free(engine->parts.readers);
	keyring_free(engine->parts.keyring);
	lanes_close(&engine->lanes);
	notify_free(engine->notify);
	definitions_release(&engine->definitions);
	changers_release(&engine->changers);
	free(engine);
}

/* ---- what others ask of it ---- */

const struct engine_parts *engine_parts(const struct engine *engine)
{
	return &engine->parts;
}

/* Under `changers.configuring`. */
static enum hx_code reload(struct engine *e, const struct config *config, struct findings *findings,
			   struct hx_error *err)
{
	struct module_janitor *fresh = NULL;
	struct lane_runner runner;
	enum hx_code code = janitors_plan(&e->janitors, config, &fresh);

	if (code)
		return error_set(err, code, "the janitors of the configuration");
	changers_runner(&e->changers, &runner);
	code = definitions_load(&e->definitions, e->options.workflows_dir, &runner.runner, e->options.clock, config,
				findings, err);
	if (code) {
		janitors_forget_plan(fresh);
		return code;
	}
	atomic_store(&e->changers.config, config);
	janitors_adopt(&e->janitors, config, fresh);
	if (retention_configure(e->retention, config))
		log_error(e->options.log,
			  "no memory to look for what retention lets go: it stays until the next start");
	return HX_OK;
}

enum hx_code engine_reload(struct engine *engine, const struct config *config, struct findings *findings,
			   struct hx_error *err)
{
	enum hx_code code;
	LOCKED(&engine->changers.configuring);

	code = reload(engine, config ? config : engine->changers.config, findings, err);
	if (!code)
		schedules_apply(engine->parts.schedules, engine->options.workflows_dir);
	return code;
}

const struct config *engine_config(struct engine *engine)
{
	return engine->changers.config;
}

enum hx_code engine_submit(struct engine *engine, uint64_t hash, struct seat *seat)
{
	return lane_submit(lanes_of(&engine->lanes, (int64_t)hash), seat);
}

enum hx_code engine_put_definition(struct engine *engine, struct definition_put *definition)
{
	return changers_put(&engine->changers, definition);
}

int64_t engine_fence_floor(const struct engine *engine)
{
	return atomic_load(&engine->fence_floor);
}

int64_t engine_lease_ms(struct engine *engine, const struct entity_machine *machine)
{
	const struct config *config = engine->changers.config;
	const struct module_config *module = config_module(config, slice_str(machine->workflow->module));

	return module && module->janitor.declared ? module->janitor.stuck_after_ms : config->lease_ms;
}

enum hx_code engine_sweep(struct engine *engine, struct slice module,
			  void (*done)(void *context, enum hx_code code, int64_t reverted, int64_t held), void *context)
{
	return janitors_sweep(&engine->janitors, module, done, context);
}

const struct engine_options *engine_options_of(struct engine *engine)
{
	return &engine->options;
}
