/* The gate's proxy: what a client gets, and what the upstream sees, by the rules of the gate. */
#include "http/proxy_test.h"

static int up(void **state)
{
	(void)state;
	gate_up("{\"upstream_timeout\":\"2s\",\"processing_ttl\":\"60s\",\"max_stored_bytes\":100000,"
		"\"routes\":[{\"match\":\"POST /opt/*\",\"required\":false},"
		"{\"match\":\"POST /free\",\"guard\":false},"
		"{\"match\":\"POST /small\",\"max_request_bytes\":10},"
		"{\"match\":\"POST /hasty\",\"read_timeout\":\"200ms\"},"
		"{\"match\":\"POST /cached\",\"cache_errors\":\"all\"},"
		"{\"match\":\"POST /quiet\",\"status_headers\":false},"
		"{\"match\":\"POST /brief\",\"processing_ttl\":\"1500ms\",\"upstream_timeout\":\"300ms\"},"
		"{\"match\":\"POST /slow\",\"processing_ttl\":\"200ms\"},"
		"{\"match\":\"POST /listed\",\"replay_headers\":[\"x-one\",\"server\"]},"
		"{\"match\":\"POST /hook\",\"key\":\"json:/id\"},"
		"{\"match\":\"POST /maybe\",\"key\":\"json:/id\",\"required\":false},"
		"{\"match\":\"POST /t\",\"tenant\":\"header:Authorization\"}]}");
	return 0;
}

static int down(void **state)
{
	(void)state;
	gate_down();
	return 0;
}

/* ---- the straight path ---- */

static void the_first_is_created_and_the_second_replayed(void **state)
{
	(void)state;
	upstream_play(
		SCRIPT("HTTP/1.1 201 Created\r\nContent-Type: text/x\r\nX-Id: 7\r\nSet-Cookie: a=b\r\nServer: s\r\n"
		       "Content-Length: 5\r\n\r\nhello"));
	struct reply first = post("/payments?a=b", "\"k-1\"", "{\"amount\":1}");
	struct reply second = post("/payments?c=d", "k-1", "{\"amount\":1.0}");

	assert_int_equal(first.status, 201);
	assert_field(&first, "Idempotency-Status", "created");
	assert_field(&first, "Set-Cookie", "a=b");
	assert_field(&first, "Via", "1.1 hapax");
	assert_no_field(&first, "Idempotency-Replayed");
	assert_int_equal(second.status, 201);
	assert_field(&second, "Idempotency-Status", "replayed");
	assert_field(&second, "Idempotency-Replayed", "true");
	assert_field(&second, "Content-Type", "text/x");
	assert_field(&second, "X-Id", "7");
	assert_no_field(&second, "Set-Cookie");
	assert_no_field(&second, "Server");
	assert_string_equal(second.body.p, "hello");
	assert_int_equal(seen_count(), 1);
	assert_int_equal(gate_stats().outcomes[HX_GATE_CREATED], 1);
	assert_int_equal(gate_stats().outcomes[HX_GATE_REPLAYED], 1);
	reply_release(&first);
	reply_release(&second);
}

static void binary_bodies_are_replayed_byte_for_byte(void **state)
{
	static char answer[4096 + 100];
	int n = snprintf(answer, sizeof answer,
			 "HTTP/1.1 200 OK\r\nContent-Type: image/x\r\nContent-Length: 4096\r\n\r\n");

	(void)state;
	for (int i = 0; i < 4096; i++)
		answer[n + i] = (char)(i * 31);
	upstream_play((struct script){.bytes = answer, .n = (size_t)n + 4096});
	for (int i = 0; i < 2; i++) {
		struct reply reply = post("/payments", "k", "x");

		assert_field(&reply, "Idempotency-Status", i ? "replayed" : "created");
		assert_int_equal(reply.body.n, 4096);
		assert_memory_equal(reply.body.p, answer + n, 4096);
		reply_release(&reply);
	}
	assert_int_equal(seen_count(), 1);
}

static void another_body_is_a_mismatch_also_while_the_first_is_in_flight(void **state)
{
	int first = client_open();

	(void)state;
	upstream_play(SCRIPT(ANSWER_OK, .hold = true));
	say_post(first, "/payments", "k", "{\"a\":1}");
	seen(0);
	expect_post("/payments", "k", "{\"a\":2}", 422, "mismatch");
	expect_post("/payments", "k", "{\"a\": 1}", 409, "conflict");
	upstream_release();
	expect_reply(first, 201, "hello");
	expect_post("/payments", "k", "{\"a\":2}", 422, "mismatch");
	expect_post("/payments", "k", "{\"a\":1}", 201, "replayed");
	assert_int_equal(seen_count(), 1);
	close(first);
}

