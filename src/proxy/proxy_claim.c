/*
 * Who a guarded request claims to be: its key, where that key counts (scope), whose it is (caller), and what it says
 * (fingerprint). All of it from the request as it came (proxy_source.h).
 */
#include <stdio.h>

#include "base/hash.h"
#include "base/json_string.h"
#include "base/utf8.h"
#include "gate/key.h"
#include "gate/token.h"
#include "model/workflow.h"
#include "proxy/proxy_job.h"
#include "proxy/proxy_source.h"
#include "wire/charset.h"

#define SHOWN_BYTES_MAX 48 /* of a value that tells whose record it is */

/* ---- the key ---- */

static enum hx_code no_key(const struct gate_source *source, struct hx_error *err)
{
	return error_set(err, HX_KEY_REQUIRED, "there is no idempotency key: send one in %s%s",
			 source->kind == GATE_SOURCE_HEADER ? "the header " : "", source->label);
}

static enum hx_code key_from_header(const struct gate_source *source, struct wire_fields fields, size_t max,
				    struct arena *arena, struct hx_error *err, struct slice *ret_key)
{
	size_t n = 0;
	struct slice *values = proxy_field_values(fields, source->name, arena, &n);

	if (!values)
		return arena_error(arena, err);
	if (n == 0)
		return no_key(source, err);
	return gate_key_from_header(values, n, max, arena, err, ret_key);
}

static enum hx_code read_part(const struct gate_source *source, const struct http_request *request, size_t max,
			      struct arena *arena, struct hx_error *err, struct slice *ret_key)
{
	struct slice value;
	enum hx_code code;

	if (source->kind == GATE_SOURCE_HEADER)
		return key_from_header(source, request->wire.head.fields, max, arena, err, ret_key);
	if (source->kind == GATE_SOURCE_JSON)
		return gate_key_from_json(request->body, source->name, max, arena, err, ret_key);
	code = proxy_source_value(source, request, arena, err, &value);
	if (code)
		return code;
	return value.p ? gate_key_from_text(value, max, err, ret_key) : no_key(source, err);
}

/* A key that is there in part is not optional any more: it must not run unprotected. */
static enum hx_code proxy_claim_read_key(const struct gate_policy *policy, const struct http_request *request,
					 struct arena *arena, struct hx_error *err, struct slice *ret_key)
{
	struct slice parts[GATE_KEY_PARTS_MAX];
	enum hx_code missing = HX_OK;
	size_t n = 0;

	if (policy->key_n == 1)
		return read_part(&policy->key[0], request, policy->max_key_length, arena, err, ret_key);
	for (size_t i = 0; i < policy->key_n; i++) {
		struct hx_error why;
		enum hx_code code = read_part(&policy->key[i], request, policy->max_key_length, arena, &why, &parts[n]);

		if (code == HX_OK)
			n++;
		else if (code != HX_KEY_REQUIRED || missing == HX_OK)
			(void)error_set(err, code, "%s", why.detail);
		if (code != HX_OK && code != HX_KEY_REQUIRED)
			return code;
		missing = code ? code : missing;
	}
	if (missing)
		return n ? err->code = HX_KEY_INVALID : missing;
	return gate_key_compose(parts, n, policy->max_key_length, arena, err, ret_key);
}

enum hx_code proxy_check_key(const struct gate_policy *policy, const struct wire_request *request, struct arena *arena,
			     struct hx_error *err)
{
	const struct http_request head = {.wire = *request};
	struct slice key;
	enum hx_code code;

	for (size_t i = 0; i < policy->key_n; i++)
		if (policy->key[i].kind == GATE_SOURCE_JSON)
			return HX_OK; /* the body has to be there */
	if (!policy->guard)
		return HX_OK;
	code = proxy_claim_read_key(policy, &head, arena, err, &key);
	return code == HX_KEY_REQUIRED && !policy->required ? HX_OK : code;
}

/* ---- the scope ---- */

