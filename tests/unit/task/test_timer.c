/* The heap of deadlines: random operations against a model that is nothing but a list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "task/timer.h"

#define TIMERS 300
#define STEPS 60000

static uint64_t random_state;

static uint64_t draw(uint64_t below)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (random_state >> 33) % below;
}

/* The model: is it set, and for when? */
struct model {
	bool set[TIMERS];
	int64_t due[TIMERS];
};

static size_t model_count(const struct model *m)
{
	size_t n = 0;

	for (size_t i = 0; i < TIMERS; i++)
		n += m->set[i];
	return n;
}

static int64_t model_first(const struct model *m)
{
	int64_t first = INT64_MAX;

	for (size_t i = 0; i < TIMERS; i++)
		if (m->set[i] && m->due[i] < first)
			first = m->due[i];
	return first;
}

static void assert_agrees(const struct timers *heap, const struct timer timers[], const struct model *m)
{
	struct timer *first = timers_first(heap);

	assert_int_equal(heap->n, model_count(m));
	assert_int_equal(first ? first->due.ns : INT64_MAX, model_first(m));
	for (size_t i = 0; i < TIMERS; i++) {
		assert_int_equal(timers[i].place != 0, m->set[i]);
		if (m->set[i]) {
			assert_ptr_equal(heap->heap[timers[i].place], &timers[i]);
			assert_int_equal(timers[i].due.ns, m->due[i]);
		}
	}
	for (size_t place = 2; place <= heap->n; place++)
		assert_true(heap->heap[place / 2]->due.ns <= heap->heap[place]->due.ns);
}

static void take_all_due(struct timers *heap, struct timer timers[], struct model *m, int64_t now)
{
	int64_t last = INT64_MIN;
	struct timer *timer;

	while ((timer = timers_take_due(heap, (struct mono_time){now}))) {
		size_t i = (size_t)(timer - timers);

		assert_true(m->set[i]);
		assert_true(timer->due.ns <= now);
		assert_true(timer->due.ns >= last); /* in the order of their time */
		last = timer->due.ns;
		m->set[i] = false;
	}
	assert_true(model_first(m) > now); /* and none was left */
}

static void random_operations_agree_with_the_model(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 3; seed++) {
		static struct timer timers[TIMERS];
		struct timers heap = {0};
		struct model m = {0};

		memset(timers, 0, sizeof timers);
		random_state = seed;
		for (int step = 0; step < STEPS; step++) {
			size_t i = draw(TIMERS);
			uint64_t what = draw(100);

			if (what < 60) { /* often equal times: ties must not lose anybody */
				m.due[i] = (int64_t)draw(seed == 1 ? 50 : 100000);
				m.set[i] = true;
				assert_int_equal(timer_set(&heap, &timers[i], (struct mono_time){m.due[i]}), HX_OK);
			} else if (what < 99) {
				timer_cancel(&heap, &timers[i]);
				m.set[i] = false;
			} else {
				take_all_due(&heap, timers, &m, (int64_t)draw(seed == 1 ? 50 : 100000));
			}
			if (step % 97 == 0)
				assert_agrees(&heap, timers, &m);
		}
		assert_agrees(&heap, timers, &m);
		take_all_due(&heap, timers, &m, INT64_MAX - 1);
		assert_int_equal(heap.n, 0);
		timers_release(&heap);
	}
}

static void an_empty_heap_has_nobody_to_call(void **state)
{
	struct timers heap = {0};
	struct timer timer = {0};

	(void)state;
	assert_null(timers_first(&heap));
	assert_null(timers_take_due(&heap, (struct mono_time){INT64_MAX}));
	timer_cancel(&heap, &timer); /* never set */
	timers_release(&heap);
	timers_release(&heap);
}

static void a_timer_is_due_at_its_moment_and_not_before(void **state)
{
	struct timers heap = {0};
	struct timer timer = {0};

	(void)state;
	assert_int_equal(timer_set(&heap, &timer, (struct mono_time){100}), HX_OK);
	assert_null(timers_take_due(&heap, (struct mono_time){99}));
	assert_ptr_equal(timers_take_due(&heap, (struct mono_time){100}), &timer);
	assert_int_equal(timer.place, 0);
	assert_null(timers_take_due(&heap, (struct mono_time){100}));
	timers_release(&heap);
}

static void the_farthest_and_the_nearest_times(void **state)
{
	struct timers heap = {0};
	struct timer timers[3] = {0};

	(void)state;
	assert_int_equal(timer_set(&heap, &timers[0], (struct mono_time){INT64_MAX}), HX_OK);
	assert_int_equal(timer_set(&heap, &timers[1], (struct mono_time){INT64_MIN}), HX_OK);
	assert_int_equal(timer_set(&heap, &timers[2], (struct mono_time){0}), HX_OK);
	assert_ptr_equal(timers_take_due(&heap, (struct mono_time){0}), &timers[1]);
	assert_ptr_equal(timers_take_due(&heap, (struct mono_time){0}), &timers[2]);
	assert_null(timers_take_due(&heap, (struct mono_time){INT64_MAX - 1}));
	timers_release(&heap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_operations_agree_with_the_model),
		cmocka_unit_test(an_empty_heap_has_nobody_to_call),
		cmocka_unit_test(a_timer_is_due_at_its_moment_and_not_before),
		cmocka_unit_test(the_farthest_and_the_nearest_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
