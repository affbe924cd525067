/*
 * The ways: which status may follow which, and by what. One table for runs, one for batches, one for jobs; nothing else says it.
 *
 *   who decides      verbs on a run ask whether one leads on from where it stands (run_verb.c)
 *   who writes       asserts it in debug builds, before the unit is built (run_units.c, batch_units.c)
 *   who looks        follows every history by it: the audit (H6 of audit_chain.h), the simulator on every edge (I9)
 *   who reads        docs/runs.md and docs/batches.md show the tables; tests/unit/flow/test_ways.c compares them, word by word
 *
 * A history has a row for what changes nothing but the version, too: a way may lead to where it came from.
 */
#pragma once

#include <stdbool.h>

#include "base/slice.h"

#define WAY_STATUSES_MAX 6

struct way {
	const char *by;
	const char *from[WAY_STATUSES_MAX]; /* ends with NULL; "": it is not there yet */
	const char *to[WAY_STATUSES_MAX];   /* ends with NULL; none: it stays where it is */
};

struct ways {
	const char *const *statuses; /* all there are; ends with NULL */
	const char *terminal[4];     /* ends with NULL: nobody holds it there, and its row says when it got there */
	const struct way *ways;      /* ends with by NULL */
};
extern const struct ways run_ways, batch_ways, job_ways, account_ways;

/* by NULL: by whatever. */
bool ways_lead(const struct ways *ways, const char *by, struct slice from, struct slice to);
/* Does anything lead on from there? */
bool ways_go_on(const struct ways *ways, struct slice from);
bool ways_is_terminal(const struct ways *ways, struct slice status);
/* The same, for whoever waits: for one that we do not know there is nothing to wait for either. */
bool ways_have_ended(const struct ways *ways, struct slice status);
/* The constant that has this text; NULL: none. */
const char *ways_status(const struct ways *ways, struct slice text);
