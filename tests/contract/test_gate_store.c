/*
 * The contract of gate/store.h, the same for every store: memory, SQLite, PostgreSQL, Redis, and one of a user's own
 * (support/user_store.h). Where a store can be shared, two services stand for two gates.
 *
 * Time is passed, never slept through: where it can be injected a clock is moved, so that the millisecond before and the
 * millisecond itself are looked at; servers have their own, and are waited for with short leases. What must hold
 * within a lease has a long one, so that a slow machine changes nothing.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gate/redis.h"
#include "support/await.h"
#include "support/gate_asker.h"
#include "support/redis_server.h"
#include "support/store.h"
#include "support/user_store.h"

#define CALLERS 50
#define ROUNDS 20
#define RACES 1000
#define LONG_MS 60000
#define SHORT_MS 50
#define WORK_MS 1000 /* a lease within which several asks have to come, by real time and on a busy machine */
#define BODY_BYTES_MAX (1u << 20)
#define DOWN_MS_MAX 20000 /* how long a store may take to say that it is down */
#define BACK_MS_MAX 60000

/* ---- a clock to be moved while others look at it ---- */

struct moved_clock {
	struct clock clock;
	_Atomic int64_t ms;
};

static struct wall_time moved_wall(struct clock *clock)
{
	return (struct wall_time){atomic_load(&((struct moved_clock *)clock)->ms)};
}

static struct mono_time moved_mono(struct clock *clock)
{
	return (struct mono_time){atomic_load(&((struct moved_clock *)clock)->ms) * 1000000};
}

/* ---- places: a store, and the gates on it ---- */

enum place_kind { PLACE_MEMORY, PLACE_SQLITE, PLACE_POSTGRES, PLACE_REDIS, PLACE_USER };

struct place {
	enum place_kind kind;
	bool real_time;
	struct moved_clock moved;
	struct store *db;
	struct user_store *user;
	size_t nodes_n;
	struct lanes lanes[2];
	struct gate_store *stores[2];
};

static struct heard heard; /* by the test's own thread, last */

static void empty_redis(void)
{
	struct redis_options options = {.clock = clock_system()};
	struct redis *redis = NULL;
	redisReply *reply = NULL;
	struct hx_error err = {0};

	if (redis_url_parse(redis_server_url(), &options.url, &err) || redis_new(&options, &redis, &err) ||
	    redis_connect(redis, &err))
		fail_msg("%s", err.detail);
	REDIS_SEND(redis, slice_str("FLUSHALL"), slice_str("SYNC"));
	assert_int_equal(redis_receive(redis, &reply, &err), HX_OK);
	freeReplyObject(reply);
	redis_free(redis);
}

static enum hx_code open_sql(struct place *p, size_t i, struct clock *clock, struct hx_error *err)
{
	const struct lane_options options = {.db = {.url = p->db->url, .clock = clock},
					     .clock = clock,
					     .migrate = true,
					     .node = i ? "there" : "here",
					     .node_number = (uint32_t)i * 100,
					     .seats_max = 2000,
					     .resolve_ms = 1000};
	enum hx_code code = lanes_open(&p->lanes[i], &options, 2, err);

	return code ? code : gate_sql_new(&p->lanes[i], clock, &p->stores[i], err);
}

static void open_node(struct place *p, size_t i)
{
	struct clock *clock = p->real_time ? clock_system() : &p->moved.clock;
	struct hx_error err = {0};
	enum hx_code code = HX_OK;
	bool durable;

	switch (p->kind) {
	case PLACE_MEMORY:
		code = gate_memory_new(GATE_MEMORY_RECORDS_MAX, GATE_MEMORY_BYTES_MAX, clock, &p->stores[i], &err);
		break;
	case PLACE_SQLITE:
	case PLACE_POSTGRES:
		code = open_sql(p, i, clock, &err);
		break;
	case PLACE_REDIS:
		code = gate_redis_new(redis_server_url(), clock, &p->stores[i], &durable, &err);
		break;
	case PLACE_USER:
		code = gate_user_new(user_store_table(p->user), clock, &p->stores[i], &err);
		break;
	}
	if (code)
		fail_msg("%s", err.detail);
}

