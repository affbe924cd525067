/* See config.h. Each object has its table of known fields; what is not given keeps its default. */
#include "model/config.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/excerpt.h"
#include "model/reader.h"
#include "model/text.h"

#define JANITOR_EVERY_MS_LEAST 1000
#define OUTBOUND_MAX 100
#define BODY_BYTES_LEAST 1024
#define BODY_BYTES_MOST (INT64_C(1) << 30)
#define WHERE_BYTES 100

void config_init(struct config *config)
{
	*config = (struct config){.file = "",
				  .entry_lock_store = "memory:",
				  .lease_ms = 60 * 1000,
				  .max_body_bytes = 16 << 20,
				  .store_timeout_ms = READER_STORE_TIMEOUT_MS,
				  .log_level = LOG_LEVEL_INFO};
}

/* ---- values with a form ---- */

/* As act/outbound.h takes it: nothing is set behind the prefix. */
static bool is_network(const char *text)
{
	const char *slash = strchr(text, '/');
	char address[INET6_ADDRSTRLEN];
	unsigned char bytes[sizeof(struct in6_addr)];
	size_t n = slash ? (size_t)(slash - text) : 0, bits = 32;

	if (!slash || n >= sizeof address)
		return false;
	memcpy(address, text, n);
	address[n] = '\0';
	if (inet_pton(AF_INET, address, bytes) != 1) {
		bits = 128;
		if (inet_pton(AF_INET6, address, bytes) != 1)
			return false;
	}
	if (!text_is_number_up_to(slash + 1, (unsigned)bits))
		return false;
	for (size_t bit = strtoul(slash + 1, NULL, 10); bit < bits; bit++)
		if (bytes[bit / 8] & 0x80 >> bit % 8)
			return false;
	return true;
}

/* ---- modules ---- */

static void read_janitor(const struct reader *outer, const struct json_node *node, struct janitor_config *janitor)
{
	static const char *const known[] = {"every", "stuck_after", "external", NULL};
	const struct json_node *every;
	struct reader r = *outer;
	char where[WHERE_BYTES];

	*janitor = (struct janitor_config){.every_ms = 2 * 60 * 1000, .stuck_after_ms = 5 * 60 * 1000};
	if (!reader_object(outer, node, "janitor"))
		return;
	snprintf(where, sizeof where, "%s.janitor", outer->where);
	r.where = where;
	reader_known(&r, node, known);
	janitor->declared = true;
	(void)reader_bool(&r, json_node_member(node, "external"), "external", &janitor->external);
	every = json_node_member(node, "every");
	if (reader_duration(&r, every, "every", &janitor->every_ms) && janitor->every_ms < JANITOR_EVERY_MS_LEAST)
		reader_warn(&r, every->at.line, "duration",
			    "every is %" PRId64 "ms, shorter than a second: the janitor does little else then",
			    janitor->every_ms);
	(void)reader_lease(&r, json_node_member(node, "stuck_after"), "stuck_after", &janitor->stuck_after_ms);
}

static void read_module(const struct reader *outer, const struct json_node *node, struct module_config *module)
{
	static const char *const known[] = {"janitor", NULL};
	struct reader r = *outer;
	char where[WHERE_BYTES];

	module->name = reader_keep(&r, node->name);
	module->line = node->name_at.line;
	snprintf(where, sizeof where, "modules.%s", excerpt_of(node->name).text);
	r.where = where;
	if (!name_is_valid(node->name))
		reader_report(&r, node->name_at.line, "name",
			      "a name has 1 to %d bytes of letters, digits, '_', '.' and '-'", WORKFLOW_NAME_MAX);
	if (!reader_object(&r, node, "a module"))
		return;
	reader_known(&r, node, known);
	read_janitor(&r, json_node_member(node, "janitor"), &module->janitor);
}

