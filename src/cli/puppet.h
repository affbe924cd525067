/*
 * A worker of the user's, started and watched by `hapax explore --worker` (drill.h): a process of its own, and a port of its own that it
 * takes for the server. What it asks there is a call, which lies here until somebody answers it, or cuts it.
 *
 *   bytes ─▶ call (puppet_pump) ─▶ call_answer │ call_cut │ puppet_kill: it is never answered
 *
 * One thread. A process that is left when this one ends is killed with it, as far as a signal can be caught.
 */
#pragma once

#include <sys/types.h>

#include "base/clock.h"
#include "base/strbuf.h"
#include "wire/wire.h"

#define PUPPET_LINES_MAX 24 /* connections of one worker */

/* A connection, with at most one call that waits for its answer. */
struct puppet_call {
	int fd; /* -1: free */
	bool whole;
	struct strbuf in;
	struct wire_scan scan;
	size_t body_at, end_at;
	char method[8], path[512], key[256]; /* of Idempotency-Key; "": none */
	struct mono_time came;
	uint64_t order; /* of its coming, over all */
};

struct puppet {
	pid_t pid; /* 0: none */
	int listen_fd, log_fd;
	struct puppet_call calls[PUPPET_LINES_MAX];
};

/* `tries`: what its client is to take for the options of steps, as JSON (HAPAX_TRY); NULL: what the code says. */
enum hx_code puppet_start(struct puppet *puppet, const char *command, const char *tries,
			  struct hx_error *err) HX_MUST_CHECK;
/* With all that it has started. Takes one that was never started, if it is zeroed. */
void puppet_kill(struct puppet *puppet);
/* HX_VALIDATION_ERROR, with the end of what it has said, if it has ended by itself. */
enum hx_code puppet_check(struct puppet *puppet, struct hx_error *err) HX_MUST_CHECK;
/* Waits until one of them says something, so long at most, and reads it. */
void puppet_pump(struct puppet *const *puppets, size_t n, int wait_ms);

static inline struct slice call_body(const struct puppet_call *call)
{
	return slice_of(call->in.p + call->body_at, call->end_at - call->body_at);
}
void call_answer(struct puppet_call *call, int status, struct slice body);
/* The connection ends without an answer. */
void call_cut(struct puppet_call *call);
