/*
 * A service for tests: an HTTP server on loopback whose pages say what happens to a request once it was read.
 *
 * Every request that was read whole counts as applied: that is what must not happen twice.
 */
#ifndef HX_TESTS_ACT_UPSTREAM_H
#define HX_TESTS_ACT_UPSTREAM_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "unit/act/desk.h"

enum page_how {
	PAGE_REPLY,       /* and keep the connection */
	PAGE_REPLY_CLOSE, /* and close it */
	PAGE_CLOSE,       /* no reply */
	PAGE_RESET,       /* RST instead of a reply */
	PAGE_HANG,        /* until released or the client goes away; then reply */
	PAGE_DIE,         /* no reply, and nobody listens any more */
	PAGE_REPLY_DIE,   /* the same after a reply */
	PAGE_TWICE,       /* reply, and once more when released */
	PAGE_CUT,         /* close when the head was read; not applied */
};

struct page {
	const char *path;
	enum page_how how;
	const char *reply;
};

#define UPSTREAM_CLIENTS_MAX 512
#define UPSTREAM_REQUEST_MAX (32u << 20)

struct upstream {
	int listen_fd, release_fd;
	int port;
	pthread_t thread;
	const struct page *pages;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool stopping, listening;
	int clients[UPSTREAM_CLIENTS_MAX];
	size_t live, connections, heads, applied, hanging, hanging_most, gone, twice;
	char *order; /* the first byte of each body after a quote, as applied */
	char *last;  /* the last request, whole */
	char url[64];
};

struct upstream_client {
	struct upstream *upstream;
	int fd;
};

static inline const struct page *upstream_page(const struct upstream *u, const char *request)
{
	const char *target = strchr(request, ' ') + 1; /* whatever the method is */

	for (const struct page *page = u->pages; page->path; page++) {
		size_t n = strlen(page->path);

		if (strncmp(target, page->path, n) == 0 && target[n] == ' ')
			return page;
	}
	fprintf(stderr, "no page for: %.60s\n", request);
	abort();
}

static inline void upstream_note(struct upstream *u, size_t *counter, int change)
{
	pthread_mutex_lock(&u->mutex);
	*counter += (size_t)change;
	if (u->hanging > u->hanging_most)
		u->hanging_most = u->hanging;
	pthread_cond_broadcast(&u->changed);
	pthread_mutex_unlock(&u->mutex);
}

/* One request into text, NUL-terminated. False: the client has gone, or is to be cut off. */
static inline bool upstream_read(struct upstream *u, int fd, char *text)
{
	size_t n = 0, want = SIZE_MAX;

	while (n < want) {
		ssize_t got = read(fd, text + n, UPSTREAM_REQUEST_MAX - n);
		char *end, *length;

		if (got <= 0)
			return false;
		n += (size_t)got;
		text[n] = '\0';
		if (want != SIZE_MAX || !(end = strstr(text, "\r\n\r\n")))
			continue;
		upstream_note(u, &u->heads, 1);
		if (upstream_page(u, text)->how == PAGE_CUT)
			return false;
		length = strcasestr(text, "\r\nContent-Length:");
		want = (size_t)(end + 4 - text) + (length && length < end ? strtoul(length + 17, NULL, 10) : 0);
	}
	return true;
}

static inline void upstream_send_bytes(int fd, const char *text, size_t n)
{
	for (size_t done = 0; done < n;) {
		ssize_t sent = send(fd, text + done, n - done, MSG_NOSIGNAL);

		if (sent <= 0)
			return;
		done += (size_t)sent;
	}
}

/* "Content-Length: #" is filled in. */
static inline void upstream_send(int fd, const char *text)
{
	const char *mark = strstr(text, "Content-Length: #\r\n");
	char number[24];

	if (mark) {
		mark += 16;
		upstream_send_bytes(fd, text, (size_t)(mark - text));
		snprintf(number, sizeof number, "%zu", strlen(strstr(mark, "\r\n\r\n") + 4));
		upstream_send_bytes(fd, number, strlen(number));
		text = mark + 1;
	}
	upstream_send_bytes(fd, text, strlen(text));
}

