/* The set of ids: at its ceiling and one past it, and against a plain array through many random changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/id_set.h"

static void an_id_is_in_it_once(void **state)
{
	struct id_set set;

	(void)state;
	assert_int_equal(id_set_init(&set, 10), HX_OK);
	assert_false(id_set_has(&set, 7));
	assert_false(id_set_remove(&set, 7));
	assert_true(id_set_add(&set, 7));
	assert_false(id_set_add(&set, 7));
	assert_int_equal(set.n, 1);
	assert_true(id_set_remove(&set, 7));
	assert_false(id_set_remove(&set, 7));
	assert_int_equal(set.n, 0);
	id_set_release(&set);
	id_set_release(&set);
}

static void a_number_goes_along(void **state)
{
	struct id_set set;

	(void)state;
	assert_int_equal(id_set_init(&set, 4), HX_OK);
	assert_null(id_set_along(&set, 7));
	for (int64_t id = 1; id <= 4; id++) {
		assert_true(id_set_add(&set, id));
		assert_int_equal(*id_set_along(&set, id), 0);
		*id_set_along(&set, id) = (uint64_t)id * 10;
	}
	assert_true(id_set_remove(&set, 1)); /* others move into its gap, and take theirs along */
	for (int64_t id = 2; id <= 4; id++)
		assert_int_equal(*id_set_along(&set, id), id * 10);
	assert_true(id_set_add(&set, 1));
	assert_int_equal(*id_set_along(&set, 1), 0);
	id_set_release(&set);
}

static void it_has_a_ceiling(void **state)
{
	enum { MAX = 2048 };
	struct id_set set;

	(void)state;
	assert_int_equal(id_set_init(&set, MAX), HX_OK);
	for (int64_t id = 1; id <= MAX; id++)
		assert_true(id_set_add(&set, id << 12));
	assert_false(id_set_add(&set, -1));
	assert_true(id_set_remove(&set, 5 << 12));
	assert_true(id_set_add(&set, -1));
	assert_false(id_set_add(&set, -2));
	assert_int_equal(set.n, MAX);
	id_set_release(&set);
}

static void taking_empties_it(void **state)
{
	int64_t ids[4], sum = 0;
	struct id_set set;

	(void)state;
	assert_int_equal(id_set_init(&set, 4), HX_OK);
	for (int64_t id = 1; id <= 3; id++)
		assert_true(id_set_add(&set, id * 100));
	assert_int_equal(id_set_take(&set, ids), 3);
	for (size_t i = 0; i < 3; i++)
		sum += ids[i];
	assert_int_equal(sum, 600);
	assert_int_equal(set.n, 0);
	assert_false(id_set_has(&set, 100));
	assert_int_equal(id_set_take(&set, ids), 0);
	id_set_release(&set);
}

/* Few slots and many removals: chains run into each other and round the end. */
static void it_agrees_with_an_array(void **state)
{
	enum { IDS = 40, MAX = 16 };
	bool in[IDS + 1] = {false};
	uint64_t random = 20261115;
	struct id_set set;
	size_t n = 0;

	(void)state;
	assert_int_equal(id_set_init(&set, MAX), HX_OK);
	for (int i = 0; i < 200000; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		int64_t id = 1 + (int64_t)((random >> 33) % IDS);

		if (random >> 63) {
			assert_int_equal(id_set_add(&set, id), !in[id] && n < MAX);
			n += !in[id] && n < MAX ? (in[id] = true) : 0;
		} else {
			assert_int_equal(id_set_remove(&set, id), in[id]);
			n -= in[id];
			in[id] = false;
		}
		assert_int_equal(set.n, n);
		if (i % 64 == 0)
			for (int64_t each = 1; each <= IDS; each++)
				assert_int_equal(id_set_has(&set, each), in[each]);
	}
	id_set_release(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_id_is_in_it_once),     cmocka_unit_test(a_number_goes_along),
		cmocka_unit_test(it_has_a_ceiling),        cmocka_unit_test(taking_empties_it),
		cmocka_unit_test(it_agrees_with_an_array),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
