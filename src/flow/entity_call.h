/*
 * The call of an entity's step: what is written down of it before it is begun (kept_call.h), and what has to hold still from the
 * moment when the row was read until then. Neither a call without a claim nor its answer changes the version, so a claim has to look
 * for both; and of two calls under one key the second is the first, or there is none.
 */
#pragma once

#include <stdbool.h>
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
	struct slice claimant; /* who claims for it: another one, if it is made again */
	int64_t effort, version;
	struct slice address; /* in that version; empty: it has none */
	int64_t fence; /* as it was read: no claim has come since. In a table of the user's one may have been there */
	int64_t at_version; /* of the entity, as it was read: its data is in the call. 0: that is the user's own */
	int64_t counter;    /* the subject's effort as it was read; that of the call, if it is the first one */
	bool looked;        /* what is kept of the step was read, and is another's */
	bool kept;          /* it is one that is kept, made by this version, with this data */
	int64_t kept_version;
	struct slice data;
};

/* Guards of a claim, after its parameters 1 to 8 (subject_change.h; ?8 is the lease). */
#define ENTITY_SAME_EFFORT " AND effort = ?9"
#define ENTITY_NO_OTHER_CALL                                                                                           \
	" AND NOT EXISTS (SELECT 1 FROM hx_kept_call WHERE subject = ?7 AND step = ?10 AND effort >= ?11)"
#define ENTITY_CALL_VALUES(call) db_int((call)->counter), db_text((call)->step), db_int(entity_call_unseen(call))

/* Kept calls of the step from this effort on are none that it knows of. */
static inline int64_t entity_call_unseen(const struct entity_sent *call)
{
	if (call->kept)
		return INT64_MAX;
	return call->looked ? call->counter : 0;
}
