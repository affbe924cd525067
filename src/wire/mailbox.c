/* See mailbox.h. */
#include "wire/mailbox.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/thread.h"

struct mailbox {
	int fd;
	pthread_mutex_t mutex;
	struct letter *first, **last;
	bool sleeping;
	bool closed;
};

struct mailbox *mailbox_new(void)
{
	struct mailbox *mailbox = calloc(1, sizeof *mailbox);

	if (!mailbox)
		return NULL;
	mailbox->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (mailbox->fd < 0) {
		free(mailbox);
		return NULL;
	}
	mailbox->last = &mailbox->first;
	pthread_mutex_init(&mailbox->mutex, NULL);
	return mailbox;
}

void mailbox_free(struct mailbox *mailbox)
{
	if (!mailbox)
		return;
	close(mailbox->fd);
	pthread_mutex_destroy(&mailbox->mutex);
	free(mailbox);
}

/* Under the mutex. */
static void ring(struct mailbox *mailbox)
{
	uint64_t one = 1;
	ssize_t n = write(mailbox->fd, &one, sizeof one);

	(void)n; /* the counter cannot be full: it is read before the next sleep */
	mailbox->sleeping = false;
}

enum mailbox_result mailbox_post(struct mailbox *mailbox, struct letter *letter)
{
	if (atomic_exchange_explicit(&letter->posted, true, memory_order_acq_rel))
		return MAILBOX_PENDING;
	LOCKED(&mailbox->mutex);
	if (mailbox->closed)
		return MAILBOX_CLOSED;
	letter->next = NULL;
	*mailbox->last = letter;
	mailbox->last = &letter->next;
	if (mailbox->sleeping)
		ring(mailbox);
	return MAILBOX_POSTED;
}

int mailbox_fd(const struct mailbox *mailbox)
{
	return mailbox->fd;
}

bool mailbox_sleep(struct mailbox *mailbox)
{
	LOCKED(&mailbox->mutex);
	return mailbox->sleeping = !mailbox->first;
}

static struct letter *take_all(struct mailbox *mailbox)
{
	struct letter *first;

	LOCKED(&mailbox->mutex);
	first = mailbox->first;
	mailbox->first = NULL;
	mailbox->last = &mailbox->first;
	mailbox->sleeping = false;
	return first;
}

size_t mailbox_deliver(struct mailbox *mailbox)
{
	size_t n = 0;

	for (struct letter *letter = take_all(mailbox), *next; letter; letter = next, n++) {
		next = letter->next;
		/* From here on it can be posted anew; what was written before an earlier post is visible now. */
		atomic_exchange_explicit(&letter->posted, false, memory_order_acq_rel);
		letter->deliver(letter);
	}
	return n;
}

bool mailbox_close(struct mailbox *mailbox)
{
	LOCKED(&mailbox->mutex);
	return mailbox->closed = !mailbox->first;
}
