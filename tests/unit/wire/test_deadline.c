/* Queues of deadlines: of one length, and of several. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "wire/deadline.h"

static void assert_order(const struct deadline_queue *queue, struct deadline *const expected[], size_t n)
{
	const struct deadline *at = queue->ends.next;

	for (size_t i = 0; i < n; i++, at = at->next) {
		assert_ptr_equal(at, expected[i]);
		assert_ptr_equal(at->next->previous, at);
	}
	assert_ptr_equal(at, &queue->ends);
}

static void one_length_is_first_come_first_due(void **state)
{
	struct deadline a = {0}, b = {0};
	struct deadline_queue queue;

	(void)state;
	deadline_queue_init(&queue, 10, NULL);
	assert_null(deadline_first(&queue));
	deadline_set(&queue, &a, (struct mono_time){0});
	deadline_set(&queue, &b, (struct mono_time){1});
	assert_order(&queue, (struct deadline *[]){&a, &b}, 2);
	deadline_set(&queue, &a, (struct mono_time){2});
	assert_order(&queue, (struct deadline *[]){&b, &a}, 2);
	deadline_clear(&b);
	deadline_clear(&b);
	assert_order(&queue, (struct deadline *[]){&a}, 1);
	assert_int_equal(a.at.ns, 10000002);
}

static void several_lengths_are_kept_in_order(void **state)
{
	struct deadline a = {0}, b = {0}, c = {0}, d = {0};
	struct deadline_queue queue;

	(void)state;
	deadline_queue_init(&queue, 1, NULL);
	deadline_set_at(&queue, &a, (struct mono_time){50});
	deadline_set_at(&queue, &b, (struct mono_time){10});
	deadline_set_at(&queue, &c, (struct mono_time){30});
	deadline_set_at(&queue, &d, (struct mono_time){30}); /* equal ones as they came */
	assert_order(&queue, (struct deadline *[]){&b, &c, &d, &a}, 4);
	deadline_set_at(&queue, &b, (struct mono_time){60});
	assert_order(&queue, (struct deadline *[]){&c, &d, &a, &b}, 4);
	deadline_set_at(&queue, &b, (struct mono_time){60}); /* to where it is */
	deadline_set_at(&queue, &a, (struct mono_time){5});
	assert_order(&queue, (struct deadline *[]){&a, &c, &d, &b}, 4);
	assert_int_equal(a.at.ns, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_length_is_first_come_first_due),
		cmocka_unit_test(several_lengths_are_kept_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
