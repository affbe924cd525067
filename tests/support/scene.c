/* See scene.h. */
#include "support/scene.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "base/strbuf.h"
#include "support/await.h"

#define TEXT_BYTES_MAX (64u << 20)

/* ---- set up, tear down ---- */

static int set_up(void **state, enum store_kind kind)
{
	const char *tmp = getenv("TMPDIR");
	struct scene *scene = calloc(1, sizeof *scene);

	assert_non_null(scene);
	*state = scene;
	scene->store = store_new(kind);
	scene->service = service_new();
	snprintf(scene->dir, sizeof scene->dir, "%s/hapax-scene.XXXXXX", tmp && *tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(scene->dir));
	snprintf(scene->workflows, sizeof scene->workflows, "%s/workflows", scene->dir);
	snprintf(scene->config, sizeof scene->config, "%s/config.json", scene->dir);
	for (int i = 0; i < SCENE_NODES_MAX; i++)
		snprintf(scene->db_urls[i], sizeof scene->db_urls[i], "%s", scene->store->url);
	assert_int_equal(mkdir(scene->workflows, 0700), 0);
	scene_configure(scene, "{}");
	return 0;
}

int scene_set_up_sqlite(void **state)
{
	return set_up(state, STORE_SQLITE_FILE);
}

int scene_set_up_postgres(void **state)
{
	return set_up(state, STORE_POSTGRES);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st, (void)flag, (void)ftw;
	return remove(path);
}

int scene_tear_down(void **state)
{
	struct scene *scene = *state;

	if (!scene)
		return 0;
	for (int i = 0; i < SCENE_NODES_MAX; i++) {
		serve_free(scene->nodes[i]);
		client_free(scene->admin[i]);
	}
	service_free(scene->service);
	reply_release(&scene->last);
	(void)nftw(scene->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	store_free(scene->store);
	free(scene);
	return 0;
}

/* ---- files ---- */

char *scene_text(const struct scene *scene, const char *text)
{
	struct strbuf out;
	char *copy;

	strbuf_init(&out, TEXT_BYTES_MAX);
	for (; *text; text++)
		if (*text == '@')
			strbuf_addf(&out, "http://127.0.0.1:%d", service_port(scene->service));
		else
			strbuf_add_char(&out, *text == '\'' ? '"' : *text);
	assert_false(out.failed);
	copy = strdup(out.p);
	assert_non_null(copy);
	strbuf_release(&out);
	return copy;
}

static void write_file(const struct scene *scene, const char *path, const char *text)
{
	char *written = scene_text(scene, text);
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(written, file) >= 0);
	assert_int_equal(fclose(file), 0);
	free(written);
}

void scene_define(struct scene *scene, const char *name, const char *text)
{
	char path[600];

	snprintf(path, sizeof path, "%s/%s.json", scene->workflows, name);
	if (text)
		write_file(scene, path, text);
	else
		assert_int_equal(unlink(path), 0);
}

void scene_configure(struct scene *scene, const char *text)
{
	write_file(scene, scene->config, text);
}

/* ---- nodes ---- */

struct serve_options scene_options(struct scene *scene, int node)
{
	static const char *const names[SCENE_NODES_MAX] = {"node-a", "node-b", "node-c"};
	static char logs[SCENE_NODES_MAX][300];

	snprintf(logs[node], sizeof logs[node], "%s/node-%d.log", scene->dir, node);
	return (struct serve_options){
		.db_url = scene->db_urls[node],
		.workflows = scene->workflows,
		.config = scene->config,
		.node = names[node],
		.log = logs[node],
	};
}

void scene_start(struct scene *scene, int node)
{
	struct serve_options options = scene_options(scene, node);

	assert_null(scene->nodes[node]);
	scene->nodes[node] = serve_start(&options);
	scene->admin[node] = client_new(scene->nodes[node]->port, "admin");
}

static void forget(struct scene *scene, int node)
{
	serve_free(scene->nodes[node]);
	client_free(scene->admin[node]);
	scene->nodes[node] = NULL;
	scene->admin[node] = NULL;
}

void scene_stop(struct scene *scene, int node)
{
	serve_stop(scene->nodes[node]);
	forget(scene, node);
}

void scene_kill(struct scene *scene, int node)
{
	serve_kill(scene->nodes[node]);
	forget(scene, node);
}

/* ---- calls ---- */

struct reply *scene_call(struct scene *scene, int node, const char *method, const char *path, const char *body)
{
	char *text = scene_text(scene, body ? body : "");
	bool answered;

	reply_release(&scene->last);
	answered = client_call(scene->admin[node], method, path, text, strlen(text), &scene->last);
	free(text);
	if (!answered)
		fail_msg("%s %s: no answer", method, path);
	return &scene->last;
}

struct reply *scene_must(struct scene *scene, int node, const char *method, const char *path, const char *body,
			 int status, const char *code)
{
	struct reply *reply = scene_call(scene, node, method, path, body);

	if (reply->status != status || (code && strcmp(reply->code, code) != 0))
		fail_msg("%s %s: %d was to be answered with %s, and is %d: %.600s", method, path, status,
			 code ? code : "any code", reply->status, reply->body);
	return reply;
}

