/*
 * The contract of gate/store.h, the same for every store: memory, SQLite, PostgreSQL, Redis, and one of a user's own
 * (support/user_store.h). Where a store can be shared, two services stand for two gates. Here one ask comes
 * after the other; crowds, servers that are down, and what is there for people have files of their own.
 */
#include "gate_stores.h"

#define BODY_BYTES_MAX (1u << 20)

/* ---- one after the other ---- */

static void the_response_is_replayed_byte_for_byte(void **state)
{
	static const size_t sizes[] = {0, 1, 255, 4096, 65537, BODY_BYTES_MAX};
	struct place *p = *state;
	char *body = malloc(BODY_BYTES_MAX);
	uint64_t noise = 1;

	/* All bytes there are, the two ends of a protocol's line among them. */
	for (size_t i = 0; i < BODY_BYTES_MAX; i++, noise = noise * 6364136223846793005u + 1442695040888963407u)
		body[i] = i < 255 ? (char)i : (char)(noise >> 56);
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct hx_gate_claim claim = claim_of(i, 0, LONG_MS, LONG_MS);

		assert_int_equal(ACQUIRE(0, &claim), GATE_ACQUIRED);
		assert_int_equal(hear_complete(node_of(p, 0), &claim, slice_of(body, sizes[i])), GATE_DONE);
		for (size_t node = 0; node < 2; node++) {
			assert_int_equal(others_hear(p, node, &claim), GATE_COMPLETED);
			assert_true(heard_is(&heard, slice_of(body, sizes[i])));
		}
		assert_int_equal(ACQUIRE(0, &claim), GATE_COMPLETED); /* its own holder, once more */
		assert_true(heard_is(&heard, slice_of(body, sizes[i])));
	}
	free(body);
}

static void keys_do_not_meet(void **state)
{
	struct place *p = *state;
	struct hx_gate_claim one = claim_of(1, 0, LONG_MS, LONG_MS), other = one, last = one;

	other.key[HX_GATE_KEY_BYTES - 1] ^= 1;
	last.key[0] ^= 1;
	assert_int_equal(ACQUIRE(0, &one), GATE_ACQUIRED);
	assert_int_equal(ACQUIRE(0, &other), GATE_ACQUIRED);
	assert_int_equal(COMPLETE(0, &other, "other"), GATE_DONE);
	assert_int_equal(others_hear(p, 1, &one), GATE_IN_FLIGHT);
	assert_int_equal(ACQUIRE(1, &last), GATE_ACQUIRED);
	assert_int_equal(REMOVE(1, &last), GATE_DONE);
	assert_int_equal(others_hear(p, 0, &other), GATE_COMPLETED);
	assert_int_equal(others_hear(p, 0, &one), GATE_IN_FLIGHT);
}

static void mismatch_beats_every_state(void **state)
{
	struct place *p = *state;
	struct hx_gate_claim claim = claim_of(1, 0, LONG_MS, LONG_MS), lapsed = claim_of(2, 0, SHORT_MS, LONG_MS);
	struct hx_gate_claim held = claim_of(3, 0, SHORT_MS, LONG_MS);

	held.hold = 1;
	assert_int_equal(ACQUIRE(0, &claim), GATE_ACQUIRED);
	assert_int_equal(ACQUIRE(0, &lapsed), GATE_ACQUIRED);
	assert_int_equal(ACQUIRE(0, &held), GATE_ACQUIRED);
	assert_int_equal(strangers_hear(p, 1, &claim), GATE_MISMATCHED);
	assert_int_equal(others_hear(p, 1, &claim), GATE_IN_FLIGHT);
	assert_int_equal(COMPLETE(0, &claim, "first"), GATE_DONE);
	assert_int_equal(strangers_hear(p, 1, &claim), GATE_MISMATCHED);
	pass_ms(p, SHORT_MS);
	assert_int_equal(strangers_hear(p, 1, &lapsed), GATE_MISMATCHED); /* no takeover by another request */
	assert_int_equal(strangers_hear(p, 1, &held), GATE_MISMATCHED);
	assert_int_equal(others_hear(p, 1, &claim), GATE_COMPLETED);
	assert_true(heard_is(&heard, slice_str("first")));
	assert_int_equal(others_hear(p, 1, &lapsed), GATE_ACQUIRED);
	assert_int_equal(others_hear(p, 1, &held), GATE_HELD);
}

