/* See resolver.h. */
#include "wire/resolver.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/hash.h"
#include "base/thread.h"

#define QUESTION_BUCKETS 64

/* One for a name. In the line until a thread takes it, in its bucket until it is answered. */
struct question {
	struct question *next_in_line, *next_in_bucket;
	struct lookup *lookups; /* none: nobody wants to know any more */
	char host[RESOLVER_HOST_BYTES];
};

struct failure {
	char host[RESOLVER_HOST_BYTES];
	int error;
	struct mono_time until;
};

struct resolver {
	struct clock *clock;
	pthread_mutex_t mutex; /* of all below, and of what they point to */
	struct question *first, **last;
	struct question *buckets[QUESTION_BUCKETS];
	struct failure failures[RESOLVER_FAILURES_MAX];
	size_t failures_n; /* that there ever were */
	size_t threads;
	bool ended;
};

/* ---- asking ---- */

static int ask_resolver(const char *host, const char *port, int flags, struct addresses *ret)
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
	       ask_resolver(host, port, AI_NUMERICHOST, ret_addresses) == 0;
}

int resolve_now(const char *host, const char *port, struct addresses *ret_addresses)
{
	return resolve_without_asking(host, port, ret_addresses) ? 0 : ask_resolver(host, port, 0, ret_addresses);
}

/* ---- questions and failures, with the mutex held ---- */

static struct question **resolver_slot_of(struct resolver *resolver, const char *host)
{
	struct question **slot = &resolver->buckets[hash_bytes(0, host, strlen(host)) % QUESTION_BUCKETS];

	while (*slot && strcmp((*slot)->host, host) != 0)
		slot = &(*slot)->next_in_bucket;
	return slot;
}

/* The error of a name that has just failed; 0: it has not. */
static int failure_of(const struct resolver *resolver, const char *host)
{
	size_t n = resolver->failures_n < RESOLVER_FAILURES_MAX ? resolver->failures_n : RESOLVER_FAILURES_MAX;
	int64_t now_ns = clock_mono(resolver->clock).ns;

	for (size_t i = 0; i < n; i++)
		if (resolver->failures[i].until.ns > now_ns && strcmp(resolver->failures[i].host, host) == 0)
			return resolver->failures[i].error;
	return 0;
}

static void remember_failure(struct resolver *resolver, const char *host, int error)
{
	struct failure *failure = &resolver->failures[resolver->failures_n++ % RESOLVER_FAILURES_MAX];

	snprintf(failure->host, sizeof failure->host, "%s", host);
	failure->error = error;
	failure->until = mono_add_ms(clock_mono(resolver->clock), RESOLVER_FAILURE_MS);
}

static void answer_lookup(struct lookup *lookup, int error, const struct addresses *addresses)
{
	lookup->question = NULL;
	lookup->error = error;
	lookup->addresses = *addresses;
	for (size_t i = 0; i < addresses->n; i++)
		lookup->addresses.at[i].port = (uint16_t)strtoul(lookup->port, NULL, 10);
	(void)mailbox_post(lookup->mailbox, &lookup->letter); /* a loop drops its look-ups before it ends */
}

/* All who want to know, and the question is over. */
static void resolver_answer(struct resolver *resolver, struct question *question, int error,
			    const struct addresses *addresses)
{
	struct question **slot = resolver_slot_of(resolver, question->host);

	ASSERT(*slot == question);
	*slot = question->next_in_bucket;
	while (question->lookups) {
		struct lookup *lookup = question->lookups;

		question->lookups = lookup->next;
		answer_lookup(lookup, error, addresses);
	}
	free(question);
}

/* ---- the threads ---- */

/* Without those that nobody wants to know any more. */
static struct question *take_question(struct resolver *resolver)
{
	struct question *question;

	while ((question = resolver->first)) {
		resolver->first = question->next_in_line;
		if (!resolver->first)
			resolver->last = &resolver->first;
		if (question->lookups)
			return question;
		resolver_answer(resolver, question, EAI_AGAIN, &(struct addresses){0});
	}
	return NULL;
}

