/* See transfer.h. */
#include "act/transfer.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>

#include "act/headers.h"
#include "act/reply_head.h"
#include "act/request.h"
#include "base/json_walk.h"
#include "base/media_type.h"
#include "model/url.h"

#define FAULT_BYTES_MAX 500
#define ARENA_BYTES_MAX (1u << 20) /* headers of the call, and the head of the reply */

/* ---- the reply ---- */

static void transfer_take_head(struct upstream_call *call)
{
	struct transfer *t = (struct transfer *)call;

	t->keeps_whole = verdict_reads_body(&t->job->action->outcomes, call->response.status);
}

/* A success is kept whole or the call ends; of a failure the beginning will do, and the rest is read past. */
static size_t take_reply(struct upstream_call *call, struct slice bytes)
{
	struct transfer *t = (struct transfer *)call;
	size_t n = bytes.n;

	if (t->keeps_whole && n > VERDICT_OUTPUT_BYTES_MAX - t->reply.n)
		t->reply_too_long = true;
	else if (!t->keeps_whole && n > TRANSFER_ERROR_BODY_MAX - t->reply.n)
		n = TRANSFER_ERROR_BODY_MAX - t->reply.n;
	if (!t->reply_too_long)
		strbuf_add(&t->reply, bytes.p, n);
	call->unwanted = t->reply_too_long || t->reply.failed;
	return bytes.n;
}

/* ---- the request ---- */

/* The address was looked at when its definition was loaded; here it is looked at again, by the same eyes. */
static enum hx_code cut_url(struct transfer *t, struct slice *ret_host, struct hx_error *err)
{
	struct slice url = slice_str(t->job->action->url ? t->job->action->url : "");
	struct slice target;
	size_t scheme, end;

	if (url_check(url, err))
		return HX_CONFIG_ERROR;
	t->secure = url.p[4] == 's' || url.p[4] == 'S';
	scheme = t->secure ? 8 : 7;
	end = scheme + strcspn(url.p + scheme, "/?");
	t->origin = slice_of(url.p, end);
	*ret_host = slice_of(url.p + scheme, end - scheme);
	target = slice_of(url.p + end, url.n - end);
	if (target.n == 0 || target.p[0] != '/') {
		char *with_path = arena_alloc(&t->arena, target.n + 1);

		if (!with_path)
			return error_set(err, HX_NO_MEMORY, "out of memory");
		with_path[0] = '/';
		memcpy(with_path + 1, target.p, target.n);
		target = slice_of(with_path, target.n + 1);
	}
	t->call.target = target;
	return HX_OK;
}

static enum hx_code set_up(struct transfer *t, struct hx_error *err)
{
	struct request request;
	struct slice host;
	enum hx_code code = cut_url(t, &host, err);

	if (!code)
		code = request_build(t->job, t->call.target, &t->arena, &t->body, &request, err);
	if (code)
		return code;
	t->call.method = request.method;
	t->call.target = request.target;
	t->call.body = request.body;
	t->call.arena = &t->arena;
	t->call.timeout_ms = job_timeout_ms(t->job);
	t->call.repeatable = t->job->action->effect == EFFECT_IDEMPOTENT;
	t->call.head = transfer_take_head;
	t->call.data = take_reply;
	return headers_build(t->job, &request, host, &t->secrets, &t->arena, &t->call.fields, err);
}

enum hx_code transfer_new(struct job *job, const struct http_options *options, struct transfer **ret_transfer,
			  struct hx_error *err)
{
	struct transfer *t = calloc(1, sizeof *t);
	enum hx_code code;

	if (!t)
		return error_set(err, HX_NO_MEMORY, "out of memory");
	t->job = job;
	secrets_init(&t->secrets);
	t->secrets.rules = options->secret_rules;
	arena_init(&t->arena, ARENA_BYTES_MAX);
	strbuf_init(&t->body, REQUEST_BODY_BYTES_MAX);
	strbuf_init(&t->reply, VERDICT_OUTPUT_BYTES_MAX);
	strbuf_init(&t->made, VERDICT_OUTPUT_BYTES_MAX);
	code = set_up(t, err);
	if (code) {
		t->call.fields.n = 0; /* headers_build() has wiped them */
		transfer_free(t);
	} else {
		*ret_transfer = t;
	}
	return code;
}

void transfer_wipe(struct transfer *t)
{
	headers_wipe(t->job->action, t->call.fields);
	t->call.fields.n = 0;
}

void transfer_free(struct transfer *t)
{
	if (!t)
		return;
	ASSERT(t->call.fields.n == 0);
	secrets_release(&t->secrets);
	strbuf_release(&t->body);
	strbuf_release(&t->reply);
	strbuf_release(&t->made);
	arena_release(&t->arena);
	free(t);
}

/* ---- judging it ---- */

/*
 * A service may show us our own secrets. What becomes of the call is decided on what it sent; what is kept of it is masked,
 * our words before they are cut to their length.
 */
static struct verdict judge_transfer(struct transfer *t, const struct reply *reply, struct strbuf *words)
{
	struct verdict verdict = verdict_of_reply(reply, words);

