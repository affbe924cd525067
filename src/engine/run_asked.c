/* See run_asked.h. */
#include "engine/run_asked.h"

#include <stdlib.h>

#define SLICE 64
#define UNDER_WAY_MAX (SLICE + FEEDER_RESTING_MAX)
#define POLL_MS 1000
#define ARENA_BYTES (64u << 20)

/* A word that is being carried out. */
struct errand_of_parent {
	struct seat seat;
	struct run_verb verb;
	struct run_verb_request rq;
	struct arena arena;
	struct run_asked *asked;
};

static void scan(const struct due_source *source UNUSED, struct unit *unit, int64_t limit)
{
	run_scan_asked(unit, limit);
}

/* What failed is found again, after a while: the definition may have to be brought first. */
static void run_asked_ended(struct seat *seat, enum hx_code code)
{
	struct errand_of_parent *errand = (struct errand_of_parent *)seat;
	struct feeder *feeder = &errand->asked->feeder;
	int64_t subject = errand->rq.subject;

	arena_release(&errand->arena);
	free(errand);
	feeder_ended(feeder, subject, code ? FEEDER_REST_MS : 0);
}

static bool run_asked_begin(void *context, int64_t subject)
{
	struct run_asked *asked = context;
	struct errand_of_parent *errand = calloc(1, sizeof *errand);

	if (!errand)
		return false;
	errand->asked = asked;
	errand->rq = (struct run_verb_request){.kind = RUN_OBEY, .subject = subject, .policy = asked->policy};
	arena_init(&errand->arena, ARENA_BYTES);
	run_verb_init(&errand->verb, &errand->rq, &errand->arena);
	errand->seat = (struct seat){.task = &errand->verb.task, .done = run_asked_ended};
	return feeder_begin(&asked->feeder, subject, &errand->seat);
}

enum hx_code run_asked_start(struct run_asked *asked, struct lanes *lanes, struct clock *clock,
			     const struct run_policy *policy)
{
	struct feeder_options options = {
		.lanes = lanes,
		.clock = clock,
		.source = {.name = "asked", .topic = RUN_TOPIC, .poll_ms = POLL_MS, .scan = scan},
		.under_way_max = UNDER_WAY_MAX,
		.slice = SLICE,
		.begin = run_asked_begin,
		.context = asked,
	};

	asked->policy = policy;
	return feeder_start(&asked->feeder, &options);
}
