/*
 * One connection to the upstream, from its socket to the end of an answer.
 *
 *   start ─▶ CONNECTING ─connected─▶ BUSY ─answer complete, both sides willing─▶ IDLE ─the next call─▶ BUSY
 *                │ refused: the next address                                       │
 *                └──────────────▶ CLOSED ◀────────────── anything else ◀───────────┘
 *
 *   state       waits for                                      how long
 *   CONNECTING  the upstream to accept, with https to greet    the call's time: then NOT_SENT
 *   BUSY        it to take the request and to answer           the call's time: then UNKNOWN
 *   IDLE        the next call                                  UPSTREAM_IDLE_MS; closed when the upstream says anything
 *
 * Sending and receiving go on side by side: an answer may come before the request is sent (413), and is then as good
 * as any, but the connection is not used again. A send that fails is not the end for the same reason: the answer that
 * explains it may be there to be read.
 *
 * What the call does not take at once (data() says so) is kept decoded in `spill`, what follows it undecoded in
 * `pending`; both have at most what one read brought. While it is paused nothing is read, no time runs and nothing ends.
 *
 * With https the same bytes go through a tls_link (upstream_tls.h). What the socket is ready for then says little: TLS
 * may have to read before it can write, and may hold bytes that the socket does not have any more. So each event means
 * that both may work again, and only a read that has to wait means that there is nothing to read.
 *
 * As in connection.c events are edge-triggered and merely noted, and the struct is freed by its own letter.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <unistd.h>

#include "wire/upstream_connection.h"
#include "wire/writer.h"

#define STEPS_PER_TURN 16 /* reads; then others have their turn */
#define HEAD_OUT_BYTES_MAX (1u << 20)

static void ready(struct watch *watch, uint32_t events);
static void go_on(struct letter *letter);
static void proceed(struct upstream_connection *c);

/* ---- the end of a connection, and of a call ---- */

static void unlink_connection(struct upstream_connection *c)
{
	if (c->previous)
		c->previous->next = c->next;
	else
		c->pool->connections = c->next;
	if (c->next)
		c->next->previous = c->previous;
}

static void close_socket(struct upstream_connection *c)
{
	tls_link_free(c->tls);
	c->tls = NULL;
	if (c->fd >= 0) {
		loop_unwatch(c->pool->loop, c->fd);
		close(c->fd);
	}
	c->fd = -1;
}

static void free_connection(struct upstream_connection *c)
{
	strbuf_release(&c->out);
	strbuf_release(&c->pending);
	strbuf_release(&c->spill);
	free(c);
}

void upstream_close(struct upstream_connection *c)
{
	ASSERT(c->state != UPSTREAM_CLOSED);
	if (c->state == UPSTREAM_IDLE)
		c->pool->idle_n--;
	c->state = UPSTREAM_CLOSED;
	c->call = NULL;
	deadline_clear(&c->closes);
	unlink_connection(c);
	close_socket(c);
	atomic_fetch_sub_explicit(&c->pool->upstream->stats.open, 1, memory_order_relaxed);
	ASSERT(mailbox_post(c->pool->loop->mailbox, &c->letter) != MAILBOX_CLOSED);
}

static void end_call(struct upstream_call *call, enum upstream_end end, enum hx_code code, const char *reason)
{
	deadline_clear(&call->deadline);
	call->connection = NULL;
	call->code = code;
	call->reason = reason;
	call->ended(call, end);
}

static void not_sent(struct upstream_connection *c, const char *reason)
{
	struct upstream_call *call = c->call;

	upstream_close(c);
	end_call(call, UPSTREAM_NOT_SENT, HX_UPSTREAM_UNREACHABLE, reason);
}

void upstream_unknown(struct upstream_connection *c, enum hx_code code, const char *reason)
{
	struct upstream_call *call = c->call;

	upstream_close(c);
	end_call(call, UPSTREAM_UNKNOWN, code, reason);
}

/* ---- connecting ---- */

static void tune(int fd)
{
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
}

/* Begins to connect to the first address from c->address on that lets us. False: there is none left. */
static bool connect_on(struct upstream_connection *c)
{
	const struct upstream *upstream = c->pool->upstream;
	const uint32_t events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;

	for (; c->address < upstream->addresses_n; c->address++) {
		struct sockaddr_storage to;
		socklen_t n = address_to_sockaddr(&upstream->addresses[c->address], &to);

		c->fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		if (c->fd < 0)
			continue;
		tune(c->fd);
		if ((connect(c->fd, (struct sockaddr *)&to, n) == 0 || errno == EINPROGRESS) &&
		    loop_watch(c->pool->loop, c->fd, events, &c->watch))
			return true;
		close(c->fd);
		c->fd = -1;
	}
	return false;
}

