/*
 * The runs of this node: finds those that are due, seizes and drives them (flow/run_drive.h), a bounded number at a time.
 *
 *   feeder (due runs, woken by RUN_TOPIC, by time, at the latest every 2 s) ─ ids ─▶ a run_drive for each that is not
 *   under way here ─ done ─▶ it looks again
 *
 * A run that is created here is driven without being looked for, where there is room for it: by the very task that makes it
 * (runs_make()), or by one that begins when it is there (runs_created()). Then its row is due for others a little later
 * (RUNS_HEAD_START_MS), so no other node reaches for it in vain, and none has to if this node lives; or it is held already. A run whose
 * holder is lost is not due; the janitor finds it by its claim, and hands it over too.
 */
#pragma once

#include "base/log.h"
#include "engine/definitions.h"
#include "engine/feeder.h"
#include "flow/run_drive.h"
#include "task/lanes.h"

struct engine_metrics;
struct runs;
struct drive; /* of a run that is to be driven here */

#define RUNS_DRIVEN_MAX 4096 /* of one workspace at most half */
#define RUNS_HEAD_START_MS 2000

extern const struct feed runs_feed;
/* Which lane creates it: two callers with one key meet in the same. Without a key nobody else can mean this run. */
uint64_t runs_hash(const struct run_spec *spec);
/* For run_spec.due_in_ms: while there is room to drive one more of this workspace, a new run gets its head start. */
int64_t runs_head_start_ms(struct runs *runs, struct slice workspace);
/* From any thread: its holder was seen to be past its time. Seizes and drives it; without room a later sweep finds it. */
void runs_take_over(struct runs *runs, int64_t subject);
/* A run that is to be made, and driven at once. Texts live until `ended`. */
struct run_making {
	const struct single *single; /* what goes in front, and who is told: see run_drive_init_making() */
	const struct run_spec *spec; /* with its head start */
	uint64_t hash;               /* in which lane; whoever waits for its end does so in the same */
	/* Once, in that lane's thread, before a call is begun: HX_OK: it is there; HX_OUTCOME_UNKNOWN; or there is none. */
	void (*ended)(void *context, struct drive *drive, enum hx_code code);
	void *context;
};
/*
 * Whoever waits for the end of a run that is made and driven here, in the lane of its making, whose thread calls and is called: is told
 * when it is COMPLETED, if all of it is known then without a read.
 */
struct run_watch {
	struct drive *drive; /* as `ended` was told; NULL: nobody drives it, or it has been told */
	void (*completed)(struct run_watch *watch,
			  const struct run_row *row); /* durable; its texts live for the call */
};
void runs_watch(struct run_watch *watch);
void runs_unwatch(struct run_watch *watch);
/* From any thread. False: not here, or not now, and nothing was done. */
bool runs_make(struct runs *runs, const struct run_making *making) HX_MUST_CHECK;
/*
 * From any thread: this run was created here just now. Counts it, and copies what is needed to drive it, if it was given its
 * head start. NULL: the watch finds it, here or on another node.
 */
struct drive *runs_created(struct runs *runs, const struct run_spec *spec, const struct run_row *row) HX_MUST_CHECK;
/* Does so; once, and by then whoever is to be woken by its end has taken a seat. Takes NULL. */
void runs_drive(struct drive *drive);

/*
 * For whoever shows a run to its caller, of the result of run_read() or run_read_key(). HX_NOT_FOUND; HX_RUN_EXPIRED: only its
 * key is kept; HX_BUSY: this node does not know its definition yet; HX_TOO_LARGE: the arena is full.
 */
enum hx_code runs_take(const struct runs *runs, const struct unit_result *result, struct arena *arena,
		       struct run_row *ret_row) HX_MUST_CHECK;
/* What such a code says about a run; NULL: the code says it all. */
const char *runs_detail(enum hx_code code);