/* Where the record counts, and what people are told of that: the values are in the arena or in the request. */
static enum hx_code make_scope(const struct proxy_job *job, struct arena *arena, struct hx_error *err,
			       struct gate_scope *scope)
{
	const struct gate_policy *policy = job->policy;
	const struct wire_request *request = &job->request->wire;
	struct slice value;
	enum hx_code code = HX_OK;

	*scope = (struct gate_scope){
		.endpoint = policy->scope_endpoint,
		.method = request->method,
		.path = request->path,
		.parts_n = policy->scope_n,
	};
	if (policy->tenant.kind) {
		code = proxy_source_value(&policy->tenant, job->request, arena, err, &scope->tenant);
		scope->has_tenant = scope->tenant.p != NULL;
	}
	for (size_t i = 0; !code && i < policy->scope_n; i++) {
		const struct gate_source *source = &policy->scope[i];

		code = proxy_source_value(source, job->request, arena, err, &value);
		/* Headers were the first that could be named: theirs are the bare names. */
		scope->parts[i].name = source->kind == GATE_SOURCE_HEADER ? source->name : slice_str(source->text);
		scope->parts[i].value = value;
		scope->parts[i].present = value.p != NULL;
	}
	return code;
}

static void record_key(const struct proxy_job *job, struct gate_scope *scope, struct slice key,
		       unsigned char ret_key[HX_GATE_KEY_BYTES])
{
	char space[WORKFLOW_NAME_MAX + 8]; /* "gate:" and the name: the engine's API may share the store */

	snprintf(space, sizeof space, "gate:%s", job->home->proxy->options.config->name);
	scope->space = slice_str(space);
	gate_record_key(scope, key, ret_key);
	scope->space = (struct slice){0};
}

/* ---- the caller ---- */

/* What the policy names, where that is there; else what proves who somebody is; and nobody is one caller, too. */
static enum hx_code hash_caller(const struct proxy_job *job, struct arena *arena, struct hx_error *err,
				struct hx_gate_claim *claim)
{
	static const char *const proofs[] = {"authorization", "cookie", NULL};
	const struct gate_source *source = &job->policy->caller;
	struct slice by = slice_str(source->text ? source->text : ""), value = {0};

	if (job->policy->any_caller)
		return HX_OK;
	if (source->kind) {
		enum hx_code code = proxy_source_value(source, job->request, arena, err, &value);

		if (code)
			return code;
	}
	for (size_t i = 0; !value.p && proofs[i]; i++) {
		by = slice_str(proofs[i]);
		value = proxy_field_joined(job->request->wire.head.fields, by, arena);
	}
	if (arena->failed)
		return arena_error(arena, err);
	gate_hash_caller(claim->key, value.p ? by : slice_str("nobody"), value, claim->caller);
	return HX_OK;
}

/* ---- the fingerprint ---- */

