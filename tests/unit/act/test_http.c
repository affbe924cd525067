/* The http kind against a real service: every outcome class, and what the service gets to see. */
#include "act/http.h"

#include <sys/stat.h>

#include "act/transfer.h"
#include "unit/act/upstream.h"

#define OK_JSON "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{\"a\":1}"
#define TIMEOUT_MS 500 /* in which a request is sent, also on a busy machine */
#define TYPED(type, body) "HTTP/1.1 200 OK\r\nContent-Type: " type "\r\nContent-Length: #\r\n\r\n" body
#define REPLY(status, body) "HTTP/1.1 " status "\r\nContent-Length: #\r\n\r\n" body

static const struct {
	struct page page;
	bool unknown_on_5xx;
	enum act_outcome outcome;
	const char *part;
} classes[] = {
	{{"/json", PAGE_REPLY, OK_JSON}, false, ACT_OK, "{\"a\":1}"},
	{{"/spaces", PAGE_REPLY, REPLY("200 OK", " [1] \n")}, false, ACT_OK, "[1]"},
	{{"/number", PAGE_REPLY, REPLY("200 OK", "9007199254740993")}, false, ACT_OK, "9007199254740993"},
	{{"/created", PAGE_REPLY, REPLY("201 Created", "{}")}, false, ACT_OK, "{}"},
	{{"/empty", PAGE_REPLY, REPLY("200 OK", "")}, false, ACT_OK, "null"},
	{{"/none", PAGE_REPLY, "HTTP/1.1 204 No Content\r\n\r\n"}, false, ACT_OK, "null"},
	{{"/blank", PAGE_REPLY, REPLY("200 OK", " \r\n")}, false, ACT_OK, "null"},
	{{"/chunked", PAGE_REPLY, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"},
	 false,
	 ACT_OK,
	 "{}"},
	{{"/until-close", PAGE_REPLY_CLOSE, "HTTP/1.0 200 OK\r\n\r\n{\"b\":2}"}, false, ACT_OK, "{\"b\":2}"},
	{{"/continue", PAGE_REPLY, "HTTP/1.1 100 Continue\r\n\r\n" OK_JSON}, false, ACT_OK, "{\"a\":1}"},
	{{"/text", PAGE_REPLY, TYPED("text/plain", "ok")}, false, ACT_OK, "{\"text\":\"ok\"}"},
	{{"/no-type", PAGE_REPLY, REPLY("200 OK", "hello")}, false, ACT_OK, "{\"text\":\"hello\"}"},
	{{"/html", PAGE_REPLY, TYPED("text/html", "<p>\"fine\"</p>")},
	 false,
	 ACT_OK,
	 "{\"text\":\"<p>\\\"fine\\\"</p>\"}"},
	{{"/bytes", PAGE_REPLY, TYPED("application/pdf", "%P\xff\xfe")}, false, ACT_OK, "{\"base64\":\"JVD//g==\"}"},
	{{"/text-json", PAGE_REPLY, TYPED("text/plain", "{\"a\":1}")}, false, ACT_OK, "{\"a\":1}"},
	{{"/invalid", PAGE_REPLY, REPLY("200 OK", "{\"is_invalid\":true,\"why\":\"dup\"}")},
	 false,
	 ACT_INVALID,
	 "{\"is_invalid\":true,\"why\":\"dup\"}"},
	{{"/valid", PAGE_REPLY, REPLY("200 OK", "{\"is_invalid\":false} ")}, false, ACT_OK, "false"},
	{{"/valid-text", PAGE_REPLY, REPLY("200 OK", "{\"is_invalid\":\"true\"}")}, false, ACT_OK, "true"},
	{{"/valid-deep", PAGE_REPLY, REPLY("200 OK", "{\"x\":{\"is_invalid\":true}}")}, false, ACT_OK, "x"},
	{{"/422", PAGE_REPLY, REPLY("422 No", "{\"why\":\"no\"}")}, false, ACT_INVALID, "{\"why\":\"no\"}"},
	{{"/422-text", PAGE_REPLY, REPLY("422 No", "\"too\" big")},
	 false,
	 ACT_INVALID,
	 "{\"is_invalid\":true,\"message\":\"\\\"too\\\" big\"}"},
	{{"/422-empty", PAGE_REPLY, REPLY("422 No", "")}, false, ACT_INVALID, "{\"is_invalid\":true}"},
	{{"/400-invalid", PAGE_REPLY, REPLY("400 Bad", "{\"is_invalid\":true }")}, false, ACT_INVALID, "true"},
	{{"/400", PAGE_REPLY, REPLY("400 Bad", "what")}, false, ACT_FAILED_FOR_GOOD, "HTTP 400: what"},
	{{"/401", PAGE_REPLY, "HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n"},
	 false,
	 ACT_FAILED_FOR_GOOD,
	 "HTTP 401"},
	{{"/404", PAGE_REPLY, REPLY("404 Not Found", "")}, false, ACT_FAILED_FOR_GOOD, "HTTP 404"},
	{{"/409", PAGE_REPLY, REPLY("409 Conflict", "")}, false, ACT_FAILED_FOR_GOOD, "HTTP 409"},
	{{"/417", PAGE_REPLY, REPLY("417 Expectation Failed", "")}, false, ACT_FAILED_FOR_GOOD, "HTTP 417"},
	{{"/408", PAGE_REPLY, REPLY("408 Late", "")}, true, ACT_FAILED, "HTTP 408"},
	{{"/425", PAGE_REPLY, REPLY("425 Early", "")}, true, ACT_FAILED, "HTTP 425"},
	{{"/429", PAGE_REPLY, REPLY("429 Slow", "")}, true, ACT_FAILED, "HTTP 429"},
	{{"/429-invalid", PAGE_REPLY, REPLY("429 Slow", "{\"is_invalid\":true}")}, true, ACT_INVALID, "is_invalid"},
	{{"/500", PAGE_REPLY, REPLY("500 Oops", "a\x1b[1mb")}, false, ACT_FAILED, "HTTP 500: a\\u001b[1mb"},
	{{"/500-invalid", PAGE_REPLY, REPLY("500 Oops", "{\"is_invalid\":true }")}, false, ACT_FAILED, "500"},
	{{"/503", PAGE_REPLY, REPLY("503 Busy", "")}, false, ACT_FAILED, "HTTP 503"},
	{{"/500-unknown", PAGE_REPLY, REPLY("500 Oops", "")}, true, ACT_UNKNOWN, "HTTP 500"},
	{{"/301", PAGE_REPLY, "HTTP/1.1 301 There\r\nLocation: /json\r\nContent-Length: 0\r\n\r\n"},
	 false,
	 ACT_FAILED_FOR_GOOD,
	 "redirects are not followed"},
	{{"/307", PAGE_REPLY, "HTTP/1.1 307 There\r\nLocation: /json\r\nContent-Length: 0\r\n\r\n"},
	 false,
	 ACT_FAILED_FOR_GOOD,
	 "redirects are not followed"},
	{{"/304", PAGE_REPLY, "HTTP/1.1 304 Same\r\n\r\n"}, false, ACT_FAILED_FOR_GOOD, "HTTP 304"},
	/* broken */
	{{"/half-json", PAGE_REPLY, TYPED("application/json", "{\"a\"")}, false, ACT_UNKNOWN, "not JSON"},
	{{"/half-problem", PAGE_REPLY, TYPED("application/x+JSON; charset=utf-8", "no")},
	 false,
	 ACT_UNKNOWN,
	 "not JSON"},
	{{"/close", PAGE_CLOSE, NULL}, false, ACT_UNKNOWN, "no whole reply"},
	{{"/reset", PAGE_RESET, NULL}, false, ACT_UNKNOWN, "no whole reply"},
	{{"/short", PAGE_REPLY_CLOSE, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"a\":1}"},
	 false,
	 ACT_UNKNOWN,
	 "no whole reply"},
	{{"/short-404", PAGE_REPLY_CLOSE, "HTTP/1.1 404 No\r\nContent-Length: 100\r\n\r\nx"},
	 false,
	 ACT_UNKNOWN,
	 "no whole reply"},
	{{"/short-500", PAGE_REPLY_CLOSE, "HTTP/1.1 500 No\r\nContent-Length: 100\r\n\r\nx"},
	 false,
	 ACT_UNKNOWN,
	 "no whole reply"},
	{{"/short-chunk", PAGE_REPLY_CLOSE, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"},
	 false,
	 ACT_UNKNOWN,
	 "no whole reply"},
	{{"/bad-chunk", PAGE_REPLY_CLOSE, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n"},
	 false,
	 ACT_UNKNOWN,
	 "no whole reply"},
	{{"/head-only", PAGE_REPLY_CLOSE, "HTTP/1.1 200 OK\r\nContent-Le"}, false, ACT_UNKNOWN, ""},
	{{"/status-only", PAGE_REPLY_CLOSE, "HTTP/1.1 200"}, false, ACT_UNKNOWN, ""},
	{{"/garbage", PAGE_REPLY_CLOSE, "\x16\x03\x01 what is this\r\n\r\n"}, false, ACT_UNKNOWN, "no whole reply"},
	{{"/http09", PAGE_REPLY_CLOSE, "{\"a\":1}"}, false, ACT_UNKNOWN, "no whole reply"},
	{{"/bad-length", PAGE_REPLY_CLOSE, "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n{}"}, false, ACT_UNKNOWN, ""},
	{{"/999", PAGE_REPLY_CLOSE, REPLY("999 What", "")}, false, ACT_UNKNOWN, "from 100 to 599"},
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void test_outcome_classes(void **state)
{
	struct page pages[COUNT(classes) + 1] = {0};
	struct upstream u;
	struct desk desk;
	char url[128];

	(void)state;
	for (size_t i = 0; i < COUNT(classes); i++)
		pages[i] = classes[i].page;
	upstream_open(&u, pages);
	desk_open(&desk, &(struct port_options){0});
	for (size_t i = 0; i < COUNT(classes); i++) {
		struct action action = upstream_action(&u, pages[i].path, url);
		struct act_call call = {.input = slice_str("{}"), .unknown_on_5xx = classes[i].unknown_on_5xx};
		const struct desk_answer *answer = desk_wait(&desk, desk_start(&desk, &action, call));

		if (answer->outcome != classes[i].outcome || !strstr(answer->output, classes[i].part))
			fail_msg("%s: %s: %s", pages[i].path, act_outcome_name(answer->outcome), answer->output);
		if (upstream_count(&u, applied) != i + 1)
			fail_msg("%s: was sent twice, or followed", pages[i].path);
	}
	desk_close(&desk);
	upstream_close(&u);
	printf("# %zu replies\n", COUNT(classes));
}

#define LATER(status, value) "HTTP/1.1 " status "\r\nRetry-After: " value "\r\nContent-Length: 0\r\n\r\n"
#define DATED(date, value) "HTTP/1.1 503 Busy\r\nDate: " date "\r\nRetry-After: " value "\r\nContent-Length: 0\r\n\r\n"

/* When the service wants to be asked again: in seconds, as a date by its own clock, in the past, too far off, or in no words. */
static void test_retry_after(void **state)
{
	static const struct {
		struct page page;
		enum action_effect effect;
		bool in_doubt;
		enum act_outcome outcome;
		int64_t not_before_ms;
	} cases[] = {
		{{"/s", PAGE_REPLY, LATER("429 Slow", "7")}, EFFECT_CLAIMED, false, ACT_FAILED, 7000},
		{{"/max", PAGE_REPLY, LATER("429 Slow", "3600")}, EFFECT_CLAIMED, false, ACT_FAILED, 3600000},
		{{"/more", PAGE_REPLY, LATER("429 Slow", "3601")}, EFFECT_CLAIMED, false, ACT_FAILED, 3600000},
		{{"/huge", PAGE_REPLY, LATER("429 Slow", "99999999999999999999")},
		 EFFECT_CLAIMED,
		 false,
		 ACT_FAILED,
		 3600000},
		{{"/minus", PAGE_REPLY, LATER("429 Slow", "-7")}, EFFECT_CLAIMED, false, ACT_FAILED, 0},
		{{"/soon", PAGE_REPLY, LATER("429 Slow", "soon")}, EFFECT_CLAIMED, false, ACT_FAILED, 0},
		{{"/half", PAGE_REPLY, LATER("429 Slow", "1.5")}, EFFECT_CLAIMED, false, ACT_FAILED, 0},
		{{"/date", PAGE_REPLY, DATED("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:50:07 GMT")},
		 EFFECT_CLAIMED,
		 false,
		 ACT_FAILED,
		 30000},
		{{"/past", PAGE_REPLY, LATER("503 Busy", "Sun, 06 Nov 1994 08:50:07 GMT")},
		 EFFECT_CLAIMED,
		 false,
		 ACT_FAILED,
		 0},
		{{"/far", PAGE_REPLY, LATER("503 Busy", "Fri, 06 Nov 2093 08:50:07 GMT")},
		 EFFECT_CLAIMED,
		 false,
		 ACT_FAILED,
		 3600000},
		{{"/404", PAGE_REPLY, LATER("404 No", "7")}, EFFECT_CLAIMED, false, ACT_FAILED_FOR_GOOD, 7000},
		{{"/409", PAGE_REPLY, LATER("409 Busy", "0")}, EFFECT_KEYED, false, ACT_UNSETTLED, 0},
		{{"/409b", PAGE_REPLY, REPLY("409 Busy", "")}, EFFECT_KEYED, true, ACT_UNSETTLED, 0},
		{{"/409c", PAGE_REPLY, REPLY("409 Busy", "")}, EFFECT_KEYED, false, ACT_FAILED_FOR_GOOD, 0},
		{{"/409d", PAGE_REPLY, LATER("409 Busy", "7")}, EFFECT_CLAIMED, true, ACT_FAILED_FOR_GOOD, 7000},
	};
	struct page pages[COUNT(cases) + 1] = {0};
	struct upstream u;
	struct desk desk;
	char url[128];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		pages[i] = cases[i].page;
	upstream_open(&u, pages);
	desk_open(&desk, &(struct port_options){0});
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct action action = upstream_action(&u, pages[i].path, url);
		struct act_call call = {.input = slice_str("{}"), .in_doubt = cases[i].in_doubt};
		const struct desk_answer *answer;

		action.effect = cases[i].effect;
		answer = desk_wait(&desk, desk_start(&desk, &action, call));
		if (answer->outcome != cases[i].outcome || answer->not_before_ms != cases[i].not_before_ms)
			fail_msg("%s: %s, %lld ms", pages[i].path, act_outcome_name(answer->outcome),
				 (long long)answer->not_before_ms);
	}
	desk_close(&desk);
	upstream_close(&u);
}

/* Of an action that says itself what a status means; a long body of one that is done is read whole. */
static void test_outcomes_of_the_action(void **state)
{
	static const struct outcome_range ranges[] = {{400, 499, OUTCOME_DONE},
						      {404, 404, OUTCOME_RETRY},
						      {200, 200, OUTCOME_UNKNOWN},
						      {500, 500, OUTCOME_REJECTED}};
	static char longer[200000];
	struct page pages[] = {{"/403", PAGE_REPLY, longer},
			       {"/404", PAGE_REPLY, LATER("404 No", "7")},
			       {"/200", PAGE_REPLY, OK_JSON},
			       {"/500", PAGE_REPLY, REPLY("500 No", "why")},
			       {0}};
	static const enum act_outcome outcomes[] = {ACT_OK, ACT_FAILED, ACT_UNKNOWN, ACT_INVALID};
	struct upstream u;
	struct desk desk;
	char url[128];
	int n = snprintf(longer, sizeof longer, "%s", REPLY("403 No", ""));

	(void)state;
	memset(longer + n, 'x', 100000);
	upstream_open(&u, pages);
	desk_open(&desk, &(struct port_options){0});
	for (size_t i = 0; i < 4; i++) {
		struct action action = upstream_action(&u, pages[i].path, url);
		const struct desk_answer *answer;

		action.outcomes = (struct outcomes){COUNT(ranges), ranges};
		answer = desk_wait(&desk, desk_start(&desk, &action, (struct act_call){.input = slice_str("{}")}));
		assert_int_equal(answer->outcome, outcomes[i]);
		assert_int_equal(answer->not_before_ms, i == 1 ? 7000 : 0);
		if (i == 0)
			assert_int_equal(answer->output_n, 100000 + strlen("{\"text\":\"\"}"));
	}
	desk_close(&desk);
	upstream_close(&u);
}

/* Of an action that cleans up; the same replies to any other are failures. */
static void test_gone_is_done(void **state)
{
	static const struct page pages[] = {{"/404", PAGE_REPLY, REPLY("404 Not Found", "{\"no\":1}")},
					    {"/410", PAGE_REPLY, REPLY("410 Gone", "")},
					    {"/409", PAGE_REPLY, REPLY("409 Conflict", "")},
					    {0}};
	struct upstream u;
	struct desk desk;
	char url[128];

	(void)state;
	upstream_open(&u, pages);
	desk_open(&desk, &(struct port_options){0});
	for (size_t i = 0; i < 3; i++)
		for (int gone = 0; gone <= 1; gone++) {
			struct action action = upstream_action(&u, pages[i].path, url);
			struct act_call call = {.input = slice_str("{}")};
			bool done = gone && i < 2;

			action.gone_is_done = gone;
			desk_expect(desk_wait(&desk, desk_start(&desk, &action, call)),
				    done ? ACT_OK : ACT_FAILED_FOR_GOOD, done ? "null" : "HTTP 4");
		}
	desk_close(&desk);
	upstream_close(&u);
}

static void expect_line(const struct upstream *u, const char *line)
{
	char text[256];

	snprintf(text, sizeof text, "\r\n%s\r\n", line);
	if (!strstr(u->last, text))
		fail_msg("no %s in: %s", line, u->last);
}

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

	/* Without a key there is no such header, but a fence and a trace there always are; an action may name another type of JSON. */
	static const struct action_header own_type[] = {{"content-type", "application/vnd.x+json", NULL}};

	action.request.headers = own_type;
	action.request.headers_n = 1;
	call = (struct act_call){.input = slice_str("{}")};
	desk_expect(desk_wait(&desk, desk_start(&desk, &action, call)), ACT_OK, "");
	expect_line(&u, "content-type: application/vnd.x+json");
	assert_null(strstr(u.last, "application/json\r\nAccept"));
	expect_line(&u, "Hapax-Fence: 1");
	assert_null(strstr(u.last, "Idempotency-Key"));
	assert_non_null(strstr(u.last, "traceparent: 00-"));
	desk_close(&desk);
	upstream_close(&u);
	unsetenv("http_proxy");
	unsetenv("ALL_PROXY");
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

static void test_headers_that_cannot_be_sent(void **state)
{
	static const struct {
		struct action_header header;
		const char *words;
	} bad[] = {
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
	static const char *const files[] = {FILES "/crlf", FILES "/lines", FILES "/nul", FILES "/blank"};
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
	setenv("HX_TEST_CRLF", "canary\r\nX-Evil: 1", 1);
	setenv("HX_TEST_LF", "canary\nX-Evil: 1", 1);
	setenv("HX_TEST_ESC", "canary\x1b[2J", 1);
	unsetenv("HX_TEST_MISSING");
	write_secret("crlf", "canary\r\nX-Evil: 1", 17);
	write_secret("lines", "canary\n\n", 8); /* the last line end is left out, no other */
	write_secret("nul", "canary\0x", 8);
	write_secret("blank", "\r\n\r\n", 4);
	upstream_open(&u, pages);
	desk_open(&desk, &(struct port_options){0});
	struct action action = upstream_action(&u, "/x", url);

	for (size_t i = 0; i < COUNT(bad); i++) {
		const struct desk_answer *answer;

		action.request.headers = &bad[i].header;
		action.request.headers_n = 1;
		answer = desk_call(&desk, &action, "{}");
		desk_expect(answer, ACT_FAILED_FOR_GOOD, bad[i].words);
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
	for (size_t i = 0; i < COUNT(files); i++)
		assert_int_equal(unlink(files[i]), 0);
	assert_int_equal(rmdir(FILES), 0);
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

static void test_nothing_was_sent(void **state)
{
	static const struct {
		const char *url;
		enum act_outcome outcome;
		const char *words;
	} calls[] = {
		{"http://127.0.0.1:%d/", ACT_FAILED, "nothing was sent: Failed to connect"}, /* nobody listens */
		{"https://127.0.0.1:%d/", ACT_FAILED, "nothing was sent"},
		{"http://no-such-host.invalid/", ACT_FAILED, "nothing was sent: Could not resolve host"},
		{"http://[::1/", ACT_FAILED_FOR_GOOD, "nothing was sent"},
		{"http://127.0.0.1:99999/", ACT_FAILED_FOR_GOOD, "nothing was sent"},
		{"ftp://127.0.0.1/x", ACT_FAILED_FOR_GOOD, "nothing was sent"},
		{"file:///etc/passwd", ACT_FAILED_FOR_GOOD, "nothing was sent"},
		{"gopher://127.0.0.1:%d/x", ACT_FAILED_FOR_GOOD, "nothing was sent"},
	};
	struct desk desk;
	int port, nobody = upstream_bind(&port);

	(void)state;
	desk_open(&desk, &(struct port_options){0});
	for (size_t i = 0; i < COUNT(calls); i++) {
		struct action action = {
			.name = "x", .kind = ACTION_HTTP, .effect = EFFECT_CLAIMED, .timeout_ms = 30000};
		char url[128];
		const char *number = strstr(calls[i].url, "%d");

		snprintf(url, sizeof url, "%.*s", number ? (int)(number - calls[i].url) : 127, calls[i].url);
		if (number)
			snprintf(url + strlen(url), sizeof url - strlen(url), "%d%s", port, number + 2);
		action.url = url;
		desk_expect(desk_call(&desk, &action, "{}"), calls[i].outcome, calls[i].words);
	}
	desk_close(&desk);
	close(nobody);
}

static void test_times_out(void **state)
{
	static const struct page pages[] = {{"/hang", PAGE_HANG, OK_JSON}, {0}};
	struct upstream u;
	struct desk desk;
	char url[128];

	(void)state;
	upstream_open(&u, pages);
	desk_open(&desk, &(struct port_options){0});
	struct action action = upstream_action(&u, "/hang", url);

	action.timeout_ms = TIMEOUT_MS;
	desk_expect(desk_call(&desk, &action, "{}"), ACT_UNKNOWN, "no whole reply");
	upstream_wait(&u, gone, 1);  /* and the connection is not left to linger */
	action.timeout_ms = 3600000; /* what the call says goes before */
	desk_expect(desk_wait(&desk, desk_start(&desk, &action, (struct act_call){.timeout_ms = TIMEOUT_MS})),
		    ACT_UNKNOWN, "no whole reply");
	upstream_wait(&u, gone, 2);
	desk_close(&desk);
	upstream_close(&u);
}

/* The handshake of TCP, or of TLS, does not come to its end: the request was never sent. */
static void test_times_out_while_connecting(void **state)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct desk desk;
	int port, full = upstream_listen(0, &port), clients[8];
	char url[128];
	struct action action = {.name = "x", .kind = ACTION_HTTP, .timeout_ms = 200, .url = url};

	(void)state;
	desk_open(&desk, &(struct port_options){0});
	snprintf(url, sizeof url, "https://127.0.0.1:%d/", port);
	desk_expect(desk_call(&desk, &action, "{}"), ACT_FAILED, "nothing was sent");
	address.sin_port = htons((uint16_t)port);
	for (size_t i = 0; i < COUNT(clients); i++) { /* fills the backlog; further SYNs are dropped */
		clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		(void)connect(clients[i], (struct sockaddr *)&address, sizeof address);
	}
	snprintf(url, sizeof url, "http://127.0.0.1:%d/", port);
	desk_expect(desk_call(&desk, &action, "{}"), ACT_FAILED, "nothing was sent");
	for (size_t i = 0; i < COUNT(clients); i++)
		close(clients[i]);
	close(full);
	desk_close(&desk);
}

/* A JSON string of n bytes in all, as a reply. */
static char *big_reply(const char *status, size_t n)
{
	char *text = malloc(n + 128);
	int head = snprintf(text, 128, "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n", status, n);

	memset(text + head, 'x', n);
	text[head] = text[(size_t)head + n - 1] = '"';
	text[(size_t)head + n] = '\0';
	return text;
}

/* A reply with a head of n bytes in all, in many lines. */
static char *big_head(size_t n)
{
	static const char status[] = "HTTP/1.1 200 OK\r\n", end[] = "Content-Length: 2\r\n\r\n";
	char *text = malloc(n + 3);
	size_t at = sizeof status - 1, last = n - (sizeof end - 1);

	memcpy(text, status, at);
	while (at < last) {
		size_t line = last - at < 2000 ? last - at : 1000;

		memset(text + at, 'x', line);
		memcpy(text + at, "X:", 2);
		memcpy(text + at + line - 2, "\r\n", 2);
		at += line;
	}
	snprintf(text + at, sizeof end + 2, "%s{}", end);
	return text;
}

static void test_head_ceiling(void **state)
{
	char *at_limit = big_head(TRANSFER_HEAD_BYTES_MAX), *past = big_head(TRANSFER_HEAD_BYTES_MAX + 1);
	const struct page pages[] = {{"/limit", PAGE_REPLY, at_limit}, {"/past", PAGE_REPLY_CLOSE, past}, {0}};
	struct upstream u;
	struct desk desk;
	char url[128];

	(void)state;
	upstream_open(&u, pages);
	desk_open(&desk, &(struct port_options){0});
	struct action action = upstream_action(&u, "/limit", url);

	desk_expect(desk_call(&desk, &action, "{}"), ACT_OK, "{}");
	action = upstream_action(&u, "/past", url);
	desk_expect(desk_call(&desk, &action, "{}"), ACT_UNKNOWN, "the head of the reply is longer than 64 KiB");
	desk_close(&desk);
	upstream_close(&u);
	free(at_limit);
	free(past);
}

static void test_ceilings(void **state)
{
	char *at_limit = big_reply("200 OK", VERDICT_OUTPUT_BYTES_MAX);
	char *past = big_reply("200 OK", VERDICT_OUTPUT_BYTES_MAX + 1);
	char *error_page = big_reply("500 No", VERDICT_OUTPUT_BYTES_MAX + 1);
	const struct page pages[] = {{"/limit", PAGE_REPLY, at_limit},
				     {"/past", PAGE_REPLY, past},
				     {"/page", PAGE_REPLY, error_page},
				     {"/x", PAGE_REPLY, OK_JSON},
				     {0}};
	char *input = big_reply("", 5u << 20);
	struct upstream u;
	struct desk desk;
	char url[128];

	(void)state;
	upstream_open(&u, pages);
	desk_open(&desk, &(struct port_options){0});
	struct action action = upstream_action(&u, "/limit", url);

	assert_int_equal(desk_call(&desk, &action, "{}")->outcome, ACT_OK);
	action = upstream_action(&u, "/past", url);
	desk_expect(desk_call(&desk, &action, "{}"), ACT_UNKNOWN, "longer than 16 MiB");
	action = upstream_action(&u, "/page", url);
	desk_expect(desk_call(&desk, &action, "{}"), ACT_FAILED, "HTTP 500: \"xxx");
	action = upstream_action(&u, "/x", url);
	desk_expect(desk_call(&desk, &action, strchr(input, '"')), ACT_OK, "");
	expect_line(&u, "Content-Length: 5242880");
	assert_null(strstr(u.last, "Expect:"));
	assert_int_equal(strlen(strstr(u.last, "\r\n\r\n") + 4), 5u << 20);
	desk_close(&desk);
	upstream_close(&u);
	free(at_limit);
	free(past);
	free(error_page);
	free(input);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_outcome_classes),
		cmocka_unit_test(test_retry_after),
		cmocka_unit_test(test_outcomes_of_the_action),
		cmocka_unit_test(test_gone_is_done),
		cmocka_unit_test(test_what_the_service_sees),
		cmocka_unit_test(test_headers_that_cannot_be_sent),
		cmocka_unit_test(test_secrets_are_not_shown),
		cmocka_unit_test(test_nothing_was_sent),
		cmocka_unit_test(test_times_out),
		cmocka_unit_test(test_times_out_while_connecting),
		cmocka_unit_test(test_head_ceiling),
		cmocka_unit_test(test_ceilings),
	};

	if (chdir(getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp"))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
