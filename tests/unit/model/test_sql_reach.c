/* What the text of a sql action may not name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/sql_reach.h"

static void refused(const char *sql, const char *words)
{
	struct hx_error err = {0};

	if (sql_reach_check(sql, &err) != HX_VALIDATION_ERROR)
		fail_msg("%s was not refused", sql);
	if (!strstr(err.detail, words))
		fail_msg("\"%s\" does not say \"%s\"", err.detail, words);
}

static void taken(const char *sql)
{
	struct hx_error err = {0};

	if (sql_reach_check(sql, &err) != HX_OK)
		fail_msg("%s: %s", sql, err.detail);
}

static void names_of_the_engine(void **state)
{
	(void)state;
	refused("SELECT * FROM hx_job", "hx_job: names that begin with hx_");
	refused("SELECT * FROM HX_JOB", "hx_job");
	refused("SELECT * FROM \"Hx_Job\"", "hx_job");
	refused("SELECT * FROM public . hx_job", "hx_job");
	refused("SELECT * FROM a,hx_job", "hx_job");
	refused("SELECT hx_link(a, b)", "hx_link");
	refused("SELECT hx_now_ms FROM t", "hx_now_ms"); /* a column of that name is one of ours */
	refused("SELECT 1 FROM t WHERE a = 'x'AND hx_b = 1", "hx_b");
	taken("SELECT hx_now_ms ()");
	taken("SELECT 'hx_job', 'it''s hx_job' FROM \"my \"\"hx_job\"");
	taken("SELECT ahx_job, a$hx_job FROM thx_");
}

static void functions_that_reach_out(void **state)
{
	(void)state;
	refused("SELECT set_config('a', 'b', true)", "set_config() reaches out");
	refused("SELECT pg_catalog.\"set_config\" \n ('a', 'b', true)", "set_config()");
	refused("SELECT PG_Terminate_Backend(1)", "pg_terminate_backend()");
	refused("SELECT pg_anything_new(1)", "pg_anything_new()");
	refused("SELECT query_to_xml_and_xmlschema('', true, true, '')", "query_to_xml_and_xmlschema()");
	refused("SELECT * FROM dblink_something('x')", "dblink_something()");
	refused("SELECT U&\"set\\005fconfig\"('a', 'b', true)", "U&");
	taken("SELECT pg_sleep(1), pg_typeof(a), current_setting('x'), nextval('s'), upper(b) FROM t");
	taken("SELECT pg_rating, set_config FROM movies WHERE pg_rating IN (1, 2)");
	taken("INSERT INTO dblink_log (a) VALUES (U&'x')");
	taken("INSERT INTO pg_ratings(a) VALUES (1)");
}

/* Most common values and the parts of long ones are the rows of everybody, the engine's tables included. */
static void catalogs_wherever_they_are_named(void **state)
{
	(void)state;
	refused("INSERT INTO loot SELECT most_common_vals FROM pg_stats WHERE 1 = ?1", "pg_stats is PostgreSQL's own");
	refused("SELECT stavalues1 FROM pg_catalog . \"pg_statistic\"", "pg_statistic");
	refused("SELECT chunk_data FROM pg_toast.pg_toast_16384 WHERE 1 = ?1", "pg_toast");
	refused("UPDATE PG_Settings SET setting = '64' WHERE name = 'work_mem'", "pg_settings");
	refused("SELECT query FROM pg_stat_activity", "pg_stat_activity");
	taken("SELECT 'pg_stats', pg_catalog.upper(a) FROM t WHERE b = 'pg_settings'");
}

static void texts_without_an_end(void **state)
{
	(void)state;
	taken("");
	taken("'");
	taken("SELECT \"");
	taken("SELECT 'hx_job");
	refused("SELECT \"hx_job", "hx_jo");
}

static void a_name_at_the_limit_and_beyond(void **state)
{
	char sql[100] = "SELECT pg_";

	(void)state;
	memset(sql + 10, 'a', 60);
	strncpy(sql + 70, "(1)", 4);
	refused(sql, "pg_aaa");   /* 63 bytes, as long as PostgreSQL's */
	memset(sql + 70, 'a', 1); /* it would be cut, and there is no such function */
	strncpy(sql + 71, "(1)", 4);
	taken(sql);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_the_engine),
		cmocka_unit_test(functions_that_reach_out),
		cmocka_unit_test(catalogs_wherever_they_are_named),
		cmocka_unit_test(texts_without_an_end),
		cmocka_unit_test(a_name_at_the_limit_and_beyond),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
