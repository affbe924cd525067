/*
 * The parser against a table of smuggling and malformed shapes, requests and responses. Each is fed whole, byte by byte,
 * and split at every position, and has to give the same verdict and the same reason each time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "unit/wire/shapes.h"
#include "wire/charset.h"

/* ---- every shape in every way ---- */

struct split {
	size_t first; /* bytes of the first piece, then all the rest */
	bool used;
};

static size_t next_split(void *data, size_t left)
{
	struct split *split = data;

	if (split->used || split->first >= left)
		return left;
	split->used = true;
	return split->first;
}

static void fail_shape(const struct shape *shape, const char *way, const struct outcome *outcome)
{
	fail_msg("%s (%s): verdict %d, status %d, %s", shape->name, way, outcome->verdict,
		 outcome->verdict == WIRE_BAD ? hx_code_http_status(outcome->err.code) : 0,
		 outcome->verdict == WIRE_BAD ? outcome->err.reason : "no reason");
}

static void check_shape(const struct shape *shape)
{
	struct slice bytes = slice_of(shape->bytes, shape->n);
	struct outcome whole = reader_read(shape->kind, bytes, &shape_limits, next_whole, NULL);
	struct outcome other = reader_read(shape->kind, bytes, &shape_limits, next_byte, NULL);
	int status = whole.verdict == WIRE_BAD    ? hx_code_http_status(whole.err.code)
		     : whole.verdict == WIRE_MORE ? -1
						  : 0;

	if (status != shape->status || (status == 0 && whole.used != shape->n))
		fail_shape(shape, "whole", &whole);
	if (!outcome_equal(&whole, &other))
		fail_shape(shape, "byte by byte", &other);
	for (size_t at = 1; at < shape->n; at++) {
		struct split split = {.first = at};

		other = reader_read(shape->kind, bytes, &shape_limits, next_split, &split);
		if (!outcome_equal(&whole, &other))
			fail_shape(shape, "split", &other);
	}
}

static void every_request_shape(void **state)
{
	size_t n = sizeof request_shapes / sizeof *request_shapes, bad = 0;

	(void)state;
	for (size_t i = 0; i < n; i++) {
		check_shape(&request_shapes[i]);
		bad += request_shapes[i].status > 0;
	}
	printf("# %zu request shapes, %zu of them refused\n", n, bad);
}

static void every_response_shape(void **state)
{
	size_t n = sizeof response_shapes / sizeof *response_shapes, bad = 0;

	(void)state;
	for (size_t i = 0; i < n; i++) {
		check_shape(&response_shapes[i]);
		bad += response_shapes[i].status > 0;
	}
	printf("# %zu response shapes, %zu of them refused\n", n, bad);
}

/* Any control byte, at any place of a head, is the end of it. */
static void control_bytes_are_refused_everywhere(void **state)
{
	static const char head[] = "GET /a?b HTTP/1.1\r\nHost: a\r\nX-Name: some value\r\n\r\n";
	char bytes[sizeof head];

	(void)state;
	for (size_t at = 0; at < sizeof head - 1; at++) {
		if (head[at] == '\r' || head[at] == '\n')
			continue;
		for (int c = 0; c < 0x20; c++) {
			struct outcome outcome;

			if (c == '\t' || c == '\r')
				continue;
			memcpy(bytes, head, sizeof head);
			bytes[at] = (char)c;
			outcome = reader_read(READ_REQUEST, slice_of(bytes, sizeof head - 1), &shape_limits, next_whole,
					      NULL);
			assert_int_equal(outcome.verdict, WIRE_BAD);
			assert_int_equal(outcome.err.code, HX_BAD_REQUEST);
		}
	}
}

/* ---- what is found ---- */

static struct wire_field found[20];

static enum wire_verdict parse_request(const char *text, struct wire_request *ret)
{
	struct wire_scan scan = {0};
	struct wire_error err;

	if (wire_scan_request(&scan, slice_str(text), &shape_limits, &err) != WIRE_DONE)
		return WIRE_BAD;
	return wire_request_parse(wire_scan_head(&scan, text), found, ret, &err);
}

static enum wire_verdict parse_response(const char *text, bool to_head, struct wire_response *ret)
{
	struct wire_scan scan = {0};
	struct wire_error err;

	if (wire_scan_response(&scan, slice_str(text), &shape_limits, &err) != WIRE_DONE)
		return WIRE_BAD;
	return wire_response_parse(wire_scan_head(&scan, text), to_head, found, ret, &err);
}

static void assert_slice(struct slice s, const char *text)
{
	if (!slice_is(s, text))
		fail_msg("\"%.*s\" is not \"%s\"", SLICE_ARGS(s), text);
}

