/*
 * Units to group, and a group through its phases, over a driver that does what the test says.
 *
 * The fake driver keeps a diary in letters, the sink writes into the same one, and a test compares it with what
 * must have happened, in order:
 *
 *   b begin   x execute   c commit   ? resolve        w an answer "won"   l lost   f failed   u unknown   ! a wake
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "task/group.h"

#define CALLS_MAX 64

/* ---- the fake driver ---- */

struct fake {
	struct db db;
	/* What the n-th call answers; HX_OK where the test has said nothing. */
	enum hx_code begins[CALLS_MAX], executes[CALLS_MAX], commits[CALLS_MAX], resolves[CALLS_MAX];
	size_t begins_n, executes_n, commits_n, resolves_n;
	int64_t poison;     /* the op of a unit whose data is refused; 0: none */
	int64_t found_late; /* the op of one whose data only the commit refuses; 0: none */
	bool has_late;      /* it is in the transaction */
	size_t rows_fit_n;  /* with more units than this the arena is full; 0: always fits */
	bool begun;
	struct fake_clock clock;
	int64_t execute_ms, commit_ms; /* how long these take */
	int64_t resolve_ms;
	int64_t limit_ms; /* of the transaction that was begun last */
	bool commit_limited;
	char diary[8192];
	size_t diary_n;
};

static void note(struct fake *f, char letter)
{
	assert_true(f->diary_n < sizeof f->diary - 1);
	f->diary[f->diary_n++] = letter;
	f->diary[f->diary_n] = '\0';
}

static enum hx_code next(const enum hx_code script[], size_t *n, struct hx_error *err)
{
	enum hx_code code = *n < CALLS_MAX ? script[*n] : HX_OK;

	++*n;
	return code ? error_set(err, code, "as the test wants") : HX_OK;
}

static enum hx_code fake_begin(struct db *db, struct hx_error *err)
{
	struct fake *f = (struct fake *)db;
	enum hx_code code = next(f->begins, &f->begins_n, err);

	note(f, 'b');
	f->limit_ms = db->limit.ns ? (db->limit.ns - clock_mono(db->clock).ns) / 1000000 : 0;
	assert_false(f->begun);
	f->begun = code == HX_OK;
	return code;
}

/* Units with an odd op win, the others lose; each row says which unit it belongs to. */
static void fake_verdict(const struct unit *unit, struct unit_result *result, struct arena *arena)
{
	struct db_value *cell = arena_alloc(arena, sizeof *cell);

	assert_non_null(cell);
	*cell = db_int(unit->op);
	*result = (struct unit_result){.verdict = unit->op % 2 ? UNIT_WON : UNIT_LOST, .line = unit->op % 2 ? -1 : 0};
	result->rows[0] = (struct db_rows){1, 1, cell};
}

static enum hx_code fake_execute(struct db *db, struct unit *const units[], size_t n, struct unit_result results[],
				 struct arena *arena, struct hx_error *err)
{
	struct fake *f = (struct fake *)db;
	enum hx_code code = next(f->executes, &f->executes_n, err);

	note(f, 'x');
	fake_clock_advance_ms(&f->clock, f->execute_ms);
	assert_true(f->begun);
	f->has_late = false;
	for (size_t i = 0; i < n; i++) {
		fake_verdict(units[i], &results[i], arena);
		f->has_late |= f->found_late && units[i]->op == f->found_late;
		if (!code && units[i]->op == f->poison)
			code = error_set(err, HX_DATA_ERROR, "unit %lld", (long long)units[i]->op);
	}
	if (!code && f->rows_fit_n && n > f->rows_fit_n)
		code = error_set(err, HX_TOO_LARGE, "too many rows");
	if (code)
		f->begun = false;
	return code;
}

static enum hx_code fake_commit(struct db *db, struct hx_error *err)
{
	struct fake *f = (struct fake *)db;

	note(f, 'c');
	f->commit_limited |= db->limit.ns != 0;
	fake_clock_advance_ms(&f->clock, f->commit_ms);
	assert_true(f->begun);
	f->begun = false;
	if (f->has_late)
		return error_set(err, HX_DATA_ERROR, "unit %lld", (long long)f->found_late);
	return next(f->commits, &f->commits_n, err);
}

