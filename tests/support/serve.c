/* See serve.h. */
#include "support/serve.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/await.h"

#define READY_MS 60000
#define END_MS 60000
#define ARGS_MAX 16

static void program_path(char *path, size_t bytes)
{
	const char *build = getenv("HAPAX_BUILD");

	snprintf(path, bytes, "%s/hapax", build && *build ? build : "build");
	if (access(path, X_OK))
		fail_msg("%s is not there: make builds it", path);
}

static void add(const char **args, size_t *n, const char *name, const char *value)
{
	if (!value)
		return;
	assert_true(*n + 3 < ARGS_MAX);
	args[(*n)++] = name;
	args[(*n)++] = value;
}

/* In the child: the log is its standard error, the pipe its standard output. */
static void become(const struct serve_options *o, const char *program, int out, pid_t parent)
{
	const char *args[ARGS_MAX] = {program, o->upstream ? "gate" : "serve", "--listen", "127.0.0.1:0"};
	int log = open(o->log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	size_t n = 4;

	add(args, &n, "--upstream", o->upstream);
	add(args, &n, o->upstream ? "--store" : "--db", o->db_url);
	add(args, &n, "--workflows", o->workflows);
	add(args, &n, "--config", o->config);
	add(args, &n, "--node", o->node);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(out, STDOUT_FILENO);
	dup2(log, STDERR_FILENO);
	if (log >= 0 && getppid() == parent)
		execv(program, (char *const *)args);
	_exit(127);
}

static pid_t spawn(const struct serve_options *o, int *ret_out)
{
	char program[512];
	pid_t parent = getpid(), pid;
	int out[2];

	program_path(program, sizeof program);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		become(o, program, out[1], parent);
	close(out[1]);
	*ret_out = out[0];
	return pid;
}

static void show_log(const char *path)
{
	char line[1000];
	FILE *file = fopen(path, "r");

	while (file && fgets(line, sizeof line, file))
		print_message("log: %s", line);
	if (file)
		fclose(file);
}

/* The line that it prints when it is ready; false: it ended without one, or took too long. */
static bool read_ready(int out, int *ret_port)
{
	int64_t until_ms = await_now_ms() + READY_MS;
	char text[200];
	size_t n = 0;

	while (n + 1 < sizeof text && !memchr(text, '\n', n)) {
		struct pollfd fd = {.fd = out, .events = POLLIN};
		ssize_t got = poll(&fd, 1, (int)(until_ms - await_now_ms())) == 1
				      ? read(out, text + n, sizeof text - 1 - n)
				      : 0;

		if (got <= 0)
			return false;
		n += (size_t)got;
	}
	text[n] = '\0';
	return sscanf(text, "ready http://127.0.0.1:%d\n", ret_port) == 1;
}

struct serve *serve_start(const struct serve_options *options)
{
	struct serve *serve = calloc(1, sizeof *serve);
	bool ready;
	int out;

	assert_non_null(serve);
	snprintf(serve->log, sizeof serve->log, "%s", options->log);
	serve->pid = spawn(options, &out);
	ready = read_ready(out, &serve->port);
	close(out);
	if (!ready) {
		serve_kill(serve);
		show_log(serve->log);
		free(serve);
		fail_msg("hapax %s did not become ready", options->upstream ? "gate" : "serve");
	}
	return serve;
}

/* Waits for its end; false: it goes on. */
static bool await_end(pid_t pid, int *ret_status)
{
	int64_t until_ms = await_now_ms() + END_MS;

	while (waitpid(pid, ret_status, WNOHANG) == 0) {
		if (await_now_ms() > until_ms)
			return false;
		await_pause();
	}
	return true;
}

int serve_refused(const struct serve_options *options)
{
	int out, status = 0, port;
	pid_t pid = spawn(options, &out);
	bool ready = read_ready(out, &port), ended;

	close(out);
	if (ready)
		kill(pid, SIGKILL);
	ended = await_end(pid, &status);
	if (ready || !ended || !WIFEXITED(status))
		fail_msg("hapax was to be refused; it %s", ready ? "became ready" : "did not exit");
	return WEXITSTATUS(status);
}

void serve_stop(struct serve *serve)
{
	int status = 0;

	if (!serve || !serve->pid)
		return;
	kill(serve->pid, SIGTERM);
	if (!await_end(serve->pid, &status)) {
		serve_kill(serve);
		fail_msg("hapax did not stop");
	}
	serve->pid = 0;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		show_log(serve->log);
		fail_msg("hapax ended with status %#x", (unsigned)status);
	}
}

void serve_kill(struct serve *serve)
{
	if (!serve || !serve->pid)
		return;
	kill(serve->pid, SIGKILL);
	waitpid(serve->pid, NULL, 0);
	serve->pid = 0;
}

void serve_free(struct serve *serve)
{
	serve_kill(serve);
	free(serve);
}

void serve_pause(struct serve *serve)
{
	int status;

	assert_int_equal(kill(serve->pid, SIGSTOP), 0);
	assert_int_equal(waitpid(serve->pid, &status, WUNTRACED), serve->pid);
	assert_true(WIFSTOPPED(status));
}

void serve_continue(struct serve *serve)
{
	assert_int_equal(kill(serve->pid, SIGCONT), 0);
}

void serve_hup(struct serve *serve)
{
	assert_int_equal(kill(serve->pid, SIGHUP), 0);
}

size_t file_count(const char *path, const char *text)
{
	FILE *file = fopen(path, "r");
	char *line = NULL;
	size_t room = 0, n = 0;

	while (file && getline(&line, &room, file) > 0)
		for (const char *at = line; (at = strstr(at, text)); at += strlen(text))
			n++;
	free(line);
	if (file)
		fclose(file);
	return n;
}

void serve_await_log(const struct serve *serve, const char *text, size_t n, int64_t deadline_ms)
{
	int64_t until_ms = await_now_ms() + deadline_ms;

	while (file_count(serve->log, text) < n) {
		if (await_now_ms() > until_ms) {
			show_log(serve->log);
			fail_msg("waited %d ms for \"%s\" in the log", (int)deadline_ms, text);
		}
		await_pause();
	}
}
