/*
 * The process that calls is stopped (SIGSTOP) at each moment of an http call, in the clear and over TLS, until the call's time is over, and
 * goes on: what it then says of the call, and what it has sent. A virtual machine that is paused, or a laptop that sleeps, does this.
 *
 * The caller is a process of its own, with a port and nothing else; the test is the service, and sees what comes.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "support/await.h"
#include "unit/act/upstream.h"

#include "unit/act/identity.h"

#define BODY_BYTES (8u << 20) /* more than two sockets hold */
#define TIME_MS 1500          /* of a call: enough to come to its moment, also on a busy machine */

static struct {
	atomic_bool begun, done;
	int outcome;
	char output[400];
} * told;

static SSL_CTX *identity;
static char ca_file[400];

/* ---- the caller ---- */

static void call_once(int port, bool tls, size_t body_bytes)
{
	char url[100], *body = malloc(body_bytes + 1);
	struct action action = {.name = "x",
				.workflow = "w",
				.kind = ACTION_HTTP,
				.effect = EFFECT_CLAIMED,
				.timeout_ms = TIME_MS,
				.url = url};
	const struct desk_answer *answer;
	static struct desk desk;

	memset(body, '1', body_bytes);
	body[body_bytes] = '\0';
	snprintf(url, sizeof url, "http%s://127.0.0.1:%d/x", tls ? "s" : "", port);
	desk_open(&desk, &(struct port_options){.ca_file = ca_file});
	told->begun = true;
	answer = desk_call(&desk, &action, body);
	told->outcome = (int)answer->outcome;
	snprintf(told->output, sizeof told->output, "%s", answer->output);
	told->done = true;
	desk_close(&desk);
	_exit(0);
}

static pid_t start_caller(int port, bool tls, size_t body_bytes)
{
	pid_t caller;

	told->begun = told->done = false;
	caller = fork();
	if (caller == 0)
		call_once(port, tls, body_bytes);
	return caller;
}

/* It stands still until the time of its call is over. */
static void stop(pid_t caller)
{
	int status;

	kill(caller, SIGSTOP);
	AWAIT(20000, waitpid(caller, &status, WNOHANG | WUNTRACED) == caller);
	assert_true(WIFSTOPPED(status)); /* it has not ended before */
	assert_false(told->done);
}

static void go_on(pid_t caller, int64_t not_before_ms)
{
	AWAIT(20000, await_now_ms() > not_before_ms);
	kill(caller, SIGCONT);
	AWAIT(20000, told->done);
}

static void expect_told(enum act_outcome outcome, const char *words)
{
	if (told->outcome != (int)outcome || !strstr(told->output, words))
		fail_msg("%s: %s", act_outcome_name((enum act_outcome)told->outcome), told->output);
}

/* ---- the service ---- */

