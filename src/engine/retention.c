/* See retention.h. */
#include "engine/retention.h"

#include <stdlib.h>

#include "engine/engine.h"
#include "engine/feeder.h"
#include "flow/batch_retention.h"
#include "flow/bulk.h"
#include "flow/function.h"
#include "flow/hook.h"
#include "flow/job_work.h"
#include "flow/run.h"
#include "flow/run_count.h"
#include "flow/single.h"
#include "flow/slot.h"

#define SLICE 64
#define UNDER_WAY_MAX (SLICE + FEEDER_RESTING_MAX)
#define EVERY_MS_MAX 60000
#define EVERY_MS_MIN 100
#define HOOK_ROWS_AGE_MS 240000 /* each row has its own time; after that there is no hurry */
#define TICKS_AGE_MS 60000      /* the same */
#define COUNTS_AGE_MS 4000      /* once a second; nothing is let go there, counts are summed up */
#define OWN_AGE_MS 8000         /* every two seconds; each run has its own time */
#define NEVER (INT64_MAX / 4)

/* What there is to be let go. */
struct kept {
	void (*scan)(struct unit *unit, int64_t age_ms, int64_t limit);
	void (*expire)(struct unit *unit, int64_t subject, int64_t age_ms); /* NULL: a batch, which takes a task */
	_Atomic int64_t age_ms;                                             /* NEVER: kept for ever */
	_Atomic uint64_t *expired;                                          /* NULL: not counted */
	const struct engine_parts *parts;                                   /* NULL: not started */
	struct feeder feeder;
};

struct retention {
	const struct engine_parts *parts;
	struct kept runs, own, batches, jobs, hooks, bulks, polls, counts, ticks;
};

struct expiry {
	struct fed fed;
	union {
		struct single single;
		struct batch_expiry batch;
	};
	struct kept *kept;
};

static void scan(const struct due_source *source, struct unit *unit, int64_t limit)
{
	const struct kept *kept = source->context;

	/* Nothing is deleted by a clock that is not believed. (SQLite's is ours, which stands for what is believed itself.) */
	if (clock_doubted_ms(kept->parts->store_clock))
		limit = 0;
	kept->scan(unit, kept->age_ms, limit);
}

static void retention_build(const struct single *single, struct unit *unit)
{
	const struct expiry *expiry = single->context;

	expiry->kept->expire(unit, expiry->fed.subject, expiry->kept->age_ms);
}

/* Lost: another node was first, or it was retried a moment ago. */
static enum hx_code retention_answered(struct single *single, const struct unit_result *result)
{
	const struct expiry *expiry = single->context;

	if (expiry->kept->expired)
		atomic_fetch_add(expiry->kept->expired, result->verdict == UNIT_WON);
	return HX_OK;
}

/* What failed is still there, and is found again. */
static void expired(struct seat *seat, enum hx_code code UNUSED)
{
	struct expiry *expiry = (struct expiry *)seat;

	if (!expiry->kept->expire)
		atomic_fetch_add(expiry->kept->expired, expiry->batch.gone);
	fed_end(&expiry->fed, /* rest_ms= */ 0);
}

static struct task *expiry_task(struct expiry *expiry)
{
	if (expiry->kept->expire) {
		single_init(&expiry->single, expiry, retention_build, retention_answered);
		return &expiry->single.task;
	}
	batch_expiry_init(&expiry->batch, expiry->fed.subject, expiry->kept->age_ms);
	return &expiry->batch.task;
}

static bool retention_begin(void *context, int64_t subject)
{
	struct kept *kept = context;
	struct expiry *expiry = fed_new(&kept->feeder, subject, sizeof *expiry, /* arena_bytes_max= */ 0);

	if (!expiry)
		return false;
	expiry->kept = kept;
	return fed_begin(&expiry->fed, expiry_task(expiry), expired);
}

static int64_t every_ms(int64_t age_ms)
{
	int64_t quarter_ms = age_ms / 4;

	return quarter_ms < EVERY_MS_MIN ? EVERY_MS_MIN : quarter_ms < EVERY_MS_MAX ? quarter_ms : EVERY_MS_MAX;
}

