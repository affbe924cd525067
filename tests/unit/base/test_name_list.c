/* Sorting names where they lie: order, stability, duplicates, and no quadratic input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/name_list.h"

static struct name_link *list_of(struct name_link *links, size_t n)
{
	for (size_t i = 0; i < n; i++)
		links[i].next = i + 1 < n ? &links[i + 1] : NULL;
	return n ? links : NULL;
}

static void empty_and_single(void **state)
{
	struct name_link one = {slice_str("a"), NULL};

	(void)state;
	assert_null(name_list_sort(NULL));
	assert_null(name_list_duplicate(NULL));
	assert_ptr_equal(name_list_sort(&one), &one);
	assert_null(one.next);
	assert_null(name_list_duplicate(&one));
}

/* Equal names must keep their order: the addresses within one array tell it. */
static void sorted_and_stable_for_every_length(void **state)
{
	static struct name_link links[300];
	static char names[300][4];
	unsigned random = 1;

	(void)state;
	for (size_t n = 0; n <= 300; n++) {
		for (size_t i = 0; i < n; i++) {
			random = random * 1103515245 + 12345;
			snprintf(names[i], sizeof names[i], "%u", (random >> 16) % 40);
			links[i].name = slice_str(names[i]);
		}

		struct name_link *at = name_list_sort(list_of(links, n));
		size_t seen = at ? 1 : 0;

		for (; at && at->next; at = at->next, seen++) {
			int order = slice_compare(at->name, at->next->name);

			assert_true(order < 0 || (order == 0 && at < at->next));
		}
		assert_int_equal(seen, n);
	}
}

static void a_duplicate_is_found_wherever_it_stands(void **state)
{
	struct name_link links[5];

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		for (size_t j = i + 1; j < 5; j++) {
			static const char *const names[] = {"e", "", "long name", "d", "a"};

			for (size_t k = 0; k < 5; k++)
				links[k].name = slice_str(names[k]);
			assert_null(name_list_duplicate(name_list_sort(list_of(links, 5))));
			links[j].name = links[i].name;
			assert_ptr_equal(name_list_duplicate(name_list_sort(list_of(links, 5))), &links[i]);
			assert_ptr_equal(links[i].next, &links[j]);
		}
	}
}

/* Rising, falling, and all with one long beginning: quadratic behaviour would not end within the test's time. */
static void patterns_that_break_lesser_sorts(void **state)
{
	enum { COUNT = 200000, WIDTH = 40 };
	struct name_link *links = malloc(COUNT * sizeof *links);
	char *names = malloc((size_t)COUNT * WIDTH);

	(void)state;
	assert_true(links && names);
	for (int pattern = 0; pattern < 3; pattern++) {
		for (int i = 0; i < COUNT; i++) {
			int value = pattern == 0 ? i : pattern == 1 ? COUNT - i : (i ^ 0x5555) % COUNT;

			snprintf(names + (size_t)i * WIDTH, WIDTH, "the-same-long-beginning-%010d", value);
			links[i].name = slice_str(names + (size_t)i * WIDTH);
		}

		struct name_link *at = name_list_sort(list_of(links, COUNT));
		size_t seen = 1;

		for (; at->next; at = at->next, seen++)
			assert_true(slice_compare(at->name, at->next->name) <= 0);
		assert_int_equal(seen, COUNT);
	}
	free(names);
	free(links);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_and_single),
		cmocka_unit_test(sorted_and_stable_for_every_length),
		cmocka_unit_test(a_duplicate_is_found_wherever_it_stands),
		cmocka_unit_test(patterns_that_break_lesser_sorts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
