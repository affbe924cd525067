/*
 * Canary secrets: `${env:NAME}` and `${file:PATH}` in the headers of every kind of action that every kind of definition has,
 * called by a real server, with a service that succeeds, fails, refuses, rejects, hangs up and says nothing, and that shows
 * its visitors what they sent whenever it can. Afterwards the canaries are looked for wherever something is kept or shown:
 *
 *   the store (its raw bytes, its log of changes; pg_dump), every GET of the table of routes for everything there is, the log of the
 *   server, its command line, the environment of a program that it ran, and what the command line prints
 *
 * The controls: the service got both canaries with every kind of call, and what is not secret is found in the same places.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/api.h"
#include "base/strbuf.h"

#include "support/await.h"
#include "support/run_scene.h"

#define ENV_CANARY "canary/env+A1b2C3d4E5f6=="
#define FILE_CANARY "canary-file-0123456789"
#define MARK "not-a-secret-4711" /* in the input of everything */
#define AUTHORIZATION "Bearer " ENV_CANARY " " FILE_CANARY

#define BATCHES "/api/v1/batches"
#define BYTES_MAX (256u << 20)
/* clang-format off */

/* An action as far as its last field, with %1$s for the value of the header. */
#define HTTP(path, effect) \
	"{'kind':'http','url':'@/" path "','effect':'" effect "','timeout':'500ms','headers':{'Authorization':'%1$s'}"

static const char doc[] =
	"{'workflow':'doc','kind':'entity','meta':{'module':'papers'},"
	"'status_types':['open','closing','closed','looking','seen'],'initial_status':'open','actions':{"
	"'Check':" HTTP("check", "idempotent") "},"
	"'Close':" HTTP("close", "claimed") ",'probe':'Ask'},"
	"'Ask':" HTTP("ask", "idempotent") "},"
	"'Mail':" HTTP("mail", "keyed") "},"
	"'Look':{'kind':'exec','argv':['/bin/sh','-c','cat /proc/self/environ | tr \\\\\\\\0 . | sed s/.*/\\\\\\'\\\\&\\\\\\'/']}},"
	"'steps':[{'step_id':1,'step_key':'close','status':'open','validation':'Check','action':'Close',"
	"'claim_state':['closing','open'],'successful_state':'closed','success_after_effect':['Mail'],'on_unknown':'probe'},"
	"{'step_id':2,'step_key':'look','status':'open','action':'Look','claim_state':['looking','open'],"
	"'successful_state':'seen'}]}";

static const char trip[] =
	"{'workflow':'trip','kind':'run','actions':{"
	"'book':" HTTP("book", "keyed") "},"
	"'unbook':" HTTP("unbook", "keyed") "},"
	"'pay':" HTTP("pay", "claimed") ",'probe':'asked'},"
	"'asked':" HTTP("asked", "idempotent") "}},"
	"'steps':[{'name':'book','type':'task','action':'book','compensate':'unbook','save_as':'booking',"
	"'retry':{'max_attempts':2,'initial':'10ms'}},"
	"{'name':'pay','type':'task','action':'pay','on_unknown':'probe','retry':{'max_attempts':2,'initial':'10ms'}}],"
	"'output':'.state.booking'}";

static const char render[] =
	"{'workflow':'render','kind':'batch','actions':{"
	"'draw':" HTTP("draw", "keyed") ",'void':'forbid'},"
	"'forbid':" HTTP("forbid", "idempotent") "},"
	"'erase':" HTTP("erase", "idempotent") "},"
	"'tell':" HTTP("tell", "keyed") "}},"
	"'item_action':'draw','cleanup_action':'erase','done_after_effect':['tell'],'concurrency':2,"
	"'retry':{'max_attempts':2,'initial':'10ms'}}";

/* clang-format on */

static const char *const paths[] = {"/check", "/close", "/ask",  "/mail",   "/book",  "/unbook",
				    "/pay",   "/asked", "/draw", "/forbid", "/erase", "/tell"};

/* ---- the service ---- */

enum mood { SUCCEEDS, FAILS, REFUSES, REJECTS, HANGS_UP, SAYS_NOTHING, MOODS };
static const int statuses[MOODS] = {200, 503, 400, 422, 0, 0};
static atomic_int mood; /* an enum mood */

