/*
 * The life of a connection.
 *
 *   NEW ─▶ IDLE ─first byte─▶ HEAD ─head─▶ BODY ─complete─▶ HANDLING ─answer─▶ ANSWERING ─sent─▶ IDLE
 *             │                │ refused    │ refused          ▲  stream waits     │    │
 *             │                └────────────┴──────────────────┼─────────────────▶ ┘    │ last answer
 *             │                                                └───────────────────     ▼
 *             └── any state but NEW ──▶ CLOSED ◀─────────────────────────────────── LINGERING
 *
 * Where the server asks first (server_options.begin), a head whose body is still to come makes HEAD ─▶ HANDLING, and HANDLING ─▶ BODY
 * when the body is wanted; meanwhile no byte of it is read.
 *
 *   state       waits for                            queue (timeout)          after it
 *   IDLE        the first byte of a request          idle                     closed
 *   HEAD, BODY  the rest of it                       reading, from its start  408, LINGERING
 *   HANDLING    the handler                          handling (none)
 *   ANSWERING   the client to take bytes             writing, per 64 KiB      reset
 *   LINGERING   the client to close, reading on      lingering                closed
 *
 * Events are edge-triggered and merely noted (can_read, can_write, peer_closed); proceed() then does what the state
 * allows until it has to wait. So a state that does not read costs no call, and what was left unread is remembered.
 * Bytes are read into the loop's buffer; a connection has one of its own (`pending`) only for a part of a head, or for
 * pipelined requests after the one being handled, so an idle one owns this struct and nothing else.
 *
 * The struct is freed by its own letter, after all events of the round in which it closed (see wire/loop.h).
 */
#include "serve/connection.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "serve/exchange.h"
#include "serve/server_loop.h"

#define STEPS_PER_TURN 16 /* then others have their turn */
#define WRITE_STEP_BYTES 65536
#define EVICT_AFTER_MS 100
#define INTERIM_BYTES_MAX 65536

/* ---- the one place where a state changes ---- */

#define TO(state) (1u << CONNECTION_##state)

static const unsigned transitions[] = {
	[CONNECTION_NEW] = TO(IDLE) | TO(CLOSED),
	[CONNECTION_IDLE] = TO(HEAD) | TO(CLOSED),
	[CONNECTION_HEAD] = TO(BODY) | TO(HANDLING) | TO(ANSWERING) | TO(CLOSED),
	[CONNECTION_BODY] = TO(HANDLING) | TO(ANSWERING) | TO(CLOSED),
	[CONNECTION_HANDLING] = TO(BODY) | TO(ANSWERING) | TO(CLOSED),
	[CONNECTION_ANSWERING] = TO(HANDLING) | TO(IDLE) | TO(LINGERING) | TO(CLOSED),
	[CONNECTION_LINGERING] = TO(CLOSED),
	[CONNECTION_CLOSED] = 0,
};

/* Where it waits; NULL: where it is. */
static struct deadline_queue *queue_of(struct server_loop *home, enum connection_state state)
{
	struct deadline_queue *const queues[] = {
		[CONNECTION_IDLE] = &home->idle,
		[CONNECTION_HEAD] = &home->reading, /* one deadline for the whole request, and so none of BODY's */
		[CONNECTION_HANDLING] = &home->handling,
		[CONNECTION_ANSWERING] = &home->writing,
		[CONNECTION_LINGERING] = &home->lingering,
		[CONNECTION_CLOSED] = NULL,
	};

	return queues[state];
}

/* There is an exchange from the end of the head to the end of the answer. */
static bool has_exchange(enum connection_state state)
{
	return state == CONNECTION_BODY || state == CONNECTION_HANDLING || state == CONNECTION_ANSWERING;
}

/* Between any two steps. */
static void assert_valid(const struct connection *c)
{
	DEBUG_ASSERT((c->exchange != NULL) == has_exchange(c->state));
	DEBUG_ASSERT(c->fd >= 0);
	DEBUG_ASSERT(c->interim_sent <= c->interim.n);
	(void)c;
}

void connection_enter(struct connection *c, enum connection_state state)
{
	struct deadline_queue *queue = queue_of(c->home, state);

	ASSERT(transitions[c->state] & 1u << state);
	ASSERT((c->exchange != NULL) == has_exchange(state));
	c->state = (uint8_t)state;
	c->progress_bytes = 0;
	if (queue)
		deadline_set(queue, &c->deadline, c->home->loop.now);
	else if (state == CONNECTION_CLOSED)
		deadline_clear(&c->deadline);
}

/* ---- closing ---- */