static void within_the_lease_it_is_in_flight(void **state)
{
	struct place *p = *state;
	struct hx_gate_claim claim = claim_of(1, 0, LONG_MS, LONG_MS);

	assert_int_equal(ACQUIRE(0, &claim), GATE_ACQUIRED);
	for (size_t node = 0; node < 2; node++) {
		assert_int_equal(others_hear(p, node, &claim), GATE_IN_FLIGHT);
		assert_true(heard.reply.lease_left_ms > 0 && heard.reply.lease_left_ms <= LONG_MS);
	}
	if (p->real_time)
		return;
	pass_ms(p, LONG_MS - 1);
	assert_int_equal(others_hear(p, 0, &claim), GATE_IN_FLIGHT);
	assert_int_equal(heard.reply.lease_left_ms, 1);
	pass_ms(p, 1);
	assert_int_equal(others_hear(p, 0, &claim), GATE_ACQUIRED);
}

/* Whatever the state of a record, a stranger is told when it was made. */
static int64_t created_of(struct place *p, size_t node, const struct hx_gate_claim *claim)
{
	assert_int_equal(strangers_hear(p, node, claim), GATE_MISMATCHED);
	return heard.reply.created_ms;
}

static void a_stale_holder_changes_nothing(void **state)
{
	struct place *p = *state;
	struct hx_gate_claim a = claim_of(1, 0, SHORT_MS, LONG_MS), b = claim_by_another(&a);
	int64_t created_ms, left_ms;

	b.lease_ms = LONG_MS;
	assert_int_equal(ACQUIRE(0, &a), GATE_ACQUIRED);
	created_ms = created_of(p, 0, &a);
	pass_ms(p, SHORT_MS);
	assert_int_equal(ACQUIRE(1, &b), GATE_ACQUIRED);
	assert_int_equal(created_of(p, 1, &a), created_ms);
	assert_int_equal(others_hear(p, 0, &a), GATE_IN_FLIGHT);
	left_ms = heard.reply.lease_left_ms;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(COMPLETE(0, &a, "late"), GATE_STALE);
		assert_int_equal(REMOVE(0, &a), GATE_STALE);
	}
	assert_int_equal(ACQUIRE(0, &a), GATE_IN_FLIGHT); /* no way back either */
	assert_int_equal(others_hear(p, 0, &a), GATE_IN_FLIGHT);
	assert_true(heard.reply.lease_left_ms <= left_ms && heard.reply.lease_left_ms > LONG_MS - ASKER_AWAIT_MS);

	assert_int_equal(COMPLETE(1, &b, "by b"), GATE_DONE); /* its token is still the one */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(COMPLETE(0, &a, "late"), GATE_STALE);
		assert_int_equal(REMOVE(0, &a), GATE_STALE);
		assert_int_equal(ACQUIRE(0, &a), GATE_COMPLETED);
		assert_true(heard_is(&heard, slice_str("by b")));
		assert_int_equal(others_hear(p, (size_t)i, &a), GATE_COMPLETED);
		assert_true(heard_is(&heard, slice_str("by b")));
		assert_int_equal(heard.reply.created_ms, created_ms);
	}
}

/* Late is not stale: while nobody has taken it over, it is still the holder's. */
static void a_late_holder_may_complete(void **state)
{
	struct place *p = *state;
	struct hx_gate_claim claim = claim_of(1, 0, SHORT_MS, LONG_MS);

	assert_int_equal(ACQUIRE(0, &claim), GATE_ACQUIRED);
	pass_ms(p, SHORT_MS);
	assert_int_equal(COMPLETE(0, &claim, "late"), GATE_DONE);
	assert_int_equal(others_hear(p, 1, &claim), GATE_COMPLETED);
	assert_true(heard_is(&heard, slice_str("late")));
}

