/*
 * hapax serve: reads the configuration, starts the engine, opens the door, waits for a signal.
 *
 *   SIGTERM, SIGINT   /readyz is 503 and no new work is begun; connections are taken for drain.notice (a second signal ends
 *                     that); then drain and exit 0
 *   SIGHUP            read configuration and definitions again, as one; what is not valid changes nothing and says why. Which fields
 *                     can change is in serve_config.h
 *
 * hapax dev is the same with defaults for a folder that somebody works in, and reads both again whenever a file of them changes.
 *
 * Findings are plain text while it may still refuse to start, for whoever has typed the command. From the ready line on standard
 * error is a log, and they are events of it.
 *
 * Beyond loopback it wants API keys in the store, and that somebody has ended TLS in front of it.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "api/api.h"
#include "api/api_changes.h"
#include "api/api_fire.h"
#include "api/api_vitals.h"
#include "api/hooks.h"
#include "base/steady_clock.h"
#include "base/test_clock.h"
#include "cli/explorer.h"
#include "cli/file_watch.h"
#include "cli/local.h"
#include "cli/serve_config.h"
#include "cli/service.h"
#include "db/store_name.h"
#include "engine/definitions.h"
#include "engine/keyring.h"
#include "flow/hook.h"

#define ARENA_BYTES_MAX (1u << 30)
#define DRAIN_MS 10000
#define IN_MEMORY "sqlite::memory:"
#define TEST_SWEEP_MS 5 /* where time is skipped, nobody waits a second to see a lease end */
#define DEV_CONFIG "hapax.json"
#define DEV_WORKFLOWS "workflows"
#define DEV_SETTLE_MS 100 /* an editor writes several times */

struct serve {
	bool dev;
	struct arena arena;
	const char *config_path;
	struct serve_config *configured; /* in force */
	struct config config;            /* as it was at the start */
	struct findings findings;
	struct log log;
	struct steady_clock clock;    /* of everything that has a row; connections and the log go by the machine's */
	struct test_clock test_clock; /* in its place, with --test-clock */
	struct hooks hooks;
	struct api_fire fire;
	struct natives natives; /* its function alone: a definition that names another is for the program that has it */
	struct api api;
	struct router *router;
	struct http_server *server;
	char node[65];
};

static enum hx_code serve_read_config(struct serve *s, const struct command_args *args, struct hx_error *err)
{
	const char *found = s->dev && access(DEV_CONFIG, R_OK) == 0 ? DEV_CONFIG : NULL;

	s->config_path = command_value_or(args, "config", /* configured= */ NULL, found);
	arena_init(&s->arena, ARENA_BYTES_MAX);
	findings_init(&s->findings, &s->arena);
	s->configured = serve_config_load(s->config_path, &s->findings);
	if (!s->configured)
		return error_set(err, HX_NO_MEMORY, "the configuration");
	s->config = s->configured->config;
	s->log.level_min = s->config.log_level;
	if (!s->findings.errors)
		return HX_OK;
	findings_print(&s->findings, stderr);
	return error_set(err, HX_CONFIG_ERROR, "%s: not a valid configuration", s->config_path);
}

static const char *workflows_dir(const struct serve *s, const struct command_args *args)
{
	const char *found = s->dev && access(DEV_WORKFLOWS, R_OK) == 0 ? DEV_WORKFLOWS : NULL;

	return command_value_or(args, "workflows", s->config.workflows, found);
}

static const char *node_name(struct serve *s, const struct command_args *args)
{
	if (gethostname(s->node, sizeof s->node - 1) || !engine_node_is_good(s->node))
		snprintf(s->node, sizeof s->node, "node");
	return command_value_or(args, "node", s->config.node, s->node);
}