/* All but the socket. */
static void connection_leave(struct connection *c)
{
	struct http_exchange *ex = c->exchange;

	c->exchange = NULL;
	connection_enter(c, CONNECTION_CLOSED);
	loop_unwatch(&c->home->loop, c->fd);
	strbuf_release(&c->pending);
	strbuf_release(&c->interim);
	if (ex)
		exchange_detach(ex);
	c->home->connections_n--;
	listener_freed(&c->home->server->listener);
	ASSERT(mailbox_post(c->home->loop.mailbox, &c->letter) != MAILBOX_CLOSED);
}

void connection_close(struct connection *c)
{
	connection_leave(c);
	close(c->fd);
}

int connection_give_up(struct connection *c, struct strbuf *ret_unsent, struct strbuf *ret_unread)
{
	ASSERT(c->state == CONNECTION_HANDLING);
	strbuf_add_slice(ret_unsent, slice_of(c->interim.p + c->interim_sent, c->interim.n - c->interim_sent));
	strbuf_add_slice(ret_unread, strbuf_slice(&c->pending));
	connection_leave(c);
	return c->fd;
}

/* What was not sent is thrown away, and the client's next read fails: it cannot take a part for the whole. */
static void reset(struct connection *c)
{
	struct linger at_once = {.l_onoff = 1, .l_linger = 0};

	setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
	connection_close(c);
}

/*
 * Closing with unread bytes resets the connection, and the answer can be lost on its way. So the client is told that
 * nothing more will come, and what it still sends is thrown away until it closes, too.
 */
static void linger(struct connection *c)
{
	strbuf_release(&c->pending);
	if (shutdown(c->fd, SHUT_WR) < 0) {
		connection_close(c);
		return;
	}
	connection_enter(c, CONNECTION_LINGERING);
	c->can_read = true;
}

/* ---- what its states share ---- */

static bool gone_by(int error)
{
	return error != EAGAIN && error != EWOULDBLOCK && error != EINTR;
}

size_t connection_receive(struct connection *c, int flags)
{
	ssize_t n = recv(c->fd, c->home->input, READ_BYTES, flags);

	if (n > 0) {
		/* A short read has emptied the socket; the end of the stream, though, makes no second edge. */
		if (n < READ_BYTES && !c->peer_closed)
			c->can_read = false;
		return (size_t)n;
	}
	if (n < 0 && errno == EINTR)
		return 0;
	c->can_read = false;
	if (n == 0 || gone_by(errno))
		connection_close(c);
	return 0;
}

void connection_refuse(struct connection *c, enum hx_code code, const char *reason)
{
	stats_count(&c->home->server->stats.refused);
	if (!c->exchange)
		c->exchange = exchange_new(c->home);
	if (!c->exchange) {
		connection_close(c);
		return;
	}
	c->exchange->connection = c;
	exchange_refuse(c->exchange, code, reason);
	connection_enter(c, CONNECTION_ANSWERING);
}

static bool discard(struct connection *c)
{
	if (!c->can_read)
		return false;
	/* MSG_TRUNC: the kernel throws the bytes away without copying them. */
	connection_receive(c, MSG_TRUNC);
	return c->state != CONNECTION_CLOSED;
}

/* ---- writing ---- */

/* After an answer: the next request, or the end. */
static bool answer_sent(struct connection *c)
{
	struct http_exchange *ex = c->exchange;
	bool last = ex->close_after, hasty = ex->hasty || ex->body_unread;

	c->exchange = NULL;
	ex->connection = NULL;
	exchange_drop(ex);
	c->unfed = c->pending.n > 0;
	if (last) {
		/* The client wanted the end itself, and has sent nothing after that: there is no answer to lose. */
		if (!hasty && !c->unfed && !c->can_read)
			connection_close(c);
		else
			linger(c);
		return c->state != CONNECTION_CLOSED;
	}
	connection_enter(c, CONNECTION_IDLE);
	return true;
}

/* Everything in the exchange's buffer is sent. */
static bool out_sent(struct connection *c)
{
	if (!c->exchange->streaming)
		return answer_sent(c);
	switch (stream_refill(c->exchange)) {
	case STREAM_MORE:
		return true;
	case STREAM_END:
		return answer_sent(c);
	case STREAM_WAIT:
		connection_enter(c, CONNECTION_HANDLING);
		return true;
	case STREAM_ABORT:
		break;
	}
	reset(c);
	return false;
}

static void note_progress(struct connection *c, size_t n)
{
	c->progress_bytes += n;
	if (c->progress_bytes < WRITE_STEP_BYTES)
		return;
	c->progress_bytes = 0;
	deadline_set(&c->home->writing, &c->deadline, c->home->loop.now);
}

