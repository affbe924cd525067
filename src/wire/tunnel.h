/*
 * Tunnels: what becomes of a request with Upgrade once the service has answered 101. From then on it is bytes, both ways, and the gate
 * has no more to do with what they say.
 *
 *      client ◀──────── out ──┐  ┌── recv ──────── service
 *             ──── recv ──────┼──┼── out ────────▶          (out: what the other side has not taken yet, TUNNEL_BYTES at most;
 *                             └──┘                           while there is any, nothing more is read)
 *
 * One side's end is passed on as its end, when all that it sent was taken; when both have ended, or one breaks, it is over. So it is
 * when no byte has come for idle_ms; and while its server stops, for TUNNEL_QUIET_MS. What is left then at the end of the drain
 * is cut off.
 *
 * A tunnel lives in its loop's thread, and is a guest of the loop.
 */
#pragma once

#include "base/strbuf.h"
#include "base/tls.h"
#include "wire/loop.h"

#define TUNNEL_BYTES 65536
#define TUNNEL_QUIET_MS 1000

/* Those of one loop. */
struct tunnels {
	struct loop *loop;
	struct deadline_queue looks; /* every so often: is anything still going on? */
	struct tunnel *first;
	_Atomic int64_t *open; /* of all loops; one less with each that ends */
};

/* Both stay where they are. */
void tunnels_init(struct tunnels *tunnels, struct loop *loop, _Atomic int64_t *open);
/* The loop has ended: cuts off what is left. */
void tunnels_free(struct tunnels *tunnels);

/*
 * Takes both sockets over, which do not block, the service's TLS (NULL: none), and what each is yet to be sent; idle_ms holds for its
 * whole life. Without memory all are closed.
 */
void tunnel_open(struct tunnels *tunnels, int client_fd, struct strbuf *to_client, int service_fd, struct tls_link *tls,
		 struct strbuf *to_service, int64_t idle_ms);
