/* Requests that ask for another protocol: tunnels on routes that are not guarded, refused in words on those that are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>

/* An upstream that has switched says again whatever it hears. */
static inline ssize_t send_and_echo(int fd, const char *p, size_t n)
{
	ssize_t sent = send(fd, p, n, MSG_NOSIGNAL), got;
	char buffer[4096];

	if (n > 12 && memcmp(p, "HTTP/1.1 101", 12) == 0)
		while ((got = recv(fd, buffer, sizeof buffer, 0)) > 0)
			for (ssize_t at = 0, more; at < got; at += more)
				if ((more = send(fd, buffer + at, (size_t)(got - at), MSG_NOSIGNAL)) <= 0)
					return sent;
	return sent;
}

#define UPSTREAM_URL "http://127.0.0.1:%d"
#define upstream_greet(fd) true
#define upstream_recv(fd, p, n) recv(fd, p, n, 0)
#define upstream_send(fd, p, n) send_and_echo(fd, p, n)
#define upstream_part(fd) (void)0

#include "http/proxy_test.h"

#define ASK "Host: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n"
#define SWITCHED                                                                                                       \
	"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: y\r\n\r\n"

static void up_with(const char *config)
{
	gate_up(config);
	upstream_play(SCRIPT(SWITCHED, .end = SCRIPT_CLOSE));
}

static int up(void **state)
{
	(void)state;
	up_with("{\"routes\":[{\"match\":\"GET /guarded\"}]}");
	return 0;
}

static int down(void **state)
{
	(void)state;
	gate_down();
	return 0;
}

/* The tunnel, open. */
static int open_tunnel(const char *behind)
{
	int fd = client_open();
	struct reply reply;

	client_say(fd, "GET /ws HTTP/1.1\r\n" ASK);
	if (*behind)
		client_say(fd, behind);
	reply = read_reply(fd, false);
	if (strncmp(reply.text, "HTTP/1.1 101 Switching Protocols\r\n", 34) != 0 ||
	    !strstr(reply.text, "\r\nConnection: upgrade\r\n") || !strstr(reply.text, "\r\nUpgrade: websocket\r\n") ||
	    !strstr(reply.text, "\r\nSec-WebSocket-Accept: y\r\n"))
		fail_msg("no tunnel: %s%s", reply.text, reply.body.p);
	reply_release(&reply);
	return fd;
}

static void expect_heard(int fd, struct slice wanted)
{
	char *got = malloc(wanted.n);

	assert_int_equal(recv(fd, got, wanted.n, MSG_WAITALL), wanted.n);
	assert_memory_equal(got, wanted.p, wanted.n);
	free(got);
}

static void what_is_said_goes_through_both_ways(void **state)
{
	static char much[200000];
	int fd = open_tunnel("");

	(void)state;
	assert_non_null(strstr(seen(0), "\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"));
	assert_non_null(strstr(seen(0), "\r\nSec-WebSocket-Key: x\r\n"));
	client_say(fd, "hello");
	expect_heard(fd, slice_str("hello"));
	for (size_t i = 0; i < sizeof much; i++)
		much[i] = (char)(i * 7 + i / 251);
	assert_true(client_send(fd, slice_of(much, sizeof much)));
	expect_heard(fd, slice_of(much, sizeof much));
	/* What looks like a request is bytes like any others. */
	client_say(fd, "POST /pay HTTP/1.1\r\n\r\n");
	expect_heard(fd, slice_str("POST /pay HTTP/1.1\r\n\r\n"));
	assert_int_equal(seen_count(), 1);
	shutdown(fd, SHUT_WR); /* which the other side hears, and ends, too */
	expect_closed(fd);
	AWAIT(stats_now().connections_open == 0);
}

static void what_was_sent_too_early_arrives(void **state)
{
	int fd = open_tunnel("early");

	(void)state;
	expect_heard(fd, slice_str("early"));
	close(fd);
	AWAIT(upstream_clients() == 0);
}

