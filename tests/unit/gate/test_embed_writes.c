/* hx_gate_*: the program's own writes go along with the record, also when the answer of the commit is lost. See test_embed.c. */
#include "unit/gate/embed_shop.h"

/* ---- along with the program's own writes ---- */

static void test_writes_and_record_are_one(void **state)
{
	struct shop *shop = *state;
	struct hx_gate_entry *entry = begun(shop, "k", "");
	struct hx_error err;

	assert_int_equal(pay(entry, 30, "it's {a} ?1 test", &err), HX_OK);
	hx_gate_entry_free(entry);
	assert_account(shop, 70, 1);
	assert_int_equal(sql(shop, "SELECT count(*) FROM payment WHERE what = 'it''s {a} ?1 test'"), 1);
	replays(shop, "k", "", 201, "{\"paid\":true}");
	assert_account(shop, 70, 1);

	/* More than there is: nothing of it all, and the record is still ours, for another answer. */
	entry = begun(shop, "k2", "");
	assert_int_equal(pay(entry, 71, NULL, &err), HX_INVALID);
	assert_non_null(strstr(err.detail, "write 1"));
	assert_account(shop, 70, 1);
	assert_int_equal(begin(shop, "k2", "", &(struct hx_gate_entry *){NULL}), HX_IN_FLIGHT);
	assert_int_equal(pay(entry, 70, NULL, &err), HX_OK);
	hx_gate_entry_free(entry);
	assert_account(shop, 0, 2);

	/* Refused by the store itself. */
	sql(shop, "UPDATE account SET balance = 14");
	entry = begun(shop, "k3", "");
	assert_int_equal(pay(entry, 1, NULL, &err), HX_DATA_ERROR);
	assert_account(shop, 14, 2);
	assert_int_equal(hx_gate_abort(entry, &err), HX_OK);
	hx_gate_entry_free(entry);
	entry = begun(shop, "k3", "");
	hx_gate_entry_free(entry);
}

/* Two hold the record, since the first one's lease was over: one of them writes. */
static void test_only_one_of_two_holders_writes(void **state)
{
	struct shop *shop = *state;
	struct hx_gate_entry *slow, *quick;
	struct hx_error err;

	slow = begun(shop, "k", "");
	sql(shop, "UPDATE hx_gate_record SET until = 1");
	quick = begun(shop, "k", "");
	assert_int_equal(pay(quick, 10, "quick", &err), HX_OK);
	assert_int_equal(pay(slow, 10, "slow", &err), HX_STALE_FENCE);
	assert_int_equal(shop->last.outcome, HX_GATE_STALE);
	assert_account(shop, 90, 1);
	hx_gate_entry_free(slow);
	hx_gate_entry_free(quick);

	/* And the other way round. */
	slow = begun(shop, "k2", "");
	sql(shop, "UPDATE hx_gate_record SET until = 1 WHERE status = 1");
	quick = begun(shop, "k2", "");
	assert_int_equal(pay(slow, 10, "slow", &err), HX_OK);
	assert_int_equal(pay(quick, 10, "quick", &err), HX_STALE_FENCE);
	assert_int_equal(hx_gate_abort(quick, &err), HX_WRONG_STATUS);
	assert_account(shop, 80, 2);
	hx_gate_entry_free(slow);
	hx_gate_entry_free(quick);
	replays(shop, "k2", "", 201, "{\"paid\":true}");

	/* Gone altogether. */
	slow = begun(shop, "k3", "");
	sql(shop, "DELETE FROM hx_gate_record");
	assert_int_equal(pay(slow, 10, "slow", &err), HX_STALE_FENCE);
	assert_account(shop, 80, 2);
	hx_gate_entry_free(slow);
}

