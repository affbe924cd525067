/*
 * TLS on the gate's connections to an https upstream, and on those of the command line to its server. libcurl greets the upstream (the handshake, SNI, the check of its
 * certificate) and encrypts; it is kept from everything else. The socket is made and connected by us, requests are written
 * and answers read by our own code, and what goes through here are bytes. So an https upstream gets exactly what a plain
 * one gets, its answers are read as strictly, and none of libcurl's own ideas (sending again when a connection that was
 * idle dies, redirects, 100-continue, decompression) can come in: it has no request to have ideas about.
 *
 *   connected ── tls_link_new ─▶ tls_link_greet ─▶ MORE: again when the socket is ready, for whatever
 *                                      │  └──────▶ FAILED: nothing has been sent but a greeting
 *                                      └─▶ DONE ─▶ tls_link_send, tls_link_receive
 *
 * Trusted are the certificates of the system and those in the file that a variable of the environment names.
 *
 * A tls_client may be used by all threads; a link belongs to the thread of its connection.
 */
#ifndef HX_WIRE_UPSTREAM_TLS_H
#define HX_WIRE_UPSTREAM_TLS_H

#include <sys/types.h>

#include "base/error.h"
#include "base/slice.h"
#include "wire/address.h"

struct tls_client; /* whom to expect and whom to trust: one for an upstream */
struct tls_link;   /* one connection */

/* `authority` is host[:port]; the certificate must be for that host. HX_CONFIG_ERROR: the file that ca_variable names cannot be read. */
enum hx_code tls_client_new(const char *authority, const char *ca_variable, struct tls_client **ret_client,
			    struct hx_error *err) HX_MUST_CHECK;
/* All links are freed. Takes NULL. */
void tls_client_free(struct tls_client *client);

/* On this socket, which is connected to that address, does not block and stays the caller's. NULL: no memory. */
struct tls_link *tls_link_new(const struct tls_client *client, const struct address *to, int fd);
/* Says goodbye if it can be said at once. Before the socket is closed. Takes NULL. */
void tls_link_free(struct tls_link *link);

enum tls_verdict { TLS_MORE, TLS_DONE, TLS_FAILED };

/* Goes on with the handshake. */
enum tls_verdict tls_link_greet(struct tls_link *link) HX_MUST_CHECK;
/* Why it has failed, in constant words. */
const char *tls_link_reason(const struct tls_link *link);

/*
 * As send() and recv(): -1 and errno EAGAIN when it has to wait for the socket (to become readable or writable, each may
 * wait for either), -1 and ECONNRESET when the connection cannot be used any more. What had to wait must be sent again
 * from the same place. 0 of receive is an end that the upstream has announced; one without announcement is ECONNRESET,
 * since anybody on the way could have made it.
 */
ssize_t tls_link_send(struct tls_link *link, struct slice bytes);
ssize_t tls_link_receive(struct tls_link *link, char *buffer, size_t n);

#endif
