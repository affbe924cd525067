/*
 * Bytes of a connection become requests: head, then body, then the hand-over to the handler.
 *
 * Bytes are read into the loop's buffer and looked at there. Only what cannot be used yet is copied to the connection:
 * the beginning of a head, or what was sent after a request that is still being handled. The complete head and
 * the body go into the exchange, which may outlive the connection.
 */
#include <sys/socket.h>

#include "serve/connection.h"
#include "serve/exchange.h"
#include "serve/server_loop.h"

/* To whoever is to be asked first, or to the handler. */
static void hand_over(struct connection *c)
{
	connection_enter(c, CONNECTION_HANDLING);
	exchange_hand_over(c->exchange);
}

static const char *body_reason(struct connection *c, enum hx_code code)
{
	return code == HX_TOO_LARGE ? exchange_too_large(c->exchange)
				    : "there is no memory for another request at the moment";
}

/* Where there is no room, those who have had their time make some. */
static enum hx_code add_body(struct connection *c, struct slice piece)
{
	uint64_t announced = wire_body_announced(&c->body);
	enum hx_code code;

	do
		code = exchange_add_body(c->exchange, piece, announced);
	while (code == HX_BUSY && piece.n > 0 && connection_crowd_out(c, c->exchange->counted_large));
	return code;
}

/* Returns how many bytes of data belonged to the body. */
static size_t feed_body(struct connection *c, struct slice data)
{
	size_t total = 0, used;
	enum wire_verdict verdict;

	do {
		struct wire_error err;
		struct slice piece;
		enum hx_code code;

		verdict = wire_body_read(&c->body, slice_of(data.p + total, data.n - total), &used, &piece, &err);
		total += used;
		if (verdict == WIRE_BAD) {
			connection_refuse(c, err.code, err.reason);
			return data.n;
		}
		code = add_body(c, piece);
		if (code != HX_OK) {
			connection_refuse(c, code, body_reason(c, code));
			return data.n;
		}
	} while (verdict == WIRE_MORE && total < data.n);
	if (verdict == WIRE_DONE) {
		c->exchange->body_unread = false;
		hand_over(c);
	}
	return total;
}

/* A client that waits for this before it sends its body gets it, unless the body is coming already. */
static bool send_continue(struct connection *c)
{
	static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";

	/* Nothing else is on its way out, so there is room for these few bytes, or the client is not reading at all. */
	return send(c->fd, text, sizeof text - 1, MSG_NOSIGNAL) == sizeof text - 1;
}

/* The head is copied, because the exchange may outlive this connection. HX_OK, or what the client is told. */
static enum hx_code parse_head(struct connection *c, struct slice head, const char **ret_reason)
{
	struct http_exchange *ex = c->exchange;
	struct wire_field *fields = arena_alloc(&ex->arena, wire_scan_fields(&c->scan) * sizeof *fields);
	struct slice copy = arena_copy(&ex->arena, head);
	struct wire_error err;

	*ret_reason = "the request needs more memory than it may have";
	if (ex->arena.failed)
		return ex->arena.no_memory ? HX_NO_MEMORY : HX_HEAD_TOO_LARGE;
	if (wire_request_parse(copy, fields, &ex->request.wire, &err) == WIRE_BAD) {
		*ret_reason = err.reason;
		return err.code;
	}
	wire_body_init(&c->body, &ex->request.wire.head, /* is_response= */ false);
	if (ex->request.wire.head.length <= c->home->server->options.body_bytes_max)
		return HX_OK;
	*ret_reason = body_reason(c, HX_TOO_LARGE);
	return HX_TOO_LARGE;
}

/* False: the client cannot be told to send its body. */
static bool begin_body(struct connection *c, bool body_there)
{
	if (c->exchange->request.wire.expect_continue && !body_there && !send_continue(c)) {
		connection_close(c);
		return false;
	}
	connection_enter(c, CONNECTION_BODY);
	return true;
}

void connection_read_body(struct connection *c, int64_t read_ms)
{
	if (!begin_body(c, c->pending.n > 0 || c->unfed))
		return;
	deadline_set_at(&c->home->reading, &c->deadline, mono_add_ms(c->request_at, read_ms));
	if (c->feeding)
		return;
	c->unfed = c->pending.n > 0;
	(void)mailbox_post(c->home->loop.mailbox, &c->letter); /* reads on; open as long as we are */
}

