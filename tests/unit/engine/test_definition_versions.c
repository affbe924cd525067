/* The table of versions: all that fit are found again, nothing else is; what is wanted is noted once. */
#include "engine/definition_versions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define THREADS 2
#define NAMES 100

static struct versions versions;
static int told_n;

static void told(void *context)
{
	*(int *)context += 1;
}

static int set_up(void **state)
{
	(void)state;
	told_n = 0;
	versions_init(&versions, told, &told_n);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	versions_release(&versions);
	return 0;
}

/* VERSIONS_MAX machines: NAMES definitions in as many versions as make it full. */
static struct definition definitions[NAMES];
static struct machine machines[VERSIONS_MAX];

static void make_machines(void)
{
	static char names[NAMES][8];

	for (size_t i = 0; i < VERSIONS_MAX; i++) {
		snprintf(names[i % NAMES], sizeof names[0], "w%zu", i % NAMES);
		definitions[i % NAMES].name = names[i % NAMES];
		machines[i] = (struct machine){.definition = &definitions[i % NAMES],
					       .version = (int64_t)(i / NAMES) + 1};
	}
}

static const struct machine *find(size_t i)
{
	return versions_find(&versions, slice_str(machines[i].definition->name), machines[i].version);
}

static void full_and_all_are_found(void **state)
{
	(void)state;
	make_machines();
	for (size_t i = 0; i < VERSIONS_MAX; i++) {
		assert_null(find(i));
		versions_add(&versions, &machines[i]);
	}
	for (size_t i = 0; i < VERSIONS_MAX; i++)
		assert_ptr_equal(find(i), &machines[i]);
	assert_null(versions_find(&versions, slice_str("w1"), VERSIONS_MAX));
	assert_null(versions_find(&versions, slice_str("w"), 1));
	assert_null(versions_find(&versions, slice_str(""), 1));
}

static void the_first_one_stays(void **state)
{
	struct machine same;

	(void)state;
	make_machines();
	same = machines[0];
	versions_add(&versions, &machines[0]);
	versions_add(&versions, &same);
	assert_ptr_equal(find(0), &machines[0]);
}

/* Readers beside the one that adds: what they find is whole, and what was there once is there for good. */
static atomic_bool adding;

static void *look(void *context)
{
	size_t seen = 0;

	(void)context;
	for (bool last = false; !last;) {
		last = !adding;
		for (size_t i = 0; i < seen; i++)
			assert_ptr_equal(find(i), &machines[i]);
		while (seen < VERSIONS_MAX && find(seen))
			seen++;
	}
	return (void *)seen;
}

static void found_while_others_are_added(void **state)
{
	pthread_t threads[THREADS];

	(void)state;
	make_machines();
	adding = true;
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, look, NULL), 0);
	for (size_t i = 0; i < VERSIONS_MAX; i++)
		versions_add(&versions, &machines[i]);
	adding = false;
	for (size_t i = 0; i < THREADS; i++) {
		void *seen;

		pthread_join(threads[i], &seen);
		assert_int_equal((size_t)seen, VERSIONS_MAX);
	}
}

static void wanted_once(void **state)
{
	struct wanted_version next;

	(void)state;
	assert_false(versions_next(&versions, &next));
	versions_want(&versions, slice_str("order"), 2);
	versions_want(&versions, slice_str("order"), 2);
	versions_want(&versions, slice_str("order"), 3);
	assert_int_equal(told_n, 2);
	assert_true(versions_next(&versions, &next));
	assert_string_equal(next.workflow, "order");
	assert_int_equal(next.version, 2);
	versions_settle(&versions, &next, /* hopeless= */ false);
	assert_true(versions_next(&versions, &next));
	assert_int_equal(next.version, 3);
	versions_settle(&versions, &next, /* hopeless= */ true);
	assert_false(versions_next(&versions, &next));
	versions_want(&versions, slice_str("order"), 3); /* there is no hope for it, and nobody is bothered again */
	assert_int_equal(told_n, 2);
	assert_false(versions_next(&versions, &next));
	versions_want(&versions, slice_str("order"), 2);
	assert_int_equal(told_n, 3);
	assert_true(versions_next(&versions, &next));
}

static void so_many_are_wanted_and_no_more(void **state)
{
	char name[WORKFLOW_NAME_MAX + 2];
	struct wanted_version next;

	(void)state;
	memset(name, 'n', sizeof name);
	versions_want(&versions, slice_of(name, WORKFLOW_NAME_MAX + 1), 1);
	assert_int_equal(told_n, 0);
	for (int64_t i = 0; i < VERSIONS_WANTED_MAX; i++)
		versions_want(&versions, slice_of(name, WORKFLOW_NAME_MAX), i);
	assert_int_equal(told_n, VERSIONS_WANTED_MAX);
	versions_want(&versions, slice_str("one more"), 1);
	assert_int_equal(told_n, VERSIONS_WANTED_MAX);
	for (size_t i = 0; i < VERSIONS_WANTED_MAX; i++) {
		assert_true(versions_next(&versions, &next));
		assert_int_equal(strlen(next.workflow), WORKFLOW_NAME_MAX);
		versions_settle(&versions, &next, /* hopeless= */ false);
	}
	assert_false(versions_next(&versions, &next));
	versions_want(&versions, slice_str("one more"), 1);
	assert_true(versions_next(&versions, &next));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		T(full_and_all_are_found),         T(the_first_one_stays),
		T(found_while_others_are_added),   T(wanted_once),
		T(so_many_are_wanted_and_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
