/* The configuration of the gate: every option at its limit and one past it. Routes: test_policy_routes.c. */
#include "policies.h"

/* ---- the whole ---- */

static void defaults(void **state)
{
	(void)state;
	clean("{}");
	assert_defaults(&config.policy);
	assert_int_equal(config.sweep_every_ms, 60000);
	assert_string_equal(config.name, "gate");
	assert_null(config.upstream);
	assert_null(config.store);
	assert_null(config.listen);
	assert_null(config.admin);
	assert_int_equal(config.routes_n, 0);
	assert_string_equal(config.file, "g.json");
	gate_config_init(&config);
	assert_defaults(&config.policy);
	assert_defaults(match("POST", "/"));
	assert_false(match("GET", "/")->guard);
}

static void the_contracts_example(void **state)
{
	(void)state;
	parse("{ 'upstream': 'http://127.0.0.1:3000', 'store': 'sqlite:gate.db', 'header': 'Idempotency-Key', 'ttl': '24h', 'processing_ttl': '60s', 'required': true,\n"
	      "  'max_key_length': 255, 'fingerprint': true, 'scope': 'endpoint', 'replay_headers': true, 'status_headers': true, 'cache_errors': 'none',\n"
	      "  'on_lost': 'retry', 'upstream_timeout': '30s', 'read_timeout': '10s', 'max_request_bytes': 1048576, 'max_stored_bytes': 1048576, 'sweep': { 'every': '60s' },\n"
	      "  'routes': [ { 'match': 'POST /payments*' },\n"
	      "              { 'match': 'POST /hooks/stripe', 'key': 'json:/id', 'fingerprint': ['/type', '/data/object/id'] },\n"
	      "              { 'match': 'POST /t/*', 'tenant': 'header:Authorization', 'scope': ['endpoint', 'header:X-Region'] },\n"
	      "              { 'match': 'DELETE /orders/*', 'replay_headers': ['location', 'x-request-id'] },\n"
	      "              { 'match': 'POST /opt/*', 'required': false, 'ttl': '3s', 'processing_ttl': '2s' },\n"
	      "              { 'match': 'POST /search', 'guard': false } ] }");
	assert_string_equal(
		printed.p,
		"g.json:8: warning: lease: route POST /opt/*: processing_ttl (2s) is not above upstream_timeout (30s): "
		"a retry may run beside a slow first request\n");
	assert_string_equal(config.upstream, "http://127.0.0.1:3000");
	assert_string_equal(config.store, "sqlite:gate.db");
	assert_defaults(&config.policy);
	assert_int_equal(config.routes_n, 6);
	assert_int_equal(config.routes[5].line, 9);

	const struct gate_policy *hook = match("POST", "/hooks/stripe");

	assert_slice(hook->key[0].name, "/id");
	assert_int_equal(hook->fingerprint.pointers_n, 2);
	assert_slice(hook->fingerprint.pointers[0], "/type");
	assert_slice(hook->fingerprint.pointers[1], "/data/object/id");

	const struct gate_policy *tenant = match("POST", "/t/1");

	assert_string_equal(tenant->tenant.label, "Authorization");
	assert_true(tenant->scope_endpoint);
	assert_int_equal(tenant->scope_n, 1);
	assert_slice(tenant->scope[0].name, "x-region");

	const struct gate_policy *orders = match("DELETE", "/orders/7");

	assert_true(orders->guard);
	assert_int_equal(orders->replay.kind, REPLAY_LIST);
	assert_int_equal(orders->replay.names_n, 2);
	assert_slice(orders->replay.names[0], "location");
	assert_slice(orders->replay.names[1], "x-request-id");

	assert_false(match("POST", "/opt/a")->required);
	assert_int_equal(match("POST", "/opt/a")->ttl_ms, 3000);
	assert_false(match("POST", "/search")->guard);
	assert_true(match("POST", "/searching")->guard);
	assert_defaults(match("POST", "/payments/1"));
}

