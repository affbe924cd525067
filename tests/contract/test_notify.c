/*
 * Wakes across nodes, with two real sets of lanes on one PostgreSQL: what a commit on one node wakes is woken on the other,
 * soon; too much of it wakes everybody; what a node has told itself it does not hear; a session that was lost comes back and
 * wakes everybody, because nobody knows what was missed.
 */
#include "engine/engine.h"
#include "engine/notify.h"
#include "support/pg_proxy.h"
#include "unit/task/party.h"

#define A 0
#define B 1
#define LANES 2

struct node {
	struct engine_metrics metrics;
	struct notify *notify;
	struct lanes lanes;
	char url[512];
};

static struct node nodes[2];
static struct store *store;
static struct pg_proxy *proxy; /* in front of the session of B that listens; NULL: none */

static void start(struct node *node, const char *name, int64_t token)
{
	struct notify_options options = {
		.url = node->url, .token = token, .clock = clock_system(), .metrics = &node->metrics};
	struct lane_options lane = {
		.db = {.url = store->url, .clock = clock_system()},
		.migrate = true,
		.clock = clock_system(),
		.node = name,
		.node_number = (uint32_t)token * 8,
		.seats_max = 10000,
		.resolve_ms = 1000,
		.woke = notify_woke,
		.offered = notify_offered,
	};
	struct hx_error err;

	if (notify_new(&options, &node->notify, &err))
		fail_msg("%s", err.detail);
	lane.woke_context = node->notify;
	if (lanes_open(&node->lanes, &lane, LANES, &err) || notify_start(node->notify, &node->lanes, &err))
		fail_msg("%s", err.detail);
}

static void start_both(void)
{
	memset(nodes, 0, sizeof nodes);
	store = store_new(STORE_POSTGRES);
	snprintf(nodes[A].url, sizeof nodes[A].url, "%s", store->url);
	snprintf(nodes[B].url, sizeof nodes[B].url, "%s", store->url);
	if (proxy)
		store_url(store, pg_proxy_port(proxy), "listener-b", nodes[B].url, sizeof nodes[B].url);
	start(&nodes[A], "a", 1);
	start(&nodes[B], "b", 2);
}

static int tear_down(void **state)
{
	(void)state;
	for (int i = A; i <= B; i++) {
		lanes_stop(&nodes[i].lanes, /* drain_ms= */ 0);
		notify_stop(nodes[i].notify);
		lanes_close(&nodes[i].lanes);
		notify_free(nodes[i].notify);
	}
	pg_proxy_free(proxy);
	proxy = NULL;
	store_free(store);
	store = NULL;
	return 0;
}

static void create(int node, int64_t subject)
{
	assert_int_equal(ask_lane(lanes_of(&nodes[node].lanes, subject), build_create, subject, 0).verdict, UNIT_WON);
}

/* Sleeps on B until this topic is woken, on either of its lanes. */
static void sleep_on_b(struct caller *c, int64_t topic)
{
	caller_sleep(c, clock_wall(clock_system()).ms + FAR_AWAY_MS, topic);
	submit(nodes[B].lanes.lanes[(size_t)topic % LANES], c);
}

/* A lane has taken in all that was submitted to it before. */
static void settle(struct lane *lane)
{
	assert_int_equal(ask_lane(lane, build_read, 1, 0).verdict, UNIT_WON);
}

static uint64_t heard(int node)
{
	return atomic_load(&nodes[node].metrics.notifications_heard);
}

static uint64_t sent(int node)
{
	return atomic_load(&nodes[node].metrics.notifications_sent);
}

static void a_commit_on_one_node_wakes_the_other(void **state)
{
	enum { N = 20 };
	static struct caller sleepers[N];
	int64_t worst_ms = 0;

	(void)state;
	start_both();
	for (int64_t i = 0; i < N; i++) {
		sleep_on_b(&sleepers[i], 100 + i);
		settle(nodes[B].lanes.lanes[(size_t)(100 + i) % LANES]);

		struct mono_time before = clock_mono(clock_system());

		create(A, 100 + i);
		AWAIT(sleepers[i].done);
		assert_int_equal(sleepers[i].code, HX_OK);

		int64_t ms = (clock_mono(clock_system()).ns - before.ns) / 1000000;

		worst_ms = ms > worst_ms ? ms : worst_ms;
	}
	printf("# notify: a commit on one node wakes the other within %lld ms, the commit included\n",
	       (long long)worst_ms);
	assert_true(sent(A) >= 1);
	assert_true(heard(B) >= 1);
}

