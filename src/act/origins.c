/* See origins.h. */
#include "act/origins.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define IDLE_CONNECTIONS_MAX 4096 /* of one loop */

struct origin {
	struct origin *next;
	struct upstream *upstream;
	struct upstream_pool *pool;
	size_t n;
	char url[];
};

static struct origin **origins_slot_of(struct origins *origins, struct slice url)
{
	struct origin **slot = &origins->buckets[hash_bytes(0, url.p, url.n) % ORIGINS_BUCKETS];

	while (*slot && ((*slot)->n != url.n || memcmp((*slot)->url, url.p, url.n) != 0))
		slot = &(*slot)->next;
	return slot;
}

static void drop(struct origins *origins, struct origin **slot)
{
	struct origin *origin = *slot;

	*slot = origin->next;
	origins->n--;
	upstream_free(origin->upstream);
	free(origin);
}

/* Those that nobody uses at the moment: what they knew is found out again. */
static void make_room(struct origins *origins)
{
	for (size_t i = 0; i < ORIGINS_BUCKETS && origins->n >= ORIGINS_MAX; i++)
		for (struct origin **slot = &origins->buckets[i]; *slot;)
			if (upstream_pool_is_unused((*slot)->pool))
				drop(origins, slot);
			else
				slot = &(*slot)->next;
}

bool origins_init(struct origins *origins, struct loop *loop, const struct upstream_ways *ways)
{
	origins->ways = *ways;
	origins->hub = upstream_hub_new(loop, ORIGIN_IDLE_MS, IDLE_CONNECTIONS_MAX);
	return origins->hub != NULL;
}

void origins_release(struct origins *origins)
{
	for (size_t i = 0; i < ORIGINS_BUCKETS; i++)
		while (origins->buckets[i])
			drop(origins, &origins->buckets[i]);
	upstream_hub_free(origins->hub);
	origins->hub = NULL;
}

static enum hx_code origins_make(struct origins *origins, struct slice url, struct tls_client *tls,
				 struct origin **ret_origin, struct hx_error *err)
{
	struct origin *origin = calloc(1, sizeof *origin + url.n + 1);
	struct upstream_ways ways = origins->ways;
	enum hx_code code;

	if (!origin)
		return error_set(err, HX_NO_MEMORY, "out of memory");
	memcpy(origin->url, url.p, url.n);
	origin->n = url.n;
	ways.tls = tls;
	code = upstream_new_by(origin->url, &ways, &origin->upstream, err);
	if (!code)
		origin->pool = upstream_join_hub(origin->upstream, origins->hub);
	if (!code && !origin->pool)
		code = error_set(err, HX_NO_MEMORY, "out of memory");
	if (code) {
		upstream_free(origin->upstream);
		free(origin);
		return code;
	}
	*ret_origin = origin;
	return HX_OK;
}

enum hx_code origins_find(struct origins *origins, struct slice url, struct tls_client *tls,
			  struct upstream_pool **ret_pool, struct hx_error *err)
{
	struct origin **slot = origins_slot_of(origins, url);
	enum hx_code code;

	if (!*slot) {
		make_room(origins);
		slot = origins_slot_of(origins, url);
		code = origins_make(origins, url, tls, slot, err);
		if (code)
			return code;
		origins->n++;
	}
	*ret_pool = (*slot)->pool;
	return HX_OK;
}