static enum hx_code fake_resolve(struct db *db, int64_t wait_ms, struct hx_error *err)
{
	struct fake *f = (struct fake *)db;

	note(f, '?');
	f->resolve_ms = wait_ms;
	return next(f->resolves, &f->resolves_n, err);
}

static const struct db_driver fake_driver = {
	.name = "fake",
	.begin = fake_begin,
	.execute = fake_execute,
	.commit = fake_commit,
	.resolve = fake_resolve,
};

/* ---- a table for one test: units, results, and a sink that looks closely ---- */

static const struct db_stmt stmt = {.name = "test_guarded", .sql = "", .in = "", .out = "i", .fenced = true};
static struct fake fake;
static struct unit units[GROUP_UNITS_MAX];
static struct unit *unit_pointers[GROUP_UNITS_MAX];
static struct unit_result results[GROUP_UNITS_MAX];
static struct arena arena;
static struct group_stats stats;
static unsigned answers[GROUP_UNITS_MAX];
static enum unit_verdict verdicts[GROUP_UNITS_MAX];
static struct hx_error errors[GROUP_UNITS_MAX];

static void take_answer(struct group_sink *sink, size_t i, const struct unit_result *result)
{
	(void)sink;
	assert_true(i < GROUP_UNITS_MAX);
	assert_false(fake.begun); /* B1: never while the transaction is open */
	answers[i]++;
	verdicts[i] = result->verdict;
	if (result->verdict == UNIT_WON || result->verdict == UNIT_LOST) {
		assert_int_equal(result->rows[0].n, 1);
		assert_int_equal(db_cell(&result->rows[0], 0, 0)->i, units[i].op); /* its own rows */
	} else {
		assert_int_equal(result->rows[0].n, 0);
		assert_int_equal(result->line, -1);
		errors[i] = result->error;
	}
	note(&fake, "wlrfu"[result->verdict]);
}

static void take_wake(struct group_sink *sink, int64_t topic)
{
	(void)sink, (void)topic;
	assert_false(fake.begun);
	note(&fake, '!');
}

static struct group_sink sink = {.answer = take_answer, .wake = take_wake};

static int set_up(void **state)
{
	(void)state;
	fake = (struct fake){.db = {.driver = &fake_driver, .clock = &fake.clock.clock}};
	fake_clock_init(&fake.clock, (struct wall_time){0});
	stats = (struct group_stats){0};
	memset(answers, 0, sizeof answers);
	arena_release(&arena);
	arena_init(&arena, 1u << 20);
	for (size_t i = 0; i < GROUP_UNITS_MAX; i++) {
		unit_init(&units[i], (int64_t)i + 1); /* odd ops win: the first one does */
		unit_add(&units[i], UNIT_VERDICT, &stmt, 0, NULL);
		unit_touch(&units[i], (int64_t)i + 1);
		unit_wake(&units[i], (int64_t)i + 1);
		unit_pointers[i] = &units[i];
	}
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

static void run(size_t n)
{
	struct group group;

	group_init(&group, unit_pointers, results, n);
	group_run(&group, &fake.db, &arena, /* resolve_ms= */ 1234, &sink, &stats);
}

/* ---- running ---- */

static void answers_and_wakes_come_after_the_commit(void **state)
{
	(void)state;
	run(4);
	assert_string_equal(fake.diary, "bxcwlwl!!"); /* two have won: two wakes */
	assert_int_equal(stats.groups, 1);
	assert_int_equal(stats.units, 4);
	assert_int_equal(stats.won, 2);
	assert_int_equal(stats.lost, 2);
	assert_int_equal(stats.transitions, 2);
	assert_int_equal(stats.fenced, 2);
	assert_int_equal(stats.retried, 0);
}

/* Each transaction falls into one size, and each that is durable into one duration: what was tried twice is one of both. */
static void transactions_are_measured(void **state)
{
	static const struct {
		size_t n, bucket;
	} sizes[] = {{1, 0}, {2, 1}, {3, 2}, {4, 2}, {5, 3}, {256, 8}, {257, 9}, {GROUP_UNITS_MAX, 9}};
	static const struct {
		int64_t ms;
		size_t bucket;
	} durations[] = {{0, 0}, {1, 3}, {2, 4}, {5, 5}, {6, 6}, {10000, 15}, {10001, 16}, {3600000, 16}};

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		uint64_t before = stats.sizes[sizes[i].bucket];

		run(sizes[i].n);
		assert_int_equal(stats.sizes[sizes[i].bucket], before + 1);
	}
	for (size_t i = 0; i < sizeof durations / sizeof *durations; i++) {
		uint64_t before = stats.durable.counts[durations[i].bucket], took_us = stats.durable.took_us;

		fake.execute_ms = durations[i].ms / 2;
		fake.commit_ms = durations[i].ms - fake.execute_ms;
		run(1);
		assert_int_equal(stats.durable.counts[durations[i].bucket], before + 1);
		assert_int_equal(stats.durable.took_us - took_us, durations[i].ms * 1000);
	}
	fake.commits[fake.commits_n] = HX_STORE_UNAVAILABLE;
	run(1);
	assert_int_equal(stats.sizes[0], 10);

	uint64_t sizes_n = 0, durations_n = 0;

	for (size_t i = 0; i < GROUP_SIZES; i++)
		sizes_n += stats.sizes[i];
	for (size_t i = 0; i < HISTOGRAM_RANGES; i++)
		durations_n += stats.durable.counts[i];
	assert_int_equal(sizes_n, stats.groups);
	assert_int_equal(durations_n, stats.groups - 1);
}

