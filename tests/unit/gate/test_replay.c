/* Stored answers: which fields are kept, byte for byte, and nothing that is not ours is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gate/replay.h"

static const struct gate_replay_rule safe = {.kind = REPLAY_SAFE}, none = {.kind = REPLAY_NONE};

/* ---- which fields ---- */

static bool keeps(const struct gate_replay_rule *rule, const char *name)
{
	return gate_replays_field(rule, slice_str(name), /* connection= */ NULL, 0);
}

static void the_safe_fields(void **state)
{
	static const char *const kept[] = {"Content-Type",  "content-type",     "CONTENT-TYPE", "Content-Encoding",
					   "Location",      "Content-Language", "ETag",         "etag",
					   "Cache-Control", "X-Request-Id",     "x-a",          "X--"};
	static const char *const dropped[] = {
		"",          "Date", "Server",           "X",           "X-",   "Xa",  "Content-Typ", "Content-Types",
		"Locations", "Vary", "WWW-Authenticate", "Retry-After", "Link", "Age", "Y-Request-Id"};

	(void)state;
	for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
		if (!keeps(&safe, kept[i]))
			fail_msg("%s is dropped", kept[i]);
	for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++)
		if (keeps(&safe, dropped[i]))
			fail_msg("%s is kept", dropped[i]);
}

static void a_list_is_a_list(void **state)
{
	const struct slice names[] = {slice_str("location"), slice_str("x-request-id"), slice_str("retry-after")};
	const struct gate_replay_rule rule = {.kind = REPLAY_LIST, .names_n = 3, .names = names};
	const struct gate_replay_rule empty = {.kind = REPLAY_LIST};

	(void)state;
	assert_true(keeps(&rule, "Location"));
	assert_true(keeps(&rule, "X-REQUEST-ID"));
	assert_true(keeps(&rule, "retry-after"));
	assert_false(keeps(&rule, "ETag"));
	assert_false(keeps(&rule, "X-Other"));
	assert_false(keeps(&empty, "Location"));
	assert_false(keeps(&none, "Location"));
	assert_false(keeps(&none, "X-Request-Id"));
	/* How to read the body is part of the body. */
	assert_true(keeps(&rule, "Content-Type") && keeps(&rule, "content-encoding"));
	assert_true(keeps(&empty, "content-type") && keeps(&empty, "Content-Encoding"));
	assert_true(keeps(&none, "Content-Type") && keeps(&none, "Content-Encoding"));
}

static const char *const never[] = {
	"set-cookie",
	"set-cookie2",
	"connection",
	"keep-alive",
	"proxy-connection",
	"proxy-authenticate",
	"proxy-authorization",
	"te",
	"trailer",
	"transfer-encoding",
	"upgrade",
	"content-length",
	"idempotency-status",
	"idempotency-replayed",
	"proxy-authentication-info",
};

static void some_are_never_kept(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof never / sizeof *never; i++) {
		struct slice name = slice_str(never[i]);
		const struct gate_replay_rule by_list = {.kind = REPLAY_LIST, .names_n = 1, .names = &name};
		char upper[64] = {0};

		for (size_t c = 0; c < name.n; c++)
			upper[c] = (char)(name.p[c] >= 'a' && name.p[c] <= 'z' ? name.p[c] - 32 : name.p[c]);
		if (keeps(&by_list, never[i]) || keeps(&by_list, upper) || keeps(&safe, never[i]) ||
		    keeps(&safe, upper))
			fail_msg("%s is kept", never[i]);
	}
}

