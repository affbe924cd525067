/*
 * hapax gate: reads the configuration, opens the store, stands in front of the upstream, waits for a signal.
 *
 *   store ─▶ proxy ─▶ server (anywhere: it is a reverse proxy)
 *                └──▶ admin server (loopback alone: who can reach it can make the gate forget)
 *
 *   SIGHUP            reads the configuration again: whole and valid, or it stays as it was and the log says why. Requests that are under
 *                     way keep what they had. What is settled at the start (note_settled) wants a restart, and is told
 *   SIGTERM, SIGINT   /readyz is 503, connections are taken for drain.notice (a second signal ends that). Then what is in flight
 *                     is finished and stored, and exit 0; a further signal does not wait. Whatever it
 *                     cuts off is as after a crash: leases run out, answers that were acknowledged are there
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/steady_clock.h"
#include "cli/local.h"
#include "cli/service.h"
#include "gate/home.h"
#include "proxy/gate_admin.h"
#include "wire/upstream.h"

#define ARENA_BYTES_MAX (64u << 20)
#define STORE_DRAIN_MS 5000 /* after the last answer of the upstream */
#define ADMIN_DRAIN_MS 1000

/* A configuration that was read, with all that it is made of. */
struct gate_reading {
	struct arena arena;
	struct findings findings;
	struct gate_config config;
};

struct gate {
	struct arena arena;
	struct findings findings;
	struct gate_config config; /* that of the start */
	int64_t drain_ms;
	size_t bodies_bytes_max; /* of all clients; no body can be larger */
	struct log log;
	struct steady_clock clock; /* of the records; connections and the log go by the machine's */
	struct gate_held held;
	struct gate_home *home;
	struct proxy *proxy;
	struct http_server *server, *admin_server;
	struct gate_admin admin;
	struct router *admin_router;
};

static enum hx_code gate_read_config(struct gate *g, const struct command_args *args, struct hx_error *err)
{
	const char *path = command_value(args, "config");

	arena_init(&g->arena, ARENA_BYTES_MAX);
	findings_init(&g->findings, &g->arena);
	gate_config_init(&g->config);
	if (path)
		gate_config_load(path, &g->arena, &g->findings, &g->config);
	if (g->findings.errors) {
		findings_print(&g->findings, stderr);
		return error_set(err, HX_CONFIG_ERROR, "%s: not a valid configuration", path);
	}
	g->log.level_min = g->config.log_level;
	findings_log(&g->findings, &g->log, "the configuration is not valid", "the configuration is doubtful");
	return HX_OK;
}

static const char *store_url(const struct gate *g, const struct command_args *args)
{
	return command_value_or(args, "store", g->config.store, "sqlite:gate.db");
}

static enum hx_code gate_open_store(struct gate *g, const struct command_args *args, struct hx_error *err)
{
	struct gate_home_options options = {
		.url = store_url(g, args),
		.sweep_every_ms = g->config.sweep_every_ms,
		.store_timeout_ms = g->config.store_timeout_ms,
		.recall = true,
		.held = &g->held,
		.no_migrate = command_value(args, "no-migrate") != NULL,
		.clock = &g->clock.clock,
		.log = &g->log,
	};
	enum hx_code code = gate_home_open(&options, &g->home, err);

	if (code)
		return error_set(err, code, "the store: %s", err->detail);
	if (gate_home_lasting(g->home) == GATE_ENDS_WITH_US)
		log_warn(&g->log,
			 "the store is in memory: all records are lost at exit, and keys count as new after it");
	if (gate_home_lasting(g->home) == GATE_MAY_BE_LOST)
		log_warn(&g->log, "this Redis does not say that it syncs every write (appendfsync always): records of "
				  "its last moments are lost when it dies");
	return HX_OK;
}

static enum hx_code start_proxy(struct gate *g, const struct command_args *args, struct hx_error *err)
{
	struct proxy_options options = {
		.config = &g->config,
		.upstream = command_value_or(args, "upstream", g->config.upstream, NULL),
		.store = gate_home_store(g->home),
		.held = &g->held,
		.clock = clock_system(),
		.log = &g->log,
	};

	return proxy_new(&options, &g->proxy, err);
}

static enum hx_code open_door(struct gate *g, const struct command_args *args, struct hx_error *err)
{
	struct server_options options = server_options_default();
	enum hx_code code;

	proxy_fit_server(g->proxy, &options);
	options.listen = command_value_or(args, "listen", g->config.listen, "127.0.0.1:7412");
	g->bodies_bytes_max = options.bodies_bytes_max;
	code = http_server_new(&options, &g->server, err);
	if (!code)
		atomic_store(&g->admin.door, g->server);
	return code;
}

/* From the environment, else from the file: never from the command line, which everybody on the machine can read. */
static enum hx_code take_admin_key(struct gate *g, struct hx_error *err)
{
	const char *key = getenv("HAPAX_GATE_ADMIN_KEY");