static void addresses_and_stores(void **state)
{
	static const char *const stores[] = {"memory:",        "sqlite::memory:",      "sqlite:a/b.db",
					     "postgres://h/d", "redis://:pw@h:6379/2", "postgresql://h/d"};

	(void)state;
	for (size_t i = 0; i < sizeof stores / sizeof *stores; i++) {
		clean(text_printf(&arena, "{ 'store': '%s' }", stores[i]));
		assert_string_equal(config.store, stores[i]);
	}
	refused("{ 'store': 'mysql://secret@h' }", "value: store is not a store");
	refused("{ 'store': 'sqlite:' }", "value: store is not a store");
	refused("{ 'store': 'redis://:secret@h:port/0' }", "value: store: ");
	assert_null(strstr(printed.p, "secret"));
	assert_null(config.store);
	refused("{ 'store': 5 }", "store must be a string, not 5");

	clean("{ 'listen': '0.0.0.0:80', 'admin': '[::1]:0', 'upstream': 'https://api.example/' }");
	assert_string_equal(config.listen, "0.0.0.0:80");
	assert_string_equal(config.admin, "[::1]:0");
	assert_string_equal(config.upstream, "https://api.example/");
	clean("{ 'name': 'payments' }");
	assert_string_equal(config.name, "payments");
	refused("{ 'name': 'a:b' }", "name is \"a:b\"");
	refused("{ 'listen': '80' }", "listen is \"80\"; write it as ADDRESS:PORT");
	refused("{ 'admin': '127.0.0.1:65536' }", "admin is \"127.0.0.1:65536\"");
	refused("{ 'upstream': '127.0.0.1:3000' }", "value: upstream: \"127.0.0.1:3000\" must begin with http://");
	refused("{ 'upstream': 'http://u:p@h' }", "has credentials in it");
	refused("{ 'upstream': 'http://h/v1' }", "upstream is \"http://h/v1\"; it must be an address without a path");
	refused("{ 'upstream': 'http://h//' }", "without a path");
	refused("{ 'upstream': 'http://h?x' }", "without a path");
	refused("{ 'upstream': true }", "upstream must be a string, not true");
}

static void the_sweep(void **state)
{
	(void)state;
	clean("{ 'sweep': false }");
	assert_int_equal(config.sweep_every_ms, 0);
	clean("{ 'sweep': { 'every': '1ms' } }");
	assert_int_equal(config.sweep_every_ms, 1);
	clean("{ 'sweep': {} }");
	assert_int_equal(config.sweep_every_ms, 60000);
	refused("{ 'sweep': true }", "sweep is true; it must be {\"every\": DURATION} or false");
	refused("{ 'sweep': '60s' }", "sweep is \"60s\"");
	refused("{ 'sweep': { 'every': '0s' } }", "duration: sweep: every: \"0s\"");
	refused("{ 'sweep': { 'evry': '1s' } }", "unknown field: sweep: \"evry\"; did you mean \"every\"?");
}

static void what_is_not_known_or_misplaced(void **state)
{
	static const char *const of_file[] = {"'upstream': 'http://h'", "'store': 'memory:'", "'listen': 'h:1'",
					      "'admin': 'h:1'",         "'sweep': false",     "'routes': []"};

	(void)state;
	refused("{ 'processing_tll': '1s' }", "unknown field: \"processing_tll\"; did you mean \"processing_ttl\"?");
	refused("{ 'routes': [ { 'match': 'POST /x', 'requird': true } ] }",
		"unknown field: route POST /x: \"requird\"; did you mean \"required\"?");
	for (size_t i = 0; i < sizeof of_file / sizeof *of_file; i++)
		refused(text_printf(&arena, "{ 'routes': [ { 'match': 'POST /x', %s } ] }", of_file[i]),
			"can only be said of the whole gate, not of a route");
	refused("{ 'guard': false }", "misplaced field: \"guard\" can only be said of a route");
	refused("{ 'match': 'POST /x' }", "misplaced field: \"match\" can only be said of a route");
	refused("{ 'ttl': '1s', 'ttl': '2s' }", "json: column ");
	refused("[]", "a configuration must be an object, not an array");
	refused("{ 'ttl': ", "json: column ");
}

