/*
 * See policy.h. The file's own options are read first, over the defaults; then each route's, over a copy of the file's.
 * So one table has them for both places, and an option that a route leaves out is the file's by itself.
 *
 * A field that is not known, or that stands where it means nothing, is an error: a silently ignored one is an
 * unprotected request. For the same reason two routes with one match are refused: the second would never be reached.
 * What says where values stand in a request (key, tenant, scope …) is read in policy_sources.c.
 */
#include "gate/policy.h"

#include "base/duration.h"
#include "gate/policy_sources.h"
#include "gate/redis.h"
#include "model/config_fields.h"
#include "model/header.h"
#include "model/load.h"
#include "model/url.h"

#define WHERE_BYTES 100

static const struct gate_policy policy_default = {
	.guard = true,
	.required = true,
	.key_n = 1,
	.key = {{.kind = GATE_SOURCE_HEADER,
		 .name = {"idempotency-key", 15},
		 .text = "header:Idempotency-Key",
		 .label = "Idempotency-Key"}},
	.max_key_length = 255,
	.scope_endpoint = true,
	.ttl_ms = INT64_C(24) * 60 * 60 * 1000,
	.processing_ttl_ms = 60 * 1000,
	.upstream_timeout_ms = 30 * 1000,
	.read_timeout_ms = 10 * 1000,
	.replay = {.kind = REPLAY_SAFE},
	.status_headers = true,
	.cache_errors = GATE_CACHE_NONE,
	.max_request_bytes = 1 << 20,
	.max_stored_bytes = 1 << 20,
};

static void set_pass(struct gate_config *config)
{
	config->pass = config->policy;
	config->pass.guard = false;
}

void gate_config_init(struct gate_config *config)
{
	*config = (struct gate_config){.file = "",
				       .name = "gate",
				       .sweep_every_ms = 60 * 1000,
				       .max_tunnels = 1000,
				       .tunnel_timeout_ms = 5 * 60 * 1000,
				       .log_level = LOG_LEVEL_INFO,
				       .store_timeout_ms = READER_STORE_TIMEOUT_MS,
				       .policy = policy_default};
	set_pass(config);
}

/* ---- the options; where values stand in a request is policy_sources.c's ---- */

/* The rule itself says which fields are never repeated, so that there is one list of them. */
static bool is_replayable(struct slice lower)
{
	struct gate_replay_rule only = {.kind = REPLAY_LIST, .names_n = 1, .names = &lower};

	return gate_replays_field(&only, lower, /* connection= */ NULL, 0);
}

static void read_replay_headers(const struct reader *r, const struct json_node *node, const struct field *field,
				void *ret)
{
	struct gate_replay_rule *replay = &((struct gate_policy *)ret)->replay;
	struct slice *names;
	bool safe = true;
	size_t n = 0;

	if (node->type != JSON_ARRAY) {
		if (node->type != JSON_BOOL)
			policy_refuse(r, node, field->name, "true, false or an array of names");
		else if (reader_bool(r, node, field->name, &safe))
			*replay = (struct gate_replay_rule){.kind = safe ? REPLAY_SAFE : REPLAY_NONE};
		return;
	}
	names = reader_list(r, node, field->name, 0, GATE_LIST_MAX, sizeof *names);
	if (!names)
		return;
	json_node_for_each(element, node)
	{
		struct slice name;

		if (element->type != JSON_STRING || !header_name_is_token(element->string)) {
			policy_refuse(r, element, "an entry of replay_headers", "the name of a header");
			continue;
		}
		name = gate_keep_lower(r->arena, element->string);
		if (!name.p)
			return;
		if (!is_replayable(name))
			reader_report(
				r, element->at.line, "value",
				"replay_headers: \"%s\" is never repeated: it belongs to one client, one connection or "
				"the gate itself",
				excerpt_of(element->string).text);
		names[n++] = name;
	}
	*replay = (struct gate_replay_rule){.kind = REPLAY_LIST, .names_n = n, .names = names};
}

static bool is_never_stored(int64_t status)
{
	return status == 429 || status == 503;
}

