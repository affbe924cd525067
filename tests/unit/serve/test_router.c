/* Router: which route a request goes to, what its parameters are, and what is refused on the way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "serve/problem.h"
#include "serve/router.h"
#include "unit/serve/desk.h"

/* Answers with the pattern and the parameters it was called with. */
static void show(struct http_call *call)
{
	struct strbuf sb;

	strbuf_init(&sb, 4096);
	strbuf_addf(&sb, "%s %s", call->route->method, call->route->pattern);
	for (size_t i = 0; i < ROUTE_PARAMS_MAX && call->params[i].p; i++)
		strbuf_addf(&sb, " <%.*s>", SLICE_ARGS(call->params[i]));
	for (size_t i = 0; i < call->query.n; i++)
		strbuf_addf(&sb, " %.*s=<%.*s>", SLICE_ARGS(call->query.params[i].name),
			    SLICE_ARGS(call->query.params[i].value));
	http_respond(call->exchange, &(struct http_answer){.status = 200, .body = strbuf_slice(&sb)});
	strbuf_release(&sb);
}

static void show_named(struct http_call *call)
{
	struct slice id = call_param(call, "id"), step = call_param(call, "step_key");
	char text[200];
	int n = snprintf(text, sizeof text, "id <%.*s> step <%.*s>", SLICE_ARGS(id), SLICE_ARGS(step));

	http_respond(call->exchange, &(struct http_answer){.status = 200, .body = slice_of(text, (size_t)n)});
}

static void show_wait(struct http_call *call)
{
	struct hx_error err;
	struct slice wait;

	if (query_get(&call->query, "wait", &err, &wait) != HX_OK)
		http_respond_error(call->exchange, &err);
	else
		http_respond(call->exchange,
			     &(struct http_answer){.status = 200, .body = wait.p ? wait : slice_str("absent")});
}

static const struct route routes[] = {
	{"GET", "/", show, ROUTE_PUBLIC, .summary = "The root."},
	{"GET", "/jobs/{id}", show, ROUTE_READ, .summary = "A job."},
	{"POST", "/jobs/claim", show, ROUTE_EXECUTE, .summary = "Claims jobs."},
	{"GET", "/jobs/mine", show, ROUTE_READ, .summary = "My jobs."},
	{"DELETE", "/jobs/{id}", show, ROUTE_ADMIN, .summary = "Deletes a job."},
	{"POST", "/{any}/claim", show, ROUTE_EXECUTE, .summary = "Claims anything."},
	{"POST", "/entities/{workflow}/{id}/steps/{step_key}", show_named, ROUTE_EXECUTE, .summary = "Fires a step."},
	{"GET", "/wait", show_wait, ROUTE_READ, .summary = "Waits."},
};

static struct desk desk;
static struct router *router;
static bool admits = true;

static bool admit(struct http_call *call)
{
	if (!admits)
		http_respond_code(call->exchange, HX_FORBIDDEN, call->route->summary);
	return admits;
}

static int set_up(void **state)
{
	(void)state;
	router = router_new(routes, sizeof routes / sizeof *routes, admit, NULL);
	desk_open(&desk, router_handle, router);
	return router ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	desk_close(&desk);
	router_free(router);
	return 0;
}

static const char *ask(const char *method, const char *target)
{
	char head[600];

	snprintf(head, sizeof head, "%s %s HTTP/1.1\r\nHost: a\r\n", method, target);
	return desk_ask(&desk, head, "");
}

static int status_of(const char *answer)
{
	return (int)strtol(answer + 9, NULL, 10);
}

static const char *body_of(const char *answer)
{
	return strstr(answer, "\r\n\r\n") + 4;
}

static void expect_body(const char *method, const char *target, const char *body)
{
	const char *answer = ask(method, target);

	assert_int_equal(status_of(answer), 200);
	assert_string_equal(body_of(answer), body);
}

static void expect_code(const char *method, const char *target, int status, const char *code)
{
	const char *answer = ask(method, target);

	if (status_of(answer) != status || !strstr(answer, code))
		fail_msg("%s %s: %s", method, target, answer);
}

static void literals_win_over_parameters(void **state)
{
	(void)state;
	expect_body("GET", "/", "GET /");
	expect_body("GET", "/jobs/7", "GET /jobs/{id} <7>");
	expect_body("GET", "/jobs/mine", "GET /jobs/mine");
	expect_body("DELETE", "/jobs/mine", "DELETE /jobs/{id} <mine>");
	expect_body("POST", "/jobs/claim", "POST /jobs/claim");
	expect_body("POST", "/runs/claim", "POST /{any}/claim <runs>");
	expect_body("GET", "/jobs/claim", "GET /jobs/{id} <claim>");
}

