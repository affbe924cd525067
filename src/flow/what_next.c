/* See what_next.h. */
#include "flow/what_next.h"

#include "flow/backoff.h"

#define ANY NEXT_IF_ANY
#define NO NEXT_IF_NO
#define YES NEXT_IF_YES
#define RETRY (1u << UNKNOWN_RETRY)
#define PROBE (1u << UNKNOWN_PROBE)
#define HOLD (1u << UNKNOWN_HOLD)
#define EVERY NEXT_EVERY_POLICY

const struct next_rule next_rules[] = {
	{HEARD_DONE, ANY, EVERY, ANY, NEXT_DONE},
	{HEARD_NOT_DONE, ANY, EVERY, YES, NEXT_AGAIN},
	{HEARD_NOT_DONE, YES, EVERY, NO, NEXT_HOLD}, /* mutant: failed-after-doubt */
	{HEARD_NOT_DONE, ANY, EVERY, NO, NEXT_FAIL},
	{HEARD_REFUSED, YES, EVERY, ANY, NEXT_HOLD}, /* mutant: refused-after-doubt */
	{HEARD_REFUSED, ANY, EVERY, ANY, NEXT_FAIL},
	{HEARD_UNSETTLED, ANY, HOLD, ANY, NEXT_HOLD},
	{HEARD_UNSETTLED, ANY, EVERY, YES, NEXT_SAME_AGAIN},
	{HEARD_UNSETTLED, ANY, PROBE, NO, NEXT_PROBE},
	{HEARD_UNSETTLED, ANY, EVERY, NO, NEXT_HOLD},
	{HEARD_UNKNOWN, ANY, PROBE, ANY, NEXT_PROBE},
	{HEARD_UNKNOWN, ANY, RETRY, YES, NEXT_AGAIN},
	{HEARD_UNKNOWN, ANY, EVERY, ANY, NEXT_HOLD},
	{HEARD_PROBE_UNKNOWN, ANY, EVERY, YES, NEXT_AGAIN},
	{HEARD_PROBE_UNKNOWN, ANY, EVERY, NO, NEXT_HOLD},
};
const size_t next_rules_n = sizeof next_rules / sizeof next_rules[0];

static bool what_next_fits(enum next_if wants, bool is)
{
	return wants == ANY || (wants == YES) == is;
}

static enum next_what what_next_decide(const struct tried *t, bool left)
{
	for (size_t i = 0; i < next_rules_n; i++) {
		const struct next_rule *rule = &next_rules[i];

		if (rule->heard == t->heard && what_next_fits(rule->doubt, t->doubt) &&
		    (rule->policies & 1u << t->policy) && what_next_fits(rule->left, left))
			return rule->next;
	}
	ASSERT(!"every case has its rule");
	return NEXT_HOLD;
}

static struct next unsettled(const struct tried *t, int64_t backoff)
{
	int64_t since = t->unsettled_since ? t->unsettled_since : t->now_ms;
	int64_t at = t->waits ? backoff_unsettled(since, t->now_ms, backoff, t->not_before_ms) : 0;
	struct next next = {.what = what_next_decide(t, at != 0), .doubt = true};

	if (next.what == NEXT_SAME_AGAIN) {
		next.rest_ms = at - t->now_ms;
		next.unsettled_since = since; /* mutant: unsettled-uses-attempts */
	}
	return next;
}

struct next what_next(const struct tried *t)
{
	int64_t backoff = backoff_ms(t->retry, t->attempt, t->drawn);
	struct next next;

	if (t->heard == HEARD_UNSETTLED)
		return unsettled(t, backoff);
	next = (struct next){
		.what = what_next_decide(t, t->attempt < t->retry->max_attempts),
		.doubt = t->doubt || t->heard == HEARD_UNKNOWN || t->heard == HEARD_PROBE_UNKNOWN,
	};
	if (next.what == NEXT_AGAIN)
		next.rest_ms = backoff_not_before(backoff, t->not_before_ms);
	return next;
}

enum heard heard_of(enum act_outcome outcome)
{
	switch (outcome) {
	case ACT_OK:
		return HEARD_DONE;
	case ACT_FAILED:
		return HEARD_NOT_DONE;
	case ACT_FAILED_FOR_GOOD:
	case ACT_INVALID:
		return HEARD_REFUSED;
	case ACT_UNSETTLED:
		return HEARD_UNSETTLED;
	case ACT_UNKNOWN:
	case ACT_CLAIM_LOST:
		break;
	}
	return HEARD_UNKNOWN;
}

enum on_unknown policy_of_effect(bool repeatable)
{
	return repeatable ? UNKNOWN_RETRY : UNKNOWN_HOLD;
}
