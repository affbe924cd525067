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

#define IN_CONFIG(member) .config = offsetof(struct config, member)
#define COUNTED(member) .expired = offsetof(struct engine_metrics, member)

/* What there is to be let go. */
static const struct keeping {
	void (*scan)(struct unit *unit, int64_t age_ms, int64_t limit);
	void (*expire)(struct unit *unit, int64_t subject, int64_t age_ms); /* NULL: a batch, which takes a task */
	size_t expired;                                                     /* where it is counted; 0: it is not */
	size_t config;  /* where its time stands, 0 there: kept for ever. Or: */
	int64_t age_ms; /* always the same */
	bool of_hooks;  /* and only where there are hooks */
} keepings[] = {
	{run_scan_expired, run_expire, COUNTED(runs_expired), IN_CONFIG(retain_runs_ms)},
	{run_scan_kept, run_expire_kept, COUNTED(runs_expired), .age_ms = OWN_AGE_MS},
	{batch_scan_expired, NULL, COUNTED(batches_expired), IN_CONFIG(retain_batches_ms)},
	{hook_scan_expired, hook_expire, COUNTED(hooks_expired), .age_ms = HOOK_ROWS_AGE_MS, .of_hooks = true},
	{bulk_scan_expired, bulk_expire, COUNTED(bulks_expired), IN_CONFIG(retain_bulks_ms)},
	{function_poll_scan_expired, function_poll_expire, .age_ms = FUNCTION_POLLED_FOR_MS},
	{rate_scan_expired, rate_expire, .age_ms = TICKS_AGE_MS},
	{run_count_scan, run_count_fold, .age_ms = COUNTS_AGE_MS},
	{job_scan_expired, job_expire, COUNTED(jobs_expired), IN_CONFIG(retain_jobs_ms)},
};
#define KEEPINGS_N (sizeof keepings / sizeof *keepings)

struct kept {
	const struct keeping *of; /* NULL: not started */
	_Atomic int64_t age_ms;   /* NEVER: kept for ever */
	const struct engine_parts *parts;
	struct feeder feeder;
};

struct retention {
	const struct engine_parts *parts;
	struct kept kept[KEEPINGS_N];
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
	kept->of->scan(unit, kept->age_ms, limit);
}

static void retention_build(const struct single *single, struct unit *unit)
{
	const struct expiry *expiry = single->context;

	expiry->kept->of->expire(unit, expiry->fed.subject, expiry->kept->age_ms);
}

static void retention_count(const struct kept *kept, bool gone)
{
	char *metrics = (char *)kept->parts->metrics;

	if (kept->of->expired)
		atomic_fetch_add((_Atomic uint64_t *)(void *)(metrics + kept->of->expired), gone);
}

/* Lost: another node was first, or it was retried a moment ago. */
static enum hx_code retention_answered(struct single *single, const struct unit_result *result)
{
	const struct expiry *expiry = single->context;

	retention_count(expiry->kept, result->verdict == UNIT_WON);
	return HX_OK;
}

/* What failed is still there, and is found again. */
static void expired(struct seat *seat, enum hx_code code UNUSED)
{
	struct expiry *expiry = (struct expiry *)seat;

	if (!expiry->kept->of->expire)
		retention_count(expiry->kept, expiry->batch.gone);
	fed_end(&expiry->fed, /* rest_ms= */ 0);
}

static struct task *expiry_task(struct expiry *expiry)
{
	if (expiry->kept->of->expire) {
		single_init(&expiry->single, expiry, retention_build, retention_answered);
		return &expiry->single.task;
	}
	batch_expiry_init(&expiry->batch, expiry->fed.subject, expiry->kept->age_ms);
	return &expiry->batch.task;
}

static bool retention_begin(void *context, struct due due)
{
	struct kept *kept = context;
	struct expiry *expiry = fed_new(&kept->feeder, due.subject, sizeof *expiry, /* arena_bytes_max= */ 0);

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

static int64_t age_of(const struct keeping *of, const struct config *config)
{
	int64_t age_ms = of->of_hooks && !config->hooks_n ? 0 : of->age_ms;

	if (of->config)
		memcpy(&age_ms, (const char *)config + of->config, sizeof age_ms);
	return age_ms;
}

static enum hx_code retention_start_kept(struct retention *r, struct kept *kept, const struct keeping *of,
					 int64_t age_ms)
{
	struct due_source source = {.name = "retention", .poll_ms = every_ms(age_ms), .scan = scan};
	struct feed feed = {&source, .under_way_max = UNDER_WAY_MAX, .slice = SLICE, .begin = retention_begin};

	*kept = (struct kept){.of = of, .age_ms = age_ms, .parts = r->parts};
	return feeder_start(&kept->feeder, &feed, r->parts, kept, /* err= */ NULL);
}

/* What was started goes on looking, and finds nothing while it is kept for ever. */
enum hx_code retention_configure(struct retention *r, const struct config *config)
{
	enum hx_code code = HX_OK;

	for (size_t i = 0; i < KEEPINGS_N && !code; i++) {
		int64_t age_ms = age_of(&keepings[i], config);

		if (r->kept[i].of)
			atomic_store(&r->kept[i].age_ms, age_ms ? age_ms : NEVER);
		else if (age_ms)
			code = retention_start_kept(r, &r->kept[i], &keepings[i], age_ms);
	}
	return code;
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
	for (size_t i = 0; i < KEEPINGS_N; i++)
		feeder_release(&retention->kept[i].feeder);
	free(retention);
}
