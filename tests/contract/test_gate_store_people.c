/*
 * The contract of gate/store.h, the same for every store: memory, SQLite, PostgreSQL, Redis, and one of a user's own
 * (support/user_store.h). Where a store can be shared, two services stand for two gates. Here: what people
 * look for, forget, and resolve.
 */
#include "gate_stores.h"

/* ---- for people ---- */

#define ALIKE 11
#define OTHERS 20

static struct gate_ask acquire_as(const struct hx_gate_claim *claim, const char *key_text, const char *endpoint)
{
	struct gate_ask ask = ask_of(GATE_ACQUIRE, claim);

	ask.key_text = slice_str(key_text);
	ask.endpoint = slice_str(endpoint);
	return ask;
}

/* All that is seen, slice by slice; what is seen twice counts once. Returns how many. */
static size_t look(struct place *p, const char *key_text, int64_t budget, struct gate_sight *ret_sights, size_t max)
{
	struct gate_ask ask = {.op = GATE_LOOK, .key_text = slice_str(key_text), .budget = budget};
	size_t n = 0;

	do {
		assert_int_equal(hear(node_of(p, 1), &ask, &heard), GATE_DONE);
		for (size_t i = 0; i < heard.reply.sights_n; i++) {
			size_t at = 0;

			while (at < n && memcmp(ret_sights[at].key, heard.reply.sights[i].key, HX_GATE_KEY_BYTES) != 0)
				at++;
			assert_true(at < max);
			assert_true(at == n || p->kind == PLACE_REDIS); /* SCAN may show one twice */
			ret_sights[at] = heard.reply.sights[i];
			n += at == n;
		}
		ask.after = heard.reply.next;
	} while (ask.after);
	return n;
}

static const struct gate_sight *sight_of(const struct gate_sight *sights, size_t n, const struct hx_gate_claim *claim)
{
	for (size_t i = 0; i < n; i++)
		if (memcmp(sights[i].key, claim->key, HX_GATE_KEY_BYTES) == 0)
			return &sights[i];
	fail_msg("a record is not seen");
	return NULL;
}

static void records_are_found_by_the_key_of_the_client(void **state)
{
	struct place *p = *state;
	struct hx_gate_claim claims[ALIKE + OTHERS];
	struct gate_sight sights[ALIKE + OTHERS];
	char endpoint[GATE_ENDPOINT_BYTES_MAX + 100];

	memset(endpoint, 'x', sizeof endpoint);
	endpoint[sizeof endpoint - 1] = '\0';
	for (unsigned i = 0; i < ALIKE + OTHERS; i++) {
		struct gate_ask ask;

		claims[i] = claim_of(i, 0, LONG_MS, i == 0 ? 1 : LONG_MS);
		ask = acquire_as(&claims[i], i < ALIKE ? "8e03" : "8e03x", i == 1 ? endpoint : "POST /orders");
		assert_int_equal(hear(node_of(p, 0), &ask, &heard), GATE_ACQUIRED);
	}
	assert_int_equal(COMPLETE(0, &claims[0], "expired"), GATE_DONE);
	assert_int_equal(COMPLETE(0, &claims[1], "12345"), GATE_DONE);
	pass_ms(p, 1);
	for (int64_t budget = 1; budget < 200; budget = budget * 3 + 1) {
		const struct gate_sight *sight;

		assert_int_equal(look(p, "8e03", budget, sights, ALIKE), ALIKE - 1);
		sight = sight_of(sights, ALIKE - 1, &claims[1]);
		assert_int_equal(sight->state, GATE_COMPLETED);
		assert_int_equal(sight->response_bytes, 5);
		assert_int_equal(strlen(sight->endpoint), GATE_ENDPOINT_BYTES_MAX);
		sight = sight_of(sights, ALIKE - 1, &claims[2]);
		assert_int_equal(sight->state, GATE_IN_FLIGHT);
		assert_int_equal(sight->response_bytes, 0);
		assert_true(sight->lease_left_ms > 0 && sight->lease_left_ms <= LONG_MS);
		assert_true(sight->created_ms > 0);
		assert_string_equal(sight->endpoint, "POST /orders");
		assert_memory_equal(sight->token, claims[2].token, HX_GATE_TOKEN_BYTES);
		assert_int_equal(look(p, "8e0", budget, sights, 0), 0);
	}
	assert_int_equal(look(p, "8e03x", 7, sights, OTHERS), OTHERS);
}

