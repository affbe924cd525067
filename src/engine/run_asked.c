/* See run_asked.h. */
#include "engine/run_asked.h"

#include <stdlib.h>

#define SLICE 64
#define UNDER_WAY_MAX (SLICE + FEEDER_RESTING_MAX)
#define POLL_MS 1000
#define ARENA_BYTES (64u << 20)

/* A word that is being carried out. */
struct errand_of_parent {
	struct fed fed;
	struct run_verb verb;
	struct run_verb_request rq;
};

static void scan(const struct due_source *source UNUSED, struct unit *unit, int64_t limit)
{
	run_scan_asked(unit, limit);
}

/* What failed is found again, after a while: the definition may have to be brought first. */
static void run_asked_ended(struct seat *seat, enum hx_code code)
{
	fed_end((struct fed *)seat, code ? FEEDER_REST_MS : 0);
}

static bool run_asked_begin(void *context, int64_t subject)
{
	struct run_asked *asked = context;
	struct errand_of_parent *errand = fed_new(&asked->feeder, subject, sizeof *errand, ARENA_BYTES);

	if (!errand)
		return false;
	errand->rq = (struct run_verb_request){.kind = RUN_OBEY, .subject = subject, .policy = asked->policy};
	run_verb_init(&errand->verb, &errand->rq, &errand->fed.arena);
	return fed_begin(&errand->fed, &errand->verb.task, run_asked_ended);
}

enum hx_code run_asked_start(struct run_asked *asked, struct lanes *lanes, struct clock *clock,
			     const struct run_policy *policy, struct hx_error *err)
{
	static const struct feed feed = {
		{"asked", RUN_TOPIC, POLL_MS, scan, NULL, NULL}, UNDER_WAY_MAX, SLICE, run_asked_begin};

	asked->policy = policy;
	return feeder_start(&asked->feeder, &feed, lanes, clock, asked, err);
}