static void all_findings_in_the_order_of_the_text(void **state)
{
	(void)state;
	parse("{ 'ttl': 1,\n 'routes': [ { 'match': 'POST /a', 'x': 2,\n 'scope': 3 } ],\n 'store': 4 }");
	assert_int_equal(findings.errors, 4);

	const struct finding *f = findings.first;

	for (size_t line = 1; line <= 4; line++, f = f->next)
		assert_int_equal(f->line, line);
	assert_defaults(&config.policy); /* what could not be read has its default */
}

static void a_file_that_is_too_large_or_missing(void **state)
{
	char *text = malloc(CONFIG_BYTES_MAX + 2);

	(void)state;
	assert_non_null(text);
	memset(text, ' ', CONFIG_BYTES_MAX + 1);
	text[CONFIG_BYTES_MAX + 1] = '\0';
	text[0] = '{';
	text[1] = '}';
	parse(text);
	assert_int_equal(findings.errors, 1);
	assert_non_null(strstr(printed.p, "limit: the configuration has 1048577 bytes; at most 1048576"));
	text[CONFIG_BYTES_MAX] = '\0';
	clean(text);
	free(text);

	findings_init(&findings, &arena);
	gate_config_load("no/such/file.json", &arena, &findings, &config);
	assert_int_equal(findings.errors, 1);
	assert_string_equal(findings.first->file, "no/such/file.json");
	assert_defaults(&config.policy);
}

/* ---- each option, in the file and in a route ---- */

static void durations(void **state)
{
	static const struct {
		const char *name;
		size_t offset;
	} options[] = {{"ttl", offsetof(struct gate_policy, ttl_ms)},
		       {"processing_ttl", offsetof(struct gate_policy, processing_ttl_ms)},
		       {"upstream_timeout", offsetof(struct gate_policy, upstream_timeout_ms)},
		       {"read_timeout", offsetof(struct gate_policy, read_timeout_ms)}};
	static const char *const bad[] = {
		"'0s'",  "'0ms'", "'-1s'",     "'1.5s'", "'5'",   "''",    "'s'",
		"'1 s'", "'1S'",  "'100001d'", "'1e3s'", "'+1s'", "'01s'", "'99999999999999999999s'"};

	(void)state;
	for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
		for (size_t j = 0; j < sizeof bad / sizeof *bad; j++)
			option_refused(text_printf(&arena, "'%s': %s", options[i].name, bad[j]),
				       text_printf(&arena, "%s: \"", options[i].name));
		option_refused(text_printf(&arena, "'%s': 5", options[i].name),
			       text_printf(&arena, "%s must be a duration", options[i].name));
		for (int route = 0; route < 2; route++) {
			const char *option = text_printf(&arena, "'%s': '31s'", options[i].name);
			const struct gate_policy *p = route ? option_in_route(option) : option_in_file(option);

			assert_int_equal(*(const int64_t *)((const char *)p + options[i].offset), 31000);
		}
	}
	assert_int_equal(option_in_file("'ttl': '1ms'")->ttl_ms, 1);
	assert_int_equal(option_in_file("'ttl': '100000d'")->ttl_ms, INT64_C(8640000000000));
}

static void the_lease_against_the_timeout(void **state)
{
	(void)state;
	clean("{ 'processing_ttl': '30001ms' }");
	parse("{\n 'processing_ttl': '30s' }");
	assert_int_equal(findings.errors, 0);
	assert_int_equal(findings.warnings, 1);
	assert_int_equal(findings.first->line, 2);
	clean("{ 'upstream_timeout': '59999ms' }");
	parse("{ 'upstream_timeout':\n '60s' }");
	assert_int_equal(findings.warnings, 1);
	assert_int_equal(findings.first->line, 2);
	/* One for each place that says it, none for those who only inherit it. */
	parse("{ 'processing_ttl': '5s', 'routes': [\n"
	      "{ 'match': 'POST /inherits' },\n"
	      "{ 'match': 'POST /repairs', 'upstream_timeout': '4s' },\n"
	      "{ 'match': 'POST /worsens', 'upstream_timeout': '1m' },\n"
	      "{ 'match': 'POST /open', 'guard': false, 'upstream_timeout': '1m' } ] }");
	assert_int_equal(findings.warnings, 2);
	assert_int_equal(findings.first->line, 1);
	assert_int_equal(findings.first->next->line, 4);
}