static void a_refusal_is_an_ordinary_answer(void **state)
{
	int fd = client_open();

	(void)state;
	upstream_play(SCRIPT("HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno"));
	client_say(fd, "GET /ws HTTP/1.1\r\n" ASK);
	expect_reply(fd, 403, "no");
	/* What follows is a request, and guarded as ever. */
	client_say(fd, "POST /pay HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
	expect_reply(fd, 400, NULL);
	close(fd);
	assert_int_equal(seen_count(), 1);
}

static void expect_answer(const char *request, int status, const char *part)
{
	int fd = client_open();
	struct reply reply;

	client_say(fd, request);
	reply = read_reply(fd, false);
	if (reply.status != status || !strstr(reply.body.p, part))
		fail_msg("%s: expected %d %s, got %s%s", request, status, part, reply.text, reply.body.p);
	reply_release(&reply);
	close(fd);
}

static void a_guarded_route_says_why_not(void **state)
{
	(void)state;
	expect_answer("GET /guarded HTTP/1.1\r\nIdempotency-Key: k\r\n" ASK, 501, "this route is guarded");
	expect_answer("POST /pay HTTP/1.1\r\nIdempotency-Key: k\r\n" ASK, 501, "this route is guarded");
	assert_int_equal(seen_count(), 0);
}

static void other_protocols(void **state)
{
	(void)state;
	/* One that was not asked for. */
	upstream_play(SCRIPT("HTTP/1.1 101 Switching Protocols\r\nUpgrade: other\r\n\r\n", .end = SCRIPT_CLOSE));
	expect_answer("GET /ws HTTP/1.1\r\n" ASK, 502, "nobody has asked for");
	expect_answer("GET /ws HTTP/1.1\r\nHost: a\r\n\r\n", 502, "nobody has asked for");
	upstream_play(SCRIPT("HTTP/1.1 101 Switching Protocols\r\n\r\n", .end = SCRIPT_CLOSE));
	expect_answer("GET /ws HTTP/1.1\r\n" ASK, 502, "nobody has asked for");
	/* HTTP/2 in the clear would bring requests that nobody has looked at; that wish is overheard. */
	upstream_play(SCRIPT(ANSWER_OK));
	expect_answer("GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", 201, "hello");
	assert_null(strcasestr(seen(3), "upgrade"));
	expect_answer("POST /pay HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n"
		      "Content-Length: 0\r\n\r\n",
		      201, "hello");
	/* So is one with a body. */
	expect_answer("PUT /ws HTTP/1.1\r\nContent-Length: 2\r\n" ASK "hi", 201, "hello");
	assert_null(strcasestr(seen(5), "upgrade"));
}

static void there_are_so_many_tunnels(void **state)
{
	(void)state;
	gate_down();
	up_with("{\"max_tunnels\":1}");
	int fd = open_tunnel("");

	expect_answer("GET /ws HTTP/1.1\r\n" ASK, 503, "max_tunnels");
	upstream_play(SCRIPT(ANSWER_OK));
	expect_answer("GET /plain HTTP/1.1\r\nHost: a\r\n\r\n", 201, "hello");
	close(fd);
	AWAIT(upstream_clients() <= 1); /* the idle one of the plain request */
	upstream_play(SCRIPT(SWITCHED, .end = SCRIPT_CLOSE));
	fd = open_tunnel("");
	close(fd);
}

static void a_silent_tunnel_is_closed(void **state)
{
	(void)state;
	gate_down();
	up_with("{\"tunnel_timeout\":\"100ms\"}");
	int fd = open_tunnel("");

	expect_closed(fd); /* looked at every second */
	AWAIT(upstream_clients() == 0);
}

static void a_stop_does_not_wait_for_tunnels_that_say_nothing(void **state)
{
	int fd = open_tunnel("");
	int64_t began = now_ms();

	(void)state;
	http_server_stop(server, 60000);
	assert_true(now_ms() - began < 30000);
	expect_closed(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_said_goes_through_both_ways),
		TEST(what_was_sent_too_early_arrives),
		TEST(a_refusal_is_an_ordinary_answer),
		TEST(a_guarded_route_says_why_not),
		TEST(other_protocols),
		TEST(there_are_so_many_tunnels),
		TEST(a_silent_tunnel_is_closed),
		TEST(a_stop_does_not_wait_for_tunnels_that_say_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