static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{\"a\":1}";

struct visit {
	int door, port, fd;
	SSL *ssl;
	pid_t caller;
	int64_t over_ms; /* the time of its call */
};

static void receive_visit(struct visit *v, bool tls, size_t body_bytes)
{
	v->door = upstream_listen(5, &v->port);
	v->caller = start_caller(v->port, tls, body_bytes);
	AWAIT(20000, told->begun);
	v->fd = accept4(v->door, NULL, NULL, SOCK_CLOEXEC);
	v->over_ms = await_now_ms() + TIME_MS; /* it began before this */
	v->ssl = NULL;
	if (tls) {
		v->ssl = SSL_new(identity);
		SSL_set_fd(v->ssl, v->fd);
	}
}

static void say(struct visit *v, const char *bytes, size_t n)
{
	if (v->ssl)
		assert_int_equal(SSL_write(v->ssl, bytes, (int)n), n);
	else
		upstream_send_bytes(v->fd, bytes, n);
}

/* So much of what is there; -1: nothing more will come. */
static ssize_t hear(struct visit *v, char *bytes, size_t n)
{
	ssize_t got = v->ssl ? SSL_read(v->ssl, bytes, (int)n) : read(v->fd, bytes, n);

	return got > 0 ? got : -1;
}

static void hear_all(struct visit *v)
{
	char text[4096] = "";
	size_t n = 0;

	while (!strstr(text, "\r\n\r\n1")) {
		ssize_t got = hear(v, text + n, sizeof text - 1 - n);

		assert_true(got > 0);
		n += (size_t)got;
		text[n] = '\0';
	}
}

/* Nobody came a second time. */
static void end_visit(struct visit *v)
{
	assert_int_equal(poll(&(struct pollfd){.fd = v->door, .events = POLLIN}, 1, 0), 0);
	waitpid(v->caller, NULL, 0);
	SSL_free(v->ssl);
	close(v->fd);
	close(v->door);
}

/* ---- each moment ---- */

/* Connected, and nothing is said yet: what is over by then is not sent. */
static void test_in_the_greeting(void **state)
{
	struct visit v;
	char byte;

	(void)state;
	receive_visit(&v, /* tls= */ true, 1);
	assert_true(poll(&(struct pollfd){.fd = v.fd, .events = POLLIN}, 1, 20000) == 1); /* its hello */
	stop(v.caller);
	fcntl(v.fd, F_SETFL, O_NONBLOCK);
	assert_true(SSL_accept(v.ssl) < 0); /* ours is on its way */
	AWAIT(20000, await_now_ms() > v.over_ms);
	kill(v.caller, SIGCONT);
	fcntl(v.fd, F_SETFL, 0);
	(void)SSL_accept(v.ssl);
	assert_true(hear(&v, &byte, 1) < 0);
	AWAIT(20000, told->done);
	expect_told(ACT_FAILED, "nothing was sent");
	end_visit(&v);
}

/* A part has left: that may have done it. */
static void in_the_request(bool tls)
{
	struct visit v;
	char bytes[4096];

	receive_visit(&v, tls, BODY_BYTES);
	if (tls)
		assert_int_equal(SSL_accept(v.ssl), 1);
	assert_true(hear(&v, bytes, sizeof bytes) > 0);
	stop(v.caller);
	go_on(v.caller, v.over_ms);
	expect_told(ACT_UNKNOWN, "it was sent");
	end_visit(&v);
}

/* All of it has left, and the answer comes while it stands: it is there to be read, and is believed. */
static void while_it_waits(bool tls, size_t before)
{
	struct visit v;

	receive_visit(&v, tls, 1);
	if (tls)
		assert_int_equal(SSL_accept(v.ssl), 1);
	hear_all(&v);
	if (before)
		say(&v, ok, before);
	stop(v.caller);
	say(&v, ok + before, sizeof ok - 1 - before);
	go_on(v.caller, v.over_ms);
	expect_told(ACT_OK, "{\"a\":1}");
	end_visit(&v);
}

/* The same without an answer. */
static void while_nobody_answers(bool tls)
{
	struct visit v;

	receive_visit(&v, tls, 1);
	if (tls)
		assert_int_equal(SSL_accept(v.ssl), 1);
	hear_all(&v);
	stop(v.caller);
	go_on(v.caller, v.over_ms);
	expect_told(ACT_UNKNOWN, "it was sent");
	end_visit(&v);
}

static void test_in_the_request(void **state)
{
	(void)state;
	in_the_request(/* tls= */ false);
	in_the_request(/* tls= */ true);
}

static void test_while_it_waits(void **state)
{
	(void)state;
	for (int tls = 0; tls < 2; tls++) {
		while_it_waits(tls, /* before= */ 0);
		while_it_waits(tls, /* before= */ 24);
		while_nobody_answers(tls);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_the_greeting),
		cmocka_unit_test(test_in_the_request),
		cmocka_unit_test(test_while_it_waits),
	};
	const char *folder = getenv("TMPDIR");
	int failed;

	signal(SIGPIPE, SIG_IGN); /* OpenSSL's own writes */
	snprintf(ca_file, sizeof ca_file, "%s/stopped-%d.pem", folder ? folder : "/tmp", (int)getpid());
	identity = identity_make("IP:127.0.0.1", ca_file);
	told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	SSL_CTX_free(identity);
	unlink(ca_file);
	return failed;
}
