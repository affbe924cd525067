/* See api_fire.h. */
#include "api/api_fire.h"

#include "api/api.h"
#include "base/hash.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "base/latch.h"
#include "serve/inner.h"

#define HEAD_BYTES_MAX 32768
#define BODY_BYTES_MAX (4u << 20)
#define ARENA_BYTES_MAX (8u << 20)

struct firing {
	struct http_inner inner;
	struct latch latch;
	struct arena arena;
	struct strbuf head, body, *output;
	enum act_outcome outcome;
};

/* What a refusal says about the step. Who is in the way may be gone a moment later; all else stays as it is. */
static enum act_outcome outcome_of(const struct http_answer *answer)
{
	if (answer->status < 300)
		return ACT_OK;
	switch (api_code_of(answer)) {
	case HX_OUTCOME_UNKNOWN:
	case HX_RESPONSE_NOT_STORED:
	case HX_INTERNAL:
	case HX_NO_MEMORY:
	case HX_STOPPING:
		return ACT_UNKNOWN;
	case HX_WRONG_STATUS:
	case HX_NOT_FOUND:
	case HX_REQUESTER_NOT_ALLOWED:
	case HX_INVALID:
	case HX_VALIDATION_ERROR:
		return ACT_FAILED_FOR_GOOD;
	default:
		return ACT_FAILED;
	}
}

static void fire_answered(struct http_inner *inner, const struct http_answer *answer)
{
	struct firing *f = (struct firing *)inner;

	f->outcome = outcome_of(answer);
	strbuf_add_slice(f->output, answer->body);
	latch_open(&f->latch);
}

static struct slice member(struct firing *f, struct json payload, const char *name)
{
	struct json value;

	if (!json_find(payload, slice_str(name), &value) || json_type(value) != JSON_STRING)
		return slice_of(NULL, 0);
	return json_string_decode(value, &f->arena);
}

static void add_segment(struct strbuf *head, struct slice text)
{
	strbuf_add_char(head, '/');
	for (size_t i = 0; i < text.n; i++)
		strbuf_addf(head, "%%%02X", (unsigned)(unsigned char)text.p[i]);
}

/* A header takes no text that a sender chooses: its digest names it as well. */
static void fire_add_key(struct strbuf *head, struct slice key)
{
	uint8_t digest[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1];

	sha256(key.p, key.n, digest);
	sha256_hex(digest, hex);
	strbuf_addf(head, "Idempotency-Key: hook-%s\r\n", hex);
}

static bool write_request(struct firing *f, const struct native_call *call)
{
	struct json payload = json_trust(call->input), input;

	f->inner.workspace = member(f, payload, "workspace");
	f->inner.requester = member(f, payload, "requester");
	if (!json_find(payload, slice_str("input"), &input))
		return false;
	strbuf_add_str(&f->body, "{\"input\":");
	strbuf_add_slice(&f->body, input.raw);
	strbuf_add_char(&f->body, '}');
	strbuf_add_str(&f->head, "POST /api/v1/entities");
	add_segment(&f->head, member(f, payload, "workflow"));
	add_segment(&f->head, member(f, payload, "id"));
	strbuf_add_str(&f->head, "/steps");
	add_segment(&f->head, member(f, payload, "step"));
	strbuf_add_str(&f->head, " HTTP/1.1\r\nHost: localhost\r\n");
	fire_add_key(&f->head, call->key);
	if (call->traceparent.n)
		strbuf_addf(&f->head, "traceparent: %.*s\r\n", SLICE_ARGS(call->traceparent));
	strbuf_addf(&f->head, "Content-Length: %zu\r\n\r\n", f->body.n);
	f->inner.head = strbuf_slice(&f->head);
	f->inner.body = strbuf_slice(&f->body);
	return !f->head.failed && !f->body.failed && !f->arena.failed && f->inner.workspace.p && f->inner.requester.p;
}

enum act_outcome api_fire(void *context, const struct native_call *call, struct strbuf *output)
{
	struct api_fire *fire = context;
	struct http_server *server = atomic_load(&fire->server);
	struct firing f = {.inner.answered = fire_answered, .output = output, .outcome = ACT_FAILED};

	arena_init(&f.arena, ARENA_BYTES_MAX);
	strbuf_init(&f.head, HEAD_BYTES_MAX);
	strbuf_init(&f.body, BODY_BYTES_MAX);
	latch_init(&f.latch);
	if (!server)
		strbuf_add_str(output, "this server is not ready");
	else if (!write_request(&f, call))
		strbuf_add_str(output, "the job does not say what to fire");
	else if (http_inner_call(server, &f.inner) == HX_OK)
		latch_wait(&f.latch);
	else
		strbuf_add_str(output, "this server has stopped");
	latch_release(&f.latch);
	strbuf_release(&f.head);
	strbuf_release(&f.body);
	arena_release(&f.arena);
	return f.outcome;
}
