/* Problems, and the head of an answer: what the outside sees of a code, and what no field can break. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json_string.h"
#include "base/json_walk.h"
#include "serve/problem.h"
#include "unit/serve/desk.h"
#include "wire/writer.h"

static struct desk desk;
static struct problem problem;
static const struct http_answer *answer;

static void handle(void *data, struct http_exchange *exchange)
{
	(void)data;
	if (answer)
		http_respond(exchange, answer);
	else
		http_respond_problem(exchange, &problem);
}

static int set_up(void **state)
{
	(void)state;
	desk_open(&desk, handle, NULL);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	desk_close(&desk);
	return 0;
}

static const char *get(const char *method, const char *more)
{
	char head[200];

	snprintf(head, sizeof head, "%s / HTTP/1.1\r\nHost: a\r\n%s", method, more);
	return desk_ask(&desk, head, "");
}

static struct json body_of(const char *text)
{
	struct json object;
	struct hx_error err;

	assert_int_equal(json_check(slice_str(strstr(text, "\r\n\r\n") + 4), &err, &object), HX_OK);
	return object;
}

static void assert_member(struct json object, const char *name, const char *text)
{
	struct json value;

	assert_true(json_find(object, slice_str(name), &value));
	if (!json_string_is(value, slice_str(text)))
		fail_msg("%s is %.*s", name, SLICE_ARGS(value.raw));
}

static void a_problem_has_its_five_members(void **state)
{
	struct json object, status;
	const char *text;

	(void)state;
	problem = (struct problem){.code = HX_CLAIM_FAILED, .detail = slice_str("\"7\"\n is being closed")};
	text = get("GET", "");
	assert_non_null(strstr(text, "HTTP/1.1 409 Conflict\r\n"));
	assert_non_null(strstr(text, "\r\nContent-Type: application/problem+json\r\n"));
	assert_non_null(strstr(text, "\r\nRetry-After: 1\r\n"));
	assert_non_null(strstr(text, "\r\nDate: "));
	assert_null(strstr(text, "Server:"));
	object = body_of(text);
	assert_member(object, "type", "urn:hapax:problem:CLAIM_FAILED");
	assert_member(object, "title", "another operation is already in progress");
	assert_member(object, "detail", "\"7\"\n is being closed");
	assert_member(object, "code", "CLAIM_FAILED");
	assert_true(json_find(object, slice_str("status"), &status));
	assert_true(slice_is(status.raw, "409"));
}

static void every_code_has_a_problem(void **state)
{
	(void)state;
	for (int code = HX_OK + 1; code < HX_CODE_COUNT; code++) {
		int status = hx_code_http_status((enum hx_code)code);
		const char *text;
		char line[64];

		problem = (struct problem){.code = (enum hx_code)code};
		text = get("GET", "");
		snprintf(line, sizeof line, "HTTP/1.1 %d %s\r\n", status, status_reason(status));
		assert_memory_equal(text, line, strlen(line));
		assert_member(body_of(text), "code", hx_code_name((enum hx_code)code));
		assert_int_equal(strstr(text, "Retry-After: ") != NULL,
				 status == 409 || status == 429 || status == 503);
		assert_member(body_of(text), "detail", hx_code_text((enum hx_code)code));
	}
}

static void members_and_a_time_to_wait(void **state)
{
	struct json findings;
	const char *text;

	(void)state;
	problem = (struct problem){
		.code = HX_STORE_UNAVAILABLE, .members = slice_str("\"findings\":[1]"), .retry_after_s = 30};
	text = get("GET", "");
	assert_non_null(strstr(text, "\r\nRetry-After: 30\r\n"));
	assert_true(json_find(body_of(text), slice_str("findings"), &findings));
	assert_true(slice_is(findings.raw, "[1]"));
}

static void foreign_bytes_stay_json(void **state)
{
	(void)state;
	problem = (struct problem){.code = HX_INVALID, .detail = slice_of("\xff\0<x>", 5)};
	assert_member(body_of(get("GET", "")), "code", "INVALID");
}

static void without_memory_there_is_the_bare_status(void **state)
{
	struct http_answer bare;
	struct arena arena;

	(void)state;
	problem = (struct problem){.code = HX_NOT_FOUND, .detail = slice_str("there is nothing")};
	for (size_t room = 0; room < 300; room += 8) {
		arena_init(&arena, room);
		problem_answer(&problem, &arena, &bare);
		assert_int_equal(bare.status, 404);
		assert_true(bare.body.n == 0 || bare.fields.n == 1);
		arena_release(&arena);
	}
}

/* ---- heads of answers ---- */

