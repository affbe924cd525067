/*
 * What comes after a try: done, once more, a probe, a person, or never. The one place that decides it, for tasks of runs and their
 * compensations, items of batches, after-effects, workers' jobs and steps of entities. Pure.
 *
 * Who asks says what was heard of the try, whether a try before it under the same key may have been done (doubt), what the
 * definition wants of an unknown outcome, and which attempt it was. The rules are a table; tests/unit/flow/test_what_next.c prints it
 * into docs/actions.md. The one idea in it: after a doubt only "done" is an answer. What is certain about this try says nothing about
 * the one before it, so where a first try would fail, a later one is held for a person.
 */
#pragma once

#include "model/attempt.h"
#include "task/task.h"

enum heard {
	HEARD_DONE,
	HEARD_NOT_DONE,      /* and it may be tried again */
	HEARD_REFUSED,       /* not done, and trying again is pointless */
	HEARD_UNSETTLED,     /* the other side is at a try before it, and says nothing about that */
	HEARD_UNKNOWN,       /* also: whoever had begun it was lost */
	HEARD_PROBE_UNKNOWN, /* the probe was asked, and does not know either */
};

struct tried {
	enum heard heard;
	bool doubt; /* before this try */
	enum on_unknown policy;
	const struct run_retry *retry;
	int64_t attempt;         /* which one this was, from 1 */
	int64_t drawn;           /* a fresh id: chooses the jitter */
	int64_t now_ms;          /* of the store */
	int64_t not_before_ms;   /* the other side does not want to be asked for so long; 0: it said nothing */
	int64_t unsettled_since; /* the moment at which it has first said that it is at it; 0: it has not */
	bool waits;              /* for what is unsettled. Who has a caller that waits does not. */
};

enum next_what {
	NEXT_DONE,
	NEXT_AGAIN,      /* after a rest, as the next attempt */
	NEXT_SAME_AGAIN, /* after a rest, as the same attempt */
	NEXT_PROBE,
	NEXT_HOLD, /* nobody knows, and nothing more is tried: for a person, or for whatever the caller has for that */
	NEXT_FAIL, /* certainly not done, and not tried again */
};

struct next {
	enum next_what what;
	bool doubt;              /* after this try */
	int64_t rest_ms;         /* NEXT_AGAIN, NEXT_SAME_AGAIN */
	int64_t unsettled_since; /* NEXT_SAME_AGAIN; else 0 */
};

struct next what_next(const struct tried *tried);
/* Not of ACT_CLAIM_LOST: whoever lost the claim has nothing to decide. */
enum heard heard_of(enum act_outcome outcome);
/* For an effect that nobody has said a policy for: it is repeated if that is safe by its key, or by its nature. */
enum on_unknown policy_of_effect(bool repeatable);

/* ---- the rules: from the top, the first that fits ---- */

enum next_if { NEXT_IF_ANY, NEXT_IF_NO, NEXT_IF_YES };
#define NEXT_EVERY_POLICY 15u

struct next_rule {
	enum heard heard;
	enum next_if doubt;
	unsigned policies; /* bits: 1 << UNKNOWN_… */
	enum next_if left; /* attempts; of what is unsettled: time */
	enum next_what next;
};
extern const struct next_rule next_rules[];
extern const size_t next_rules_n;