/* All of the request is in the buffer: nothing is saved by asking before the rest of it is looked at, and no connection lost. */
static bool is_all_there(const struct wire_head *head, size_t rest)
{
	return head->framing == WIRE_NO_BODY || (head->framing == WIRE_LENGTH && head->length <= rest);
}

/* A head is complete, with `rest` bytes after it in the buffer. False: it was refused. */
static bool intake_take_head(struct connection *c, struct slice head, size_t rest)
{
	const char *reason;
	enum hx_code code;

	c->exchange = exchange_new(c->home);
	if (!c->exchange) {
		connection_close(c);
		return false;
	}
	c->exchange->connection = c;
	c->exchange->request.peer = c->peer;
	c->exchange->hasty = c->home->draining;
	code = parse_head(c, head, &reason);
	if (code != HX_OK) {
		connection_refuse(c, code, reason);
		return false;
	}
	c->exchange->body_unread = !is_all_there(&c->exchange->request.wire.head, 0);
	if (c->exchange->asked || is_all_there(&c->exchange->request.wire.head, rest))
		return begin_body(c, rest > 0);
	c->unfed = rest > 0; /* so that nobody is told to send what is here */
	hand_over(c);
	c->unfed = false;
	return true;
}

/* Offers bytes to the state; returns how many it has used. What follows a request waits until that is answered. */
static size_t feed(struct connection *c, struct slice data)
{
	struct wire_error err;
	enum wire_verdict verdict;

	if (c->state == CONNECTION_IDLE) {
		connection_enter(c, CONNECTION_HEAD);
		c->scan = (struct wire_scan){0};
		c->request_at = c->home->loop.now;
	}
	if (c->state == CONNECTION_BODY)
		return feed_body(c, data);
	verdict = wire_scan_request(&c->scan, data, &c->home->server->options.head, &err);
	if (verdict == WIRE_MORE)
		return 0;
	if (verdict == WIRE_BAD) {
		connection_refuse(c, err.code, err.reason);
		return data.n;
	}

	size_t head = c->scan.at;

	if (!intake_take_head(c, wire_scan_head(&c->scan, data.p), data.n - head))
		return data.n;
	/* Somebody has to think about the head first: the rest waits. */
	return c->state == CONNECTION_BODY ? head + feed_body(c, slice_of(data.p + head, data.n - head)) : head;
}

/* Keeps the bytes that are not used yet, after `used` of them. False without memory. */
static bool keep_rest(struct connection *c, struct slice data, size_t used)
{
	struct strbuf *pending = &c->pending;

	if (used == data.n) {
		strbuf_release(pending);
	} else if (pending->n > 0 && used > 0) {
		pending->n -= used;
		memmove(pending->p, pending->p + used, pending->n);
	} else if (pending->n == 0) {
		strbuf_add_slice(pending, slice_of(data.p + used, data.n - used));
	}
	return !pending->failed;
}

/* The bytes to look at next: pending ones, or new ones, or both together. False: there is nothing to look at. */
static bool next_input(struct connection *c, struct slice *ret_data)
{
	size_t n;

	if (!c->unfed) {
		n = connection_receive(c, 0);
		if (n == 0)
			return false;
		*ret_data = slice_of(c->home->input, n);
		if (c->pending.n == 0)
			return true;
		strbuf_add_slice(&c->pending, *ret_data);
	}
	c->unfed = false;
	*ret_data = strbuf_slice(&c->pending);
	return true;
}

bool intake_read(struct connection *c)
{
	struct slice data;
	size_t used;

	if (!c->unfed && !c->can_read)
		return false;
	if (!next_input(c, &data))
		return c->state != CONNECTION_CLOSED;
	if (c->pending.failed) {
		connection_close(c);
		return false;
	}
	c->feeding = true;
	used = feed(c, data);
	c->feeding = false;
	if (c->state == CONNECTION_CLOSED)
		return false;
	if (!keep_rest(c, data, used))
		connection_close(c);
	return c->state != CONNECTION_CLOSED;
}