	if (!key || !*key)
		key = g->config.admin_key;
	if (key && !gate_admin_key_is_good(slice_str(key)))
		return error_set(err, HX_CONFIG_ERROR,
				 "HAPAX_GATE_ADMIN_KEY must be %d to %d visible ASCII characters, no spaces",
				 GATE_ADMIN_KEY_MIN, GATE_ADMIN_KEY_MAX);
	gate_admin_set_key(&g->admin, key);
	return HX_OK;
}

static enum hx_code open_admin(struct gate *g, const char *listen, struct hx_error *err)
{
	struct server_options options = server_options_default();
	char address[ADDRESS_TEXT_BYTES];
	enum hx_code code;

	g->admin.store = gate_home_store(g->home);
	g->admin.sentinel = gate_home_sentinel(g->home);
	g->admin.proxy = g->proxy;
	g->admin.log = &g->log;
	code = take_admin_key(g, err);
	if (code)
		return code;
	g->admin_router = gate_admin_router_new(&g->admin);
	if (!g->admin_router)
		return error_set(err, HX_NO_MEMORY, "the routes of the admin address");
	router_serve(g->admin_router, listen, &options);
	options.loops = 1;
	options.log = &g->log;
	code = http_server_new(&options, &g->admin_server, err);
	if (code)
		return code;
	address_format(http_server_address(g->admin_server), address);
	log_info(&g->log, "the admin address is open", log_text("admin", address));
	return HX_OK;
}

/* Where there is no store yet, none is made for a gate that would not come to be ready. */
static enum hx_code check_addresses(const char *url, const char *listen, const char *admin, struct hx_error *err)
{
	enum hx_code code;

	if (!command_store_is_missing(url))
		return HX_OK;
	code = http_try_listen(listen, err);
	return code || !admin ? code : http_try_listen(admin, err);
}

/* All that a person may have got wrong is looked at before anything is opened. */
static enum hx_code check_options(struct gate *g, const struct command_args *args, struct hx_error *err)
{
	const char *listen = command_value_or(args, "listen", g->config.listen, "127.0.0.1:7412");
	const char *admin = command_value_or(args, "admin", g->config.admin, NULL);
	const char *url = command_value_or(args, "upstream", g->config.upstream, NULL);
	struct upstream *upstream = NULL;
	struct address address;
	enum hx_code code;

	if (!url)
		return error_set(err, HX_VALIDATION_ERROR, "gate wants --upstream URL: what is it in front of?");
	code = upstream_new(url, clock_system(), &upstream, err);
	if (code)
		return code;
	upstream_free(upstream); /* the proxy makes its own, after the store */
	if (address_parse(listen, err, &address))
		return error_set(err, HX_CONFIG_ERROR, "--listen: %s", err->detail);
	if (admin && address_parse(admin, err, &address))
		return error_set(err, HX_CONFIG_ERROR, "--admin: %s", err->detail);
	if (admin && !address_is_loopback(&address))
		return error_set(err, HX_CONFIG_ERROR,
				 "--admin %s: only loopback: who can reach it can make the gate forget", admin);
	return check_addresses(store_url(g, args), listen, admin, err);
}

/* As long as any request may take, and then the time to store what came of it. */
static int64_t drain_ms(const struct gate_config *config)
{
	int64_t longest = config->policy.upstream_timeout_ms;

	for (size_t i = 0; i < config->routes_n; i++)
		if (config->routes[i].policy.upstream_timeout_ms > longest)
			longest = config->routes[i].policy.upstream_timeout_ms;
	return longest + STORE_DRAIN_MS;
}

static enum hx_code gate_start(struct gate *g, const struct command_args *args, struct hx_error *err)
{
	const char *admin;
	enum hx_code code = gate_read_config(g, args, err);

	g->drain_ms = drain_ms(&g->config);
	if (!code)
		code = check_options(g, args, err);
	if (!code)
		code = gate_open_store(g, args, err);
	if (!code)
		code = start_proxy(g, args, err);
	admin = command_value_or(args, "admin", g->config.admin, NULL);
	if (!code && admin)
		code = open_admin(g, admin, err);
	return code ? code : open_door(g, args, err);
}

/* ---- reading the configuration again ---- */

static void free_reading(void *owner)
{
	struct gate_reading *reading = owner;

	arena_release(&reading->arena);
	free(reading);
}

/* NULL: it cannot be read, and the log says why. */
static struct gate_reading *gate_read_again(struct gate *g, const char *path)
{
	struct gate_reading *reading = calloc(1, sizeof *reading);
	bool good;

