/* The table of run versions: all that fit are found again, nothing else is; what is wanted is noted once. */
#include "engine/run_versions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define THREADS 2
#define NAMES 100

static struct run_versions versions;
static int told_n;

static void told(void *context)
{
	*(int *)context += 1;
}

static int set_up(void **state)
{
	(void)state;
	told_n = 0;
	run_versions_init(&versions, told, &told_n);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	run_versions_release(&versions);
	return 0;
}

/* RUN_VERSIONS_MAX machines: NAMES definitions in as many versions as make it full. */
static struct run_definition definitions[NAMES];
static struct run_machine machines[RUN_VERSIONS_MAX];

static void make_machines(void)
{
	static char names[NAMES][8];

	for (size_t i = 0; i < RUN_VERSIONS_MAX; i++) {
		snprintf(names[i % NAMES], sizeof names[0], "w%zu", i % NAMES);
		definitions[i % NAMES].name = names[i % NAMES];
		machines[i] = (struct run_machine){&definitions[i % NAMES], (int64_t)(i / NAMES) + 1, NULL};
	}
}

static const struct run_machine *find(size_t i)
{
	return run_versions_find(&versions, slice_str(machines[i].definition->name), machines[i].version);
}

static void full_and_all_are_found(void **state)
{
	(void)state;
	make_machines();
	for (size_t i = 0; i < RUN_VERSIONS_MAX; i++) {
		assert_null(find(i));
		run_versions_add(&versions, &machines[i]);
	}
	for (size_t i = 0; i < RUN_VERSIONS_MAX; i++)
		assert_ptr_equal(find(i), &machines[i]);
	assert_null(run_versions_find(&versions, slice_str("w1"), RUN_VERSIONS_MAX));
	assert_null(run_versions_find(&versions, slice_str("w"), 1));
	assert_null(run_versions_find(&versions, slice_str(""), 1));
}

static void the_first_one_stays(void **state)
{
	struct run_machine same;

	(void)state;
	make_machines();
	same = machines[0];
	run_versions_add(&versions, &machines[0]);
	run_versions_add(&versions, &same);
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
		while (seen < RUN_VERSIONS_MAX && find(seen))
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
	for (size_t i = 0; i < RUN_VERSIONS_MAX; i++)
		run_versions_add(&versions, &machines[i]);
	adding = false;
	for (size_t i = 0; i < THREADS; i++) {
		void *seen;

		pthread_join(threads[i], &seen);
		assert_int_equal((size_t)seen, RUN_VERSIONS_MAX);
	}
}

static void wanted_once(void **state)
{
	struct run_version next;

	(void)state;
	assert_false(run_versions_next(&versions, &next));
	run_versions_want(&versions, slice_str("order"), 2);
	run_versions_want(&versions, slice_str("order"), 2);
	run_versions_want(&versions, slice_str("order"), 3);
	assert_int_equal(told_n, 2);
	assert_true(run_versions_next(&versions, &next));
	assert_string_equal(next.workflow, "order");
	assert_int_equal(next.version, 2);
	run_versions_settle(&versions, &next, /* hopeless= */ false);
	assert_true(run_versions_next(&versions, &next));
	assert_int_equal(next.version, 3);
	run_versions_settle(&versions, &next, /* hopeless= */ true);
	assert_false(run_versions_next(&versions, &next));
	run_versions_want(&versions, slice_str("order"), 3); /* there is no hope for it, and nobody is bothered again */
	assert_int_equal(told_n, 2);
	assert_false(run_versions_next(&versions, &next));
	run_versions_want(&versions, slice_str("order"), 2);
	assert_int_equal(told_n, 3);
	assert_true(run_versions_next(&versions, &next));
}

static void so_many_are_wanted_and_no_more(void **state)
{
	char name[WORKFLOW_NAME_MAX + 2];
	struct run_version next;

	(void)state;
	memset(name, 'n', sizeof name);
	run_versions_want(&versions, slice_of(name, WORKFLOW_NAME_MAX + 1), 1);
	assert_int_equal(told_n, 0);
	for (int64_t i = 0; i < RUN_VERSIONS_WANTED_MAX; i++)
		run_versions_want(&versions, slice_of(name, WORKFLOW_NAME_MAX), i);
	assert_int_equal(told_n, RUN_VERSIONS_WANTED_MAX);
	run_versions_want(&versions, slice_str("one more"), 1);
	assert_int_equal(told_n, RUN_VERSIONS_WANTED_MAX);
	for (size_t i = 0; i < RUN_VERSIONS_WANTED_MAX; i++) {
		assert_true(run_versions_next(&versions, &next));
		assert_int_equal(strlen(next.workflow), WORKFLOW_NAME_MAX);
		run_versions_settle(&versions, &next, /* hopeless= */ false);
	}
	assert_false(run_versions_next(&versions, &next));
	run_versions_want(&versions, slice_str("one more"), 1);
	assert_true(run_versions_next(&versions, &next));
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
