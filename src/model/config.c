/* See config.h. Each object has its table of fields; what is not given keeps its default. */
#include "model/config.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/excerpt.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "model/config_fields.h"
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

/* As act/outbound.h takes it: nothing is set after the prefix. */
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

static void read_every(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	int64_t *every_ms = ret;

	if (reader_duration(r, node, field->name, every_ms) && *every_ms < JANITOR_EVERY_MS_LEAST)
		reader_warn(r, node->at.line, "duration",
			    "every is %" PRId64 "ms, shorter than a second: the janitor does little else then",
			    *every_ms);
}

static const struct field janitor_fields[] = {
	{"every", FIELD_OWN_AT(struct janitor_config, every_ms, int64_t, read_every)},
	{"stuck_after", FIELD_LEASE(struct janitor_config, stuck_after_ms)},
	{"external", FIELD_BOOL(struct janitor_config, external)},
	{0}};

static const struct field module_fields[] = {{"janitor", FIELD_OBJECT(struct module_config, janitor, janitor_fields)},
					     {0}};

/* What has a name of the user's own, and fields. */
static bool read_named(const struct reader *outer, const struct json_node *node, const char *of, const char *what,
		       const struct field *fields, void *ret)
{
	struct reader r = *outer;
	char where[WHERE_BYTES];

	snprintf(where, sizeof where, "%s.%s", of, excerpt_of(node->name).text);
	r.where = where;
	if (!name_is_valid(node->name))
		reader_report(&r, node->name_at.line, "name",
			      "a name has 1 to %d bytes of letters, digits, '_', '.' and '-'", WORKFLOW_NAME_MAX);
	if (!reader_object(&r, node, what))
		return false;
	fields_read(&r, node, fields, ret);
	return true;
}

static void read_module(const struct reader *r, const struct json_node *node, struct module_config *module)
{
	const struct json_node *janitor = json_node_member(node, "janitor");

	*module = (struct module_config){
		.name = reader_keep(r, node->name),
		.line = node->name_at.line,
		.janitor = {.every_ms = 2 * 60 * 1000, .stuck_after_ms = 5 * 60 * 1000},
	};
	if (read_named(r, node, "modules", "a module", module_fields, module))
		module->janitor.declared = janitor && janitor->type == JSON_OBJECT;
}

