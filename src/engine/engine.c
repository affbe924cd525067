/* Wiring, in the order of engine.h, and tearing down in the reverse order. */
#include "engine/engine.h"

#include <stdlib.h>

#include "base/utf8.h"
#include "db/migrate.h"
#include "engine/alone.h"
#include "engine/backlog.h"
#include "engine/batches.h"
#include "engine/changers.h"
#include "engine/definitions.h"
#include "engine/dispatcher.h"
#include "engine/fences.h"
#include "engine/janitors.h"
#include "engine/keyring.h"
#include "engine/nodes.h"
#include "engine/notify.h"
#include "engine/readers.h"
#include "engine/retention.h"
#include "engine/runs.h"
#include "gate/sweeper.h"

#define SEATS_MAX 20000
#define RESOLVE_MS 5000
#define GATE_SWEEP_EVERY_MS 60000
#define STORE_LOOK_MS 1000 /* on an idle node nobody else would notice that the store is lost */

struct engine {
	struct engine_options options;
	struct definitions definitions;
	struct outbound outbound;
	struct secret_rules secret_rules; /* as at the start */
	struct port *port;
	struct lanes lanes;
	struct readers *readers;
	struct keyring *keyring;
	struct entry_locks *entry_locks;
	struct gate_store *gate_store;
	struct gate_sweeper *gate_sweeper;
	struct nodes nodes;
	_Atomic int64_t fence_floor; /* fences.h */
	struct notify *notify;       /* NULL on SQLite: there is no other node */
	struct janitors janitors;
	struct dispatcher dispatcher;
	struct runs *runs;
	struct batches *batches;
	struct retention *retention;
	struct changers changers; /* and the configuration in force */
	struct backlog backlog;
	struct sentinel *sentinel;
	struct engine_metrics metrics;
	bool joined, stopped;
	bool store_is_old; /* made by version 0.1, as a store */
};

static bool on_postgres(const struct engine *e)
{
	return e->changers.on_postgres;
}

/* ---- starting ---- */

static enum hx_code open_store(struct engine *e, struct db **ret_db, struct hx_error *err)
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

static enum hx_code start_keyring(struct engine *e, struct hx_error *err)
{
	struct keyring_options options = {
		.url = e->options.db_url,
		.clock = e->options.clock,
		.log = e->options.log,
	};

	return keyring_new(&options, &e->keyring, err);
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
	outbound_init(&e->outbound, e->options.loopback_allowed && !keyring_has_keys(e->keyring));
	for (size_t i = 0; i < config->outbound_n && !code; i++)
		code = outbound_allow(&e->outbound, slice_str(config->outbound_allow[i]), err);
	return code ? code : port_new(&options, &e->port, err);
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
		.act = port_act(e->port),
		.renew = subject_heartbeat,
		.woke = e->notify ? notify_woke : NULL,
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
	enum hx_code code = readers_new(&options, &e->readers, err);

	if (!code)
		backlog_init(&e->backlog, e->readers, &e->definitions, e->options.clock);
	return code;
}

/* A SQL store for entry locks is the engine's own: another one would be another thing to lose. */
static const char *entry_lock_url(const char *configured)
{
	bool sql = strncmp(configured, "sqlite:", 7) == 0 || strncmp(configured, "postgres", 8) == 0;

	return sql ? "sql:" : configured;
}

static enum hx_code start_runs(struct engine *e, struct hx_error *err)
{
	struct runs_options options = {
		.lanes = &e->lanes,
		.definitions = &e->definitions,
		.config = e->options.config,
		.metrics = &e->metrics,
		.log = e->options.log,
		.clock = e->options.clock,
	};
	return runs_start(&options, &e->runs, err);
}

static enum hx_code start_batches(struct engine *e, struct hx_error *err)
{
	struct batches_options options = {
		.lanes = &e->lanes,
		.definitions = &e->definitions,
		.lease_ms = e->options.config->lease_ms,
		.fence_floor = &e->fence_floor,
		.clock = e->options.clock,
		.log = e->options.log,
		.metrics = &e->metrics,
	};

	return batches_start(&options, &e->batches, err);
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

	return sentinel_new(&options, &e->sentinel, err);
}

