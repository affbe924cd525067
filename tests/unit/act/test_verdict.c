/* The table of verdict.h, without a network: every status, and texts at their limits. */
#include "act/verdict.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/utf8.h"

static enum act_outcome expected(long status, bool unknown_on_5xx)
{
	if (status >= 200 && status <= 299)
		return ACT_OK;
	if (status == 422)
		return ACT_INVALID;
	if (status == 408 || status == 425 || status == 429)
		return ACT_FAILED;
	if (status >= 300 && status <= 499)
		return ACT_FAILED_FOR_GOOD;
	if (status >= 500 && status <= 599)
		return unknown_on_5xx ? ACT_UNKNOWN : ACT_FAILED;
	return ACT_UNKNOWN;
}

static void test_every_status(void **state)
{
	struct strbuf words;

	(void)state;
	strbuf_init(&words, VERDICT_WORDS_MAX);
	for (long status = 0; status <= 1000; status++)
		for (int unknown = 0; unknown <= 1; unknown++) {
			struct reply reply = {.sent = true,
					      .complete = true,
					      .unknown_on_5xx = unknown,
					      .status = status,
					      .body = slice_str("{}")};

			assert_int_equal(verdict_of_reply(&reply, &words).outcome, expected(status, unknown));
			/* Whatever the status of a reply that is not whole: who knows. */
			reply.complete = false;
			reply.fault = "cut";
			assert_int_equal(verdict_of_reply(&reply, &words).outcome, ACT_UNKNOWN);
			reply.sent = false;
			assert_int_equal(verdict_of_reply(&reply, &words).outcome, ACT_FAILED);
			reply.hopeless = true;
			assert_int_equal(verdict_of_reply(&reply, &words).outcome, ACT_FAILED_FOR_GOOD);
		}
	strbuf_release(&words);
}

/* What is to be deleted and is not there is deleted; to all other actions a 404 is a failure, as above. */
static void test_gone_is_done(void **state)
{
	static const char *const bodies[] = {"", "{}", "{\"is_invalid\":true}", "<html>not here</html>"};
	struct strbuf words;

	(void)state;
	strbuf_init(&words, VERDICT_WORDS_MAX);
	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
		for (long status = 400; status <= 410; status++) {
			struct reply reply = {.sent = true,
					      .complete = true,
					      .gone_is_done = true,
					      .fault = "cut",
					      .status = status,
					      .body = slice_str(bodies[i])};
			bool gone = status == 404 || status == 410;
			struct verdict verdict = verdict_of_reply(&reply, &words);

			assert_int_equal(verdict.outcome == ACT_OK, gone);
			if (gone)
				assert_true(slice_is(verdict.output, "null"));
			reply.complete = false;
			assert_int_equal(verdict_of_reply(&reply, &words).outcome, ACT_UNKNOWN);
		}
	for (long status = 0; status <= 1000; status++) {
		struct reply reply = {.sent = true,
				      .complete = true,
				      .gone_is_done = true,
				      .status = status,
				      .body = slice_str("{}")};

		if (status != 404 && status != 410)
			assert_int_equal(verdict_of_reply(&reply, &words).outcome, expected(status, false));
	}
	strbuf_release(&words);
}

