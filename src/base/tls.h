/*
 * TLS for a client, with OpenSSL, on a socket that is ours: it does not block, is made, connected and closed by others, and is
 * written without signals. What goes through here are bytes, and nothing is known of what they say.
 *
 *   tls_client_new ── once ──▶ tls_link_new ── for each connection ──▶ tls_link_greet ─▶ MORE: again when the socket is ready
 *                                                                          │  └──────▶ FAILED: nothing was sent but a greeting
 *                                                                          └─▶ DONE ─▶ tls_link_send, tls_link_receive
 *
 * The other side's certificate has to be trusted, and for the host that was asked for. Trusted are the system's certificates, those
 * in a file, or both; the file is read anew when it has changed. While it is away, or half written, what it said last holds.
 *
 * A client may be used by all threads; a link belongs to the thread of its connection.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/slice.h"

struct tls_client; /* whom to trust */
struct tls_link;   /* one connection */

/* Files are PEM; NULL or empty: none. */
struct tls_options {
	const char *name;                 /* of whatever names the files, for the error */
	const char *ca_file;              /* certificates that are trusted besides the system's */
	bool ca_only;                     /* or instead of them */
	const char *cert_file, *key_file; /* ours, for servers that want to know who asks */
	bool is_http;                     /* HTTP/1.1 is what will be spoken */
};

/* HX_CONFIG_ERROR: a file cannot be read; HX_NO_MEMORY. */
enum hx_code tls_client_new(const struct tls_options *options, struct tls_client **ret_client,
			    struct hx_error *err) HX_MUST_CHECK;
/* All links are freed. Takes NULL. */
void tls_client_free(struct tls_client *client);

/* On this socket, which stays the caller's. `host` is a name or an address, without brackets. NULL: no memory. */
struct tls_link *tls_link_new(struct tls_client *client, const char *host, int fd);
/* Says goodbye if it can be said at once. Before the socket is closed. Takes NULL. */
void tls_link_free(struct tls_link *link);

enum tls_verdict { TLS_MORE, TLS_DONE, TLS_FAILED };

/* Goes on with the handshake. */
enum tls_verdict tls_link_greet(struct tls_link *link) HX_MUST_CHECK;
/* Why it has failed, in constant words. */
const char *tls_link_reason(const struct tls_link *link);
/* What is wrong with the other side's certificate, likewise. NULL: nothing, or none was seen. */
const char *tls_link_distrust(const struct tls_link *link);
/* What the one that was last told to wait waits for: POLLIN or POLLOUT. */
short tls_link_events(const struct tls_link *link);

/*
 * As send() and recv(): -1 and errno EAGAIN when it has to wait for the socket (to become readable or writable, each may
 * wait for either), -1 and ECONNRESET when the connection cannot be used any more. 0 of receive is an end that the other side has
 * announced; one without announcement is ECONNRESET, since anybody on the way could have made it.
 */
ssize_t tls_link_send(struct tls_link *link, struct slice bytes);
ssize_t tls_link_receive(struct tls_link *link, char *buffer, size_t n);
/* Bytes that the socket has taken so far. If a send leaves it as it was, nothing has left. */
uint64_t tls_link_written(const struct tls_link *link);
