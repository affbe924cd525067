/*
 * The gate's own address, apart from the one that is proxied: for probes, metrics, and people.
 *
 *   GET /healthz                  it runs
 *   GET /readyz                   it takes requests, and the store answers; 503 says why not
 *   GET /metrics                  counters
 *   GET /gate/records?key=K       the records of the key that a client sent, whatever their scope
 *   GET /gate/records             those whose lease is over and whose outcome nobody knows; ?held=true: of these the ones
 *                                 that wait for a person; ?all=true: all there are. In pages, by ?cursor=
 *   POST /gate/records/{record}/resolve {"outcome": "done" | "not_done"}
 *                                 ends one of those: a person has found out. Done: retries get 409 RESPONSE_NOT_STORED,
 *                                 not done: the next one is executed. 409: its lease lasts, it has been answered, or
 *                                 somebody has used the key since
 *   DELETE /gate/records/{record} forgets one, as GET showed it: a person has decided. 409: its lease lasts, or somebody
 *                                 has used the key since
 *
 * Who can reach it can make the gate forget. It listens on loopback alone; with a key, all but the two probes wants that
 * key, and without one only programs of this machine are served, no pages of elsewhere in its browsers (local.h).
 */
#pragma once

#include <stdatomic.h>

#include "base/hash.h"
#include "gate/store.h"
#include "proxy/proxy.h"
#include "serve/router.h"
#include "task/sentinel.h"

struct gate_admin {
	struct gate_store *store;
	struct sentinel *sentinel; /* who knows whether the store is there; NULL: the store itself is asked */
	struct proxy *proxy;
	struct log *log;                    /* may be NULL: records that are forgotten are logged */
	_Atomic bool ready;                 /* what /readyz says */
	_Atomic(struct http_server *) door; /* where clients come in, for its numbers; NULL: not yet */
	bool has_key;
	uint8_t key_digest[SHA256_BYTES];
};

/* From now on it wants this key; NULL: none. Before the router is used. */
void gate_admin_set_key(struct gate_admin *admin, const char *key);

/* The admin must outlive the router, which is the handler of a server of its own: router_handle. NULL without memory. */
struct router *gate_admin_router_new(struct gate_admin *admin);
