/*
 * Bad input to the entity calls of the API: each is answered with a clear error, quickly, and changes nothing: no
 * action runs, no entity is made or moved.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/strbuf.h"
#include "support/await.h"
#include "support/scene.h"

#define BODY_BYTES_MAX 100000 /* as configured below */
#define QUICK_MS 5000
#define STATUSES 1000000

static const char definition[] =
	"{'workflow':'billing','kind':'entity','status_types':['draft','approved','closing','closed'],"
	"'initial_status':'draft','actions':{'Close':{'kind':'http','url':'@/close','effect':'claimed'}},"
	"'steps':[{'step_id':10,'step_key':'approve','status':'draft','successful_state':'approved'},"
	"{'step_id':20,'step_key':'close','status':'approved','successful_state':{'admin':'closed'},"
	"'action':{'admin':'Close'},'claim_state':{'admin':['closing','approved']}}]}";

static const char configuration[] = "{'modules':{'billing':{'janitor':{}}},'max_body_bytes':100000}";

#define ENTITIES "/api/v1/entities/billing"
#define CLOSE ENTITIES "/a/steps/close"

/* One entity, approved, so that closing it would have an effect. */
static int begin(struct scene *scene)
{
	scene_define(scene, "billing", definition);
	scene_configure(scene, configuration);
	scene_start(scene, 0);
	scene_create(scene, "a");
	scene_fire(scene, 0, "a", "approve", 200, NULL);
	return 0;
}

static int set_up(void **state)
{
	return scene_set_up_sqlite(state) || begin(*state);
}

static int set_up_postgres(void **state)
{
	return scene_set_up_postgres(state) || begin(*state);
}

static void assert_nothing_changed(struct scene *scene)
{
	scene_assert(scene, 0, "a", "approved", 2);
	scene_must(scene, 0, "GET", ENTITIES, NULL, 200, NULL);
	assert_int_equal(reply_count(&scene->last, "items"), 1);
	assert_int_equal(service_count(scene->service, NULL, NULL), 0);
}

/* The body as it is, ' and all. */
static struct reply *post(struct scene *scene, const char *path, const char *body, size_t n, int status,
			  const char *code)
{
	struct reply *reply = &scene->last;

	reply_release(reply);
	if (!client_call(scene->admin[0], "POST", path, body, n, reply))
		fail_msg("%s: no answer", path);
	if (reply->status != status || strcmp(reply->code, code) != 0)
		fail_msg("%s with %.100s: %d %s was to be answered, and is %d: %.600s", path, body, status, code,
			 reply->status, reply->body);
	assert_true(reply->took_ms < QUICK_MS);
	assert_non_null(strstr(reply->head, "application/problem+json"));
	assert_true(strlen(reply_text(reply, "detail")) > 0);
	return reply;
}

/* ---- ids ---- */

static void fill(char *text, size_t n, char byte)
{
	memset(text, byte, n);
	text[n] = '\0';
}

static void test_ids(void **state)
{
	static const char *const bad[] = {
		"{\"id\":\"\"}",          "{\"id\":\"a\\u0000b\"}",
		"{\"id\":\"a\\nb\"}",     "{\"id\":\"a\\u007fb\"}",
		"{\"id\":\"a\\u001bb\"}", "{\"id\":7}",
		"{\"id\":null}",          "{\"id\":[\"a\"]}",
		"{\"id\":true}",          "{\"id\":{}}",
	};
	struct scene *scene = *state;
	char id[300], body[400], path[400];

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		post(scene, ENTITIES, bad[i], strlen(bad[i]), 400, "VALIDATION_ERROR");
	fill(id, 256, 'x');
	snprintf(body, sizeof body, "{\"id\":\"%s\"}", id);
	post(scene, ENTITIES, body, strlen(body), 400, "VALIDATION_ERROR");
	snprintf(path, sizeof path, ENTITIES "/%s/steps/close", id);
	post(scene, path, "", 0, 404, "NOT_FOUND");
	assert_nothing_changed(scene);

	/* At the limit: 255 bytes, and bytes are what counts. */
	fill(id, 255, 'x');
	scene_create(scene, id);
	snprintf(body, sizeof body, "{\"id\":\"");
	for (int i = 0; i < 128; i++)
		strncat(body, "\xc3\xa9", sizeof body - strlen(body) - 1);
	strncat(body, "\"}", sizeof body - strlen(body) - 1);
	post(scene, ENTITIES, body, strlen(body), 400, "VALIDATION_ERROR");
	post(scene, ENTITIES, "{\"id\":\"a\"}", 10, 409, "ALREADY_EXISTS");
}

