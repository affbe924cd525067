/*
 * hx_call() and its sisters: the API in a program, without a socket, waited for and in an event loop of the program's own; on SQLite
 * and on PostgreSQL.
 */
#include <poll.h>

#include "unit/engine/embed_test.h"

#define LOGGED_MAX 20000

static struct hx_answer *answer;
static char logged[LOGGED_MAX];

static enum hx_code call(const char *method, const char *path, const char *body)
{
	struct hx_call_request request = {HX_SIZE(hx_call_request), method, path, body};

	hx_answer_free(answer);
	return hx_call(engine, NULL, &request, &answer, &error);
}

static void says(const char *words)
{
	if (!answer || !strstr(answer->body, words))
		fail_msg("%s is not in %d %s", words, answer ? answer->status : 0, answer ? answer->body : "");
	assert_int_equal(strlen(answer->body), answer->body_bytes);
}

static void must_say(const char *method, const char *path, const char *body, const char *words)
{
	must(call(method, path, body));
	says(words);
}

static int end_call(void **state)
{
	hx_answer_free(answer);
	answer = NULL;
	return tear_down(state);
}

/* The text of a member, up to the next quote. */
static const char *member(const char *name)
{
	static char text[200];
	const char *at = strstr(answer->body, name);

	assert_non_null(at);
	snprintf(text, sizeof text, "%.*s", (int)strcspn(at + strlen(name), "\",}"), at + strlen(name));
	return text;
}

static void lists_and_history(void **state)
{
	char id[64], path[200];

	(void)state;
	assert_true(start(&one_order, id));
	completes(id);
	must_say("GET", "/api/v1/workflow-runs?definitionId=order&limit=1", NULL, id);
	snprintf(path, sizeof path, "/api/v1/history/%s", id);
	must_say("GET", path, NULL, "COMPLETED");
	snprintf(path, sizeof path, "/api/v1/why/%s", id);
	must_say("GET", path, NULL, "reason");
	must_say("GET", "/api/v1/attention", NULL, "items");
	must_say("GET", "/api/v1/batches", NULL, "\"items\":[]");
	must_say("GET", "/metrics", NULL, "hapax_runs_created_total 1");
	must_say("GET", "/readyz", NULL, "");
	assert_int_equal(answer->status, 200);
}

static void a_job_is_worked_on(void **state)
{
	char id[100], path[200], body[400], fence[100];

	(void)state;
	must_say("POST", "/api/v1/jobs", "{\"queue\":\"mail\",\"payload\":{\"n\":7}}", "job_");
	must_say("POST", "/api/v1/jobs/claim", "{\"queues\":[\"mail\"],\"owner\":\"me\",\"leaseMs\":30000}",
		 "{\"n\":7}");
	snprintf(id, sizeof id, "%s", member("\"id\":\""));
	snprintf(fence, sizeof fence, "%s", member("\"fence\":"));
	snprintf(body, sizeof body, "{\"owner\":\"me\",\"fence\":%s,\"leaseMs\":30000}", fence);
	snprintf(path, sizeof path, "/api/v1/jobs/%s/heartbeat", id);
	must_say("POST", path, body, "leaseUntil");
	snprintf(body, sizeof body, "{\"owner\":\"me\",\"fence\":%s,\"error\":\"no paper\",\"retryable\":false}",
		 fence);
	snprintf(path, sizeof path, "/api/v1/jobs/%s/fail", id);
	must_say("POST", path, body, "PARKED");
	must_say("GET", "/api/v1/attention", NULL, id);
	must(hx_job_redrive(engine, NULL, id, NULL, &error));
	assert_int_equal(hx_job_redrive(engine, NULL, id, NULL, &error), HX_WRONG_STATUS);
	assert_int_equal(hx_job_redrive(engine, NULL, "job_0", NULL, &error), HX_NOT_FOUND);
	must_say("POST", "/api/v1/jobs/claim", "{\"queues\":[\"mail\"],\"owner\":\"me\",\"leaseMs\":30000}", id);
	snprintf(body, sizeof body, "{\"owner\":\"me\",\"fence\":%s,\"output\":1}", member("\"fence\":"));
	snprintf(path, sizeof path, "/api/v1/jobs/%s/complete", id);
	must_say("POST", path, body, "COMPLETED");
}

