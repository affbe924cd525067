/* Units to group, and a group through its phases; see group.h. */
#include "task/group.h"

#define TRIES_TOGETHER 2
#define TRIES_ALONE 4

static struct taken *group_slot_of(struct group_table *table, int64_t subject)
{
	size_t slot = (size_t)((uint64_t)subject * 0x9e3779b97f4a7c15u >> 40) % GROUP_SLOTS;

	while (table->taken[slot].round == table->round && table->taken[slot].subject != subject)
		slot = (slot + 1) % GROUP_SLOTS;
	return &table->taken[slot];
}

static enum taken_how how_taken(const struct unit *unit, unsigned s)
{
	if (unit_is_serial(unit))
		return TAKEN_SERIAL;
	return unit->shared >> s & 1 ? TAKEN_SHARED : TAKEN_ALONE;
}

/* *ret_after_others: of one of its subjects, by its lines. */
static bool may_join(struct group_table *table, const struct unit *unit, bool *ret_after_others)
{
	*ret_after_others = false;
	for (unsigned s = 0; s < unit->subjects_n; s++) {
		const struct taken *slot = group_slot_of(table, unit->subjects[s]);
		enum taken_how how = how_taken(unit, s);
		bool met = slot->round == table->round, joins = how != TAKEN_ALONE && slot->how == how, may = !met;

		may |= joins; /* mutant: plain-beside-serial -> may |= slot->how != TAKEN_ALONE; */
		if (!may)
			return false;
		*ret_after_others |= met && how == TAKEN_SERIAL;
	}
	return true;
}

static void take_subjects(struct group_table *table, const struct unit *unit, bool chosen)
{
	for (unsigned s = 0; s < unit->subjects_n; s++) {
		struct taken *slot = group_slot_of(table, unit->subjects[s]);

		*slot = (struct taken){unit->subjects[s], table->round, chosen ? how_taken(unit, s) : TAKEN_ALONE};
	}
}

/* How many are in it that may have to run by their lines, while all others wait. */
struct by_lines {
	size_t serial_n, together_n;
};

static bool has_room(struct by_lines *by_lines, const struct unit *unit, bool after_others)
{
	if (unit->together)
		return by_lines->together_n++ < GROUP_TOGETHER_MAX;
	return !after_others || by_lines->serial_n++ < GROUP_SERIAL_MAX;
}

size_t group_pick(struct group_table *table, struct unit *const pending[], size_t n, size_t max, size_t picked[])
{
	size_t picked_n = 0;
	struct by_lines by_lines = {0};

	ASSERT(max <= GROUP_UNITS_MAX);
	if (n > 2 * GROUP_UNITS_MAX)
		n = 2 * GROUP_UNITS_MAX; /* those further back wait: keeps the table at most half full */
	if (table && ++table->round == 0) {
		memset(table, 0, sizeof *table);
		table->round = 1;
	}
	for (size_t i = 0; i < n && picked_n < max; i++) {
		bool after_others, may = true;

		if (table) {
			may = may_join(table, pending[i], &after_others) &&
			      has_room(&by_lines, pending[i], after_others);
			take_subjects(table, pending[i], may);
		}
		if (may)
			picked[picked_n++] = i;
	}
	return picked_n;
}

void group_init(struct group *group, struct unit *const units[], struct unit_result results[], size_t n)
{
	ASSERT(n <= GROUP_UNITS_MAX);
	*group = (struct group){.phase = GROUP_BUILT, .n = n, .units = units, .results = results};
}

static void answer_all(struct group *group, struct group_sink *sink)
{
	bool may = !group->answered;

	may &= group->phase >= GROUP_DURABLE; /* mutant: ack-before-commit */
	if (!may)
		return;
	group->answered = true;
	for (size_t i = 0; i < group->n; i++)
		sink->answer(sink, group->first + i, &group->results[i]);
}

