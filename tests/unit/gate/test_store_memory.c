/* The memory store at its ceilings, with a clock that stands still. What all stores do alike is in tests/contract. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gate/replay.h"
#include "support/gate_asker.h"

#define RECORDS_MAX 100
#define BYTES_MAX 10000
#define LABEL_BYTES (sizeof "key" - 1 + sizeof "POST /payments" - 1)
#define RESERVE_BYTES GATE_RESPONSE_BYTES_MIN
#define LEASE_MS 100
#define TTL_MS 1000

static struct fake_clock fake;
static struct gate_store *store;
static char body[BYTES_MAX + 1];

static int set_up(void **state)
{
	(void)state;
	fake_clock_init(&fake, (struct wall_time){1000000});
	return gate_memory_new(RECORDS_MAX, BYTES_MAX, &fake.clock, &store, /* err= */ NULL);
}

static int tear_down(void **state)
{
	(void)state;
	gate_store_free(store);
	return 0;
}

static enum gate_verdict acquire(const struct hx_gate_claim *claim)
{
	return hear_acquire(store, claim, /* ret_heard= */ NULL);
}

static enum gate_verdict others_hear(const struct hx_gate_claim *claim)
{
	struct hx_gate_claim another = claim_by_another(claim);

	return acquire(&another);
}

static enum gate_verdict complete(const struct hx_gate_claim *claim, size_t bytes)
{
	return hear_complete(store, claim, slice_of(body, bytes));
}

/* ---- the number of records ---- */

static void fill(struct hx_gate_claim claims[RECORDS_MAX], int64_t ttl_ms)
{
	for (unsigned i = 0; i < RECORDS_MAX; i++) {
		claims[i] = claim_of(i, 0, LEASE_MS, ttl_ms);
		assert_int_equal(acquire(&claims[i]), GATE_ACQUIRED);
	}
}

static void full_is_said_and_a_removal_makes_room(void **state)
{
	struct hx_gate_claim claims[RECORDS_MAX], more = claim_of(RECORDS_MAX, 0, LEASE_MS, TTL_MS);

	(void)state;
	fill(claims, TTL_MS);
	assert_int_equal(acquire(&more), GATE_UNAVAILABLE);
	assert_int_equal(others_hear(&claims[5]), GATE_IN_FLIGHT); /* known ones are still known */
	assert_int_equal(complete(&more, 1), GATE_STALE);
	assert_int_equal(complete(&claims[5], 1), GATE_DONE);
	assert_int_equal(others_hear(&claims[5]), GATE_COMPLETED);
	assert_int_equal(acquire(&more), GATE_UNAVAILABLE); /* and nothing is thrown out */
	assert_int_equal(hear_remove(store, &claims[7]), GATE_DONE);
	assert_int_equal(acquire(&more), GATE_ACQUIRED);
	assert_int_equal(acquire(&claims[7]), GATE_UNAVAILABLE);
}

/* A takeover needs no room. */
static void full_or_not_a_lease_is_taken_over(void **state)
{
	struct hx_gate_claim claims[RECORDS_MAX];

	(void)state;
	fill(claims, TTL_MS);
	fake_clock_advance_ms(&fake, LEASE_MS);
	assert_int_equal(others_hear(&claims[42]), GATE_ACQUIRED);
}

static void expired_ones_make_room_held_ones_never(void **state)
{
	struct hx_gate_claim more[2] = {claim_of(1000, 0, LEASE_MS, TTL_MS), claim_of(1001, 0, LEASE_MS, TTL_MS)};

	(void)state;
	for (unsigned i = 0; i < RECORDS_MAX; i++) {
		struct hx_gate_claim claim = claim_of(i, 0, LEASE_MS, i == 42 ? TTL_MS : 2 * TTL_MS);

		claim.hold = i == 43;
		assert_int_equal(acquire(&claim), GATE_ACQUIRED);
	}
	fake_clock_advance_ms(&fake, LEASE_MS + TTL_MS - 1);
	assert_int_equal(acquire(&more[0]), GATE_UNAVAILABLE);
	fake_clock_advance_ms(&fake, 1);
	assert_int_equal(acquire(&more[0]), GATE_ACQUIRED); /* in the place of 42 */
	assert_int_equal(acquire(&more[1]), GATE_UNAVAILABLE);
	fake_clock_advance_ms(&fake, 10 * TTL_MS);
	assert_int_equal(hear_sweep(store, 1000, 0), RECORDS_MAX - 1); /* all but the one that holds */
	assert_int_equal(hear_sweep(store, 1000, 0), 0);
}