static enum hx_code retention_start_kept(struct kept *kept)
{
	struct feed feed = {{.name = "retention", .poll_ms = every_ms(kept->age_ms), .scan = scan},
			    UNDER_WAY_MAX,
			    SLICE,
			    retention_begin};

	return feeder_start(&kept->feeder, &feed, kept->parts->lanes, kept->parts->clock, kept, /* err= */ NULL);
}

/* 0: kept for ever. What was started goes on looking, and finds nothing then. */
static enum hx_code retention_keep(struct retention *r, struct kept *kept, struct kept as, int64_t age_ms)
{
	if (kept->parts) {
		atomic_store(&kept->age_ms, age_ms ? age_ms : NEVER);
		return HX_OK;
	}
	if (!age_ms)
		return HX_OK;
	*kept = as;
	kept->age_ms = age_ms;
	kept->parts = r->parts;
	return retention_start_kept(kept);
}

enum hx_code retention_configure(struct retention *r, const struct config *config)
{
	struct engine_metrics *m = r->parts->metrics;
	enum hx_code code = retention_keep(
		r, &r->runs, (struct kept){.scan = run_scan_expired, .expire = run_expire, .expired = &m->runs_expired},
		config->retain_runs_ms);

	if (!code)
		code = retention_keep(
			r, &r->own,
			(struct kept){.scan = run_scan_kept, .expire = run_expire_kept, .expired = &m->runs_expired},
			OWN_AGE_MS);
	if (!code)
		code = retention_keep(r, &r->batches,
				      (struct kept){.scan = batch_scan_expired, .expired = &m->batches_expired},
				      config->retain_batches_ms);
	if (!code)
		code = retention_keep(
			r, &r->hooks,
			(struct kept){.scan = hook_scan_expired, .expire = hook_expire, .expired = &m->hooks_expired},
			config->hooks_n ? HOOK_ROWS_AGE_MS : 0);
	if (!code)
		code = retention_keep(
			r, &r->bulks,
			(struct kept){.scan = bulk_scan_expired, .expire = bulk_expire, .expired = &m->bulks_expired},
			config->retain_bulks_ms);
	if (!code)
		code = retention_keep(r, &r->polls,
				      (struct kept){.scan = function_poll_scan_expired, .expire = function_poll_expire},
				      FUNCTION_POLLED_FOR_MS);
	if (!code)
		code = retention_keep(r, &r->ticks, (struct kept){.scan = rate_scan_expired, .expire = rate_expire},
				      TICKS_AGE_MS);
	if (!code)
		code = retention_keep(r, &r->counts, (struct kept){.scan = run_count_scan, .expire = run_count_fold},
				      COUNTS_AGE_MS);
	return code ? code
		    : retention_keep(r, &r->jobs,
				     (struct kept){.scan = job_scan_expired,
						   .expire = job_expire,
						   .expired = &m->jobs_expired},
				     config->retain_jobs_ms);
}

enum hx_code retention_start(const struct engine_parts *parts, struct retention **ret_retention, struct hx_error *err)
{
	struct retention *r = calloc(1, sizeof *r);
	enum hx_code code = HX_NO_MEMORY;

	if (r) {
		r->parts = parts;
		code = retention_configure(r, parts->config);
	}
	*ret_retention = r; /* also when it is half started: what runs must outlive the lanes */
	return code ? error_set(err, code, "retention cannot be started") : HX_OK;
}

void retention_free(struct retention *retention)
{
	if (!retention)
		return;
	feeder_release(&retention->runs.feeder);
	feeder_release(&retention->own.feeder);
	feeder_release(&retention->batches.feeder);
	feeder_release(&retention->jobs.feeder);
	feeder_release(&retention->hooks.feeder);
	feeder_release(&retention->bulks.feeder);
	feeder_release(&retention->polls.feeder);
	feeder_release(&retention->counts.feeder);
	feeder_release(&retention->ticks.feeder);
	free(retention);
}