void group_wake(const struct unit *unit, struct group_sink *sink)
{
	for (unsigned i = 0; i < unit->wakes_n; i++)
		sink->wake(sink, unit->wakes[i]);
	for (unsigned i = 0; i < unit->offers_n && sink->offer; i++)
		sink->offer(sink, unit->offers[i]);
}

static void wake_all(struct group *group, struct group_sink *sink)
{
	bool may = !group->waked && group->phase != GROUP_FAILED;

	may &= group->phase >= GROUP_DURABLE; /* mutant: wake-before-commit */
	if (!may)
		return;
	group->waked = true;
	for (size_t i = 0; i < group->n; i++) {
		enum unit_verdict verdict = group->results[i].verdict;

		if (verdict == UNIT_WON || verdict == UNIT_UNKNOWN)
			group_wake(group->units[i], sink);
	}
}

void group_settle(struct group *group, struct group_sink *sink)
{
	answer_all(group, sink);
	wake_all(group, sink);
}

void group_overrule(struct group *group, enum group_phase phase, const struct hx_error *error)
{
	group->phase = phase;
	for (size_t i = 0; i < group->n; i++) {
		struct unit_result *result = &group->results[i];

		memset(result->rows, 0, sizeof result->rows);
		result->verdict = phase == GROUP_IN_DOUBT ? UNIT_UNKNOWN : UNIT_FAILED;
		result->line = -1;
		result->error = *error;
	}
}

/* Some unit is the cause: the others need not suffer for it. */
static bool is_of_one(enum hx_code code)
{
	return code == HX_DATA_ERROR || code == HX_TOO_LARGE || code == HX_INTERNAL || code == HX_CONCURRENCY_ERROR;
}

/* What a group is run with. */
struct run {
	struct db *db;
	struct arena *arena;
	int64_t resolve_ms;
	struct group_sink *sink;
	struct group_stats *stats;
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
static bool is_over(const struct group *group, struct db *db)
{
	return group->by.ns && clock_mono(db->clock).ns >= group->by.ns;
}

/* HX_BUSY: another program has the write lock, and it is to be tried later. */
static enum hx_code group_begin(const struct group *group, struct db *db, struct hx_error *err)
{
	enum hx_code code;

	db->patience.by = group->begin_by.ns ? group->begin_by : group->by;
	code = db->driver->begin(db, err);
	db->patience.by = group->by;
	return code == HX_CONCURRENCY_ERROR && group->begin_by.ns ? HX_BUSY : code;
}

/* HX_OK: durable. HX_OUTCOME_UNKNOWN: in doubt. All else: nothing happened; the phase tells how far it came. */
static enum hx_code try_once(struct group *group, const struct run *run, struct mono_time limit, struct hx_error *err)
{
	enum hx_code code;

	group->phase = GROUP_BUILT;
	run->db->limit = limit;
	run->db->later = group->later;
	code = group_begin(group, run->db, err);
	run->db->whole = true;
	if (!code)
		code = run->db->driver->execute(run->db, group->units, group->n, group->results, run->arena, err);
	run->db->whole = false;
	if (!code) {
		group->phase = GROUP_EXECUTED;
		group_settle(group, run->sink);
		/* Nor may a stop hurry it: a server that is asked to leave off while it waits for its standby says that all is well. */
		run->db->limit.ns = 0; /* mutant: commit-with-limit */
		code = commit(run, err);
	}
	run->db->limit.ns = 0;
	run->db->later = false;
	/* A right that is missing ends a start. Later it is a matter of the one unit that asks for it. */
	if (code == HX_CONFIG_ERROR)
		code = err->code = HX_INTERNAL;
	return code;
}

static enum hx_code try_some_times(struct group *group, const struct run *run, struct mono_time limit,
				   struct hx_error *err)
{
	/* Many soon go in halves, so that only those wait that meet somebody's lock. */
	int tries_max = group->n > 1 ? TRIES_TOGETHER : TRIES_ALONE;
	enum hx_code code = HX_INTERNAL;
	bool reconnected = false;

