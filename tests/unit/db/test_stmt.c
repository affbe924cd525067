/* One text, three forms. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "db/stmt.h"

static void assert_form(const struct db_stmt *stmt, enum stmt_form form, const char *wanted)
{
	struct strbuf out;

	strbuf_init(&out, 4096);
	stmt_expand(stmt, form, &out);
	assert_false(out.failed);
	assert_string_equal(out.p, wanted);
	strbuf_release(&out);
}

static void an_update_has_all_three(void **state)
{
	static const struct db_stmt stmt = {
		.name = "u",
		.sql = "UPDATE t SET a = ?1{from} WHERE id = ?2 RETURNING {ord}b",
		.in = "ti",
		.out = "i",
	};

	(void)state;
	assert_true(stmt_has_set_form(&stmt));
	assert_form(&stmt, STMT_SQLITE, "UPDATE t SET a = ?1 WHERE id = ?2 RETURNING b");
	assert_form(&stmt, STMT_POSTGRES_ROW, "UPDATE t SET a = $1 WHERE id = $2 RETURNING b");
	assert_form(&stmt, STMT_POSTGRES_SET,
		    "UPDATE t SET a = u.p1 FROM unnest($1::text[], $2::int8[]) WITH ORDINALITY AS u(p1, p2, ord)"
		    " WHERE id = u.p2 RETURNING u.ord, b");
}

static void a_count_needs_no_columns(void **state)
{
	static const struct db_stmt stmt = {
		.name = "c", .sql = "UPDATE t SET a = 1{from} WHERE id = ?1", .in = "i", .out = "", .counted = true};

	(void)state;
	assert_form(&stmt, STMT_SQLITE, "UPDATE t SET a = 1 WHERE id = ?1");
	assert_form(&stmt, STMT_POSTGRES_ROW, "UPDATE t SET a = 1 WHERE id = $1");
	assert_form(&stmt, STMT_POSTGRES_SET,
		    "UPDATE t SET a = 1 FROM unnest($1::int8[]) WITH ORDINALITY AS u(p1, ord) WHERE id = u.p1"
		    " RETURNING u.ord");
}

static void a_list_is_a_table_in_both(void **state)
{
	static const struct db_stmt stmt = {.name = "l",
					    .sql = "SELECT a FROM t WHERE b = ?1 AND c IN (SELECT value FROM {list2})",
					    .in = "it",
					    .out = "i"};

	(void)state;
	assert_false(stmt_has_set_form(&stmt));
	assert_form(&stmt, STMT_SQLITE, "SELECT a FROM t WHERE b = ?1 AND c IN (SELECT value FROM json_each(?2) AS q)");
	assert_form(
		&stmt, STMT_POSTGRES_ROW,
		"SELECT a FROM t WHERE b = $1 AND c IN (SELECT value FROM json_array_elements_text($2::json) AS q(value))");
}

static void a_select_joins(void **state)
{
	static const struct db_stmt stmt = {
		.name = "s",
		.sql = "SELECT {ord}a FROM t{join} WHERE id = ?1",
		.in = "b",
		.out = "i",
	};

	(void)state;
	assert_true(stmt_has_set_form(&stmt));
	assert_form(&stmt, STMT_SQLITE, "SELECT a FROM t WHERE id = ?1");
	assert_form(&stmt, STMT_POSTGRES_SET,
		    "SELECT u.ord, a FROM t, unnest($1::bytea[]) WITH ORDINALITY AS u(p1, ord) WHERE id = u.p1");
}

static void a_set_form_may_be_given(void **state)
{
	static const struct db_stmt stmt = {
		.name = "i",
		.sql = "INSERT INTO t (id) VALUES (?1) RETURNING id",
		.set_sql = "WITH m AS (INSERT INTO t (id) SELECT p1 FROM {u} RETURNING id)"
			   " SELECT u.ord, m.id FROM m JOIN {u} ON m.id = u.p1",
		.in = "i",
		.out = "i",
	};

	(void)state;
	assert_true(stmt_has_set_form(&stmt));
	assert_form(&stmt, STMT_POSTGRES_ROW, "INSERT INTO t (id) VALUES ($1) RETURNING id");
	assert_form(&stmt, STMT_POSTGRES_SET,
		    "WITH m AS (INSERT INTO t (id) SELECT p1 FROM unnest($1::int8[]) WITH ORDINALITY AS u(p1, ord)"
		    " RETURNING id) SELECT u.ord, m.id FROM m JOIN unnest($1::int8[]) WITH ORDINALITY AS u(p1, ord)"
		    " ON m.id = u.p1");
}

static void a_bare_text_has_only_its_row_form(void **state)
{
	static const struct db_stmt stmt = {
		.name = "d", .sql = "DELETE FROM t WHERE id = ?1 AND a <> '?1 {x}'", .in = "i", .out = ""};

	(void)state;
	assert_false(stmt_has_set_form(&stmt));
	assert_form(&stmt, STMT_SQLITE, "DELETE FROM t WHERE id = ?1 AND a <> '?1 {x}'");
	assert_form(&stmt, STMT_POSTGRES_ROW, "DELETE FROM t WHERE id = $1 AND a <> '?1 {x}'");
}

static void a_part_may_be_for_one_store(void **state)
{
	static const struct db_stmt stmt = {
		.name = "p",
		.sql = "SELECT {sqlite}'}' || a{end}{postgres}b{sqlite}?1{end} + {postgres}?1{end}{end}, c",
		.in = "i",
		.out = "i",
	};

	(void)state;
	assert_form(&stmt, STMT_SQLITE, "SELECT '}' || a, c");
	assert_form(&stmt, STMT_POSTGRES_ROW, "SELECT b + $1, c");
}

static void numbers_of_two_digits(void **state)
{
	static const struct db_stmt stmt = {
		.name = "w",
		.sql = "SELECT {ord}?12, ?1{from}",
		.in = "iiiiiiiiiiii",
		.out = "ii",
	};
	struct strbuf out;

	(void)state;
	assert_form(&stmt, STMT_SQLITE, "SELECT ?12, ?1");
	assert_form(&stmt, STMT_POSTGRES_ROW, "SELECT $12, $1");
	strbuf_init(&out, 4096);
	stmt_expand(&stmt, STMT_POSTGRES_SET, &out);
	assert_non_null(strstr(out.p, "SELECT u.ord, u.p12, u.p1 FROM unnest($1::int8[], "));
	assert_non_null(strstr(out.p, "$12::int8[]) WITH ORDINALITY AS u(p1, "));
	assert_non_null(strstr(out.p, "p12, ord)"));
	strbuf_release(&out);
}

static void a_ceiling_shows(void **state)
{
	static const struct db_stmt stmt = {.name = "c", .sql = "SELECT 1", .in = "", .out = "i"};
	struct strbuf out;

	(void)state;
	strbuf_init(&out, strlen(stmt.sql)); /* at the limit */
	stmt_expand(&stmt, STMT_SQLITE, &out);
	assert_false(out.failed);
	strbuf_release(&out);
	strbuf_init(&out, strlen(stmt.sql) - 1); /* one past it */
	stmt_expand(&stmt, STMT_SQLITE, &out);
	assert_true(out.failed);
	strbuf_release(&out);
}