static void test_values_of_all_types(void **state)
{
	struct shop *shop = *state;
	bool postgres = shop->store->kind == STORE_POSTGRES;
	struct hx_value values[] = {
		{.type = HX_VALUE_INT, .number = INT64_MIN},
		{.type = HX_VALUE_TEXT, .bytes = "12", .bytes_n = 2},
		{.type = HX_VALUE_BYTES, .bytes = "a\0b", .bytes_n = 3},
		{.type = HX_VALUE_NULL},
	};
	struct hx_gate_write write = {"INSERT INTO kinds VALUES (?1, ?2, ?3, ?4)", 4, values, 1};
	struct hx_gate_response answer = answer_of("{}");
	struct hx_gate_entry *entry = begun(shop, "k", "");
	struct hx_error err;

	sql(shop, postgres ? "CREATE TABLE kinds (i bigint, n integer, b bytea, x text)"
			   : "CREATE TABLE kinds (i bigint, n integer, b blob, x text)");
	assert_int_equal(hx_gate_complete(entry, &answer, 1, &write, &err), HX_OK);
	hx_gate_entry_free(entry);
	assert_int_equal(
		sql(shop, "SELECT count(*) FROM kinds WHERE i = -9223372036854775808 AND n = 12 AND x IS NULL"), 1);
	assert_int_equal(sql(shop, "SELECT length(b) FROM kinds"), 3);
}

static void test_writes_are_checked(void **state)
{
	struct hx_value one = number(1), many[HX_GATE_PARAMS_MAX + 1] = {0};
	const struct hx_gate_write bad[] = {
		{"COMMIT", 0, NULL, 0},
		{"DROP TABLE account", 0, NULL, 0},
		{"DELETE FROM payment; DELETE FROM account", 0, NULL, 0},
		{"DELETE FROM payment WHERE n = ?", 1, &one, 0},
		{"DELETE FROM payment WHERE n = $1", 1, &one, 0},
		{"DELETE FROM payment WHERE n = :n", 1, &one, 0},
		{"DELETE FROM payment WHERE n = ?2", 1, &one, 0},
		{"DELETE FROM payment WHERE n = ?1", 0, NULL, 0},
		{"DELETE FROM payment WHERE n = ?0", 1, &one, 0},
		{"DELETE FROM payment WHERE n = ?13", 13, many, 0},
		{"DELETE FROM payment WHERE n = {u}", 0, NULL, 0},
		{"", 0, NULL, 0},
		{NULL, 0, NULL, 0},
	};
	struct hx_gate_write too_many[HX_GATE_WRITES_MAX + 1];
	struct shop *shop = *state;
	struct hx_gate_response answer = answer_of("{}");
	struct hx_gate_entry *entry = begun(shop, "k", "");
	struct hx_error err;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (hx_gate_complete(entry, &answer, 1, &bad[i], &err) != HX_VALIDATION_ERROR)
			fail_msg("%s", bad[i].sql);
	for (size_t i = 0; i <= HX_GATE_WRITES_MAX; i++)
		too_many[i] = (struct hx_gate_write){"INSERT INTO payment (n) VALUES (?1)", 1, &one, 0};
	assert_int_equal(hx_gate_complete(entry, &answer, HX_GATE_WRITES_MAX + 1, too_many, &err), HX_VALIDATION_ERROR);
	/* No such table: the store's words. */
	assert_int_equal(hx_gate_complete(entry, &answer, 1,
					  &(struct hx_gate_write){"DELETE FROM nothing WHERE a = ?1", 1, &one, 0},
					  &err),
			 HX_DATA_ERROR);
	assert_non_null(strstr(err.detail, "nothing"));
	assert_int_equal(hx_gate_complete(entry, &answer, HX_GATE_WRITES_MAX, too_many, &err), HX_OK);
	hx_gate_entry_free(entry);
	assert_account(shop, 100, HX_GATE_WRITES_MAX);
}