static void a_conflict_says_when_to_come_back(void **state)
{
	int first = client_open();

	(void)state;
	upstream_play(SCRIPT(ANSWER_OK, .hold = true));
	say_post(first, "/payments", "k", "x");
	seen(0);
	struct reply reply = post("/payments", "k", "x");
	assert_int_equal(reply.status, 409);
	assert_true(atoi(reply_field(&reply, "Retry-After")) > 50 && atoi(reply_field(&reply, "Retry-After")) <= 60);
	assert_field(&reply, "Content-Type", "application/problem+json");
	assert_non_null(strstr(reply.body.p, "\"code\":\"IN_FLIGHT\""));
	reply_release(&reply);
	upstream_release();
	expect_reply(first, 201, "hello");
	close(first);
}

static void keys_count_per_method_and_path(void **state)
{
	(void)state;
	expect_post("/a", "k", "x", 201, "created");
	expect_post("/b", "k", "x", 201, "created");
	expect_post("/%61", "k", "x", 201, "created");
	expect_post("/a", "k", "x", 201, "replayed");
	assert_int_equal(seen_count(), 3);
}

static void tenants_are_kept_apart(void **state)
{
	static const char *const tenants[] = {"", "Authorization: \r\n", "Authorization: one\r\n",
					      "Authorization: two\r\n"};
	char text[400];

	(void)state;
	for (int round = 0; round < 2; round++)
		for (size_t i = 0; i < 4; i++) {
			int fd = client_open();

			snprintf(text, sizeof text,
				 "POST /t HTTP/1.1\r\nHost: a\r\n%sIdempotency-Key: k\r\nContent-Length: 1\r\n\r\nx",
				 tenants[i]);
			client_say(fd, text);
			struct reply reply = read_reply(fd, false);
			assert_field(&reply, "Idempotency-Status", round ? "replayed" : "created");
			reply_release(&reply);
			close(fd);
		}
	assert_int_equal(seen_count(), 4);
}

static void status_headers_can_be_hidden(void **state)
{
	(void)state;
	expect_post("/quiet", "k", "x", 201, NULL);
	struct reply reply = post("/quiet", "k", "x");
	assert_int_equal(reply.status, 201);
	assert_no_field(&reply, "Idempotency-Status");
	assert_no_field(&reply, "Idempotency-Replayed");
	reply_release(&reply);
	assert_int_equal(seen_count(), 1);
}

/* ---- keys ---- */

static void keys_are_required_or_not_but_never_malformed(void **state)
{
	static const char *const bad[] = {"\"\"", "\"a", "a b", "\"\\x\"", "\xc3\xa4", "a\r\nIdempotency-Key: a"};

	(void)state;
	struct reply reply = post("/payments", NULL, "x");
	assert_int_equal(reply.status, 400);
	assert_non_null(strstr(reply.body.p, "KEY_REQUIRED"));
	assert_non_null(strstr(reply.body.p, "send one in the header Idempotency-Key"));
	reply_release(&reply);
	expect_post("/opt/a", NULL, "x", 201, NULL);
	expect_post("/free", "\"a", "x", 201, NULL);
	assert_int_equal(seen_count(), 2);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		for (int optional = 0; optional < 2; optional++) {
			reply = post(optional ? "/opt/a" : "/payments", bad[i], "x");
			assert_int_equal(reply.status, 400);
			assert_non_null(strstr(reply.body.p, "KEY_INVALID"));
			reply_release(&reply);
		}
	assert_int_equal(seen_count(), 2);
	assert_int_equal(gate_stats().forwarded, 2);
	assert_int_equal(gate_stats().refused, 13);
}

static void a_key_may_be_in_the_body(void **state)
{
	(void)state;
	expect_post("/hook", NULL, "{\"id\":\"e\"}", 201, "created");
	expect_post("/hook", NULL, "{\"id\":\"e\"}", 201, "replayed");
	expect_post("/hook", NULL, "{}", 400, NULL);
	assert_int_equal(seen_count(), 1);
	expect_post("/maybe", NULL, "{}", 201, NULL);              /* no key, and none is needed */
	expect_post("/maybe", NULL, "{\"id\":\"e\",}", 400, NULL); /* what is no JSON may have one for others */
	assert_int_equal(seen_count(), 2);
}