static void a_request_is_cut_into_its_parts(void **state)
{
	struct wire_request r;

	(void)state;
	assert_int_equal(parse_request("\r\nPATCH /a/b%20c?d=e?f HTTP/1.1\r\nHost: h:1\r\nX-One:  a b \t\r\nx-one:\r\n"
				       "Content-Length: 12\r\nExpect: 100-continue\r\n\r\n",
				       &r),
			 WIRE_DONE);
	assert_slice(r.method, "PATCH");
	assert_slice(r.target, "/a/b%20c?d=e?f");
	assert_slice(r.path, "/a/b%20c");
	assert_true(r.has_query);
	assert_slice(r.query, "d=e?f");
	assert_slice(r.host, "h:1");
	assert_int_equal(r.form, WIRE_ORIGIN);
	assert_true(r.expect_continue);
	assert_int_equal(r.head.framing, WIRE_LENGTH);
	assert_int_equal(r.head.length, 12);
	assert_true(r.head.keep_alive);
	assert_int_equal(r.head.fields.n, 5);
	assert_slice(r.head.fields.at[1].name, "X-One");
	assert_slice(r.head.fields.at[1].value, "a b");
	assert_slice(r.head.fields.at[2].value, "");
}

static void targets_have_three_forms(void **state)
{
	struct wire_request r;

	(void)state;
	assert_int_equal(parse_request("GET http://A.b:80 HTTP/1.1\r\nHost: a.B:80\r\n\r\n", &r), WIRE_DONE);
	assert_int_equal(r.form, WIRE_ABSOLUTE);
	assert_slice(r.path, "/");
	assert_slice(r.host, "a.B:80");
	assert_false(r.has_query);
	assert_int_equal(parse_request("GET http://[::1]?x HTTP/1.0\r\n\r\n", &r), WIRE_DONE);
	assert_slice(r.host, "[::1]");
	assert_slice(r.path, "/");
	assert_slice(r.query, "x");
	assert_int_equal(parse_request("GET /? HTTP/1.1\r\nHost: a\r\n\r\n", &r), WIRE_DONE);
	assert_true(r.has_query);
	assert_int_equal(r.query.n, 0);
	assert_int_equal(parse_request("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", &r), WIRE_DONE);
	assert_int_equal(r.form, WIRE_ASTERISK);
	assert_slice(r.path, "*");
}

static void who_goes_on_after_the_message(void **state)
{
	static const struct {
		const char *text;
		bool keep_alive;
	} cases[] = {
		{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", true},
		{"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", false},
		{"GET / HTTP/1.1\r\nHost: a\r\nConnection: x, CLOSE\r\n\r\n", false},
		{"GET / HTTP/1.1\r\nHost: a\r\nConnection: x\r\nConnection: close\r\n\r\n", false},
		{"GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, close\r\n\r\n", false},
		{"GET / HTTP/1.0\r\n\r\n", false},
		{"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true},
	};
	struct wire_request r;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(parse_request(cases[i].text, &r), WIRE_DONE);
		assert_int_equal(r.head.keep_alive, cases[i].keep_alive);
	}
}

static void a_response_ends_where_its_request_and_status_say(void **state)
{
	static const struct {
		const char *text;
		bool to_head;
		enum wire_framing framing;
		bool has_length, keep_alive;
	} cases[] = {
		{"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", false, WIRE_LENGTH, true, true},
		{"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", true, WIRE_NO_BODY, true, true},
		{"HTTP/1.1 200 OK\r\n\r\n", true, WIRE_NO_BODY, false, true},
		{"HTTP/1.1 200 OK\r\n\r\n", false, WIRE_UNTIL_CLOSE, false, false},
		{"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", false, WIRE_NO_BODY, true, true},
		{"HTTP/1.1 204 No Content\r\n\r\n", false, WIRE_NO_BODY, false, true},
		{"HTTP/1.1 100 Continue\r\n\r\n", false, WIRE_NO_BODY, false, true},
		{"HTTP/1.0 200 OK\r\nContent-Length: 7\r\n\r\n", false, WIRE_LENGTH, true, false},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n", false, WIRE_CHUNKED,
		 false, false},
	};
	struct wire_response r;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(parse_response(cases[i].text, cases[i].to_head, &r), WIRE_DONE);
		assert_int_equal(r.head.framing, cases[i].framing);
		assert_int_equal(r.head.has_length, cases[i].has_length);
		assert_int_equal(r.head.keep_alive, cases[i].keep_alive);
	}
	assert_int_equal(parse_response("HTTP/1.1 404 Not  Found \r\n\r\n", false, &r), WIRE_DONE);
	assert_int_equal(r.status, 404);
	assert_slice(r.reason, "Not  Found ");
}

static void a_closed_connection_ends_one_kind_of_body(void **state)
{
	struct wire_head head = {.framing = WIRE_UNTIL_CLOSE};
	struct wire_body body;
	struct wire_error err;

	(void)state;
	wire_body_init(&body, &head, /* is_response= */ true);
	assert_int_equal(wire_body_closed(&body, &err), WIRE_DONE);
	head = (struct wire_head){.framing = WIRE_LENGTH, .length = 5};
	wire_body_init(&body, &head, /* is_response= */ true);
	assert_int_equal(wire_body_closed(&body, &err), WIRE_BAD);
	assert_int_equal(err.code, HX_BAD_GATEWAY);
	head = (struct wire_head){.framing = WIRE_CHUNKED};
	wire_body_init(&body, &head, /* is_response= */ false);
	assert_int_equal(wire_body_closed(&body, &err), WIRE_BAD);
	assert_int_equal(err.code, HX_BAD_REQUEST);
}

