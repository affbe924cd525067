/* See status.h. */
#include "act/status.h"

#include <limits.h>

#include "base/error.h"

/* clang-format off */
const struct status_rule status_rules[] = {
	{200, 299,      WHEN_ALWAYS,      OUTCOME_DONE},
	{404, 404,      WHEN_CLEANUP,     OUTCOME_DONE},
	{410, 410,      WHEN_CLEANUP,     OUTCOME_DONE},
	{422, 422,      WHEN_ALWAYS,      OUTCOME_REJECTED},
	{400, 499,      WHEN_INVALID,     OUTCOME_REJECTED},
	{408, 408,      WHEN_ALWAYS,      OUTCOME_RETRY},
	{409, 409,      WHEN_KEYED_OPEN,  OUTCOME_UNSETTLED},
	{425, 425,      WHEN_ALWAYS,      OUTCOME_RETRY},
	{429, 429,      WHEN_ALWAYS,      OUTCOME_RETRY},
	{300, 499,      WHEN_ALWAYS,      OUTCOME_FAILED},
	{503, 503,      WHEN_RETRY_AFTER, OUTCOME_RETRY},
	{500, 599,      WHEN_ON_5XX,      OUTCOME_UNKNOWN},
	{500, 599,      WHEN_ALWAYS,      OUTCOME_RETRY},
	{0,   LONG_MAX, WHEN_ALWAYS,      OUTCOME_UNKNOWN},
};
/* clang-format on */

const size_t status_rules_n = sizeof status_rules / sizeof *status_rules;

static bool status_fits(enum status_when when, const struct status_facts *facts)
{
	switch (when) {
	case WHEN_ALWAYS:
		return true;
	case WHEN_CLEANUP:
		return facts->cleanup;
	case WHEN_INVALID:
		return facts->invalid;
	case WHEN_KEYED_OPEN:
		return facts->keyed && (facts->in_doubt || facts->retry_after);
	case WHEN_RETRY_AFTER:
		return facts->retry_after;
	case WHEN_ON_5XX:
		return facts->unknown_on_5xx;
	}
	ASSERT(!"every condition is looked at");
	return false;
}

struct status_meaning status_meaning_of(long status, const struct status_facts *facts)
{
	const struct status_rule *rule = status_rules;
	enum outcome_word word;

	if (facts->outcomes && outcomes_find(facts->outcomes, status, &word))
		return (struct status_meaning){word, NULL};
	while (status < rule->from || status > rule->to || !status_fits(rule->when, facts)) {
		rule++;
		ASSERT(rule < status_rules + status_rules_n);
	}
	return (struct status_meaning){rule->word, rule};
}