static void what_connection_nominates_is_never_kept(void **state)
{
	const struct slice names[] = {slice_str("x-hop"), slice_str("x-end"), slice_str("location")};
	const struct gate_replay_rule by_list = {.kind = REPLAY_LIST, .names_n = 3, .names = names};
	const struct slice connection[] = {slice_str("close"), slice_str(" ,x-HOP ,\tx-b,, Content-Type"),
					   slice_of(NULL, 0), slice_str("ETAG\t")};
	const struct gate_replay_rule *const rules[] = {&safe, &by_list, &none};
	static const char *const nominated[] = {"X-Hop", "x-hop", "X-B", "Content-Type", "ETag"};

	(void)state;
	for (size_t r = 0; r < 3; r++)
		for (size_t i = 0; i < sizeof nominated / sizeof *nominated; i++)
			assert_false(gate_replays_field(rules[r], slice_str(nominated[i]), connection, 4));
	/* Not because they are nominated nearly. */
	assert_true(gate_replays_field(&safe, slice_str("X-Ho"), connection, 4));
	assert_true(gate_replays_field(&safe, slice_str("X-Hop-2"), connection, 4));
	assert_true(gate_replays_field(&by_list, slice_str("X-End"), connection, 4));
	assert_true(gate_replays_field(&by_list, slice_str("Location"), connection, 4));
	assert_true(gate_replays_field(&none, slice_str("Content-Encoding"), connection, 4));
	assert_true(gate_replays_field(&safe, slice_str("X-Hop"), connection, 1));
}

static void markers(void **state)
{
	(void)state;
	assert_true(gate_is_marker(slice_str("Idempotency-Status")));
	assert_true(gate_is_marker(slice_str("idempotency-replayed")));
	assert_true(gate_is_marker(slice_str("IDEMPOTENCY-REPLAYED")));
	assert_false(gate_is_marker(slice_str("Idempotency-Key")));
	assert_false(gate_is_marker(slice_str("Idempotency-Statu")));
	assert_false(gate_is_marker(slice_str("Idempotency-Status2")));
	assert_false(gate_is_marker(slice_str("X-Idempotency-Status")));
	assert_false(gate_is_marker(slice_of(NULL, 0)));
}

/* ---- the stored form ---- */

static struct strbuf stored;
static struct arena arena;

static int set_up(void **state)
{
	(void)state;
	strbuf_init(&stored, 1u << 20);
	arena_init(&arena, 4u << 20);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	strbuf_release(&stored);
	arena_release(&arena);
	return 0;
}

static void assert_survives(const struct gate_response *response)
{
	struct hx_error err = {0};
	struct gate_response again;

	strbuf_reset(&stored);
	gate_response_encode(response, &stored);
	assert_false(stored.failed);
	if (gate_response_decode(strbuf_slice(&stored), &arena, &err, &again) != HX_OK)
		fail_msg("%s", err.detail);
	assert_int_equal(again.status, response->status);
	assert_int_equal(again.body_missing, response->body_missing);
	assert_int_equal(again.fields_n, response->fields_n);
	for (size_t i = 0; i < again.fields_n; i++) {
		assert_true(slice_eq(again.fields[i].name, response->fields[i].name));
		assert_true(slice_eq(again.fields[i].value, response->fields[i].value));
	}
	assert_true(slice_eq(again.body, response->body));
}

static void assert_not_ours(struct slice bytes)
{
	struct gate_response response = {.status = 77};
	struct hx_error err = {0};

	assert_int_equal(gate_response_decode(bytes, &arena, &err, &response), HX_RECORD_DAMAGED);
	assert_int_equal(err.code, HX_RECORD_DAMAGED);
	assert_int_equal(response.status, 77);
}

static const struct gate_field two_fields[] = {
	{{"Content-Type", 12}, {"application/json", 16}},
	{{"X-Empty", 7}, {"", 0}},
};