static int set_up(void **state, enum place_kind kind)
{
	struct place *p = calloc(1, sizeof *p);

	p->kind = kind;
	p->moved.clock = (struct clock){.wall = moved_wall, .mono = moved_mono};
	atomic_init(&p->moved.ms, 1700000000000);
	p->real_time = kind == PLACE_POSTGRES || kind == PLACE_REDIS;
	p->nodes_n = kind == PLACE_MEMORY || kind == PLACE_SQLITE ? 1 : 2;
	if (kind == PLACE_SQLITE || kind == PLACE_POSTGRES)
		p->db = store_new(kind == PLACE_SQLITE ? STORE_SQLITE_FILE : STORE_POSTGRES);
	if (kind == PLACE_REDIS)
		empty_redis();
	if (kind == PLACE_USER)
		p->user = user_store_new(&p->moved.clock);
	for (size_t i = 0; i < p->nodes_n; i++)
		open_node(p, i);
	*state = p;
	return 0;
}

static int set_up_memory(void **state)
{
	return set_up(state, PLACE_MEMORY);
}

static int set_up_sqlite(void **state)
{
	return set_up(state, PLACE_SQLITE);
}

static int set_up_postgres(void **state)
{
	return set_up(state, PLACE_POSTGRES);
}

static int set_up_redis(void **state)
{
	return set_up(state, PLACE_REDIS);
}

static int set_up_user(void **state)
{
	return set_up(state, PLACE_USER);
}

static int tear_down(void **state)
{
	struct place *p = *state;

	for (size_t i = 0; i < p->nodes_n; i++) {
		lanes_stop(&p->lanes[i], /* drain_ms= */ 1000);
		gate_store_free(p->stores[i]);
		lanes_close(&p->lanes[i]);
	}
	user_store_free(p->user);
	store_free(p->db);
	free(p);
	return 0;
}

static struct gate_store *node_of(const struct place *p, size_t i)
{
	return p->stores[i % p->nodes_n];
}

/* The servers are on this machine: the time that they go by is ours. */
static void pass_ms(struct place *p, int64_t ms)
{
	int64_t until_ms = clock_wall(clock_system()).ms + ms + 1;

	if (p->real_time)
		AWAIT(ms + ASKER_AWAIT_MS, clock_wall(clock_system()).ms >= until_ms);
	else
		atomic_fetch_add(&p->moved.ms, ms);
}

/* ---- one after the other ---- */

#define ACQUIRE(i, claim) hear_acquire(node_of(p, i), claim, &heard)
#define COMPLETE(i, claim, text) hear_complete(node_of(p, i), claim, slice_str(text))
#define REMOVE(i, claim) hear_remove(node_of(p, i), claim)

/* What somebody else hears who sends the same request. */
static enum gate_verdict others_hear(struct place *p, size_t i, const struct hx_gate_claim *claim)
{
	struct hx_gate_claim another = claim_by_another(claim);

	return ACQUIRE(i, &another);
}

/* And who uses the key for something else. */
static enum gate_verdict strangers_hear(struct place *p, size_t i, const struct hx_gate_claim *claim)
{
	struct hx_gate_claim stranger = claim_by_another(claim);

	stranger.fingerprint[0] ^= 1;
	return ACQUIRE(i, &stranger);
}

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

/* ---- random steps ---- */

#define STEPS 3000
#define KEYS 7
#define HOLDERS 4

static uint64_t dice(uint64_t *seed, uint64_t sides)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (*seed >> 33) % sides;
}