static void what_is_missing_is_stale_to_complete_and_done_to_remove(void **state)
{
	struct place *p = *state;
	struct hx_gate_claim claim = claim_of(1, 0, LONG_MS, LONG_MS);

	assert_int_equal(COMPLETE(0, &claim, "nothing"), GATE_STALE);
	assert_int_equal(REMOVE(0, &claim), GATE_DONE);
	assert_int_equal(COMPLETE(1, &claim, "nothing"), GATE_STALE); /* neither left anything behind */
	assert_int_equal(strangers_hear(p, 1, &claim), GATE_ACQUIRED);
}

static void every_step_can_be_repeated(void **state)
{
	struct place *p = *state;
	struct hx_gate_claim claim = claim_of(1, 0, LONG_MS, LONG_MS), removed = claim_of(2, 0, LONG_MS, LONG_MS);
	int64_t created_ms;

	assert_int_equal(ACQUIRE(0, &claim), GATE_ACQUIRED);
	created_ms = created_of(p, 0, &claim);
	assert_int_equal(ACQUIRE(1, &claim), GATE_ACQUIRED);
	assert_int_equal(created_of(p, 1, &claim), created_ms);
	assert_int_equal(others_hear(p, 0, &claim), GATE_IN_FLIGHT);
	assert_int_equal(COMPLETE(0, &claim, "first"), GATE_DONE);
	assert_int_equal(COMPLETE(1, &claim, "first"), GATE_DONE);
	assert_int_equal(COMPLETE(0, &claim, "second"), GATE_DONE); /* a completion is written once */
	assert_int_equal(others_hear(p, 1, &claim), GATE_COMPLETED);
	assert_true(heard_is(&heard, slice_str("first")));

	assert_int_equal(ACQUIRE(0, &removed), GATE_ACQUIRED);
	assert_int_equal(REMOVE(0, &removed), GATE_DONE);
	assert_int_equal(REMOVE(1, &removed), GATE_DONE);
	assert_int_equal(others_hear(p, 0, &removed), GATE_ACQUIRED);
	assert_int_equal(REMOVE(0, &removed), GATE_STALE);
}

static void a_removal_frees_the_key(void **state)
{
	struct place *p = *state;
	struct hx_gate_claim claim = claim_of(1, 0, LONG_MS, LONG_MS);

	assert_int_equal(ACQUIRE(0, &claim), GATE_ACQUIRED);
	assert_int_equal(REMOVE(0, &claim), GATE_DONE);
	assert_int_equal(COMPLETE(0, &claim, "late"), GATE_STALE);
	assert_int_equal(strangers_hear(p, 1, &claim), GATE_ACQUIRED);
	assert_int_equal(COMPLETE(0, &claim, "late"), GATE_STALE);
}

static void what_is_completed_is_not_removed(void **state)
{
	struct place *p = *state;
	struct hx_gate_claim claim = claim_of(1, 0, LONG_MS, LONG_MS);

	assert_int_equal(ACQUIRE(0, &claim), GATE_ACQUIRED);
	assert_int_equal(COMPLETE(0, &claim, "done"), GATE_DONE);
	assert_int_equal(REMOVE(0, &claim), GATE_STALE);
	assert_int_equal(others_hear(p, 1, &claim), GATE_COMPLETED);
	assert_true(heard_is(&heard, slice_str("done")));
}

/* The holder before may have executed: what the key was used for must not be forgotten. */
static void of_what_was_taken_over_only_the_lease_is_removed(void **state)
{
	struct place *p = *state;
	struct hx_gate_claim a = claim_of(1, 0, SHORT_MS, LONG_MS), b = claim_by_another(&a), c = claim_by_another(&a);
	int64_t created_ms;

	b.lease_ms = c.lease_ms = LONG_MS;
	assert_int_equal(ACQUIRE(0, &a), GATE_ACQUIRED);
	created_ms = created_of(p, 0, &a);
	pass_ms(p, SHORT_MS);
	assert_int_equal(ACQUIRE(1, &b), GATE_ACQUIRED);
	assert_int_equal(ACQUIRE(1, &b), GATE_ACQUIRED);
	for (int i = 0; i < 2; i++)
		assert_int_equal(REMOVE(1, &b), GATE_DONE);
	assert_int_equal(strangers_hear(p, 0, &a), GATE_MISMATCHED);
	assert_int_equal(ACQUIRE(0, &c), GATE_ACQUIRED);
	assert_int_equal(created_of(p, 0, &c), created_ms);
	assert_int_equal(REMOVE(1, &b), GATE_STALE);
	assert_int_equal(others_hear(p, 1, &a), GATE_IN_FLIGHT);
	assert_int_equal(COMPLETE(0, &c, "by c"), GATE_DONE);
	assert_int_equal(others_hear(p, 1, &a), GATE_COMPLETED);
}

