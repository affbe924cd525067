/* The memory store at its limits, with a clock that stands still. What all stores do alike is in tests/contract. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gate/entry_store.h"

#define LOCKS_MAX 100
#define TTL_MS 1000

struct caller {
	struct entry_ticket ticket;
	enum hx_code code;
	int taken, released;
};

static struct fake_clock fake;
static struct entry_locks *locks;
static struct caller callers[LOCKS_MAX + 1];

static void note_taken(struct entry_ticket *ticket, enum hx_code code)
{
	((struct caller *)ticket)->code = code;
	((struct caller *)ticket)->taken++;
}

static void note_released(struct entry_ticket *ticket)
{
	((struct caller *)ticket)->released++;
}

static int set_up(void **state)
{
	(void)state;
	memset(callers, 0, sizeof callers);
	fake_clock_init(&fake, (struct wall_time){1000000});
	return entry_memory_new(LOCKS_MAX, &fake.clock, &locks, /* err= */ NULL);
}

static int tear_down(void **state)
{
	(void)state;
	entry_locks_free(locks);
	return 0;
}

/* Answered before it returns. */
static enum hx_code take(size_t caller, size_t entity, int64_t ttl_ms)
{
	char text[24];
	struct entry_key key = {.entity = slice_of(text, (size_t)snprintf(text, sizeof text, "%zu", entity))};
	struct caller *c = &callers[caller];
	int before = c->taken;

	c->ticket.taken = note_taken;
	c->ticket.released = note_released;
	entry_lock_take(locks, &c->ticket, &key, ttl_ms);
	assert_int_equal(c->taken, before + 1);
	return c->code;
}

static void release(size_t caller)
{
	int before = callers[caller].released;

	entry_lock_release(&callers[caller].ticket);
	assert_int_equal(callers[caller].released, before + 1);
}

static void fill(int64_t ttl_ms)
{
	for (size_t i = 0; i < LOCKS_MAX; i++)
		assert_int_equal(take(i, i, ttl_ms), HX_OK);
}

static void full_is_said_and_a_release_makes_room(void **state)
{
	(void)state;
	fill(TTL_MS);
	assert_int_equal(take(LOCKS_MAX, LOCKS_MAX, TTL_MS), HX_STORE_UNAVAILABLE);
	release(LOCKS_MAX);
	assert_int_equal(take(LOCKS_MAX, 5, TTL_MS), HX_ENTRY_LOCKED); /* known ones are still known */
	release(LOCKS_MAX);
	release(7);
	assert_int_equal(take(LOCKS_MAX, LOCKS_MAX, TTL_MS), HX_OK);
	assert_int_equal(take(7, 7, TTL_MS), HX_STORE_UNAVAILABLE);
	release(7);
}

static void expired_ones_make_room(void **state)
{
	(void)state;
	for (size_t i = 0; i < LOCKS_MAX; i++)
		assert_int_equal(take(i, i, i == 42 ? TTL_MS : 2 * TTL_MS), HX_OK);
	fake_clock_advance_ms(&fake, TTL_MS - 1);
	assert_int_equal(take(LOCKS_MAX, LOCKS_MAX, TTL_MS), HX_STORE_UNAVAILABLE);
	release(LOCKS_MAX);
	fake_clock_advance_ms(&fake, 1);
	assert_int_equal(take(LOCKS_MAX, LOCKS_MAX, 2 * TTL_MS), HX_OK); /* in the place of 42 */
	release(42);                                                     /* too late, touches nothing */
	assert_int_equal(take(42, LOCKS_MAX, TTL_MS), HX_ENTRY_LOCKED);
	release(42);
	assert_int_equal(take(42, 42, TTL_MS), HX_STORE_UNAVAILABLE);
	release(42);
	for (size_t i = 0; i < LOCKS_MAX; i++)
		if (i != 42)
			release(i);
	release(LOCKS_MAX);
	fill(TTL_MS); /* no slot was lost */
	assert_int_equal(take(LOCKS_MAX, LOCKS_MAX, TTL_MS), HX_STORE_UNAVAILABLE);
}

/* The earliest end was released: the next walk finds nothing and learns the new one. */
static void a_walk_in_vain_is_followed_by_a_good_one(void **state)
{
	(void)state;
	fill(3 * TTL_MS);
	release(3);
	assert_int_equal(take(3, 3, TTL_MS), HX_OK);
	release(3);
	assert_int_equal(take(3, 3, 2 * TTL_MS), HX_OK);
	fake_clock_advance_ms(&fake, TTL_MS);
	assert_int_equal(take(LOCKS_MAX, LOCKS_MAX, TTL_MS), HX_STORE_UNAVAILABLE);
	release(LOCKS_MAX);
	fake_clock_advance_ms(&fake, TTL_MS);
	assert_int_equal(take(LOCKS_MAX, LOCKS_MAX, TTL_MS), HX_OK);
}

static void a_lock_ends_at_its_millisecond(void **state)
{
	(void)state;
	assert_int_equal(take(0, 7, TTL_MS), HX_OK);
	fake_clock_advance_ms(&fake, TTL_MS - 1);
	assert_int_equal(take(1, 7, TTL_MS), HX_ENTRY_LOCKED);
	release(1);
	fake_clock_advance_ms(&fake, 1);
	assert_int_equal(take(1, 7, TTL_MS), HX_OK);
	release(0);
	assert_int_equal(take(2, 7, TTL_MS), HX_ENTRY_LOCKED);
	release(2);
	release(1);
	assert_int_equal(take(2, 7, TTL_MS), HX_OK);
}

static void the_longest_time_is_no_overflow(void **state)
{
	(void)state;
	assert_int_equal(take(0, 7, INT64_C(100000) * 24 * 60 * 60 * 1000), HX_OK);
	assert_int_equal(take(1, 7, 1), HX_ENTRY_LOCKED);
}

static void tokens_and_names_are_hex_and_new(void **state)
{
	char token[ENTRY_TOKEN_BYTES];

	(void)state;
	assert_int_equal(take(0, 7, TTL_MS), HX_OK);
	assert_int_equal(strspn(callers[0].ticket.lock.token, "0123456789abcdef"), 32);
	assert_int_equal(strlen(callers[0].ticket.lock.token), 32);
	assert_int_equal(strspn(callers[0].ticket.lock.name, "0123456789abcdef"), 64);
	memcpy(token, callers[0].ticket.lock.token, sizeof token);
	release(0);
	assert_int_equal(take(0, 7, TTL_MS), HX_OK);
	assert_string_not_equal(token, callers[0].ticket.lock.token);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(full_is_said_and_a_release_makes_room),    TEST(expired_ones_make_room),
		TEST(a_walk_in_vain_is_followed_by_a_good_one), TEST(a_lock_ends_at_its_millisecond),
		TEST(the_longest_time_is_no_overflow),          TEST(tokens_and_names_are_hex_and_new),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
