/*
 * The configuration of the gate, out of any bytes: up to a NUL the text, after it a path to match.
 *
 *   - findings are printable, and there is an error whenever something was refused;
 *   - every policy that comes out is within its limits;
 *   - a route matches a path if and only if a slow and simple matcher says so.
 */
#include <stdint.h>

#include "base/json_pointer.h"
#include "fuzz/findings.h"
#include "gate/policy.h"

#define AMPLE_BYTES (64u << 20)
#define PATH_BYTES_MAX 256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_source(const struct gate_source *source)
{
	bool names = source->kind == GATE_SOURCE_JSON || source->kind == GATE_SOURCE_JWT;

	ASSERT(source->kind && source->text && source->label);
	ASSERT(!names || json_pointer_check(source->name, NULL) == HX_OK);
	ASSERT(source->kind != GATE_SOURCE_PATH || source->segment > 0);
}

static void try_policy(const struct gate_policy *p)
{
	ASSERT(p->key_n >= 1 && p->key_n <= GATE_KEY_PARTS_MAX && p->max_key_length >= 1 &&
	       p->max_key_length <= GATE_KEY_LENGTH_MAX);
	ASSERT(p->ttl_ms > 0 && p->processing_ttl_ms > 0 && p->upstream_timeout_ms > 0 && p->read_timeout_ms > 0);
	ASSERT(p->max_request_bytes >= 1 && p->max_request_bytes <= GATE_REQUEST_BYTES_MAX);
	ASSERT(p->max_stored_bytes >= 1 && p->max_stored_bytes <= GATE_STORED_BYTES_MAX);
	ASSERT(p->fingerprint.pointers_n <= GATE_LIST_MAX && p->replay.names_n <= GATE_LIST_MAX);
	ASSERT(p->scope_n <= GATE_SCOPE_PARTS_MAX && p->cache_list_n <= GATE_LIST_MAX);
	for (size_t i = 0; i < p->key_n; i++)
		try_source(&p->key[i]);
	for (size_t i = 0; i < p->scope_n; i++)
		try_source(&p->scope[i]);
	for (size_t i = 0; i < p->fingerprint.sources_n; i++)
		try_source(&p->fingerprint.sources[i]);
	for (size_t i = 0; i < p->replay.names_n; i++)
		ASSERT(!gate_is_marker(p->replay.names[i]));
	for (int status = 100; status < 600; status++)
		if (status == 429 || status == 503 || status < 200)
			ASSERT(!gate_policy_stores(p, status));
}

/* at[i]: the pattern so far matches the first i bytes of the path. */
static bool slow_match(struct slice pattern, struct slice path)
{
	bool at[PATH_BYTES_MAX + 1] = {true};

	for (size_t j = 0; j < pattern.n; j++)
		if (pattern.p[j] == '*') {
			for (size_t i = 1; i <= path.n; i++)
				at[i] = at[i] || at[i - 1];
		} else {
			for (size_t i = path.n; i > 0; i--)
				at[i] = at[i - 1] && path.p[i - 1] == pattern.p[j];
			at[0] = false;
		}
	return at[path.n];
}

static void try_match(const struct gate_config *config, struct slice method, struct slice path)
{
	const struct gate_policy *expected = slice_is(method, "POST") || slice_is(method, "PATCH") ? &config->policy
												   : &config->pass;

	for (size_t i = config->routes_n; i-- > 0;)
		if (slice_eq(config->routes[i].method, method) && slow_match(config->routes[i].pattern, path))
			expected = &config->routes[i].policy;
	ASSERT(gate_config_match(config, method, path) == expected);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *nul = memchr(data, '\0', size);
	struct slice text = slice_of(data, nul ? (size_t)(nul - data) : size);
	struct slice path = nul ? slice_of(nul + 1, size - text.n - 1) : slice_str("/");
	struct findings findings;
	struct gate_config config;
	struct arena arena;

	path.n = path.n < PATH_BYTES_MAX ? path.n : PATH_BYTES_MAX;
	arena_init(&arena, AMPLE_BYTES);
	findings_init(&findings, &arena);
	gate_config_parse("g\x1b.json", text, &arena, &findings, &config);
	try_findings(&findings);
	if (findings.errors == 0) {
		try_policy(&config.policy);
		for (size_t i = 0; i < config.routes_n; i++) {
			try_policy(&config.routes[i].policy);
			try_match(&config, config.routes[i].method, path);
		}
		try_match(&config, slice_str("POST"), path);
		try_match(&config, slice_str("GET"), path);
		ASSERT(!gate_config_match(&config, slice_str("post"), path));
	}
	arena_release(&arena);
	return 0;
}