static void read_modules(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	struct config *config = ret;
	struct module_config *modules = reader_map(r, node, field->name, CONFIG_MODULES_MAX, sizeof *modules);
	size_t n = 0;

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

/* ---- queues ---- */

static const struct field queue_fields[] = {
	{"limits", FIELD_OWN_AT(struct queue_config, limits, struct limits, limits_read_of_queue)}, {0}};

static void read_queues(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	struct config *config = ret;
	struct queue_config *queues = reader_map(r, node, field->name, CONFIG_QUEUES_MAX, sizeof *queues);
	size_t n = 0;

	if (!queues)
		return;
	json_node_for_each(member, node)
	{
		queues[n] = (struct queue_config){.name = reader_keep(r, member->name)};
		(void)read_named(r, member, "queues", "a queue", queue_fields, &queues[n]); /* reported there */
		if (slice_is(member->name, "after-effects"))
			reader_report(r, member->name_at.line, "name",
				      "queues: \"after-effects\" is the engine's own, and no worker claims from it");
		n++;
	}
	if (r->arena->failed)
		return;
	config->queues = queues;
	config->queues_n = n;
}

const struct limits *config_queue_limits(const struct config *config, struct slice queue)
{
	for (size_t i = 0; i < config->queues_n; i++)
		if (slice_is(queue, config->queues[i].name))
			return limits_are_set(&config->queues[i].limits) ? &config->queues[i].limits : NULL;
	return NULL;
}

static void read_hooks(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	struct config *config = ret;
	struct hook_config *hooks = NULL;

	(void)field;
	hooks_read(r, node, &hooks, &config->hooks_n);
	config->hooks = hooks;
}

/* ---- lists ---- */

/* Texts of one form. The entries that are kept; *ret_n of them. */
static const char **read_list(const struct reader *r, const struct json_node *node, size_t most,
			      bool (*is_good)(const char *), const char *form, size_t *ret_n)
{
	const char **list = reader_list(r, node, "allow", 0, most, sizeof *list);

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

static void read_networks(const struct reader *r, const struct json_node *node, const struct field *field UNUSED,
			  void *ret)
{
	struct config *config = ret;

	config->outbound_allow = read_list(r, node, OUTBOUND_MAX, is_network, "a network like 10.0.0.0/8",
					   &config->outbound_n);
}

static bool is_secret_rule(const char *text)
{
	return secret_rule_is_good(slice_str(text));
}

static void read_secret_rules(const struct reader *r, const struct json_node *node, const struct field *field UNUSED,
			      void *ret)
{
	struct secret_rules *rules = ret;

	rules->allow = read_list(r, node, SECRET_RULES_MAX, is_secret_rule,
				 "env:NAME or file:/PATH, with a * at its end or without", &rules->n);
}

/* ---- the rest ---- */

/* "0s" is none, which no duration is. */
static void read_notice(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	int64_t *notice_ms = ret;

	if (node->type == JSON_STRING && slice_is(node->string, "0s"))
		*notice_ms = 0;
	else
		(void)reader_duration(r, node, field->name, notice_ms); /* reported there */
}

static const char *const levels[] = {[LOG_LEVEL_DEBUG] = "debug",
				     [LOG_LEVEL_INFO] = "info",
				     [LOG_LEVEL_WARN] = "warn",
				     [LOG_LEVEL_ERROR] = "error",
				     NULL};

const struct field drain_fields[] = {{"notice", FIELD_OWN(read_notice)}, {0}};
const struct field log_fields[] = {{"level", .kind = FIELD_IS_CHOICE, .size = sizeof(enum log_level), .names = levels},
				   {0}};

/* clang-format off */
static const struct field retention_fields[] = {
	{"runs",    FIELD_DURATION(struct config, retain_runs_ms)},
	{"batches", FIELD_DURATION(struct config, retain_batches_ms)},
	{"jobs",    FIELD_DURATION(struct config, retain_jobs_ms)},
	{"bulks",   FIELD_DURATION(struct config, retain_bulks_ms)},
	{0}};
static const struct field exec_fields[] = {{"enabled", FIELD_BOOL(struct config, exec_enabled)}, {0}};
static const struct field outbound_fields[] = {{"allow", FIELD_OWN(read_networks)}, {0}};
static const struct field secrets_fields[] = {{"allow", FIELD_OWN(read_secret_rules)}, {0}};
/* The name goes into SET ROLE: as PostgreSQL has it, and no longer than that. */
static const struct field sql_fields[] = {{"role", FIELD_TEXT(struct config, sql_role, SQL_ROLE_BYTES_MAX)}, {0}};

static const struct field config_fields[] = {
	{"hooks",            FIELD_OWN(read_hooks)},
	{"modules",          FIELD_OWN(read_modules)},
	{"queues",           FIELD_OWN(read_queues)},
	{"entry_lock_store", FIELD_ANY_STORE(struct config, entry_lock_store)},
	{"retention",        FIELD_PART(retention_fields)},
	{"lease",            FIELD_LEASE(struct config, lease_ms)},
	{"exec",             FIELD_PART(exec_fields)},
	{"outbound",         FIELD_PART(outbound_fields)},
	{"sql",              FIELD_PART(sql_fields)},
	{"secrets",          FIELD_OBJECT(struct config, secrets, secrets_fields)},
	{"db",               FIELD_STORE(struct config, db)},
	{"listen",           FIELD_ADDRESS(struct config, listen)},
	{"workflows",        FIELD_TEXT(struct config, workflows, READER_PATH_BYTES_MAX)},
	{"node",             FIELD_NAME(struct config, node)},
	{"max_body_bytes",   FIELD_INT(struct config, max_body_bytes, BODY_BYTES_LEAST, BODY_BYTES_MOST)},
	{"log",              FIELD_OBJECT(struct config, log_level, log_fields)},
	{"store_timeout",    FIELD_DURATION(struct config, store_timeout_ms)},
	{"drain",            FIELD_OBJECT(struct config, drain_notice_ms, drain_fields)},
	{0}};
/* clang-format on */

bool config_file_is(struct slice text)
{
	struct json root, name, value;
	bool has = false;

	if (json_check(text, /* err= */ NULL, &root) || json_type(root) != JSON_OBJECT)
		return false;
	for (struct json_iter it = json_iter_of(root); json_iter_member(&it, &name, &value);) {
		if (json_string_is(name, slice_str("workflow")) || json_string_is(name, slice_str("kind")))
			return false;
		for (const struct field *f = config_fields; f->name; f++)
			has |= json_string_is(name, slice_str(f->name));
	}
	return has;
}

static void config_read_config(const struct reader *r, const struct json_node *root, void *ret)
{
	const struct json_node *secrets = json_node_member(root, "secrets");
	struct config *config = ret;

	if (!reader_object(r, root, "a configuration"))
		return;
	fields_read(r, root, config_fields, config);
	config->secrets.given = secrets && secrets->type == JSON_OBJECT;
}

void config_parse(const char *file, struct slice text, struct arena *arena, struct findings *findings,
		  struct config *ret)
{
	struct reader r = {.findings = findings, .arena = arena, .place.file = file};

	config_init(ret);
	if (!reader_configuration(&r, text, config_read_config, ret, &ret->file))
		ret->file = "";
}
