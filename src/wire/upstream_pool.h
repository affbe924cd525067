/*
 * The inside of an upstream: for upstream.c (the url, the addresses, the pools) and upstream_connection.c (the sockets,
 * with their states drawn there). Everybody else uses upstream.h.
 */
#pragma once

#include <pthread.h>

#include "base/tls.h"
#include "wire/address.h"
#include "wire/body.h"
#include "wire/resolver.h"
#include "wire/upstream.h"

#define UPSTREAM_READ_BYTES 65536 /* at once from a connection */

struct upstream {
	struct upstream_ways ways; /* its tls is NULL: plain http */
	char authority[300], host[256], port[6];
	struct tls_client *own_tls;
	struct addresses addresses; /* of the start; none: it is resolved when it is called */
	pthread_mutex_t mutex;      /* of the list */
	struct upstream_pool *pools;
	struct {
		_Atomic uint64_t open, total, reused, repeated;
	} stats;
};

struct upstream_hub {
	struct loop *loop;
	struct deadline_queue idle;   /* connections, the longest idle first */
	struct deadline_queue busy;   /* calls, by the end of their time */
	struct deadline_queue trying; /* connections that have another address to try, by the end of their share */
	size_t idle_n, idle_max;
	char input[UPSTREAM_READ_BYTES]; /* where connections read to that have nothing pending */
};

struct upstream_pool {
	struct upstream *upstream;
	struct upstream_pool *next;
	struct upstream_hub *hub;
	bool owns_hub;
	struct addresses addresses;
	struct mono_time believed_until;         /* the addresses */
	struct address worked;                   /* the one that was connected to last; zeroed: none was */
	struct lookup *lookup;                   /* under way */
	struct upstream_connection *connections; /* all of them */
	struct upstream_connection *idle;        /* the one that was used last, and so on */
};

/* The queues of a hub. */
void upstream_hub_init(struct upstream_hub *hub, int64_t idle_ms);
/* The loop has ended. Calls that are still at work are forgotten. */
void upstream_connections_free(struct upstream_pool *pool);