static void sizes(void **state)
{
	(void)state;
	assert_int_equal(option_in_file("'max_key_length': 1")->max_key_length, 1);
	assert_int_equal(option_in_route("'max_key_length': 1024")->max_key_length, GATE_KEY_LENGTH_MAX);
	option_refused("'max_key_length': 0", "max_key_length is 0; it must be a whole number from 1 to 1024");
	option_refused("'max_key_length': 1025", "max_key_length is 1025");
	option_refused("'max_key_length': 2.5", "max_key_length is 2.5");
	assert_int_equal(option_in_file("'max_request_bytes': 1")->max_request_bytes, 1);
	assert_int_equal(option_in_route("'max_request_bytes': 1073741824")->max_request_bytes, GATE_REQUEST_BYTES_MAX);
	option_refused("'max_request_bytes': 0", "max_request_bytes is 0");
	option_refused("'max_request_bytes': 1073741825", "max_request_bytes is 1073741825");
	assert_int_equal(option_in_file("'max_stored_bytes': 1")->max_stored_bytes, 1);
	assert_int_equal(option_in_route("'max_stored_bytes': 16777216")->max_stored_bytes, GATE_STORED_BYTES_MAX);
	option_refused("'max_stored_bytes': 0", "max_stored_bytes is 0");
	option_refused("'max_stored_bytes': 16777217", "max_stored_bytes is 16777217");
	option_refused("'max_stored_bytes': '1MB'", "max_stored_bytes must be a whole number, not \"1MB\"");
	assert_false(option_in_file("'required': false")->required);
	assert_false(option_in_route("'status_headers': false")->status_headers);
	option_refused("'required': 'no'", "required must be true or false, not \"no\"");
	option_refused("'status_headers': 0", "status_headers must be true or false, not 0");
}

static void where_the_key_is(void **state)
{
	(void)state;
	assert_string_equal(option_in_file("'header': 'X-Key'")->key[0].label, "X-Key");
	assert_string_equal(option_in_route("'key': 'header:X-Key'")->key[0].label, "X-Key");
	assert_slice(option_in_route("'key': 'header:X-Key'")->key[0].name, "x-key");
	assert_slice(option_in_file("'key': 'json:/a~1b/~0/0'")->key[0].name, "/a~1b/~0/0");
	assert_slice(option_in_route("'key': 'json:/'")->key[0].name, "/");
	option_refused("'header': 'X Key'", "header is \"X Key\"; it must be the name of a header");
	option_refused("'header': ''", "header is \"\"");
	option_refused("'key': 'json:'", "key is \"json:\"; it must be \"header:NAME\", \"cookie:NAME\"");
	option_refused("'key': 'json:id'", "key is \"json:id\"");
	option_refused("'key': 'json:/a~2'", "key is \"json:/a~2\"");
	option_refused("'key': 'json:/a~'", "key is \"json:/a~\"");
	option_refused("'key': 'header:'", "key is \"header:\"");
	option_refused("'key': 'header:X:Y'", "key is \"header:X:Y\"");
	option_refused("'key': 'body:/id'", "key is \"body:/id\"");
	option_refused("'key': 'json:/id', 'header': 'X-Key'", "key and header both say where the key is");

	/* A route that names a header takes the key from there, whatever the file says. */
	clean("{ 'key': 'json:/id', 'routes': [ { 'match': 'POST /h', 'header': 'X-Key' }, { 'match': 'POST /j' } ] }");
	assert_int_equal(match("POST", "/h")->key[0].kind, GATE_SOURCE_HEADER);
	assert_string_equal(match("POST", "/h")->key[0].label, "X-Key");
	assert_slice(match("POST", "/j")->key[0].name, "/id");
}

