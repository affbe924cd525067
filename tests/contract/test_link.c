/*
 * A history row is linked to the one before it in the same way by whoever writes it (hx_link(), in each store) and by whoever
 * follows the chain (history_link(), in C): a store that was written by one must be found whole by all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "db/link.h"
#include "support/store.h"

static const struct db_stmt stmt_link = {
	.name = "test_link",
	.sql = "SELECT hx_link(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
	.in = "biittiiiit",
	.out = "b",
};

static const struct history_row rows[] = {
	{1, 1, {"", 0}, {"open", 4}, 1, 0, 7, 1800000000000, {"node-a", 6}},
	{INT64_MAX, 9, {"open", 4}, {"busy", 4}, 10, 3, INT64_MAX, 253402300799999, {"n", 1}},
	{INT64_MIN, 10, {"busy", 4}, {"", 0}, -1, 0, INT64_MIN, -6, {"", 0}},
	{0, 100, {"a|b", 3}, {"|", 1}, 0, 9, 10, 99, {"\"'\\", 3}},
	{99,
	 11,
	 {"\xcf\x80\xcf\x81\xce\xbf\xcf\x82", 8},
	 {"\xe2\x82\xac", 3},
	 12,
	 13,
	 14,
	 15,
	 {"\xe1\xbc\x85\xcf\x80\xce\xb1\xce\xbe", 9}},
};

static struct db_value link_in_store(struct db *db, const struct history_row *row, struct slice before,
				     struct arena *arena)
{
	struct unit_result result;
	struct hx_error err;
	struct unit unit;

	unit_init(&unit, /* op= */ 0);
	UNIT_ADD(&unit, UNIT_ANY, &stmt_link, before.n ? db_blob(before) : db_null(), db_int(row->subject),
		 db_int(row->seq), db_text(row->from), db_text(row->to), db_int(row->version), db_int(row->fence),
		 db_int(row->op), db_int(row->at), db_text(row->node));
	if (db_run_unit(db, &unit, &result, arena, &err) != HX_OK || result.verdict != UNIT_WON)
		fail_msg("%s", err.detail);
	return *db_cell(&result.rows[0], 0, 0);
}

static void a_store_links_as_c_does(void **state)
{
	struct store *store = store_new(*(const enum store_kind *)*state);
	struct db *db = store_open_migrated(store);
	uint8_t head[SHA256_BYTES];
	struct arena arena;

	arena_init(&arena, 1u << 20);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct slice before = slice_of(head, i ? sizeof head : 0);
		struct db_value linked = link_in_store(db, &rows[i], before, &arena);

		history_link(&rows[i], before, head);
		assert_int_equal(linked.type, DB_BLOB);
		assert_int_equal(linked.s.n, sizeof head);
		assert_memory_equal(linked.s.p, head, sizeof head);
	}
	arena_release(&arena);
	db_close(db);
	store_free(store);
}

int main(void)
{
	static enum store_kind sqlite = STORE_SQLITE_FILE, postgres = STORE_POSTGRES;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(a_store_links_as_c_does, &sqlite),
		cmocka_unit_test_prestate(a_store_links_as_c_does, &postgres),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