static void created_never_changes(void **state)
{
	struct place *p = *state;
	struct hx_gate_claim a = claim_of(1, 0, SHORT_MS, LONG_MS), b = claim_by_another(&a);
	int64_t before_ms = p->real_time ? clock_wall(clock_system()).ms : p->moved.ms, created_ms;

	assert_int_equal(ACQUIRE(0, &a), GATE_ACQUIRED);
	created_ms = created_of(p, 0, &a);
	assert_true(created_ms >= before_ms && created_ms <= before_ms + ASKER_AWAIT_MS);
	pass_ms(p, SHORT_MS);
	b.lease_ms = LONG_MS;
	assert_int_equal(ACQUIRE(1, &b), GATE_ACQUIRED);
	assert_int_equal(others_hear(p, 0, &a), GATE_IN_FLIGHT);
	assert_int_equal(heard.reply.created_ms, created_ms);
	assert_int_equal(created_of(p, 0, &a), created_ms);
	pass_ms(p, 2);
	assert_int_equal(COMPLETE(1, &b, "done"), GATE_DONE);
	assert_int_equal(others_hear(p, 0, &a), GATE_COMPLETED);
	assert_int_equal(heard.reply.created_ms, created_ms);
}

/* ---- expiry ---- */

/* With a lease that would last much longer: what counts from it on is not what counts from the completion on. */
static void ttl_counts_from_the_completion(void **state)
{
	struct place *p = *state;
	struct hx_gate_claim claim = claim_of(1, 0, LONG_MS, SHORT_MS);
	int64_t created_ms;

	assert_int_equal(ACQUIRE(0, &claim), GATE_ACQUIRED);
	created_ms = created_of(p, 0, &claim);
	pass_ms(p, 2 * SHORT_MS); /* while it is in flight the ttl does not count */
	assert_int_equal(others_hear(p, 1, &claim), GATE_IN_FLIGHT);
	assert_int_equal(COMPLETE(0, &claim, "done"), GATE_DONE);
	if (!p->real_time) {
		pass_ms(p, SHORT_MS - 1);
		assert_int_equal(COMPLETE(0, &claim, "done"), GATE_DONE); /* repeated, it moves no end */
		assert_int_equal(others_hear(p, 0, &claim), GATE_COMPLETED);
		pass_ms(p, 1);
	} else {
		pass_ms(p, SHORT_MS);
	}
	assert_int_equal(COMPLETE(0, &claim, "again"), GATE_STALE);
	assert_int_equal(REMOVE(0, &claim), GATE_DONE);
	assert_int_equal(strangers_hear(p, 1, &claim), GATE_ACQUIRED); /* absent: it may be used for anything */
	assert_int_equal(others_hear(p, 0, &claim), GATE_MISMATCHED);
	assert_true(heard.reply.created_ms > created_ms);
}

/* Acquires a record with the last of the keys that were tried: by a server's clock it may have expired before it is looked at. */
static int64_t acquire_short_lived(struct place *p, unsigned *ret_key, struct hx_gate_claim *ret_claim)
{
	enum gate_verdict verdict = GATE_ACQUIRED;

	for (*ret_key = 1; verdict == GATE_ACQUIRED && *ret_key < 100; ++*ret_key) {
		*ret_claim = claim_of(*ret_key, 0, SHORT_MS, SHORT_MS);
		assert_int_equal(ACQUIRE(0, ret_claim), GATE_ACQUIRED);
		verdict = strangers_hear(p, 0, ret_claim);
		assert_true(p->real_time || verdict == GATE_MISMATCHED);
	}
	assert_int_equal(verdict, GATE_MISMATCHED);
	--*ret_key;
	return heard.reply.created_ms;
}