	for (int tries = 0; tries < tries_max; tries++) {
		code = try_once(group, run, limit, err);
		if (code && is_over(group, run->db))
			break;
		if (code == HX_STORE_UNAVAILABLE && !reconnected && group->phase == GROUP_BUILT)
			reconnected = true; /* the server may just have been restarted: nothing was sent for good */
		else if (code != HX_CONCURRENCY_ERROR || run->sink->elsewhere)
			break;
		run->stats->retried += tries + 1 < tries_max;
	}
	return code;
}

static void run_half(const struct group *whole, size_t from, size_t to, const struct run *run)
{
	struct group half;

	arena_reset(run->arena); /* what was read has been answered, or does not count */
	group_init(&half, whole->units + from, whole->results + from, to - from);
	half.first = whole->first + from;
	half.by = whole->by;
	(void)group_run(&half, run->db, run->arena, run->resolve_ms, run->sink, run->stats); /* it has no begin_by */
}

static void count_size(size_t n, struct group_stats *stats)
{
	size_t i = 0;

	while (n > (size_t)1 << i)
		i++;
	ASSERT(i < GROUP_SIZES);
	stats->sizes[i]++;
}

static void group_count(const struct group *group, struct mono_time now, struct group_stats *stats)
{
	stats->groups++;
	stats->units += group->n;
	count_size(group->n, stats);
	if (group->phase == GROUP_DURABLE)
		histogram_count(&stats->durable, (now.ns - group->began.ns) / 1000);
	for (size_t i = 0; i < group->n; i++) {
		const struct unit_line *first = &group->units[i]->lines[0];
		bool won = group->results[i].verdict == UNIT_WON, lost = group->results[i].verdict == UNIT_LOST;

		stats->won += won;
		stats->lost += lost;
		stats->failed += group->results[i].verdict >= UNIT_FAILED;
		stats->transitions += won && first->rule == UNIT_VERDICT;
		stats->changes += won && group->units[i]->op;
		stats->fenced += lost && first->stmt->fenced;
	}
}

/* Those that wait for somebody's lock go elsewhere, the others on without them. False: nobody knows who waits. */
static bool run_around_locks(const struct group *group, const struct run *run)
{
	bool blocked[GROUP_UNITS_MAX], any = false;
	size_t from = 0;

	arena_reset(run->arena);
	run->db->driver->find_blocked(run->db, group->units, group->n, blocked, run->arena);
	for (size_t i = 0; i < group->n; i++)
		any |= blocked[i];
	if (!any)
		return false;
	run->stats->retried++;
	for (size_t i = 0; i <= group->n; i++) {
		bool leaves = i < group->n && blocked[i] && run->sink->elsewhere(run->sink, group->first + i);

		if (i < group->n && !leaves)
			continue;
		if (i > from)
			run_half(group, from, i, run);
		from = i + 1;
	}
	return true;
}

/* Its end, as the store has told it. */
static void end_with(struct group *group, const struct run *run, enum hx_code code, const struct hx_error *err)
{
	struct mono_time answered = clock_mono(run->db->clock);

	if (code == HX_OK)
		group->phase = GROUP_DURABLE;
	else
		group_overrule(group, code == HX_OUTCOME_UNKNOWN ? GROUP_IN_DOUBT : GROUP_FAILED, err);
	group_settle(group, run->sink);
	group_count(group, answered, run->stats);
}

void group_land(struct group *group, struct db *db, struct group_sink *sink, struct group_stats *stats)
{
	const struct run run = {.db = db, .sink = sink, .stats = stats};

	ASSERT(group->phase == GROUP_WRITTEN);
	end_with(group, &run, HX_OK, /* err= */ NULL);
}

/* In words that its owner can do something with. */
static void tell_limit(const struct unit *unit, struct hx_error *err)
{
	struct hx_error store = *err;

	error_set(err, HX_ACTION_FAILED, "it timed out: its SQL did not come to its end within %lld ms (%s)",
		  (long long)unit->limit_ms, store.detail);
}

bool group_run(struct group *group, struct db *db, struct arena *arena, int64_t resolve_ms, struct group_sink *sink,
	       struct group_stats *stats)
{
	const struct run run = {db, arena, resolve_ms, sink, stats};
	const int64_t limit_ms = group->n == 1 ? group->units[0]->limit_ms : 0;
	struct mono_time limit = {0};
	struct hx_error err = {0};
	bool cut = false;
	enum hx_code code;

