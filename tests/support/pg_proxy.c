/*
 * See pg_proxy.h. One thread, one poll loop, up to LINKS_MAX connections. Calls from tests post a request under
 * the mutex, wake the thread through a pipe and wait until it has been carried out.
 *
 * Frontend messages: the first is | length int32 | … |, all others | type char | length int32 | … |, the length
 * counting itself. They are passed on whole, one by one, so that a COMMIT can be told from what stands before
 * it; one of more than MESSAGE_BYTES_MAX ends its connection. Writes block: tests send little enough to fit the
 * sockets' buffers.
 */
#include "support/pg_proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINKS_MAX 16
#define MESSAGE_BYTES_MAX (1u << 20)
#define SSL_REQUEST 80877103u
#define GSS_REQUEST 80877104u

struct link {
	int client, server; /* -1: closed */
	bool started;       /* the start-up message has passed */
	bool committing;    /* CUT_AFTER: the answer is awaited, then all is closed */
	bool held;          /* HOLD: the COMMIT waits in `message` */
	size_t n;
	unsigned char *message;
};

struct pg_proxy {
	pthread_t thread;
	int server_port, port, listener;
	int wake[2];
	struct link links[LINKS_MAX]; /* of the thread alone */

	pthread_mutex_t mutex; /* guards all below */
	pthread_cond_t done;
	enum pg_proxy_mode armed;
	bool stop, drop, let_go, stalled;
	unsigned asked, served;
	int cuts;
	unsigned trips;
};

static uint32_t get32(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void link_close(struct link *link)
{
	close_fd(&link->client);
	close_fd(&link->server);
	free(link->message);
	*link = (struct link){.client = -1, .server = -1};
}

static bool write_all(int fd, const void *bytes, size_t n)
{
	const char *p = bytes;

	while (n > 0) {
		ssize_t written = send(fd, p, n, MSG_NOSIGNAL);

		if (written <= 0)
			return false;
		p += written;
		n -= (size_t)written;
	}
	return true;
}

static struct sockaddr_in loopback(int port)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_port = htons((uint16_t)port),
				    .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
}

static void set_no_delay(int fd)
{
	int on = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* only slower without */
}

static void accept_link(struct pg_proxy *proxy)
{
	struct sockaddr_in address = loopback(proxy->server_port);
	int client = accept4(proxy->listener, NULL, NULL, SOCK_CLOEXEC);
	int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct link *link = NULL;

	for (int i = 0; i < LINKS_MAX && !link; i++)
		if (proxy->links[i].client < 0 && proxy->links[i].server < 0)
			link = &proxy->links[i];
	if (client < 0 || server < 0 || !link || connect(server, (struct sockaddr *)&address, sizeof address) < 0) {
		close_fd(&client);
		close_fd(&server);
		return;
	}
	set_no_delay(client);
	set_no_delay(server);
	*link = (struct link){.client = client, .server = server, .message = malloc(MESSAGE_BYTES_MAX)};
	if (!link->message)
		link_close(link);
}

/* The length of the first whole message in the buffer, 0 when it is not all there. */
static size_t message_length(const struct link *link)
{
	size_t head = link->started ? 5 : 4, length;

	if (link->n < head)
		return 0;
	length = get32(link->message + head - 4) + head - 4;
	return length <= link->n ? length : 0;
}

static bool is_query(const struct link *link, size_t length, const char *text)
{
	return link->started && link->message[0] == 'Q' && length == 5 + strlen(text) + 1 &&
	       memcmp(link->message + 5, text, strlen(text) + 1) == 0;
}

static enum pg_proxy_mode take_armed(struct pg_proxy *proxy, bool is_rollback)
{
	enum pg_proxy_mode mode;

	pthread_mutex_lock(&proxy->mutex);
	mode = is_rollback && proxy->armed != PG_PROXY_REFUSE ? PG_PROXY_PASS : proxy->armed;
	if (mode != PG_PROXY_PASS)
		proxy->armed = PG_PROXY_PASS;
	proxy->cuts += mode != PG_PROXY_PASS;
	pthread_mutex_unlock(&proxy->mutex);
	return mode;
}

static void link_forget(struct link *link, size_t length)
{
	link->n -= length;
	memmove(link->message, link->message + length, link->n);
}

