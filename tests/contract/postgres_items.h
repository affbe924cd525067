/* One unit on one item, on PostgreSQL: what the tests of its driver share. */
#ifndef HX_TESTS_CONTRACT_POSTGRES_ITEMS_H
#define HX_TESTS_CONTRACT_POSTGRES_ITEMS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/item.h"

#define ABSENT (-77)

/* The batch of most tests: one unit that puts one item. */
static inline void ask_put(struct session *s, int64_t id)
{
	session_reset(s);
	UNIT_ADD(session_unit(s), UNIT_VERDICT, &item_put, db_int(id), db_int(1), db_str(""), db_null());
}

static inline void ask_move(struct session *s, int64_t id, int64_t from, int64_t to)
{
	session_reset(s);
	UNIT_ADD(session_unit(s), UNIT_VERDICT, &item_move, db_int(id), db_int(to), db_int(from));
}

static inline enum hx_code commit(struct session *s)
{
	return s->db->driver->commit(s->db, &s->err);
}

static inline enum hx_code resolve(struct session *s, int64_t wait_ms)
{
	return s->db->driver->resolve(s->db, wait_ms, &s->err);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, session_set_up_postgres, session_tear_down)

#endif