static void without_a_key_those_are_found_that_nobody_works_on(void **state)
{
	struct place *p = *state;
	struct hx_gate_claim held = claim_of(1, 0, SHORT_MS, LONG_MS), lapsed = claim_of(2, 0, SHORT_MS, LONG_MS);
	struct hx_gate_claim working = claim_of(3, 0, LONG_MS, LONG_MS), done = claim_of(4, 0, SHORT_MS, LONG_MS);
	struct gate_sight sights[2];

	held.hold = 1;
	assert_int_equal(ACQUIRE(0, &held), GATE_ACQUIRED);
	assert_int_equal(ACQUIRE(0, &lapsed), GATE_ACQUIRED);
	assert_int_equal(ACQUIRE(0, &working), GATE_ACQUIRED);
	assert_int_equal(ACQUIRE(0, &done), GATE_ACQUIRED);
	assert_int_equal(COMPLETE(0, &done, "done"), GATE_DONE);
	pass_ms(p, SHORT_MS);
	assert_int_equal(look(p, "", 3, sights, 2), 2);
	assert_int_equal(sight_of(sights, 2, &held)->state, GATE_HELD);
	assert_int_equal(sight_of(sights, 2, &held)->lease_left_ms, 0);
	assert_int_equal(sight_of(sights, 2, &lapsed)->state, GATE_IN_FLIGHT);
	assert_int_equal(sight_of(sights, 2, &lapsed)->lease_left_ms, 0);
}

/* What a person has seen may have changed hands since, or may not be over. */
static void only_what_was_seen_is_forgotten(void **state)
{
	struct place *p = *state;
	struct hx_gate_claim a = claim_of(1, 0, SHORT_MS, LONG_MS), b = claim_by_another(&a);
	struct gate_ask forget_a = ask_of(GATE_FORGET, &a), forget_b = ask_of(GATE_FORGET, &b);

	b.lease_ms = LONG_MS;
	assert_int_equal(hear(node_of(p, 0), &forget_a, &heard), GATE_ABSENT);
	assert_int_equal(ACQUIRE(0, &a), GATE_ACQUIRED);
	pass_ms(p, SHORT_MS);
	assert_int_equal(ACQUIRE(0, &b), GATE_ACQUIRED);
	assert_int_equal(hear(node_of(p, 1), &forget_a, &heard), GATE_STALE);
	assert_int_equal(hear(node_of(p, 1), &forget_b, &heard), GATE_IN_FLIGHT);
	assert_true(heard.reply.lease_left_ms > 0 && heard.reply.lease_left_ms <= LONG_MS);
	assert_int_equal(COMPLETE(0, &b, "by b"), GATE_DONE);
	assert_int_equal(hear(node_of(p, 1), &forget_a, &heard), GATE_STALE);
	assert_int_equal(others_hear(p, 0, &a), GATE_COMPLETED);
	assert_int_equal(hear(node_of(p, 1), &forget_b, &heard), GATE_DONE);
	assert_int_equal(hear(node_of(p, 0), &forget_b, &heard), GATE_ABSENT);
	assert_int_equal(strangers_hear(p, 0, &a), GATE_ACQUIRED);
}

/* ---- what a person has found out ---- */

static struct gate_ask resolve_of(const struct hx_gate_claim *claim, const char *response)
{
	struct gate_ask ask = ask_of(GATE_RESOLVE, claim);

	ask.response = slice_str(response);
	memset(ask.resolver, 'r', sizeof ask.resolver);
	return ask;
}

static void only_what_nobody_works_on_is_resolved(void **state)
{
	struct place *p = *state;
	struct hx_gate_claim held = claim_of(1, 0, WORK_MS, LONG_MS), stranger = claim_by_another(&held);
	struct gate_ask done = resolve_of(&held, "done"), not_done = resolve_of(&held, ""), other;

	held.hold = 1;
	other = resolve_of(&stranger, "");
	assert_int_equal(hear(node_of(p, 1), &not_done, &heard), GATE_ABSENT);
	assert_int_equal(ACQUIRE(0, &held), GATE_ACQUIRED);
	assert_int_equal(hear(node_of(p, 1), &done, &heard), GATE_IN_FLIGHT);
	assert_true(heard.reply.lease_left_ms > 0);
	assert_int_equal(hear(node_of(p, 1), &not_done, &heard), GATE_IN_FLIGHT);
	pass_ms(p, WORK_MS);
	assert_int_equal(others_hear(p, 0, &held), GATE_HELD);
	assert_int_equal(hear(node_of(p, 1), &other, &heard), GATE_STALE);
	assert_int_equal(others_hear(p, 0, &held), GATE_HELD);
	assert_int_equal(hear(node_of(p, 1), &not_done, &heard), GATE_DONE);
	assert_int_equal(others_hear(p, 0, &held), GATE_ACQUIRED);
}

