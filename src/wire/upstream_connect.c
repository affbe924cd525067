/*
 * How a connection to the upstream comes about: what its name means, which address lets us, with https the greeting. See
 * upstream_connection.c for the states. The address that is judged here is the one that is connected to.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "wire/upstream_connection.h"

/* ---- connecting ---- */

static void tune(int fd)
{
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
}

void upstream_note_obstacle(struct upstream_call *call, enum upstream_obstacle obstacle, int error)
{
	call->obstacle = obstacle;
	call->obstacle_error = error;
}

static bool is_refused(struct upstream_connection *c, const struct sockaddr *to)
{
	const struct upstream_ways *ways = &c->pool->upstream->ways;
	const char *refusal = ways->refusal ? ways->refusal(ways->refusal_context, to) : NULL;

	if (!refusal)
		return false;
	c->call->refusal = refusal;
	c->call->refused = c->addresses.at[c->address];
	return true;
}

/* A descriptor that a call needs is not kept for one that may come. */
static int open_socket(struct upstream_hub *hub, int family)
{
	int fd;

	do
		fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	while (fd < 0 && (errno == EMFILE || errno == ENFILE) && upstream_make_room(hub));
	return fd;
}

/* Begins to connect to this address. False: it does not let us. What stood in the way of others is not the last word. */
static bool connect_to(struct upstream_connection *c)
{
	const uint32_t events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
	struct sockaddr_storage to;
	socklen_t n = address_to_sockaddr(&c->addresses.at[c->address], &to);

	upstream_note_obstacle(c->call, UPSTREAM_OTHER, 0);
	if (is_refused(c, (struct sockaddr *)&to))
		return false;
	c->call->tried++;
	c->fd = open_socket(c->pool->hub, to.ss_family);
	if (c->fd >= 0) {
		tune(c->fd);
		if ((connect(c->fd, (struct sockaddr *)&to, n) == 0 || errno == EINPROGRESS) &&
		    loop_watch(c->pool->hub->loop, c->fd, events, &c->watch))
			return true;
	}
	upstream_note_obstacle(c->call, UPSTREAM_NO_CONNECTION, errno);
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	return false;
}

void upstream_forget_addresses(struct upstream_pool *pool)
{
	if (pool->upstream->addresses.n == 0)
		pool->addresses.n = 0;
}

/* Until when this address may take: all that are left have the same part of what is left of the call's time. */
static struct mono_time share_of_time(const struct upstream_connection *c)
{
	const struct upstream_call *call = c->call;
	int64_t now_ns = c->pool->hub->loop->now.ns, end_ns = call->deadline.at.ns, share_ns;

	if (call->begin_by.ns != 0 && call->begin_by.ns < end_ns)
		end_ns = call->begin_by.ns;
	share_ns = (end_ns - now_ns) / (int64_t)(c->addresses.n - c->address);
	if (share_ns > UPSTREAM_TRY_MS * INT64_C(1000000))
		share_ns = UPSTREAM_TRY_MS * INT64_C(1000000);
	return (struct mono_time){now_ns + share_ns};
}

/* With the first address from c->address on that lets us. What the name means is asked for anew if none does. */
static void connect_on(struct upstream_connection *c)
{
	struct upstream_pool *pool = c->pool;

	c->can_read = c->can_write = c->peer_closed = false;
	while (c->address < c->addresses.n && !connect_to(c))
		c->address++;
	if (c->address + 1 < c->addresses.n)
		deadline_set_at(&pool->hub->trying, &c->closes, share_of_time(c));
	if (c->address < c->addresses.n)
		return;
	if (c->call->tried > 0)
		upstream_forget_addresses(pool);
	upstream_not_sent(c, "no connection to the upstream could be made");
}

static void try_next(struct upstream_connection *c, int error)
{
	upstream_note_obstacle(c->call, UPSTREAM_NO_CONNECTION, error);
	deadline_clear(&c->closes);
	upstream_close_socket(c);
	c->address++;
	connect_on(c);
}

void upstream_give_up_address(struct deadline *deadline)
{
	try_next(CONTAINER_OF(deadline, struct upstream_connection, closes), ETIMEDOUT);
}

