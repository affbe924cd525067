/*
 * `outcomes` of an http action: what the author of a definition knows better than the table of act/status.h about what a status
 * of this one service means.
 *
 *   "outcomes": { "404": "done", "409": "retry", "500-599": "unknown" }
 *
 *   done       it was done; the body is read as that of a 2xx
 *   failed     it was not done, and trying again is pointless
 *   rejected   the same, and the body says why, as with 422
 *   retry      it was not done, and is tried again, not before its Retry-After
 *   unknown    it may have been done
 *
 * A single status counts more than a range that it is in; two ranges with a status in common are refused.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define OUTCOMES_MAX 32
#define OUTCOMES_STATUS_MIN 200 /* what is below is no final answer */
#define OUTCOMES_STATUS_MAX 599

enum outcome_word {
	OUTCOME_DONE,
	OUTCOME_FAILED,
	OUTCOME_REJECTED,
	OUTCOME_RETRY,
	OUTCOME_UNKNOWN,
	OUTCOME_UNSETTLED, /* of the table alone, nobody can write it: an earlier try under the same key is still under way */
};

struct outcome_range {
	long from, to; /* both in it */
	enum outcome_word word;
};

struct outcomes {
	size_t n;
	const struct outcome_range *ranges;
};

struct reader;
struct json_node;
struct field;

/* What was written for this status. False: nothing. */
bool outcomes_find(const struct outcomes *outcomes, long status, enum outcome_word *ret_word);
/* A field of an action (fields.h), into a struct outcomes. What is not right is reported. */
void outcomes_read(const struct reader *r, const struct json_node *node, const struct field *field, void *ret);