static void a_workspace_is_its_own(void **state)
{
	struct hx_caller other = {HX_SIZE(hx_caller), .workspace = "other", .requester = "me"};
	struct hx_call_request request = {HX_SIZE(hx_call_request), "GET", "/api/v1/workflow-runs"};
	char id[64];

	(void)state;
	assert_true(start(&one_order, id));
	must(hx_call(engine, &other, &request, &answer, &error));
	says("\"items\":[]");
}

static void a_key_makes_it_one_call(void **state)
{
	struct hx_call_request request = {HX_SIZE(hx_call_request), "POST", "/api/v1/jobs",
					  "{\"queue\":\"mail\",\"payload\":1}", .key = "once"};
	struct hx_answer *again;

	(void)state;
	must(hx_call(engine, NULL, &request, &answer, &error));
	must(hx_call(engine, NULL, &request, &again, &error));
	assert_string_equal(answer->body, again->body);
	hx_answer_free(again);
	request.body = "{\"queue\":\"mail\",\"payload\":2}";
	assert_int_equal(hx_call(engine, NULL, &request, &again, &error), HX_FINGERPRINT_MISMATCH);
	assert_int_equal(again->status, 422);
	hx_answer_free(again);
}

static void nonsense_is_told(void **state)
{
	struct hx_call_request none = {.method = "GET", .path = "/api/v1/jobs"};

	(void)state;
	assert_int_equal(call("GET", "/api/v1/jobs/job_0", NULL), HX_NOT_FOUND);
	assert_string_equal(error.detail, "there is no such job");
	says("\"code\":\"NOT_FOUND\"");
	assert_int_equal(call("GET", "/nowhere", NULL), HX_NOT_FOUND);
	assert_int_equal(call("PUT", "/api/v1/jobs", NULL), HX_METHOD_NOT_ALLOWED);
	assert_int_equal(call("POST", "/api/v1/jobs", "{"), HX_VALIDATION_ERROR);
	assert_int_equal(call("GET", "/api/v1/jobs\r\nX: y", NULL), HX_VALIDATION_ERROR);
	assert_null(answer);
	assert_int_equal(call("GET", "/api/v1/%zz/x", NULL), HX_BAD_REQUEST);
	assert_int_equal(call("GET /", "/", NULL), HX_VALIDATION_ERROR);
	assert_int_equal(call("GET", "jobs", NULL), HX_VALIDATION_ERROR);
	assert_int_equal(hx_call(engine, NULL, &none, &answer, &error), HX_VALIDATION_ERROR);
}

/* ---- in an event loop ---- */

static struct {
	size_t n;
	pthread_t thread;
	enum hx_code code;
	int status;
} ended;

static void on_done(void *data, enum hx_code code, struct hx_answer *got)
{
	assert_ptr_equal(data, &ended);
	ended.n++;
	ended.thread = pthread_self();
	ended.code = code;
	ended.status = got ? got->status : 0;
	hx_answer_free(got);
}

static void begin_call(const char *path)
{
	struct hx_call_request request = {HX_SIZE(hx_call_request), "GET", path};

	must(hx_call_start(engine, NULL, &request, on_done, &ended, &error));
}

static void calls_end_in_the_callers_thread(void **state)
{
	struct pollfd fd = {.events = POLLIN};
	char id[64], path[200];

	(void)state;
	memset(&ended, 0, sizeof ended);
	fd.fd = hx_engine_fd(engine);
	assert_true(fd.fd >= 0);
	assert_int_equal(poll(&fd, 1, 0), 0);
	assert_int_equal(hx_engine_dispatch(engine), 0);
	shut(true);
	assert_true(start(&one_order, id));
	snprintf(path, sizeof path, "/api/v1/workflow-runs/%s?wait=30s", id);
	begin_call(path);
	begin_call("/api/v1/jobs/job_0");
	assert_int_equal(poll(&fd, 1, DEADLINE_MS), 1);
	assert_int_equal(ended.n, 0); /* nothing happens but in a dispatch */
	assert_int_equal(hx_engine_dispatch(engine), 1);
	assert_int_equal(ended.code, HX_NOT_FOUND);
	assert_int_equal(ended.status, 404);
	assert_int_equal(poll(&fd, 1, 0), 0);
	shut(false);
	assert_int_equal(poll(&fd, 1, DEADLINE_MS), 1);
	assert_int_equal(hx_engine_dispatch(engine), 1);
	assert_int_equal(ended.code, HX_OK);
	assert_true(pthread_equal(ended.thread, pthread_self()));
	assert_int_equal(ended.n, 2);
}

