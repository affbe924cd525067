/*
 * The inside of a server: what its loops, connections and exchanges share. Only for the files of this folder that
 * make up the server (server, server_loop, listener, connection, exchange, stream); everybody else uses server.h.
 *
 *   http_server ─┬─ listener, watched by the first loop, deals connections out to all
 *                └─ server_loop × n, each a thread ── connection × many ── exchange (0 or 1, counted) ── handler
 *
 * The memory of a server is counted by reference: one for its owner, one for each exchange. Its threads end with
 * http_server_stop(), its memory with the last exchange.
 */
#pragma once

#include "base/thread.h"
#include "serve/listener.h"
#include "serve/server.h"
#include "wire/loop.h"

#define READ_BYTES 16384 /* at once from a connection, and so the most that is held of pipelined requests */

struct server_loop {
	struct loop loop;
	struct http_server *server;
	struct thread thread;
	bool running; /* that thread's own: it has not begun to wind up */
	/* Every connection is in the queue of what it waits for; see connection.c. */
	struct deadline_queue idle, reading, handling, writing, lingering;
	size_t connections_n;
	struct letter stop, evict; /* of http_server_stop(), of the listener */
	bool draining;
	struct mono_time drain_by;
	struct http_exchange *spare; /* for the next requests */
	size_t spare_n;
	/* By whoever answers; a loop has its own, so that threads seldom meet here. */
	struct {
		_Atomic uint64_t responses[HTTP_STATUS_CLASSES], answered[HISTOGRAM_RANGES], took_us;
	} stats;
	char input[READ_BYTES]; /* where connections read to that have nothing pending */
};

struct http_server {
	_Atomic int references;
	struct server_options options;
	struct listener listener;
	_Atomic int64_t drain_ms;
	bool stopped;
	struct {
		_Atomic uint64_t open, total, evicted, requests, refused, timed_out, gone, crowded_out;
		_Atomic uint64_t bodies_bytes, small_bytes; /* of large bodies and answers, of small bodies */
	} stats;
	unsigned loops_n;
	struct server_loop loops[];
};

struct http_server *server_hold(struct http_server *server);
void server_drop(struct http_server *server);

enum hx_code server_loop_init(struct server_loop *sl, struct http_server *server, struct hx_error *err) HX_MUST_CHECK;
/* Safe on a zeroed struct. The thread must have ended. */
void server_loop_release(struct server_loop *sl);
enum hx_code server_loop_start(struct server_loop *sl, struct hx_error *err) HX_MUST_CHECK;
/* Asks the thread to drain and to end, as http_server_stop() says; waits until it has. Nothing if it never started. */
void server_loop_ask_to_stop(struct server_loop *sl);
void server_loop_join(struct server_loop *sl);

static inline void stats_count(_Atomic uint64_t *counter)
{
	atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}
