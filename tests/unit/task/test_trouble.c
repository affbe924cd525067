/* What is said of a store that fails, and how often: against a clock that is moved by hand. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "task/trouble.h"

static const struct db_stmt writes = {.name = "writes", .in = "", .out = ""},
			    reads = {.name = "reads", .in = "", .out = ""};

static struct fake_clock fake;
static struct log out;
static struct trouble trouble;
static int ends[2];
static char line[LOG_LINE_BYTES_MAX + 1];

static int set_up(void **state)
{
	(void)state;
	if (pipe2(ends, O_DIRECT | O_NONBLOCK) != 0)
		return -1;
	fake_clock_init(&fake, (struct wall_time){1794721140000});
	log_init(&out, ends[1], LOG_LEVEL_INFO, &fake.clock);
	trouble = (struct trouble){.log = &out, .who = "lane", .number = 3};
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(ends[0]);
	close(ends[1]);
	return 0;
}

/* A group of n units that all begin with this statement and end like this. */
static int64_t touched = 11;

static void note(const struct db_stmt *stmt, size_t n, enum hx_code code, const char *detail)
{
	static struct unit units[4];
	static struct unit_result results[4];
	struct unit *pointers[4];

	for (size_t i = 0; i < n; i++) {
		unit_init(&units[i], /* op= */ 7);
		unit_add(&units[i], UNIT_ANY, stmt, 0, NULL);
		unit_touch(&units[i], touched);
		pointers[i] = &units[i];
		results[i] = (struct unit_result){.verdict = code ? UNIT_FAILED : UNIT_WON};
		if (code == HX_OUTCOME_UNKNOWN)
			results[i].verdict = UNIT_UNKNOWN;
		if (code)
			(void)error_set(&results[i].error, code, "%s", detail);
	}
	trouble_note(&trouble, pointers, results, n, clock_mono(&fake.clock));
}

static void assert_said(const char *text)
{
	ssize_t n = read(ends[0], line, sizeof line - 1);

	line[n > 0 ? n : 0] = '\0';
	if (n <= 0 || !strstr(line, text))
		fail_msg("not said: %s, but: %s", text, line);
}

static void assert_silence(void)
{
	ssize_t n = read(ends[0], line, sizeof line - 1);

	line[n > 0 ? n : 0] = '\0';
	assert_string_equal(line, "");
}

static void test_once_while_it_lasts(void **state)
{
	(void)state;
	note(&writes, 3, HX_STORE_UNAVAILABLE, "disk full");
	assert_said(
		"\"level\":\"error\",\"message\":\"the store fails\",\"lane\":3,\"units\":3,\"statement\":\"writes\","
		"\"code\":\"STORE_UNAVAILABLE\",\"detail\":\"disk full\"");
	for (int i = 0; i < 100; i++) {
		fake_clock_advance_ms(&fake, TROUBLE_FORGET_MS / 2);
		note(&writes, 1, i % 2 ? HX_STORE_UNAVAILABLE : HX_OUTCOME_UNKNOWN, "disk full");
	}
	assert_silence();
	note(&writes, 1, HX_OK, NULL);
	assert_said("\"level\":\"info\",\"message\":\"the store works again\",\"lane\":3,\"units_failed\":103}");
	note(&writes, 1, HX_OK, NULL);
	assert_silence();
	note(&writes, 1, HX_INTERNAL, "disk full");
	assert_said("the store fails");
}

/* With a full disk reads still work. */
static void test_only_what_failed_can_show_that_it_works(void **state)
{
	(void)state;
	note(&writes, 1, HX_STORE_UNAVAILABLE, "disk full");
	assert_said("the store fails");
	note(&reads, 4, HX_OK, NULL);
	assert_silence();
	assert_true(trouble_is_on(&trouble));
	note(&writes, 1, HX_OK, NULL);
	assert_said("the store works again");
	assert_false(trouble_is_on(&trouble));
}

/* A unit that went elsewhere leaves an old result in its place. */
static void test_what_has_left_says_nothing(void **state)
{
	struct unit_result failed = {.verdict = UNIT_FAILED}, won = {.verdict = UNIT_WON};
	struct unit *gone = NULL;

	(void)state;
	(void)error_set(&failed.error, HX_STORE_UNAVAILABLE, "of another batch");
	trouble_note(&trouble, &gone, &failed, 1, clock_mono(&fake.clock));
	assert_silence();
	assert_false(trouble_is_on(&trouble));
	note(&writes, 1, HX_STORE_UNAVAILABLE, "disk full");
	assert_said("the store fails");
	trouble_note(&trouble, &gone, &won, 1, clock_mono(&fake.clock));
	assert_true(trouble_is_on(&trouble));
}

static void test_other_words_and_a_long_silence_are_told(void **state)
{
	(void)state;
	note(&writes, 1, HX_STORE_UNAVAILABLE, "disk full");
	assert_said("disk full");
	note(&writes, 1, HX_STORE_UNAVAILABLE, "disk gone");
	assert_silence();
	fake_clock_advance_ms(&fake, TROUBLE_TELL_MS);
	note(&writes, 1, HX_STORE_UNAVAILABLE, "disk gone");
	assert_said("disk gone");
	fake_clock_advance_ms(&fake, TROUBLE_FORGET_MS - 1);
	note(&writes, 1, HX_STORE_UNAVAILABLE, "disk gone");
	assert_silence();
	fake_clock_advance_ms(&fake, TROUBLE_FORGET_MS);
	note(&writes, 1, HX_STORE_UNAVAILABLE, "disk gone");
	assert_said("disk gone");
}

static void test_the_data_of_a_unit_is_its_own(void **state)
{
	(void)state;
	note(&writes, 1, HX_DATA_ERROR, "not unique");
	assert_said(
		"\"level\":\"warn\",\"message\":\"the store refused one unit of work\",\"lane\":3,\"statement\":\"writes\","
		"\"subject\":\"subject_000000000000b\",\"op\":\"op_0000000000007\",\"code\":\"DATA_ERROR\","
		"\"detail\":\"not unique\",\"unsaid\":0}");
	assert_false(trouble_is_on(&trouble));
	note(&writes, 4, HX_DATA_ERROR, "not unique");
	note(&writes, 4, HX_TOO_LARGE, "of the caller");
	assert_silence();
	fake_clock_advance_ms(&fake, TROUBLE_UNIT_MS);
	note(&writes, 1, HX_CONCURRENCY_ERROR, "locked");
	assert_said("\"detail\":\"locked\",\"unsaid\":4}");
	/* The gate's units touch the hash of a key. */
	touched = -5;
	fake_clock_advance_ms(&fake, TROUBLE_UNIT_MS);
	note(&writes, 1, HX_DATA_ERROR, "not unique");
	assert_said("\"subject\":\"\",\"op\":\"op_0000000000007\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_once_while_it_lasts, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_only_what_failed_can_show_that_it_works, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_has_left_says_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_other_words_and_a_long_silence_are_told, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_data_of_a_unit_is_its_own, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
