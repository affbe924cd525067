/*
 * An event loop: one thread's epoll, mailbox and deadlines. It knows nothing of HTTP; connections of clients are
 * watched here, and those of the gate to its upstreams can be, in the same thread.
 *
 *   ┌─▶ wait (epoll; for the next deadline, or not at all while there is mail)
 *   │   ├─▶ ready(watch)       descriptors, edge-triggered
 *   │   ├─▶ deliver(letter)    mail of other threads, and of this one to itself
 *   │   └─▶ expire(deadline)
 *   └──────┘
 *
 * Events first, then mail: what is freed in a delivery can therefore have no event left in this round. Watchers post
 * a letter of their own and free themselves in it.
 *
 * All functions are for the loop's own thread, but for mailbox_post() on its mailbox.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "wire/deadline.h"
#include "wire/mailbox.h"

#define LOOP_QUEUES_MAX 16

/* A descriptor of somebody's, embedded there. `events` are epoll's. */
struct watch {
	void (*ready)(struct watch *watch, uint32_t events);
};

struct loop {
	int epoll_fd;
	struct mailbox *mailbox;
	struct clock *clock;
	struct mono_time now; /* since the last wait */
	struct watch bell;
	struct deadline_queue *queues[LOOP_QUEUES_MAX];
	size_t queues_n;
	bool draining; /* its server is stopping: what waits without end should come to one */
	size_t guests; /* at work here on somebody else's account: a server that drains waits for them, too */
};

/* On failure the loop is as good as zeroed, and may be released. */
enum hx_code loop_init(struct loop *loop, struct clock *clock, struct hx_error *err) HX_MUST_CHECK;
/* Safe on a zeroed struct and twice. Nothing may be watched any more. */
void loop_release(struct loop *loop);

/* The loop calls the queue's expire from now on. At most LOOP_QUEUES_MAX; the queue must live as long as the loop. */
void loop_add_queue(struct loop *loop, struct deadline_queue *queue);
/* False if the system has no room for it. `events` are EPOLLIN and so on. */
bool loop_watch(struct loop *loop, int fd, uint32_t events, struct watch *watch) HX_MUST_CHECK;
/* Before the descriptor is closed: a child that an exec action has just forked holds it, too, and would keep it watched. */
void loop_unwatch(struct loop *loop, int fd);

/* One round. Waits until `latest` (or for ever, with ns INT64_MAX) if nothing happens before. */
void loop_round(struct loop *loop, struct mono_time latest);
