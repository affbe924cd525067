/* See bell.h. */
#include "base/bell.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"

#define HELD_MAX 16 /* one more rings at once */

struct bell {
	int fd;
	_Atomic unsigned references;
};

static _Thread_local struct {
	bool holding;
	size_t n;
	struct bell *at[HELD_MAX];
} held;

struct bell *bell_new(void)
{
	struct bell *bell = calloc(1, sizeof *bell);

	if (!bell)
		return NULL;
	bell->references = 1;
	bell->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (bell->fd < 0) {
		free(bell);
		return NULL;
	}
	return bell;
}

struct bell *bell_share(struct bell *bell)
{
	atomic_fetch_add_explicit(&bell->references, 1, memory_order_relaxed);
	return bell;
}

void bell_free(struct bell *bell)
{
	if (!bell || atomic_fetch_sub_explicit(&bell->references, 1, memory_order_acq_rel) > 1)
		return;
	close(bell->fd);
	free(bell);
}

int bell_fd(const struct bell *bell)
{
	return bell->fd;
}

static void ring_now(struct bell *bell)
{
	(void)eventfd_write(bell->fd, 1); /* fails only when it is full of earlier ones */
}

void bell_ring(struct bell *bell)
{
	for (size_t i = 0; i < held.n; i++)
		if (held.at[i] == bell)
			return;
	if (!held.holding || held.n == HELD_MAX) {
		ring_now(bell);
		return;
	}
	held.at[held.n++] = bell_share(bell);
}

void bell_still(struct bell *bell)
{
	eventfd_t count;

	(void)eventfd_read(bell->fd, &count); /* nothing to read is as good */
}

void bells_hold(void)
{
	ASSERT(!held.holding);
	held.holding = true;
}

void bells_let_go(void)
{
	size_t n = held.n;

	held.holding = false;
	held.n = 0;
	for (size_t i = 0; i < n; i++) {
		ring_now(held.at[i]);
		bell_free(held.at[i]);
	}
}
