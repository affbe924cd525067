/*
 * Many units of one account in one transaction, on both stores: each ends as if they had come one after the other, whatever
 * becomes of its neighbours, and the books balance afterwards (support/tally.h).
 *
 * What comes out is one letter for each unit: the item that it has begun (0 to 9, a to z), E for one that it has ended, + for a
 * credit, l for lost, r for refused, f for failed.
 */
#include "contract/batches.h"
#include "task/group.h"

#define CROWD_MAX GROUP_TOGETHER_MAX

static struct {
	struct unit units[CROWD_MAX];
	struct unit *pending[CROWD_MAX];
	struct unit_result results[CROWD_MAX];
	size_t n;
	struct group_stats stats;
} crowd;

static void answer(struct group_sink *sink, size_t i, const struct unit_result *result)
{
	const struct unit *unit = &crowd.units[i];
	static const char letters[] = "?lrfu";

	(void)sink;
	if (result->verdict != UNIT_WON)
		world.after.p[i] = letters[result->verdict];
	else if (strcmp(unit->lines[0].stmt->name, "batch_keep") == 0)
		world.after.p[i] = "0123456789abcdefghijklmnopqrstuvwxyz"[db_cell(&result->rows[1], 0, START_N)->i];
	else
		world.after.p[i] = unit->lines[0].stmt->name[0] == 'a' ? '+' : 'E';
}

static void no_wake(struct group_sink *sink, int64_t topic)
{
	(void)sink, (void)topic;
}

/* Runs all of them as a lane would, and says what became of each. */
static const char *run_crowd(void)
{
	struct group_sink sink = {.answer = answer, .wake = no_wake};
	const char *wrong;
	struct group group;

	strbuf_reset(&world.after);
	for (size_t i = 0; i < crowd.n; i++)
		strbuf_add_char(&world.after, '?');
	strbuf_add_char(&world.after, '\0');
	group_init(&group, crowd.pending, crowd.results, crowd.n);
	assert_true(group_run(&group, world.db, &world.arena, /* resolve_ms= */ 1000, &sink, &crowd.stats));
	wrong = tally_wrong(world.db, world.account, &world.arena);
	if (wrong)
		fail_msg("counterexample in one group: %s", wrong);
	return world.after.p;
}

#define assert_crowd(expected)                                                                                         \
	do {                                                                                                           \
		const char *is = run_crowd();                                                                          \
                                                                                                                       \
		if (strcmp(is, expected) != 0)                                                                         \
			fail_msg("counterexample in one group: %s, not %s", is, expected);                             \
	} while (0)

static void gather(void)
{
	crowd.n = 0;
	memset(&crowd.stats, 0, sizeof crowd.stats);
}

static struct unit *one_more(struct stamp *ret_stamp)
{
	struct unit *unit = crowd.pending[crowd.n] = &crowd.units[crowd.n];

	assert_true(crowd.n++ < CROWD_MAX);
	*ret_stamp = begin();
	unit_init(unit, ret_stamp->op);
	return unit;
}

static void add_starts(const struct batch_hold *hold, size_t n)
{
	struct stamp stamp;

	for (size_t i = 0; i < n; i++)
		item_start(one_more(&stamp), &stamp, hold);
}

static void add_end(const struct batch_hold *hold, int64_t n, const char *status, bool returns)
{
	struct item_end as = {
		.n = n, .attempt = 1, .status = status, .failure = returns, .returns = returns, .rest_ms = PAST_MS};
	struct stamp stamp;

	item_end(one_more(&stamp), &stamp, hold, &as);
}

static void add_credit(int64_t amount, const char *key)
{
	struct stamp stamp;

	account_add_credit(one_more(&stamp), &stamp, world.account, amount, slice_str(key));
}

static struct batch_hold running_of(size_t n, int64_t cost)
{
	int64_t costs[CROWD_MAX];

	for (size_t i = 0; i < n; i++)
		costs[i] = cost;
	return running(costs, n);
}

/* ---- tests ---- */

/* A lane would put them in one transaction as well: nobody waits for another. */
static void assert_picked(void)
{
	static struct group_table table;
	size_t picked[CROWD_MAX];
	bool in_sets = world.db->driver->one_unit_per_subject;

	assert_int_equal(group_pick(in_sets ? &table : NULL, crowd.pending, crowd.n, CROWD_MAX, picked), crowd.n);
}

static void a_crowd_is_one_transaction(void **state)
{
	struct batch_hold hold;

	(void)state;
	open_account(1000);
	hold = running_of(36, 3);
	gather();
	add_starts(&hold, 30);
	assert_picked();
	assert_crowd("0123456789abcdefghijklmnopqrst");
	assert_int_equal(crowd.stats.groups, 1);
	assert_int_equal(crowd.stats.won, 30);
	gather();
	for (int64_t n = 0; n < 30; n++)
		add_end(&hold, n, ITEM_SUCCEEDED, /* returns= */ false);
	add_starts(&hold, 8);
	add_credit(5, "one");
	add_credit(5, "two");
	add_credit(5, "one");
	assert_picked();
	assert_crowd("EEEEEEEEEEEEEEEEEEEEEEEEEEEEEE"
		     "uvwxyzll"
		     "++l");
	assert_int_equal(crowd.stats.groups, 1);
	assert_int_equal(look(hold.subject).succeeded, 30);
	assert_int_equal(look(hold.subject).charged, 36 * 3);
}

