/*
 * One connection to the upstream, from its name and its socket to the end of an answer.
 *
 *   start ─▶ RESOLVING ─addresses─▶ CONNECTING ─connected─▶ BUSY ─answer complete, both sides willing─▶ IDLE ─the next call─▶ BUSY
 *                │  (known: at once)    │ refused: the next address                                      │
 *                └──────────────────────┴──────▶ CLOSED ◀──────────── anything else ◀────────────────────┘
 *
 *   state       waits for                                      how long
 *   RESOLVING   what the name means                            the call's time: then NOT_SENT
 *   CONNECTING  the upstream to accept, with https to greet    the call's time: then NOT_SENT; its share of it if there is another address
 *   BUSY        it to take the request and to answer           the call's time: then UNKNOWN, or NOT_SENT if not a byte has left
 *   IDLE        the next call                                  the hub's idle time; closed when the upstream says anything
 *
 * Sending and receiving go on side by side: an answer may come before the request is sent (413), and is then as good
 * as any, but the connection is not used again. A send that fails is not the end for the same reason: the answer that
 * explains it may be there to be read.
 *
 * What the call does not take at once (data() says so) is kept decoded in `spill`, what follows it undecoded in
 * `pending`; both have at most what one read brought. While it is paused nothing is read, no time runs and nothing ends.
 *
 * With https the same bytes go through a tls_link (base/tls.h). What the socket is ready for then says little: TLS
 * may have to read before it can write, and may hold bytes that the socket does not have any more. So each event means
 * that both may work again, and only a read that has to wait means that there is nothing to read.
 *
 * As in connection.c events are edge-triggered and merely noted, and the struct is freed by its own letter.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/list.h"
#include "wire/upstream_connection.h"
#include "wire/writer.h"

#define STEPS_PER_TURN 16 /* reads; then others have their turn */
#define HEAD_OUT_BYTES_MAX (1u << 20)

static void upstream_connection_ready(struct watch *watch, uint32_t events);
static void upstream_connection_go_on(struct letter *letter);
static void proceed(struct upstream_connection *c);

/* ---- the end of a connection, and of a call ---- */

void upstream_close_socket(struct upstream_connection *c)
{
	tls_link_free(c->tls);
	c->tls = NULL;
	if (c->fd >= 0) {
		loop_unwatch(c->pool->hub->loop, c->fd);
		close(c->fd);
	}
	c->fd = -1;
}

/* A head may hold secrets. */
static void wipe_head(struct upstream_connection *c)
{
	explicit_bzero(c->out.p, c->out.n);
	strbuf_reset(&c->out);
}

static void free_connection(struct upstream_connection *c)
{
	wipe_head(c);
	strbuf_release(&c->out);
	strbuf_release(&c->pending);
	strbuf_release(&c->spill);
	free(c);
}

static void leave_idle(struct upstream_connection *c)
{
	LIST_DROP_BY(c->pool->idle, c, idle_previous, idle_next);
	c->pool->hub->idle_n--;
}

void upstream_close(struct upstream_connection *c)
{
	ASSERT(c->state != UPSTREAM_CLOSED);
	if (c->state == UPSTREAM_IDLE)
		leave_idle(c);
	c->state = UPSTREAM_CLOSED;
	c->call = NULL;
	deadline_clear(&c->closes);
	LIST_DROP(c->pool->connections, c);
	upstream_close_socket(c);
	atomic_fetch_sub_explicit(&c->pool->upstream->stats.open, 1, memory_order_relaxed);
	ASSERT(mailbox_post(c->pool->hub->loop->mailbox, &c->letter) != MAILBOX_CLOSED);
}

static void end_call(struct upstream_call *call, enum upstream_end end, enum hx_code code, const char *reason)
{
	deadline_clear(&call->deadline);
	call->connection = NULL;
	call->code = code;
	call->reason = reason;
	call->ended(call, end);
}

void upstream_not_sent(struct upstream_connection *c, const char *reason)
{
	enum upstream_end end = UPSTREAM_NOT_SENT;
	struct upstream_call *call = c->call;

	upstream_close(c);
	if (call->sent) /* mutant: call-denied -> if (0) */
		end = UPSTREAM_UNKNOWN;
	end_call(call, end, HX_UPSTREAM_UNREACHABLE, reason);
}

void upstream_unknown(struct upstream_connection *c, enum hx_code code, const char *reason)
{
	struct upstream_call *call = c->call;

	upstream_close(c);
	end_call(call, UPSTREAM_UNKNOWN, code, reason);
}

/* ---- its beginning ---- */

static struct upstream_connection *new_connection(struct upstream_pool *pool)
{
	struct upstream_connection *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	c->pool = pool;
	c->fd = -1;
	c->state = UPSTREAM_RESOLVING;
	c->watch.ready = upstream_connection_ready;
	c->letter.deliver = upstream_connection_go_on;
	strbuf_init(&c->out, HEAD_OUT_BYTES_MAX);
	strbuf_init(&c->pending, upstream_answer_limits.head_bytes + UPSTREAM_READ_BYTES);
	strbuf_init(&c->spill, UPSTREAM_READ_BYTES + upstream_answer_limits.head_bytes);
	LIST_PUSH(pool->connections, c);
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
	struct upstream_connection *c;

