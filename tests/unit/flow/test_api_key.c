/*
 * API keys: their text and its one spelling, what the store is told of them, and their rows on both stores: made, listed,
 * revoked once, at their limit and one past it.
 */
#include "flow/api_key.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/must_hold.h"
#include "support/store.h"

/* ---- the text ---- */

static void make_text(int64_t id, uint8_t fill, char ret_text[API_KEY_TEXT_CHARS + 1])
{
	uint8_t secret[API_KEY_SECRET_BYTES];

	memset(secret, fill, sizeof secret);
	api_key_format(id, secret, ret_text);
}

static void test_the_text(void **state)
{
	char text[API_KEY_TEXT_CHARS + 1];
	int64_t id = 0;

	(void)state;
	make_text(5, 0, text);
	assert_string_equal(text, "hx_0000000000005_0000000000000000000000000000000000000000000000000000");
	assert_true(api_key_parse(slice_str(text), &id));
	assert_int_equal(id, 5);
	make_text(INT64_MAX, 0xff, text);
	assert_string_equal(text, "hx_7zzzzzzzzzzzz_zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzg");
	assert_true(api_key_parse(slice_str(text), &id));
	assert_true(id == INT64_MAX);
}

/* Another bit of the secret is another text. */
static void test_every_bit_is_in_the_text(void **state)
{
	uint8_t secret[API_KEY_SECRET_BYTES] = {0};
	char zero[API_KEY_TEXT_CHARS + 1], text[API_KEY_TEXT_CHARS + 1];

	(void)state;
	api_key_format(1, secret, zero);
	for (size_t bit = 0; bit < 8 * sizeof secret; bit++) {
		size_t differ = 0;

		secret[bit / 8] = (uint8_t)(1u << bit % 8);
		api_key_format(1, secret, text);
		secret[bit / 8] = 0;
		for (size_t i = 0; i < API_KEY_TEXT_CHARS; i++)
			differ += text[i] != zero[i];
		assert_int_equal(differ, 1);
	}
}

static void test_what_is_no_key(void **state)
{
	char good[API_KEY_TEXT_CHARS + 1], bad[API_KEY_TEXT_CHARS + 1];
	int64_t id;

	(void)state;
	make_text(7, 0x55, good);
	assert_true(api_key_parse(slice_str(good), &id));
	for (size_t n = 0; n < API_KEY_TEXT_CHARS; n++)
		assert_false(api_key_parse(slice_of(good, n), &id));
	/* No place takes a character that is not of the alphabet: capitals, letters that look like digits, bytes. */
	for (size_t i = 0; i < API_KEY_TEXT_CHARS; i++)
		for (const char *c = "UiloIO!-\n \x80"; *c; c++) {
			memcpy(bad, good, sizeof bad);
			bad[i] = *c;
			assert_false(api_key_parse(slice_of(bad, API_KEY_TEXT_CHARS), &id));
		}
	memcpy(bad, good, sizeof bad);
	bad[20] = '\0';
	assert_false(api_key_parse(slice_of(bad, API_KEY_TEXT_CHARS), &id));
	bad[20] = good[20];
	bad[3] = '8'; /* an id of 64 bits */
	assert_false(api_key_parse(slice_of(bad, API_KEY_TEXT_CHARS), &id));
}