/* Whatever order they were made, completed and removed in: as many find room as have ended, and not one more. */
static void no_end_is_missed(void **state)
{
	uint64_t seed = 7;
	int64_t ends[RECORDS_MAX];

	(void)state;
	for (unsigned round = 0; round < 50; round++) {
		struct hx_gate_claim claims[RECORDS_MAX];
		int64_t now_ms = 0;
		size_t room = 0, found = 0;

		for (unsigned i = 0; i < RECORDS_MAX; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			claims[i] = claim_of(round * 1000 + i, 0, 1 + (seed >> 40) % 200, 1 + (seed >> 50) % 200);
			assert_int_equal(acquire(&claims[i]), GATE_ACQUIRED);
			ends[i] = claims[i].lease_ms + claims[i].ttl_ms;
		}
		for (unsigned i = 0; i < RECORDS_MAX; i += 3) {
			claims[i].ttl_ms = 1 + (ends[i] * 7 + i) % 300;
			assert_int_equal(complete(&claims[i], i % 5), GATE_DONE);
			ends[i] = claims[i].ttl_ms;
		}
		for (unsigned i = 1; i < RECORDS_MAX; i += 5) {
			bool completed = i % 3 == 0;

			assert_int_equal(hear_remove(store, &claims[i]), completed ? GATE_STALE : GATE_DONE);
			ends[i] = completed ? ends[i] : 0;
		}
		now_ms = (int64_t)(seed >> 33) % 400;
		fake_clock_advance_ms(&fake, now_ms);
		for (unsigned i = 0; i < RECORDS_MAX; i++)
			room += ends[i] <= now_ms;
		for (unsigned i = 0; i < RECORDS_MAX; i++) {
			struct hx_gate_claim more = claim_of(round * 1000 + 500 + i, 0, 1, 1);

			found += acquire(&more) == GATE_ACQUIRED;
		}
		assert_int_equal(found, room);
		fake_clock_advance_ms(&fake, 10000);
		assert_int_equal(hear_sweep(store, 1000, 0), RECORDS_MAX);
	}
}

/* ---- the bytes ---- */

static void a_response_may_fill_it_to_the_last_byte(void **state)
{
	struct hx_gate_claim claim = claim_of(1, 0, LEASE_MS, TTL_MS), other = claim_of(2, 0, LEASE_MS, TTL_MS);
	struct heard heard;

	(void)state;
	assert_int_equal(acquire(&claim), GATE_ACQUIRED);
	assert_int_equal(complete(&claim, BYTES_MAX - LABEL_BYTES + 1), GATE_UNAVAILABLE);
	assert_int_equal(others_hear(&claim), GATE_IN_FLIGHT); /* as before: storing may be tried again */
	assert_int_equal(complete(&claim, BYTES_MAX - LABEL_BYTES), GATE_DONE);
	assert_int_equal(hear_acquire(store, &claim, &heard), GATE_COMPLETED);
	assert_true(heard_is(&heard, slice_of(body, BYTES_MAX - LABEL_BYTES)));
	assert_int_equal(acquire(&other), GATE_UNAVAILABLE); /* no room for its name */
	fake_clock_advance_ms(&fake, TTL_MS);
	assert_int_equal(acquire(&other), GATE_ACQUIRED);
	assert_int_equal(complete(&other, BYTES_MAX - LABEL_BYTES), GATE_DONE);
}

static void bytes_come_back_however_a_record_ends(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		struct hx_gate_claim claim = claim_of(i, 0, LEASE_MS, TTL_MS);
		struct gate_ask forget = ask_of(GATE_FORGET, &claim);

		assert_int_equal(acquire(&claim), GATE_ACQUIRED);
		if (i % 4 != 3)
			assert_int_equal(complete(&claim, BYTES_MAX - LABEL_BYTES), GATE_DONE);
		if (i % 4 == 0)
			assert_int_equal(hear(store, &forget, /* ret_heard= */ NULL), GATE_DONE);
		if (i % 4 == 1)
			fake_clock_advance_ms(&fake, TTL_MS);
		if (i % 4 == 2) {
			fake_clock_advance_ms(&fake, TTL_MS);
			assert_int_equal(hear_sweep(store, 1, 0), 1);
		}
		if (i % 4 == 3)
			assert_int_equal(hear_remove(store, &claim), GATE_DONE);
	}
}

