/* See explorer.h. */
#include "cli/explorer.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "act/process.h"
#include "api/api_explore.h"
#include "base/thread.h"

#define REPORT_BYTES_MAX (16u << 20)
#define GRACE_MS 3000 /* a story is made as short as it can be, and written */

struct own_explorer {
	struct explorer base;
	struct thread thread;
	struct monitor monitor;
	int wake_fd;
	bool stopping; /* under the monitor, as what follows */
	bool wanted, running;
	struct explore_wish wish;
	void (*done)(void *context, const struct explored *explored);
	void *context;
};

static enum explored_verdict verdict_of(const struct process_end *end, struct slice report)
{
	static const char bounded[] = "{\"verdict\":\"bounded\"";

	if (end->fate == PROCESS_TIMED_OUT)
		return EXPLORED_PART;
	if (end->fate != PROCESS_EXITED)
		return EXPLORED_FAILED;
	switch (end->code) {
	case 0:
		return slice_starts(report, bounded) ? EXPLORED_PART : EXPLORED_CLEAN;
	case 1:
		return EXPLORED_BROKEN;
	case 2:
		return EXPLORED_NOT;
	default:
		return EXPLORED_FAILED;
	}
}

/* The time is the clock's here, so the number of edges is as large as it may be. It keeps to its time itself, so that it tells how far it came. */
static void explore(struct own_explorer *x)
{
	char for_text[32];
	const char *argv[] = {"/proc/self/exe", "explore", "/dev/stdin", "--json", "--seconds",
			      "3600",           "--for",   for_text,     NULL,     NULL};
	static char *const nothing[] = {NULL};
	struct process_plan plan = {.argv = argv,
				    .envp = nothing,
				    .input = x->wish.text,
				    .timeout_ms = x->wish.ms + GRACE_MS,
				    .wake_fd = x->wake_fd,
				    .modest = true};
	struct process_end end = {0};
	LOCAL_STRBUF(report, REPORT_BYTES_MAX);

	snprintf(for_text, sizeof for_text, "%lldms", (long long)x->wish.ms);
	if (!x->wish.suggests)
		argv[8] = "--brief";
	process_run(&plan, &report, &end);
	x->done(x->context, &(const struct explored){verdict_of(&end, strbuf_slice(&report)), strbuf_slice(&report)});
}

static void *explorer_run(void *context)
{
	struct own_explorer *x = context;

	monitor_lock(&x->monitor);
	while (!x->stopping || x->wanted) {
		if (!x->wanted) {
			monitor_wait(&x->monitor);
			continue;
		}
		x->wanted = false;
		x->running = true;
		monitor_unlock(&x->monitor);
		explore(x);
		monitor_lock(&x->monitor);
		x->running = false;
	}
	monitor_unlock(&x->monitor);
	return NULL;
}

static enum hx_code explorer_begin(struct explorer *base, const struct explore_wish *wish,
				   void (*done)(void *context, const struct explored *explored), void *context)
{
	struct own_explorer *x = (struct own_explorer *)base;
	enum hx_code code = HX_BUSY;

	monitor_lock(&x->monitor);
	if (!x->wanted && !x->running && !x->stopping) {
		x->wanted = true;
		x->wish = *wish;
		x->done = done;
		x->context = context;
		code = HX_OK;
		monitor_wake_all(&x->monitor);
	}
	monitor_unlock(&x->monitor);
	return code;
}

struct explorer *explorer_new(void)
{
	struct own_explorer *x = calloc(1, sizeof *x);
	struct hx_error err;

	if (!x)
		return NULL;
	x->base.begin = explorer_begin;
	monitor_init(&x->monitor);
	x->wake_fd = eventfd(0, EFD_CLOEXEC);
	if (x->wake_fd < 0 || thread_start(&x->thread, explorer_run, x, "the explorer's thread", &err)) {
		explorer_free(&x->base);
		return NULL;
	}
	return &x->base;
}

void explorer_stop(struct explorer *base)
{
	struct own_explorer *x = (struct own_explorer *)base;

	if (!x)
		return;
	monitor_raise(&x->monitor, &x->stopping);
	if (x->wake_fd >= 0)
		(void)eventfd_write(x->wake_fd, 1);
	thread_join(&x->thread);
}

void explorer_free(struct explorer *base)
{
	struct own_explorer *x = (struct own_explorer *)base;

	if (!x)
		return;
	explorer_stop(base);
	if (x->wake_fd >= 0)
		close(x->wake_fd);
	monitor_release(&x->monitor);
	free(x);
}
