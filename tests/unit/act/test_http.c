/* The http kind against a real service: every outcome class, and what the service gets to see. */
#include "act/http.h"

#include <sys/stat.h>

#include "act/transfer.h"
#include "unit/act/http_pages.h"

#define TIMEOUT_MS 500 /* in which a request is sent, also on a busy machine */
#define TYPED(type, body) "HTTP/1.1 200 OK\r\nContent-Type: " type "\r\nContent-Length: #\r\n\r\n" body

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

static const struct {
	struct page page;
	enum action_effect effect;
	bool in_doubt;
	enum act_outcome outcome;
	int64_t not_before_ms;
} delays[] = {
	{{"/s", PAGE_REPLY, LATER("429 Slow", "7")}, EFFECT_CLAIMED, false, ACT_FAILED, 7000},
	{{"/max", PAGE_REPLY, LATER("429 Slow", "3600")}, EFFECT_CLAIMED, false, ACT_FAILED, 3600000},
	{{"/more", PAGE_REPLY, LATER("429 Slow", "3601")}, EFFECT_CLAIMED, false, ACT_FAILED, 3600000},
	{{"/huge", PAGE_REPLY, LATER("429 Slow", "99999999999999999999")}, EFFECT_CLAIMED, false, ACT_FAILED, 3600000},
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

/* When the service wants to be asked again: in seconds, as a date by its own clock, in the past, too far off, or in no words. */
static void test_retry_after(void **state)
{
	struct page pages[COUNT(delays) + 1] = {0};
	struct upstream u;
	struct desk desk;
	char url[128];

	(void)state;
	for (size_t i = 0; i < COUNT(delays); i++)
		pages[i] = delays[i].page;
	upstream_open(&u, pages);
	desk_open(&desk, &(struct port_options){0});
	for (size_t i = 0; i < COUNT(delays); i++) {
		struct action action = upstream_action(&u, pages[i].path, url);
		struct act_call call = {.input = slice_str("{}"), .in_doubt = delays[i].in_doubt};
		const struct desk_answer *answer;

		action.effect = delays[i].effect;
		answer = desk_wait(&desk, desk_start(&desk, &action, call));
		if (answer->outcome != delays[i].outcome || answer->not_before_ms != delays[i].not_before_ms)
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
