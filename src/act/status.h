/*
 * What the status of a whole http answer means. One table, from the top: the first line that fits decides. docs/actions.md shows
 * it, and tests/http/test_outcomes.sh runs a real service through every line of it.
 *
 * What the action's own `outcomes` say comes before all of it.
 */
#pragma once

#include "model/action.h"

enum status_when {
	WHEN_ALWAYS,
	WHEN_CLEANUP,     /* the action cleans up: there is nothing left to do */
	WHEN_INVALID,     /* the body says is_invalid */
	WHEN_KEYED_OPEN,  /* the action is keyed, and an earlier try is in doubt, or there is a Retry-After */
	WHEN_RETRY_AFTER, /* there is a Retry-After */
	WHEN_ON_5XX,      /* the step says on_5xx unknown */
};

struct status_rule {
	long from, to; /* both in it */
	enum status_when when;
	enum outcome_word word;
};

/* Ends with a line that takes every number. */
extern const struct status_rule status_rules[];
extern const size_t status_rules_n;

/* What is known of a call and its answer, beside the status. */
struct status_facts {
	const struct outcomes *outcomes; /* NULL: none */
	bool cleanup, keyed, in_doubt, retry_after, invalid, unknown_on_5xx;
};

struct status_meaning {
	enum outcome_word word;
	const struct status_rule *rule; /* NULL: it is the action's own word */
};

struct status_meaning status_meaning_of(long status, const struct status_facts *facts);