static void free_resolver(struct resolver *resolver)
{
	pthread_mutex_destroy(&resolver->mutex);
	free(resolver);
}

static void *resolver_run(void *context)
{
	struct resolver *resolver = context;
	struct question *question;
	bool last;

	pthread_mutex_lock(&resolver->mutex);
	while ((question = take_question(resolver))) {
		struct addresses addresses = {0};
		int error;

		pthread_mutex_unlock(&resolver->mutex);
		error = ask_resolver(question->host, /* port= */ NULL, 0, &addresses);
		pthread_mutex_lock(&resolver->mutex);
		if (error)
			remember_failure(resolver, question->host, error);
		resolver_answer(resolver, question, error, &addresses);
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

	if (thread_start(&thread, resolver_run, resolver, "a resolver's thread", &err))
		return false;
	pthread_detach(thread.id);
	return true;
}

/* ---- from the loops ---- */

struct resolver *resolver_new(struct clock *clock)
{
	struct resolver *resolver = calloc(1, sizeof *resolver);

	if (!resolver)
		return NULL;
	resolver->clock = clock;
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
	resolver->ended = true;
	last = resolver->threads == 0;
	pthread_mutex_unlock(&resolver->mutex);
	if (last)
		free_resolver(resolver);
}

static void resolver_deliver(struct letter *letter)
{
	struct lookup *lookup = (struct lookup *)letter; /* its first member */

	lookup->done(lookup);
}

/* With the mutex held. Without a thread the answer is that there is none. */
static void resolver_enter(struct resolver *resolver, struct question *question)
{
	*resolver->last = question;
	resolver->last = &question->next_in_line;
	if (resolver->threads < RESOLVER_THREADS_MAX && start_thread(resolver))
		resolver->threads++;
	else if (resolver->threads == 0)
		resolver_answer(resolver, take_question(resolver), EAI_SYSTEM, &(struct addresses){0});
}

/* With the mutex held: joins the question for its name, or asks it. False: no memory. */
static bool join_question(struct resolver *resolver, struct lookup *lookup)
{
	struct question **slot = resolver_slot_of(resolver, lookup->host), *question = *slot;

	if (!question)
		question = calloc(1, sizeof *question);
	if (!question)
		return false;
	lookup->question = question;
	lookup->next = question->lookups;
	question->lookups = lookup;
	if (*slot)
		return true;
	*slot = question;
	memcpy(question->host, lookup->host, sizeof question->host);
	resolver_enter(resolver, question);
	return true;
}

struct lookup *resolver_ask(struct resolver *resolver, const char *host, const char *port, struct mailbox *mailbox,
			    void (*done)(struct lookup *lookup), void *context)
{
	struct lookup *lookup = calloc(1, sizeof *lookup);
	bool joined = true;
	int failure;

	if (!lookup)
		return NULL;
	lookup->letter.deliver = resolver_deliver;
	lookup->context = context;
	lookup->done = done;
	lookup->resolver = resolver;
	lookup->mailbox = mailbox;
	snprintf(lookup->host, sizeof lookup->host, "%s", host);
	snprintf(lookup->port, sizeof lookup->port, "%s", port);
	pthread_mutex_lock(&resolver->mutex);
	failure = failure_of(resolver, lookup->host);
	if (failure)
		answer_lookup(lookup, failure, &(struct addresses){0});
	else
		joined = join_question(resolver, lookup);
	pthread_mutex_unlock(&resolver->mutex);
	if (joined)
		return lookup;
	free(lookup);
	return NULL;
}

static void leave_question(struct lookup *lookup)
{
	struct lookup **at = &lookup->question->lookups;

	while (*at != lookup)
		at = &(*at)->next;
	*at = lookup->next;
}

/* An answer that lies in the mailbox is dropped only at the loop's end, after which nothing is delivered. */
void lookup_drop(struct lookup *lookup)
{
	if (!lookup)
		return;
	pthread_mutex_lock(&lookup->resolver->mutex);
	if (lookup->question)
		leave_question(lookup);
	pthread_mutex_unlock(&lookup->resolver->mutex);
	free(lookup);
}
