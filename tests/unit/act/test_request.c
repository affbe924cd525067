/* Requests to services as they are: what an http action makes of its envelope, and what it keeps of the reply. */
#include "act/request.h"

#include "support/must_hold.h"
#include "unit/act/upstream.h"
#include "unit/model/definition.h"

#define OK_JSON                                                                                                        \
	"HTTP/1.1 201 Made\r\nContent-Length: 28\r\nX-Rate: 9\r\nx-rate: 8\r\n\r\n{\"id\":\"ch_1\",\"amount\":12.50}"
#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char envelope[] =
	"{\"workflow\":\"w\",\"id\":\"run_1\",\"step\":\"pay\",\"requester\":\"default\",\"input\":{\"id\":\"a/b c\","
	"\"n\":7,\"up\":\"..\",\"none\":\"\",\"line\":\"a\\nb\",\"way\":\"x/y z\",\"tags\":[\"p\",\"q&r\"],"
	"\"deep\":{\"k\":{\"v\":true}},\"rows\":[{\"s\":1},{\"s\":2}],\"secret\":\"${env:HOME}\"},\"data\":{\"quote\":3}}";

static const struct action *action_of(const char *fields, const char *url)
{
	return &parse_clean(
			text_printf(
				&arena,
				"{ 'workflow': 'w', 'kind': 'entity', 'status_types': ['a'], 'initial_status': 'a', "
				"'steps': [], 'actions': { 'A': { 'kind': 'http', 'url': '%s', %s } } }",
				url, fields))
			->actions[0];
}

static enum hx_code build(const char *fields, const char *url, struct request *ret, struct strbuf *made,
			  struct hx_error *err)
{
	static struct job job;
	const char *target = strchr(url + 8, '/');

	job = (struct job){.action = action_of(fields, url),
			   .call = {.input = slice_str(envelope), .key = slice_str("k-1")}};
	strbuf_init(made, REQUEST_BODY_BYTES_MAX);
	return request_build(&job, slice_str(target ? target : "/"), &arena, made, ret, err);
}

static const struct {
	const char *fields, *url, *method, *target, *body, *type;
} made_of[] = {
	{"'timeout': '1s'", "http://h/x?q=1", "POST", "/x?q=1", envelope, "application/json"},
	{"'method': 'PUT', 'body': '{a: .input.n, k: .key}'", "http://h", "PUT", "/", "{\"a\":7,\"k\":\"k-1\"}",
	 "application/json"},
	{"'method': 'GET', 'path': '/o/{.input.id}/{.input.n}.json'", "http://h/v1/", "GET", "/v1/o/a%2Fb%20c/7.json",
	 "", NULL},
	{"'path': '[\\\"o\\\", .input.id, .input.n]'", "http://h/v1", "POST", "/v1/o/a%2Fb%20c/7", envelope,
	 "application/json"},
	{"'path': '.input.way'", "http://h/v1", "POST", "/v1/x/y%20z", envelope, "application/json"},
	{"'path': '[]'", "http://h", "POST", "/", envelope, "application/json"},
	{"'method': 'DELETE', 'path': '/{(.state.quote)}'", "http://h/?a=b", "DELETE", "/3?a=b", "", NULL},
	{"'method': '(\\\"PATCH\\\")', 'body': 'null'", "http://h", "PATCH", "/", "", NULL},
	{"'query': '{q: .input.id, tags: .input.tags, none: null, deep: .input.deep}'", "http://h/s", "POST",
	 "/s?q=a%2Fb%20c&tags=p&tags=q%26r&deep%5Bk%5D%5Bv%5D=true", envelope, "application/json"},
	{"'query': { 'q': '.input.n', 'r': 1 }, 'method': 'GET'", "http://h/s?a=1", "GET", "/s?a=1&q=7&r=1", "", NULL},
	{"'query': '{q: null}', 'method': 'HEAD'", "http://h/s", "HEAD", "/s", "", NULL},
	{"'form': '{amount: .input.n, \\\"to[]\\\": .input.tags, rows: .input.rows, text: .input.line}'", "http://h",
	 "POST", "/", "amount=7&to%5B%5D=p&to%5B%5D=q%26r&rows%5B0%5D%5Bs%5D=1&rows%5B1%5D%5Bs%5D=2&text=a%0Ab",
	 "application/x-www-form-urlencoded"},
	{"'form': { 'a': { 'b': '.id' } }", "http://h", "POST", "/", "a%5Bb%5D=run_1",
	 "application/x-www-form-urlencoded"},
};

