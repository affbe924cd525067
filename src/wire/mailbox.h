/*
 * The only way into a loop's thread: letters from any thread, delivered by the loop.
 *
 * A letter is embedded in what it is about. It is in a mailbox at most once: posting it again before it is delivered
 * changes nothing, and what the poster had written before is seen by that delivery. So a letter says "look at me",
 * and what there is to see stands in the object around it.
 *
 * A mailbox may outlive the thread that empties it: a letter posted after the end is refused, and that is all that
 * happens. The eventfd is written to only when the loop sleeps.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "base/error.h"

struct mailbox;

struct letter {
	/* In the loop's thread. The letter may be posted again, or freed, from here on. */
	void (*deliver)(struct letter *letter);
	struct letter *next;
	_Atomic bool posted;
};

/* NULL without memory or descriptors. */
struct mailbox *mailbox_new(void);
/* Takes NULL. Nobody may post any more. */
void mailbox_free(struct mailbox *mailbox);

/*
 * From any thread. POSTED: it will be delivered. PENDING: it was in the mailbox already. CLOSED: the loop has ended.
 * Whoever counts references gives the letter one with each POSTED.
 */
enum mailbox_result { MAILBOX_POSTED, MAILBOX_PENDING, MAILBOX_CLOSED };
enum mailbox_result mailbox_post(struct mailbox *mailbox, struct letter *letter);

/* The loop's side. The descriptor is readable when a sleeper should wake. */
int mailbox_fd(const struct mailbox *mailbox);
/* Not readable any more, until somebody has to wake again. */
void mailbox_hush(struct mailbox *mailbox);
/* True if it may sleep: there is no mail, and the next letter will make the descriptor readable. */
bool mailbox_sleep(struct mailbox *mailbox);
/* Awake again: what is posted from here on is looked at before the next sleep, and makes nothing readable. */
void mailbox_wake(struct mailbox *mailbox);
/* Delivers all that is there, and returns how many letters that were. */
size_t mailbox_deliver(struct mailbox *mailbox);
/* Refuses everything from now on, if it is empty; false if it is not. */
bool mailbox_close(struct mailbox *mailbox);
