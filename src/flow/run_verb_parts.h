/* What the two files of the run's verbs share: run_verb.c decides, run_verb_units.c writes. */
#pragma once

#include "flow/run_verb.h"

/* Lines of the reading unit after those of run_read(). */
enum {
	VERB_LINE_SEEN = 3,                /* event: the row of this id; approve: the decision there is */
	VERB_LINE_COUNT,                   /* event: how many there are */
	VERB_LINE_PARTS = VERB_LINE_COUNT, /* approve: the open parts of the run */
	VERB_LINE_PARTS_OF_RESOLVE = VERB_LINE_SEEN,
	VERB_LINE_MIGRATE = VERB_LINE_SEEN, /* migrate: the first of those of run_migrate_read() */
};

/* Is a step, or a compensation, held for a person? */
static inline bool verb_is_held(const struct run_row *row)
{
	return slice_is(row->step_status, RUN_STEP_UNKNOWN) && slice_is(row->awaits, RUN_AWAITS_PERSON);
}

void verb_build_start(const struct run_verb *v, struct unit *unit);
/* What it counts for again that was over and is not any more (singleton.h); 0: nothing. */
int64_t verb_singleton(const struct run_verb *v, const char *to);
void verb_build_find(const struct run_verb *v, struct unit *unit);
void verb_build_read(const struct run_verb *v, struct unit *unit);
void verb_build_write(const struct run_verb *v, struct unit *unit);
