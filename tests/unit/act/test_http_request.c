/* What a service sees of an http call, what cannot be sent, and that secrets are shown to nobody else. */
#include "act/http.h"

#include <sys/stat.h>

#include "unit/act/http_pages.h"

static void test_what_the_service_sees(void **state)
{
	static const struct page pages[] = {{"/x", PAGE_REPLY, OK_JSON}, {0}};
	static const struct action_header headers[] = {{"X-Plain", "as written", NULL},
						       {"Authorization", "Bearer ${env:HX_TEST_TOKEN}", NULL},
						       {"X-Empty", "", NULL}};
	struct act_call call = {.input = slice_str("{\"id\":\"7\"}"),
				.key = slice_str("key-1"),
				.attempt = 3,
				.traceparent = slice_str("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
				.lease = {.subject = 5, .fence = 42}};
	struct upstream u;
	struct desk desk;
	char url[128];

	(void)state;
	setenv("HX_TEST_TOKEN", "tok-123", 1);
	setenv("http_proxy", "http://127.0.0.1:1", 1);
	setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
	upstream_open(&u, pages);
	desk_open(&desk, &(struct port_options){0});
	struct action action = upstream_action(&u, "/x", url);

	action.request.headers = headers;
	action.request.headers_n = COUNT(headers);
	desk_expect(desk_wait(&desk, desk_start(&desk, &action, call)), ACT_OK, "{\"a\":1}");
	assert_memory_equal(u.last, "POST /x HTTP/1.1\r\n", 18);
	expect_line(&u, "Content-Type: application/json");
	expect_line(&u, "Content-Length: 10");
	expect_line(&u, "Idempotency-Key: key-1");
	expect_line(&u, "Hapax-Fence: 42");
	expect_line(&u, "Hapax-Attempt: 3");
	assert_non_null(
		strstr(u.last, "\r\ntraceparent: 00-0af7651916cd43dd8448eb211c80319c-")); /* and a span of its own */
	expect_line(&u, "X-Plain: as written");
	expect_line(&u, "Authorization: Bearer tok-123");
	expect_line(&u, "X-Empty:");
	assert_string_equal(strstr(u.last, "\r\n\r\n") + 4, "{\"id\":\"7\"}");
	desk_close(&desk);
	upstream_close(&u);
	unsetenv("http_proxy");
	unsetenv("ALL_PROXY");
}

/* Without a key there is no such header, but a fence and a trace there always are; an action may name another type of JSON. */
static void test_what_the_service_sees_without_a_key(void **state)
{
	static const struct page pages[] = {{"/x", PAGE_REPLY, OK_JSON}, {0}};
	static const struct action_header own_type[] = {{"content-type", "application/vnd.x+json", NULL}};
	struct act_call call = {.input = slice_str("{}")};
	struct upstream u;
	struct desk desk;
	char url[128];

	(void)state;
	upstream_open(&u, pages);
	desk_open(&desk, &(struct port_options){0});
	struct action action = upstream_action(&u, "/x", url);

	action.request.headers = own_type;
	action.request.headers_n = 1;
	desk_expect(desk_wait(&desk, desk_start(&desk, &action, call)), ACT_OK, "");
	expect_line(&u, "content-type: application/vnd.x+json");
	assert_null(strstr(u.last, "application/json\r\nAccept"));
	expect_line(&u, "Hapax-Fence: 1");
	assert_null(strstr(u.last, "Idempotency-Key"));
	assert_non_null(strstr(u.last, "traceparent: 00-"));
	desk_close(&desk);
	upstream_close(&u);
}

#define TRACE "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
#define FILES "hx-http-secrets" /* in TMPDIR, where main() goes */

static void write_secret(const char *name, const char *text, size_t n)
{
	char path[100];
	FILE *file;

	(void)mkdir(FILES, 0700);
	snprintf(path, sizeof path, FILES "/%s", name);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, n, file), n);
	fclose(file);
}

