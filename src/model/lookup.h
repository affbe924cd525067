/*
 * What the lookups of workflow.h search: statuses by name, steps by key and status. Built while a definition is
 * parsed; the rules and the checks over several workflows use it too.
 */
#pragma once

#include "model/workflow.h"

/* A status and what the steps do with it. Of several uses the first in the text is kept. */
struct status_entry {
	struct slice name;
	const char *text;
	const char *revert_to; /* NULL: nobody claims into it */
	const struct step *claim_step;
	size_t claim_view;
	const struct step *source; /* a step that starts here */
	const struct step *target; /* a step with this successful_state */
};

struct workflow_index {
	size_t statuses_n;
	struct status_entry *statuses; /* by name */
	size_t steps_n;
	const struct step **steps; /* by step_key, then status, then line; only those that have both */
};

/* bsearch(), also over nothing at NULL. */
void *lookup(const void *key, const void *sorted, size_t n, size_t size, int (*compare)(const void *, const void *));
/* Names may stand twice; the parser reports that. NULL: the arena has failed. */
struct workflow_index *index_new(struct arena *a, const struct slice *statuses, size_t n);
/* NULL: there is no such status. */
struct status_entry *index_status(const struct workflow_index *index, struct slice name);
/* Once the steps have their keys and statuses. False: the arena has failed. */
bool index_steps(struct workflow_index *index, struct arena *a, const struct step *steps, size_t n);
/* As strcmp, over step_key and status. */
int step_compare(const struct step *a, const struct step *b);