/* Names that no store can hold, or that nobody has: the answer does not depend on which store it is. */
static void test_names_in_paths(void **state)
{
	static const struct {
		const char *method, *path;
		int status; /* 0: 400 or 404 */
	} bad[] = {
		{"POST", ENTITIES "/%00/steps/close", 0},
		{"POST", ENTITIES "/a%0ab/steps/close", 0},
		{"POST", ENTITIES "/%ff/steps/close", 0},
		{"POST", ENTITIES "/none/steps/close", 404},
		{"POST", ENTITIES "/A/steps/close", 404},
		{"POST", ENTITIES "/a/steps/cl%00ose", 0},
		{"POST", ENTITIES "/a/steps/%ff", 0},
		{"POST", ENTITIES "/%00/steps/close/resolve", 0},
		{"GET", ENTITIES "/%00", 0},
		{"GET", ENTITIES "/a%00", 0},
		{"GET", ENTITIES "/%ff", 0},
		{"GET", ENTITIES "/%ed%a0%80", 0},
		{"GET", ENTITIES "?status=%00", 0},
		{"GET", ENTITIES "?status=%ff", 0},
		{"GET", ENTITIES "?cursor=%00", 0},
		{"GET", ENTITIES "?cursor=%ff", 0},
		{"GET", "/api/v1/history/entity:billing:%00", 0},
		{"GET", "/api/v1/history/entity:billing:%ff", 0},
		{"GET", "/api/v1/history/%00", 0},
		{"GET", "/api/v1/history/job_zzz", 0},
		{"GET", "/api/v1/jobs?status=%00", 0},
		{"GET", "/api/v1/jobs?status=%ff", 0},
		{"GET", "/api/v1/jobs?cursor=nonsense", 0},
		{"POST", "/api/v1/jobs/nonsense/redrive", 404},
		{"POST", "/api/v1/modules/%00/sweep", 0},
		{"PUT", "/api/v1/definitions/%00", 0},
	};
	struct scene *scene = *state;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct reply *reply = scene_call(scene, 0, bad[i].method, bad[i].path, NULL);
		int status = reply->status;

		if (bad[i].status ? status != bad[i].status : status != 404 && status != 400 && status != 422)
			fail_msg("%s %s: %d %s", bad[i].method, bad[i].path, status, reply->body);
	}
	assert_nothing_changed(scene);
}

/* The same for who is asking. */
static void test_names_in_headers(void **state)
{
	static const char *const paths[] = {
		"POST " CLOSE,
		"POST " ENTITIES,
		"GET " ENTITIES,
		"GET " ENTITIES "/a",
		"GET /api/v1/history/entity:billing:a",
		"GET /api/v1/jobs",
	};
	static const char *const names[] = {"\xff", "\xc3", "\xed\xa0\x80"};
	struct scene *scene = *state;
	char request[400];

	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
		for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
			snprintf(request, sizeof request,
				 "%s HTTP/1.1\r\nHost: localhost\r\nHapax-Workspace: %s\r\nContent-Length: 0\r\n\r\n",
				 paths[i], names[n]);
			reply_release(&scene->last);
			assert_true(client_raw(scene->admin[0], request, strlen(request), &scene->last));
			if (scene->last.status != 400)
				fail_msg("%s of workspace \"%s\": %d %s", paths[i], names[n], scene->last.status,
					 scene->last.body);
		}
	assert_nothing_changed(scene);
}

