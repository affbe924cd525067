/* The gate's own address: probes, metrics, and what a person can see and forget. */
#include "http/proxy_test.h"
#include "proxy/gate_admin.h"

static struct gate_admin admin;
static struct router *router;
static struct http_server *admin_server;

static int up(void **state)
{
	struct server_options options = server_options_default();
	struct hx_error err;

	(void)state;
	gate_up("{\"routes\":[{\"match\":\"POST /lost\",\"on_lost\":\"hold\",\"processing_ttl\":\"1500ms\",\"upstream_timeout\":\"300ms\"}]}");
	admin = (struct gate_admin){.store = gate.store, .proxy = gate.proxy, .ready = true};
	router = gate_admin_router_new(&admin);
	options.listen = "127.0.0.1:0";
	options.handle = router_handle;
	options.data = router;
	assert_int_equal(http_server_new(&options, &admin_server, &err), HX_OK);
	return 0;
}

static int down(void **state)
{
	(void)state;
	http_server_stop(admin_server, 1000);
	gate_down();
	http_server_free(admin_server);
	router_free(router);
	return 0;
}

/* A request to the admin's address, with these fields. */
static struct reply ask_admin_with(const char *method, const char *target, const char *fields)
{
	struct http_server *proxied = server;
	struct reply reply;
	char text[400];
	int fd;

	server = admin_server;
	fd = client_open();
	server = proxied;
	snprintf(text, sizeof text, "%s %s HTTP/1.1\r\n%s\r\n", method, target, fields);
	client_say(fd, text);
	reply = read_reply(fd, false);
	close(fd);
	return reply;
}

static struct reply ask_admin(const char *method, const char *target)
{
	return ask_admin_with(method, target, "Host: 127.0.0.1\r\n");
}

static void expect_admin(const char *method, const char *target, int status, const char *part)
{
	struct reply reply = ask_admin(method, target);

	if (reply.status != status || !strstr(reply.body.p, part))
		fail_msg("%s %s: expected %d %s, got %s%s", method, target, status, part, reply.text, reply.body.p);
	reply_release(&reply);
}

static void probes_and_metrics(void **state)
{
	(void)state;
	expect_post("/x", "k", "x", 201, "created");
	expect_post("/x", "k", "x", 201, "replayed");
	expect_admin("GET", "/healthz", 200, "ok\n");
	expect_admin("GET", "/readyz", 200, "ready\n");
	admin.ready = false;
	expect_admin("GET", "/readyz", 503, "not ready\n");
	expect_admin("GET", "/metrics", 200, "\nhapax_gate_outcomes_total{outcome=\"created\"} 1\n");
	expect_admin("GET", "/metrics", 200, "\nhapax_gate_outcomes_total{outcome=\"replayed\"} 1\n");
	expect_admin("GET", "/metrics", 200, "\nhapax_gate_unknown_outcomes_total 0\n");
	expect_admin("GET", "/metrics", 200, "\nhapax_gate_upstream_connections_total 1\n");
	expect_admin("GET", "/payments", 404, "NOT_FOUND");
}

static void a_record_is_found_by_its_key(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		char path[20];

		snprintf(path, sizeof path, "/x%d", i);
		expect_post(path, "\"a b\"", "x", 201, "created");
		expect_post(path, "other", "x", 201, "created");
	}
	struct reply reply = ask_admin("GET", "/gate/records?key=a%20b");
	size_t n = 0;

	assert_int_equal(reply.status, 200);
	for (const char *at = reply.body.p; (at = strstr(at, "\"status\":\"completed\"")); at++)
		n++;
	assert_int_equal(n, 20);
	assert_non_null(strstr(reply.body.p, "\"endpoint\":\"POST /x7\""));
	assert_non_null(strstr(reply.body.p, "\"more\":false"));
	reply_release(&reply);
	expect_admin("GET", "/gate/records?key=none", 200, "{\"items\":[],\"more\":false,\"cursor\":null}");
	expect_admin("GET", "/gate/records", 200, "{\"items\":[],\"more\":false,\"cursor\":null}");
	expect_admin("GET", "/gate/records?key=", 400, "VALIDATION_ERROR");
	expect_admin("GET", "/gate/records?key=a&key=b", 400, "VALIDATION_ERROR");
}

static bool is_held(void)
{
	struct reply reply = ask_admin("GET", "/gate/records?key=k");
	bool held = strstr(reply.body.p, "\"status\":\"held\"") != NULL;

	reply_release(&reply);
	return held;
}

