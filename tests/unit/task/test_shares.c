/* The places aside, shared out between workspaces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "task/shares.h"

#define TRIES 4
#define LONGS 3

struct scene {
	struct shares shares;
	struct errand errands[64];
	size_t n;
};

static int setup(void **state)
{
	static struct scene scene;

	memset(&scene, 0, sizeof scene);
	shares_init(&scene.shares, TRIES, LONGS);
	*state = &scene;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	for (struct share *share = s->shares.first, *next; share; share = next) {
		next = share->next;
		if (share != &s->shares.ours)
			free(share);
	}
	return 0;
}

static struct errand *add(struct scene *s, uint64_t tenant, enum errand_go go)
{
	struct errand *errand = &s->errands[s->n];

	errand->unit.tenant = tenant;
	errand->go = go;
	errand->came.ns = (int64_t)++s->n;
	shares_add(&s->shares, errand);
	return errand;
}

static void add_many(struct scene *s, uint64_t tenant, enum errand_go go, size_t n)
{
	while (n--)
		(void)add(s, tenant, go);
}

/* Takes the first errand of whoever is next. NULL: nobody. */
static struct share *begin(struct scene *s, enum place place)
{
	struct share *share = shares_next(&s->shares, place);

	if (!share)
		return NULL;
	shares_begin(&s->shares, share, place);
	(void)shares_cut(&s->shares, share, place, &share->lines[place].first);
	return share;
}

static uint64_t next_tenant(struct scene *s, enum place place)
{
	struct share *share = begin(s, place);

	assert_non_null(share);
	return share->tenant;
}

static void nobody_takes_all_places(void **state)
{
	struct scene *s = *state;

	add_many(s, 7, ERRAND_TOGETHER, 10);
	add_many(s, 7, ERRAND_LONG, 10);
	assert_int_equal(next_tenant(s, PLACE_TRY), 7);
	assert_int_equal(next_tenant(s, PLACE_TRY), 7);
	assert_null(begin(s, PLACE_TRY));
	assert_int_equal(next_tenant(s, PLACE_LONG), 7); /* these are counted for themselves */
	assert_int_equal(next_tenant(s, PLACE_LONG), 7);
	assert_null(begin(s, PLACE_LONG));
	/* Two of them leave a place for a third. */
	add_many(s, 8, ERRAND_ALONE, 10);
	assert_int_equal(next_tenant(s, PLACE_TRY), 8);
	assert_null(begin(s, PLACE_TRY));
	(void)add(s, 9, ERRAND_TOGETHER);
	assert_int_equal(next_tenant(s, PLACE_TRY), 9);
	(void)add(s, 10, ERRAND_TOGETHER); /* all are taken */
	assert_null(begin(s, PLACE_TRY));
}

static void who_holds_the_fewest_is_next_and_then_in_turn(void **state)
{
	struct scene *s = *state;
	struct share *first;

	add_many(s, 7, ERRAND_TOGETHER, 10);
	first = begin(s, PLACE_TRY);
	add_many(s, 8, ERRAND_TOGETHER, 10);
	add_many(s, 9, ERRAND_TOGETHER, 10);
	assert_int_equal(next_tenant(s, PLACE_TRY), 8);
	assert_int_equal(next_tenant(s, PLACE_TRY), 9);
	assert_null(begin(s, PLACE_TRY)); /* each has one, and one is free */
	shares_end(&s->shares, first, PLACE_TRY);
	assert_int_equal(next_tenant(s, PLACE_TRY), 7);
	assert_null(begin(s, PLACE_TRY));
}

static void turns_go_round(void **state)
{
	struct scene *s = *state;

	add_many(s, 7, ERRAND_TOGETHER, 3);
	add_many(s, 8, ERRAND_TOGETHER, 3);
	for (int i = 0; i < 3; i++)
		for (uint64_t tenant = 7; tenant <= 8; tenant++) {
			struct share *share = begin(s, PLACE_TRY);

			assert_non_null(share);
			assert_int_equal(share->tenant, tenant);
			shares_end(&s->shares, share, PLACE_TRY);
		}
	assert_null(begin(s, PLACE_TRY));
	assert_ptr_equal(s->shares.first, &s->shares.ours); /* nothing is left of the others */
	assert_null(s->shares.ours.next);
	assert_int_equal(s->shares.free[PLACE_TRY], TRIES);
}

static void what_is_cut_out_leaves_the_line_whole(void **state)
{
	struct scene *s = *state;
	struct errand *a = add(s, 7, ERRAND_TOGETHER), *b = add(s, 7, ERRAND_TOGETHER), *c = add(s, 7, ERRAND_TOGETHER);
	struct share *share = shares_next(&s->shares, PLACE_TRY);
	struct errand_line *line = &share->lines[PLACE_TRY];

	shares_begin(&s->shares, share, PLACE_TRY);
	assert_ptr_equal(shares_cut(&s->shares, share, PLACE_TRY, &b->next), c); /* the last */
	assert_ptr_equal(shares_cut(&s->shares, share, PLACE_TRY, &a->next), b);
	shares_add(&s->shares, c);
	assert_ptr_equal(line->first, a);
	assert_ptr_equal(a->next, c);
	assert_null(c->next);
	assert_int_equal(s->shares.waiting[PLACE_TRY], 2);
	assert_ptr_equal(shares_cut_older(&s->shares, PLACE_TRY, a->came), a);
	assert_null(shares_cut_older(&s->shares, PLACE_TRY, a->came));
	assert_ptr_equal(shares_cut_older(&s->shares, PLACE_TRY, c->came), c);
	shares_end(&s->shares, share, PLACE_TRY);
}

static void the_old_are_found_whosever_they_are(void **state)
{
	struct scene *s = *state;
	struct errand *ours = add(s, 0, ERRAND_LONG), *theirs = add(s, 7, ERRAND_LONG);

	(void)add(s, 7, ERRAND_TOGETHER);
	assert_ptr_equal(shares_cut_older(&s->shares, PLACE_LONG, theirs->came), ours);
	assert_ptr_equal(shares_cut_older(&s->shares, PLACE_LONG, theirs->came), theirs);
	assert_null(shares_cut_older(&s->shares, PLACE_LONG, theirs->came));
	assert_int_equal(next_tenant(s, PLACE_TRY), 7); /* its share is still there for this one */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nobody_takes_all_places, setup, teardown),
		cmocka_unit_test_setup_teardown(who_holds_the_fewest_is_next_and_then_in_turn, setup, teardown),
		cmocka_unit_test_setup_teardown(turns_go_round, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_cut_out_leaves_the_line_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(the_old_are_found_whosever_they_are, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
