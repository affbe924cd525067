/*
 * Who may do what, against real servers on both stores: every route of the table, asked with every kind of key about things of
 * one's own workspace and of another's.
 *
 *   the walk     routes × (none, forged, revoked, expired, and each scope of each workspace). What is to be answered follows from
 *                the table of routes alone: its scope, and whether its path names a thing of a workspace ({id}, {subject})
 *   afterwards   nothing of the other workspace has moved, and none of it was shown; and no key turns up anywhere
 */
#include "http/keyed_world.h"

/* ---- the walk ---- */

/* What a route needs to get as far as looking for the thing it is about; all others are sent {}. */
static const struct {
	const char *route, *body;
} bodies[] = {
	{"POST /api/v1/entities/{workflow}/{id}/steps/{step}/resolve", "{'outcome':'not_done'}"},
	{"POST /api/v1/entities/{workflow}/{id}/data", "{'data':{'x':1},'version':1}"},
	{"PUT /api/v1/definitions/{name}", doc},
	{"POST /api/v1/workflow-runs", "{'definitionId':'flow','idempotencyKey':'same'}"},
	{"POST /api/v1/workflow-runs/{id}/approvals/{step}", "{'decision':'approve'}"},
	{"POST /api/v1/workflow-runs/{id}/steps/{step}/resolve", "{'outcome':'done'}"},
	{"POST /api/v1/workflow-runs/{id}/restart", "{'from':'a'}"},
	{"POST /api/v1/workflow-runs/{id}/migrate", "{'definitionVersion':1}"},
	{"POST /api/v1/workflow-runs/by-key/{workflow}/{key}/migrate", "{'definitionVersion':1}"},
	{"POST /api/v1/workflow-runs/by-key/{workflow}/{key}/restart", "{'from':'a'}"},
	{"POST /api/v1/workflow-runs/by-key/{workflow}/{key}/approvals/{step}", "{'decision':'approve'}"},
	{"POST /api/v1/workflow-runs/by-key/{workflow}/{key}/steps/{step}/resolve", "{'outcome':'done'}"},
	{"POST /api/v1/jobs", "{'queue':'q','key':'same'}"},
	{"POST /api/v1/jobs/claim", "{'queues':['q'],'owner':'w','max':10,'leaseMs':60000,'waitMs':0}"},
	{"POST /api/v1/functions/claim", "{'worker':'w','functions':[{'name':'fn','version':'1'}]}"},
	{"POST /api/v1/functions/runs/{id}/journal", "{'worker':'w','fence':1,'seq':0}"},
	{"POST /api/v1/functions/journal", "{'calls':[{'run':'run_1','call':{'worker':'w','fence':1,'seq':0}}]}"},
	{"POST /api/v1/jobs/{id}/heartbeat", "{'owner':'w','fence':1,'leaseMs':60000}"},
	{"POST /api/v1/jobs/{id}/complete", "{'owner':'w','fence':1}"},
	{"POST /api/v1/jobs/{id}/fail", "{'owner':'w','fence':1,'error':'no'}"},
	{"POST /api/v1/batches",
	 "{'workflow':'pack','account':'same','items':[{'input':1,'cost':1}],'idempotencyKey':'same'}"},
	{"POST /api/v1/batches/{id}/items", "{'items':[{'input':2,'cost':1}]}"},
	{"POST /api/v1/batches/{id}/items/{n}/resolve", "{'outcome':'done'}"},
	{"POST /api/v1/accounts", "{'id':'one','balance':1}"},
	{"POST /api/v1/accounts/{id}/credit", "{'amount':1,'key':'k'}"},
	{"POST /api/v1/bulk", "{'verb':'cancel','kind':'run','where':'key == null and key != null'}"},
	{"PUT /api/v1/schedules/{name}", "{'workflow':'flow','cron':'0 0 1 1 *'}"},
	{"POST /api/v1/schedules/{name}/backfill", "{'from':'2026-01-01T00:00:00Z','to':'2026-01-02T00:00:00Z'}"},
};