static void unknown_paths_and_methods(void **state)
{
	const char *answer;

	(void)state;
	expect_code("GET", "/nothing", 404, "NOT_FOUND");
	expect_code("GET", "/jobs", 404, "NOT_FOUND");
	expect_code("GET", "/jobs/", 404, "NOT_FOUND");
	expect_code("GET", "/jobs/7/", 404, "NOT_FOUND");
	expect_code("GET", "//jobs/7", 404, "NOT_FOUND");
	expect_code("GET", "/JOBS/7", 404, "NOT_FOUND");
	expect_code("GET", "/j%6fbs/7", 404, "NOT_FOUND"); /* literals are compared as they were sent */
	expect_code("OPTIONS", "*", 404, "NOT_FOUND");
	expect_code("GET", "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18", 404, "NOT_FOUND");
	answer = ask("PUT", "/jobs/7");
	assert_int_equal(status_of(answer), 405);
	assert_non_null(strstr(answer, "\r\nAllow: GET, HEAD, DELETE\r\n"));
	assert_non_null(strstr(answer, "METHOD_NOT_ALLOWED"));
	answer = ask("GET", "/runs/claim");
	assert_non_null(strstr(answer, "\r\nAllow: POST\r\n"));
	expect_code("BREW", "/jobs/7", 501, "NOT_IMPLEMENTED");
	expect_code("get", "/jobs/7", 501, "NOT_IMPLEMENTED");
}

static void head_is_served_by_get(void **state)
{
	const char *answer = ask("HEAD", "/jobs/7");

	(void)state;
	assert_int_equal(status_of(answer), 200);
	assert_string_equal(body_of(answer), "");
	assert_non_null(strstr(answer, "\r\nContent-Length: 18\r\n"));
	assert_int_equal(status_of(ask("HEAD", "/runs/claim")), 405);
}

static void parameters_are_decoded_strictly(void **state)
{
	(void)state;
	expect_body("GET", "/jobs/a%20b%2Fc", "GET /jobs/{id} <a b/c>");
	expect_body("GET", "/jobs/..", "GET /jobs/{id} <..>");
	expect_body("GET", "/jobs/%2e%2E", "GET /jobs/{id} <..>");
	expect_body("GET", "/jobs/a+b", "GET /jobs/{id} <a+b>");
	expect_body("GET", "/jobs/%C3%A4", "GET /jobs/{id} <\xc3\xa4>");
	expect_body("POST", "/entities/w%25/1:2/steps/s", "id <1:2> step <s>");
	expect_code("GET", "/jobs/%00", 400, "VALIDATION_ERROR");
	expect_code("GET", "/jobs/a%00b", 400, "VALIDATION_ERROR");
	expect_code("GET", "/jobs/%ff", 400, "VALIDATION_ERROR");
	expect_code("GET", "/jobs/%c0%80", 400, "VALIDATION_ERROR");
	expect_code("GET", "/jobs/%ED%A0%80", 400, "VALIDATION_ERROR");
}

static void queries_are_decoded_strictly(void **state)
{
	struct strbuf sb;

	(void)state;
	expect_body("GET", "/?a=1&b=x%20y+z&&c&d=&=e&a=2", "GET / a=<1> b=<x y z> c=<> d=<> =<e> a=<2>");
	expect_body("GET", "/?a=b=c?d", "GET / a=<b=c?d>");
	expect_body("GET", "/?", "GET /");
	expect_body("GET", "/wait?wait=30s", "30s");
	expect_body("GET", "/wait?Wait=30s", "absent");
	expect_body("GET", "/wait?wait", "");
	expect_code("GET", "/wait?wait=1s&wait=1s", 400, "more than once");
	expect_code("GET", "/wait?w%61it=1s&wait=1s", 400, "more than once");
	expect_code("GET", "/?a=%", 400, "VALIDATION_ERROR");
	expect_code("GET", "/?a=%4", 400, "VALIDATION_ERROR");
	expect_code("GET", "/?%zz=1", 400, "VALIDATION_ERROR");
	expect_code("GET", "/?a=%00", 400, "VALIDATION_ERROR");
	expect_code("GET", "/?a=%ff", 400, "VALIDATION_ERROR");
	strbuf_init(&sb, 4096);
	strbuf_add_str(&sb, "/?");
	for (int i = 0; i < QUERY_PARAMS_MAX; i++)
		strbuf_add_str(&sb, "&a");
	assert_int_equal(status_of(ask("GET", sb.p)), 200);
	strbuf_add_str(&sb, "&a");
	assert_int_equal(status_of(ask("GET", sb.p)), 400);
	strbuf_release(&sb);
}

static void who_is_not_admitted_reaches_no_handler(void **state)
{
	(void)state;
	admits = false;
	expect_code("GET", "/jobs/7", 403, "A job.");
	expect_code("GET", "/nothing", 404, "NOT_FOUND");
	admits = true;
}

static void a_request_with_too_little_memory_is_refused(void **state)
{
	(void)state;
	for (size_t room = 0; room < 400; room += 16) {
		desk_load(&desk, "GET /jobs/a%20b?c=%20 HTTP/1.1\r\nHost: a\r\n", slice_str(""));
		desk.exchange->arena.max_bytes = desk.exchange->arena.used_bytes + room;
		exchange_hand_over(desk.exchange);
		assert_int_equal(desk.exchange->phase, EXCHANGE_ANSWERED);
		assert_false(desk.exchange->failed);
		assert_true(status_of(desk.exchange->out.p) == 200 || status_of(desk.exchange->out.p) >= 400);
		desk.exchange->arena.max_bytes = desk.server->options.arena_bytes_max;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(literals_win_over_parameters),
		cmocka_unit_test(unknown_paths_and_methods),
		cmocka_unit_test(head_is_served_by_get),
		cmocka_unit_test(parameters_are_decoded_strictly),
		cmocka_unit_test(queries_are_decoded_strictly),
		cmocka_unit_test(who_is_not_admitted_reaches_no_handler),
		cmocka_unit_test(a_request_with_too_little_memory_is_refused),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