/* Texts are kept for as long as the gate is open, so there is an end to them; a refused one takes no room. */
static void test_texts_have_an_end(void **state)
{
	struct shop *shop = *state;
	struct hx_gate_response answer = answer_of("{}");
	struct hx_error err;
	char key[32], statement[100];

	for (int i = 0; i <= HX_GATE_SQL_TEXTS_MAX; i++) {
		struct hx_gate_write write = {statement, 0, NULL, 0};
		struct hx_gate_entry *entry;

		snprintf(key, sizeof key, "k-%d", i);
		snprintf(statement, sizeof statement, "DELETE FROM payment WHERE n = ?1 AND n = %d", i);
		entry = begun(shop, key, "");
		if (i < HX_GATE_SQL_TEXTS_MAX)
			assert_int_equal(hx_gate_complete(entry, &answer, 1, &write, &err), HX_VALIDATION_ERROR);
		snprintf(statement, sizeof statement, "DELETE FROM payment WHERE n = %d", i);
		assert_int_equal(hx_gate_complete(entry, &answer, 1, &write, &err),
				 i < HX_GATE_SQL_TEXTS_MAX ? HX_OK : HX_TOO_LARGE);
		hx_gate_entry_free(entry);
	}
}

/* ---- a commit whose answer is lost ---- */

/* Pays, and the store cannot be asked in time whether that landed. Then it lands. */
static struct hx_gate_entry *pay_in_doubt(struct shop *shop)
{
	struct hx_gate_entry *entry = begun(shop, "k", "");
	struct hx_error err;

	pg_proxy_arm(shop->proxy, PG_PROXY_HOLD);
	assert_int_equal(pay(entry, 10, NULL, &err), HX_OUTCOME_UNKNOWN);
	assert_int_equal(pg_proxy_cuts(shop->proxy), 1);
	assert_account(shop, 100, 0);
	pg_proxy_let_go(shop->proxy);
	assert_account(shop, 90, 1);
	assert_int_equal(hx_gate_abort(entry, &err), HX_WRONG_STATUS);
	return entry;
}

static void test_repeated_in_doubt_is_found_out(void **state)
{
	struct shop *shop = *state;
	struct hx_gate_entry *entry = pay_in_doubt(shop);
	struct hx_error err;

	assert_int_equal(pay(entry, 10, NULL, &err), HX_OK);
	assert_int_equal(pay(entry, 10, NULL, &err), HX_WRONG_STATUS);
	assert_account(shop, 90, 1);
	hx_gate_entry_free(entry);
	replays(shop, "k", "", 201, "{\"paid\":true}");
}

/* What it wrote has outlived its record, and the key has been begun anew: there is nothing left to be asked. */
static void test_repeated_in_doubt_writes_into_no_other_record(void **state)
{
	struct shop *shop = *state;
	struct hx_gate_entry *entry = pay_in_doubt(shop), *anew;
	struct hx_error err;

	sql(shop, "DELETE FROM hx_gate_record");
	assert_int_equal(pay(entry, 10, NULL, &err), HX_OUTCOME_UNKNOWN);
	anew = begun(shop, "k", "");
	for (int i = 0; i < 2; i++)
		assert_int_equal(pay(entry, 10, NULL, &err), HX_OUTCOME_UNKNOWN);
	assert_int_equal(hx_gate_abort(entry, &err), HX_WRONG_STATUS);
	assert_account(shop, 90, 1);
	assert_int_equal(pay(anew, 10, NULL, &err), HX_OK);
	assert_account(shop, 80, 2);
	hx_gate_entry_free(anew);

	/* Down: of a first try that says that nothing was written, of a repetition it says nothing. */
	anew = begun(shop, "k2", "");
	pg_proxy_free(shop->proxy);
	shop->proxy = NULL;
	assert_int_equal(pay(anew, 10, NULL, &err), HX_STORE_UNAVAILABLE);
	assert_int_equal(pay(entry, 10, NULL, &err), HX_OUTCOME_UNKNOWN);
	assert_account(shop, 80, 2);
	hx_gate_entry_free(anew);
	hx_gate_entry_free(entry);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_DATABASES(test_writes_and_record_are_one),
		ON_DATABASES(test_only_one_of_two_holders_writes),
		ON_DATABASES(test_values_of_all_types),
		ON_DATABASES(test_writes_are_checked),
		ON(sqlite, test_texts_have_an_end),
		ON(proxied, test_repeated_in_doubt_is_found_out),
		ON(proxied, test_repeated_in_doubt_writes_into_no_other_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