static void the_phases_open_the_doors_one_by_one(void **state)
{
	static const struct {
		enum group_phase phase;
		const char *diary;
	} phases[] = {
		{GROUP_BUILT, ""},    {GROUP_EXECUTED, ""},    {GROUP_DURABLE, "wl!"},
		{GROUP_FAILED, "wl"}, {GROUP_IN_DOUBT, "wl!"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) {
		struct group group;

		fake.diary_n = 0;
		fake.diary[0] = '\0';
		group_init(&group, unit_pointers, results, 2);
		fake_verdict(&units[0], &results[0], &arena);
		fake_verdict(&units[1], &results[1], &arena);
		group.phase = phases[i].phase;
		group_settle(&group, &sink);
		assert_string_equal(fake.diary, phases[i].diary);
		group_settle(&group, &sink); /* nobody is told twice */
		assert_string_equal(fake.diary, phases[i].diary);
	}
}

static void a_deadlock_is_run_again(void **state)
{
	(void)state;
	fake.executes[0] = HX_CONCURRENCY_ERROR;
	run(2);
	assert_string_equal(fake.diary, "bxbxcwl!");
	assert_int_equal(stats.retried, 1);
}

static void a_lock_that_is_not_given_holds_up_only_who_needs_it(void **state)
{
	(void)state;
	fake.executes[0] = fake.executes[1] = HX_CONCURRENCY_ERROR;
	run(2);
	assert_string_equal(fake.diary, "bxbxbxcw!bxcl"); /* together, again, then each half for itself */
	assert_int_equal(stats.retried, 1);
	assert_int_equal(stats.bisected, 1);
}

static void deadlocks_without_end_fail(void **state)
{
	size_t tries;

	(void)state;
	for (size_t i = 0; i < CALLS_MAX; i++)
		fake.executes[i] = HX_CONCURRENCY_ERROR;
	run(2);
	tries = fake.executes_n;
	assert_true(tries > 2 && tries < CALLS_MAX);
	assert_string_equal(fake.diary, "bxbxbxbxbxbxfbxbxbxbxf"); /* B2: not even the one that had lost hears of it */
	assert_int_equal(stats.retried, 7);
	assert_int_equal(errors[0].code, HX_CONCURRENCY_ERROR);
	assert_int_equal(fake.commits_n, 0);
}

static void a_store_that_cannot_be_begun_with_once_is_asked_again(void **state)
{
	(void)state;
	fake.begins[0] = HX_CONCURRENCY_ERROR;
	fake.begins[1] = HX_STORE_UNAVAILABLE;
	run(1);
	assert_string_equal(fake.diary, "bbbxcw!");
}

static void a_connection_lost_once_is_made_again(void **state)
{
	(void)state;
	fake.executes[0] = HX_STORE_UNAVAILABLE;
	run(2);
	assert_string_equal(fake.diary, "bxbxcwl!");
	assert_int_equal(stats.retried, 1);
}

static void a_connection_lost_twice_fails(void **state)
{
	(void)state;
	fake.executes[0] = HX_STORE_UNAVAILABLE;
	fake.begins[1] = HX_STORE_UNAVAILABLE;
	run(2);
	assert_string_equal(fake.diary, "bxbff");
	assert_int_equal(errors[1].code, HX_STORE_UNAVAILABLE);
	assert_int_equal(stats.won + stats.lost, 0);
	assert_int_equal(stats.groups, 1);
}

static void one_bad_unit_of_512_is_found_and_the_others_get_their_verdict(void **state)
{
	(void)state;
	for (size_t bad = 0; bad < GROUP_UNITS_MAX; bad += 73) {
		set_up(NULL);
		fake.poison = (int64_t)bad + 1;
		run(GROUP_UNITS_MAX);
		for (size_t i = 0; i < GROUP_UNITS_MAX; i++) {
			assert_int_equal(answers[i], 1);
			assert_int_equal(verdicts[i], i == bad ? UNIT_FAILED : i % 2 ? UNIT_LOST : UNIT_WON);
		}
		assert_int_equal(errors[bad].code, HX_DATA_ERROR);
		assert_int_equal(stats.bisected, 9); /* 512 = 2^9 */
		assert_int_equal(stats.units, GROUP_UNITS_MAX);
	}
}

/* Cut up to the last one, the first still is the first: units of one subject keep their order. */
static void halves_keep_the_order(void **state)
{
	(void)state;
	fake.poison = 3;
	run(5);
	assert_string_equal(fake.diary, "bx"       /* all five are refused */
					"bxcwl!"   /* 1 2 */
					"bx"       /* 3 4 5 */
					"bxf"      /* 3 */
					"bxclw!"); /* 4 5 */
	assert_int_equal(stats.bisected, 2);
}

static void a_group_whose_rows_do_not_fit_is_cut_too(void **state)
{
	(void)state;
	fake.rows_fit_n = 2;
	run(4);
	assert_string_equal(fake.diary, "bxbxcwl!bxcwl!");
	set_up(NULL);
	fake.executes[0] = HX_TOO_LARGE;
	run(1);
	assert_string_equal(fake.diary, "bxf"); /* one by itself is too large for ever */
	assert_int_equal(errors[0].code, HX_TOO_LARGE);
}

/* Halves begin with an empty arena: what the whole had filled it with does not count against them. */
static void the_arena_is_emptied_between_halves(void **state)
{
	(void)state;
	arena_release(&arena);
	arena_init(&arena, GROUP_UNITS_MAX * sizeof(struct db_value) + 4096);
	fake.poison = 300;
	run(GROUP_UNITS_MAX); /* fake_verdict would fail the test */
	assert_int_equal(stats.bisected, 9);
}

static void a_commit_that_certainly_failed(void **state)
{
	(void)state;
	fake.commits[0] = HX_STORE_UNAVAILABLE;
	run(2);
	assert_string_equal(fake.diary, "bxcff");
	assert_int_equal(stats.in_doubt, 0);
}

/* A deferred constraint, say. Nobody hears of another's error. */
static void what_only_the_commit_finds_is_told_to_one(void **state)
{
	(void)state;
	fake.found_late = 3;
	run(4);
	if (verdicts[0] == UNIT_FAILED)
		printf("counterexample in a commit\n  broken: a unit is told the error of another: %s\n",
		       errors[0].detail);
	assert_string_equal(fake.diary, "bxc"
					"bxcwl!"
					"bxc"
					"bxcf"
					"bxcl");
	assert_int_equal(errors[2].code, HX_DATA_ERROR);
	assert_int_equal(stats.bisected, 2);
	set_up(NULL);
	fake.commits[0] = HX_CONCURRENCY_ERROR; /* a deadlock among deferred triggers: run again */
	run(2);
	assert_string_equal(fake.diary, "bxcbxcwl!");
}

/* ---- locks and limits ---- */

static bool take_over(struct group_sink *s, size_t i)
{
	(void)s, (void)i;
	note(&fake, '>'); /* it would count them: the group does not know whether they wait or go */
	return true;
}

static void who_waits_for_a_lock_goes_elsewhere(void **state)
{
	(void)state;
	sink.elsewhere = take_over;
	fake.executes[0] = fake.executes[2] = HX_CONCURRENCY_ERROR;
	run(2);
	sink.elsewhere = NULL;
	assert_string_equal(fake.diary, "bx"
					"bxcw!"
					"bx>"); /* tried once, and nobody waits for it */
	assert_int_equal(answers[1], 0);
}

static bool is_blocked[GROUP_UNITS_MAX];

static void fake_find_blocked(struct db *db, struct unit *const all[], size_t n, bool ret_blocked[], struct arena *room)
{
	(void)db, (void)room;
	note(&fake, 'k');
	for (size_t i = 0; i < n; i++)
		ret_blocked[i] = is_blocked[all[i]->op - 1];
}

/* Where the store knows who waits, nobody is looked for by halves. */
static void who_is_known_to_wait_leaves_at_once(void **state)
{
	struct db_driver knowing = fake_driver;

	(void)state;
	knowing.find_blocked = fake_find_blocked;
	fake.db.driver = &knowing;
	sink.elsewhere = take_over;
	fake.executes[0] = HX_CONCURRENCY_ERROR;
	is_blocked[1] = is_blocked[4] = true;
	run(6);
	assert_string_equal(fake.diary, "bxk>bxcw!>bxcwl!bxcl");
	assert_int_equal(stats.bisected, 0);
	set_up(NULL);
	fake.db.driver = &knowing;
	fake.executes[0] = HX_CONCURRENCY_ERROR;
	run(1); /* alone there is nothing to find out */
	assert_string_equal(fake.diary, "bx>");
	memset(is_blocked, 0, sizeof is_blocked);
	set_up(NULL);
	fake.db.driver = &knowing;
	fake.executes[0] = HX_CONCURRENCY_ERROR; /* a deadlock, say: nobody waits any more */
	run(2);
	sink.elsewhere = NULL;
	assert_string_equal(fake.diary, "bxkbxcw!bxcl");
	assert_int_equal(stats.bisected, 1);
}

/* A server that is cancelled while it waits for its standby tells the commit as done. */
static void nothing_hurries_a_commit(void **state)
{
	(void)state;
	unit_limit(&units[0], 700);
	run(1);
	assert_string_equal(fake.diary, "bxcw!");
	assert_int_equal(fake.limit_ms, 700);
	if (fake.commit_limited)
		printf("counterexample in a commit\n  broken: it has a limit, and a stop would cancel it\n");
	assert_false(fake.commit_limited);
}

static void a_unit_that_is_alone_has_its_limit(void **state)
{
	(void)state;
	unit_limit(&units[0], 700);
	fake.executes[0] = HX_ACTION_FAILED;
	run(1);
	assert_string_equal(fake.diary, "bxf");
	assert_int_equal(fake.limit_ms, 700);
	assert_int_equal(fake.db.limit.ns, 0); /* for the next it counts no more */
	assert_int_equal(stats.timed_out, 1);
	assert_int_equal(errors[0].code, HX_ACTION_FAILED);
	assert_non_null(strstr(errors[0].detail, "700 ms"));
	run(1);
	assert_int_equal(answers[0], 2);
	assert_int_equal(verdicts[0], UNIT_WON);
}

static bool try_all(size_t n)
{
	struct group group;

	group_init(&group, unit_pointers, results, n);
	return group_try(&group, /* limit_ms= */ 200, &fake.db, &arena, /* resolve_ms= */ 1234, &sink, &stats);
}

/* Once, and no longer than that: whatever goes wrong, each is to be tried by itself. */
static void a_try_is_one(void **state)
{
	static const enum hx_code codes[] = {HX_DATA_ERROR, HX_ACTION_FAILED, HX_CONCURRENCY_ERROR,
					     HX_STORE_UNAVAILABLE, HX_TOO_LARGE};

	(void)state;
	assert_true(try_all(2));
	assert_int_equal(fake.limit_ms, 200);
	assert_string_equal(fake.diary, "bxcwl!");
	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
		set_up(NULL);
		fake.executes[0] = codes[i];
		assert_false(try_all(2));
		fake.commits[0] = codes[i];
		assert_false(try_all(2));
		assert_string_equal(fake.diary, "bxbxc"); /* and nobody was answered */
	}
	set_up(NULL);
	fake.executes[0] = HX_DATA_ERROR;
	assert_true(try_all(1)); /* more time would not help it */
	assert_string_equal(fake.diary, "bxf");
	fake.executes[1] = HX_ACTION_FAILED;
	assert_false(try_all(1));
	fake.commits[0] = HX_OUTCOME_UNKNOWN;
	fake.resolves[0] = HX_OUTCOME_UNKNOWN;
	assert_true(try_all(2)); /* never twice what may have landed */
	assert_string_equal(fake.diary, "bxfbxbxc?uu!!");
}