static inline void upstream_applied(struct upstream *u, const char *request)
{
	const char *body = strstr(request, "\r\n\r\n") + 4;

	pthread_mutex_lock(&u->mutex);
	u->order[u->applied % 1024] = body[0] == '"' ? body[1] : ' ';
	free(u->last);
	u->last = strdup(request);
	u->applied++;
	pthread_cond_broadcast(&u->changed);
	pthread_mutex_unlock(&u->mutex);
}

static inline bool upstream_hang(struct upstream *u, int fd)
{
	struct pollfd fds[] = {{.fd = fd, .events = POLLRDHUP}, {.fd = u->release_fd, .events = POLLIN}};

	upstream_note(u, &u->hanging, 1);
	while (poll(fds, 2, -1) < 0)
		;
	upstream_note(u, &u->hanging, -1);
	if (fds[0].revents)
		upstream_note(u, &u->gone, 1);
	return fds[0].revents == 0;
}

/* False: the connection is over. */
static inline bool upstream_serve(struct upstream *u, int fd, const struct page *page)
{
	switch (page->how) {
	case PAGE_HANG:
		if (!upstream_hang(u, fd))
			return false;
		/* fall through */
	case PAGE_REPLY:
		upstream_send(fd, page->reply);
		return true;
	case PAGE_TWICE:
		upstream_send(fd, page->reply);
		if (!upstream_hang(u, fd))
			return false;
		upstream_send(fd, page->reply);
		upstream_note(u, &u->twice, 1);
		return true;
	case PAGE_REPLY_CLOSE:
		upstream_send(fd, page->reply);
		return false;
	case PAGE_RESET:
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1}, sizeof(struct linger));
		return false;
	case PAGE_REPLY_DIE:
		upstream_send(fd, page->reply);
		/* fall through */
	case PAGE_DIE:
		/* The kernel stops listening at once, and the thread that accepts closes the socket. */
		shutdown(u->listen_fd, SHUT_RDWR);
		pthread_mutex_lock(&u->mutex);
		while (u->listening)
			pthread_cond_wait(&u->changed, &u->mutex);
		pthread_mutex_unlock(&u->mutex);
		return false;
	default:
		return false;
	}
}

static inline void *upstream_talk(void *context)
{
	struct upstream_client client = *(struct upstream_client *)context;
	struct upstream *u = client.upstream;
	char *text = malloc(UPSTREAM_REQUEST_MAX + 1);

	free(context);
	while (upstream_read(u, client.fd, text)) {
		const struct page *page = upstream_page(u, text);

		upstream_applied(u, text);
		if (!upstream_serve(u, client.fd, page))
			break;
	}
	free(text);
	pthread_mutex_lock(&u->mutex);
	for (size_t i = 0; i < UPSTREAM_CLIENTS_MAX; i++)
		if (u->clients[i] == client.fd)
			u->clients[i] = -1;
	close(client.fd);
	u->live--;
	pthread_cond_broadcast(&u->changed);
	pthread_mutex_unlock(&u->mutex);
	return NULL;
}

