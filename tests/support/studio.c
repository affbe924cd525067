/* See studio.h. */
#include "support/studio.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/strbuf.h"
#include "support/await.h"

#define ORDER_BYTES_MAX (15u << 20)
#define JOBS_MS 60000

/* ---- set up, tear down ---- */

static int set_up(void **state, int (*scene_set_up)(void **state))
{
	struct studio *studio = calloc(1, sizeof *studio);
	void *scene = NULL;

	assert_non_null(studio);
	*state = studio;
	scene_set_up(&scene);
	studio->scene = scene;
	studio->artifacts = artifacts_new(studio->scene->service, /* unnoted= */ true);
	return 0;
}

int studio_set_up_sqlite(void **state)
{
	return set_up(state, scene_set_up_sqlite);
}

int studio_set_up_postgres(void **state)
{
	return set_up(state, scene_set_up_postgres);
}

int studio_tear_down(void **state)
{
	struct studio *studio = *state;
	void *scene = studio->scene;

	books_free(studio->books);
	scene_tear_down(&scene);
	fleet_release(&studio->fleet);
	artifacts_free(studio->artifacts);
	free(studio);
	return 0;
}

bool studio_is_postgres(const struct studio *studio)
{
	return studio->scene->store->kind == STORE_POSTGRES;
}

/* ---- before ---- */

static const char actions[] =
	"'render_one':{'kind':'http','url':'@/render','effect':'keyed','timeout':'30s'%s},"
	"'delete_artifact':{'kind':'http','url':'@/delete','effect':'idempotent','timeout':'30s'},"
	"'tell_owner':{'kind':'http','url':'@/tell','effect':'keyed'}";
static const char voids[] = ",'void_one':{'kind':'http','url':'@/void','effect':'idempotent','timeout':'30s'}";
static const char noops[] = "'render_one':{'kind':'noop'},'delete_artifact':{'kind':'noop'}";

void studio_define(struct studio *studio, const struct studio_shape *shape)
{
	char called[1000], text[2000], config[100];

	snprintf(called, sizeof called, shape->noop ? noops : actions, shape->voids ? ",'void':'void_one'" : "");
	snprintf(text, sizeof text,
		 "{'workflow':'render','kind':'batch','actions':{%s%s},'item_action':'render_one',"
		 "'cleanup_action':'delete_artifact'%s,'concurrency':%lld,"
		 "'retry':{'max_attempts':%d,'initial':'50ms','max':'200ms'}}",
		 called, shape->voids && !shape->noop ? voids : "",
		 shape->noop ? "" : ",'done_after_effect':['tell_owner']",
		 (long long)(shape->concurrency ? shape->concurrency : 4), STUDIO_ATTEMPTS);
	scene_define(studio->scene, "render", text);
	studio->noop = shape->noop;
	snprintf(config, sizeof config, "{'lease':'%lldms'}",
		 (long long)(shape->lease_ms ? shape->lease_ms : STUDIO_LEASE_MS));
	scene_configure(studio->scene, config);
}

void studio_start(struct studio *studio, int n)
{
	fleet_start(&studio->fleet, studio->scene, n);
	studio->books = books_watch(studio->scene->store);
}

/* ---- calls ---- */

void studio_open_account(struct studio *studio, const char *id, int64_t balance)
{
	char body[200];

	snprintf(body, sizeof body, "{'id':'%s','balance':%lld}", id, (long long)balance);
	scene_must(studio->scene, 0, "POST", "/api/v1/accounts", body, 201, NULL);
}

int64_t studio_balance(struct studio *studio, int node, const char *account)
{
	char path[200];

	snprintf(path, sizeof path, "/api/v1/accounts/%s", account);
	return reply_int(scene_must(studio->scene, node, "GET", path, NULL, 200, NULL), "balance");
}

char *studio_order_text(const struct studio_order *order)
{
	struct strbuf text;
	char *copy;

	strbuf_init(&text, ORDER_BYTES_MAX);
	strbuf_addf(&text, "{\"workflow\":\"render\",\"account\":\"%s\",\"hold\":%s,", order->account,
		    order->hold ? "true" : "false");
	if (order->key)
		strbuf_addf(&text, "\"idempotencyKey\":\"%s\",", order->key);
	strbuf_addf(&text, "\"items\":[");
	for (size_t i = 0; i < order->items; i++)
		strbuf_addf(&text, "%s{\"cost\":%lld}", i ? "," : "", (long long)order->cost);
	strbuf_addf(&text, "]}");
	copy = text.failed ? NULL : strdup(text.p);
	strbuf_release(&text);
	return copy;
}

void studio_create(struct studio *studio, int node, const struct studio_order *order, char ret_id[ID_TEXT_BYTES])
{
	char *text = studio_order_text(order);

	assert_non_null(text);
	scene_must(studio->scene, node, "POST", BATCHES, text, 201, NULL);
	free(text);
	snprintf(ret_id, ID_TEXT_BYTES, "%.*s", ID_TEXT_BYTES - 1, reply_text(&studio->scene->last, "id"));
}

