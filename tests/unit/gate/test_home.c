/* A store for the gate out of its URL: each kind, what it says about itself, and that the sweep reaches it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "gate/home.h"
#include "support/await.h"
#include "support/gate_asker.h"
#include "support/store.h"

#define AWAIT_MS 60000
#define LONG_MS 3600000

static struct gate_home *open_home(const char *url, int64_t sweep_every_ms)
{
	struct gate_home_options options = {.url = url, .sweep_every_ms = sweep_every_ms, .clock = clock_system()};
	struct gate_home *home = NULL;
	struct hx_error err;

	if (gate_home_open(&options, &home, &err))
		fail_msg("%s", err.detail);
	return home;
}

static enum hx_code refused(const char *url, struct hx_error *err)
{
	struct gate_home_options options = {.url = url, .clock = clock_system()};
	struct gate_home *home = NULL;
	enum hx_code code = gate_home_open(&options, &home, err);

	assert_null(home);
	return code;
}

/* One record comes into being, and is there. */
static void use(struct gate_home *home, unsigned key)
{
	struct hx_gate_claim claim = claim_of(key, 1, LONG_MS, LONG_MS);
	struct hx_gate_claim again = claim_by_another(&claim);

	assert_int_equal(hear_acquire(gate_home_store(home), &claim, NULL), GATE_ACQUIRED);
	assert_int_equal(hear_complete(gate_home_store(home), &claim, slice_str("bytes")), GATE_DONE);
	assert_int_equal(hear_acquire(gate_home_store(home), &again, NULL), GATE_COMPLETED);
}

static void in_memory(void **state)
{
	static const char *const urls[] = {"memory:", "sqlite::memory:"};

	(void)state;
	for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
		struct gate_home *home = open_home(urls[i], /* sweep_every_ms= */ 1);

		assert_int_equal(gate_home_lasting(home), GATE_ENDS_WITH_US);
		use(home, 1);
		gate_home_close(home, AWAIT_MS);
	}
	gate_home_close(NULL, 0);
}

static void a_database_keeps_its_records(void **state)
{
	static const enum store_kind kinds[] = {STORE_SQLITE_FILE, STORE_POSTGRES};

	(void)state;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		struct store *store = store_new(kinds[i]);
		struct gate_home *home = open_home(store->url, 0);
		struct hx_gate_claim again = claim_of(1, 1, LONG_MS, LONG_MS);

		assert_int_equal(gate_home_lasting(home), GATE_LASTS);
		use(home, 1);
		gate_home_close(home, AWAIT_MS);
		home = open_home(store->url, 0);
		assert_int_equal(hear_acquire(gate_home_store(home), &again, NULL), GATE_COMPLETED);
		gate_home_close(home, AWAIT_MS);
		store_free(store);
	}
}

static void a_second_gate_on_one_file_is_refused(void **state)
{
	struct store *store = store_new(STORE_SQLITE_FILE);
	struct gate_home *home = open_home(store->url, 0);
	struct hx_error err;

	(void)state;
	assert_int_equal(refused(store->url, &err), HX_BUSY);
	use(home, 1);
	gate_home_close(home, AWAIT_MS);
	home = open_home(store->url, 0);
	use(home, 2);
	gate_home_close(home, AWAIT_MS);
	store_free(store);
}

static void redis_says_how_lasting_it_is(void **state)
{
	const char *url = getenv("HAPAX_TEST_REDIS");
	struct gate_home *home;
	struct hx_error err;

	(void)state;
	if (!url)
		fail_msg("HAPAX_TEST_REDIS is not set: run this through tests/with-redis (make test does)");
	home = open_home(url, /* sweep_every_ms= */ 1);
	assert_int_not_equal(gate_home_lasting(home), GATE_ENDS_WITH_US);
	use(home, 1000 + (unsigned)getpid());
	gate_home_close(home, AWAIT_MS);
	assert_int_equal(refused("redis://127.0.0.1:1/0", &err), HX_STORE_UNAVAILABLE);
}

static void urls_that_are_none(void **state)
{
	static const char *const bad[] = {"",       "memory",           "mysql://u:secret@h/d", "sqlit:x",
					  "redis:", "redis://h:secret", "/var/lib/gate.db"};
	struct hx_error err;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(refused(bad[i], &err), HX_CONFIG_ERROR);
		assert_null(strstr(err.detail, "secret"));
	}
	assert_int_equal(refused("sqlite:no/such/folder/gate.db", &err), HX_STORE_UNAVAILABLE);
}

static int64_t rows(struct db *db)
{
	static const struct db_stmt stmt = {
		.name = "count", .sql = "SELECT count(*) FROM hx_gate_record", .out = "i", .in = ""};
	struct unit_result result;
	struct unit unit;
	struct arena arena;
	struct hx_error err;
	int64_t n;

	arena_init(&arena, 1u << 20);
	unit_init(&unit, 1);
	UNIT_ADD(&unit, UNIT_ANY, &stmt);
	if (db_run_unit(db, &unit, &result, &arena, &err))
		fail_msg("%s", err.detail);
	n = db_cell(&result.rows[0], 0, 0)->i;
	arena_release(&arena);
	return n;
}

static void what_has_expired_is_swept(void **state)
{
	struct store *store = store_new(STORE_SQLITE_FILE);
	struct gate_home *home = open_home(store->url, /* sweep_every_ms= */ 5);
	struct db *db = store_open(store);

	(void)state;
	for (unsigned key = 1; key <= 20; key++) {
		struct hx_gate_claim claim = claim_of(key, 1, /* lease_ms= */ 1, /* ttl_ms= */ 1);

		assert_int_equal(hear_acquire(gate_home_store(home), &claim, NULL), GATE_ACQUIRED);
	}
	use(home, 100);
	AWAIT(AWAIT_MS, rows(db) == 1);
	db_close(db);
	gate_home_close(home, AWAIT_MS);
	store_free(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_memory),
		cmocka_unit_test(a_database_keeps_its_records),
		cmocka_unit_test(a_second_gate_on_one_file_is_refused),
		cmocka_unit_test(redis_says_how_lasting_it_is),
		cmocka_unit_test(urls_that_are_none),
		cmocka_unit_test(what_has_expired_is_swept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
