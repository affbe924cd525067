/*
 * The gate's proxy when its store fails: a store in memory behind a switch that makes some asks fail, before or after they
 * were carried out, as a lost connection would.
 */
#include "http/proxy_test.h"
#include "wire/loop.h"

#define BODILESS_BYTES GATE_RESPONSE_BYTES_MIN

static struct {
	struct gate_store store; /* what the proxy gets */
	struct gate_store *memory;
	_Atomic unsigned failing; /* bits of the gate_op that fail */
	_Atomic bool after;       /* they are carried out, and the answer is lost */
	_Atomic size_t fit_max;   /* completions with a longer response fail too */
	_Atomic int64_t slow_ms;  /* what each ask takes */
	_Atomic unsigned asked[GATE_SWEEP + 1];
} broken;

struct relay {
	struct gate_ticket ticket;
	struct gate_ticket *outer;
};

static bool fails(const struct gate_ask *ask)
{
	return broken.failing & 1u << ask->op || (ask->op == GATE_COMPLETE && ask->response.n > broken.fit_max);
}

static void relayed(struct gate_ticket *ticket)
{
	struct gate_ticket *outer = CONTAINER_OF(ticket, struct relay, ticket)->outer;

	outer->reply = ticket->reply;
	if (fails(&ticket->ask))
		outer->reply = (struct gate_reply){.verdict = GATE_UNAVAILABLE};
	gate_ticket_done(outer);
	free(CONTAINER_OF(ticket, struct relay, ticket));
}

static void ask(struct gate_store *store, struct gate_ticket *ticket)
{
	struct relay *relay;

	(void)store;
	broken.asked[ticket->ask.op]++;
	nanosleep(&(struct timespec){.tv_nsec = broken.slow_ms * 1000000}, NULL);
	if (fails(&ticket->ask) && !broken.after) {
		ticket->reply = (struct gate_reply){.verdict = GATE_UNAVAILABLE};
		gate_ticket_done(ticket);
		return;
	}
	relay = calloc(1, sizeof *relay);
	relay->outer = ticket;
	relay->ticket.ask = ticket->ask;
	relay->ticket.done = relayed;
	gate_ask(broken.memory, &relay->ticket);
}

static void release(struct gate_store *store)
{
	(void)store;
	gate_store_free(broken.memory);
}

static const struct gate_store_kind broken_kind = {.name = "broken", .ask = ask, .free = release};

static int up(void **state)
{
	struct hx_error err;

	(void)state;
	broken.store = (struct gate_store){.kind = &broken_kind, .clock = clock_system()};
	broken.failing = 0;
	broken.after = false;
	broken.fit_max = SIZE_MAX;
	broken.slow_ms = 0;
	for (size_t i = 0; i <= GATE_SWEEP; i++)
		broken.asked[i] = 0;
	assert_int_equal(gate_memory_new(1000, 16u << 20, clock_system(), &broken.memory, &err), HX_OK);
	gate.store = &broken.store;
	gate_up("{\"upstream_timeout\":\"2s\",\"max_stored_bytes\":1000,"
		"\"routes\":[{\"match\":\"POST /brief\",\"processing_ttl\":\"500ms\",\"upstream_timeout\":\"400ms\"},"
		"{\"match\":\"POST /spell\",\"processing_ttl\":\"1500ms\",\"upstream_timeout\":\"1s\"}]}");
	return 0;
}

static int down(void **state)
{
	(void)state;
	gate_down();
	return 0;
}

static void without_a_store_nothing_is_forwarded(void **state)
{
	(void)state;
	broken.failing = 1u << GATE_ACQUIRE | 1u << GATE_REMOVE;
	for (int after = 0; after < 2; after++) {
		broken.after = after;
		struct reply reply = post("/x", "k", "x");
		assert_int_equal(reply.status, 503);
		assert_non_null(strstr(reply.body.p, "STORE_UNAVAILABLE"));
		assert_non_null(reply_field(&reply, "Retry-After"));
		assert_no_field(&reply, "Idempotency-Status");
		reply_release(&reply);
	}
	assert_int_equal(seen_count(), 0);
	assert_int_equal(gate_stats().outcomes[HX_GATE_STORE_ERROR], 2);
	/* The removal that follows an acquisition in doubt has taken back what was taken after all. */
	broken.failing = 0;
	expect_post("/x", "k", "another body", 201, "created");
}

static void an_answer_that_cannot_be_stored_is_given_and_stored_later(void **state)
{
	(void)state;
	broken.failing = 1u << GATE_COMPLETE;
	expect_post("/x", "k", "x", 201, "unstored");
	expect_post("/x", "k", "x", 409, "conflict");
	AWAIT(broken.asked[GATE_COMPLETE] >= 3);
	assert_int_equal(gate_stats().storing, 1);
	broken.failing = 0;
	AWAIT(gate_stats().storing == 0);
	struct reply reply = post("/x", "k", "x");
	assert_field(&reply, "Idempotency-Status", "replayed");
	assert_string_equal(reply.body.p, "hello");
	reply_release(&reply);
	assert_int_equal(seen_count(), 1);
}