static void an_unknown_commit_that_had_landed(void **state)
{
	(void)state;
	fake.commits[0] = HX_OUTCOME_UNKNOWN;
	run(2);
	assert_string_equal(fake.diary, "bxc?wl!");
	assert_int_equal(fake.resolve_ms, 1234);
	assert_int_equal(stats.in_doubt, 1);
}

static void an_unknown_commit_that_had_not_landed(void **state)
{
	(void)state;
	fake.commits[0] = HX_OUTCOME_UNKNOWN;
	fake.resolves[0] = HX_STORE_UNAVAILABLE;
	run(2);
	assert_string_equal(fake.diary, "bxc?ff");
	assert_int_equal(stats.in_doubt, 1);
}

static void an_unknown_commit_that_stays_unknown(void **state)
{
	(void)state;
	fake.commits[0] = HX_OUTCOME_UNKNOWN;
	fake.resolves[0] = HX_OUTCOME_UNKNOWN;
	run(2);
	assert_string_equal(fake.diary, "bxc?uu!!"); /* woken too: it may have happened, and a wake is a hint */
	assert_int_equal(errors[0].code, HX_OUTCOME_UNKNOWN);
	assert_int_equal(stats.won, 0);
}

/* What the first half committed stays told, whatever becomes of the second. */
static void halves_end_by_themselves(void **state)
{
	(void)state;
	fake.executes[0] = HX_DATA_ERROR;
	fake.commits[1] = HX_OUTCOME_UNKNOWN;
	fake.resolves[0] = HX_OUTCOME_UNKNOWN;
	run(4);
	assert_string_equal(fake.diary, "bxbxcwl!bxc?uu!!");
}

