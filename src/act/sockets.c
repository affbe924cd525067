/* See sockets.h. */
#include "act/sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

void sockets_opened(struct sockets *sockets, int fd)
{
	if (fd < 0 || sockets->n == SOCKETS_MAX)
		return;
	sockets->at[sockets->n].fd = fd;
	sockets->at[sockets->n++].local_port = 0;
}

void sockets_close(struct sockets *sockets, int fd)
{
	for (size_t i = 0; i < sockets->n; i++)
		if (sockets->at[i].fd == fd) {
			sockets->at[i] = sockets->at[--sockets->n];
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
		return 0;
	return ntohs(name.any.sa_family == AF_INET6 ? name.v6.sin6_port : name.v4.sin_port);
}

static bool has_nothing_to_read(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

/* Connections to different addresses may share a local port: then all of them have to be clean. */
bool sockets_are_clean(struct sockets *sockets, int local_port)
{
	bool found = false;

	for (size_t i = 0; i < sockets->n; i++) {
		if (sockets->at[i].local_port == 0) /* as long as it is not connected it has none */
			sockets->at[i].local_port = local_port_of(sockets->at[i].fd);
		if (sockets->at[i].local_port != local_port)
			continue;
		if (!has_nothing_to_read(sockets->at[i].fd))
			return false;
		found = true;
	}
	return found;
}