struct reply *studio_show(struct studio *studio, int node, const char *id)
{
	char path[100];

	snprintf(path, sizeof path, BATCHES "/%s", id);
	return scene_must(studio->scene, node, "GET", path, NULL, 200, NULL);
}

int studio_post(struct studio *studio, int node, const char *id, const char *verb)
{
	char path[100];

	snprintf(path, sizeof path, BATCHES "/%s/%s", id, verb);
	return scene_call(studio->scene, node, "POST", path, NULL)->status;
}

/* ---- waiting ---- */

static void fail_if_wrong(struct studio *studio)
{
	const char *wrong = studio->books ? books_wrong(studio->books) : NULL;

	wrong = wrong ? wrong : artifacts_wrong(studio->artifacts);
	if (wrong)
		fail_msg("%s", wrong);
}

void studio_await(struct studio *studio, int node, const char *id, const char *status, int64_t deadline_ms)
{
	int64_t until_ms = await_now_ms() + deadline_ms;

	while (strcmp(reply_text(studio_show(studio, node, id), "status"), status) != 0) {
		fail_if_wrong(studio);
		if (await_now_ms() > until_ms) {
			books_show_open(studio->scene->store);
			fail_msg("waited %d ms for %s to be %s: %s", (int)deadline_ms, id, status,
				 studio->scene->last.body);
		}
		await_pause();
	}
}

int64_t studio_number(struct studio *studio, const char *sql)
{
	char cell[64];

	scene_sql(studio->scene, sql, cell, sizeof cell);
	return strtoll(cell, NULL, 10);
}

void studio_await_all(struct studio *studio, int64_t deadline_ms)
{
	static const char sql[] = "SELECT count(*) FROM hx_batch b JOIN hx_subject s ON s.id = b.subject"
				  " WHERE s.status NOT IN ('COMPLETED', 'CANCELLED', 'FAILED')";
	int64_t until_ms = await_now_ms() + deadline_ms, left;

	while ((left = studio_number(studio, sql))) {
		fail_if_wrong(studio);
		if (await_now_ms() > until_ms) {
			books_show_open(studio->scene->store);
			fail_msg("%lld batches have not ended after %d ms", (long long)left, (int)deadline_ms);
		}
		await_pause();
	}
}

void studio_row(struct studio *studio, const char *id, struct books_row *ret_row)
{
	struct db *db = books_open(studio->scene->store);
	struct hx_error err = {0};
	struct books_row *rows;
	size_t n, at = 0;

	if (!books_read(db, &rows, &n, &err))
		fail_msg("%s", err.detail);
	while (at < n && strcmp(rows[at].id, id) != 0)
		at++;
	assert_true(at < n);
	*ret_row = rows[at];
	free(rows);
	db_close(db);
}

/* ---- the end ---- */

size_t studio_takeovers(struct studio *studio)
{
	size_t n = 0;

	for (int node = 0; node < studio->fleet.n; node++)
		n += file_count(scene_options(studio->scene, node).log, "a batch was taken over");
	return n;
}

static int a_living_node(const struct studio *studio)
{
	int node = 0;

	while (node + 1 < studio->fleet.n && !studio->scene->nodes[node])
		node++;
	return node;
}

/* Those whose nodes were killed under them too often. */
static void redrive_parked(struct studio *studio, int node)
{
	struct reply *reply = scene_must(studio->scene, node, "GET", "/api/v1/jobs?status=PARKED", NULL, 200, NULL);
	char path[200];

	if (reply_count(reply, "items") == 0)
		return;
	snprintf(path, sizeof path, "/api/v1/jobs/%s/redrive", reply_text(reply, "items.0.id"));
	scene_must(studio->scene, node, "POST", path, NULL, 200, NULL);
}

static void await_jobs(struct studio *studio)
{
	static const char sql[] =
		"SELECT count(*) FROM hx_job j JOIN hx_subject s ON s.id = j.subject WHERE s.status <> 'COMPLETED'";
	int64_t until_ms = await_now_ms() + JOBS_MS, left;
	int node = a_living_node(studio);

	while ((left = studio_number(studio, sql))) {
		redrive_parked(studio, node);
		if (await_now_ms() > until_ms)
			fail_msg("%lld jobs are not done: %.1000s", (long long)left,
				 scene_call(studio->scene, node, "GET", "/api/v1/jobs?limit=5", NULL)->body);
		await_pause();
	}
}

size_t studio_end(struct studio *studio, struct books_sum *ret_sum)
{
	size_t looks;

	await_jobs(studio);
	fleet_stop(&studio->fleet);
	looks = books_stop(studio->books);
	books_check(studio->scene->store, studio->noop ? NULL : studio->artifacts, ret_sum);
	return looks;
}