/* Without a completion it stays for the lease and the ttl; nothing sweeps here. */
static void what_was_never_completed_expires(void **state)
{
	struct place *p = *state;
	struct hx_gate_claim claim, later;
	unsigned key;
	int64_t created_ms = acquire_short_lived(p, &key, &claim);

	if (!p->real_time) {
		pass_ms(p, 2 * SHORT_MS - 1);
		assert_int_equal(strangers_hear(p, 0, &claim), GATE_MISMATCHED);
		pass_ms(p, 1);
	} else {
		pass_ms(p, 2 * SHORT_MS);
	}
	assert_int_equal(COMPLETE(0, &claim, "late"), GATE_STALE);
	assert_int_equal(REMOVE(0, &claim), GATE_DONE);
	later = claim_of(key, 1, LONG_MS, LONG_MS);
	assert_int_equal(ACQUIRE(1, &later), GATE_ACQUIRED);
	assert_true(created_of(p, 0, &later) > created_ms);
	assert_int_equal(COMPLETE(0, &claim, "late"), GATE_STALE);
	assert_int_equal(REMOVE(0, &claim), GATE_STALE);
	assert_int_equal(REMOVE(1, &later), GATE_DONE); /* it is new, and was not taken over from anybody */
	assert_int_equal(strangers_hear(p, 0, &later), GATE_ACQUIRED);
}

static void forget(struct place *p, const struct hx_gate_claim *claim)
{
	struct gate_ask ask = ask_of(GATE_FORGET, claim);

	if (p->kind == PLACE_USER)
		user_store_forget(p->user, claim->key);
	else
		assert_int_equal(hear(node_of(p, 1), &ask, &heard), GATE_DONE);
}

static void what_holds_waits_for_a_person(void **state)
{
	struct place *p = *state;
	struct hx_gate_claim claim = claim_of(1, 0, SHORT_MS, 1), completed = claim_of(2, 0, SHORT_MS, SHORT_MS);
	int64_t created_ms;

	claim.hold = completed.hold = 1;
	assert_int_equal(ACQUIRE(0, &claim), GATE_ACQUIRED);
	created_ms = created_of(p, 0, &claim);
	assert_int_equal(ACQUIRE(0, &completed), GATE_ACQUIRED);
	pass_ms(p, 3 * SHORT_MS); /* past the lease, and past what would be its ttl */
	assert_int_equal(others_hear(p, 0, &claim), GATE_HELD);
	assert_int_equal(hear_sweep(node_of(p, 0), 100, /* turn_ms= */ 1), 0);
	assert_int_equal(others_hear(p, 1, &claim), GATE_HELD);
	assert_int_equal(heard.reply.created_ms, created_ms);
	assert_int_equal(strangers_hear(p, 1, &claim), GATE_MISMATCHED);
	forget(p, &claim);
	assert_int_equal(strangers_hear(p, 1, &claim), GATE_ACQUIRED);

	/* Its holder may still come back, and then it ends like all others. */
	assert_int_equal(COMPLETE(0, &completed, "late"), GATE_DONE);
	pass_ms(p, SHORT_MS);
	assert_int_equal(strangers_hear(p, 1, &completed), GATE_ACQUIRED);
}

/* Held or not is decided by whoever has it; a removal frees it as any other. */
static void what_holds_may_be_removed_by_its_holder(void **state)
{
	struct place *p = *state;
	struct hx_gate_claim claim = claim_of(1, 0, LONG_MS, LONG_MS);

	claim.hold = 1;
	assert_int_equal(ACQUIRE(0, &claim), GATE_ACQUIRED);
	assert_int_equal(others_hear(p, 1, &claim), GATE_IN_FLIGHT);
	assert_int_equal(REMOVE(0, &claim), GATE_DONE);
	assert_int_equal(strangers_hear(p, 1, &claim), GATE_ACQUIRED);
}

/* ---- the sweep ---- */

#define EXPIRED 10
#define LIVE 5

