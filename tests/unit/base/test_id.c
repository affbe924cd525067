/* Ids: never twice, ordered by time, one text each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/id.h"

#define YEAR_2026 INT64_C(1794721140000)

static void the_layout_is_time_node_counter(void **state)
{
	struct id_source source;
	const int64_t ms = YEAR_2026 - INT64_C(1704067200000);

	(void)state;
	id_source_init(&source, 5);
	assert_int_equal(id_next(&source, (struct wall_time){YEAR_2026}), ms << 22 | 5 << 12);
	assert_int_equal(id_next(&source, (struct wall_time){YEAR_2026}), ms << 22 | 5 << 12 | 1);
	assert_int_equal(id_next(&source, (struct wall_time){YEAR_2026 + 1}), (ms + 1) << 22 | 5 << 12);
}

static void ids_rise_while_the_clock_stands_or_jumps_back(void **state)
{
	struct id_source source;
	int64_t last = -1;

	(void)state;
	id_source_init(&source, ID_NODE_MAX);
	for (int i = 0; i < 20000; i++) { /* runs through the 4096 ids of a millisecond several times */
		int64_t now = i < 10000 ? YEAR_2026 : i < 15000 ? YEAR_2026 - 86400000 : -5;
		int64_t id = id_next(&source, (struct wall_time){now});

		assert_true(i == 0 || id == last + 1 + (last % ID_COUNTER_N + 1) / ID_COUNTER_N * ID_CARRY);
		assert_int_equal(id >> 12 & 1023, ID_NODE_MAX);
		last = id;
	}
	assert_int_equal(last >> 22, YEAR_2026 - INT64_C(1704067200000) + 19999 / 4096);
}

static void the_earliest_id_is_not_negative(void **state)
{
	struct id_source source;

	(void)state;
	id_source_init(&source, 0);
	assert_int_equal(id_next(&source, (struct wall_time){INT64_MIN}), 1);
	assert_int_equal(id_next(&source, (struct wall_time){0}), 2);
}

static void node_numbers_are_in_range(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++)
		assert_in_range(id_random_node(), 0, ID_NODE_MAX);
}

static void text_sorts_as_the_numbers_and_comes_back(void **state)
{
	static const int64_t ids[] = {0, 5, 31, 32, 1023, INT64_C(1) << 40, INT64_MAX - 1, INT64_MAX};
	char last[ID_TEXT_BYTES] = "";

	(void)state;
	for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
		char text[ID_TEXT_BYTES];
		int64_t back = -1;

		id_format("run", ids[i], text);
		assert_int_equal(strlen(text), 17);
		assert_true(strcmp(last, text) < 0);
		assert_true(id_parse("run", slice_str(text), &back));
		assert_true(back == ids[i]);
		memcpy(last, text, sizeof last);
	}
	assert_string_equal(last, "run_7zzzzzzzzzzzz");
	id_format("run", 5, last);
	assert_string_equal(last, "run_0000000000005");
	id_format("eightchr", INT64_MAX, last); /* the longest prefix */
	assert_string_equal(last, "eightchr_7zzzzzzzzzzzz");
}

static void other_text_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"run",
		"run_",
		"run_000000000005",
		"run_00000000000005",
		"job_0000000000005",
		"run-0000000000005",
		"run_000000000000i",
		"run_000000000000L",
		"run_000000000000u",
		"run_A000000000000",
		"run_8000000000000",
		"run_z000000000000",
		"run_g000000000000",
		"run_000000000000 ",
		" run_000000000005",
		"rum_0000000000005",
		"run_000000000\x80"
		"000",
	};
	int64_t id = 77;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_false(id_parse("run", slice_str(bad[i]), &id));
	assert_false(id_parse("run",
			      slice_of("run_00000000\0"
				       "0005",
				       17),
			      &id));
	assert_false(id_parse("run", slice_of(NULL, 0), &id));
	assert_int_equal(id, 77); /* an output is written only on success */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_layout_is_time_node_counter),
		cmocka_unit_test(ids_rise_while_the_clock_stands_or_jumps_back),
		cmocka_unit_test(the_earliest_id_is_not_negative),
		cmocka_unit_test(node_numbers_are_in_range),
		cmocka_unit_test(text_sorts_as_the_numbers_and_comes_back),
		cmocka_unit_test(other_text_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