static void read_cache_errors(const struct reader *r, const struct json_node *node, const struct field *field,
			      void *ret)
{
	static const char *const words[] = {[GATE_CACHE_NONE] = "none",
					    [GATE_CACHE_4XX] = "4xx",
					    [GATE_CACHE_ALL] = "all",
					    [GATE_CACHE_LIST] = NULL};
	struct gate_policy *p = ret;
	int word = 0, *list;
	size_t n = 0;

	if (node->type != JSON_ARRAY) {
		if (node->type != JSON_STRING)
			policy_refuse(r, node, field->name, "\"none\", \"4xx\", \"all\" or an array of statuses");
		else if (reader_choice(r, node, field->name, words, &word))
			p->cache_errors = word;
		p->cache_list_n = 0; /* of the file, where this is a route */
		return;
	}
	list = reader_list(r, node, field->name, 0, GATE_LIST_MAX, sizeof *list);
	if (!list)
		return;
	json_node_for_each(element, node)
	{
		int64_t status = 0;

		if (!reader_int(r, element, "an entry of cache_errors", 400, 599, &status))
			continue;
		if (is_never_stored(status))
			reader_report(r, element->at.line, "value",
				      "cache_errors: %d is never stored: it asks the client to try again", (int)status);
		else
			list[n++] = (int)status;
	}
	p->cache_errors = GATE_CACHE_LIST;
	p->cache_list_n = n;
	p->cache_list = list;
}

/*
 * The lease is not renewed. One that ends before the upstream is given up on can pass to a retry while the first request
 * is still at work: that is a choice some make, so it is told and not refused.
 */
static void check_lease(const struct reader *r, const struct json_node *object, const struct gate_policy *p)
{
	const struct json_node *lease = json_node_member(object, "processing_ttl");
	const struct json_node *set_here = lease ? lease : json_node_member(object, "upstream_timeout");
	char lease_text[DURATION_TEXT_BYTES], timeout_text[DURATION_TEXT_BYTES];

	if (!set_here || !p->guard || p->processing_ttl_ms > p->upstream_timeout_ms)
		return;
	duration_format(p->processing_ttl_ms, lease_text);
	duration_format(p->upstream_timeout_ms, timeout_text);
	reader_warn(
		r, set_here->at.line, "lease",
		"processing_ttl (%s) is not above upstream_timeout (%s): a retry may run beside a slow first request",
		lease_text, timeout_text);
}

/* ---- a match ---- */