/* A reader in its done() keeps what it reads, and the room of it, when the record goes meanwhile. */
static struct hx_gate_claim read_claim;
static bool was_read;

static void forget_while_reading(struct gate_ticket *ticket)
{
	struct gate_ask forget = ask_of(GATE_FORGET, &read_claim);
	struct hx_gate_claim other = claim_of(2, 0, LEASE_MS, TTL_MS);

	assert_int_equal(ticket->reply.verdict, GATE_COMPLETED);
	assert_int_equal(hear(store, &forget, /* ret_heard= */ NULL), GATE_DONE);
	assert_int_equal(acquire(&other), GATE_ACQUIRED);
	assert_int_equal(complete(&other, BYTES_MAX / 2), GATE_UNAVAILABLE);
	assert_memory_equal(ticket->reply.response.p, body, BYTES_MAX - 100);
	was_read = true;
}

static void what_is_being_read_stays(void **state)
{
	struct gate_ticket ticket = {.done = forget_while_reading};
	struct hx_gate_claim other = claim_of(3, 0, LEASE_MS, TTL_MS);

	(void)state;
	read_claim = claim_of(1, 0, LEASE_MS, TTL_MS);
	assert_int_equal(acquire(&read_claim), GATE_ACQUIRED);
	assert_int_equal(complete(&read_claim, BYTES_MAX - 100), GATE_DONE);
	ticket.ask = ask_of(GATE_ACQUIRE, &read_claim);
	gate_ask(store, &ticket);
	assert_true(was_read);
	assert_int_equal(acquire(&other), GATE_ACQUIRED);
	assert_int_equal(complete(&other, BYTES_MAX / 2), GATE_DONE);
}

static void names_count_and_long_ones_are_cut(void **state)
{
	struct hx_gate_claim claim = claim_of(1, 0, LEASE_MS, TTL_MS);
	struct gate_ask ask = ask_of(GATE_ACQUIRE, &claim);
	struct heard heard;

	(void)state;
	ask.endpoint = slice_of(body, BYTES_MAX);
	ask.key_text = slice_of(body, BYTES_MAX - GATE_ENDPOINT_BYTES_MAX - RESERVE_BYTES + 1);
	assert_int_equal(hear(store, &ask, &heard), GATE_UNAVAILABLE);
	ask.key_text.n--;
	assert_int_equal(hear(store, &ask, &heard), GATE_ACQUIRED);
	assert_int_equal(complete(&claim, RESERVE_BYTES + 1), GATE_UNAVAILABLE);
	assert_int_equal(complete(&claim, RESERVE_BYTES), GATE_DONE);
}

static void stored_form(const struct gate_response *response, struct strbuf *ret_stored)
{
	strbuf_init(ret_stored, 2 * BYTES_MAX);
	gate_response_encode(response, ret_stored);
	assert_false(ret_stored->failed);
}

/* Whoever was let in can leave word that it was done: nobody is let in for it again. */
static void what_is_done_is_known_though_its_body_has_no_room(void **state)
{
	static const struct gate_field field = {{"x-a", 3}, {"b", 1}};
	struct hx_gate_claim large = claim_of(1, 0, LEASE_MS, TTL_MS), claims[RECORDS_MAX];
	struct strbuf whole, bodiless;
	size_t n = 0;
	struct heard heard;

	(void)state;
	stored_form(&(struct gate_response){.status = 201, .fields_n = 1, .fields = &field, .body = {body, BYTES_MAX}},
		    &whole);
	stored_form(&(struct gate_response){.status = 201, .body_missing = true}, &bodiless);
	assert_int_equal(bodiless.n, RESERVE_BYTES);
	assert_int_equal(acquire(&large), GATE_ACQUIRED);
	assert_int_equal(complete(&large, BYTES_MAX - 10 * (LABEL_BYTES + RESERVE_BYTES) - LABEL_BYTES), GATE_DONE);
	for (claims[0] = claim_of(10, 0, LEASE_MS, TTL_MS); acquire(&claims[n]) == GATE_ACQUIRED; n++)
		claims[n + 1] = claim_of(10 + (unsigned)n + 1, 0, LEASE_MS, TTL_MS);
	assert_int_equal(n, 10); /* to the last byte */
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(hear_complete(store, &claims[i], strbuf_slice(&whole)), GATE_DONE);
		assert_int_equal(hear_complete(store, &claims[i], strbuf_slice(&whole)), GATE_DONE);
	}
	fake_clock_advance_ms(&fake, TTL_MS - 1);
	for (size_t i = 0; i < n; i++) {
		struct hx_gate_claim another = claim_by_another(&claims[i]);

		assert_int_equal(hear_acquire(store, &another, &heard), GATE_COMPLETED);
		assert_true(heard_is(&heard, strbuf_slice(&bodiless)));
	}
	assert_int_equal(acquire(&claims[n]), GATE_UNAVAILABLE);
	fake_clock_advance_ms(&fake, 1);
	assert_int_equal(acquire(&claims[n]), GATE_ACQUIRED); /* and all of the room has come back */
	assert_int_equal(complete(&claims[n], BYTES_MAX - LABEL_BYTES), GATE_DONE);
	strbuf_release(&whole);
	strbuf_release(&bodiless);
}

