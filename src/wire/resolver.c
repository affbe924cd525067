/* See resolver.h. */
#include "wire/resolver.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/thread.h"

struct resolver {
	pthread_mutex_t mutex;
	struct lookup *first, **last; /* WAITING */
	size_t threads;
	bool ended;
};

/* ---- asking ---- */

static int ask(const char *host, const char *port, int flags, struct addresses *ret)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | flags}, *found = NULL;
	int error = getaddrinfo(host, port, &hints, &found);

	ret->n = 0;
	for (struct addrinfo *at = found; !error && at && ret->n < RESOLVER_ADDRESSES_MAX; at = at->ai_next) {
		struct sockaddr_storage sockaddr = {0};

		memcpy(&sockaddr, at->ai_addr, at->ai_addrlen);
		ret->n += address_from_sockaddr(&sockaddr, &ret->at[ret->n]);
	}
	if (found)
		freeaddrinfo(found);
	return error || ret->n ? error : EAI_NONAME;
}

static bool is_localhost(const char *host)
{
	static const char name[] = "localhost", tail[] = ".localhost";
	size_t n = strlen(host);

	return strcasecmp(host, name) == 0 || (n >= sizeof tail && strcasecmp(host + n - (sizeof tail - 1), tail) == 0);
}

static void this_machine(const char *port, struct addresses *ret)
{
	uint16_t number = (uint16_t)strtoul(port, NULL, 10);

	*ret = (struct addresses){.n = 2, .at = {{.port = number, .is_ipv6 = true}, {.port = number}}};
	memcpy(ret->at[0].bytes, &in6addr_loopback, 16);
	memcpy(ret->at[1].bytes, &(uint32_t){htonl(INADDR_LOOPBACK)}, 4);
}

/* What begins with a digit may be an address in one of many spellings; what has a colon is one, or nothing. */
bool resolve_without_asking(const char *host, const char *port, struct addresses *ret_addresses)
{
	if (is_localhost(host)) {
		this_machine(port, ret_addresses);
		return true;
	}
	return ((host[0] >= '0' && host[0] <= '9') || strchr(host, ':')) &&
	       ask(host, port, AI_NUMERICHOST, ret_addresses) == 0;
}

int resolve_now(const char *host, const char *port, struct addresses *ret_addresses)
{
	return resolve_without_asking(host, port, ret_addresses) ? 0 : ask(host, port, 0, ret_addresses);
}

/* ---- the threads ---- */

/* With the mutex held. Whoever dropped it has left it to us. */
static void answer(struct lookup *lookup, int error, const struct addresses *addresses)
{
	if (lookup->state == LOOKUP_DROPPED) {
		free(lookup);
		return;
	}
	lookup->error = error;
	lookup->addresses = *addresses;
	lookup->state = LOOKUP_ANSWERED;
	(void)mailbox_post(lookup->mailbox, &lookup->letter); /* a loop drops its look-ups before it ends */
}

static struct lookup *take_lookup(struct resolver *resolver)
{
	struct lookup *lookup = resolver->first;

	if (!lookup)
		return NULL;
	resolver->first = lookup->next;
	if (!resolver->first)
		resolver->last = &resolver->first;
	lookup->state = LOOKUP_ASKING;
	return lookup;
}

static void free_resolver(struct resolver *resolver)
{
	pthread_mutex_destroy(&resolver->mutex);
	free(resolver);
}

static void *run(void *context)
{
	struct resolver *resolver = context;
	struct lookup *lookup;
	bool last;

	pthread_mutex_lock(&resolver->mutex);
	while ((lookup = take_lookup(resolver))) {
		struct addresses addresses = {0};
		int error;

		pthread_mutex_unlock(&resolver->mutex);
		error = ask(lookup->host, lookup->port, 0, &addresses);
		pthread_mutex_lock(&resolver->mutex);
		answer(lookup, error, &addresses);
	}
	resolver->threads--;
	last = resolver->ended && resolver->threads == 0;
	pthread_mutex_unlock(&resolver->mutex);
	if (last)
		free_resolver(resolver);
	return NULL;
}

/* Nobody joins them: what hangs in a question would hold up the end. */
static bool start_thread(struct resolver *resolver)
{
	struct thread thread;
	struct hx_error err;

	if (thread_start(&thread, run, resolver, "a resolver's thread", &err))
		return false;
	pthread_detach(thread.id);
	return true;
}

/* ---- from the loops ---- */

struct resolver *resolver_new(void)
{
	struct resolver *resolver = calloc(1, sizeof *resolver);

	if (!resolver)
		return NULL;
	pthread_mutex_init(&resolver->mutex, NULL);
	resolver->last = &resolver->first;
	return resolver;
}

void resolver_free(struct resolver *resolver)
{
	bool last;

	if (!resolver)
		return;
	pthread_mutex_lock(&resolver->mutex);
	ASSERT(!resolver->first);
	resolver->ended = true;
	last = resolver->threads == 0;
	pthread_mutex_unlock(&resolver->mutex);
	if (last)
		free_resolver(resolver);
}

static void deliver(struct letter *letter)
{
	struct lookup *lookup = (struct lookup *)letter; /* its first member */

	lookup->done(lookup);
}

/* With the mutex held. Without a thread the answer is that there is none. */
static void enter(struct resolver *resolver, struct lookup *lookup)
{
	*resolver->last = lookup;
	resolver->last = &lookup->next;
	if (resolver->threads < RESOLVER_THREADS_MAX && start_thread(resolver))
		resolver->threads++;
	else if (resolver->threads == 0)
		answer(take_lookup(resolver), EAI_SYSTEM, &(struct addresses){0});
}

struct lookup *resolver_ask(struct resolver *resolver, const char *host, const char *port, struct mailbox *mailbox,
			    void (*done)(struct lookup *lookup), void *context)
{
	struct lookup *lookup = calloc(1, sizeof *lookup);

	if (!lookup)
		return NULL;
	lookup->letter.deliver = deliver;
	lookup->context = context;
	lookup->done = done;
	lookup->resolver = resolver;
	lookup->mailbox = mailbox;
	snprintf(lookup->host, sizeof lookup->host, "%s", host);
	snprintf(lookup->port, sizeof lookup->port, "%s", port);
	pthread_mutex_lock(&resolver->mutex);
	enter(resolver, lookup);
	pthread_mutex_unlock(&resolver->mutex);
	return lookup;
}

static void leave_line(struct resolver *resolver, struct lookup *lookup)
{
	struct lookup **at = &resolver->first;

	while (*at != lookup)
		at = &(*at)->next;
	*at = lookup->next;
	if (!*at)
		resolver->last = at;
}

/* An answer that lies in the mailbox is dropped only at the loop's end, after which nothing is delivered. */
void lookup_drop(struct lookup *lookup)
{
	struct resolver *resolver;
	bool asking;

	if (!lookup)
		return;
	resolver = lookup->resolver;
	pthread_mutex_lock(&resolver->mutex);
	asking = lookup->state == LOOKUP_ASKING;
	if (lookup->state == LOOKUP_WAITING)
		leave_line(resolver, lookup);
	if (asking)
		lookup->state = LOOKUP_DROPPED;
	pthread_mutex_unlock(&resolver->mutex);
	if (!asking)
		free(lookup);
}