static void a_node_does_not_hear_itself(void **state)
{
	static struct caller sleeper;

	(void)state;
	start_both();
	sleep_on_b(&sleeper, 7);
	create(A, 7);
	AWAIT(sleeper.done); /* the notification has been everywhere */
	create(A, 8);
	AWAIT(sent(A) == 2);
	sleep_on_b(&sleeper, 9);
	create(A, 9);
	AWAIT(sleeper.done);
	assert_int_equal(heard(A), 0);
	assert_true(heard(B) >= 2);
}

/* Others' topics that happen to be there wake nobody: only the one that was told. */
static void others_sleep_on(void **state)
{
	static struct caller sleeper, other;

	(void)state;
	start_both();
	sleep_on_b(&sleeper, 20);
	sleep_on_b(&other, 21);
	settle(nodes[B].lanes.lanes[0]);
	settle(nodes[B].lanes.lanes[1]);
	create(A, 20);
	AWAIT(sleeper.done);
	settle(nodes[B].lanes.lanes[1]);
	assert_false(is_done(&other));
	create(A, 21);
	AWAIT(other.done);
}

/* More topics than a notification holds: everybody is woken, and so is the one whose topic was left out. */
static void too_many_topics_wake_everybody(void **state)
{
	static int64_t topics[3 * NOTIFY_TOPICS_MAX];
	static struct caller sleepers[3];

	(void)state;
	start_both();
	for (size_t i = 0; i < 3; i++)
		sleep_on_b(&sleepers[i], 1000000 + (int64_t)i); /* none of them is told by name */
	settle(nodes[B].lanes.lanes[0]);
	settle(nodes[B].lanes.lanes[1]);
	for (size_t i = 0; i < 3 * NOTIFY_TOPICS_MAX; i++)
		topics[i] = 1 + (int64_t)i;
	/* At the limit they still fit ... */
	notify_woke(nodes[A].notify, topics, NOTIFY_TOPICS_MAX);
	notify_woke(nodes[A].notify, topics, NOTIFY_TOPICS_MAX);
	AWAIT(heard(B) >= 1);
	settle(nodes[B].lanes.lanes[0]);
	settle(nodes[B].lanes.lanes[1]);
	for (size_t i = 0; i < 3; i++)
		assert_false(is_done(&sleepers[i]));
	/* ... and past it they do not. */
	notify_woke(nodes[A].notify, topics, 3 * NOTIFY_TOPICS_MAX);
	for (size_t i = 0; i < 3; i++)
		AWAIT(sleepers[i].done);
}

#define STAND 5

static struct lane_place places[6];
static struct caller porters[6];

static size_t took_one(const struct seat *seat, size_t place)
{
	(void)seat;
	(void)place;
	return 1;
}

static void wait_at_stand(size_t i, int node)
{
	places[i] = (struct lane_place){.stand = STAND};
	caller_sleep(&porters[i], clock_wall(clock_system()).ms + FAR_AWAY_MS, /* topic= */ 999);
	porters[i].seat.places = &places[i];
	porters[i].seat.places_n = 1;
	porters[i].seat.took = took_one;
	submit(nodes[node].lanes.lanes[i % LANES], &porters[i]);
	settle(nodes[node].lanes.lanes[i % LANES]);
}

static void build_offer(struct unit *unit, const struct probe *p)
{
	subject_read(unit, 1);
	assert_true(unit_offer(unit, STAND, (uint32_t)p->number));
}

static void offer_at_a(int64_t n)
{
	assert_int_equal(ask_lane(nodes[A].lanes.lanes[0], build_offer, 1, n).verdict, UNIT_WON);
}

/* Work that nobody waits for on its node wakes as many on the other, over all of its lanes; else nobody there. */
static void an_offer_wakes_one_and_the_node_itself_first(void **state)
{
	uint64_t heard_before;

	(void)state;
	start_both();
	for (size_t i = 0; i < 4; i++)
		wait_at_stand(i, B);
	offer_at_a(1);
	AWAIT(count_done(porters, 4) == 1);
	offer_at_a(2);
	AWAIT(count_done(porters, 4) == 3);
	wait_at_stand(4, A);
	wait_at_stand(5, A); /* in the other lane than the one that commits */
	heard_before = heard(B);
	offer_at_a(1);
	offer_at_a(1);
	AWAIT(count_done(porters + 4, 2) == 2);
	assert_int_equal(heard(B), heard_before);
	assert_int_equal(count_done(porters, 4), 3);
	offer_at_a(1);
	AWAIT(count_done(porters, 4) == 4);
}

/* More stands than a notification holds. */
static void offers_at_too_many_stands_wake_everybody(void **state)
{
	static struct caller sleeper;

	(void)state;
	start_both();
	sleep_on_b(&sleeper, 1000);
	settle(nodes[B].lanes.lanes[0]);
	for (int64_t i = 0; !is_done(&sleeper); i++)
		notify_offered(nodes[A].notify, (struct offer){i + 100, 1 + (uint32_t)i});
}

