/*
 * The services that the http actions of one loop call, by scheme, host and port: each is an upstream with its connections, made with the
 * first call and kept, so that its name is not resolved for every call. Of those that nobody uses, ORIGINS_MAX are kept at most.
 *
 * Used by the thread of its loop alone.
 */
#pragma once

#include "base/slice.h"
#include "wire/upstream.h"

#define ORIGINS_MAX 256
#define ORIGINS_BUCKETS 256
#define ORIGIN_IDLE_MS 3000 /* Node.js closes after 5; a request that crosses the close is unknown */

struct origin;

struct origins {
	struct upstream_hub *hub;
	struct upstream_ways ways;
	size_t n;
	struct origin *buckets[ORIGINS_BUCKETS];
};

/* The ways are copied; their tls is set when it is needed first. False: no memory. */
bool origins_init(struct origins *origins, struct loop *loop, const struct upstream_ways *ways) HX_MUST_CHECK;
/* The loop has ended and no call is at work. Safe on a zeroed struct. */
void origins_release(struct origins *origins);
/* Lives until the next call of this. `tls` is for https. HX_CONFIG_ERROR, HX_NO_MEMORY. */
enum hx_code origins_find(struct origins *origins, struct slice url, struct tls_client *tls,
			  struct upstream_pool **ret_pool, struct hx_error *err) HX_MUST_CHECK;
