/* The latch: opened before it is waited for, and while. */
#include "base/latch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct errand {
	struct latch latch;
	int done;
};

static void *run(void *context)
{
	struct errand *errand = context;

	errand->done = 1;
	latch_open(&errand->latch);
	return NULL;
}

static void opened_before(void **state)
{
	struct errand errand = {.done = 0};

	(void)state;
	latch_init(&errand.latch);
	run(&errand);
	latch_wait(&errand.latch);
	assert_int_equal(errand.done, 1);
	latch_wait(&errand.latch); /* it stays open */
	latch_release(&errand.latch);
}

/* Many times, so that the wait comes before the opening as well as after it. */
static void opened_by_another_thread(void **state)
{
	(void)state;
	for (int i = 0; i < 500; i++) {
		struct errand errand = {.done = 0};
		pthread_t thread;

		latch_init(&errand.latch);
		assert_int_equal(pthread_create(&thread, NULL, run, &errand), 0);
		latch_wait(&errand.latch);
		assert_int_equal(errand.done, 1);
		pthread_join(thread, NULL);
		latch_release(&errand.latch);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opened_before),
		cmocka_unit_test(opened_by_another_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