static void test_comparing(void **state)
{
	uint8_t a[SHA256_BYTES], b[SHA256_BYTES];

	(void)state;
	api_key_digest(slice_str("hx_a"), a);
	memcpy(b, a, sizeof b);
	assert_true(api_key_same(a, b));
	for (size_t bit = 0; bit < 8 * sizeof b; bit++) {
		b[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_false(api_key_same(a, b));
		b[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

static void test_scopes(void **state)
{
	enum api_key_scope scope = 0;

	(void)state;
	for (enum api_key_scope s = API_KEY_READ; s <= API_KEY_WORKER; s++) {
		assert_true(api_key_scope_parse(slice_str(api_key_scope_name(s)), &scope));
		assert_int_equal(scope, s);
	}
	assert_false(api_key_scope_parse(slice_str("Admin"), &scope));
	assert_false(api_key_scope_parse(slice_str(""), &scope));
}

static void test_what_a_scope_may(void **state)
{
	static const char *const may[] = {[API_KEY_READ] = "1000",
					  [API_KEY_EXECUTE] = "1101",
					  [API_KEY_ADMIN] = "1111",
					  [API_KEY_WORKER] = "0001"}; /* read, execute, admin, worker */

	(void)state;
	for (enum api_key_scope scope = API_KEY_READ; scope <= API_KEY_WORKER; scope++)
		for (enum api_key_scope needed = API_KEY_READ; needed <= API_KEY_WORKER; needed++)
			MUST_HOLD(api_key_may(scope, needed) == (may[scope][needed - 1] == '1'),
				  "a key may what its scope does not say");
}

/* ---- the rows ---- */

struct shop {
	struct store *store;
	struct fake_clock clock;
	struct db *db;
	struct arena arena;
	struct unit unit;
	struct unit_result result;
};

static void set_up(struct shop *shop, enum store_kind kind)
{
	struct db *made;

	shop->store = store_new(kind);
	made = store_open_migrated(shop->store);
	db_close(made);
	fake_clock_init(&shop->clock, (struct wall_time){1000000});
	shop->db = store_open_url(shop->store->url, &shop->clock.clock);
	arena_init(&shop->arena, 16u << 20);
}

static int set_up_sqlite(void **state)
{
	struct shop *shop = calloc(1, sizeof *shop);

	*state = shop;
	set_up(shop, STORE_SQLITE_FILE);
	return 0;
}

static int set_up_postgres(void **state)
{
	struct shop *shop = calloc(1, sizeof *shop);

	*state = shop;
	set_up(shop, STORE_POSTGRES);
	return 0;
}

static int tear_down(void **state)
{
	struct shop *shop = *state;

	db_close(shop->db);
	arena_release(&shop->arena);
	store_free(shop->store);
	free(shop);
	return 0;
}

static enum unit_verdict run(struct shop *shop)
{
	struct hx_error err;

	arena_reset(&shop->arena);
	if (db_run_unit(shop->db, &shop->unit, &shop->result, &shop->arena, &err))
		fail_msg("%s", err.detail);
	return shop->result.verdict;
}

static enum unit_verdict create(struct shop *shop, int64_t id, int64_t lifetime_ms)
{
	struct api_key key = {.id = id,
			      .workspace = slice_str("w"),
			      .requester = slice_str("r"),
			      .name = slice_str(""),
			      .scope = API_KEY_EXECUTE};

	memset(key.digest, (int)id, sizeof key.digest);
	unit_init(&shop->unit, 0);
	api_key_create(&shop->unit, &key, lifetime_ms);
	return run(shop);
}

static enum unit_verdict revoke(struct shop *shop, int64_t id)
{
	unit_init(&shop->unit, 0);
	api_key_revoke(&shop->unit, id);
	return run(shop);
}

static int64_t version(struct shop *shop)
{
	unit_init(&shop->unit, 0);
	api_keyring_look(&shop->unit);
	run(shop);
	return db_cell(&shop->result.rows[0], 0, KEYRING_VERSION)->i;
}

static size_t live(struct shop *shop)
{
	unit_init(&shop->unit, 0);
	api_key_list_live(&shop->unit, -1, API_KEYS_MAX + 1);
	run(shop);
	return shop->result.rows[0].n;
}

static void test_the_life_of_a_key(void **state)
{
	struct shop *shop = *state;
	struct api_key key;

	assert_int_equal(version(shop), 0);
	assert_int_equal(create(shop, 1, 0), UNIT_WON);
	assert_int_equal(version(shop), 1);
	assert_int_equal(create(shop, 2, 3600000), UNIT_WON);
	assert_int_equal(version(shop), 2);
	unit_init(&shop->unit, 0);
	api_key_list(&shop->unit, 0, 10);
	run(shop);
	assert_int_equal(shop->result.rows[0].n, 2);
	api_key_of_row(&shop->result.rows[0], 1, &key);
	assert_int_equal(key.id, 2);
	assert_true(slice_is(key.workspace, "w") && slice_is(key.requester, "r") && key.scope == API_KEY_EXECUTE);
	assert_int_equal(key.expires_at_ms - key.created_at_ms, 3600000);
	assert_int_equal(key.revoked_at_ms, 0);
	assert_int_equal(key.digest[31], 2);
	assert_int_equal(live(shop), 2);
	/* Revoked once, for ever; and whoever comes second changes nothing. */
	assert_int_equal(revoke(shop, 1), UNIT_WON);
	assert_int_equal(version(shop), 3);
	assert_int_equal(revoke(shop, 1), UNIT_LOST);
	assert_int_equal(revoke(shop, 77), UNIT_LOST);
	assert_int_equal(version(shop), 3);
	assert_int_equal(live(shop), 1);
	unit_init(&shop->unit, 0);
	api_key_read(&shop->unit, 1);
	run(shop);
	api_key_of_row(&shop->result.rows[0], 0, &key);
	assert_true(key.revoked_at_ms >= key.created_at_ms && key.expires_at_ms == 0);
}

/* By the store's clock, which on SQLite is ours. */
static void test_expiry(void **state)
{
	struct shop *shop = *state;

	assert_int_equal(create(shop, 1, 1000), UNIT_WON);
	fake_clock_advance_ms(&shop->clock, 999);
	assert_int_equal(live(shop), 1);
	fake_clock_advance_ms(&shop->clock, 1);
	assert_int_equal(live(shop), 0);
	assert_int_equal(revoke(shop, 1), UNIT_WON);
}

/* All but one, in one statement. */
static void fill(struct shop *shop)
{
	struct hx_error err;
	char sql[500];
	const char *text = shop->store->kind == STORE_POSTGRES
				   ? "INSERT INTO hx_key (id, workspace, requester, name, scope, digest, created_at)"
				     " SELECT i, 'w', 'r', '', 'read', sha256(''), 0 FROM generate_series(1, %d) i"
				   : "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
				     " INSERT INTO hx_key (id, workspace, requester, name, scope, digest, created_at)"
				     " SELECT i, 'w', 'r', '', 'read', zeroblob(32), 0 FROM n";

	snprintf(sql, sizeof sql, text, API_KEYS_MAX - 1);
	if (shop->db->driver->script(shop->db, sql, &err))
		fail_msg("%s", err.detail);
}

static void test_the_limit_and_one_past_it(void **state)
{
	struct shop *shop = *state;
	int64_t before;

	fill(shop);
	assert_int_equal(create(shop, API_KEYS_MAX, 0), UNIT_WON);
	before = version(shop);
	assert_int_equal(create(shop, API_KEYS_MAX + 1, 0), UNIT_REFUSED);
	assert_int_equal(version(shop), before); /* nothing of it is left */
	assert_int_equal(live(shop), API_KEYS_MAX);
	assert_int_equal(revoke(shop, 1), UNIT_WON);
	assert_int_equal(create(shop, API_KEYS_MAX + 1, 0), UNIT_WON);
}

#define ON_SQLITE(test) cmocka_unit_test_setup_teardown(test, set_up_sqlite, tear_down)
#define ON_POSTGRES(test)                                                                                              \
	{                                                                                                              \
#test "_postgres", test, set_up_postgres, tear_down, NULL                                              \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_text),
		cmocka_unit_test(test_every_bit_is_in_the_text),
		cmocka_unit_test(test_what_is_no_key),
		cmocka_unit_test(test_comparing),
		cmocka_unit_test(test_scopes),
		cmocka_unit_test(test_what_a_scope_may),
		ON_SQLITE(test_the_life_of_a_key),
		ON_POSTGRES(test_the_life_of_a_key),
		ON_SQLITE(test_expiry),
		ON_SQLITE(test_the_limit_and_one_past_it),
		ON_POSTGRES(test_the_limit_and_one_past_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
