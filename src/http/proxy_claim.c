/*
 * Who a guarded request claims to be: its key, where that key counts (scope), and what it says (fingerprint). All of it
 * from the request as it came; nothing is decoded but the key itself.
 */
#include <stdio.h>

#include "gate/key.h"
#include "gate/token.h"
#include "http/charset.h"
#include "http/proxy_job.h"
#include "model/workflow.h"

/* The values of all fields of this name, in their order. NULL: no memory. */
static struct slice *values_of(struct wire_fields fields, struct slice name, struct arena *arena, size_t *ret_n)
{
	struct slice *values = arena_alloc(arena, (fields.n + 1) * sizeof *values);
	size_t n = 0;

	if (!values)
		return NULL;
	for (size_t i = 0; i < fields.n; i++)
		if (slice_eq_nocase(fields.at[i].name, name))
			values[n++] = fields.at[i].value;
	*ret_n = n;
	return values;
}

/* The values of a name as one, as RFC 9110 (5.3) joins them. False: there is no such field, or no memory. */
static bool joined_value(struct wire_fields fields, struct slice name, struct arena *arena, struct slice *ret_value)
{
	size_t n = 0, bytes = 0;
	struct slice *values = values_of(fields, name, arena, &n);
	char *text;

	if (!values || n == 0)
		return false;
	*ret_value = values[0];
	if (n == 1)
		return true;
	for (size_t i = 0; i < n; i++)
		bytes += values[i].n + 2;
	text = arena_alloc(arena, bytes);
	if (!text)
		return false;
	*ret_value = slice_of(text, bytes - 2);
	for (size_t i = 0; i < n; i++) {
		memcpy(text, values[i].p, values[i].n);
		text += values[i].n;
		if (i + 1 < n) {
			memcpy(text, ", ", 2);
			text += 2;
		}
	}
	return true;
}

static enum hx_code key_of_head(const struct gate_policy *policy, const struct wire_request *request,
				struct arena *arena, struct hx_error *err, struct slice *ret_key)
{
	size_t n = 0;
	struct slice *values = values_of(request->head.fields, slice_str(policy->header), arena, &n);

	if (!values)
		return arena_error(arena, err);
	if (n == 0)
		return error_set(err, HX_KEY_REQUIRED, "there is no idempotency key: send one in the header %s",
				 policy->header);
	return gate_key_from_header(values, n, policy->max_key_length, arena, err, ret_key);
}

enum hx_code proxy_check_key(const struct gate_policy *policy, const struct wire_request *request, struct arena *arena,
			     struct hx_error *err)
{
	struct slice key;
	enum hx_code code;

	if (!policy->guard || policy->key_pointer.p)
		return HX_OK;
	code = key_of_head(policy, request, arena, err, &key);
	return code == HX_KEY_REQUIRED && !policy->required ? HX_OK : code;
}

static enum hx_code read_key(const struct proxy_job *job, struct arena *arena, struct hx_error *err,
			     struct slice *ret_key)
{
	const struct gate_policy *policy = job->policy;

	if (policy->key_pointer.p)
		return gate_key_from_json(job->request->body, policy->key_pointer, policy->max_key_length, arena, err,
					  ret_key);
	return key_of_head(policy, &job->request->wire, arena, err, ret_key);
}

static enum hx_code record_key(const struct proxy_job *job, struct slice key, struct arena *arena, struct hx_error *err,
			       unsigned char ret_key[HX_GATE_KEY_BYTES])
{
	const struct gate_policy *policy = job->policy;
	const struct wire_request *request = &job->request->wire;
	char space[WORKFLOW_NAME_MAX + 8]; /* "gate:" and the name: the engine's API may share the store */
	struct gate_scope scope = {
		.endpoint = policy->scope_endpoint,
		.method = request->method,
		.path = request->path,
		.headers_n = policy->scope_headers_n,
	};

	snprintf(space, sizeof space, "gate:%s", job->home->proxy->options.config->name);
	scope.space = slice_str(space);
	if (policy->tenant_header)
		scope.has_tenant = joined_value(request->head.fields, slice_str(policy->tenant_header), arena,
						&scope.tenant);
	for (size_t i = 0; i < policy->scope_headers_n; i++) {
		scope.headers[i].name = policy->scope_headers[i];
		scope.headers[i].present = joined_value(request->head.fields, policy->scope_headers[i], arena,
							&scope.headers[i].value);
	}
	/* Without memory a field that is there would count as absent, and the key as another one. */
	if (arena->failed)
		return arena_error(arena, err);
	gate_record_key(&scope, key, ret_key);
	return HX_OK;
}

/* Two content types are none: nobody can say which one the upstream believes. */
static enum hx_code fingerprint(struct proxy_job *job, struct hx_error *err,
				unsigned char ret_fingerprint[HX_GATE_KEY_BYTES])
{
	struct arena *scratch = &job->home->scratch;
	size_t n = 0;
	const struct wire_field *type = wire_find(job->request->wire.head.fields, "content-type", &n);
	enum hx_code code;

	scratch->max_bytes = GATE_FINGERPRINT_SCRATCH_BYTES(job->request->body.n);
	code = gate_fingerprint(&job->policy->fingerprint, n == 1 ? type->value : slice_of(NULL, 0), job->request->body,
				scratch, err, ret_fingerprint);
	arena_reset(scratch);
	return code;
}

static struct slice endpoint_text(const struct wire_request *request, struct arena *arena)
{
	char text[GATE_ENDPOINT_BYTES_MAX];
	size_t n = request->method.n < sizeof text ? request->method.n : sizeof text - 1;
	size_t left = sizeof text - n - 1, path = request->path.n < left ? request->path.n : left;

	memcpy(text, request->method.p, n);
	text[n++] = ' ';
	memcpy(text + n, request->path.p, path);
	return arena_copy(arena, slice_of(text, n + path));
}

enum hx_code proxy_claim(struct proxy_job *job, struct hx_error *err)
{
	const struct gate_policy *policy = job->policy;
	struct arena *arena = http_exchange_arena(job->exchange);
	struct hx_gate_claim claim = {
		.lease_ms = policy->processing_ttl_ms, .ttl_ms = policy->ttl_ms, .hold = policy->hold};
	struct slice key;
	enum hx_code code = read_key(job, arena, err, &key);

	if (code == HX_OK)
		code = record_key(job, key, arena, err, claim.key);
	if (code == HX_OK)
		code = fingerprint(job, err, claim.fingerprint);
	if (code == HX_OK)
		code = gate_token_draw(claim.token, err);
	if (code != HX_OK)
		return code;
	guard_init(&job->guard, &claim);
	job->guard.ask.key_text = key;
	job->guard.ask.endpoint = endpoint_text(&job->request->wire, arena);
	return arena->failed ? arena_error(arena, err) : HX_OK;
}
