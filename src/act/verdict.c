/* See verdict.h for the table. */
#include "act/verdict.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/excerpt.h"
#include "base/json.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "base/utf8.h"

static struct slice trimmed(struct slice text)
{
	const char *p = text.p, *end = text.p + text.n;

	if (text.n == 0)
		return text;
	p = json_space_end(p, end);
	while (end > p && memchr(" \t\r\n", end[-1], 4))
		end--;
	return slice_of(p, (size_t)(end - p));
}

static bool says_invalid(struct json value)
{
	struct json flag;

	return json_find(value, slice_str("is_invalid"), &flag) && slice_is(flag.raw, "true");
}

void verdict_show(struct strbuf *words, struct slice foreign, size_t shown_max)
{
	while (foreign.n) {
		char piece[EXCERPT_PIECE_BYTES];
		unsigned n = excerpt_take(&foreign, /* quoted= */ false, piece);

		if (n > shown_max) {
			strbuf_add_str(words, "...");
			return;
		}
		strbuf_add(words, piece, n);
		shown_max -= n;
	}
}

struct verdict verdict_say(enum act_outcome outcome, struct strbuf *words, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	int n = vsnprintf(text, sizeof text, format, args);
	va_end(args);

	size_t length = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : utf8_cut(slice_of(text, sizeof text - 1));

	strbuf_reset(words);
	strbuf_add(words, text, length);
	return (struct verdict){outcome, strbuf_slice(words)};
}

struct verdict verdict_of_output(struct slice text, struct strbuf *words)
{
	struct hx_error err;
	struct json value;

	text = trimmed(text);
	if (text.n == 0)
		return (struct verdict){ACT_OK, slice_str("null")};
	if (text.n > VERDICT_OUTPUT_BYTES_MAX)
		return verdict_say(ACT_UNKNOWN, words, "the output is longer than %u bytes", VERDICT_OUTPUT_BYTES_MAX);
	if (json_check(text, &err, &value))
		return verdict_say(ACT_UNKNOWN, words, "the output is not JSON: %s", err.detail);
	return (struct verdict){says_invalid(value) ? ACT_INVALID : ACT_OK, value.raw};
}

/* Terse on purpose: this is what a caller of the API is shown as the reason. */
static struct verdict reject_with_message(struct slice message, struct strbuf *words)
{
	struct strbuf shown;

	strbuf_init(&shown, VERDICT_WORDS_MAX);
	verdict_show(&shown, message, VERDICT_SHOWN_MAX);
	strbuf_reset(words);
	strbuf_add_str(words, "{\"is_invalid\":true,\"message\":");
	json_quote(strbuf_slice(&shown), words);
	strbuf_add_char(words, '}');
	strbuf_release(&shown);
	return (struct verdict){ACT_INVALID, strbuf_slice(words)};
}

struct verdict verdict_of_rejection(struct slice text, struct strbuf *words)
{
	struct hx_error err;
	struct json value;

	text = trimmed(text);
	if (text.n == 0)
		return (struct verdict){ACT_INVALID, slice_str("{\"is_invalid\":true}")};
	if (text.n > VERDICT_OUTPUT_BYTES_MAX || json_check(text, &err, &value))
		return reject_with_message(text, words);
	return (struct verdict){ACT_INVALID, value.raw};
}

static bool body_says_invalid(struct slice body)
{
	struct hx_error err;
	struct json value;

	return !json_check(body, &err, &value) && says_invalid(value);
}

/* "HTTP 503: the beginning of what the service said" */
static struct verdict say_status(enum act_outcome outcome, const struct reply *reply, struct strbuf *words)
{
	struct slice body = trimmed(reply->body);

	(void)verdict_say(outcome, words, "HTTP %ld%s", reply->status, body.n ? ": " : "");
	verdict_show(words, body, VERDICT_SHOWN_MAX);
	return (struct verdict){outcome, strbuf_slice(words)};
}

static struct verdict of_complete_reply(const struct reply *reply, struct strbuf *words)
{
	switch (reply->status / 100) {
	case 2:
		return verdict_of_output(reply->body, words);
	case 3:
		return verdict_say(ACT_FAILED_FOR_GOOD, words, "HTTP %ld: redirects are not followed", reply->status);
	case 4:
		if (reply->gone_is_done && (reply->status == 404 || reply->status == 410))
			return (struct verdict){ACT_OK, slice_str("null")};
		if (reply->status == 422 || body_says_invalid(reply->body))
			return verdict_of_rejection(reply->body, words);
		return say_status(ACT_FAILED_FOR_GOOD, reply, words);
	case 5:
		return say_status(reply->unknown_on_5xx ? ACT_UNKNOWN : ACT_FAILED, reply, words);
	default:
		return verdict_say(ACT_UNKNOWN, words, "the reply has the status %ld", reply->status);
	}
}

struct verdict verdict_of_reply(const struct reply *reply, struct strbuf *words)
{
	enum act_outcome outcome = reply->sent ? ACT_UNKNOWN : reply->hopeless ? ACT_FAILED_FOR_GOOD : ACT_FAILED;

	if (reply->sent && reply->complete)
		return of_complete_reply(reply, words);
	(void)verdict_say(outcome, words,
			  "%s: ", reply->sent ? "it was sent, and no whole reply came back" : "nothing was sent");
	verdict_show(words, slice_str(reply->fault), VERDICT_SHOWN_MAX);
	return (struct verdict){outcome, strbuf_slice(words)};
}
