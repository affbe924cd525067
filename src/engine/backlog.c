/* See backlog.h. */
#include "engine/backlog.h"

#include <stdio.h>

#include "base/thread.h"

#define REST_FACTOR 100 /* the rest after a count, in times that it took */

#define UP_TO(kind, queue, rows)                                                                                       \
	"SELECT * FROM (SELECT " kind " AS kind, " queue " AS queue, due_at FROM " rows                                \
	" AND due_at <= (SELECT hx_now_ms()) LIMIT ?1) x"

/* What this node leaves to a program that has the function for it is a kind of its own: see definition_natives.c. */
#define LEFT_JOBS                                                                                                      \
	"CASE WHEN workflow || '/' || action IN (SELECT value FROM {list3}) THEN 'left_after_effects' ELSE 'after_effects' END"
#define LEFT_RUNS                                                                                                      \
	"CASE WHEN workflow || '@' || definition_version IN (SELECT value FROM {list4}) AND NOT EXISTS"                \
	" (SELECT 1 FROM hx_subject s WHERE s.id = hx_run.subject AND s.status = 'CANCELLING') THEN 'left_runs' ELSE 'runs' END"

/* ?3, ?4: definitions_left_jobs(), definitions_left_runs() */
DB_STMT(stmt_due, "backlog_due", "iitt", "ttii",
	COUNT_BY_NAME("queue", "max", "hx_now_ms() - due_at", "CASE WHEN kind = 'jobs' THEN 1 ELSE 0 END, ",
	UP_TO(LEFT_JOBS, "queue", "hx_job WHERE queue = 'after-effects'") " UNION ALL "
	UP_TO("'jobs'", "queue", "hx_job WHERE queue <> 'after-effects' AND due_at IS NOT NULL") " UNION ALL "
	UP_TO(LEFT_RUNS, "''", "hx_run WHERE due_at IS NOT NULL") " UNION ALL "
	UP_TO("'batches'", "''", "hx_batch WHERE due_at IS NOT NULL")));

/* The ages come from the store's clock, as all times in it. */
DB_STMT(stmt_now, "backlog_now", "", "i", "SELECT hx_now_ms()");

enum { DUE, ATTENTION, NOW };
enum { KIND, NAME, COUNT, SINCE };

#define DUE_KINDS 6
static const char *const due_kinds[DUE_KINDS + 1] = {"after_effects",      BACKLOG_JOBS, "runs", "batches",
						     "left_after_effects", "left_runs",  NULL};

static void backlog_build(const struct single *single, struct unit *unit)
{
	const struct backlog *b = single->context;

	UNIT_ADD(unit, UNIT_ANY, &stmt_due, db_int(BACKLOG_MAX), db_int(BACKLOG_LABELS_MAX),
		 db_text(definitions_left_jobs(b->definitions)), db_text(definitions_left_runs(b->definitions)));
	attention_count(unit, BACKLOG_MAX, BACKLOG_LABELS_MAX);
	unit_add(unit, UNIT_ANY, &stmt_now, 0, NULL);
}

/* The constant of a word, which outlives the row. */
static const char *known_word(const char *const words[], struct slice word)
{
	while (*words && !slice_is(word, *words))
		words++;
	return *words;
}

static void take_count(const struct db_rows *rows, size_t i, const char *const kinds[], struct backlog_count *ret)
{
	struct slice name = db_cell(rows, i, NAME)->s;

	ret->kind = known_word(kinds, db_cell(rows, i, KIND)->s);
	ASSERT(ret->kind);
	snprintf(ret->name, sizeof ret->name, "%.*s", SLICE_ARGS(name));
	ret->n = db_cell(rows, i, COUNT)->i;
	ret->age_ms = db_cell(rows, i, SINCE)->i;
}

/* A kind of which nothing is due is told, too: 0 is a number to look at. */
static void add_missing(struct backlog_counts *counts)
{
	for (size_t k = 0; due_kinds[k]; k++) {
		bool there = false;

		for (size_t i = 0; i < counts->due_n; i++)
			there |= counts->due[i].kind == due_kinds[k];
		if (!there)
			counts->due[counts->due_n++] = (struct backlog_count){.kind = due_kinds[k]};
	}
}

static enum hx_code backlog_answered(struct single *single, const struct unit_result *result)
{
	struct backlog *b = single->context;
	const struct db_rows *due = &result->rows[DUE], *attention = &result->rows[ATTENTION];
	int64_t now = db_cell(&result->rows[NOW], 0, 0)->i;
	struct backlog_counts *counts = &b->counts;

	ASSERT(due->n < BACKLOG_DUE_MAX - DUE_KINDS && attention->n <= BACKLOG_ATTENTION_MAX);
	LOCKED(&b->mutex);
	counts->due_n = counts->attention_n = 0;
	for (size_t i = 0; i < due->n; i++)
		take_count(due, i, due_kinds, &counts->due[counts->due_n++]);
	add_missing(counts);
	for (size_t i = 0; i < attention->n; i++) {
		struct backlog_count *count = &counts->attention[counts->attention_n++];

		take_count(attention, i, attention_kinds, count);
		count->age_ms = now > count->age_ms ? now - count->age_ms : 0;
	}
	counts->known = true;
	return HX_OK;
}

/* A count that failed is as good as none: the last one stays, and the next comes later. */
static void backlog_done(struct seat *seat, enum hx_code code UNUSED)
{
	struct backlog *b = (struct backlog *)((char *)seat - offsetof(struct backlog, seat));
	int64_t now_ns = clock_mono(b->clock).ns, every_ns = (int64_t)BACKLOG_EVERY_MS * 1000000;
	int64_t rest_ns = (now_ns - b->began.ns) * REST_FACTOR;

	atomic_store(&b->again_ns, now_ns + (rest_ns > every_ns ? rest_ns : every_ns));
	atomic_flag_clear(&b->counting);
}

void backlog_init(struct backlog *b, struct readers *readers, const struct definitions *definitions,
		  struct clock *clock)
{
	b->definitions = definitions;
	b->readers = readers;
	b->clock = clock;
	pthread_mutex_init(&b->mutex, NULL);
	atomic_flag_clear(&b->counting);
}

void backlog_hide_queues(struct backlog_counts *counts)
{
	struct backlog_count all = {.kind = BACKLOG_JOBS, .name = "(all)"};
	size_t n = 0;

	for (size_t i = 0; i < counts->due_n; i++) {
		const struct backlog_count *due = &counts->due[i];

		if (strcmp(due->kind, BACKLOG_JOBS) != 0) {
			counts->due[n++] = *due;
			continue;
		}
		all.n += due->n;
		all.age_ms = due->age_ms > all.age_ms ? due->age_ms : all.age_ms;
	}
	if (counts->known)
		counts->due[n++] = all;
	counts->due_n = n;
}

void backlog_read(struct backlog *b, struct backlog_counts *ret_counts)
{
	struct mono_time now = clock_mono(b->clock);

	pthread_mutex_lock(&b->mutex);
	*ret_counts = b->counts;
	pthread_mutex_unlock(&b->mutex);
	if (now.ns < atomic_load(&b->again_ns) || atomic_flag_test_and_set(&b->counting))
		return;
	b->began = now;
	single_init(&b->single, b, backlog_build, backlog_answered);
	b->seat = (struct seat){.task = &b->single.task, .done = backlog_done};
	if (readers_submit(b->readers, &b->seat))
		atomic_flag_clear(&b->counting); /* busy, or stopping */
}
