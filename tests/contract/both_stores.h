/* The fixtures of a test for each store: its own set_up(), with the kind of it. */
#ifndef HX_TESTS_CONTRACT_BOTH_STORES_H
#define HX_TESTS_CONTRACT_BOTH_STORES_H

#include "support/store.h"

static inline int set_up(enum store_kind kind);

static inline int set_up_sqlite(void **state)
{
	(void)state;
	return set_up(STORE_SQLITE_FILE);
}

static inline int set_up_postgres(void **state)
{
	(void)state;
	return set_up(STORE_POSTGRES);
}

#endif
