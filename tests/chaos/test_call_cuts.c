/*
 * A service that is killed, stopped or cut off at each moment of an http call, on a new connection and on one that is used again, in the
 * clear and over TLS: what the call comes to, and that it was never sent twice. The same for the process that calls: test_caller_stopped.c.
 *
 * The service is a process of its own, and counts what it has applied in memory that outlives it. Its listening socket is held open by the
 * test, so a second try of whoever thinks of one would connect, and is seen.
 */
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "support/await.h"
#include "unit/act/upstream.h"

#include "unit/act/identity.h"

#define BODY_BYTES (1u << 20) /* more than sockets hold back before the service has read its head */
#define HANG_MS 700           /* for a call that nobody will answer: enough to be sent, also on a busy machine */

enum moment { WHILE_IDLE, IN_REQUEST, APPLIED, IN_HEAD, IN_BODY, MOMENTS };
enum how { KILLED, STOPPED, CUT, HOWS };

static const char *const moment_names[] = {"while idle", "in the request", "applied", "in the head", "in the body"};
static const char *const how_names[] = {"killed", "stopped", "cut off"};

static struct {
	atomic_size_t applied, requests, closed;
} * seen;

/* ---- the service: it is forked while there are no other threads ---- */

static SSL_CTX *identity;
static char ca_file[400];

/* Through TLS where there is a link. */
struct line {
	int fd;
	SSL *ssl;
};

static ssize_t line_read(struct line *line, char *bytes, size_t n)
{
	return line->ssl ? SSL_read(line->ssl, bytes, (int)n) : read(line->fd, bytes, n);
}

static void line_send(struct line *line, const char *bytes, size_t n)
{
	if (!line->ssl)
		upstream_send_bytes(line->fd, bytes, n);
	else if (n > 0)
		(void)SSL_write(line->ssl, bytes, (int)n); /* who has gone away is seen at the next read */
}

/* False: nobody is there, or nobody to talk to. */
static bool line_open(struct line *line, int listen_fd, bool tls)
{
	*line = (struct line){.fd = accept(listen_fd, NULL, NULL)};
	/* What is cut off takes along what has not left yet, so nothing waits until the tickets of TLS have arrived. */
	setsockopt(line->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	if (line->fd >= 0 && tls) {
		line->ssl = SSL_new(identity);
		SSL_set_fd(line->ssl, line->fd);
		(void)SSL_accept(line->ssl); /* likewise */
	}
	return line->fd >= 0;
}

/* Without a word of goodbye. */
static void line_close(struct line *line)
{
	SSL_free(line->ssl);
	close(line->fd);
}

struct script {
	enum moment moment;
	enum how how;
	size_t request; /* the how-manieth it happens to */
	bool tls;
};

/* Only a stopped one goes on after this; what is cut off is done with this connection. */
static void happen(const struct script *script, int fd)
{
	if (script->how == CUT)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1}, sizeof(struct linger));
	else
		raise(script->how == KILLED ? SIGKILL : SIGSTOP);
}

/* All of one request, or its head. False: the other side has gone. */
static bool hear(struct line *line, bool whole)
{
	static char text[2 * BODY_BYTES];
	size_t n = 0, want = SIZE_MAX;

	while (n < want) {
		ssize_t got = line_read(line, text + n, sizeof text - 1 - n);
		char *end, *length;

		if (got <= 0)
			return false;
		n += (size_t)got;
		text[n] = '\0';
		if (want != SIZE_MAX || !(end = strstr(text, "\r\n\r\n")))
			continue;
		if (!whole)
			return true;
		length = strcasestr(text, "\r\nContent-Length:");
		want = (size_t)(end + 4 - text) + strtoul(length + 17, NULL, 10);
	}
	return true;
}

