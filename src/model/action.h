/*
 * An action as a definition declares it: what to call, and what makes calling it safe. Immutable.
 *
 *   effect          who guarantees that it happens once
 *   idempotent      nobody needs to: twice is as good as once
 *   keyed           the other side, by our Idempotency-Key
 *   transactional   the store: the action is SQL in the unit of the transition
 *   claimed         the engine alone, by a claim: a crash in the middle leaves an unknown outcome
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "model/action_request.h"
#include "model/limits.h"
#include "model/outcomes.h"

#define ACTION_STATEMENTS_MAX 6
#define ACTION_PARAMS_MAX 12
#define ACTION_TIMEOUT_MS_DEFAULT 30000
#define ACTION_SQL_TIMEOUT_MS_DEFAULT 5000 /* the store works for nobody else meanwhile, if it is SQLite */

/* Who carries an action out. Everything that is asked of a kind outside of its own files is asked by this. */
enum action_by {
	BY_NOBODY, /* there is nothing to do */
	BY_UNIT,   /* the store, with its statements in the unit of the transition */
	BY_PORT,   /* this node, by a call (act/port.h) */
	BY_WORKER, /* whoever claims it as a job */
};

/* A row for each kind: its name, who carries it out, its effect and its time unless an action says otherwise. */
#define ACTION_KINDS(X)                                                                                                \
	X(HTTP, "http", BY_PORT, EFFECT_CLAIMED, ACTION_TIMEOUT_MS_DEFAULT)                                            \
	X(EXEC, "exec", BY_PORT, EFFECT_CLAIMED, ACTION_TIMEOUT_MS_DEFAULT)                                            \
	X(SQL, "sql", BY_UNIT, EFFECT_TRANSACTIONAL, ACTION_SQL_TIMEOUT_MS_DEFAULT)                                    \
	X(NATIVE, "native", BY_PORT, EFFECT_CLAIMED, ACTION_TIMEOUT_MS_DEFAULT)                                        \
	X(WORKER, "worker", BY_WORKER, EFFECT_CLAIMED, ACTION_TIMEOUT_MS_DEFAULT)                                      \
	X(NOOP, "noop", BY_NOBODY, EFFECT_IDEMPOTENT, ACTION_TIMEOUT_MS_DEFAULT)

#define ACTION_KIND_ENUM(kind, ...) ACTION_##kind,
enum action_kind { ACTION_KINDS(ACTION_KIND_ENUM) ACTION_KINDS_N };
#undef ACTION_KIND_ENUM
enum action_effect { EFFECT_IDEMPOTENT, EFFECT_KEYED, EFFECT_TRANSACTIONAL, EFFECT_CLAIMED };

/* One statement of a sql action. `:id`, `:input.amount` … have become ?1, ?2 …; params[i] is the path of ?i+1.
 * The text has no comments and quotes only from ' to ' and from " to "; outside of them there is no { } ? but ?N. */
struct action_statement {
	const char *name;
	const char *sql;
	bool must; /* zero rows: the step is rejected as INVALID, naming the statement */
	size_t params_n;
	const char *params
		[ACTION_PARAMS_MAX]; /* "id", "workflow", "requester", "version", "key", "now", "input", "input.a.b" */
};

struct action {
	const char *name;
	const char *workflow;
	enum action_kind kind;
	enum action_effect effect;
	int64_t timeout_ms;               /* of sql: for all its statements together */
	int64_t max_in_flight;            /* 0: no bound of its own */
	struct limits limits;             /* of attempts, over all nodes */
	const struct action *probe;       /* NULL: none */
	const struct action *void_action; /* of items: makes the key of one useless; NULL: none */
	bool gone_is_done;                /* of cleaning up: http 404 and 410 say that there is nothing left to do */
	const char *url;                  /* http */
	struct action_request request;    /* http */
	struct outcomes outcomes;         /* http */
	const char *const *argv;          /* exec: NULL-terminated */
	size_t statements_n;              /* sql */
	const struct action_statement *statements;
	const char *function; /* native: the name it was registered under */
	bool absent; /* and this program has none of that name: what needs it is left to one that has (engine/definition_natives.c) */
	const char *queue; /* worker */
	size_t line;
};

const char *action_kind_name(enum action_kind kind);
enum action_by action_kind_by(enum action_kind kind);
const char *action_effect_name(enum action_effect effect);
/* Its statements are part of the unit that moves its subject. */
bool action_is_inside(const struct action *action);
/* Something happens in the outside world, by a call or by a worker, of which nobody may hear how it went. */
bool action_is_outside(const struct action *action);
bool action_is_for_workers(const struct action *action);
/* What there is nothing of to do takes no time. */
bool action_has_timeout(const struct action *action);
/* Neither it nor its probe and void may be absent. NULL: none is (or there is no action at all), else one that is. */
const struct action *action_absent(const struct action *action);