static void the_sweep_removes_only_what_has_expired_and_within_its_budget(void **state)
{
	struct place *p = *state;
	struct hx_gate_claim claims[EXPIRED + LIVE], held = claim_of(100, 0, SHORT_MS, 1);
	int64_t removed, sum = 0;

	for (unsigned i = 0; i < EXPIRED + LIVE; i++) {
		bool completed = i % 2;

		claims[i] = claim_of(i, 0, i < EXPIRED ? SHORT_MS : LONG_MS, i < EXPIRED ? 1 : LONG_MS);
		assert_int_equal(ACQUIRE(0, &claims[i]), GATE_ACQUIRED);
		if (completed)
			(void)COMPLETE(0, &claims[i], "done"); /* on a slow machine it may have expired by now */
	}
	held.hold = 1;
	assert_int_equal(ACQUIRE(0, &held), GATE_ACQUIRED);
	pass_ms(p, 2 * SHORT_MS);
	do {
		removed = hear_sweep(node_of(p, 0), 4, /* turn_ms= */ 1);
		assert_in_range(removed, 0, 4);
		sum += removed;
		pass_ms(p, 1);
	} while (removed > 0);
	assert_int_equal(sum, p->kind == PLACE_REDIS ? 0 : EXPIRED); /* Redis does it by itself */
	for (unsigned i = EXPIRED; i < EXPIRED + LIVE; i++)
		assert_int_equal(others_hear(p, 1, &claims[i]), i % 2 ? GATE_COMPLETED : GATE_IN_FLIGHT);
	assert_int_equal(others_hear(p, 1, &held), GATE_HELD);
	for (unsigned i = 0; i < EXPIRED; i++)
		assert_int_equal(strangers_hear(p, 1, &claims[i]), GATE_ACQUIRED);
}

static void the_sweep_is_one_nodes_turn(void **state)
{
	struct place *p = *state;

	for (unsigned i = 0; i < EXPIRED; i++) {
		struct hx_gate_claim claim = claim_of(i, 0, 1, 1);

		assert_int_equal(ACQUIRE(0, &claim), GATE_ACQUIRED);
	}
	pass_ms(p, 2);
	assert_int_equal(hear_sweep(node_of(p, 0), 1, /* turn_ms= */ SHORT_MS), 1);
	pass_ms(p, SHORT_MS);
	assert_int_equal(hear_sweep(node_of(p, 1), 1, /* turn_ms= */ LONG_MS), 1);
	for (size_t node = 0; node < 2; node++)
		assert_int_equal(hear_sweep(node_of(p, node), 100, /* turn_ms= */ 1), 0);
	if (p->real_time)
		return;
	pass_ms(p, LONG_MS);
	assert_int_equal(hear_sweep(node_of(p, 0), 100, /* turn_ms= */ 1), EXPIRED - 2);
}

/* ---- callers ---- */

static struct hx_gate_claim claim_by_caller(const struct hx_gate_claim *claim, unsigned char caller)
{
	struct hx_gate_claim another = claim_by_another(claim);

	another.caller[0] = caller;
	return another;
}

/* Whatever became of it: another caller learns nothing, and takes nothing over. Who is not known is not compared. */
static void another_caller_is_told_nothing(void **state)
{
	struct place *p = *state;
	struct hx_gate_claim alice = claim_of(1, 0, WORK_MS, LONG_MS), again, mallory, unknown, other_body;

	alice.caller[0] = 1;
	again = claim_by_caller(&alice, 1);
	mallory = claim_by_caller(&alice, 2);
	unknown = claim_by_caller(&alice, 0);
	other_body = mallory;
	other_body.fingerprint[0] ^= 1;
	assert_int_equal(ACQUIRE(0, &alice), GATE_ACQUIRED);
	assert_int_equal(ACQUIRE(0, &mallory), GATE_OTHER_CALLER);
	assert_int_equal(ACQUIRE(0, &other_body), GATE_OTHER_CALLER); /* not whether the body is the same */
	assert_int_equal(ACQUIRE(0, &again), GATE_IN_FLIGHT);
	assert_int_equal(ACQUIRE(0, &unknown), GATE_IN_FLIGHT);
	pass_ms(p, WORK_MS);
	assert_int_equal(ACQUIRE(0, &mallory), GATE_OTHER_CALLER); /* not even after the lease */
	assert_int_equal(ACQUIRE(0, &unknown), GATE_ACQUIRED);
	assert_int_equal(ACQUIRE(0, &mallory), GATE_OTHER_CALLER); /* who is not known has not changed whose it is */
	assert_int_equal(COMPLETE(0, &unknown, "answer"), GATE_DONE);
	assert_int_equal(ACQUIRE(0, &mallory), GATE_OTHER_CALLER);
	assert_int_equal(ACQUIRE(0, &other_body), GATE_OTHER_CALLER);
	assert_int_equal(ACQUIRE(0, &again), GATE_COMPLETED);
}

