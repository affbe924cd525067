/*
 * Which variables and files definitions may name in ${env:NAME} and ${file:PATH}: whoever may put a definition could otherwise
 * have the server send whatever it can read to a service of his own.
 *
 *   configuration           a definition of a file          one that is put
 *   no "secrets"            may name any                    none: refused when it is put
 *   "secrets": {"allow"}    those that are allowed          those that are allowed
 *
 * Entries are "env:NAME" and "file:PATH"; a * at the end stands for any rest. With a list, calls of whatever definition that name
 * something else fail before anything is sent, also those of definitions that are in the store already.
 */
#pragma once

#include <stdbool.h>

#include "base/slice.h"

#define SECRET_RULES_MAX 1000

struct definition;
struct findings;

struct secret_rules {
	bool given;
	size_t n;
	const char *const *allow;
};

/* Is this the form of an entry? */
bool secret_rule_is_good(struct slice entry);
/* The reference is what stands between ${ and }. A path that goes up again (..) is not below anything. */
bool secret_rules_allow(const struct secret_rules *rules, struct slice reference);
/* Each reference that the definition may not name is an error. */
void secret_rules_check(const struct secret_rules *rules, const struct definition *definition, bool put,
			struct findings *findings);