void scene_create(struct scene *scene, const char *id)
{
	char body[600];

	snprintf(body, sizeof body, "{'id':'%s'}", id);
	scene_must(scene, 0, "POST", "/api/v1/entities/" SCENE_WORKFLOW, body, 201, NULL);
}

static void step_path(char *path, size_t bytes, const char *id, const char *step)
{
	snprintf(path, bytes, "/api/v1/entities/" SCENE_WORKFLOW "/%s/steps/%s", id, step);
}

struct reply *scene_fire(struct scene *scene, int node, const char *id, const char *step, int status, const char *code)
{
	char path[600];

	step_path(path, sizeof path, id, step);
	return scene_must(scene, node, "POST", path, NULL, status, code);
}

struct reply *scene_show(struct scene *scene, int node, const char *id)
{
	char path[600];

	snprintf(path, sizeof path, "/api/v1/entities/" SCENE_WORKFLOW "/%s", id);
	return scene_call(scene, node, "GET", path, NULL);
}

void scene_assert(struct scene *scene, int node, const char *id, const char *status, int64_t version)
{
	struct reply *reply = scene_show(scene, node, id);

	assert_int_equal(reply->status, 200);
	assert_string_equal(reply_text(reply, "status"), status);
	assert_int_equal(reply_int(reply, "version"), version);
}

static bool is_in(struct scene *scene, int node, const char *id, const char *status)
{
	struct reply *reply = scene_show(scene, node, id);

	return reply->status == 200 && strcmp(reply_text(reply, "status"), status) == 0;
}

void scene_await_status(struct scene *scene, int node, const char *id, const char *status, int64_t deadline_ms)
{
	int64_t until_ms = await_now_ms() + deadline_ms;

	while (!is_in(scene, node, id, status)) {
		if (await_now_ms() > until_ms)
			fail_msg("waited %d ms for %s to be %s: %s", (int)deadline_ms, id, status, scene->last.body);
		await_pause();
	}
}

static int take_cell(void *context, int n, char **cells, char **names)
{
	(void)names;
	snprintf(context, 64, "%s", n && cells[0] ? cells[0] : "");
	return 0;
}

static void run_sqlite(const char *path, const char *sql, char cell[64])
{
	sqlite3 *db = NULL;
	char *words = NULL;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_busy_timeout(db, 10000);
	if (sqlite3_exec(db, sql, take_cell, cell, &words) != SQLITE_OK)
		fail_msg("%s: %s", sql, words);
	sqlite3_close(db);
}

void scene_sql(struct scene *scene, const char *sql, char *ret_cell, size_t cell_bytes)
{
	char cell[64] = "";
	PGconn *raw;

	if (scene->store->kind == STORE_POSTGRES) {
		raw = store_raw(scene->store);
		raw_run(raw, sql, cell, sizeof cell);
		PQfinish(raw);
	} else {
		run_sqlite(scene->store->url + strlen("sqlite:"), sql, cell);
	}
	if (ret_cell)
		snprintf(ret_cell, cell_bytes, "%s", cell);
}

size_t scene_jobs(struct scene *scene, int node)
{
	return reply_count(scene_must(scene, node, "GET", "/api/v1/jobs?limit=500", NULL, 200, NULL), "items");
}

int64_t scene_metric(struct scene *scene, int node, const char *name)
{
	struct reply *reply = scene_must(scene, node, "GET", "/metrics", NULL, 200, NULL);
	char line[120];
	const char *at;

	snprintf(line, sizeof line, "\n%s ", name);
	at = strstr(reply->body, line);
	if (!at)
		fail_msg("there is no metric %s", name);
	return strtoll(at + strlen(line), NULL, 10);
}

/* ---- in the background ---- */

static void *fire(void *context)
{
	struct firing *firing = context;

	(void)client_call(firing->client, "POST", firing->path, "", 0, &firing->reply); /* the test sees the status */
	return NULL;
}

struct firing *firing_start(struct scene *scene, int node, const char *id, const char *step)
{
	struct firing *firing = calloc(1, sizeof *firing); /* not on the stack: a test that fails leaves it running */

	assert_non_null(firing);
	firing->client = client_new(scene->nodes[node]->port, "admin");
	step_path(firing->path, sizeof firing->path, id, step);
	assert_int_equal(pthread_create(&firing->thread, NULL, fire, firing), 0);
	return firing;
}

struct reply *firing_join(struct firing *firing, int status, const char *code)
{
	struct reply *reply = &firing->reply;

	pthread_join(firing->thread, NULL);
	if ((status && reply->status != status) || (code && strcmp(reply->code, code) != 0))
		fail_msg("%s: %d was to be answered with %s, and is %d: %.600s", firing->path, status,
			 code ? code : "any code", reply->status, reply->body ? reply->body : "nothing");
	return reply;
}

void firing_free(struct firing *firing)
{
	client_free(firing->client);
	reply_release(&firing->reply);
	free(firing);
}
