/*
 * Rules of the user's own, that `hapax explore` and `hapax test` look at (docs/explore.md): of a definition under `rules`, or of the file
 * of a world. To the engine they mean nothing.
 *
 *   never           true in no state
 *   always          true in every state
 *   ends            true wherever nothing goes on any more
 *   sometimes       true in some state: one that is never reached says nothing about what would follow
 *
 * Expressions over {"status", "doubt", "steps": {NAME: STATUS}, "ledger": {ACTION: how often it has happened}}.
 */
#pragma once

#include "model/expression.h"
#include "model/reader.h"

#define USER_RULES_MAX 32 /* of one file */

enum user_rule_kind { RULE_IS_NEVER, RULE_IS_ALWAYS, RULE_IS_ENDS, RULE_IS_SOMETIMES, RULE_KINDS_N };
extern const char *const user_rule_kinds[RULE_KINDS_N + 1];

struct user_rule {
	enum user_rule_kind kind;
	const struct expression *expression;
	const char *text, *file;
	const char *workflow; /* that it is about; NULL: all */
	size_t line;
};

/* Immutable. */
struct user_rules {
	size_t n;
	const struct user_rule *items;
};

/* The node may be NULL: there are none. In a definition they are about its workflow, elsewhere each may name one. */
void user_rules_read(const struct reader *r, const struct json_node *node, const char *workflow,
		     struct user_rules *ret);
/* Reports what they name and is not in the list, which ends with NULL: an action. */
void user_rules_check(const struct reader *r, const struct user_rules *rules, const char *const *actions);
/* A name that nobody has, with the nearest; the list ends with NULL. */
void user_rules_want(const struct reader *r, size_t line, const char *const *known, const char *what,
		     struct slice name);
