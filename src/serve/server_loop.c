/* The thread of one loop, from its start to its end. See server_loop.h. */
#include "serve/server_loop.h"

#include "serve/connection.h"
#include "serve/exchange.h"

/* The letter of http_server_stop(). */
static void begin_draining(struct letter *letter)
{
	struct server_loop *sl = CONTAINER_OF(letter, struct server_loop, stop);

	sl->draining = sl->loop.draining = true;
	sl->drain_by = mono_add_ms(sl->loop.now, sl->server->drain_ms);
	if (sl == &sl->server->loops[0])
		listener_drain(&sl->server->listener);
	connections_drain(sl);
}

static void evict_one(struct letter *letter)
{
	(void)connection_evict(CONTAINER_OF(letter, struct server_loop, evict)); /* if none is idle, it asks again */
}

static bool is_over(const struct server_loop *sl)
{
	bool quiet = sl->connections_n == 0 && sl->loop.guests == 0;

	return sl->draining && (quiet || sl->loop.now.ns >= sl->drain_by.ns);
}

static void free_spare(struct server_loop *sl)
{
	while (sl->spare) {
		struct http_exchange *ex = sl->spare;

		sl->spare = ex->next_spare;
		ex->references = 1;
		exchange_drop(ex);
	}
	sl->spare_n = 0;
}

/* Mail can still come in until the mailbox closes: connections that the first loop has dealt out, late answers. */
static void wind_up(struct server_loop *sl)
{
	sl->running = false;
	do {
		connections_close_all(sl);
		mailbox_deliver(sl->loop.mailbox);
	} while (sl->connections_n > 0 || !mailbox_close(sl->loop.mailbox));
	free_spare(sl);
}

static void *server_loop_run(void *data)
{
	struct server_loop *sl = data;

	while (!is_over(sl))
		loop_round(&sl->loop, sl->draining ? sl->drain_by : (struct mono_time){INT64_MAX});
	wind_up(sl);
	return NULL;
}

enum hx_code server_loop_init(struct server_loop *sl, struct http_server *server, struct hx_error *err)
{
	enum hx_code code = loop_init(&sl->loop, server->options.clock, err);

	sl->server = server;
	sl->stop.deliver = begin_draining;
	sl->evict.deliver = evict_one;
	if (code == HX_OK)
		connections_init(sl);
	return code;
}

void server_loop_release(struct server_loop *sl)
{
	loop_release(&sl->loop);
}

enum hx_code server_loop_start(struct server_loop *sl, struct hx_error *err)
{
	enum hx_code code;

	sl->running = true;
	code = thread_start(&sl->thread, server_loop_run, sl, "a thread of the server", err);
	if (code)
		sl->running = false;
	return code;
}

void server_loop_ask_to_stop(struct server_loop *sl)
{
	if (sl->thread.started)
		(void)mailbox_post(sl->loop.mailbox, &sl->stop); /* once: it cannot have ended */
}

void server_loop_join(struct server_loop *sl)
{
	thread_join(&sl->thread);
}