/* ---- who and what ---- */

static void test_requesters(void **state)
{
	struct scene *scene = *state;
	static const char *const nobody[] = {NULL, "clerk", "Admin", "admin2", "default"};
	char long_name[257];
	struct reply reply;

	for (size_t i = 0; i <= sizeof nobody / sizeof *nobody; i++) {
		bool too_long = i == sizeof nobody / sizeof *nobody;
		struct client *client;

		fill(long_name, 256, 'x');
		client = client_new(scene->nodes[0]->port, too_long ? long_name : nobody[i]);
		assert_true(client_call(client, "POST", CLOSE, "", 0, &reply));
		assert_int_equal(reply.status, too_long ? 400 : 403);
		assert_string_equal(reply.code, too_long ? "VALIDATION_ERROR" : "REQUESTER_NOT_ALLOWED");
		reply_release(&reply);
		client_free(client);
	}
	assert_nothing_changed(scene);
}

static void test_steps_and_statuses(void **state)
{
	struct scene *scene = *state;

	post(scene, ENTITIES "/a/steps/open", "", 0, 404, "NOT_FOUND");
	post(scene, ENTITIES "/a/steps/approve", "", 0, 409, "WRONG_STATUS");
	assert_non_null(strcasestr(scene->last.head, "\r\nRetry-After: "));
	post(scene, ENTITIES "/b/steps/close", "", 0, 404, "NOT_FOUND");
	post(scene, "/api/v1/entities/biling/a/steps/close", "", 0, 404, "NOT_FOUND");
	assert_non_null(strstr(scene->last.body, "did you mean \\\"billing\\\"?"));
	post(scene, "/api/v1/nothing", "", 0, 404, "NOT_FOUND");
	scene_must(scene, 0, "DELETE", ENTITIES "/a", NULL, 405, "METHOD_NOT_ALLOWED");
	scene_must(scene, 0, "GET", ENTITIES "?status=opne", NULL, 400, "VALIDATION_ERROR");
	scene_must(scene, 0, "GET", ENTITIES "?limit=0", NULL, 400, "VALIDATION_ERROR");
	scene_must(scene, 0, "GET", ENTITIES "?limit=501", NULL, 400, "VALIDATION_ERROR");
	scene_must(scene, 0, "GET", ENTITIES "?limit=x", NULL, 400, "VALIDATION_ERROR");
	scene_must(scene, 0, "GET", "/api/v1/history/entity:billing:none", NULL, 404, "NOT_FOUND");
	assert_nothing_changed(scene);
}

/* Another workspace has entities of its own, and sees none of this one. */
static void test_workspaces(void **state)
{
	static const char request[] = "POST " CLOSE " HTTP/1.1\r\nHost: localhost\r\nHapax-Requester: admin\r\n"
				      "Hapax-Workspace: other\r\nContent-Length: 0\r\n\r\n";
	struct scene *scene = *state;

	reply_release(&scene->last);
	assert_true(client_raw(scene->admin[0], request, strlen(request), &scene->last));
	assert_int_equal(scene->last.status, 404);
	assert_string_equal(scene->last.code, "NOT_FOUND");
	assert_nothing_changed(scene);
}

/* ---- bodies ---- */