static const char *const methods[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", NULL};

/* What a path can have, and *: a query is no part of it, so a pattern with one would match nothing. */
static bool is_pattern(struct slice text)
{
	for (size_t i = 0; i < text.n; i++)
		if (text.p[i] <= 0x20 || text.p[i] >= 0x7f || text.p[i] == '?' || text.p[i] == '#')
			return false;
	return text.n > 0 && text.p[0] == '/';
}

static void read_match(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	struct gate_route *route = ret;
	const char *text;
	struct slice method, pattern;

	if (!reader_text(r, node, field->name, GATE_MATCH_BYTES_MAX, &text))
		return;
	pattern = slice_str(text);
	method = slice_cut(&pattern, ' ');
	if (!slice_in(method, methods))
		reader_report(r, node->at.line, "value", "match is \"%s\": there is no method \"%s\"%s",
			      excerpt_of(slice_str(text)).text, excerpt_of(method).text,
			      reader_suggest(r, method, methods).text);
	else if (!is_pattern(pattern))
		reader_report(r, node->at.line, "value",
			      "match is \"%s\"; write it as METHOD /PATTERN, in which * stands for any characters",
			      excerpt_of(slice_str(text)).text);
	else
		*route = (struct gate_route){.method = method, .pattern = pattern, .policy = route->policy};
	route->policy.match = text;
}

/* ---- the file ---- */

/* http://HOST:PORT or https://HOST:PORT: a request's own path is what stands after it. */
static bool has_path(struct slice url)
{
	const char *host = (const char *)memchr(url.p, '/', url.n) + 2;
	size_t n = url.n - (size_t)(host - url.p);
	const char *slash = memchr(host, '/', n);

	return (slash && slash + 1 != host + n) || memchr(host, '?', n);
}

static void read_upstream(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	struct gate_config *config = ret;
	struct hx_error err;

	if (!reader_string(r, node, field->name))
		return;
	if (url_check(node->string, &err))
		reader_report(r, node->at.line, "value", "upstream: %s", err.detail);
	else if (has_path(node->string))
		policy_refuse(r, node, "upstream", "an address without a path, like \"http://127.0.0.1:3000\"");
	else
		config->upstream = reader_keep(r, node->string);
}

static void read_store(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	struct gate_config *config = ret;
	const char *url = NULL;
	struct redis_url parts;
	struct hx_error err;

	if (!reader_store(r, node, field->name, /* any= */ true, &url))
		return;
	if (redis_url_is(url) && redis_url_parse(url, &parts, &err))
		reader_report(r, node->at.line, "value", "store: %s", err.detail);
	else
		config->store = url;
}

bool gate_admin_key_is_good(struct slice key)
{
	for (size_t i = 0; i < key.n; i++)
		if (key.p[i] <= 0x20 || key.p[i] >= 0x7f)
			return false;
	return key.n >= GATE_ADMIN_KEY_MIN && key.n <= GATE_ADMIN_KEY_MAX;
}

/* Its text is in no finding. */
static void read_admin_key(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	struct gate_config *config = ret;
	if (!reader_string(r, node, field->name))
		return;
	if (gate_admin_key_is_good(node->string))
		config->admin_key = reader_keep(r, node->string);
	else
		reader_report(r, node->at.line, "value",
			      "admin_key must be %d to %d visible ASCII characters, no spaces", GATE_ADMIN_KEY_MIN,
			      GATE_ADMIN_KEY_MAX);
}

static const struct field sweep_fields[] = {{"every", FIELD_DURATION(struct gate_config, sweep_every_ms)}, {0}};

/* An object, or false. */
static void read_sweep(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	struct gate_config *config = ret;
	struct reader inner = *r;

	inner.where = field->name;
	if (slice_is(node->value.raw, "false"))
		config->sweep_every_ms = 0;
	else if (node->type != JSON_OBJECT)
		policy_refuse(r, node, field->name, "{\"every\": DURATION} or false");
	else
		fields_read(&inner, node, sweep_fields, config);
}

/* ---- all fields ---- */

/* What they are fields of: the whole gate, a route, or a policy, which the file has for itself and each route for its own. */
enum { OF_FILE = 1, OF_ROUTE = 2, OF_POLICY = 4 };

static const char *const lost_words[] = {"retry", "hold", NULL};

/* clang-format off */
static const struct field fields[] = {
	{"upstream",          .of = OF_FILE,   FIELD_OWN(read_upstream)},
	{"name",              .of = OF_FILE,   FIELD_NAME(struct gate_config, name)},
	{"store",             .of = OF_FILE,   FIELD_OWN(read_store)},
	{"store_timeout",     .of = OF_FILE,   FIELD_DURATION(struct gate_config, store_timeout_ms)},
	{"drain",             .of = OF_FILE,   FIELD_OBJECT(struct gate_config, drain_notice_ms, drain_fields)},
	{"listen",            .of = OF_FILE,   FIELD_ADDRESS(struct gate_config, listen)},
	{"admin",             .of = OF_FILE,   FIELD_ADDRESS(struct gate_config, admin)},
	{"admin_key",         .of = OF_FILE,   FIELD_OWN(read_admin_key)},
	{"max_tunnels",       .of = OF_FILE,   FIELD_INT(struct gate_config, max_tunnels, 0, GATE_TUNNELS_MAX)},
	{"tunnel_timeout",    .of = OF_FILE,   FIELD_DURATION(struct gate_config, tunnel_timeout_ms)},
	{"sweep",             .of = OF_FILE,   FIELD_OWN(read_sweep)},
	{"log",               .of = OF_FILE,   FIELD_OBJECT(struct gate_config, log_level, log_fields)},
	{"routes",            .of = OF_FILE,   FIELD_KNOWN}, /* over the policy of the file, and so after it */
	{"match",             .of = OF_ROUTE,  FIELD_OWN(read_match), .required = true},
	{"guard",             .of = OF_ROUTE,  FIELD_BOOL(struct gate_route, policy.guard)},
	{"header",            .of = OF_POLICY, FIELD_OWN(policy_read_header)},
	{"key",               .of = OF_POLICY, FIELD_OWN(policy_read_key)},
	{"max_key_length",    .of = OF_POLICY, FIELD_SIZE(struct gate_policy, max_key_length, 1, GATE_KEY_LENGTH_MAX)},
	{"required",          .of = OF_POLICY, FIELD_BOOL(struct gate_policy, required)},
	{"caller",            .of = OF_POLICY, FIELD_OWN(policy_read_caller)},
	{"tenant",            .of = OF_POLICY, FIELD_OWN(policy_read_tenant)},
	{"scope",             .of = OF_POLICY, FIELD_OWN(policy_read_scope)},
	{"fingerprint",       .of = OF_POLICY, FIELD_OWN(policy_read_fingerprint)},
	{"ttl",               .of = OF_POLICY, FIELD_DURATION(struct gate_policy, ttl_ms)},
	{"processing_ttl",    .of = OF_POLICY, FIELD_DURATION(struct gate_policy, processing_ttl_ms)},
	{"upstream_timeout",  .of = OF_POLICY, FIELD_DURATION(struct gate_policy, upstream_timeout_ms)},
	{"read_timeout",      .of = OF_POLICY, FIELD_DURATION(struct gate_policy, read_timeout_ms)},
	{"replay_headers",    .of = OF_POLICY, FIELD_OWN(read_replay_headers)},
	{"status_headers",    .of = OF_POLICY, FIELD_BOOL(struct gate_policy, status_headers)},
	{"cache_errors",      .of = OF_POLICY, FIELD_OWN(read_cache_errors)},
	{"on_lost",           .of = OF_POLICY, FIELD_CHOICE(struct gate_policy, hold, lost_words)},
	{"max_request_bytes", .of = OF_POLICY, FIELD_SIZE(struct gate_policy, max_request_bytes, 1, GATE_REQUEST_BYTES_MAX)},
	{"max_stored_bytes",  .of = OF_POLICY, FIELD_SIZE(struct gate_policy, max_stored_bytes, 1, GATE_STORED_BYTES_MAX)},
	{0}};
/* clang-format on */

/* What no field is called, whatever the place, and what is a field of another place. */
static void check_fields(const struct reader *r, const struct json_node *object, unsigned other, const char *where)
{
	fields_check(r, object, fields, FIELDS_ANYWHERE, field_refuse);
	for (const struct field *field = fields; field->name; field++) {
		const struct json_node *member = json_node_member(object, field->name);

		if (member && field->of == other)
			reader_report(r, member->name_at.line, "misplaced field", "\"%s\" can only be said %s",
				      field->name, where);
	}
}

static void read_policy(const struct reader *r, const struct json_node *object, struct gate_policy *p)
{
	policy_check_sources(r, object);
	fields_take(r, object, fields, OF_POLICY, p);
	check_lease(r, object, p);
}

static void read_route(const struct reader *outer, const struct json_node *node, struct gate_route *route)
{
	const struct json_node *match = json_node_member(node, "match");
	struct reader r = *outer;
	char where[WHERE_BYTES] = "a route";

	if (!reader_object(outer, node, "a route"))
		return;
	if (match && match->type == JSON_STRING)
		snprintf(where, sizeof where, "route %s", excerpt_of(match->string).text);
	r.where = where;
	check_fields(&r, node, OF_FILE, "of the whole gate, not of a route");
	fields_take(&r, node, fields, OF_ROUTE, route);
	route->line = node->at.line;
	read_policy(&r, node, &route->policy);
}

/* The first of these that match is taken, so a second one with the same match is dead. */
static void refuse_repeated(const struct reader *r, const struct gate_route routes[], size_t n)
{
	for (size_t i = 1; i < n; i++)
		for (size_t j = 0; j < i; j++)
			if (routes[i].method.n && slice_eq(routes[i].method, routes[j].method) &&
			    slice_eq(routes[i].pattern, routes[j].pattern)) {
				reader_report(r, routes[i].line, "repeated route",
					      "%.*s %s is matched by the route of line %zu already",
					      SLICE_ARGS(routes[i].method), excerpt_of(routes[i].pattern).text,
					      routes[j].line);
				break;
			}
}

static void read_routes(const struct reader *r, const struct json_node *node, struct gate_config *config)
{
	struct gate_route *routes = reader_list(r, node, "routes", 0, GATE_ROUTES_MAX, sizeof *routes);
	size_t n = 0;

	if (!routes)
		return;
	json_node_for_each(element, node)
	{
		routes[n].policy = config->policy;
		read_route(r, element, &routes[n++]);
	}
	refuse_repeated(r, routes, n);
	config->routes = routes;
	config->routes_n = n;
}

static void policy_read_config(const struct reader *r, const struct json_node *root, void *ret)
{
	struct gate_config *config = ret;

	if (!reader_object(r, root, "a configuration"))
		return;
	check_fields(r, root, OF_ROUTE, "of a route");
	fields_take(r, root, fields, OF_FILE, config);
	read_policy(r, root, &config->policy);
	set_pass(config);
	read_routes(r, json_node_member(root, "routes"), config);
}

void gate_config_parse(const char *file, struct slice text, struct arena *arena, struct findings *findings,
		       struct gate_config *ret_config)
{
	struct reader r = {.findings = findings, .arena = arena, .place.file = file};

	gate_config_init(ret_config);
	if (!reader_configuration(&r, text, policy_read_config, ret_config, &ret_config->file))
		gate_config_init(ret_config);
}

void gate_config_load(const char *path, struct arena *arena, struct findings *findings, struct gate_config *ret_config)
{
	gate_config_init(ret_config);
	LOCAL_STRBUF(text, CONFIG_BYTES_MAX + 1);
	if (file_load(path, &text, findings))
		gate_config_parse(path, strbuf_slice(&text), arena, findings, ret_config);
}

/* ---- asking ---- */

/*
 * What stands between two stars is looked for from the left, and found at its first place: if there is a way to match,
 * this is one. Every byte of the path is passed once, so a request takes a time that is linear in its path.
 */
static bool pattern_matches(struct slice pattern, struct slice path)
{
	const char *star = memchr(pattern.p, '*', pattern.n);
	size_t n = star ? (size_t)(star - pattern.p) : pattern.n;

	if (path.n < n || memcmp(path.p, pattern.p, n) != 0)
		return false;
	if (!star)
		return path.n == n;
	path = slice_of(path.p + n, path.n - n);
	for (;;) {
		const char *found;

		pattern = slice_of(star + 1, pattern.n - (size_t)(star + 1 - pattern.p));
		star = memchr(pattern.p, '*', pattern.n);
		if (!star)
			break;
		n = (size_t)(star - pattern.p);
		found = memmem(path.p, path.n, pattern.p, n);
		if (!found)
			return false;
		path = slice_of(found + n, path.n - (size_t)(found + n - path.p));
	}
	return path.n >= pattern.n && memcmp(path.p + path.n - pattern.n, pattern.p, pattern.n) == 0;
}

const struct gate_policy *gate_config_match(const struct gate_config *config, struct slice method, struct slice path)
{
	if (!slice_in(method, methods))
		return NULL;
	for (size_t i = 0; i < config->routes_n; i++)
		if (slice_eq(config->routes[i].method, method) && pattern_matches(config->routes[i].pattern, path))
			return &config->routes[i].policy;
	return slice_is(method, "POST") || slice_is(method, "PATCH") ? &config->policy : &config->pass;
}

bool gate_policy_stores(const struct gate_policy *policy, int status)
{
	if (status < 400)
		return status >= 200;
	if (is_never_stored(status))
		return false;
	for (size_t i = 0; i < policy->cache_list_n; i++) /* of GATE_CACHE_LIST */
		if (policy->cache_list[i] == status)
			return true;
	return policy->cache_errors == GATE_CACHE_ALL || (policy->cache_errors == GATE_CACHE_4XX && status < 500);
}
