/*
 * What only Redis can do to a gate: fall silent, lose an answer, lose its scripts, kill a connection, refuse. What all
 * stores do alike is in tests/contract. Needs the private Redis of tests/with-redis.
 */
#include "unit/gate/redis_gate.h"

/* ---- lost answers ---- */

/* Between the gate and the server: passes bytes on, and while it is armed drops answers, with their connection. */
struct thief {
	int listener;
	char url[1024];
	pthread_t thread;
	_Atomic int armed, stolen;
};

static int connect_to_server(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons((uint16_t)atoi(url_of_server().at.port)),
				      .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)!connect(fd, (struct sockaddr *)&address, sizeof address); /* what follows then fails */
	return fd;
}

/* False: the end of this connection. */
static bool pass_on(int from, int to)
{
	char bytes[65536];
	ssize_t n = read(from, bytes, sizeof bytes);

	return n > 0 && send(to, bytes, (size_t)n, MSG_NOSIGNAL) == n;
}

static void serve_one(struct thief *thief, int client)
{
	int server = connect_to_server();
	struct pollfd fds[2] = {{.fd = client, .events = POLLIN}, {.fd = server, .events = POLLIN}};
	bool goes_on = true;

	while (goes_on && poll(fds, 2, -1) > 0) {
		if (fds[1].revents && atomic_load(&thief->armed) > 0) {
			atomic_fetch_sub(&thief->armed, 1);
			atomic_fetch_add(&thief->stolen, 1);
			goes_on = false;
		} else if (fds[1].revents) {
			goes_on = pass_on(server, client);
		} else {
			goes_on = pass_on(client, server);
		}
	}
	close(server);
	close(client);
}

static void *steal(void *context)
{
	struct thief *thief = context;
	int client;

	while ((client = accept(thief->listener, NULL, NULL)) >= 0)
		serve_one(thief, client);
	return NULL;
}

static void thief_start(struct thief *thief)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t n = sizeof address;

	thief->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(thief->listener, (struct sockaddr *)&address, n), 0);
	assert_int_equal(listen(thief->listener, 5), 0);
	assert_int_equal(getsockname(thief->listener, (struct sockaddr *)&address, &n), 0);
	snprintf(thief->url, sizeof thief->url, "redis://:%s@127.0.0.1:%d/0", url_of_server().password,
		 ntohs(address.sin_port));
	assert_int_equal(pthread_create(&thief->thread, NULL, steal, thief), 0);
}

/* When the store that went through it has gone. */
static void thief_stop(struct thief *thief)
{
	shutdown(thief->listener, SHUT_RDWR); /* wakes accept() */
	pthread_join(thief->thread, NULL);
	close(thief->listener);
}

static void a_lost_answer_is_asked_for_again(void **state)
{
	struct hx_gate_claim claim = claim_of(1, 0, LONG_MS, LONG_MS), removed = claim_of(2, 0, LONG_MS, LONG_MS);
	struct thief thief = {0};
	struct gate_store *through;

	(void)state;
	thief_start(&thief);
	through = open_url(thief.url);
	atomic_store(&thief.armed, 1);
	assert_int_equal(hear_acquire(through, &claim, &heard), GATE_ACQUIRED); /* its own, and not in flight */
	assert_int_equal(atomic_load(&thief.stolen), 1);
	assert_int_equal(others_hear(&claim), GATE_IN_FLIGHT);
	atomic_store(&thief.armed, 1);
	assert_int_equal(hear_complete(through, &claim, slice_str("once")), GATE_DONE);
	assert_int_equal(others_hear(&claim), GATE_COMPLETED);
	assert_true(heard_is(&heard, slice_str("once")));
	assert_int_equal(acquire(&removed), GATE_ACQUIRED);
	atomic_store(&thief.armed, 1);
	assert_int_equal(hear_remove(through, &removed), GATE_DONE);
	assert_int_equal(others_hear(&removed), GATE_ACQUIRED);
	assert_int_equal(atomic_load(&thief.stolen), 3);
	gate_store_free(through);
	thief_stop(&thief);
}

