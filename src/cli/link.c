/* See link.h. */
#include "cli/link.h"

#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int left_ms(struct mono_time deadline)
{
	int64_t left = (deadline.ns - clock_mono(clock_system()).ns) / 1000000;

	return left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

/* What happened of `events` before the deadline; 0: nothing, and errno is ETIMEDOUT. */
static short wait_for(int fd, short events, struct mono_time deadline)
{
	struct pollfd at = {.fd = fd, .events = events};
	int n;

	do
		n = poll(&at, 1, left_ms(deadline));
	while (n < 0 && errno == EINTR);
	if (n == 0)
		errno = ETIMEDOUT;
	return n > 0 ? at.revents : 0;
}

static int socket_problem(int fd)
{
	int problem = 0;
	socklen_t n = sizeof problem;

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &n) ? errno : problem;
}

/* The socket, or -1 with errno. */
static int connect_one(const struct addrinfo *at, struct mono_time deadline)
{
	int fd = socket(at->ai_family, at->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, at->ai_protocol);
	int problem;

	if (fd < 0)
		return -1;
	problem = connect(fd, at->ai_addr, at->ai_addrlen) ? errno : 0;
	if (problem == EINPROGRESS)
		problem = wait_for(fd, POLLOUT, deadline) ? socket_problem(fd) : errno;
	if (!problem)
		return fd;
	close(fd);
	errno = problem;
	return -1;
}

/* The socket, or -1 with errno. */
static int connect_any(const struct addrinfo *all, struct mono_time deadline)
{
	int fd = -1;

	for (const struct addrinfo *at = all; at && fd < 0; at = at->ai_next)
		fd = connect_one(at, deadline);
	return fd;
}

/* NULL: it is done. */
static const char *greet(struct link *link, struct mono_time deadline)
{
	enum tls_verdict verdict;

	while ((verdict = tls_link_greet(link->tls)) == TLS_MORE)
		if (!wait_for(link->fd, POLLIN, deadline))
			return "it did not answer in time";
	return verdict == TLS_DONE ? NULL : tls_link_reason(link->tls);
}

static enum hx_code secure(struct link *link, const struct link_target *to, struct mono_time deadline,
			   struct hx_error *err)
{
	struct tls_options options = {.name = "HAPAX_CA_FILE", .ca_file = getenv("HAPAX_CA_FILE"), .is_http = true};
	enum hx_code code = tls_client_new(&options, &link->client, err);
	const char *why;

	if (code)
		return code;
	link->tls = tls_link_new(link->client, to->host, link->fd);
	why = link->tls ? greet(link, deadline) : "there is no memory";
	return why ? error_set(err, HX_SERVER_UNAVAILABLE, "no server at %s: TLS: %s", to->url, why) : HX_OK;
}

enum hx_code link_open(struct link *link, const struct link_target *to, struct mono_time deadline, struct hx_error *err)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *all = NULL;
	int code = getaddrinfo(to->host, to->port, &hints, &all);

	*link = (struct link){.fd = -1};
	if (code)
		return error_set(err, HX_SERVER_UNAVAILABLE, "no server at %s: %s", to->url, gai_strerror(code));
	link->fd = connect_any(all, deadline);
	freeaddrinfo(all);
	if (link->fd < 0)
		return error_set(err, HX_SERVER_UNAVAILABLE, "no server at %s (%s): is `%s` running?", to->url,
				 strerror(errno), to->program);
	return to->secure ? secure(link, to, deadline, err) : HX_OK;
}

void link_close(struct link *link)
{
	tls_link_free(link->tls);
	tls_client_free(link->client);
	if (link->fd >= 0)
		close(link->fd);
	*link = (struct link){.fd = -1};
}

/* With TLS there are bytes to read that are no answer, so only what is plain is looked at for one. */
bool link_send(struct link *link, struct slice bytes, struct mono_time deadline)
{
	while (bytes.n > 0) {
		short events = wait_for(link->fd, link->tls ? POLLOUT : POLLIN | POLLOUT, deadline);
		ssize_t n;

		if (!events || (events & POLLIN))
			return false;
		n = link->tls ? tls_link_send(link->tls, bytes) : send(link->fd, bytes.p, bytes.n, MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return false;
		if (n > 0)
			bytes = slice_of(bytes.p + n, bytes.n - (size_t)n);
	}
	return true;
}

ssize_t link_receive(struct link *link, char *buffer, size_t n, struct mono_time deadline)
{
	for (;;) {
		ssize_t got = link->tls ? tls_link_receive(link->tls, buffer, n) : recv(link->fd, buffer, n, 0);

		if (got >= 0 || (errno != EAGAIN && errno != EINTR))
			return got;
		if (!wait_for(link->fd, POLLIN, deadline))
			return -1;
	}
}