/* What makes the effect answers in its mood; what is asked or told about it just answers. Both echo. */
static int echo(void *context, const struct service_call *call, char *body, size_t bytes)
{
	static const char *const moody[] = {"/close", "/pay", "/draw"};
	int status = 200;

	(void)context;
	for (size_t i = 0; i < sizeof moody / sizeof *moody; i++)
		if (strcmp(call->path, moody[i]) == 0)
			status = statuses[atomic_load(&mood)]; /* as an index alone gcc would read it plainly */
	snprintf(body, bytes,
		 status == 200 ? "{\"outcome\":\"unknown\",\"you\":{\"sent\":\"%s\"}}" : "you sent: Authorization: %s",
		 call->authorization);
	return status;
}

static void play(struct scene *scene)
{
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
		service_play(scene->service, paths[i], &(struct play){.respond = echo});
}

/* ---- the server ---- */

static void define(struct scene *scene, const char *name, const char *text)
{
	char header[400], filled[8000];

	snprintf(header, sizeof header, "Bearer ${env:HX_TEST_CANARY} ${file:%s/secret}", scene->dir);
	snprintf(filled, sizeof filled, text, header);
	scene_define(scene, name, filled);
}

static void begin(struct scene *scene)
{
	char path[400];
	FILE *file;

	snprintf(path, sizeof path, "%s/secret", scene->dir);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(FILE_CANARY "\n", file);
	fclose(file);
	setenv("HX_TEST_CANARY", ENV_CANARY, 1);
	define(scene, "doc", doc);
	define(scene, "trip", trip);
	define(scene, "render", render);
	scene_configure(
		scene,
		"{'exec':{'enabled':true},'modules':{'papers':{'janitor':{'every':'100ms','stuck_after':'1s'}}}}");
	play(scene);
	scene_start(scene, 0);
	scene_must(scene, 0, "POST", "/api/v1/accounts", "{'id':'alice','balance':1000}", 201, "");
}

/* ---- driving all of it ---- */

#define THINGS_MAX 100
static struct {
	size_t n;
	char ids[THINGS_MAX][64]; /* entities by their name, all else by its id */
} things;

static void keep(const char *id)
{
	assert_true(things.n < THINGS_MAX);
	snprintf(things.ids[things.n++], 64, "%s", id);
}

static void drive_entity(struct scene *scene, int i, const char *step)
{
	char id[64], path[200], body[200];

	snprintf(id, sizeof id, "doc-%s-%d", step, i);
	snprintf(body, sizeof body, "{'id':'%s','data':'" MARK "'}", id);
	scene_must(scene, 0, "POST", "/api/v1/entities/doc", body, 201, "");
	snprintf(path, sizeof path, "/api/v1/entities/doc/%s/steps/%s", id, step);
	scene_call(scene, 0, "POST", path, "{'input':'" MARK "'}");
	if (scene->last.body && (strstr(scene->last.body, ENV_CANARY) || strstr(scene->last.body, FILE_CANARY)))
		fail_msg("the answer to a step: %s", scene->last.body);
	keep(id);
}

/* It has come to rest: it has ended, or waits for a person. */
static bool rests(struct scene *scene, const char *id)
{
	char path[200];
	const char *reason;

	snprintf(path, sizeof path, "/api/v1/why/%s", id);
	reason = reply_text(scene_must(scene, 0, "GET", path, NULL, 200, ""), "reason");
	return strstr(
		"RUN_COMPLETED RUN_FAILED RUN_UNKNOWN RUN_CANCELLED BATCH_COMPLETED BATCH_UNKNOWN BATCH_CANCELLED",
		reason);
}

static void drive_run(struct scene *scene)
{
	char id[64];

	run_create_id(scene, "{'definitionId':'trip','input':{'x':'" MARK "'}}", id);
	AWAIT(RUN_ARRIVE_MS, rests(scene, id));
	keep(id);
}

static void drive_batch(struct scene *scene)
{
	char id[64];

	scene_must(scene, 0, "POST", BATCHES,
		   "{'workflow':'render','account':'alice','items':[{'cost':1,'input':'" MARK "'},{'cost':1}]}", 201,
		   "");
	snprintf(id, sizeof id, "%s", reply_text(&scene->last, "id"));
	AWAIT(RUN_ARRIVE_MS, rests(scene, id));
	keep(id);
}

