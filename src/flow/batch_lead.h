/*
 * The lead of a batch: takes it, decides what comes next, and writes what only the holder of the whole may write.
 *
 *   START ─▶ READING ─┬ not ours: SEIZING ─┬ RUNNING ──────────▶ DONE, LEAD_WORK: hands do items
 *      ▲              │                    └ CANCELLING ─▶ (teardown)
 *      │              ├ ours, RUNNING, after the hands ─┬ the flag is set ─▶ TURNING to CANCELLING ─▶ (teardown)
 *      │              │                                  ├ nothing left ────▶ ENDING as COMPLETED ─▶ DONE, LEAD_OVER
 *      │              │                                  ├ short of credit ─▶ STOPPING_SHORT ──────▶ DONE, LEAD_OVER
 *      │              │                                  └ else: items rest, or hands have failed ─▶ LETTING_GO ─▶ LEAD_OVER
 *      │              ├ ours, CANCELLING ─▶ (teardown)
 *      │              └ nothing to do (not due, terminal, another's): DONE, LEAD_OVER
 *      └─ a unit is lost: read again, a few times
 *
 *   (teardown) ─┬ not all flipped ─▶ READING_DOUBTFUL of the slice ─▶ VOIDING a page of them ─▶ FLIPPING up to there ─▶ (teardown);
 *               │                    after a page of voids DONE, LEAD_AGAIN: another lead goes on, with fresh memory
 *               ├ not cleaned up in this tenure ─▶ DONE, LEAD_CLEAN: hands delete
 *               ├ cleaned up ─▶ ENDING as CANCELLED ─▶ DONE, LEAD_OVER; lost: a late success came: LETTING_GO
 *               └ a void or a cleanup failed ─▶ LETTING_GO with a backoff: never terminal before all of it is done
 *
 * A batch found in LOADING past its time has lost its loader: RELEASING ends that.
 * A unit whose answer was lost is looked up by its op (LOOKING_UP), those that have none are read again.
 */
#pragma once

#include "flow/batch_item.h"
#include "task/task.h"

#define LEAD_LOSSES_MAX 20
#define LEAD_DOUBTFUL_MAX 8 /* whose texts are in memory at once */

enum lead_next { LEAD_OVER, LEAD_WORK, LEAD_CLEAN, LEAD_AGAIN };

/* What this tenure has seen so far. */
struct batch_seen {
	bool short_of_credit, hands_failed;
	bool worked;  /* the hands have had their turn */
	bool cleaned; /* a whole pass is over */
	bool clean_failed;
	int64_t late;          /* the count of late successes when the pass began */
	struct slice why;      /* clean_failed */
	int64_t not_before_ms; /* the same */
};

enum batch_lead_at {
	LEAD_NEW,
	LEAD_READING,
	LEAD_SEIZING,
	LEAD_RELEASING,
	LEAD_TURNING,
	LEAD_READING_DOUBTFUL,
	LEAD_VOIDING,
	LEAD_FLIPPING,
	LEAD_STOPPING_SHORT,
	LEAD_LETTING_GO,
	LEAD_ENDING,
	LEAD_LOOKING_UP,
	LEAD_DONE,
};

struct batch_lead {
	struct task task;
	int64_t subject;
	const struct batch_policy *policy;
	struct arena *arena;
	struct batch_seen seen;
	/* For whoever runs it: */
	enum lead_next next;
	struct batch_hold hold;        /* not LEAD_OVER */
	struct batch_row row;          /* as it was read last, and as the last unit has left its status */
	bool took_over;                /* it was another's, past its time */
	bool fenced;                   /* it was another's by then */
	struct slice missing_workflow; /* with HX_CONFIG_ERROR: the version is row.definition_version */
	/* private */
	enum batch_lead_at looks_up;
	bool holding;
	int64_t flip_to; /* of the slice */
	size_t doubtful_n, doubtful_next;
	struct batch_call_item doubtful[LEAD_DOUBTFUL_MAX];
	struct slice key, body, why, payload, job_keys[STEP_AFTER_EFFECTS_MAX];
	int64_t rest_ms;
	bool failed_cleanup;
	const char *end_as;
	int64_t job_ids[STEP_AFTER_EFFECTS_MAX];
	unsigned losses;
	struct stamp stamp;
	struct mono_time asked;
};

/* What this program has no function for, of all that the batch may come to; NULL: nothing. */
const struct action *batch_row_absent(const struct batch_row *row);

/* hold NULL: it is not ours yet. seen NULL: nothing. */
void batch_lead_init(struct batch_lead *lead, int64_t subject, const struct batch_policy *policy,
		     const struct batch_hold *hold, const struct batch_seen *seen, struct arena *arena);
