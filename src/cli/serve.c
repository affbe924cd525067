/*
 * hapax serve: reads the configuration, starts the engine, opens the door, waits for a signal.
 *
 *   SIGTERM, SIGINT   drain and exit 0
 *   SIGHUP            read the definitions again; a bad set keeps the old one and says why
 *
 * Findings are plain text while it may still refuse to start, for whoever has typed the command. From the ready line on standard
 * error is a log, and they are events of it.
 *
 * Beyond loopback it wants API keys in the store, and that somebody has ended TLS in front of it.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/steady_clock.h"
#include "cli/command.h"
#include "cli/service.h"
#include "db/store_name.h"
#include "engine/keyring.h"
#include "http/api.h"
#include "model/load.h"

#define ARENA_BYTES_MAX (1u << 30)
#define DRAIN_MS 10000

static const struct command_option option_store = {
	.name = "db",
	.value = "URL",
	.env = "HAPAX_DB",
	.help = "the store: sqlite:PATH, sqlite::memory: or postgres://… [default: sqlite:hapax.db]",
};
static const struct command_option option_listen = {
	.name = "listen",
	.value = "ADDR:PORT",
	.env = "HAPAX_LISTEN",
	.help = "where to listen; port 0 is any free one [default: 127.0.0.1:7411]",
};
static const struct command_option option_workflows = {
	.name = "workflows",
	.value = "DIR",
	.env = "HAPAX_WORKFLOWS",
	.help = "a folder of definitions, *.json [default: those in the store]",
};
static const struct command_option option_config = {
	.name = "config",
	.value = "FILE",
	.env = "HAPAX_CONFIG",
	.help = "the configuration: modules and their janitors, entry locks, outbound addresses [default: none]",
};
static const struct command_option option_node = {
	.name = "node",
	.value = "NAME",
	.env = "HAPAX_NODE",
	.help = "what this node is called in histories; made unique if one that is alive has it [default: the host's name]",
};
static const struct command_option option_tls_terminated = {
	.name = "tls-terminated",
	.env = "HAPAX_TLS_TERMINATED",
	.help = "TLS ends in front of this server: keys are not sent in the clear. Needed beyond loopback",
};

struct serve {
	struct arena arena;
	struct config config;
	struct findings findings;
	struct log log;
	struct steady_clock clock; /* of everything that has a row; connections and the log go by the machine's */
	struct api api;
	struct router *router;
	struct http_server *server;
	char node[65];
};

static enum hx_code read_config(struct serve *s, const struct command_args *args, struct hx_error *err)
{
	const char *path = command_value(args, &option_config);

	arena_init(&s->arena, ARENA_BYTES_MAX);
	findings_init(&s->findings, &s->arena);
	config_init(&s->config);
	if (path)
		config_load(path, &s->arena, &s->findings, &s->config);
	if (!s->findings.errors)
		return HX_OK;
	findings_print(&s->findings, stderr);
	return error_set(err, HX_CONFIG_ERROR, "%s: not a valid configuration", path);
}

static const char *node_name(struct serve *s, const struct command_args *args)
{
	if (gethostname(s->node, sizeof s->node - 1) || !engine_node_is_good(s->node))
		snprintf(s->node, sizeof s->node, "node");
	return command_value_or(args, &option_node, s->config.node, s->node);
}

static enum hx_code start_engine(struct serve *s, const struct command_args *args, const char *db_url,
				 struct hx_error *err)
{
	static const struct natives none;
	struct engine_options options = {
		.db_url = db_url,
		.node = node_name(s, args),
		.lanes_n = lanes_wanted(),
		.workflows_dir = command_value_or(args, &option_workflows, s->config.workflows, NULL),
		.config = &s->config,
		.no_migrate = command_value(args, &option_no_migrate) != NULL,
		.loopback_allowed = s->api.loopback,
		.natives = &none, /* a definition that names a function is for the program that has it */
		.clock = &s->clock.clock,
		.log = &s->log,
	};
	enum hx_code code = engine_new(&options, &s->findings, &s->api.engine, err);