/* What stands still on this node, or is left to a program that has its functions. */
static void log_left(struct serve *s)
{
	for (const struct finding *f = s->findings.first; f; f = f->next) {
		if (strcmp(f->rule, "native") != 0 && strcmp(f->rule, "version") != 0)
			continue;
		LOCAL_STRBUF(line, LOG_LINE_BYTES_MAX);
		finding_print(f, &line);
		log_warn(&s->log, "a definition is not served whole", log_slice("finding", strbuf_slice(&line)));
	}
}

static enum hx_code start_engine(struct serve *s, const struct command_args *args, const char *db_url,
				 struct hx_error *err)
{
	struct engine_options options = {
		.db_url = db_url,
		.node = node_name(s, args),
		.lanes_n = lanes_wanted(),
		.workflows_dir = workflows_dir(s, args),
		.config = &s->configured->config,
		.no_migrate = command_value(args, "no-migrate") != NULL,
		.loopback_allowed = s->api.loopback,
		.natives = &s->natives,
		.clock = s->api.test_clock ? &s->test_clock.clock : &s->clock.clock,
		.sweep_ms = s->api.test_clock ? TEST_SWEEP_MS : 0,
		.log = &s->log,
	};
	enum hx_code code = engine_new(&options, &s->findings, &s->api.engine, err);

	if (code)
		findings_print(&s->findings, stderr);
	else
		log_left(s);
	return code;
}

static enum hx_code open_door(struct serve *s, const char *listen, struct hx_error *err)
{
	struct server_options options = server_options_default();
	enum hx_code code;

	s->api.hooks = &s->hooks;
	s->api.changes = changes_new(&s->api); /* without it pages are read again by hand */
	s->api.vitals = vitals_new(&s->api);
	s->api.explorer = explorer_new();
	s->router = api_router_new(&s->api);
	if (!s->router)
		return error_set(err, HX_NO_MEMORY, "the routes");
	router_serve(s->router, listen, &options);
	options.body_bytes_max = (size_t)s->config.max_body_bytes;
	options.arena_bytes_max = 4 * (size_t)s->config.max_body_bytes + (16u << 20);
	options.clock = clock_system();
	options.log = &s->log;
	code = http_server_new(&options, &s->server, err);
	atomic_store(&s->fire.server, s->server);
	if (!code)
		vitals_start(s->api.vitals, s->server);
	return code;
}

/* On the terminal of whoever has just saved a file, or in the log. */
static void tell_findings(struct serve *s, const struct findings *findings, const char *error, const char *warning)
{
	if (s->dev)
		findings_print(findings, stderr);
	else
		findings_log(findings, &s->log, error, warning);
}

static enum hx_code load_config(struct serve *s, struct arena *arena, struct serve_config **ret_next,
				struct hx_error *err)
{
	struct findings findings;
	bool valid;

	findings_init(&findings, arena);
	*ret_next = serve_config_load(s->config_path, &findings);
	valid = *ret_next && !findings.errors;
	tell_findings(s, &findings, "the configuration is not valid", "the configuration is doubtful");
	if (valid)
		return HX_OK;
	serve_config_free(*ret_next);
	return error_set(err, HX_CONFIG_ERROR, "%s: not a valid configuration", s->config_path);
}

/* The configuration first: definitions are covered by what it declares. All of it, or nothing. */
static enum hx_code take_changes(struct serve *s, struct arena *arena, struct hx_error *err)
{
	struct serve_config *next = NULL;
	struct findings findings;
	enum hx_code code = load_config(s, arena, &next, err);

	if (code)
		return code;
	findings_init(&findings, arena);
	serve_config_settle(next, s->configured, &s->log);
	code = engine_reload(s->api.engine, &next->config, &findings, err);
	tell_findings(s, &findings, "a definition is not valid", "a definition is doubtful");
	if (code) {
		serve_config_free(next);
		return code;
	}
	next->before = s->configured;
	s->configured = next;
	s->log.level_min = next->config.log_level;
	return HX_OK;
}

