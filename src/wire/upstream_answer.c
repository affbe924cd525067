/*
 * The bytes of an answer, on a connection to the upstream: heads (1xx, or another protocol, before the real one), then the body, handed
 * out as fast as it is taken. See upstream_connection.c for the states, and for what pausing means.
 */
#include "wire/upstream_connection.h"

const struct wire_limits upstream_answer_limits = {.line_bytes = 8192, .head_bytes = 65536, .fields = 256};

size_t upstream_hand_out(struct upstream_connection *c, struct slice data)
{
	struct upstream_call *call = c->call;
	size_t taken = data.n > 0 ? call->data(call, data) : 0;

	if (call->unwanted) {
		upstream_unknown(c, HX_BAD_GATEWAY, "nobody waits for the answer any more");
		return data.n;
	}
	c->paused = taken < data.n;
	if (c->paused)
		deadline_clear(&call->deadline);
	return taken;
}

/* What is not taken waits in `spill`. */
static void offer(struct upstream_connection *c, struct slice data)
{
	size_t taken = upstream_hand_out(c, data);

	strbuf_add_slice(&c->spill, slice_of(data.p + taken, data.n - taken));
}

/* From here on it is another protocol, and the socket the caller's. */
static void switch_over(struct upstream_connection *c, struct slice rest)
{
	struct upstream_call *call = c->call;
	struct tls_link *tls = c->tls;
	int fd = c->fd;

	loop_unwatch(c->pool->hub->loop, fd);
	c->tls = NULL;
	c->fd = -1;
	upstream_close(c);
	deadline_clear(&call->deadline);
	call->connection = NULL;
	call->switched(call, fd, tls, rest);
}

/* An answer of 1xx; `rest` came after it. False: the call has ended. */
static bool take_interim(struct upstream_connection *c, struct slice rest)
{
	struct upstream_call *call = c->call;

	if (call->response.status == 101 && call->upgrade) {
		switch_over(c, rest);
		return false;
	}
	if (call->response.status == 101) {
		upstream_unknown(c, HX_BAD_GATEWAY, "the protocol is switched, which nobody has asked for");
		return false;
	}
	if (++c->interim_n > UPSTREAM_INTERIM_MAX) {
		upstream_unknown(c, HX_BAD_GATEWAY, "the upstream sends 1xx answers without end");
		return false;
	}
	if (call->interim)
		call->interim(call);
	return true;
}

/* A head is complete, and `rest` after it. False: the call has ended. */
static bool upstream_answer_take_head(struct upstream_connection *c, struct slice head, struct slice rest)
{
	struct upstream_call *call = c->call;
	struct arena_mark mark = arena_mark(call->arena);
	struct wire_field *fields = arena_alloc(call->arena, wire_scan_fields(&c->scan) * sizeof *fields);
	struct slice copy = arena_copy(call->arena, head);
	struct wire_error err;

	c->scan = (struct wire_scan){0};
	if (call->arena->failed) {
		upstream_unknown(c, HX_BAD_GATEWAY, "there is no memory for the head of the upstream's answer");
		return false;
	}
	if (wire_response_parse(copy, slice_is(call->method, "HEAD"), fields, &call->response, &err) == WIRE_BAD) {
		upstream_unknown(c, err.code, err.reason);
		return false;
	}
	if (call->response.status < 200) {
		if (!take_interim(c, rest))
			return false;
		arena_rewind(call->arena, mark);
		return true;
	}
	wire_body_init(&c->body, &call->response.head, /* is_response= */ true);
	c->in_body = true;
	call->head(call);
	return true;
}

/* Where the scan of a head stopped that is wrong: at the limit, or where CRLF would pass it. */
static bool is_too_long(size_t stopped_at)
{
	return stopped_at + 1 >= upstream_answer_limits.head_bytes;
}

/* Reads the head at the beginning of data. Returns how much of it is used, 0 if it is not complete. */
static size_t feed_head(struct upstream_connection *c, struct slice data)
{
	struct wire_error err;
	enum wire_verdict verdict = wire_scan_response(&c->scan, data, &upstream_answer_limits, &err);
	size_t used = c->scan.at;

	if (verdict == WIRE_BAD)
		upstream_unknown(c, err.code,
				 is_too_long(used) ? "the head of the reply is longer than 64 KiB" : err.reason);
	if (verdict != WIRE_DONE)
		return 0;
	return upstream_answer_take_head(c, wire_scan_head(&c->scan, data.p), slice_of(data.p + used, data.n - used))
		       ? used
		       : 0;
}

/* Reads body until it ends, is paused, or the bytes do. Returns how many are used. */
static size_t feed_body(struct upstream_connection *c, struct slice data)
{
	size_t total = 0, used;
	enum wire_verdict verdict;

	do {
		struct wire_error err;
		struct slice piece;

		verdict = wire_body_read(&c->body, slice_of(data.p + total, data.n - total), &used, &piece, &err);
		total += used;
		if (verdict == WIRE_BAD) {
			upstream_unknown(c, err.code, err.reason);
			return data.n;
		}
		offer(c, piece);
		if (!c->call)
			return data.n;
	} while (verdict == WIRE_MORE && total < data.n && !c->paused);
	if (verdict == WIRE_DONE && c->paused) {
		c->body_done = true;
		c->leftover = total < data.n;
	} else if (verdict == WIRE_DONE) {
		upstream_finish(c, total < data.n);
	}
	return total;
}

/* Offers bytes to whatever comes next. What it leaves is a part of a head, or waits for the resume. */
static size_t feed(struct upstream_connection *c, struct slice data)
{
	size_t total = 0;

	while (c->call && !c->in_body && total < data.n) {
		size_t used = feed_head(c, slice_of(data.p + total, data.n - total));

		if (used == 0)
			return total;
		total += used;
	}
	if (c->call && c->in_body && !c->body_done)
		total += feed_body(c, slice_of(data.p + total, data.n - total));
	return total;
}

void upstream_consume(struct upstream_connection *c, struct slice fresh)
{
	struct slice data = fresh;
	size_t used;

	if (c->pending.n > 0) {
		strbuf_add_slice(&c->pending, fresh);
		data = strbuf_slice(&c->pending);
	}
	if (c->pending.failed) {
		upstream_unknown(c, HX_BAD_GATEWAY, "there is no memory for the upstream's answer");
		return;
	}
	used = feed(c, data);
	if (!c->call)
		return;
	if (c->pending.n > 0) {
		c->pending.n -= used;
		memmove(c->pending.p, c->pending.p + used, c->pending.n);
	} else {
		strbuf_add_slice(&c->pending, slice_of(data.p + used, data.n - used));
	}
	if (c->pending.failed || c->spill.failed)
		upstream_unknown(c, HX_BAD_GATEWAY, "there is no memory for the upstream's answer");
}

void upstream_no_more(struct upstream_connection *c)
{
	struct wire_error err;

	if (!c->in_body)
		upstream_broken(c, "the upstream closed the connection without an answer");
	else if (wire_body_closed(&c->body, &err) == WIRE_DONE)
		upstream_finish(c, /* leftover= */ false);
	else
		upstream_unknown(c, err.code, "the upstream closed the connection in the middle of its answer");
}
