/* The configuration of the gate: routes, which policy a request gets, and their limits. */
#include "policies.h"

static void matches_that_are_not_valid(void **state)
{
	static const char *const bad[][2] = {
		{"post /x", "there is no method \"post\"; did you mean \"POST\"?"},
		{"CONNECT /x", "there is no method \"CONNECT\""},
		{"PSOT /x", "did you mean \"POST\"?"},
		{"* /x", "there is no method \"*\""},
		{"/x", "there is no method \"/x\""},
		{"POST", "write it as METHOD /PATTERN"},
		{"POST ", "write it as METHOD /PATTERN"},
		{"POST x", "write it as METHOD /PATTERN"},
		{"POST *", "write it as METHOD /PATTERN"},
		{"POST  /x", "write it as METHOD /PATTERN"},
		{"POST /x y", "write it as METHOD /PATTERN"},
		{"POST /x?y=1", "write it as METHOD /PATTERN"},
		{"POST /x#y", "write it as METHOD /PATTERN"},
		{"POST /\xc3\xbc", "write it as METHOD /PATTERN"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		refused(text_printf(&arena, "{ 'routes': [ { 'match': '%s' } ] }", bad[i][0]), bad[i][1]);
	refused("{ 'routes': [ {} ] }", "missing field: a route: \"match\" is missing");
	refused("{ 'routes': [ { 'match': 5 } ] }", "a route: match must be a string, not 5");
	refused("{ 'routes': [ 5 ] }", "a route must be an object, not 5");
	refused("{ 'routes': {} }", "routes must be an array");
	refused("{ 'routes': [ { 'match': 'POST /x', 'guard': 0 } ] }", "guard must be true or false, not 0");
	refused("{ 'routes': [ { 'match': 'POST /x' }, { 'match': 'PUT /x' }, { 'match': 'POST /x', 'ttl': '1s' } ] }",
		"repeated route: POST /x is matched by the route of line 1 already");
}

static void methods(void **state)
{
	static const char *const known[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"};
	static const char *const unknown[] = {"post", "Post", "CONNECT", "", "POSTS", "POS", "PROPFIND"};

	(void)state;
	clean("{ 'read_timeout': '7s' }");
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		const struct gate_policy *p = match(known[i], "/x");

		assert_non_null(p);
		assert_int_equal(p->guard, strcmp(known[i], "POST") == 0 || strcmp(known[i], "PATCH") == 0);
		assert_int_equal(p->read_timeout_ms, 7000); /* what passes through has the file's other options */
	}
	for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
		assert_null(match(unknown[i], "/x"));
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		clean(text_printf(&arena, "{ 'routes': [ { 'match': '%s /a*' } ] }", known[i]));
		assert_ptr_equal(match(known[i], "/abc"), &config.routes[0].policy);
		assert_true(match(known[i], "/abc")->guard);
		assert_ptr_not_equal(match(known[i], "/b"), &config.routes[0].policy);
		assert_ptr_not_equal(match(known[(i + 1) % 8], "/abc"), &config.routes[0].policy);
	}
}

static void the_first_route_that_matches(void **state)
{
	(void)state;
	clean("{ 'ttl': '9s', 'routes': [ { 'match': 'POST /a/special', 'ttl': '1s' }, { 'match': 'POST /a/*', 'ttl': '2s' }, "
	      "{ 'match': 'POST /*', 'required': false } ] }");
	assert_int_equal(match("POST", "/a/special")->ttl_ms, 1000);
	assert_int_equal(match("POST", "/a/other")->ttl_ms, 2000);
	assert_int_equal(match("POST", "/b")->ttl_ms, 9000); /* the route's own where it says so, else the file's */
	assert_false(match("POST", "/b")->required);
	assert_true(match("PATCH", "/b")->required);
}

static void patterns(void **state)
{
	static const struct {
		const char *pattern, *path;
		bool matches;
	} cases[] = {
		{"/", "/", true},
		{"/", "/x", false},
		{"/x", "/", false},
		{"/a", "/A", false},
		{"/*", "/", true},
		{"/*", "/a/b", true},
		{"/a*", "/a", true},
		{"/a*", "/b", false},
		{"/a/*", "/a", false},
		{"/a/*/c", "/a/b/c", true},
		{"/a/*/c", "/a/b/x/c", true}, /* any characters, slashes too */
		{"/a/*/c", "/a//c", true},
		{"/a/*/c", "/a/c", false},
		{"/a*a", "/a", false}, /* the two do not share one */
		{"/a*a", "/aa", true},
		{"/a*bc*bc", "/abc", false},
		{"/a*bc*bc", "/abcbc", true},
		{"/a*bc*bc", "/axbcxbcxbc", true},
		{"/*ab*ab*", "/abab", true},
		{"/*ab*ab*", "/aab", false},
		{"/**", "/", true},
		{"/a**b", "/ab", true},
		{"/a%2Fb", "/a/b", false}, /* never decoded */
		{"/a%2Fb", "/a%2fb", false},
		{"/*.json", "/x.json.json", true},
		{"/*.json", "/x.jso", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		clean(text_printf(&arena, "{ 'routes': [ { 'match': 'PUT %s' } ] }", cases[i].pattern));
		if (match("PUT", cases[i].path)->guard != cases[i].matches)
			fail_msg("%s and %s", cases[i].pattern, cases[i].path);
	}
	clean("{ 'routes': [ { 'match': 'PUT /a' } ] }");
	assert_false(gate_config_match(&config, slice_str("PUT"), slice_of("/a\0b", 4))->guard);
	assert_false(gate_config_match(&config, slice_str("PUT"), slice_of("/abc", 1))->guard);
	assert_true(gate_config_match(&config, slice_str("PUT"), slice_of("/abc", 2))->guard);
}

/* What a matcher that tries every place of every star would not finish in the life of this test. */
static void stars_cost_nothing(void **state)
{
	char path[8000];
	struct strbuf sb;

	(void)state;
	strbuf_init(&sb, 10000);
	strbuf_add_str(&sb, "{ 'routes': [ { 'match': 'PUT /");
	for (int i = 0; i < 900; i++)
		strbuf_add_str(&sb, "a*");
	strbuf_add_str(&sb, "b' } ] }");
	clean(sb.p);
	memset(path, 'a', sizeof path);
	path[0] = '/';
	for (int i = 0; i < 1000; i++)
		assert_false(gate_config_match(&config, slice_str("PUT"), slice_of(path, sizeof path))->guard);
	path[sizeof path - 1] = 'b';
	assert_true(gate_config_match(&config, slice_str("PUT"), slice_of(path, sizeof path))->guard);
	strbuf_release(&sb);
}

static void limits_of_routes(void **state)
{
	struct strbuf sb;

	(void)state;
	strbuf_init(&sb, 100000);
	for (int i = 0; i < GATE_ROUTES_MAX; i++)
		strbuf_addf(&sb, "%s{ 'match': 'PUT /%d' }", i ? ", " : "", i);
	clean(text_printf(&arena, "{ 'routes': [ %s ] }", sb.p));
	assert_int_equal(config.routes_n, GATE_ROUTES_MAX);
	assert_true(match("PUT", "/499")->guard);
	refused(text_printf(&arena, "{ 'routes': [ %s, { 'match': 'PUT /x' } ] }", sb.p), "routes has 501 entries");
	assert_int_equal(config.routes_n, 0);

	strbuf_reset(&sb);
	strbuf_add_str(&sb, "PUT /");
	while (sb.n < GATE_MATCH_BYTES_MAX)
		strbuf_add_char(&sb, 'a');
	clean(text_printf(&arena, "{ 'routes': [ { 'match': '%s' } ] }", sb.p));
	assert_true(match("PUT", sb.p + 4)->guard);
	refused(text_printf(&arena, "{ 'routes': [ { 'match': '%sa' } ] }", sb.p), "it must have 1 to 2048 bytes");
	strbuf_release(&sb);
}

/* With too little memory there is an error and a configuration of defaults, never half of one. */
static void too_little_memory(void **state)
{
	static const char text[] =
		"{\"ttl\":\"1s\",\"header\":\"X-K\",\"scope\":[\"header:a\"],\"fingerprint\":[\"/a\"],"
		"\"replay_headers\":[\"x-a\"],\"cache_errors\":[404],\"routes\":[{\"match\":\"PUT /x\"}]}";
	bool accepted = false;

	(void)state;
	for (size_t room = 0; room < 20000 && !accepted; room += 16) {
		struct arena small;

		arena_init(&small, room);
		findings_init(&findings, &small);
		gate_config_parse("g.json", slice_str(text), &small, &findings, &config);
		accepted = findings.errors == 0;
		if (accepted)
			assert_int_equal(config.policy.ttl_ms, 1000);
		else
			assert_defaults(&config.policy);
		arena_release(&small);
	}
	assert_true(accepted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(matches_that_are_not_valid),
					   TEST(methods),
					   TEST(the_first_route_that_matches),
					   TEST(patterns),
					   TEST(stars_cost_nothing),
					   TEST(limits_of_routes),
					   TEST(too_little_memory)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