static void bytes_behind_a_message_are_left_alone(void **state)
{
	static const char *const messages[] = {
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX: y\r\n\r\n",
	};
	char bytes[300];

	(void)state;
	for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
		int n = snprintf(bytes, sizeof bytes, "%sGET /next HTTP/1.1\r\nHost: a\r\n\r\n", messages[i]);
		struct outcome outcome = reader_read(READ_REQUEST, slice_of(bytes, (size_t)n), &shape_limits,
						     next_whole, NULL);

		assert_int_equal(outcome.verdict, WIRE_DONE);
		assert_int_equal(outcome.used, strlen(messages[i]));
	}
}

static void fields_are_found_in_any_case(void **state)
{
	struct wire_request r;
	struct slice rest = slice_str(" a ,, b,\t"), item;
	size_t count;

	(void)state;
	assert_int_equal(parse_request("GET / HTTP/1.1\r\nHost: a\r\nX-Y: 1\r\nx-y: 2, Three\r\n\r\n", &r), WIRE_DONE);
	assert_slice(wire_find(r.head.fields, "X-y", &count)->value, "1");
	assert_int_equal(count, 2);
	assert_null(wire_find(r.head.fields, "X", &count));
	assert_int_equal(count, 0);
	assert_true(wire_has_token(r.head.fields, "x-Y", slice_str("three")));
	assert_false(wire_has_token(r.head.fields, "x-y", slice_str("four")));
	assert_true(slice_list_next(&rest, &item));
	assert_slice(item, "a");
	assert_true(slice_list_next(&rest, &item));
	assert_slice(item, "b");
	assert_false(slice_list_next(&rest, &item));
}

static void extensions_and_trailers_have_one_budget(void **state)
{
	static const char start[] = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
	struct strbuf sb;

	(void)state;
	strbuf_init(&sb, 100000);
	strbuf_add_str(&sb, start);
	for (int i = 0; i < CHUNK_EXTRA_BYTES_MAX / 16; i++)
		strbuf_add_str(&sb, "1;123456789012345\r\nx\r\n");
	strbuf_add_str(&sb, "0\r\n\r\n");
	assert_int_equal(reader_read(READ_REQUEST, strbuf_slice(&sb), &shape_limits, next_whole, NULL).verdict,
			 WIRE_DONE);
	sb.n -= 5;
	strbuf_add_str(&sb, "0;\r\n\r\n");

	struct outcome outcome = reader_read(READ_REQUEST, strbuf_slice(&sb), &shape_limits, next_whole, NULL);

	assert_int_equal(outcome.verdict, WIRE_BAD);
	assert_int_equal(outcome.err.code, HX_HEAD_TOO_LARGE);
	strbuf_release(&sb);
}

static void chunks_are_written_as_they_are_read(void **state)
{
	struct strbuf sb;

	(void)state;
	strbuf_init(&sb, 1000);
	chunk_write(slice_str("hello, world, here I am"), &sb);
	chunk_write(slice_str(""), &sb);
	chunk_write_end(&sb);
	assert_string_equal(sb.p, "17\r\nhello, world, here I am\r\n0\r\n\r\n");
	strbuf_release(&sb);
}

/* The classes as the RFCs list them, written down a second time. */
static void the_table_of_characters_is_that_of_the_rfcs(void **state)
{
	const char *token = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
	const char *path = "-._~!$&'()*+,;=:@/%[]|^0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
	const char *query = "?{}\\`";

	(void)state;
	for (int c = 0; c < 256; c++) {
		bool in_path = c && strchr(path, c);

		assert_int_equal(char_is((char)c, CHAR_TOKEN), c && strchr(token, c));
		assert_int_equal(char_is((char)c, CHAR_PATH), in_path);
		assert_int_equal(char_is((char)c, CHAR_QUERY), in_path || (c && strchr(query, c)));
		assert_int_equal(char_is((char)c, CHAR_VALUE), c == '\t' || (c >= ' ' && c != 0x7f));
		assert_int_equal(char_is((char)c, CHAR_EXTENSION), c == '\t' || (c >= ' ' && c < 0x7f));
		assert_int_equal(char_is((char)c, CHAR_HEX), c && strchr("0123456789abcdefABCDEF", c));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_request_shape),
		cmocka_unit_test(every_response_shape),
		cmocka_unit_test(control_bytes_are_refused_everywhere),
		cmocka_unit_test(a_request_is_cut_into_its_parts),
		cmocka_unit_test(targets_have_three_forms),
		cmocka_unit_test(who_goes_on_after_the_message),
		cmocka_unit_test(a_response_ends_where_its_request_and_status_say),
		cmocka_unit_test(a_closed_connection_ends_one_kind_of_body),
		cmocka_unit_test(bytes_behind_a_message_are_left_alone),
		cmocka_unit_test(fields_are_found_in_any_case),
		cmocka_unit_test(extensions_and_trailers_have_one_budget),
		cmocka_unit_test(chunks_are_written_as_they_are_read),
		cmocka_unit_test(the_table_of_characters_is_that_of_the_rfcs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