static const char *body_of(const struct route *route)
{
	char name[200];

	snprintf(name, sizeof name, "%s %s", route->method, route->pattern);
	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
		if (strcmp(bodies[i].route, name) == 0)
			return bodies[i].body;
	return strcmp(route->method, "GET") == 0 ? NULL : "{}";
}

/* The things that a subject can be: history, evidence and why are walked with each. */
enum { SUBJECTS = 4 };

static bool names_a_subject(const char *pattern)
{
	return strstr(pattern, "/history/") || strstr(pattern, "/evidence/") || strstr(pattern, "/why/");
}

/* What stands for a parameter, of alpha; fails the test for one that it does not know. */
static const char *value_of(const char *pattern, const char *param, int subject)
{
	const char *subjects[SUBJECTS] = {"entity:doc:alpha-doc", world.run, world.job, world.batch};

	if (names_a_subject(pattern))
		return subjects[subject];
	if (strcmp(param, "id") == 0)
		return strstr(pattern, "/entities/")        ? "alpha-doc"
		       : strstr(pattern, "/workflow-runs/") ? world.run
		       : strstr(pattern, "/functions/")     ? world.function
		       : strstr(pattern, "/jobs/")          ? world.job
		       : strstr(pattern, "/batches/")       ? world.batch
		       : strstr(pattern, "/bulk/")          ? world.bulk
							    : "canary-alpha";
	if (strcmp(param, "key") == 0)
		return "same"; /* both have a run of this key: whose it is, is asked for below */
	if (strcmp(param, "workflow") == 0 || strcmp(param, "name") == 0)
		return strstr(pattern, "/by-key/") ? "flow" : "doc";
	if (strcmp(param, "step") == 0)
		return strstr(pattern, "/entities/") ? "close" : "say";
	if (strcmp(param, "event") == 0 || strcmp(param, "module") == 0)
		return "papers";
	if (strcmp(param, "n") == 0)
		return "0";
	fail_msg("%s: the walk does not know what {%s} is", pattern, param);
	return NULL;
}

static void path_of(const struct route *route, int subject, char ret_path[600])
{
	const char *at = route->pattern;
	size_t n = 0;

	while (*at) {
		char param[40];

		assert_true(n < 500);
		if (sscanf(at, "{%39[a-z]}", param) == 1) {
			n += (size_t)snprintf(ret_path + n, 600 - n, "%s", value_of(route->pattern, param, subject));
			at = strchr(at, '}') + 1;
		} else {
			ret_path[n++] = *at++;
		}
	}
	ret_path[n] = '\0';
}

/* Does the path name a thing of a workspace? By the table's own words. */
static bool is_of_workspace(const struct route *route)
{
	return strstr(route->pattern, "{id}") || strstr(route->pattern, "{subject}");
}

/* Anything that says: you may, and this is what became of it. */
static bool is_served(int status)
{
	return status >= 200 && status < 500 && status != 400 && status != 401 && status != 403 && status != 404;
}

static size_t asked_n;

/* What beta is told, other than that it is not there. */
static void assert_nothing_of_alpha(const struct reply *reply, const char *path)
{
	const char *const its[] = {"canary-alpha", world.run, world.function, world.job, world.batch, world.bulk};

	for (size_t i = 0; i < sizeof its / sizeof *its; i++)
		if (strstr(reply->body, its[i]))
			fail_msg("%s: beta is shown what is alpha's: %.400s", path, reply->body);
}

static void walk_what_both_have(struct scene *scene)
{
	static const char *const paths[] = {"/api/v1/entities/doc/same",    "/api/v1/accounts/same",
					    "/api/v1/accounts/same/ledger", "/api/v1/history/entity:doc:same",
					    "/api/v1/why/entity:doc:same",  "/api/v1/evidence/entity:doc:same",
					    "/api/v1/evidence/account:same"};

	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
		assert_nothing_of_alpha(must(scene, "GET", paths[i], key_of(BETA, API_KEY_READ), NULL, 200), paths[i]);
}