/* The opening words of the next connection are lost too: that is the end of the patience, but not of the store. */
static void lost_twice_is_unavailable(void **state)
{
	struct hx_gate_claim claim = claim_of(1, 0, LONG_MS, LONG_MS);
	struct thief thief = {0};
	struct gate_store *through;

	(void)state;
	thief_start(&thief);
	through = open_url(thief.url);
	atomic_store(&thief.armed, 2);
	assert_int_equal(hear_acquire(through, &claim, &heard), GATE_UNAVAILABLE);
	assert_int_equal(others_hear(&claim), GATE_IN_FLIGHT); /* perhaps it was done: it was */
	AWAIT(BACK_MS_MAX, hear_acquire(through, &claim, &heard) != GATE_UNAVAILABLE);
	assert_int_equal(heard.reply.verdict, GATE_ACQUIRED);
	gate_store_free(through);
	thief_stop(&thief);
}

/* A whole pipeline is lost: each of its asks is repeated, and nobody is told anything else. */
static void a_lost_pipeline_loses_nobody(void **state)
{
	static struct question questions[100];
	struct thief thief = {0};
	struct gate_store *through;

	(void)state;
	thief_start(&thief);
	through = open_url(thief.url);
	atomic_store(&thief.armed, 1);
	for (unsigned i = 0; i < 100; i++) {
		struct hx_gate_claim claim = claim_of(i, 0, LONG_MS, LONG_MS);
		struct gate_ask ask = ask_of(GATE_ACQUIRE, &claim);

		question_send(&questions[i], through, &ask);
	}
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(question_await(&questions[i])->reply.verdict, GATE_ACQUIRED);
	assert_int_equal(atomic_load(&thief.stolen), 1);
	gate_store_free(through);
	thief_stop(&thief);
}

/* ---- silence ---- */

static void silence_is_unavailable(void **state)
{
	static struct question questions[CROWD];
	struct hx_gate_claim begun = claim_of(CROWD, 0, LONG_MS, LONG_MS);
	int64_t start_ms, ms;

	(void)state;
	assert_int_equal(acquire(&begun), GATE_ACQUIRED);
	redis_ctl("pause");
	start_ms = await_now_ms();
	for (unsigned i = 0; i < CROWD; i++) {
		struct hx_gate_claim claim = claim_of(i, 0, LONG_MS, LONG_MS);
		struct gate_ask ask = ask_of(GATE_ACQUIRE, &claim);

		question_send(&questions[i], store, &ask);
	}
	for (unsigned i = 0; i < CROWD; i++)
		assert_int_equal(question_await(&questions[i])->reply.verdict, GATE_UNAVAILABLE);
	ms = await_now_ms() - start_ms;
	print_message("# %d asks of a silent server answered in %lld ms\n", CROWD, (long long)ms);
	assert_true(ms < DOWN_MS_MAX);
	start_ms = await_now_ms();
	for (unsigned i = 0; i < 100; i++) /* known to be down: at once */
		assert_int_equal(hear_complete(store, &begun, slice_str("in vain")), GATE_UNAVAILABLE);
	assert_true(await_now_ms() - start_ms < DOWN_MS_MAX);
	redis_ctl("continue");
	AWAIT(BACK_MS_MAX, hear_complete(store, &begun, slice_str("now")) != GATE_UNAVAILABLE);
	assert_int_equal(others_hear(&begun), GATE_COMPLETED);
	assert_true(heard_is(&heard, slice_str("now")));
}

/* ---- the queue ---- */

static pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool at_the_door;

/* What nobody else may do: it keeps the worker from its work. */
static void wait_at_the_door(struct gate_ticket *ticket)
{
	(void)ticket;
	atomic_store(&at_the_door, true);
	pthread_mutex_lock(&door);
	pthread_mutex_unlock(&door);
}