/* What was done is undone: compensations, voids, cleanups. */
static void undo(struct scene *scene)
{
	char id[64], path[200];
	size_t n;

	mood = REFUSES;
	run_create_id(scene, "{'definitionId':'trip'}", id);
	AWAIT(RUN_ARRIVE_MS, rests(scene, id));
	keep(id);
	mood = SUCCEEDS;
	service_play(scene->service, "/pay", &(struct play){.status = 400});
	run_create_id(scene, "{'definitionId':'trip'}", id);
	AWAIT(RUN_ARRIVE_MS, rests(scene, id));
	run_do(scene, id, "cancel", "{}", 202, "");
	run_await(scene, id, "CANCELLED");
	keep(id);
	play(scene);
	/* Two items are under way when the cancel comes, and nobody knows what becomes of them. */
	n = service_count(scene->service, "/draw", NULL);
	service_play(scene->service, "/draw", &(struct play){.hold = true, .how = PLAY_DROP});
	scene_must(scene, 0, "POST", BATCHES,
		   "{'workflow':'render','account':'alice','items':[{'cost':1},{'cost':1},{'cost':1},{'cost':1}]}", 201,
		   "");
	snprintf(id, sizeof id, "%s", reply_text(&scene->last, "id"));
	service_await(scene->service, "/draw", n + 2, RUN_ARRIVE_MS);
	snprintf(path, sizeof path, BATCHES "/%s/cancel", id);
	scene_must(scene, 0, "POST", path, NULL, 202, "");
	service_release(scene->service);
	AWAIT(RUN_ARRIVE_MS, rests(scene, id));
	keep(id);
}

static void drive_all(struct scene *scene)
{
	things.n = 0;
	for (int m = 0; m < MOODS; m++) {
		mood = m;
		if (m == SAYS_NOTHING)
			for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
				service_play(scene->service, paths[i], &(struct play){.hold = true});
		drive_entity(scene, m, "close");
		drive_run(scene);
		drive_batch(scene);
	}
	service_release(scene->service);
	play(scene);
	undo(scene);
	/* It has the name that the walk over the routes puts in for {name}. */
	scene_must(scene, 0, "PUT", "/api/v1/schedules/doc",
		   "{'workflow':'trip','every':'1d','input':{'x':'" MARK "'}}", 201, "");
	scene_must(scene, 0, "POST", "/api/v1/bulk", "{'verb':'retry','kind':'run','where':'key == \\'" MARK "\\''}",
		   202, "");
	keep(reply_text(&scene->last, "id"));
	drive_entity(scene, 0, "look");
	/* The control of the environment that was printed. */
	if (!strstr(scene->last.body, "HAPAX_IDEMPOTENCY_KEY="))
		fail_msg("no environment was printed: %s", scene->last.body);
}

/* The control: every kind of call had both. */
static void assert_received(struct scene *scene)
{
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		service_await(scene->service, paths[i], 1, RUN_ARRIVE_MS);
		if (strcmp(service_call(scene->service, paths[i], 0).authorization, AUTHORIZATION) != 0)
			fail_msg("%s got: %s", paths[i], service_call(scene->service, paths[i], 0).authorization);
	}
}

/* ---- looking for it ---- */

static void assert_clean(const char *where, const char *text, size_t n)
{
	static const char *const canaries[] = {ENV_CANARY, FILE_CANARY, "A1b2C3d4E5f6", "file-0123456789"};

	for (size_t i = 0; i < sizeof canaries / sizeof *canaries; i++) {
		const char *at = memmem(text, n, canaries[i], strlen(canaries[i]));

		if (at)
			fail_msg("%s is in %s: %.60s", canaries[i], where, at - text > 30 ? at - 30 : at);
	}
}

/* Returns whether the mark is in it. */
static bool look_into(const char *where, FILE *file)
{
	struct strbuf all;
	char chunk[65536];
	size_t n;
	bool marked;

	strbuf_init(&all, BYTES_MAX);
	while (file && (n = fread(chunk, 1, sizeof chunk, file)) > 0)
		strbuf_add(&all, chunk, n);
	assert_false(all.failed);
	assert_clean(where, all.p, all.n);
	marked = memmem(all.p, all.n, MARK, strlen(MARK)) != NULL;
	strbuf_release(&all);
	return marked;
}

