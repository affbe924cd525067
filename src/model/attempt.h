/*
 * How an action is attempted where the engine drives it, in a task of a run or an item of a batch: how often, and what
 * follows when nobody knows whether it was done. The fields `retry`, `timeout`, `on_unknown` and `on_5xx` are read here,
 * once for both.
 */
#pragma once

#include "model/fields.h"
#include "model/workflow.h"

#define RUN_ATTEMPTS_MAX 1000
#define RUN_FACTOR_MAX 1000

/* Attempt 1 is followed by initial_ms of rest, each further one by factor times as much, at most max_ms. */
struct run_retry {
	int64_t max_attempts; /* 1: no second one */
	int64_t initial_ms;
	int64_t max_ms;
	int64_t factor_thousandths; /* 2 is 2000: exact, and the same on every node */
	bool jitter;
};

/* 3 attempts, 1s, doubled, at most 5m, with jitter. */
extern const struct run_retry run_retry_default;

/* Lines of tables. on_unknown is never UNKNOWN_REVERT; on_5xx is a bool: is it unknown? Of the steps of entities, too. */
#define FIELD_RETRY(S, member) FIELD_OWN_AT(S, member, struct run_retry, attempt_read_retry)
#define FIELD_ON_UNKNOWN(S, member) FIELD_OWN_AT(S, member, enum on_unknown, attempt_read_on_unknown)
#define FIELD_ON_5XX(S, member) FIELD_CHOICE(S, member, attempt_on_5xx)
field_read_fn attempt_read_retry, attempt_read_on_unknown;
extern const char *const attempt_on_5xx[];

/*
 * Between these fields and the action, once both are read. `written` is the node of on_unknown; where it is NULL,
 * *on_unknown becomes the default of the action's effect.
 */
void attempt_settle_on_unknown(const struct reader *r, const struct json_node *written, const struct action *action,
			       enum on_unknown *on_unknown);
void attempt_check_timeout(const struct reader *r, const struct json_node *timeout, const struct action *action);
