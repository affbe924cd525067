/*
 * Names into addresses, aside: getaddrinfo() may take many seconds, so it is called on threads that are there for nothing else,
 * and the answer comes to the loop that has asked as a letter.
 *
 *   resolver_ask ──▶ question ──▶ line ──▶ getaddrinfo() ──▶ done(lookup), in the loop's thread
 *        │             └── one for a name: whoever asks for it meanwhile joins it
 *        ├── the name has just failed: the same answer at once
 *        └── lookup_drop, whenever the answer is not wanted any more ──▶ freed
 *
 * So a name that does not answer holds one thread, however many calls want it, and one that is wrong is asked for once in
 * RESOLVER_FAILURE_MS. A good answer is remembered by who has asked (upstream.h).
 *
 * Threads are started when there is something to ask, RESOLVER_THREADS_MAX at most, and end when there is nothing left. One that hangs
 * in a question holds up nobody's end: the resolver is freed by whoever leaves it last.
 *
 * `localhost` and what ends in `.localhost` are this machine and are asked of nobody (RFC 6761).
 */
#pragma once

#include "base/clock.h"
#include "wire/address.h"
#include "wire/mailbox.h"

#define RESOLVER_THREADS_MAX 64
#define RESOLVER_ADDRESSES_MAX 8
#define RESOLVER_HOST_BYTES 256
#define RESOLVER_FAILURE_MS 1000 /* for which a failure is the answer */
#define RESOLVER_FAILURES_MAX 64 /* that are remembered, the last ones */

struct question;
struct resolver;

struct addresses {
	size_t n;
	struct address at[RESOLVER_ADDRESSES_MAX];
};

struct lookup {
	struct letter letter;
	void *context;
	char host[RESOLVER_HOST_BYTES];
	char port[6];
	struct addresses addresses; /* the answer */
	int error;                  /* if there is none: getaddrinfo()'s */

	/* The resolver's own. */
	void (*done)(struct lookup *lookup);
	struct resolver *resolver;
	struct mailbox *mailbox;
	struct question *question; /* which it waits for; NULL: it is answered */
	struct lookup *next;       /* of those that wait for the same */
};

/* NULL: no memory. The clock must outlive it. */
struct resolver *resolver_new(struct clock *clock);
/* All look-ups are dropped. Waits for nobody. Takes NULL. */
void resolver_free(struct resolver *resolver);

/* NULL: no memory. The look-up is the asker's, until lookup_drop(); done() may call that. */
struct lookup *resolver_ask(struct resolver *resolver, const char *host, const char *port, struct mailbox *mailbox,
			    void (*done)(struct lookup *lookup), void *context);
/* In the loop's thread, in whatever state it is; done() will not be called any more. Takes NULL. */
void lookup_drop(struct lookup *lookup);

/* At once and in this thread, asking whoever has to be asked: 0, or getaddrinfo()'s error. */
int resolve_now(const char *host, const char *port, struct addresses *ret_addresses);
/* The same for what is no name: an address in whatever spelling, or this machine. False: it has to be asked for. */
bool resolve_without_asking(const char *host, const char *port, struct addresses *ret_addresses);
