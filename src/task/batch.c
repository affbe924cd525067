/* Units to batch, and a batch through its phases; see batch.h. */
#include "task/batch.h"

#define TRIES_TOGETHER 2
#define TRIES_ALONE 4

size_t batch_pick(struct unit *const pending[], size_t n, bool one_unit_per_subject, size_t max, size_t picked[])
{
	/* Subjects taken by earlier units, in an open table: 4 slots for each that can be named. */
	enum { SLOTS = 4 * BATCH_UNITS_MAX * UNIT_SUBJECTS_MAX };
	static _Thread_local int64_t taken[SLOTS];
	static _Thread_local uint32_t round_of[SLOTS], round;
	size_t picked_n = 0;

	ASSERT(max <= BATCH_UNITS_MAX);
	if (n > 2 * BATCH_UNITS_MAX)
		n = 2 * BATCH_UNITS_MAX; /* those further behind wait: keeps the table at most half full */
	if (++round == 0) {
		memset(round_of, 0, sizeof round_of);
		round = 1;
	}
	for (size_t i = 0; i < n && picked_n < max; i++) {
		bool free = true;

		for (unsigned s = 0; one_unit_per_subject && s < pending[i]->subjects_n; s++) {
			int64_t subject = pending[i]->subjects[s];
			size_t slot = (size_t)((uint64_t)subject * 0x9e3779b97f4a7c15u >> 40) % SLOTS;

			while (round_of[slot] == round && taken[slot] != subject)
				slot = (slot + 1) % SLOTS;
			if (round_of[slot] == round)
				free = false;
			taken[slot] = subject;
			round_of[slot] = round;
		}
		if (free)
			picked[picked_n++] = i;
	}
	return picked_n;
}

void batch_init(struct batch *batch, struct unit *const units[], struct unit_result results[], size_t n)
{
	ASSERT(n <= BATCH_UNITS_MAX);
	*batch = (struct batch){.phase = BATCH_BUILT, .n = n, .units = units, .results = results};
}

static void answer_all(struct batch *batch, struct batch_sink *sink)
{
	bool may = !batch->answered;

	may &= batch->phase >= BATCH_DURABLE; /* mutant: ack-before-commit */
	if (!may)
		return;
	batch->answered = true;
	for (size_t i = 0; i < batch->n; i++)
		sink->answer(sink, batch->first + i, &batch->results[i]);
}

static void wake_all(struct batch *batch, struct batch_sink *sink)
{
	bool may = !batch->waked && batch->phase != BATCH_UNDONE;

	may &= batch->phase >= BATCH_DURABLE; /* mutant: wake-before-commit */
	if (!may)
		return;
	batch->waked = true;
	for (size_t i = 0; i < batch->n; i++) {
		enum unit_verdict verdict = batch->results[i].verdict;

		for (unsigned w = 0; w < batch->units[i]->wakes_n; w++)
			if (verdict == UNIT_WON || verdict == UNIT_UNKNOWN)
				sink->wake(sink, batch->units[i]->wakes[w]);
	}
}

void batch_settle(struct batch *batch, struct batch_sink *sink)
{
	answer_all(batch, sink);
	wake_all(batch, sink);
}

void batch_overrule(struct batch *batch, enum batch_phase phase, const struct hx_error *error)
{
	batch->phase = phase;
	for (size_t i = 0; i < batch->n; i++) {
		struct unit_result *result = &batch->results[i];

		memset(result->rows, 0, sizeof result->rows);
		result->verdict = phase == BATCH_IN_DOUBT ? UNIT_UNKNOWN : UNIT_FAILED;
		result->line = -1;
		result->error = *error;
	}
}

/* Some unit is the cause: the others need not suffer for it. */
static bool is_of_one(enum hx_code code)
{
	return code == HX_DATA_ERROR || code == HX_TOO_LARGE || code == HX_INTERNAL || code == HX_CONCURRENCY_ERROR;
}

/* What a batch is run with. */
struct run {
	struct db *db;
	struct arena *arena;
	int64_t resolve_ms;
	struct batch_sink *sink;
	struct batch_stats *stats;
};

static enum hx_code commit(const struct run *run, struct hx_error *err)
{
	enum hx_code code = run->db->driver->commit(run->db, err);

	if (code == HX_OUTCOME_UNKNOWN) {
		run->stats->in_doubt++;
		code = run->db->driver->resolve(run->db, run->resolve_ms, err);
	}
	return code;
}

/* Whoever waits for it has no more time. */
static bool is_over(const struct batch *batch, struct db *db)
{
	return batch->by.ns && clock_mono(db->clock).ns >= batch->by.ns;
}