static struct gate_ask random_ask(struct place *p, const struct hx_gate_claim holders[KEYS][HOLDERS], uint64_t *seed)
{
	static const enum gate_op ops[] = {GATE_ACQUIRE,  GATE_ACQUIRE, GATE_ACQUIRE,
					   GATE_COMPLETE, GATE_REMOVE,  GATE_SWEEP};
	static const char *const responses[] = {"", "a", "bb"};
	/* SQL sweeps what was completed early a little late, which nobody but the sweep sees. */
	size_t ops_n = sizeof ops / sizeof *ops - (p->kind != PLACE_MEMORY);
	struct gate_ask ask = ask_of(ops[dice(seed, ops_n)], &holders[dice(seed, KEYS)][dice(seed, HOLDERS)]);

	ask.response = slice_str(responses[dice(seed, 3)]);
	ask.budget = KEYS; /* all: which of them go first is the store's own affair */
	ask.claim.hold = dice(seed, 10) == 0;
	ask.claim.lease_ms = 1 + (int64_t)dice(seed, 40);
	ask.claim.ttl_ms = 1 + (int64_t)dice(seed, 60);
	return ask;
}

/* The same steps in the store and in the user's array, which is too simple to be wrong: the same answers. */
static void random_steps_are_answered_as_by_the_simplest_store(void **state)
{
	struct place *p = *state;
	struct user_store *u = user_store_new(&p->moved.clock);
	struct gate_store *model = NULL;
	struct hx_gate_claim holders[KEYS][HOLDERS];
	uint64_t seed = 42;
	size_t counts[GATE_UNAVAILABLE + 1] = {0};

	assert_int_equal(gate_user_new(user_store_table(u), &p->moved.clock, &model, /* err= */ NULL), HX_OK);
	for (unsigned key = 0; key < KEYS; key++)
		for (unsigned i = 0; i < HOLDERS; i++)
			holders[key][i] = claim_of(key, /* fingerprint= */ i == 3, 0, 0);
	for (unsigned key = 0; key < KEYS; key++) /* two who are known, one who is not */
		for (unsigned i = 0; i < HOLDERS; i++)
			holders[key][i].caller[0] = (unsigned char)(i % 3);
	for (int step = 0; step < STEPS; step++) {
		struct gate_ask ask = random_ask(p, holders, &seed);
		struct heard wanted;

		counts[hear(model, &ask, &wanted)]++;
		(void)hear(node_of(p, 0), &ask, &heard);
		if (heard.reply.verdict != wanted.reply.verdict ||
		    (wanted.reply.verdict != GATE_ACQUIRED && heard.reply.created_ms != wanted.reply.created_ms) ||
		    heard.reply.removed != wanted.reply.removed ||
		    memcmp(heard.response_digest, wanted.response_digest, SHA256_BYTES) != 0 ||
		    (wanted.reply.verdict == GATE_IN_FLIGHT && heard.reply.lease_left_ms != wanted.reply.lease_left_ms))
			fail_msg("step %d, op %d: %d (%lld) instead of %d (%lld)", step, ask.op, heard.reply.verdict,
				 (long long)heard.reply.removed, wanted.reply.verdict, (long long)wanted.reply.removed);
		pass_ms(p, (int64_t)dice(&seed, 6));
	}
	for (enum gate_verdict verdict = 0; verdict <= GATE_DONE; verdict++)
		assert_true(counts[verdict] > 20); /* it has been everywhere */
	gate_store_free(model);
	user_store_free(u);
}

/* ---- crowds ---- */

static pthread_barrier_t barrier;

struct racer {
	pthread_t thread;
	struct gate_store *store;
	size_t n;
	struct question *questions; /* n of them, one for each round */
	struct gate_ask *asks;
};

/* Each round: all ask at once. */
static void *race(void *context)
{
	struct racer *racer = context;

	for (size_t i = 0; i < racer->n; i++) {
		pthread_barrier_wait(&barrier);
		question_send(&racer->questions[i], racer->store, &racer->asks[i]);
	}
	return NULL;
}