/* True when both sides have greeted each other. */
static bool greeted(struct upstream_connection *c)
{
	const struct upstream *upstream = c->pool->upstream;

	if (!c->tls)
		c->tls = tls_link_new(upstream->tls, &upstream->addresses[c->address], c->fd);
	if (!c->tls) {
		not_sent(c, "no memory for a connection");
		return false;
	}
	switch (tls_link_greet(c->tls)) {
	case TLS_DONE:
		c->state = UPSTREAM_BUSY;
		return true;
	case TLS_FAILED:
		not_sent(c, tls_link_reason(c->tls));
		break;
	case TLS_MORE:
		break;
	}
	return false;
}

/* True when it is connected. */
static bool connected(struct upstream_connection *c)
{
	socklen_t n = sizeof(int);
	int error = 0;

	if (!c->can_write)
		return false;
	if (c->tls)
		return greeted(c);
	if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &n) == 0 && error == 0) {
		if (c->pool->upstream->tls)
			return greeted(c);
		c->state = UPSTREAM_BUSY;
		return true;
	}
	close_socket(c);
	c->address++;
	c->can_read = c->can_write = c->peer_closed = false;
	if (!connect_on(c))
		not_sent(c, "no connection to the upstream could be made");
	return false;
}

static struct upstream_connection *new_connection(struct upstream_pool *pool)
{
	struct upstream_connection *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	c->pool = pool;
	c->fd = -1;
	c->state = UPSTREAM_CONNECTING;
	c->watch.ready = ready;
	c->letter.deliver = go_on;
	strbuf_init(&c->out, HEAD_OUT_BYTES_MAX);
	strbuf_init(&c->pending, upstream_answer_limits.head_bytes + UPSTREAM_READ_BYTES);
	strbuf_init(&c->spill, UPSTREAM_READ_BYTES + upstream_answer_limits.head_bytes);
	c->next = pool->connections;
	if (c->next)
		c->next->previous = c;
	pool->connections = c;
	atomic_fetch_add_explicit(&pool->upstream->stats.open, 1, memory_order_relaxed);
	return c;
}

/* ---- the idle ones ---- */

