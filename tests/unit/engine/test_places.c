/* Places that workspaces share: one has half, two have three quarters, and there is one left for whoever comes next. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/places.h"
#include "support/must_hold.h"

static size_t take_all(struct places *places, uint64_t tenant)
{
	size_t n = 0;

	while (places_take(places, tenant))
		n++;
	return n;
}

static void each_takes_half_of_what_is_left(void **state)
{
	struct places places;
	uint64_t full[4];

	(void)state;
	assert_int_equal(places_init(&places, 16), HX_OK);
	assert_int_equal(places_full(&places, full, 4), 0);
	MUST_HOLD(take_all(&places, 1) == 8, "one workspace takes every place");
	assert_int_equal(places_full(&places, full, 4), 1);
	assert_int_equal(full[0], 1);
	assert_int_equal(take_all(&places, 2), 4);
	assert_int_equal(take_all(&places, 3), 2);
	assert_int_equal(take_all(&places, 4), 1);
	assert_int_equal(take_all(&places, 5), 1);
	assert_int_equal(take_all(&places, 6), 0);
	assert_int_equal(places.taken, 16);
	assert_int_equal(places_full(&places, full, 4), 4); /* of five, as many as there is room for */
	places_release(&places);
	places_release(&places);
}

static void what_is_given_back_is_there_again(void **state)
{
	struct places places;

	(void)state;
	assert_int_equal(places_init(&places, 8), HX_OK);
	assert_int_equal(take_all(&places, 1), 4);
	assert_int_equal(take_all(&places, 2), 2);
	for (int i = 0; i < 4; i++)
		places_give_back(&places, 1);
	assert_int_equal(places.held.n, 1); /* who has none is forgotten */
	assert_int_equal(take_all(&places, 2), 2);
	for (int i = 0; i < 4; i++)
		places_give_back(&places, 2);
	assert_int_equal(places.taken, 0);
	assert_int_equal(places.held.n, 0);
	places_release(&places);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_takes_half_of_what_is_left),
		cmocka_unit_test(what_is_given_back_is_there_again),
	};

	ONLY_THE_NAMED(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