	if (verdict.output.p == t->made.p && t->made.n) { /* made anew of what is masked: it is what it was */
		secrets_mask_words(&t->secrets, t->reply.p, t->reply.n);
		return verdict_of_reply(reply, words);
	}
	if (verdict.output.p != words->p) {
		secrets_mask_output(&t->secrets, t->reply.p, t->reply.n);
		return verdict;
	}
	secrets_mask_words(&t->secrets, t->reply.p, t->reply.n);
	verdict.output = verdict_of_reply(reply, words).output;
	if (verdict.output.p == words->p)
		secrets_mask_words(&t->secrets, words->p, words->n);
	return verdict;
}

/* All addresses were refused by outbound.allow. Where another one was tried, too, it may work another day. */
static struct verdict refused(const struct transfer *t, struct strbuf *words)
{
	const struct upstream_call *call = &t->call;
	char address[ADDRESS_TEXT_BYTES], *end;

	address_format(&call->refused, address);
	end = strrchr(address, ':'); /* the port has nothing to do with it */
	*end = '\0';
	if (address[0] == '[')
		end[-1] = '\0';
	return verdict_say(verdict_never_sent(&t->job->call), words,
			   "nothing was sent: address not allowed: %s (%s), see outbound.allow",
			   address + (address[0] == '['), call->refusal);
}

static const char *fault_of(const struct transfer *t, char ret_words[FAULT_BYTES_MAX])
{
	const struct upstream_call *call = &t->call;
	struct slice host = slice_of(t->origin.p + 7 + t->secure, t->origin.n - 7 - t->secure);

	if (t->reply_too_long)
		return "the reply is longer than 16 MiB";
	if (call->sent || call->obstacle == UPSTREAM_OTHER)
		return call->reason;
	errno = call->obstacle_error;
	if (call->obstacle == UPSTREAM_NO_ADDRESS)
		snprintf(ret_words, FAULT_BYTES_MAX, "Could not resolve host: %.*s (%s)", SLICE_ARGS(host),
			 gai_strerror(call->obstacle_error));
	else
		snprintf(ret_words, FAULT_BYTES_MAX, "Failed to connect to %.*s: %m", SLICE_ARGS(host));
	return ret_words;
}

static struct slice transfer_field_of(const struct transfer *t, const char *name)
{
	const struct wire_field *field = wire_find(t->call.response.head.fields, name, NULL);

	return field ? field->value : slice_of(NULL, 0);
}

static void read_head(const struct transfer *t, struct reply *reply)
{
	int64_t now_s = clock_wall(clock_system()).ms / 1000;

	reply->declares_json = media_type_is_json(transfer_field_of(t, "Content-Type"));
	reply->tells_when = reply_retry_after(transfer_field_of(t, "Retry-After"), transfer_field_of(t, "Date"), now_s,
					      &reply->not_before_ms);
}

/* The body as an expression sees it: JSON as it came, a text as a string. */
static struct slice body_seen(const struct transfer *t, struct slice output)
{
	struct json text;

	if (output.p == t->made.p && t->made.n && json_find(json_trust(output), slice_str("text"), &text))
		return text.raw;
	return output;
}

/*
 * It was done. What the definition wants of the reply may not be in it: then nobody knows what came of it, as with a reply that
 * is broken.
 */
static struct verdict shape_output(struct transfer *t, struct verdict verdict, struct strbuf *words)
{
	struct strbuf output;
	struct hx_error err;
	enum hx_code code;

	LOCAL_STRBUF(reply, VERDICT_OUTPUT_BYTES_MAX + TRANSFER_HEAD_BYTES_MAX);
	strbuf_init(&output, VERDICT_OUTPUT_BYTES_MAX);
	request_write_reply(t->call.response.status, t->call.response.head.fields, body_seen(t, verdict.output),
			    &reply);
	secrets_mask_output(&t->secrets, reply.p, reply.n);
	code = reply.failed ? strbuf_error(&reply, &err)
			    : request_output(t->job->action->request.output, strbuf_slice(&reply), &output, &err);
	strbuf_release(&t->made);
	t->made = output;
	if (code)
		return verdict_say(ACT_UNKNOWN, words, "HTTP %d, but its %s", t->call.response.status, err.detail);
	return (struct verdict){ACT_OK, strbuf_slice(&t->made), 0};
}

struct verdict transfer_judge(struct transfer *t, enum upstream_end end, struct strbuf *words)
{
	char fault[FAULT_BYTES_MAX];
	struct reply reply = {
		.sent = end != UPSTREAM_NOT_SENT,
		.complete = end == UPSTREAM_ANSWERED,
		.unknown_on_5xx = t->job->call.unknown_on_5xx,
		.gone_is_done = t->job->action->gone_is_done,
		.keyed = t->job->action->effect == EFFECT_KEYED,
		.in_doubt = t->job->call.in_doubt,
		.outcomes = &t->job->action->outcomes,
		.fault = end == UPSTREAM_ANSWERED ? "" : fault_of(t, fault),
		.status = t->call.response.status,
		.body = strbuf_slice(&t->reply),
		.made = &t->made,
	};

	if (end == UPSTREAM_NOT_SENT && t->call.refusal && t->call.tried == 0)
		return refused(t, words);
	if (reply.complete)
		read_head(t, &reply);

	struct verdict verdict = judge_transfer(t, &reply, words);

	if (verdict.outcome == ACT_OK && t->job->action->request.output)
		return shape_output(t, verdict, words);
	return verdict;
}