static const struct {
	struct action_header header;
	const char *words;
} bad_headers[] = {
	{{"X-Token", "${env:HX_TEST_MISSING}", NULL}, "HX_TEST_MISSING is not set"},
	{{"X-Token", "${file:/nonexistent/secret}", NULL}, "/nonexistent/secret cannot be read"},
	{{"X-Token", "${env:HX_TEST_CRLF}", NULL}, "header X-Token: its value holds a control character"},
	{{"X-Token", "a\r\nX-Evil: 1", NULL}, "control character"},
	{{"X-Token", "${vault:x}", NULL}, "neither ${env:NAME} nor ${file:PATH}"},
	{{"X-Token", "${env:HOME", NULL}, "has no }"},
	{{"X Token", "x", NULL}, "no name"},
	{{"X-Token:", "x", NULL}, "no name"},
	{{"Idempotency-Key", "mine", NULL}, "written by the engine"},
	{{"hapax-fence", "9", NULL}, "written by the engine"},
	{{"Content-Length", "9", NULL}, "written by the engine"},
	{{"Transfer-Encoding", "chunked", NULL}, "written by the engine"},
	{{"X-Token", "${env:HX_TEST_LF}", NULL}, "control character"},
	{{"X-Token", "${env:HX_TEST_ESC}", NULL}, "control character"},
	{{"X-Token", "a\x7f", NULL}, "control character"},
	{{"X-Token", "${file:" FILES "/crlf}", NULL}, "control character"},
	{{"X-Token", "${file:" FILES "/lines}", NULL}, "control character"},
	{{"X-Token", "${file:" FILES "/nul}", NULL}, "control character"},
	{{"X-Token", "${file:" FILES "/blank}", NULL}, "control character"},
};

static void begin_bad_headers(void)
{
	setenv("HX_TEST_CRLF", "canary\r\nX-Evil: 1", 1);
	setenv("HX_TEST_LF", "canary\nX-Evil: 1", 1);
	setenv("HX_TEST_ESC", "canary\x1b[2J", 1);
	unsetenv("HX_TEST_MISSING");
	write_secret("crlf", "canary\r\nX-Evil: 1", 17);
	write_secret("lines", "canary\n\n", 8); /* the last line end is left out, no other */
	write_secret("nul", "canary\0x", 8);
	write_secret("blank", "\r\n\r\n", 4);
}

static void end_bad_headers(void)
{
	static const char *const files[] = {FILES "/crlf", FILES "/lines", FILES "/nul", FILES "/blank"};

	for (size_t i = 0; i < COUNT(files); i++)
		assert_int_equal(unlink(files[i]), 0);
	assert_int_equal(rmdir(FILES), 0);
}

static void test_headers_that_cannot_be_sent(void **state)
{
	const struct slice traces[] = {slice_str("00-aa\r\nX-Evil: 1"), slice_str(TRACE "\r\nX-Evil: 1"),
				       slice_str(TRACE " a=b\r\nX-Evil: 1"), slice_str(TRACE " a=b\nX-Evil: 1"),
				       slice_of(TRACE " a\0Evil", sizeof TRACE + 6)};
	const struct slice texts[] = {slice_str("a\nb"), slice_str("a\r\nX-Evil: 1"), slice_of("a\0b", 3),
				      slice_str("\r"), slice_str("a\x7f")};
	static const struct page pages[] = {{"/x", PAGE_REPLY, OK_JSON}, {0}};
	struct upstream u;
	struct desk desk;
	char url[128];

	(void)state;
	begin_bad_headers();
	upstream_open(&u, pages);
	desk_open(&desk, &(struct port_options){0});
	struct action action = upstream_action(&u, "/x", url);

	for (size_t i = 0; i < COUNT(bad_headers); i++) {
		const struct desk_answer *answer;

		action.request.headers = &bad_headers[i].header;
		action.request.headers_n = 1;
		answer = desk_call(&desk, &action, "{}");
		desk_expect(answer, ACT_FAILED_FOR_GOOD, bad_headers[i].words);
		assert_null(strstr(answer->output, "canary"));
	}
	action.request.headers_n = 0;
	for (size_t i = 0; i < COUNT(texts); i++) {
		struct act_call call = {.input = slice_str("{}"), .key = texts[i]};

		desk_expect(desk_wait(&desk, desk_start(&desk, &action, call)), ACT_FAILED_FOR_GOOD,
			    "header Idempotency-Key");
	}
	assert_int_equal(upstream_count(&u, connections), 0);
	for (size_t i = 0; i < COUNT(traces); i++) { /* refused, or left out */
		struct act_call call = {.input = slice_str("{}"), .traceparent = traces[i]};

		(void)desk_wait(&desk, desk_start(&desk, &action, call));
		assert_null(strstr(u.last, "Evil"));
	}
	desk_close(&desk);
	upstream_close(&u);
	end_bad_headers();
}