/* One more than it takes is told so at once; but what ends something that has begun is never kept out. */
static void a_full_queue_lets_nobody_begin(void **state)
{
	struct question *questions = calloc(QUEUE_MAX + 2, sizeof *questions);
	struct hx_gate_claim begun = claim_of(QUEUE_MAX + 2, 0, LONG_MS, LONG_MS);
	struct gate_ask end = ask_of(GATE_COMPLETE, &begun);
	static struct gate_ticket ticket;
	bool last, one_more, ended;

	(void)state;
	assert_non_null(questions);
	ticket = (struct gate_ticket){.ask = ask_of(GATE_ACQUIRE, &begun), .done = wait_at_the_door};
	pthread_mutex_lock(&door);
	gate_ask(store, &ticket);
	AWAIT(BACK_MS_MAX, atomic_load(&at_the_door));
	for (unsigned i = 0; i <= QUEUE_MAX; i++) {
		struct hx_gate_claim claim = claim_of(i, 0, LONG_MS, LONG_MS);
		struct gate_ask ask = ask_of(GATE_ACQUIRE, &claim);

		question_send(&questions[i], store, &ask);
	}
	end.response = slice_str("end");
	question_send(&questions[QUEUE_MAX + 1], store, &end);
	last = question_is_answered(&questions[QUEUE_MAX - 1]);
	one_more = question_is_answered(&questions[QUEUE_MAX]);
	ended = question_is_answered(&questions[QUEUE_MAX + 1]);
	pthread_mutex_unlock(&door); /* before anything can fail: the worker waits for it */
	assert_false(last);
	assert_true(one_more);
	assert_false(ended);
	assert_int_equal(question_await(&questions[QUEUE_MAX])->reply.verdict, GATE_UNAVAILABLE);
	for (unsigned i = 0; i < QUEUE_MAX; i++)
		assert_int_equal(question_await(&questions[i])->reply.verdict, GATE_ACQUIRED);
	assert_int_equal(question_await(&questions[QUEUE_MAX + 1])->reply.verdict, GATE_DONE);
	free(questions);
}

/* Large bodies go in pipelines of a few; more of them than a pipeline may hold in bytes all arrive. */
static void many_large_bodies_are_stored_and_replayed(void **state)
{
	static struct question questions[LARGE];
	struct hx_gate_claim claims[LARGE];
	char *body = malloc(LARGE_BYTES);

	(void)state;
	assert_non_null(body);
	memset(body, '\r', LARGE_BYTES);
	for (unsigned i = 0; i < LARGE; i++) {
		claims[i] = claim_of(i, 0, LONG_MS, LONG_MS);
		assert_int_equal(acquire(&claims[i]), GATE_ACQUIRED);
	}
	for (unsigned i = 0; i < LARGE; i++) {
		struct gate_ask ask = ask_of(GATE_COMPLETE, &claims[i]);

		ask.response = slice_of(body, LARGE_BYTES);
		question_send(&questions[i], store, &ask);
	}
	for (unsigned i = 0; i < LARGE; i++)
		assert_int_equal(question_await(&questions[i])->reply.verdict, GATE_DONE);
	for (unsigned i = 0; i < LARGE; i++) {
		struct gate_ask ask = ask_of(GATE_ACQUIRE, &claims[i]);

		question_send(&questions[i], store, &ask);
	}
	for (unsigned i = 0; i < LARGE; i++) {
		assert_int_equal(question_await(&questions[i])->reply.verdict, GATE_COMPLETED);
		assert_true(heard_is(&questions[i].heard, slice_of(body, LARGE_BYTES)));
	}
	free(body);
}

/* ---- the end ---- */

static void freeing_answers_what_waits(void **state)
{
	static struct question questions[200];
	struct gate_store *other = open_url(redis_server_url());
	int64_t start_ms;

	(void)state;
	redis_ctl("pause");
	for (unsigned i = 0; i < 200; i++) {
		struct hx_gate_claim claim = claim_of(i, 0, LONG_MS, LONG_MS);
		struct gate_ask ask = ask_of(GATE_ACQUIRE, &claim);

		question_send(&questions[i], other, &ask);
	}
	start_ms = await_now_ms();
	gate_store_free(other);
	assert_true(await_now_ms() - start_ms < DOWN_MS_MAX);
	for (unsigned i = 0; i < 200; i++) {
		assert_true(question_is_answered(&questions[i]));
		assert_int_equal(questions[i].heard.reply.verdict, GATE_UNAVAILABLE);
	}
}

static void freeing_carries_out_what_waits(void **state)
{
	static struct question questions[200];
	struct gate_store *other = open_url(redis_server_url());

	(void)state;
	for (unsigned i = 0; i < 200; i++) {
		struct hx_gate_claim claim = claim_of(i, 0, LONG_MS, LONG_MS);
		struct gate_ask ask = ask_of(GATE_ACQUIRE, &claim);

		question_send(&questions[i], other, &ask);
	}
	gate_store_free(other);
	for (unsigned i = 0; i < 200; i++) {
		assert_true(question_is_answered(&questions[i]));
		assert_int_equal(questions[i].heard.reply.verdict, GATE_ACQUIRED);
	}
}

