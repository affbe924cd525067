/* The SQL of actions: parameters found, look-alikes left alone, everything else refused. */
#include "definition.h"

#include "model/sql_text.h"

static struct action_statement statement;
static struct hx_error err;

static enum hx_code scan(const char *sql)
{
	statement = (struct action_statement){.name = "kept", .must = true};
	return sql_text_parse(slice_str(sql), &arena, &err, &statement);
}

static void becomes(const char *sql, const char *expected)
{
	if (scan(sql) != HX_OK)
		fail_msg("%s: %s", sql, err.detail);
	assert_string_equal(statement.sql, expected);
	assert_string_equal(statement.name, "kept");
	assert_true(statement.must);
}

static void refused(const char *sql, const char *why)
{
	assert_int_equal(scan(sql), HX_VALIDATION_ERROR);
	if (!strstr(err.detail, why))
		fail_msg("%s: %s", sql, err.detail);
	assert_null(statement.sql);
	assert_int_equal(statement.params_n, 0);
}

static void parameters_are_numbered_by_path(void **state)
{
	(void)state;
	becomes("INSERT INTO payment (invoice, amount, again) VALUES (:id, :input.amount, :id)",
		"INSERT INTO payment (invoice, amount, again) VALUES (?1, ?2, ?1)");
	assert_int_equal(statement.params_n, 2);
	assert_string_equal(statement.params[0], "id");
	assert_string_equal(statement.params[1], "input.amount");
	becomes("SELECT :id,:workflow,:requester,:version,:key,:now,:input,:input.a.b_1.c",
		"SELECT ?1,?2,?3,?4,?5,?6,?7,?8");
	assert_string_equal(statement.params[7], "input.a.b_1.c");
	becomes("UPDATE t SET a=:input.x::int8 WHERE id=:id::text", "UPDATE t SET a=?1::int8 WHERE id=?2::text");
	becomes("SELECT :input.a.", "SELECT ?1.");
	becomes("SELECT 1", "SELECT 1");
	assert_int_equal(statement.params_n, 0);
}

static void look_alikes_are_left_alone(void **state)
{
	(void)state;
	becomes("SELECT ':id', 'it''s :id', \"a:id\", \"x\"\":id\", a::id",
		"SELECT ':id', 'it''s :id', \"a:id\", \"x\"\":id\", a::id");
	becomes("SELECT the'\\', :id", "SELECT the'\\', ?1"); /* only a bare E escapes */
	becomes("SELECT a$1, b$ FROM t", "SELECT a$1, b$ FROM t");
	becomes("SELECT a @> b, '?', a[1 : 2]", "SELECT a @> b, '?', a[1 : 2]");
	becomes("SELECT '{\"a\":1}'", "SELECT '{\"a\":1}'");
	assert_int_equal(statement.params_n, 0);
}

static void there_is_one_way_of_quoting(void **state)
{
	(void)state;
	becomes("SELECT E'it\\'s :id', e'a''b\\':id\\\\', :id", "SELECT E'it''s :id', e'a''b'':id\\\\', ?1");
	becomes("SELECT E'\\n{', :id", "SELECT E'\\n{', ?1");
	becomes("SELECT $$ :id ? $$, $a$ it's $$ $a$, $$$$, :id", "SELECT  ' :id ? ' ,  ' it''s $$ ' ,  '' , ?1");
	becomes("SELECT 'a'$$b$$'c'", "SELECT 'a' 'b' 'c'"); /* no SQL before, and none afterwards */
	refused("SELECT `a`", "outside of quotes");
	refused("SELECT {from}", "outside of quotes");
	refused("SELECT 1 }", "outside of quotes");
}

static void comments_are_dropped(void **state)
{
	(void)state;
	becomes("SELECT 1 -- :id ? 'x\n, :id", "SELECT 1  \n, ?1");
	becomes("/* a /* :id */ b */ SELECT/**/1 - -1", "SELECT 1 - -1");
	becomes("SELECT 1 --", "SELECT 1");
}

static void one_statement(void **state)
{
	(void)state;
	becomes("  SELECT 1 ; \n -- done\n ; /* really */ ", "SELECT 1");
	refused("UPDATE a SET b = 1; DELETE FROM c", "one statement");
	refused("SELECT 1; COMMIT", "one statement");
	becomes("SELECT ';'", "SELECT ';'");
}

static void verbs(void **state)
{
	static const char *const bad[] = {"COMMIT",
					  "begin",
					  "ROLLBACK TO x",
					  "PRAGMA x",
					  "VACUUM",
					  "ATTACH 'x' AS y",
					  "CREATE TABLE t(x)",
					  "SELECTED",
					  "(SELECT 1)",
					  "",
					  "   ",
					  "-- x",
					  "1",
					  "'SELECT'"};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		refused(bad[i], "must begin with");
	becomes("with x as (select 1) update t set a = 1", "with x as (select 1) update t set a = 1");
	becomes("Delete From t", "Delete From t");
}

