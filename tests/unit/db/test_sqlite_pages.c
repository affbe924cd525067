/* What the page cache of SQLite drops at the end of a transaction is what is beyond it, and none of the pages before. */
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "db/sqlite_pages.h"

#define PAGES 200
#define AWAY 262145 /* where a split of a b-tree puts a page for a moment */

static sqlite3_pcache_methods2 cache_of;

static sqlite3_pcache *filled(void)
{
	sqlite3_pcache *cache = cache_of.xCreate(4096, 256, /* purgeable= */ 1);

	assert_non_null(cache);
	cache_of.xCachesize(cache, 2 * PAGES);
	for (unsigned i = 1; i <= PAGES; i++) {
		sqlite3_pcache_page *page = cache_of.xFetch(cache, i, /* create= */ 2);

		assert_non_null(page);
		cache_of.xUnpin(cache, page, /* discard= */ 0);
	}
	assert_int_equal(cache_of.xPagecount(cache), PAGES);
	return cache;
}

static void move(sqlite3_pcache *cache, unsigned from, unsigned to)
{
	sqlite3_pcache_page *page = cache_of.xFetch(cache, from, /* create= */ 0);

	assert_non_null(page);
	cache_of.xRekey(cache, page, from, to);
	cache_of.xUnpin(cache, page, /* discard= */ 0);
}

static void what_is_beyond_the_end_is_dropped(void **state)
{
	sqlite3_pcache *cache = filled();

	(void)state;
	cache_of.xTruncate(cache, PAGES + 1);
	assert_int_equal(cache_of.xPagecount(cache), PAGES);
	cache_of.xTruncate(cache, PAGES / 2 + 1);
	assert_int_equal(cache_of.xPagecount(cache), PAGES / 2);
	assert_null(cache_of.xFetch(cache, PAGES / 2 + 1, 0));
	cache_of.xUnpin(cache, cache_of.xFetch(cache, PAGES, 2), 0);
	assert_int_equal(cache_of.xPagecount(cache), PAGES / 2 + 1);
	cache_of.xTruncate(cache, PAGES / 2 + 1);
	assert_int_equal(cache_of.xPagecount(cache), PAGES / 2);
	cache_of.xDestroy(cache);
}

static void two_pages_change_places(void **state)
{
	sqlite3_pcache *cache = filled();

	(void)state;
	move(cache, 7, AWAY);
	move(cache, 9, 7);
	move(cache, AWAY, 9);
	cache_of.xTruncate(cache, PAGES + 1);
	assert_int_equal(cache_of.xPagecount(cache), PAGES);
	cache_of.xTruncate(cache, 9);
	assert_int_equal(cache_of.xPagecount(cache), 8);
	cache_of.xDestroy(cache);
}

static void who_does_not_come_back_is_dropped(void **state)
{
	sqlite3_pcache *cache = filled();

	(void)state;
	move(cache, 7, AWAY);
	move(cache, 9, AWAY + 2);
	move(cache, 11, AWAY - 2);
	cache_of.xTruncate(cache, PAGES + 1);
	assert_int_equal(cache_of.xPagecount(cache), PAGES - 3);
	for (unsigned i = AWAY - 2; i <= AWAY + 2; i++)
		assert_null(cache_of.xFetch(cache, i, 0));
	cache_of.xDestroy(cache);
}

/* One of several comes back, and the others are yet there. */
static void several_are_away(void **state)
{
	sqlite3_pcache *cache = filled();

	(void)state;
	move(cache, 7, AWAY);
	move(cache, 9, AWAY + 2);
	move(cache, AWAY, 7);
	cache_of.xTruncate(cache, PAGES + 1);
	assert_int_equal(cache_of.xPagecount(cache), PAGES - 1);
	assert_null(cache_of.xFetch(cache, AWAY + 2, 0));
	cache_of.xDestroy(cache);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_beyond_the_end_is_dropped),
		cmocka_unit_test(two_pages_change_places),
		cmocka_unit_test(who_does_not_come_back_is_dropped),
		cmocka_unit_test(several_are_away),
	};

	sqlite_pages_own();
	if (sqlite3_config(SQLITE_CONFIG_GETPCACHE2, &cache_of) || sqlite3_initialize())
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