/* ---- what a server may lose, and what not ---- */

static void scripts_may_be_flushed(void **state)
{
	static struct question questions[20];

	(void)state;
	raw_do("SCRIPT", "FLUSH", NULL, NULL);
	for (unsigned i = 0; i < 20; i++) {
		struct hx_gate_claim claim = claim_of(i, 0, LONG_MS, LONG_MS);
		struct gate_ask ask = ask_of(GATE_ACQUIRE, &claim);

		question_send(&questions[i], store, &ask);
	}
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(question_await(&questions[i])->reply.verdict, GATE_ACQUIRED);
}

static void killed_connections_come_back(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		struct hx_gate_claim claim = claim_of(i, 0, LONG_MS, LONG_MS);

		assert_int_equal(acquire(&claim), GATE_ACQUIRED);
		raw_do("CLIENT", "KILL", "TYPE", "normal");
		assert_int_equal(hear_complete(store, &claim, slice_str("done")), GATE_DONE);
		assert_int_equal(others_hear(&claim), GATE_COMPLETED);
	}
}

static void a_killed_server_keeps_what_it_acknowledged(void **state)
{
	struct hx_gate_claim done = claim_of(1, 0, LONG_MS, LONG_MS), working = claim_of(2, 0, LONG_MS, LONG_MS);
	struct hx_gate_claim held = claim_of(3, 0, 1, 1);

	(void)state;
	assert_true(durable);
	held.hold = 1;
	assert_int_equal(acquire(&done), GATE_ACQUIRED);
	assert_int_equal(acquire(&working), GATE_ACQUIRED);
	assert_int_equal(acquire(&held), GATE_ACQUIRED);
	assert_int_equal(hear_complete(store, &done, slice_str("kept")), GATE_DONE);
	redis_ctl("restart immediate");
	AWAIT(BACK_MS_MAX, others_hear(&done) != GATE_UNAVAILABLE);
	assert_int_equal(heard.reply.verdict, GATE_COMPLETED);
	assert_true(heard_is(&heard, slice_str("kept")));
	assert_int_equal(others_hear(&working), GATE_IN_FLIGHT);
	assert_int_equal(others_hear(&held), GATE_HELD);
}

/* Redis removes what has ended by itself, so each key must have its end, and one that holds none. */
static void every_key_has_its_end(void **state)
{
	struct hx_gate_claim claim = claim_of(1, 0, LONG_MS, 2 * LONG_MS), held = claim_of(2, 0, 1, LONG_MS), taker;

	(void)state;
	assert_int_equal(acquire(&claim), GATE_ACQUIRED);
	assert_in_range(ttl_of(&claim), 2 * LONG_MS + 1, 3 * LONG_MS);
	assert_int_equal(hear_complete(store, &claim, slice_str("done")), GATE_DONE);
	assert_in_range(ttl_of(&claim), 1, 2 * LONG_MS);
	assert_int_equal(acquire(&held), GATE_ACQUIRED);
	taker = claim_by_another(&held);
	taker.hold = 1;
	AWAIT(BACK_MS_MAX, acquire(&taker) == GATE_ACQUIRED); /* which takes its end away */
	assert_int_equal(ttl_of(&held), -1);
	assert_int_equal(hear_complete(store, &taker, slice_str("done")), GATE_DONE);
	assert_in_range(ttl_of(&held), 1, LONG_MS);
}

/* ---- what it says of itself, and to whom ---- */

static void reopen(void)
{
	gate_store_free(store);
	store = open_url(redis_server_url());
}

static void durable_is_what_syncs_and_never_evicts(void **state)
{
	static const char *const settings[][3] = {{"appendfsync", "everysec", "always"},
						  {"appendonly", "no", "yes"},
						  {"maxmemory-policy", "allkeys-lru", "noeviction"}};
	(void)state;
	assert_true(durable);
	for (size_t i = 0; i < 3; i++) {
		raw_do("CONFIG", "SET", settings[i][0], settings[i][1]);
		reopen();
		assert_false(durable);
		raw_do("CONFIG", "SET", settings[i][0], settings[i][2]);
		reopen();
		assert_true(durable);
	}
}