/* An error, and then that the server is ready, in a transaction that has failed. */
static void link_refuse(struct link *link, size_t length)
{
	static const char fields[] = "SERROR\0VERROR\0C57014\0Mrefused by the proxy\0";
	const unsigned char head[] = {'E', 0, 0, 0, 4 + sizeof fields}, ready[] = {'Z', 0, 0, 0, 5, 'E'};

	link_forget(link, length);
	if (!write_all(link->client, head, sizeof head) || !write_all(link->client, fields, sizeof fields) ||
	    !write_all(link->client, ready, sizeof ready))
		link_close(link);
}

/* Does what is armed for this COMMIT or ROLLBACK; false when nothing of it is to be passed on. */
static bool meet_end(struct pg_proxy *proxy, struct link *link, size_t length)
{
	switch (take_armed(proxy, is_query(link, length, "ROLLBACK"))) {
	case PG_PROXY_PASS:
		return true;
	case PG_PROXY_CUT_BEFORE:
		link_close(link);
		return false;
	case PG_PROXY_CUT_AFTER:
		link->committing = true;
		return true;
	case PG_PROXY_HOLD:
		link->held = true;
		close_fd(&link->client);
		return false;
	case PG_PROXY_REFUSE:
		link_refuse(link, length);
		return false;
	}
	return true;
}

/* Sync and Query are what is answered with ReadyForQuery. */
static void note_trip(struct pg_proxy *proxy, unsigned char type)
{
	if (type != 'S' && type != 'Q')
		return;
	pthread_mutex_lock(&proxy->mutex);
	proxy->trips++;
	pthread_mutex_unlock(&proxy->mutex);
}

static void from_client(struct pg_proxy *proxy, struct link *link)
{
	ssize_t n = read(link->client, link->message + link->n, MESSAGE_BYTES_MAX - link->n);
	size_t length;

	if (n <= 0) {
		link_close(link);
		return;
	}
	link->n += (size_t)n;
	while ((length = message_length(link)) > 0) {
		if ((is_query(link, length, "COMMIT") || is_query(link, length, "ROLLBACK")) &&
		    !meet_end(proxy, link, length))
			return;
		if (!link->started) {
			uint32_t code = get32(link->message + 4);

			link->started = code != SSL_REQUEST && code != GSS_REQUEST;
		}
		note_trip(proxy, link->message[0]);
		if (!write_all(link->server, link->message, length)) {
			link_close(link);
			return;
		}
		link_forget(link, length);
	}
}

static void from_server(struct link *link)
{
	char bytes[65536];
	ssize_t n = read(link->server, bytes, sizeof bytes);

	if (n <= 0 || link->committing || link->client < 0 || !write_all(link->client, bytes, (size_t)n))
		link_close(link);
}

/* Hands a held COMMIT over and waits for the first word of the answer. */
static void let_go(struct link *link)
{
	char byte;

	if (!link->held)
		return;
	if (write_all(link->server, link->message, link->n))
		(void)!read(link->server, &byte, 1); /* an answer or the end of the server: both are the end of this */
	link_close(link);
}

/* Carries out what tests have asked for; false: stop. */
static bool take_requests(struct pg_proxy *proxy, bool *ret_stalled)
{
	bool stop;
	char bytes[16];

	(void)!read(proxy->wake[0], bytes, sizeof bytes); /* any number of wakes is one */
	pthread_mutex_lock(&proxy->mutex);
	for (int i = 0; i < LINKS_MAX; i++) {
		if (proxy->let_go)
			let_go(&proxy->links[i]);
		if (proxy->drop)
			link_close(&proxy->links[i]);
	}
	proxy->let_go = proxy->drop = false;
	*ret_stalled = proxy->stalled;
	stop = proxy->stop;
	proxy->served = proxy->asked;
	pthread_cond_broadcast(&proxy->done);
	pthread_mutex_unlock(&proxy->mutex);
	return !stop;
}

static void *run(void *context)
{
	struct pg_proxy *proxy = context;
	bool stalled = false;

	for (;;) {
		struct pollfd fds[2 + 2 * LINKS_MAX];

		fds[0] = (struct pollfd){.fd = proxy->wake[0], .events = POLLIN};
		fds[1] = (struct pollfd){.fd = stalled ? -1 : proxy->listener, .events = POLLIN};
		for (int i = 0; i < LINKS_MAX; i++) {
			struct link *link = &proxy->links[i];

			fds[2 + 2 * i] = (struct pollfd){.fd = stalled ? -1 : link->client, .events = POLLIN};
			fds[3 + 2 * i] = (struct pollfd){.fd = stalled || link->held ? -1 : link->server,
							 .events = POLLIN};
		}
		if (poll(fds, 2 + 2 * LINKS_MAX, -1) < 0)
			continue;
		if (fds[0].revents) {
			if (!take_requests(proxy, &stalled))
				return NULL;
			continue; /* links may have gone */
		}
		for (int i = 0; i < LINKS_MAX; i++) {
			struct link *link = &proxy->links[i];

			if (fds[2 + 2 * i].revents && link->client >= 0)
				from_client(proxy, link);
			else if (fds[3 + 2 * i].revents && link->server >= 0)
				from_server(link);
		}
		if (fds[1].revents)
			accept_link(proxy);
	}
}

