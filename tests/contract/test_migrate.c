/*
 * migrate.h on every store: a fresh one, one that is up to date, one from the future, one that is in the way, and
 * several nodes that start at the same moment.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "db/migrate.h"
#include "support/item.h"

static void migration_makes_the_schema_once(void **state)
{
	struct session *s = *state;
	struct migrate_status status;

	session_must(s, migrate_read_status(s->db, &status, &s->err));
	assert_int_equal(status.at, 0);
	assert_true(status.known >= 1);
	assert_int_equal(migrate_check(s->db, &s->err), HX_SCHEMA_MISMATCH);

	session_must(s, migrate_run(s->db, &status, &s->err));
	assert_int_equal(status.at, 0);
	session_must(s, migrate_check(s->db, &s->err));
	session_must(s, s->db->driver->script(s->db, "DELETE FROM subject; DELETE FROM history", &s->err));

	session_must(s, migrate_run(s->db, &status, &s->err));
	assert_int_equal(status.at, status.known);
	session_must(s, migrate_check(s->db, &s->err));
}

/* So that a server can start with a role that may not change the schema. */
static void nothing_is_written_where_nothing_is_to_be_done(void **state)
{
	struct session *s = *state;
	struct migrate_status status;

	session_must(s, migrate_run(s->db, &status, &s->err));
	if (s->db->driver != &db_sqlite) /* which has no roles */
		session_must(s, s->db->driver->script(s->db, "SET default_transaction_read_only = on", &s->err));
	session_must(s, migrate_run(s->db, &status, &s->err));
	assert_int_equal(status.at, status.known);
}

static void a_newer_schema_is_refused_untouched(void **state)
{
	struct session *s = *state;
	struct migrate_status status;

	session_must(s, migrate_run(s->db, &status, &s->err));
	session_must(s, s->db->driver->script(s->db, "INSERT INTO schema_version (number, name) VALUES (9999, 'later')",
					      &s->err));
	assert_int_equal(migrate_run(s->db, &status, &s->err), HX_SCHEMA_MISMATCH);
	assert_non_null(strstr(s->err.detail, "9999"));
	assert_int_equal(migrate_check(s->db, &s->err), HX_SCHEMA_MISMATCH);
	session_must(s, migrate_read_status(s->db, &status, &s->err));
	assert_int_equal(status.at, 9999);
	assert_int_equal(item_count(s), 0); /* the connection is as good as before */
}

static void a_migration_that_fails_leaves_nothing(void **state)
{
	struct session *s = *state;
	struct migrate_status status;

	/* In the way of the first migration. */
	session_must(s, s->db->driver->script(s->db, "CREATE TABLE history (id BIGINT)", &s->err));
	assert_int_not_equal(migrate_run(s->db, &status, &s->err), HX_OK);
	session_must(s, migrate_read_status(s->db, &status, &s->err));
	assert_int_equal(status.at, 0);
	assert_int_not_equal(s->db->driver->script(s->db, "SELECT count(*) FROM subject", &s->err), HX_OK);
	assert_int_equal(item_count(s), 0);
	session_must(s, s->db->driver->script(s->db, "DROP TABLE history", &s->err));
	session_must(s, migrate_run(s->db, &status, &s->err));
}

struct migrator {
	struct db *db;
	pthread_barrier_t *barrier;
	enum hx_code code;
	struct migrate_status before;
	struct hx_error err;
};

static void *migrate(void *context)
{
	struct migrator *m = context;

	pthread_barrier_wait(m->barrier);
	m->code = migrate_run(m->db, &m->before, &m->err);
	return NULL;
}

static void migrators_do_not_race(void **state)
{
	struct session *s = *state;
	enum { N = 6 };
	struct migrator m[N] = {0};
	pthread_t threads[N];
	pthread_barrier_t barrier;
	int first = 0;

	if (s->store->kind == STORE_SQLITE_MEMORY)
		return;
	pthread_barrier_init(&barrier, NULL, N);
	for (int i = 0; i < N; i++) {
		m[i] = (struct migrator){.db = store_open(s->store), .barrier = &barrier};
		assert_int_equal(pthread_create(&threads[i], NULL, migrate, &m[i]), 0);
	}
	for (int i = 0; i < N; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < N; i++) {
		if (m[i].code)
			fail_msg("%s", m[i].err.detail);
		first += m[i].before.at == 0;
		db_close(m[i].db);
	}
	assert_int_equal(first, 1);
	session_must(s, migrate_check(s->db, &s->err));
	pthread_barrier_destroy(&barrier);
}

static void the_printed_text_does_the_same(void **state)
{
	struct session *s = *state;
	struct strbuf text;

	strbuf_init(&text, 1u << 20);
	migrate_print(s->db->driver, /* at= */ 0, &text);
	session_must(s, s->db->driver->script(s->db, text.p, &s->err));
	session_must(s, migrate_check(s->db, &s->err));

	struct migrate_status status;

	session_must(s, migrate_read_status(s->db, &status, &s->err));
	strbuf_reset(&text);
	migrate_print(s->db->driver, status.at, &text); /* nothing is left to do */
	assert_int_equal(text.n, 0);
	strbuf_release(&text);
}

#define TEST(test)                                                                                                     \
	{                                                                                                              \
		.name = #test, .test_func = test, .teardown_func = session_tear_down                                   \
	}

static struct CMUnitTest tests[] = {
	TEST(migration_makes_the_schema_once),       TEST(a_newer_schema_is_refused_untouched),
	TEST(a_migration_that_fails_leaves_nothing), TEST(migrators_do_not_race),
	TEST(the_printed_text_does_the_same),        TEST(nothing_is_written_where_nothing_is_to_be_done),
};

int main(void)
{
	static const struct {
		const char *name;
		CMFixtureFunction set_up;
	} stores[] = {{"sqlite file", session_set_up_file},
		      {"sqlite memory", session_set_up_memory},
		      {"postgres", session_set_up_postgres}};
	int failed = 0;

	for (size_t i = 0; i < sizeof stores / sizeof *stores; i++) {
		for (size_t t = 0; t < sizeof tests / sizeof *tests; t++)
			tests[t].setup_func = stores[i].set_up;
		failed += cmocka_run_group_tests_name(stores[i].name, tests, NULL, NULL);
	}
	return failed;
}
