/* See upstream.h: where the service is, and a pool for each loop. The connections are upstream_connection.c's. */
#include "wire/upstream.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/excerpt.h"
#include "base/thread.h"
#include "wire/charset.h"
#include "wire/target.h"
#include "wire/upstream_pool.h"

/* ---- where it is ---- */

/* "host", "host:port" or "[v6]:port", which host_valid() has seen. */
static void split_authority(struct slice authority, const char *usual_port, char ret_host[256], char ret_port[6])
{
	const char *colon = memrchr(authority.p, ':', authority.n);
	bool has_port = colon && !memchr(colon, ']', authority.n - (size_t)(colon - authority.p));
	struct slice host = slice_of(authority.p, has_port ? (size_t)(colon - authority.p) : authority.n);
	struct slice port = has_port ? slice_of(colon + 1, authority.n - host.n - 1) : slice_str(usual_port);

	if (host.p[0] == '[')
		host = slice_of(host.p + 1, host.n - 2);
	snprintf(ret_host, 256, "%.*s", SLICE_ARGS(host));
	snprintf(ret_port, 6, "%.*s", SLICE_ARGS(port));
}

static enum hx_code upstream_resolve(struct upstream *upstream, struct hx_error *err)
{
	int error = resolve_now(upstream->host, upstream->port, &upstream->addresses);

	if (!error)
		return HX_OK;
	return error_set(err, HX_CONFIG_ERROR, "the upstream's host \"%s\" cannot be resolved: %s",
			 excerpt_of(slice_str(upstream->host)).text, gai_strerror(error));
}

static enum hx_code parse_url(const char *url, struct upstream *upstream, bool *ret_secure, struct hx_error *err)
{
	struct slice rest = slice_str(url);
	bool secure = slice_starts_nocase(rest, "https://");
	size_t scheme = secure ? strlen("https://") : strlen("http://");

	if (rest.n <= scheme || (!secure && !slice_starts_nocase(rest, "http://")))
		return error_set(err, HX_CONFIG_ERROR, "the upstream is an address like http://127.0.0.1:3000");
	rest = slice_from(rest, scheme);
	if (rest.p[rest.n - 1] == '/')
		rest.n--;
	if (rest.n >= sizeof upstream->authority || !host_valid(rest))
		return error_set(
			err, HX_CONFIG_ERROR,
			"the upstream is http:// or https://, a host and perhaps a port, with nothing after it: not \"%s\"",
			excerpt_of(slice_str(url)).text);
	snprintf(upstream->authority, sizeof upstream->authority, "%.*s", SLICE_ARGS(rest));
	split_authority(rest, secure ? "443" : "80", upstream->host, upstream->port);
	*ret_secure = secure;
	return HX_OK;
}

/* ---- life ---- */

static struct upstream *upstream_make(const struct upstream_ways *ways)
{
	struct upstream *upstream = calloc(1, sizeof *upstream);

	if (!upstream)
		return NULL;
	upstream->ways = *ways;
	pthread_mutex_init(&upstream->mutex, NULL);
	return upstream;
}

enum hx_code upstream_new(const char *url, struct clock *clock, struct upstream **ret_upstream, struct hx_error *err)
{
	static const char ca[] = "HAPAX_GATE_CA_FILE";
	struct tls_options tls = {.name = ca, .ca_file = getenv(ca), .is_http = true};
	struct upstream *upstream = upstream_make(&(struct upstream_ways){.clock = clock});
	enum hx_code code;
	bool secure;

	if (!upstream)
		return error_set(err, HX_NO_MEMORY, "no memory for the upstream");
	code = parse_url(url, upstream, &secure, err);
	if (code == HX_OK && secure)
		code = tls_client_new(&tls, &upstream->own_tls, err);
	upstream->ways.tls = upstream->own_tls;
	if (code == HX_OK)
		code = upstream_resolve(upstream, err);
	if (code != HX_OK) {
		upstream_free(upstream);
		return code;
	}
	*ret_upstream = upstream;
	return HX_OK;
}

enum hx_code upstream_new_by(const char *url, const struct upstream_ways *ways, struct upstream **ret_upstream,
			     struct hx_error *err)
{
	struct upstream *upstream = upstream_make(ways);
	enum hx_code code;
	bool secure;

	if (!upstream)
		return error_set(err, HX_NO_MEMORY, "no memory for a service");
	code = parse_url(url, upstream, &secure, err);
	if (code != HX_OK) {
		upstream_free(upstream);
		return code;
	}
	ASSERT(!secure == !ways->tls);
	if (!resolve_without_asking(upstream->host, upstream->port, &upstream->addresses))
		upstream->addresses.n = 0;
	*ret_upstream = upstream;
	return HX_OK;
}

void upstream_free(struct upstream *upstream)
{
	if (!upstream)
		return;
	while (upstream->pools) {
		struct upstream_pool *pool = upstream->pools;

		upstream->pools = pool->next;
		upstream_connections_free(pool);
		if (pool->owns_hub)
			upstream_hub_free(pool->hub);
		free(pool);
	}
	tls_client_free(upstream->own_tls);
	pthread_mutex_destroy(&upstream->mutex);
	free(upstream);
}

struct slice upstream_authority(const struct upstream *upstream)
{
	return slice_str(upstream->authority);
}

void upstream_read_stats(const struct upstream *upstream, struct upstream_stats *ret_stats)
{
	*ret_stats = (struct upstream_stats){
		.connections_open = upstream->stats.open,
		.connections_total = upstream->stats.total,
		.reused = upstream->stats.reused,
		.repeated = upstream->stats.repeated,
	};
}

static struct upstream_hub *make_hub(struct loop *loop, size_t idle_max)
{
	struct upstream_hub *hub = calloc(1, sizeof *hub);

	if (hub) {
		hub->loop = loop;
		hub->idle_max = idle_max;
	}
	return hub;
}

struct upstream_hub *upstream_hub_new(struct loop *loop, int64_t idle_ms, size_t idle_max)
{
	struct upstream_hub *hub = make_hub(loop, idle_max);

	if (hub)
		upstream_hub_init(hub, idle_ms);
	return hub;
}

void upstream_hub_free(struct upstream_hub *hub)
{
	free(hub);
}

struct upstream_pool *upstream_join_hub(struct upstream *upstream, struct upstream_hub *hub)
{
	struct upstream_pool *pool = calloc(1, sizeof *pool);

	if (!pool)
		return NULL;
	pool->upstream = upstream;
	pool->hub = hub;
	pool->addresses = upstream->addresses;
	pool->believed_until.ns = INT64_MAX;
	LOCKED(&upstream->mutex);
	pool->next = upstream->pools;
	upstream->pools = pool;
	return pool;
}

/* The loop hears of the queues last: it never forgets them. */
struct upstream_pool *upstream_join(struct upstream *upstream, struct loop *loop)
{
	struct upstream_hub *hub = make_hub(loop, UPSTREAM_IDLE_MAX);
	struct upstream_pool *pool = hub ? upstream_join_hub(upstream, hub) : NULL;

	if (!pool) {
		upstream_hub_free(hub);
		return NULL;
	}
	pool->owns_hub = true;
	upstream_hub_init(hub, UPSTREAM_IDLE_MS);
	return pool;
}

bool upstream_pool_is_unused(const struct upstream_pool *pool)
{
	return !pool->connections && !pool->lookup;
}
