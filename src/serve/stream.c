/*
 * Answers in pieces. The writer (any thread) fills one buffer while the loop sends the other; when the loop has sent
 * all of its own, they change places. So memory is bounded by two buffers, and the writer by the client's speed:
 *
 *   http_stream_write ──▶ filling ══swap══▶ exchange.out ──▶ socket
 *        ▲                   full: takes less than it was given, and is called back (`room`) after the swap
 */
#include <pthread.h>
#include <stdlib.h>

#include "serve/exchange.h"
#include "serve/server_loop.h"
#include "wire/chunk.h"

struct stream {
	pthread_mutex_t mutex;
	struct strbuf filling;
	size_t bytes_max;
	bool chunked;
	bool bodyless; /* HEAD, 204, 304: writes are swallowed */
	bool has_length;
	uint64_t left; /* of the announced length */
	bool ended, aborted, detached;
	bool waiting; /* a write was cut short */
	void (*room)(struct http_exchange *exchange, void *data);
	void *data;
};

static struct stream *stream_new(struct http_exchange *ex, int status, int64_t length)
{
	struct stream *stream = calloc(1, sizeof *stream);

	if (!stream)
		return NULL;
	stream->bytes_max = ex->home->server->options.stream_bytes_max;
	stream->has_length = length >= 0;
	stream->left = stream->has_length ? (uint64_t)length : UINT64_MAX;
	stream->chunked = length < 0 && ex->request.wire.head.minor == 1;
	stream->bodyless = exchange_is_head(ex) || status == 204 || status == 304;
	strbuf_init(&stream->filling, stream->bytes_max + CHUNK_OVERHEAD_BYTES);
	pthread_mutex_init(&stream->mutex, NULL);
	return stream;
}

void stream_free(struct stream *stream)
{
	if (!stream)
		return;
	strbuf_release(&stream->filling);
	pthread_mutex_destroy(&stream->mutex);
	free(stream);
}

void http_stream_start(struct http_exchange *exchange, const struct http_answer *head, int64_t length,
		       void (*room)(struct http_exchange *exchange, void *data), void *data)
{
	static const struct http_answer sick = {.status = 500};
	struct stream *stream = stream_new(exchange, head->status, length);
	int phase = EXCHANGE_OPEN;

	ASSERT(atomic_compare_exchange_strong(&exchange->phase, &phase, EXCHANGE_STREAMING));
	if (stream) {
		stream->room = room;
		stream->data = data;
	}
	if (!exchange_write_head(exchange, head, length)) {
		ASSERT(exchange_write_head(exchange, &sick, 0));
		if (stream)
			stream->bodyless = true;
	}
	exchange->stream = stream;
	exchange->failed = !stream || exchange->out.failed;
	exchange_post(exchange);
}

/* Under the mutex. How much of n fits. */
static size_t stream_add(struct stream *stream, struct slice bytes)
{
	size_t overhead = stream->chunked ? CHUNK_OVERHEAD_BYTES : 0;
	size_t used = stream->filling.n + overhead;
	size_t room = used < stream->bytes_max ? stream->bytes_max - used : 0;
	struct slice piece = slice_of(bytes.p, bytes.n < room ? bytes.n : room);

	if (piece.n == 0)
		return 0;
	if (stream->chunked)
		chunk_write(piece, &stream->filling);
	else
		strbuf_add_slice(&stream->filling, slice_of(piece.p, piece.n < stream->left ? piece.n : stream->left));
	return piece.n;
}

size_t http_stream_write(struct http_exchange *exchange, struct slice bytes)
{
	struct stream *stream = exchange->stream;
	size_t taken = bytes.n;
	bool tell = false;

	ASSERT(exchange->phase == EXCHANGE_STREAMING);
	if (!stream)
		return taken;
	pthread_mutex_lock(&stream->mutex);
	if (!stream->detached && !stream->bodyless) {
		taken = stream_add(stream, bytes);
		stream->waiting = taken < bytes.n;
		stream->aborted |= stream->filling.failed;
		tell = taken > 0;
	}
	stream->left -= taken < stream->left ? taken : stream->left;
	pthread_mutex_unlock(&stream->mutex);
	if (tell)
		exchange_post(exchange);
	return taken;
}

static void end_stream(struct http_exchange *ex, bool abort)
{
	struct stream *stream = ex->stream;
	int phase = EXCHANGE_STREAMING;

	ASSERT(atomic_compare_exchange_strong(&ex->phase, &phase, EXCHANGE_ENDED));
	if (stream) {
		pthread_mutex_lock(&stream->mutex);
		stream->aborted |= abort || (stream->has_length && stream->left > 0 && !stream->bodyless);
		if (stream->chunked && !stream->bodyless)
			chunk_write_end(&stream->filling);
		stream->aborted |= stream->filling.failed;
		stream->ended = true;
		pthread_mutex_unlock(&stream->mutex);
	}
	exchange_post(ex);
	exchange_drop_elsewhere(ex);
}

void http_stream_end(struct http_exchange *exchange)
{
	end_stream(exchange, /* abort= */ false);
}

void http_stream_abort(struct http_exchange *exchange)
{
	end_stream(exchange, /* abort= */ true);
}

enum stream_state stream_refill(struct http_exchange *ex)
{
	struct stream *stream = ex->stream;
	enum stream_state state;
	struct strbuf sent = ex->out;
	bool tell;

	strbuf_reset(&sent);
	sent.max_bytes = stream->bytes_max + CHUNK_OVERHEAD_BYTES;
	pthread_mutex_lock(&stream->mutex);
	ex->out = stream->filling;
	stream->filling = sent;
	ex->sent = 0;
	tell = stream->waiting;
	stream->waiting = false;
	state = stream->aborted ? STREAM_ABORT : ex->out.n > 0 ? STREAM_MORE : stream->ended ? STREAM_END : STREAM_WAIT;
	pthread_mutex_unlock(&stream->mutex);
	if (tell && stream->room)
		stream->room(ex, stream->data);
	return state;
}

bool stream_aborted(struct http_exchange *ex)
{
	if (!ex->streaming)
		return false;
	LOCKED(&ex->stream->mutex);
	return ex->stream->aborted;
}

void stream_detach(struct http_exchange *ex)
{
	struct stream *stream = ex->stream;
	bool tell;

	pthread_mutex_lock(&stream->mutex);
	stream->detached = true;
	strbuf_release(&stream->filling);
	tell = stream->waiting;
	stream->waiting = false;
	pthread_mutex_unlock(&stream->mutex);
	if (tell && stream->room)
		stream->room(ex, stream->data);
}