	while ((c = pool->idle)) {
		/* The queue may lag: a loop that was busy has not looked at it for a while. */
		if (c->closes.at.ns <= clock_mono(pool->hub->loop->clock).ns || !is_silent(c)) {
			upstream_close(c);
			continue;
		}
		deadline_clear(&c->closes);
		leave_idle(c);
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

bool upstream_make_room(struct upstream_hub *hub)
{
	struct deadline *longest = deadline_first(&hub->idle);

	if (longest)
		close_idle(longest);
	return longest;
}

/* Back to how a fresh connection is, but for its socket and its buffers. */
static void become_idle(struct upstream_connection *c)
{
	struct upstream_pool *pool = c->pool;
	struct upstream_hub *hub = pool->hub;

	c->call = NULL;
	c->begun = c->in_body = c->body_done = c->touched = false;
	c->interim_n = 0;
	c->sent = 0;
	c->scan = (struct wire_scan){0};
	wipe_head(c);
	strbuf_release(&c->pending);
	strbuf_release(&c->spill);
	c->state = UPSTREAM_IDLE;
	LIST_PUSH_BY(pool->idle, c, idle_previous, idle_next);
	hub->idle_n++;
	deadline_set(&hub->idle, &c->closes, hub->loop->now);
	if (hub->idle_n > hub->idle_max)
		close_idle(deadline_first(&hub->idle));
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
		upstream_not_sent(c, "the request cannot be written");
		return;
	}
	if (!fresh) {
		proceed(c);
		return;
	}
	atomic_fetch_add_explicit(&pool->upstream->stats.total, 1, memory_order_relaxed);
	upstream_connect(c);
}

/* The connection is dead, but the call may have another one. */
static void move_call(struct upstream_connection *c)
{
	struct upstream_call *call = c->call;

	upstream_close(c);
	attach(c->pool, NULL, call);
}

/* ---- sending ---- */

static ssize_t send_rest(struct upstream_connection *c)
{
	struct slice body = c->call->body;
	size_t head = c->sent < c->out.n ? c->out.n - c->sent : 0, skip = c->sent - (c->out.n - head);
	struct iovec parts[] = {{c->out.p + c->out.n - head, head},
				{(char *)(uintptr_t)(body.p + skip), body.n - skip}};
	struct msghdr message = {.msg_iov = head ? parts : parts + 1, .msg_iovlen = head && body.n ? 2 : 1};
	bool left = false;
	ssize_t n;

	if (c->tls) {
		uint64_t before = tls_link_written(c->tls);

		n = tls_link_send(c->tls, slice_of(message.msg_iov->iov_base, message.msg_iov->iov_len));
		left = tls_link_written(c->tls) != before;
	} else {
		n = sendmsg(c->fd, &message, MSG_NOSIGNAL);
	}
	left |= n > 0; /* mutant: sent-unseen -> left |= n == (ssize_t)(head + body.n - skip); */
	c->touched |= left;
	c->call->sent |= left;
	return n;
}

static bool is_too_late(const struct upstream_connection *c)
{
	const struct upstream_call *call = c->call;
	int64_t now_ns;

	if (c->sent > 0)
		return false;
	now_ns = clock_mono(c->pool->hub->loop->clock).ns;
	return (call->cancelled && atomic_load(call->cancelled)) ||
	       (call->begin_by.ns != 0 && now_ns >= call->begin_by.ns) ||
	       (call->deadline.next && now_ns >= call->deadline.at.ns);
}

/* Not a byte has left here, and none can: on another connection this is no second time. */
static void give_up_unsent(struct upstream_connection *c, const char *reason)
{
	if (c->reused)
		move_call(c);
	else
		upstream_not_sent(c, reason);
}

/* False: the call has moved away from here, or is over. */
static bool send_on(struct upstream_connection *c)
{
	if (is_too_late(c)) {
		upstream_not_sent(c, "there was no time left to send the request");
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
		} else if (!c->touched) {
			give_up_unsent(c, "the connection was closed before the request was sent");
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
	bool again = c->reused && !c->begun;

	again &= c->call->repeatable; /* mutant: call-repeated */
	if (!again) {
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
	struct upstream_hub *hub = c->pool->hub;

	return c->tls ? tls_link_receive(c->tls, hub->input, sizeof hub->input)
		      : recv(c->fd, hub->input, sizeof hub->input, 0);
}

/* Reads once. False: it has to wait, or it is over. */
static bool upstream_connection_receive(struct upstream_connection *c)
{
	struct upstream_hub *hub = c->pool->hub;
	struct upstream_call *call = c->call;
	ssize_t n = receive_some(c);
	bool waits = n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);

	/* Whatever it says, it says to nothing that was asked. */
	if (!waits && !c->touched) { /* mutant: unsent-unknown -> if (0) { */
		give_up_unsent(c, "the upstream ended the connection before the request was sent");
		return false;
	}
	if (n > 0) {
		c->begun = true; /* mutant: answer-forgotten */
		if (n < (ssize_t)sizeof hub->input && !c->peer_closed && !c->tls)
			c->can_read = false;
		if (call->patient)
			deadline_set_at(&hub->busy, &call->deadline, mono_add_ms(hub->loop->now, call->timeout_ms));
		upstream_consume(c, slice_of(hub->input, (size_t)n));
		return is_at_work(c);
	}
	if (n < 0 && errno == EINTR)
		return true;
	c->can_read = false;
	if (n == 0)
		upstream_no_more(c);
	else if (!waits)
		upstream_broken(c, "the upstream reset the connection");
	return false;
}

static void proceed(struct upstream_connection *c)
{
	if (c->state == UPSTREAM_CONNECTING && !upstream_connected(c))
		return;
	if (!send_on(c) || c->paused)
		return;
	for (unsigned i = 0; c->can_read; i++) {
		if (i == STEPS_PER_TURN) {
			(void)mailbox_post(c->pool->hub->loop->mailbox, &c->letter); /* open as long as we are */
			return;
		}
		if (!upstream_connection_receive(c))
			break;
	}
	if (is_at_work(c) && c->in_body && c->call->drained)
		c->call->drained(c->call);
}

/* ---- what moves it ---- */

static void upstream_connection_ready(struct watch *watch, uint32_t events)
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

static void upstream_connection_go_on(struct letter *letter)
{
	struct upstream_connection *c = CONTAINER_OF(letter, struct upstream_connection, letter);

	if (c->state == UPSTREAM_CLOSED)
		free_connection(c);
	else if (c->state == UPSTREAM_BUSY)
		proceed(c);
}

static void break_off(struct upstream_call *call, enum hx_code code, const char *if_not_sent, const char *if_sent)
{
	struct upstream_connection *c = call->connection;

	if (call->sent)
		upstream_unknown(c, code, if_sent);
	else
		upstream_not_sent(c, if_not_sent);
}

/* The time of a call is over. */
static void expire(struct deadline *deadline)
{
	struct upstream_call *call = CONTAINER_OF(deadline, struct upstream_call, deadline);

	if (call->connection->state == UPSTREAM_CONNECTING)
		upstream_forget_addresses(call->pool);
	break_off(call, HX_UPSTREAM_TIMEOUT, "no connection to the upstream could be made in time",
		  "the upstream did not answer in time; it is not known what it did");
}

void upstream_call_cancel(struct upstream_call *call)
{
	break_off(call, HX_BAD_GATEWAY, "the call was cancelled", "the call was cancelled");
}

static void set_time(struct upstream_call *call)
{
	struct upstream_hub *hub = call->pool->hub;

	deadline_set_at(&hub->busy, &call->deadline, mono_add_ms(hub->loop->now, call->timeout_ms));
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

static void begin_call(struct upstream_call *call)
{
	set_time(call);
	attach(call->pool, call->fresh ? NULL : take_idle(call->pool), call);
}

static void deliver_call(struct letter *letter)
{
	struct upstream_call *call = CONTAINER_OF(letter, struct upstream_call, letter);

	if (call->connection)
		resume(call->connection);
	else
		begin_call(call);
}

static void prepare(struct upstream_pool *pool, struct upstream_call *call)
{
	call->pool = pool;
	call->connection = NULL;
	call->letter.deliver = deliver_call;
	call->response = (struct wire_response){0};
	call->sent = false;
	call->tried = 0;
	call->refusal = NULL;
	upstream_note_obstacle(call, UPSTREAM_OTHER, 0);
}

void upstream_call_start(struct upstream_pool *pool, struct upstream_call *call)
{
	prepare(pool, call);
	/* Refused only when the loop has ended; the caller, too, is then let go by its owner. */
	(void)mailbox_post(pool->hub->loop->mailbox, &call->letter);
}

void upstream_call_begin(struct upstream_pool *pool, struct upstream_call *call)
{
	prepare(pool, call);
	begin_call(call);
}

void upstream_call_resume(struct upstream_call *call)
{
	ASSERT(call->connection && call->connection->paused);
	(void)mailbox_post(call->pool->hub->loop->mailbox, &call->letter);
}

/* ---- the pool's part ---- */

void upstream_hub_init(struct upstream_hub *hub, int64_t idle_ms)
{
	deadline_queue_init(&hub->idle, idle_ms, close_idle);
	deadline_queue_init(&hub->busy, 1, expire);
	deadline_queue_init(&hub->trying, 1, upstream_give_up_address);
	loop_add_queue(hub->loop, &hub->idle);
	loop_add_queue(hub->loop, &hub->busy);
	loop_add_queue(hub->loop, &hub->trying);
}

void upstream_connections_free(struct upstream_pool *pool)
{
	lookup_drop(pool->lookup);
	while (pool->connections) {
		struct upstream_connection *c = pool->connections;

		LIST_DROP(c->pool->connections, c);
		upstream_close_socket(c);
		free_connection(c);
	}
}