/* A byte that is taken by this costs nothing: the connection is then closed. TLS has words of its own, without a byte. */
static bool is_silent(const struct upstream_connection *c)
{
	char byte;
	ssize_t n = c->tls ? tls_link_receive(c->tls, &byte, 1) : recv(c->fd, &byte, 1, MSG_PEEK);

	return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

/* The one that was used last. NULL: none that can be trusted. */
static struct upstream_connection *take_idle(struct upstream_pool *pool)
{
	while (pool->idle_n > 0) {
		struct upstream_connection *c = CONTAINER_OF(pool->idle.ends.previous, struct upstream_connection,
							     closes);

		/* The queue may lag: a loop that was busy has not looked at it for a while. */
		if (c->closes.at.ns <= clock_mono(pool->loop->clock).ns || !is_silent(c)) {
			upstream_close(c);
			continue;
		}
		deadline_clear(&c->closes);
		pool->idle_n--;
		c->state = UPSTREAM_BUSY;
		c->reused = true;
		atomic_fetch_add_explicit(&pool->upstream->stats.reused, 1, memory_order_relaxed);
		return c;
	}
	return NULL;
}

static void close_idle(struct deadline *deadline)
{
	upstream_close(CONTAINER_OF(deadline, struct upstream_connection, closes));
}

/* Back to how a fresh connection is, but for its socket and its buffers. */
static void become_idle(struct upstream_connection *c)
{
	struct upstream_pool *pool = c->pool;

	c->call = NULL;
	c->begun = c->in_body = c->body_done = false;
	c->interim_n = 0;
	c->sent = 0;
	c->scan = (struct wire_scan){0};
	strbuf_reset(&c->out);
	strbuf_release(&c->pending);
	strbuf_release(&c->spill);
	c->state = UPSTREAM_IDLE;
	pool->idle_n++;
	deadline_set(&pool->idle, &c->closes, pool->loop->now);
	if (pool->idle_n > UPSTREAM_IDLE_MAX)
		close_idle(deadline_first(&pool->idle));
}

/* ---- the beginning of a call ---- */

static bool write_head(const struct upstream_call *call, struct strbuf *out)
{
	head_write_request(call->method, call->target, out);
	for (size_t i = 0; i < call->fields.n; i++)
		if (!head_write_field(call->fields.at[i].name, call->fields.at[i].value, out))
			return false;
	head_write_end(out);
	return !out->failed;
}

/* Puts the call on this connection, or on a new one where that is NULL. */
static void attach(struct upstream_pool *pool, struct upstream_connection *c, struct upstream_call *call)
{
	bool fresh = !c;

	if (fresh)
		c = new_connection(pool);
	if (!c) {
		end_call(call, UPSTREAM_NOT_SENT, HX_UPSTREAM_UNREACHABLE, "no memory for a connection");
		return;
	}
	c->call = call;
	call->connection = c;
	if (!write_head(call, &c->out)) {
		not_sent(c, "the request cannot be written");
		return;
	}
	if (!fresh) {
		proceed(c);
		return;
	}
	atomic_fetch_add_explicit(&pool->upstream->stats.total, 1, memory_order_relaxed);
	if (!connect_on(c))
		not_sent(c, "no connection to the upstream could be made");
}

/* The connection is dead, but the call may have another one. */
static void move_call(struct upstream_connection *c)
{
	struct upstream_call *call = c->call;

	upstream_close(c);
	attach(c->pool, NULL, call);
}

/* ---- sending ---- */

static ssize_t send_rest(const struct upstream_connection *c)
{
	struct slice body = c->call->body;
	size_t head = c->sent < c->out.n ? c->out.n - c->sent : 0, skip = c->sent - (c->out.n - head);
	struct iovec parts[] = {{c->out.p + c->out.n - head, head},
				{(char *)(uintptr_t)(body.p + skip), body.n - skip}};
	struct msghdr message = {.msg_iov = head ? parts : parts + 1, .msg_iovlen = head && body.n ? 2 : 1};

	if (c->tls)
		return tls_link_send(c->tls, slice_of(message.msg_iov->iov_base, message.msg_iov->iov_len));
	return sendmsg(c->fd, &message, MSG_NOSIGNAL);
}

static bool is_too_late(const struct upstream_connection *c)
{
	int64_t by_ns = c->call->begin_by.ns;

	return c->sent == 0 && by_ns != 0 && clock_mono(c->pool->loop->clock).ns >= by_ns;
}

/* False: the call has moved away from here, or is over. */
static bool send_on(struct upstream_connection *c)
{
	if (is_too_late(c)) {
		not_sent(c, "there was no time left to send the request");
		return false;
	}
	while (c->can_write && !c->write_dead && c->sent < c->out.n + c->call->body.n) {
		ssize_t n = send_rest(c);

		if (n >= 0) {
			c->sent += (size_t)n;
		} else if (errno == EAGAIN || errno == EWOULDBLOCK) {
			c->can_write = false;
		} else if (errno == EINTR) {
			continue;
		} else if (c->sent == 0 && c->reused && !c->tls) {
			move_call(c); /* not a byte has left, so this is no second time (TLS does not say that) */
			return false;
		} else {
			c->write_dead = c->can_read = true;
		}
	}
	return true;
}

/* ---- receiving ---- */

void upstream_broken(struct upstream_connection *c, const char *reason)
{
	if (!c->reused || c->begun || !c->call->repeatable) {
		upstream_unknown(c, HX_BAD_GATEWAY, reason);
		return;
	}
	atomic_fetch_add_explicit(&c->pool->upstream->stats.repeated, 1, memory_order_relaxed);
	move_call(c);
}

void upstream_finish(struct upstream_connection *c, bool leftover)
{
	struct upstream_call *call = c->call;
	bool all_sent = c->sent == c->out.n + call->body.n;

	if (call->response.head.keep_alive && all_sent && !leftover && !c->peer_closed)
		become_idle(c);
	else
		upstream_close(c);
	end_call(call, UPSTREAM_ANSWERED, HX_OK, NULL);
}

/* Whatever came may have ended the call, and an idle connection is nobody's. */
static bool is_at_work(const struct upstream_connection *c)
{
	return c->state == UPSTREAM_BUSY && !c->paused;
}

static ssize_t receive_some(struct upstream_connection *c)
{
	struct upstream_pool *pool = c->pool;

	return c->tls ? tls_link_receive(c->tls, pool->input, sizeof pool->input)
		      : recv(c->fd, pool->input, sizeof pool->input, 0);
}

/* Reads once. False: it has to wait, or it is over. */
static bool receive(struct upstream_connection *c)
{
	struct upstream_pool *pool = c->pool;
	struct upstream_call *call = c->call;
	ssize_t n = receive_some(c);

	if (n > 0) {
		c->begun = true;
		if (n < (ssize_t)sizeof pool->input && !c->peer_closed && !c->tls)
			c->can_read = false;
		if (call->patient)
			deadline_set_at(&pool->busy, &call->deadline, mono_add_ms(pool->loop->now, call->timeout_ms));
		upstream_consume(c, slice_of(pool->input, (size_t)n));
		return is_at_work(c);
	}
	if (n < 0 && errno == EINTR)
		return true;
	c->can_read = false;
	if (n == 0)
		upstream_no_more(c);
	else if (errno != EAGAIN && errno != EWOULDBLOCK)
		upstream_broken(c, "the upstream reset the connection");
	return false;
}

static void proceed(struct upstream_connection *c)
{
	if (c->state == UPSTREAM_CONNECTING && !connected(c))
		return;
	if (!send_on(c) || c->paused)
		return;
	for (unsigned i = 0; c->can_read; i++) {
		if (i == STEPS_PER_TURN) {
			(void)mailbox_post(c->pool->loop->mailbox, &c->letter); /* open as long as we are */
			return;
		}
		if (!receive(c))
			break;
	}
	if (is_at_work(c) && c->in_body && c->call->drained)
		c->call->drained(c->call);
}

/* ---- what moves it ---- */

static void ready(struct watch *watch, uint32_t events)
{
	struct upstream_connection *c = CONTAINER_OF(watch, struct upstream_connection, watch);

	if (c->state == UPSTREAM_CLOSED)
		return;
	c->peer_closed |= (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
	c->can_read |= (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
	c->can_write |= (events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0;
	if (c->tls)
		c->can_read = c->can_write = true;
	if (c->state != UPSTREAM_IDLE)
		proceed(c);
	else if (c->can_read && !is_silent(c))
		upstream_close(c); /* it says goodbye, or something that nobody has asked for */
}

static void go_on(struct letter *letter)
{
	struct upstream_connection *c = CONTAINER_OF(letter, struct upstream_connection, letter);

	if (c->state == UPSTREAM_CLOSED)
		free_connection(c);
	else if (c->state == UPSTREAM_BUSY)
		proceed(c);
}

/* The time of a call is over. */
static void expire(struct deadline *deadline)
{
	struct upstream_call *call = CONTAINER_OF(deadline, struct upstream_call, deadline);
	struct upstream_connection *c = call->connection;

	if (c->state == UPSTREAM_CONNECTING)
		not_sent(c, "no connection to the upstream could be made in time");
	else
		upstream_unknown(c, HX_UPSTREAM_TIMEOUT,
				 "the upstream did not answer in time; it is not known what it did");
}

static void set_time(struct upstream_call *call)
{
	struct upstream_pool *pool = call->pool;

	deadline_set_at(&pool->busy, &call->deadline, mono_add_ms(pool->loop->now, call->timeout_ms));
}

/* The call goes on where it was paused. */
static void resume(struct upstream_connection *c)
{
	set_time(c->call);
	c->spill_at += upstream_hand_out(c, slice_of(c->spill.p + c->spill_at, c->spill.n - c->spill_at));
	if (!c->call || c->paused)
		return;
	strbuf_reset(&c->spill);
	c->spill_at = 0;
	if (c->body_done) {
		upstream_finish(c, c->leftover);
		return;
	}
	if (c->pending.n > 0)
		upstream_consume(c, slice_of(NULL, 0));
	if (is_at_work(c))
		proceed(c);
}

static void deliver_call(struct letter *letter)
{
	struct upstream_call *call = CONTAINER_OF(letter, struct upstream_call, letter);

	if (call->connection) {
		resume(call->connection);
		return;
	}
	set_time(call);
	attach(call->pool, call->fresh ? NULL : take_idle(call->pool), call);
}

void upstream_call_start(struct upstream_pool *pool, struct upstream_call *call)
{
	call->pool = pool;
	call->connection = NULL;
	call->letter.deliver = deliver_call;
	call->response = (struct wire_response){0};
	/* Refused only when the loop has ended; the caller, too, is then let go by its owner. */
	(void)mailbox_post(pool->loop->mailbox, &call->letter);
}

void upstream_call_resume(struct upstream_call *call)
{
	ASSERT(call->connection && call->connection->paused);
	(void)mailbox_post(call->pool->loop->mailbox, &call->letter);
}

/* ---- the pool's part ---- */

void upstream_connections_init(struct upstream_pool *pool)
{
	deadline_queue_init(&pool->idle, UPSTREAM_IDLE_MS, close_idle);
	deadline_queue_init(&pool->busy, 1, expire);
	loop_add_queue(pool->loop, &pool->idle);
	loop_add_queue(pool->loop, &pool->busy);
}

void upstream_connections_free(struct upstream_pool *pool)
{
	while (pool->connections) {
		struct upstream_connection *c = pool->connections;

		unlink_connection(c);
		close_socket(c);
		free_connection(c);
	}
}