/* ---- answers that are not stored ---- */

static void errors_are_passed_on_and_let_the_key_go(void **state)
{
	static const int statuses[] = {400, 404, 422, 500, 429, 503};
	static char text[200]; /* the upstream's thread reads it */

	(void)state;
	for (size_t i = 0; i < 6; i++) {
		upstream_hang_up(); /* it has read the text before */
		int n = snprintf(text, sizeof text, "HTTP/1.1 %d No\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\nno",
				 statuses[i]);
		upstream_play((struct script){.bytes = text, .n = (size_t)n});
		struct reply reply = post("/payments", "k", "x");
		assert_int_equal(reply.status, statuses[i]);
		assert_field(&reply, "Retry-After", "7");
		assert_no_field(&reply, "Idempotency-Status");
		assert_string_equal(reply.body.p, "no");
		reply_release(&reply);
	}
	upstream_play(SCRIPT(ANSWER_OK));
	expect_post("/payments", "k", "another body is fine, since nothing is kept", 201, "created");
	assert_int_equal(seen_count(), 7);
	assert_int_equal(gate_stats().outcomes[HX_GATE_RELEASED], 6);
}

static void errors_are_stored_where_that_is_wanted(void **state)
{
	(void)state;
	upstream_play(SCRIPT("HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nno"));
	expect_post("/cached", "k", "x", 500, "created");
	expect_post("/cached", "k", "x", 500, "replayed");
	upstream_play(SCRIPT("HTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\nno"));
	expect_post("/cached", "l", "x", 503, NULL);
	expect_post("/cached", "l", "x", 503, NULL);
	assert_int_equal(seen_count(), 3);
}

static void an_upstream_that_cannot_be_reached_lets_the_key_go(void **state)
{
	(void)state;
	upstream_shut();
	struct reply reply = post("/payments", "k", "x");
	assert_int_equal(reply.status, 502);
	assert_non_null(strstr(reply.body.p, "UPSTREAM_UNREACHABLE"));
	assert_no_field(&reply, "Idempotency-Status");
	reply_release(&reply);
	assert_int_equal(gate_stats().outcomes[HX_GATE_RELEASED], 1);
	upstream_open();
	expect_post("/payments", "k", "x", 201, "created");
	assert_int_equal(gate_stats().unknown, 0);
}

/* ---- outcomes that are not known ---- */