/* HX_BUSY: another program has the write lock, and it is to be tried later. */
static enum hx_code begin(const struct batch *batch, struct db *db, struct hx_error *err)
{
	enum hx_code code;

	db->patience.by = batch->begin_by.ns ? batch->begin_by : batch->by;
	code = db->driver->begin(db, err);
	db->patience.by = batch->by;
	return code == HX_CONCURRENCY_ERROR && batch->begin_by.ns ? HX_BUSY : code;
}

/* HX_OK: durable. HX_OUTCOME_UNKNOWN: in doubt. All else: nothing happened; the phase tells how far it came. */
static enum hx_code try_once(struct batch *batch, const struct run *run, struct mono_time limit, struct hx_error *err)
{
	enum hx_code code;

	batch->phase = BATCH_BUILT;
	run->db->limit = limit;
	code = begin(batch, run->db, err);
	if (!code)
		code = run->db->driver->execute(run->db, batch->units, batch->n, batch->results, run->arena, err);
	if (!code) {
		batch->phase = BATCH_EXECUTED;
		batch_settle(batch, run->sink);
		/* Nor may a stop hurry it: a server that is asked to leave off while it waits for its standby says that all is well. */
		run->db->limit.ns = 0; /* mutant: commit-with-limit */
		code = commit(run, err);
	}
	run->db->limit.ns = 0;
	/* A right that is missing ends a start. Later it is a matter of the one unit that asks for it. */
	if (code == HX_CONFIG_ERROR)
		code = err->code = HX_INTERNAL;
	return code;
}

static enum hx_code try_some_times(struct batch *batch, const struct run *run, struct mono_time limit,
				   struct hx_error *err)
{
	/* Many soon go in halves, so that only those wait that meet somebody's lock. */
	int tries_max = batch->n > 1 ? TRIES_TOGETHER : TRIES_ALONE;
	enum hx_code code = HX_INTERNAL;
	bool reconnected = false;

	for (int tries = 0; tries < tries_max; tries++) {
		code = try_once(batch, run, limit, err);
		if (code && is_over(batch, run->db))
			break;
		if (code == HX_STORE_UNAVAILABLE && !reconnected && batch->phase == BATCH_BUILT)
			reconnected = true; /* the server may just have been restarted: nothing was sent for good */
		else if (code != HX_CONCURRENCY_ERROR || run->sink->elsewhere)
			break;
		run->stats->retried += tries + 1 < tries_max;
	}
	return code;
}

static void run_half(const struct batch *whole, size_t from, size_t to, const struct run *run)
{
	struct batch half;

	arena_reset(run->arena); /* what was read has been answered, or does not count */
	batch_init(&half, whole->units + from, whole->results + from, to - from);
	half.first = whole->first + from;
	half.by = whole->by;
	(void)batch_run(&half, run->db, run->arena, run->resolve_ms, run->sink, run->stats); /* it has no begin_by */
}

static void count_size(size_t n, struct batch_stats *stats)
{
	size_t i = 0;

	while (n > (size_t)1 << i)
		i++;
	ASSERT(i < BATCH_SIZES);
	stats->sizes[i]++;
}

static void count(const struct batch *batch, struct mono_time began, struct mono_time now, struct batch_stats *stats)
{
	stats->batches++;
	stats->units += batch->n;
	count_size(batch->n, stats);
	if (batch->phase == BATCH_DURABLE)
		histogram_count(&stats->durable, (now.ns - began.ns) / 1000);
	for (size_t i = 0; i < batch->n; i++) {
		const struct unit_line *first = &batch->units[i]->lines[0];
		bool won = batch->results[i].verdict == UNIT_WON, lost = batch->results[i].verdict == UNIT_LOST;

		stats->won += won;
		stats->lost += lost;
		stats->failed += batch->results[i].verdict >= UNIT_FAILED;
		stats->transitions += won && first->rule == UNIT_VERDICT;
		stats->fenced += lost && first->stmt->fenced;
	}
}

/* Those that wait for somebody's lock go elsewhere, the others on without them. False: nobody knows who waits. */
static bool run_around_locks(const struct batch *batch, const struct run *run)
{
	bool blocked[BATCH_UNITS_MAX], any = false;
	size_t from = 0;

	arena_reset(run->arena);
	run->db->driver->find_blocked(run->db, batch->units, batch->n, blocked, run->arena);
	for (size_t i = 0; i < batch->n; i++)
		any |= blocked[i];
	if (!any)
		return false;
	run->stats->retried++;
	for (size_t i = 0; i <= batch->n; i++) {
		bool leaves = i < batch->n && blocked[i] && run->sink->elsewhere(run->sink, batch->first + i);

		if (i < batch->n && !leaves)
			continue;
		run->stats->aside += leaves;
		if (i > from)
			run_half(batch, from, i, run);
		from = i + 1;
	}
	return true;
}

