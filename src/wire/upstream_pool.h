/*
 * The inside of an upstream: for upstream.c (the url, the addresses, the pools) and upstream_connection.c (the sockets,
 * with their states drawn there). Everybody else uses upstream.h.
 */
#ifndef HX_WIRE_UPSTREAM_POOL_H
#define HX_WIRE_UPSTREAM_POOL_H

#include <pthread.h>

#include "wire/address.h"
#include "wire/body.h"
#include "wire/upstream.h"
#include "wire/upstream_tls.h"

#define UPSTREAM_READ_BYTES 65536 /* at once from a connection */

struct upstream {
	struct clock *clock;
	char authority[300];
	struct tls_client *tls; /* NULL: plain http */
	struct address addresses[UPSTREAM_ADDRESSES_MAX];
	size_t addresses_n;
	pthread_mutex_t mutex; /* of the list */
	struct upstream_pool *pools;
	struct {
		_Atomic uint64_t open, total, reused, repeated;
	} stats;
};

struct upstream_pool {
	struct upstream *upstream;
	struct upstream_pool *next;
	struct loop *loop;
	struct deadline_queue idle; /* connections, the longest idle first */
	struct deadline_queue busy; /* calls, by the end of their time */
	size_t idle_n;
	struct upstream_connection *connections; /* all of them */
	char input[UPSTREAM_READ_BYTES];         /* where connections read to that have nothing pending */
};

/* The queues of a pool. */
void upstream_connections_init(struct upstream_pool *pool);
/* The loop has ended. Calls that are still at work are forgotten. */
void upstream_connections_free(struct upstream_pool *pool);

#endif
