/*
 * For tests of API keys against real servers: keys, made by `hapax key` beside the running server, and two workspaces with one
 * thing of each kind, and keys of every scope.
 */
#ifndef HX_TESTS_HTTP_KEYED_WORLD_H
#define HX_TESTS_HTTP_KEYED_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "api/api.h"
#include "base/strbuf.h"
#include "engine/keyring.h"

#include "support/await.h"
#include "support/scene.h"

#define DEADLINE_MS 20000
#define SLACK_MS 15000 /* of a machine that has other things to do */

/* ---- hapax key ---- */

/* Runs it, and returns its exit code; the first line that it prints goes to ret_line. */
static inline int hapax(const char *arguments, char *ret_line, size_t bytes)
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

static inline void make_key(struct scene *scene, const char *options, struct key *ret_key)
{
	char arguments[1500];

	snprintf(arguments, sizeof arguments, "key create --db '%s' %s", scene->store->url, options);
	assert_int_equal(hapax(arguments, ret_key->text, sizeof ret_key->text), 0);
	assert_int_equal(strlen(ret_key->text), API_KEY_TEXT_CHARS);
	snprintf(ret_key->id, sizeof ret_key->id, "key_%.13s", ret_key->text + 3);
}

static inline void revoke_key(struct scene *scene, const struct key *key)
{
	char arguments[1500], line[200];

	snprintf(arguments, sizeof arguments, "key revoke --db '%s' %s", scene->store->url, key->id);
	assert_int_equal(hapax(arguments, line, sizeof line), 0);
}

/* ---- asking ---- */

/* key NULL: none. The reply is valid until the next one. */
static inline struct reply *ask(struct scene *scene, int node, const char *method, const char *path, const char *key,
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

static inline struct reply *must(struct scene *scene, const char *method, const char *path, const char *key,
				 const char *body, int status)
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
	[API_KEY_READ] = "read", [API_KEY_EXECUTE] = "execute", [API_KEY_ADMIN] = "admin", [API_KEY_WORKER] = "worker"};

static struct {
	struct key keys[WORKSPACES][API_KEY_WORKER + 1]; /* by scope */
	struct key revoked, expired, forged;             /* of alpha, with the scope admin */
	/* alpha's things; each has the word canary-alpha in it somewhere */
	char run[64], function[64], job[64], batch[64], bulk[64];
} world;

static const char *key_of(int workspace, enum api_key_scope scope)
{
	return world.keys[workspace][scope].text;
}

/* The secret of one key with the id of another. */
static inline void forge(const struct key *of, const struct key *with, struct key *ret_key)
{
	*ret_key = *of;
	memcpy(ret_key->text + 17, with->text + 17, API_KEY_TEXT_CHARS - 17);
}

static inline void make_keys(struct scene *scene)
{
	char options[200];

	for (int w = 0; w < WORKSPACES; w++)
		for (int s = API_KEY_READ; s <= API_KEY_WORKER; s++) {
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

static inline void keep_id(struct scene *scene, const char *path, char ret_id[64])
{
	snprintf(ret_id, 64, "%s", reply_text(&scene->last, path));
}

static inline void make(struct scene *scene, int workspace, const char *path, const char *format)
{
	const char *name = workspace_names[workspace];
	char body[400];

	snprintf(body, sizeof body, format, name, name);
	must(scene, "POST", path, key_of(workspace, API_KEY_ADMIN), body, 201);
}

/* The run has come to a step where it waits. */
static inline bool run_waits(struct scene *scene, int workspace, const char *step)
{
	char path[200];

	snprintf(path, sizeof path, "/api/v1/workflow-runs/%s", world.run);
	must(scene, "GET", path, key_of(workspace, API_KEY_READ), NULL, 200);
	return strcmp(reply_text(&scene->last, "status"), "WAITING") == 0 &&
	       strcmp(reply_text(&scene->last, "currentStep"), step) == 0;
}

/* Past its first step, whose output tells whose it is, to where nothing moves by itself. */
static inline void move_run(struct scene *scene, int workspace)
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
static inline void make_things(struct scene *scene, int workspace)
{
	make(scene, workspace, "/api/v1/entities/doc", "{'id':'%s-doc','data':'canary-%s'}");
	make(scene, workspace, "/api/v1/entities/doc", "{'id':'same','data':'canary-%s'}");
	make(scene, workspace, "/api/v1/workflow-runs",
	     "{'definitionId':'flow','idempotencyKey':'same','input':{'x':'canary-%s'}}");
	keep_id(scene, "run.id", world.run);
	must(scene, "POST", "/api/v1/functions/claim", key_of(ALPHA, API_KEY_EXECUTE),
	     "{'worker':'w','functions':[{'name':'fn','version':'1'}]}", 200);
	must(scene, "POST", "/api/v1/workflow-runs", key_of(ALPHA, API_KEY_EXECUTE), "{'definitionId':'fn'}", 201);
	keep_id(scene, "run.id", world.function);
	move_run(scene, workspace);
	make(scene, workspace, "/api/v1/jobs", "{'queue':'q','key':'same','payload':'canary-%s'}");
	keep_id(scene, "jobs.0.id", world.job);
	make(scene, workspace, "/api/v1/accounts", "{'id':'canary-%s','balance':100}");
	make(scene, workspace, "/api/v1/accounts", "{'id':'same','balance':100}");
	make(scene, workspace, "/api/v1/batches",
	     "{'workflow':'pack','account':'canary-%s','hold':true,'items':[{'input':1,'cost':1}],'idempotencyKey':'same'}");
	keep_id(scene, "id", world.batch);
	must(scene, "POST", "/api/v1/bulk", key_of(workspace, API_KEY_ADMIN),
	     "{'verb':'cancel','kind':'run','where':'key == null and key != null'}", 202);
	keep_id(scene, "id", world.bulk);
	must(scene, "POST", "/api/v1/accounts/same/credit", key_of(workspace, API_KEY_ADMIN),
	     workspace == ALPHA ? "{'amount':1,'key':'canary-alpha'}" : "{'amount':1,'key':'canary-beta'}", 200);
}

static inline void begin(struct scene *scene)
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

#define ON_SQLITE(test) cmocka_unit_test_setup_teardown(test, scene_set_up_sqlite, scene_tear_down)
#define ON_POSTGRES(test)                                                                                              \
	{                                                                                                              \
#test "_postgres", test, scene_set_up_postgres, scene_tear_down, NULL                                  \
	}

#endif
