/* The workers of aside.h. One mutex for what waits; nothing is run, opened or answered under it. */
#include "task/aside.h"

#include <stdlib.h>

#include "base/thread.h"
#include "task/shares.h"
#include "task/trouble.h"

#define LOCK_MS 8000   /* of a unit without a limit of its own */
#define SILENT_MS 2000 /* of a server */
#define ARENA_BYTES_MAX (256u << 20)
#define LOOK_AGAIN_MS 100 /* for errands whose wait is over, and for a stop */

struct worker {
	struct aside *aside;
	struct thread thread;
	enum place place;
	struct share *share; /* whose errands these are */
	bool alone;          /* one that is tried alone */
	struct db *db;       /* NULL: not opened yet. Set under the mutex */
	struct arena arena;
	struct trouble trouble;
	struct group_sink sink;
	struct group_stats stats, published; /* published: under the mutex */
	struct mono_time sent;
	size_t n;
	struct errand *errands[ASIDE_TOGETHER];
	struct unit *units[ASIDE_TOGETHER];
	struct unit_result results[ASIDE_TOGETHER];
};

struct aside {
	struct aside_options options;
	pthread_mutex_t mutex;
	pthread_cond_t arrived[PLACES];
	struct shares shares;
	struct group_table table;
	int64_t stop_ns; /* 0: none */
	bool ending;
	size_t workers_n;
	struct worker workers[ASIDE_WORKERS];
};

/* ---- answers ---- */

/* The rows move to where they last. What cannot be told is looked up by its op: it is durable. */
static void copy_result(const struct unit *unit, const struct unit_result *from, struct errand *errand)
{
	struct unit_result *to = &errand->result;

	to->verdict = from->verdict;
	to->line = from->line;
	to->error = from->error;
	for (unsigned i = 0; i < unit->lines_n; i++) {
		size_t n = from->rows[i].n * from->rows[i].columns;
		struct db_value *cells = n ? arena_alloc(&errand->arena, n * sizeof *cells) : NULL;

		for (size_t c = 0; c < n && cells; c++) {
			cells[c] = from->rows[i].cells[c];
			if (cells[c].type == DB_TEXT || cells[c].type == DB_BLOB)
				cells[c].s = arena_copy(&errand->arena, cells[c].s);
		}
		to->rows[i] = (struct db_rows){from->rows[i].n, from->rows[i].columns, cells};
	}
	if (errand->arena.failed) {
		memset(to->rows, 0, sizeof to->rows);
		to->verdict = UNIT_UNKNOWN;
		to->line = -1;
		(void)error_set(&to->error, HX_NO_MEMORY, "the rows of a unit could not be kept");
	}
}

static void aside_sink_answer(struct group_sink *sink, size_t i, const struct unit_result *result)
{
	struct worker *w = (struct worker *)((char *)sink - offsetof(struct worker, sink));
	struct errand *errand = w->errands[i];

	errand->sent = w->sent;
	copy_result(&errand->unit, result, errand);
}

/* The lane that sent it wakes whoever is to be woken. */
static void aside_sink_wake(struct group_sink *sink UNUSED, int64_t topic UNUSED)
{
}

static void aside_refuse(struct errand *errand, const struct hx_error *error)
{
	errand->result.verdict = UNIT_FAILED;
	errand->result.line = -1;
	errand->result.error = *error;
	memset(errand->result.rows, 0, sizeof errand->result.rows);
	errand->done(errand);
}

/* ---- a go ---- */

static enum hx_code aside_open_store(struct worker *w, struct hx_error *err)
{
	struct db *db = NULL;
	enum hx_code code = w->db ? HX_OK : db_open(&w->aside->options.db, &db, err);

	if (!db)
		return code;
	LOCKED(&w->aside->mutex);
	w->db = db;
	atomic_store(&db->stop_ns, w->aside->stop_ns);
	return HX_OK;
}

/* They failed together, or in a short time. */
static void send_again(struct worker *w)
{
	enum errand_go go = w->n > 1 ? ERRAND_ALONE : ERRAND_LONG;

	LOCKED(&w->aside->mutex);
	for (size_t i = 0; i < w->n; i++) {
		w->errands[i]->go = go;
		shares_add(&w->aside->shares, w->errands[i]);
	}
	pthread_cond_signal(&w->aside->arrived[go == ERRAND_LONG ? PLACE_LONG : PLACE_TRY]);
}

/* They have their results. Nobody looks at their units any more. */
static void give_back(struct worker *w, uint64_t failed_before)
{
	if (w->stats.failed != failed_before || trouble_is_on(&w->trouble))
		trouble_note(&w->trouble, w->units, w->results, w->n, clock_mono(w->db->clock));
	for (size_t i = 0; i < w->n; i++)
		w->errands[i]->done(w->errands[i]);
}

