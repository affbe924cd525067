/*
 * API keys against real servers on both stores: every route of the table, asked with every kind of key about things of
 * one's own workspace and of another's.
 *
 *   the walk     routes × (none, forged, revoked, expired, and each scope of each workspace). What is to be answered follows from
 *                the table of routes alone: its scope, and whether its path names a thing of a workspace ({id}, {subject})
 *   afterwards   nothing of the other workspace has moved, and none of it was shown
 *   the rest     what is claimed by headers, how soon a revoked key is refused, where a key must not turn up
 *
 * Keys are made by `hapax key`, beside the running server.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/strbuf.h"
#include "engine/keyring.h"
#include "http/api.h"

#include "support/await.h"
#include "support/scene.h"

#define DEADLINE_MS 20000
#define SLACK_MS 15000 /* of a machine that has other things to do */

/* ---- hapax key ---- */

/* Runs it, and returns its exit code; the first line that it prints goes to ret_line. */
static int hapax(const char *arguments, char *ret_line, size_t bytes)
{
	const char *build = getenv("HAPAX_BUILD");
	char command[2000];
	FILE *out;
	int status;

	snprintf(command, sizeof command, "%s/hapax %s 2>/dev/null", build && *build ? build : "build", arguments);
	out = popen(command, "r");
	assert_non_null(out);
	if (!fgets(ret_line, (int)bytes, out))
		ret_line[0] = '\0';
	ret_line[strcspn(ret_line, "\n")] = '\0';
	while (fgetc(out) != EOF)
		;
	status = pclose(out);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

struct key {
	char text[100];
	char id[40];
};

static void make_key(struct scene *scene, const char *options, struct key *ret_key)
{
	char arguments[1500];

	snprintf(arguments, sizeof arguments, "key create --db '%s' %s", scene->store->url, options);
	assert_int_equal(hapax(arguments, ret_key->text, sizeof ret_key->text), 0);
	assert_int_equal(strlen(ret_key->text), API_KEY_TEXT_CHARS);
	snprintf(ret_key->id, sizeof ret_key->id, "key_%.13s", ret_key->text + 3);
}

static void revoke_key(struct scene *scene, const struct key *key)
{
	char arguments[1500], line[200];

	snprintf(arguments, sizeof arguments, "key revoke --db '%s' %s", scene->store->url, key->id);
	assert_int_equal(hapax(arguments, line, sizeof line), 0);
}

/* ---- asking ---- */

/* key NULL: none. The reply is valid until the next one. */
static struct reply *ask(struct scene *scene, int node, const char *method, const char *path, const char *key,
			 const char *body)
{
	char fields[200] = "";
	static struct client *clients[SCENE_NODES_MAX];
	static int ports[SCENE_NODES_MAX];
	char *text = scene_text(scene, body ? body : "");
	bool answered;

	if (!clients[node] || ports[node] != scene->nodes[node]->port) {
		client_free(clients[node]);
		ports[node] = scene->nodes[node]->port;
		clients[node] = client_new(ports[node], /* requester= */ NULL);
	}
	if (key)
		snprintf(fields, sizeof fields, "Authorization: Bearer %s\r\n", key);
	reply_release(&scene->last);
	answered = client_call_with(clients[node], method, path, fields, text, strlen(text), &scene->last);
	free(text);
	if (!answered)
		fail_msg("%s %s: no answer", method, path);
	return &scene->last;
}

static struct reply *must(struct scene *scene, const char *method, const char *path, const char *key, const char *body,
			  int status)
{
	struct reply *reply = ask(scene, 0, method, path, key, body);

	if (reply->status != status)
		fail_msg("%s %s: %d, not %d: %.400s", method, path, reply->status, status, reply->body);
	return reply;
}

/* ---- two workspaces with one thing of each kind ---- */

static const char doc[] = "{'workflow':'doc','kind':'entity','meta':{'module':'papers'},"
			  "'status_types':['draft','closing','closed'],'initial_status':'draft',"
			  "'actions':{'Close':{'kind':'noop','effect':'claimed'}},"
			  "'steps':[{'step_id':1,'step_key':'close','status':'draft','claim_state':['closing','draft'],"
			  "'successful_state':'closed','action':'Close'}]}";
/* It waits for a person, so that nothing moves unless somebody moves it. */
static const char flow[] = "{'workflow':'flow','kind':'run','steps':["
			   "{'name':'say','type':'approval','timeout':'24h','on_timeout':'fail'},"
			   "{'name':'hear','type':'external_event','event':'papers','timeout':'24h'}]}";
static const char pack[] =
	"{'workflow':'pack','kind':'batch','actions':{'make':{'kind':'noop'},'drop':{'kind':'noop'}},"
	"'item_action':'make','cleanup_action':'drop'}";

enum { ALPHA, BETA, WORKSPACES };
static const char *const workspace_names[WORKSPACES] = {"alpha", "beta"};
static const char *const scope_options[] = {
	[API_KEY_READ] = "read", [API_KEY_EXECUTE] = "execute", [API_KEY_ADMIN] = "admin"};

static struct {
	struct key keys[WORKSPACES][API_KEY_ADMIN + 1]; /* by scope */
	struct key revoked, expired, forged;            /* of alpha, with the scope admin */
	/* alpha's things; each has the word canary-alpha in it somewhere */
	char run[64], job[64], batch[64];
} world;

static const char *key_of(int workspace, enum api_key_scope scope)
{
	return world.keys[workspace][scope].text;
}

/* The secret of one key behind the id of another. */
static void forge(const struct key *of, const struct key *with, struct key *ret_key)
{
	*ret_key = *of;
	memcpy(ret_key->text + 17, with->text + 17, API_KEY_TEXT_CHARS - 17);
}

static void make_keys(struct scene *scene)
{
	char options[200];

	for (int w = 0; w < WORKSPACES; w++)
		for (int s = API_KEY_READ; s <= API_KEY_ADMIN; s++) {
			snprintf(options, sizeof options, "--workspace %s --requester r --scope %s", workspace_names[w],
				 scope_options[s]);
			make_key(scene, options, &world.keys[w][s]);
		}
	make_key(scene, "--workspace alpha --requester r --scope admin", &world.revoked);
	make_key(scene, "--workspace alpha --requester r --scope admin --expires 1ms", &world.expired);
	must(scene, "GET", "/api/v1/jobs", world.revoked.text, NULL, 200);
	revoke_key(scene, &world.revoked);
	AWAIT(DEADLINE_MS, ask(scene, 0, "GET", "/api/v1/jobs", world.revoked.text, NULL)->status == 401);
	forge(&world.keys[ALPHA][API_KEY_ADMIN], &world.keys[BETA][API_KEY_ADMIN], &world.forged);
}

static void keep_id(struct scene *scene, const char *path, char ret_id[64])
{
	snprintf(ret_id, 64, "%s", reply_text(&scene->last, path));
}

static void make(struct scene *scene, int workspace, const char *path, const char *format)
{
	const char *name = workspace_names[workspace];
	char body[400];

	snprintf(body, sizeof body, format, name, name);
	must(scene, "POST", path, key_of(workspace, API_KEY_ADMIN), body, 201);
}

/* The run has come to a step where it waits. */
static bool run_waits(struct scene *scene, int workspace, const char *step)
{
	char path[200];

	snprintf(path, sizeof path, "/api/v1/workflow-runs/%s", world.run);
	must(scene, "GET", path, key_of(workspace, API_KEY_READ), NULL, 200);
	return strcmp(reply_text(&scene->last, "status"), "WAITING") == 0 &&
	       strcmp(reply_text(&scene->last, "currentStep"), step) == 0;
}

/* Past its first step, whose output tells whose it is, to where nothing moves by itself. */
static void move_run(struct scene *scene, int workspace)
{
	char path[200], body[200];

	AWAIT(DEADLINE_MS, run_waits(scene, workspace, "say"));
	snprintf(path, sizeof path, "/api/v1/workflow-runs/%s/approvals/say", world.run);
	snprintf(body, sizeof body, "{'decision':'approve','comment':'canary-%s'}", workspace_names[workspace]);
	must(scene, "POST", path, key_of(workspace, API_KEY_ADMIN), body, 200);
	AWAIT(DEADLINE_MS, run_waits(scene, workspace, "hear"));
	assert_non_null(strstr(scene->last.body,
			       workspace == ALPHA ? "\"comment\":\"canary-alpha\"" : "\"comment\":\"canary-beta\""));
}

/* What is called `same` is there in both, and must not be taken for the other. */
static void make_things(struct scene *scene, int workspace)
{
	make(scene, workspace, "/api/v1/entities/doc", "{'id':'%s-doc','data':'canary-%s'}");
	make(scene, workspace, "/api/v1/entities/doc", "{'id':'same','data':'canary-%s'}");
	make(scene, workspace, "/api/v1/workflow-runs",
	     "{'definitionId':'flow','idempotencyKey':'same','input':{'x':'canary-%s'}}");
	keep_id(scene, "run.id", world.run);
	move_run(scene, workspace);
	make(scene, workspace, "/api/v1/jobs", "{'queue':'q','key':'same','payload':'canary-%s'}");
	keep_id(scene, "jobs.0.id", world.job);
	make(scene, workspace, "/api/v1/accounts", "{'id':'canary-%s','balance':100}");
	make(scene, workspace, "/api/v1/accounts", "{'id':'same','balance':100}");
	make(scene, workspace, "/api/v1/batches",
	     "{'workflow':'pack','account':'canary-%s','hold':true,'items':[{'input':1,'cost':1}],'idempotencyKey':'same'}");
	keep_id(scene, "id", world.batch);
	must(scene, "POST", "/api/v1/accounts/same/credit", key_of(workspace, API_KEY_ADMIN),
	     workspace == ALPHA ? "{'amount':1,'key':'canary-alpha'}" : "{'amount':1,'key':'canary-beta'}", 200);
}

static void begin(struct scene *scene)
{
	memset(&world, 0, sizeof world);
	scene_define(scene, "doc", doc);
	scene_define(scene, "flow", flow);
	scene_define(scene, "pack", pack);
	scene_configure(scene, "{'modules':{'papers':{'janitor':{'every':'1h','stuck_after':'1h'}}}}");
	scene_start(scene, 0);
	make_keys(scene);
	make_things(scene, BETA); /* alpha's ids are those that stay in `world` */
	make_things(scene, ALPHA);
}

/* ---- the walk ---- */

/* What a route needs to get as far as looking for the thing it is about; all others are sent {}. */
static const struct {
	const char *route, *body;
} bodies[] = {
	{"POST /api/v1/entities/{workflow}/{id}/steps/{step}/resolve", "{'outcome':'not_done'}"},
	{"PUT /api/v1/definitions/{name}", doc},
	{"POST /api/v1/workflow-runs", "{'definitionId':'flow','idempotencyKey':'same'}"},
	{"POST /api/v1/workflow-runs/{id}/approvals/{step}", "{'decision':'approve'}"},
	{"POST /api/v1/workflow-runs/{id}/steps/{step}/resolve", "{'outcome':'done'}"},
	{"POST /api/v1/jobs", "{'queue':'q','key':'same'}"},
	{"POST /api/v1/jobs/claim", "{'queues':['q'],'owner':'w','max':10,'leaseMs':60000,'waitMs':0}"},
	{"POST /api/v1/jobs/{id}/heartbeat", "{'owner':'w','fence':1,'leaseMs':60000}"},
	{"POST /api/v1/jobs/{id}/complete", "{'owner':'w','fence':1}"},
	{"POST /api/v1/jobs/{id}/fail", "{'owner':'w','fence':1,'error':'no'}"},
	{"POST /api/v1/batches",
	 "{'workflow':'pack','account':'same','items':[{'input':1,'cost':1}],'idempotencyKey':'same'}"},
	{"POST /api/v1/batches/{id}/items", "{'items':[{'input':2,'cost':1}]}"},
	{"POST /api/v1/batches/{id}/items/{n}/resolve", "{'outcome':'done'}"},
	{"POST /api/v1/accounts", "{'id':'one','balance':1}"},
	{"POST /api/v1/accounts/{id}/credit", "{'amount':1,'key':'k'}"},
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

/* The things that a subject can be: history and why are walked with each. */
enum { SUBJECTS = 4 };

static bool names_a_subject(const char *pattern)
{
	return strstr(pattern, "/history/") || strstr(pattern, "/why/");
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
		       : strstr(pattern, "/jobs/")          ? world.job
		       : strstr(pattern, "/batches/")       ? world.batch
							    : "canary-alpha";
	if (strcmp(param, "workflow") == 0 || strcmp(param, "name") == 0)
		return "doc";
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
	const char *const its[] = {"canary-alpha", world.run, world.job, world.batch};

	for (size_t i = 0; i < sizeof its / sizeof *its; i++)
		if (strstr(reply->body, its[i]))
			fail_msg("%s: beta is shown what is alpha's: %.400s", path, reply->body);
}

static void walk_what_both_have(struct scene *scene)
{
	static const char *const paths[] = {"/api/v1/entities/doc/same", "/api/v1/accounts/same",
					    "/api/v1/accounts/same/ledger", "/api/v1/history/entity:doc:same",
					    "/api/v1/why/entity:doc:same"};

	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
		assert_nothing_of_alpha(must(scene, "GET", paths[i], key_of(BETA, API_KEY_READ), NULL, 200), paths[i]);
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
	return route->scope == ROUTE_PUBLIC ? 200 : 401;
}

/* 0: it is served. */
static int a_key_may(const struct route *route, int workspace, int scope)
{
	if (route->scope == ROUTE_PUBLIC)
		return 200;
	if (scope < (int)route->scope)
		return 403;
	return workspace != ALPHA && is_of_workspace(route) ? 404 : 0;
}

/* How often something of alpha's has changed. */
static void read_alpha(struct scene *scene, char ret_state[64])
{
	scene_sql(
		scene,
		"SELECT (SELECT count(*) FROM history h WHERE h.subject IN (SELECT subject FROM entity WHERE workspace = 'alpha'"
		" UNION ALL SELECT subject FROM run WHERE workspace = 'alpha'"
		" UNION ALL SELECT subject FROM job WHERE workspace = 'alpha'"
		" UNION ALL SELECT subject FROM hx_batch WHERE workspace = 'alpha')) * 1000000"
		" + (SELECT count(*) FROM hx_ledger l JOIN hx_account a ON a.subject = l.account WHERE a.workspace = 'alpha') * 1000"
		" + (SELECT count(*) FROM hx_batch_item i JOIN hx_batch b ON b.subject = i.batch WHERE b.workspace = 'alpha') * 100"
		" + (SELECT count(*) FROM job j WHERE j.workspace = 'alpha') * 10"
		" + (SELECT count(*) FROM run r WHERE r.workspace = 'alpha')",
		ret_state, 64);
}

static void test_every_route_with_every_key(void **state)
{
	struct scene *scene = *state;
	char before[64], after[64], who[40];

	begin(scene);
	asked_n = 0;
	read_alpha(scene, before);
	walk_all(scene, NULL, "no key", nobody_may, 0, 0);
	walk_all(scene, world.revoked.text, "a revoked key", nobody_may, 0, 0);
	walk_all(scene, world.expired.text, "an expired key", nobody_may, 0, 0);
	walk_all(scene, world.forged.text, "a forged key", nobody_may, 0, 0);
	for (int scope = API_KEY_READ; scope <= API_KEY_ADMIN; scope++) {
		snprintf(who, sizeof who, "beta's key, %s", scope_options[scope]);
		walk_all(scene, key_of(BETA, scope), who, a_key_may, BETA, scope);
	}
	walk_what_both_have(scene);
	must(scene, "POST", "/api/v1/batches", key_of(BETA, API_KEY_ADMIN),
	     "{'workflow':'pack','account':'canary-alpha','items':[{'input':1,'cost':1}]}", 404);
	/* Nobody was anybody, or of alpha: so nothing of alpha's has moved. */
	read_alpha(scene, after);
	assert_string_equal(before, after);
	for (int scope = API_KEY_READ; scope <= API_KEY_ADMIN; scope++) {
		snprintf(who, sizeof who, "alpha's key, %s", scope_options[scope]);
		walk_all(scene, key_of(ALPHA, scope), who, a_key_may, ALPHA, scope);
	}
	/* And this walk does move things: the one above could have failed. */
	read_alpha(scene, after);
	assert_string_not_equal(before, after);
	print_message("# %zu requests\n", asked_n);
	scene_stop(scene, 0);
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

		if (reads && strcmp(routes[i].pattern, for_admins) == 0)
			assert_int_equal(routes[i].scope, ROUTE_ADMIN);
		else if (reads ? routes[i].scope > ROUTE_READ : routes[i].scope < ROUTE_EXECUTE)
			fail_msg("%s %s has a scope that does not fit it", routes[i].method, routes[i].pattern);
		if (routes[i].scope == ROUTE_PUBLIC && in_api && is_of_workspace(&routes[i]))
			fail_msg("%s %s is open to anybody", routes[i].method, routes[i].pattern);
	}
}

/* ---- who one says to be ---- */

static int status_with(struct scene *scene, const char *method, const char *path, const char *fields)
{
	struct client *client = client_new(scene->nodes[0]->port, /* requester= */ NULL);
	int status;

	reply_release(&scene->last);
	assert_true(client_call_with(client, method, path, fields, "", 0, &scene->last));
	status = scene->last.status;
	client_free(client);
	return status;
}

static int status_of_fields(struct scene *scene, const char *format, ...)
{
	char fields[600];
	va_list args;

	va_start(args, format);
	vsnprintf(fields, sizeof fields, format, args);
	va_end(args);
	return status_with(scene, "GET", "/api/v1/jobs", fields);
}

static void test_how_a_key_is_sent(void **state)
{
	struct scene *scene = *state;
	const char *key, *other;

	begin(scene);
	key = key_of(ALPHA, API_KEY_READ);
	other = key_of(ALPHA, API_KEY_EXECUTE);
	assert_int_equal(status_of_fields(scene, "Authorization: Bearer %s\r\n", key), 200);
	assert_int_equal(status_of_fields(scene, "authorization: bearer   %s\r\n", key), 200);
	assert_int_equal(status_of_fields(scene, "X-API-Key: %s\r\n", key), 200);
	assert_int_equal(status_of_fields(scene, "X-API-Key: %s\r\nAuthorization: Basic eDp5\r\n", key), 200);
	assert_int_equal(status_of_fields(scene, "X-API-Key: %s\r\nAuthorization: Bearer %s\r\n", key, key), 200);
	/* Which of two is meant, nobody can know. */
	assert_int_equal(status_of_fields(scene, "X-API-Key: %s\r\nAuthorization: Bearer %s\r\n", key, other), 401);
	assert_int_equal(status_of_fields(scene, "X-API-Key: %s\r\nX-API-Key: %s\r\n", key, key), 401);
	assert_int_equal(status_of_fields(scene, "Authorization: Bearer %s\r\nAuthorization: Bearer %s\r\n", key, key),
			 401);
	/* Not quite the key. */
	assert_int_equal(status_of_fields(scene, "Authorization: Bearer %s0\r\n", key), 401);
	assert_int_equal(status_of_fields(scene, "Authorization: Bearer %.68s\r\n", key), 401);
	assert_int_equal(status_of_fields(scene, "Authorization: Bearer %.16s_\r\n", key), 401);
	assert_int_equal(status_of_fields(scene, "Authorization: Bearer\r\n"), 401);
	assert_int_equal(status_of_fields(scene, "Authorization: %s\r\n", key), 401);
	assert_int_equal(status_of_fields(scene, "X-API-Key: \r\n"), 401);
	/* What the key says stands; a header may say the same. */
	assert_int_equal(
		status_of_fields(scene, "X-API-Key: %s\r\nHapax-Workspace: alpha\r\nHapax-Requester: r\r\n", key), 200);
	assert_int_equal(status_of_fields(scene, "X-API-Key: %s\r\nHapax-Workspace: beta\r\n", key), 403);
	assert_int_equal(status_of_fields(scene, "X-API-Key: %s\r\nHapax-Requester: admin\r\n", key), 403);
	assert_string_equal(scene->last.code, "FORBIDDEN");
	scene_stop(scene, 0);
}

/* The same Idempotency-Key, the same requester, the same path, another workspace: it is another request. */
static void test_idempotency_keys_do_not_cross(void **state)
{
	struct scene *scene = *state;
	char fields[300];

	begin(scene);
	for (int w = 0; w < WORKSPACES; w++) {
		snprintf(fields, sizeof fields, "X-API-Key: %s\r\nIdempotency-Key: same\r\n",
			 key_of(w, API_KEY_EXECUTE));
		assert_int_equal(status_with(scene, "POST", "/api/v1/entities/doc", fields), 201);
		assert_non_null(strstr(scene->last.head, "Idempotency-Status: created"));
		assert_int_equal(status_with(scene, "POST", "/api/v1/entities/doc", fields), 201);
		assert_non_null(strstr(scene->last.head, "Idempotency-Status: replayed"));
	}
	scene_stop(scene, 0);
}

/* ---- when there are none ---- */

static bool is_refused_without(struct scene *scene)
{
	return ask(scene, 0, "GET", "/api/v1/jobs", NULL, NULL)->status == 401;
}

static void test_the_first_key_closes_the_door(void **state)
{
	struct scene *scene = *state;
	char unknown[] = "hx_0ahva3hj60w00_msy4gn451rw6rv4xzszqed9t7rv314wn8h6ejjsj3kqyydcsfv0g";
	struct key key;

	scene_start(scene, 0);
	must(scene, "GET", "/api/v1/jobs", NULL, NULL, 200);
	must(scene, "GET", "/api/v1/jobs", unknown, NULL, 401); /* who has a key for somewhere else is told so */
	make_key(scene, "--scope read", &key);
	must(scene, "GET", "/api/v1/jobs", key.text, NULL, 200); /* at once */
	AWAIT(KEYRING_AGE_MAX_MS + SLACK_MS, is_refused_without(scene));
	/* And it stays closed when the last one has gone, and over a restart. */
	revoke_key(scene, &key);
	AWAIT(KEYRING_AGE_MAX_MS + SLACK_MS, ask(scene, 0, "GET", "/api/v1/jobs", key.text, NULL)->status == 401);
	must(scene, "GET", "/api/v1/jobs", NULL, NULL, 401);
	scene_stop(scene, 0);
	scene_start(scene, 0);
	must(scene, "GET", "/api/v1/jobs", NULL, NULL, 401);
	must(scene, "GET", "/healthz", NULL, NULL, 200);
	must(scene, "GET", "/readyz", NULL, NULL, 200);
	scene_stop(scene, 0);
}

/* Beyond loopback only with keys, and only behind TLS. */
static void test_beyond_loopback(void **state)
{
	struct scene *scene = *state;
	char arguments[1500], line[200];
	struct key key;

	scene_start(scene, 0); /* makes the schema */
	scene_stop(scene, 0);
	snprintf(arguments, sizeof arguments, "serve --db '%s' --listen 0.0.0.0:0", scene->store->url);
	assert_int_equal(hapax(arguments, line, sizeof line), 78);
	snprintf(arguments, sizeof arguments, "serve --db '%s' --listen 0.0.0.0:0 --tls-terminated", scene->store->url);
	assert_int_equal(hapax(arguments, line, sizeof line), 78);
	make_key(scene, "--scope admin", &key);
	snprintf(arguments, sizeof arguments, "serve --db '%s' --listen 0.0.0.0:0", scene->store->url);
	assert_int_equal(hapax(arguments, line, sizeof line), 78);
}

static void assert_origin(struct scene *scene, const char *fields, int status)
{
	static const char body[] = "[{\"queue\":\"q\"}]";
	struct client *client = client_new(scene->nodes[0]->port, /* requester= */ NULL);

	reply_release(&scene->last);
	assert_true(client_call_with(client, "POST", "/api/v1/jobs", fields, body, sizeof body - 1, &scene->last));
	if (scene->last.status != status)
		fail_msg("%s: %d, not %d: %.400s", fields, scene->last.status, status, scene->last.body);
	client_free(client);
}

static void assert_host(struct scene *scene, const char *host, int status)
{
	struct client *client = client_new(scene->nodes[0]->port, /* requester= */ NULL);
	char request[200];

	snprintf(request, sizeof request, "GET /api/v1/jobs HTTP/1.1\r\nHost: %s\r\n\r\n", host);
	reply_release(&scene->last);
	assert_true(client_raw(client, request, strlen(request), &scene->last));
	if (scene->last.status != status)
		fail_msg("%s: %d, not %d: %.400s", host, scene->last.status, status, scene->last.body);
	client_free(client);
}

/* Without keys loopback is the door, and every browser on the machine stands inside of it. */
static void test_web_pages_of_elsewhere(void **state)
{
	static const char *const here[] = {"", "Origin: http://localhost:3000\r\n", "Origin: http://127.0.0.1\r\n",
					   "Origin: https://[::1]:8443\r\n"};
	static const char *const elsewhere[] = {"Origin: http://evil.example\r\n",
						"Origin: https://evil.example:7411\r\n",
						"Origin: http://127.0.0.1.evil.example\r\n",
						"Origin: http://192.0.2.1\r\n",
						"Origin: null\r\n",
						"Origin: \r\n",
						"Origin: http://localhost\r\nOrigin: http://evil.example\r\n"};
	struct scene *scene = *state;
	char fields[300];
	struct key key;

	scene_start(scene, 0);
	for (size_t i = 0; i < sizeof here / sizeof *here; i++)
		assert_origin(scene, here[i], 201);
	for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
		assert_origin(scene, elsewhere[i], 403);
	/* A page of a domain that has become 127.0.0.1 sends no Origin when it reads. */
	assert_host(scene, "127.0.0.1", 200);
	assert_host(scene, "localhost:7411", 200);
	assert_host(scene, "[::1]:7411", 200);
	assert_host(scene, "evil.example", 403);
	assert_host(scene, "127.0.0.1.evil.example:7411", 403);
	make_key(scene, "--scope admin", &key); /* a page that has a key was given it */
	snprintf(fields, sizeof fields, "%sAuthorization: Bearer %s\r\n", elsewhere[0], key.text);
	assert_origin(scene, fields, 201);
	scene_stop(scene, 0);
}

static const char call[] =
	"{'workflow':'call','kind':'entity','status_types':['draft','done'],'initial_status':'draft',"
	"'actions':{'Ring':{'kind':'http','url':'@/ring','effect':'keyed'}},"
	"'steps':[{'step_id':1,'step_key':'ring','status':'draft','successful_state':'done','action':'Ring'}]}";

static void fire_call(struct scene *scene, const char *key, const char *id, int status)
{
	char body[100], path[200];

	snprintf(body, sizeof body, "{'id':'%s'}", id);
	must(scene, "POST", "/api/v1/entities/call", key, body, 201);
	snprintf(path, sizeof path, "/api/v1/entities/call/%s/steps/ring", id);
	must(scene, "POST", path, key, "{}", status);
}

/* Whoever has a key need not be whoever owns the machine: its own services are out of reach unless they are listed. */
static void test_loopback_is_out_of_reach_once_there_are_keys(void **state)
{
	struct scene *scene = *state;
	struct key key;

	scene_define(scene, "call", call);
	scene_start(scene, 0);
	fire_call(scene, NULL, "before", 200);
	make_key(scene, "--scope admin", &key);
	scene_stop(scene, 0);
	scene_start(scene, 0);
	fire_call(scene, key.text, "after", 502);
	assert_int_equal(service_count(scene->service, "/ring", NULL), 1);
	scene_stop(scene, 0);
	scene_configure(scene, "{'outbound':{'allow':['127.0.0.0/8']}}");
	scene_start(scene, 0);
	fire_call(scene, key.text, "listed", 200);
	scene_stop(scene, 0);
}

/* ---- how soon ---- */

static bool refused_on_all(struct scene *scene, int nodes, const char *key)
{
	bool all = true;

	for (int i = 0; i < nodes; i++)
		all &= ask(scene, i, "GET", "/api/v1/jobs", key, NULL)->status == 401;
	return all;
}

/* While all nodes are busy with that very key. */
static void assert_revoked_in_time(struct scene *scene, int nodes)
{
	struct key key;
	int64_t revoked_at_ms;

	make_key(scene, "--scope admin", &key);
	for (int i = 0; i < nodes; i++)
		assert_int_equal(ask(scene, i, "GET", "/api/v1/jobs", key.text, NULL)->status, 200);
	revoke_key(scene, &key);
	revoked_at_ms = await_now_ms();
	AWAIT(KEYRING_AGE_MAX_MS + SLACK_MS, refused_on_all(scene, nodes, key.text));
	print_message("# refused on %d nodes after %d ms\n", nodes, (int)(await_now_ms() - revoked_at_ms));
}

static void test_a_revoked_key_is_refused_soon(void **state)
{
	struct scene *scene = *state;

	scene_start(scene, 0);
	assert_revoked_in_time(scene, 1);
	scene_stop(scene, 0);
}

static void test_a_revoked_key_is_refused_soon_on_all_nodes(void **state)
{
	struct scene *scene = *state;

	scene_start(scene, 0);
	scene_start(scene, 1);
	assert_revoked_in_time(scene, 2);
	scene_stop(scene, 0);
	scene_stop(scene, 1);
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
			 " gate_record g WHERE encode(g.response, 'escape') LIKE '%%%.52s%%')",
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

/* ---- beside a busy server ---- */

#define WRITERS 4
#define KEYS_MADE 40

struct writer {
	pthread_t thread;
	struct client *client;
	_Atomic bool *stop;
	char fields[200];
	size_t created, other;
};

static void *write_on(void *context)
{
	struct writer *w = context;

	while (!atomic_load(w->stop)) {
		struct reply reply;

		if (client_call_with(w->client, "POST", "/api/v1/entities/doc", w->fields, "{}", 2, &reply) &&
		    reply.status == 201)
			w->created++;
		else
			w->other++;
		reply_release(&reply);
	}
	return NULL;
}

static void assert_whole(struct scene *scene, size_t created)
{
	char cell[64], arguments[1500], line[300];

	scene_sql(scene, "SELECT count(*) FROM entity WHERE workspace = 'w'", cell, sizeof cell);
	assert_int_equal(strtoull(cell, NULL, 10), created);
	if (scene->store->kind == STORE_SQLITE_FILE) {
		scene_sql(scene, "PRAGMA integrity_check", cell, sizeof cell);
		assert_string_equal(cell, "ok");
	}
	snprintf(arguments, sizeof arguments, "audit --db '%s'", scene->store->url);
	assert_int_equal(hapax(arguments, line, sizeof line), 0);
}

/* Keys come and go in processes of their own while the lane commits and copies its log back: nobody loses anything. */
static void test_beside_a_busy_server(void **state)
{
	struct writer writers[WRITERS] = {0};
	struct scene *scene = *state;
	_Atomic bool stop = false;
	size_t created = 0, other = 0;
	struct key own;
	int64_t began_ms;

	scene_define(scene, "doc", doc);
	scene_configure(scene, "{'modules':{'papers':{'janitor':{'every':'1h','stuck_after':'1h'}}}}");
	scene_start(scene, 0);
	make_key(scene, "--scope execute --workspace w", &own);
	for (int i = 0; i < WRITERS; i++) {
		writers[i].client = client_new(scene->nodes[0]->port, /* requester= */ NULL);
		writers[i].stop = &stop;
		snprintf(writers[i].fields, sizeof writers[i].fields, "X-API-Key: %s\r\n", own.text);
		assert_int_equal(pthread_create(&writers[i].thread, NULL, write_on, &writers[i]), 0);
	}
	began_ms = await_now_ms();
	for (int i = 0; i < KEYS_MADE; i++) {
		struct key key;

		make_key(scene, "--scope read", &key);
		must(scene, "GET", "/api/v1/jobs", key.text, NULL, 200);
		revoke_key(scene, &key);
	}
	print_message("# %d keys made, used and revoked: %d ms each\n", KEYS_MADE,
		      (int)(await_now_ms() - began_ms) / KEYS_MADE);
	atomic_store(&stop, true);
	for (int i = 0; i < WRITERS; i++) {
		pthread_join(writers[i].thread, NULL);
		client_free(writers[i].client);
		created += writers[i].created;
		other += writers[i].other;
	}
	print_message("# %zu entities meanwhile\n", created);
	assert_int_equal(other, 0);
	assert_true(created > 0);
	scene_stop(scene, 0);
	assert_whole(scene, created);
}

/* ---- rows of the user's own table ---- */

static const char own[] = "{'workflow':'own','kind':'entity','meta':{'table':'papers'},'status_types':['draft','done'],"
			  "'initial_status':'draft','steps':[{'step_id':1,'step_key':'end','status':'draft',"
			  "'successful_state':'done'}]}";

/* They know no workspaces, so they are in one: the default one. */
static void test_a_table_of_ones_own_is_of_the_default_workspace(void **state)
{
	static const char *const paths[] = {"/api/v1/entities/own/1", "/api/v1/entities/own",
					    "/api/v1/why/entity:own:1", "/api/v1/history/entity:own:1"};
	struct scene *scene = *state;
	struct key inside, outside;

	scene_start(scene, 0); /* makes the schema */
	scene_stop(scene, 0);
	scene_sql(
		scene,
		scene->store->kind == STORE_POSTGRES
			? "CREATE TABLE papers (id bigint PRIMARY KEY, status text, version bigint, updated_at bigint)"
			: "CREATE TABLE papers (id INTEGER PRIMARY KEY, status TEXT, version INTEGER, updated_at INTEGER)",
		NULL, 0);
	scene_sql(scene, "INSERT INTO papers VALUES (1, 'draft', 1, 0)", NULL, 0);
	scene_define(scene, "own", own);
	scene_start(scene, 0);
	make_key(scene, "--scope admin", &inside);
	make_key(scene, "--scope admin --workspace w", &outside);
	must(scene, "POST", "/api/v1/entities/own/1/steps/end", outside.text, "{}", 404);
	must(scene, "POST", "/api/v1/entities/own/1/steps/end", inside.text, "{}", 200);
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		must(scene, "GET", paths[i], outside.text, NULL, 404);
		must(scene, "GET", paths[i], inside.text, NULL, 200);
	}
	scene_stop(scene, 0);
}

#define ON_SQLITE(test) cmocka_unit_test_setup_teardown(test, scene_set_up_sqlite, scene_tear_down)
#define ON_POSTGRES(test)                                                                                              \
	{                                                                                                              \
#test "_postgres", test, scene_set_up_postgres, scene_tear_down, NULL                                  \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_table_itself),
		ON_SQLITE(test_every_route_with_every_key),
		ON_POSTGRES(test_every_route_with_every_key),
		ON_SQLITE(test_how_a_key_is_sent),
		ON_SQLITE(test_idempotency_keys_do_not_cross),
		ON_POSTGRES(test_idempotency_keys_do_not_cross),
		ON_SQLITE(test_the_first_key_closes_the_door),
		ON_POSTGRES(test_the_first_key_closes_the_door),
		ON_SQLITE(test_beyond_loopback),
		ON_SQLITE(test_web_pages_of_elsewhere),
		ON_SQLITE(test_loopback_is_out_of_reach_once_there_are_keys),
		ON_SQLITE(test_a_revoked_key_is_refused_soon),
		ON_POSTGRES(test_a_revoked_key_is_refused_soon_on_all_nodes),
		ON_SQLITE(test_keys_turn_up_nowhere),
		ON_POSTGRES(test_keys_turn_up_nowhere),
		ON_SQLITE(test_beside_a_busy_server),
		ON_POSTGRES(test_beside_a_busy_server),
		ON_SQLITE(test_a_table_of_ones_own_is_of_the_default_workspace),
		ON_POSTGRES(test_a_table_of_ones_own_is_of_the_default_workspace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
