/* ?schema=NAME is taken out of a URL, wherever it stands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "db/store_schema.h"

static void splits(const char *url, const char *wanted, const char *wanted_schema)
{
	char schema[STORE_SCHEMA_BYTES], *rest = NULL;
	struct hx_error err;

	assert_int_equal(store_schema_split(url, &rest, schema, &err), HX_OK);
	assert_string_equal(rest, wanted);
	assert_string_equal(schema, wanted_schema);
	free(rest);
}

static void it_is_taken_out(void **state)
{
	(void)state;
	splits("postgres://h/d", "postgres://h/d", "");
	splits("postgres://h/d?sslmode=require", "postgres://h/d?sslmode=require", "");
	splits("postgres://h/d?schema=app", "postgres://h/d", "app");
	splits("postgres://h/d?schema=App_1&sslmode=require&port=1", "postgres://h/d?sslmode=require&port=1", "App_1");
	splits("postgres://h/d?sslmode=require&schema=_a&port=1", "postgres://h/d?sslmode=require&port=1", "_a");
	splits("postgres://h/d?myschema=a", "postgres://h/d?myschema=a", "");
}

static void names_that_we_do_not_make(void **state)
{
	static const char *const bad[] = {
		"", "1a", "a b", "a%41", "a\"b", "pg_x", "PG_X", "a&schema=b", "information_schema"};
	char url[300], schema[STORE_SCHEMA_BYTES], *rest = NULL;
	struct hx_error err;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		snprintf(url, sizeof url, "postgres://u:secret@h/d?schema=%s", bad[i]);
		assert_int_equal(store_schema_split(url, &rest, schema, &err), HX_CONFIG_ERROR);
		assert_null(rest);
		assert_null(strstr(err.detail, "secret"));
	}
}

static void a_name_of_63_bytes_and_one_more(void **state)
{
	char url[200] = "postgres://h/d?schema=", schema[STORE_SCHEMA_BYTES], *rest = NULL;
	size_t n = strlen(url);

	(void)state;
	memset(url + n, 'a', 63);
	splits(url, "postgres://h/d", url + n);
	url[n + 63] = 'a';
	assert_int_equal(store_schema_split(url, &rest, schema, NULL), HX_CONFIG_ERROR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_taken_out),
		cmocka_unit_test(names_that_we_do_not_make),
		cmocka_unit_test(a_name_of_63_bytes_and_one_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