static void read_modules(const struct reader *r, const struct json_node *node, struct config *config)
{
	struct module_config *modules;
	size_t n = 0;

	if (!reader_object(r, node, "modules"))
		return;
	if (node->count > CONFIG_MODULES_MAX) {
		reader_report(r, node->at.line, "limit", "modules has %zu entries; at most %d", node->count,
			      CONFIG_MODULES_MAX);
		return;
	}
	modules = arena_zalloc(r->arena, node->count * sizeof *modules);
	if (!modules)
		return;
	json_node_for_each(member, node) read_module(r, member, &modules[n++]);
	if (r->arena->failed)
		return;
	config->modules = modules;
	config->modules_n = n;
}

const struct module_config *config_module(const struct config *config, struct slice name)
{
	for (size_t i = 0; i < config->modules_n; i++)
		if (slice_is(name, config->modules[i].name))
			return &config->modules[i];
	return NULL;
}

/* ---- the rest ---- */

static void read_retention(const struct reader *outer, const struct json_node *node, struct config *config)
{
	static const char *const known[] = {"runs", "batches", "jobs", NULL};
	struct reader r = *outer;

	r.where = "retention";
	if (!reader_object(outer, node, "retention"))
		return;
	reader_known(&r, node, known);
	(void)reader_duration(&r, json_node_member(node, "runs"), "runs", &config->retain_runs_ms);
	(void)reader_duration(&r, json_node_member(node, "batches"), "batches", &config->retain_batches_ms);
	(void)reader_duration(&r, json_node_member(node, "jobs"), "jobs", &config->retain_jobs_ms);
}

static void read_exec(const struct reader *outer, const struct json_node *node, struct config *config)
{
	static const char *const known[] = {"enabled", NULL};
	struct reader r = *outer;

	r.where = "exec";
	if (!reader_object(outer, node, "exec"))
		return;
	reader_known(&r, node, known);
	(void)reader_bool(&r, json_node_member(node, "enabled"), "enabled", &config->exec_enabled);
}

/* The name goes into SET ROLE: as PostgreSQL has it, and no longer than that. */
static void read_sql(const struct reader *outer, const struct json_node *node, struct config *config)
{
	static const char *const known[] = {"role", NULL};
	struct reader r = *outer;

	r.where = "sql";
	if (!reader_object(outer, node, "sql"))
		return;
	reader_known(&r, node, known);
	(void)reader_text(&r, json_node_member(node, "role"), "role", SQL_ROLE_BYTES_MAX, &config->sql_role);
}

void config_read_drain(const struct reader *outer, const struct json_node *node, int64_t *ret_notice_ms)
{
	static const char *const known[] = {"notice", NULL};
	const struct json_node *notice;
	struct reader r = *outer;

	r.where = "drain";
	if (!reader_object(outer, node, "drain"))
		return;
	reader_known(&r, node, known);
	notice = json_node_member(node, "notice");
	if (notice && notice->type == JSON_STRING && slice_is(notice->string, "0s"))
		*ret_notice_ms = 0;
	else
		(void)reader_duration(&r, notice, "notice", ret_notice_ms);
}

void config_read_log(const struct reader *outer, const struct json_node *node, enum log_level *ret_level)
{
	static const char *const known[] = {"level", NULL};
	static const char *const levels[] = {[LOG_LEVEL_DEBUG] = "debug",
					     [LOG_LEVEL_INFO] = "info",
					     [LOG_LEVEL_WARN] = "warn",
					     [LOG_LEVEL_ERROR] = "error",
					     NULL};
	struct reader r = *outer;
	int level = 0;

	r.where = "log";
	if (!reader_object(outer, node, "log"))
		return;
	reader_known(&r, node, known);
	if (reader_choice(&r, json_node_member(node, "level"), "level", levels, &level))
		*ret_level = (enum log_level)level;
}

/* A list of texts of one form. The entries that are kept; *ret_n of them. */
static const char **read_list(const struct reader *r, const struct json_node *node, size_t most,
			      bool (*is_good)(const char *), const char *form, size_t *ret_n)
{
	const char **list;

	if (!reader_array(r, node, "allow", 0, most))
		return NULL;
	list = arena_alloc(r->arena, (node->count + 1) * sizeof *list);
	if (!list)
		return NULL;
	json_node_for_each(element, node)
	{
		const char **entry = &list[*ret_n];

		if (!reader_text(r, element, "an entry of allow", READER_PATH_BYTES_MAX, entry))
			continue;
		if (!is_good(*entry))
			reader_report(r, element->at.line, "value", "allow: \"%s\" is not %s",
				      excerpt_of(slice_str(*entry)).text, form);
		(*ret_n)++;
	}
	return list;
}