/* False: there is something left of them, or the client has gone. */
static bool flush_interim(struct connection *c)
{
	while (c->interim_sent < c->interim.n) {
		ssize_t n = c->can_write ? send(c->fd, c->interim.p + c->interim_sent, c->interim.n - c->interim_sent,
						MSG_NOSIGNAL)
					 : -1;

		if (n > 0) {
			c->interim_sent += (size_t)n;
			continue;
		}
		if (c->can_write && gone_by(errno))
			connection_close(c);
		else
			c->can_write = c->can_write && errno == EINTR;
		if (c->state == CONNECTION_CLOSED || !c->can_write)
			return false;
	}
	strbuf_release(&c->interim);
	c->interim_sent = 0;
	return true;
}

void connection_send_interim(struct connection *c, struct slice head)
{
	if (c->state != CONNECTION_HANDLING || c->interim.n + head.n > INTERIM_BYTES_MAX)
		return;
	c->interim.max_bytes = INTERIM_BYTES_MAX;
	strbuf_add_slice(&c->interim, head);
	(void)flush_interim(c); /* what is left goes when it can */
}

static bool write_on(struct connection *c)
{
	struct http_exchange *ex = c->exchange;
	ssize_t n;

	if (c->interim.n > 0 && !flush_interim(c))
		return false;
	if (ex->sent == ex->out.n)
		return out_sent(c);
	if (!c->can_write)
		return false;
	n = send(c->fd, ex->out.p + ex->sent, ex->out.n - ex->sent, MSG_NOSIGNAL);
	if (n >= 0) {
		ex->sent += (size_t)n;
		note_progress(c, (size_t)n);
		return true;
	}
	if (gone_by(errno)) {
		connection_close(c);
		return false;
	}
	c->can_write = errno == EINTR;
	return c->can_write;
}

/* ---- what moves it ---- */

/* Does one thing that needs no waiting; false if there is none. */
static bool step(struct connection *c)
{
	switch ((enum connection_state)c->state) {
	case CONNECTION_IDLE:
	case CONNECTION_HEAD:
	case CONNECTION_BODY:
		return intake_read(c);
	case CONNECTION_ANSWERING:
		return write_on(c);
	case CONNECTION_LINGERING:
		return discard(c);
	case CONNECTION_HANDLING:
		if (c->peer_closed)
			exchange_tell_gone(c->exchange);
		if (c->interim.n > 0)
			(void)flush_interim(c); /* the next event goes on */
		return false;
	case CONNECTION_NEW:
	case CONNECTION_CLOSED:
		break;
	}
	return false;
}

static void proceed(struct connection *c)
{
	for (unsigned i = 0; i < STEPS_PER_TURN; i++) {
		assert_valid(c);
		if (step(c))
			continue;
		if (c->state == CONNECTION_IDLE && c->home->draining)
			connection_close(c);
		return;
	}
	(void)mailbox_post(c->home->loop.mailbox, &c->letter); /* goes on in the next round; open as long as we are */
}

static void connection_ready(struct watch *watch, uint32_t events)
{
	struct connection *c = CONTAINER_OF(watch, struct connection, watch);

	if (c->state == CONNECTION_CLOSED)
		return;
	if (events & (EPOLLERR | EPOLLHUP)) {
		connection_close(c);
		return;
	}
	c->peer_closed |= (events & EPOLLRDHUP) != 0;
	c->can_read |= (events & (EPOLLIN | EPOLLRDHUP)) != 0;
	c->can_write |= (events & EPOLLOUT) != 0;
	proceed(c);
}

void connection_answered(struct connection *c)
{
	if (c->exchange->failed || stream_aborted(c->exchange)) {
		reset(c);
		return;
	}
	if (c->state == CONNECTION_HANDLING) {
		connection_enter(c, CONNECTION_ANSWERING);
		proceed(c);
	}
}

/* ---- beginning and end ---- */

/* Reads whatever has come, and leaves IDLE if that is a request. While draining, what stays idle is closed. */
static void last_look(struct connection *c)
{
	c->can_read = true;
	proceed(c);
}

static void connection_start(struct connection *c)
{
	const uint32_t events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;

	c->home->connections_n++;
	connection_enter(c, CONNECTION_IDLE);
	if (!loop_watch(&c->home->loop, c->fd, events, &c->watch))
		connection_close(c);
	else if (c->home->draining)
		last_look(c);
}

static void connection_deliver(struct letter *letter)
{
	struct connection *c = CONTAINER_OF(letter, struct connection, letter);

	if (c->state == CONNECTION_NEW)
		connection_start(c);
	else if (c->state == CONNECTION_CLOSED)
		free(c);
	else
		proceed(c);
}

