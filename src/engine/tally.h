/*
 * How many runs have ended on this node, by workflow and status, for metrics. Names come from the users, so there are at most
 * TALLY_WORKFLOWS_MAX; whatever is beyond is counted as one, under the name "(others)", which no workflow can have. Functions are one
 * line: their names are made up by workers, as many and as long as they like, and are those of a workspace alone.
 */
#pragma once

#include <pthread.h>

#include "model/workflow.h"

#define TALLY_WORKFLOWS_MAX 200
#define TALLY_FUNCTIONS "(functions)"

enum { TALLY_COMPLETED, TALLY_FAILED, TALLY_CANCELLED, TALLY_STATUSES };
extern const char *const tally_statuses[TALLY_STATUSES];

struct tally_line {
	char workflow[WORKFLOW_NAME_MAX + 1];
	uint64_t counts[TALLY_STATUSES];
};

struct tally {
	pthread_mutex_t mutex;
	size_t n;
	struct tally_line lines[TALLY_WORKFLOWS_MAX + 1];
};

/* In zeroed memory. */
void tally_init(struct tally *tally);
/* From any thread. A status that ends no run is not counted. */
void tally_add(struct tally *tally, const char *workflow, const char *status);
/* A copy of the line; false: there are not so many. */
bool tally_read(struct tally *tally, size_t i, struct tally_line *ret_line);