static void pointers_at_the_limit(void **state)
{
	char *long_one = malloc(JSON_POINTER_BYTES_MAX + 2);
	struct strbuf sb;

	(void)state;
	assert_non_null(long_one);
	memset(long_one, 'a', JSON_POINTER_BYTES_MAX + 1);
	long_one[0] = '/';
	long_one[JSON_POINTER_BYTES_MAX + 1] = '\0';
	option_refused(text_printf(&arena, "'key': 'json:%s'", long_one), "key is ");
	option_refused(text_printf(&arena, "'fingerprint': ['%s']", long_one), "an entry of fingerprint is ");
	long_one[JSON_POINTER_BYTES_MAX] = '\0';
	assert_int_equal(option_in_file(text_printf(&arena, "'key': 'json:%s'", long_one))->key[0].name.n,
			 JSON_POINTER_BYTES_MAX);
	free(long_one);

	strbuf_init(&sb, 10000);
	for (int i = 0; i < GATE_LIST_MAX; i++)
		strbuf_addf(&sb, "%s'/%d'", i ? ", " : "", i);
	assert_int_equal(option_in_file(text_printf(&arena, "'fingerprint': [%s]", sb.p))->fingerprint.pointers_n,
			 GATE_LIST_MAX);
	option_refused(text_printf(&arena, "'fingerprint': [%s, '/x']", sb.p),
		       "fingerprint has 33 entries; it must have 1 to 32");
	strbuf_release(&sb);
}

static void fingerprints(void **state)
{
	(void)state;
	assert_true(option_in_file("'fingerprint': false")->fingerprint.off);
	assert_false(option_in_route("'fingerprint': true")->fingerprint.off);
	assert_slice(option_in_route("'fingerprint': ['']")->fingerprint.pointers[0], "");
	/* A name may have any character, also those that no terminal should see. */
	assert_int_equal(option_in_file("'fingerprint': ['/a\\u0000b']")->fingerprint.pointers[0].n, 4);
	option_refused("'fingerprint': []", "fingerprint has 0 entries");
	option_refused("'fingerprint': ['type']", "an entry of fingerprint is \"type\"; it must be a JSON pointer");
	option_refused("'fingerprint': [5]", "an entry of fingerprint is 5");
	option_refused("'fingerprint': 'sha256'", "fingerprint is \"sha256\"; it must be true, false or an array");
	/* And back again in a route. */
	clean("{ 'fingerprint': ['/a'], 'routes': [ { 'match': 'POST /x', 'fingerprint': true } ] }");
	assert_int_equal(match("POST", "/x")->fingerprint.pointers_n, 0);
	assert_int_equal(match("POST", "/y")->fingerprint.pointers_n, 1);
}

static void scopes(void **state)
{
	const struct gate_policy *p;

	(void)state;
	assert_false(option_in_file("'scope': 'global'")->scope_endpoint);
	assert_true(option_in_route("'scope': 'endpoint'")->scope_endpoint);
	assert_false(option_in_route("'scope': ['global']")->scope_endpoint);
	p = option_in_file("'scope': ['header:X-A', 'header:x-b']");
	assert_false(p->scope_endpoint);
	assert_int_equal(p->scope_n, 2);
	assert_slice(p->scope[0].name, "x-a");
	p = option_in_file(
		"'scope': ['endpoint', 'header:a', 'header:b', 'header:c', 'header:d', 'header:e', 'header:f', "
		"'header:g', 'header:h']");
	assert_int_equal(p->scope_n, GATE_SCOPE_PARTS_MAX);
	option_refused("'scope': ['header:a', 'header:b', 'header:c', 'header:d', 'header:e', 'header:f', 'header:g', "
		       "'header:h', 'header:i']",
		       "scope has too many parts; at most 8");
	option_refused("'scope': ['header:X-A', 'header:x-a']", "scope has header:x-a twice");
	option_refused("'scope': ['endpoint', 'global']", "scope is both \"endpoint\" and \"global\"");
	option_refused("'scope': []", "scope has 0 entries");
	option_refused("'scope': 'header:X-A'",
		       "scope is \"header:X-A\"; it must be \"endpoint\", \"global\", or an array");
	option_refused("'scope': 'tenant'", "scope is \"tenant\"");
	option_refused("'scope': ['header:']", "scope is \"header:\"");
	option_refused("'scope': ['path', 'endpoint']", "scope is \"path\"");
	option_refused("'scope': true", "scope is true");
	option_refused("'scope': [1]", "scope is 1");
	/* A route's replaces the file's. */
	clean("{ 'scope': ['header:a'], 'routes': [ { 'match': 'POST /x', 'scope': ['endpoint', 'header:b'] } ] }");
	assert_int_equal(match("POST", "/x")->scope_n, 1);
	assert_slice(match("POST", "/x")->scope[0].name, "b");

	assert_string_equal(option_in_file("'tenant': 'header:X-Tenant'")->tenant.label, "X-Tenant");
	option_refused("'tenant': 'X-Tenant'", "tenant is \"X-Tenant\"; it must be \"header:NAME\"");
	option_refused("'tenant': 'json:t'", "tenant is \"json:t\"");
	assert_slice(option_in_file("'tenant': 'json:/t'")->tenant.name, "/t");
	option_refused("'tenant': 1", "tenant is 1");
	clean("{ 'tenant': 'header:X-Tenant', 'routes': [ { 'match': 'POST /x', 'tenant': null } ] }");
	assert_int_equal(match("POST", "/x")->tenant.kind, GATE_SOURCE_NONE);
	assert_int_equal(match("POST", "/y")->tenant.kind, GATE_SOURCE_HEADER);
}