/* As those of version 0.1: whoever comes first with a name is the one. */
static void a_record_without_a_caller_is_anybodys(void **state)
{
	struct place *p = *state;
	struct hx_gate_claim before = claim_of(1, 0, WORK_MS, LONG_MS), alice = claim_by_caller(&before, 1);
	struct hx_gate_claim mallory = claim_by_caller(&before, 2);

	assert_int_equal(ACQUIRE(0, &before), GATE_ACQUIRED);
	assert_int_equal(ACQUIRE(0, &alice), GATE_IN_FLIGHT);
	pass_ms(p, WORK_MS);
	assert_int_equal(ACQUIRE(0, &alice), GATE_ACQUIRED);
	assert_int_equal(ACQUIRE(0, &mallory), GATE_OTHER_CALLER);
	before = claim_of(2, 0, LONG_MS, LONG_MS);
	alice = claim_by_caller(&before, 1);
	mallory = claim_by_caller(&before, 2);
	assert_int_equal(ACQUIRE(0, &before), GATE_ACQUIRED);
	assert_int_equal(COMPLETE(0, &before, "old"), GATE_DONE);
	assert_int_equal(ACQUIRE(0, &alice), GATE_COMPLETED);
	assert_int_equal(ACQUIRE(0, &mallory), GATE_COMPLETED);
}

/* An expired record is nobody's, whoever's it was. */
static void an_expired_record_has_no_caller(void **state)
{
	struct place *p = *state;
	struct hx_gate_claim alice = claim_of(1, 0, LONG_MS, SHORT_MS), mallory, bob;

	alice.caller[0] = 1;
	mallory = claim_by_caller(&alice, 2);
	mallory.ttl_ms = LONG_MS;
	bob = claim_by_caller(&alice, 1);
	assert_int_equal(ACQUIRE(0, &alice), GATE_ACQUIRED);
	assert_int_equal(COMPLETE(0, &alice, "answer"), GATE_DONE);
	pass_ms(p, SHORT_MS);
	assert_int_equal(ACQUIRE(0, &mallory), GATE_ACQUIRED);
	assert_int_equal(ACQUIRE(0, &bob), GATE_OTHER_CALLER);
}

static struct CMUnitTest of_all[] = {
	TEST(the_response_is_replayed_byte_for_byte),
	TEST(keys_do_not_meet),
	TEST(mismatch_beats_every_state),
	TEST(within_the_lease_it_is_in_flight),
	TEST(a_stale_holder_changes_nothing),
	TEST(a_late_holder_may_complete),
	TEST(what_is_missing_is_stale_to_complete_and_done_to_remove),
	TEST(every_step_can_be_repeated),
	TEST(a_removal_frees_the_key),
	TEST(what_is_completed_is_not_removed),
	TEST(of_what_was_taken_over_only_the_lease_is_removed),
	TEST(created_never_changes),
	TEST(ttl_counts_from_the_completion),
	TEST(what_was_never_completed_expires),
	TEST(what_holds_waits_for_a_person),
	TEST(what_holds_may_be_removed_by_its_holder),
	TEST(the_sweep_removes_only_what_has_expired_and_within_its_budget),
	TEST(another_caller_is_told_nothing),
	TEST(a_record_without_a_caller_is_anybodys),
	TEST(an_expired_record_has_no_caller),
};

static const struct CMUnitTest of_some[] = {
	{"sqlite: the_sweep_is_one_nodes_turn", the_sweep_is_one_nodes_turn, set_up_sqlite, tear_down, NULL},
	{"postgres: the_sweep_is_one_nodes_turn", the_sweep_is_one_nodes_turn, set_up_postgres, tear_down, NULL},
};

int main(void)
{
	int failed = run_on_every_store(of_all, sizeof of_all / sizeof *of_all, /* users_own= */ true);

	return failed + cmocka_run_group_tests_name("some", of_some, NULL, NULL);
}