static const struct {
	const char *name;
	struct script script;
	int status;
} plays[] = {
	{"closed", {.bytes = "", .end = SCRIPT_CLOSE}, 502},
	{"reset", {.bytes = "", .end = SCRIPT_RESET}, 502},
	{"silent", {.bytes = "", .end = SCRIPT_STALL}, 504},
	{"half a head", {.bytes = "HTTP/1.1 200 OK\r\nX: y\r\n", .n = 23, .end = SCRIPT_CLOSE}, 502},
	{"half a head, silent", {.bytes = "HTTP/1.1 200 OK\r\nX: y\r\n", .n = 23, .end = SCRIPT_STALL}, 504},
	{"half a body",
	 {.bytes = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", .n = 42, .end = SCRIPT_CLOSE},
	 502},
	{"half a body, reset",
	 {.bytes = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", .n = 42, .end = SCRIPT_RESET},
	 502},
	{"half a body, silent",
	 {.bytes = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", .n = 42, .end = SCRIPT_STALL},
	 504},
	{"half a body of an error",
	 {.bytes = "HTTP/1.1 500 No\r\nContent-Length: 9\r\n\r\nhalf", .n = 42, .end = SCRIPT_CLOSE},
	 502},
	{"half a chunk",
	 {.bytes = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf", .n = 54, .end = SCRIPT_CLOSE},
	 502},
	{"no last chunk",
	 {.bytes = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", .n = 56, .end = SCRIPT_CLOSE},
	 502},
	{"reset instead of an end", {.bytes = "HTTP/1.1 200 OK\r\n\r\nhalf", .n = 23, .end = SCRIPT_RESET}, 502},
	{"not HTTP", {.bytes = "SSH-2.0-x\r\n", .n = 11, .end = SCRIPT_STALL}, 502},
};

static void what_is_not_known_holds_the_lease(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof plays / sizeof *plays; i++) {
		char key[20];

		upstream_hang_up();
		snprintf(key, sizeof key, "k%zu", i);
		upstream_play(plays[i].script);
		struct reply reply = post(plays[i].status == 504 ? "/brief" : "/payments", key, "x");
		if (reply.status != plays[i].status)
			fail_msg("%s: %s", plays[i].name, reply.text);
		assert_no_field(&reply, "Idempotency-Status");
		reply_release(&reply);
		upstream_play(SCRIPT(ANSWER_OK));
		if (plays[i].status == 502) /* the short lease of the others may be over by now */
			expect_post("/payments", key, "x", 409, "conflict");
		AWAIT(seen_count() == i + 1);
	}
	assert_int_equal(gate_stats().unknown, sizeof plays / sizeof *plays);
	assert_int_equal(gate_stats().outcomes[HX_GATE_CREATED], 0);
}

static void after_the_lease_the_same_key_is_sent_again(void **state)
{
	(void)state;
	upstream_play(SCRIPT("", .end = SCRIPT_STALL));
	expect_post("/brief", "k", "x", 504, NULL);
	expect_post("/brief", "k", "x", 409, "conflict");
	upstream_play(SCRIPT(ANSWER_OK));
	for (int status = 409; status == 409;) {
		struct reply reply = post("/brief", "k", "x");

		status = reply.status;
		reply_release(&reply);
		nap();
	}
	expect_post("/brief", "k", "x", 201, "replayed");
	assert_int_equal(seen_count(), 2);
	assert_non_null(strstr(seen(0), "Idempotency-Key: k\r\n"));
	assert_non_null(strstr(seen(1), "Idempotency-Key: k\r\n"));
}

static void a_late_owner_is_stale_and_leaves_the_record_alone(void **state)
{
	int late = client_open();
	struct reply reply;

	(void)state;
	upstream_play(SCRIPT("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate", .hold = true));
	say_post(late, "/slow", "k", "x");
	seen(0);
	upstream_play(SCRIPT(ANSWER_OK));
	for (int status = 409; status == 409;) {
		reply = post("/slow", "k", "x");
		status = reply.status;
		reply_release(&reply);
		nap();
	}
	upstream_release();
	reply = read_reply(late, false);
	assert_int_equal(reply.status, 200);
	assert_field(&reply, "Idempotency-Status", "stale");
	assert_string_equal(reply.body.p, "late");
	reply_release(&reply);
	reply = post("/slow", "k", "x");
	assert_field(&reply, "Idempotency-Status", "replayed");
	assert_string_equal(reply.body.p, "hello");
	reply_release(&reply);
	close(late);
}

/* ---- clients that leave ---- */

static void a_request_whose_client_has_gone_is_finished_and_stored(void **state)
{
	int fd = client_open();

	(void)state;
	upstream_play(SCRIPT(ANSWER_OK, .hold = true));
	say_post(fd, "/payments", "k", "x");
	seen(0);
	close(fd);
	AWAIT(stats_now().gone == 1);
	upstream_release();
	AWAIT(gate_stats().outcomes[HX_GATE_CREATED] == 1);
	expect_post("/payments", "k", "x", 201, "replayed");
}

static void a_request_that_is_not_complete_never_happened(void **state)
{
	int fd = client_open();

	(void)state;
	client_say(fd, "POST /payments HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nContent-Length: 10\r\n\r\nhalf");
	AWAIT(stats_now().connections_open == 1);
	close(fd);
	AWAIT(stats_now().connections_open == 0);
	assert_int_equal(seen_count(), 0);
	expect_post("/payments", "k", "x", 201, "created");
}

/* ---- limits ---- */

/* The others have ten seconds. */
static void a_route_may_give_less_time_for_a_request(void **state)
{
	static const char slow[] = "POST /%s HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nContent-Length: 5\r\n\r\n12";
	int hasty = client_open(), patient = client_open();
	char text[sizeof slow + 10];
	struct reply reply;

	(void)state;
	snprintf(text, sizeof text, slow, "patient");
	client_say(patient, text);
	snprintf(text, sizeof text, slow, "hasty");
	client_say(hasty, text);
	reply = read_reply(hasty, false);
	assert_int_equal(reply.status, 408);
	reply_release(&reply);
	client_say(patient, "345");
	expect_reply(patient, 201, "hello");
	assert_int_equal(seen_count(), 1);
	close(hasty);
	close(patient);
}

static void what_is_too_large_leaves_no_record(void **state)
{
	(void)state;
	expect_post("/small", "k", "12345678901", 413, NULL);
	assert_int_equal(seen_count(), 0);
	expect_post("/small", "k", "1234567890", 201, "created");
	expect_post("/small", "k", "1234567890", 201, "replayed");
}

static void methods_that_are_unknown_are_never_forwarded(void **state)
{
	static const char *const methods[] = {"post", "Post", "BREW", "PROPFIND", "POSTS"};
	char text[200];

	(void)state;
	for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
		int fd = client_open();

		snprintf(text, sizeof text, "%s / HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\n\r\n", methods[i]);
		client_say(fd, text);
		expect_reply(fd, 501, NULL);
		close(fd);
	}
	assert_int_equal(seen_count(), 0);
}

/* ---- answers that are too large to be stored ---- */

static char *large_answer(const char *head, size_t body, size_t *ret_n)
{
	size_t n = strlen(head);
	char *text = malloc(n + body);

	memcpy(text, head, n);
	for (size_t i = 0; i < body; i++)
		text[n + i] = (char)('a' + i % 23);
	*ret_n = n + body;
	return text;
}

static void an_answer_at_the_limit_is_stored_and_one_past_it_is_streamed(void **state)
{
	struct reply reply;
	size_t n;

	(void)state;
	for (int past = 0; past < 2; past++) {
		char head[100];
		char *text;

		snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nX-A: b\r\nContent-Length: %d\r\n\r\n", 100000 + past);
		text = large_answer(head, (size_t)100000 + (size_t)past, &n);
		upstream_play((struct script){.bytes = text, .n = n});
		reply = post("/payments", past ? "l" : "k", "x");
		assert_int_equal(reply.status, 200);
		assert_true(reply.complete);
		assert_field(&reply, "Idempotency-Status", "created");
		assert_field(&reply, "X-A", "b");
		assert_int_equal(reply.body.n, 100000 + past);
		assert_memory_equal(reply.body.p, text + strlen(head), reply.body.n);
		reply_release(&reply);
		if (past) {
			reply = post("/payments", "l", "x");
			assert_int_equal(reply.status, 409);
			assert_field(&reply, "Idempotency-Status", "conflict");
			assert_non_null(strstr(reply.body.p, "RESPONSE_NOT_STORED"));
			assert_field(&reply, "Retry-After", "60");
			reply_release(&reply);
		} else {
			reply = post("/payments", "k", "x");
			assert_field(&reply, "Idempotency-Status", "replayed");
			assert_memory_equal(reply.body.p, text + strlen(head), reply.body.n);
			reply_release(&reply);
		}
		upstream_hang_up();
		free(text);
	}
	assert_int_equal(seen_count(), 2);
}

static void large_answers_without_a_length_are_streamed_too(void **state)
{
	static const char head[] = "HTTP/1.1 200 OK\r\n\r\n";
	struct reply reply;
	size_t n;
	char *text = large_answer(head, 700000, &n);

	(void)state;
	upstream_play((struct script){.bytes = text, .n = n, .end = SCRIPT_CLOSE});
	reply = post("/payments", "k", "x");
	assert_true(reply.complete);
	assert_field(&reply, "Idempotency-Status", "created");
	assert_int_equal(reply.body.n, 700000);
	assert_memory_equal(reply.body.p, text + strlen(head), reply.body.n);
	reply_release(&reply);
	expect_post("/payments", "k", "x", 409, "conflict");

	/* An error that is too large: passed on whole, and the key is free before its end can be seen. */
	upstream_hang_up();
	memcpy(text, "HTTP/1.1 500", 12);
	reply = post("/payments", "l", "x");
	assert_int_equal(reply.status, 500);
	assert_true(reply.complete);
	assert_no_field(&reply, "Idempotency-Status");
	assert_int_equal(reply.body.n, 700000);
	reply_release(&reply);
	upstream_play(SCRIPT(ANSWER_OK));
	expect_post("/payments", "l", "x", 201, "created");
	upstream_hang_up();
	free(text);
}

static void a_large_answer_that_breaks_resets_the_client(void **state)
{
	struct reply reply;
	size_t n;
	char *text = large_answer("HTTP/1.1 200 OK\r\nContent-Length: 500000\r\n\r\n", 400000, &n);

	(void)state;
	upstream_play((struct script){.bytes = text, .n = n, .end = SCRIPT_CLOSE});
	reply = post("/payments", "k", "x");
	assert_false(reply.complete);
	reply_release(&reply);
	expect_post("/payments", "k", "x", 409, "conflict"); /* it was done: the record is complete, without a body */

	upstream_hang_up();
	memcpy(text, "HTTP/1.1 500", 12);
	reply = post("/payments", "l", "x");
	assert_false(reply.complete);
	reply_release(&reply);
	AWAIT(gate_stats().unknown == 1);
	expect_post("/payments", "l", "x", 409, "conflict");
	upstream_hang_up();
	free(text);
}

/* ---- many at once ---- */

#define CROWD 200

static void *one_of_many(void *data)
{
	struct reply reply = post("/payments", "k", "x");
	int *status = data;

	*status = reply.complete ? reply.status : 0;
	if (reply.status == 201 && !slice_is(strbuf_slice(&reply.body), "hello"))
		*status = 0;
	reply_release(&reply);
	return NULL;
}

static void two_hundred_with_one_key_are_one_call(void **state)
{
	static pthread_t threads[CROWD];
	static int statuses[CROWD];
	int answered = 0;

	(void)state;
	for (size_t i = 0; i < CROWD; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, one_of_many, &statuses[i]), 0);
	for (size_t i = 0; i < CROWD; i++) {
		pthread_join(threads[i], NULL);
		if (statuses[i] != 201 && statuses[i] != 409)
			fail_msg("an answer of %d", statuses[i]);
		answered += statuses[i] == 201;
	}
	assert_true(answered >= 1);
	assert_int_equal(seen_count(), 1);
	assert_int_equal(gate_stats().outcomes[HX_GATE_CREATED], 1);
}

/* ---- stopping ---- */

static void *stop_server(void *data)
{
	(void)data;
	http_server_stop(server, 10000);
	return NULL;
}

static void a_stop_finishes_what_is_in_flight(void **state)
{
	int fd = client_open(), gone = client_open();
	pthread_t thread;

	(void)state;
	upstream_play(SCRIPT(ANSWER_OK, .hold = true));
	say_post(fd, "/payments", "k", "x");
	say_post(gone, "/payments", "l", "x");
	AWAIT(seen_count() == 2);
	close(gone);
	AWAIT(stats_now().gone == 1);
	assert_int_equal(pthread_create(&thread, NULL, stop_server, NULL), 0);
	AWAIT(!gate_is_open());
	upstream_release();
	expect_reply(fd, 201, "hello");
	pthread_join(thread, NULL);
	assert_int_equal(gate_stats().outcomes[HX_GATE_CREATED], 2);
	close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_first_is_created_and_the_second_replayed),
		TEST(binary_bodies_are_replayed_byte_for_byte),
		TEST(another_body_is_a_mismatch_also_while_the_first_is_in_flight),
		TEST(a_conflict_says_when_to_come_back),
		TEST(keys_count_per_method_and_path),
		TEST(tenants_are_kept_apart),
		TEST(status_headers_can_be_hidden),
		TEST(keys_are_required_or_not_but_never_malformed),
		TEST(a_key_may_be_in_the_body),
		TEST(errors_are_passed_on_and_let_the_key_go),
		TEST(errors_are_stored_where_that_is_wanted),
		TEST(an_upstream_that_cannot_be_reached_lets_the_key_go),
		TEST(what_is_not_known_holds_the_lease),
		TEST(after_the_lease_the_same_key_is_sent_again),
		TEST(a_late_owner_is_stale_and_leaves_the_record_alone),
		TEST(a_request_whose_client_has_gone_is_finished_and_stored),
		TEST(a_request_that_is_not_complete_never_happened),
		TEST(a_route_may_give_less_time_for_a_request),
		TEST(what_is_too_large_leaves_no_record),
		TEST(methods_that_are_unknown_are_never_forwarded),
		TEST(an_answer_at_the_limit_is_stored_and_one_past_it_is_streamed),
		TEST(large_answers_without_a_length_are_streamed_too),
		TEST(a_large_answer_that_breaks_resets_the_client),
		TEST(two_hundred_with_one_key_are_one_call),
		TEST(a_stop_finishes_what_is_in_flight),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