static void callers_and_places(void **state)
{
	const struct gate_policy *p;

	(void)state;
	p = option_in_file("'caller': 'header:X-User'");
	assert_int_equal(p->caller.kind, GATE_SOURCE_HEADER);
	assert_false(p->any_caller);
	assert_true(option_in_route("'caller': null")->any_caller);
	option_refused("'caller': 'sub'", "caller is \"sub\"; it must be null, \"header:NAME\"");
	option_refused("'caller': false", "caller is false");
	clean("{ 'caller': null, 'routes': [ { 'match': 'POST /x', 'caller': 'cookie:sid' } ] }");
	assert_false(match("POST", "/x")->any_caller);
	assert_true(match("POST", "/y")->any_caller);
	p = option_in_file("'key': ['query:id', 'path:2', 'cookie:c', 'json:/a']");
	assert_int_equal(p->key_n, 4);
	assert_slice(p->key[0].name, "id");
	assert_int_equal(p->key[1].segment, 2);
	option_refused("'key': ['query:a', 'query:b', 'query:c', 'query:d', 'query:e']", "key has 5 entries");
	option_refused("'key': ['path:0']", "a part of key is \"path:0\"");
	option_refused("'key': 'path:100'", "key is \"path:100\"");
	option_refused("'key': 'cookie:a b'", "key is \"cookie:a b\"");
	option_refused("'key': 'query:'", "key is \"query:\"");
	option_refused("'fingerprint': ['body', '/a']", "fingerprint has the whole body and pointers into it");
	p = option_in_file("'fingerprint': ['query', 'header:X-V']");
	assert_true(p->fingerprint.no_body && p->fingerprint.query);
	assert_int_equal(p->fingerprint.sources_n, 1);
}

static void headers_that_are_repeated(void **state)
{
	static const char *const never[] = {"Set-Cookie",
					    "set-cookie",
					    "Connection",
					    "Keep-Alive",
					    "Transfer-Encoding",
					    "Content-Length",
					    "TE",
					    "Trailer",
					    "Upgrade",
					    "Proxy-Connection",
					    "Idempotency-Status",
					    "Idempotency-Replayed",
					    "Proxy-Authenticate"};
	struct strbuf sb;

	(void)state;
	assert_int_equal(option_in_file("'replay_headers': false")->replay.kind, REPLAY_NONE);
	assert_int_equal(option_in_route("'replay_headers': true")->replay.kind, REPLAY_SAFE);
	assert_int_equal(option_in_route("'replay_headers': []")->replay.kind, REPLAY_LIST);
	assert_slice(option_in_file("'replay_headers': ['X-Request-ID']")->replay.names[0], "x-request-id");
	for (size_t i = 0; i < sizeof never / sizeof *never; i++)
		option_refused(text_printf(&arena, "'replay_headers': ['%s']", never[i]),
			       text_printf(&arena, "replay_headers: \"%s\" is never repeated", never[i]));
	option_refused("'replay_headers': ['a b']", "an entry of replay_headers is \"a b\"");
	option_refused("'replay_headers': [1]", "an entry of replay_headers is 1");
	option_refused("'replay_headers': 'all'",
		       "replay_headers is \"all\"; it must be true, false or an array of names");
	strbuf_init(&sb, 10000);
	for (int i = 0; i < GATE_LIST_MAX; i++)
		strbuf_addf(&sb, "%s'x-%d'", i ? ", " : "", i);
	assert_int_equal(option_in_file(text_printf(&arena, "'replay_headers': [%s]", sb.p))->replay.names_n,
			 GATE_LIST_MAX);
	option_refused(text_printf(&arena, "'replay_headers': [%s, 'y']", sb.p), "replay_headers has 33 entries");
	strbuf_release(&sb);
}