/* A server that says nothing at all is not waited for much longer than the statement itself. */
static struct mono_time give_up_at(const struct worker *w)
{
	int64_t limit_ms = w->units[0]->limit_ms ? w->units[0]->limit_ms : LOCK_MS;

	return mono_add_ms(w->sent, (w->errands[0]->go == ERRAND_LONG ? limit_ms : ASIDE_TRY_MS) + SILENT_MS);
}

static bool run_go(struct worker *w)
{
	int64_t resolve_ms = w->aside->options.resolve_ms;
	struct group group;

	w->sent = clock_mono(w->db->clock);
	group_init(&group, w->units, w->results, w->n);
	group.by = give_up_at(w);
	if (w->errands[0]->go != ERRAND_LONG)
		return group_try(&group, ASIDE_TRY_MS, w->db, &w->arena, resolve_ms, &w->sink, &w->stats);
	(void)group_run(&group, w->db, &w->arena, resolve_ms, &w->sink, &w->stats); /* it has no begin_by */
	return true;
}

static void run_taken(struct worker *w)
{
	uint64_t failed_before = w->stats.failed;
	struct hx_error err = {0};

	if (aside_open_store(w, &err))
		for (size_t i = 0; i < w->n; i++)
			aside_refuse(w->errands[i], &err);
	else if (run_go(w))
		give_back(w, failed_before);
	else
		send_again(w);
	arena_reset(&w->arena);
}

/* ---- taking ---- */

/* While one of its own that has failed is tried alone, those that have not failed are not kept waiting for others like it. */
static bool goes_together(const struct worker *w, const struct share *share)
{
	const struct errand *e = share->lines[w->place].first;

	while (share->alone && e && e->go != ERRAND_TOGETHER)
		e = e->next;
	return e && e->go == ERRAND_TOGETHER;
}

/* As many as may go together. Those that may not keep their places. */
static void take_together(struct worker *w, struct share *share)
{
	struct errand_line *line = &share->lines[w->place];
	struct unit *units[2 * ASIDE_TOGETHER];
	struct errand *looked_at[2 * ASIDE_TOGETHER];
	size_t picked[ASIDE_TOGETHER], n = 0, p = 0;

	for (struct errand *e = line->first; e && n < 2 * ASIDE_TOGETHER; e = e->next)
		if (e->go == ERRAND_TOGETHER) {
			looked_at[n] = e;
			units[n++] = &e->unit;
		}
	w->n = group_pick(&w->aside->table, units, n, ASIDE_TOGETHER, picked);
	for (struct errand **at = &line->first; p < w->n;) {
		if (*at == looked_at[picked[p]]) /* cppcheck-suppress uninitvar */
			w->errands[p++] = shares_cut(&w->aside->shares, share, w->place, at);
		else
			at = &(*at)->next;
	}
}

/* Under the mutex. False: there is nothing for this worker. */
static bool take_errands(struct worker *w)
{
	struct aside *aside = w->aside;
	struct share *share = shares_next(&aside->shares, w->place);

	w->n = 0;
	w->share = share;
	if (!share)
		return false;
	shares_begin(&aside->shares, share, w->place);
	if (goes_together(w, share))
		take_together(w, share);
	else
		w->errands[w->n++] = shares_cut(&w->aside->shares, share, w->place, &share->lines[w->place].first);
	for (size_t i = 0; i < w->n; i++)
		w->units[i] = &w->errands[i]->unit; /* copied on the way: it is not touched by anybody else */
	w->alone = w->errands[0]->go == ERRAND_ALONE;
	share->alone += w->alone;
	/* There may be more, and only one worker was told of it. */
	if (shares_next(&aside->shares, w->place))
		pthread_cond_signal(&aside->arrived[w->place]);
	return true;
}

/* Under the mutex: one that is not tried any more, for `why`. */
static struct errand *take_given_up(struct aside *aside, struct mono_time now, struct hx_error *why)
{
	struct errand *given_up = NULL;

	if (aside->stop_ns && now.ns >= aside->stop_ns) {
		(void)error_set(why, HX_STOPPING, "the engine stops");
		for (int p = 0; p < PLACES && !given_up; p++)
			given_up = shares_cut_older(&aside->shares, (enum place)p, now);
		return given_up;
	}
	given_up = shares_cut_older(&aside->shares, PLACE_LONG, mono_add_ms(now, -ASIDE_WAIT_MS));
	if (given_up)
		(void)error_set(why, HX_BUSY,
				"too much SQL that takes long is under way: it has waited for %d s in vain",
				ASIDE_WAIT_MS / 1000);
	return given_up;
}

