/* See secret_rules.h. */
#include "model/secret_rules.h"

#include <string.h>

#include "base/excerpt.h"
#include "model/definition.h"

static bool begins_with(struct slice text, struct slice prefix)
{
	return text.n >= prefix.n && memcmp(text.p, prefix.p, prefix.n) == 0;
}

bool secret_rule_is_good(struct slice entry)
{
	struct slice env = slice_str("env:"), file = slice_str("file:/");
	const char *star = memchr(entry.p, '*', entry.n);

	if (star && star != entry.p + entry.n - 1)
		return false;
	return (begins_with(entry, env) && entry.n > env.n) || begins_with(entry, file);
}

static bool matches(struct slice entry, struct slice reference)
{
	if (entry.n && entry.p[entry.n - 1] == '*')
		return begins_with(reference, slice_of(entry.p, entry.n - 1));
	return slice_eq(entry, reference); /* mutant: secret-unlisted -> return begins_with(reference, entry); */
}

/* One of its parts is "..". */
static bool goes_up(struct slice reference)
{
	for (size_t i = 0; i + 2 < reference.n; i++)
		if (memcmp(reference.p + i, "/..", 3) == 0 && (i + 3 == reference.n || reference.p[i + 3] == '/'))
			return true;
	return false;
}

bool secret_rules_allow(const struct secret_rules *rules, struct slice reference)
{
	if (goes_up(reference)) /* mutant: secret-goes-up -> if (0) */
		return false;
	for (size_t i = 0; i < rules->n; i++)
		if (matches(slice_str(rules->allow[i]), reference))
			return true;
	return false;
}

static void secret_rules_refuse(const struct definition *definition, const struct action *action,
				struct slice reference, struct findings *findings)
{
	findings_add(findings, definition_finding(definition, FINDING_ERROR, action->line, "secret"),
		     "action %s: ${%s} is not among what the configuration allows (secrets.allow)", action->name,
		     excerpt_of(reference).text);
}

/* Whether the text is well formed was checked when it was read. */
static void check_value(const struct secret_rules *rules, const struct definition *definition,
			const struct action *action, const char *value, struct findings *findings)
{
	const char *open, *close;

	for (; (open = strstr(value, "${")) && (close = strchr(open, '}')); value = close + 1) {
		struct slice reference = slice_of(open + 2, (size_t)(close - open) - 2);

		if (!secret_rules_allow(rules, reference))
			secret_rules_refuse(definition, action, reference, findings);
	}
}

void secret_rules_check(const struct secret_rules *rules, const struct definition *definition, bool put,
			struct findings *findings)
{
	if (!rules->given && !put) /* mutant: secret-by-put -> if (!rules->given) */
		return;
	for (size_t i = 0; i < definition->actions_n; i++) {
		const struct action_request *request = &definition->actions[i].request;

		for (size_t h = 0; h < request->headers_n; h++)
			if (request->headers[h].value) /* what is computed is never filled in */
				check_value(rules, definition, &definition->actions[i], request->headers[h].value,
					    findings);
	}
}
