/* See exchange.h. */
#include "serve/exchange.h"

#include <stdlib.h>

#include "model/text.h"
#include "serve/connection.h"
#include "serve/problem.h"
#include "serve/server_loop.h"
#include "wire/charset.h"
#include "wire/writer.h"

#define SPARE_MAX 64
#define SPARE_BYTES_MAX 16384 /* a buffer or arena larger than this goes back to the system */
#define OUT_BYTES_MAX (SIZE_MAX / 4)
#define COUNTED_BYTES_MIN 4096 /* an answer that is shorter costs no more than its connection */

static void exchange_deliver(struct letter *letter);

/* ---- life ---- */

static _Atomic uint64_t *counter_of(struct http_exchange *ex)
{
	return ex->counted_large ? &ex->home->server->stats.bodies_bytes : &ex->home->server->stats.small_bytes;
}

static void uncount_bytes(struct http_exchange *ex, size_t n)
{
	atomic_fetch_sub_explicit(counter_of(ex), n, memory_order_relaxed);
	ex->counted_bytes -= n;
}

/*
 * Counts bytes among those of all requests and answers in memory, until the end of the exchange; what that makes. What has grown out
 * of the small ones is among the large ones from then on.
 */
static uint64_t count_bytes(struct http_exchange *ex, size_t n)
{
	size_t before = ex->counted_bytes;

	if (!ex->counted_large && before + n > ex->home->server->options.small_body_bytes) {
		uncount_bytes(ex, before);
		ex->counted_large = true;
		n += before;
	}
	ex->counted_bytes += n;
	return atomic_fetch_add_explicit(counter_of(ex), n, memory_order_relaxed) + n;
}

static void clear_body(struct http_exchange *ex)
{
	uncount_bytes(ex, ex->counted_bytes);
	ex->counted_large = false;
	if (ex->body.capacity > SPARE_BYTES_MAX)
		strbuf_release(&ex->body);
	strbuf_reset(&ex->body);
}

static struct http_exchange *take_spare(struct server_loop *home)
{
	struct http_exchange *ex = home->spare;

	if (ex) {
		home->spare = ex->next_spare;
		home->spare_n--;
	}
	return ex;
}

static struct http_exchange *allocate(struct server_loop *home)
{
	struct http_exchange *ex = calloc(1, sizeof *ex);

	if (!ex)
		return NULL;
	ex->home = home;
	ex->letter.deliver = exchange_deliver;
	arena_init(&ex->arena, home->server->options.arena_bytes_max);
	strbuf_init(&ex->body, home->server->options.body_bytes_max);
	strbuf_init(&ex->out, OUT_BYTES_MAX);
	server_hold(home->server);
	return ex;
}

struct http_exchange *exchange_new(struct server_loop *home)
{
	struct http_exchange *ex = take_spare(home);

	if (!ex)
		ex = allocate(home);
	if (ex) {
		ex->references = 1;
		ex->body_bytes_max = home->server->options.body_bytes_max;
		ex->asked = !home->server->options.begin;
	}
	return ex;
}

static void exchange_free(struct http_exchange *ex)
{
	struct http_server *server = ex->home->server;

	clear_body(ex);
	stream_free(ex->stream);
	strbuf_release(&ex->body);
	strbuf_release(&ex->out);
	arena_release(&ex->arena);
	free(ex);
	server_drop(server);
}

/* Back to how allocate() left it, with its memory as long as that is modest. */
static void recycle(struct http_exchange *ex)
{
	clear_body(ex);
	stream_free(ex->stream);
	ex->stream = NULL;
	if (ex->out.capacity > SPARE_BYTES_MAX)
		strbuf_release(&ex->out);
	strbuf_reset(&ex->out);
	ex->out.max_bytes = OUT_BYTES_MAX; /* a stream swaps its own in */
	if (ex->arena.used_bytes > SPARE_BYTES_MAX)
		arena_release(&ex->arena);
	else
		arena_reset(&ex->arena);
	ex->request = (struct http_request){0};
	ex->inner = NULL;
	ex->on_gone = NULL;
	ex->captured = NULL;
	ex->resumed = NULL;
	ex->sent = 0;
	ex->failed = ex->close_after = ex->streaming = ex->timed = ex->body_unread = ex->handled = false;
	ex->context = NULL;
	ex->phase = EXCHANGE_EMPTY;
	ex->gone = ex->hasty = false;
	ex->next_spare = ex->home->spare;
	ex->home->spare = ex;
	ex->home->spare_n++;
}

static bool was_last(struct http_exchange *ex)
{
	return atomic_fetch_sub_explicit(&ex->references, 1, memory_order_acq_rel) == 1;
}

