/* See tunnel.h. As in connection.c events are edge-triggered and merely noted, and the struct is freed by its own letter. */
#include "wire/tunnel.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/list.h"

#define READ_AT_ONCE 16384
#define STEPS_PER_TURN 16 /* then others have their turn */

enum { CLIENT, SERVICE };

struct tunnel_end {
	struct watch watch;
	struct tunnel *tunnel;
	int fd;
	struct tls_link *tls;
	struct strbuf out; /* what it is to be sent */
	size_t sent;
	bool can_read, can_write;
	bool ended; /* it sends nothing more */
	bool told;  /* and was told that nothing more comes */
};

struct tunnel {
	struct tunnel_end ends[2];
	struct letter letter; /* go on; be freed */
	struct deadline look;
	struct tunnels *home;
	struct tunnel *previous, *next;
	struct mono_time moved; /* when a byte came last */
	int64_t idle_ms;
	bool closed;
};

/* ---- the end ---- */

static void release_end(struct tunnel_end *end)
{
	tls_link_free(end->tls);
	if (end->fd >= 0)
		close(end->fd);
	strbuf_release(&end->out);
}

static void close_tunnel(struct tunnel *t)
{
	struct tunnels *home = t->home;

	if (t->closed)
		return;
	t->closed = true;
	deadline_clear(&t->look);
	for (size_t i = 0; i < 2; i++) {
		loop_unwatch(home->loop, t->ends[i].fd);
		release_end(&t->ends[i]);
	}
	LIST_DROP(home->first, t);
	home->loop->guests--;
	atomic_fetch_sub(home->open, 1);
	ASSERT(mailbox_post(home->loop->mailbox, &t->letter) != MAILBOX_CLOSED);
}

/* ---- bytes ---- */

static ssize_t tunnel_receive(struct tunnel_end *end, char *buffer, size_t n)
{
	return end->tls ? tls_link_receive(end->tls, buffer, n) : recv(end->fd, buffer, n, 0);
}

static ssize_t send_some(struct tunnel_end *end, struct slice bytes)
{
	return end->tls ? tls_link_send(end->tls, bytes) : send(end->fd, bytes.p, bytes.n, MSG_NOSIGNAL);
}

static bool has_to_wait(void)
{
	return errno == EAGAIN || errno == EWOULDBLOCK;
}

/* Sends what is kept for it. False: it is broken. */
static bool flush(struct tunnel_end *end)
{
	while (end->can_write && end->sent < end->out.n) {
		ssize_t n = send_some(end, slice_of(end->out.p + end->sent, end->out.n - end->sent));

		if (n > 0)
			end->sent += (size_t)n;
		else if (n < 0 && has_to_wait())
			end->can_write = false;
		else if (n == 0 || errno != EINTR)
			return false;
	}
	if (end->sent == end->out.n) {
		strbuf_reset(&end->out);
		end->sent = 0;
	}
	return true;
}

/* TLS cannot end one way alone: then the other is over, too. */
static bool tell_end(struct tunnel_end *end)
{
	end->told = true;
	return !end->tls && shutdown(end->fd, SHUT_WR) == 0;
}

/* One read from one end for the other. False: it is broken. *ret_moved: there may be more. */
static bool carry(struct tunnel_end *from, struct tunnel_end *to, bool *ret_moved)
{
	char buffer[READ_AT_ONCE];
	ssize_t n;

	if (!flush(to))
		return false;
	if (to->out.n > 0)
		return true;
	if (from->ended)
		return to->told || tell_end(to);
	if (!from->can_read)
		return true;
	n = tunnel_receive(from, buffer, sizeof buffer);
	if (n < 0 && errno != EINTR && !has_to_wait())
		return false;
	from->can_read = n > 0 || errno == EINTR;
	from->ended = n == 0;
	*ret_moved = n >= 0 || from->can_read;
	if (n > 0) {
		from->tunnel->moved = from->tunnel->home->loop->now;
		strbuf_add_slice(&to->out, slice_of(buffer, (size_t)n));
	}
	return !to->out.failed && flush(to);
}

