/* The event loop's parts: letters from many threads, deadlines of one length in order, descriptors that become ready. */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cmocka.h>

#include "wire/loop.h"

#define THREADS 4
#define POSTS 2000

static const struct mono_time never = {INT64_MAX};

/* ---- letters ---- */

struct counter {
	struct letter letter;
	struct loop *loop;
	_Atomic int written;  /* by the posters */
	int seen, deliveries; /* by the loop */
};

static void note(struct letter *letter)
{
	struct counter *counter = CONTAINER_OF(letter, struct counter, letter);

	counter->seen = counter->written;
	counter->deliveries++;
}

static void *post_often(void *data)
{
	struct counter *counter = data;

	for (int i = 0; i < POSTS; i++) {
		counter->written++;
		assert_int_not_equal(mailbox_post(counter->loop->mailbox, &counter->letter), MAILBOX_CLOSED);
	}
	return NULL;
}

/* Whatever was written before a post is seen by a delivery after it, though many posts share one delivery. */
static void no_post_goes_unseen(void **state)
{
	struct loop loop;
	struct counter counter = {.letter = {.deliver = note}, .loop = &loop};
	pthread_t threads[THREADS];

	(void)state;
	assert_int_equal(loop_init(&loop, clock_system(), NULL), HX_OK);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, post_often, &counter), 0);
	while (counter.seen < THREADS * POSTS)
		loop_round(&loop, never);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_in_range(counter.deliveries, 1, THREADS * POSTS);
	while (!mailbox_close(loop.mailbox))
		mailbox_deliver(loop.mailbox);
	assert_int_equal(mailbox_post(loop.mailbox, &counter.letter), MAILBOX_CLOSED);
	loop_release(&loop);
	loop_release(&loop);
}

struct writer {
	struct watch watch;
	struct counter counter;
};

static void post_to_own_loop(struct watch *watch, uint32_t events)
{
	struct writer *writer = CONTAINER_OF(watch, struct writer, watch);

	(void)events;
	assert_int_equal(mailbox_post(writer->counter.loop->mailbox, &writer->counter.letter), MAILBOX_POSTED);
}

/* It is delivered in the same round, and there is no round for a bell. */
static void a_letter_to_ones_own_loop_wakes_nobody(void **state)
{
	struct loop loop;
	struct writer writer = {.watch = {post_to_own_loop},
				.counter = {.letter = {.deliver = note}, .loop = &loop, .written = 1}};
	struct pollfd bell;
	int ends[2];

	(void)state;
	assert_int_equal(loop_init(&loop, clock_system(), NULL), HX_OK);
	assert_int_equal(pipe(ends), 0);
	assert_true(loop_watch(&loop, ends[1], EPOLLOUT, &writer.watch));
	loop_round(&loop, never);
	assert_int_equal(writer.counter.deliveries, 1);
	bell = (struct pollfd){.fd = mailbox_fd(loop.mailbox), .events = POLLIN};
	assert_int_equal(poll(&bell, 1, 0), 0);
	close(ends[0]);
	close(ends[1]);
	loop_release(&loop);
}

static void a_letter_is_in_the_mailbox_once(void **state)
{
	struct mailbox *mailbox = mailbox_new();
	struct counter counter = {.letter = {.deliver = note}};

	(void)state;
	assert_true(mailbox_sleep(mailbox));
	assert_int_equal(mailbox_post(mailbox, &counter.letter), MAILBOX_POSTED);
	assert_int_equal(mailbox_post(mailbox, &counter.letter), MAILBOX_PENDING);
	assert_false(mailbox_sleep(mailbox));
	assert_false(mailbox_close(mailbox));
	assert_int_equal(mailbox_deliver(mailbox), 1);
	assert_int_equal(mailbox_deliver(mailbox), 0);
	assert_int_equal(mailbox_post(mailbox, &counter.letter), MAILBOX_POSTED);
	assert_int_equal(mailbox_deliver(mailbox), 1);
	assert_int_equal(counter.deliveries, 2);
	mailbox_free(mailbox);
}

/* ---- deadlines ---- */

static struct deadline items[3];
static int expired[8], expired_n;

static void note_expired(struct deadline *deadline)
{
	expired[expired_n++] = (int)(deadline - items);
}

static void deadlines_expire_in_their_order(void **state)
{
	struct fake_clock clock;
	struct deadline_queue queue, endless;
	struct loop loop;

	(void)state;
	fake_clock_init(&clock, (struct wall_time){0});
	assert_int_equal(loop_init(&loop, &clock.clock, NULL), HX_OK);
	deadline_queue_init(&queue, 100, note_expired);
	deadline_queue_init(&endless, 0, note_expired);
	loop_add_queue(&loop, &queue);
	loop_add_queue(&loop, &endless);
	deadline_set(&queue, &items[0], loop.now);
	deadline_set(&endless, &items[2], loop.now);
	fake_clock_advance_ms(&clock, 50);
	loop_round(&loop, clock.mono);
	deadline_set(&queue, &items[1], loop.now);
	fake_clock_advance_ms(&clock, 49);
	loop_round(&loop, clock.mono);
	assert_int_equal(expired_n, 0);
	fake_clock_advance_ms(&clock, 1);
	loop_round(&loop, clock.mono);
	assert_int_equal(expired_n, 1);
	assert_int_equal(expired[0], 0);
	deadline_set(&queue, &items[0], loop.now); /* again, after the other */
	fake_clock_advance_ms(&clock, 100);
	loop_round(&loop, clock.mono);
	assert_int_equal(expired_n, 3);
	assert_int_equal(expired[1], 1);
	assert_int_equal(expired[2], 0);
	assert_ptr_equal(deadline_first(&endless), &items[2]);
	deadline_clear(&items[2]);
	deadline_clear(&items[2]);
	assert_null(deadline_first(&endless));
	loop_release(&loop);
}

/* ---- descriptors ---- */

struct ear {
	struct watch watch;
	uint32_t heard;
};

static void hear(struct watch *watch, uint32_t events)
{
	CONTAINER_OF(watch, struct ear, watch)->heard |= events;
}

static void a_watch_is_told_of_its_descriptor(void **state)
{
	struct ear ear = {.watch = {hear}};
	struct loop loop;
	int ends[2];

	(void)state;
	assert_int_equal(loop_init(&loop, clock_system(), NULL), HX_OK);
	assert_int_equal(pipe(ends), 0);
	assert_true(loop_watch(&loop, ends[0], EPOLLIN, &ear.watch));
	loop_round(&loop, loop.now);
	assert_int_equal(ear.heard, 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	loop_round(&loop, never);
	assert_int_equal(ear.heard, EPOLLIN);
	loop_unwatch(&loop, ends[0]);
	ear.heard = 0;
	loop_round(&loop, loop.now);
	assert_int_equal(ear.heard, 0);
	assert_false(loop_watch(&loop, -1, EPOLLIN, &ear.watch));
	close(ends[0]);
	close(ends[1]);
	loop_release(&loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_post_goes_unseen),
		cmocka_unit_test(a_letter_to_ones_own_loop_wakes_nobody),
		cmocka_unit_test(a_letter_is_in_the_mailbox_once),
		cmocka_unit_test(deadlines_expire_in_their_order),
		cmocka_unit_test(a_watch_is_told_of_its_descriptor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
