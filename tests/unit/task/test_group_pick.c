/* Which of the pending units go into a group: at most so many, in their order, and of a subject one at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "task/group.h"

static struct unit many[3 * GROUP_UNITS_MAX];
static struct unit *pending[3 * GROUP_UNITS_MAX];
static size_t picked[GROUP_UNITS_MAX];
static struct group_table table;

static const struct db_stmt stmt_line = {.name = "line", .in = "", .out = "", .sql = "SELECT 1"};
static const struct db_stmt stmt_whole = {.name = "whole", .in = "", .out = "", .sql = "", .set_sql = "SELECT 1"};

static void make_serial(struct unit *unit, char how)
{
	unit_add(unit, UNIT_VERDICT, &stmt_line, 0, NULL);
	if (how == '+')
		unit_add(unit, UNIT_MUST, &stmt_line, 0, NULL);
	else
		unit_together(unit, /* rows= */ 0, &stmt_whole, 0, NULL);
}

/*
 * Unit i touches these subjects, "ab" for the subjects 'a' and 'b'; it shares 'a' as "A". With a '+' it is serial, because it can lose after its first line;
 * with a '*', because it can be done together with others. Returns the picked indices as letters.
 */
static const char *pick(const char *const subjects[], size_t n, bool one_per_subject, size_t max)
{
	static char text[GROUP_UNITS_MAX + 1];
	size_t picked_n;

	for (size_t i = 0; i < n; i++) {
		unit_init(&many[i], 1);
		for (const char *s = subjects[i]; *s; s++) {
			if (*s >= 'a')
				unit_touch(&many[i], *s);
			else if (*s >= 'A')
				unit_share(&many[i], *s - 'A' + 'a');
			else
				make_serial(&many[i], *s);
		}
		pending[i] = &many[i];
	}
	picked_n = group_pick(one_per_subject ? &table : NULL, pending, n, max, picked);
	for (size_t i = 0; i < picked_n; i++)
		text[i] = (char)('0' + picked[i]);
	text[picked_n] = '\0';
	return text;
}

#define PICK(one_per_subject, max, ...)                                                                                \
	pick((const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *),          \
	     one_per_subject, max)

static void one_unit_of_a_subject(void **state)
{
	(void)state;
	assert_string_equal(PICK(false, 512, "a", "a", "b", "a"), "0123");
	assert_string_equal(PICK(true, 512, "a", "a", "b", "a"), "02");
	assert_string_equal(PICK(true, 512, "a", "b", "c", "d"), "0123");
	assert_string_equal(PICK(true, 512, "", "", "", "a", ""), "01234"); /* who touches nothing disturbs nobody */
	assert_string_equal(PICK(true, 512, "ab", "b", "c", "ca"), "02");
}

static void serial_units_share_a_subject(void **state)
{
	const char *by_lines[2 * GROUP_SERIAL_MAX], *together[2 * GROUP_SERIAL_MAX];

	(void)state;
	if (strcmp(PICK(true, 512, "a*", "a"), "0") != 0)
		fail_msg("counterexample in one group: a unit of a set shares its subject with another");
	assert_string_equal(PICK(true, 512, "a+", "a*", "ab*", "b+"), "0123");
	assert_string_equal(PICK(true, 512, "a", "a*", "a*"), "0"); /* not with one that runs in a set */
	assert_string_equal(PICK(true, 512, "a*", "a*", "a", "a*", "b"), "014");
	assert_string_equal(PICK(true, 512, "a", "ab*", "b*", "c*"), "03"); /* nor does it overtake one that waits */
	for (size_t i = 0; i < 2 * GROUP_SERIAL_MAX; i++) {
		by_lines[i] = "a+";
		together[i] = "a*";
	}
	assert_int_equal(strlen(pick(by_lines, 2 * GROUP_SERIAL_MAX, true, 512)), 1 + GROUP_SERIAL_MAX);
	assert_int_equal(strlen(pick(together, 2 * GROUP_SERIAL_MAX, true, 512)), 2 * GROUP_SERIAL_MAX);
}

/* Children that end at once tell their parent in one set. Who touches it for himself goes with none of them. */
static void plain_units_may_share_a_subject(void **state)
{
	(void)state;
	assert_string_equal(PICK(true, 512, "bA", "cA", "dA"), "012");
	assert_string_equal(PICK(true, 512, "bA", "bA", "cA"),
			    "0"); /* two of one child: the third does not overtake on a */
	assert_string_equal(PICK(true, 512, "A", "a", "A"), "0");
	assert_string_equal(PICK(true, 512, "a", "A"), "0");
	assert_string_equal(PICK(true, 512, "Aa", "A"), "0"); /* touched besides */
	assert_string_equal(PICK(true, 512, "A+", "A", "b"), "02");
	assert_string_equal(PICK(true, 512, "A", "A+", "A+"), "0");
	assert_string_equal(PICK(true, 512, "A+", "a+"), "01");
}