static void errors_that_are_stored(void **state)
{
	static const struct {
		const char *option;
		bool of_400, of_404, of_429, of_499, of_500, of_503, of_599;
	} rules[] = {
		{"'cache_errors': 'none'", false, false, false, false, false, false, false},
		{"'cache_errors': '4xx'", true, true, false, true, false, false, false},
		{"'cache_errors': 'all'", true, true, false, true, true, false, true},
		{"'cache_errors': [404, 500]", false, true, false, false, true, false, false},
		{"'cache_errors': [400, 599]", true, false, false, false, false, false, true},
		{"'cache_errors': []", false, false, false, false, false, false, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
		const struct gate_policy *p = option_in_route(rules[i].option);

		assert_int_equal(gate_policy_stores(p, 400), rules[i].of_400);
		assert_int_equal(gate_policy_stores(p, 404), rules[i].of_404);
		assert_int_equal(gate_policy_stores(p, 429), rules[i].of_429);
		assert_int_equal(gate_policy_stores(p, 499), rules[i].of_499);
		assert_int_equal(gate_policy_stores(p, 500), rules[i].of_500);
		assert_int_equal(gate_policy_stores(p, 503), rules[i].of_503);
		assert_int_equal(gate_policy_stores(p, 599), rules[i].of_599);
		assert_true(gate_policy_stores(p, 200) && gate_policy_stores(p, 204) && gate_policy_stores(p, 399));
		assert_false(gate_policy_stores(p, 199));
	}
	option_refused("'cache_errors': [429]", "cache_errors: 429 is never stored");
	option_refused("'cache_errors': [404, 503]", "cache_errors: 503 is never stored");
	option_refused("'cache_errors': [399]",
		       "an entry of cache_errors is 399; it must be a whole number from 400 to 599");
	option_refused("'cache_errors': [600]", "an entry of cache_errors is 600");
	option_refused("'cache_errors': ['404']", "an entry of cache_errors must be a whole number");
	option_refused("'cache_errors': '5xx'", "cache_errors is \"5xx\", which is not known; did you mean \"4xx\"?");
	option_refused("'cache_errors': true", "cache_errors is true");

	assert_true(option_in_file("'on_lost': 'hold'")->hold);
	assert_false(option_in_route("'on_lost': 'retry'")->hold);
	option_refused("'on_lost': 'holt'", "on_lost is \"holt\", which is not known; did you mean \"hold\"?");
	option_refused("'on_lost': true", "on_lost must be a string, not true");
}

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(defaults),
					   TEST(the_contracts_example),
					   TEST(addresses_and_stores),
					   TEST(the_sweep),
					   TEST(what_is_not_known_or_misplaced),
					   TEST(all_findings_in_the_order_of_the_text),
					   TEST(a_file_that_is_too_large_or_missing),
					   TEST(durations),
					   TEST(the_lease_against_the_timeout),
					   TEST(sizes),
					   TEST(where_the_key_is),
					   TEST(pointers_at_the_limit),
					   TEST(fingerprints),
					   TEST(scopes),
					   TEST(callers_and_places),
					   TEST(headers_that_are_repeated),
					   TEST(errors_that_are_stored)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
