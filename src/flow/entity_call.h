/*
 * The call of an entity's step: what is written down of it before it is begun (step_kept.c), and what has to hold still from the
 * moment when the row was read until then. Neither a call without a claim nor its answer changes the version, so a claim has to look
 * for both; and of two calls under one key the second is the first, or there is none.
 */
#pragma once

#include <stdint.h>

#include "base/slice.h"

/*
 * Of which step, from which status, for whom, with which input, under which key, by which version of the definition. That says all
 * else: where to, with which headers, what its answers mean.
 */
struct entity_sent {
	struct slice step;
	const char *from;
	struct slice requester, input;
	int64_t effort, version;
	struct slice address; /* in that version; empty: it has none */
	int64_t fence; /* as it was read: no claim has come since. In a table of the user's one may have been there */
	int64_t at_version; /* of the entity, as it was read: its data is in the call. 0: that is the user's own */
};

/* Guards of a claim, after its parameters 1 to 8 (subject_change.h; ?8 is the lease). */
#define ENTITY_SAME_EFFORT " AND effort = ?9"
#define ENTITY_NO_OTHER_CALL                                                                                           \
	" AND NOT EXISTS (SELECT 1 FROM hx_entity WHERE subject = ?7 AND claim_step = ?10 AND claim_effort = ?9"       \
	" AND claim_open > 0 AND (claim_input <> ?11 OR claim_requester <> ?12 OR claim_version <> ?13))"
#define ENTITY_CALL_VALUES(call)                                                                                       \
	db_int((call)->effort), db_text((call)->step), db_text((call)->input), db_text((call)->requester),             \
		db_int((call)->version)