void exchange_drop(struct http_exchange *ex)
{
	if (!was_last(ex))
		return;
	if (ex->home->running && ex->home->spare_n < SPARE_MAX)
		recycle(ex);
	else
		exchange_free(ex);
}

void exchange_drop_elsewhere(struct http_exchange *ex)
{
	if (was_last(ex))
		exchange_free(ex);
}

void exchange_post(struct http_exchange *ex)
{
	/* The letter's own reference, before it can be delivered. */
	atomic_fetch_add_explicit(&ex->references, 1, memory_order_relaxed);
	if (mailbox_post(ex->home->loop.mailbox, &ex->letter) != MAILBOX_POSTED)
		exchange_drop_elsewhere(ex); /* never the last: the caller has one */
}

static void exchange_deliver(struct letter *letter)
{
	struct http_exchange *ex = CONTAINER_OF(letter, struct http_exchange, letter);
	void (*resumed)(struct http_exchange *, void *) = ex->resumed;

	ex->resumed = NULL;
	ex->streaming = ex->stream != NULL;
	if (resumed)
		resumed(ex, ex->resumed_data);
	else if (ex->connection)
		connection_answered(ex->connection);
	else if (ex->streaming)
		stream_detach(ex);
	exchange_drop(ex);
}

/* ---- the request ---- */

/* False: there is none. A request without a body is refused, too: its answer may be what there is no room for. */
static bool has_room(struct http_exchange *ex, size_t n)
{
	const struct http_server *server = ex->home->server;
	uint64_t now = count_bytes(ex, n);

	if (n == 0)
		return server->stats.bodies_bytes <= server->options.bodies_bytes_max;
	if (now <= (ex->counted_large ? server->options.bodies_bytes_max : server->options.small_bodies_bytes_max))
		return true;
	uncount_bytes(ex, n);
	return false;
}

enum hx_code exchange_add_body(struct http_exchange *ex, struct slice piece, uint64_t announced)
{
	size_t room = ex->body_bytes_max - ex->body.n;

	if (piece.n > room || announced > room - piece.n)
		return HX_TOO_LARGE;
	if (!has_room(ex, piece.n))
		return HX_BUSY;
	if (piece.n == 0)
		return HX_OK;
	strbuf_add_slice(&ex->body, piece);
	return ex->body.failed ? HX_NO_MEMORY : HX_OK;
}

void exchange_forget_body(struct http_exchange *ex)
{
	ASSERT(ex->phase == EXCHANGE_EMPTY);
	clear_body(ex);
}

/* The exchange is the handler's. */
static void handle(struct http_exchange *ex)
{
	const struct server_options *options = &ex->home->server->options;

	stats_count(&ex->home->server->stats.requests);
	ex->handled = true;
	ex->request.body = strbuf_slice(&ex->body);
	ex->handed_over = clock_mono(options->clock);
	options->handle(options->data, ex);
}

void exchange_hand_over(struct http_exchange *ex)
{
	const struct server_options *options = &ex->home->server->options;

	ASSERT(ex->phase == EXCHANGE_EMPTY);
	ex->timed = true;
	ex->phase = EXCHANGE_OPEN;
	atomic_fetch_add_explicit(&ex->references, 1, memory_order_relaxed); /* the handler's */
	if (ex->asked) {
		handle(ex);
		return;
	}
	ex->asked = true;
	ex->handed_over = clock_mono(options->clock);
	options->begin(options->data, ex);
}

void http_read_body(struct http_exchange *ex, size_t bytes_max, int64_t read_ms)
{
	const struct server_options *options = &ex->home->server->options;

	ASSERT(ex->phase == EXCHANGE_OPEN && ex->asked);
	if (bytes_max && bytes_max < ex->body_bytes_max)
		ex->body_bytes_max = bytes_max;
	if (!ex->connection) { /* whose request it was has gone */
		ex->phase = EXCHANGE_ENDED;
		exchange_drop(ex);
	} else if (ex->body.n > ex->body_bytes_max || ex->request.wire.head.length > ex->body_bytes_max) {
		http_respond_code(ex, HX_TOO_LARGE, exchange_too_large(ex));
	} else if (!ex->body_unread) {
		handle(ex);
	} else {
		ex->phase = EXCHANGE_EMPTY;
		ex->timed = false;
		ex->gone = false;  /* a client that has only ended its sending looked as if it had */
		exchange_drop(ex); /* never the last: the connection has one */
		connection_read_body(ex->connection, read_ms ? read_ms : options->read_ms);
	}
}