static void what_is_made_of_the_envelope(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(made_of); i++) {
		struct request request;
		struct strbuf made;
		struct hx_error err;

		if (build(made_of[i].fields, made_of[i].url, &request, &made, &err))
			fail_msg("%s: %s", made_of[i].fields, err.detail);
		if (!slice_is(request.method, made_of[i].method) || !slice_is(request.target, made_of[i].target) ||
		    !slice_is(request.body, made_of[i].body))
			print_message("%s: %.*s %.*s %.*s\n", made_of[i].fields, SLICE_ARGS(request.method),
				      SLICE_ARGS(request.target), SLICE_ARGS(request.body));
		MUST_HOLD(slice_is(request.target, made_of[i].target), "a value is more than one value of the address");
		assert_true(slice_is(request.method, made_of[i].method) && slice_is(request.body, made_of[i].body));
		assert_true(!request.content_type == !made_of[i].type);
		if (request.content_type)
			assert_string_equal(request.content_type, made_of[i].type);
		strbuf_release(&made);
	}
}

/* With these the request would be another one than the definition shows. */
static const struct {
	const char *fields, *why;
} never[] = {
	{"'path': '/o/{.input.up}'", "path: a segment of dots leads elsewhere"},
	{"'path': '/o/{.input.none}'", "path: a value is empty"},
	{"'path': '/o/{.input.line}'", "path: a value holds a control character"},
	{"'path': '/o/{.input.deep}'", "path: a value is neither a text nor a number"},
	{"'path': '/o/{.input.nothing}'", "path: a value is neither a text nor a number"},
	{"'path': '.input.line'", "path: a value holds a control character"},
	{"'path': '[\\\"..\\\", .input.n]'", "path: a segment of dots leads elsewhere"},
	{"'path': '.input.n'", "path: it is neither a text nor an array of segments"},
	{"'query': '{a: .input.line}'", "query: a value holds a control character"},
	{"'query': '.input.n'", "query: it is no object"},
	{"'form': '.input.tags'", "form: it is no object"},
	{"'method': '.input.id'", "method: it is none of"},
	{"'body': '.input.id.x'", "body: column"},
	{"'headers': '.input.n'", "headers: it is no object"},
	{"'headers': { 'X-A': '.input.deep' }", "X-A: its value is neither a text nor a number"},
};

static void what_is_never_sent(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(never); i++) {
		struct request request;
		struct strbuf made;
		struct hx_error err;

		MUST_HOLD(build(never[i].fields, "http://h/base", &request, &made, &err) == HX_CONFIG_ERROR,
			  "a request is made that the definition does not show");
		if (!strstr(err.detail, never[i].why))
			fail_msg("%s: %s", never[i].fields, err.detail);
		strbuf_release(&made);
	}
}

static const struct {
	const char *fields, *why;
} refused[] = {
	{"'method': 'BREW'", "BREW"},
	{"'body': '.inpt'", "input"},
	{"'output': '.bdy'", "body"},
	{"'output': '.input'", "output"},
	{"'path': '/a?b'", "path: it has a character that no path has"},
	{"'path': '/a{.input.n'", "path: a { is never closed"},
	{"'body': '.input', 'form': '.input'", "a request has \"body\" or \"form\", not both"},
	{"'method': 'GET', 'body': '.input'", "a GET has no body: use \"query\""},
	{"'headers': { 'Hapax-Fence': '.input.n' }", "Hapax-Fence"},
	{"'headers': { 'X': '.input.(' }", "headers: column"},
	{"'query': [1]", "query must be a string"},
};

static void what_a_definition_may_not_say(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(refused); i++) {
		assert_errors(
			text_printf(
				&arena,
				"{ 'workflow': 'w', 'kind': 'entity', 'status_types': ['a'], 'initial_status': 'a', "
				"'steps': [], 'actions': {\n'A': { 'kind': 'http', 'url': 'http://h', %s } } }",
				refused[i].fields),
			1);
		assert_said("w.json:2: error: workflow w: ", "action A", refused[i].why, NULL);
	}
}

static const char *line(const struct upstream *u, const char *begin)
{
	return strstr(u->last, begin);
}