/* A call among many names its run in the body. */
static void walk_calls_among_many(struct scene *scene)
{
	static const char path[] = "/api/v1/functions/journal";
	struct reply *reply;
	char body[300];

	snprintf(body, sizeof body, "{'calls':[{'run':'%s','call':{'worker':'w','fence':1,'seq':0}}]}", world.function);
	reply = must(scene, "POST", path, key_of(BETA, API_KEY_WORKER), body, 200);
	assert_non_null(strstr(reply->body, "\"status\":404,"));
	assert_nothing_of_alpha(reply, path);
}

static void walk_route(struct scene *scene, const struct route *route, const char *key, const char *who, int wanted)
{
	int subjects_n = names_a_subject(route->pattern) ? SUBJECTS : 1;

	for (int i = 0; i < subjects_n; i++) {
		char path[600];
		struct reply *reply;

		path_of(route, i, path);
		reply = ask(scene, 0, route->method, path, key, body_of(route));
		asked_n++;
		if (wanted ? reply->status != wanted : !is_served(reply->status))
			fail_msg("%s %s with %s: %d was to be answered, and is %d: %.400s", route->method, path, who,
				 wanted, reply->status, reply->body);
		if (wanted == 401 && !strstr(reply->head, "WWW-Authenticate: Bearer"))
			fail_msg("%s %s with %s: 401 without a challenge", route->method, path, who);
		if (strstr(who, "beta") && wanted != 404)
			assert_nothing_of_alpha(reply, path);
	}
}

static void walk_all(struct scene *scene, const char *key, const char *who,
		     int (*wanted)(const struct route *, int, int), int workspace, int scope)
{
	size_t n;
	const struct route *routes = api_routes(&n);

	for (size_t i = 0; i < n; i++)
		walk_route(scene, &routes[i], key, who, wanted(&routes[i], workspace, scope));
}

static int nobody_may(const struct route *route, int workspace, int scope)
{
	(void)workspace, (void)scope;
	return route->admit ? 404 : route->scope == ROUTE_PUBLIC ? 200 : 401; /* there is no hook, whoever asks */
}

/* 0: it is served. */
static int a_key_may(const struct route *route, int workspace, int scope)
{
	if (route->scope == ROUTE_PUBLIC)
		return route->admit ? 404 : 200;
	if (scope == API_KEY_WORKER        ? route->scope != ROUTE_WORKER
	    : route->scope == ROUTE_WORKER ? scope < API_KEY_EXECUTE
					   : scope < (int)route->scope)
		return 403;
	return workspace != ALPHA && is_of_workspace(route) ? 404 : 0;
}

/* How often something of alpha's has changed. */
static void read_alpha(struct scene *scene, char ret_state[64])
{
	scene_sql(
		scene,
		"SELECT (SELECT count(*) FROM hx_history h WHERE h.subject IN (SELECT subject FROM hx_entity WHERE workspace = 'alpha'"
		" UNION ALL SELECT subject FROM hx_run WHERE workspace = 'alpha'"
		" UNION ALL SELECT subject FROM hx_job WHERE workspace = 'alpha'"
		" UNION ALL SELECT subject FROM hx_schedule WHERE workspace = 'alpha'"
		" UNION ALL SELECT subject FROM hx_batch WHERE workspace = 'alpha')) * 1000000"
		" + (SELECT count(*) FROM hx_ledger l JOIN hx_account a ON a.subject = l.account WHERE a.workspace = 'alpha') * 1000"
		" + (SELECT count(*) FROM hx_batch_item i JOIN hx_batch b ON b.subject = i.batch WHERE b.workspace = 'alpha') * 100"
		" + (SELECT count(*) FROM hx_job j WHERE j.workspace = 'alpha') * 10"
		" + (SELECT count(*) FROM hx_run r WHERE r.workspace = 'alpha')",
		ret_state, 64);
}