static enum hx_code start_services(struct engine *e, struct hx_error *err)
{
	enum hx_code code = entry_locks_new(entry_lock_url(e->options.config->entry_lock_store), &e->lanes,
					    e->options.clock, &e->entry_locks, err);

	if (!code)
		code = gate_sql_new(&e->lanes, e->options.clock, &e->gate_store, err);
	if (!code) {
		e->gate_store->timeout_ms = e->options.config->store_timeout_ms;
		gate_store_recall(e->gate_store);
		if (e->store_is_old)
			gate_store_note_old(e->gate_store);
	}
	if (!code)
		code = gate_sweeper_new(e->gate_store, GATE_SWEEP_EVERY_MS, /* held= */ NULL, &e->gate_sweeper, err);
	tally_init(&e->metrics.runs_ended);
	atomic_store(&e->metrics.nodes_live, 1);
	/* SQLite has one process: nobody else looks whether it lives, and an idle disk is left in peace. */
	if (!code && on_postgres(e) && nodes_start(&e->nodes, &e->lanes, &e->fence_floor, &e->metrics, e->options.log))
		code = error_set(err, HX_INTERNAL, "the node's heartbeat cannot be started");
	if (!code && e->notify)
		code = notify_start(e->notify, &e->lanes, err);
	if (!code && dispatcher_start(&e->dispatcher, &e->lanes, &e->definitions, &e->metrics, e->options.log,
				      e->options.clock, e->options.config->lease_ms))
		code = error_set(err, HX_INTERNAL, "the dispatcher cannot be started");
	if (!code)
		code = start_runs(e, err);
	if (!code)
		code = start_batches(e, err);
	if (!code)
		code = retention_start(&e->lanes, e->options.config, &e->metrics, e->options.clock,
				       &e->nodes.store_clock.clock, &e->retention, err);
	if (!code && janitors_start(&e->janitors, &e->lanes, &e->definitions, e->runs, e->batches, e->options.config,
				    &e->metrics, e->options.log, e->options.clock))
		code = error_set(err, HX_INTERNAL, "the janitors cannot be started");
	if (!code)
		code = start_sentinel(e, err);
	if (!code)
		code = changers_start(&e->changers, err);
	return code;
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

static enum hx_code start(struct engine *e, struct findings *findings, struct hx_error *err)
{
	struct db *db = NULL;
	int64_t floor = 0;
	enum hx_code code = open_store(e, &db, err);

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
		code = start_keyring(e, err);
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
	changers_init(&e->changers, &e->options, &e->definitions, &e->lanes);
	definitions_init(&e->definitions, options->natives, changers_tell_wanted, &e->changers);
	e->definitions.natives_all = options->natives_all;
	code = start(e, findings, err);
	if (code)
		engine_free(e);
	else
		*ret = e;
	return code;
}

/* At most half of the time is for that: others have calls to end, too. Returns what is left. */
static int64_t drain_batches(struct engine *engine, int64_t drain_ms)
{
	struct mono_time began = clock_mono(engine->options.clock);
	int64_t took_ms;

	if (!engine->batches)
		return drain_ms;
	batches_drain(engine->batches, drain_ms / 2);
	took_ms = (clock_mono(engine->options.clock).ns - began.ns) / 1000000;
	return took_ms < drain_ms ? drain_ms - took_ms : 0;
}

void engine_begin_no_more(struct engine *engine)
{
	runs_close(engine->runs);
	batches_close(engine->batches);
	dispatcher_close(&engine->dispatcher);
}

void engine_stop(struct engine *engine, int64_t drain_ms)
{
	if (engine->stopped)
		return;
	engine->stopped = true;
	sentinel_stop(engine->sentinel);
	changers_stop(&engine->changers);
	drain_ms = drain_batches(engine, drain_ms);
	readers_stop(engine->readers);
	lanes_stop(&engine->lanes, drain_ms);
	changers_join(&engine->changers);
	if (engine->joined && on_postgres(engine) && engine_has_store(engine))
		nodes_leave(&engine->nodes, engine->options.db_url);
	notify_stop(engine->notify);
	port_stop(engine->port, /* grace_ms= */ 0);
}

void engine_free(struct engine *engine)
{
	if (!engine)
		return;
	engine_stop(engine, /* drain_ms= */ 0);
	sentinel_free(engine->sentinel);
	entry_locks_free(engine->entry_locks); /* may answer requests, which then ask the gate */
	gate_sweeper_free(engine->gate_sweeper);
	gate_store_free(engine->gate_store);
	retention_free(engine->retention);
	batches_free(engine->batches);
	runs_free(engine->runs);
	dispatcher_release(&engine->dispatcher);
	janitors_release(&engine->janitors);
	port_free(engine->port);
	readers_free(engine->readers);
	keyring_free(engine->keyring);
	lanes_close(&engine->lanes);
	notify_free(engine->notify);
	definitions_release(&engine->definitions);
	changers_release(&engine->changers);
	free(engine);
}

/* ---- what others ask of it ---- */

const struct action *engine_action(struct engine *engine, struct slice workflow, struct slice action)
{
	int64_t in_force = 0;

	return definitions_action(&engine->definitions, workflow, action, &in_force);
}

const struct entity_machine *engine_machine(struct engine *engine, struct slice workflow)
{
	return definitions_find(&engine->definitions, workflow);
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

	pthread_mutex_lock(&engine->changers.configuring);
	code = reload(engine, config ? config : engine->changers.config, findings, err);
	pthread_mutex_unlock(&engine->changers.configuring);
	return code;
}

const struct config *engine_config(struct engine *engine)
{
	return engine->changers.config;
}

void engine_each_machine(struct engine *engine, void (*fn)(void *, const struct machine *), void *context)
{
	definitions_each(&engine->definitions, fn, context);
}

enum hx_code engine_submit(struct engine *engine, uint64_t hash, struct seat *seat)
{
	return lane_submit(lanes_of(&engine->lanes, (int64_t)hash), seat);
}

enum hx_code engine_read(struct engine *engine, struct seat *seat)
{
	return readers_submit(engine->readers, seat);
}

const struct run_machine *engine_run(struct engine *engine, struct slice workflow)
{
	return definitions_run(&engine->definitions, workflow);
}

const struct batch_machine *engine_batch(struct engine *engine, struct slice workflow)
{
	return definitions_batch(&engine->definitions, workflow);
}

enum hx_code engine_put_definition(struct engine *engine, struct definition_put *definition)
{
	return changers_put(&engine->changers, definition);
}

struct keyring *engine_keyring(struct engine *engine)
{
	return engine->keyring;
}

struct runs *engine_runs(struct engine *engine)
{
	return engine->runs;
}

struct batches *engine_batches(struct engine *engine)
{
	return engine->batches;
}

struct entry_locks *engine_entry_locks(struct engine *engine)
{
	return engine->entry_locks;
}

struct gate_store *engine_gate_store(struct engine *engine)
{
	return engine->gate_store;
}

int64_t engine_fence_floor(const struct engine *engine)
{
	return atomic_load(&engine->fence_floor);
}

struct definitions *engine_definitions(struct engine *engine)
{
	return &engine->definitions;
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

struct engine_metrics *engine_metrics(struct engine *engine)
{
	return &engine->metrics;
}

void engine_lane_stats(struct engine *engine, struct lane_stats *ret_stats)
{
	lanes_read_stats(&engine->lanes, ret_stats);
}

void engine_act_stats(struct engine *engine, struct port_stats *ret_stats)
{
	port_read_stats(engine->port, ret_stats);
}

void engine_act_look(struct engine *engine, int64_t subject, int64_t fence, struct port_sight *ret_sight)
{
	port_look(engine->port, subject, fence, ret_sight);
}

struct backlog *engine_backlog(struct engine *engine)
{
	return &engine->backlog;
}

bool engine_has_store(struct engine *engine)
{
	return sentinel_sees_store(engine->sentinel);
}

void engine_ask_store(struct engine *engine, struct sentinel_question *question)
{
	sentinel_ask(engine->sentinel, question);
}

struct log *engine_log(struct engine *engine)
{
	return engine->options.log;
}

const struct clock *engine_store_clock(const struct engine *engine)
{
	return &engine->nodes.store_clock.clock;
}

struct clock *engine_clock(struct engine *engine)
{
	return engine->options.clock;
}

const struct engine_options *engine_options_of(struct engine *engine)
{
	return &engine->options;
}
