/* See backlog.h. */
#include "engine/backlog.h"

#define REST_FACTOR 100 /* the rest after a count, in times that it took */

/* clang-format off */

#define UP_TO(rows) "(SELECT count(*) FROM (SELECT 1 " rows " AND due_at <= (SELECT hx_now_ms()) LIMIT ?1) x)"

static const struct db_stmt stmt_count = {
	.name = "backlog_count",
	.sql = "SELECT "
	       UP_TO("FROM hx_job WHERE queue = 'after-effects'") ", "
	       UP_TO("FROM hx_job WHERE queue <> 'after-effects' AND due_at IS NOT NULL") ", "
	       UP_TO("FROM hx_run WHERE due_at IS NOT NULL") ", "
	       UP_TO("FROM hx_batch WHERE due_at IS NOT NULL"),
	.in = "i",
	.out = "iiii",
};

/* clang-format on */

const char *backlog_name(int kind)
{
	static const char *const names[BACKLOG_KINDS] = {"after_effects", "jobs", "runs", "batches"};

	return names[kind];
}

static void build(const struct single *single, struct unit *unit)
{
	(void)single;
	UNIT_ADD(unit, UNIT_ANY, &stmt_count, db_int(BACKLOG_MAX));
}

static enum hx_code answered(struct single *single, const struct unit_result *result)
{
	struct backlog *b = single->context;

	for (size_t i = 0; i < BACKLOG_KINDS && result->rows[0].n; i++)
		atomic_store(&b->counts[i], db_cell(&result->rows[0], 0, i)->i);
	return HX_OK;
}

/* A count that failed is as good as none: the last one stays, and the next comes later. */
static void done(struct seat *seat, enum hx_code code)
{
	struct backlog *b = (struct backlog *)((char *)seat - offsetof(struct backlog, seat));
	int64_t now_ns = clock_mono(b->clock).ns, every_ns = (int64_t)BACKLOG_EVERY_MS * 1000000;
	int64_t rest_ns = (now_ns - b->began.ns) * REST_FACTOR;

	(void)code;
	atomic_store(&b->again_ns, now_ns + (rest_ns > every_ns ? rest_ns : every_ns));
	atomic_flag_clear(&b->counting);
}

void backlog_init(struct backlog *b, struct readers *readers, struct clock *clock)
{
	b->readers = readers;
	b->clock = clock;
	atomic_flag_clear(&b->counting);
	for (size_t i = 0; i < BACKLOG_KINDS; i++)
		atomic_store(&b->counts[i], -1);
}

void backlog_read(struct backlog *b, int64_t ret_counts[BACKLOG_KINDS])
{
	struct mono_time now = clock_mono(b->clock);

	for (size_t i = 0; i < BACKLOG_KINDS; i++)
		ret_counts[i] = atomic_load(&b->counts[i]);
	if (now.ns < atomic_load(&b->again_ns) || atomic_flag_test_and_set(&b->counting))
		return;
	b->began = now;
	single_init(&b->single, b, build, answered);
	b->seat = (struct seat){.task = &b->single.task, .done = done};
	if (readers_submit(b->readers, &b->seat))
		atomic_flag_clear(&b->counting); /* busy, or stopping */
}