static void as_many_as_may_be_together_are_one_transaction(void **state)
{
	const size_t half = GROUP_TOGETHER_MAX / 2;
	struct batch_hold one, other;

	(void)state;
	open_account(1000);
	one = running_of(half, 3);
	other = running_of(half, 3);
	gather();
	add_starts(&one, half);
	add_starts(&other, half);
	assert_picked();
	assert_crowd("0123456789abcdefghijklmnopqrstuv"
		     "0123456789abcdefghijklmnopqrstuv");
	assert_int_equal(crowd.stats.groups, 1);
}

/* What was begun before, what rests and is paid, what rests, what was never begun. */
static void a_crowd_takes_items_in_their_order(void **state)
{
	struct batch_hold first, hold;

	(void)state;
	open_account(1000);
	first = running_of(12, 2);
	gather();
	add_starts(&first, 6);
	assert_crowd("012345");
	assert_int_equal(rest(&first, 1, 1, PAST_MS), UNIT_WON);
	assert_int_equal(doubt(&first, 3, 1, PAST_MS), UNIT_WON);
	assert_int_equal(rest(&first, 0, 1, LEASE_MS), UNIT_WON);
	hold = taken_over(&first);
	gather();
	add_starts(&hold, 4);
	add_starts(&first, 2);
	add_starts(&hold, 9);
	assert_crowd("2453"
		     "ll"
		     "16789abll");
}

/* What one cannot pay for, none of the next can: but a cheaper item of another batch is begun. */
static void a_crowd_is_paid_for_one_by_one(void **state)
{
	struct batch_hold dear, cheap;

	(void)state;
	open_account(10);
	dear = running_of(9, 3);
	cheap = running_of(9, 1);
	gather();
	add_starts(&dear, 5);
	add_starts(&cheap, 2);
	assert_crowd("012rr"
		     "0r");
	gather();
	add_end(&dear, 0, ITEM_FAILED, /* returns= */ true);
	add_credit(4, "more");
	add_starts(&cheap, 1);
	assert_int_equal(run_crowd()[1], '+');
	assert_int_equal(world.after.p[0], 'E');
}

static void who_was_overtaken_begins_and_ends_nothing(void **state)
{
	struct batch_hold first, hold;

	(void)state;
	open_account(100);
	first = running_of(9, 3);
	gather();
	add_starts(&first, 2);
	assert_crowd("01");
	hold = taken_over(&first);
	gather();
	add_starts(&first, 2);
	add_starts(&hold, 1);
	assert_crowd("ll0");
	gather();
	add_end(&first, 0, ITEM_SUCCEEDED, /* returns= */ false);
	add_end(&first, 1, ITEM_SUCCEEDED, /* returns= */ false);
	add_end(&first, 1, ITEM_UNKNOWN, /* returns= */ false);
	assert_crowd("lEl");
	assert_int_equal(look(hold.subject).succeeded, 1);
	assert_int_equal(look(hold.subject).unknown, 0);
}

static void a_crowd_begins_nothing_after_a_cancel(void **state)
{
	struct batch_hold flagged, other;

	(void)state;
	open_account(100);
	flagged = running_of(9, 3);
	other = running_of(9, 3);
	flag(flagged.subject);
	gather();
	add_starts(&flagged, 2);
	add_starts(&other, 2);
	assert_crowd("ll01");
}

/* An entry of the ledger is there already under the key of one batch's first item: none of its starts can be. */
static void what_fails_fails_alone(void **state)
{
	struct batch_hold bad, good;
	struct stamp stamp;
	char key[64];

	(void)state;
	open_account(100);
	bad = running_of(9, 3);
	good = running_of(9, 3);
	snprintf(key, sizeof key, "%.*s0/charge/1", SLICE_ARGS(bad.ledger_prefix));
	stamp = begin();
	account_add_credit(&world.unit, &stamp, world.account, 1, slice_str(key));
	must_win();
	gather();
	add_starts(&good, 2);
	add_starts(&bad, 1);
	add_starts(&good, 1);
	add_starts(&bad, 1);
	add_starts(&good, 1);
	assert_crowd("01f2f3");
}

#define ON(store, test) cmocka_unit_test_setup_teardown(test, set_up_##store, tear_down)
#define ALL(store)                                                                                                     \
	ON(store, a_crowd_is_one_transaction), ON(store, as_many_as_may_be_together_are_one_transaction),              \
		ON(store, a_crowd_takes_items_in_their_order), ON(store, a_crowd_is_paid_for_one_by_one),              \
		ON(store, who_was_overtaken_begins_and_ends_nothing),                                                  \
		ON(store, a_crowd_begins_nothing_after_a_cancel), ON(store, what_fails_fails_alone)

int main(int argc, char **argv)
{
	const struct CMUnitTest sqlite[] = {ALL(sqlite)};
	const struct CMUnitTest postgres[] = {ALL(postgres)};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("a crowd, sqlite", sqlite, NULL, NULL) +
	       cmocka_run_group_tests_name("a crowd, postgres", postgres, NULL, NULL);
}
