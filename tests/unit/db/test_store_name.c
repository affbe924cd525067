/* What a store is called in logs and answers: enough to find it, and never a password. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "db/store_name.h"

static void says(const char *url, const char *wanted)
{
	char name[STORE_NAME_BYTES];

	assert_string_equal(store_name(url, name), wanted);
}

static int forget_environment(void **state)
{
	(void)state;
	return unsetenv("PGHOST") || unsetenv("PGHOSTADDR") || unsetenv("PGPORT") || unsetenv("PGDATABASE") ||
	       unsetenv("PGUSER") || unsetenv("PGSERVICE");
}

static void sqlite_is_its_url(void **state)
{
	(void)state;
	says("sqlite:/var/lib/hapax/hapax.db", "sqlite:/var/lib/hapax/hapax.db");
	says("sqlite::memory:", "sqlite::memory:");
}

static void postgres_is_host_port_and_database(void **state)
{
	(void)state;
	says("postgres://hapax@db.example/hapax?sslmode=require", "postgres://db.example:5432/hapax");
	says("postgresql://hapax@db.example:6000/hapax", "postgres://db.example:6000/hapax");
	says("postgres://hapax@[::1]:6000/hapax", "postgres://[::1]:6000/hapax");
	says("postgres://hapax@/hapax?host=/run/postgresql", "postgres:///hapax?host=/run/postgresql&port=5432");
	says("postgres://hapax@db.example", "postgres://db.example:5432/hapax");
	says("postgres://?hostaddr=127.0.0.1&dbname=d", "postgres://127.0.0.1:5432/d");
	says("postgres:///d?service=billing", "postgres:///?service=billing");
	says("postgres://hapax@db.example/hapax?schema=own&sslmode=require",
	     "postgres://db.example:5432/hapax?schema=own");
	says("postgres:///d?service=billing&schema=own", "postgres:///?service=billing&schema=own");
}

static void a_password_is_not_said(void **state)
{
	(void)state;
	says("postgres://hapax:secret@db.example/hapax", "postgres://db.example:5432/hapax");
	says("postgres://hapax:se%40cr%2Fet@db.example/hapax", "postgres://db.example:5432/hapax");
	says("postgres://db.example/hapax?user=hapax&password=secret&sslpassword=secret",
	     "postgres://db.example:5432/hapax");
}

static void what_the_url_leaves_open_is_in_the_environment(void **state)
{
	(void)state;
	setenv("PGHOST", "other.example", 1);
	setenv("PGPORT", "6001", 1);
	setenv("PGDATABASE", "orders", 1);
	setenv("PGPASSWORD", "secret", 1);
	says("postgres://", "postgres://other.example:6001/orders");
	says("postgres://db.example/hapax", "postgres://db.example:6001/hapax");
	unsetenv("PGPASSWORD");
	forget_environment(NULL);
	setenv("PGUSER", "alice", 1);
	says("postgres://", "postgres:///alice?port=5432");
	unsetenv("PGUSER");
}

static void a_long_name_is_cut(void **state)
{
	char url[3000] = "postgres://db.example/", name[STORE_NAME_BYTES];

	(void)state;
	memset(url + strlen(url), 'd', 2000);
	assert_int_equal(strlen(store_name(url, name)), STORE_NAME_BYTES - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sqlite_is_its_url),
		cmocka_unit_test(postgres_is_host_port_and_database),
		cmocka_unit_test(a_password_is_not_said),
		cmocka_unit_test(what_the_url_leaves_open_is_in_the_environment),
		cmocka_unit_test(a_long_name_is_cut),
	};

	return cmocka_run_group_tests(tests, forget_environment, NULL);
}