static void answers_survive_byte_for_byte(void **state)
{
	char all[1024], value[70000];
	const struct gate_field long_field = {slice_str("X-Long"), slice_of(value, sizeof value)};
	const struct gate_field odd[] = {{slice_of("X-\xff", 3), slice_of("a\0\xff\r\n", 5)},
					 {slice_of(NULL, 0), slice_of(NULL, 0)}};

	(void)state;
	memset(value, 'v', sizeof value);
	for (size_t i = 0; i < sizeof all; i++)
		all[i] = (char)i;
	assert_survives(&(struct gate_response){.status = 200});
	assert_survives(&(struct gate_response){.status = 201, .body = slice_of(all, sizeof all)});
	assert_survives(
		&(struct gate_response){.status = 422, .fields_n = 2, .fields = two_fields, .body = slice_str("{}")});
	assert_survives(&(struct gate_response){.status = 303, .fields_n = 1, .fields = &long_field});
	assert_survives(
		&(struct gate_response){.status = 599, .fields_n = 2, .fields = odd, .body = slice_of("\0", 1)});
	assert_survives(
		&(struct gate_response){.status = 200, .body_missing = true, .fields_n = 2, .fields = two_fields});
	assert_survives(&(struct gate_response){.status = 100});
	assert_survives(&(struct gate_response){.status = 999});
}

/* Records outlive the program, so the bytes are written down here. */
static void the_bytes_that_are_stored(void **state)
{
	static const char expected[] = "H2"
				       "\142\073\221\025\324\015\054\315"
				       "\0\0\311\0\2\0\0\0\0\0\0\0\2"
				       "\0\14\0\0\0\20Content-Typeapplication/json"
				       "\0\7\0\0\0\0X-Empty"
				       "{}";
	static const char missing[] = "H2"
				      "\353\357\145\327\255\110\341\016"
				      "\1\0\310\0\0\0\0\0\0\0\0\0\0";

	(void)state;
	gate_response_encode(
		&(struct gate_response){.status = 201, .fields_n = 2, .fields = two_fields, .body = slice_str("{}")},
		&stored);
	assert_true(slice_eq(strbuf_slice(&stored), slice_of(expected, sizeof expected - 1)));
	strbuf_reset(&stored);
	gate_response_encode(&(struct gate_response){.status = 200, .body_missing = true}, &stored);
	assert_true(slice_eq(strbuf_slice(&stored), slice_of(missing, sizeof missing - 1)));
}

/* What version 0.1 has stored is given again; what it proves is its lengths. */
static void answers_without_a_sum_are_read(void **state)
{
	static const char before[] = "H1\0\0\311\0\2\0\0\0\0\0\0\0\2"
				     "\0\14\0\0\0\20Content-Typeapplication/json"
				     "\0\7\0\0\0\0X-Empty"
				     "{}";
	struct gate_response response;

	(void)state;
	assert_int_equal(gate_response_decode(slice_of(before, sizeof before - 1), &arena, NULL, &response), HX_OK);
	assert_int_equal(response.status, 201);
	assert_int_equal(response.fields_n, 2);
	assert_true(slice_is(response.body, "{}"));
}

static void it_appends(void **state)
{
	struct gate_response again;

	(void)state;
	strbuf_add_str(&stored, "before");
	gate_response_encode(&(struct gate_response){.status = 200, .body = slice_str("b")}, &stored);
	assert_memory_equal(stored.p, "beforeH2", 8);
	assert_int_equal(gate_response_decode(slice_of(stored.p + 6, stored.n - 6), &arena, NULL, &again), HX_OK);
	assert_true(slice_is(again.body, "b"));
}

static void the_most_fields(void **state)
{
	struct gate_field *fields = calloc(UINT16_MAX, sizeof *fields);

	(void)state;
	assert_non_null(fields);
	for (size_t i = 0; i < UINT16_MAX; i++)
		fields[i] = two_fields[1];
	assert_survives(&(struct gate_response){.status = 200, .fields_n = UINT16_MAX, .fields = fields});
	free(fields);
}

/* In blocks of exactly their size, so that a step outside is seen by the sanitizer. */
static void every_prefix_is_refused(void **state)
{
	const struct gate_response response = {
		.status = 200, .fields_n = 2, .fields = two_fields, .body = slice_of("a\0body", 6)};

	(void)state;
	gate_response_encode(&response, &stored);
	for (size_t n = 0; n < stored.n; n++) {
		char *exact = malloc(n ? n : 1);

		assert_non_null(exact);
		memcpy(exact, stored.p, n);
		assert_not_ours(slice_of(exact, n));
		free(exact);
	}
	assert_not_ours(slice_of(NULL, 0));
	strbuf_add_char(&stored, 'x');
	assert_not_ours(strbuf_slice(&stored)); /* and one byte more than all */
}

