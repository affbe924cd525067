/* Columns that are added later, in the table's own text: where they go, and which of them stay where they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "db/migrate_fold.h"

static void becomes(const char *script, const char *folded)
{
	LOCAL_STRBUF(sql, 4096);

	strbuf_add_str(&sql, script);
	migrate_fold(&sql);
	if (strcmp(sql.p, folded) != 0)
		fail_msg("counterexample in a script:%s\n  broken: it becomes %s, not %s", script, sql.p, folded);
	assert_int_equal(sql.n, strlen(folded));
}

static void stays(const char *script)
{
	becomes(script, script);
}

static void a_column_comes_after_the_last(void **state)
{
	(void)state;
	becomes("-- 1\nCREATE TABLE t (\n  a INTEGER, -- of it (all\n  b TEXT NOT NULL DEFAULT ')' -- ends\n) STRICT;\n"
		"-- 2\nALTER TABLE t ADD COLUMN c INTEGER; -- thousandths\nALTER TABLE t ADD COLUMN d TEXT CHECK (d <> '');\nX\n",
		"-- 1\nCREATE TABLE t (\n  a INTEGER, -- of it (all\n  b TEXT NOT NULL DEFAULT ')' -- ends\n, c INTEGER,"
		" d TEXT CHECK (d <> '')) STRICT;\n-- 2\nX\n");
}

static void constraints_stay_last(void **state)
{
	static const char *const constraints[] = {"PRIMARY KEY (a, b)", "UNIQUE (a)", "CHECK (a > 0)",
						  "FOREIGN KEY (a) REFERENCES u", "CONSTRAINT c CHECK (a > 0)"};

	(void)state;
	for (size_t i = 0; i < sizeof constraints / sizeof *constraints; i++) {
		LOCAL_STRBUF(script, 4096);
		LOCAL_STRBUF(folded, 4096);

		strbuf_addf(
			&script,
			"\nCREATE TABLE t (a INTEGER CHECK (a IN (1, 2)),\n b TEXT, -- it is\n  -- so\n  %s\n);\n%s",
			constraints[i], "ALTER TABLE t ADD COLUMN c TEXT;\n");
		strbuf_addf(
			&folded,
			"\nCREATE TABLE t (a INTEGER CHECK (a IN (1, 2)),\n b TEXT, c TEXT, -- it is\n  -- so\n  %s\n);\n",
			constraints[i]);
		becomes(script.p, folded.p);
	}
}

static void each_goes_to_its_own_table(void **state)
{
	(void)state;
	becomes("\nCREATE TABLE IF NOT EXISTS v (n);\nCREATE TABLE t (a);\nCREATE TABLE t_more (b);\n"
		"ALTER TABLE t_more ADD COLUMN c;\nCREATE INDEX i ON t_more (c);\nALTER TABLE t ADD COLUMN d;",
		"\nCREATE TABLE IF NOT EXISTS v (n);\nCREATE TABLE t (a, d);\nCREATE TABLE t_more (b, c);\n"
		"CREATE INDEX i ON t_more (c);\n");
}

static void a_table_that_is_there_is_altered(void **state)
{
	(void)state;
	stays("\nCREATE TABLE t_more (b);\nALTER TABLE t ADD COLUMN d;\nCREATE TABLE t (a);\n");
	stays("\nCREATE TABLE t (a);\nALTER TABLE t DROP COLUMN a;\nALTER TABLE\n");
	stays("");
}

static void a_table_of_another_name_is_altered(void **state)
{
	(void)state;
	stays("\nCREATE TABLE t (a);\nCREATE TABLE u (b);\nDROP TABLE t;\nALTER TABLE u RENAME TO t;\nALTER TABLE t ADD COLUMN c;\n");
	stays("\nCREATE TABLE t (a);\nALTER TABLE t RENAME TO u;\nALTER TABLE t ADD COLUMN c;\n");
	becomes("\nCREATE TABLE t (a);\nDROP TABLE t;\nCREATE TABLE t (b);\nALTER TABLE t ADD COLUMN c;\n",
		"\nCREATE TABLE t (a);\nDROP TABLE t;\nCREATE TABLE t (b, c);\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_column_comes_after_the_last),
		cmocka_unit_test(constraints_stay_last),
		cmocka_unit_test(each_goes_to_its_own_table),
		cmocka_unit_test(a_table_that_is_there_is_altered),
		cmocka_unit_test(a_table_of_another_name_is_altered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