/* False: no more on this connection. */
static bool serve_one(const struct script *script, struct line *line)
{
	static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{\"a\":1}";
	bool mine = seen->requests + 1 == script->request;
	enum moment moment = mine ? script->moment : MOMENTS;
	size_t said = moment == IN_HEAD ? 24 : moment == IN_BODY ? sizeof ok - 4 : 0;

	if (!hear(line, moment != IN_REQUEST))
		return false;
	seen->requests++;
	if (moment != IN_REQUEST)
		seen->applied++;
	if (said)
		line_send(line, ok, said);
	if (moment != MOMENTS && moment != WHILE_IDLE) {
		happen(script, line->fd);
		if (script->how == CUT)
			return false;
	}
	line_send(line, ok + said, sizeof ok - 1 - said);
	if (moment != WHILE_IDLE)
		return true;
	happen(script, line->fd);
	return script->how != CUT;
}

static void serve(const struct script *script, int listen_fd)
{
	struct line line;

	while (line_open(&line, listen_fd, script->tls)) {
		while (serve_one(script, &line))
			;
		line_close(&line);
		seen->closed++;
	}
	_exit(0);
}

/* ---- one case ---- */

struct cut {
	enum moment moment;
	enum how how;
	bool reused;
	enum action_effect effect;
	bool tls;
};

/* Would an idempotent call be sent once more? Only where a connection that was idle died without a byte of an answer. */
static bool is_repeated(const struct cut *cut)
{
	return cut->effect == EFFECT_IDEMPOTENT && cut->reused && cut->how != STOPPED &&
	       (cut->moment == IN_REQUEST || cut->moment == APPLIED);
}

static enum act_outcome expected(const struct cut *cut)
{
	if (cut->moment == WHILE_IDLE && cut->how == KILLED)
		return ACT_FAILED;
	if (cut->how == CUT && (cut->moment == WHILE_IDLE || is_repeated(cut)))
		return ACT_OK;
	return ACT_UNKNOWN;
}

static void await_process(pid_t service, int what)
{
	int status;

	AWAIT(20000, waitpid(service, &status, WNOHANG | what) == service);
}

/* Who has connected since, with nobody there to accept. */
static size_t count_waiting(int listen_fd)
{
	size_t n = 0;
	int fd;

	fcntl(listen_fd, F_SETFL, O_NONBLOCK);
	while ((fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
		close(fd);
		n++;
	}
	return n;
}

static void await_service(const struct cut *cut, pid_t service)
{
	if (cut->how == KILLED)
		await_process(service, 0);
	else if (cut->how == STOPPED)
		await_process(service, WUNTRACED);
	else if (cut->moment == WHILE_IDLE) /* its answer was there before it was cut off */
		AWAIT(20000, seen->closed == 1);
}

static void expect_sent_once(const struct cut *cut, pid_t service, int listen_fd, const struct desk_answer *answer)
{
	size_t before = cut->reused, applied = before + (cut->moment != IN_REQUEST);

	if (cut->how == STOPPED) { /* it goes on, and finds what was sent: once */
		kill(service, SIGCONT);
		AWAIT(20000, seen->applied >= applied);
	}
	if (cut->how == CUT && is_repeated(cut))
		applied++;
	if (cut->moment == WHILE_IDLE && cut->how == KILLED)
		applied = before;
	if (answer->outcome != expected(cut) || seen->applied != applied)
		fail_msg("%s %s, %s connection, %s, effect %d: %s: %s; applied %zu, not %zu", how_names[cut->how],
			 moment_names[cut->moment], cut->reused ? "reused" : "new", cut->tls ? "TLS" : "clear",
			 cut->effect, act_outcome_name(answer->outcome), answer->output, (size_t)seen->applied,
			 applied);
	if (cut->how == KILLED && cut->moment != WHILE_IDLE)
		assert_int_equal(count_waiting(listen_fd), is_repeated(cut));
}

static void run_case(const struct cut *cut, const char *body)
{
	struct script script = {cut->moment, cut->how, 1 + (cut->reused && cut->moment != WHILE_IDLE), cut->tls};
	bool hangs = cut->how == STOPPED || (cut->how == KILLED && is_repeated(cut));
	int port, listen_fd = upstream_listen(16, &port);
	char url[128];
	struct action action = {.name = "x",
				.workflow = "w",
				.kind = ACTION_HTTP,
				.effect = EFFECT_CLAIMED,
				.timeout_ms = 30000,
				.url = url};
	const struct desk_answer *answer;
	struct desk desk;
	pid_t service;

	seen->applied = seen->requests = seen->closed = 0;
	service = fork();
	if (service == 0)
		serve(&script, listen_fd);
	snprintf(url, sizeof url, "http%s://127.0.0.1:%d/x", cut->tls ? "s" : "", port);
	desk_open(&desk, &(struct port_options){.ca_file = ca_file});
	if (cut->reused)
		desk_expect(desk_call(&desk, &action, "{}"), ACT_OK, "");
	if (cut->moment == WHILE_IDLE) {
		await_service(cut, service);
		if (cut->how == KILLED)
			close(listen_fd); /* nobody listens any more */
	}
	action.effect = cut->effect;
	action.timeout_ms = hangs ? HANG_MS : 30000;
	answer = desk_call(&desk, &action, cut->moment == IN_REQUEST ? body : "{\"pay\":1}");
	if (cut->moment != WHILE_IDLE)
		await_service(cut, service);
	expect_sent_once(cut, service, listen_fd, answer);
	desk_close(&desk);
	kill(service, SIGKILL);
	waitpid(service, NULL, 0);
	if (cut->moment != WHILE_IDLE || cut->how != KILLED)
		close(listen_fd);
}

/* ---- all of them ---- */

static void try_every_moment(bool tls)
{
	static const enum action_effect effects[] = {EFFECT_CLAIMED, EFFECT_KEYED, EFFECT_IDEMPOTENT};
	char *body = malloc(BODY_BYTES + 1);
	size_t n = 0;

	memset(body, '1', BODY_BYTES);
	body[BODY_BYTES] = '\0';
	for (int moment = 0; moment < MOMENTS; moment++)
		for (int how = 0; how < HOWS; how++)
			for (int reused = moment == WHILE_IDLE; reused <= 1; reused++)
				for (int i = 0; i < (how == STOPPED ? 1 : 3); i++, n++)
					run_case(&(struct cut){moment, how, reused, effects[i], tls}, body);
	run_case(&(struct cut){APPLIED, STOPPED, true, EFFECT_IDEMPOTENT, tls},
		 body); /* its time is over: it is not sent again */
	free(body);
	printf("# %zu cuts\n", n + 1);
}

static void test_every_moment(void **state)
{
	(void)state;
	try_every_moment(/* tls= */ false);
}

static void test_every_moment_over_tls(void **state)
{
	(void)state;
	try_every_moment(/* tls= */ true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_moment),
					   cmocka_unit_test(test_every_moment_over_tls)};
	const char *folder = getenv("TMPDIR");
	int failed;

	signal(SIGPIPE, SIG_IGN); /* OpenSSL's own writes, on the service's side */
	snprintf(ca_file, sizeof ca_file, "%s/cuts-%d.pem", folder ? folder : "/tmp", (int)getpid());
	identity = identity_make("IP:127.0.0.1", ca_file);
	seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	SSL_CTX_free(identity);
	unlink(ca_file);
	return failed;
}