static bool look_into_file(const char *path)
{
	FILE *file = fopen(path, "r");
	bool marked = look_into(path, file);

	if (file)
		fclose(file);
	return marked;
}

/* What a program prints on both of its streams. It must exit with 0, unless it tells by its code how a run or a batch went. */
static bool look_into_output(bool must_succeed, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool look_into_output(bool must_succeed, const char *format, ...)
{
	char command[2000], both[2100];
	va_list args;
	FILE *out;
	bool marked;
	int status;

	va_start(args, format);
	vsnprintf(command, sizeof command, format, args);
	va_end(args);
	snprintf(both, sizeof both, "%s 2>&1", command);
	out = popen(both, "r");
	assert_non_null(out);
	marked = look_into(command, out);
	status = pclose(out);
	if (must_succeed && status != 0)
		fail_msg("%s: %#x", command, (unsigned)status);
	return marked;
}

static void look_into_store(struct scene *scene)
{
	char path[600];
	bool marked;

	if (scene->store->kind == STORE_POSTGRES) {
		assert_true(look_into_output(true, "pg_dump --inserts -n %s '%s'", scene->store->schema,
					     scene->store->url));
		return;
	}
	snprintf(path, sizeof path, "%s-wal", scene->store->url + strlen("sqlite:"));
	marked = look_into_file(path);
	marked |= look_into_file(scene->store->url + strlen("sqlite:"));
	assert_true(marked);
}

/* Is this thing one that the path can be about? */
static bool fits(const char *pattern, const char *id)
{
	return strstr(pattern, "/entities/")        ? strncmp(id, "doc-", 4) == 0
	       : strstr(pattern, "/workflow-runs/") ? strncmp(id, "run_", 4) == 0
	       : strstr(pattern, "/jobs/")          ? strncmp(id, "job_", 4) == 0
	       : strstr(pattern, "/batches/")       ? strncmp(id, "batch_", 6) == 0
	       : strstr(pattern, "/accounts/")      ? strcmp(id, "alice") == 0
	       : strstr(pattern, "/bulk/")          ? strncmp(id, "bulk_", 5) == 0
	       : strstr(pattern, "/functions/") ? false /* what its worker has written, and nothing of a definition's */
						: strcmp(id, "alice") != 0 && strncmp(id, "bulk_", 5) != 0;
}

/* One GET, and what it answers must be fine. */
static void look_at_route(struct scene *scene, const char *pattern, const char *id, bool *marked)
{
	char path[600], *out = path;

	for (const char *at = pattern; *at;) {
		const char *end = *at == '{' ? strchr(at, '}') : NULL;
		bool is_entity = strncmp(id, "doc-", 4) == 0 && !strstr(pattern, "/entities/");

		if (end && (strncmp(at, "{workflow}", 10) == 0 || strncmp(at, "{name}", 6) == 0))
			out = stpcpy(out, "doc");
		else if (end)
			out = stpcpy(stpcpy(out, is_entity ? "entity:doc:" : ""), id);
		else
			*out++ = *at;
		at = end ? end + 1 : at + 1;
	}
	*out = '\0';
	scene_must(scene, 0, "GET", path, NULL, 200, "");
	assert_clean(path, scene->last.body, scene->last.body_n);
	*marked |= strstr(scene->last.body, MARK) != NULL;
}

static void look_at_routes(struct scene *scene)
{
	size_t n;
	const struct route *routes = api_routes(&n);
	bool marked = false;

	scene_must(scene, 0, "GET", "/api/v1/jobs?limit=500", NULL, 200, "");
	for (size_t i = 0; i < reply_count(&scene->last, "items"); i++)
		keep(reply_text(&scene->last, run_path("items.%d.id", (int)i)));
	keep("alice");
	for (size_t i = 0; i < n; i++) {
		bool is_about = strstr(routes[i].pattern, "{id}") || strstr(routes[i].pattern, "{subject}");

		/* A run by its key is answered by what answers it by its id. */
		if (strcmp(routes[i].method, "GET") != 0 || strstr(routes[i].pattern, "/by-key/"))
			continue;
		for (size_t j = 0; j < (is_about ? things.n : 1); j++)
			if (!is_about || fits(routes[i].pattern, things.ids[j]))
				look_at_route(scene, routes[i].pattern, things.ids[j], &marked);
	}
	assert_true(marked);
}

static void look_at_process(struct scene *scene)
{
	char path[100];

	snprintf(path, sizeof path, "/proc/%d/cmdline", (int)scene->nodes[0]->pid);
	(void)look_into_file(path); /* there is no mark in it */
	(void)look_into_file(scene->nodes[0]->log);
	assert_true(file_count(scene->nodes[0]->log, "\"level\":\"") > 0);
}

static void look_at_command_line(struct scene *scene)
{
	const char *build = getenv("HAPAX_BUILD");
	char hapax[300];

	snprintf(hapax, sizeof hapax, "HAPAX_SERVER=http://127.0.0.1:%d %s/hapax", scene->nodes[0]->port,
		 build && *build ? build : "build");
	(void)look_into_output(true, "%s graph %s/doc.json", hapax, scene->workflows);
	(void)look_into_output(true, "%s graph %s/render.json", hapax, scene->workflows);
	(void)look_into_output(true, "%s check %s --config %s", hapax, scene->workflows, scene->config);
	assert_true(look_into_output(true, "%s entity show doc doc-close-0", hapax));
	for (size_t i = 0; i < things.n; i++) {
		if (strncmp(things.ids[i], "run_", 4) == 0)
			(void)look_into_output(false, "%s run show %s", hapax, things.ids[i]);
		if (strncmp(things.ids[i], "batch_", 6) == 0)
			(void)look_into_output(false, "%s batch show %s", hapax, things.ids[i]);
	}
}

static void test_canaries(void **state)
{
	struct scene *scene = *state;

	begin(scene);
	drive_all(scene);
	assert_received(scene);
	look_into_store(scene);
	look_at_routes(scene);
	look_at_process(scene);
	look_at_command_line(scene);
	scene_stop(scene, 0);
	look_into_store(scene); /* and as it is left behind */
}

/* ---- references that lead nowhere ---- */

/* Said at the call, naming the variable or the file: it may be there the next time. Nothing is sent. */
static void test_missing(void **state)
{
	struct scene *scene = *state;

	scene_define(
		scene, SCENE_WORKFLOW,
		"{'workflow':'billing','kind':'entity','status_types':['open','done'],'initial_status':'open','actions':{"
		"'A':{'kind':'http','url':'@/a','effect':'keyed','headers':{'X-Token':'${env:HX_TEST_NOT_SET}'}},"
		"'B':{'kind':'http','url':'@/b','effect':'keyed','headers':{'X-Token':'${file:/nonexistent/token}'}},"
		"'C':{'kind':'http','url':'@/c','effect':'keyed','headers':{'X-Token':'${env:HX_TEST_LINES}'}}},"
		"'steps':[{'step_id':1,'step_key':'a','status':'open','successful_state':'done','action':'A'},"
		"{'step_id':2,'step_key':'b','status':'open','successful_state':'done','action':'B'},"
		"{'step_id':3,'step_key':'c','status':'open','successful_state':'done','action':'C'}]}");
	unsetenv("HX_TEST_NOT_SET");
	setenv("HX_TEST_LINES", FILE_CANARY "\r\nX-Evil: 1", 1);
	scene_start(scene, 0);
	scene_create(scene, "x");
	scene_fire(scene, 0, "x", "a", 502, "ACTION_FAILED");
	assert_non_null(
		strstr(scene->last.body, "header X-Token: the environment variable HX_TEST_NOT_SET is not set"));
	scene_fire(scene, 0, "x", "b", 502, "ACTION_FAILED");
	assert_non_null(strstr(scene->last.body, "header X-Token: the file /nonexistent/token cannot be read"));
	scene_fire(scene, 0, "x", "c", 502, "ACTION_FAILED");
	assert_non_null(strstr(scene->last.body, "header X-Token: its value holds a control character"));
	assert_null(strstr(scene->last.body, "canary"));
	assert_int_equal(service_count(scene->service, NULL, NULL), 0);
	scene_stop(scene, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_canaries, scene_set_up_sqlite, scene_tear_down),
		cmocka_unit_test_setup_teardown(test_canaries, scene_set_up_postgres, scene_tear_down),
		cmocka_unit_test_setup_teardown(test_missing, scene_set_up_sqlite, scene_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