static void wait_for_more(struct worker *w)
{
	struct aside *aside = w->aside;

	if (!aside->shares.waiting[PLACE_LONG] && !aside->stop_ns) {
		pthread_cond_wait(&aside->arrived[w->place], &aside->mutex);
		return;
	}
	(void)condition_wait_until(&aside->arrived[w->place], &aside->mutex, time_in_ms(LOOK_AGAIN_MS));
}

/* Under the mutex, which is let go meanwhile. */
static void run_unlocked(struct worker *w, struct errand *given_up, const struct hx_error *why)
{
	pthread_mutex_unlock(&w->aside->mutex);
	if (given_up)
		aside_refuse(given_up, why);
	else
		run_taken(w);
	pthread_mutex_lock(&w->aside->mutex);
	if (!given_up) {
		w->share->alone -= w->alone;
		shares_end(&w->aside->shares, w->share, w->place);
	}
	w->published = w->stats;
}

static void *work(void *context)
{
	struct worker *w = context;
	struct aside *aside = w->aside;
	struct hx_error why = {0};

	LOCKED(&aside->mutex);
	for (;;) {
		struct errand *given_up = take_given_up(aside, clock_mono(aside->options.db.clock), &why);

		if (given_up || take_errands(w))
			run_unlocked(w, given_up, &why);
		else if (aside->ending)
			break;
		else
			wait_for_more(w);
	}
	return NULL;
}

/* ---- from outside ---- */

void aside_send(struct aside *aside, struct errand *errand)
{
	errand->came = clock_mono(aside->options.db.clock);
	arena_init(&errand->arena, ARENA_BYTES_MAX);
	LOCKED(&aside->mutex);
	shares_add(&aside->shares, errand);
	pthread_cond_signal(&aside->arrived[errand->go == ERRAND_LONG ? PLACE_LONG : PLACE_TRY]);
}

static void tell_all(struct aside *aside)
{
	for (int p = 0; p < PLACES; p++)
		pthread_cond_broadcast(&aside->arrived[p]);
}

void aside_stop_at(struct aside *aside, struct mono_time at)
{
	if (!aside)
		return;
	LOCKED(&aside->mutex);
	aside->stop_ns = at.ns;
	for (size_t i = 0; i < aside->workers_n; i++)
		if (aside->workers[i].db)
			atomic_store(&aside->workers[i].db->stop_ns, at.ns);
	tell_all(aside);
}

void aside_read_stats(struct aside *aside, struct group_stats *sum)
{
	LOCKED(&aside->mutex);
	for (size_t i = 0; i < aside->workers_n; i++)
		group_stats_add(sum, &aside->workers[i].published);
}

static enum hx_code start_worker(struct aside *aside, size_t i, struct hx_error *err)
{
	struct worker *w = &aside->workers[i];

	w->aside = aside;
	w->place = i < ASIDE_TRIES ? PLACE_TRY : PLACE_LONG;
	w->sink = (struct group_sink){.answer = aside_sink_answer, .wake = aside_sink_wake};
	w->trouble = (struct trouble){.log = aside->options.log, .who = "aside", .number = (int64_t)i + 1};
	arena_init(&w->arena, ARENA_BYTES_MAX);
	return thread_start(&w->thread, work, w, "a thread for the user's SQL", err);
}

enum hx_code aside_new(const struct aside_options *options, struct aside **ret_aside, struct hx_error *err)
{
	struct aside *aside = calloc(1, sizeof *aside);
	enum hx_code code = HX_OK;

	if (!aside)
		return error_set(err, HX_NO_MEMORY, "workers for the user's SQL");
	aside->options = *options;
	aside->options.db.exclusive = false;
	shares_init(&aside->shares, ASIDE_TRIES, ASIDE_LONG);
	pthread_mutex_init(&aside->mutex, NULL);
	for (int p = 0; p < PLACES; p++)
		condition_init(&aside->arrived[p]);
	for (; !code && aside->workers_n < ASIDE_WORKERS; aside->workers_n++)
		code = start_worker(aside, aside->workers_n, err);
	return HAND_OVER(code, aside, aside_free, ret_aside);
}

void aside_free(struct aside *aside)
{
	if (!aside)
		return;
	pthread_mutex_lock(&aside->mutex);
	aside->ending = true;
	tell_all(aside);
	pthread_mutex_unlock(&aside->mutex);
	for (size_t i = 0; i < aside->workers_n; i++) {
		thread_join(&aside->workers[i].thread);
		db_close(aside->workers[i].db);
		arena_release(&aside->workers[i].arena);
	}
	for (int p = 0; p < PLACES; p++)
		pthread_cond_destroy(&aside->arrived[p]);
	pthread_mutex_destroy(&aside->mutex);
	free(aside);
}