static void test_every_route_with_every_key(void **state)
{
	struct scene *scene = *state;
	char before[64], after[64], who[40];

	begin(scene);
	asked_n = 0;
	for (int workspace = ALPHA; workspace <= BETA; workspace++)
		must(scene, "PUT", "/api/v1/schedules/doc", key_of(workspace, API_KEY_ADMIN),
		     "{'workflow':'flow','cron':'0 0 1 1 *'}", 201);
	read_alpha(scene, before);
	walk_all(scene, NULL, "no key", nobody_may, 0, 0);
	walk_all(scene, world.revoked.text, "a revoked key", nobody_may, 0, 0);
	walk_all(scene, world.expired.text, "an expired key", nobody_may, 0, 0);
	walk_all(scene, world.forged.text, "a forged key", nobody_may, 0, 0);
	for (int scope = API_KEY_READ; scope <= API_KEY_WORKER; scope++) {
		snprintf(who, sizeof who, "beta's key, %s", scope_options[scope]);
		walk_all(scene, key_of(BETA, scope), who, a_key_may, BETA, scope);
	}
	walk_calls_among_many(scene);
	walk_what_both_have(scene);
	must(scene, "POST", "/api/v1/batches", key_of(BETA, API_KEY_ADMIN),
	     "{'workflow':'pack','account':'canary-alpha','items':[{'input':1,'cost':1}]}", 404);
	/* Nobody was anybody, or of alpha: so nothing of alpha's has moved. */
	read_alpha(scene, after);
	assert_string_equal(before, after);
	for (int scope = API_KEY_READ; scope <= API_KEY_WORKER; scope++) {
		snprintf(who, sizeof who, "alpha's key, %s", scope_options[scope]);
		walk_all(scene, key_of(ALPHA, scope), who, a_key_may, ALPHA, scope);
	}
	/* And this walk does move things: the one above could have failed. */
	read_alpha(scene, after);
	assert_string_not_equal(before, after);
	print_message("# %zu requests\n", asked_n);
	scene_stop(scene, 0);
}

/* A text may have keys of services in it, and is common to all workspaces: names, kinds and versions are for all. */
static void test_texts_are_for_admins(void **state)
{
	static const char *const members[] = {"definition", "steps", "module"};
	struct scene *scene = *state;

	begin(scene);
	for (int scope = API_KEY_READ; scope <= API_KEY_ADMIN; scope++) {
		const struct reply *reply = must(scene, "GET", "/api/v1/definitions", key_of(BETA, scope), NULL, 200);

		assert_non_null(strstr(reply->body, "\"name\":\"doc\",\"kind\":\"entity\",\"version\":"));
		for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
			char quoted[32];

			snprintf(quoted, sizeof quoted, "\"%s\":", members[i]);
			assert_int_equal(strstr(reply->body, quoted) != NULL, scope == API_KEY_ADMIN);
		}
	}
	scene_stop(scene, 0);
}

/* What programs call that do the work of others, and no more than that. */
static bool is_for_workers(const struct route *route)
{
	static const char *const calls[] = {
		"POST /api/v1/jobs/claim",
		"POST /api/v1/jobs/{id}/heartbeat",
		"POST /api/v1/jobs/{id}/complete",
		"POST /api/v1/jobs/{id}/fail",
		"POST /api/v1/functions/claim",
		"GET /api/v1/functions/runs/{id}/journal",
		"POST /api/v1/functions/runs/{id}/journal",
		"POST /api/v1/functions/journal",
	};
	char call[200];

	snprintf(call, sizeof call, "%s %s", route->method, route->pattern);
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		if (strcmp(call, calls[i]) == 0)
			return true;
	return false;
}

/* What the walk takes for given: who may only read changes nothing, and who may not read is told nothing. */
/* Whoever may read, reads all of a workspace; the texts of definitions are of none, and name services and programs. */
static void test_the_table_itself(void **state)
{
	static const char for_admins[] = "/api/v1/definitions/{name}";
	size_t n;
	const struct route *routes = api_routes(&n);

	(void)state;
	for (size_t i = 0; i < n; i++) {
		bool reads = strcmp(routes[i].method, "GET") == 0;
		bool in_api = strncmp(routes[i].pattern, "/api/", 5) == 0;

		assert_int_equal(routes[i].scope == ROUTE_WORKER, is_for_workers(&routes[i]));
		if (routes[i].scope == ROUTE_WORKER)
			continue;
		if (reads && strncmp(routes[i].pattern, for_admins, sizeof for_admins - 1) == 0) /* and its picture */
			assert_int_equal(routes[i].scope, ROUTE_ADMIN);
		else if (!routes[i].admit && (reads ? routes[i].scope > ROUTE_READ : routes[i].scope < ROUTE_EXECUTE))
			fail_msg("%s %s has a scope that does not fit it", routes[i].method, routes[i].pattern);
		if (routes[i].scope == ROUTE_PUBLIC && in_api && is_of_workspace(&routes[i]))
			fail_msg("%s %s is open to anybody", routes[i].method, routes[i].pattern);
	}
}