static void an_answer_whose_storing_was_in_doubt_is_replayed(void **state)
{
	(void)state;
	broken.failing = 1u << GATE_COMPLETE;
	broken.after = true;
	expect_post("/x", "k", "x", 201, "unstored");
	expect_post("/x", "k", "x", 201, "replayed");
	broken.failing = 0;
	AWAIT(gate_stats().storing == 0);
	assert_int_equal(seen_count(), 1);
}

static void storing_is_given_up_with_the_lease(void **state)
{
	(void)state;
	broken.failing = 1u << GATE_COMPLETE;
	expect_post("/spell", "k", "x", 201, "unstored");
	AWAIT(gate_stats().storing == 0);
	broken.failing = 0;
	for (int status = 409; status == 409;) {
		struct reply reply = post("/spell", "k", "x");

		status = reply.status;
		reply_release(&reply);
		nap();
	}
	assert_int_equal(seen_count(), 2); /* after the lease nobody knows any more that it was done */
}

static void a_store_that_never_takes_the_body_learns_that_it_was_done(void **state)
{
	struct reply reply;

	(void)state;
	broken.fit_max = BODILESS_BYTES;
	expect_post("/spell", "k", "x", 201, "unstored");
	AWAIT(gate_stats().storing == 0);
	reply = post("/spell", "k", "x");
	assert_int_equal(reply.status, 409);
	assert_non_null(strstr(reply.body.p, "RESPONSE_NOT_STORED"));
	reply_release(&reply);
	assert_int_equal(seen_count(), 1);
}

/* The record keeps what was stored first, and so must whoever answers for it. */
static void a_body_that_was_stored_in_doubt_outlives_the_last_try(void **state)
{
	(void)state;
	gate_store_recall(&broken.store);
	broken.fit_max = BODILESS_BYTES;
	broken.after = true;
	expect_post("/spell", "k", "x", 201, "unstored");
	AWAIT(gate_stats().storing == 0);
	expect_post("/spell", "k", "x", 201, "replayed");
	assert_int_equal(seen_count(), 1);
}

static void a_large_answer_that_cannot_be_noted_is_streamed_all_the_same(void **state)
{
	static char text[5000];
	int n = snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nContent-Length: 3000\r\n\r\n");
	struct reply reply;

	(void)state;
	memset(text + n, 'x', 3000);
	upstream_play((struct script){.bytes = text, .n = (size_t)n + 3000});
	broken.failing = 1u << GATE_COMPLETE;
	reply = post("/x", "k", "x");
	assert_true(reply.complete);
	assert_field(&reply, "Idempotency-Status", "unstored");
	assert_int_equal(reply.body.n, 3000);
	reply_release(&reply);
	broken.failing = 0;
	AWAIT(gate_stats().storing == 0);
	reply = post("/x", "k", "x");
	assert_int_equal(reply.status, 409);
	assert_non_null(strstr(reply.body.p, "RESPONSE_NOT_STORED"));
	reply_release(&reply);
}

static void a_key_that_cannot_be_let_go_is_held_by_its_lease(void **state)
{
	(void)state;
	broken.failing = 1u << GATE_REMOVE;
	upstream_play(SCRIPT("HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nno"));
	expect_post("/x", "k", "x", 500, NULL);
	expect_post("/x", "k", "x", 409, "conflict");
	assert_int_equal(seen_count(), 1);
}

/* When the store has taken as long as the lease lasts, another may be at work with the key already. */
static void nothing_is_sent_that_begins_too_late(void **state)
{
	(void)state;
	broken.slow_ms = 600;
	expect_post("/brief", "k", "x", 502, NULL);
	assert_int_equal(seen_count(), 0);
	assert_int_equal(gate_stats().outcomes[HX_GATE_RELEASED], 1);
}

/* What is still to be stored keeps a stop waiting as long as it may, and is then let go. */
static void a_stop_does_not_wait_for_ever(void **state)
{
	int64_t from_ms;

	(void)state;
	broken.failing = 1u << GATE_COMPLETE;
	expect_post("/x", "k", "x", 201, "unstored");
	from_ms = now_ms();
	http_server_stop(server, 300);
	assert_true(now_ms() - from_ms >= 250 && now_ms() - from_ms < 30000);
	assert_int_equal(gate_stats().storing, 1);
}

static void a_stop_cuts_off_what_hangs(void **state)
{
	int fd = client_open(), other = client_open();

	(void)state;
	upstream_play(SCRIPT(ANSWER_OK, .hold = true));
	say_post(fd, "/x", "k", "x");
	client_say(other, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	AWAIT(seen_count() == 2);
	http_server_stop(server, 100);
	expect_closed(fd);
	expect_closed(other);
	upstream_release();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_a_store_nothing_is_forwarded),
		TEST(an_answer_that_cannot_be_stored_is_given_and_stored_later),
		TEST(an_answer_whose_storing_was_in_doubt_is_replayed),
		TEST(storing_is_given_up_with_the_lease),
		TEST(a_store_that_never_takes_the_body_learns_that_it_was_done),
		TEST(a_body_that_was_stored_in_doubt_outlives_the_last_try),
		TEST(a_large_answer_that_cannot_be_noted_is_streamed_all_the_same),
		TEST(a_key_that_cannot_be_let_go_is_held_by_its_lease),
		TEST(nothing_is_sent_that_begins_too_late),
		TEST(a_stop_does_not_wait_for_ever),
		TEST(a_stop_cuts_off_what_hangs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