#define GROUP_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		GROUP_TEST(answers_and_wakes_come_after_the_commit),
		GROUP_TEST(transactions_are_measured),
		GROUP_TEST(the_phases_open_the_doors_one_by_one),
		GROUP_TEST(a_deadlock_is_run_again),
		GROUP_TEST(a_lock_that_is_not_given_holds_up_only_who_needs_it),
		GROUP_TEST(deadlocks_without_end_fail),
		GROUP_TEST(a_store_that_cannot_be_begun_with_once_is_asked_again),
		GROUP_TEST(a_connection_lost_once_is_made_again),
		GROUP_TEST(a_connection_lost_twice_fails),
		GROUP_TEST(one_bad_unit_of_512_is_found_and_the_others_get_their_verdict),
		GROUP_TEST(halves_keep_the_order),
		GROUP_TEST(a_group_whose_rows_do_not_fit_is_cut_too),
		GROUP_TEST(the_arena_is_emptied_between_halves),
		GROUP_TEST(a_commit_that_certainly_failed),
		GROUP_TEST(what_only_the_commit_finds_is_told_to_one),
		GROUP_TEST(who_waits_for_a_lock_goes_elsewhere),
		GROUP_TEST(who_is_known_to_wait_leaves_at_once),
		GROUP_TEST(nothing_hurries_a_commit),
		GROUP_TEST(a_unit_that_is_alone_has_its_limit),
		GROUP_TEST(a_try_is_one),
		GROUP_TEST(an_unknown_commit_that_had_landed),
		GROUP_TEST(an_unknown_commit_that_had_not_landed),
		GROUP_TEST(an_unknown_commit_that_stays_unknown),
		GROUP_TEST(halves_end_by_themselves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
