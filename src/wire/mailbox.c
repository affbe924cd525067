/* See mailbox.h. */
#include "wire/mailbox.h"

#include <stdlib.h>

#include "base/bell.h"
#include "base/thread.h"

struct mailbox {
	struct bell *bell;
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
	mailbox->bell = bell_new();
	if (!mailbox->bell) {
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
	bell_free(mailbox->bell);
	pthread_mutex_destroy(&mailbox->mutex);
	free(mailbox);
}

/* False: it is closed. *ret_bell: of somebody who sleeps; NULL: nobody does. */
static bool put(struct mailbox *mailbox, struct letter *letter, struct bell **ret_bell)
{
	LOCKED(&mailbox->mutex);
	if (mailbox->closed)
		return false;
	letter->next = NULL;
	*mailbox->last = letter;
	mailbox->last = &letter->next;
	*ret_bell = mailbox->sleeping ? bell_share(mailbox->bell) : NULL;
	mailbox->sleeping = false;
	return true;
}

enum mailbox_result mailbox_post(struct mailbox *mailbox, struct letter *letter)
{
	struct bell *bell;

	if (atomic_exchange_explicit(&letter->posted, true, memory_order_acq_rel))
		return MAILBOX_PENDING;
	if (!put(mailbox, letter, &bell))
		return MAILBOX_CLOSED;
	/* Without the mutex: who wakes would be held up by it. Once it is free, the mailbox may be gone. */
	if (bell)
		bell_ring(bell);
	bell_free(bell);
	return MAILBOX_POSTED;
}

int mailbox_fd(const struct mailbox *mailbox)
{
	return bell_fd(mailbox->bell);
}

void mailbox_hush(struct mailbox *mailbox)
{
	bell_still(mailbox->bell);
}

bool mailbox_sleep(struct mailbox *mailbox)
{
	LOCKED(&mailbox->mutex);
	return mailbox->sleeping = !mailbox->first;
}

void mailbox_wake(struct mailbox *mailbox)
{
	LOCKED(&mailbox->mutex);
	mailbox->sleeping = false;
}

static struct letter *take_all(struct mailbox *mailbox)
{
	struct letter *first;

	LOCKED(&mailbox->mutex);
	first = mailbox->first;
	mailbox->first = NULL;
	mailbox->last = &mailbox->first;
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