/* ---- where a key must not turn up ---- */

/* Is this text among the bytes of a file? One that is not there has none. */
static bool file_has(const char *path, const char *text)
{
	FILE *file = fopen(path, "r");
	struct strbuf bytes;
	char piece[4096];
	size_t n;
	bool found;

	strbuf_init(&bytes, 256u << 20);
	while (file && (n = fread(piece, 1, sizeof piece, file)) > 0)
		strbuf_add(&bytes, piece, n);
	if (file)
		fclose(file);
	assert_false(bytes.failed);
	found = bytes.n && memmem(bytes.p, bytes.n, text, strlen(text));
	strbuf_release(&bytes);
	return found;
}

static void assert_not_in_store(struct scene *scene, const char *secret)
{
	char path[600], sql[600], n[32];

	if (scene->store->kind == STORE_POSTGRES) {
		snprintf(sql, sizeof sql,
			 "SELECT (SELECT count(*) FROM hx_key k WHERE k::text LIKE '%%%.52s%%') + (SELECT count(*) FROM"
			 " hx_gate_record g WHERE encode(g.response, 'escape') LIKE '%%%.52s%%')",
			 secret, secret);
		scene_sql(scene, sql, n, sizeof n);
		assert_string_equal(n, "0");
		return;
	}
	snprintf(path, sizeof path, "%s", scene->store->url + strlen("sqlite:"));
	assert_true(file_has(path, "canary-alpha")); /* it can be found where it is */
	assert_false(file_has(path, secret));
	assert_false(file_has(path, "hx_0"));
	snprintf(path, sizeof path, "%s-wal", scene->store->url + strlen("sqlite:"));
	assert_false(file_has(path, secret));
}

/* The secret of a key that was used for everything, in whatever can be read of the store and of the server. */
static void test_keys_turn_up_nowhere(void **state)
{
	struct scene *scene = *state;
	char log[600];
	const char *secret;

	begin(scene);
	secret = key_of(ALPHA, API_KEY_ADMIN) + 17;
	/* All that answers, is wrong, is kept under a key, acts, and is told about afterwards. */
	walk_all(scene, key_of(ALPHA, API_KEY_ADMIN), "alpha's key, admin", a_key_may, ALPHA, API_KEY_ADMIN);
	must(scene, "GET", "/api/v1/jobs", world.forged.text, NULL, 401);
	must(scene, "GET", "/metrics", key_of(ALPHA, API_KEY_READ), NULL, 200);
	assert_null(strstr(scene->last.body, secret));
	assert_null(strstr(scene->last.body, "hx_"));
	must(scene, "GET", "/api/v1/history/entity:doc:alpha-doc", key_of(ALPHA, API_KEY_READ), NULL, 200);
	assert_null(strstr(scene->last.body, "hx_"));
	scene_stop(scene, 0);
	snprintf(log, sizeof log, "%s/node-0.log", scene->dir);
	assert_true(file_has(log, "stopping"));
	assert_false(file_has(log, secret));
	assert_false(file_has(log, "hx_0"));
	assert_not_in_store(scene, secret);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_table_itself), ON_SQLITE(test_every_route_with_every_key),
		ON_SQLITE(test_texts_are_for_admins),    ON_POSTGRES(test_every_route_with_every_key),
		ON_SQLITE(test_keys_turn_up_nowhere),    ON_POSTGRES(test_keys_turn_up_nowhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
