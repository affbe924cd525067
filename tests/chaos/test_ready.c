/*
 * /readyz tells a balancer the truth about the store: 503 within seconds when PostgreSQL is gone or silent, on a node that nobody
 * asks for anything else, and 200 again when it is back. /healthz stays 200: killing the process would not help. The node
 * goes on by itself afterwards.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/await.h"
#include "support/pg_proxy.h"
#include "support/scene.h"

#define NOTICE_MS 60000
#define BACK_MS 60000

static struct pg_proxy *proxy;

static int tear_down(void **state)
{
	int rc = scene_tear_down(state);

	pg_proxy_free(proxy);
	proxy = NULL;
	return rc;
}

static const char definition[] = "{'workflow':'w','kind':'run','actions':{'a':{'kind':'noop'}},"
				 "'steps':[{'name':'s','type':'task','action':'a'}]}";

static int ready_status(struct scene *scene)
{
	int ready = scene_call(scene, 0, "GET", "/readyz", NULL)->status;

	assert_true(ready == 200 || ready == 503);
	assert_int_equal(scene_call(scene, 0, "GET", "/healthz", NULL)->status, 200);
	return ready;
}

static void expect_lost(struct scene *scene, const char *how)
{
	int64_t since_ms = await_now_ms();

	AWAIT(NOTICE_MS, ready_status(scene) == 503);
	printf("# the store is %s: /readyz says so after %d ms\n", how, (int)(await_now_ms() - since_ms));
	assert_int_equal(scene_metric(scene, 0, "hapax_store_up"), 0);
	serve_await_log(scene->nodes[0], "the store is lost", 1, NOTICE_MS);
}

static void expect_back(struct scene *scene)
{
	int64_t since_ms = await_now_ms();

	AWAIT(BACK_MS, ready_status(scene) == 200);
	printf("# the store is back: /readyz says so after %d ms\n", (int)(await_now_ms() - since_ms));
	assert_int_equal(scene_metric(scene, 0, "hapax_store_up"), 1);
	scene_must(scene, 0, "POST", "/api/v1/workflow-runs?wait=20s", "{'definitionId':'w'}", 201, NULL);
	assert_string_equal(reply_text(&scene->last, "run.status"), "COMPLETED");
}

/* What is due is counted by the first look, and told by those after it; also while the store is lost. */
static void expect_due(struct scene *scene)
{
	AWAIT(NOTICE_MS, strstr(scene_call(scene, 0, "GET", "/metrics", NULL)->body,
				"\nhapax_due{kind=\"jobs\",queue=\"q\"} 1\n"));
	assert_non_null(strstr(scene->last.body, "\nhapax_due{kind=\"runs\",queue=\"\"} 0\n"));
}

static void test_postgres_stops_and_starts(void **state)
{
	struct scene *scene = *state;

	scene_define(scene, "w", definition);
	scene_start(scene, 0);
	scene_must(scene, 0, "POST", "/api/v1/jobs", "{'queue':'q'}", 201, NULL);
	expect_due(scene);
	assert_int_equal(ready_status(scene), 200);
	store_pg_ctl("stop immediate");
	expect_lost(scene, "stopped");
	expect_due(scene);
	store_pg_ctl("start");
	expect_back(scene);
	scene_stop(scene, 0);
}

static void test_postgres_is_silent(void **state)
{
	struct scene *scene = *state;

	proxy = pg_proxy_new(store_pg_port());
	assert_non_null(proxy);
	store_url(scene->store, pg_proxy_port(proxy), "node", scene->db_urls[0], sizeof scene->db_urls[0]);
	scene_define(scene, "w", definition);
	scene_start(scene, 0);
	assert_int_equal(ready_status(scene), 200);
	pg_proxy_stall(proxy);
	AWAIT(NOTICE_MS, ready_status(scene) == 503);
	assert_int_equal(scene_metric(scene, 0, "hapax_store_up"), 0);
	assert_true(scene->last.took_ms <
		    15000); /* numbers are wanted most now, and wait for nobody: nobody would ever answer */
	pg_proxy_drop(proxy);
	expect_back(scene);
	scene_stop(scene, 0);
}

static void test_sqlite_is_always_there(void **state)
{
	struct scene *scene = *state;

	scene_define(scene, "w", definition);
	scene_start(scene, 0);
	assert_int_equal(ready_status(scene), 200);
	assert_int_equal(scene_metric(scene, 0, "hapax_store_up"), 1);
	scene_stop(scene, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_postgres_stops_and_starts, scene_set_up_postgres, tear_down),
		cmocka_unit_test_setup_teardown(test_postgres_is_silent, scene_set_up_postgres, tear_down),
		cmocka_unit_test_setup_teardown(test_sqlite_is_always_there, scene_set_up_sqlite, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