static void test_bodies(void **state)
{
	static const char *const bad[] = {
		"{",
		"}",
		"nonsense",
		"[]",
		"7",
		"null",
		"{\"input\":1,}",
		"{\"input\":01}",
		"{\"input\":\"\\ud800\"}",
		"{\"input\":\"\xff\"}",
		"{\"input\":1} x",
		"{\"inptu\":1}",
		"{\"input\":1,\"more\":2}",
		"{\"input\":1,\"input\":1}",
		"{\"input\":{\"a\":1,\"a\":2}}",
		"{\"input\":1,\"in\\u0070ut\":2}",
		"{\"version\":\"2\"}",
		"{\"version\":2.5}",
		"{\"version\":0}",
		"{\"version\":-1}",
		"{\"version\":null}",
		"{\"version\":true}",
		"{\"version\":[2]}",
		"{\"version\":9223372036854775808}",
		"{\"version\":1e400}",
	};
	struct scene *scene = *state;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		post(scene, CLOSE, bad[i], strlen(bad[i]), 400, "VALIDATION_ERROR");
	post(scene, CLOSE, "{\"input\":\"a\0b\"}", 15, 400, "VALIDATION_ERROR");
	post(scene, CLOSE, "{\"version\":1}", 13, 409, "CONCURRENCY_ERROR");
	post(scene, CLOSE, "{\"version\":3}", 13, 409, "CONCURRENCY_ERROR");
	assert_nothing_changed(scene);
	scene_must(scene, 0, "POST", CLOSE, "{'version':2.0,'input':{'exact':12345678901234567890.10}}", 200, NULL);
	assert_non_null(strstr(service_call(scene->service, "/close", 0).body,
			       "\"input\":{\"exact\":12345678901234567890.10}"));
}

static void test_large_bodies(void **state)
{
	struct scene *scene = *state;
	char *body = malloc(BODY_BYTES_MAX + 2);
	size_t head = strlen("{\"input\":\"");

	assert_non_null(body);
	/* One byte over the limit, in a body that is otherwise good. */
	memset(body, 'x', BODY_BYTES_MAX + 1);
	memcpy(body, "{\"input\":\"", head);
	memcpy(body + BODY_BYTES_MAX - 1, "\"}", 2);
	post(scene, CLOSE, body, BODY_BYTES_MAX + 1, 413, "TOO_LARGE");
	assert_nothing_changed(scene);
	/* At the limit. */
	memcpy(body + BODY_BYTES_MAX - 2, "\"}", 2);
	reply_release(&scene->last);
	assert_true(client_call(scene->admin[0], "POST", CLOSE, body, BODY_BYTES_MAX, &scene->last));
	assert_int_equal(scene->last.status, 200);
	free(body);
}

static void test_deep_bodies(void **state)
{
	struct scene *scene = *state;
	struct strbuf body;

	strbuf_init(&body, BODY_BYTES_MAX);
	strbuf_add_str(&body, "{\"input\":");
	for (int i = 0; i < 40000; i++)
		strbuf_add_char(&body, '[');
	post(scene, CLOSE, body.p, body.n, 400, "VALIDATION_ERROR");
	strbuf_release(&body);
	assert_nothing_changed(scene);
}

/* ---- a definition with a million statuses ---- */

static void add_statuses(struct strbuf *text, int n)
{
	strbuf_add_str(text, "{\"workflow\":\"billing\",\"kind\":\"entity\",\"initial_status\":\"s0\",\"steps\":[],"
			     "\"status_types\":[");
	for (int i = 0; i < n; i++)
		strbuf_addf(text, "%s\"s%d\"", i ? "," : "", i);
	strbuf_add_str(text, "]}");
}

static void put_statuses(struct scene *scene, int n, int status, const char *code)
{
	struct strbuf text;
	struct reply *reply = &scene->last;

	strbuf_init(&text, 64u << 20);
	add_statuses(&text, n);
	reply_release(reply);
	assert_true(client_call(scene->admin[0], "PUT", "/api/v1/definitions/billing", text.p, text.n, reply));
	if (reply->status != status || strcmp(reply->code, code) != 0)
		fail_msg("a definition with %d statuses: %d %.600s", n, reply->status, reply->body);
	printf("# a definition with %d statuses (%zu bytes): %d after %lld ms\n", n, text.n, reply->status,
	       (long long)reply->took_ms);
	assert_true(reply->took_ms < QUICK_MS);
	assert_true(reply->body_n < 100000); /* not one finding for each */
	strbuf_release(&text);
}

