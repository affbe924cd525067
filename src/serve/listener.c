/* See listener.h. */
#include "serve/listener.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "serve/connection.h"
#include "serve/server_loop.h"

#define BACKLOG 4096 /* the system's somaxconn cuts it */
#define ACCEPTS_PER_TURN 64
#define PAUSE_MS 100

static struct server_loop *first_loop(struct listener *listener)
{
	return &listener->server->loops[0];
}

/* ---- accepting ---- */

static bool is_full(const struct listener *listener)
{
	return listener->server->stats.open >= listener->server->options.connections_max;
}

/* Room for one more, made if need be and if it can be made here; other loops are asked, and tell when they have. */
static bool make_room(struct listener *listener)
{
	struct http_server *server = listener->server;

	if (is_full(listener))
		(void)connection_evict(first_loop(listener));
	if (!is_full(listener))
		return true;
	for (unsigned i = 1; i < server->loops_n; i++)
		(void)mailbox_post(server->loops[i].loop.mailbox, &server->loops[i].evict); /* ended: it has none */
	return false;
}

/* The socket stays in epoll, level-triggered, only while somebody would accept. A pause is looked at again and again. */
static void pause_accepting(struct listener *listener)
{
	if (!listener->paused)
		loop_unwatch(&first_loop(listener)->loop, listener->fd);
	listener->paused = true;
	deadline_set(&listener->pauses, &listener->pause, first_loop(listener)->loop.now);
}

static void resume_accepting(struct listener *listener)
{
	struct loop *loop = &first_loop(listener)->loop;

	if (!listener->paused || listener->fd < 0)
		return;
	if (make_room(listener) && loop_watch(loop, listener->fd, EPOLLIN, &listener->watch)) {
		listener->paused = false;
		deadline_clear(&listener->pause);
	} else {
		deadline_set(&listener->pauses, &listener->pause, loop->now);
	}
}

static void deal_out(struct listener *listener, int fd, const struct sockaddr_storage *from)
{
	struct http_server *server = listener->server;
	struct address peer = {0};

	(void)address_from_sockaddr(from, &peer); /* a client without an address is still a client */
	stats_count(&server->stats.open);
	stats_count(&server->stats.total);
	if (!connection_open(&server->loops[listener->next], fd, &peer))
		atomic_fetch_sub(&server->stats.open, 1);
	listener->next = (listener->next + 1) % server->loops_n;
}

/* True if there may be more to accept. */
static bool accept_one(struct listener *listener)
{
	struct sockaddr_storage from;
	socklen_t n = sizeof from;
	int fd = accept4(listener->fd, (struct sockaddr *)&from, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0) {
		deal_out(listener, fd, &from);
		return true;
	}
	if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
		log_warn(listener->server->options.log, "no connection can be accepted for the moment",
			 log_text("error", strerror(errno)));
		(void)connection_evict(first_loop(listener)); /* frees a descriptor, if it can */
		pause_accepting(listener);
		return false;
	}
	/* EAGAIN: nobody left. Everything else is the fate of one client, who is taken off the queue. */
	return errno != EAGAIN && errno != EWOULDBLOCK;
}

static void listener_ready(struct watch *watch, uint32_t events)
{
	struct listener *listener = CONTAINER_OF(watch, struct listener, watch);

	(void)events;
	/* Somebody is waiting: only for a client that is there does another have to go. */
	if (!make_room(listener)) {
		pause_accepting(listener);
		return;
	}
	for (unsigned i = 0; i < ACCEPTS_PER_TURN && !is_full(listener); i++)
		if (!accept_one(listener))
			return;
}

static void listener_deliver(struct letter *letter)
{
	resume_accepting(CONTAINER_OF(letter, struct listener, letter));
}

static void pause_over(struct deadline *deadline)
{
	resume_accepting(CONTAINER_OF(deadline, struct listener, pause));
}

void listener_freed(struct listener *listener)
{
	atomic_fetch_sub(&listener->server->stats.open, 1);
	if (listener->paused)
		(void)mailbox_post(first_loop(listener)->loop.mailbox,
				   &listener->letter); /* ended: it accepts nobody */
}

/* ---- opening and closing ---- */

static enum hx_code bind_and_listen(struct listener *listener)
{
	struct sockaddr_storage to;
	socklen_t n = address_to_sockaddr(&listener->address, &to);
	int one = 1, zero = 0;

	setsockopt(listener->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (listener->address.is_ipv6)
		setsockopt(listener->fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
	if (bind(listener->fd, (struct sockaddr *)&to, n) < 0 || listen(listener->fd, BACKLOG) < 0)
		return errno == EADDRINUSE ? HX_BUSY : HX_CONFIG_ERROR; /* the first may be over in a moment */
	n = sizeof to;
	if (getsockname(listener->fd, (struct sockaddr *)&to, &n) < 0)
		return HX_CONFIG_ERROR;
	return address_from_sockaddr(&to, &listener->address) ? HX_OK : HX_INTERNAL;
}

enum hx_code listener_open(struct listener *listener, struct http_server *server, struct hx_error *err)
{
	const char *text = server->options.listen;
	enum hx_code code;

	*listener = (struct listener){
		.watch = {listener_ready}, .letter = {.deliver = listener_deliver}, .server = server, .fd = -1};
	deadline_queue_init(&listener->pauses, PAUSE_MS, pause_over);
	code = address_parse(text, err, &listener->address);
	if (code != HX_OK)
		return code;
	listener->fd = socket(listener->address.is_ipv6 ? AF_INET6 : AF_INET,
			      SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	code = listener->fd < 0 ? HX_CONFIG_ERROR : bind_and_listen(listener);
	if (code != HX_OK) {
		error_set(err, code, "cannot listen on %s: %s", text, strerror(errno));
		listener_close(listener);
	}
	return code;
}

enum hx_code listener_start(struct listener *listener, struct hx_error *err)
{
	struct loop *loop = &first_loop(listener)->loop;

	loop_add_queue(loop, &listener->pauses);
	if (!loop_watch(loop, listener->fd, EPOLLIN, &listener->watch))
		return error_set(err, HX_INTERNAL, "the listener cannot be watched: %s", strerror(errno));
	return HX_OK;
}

void listener_drain(struct listener *listener)
{
	if (listener->fd < 0)
		return;
	for (unsigned i = 0; i < BACKLOG && !is_full(listener); i++)
		if (!accept_one(listener))
			break;
	listener_close(listener);
}

void listener_close(struct listener *listener)
{
	deadline_clear(&listener->pause);
	if (listener->fd >= 0)
		close(listener->fd);
	listener->fd = -1;
}