/* What a service says that is done in its own way. Declared as JSON it must be JSON, otherwise it may be. */
static void test_bodies_of_what_is_done(void **state)
{
	static const struct {
		const char *body;
		bool declared;
		enum act_outcome outcome;
		const char *output; /* NULL: words */
	} cases[] = {
		{"ok", false, ACT_OK, "{\"text\":\"ok\"}"},
		{"ok\n", false, ACT_OK, "{\"text\":\"ok\\n\"}"},
		{"{\"a\"", false, ACT_OK, "{\"text\":\"{\\\"a\\\"\"}"},
		{"{\"a\"", true, ACT_UNKNOWN, NULL},
		{"ok", true, ACT_UNKNOWN, NULL},
		{"\xff\xfe", false, ACT_OK, "{\"base64\":\"//4=\"}"},
		{"a\xff", false, ACT_OK, "{\"base64\":\"Yf8=\"}"},
		{"\xff\xff\xff", false, ACT_OK, "{\"base64\":\"////\"}"},
		{"\xff", true, ACT_UNKNOWN, NULL},
		{"", false, ACT_OK, "null"},
		{" \r\n", true, ACT_OK, "null"},
		{"7", false, ACT_OK, "7"},
		{"{\"is_invalid\":true}", false, ACT_INVALID, "{\"is_invalid\":true}"},
	};
	struct strbuf words, made;

	(void)state;
	strbuf_init(&words, VERDICT_WORDS_MAX);
	strbuf_init(&made, VERDICT_OUTPUT_BYTES_MAX);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct reply reply = {.sent = true,
				      .complete = true,
				      .status = 200,
				      .declares_json = cases[i].declared,
				      .body = slice_str(cases[i].body),
				      .made = &made};
		struct verdict verdict = verdict_of_reply(&reply, &words);

		if (verdict.outcome != cases[i].outcome ||
		    (cases[i].output && !slice_is(verdict.output, cases[i].output)))
			fail_msg("%s: %.*s", cases[i].body, SLICE_ARGS(verdict.output));
	}
	strbuf_release(&made);
	strbuf_release(&words);
}

/* Made longer than an output may be: something was done, and nobody can say what. */
static void test_text_at_its_limit(void **state)
{
	size_t n = VERDICT_OUTPUT_BYTES_MAX - strlen("{\"text\":\"\"}");
	char *text = malloc(n + 1);
	struct strbuf words, made;
	struct reply reply = {.sent = true, .complete = true, .status = 200, .made = &made};

	(void)state;
	strbuf_init(&words, VERDICT_WORDS_MAX);
	strbuf_init(&made, VERDICT_OUTPUT_BYTES_MAX);
	memset(text, 'x', n + 1);
	reply.body = slice_of(text, n);
	assert_int_equal(verdict_of_reply(&reply, &words).outcome, ACT_OK);
	assert_int_equal(verdict_of_reply(&reply, &words).output.n, VERDICT_OUTPUT_BYTES_MAX);
	reply.body = slice_of(text, n + 1);
	assert_int_equal(verdict_of_reply(&reply, &words).outcome, ACT_UNKNOWN);
	free(text);
	strbuf_release(&made);
	strbuf_release(&words);
}

/* When it may be asked again is told, whatever it is: only the caller knows whether it asks again. */
static void test_when_to_ask_again(void **state)
{
	static const struct outcome_range of_action[] = {{302, 302, OUTCOME_RETRY}, {500, 504, OUTCOME_FAILED}};
	static const struct outcomes outcomes = {2, of_action};
	static const struct {
		long status;
		bool keyed, in_doubt, tells, own;
		enum act_outcome outcome;
	} cases[] = {
		{429, false, false, true, false, ACT_FAILED},
		{429, false, false, false, false, ACT_FAILED},
		{503, false, false, true, false, ACT_FAILED},
		{500, false, false, true, false, ACT_FAILED},
		{404, false, false, true, false, ACT_FAILED_FOR_GOOD},
		{302, false, false, true, false, ACT_FAILED_FOR_GOOD},
		{302, false, false, true, true, ACT_FAILED},
		{500, false, false, true, true, ACT_FAILED_FOR_GOOD},
		{409, false, true, true, false, ACT_FAILED_FOR_GOOD},
		{409, true, false, false, false, ACT_FAILED_FOR_GOOD},
		{409, true, true, false, false, ACT_UNSETTLED},
		{409, true, false, true, false, ACT_UNSETTLED},
	};
	struct strbuf words;

	(void)state;
	strbuf_init(&words, VERDICT_WORDS_MAX);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct reply reply = {.sent = true,
				      .complete = true,
				      .status = cases[i].status,
				      .keyed = cases[i].keyed,
				      .in_doubt = cases[i].in_doubt,
				      .tells_when = cases[i].tells,
				      .not_before_ms = 7000,
				      .outcomes = cases[i].own ? &outcomes : NULL};
		struct verdict verdict = verdict_of_reply(&reply, &words);

		assert_int_equal(verdict.outcome, cases[i].outcome);
		assert_int_equal(verdict.not_before_ms, cases[i].tells ? 7000 : 0);
	}
	strbuf_release(&words);
}