/* Who may not ask for the configuration is served all the same. */
static void a_refused_config_is_not_durable(void **state)
{
	struct hx_gate_claim claim = claim_of(1, 0, LONG_MS, LONG_MS);
	char url[256];

	(void)state;
	freeReplyObject(RAW(slice_str("ACL"), slice_str("SETUSER"), slice_str("gate"), slice_str("on"),
			    slice_str(">pw"), slice_str("~hapax:gate:*"), slice_str("+@all"), slice_str("-config")));
	snprintf(url, sizeof url, "redis://gate:pw@127.0.0.1:%s/0", url_of_server().at.port);
	gate_store_free(store);
	store = open_url(url);
	assert_false(durable);
	assert_int_equal(acquire(&claim), GATE_ACQUIRED);
	raw_do("ACL", "DELUSER", "gate", "nobody");
}

static void bad_urls_and_refusals_are_configuration_errors(void **state)
{
	static const char *const urls[] = {"", "redis://", "http://:sesame@h/", "redis://:sesame@127.0.0.1:%s/0",
					   "redis://127.0.0.1:%s/0"};
	(void)state;
	for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
		struct gate_store *none = NULL;
		struct hx_error err = {0};
		char url[256];

		snprintf(url, sizeof url, urls[i], url_of_server().at.port);
		assert_int_equal(gate_redis_new(url, clock_system(), &none, &durable, &err), HX_CONFIG_ERROR);
		assert_int_equal(err.code, HX_CONFIG_ERROR);
		assert_null(none);
		assert_null(strstr(err.detail, "sesame"));
	}
}

/* As with every other store: who begins without it has most likely been given the wrong address. */
static void nobody_there_is_refused(void **state)
{
	struct gate_store *none = NULL;
	struct hx_error err = {0};

	(void)state;
	assert_int_equal(gate_redis_new("redis://:sesame@127.0.0.1:1/0", clock_system(), &none, &durable, &err),
			 HX_STORE_UNAVAILABLE);
	assert_non_null(strstr(err.detail, "127.0.0.1:1"));
	assert_null(strstr(err.detail, "sesame"));
	assert_null(none);
}

/* Full: what cannot be written is said, and what is there stays. */
static void a_server_that_refuses_to_write_is_unavailable(void **state)
{
	struct hx_gate_claim claim = claim_of(1, 0, LONG_MS, LONG_MS), more = claim_of(2, 0, LONG_MS, LONG_MS);

	(void)state;
	assert_int_equal(acquire(&claim), GATE_ACQUIRED);
	raw_do("CONFIG", "SET", "maxmemory", "1");
	assert_int_equal(acquire(&more), GATE_UNAVAILABLE);
	assert_int_equal(others_hear(&claim), GATE_IN_FLIGHT);
	assert_int_equal(hear_complete(store, &claim, slice_str("no room")), GATE_UNAVAILABLE);
	raw_do("CONFIG", "SET", "maxmemory", "0");
	assert_int_equal(acquire(&more), GATE_ACQUIRED);
	assert_int_equal(hear_complete(store, &claim, slice_str("room")), GATE_DONE);
	assert_int_equal(others_hear(&claim), GATE_COMPLETED);
	assert_true(heard_is(&heard, slice_str("room")));
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_lost_answer_is_asked_for_again),
		TEST(lost_twice_is_unavailable),
		TEST(a_lost_pipeline_loses_nobody),
		TEST(silence_is_unavailable),
		TEST(a_full_queue_lets_nobody_begin),
		TEST(many_large_bodies_are_stored_and_replayed),
		TEST(freeing_answers_what_waits),
		TEST(freeing_carries_out_what_waits),
		TEST(scripts_may_be_flushed),
		TEST(killed_connections_come_back),
		TEST(a_killed_server_keeps_what_it_acknowledged),
		TEST(every_key_has_its_end),
		TEST(durable_is_what_syncs_and_never_evicts),
		TEST(a_refused_config_is_not_durable),
		TEST(bad_urls_and_refusals_are_configuration_errors),
		TEST(nobody_there_is_refused),
		TEST(a_server_that_refuses_to_write_is_unavailable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