#define CANARY "s3cret/canary-is-long"

/* A service that shows its visitors what they sent, in every way of saying something. */
static void test_secrets_are_not_shown(void **state)
{
	static const struct {
		struct page page;
		enum act_outcome outcome;
	} echoes[] = {
		{{"/500", PAGE_REPLY, REPLY("500 No", "you sent Bearer " CANARY " and so on..")}, ACT_FAILED},
		{{"/500-json", PAGE_REPLY, REPLY("500 No", "{\"x\":\"s3cret\\/canary-is-long\"}")}, ACT_FAILED},
		{{"/422", PAGE_REPLY, REPLY("422 No", "{\"got\":\"Bearer " CANARY "\"}   ")}, ACT_INVALID},
		{{"/422-text", PAGE_REPLY, REPLY("422 No", "got " CANARY)}, ACT_INVALID},
		{{"/400", PAGE_REPLY, REPLY("400 No", CANARY)}, ACT_FAILED_FOR_GOOD},
		{{"/400-invalid", PAGE_REPLY, REPLY("400 No", "{\"is_invalid\":true,\"got\":\"" CANARY "\"}")},
		 ACT_INVALID},
		{{"/200", PAGE_REPLY, REPLY("200 OK", "{\"headers\":{\"Authorization\":\"Bearer " CANARY "\"}}")},
		 ACT_OK},
		{{"/200-php", PAGE_REPLY, REPLY("200 OK", "[\"s3cret\\/canary-is-long\"]")}, ACT_OK},
		{{"/200-invalid", PAGE_REPLY, REPLY("200 OK", "{\"is_invalid\":true,\"got\":\"" CANARY "\"}")},
		 ACT_INVALID},
	};
	static const struct action_header header = {"Authorization", "Bearer ${env:HX_TEST_SECRET}", NULL};
	struct page pages[COUNT(echoes) + 1] = {0};
	struct upstream u;
	struct desk desk;
	char url[128];

	(void)state;
	setenv("HX_TEST_SECRET", CANARY, 1);
	for (size_t i = 0; i < COUNT(echoes); i++)
		pages[i] = echoes[i].page;
	upstream_open(&u, pages);
	desk_open(&desk, &(struct port_options){0});
	for (size_t i = 0; i < COUNT(echoes); i++) {
		struct action action = upstream_action(&u, pages[i].path, url);
		const struct desk_answer *answer;

		action.request.headers = &header;
		action.request.headers_n = 1;
		answer = desk_call(&desk, &action, "{}");
		assert_non_null(strstr(u.last, "Authorization: Bearer " CANARY "\r\n"));
		if (answer->outcome != echoes[i].outcome || strstr(answer->output, "canary") ||
		    !strstr(answer->output, "****"))
			fail_msg("%s: %s: %s", pages[i].path, act_outcome_name(answer->outcome), answer->output);
	}
	desk_close(&desk);
	upstream_close(&u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_the_service_sees),
		cmocka_unit_test(test_what_the_service_sees_without_a_key),
		cmocka_unit_test(test_headers_that_cannot_be_sent),
		cmocka_unit_test(test_secrets_are_not_shown),
	};

	if (chdir(getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp"))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