/* In a process of its own, which must end by its assertion. */
static void assert_aborts(const struct db_stmt *stmt, enum stmt_form form)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		struct strbuf out;

		(void)!freopen("/dev/null", "w", stderr); /* its words are expected */
		signal(SIGABRT, SIG_DFL);
		strbuf_init(&out, 4096);
		stmt_expand(stmt, form, &out);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void mistakes_in_a_text_are_asserted(void **state)
{
	static const struct db_stmt unknown = {.name = "x", .sql = "SELECT {what}", .in = "", .out = ""};
	static const struct db_stmt unclosed = {.name = "x", .sql = "SELECT {from", .in = "", .out = ""};
	static const struct db_stmt u_in_row = {.name = "x", .sql = "SELECT * FROM {u}", .in = "i", .out = ""};
	static const struct db_stmt letter = {.name = "x", .sql = "SELECT 1{from}", .in = "x", .out = ""};

	(void)state;
	assert_aborts(&unknown, STMT_SQLITE);
	assert_aborts(&unclosed, STMT_SQLITE);
	assert_aborts(&u_in_row, STMT_POSTGRES_ROW);
	assert_aborts(&letter, STMT_POSTGRES_SET);
}

static void values_know_their_types(void **state)
{
	(void)state;
	assert_int_equal(db_int(-5).type, DB_INT);
	assert_int_equal(db_int(INT64_MIN).i, INT64_MIN);
	assert_int_equal(db_str("ab").type, DB_TEXT);
	assert_int_equal(db_str("ab").s.n, 2);
	assert_int_equal(db_str("").type, DB_TEXT);
	assert_int_equal(db_text(slice_of("a\0b", 3)).s.n, 3);
	assert_int_equal(db_blob(slice_of("a\0b", 3)).type, DB_BLOB);
	assert_int_equal(db_null().type, DB_NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_update_has_all_three),
		cmocka_unit_test(a_count_needs_no_columns),
		cmocka_unit_test(a_list_is_a_table_in_both),
		cmocka_unit_test(a_select_joins),
		cmocka_unit_test(a_set_form_may_be_given),
		cmocka_unit_test(a_bare_text_has_only_its_row_form),
		cmocka_unit_test(a_part_may_be_for_one_store),
		cmocka_unit_test(numbers_of_two_digits),
		cmocka_unit_test(a_ceiling_shows),
		cmocka_unit_test(mistakes_in_a_text_are_asserted),
		cmocka_unit_test(values_know_their_types),
	};

	return cmocka_run_group_tests_name("stmt", tests, NULL, NULL);
}