/* Whichever byte of it is changed, to whatever: refused. */
static void one_changed_byte_is_noticed(void **state)
{
	const struct gate_response response = {
		.status = 200, .fields_n = 2, .fields = two_fields, .body = slice_str("b")};

	(void)state;
	gate_response_encode(&response, &stored);
	for (size_t i = 0; i < stored.n; i++) {
		for (int change = 1; change < 256; change++) {
			char *exact = malloc(stored.n);

			assert_non_null(exact);
			memcpy(exact, stored.p, stored.n);
			exact[i] = (char)(exact[i] ^ change);
			arena_reset(&arena);
			assert_not_ours(slice_of(exact, stored.n));
			free(exact);
		}
	}
}

static void forged_heads_are_refused(void **state)
{
	static const char head[] = "H1\0\0\310\0\0\0\0\0\0\0\0\0\0"; /* 200, nothing else */
	static const struct {
		size_t at;
		unsigned char byte;
	} changes[] = {
		{0, 'h'}, {1, '2'}, {2, 2}, {2, 3}, {2, 0x80}, {3, 0xff}, {4, 99}, {5, 1}, {6, 1}, {7, 1}, {14, 1},
	};
	struct gate_response response;

	(void)state;
	assert_int_equal(gate_response_decode(slice_of(head, 15), &arena, NULL, &response), HX_OK);
	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
		char bytes[15];

		memcpy(bytes, head, 15);
		bytes[changes[i].at] = (char)changes[i].byte;
		assert_not_ours(slice_of(bytes, 15));
	}
	assert_not_ours(slice_of("H1\1\0\310\0\0\0\0\0\0\0\0\0\1x", 16)); /* missing, and there */
	assert_not_ours(slice_of("H1\0\0\310\0\1\0\0\0\0\0\0\0\0\0\0\377\377\377\377", 21));
	assert_not_ours(slice_of("H1\0\0\310\0\1\0\0\0\0\0\0\0\0\377\377\0\0\0\0", 21));
}

/* A few bytes that promise many fields take no memory for them. */
static void memory(void **state)
{
	struct gate_response response;
	struct hx_error err = {0};
	struct arena tiny;

	(void)state;
	arena_init(&tiny, 0);
	assert_int_equal(
		gate_response_decode(slice_of("H1\0\0\310\377\377\0\0\0\0\0\0\0\0", 15), &tiny, &err, &response),
		HX_RECORD_DAMAGED);
	assert_false(tiny.failed);
	gate_response_encode(&(struct gate_response){.status = 200, .fields_n = 2, .fields = two_fields}, &stored);
	assert_int_equal(gate_response_decode(strbuf_slice(&stored), &tiny, &err, &response), HX_TOO_LARGE);
	arena_release(&tiny);

	strbuf_release(&stored);
	strbuf_init(&stored, 28);
	gate_response_encode(&(struct gate_response){.status = 200, .body = slice_str("123456")}, &stored);
	assert_true(stored.failed); /* the caller looks */
	strbuf_reset(&stored);
	gate_response_encode(&(struct gate_response){.status = 200, .body = slice_str("12345")}, &stored);
	assert_false(stored.failed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_safe_fields),
		cmocka_unit_test(a_list_is_a_list),
		cmocka_unit_test(some_are_never_kept),
		cmocka_unit_test(what_connection_nominates_is_never_kept),
		cmocka_unit_test(markers),
		cmocka_unit_test_setup_teardown(answers_survive_byte_for_byte, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_bytes_that_are_stored, set_up, tear_down),
		cmocka_unit_test_setup_teardown(answers_without_a_sum_are_read, set_up, tear_down),
		cmocka_unit_test_setup_teardown(it_appends, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_most_fields, set_up, tear_down),
		cmocka_unit_test_setup_teardown(every_prefix_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_changed_byte_is_noticed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(forged_heads_are_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(memory, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
