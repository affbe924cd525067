/* See loop.h. */
#include "wire/loop.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define EVENTS_MAX 256

/* What woke the loop is in the mailbox, which is looked into in any case. */
static void bell_ready(struct watch *watch, uint32_t events)
{
	(void)events;
	mailbox_hush(CONTAINER_OF(watch, struct loop, bell)->mailbox);
}

enum hx_code loop_init(struct loop *loop, struct clock *clock, struct hx_error *err)
{
	*loop = (struct loop){.epoll_fd = -1, .clock = clock, .bell = {bell_ready}};
	loop->mailbox = mailbox_new();
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	loop->now = clock_mono(clock);
	if (!loop->mailbox || loop->epoll_fd < 0 ||
	    !loop_watch(loop, mailbox_fd(loop->mailbox), EPOLLIN, &loop->bell)) {
		loop_release(loop);
		return error_set(err, HX_INTERNAL, "no event loop can be made: %s", strerror(errno));
	}
	return HX_OK;
}

void loop_release(struct loop *loop)
{
	if (loop->mailbox) {
		mailbox_free(loop->mailbox);
		if (loop->epoll_fd >= 0)
			close(loop->epoll_fd);
	}
	*loop = (struct loop){0};
}

void loop_add_queue(struct loop *loop, struct deadline_queue *queue)
{
	ASSERT(loop->queues_n < LOOP_QUEUES_MAX);
	loop->queues[loop->queues_n++] = queue;
}

bool loop_watch(struct loop *loop, int fd, uint32_t events, struct watch *watch)
{
	struct epoll_event event = {.events = events, .data.ptr = watch};

	return epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

void loop_unwatch(struct loop *loop, int fd)
{
	epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

/* epoll's timeout, rounded up: waking a little late beats waking twice. */
static int timeout_ms(const struct loop *loop, struct mono_time latest)
{
	int64_t wait_ns;

	for (size_t i = 0; i < loop->queues_n; i++) {
		const struct deadline *first = deadline_first(loop->queues[i]);

		if (loop->queues[i]->after_ms > 0 && first && first->at.ns < latest.ns)
			latest = first->at;
	}
	if (latest.ns == INT64_MAX)
		return -1;
	wait_ns = latest.ns - clock_mono(loop->clock).ns;
	if (wait_ns <= 0)
		return 0;
	return wait_ns / 1000000 >= INT_MAX ? INT_MAX : (int)(wait_ns / 1000000) + 1;
}

static void expire(struct loop *loop, struct deadline_queue *queue)
{
	struct deadline *first;

	while (queue->after_ms > 0 && (first = deadline_first(queue)) && first->at.ns <= loop->now.ns) {
		deadline_clear(first);
		queue->expire(first);
	}
}

void loop_round(struct loop *loop, struct mono_time latest)
{
	struct epoll_event events[EVENTS_MAX];
	int timeout = mailbox_sleep(loop->mailbox) ? timeout_ms(loop, latest) : 0;
	int n = epoll_wait(loop->epoll_fd, events, EVENTS_MAX, timeout);

	ASSERT(n >= 0 || errno == EINTR);
	/* A process that was stopped goes on: what has come meanwhile counts before anybody's time is over. */
	if (n < 0)
		n = epoll_wait(loop->epoll_fd, events, EVENTS_MAX, 0);
	mailbox_wake(loop->mailbox); /* letters to ourselves need no bell, which would cost one more round */
	loop->now = clock_mono(loop->clock);
	for (int i = 0; i < n; i++) {
		struct watch *watch = events[i].data.ptr;

		watch->ready(watch, events[i].events);
	}
	mailbox_deliver(loop->mailbox);
	for (size_t i = 0; i < loop->queues_n; i++)
		expire(loop, loop->queues[i]);
}
