/* See puppet.h. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/puppet.h"

#define CALL_BYTES_MAX (32u << 20)
#define FIELDS_MAX 64
#define TAIL_BYTES 400
#define LIVE_MAX 16

/* ---- the process ---- */

/* Who is alive, for the handler: an interrupted exploration leaves nobody. */
static volatile pid_t live[LIVE_MAX];

static void end_all(int number)
{
	for (int i = 0; i < LIVE_MAX; i++)
		if (live[i])
			kill(-live[i], SIGKILL);
	_exit(128 + number);
}

static void set_live(pid_t from, pid_t to)
{
	static bool caught;
	struct sigaction action = {.sa_handler = end_all};

	if (!caught) {
		sigaction(SIGINT, &action, NULL);
		sigaction(SIGTERM, &action, NULL);
		caught = true;
	}
	for (int i = 0; i < LIVE_MAX; i++)
		if (live[i] == from) {
			live[i] = to;
			return;
		}
}

static enum hx_code listen_here(struct puppet *p, unsigned *ret_port, struct hx_error *err)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof at;

	p->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (p->listen_fd < 0 || bind(p->listen_fd, (struct sockaddr *)&at, sizeof at) || listen(p->listen_fd, 64) ||
	    getsockname(p->listen_fd, (struct sockaddr *)&at, &n))
		return error_set(err, HX_INTERNAL, "no port for a worker: %s", strerror(errno));
	*ret_port = ntohs(at.sin_port);
	return HX_OK;
}

/* Between fork and exec: nothing but system calls. */
static void become(const char *command, char **envp, int log_fd)
{
	static char sh[] = "sh", c[] = "-c";
	char *argv[] = {sh, c, (char *)(uintptr_t)command, NULL};

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(log_fd, 1);
	dup2(log_fd, 2);
	execve("/bin/sh", argv, envp);
	_exit(127);
}

/* Ours, with these before all others of their names. */
static char **environment(char own[][600], size_t n)
{
	size_t count = 0, at = 0;
	char **envp;

	while (environ[count])
		count++;
	envp = calloc(count + n + 1, sizeof *envp);
	for (size_t i = 0; envp && i < n; i++)
		envp[at++] = own[i];
	for (size_t i = 0; envp && i < count; i++)
		if (strncmp(environ[i], "HAPAX_", 6) != 0)
			envp[at++] = environ[i];
	return envp;
}

enum hx_code puppet_start(struct puppet *p, const char *command, const char *tries, struct hx_error *err)
{
	char own[3][600];
	char **envp;
	unsigned port = 0;
	enum hx_code code;

	*p = (struct puppet){.listen_fd = -1, .log_fd = memfd_create("worker", MFD_CLOEXEC)};
	for (size_t i = 0; i < PUPPET_LINES_MAX; i++)
		p->calls[i].fd = -1;
	code = listen_here(p, &port, err);
	snprintf(own[0], sizeof own[0], "HAPAX_SERVER=http://127.0.0.1:%u", port);
	snprintf(own[1], sizeof own[1], "HAPAX_LEDGER=http://127.0.0.1:%u/ledger", port);
	snprintf(own[2], sizeof own[2], "HAPAX_TRY=%s", tries ? tries : "{}");
	envp = environment(own, 3);
	if (!code && (!envp || p->log_fd < 0))
		code = error_set(err, HX_NO_MEMORY, "a worker");
	if (!code) {
		p->pid = fork();
		if (p->pid == 0)
			become(command, envp, p->log_fd);
		if (p->pid < 0)
			code = error_set(err, HX_INTERNAL, "the worker is not started: %s", strerror(errno));
	}
	free(envp);
	if (code) {
		p->pid = 0;
		puppet_kill(p);
		return code;
	}
	setpgid(p->pid, p->pid); /* whoever is first */
	set_live(0, p->pid);
	return HX_OK;
}

void puppet_kill(struct puppet *p)
{
	if (p->pid > 0) {
		kill(-p->pid, SIGKILL);
		(void)waitpid(p->pid, NULL, 0);
		set_live(p->pid, 0);
	}
	p->pid = 0;
	if (p->listen_fd > 0)
		close(p->listen_fd);
	if (p->log_fd > 0)
		close(p->log_fd);
	p->listen_fd = p->log_fd = 0;
	for (size_t i = 0; i < PUPPET_LINES_MAX; i++)
		if (p->calls[i].fd > 0)
			call_cut(&p->calls[i]);
}

enum hx_code puppet_check(struct puppet *p, struct hx_error *err)
{
	char tail[TAIL_BYTES + 1];
	off_t end = lseek(p->log_fd, 0, SEEK_END);
	ssize_t n;
	siginfo_t info = {0};

	if (waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) || !info.si_pid)
		return HX_OK;
	n = pread(p->log_fd, tail, TAIL_BYTES, end > TAIL_BYTES ? end - TAIL_BYTES : 0);
	tail[n > 0 ? n : 0] = '\0';
	return error_set(err, HX_VALIDATION_ERROR, "the worker has ended by itself (%d): %s", info.si_status, tail);
}

