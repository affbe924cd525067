/* Whether a rule of the user's own (model/user_rule.h) holds of what is seen: {"status", "doubt", "steps", "ledger"}. */
#pragma once

#include "base/arena.h"
#include "base/strbuf.h"
#include "model/user_rule.h"

/* `quiet`: nothing goes on any more. False: it does not, and `words`, which were empty, say how. *ret_reached is set where a
 * `sometimes` is true. */
bool own_rule_holds(const struct user_rule *rule, struct slice sight, bool quiet, struct arena *scratch,
		    bool *ret_reached, struct strbuf *words) HX_MUST_CHECK;
