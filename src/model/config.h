/*
 * The configuration file, parsed and checked. Immutable. Unknown fields are errors that name the place and the
 * nearest known name: a silently ignored field is an unprotected step.
 */
#pragma once

#include "base/json_tree.h"
#include "base/log.h"
#include "model/hook.h"
#include "model/secret_rules.h"
#include "model/workflow.h"

#define CONFIG_MODULES_MAX 200
#define CONFIG_QUEUES_MAX 1000

struct janitor_config {
	bool declared;
	bool external;
	int64_t every_ms;       /* default 2m */
	int64_t stuck_after_ms; /* default 5m */
};

struct module_config {
	const char *name;
	struct janitor_config janitor;
	size_t line;
};

/* A queue for workers. */
struct queue_config {
	const char *name;
	struct limits limits;
};

#define SQL_ROLE_BYTES_MAX 63 /* PostgreSQL cuts longer names in silence */

struct config {
	const char *file;
	size_t modules_n;
	const struct module_config *modules;
	const char *entry_lock_store; /* "memory:" by default */
	int64_t lease_ms;             /* default 60s */
	bool exec_enabled;
	size_t outbound_n;
	const char *const *outbound_allow; /* CIDRs, checked for form */
	struct secret_rules secrets;
	size_t queues_n;
	const struct queue_config *queues;
	size_t hooks_n;
	const struct hook_config *hooks;
	int64_t retain_runs_ms, retain_batches_ms, retain_jobs_ms, retain_bulks_ms; /* 0: for ever */
	const char *db, *listen, *workflows, *node;                                 /* NULL: not set here */
	const char *sql_role;     /* that sql actions run as; NULL: the store's own */
	int64_t max_body_bytes;   /* default 16 MiB */
	enum log_level log_level; /* default info */
	int64_t store_timeout_ms; /* default 2s */
	int64_t drain_notice_ms;  /* default 0: none */
};

/* Is this text a configuration, to judge by its members, which was taken for something else? */
bool config_file_is(struct slice text);
/* Defaults only. */
void config_init(struct config *config);
/* All findings are added. *ret then has what could be read and defaults for the rest: fit to go on checking with. */
void config_parse(const char *file, struct slice text, struct arena *arena, struct findings *findings,
		  struct config *ret);
/* NULL: the configuration does not name it. */
const struct module_config *config_module(const struct config *config, struct slice name);
/* NULL: it has none. */
const struct limits *config_queue_limits(const struct config *config, struct slice queue);

/*
 * Coverage: every claim_into that a workflow declares needs a janitor of its owning module. One error per
 * uncovered claim_into, naming workflow, step, requester and the missing module.
 */
void coverage_check(const struct workflow *const *workflows, size_t n, const struct config *config,
		    struct findings *findings);