#define FIELD(name, value)                                                                                             \
	{                                                                                                              \
		{name, sizeof(name) - 1},                                                                              \
		{                                                                                                      \
			value, sizeof(value) - 1                                                                       \
		}                                                                                                      \
	}

static void fields_that_would_break_the_head_make_a_500(void **state)
{
	static const struct wire_field fields[] = {
		FIELD("Location", "/a\r\nSet-Cookie: x"),
		FIELD("Location", "/a\nb"),
		FIELD("Location", "/a\0b"),
		FIELD("Bad Name", "x"),
		FIELD("", "x"),
		FIELD("X:Y", "x"),
		FIELD("Content-Length", "7"),
		FIELD("transfer-encoding", "chunked"),
		FIELD("Connection", "close"),
		FIELD("Keep-Alive", "1"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
		struct http_answer sick = {.status = 200, .fields = {&fields[i], 1}, .body = slice_str("secret")};
		const char *text;

		answer = &sick;
		text = get("GET", "");
		assert_memory_equal(text, "HTTP/1.1 500 ", 13);
		assert_null(strstr(text, "Cookie"));
		assert_null(strstr(text, "secret"));
		answer = NULL;
	}
}

static void assert_head(const struct http_answer *given, const char *method, const char *more, const char *wanted,
			const char *unwanted)
{
	const char *text;

	answer = given;
	text = get(method, more);
	if (!strstr(text, wanted) || (unwanted && strstr(text, unwanted)))
		fail_msg("%s", text);
	answer = NULL;
}

static void the_server_frames_the_answer(void **state)
{
	static const struct wire_field date = FIELD("Date", "Sun, 06 Nov 1994 08:49:37 GMT");
	struct http_answer ok = {.status = 200, .body = slice_str("hello")};
	struct http_answer empty = {.status = 204, .body = slice_str("ignored")};
	struct http_answer same = {.status = 304, .body = slice_str("ignored")};
	struct http_answer dated = {.status = 299, .fields = {&date, 1}};

	(void)state;
	assert_head(&ok, "GET", "", "\r\nContent-Length: 5\r\n\r\nhello", "Connection");
	assert_head(&ok, "HEAD", "", "\r\nContent-Length: 5\r\n\r\n", "hello");
	assert_head(&ok, "GET", "Connection: close\r\n", "\r\nConnection: close\r\n\r\nhello", NULL);
	assert_head(&empty, "GET", "", "HTTP/1.1 204 No Content\r\n", "Content-Length");
	assert_head(&empty, "GET", "", "\r\n\r\n", "ignored");
	assert_head(&same, "GET", "", "HTTP/1.1 304 Not Modified\r\n", "ignored");
	assert_head(&dated, "GET", "", "HTTP/1.1 299 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-", NULL);
}

static void a_date_is_written_as_http_wants_it(void **state)
{
	struct strbuf sb;

	(void)state;
	strbuf_init(&sb, 100);
	head_write_date((struct wall_time){784111777000}, &sb);
	head_write_date((struct wall_time){784111777999}, &sb);
	assert_string_equal(sb.p, "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
	strbuf_reset(&sb);
	head_write_date((struct wall_time){1709164800000}, &sb);
	assert_string_equal(sb.p, "Date: Thu, 29 Feb 2024 00:00:00 GMT\r\n");
	strbuf_release(&sb);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_problem_has_its_five_members),
		cmocka_unit_test(every_code_has_a_problem),
		cmocka_unit_test(members_and_a_time_to_wait),
		cmocka_unit_test(foreign_bytes_stay_json),
		cmocka_unit_test(without_memory_there_is_the_bare_status),
		cmocka_unit_test(fields_that_would_break_the_head_make_a_500),
		cmocka_unit_test(the_server_frames_the_answer),
		cmocka_unit_test(a_date_is_written_as_http_wants_it),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
