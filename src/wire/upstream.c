/* See upstream.h: where the service is, and a pool for each loop. The connections are upstream_connection.c's. */
#include "wire/upstream.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/excerpt.h"
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

static enum hx_code resolve(struct upstream *upstream, struct hx_error *err)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *found = NULL;
	char host[256], port[6];
	int rc;

	split_authority(slice_str(upstream->authority), upstream->tls ? "443" : "80", host, port);
	rc = getaddrinfo(host, port, &hints, &found);
	for (struct addrinfo *at = found; at && upstream->addresses_n < UPSTREAM_ADDRESSES_MAX; at = at->ai_next) {
		struct sockaddr_storage sockaddr = {0};

		memcpy(&sockaddr, at->ai_addr, at->ai_addrlen);
		upstream->addresses_n += address_from_sockaddr(&sockaddr, &upstream->addresses[upstream->addresses_n]);
	}
	if (found)
		freeaddrinfo(found);
	if (upstream->addresses_n > 0)
		return HX_OK;
	return error_set(err, HX_CONFIG_ERROR, "the upstream's host \"%s\" cannot be resolved: %s",
			 excerpt_of(slice_str(host)).text, rc ? gai_strerror(rc) : "it has no address");
}

static enum hx_code parse_url(const char *url, struct upstream *upstream, struct hx_error *err)
{
	struct slice rest = slice_str(url);
	bool secure = rest.n > 8 && slice_is_nocase(slice_of(rest.p, 8), "https://");
	size_t scheme = secure ? 8 : 7;

	if (!secure && (rest.n < 8 || !slice_is_nocase(slice_of(rest.p, 7), "http://")))
		return error_set(err, HX_CONFIG_ERROR, "the upstream is an address like http://127.0.0.1:3000");
	rest = slice_of(rest.p + scheme, rest.n - scheme);
	if (rest.p[rest.n - 1] == '/')
		rest.n--;
	if (rest.n >= sizeof upstream->authority || !host_valid(rest))
		return error_set(
			err, HX_CONFIG_ERROR,
			"the upstream is http:// or https://, a host and perhaps a port, with nothing behind it: not \"%s\"",
			excerpt_of(slice_str(url)).text);
	snprintf(upstream->authority, sizeof upstream->authority, "%.*s", SLICE_ARGS(rest));
	return secure ? tls_client_new(upstream->authority, "HAPAX_GATE_CA_FILE", &upstream->tls, err) : HX_OK;
}

/* ---- life ---- */

enum hx_code upstream_new(const char *url, struct clock *clock, struct upstream **ret_upstream, struct hx_error *err)
{
	struct upstream *upstream = calloc(1, sizeof *upstream);
	enum hx_code code;

	if (!upstream)
		return error_set(err, HX_NO_MEMORY, "no memory for the upstream");
	upstream->clock = clock;
	pthread_mutex_init(&upstream->mutex, NULL);
	code = parse_url(url, upstream, err);
	if (code == HX_OK)
		code = resolve(upstream, err);
	if (code != HX_OK) {
		upstream_free(upstream);
		return code;
	}
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
		free(pool);
	}
	tls_client_free(upstream->tls);
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

struct upstream_pool *upstream_join(struct upstream *upstream, struct loop *loop)
{
	struct upstream_pool *pool = calloc(1, sizeof *pool);

	if (!pool)
		return NULL;
	pool->upstream = upstream;
	pool->loop = loop;
	upstream_connections_init(pool);
	pthread_mutex_lock(&upstream->mutex);
	pool->next = upstream->pools;
	upstream->pools = pool;
	pthread_mutex_unlock(&upstream->mutex);
	return pool;
}