const char *exchange_too_large(struct http_exchange *ex)
{
	const char *text = text_printf(&ex->arena, "the body is larger than is taken here: %s is %zu",
				       ex->home->server->options.body_limit, ex->body_bytes_max);

	return text ? text : "the body is larger than is taken here";
}

void http_exchange_set_context(struct http_exchange *exchange, void *context)
{
	exchange->context = context;
}

void *http_exchange_context(const struct http_exchange *exchange)
{
	return exchange->context;
}

void exchange_tell_gone(struct http_exchange *ex)
{
	int phase = ex->phase;

	if (atomic_exchange(&ex->gone, true) || (phase != EXCHANGE_OPEN && phase != EXCHANGE_STREAMING))
		return;
	stats_count(&ex->home->server->stats.gone);
	if (ex->on_gone && phase == EXCHANGE_OPEN)
		ex->on_gone(ex, ex->on_gone_data);
}

void exchange_detach(struct http_exchange *ex)
{
	ex->connection = NULL;
	exchange_tell_gone(ex);
	if (ex->streaming)
		stream_detach(ex);
	exchange_drop(ex);
}

void http_exchange_read_stats(const struct http_exchange *ex, struct http_stats *ret_stats)
{
	http_server_read_stats(ex->home->server, ret_stats);
}

const struct http_request *http_exchange_request(const struct http_exchange *exchange)
{
	return &exchange->request;
}

struct arena *http_exchange_arena(struct http_exchange *exchange)
{
	return &exchange->arena;
}

struct loop *http_exchange_loop(struct http_exchange *exchange)
{
	return &exchange->home->loop;
}

void http_exchange_do_not_time(struct http_exchange *exchange)
{
	exchange->timed = false;
}

void http_on_gone(struct http_exchange *exchange, void (*fn)(struct http_exchange *exchange, void *data), void *data)
{
	exchange->on_gone = fn;
	exchange->on_gone_data = data;
}

bool http_exchange_gone(const struct http_exchange *exchange)
{
	return exchange->gone;
}

bool http_exchange_closed(const struct http_exchange *exchange)
{
	return !exchange->connection;
}

bool http_resume(struct http_exchange *exchange, void (*fn)(struct http_exchange *exchange, void *data), void *data)
{
	exchange->resumed = fn;
	exchange->resumed_data = data;
	atomic_fetch_add_explicit(&exchange->references, 1, memory_order_relaxed); /* the letter's */
	if (mailbox_post(exchange->home->loop.mailbox, &exchange->letter) == MAILBOX_POSTED)
		return true;
	exchange->resumed = NULL;
	exchange_drop_elsewhere(exchange); /* never the last: the caller has one */
	return false;
}

/* ---- before the answer, and instead of it ---- */

void http_send_interim(struct http_exchange *ex, const struct http_answer *head)
{
	bool good = true;

	ASSERT(ex->phase == EXCHANGE_OPEN && head->status >= 102 && head->status <= 199);
	if (!ex->connection || ex->request.wire.head.minor == 0)
		return;
	LOCAL_STRBUF(text, OUT_BYTES_MAX);
	head_write_status(head->status, &text);
	for (size_t i = 0; i < head->fields.n; i++)
		good &= head_write_field(head->fields.at[i].name, head->fields.at[i].value, &text);
	head_write_end(&text);
	if (good && !text.failed)
		connection_send_interim(ex->connection, strbuf_slice(&text));
}

int http_take_socket(struct http_exchange *ex, struct strbuf *ret_unsent, struct strbuf *ret_unread)
{
	int phase = EXCHANGE_OPEN, fd = -1;

	ASSERT(atomic_compare_exchange_strong(&ex->phase, &phase, EXCHANGE_ENDED));
	if (ex->connection)
		fd = connection_give_up(ex->connection, ret_unsent, ret_unread);
	exchange_drop(ex);
	return fd;
}

/* ---- the answer ---- */

bool exchange_is_head(const struct http_exchange *ex)
{
	return slice_is(ex->request.wire.method, "HEAD");
}

static bool is_framing_field(struct slice name)
{
	return slice_is_nocase(name, "content-length") || slice_is_nocase(name, "transfer-encoding") ||
	       slice_is_nocase(name, "connection") || slice_is_nocase(name, "keep-alive");
}

/* False if one of them must not be sent. */
static bool write_fields(struct http_exchange *ex, struct wire_fields fields)
{
	bool has_date = false;

	for (size_t i = 0; i < fields.n; i++) {
		const struct wire_field *field = &fields.at[i];

		if (is_framing_field(field->name) || !head_write_field(field->name, field->value, &ex->out))
			return false;
		has_date |= slice_is_nocase(field->name, "date");
	}
	if (!has_date)
		head_write_date(clock_wall(ex->home->server->options.clock), &ex->out);
	return true;
}