/* Two content types are none: nobody can say which one the upstream believes. */
static enum hx_code hash_body(struct proxy_job *job, struct hx_error *err,
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

static enum hx_code fingerprint(struct proxy_job *job, struct arena *arena, struct hx_error *err,
				unsigned char ret_fingerprint[HX_GATE_KEY_BYTES])
{
	const struct gate_fingerprint_rule *rule = &job->policy->fingerprint;
	const struct wire_request *request = &job->request->wire;
	enum hx_code code = hash_body(job, err, ret_fingerprint);

	if (!code && rule->query)
		gate_fingerprint_add(slice_str("query"), request->has_query ? request->query : (struct slice){0},
				     ret_fingerprint);
	for (size_t i = 0; !code && i < rule->sources_n; i++) {
		const struct gate_source *source = &rule->sources[i];
		struct slice value = {0};

		code = proxy_source_whole(source, job->request, arena, err, &value);
		gate_fingerprint_add(slice_str(source->text), value, ret_fingerprint);
	}
	return code;
}

/* ---- for people ---- */

/* Is the value one that opens doors? Then people are shown what tells it from others, and no more. */
static bool is_secret(const struct gate_source *source)
{
	static const char *const words[] = {"auth", "cookie", "key", "secret", "session", "token"};

	if (source->kind == GATE_SOURCE_COOKIE)
		return true;
	if (source->kind != GATE_SOURCE_HEADER && source->kind != GATE_SOURCE_QUERY)
		return false;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (source->name.n >= strlen(words[i]) &&
		    memmem(source->name.p, source->name.n, words[i], strlen(words[i])))
			return true;
	return false;
}

static void proxy_claim_add_value(struct strbuf *text, const struct gate_source *source, struct slice value)
{
	unsigned char digest[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1];

	if (!value.p) {
		strbuf_add_str(text, "null");
	} else if (is_secret(source)) {
		sha256(value.p, value.n, digest);
		sha256_hex(digest, hex);
		strbuf_addf(text, "\"sha256:%.12s\"", hex);
	} else {
		if (value.n > SHOWN_BYTES_MAX)
			value.n = SHOWN_BYTES_MAX;
		value.n = utf8_valid_bytes(value);
		json_quote(value, text);
	}
}

static void add_scope_text(struct strbuf *text, const struct gate_policy *policy, const struct gate_scope *scope)
{
	strbuf_addf(text, ",\"scope\":{\"endpoint\":%s", policy->scope_endpoint ? "true" : "false");
	for (size_t i = 0; i < policy->scope_n; i++) {
		strbuf_add_char(text, ',');
		json_quote(slice_str(policy->scope[i].text), text);
		strbuf_add_char(text, ':');
		proxy_claim_add_value(text, &policy->scope[i], scope->parts[i].value);
	}
	strbuf_add_char(text, '}');
}

/* {"gate":…,"route":…,"tenant":…,"scope":{…}}: whose record it is. What does not fit is left out from the end on. */
static struct slice about_text(const struct proxy_job *job, const struct gate_scope *scope, struct arena *arena)
{
	const struct gate_policy *policy = job->policy;
	struct slice about = {0};

	LOCAL_STRBUF(text, GATE_ABOUT_BYTES_MAX);
	for (int left_out = 0; left_out < 3 && !about.p; left_out++) {
		strbuf_reset(&text);
		strbuf_addf(&text, "{\"gate\":\"%s\"", job->home->proxy->options.config->name);
		if (left_out < 2 && policy->match) {
			strbuf_add_str(&text, ",\"route\":");
			json_quote(slice_str(policy->match), &text);
		}
		if (policy->tenant.kind) {
			strbuf_add_str(&text, ",\"tenant\":");
			proxy_claim_add_value(&text, &policy->tenant,
					      scope->has_tenant ? scope->tenant : (struct slice){0});
		}
		if (left_out < 1)
			add_scope_text(&text, policy, scope);
		strbuf_add_char(&text, '}');
		if (!text.failed)
			about = arena_copy(arena, strbuf_slice(&text));
	}
	return about;
}

/* ---- all of it ---- */

enum hx_code proxy_claim(struct proxy_job *job, struct hx_error *err)
{
	const struct gate_policy *policy = job->policy;
	struct arena *arena = http_exchange_arena(job->exchange);
	struct hx_gate_claim claim = {
		.lease_ms = policy->processing_ttl_ms, .ttl_ms = policy->ttl_ms, .hold = policy->hold};
	struct gate_scope scope;
	struct slice key;
	enum hx_code code = proxy_claim_read_key(policy, job->request, arena, err, &key);

	if (code == HX_OK)
		code = make_scope(job, arena, err, &scope);
	if (code == HX_OK)
		record_key(job, &scope, key, claim.key);
	if (code == HX_OK)
		code = hash_caller(job, arena, err, &claim);
	if (code == HX_OK)
		code = fingerprint(job, arena, err, claim.fingerprint);
	if (code == HX_OK)
		code = gate_token_draw(claim.token, err);
	if (code != HX_OK)
		return code;
	guard_init(&job->guard, &claim);
	job->guard.ask.key_text = key;
	job->guard.ask.endpoint = gate_endpoint_text(job->request->wire.method, job->request->wire.path, arena);
	job->guard.ask.about = about_text(job, &scope, arena);
	return arena->failed ? arena_error(arena, err) : HX_OK;
}