	if (code)
		findings_print(&s->findings, stderr);
	return code;
}

static enum hx_code open_door(struct serve *s, const char *listen, struct hx_error *err)
{
	struct http_options options = http_options_default();

	s->router = api_router_new(&s->api);
	if (!s->router)
		return error_set(err, HX_NO_MEMORY, "the routes");
	options.listen = listen;
	options.begin = router_head;
	options.handle = router_handle;
	options.data = s->router;
	options.body_bytes_max = (size_t)s->config.max_body_bytes;
	options.arena_bytes_max = 4 * (size_t)s->config.max_body_bytes + (16u << 20);
	options.clock = clock_system();
	options.log = &s->log;
	return http_server_new(&options, &s->server, err);
}

static void reload(struct serve *s)
{
	struct hx_error err;
	struct findings findings;
	struct arena arena;
	enum hx_code code;

	arena_init(&arena, ARENA_BYTES_MAX);
	findings_init(&findings, &arena);
	service_tell_reloading(clock_system());
	code = engine_reload(s->api.engine, &findings, &err);
	findings_log(&findings, &s->log, "a definition is not valid", "a definition is doubtful");
	if (code)
		log_error(&s->log, "the definitions are kept as they were", log_text("code", hx_code_name(code)),
			  log_text("detail", err.detail));
	else
		log_info(&s->log, "the definitions were read again");
	service_tell("READY=1");
	arena_release(&arena);
}

static void count(void *context, const struct machine *machine)
{
	(void)machine;
	*(int64_t *)context += 1;
}

/* What a log of weeks is asked first: which program, on which store, since when. */
static void log_start(struct serve *s, const char *address)
{
	const struct engine_options *options = engine_options_of(s->api.engine);
	char name[STORE_NAME_BYTES];
	int64_t definitions = 0;

	engine_each_machine(s->api.engine, count, &definitions);
	log_info(&s->log, "serving", log_text("version", HX_VERSION),
		 log_text("store", store_name(options->db_url, name)), log_text("node", options->node),
		 log_int("definitions", definitions), log_text("address", address));
}

static void wait_for_end(struct serve *s, const sigset_t *signals)
{
	int signal = 0;

	for (;;) {
		if (sigwait(signals, &signal))
			continue;
		if (signal != SIGHUP)
			return;
		reload(s);
	}
}

static void close_down(struct serve *s)
{
	atomic_store(&s->api.ready, false);
	http_server_stop(s->server, DRAIN_MS);
	if (s->api.engine)
		engine_stop(s->api.engine, DRAIN_MS);
	http_server_free(s->server);
	router_free(s->router);
	engine_free(s->api.engine);
	steady_clock_release(&s->clock);
	arena_release(&s->arena);
}

static enum hx_code check_listen(const char *listen, bool tls_terminated, bool *ret_loopback, struct hx_error *err)
{
	struct address address;
	enum hx_code code = address_parse(listen, err, &address);

	if (code)
		return error_set(err, HX_CONFIG_ERROR, "--listen: %s", err->detail);
	*ret_loopback = address_is_loopback(&address);
	if (!*ret_loopback && !tls_terminated)
		return error_set(
			err, HX_CONFIG_ERROR,
			"--listen %s: beyond loopback, keys must not be sent in the clear: say --tls-terminated "
			"if TLS ends in front of this server",
			listen);
	return HX_OK;
}

/* Said here, where it is known who named the folder. */
static enum hx_code check_workflows(const struct serve *s, const struct command_args *args, struct hx_error *err)
{
	const char *given = command_value(args, &option_workflows), *path = given ? given : s->config.workflows;

	if (!path || access(path, R_OK) == 0)
		return HX_OK;
	return error_set(err, HX_CONFIG_ERROR, "%s: \"%s\" cannot be read: %s",
			 given ? "--workflows, or HAPAX_WORKFLOWS" : "\"workflows\" in the configuration", path,
			 strerror(errno));
}

