/* The inbox: its bounds at the limit and one past it, order, and who is woken out of waiting. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "task/inbox.h"

#define SEATS_MAX 4
#define FOR_EVER INT64_MAX

static const struct lane_stats no_stats;
static struct inbox inbox;
static struct mailbag bag;

static int set_up(void **state)
{
	(void)state;
	inbox_init(&inbox, SEATS_MAX, clock_system(), /* budget_ms= */ 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	inbox_release(&inbox);
	return 0;
}

static bool take(int64_t wait_ns)
{
	return inbox_take(&inbox, wait_ns, &no_stats, &bag);
}

static void put_mail(uint64_t number)
{
	struct mail *mail = calloc(1, sizeof *mail);

	mail->number = number;
	inbox_put_mail(&inbox, mail);
}

static void seats_up_to_the_limit_and_not_one_more(void **state)
{
	struct seat seats[SEATS_MAX + 1];

	(void)state;
	for (int i = 0; i < SEATS_MAX; i++)
		assert_int_equal(inbox_put_seat(&inbox, &seats[i]), HX_OK);
	assert_int_equal(inbox_put_seat(&inbox, &seats[SEATS_MAX]), HX_BUSY);
	assert_true(take(0));
	assert_int_equal(inbox_put_seat(&inbox, &seats[SEATS_MAX]), HX_BUSY); /* taken out, but still in the lane */
	inbox_leave(&inbox);
	assert_int_equal(inbox_put_seat(&inbox, &seats[SEATS_MAX]), HX_OK);
	assert_int_equal(inbox_put_seat(&inbox, &seats[0]), HX_BUSY);
	assert_true(take(0));
	assert_ptr_equal(bag.seats, &seats[SEATS_MAX]);
}

static void what_arrives_leaves_in_order_and_once(void **state)
{
	struct seat seats[3];

	(void)state;
	assert_false(take(0));
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 3; i++) {
			assert_int_equal(inbox_put_seat(&inbox, &seats[i]), HX_OK);
			put_mail((uint64_t)i + 1);
			inbox_put_wakes(&inbox, (const int64_t[]){10 * i, 10 * i + 1}, 2);
		}
		assert_true(take(FOR_EVER));

		struct seat *seat = bag.seats;
		struct mail *mail = bag.mail;

		for (int i = 0; i < 3; i++) {
			struct mail *next = mail->next;

			assert_ptr_equal(seat, &seats[i]);
			assert_int_equal(mail->number, i + 1);
			seat = seat->next;
			free(mail);
			mail = next;
			inbox_leave(&inbox);
		}
		assert_null(seat);
		assert_null(mail);
		assert_int_equal(bag.wakes_n, 6);
		assert_int_equal(bag.wakes[5], 21);
		assert_false(bag.wake_everybody);
		assert_false(bag.stopping);
		assert_false(take(0));
		assert_null(bag.seats);
		assert_null(bag.mail);
		assert_int_equal(bag.wakes_n, 0);
	}
}

static void wakes_up_to_the_limit_and_then_everybody(void **state)
{
	static int64_t topics[WAKES_MAX + 1];

	(void)state;
	for (size_t i = 0; i <= WAKES_MAX; i++)
		topics[i] = (int64_t)i;
	inbox_put_wakes(&inbox, topics, WAKES_MAX);
	assert_true(take(0));
	assert_int_equal(bag.wakes_n, WAKES_MAX);
	assert_int_equal(bag.wakes[WAKES_MAX - 1], WAKES_MAX - 1);
	assert_false(bag.wake_everybody);

	inbox_put_wakes(&inbox, topics, WAKES_MAX);
	inbox_put_wakes(&inbox, topics, 1);
	assert_true(take(0));
	assert_true(bag.wake_everybody);

	inbox_put_wakes(&inbox, topics, WAKES_MAX + 1); /* more at once than there is room for at all */
	assert_true(take(0));
	assert_true(bag.wake_everybody);

	inbox_put_wakes(&inbox, topics, 1); /* and it is not for ever */
	assert_true(take(0));
	assert_false(bag.wake_everybody);
	assert_int_equal(bag.wakes_n, 1);
}

/* Whoever brings one too many hears of it: the lane does not know who waits elsewhere. */
static void offers_up_to_the_limit_and_then_everybody(void **state)
{
	const struct passed_offer offer = {.offer = {7, 1}};

	(void)state;
	for (size_t i = 0; i < OFFERS_MAX; i++)
		assert_true(inbox_put_offer(&inbox, &offer));
	assert_false(inbox_put_offer(&inbox, &offer));
	assert_true(take(0));
	assert_int_equal(bag.offers_n, OFFERS_MAX);
	assert_true(bag.wake_everybody);
	assert_true(inbox_put_offer(&inbox, &offer));
	assert_true(take(0));
	assert_false(bag.wake_everybody);
}

static void after_a_stop_only_beats_and_answers_are_taken(void **state)
{
	struct seat early, late, beat;

	(void)state;
	assert_int_equal(inbox_put_seat(&inbox, &early), HX_OK);
	inbox_stop(&inbox);
	assert_int_equal(inbox_put_seat(&inbox, &late), HX_STOPPING);
	inbox_put_beat(&inbox, &beat);
	put_mail(5);
	assert_true(take(FOR_EVER));
	assert_true(bag.stopping);
	assert_ptr_equal(bag.seats, &early);
	assert_ptr_equal(early.next, &beat);
	assert_null(beat.next);
	assert_int_equal(bag.mail->number, 5);
	free(bag.mail);
	assert_int_equal(inbox_put_seat(&inbox, &late), HX_STOPPING);
}