/* ---- time ---- */

static void the_longest_times_are_no_overflow(void **state)
{
	struct hx_gate_claim claim = claim_of(1, 0, INT64_MAX, INT64_MAX), done = claim_of(2, 0, 1, INT64_MAX);
	struct heard heard;

	(void)state;
	assert_int_equal(acquire(&claim), GATE_ACQUIRED);
	assert_int_equal(acquire(&done), GATE_ACQUIRED);
	assert_int_equal(complete(&done, 1), GATE_DONE);
	fake_clock_advance_ms(&fake, TTL_MS);
	claim = claim_by_another(&claim);
	assert_int_equal(hear_acquire(store, &claim, &heard), GATE_IN_FLIGHT);
	assert_true(heard.reply.lease_left_ms > 0);
	assert_int_equal(others_hear(&done), GATE_COMPLETED);
	assert_int_equal(hear_sweep(store, 10, 0), 0);
}

/* The machine's clock may be set; leases are measured. */
static void a_clock_that_is_set_ends_nothing(void **state)
{
	struct hx_gate_claim claim = claim_of(1, 0, LEASE_MS, TTL_MS);
	struct heard heard;

	(void)state;
	assert_int_equal(hear_acquire(store, &claim, &heard), GATE_ACQUIRED);
	assert_int_equal(heard.reply.created_ms, 1000000);
	fake.wall.ms += 1000 * TTL_MS;
	assert_int_equal(others_hear(&claim), GATE_IN_FLIGHT);
	fake.wall.ms = 5;
	fake_clock_advance_ms(&fake, LEASE_MS);
	claim = claim_by_another(&claim);
	assert_int_equal(hear_acquire(store, &claim, &heard), GATE_ACQUIRED);
	assert_int_equal(heard.reply.created_ms, 1000000);
}

/* What all stores have: until when there may be records that version 0.1 wrote. */
static void older_records_are_looked_for_as_long_as_they_may_live(void **state)
{
	(void)state;
	assert_false(gate_store_has_old(store));
	gate_store_note_old(store);
	assert_true(gate_store_has_old(store));
	fake_clock_advance_ms(&fake, INT64_C(24) * 60 * 60 * 1000 + 60000); /* as long as the API's live at most */
	assert_true(gate_store_has_old(store));
	fake_clock_advance_ms(&fake, GATE_OLD_MS);
	assert_false(gate_store_has_old(store));
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(full_is_said_and_a_removal_makes_room),
		TEST(full_or_not_a_lease_is_taken_over),
		TEST(expired_ones_make_room_held_ones_never),
		TEST(no_end_is_missed),
		TEST(a_response_may_fill_it_to_the_last_byte),
		TEST(bytes_come_back_however_a_record_ends),
		TEST(what_is_being_read_stays),
		TEST(names_count_and_long_ones_are_cut),
		TEST(what_is_done_is_known_though_its_body_has_no_room),
		TEST(the_longest_times_are_no_overflow),
		TEST(a_clock_that_is_set_ends_nothing),
		TEST(older_records_are_looked_for_as_long_as_they_may_live),
	};

	memset(body, 'x', sizeof body);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
