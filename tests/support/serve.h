/*
 * A real `hapax serve` process, or one of `hapax gate`: started on a free port, ready when it says so, and then stopped,
 * killed, paused or told to read its definitions again. It does not outlive the test.
 *
 * The program is $HAPAX_BUILD/hapax. What it logs goes to a file, which the tests read. All functions fail the running
 * test, so: from its thread.
 */
#ifndef HX_TESTS_SUPPORT_SERVE_H
#define HX_TESTS_SUPPORT_SERVE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct serve_options {
	const char *db_url;
	const char *workflows; /* a folder; NULL: none */
	const char *config;    /* a file; NULL: none */
	const char *node;
	const char *upstream; /* not NULL: it is a gate in front of this url, and db_url is its store */
	const char *log;      /* a file that is appended to */
};

struct serve {
	pid_t pid; /* 0: it has ended */
	int port;
	char log[512];
};

/* Returns when it is ready. */
struct serve *serve_start(const struct serve_options *options);
/* For one that must refuse to start: returns its exit code. */
int serve_refused(const struct serve_options *options);
/* SIGTERM; it must drain and exit 0. Takes NULL, and one that has ended. */
void serve_stop(struct serve *serve);
/* SIGKILL, and it is gone when this returns. Takes NULL, and one that has ended. */
void serve_kill(struct serve *serve);
/* Kills it if need be. Takes NULL. */
void serve_free(struct serve *serve);
/* SIGSTOP, which has taken effect when this returns; SIGCONT. */
void serve_pause(struct serve *serve);
void serve_continue(struct serve *serve);
void serve_hup(struct serve *serve);

/* Is this text in a file (such as a log), how often? A file that is not there has none. */
size_t file_count(const char *path, const char *text);
/* Waits for the n-th time that its log has this text. */
void serve_await_log(const struct serve *serve, const char *text, size_t n, int64_t deadline_ms);

#endif