static void a_beat_is_taken_by_a_full_lane(void **state)
{
	struct seat seats[SEATS_MAX], beat;

	(void)state;
	for (int i = 0; i < SEATS_MAX; i++)
		assert_int_equal(inbox_put_seat(&inbox, &seats[i]), HX_OK);
	inbox_put_beat(&inbox, &beat);
	assert_true(take(0));
	assert_ptr_equal(seats[SEATS_MAX - 1].next, &beat);
}

static void the_nodes_own_are_taken_by_a_full_lane_and_not_by_one_that_ends(void **state)
{
	struct seat seats[SEATS_MAX], own, late;

	(void)state;
	assert_int_equal(inbox_put_own(&inbox, &own), HX_OK);
	for (int i = 0; i < SEATS_MAX; i++) /* it has taken nobody's seat */
		assert_int_equal(inbox_put_seat(&inbox, &seats[i]), HX_OK);
	assert_true(own.own);
	assert_false(seats[0].own);
	assert_true(take(0));
	assert_int_equal(inbox_put_own(&inbox, &own), HX_OK);
	assert_true(take(0));
	assert_ptr_equal(bag.seats, &own);
	inbox_stop(&inbox);
	assert_int_equal(inbox_put_own(&inbox, &late), HX_STOPPING);
}

static void mail_that_nobody_reads_is_freed(void **state)
{
	(void)state;
	put_mail(1);
	put_mail(2); /* AddressSanitizer looks at the end */
}

static void waiting_ends_with_its_time(void **state)
{
	(void)state;
	assert_false(take(/* wait_ns= */ 1));
	assert_false(take(/* wait_ns= */ 2000000));
}

static void nudge(void *seat)
{
	(void)seat;
	inbox_nudge(&inbox);
}

static void stop(void *seat)
{
	(void)seat;
	inbox_stop(&inbox);
}

static void put_seat(void *seat)
{
	assert_int_equal(inbox_put_seat(&inbox, seat), HX_OK);
}

static void put_beat(void *seat)
{
	inbox_put_beat(&inbox, seat);
}

static void put_wake(void *seat)
{
	(void)seat;
	inbox_put_wakes(&inbox, (const int64_t[]){1}, 1);
}

static void put_one_mail(void *seat)
{
	(void)seat;
	put_mail(1);
}

struct visit {
	void (*what)(void *seat);
	struct seat seat;
};

/* Comes when the lane is really asleep. */
static void *visit(void *context)
{
	struct visit *v = context;
	bool waiting = false;

	while (!waiting) {
		pthread_mutex_lock(&inbox.mutex);
		waiting = inbox.waiting;
		pthread_mutex_unlock(&inbox.mutex);
	}
	v->what(&v->seat);
	return NULL;
}

static void whatever_comes_ends_the_waiting(void **state)
{
	void (*const what[])(void *) = {nudge, put_seat, put_beat, put_wake, put_one_mail, stop};

	(void)state;
	for (size_t i = 0; i < sizeof what / sizeof *what; i++) {
		struct visit v = {.what = what[i]};
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, visit, &v), 0);
		assert_true(take(FOR_EVER));
		pthread_join(thread, NULL);
		free(bag.mail);
	}
}

/* A refusal signals too, with nothing to take: the lane must go back to sleep and still hear the next one. */
static void *knock_in_vain_then_come(void *context)
{
	struct visit refused = {.what = NULL}, nudging = {.what = nudge};

	(void)context;
	for (int i = 0; i < 3; i++) {
		bool waiting = false;

		while (!waiting) {
			pthread_mutex_lock(&inbox.mutex);
			waiting = inbox.waiting;
			pthread_mutex_unlock(&inbox.mutex);
		}
		assert_int_equal(inbox_put_seat(&inbox, &refused.seat), HX_BUSY);
	}
	return visit(&nudging);
}

static void a_refusal_does_not_deafen_the_lane(void **state)
{
	struct seat seats[SEATS_MAX];
	pthread_t thread;

	(void)state;
	for (int i = 0; i < SEATS_MAX; i++)
		assert_int_equal(inbox_put_seat(&inbox, &seats[i]), HX_OK);
	assert_true(take(0));
	assert_int_equal(pthread_create(&thread, NULL, knock_in_vain_then_come, NULL), 0);
	assert_true(take(FOR_EVER));
	assert_null(bag.seats);
	pthread_join(thread, NULL);
}

#define INBOX_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		INBOX_TEST(seats_up_to_the_limit_and_not_one_more),
		INBOX_TEST(what_arrives_leaves_in_order_and_once),
		INBOX_TEST(wakes_up_to_the_limit_and_then_everybody),
		INBOX_TEST(offers_up_to_the_limit_and_then_everybody),
		INBOX_TEST(after_a_stop_only_beats_and_answers_are_taken),
		INBOX_TEST(a_beat_is_taken_by_a_full_lane),
		INBOX_TEST(the_nodes_own_are_taken_by_a_full_lane_and_not_by_one_that_ends),
		INBOX_TEST(mail_that_nobody_reads_is_freed),
		INBOX_TEST(waiting_ends_with_its_time),
		INBOX_TEST(whatever_comes_ends_the_waiting),
		INBOX_TEST(a_refusal_does_not_deafen_the_lane),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