/* What comes in while a node tells is heard now, and not when something else comes in. */
static void both_tell_at_once(void **state)
{
	enum { ROUNDS = 200, SOON_MS = 8000 }; /* by itself a node looks every ten seconds */
	int64_t worst_ms = 0;

	(void)state;
	start_both();
	for (int64_t i = 1; i <= ROUNDS; i++) {
		struct mono_time before = clock_mono(clock_system());
		uint64_t heard_a = heard(A), heard_b = heard(B);
		int64_t ms;

		notify_woke(nodes[A].notify, &i, 1);
		notify_woke(nodes[B].notify, &i, 1);
		AWAIT(heard(A) > heard_a);
		AWAIT(heard(B) > heard_b);
		ms = (clock_mono(clock_system()).ns - before.ns) / 1000000;
		worst_ms = ms > worst_ms ? ms : worst_ms;
	}
	printf("# notify: two nodes that tell at once hear each other within %lld ms\n", (long long)worst_ms);
	assert_true(worst_ms < SOON_MS);
}

/* All that is woken while one notification is held back travels together. */
static void a_busy_node_tells_seldom(void **state)
{
	enum { N = 500 };
	static struct caller movers[N];
	struct mono_time before;
	int64_t ms;

	(void)state;
	start_both();
	before = clock_mono(clock_system());
	for (int64_t i = 0; i < N; i++) {
		caller_probe(&movers[i], build_create, 1 + i, 0);
		submit(lanes_of(&nodes[A].lanes, 1 + i), &movers[i]);
		if (i % 50 == 49)
			AWAIT(count_done(movers, N) >= (size_t)i + 1);
	}
	AWAIT(count_done(movers, N) == N);
	ms = (clock_mono(clock_system()).ns - before.ns) / 1000000;
	assert_true(sent(A) >= 1);
	assert_true((int64_t)sent(A) <= ms / 5 + 2);
}

/* ---- lost sessions ---- */

static void a_lost_session_comes_back_and_wakes_everybody(void **state)
{
	static struct caller sleepers[2];
	PGconn *raw;

	(void)state;
	proxy = pg_proxy_new(store_pg_port());
	assert_non_null(proxy);
	start_both();
	raw = store_raw(store);
	for (size_t i = 0; i < 2; i++)
		sleep_on_b(&sleepers[i], 50 + (int64_t)i); /* nobody will tell these */
	settle(nodes[B].lanes.lanes[0]);
	settle(nodes[B].lanes.lanes[1]);
	pg_proxy_drop(proxy);
	for (size_t i = 0; i < 2; i++)
		AWAIT(sleepers[i].done);
	/* And from then on it hears again. The server may take a moment to let the old session go. */
	raw_await(raw, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'listener-b'", "1");
	sleep_on_b(&sleepers[0], 60);
	create(A, 60);
	AWAIT(sleepers[0].done);
	PQfinish(raw);
}

/* While nobody can be told, commits go on; what was missed is told as "everybody". */
static void what_could_not_be_told_is_told_later(void **state)
{
	static struct caller sleeper;

	(void)state;
	proxy = pg_proxy_new(store_pg_port());
	assert_non_null(proxy);
	start_both();
	for (int64_t i = 0; i < 20; i++) { /* now the session of B is there, now it is not */
		caller_sleep(&sleeper, clock_wall(clock_system()).ms + FAR_AWAY_MS, 200 + i);
		submit(nodes[A].lanes.lanes[0], &sleeper);
		settle(nodes[A].lanes.lanes[0]);
		pg_proxy_drop(proxy);
		create(B, 200 + i);
		AWAIT(sleeper.done);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_commit_on_one_node_wakes_the_other, tear_down),
		cmocka_unit_test_teardown(a_node_does_not_hear_itself, tear_down),
		cmocka_unit_test_teardown(others_sleep_on, tear_down),
		cmocka_unit_test_teardown(too_many_topics_wake_everybody, tear_down),
		cmocka_unit_test_teardown(an_offer_wakes_one_and_the_node_itself_first, tear_down),
		cmocka_unit_test_teardown(offers_at_too_many_stands_wake_everybody, tear_down),
		cmocka_unit_test_teardown(both_tell_at_once, tear_down),
		cmocka_unit_test_teardown(a_busy_node_tells_seldom, tear_down),
		cmocka_unit_test_teardown(a_lost_session_comes_back_and_wakes_everybody, tear_down),
		cmocka_unit_test_teardown(what_could_not_be_told_is_told_later, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