/* Nothing about a body where there is none by the status; a 304 may say what a 200 would have had. */
static void write_framing(struct http_exchange *ex, int status, int64_t length)
{
	const struct wire_head *head = &ex->request.wire.head;

	if (length >= 0 && status != 204)
		head_write_number("Content-Length", (uint64_t)length, &ex->out);
	else if (status == 204 || status == 304 || exchange_is_head(ex))
		;
	else if (head->minor == 1)
		head_write_text("Transfer-Encoding", "chunked", &ex->out);
	else
		ex->close_after = true;
	if (ex->close_after)
		head_write_text("Connection", "close", &ex->out);
	else if (head->minor == 0)
		head_write_text("Connection", "keep-alive", &ex->out);
}

static void count_answer(const struct http_exchange *ex, int status)
{
	struct server_loop *home = ex->home;
	int64_t ns, us;

	stats_count(&home->stats.responses[status / 100 - 2]);
	if (!ex->timed)
		return;
	if (!ex->handled) /* begin() has answered it */
		stats_count(&home->server->stats.requests);
	ns = clock_mono(home->server->options.clock).ns - ex->handed_over.ns;
	us = (ns + 999) / 1000; /* upwards: what was answered took some time */
	atomic_fetch_add_explicit(&home->stats.took_us, (uint64_t)us, memory_order_relaxed);
	stats_count(&home->stats.answered[histogram_range(us)]);
}

bool exchange_write_head(struct http_exchange *ex, const struct http_answer *answer, int64_t length)
{
	ASSERT(answer->status >= 200 && answer->status <= 599);
	ex->close_after = ex->hasty || ex->body_unread || !ex->request.wire.head.keep_alive;
	head_write_status(answer->status, &ex->out);
	if (!write_fields(ex, answer->fields)) {
		strbuf_reset(&ex->out);
		return false;
	}
	write_framing(ex, answer->status, length);
	head_write_end(&ex->out);
	count_answer(ex, answer->status);
	return true;
}

static void compose(struct http_exchange *ex, const struct http_answer *answer)
{
	static const struct http_answer sick = {.status = 500};
	bool bodyless = answer->status == 204 || answer->status == 304;

	if (!exchange_write_head(ex, answer, bodyless ? -1 : (int64_t)answer->body.n)) {
		answer = &sick;
		ASSERT(exchange_write_head(ex, answer, 0));
	}
	if (!bodyless && !exchange_is_head(ex))
		strbuf_add_slice(&ex->out, answer->body);
	if (ex->out.n >= COUNTED_BYTES_MIN)
		count_bytes(ex, ex->out.n);
	ex->failed = ex->out.failed;
}

void http_respond(struct http_exchange *exchange, const struct http_answer *answer)
{
	void (*captured)(struct http_exchange *, const struct http_answer *, void *) = exchange->captured;
	int phase = EXCHANGE_OPEN;

	if (captured) {
		exchange->captured = NULL;
		captured(exchange, answer, exchange->captured_data);
		return;
	}
	ASSERT(atomic_compare_exchange_strong(&exchange->phase, &phase, EXCHANGE_ANSWERED));
	if (exchange->inner) {
		exchange->inner->answered(exchange->inner, answer);
		exchange_drop_elsewhere(exchange);
		return;
	}
	compose(exchange, answer);
	exchange_post(exchange);
	exchange_drop_elsewhere(exchange);
}

void http_capture(struct http_exchange *exchange,
		  void (*fn)(struct http_exchange *exchange, const struct http_answer *answer, void *data), void *data)
{
	exchange->captured = fn;
	exchange->captured_data = data;
}

void exchange_refuse(struct http_exchange *ex, enum hx_code code, const char *reason)
{
	struct http_answer answer;

	ASSERT(ex->phase == EXCHANGE_EMPTY);
	ex->phase = EXCHANGE_ANSWERED;
	ex->hasty = true;
	problem_answer(&(struct problem){.code = code, .detail = slice_str(reason)}, &ex->arena, &answer);
	compose(ex, &answer);
}

void http_respond_text(struct http_exchange *exchange, int status, const char *type, struct slice text)
{
	struct wire_field fields[] = {{slice_str("Content-Type"), slice_str(type)},
				      {slice_str("Retry-After"), slice_str(HTTP_TEXT_RETRY_AFTER)}};
	size_t n = status == 503 ? 2 : 1;

	http_respond(exchange, &(struct http_answer){.status = status, .fields = {fields, n}, .body = text});
}
