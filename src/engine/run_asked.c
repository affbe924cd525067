/* See run_asked.h. */
#include "engine/run_asked.h"

#include "engine/runs.h"
#include "flow/run_children.h"
#include "flow/run_verb.h"

#define SLICE 64
#define UNDER_WAY_MAX (SLICE + FEEDER_RESTING_MAX)
#define ARENA_BYTES (64u << 20)

/* A word that is being carried out. */
struct errand_of_parent {
	struct fed fed;
	struct run_verb verb;
	struct run_verb_request rq;
};

/* What failed is found again, after a while: the definition may have to be brought first. */
static void run_asked_ended(struct seat *seat, enum hx_code code)
{
	fed_end((struct fed *)seat, code ? FEEDER_REST_MS : 0);
}

static bool run_asked_begin(void *context, struct due due)
{
	struct feeder *asked = context;
	struct errand_of_parent *errand = fed_new(asked, due.subject, sizeof *errand, ARENA_BYTES);

	if (!errand)
		return false;
	errand->rq = (struct run_verb_request){
		.kind = RUN_OBEY, .subject = due.subject, .policy = asked->parts->run_policy};
	run_verb_init(&errand->verb, &errand->rq, &errand->fed.arena);
	return fed_begin(&errand->fed, &errand->verb.task, run_asked_ended);
}

const struct feed run_asked_feed = {&run_asked_source, UNDER_WAY_MAX, SLICE, run_asked_begin,
				    .size = sizeof(struct feeder)};