static void pump(struct tunnel *t)
{
	struct tunnel_end *client = &t->ends[CLIENT], *service = &t->ends[SERVICE];

	for (unsigned i = 0; i < STEPS_PER_TURN; i++) {
		bool moved = false;

		if (!carry(client, service, &moved) || !carry(service, client, &moved) ||
		    (client->told && service->told)) {
			close_tunnel(t);
			return;
		}
		if (!moved)
			return;
	}
	(void)mailbox_post(t->home->loop->mailbox, &t->letter); /* goes on in the next round; open as long as we are */
}

/* ---- what moves it ---- */

static void tunnel_ready(struct watch *watch, uint32_t events)
{
	struct tunnel_end *end = CONTAINER_OF(watch, struct tunnel_end, watch);

	if (end->tunnel->closed)
		return;
	end->can_read |= (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
	end->can_write |= (events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0;
	if (end->tls) /* which may have to read before it can write */
		end->can_read = end->can_write = true;
	pump(end->tunnel);
}

static void tunnel_deliver(struct letter *letter)
{
	struct tunnel *t = CONTAINER_OF(letter, struct tunnel, letter);

	if (t->closed)
		free(t);
	else
		pump(t);
}

static void tunnel_look(struct deadline *deadline)
{
	struct tunnel *t = CONTAINER_OF(deadline, struct tunnel, look);
	struct loop *loop = t->home->loop;
	int64_t quiet_ms = (loop->now.ns - t->moved.ns) / 1000000;

	if (quiet_ms >= t->idle_ms || (loop->draining && quiet_ms >= TUNNEL_QUIET_MS))
		close_tunnel(t);
	else
		deadline_set(&t->home->looks, &t->look, loop->now);
}

/* ---- life ---- */

void tunnels_init(struct tunnels *tunnels, struct loop *loop, _Atomic int64_t *open)
{
	*tunnels = (struct tunnels){.loop = loop, .open = open};
	deadline_queue_init(&tunnels->looks, TUNNEL_QUIET_MS, tunnel_look);
	loop_add_queue(loop, &tunnels->looks);
}

void tunnels_free(struct tunnels *tunnels)
{
	while (tunnels->first) {
		struct tunnel *t = tunnels->first;

		tunnels->first = t->next;
		release_end(&t->ends[CLIENT]);
		release_end(&t->ends[SERVICE]);
		atomic_fetch_sub(tunnels->open, 1);
		free(t);
	}
}

static void init_end(struct tunnel *t, size_t which, int fd, struct tls_link *tls, struct strbuf *out)
{
	t->ends[which] = (struct tunnel_end){.watch = {tunnel_ready},
					     .tunnel = t,
					     .fd = fd,
					     .tls = tls,
					     .out = *out,
					     .can_read = true,
					     .can_write = true};
	t->ends[which].out.max_bytes = TUNNEL_BYTES + out->n;
}

static void enlist(struct tunnel *t)
{
	struct tunnels *home = t->home;

	LIST_PUSH(home->first, t);
	home->loop->guests++;
	deadline_set(&home->looks, &t->look, home->loop->now);
}

void tunnel_open(struct tunnels *tunnels, int client_fd, struct strbuf *to_client, int service_fd, struct tls_link *tls,
		 struct strbuf *to_service, int64_t idle_ms)
{
	const uint32_t events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
	struct tunnel *t = calloc(1, sizeof *t), none = {0};
	bool watched;

	init_end(t ? t : &none, CLIENT, client_fd, NULL, to_client);
	init_end(t ? t : &none, SERVICE, service_fd, tls, to_service);
	if (!t) {
		release_end(&none.ends[CLIENT]);
		release_end(&none.ends[SERVICE]);
		atomic_fetch_sub(tunnels->open, 1);
		return;
	}
	t->home = tunnels;
	t->letter.deliver = tunnel_deliver;
	t->moved = tunnels->loop->now;
	t->idle_ms = idle_ms;
	enlist(t);
	watched = loop_watch(tunnels->loop, client_fd, events, &t->ends[CLIENT].watch) &&
		  loop_watch(tunnels->loop, service_fd, events, &t->ends[SERVICE].watch);
	if (watched)
		pump(t);
	else
		close_tunnel(t);
}
