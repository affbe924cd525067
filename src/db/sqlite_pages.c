/* See sqlite_pages.h. */
#include "db/sqlite_pages.h"

#include <sqlite3.h>

#include "base/error.h"

/* No page has a number that is above `highest`, but maybe one that has `away`. */
struct pages {
	sqlite3_pcache *own; /* SQLite's */
	unsigned highest;
	unsigned away; /* 0: none */
};

static sqlite3_pcache_methods2 sqlites;

static struct pages *pages_of(sqlite3_pcache *cache)
{
	return (struct pages *)cache;
}

static sqlite3_pcache *pages_create(int page_bytes, int extra_bytes, int purgeable)
{
	struct pages *pages = sqlite3_malloc(sizeof *pages);

	if (!pages)
		return NULL;
	*pages = (struct pages){.own = sqlites.xCreate(page_bytes, extra_bytes, purgeable)};
	if (!pages->own) {
		sqlite3_free(pages);
		return NULL;
	}
	return (sqlite3_pcache *)pages;
}

static void pages_destroy(sqlite3_pcache *cache)
{
	sqlites.xDestroy(pages_of(cache)->own);
	sqlite3_free(cache);
}

static void pages_cachesize(sqlite3_pcache *cache, int n)
{
	sqlites.xCachesize(pages_of(cache)->own, n);
}

static int pages_pagecount(sqlite3_pcache *cache)
{
	return sqlites.xPagecount(pages_of(cache)->own);
}

static sqlite3_pcache_page *pages_fetch(sqlite3_pcache *cache, unsigned number, int create)
{
	struct pages *pages = pages_of(cache);

	if (create && number > pages->highest)
		pages->highest = number;
	return sqlites.xFetch(pages->own, number, create);
}

static void pages_unpin(sqlite3_pcache *cache, sqlite3_pcache_page *page, int discard)
{
	sqlites.xUnpin(pages_of(cache)->own, page, discard);
}

static void pages_rekey(sqlite3_pcache *cache, sqlite3_pcache_page *page, unsigned from, unsigned to)
{
	struct pages *pages = pages_of(cache);

	if (from == pages->away)
		pages->away = 0;
	if (to > pages->highest && !pages->away)
		pages->away = to;
	else if (to > pages->highest && to != pages->away)
		pages->highest = to > pages->away ? to : pages->away;
	sqlites.xRekey(pages->own, page, from, to);
}

static void pages_truncate(sqlite3_pcache *cache, unsigned limit)
{
	struct pages *pages = pages_of(cache);

	if (limit > pages->highest && limit > pages->away)
		return;
	sqlites.xTruncate(pages->own, limit);
	if (pages->highest >= limit)
		pages->highest = limit - 1;
	if (pages->away >= limit)
		pages->away = 0;
}

static void pages_shrink(sqlite3_pcache *cache)
{
	sqlites.xShrink(pages_of(cache)->own);
}

static int pages_init(void *context UNUSED)
{
	return sqlites.xInit(sqlites.pArg);
}

static void pages_shutdown(void *context UNUSED)
{
	sqlites.xShutdown(sqlites.pArg);
}

void sqlite_pages_own(void)
{
	static const sqlite3_pcache_methods2 methods = {
		.iVersion = 1,
		.xInit = pages_init,
		.xShutdown = pages_shutdown,
		.xCreate = pages_create,
		.xCachesize = pages_cachesize,
		.xPagecount = pages_pagecount,
		.xFetch = pages_fetch,
		.xUnpin = pages_unpin,
		.xRekey = pages_rekey,
		.xTruncate = pages_truncate,
		.xDestroy = pages_destroy,
		.xShrink = pages_shrink,
	};

	if (sqlite3_config(SQLITE_CONFIG_GETPCACHE2, &sqlites) == SQLITE_OK)
		(void)sqlite3_config(SQLITE_CONFIG_PCACHE2, &methods);
}