/* Each that was begun is told once, also by the close. */
static void a_close_tells_the_rest(void **state)
{
	char id[64], path[200];

	(void)state;
	memset(&ended, 0, sizeof ended);
	must(hx_engine_define(engine, "nap",
			      "{\"workflow\": \"nap\", \"kind\": \"run\","
			      " \"steps\": [{\"name\": \"n\", \"type\": \"wait\", \"for\": \"1h\"}]}",
			      &error));
	assert_true(start(&(struct hx_run_request){HX_SIZE(hx_run_request), .workflow = "nap"}, id));
	snprintf(path, sizeof path, "/api/v1/workflow-runs/%s?wait=60s", id);
	begin_call(path);
	begin_call("/api/v1/jobs");
	close_engine();
	assert_int_equal(ended.n, 2);
	must(try_open(store->url, 1, &engine));
}

/* ---- the log, and threads ---- */

static void on_log(void *data, const char *line)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&mutex);
	assert_ptr_equal(data, logged);
	assert_null(strchr(line, '\n'));
	strncat(logged, line, sizeof logged - strlen(logged) - 2);
	pthread_mutex_unlock(&mutex);
}

static void the_log_may_be_a_function(void **state)
{
	struct hx_native natives[] = {{"charge", charge, &bank}};
	struct hx_engine_options options = {HX_SIZE(hx_engine_options), .natives = natives, .natives_n = 1};
	char id[64];

	(void)state;
	close_engine();
	logged[0] = '\0';
	options.store = store->url;
	options.on_log = on_log;
	options.data = logged;
	options.native_threads = 65;
	assert_int_equal(hx_engine_open(&options, &engine, &error), HX_VALIDATION_ERROR);
	options.native_threads = 1;
	must(hx_engine_open(&options, &engine, &error));
	bank.says[0] = HX_NATIVE_FAILED_FOR_GOOD;
	assert_true(start(&one_order, id));
	AWAIT(DEADLINE_MS, is_at(id, "FAILED"));
	close_engine();
	assert_non_null(strstr(logged, "{\"time\":"));
	assert_non_null(strstr(logged, "a run has failed"));
	must(try_open(store->url, 1, &engine));
}

/* So many functions run at once as were asked for. */
static void the_threads_are_as_many_as_wanted(void **state)
{
	struct hx_native natives[] = {{"charge", charge, &bank}};
	struct hx_engine_options options = {HX_SIZE(hx_engine_options), .natives = natives, .natives_n = 1};
	struct hx_run_request request = {HX_SIZE(hx_run_request), .workflow = "order"};
	char id[64];

	(void)state;
	close_engine();
	options.store = store->url;
	options.native_threads = 7;
	must(hx_engine_open(&options, &engine, &error));
	shut(true);
	for (int i = 0; i < 9; i++)
		(void)start(&request, id);
	AWAIT(DEADLINE_MS, locked(&bank.calls) == 7);
	shut(false);
}

#undef ON
/* clang-format off */
#define ON(name, store) {#name " on " #store, name, set_up, end_call, &store}
/* clang-format on */

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(lists_and_history),       TEST(a_job_is_worked_on),        TEST(a_workspace_is_its_own),
		TEST(a_key_makes_it_one_call), TEST(nonsense_is_told),          TEST(calls_end_in_the_callers_thread),
		TEST(a_close_tells_the_rest),  TEST(the_log_may_be_a_function), TEST(the_threads_are_as_many_as_wanted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
