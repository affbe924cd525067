/*
 * How a connection to the upstream comes about: what its name means, which address lets us, with https the greeting. See
 * upstream_connection.c for the states. The address that is judged here is the one that is connected to.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
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

/* Begins to connect to this address. False: it does not let us. */
static bool connect_to(struct upstream_connection *c)
{
	const uint32_t events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
	struct sockaddr_storage to;
	socklen_t n = address_to_sockaddr(&c->addresses.at[c->address], &to);

	if (is_refused(c, (struct sockaddr *)&to))
		return false;
	c->call->tried++;
	c->fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
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

/* With the first address from c->address on that lets us. What the name means is asked for anew if none does. */
static void connect_on(struct upstream_connection *c)
{
	struct upstream_pool *pool = c->pool;

	c->can_read = c->can_write = c->peer_closed = false;
	while (c->address < c->addresses.n && !connect_to(c))
		c->address++;
	if (c->address + 1 < c->addresses.n)
		deadline_set(&pool->hub->trying, &c->closes, pool->hub->loop->now);
	if (c->address < c->addresses.n)
		return;
	if (c->call->tried > 0)
		pool->believed_until = pool->hub->loop->now;
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

/* It has had its time, and there is another one to try. */
void upstream_give_up_address(struct deadline *deadline)
{
	try_next(CONTAINER_OF(deadline, struct upstream_connection, closes), ETIMEDOUT);
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
		c->state = UPSTREAM_BUSY;
		return true;
	case TLS_FAILED:
		upstream_not_sent(c, tls_link_reason(c->tls));
		break;
	case TLS_MORE:
		break;
	}
	return false;
}

/* True when it is connected. */
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
	c->state = UPSTREAM_BUSY;
	return true;
}

/* ---- what its name means ---- */

static void connect_first(struct upstream_connection *c)
{
	c->state = UPSTREAM_CONNECTING;
	c->addresses = c->pool->addresses;
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
	pool->addresses = lookup->addresses;
	pool->believed_until = mono_add_ms(pool->hub->loop->now, UPSTREAM_NAME_MS);
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

	if (upstream->addresses.n > 0 || (pool->addresses.n > 0 && pool->believed_until.ns > pool->hub->loop->now.ns)) {
		connect_first(c);
		return;
	}
	c->state = UPSTREAM_RESOLVING;
	if (!pool->lookup)
		pool->lookup = resolver_ask(upstream->ways.resolver, upstream->host, upstream->port,
					    pool->hub->loop->mailbox, name_resolved, pool);
	if (!pool->lookup)
		upstream_not_sent(c, "no memory for a connection");
}