	if (!reading)
		return NULL;
	arena_init(&reading->arena, ARENA_BYTES_MAX);
	findings_init(&reading->findings, &reading->arena);
	gate_config_load(path, &reading->arena, &reading->findings, &reading->config);
	findings_log(&reading->findings, &g->log, "the configuration is not valid", "the configuration is doubtful");
	good = !reading->findings.errors;
	if (good)
		return reading;
	free_reading(reading);
	return NULL;
}

static bool differ(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") != 0;
}

static size_t largest_body(const struct gate_config *config)
{
	size_t largest = config->policy.max_request_bytes;

	for (size_t i = 0; i < config->routes_n; i++)
		if (config->routes[i].policy.max_request_bytes > largest)
			largest = config->routes[i].policy.max_request_bytes;
	return largest;
}

/* What was said at the start and is said in another way now is told, and stays. A flag or a variable goes before the file, then as now. */
static void note_settled(struct gate *g, const struct command_args *args, const struct gate_config *now)
{
	const struct gate_config *then = &g->config;
	const struct {
		const char *name;
		bool changed;
	} fields[] = {
		{"upstream", !command_value(args, "upstream") && differ(then->upstream, now->upstream)},
		{"store", !command_value(args, "store") && differ(then->store, now->store)},
		{"listen", !command_value(args, "listen") && differ(then->listen, now->listen)},
		{"admin", !command_value(args, "admin") && differ(then->admin, now->admin)},
		{"admin_key", differ(then->admin_key, now->admin_key)},
		{"name", differ(then->name, now->name)},
		{"max_request_bytes", largest_body(now) > g->bodies_bytes_max},
		{"sweep", then->sweep_every_ms != now->sweep_every_ms},
		{"store_timeout", then->store_timeout_ms != now->store_timeout_ms},
		{"drain", then->drain_notice_ms != now->drain_notice_ms},
	};

	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		if (fields[i].changed)
			log_warn(&g->log, "a change of this field needs a restart: it stays as it was",
				 log_text("field", fields[i].name));
}

struct gate_reload {
	struct gate *gate;
	const struct command_args *args;
};

static void reload(void *context)
{
	struct gate *g = ((struct gate_reload *)context)->gate;
	const struct command_args *args = ((struct gate_reload *)context)->args;
	const char *path = command_value(args, "config");
	struct gate_reading *reading;
	struct hx_error err;

	if (!path) {
		log_info(&g->log, "there is no configuration file to read again");
		return;
	}
	service_tell_reloading(clock_system());
	reading = gate_read_again(g, path);
	if (!reading) {
		log_error(&g->log, "the configuration is kept as it was", log_text("file", path));
	} else if (proxy_set_config(g->proxy, &reading->config, free_reading, reading, &err)) {
		log_error(&g->log, "the configuration is kept as it was", log_text("detail", err.detail));
		free_reading(reading);
	} else {
		if (drain_ms(&reading->config) > g->drain_ms)
			g->drain_ms = drain_ms(&reading->config);
		note_settled(g, args, &reading->config);
		g->log.level_min = reading->config.log_level;
		log_info(&g->log, "the configuration was read again", log_text("file", path));
	}
	service_tell("READY=1");
}

static void serve_until_end(struct gate *g, const struct command_args *args, const sigset_t *signals)
{
	struct gate_reload again = {g, args};
	char address[ADDRESS_TEXT_BYTES];

	atomic_store(&g->admin.ready, true);
	address_format(http_server_address(g->server), address);
	service_ready(address);
	service_wait_for_end(signals, reload, &again);
	service_tell("STOPPING=1");
	atomic_store(&g->admin.ready, false);
	service_give_notice(signals, g->config.drain_notice_ms, &g->log);
	log_info(&g->log, "stopping: what is in flight is finished");
	pthread_sigmask(SIG_UNBLOCK, signals, NULL);
}

/* In the order that proxy.h wants. */
static void close_down(struct gate *g)
{
	if (g->proxy)
		proxy_hurry(g->proxy, STORE_DRAIN_MS);
	http_server_stop(g->server, g->drain_ms);
	http_server_stop(g->admin_server, ADMIN_DRAIN_MS);
	gate_home_close(g->home, STORE_DRAIN_MS);
	proxy_free(g->proxy);
	http_server_free(g->server);
	http_server_free(g->admin_server);
	router_free(g->admin_router);
	steady_clock_release(&g->clock);
	arena_release(&g->arena);
}

enum hx_code gate_run(const struct command_args *args, struct hx_error *err)
{
	struct gate *g = calloc(1, sizeof *g);
	sigset_t signals;
	enum hx_code code;

	if (!g)
		return error_set(err, HX_NO_MEMORY, "gate");
	service_begin(&signals, &g->log, &g->clock);
	gate_held_init(&g->held, &g->log);
	code = gate_start(g, args, err);
	if (!code)
		serve_until_end(g, args, &signals);
	close_down(g);
	free(g);
	return code;
}
