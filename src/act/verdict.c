/* See verdict.h for the table. */
#include "act/verdict.h"

#include <stdarg.h>
#include <stdio.h>

#include "act/status.h"
#include "base/base64.h"
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
	return (struct verdict){outcome, strbuf_slice(words), 0};
}

enum act_outcome verdict_never_sent(const struct act_call *call)
{
	enum act_outcome outcome = ACT_FAILED_FOR_GOOD;

	if (call->in_doubt)
		outcome = ACT_FAILED; /* mutant: unsent-answers -> outcome = ACT_FAILED_FOR_GOOD; */
	return outcome;
}

struct verdict verdict_of_output(struct slice text, struct strbuf *words)
{
	struct hx_error err;
	struct json value;

	text = trimmed(text);
	if (text.n == 0)
		return (struct verdict){ACT_OK, slice_str("null"), 0};
	if (text.n > VERDICT_OUTPUT_BYTES_MAX)
		return verdict_say(ACT_UNKNOWN, words, "the output is longer than %u bytes", VERDICT_OUTPUT_BYTES_MAX);
	if (json_check(text, &err, &value))
		return verdict_say(ACT_UNKNOWN, words, "the output is not JSON: %s", err.detail);
	return (struct verdict){says_invalid(value) ? ACT_INVALID : ACT_OK, value.raw, 0};
}

/* Terse on purpose: this is what a caller of the API is shown as the reason. */
static struct verdict reject_with_message(struct slice message, struct strbuf *words)
{
	LOCAL_STRBUF(shown, VERDICT_WORDS_MAX);
	verdict_show(&shown, message, VERDICT_SHOWN_MAX);
	strbuf_reset(words);
	strbuf_add_str(words, "{\"is_invalid\":true,\"message\":");
	json_quote(strbuf_slice(&shown), words);
	strbuf_add_char(words, '}');
	return (struct verdict){ACT_INVALID, strbuf_slice(words), 0};
}

struct verdict verdict_of_rejection(struct slice text, struct strbuf *words)
{
	struct hx_error err;
	struct json value;

	text = trimmed(text);
	if (text.n == 0)
		return (struct verdict){ACT_INVALID, slice_str("{\"is_invalid\":true}"), 0};
	if (text.n > VERDICT_OUTPUT_BYTES_MAX || json_check(text, &err, &value))
		return reject_with_message(text, words);
	return (struct verdict){ACT_INVALID, value.raw, 0};
}

static bool body_says_invalid(struct slice body)
{
	struct hx_error err;
	struct json value;

	return !json_check(body, &err, &value) && says_invalid(value);
}

/* "HTTP 503: the beginning of what the service said" */
static struct verdict say_status(enum act_outcome outcome, const struct reply *reply, const char *remark,
				 struct strbuf *words)
{
	struct slice body = trimmed(reply->body);

	(void)verdict_say(outcome, words, "HTTP %ld%s%s", reply->status, remark, body.n ? ": " : "");
	verdict_show(words, body, VERDICT_SHOWN_MAX);
	return (struct verdict){outcome, strbuf_slice(words), 0};
}

/* Done, and it says so in words that are no JSON: they are the output, as they are. */
static struct verdict wrap(const struct reply *reply, struct strbuf *words)
{
	bool text = utf8_valid_bytes(reply->body) == reply->body.n;
	struct strbuf *made = reply->made;

	strbuf_reset(made);
	strbuf_add_str(made, text ? "{\"text\":" : "{\"base64\":\"");
	if (text)
		json_quote(reply->body, made);
	else
		base64_append(reply->body, made);
	strbuf_add_str(made, text ? "}" : "\"}");
	if (made->failed)
		return verdict_say(ACT_UNKNOWN, words, "the output is longer than %u bytes", VERDICT_OUTPUT_BYTES_MAX);
	return (struct verdict){ACT_OK, strbuf_slice(made), 0};
}

static struct verdict read_done(const struct reply *reply, struct strbuf *words)
{
	struct slice body = trimmed(reply->body);
	struct hx_error err;
	struct json value;

	if (body.n && body.n <= VERDICT_OUTPUT_BYTES_MAX && !reply->declares_json && json_check(body, &err, &value))
		return wrap(reply, words);
	return verdict_of_output(body, words);
}

static bool is_redirect(const struct reply *reply)
{
	return reply->status / 100 == 3;
}

static struct status_meaning meaning_of(const struct reply *reply)
{
	struct status_facts facts = {
		.outcomes = reply->outcomes,
		.cleanup = reply->gone_is_done,
		.keyed = reply->keyed,
		.in_doubt = reply->in_doubt,
		.retry_after = reply->tells_when,
		.invalid = reply->status / 100 == 4 && body_says_invalid(reply->body),
		.unknown_on_5xx = reply->unknown_on_5xx,
	};

	return status_meaning_of(reply->status, &facts);
}

static struct verdict of_complete_reply(const struct reply *reply, struct strbuf *words)
{
	struct status_meaning meaning = meaning_of(reply);

	switch (meaning.word) {
	case OUTCOME_DONE:
		if (meaning.rule && meaning.rule->when == WHEN_CLEANUP)
			return (struct verdict){ACT_OK, slice_str("null"), 0};
		return read_done(reply, words);
	case OUTCOME_REJECTED:
		return verdict_of_rejection(reply->body, words);
	case OUTCOME_FAILED:
		if (is_redirect(reply))
			return verdict_say(ACT_FAILED_FOR_GOOD, words, "HTTP %ld: redirects are not followed",
					   reply->status);
		return say_status(ACT_FAILED_FOR_GOOD, reply, "", words);
	case OUTCOME_RETRY:
		return say_status(ACT_FAILED, reply, "", words);
	case OUTCOME_UNKNOWN:
		return say_status(ACT_UNKNOWN, reply, "", words);
	case OUTCOME_UNSETTLED:
		return say_status(ACT_UNSETTLED, reply, ", which settles nothing: a try before it may be under way",
				  words);
	}
	ASSERT(!"every word has its outcome");
	return (struct verdict){0};
}

/* Whether another try may follow, the caller decides: cleanup is called again even after a failure for good. */
static struct verdict with_time(struct verdict verdict, const struct reply *reply)
{
	if (verdict.outcome != ACT_OK && reply->tells_when)
		verdict.not_before_ms = reply->not_before_ms;
	return verdict;
}

bool verdict_reads_body(const struct outcomes *outcomes, long status)
{
	struct status_facts facts = {.outcomes = outcomes};
	enum outcome_word word = status_meaning_of(status, &facts).word;

	return word == OUTCOME_DONE || word == OUTCOME_REJECTED;
}

struct verdict verdict_of_reply(const struct reply *reply, struct strbuf *words)
{
	enum act_outcome outcome = reply->sent ? ACT_UNKNOWN : reply->hopeless ? ACT_FAILED_FOR_GOOD : ACT_FAILED;

	if (reply->sent && reply->complete)
		return with_time(of_complete_reply(reply, words), reply);
	(void)verdict_say(outcome, words,
			  "%s: ", reply->sent ? "it was sent, and no whole reply came back" : "nothing was sent");
	verdict_show(words, slice_str(reply->fault), VERDICT_SHOWN_MAX);
	return (struct verdict){outcome, strbuf_slice(words), 0};
}
