/* The server as a whole: made, stopped, counted. See server.h for the contract, server_loop.h for the parts. */
#include "serve/server.h"

#include <stdlib.h>

#include "serve/server_loop.h"

struct server_options server_options_default(void)
{
	return (struct server_options){
		.listen = "127.0.0.1:7411",
		.loops = 2,
		.connections_max = 10000,
		.head = {.line_bytes = 8192, .head_bytes = 32768, .fields = 100},
		.body_bytes_max = 16u << 20,
		.body_limit = "max_body_bytes",
		.bodies_bytes_max = 256u << 20,
		.small_body_bytes = 64u << 10,
		.small_bodies_bytes_max = 64u << 20,
		.arena_bytes_max = 64u << 20,
		.stream_bytes_max = 128u << 10,
		.idle_ms = 60000,
		.read_ms = 30000,
		.write_ms = 30000,
		.linger_ms = 2000,
		.clock = clock_system(),
	};
}

/* ---- life ---- */

struct http_server *server_hold(struct http_server *server)
{
	atomic_fetch_add_explicit(&server->references, 1, memory_order_relaxed);
	return server;
}

void server_drop(struct http_server *server)
{
	if (atomic_fetch_sub_explicit(&server->references, 1, memory_order_acq_rel) > 1)
		return;
	for (unsigned i = 0; i < server->loops_n; i++)
		server_loop_release(&server->loops[i]);
	free(server);
}

static struct http_server *allocate(const struct server_options *options)
{
	struct http_server *server = calloc(1, sizeof *server + options->loops * sizeof server->loops[0]);

	if (!server)
		return NULL;
	server->references = 1;
	server->options = *options;
	server->loops_n = options->loops;
	server->listener.fd = -1;
	return server;
}

static enum hx_code server_start(struct http_server *server, struct hx_error *err)
{
	bool listens = server->options.listen != NULL;
	enum hx_code code = listens ? listener_open(&server->listener, server, err) : HX_OK;

	for (unsigned i = 0; code == HX_OK && i < server->loops_n; i++)
		code = server_loop_init(&server->loops[i], server, err);
	if (code == HX_OK && listens)
		code = listener_start(&server->listener, err);
	/* The first loop last: it deals out to the others. */
	for (unsigned i = server->loops_n; code == HX_OK && i-- > 0;)
		code = server_loop_start(&server->loops[i], err);
	return code;
}

enum hx_code http_server_new(const struct server_options *options, struct http_server **ret_server,
			     struct hx_error *err)
{
	struct http_server *server;
	enum hx_code code;

	ASSERT(options->handle && options->clock && options->loops >= 1 && options->loops <= HTTP_LOOPS_MAX);
	ASSERT(options->connections_max > 0 && options->stream_bytes_max >= 1024);
	ASSERT(options->idle_ms > 0 && options->read_ms > 0 && options->write_ms > 0 && options->linger_ms > 0);
	server = allocate(options);
	if (!server)
		return error_set(err, HX_NO_MEMORY, "out of memory");
	code = server_start(server, err);
	if (code != HX_OK) {
		http_server_free(server);
		return code;
	}
	*ret_server = server;
	return HX_OK;
}

enum hx_code http_try_listen(const char *listen, struct hx_error *err)
{
	struct http_server server = {.options.listen = listen};
	enum hx_code code = listener_open(&server.listener, &server, err);

	listener_close(&server.listener);
	return code;
}

const struct address *http_server_address(const struct http_server *server)
{
	return &server->listener.address;
}

void http_server_stop(struct http_server *server, int64_t drain_ms)
{
	if (!server || server->stopped)
		return;
	server->stopped = true;
	server->drain_ms = drain_ms;
	for (unsigned i = 0; i < server->loops_n; i++)
		server_loop_ask_to_stop(&server->loops[i]);
	for (unsigned i = 0; i < server->loops_n; i++)
		server_loop_join(&server->loops[i]);
	listener_close(&server->listener);
}

void http_server_free(struct http_server *server)
{
	if (!server)
		return;
	http_server_stop(server, 0);
	server_drop(server);
}

static void add_loop_stats(const struct server_loop *sl, struct http_stats *sum)
{
	for (size_t i = 0; i < HTTP_STATUS_CLASSES; i++)
		sum->responses[i] += sl->stats.responses[i];
	for (size_t i = 0; i < HISTOGRAM_RANGES; i++)
		sum->answered.counts[i] += sl->stats.answered[i];
	sum->answered.took_us += sl->stats.took_us;
}

void http_server_read_stats(struct http_server *server, struct http_stats *ret_stats)
{
	*ret_stats = (struct http_stats){
		.connections_open = server->stats.open,
		.connections_total = server->stats.total,
		.connections_evicted = server->stats.evicted,
		.requests = server->stats.requests,
		.refused = server->stats.refused,
		.timed_out = server->stats.timed_out,
		.gone = server->stats.gone,
		.crowded_out = server->stats.crowded_out,
		.bodies_bytes = server->stats.bodies_bytes + server->stats.small_bytes,
	};
	for (unsigned i = 0; i < server->loops_n; i++)
		add_loop_stats(&server->loops[i], ret_stats);
}