static void test_million_statuses(void **state)
{
	struct scene *scene = *state;

	scene_stop(scene, 0);
	scene_configure(scene, "{'modules':{'billing':{'janitor':{}}}}"); /* 16 MiB for a body */
	scene_start(scene, 0);
	put_statuses(scene, STATUSES, 422, "DEFINITION_INVALID");
	assert_non_null(strstr(scene->last.body, "at most 1000"));
	assert_true(reply_count(&scene->last, "findings") >= 1);
	put_statuses(scene, 1001, 422, "DEFINITION_INVALID");
	assert_nothing_changed(scene);
	scene_must(scene, 0, "GET", "/api/v1/definitions", NULL, 200, NULL);
	assert_int_equal(reply_count(&scene->last, "items"), 1);
	assert_int_equal(reply_int(&scene->last, "items.0.version"), 1);
	scene_fire(scene, 0, "a", "close", 200, NULL);
}

/* ---- HTTP that is not well-formed ---- */

static void test_bad_http(void **state)
{
	static const char *const bad[] = {
		"POST " CLOSE
		" HTTP/1.1\r\nHost: localhost\r\nHapax-Requester: admin\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
		"POST " CLOSE
		" HTTP/1.1\r\nHost: localhost\r\nHapax-Requester: admin\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
		"POST " CLOSE
		" HTTP/1.1\r\nHost: localhost\r\nHost: 127.0.0.1\r\nHapax-Requester: admin\r\nContent-Length: 0\r\n\r\n",
		"POST " CLOSE " HTTP/1.1\r\nHost: localhost\r\nHapax-Requester : admin\r\nContent-Length: 0\r\n\r\n",
		"POST " CLOSE
		" HTTP/1.1\r\nHost: localhost\r\nHapax-Requester: ad\r\n min\r\nContent-Length: 0\r\n\r\n",
		"POST " CLOSE " HTTP/1.1\r\nHost: localhost\r\n: admin\r\nContent-Length: 0\r\n\r\n",
		"POST " CLOSE " HTTP/1.1\r\nHost: localhost\r\nHapax-Requester: admin\r\nContent-Length: +2\r\n\r\n{}",
		"POST " CLOSE " HTTP/1.1\nHost: h\nContent-Length: 0\n\n",
		"POST  " CLOSE " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
	};
	struct scene *scene = *state;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		reply_release(&scene->last);
		if (!client_raw(scene->admin[0], bad[i], strlen(bad[i]), &scene->last))
			fail_msg("%s: no answer", bad[i]);
		if (scene->last.status != 400 || !strcasestr(scene->last.head, "\r\nConnection: close"))
			fail_msg("%s: %s", bad[i], scene->last.head);
	}
	assert_nothing_changed(scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_ids, set_up, scene_tear_down),
		{"test_ids on PostgreSQL", test_ids, set_up_postgres, scene_tear_down, NULL},
		cmocka_unit_test_setup_teardown(test_names_in_paths, set_up, scene_tear_down),
		{"test_names_in_paths on PostgreSQL", test_names_in_paths, set_up_postgres, scene_tear_down, NULL},
		cmocka_unit_test_setup_teardown(test_names_in_headers, set_up, scene_tear_down),
		{"test_names_in_headers on PostgreSQL", test_names_in_headers, set_up_postgres, scene_tear_down, NULL},
		cmocka_unit_test_setup_teardown(test_requesters, set_up, scene_tear_down),
		cmocka_unit_test_setup_teardown(test_steps_and_statuses, set_up, scene_tear_down),
		cmocka_unit_test_setup_teardown(test_workspaces, set_up, scene_tear_down),
		cmocka_unit_test_setup_teardown(test_bodies, set_up, scene_tear_down),
		{"test_bodies on PostgreSQL", test_bodies, set_up_postgres, scene_tear_down, NULL},
		cmocka_unit_test_setup_teardown(test_large_bodies, set_up, scene_tear_down),
		cmocka_unit_test_setup_teardown(test_deep_bodies, set_up, scene_tear_down),
		cmocka_unit_test_setup_teardown(test_million_statuses, set_up, scene_tear_down),
		cmocka_unit_test_setup_teardown(test_bad_http, set_up, scene_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