static bool is_same(const struct address *a, const struct address *b)
{
	return a->is_ipv6 == b->is_ipv6 && a->port == b->port && memcmp(a->bytes, b->bytes, a->is_ipv6 ? 16 : 4) == 0;
}

static void now_busy(struct upstream_connection *c)
{
	c->state = UPSTREAM_BUSY;
	c->pool->worked = c->addresses.at[c->address];
}

/* True when both sides have greeted each other. */
static bool greeted(struct upstream_connection *c)
{
	const struct upstream *upstream = c->pool->upstream;

	if (!c->tls)
		c->tls = tls_link_new(upstream->ways.tls, upstream->host, c->fd);
	if (!c->tls) {
		upstream_not_sent(c, "no TLS: there is no memory, or the certificates to be trusted cannot be read");
		return false;
	}
	switch (tls_link_greet(c->tls)) {
	case TLS_DONE:
		now_busy(c);
		return true;
	case TLS_FAILED:
		upstream_not_sent(c, tls_link_reason(c->tls));
		break;
	case TLS_MORE:
		break;
	}
	return false;
}

bool upstream_connected(struct upstream_connection *c)
{
	socklen_t n = sizeof(int);
	int error = 0;

	if (!c->can_write)
		return false;
	if (c->tls)
		return greeted(c);
	if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &n) != 0 || error != 0) {
		try_next(c, error ? error : errno);
		return false;
	}
	deadline_clear(&c->closes);
	if (c->pool->upstream->ways.tls)
		return greeted(c);
	now_busy(c);
	return true;
}

/* ---- what its name means ---- */

/* The one that worked goes before the others, which keep their order. */
static void put_first(struct addresses *addresses, const struct address *worked)
{
	size_t i = 0;

	while (i < addresses->n && !is_same(&addresses->at[i], worked))
		i++;
	if (i == addresses->n)
		return;
	for (; i > 0; i--)
		addresses->at[i] = addresses->at[i - 1];
	addresses->at[0] = *worked;
}

static void connect_first(struct upstream_connection *c)
{
	c->state = UPSTREAM_CONNECTING;
	c->addresses = c->pool->addresses;
	put_first(&c->addresses, &c->pool->worked);
	connect_on(c);
}

static void name_unknown(struct upstream_connection *c, int error)
{
	upstream_note_obstacle(c->call, UPSTREAM_NO_ADDRESS, error);
	upstream_not_sent(c, "the upstream's host cannot be resolved");
}

/* All who wait for it go on. A call that ends begins no other at once, so the next of the list stays. */
static void name_resolved(struct lookup *lookup)
{
	struct upstream_pool *pool = lookup->context;
	int error = lookup->error;

	pool->lookup = NULL;
	if (!error) {
		pool->addresses = lookup->addresses;
		pool->believed_until = mono_add_ms(pool->hub->loop->now, UPSTREAM_NAME_MS);
	}
	lookup_drop(lookup);
	for (struct upstream_connection *c = pool->connections, *next; c; c = next) {
		next = c->next;
		if (c->state == UPSTREAM_RESOLVING && error)
			name_unknown(c, error);
		else if (c->state == UPSTREAM_RESOLVING)
			connect_first(c);
	}
}

void upstream_connect(struct upstream_connection *c)
{
	struct upstream_pool *pool = c->pool;
	const struct upstream *upstream = pool->upstream;
	struct mono_time now = pool->hub->loop->now;

	if (upstream->addresses.n > 0 || (pool->addresses.n > 0 && pool->believed_until.ns > now.ns)) {
		connect_first(c);
		return;
	}
	c->state = UPSTREAM_RESOLVING;
	if (!pool->lookup)
		pool->lookup = resolver_ask(upstream->ways.resolver, upstream->host, upstream->port,
					    pool->hub->loop->mailbox, name_resolved, pool);
	if (pool->addresses.n > 0 && mono_add_ms(pool->believed_until, UPSTREAM_STALE_MS).ns > now.ns)
		connect_first(c);
	else if (!pool->lookup)
		upstream_not_sent(c, "no memory for a connection");
}