static inline void upstream_accept(struct upstream *u, int fd)
{
	struct upstream_client *client = malloc(sizeof *client);
	pthread_attr_t attr;
	pthread_t thread;

	/* What is sent is there, not held back for an acknowledgement. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	*client = (struct upstream_client){u, fd};
	pthread_mutex_lock(&u->mutex);
	u->connections++;
	u->live++;
	for (size_t i = 0; i < UPSTREAM_CLIENTS_MAX; i++)
		if (u->clients[i] < 0) {
			u->clients[i] = fd;
			break;
		}
	pthread_mutex_unlock(&u->mutex);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	assert_int_equal(pthread_create(&thread, &attr, upstream_talk, client), 0);
	pthread_attr_destroy(&attr);
}

static inline void *upstream_run(void *context)
{
	struct upstream *u = context;
	int fd;

	while ((fd = accept4(u->listen_fd, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		upstream_accept(u, fd);
	pthread_mutex_lock(&u->mutex);
	close(u->listen_fd);
	u->listening = false;
	pthread_cond_broadcast(&u->changed);
	pthread_mutex_unlock(&u->mutex);
	return NULL;
}

/* A port on loopback at which nobody listens, as long as the socket is open: it is no other program's meanwhile. */
static inline int upstream_bind(int *ret_port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&address, n), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &n), 0);
	*ret_port = ntohs(address.sin_port);
	return fd;
}

/* A listening socket on loopback, and its port. */
static inline int upstream_listen(int backlog, int *ret_port)
{
	int fd = upstream_bind(ret_port);

	assert_int_equal(listen(fd, backlog), 0);
	return fd;
}

static inline void upstream_open(struct upstream *u, const struct page *pages)
{
	pthread_condattr_t attr;

	*u = (struct upstream){.pages = pages, .listening = true};
	u->order = calloc(1, 1025);
	u->last = strdup("");
	u->release_fd = eventfd(0, EFD_CLOEXEC);
	for (size_t i = 0; i < UPSTREAM_CLIENTS_MAX; i++)
		u->clients[i] = -1;
	pthread_mutex_init(&u->mutex, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&u->changed, &attr);
	pthread_condattr_destroy(&attr);
	u->listen_fd = upstream_listen(512, &u->port);
	snprintf(u->url, sizeof u->url, "http://127.0.0.1:%d", u->port);
	assert_int_equal(pthread_create(&u->thread, NULL, upstream_run, u), 0);
}

static inline void upstream_release(struct upstream *u)
{
	assert_int_equal(eventfd_write(u->release_fd, 1), 0);
}

static inline void upstream_close(struct upstream *u)
{
	shutdown(u->listen_fd, SHUT_RDWR);
	pthread_join(u->thread, NULL);
	pthread_mutex_lock(&u->mutex);
	for (size_t i = 0; i < UPSTREAM_CLIENTS_MAX; i++)
		if (u->clients[i] >= 0)
			shutdown(u->clients[i], SHUT_RDWR);
	while (u->live)
		pthread_cond_wait(&u->changed, &u->mutex);
	pthread_mutex_unlock(&u->mutex);
	pthread_cond_destroy(&u->changed);
	pthread_mutex_destroy(&u->mutex);
	close(u->release_fd);
	free(u->order);
	free(u->last);
}

static inline size_t upstream_read_count(struct upstream *u, const size_t *counter)
{
	size_t n;

	pthread_mutex_lock(&u->mutex);
	n = *counter;
	pthread_mutex_unlock(&u->mutex);
	return n;
}

static inline void upstream_wait_count(struct upstream *u, const size_t *counter, size_t n)
{
	struct timespec deadline = desk_deadline();
	bool reached;

	pthread_mutex_lock(&u->mutex);
	while (!(reached = *counter >= n))
		if (pthread_cond_timedwait(&u->changed, &u->mutex, &deadline))
			break;
	pthread_mutex_unlock(&u->mutex);
	assert_true(reached);
}

#define upstream_count(u, what) upstream_read_count((u), &(u)->what)
#define upstream_wait(u, what, n) upstream_wait_count((u), &(u)->what, (n))

/* An http action for a page. The url lives in the caller's buffer. */
static inline struct action upstream_action(const struct upstream *u, const char *path, char url[128])
{
	snprintf(url, 128, "%s%s", u->url, path);
	return (struct action){.name = path,
			       .workflow = "w",
			       .kind = ACTION_HTTP,
			       .effect = EFFECT_CLAIMED,
			       .timeout_ms = 30000,
			       .url = url};
}

#endif
