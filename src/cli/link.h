/*
 * The command line's connection to a server: plain, or with TLS (base/tls.h), until a deadline. Trusted are the
 * certificates of the system, and those in the file that HAPAX_CA_FILE names.
 */
#pragma once

#include "base/clock.h"
#include "base/tls.h"

struct link_target {
	const char *url;  /* for messages */
	const char *host; /* without the brackets of an IPv6 address */
	const char *port;
	const char *authority; /* host[:port] as written: the certificate must be for it */
	const char *program;   /* what should be running there */
	bool secure;
};

struct link {
	int fd;
	struct tls_client *client; /* NULL: it is plain */
	struct tls_link *tls;
};

/* Closed by link_close(), whatever this says. HX_SERVER_UNAVAILABLE: nothing was sent. */
enum hx_code link_open(struct link *link, const struct link_target *to, struct mono_time deadline,
		       struct hx_error *err) HX_MUST_CHECK;
/* Takes one that was never opened, if it is {.fd = -1}. */
void link_close(struct link *link);
/* False: it did not all leave. A server that answers before it has read everything is listened to at once. */
bool link_send(struct link *link, struct slice bytes, struct mono_time deadline);
/* As recv(); -1 and ETIMEDOUT at the deadline. */
ssize_t link_receive(struct link *link, char *buffer, size_t n, struct mono_time deadline);
