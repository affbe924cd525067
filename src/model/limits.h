/*
 * `limits` of a workflow, of an action or of a queue: how many at once, by a key.
 *
 *   concurrency   at most `max` are at work at once
 *   rate          at most `max` are begun in any time of `per`
 *   singleton     a start while one is not terminal is answered with that one
 *   debounce      a start while one has not begun replaces its input, and puts it off
 *
 * `by` is an expression over the input, whose value is the key: each value has a count of its own. Absent, there is one count for
 * the whole workflow, action or queue. The input of an action is that of the step which calls it; of a job it is its payload, and called
 * so. Singleton and debounce are about starts of runs, and actions and queues have none of them. A value that cannot be made (of a string, say, a member is asked for) counts as null.
 */
#pragma once

#include "model/expression.h"
#include "model/fields.h"

#define LIMIT_MAX 10000

struct limit_concurrency {
	const struct expression *by; /* NULL: one count for all */
	int64_t max;                 /* 0: there is no such limit */
};

struct limit_rate {
	const struct expression *by; /* the same */
	int64_t max, per_ms;         /* 0: there is no such limit */
};

struct limit_singleton {
	const struct expression *by; /* the same */
	bool set;                    /* false: there is no such limit */
};

struct limit_debounce {
	const struct expression *by; /* the same */
	int64_t for_ms;              /* 0: there is no such limit */
	int64_t at_most_ms;          /* from the first start on; 0: as long as others come */
};

struct limits {
	struct limit_concurrency concurrency;
	struct limit_rate rate;
	struct limit_singleton singleton;
	struct limit_debounce debounce;
};

/* The field `limits` of a workflow, of an action, and of a queue, into a struct limits. */
field_read_fn limits_read;
field_read_fn limits_read_of_action;
field_read_fn limits_read_of_queue;

static inline bool limits_are_set(const struct limits *limits)
{
	return limits->concurrency.max || limits->rate.max;
}

/*
 * The key of an input, in canonical form, so that 1 and 1.0 are one. Lives in the arena. .p NULL: there is no room, neither for it nor for
 * its being null.
 */
struct slice limit_key(const struct expression *by, struct json input, struct arena *arena);
/* The same of the payload of a job. */
struct slice limit_key_of_job(const struct expression *by, struct json payload, struct arena *arena);