/* Over a real connection: the host and the engine's own headers stay, what an expression gives is filled in nowhere. */
static void what_the_service_sees(void **state)
{
	static const struct page pages[] = {{"/v1/charges", PAGE_REPLY, OK_JSON}, {0}};
	struct act_call call = {.input = slice_str(envelope), .key = slice_str("k-1"), .attempt = 2};
	struct upstream u;
	struct desk desk;
	char url[128];

	(void)state;
	upstream_open(&u, pages);
	desk_open(&desk, &(struct port_options){0});
	(void)upstream_action(&u, "/v1", url);
	const struct action *action = action_of(
		"'method': 'PUT', 'path': '/charges', 'form': '{amount: .input.n}', "
		"'headers': { 'X-Tenant': '.input.secret', 'X-None': '.input.no', 'Accept': '*/*' }, "
		"'output': '{id: .body.id, amount: .body.amount, rate: .headers[\\\"x-rate\\\"], s: .status}'",
		url);

	desk_expect(desk_wait(&desk, desk_start(&desk, action, call)), ACT_OK,
		    "{\"id\":\"ch_1\",\"amount\":12.50,\"rate\":\"9, 8\",\"s\":201}");
	assert_memory_equal(u.last, "PUT /v1/charges HTTP/1.1\r\n", 26);
	assert_non_null(line(&u, "\r\nContent-Type: application/x-www-form-urlencoded\r\n"));
	assert_non_null(line(&u, "\r\nIdempotency-Key: k-1\r\n"));
	assert_non_null(line(&u, "\r\nHapax-Attempt: 2\r\n"));
	assert_non_null(line(&u, "\r\nX-Tenant: ${env:HOME}\r\n"));
	assert_non_null(line(&u, "\r\nAccept: */*\r\n"));
	assert_null(line(&u, "X-None"));
	assert_string_equal(line(&u, "\r\n\r\n") + 4, "amount=7");

	/* Names that an expression gives are not the engine's. */
	action = action_of("'path': '/charges', 'headers': '{\\\"X-B\\\": .input.n, \\\"hapax-fence\\\": \\\"9\\\"}'",
			   url);
	desk_expect(desk_wait(&desk, desk_start(&desk, action, call)), ACT_FAILED_FOR_GOOD,
		    "nothing was sent: header hapax-fence: it is written by the engine");
	action = action_of("'path': '/charges', 'headers': { 'Host': '.input.way' }", url);
	desk_expect(desk_wait(&desk, desk_start(&desk, action, call)), ACT_FAILED_FOR_GOOD,
		    "header Host: it is written");
	action = action_of("'path': '/charges', 'headers': '{\\\"X-B\\\": .input.line}'", url);
	desk_expect(desk_wait(&desk, desk_start(&desk, action, call)), ACT_FAILED_FOR_GOOD, "control character");

	/* It was done, but what the definition wants is not in the reply. */
	action = action_of("'path': '/charges', 'output': '.body.id.deep'", url);
	desk_expect(desk_wait(&desk, desk_start(&desk, action, call)), ACT_UNKNOWN, "HTTP 201, but its output: column");
	desk_close(&desk);
	upstream_close(&u);
}

/* Of a try before, which may have been done, a request that cannot be made says nothing: the key stays what it is. */
static void what_was_not_sent_is_no_answer_in_doubt(void **state)
{
	static const struct page pages[] = {{"/x", PAGE_REPLY, OK_JSON}, {0}};
	struct act_call call = {.input = slice_str(envelope), .key = slice_str("k-1")};
	const struct action *action;
	struct upstream u;
	struct desk desk;
	char url[128];

	(void)state;
	upstream_open(&u, pages);
	desk_open(&desk, &(struct port_options){0});
	(void)upstream_action(&u, "/x", url);
	action = action_of("'headers': { 'X-T': '${file:/nonexistent/secret}' }", url);
	desk_expect(desk_wait(&desk, desk_start(&desk, action, call)), ACT_FAILED_FOR_GOOD, "nothing was sent");
	call.in_doubt = true;
	MUST_HOLD(desk_wait(&desk, desk_start(&desk, action, call))->outcome == ACT_FAILED,
		  "a call that was not sent answers for one that may have been done");
	desk_close(&desk);
	upstream_close(&u);
}

static void a_text_is_a_string(void **state)
{
	static const struct page pages[] = {
		{"/t", PAGE_REPLY, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"}, {0}};
	struct upstream u;
	struct desk desk;
	char url[128];

	(void)state;
	upstream_open(&u, pages);
	desk_open(&desk, &(struct port_options){0});
	(void)upstream_action(&u, "/t", url);
	const struct action *action = action_of("'method': 'GET', 'output': '{said: .body, well: (.status == 200)}'",
						url);

	desk_expect(desk_wait(&desk, desk_start(&desk, action, (struct act_call){.input = slice_str("{}")})), ACT_OK,
		    "{\"said\":\"ok\",\"well\":true}");
	assert_memory_equal(u.last, "GET /t HTTP/1.1\r\n", 17);
	assert_null(line(&u, "Content-"));
	desk_close(&desk);
	upstream_close(&u);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_made_of_the_envelope, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_never_sent, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_a_definition_may_not_say, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_the_service_sees, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_was_not_sent_is_no_answer_in_doubt, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_text_is_a_string, set_up, tear_down),
	};

	ONLY_THE_NAMED(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
