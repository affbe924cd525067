/* What the two files of the run's verbs share: run_verb.c decides, run_verb_units.c writes. */
#pragma once

#include "flow/answer.h"
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

#define VERB_TRIES_MAX 16           /* of a write that others were faster than */
#define VERB_TRIES_MAX_DEBOUNCE 200 /* the same, where all mean one run */
static inline unsigned verb_tries_max(const struct run_verb *v)
{
	return v->rq->start && v->rq->start->debounce.name ? VERB_TRIES_MAX_DEBOUNCE : VERB_TRIES_MAX;
}

#define VERB_NO_SUCH_EVENT "no step of the run waits for an event of this name"

static inline void end_run_verb(struct run_verb *v, enum hx_code code, const char *detail)
{
	v->detail = detail;
	task_end(&v->task, code);
}

/* Nothing has to be written: what was wanted is so already. */
static inline void end_unchanged(struct run_verb *v)
{
	v->changed = false;
	v->joins = false;
	end_run_verb(v, HX_OK, NULL);
}

/* True: its unit was committed, or has failed, and the verb ends with that. False: others were first. */
static inline bool verb_is_decided(struct run_verb *v, const struct answer *answer)
{
	enum unit_verdict verdict = answer->result->verdict;

	if (verdict == UNIT_WON && v->rq->along)
		v->rq->along->won(v->rq->along, answer->result);
	if (verdict == UNIT_WON || verdict == UNIT_FAILED)
		end_run_verb(v, verdict == UNIT_WON ? HX_OK : flow_failure(answer->result), NULL);
	return task_is_done(&v->task);
}

/* Of what goes along: it says that all this was done before. True: the verb ends with that. */
bool verb_ends_along(struct run_verb *v, const struct answer *answer);

/* run_verb_start.c: of a verb that may make its run. */
bool verb_awaits_event(const struct run_step *step, struct slice name);
bool verb_may_start(const struct run_verb *v);
void verb_start(struct run_verb *v, const struct answer *answer);
void verb_take_started(struct run_verb *v, const struct answer *answer);
void verb_take_found(struct run_verb *v, const struct answer *answer);
/* Of what was found by the name of its debounce, and has been read: false: that has begun, and it is looked for once more. */
bool verb_meets(struct run_verb *v, const struct answer *answer);
/* What a start that joins brings along. */
void verb_prepare_join(struct run_verb *v, const struct answer *answer);

void verb_build_start(const struct run_verb *v, struct unit *unit);
/* What it counts for again that was over and is not any more (singleton.h); 0: nothing. */
int64_t verb_singleton(const struct run_verb *v, const char *to);
void verb_build_find(const struct run_verb *v, struct unit *unit);
void verb_build_read(const struct run_verb *v, struct unit *unit);
void verb_build_write(const struct run_verb *v, struct unit *unit);