static void read_outbound(const struct reader *outer, const struct json_node *node, struct config *config)
{
	static const char *const known[] = {"allow", NULL};
	struct reader r = *outer;

	r.where = "outbound";
	if (!reader_object(outer, node, "outbound"))
		return;
	reader_known(&r, node, known);
	config->outbound_allow = read_list(&r, json_node_member(node, "allow"), OUTBOUND_MAX, is_network,
					   "a network like 10.0.0.0/8", &config->outbound_n);
}

static bool is_secret_rule(const char *text)
{
	return secret_rule_is_good(slice_str(text));
}

static void read_secrets(const struct reader *outer, const struct json_node *node, struct config *config)
{
	static const char *const known[] = {"allow", NULL};
	struct reader r = *outer;

	r.where = "secrets";
	if (!reader_object(outer, node, "secrets"))
		return;
	reader_known(&r, node, known);
	config->secrets.given = true;
	config->secrets.allow = read_list(&r, json_node_member(node, "allow"), SECRET_RULES_MAX, is_secret_rule,
					  "env:NAME or file:/PATH, with a * at its end or without", &config->secrets.n);
}

static void read_config(const struct reader *r, const struct json_node *root, struct config *config)
{
	static const char *const known[] = {"modules",
					    "entry_lock_store",
					    "retention",
					    "lease",
					    "exec",
					    "outbound",
					    "sql",
					    "secrets",
					    "db",
					    "listen",
					    "workflows",
					    "node",
					    "max_body_bytes",
					    "log",
					    "store_timeout",
					    "drain",
					    NULL};

	if (!reader_object(r, root, "a configuration"))
		return;
	reader_known(r, root, known);
	read_modules(r, json_node_member(root, "modules"), config);
	(void)reader_store(r, json_node_member(root, "entry_lock_store"), "entry_lock_store", /* any= */ true,
			   &config->entry_lock_store);
	read_retention(r, json_node_member(root, "retention"), config);
	(void)reader_lease(r, json_node_member(root, "lease"), "lease", &config->lease_ms);
	read_exec(r, json_node_member(root, "exec"), config);
	config_read_log(r, json_node_member(root, "log"), &config->log_level);
	read_outbound(r, json_node_member(root, "outbound"), config);
	read_secrets(r, json_node_member(root, "secrets"), config);
	read_sql(r, json_node_member(root, "sql"), config);
	(void)reader_store(r, json_node_member(root, "db"), "db", /* any= */ false, &config->db);
	(void)reader_address(r, json_node_member(root, "listen"), "listen", &config->listen);
	(void)reader_text(r, json_node_member(root, "workflows"), "workflows", READER_PATH_BYTES_MAX,
			  &config->workflows);
	(void)reader_name(r, json_node_member(root, "node"), "node", &config->node);
	(void)reader_int(r, json_node_member(root, "max_body_bytes"), "max_body_bytes", BODY_BYTES_LEAST,
			 BODY_BYTES_MOST, &config->max_body_bytes);
	(void)reader_duration(r, json_node_member(root, "store_timeout"), "store_timeout", &config->store_timeout_ms);
	config_read_drain(r, json_node_member(root, "drain"), &config->drain_notice_ms);
}

static void read_any(const struct reader *r, const struct json_node *root, void *config)
{
	read_config(r, root, config);
}

void config_parse(const char *file, struct slice text, struct arena *arena, struct findings *findings,
		  struct config *ret)
{
	struct reader r = {.findings = findings, .arena = arena, .place.file = file};

	config_init(ret);
	if (!reader_configuration(&r, text, read_any, ret, &ret->file))
		ret->file = "";
}