static void other_spellings_are_refused(void **state)
{
	(void)state;
	refused("SELECT ?", "written :path");
	refused("SELECT ?1", "written :path");
	refused("SELECT $1", "written :path");
	refused("SELECT $name", "written :path");
	refused("SELECT @name", "written :path");
	refused("SELECT :1", "begins with a letter");
	refused("SELECT :\xc3\xa9", "begins with a letter");
	refused("SELECT :$x", "begins with a letter");
	refused("SELECT :ids", "did you mean :id?");
	refused("SELECT :amount", "no parameter :amount");
	refused("SELECT :id.x", "only :input has parts");
	statement = (struct action_statement){0};
	assert_int_equal(sql_text_parse(slice_of("SELECT 1\0", 9), &arena, &err, &statement), HX_VALIDATION_ERROR);
	assert_int_equal(sql_text_parse(slice_of("SELECT '\0', :id", 15), &arena, &err, &statement),
			 HX_VALIDATION_ERROR);
}

static void what_begins_must_end(void **state)
{
	(void)state;
	refused("SELECT 'x", "not closed");
	refused("SELECT 'x''", "not closed");
	refused("SELECT E'x\\'", "not closed");
	refused("SELECT E'x\\", "not closed");
	refused("SELECT \"x", "not closed");
	refused("SELECT /* x /* y */", "not closed");
	refused("SELECT /*", "not closed");
	refused("SELECT /*/", "not closed");
	refused("SELECT $$ x", "not closed");
	refused("SELECT $a$ x $b$", "not closed");
	refused("SELECT $", "written :path");
}

static void limits(void **state)
{
	struct strbuf sql;
	struct arena small;

	(void)state;
	strbuf_init(&sql, 2 * SQL_TEXT_BYTES_MAX);
	strbuf_add_str(&sql, "SELECT 0");
	for (int i = 1; i <= ACTION_PARAMS_MAX; i++)
		strbuf_addf(&sql, ", :input.p%d", i);
	assert_int_equal(scan(sql.p), HX_OK);
	assert_int_equal(statement.params_n, ACTION_PARAMS_MAX);
	strbuf_add_str(&sql, ", :id");
	refused(sql.p, "at most 12 parameters");

	strbuf_reset(&sql);
	strbuf_add_str(&sql, "SELECT ");
	while (sql.n < SQL_TEXT_BYTES_MAX)
		strbuf_add_char(&sql, '1');
	assert_int_equal(scan(sql.p), HX_OK);
	strbuf_add_char(&sql, '1');
	refused(sql.p, "65537 bytes");

	strbuf_reset(&sql);
	strbuf_add_str(&sql, "SELECT :input.");
	for (int i = 6; i < SQL_PATH_BYTES_MAX; i++)
		strbuf_add_char(&sql, 'a');
	assert_int_equal(scan(sql.p), HX_OK);
	strbuf_add_char(&sql, 'a');
	refused(sql.p, "too long");
	strbuf_release(&sql);

	arena_init(&small, 16);
	assert_int_equal(sql_text_parse(slice_str("SELECT :id, :version, :key"), &small, &err, &statement),
			 HX_TOO_LARGE);
	arena_release(&small);
}

static void numbers_stay_numbers(void **state)
{
	static const struct {
		const char *sql, *why;
	} bad[] = {
		{"SELECT :id", "?1 to ?12"},
		{"SELECT ?", "?1 to ?12"},
		{"SELECT ?0", "?1 to ?12"},
		{"SELECT ?01", "?1 to ?12"},
		{"SELECT ?13", "?1 to ?12"},
		{"SELECT ?99999999999999999999", "?1 to ?12"},
		{"SELECT $1", "?1 to ?12"},
		{"SELECT @p", "?1 to ?12"},
		{"SELECT ?1 + ?3", "one is not used"},
		{"SELECT ?2", "one is not used"},
		{"SELECT 1; SELECT 2", "one SQL statement"},
		{"BEGIN", "must begin with"},
	};

	(void)state;
	statement = (struct action_statement){0};
	assert_int_equal(
		sql_text_parse_numbered(slice_str("UPDATE t SET a = ?2, b = '?9' WHERE c = ?1 AND d = ?2 -- ?3"),
					&arena, &err, &statement),
		HX_OK);
	assert_string_equal(statement.sql, "UPDATE t SET a = ?2, b = '?9' WHERE c = ?1 AND d = ?2");
	assert_int_equal(statement.params_n, 2);
	statement = (struct action_statement){0};
	assert_int_equal(sql_text_parse_numbered(slice_str("SELECT ?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12"), &arena,
						 &err, &statement),
			 HX_OK);
	assert_int_equal(statement.params_n, 12);
	assert_int_equal(sql_text_parse_numbered(slice_str("DELETE FROM t"), &arena, &err, &statement), HX_OK);
	assert_int_equal(statement.params_n, 0);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(sql_text_parse_numbered(slice_str(bad[i].sql), &arena, &err, &statement),
				 HX_VALIDATION_ERROR);
		if (!strstr(err.detail, bad[i].why))
			fail_msg("%s: %s", bad[i].sql, err.detail);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		model_test(parameters_are_numbered_by_path),
		model_test(look_alikes_are_left_alone),
		model_test(there_is_one_way_of_quoting),
		model_test(comments_are_dropped),
		model_test(one_statement),
		model_test(verbs),
		model_test(other_spellings_are_refused),
		model_test(what_begins_must_end),
		model_test(limits),
		model_test(numbers_stay_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