static bool listen_anywhere(struct pg_proxy *proxy)
{
	struct sockaddr_in address = loopback(0);
	socklen_t n = sizeof address;

	proxy->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (proxy->listener < 0 || bind(proxy->listener, (struct sockaddr *)&address, n) < 0 ||
	    listen(proxy->listener, LINKS_MAX) < 0 || getsockname(proxy->listener, (struct sockaddr *)&address, &n) < 0)
		return false;
	proxy->port = ntohs(address.sin_port);
	return true;
}

struct pg_proxy *pg_proxy_new(int server_port)
{
	struct pg_proxy *proxy = calloc(1, sizeof *proxy);

	if (!proxy)
		return NULL;
	proxy->server_port = server_port;
	proxy->listener = proxy->wake[0] = proxy->wake[1] = -1;
	for (int i = 0; i < LINKS_MAX; i++)
		proxy->links[i] = (struct link){.client = -1, .server = -1};
	pthread_mutex_init(&proxy->mutex, NULL);
	pthread_cond_init(&proxy->done, NULL);
	if (listen_anywhere(proxy) && pipe2(proxy->wake, O_CLOEXEC) == 0 &&
	    pthread_create(&proxy->thread, NULL, run, proxy) == 0)
		return proxy;
	close_fd(&proxy->listener);
	close_fd(&proxy->wake[0]);
	close_fd(&proxy->wake[1]);
	free(proxy);
	return NULL;
}

/* Sets a flag and returns when the thread has seen it. */
static void request(struct pg_proxy *proxy, bool *flag)
{
	pthread_mutex_lock(&proxy->mutex);
	unsigned mine = ++proxy->asked;

	*flag = true;
	(void)!write(proxy->wake[1], "", 1); /* a full pipe wakes as well */
	while (proxy->served < mine)
		pthread_cond_wait(&proxy->done, &proxy->mutex);
	pthread_mutex_unlock(&proxy->mutex);
}

void pg_proxy_free(struct pg_proxy *proxy)
{
	if (!proxy)
		return;
	request(proxy, &proxy->stop);
	pthread_join(proxy->thread, NULL);
	for (int i = 0; i < LINKS_MAX; i++)
		link_close(&proxy->links[i]);
	close_fd(&proxy->listener);
	close_fd(&proxy->wake[0]);
	close_fd(&proxy->wake[1]);
	pthread_cond_destroy(&proxy->done);
	pthread_mutex_destroy(&proxy->mutex);
	free(proxy);
}

int pg_proxy_port(const struct pg_proxy *proxy)
{
	return proxy->port;
}

void pg_proxy_arm(struct pg_proxy *proxy, enum pg_proxy_mode mode)
{
	pthread_mutex_lock(&proxy->mutex);
	proxy->armed = mode;
	pthread_mutex_unlock(&proxy->mutex);
}

void pg_proxy_drop(struct pg_proxy *proxy)
{
	pthread_mutex_lock(&proxy->mutex);
	proxy->stalled = false;
	pthread_mutex_unlock(&proxy->mutex);
	request(proxy, &proxy->drop);
}

void pg_proxy_stall(struct pg_proxy *proxy)
{
	request(proxy, &proxy->stalled);
}

void pg_proxy_let_go(struct pg_proxy *proxy)
{
	request(proxy, &proxy->let_go);
}

unsigned pg_proxy_trips(struct pg_proxy *proxy)
{
	unsigned trips;

	pthread_mutex_lock(&proxy->mutex);
	trips = proxy->trips;
	pthread_mutex_unlock(&proxy->mutex);
	return trips;
}

int pg_proxy_cuts(struct pg_proxy *proxy)
{
	int cuts;

	pthread_mutex_lock(&proxy->mutex);
	cuts = proxy->cuts;
	pthread_mutex_unlock(&proxy->mutex);
	return cuts;
}
