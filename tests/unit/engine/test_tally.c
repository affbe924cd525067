/* tally.c: every end is counted, under its workflow's name as long as there is room for names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "engine/tally.h"

#define WORKFLOWS (TALLY_WORKFLOWS_MAX + 50)

static void what_has_no_line_of_its_own_is_among_the_others(void **state)
{
	static struct tally tally;
	struct tally_line line;
	uint64_t sum = 0;
	size_t n = 0;
	char name[20];

	(void)state;
	tally_init(&tally);
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < WORKFLOWS; i++) {
			snprintf(name, sizeof name, "w%d", i);
			tally_add(&tally, name, "FAILED");
			tally_add(&tally, name, "RUNNING"); /* no end */
		}
	for (; tally_read(&tally, n, &line); n++) {
		sum += line.counts[TALLY_FAILED];
		assert_int_equal(line.counts[TALLY_COMPLETED] + line.counts[TALLY_CANCELLED], 0);
		assert_int_equal(line.counts[TALLY_FAILED], n < TALLY_WORKFLOWS_MAX ? 2 : 100);
	}
	assert_string_equal(line.workflow, "(others)");
	assert_int_equal(n, TALLY_WORKFLOWS_MAX + 1);
	assert_int_equal(sum, 2 * WORKFLOWS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(what_has_no_line_of_its_own_is_among_the_others)};

	return cmocka_run_group_tests_name("tally", tests, NULL, NULL);
}
