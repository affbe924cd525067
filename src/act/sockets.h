/*
 * The open sockets of the http kind, known by what libcurl opens and closes through us.
 *
 * They are kept for one question: is an idle connection clean? This libcurl reuses one on which bytes are waiting,
 * and takes them for the reply to the next request. A proxy's "408, you were idle", or a second reply of a confused
 * service, would then decide whether an effect has happened. libcurl does not tell which socket a request is about to
 * use, but it tells the local port.
 *
 * Used by http.c's thread alone.
 */
#ifndef HX_ACT_SOCKETS_H
#define HX_ACT_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>

/* What does not fit is not known, and what is not known is not clean: it costs a connection, nothing else. */
#define SOCKETS_MAX 2048

struct sockets {
	size_t n;
	struct {
		int fd;
		int local_port; /* 0: not asked for yet. It is asked once: one question for each socket and call is a square */
	} at[SOCKETS_MAX];
};

void sockets_opened(struct sockets *sockets, int fd);
/* Closes it. */
void sockets_close(struct sockets *sockets, int fd);
/* Every socket with that local port is open and has nothing to read; there is one at least. */
bool sockets_are_clean(struct sockets *sockets, int local_port);

#endif