static void run_race(struct place *p, struct racer *racers, size_t racers_n)
{
	pthread_barrier_init(&barrier, NULL, (unsigned)racers_n);
	for (size_t i = 0; i < racers_n; i++) {
		racers[i].store = node_of(p, i);
		assert_int_equal(pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
	}
	for (size_t i = 0; i < racers_n; i++)
		pthread_join(racers[i].thread, NULL);
	pthread_barrier_destroy(&barrier);
}

static size_t count_verdicts(struct racer *racers, size_t racers_n, size_t round, enum gate_verdict verdict)
{
	size_t count = 0;

	for (size_t i = 0; i < racers_n; i++)
		count += question_await(&racers[i].questions[round])->reply.verdict == verdict;
	return count;
}

static void racers_init(struct racer *racers, size_t racers_n, size_t rounds)
{
	for (size_t i = 0; i < racers_n; i++) {
		racers[i] = (struct racer){.n = rounds};
		racers[i].questions = calloc(rounds, sizeof *racers[i].questions);
		racers[i].asks = calloc(rounds, sizeof *racers[i].asks);
		assert_true(racers[i].questions && racers[i].asks);
	}
}

static void racers_release(struct racer *racers, size_t racers_n)
{
	for (size_t i = 0; i < racers_n; i++) {
		free(racers[i].questions);
		free(racers[i].asks);
	}
}

/* Fifty with one key: the same request in one half of the rounds, fifty different ones in the other. */
static void one_of_fifty_acquires(void **state)
{
	static struct racer racers[CALLERS];
	struct place *p = *state;

	racers_init(racers, CALLERS, ROUNDS);
	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned i = 0; i < CALLERS; i++) {
			struct hx_gate_claim claim = claim_of(round, round % 2 ? i : 0, LONG_MS, LONG_MS);

			racers[i].asks[round] = ask_of(GATE_ACQUIRE, &claim);
		}
	run_race(p, racers, CALLERS);
	for (size_t round = 0; round < ROUNDS; round++) {
		enum gate_verdict others = round % 2 ? GATE_MISMATCHED : GATE_IN_FLIGHT;

		assert_int_equal(count_verdicts(racers, CALLERS, round, GATE_ACQUIRED), 1);
		assert_int_equal(count_verdicts(racers, CALLERS, round, others), CALLERS - 1);
	}
	racers_release(racers, CALLERS);
}

/* Two takers for a lease that is over, a thousand times; and the one who lost it tries to complete meanwhile. */
static void one_of_two_takes_over(void **state)
{
	static struct racer racers[3], dead[1];
	struct place *p = *state;
	size_t late = 0;

	racers_init(racers, 3, RACES);
	racers_init(dead, 1, RACES);
	for (unsigned round = 0; round < RACES; round++) {
		struct hx_gate_claim claim = claim_of(round, 0, 1, LONG_MS);

		dead->asks[round] = ask_of(GATE_ACQUIRE, &claim);
		racers[2].asks[round] = ask_of(GATE_COMPLETE, &claim);
		racers[2].asks[round].response = slice_str("late");
		for (size_t i = 0; i < 2; i++) {
			claim = claim_by_another(&claim);
			claim.lease_ms = LONG_MS;
			racers[i].asks[round] = ask_of(GATE_ACQUIRE, &claim);
		}
		question_send(&dead->questions[round], node_of(p, round), &dead->asks[round]);
	}
	for (size_t round = 0; round < RACES; round++)
		assert_int_equal(question_await(&dead->questions[round])->reply.verdict, GATE_ACQUIRED);
	pass_ms(p, 1);
	run_race(p, racers, 3);
	for (size_t round = 0; round < RACES; round++) {
		enum gate_verdict completed = question_await(&racers[2].questions[round])->reply.verdict;
		size_t took = count_verdicts(racers, 2, round, GATE_ACQUIRED);

		/* Either it was still the late one's, and both are told so; or one has it and the other waits. */
		late += completed == GATE_DONE;
		assert_true(completed == GATE_DONE || completed == GATE_STALE);
		assert_int_equal(took, completed == GATE_STALE);
		assert_int_equal(
			count_verdicts(racers, 2, round, completed == GATE_DONE ? GATE_COMPLETED : GATE_IN_FLIGHT),
			2 - took);
	}
	print_message("# %d races for a lease that was over: %zu times its late holder was first\n", RACES, late);
	racers_release(racers, 3);
	racers_release(dead, 1);
}

