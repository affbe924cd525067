/*
 * All that waits for a person, of every kind, the oldest first: what `hapax attention` and GET /attention list, and the gauges
 * count. Nothing here is kept for it: each kind is a condition on the rows of its noun, and a partial index finds them.
 *
 *   kind                  what waits, and what ends it
 *   held_claim            an entity whose claim is held: resolve
 *   unknown_step          a run with a step whose outcome is unknown: resolve
 *   failed_compensation   a run that cannot be undone further: retry
 *   failed_run            a run that is FAILED: retry, or cancel
 *   approval              a run that waits for a decision: approve
 *   paused_run            a run that somebody has paused, and in which nothing is under way: resume
 *   parked_job            a worker's job without attempts left: redrive
 *   parked_after_effect   an after-effect likewise: redrive
 *   unknown_items         a batch with items whose outcome is unknown: resolve
 *   late_schedule         a schedule whose slot nobody has started within a minute: see why
 *   stuck_teardown        a batch whose cleanup has been let go at least once: see what its service says
 *   held_request          a request that a gate holds, which keeps its records in this store: resolve. It is of no workspace, and for
 *                         operators
 *
 * Not among them: batches that wait for credit, which resumes them by itself, wherever it comes from.
 *
 * By money: what a batch was charged and has not given back; of runs and entities the attribute `amount`, in whole units. The most first.
 */
#pragma once

#include "db/unit.h"

/* Columns. */
enum {
	ATTENTION_KIND,
	ATTENTION_SUBJECT,
	ATTENTION_WORKFLOW,
	ATTENTION_NAME, /* of an entity, else '' */
	ATTENTION_STATUS,
	ATTENTION_SINCE,
	ATTENTION_STEP,   /* or action; NULL: `detail` has it, or there is none */
	ATTENTION_DETAIL, /* what is known; NULL: nothing. Of a run it is the error, as JSON */
	ATTENTION_VERSION,
	ATTENTION_PLACE,  /* in the order: with the subject, a cursor */
	ATTENTION_MONEY,  /* in whole units; 0: none is known */
	ATTENTION_AMOUNT, /* the attribute, as it is kept (base/sortable.h); NULL: it has none */
	ATTENTION_RECORD, /* and on: of held_request, as gate/record_look.h reads it */
};

struct attention_filter {
	struct slice workspace;
	struct slice kind;      /* empty: any */
	int64_t place, subject; /* after this one in the order */
	int64_t limit;
	bool by_money;
	bool operator_asks; /* who sees what is of no workspace */
};
void attention_list(struct unit *unit, const struct attention_filter *filter);

/* How many there are, over all workspaces, by kind and workflow, the most first; of each kind `most` are counted. The `limit`
 * pairs with the most have their names, what is left of a kind is one, COUNT_OTHERS. Columns: kind, workflow, how many, since
 * when the oldest. */
void attention_count(struct unit *unit, int64_t most, int64_t limit);

extern const char *const attention_kinds[]; /* ends with NULL */
#define ATTENTION_KINDS 14
#define ATTENTION_RUNS "6223150775284038661"      /* run_kind(), as it stands in the index 0027_paused */
#define ATTENTION_FUNCTIONS "4358593838217601458" /* function_kind(), as it stands in an index of 0045_functions */

/*
 * The text of such a count: of `rows` with kind, `name` and a time, of which `oldest` makes one; ?2 is the limit, and `first`
 * the order in which names come before those with more. Sums stay true, however many names somebody invents.
 */
#define COUNT_OTHERS "(others)"
#define COUNT_BY_NAME(name, oldest, time, first, rows)                                                                 \
	"SELECT kind, CASE WHEN place > ?2 THEN '" COUNT_OTHERS "' ELSE " name " END AS label,"                        \
	" CAST(sum(n) AS BIGINT), " oldest "(oldest) FROM (SELECT kind, " name ", count(*) AS n, " oldest "(" time     \
	") AS oldest, row_number() OVER (ORDER BY " first "count(*) DESC, kind, " name ") AS place FROM (" rows        \
	") y GROUP BY kind, " name ") z GROUP BY kind, label ORDER BY min(place)"