static void reload(void *context)
{
	struct serve *s = context;
	struct hx_error err;
	enum hx_code code;
	LOCAL_ARENA(arena, ARENA_BYTES_MAX);

	service_tell_reloading(clock_system());
	code = take_changes(s, &arena, &err);
	if (code)
		log_error(&s->log, "the definitions are kept as they were", log_text("code", hx_code_name(code)),
			  log_text("detail", err.detail));
	else
		log_info(&s->log, "the definitions were read again");
	if (s->config_path && code)
		log_error(&s->log, "the configuration is kept as it was, too");
	else if (s->config_path)
		log_info(&s->log, "the configuration was read again, too");
	service_tell("READY=1");
}

static void serve_count(void *context, const struct machine *machine UNUSED)
{
	*(int64_t *)context += 1;
}

/* What a log of weeks is asked first: which program, on which store, since when. */
static void log_start(struct serve *s, const char *address)
{
	const struct engine_options *options = engine_options_of(s->api.engine);
	char name[STORE_NAME_BYTES];
	int64_t definitions = 0;

	definitions_each(engine_parts(s->api.engine)->definitions, serve_count, &definitions);
	log_info(&s->log, "serving", log_text("version", HX_VERSION),
		 log_text("store", store_name(options->db_url, name)), log_text("node", options->node),
		 log_int("definitions", definitions), log_text("address", address));
}

/* Until a file has been left alone for a moment. */
static void let_settle(struct file_watch *watch)
{
	struct pollfd fd = {.fd = watch->fd, .events = POLLIN};

	while (poll(&fd, 1, DEV_SETTLE_MS) > 0)
		(void)file_watch_take(watch);
}

/* The same, and for files that change. False: they cannot be watched, and signals are waited for alone. */
static bool watch_until_end(struct serve *s, const sigset_t *signals)
{
	const char *folder = engine_options_of(s->api.engine)->workflows_dir;
	int signal_fd = signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK);
	struct signalfd_siginfo signal = {0};
	struct file_watch watch;
	struct hx_error err;

	if (signal_fd < 0 || file_watch_init(&watch, folder, s->config_path, &err)) {
		log_warn(&s->log, "files are not watched: SIGHUP reads them again",
			 log_text("detail", signal_fd < 0 ? strerror(errno) : err.detail));
		return false;
	}
	log_info(&s->log, "watching for changes", log_text("workflows", folder ? folder : ""),
		 log_text("config", s->config_path ? s->config_path : ""));
	while (signal.ssi_signo == 0 || signal.ssi_signo == SIGHUP) {
		struct pollfd fds[] = {{.fd = signal_fd, .events = POLLIN}, {.fd = watch.fd, .events = POLLIN}};
		bool changed;

		(void)poll(fds, 2, -1); /* interrupted or not, both are looked at */
		changed = file_watch_take(&watch);
		if (changed)
			let_settle(&watch);
		changed |= read(signal_fd, &signal, sizeof signal) == sizeof signal && signal.ssi_signo == SIGHUP;
		if (changed)
			reload(s);
	}
	file_watch_release(&watch);
	close(signal_fd);
	return true;
}

/* Whoever deals out connections hears of the end by /readyz, and still sends some until then: they are served. */
static void serve_until_end(struct serve *s, const sigset_t *signals)
{
	char address[ADDRESS_TEXT_BYTES];

	atomic_store(&s->api.ready, true);
	address_format(http_server_address(s->server), address);
	log_start(s, address);
	service_ready(address);
	if (!s->dev || !watch_until_end(s, signals))
		service_wait_for_end(signals, reload, s);
	service_tell("STOPPING=1");
	atomic_store(&s->api.ready, false);
	engine_begin_no_more(s->api.engine);
	service_give_notice(signals, s->config.drain_notice_ms, &s->log);
	log_info(&s->log, "stopping");
}

