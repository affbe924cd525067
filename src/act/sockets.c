/* See sockets.h. */
#include "act/sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

void sockets_opened(struct sockets *sockets, int fd)
{
	if (fd >= 0 && sockets->n < SOCKETS_MAX)
		sockets->fds[sockets->n++] = fd;
}

void sockets_close(struct sockets *sockets, int fd)
{
	for (size_t i = 0; i < sockets->n; i++)
		if (sockets->fds[i] == fd) {
			sockets->fds[i] = sockets->fds[--sockets->n];
			break;
		}
	(void)close(fd); /* what was not delivered was never promised */
}

static int local_port_of(int fd)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} name = {0};
	socklen_t n = sizeof name;

	if (getsockname(fd, &name.any, &n) != 0)
		return -1;
	return ntohs(name.any.sa_family == AF_INET6 ? name.v6.sin6_port : name.v4.sin_port);
}

static bool has_nothing_to_read(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

/* Connections to different addresses may share a local port: then all of them have to be clean. */
bool sockets_are_clean(const struct sockets *sockets, int local_port)
{
	bool found = false;

	for (size_t i = 0; i < sockets->n; i++) {
		if (local_port_of(sockets->fds[i]) != local_port)
			continue;
		if (!has_nothing_to_read(sockets->fds[i]))
			return false;
		found = true;
	}
	return found;
}