static void what_was_done_is_never_executed(void **state)
{
	struct place *p = *state;
	struct hx_gate_claim held = claim_of(1, 0, SHORT_MS, LONG_MS);
	struct gate_ask done = resolve_of(&held, "done"), not_done = resolve_of(&held, "");

	held.hold = 1;
	assert_int_equal(ACQUIRE(0, &held), GATE_ACQUIRED);
	pass_ms(p, SHORT_MS);
	assert_int_equal(hear(node_of(p, 1), &done, &heard), GATE_DONE);
	if (p->kind != PLACE_MEMORY) /* whose answers are never lost */
		assert_int_equal(hear(node_of(p, 1), &done, &heard), GATE_DONE);
	assert_int_equal(hear(node_of(p, 1), &not_done, &heard), GATE_STALE);
	assert_int_equal(COMPLETE(0, &held, "late"), GATE_STALE); /* its holder comes after all */
	assert_int_equal(others_hear(p, 0, &held), GATE_COMPLETED);
	assert_true(heard_is(&heard, slice_str("done")));
}

static void what_is_held_is_counted_and_listed(void **state)
{
	struct place *p = *state;
	struct gate_ask tally = {.op = GATE_TALLY}, list = {.op = GATE_LOOK, .sought = GATE_SEEK_HELD, .budget = 100};
	struct hx_gate_claim held[5], lapsed = claim_of(90, 0, SHORT_MS, LONG_MS);
	struct gate_ask resolve;
	size_t seen = 0;

	assert_int_equal(hear(node_of(p, 1), &tally, &heard), GATE_DONE);
	assert_int_equal(heard.reply.held, 0);
	assert_int_equal(ACQUIRE(0, &lapsed), GATE_ACQUIRED);
	for (unsigned i = 0; i < 5; i++) {
		held[i] = claim_of(i, 0, SHORT_MS, LONG_MS);
		held[i].hold = 1;
		assert_int_equal(ACQUIRE(0, &held[i]), GATE_ACQUIRED);
	}
	assert_int_equal(COMPLETE(0, &held[4], "in time"), GATE_DONE);
	assert_int_equal(hear(node_of(p, 1), &tally, &heard), GATE_DONE);
	assert_true(heard.reply.held == 0 || p->real_time); /* not before the lease is over */
	pass_ms(p, SHORT_MS);
	assert_int_equal(hear(node_of(p, 1), &tally, &heard), GATE_DONE);
	assert_int_equal(heard.reply.held, 4);
	assert_int_equal(heard.reply.sights_n, GATE_SIGHTS_MAX);
	assert_string_equal(heard.reply.sights[0].key_text, "key");
	do {
		assert_int_equal(hear(node_of(p, 1), &list, &heard), GATE_DONE);
		for (size_t i = 0; i < heard.reply.sights_n; i++)
			assert_int_equal(heard.reply.sights[i].state, GATE_HELD);
		seen += heard.reply.sights_n;
		list.after = heard.reply.next;
	} while (list.after);
	assert_int_equal(seen, 4);
	resolve = resolve_of(&held[0], "");
	assert_int_equal(hear(node_of(p, 1), &resolve, &heard), GATE_DONE);
	resolve = resolve_of(&held[1], "done");
	assert_int_equal(hear(node_of(p, 1), &resolve, &heard), GATE_DONE);
	resolve = ask_of(GATE_FORGET, &held[2]);
	assert_int_equal(hear(node_of(p, 1), &resolve, &heard), GATE_DONE);
	assert_int_equal(hear(node_of(p, 1), &tally, &heard), GATE_DONE);
	assert_int_equal(heard.reply.held, 1);
}

/* Not for a user's own: its table has nothing for people. */
static struct CMUnitTest for_people[] = {
	TEST(records_are_found_by_the_key_of_the_client),
	TEST(without_a_key_those_are_found_that_nobody_works_on),
	TEST(only_what_was_seen_is_forgotten),
	TEST(only_what_nobody_works_on_is_resolved),
	TEST(what_was_done_is_never_executed),
	TEST(what_is_held_is_counted_and_listed),
};

int main(void)
{
	return run_on_every_store(for_people, sizeof for_people / sizeof *for_people, /* users_own= */ false);
}