/* Where accounts cannot pay for all of them each runs by its lines, for which all others wait. */
static void units_that_can_be_together_are_so_many(void **state)
{
	static const char *const accounts[] = {"a*", "b*", "c*"};
	const char *of_one[3 * GROUP_TOGETHER_MAX], *of_some[3 * GROUP_TOGETHER_MAX];
	const size_t n = 3 * GROUP_TOGETHER_MAX;

	(void)state;
	for (size_t i = 0; i < n; i++) {
		of_one[i] = "a*";
		of_some[i] = accounts[i % 3];
	}
	assert_int_equal(strlen(pick(of_one, n, true, 512)), GROUP_TOGETHER_MAX);
	assert_int_equal(strlen(pick(of_some, n, true, 512)), GROUP_TOGETHER_MAX);
	for (size_t i = 0; i < n; i++)
		assert_true(i >= GROUP_TOGETHER_MAX || picked[i] == i);
	assert_int_equal(strlen(pick(of_some, n, false, 512)), n); /* a store that runs all by their lines anyway */
	of_some[n - 2] = "a";
	of_some[n - 1] = "d"; /* the others go on, but nobody overtakes one that waits */
	assert_int_equal(strlen(pick(of_some, n, true, 512)), GROUP_TOGETHER_MAX + 1);
	assert_int_equal(picked[GROUP_TOGETHER_MAX], n - 1);
}

/* With a limit it is the user's, and goes with nobody. */
static void what_is_the_users_shares_nothing(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		unit_init(&many[i], 1);
		unit_touch(&many[i], 'a');
		make_serial(&many[i], '+');
		unit_limit(&many[i], 100);
		pending[i] = &many[i];
	}
	assert_int_equal(group_pick(&table, pending, 2, 512, picked), 1);
}

/* 1 waits for a; 2 must not overtake it on b, nor 3 on c, although neither a nor b nor c is in the group twice. */
static void who_waits_blocks_those_behind(void **state)
{
	(void)state;
	assert_string_equal(PICK(true, 512, "a", "ab", "bc", "c", "d"), "04");
}

static void at_most_max(void **state)
{
	(void)state;
	assert_string_equal(PICK(false, 2, "a", "b", "c"), "01");
	assert_string_equal(PICK(true, 2, "a", "a", "b", "c"), "02");
	assert_string_equal(PICK(true, 0, "a"), "");
}

static void a_subject_of_zero_or_below_is_one_like_any_other(void **state)
{
	static const int64_t subjects[] = {0, -1, 0, INT64_MIN, -1, INT64_MAX, INT64_MIN};

	(void)state;
	for (size_t i = 0; i < 7; i++) {
		unit_init(&many[i], 1);
		unit_touch(&many[i], subjects[i]);
		pending[i] = &many[i];
	}
	assert_int_equal(group_pick(&table, pending, 7, 512, picked), 4);
	assert_int_equal(picked[0], 0);
	assert_int_equal(picked[1], 1);
	assert_int_equal(picked[2], 3);
	assert_int_equal(picked[3], 5);
}

/* The same by comparing every pair: the definition, without a table. */
static size_t pick_naively(size_t n, size_t max, size_t naive[])
{
	size_t naive_n = 0;

	for (size_t i = 0; i < n && i < 2 * GROUP_UNITS_MAX && naive_n < max; i++) {
		bool waits = false;

		for (size_t j = 0; j < i; j++)
			waits = waits || unit_touches_same(&many[i], &many[j]);
		if (!waits)
			naive[naive_n++] = i;
	}
	return naive_n;
}

static void far_more_pending_than_a_group_holds(void **state)
{
	static size_t naive[GROUP_UNITS_MAX];
	const size_t n = 3 * GROUP_UNITS_MAX;
	uint64_t seed = 42;

	(void)state;
	for (unsigned subjects = 1; subjects < 100000; subjects *= 7) {
		for (size_t i = 0; i < n; i++) {
			unit_init(&many[i], 1);
			for (int s = 0; s < UNIT_SUBJECTS_MAX; s++) {
				seed = seed * 6364136223846793005u + 1442695040888963407u;
				unit_touch(&many[i], (int64_t)(seed >> 33) % subjects << 22);
			}
			pending[i] = &many[i];
		}
		size_t picked_n = group_pick(&table, pending, n, GROUP_UNITS_MAX, picked);

		assert_int_equal(picked_n, pick_naively(n, GROUP_UNITS_MAX, naive));
		assert_memory_equal(picked, naive, picked_n * sizeof *picked);
		assert_int_equal(group_pick(NULL, pending, n, GROUP_UNITS_MAX, picked), GROUP_UNITS_MAX);
		assert_int_equal(picked[GROUP_UNITS_MAX - 1], GROUP_UNITS_MAX - 1);
	}
}

/* The table is used afresh each time without being cleared: nothing of an earlier round may shine through. */
static void rounds_do_not_see_each_other(void **state)
{
	(void)state;
	for (int round = 0; round < 1000; round++)
		assert_string_equal(PICK(true, 512, "a", "b", "a"), "01");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_unit_of_a_subject),
		cmocka_unit_test(serial_units_share_a_subject),
		cmocka_unit_test(plain_units_may_share_a_subject),
		cmocka_unit_test(units_that_can_be_together_are_so_many),
		cmocka_unit_test(what_is_the_users_shares_nothing),
		cmocka_unit_test(who_waits_blocks_those_behind),
		cmocka_unit_test(at_most_max),
		cmocka_unit_test(a_subject_of_zero_or_below_is_one_like_any_other),
		cmocka_unit_test(far_more_pending_than_a_group_holds),
		cmocka_unit_test(rounds_do_not_see_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
