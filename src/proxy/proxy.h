/*
 * The gate as a reverse proxy: a handler for the server that forwards each request to one upstream, and guards those
 * that the configuration wants guarded.
 *
 *   client ──▶ http_server ──▶ proxy_handle ─┬─ not guarded ──────────────────────────▶ upstream ──▶ answer, streamed
 *                                            └─ guarded ─▶ guard ◀─▶ store (by tickets)
 *                                                            └─────▶ upstream ─▶ stored ─▶ answer
 *
 * Everything about one request happens in the loop's thread of its exchange; answers of the store come in any thread and
 * are posted there.
 *
 * The order of life, which `hapax gate` and the tests follow:
 *
 *	gate store ─▶ proxy_new ─▶ http_server_new(handle = proxy_handle, data = proxy)
 *	… http_server_stop ─▶ the store has answered all tickets (lanes stopped, gate_store_free) ─▶ proxy_free
 *	  ─▶ http_server_free
 */
#pragma once

#include "base/clock.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "gate/held.h"
#include "gate/policy.h"
#include "gate/store.h"
#include "serve/server.h"

struct proxy;

struct proxy_options {
	const struct gate_config *config; /* at the start; outlives the proxy, as does all that follows */
	const char *upstream;             /* the url; see wire/upstream.h */
	struct gate_store *store;
	const struct gate_held *held; /* for the metrics; NULL: nobody counts what is held */
	struct clock *clock;
	struct log *log; /* may be NULL */
};

/* HX_CONFIG_ERROR: the upstream's url cannot be used. Resolves its name. */
enum hx_code proxy_new(const struct proxy_options *options, struct proxy **ret_proxy,
		       struct hx_error *err) HX_MUST_CHECK;
/* Before the server stops: answers that could not be stored are tried for so long yet, and not while their leases last. */
void proxy_hurry(struct proxy *proxy, int64_t ms);
/* See the order of life above. What was cut off by a stop is let go here: its leases stay. Takes NULL. */
void proxy_free(struct proxy *proxy);

/*
 * From now on requests go by this configuration; those that have been handed over keep the one they had. In any thread. What is settled
 * at the start (upstream, store, name …) stays. release(owner) is called, in any thread, when nobody uses it any more. HX_NO_MEMORY: it
 * is the caller's still.
 */
enum hx_code proxy_set_config(struct proxy *proxy, const struct gate_config *config, void (*release)(void *owner),
			      void *owner, struct hx_error *err) HX_MUST_CHECK;

/*
 * Makes the options those of a server for this proxy, its only one: begin, handle and data, clock and log, and the limits that
 * the server has before it knows the route: body_bytes_max (any route's; its own counts from the head on) and read_ms (the
 * longest of all routes, up to the end of the head). `listen` stays the caller's.
 */
void proxy_fit_server(struct proxy *proxy, struct server_options *options);

/* The longest ttl of all routes: how long a record stays that a person has completed, whose route is not known. */
int64_t proxy_ttl_ms(struct proxy *proxy);

/* For server_options: `handle` and `begin` are these, `data` the proxy. What the head alone decides is answered before the body. */
void proxy_handle(void *proxy, struct http_exchange *exchange);
void proxy_head(void *proxy, struct http_exchange *exchange);

struct proxy_stats {
	uint64_t outcomes[HX_GATE_OUTCOMES];
	uint64_t unknown;   /* executed perhaps: the lease was left to run out */
	uint64_t forwarded; /* not guarded */
	uint64_t refused;   /* answered here: no or a bad key, an unknown method, too large */
	uint64_t damaged;   /* stored answers that were not given again */
	uint64_t storing;   /* answers that went out unstored and are still being tried */
};

void proxy_read_stats(const struct proxy *proxy, struct proxy_stats *ret_stats);
/* In Prometheus' text form. */
void proxy_write_metrics(const struct proxy *proxy, struct strbuf *out);