/* done() may ask again, from whichever thread it comes: here acquire, complete, acquire, until it hears a replay. */
struct chain {
	struct gate_ticket ticket;
	_Atomic int steps;
	_Atomic bool replayed;
};

static void ask_on(struct gate_ticket *ticket)
{
	struct chain *chain = (struct chain *)ticket;
	struct gate_store *store = ticket->store;

	if (ticket->reply.verdict == GATE_COMPLETED) {
		atomic_store(&chain->replayed, slice_is(ticket->reply.response, "chained"));
		return;
	}
	atomic_fetch_add(&chain->steps, 1);
	ticket->ask.op = ticket->reply.verdict == GATE_ACQUIRED ? GATE_COMPLETE : GATE_ACQUIRE;
	ticket->ask.response = slice_str("chained");
	if (atomic_load(&chain->steps) < 5)
		gate_ask(store, ticket);
}

static void done_may_ask_again(void **state)
{
	static struct chain chain;
	struct place *p = *state;
	struct hx_gate_claim claim = claim_of(1, 0, LONG_MS, LONG_MS);

	memset(&chain, 0, sizeof chain);
	chain.ticket.ask = ask_of(GATE_ACQUIRE, &claim);
	chain.ticket.done = ask_on;
	gate_ask(node_of(p, 0), &chain.ticket);
	AWAIT(ASKER_AWAIT_MS, atomic_load(&chain.replayed));
	assert_int_equal(atomic_load(&chain.steps), 2);
}

/* ---- the store is down ---- */

static void set_down(struct place *p, bool down)
{
	switch (p->kind) {
	case PLACE_REDIS:
		redis_ctl(down ? "stop" : "start");
		break;
	case PLACE_POSTGRES:
		store_pg_ctl(down ? "stop fast" : "start");
		break;
	case PLACE_USER:
		user_store_set_down(p->user, down);
		break;
	case PLACE_SQLITE: /* a lane that has ended does not come back */
		if (down)
			lanes_stop(&p->lanes[0], /* drain_ms= */ 0);
		break;
	case PLACE_MEMORY:
		break;
	}
}

static void down_is_said_and_nothing_is_forgotten(void **state)
{
	struct place *p = *state;
	struct hx_gate_claim done = claim_of(1, 0, LONG_MS, LONG_MS), working = claim_of(2, 0, LONG_MS, LONG_MS);
	struct hx_gate_claim never = claim_of(3, 0, LONG_MS, LONG_MS);
	int64_t start_ms;

	assert_int_equal(ACQUIRE(0, &done), GATE_ACQUIRED);
	assert_int_equal(COMPLETE(0, &done, "kept"), GATE_DONE);
	assert_int_equal(ACQUIRE(0, &working), GATE_ACQUIRED);
	set_down(p, true);
	start_ms = await_now_ms();
	assert_int_equal(ACQUIRE(0, &never), GATE_UNAVAILABLE);
	assert_int_equal(others_hear(p, 1, &done), GATE_UNAVAILABLE);
	assert_int_equal(COMPLETE(0, &working, "in vain"), GATE_UNAVAILABLE);
	assert_int_equal(REMOVE(0, &never), GATE_UNAVAILABLE);
	print_message("# down is said 4 times in %lld ms\n", (long long)(await_now_ms() - start_ms));
	/* PostgreSQL has the patience of its lane, and tries each ask several times. */
	assert_true(p->kind == PLACE_POSTGRES || await_now_ms() - start_ms < DOWN_MS_MAX);
	set_down(p, false);
	if (p->kind == PLACE_SQLITE)
		return;
	for (size_t node = 0; node < 2; node++) {
		AWAIT(BACK_MS_MAX, others_hear(p, node, &done) != GATE_UNAVAILABLE);
		assert_int_equal(heard.reply.verdict, GATE_COMPLETED);
		assert_true(heard_is(&heard, slice_str("kept")));
	}
	assert_int_equal(others_hear(p, 1, &working), GATE_IN_FLIGHT);
	assert_int_equal(COMPLETE(0, &working, "tried again"), GATE_DONE);
	assert_int_equal(others_hear(p, 1, &working), GATE_COMPLETED);
	assert_true(heard_is(&heard, slice_str("tried again")));
}

