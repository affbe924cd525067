/* See tally.h. */
#include "engine/tally.h"

#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "flow/run.h"

const char *const tally_statuses[TALLY_STATUSES] = {RUN_COMPLETED, RUN_FAILED, RUN_CANCELLED};

void tally_init(struct tally *tally)
{
	pthread_mutex_init(&tally->mutex, NULL);
}

/* The line of this name, made if there is room; otherwise the last, which is for all others. */
static struct tally_line *line_of(struct tally *tally, const char *workflow)
{
	for (size_t i = 0; i < tally->n; i++)
		if (strcmp(tally->lines[i].workflow, workflow) == 0)
			return &tally->lines[i];
	if (tally->n < TALLY_WORKFLOWS_MAX)
		snprintf(tally->lines[tally->n].workflow, sizeof tally->lines[0].workflow, "%s", workflow);
	else if (tally->n == TALLY_WORKFLOWS_MAX)
		snprintf(tally->lines[tally->n].workflow, sizeof tally->lines[0].workflow, "(others)");
	else
		return &tally->lines[TALLY_WORKFLOWS_MAX];
	return &tally->lines[tally->n++];
}

void tally_add(struct tally *tally, const char *workflow, const char *status)
{
	int i = 0;

	while (i < TALLY_STATUSES && strcmp(tally_statuses[i], status) != 0)
		i++;
	if (i == TALLY_STATUSES)
		return;
	LOCKED(&tally->mutex);
	line_of(tally, workflow)->counts[i]++;
}

bool tally_read(struct tally *tally, size_t i, struct tally_line *ret_line)
{
	bool there;

	LOCKED(&tally->mutex);
	there = i < tally->n;
	if (there)
		*ret_line = tally->lines[i];
	return there;
}