/* The other half: whoever can reach us must be somebody. */
static enum hx_code check_keys(struct serve *s, const char *listen, struct hx_error *err)
{
	if (s->api.loopback || keyring_has_keys(engine_keyring(s->api.engine)))
		return HX_OK;
	return error_set(err, HX_CONFIG_ERROR,
			 "--listen %s: without API keys only loopback is safe: make one with `hapax key create`",
			 listen);
}

/*
 * Where there is no store yet, all is tried on one in memory first: a start that is refused leaves nothing behind. Nobody is let
 * in meanwhile, so nothing can be lost with it.
 */
static enum hx_code rehearse(struct serve *s, const struct command_args *args, const char *listen, struct hx_error *err)
{
	const struct findings before = s->findings;
	enum hx_code code = http_try_listen(listen, err);

	if (!code)
		code = start_engine(s, args, "sqlite::memory:", err);
	if (!code)
		code = check_keys(s, listen, err);
	engine_free(s->api.engine);
	s->api.engine = NULL;
	s->findings = before; /* they are found again */
	*s->findings.last = NULL;
	return code;
}

static enum hx_code start(struct serve *s, const struct command_args *args, const char *listen, struct hx_error *err)
{
	const char *url = command_value_or(args, &option_store, s->config.db, "sqlite:hapax.db");
	enum hx_code code = command_store_is_missing(url) ? rehearse(s, args, listen, err) : HX_OK;

	if (strcmp(url, "sqlite::memory:") == 0)
		log_warn(&s->log, "the store is in memory: everything is lost at exit");
	if (!code)
		code = start_engine(s, args, url, err);
	if (!code)
		findings_log(&s->findings, &s->log, "a definition or the configuration is not valid",
			     "a definition or the configuration is doubtful");
	if (!code)
		code = check_keys(s, listen, err);
	return code ? code : open_door(s, listen, err);
}

static enum hx_code serve(const struct command_args *args, struct hx_error *err)
{
	struct serve *s = calloc(1, sizeof *s);
	char address[ADDRESS_TEXT_BYTES];
	const char *listen;
	sigset_t signals;
	enum hx_code code;

	if (!s)
		return error_set(err, HX_NO_MEMORY, "serve");
	/* Before the first thread, so that all of them inherit it: signals are waited for, never handled. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	service_raise_descriptors();
	log_init(&s->log, STDERR_FILENO, LOG_LEVEL_INFO, clock_system());
	steady_clock_init(&s->clock, clock_system(), &s->log);
	code = read_config(s, args, err);
	listen = command_value_or(args, &option_listen, s->config.listen, "127.0.0.1:7411");
	if (!code)
		code = check_listen(listen, command_value(args, &option_tls_terminated), &s->api.loopback, err);
	if (!code)
		code = check_workflows(s, args, err);
	if (!code)
		code = start(s, args, listen, err);
	if (!code) {
		atomic_store(&s->api.ready, true);
		address_format(http_server_address(s->server), address);
		log_start(s, address);
		printf("ready http://%s\n", address);
		fflush(stdout);
		service_tell("READY=1");
		wait_for_end(s, &signals);
		service_tell("STOPPING=1");
		log_info(&s->log, "stopping");
	}
	close_down(s);
	free(s);
	return code;
}

const struct command command_serve = {
	.noun = "serve",
	.summary = "runs the engine and its HTTP API",
	.options = {&option_store, &option_listen, &option_workflows, &option_config, &option_node, &option_no_migrate,
		    &option_tls_terminated},
	.exits = {{HX_STORE_UNAVAILABLE, "the store cannot be opened"},
		  {HX_BUSY, "another server has the store open, or the address"},
		  {HX_CONFIG_ERROR,
		   "the configuration, a definition or the coverage of a claim is not valid; the schema does not fit; "
		   "or it would listen beyond loopback without keys or TLS"}},
	.run = serve,
};