/* ---- every test on every store ---- */

#define TEST(test)                                                                                                     \
	{                                                                                                              \
		.name = #test, .test_func = test, .teardown_func = tear_down                                           \
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
	TEST(one_of_fifty_acquires),
	TEST(one_of_two_takes_over),
	TEST(done_may_ask_again),
	TEST(another_caller_is_told_nothing),
	TEST(a_record_without_a_caller_is_anybodys),
	TEST(an_expired_record_has_no_caller),
};

/* Not for a user's own: its table has nothing for people. */
static struct CMUnitTest for_people[] = {
	TEST(records_are_found_by_the_key_of_the_client),
	TEST(without_a_key_those_are_found_that_nobody_works_on),
	TEST(only_what_was_seen_is_forgotten),
	TEST(only_what_nobody_works_on_is_resolved),
	TEST(what_was_done_is_never_executed),
	TEST(what_is_held_is_counted_and_listed),
};

static const struct CMUnitTest of_some[] = {
	{"memory: random", random_steps_are_answered_as_by_the_simplest_store, set_up_memory, tear_down, NULL},
	{"sqlite: random", random_steps_are_answered_as_by_the_simplest_store, set_up_sqlite, tear_down, NULL},
	{"sqlite: the_sweep_is_one_nodes_turn", the_sweep_is_one_nodes_turn, set_up_sqlite, tear_down, NULL},
	{"postgres: the_sweep_is_one_nodes_turn", the_sweep_is_one_nodes_turn, set_up_postgres, tear_down, NULL},
	{"sqlite: down", down_is_said_and_nothing_is_forgotten, set_up_sqlite, tear_down, NULL},
	{"postgres: down", down_is_said_and_nothing_is_forgotten, set_up_postgres, tear_down, NULL},
	{"redis: down", down_is_said_and_nothing_is_forgotten, set_up_redis, tear_down, NULL},
	{"user: down", down_is_said_and_nothing_is_forgotten, set_up_user, tear_down, NULL},
};

int main(void)
{
	static const struct {
		const char *name;
		CMFixtureFunction set_up;
	} stores[] = {{"memory", set_up_memory},
		      {"sqlite", set_up_sqlite},
		      {"postgres", set_up_postgres},
		      {"redis", set_up_redis},
		      {"user's own", set_up_user}};
	int failed = 0;

	for (size_t i = 0; i < sizeof stores / sizeof *stores; i++) {
		for (size_t t = 0; t < sizeof of_all / sizeof *of_all; t++)
			of_all[t].setup_func = stores[i].set_up;
		for (size_t t = 0; t < sizeof for_people / sizeof *for_people; t++)
			for_people[t].setup_func = stores[i].set_up;
		failed += cmocka_run_group_tests_name(stores[i].name, of_all, NULL, NULL);
		if (stores[i].set_up != set_up_user)
			failed += cmocka_run_group_tests_name(stores[i].name, for_people, NULL, NULL);
	}
	failed += cmocka_run_group_tests_name("some", of_some, NULL, NULL);
	return failed;
}