static void close_down(struct serve *s)
{
	explorer_stop(s->api.explorer); /* those who wait for it hear that now */
	http_server_stop(s->server, DRAIN_MS);
	explorer_free(s->api.explorer);
	changes_free(s->api.changes);
	vitals_stop(s->api.vitals);
	if (s->api.engine)
		engine_stop(s->api.engine, DRAIN_MS);
	vitals_free(s->api.vitals);
	http_server_free(s->server);
	router_free(s->router);
	engine_free(s->api.engine);
	hooks_release(&s->hooks);
	steady_clock_release(&s->clock);
	serve_config_free(s->configured);
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
	const char *given = command_value(args, "workflows");
	const char *path = given ? given : s->config.workflows;

	if (!path || access(path, R_OK) == 0)
		return HX_OK;
	return error_set(err, HX_CONFIG_ERROR, "%s: \"%s\" cannot be read: %s",
			 given ? "--workflows, or HAPAX_WORKFLOWS" : "\"workflows\" in the configuration", path,
			 strerror(errno));
}

/* The other half: whoever can reach us must be somebody. */
static enum hx_code check_keys(struct serve *s, const char *listen, struct hx_error *err)
{
	if (s->api.loopback || keyring_has_keys(engine_parts(s->api.engine)->keyring))
		return HX_OK;
	return error_set(err, HX_CONFIG_ERROR,
			 "--listen %s: without API keys only loopback is safe: make one with `hapax key create`",
			 listen);
}

/* Time that is moved is for a store that ends with the process. */
static enum hx_code take_test_clock(struct serve *s, const struct command_args *args, const char *url,
				    struct hx_error *err)
{
	if (!command_value(args, "test-clock"))
		return HX_OK;
	if (strcmp(url, IN_MEMORY) != 0)
		return error_set(err, HX_CONFIG_ERROR, "--test-clock: only with --db " IN_MEMORY);
	test_clock_init(&s->test_clock, clock_system());
	s->api.test_clock = &s->test_clock;
	log_warn(&s->log, "time can be moved: this is a server for tests");
	return HX_OK;
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
		code = start_engine(s, args, IN_MEMORY, err);
	if (!code)
		code = check_keys(s, listen, err);
	engine_free(s->api.engine);
	s->api.engine = NULL;
	s->findings = before; /* they are found again */
	*s->findings.last = NULL;
	return code;
}

static enum hx_code start_server(struct serve *s, const struct command_args *args, const char *listen,
				 struct hx_error *err)
{
	const char *url = command_value_or(args, "db", s->config.db, "sqlite:hapax.db");
	enum hx_code code = take_test_clock(s, args, url, err);

	if (!code && command_store_is_missing(url))
		code = rehearse(s, args, listen, err);
	if (strcmp(url, IN_MEMORY) == 0)
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

static enum hx_code run_server(const struct command_args *args, bool dev, struct hx_error *err)
{
	struct serve *s = calloc(1, sizeof *s);
	const char *listen;
	sigset_t signals;
	enum hx_code code;

	if (!s)
		return error_set(err, HX_NO_MEMORY, "serve");
	s->dev = dev;
	service_begin(&signals, &s->log, &s->clock);
	code = serve_read_config(s, args, err);
	listen = command_value_or(args, "listen", s->config.listen, "127.0.0.1:7411");
	if (!code)
		code = check_listen(listen, command_value(args, "tls-terminated"), &s->api.loopback, err);
	if (!code)
		code = check_workflows(s, args, err);
	if (!code)
		code = hooks_init(&s->hooks, &s->config, err);
	if (!code)
		code = natives_add(&s->natives, HOOK_FIRE_FUNCTION, api_fire, &s->fire, err);
	if (!code)
		code = start_server(s, args, listen, err);
	if (!code)
		serve_until_end(s, &signals);
	close_down(s);
	free(s);
	return code;
}

enum hx_code serve_run(const struct command_args *args, struct hx_error *err)
{
	return run_server(args, /* dev= */ false, err);
}

enum hx_code dev_run(const struct command_args *args, struct hx_error *err)
{
	return run_server(args, /* dev= */ true, err);
}
