/*
 * How an action is attempted where the engine drives it, in a task of a run or an item of a batch: how often, and what
 * follows when nobody knows whether it was done. The fields `retry`, `timeout`, `on_unknown` and `on_5xx` are read here,
 * once for both.
 */
#ifndef HX_MODEL_ATTEMPT_H
#define HX_MODEL_ATTEMPT_H

#include "model/reader.h"
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

/* All of these take a node that may be NULL, and leave the value as it is where there is nothing usable to read. */
void attempt_read_retry(const struct reader *r, const struct json_node *node, struct run_retry *retry);
/* whose: "a step of a run". Never UNKNOWN_REVERT. */
void attempt_read_on_unknown(const struct reader *r, const struct json_node *node, const char *whose,
			     enum on_unknown *on_unknown);
void attempt_read_on_5xx(const struct reader *r, const struct json_node *node, bool *unknown_on_5xx);

/*
 * Between these fields and the action, once both are read. `written` is the node of on_unknown; where it is NULL,
 * *on_unknown becomes the default of the action's effect.
 */
void attempt_settle_on_unknown(const struct reader *r, const struct json_node *written, const struct action *action,
			       enum on_unknown *on_unknown);
void attempt_check_timeout(const struct reader *r, const struct json_node *timeout, const struct action *action);

#endif