bool connection_open(struct server_loop *home, int fd, const struct address *peer)
{
	struct connection *c = calloc(1, sizeof *c);
	int one = 1;

	if (c) {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		c->watch.ready = connection_ready;
		c->letter.deliver = connection_deliver;
		c->home = home;
		c->fd = fd;
		c->peer = *peer;
		strbuf_init(&c->pending, home->server->options.head.head_bytes + READ_BYTES);
		if (mailbox_post(home->loop.mailbox, &c->letter) == MAILBOX_POSTED)
			return true;
		free(c);
	}
	close(fd);
	return false;
}

static struct connection *by_deadline(struct deadline *deadline)
{
	return CONTAINER_OF(deadline, struct connection, deadline);
}

/* Never one that a request is just arriving on; and a client between two requests, or after connecting, has a moment. */
bool connection_evict(struct server_loop *home)
{
	struct deadline *first;

	while ((first = deadline_first(&home->idle))) {
		int64_t since_ns = first->at.ns - home->idle.after_ms * 1000000;
		struct connection *c = by_deadline(first);

		if (home->loop.now.ns - since_ns < EVICT_AFTER_MS * 1000000)
			return false;
		last_look(c);
		if (c->state != CONNECTION_IDLE)
			continue;
		stats_count(&home->server->stats.evicted);
		connection_close(c);
		return true;
	}
	return false;
}

static void close_late(struct deadline *deadline)
{
	struct connection *c = by_deadline(deadline);

	if (c->state != CONNECTION_LINGERING)
		stats_count(&c->home->server->stats.timed_out);
	connection_close(c);
}

static void reset_late(struct deadline *deadline)
{
	stats_count(&by_deadline(deadline)->home->server->stats.timed_out);
	reset(by_deadline(deadline));
}

static void refuse_late(struct deadline *deadline)
{
	struct connection *c = by_deadline(deadline);

	stats_count(&c->home->server->stats.timed_out);
	connection_refuse(c, HX_REQUEST_TIMEOUT, "the request was not complete in time");
	proceed(c);
}

/* The deadlines differ, but few of them by much: the one that is due first has as a rule been at it for longest. */
bool connection_crowd_out(struct connection *c, bool large)
{
	struct server_loop *home = c->home;
	struct mono_time latest = mono_add_ms(home->loop.now, -HTTP_BODY_PATIENCE_MS);

	for (struct deadline *d = home->reading.ends.next; d != &home->reading.ends; d = d->next) {
		struct connection *other = by_deadline(d);

		if (other == c || other->state != CONNECTION_BODY || other->request_at.ns > latest.ns ||
		    other->exchange->counted_bytes == 0 || other->exchange->counted_large != large)
			continue;
		stats_count(&home->server->stats.crowded_out);
		exchange_forget_body(other->exchange); /* now, and not when its answer is sent */
		connection_refuse(other, HX_BUSY, "the body took its time, and others need the room");
		(void)mailbox_post(home->loop.mailbox, &other->letter); /* sends it; open as long as we are */
		return true;
	}
	return false;
}

void connections_init(struct server_loop *home)
{
	const struct server_options *options = &home->server->options;

	deadline_queue_init(&home->idle, options->idle_ms, close_late);
	deadline_queue_init(&home->reading, options->read_ms, refuse_late);
	deadline_queue_init(&home->handling, 0, NULL);
	deadline_queue_init(&home->writing, options->write_ms, reset_late);
	deadline_queue_init(&home->lingering, options->linger_ms, close_late);
	loop_add_queue(&home->loop, &home->idle);
	loop_add_queue(&home->loop, &home->reading);
	loop_add_queue(&home->loop, &home->writing);
	loop_add_queue(&home->loop, &home->lingering);
}

static void hurry(struct deadline_queue *queue)
{
	for (struct deadline *d = queue->ends.next; d != &queue->ends; d = d->next)
		if (by_deadline(d)->exchange)
			by_deadline(d)->exchange->hasty = true;
}

void connections_drain(struct server_loop *home)
{
	struct deadline *first;

	hurry(&home->reading);
	hurry(&home->handling);
	while ((first = deadline_first(&home->idle)))
		last_look(by_deadline(first));
}

static void close_queue(struct deadline_queue *queue)
{
	struct deadline *first;

	while ((first = deadline_first(queue)))
		connection_close(by_deadline(first));
}

void connections_close_all(struct server_loop *home)
{
	close_queue(&home->idle);
	close_queue(&home->reading);
	close_queue(&home->handling);
	close_queue(&home->writing);
	close_queue(&home->lingering);
}