/* Its end, as the store has told it. */
static void end_with(struct batch *batch, const struct run *run, enum hx_code code, const struct hx_error *err,
		     struct mono_time began)
{
	struct mono_time answered = clock_mono(run->db->clock);

	if (code == HX_OK)
		batch->phase = BATCH_DURABLE;
	else
		batch_overrule(batch, code == HX_OUTCOME_UNKNOWN ? BATCH_IN_DOUBT : BATCH_UNDONE, err);
	batch_settle(batch, run->sink);
	count(batch, began, answered, run->stats);
}

/* In words that its owner can do something with. */
static void tell_limit(const struct unit *unit, struct hx_error *err)
{
	struct hx_error store = *err;

	error_set(err, HX_ACTION_FAILED, "it timed out: its SQL did not come to its end within %lld ms (%s)",
		  (long long)unit->limit_ms, store.detail);
}

bool batch_run(struct batch *batch, struct db *db, struct arena *arena, int64_t resolve_ms, struct batch_sink *sink,
	       struct batch_stats *stats)
{
	const struct run run = {db, arena, resolve_ms, sink, stats};
	const int64_t limit_ms = batch->n == 1 ? batch->units[0]->limit_ms : 0;
	struct mono_time began = clock_mono(db->clock), limit = {0};
	struct hx_error err = {0};
	bool cut = false;
	enum hx_code code;

	if (limit_ms)
		limit = mono_add_ms(began, limit_ms);
	code = try_some_times(batch, &run, limit, &err);
	if (code == HX_BUSY)
		return false;
	/* Rows too many for the arena are too many for this batch, not yet for each of its units. */
	if (code == HX_CONCURRENCY_ERROR && batch->n > 1 && !is_over(batch, db) && sink->elsewhere &&
	    db->driver->find_blocked && run_around_locks(batch, &run))
		return true;
	cut |= is_of_one(code) && batch->n > 1 && !is_over(batch, db); /* mutant: batch-not-cut */
	if (cut) {
		stats->bisected++;
		run_half(batch, 0, batch->n / 2, &run);
		run_half(batch, batch->n / 2, batch->n, &run);
		return true;
	}
	if (code == HX_CONCURRENCY_ERROR && batch->n == 1 && sink->elsewhere && sink->elsewhere(sink, batch->first)) {
		stats->retried++;
		stats->aside++;
		return true;
	}
	if (code == HX_ACTION_FAILED && limit_ms) {
		stats->timed_out++;
		tell_limit(batch->units[0], &err);
	}
	/* Which of them is to blame is not found out any more: nobody is told of another's error. */
	if (is_of_one(code) && batch->n > 1)
		(void)error_set(&err, HX_STORE_UNAVAILABLE, "the store took longer than those who asked can wait");
	end_with(batch, &run, code, &err, began);
	return true;
}

/* Of a unit that was alone, in a short time: might it end otherwise in a longer one? */
static bool is_worth_more(enum hx_code code)
{
	return code == HX_ACTION_FAILED || code == HX_CONCURRENCY_ERROR || code == HX_STORE_UNAVAILABLE;
}

bool batch_try(struct batch *batch, int64_t limit_ms, struct db *db, struct arena *arena, int64_t resolve_ms,
	       struct batch_sink *sink, struct batch_stats *stats)
{
	const struct run run = {db, arena, resolve_ms, sink, stats};
	struct mono_time began = clock_mono(db->clock);
	struct hx_error err = {0};
	enum hx_code code = try_once(batch, &run, mono_add_ms(began, limit_ms), &err);

	if (code == HX_BUSY)
		return false;
	if (batch->n > 1 ? code && code != HX_OUTCOME_UNKNOWN : is_worth_more(code))
		return false;
	end_with(batch, &run, code, &err, began);
	return true;
}

void batch_stats_add(struct batch_stats *sum, const struct batch_stats *stats)
{
	sum->batches += stats->batches;
	sum->units += stats->units;
	for (size_t i = 0; i < BATCH_SIZES; i++)
		sum->sizes[i] += stats->sizes[i];
	histogram_add(&sum->durable, &stats->durable);
	sum->won += stats->won;
	sum->lost += stats->lost;
	sum->failed += stats->failed;
	sum->transitions += stats->transitions;
	sum->fenced += stats->fenced;
	sum->retried += stats->retried;
	sum->bisected += stats->bisected;
	sum->in_doubt += stats->in_doubt;
	sum->aside += stats->aside;
	sum->timed_out += stats->timed_out;
}