static void what_is_held_waits_for_a_person(void **state)
{
	char target[200];

	(void)state;
	upstream_play(SCRIPT("", .end = SCRIPT_STALL));
	expect_post("/lost", "k", "x", 504, NULL);
	struct reply reply = ask_admin("GET", "/gate/records?key=k");
	const char *record = strstr(reply.body.p, "\"record\":\"");

	assert_non_null(strstr(reply.body.p, "\"status\":\"in_flight\""));
	assert_non_null(record);
	snprintf(target, sizeof target, "/gate/records/%.96s", record + 10);
	reply_release(&reply);
	expect_admin("DELETE", target, 409, "IN_FLIGHT");
	AWAIT(is_held());
	expect_admin("GET", "/gate/records", 200, "\"status\":\"held\"");
	upstream_play(SCRIPT(ANSWER_OK));
	expect_post("/lost", "k", "x", 409, "conflict");

	char *digit = target + strlen(target) - 1, own = *digit;

	*digit = own == '0' ? '1' : '0'; /* another token */
	expect_admin("DELETE", target, 409, "CONCURRENCY_ERROR");
	*digit = own;
	expect_admin("DELETE", target, 200, "forgotten");
	expect_admin("DELETE", target, 404, "NOT_FOUND");
	expect_admin("DELETE", "/gate/records/12", 400, "VALIDATION_ERROR");
	expect_post("/lost", "k", "x", 201, "created");
	assert_int_equal(seen_count(), 2);
}

static void expect_status(const char *method, const char *target, const char *fields, int status)
{
	struct reply reply = ask_admin_with(method, target, fields);

	if (reply.status != status)
		fail_msg("%s %s, %s: expected %d, got %s%s", method, target, fields, status, reply.text, reply.body.p);
	reply_release(&reply);
}

/* A page in a browser of this machine could otherwise make the gate forget, and so pay twice. */
static void no_page_of_elsewhere_is_served(void **state)
{
	static const char *const elsewhere[] = {"Host: evil.example\r\n",
						"Host: evil\r\n",
						"Host: 192.0.2.1\r\n",
						"Host: localhost\r\nOrigin: http://evil.example\r\n",
						"Host: localhost\r\nOrigin: null\r\n",
						"Host: localhost\r\nSec-Fetch-Site: cross-site\r\n"};
	static const char *const here[] = {"Host: localhost:7413\r\n", "Host: [::1]:7413\r\n", "Host: 127.0.0.1\r\n",
					   "Host: localhost\r\nOrigin: http://localhost:7413\r\n"};
	char target[200];

	(void)state;
	expect_post("/x", "k", "x", 201, "created");
	struct reply reply = ask_admin("GET", "/gate/records?key=k");

	snprintf(target, sizeof target, "/gate/records/%.96s", strstr(reply.body.p, "\"record\":\"") + 10);
	reply_release(&reply);
	for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++) {
		expect_status("GET", "/gate/records?key=k", elsewhere[i], 403);
		expect_status("DELETE", target, elsewhere[i], 403);
		expect_status("GET", "/metrics", elsewhere[i], 403);
		expect_status("GET", "/healthz", elsewhere[i], 200);
	}
	expect_post("/x", "k", "x", 201, "replayed");
	for (size_t i = 0; i < sizeof here / sizeof *here; i++)
		expect_status("GET", "/gate/records?key=k", here[i], 200);
	expect_status("DELETE", target, here[0], 200);
	expect_post("/x", "k", "x", 201, "created");
}

static void with_a_key_only_who_has_it(void **state)
{
	static const char *const without[] = {"Host: localhost\r\n",
					      "Host: localhost\r\nAuthorization: Bearer 0123456789abcdeF\r\n",
					      "Host: localhost\r\nAuthorization: Bearer \r\n",
					      "Host: localhost\r\nAuthorization: Basic 0123456789abcdef\r\n",
					      "Host: localhost\r\nX-API-Key: 0123456789abcde\r\n",
					      "Host: localhost\r\nX-API-Key: 0123456789abcdef\r\nX-API-Key: x\r\n"};

	(void)state;
	gate_admin_set_key(&admin, "0123456789abcdef");
	for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
		expect_status("GET", "/gate/records", without[i], 401);
		expect_status("GET", "/metrics", without[i], 401);
		expect_status("GET", "/readyz", without[i], 200);
	}
	expect_status("GET", "/gate/records", "Host: localhost\r\nAuthorization: Bearer 0123456789abcdef\r\n", 200);
	expect_status("GET", "/metrics", "Host: evil.example\r\nX-API-Key: 0123456789abcdef\r\n", 200);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(probes_and_metrics),
		TEST(no_page_of_elsewhere_is_served),
		TEST(with_a_key_only_who_has_it),
		TEST(a_record_is_found_by_its_key),
		TEST(what_is_held_waits_for_a_person),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
