/*
 * For tests of batches over the API of real servers: two definitions, the service that their items call, and what is asked of a batch.
 */
#ifndef HX_TESTS_HTTP_BATCH_SCENE_H
#define HX_TESTS_HTTP_BATCH_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/strbuf.h"

#include "support/await.h"
#include "support/run_scene.h"

#define BATCHES "/api/v1/batches"
#define ACCOUNTS "/api/v1/accounts"
#define HEAD "{'workflow':'render','account':'alice',"

/* Items say what becomes of them: see act(). */
static const char render[] =
	"{'workflow':'render','kind':'batch','actions':{"
	"'draw':{'kind':'http','url':'@/draw','effect':'keyed'},"
	"'erase':{'kind':'http','url':'@/erase','effect':'idempotent'},"
	"'tell':{'kind':'http','url':'@/tell','effect':'keyed'}},"
	"'item_action':'draw','cleanup_action':'erase','done_after_effect':['tell'],'concurrency':2,"
	"'retry':{'max_attempts':2,'initial':'50ms','factor':1,'max':'50ms','jitter':false}}";

/* One at a time, and what nobody knows is left for a person. */
static const char once[] = "{'workflow':'once','kind':'batch','actions':{"
			   "'draw':{'kind':'http','url':'@/draw','effect':'claimed'},"
			   "'erase':{'kind':'http','url':'@/erase','effect':'idempotent'}},"
			   "'item_action':'draw','cleanup_action':'erase','concurrency':1}";

static inline int act(void *context, const struct service_call *call, char *body, size_t bytes)
{
	(void)context;
	if (strstr(call->body, "\"do\":\"drop\""))
		return 0;
	snprintf(body, bytes, "{\"art\":\"%s\"}", call->key);
	if (strstr(call->body, "\"do\":\"refuse\""))
		return 400;
	return strstr(call->body, "\"do\":\"stumble\"") && call->attempt == 1 ? 503 : 200;
}

static inline void begin(struct scene *scene)
{
	service_play(scene->service, "/draw", &(struct play){.respond = act});
	scene_define(scene, "render", render);
	scene_define(scene, "once", once);
	scene_start(scene, 0);
	scene_must(scene, 0, "POST", ACCOUNTS, "{'id':'alice','balance':1000}", 201, "");
}

static inline void create_id(struct scene *scene, const char *body, char ret_id[64])
{
	scene_must(scene, 0, "POST", BATCHES, body, 201, "");
	assert_string_equal(reply_text(&scene->last, "created"), "true");
	snprintf(ret_id, 64, "%s", reply_text(&scene->last, "id"));
}

/* "" or "/items" or "/cancel" of a batch. */
static inline struct reply *at(struct scene *scene, const char *method, const char *id, const char *rest,
			       const char *body, int status, const char *code)
{
	char path[300];

	snprintf(path, sizeof path, BATCHES "/%s%s", id, rest);
	return scene_must(scene, 0, method, path, body, status, code);
}

static inline void await_status(struct scene *scene, const char *id, const char *status)
{
	AWAIT(RUN_ARRIVE_MS, strcmp(reply_text(at(scene, "GET", id, "", NULL, 200, ""), "status"), status) == 0);
}

static inline void assert_balance(struct scene *scene, int64_t balance)
{
	scene_must(scene, 0, "GET", ACCOUNTS "/alice", NULL, 200, "");
	assert_int_equal(reply_int(&scene->last, "balance"), balance);
}

/* What the last reply says of a batch. */
static inline void assert_counts(struct scene *scene, const char *status, int64_t succeeded, int64_t failed,
				 int64_t cancelled, int64_t charged, int64_t refunded)
{
	const struct reply *r = &scene->last;

	assert_string_equal(reply_text(r, "status"), status);
	assert_int_equal(reply_int(r, "succeeded"), succeeded);
	assert_int_equal(reply_int(r, "failed"), failed);
	assert_int_equal(reply_int(r, "cancelled"), cancelled);
	assert_int_equal(reply_int(r, "charged"), charged);
	assert_int_equal(reply_int(r, "refunded"), refunded);
}

static inline int64_t count(struct scene *scene, const char *sql)
{
	char cell[64];

	scene_sql(scene, sql, cell, sizeof cell);
	return strtoll(cell, NULL, 10);
}

/* Items that cost 1 each, as a body. */
static inline void many(const char *head, int n, struct strbuf *ret_body)
{
	strbuf_init(ret_body, 64u << 20);
	strbuf_addf(ret_body, "%s'items':[", head);
	for (int i = 0; i < n; i++)
		strbuf_addf(ret_body, "%s{'cost':1,'input':{'n':%d}}", i ? "," : "", i);
	strbuf_add_str(ret_body, "]}");
	assert_false(ret_body->failed);
}

#define ON_SQLITE(test) cmocka_unit_test_setup_teardown(test, scene_set_up_sqlite, scene_tear_down)
#define ON_POSTGRES(test)                                                                                              \
	{                                                                                                              \
#test " on PostgreSQL", test, scene_set_up_postgres, scene_tear_down, NULL                             \
	}

#endif