	group->began = clock_mono(db->clock);
	if (limit_ms)
		limit = mono_add_ms(group->began, limit_ms);
	code = try_some_times(group, &run, limit, &err);
	if (code == HX_BUSY)
		return false;
	if (code == HX_OK && group->later && db->may_be_later) {
		group->phase = GROUP_WRITTEN;
		group_settle(group, sink); /* which tells nobody yet */
		return true;
	}
	/* Rows too many for the arena are too many for this group, not yet for each of its units. */
	if (code == HX_CONCURRENCY_ERROR && group->n > 1 && !is_over(group, db) && sink->elsewhere &&
	    db->driver->find_blocked && run_around_locks(group, &run))
		return true;
	cut |= is_of_one(code) && group->n > 1 && !is_over(group, db); /* mutant: group-not-cut */
	if (cut) {
		stats->bisected++;
		run_half(group, 0, group->n / 2, &run);
		run_half(group, group->n / 2, group->n, &run);
		return true;
	}
	if (code == HX_CONCURRENCY_ERROR && group->n == 1 && sink->elsewhere && sink->elsewhere(sink, group->first)) {
		stats->retried++;
		return true;
	}
	if (code == HX_ACTION_FAILED && limit_ms) {
		stats->timed_out++;
		tell_limit(group->units[0], &err);
	}
	/* Which of them is to blame is not found out any more: nobody is told of another's error. */
	if (is_of_one(code) && group->n > 1)
		(void)error_set(&err, HX_STORE_UNAVAILABLE, "the store took longer than those who asked can wait");
	end_with(group, &run, code, &err);
	return true;
}

/* Of a unit that was alone, in a short time: might it end otherwise in a longer one? */
static bool is_worth_more(enum hx_code code)
{
	return code == HX_ACTION_FAILED || code == HX_CONCURRENCY_ERROR || code == HX_STORE_UNAVAILABLE;
}

bool group_try(struct group *group, int64_t limit_ms, struct db *db, struct arena *arena, int64_t resolve_ms,
	       struct group_sink *sink, struct group_stats *stats)
{
	const struct run run = {db, arena, resolve_ms, sink, stats};
	struct hx_error err = {0};
	enum hx_code code;

	group->began = clock_mono(db->clock);
	code = try_once(group, &run, mono_add_ms(group->began, limit_ms), &err);
	if (code == HX_BUSY)
		return false;
	if (group->n > 1 ? code && code != HX_OUTCOME_UNKNOWN : is_worth_more(code))
		return false;
	end_with(group, &run, code, &err);
	return true;
}

void group_stats_add(struct group_stats *sum, const struct group_stats *stats)
{
	sum->groups += stats->groups;
	sum->units += stats->units;
	for (size_t i = 0; i < GROUP_SIZES; i++)
		sum->sizes[i] += stats->sizes[i];
	histogram_add(&sum->durable, &stats->durable);
	sum->won += stats->won;
	sum->lost += stats->lost;
	sum->failed += stats->failed;
	sum->transitions += stats->transitions;
	sum->changes += stats->changes;
	sum->fenced += stats->fenced;
	sum->retried += stats->retried;
	sum->bisected += stats->bisected;
	sum->in_doubt += stats->in_doubt;
	sum->aside += stats->aside;
	sum->timed_out += stats->timed_out;
}