static void test_words_are_short_and_printable(void **state)
{
	size_t n = 100000;
	char *body = malloc(n);
	struct strbuf words;
	struct verdict verdict;

	(void)state;
	strbuf_init(&words, VERDICT_WORDS_MAX);
	for (size_t i = 0; i < n; i++)
		body[i] = (char)(i * 7 + i / 256);
	for (long status = 400; status <= 500; status += 100) {
		struct reply reply = {.sent = true, .complete = true, .status = status, .body = slice_of(body, n)};

		verdict = verdict_of_reply(&reply, &words);
		assert_true(verdict.output.n > 10 && verdict.output.n <= VERDICT_SHOWN_MAX + 20);
		assert_int_equal(utf8_valid_bytes(verdict.output), verdict.output.n);
		for (size_t i = 0; i < verdict.output.n; i++)
			assert_true((unsigned char)verdict.output.p[i] >= 0x20);
	}
	strbuf_release(&words);
	free(body);
}

/* A rejection is JSON whatever the service wrote. */
static void test_rejections_are_json(void **state)
{
	static const char *const bodies[] = {
		"",    " ",    "{}",         "\"\\\"", "<html>\"x\"</html>\n", "\x01\xff\xfe",
		"nul", "[1,2", "{\"a\":1}x", "\\",     "\xe2\x80\xa8"};
	char *big = malloc(VERDICT_OUTPUT_BYTES_MAX + 2);
	struct strbuf words;
	struct hx_error err;
	struct json value;

	(void)state;
	strbuf_init(&words, VERDICT_WORDS_MAX);
	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
		struct verdict verdict = verdict_of_rejection(slice_str(bodies[i]), &words);

		assert_int_equal(verdict.outcome, ACT_INVALID);
		assert_int_equal(json_check(verdict.output, &err, &value), HX_OK);
	}
	memset(big, '"', VERDICT_OUTPUT_BYTES_MAX + 1);
	struct verdict verdict = verdict_of_rejection(slice_of(big, VERDICT_OUTPUT_BYTES_MAX + 1), &words);

	assert_int_equal(json_check(verdict.output, &err, &value), HX_OK);
	assert_false(words.failed);
	free(big);
	strbuf_release(&words);
}

static void test_output_limits(void **state)
{
	size_t n = VERDICT_OUTPUT_BYTES_MAX;
	char *text = malloc(n + 2);
	struct strbuf words;

	(void)state;
	strbuf_init(&words, VERDICT_WORDS_MAX);
	memset(text, '1', n + 1);
	assert_int_equal(verdict_of_output(slice_of(text, n), &words).outcome, ACT_OK);
	assert_int_equal(verdict_of_output(slice_of(text, n + 1), &words).outcome, ACT_UNKNOWN);
	assert_string_equal(verdict_of_output(slice_of(NULL, 0), &words).output.p, "null");
	strbuf_release(&words);
	free(text);
}

static void test_long_words_are_cut_between_characters(void **state)
{
	char text[700];
	struct strbuf words;
	struct verdict verdict;

	(void)state;
	for (size_t i = 0; i + 2 < sizeof text; i += 2)
		memcpy(text + i, "\xc3\xa4", 3);
	strbuf_init(&words, VERDICT_WORDS_MAX);
	verdict = verdict_say(ACT_FAILED, &words, "x%s", text);
	assert_int_equal(verdict.output.n, 511);
	assert_int_equal(utf8_valid_bytes(verdict.output), verdict.output.n);
	strbuf_release(&words);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_status),
		cmocka_unit_test(test_gone_is_done),
		cmocka_unit_test(test_bodies_of_what_is_done),
		cmocka_unit_test(test_text_at_its_limit),
		cmocka_unit_test(test_when_to_ask_again),
		cmocka_unit_test(test_words_are_short_and_printable),
		cmocka_unit_test(test_rejections_are_json),
		cmocka_unit_test(test_output_limits),
		cmocka_unit_test(test_long_words_are_cut_between_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
