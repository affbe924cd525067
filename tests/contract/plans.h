/*
 * A store, full of rows by the fixture of the test, and how it would carry a statement out: for the tests that look at plans. Each
 * has a set_up() of its own, which begins with world_open().
 */
#ifndef HX_TESTS_CONTRACT_PLANS_H
#define HX_TESTS_CONTRACT_PLANS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "contract/both_stores.h"

static struct {
	struct store *store;
	struct db *db;
	struct arena arena;
	bool postgres;
} world;

static inline void world_open(enum store_kind kind)
{
	world.store = store_new(kind);
	world.db = store_open_migrated(world.store);
	world.postgres = kind == STORE_POSTGRES;
	arena_init(&world.arena, 512u << 20);
}

static inline void script(const char *sql)
{
	struct hx_error err = {0};

	if (world.db->driver->script(world.db, sql, &err) != HX_OK)
		fail_msg("%s", err.detail);
}

static inline int tear_down(void **state)
{
	(void)state;
	db_close(world.db);
	store_free(world.store);
	arena_release(&world.arena);
	return 0;
}

/* The statement for the words that ask; lives as long as the connection. SQLite is asked for its plan, PostgreSQL for what it then
 * really read. */
static inline const struct db_stmt *explained(const struct db_stmt *stmt)
{
	static int counter;
	char *name = arena_alloc(&world.arena, 40);
	struct db_stmt *wrapped = arena_zalloc(&world.arena, sizeof *wrapped);
	struct strbuf text;

	snprintf(name, 40, "explain_%d", ++counter);
	strbuf_init(&text, 65536);
	strbuf_add_str(&text, world.postgres ? "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) "
					     : "EXPLAIN QUERY PLAN ");
	strbuf_add_str(&text, world.postgres && stmt->pg_sql ? stmt->pg_sql : stmt->sql);
	strbuf_add_char(&text, '\0');
	*wrapped = (struct db_stmt){.name = name,
				    .sql = arena_keep(&world.arena, &text).p,
				    .in = stmt->in,
				    .out = world.postgres ? "t" : "iiit"};
	return wrapped;
}

/* A line of the plan, out of what explained() gives. */
static inline struct slice plan_line(const struct db_rows *rows, size_t row)
{
	return db_cell(rows, row, world.postgres ? 0 : 3)->s;
}

/* PostgreSQL sees the end of a walk by whole keys only where the first column differs (flow/page.h): none may have such an end. */
static inline bool misses_its_end(const char *line)
{
	const char *first = strstr(line, "Index Cond: ((ROW(");

	return first && strstr(first + sizeof "Index Cond: ((ROW(", "(ROW(");
}

#endif
