/*
 * TLS on a connection to Redis, with OpenSSL; the socket is ours, does not block, and is written without signals. The server's
 * certificate has to be for the host that was asked for, and trusted; nothing is said to it before that is known.
 *
 *   redis_tls_new ── once ──▶ redis_tls_open ── for each connection ──▶ redis_tls_greet … ──▶ redis_tls_send, redis_tls_receive
 *
 * For one thread at a time, as the connection is.
 */
#ifndef HX_GATE_REDIS_TLS_H
#define HX_GATE_REDIS_TLS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct redis_tls;      /* whom to trust, and who we are */
struct redis_tls_link; /* one connection */

/*
 * PEM files: `ca` has the certificates that are trusted instead of the system's, `cert` and `key` are ours, for servers that want to
 * know; empty: none. HX_CONFIG_ERROR names the one that cannot be used.
 */
enum hx_code redis_tls_new(const char *ca, const char *cert, const char *key, struct redis_tls **ret_tls,
			   struct hx_error *err) HX_MUST_CHECK;
/* Takes NULL. */
void redis_tls_free(struct redis_tls *tls);

/* NULL: no memory. `host` is a name or an address. */
struct redis_tls_link *redis_tls_open(struct redis_tls *tls, int fd, const char *host);
/* Before the socket is closed. Takes NULL. */
void redis_tls_close(struct redis_tls_link *link);
/*
 * Goes on with the handshake. HX_OK: done. HX_BUSY: again when the socket is ready, for what redis_tls_events() says. HX_CONFIG_ERROR:
 * the certificate is not good. HX_STORE_UNAVAILABLE: it has failed.
 */
enum hx_code redis_tls_greet(struct redis_tls_link *link, struct hx_error *err) HX_MUST_CHECK;
/* What the one that was last told to wait waits for: POLLIN, POLLOUT. */
short redis_tls_events(const struct redis_tls_link *link);
/* As send() and recv(): -1 and EAGAIN has to wait, another errno is the end, 0 of receive an announced one. */
ssize_t redis_tls_send(struct redis_tls_link *link, const char *bytes, size_t n);
ssize_t redis_tls_receive(struct redis_tls_link *link, char *buffer, size_t n);

#endif
