/*
 * No table of the schema may be an entity's table: every one that the migrations make is known as the engine's own, on every
 * store.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "db/migrate.h"
#include "flow/entity_table.h"
#include "support/item.h"

/* The session's own table stands for those of users. */
static const struct db_stmt stmt_tables_sqlite = {
	.name = "tables",
	.sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
	.in = "",
	.out = "t",
};
static const struct db_stmt stmt_tables_postgres = {
	.name = "tables",
	.sql = "SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema()",
	.in = "",
	.out = "t",
};

/* Is that what is said against a definition on this table? */
static bool is_refused_as_ours(struct slice table, struct arena *arena)
{
	const struct workflow workflow = {
		.name = "paper",
		.file = "paper.json",
		.table = {arena_copy(arena, table).p, "id", "status", "version", "updated_at"},
	};
	struct db_rows columns = {0};
	struct findings findings;

	findings_init(&findings, arena);
	assert_null(entity_table_new(&workflow, &columns, /* postgres= */ false, arena, &findings));
	return strstr(findings.first->text, "is the engine's own");
}

static void every_table_of_the_schema_is_ours(void **state)
{
	struct session *s = *state;
	struct migrate_status status;
	const struct db_rows *rows;
	size_t others = 0;

	session_must(s, migrate_run(s->db, &status, &s->err));
	session_reset(s);
	unit_add(session_unit(s), UNIT_ANY, s->db->driver == &db_sqlite ? &stmt_tables_sqlite : &stmt_tables_postgres,
		 0, NULL);
	session_must(s, session_run(s));
	rows = &s->result[0].rows[0];
	assert_true(rows->n > 10);
	for (size_t i = 0; i < rows->n; i++) {
		struct slice table = db_cell(rows, i, 0)->s;

		if (slice_is(table, "item"))
			others += !is_refused_as_ours(table, &s->arena);
		else if (!is_refused_as_ours(table, &s->arena))
			fail_msg("the table %.*s is missing in is_ours() of src/flow/entity_table.c",
				 SLICE_ARGS(table));
	}
	assert_int_equal(others, 1);
}

#define ON(set_up_)                                                                                                    \
	{                                                                                                              \
		"every_table_of_the_schema_is_ours, " #set_up_, every_table_of_the_schema_is_ours, set_up_,            \
			session_tear_down, NULL                                                                        \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {ON(session_set_up_file), ON(session_set_up_postgres)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