/* ---- what it says ---- */

void call_cut(struct puppet_call *c)
{
	close(c->fd);
	strbuf_release(&c->in);
	*c = (struct puppet_call){.fd = -1};
}

/* What comes after the call stays. */
static void forget(struct puppet_call *c)
{
	size_t left = c->in.n - c->end_at;

	memmove(c->in.p, c->in.p + c->end_at, left);
	c->in.n = left;
	c->whole = false;
	c->scan = (struct wire_scan){0};
	c->end_at = c->body_at = 0;
}

void call_answer(struct puppet_call *c, int status, struct slice body)
{
	LOCAL_STRBUF(text, CALL_BYTES_MAX);

	strbuf_addf(&text, "HTTP/1.1 %d -\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n", status,
		    body.n);
	strbuf_add_slice(&text, body);
	for (size_t at = 0; at < text.n;) {
		ssize_t n = send(c->fd, text.p + at, text.n - at, MSG_NOSIGNAL);

		if (n <= 0) { /* it has gone away */
			call_cut(c);
			return;
		}
		at += (size_t)n;
	}
	forget(c);
}

static void keep(char *to, size_t room, struct slice text)
{
	snprintf(to, room, "%.*s", SLICE_ARGS(text));
}

/* Is there a whole call? What cannot be read ends the connection. */
static void look(struct puppet_call *c)
{
	static const struct wire_limits limits = {.line_bytes = 4096, .head_bytes = 16384, .fields = FIELDS_MAX};
	static uint64_t order;
	struct wire_field fields[FIELDS_MAX];
	struct wire_request request;
	struct wire_error err;
	enum wire_verdict verdict = WIRE_DONE;

	if (c->whole)
		return;
	if (!c->end_at) {
		verdict = wire_scan_request(&c->scan, strbuf_slice(&c->in), &limits, &err);
		if (verdict == WIRE_DONE)
			verdict = wire_request_parse(wire_scan_head(&c->scan, c->in.p), fields, &request, &err);
		if (verdict == WIRE_BAD || (verdict == WIRE_DONE && request.head.framing == WIRE_CHUNKED)) {
			call_cut(c);
			return;
		}
		if (verdict != WIRE_DONE)
			return;
		const struct wire_field *key = wire_find(request.head.fields, "Idempotency-Key", NULL);

		keep(c->method, sizeof c->method, request.method);
		keep(c->path, sizeof c->path, request.target);
		keep(c->key, sizeof c->key, key ? key->value : slice_str(""));
		c->body_at = c->scan.at;
		c->end_at = c->scan.at + (request.head.framing == WIRE_LENGTH ? (size_t)request.head.length : 0);
	}
	c->whole = c->in.n >= c->end_at;
	if (c->whole) {
		c->came = clock_mono(clock_system());
		c->order = ++order;
	}
}

static void hear(struct puppet_call *c)
{
	char *room = strbuf_reserve(&c->in, 65536);
	ssize_t n = room ? recv(c->fd, room, 65536, MSG_DONTWAIT) : 0;

	if (n <= 0) {
		if (n == 0 || (errno != EAGAIN && errno != EINTR))
			call_cut(c);
		return;
	}
	c->in.n += (size_t)n;
	c->in.p[c->in.n] = '\0';
	look(c);
}

static void let_in(struct puppet *p)
{
	for (size_t i = 0; i < PUPPET_LINES_MAX; i++)
		if (p->calls[i].fd < 0) {
			int fd = accept4(p->listen_fd, NULL, NULL, SOCK_CLOEXEC);

			if (fd < 0)
				return;
			p->calls[i] = (struct puppet_call){.fd = fd};
			strbuf_init(&p->calls[i].in, CALL_BYTES_MAX);
		}
}

void puppet_pump(struct puppet *const *puppets, size_t n, int wait_ms)
{
	struct pollfd fds[LIVE_MAX * (PUPPET_LINES_MAX + 1)];
	nfds_t m = 0;

	for (size_t i = 0; i < n && i < LIVE_MAX; i++) {
		fds[m++] = (struct pollfd){.fd = puppets[i]->listen_fd, .events = POLLIN};
		for (size_t k = 0; k < PUPPET_LINES_MAX; k++)
			fds[m++] = (struct pollfd){.fd = puppets[i]->calls[k].fd, .events = POLLIN};
	}
	if (poll(fds, m, wait_ms) <= 0)
		return;
	m = 0;
	for (size_t i = 0; i < n && i < LIVE_MAX; i++) {
		if (fds[m++].revents)
			let_in(puppets[i]);
		for (size_t k = 0; k < PUPPET_LINES_MAX; k++, m++)
			if (fds[m].revents && fds[m].fd >= 0 && puppets[i]->calls[k].fd == fds[m].fd)
				hear(&puppets[i]->calls[k]);
	}
}
