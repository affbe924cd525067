/*
 * A program run to its end: input from memory, output gathered, nothing left behind.
 *
 *   stdin    a file in memory that holds the input: no pump, no broken pipe, no deadlock with a program that
 *            does not read
 *   stdout   gathered up to a ceiling; past it the program is killed
 *   stderr   read to the end, only its tail is kept
 *   fds      no others: everything is close-on-exec, and what a library forgot is closed besides
 *   group    a process group of its own. It is killed when the time is over, on a wake, and also after an ordinary
 *            exit, so that a forgotten child does not outlive its call. A program that moves itself into a
 *            group of its own (a daemon) escapes.
 *   limits   no core file (it would hold the input), 1024 files, files of 1 GiB, 4 GiB of data, and as much CPU as
 *            the time allows on all cores, which only a daemon can reach. They are set right after the start,
 *            since posix_spawn() cannot: a child made in the first microseconds is without them.
 *
 * Linux only: pidfd, memfd. The caller's thread is expected to block signals (pool.h). If the embedding program
 * reaps all children by itself (SIGCHLD ignored, wait for any), how it ended is lost.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/strbuf.h"

#define PROCESS_TAIL_BYTES 300

struct process_plan {
	const char *const *argv; /* NULL-terminated; argv[0] is looked up in our PATH */
	char *const *envp;
	struct slice input;
	int64_t timeout_ms;
	int wake_fd; /* becomes readable: kill it */
	bool modest; /* others come first: a lower priority, and 1 GiB of data */
};

enum process_fate {
	PROCESS_NOT_STARTED, /* code: errno */
	PROCESS_EXITED,      /* code: the exit code */
	PROCESS_SIGNALLED,   /* code: the signal that it died of, not ours */
	PROCESS_TIMED_OUT,
	PROCESS_CANCELLED,
	PROCESS_FLOODED, /* wrote more than the ceiling of out */
	PROCESS_LOST,    /* somebody else reaped it, or it cannot be watched; code: errno */
};

struct process_end {
	enum process_fate fate;
	int code;
	size_t tail_n;
	char tail[PROCESS_TAIL_BYTES]; /* of stderr */
};

/* Blocks until the program and its group are gone. stdout is appended to *out, whose ceiling holds. */
void process_run(const struct process_plan *plan, struct strbuf *out, struct process_end *ret_end);
